//! Publishers and subscribers in an agent each, led by the test: only they, the peer and the kernel run meanwhile. If
//! there are two or more processors, the subscribers' loop has one, and all others share the rest.

use super::taken::{Taken, Watch, Whose};
use crate::support::{PATIENCE, Place};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use pubmark_host::agent::{Agent, Incoming};
use pubmark_host::clock;
use pubmark_host::inbox::{Inbox, inbox, into_inbox};
use pubmark_model::options::Options;
use pubmark_model::protocol::{AgentResult, Client, Command, Event, Flow, Prepare, Role, ServerAddress, VERSION};
use pubmark_model::secret::Secrets;
use pubmark_model::units::Ns;
use pubmark_model::wire_protocol::Protocol;
use pubmark_model::workload::Workload;
use pubmark_study::registry;
use std::time::Instant;

/// Time from preparation to the start, ns.
const LEAD: Ns = 100_000_000;
/// Number of processors that the publishers may keep busy, as `pubmark bench` would set it.
const SPIN_CORES: f64 = 0.2;
const BOTH: &[usize] = &[0, 1];

/// Returns the processors of the subscribers' loop, and of all others.
pub fn processors() -> (Vec<usize>, Vec<usize>) {
    let all = sched_getaffinity(Pid::from_raw(0)).unwrap();
    let mut others: Vec<usize> = (0..CpuSet::count()).filter(|cpu| all.is_set(*cpu).unwrap()).collect();
    let own = if others.len() > 1 { others.split_off(others.len() - 1) } else { Vec::new() };
    (own, others)
}

/// Keeps a process, and what it starts from now on, off the subscribers' processor.
pub fn keep_off(process: u32) {
    let mut others = CpuSet::new();
    processors().1.iter().for_each(|cpu| others.set(*cpu).unwrap());
    sched_setaffinity(Pid::from_raw(process as i32), &others).unwrap();
}

/// Two agents, publishers' and subscribers'.
struct Pair {
    agents: [Agent; 2],
    inbox: Inbox,
}

impl Pair {
    fn start(place: &Place) -> Pair {
        let (outbox, inbox) = inbox();
        let command = [env!("CARGO_BIN_EXE_pubmark").to_owned(), "agent".to_owned()];
        let agent = |index: usize, name: &str| {
            let log = place.path(&format!("{name}.log"));
            let agent = Agent::start(
                &command,
                name,
                &log,
                &place.path(name),
                &Secrets::default(),
                into_inbox(index, outbox.clone(), &Secrets::default()),
            )
            .unwrap();
            keep_off(agent.pid() as u32);
            agent
        };
        Pair { agents: [agent(0, "publishers"), agent(1, "subscribers")], inbox }
    }

    fn tell(&mut self, command: &Command) {
        self.agents.iter_mut().for_each(|agent| agent.tell(command));
    }

    /// Waits for an event of each of `whose`.
    fn each<T>(&mut self, what: &str, whose: &[usize], want: impl Fn(Event) -> Option<T>) -> Vec<T> {
        let deadline = Instant::now() + PATIENCE;
        let mut answers: Vec<(usize, T)> = Vec::new();
        while answers.len() < whose.len() {
            let left = deadline.saturating_duration_since(Instant::now());
            let (_, from, incoming) =
                self.inbox.recv_timeout(left).unwrap_or_else(|_| panic!("waited in vain for {what}"));
            match incoming {
                Incoming::Event(event) => match *event {
                    Event::Error { message, .. } => panic!("{what}: agent {from}: {message}"),
                    event => answers.extend(want(event).filter(|_| whose.contains(&from)).map(|answer| (from, answer))),
                },
                other => panic!("{what}: agent {from}: {other:?}: {}", self.agents[from].exit_reason()),
            }
        }
        answers.sort_by_key(|(from, _)| *from);
        answers.into_iter().map(|(_, answer)| answer).collect()
    }
}

/// A measurement: driver, endpoint, and the settings and options that differ from the usual ones.
pub struct Play<'a> {
    pub driver: &'a str,
    pub endpoint: &'a str,
    pub settings: &'a [(&'a str, &'a str)],
    pub options: &'a [(&'a str, &'a str)],
}

