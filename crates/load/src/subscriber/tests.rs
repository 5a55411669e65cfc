use super::*;
use crate::publisher::{Marker, Next, Publisher};
use pubmark_model::header::pattern;

fn workload(pairs: &[(&str, &str)]) -> Workload {
    Workload::of(pairs.iter().copied()).unwrap()
}

fn message(len: usize, publisher: u32, sequence: u32, intended_ns: Ns) -> Vec<u8> {
    let mut message = pattern(len);
    let (sent_ns, free_ns) = (Some(intended_ns + 10), Some(intended_ns));
    assert!(Header { intended_ns, publisher, sequence, sent_ns, free_ns }.write(&mut message));
    message
}

fn subscriber(workload: &Workload) -> Subscriber {
    let mut subscriber = Subscriber::new(workload, 0..workload.publishers);
    subscriber.start(Window::new(workload, 1_000_000_000));
    subscriber
}

const FROM: Ns = 2_000_000_000;

#[test]
fn order_is_checked_within_each_part_of_a_topic() {
    let workload = workload(&[("payload", "64"), ("warmup", "1s"), ("duration", "1s")]);
    for (arrivals, reordered) in [
        (&[(0, 0), (1, 0), (3, 0), (2, 0)][..], 1),
        (&[(1, 1), (0, 0), (3, 1), (2, 0)], 0),
        (&[(3, 1), (0, 0), (1, 1), (2, 0)], 1),
        (&[(5, 63), (4, 2), (0, 63), (1, 2)], 2),
    ] {
        let mut subscriber = subscriber(&workload);
        for (sequence, part) in arrivals.iter().copied() {
            let intended = FROM + u64::from(sequence) * 1_000_000;
            subscriber.recorder_mut().part = part;
            subscriber.arrived(&message(64, 0, sequence, intended), intended + 100_000);
        }
        assert_eq!(subscriber.recorder().counts().reordered, reordered, "{arrivals:?}");
    }
}

#[test]
fn every_kind_of_fault_is_counted_apart() {
    let workload = workload(&[("verify", "full"), ("payload", "64"), ("warmup", "1s"), ("duration", "1s")]);
    let mut subscriber = subscriber(&workload);
    for sequence in [0u32, 1, 3, 2, 2, 6] {
        let intended = FROM + u64::from(sequence) * 1_000_000;
        subscriber.arrived(&message(64, 0, sequence, intended), intended + 100_000);
    }
    let mut damaged = message(64, 0, 7, FROM + 7_000_000);
    damaged[40] ^= 1;
    subscriber.arrived(&damaged, FROM + 7_100_000);
    subscriber.arrived(&damaged[..60], FROM + 7_200_000);
    subscriber.arrived(&message(64, 9, 8, FROM + 8_000_000), FROM + 8_100_000);
    subscriber.close(&Totals::new(&[PublisherTotal {
        publisher: 0,
        sent: 9,
        window_first: 0,
        window_end: 9,
        offered: 9,
    }]));
    let counts = subscriber.recorder().counts();
    assert_eq!((counts.expected, counts.delivered), (9, 6), "4, 5 and 8 are lost");
    assert_eq!((counts.duplicated, counts.reordered), (1, 1));
    assert_eq!((counts.corrupted, counts.unidentified), (3, 2));
    assert_eq!(
        subscriber.recorder_mut().times().latency.as_ref().unwrap().count(),
        5,
        "a damaged message has no latency"
    );
    assert_eq!(subscriber.recorder().jitter().1, 1, "only 0 and 1 came one after the other");
}

/// If sizes vary, a message has the length that its number says, and each byte of its body is checked.
#[test]
fn a_wrong_size_and_a_wrong_body_are_damage() {
    let settings = [("verify", "full"), ("payload", "uniform 20B to 200B"), ("warmup", "1s"), ("duration", "1s")];
    let workload = workload(&settings);
    let mut subscriber = subscriber(&workload);
    let sizes = workload.message_sizes().unwrap();
    let due = |sequence: u32| FROM + u64::from(sequence) * 1_000_000;
    let whole = |sequence: u32| message(sizes.bytes(0, sequence), 0, sequence, due(sequence));
    let mut arrive = |message: &[u8], sequence| subscriber.arrived(message, due(sequence) + 100_000);
    for sequence in 0..100 {
        arrive(&whole(sequence), sequence);
    }
    // A second copy; one that is too short, and one that is too long; a damaged body; a marker.
    arrive(&whole(0), 100);
    let (short, damaged) = (whole(100), whole(101));
    arrive(&short[..short.len() - 1], 100);
    arrive(&[&short[..], &[0]].concat(), 100);
    let mut damaged = damaged;
    *damaged.last_mut().unwrap() ^= 1;
    let has_body = damaged.len() > 24;
    arrive(&damaged, 101);
    arrive(&message(20, 0, END, due(102)), 102);
    let total = PublisherTotal { publisher: 0, sent: 102, window_first: 0, window_end: 102, offered: 102 };
    subscriber.close(&Totals::new(&[total]));
    let counts = subscriber.recorder().counts();
    assert!(has_body);
    assert_eq!((counts.expected, counts.delivered, counts.duplicated), (102, 101, 1), "100 is lost");
    assert_eq!((counts.corrupted, counts.unidentified), (3, 2));
    assert!(subscriber.incoming().ended());
    let bytes = subscriber.recorder().bytes();
    let sum = sizes.sum_bytes(0, 0..100) + damaged.len() as u64;
    assert_eq!((bytes.delivered, bytes.arrived), (sum, sum));
}

