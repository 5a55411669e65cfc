//! Agents with every kind of fault, in virtual time.

mod results;
mod scale;

use super::*;
use crate::registry;
use proptest::prelude::*;
use pubmark_judge::assemble::{Measured, assemble};
use pubmark_model::fault::Script;
use pubmark_model::pattern::Pattern;
use pubmark_model::plan::cells;
use pubmark_model::protocol::{BoundEndpoint, Features, Role};
use pubmark_model::record::{MachineLoad, RunRecord};
use pubmark_model::study::{ReadOptions, Study};
use std::collections::{BTreeMap, BTreeSet};

/// Fault of an agent in one of its messages.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    /// It sends nothing more, and does not exit.
    Silence,
    /// It sends the message twice.
    Twice,
    /// It sends the message this much later, ns.
    Late(Ns),
    /// It dies instead.
    Death,
    /// It sends a line that is not an event.
    Garbage,
    /// It sends an event too early.
    Early,
    /// It reports a publisher that it does not play.
    Lie,
    /// It sends an error; true if fatal.
    Error(bool),
}

/// Time from a command to an agent's answer.
const PACE: Ns = MILLISECOND;

/// Outcome of a run.
struct Played {
    outcome: Result<Vec<AgentReport>, Refusal>,
    /// Each snapshot, with its due time and the instant at which it was taken.
    looks: Vec<(Edge, Ns, Ns)>,
    /// Agents that were told that their clients are killed, and when.
    crashed: Vec<(usize, Ns)>,
    /// The same for cut clients.
    cuts: Vec<(usize, Ns)>,
    /// Sides whose agents all received the order to kill their clients.
    struck: Vec<usize>,
    took_ns: Ns,
    /// Time until every client had received from its publishers, if they have.
    discovery_ns: Option<Ns>,
    /// Number of lines sent to hosts: one for all commands of an order to one host.
    lines: u64,
    /// Bytes of the lines sent to agents.
    told_bytes: u64,
}

/// Agents that play a run correctly, except for one message of one of them.
struct Stage<'a> {
    leader: Leader<'a>,
    workload: Workload,
    /// Faults by agent and message number.
    wrong: BTreeMap<(usize, usize), Way>,
    /// By agent: number of messages sent.
    said: Vec<usize>,
    mute: Vec<bool>,
    /// By agent: instant of its last message. An agent's messages do not overtake each other.
    spoke: Vec<Ns>,
    coming: BTreeMap<(Ns, usize), (usize, AgentInput)>,
    number: usize,
    now: Ns,
    looks: Vec<(Edge, Ns, Ns)>,
    crashed: Vec<(usize, Ns)>,
    /// The same for cut clients.
    cuts: Vec<(usize, Ns)>,
    struck: Vec<usize>,
    /// Start of the schedule.
    start_ns: Ns,
    /// Agent whose clients cannot be killed.
    immortal: Option<usize>,
    /// Agent whose result is changed, the change, and whether its hello promises pauses.
    result: Option<(usize, results::Change, bool)>,
    /// Arrivals that all agents support.
    arrivals: &'static [&'static str],
    /// Options that the driver `kernel` supports, if agents list them.
    knows: Option<&'static [&'static str]>,
}

