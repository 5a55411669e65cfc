//! Real brokers, started by pubmark or attached: every pattern at every quality of service that they support, and their
//! entries in a record.

use crate::support::{Place, assert_adds_up, count, free_port, stderr};
use serde_json::Value;

/// Makes one short run of each cell: a hundred messages of each publisher.
fn study(place: &Place, system: &str, axes: &str) -> Vec<Value> {
    let text = format!(
        "title = \"t\"\n[workload]\nrate = 500\npayload = \"256B\"\nwarmup = \"50ms\"\nduration = \"200ms\"\ndrain = \"3s\"\nverify = \"full\"\n[axes]\nsystem = [\"{system}\"]\n{axes}\n[run]\nrepeats = 1\n"
    );
    let path = place.study(&text);
    // A busy machine may make runs invalid, and small samples always do: counts are not affected.
    let output = place.run(&["run", path.to_str().unwrap(), "--out", "r", "-q"]);
    assert!(matches!(output.status.code(), Some(0 | 3)), "{}", stderr(&output));
    let records = place.records("r");
    assert!(!records.is_empty(), "{}", stderr(&output));
    std::fs::remove_dir_all(place.path("r")).unwrap();
    place.assert_swept();
    records
}

/// Plays the patterns that allow two publishers and two subscribers. With four publishers a subscription of the tree
/// covers two topics.
pub fn patterns(place: &Place, system: &str, names: &[&str], axes: &str) -> Vec<Value> {
    let quoted: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
    let list = quoted.join(", ");
    let mut records = study(place, system, &format!("pairs = [2]\n{axes}"));
    records.extend(study(place, system, &format!("pattern = [{list}]\npublishers = [4]\nsubscribers = [2]\n{axes}")));
    for record in &records {
        assert_promises(record);
    }
    records
}

/// Checks what is true of every successful run, on any machine.
fn assert_promises(record: &Value) {
    let (workload, counts) = (&record["workload"], &record["counts"]);
    let what = format!("{} {workload} {counts} {}", record["system"], record["remarks"]);
    assert!(record["error"].is_null(), "{}: {what}", record["error"]);
    assert_adds_up(record);
    let (publishers, subscribers) =
        (workload["publishers"].as_u64().unwrap(), workload["subscribers"].as_u64().unwrap());
    assert_eq!(count(record, "offered"), 100 * publishers, "{what}");
    let copies = if matches!(workload["pattern"].as_str(), Some("fan-out" | "fan-in")) { subscribers } else { 1 };
    assert_eq!(count(record, "expected"), copies * count(record, "sent"), "{what}");
    assert_eq!(record["counts"]["corrupted"].as_u64().unwrap_or_default(), 0, "{what}");
    assert_eq!(count(record, "unidentified") + count(record, "reordered"), 0, "{what}");
    let qos = workload["qos"].as_u64().unwrap();
    assert_eq!(count(record, "acked"), if qos > 0 { count(record, "sent") } else { 0 }, "{what}");
    assert!(count(record, "delivered") > 0, "{what}");
    if qos > 0 {
        assert_eq!(count(record, "lost") + count(record, "acked_lost"), 0, "{what}");
    }
    if qos != 1 {
        assert_eq!(count(record, "duplicated"), 0, "{what}");
    }
    let connections = &record["connections"];
    assert_eq!(connections["wanted"], publishers + subscribers, "{what}");
    assert_eq!(connections["opened"], connections["wanted"], "{what}");
    assert_eq!(connections["lost"], 0, "{what}");
}

/// Checks the record of a server that was started for the run.
fn assert_deployed(record: &Value) {
    let deployment = &record["deployment"];
    assert_eq!(deployment["kind"], "native", "{deployment}");
    assert!(record["versions"]["server"].as_str().is_some_and(|version| version.contains('.')), "{record}");
    assert!(deployment["pid"].as_u64().is_some() && deployment["started_s"].as_f64().unwrap() > 0.0, "{deployment}");
    assert!(!deployment["applied"]["by"].as_str().unwrap().is_empty(), "{deployment}");
    let server = &record["server"];
    assert_usage(record);
    assert!(server["rss_bytes_median"].as_u64().is_some_and(|bytes| bytes > 0), "{server}");
    assert!(!deployment["processes"].as_array().unwrap().is_empty(), "{deployment}");
    assert!(record["verdict"]["reasons"].as_array().unwrap().iter().all(|found| found["reason"] != "server-died"));
}

