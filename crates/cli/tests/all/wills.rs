//! Last wills: each is due, received or undue as the server's script says, and no message is counted otherwise for it.

use crate::known_answers::Peer;
use crate::support::{Place, count, stderr, stdout};
use serde_json::Value;

/// Half of the publishers lose their connections, which are those with odd numbers.
const CUT: [&str; 4] = ["--set", "last_will=true", "--fault", "cut 50% of publishers at 300ms"];

/// The statement that the server of the script breaks.
const BROKEN: &str = "[MQTT-3.1.2-10] a will was published though its client had disconnected, or was connected";

pub fn wills(record: &Value) -> [u64; 3] {
    ["due", "received", "undue"].map(|name| record["wills"][name].as_u64().unwrap_or_else(|| panic!("{record}")))
}

/// Returns a time of the wills, ns.
pub fn time(record: &Value, name: &str) -> u64 {
    record["wills"]["latency_ns"][name].as_u64().unwrap_or_else(|| panic!("{name}: {}", record["wills"]))
}

/// The wills of publishers 1 and 3 are due. The server publishes them 50 ms after it noticed the end of the connection,
/// keeps that of publisher 1, and publishes that of publisher 2 although it says goodbye.
#[test]
fn wills_are_counted_and_timed_as_scripted_and_no_message_is_lost_for_them() {
    const SCRIPT: &str = "will = { delay = \"50ms\", withhold = [1], undue = [2] }";
    for (subscribers, shape) in [
        (1, &["--pairs", "4", "--payload", "16B"][..]),
        (1, &["--pairs", "4", "--payload", "uniform 64B to 1KiB", "--set", "verify=full"]),
        (1, &["--pairs", "4", "--qos", "1", "--set", "options.mqtt_version=5"]),
        (3, &["--pattern", "fan-out", "--publishers", "4", "--subscribers", "3", "--qos", "2"]),
        (1, &["--pattern", "fan-in", "--publishers", "4", "--set", "topics=5", "--set", "agents=1"]),
        (
            2,
            &[
                "--pattern",
                "fan-in",
                "--publishers",
                "4",
                "--subscribers",
                "2",
                "--set",
                "topics=5",
                "--set",
                "subscriptions=each",
            ],
        ),
        (1, &["--pattern", "tree", "--publishers", "4", "--subscribers", "2"]),
    ] {
        let place = Place::new();
        let peer = Peer::start(&place, "mqtt", SCRIPT);
        let load = [peer.endpoint.as_str(), "--rate", "50", "--set", "drain=1s"];
        let record = place.measure(&[&load[..], &CUT, shape].concat());
        let what = format!("{shape:?}: {} {}", record["counts"], record["wills"]);
        assert_eq!(wills(&record), [2 * subscribers, subscribers, subscribers], "{what}");
        assert_eq!(time(&record, "count"), subscribers, "{what}");
        // A histogram is exact to 0.1 %.
        assert!(time(&record, "min") >= 49_950_000, "{what}");
        assert_eq!(record["violations"][BROKEN], subscribers, "{}", record["violations"]);
        assert_eq!((count(&record, "unidentified"), &record["counts"]["sent"]), (0, &200.into()), "{what}");
        if !shape.contains(&"--qos") {
            // What is not acknowledged is not sent again.
            assert_eq!((count(&record, "duplicated"), count(&record, "lost")), (0, 0), "{what}");
        }
        let notes = record["verdict"]["notes"].to_string();
        let missing = format!("{subscribers} of {} last wills had not arrived when the drain ended", 2 * subscribers);
        assert!(notes.contains(&missing), "{notes}");
        drop(peer);
        place.assert_swept();
    }
}

/// The server ends each connection of publisher 0 when it has sent everything, and passes its will on: nobody can know
/// whether it comes before the run is over. The run lasts until the end of the drain, since the will of publisher 1 is
/// withheld. On a busy machine publisher 0 may leave before the server ends its connection; the run is repeated then.
#[test]
fn a_will_of_a_connection_that_the_server_ends_late_is_neither_due_nor_undue() {
    const SCRIPT: &str = "will = { delay = \"20ms\", withhold = [1], undue = [2], close = [0] }";
    for more in [&["--pairs", "4"][..], &["--pattern", "fan-in", "--publishers", "4", "--qos", "1"]] {
        let ended = (0..5).any(|_| {
            let place = Place::new();
            let peer = Peer::start(&place, "mqtt", SCRIPT);
            let load = [peer.endpoint.as_str(), "--rate", "50", "--set", "drain=2s"];
            let record = place.measure(&[&load[..], &CUT, more].concat());
            let what = format!("{more:?}: {} {} {}", record["counts"], record["wills"], record["connections"]);
            assert_eq!((wills(&record), count(&record, "unidentified")), ([2, 1, 1], 0), "{what}");
            assert_eq!(record["violations"][BROKEN], 1, "{}", record["violations"]);
            drop(peer);
            place.assert_swept();
            record["connections"]["lost"].as_u64().unwrap() > 2
        });
        assert!(ended, "{more:?}: publisher 0 lost no connection");
    }
}

