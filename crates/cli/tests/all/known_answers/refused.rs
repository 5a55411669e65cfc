//! A peer that refuses messages, announces limits, and ends or blocks publishers: that is counted, or reported at once.

use super::*;

const QUOTA: &str = "quota exceeded (code 0x97)";

/// Runs one publisher of 1,000 messages per second for a second. The script affects messages in the window, which are
/// numbered 201 to 1200.
fn refuse(protocol: &str, script: &str, arguments: &[&str]) -> Run {
    let script = format!("delay = {{ fixed = \"1ms\" }}\n{script}");
    Run::new(protocol, &script, 1_000, &[&["--rate", "1000", "--set", "drain=1s"], arguments].concat())
}

impl Run {
    fn counts<const N: usize>(&self, names: [&str; N]) -> [u64; N] {
        names.map(|name| self.bench.count(name))
    }

    fn refusals(&self) -> Vec<(String, u64)> {
        let all = self.bench.record["refusals"].as_array().cloned().unwrap_or_default();
        let told = |one: &Value| (one["reason"].as_str().unwrap().to_owned(), one["count"].as_u64().unwrap());
        all.iter().map(told).collect()
    }
}

const ALL: [&str; 8] = ["offered", "sent", "acked", "refused", "expected", "delivered", "lost", "duplicated"];

#[test]
fn every_second_message_is_refused_and_none_is_lost() {
    let _alone = alone();
    let five = |qos| vec!["--qos", qos, "--set", "options.mqtt_version=5"];
    for (protocol, arguments, qos, words) in [
        ("mqtt", five("1"), 1, QUOTA),
        ("mqtt", five("2"), 2, QUOTA),
        ("amqp", vec!["--qos", "1"], 1, "basic.nack"),
        ("kafka", vec!["--qos", "1", "--set", "options.batch=1B"], 1, "POLICY_VIOLATION (44): the policy of the peer"),
        ("redis", vec![], 0, "OOM command not allowed"),
        ("redis", vec!["--set", "options.resp=2"], 0, "OOM command not allowed"),
    ] {
        let run = refuse(protocol, "refuse = { every = 2 }", &arguments);
        let acked = if qos > 0 { 500 } else { 0 };
        assert_eq!(run.counts(ALL), [1_000, 1_000, acked, 500, 500, 500, 0, 0], "{protocol} {arguments:?}");
        assert_eq!((run.account("refused"), run.bench.count("acked_lost")), (500, 0));
        let refusals = run.refusals();
        assert!(refusals.len() == 1 && refusals[0].0.starts_with(words) && refusals[0].1 == 500, "{refusals:?}");
        let evidence = run.bench.evidence("resource-limit-hit").unwrap();
        assert!(evidence.starts_with("the server refused 500 of 1000 messages: "), "{evidence}");
        assert!(evidence.contains(words), "{evidence}");
        for reason in ["messages-lost", "messages-refused", "server-died"] {
            assert_eq!(run.bench.evidence(reason), None, "{protocol} {arguments:?}");
        }
        assert!(run.bench.said.contains("500 of 1000 refused"), "{}", run.bench.said);
    }
}

#[test]
fn what_is_refused_stands_apart_from_what_is_lost() {
    let _alone = alone();
    // Of 1,000: 500 refused; of the odd ones 100 without an answer, and 58 of the others are acknowledged and not
    // passed on. Each of three subscribers should have received the rest.
    let script = "refuse = { every = 2, code = 0x87 }\nlose = { every = 5 }\nswallow = { every = 7 }";
    let fan_out = ["--pattern", "fan-out", "--subscribers", "3", "--qos", "1"];
    let run = refuse("mqtt", script, &[&fan_out[..], MQTT_5].concat());
    let each = |keep: &dyn Fn(u64) -> bool| (201..=1_200u64).filter(|number| keep(*number)).count() as u64;
    let lost = each(&|n| n % 2 == 1 && n % 5 == 0);
    let swallowed = each(&|n| n % 2 == 1 && n % 5 > 0 && n % 7 == 0);
    let delivered = 500 - lost - swallowed;
    let wanted = [1_000, 1_000, 500 - lost, 500, 1_500, 3 * delivered, 3 * (lost + swallowed), 0];
    assert_eq!(run.counts(ALL), wanted, "{}", run.bench.record["counts"]);
    assert_eq!(run.bench.count("acked_lost"), 3 * swallowed);
    assert_eq!(run.refusals(), [("not authorised (code 0x87)".to_owned(), 500)]);
    let evidence = run.bench.evidence("messages-refused").unwrap();
    assert_eq!(evidence, "the server refused 500 of 1000 messages: not authorised (code 0x87)");
    assert!(run.bench.evidence("messages-lost").unwrap().starts_with(&format!("{} of 1500 expected", wanted[6])));
    assert_eq!(run.bench.evidence("resource-limit-hit"), None);
}

#[test]
fn a_publisher_that_is_told_to_wait_is_a_limit_by_name() {
    let _alone = alone();
    let script = "block = { from = 400, to = 600, words = \"low on memory\" }";
    let run = refuse("amqp", script, &["--qos", "1"]);
    assert_eq!(run.counts(["sent", "acked", "refused", "lost"]), [1_000, 1_000, 0, 0]);
    let evidence = run.bench.evidence("resource-limit-hit").unwrap();
    let said = "the server reached a limit of its own: the server took no messages for ";
    assert!(evidence.starts_with(said) && evidence.ends_with(" s and said why: low on memory"), "{evidence}");
}

