//! Clients that are killed in the middle of a run.

use super::broker::{Broker, Script};
use super::*;
use pubmark_model::protocol::Sequences;

/// Returns the workload of a run that ends only when its clients are killed.
fn endless(qos: Qos, rate: &str) -> Workload {
    let qos = (qos as u8).to_string();
    let settings = [("pairs", "1"), ("rate", rate), ("warmup", "0s"), ("duration", "10m"), ("payload", "64B")];
    Workload::of(settings.into_iter().chain([("qos", qos.as_str()), ("drain", "1s")])).unwrap()
}

fn wait_until(mut holds: impl FnMut() -> bool) {
    let deadline = clock::now() + DEADLINE.as_nanos() as Ns;
    while !holds() {
        assert!(clock::now() < deadline, "it never came about");
        thread::yield_now();
    }
}

/// Both sides, each as its own agent, as in a run.
struct Sides {
    publisher: RunUnderTest,
    subscriber: RunUnderTest,
    broker: Broker,
}

impl Sides {
    fn start(qos: Qos, version: &str) -> Sides {
        Sides::of(endless(qos, "1000"), version)
    }

    fn of(workload: Workload, version: &str) -> Sides {
        let broker = Broker::start(Qos::from_number(workload.qos).unwrap(), Script::default());
        let [mut subscriber, mut publisher] = [(); 2].map(|()| RunUnderTest::new(workload.clone()));
        subscriber.enter(Role::Subscriber, &broker, version);
        subscriber.await_reports(1, |report| matches!(report, ThreadReport::Connected).then_some(()));
        publisher.enter(Role::Publisher, &broker, version);
        let start_ns = clock::now() + 50 * MILLISECOND;
        for side in [&publisher, &subscriber] {
            side.await_reports(1, |report| matches!(report, ThreadReport::Ready).then_some(()));
            side.context.control.start(start_ns);
            side.notify();
        }
        Sides { publisher, subscriber, broker }
    }

    fn came(&self) -> usize {
        self.broker.world().messages.len()
    }

    /// Returns the results of publisher and subscriber. The publisher must have been
    /// killed.
    fn end(mut self) -> (AgentResult, AgentResult, Broker) {
        let sent = |report| if let ThreadReport::Sent(totals) = report { Some(totals) } else { None };
        let totals = self.publisher.await_reports(1, sent).concat();
        let deadline_ns = clock::now() + SECOND;
        for side in [&self.publisher, &self.subscriber] {
            side.context.control.drain(Totals::new(&totals), deadline_ns);
            side.notify();
            let at_qos_0 = side.context.workload.qos == 0 && std::ptr::eq(side, &self.publisher);
            side.await_reports(usize::from(!at_qos_0), |report| matches!(report, ThreadReport::Drained).then_some(()));
        }
        let [publisher, subscriber] =
            [&mut self.publisher, &mut self.subscriber].map(|side| side.stop().pop().unwrap());
        (publisher, subscriber, self.broker)
    }
}

fn kill(side: &RunUnderTest) {
    side.context.control.crash();
    side.notify();
}

fn messages(ranges: &Ranges) -> Vec<u64> {
    let all = ranges.0.as_ref().unwrap().iter();
    all.flat_map(|Sequences { first, end, .. }| *first..*end).collect()
}

#[test]
fn a_publisher_that_is_killed_says_nothing_more_and_its_books_are_what_came() {
    for (qos, version) in [(Qos::AtMostOnce, "5"), (Qos::AtLeastOnce, "3.1.1"), (Qos::ExactlyOnce, "5")] {
        let sides = Sides::start(qos, version);
        wait_until(|| sides.came() >= 100);
        kill(&sides.publisher);
        let broker = &sides.broker;
        wait_until(|| broker.world().vanished.len() == 1);
        let (publisher, subscriber, broker) = sides.end();
        let world = broker.world();
        let (sends, ledger) = (&publisher.flows[0], subscriber.flows[0].ledger);
        let total = sends.publishers[0];
        let came: Vec<u64> = world.messages.keys().map(|sequence| u64::from(*sequence)).collect();
        assert!((100..600_000).contains(&total.sent) && total.offered >= total.sent, "{total:?}");
        assert_eq!((losses(&publisher), losses(&subscriber)), ((0, 0, 0), (0, 0, 0)), "nobody lost a connection");
        assert_eq!((ledger.expected, ledger.corrupted), (total.sent, 0));
        assert_eq!(
            (world.again.len(), world.accepted, world.parted.len()),
            (0, 2, 1),
            "the subscriber alone took leave"
        );
        assert!(!world.parted.contains(&world.vanished[0]), "{:?}", world.vanished);
        let whole: Vec<u64> = (0..total.sent).collect();
        match qos {
            Qos::AtMostOnce => {
                assert_eq!(came, whole, "what the kernel had taken, it delivers");
                assert_eq!(ledger.delivered, total.sent);
            }
            _ => {
                let unacked = messages(&sends.unacked);
                assert_eq!(sends.acked + unacked.len() as u64, total.sent);
                let gone = |sequence: &&u64| !came.contains(sequence);
                assert!(whole.iter().filter(gone).all(|sequence| unacked.contains(sequence)), "{unacked:?}");
                assert!(ledger.delivered >= sends.acked);
            }
        }
    }
}

