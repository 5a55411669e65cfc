//! Messages of a file and of a template: their sizes are theirs, and every byte is checked.

use crate::known_answers::Peer;
use crate::support::{Place, count, stderr, stdout};
use serde_json::Value;

const LINES: &str = "{\"a\": 1}\n{\"b\": [1, 2, 3]}\nplain\n";
const TEMPLATE: &str = "payload_template={\"id\": {sequence}, \"at\": {time}, \"key\": \"{key}\"}";
/// Length of the template's text: 10 bytes of number, 20 of time, 10 of key, and the rest.
const TEMPLATE_BYTES: u64 = 36 + 10 + 20 + 10 + 27;

fn counts(record: &Value) -> [u64; 5] {
    ["expected", "delivered", "lost", "duplicated", "corrupted"].map(|name| count(record, name))
}

/// Every seventeenth message is damaged behind its header.
#[test]
fn messages_of_a_file_and_of_a_template_are_checked_byte_by_byte() {
    const SCRIPT: &str = "corrupt = { every = 17, offset = 40 }\nduplicate = { at = [[1, 40]] }";
    for (protocol, qos) in [("mqtt", "0"), ("nats", "1"), ("amqp", "1")] {
        for bodies in ["payload_file=lines.txt", TEMPLATE] {
            let place = Place::new();
            std::fs::write(place.path("lines.txt"), LINES).unwrap();
            let peer = Peer::start(&place, protocol, SCRIPT);
            let load = ["--pairs", "2", "--rate", "100", "--qos", qos, "--set", "verify=full", "--set", bodies];
            let record = place.measure(&[&[peer.endpoint.as_str()], &load[..]].concat());
            let damaged = 2 * (21..=120).filter(|number: &u32| number.is_multiple_of(17)).count() as u64;
            assert_eq!(counts(&record), [200, 200, 0, 1, damaged], "{protocol} {bodies}");
            let workload = &record["workload"];
            if bodies == TEMPLATE {
                assert_eq!(workload["payload_bytes"], TEMPLATE_BYTES, "{workload}");
            } else {
                let lines: Vec<u64> = LINES.lines().map(|line| 36 + line.len() as u64).collect();
                let sent = 2 * (20..120).map(|number| lines[number % 3]).sum::<u64>();
                assert_eq!(count(&record, "sent_bytes"), sent, "{protocol}");
                assert_eq!(count(&record, "delivered_bytes"), sent, "{protocol}");
                assert_eq!(workload["payload_bodies"]["lines"]["lines"], serde_json::json!([]), "{workload}");
            }
            drop(peer);
            place.assert_swept();
        }
    }
}

#[test]
fn systems_carry_messages_of_a_file_and_of_a_template() {
    for (system, more) in [
        ("mosquitto", &["--qos", "1"][..]),
        ("nats", &["--rate", "max", "--set", "count=5000"]),
        ("nats", &["--pattern", "request-reply"]),
        ("zeromq", &["--transport", "tcp"]),
        ("kernel", &["--transport", "inproc", "--rate", "max", "--set", "count=5000"]),
        ("mock", &["--pattern", "fan-out", "--subscribers", "3"]),
    ] {
        for bodies in ["payload_file=lines.txt", TEMPLATE] {
            let place = Place::new();
            std::fs::write(place.path("lines.txt"), LINES).unwrap();
            let record = place.measure(&[&[system, "--set", "verify=full", "--set", bodies], more].concat());
            let [expected, delivered, lost, duplicated, corrupted] = counts(&record);
            assert!(expected >= 200, "{system} {bodies}: {}", record["counts"]);
            assert_eq!((delivered, lost, duplicated, corrupted), (expected, 0, 0, 0), "{system} {bodies}");
            place.assert_swept();
        }
    }
}

/// The study in the folder of results has the messages: it can be run without the file.
#[test]
fn a_study_keeps_the_messages_of_its_file() {
    let place = Place::new();
    std::fs::write(place.path("lines.txt"), LINES).unwrap();
    place.study(
        "title = \"t\"\nquestion = \"q\"\n[workload]\nduration = \"1s\"\nrate = 100\nwarmup = \"100ms\"\n\
         [flows.a]\npayload_file = \"lines.txt\"\n[flows.b]\npayload = \"1KiB\"\n[run]\nrepeats = 1\n\
         [axes]\nsystem = [\"mock\"]\n",
    );
    let output = place.run(&["run", "study.toml", "--out", "r"]);
    // The window has too few messages for a 99th percentile, which the exit code says.
    assert_eq!(place.records("r").len(), 1, "{}", stderr(&output));
    std::fs::remove_file(place.path("lines.txt")).unwrap();
    let resolved = std::fs::read_to_string(place.path("r/study.toml")).unwrap();
    assert!(resolved.contains("[payloads]") && resolved.contains("plain"), "{resolved}");
    let output = place.run(&["run", "r/study.toml", "--out", "again"]);
    assert_eq!(place.records("again").len(), 1, "{}", stderr(&output) + &stdout(&output));
}

#[test]
fn files_and_templates_that_cannot_be_sent_are_refused_before_the_run() {
    let place = Place::new();
    std::fs::write(place.path("empty.txt"), "").unwrap();
    std::fs::write(place.path("gap.txt"), "a\n\nb\n").unwrap();
    std::fs::write(place.path("lines.txt"), LINES).unwrap();
    std::fs::write(place.path("long.txt"), format!("a\n{}\n", "x".repeat(1_000_001))).unwrap();
    std::fs::write(place.path("wide.txt"), format!("a\n{}\n", "x".repeat(70_000))).unwrap();
    for (arguments, says) in [
        (&["mock", "--set", "payload_file=none.txt"][..], "none.txt"),
        (&["mock", "--set", "payload_file=empty.txt"], "empty.txt is empty: write one message on each line"),
        (&["mock", "--set", "payload_file=gap.txt"], "gap.txt:2: the line is empty"),
        (&["mock", "--set", "payload_file=long.txt"], "long.txt:2: the line has 1000001 bytes"),
        (&["kernel", "--transport", "udp", "--set", "payload_file=wide.txt"], "wide.txt:2: a UDP datagram carries"),
        (&["mock", "--set", "payload_template=same"], "`same` has none of `{sequence}`, `{time}` and `{key}`"),
        (&["mock", "--set", TEMPLATE, "--payload", "64B"], "`payload_template` and `payload` exclude each other"),
        (&["mock", "--set", TEMPLATE, "--set", "payload_file=lines.txt"], "exclude each other"),
        (&["mock", "--set", TEMPLATE, "--set", "payload_content=zeros"], "`payload_content` exclude each other"),
        (
            &["zeromq-python", "--transport", "tcp", "--set", "payload_file=lines.txt"],
            "`payload_file` or `payload_template`: `payload_bodies`",
        ),
    ] {
        let output = place.run(&[&["bench"], arguments, &["--duration", "1s", "--out", "r"]].concat());
        let said = stderr(&output) + &stdout(&output);
        assert!(!output.status.success() && said.contains(says), "{arguments:?}: {said}");
    }
}
