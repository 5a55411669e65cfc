//! From the clients of a run to the agent's threads: a client with its socket on
//! each, or an event loop with many.

use super::identity::{AgentInfo, MOCK};
use crate::control::{Counter, ThreadContext, ThreadReport};
use crate::drivers::socket::{Driver, DriverError, SocketSpec};
use crate::drivers::{DriverKind, LoadDriver};
use crate::shard::{Assignment, Dial, Notifier, RunShard, TlsDial, TlsError, WebSocketDial};
use crate::threads::ClientThread;
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

/// Stack of a thread with one client: there may be thousands.
const STACK_BYTES: usize = 512 << 10;

/// Wakes a thread with clients.
pub enum Waker {
    /// One that parks.
    Thread(thread::Thread),
    /// One that waits for events.
    Shard(Notifier),
}

impl Waker {
    /// Wakes it.
    pub fn wake(&self) {
        match self {
            Waker::Thread(thread) => thread.unpark(),
            Waker::Shard(notifier) => notifier.notify(),
        }
    }
}

/// What one thread is to do.
pub enum Job {
    /// A client with its socket.
    Client(Box<ClientThread>),
    /// An event loop with many.
    Shard(RunShard, Box<Assignment>),
}

impl Job {
    /// The role of its clients.
    pub fn role(&self) -> Role {
        match self {
            Job::Client(client) => client.client.role,
            Job::Shard(_, assignment) => assignment.clients.first().map_or(Role::Publisher, |client| client.role),
        }
    }

    /// Whether it says by itself when its clients are connected.
    pub fn connects(&self) -> bool {
        matches!(self, Job::Shard(..))
    }

    /// Whether it has something to wait for after the last message was sent:
    /// messages, or a broker's acknowledgements.
    pub fn drains(&self, qos: u8) -> bool {
        match self.role() {
            Role::Subscriber | Role::Replier => true,
            Role::Publisher | Role::Requester => self.connects() && qos > 0,
        }
    }

    /// Its counter for the live display.
    pub fn counter(&self) -> Arc<Counter> {
        match self {
            Job::Client(client) => client.counter.clone(),
            Job::Shard(_, assignment) => assignment.counter.clone(),
        }
    }

    /// Puts it on a thread.
    pub fn start(self, context: &Arc<ThreadContext>, reports: &Sender<ThreadReport>) -> std::io::Result<Waker> {
        let (context, reports) = (context.clone(), reports.clone());
        match self {
            Job::Client(client) => {
                let name = format!("{:?} {}", client.client.role, client.client.id).to_lowercase();
                let builder = thread::Builder::new().name(name).stack_size(STACK_BYTES);
                Ok(Waker::Thread(builder.spawn(move || client.run(&context, &reports))?.thread().clone()))
            }
            Job::Shard(run_shard, assignment) => {
                let notifier = Notifier::new()?;
                let theirs = notifier.clone();
                thread::Builder::new().name("shard".into()).spawn(move || {
                    let report = match run_shard(*assignment, &context, &reports, theirs) {
                        Ok(outcome) => ThreadReport::Ended(Box::new(outcome)),
                        Err(error) => ThreadReport::Failed(error.to_string()),
                    };
                    // The agent may be gone already; then nobody wants the report.
                    let _ = reports.send(report);
                })?;
                Ok(Waker::Shard(notifier))
            }
        }
    }
}

