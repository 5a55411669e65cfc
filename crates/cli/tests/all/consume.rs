//! Subscribers that take messages at a rate of their own: what waits is not lost, and its latency tells how long.

use crate::known_answers::Peer;
use crate::support::{Place, count, stderr, stdout};
use serde_json::Value;

fn counts(record: &Value) -> [u64; 4] {
    ["expected", "delivered", "lost", "duplicated"].map(|name| count(record, name))
}

fn latency_ms(record: &Value, name: &str) -> u64 {
    record["latency_ns"][name].as_u64().unwrap() / 1_000_000
}

fn per_s(record: &Value) -> f64 {
    record["rates"]["delivered_per_s"].as_f64().unwrap()
}

fn reasons(record: &Value) -> Vec<&str> {
    let reasons = record["verdict"]["reasons"].as_array().unwrap();
    reasons.iter().filter_map(|reason| reason["reason"].as_str()).collect()
}

/// Two pairs at 400 messages/s, of which each subscriber takes 100: after 1.2 s the oldest message that waits was sent
/// 0.9 s ago. Every seventh message is lost, and one comes twice.
#[test]
fn what_waits_for_a_slow_subscriber_is_not_lost() {
    const SCRIPT: &str = "lose = { every = 7 }\nduplicate = { at = [[1, 140]] }";
    for protocol in ["mqtt", "nats", "redis", "amqp", "kafka", "zenoh"] {
        let place = Place::new();
        let peer = Peer::start(&place, protocol, SCRIPT);
        let load = ["--pairs", "2", "--rate", "400", "--payload", "256B", "--set", "consume=100"];
        let record = place.measure(&[&[peer.endpoint.as_str()], &load[..]].concat());
        // Of 400 sequences from 80 on, 57 end a seven.
        assert_eq!(counts(&record), [800, 686, 114, 1], "{protocol}");
        // One message more each, which a subscriber may take at once, and one that it makes up for.
        assert!(per_s(&record) <= 204.0, "{protocol}: {}", per_s(&record));
        assert!(latency_ms(&record, "max") >= 700 && latency_ms(&record, "p50") >= 200, "{protocol}: {record}");
        let reasons = reasons(&record);
        assert!(!reasons.contains(&"not-steady") && !reasons.contains(&"overload"), "{protocol}: {reasons:?}");
        let notes = record["verdict"]["notes"].to_string();
        assert!(notes.contains("`consume = 100`, as requested"), "{protocol}: {notes}");
        drop(peer);
        place.assert_swept();
    }
}

/// A pause from 0.2 s to 0.7 s after the start, with a stall of the server before it; then all that waits is taken.
#[test]
fn a_backlog_is_built_and_drained() {
    for protocol in ["mqtt", "nats", "redis", "amqp", "kafka", "zenoh"] {
        let place = Place::new();
        let peer = Peer::start(&place, protocol, "[[stall]]\nfrom = \"100ms\"\nfor = \"50ms\"");
        let load = ["--pairs", "2", "--rate", "200", "--payload", "64B"];
        let pause = ["--set", "consume=steps 1000000 0.001 1000000 each 500ms"];
        let record = place.measure(&[&[peer.endpoint.as_str()], &load[..], &pause[..]].concat());
        assert_eq!(counts(&record), [400, 400, 0, 0], "{protocol}");
        // What was sent as the pause began may still be taken for 10 ms; what is due 5 ms later waits for the rest. On a
        // busy machine it may be sent late, which a latency does not contain.
        let longest_ns = record["intended_latency_ns"]["max"].as_u64().unwrap();
        assert!(longest_ns >= 480_000_000, "{protocol}: {record}");
        assert!(latency_ms(&record, "min") < 100, "{protocol}: {record}");
        drop(peer);
        place.assert_swept();
    }
}

#[test]
fn subscribers_of_real_systems_take_messages_at_their_rate() {
    for (system, more) in [
        ("mosquitto", &["--qos", "1"][..]),
        ("nats", &[]),
        ("redis", &[]),
        ("rabbitmq-amqp", &["--qos", "1"]),
        ("zeromq", &["--transport", "tcp"]),
        ("nng", &["--transport", "ipc"]),
        ("kernel", &["--transport", "inproc"]),
    ] {
        let place = Place::new();
        let load = ["--pattern", "fan-out", "--subscribers", "2", "--rate", "200", "--payload", "64B"];
        let record = place.measure(&[&[system], &load[..], &["--set", "consume=100"], more].concat());
        assert_eq!(counts(&record), [400, 400, 0, 0], "{system}");
        assert!((100.0..=204.0).contains(&per_s(&record)), "{system}: {}", per_s(&record));
        assert!(latency_ms(&record, "max") >= 400, "{system}: {record}");
        place.assert_swept();
    }
}

