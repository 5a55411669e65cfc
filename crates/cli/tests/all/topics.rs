//! Flows with many topics: which message goes to which topic, and exact counts however subscribers subscribe.

use crate::known_answers::Peer;
use crate::support::{Place, count, stderr, stdout};
use pubmark_model::workload::Workload;
use pubmark_stats::Random;
use serde_json::Value;
use std::collections::BTreeMap;

fn counts(record: &Value) -> [u64; 5] {
    ["offered", "expected", "delivered", "lost", "duplicated"].map(|name| count(record, name))
}

const FAN_IN: [&str; 6] = ["--pattern", "fan-in", "--publishers", "2", "--subscribers", "2"];

/// Every seventh message of each publisher is lost, one comes twice, and the server stalls for 50 ms. Of 100 sequences
/// from 20 on, 15 end a seven.
#[test]
fn each_message_is_for_all_with_a_wildcard_and_for_one_if_topics_are_shared() {
    const SCRIPT: &str =
        "lose = { every = 7 }\nduplicate = { at = [[1, 40]] }\n[[stall]]\nfrom = \"500ms\"\nfor = \"50ms\"";
    for (protocol, qos) in [("mqtt", "0"), ("mqtt", "1"), ("nats", "0"), ("redis", "0"), ("amqp", "1")] {
        for (subscriptions, wanted) in [("wildcard", [200, 400, 340, 60, 2]), ("each", [200, 200, 170, 30, 1])] {
            let place = Place::new();
            let peer = Peer::start(&place, protocol, SCRIPT);
            let subscriptions = format!("subscriptions={subscriptions}");
            let load = [peer.endpoint.as_str(), "--rate", "100", "--qos", qos, "--set", "topics=50"];
            let more = ["--set", &subscriptions, "--set", "topic_choice=zipf 1.1", "--set", "drain=1s"];
            let record = place.measure(&[&load[..], &more, &FAN_IN].concat());
            let what = format!("{protocol} {qos} {subscriptions}: {}", record["counts"]);
            assert_eq!(counts(&record), wanted, "{what}");
            assert_eq!(count(&record, "reordered"), 0, "{what}");
            drop(peer);
            place.assert_swept();
        }
    }
}

/// Returns the topic of a message, computed from the definition.
fn topic(seed: u64, publisher: u32, sequence: u64, count: u32, exponent: f64) -> u32 {
    let mut of_publisher = Random(seed ^ (u64::from(publisher) << 32));
    let third = [(); 3].map(|()| of_publisher.bits())[2];
    let mut draws = Random(third);
    let unit =
        (0..=sequence).map(|_| draws.bits()).last().map_or(0.0, |bits| (bits >> 32) as f64 / (1u64 << 32) as f64);
    let share = |k: u32| f64::from(k + 1).powf(-exponent);
    let all: f64 = (0..count).map(share).sum();
    let mut sum = 0.0;
    (0..count).find(|k| (sum += share(*k) / all, sum > unit).1).unwrap_or(count - 1)
}

/// The peer counts messages by topic: 120 of each of three publishers, with those of the warm-up.
#[test]
fn messages_go_to_the_topics_that_are_drawn_for_them() {
    for (protocol, choice, exponent, topics) in [
        ("mqtt", "uniform", 0.0, 40),
        ("mqtt", "zipf 1.1", 1.1, 100_000),
        ("nats", "zipf 0.5", 0.5, 20),
        ("redis", "zipf 2", 2.0, 7),
        ("amqp", "uniform", 0.0, 100),
    ] {
        let place = Place::new();
        let peer = Peer::start(&place, protocol, "topics = true\ndelay = { fixed = \"1ms\" }");
        let (number, choice) = (format!("topics={topics}"), format!("topic_choice={choice}"));
        let load = [peer.endpoint.as_str(), "--rate", "100", "--set", &number, "--set", &choice];
        let clients = ["--pattern", "fan-in", "--publishers", "3", "--subscribers", "1"];
        let record = place.measure(&[&load[..], &clients].concat());
        assert_eq!(counts(&record), [300, 300, 300, 0, 0], "{protocol}");
        let workload: Workload = serde_json::from_value(record["workload"].clone()).unwrap();
        let seed = workload.of_repeat(1).seed;
        let mut wanted: BTreeMap<u32, u64> = BTreeMap::new();
        for (publisher, sequence) in (0..3).flat_map(|publisher| (0..120).map(move |sequence| (publisher, sequence))) {
            *wanted.entry(topic(seed, publisher, sequence, topics, exponent)).or_default() += 1;
        }
        let account = peer.end();
        let number = |topic: &str| topic.rsplit(['/', '.']).next().unwrap().parse().unwrap();
        let found = account["topics"].as_object().unwrap();
        let found: BTreeMap<u32, u64> =
            found.iter().map(|(name, count)| (number(name), count.as_u64().unwrap())).collect();
        assert_eq!(found, wanted, "{protocol} {choice}");
        place.assert_swept();
    }
}

