use super::*;
use crate::truth::{Due, truth, uniform};
use pubmark_model::header::{END, pattern};

const MS: Ns = 1_000_000;
const SECOND: Ns = 1_000 * MS;
/// The origin on the clock of these tests.
const ORIGIN: Ns = 77 * SECOND;

fn payload(publisher: u32, sequence: u32, intended_ns: Ns) -> Vec<u8> {
    sent(publisher, sequence, intended_ns, intended_ns, 64)
}

/// Returns a message that was sent late by the generator.
fn sent(publisher: u32, sequence: u32, intended_ns: Ns, sent_ns: Ns, bytes: usize) -> Vec<u8> {
    let mut payload = pattern(bytes);
    let (sent_ns, free_ns) = (Some(sent_ns), Some(intended_ns));
    assert!(Header { intended_ns, publisher, sequence, sent_ns, free_ns }.write(&mut payload));
    payload
}

/// A dispatcher, and the messages that it has passed on: instant, publisher, sequence, payload.
struct Dispatched {
    dispatcher: Dispatcher,
    out: Vec<(Ns, u32, u32, Vec<u8>)>,
}

impl Dispatched {
    fn new(script: &str) -> Dispatched {
        Dispatched { dispatcher: Dispatcher::new(PeerScript::parse(script).unwrap()), out: Vec::new() }
    }

    fn release(&mut self, now: Ns) {
        while let Some(planned) = self.dispatcher.next(now) {
            if planned.only.is_none() && !self.dispatcher.may_go(&planned, 5, 0) {
                continue;
            }
            let header = Header::read(&planned.message.payload).unwrap();
            let at = planned.at_ns.saturating_sub(ORIGIN);
            self.out.push((at, header.publisher, header.sequence, planned.message.payload.to_vec()));
            self.dispatcher.written(&planned, planned.at_ns, planned.at_ns);
        }
    }

    /// Feeds each message `late_ns` after its sending, in order of time.
    fn run(&mut self, schedule: impl IntoIterator<Item = Due>, late_ns: Ns) {
        let mut all: Vec<Due> = schedule.into_iter().collect();
        all.sort_by_key(|due| (due.at_ns + due.lag_ns, due.publisher));
        for Due { publisher, sequence, at_ns, lag_ns } in all {
            let intended = ORIGIN + at_ns;
            let (gone, now) = (intended + lag_ns, intended + lag_ns + late_ns);
            self.release(now);
            self.dispatcher.arrived(Address::of(b"t"), &sent(publisher, sequence, intended, gone, 64), 0, now);
        }
        self.release(Ns::MAX);
    }

    fn sequences(&self) -> Vec<u32> {
        self.out.iter().map(|(_, _, sequence, _)| *sequence).collect()
    }
}

/// The peer's actions agree with `truth`, for each element and for all together.
#[test]
fn the_truth_is_what_is_done() {
    let delays = ["{ fixed = \"10ms\" }", "{ uniform = [\"1ms\", \"21ms\"] }", "{ exponential = \"3ms\" }"];
    let faults = [
        "",
        "ordered = true",
        "lose = { every = 7 }\nswallow = { every = 9 }",
        "duplicate = { every = 11 }\ncorrupt = { every = 17, offset = 40 }",
        "reorder = { every = 13 }",
        "ordered = true\nreorder = { every = 13 }\nduplicate = { every = 26 }",
        "ordered = true\n[[stall]]\nfrom = \"300ms\"\nfor = \"200ms\"",
        "reorder = { every = 13 }\nlose = { every = 14 }\n[[stall]]\nfrom = \"300ms\"\nfor = \"200ms\"",
    ];
    // Publishers are late by up to 1.2 ms.
    let late = |due: Due| Due { lag_ns: Ns::from(due.sequence % 4) * 400_000, ..due };
    let schedule = || uniform(3, 500, 700 * MS).map(late);
    for delay in delays {
        for fault in faults {
            let text = format!("delay = {delay}\ncount = {{ from = \"100ms\", for = \"500ms\" }}\n{fault}");
            let mut dispatched = Dispatched::new(&text);
            dispatched.run(schedule(), 200_000);
            let script = PeerScript::parse(&text).unwrap();
            let wanted = truth(&script, schedule(), 100 * MS, 600 * MS);
            let counts = dispatched.dispatcher.tally.counts;
            assert_eq!(counts.messages, wanted.offered, "{text}");
            assert_eq!(counts.lost + counts.swallowed, wanted.lost, "{text}");
            assert_eq!(counts.swallowed, wanted.acked_lost, "{text}");
            assert_eq!((counts.duplicated, counts.corrupted), (wanted.duplicated, wanted.corrupted), "{text}");
            assert_eq!(counts.copies, wanted.offered - wanted.lost + wanted.duplicated, "{text}");
            let mut seen = std::collections::BTreeSet::new();
            let mut latencies: Vec<Ns> = Vec::new();
            for (at, publisher, sequence, payload) in &dispatched.out {
                let header = Header::read(payload).unwrap();
                let due = header.intended_ns - ORIGIN;
                if (100 * MS..600 * MS).contains(&due) && seen.insert((*publisher, *sequence)) {
                    latencies.push(at + ORIGIN - header.sent_ns.unwrap());
                }
            }
            latencies.sort_unstable();
            assert_eq!(latencies, wanted.latencies_ns, "{text}");
        }
    }
}