#[test]
fn a_subscriber_that_is_killed_hears_nothing_more_and_nobody_misses_it() {
    for qos in [Qos::AtMostOnce, Qos::AtLeastOnce] {
        let sides = Sides::start(qos, "5");
        wait_until(|| sides.subscriber.counters[0].get() >= 100);
        kill(&sides.subscriber);
        let broker = &sides.broker;
        wait_until(|| broker.world().vanished.len() == 1);
        let (then, dead) = (sides.came(), sides.broker.world().vanished[0].clone());
        // The other side goes on.
        wait_until(|| sides.came() >= then + 100);
        kill(&sides.publisher);
        let (publisher, subscriber, broker) = sides.end();
        let world = broker.world();
        let (ledger, total) = (subscriber.flows[0].ledger, publisher.flows[0].publishers[0]);
        assert_eq!((ledger.expected, ledger.duplicated, ledger.corrupted), (total.sent, 0, 0));
        assert!((100..=then as u64).contains(&ledger.delivered), "{} of {then}", ledger.delivered);
        assert_eq!((losses(&subscriber), world.accepted), ((0, 0, 0), 2));
        assert!(!world.parted.contains(&dead), "it took no leave");
        let stalls = subscriber.flows[0].stalls.unwrap();
        assert!(stalls.longest_ns < 60 * SECOND, "the rest of the window is not a silence: {stalls:?}");
        if qos == Qos::AtLeastOnce {
            let missing = messages(&subscriber.flows[0].missing);
            assert_eq!(missing, (ledger.delivered..total.sent).collect::<Vec<_>>(), "all that came later");
        }
    }
}

#[test]
fn what_a_server_keeps_for_a_subscriber_that_was_killed_is_removed_when_the_run_is_over() {
    for version in ["3.1.1", "5"] {
        let workload = Workload { durable: true, ..endless(Qos::AtLeastOnce, "1000") };
        let sides = Sides::of(workload.clone(), version);
        wait_until(|| sides.subscriber.counters[0].get() > 0);
        kill(&sides.subscriber);
        let broker = &sides.broker;
        wait_until(|| broker.world().vanished.len() == 1);
        let dead = broker.world().vanished[0].clone();
        assert!(broker.remembered().contains(&dead), "it may come back");
        kill(&sides.publisher);
        let (_, _, broker) = sides.end();
        super::leftovers::remove_all(&broker, &workload, version);
        wait_until(|| !broker.remembered().contains(&dead));
    }
}

/// The publisher sends as fast as the server takes it, and the server stops taking: what
/// is left over when the publisher is killed was due, and never sent.
#[test]
fn what_the_kernel_has_not_taken_of_a_publisher_that_is_killed_was_not_sent() {
    let broker = Broker::start(Qos::AtMostOnce, Script::default());
    let mut publisher = RunUnderTest::new(endless(Qos::AtMostOnce, "max"));
    publisher.enter(Role::Publisher, &broker, "5");
    publisher.await_reports(1, |report| matches!(report, ThreadReport::Ready).then_some(()));
    // Nothing is read while the world is locked.
    let world = broker.world();
    publisher.context.control.start(clock::now());
    publisher.notify();
    let sent = || publisher.counters[0].get();
    let mut last = 0;
    while last == 0 || sent() > last {
        last = sent();
        assert!(publisher.reports.1.recv_timeout(Duration::from_millis(50)).is_err(), "it has nothing to say");
    }
    kill(&publisher);
    let totals =
        publisher.await_reports(1, |report| if let ThreadReport::Sent(totals) = report { Some(totals) } else { None });
    drop(world);
    wait_until(|| broker.world().vanished.len() == 1);
    let total = totals[0][0];
    assert!(total.sent < last && total.offered == total.sent, "it was full to the brim: {total:?} of {last}");
    let came: Vec<u64> = broker.world().messages.keys().map(|sequence| u64::from(*sequence)).collect();
    assert_eq!(came, (0..total.sent).collect::<Vec<_>>());
    assert_eq!(publisher.stop()[0].flows[0].publishers[0], total);
}
