//! Request-reply over brokers: each protocol's own idiom, requests without an answer, and what stays at the server.

use crate::known_answers::Peer;
use crate::support::{Place, count, free_port, stderr, stdout};
use serde_json::Value;
use std::process::Command;

const ASKS: [&str; 4] = ["--pattern", "request-reply", "--pairs", "2"];

/// Runs a bench of one second and returns its record.
fn bench(place: &Place, arguments: &[&str]) -> Value {
    place.measure(&[arguments, &ASKS[..]].concat())
}

fn counts(record: &Value) -> [u64; 5] {
    ["offered", "expected", "delivered", "lost", "duplicated"].map(|name| count(record, name))
}

/// Messages 20 to 119 of each of two requesters count. Every fiftieth is lost, and with it its answer. One request comes
/// twice, and each of its two answers too.
#[test]
fn a_lost_request_has_no_answer_and_each_copy_has_one() {
    const SCRIPT: &str = "lose = { every = 50 }\nduplicate = { at = [[1, 30]] }";
    for (protocol, more) in [
        ("mqtt", &[][..]),
        ("mqtt", &["--qos", "1", "--set", "options.mqtt_version=5", "--set", "outstanding=1000"]),
        ("nats", &["--set", "outstanding=1000"]),
        ("nats", &[]),
        ("redis", &[]),
        ("amqp", &["--qos", "1"]),
        ("amqp", &["--set", "outstanding=1000"]),
        ("amqp", &["--set", "options.reply_queue=exclusive"]),
    ] {
        let place = Place::new();
        let peer = Peer::start(&place, protocol, SCRIPT);
        let load = [peer.endpoint.as_str(), "--rate", "100", "--payload", "64B", "--set", "drain=50ms"];
        let record = bench(&place, &[&load[..], more].concat());
        let what = format!("{protocol} {more:?}: {}", record["counts"]);
        // A requester that waited for the answer asks late, but asks.
        assert_eq!(counts(&record), [200, 200, 196, 4, 3], "{what}");
        let max_ms = record["latency_ns"]["max"].as_u64().unwrap() / 1_000_000;
        assert!(max_ms >= 35 || more.contains(&"outstanding=1000"), "in turn, the next request waits: {max_ms} ms");
        drop(peer);
        place.assert_swept();
    }
}

/// Requests and answers that are in the server for 100 ms are late by that, and no more.
#[test]
fn a_stall_of_the_server_is_in_the_round_trip() {
    for (protocol, outstanding) in [("mqtt", "1000"), ("nats", "1000"), ("amqp", "1000"), ("redis", "1")] {
        let place = Place::new();
        let peer = Peer::start(&place, protocol, "[[stall]]\nfrom = \"500ms\"\nfor = \"100ms\"");
        let outstanding = format!("outstanding={outstanding}");
        let record = bench(&place, &[&peer.endpoint, "--rate", "200", "--payload", "64B", "--set", &outstanding]);
        assert_eq!(counts(&record), [400, 400, 400, 0, 0], "{protocol}");
        let max_ms = record["latency_ns"]["max"].as_u64().unwrap() / 1_000_000;
        // One was due 5 ms after the stall began at the latest.
        assert!(max_ms >= 94, "{protocol}: {max_ms} ms");
        drop(peer);
        place.assert_swept();
    }
}

/// Requests take 1 ms in the server, and answers 3 ms: each leg has its own, and all are the round trip.
#[test]
fn a_round_trip_is_split_into_request_replier_and_answer() {
    const SCRIPT: &str = "delay = { fixed = \"1ms\" }\nanswer_delay = \"3ms\"";
    const LEGS: [&str; 3] = ["request_latency_ns", "replier_time_ns", "reply_latency_ns"];
    for (protocol, more) in [
        ("mqtt", &["--set", "outstanding=1000"][..]),
        ("mqtt", &["--qos", "1", "--payload", "uniform 64B to 1KiB", "--set", "verify=full"]),
        ("nats", &["--set", "outstanding=1000"]),
        ("amqp", &["--qos", "1"]),
        ("redis", &[]),
    ] {
        let place = Place::new();
        let peer = Peer::start(&place, protocol, SCRIPT);
        let record = bench(&place, &[&[peer.endpoint.as_str(), "--rate", "100"], more].concat());
        assert_eq!(counts(&record), [200, 200, 200, 0, 0], "{protocol} {more:?}");
        assert_eq!(record["counts"]["corrupted"], 0, "{protocol} {more:?}");
        let of = |name: &str, figure: &str| record[name][figure].as_f64().unwrap_or_else(|| panic!("{name}: {record}"));
        assert_eq!(LEGS.map(|leg| of(leg, "count")), [200.0; 3], "{protocol} {more:?}");
        // A histogram's bucket may begin 0.1 % before the values in it.
        assert!(of(LEGS[0], "min") >= 0.999e6 && of(LEGS[2], "min") >= 2.997e6, "{protocol}: {record}");
        assert!(of(LEGS[0], "p50") < of(LEGS[2], "p50"), "{protocol}: {} {}", record[LEGS[0]], record[LEGS[2]]);
        let (sum, whole) = (LEGS.iter().map(|leg| of(leg, "mean")).sum::<f64>(), of("service_latency_ns", "mean"));
        assert!((sum - whole).abs() <= whole / 250.0, "{protocol}: {sum} {whole}");
        drop(peer);
        place.assert_swept();
    }
}