/// A damaged number can name a message that was never sent: within the ledger's room,
/// just beyond it, and far beyond it.
#[test]
fn what_was_never_sent_is_damage_and_delivers_nothing() {
    let workload = workload(&[("payload", "64"), ("rate", "1000"), ("warmup", "1s"), ("duration", "1s")]);
    let room = ledger_capacity(&workload) as u32;
    let mut subscriber = subscriber(&workload);
    let totals =
        |sent| Totals::new(&[PublisherTotal { publisher: 0, sent, window_first: 0, window_end: sent, offered: sent }]);
    for sequence in [0u32, 1, 2, 700] {
        subscriber.arrived(&message(64, 0, sequence, FROM), FROM);
    }
    assert!(!subscriber.complete(&totals(4), false), "four came, and only three of the four that were sent");
    for sequence in [room + 63, room + 64, 1_000_000, 1_000_001, 1_000_001, END - 1] {
        subscriber.arrived(&message(64, 0, sequence, FROM), FROM);
    }
    assert!(subscriber.complete(&totals(3), false));
    subscriber.close(&totals(4));
    let counts = subscriber.recorder().counts();
    assert_eq!((counts.expected, counts.delivered), (4, 3));
    assert_eq!((counts.corrupted, counts.unidentified), (7, 7));
    assert_eq!((counts.duplicated, counts.reordered), (0, 0));
}

/// The publisher has the times; its subscribers have the counts.
#[test]
fn an_echo_is_measured_where_it_arrives_and_counted_where_messages_are_heard() {
    let size = [("payload", "64"), ("warmup", "1s"), ("duration", "1s")];
    let workload = workload(&[&[("pattern", "fan-out-echo"), ("subscribers", "3")], &size[..]].concat());
    let mut publisher = Subscriber::of_answers(&workload, 0);
    publisher.start(Window::new(&workload, 1_000_000_000));
    let mut hears = subscriber(&workload);
    for sequence in [0u32, 1, 3] {
        let intended = FROM + u64::from(sequence) * 1_000_000;
        hears.arrived(&message(64, 0, sequence, intended), intended + 100_000);
        // The echo of the last message is lost.
        if sequence < 3 {
            publisher.arrived(&message(64, 0, sequence, intended), intended + 200_000);
        }
    }
    let totals = Totals::new(&[PublisherTotal { publisher: 0, sent: 4, window_first: 0, window_end: 4, offered: 4 }]);
    let counts = |one: &mut Subscriber| {
        one.close(&totals);
        let (counts, times) = (one.recorder().counts(), one.recorder_mut().times().latency.clone());
        let (arrived, _) = one.recorder().arrivals();
        ([counts.expected, counts.delivered, counts.unanswered, arrived], times.map(|times| times.count()))
    };
    assert_eq!(counts(&mut hears), ([4, 3, 0, 3], None));
    assert_eq!(counts(&mut publisher), ([0, 0, 2, 0], Some(2)));
    assert_eq!(publisher.recorder().stalls(), Stalls::default());
}

#[test]
fn after_the_drain_only_what_had_come_before_still_counts() {
    let workload = workload(&[("payload", "64"), ("warmup", "1s"), ("duration", "1s")]);
    let mut subscriber = subscriber(&workload);
    subscriber.arrived(&message(64, 0, 0, FROM), FROM);
    let (incoming, mut recorder) = subscriber.into_parts();
    // A duplicate, a new message, an end marker, one of the warm-up, one of another
    // publisher, a truncated one.
    for (sequence, intended_ns, publisher, length) in [
        (0, FROM, 0, 64),
        (1, FROM, 0, 64),
        (END, FROM, 0, 64),
        (0, FROM - 1, 0, 64),
        (0, FROM, 9, 64),
        (0, FROM, 0, 60),
    ] {
        incoming.arrived_after(&mut recorder, &message(64, publisher, sequence, intended_ns)[..length]);
    }
    assert_eq!((recorder.counts().duplicated, recorder.too_late()), (1, 1));
}