/// Two cuts end two connections of each publisher: each has a will of its own.
#[test]
fn each_connection_has_a_will_of_its_own() {
    let place = Place::new();
    let peer = Peer::start(&place, "mqtt", "will = { delay = \"5ms\" }");
    let load = [peer.endpoint.as_str(), "--pairs", "3", "--rate", "50", "--set", "last_will=true"];
    let record = place.measure(&[&load[..], &["--fault", "cut publishers at 300ms, cut publishers at 600ms"]].concat());
    assert_eq!(wills(&record), [6, 6, 0], "{}", record["wills"]);
    assert_eq!(record["violations"], Value::Null);
    assert!(time(&record, "p50") <= time(&record, "p99") && time(&record, "p99") <= time(&record, "max"));
}

/// Nobody ends: nothing is due, and the goodbyes of the publishers are heard.
#[test]
fn publishers_that_say_goodbye_leave_no_will() {
    for qos in ["0", "1"] {
        let place = Place::new();
        let peer = Peer::start(&place, "mqtt", "");
        let load = [peer.endpoint.as_str(), "--pairs", "2", "--rate", "50", "--qos", qos];
        let record = place.measure(&[&load[..], &["--set", "last_will=true"]].concat());
        assert_eq!((wills(&record), count(&record, "delivered")), ([0, 0, 0], 100), "{}", record["wills"]);
        assert_eq!(record["violations"], Value::Null);
    }
}

#[test]
fn mosquitto_publishes_the_wills_of_those_that_are_gone() {
    for (due, more) in [
        (4, &["--fault", "kill publishers at 500ms"][..]),
        (4, &["--qos", "1", "--fault", "kill publishers at 500ms", "--set", "options.mqtt_version=5"]),
        (2, &["--qos", "1", "--fault", "cut 50% of clients at 500ms"]),
        (4, &["--qos", "1", "--fault", "cut link at 300ms for 200ms", "--set", "link=publishers"]),
    ] {
        let place = Place::new();
        let load = ["mosquitto", "--pairs", "4", "--rate", "50", "--payload", "64B", "--set", "last_will=true"];
        let record = place.measure(&[&load[..], more].concat());
        let what = format!("{more:?}: {} {} {}", record["counts"], record["wills"], record["violations"]);
        assert_eq!(wills(&record), [due, due, 0], "{what}");
        assert_eq!((time(&record, "count"), count(&record, "unidentified")), (due, 0), "{what}");
        assert_eq!(record["violations"], Value::Null, "{what}");
        place.assert_swept();
    }
}

#[test]
fn each_flow_has_its_own_wills_and_its_figures_can_be_gates() {
    let place = Place::new();
    let flows = ["--flow", "mortal: pairs=3, rate=50, last_will=true", "--flow", "calm: rate=50"];
    let fixed = ["--json", "--repeats", "1", "--warmup", "200ms", "--duration", "1s", "--out", "r"];
    let gates = ["--require", "wills_received(mortal) >= 3", "--fail-on", "will_latency_max(mortal) > 10s"];
    let fault = ["--fault", "kill publishers at 500ms"];
    let output = place.run(&[&["bench", "mosquitto"][..], &flows, &fixed, &gates, &fault].concat());
    assert!(stderr(&output).contains("gate `wills_received(mortal) >= 3` held"), "{}", stderr(&output));
    let told: Value =
        serde_json::from_str(&stdout(&output)).unwrap_or_else(|error| panic!("{error}: {}", stderr(&output)));
    for cell in told["cells"].as_array().unwrap() {
        let record = &cell["runs"][0];
        match cell["cell"]["flow"].as_str().unwrap() {
            "calm" => assert_eq!(record["wills"], Value::Null),
            flow => assert_eq!(wills(record), [3, 3, 0], "{flow}"),
        }
    }
}

#[test]
fn what_has_no_wills_or_makes_them_uncertain_is_refused_before_the_run() {
    let place = Place::new();
    for (arguments, says) in [
        (&["nats"][..], "nats cannot have `last_will`: only MQTT has last wills"),
        (&["rabbitmq-amqp"], "rabbitmq-amqp cannot have `last_will`: only MQTT has last wills"),
        (&["zeromq", "--transport", "tcp"], "zeromq cannot have `last_will`: it has no server that publishes them"),
        (&["mock"], "mock cannot have `last_will`"),
        (&["mosquitto", "--pattern", "pipeline", "--subscribers", "2"], "a will goes to one of the subscribers"),
        (&["mosquitto", "--pattern", "request-reply"], "a will has no answer"),
        (&["mosquitto", "--fault", "kill subscribers at 500ms"], "does not end connections of publishers alone"),
        (&["mosquitto", "--fault", "kill server at 300ms for 100ms"], "does not end connections of publishers alone"),
        (&["mosquitto", "--fault", "cut clients at 500ms"], "subscribers, which miss wills at qos = 0"),
        (&["mosquitto", "--fault", "cut link at 300ms for 100ms"], "subscribers, which miss wills at qos = 0"),
    ] {
        let common = ["--set", "last_will=true", "--duration", "1s", "--out", "r"];
        let output = place.run(&[&["bench"], arguments, &common].concat());
        let said = stderr(&output) + &stdout(&output);
        assert!(output.status.code() == Some(2) && said.contains(says), "{arguments:?}: {said}");
    }
    let output = place.run(&["bench", "mosquitto", "--set", "last_will=maybe", "--out", "r"]);
    assert!(stderr(&output).contains("last_will: `maybe`"), "{}", stderr(&output));
}
