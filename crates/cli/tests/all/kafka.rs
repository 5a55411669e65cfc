//! A real Kafka, which `make test-all` installs: what arrives, what is acknowledged, and what is left of a run.

use crate::brokers::patterns;
use crate::heavy::wanted;
use crate::leftovers::{End, assert_nothing_stays};
use crate::support::{Place, count, free_port};
use nix::sys::signal::Signal;
use pubmark_host::server::Server;
use pubmark_wire::kafka::{KafkaApi, KafkaRequest, KafkaResponse, NO_ERROR, RequestFrame, ResponseFrame};
use std::io::{Read, Write};
use std::net::TcpStream;

fn serve(home: &Place) -> (Server, u16) {
    let (port, controller) = (free_port(), free_port());
    (home.serve_system("kafka", vec![(String::new(), port), ("controller".into(), controller)]), port)
}

/// Asks a broker for a topic.
fn has_topic(port: u16, topic: &str) -> bool {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let request = KafkaRequest::Metadata { topic: topic.as_bytes() };
    let (mut out, mut heard) = (Vec::new(), Vec::new());
    RequestFrame { correlation: 1, client: b"test", request }.put(&mut out);
    stream.write_all(&out).unwrap();
    let mut buffer = [0; 4096];
    while ResponseFrame::decode(&heard).unwrap().is_none() {
        let count = stream.read(&mut buffer).unwrap();
        assert!(count > 0, "the broker hangs up");
        heard.extend_from_slice(&buffer[..count]);
    }
    let (frame, _) = ResponseFrame::decode(&heard).unwrap().unwrap();
    let answer = KafkaResponse::decode(KafkaApi::Metadata, frame.body).unwrap();
    matches!(answer, KafkaResponse::Metadata(answer) if answer.error == NO_ERROR)
}

#[test]
fn it_keeps_its_promises_at_every_quality_of_service() {
    if !wanted("kafka::it_keeps_its_promises_at_every_quality_of_service") {
        return;
    }
    let (home, place) = (Place::new(), Place::new());
    let (_server, port) = serve(&home);
    let axes = format!("qos = [0, 1, 2]\n\"options.endpoint\" = [\"kafka://127.0.0.1:{port}\"]");
    let records = patterns(&place, "kafka", &["fan-out", "fan-in"], &axes);
    assert_eq!(records.len(), 9);
    for record in &records {
        let acknowledged = record["ack_latency_ns"]["count"].as_u64().unwrap_or(0);
        assert_eq!(acknowledged, count(record, "acked"), "{}", record["workload"]);
        assert_eq!(count(record, "lost"), 0, "its answers are not needed for a delivery: {}", record["workload"]);
    }
}

#[test]
fn partitions_groups_and_collected_batches_keep_the_same_promises() {
    if !wanted("kafka::partitions_groups_and_collected_batches_keep_the_same_promises") {
        return;
    }
    let (home, place) = (Place::new(), Place::new());
    let (_server, port) = serve(&home);
    let options =
        ["partitions\" = [5]", "partition_by\" = [\"publisher\", \"round-robin\"]", "linger\" = [\"0s\", \"3ms\"]"];
    let options: String = options.iter().map(|option| format!("\n\"options.{option}")).collect();
    let gzip = "\n\"options.compression\" = [\"gzip\"]";
    let axes = format!("qos = [1, 2]\n\"options.endpoint\" = [\"kafka://127.0.0.1:{port}\"]{options}{gzip}");
    let records = patterns(&place, "kafka", &["fan-out", "pipeline"], &axes);
    assert_eq!(records.len(), 24);
    for record in &records {
        assert_eq!(count(record, "lost"), 0, "{}", record["workload"]);
    }
}

/// More than the broker takes: producers collect messages while their batches are unanswered, and wait then.
#[test]
fn at_full_speed_nothing_is_lost_and_everything_is_acknowledged() {
    if !wanted("kafka::at_full_speed_nothing_is_lost_and_everything_is_acknowledged") {
        return;
    }
    let (home, place) = (Place::new(), Place::new());
    let (_server, port) = serve(&home);
    let url = format!("kafka://127.0.0.1:{port}");
    let bench = place.bench(&[&url, "--pairs", "2", "--qos", "2", "--rate", "max", "--payload", "512B"]);
    assert_eq!(bench.error(), "");
    let sent = bench.count("sent");
    assert!(sent > 1_000, "{sent}");
    let counts = ["acked", "delivered", "lost", "duplicated", "reordered"].map(|name| bench.count(name));
    assert_eq!(counts, [sent, sent, 0, 0, 0]);
}

/// Two consumers of one group share four partitions. One is killed: when its session has ended, the other reads all of
/// them, from the stored offsets on.
#[test]
fn a_member_of_a_group_takes_over_what_a_killed_one_has_read() {
    if !wanted("kafka::a_member_of_a_group_takes_over_what_a_killed_one_has_read") {
        return;
    }
    let (home, place) = (Place::new(), Place::new());
    let (_server, port) = serve(&home);
    let set = [
        "pattern=pipeline",
        "publishers=2",
        "subscribers=2",
        "fault=kill 50% of subscribers at 1s",
        "options.partitions=4",
        "options.partition_by=round-robin",
        "options.group=coordinator",
        "options.group_session=6s",
        "options.group_heartbeat=1s",
        "options.group_commit=1s",
        "drain=20s",
    ];
    let set: Vec<&str> = set.iter().flat_map(|set| ["--set", *set]).collect();
    let url = format!("kafka://127.0.0.1:{port}");
    let record = place.measure(&[&[&url, "--qos", "1", "--duration", "3s"], &set[..]].concat());
    let [acked, delivered, lost, acked_lost] =
        ["acked", "delivered", "lost", "acked_lost"].map(|name| count(&record, name));
    assert_eq!((acked, delivered, lost, acked_lost), (1_200, 1_200, 0, 0), "{}", record["verdict"]);
    let seen = |name: &str| record["rebalances"][name].as_u64().unwrap();
    assert_eq!(seen("last_generation") - seen("first_generation"), 1);
    // The broker notices the silence of the dead member after its session.
    assert!(record["latency_ns"]["max"].as_u64().unwrap() > 4_000_000_000, "{}", record["latency_ns"]);
    place.assert_swept();
}

#[test]
fn it_keeps_no_topic_of_a_run_however_it_ends() {
    if !wanted("kafka::it_keeps_no_topic_of_a_run_however_it_ends") {
        return;
    }
    let home = Place::new();
    let (_server, port) = serve(&home);
    let ends = [End::Complete, End::Signal(Signal::SIGINT), End::Agents, End::Killed];
    let load = ["--pairs", "3", "--qos", "1"];
    assert_nothing_stays(&format!("kafka://127.0.0.1:{port}"), &load, &ends, 3, |name| {
        (0..3).filter(|id| has_topic(port, &format!("pubmark.{name}.{id}"))).count()
    });
}
