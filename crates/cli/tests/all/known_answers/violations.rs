//! A peer that breaks statements of its protocol's specification: each is counted by its name.

use super::*;

/// Returns the violations of a run of 1,200 messages, 200 of them in the warm-up.
fn violations(run: &Run) -> Vec<(String, u64)> {
    let all = run.bench.record["violations"].as_object().cloned().unwrap_or_default();
    all.into_iter().map(|(statement, count)| (statement, count.as_u64().unwrap())).collect()
}

#[test]
fn dup_flags_that_are_wrong_are_counted_by_statement() {
    let _alone = alone();
    let load = ["--rate", "1000", "--set", "drain=1s"];
    let script = "delay = { fixed = \"1ms\" }\nmqtt = { dup = { every = 19 }, redeliver = { every = 10 } }";
    for (version, qos, duplicated) in [("3.1.1", "1", 100), ("5", "1", 100), ("5", "2", 0)] {
        let version = format!("options.mqtt_version={version}");
        let run = Run::new("mqtt", script, 1_000, &[&load[..], &["--qos", qos, "--set", &version]].concat());
        let found = violations(&run);
        let wanted = [
            ("[MQTT-3.3.1-1] DUP was 0 on a redelivery".to_owned(), 120),
            ("[MQTT-3.3.1-3] DUP was 1 on a first delivery".to_owned(), 63),
        ];
        assert_eq!(found, wanted, "QoS {qos}, {version}");
        assert_eq!((run.bench.count("duplicated"), run.bench.count("lost")), (duplicated, 0));
        let notes = run.bench.record["verdict"]["notes"].to_string();
        assert!(notes.contains("the server broke its protocol, 120 times: [MQTT-3.3.1-1]"), "{notes}");
    }
    let run = Run::new("mqtt", "delay = { fixed = \"1ms\" }", 1_000, &[&load[..], &["--qos", "1"]].concat());
    assert_eq!(violations(&run), [], "a server that keeps to its protocol");
}