/// A message of under 24 bytes has no time of sending, and one of under 32 no ready time: then the generator delay is
/// part of the latency.
#[test]
fn a_delay_counts_from_the_sending_where_that_is_told() {
    for (bytes, wanted, latency) in
        [(64, ORIGIN + 13 * MS, 10 * MS), (24, ORIGIN + 13 * MS, 13 * MS), (16, ORIGIN + 10 * MS, 10 * MS)]
    {
        let mut dispatcher = Dispatcher::new(PeerScript::parse("delay = { fixed = \"10ms\" }").unwrap());
        dispatcher.arrived(Address::of(b"t"), &sent(0, 0, ORIGIN, ORIGIN + 3 * MS, bytes), 0, ORIGIN + 4 * MS);
        assert_eq!(dispatcher.due_ns(), Some(wanted), "{bytes} bytes");
        let planned = dispatcher.next(wanted).unwrap();
        dispatcher.written(&planned, wanted + 5_000, wanted + 9_000);
        let tally = &dispatcher.tally;
        let found = [&tally.begun, &tally.latency, &tally.release_error].map(|histogram| histogram.max());
        for (found, wanted) in found.into_iter().zip([latency + 5_000, latency + 9_000, 9_000]) {
            assert!(found.abs_diff(wanted) <= wanted / 1_000, "{found} ns, not {wanted}");
        }
    }
}

#[test]
fn order_is_kept_within_a_publisher_where_that_is_asked_for() {
    let delay = "delay = { uniform = [\"1ms\", \"21ms\"] }";
    for (text, kept) in [(delay.to_owned(), false), (format!("{delay}\nordered = true"), true)] {
        let mut dispatched = Dispatched::new(&text);
        dispatched.run(uniform(1, 1_000, SECOND), 0);
        assert_eq!(dispatched.sequences().is_sorted(), kept, "{text}");
        assert_eq!(dispatched.out.len(), 1_000);
    }
}

#[test]
fn a_reordered_message_comes_right_behind_the_next_one() {
    let mut dispatched = Dispatched::new("delay = { fixed = \"1ms\" }\nreorder = { every = 3 }");
    dispatched.run(uniform(1, 1_000, 8 * MS), 0);
    assert_eq!(dispatched.sequences(), [0, 1, 3, 2, 4, 6, 5, 7]);
    assert_eq!(dispatched.dispatcher.tally.counts.reordered, 2);
}

#[test]
fn without_a_delay_messages_pass_when_they_come() {
    let mut dispatched = Dispatched::new("lose = { at = [[0, 1]] }");
    dispatched.run(uniform(1, 1_000, 3 * MS), 5_000);
    let instants: Vec<(Ns, u32)> = dispatched.out.iter().map(|(at, _, sequence, _)| (*at, *sequence)).collect();
    assert_eq!(instants, [(5_000, 0), (2 * MS + 5_000, 2)]);
}

