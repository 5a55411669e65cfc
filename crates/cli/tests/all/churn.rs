//! Clients that come and go beside the measured ones, and clients whose connections are cut: each is counted, and the
//! ledger of the measured clients stays exact.

use crate::known_answers::Peer;
use crate::support::{Place, count, stderr, stdout};
use serde_json::Value;

const PROTOCOLS: [&str; 4] = ["mqtt", "nats", "redis", "amqp"];

fn counts(record: &Value) -> [u64; 4] {
    ["expected", "delivered", "lost", "duplicated"].map(|name| count(record, name))
}

/// Returns the counts of the clients that came and went.
fn churn(record: &Value) -> [u64; 4] {
    ["due", "connected", "failed", "late"]
        .map(|name| record["churn"][name].as_u64().unwrap_or_else(|| panic!("{record}")))
}

fn times(record: &Value, name: &str) -> u64 {
    record[name]["count"].as_u64().unwrap_or_else(|| panic!("{name}: {record}"))
}

/// Of 60 clients 10 come in the warm-up. The server closes the connection of one of these, and those of two of the
/// others. Of the 100 messages of the window two are lost, and one comes twice.
#[test]
fn each_client_that_comes_is_counted_once_and_messages_are_counted_as_ever() {
    const SCRIPT: &str = "lose = { every = 50 }\nduplicate = { at = [[0, 30]] }\nconnect = { close = [8, 23, 33] }";
    for protocol in PROTOCOLS {
        let place = Place::new();
        let peer = Peer::start(&place, protocol, SCRIPT);
        let load = [peer.endpoint.as_str(), "--rate", "100", "--payload", "64B", "--set", "late_after=5s"];
        let record = place.measure(&[&load[..], &["--set", "churn=50/s"]].concat());
        assert_eq!(counts(&record), [100, 98, 2, 1], "{protocol}");
        assert_eq!(churn(&record), [50, 48, 2, 0], "{protocol}: {}", record["churn"]);
        for name in ["connect_ns", "subscribe_ns"] {
            assert_eq!(times(&record["churn"], name), 48, "{protocol}");
        }
        assert_eq!(times(&record["churn"], "own_lag_ns"), 50, "{protocol}: all of them were tried");
        assert_eq!(times(&record["connections"], "subscribe_ns"), 1, "{protocol}: there is one subscriber");
        assert_eq!(record["connections"]["lost"], 0, "{protocol}");
        let notes = record["verdict"]["notes"].to_string();
        assert!(notes.contains("2 of 50 clients that were to come and go could not connect"), "{protocol}: {notes}");
        let account = peer.end();
        assert_eq!(account["connections"]["accepted"], 62, "{protocol}: none tries again");
        place.assert_swept();
    }
}

/// A server that answers each connection after 30 ms is late for all of them, and keeps none from coming.
#[test]
fn clients_come_at_their_due_times_however_slow_the_server_is() {
    for protocol in PROTOCOLS {
        let place = Place::new();
        let peer = Peer::start(&place, protocol, "connect = { answer_after = \"30ms\" }");
        let record = place.measure(&[&peer.endpoint, "--rate", "100", "--payload", "64B", "--set", "churn=200"]);
        assert_eq!(churn(&record), [200, 200, 0, 200], "{protocol}: {}", record["churn"]);
        assert_eq!(counts(&record), [100, 100, 0, 0], "{protocol}");
        let least_ns = record["churn"]["connect_ns"]["min"].as_u64().unwrap();
        // The age of a connection begins when the server takes it.
        assert!(least_ns >= 29_000_000, "{protocol}: {least_ns} ns");
        drop(peer);
        place.assert_swept();
    }
}

#[test]
fn clients_of_real_servers_come_and_go_and_leave_nothing_behind() {
    for (system, more) in [
        ("mosquitto", &["--qos", "1", "--durable"][..]),
        ("mosquitto", &["--set", "tls=true"]),
        ("nats", &["--set", "tls=true"]),
        ("redis", &[]),
        ("rabbitmq-amqp", &["--qos", "1"]),
    ] {
        let place = Place::new();
        let load = [system, "--rate", "100", "--payload", "64B", "--set", "churn=40/s"];
        let record = place.measure(&[&load[..], more].concat());
        let what = format!("{system} {more:?}: {} {}", record["counts"], record["churn"]);
        assert_eq!(counts(&record), [100, 100, 0, 0], "{what}");
        assert_eq!(churn(&record)[..3], [40, 40, 0], "{what}");
        let tls = more.contains(&"tls=true");
        for (of, clients) in [("churn", 40), ("connections", 2)] {
            let handshakes = record[of]["tls_handshake_ns"]["count"].as_u64();
            assert_eq!(handshakes, tls.then_some(clients), "{of}: {what}");
        }
        if tls {
            let [whole, part] = ["time_ns", "tls_handshake_ns"].map(|name| &record["connections"][name]["max"]);
            assert!(whole.as_u64() > part.as_u64(), "{whole} {part}");
        }
        place.assert_swept();
    }
}