impl<'a> Stage<'a> {
    fn new(cell: &'a Cell, wrong: Option<(usize, usize, Way)>) -> Stage<'a> {
        let system = &*cell.system;
        Stage::of(
            cell,
            assignment::deal(&cell.flows(), &assignment::here(), assignment::layout(cell, system, 1_000)),
            wrong,
        )
    }

    /// Creates a stage with these agents.
    fn of(cell: &'a Cell, agents: Vec<AgentPlan>, wrong: impl IntoIterator<Item = (usize, usize, Way)>) -> Stage<'a> {
        let system = &*cell.system;
        let count = agents.len();
        let brief = Brief {
            cell,
            system,
            place: Place { repeat: 1, position: 0 },
            run: "r".into(),
            seats: vec![AgentResources { cpus: vec![0, 1], ..AgentResources::default() }; count],
            secrets: Secrets::default(),
            lead_factor: 1,
        };
        let now = 5 * SECOND;
        Stage {
            leader: Leader::new(brief, agents, now),
            workload: cell.workload.clone(),
            wrong: wrong.into_iter().map(|(agent, word, way)| ((agent, word), way)).collect(),
            said: vec![0; count],
            mute: vec![false; count],
            spoke: vec![0; count],
            coming: BTreeMap::new(),
            number: 0,
            now,
            looks: Vec::new(),
            crashed: Vec::new(),
            cuts: Vec::new(),
            struck: Vec::new(),
            start_ns: 0,
            immortal: None,
            result: None,
            arrivals: &["uniform", "poisson", "burst"],
            knows: None,
        }
    }

    fn totals(&self, agent: usize) -> Vec<PublisherTotal> {
        let senders = self.leader.agents()[agent].clients.iter().filter(|client| client.role.sends());
        senders.map(|client| self.total(client.id)).collect()
    }

    fn plays_senders(&self, agent: usize) -> bool {
        !self.totals(agent).is_empty()
    }

    fn send(&mut self, agent: usize, at: Ns, said: AgentInput) {
        self.number += 1;
        self.coming.insert((at, self.number), (agent, said));
    }

    fn say(&mut self, agent: usize, mut at: Ns, mut event: Event) {
        let word = self.said[agent];
        self.said[agent] += 1;
        if self.mute[agent] {
            return;
        }
        match self.wrong.get(&(agent, word)).copied() {
            Some(Way::Silence) => return self.mute[agent] = true,
            Some(Way::Twice) => self.send(agent, at, AgentInput::Event(event.clone())),
            Some(Way::Late(by)) => at += by,
            Some(Way::Death) => {
                self.mute[agent] = true;
                return self.send(agent, at, AgentInput::Closed("signal: 9".into()));
            }
            Some(Way::Garbage) => return self.send(agent, at, AgentInput::Garbage("{".into())),
            Some(Way::Early) => {
                let result = self.right_result(agent);
                self.send(agent, at, AgentInput::Event(Event::Result(Box::new(result))));
            }
            Some(Way::Lie) => {
                if let Event::Sent { publishers, .. } = &mut event {
                    publishers[0].publisher += 1_000;
                }
                if let Event::Result(result) = &mut event {
                    result.flows[0].publishers.push(PublisherTotal { publisher: 77, ..PublisherTotal::default() });
                }
            }
            Some(Way::Error(fatal)) => event = Event::Error { message: "it is broken".into(), fatal, too_late: false },
            None => {}
        }
        at = at.max(self.spoke[agent] + 1);
        self.spoke[agent] = at;
        self.send(agent, at, AgentInput::Event(event));
    }

    fn told(&mut self, agent: usize, command: Command) {
        let at = self.now + PACE;
        match command {
            Command::Hello { protocol } => {
                let (clock_ns, drivers) = (self.now, vec!["kernel".into(), "mqtt".into(), "mock".into()]);
                let (name, version) = ("scripted".into(), "1".into());
                let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
                let patterns = Pattern::ALL.iter().map(|one| one.word().to_owned()).collect();
                let features = Features { patterns, profiles: words(&["constant", "max"]), ..Features::default() };
                let pauses = self.result.as_ref().is_some_and(|(whose, _, tells)| *whose == agent && *tells);
                let crash = self.immortal != Some(agent);
                let features =
                    Features { arrivals: words(self.arrivals), faults: words(&["cut"]), pauses, crash, ..features };
                let options = self.knows.map(|knows| ("kernel".to_owned(), words(knows))).into_iter().collect();
                let hello = AgentHello {
                    options,
                    protocol,
                    name,
                    version,
                    pid: 1,
                    drivers,
                    clock_ns,
                    features,
                    ..AgentHello::default()
                };
                self.say(agent, at, Event::Hello(Box::new(hello)));
            }
            Command::Prepare(prepare) => {
                let bound = |role: Role, id| BoundEndpoint {
                    role,
                    id,
                    endpoint: format!("tcp://127.0.0.1:{id}"),
                    answers: None,
                };
                let binds = prepare.clients.iter().filter(|client| client.bind.is_some());
                let endpoints = binds.map(|client| bound(client.role, client.id)).collect();
                self.say(agent, at, Event::Bound { endpoints });
                self.say(agent, at + 1, Event::Ready {});
            }
            Command::Start { at_ns } => {
                self.start_ns = at_ns;
                let end = at_ns + self.workload.warmup_ns + self.workload.window_ns().unwrap_or(SECOND);
                if self.plays_senders(agent) {
                    let publishers = self.totals(agent);
                    self.say(agent, end + PACE, Event::Sent { publishers, ends: Vec::new() });
                }
            }
            Command::Crash {} => {
                self.crashed.push((agent, self.now));
                if self.plays_senders(agent) {
                    // Now, and not at the end of the schedule.
                    let is_sent = |said: &AgentInput| matches!(said, AgentInput::Event(Event::Sent { .. }));
                    self.coming.retain(|_, (from, said)| *from != agent || !is_sent(said));
                    (self.said[agent], self.spoke[agent]) = (self.said[agent] - 1, self.now);
                    let publishers = self.totals(agent);
                    self.say(agent, at, Event::Sent { publishers, ends: Vec::new() });
                }
            }
            Command::Cut { percent } => {
                assert_eq!(percent, 50);
                self.cuts.push((agent, self.now));
            }
            Command::Drain { .. } => self.say(agent, at, Event::Drained {}),
            Command::Stop {} => {
                let mut result = self.right_result(agent);
                if let Some((_, change, _)) = self.result.as_ref().filter(|(whose, ..)| *whose == agent) {
                    change(&mut result);
                }
                self.say(agent, at, Event::Result(Box::new(result)));
            }
            Command::Exit {} => {}
        }
    }

    /// Plays to the end, which must come within bounded virtual time.
    fn play(mut self) -> Played {
        let began = self.now;
        let (mut lines, mut told_bytes) = (0, 0);
        loop {
            while let Some(order) = self.leader.poll() {
                match order {
                    Order::Tell(told) => {
                        let hosts = told.iter().map(|(agent, _)| self.leader.agents()[*agent].host);
                        lines += hosts.collect::<BTreeSet<usize>>().len() as u64;
                        for (agent, command) in told {
                            told_bytes += command.to_json().unwrap().len() as u64;
                            self.told(agent, command);
                        }
                    }
                    Order::Deploy => self.leader.deployed(None, self.now),
                    Order::Begin => {
                        self.leader.begin(self.now);
                    }
                    Order::Look { edge, at_ns } => self.looks.push((edge, at_ns, self.now)),
                    Order::Struck(place) => self.struck.push(place),
                    Order::Draining | Order::Drained | Order::Figures(_) => {}
                }
            }
            if let Some(outcome) = self.leader.outcome() {
                let Stage { looks, crashed, cuts, struck, leader, .. } = self;
                let discovery_ns = leader.discovery_ns();
                let took_ns = self.now - began;
                return Played { outcome, looks, crashed, cuts, struck, took_ns, discovery_ns, lines, told_bytes };
            }
            let said = self.coming.first_key_value().map(|((at, _), _)| *at);
            let deadline = self.leader.deadline_ns();
            let next = said.into_iter().chain(deadline).min().expect("it waits for nothing");
            self.now = self.now.max(next);
            if said == Some(next)
                && let Some((_, (agent, said))) = self.coming.pop_first()
            {
                self.leader.handle(agent, said, self.now);
            }
            self.leader.tick(self.now);
        }
    }
}

fn planned(text: &str) -> Vec<Cell> {
    let study = Study::parse("t", text, &registry::built_in, &ReadOptions::default())
        .unwrap_or_else(|errors| panic!("{errors}"));
    cells(&study).unwrap()
}

fn cell(workload: &str) -> Cell {
    let text = format!(
        "title = \"t\"\n[workload]\nduration = \"2s\"\nwarmup = \"1s\"\ndrain = \"3s\"\n{workload}\n[axes]\nsystem = \"kernel\"\ntransport = \"tcp\"\n"
    );
    planned(&text).remove(0)
}

#[test]
fn a_run_is_led_from_hello_to_result_and_looked_at_when_its_window_begins_and_ends() {
    let cell = cell("pattern = \"fan-in\"\npublishers = 3");
    let Played { outcome, looks, .. } = Stage::new(&cell, None).play();
    let reports = outcome.unwrap();
    let names: Vec<(&str, &[Role])> = reports.iter().map(|report| (report.name.as_str(), &report.roles[..])).collect();
    assert_eq!(names, [("publishers", &[Role::Publisher][..]), ("subscribers", &[Role::Subscriber])]);
    assert_eq!(reports.iter().map(|report| report.result.publishers().count()).sum::<usize>(), 3);
    let [(Edge::Begin, begin, seen), (Edge::End, end, _)] = looks[..] else { panic!("{looks:?}") };
    assert_eq!((end - begin, seen), (2 * SECOND, begin));
}

#[test]
fn discovery_ends_with_the_last_to_have_heard_all_and_begins_with_the_first_to_open() {
    let cell = cell("pattern = \"fan-in\"\npublishers = 3");
    let discovery = |wrong| Stage::new(&cell, wrong).play().discovery_ns;
    // Agents that bind answer first, then those that connect, which are ready 1 ns later.
    assert_eq!(discovery(None), Some(2 * PACE + 1));
    let late = |agent, word| discovery(Some((agent, word, Way::Late(7 * SECOND))));
    assert_eq!(late(1, 2), Some(2 * PACE + 1 + 7 * SECOND), "who hears late");
    assert_eq!(late(0, 1), Some(2 * PACE + 1 + 7 * SECOND), "who binds late");
    assert_eq!(late(0, 0), discovery(None), "who says hello late is started late, and nothing else");
    assert_eq!(discovery(Some((1, 2, Way::Silence))), None, "who never hears");
}

/// Returns the edges of the window, as the snapshots were taken.
fn window(looks: &[(Edge, Ns, Ns)]) -> (Ns, Ns) {
    let [(Edge::Begin, begin, _), (Edge::End, end, _)] = looks[..] else { panic!("{looks:?}") };
    (begin, end)
}

#[test]
fn clients_are_killed_at_their_instant_and_the_window_goes_on_to_its_end() {
    let killed = |fault: &str, publishers: u32| {
        let mut cell = cell(&format!("pattern = \"fan-in\"\npublishers = {publishers}"));
        // A plan refuses to cut clients of a library; whoever leads them need not know.
        cell.faults = Script::parse(fault).unwrap();
        Stage::new(&cell, None).play()
    };
    let both = "kill publishers at 500ms, kill subscribers at 0s";
    let cut = "cut 50% of clients at 500ms, kill subscribers at 1s";
    for (fault, agents, places) in [
        ("none", &[][..], &[][..]),
        ("kill publishers at 500ms", &[(0, 500)], &[0]),
        ("kill subscribers at 1999ms", &[(1, 1_999)], &[0]),
        (both, &[(1, 0), (0, 500)], &[0, 1]),
        (cut, &[(0, 500), (1, 500), (1, 1_000)], &[0, 1]),
    ] {
        let played = killed(fault, 3);
        let (begin, end) = window(&played.looks);
        assert_eq!(end - begin, 2 * SECOND, "{fault}");
        let at = |(agent, after_ms): &(usize, Ns)| (*agent, begin + after_ms * MILLISECOND);
        let told = [&played.cuts[..], &played.crashed].concat();
        assert_eq!(told, agents.iter().map(at).collect::<Vec<_>>(), "{fault}");
        assert_eq!(played.struck, places, "{fault}");
        let reports = played.outcome.unwrap_or_else(|refusal| panic!("{fault}: {refusal}"));
        assert_eq!(reports.iter().map(|report| report.result.publishers().count()).sum::<usize>(), 3, "{fault}");
    }
}

#[test]
fn an_agent_whose_clients_are_killed_is_held_to_its_words() {
    let cell = cell("pattern = \"fan-out\"\n[faults]\nfault = \"kill publishers at 500ms\"");
    for (way, says) in [
        (Way::Garbage, "agent publishers said what is not a word"),
        (Way::Twice, "agent publishers said out of turn"),
        (Way::Lie, "agent publishers does not answer for what it was told"),
        (Way::Death, "agent publishers ended in mid-run"),
        (Way::Silence, "agents (publishers) did not finish sending in time"),
    ] {
        let refusal = Stage::new(&cell, Some((0, 3, way))).play().outcome.unwrap_err().to_string();
        assert!(refusal.starts_with(says), "{way:?}: {refusal}");
    }
    let refused = |immortal| {
        let mut stage = Stage::new(&cell, None);
        stage.immortal = Some(immortal);
        stage.play().outcome.err().map(|refusal| refusal.to_string())
    };
    let lack = "the agent scripted 1 cannot play what a run with faults needs, `crash`; it has: cut";
    assert_eq!(refused(0).as_deref(), Some(lack));
    assert_eq!(refused(1), None, "nobody kills the subscribers");
}

#[test]
fn who_is_missing_is_named_and_nobody_else() {
    let cell = cell("pattern = \"fan-out\"");
    for (word, says) in
        [(0, "say hello"), (1, "bind"), (2, "connect and hear each other"), (3, "drain"), (4, "hand in")]
    {
        let refusal = Stage::new(&cell, Some((1, word, Way::Silence))).play().outcome.unwrap_err().to_string();
        assert!(refusal.starts_with("agents (subscribers) did not") && refusal.contains(says), "{refusal}");
    }
    let refusal = Stage::new(&cell, Some((0, 3, Way::Silence))).play().outcome.unwrap_err();
    assert!(refusal.to_string().starts_with("agents (publishers) did not finish sending in time"), "{refusal}");
}

/// A coordinator that was stopped itself knows nothing about the agents.
#[test]
fn a_time_limit_that_the_coordinator_slept_through_is_told_as_such() {
    let cell = cell("pattern = \"fan-out\"");
    let mut stage = Stage::new(&cell, Some((0, 3, Way::Silence)));
    let deadline_ns = stage.leader.deadline_ns().unwrap();
    stage.leader.tick(deadline_ns + 25 * SECOND + 1);
    let refusal = stage.leader.outcome().unwrap().err().unwrap().to_string();
    let says =
        "did not say hello in time; pubmark itself did not run for 25s: it was stopped, or the machine was suspended";
    assert!(refusal.ends_with(says), "{refusal}");
    let mut stage = Stage::new(&cell, None);
    stage.leader.tick(deadline_ns);
    let refusal = stage.leader.outcome().unwrap().err().unwrap().to_string();
    assert!(refusal.ends_with("in time; nothing was heard of them at all"), "{refusal}");
}

#[test]
fn an_option_that_the_study_sets_and_an_agent_does_not_know_ends_the_run_before_it_is_prepared() {
    let text = "title = \"t\"\n[axes]\nsystem = \"kernel\"\ntransport = \"tcp\"\noptions.linger = \"1s\"\n";
    let cell = planned(text).remove(0);
    let mut stage = Stage::new(&cell, None);
    stage.knows = Some(&["coalesce", "queue_messages"]);
    let refusal = stage.play().outcome.unwrap_err().to_string();
    let says = "the agent scripted 1 does not know the option `linger` for its driver `kernel`: known: coalesce, ";
    assert!(refusal.starts_with(says), "{refusal}");
    // An option that nobody set need not be supported, whatever its default.
    let mut stage = Stage::new(&cell, None);
    stage.knows = Some(&["coalesce", "linger"]);
    assert!(stage.play().outcome.is_ok());
}

#[test]
fn a_count_goes_on_as_long_as_anything_is_sent_and_no_longer() {
    let text = "title = \"t\"\n[workload]\ncount = 1000\nrate = \"max\"\nwarmup = \"0s\"\n[axes]\nsystem = \"kernel\"\ntransport = \"tcp\"\n";
    let cell = planned(text).remove(0);
    let mut stage = Stage::new(&cell, Some((0, 3, Way::Silence)));
    // Ten minutes of progress, one message every 20 s.
    for minute in 0..30 {
        let progress = pubmark_model::protocol::Progress { sent: minute + 1, ..Default::default() };
        stage.send(0, (10 + 20 * minute) * SECOND, AgentInput::Event(Event::Progress(progress)));
    }
    let Played { outcome, took_ns, .. } = stage.play();
    let says = "agents (publishers) did not finish sending in time; the last that was heard of them is 30s old";
    assert_eq!(outcome.unwrap_err().to_string(), says);
    let last = (10 + 20 * 29) * SECOND - 5 * SECOND;
    assert_eq!(took_ns, last + STANDSTILL);
}

#[test]
fn nothing_is_in_progress_before_the_start_and_what_is_fatal_has_a_name() {
    let cell = cell("pattern = \"fan-out\"");
    let mut stage = Stage::new(&cell, None);
    let progress = pubmark_model::protocol::Progress { sent: 1, ..Default::default() };
    stage.send(1, stage.now + 1, AgentInput::Event(Event::Progress(progress)));
    let refusal = stage.play().outcome.unwrap_err().to_string();
    assert!(refusal.starts_with("agent subscribers said out of turn: ") && refusal.contains("progress"), "{refusal}");
    let refusal = Stage::new(&cell, Some((1, 2, Way::Error(true)))).play().outcome.unwrap_err().to_string();
    assert_eq!(refusal, "agent subscribers cannot go on: it is broken");
    for fatal in [true, false] {
        let refusal = Stage::new(&cell, Some((1, 0, Way::Error(fatal)))).play().outcome.unwrap_err().to_string();
        assert_eq!(
            refusal,
            "agent subscribers answered `hello` with an error: it is broken; this pubmark speaks version 2: \
             update the agent, or take its release for this version"
        );
    }
}

#[test]
fn a_run_that_needs_more_than_its_agent_can_is_refused_before_a_server_is_started() {
    let cell = cell("arrival = \"poisson\"");
    let mut stage = Stage::new(&cell, None);
    stage.arrivals = &["uniform", "burst"];
    let refusal = stage.play().outcome.unwrap_err().to_string();
    assert_eq!(refusal, "the agent scripted 1 cannot play the arrival `poisson`; it has: uniform, burst");
}

fn ways() -> impl Strategy<Value = Way> {
    prop_oneof![
        Just(Way::Silence),
        Just(Way::Twice),
        (0..100 * SECOND).prop_map(Way::Late),
        Just(Way::Death),
        Just(Way::Garbage),
        Just(Way::Early),
        Just(Way::Lie),
        any::<bool>().prop_map(Way::Error),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    /// Whatever fault one agent has at any message, the run ends with an error that names this agent.
    #[test]
    fn whoever_does_as_nobody_should_ends_the_run_by_name(
        pattern in prop::sample::select(vec!["fan-out", "fan-in", "pairs", "request-reply", "pipeline"]),
        agent in 0..2_usize,
        word in 0..6_usize,
        way in ways(),
        fault in prop::sample::select(vec!["none", "kill publishers at 500ms", "kill subscribers at 500ms"]),
    ) {
        let cell = cell(&format!("pattern = \"{pattern}\"\n[faults]\nfault = \"{fault}\""));
        let stage = Stage::new(&cell, Some((agent, word, way)));
        let words = 5 + usize::from(stage.plays_senders(agent));
        let name = stage.leader.agents()[agent].name.clone();
        let sender = stage.plays_senders(agent);
        let Played { outcome, took_ns, .. } = stage.play();
        prop_assert!(took_ns < 120 * SECOND, "{took_ns} ns");
        let harmless = match way {
            Way::Late(by) => by < SECOND,
            // Nothing reads messages after the last one; and only these two messages name publishers.
            Way::Twice | Way::Early => word + 1 == words && agent == 1 && (way == Way::Twice || !sender),
            Way::Lie => !(word == 5 || word == 4 && !sender || word == 3 && sender),
            _ => false,
        } || word >= words;
        match outcome {
            Ok(reports) => prop_assert!(harmless || matches!(way, Way::Late(_) | Way::Twice), "{way:?}: {}", reports.len()),
            Err(refusal) => {
                prop_assert!(!harmless, "{way:?} at {word}: {refusal}");
                let says = refusal.to_string();
                let named = says.contains(&name);
                prop_assert!(named, "{says}");
            }
        }
    }
}

/// Plays a study from its file to its records, without a process, a file or a clock.
#[test]
fn a_thousand_cells_are_planned_led_and_judged_in_virtual_time() {
    let list = |from: u32| (from..from + 10).map(|n| n.to_string()).collect::<Vec<_>>().join(", ");
    let text = format!(
        "title = \"t\"\n[workload]\npattern = \"fan-in\"\nduration = \"60s\"\n[axes]\nsystem = \"kernel\"\ntransport = \"tcp\"\npublishers = [{}]\nrate = [{}]\npayload = [{}]\n",
        list(1),
        list(1),
        list(16).split(", ").map(|size| format!("\"{size}B\"")).collect::<Vec<_>>().join(", ")
    );
    let cells = planned(&text);
    assert_eq!(cells.len(), 1_000);
    let record = |cell: &Cell| -> RunRecord {
        let system = &*cell.system;
        let Played { outcome, looks, .. } = Stage::new(cell, None).play();
        let measured = Measured {
            clocks: Vec::new(),
            results: outcome.unwrap(),
            from_ns: looks[0].1,
            machine: MachineLoad::default(),
            hosts: Vec::new(),
            server: None,
            link: None,
            fault_log: Vec::new(),
            used: None,
            discovery_ns: None,
            wire: None,
            drained_ns: None,
            calibration: None,
            remarks: Vec::new(),
        };
        assemble(cell, system, Place { repeat: 1, position: 0 }, String::new(), measured)
    };
    for cell in &cells {
        let record = record(cell);
        let per_s = cell.workload.rate.profile().unwrap().fastest_per_s() as u64;
        assert_eq!(record.counts.sent, 60 * per_s * u64::from(cell.workload.publishers));
        assert_eq!((record.window_ns, record.agents.len()), (60 * SECOND, 2));
    }
}