#[test]
fn markers_meet_no_fault_and_an_end_marker_overtakes_nothing() {
    let mut dispatched = Dispatched::new("delay = { fixed = \"500ms\" }\nlose = { every = 1 }");
    let dispatcher = &mut dispatched.dispatcher;
    let mut answer = |message: &[u8]| dispatcher.arrived(Address::of(b"t"), message, 1, ORIGIN);
    assert_eq!(answer(&payload(0, PROBE, ORIGIN)), PublisherAnswer::Acknowledged);
    assert_eq!(answer(&payload(0, 0, ORIGIN)), PublisherAnswer::Nothing);
    assert_eq!(answer(b"short"), PublisherAnswer::Acknowledged);
    assert_eq!(dispatcher.due_ns(), Some(ORIGIN));
    assert_eq!(dispatcher.next(ORIGIN).unwrap().message.payload.len(), 64);
    assert_eq!(*dispatcher.next(ORIGIN).unwrap().message.payload, *b"short");
    assert_eq!(dispatcher.due_ns(), None);

    let mut dispatched = Dispatched::new("delay = { fixed = \"500ms\" }\nreorder = { every = 2 }");
    let dispatcher = &mut dispatched.dispatcher;
    dispatcher.arrived(Address::of(b"t"), &payload(0, 0, ORIGIN), 0, ORIGIN);
    dispatcher.arrived(Address::of(b"t"), &payload(0, 1, ORIGIN + MS), 0, ORIGIN + MS);
    dispatcher.arrived(Address::of(b"t"), &payload(0, END, ORIGIN), 0, ORIGIN + 2 * MS);
    dispatched.release(Ns::MAX);
    assert_eq!(dispatched.sequences(), [0, 1, END], "what is held back precedes the end marker");
    assert_eq!(dispatched.out[2].0, 501 * MS);
    assert_eq!(dispatched.dispatcher.tally.counts.reordered, 0);
    assert_eq!(dispatched.dispatcher.waiting_bytes(), 0);
}

#[test]
fn one_subscriber_stands_still_and_loses_nothing() {
    let mut dispatched =
        Dispatched::new("delay = { fixed = \"1ms\" }\n[[stall]]\nfrom = \"100ms\"\nfor = \"200ms\"\nsubscriber = 0");
    dispatched.run(uniform(1, 100, SECOND), 0);
    assert_eq!(dispatched.out.len(), 100);
    assert_eq!(dispatched.dispatcher.tally.counts.stalled_copies, 20, "due from 99 ms on, released from 100 ms on");
    assert!(dispatched.out.iter().all(|(at, ..)| !(100 * MS..300 * MS).contains(at)));
    let mut dispatcher =
        Dispatcher::new(PeerScript::parse("[[stall]]\nfrom = \"0s\"\nfor = \"1s\"\nsubscriber = 3").unwrap());
    dispatcher.arrived(Address::of(b"t"), &payload(0, 0, ORIGIN), 0, ORIGIN);
    let planned = dispatcher.next(ORIGIN).unwrap();
    assert!(dispatcher.may_go(&planned, 9, 2) && !dispatcher.may_go(&planned, 9, 3));
    let later = dispatcher.next(ORIGIN + SECOND).unwrap();
    assert_eq!((later.at_ns, later.only), (ORIGIN + SECOND, Some(9)));
}

#[test]
fn the_server_stands_still_from_the_origin_on() {
    let mut dispatcher = Dispatcher::new(PeerScript::parse("[[stall]]\nfrom = \"1s\"\nfor = \"1s\"").unwrap());
    assert_eq!(dispatcher.stalled_until(ORIGIN + SECOND), None, "the origin is not known yet");
    dispatcher.arrived(Address::of(b"t"), &payload(1, 0, ORIGIN - SECOND), 0, ORIGIN);
    assert_eq!(dispatcher.stalled_until(ORIGIN + SECOND), None, "another publisher's message sets no origin");
    dispatcher.arrived(Address::of(b"t"), &payload(0, 0, ORIGIN), 0, ORIGIN);
    assert_eq!(dispatcher.stalled_until(ORIGIN + SECOND), Some(ORIGIN + 2 * SECOND));
    assert_eq!(dispatcher.stalled_until(ORIGIN + 2 * SECOND), None);
}

#[test]
fn a_server_serves_one_message_after_the_other() {
    let text = "service = 1000";
    let mut dispatched = Dispatched::new(text);
    // A tenth more than it can serve, from five publishers.
    dispatched.run(uniform(5, 220, 2 * SECOND), MS / 10);
    let script = PeerScript::parse(text).unwrap();
    let truth = truth(&script, uniform(5, 220, 2 * SECOND), 0, 2 * SECOND);
    let due: std::collections::HashMap<(u32, u32), Ns> =
        uniform(5, 220, 2 * SECOND).map(|due| ((due.publisher, due.sequence), due.at_ns)).collect();
    let mut found: Vec<Ns> =
        dispatched.out.iter().map(|(at, publisher, sequence, _)| at - due[&(*publisher, *sequence)]).collect();
    found.sort_unstable();
    assert_eq!(found, truth.latencies_ns);
    let gaps = dispatched.out.windows(2).map(|pair| pair[1].0 - pair[0].0);
    assert!(gaps.into_iter().all(|gap| gap >= MS), "one at a time");
}
