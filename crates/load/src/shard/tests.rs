//! Clients over real sockets that lose their connections at known points.

mod broker;
mod crash;
mod leftovers;
mod lengths;
mod listening;

use super::*;
use crate::control::{Control, Counter};
use crate::drivers::conversation::options;
use crate::drivers::mqtt::Mqtt;
use crate::outcome::merge;
use crate::subscriber::Totals;
use broker::{Broker, Script, World};
use pubmark_model::protocol::{AgentResult, Ranges};
use pubmark_model::wire_protocol::Protocol;
use pubmark_model::workload::Workload;
use pubmark_wire::mqtt::Qos;
use std::collections::BTreeSet;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Maximum wait of a test.
const DEADLINE: Duration = Duration::from_secs(60);
/// Messages of the publisher.
const COUNT: u64 = 300;

fn workload(qos: Qos, reconnect: bool) -> Workload {
    let qos = (qos as u8).to_string();
    let workload = Workload::of([
        ("pairs", "1"),
        ("rate", "1000"),
        ("warmup", "0s"),
        ("count", &COUNT.to_string()),
        ("payload", "64B"),
        ("qos", &qos),
        ("drain", "30s"),
        ("verify", "full"),
    ]);
    Workload { reconnect, ..workload.unwrap() }
}

/// A run of one publisher and one subscriber, each on a thread.
struct RunUnderTest {
    context: Arc<ThreadContext>,
    reports: (Sender<ThreadReport>, Receiver<ThreadReport>),
    notifiers: Vec<Notifier>,
    threads: Vec<JoinHandle<Result<ThreadOutcome, ShardError>>>,
    counters: Vec<Arc<Counter>>,
}

impl RunUnderTest {
    fn new(workload: Workload) -> RunUnderTest {
        let context = Arc::new(ThreadContext { workload, control: Control::default(), ahead_ns: 0 });
        RunUnderTest { context, reports: channel(), notifiers: Vec::new(), threads: Vec::new(), counters: Vec::new() }
    }

    fn enter(&mut self, role: Role, broker: &Broker, version: &str) {
        self.enter_by(role, broker, version, vec![broker.address]);
    }

    fn enter_by(&mut self, role: Role, broker: &Broker, version: &str, to: Vec<SocketAddr>) {
        self.enter_at(role, broker, version, to, false);
    }

    fn enter_at(&mut self, role: Role, broker: &Broker, version: &str, to: Vec<SocketAddr>, is_cluster: bool) {
        let (context, reports, notifier) = (self.context.clone(), self.reports.0.clone(), Notifier::new().unwrap());
        self.notifiers.push(notifier.clone());
        self.counters.push(Arc::default());
        let dial = Dial { is_cluster, ..Dial::tcp(to) };
        let assignment = Assignment {
            clients: vec![Client {
                role,
                id: 0,
                flow: 0,
                bind: None,
                connect: Vec::new(),
                answers: None,
                hears_first: 0,
                hears_count: 1,
            }],
            endpoint: Endpoint::parse(&format!("mqtt://{}", broker.address)).unwrap(),
            dial,
            run: "t".into(),
            connect_per_s: 1_000.0,
            options: options(Protocol::Mqtt, &[("mqtt_version", version)]),
            cpus: Vec::new(),
            spin_cores: 0.0,
            counter: self.counters.last().unwrap().clone(),
        };
        self.threads.push(thread::spawn(move || super::run::<Mqtt>(assignment, &context, &reports, notifier)));
    }

    /// Waits for `count` reports of a kind.
    fn await_reports<T>(&self, count: usize, mut pick: impl FnMut(ThreadReport) -> Option<T>) -> Vec<T> {
        let mut found = Vec::new();
        while found.len() < count {
            found.extend(pick(self.reports.1.recv_timeout(DEADLINE).expect("a report in time")));
        }
        found
    }

    fn notify(&self) {
        self.notifiers.iter().for_each(Notifier::notify);
    }