/// Makes a run that cannot begin: the error must have these texts, which no wait for a probe could know.
fn cannot_begin(protocol: &str, script: &str, arguments: &[&str], wanted: &[&str]) {
    let place = Place::new();
    let peer = Peer::start(&place, protocol, script);
    let bench = place.bench(&[&[peer.endpoint.as_str()], arguments].concat());
    bench.assert_failed(wanted);
    assert!(!bench.error().contains("no probe arrived"), "{}", bench.error());
    peer.end();
    place.assert_swept();
}

#[test]
fn a_refused_first_message_ends_the_run_in_the_servers_words() {
    let _alone = alone();
    let first = "the first message of publisher 0";
    for (qos, version) in [("1", "5"), ("2", "5")] {
        let version = format!("options.mqtt_version={version}");
        let arguments = ["--qos", qos, "--set", &version];
        let script = "refuse = { probes = true, code = 0x87 }";
        cannot_begin("mqtt", script, &arguments, &[first, "not authorised (code 0x87)"]);
        cannot_begin("mqtt", "refuse = { probes = true }", &arguments, &[first, QUOTA]);
    }
    let words = "NOPERM User reader has no permissions to run the 'publish' command";
    let script = format!("refuse = {{ probes = true, words = \"{words}\" }}");
    for resp in ["options.resp=2", "options.resp=3"] {
        cannot_begin("redis", &script, &["--set", resp], &[first, words]);
    }
    let words = "Permissions Violation for Publish to x";
    cannot_begin("nats", &format!("refuse = {{ probes = true, words = \"{words}\" }}"), &[], &["publisher 0", words]);
    cannot_begin("amqp", "refuse = { probes = true }", &["--qos", "1"], &[first, "basic.nack"]);
    let words = "no room for records of 300 bytes";
    let script = format!("refuse = {{ probes = true, words = \"{words}\" }}");
    cannot_begin("kafka", &script, &["--qos", "1"], &[first, "POLICY_VIOLATION (44)", words]);
}

/// The members of a cluster learn one after the other that a stream exists.
#[test]
fn a_stream_that_is_not_known_yet_is_awaited_and_not_for_ever() {
    let _alone = alone();
    let run = refuse("nats", "refuse = { early = 5 }", &["--qos", "1"]);
    assert_eq!(run.counts(["sent", "acked", "refused", "lost"]), [1_000, 1_000, 0, 0]);
    let wanted = ["the first message of publisher 0", "503", "for 1 s"];
    cannot_begin("nats", "refuse = { early = 1000000 }", &["--qos", "1", "--set", "connect_timeout=1s"], &wanted);
}

#[test]
fn a_connection_that_ends_with_the_first_message_ends_the_run_in_the_servers_words() {
    let _alone = alone();
    let lost = "publisher 0 lost its connection before the start";
    let end = |code: u16, words: &str| format!("end = {{ after = 1, code = {code}, words = \"{words}\" }}");
    cannot_begin("mqtt", &end(0x95, ""), MQTT_5, &[lost, "packet too large (code 0x95)"]);
    cannot_begin("mqtt", &end(0, ""), &[], &[lost, "MQTT 3.1.1 has no words for a refused message"]);
    let words = "Permissions Violation for Publish to x";
    cannot_begin("nats", &end(0, words), &[], &[lost, words]);
    cannot_begin("redis", &end(0, "NOPERM no publish"), &[], &["NOPERM no publish"]);
    let words = "ACCESS_REFUSED - access to exchange refused";
    cannot_begin("amqp", &end(403, words), &[], &[lost, "403", words]);
}

#[test]
fn a_limit_that_the_run_exceeds_is_told_when_it_connects_with_both_numbers() {
    let _alone = alone();
    // PUBLISH at QoS 0: 1 + 2 for its length, 2 + the topic, 1, and 256 of payload.
    cannot_begin("mqtt", "limits = { packet_bytes = 200 }", MQTT_5, &["of 200 bytes at most", "payload below 256"]);
    let qos_2 = [&["--qos", "2"], MQTT_5].concat();
    cannot_begin("mqtt", "limits = { qos = 1 }", &qos_2, &["QoS 1 at most, and QoS 2 is asked for"]);
    let payload = ["payloads of 100 bytes at most, and those of this run have 256"];
    cannot_begin("nats", "limits = { payload_bytes = 100 }", &[], &payload);
    // A receive maximum is respected, and is no error.
    let run = refuse("mqtt", "limits = { inflight = 2, packet_bytes = 400 }", &[&["--qos", "1"], MQTT_5].concat());
    assert_eq!(run.counts(["sent", "acked", "lost", "refused"]), [1_000, 1_000, 0, 0]);
}

#[test]
fn a_publisher_that_is_blocked_before_its_first_message_arrived_ends_the_run() {
    let _alone = alone();
    let script = "block = { from = 1, to = 1000000, words = \"low on disk\" }\nlose = { every = 1 }";
    cannot_begin("amqp", script, &[], &["the server takes no messages: low on disk"]);
}
