use super::*;
use pubmark_model::header::pattern;

fn workload(pairs: &[(&str, &str)]) -> Workload {
    Workload::of(pairs.iter().copied()).unwrap()
}

/// Plays a publisher on a simulated clock; each send takes `cost`.
fn play(workload: &Workload, cost: Ns, stall: Option<(Ns, Ns)>) -> Publisher {
    let start = 1_000_000;
    let mut publisher = Publisher::new(workload, 0, Window::new(workload, start), 10_000_000);
    let mut now = start - 500_000;
    loop {
        match publisher.next(now) {
            Next::Done => return publisher,
            Next::Wait(until) => {
                assert!(until > now);
                now = until;
            }
            Next::Send => {
                let began = now;
                publisher.message(now);
                now += cost;
                publisher.accepted(began, now);
            }
        }
        if let Some((at, until)) = stall
            && (start + at..start + until).contains(&now)
        {
            now = start + until;
        }
    }
}

#[test]
fn offers_exactly_what_was_asked() {
    for (rate, seconds) in [("1", 10u64), ("1000", 3), ("50000", 2)] {
        let workload = workload(&[("rate", rate), ("warmup", "1s"), ("duration", &format!("{seconds}s"))]);
        let total = play(&workload, 1_000, None).total();
        let rate: u64 = rate.parse().unwrap();
        assert_eq!(total.offered, rate * seconds);
        assert_eq!(total.window_end - total.window_first, rate * seconds);
        assert_eq!(total.sent, rate * (seconds + 1));
    }
}

#[test]
fn a_stall_is_not_forgotten() {
    let workload = workload(&[("rate", "1000"), ("warmup", "1s"), ("duration", "10s")]);
    let publisher = play(&workload, 1_000, Some((5_000_000_000, 6_000_000_000)));
    assert_eq!(publisher.total().offered, 10_000);
    assert_eq!(publisher.total().window_end - publisher.total().window_first, 10_000);
    let TimeFigures { send_lag: lag, own_lag: own, .. } = publisher.times().as_ref().map(Option::as_ref);
    let (lag, own) = (lag.unwrap(), own.unwrap());
    assert!((lag.max() as f64 / 1e9 - 1.0).abs() < 0.01);
    assert!((lag.value_at(0.95) as f64 / 1e9 - 0.5).abs() < 0.01, "half of the stalled tenth waited over 0.5 s");
    assert!((own.max() as f64 / 1e9 - 1.0).abs() < 0.01, "it was the generator's own doing");
    assert!((own.value_at(0.95) as f64 / 1e9 - 0.5).abs() < 0.01, "and so was all that came late by it");
}

#[test]
fn a_send_that_takes_long_is_the_systems_doing() {
    let workload = workload(&[("rate", "1000"), ("warmup", "0s"), ("duration", "10s")]);
    let mut publisher = Publisher::new(&workload, 0, Window::new(&workload, 0), 1_000_000);
    let (mut now, mut number) = (0, 0);
    let mut longest = 0;
    loop {
        match publisher.next(now) {
            Next::Done => break,
            Next::Wait(until) => now = until + 3_000,
            Next::Send => {
                let header = Header::read(publisher.message(now)).unwrap();
                longest = longest.max(header.own_lag_ns().unwrap());
                let began = now;
                number += 1;
                now += if number == 5_000 { 1_000_000_000 } else { 1_000 };
                publisher.accepted(began, now);
            }
        }
    }
    let TimeFigures { send_lag: lag, own_lag: own, .. } = publisher.times().as_ref().map(Option::as_ref);
    assert!((lag.unwrap().max() as f64 / 1e9 - 1.0).abs() < 0.01);
    assert!(longest <= 3_000 && own.unwrap().max() <= 3_001, "{longest} ns: it was late by its timer only");
}

#[test]
fn who_is_refused_is_free_when_there_is_room() {
    let workload = workload(&[("rate", "1000"), ("warmup", "0s"), ("duration", "1s")]);
    let mut publisher = Publisher::new(&workload, 0, Window::new(&workload, 0), 1_000_000);
    assert_eq!(publisher.next(0), Next::Send);
    publisher.refused(20_000_000);
    assert_eq!(publisher.next(20_000_500), Next::Send);
    let header = Header::read(publisher.message(20_000_500)).unwrap();
    assert_eq!((header.intended_ns, header.free_ns, header.own_lag_ns()), (0, Some(20_000_000), Some(500)));
}

