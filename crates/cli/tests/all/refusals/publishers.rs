//! Real servers that accept a publisher, and do not take its messages.

use super::*;
use crate::support::Benched;

/// Runs a bench against a server of the test that cannot begin.
fn refused(spec: &ServerSpec, url: impl Fn(&str) -> String, arguments: &[&str], wanted: &[&str]) {
    let home = Place::new();
    let server = home.serve(spec, Places::default());
    let place = Place::new();
    let bench: Benched = place.bench(&[&[url(&address(&server)).as_str()], arguments].concat());
    bench.assert_failed(wanted);
    assert!(!bench.error().contains("no probe arrived"), "{}", bench.error());
    place.assert_swept();
}

const MQTT_5: [&str; 2] = ["--set", "options.mqtt_version=5"];

#[test]
fn mosquitto_denies_a_publisher_in_its_own_words() {
    let mut spec = mosquitto("allow_anonymous true\nacl_file {dir}/acl");
    spec.files.push(("acl".into(), "topic read #\n".into()));
    let url = |at: &str| format!("mqtt://{at}");
    let wanted = ["refuses the first message of publisher 0", "not authorised (code 0x87)"];
    refused(&spec, url, &[&["--qos", "1"], &MQTT_5[..]].concat(), &wanted);
}

#[test]
fn mosquitto_names_its_largest_packet() {
    let spec = mosquitto("allow_anonymous true\nmax_packet_size 600");
    let url = |at: &str| format!("mqtt://{at}");
    let big = ["--payload", "1KB"];
    let wanted = ["packets of 600 bytes at most", "payload below 1000 bytes"];
    refused(&spec, url, &[&big, &MQTT_5[..]].concat(), &wanted);
    // MQTT 3.1.1 has no such message.
    refused(&spec, url, &big, &["publisher 0 lost its connection before the start", "has no words"]);
}

#[test]
fn nats_names_its_largest_payload() {
    let mut spec = nats(&["-c", "{dir}/nats.conf"]);
    spec.files.push(("nats.conf".into(), "max_payload: 512\n".into()));
    let wanted = ["payloads of 512 bytes at most, and those of this run have 1000", "max_payload"];
    refused(&spec, |at| format!("nats://{at}"), &["--payload", "1KB"], &wanted);
}

#[test]
fn nats_denies_a_publisher_in_its_own_words() {
    let mut spec = nats(&["-c", "{dir}/nats.conf"]);
    let user = "{ user: reader, password: pw, permissions: { publish: { deny: \">\" } } }";
    spec.files.push(("nats.conf".into(), format!("authorization {{ users: [ {user} ] }}\n")));
    refused(&spec, |at| format!("nats://reader:pw@{at}"), &[], &["Permissions Violation for Publish"]);
}

#[test]
fn redis_denies_a_publisher_in_its_own_words() {
    let mut spec = redis(&["--aclfile", "{dir}/users.acl"]);
    let commands = "+subscribe +psubscribe +hello +client +ping +info +quit -publish";
    spec.files
        .push(("users.acl".into(), format!("user default off\nuser reader on >pw resetchannels &* {commands}\n")));
    for resp in ["options.resp=2", "options.resp=3"] {
        let wanted = ["refuses the first message of publisher 0", "NOPERM", "publish"];
        refused(&spec, |at| format!("redis://reader:pw@{at}"), &["--set", resp], &wanted);
    }
}

#[test]
fn a_full_server_is_not_taken_for_one_of_another_protocol() {
    let spec = mosquitto("allow_anonymous true\nmax_connections 3");
    let home = Place::new();
    let server = home.serve(&spec, Places::default());
    let place = Place::new();
    let bench = place.bench(&[server.endpoint(), "--pairs", "3"]);
    bench.assert_failed(&["had accepted other clients of this run", "limit of connections"]);
    assert!(!bench.error().contains("may not speak"), "{}", bench.error());
}

/// With so little memory its alarm is on from the beginning. MQTT has no message for that: its log has.
#[test]
fn rabbitmq_without_memory_says_so_at_once() {
    for system in ["rabbitmq-amqp", "rabbitmq-mqtt"] {
        let place = Place::new();
        let bench = place.bench(&[system, "--qos", "1", "--memory", "160MiB"]);
        bench.assert_failed(&["memory"]);
        let said = ["the server takes no messages: low on memory", "memory resource limit alarm set"];
        assert!(said.iter().any(|words| bench.error().contains(words)), "{}", bench.error());
        place.assert_swept();
    }
}

/// A queue of five that rejects further messages.
#[test]
fn what_a_full_queue_of_rabbitmq_rejects_is_refused_and_not_lost() {
    const FILE: &str = include_str!("../../../../../systems/rabbitmq-amqp.toml");
    const DEFINITIONS: &str = r#"
[server.files."definitions.json"]
text = """{"vhosts": [{"name": "/"}], "users": [{"name": "guest", "password": "guest", "tags": "administrator"}],
"permissions": [{"user": "guest", "vhost": "/", "configure": ".*", "write": ".*", "read": ".*"}],
"policies": [{"vhost": "/", "name": "full", "pattern": "^pb", "apply-to": "queues", "priority": 1,
"definition": {"max-length": 5, "overflow": "reject-publish"}}]}"""
"#;
    let place = Place::new();
    let text = FILE.replace("log.file = false", "log.file = false\nload_definitions = {dir}/definitions.json");
    let (before, after) = text.split_once("[server.files.\"rabbitmq.conf\"]").unwrap();
    let text = format!("{before}{}\n[server.files.\"rabbitmq.conf\"]{after}", DEFINITIONS.trim());
    std::fs::write(place.path("full.toml"), text).unwrap();
    let arguments = ["full.toml", "--qos", "1", "--rate", "5000", "--set", "options.prefetch=1"];
    let bench = place.bench(&arguments);
    assert_eq!(bench.error(), "");
    let [sent, acked, refused, lost] = ["sent", "acked", "refused", "lost"].map(|name| bench.count(name));
    assert!(refused > 0 && sent == acked + refused, "{}", bench.record["counts"]);
    assert_eq!((lost, bench.evidence("messages-lost")), (0, None), "{}", bench.record["counts"]);
    let evidence = bench.evidence("resource-limit-hit").unwrap();
    assert!(
        evidence.starts_with(&format!("the server refused {refused} of {sent} messages: basic.nack")),
        "{evidence}"
    );
    place.assert_swept();
}