    /// Stops the run and returns what each thread measured.
    fn stop(&mut self) -> Vec<AgentResult> {
        self.context.control.stop();
        self.notify();
        let ended = self.threads.drain(..).map(|thread| thread.join().unwrap().unwrap());
        ended.map(|outcome| merge(&self.context.workload, vec![outcome])).collect()
    }
}

/// Runs a script; returns the results of publisher and subscriber, and the broker.
fn run(qos: Qos, version: &str, script: Script) -> (AgentResult, AgentResult, Broker) {
    let workload = workload(qos, true);
    let (publisher, subscriber, broker) = run_workload(workload.clone(), version, script);
    leftovers::remove_all(&broker, &workload, version);
    assert_eq!(broker.remembered(), [""; 0], "nothing is left at the server");
    (publisher, subscriber, broker)
}

fn run_workload(workload: Workload, version: &str, script: Script) -> (AgentResult, AgentResult, Broker) {
    let (qos, drain_ns) = (Qos::from_number(workload.qos).unwrap(), workload.drain_ns);
    let broker = Broker::start(qos, script);
    let mut under_test = RunUnderTest::new(workload);
    let context = under_test.context.clone();
    under_test.enter(Role::Subscriber, &broker, version);
    under_test.await_reports(1, |report| matches!(report, ThreadReport::Connected).then_some(()));
    under_test.enter(Role::Publisher, &broker, version);
    under_test.await_reports(2, |report| matches!(report, ThreadReport::Ready).then_some(()));
    context.control.start(clock::now() + 50 * MILLISECOND);
    under_test.notify();
    let totals =
        under_test.await_reports(1, |report| if let ThreadReport::Sent(totals) = report { Some(totals) } else { None });
    context.control.drain(Totals::new(&totals.concat()), clock::now() + drain_ns);
    under_test.notify();
    let draining = if qos == Qos::AtMostOnce { 1 } else { 2 };
    under_test.await_reports(draining, |report| matches!(report, ThreadReport::Drained).then_some(()));
    let mut results = under_test.stop().into_iter();
    let (subscriber, publisher) = (results.next().unwrap(), results.next().unwrap());
    (publisher, subscriber, broker)
}

fn sequences(list: &[u32]) -> BTreeSet<u32> {
    list.iter().copied().collect()
}

/// Checks what holds whenever nothing is lost.
fn assert_whole(publisher: &AgentResult, subscriber: &AgentResult, world: &World) {
    let total = publisher.flows[0].publishers[0];
    assert_eq!((total.sent, total.offered, publisher.flows[0].acked), (COUNT, COUNT, COUNT), "{:?}", publisher.remarks);
    assert_eq!(publisher.flows[0].unacked, Ranges::default());
    let ledger = subscriber.flows[0].ledger;
    assert_eq!((ledger.expected, ledger.delivered, ledger.corrupted), (COUNT, COUNT, 0), "{:?}", subscriber.remarks);
    assert_eq!(subscriber.flows[0].missing, Ranges::default());
    assert_eq!(world.order, (0..COUNT as u32).collect::<Vec<_>>(), "what comes again comes in order");
    assert!(!world.changed, "a message that comes again is the same to the last byte");
}

/// Returns losses and reconnections in an agent's result.
fn losses(result: &AgentResult) -> (u64, u64, u64) {
    let connections = result.connections.unwrap();
    let times = result.reconnect_time.as_ref().map_or(0, |text| text.read(3).unwrap().count());
    (connections.lost, connections.reconnected, times)
}

/// Returns how many connections of a subscriber the server cut. If it is cut before its
/// client has subscribed again, as on a busy machine, it counts as a failed attempt.
fn cuts(result: &AgentResult) -> u64 {
    let (lost, reconnected, times) = losses(result);
    assert!(lost >= 1 && lost == reconnected && lost == times, "{lost} {reconnected} {times}");
    lost + result.connections.unwrap().refused
}