#[test]
fn what_cannot_be_sent_is_counted() {
    let workload = workload(&[("rate", "1000"), ("warmup", "0s"), ("duration", "2s"), ("drain", "1s")]);
    let total = play(&workload, 10_000_000, None).total();
    assert_eq!(total.offered, 2_000);
    assert_eq!(total.window_end - total.window_first, 300, "100 a second for 2 s and 1 s of drain");
}

#[test]
fn a_count_is_exact() {
    for rate in ["7", "1000", "max"] {
        let workload = workload(&[("rate", rate), ("warmup", "100ms"), ("count", "123")]);
        let total = play(&workload, 1_000, None).total();
        assert_eq!((total.offered, total.window_end - total.window_first), (123, 123), "{rate}");
    }
}

#[test]
fn what_is_in_flight_keeps_its_header_until_it_is_acknowledged() {
    let header = |sequence| Header {
        intended_ns: 10,
        publisher: 3,
        sequence,
        sent_ns: Some(u64::from(sequence)),
        free_ns: Some(10),
    };
    let mut flight = InFlight::default();
    (0..5).for_each(|sequence| flight.sent(header(sequence)));
    let settled = [3, 0, 0, 9].map(|sequence| flight.settled(sequence));
    assert_eq!(settled, [Some(header(3)), Some(header(0)), None, None]);
    let left: Vec<_> = (0..10).filter_map(|sequence| flight.header(sequence)).collect();
    assert_eq!(left, [header(1), header(2), header(4)]);
    (5..500).for_each(|sequence| flight.sent(header(sequence)));
    assert!(flight.held_bytes() > 0);
    (0..500).for_each(|sequence| assert!(flight.settled(sequence).is_none() || sequence > 0));
    assert_eq!(flight.held_bytes(), 0, "who has nothing in flight holds no memory for it");
}

#[test]
fn an_acknowledgement_is_timed_once_from_the_due_time_less_the_generator_delay() {
    let workload = workload(&[("rate", "1000"), ("warmup", "1ms"), ("duration", "4ms"), ("qos", "1")]);
    // A message of another host's clock, 5 ms ahead, is timed on the own one.
    let window = Window { ahead_ns: 5_000_000, ..Window::new(&workload, 0) };
    let mut outgoing = Outgoing::new(&workload, 0, 100);
    let mut recorder = SendRecorder::new(&workload, window);
    let mut message = vec![0; 64];
    let headers: Vec<Header> = (0..5)
        .map(|number| {
            let now = number * 1_000_000 + 300;
            assert_eq!(outgoing.next(&window, None, now), Next::Send);
            let (header, _) = outgoing.write(now, &mut message);
            outgoing.accepted(&mut recorder, now, now + 10);
            header
        })
        .collect();
    let mut acknowledge = |sequence: u32, now| {
        outgoing.acknowledged(&mut recorder, sequence, Some(headers[sequence as usize]), now);
    };
    // The first is of the warm-up; one is acknowledged twice, two out of order, one never.
    for (sequence, now) in [(0, 900_000), (3, 3_100_300), (3, 9_000_000), (1, 3_000_300)] {
        acknowledge(sequence, now);
    }
    outgoing.acknowledged(&mut recorder, 2, None, 5_000_000);
    let found: Vec<_> = recorder.times().ack_latency.as_ref().unwrap().nonzero().collect();
    let near = |(ns, count): (Ns, u64), wanted: Ns| count == 1 && ns.abs_diff(wanted) <= wanted / 500;
    assert!(found.len() == 2 && near(found[0], 100_000) && near(found[1], 2_000_000), "{found:?}");
    assert_eq!(recorder.acked(), 3, "a message without its header is counted and not timed");
}

