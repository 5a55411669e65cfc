//! Streams at QoS 1: JetStream, those of Redis, and partitions of Kafka.

use super::{KAFKA_SINGLY, Run, alone, faults, faults_with, stall};
use crate::left_out::is_long;
use crate::support::{Place, stderr};
use pubmark_model::draw::Choice;
use pubmark_model::topic_set::{Subscriptions, TopicSet};
use pubmark_model::workload::Workload;
use pubmark_wire::kafka::partition_of;

#[test]
fn faults_are_counted_exactly_over_jetstream() {
    faults("nats", 1, &["--qos", "1"]);
}

#[test]
fn faults_are_counted_exactly_over_jetstream_that_pushes() {
    if is_long("faults_are_counted_exactly_over_jetstream_that_pushes") {
        faults("nats", 1, &["--qos", "1", "--set", "options.consumer=push"]);
    }
}

#[test]
fn a_stall_is_found_over_jetstream() {
    if is_long("a_stall_is_found_over_jetstream") {
        stall("nats", &["--qos", "1"]);
    }
}

/// A server answers each XADD, so no message is lost without an answer.
#[test]
fn faults_are_counted_exactly_over_streams_of_redis() {
    for resp in ["options.resp=2", "options.resp=3"] {
        faults_with("redis", 1, None, &["--qos", "1", "--set", resp]);
    }
}

#[test]
fn a_stall_is_found_over_streams_of_redis() {
    if is_long("a_stall_is_found_over_streams_of_redis") {
        stall("redis", &["--qos", "1"]);
    }
}

/// Messages that are late, swallowed, delivered twice and held until the publisher's next one has passed.
const DISTURBED: &str = r#"
    delay = { uniform = ["1ms", "9ms"] }
    ordered = true
    swallow = { every = 7 }
    duplicate = { every = 11 }
    reorder = { every = 13 }
"#;

/// Plays four publishers of 200 messages per second over Kafka; in the window they send those numbered 41 to 240. Returns
/// what is delivered, acknowledged and lost, duplicated and reordered, and the number of messages that the peer held
/// until their publisher's next one had passed.
fn partitioned(load: &[&str]) -> ([u64; 4], u64) {
    let common = ["--qos", "1", "--set", "publishers=4", "--set", "rate=200", "--set", "drain=1s"];
    let run = Run::new("kafka", DISTURBED, 1_000, &[&common, KAFKA_SINGLY, load].concat());
    assert_eq!(["offered", "acked", "unidentified"].map(|name| run.bench.count(name)), [800, 800, 0]);
    let found = ["delivered", "acked_lost", "duplicated", "reordered"].map(|name| run.bench.count(name));
    (found, run.account("reordered"))
}

/// A message that the peer holds passes the publisher's next one: that is out of order within a partition, and not
/// between two. If the next one is swallowed, it passes the one after that, which is in its own of two partitions.
#[test]
fn order_is_promised_within_a_partition_of_kafka_and_checked_there() {
    let _alone = alone();
    let numbers =
        |keep: &dyn Fn(u64) -> bool| (41..=240).filter(|number| number % 7 > 0 && keep(*number)).count() as u64;
    let all = 4 * numbers(&|_| true);
    let (twice, held) = (4 * numbers(&|number| number % 11 == 0), 4 * numbers(&|number| number % 13 == 0));
    let passed = 4 * numbers(&|number| number % 13 == 0 && (number + 1) % 7 == 0);
    assert_eq!((held, passed), (52, 8));
    let load = |pattern: &'static str, subscribers: &'static str, partitions: &'static str, by: &'static str| {
        let set = [pattern, subscribers, partitions, by];
        partitioned(&set.iter().flat_map(|set| ["--set", *set]).collect::<Vec<_>>())
    };
    for (pattern, subscribers) in [("pattern=fan-in", "subscribers=1"), ("pattern=pipeline", "subscribers=2")] {
        for (partitions, by, reordered) in [
            ("options.partitions=8", "options.partition_by=publisher", held),
            ("options.partitions=8", "options.partition_by=round-robin", 0),
            ("options.partitions=2", "options.partition_by=round-robin", passed),
        ] {
            let found = load(pattern, subscribers, partitions, by);
            assert_eq!(found, ([all, 800 - all, twice, reordered], held), "{pattern} {partitions} {by}");
        }
    }
}