#[test]
fn latency_counts_from_the_intended_time() {
    let workload = workload(&[("payload", "64"), ("warmup", "1s"), ("duration", "1s")]);
    let mut subscriber = subscriber(&workload);
    for sequence in 0..1_000u32 {
        let intended = FROM + u64::from(sequence) * 1_000_000;
        subscriber.arrived(&message(64, 0, sequence, intended), intended + 50_000 + u64::from(sequence % 2) * 1_000);
    }
    let TimeFigures { latency, service_latency: service, .. } = subscriber.recorder_mut().times();
    let (latency, service) = (latency.as_ref().unwrap(), service.as_ref().unwrap());
    assert!((latency.value_at(0.5) as f64 - 50_000.0).abs() < 60.0);
    assert!((latency.max() as f64 - 51_000.0).abs() < 60.0);
    assert!((service.max() as f64 - 50_990.0).abs() < 60.0);
    let (sum, pairs) = subscriber.recorder().jitter();
    assert_eq!((sum / pairs as f64, pairs), (1_000.0, 999));
}

#[test]
fn three_instants_at_the_publisher_make_three_latencies() {
    // If a message carries no ready time, its latency includes the generator delay.
    for (payload, headline) in [(64, 75_000), (32, 75_000), (24, 100_000)] {
        let text = payload.to_string();
        let mut subscriber = subscriber(&workload(&[("payload", &text), ("warmup", "1s"), ("duration", "1s")]));
        for sequence in 0..100u32 {
            let intended_ns = FROM + u64::from(sequence) * 1_000_000;
            let (sent_ns, free_ns) = (Some(intended_ns + 40_000), Some(intended_ns + 15_000));
            let mut message = pattern(payload);
            assert!(Header { intended_ns, publisher: 0, sequence, sent_ns, free_ns }.write(&mut message));
            subscriber.listened(intended_ns + 98_000);
            subscriber.arrived(&message, intended_ns + 100_000);
        }
        let recorder = subscriber.recorder_mut();
        let times = recorder.times().as_ref().map(|times| times.as_ref().map(|times| times.value_at(0.5)));
        let found = [times.latency, times.intended_latency, times.service_latency];
        for (found, expected) in found.into_iter().zip([headline, 100_000, 60_000]) {
            assert!(found.unwrap().abs_diff(expected) < 100, "{payload}: {found:?} {expected}");
        }
        assert!((times.send_lag, times.own_lag) == (None, None), "a subscriber does not measure those");
        let lag = recorder.times().receive_lag.as_ref().unwrap();
        assert_eq!((lag.count(), lag.max()), (100, 2_000));
        let (first, second) = recorder.jitter();
        assert_eq!((first, second), (0.0, 99));
    }
}

#[test]
fn a_clock_that_is_read_now_and_then_is_no_damage() {
    let workload = workload(&[("payload", "16"), ("rate", "max"), ("warmup", "1s"), ("duration", "5s")]);
    let mut subscriber = subscriber(&workload);
    subscriber.arrived(&message(16, 0, 0, FROM + 3 * SECOND), FROM);
    assert_eq!((subscriber.recorder().counts().corrupted, subscriber.recorder().received()), (0, 1));
    assert_eq!(
        subscriber.recorder_mut().slices().0.iter().position(|count| *count > 0),
        Some(12),
        "3 s into 5 s, by 250 ms"
    );
    subscriber.arrived(&message(16, 0, 1, FROM + 7 * SECOND), FROM);
    assert_eq!(subscriber.recorder().counts().corrupted, 1, "nothing is due after the window");
}

#[test]
fn warmup_and_tail_stay_outside() {
    let workload = workload(&[("payload", "16"), ("warmup", "1s"), ("duration", "1s")]);
    let mut subscriber = subscriber(&workload);
    subscriber.arrived(&message(16, 0, 0, FROM - 1)[..16], FROM + 5);
    subscriber.arrived(&message(16, 0, 1, FROM)[..16], FROM + 5);
    subscriber.arrived(&message(16, 0, 2, FROM + SECOND - 1)[..16], FROM + SECOND + 5);
    subscriber.close(&Totals::new(&[PublisherTotal {
        publisher: 0,
        sent: 3,
        window_first: 1,
        window_end: 3,
        offered: 2,
    }]));
    assert_eq!((subscriber.recorder().counts().expected, subscriber.recorder().counts().delivered), (2, 2));
    assert_eq!(subscriber.recorder_mut().times().latency.as_ref().unwrap().count(), 2);
    assert_eq!(subscriber.recorder().arrivals().0, 2, "arrivals are counted by their own time");
}