/// Only one flow has a slow subscriber; the other's latency is its own.
#[test]
fn a_slow_flow_is_told_from_the_others() {
    let place = Place::new();
    let slow = "slow: rate=100, consume=50";
    let arguments = ["bench", "nats", "--flow", slow, "--flow", "quick: rate=200"];
    let fixed = ["--json", "--repeats", "2", "--warmup", "200ms", "--duration", "1s", "--out", "r"];
    let output = place.run(&[&arguments[..], &fixed[..]].concat());
    let said = stderr(&output);
    let told: Value = serde_json::from_str(&stdout(&output)).unwrap_or_else(|error| panic!("{error}: {said}"));
    for cell in told["cells"].as_array().unwrap() {
        let (flow, record) = (cell["cell"]["flow"].as_str().unwrap(), &cell["runs"][0]);
        assert_eq!(record["counts"]["lost"], 0, "{flow}");
        match flow {
            "slow" => assert!(latency_ms(record, "p50") >= 100, "{record}"),
            "quick" => assert!(latency_ms(record, "p50") < 50, "{record}"),
            _ => {}
        }
    }
    assert!(stdout(&place.run(&["report", "r", "--all"])).contains("consume"));
    let unknown = place.run(&["bench", "nats", "--flow", slow, "--require", "p50(quik) < 50ms"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(stderr(&unknown).contains("there is no flow `quik`; the flows: slow"), "{}", stderr(&unknown));
}

/// On the mock, message `i` is due after `i` ms and taken after `2 i` ms, until the window ends after 1,000 ms.
#[test]
fn the_mock_takes_messages_when_they_are_due_to_be_taken() {
    let place = Place::new();
    let record = &place.measure(&["mock", "--rate", "1000", "--set", "consume=500", "--warmup", "0s"]);
    assert_eq!(counts(record), [1_000, 1_000, 0, 0]);
    assert_eq!((latency_ms(record, "min"), latency_ms(record, "max")), (0, 500));
    assert!((249..=251).contains(&latency_ms(record, "p50")), "{record}");
}

fn drain_time_ms(record: &Value) -> u64 {
    record["drain_time_ns"].as_u64().unwrap() / 1_000_000
}

/// On the mock, 400 messages are due from 200 ms to 600 ms, and one is taken each 2 ms, 5 of them at once to begin with:
/// of the 195 that wait at the end, the last is taken after 390 ms.
#[test]
fn the_mock_drains_a_backlog_at_the_rate_of_its_subscribers() {
    let place = Place::new();
    let load = ["mock", "--rate", "1000", "--warmup", "0s", "--set", "start=200ms", "--set", "end=600ms"];
    let record = &place.measure(&[&load[..], &["--set", "consume=500"]].concat());
    assert_eq!(counts(record), [400, 400, 0, 0]);
    assert!((387..=392).contains(&drain_time_ms(record)), "{}", record["drain_time_ns"]);
    assert_eq!(count(record, "offered"), 400);
    std::fs::remove_dir_all(place.path("r")).unwrap();
    let quick = &place.measure(&load);
    assert_eq!((counts(quick), drain_time_ms(quick)), ([400, 400, 0, 0], 0));
}

/// Two pairs send 160 messages each from 100 ms to 500 ms, of which a subscriber takes 200 per second: the last of the
/// 80 that wait are taken 0.4 s later. Every seventh message is lost, one comes twice, and the server stalls at first.
#[test]
fn a_backlog_of_publishers_that_stop_is_drained_at_the_rate_of_the_subscribers() {
    const SCRIPT: &str =
        "lose = { every = 7 }\nduplicate = { at = [[1, 140]] }\n[[stall]]\nfrom = \"350ms\"\nfor = \"30ms\"";
    for protocol in ["mqtt", "nats", "redis", "amqp"] {
        let place = Place::new();
        let peer = Peer::start(&place, protocol, SCRIPT);
        let load = ["--pairs", "2", "--rate", "400", "--set", "start=100ms", "--set", "end=500ms"];
        let slow = ["--set", "consume=200"];
        let record = place.measure(&[&[peer.endpoint.as_str()], &load[..], &slow].concat());
        assert_eq!(count(&record, "offered"), 320, "{protocol}");
        // Of 160 sequences, 22 end a seven.
        assert_eq!(counts(&record), [320, 276, 44, 1], "{protocol}");
        // 138 messages of a pair take 0.69 s, less what may be made up for.
        assert!((200..1_000).contains(&drain_time_ms(&record)), "{protocol}: {}", record["drain_time_ns"]);
        let sent: Vec<u64> = record["series"]["sent"].as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).collect();
        assert_eq!((sent.iter().sum::<u64>(), sent[0]), (320, 0), "{protocol}: {sent:?}");
        assert!(record["stalls"]["longest_ns"].as_u64().unwrap() < 800_000_000, "{protocol}: silent as requested");
        let notes = record["verdict"]["notes"].to_string();
        assert!(notes.contains("messages were due from 100ms to 500ms of the window"), "{protocol}: {notes}");
        drop(peer);
        place.assert_swept();
    }
}

#[test]
fn requests_are_sent_in_a_part_of_the_window() {
    let place = Place::new();
    let peer = Peer::start(&place, "nats", "");
    let load = ["--pattern", "request-reply", "--rate", "100", "--set", "start=200ms", "--set", "end=700ms"];
    let record = place.measure(&[&[peer.endpoint.as_str()], &load[..]].concat());
    assert_eq!((count(&record, "offered"), counts(&record)), (50, [50, 50, 0, 0]));
}

#[test]
fn a_part_of_the_window_that_cannot_be_is_refused_before_the_run() {
    let place = Place::new();
    for (arguments, says) in [
        (&["mock", "--set", "end=2s"][..], "`end` is 2s, but the window lasts 1s"),
        (&["mock", "--set", "start=1s"], "`start` is 1s, but the window lasts 1s: no message would be due"),
        (&["mock", "--set", "start=500ms", "--set", "end=500ms"], "but `end` is 500ms"),
        (&["mock", "--rate", "max", "--set", "end=500ms"], "have no meaning where `rate` is `max`"),
        (&["zeromq-python", "--transport", "tcp", "--set", "end=500ms"], "messages in a part of the window: `span`"),
    ] {
        let output = place.run(&[&["bench"], arguments, &["--duration", "1s", "--out", "r"]].concat());
        let said = stderr(&output) + &stdout(&output);
        assert!(!output.status.success() && said.contains(says), "{arguments:?}: {said}");
    }
}

#[test]
fn each_subscriber_of_a_library_has_figures_of_its_own() {
    let place = Place::new();
    let load = ["--pattern", "fan-out", "--subscribers", "3", "--rate", "200"];
    for system in [&["zeromq", "--transport", "tcp"][..], &["mock", "--set", "options.mock.lose_every=10"]] {
        let record = place.measure(&[system, &load].concat());
        let each = record["subscribers"].as_array().unwrap();
        assert_eq!(each.iter().map(|one| one["subscriber"].as_u64().unwrap()).collect::<Vec<_>>(), [0, 1, 2]);
        for name in ["expected", "delivered"] {
            let sum: u64 = each.iter().map(|one| one["ledger"][name].as_u64().unwrap()).sum();
            assert_eq!(sum, count(&record, name), "{name}");
        }
        let slowest = each.iter().map(|one| one["latency_ns"]["max"].as_u64().unwrap()).max();
        assert_eq!(slowest, record["latency_ns"]["max"].as_u64());
        std::fs::remove_dir_all(place.path("r")).unwrap();
    }
    let broker = place.measure(&[&["nats"], &load[..]].concat());
    assert!(broker["subscribers"].is_null(), "an event loop has one recorder for all of its clients");
}

#[test]
fn who_cannot_be_slow_is_refused_before_the_run() {
    let place = Place::new();
    for (arguments, says) in [
        (&["mock", "--set", "consume=0"][..], "consume: `0`"),
        (
            &["mock", "--pattern", "request-reply", "--set", "consume=10"],
            "`consume` has no meaning in pattern `request-reply`",
        ),
        (
            &["zeromq-python", "--transport", "tcp", "--set", "consume=10"],
            "subscribers with a rate of their own: `consume`",
        ),
    ] {
        let output = place.run(&[&["bench"], arguments, &["--duration", "1s", "--out", "r"]].concat());
        let said = stderr(&output) + &stdout(&output);
        assert!(!output.status.success() && said.contains(says), "{arguments:?}: {said}");
    }
}
