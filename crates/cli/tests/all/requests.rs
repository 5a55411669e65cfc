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
        (&["mosquitto", "--qos", "1", "--fault", "cut link at 200ms for 100ms"], "does not send its answers again"),
    ] {
        let output = place.run(&[&["bench"], arguments, &ASKS[..], &["--duration", "1s", "--out", "r"]].concat());
        let said = stderr(&output) + &stdout(&output);
        assert!(!output.status.success() && said.contains(says), "{arguments:?}: {said}");
    }
    let output = place.run(&["bench", "nats", "--set", "outstanding=2", "--duration", "1s", "--out", "r"]);
    assert!(stderr(&output).contains("`outstanding` has no meaning in pattern `pairs`"), "{}", stderr(&output));
}