#[test]
fn at_qos_1_what_was_not_acknowledged_comes_twice() {
    for (version, forgets) in [("3.1.1", false), ("5", false), ("5", true)] {
        let script = Script { at_publish: sequences(&[0, 20, 21, 150, 298]), forgets, refuses: 2, ..Script::default() };
        let (publisher, subscriber, broker) = run(Qos::AtLeastOnce, version, script);
        let world = broker.world();
        assert_whole(&publisher, &subscriber, &world);
        assert_eq!(losses(&publisher), (5, 5, 5));
        assert!(publisher.connections.unwrap().refused >= 2);
        assert_eq!(losses(&subscriber), (0, 0, 0));
        assert_eq!(world.again, [!forgets; 5], "each with the flag that tells what the server remembers");
        assert_eq!(subscriber.flows[0].ledger.duplicated, 5);
    }
}

#[test]
fn what_comes_twice_after_the_drain_is_counted() {
    let script = Script { at_unsubscribe: sequences(&[1, 200, 299]), ..Script::default() };
    let (publisher, subscriber, broker) = run(Qos::AtLeastOnce, "5", script);
    assert_whole(&publisher, &subscriber, &broker.world());
    assert_eq!(subscriber.flows[0].ledger.duplicated, 3);
}

#[test]
fn at_qos_2_nothing_comes_twice() {
    for version in ["3.1.1", "5"] {
        let script = Script {
            at_publish: sequences(&[3, 100]),
            at_release: sequences(&[50, 101]),
            at_delivery: sequences(&[70, 200]),
            resets: true,
            ..Script::default()
        };
        let (publisher, subscriber, broker) = run(Qos::ExactlyOnce, version, script);
        let world = broker.world();
        assert_whole(&publisher, &subscriber, &world);
        assert_eq!((losses(&publisher), cuts(&subscriber)), ((4, 4, 4), 2));
        assert!(world.written >= COUNT + 2, "the server did send some of them again");
        assert_eq!(subscriber.flows[0].ledger.duplicated, 0);
    }
}

#[test]
fn a_server_that_does_not_answer_is_asked_again() {
    let script = Script { at_publish: sequences(&[100]), ignores: 1, ..Script::default() };
    let (publisher, subscriber, broker) = run(Qos::AtLeastOnce, "5", script);
    assert_whole(&publisher, &subscriber, &broker.world());
    assert_eq!((losses(&publisher), subscriber.flows[0].ledger.duplicated), ((1, 1, 1), 1));
    assert!(publisher.connections.unwrap().refused >= 1);
    let away = publisher.reconnect_time.as_ref().unwrap().read(3).unwrap();
    assert!(away.min() >= SECOND, "an attempt is given a second: {}", away.min());
}

/// A server that is starting may listen before it knows its users.
#[test]
fn a_server_that_denies_a_client_that_comes_back_is_asked_again() {
    let script = Script { at_publish: sequences(&[100]), denies: 2, ..Script::default() };
    let (publisher, subscriber, broker) = run(Qos::AtLeastOnce, "5", script);
    assert_whole(&publisher, &subscriber, &broker.world());
    assert_eq!((losses(&publisher), publisher.connections.unwrap().refused), ((1, 1, 1), 2));
}

#[test]
fn a_subscriber_that_was_away_gets_what_was_kept_for_it() {
    // The last but one too: the drain waits for clients that are away.
    let script = Script { at_delivery: sequences(&[10, 150, 298]), ..Script::default() };
    let (publisher, subscriber, broker) = run(Qos::AtLeastOnce, "5", script);
    let world = broker.world();
    assert_whole(&publisher, &subscriber, &world);
    assert_eq!((losses(&publisher), cuts(&subscriber)), ((0, 0, 0), 3));
    assert_eq!(subscriber.flows[0].ledger.duplicated, world.written - COUNT);
    assert!(subscriber.flows[0].ledger.duplicated >= 3);
}

#[test]
fn without_a_return_a_lost_connection_stays_lost() {
    let script = Script { at_publish: sequences(&[100]), ..Script::default() };
    let workload = Workload { drain_ns: SECOND, ..workload(Qos::AtLeastOnce, false) };
    let (publisher, subscriber, broker) = run_workload(workload, "5", script);
    let total = publisher.flows[0].publishers[0];
    assert_eq!((losses(&publisher), losses(&subscriber)), ((1, 0, 0), (0, 0, 0)));
    assert_eq!((total.offered, publisher.flows[0].acked), (COUNT, 100));
    assert!((101..COUNT).contains(&total.sent), "{}", total.sent);
    assert_eq!(subscriber.flows[0].ledger.delivered, 101);
    assert_eq!(broker.world().again, [true; 0]);
}

