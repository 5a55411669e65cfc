//! Headers and contents of messages, and the options that only MQTT 5 has.

use crate::known_answers::Peer;
use crate::left_out::first;
use crate::support::{Place, count, stderr, stdout};
use serde_json::Value;

fn counts(record: &Value) -> [u64; 5] {
    ["expected", "delivered", "lost", "duplicated", "corrupted"].map(|name| count(record, name))
}

const MQTT_5: [&str; 2] = ["--set", "options.mqtt_version=5"];

/// Every seventh message of each publisher is lost, every seventeenth is damaged, and one comes twice.
#[test]
fn counts_are_exact_with_headers_aliases_and_bodies_of_zeros() {
    const SCRIPT: &str = "lose = { every = 7 }\nduplicate = { at = [[1, 40]] }\ncorrupt = { every = 17, offset = 150 }\n\
                          [limits]\ntopic_aliases = 20\n[[stall]]\nfrom = \"500ms\"\nfor = \"50ms\"";
    let aliases = [&MQTT_5[..], &["--set", "options.topic_alias=100", "--set", "topics=50"]].concat();
    let expiry = [&MQTT_5[..], &["--set", "headers=a: b, c: d", "--set", "options.message_expiry=60s"]].concat();
    let cases = [
        ("mqtt", "1", &aliases[..]),
        ("nats", "0", &["--set", "headers=5 x 100B"]),
        ("amqp", "1", &["--set", "headers=a: b, content: text", "--set", "payload_content=zeros 60%"]),
        ("mqtt", "0", &aliases),
        ("mqtt", "1", &expiry),
        ("redis", "0", &["--set", "payload_content=zeros"]),
    ];
    let test = "messages::counts_are_exact_with_headers_aliases_and_bodies_of_zeros";
    for &(protocol, qos, more) in first(3, &cases, test) {
        let place = Place::new();
        let peer = Peer::start(&place, protocol, SCRIPT);
        let load = ["--pairs", "2", "--rate", "100", "--payload", "200B", "--qos", qos, "--set", "verify=full"];
        let record = place.measure(&[&[peer.endpoint.as_str()], &load[..], more].concat());
        // Of 100 sequences from 20 on, 15 end a seven, and of the others 5 end a seventeen.
        let (lost, damaged) = (|number: u32| number.is_multiple_of(7), |number: u32| number.is_multiple_of(17));
        let damaged = 2 * (21..=120).filter(|number| damaged(*number) && !lost(*number)).count() as u64;
        assert_eq!(counts(&record), [200, 170, 30, 1, damaged], "{protocol} {more:?}");
        drop(peer);
        place.assert_swept();
    }
}

#[test]
fn brokers_carry_headers_and_aliases() {
    let v5 = |more: &[&'static str]| [&MQTT_5[..], more].concat();
    let aliased = ["--set", "topics=100", "--set", "options.topic_alias=65535", "--set", "options.message_expiry=60s"];
    let cases = [
        ("mosquitto", v5(&["--qos", "1", "--set", "headers=3 x 20B"])),
        ("mosquitto", v5(&[&aliased[..], &["--rate", "max", "--set", "count=5000"]].concat())),
        ("nats", vec!["--set", "headers=a: b, c: d e", "--set", "topics=10"]),
        ("rabbitmq-amqp", vec!["--qos", "1", "--set", "headers=3 x 20B"]),
        ("nats", vec!["--pattern", "request-reply", "--set", "headers=2 x 1KiB"]),
        ("mosquitto", v5(&["--rate", "max", "--set", "count=5000", "--set", "options.topic_alias=1"])),
        ("mosquitto", v5(&["--qos", "1", "--durable", "--set", "options.session_expiry=60s"])),
        ("mosquitto", v5(&["--pattern", "request-reply", "--set", "headers=a: b"])),
        ("rabbitmq-amqp", vec!["--pattern", "request-reply", "--set", "headers=3 x 20B"]),
    ];
    for (system, more) in first(5, &cases, "messages::brokers_carry_headers_and_aliases") {
        let place = Place::new();
        let record = place.measure(&[&[*system], &more[..], &["--set", "verify=full"]].concat());
        let [expected, delivered, lost, duplicated, corrupted] = counts(&record);
        assert!(expected >= 200, "{system} {more:?}: {}", record["counts"]);
        assert_eq!((delivered, lost, duplicated, corrupted), (expected, 0, 0, 0), "{system} {more:?}");
        place.assert_swept();
    }
}

/// Both ends know the content, whatever carries it, also of sizes that vary.
#[test]
fn every_content_is_checked() {
    for (system, more) in [
        ("zeromq", &["--transport", "tcp"][..]),
        ("kernel", &["--transport", "ipc"]),
        ("nats", &["--rate", "max", "--set", "count=5000"]),
    ] {
        for (content, payload) in [("zeros", "4KiB"), ("zeros 60%", "uniform 16B to 300B")] {
            let place = Place::new();
            let content = format!("payload_content={content}");
            let load = [system, "--payload", payload, "--set", &content, "--set", "verify=full"];
            let record = place.measure(&[&load[..], more].concat());
            let [expected, delivered, lost, _, corrupted] = counts(&record);
            assert!(expected >= 200, "{system}: {}", record["counts"]);
            assert_eq!((delivered, lost, corrupted), (expected, 0, 0), "{system} {content}");
        }
    }
}

#[test]
fn what_messages_cannot_carry_is_refused_before_the_run() {
    let place = Place::new();
    let (alias, expiry) = ("options.topic_alias=3", "options.message_expiry=3s");
    let v5_expiry = [&["mosquitto"], &MQTT_5[..], &["--set", "options.session_expiry=3s"]].concat();
    let v5_part = [&["mosquitto"], &MQTT_5[..], &["--set", "options.message_expiry=1500ms"]].concat();
    for (arguments, says) in [
        (&["redis", "--set", "headers=a: b"][..], "redis has no `headers`: a message to a channel"),
        (&["zeromq", "--transport", "tcp", "--set", "headers=a: b"], "zeromq has no `headers`"),
        (&["mosquitto", "--set", "headers=a: b"], "MQTT 3.1.1 has none; options.mqtt_version = 5 has"),
        (&["mosquitto", "--set", "headers=a b"], "is not a list of headers"),
        (&["mosquitto", "--set", alias], "options.topic_alias: MQTT 3.1.1 has nothing like it"),
        (&["mosquitto", "--set", expiry], "options.message_expiry: MQTT 3.1.1 has nothing like it"),
        (&v5_expiry, "no session of this run outlives its connection"),
        (&v5_part, "options.message_expiry: write whole seconds"),
        (&["mock", "--set", "payload_content=ones"], "`ones` is not a content"),
        (
            &["zeromq-python", "--transport", "tcp", "--set", "payload_content=zeros"],
            "bodies that are not random: `payload_content`",
        ),
    ] {
        let output = place.run(&[&["bench"], arguments, &["--duration", "1s", "--out", "r"]].concat());
        let said = stderr(&output) + &stdout(&output);
        assert!(!output.status.success() && said.contains(says), "{arguments:?}: {said}");
    }
}