/// Plays four publishers of 400 messages per second, which have 50 keys; in the window they send those numbered 81 to 480.
/// Returns the run, and the partition of each of these messages.
fn keyed(script: &str, load: &[&str]) -> (Run, Vec<Vec<u32>>) {
    const LOAD: [&str; 6] = [
        "publishers=4",
        "rate=400",
        "drain=1s",
        "options.partitions=4",
        "options.partition_by=key",
        "options.keyspace=50",
    ];
    let set: Vec<&str> = LOAD.iter().flat_map(|set| ["--set", *set]).collect();
    let run =
        Run::new("kafka", &format!("topics = true\n{script}"), 1_000, &[&["--qos", "1"], &set[..], load].concat());
    let workload: Workload = serde_json::from_value(run.bench.record["workload"].clone()).unwrap();
    let seed = workload.of_repeat(1).seed;
    let keys = TopicSet::new(50, Choice::Uniform, Subscriptions::Wildcard);
    let partitions = (0..4).map(|publisher| {
        let key = keys.of_publisher(seed, publisher);
        (0..480).map(|sequence| partition_of(key.at(sequence).to_string().as_bytes(), 4)).collect()
    });
    let partitions: Vec<Vec<u32>> = partitions.collect();
    let of = |partition: u32| {
        partitions.iter().flat_map(|all| &all[80..]).filter(|found| **found == partition).count() as u64
    };
    let topics = run.account["topics"].as_object().unwrap();
    let found = [0, 1, 2, 3].map(|partition| {
        let name = format!("/{partition}");
        topics.iter().filter(|(topic, _)| topic.ends_with(&name)).map(|(_, count)| count.as_u64().unwrap()).sum::<u64>()
    });
    assert_eq!(found, [0, 1, 2, 3].map(of), "{topics:?}");
    (run, partitions)
}

/// A message that the peer holds passes the publisher's next one that is not swallowed.
#[test]
fn keys_select_the_partitions_of_messages_and_order_is_checked_there() {
    let _alone = alone();
    let (run, partitions) =
        keyed(DISTURBED, &[&["--set", "pattern=fan-in", "--set", "subscribers=1"], KAFKA_SINGLY].concat());
    let numbers =
        |keep: &dyn Fn(usize) -> bool| (81..=480).filter(|number| number % 7 > 0 && keep(*number)).count() as u64;
    let passed = |all: &[u32]| {
        numbers(&|number| {
            let next = if (number + 1) % 7 == 0 { number + 2 } else { number + 1 };
            number % 13 == 0 && all[number - 1] == all[next - 1]
        })
    };
    let passed: u64 = partitions.iter().map(|all| passed(all)).sum();
    let names = ["offered", "acked", "delivered", "acked_lost", "duplicated", "reordered", "unidentified"];
    let delivered = 4 * numbers(&|_| true);
    let twice = 4 * numbers(&|number| number % 11 == 0);
    let wanted = [1_600, 1_600, delivered, 1_600 - delivered, twice, passed, 0];
    assert_eq!(names.map(|name| run.bench.count(name)), wanted, "{}", run.account);
    let held = 4 * numbers(&|number| number % 13 == 0);
    assert!(run.account("reordered") == held && (1..held).contains(&passed), "{passed} of {held}");
}