#[test]
fn a_quantum_joins_wakeups_and_sends_nothing_early() {
    let workload = workload(&[("rate", "50000"), ("warmup", "0s"), ("duration", "1s"), ("pacing_quantum", "1ms")]);
    let mut publisher = Publisher::new(&workload, 0, Window::new(&workload, 1_000_000), 1_000_000);
    let (mut now, mut wakeups) = (0, 0);
    loop {
        match publisher.next(now) {
            Next::Done => break,
            Next::Wait(until) => (now, wakeups) = (until, wakeups + 1),
            Next::Send => {
                publisher.message(now);
                publisher.accepted(now, now);
            }
        }
    }
    assert_eq!(publisher.total().offered, 50_000);
    assert!(wakeups <= 1_002, "{wakeups}");
    assert!(publisher.times().send_lag.as_ref().unwrap().max() <= 1_001_000);
}

#[test]
fn the_dead_owe_nothing_that_falls_due_later_and_what_was_not_handed_over_was_not_sent() {
    let workload = workload(&[("rate", "1000"), ("warmup", "1s"), ("duration", "10s"), ("qos", "1")]);
    let window = Window::new(&workload, 0);
    // The system accepts nothing from 3 s on; at 3.5 s the client is killed.
    let killed = |taken_back: u64| {
        let mut outgoing = Outgoing::new(&workload, 0, 20_000);
        let mut recorder = SendRecorder::new(&workload, window);
        while outgoing.due_ns(&window) < 3_000_000_000 {
            let now = outgoing.due_ns(&window);
            assert_eq!(outgoing.next(&window, None, now), Next::Send);
            outgoing.accepted(&mut recorder, now, now);
        }
        outgoing.take_back(&mut recorder, taken_back);
        outgoing.finish_at(&window, 3_500_000_000);
        outgoing.finish(&window);
        (outgoing.total(), recorder.sent(), outgoing.unacknowledged().map(|range| range.end - range.first).sum::<u64>())
    };
    let total = |sent| PublisherTotal { publisher: 0, sent, window_first: 1_000, window_end: sent, offered: 2_501 };
    assert_eq!(killed(0), (total(3_000), 3_000, 2_000));
    assert_eq!(killed(2), (total(2_998), 2_998, 1_998));
    // All messages of the window and of the warm-up.
    let (nothing, recorded, unacked) = killed(2_500);
    assert_eq!((nothing.sent, nothing.window_first, nothing.window_end, recorded, unacked), (500, 500, 500, 500, 0));
}

/// Each message is the beginning of the longest one, with a header of its own, whatever was made in its place before.
#[test]
fn messages_of_different_sizes_have_whole_bodies() {
    for seal in [false, true] {
        let payload = if seal { "uniform 36B to 300B" } else { "mix 16B 20% 20B 20% 28B 40% 300B 20%" };
        let settings = [("pairs", "4"), ("payload", payload), ("warmup", "0s"), ("duration", "1s"), ("verify", "full")];
        let mut workload = Workload::of(settings).unwrap();
        workload.header_checksum = seal;
        let sizes = workload.message_sizes().unwrap();
        let window = Window::new(&workload, 1_000_000_000);
        let mut publisher = Publisher::new(&workload, 3, window, 1 << 20);
        let marker = Marker::new(&workload, 3);
        let mut again = pattern(300);
        let mut sum = 0;
        for sequence in 0..200u32 {
            let now = window.start_ns + u64::from(sequence + 1) * 1_000_000;
            assert_eq!((publisher.next(now), publisher.at_once()), (Next::Send, 1));
            let message = publisher.message(now).to_vec();
            let header = Header::read(&message).unwrap();
            assert_eq!((header.publisher, header.sequence), (3, sequence));
            assert_eq!(message.len(), sizes.bytes(3, sequence));
            let body_at = if seal { SEALED_LEN } else { body_at(message.len()) };
            assert_eq!(message[body_at..], pattern(300)[body_at..message.len()], "{sequence}");
            let free_ns = Some(header.intended_ns);
            let stamped = Header { sent_ns: Some(now), free_ns, ..header };
            assert_eq!(marker.stamp(&stamped, Some(&sizes), &mut again), message, "sent again");
            publisher.accepted(now, now);
            sum += message.len() as u64;
        }
        let (mut outgoing, mut recorder) = publisher.into_parts();
        assert_eq!(outgoing.sent_bytes(), sum);
        outgoing.take_back(&mut recorder, 2);
        assert_eq!(outgoing.sent_bytes(), sum - sizes.sum_bytes(3, 198..200));
    }
}
