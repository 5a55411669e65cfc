//! A library's publishers and subscriber, led from here, with the peer between
//! them: both connect to it.

use crate::support::{PATIENCE, Place};
use pubmark_model::options::Options;
use pubmark_model::protocol::{AgentResult, Client, Command, Event, Prepare, Role, VERSION};
use pubmark_model::setting::{Settings, key, with_defaults};
use pubmark_model::workload::Workload;
use pubmark_study::agent::{Agent, Incoming};
use pubmark_study::{machine, registry};
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

/// From preparation to the start, ns.
const LEAD: u64 = 100_000_000;
/// The processors that the publishers may keep awake, as `pubmark bench` would say.
const SPIN_CORES: f64 = 0.2;

/// Two agents, publishers' and subscribers'.
struct Pair {
    agents: [Agent; 2],
    inbox: Receiver<(usize, Incoming)>,
}

impl Pair {
    fn start(place: &Place) -> Pair {
        let (outbox, inbox) = channel();
        let command = [env!("CARGO_BIN_EXE_pubmark").to_owned(), "agent".to_owned()];
        let agent = |index: usize, name: &str| {
            let log = place.path(&format!("{name}.log"));
            Agent::start(&command, name, &log, &place.path(name), index, outbox.clone()).unwrap()
        };
        Pair { agents: [agent(0, "publishers"), agent(1, "subscribers")], inbox }
    }

    fn tell(&mut self, command: &Command) {
        self.agents.iter_mut().for_each(|agent| agent.tell(command));
    }

    /// Waits for a word of each of `whose`.
    fn each<T>(&mut self, what: &str, whose: &[usize], want: impl Fn(Event) -> Option<T>) -> Vec<T> {
        let deadline = Instant::now() + PATIENCE;
        let mut answers: Vec<(usize, T)> = Vec::new();
        while answers.len() < whose.len() {
            let left = deadline.saturating_duration_since(Instant::now());
            let (from, incoming) =
                self.inbox.recv_timeout(left).unwrap_or_else(|_| panic!("waited in vain for {what}"));
            match incoming {
                Incoming::Event(event) => match *event {
                    Event::Error { message, .. } => panic!("{what}: agent {from}: {message}"),
                    event => answers.extend(want(event).filter(|_| whose.contains(&from)).map(|answer| (from, answer))),
                },
                other => panic!("{what}: agent {from}: {other:?}: {}", self.agents[from].obituary()),
            }
        }
        answers.sort_by_key(|(from, _)| *from);
        answers.into_iter().map(|(_, answer)| answer).collect()
    }
}

/// Plays ten publishers and the one subscriber that hears them all, over TCP;
/// the subscriber's result.
pub fn play(place: &Place, driver: &str, endpoint: &str, settings: &[(&str, &str)]) -> AgentResult {
    registry::load().unwrap();
    let system = registry::find(driver).unwrap();
    let options: Options =
        system.options.iter().filter_map(|spec| Some((spec.name.clone(), spec.default.clone()?))).collect();
    let mut given = Settings::new();
    for (name, value) in settings.iter().chain(&[("pattern", "fan-in"), ("publishers", "10"), ("transport", "tcp")]) {
        given.insert((*name).into(), key(name).unwrap().read(value).unwrap());
    }
    let workload = Workload::resolve(&with_defaults(given)).unwrap();
    let client = |role, id| Client {
        role,
        id,
        bind: None,
        connect: vec![endpoint.to_owned()],
        hears_first: 0,
        hears_count: if role == Role::Subscriber { 10 } else { 0 },
    };
    let mut pair = Pair::start(place);
    const BOTH: &[usize] = &[0, 1];
    pair.tell(&Command::Hello { protocol: VERSION });
    pair.each("hello", BOTH, |event| matches!(event, Event::Hello(_)).then_some(()));
    let clients = [(0..10).map(|id| client(Role::Publisher, id)).collect(), vec![client(Role::Subscriber, 0)]];
    for (agent, clients) in pair.agents.iter_mut().zip(clients) {
        let prepare = Prepare {
            driver: driver.to_owned(),
            options: options.clone(),
            workload: workload.clone(),
            clients,
            server: None,
            spin_cores: SPIN_CORES,
            scratch: place.tmp().display().to_string(),
            publisher_cpus: Vec::new(),
            subscriber_cpus: Vec::new(),
        };
        agent.tell(&Command::Prepare(Box::new(prepare)));
    }
    pair.each("ready", BOTH, |event| matches!(event, Event::Ready {}).then_some(()));
    pair.tell(&Command::Start { at_ns: machine::now() + LEAD });
    let sent = |event| if let Event::Sent { publishers } = event { Some(publishers) } else { None };
    let publishers = pair.each("the last message", &[0], sent).remove(0);
    pair.tell(&Command::Drain { publishers, deadline_ns: machine::now() + workload.drain_ns });
    pair.each("the drain's end", &[1], |event| matches!(event, Event::Drained {}).then_some(()));
    pair.tell(&Command::Stop {});
    let results =
        pair.each("results", BOTH, |event| if let Event::Result(result) = event { Some(*result) } else { None });
    pair.tell(&Command::Exit {});
    pair.agents.iter_mut().for_each(Agent::finish);
    results.into_iter().nth(1).unwrap()
}