#[test]
fn a_silence_is_a_stall_with_its_place() {
    let workload = workload(&[("payload", "16"), ("warmup", "1s"), ("duration", "5s")]);
    let mut subscriber = subscriber(&workload);
    for sequence in 0..5_000u32 {
        let intended = FROM + u64::from(sequence) * 1_000_000;
        let held = (FROM + 2 * SECOND..FROM + 3 * SECOND).contains(&intended);
        let at = if held { FROM + 3 * SECOND } else { intended };
        subscriber.arrived(&message(16, 0, sequence, intended)[..16], at + 1_000);
    }
    let stalls = subscriber.recorder().stalls();
    assert_eq!(stalls.count, 1);
    assert_eq!(stalls.longest_ns / 1_000_000, 1_001);
    assert_eq!(stalls.longest_at_ns / 1_000_000, 1_999);
}

#[test]
fn end_marker_or_all_messages_complete_a_stream() {
    let workload = workload(&[("payload", "64"), ("warmup", "1s")]);
    let mut subscriber = subscriber(&workload);
    let total = Totals::new(&[PublisherTotal { publisher: 0, sent: 2, window_first: 0, window_end: 2, offered: 2 }]);
    subscriber.arrived(&message(64, 0, 0, FROM), FROM);
    assert!(!subscriber.complete(&total, true));
    subscriber.arrived(&message(64, 0, END, FROM), FROM);
    assert!(subscriber.complete(&total, true));
    assert!(!subscriber.complete(&total, false), "without order, something may still come");
    subscriber.arrived(&message(64, 0, 1, FROM), FROM);
    assert!(subscriber.complete(&total, false));
}

#[test]
fn any_bytes_do_no_harm() {
    let workload = workload(&[("payload", "64"), ("warmup", "1s"), ("duration", "1s")]);
    let mut subscriber = subscriber(&workload);
    let mut random = pubmark_stats::Random(5);
    for round in 0..20_000 {
        let bytes: Vec<u8> = (0..round % 80).map(|_| random.bits() as u8).collect();
        subscriber.arrived(&bytes, FROM + round);
    }
    assert_eq!(subscriber.recorder().counts().corrupted, 20_000);
    assert_eq!(subscriber.recorder().received(), 0);
}

/// A header that differs from what its publisher wrote identifies no message, whatever it
/// contains: a sent message, an earlier time, or a marker.
#[test]
fn a_header_whose_checksum_is_wrong_names_no_message() {
    let plain = workload(&[("verify", "full"), ("payload", "64"), ("warmup", "1s"), ("duration", "1s")]);
    let workload = Workload { header_checksum: true, ..plain.clone() };
    let mut publisher = Publisher::new(&workload, 0, Window::new(&workload, 1_000_000_000), 1_000);
    let mut sealed = |now: Ns| {
        while publisher.next(now) != Next::Send {}
        let message = publisher.message(now).to_vec();
        publisher.accepted(now, now);
        message
    };
    let messages: Vec<Vec<u8>> = (0..6).map(|_| sealed(FROM + SECOND / 2)).collect();
    let mut marker = Marker::new(&workload, 0);
    let (probe, end) = (marker.message(PROBE, FROM).to_vec(), marker.message(END, FROM).to_vec());
    let mut subscriber = subscriber(&workload);
    let mut heard = |message: &[u8], at: Option<usize>| {
        let mut message = message.to_vec();
        at.into_iter().for_each(|at| message[at] ^= 1);
        subscriber.arrived(&message, FROM + SECOND / 2);
        let counts = subscriber.recorder().counts();
        [subscriber.recorder().received(), counts.corrupted, counts.unidentified, u64::from(subscriber.heard_all())]
    };
    assert_eq!(heard(&probe, Some(20)), [0, 1, 1, 0]);
    assert_eq!(heard(&probe, None), [0, 1, 1, 1]);
    assert_eq!(heard(&messages[0], None), [1, 1, 1, 1]);
    for (number, at) in [0, 9, 12, 17, 25, 33].into_iter().enumerate() {
        let damaged = 2 + number as u64;
        assert_eq!(heard(&messages[1], Some(at)), [1, damaged, damaged, 1], "byte {at}");
    }
    assert_eq!(heard(&end, Some(3)), [1, 8, 8, 1]);
    assert_eq!(heard(&messages[2], Some(40)), [2, 8, 8, 1], "of the warm-up, so that its body is nobody's affair");
    // A subscriber without checksums takes the checksum for a part of the body.
    let mut other = super::tests::subscriber(&plain);
    other.arrived(&messages[0], FROM + SECOND / 2);
    assert_eq!((other.recorder().received(), other.recorder().counts().unidentified), (1, 0));
}