/// Every tenth request of each requester is lost. The answers to requests that come in the server's stall of 300 ms
/// arrive after the limit of 100 ms: they are late, and not lost.
#[test]
fn requests_that_time_out_are_counted_apart_from_those_that_are_lost() {
    const LOST: (&str, &str, u64) = ("lose = { every = 10 }", "timeout=900ms", 20);
    const STALLED: (&str, &str, u64) = ("[[stall]]\nfrom = \"500ms\"\nfor = \"300ms\"", "timeout=100ms", 0);
    for (protocol, outstanding) in [("mqtt", "1000"), ("nats", "1000"), ("amqp", "1000"), ("redis", "1")] {
        let place = Place::new();
        let outstanding = format!("outstanding={outstanding}");
        for (script, timeout, lost) in [LOST, STALLED] {
            let peer = Peer::start(&place, protocol, script);
            // In turn, those that come after a lost one would never be sent.
            let timeout = if protocol == "redis" { "timeout=100ms" } else { timeout };
            let load = [&peer.endpoint, "--rate", "100", "--set", timeout, "--set", "drain=1s"];
            let record = bench(&place, &[&load[..], &["--set", &outstanding]].concat());
            let what = format!("{protocol}: {}", record["counts"]);
            assert_eq!(counts(&record), [200, 200, 200 - lost, lost, 0], "{what}");
            let found = count(&record, "timed_out");
            // By the schedule, 20 messages of each requester are sent more than 100 ms before the stall's end; in turn,
            // one.
            match (lost, protocol) {
                (0, "redis") => assert!(found >= 2, "{what}"),
                (0, _) => assert!(found >= 30, "{what}"),
                (_, "redis") => assert!(found >= lost, "{what}"),
                _ => assert_eq!(found, lost, "{what}"),
            }
            std::fs::remove_dir_all(place.path("r")).unwrap();
        }
        place.assert_swept();
    }
}

/// Answers take 300 ms, and each is awaited for 100 ms.
#[test]
fn answers_that_are_all_late_are_delivered_and_timed_out() {
    let place = Place::new();
    let peer = Peer::start(&place, "nats", "answer_delay = \"300ms\"");
    let load = [peer.endpoint.as_str(), "--rate", "100", "--set", "timeout=100ms", "--set", "outstanding=8"];
    let record = bench(&place, &load);
    let [offered, expected, delivered, lost, duplicated] = counts(&record);
    assert_eq!((expected, delivered, lost + duplicated), (offered, offered, 0), "{}", record["counts"]);
    assert_eq!(count(&record, "timed_out"), delivered);
}

#[test]
fn brokers_answer_by_their_own_idioms() {
    for (system, more) in [
        ("mosquitto", &["--qos", "1"][..]),
        ("mosquitto", &["--qos", "2", "--set", "options.mqtt_version=5"]),
        ("nats", &["--set", "outstanding=8"]),
        ("redis", &["--set", "options.resp=2"]),
        ("redis", &["--set", "options.resp=3"]),
        ("rabbitmq-amqp", &["--qos", "1", "--set", "outstanding=8"]),
        ("rabbitmq-amqp", &["--qos", "1", "--set", "options.reply_queue=exclusive"]),
    ] {
        for rate in ["200", "max"] {
            let place = Place::new();
            let record = bench(&place, &[&[system, "--rate", rate], more].concat());
            let what = format!("{system} {more:?} {rate}: {}", record["counts"]);
            let [offered, expected, delivered, lost, duplicated] = counts(&record);
            assert_eq!((expected, delivered, lost + duplicated), (offered, offered, 0), "{what}");
            assert!(if rate == "200" { offered == 400 } else { offered > 400 }, "{what}");
            assert_eq!(count(&record, "acked"), if more[0] == "--qos" { offered } else { 0 }, "{what}");
            assert_eq!(record["latency_ns"]["count"], offered, "{what}");
            assert_eq!(record["connections"]["opened"], 4, "{what}");
            place.assert_swept();
        }
    }
}