/// Checks that the server's processor time was read. If the machine was too busy for its snapshots at the window's
/// edges, the verdict marks the cost as unreliable.
fn assert_usage(record: &Value) {
    let server = &record["server"];
    let reasons = record["verdict"]["reasons"].as_array().unwrap();
    let is_cost_known = !reasons.iter().any(|found| found["figures"].as_array().unwrap().contains(&"cost".into()));
    assert!(server["cpu_s"].as_f64().is_some_and(|cpu| cpu > 0.0 || !is_cost_known), "{server}");
}

fn mosquitto(version: &str) {
    let place = Place::new();
    let axes = format!("qos = [0, 1, 2]\n\"options.mqtt_version\" = [\"{version}\"]");
    let records = patterns(&place, "mosquitto", &["fan-out", "fan-in", "pipeline", "tree"], &axes);
    assert_eq!(records.len(), 15);
    records.iter().for_each(assert_deployed);
}

#[test]
fn mosquitto_keeps_its_promises_in_mqtt_3() {
    mosquitto("3.1.1");
}

#[test]
fn mosquitto_keeps_its_promises_in_mqtt_5() {
    mosquitto("5");
}

#[test]
fn retained_and_durable_messages_do_not_confuse_the_ledger() {
    let place = Place::new();
    let axes = "qos = [0, 1, 2]\n\"options.retain\" = [true]\npairs = [2]";
    study(&place, "mosquitto", axes).iter().for_each(assert_promises);
    let durable = study(
        &place,
        "mosquitto",
        "qos = [1, 2]\ndurable = [true]\npairs = [2]\n\"options.mqtt_version\" = [\"3.1.1\", \"5\"]",
    );
    assert_eq!(durable.len(), 4);
    durable.iter().for_each(assert_promises);
}

#[test]
fn limits_are_read_back() {
    let place = Place::new();
    let bench = place.bench(&["mosquitto", "--pairs", "2", "--cpus", "1", "--memory", "256MiB"]);
    assert_deployed(&bench.record);
    let deployment = &bench.record["deployment"];
    assert_eq!(deployment["limits"]["memory_bytes"], 256 << 20);
    let applied = &deployment["applied"];
    assert_eq!(applied["cpus"], 1.0, "{applied}");
    // If there is no control group, the record says so.
    assert!(applied["memory_bytes"] == 256 << 20 || applied["note"].is_string(), "{applied}");
    assert!(place.path("r/logs").exists());
    assert!(deployment["command"][0] == "mosquitto" && deployment["endpoint"].as_str().unwrap().starts_with("mqtt://"));
    place.assert_swept();
}

/// It stops reading from publishers before the kernel kills it.
#[test]
fn rabbitmq_heeds_its_memory_before_the_kernel_does() {
    let place = Place::new();
    let bench = place.bench(&["rabbitmq-amqp", "--pairs", "1", "--memory", "1000MiB"]);
    assert!(bench.record["error"].is_null(), "{}", bench.error());
    let log = std::fs::read_to_string(place.path("r/logs/run-0-server.log")).unwrap();
    let set = log.split("Memory high watermark set to ").nth(1).unwrap_or_else(|| panic!("{log}"));
    assert!(set.starts_with("600 MiB "), "{}", set.lines().next().unwrap());
}

#[test]
fn nats_delivers_every_pattern() {
    let place = Place::new();
    let records = patterns(&place, "nats", &["fan-out", "fan-in", "pipeline", "tree"], "");
    assert_eq!(records.len(), 5);
    records.iter().for_each(assert_deployed);
}

#[test]
fn jetstream_keeps_its_promises_whether_it_pushes_or_is_asked() {
    let place = Place::new();
    let axes = "qos = [1]\n\"options.consumer\" = [\"pull\", \"push\"]";
    let records = patterns(&place, "nats-jetstream", &["fan-out", "fan-in", "pipeline", "tree"], axes);
    assert_eq!(records.len(), 10);
    records.iter().for_each(assert_deployed);
    let others = "qos = [1]\ndurable = [true]\npairs = [2]\n\"options.storage\" = [\"file\", \"memory\"]\n\"options.message_ids\" = [true]";
    study(&place, "nats-jetstream", others).iter().for_each(assert_promises);
}