/// Each producer collects a batch for each partition.
#[test]
fn collected_batches_with_keys_are_counted_message_by_message() {
    if !is_long("known_answers::streams::collected_batches_with_keys_are_counted_message_by_message") {
        return;
    }
    let _alone = alone();
    let set = ["pattern=pipeline", "subscribers=2", "options.linger=20ms", "options.compression=gzip"];
    let set: Vec<&str> = set.into_iter().flat_map(|set| ["--set", set]).collect();
    let (run, _) = keyed("swallow = { every = 7 }", &set);
    let swallowed = 4 * (81..=480).filter(|number| number % 7 == 0).count() as u64;
    let names = ["sent", "acked", "delivered", "acked_lost", "duplicated", "reordered", "corrupted"];
    let wanted = [1_600, 1_600, 1_600 - swallowed, swallowed, 0, 0, 0];
    assert_eq!(names.map(|name| run.bench.count(name)), wanted, "{}", run.account);
    let slowest = run.bench.record["latency_ns"]["max"].as_u64().unwrap();
    assert!(slowest >= 19_900_000, "{slowest}");
}

/// A producer collects for 20 ms: whole batches are on their way, compressed, and every message of them is found.
#[test]
fn collected_and_compressed_batches_are_counted_message_by_message() {
    let _alone = alone();
    let script = "swallow = { every = 7 }\nduplicate = { every = 11 }";
    for more in ["options.partition_by=publisher", "options.partition_by=round-robin"] {
        let set = ["options.linger=20ms", "options.compression=gzip", "options.partitions=3", more];
        let set: Vec<&str> = set.into_iter().flat_map(|set| ["--set", set]).collect();
        let run = Run::new("kafka", script, 1_000, &[&["--pairs", "5", "--qos", "1"], &set[..]].concat());
        let names = ["sent", "acked", "delivered", "acked_lost", "duplicated", "reordered", "corrupted"];
        let number = |keep: &dyn Fn(u64) -> bool| 5 * (41..=240).filter(|number| keep(*number)).count() as u64;
        let (swallowed, twice) = (number(&|n| n % 7 == 0), number(&|n| n % 7 > 0 && n % 11 == 0));
        assert_eq!(names.map(|name| run.bench.count(name)), [1_000, 1_000, 1_000 - swallowed, swallowed, twice, 0, 0]);
        // The first message of a batch waits for all of its 20 ms.
        let slowest = run.bench.record["latency_ns"]["max"].as_u64().unwrap();
        assert!(slowest >= 19_900_000, "{slowest}");
        // It wakes up for batches, of about four messages, and not for each message.
        let agents = run.bench.record["agents"].as_array().unwrap();
        let publishers = agents.iter().find(|agent| agent["name"].as_str().unwrap().starts_with("publishers")).unwrap();
        let switches = publishers["usage"]["voluntary_switches"].as_u64().unwrap();
        assert!(switches < 1_000, "{switches} switches for 1,000 messages");
    }
}

#[test]
fn a_group_or_keys_that_partitions_cannot_serve_are_refused_before_anything_starts() {
    let place = Place::new();
    let refused = |set: &[&str]| {
        let set: Vec<&str> = set.iter().flat_map(|set| ["--set", *set]).collect();
        let output = place.run(&[&["bench", "kafka://127.0.0.1:1", "--qos", "1"], &set[..]].concat());
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        stderr(&output)
    };
    let said = refused(&["pattern=pipeline", "subscribers=3", "options.partitions=2"]);
    assert!(said.contains("options.partitions = 2: the 3 subscribers of `pipeline`"), "{said}");
    assert!(said.contains("set options.partitions to 3 or more"), "{said}");
    let said = refused(&["options.partitions=65"]);
    assert!(said.contains("options.partitions = 65: a topic of pubmark has 1 to 64"), "{said}");
    let said = refused(&["options.partition_by=key", "options.keyspace=0"]);
    assert!(said.contains("options.keyspace = 0: the messages of a topic have 1 to 1000000 keys"), "{said}");
    let said = refused(&["options.keyspace=10"]);
    assert!(said.contains("set options.partition_by = \"key\""), "{said}");
    let said = refused(&["options.partition_by=key", "fault=kill publishers at 100ms"]);
    assert!(said.contains("what a killed publisher had collected"), "{said}");
}