impl Play<'_> {
    /// Returns whether all connect to a server. Otherwise a library's sockets connect.
    fn to_server(&self) -> bool {
        Protocol::of_driver(self.driver).is_some()
    }

    fn workload(&self) -> Workload {
        let shape: &[(&str, &str)] = match self.to_server() {
            true => &[("pattern", "pairs"), ("pairs", "10")],
            false => &[("pattern", "fan-in"), ("publishers", "10"), ("transport", "tcp")],
        };
        Workload::of(self.settings.iter().chain(shape).copied()).unwrap()
    }

    fn options(&self) -> Options {
        let system =
            registry::Registry::default().systems().into_iter().find(|system| system.driver == self.driver).unwrap();
        let default = |name: &str| system.options.iter().find(|spec| spec.name == name).unwrap();
        // The agent gets none of the server's options.
        let known = pubmark_load::drivers::options(self.driver);
        let of_driver = system.options.iter().filter(|spec| known.contains(&spec.name));
        let usual = of_driver.filter_map(|spec| Some((spec.name.clone(), spec.default.clone()?)));
        let own = self.options.iter().map(|(name, value)| ((*name).into(), default(name).kind.read(value).unwrap()));
        usual.chain(own).collect()
    }

    /// Returns ten publishers, and ten subscribers of one each; or one subscriber, of a library, that receives from all
    /// of them.
    fn clients(&self) -> [Vec<Client>; 2] {
        let client = |role, id, hears: (u32, u32)| Client {
            role,
            id,
            flow: 0,
            bind: None,
            connect: if self.to_server() { Vec::new() } else { vec![self.endpoint.to_owned()] },
            answers: None,
            hears_first: hears.0,
            hears_count: hears.1,
        };
        let subscribers = match self.to_server() {
            true => (0..10).map(|id| client(Role::Subscriber, id, (id, 1))).collect(),
            false => vec![client(Role::Subscriber, 0, (0, 10))],
        };
        [(0..10).map(|id| client(Role::Publisher, id, (0, 0))).collect(), subscribers]
    }

    /// Plays it. Returns the results of the publishers' and of the subscribers' agent, and the time that the machine
    /// took from the latter.
    pub fn run(&self, place: &Place) -> ([AgentResult; 2], Taken) {
        let (workload, options) = (self.workload(), self.options());
        let server = self.to_server().then(|| ServerAddress {
            members: Vec::new(),
            discovery: Vec::new(),
            endpoint: self.endpoint.to_owned(),
            run: "known".into(),
            sources: Vec::new(),
            connect_per_s: 1_000,
        });
        let mut pair = Pair::start(place);
        pair.tell(&Command::Hello { protocol: VERSION });
        pair.each("hello", BOTH, |event| matches!(event, Event::Hello(_)).then_some(()));
        for (agent, clients) in pair.agents.iter_mut().zip(self.clients()) {
            let prepare = Prepare {
                driver: self.driver.to_owned(),
                options: options.clone(),
                flows: vec![Flow::alone(workload.clone())],
                clients,
                server: server.clone(),
                spin_cores: SPIN_CORES,
                clock_offset_ns: 0,
                scratch: place.tmp().display().to_string(),
                publisher_cpus: Vec::new(),
                subscriber_cpus: processors().0,
            };
            agent.tell(&Command::Prepare(Box::new(prepare)));
        }
        pair.each("ready", BOTH, |event| matches!(event, Event::Ready {}).then_some(()));
        let watch = Watch::start(Whose::Process(pair.agents[1].pid()), processors().0);
        pair.tell(&Command::Start { at_ns: clock::now() + LEAD });
        let sent = |event| if let Event::Sent { publishers, .. } = event { Some(publishers) } else { None };
        let publishers = pair.each("the last message", &[0], sent).remove(0);
        let taken = watch.end();
        pair.tell(&Command::Drain { publishers, ends: Vec::new(), deadline_ns: clock::now() + workload.drain_ns });
        pair.each("the drain's end", BOTH, |event| matches!(event, Event::Drained {}).then_some(()));
        pair.tell(&Command::Stop {});
        let result = |event| if let Event::Result(result) = event { Some(*result) } else { None };
        let results = pair.each("results", BOTH, result);
        pair.tell(&Command::Exit {});
        pair.agents.iter_mut().for_each(Agent::finish);
        (results.try_into().unwrap_or_else(|_| panic!("two agents, two results")), taken)
    }
}