#[test]
fn streams_of_redis_keep_their_promises_in_both_versions_of_the_protocol() {
    let place = Place::new();
    let axes = "qos = [1]\n\"options.resp\" = [2, 3]";
    let records = patterns(&place, "redis-streams", &["fan-out", "fan-in", "pipeline"], axes);
    assert_eq!(records.len(), 8);
    records.iter().for_each(assert_deployed);
    let others = "qos = [1]\ndurable = [true]\npairs = [2]\n\"options.appendfsync\" = [\"always\", \"no\"]";
    study(&place, "redis-streams", others).iter().for_each(assert_promises);
}

#[test]
fn redis_delivers_every_pattern_in_both_versions_of_its_protocol() {
    let place = Place::new();
    let records = patterns(&place, "redis", &["fan-out", "fan-in", "tree"], "\"options.resp\" = [2, 3]");
    assert_eq!(records.len(), 8);
    records.iter().for_each(assert_deployed);
}

#[test]
fn rumqttd_keeps_its_promises() {
    // It is built, which takes minutes.
    if !crate::heavy::wanted("brokers::rumqttd_keeps_its_promises") {
        return;
    }
    let place = Place::new();
    let records = patterns(&place, "rumqttd", &["fan-out", "fan-in", "tree"], "qos = [0, 1]");
    assert_eq!(records.len(), 8);
    records.iter().for_each(assert_deployed);
}

/// One server for all of them, because it takes seconds to start.
#[test]
fn rabbitmq_keeps_its_promises_over_both_protocols() {
    let (place, mqtt, amqp) = (Place::new(), free_port(), free_port());
    let home = Place::new();
    let server = home.serve_system("rabbitmq-mqtt", vec![(String::new(), mqtt), ("amqp".into(), amqp)]);
    let mqtt = format!("\"options.endpoint\" = [\"mqtt://127.0.0.1:{mqtt}\"]\n");
    let amqp = format!("\"options.endpoint\" = [\"amqp://127.0.0.1:{amqp}\"]\n");
    let patterns_of = |system, names: &[&str], endpoint: &str| {
        let records = patterns(&place, system, names, &format!("{endpoint}qos = [0, 1]"));
        assert_eq!(records.len(), 2 * (names.len() + 1));
        for record in &records {
            assert_eq!(record["deployment"]["kind"], "external");
            assert_eq!(record["deployment"]["attached"], "seen");
            assert_usage(record);
            let name = record["deployment"]["processes"][0]["name"].as_str().unwrap();
            assert!(name.contains("beam"), "{name}");
        }
    };
    patterns_of("mqtt", &["fan-out", "fan-in", "tree"], &mqtt);
    patterns_of("amqp", &["fan-out", "fan-in", "pipeline", "tree"], &amqp);
    for (system, endpoint) in [("mqtt", &mqtt), ("amqp", &amqp)] {
        let durable = study(&place, system, &format!("{endpoint}qos = [1]\ndurable = [true]\npairs = [2]"));
        durable.iter().for_each(assert_promises);
    }
    let types =
        format!("{amqp}qos = [1]\ndurable = [true]\npairs = [2]\n\"options.queue_type\" = [\"quorum\", \"stream\"]");
    let of_types = study(&place, "amqp", &types);
    assert_eq!(of_types.len(), 2);
    of_types.iter().for_each(assert_promises);
    wrong_logins(&place, &amqp, &mqtt);
    server.stop();
}

