//! Clients that are killed at a server, which observes how their connections end.

use crate::course::{LEAD, only, until};
use crate::order::{clients, prepare, workload};
use crate::server::TestServer;
use crate::subject::TestedAgent;
use crate::wrong::CaseFailure;
use pubmark_host::clock;
use pubmark_host::conversation::AgentConversation;
use pubmark_model::protocol::{Command, FlowResult, Prepare, PublisherTotal, Role};
use pubmark_model::units::{MILLISECOND, Ns};
use pubmark_model::workload::Workload;
use pubmark_peer::{ClientAct, ClientEvent};
use std::collections::BTreeSet;
use std::sync::mpsc::Receiver;
use std::thread;
use std::time::{Duration, Instant};

/// Time in which messages in flight arrive.
const SETTLED: Duration = Duration::from_millis(100);

/// Time that the server waits for the end of a connection.
pub const ENDED: Duration = Duration::from_secs(2);

/// Interval of messages of each publisher that the server neither acknowledges nor passes on.
pub const LOST_EVERY: u64 = 7;

/// Bursts of a hundred messages, 400 ms apart: two of the window.
const BURSTS: &[(&str, &str)] =
    &[("pattern", "fan-out"), ("rate", "250"), ("arrival", "burst:100"), ("duration", "900ms")];

/// Instant in the silence between them, ns from the start.
const SILENCE: Ns = 600 * MILLISECOND;

/// Outcome of killed clients.
pub struct CrashOutcome {
    /// Workload of the clients.
    pub workload: Workload,
    /// Totals that the publishers report.
    pub totals: Vec<PublisherTotal>,
    /// Result of the side that was killed.
    pub result: FlowResult,
    /// Time from the command `drain` until the agent was drained.
    pub drained_after: Duration,
    /// Events at the server before the agent was told to stop.
    pub seen: Vec<ClientEvent>,
    /// Number of these events when messages in flight had arrived.
    pub by_then: usize,
}

/// The server, and its events so far.
struct Witness {
    meeting: TestServer,
    events: Receiver<ClientEvent>,
    seen: Vec<ClientEvent>,
}

impl Witness {
    fn start(bench: &TestedAgent<'_>, script: &str) -> Result<Witness, CaseFailure> {
        let (meeting, events) = TestServer::watched(bench.driver, script)?;
        Ok(Witness { meeting, events, seen: Vec::new() })
    }

    /// Returns the order for clients of this server.
    fn order(&self, order: Prepare) -> Prepare {
        Prepare { server: Some(self.meeting.address()), ..order }
    }

    fn look(&mut self) -> &[ClientEvent] {
        self.seen.extend(self.events.try_iter());
        &self.seen
    }

    /// Waits after a kill of clients of this kind. Returns the number of events when messages in flight had arrived.
    /// The clients' connections have more time to end.
    fn settle(&mut self, talk: &mut AgentConversation, kind: fn(&ClientAct) -> bool) -> Result<usize, CaseFailure> {
        talk.silent(SETTLED)?;
        let by_then = self.look().len();
        let deadline = Instant::now() + ENDED;
        while !open(self.look(), kind).is_empty() && Instant::now() < deadline {
            thread::park_timeout(Duration::from_millis(5));
        }
        Ok(by_then)
    }
}

/// Returns the clients with such an event.
pub fn who(seen: &[ClientEvent], did: fn(&ClientAct) -> bool) -> BTreeSet<usize> {
    seen.iter().filter(|event| did(&event.act)).map(|event| event.client).collect()
}

/// Returns those of these clients whose connections have not ended.
pub fn open(seen: &[ClientEvent], did: fn(&ClientAct) -> bool) -> BTreeSet<usize> {
    &who(seen, did) - &who(seen, |act| *act == ClientAct::Ended)
}

/// Returns whether the event is that of a publisher.
pub fn publishes(act: &ClientAct) -> bool {
    matches!(act, ClientAct::Published(_))
}

