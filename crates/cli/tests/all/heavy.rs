//! Whole runs against brokers that take minutes to install: Zenoh's router and agent, and brokers in Java. They are
//! played if PUBMARK_TEST_HEAVY is 1, as `make test-all` sets it; a broker that is missing there is a failure.

use crate::left_out::leave_out;
use crate::support::{Place, stderr, stdout};
use serde_json::Value;

/// Returns whether a heavy test is enabled, by its full name. Notes the test as left out if not.
pub fn wanted(test: &str) -> bool {
    let wanted = std::env::var("PUBMARK_TEST_HEAVY").is_ok_and(|value| value == "1");
    if !wanted {
        leave_out(test, "`make test-all` installs what it needs and sets PUBMARK_TEST_HEAVY=1");
    }
    wanted
}

/// Makes one run of 1,000 messages with ten clients per side: all of them arrive intact. Returns the record.
fn all_arrive(system: &str, arguments: &[&str]) -> Value {
    let place = Place::new();
    let mut all = vec!["bench", system, "--repeats", "1", "--json", "-q", "--out", "r"];
    all.extend(["--pairs", "10", "--rate", "50", "--warmup", "500ms", "--duration", "2s", "--set", "verify=full"]);
    all.extend(["--memory", "1GB"]);
    all.extend(arguments);
    let output = place.run(&all);
    assert!(matches!(output.status.code(), Some(0 | 3)), "{system}: {}", stderr(&output));
    let json: Value = serde_json::from_str(&stdout(&output)).unwrap();
    let record = json["runs"][0].clone();
    assert!(record["error"].is_null(), "{system}: {}", record["error"]);
    let counts = &record["counts"];
    assert_eq!((&counts["expected"], &counts["delivered"]), (&1_000.into(), &1_000.into()), "{system}: {counts}");
    let is_killed = arguments.iter().any(|argument| argument.starts_with("kill server"));
    assert!(is_killed || counts["duplicated"] == 0, "{system}: {counts}");
    for fault in ["corrupted", "acked_lost"] {
        assert_eq!(counts[fault], 0, "{system}: {counts}");
    }
    let version = record["versions"]["server"].as_str().unwrap_or_default();
    assert!(version.starts_with(&format!("{system} ")), "the record names the server: {version:?}");
    assert!(record["server"]["rss_bytes_median"].as_u64().unwrap() > 0, "the server was watched");
    place.assert_swept();
    record
}

/// The same at QoS 1 with durable sessions and a fault: every message is acknowledged.
fn all_acknowledged_arrive(system: &str, fault: &[&str]) {
    let record = all_arrive(system, &[&["--qos", "1", "--durable"], fault].concat());
    assert_eq!(record["counts"]["acked"], 1_000, "{}", record["counts"]);
}

#[test]
fn zenoh_plays_pairs_with_clients_of_both_kinds() {
    if wanted("heavy::zenoh_plays_pairs_with_clients_of_both_kinds") {
        let record = all_arrive("zenoh-library", &[]);
        assert_eq!(record["versions"]["library"], "zenoh");
        all_arrive("zenoh", &[]);
        // Fragments in both directions, and the other channel.
        all_arrive("zenoh", &["--payload", "200KB", "--set", "options.reliability=best-effort"]);
    }
}

#[test]
fn hivemq_plays_pairs_at_qos_2() {
    if wanted("heavy::hivemq_plays_pairs_at_qos_2") {
        let record = all_arrive("hivemq", &["--qos", "2"]);
        assert!(record["counts"]["acked"].as_u64().unwrap() > 0, "{}", record["counts"]);
    }
}

#[test]
fn artemis_keeps_what_it_acknowledged_over_amqp() {
    if wanted("heavy::artemis_keeps_what_it_acknowledged_over_amqp") {
        all_arrive("artemis-amqp", &[]);
        all_acknowledged_arrive("artemis-amqp", &["--fault", "stop server at 500ms for 500ms", "--set", "drain=30s"]);
        // Messages in several frames, in both directions.
        all_arrive("artemis-amqp", &["--qos", "1", "--payload", "300KB"]);
    }
}

/// Qpid refuses clients that reconnect before its virtual host is active.
#[test]
fn qpid_keeps_what_it_acknowledged_over_amqp() {
    if wanted("heavy::qpid_keeps_what_it_acknowledged_over_amqp") {
        all_arrive("qpid-amqp", &[]);
        all_acknowledged_arrive("qpid-amqp", &["--fault", "kill server at 500ms for 500ms", "--set", "drain=60s"]);
    }
}

#[test]
fn artemis_plays_pairs_at_qos_1() {
    if wanted("heavy::artemis_plays_pairs_at_qos_1") {
        let record = all_arrive("artemis", &["--qos", "1"]);
        assert!(record["counts"]["acked"].as_u64().unwrap() > 0, "{}", record["counts"]);
    }
}