/// RabbitMQ's own refusals: a wrong password, and what its MQTT lacks.
fn wrong_logins(place: &Place, amqp: &str, mqtt: &str) {
    let endpoint = |axis: &str| axis.split('"').nth(3).unwrap().to_owned();
    let wrong = endpoint(amqp).replace("//", "//guest:hidden-word@");
    let bench = place.bench(&[&wrong]);
    bench.assert_failed(&["Login was refused", "password"]);
    assert!(!bench.error().contains("hidden-word"));
    std::fs::rename(place.path("r"), place.path("r-password")).unwrap();
    let bench = place.bench(&[&endpoint(mqtt), "--set", "options.mqtt_version=5"]);
    // From version 3.13 on it supports MQTT 5; before, it closes the connection without an answer.
    assert!(bench.error().is_empty() || bench.error().contains("closed the connection"), "{}", bench.error());
    std::fs::rename(place.path("r"), place.path("r-version")).unwrap();
    let bench = place.bench(&[&endpoint(mqtt), "--qos", "2"]);
    assert!(bench.code == 3 && bench.error().contains("QoS"), "{}", bench.error());
}

#[test]
fn rabbitmq_is_started_for_each_of_its_protocols() {
    for system in ["rabbitmq-amqp", "rabbitmq-amqp1", "rabbitmq-mqtt"] {
        let place = Place::new();
        let bench =
            place.bench(&[system, "--pattern", "fan-out", "--subscribers", "2", "--qos", "1", "--memory", "512MiB"]);
        assert_eq!(bench.error(), "");
        assert_deployed(&bench.record);
        assert_eq!(bench.count("delivered"), 2 * bench.count("sent"));
        assert_eq!(bench.count("acked"), bench.count("sent"));
        place.assert_swept();
    }
}

#[test]
fn subscribers_connect_where_a_server_listens_for_them_apart_and_a_tree_has_the_sizes_that_are_set() {
    let place = Place::new();
    let system = "title = \"Two\"\nabout = \"a\"\nlicence = \"MIT\"\ndriver = \"mqtt\"\npatterns = [\"tree\"]\n\
        [server]\nendpoint = \"mqtt://{address}:{port}\"\nsubscriber_endpoint = \"mqtt://{address}:{port.apart}\"\n\
        command = [\"mosquitto\", \"-v\", \"-c\", \"{dir}/m.conf\"]\n\
        [server.files.\"m.conf\"]\n\
        text = \"listener {port} {address}\\nlistener {port.apart} {address}\\nuser root\\nlog_dest stdout\\n\
        allow_anonymous true\\n{options.quiet:log_timestamp|#} false\\n\"\n\
        [options.quiet]\nkind = \"bool\"\ndefault = false\ndoc = \"a\"\n";
    std::fs::write(place.path("two.toml"), system).unwrap();
    place.study(
        "title = \"t\"\n[workload]\npattern = \"tree\"\npublishers = 6\nsubscribers = 2\ntree_devices = 2\n\
         tree_parameters = 3\nrate = 100\nwarmup = \"50ms\"\nduration = \"300ms\"\n\
         [axes]\nsystem = \"./two.toml\"\n[run]\nrepeats = 1\n",
    );
    let output = place.run(&["run", "study.toml", "--out", "r", "-q"]);
    assert!(matches!(output.status.code(), Some(0 | 3)), "{}", stderr(&output));
    let record = &place.records("r")[0];
    assert!(record["error"].is_null(), "{}", record["error"]);
    assert_eq!(count(record, "delivered"), count(record, "sent"));
    assert_eq!((&record["workload"]["tree_devices"], &record["workload"]["tree_parameters"]), (&2.into(), &3.into()));
    let log = std::fs::read_to_string(place.path("r/logs/run-0-server.log")).unwrap();
    let ports = log
        .lines()
        .filter(|line| line.contains("New connection from"))
        .filter_map(|line| line.split_once(" on port ").map(|(_, port)| port.trim_end_matches('.').to_owned()));
    let mut by_port = std::collections::BTreeMap::<String, u32>::new();
    ports.for_each(|port| *by_port.entry(port).or_default() += 1);
    let mut connections: Vec<u32> = by_port.into_values().collect();
    connections.sort_unstable();
    assert_eq!(connections, [2, 6], "two subscribers at one port, six publishers at the other: {log}");
    // A partition of three devices has two subsystems: u0 with d0 and d1, and u1 with d0.
    assert!(log.contains("/s1/u1/d0/2") && !log.contains("/u1/d1/") && !log.contains("/d0/3"), "{log}");
    place.assert_swept();
}