/// Returns whether the event is that of a subscriber.
pub fn subscribes(act: &ClientAct) -> bool {
    *act == ClientAct::Subscribed
}

/// Returns the workload, with acknowledgements if the system has them; returns an error if the agent does not support
/// it.
fn of(bench: &TestedAgent<'_>, settings: &[(&'static str, &'static str)]) -> Result<Workload, CaseFailure> {
    if let Some(lack) = bench.features.lack_of_crash() {
        return Err(CaseFailure::NotTried(format!("by its `hello` it {lack}")));
    }
    let acknowledged = bench.system.is_some_and(|system| system.qos.contains(&1));
    let qos = ("qos", if acknowledged { "1" } else { "0" });
    workload(bench, &[settings, &[qos]].concat())
}

/// Kills publishers in the middle of the window.
pub fn of_publishers(bench: &TestedAgent<'_>) -> Result<CrashOutcome, CaseFailure> {
    let workload = of(bench, &[("pattern", "fan-out"), ("duration", "900ms")])?;
    let mut witness = Witness::start(bench, &format!("lose = {{ every = {LOST_EVERY} }}"))?;
    let mut talk = AgentConversation::greeted(bench.sending)?;
    let publishers = clients(&workload, Role::Publisher, &[], &[]);
    talk.prepare(witness.order(prepare(bench, &workload, publishers, &talk.scratch)))?;
    talk.ready()?;
    let start_ns = clock::now() + LEAD;
    talk.begin(start_ns);
    talk.silent(until(start_ns + workload.warmup_ns + workload.window_ns().unwrap_or(0) / 3 + MILLISECOND))?;
    talk.tell(&Command::Crash {});
    let totals = talk.sent(0)?;
    let by_then = witness.settle(&mut talk, publishes)?;
    let began = Instant::now();
    talk.drain(totals.clone(), workload.drain_ns)?;
    let drained_after = began.elapsed();
    talk.silent(SETTLED)?;
    let seen = witness.look().to_vec();
    let result = only(&talk.stop()?)?;
    talk.exit()?;
    Ok(CrashOutcome { workload, totals, result, drained_after, seen, by_then })
}

/// Kills subscribers in a silence, while pubmark's own publisher goes on.
pub fn of_subscribers(bench: &TestedAgent<'_>) -> Result<CrashOutcome, CaseFailure> {
    let workload = of(bench, BURSTS)?;
    let mut witness = Witness::start(bench, "")?;
    let (mut sender, mut hearer) =
        (AgentConversation::greeted(bench.built_in)?, AgentConversation::greeted(bench.receiving)?);
    for (talk, role) in [(&mut hearer, Role::Subscriber), (&mut sender, Role::Publisher)] {
        let order = prepare(bench, &workload, clients(&workload, role, &[], &[]), &talk.scratch);
        talk.prepare(witness.order(order))?;
    }
    hearer.ready()?;
    sender.ready()?;
    let start_ns = clock::now() + LEAD;
    sender.begin(start_ns);
    hearer.begin(start_ns);
    hearer.silent(until(start_ns + SILENCE))?;
    hearer.tell(&Command::Crash {});
    let by_then = witness.settle(&mut hearer, subscribes)?;
    let over = start_ns + workload.warmup_ns + workload.window_ns().unwrap_or(0);
    let totals = sender.sent(until(over).as_nanos() as Ns + workload.drain_ns)?;
    sender.drain(totals.clone(), workload.drain_ns)?;
    let began = Instant::now();
    hearer.drain(totals.clone(), workload.drain_ns)?;
    let drained_after = began.elapsed();
    let seen = witness.look().to_vec();
    let result = only(&hearer.stop()?)?;
    sender.stop()?;
    sender.exit()?;
    hearer.exit()?;
    Ok(CrashOutcome { workload, totals, result, drained_after, seen, by_then })
}