#[test]
fn each_flow_has_clients_of_its_own_that_come_and_go() {
    let place = Place::new();
    let arguments = ["bench", "nats", "--flow", "busy: rate=100, churn=20/s", "--flow", "calm: rate=50"];
    let fixed = ["--json", "--repeats", "1", "--warmup", "200ms", "--duration", "1s", "--out", "r"];
    let gate = ["--require", "churn_connected(busy) >= 20"];
    let output = place.run(&[&arguments[..], &fixed[..], &gate[..]].concat());
    // The exit code is also that of a machine that is too busy for latencies.
    assert!(stderr(&output).contains("gate `churn_connected(busy) >= 20` held"), "{}", stderr(&output));
    let told: Value =
        serde_json::from_str(&stdout(&output)).unwrap_or_else(|error| panic!("{error}: {}", stderr(&output)));
    for cell in told["cells"].as_array().unwrap() {
        let record = &cell["runs"][0];
        match cell["cell"]["flow"].as_str().unwrap() {
            "calm" => assert_eq!(record["churn"], Value::Null),
            flow => assert_eq!(churn(record)[..3], [20, 20, 0], "{flow}"),
        }
    }
}

/// Half of the clients lose their connections, and all of them come back.
#[test]
fn clients_that_are_cut_come_back_and_are_counted() {
    for protocol in PROTOCOLS {
        for (fault, lost) in
            [("cut 50% of clients at 300ms", 5), ("cut publishers at 200ms, cut publishers at 800ms", 8)]
        {
            let place = Place::new();
            let peer = Peer::start(&place, protocol, "");
            let load = [peer.endpoint.as_str(), "--pattern", "fan-out", "--publishers", "4", "--subscribers", "6"];
            let more = ["--rate", "50", "--payload", "64B", "--fault", fault];
            let record = place.measure(&[&load[..], &more[..]].concat());
            let what = format!("{protocol} {fault}: {} {}", record["counts"], record["connections"]);
            let [expected, delivered, missing, duplicated] = counts(&record);
            assert_eq!((expected, delivered + missing, duplicated), (1_200, 1_200, 0), "{what}");
            let connections = &record["connections"];
            assert_eq!((&connections["lost"], &connections["reconnected"]), (&lost.into(), &lost.into()), "{what}");
            assert_eq!(times(connections, "reconnect_ns"), lost, "{what}");
            assert_eq!(record["recovery"]["clients_not_back"], 0, "{what}");
            if lost == 5 {
                let back = &record["recovery"]["clients_back_after_ns"];
                assert_eq!(*back, connections["reconnect_ns"]["max"], "{what}");
                assert!(back.as_u64().unwrap() >= 10_000_000, "the first pause takes 10 ms: {back}");
                let notes = record["verdict"]["notes"].to_string();
                assert!(notes.contains("50 % of the clients were disconnected by the script at"), "{notes}");
            } else {
                assert_eq!(record["fault_log"].as_array().unwrap().len(), 2, "{what}");
            }
            assert_eq!(peer.end()["connections"]["accepted"], 10 + lost, "{what}");
            place.assert_swept();
        }
    }
}

/// At QoS 1, with sessions that outlive connections, a storm of clients costs time and no message.
#[test]
fn a_storm_of_clients_costs_no_message_that_was_promised() {
    for (system, more) in [
        ("mosquitto", &["--qos", "1", "--durable"][..]),
        ("rabbitmq-amqp", &["--qos", "1", "--durable"]),
        ("nats", &[]),
        ("redis", &[]),
    ] {
        let place = Place::new();
        let load = [system, "--pairs", "5", "--rate", "40", "--payload", "64B", "--fault", "cut clients at 300ms"];
        let record = place.measure(&[&load[..], more].concat());
        let what = format!("{system}: {} {}", record["counts"], record["connections"]);
        let [expected, delivered, lost, _] = counts(&record);
        assert_eq!((expected, delivered + lost), (200, 200), "{what}");
        if !more.is_empty() {
            assert_eq!((lost, &record["counts"]["acked_lost"]), (0, &0.into()), "{what}");
        }
        assert_eq!(
            (&record["connections"]["lost"], &record["connections"]["reconnected"]),
            (&10.into(), &10.into()),
            "{what}"
        );
        place.assert_swept();
    }
}

#[test]
fn what_cannot_come_and_go_is_refused_before_the_run() {
    let place = Place::new();
    for (arguments, says) in [
        (&["zeromq", "--transport", "tcp", "--set", "churn=5/s"][..], "zeromq cannot have clients that come and go"),
        (&["mock", "--set", "churn=5/s"], "it runs in virtual time"),
        (&["nats", "--set", "churn=max"], "churn: `max` is not a number of clients a second"),
        (&["nats", "--set", "churn=5/m"], "churn: `5/m`"),
        (
            &["zeromq", "--transport", "tcp", "--fault", "cut clients at 100ms"],
            "its clients have no connection to a server",
        ),
        (&["mock", "--fault", "cut clients at 100ms"], "it runs in virtual time"),
        (&["nats", "--fault", "cut 200% of clients at 100ms"], "a whole number from 1 to 100"),
        (&["nats", "--fault", "cut clients at 2s"], "into a window of 1s"),
    ] {
        let output = place.run(&[&["bench"], arguments, &["--duration", "1s", "--out", "r"]].concat());
        let said = stderr(&output) + &stdout(&output);
        assert!(!output.status.success() && said.contains(says), "{arguments:?}: {said}");
    }
    let counted = ["bench", "nats", "--rate", "max", "--count", "100", "--set", "churn=5/s", "--out", "r"];
    let said = stderr(&place.run(&counted));
    assert!(said.contains("`churn` needs a window of known length"), "{said}");
}
