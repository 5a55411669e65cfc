//! Makes a run's clients into jobs for the agent's threads: one client with its socket,
//! or one event loop with many clients, on each thread.

use super::identity::{AgentInfo, MOCK};
use crate::control::{Counter, ThreadContext, ThreadReport};
use crate::drivers::socket::{Driver, DriverError, SocketSpec};
use crate::drivers::{DriverKind, LoadDriver, SessionDriver};
use crate::shard::{Assignment, Dial, Notifier, RunShard, TlsDial, TlsError, WebSocketDial};
use crate::threads::ClientThread;
use crate::topics;
use pubmark_model::endpoint::{Endpoint, EndpointError};
use pubmark_model::options::{OptionValues, Options};
use pubmark_model::protocol::{BoundEndpoint, Client, Prepare, Role, ServerAddress};
use pubmark_model::wire_protocol::Protocol;
use pubmark_model::workload::{Receive, Transport, Workload};
use serde_json::{Map, Value};
use std::io;
use std::net::{AddrParseError, IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::thread;

/// Stack of a thread with one client. It is small, because there may be thousands.
const STACK_BYTES: usize = 512 << 10;

/// Wakes a thread that has clients.
pub enum Waker {
    /// A parked thread.
    Thread(thread::Thread),
    /// An event loop.
    Shard(Notifier),
}

impl Waker {
    /// Wakes the thread.
    pub fn wake(&self) {
        match self {
            Waker::Thread(thread) => thread.unpark(),
            Waker::Shard(notifier) => notifier.notify(),
        }
    }
}

/// The work of one thread.
pub enum Job {
    /// One client with its socket.
    Client(Box<ClientThread>),
    /// One event loop with many clients.
    Shard(RunShard, Box<Assignment>),
    /// The clients that come and go.
    Churn(RunShard, Box<Assignment>),
}

impl Job {
    /// Returns the role of the job's clients.
    pub fn role(&self) -> Role {
        match self {
            Job::Client(client) => client.client.role,
            Job::Shard(_, assignment) => assignment.clients.first().map_or(Role::Publisher, |client| client.role),
            Job::Churn(..) => Role::Subscriber,
        }
    }

    /// True if the job reports by itself when its clients are connected.
    pub fn connects(&self) -> bool {
        matches!(self, Job::Shard(..))
    }

    /// True if the job has something to wait for after the last message was sent:
    /// messages, or a broker's acknowledgements.
    pub fn drains(&self, qos: u8) -> bool {
        match self.role() {
            Role::Subscriber | Role::Replier => true,
            Role::Publisher | Role::Requester => self.connects() && qos > 0,
        }
    }

    /// Returns the job's counter for the live display.
    pub fn counter(&self) -> Arc<Counter> {
        match self {
            Job::Client(client) => client.counter.clone(),
            Job::Shard(_, assignment) | Job::Churn(_, assignment) => assignment.counter.clone(),
        }
    }

    /// Starts the job on a thread of its own.
    pub fn start(self, context: &Arc<ThreadContext>, reports: &Sender<ThreadReport>) -> std::io::Result<Waker> {
        let (context, reports) = (context.clone(), reports.clone());
        match self {
            Job::Client(client) => {
                let name = format!("{:?} {}", client.client.role, client.client.id).to_lowercase();
                let builder = thread::Builder::new().name(name).stack_size(STACK_BYTES);
                Ok(Waker::Thread(builder.spawn(move || client.run(&context, &reports))?.thread().clone()))
            }
            Job::Shard(run_shard, assignment) | Job::Churn(run_shard, assignment) => {
                let notifier = Notifier::new()?;
                let theirs = notifier.clone();
                thread::Builder::new().name("shard".into()).spawn(move || {
                    let report = match run_shard(*assignment, &context, &reports, theirs) {
                        Ok(outcome) => ThreadReport::Ended(Box::new(outcome)),
                        Err(error) => ThreadReport::Failed(error.to_string()),
                    };
                    // The agent may have ended already; then nobody reads the report.
                    let _ = reports.send(report);
                })?;
                Ok(Waker::Shard(notifier))
            }
        }
    }
}

/// The reason why a run cannot be prepared.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The agent has no such driver.
    #[error("this agent has no driver `{wanted}`; it has: {known}, {MOCK}")]
    NoDriver {
        /// The driver that was asked for.
        wanted: String,
        /// The drivers that the agent has.
        known: String,
    },
    /// A library's sockets need a transport.
    #[error("the workload names no transport")]
    NoTransport,
    /// The driver or one of its sockets cannot be opened.
    #[error(transparent)]
    Driver(#[from] DriverError),
    /// The endpoint of the server is missing.
    #[error("the driver speaks to a server, and no server is named")]
    NoServer,
    /// The server's endpoint is malformed.
    #[error("{0}")]
    Endpoint(EndpointError),
    /// The server's host name cannot be resolved.
    #[error("cannot find the host of {endpoint}: {source}")]
    Host {
        /// The server's endpoint.
        endpoint: String,
        /// The resolver's error.
        source: io::Error,
    },
    /// The server's host name has no address.
    #[error("the host of {0} has no address")]
    NoAddress(String),
    /// A source address is malformed.
    #[error("`{text}` is not an address to connect from")]
    Source {
        /// The text given as address.
        text: String,
        /// The parser's error.
        source: AddrParseError,
    },
    /// TLS cannot be set up.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

/// All jobs of a run, and the endpoints at which its clients can be reached.
pub struct OpenedJobs {
    /// The library, if the run uses one.
    pub driver: Option<Box<dyn Driver>>,
    /// A job for each thread.
    pub jobs: Vec<Job>,
    /// Endpoints that were bound.
    pub bound: Vec<BoundEndpoint>,
    /// Options as they took effect.
    pub applied: Map<String, Value>,
}

impl OpenedJobs {
    /// True if clients connect to a server by themselves and report when they have.
    pub fn connecting(&self) -> bool {
        self.jobs.iter().any(Job::connects)
    }
}

/// Finds the driver and opens everything that can be opened before the start.
pub fn open(identity: &AgentInfo, prepare: &Prepare, workload: &Workload) -> Result<OpenedJobs, OpenError> {
    let names = || identity.drivers.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    let (_, kind) = identity
        .drivers
        .iter()
        .find(|(name, _)| *name == prepare.driver)
        .ok_or_else(|| OpenError::NoDriver { wanted: prepare.driver.clone(), known: names() })?;
    match kind {
        DriverKind::Sockets(load) => sockets(*load, prepare, workload),
        DriverKind::Sessions(driver) => sessions(driver, prepare, workload),
    }
}

/// Opens a socket for each client, those that bind first.
fn sockets(load: LoadDriver, prepare: &Prepare, workload: &Workload) -> Result<OpenedJobs, OpenError> {
    // If clients connect to a server, the endpoint defines how bytes are carried.
    let to_server = Protocol::of_driver(&prepare.driver).map(|_| Transport::Tcp);
    let transport = workload.transport.or(to_server).ok_or(OpenError::NoTransport)?;
    let mut driver = load(&prepare.options)?;
    let mut opened = OpenedJobs { driver: None, jobs: Vec::new(), bound: Vec::new(), applied: Map::new() };
    let mut clients: Vec<&Client> = prepare.clients.iter().collect();
    clients.sort_by_key(|client| client.bind.is_none());
    let server: Vec<String> = prepare.server.iter().map(|server| server.endpoint.clone()).collect();
    for client in clients {
        let spec = SocketSpec {
            role: client.role,
            id: client.id,
            pattern: workload.pattern,
            transport,
            payload_bytes: workload.payload_bytes,
            spin: client.role == Role::Subscriber && workload.receive == Receive::Spin,
            unthrottled: !crate::window::measures_latency(workload),
            bind: client.bind.as_deref(),
            connect: if server.is_empty() { &client.connect } else { &server },
            answers: client.answers.as_deref(),
            run: prepare.server.as_ref().map_or("", |server| &server.run),
            options: &prepare.options,
        };
        let socket = driver.open(&spec)?;
        if let (Some(_), Some(endpoint)) = (&client.bind, socket.endpoint()) {
            let endpoint = endpoint.to_owned();
            let answers = socket.answers().map(str::to_owned);
            opened.bound.push(BoundEndpoint { role: client.role, id: client.id, endpoint, answers });
        }
        for (name, value) in socket.applied() {
            opened.applied.entry(name).or_insert(value);
        }
        let counter = Arc::new(Counter::default());
        let cpus = cpus(prepare, client.role);
        let spin_cores = spin_share(prepare, 1);
        opened.jobs.push(Job::Client(Box::new(ClientThread {
            client: client.clone(),
            socket,
            counter,
            cpus,
            spin_cores,
        })));
    }
    opened.driver = Some(driver);
    opened.applied.insert("receive".into(), workload.receive.word().into());
    Ok(opened)
}

/// Returns the share of the processors that this many of an agent's publishers may keep
/// awake.
fn spin_share(prepare: &Prepare, publishers: usize) -> f64 {
    let sends = |client: &&Client| client.role.sends();
    let all = prepare.clients.iter().filter(sends).count().max(1);
    prepare.spin_cores * publishers as f64 / all as f64
}

fn cpus(prepare: &Prepare, role: Role) -> Vec<usize> {
    match role {
        Role::Publisher | Role::Requester => prepare.publisher_cpus.clone(),
        Role::Subscriber | Role::Replier => prepare.subscriber_cpus.clone(),
    }
}

/// Assigns clients to event loops: by role, and then evenly.
fn sessions(driver: &SessionDriver, prepare: &Prepare, workload: &Workload) -> Result<OpenedJobs, OpenError> {
    let server = prepare.server.as_ref().ok_or(OpenError::NoServer)?;
    let (endpoint, dial) = reach(server, &prepare.options, topics::clients(workload))?;
    let options = endpoint.applied_to(&prepare.options);
    let by_url = endpoint.options.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
    let mut jobs = Vec::new();
    let roles = [Role::Subscriber, Role::Replier, Role::Publisher, Role::Requester];
    let assignment = |clients: Vec<Client>, role: Role| Assignment {
        clients,
        endpoint: endpoint.clone(),
        dial: dial.clone(),
        run: server.run.clone(),
        connect_per_s: 0.0,
        options: options.clone(),
        cpus: cpus(prepare, role),
        spin_cores: 0.0,
        counter: Arc::new(Counter::default()),
    };
    let of_role = |role| prepare.clients.iter().filter(move |client| client.role == role);
    let asked = match prepare.options.number("shards") as usize {
        // Half the processors: the other role needs some, and so may a server.
        0 => (thread::available_parallelism().map_or(1, usize::from) / 2).max(1),
        asked => asked.min(1_024),
    };
    for role in roles {
        let clients: Vec<Client> = of_role(role).cloned().collect();
        let shards = asked.min(clients.len());
        for shard in 0..shards {
            // Clients with neighbouring numbers go to different loops, because their due
            // times are close.
            let mine: Vec<Client> = clients.iter().skip(shard).step_by(shards).cloned().collect();
            let share = mine.len() as f64 / prepare.clients.len().max(1) as f64;
            let spin_cores = if role.sends() { spin_share(prepare, mine.len()) } else { 0.0 };
            let connect_per_s = f64::from(server.connect_per_s) * share;
            let assignment = Assignment { connect_per_s, spin_cores, ..assignment(mine, role) };
            jobs.push(Job::Shard(driver.run, Box::new(assignment)));
        }
    }
    let mut applied: Map<String, Value> = by_url.collect();
    applied.insert("shards".into(), jobs.len().into());
    let is_first = |client: &Client| !client.role.sends() && client.id == 0;
    if !workload.churn.is_none() && prepare.clients.iter().any(is_first) {
        jobs.push(Job::Churn(driver.churn, Box::new(assignment(Vec::new(), Role::Subscriber))));
    }
    applied.insert("receive".into(), workload.receive.word().into());
    let to: Vec<String> = dial.to.iter().map(SocketAddr::to_string).collect();
    let to = if dial.is_cluster { to.join(",") } else { dial.to[0].to_string() };
    applied.insert("connected_to".into(), to.into());
    if !dial.sources.is_empty() {
        let sources: Vec<String> = dial.sources.iter().map(IpAddr::to_string).collect();
        applied.insert("sources".into(), sources.join(",").into());
    }
    Ok(OpenedJobs { driver: None, jobs, bound: Vec::new(), applied })
}

/// Returns the server's endpoint and how the clients of a run, of which there are so many, connect to it.
pub fn reach(server: &ServerAddress, options: &Options, clients: usize) -> Result<(Endpoint, Dial), OpenError> {
    let endpoint = Endpoint::parse(&server.endpoint).map_err(OpenError::Endpoint)?;
    let options = endpoint.applied_to(options);
    let mut all = dial(&endpoint, server, &options, clients)?;
    if server.members.len() > 1 {
        let first = |url: &String| -> Result<SocketAddr, OpenError> {
            Ok(dial(&Endpoint::parse(url).map_err(OpenError::Endpoint)?, server, &options, clients)?.to[0])
        };
        all.to = server.discovery.iter().chain(&server.members).map(first).collect::<Result<_, _>>()?;
        (all.is_cluster, all.discovery) = (true, server.discovery.len());
    }
    Ok((endpoint, all))
}

fn dial(endpoint: &Endpoint, server: &ServerAddress, options: &Options, clients: usize) -> Result<Dial, OpenError> {
    let found: Result<Vec<SocketAddr>, _> =
        (endpoint.host.as_str(), endpoint.port).to_socket_addrs().map(Iterator::collect);
    let found = found.map_err(|source| OpenError::Host { endpoint: endpoint.to_string(), source })?;
    // IPv4 comes first: many servers do not listen on IPv6.
    let (mut to, six): (Vec<SocketAddr>, Vec<SocketAddr>) = found.into_iter().partition(SocketAddr::is_ipv4);
    to.extend(six);
    to.dedup();
    if to.is_empty() {
        return Err(OpenError::NoAddress(endpoint.to_string()));
    }
    let sources: Result<Vec<IpAddr>, OpenError> = server
        .sources
        .iter()
        .map(|text| text.trim().parse().map_err(|source| OpenError::Source { text: text.clone(), source }))
        .collect();
    let tls = endpoint.carrier.is_tls().then(|| TlsDial::new(&endpoint.host, options, clients));
    let tls = tls.transpose()?;
    let resource = || WebSocketDial { host: endpoint.address().into(), path: endpoint.resource().into() };
    let websocket = endpoint.carrier.is_websocket().then(resource);
    Ok(Dial {
        tls,
        websocket,
        sources: sources?.into_iter().filter(|source| to.iter().any(|to| to.is_ipv4() == source.is_ipv4())).collect(),
        to,
        is_cluster: false,
        discovery: 0,
        nodelay: options.flag("tcp_nodelay"),
        buffer_bytes: options.number("socket_buffer") as usize,
    })
}