/// Answers end in the middle, requests go on. Over Redis, both lists stay while they have entries.
#[test]
fn repliers_that_are_killed_leave_requests_without_answers_and_nothing_at_the_server() {
    let (place, home, port) = (Place::new(), Place::new(), free_port());
    let server = home.serve_system("redis", vec![(String::new(), port)]);
    let url = format!("redis://127.0.0.1:{port}");
    for (target, more) in [(url.as_str(), &[][..]), ("nats", &["--set", "outstanding=1000"])] {
        let killed = ["--fault", "kill subscribers at 500ms", "--set", "drain=100ms"];
        let record = bench(&place, &[&[target], &killed[..], more].concat());
        let [offered, expected, delivered, lost, duplicated] = counts(&record);
        assert!(offered <= 400 && delivered > 100 && lost > 0, "{target}: {}", record["counts"]);
        assert_eq!((delivered + lost, duplicated), (expected, 0), "{target}: {}", record["counts"]);
        std::fs::remove_dir_all(place.path("r")).unwrap();
    }
    let keys = Command::new("redis-cli").args(["-p", &port.to_string(), "KEYS", "*"]).output().unwrap();
    assert_eq!(stdout(&keys).trim(), "", "{}", stderr(&keys));
    server.stop();
    place.assert_swept();
}

/// A requester that comes back goes on at once: the answers that it waited for have nowhere to go.
#[test]
fn requesters_go_on_after_a_restart_of_the_server() {
    let place = Place::new();
    let killed = ["--duration", "2s", "--fault", "kill server at 300ms for 200ms"];
    // Requests that come before the replier has come back are lost. It tries again after 500 ms at most.
    for (outstanding, least) in [("outstanding=1", 700), ("outstanding=1000", 450)] {
        let record = bench(&place, &[&["mosquitto"], &killed[..], &["--set", outstanding]].concat());
        let [offered, expected, delivered, lost, duplicated] = counts(&record);
        assert_eq!((offered, duplicated), (800, 0), "{outstanding}: {}", record["counts"]);
        assert_eq!((expected, delivered + lost), (800, 800), "all that was due was sent: {}", record["counts"]);
        assert!(delivered >= least, "{outstanding}: {}", record["counts"]);
        std::fs::remove_dir_all(place.path("r")).unwrap();
    }
    place.assert_swept();
}

#[test]
fn what_requests_cannot_be_is_refused_before_the_run() {
    let place = Place::new();
    for (arguments, says) in [
        (&["redis", "--set", "outstanding=2"][..], "redis cannot have `outstanding` requests"),
        (&["zeromq", "--transport", "tcp", "--set", "outstanding=2"], "one request at a time"),
        (&["mosquitto", "--durable"], "`durable` has no meaning in pattern `request-reply`"),
        (&["mosquitto", "--set", "options.retain=true"], "would be answered again and again"),
        (&["nats", "--set", "outstanding=0"], "outstanding"),
        (&["nats", "--set", "timeout=11s"], "`timeout` is longer than `drain`, which is 10s"),
        (&["nats", "--set", "timeout=0s"], "timeout"),
        (&["zeromq-python", "--transport", "tcp", "--set", "timeout=1s"], "requests with a time limit: `timeout`"),
        (&["mosquitto", "--qos", "1", "--fault", "cut link at 200ms for 100ms"], "does not send its answers again"),
    ] {
        let output = place.run(&[&["bench"], arguments, &ASKS[..], &["--duration", "1s", "--out", "r"]].concat());
        let said = stderr(&output) + &stdout(&output);
        assert!(!output.status.success() && said.contains(says), "{arguments:?}: {said}");
    }
    for set in ["outstanding=2", "timeout=1s"] {
        let output = place.run(&["bench", "nats", "--set", set, "--duration", "1s", "--out", "r"]);
        let (key, _) = set.split_once('=').unwrap();
        let says = format!("`{key}` has no meaning in pattern `pairs`");
        assert!(stderr(&output).contains(&says), "{}", stderr(&output));
    }
}