/// Why a run cannot be prepared.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The agent has no such driver.
    #[error("this agent has no driver `{wanted}`; it has: {known}, {MOCK}")]
    NoDriver {
        /// The driver.
        wanted: String,
        /// Those that there are.
        known: String,
    },
    /// A library's sockets need a transport.
    #[error("the workload names no transport")]
    NoTransport,
    /// The driver, or one of its sockets, cannot be opened.
    #[error(transparent)]
    Driver(#[from] DriverError),
    /// Nobody said where the server is.
    #[error("the driver speaks to a server, and no server is named")]
    NoServer,
    /// The server's endpoint is none.
    #[error("{0}")]
    Endpoint(EndpointError),
    /// Clients of this role have nothing to do at a broker.
    #[error("a broker has no part for a {0}")]
    NotAtBrokers(String),
    /// The server's host is not known.
    #[error("cannot find the host of {endpoint}: {source}")]
    Host {
        /// The server.
        endpoint: String,
        /// Why.
        source: io::Error,
    },
    /// Its name stands for nothing.
    #[error("the host of {0} has no address")]
    NoAddress(String),
    /// What is to be connected from is no address.
    #[error("`{text}` is no address to connect from")]
    Source {
        /// What is given in its place.
        text: String,
        /// What is wrong with it.
        source: AddrParseError,
    },
    /// TLS cannot be spoken.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

/// All tasks of a run, and where their clients can be reached.
pub struct Opened {
    /// The library, where there is one.
    pub driver: Option<Box<dyn Driver>>,
    /// A job for each thread.
    pub jobs: Vec<Job>,
    /// What was bound.
    pub bound: Vec<BoundEndpoint>,
    /// Options as they took effect.
    pub applied: Map<String, Value>,
}

impl Opened {
    /// Whether clients connect to a server by themselves, and say when they have.
    pub fn connecting(&self) -> bool {
        self.jobs.iter().any(Job::connects)
    }
}

/// Finds the driver and opens what can be opened at once.
pub fn open(identity: &AgentInfo, prepare: &Prepare, workload: &Workload) -> Result<Opened, OpenError> {
    let names = || identity.drivers.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    let (_, kind) = identity
        .drivers
        .iter()
        .find(|(name, _)| *name == prepare.driver)
        .ok_or_else(|| OpenError::NoDriver { wanted: prepare.driver.clone(), known: names() })?;
    match kind {
        DriverKind::Sockets(load) => sockets(*load, prepare, workload),
        DriverKind::Sessions(driver) => sessions(driver.run, prepare, workload),
    }
}

/// A socket for each client: those that bind come first.
fn sockets(load: LoadDriver, prepare: &Prepare, workload: &Workload) -> Result<Opened, OpenError> {
    // To a server, the endpoint says how bytes are carried.
    let to_server = Protocol::of_driver(&prepare.driver).map(|_| Transport::Tcp);
    let transport = workload.transport.or(to_server).ok_or(OpenError::NoTransport)?;
    let mut driver = load(&prepare.options)?;
    let mut opened = Opened { driver: None, jobs: Vec::new(), bound: Vec::new(), applied: Map::new() };
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

/// The processors that so many of an agent's publishers may keep awake.
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

/// Clients dealt out to event loops: by role, and then evenly.
fn sessions(run_shard: RunShard, prepare: &Prepare, workload: &Workload) -> Result<Opened, OpenError> {
    let server = prepare.server.as_ref().ok_or(OpenError::NoServer)?;
    let (endpoint, dial) = reach(server, &prepare.options)?;
    let options = endpoint.applied_to(&prepare.options);
    let by_url = endpoint.options.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
    let mut jobs = Vec::new();
    let roles = [Role::Subscriber, Role::Publisher];
    let of_role = |role| prepare.clients.iter().filter(move |client| client.role == role);
    if let Some(other) = prepare.clients.iter().find(|client| !roles.contains(&client.role)) {
        return Err(OpenError::NotAtBrokers(format!("{:?}", other.role).to_lowercase()));
    }
    let asked = match prepare.options.number("shards") as usize {
        // Half the processors: there is another side, and there may be a server.
        0 => (thread::available_parallelism().map_or(1, usize::from) / 2).max(1),
        asked => asked.min(1_024),
    };
    for role in roles {
        let clients: Vec<Client> = of_role(role).cloned().collect();
        let shards = asked.min(clients.len());
        for shard in 0..shards {
            // Neighbours in number go to different loops: their due times are near.
            let mine: Vec<Client> = clients.iter().skip(shard).step_by(shards).cloned().collect();
            let share = mine.len() as f64 / prepare.clients.len().max(1) as f64;
            let spin_cores = if role == Role::Publisher { spin_share(prepare, mine.len()) } else { 0.0 };
            jobs.push(Job::Shard(
                run_shard,
                Box::new(Assignment {
                    clients: mine,
                    endpoint: endpoint.clone(),
                    dial: dial.clone(),
                    run: server.run.clone(),
                    connect_per_s: f64::from(server.connect_per_s) * share,
                    options: options.clone(),
                    cpus: cpus(prepare, role),
                    spin_cores,
                    counter: Arc::new(Counter::default()),
                }),
            ));
        }
    }
    let mut applied: Map<String, Value> = by_url.collect();
    applied.insert("shards".into(), jobs.len().into());
    applied.insert("receive".into(), workload.receive.word().into());
    applied.insert("connected_to".into(), dial.to[0].to_string().into());
    if !dial.sources.is_empty() {
        let sources: Vec<String> = dial.sources.iter().map(IpAddr::to_string).collect();
        applied.insert("sources".into(), sources.join(",").into());
    }
    Ok(Opened { driver: None, jobs, bound: Vec::new(), applied })
}

/// Where the server is, and how to get there.
pub fn reach(server: &ServerAddress, options: &Options) -> Result<(Endpoint, Dial), OpenError> {
    let endpoint = Endpoint::parse(&server.endpoint).map_err(OpenError::Endpoint)?;
    let dial = dial(&endpoint, server, &endpoint.applied_to(options))?;
    Ok((endpoint, dial))
}

fn dial(endpoint: &Endpoint, server: &ServerAddress, options: &Options) -> Result<Dial, OpenError> {
    let found: Result<Vec<SocketAddr>, _> =
        (endpoint.host.as_str(), endpoint.port).to_socket_addrs().map(Iterator::collect);
    let found = found.map_err(|source| OpenError::Host { endpoint: endpoint.to_string(), source })?;
    // IPv4 comes first: servers often listen on no other.
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
    let tls = endpoint.carrier.is_tls().then(|| TlsDial::new(&endpoint.host, options));
    let tls = tls.transpose()?;
    let resource = || WebSocketDial { host: endpoint.address().into(), path: endpoint.resource().into() };
    let websocket = endpoint.carrier.is_websocket().then(resource);
    Ok(Dial {
        tls,
        websocket,
        sources: sources?.into_iter().filter(|source| to.iter().any(|to| to.is_ipv4() == source.is_ipv4())).collect(),
        to,
        nodelay: options.flag("tcp_nodelay"),
        buffer_bytes: options.number("socket_buffer") as usize,
    })
}