#[test]
fn at_qos_0_what_is_owed_is_sent_late_and_what_was_under_way_is_lost() {
    let script = Script { at_publish: sequences(&[100, 200]), ..Script::default() };
    let (publisher, subscriber, broker) = run(Qos::AtMostOnce, "3.1.1", script);
    let world = broker.world();
    let total = publisher.flows[0].publishers[0];
    assert_eq!(
        (total.sent, total.offered, publisher.flows[0].acked),
        (COUNT, COUNT, 0),
        "the schedule forgets nothing"
    );
    assert_eq!((losses(&publisher), losses(&subscriber)), ((2, 2, 2), (0, 0, 0)));
    let ledger = subscriber.flows[0].ledger;
    assert_eq!((ledger.expected, ledger.delivered), (COUNT, world.messages.len() as u64));
    assert_eq!((ledger.duplicated, world.again.len()), (0, 0));
    // Messages that were due in the first pause were sent after it.
    let away = publisher.reconnect_time.as_ref().unwrap().read(3).unwrap();
    let lag = publisher.flows[0].histograms.send_lag.as_ref().unwrap().read(3).unwrap();
    assert!(away.min() >= 10 * MILLISECOND, "the first attempt waits for 10 ms");
    assert!(lag.max() >= 8 * MILLISECOND, "{}", lag.max());
}

/// Returns an address without a listener.
fn closed() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

#[test]
fn every_address_of_a_server_is_tried() {
    let broker = Broker::start(Qos::AtLeastOnce, Script::default());
    let (first, second) = (closed(), closed());
    let mut under_test = RunUnderTest::new(workload(Qos::AtLeastOnce, false));
    under_test.enter_by(Role::Subscriber, &broker, "5", vec![first, second, broker.address]);
    under_test.await_reports(1, |report| matches!(report, ThreadReport::Connected).then_some(()));
    let result = under_test.stop().remove(0);
    let counts = result.connections.unwrap();
    assert_eq!((counts.opened, counts.refused, counts.retried), (1, 0, 0), "it is one attempt");
    let remark = result.remarks.iter().find(|remark| remark.starts_with("connected to")).unwrap();
    let told = format!("connected to {}, for {first}: Connection refused", broker.address);
    assert!(remark.starts_with(&told) && remark.contains(&second.to_string()), "{remark}");
}

/// A member that refuses is a failed attempt; the next attempt is at the next member.
#[test]
fn a_client_of_a_cluster_goes_on_to_the_next_member() {
    let broker = Broker::start(Qos::AtLeastOnce, Script::default());
    let mut under_test = RunUnderTest::new(workload(Qos::AtLeastOnce, false));
    under_test.enter_at(Role::Subscriber, &broker, "5", vec![closed(), broker.address, closed()], true);
    under_test.await_reports(1, |report| matches!(report, ThreadReport::Connected).then_some(()));
    let result = under_test.stop().remove(0);
    let counts = result.connections.unwrap();
    assert_eq!((counts.opened, counts.refused, counts.retried), (1, 1, 1));
    assert!(!result.remarks.iter().any(|remark| remark.starts_with("connected to")), "{:?}", result.remarks);
}

#[test]
fn where_no_address_answers_all_errors_are_told() {
    let broker = Broker::start(Qos::AtLeastOnce, Script::default());
    let (first, second) = (closed(), closed());
    let mut under_test = RunUnderTest::new(workload(Qos::AtLeastOnce, false));
    under_test.enter_by(Role::Subscriber, &broker, "5", vec![first, second]);
    let error = under_test.threads.remove(0).join().unwrap().err().unwrap().to_string();
    for address in [first, second] {
        assert!(error.contains(&format!("{address}: Connection refused")), "{error}");
    }
    assert!(error.contains("(5 attempts)"), "{error}");
}