#[test]
fn brokers_deliver_ten_thousand_topics() {
    for (system, qos) in [("mosquitto", "1"), ("nats", "0"), ("redis", "0"), ("rabbitmq-amqp", "1")] {
        for (subscriptions, copies) in [("wildcard", 2), ("each", 1)] {
            let place = Place::new();
            let subscriptions = format!("subscriptions={subscriptions}");
            let load = [system, "--qos", qos, "--set", "topics=10000", "--set", &subscriptions];
            let record = place.measure(&[&load[..], &FAN_IN].concat());
            let what = format!("{system} {subscriptions}: {}", record["counts"]);
            assert_eq!(counts(&record), [400, 400 * copies, 400 * copies, 0, 0], "{what}");
            place.assert_swept();
        }
    }
}

/// Retained messages are removed after the run, from each topic.
#[test]
fn messages_that_are_retained_in_many_topics_are_removed() {
    let place = Place::new();
    let load = ["mosquitto", "--set", "topics=2000", "--set", "options.retain=true", "--qos", "1"];
    let record = place.measure(&[&load[..], &FAN_IN].concat());
    assert_eq!(counts(&record), [400, 800, 800, 0, 0], "{}", record["counts"]);
    place.assert_swept();
}

#[test]
fn topics_that_cannot_be_played_are_refused_before_the_run() {
    let place = Place::new();
    for (arguments, says) in [
        (&["zeromq", "--transport", "tcp", "--set", "topics=10"][..], "zeromq has no `topics`"),
        (&["mock", "--set", "topics=10"], "mock has no `topics`"),
        (&["nats", "--pattern", "tree", "--set", "topics=10"], "`topics` has no meaning in pattern `tree`"),
        (&["nats", "--pattern", "request-reply", "--set", "topics=10"], "no meaning in pattern `request-reply`"),
        (&["nats", "--set", "topic_choice=uniform"], "`topic_choice` has no meaning without `topics`"),
        (&["nats", "--set", "topics=10", "--set", "topic_choice=zipf"], "`zipf` is not a choice"),
        (&["nats", "--set", "topics=100001"], "is not a whole number from 1 to 100000"),
        (
            &["nats", "--pattern", "pipeline", "--set", "topics=10", "--set", "subscriptions=each"],
            "no meaning in pattern `pipeline`",
        ),
        (
            &["nats", "--pattern", "fan-out", "--subscribers", "9", "--set", "topics=8", "--set", "subscriptions=each"],
            "one of 9 subscribers, and there are 8",
        ),
    ] {
        let output = place.run(&[&["bench"], arguments, &["--duration", "1s", "--out", "r"]].concat());
        let said = stderr(&output) + &stdout(&output);
        assert!(!output.status.success() && said.contains(says), "{arguments:?}: {said}");
    }
}

/// `run` and `ab` take them as every other key, and flows have their own.
#[test]
fn topics_are_an_axis_of_a_flow_and_an_arm() {
    let place = Place::new();
    let study = "title = \"t\"\n[workload]\nwarmup = \"100ms\"\nduration = \"500ms\"\nrate = 100\npattern = \"fan-in\"\n\
                 [flows.few]\ntopics = 1\n[flows.many]\nsubscribers = 3\npublishers = 2\nsubscriptions = \"each\"\ntopics = 9\n\
                 [axes]\nsystem = \"nats\"\n\"flows.many.topics\" = [3, 1000]\n[run]\nrepeats = 1\n";
    std::fs::write(place.path("study.toml"), study).unwrap();
    let output = place.run(&["run", "study.toml", "--out", "r"]);
    let records = std::fs::read_to_string(place.path("r/runs.jsonl")).unwrap_or_else(|_| panic!("{}", stderr(&output)));
    let flows: Vec<Value> =
        records.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["flows"].take()).collect();
    assert_eq!(flows.len(), 2, "{}", stderr(&output));
    for (flow, wanted) in flows.iter().flat_map(|flows| [(&flows[0], 50), (&flows[1], 100)]) {
        assert_eq!(counts(flow), [wanted, wanted, wanted, 0, 0], "{flow}");
    }
    let arms = ["ab", "nats", "--a", "topics=1", "--b", "topics=1000", "--fail-on", "lost > 0"];
    let output = place.run(&[&arms[..], &["--duration", "500ms", "--out", "ab"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}
