//! Files of OpenMessaging Benchmark are played as they are, or refused with a way out; and results in its format.

mod published;

use crate::support::{Place, free_port, stderr, stdout};
use published::{Outcome, PUBLISHED};
use pubmark_import::{ImportedStudy, SourceText, omb};
use pubmark_model::diagnostic::Diagnostics;
use pubmark_model::study::{ReadOptions, Study};
use pubmark_study::registry;
use serde_json::{Value, json};

/// A workload that every system plays.
const WORKLOAD: &str = "name: Two topics\ntopics: 2\npartitionsPerTopic: 1\nmessageSize: 100\nsubscriptionsPerTopic: 2\n\
                        consumerPerSubscription: 1\nproducersPerTopic: 1\nproducerRate: 400\ntestDurationMinutes: 1\n";

/// Returns a driver file with these lines.
fn driver(class: &str, lines: &str) -> String {
    format!("name: D\ndriverClass: io.openmessaging.benchmark.driver.{class}BenchmarkDriver\n{lines}")
}

fn nats() -> String {
    driver("nats.Nats", "")
}

/// Returns the study of two files, which must be one that pubmark reads; or the errors.
fn imported(workload: &str, driver: &str) -> Result<ImportedStudy, String> {
    let systems = registry::built_in;
    let workload = SourceText { file: "w.yaml", text: workload };
    let study = omb::study(workload, SourceText { file: "d.yaml", text: driver }, &systems);
    let study =
        study.map_err(|errors| errors.iter().map(Diagnostics::to_string).collect::<Vec<String>>().join("\n"))?;
    let read = Study::parse("study", &study.text, &systems, &ReadOptions::default());
    read.unwrap_or_else(|errors| panic!("{errors}\n{}", study.text));
    Ok(study)
}

fn assert_refused(workload: &str, driver: &str, wanted: &[&str]) {
    let said = imported(workload, driver).unwrap_err();
    for text in wanted {
        assert!(said.contains(text), "should say {text:?}:\n{said}");
    }
    assert!(said.lines().all(|line| !line.is_empty()), "{said}");
}

#[test]
fn published_workloads_are_kept_or_refused_with_the_key() {
    for published in PUBLISHED {
        let (text, file) = (published.text(), published.file);
        match (&published.outcome, imported(&text, &nats())) {
            (Outcome::Study(lines), Ok(study)) => {
                let toml = &study.text;
                assert!(lines.iter().all(|line| toml.contains(line)), "{file}:\n{toml}");
                assert!(
                    toml.contains(&format!("title = \"{file}\"")) && toml.contains("repeats = 1"),
                    "{file}:\n{toml}"
                );
            }
            (Outcome::Error(parts), Err(said)) => {
                assert!(parts.iter().all(|part| said.contains(part)), "{file}:\n{said}");
                assert_eq!(said.matches("w.yaml").count(), said.matches("help: ").count(), "a way out each:\n{said}");
            }
            (_, other) => panic!("{file}: {other:?}"),
        }
    }
    assert!(PUBLISHED.len() >= 20);
}

#[test]
fn the_way_out_leads_out() {
    for published in PUBLISHED {
        let minutes = |line: &str| if line.contains("${") { "testDurationMinutes: 15".into() } else { line.to_owned() };
        let mut consumers = 0;
        let repaired = |line: String| -> Option<String> {
            let (key, value) = line.split_once(": ")?;
            consumers += usize::from(key == "consumerPerSubscription");
            match key {
                "producerIncrementRate" | "messageRateReceivedForSubscription" => None,
                "partitionsPerTopic" | "consumerBacklogSizeGB" => {
                    Some(format!("{key}: {}", u8::from(key.starts_with('p'))))
                }
                "topics" if value.len() > 2 => Some("topics: 16".into()),
                "producerRate" if value == "10000000" => Some("producerRate: 0".into()),
                _ => Some(line),
            }
        };
        let lines: Vec<String> = published.text().lines().map(minutes).filter_map(repaired).collect();
        let missing = if consumers == 0 { "\nconsumerPerSubscription: 1\n" } else { "\n" };
        let text = lines.join("\n") + missing;
        imported(&text, &nats()).unwrap_or_else(|said| panic!("{}: {said}\n{text}", published.file));
    }
}

#[test]
fn what_has_no_effect_is_told_and_so_is_what_differs() {
    let more = "payloadFile: x.data\nkeyDistributor: RANDOM_NANO\nbacklogDrainRatio: 0.9\nproducerStartRate: 10\n";
    let study = imported(&format!("{}{more}", WORKLOAD.replace("400", "0")), &nats()).unwrap();
    let remarks: Vec<String> = study.remarks.iter().map(ToString::to_string).collect();
    for wanted in [
        "ignored: payloadFile (w.yaml): ",
        "ignored: keyDistributor (w.yaml): ",
        "ignored: backlogDrainRatio (w.yaml): ",
        "ignored: producerStartRate (w.yaml): ",
        "differs: producerRate 0: ",
        "d.yaml names no server: pubmark starts nats-jetstream itself",
    ] {
        assert_eq!(remarks.iter().filter(|remark| remark.starts_with(wanted)).count(), 1, "{wanted}: {remarks:#?}");
    }
    assert!(study.text.contains("rate = \"max\"") && study.text.contains("[flows.topic-2]"), "{}", study.text);
}

#[test]
fn each_driver_names_its_system_and_its_server() {
    for (driver, wanted) in [
        (
            driver("nats.Nats", "natsHostUrl: localhost:4222\n"),
            "[options.nats-jetstream]\nendpoint = \"nats://localhost:4222\"",
        ),
        (
            driver("rabbitmq.RabbitMq", "amqpUris:\n  - amqp://u:p@h\nmessagePersistence: true\nqueueType: CLASSIC\n"),
            "[options.rabbitmq-amqp]\nendpoint = \"amqp://u:p@h\"",
        ),
        (
            driver("redis.Redis", "redisHost: h\nredisPort: 7000\nredisPass: \"a/b\"\njedisPoolMaxTotal: 8\n"),
            "[options.redis-streams]\nendpoint = \"redis://:a%2Fb@h:7000\"",
        ),
        (
            driver("artemis.Artemis", "brokerAddress: tcp://localhost:61616\n"),
            "[options.artemis]\nendpoint = \"mqtt://localhost:61616\"",
        ),
    ] {
        let study = imported(WORKLOAD, &driver).unwrap();
        assert!(study.text.contains(wanted), "{}", study.text);
        let durable = driver.contains("rabbitmq") || driver.contains("artemis");
        assert!(study.text.contains(&format!("qos = 1\ndurable = {durable}")), "{}", study.text);
    }
    let quorum = imported(WORKLOAD, &driver("rabbitmq.RabbitMq", "queueType: QUORUM\n")).unwrap().text;
    assert!(quorum.contains("qos = 1\ndurable = true") && quorum.contains("queue_type = \"quorum\""), "{quorum}");
}

/// Properties of Kafka's clients, as the driver's published files have them.
#[test]
fn properties_of_kafka_become_options_and_the_rest_is_refused() {
    let texts = |producer: &str| {
        let lines = [
            "replicationFactor: 1",
            "reset: true",
            "topicConfig: |\n  min.insync.replicas=1",
            "commonConfig: |\n  bootstrap.servers=localhost:9092\n  request.timeout.ms=120000",
            &format!("producerConfig: |\n  {producer}"),
            "consumerConfig: |\n  auto.offset.reset=earliest\n  enable.auto.commit=false\n  max.partition.fetch.bytes=10485760",
        ];
        driver("kafka.Kafka", &lines.join("\n"))
    };
    let workload =
        WORKLOAD.replace("partitionsPerTopic: 1", "partitionsPerTopic: 16") + "keyDistributor: KEY_ROUND_ROBIN\n";
    let random = "useRandomizedPayloads: true\nrandomBytesRatio: 0.25\n";
    let all = "acks=all\n  linger.ms=1\n  batch.size=131072\n  compression.type=gzip\n  # a remark\n  max.in.flight.requests.per.connection=3";
    let study = imported(&(workload.clone() + random), &texts(all)).unwrap();
    let options = "[options.kafka]\nendpoint = \"kafka://localhost:9092\"\nlinger = \"1ms\"\nbatch = \"131072B\"\n\
                   compression = \"gzip\"\ninflight = 3\nfetch_max = \"10485760B\"\npartitions = 16\n\
                   partition_by = \"key\"\nkeyspace = 10000\n";
    assert!(study.text.ends_with(options), "{}", study.text);
    assert!(study.text.contains("payload_content = \"zeros 75%\"\nqos = 1\n"), "{}", study.text);
    let remarks: Vec<String> = study.remarks.iter().map(ToString::to_string).collect();
    for wanted in [
        "ignored: auto.offset.reset",
        "ignored: min.insync.replicas",
        "differs: keys: ",
        "differs: producers of Kafka 3",
    ] {
        assert!(remarks.iter().any(|remark| remark.starts_with(wanted)), "{wanted}: {remarks:#?}");
    }
    for (producer, qos) in [("acks=0", 0), ("acks=1", 1), ("acks=all\n  enable.idempotence=true", 2)] {
        let study = imported(&workload, &texts(producer)).unwrap();
        assert!(study.text.contains(&format!("qos = {qos}\n")), "{}", study.text);
    }
    let refused = |lines: &str, wanted: &[&str]| assert_refused(WORKLOAD, &driver("kafka.Kafka", lines), wanted);
    refused("replicationFactor: 3\n", &["d.yaml:3:20: replicationFactor is 3"]);
    refused("commonConfig: |\n  bootstrap.servers=a:1,b:1\n", &["bootstrap.servers must be one server"]);
    refused("producerConfig: |\n  compression.type=lz4\n", &["compression.type must be none or gzip"]);
    refused("producerConfig: |\n  linger.ms=soon\n", &["linger.ms must be a whole number"]);
    refused("commonConfig: |\n  sasl.jaas.config=s3cret\n", &["commonConfig has the property `sasl.jaas.config`"]);
    let many = workload.replace("partitionsPerTopic: 16", "partitionsPerTopic: 100");
    assert_refused(&many, &texts("acks=all"), &["partitionsPerTopic is 100", "Set partitionsPerTopic: 64 or fewer"]);
}

#[test]
fn what_a_driver_asks_and_pubmark_has_not_is_refused() {
    let refused = |class: &str, lines: &str, wanted: &[&str]| assert_refused(WORKLOAD, &driver(class, lines), wanted);
    for class in ["pulsar.Pulsar", "jms.JMS", "natsStreaming.NatsStreaming"] {
        let named = format!("the driver `{}`, which is not supported yet", class.split('.').next().unwrap());
        refused(class, "topicConfig: x\n", &["d.yaml:2:14", &named, "artemis, kafka, nats, rabbitmq, redis"]);
    }
    refused("nats.Nats", "replicationFactor: 3\n", &["d.yaml:3:20: replicationFactor is 3"]);
    refused("nats.Nats", "natsHostUrl: nats://a:1,nats://b:1\n", &["d.yaml:3:14: natsHostUrl: an endpoint names one"]);
    refused("rabbitmq.RabbitMq", "queueType: LAZY\n", &["queueType is unknown", "Use CLASSIC, QUORUM or STREAM"]);
    refused("rabbitmq.RabbitMq", "amqpUris: [amqp://a, amqp://b]\n", &["amqpUris has 2 servers"]);
    refused("rabbitmq.RabbitMq", "amqpUris: amqp://a\n", &["amqpUris must be a list, but is a text"]);
    refused("artemis.Artemis", "brokerAddress: vm://0\n", &["brokerAddress: `vm://` is not a scheme"]);
    let competing = WORKLOAD.replace("Topic: 2", "Topic: 1").replace("Subscription: 1", "Subscription: 2");
    assert_refused(&competing, &driver("artemis.Artemis", ""), &["has no competing subscribers"]);
    assert!(imported(&competing, &nats()).unwrap().text.contains("pattern = \"pipeline\""));
    let both = WORKLOAD.replace("Subscription: 1", "Subscription: 2");
    assert_refused(&both, &nats(), &["w.yaml:6:26", "fan-out", "pipeline"]);
}

#[test]
fn bad_files_are_refused_with_place_and_way_out() {
    let place = Place::new();
    let refused = |workload: &str, driver: &str, wanted: &[&str]| {
        std::fs::write(place.path("w.yaml"), workload).unwrap();
        std::fs::write(place.path("d.yaml"), driver).unwrap();
        let output = place.run(&["run", "--omb", "w.yaml", "--driver", "d.yaml", "--out", "r"]);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(wanted.iter().all(|text| said.contains(text)) && !said.contains("panicked"), "{wanted:?}:\n{said}");
        assert!(!said.contains("s3cret"), "{said}");
        assert!(!place.path("r").exists());
    };
    refused("", &nats(), &["w.yaml: the file is empty"]);
    refused(WORKLOAD, "", &["d.yaml: the file is empty"]);
    refused("- 1\n- 2\n", &nats(), &["w.yaml:1:1: a workload must be a table of keys, but is a list"]);
    refused("topics: [1\n", &nats(), &["w.yaml:", "not YAML"]);
    refused(WORKLOAD, "name: D\n", &["d.yaml: driverClass is missing", "Add driverClass:"]);
    refused(WORKLOAD, "driverClass: [x]\n", &["d.yaml:1:14: driverClass must be a text, but is a list"]);
    refused(
        "topic: 1\ntopics: one\npartitionsPerTopic: 1.5\nmessageSize: 8\nproducerRate: -5\nuseRandomizedPayloads: 3\n",
        &driver("nats.Nats", "natsHosturl: nats://u:s3cret@h\n"),
        &[
            "w.yaml:1:1: unknown key `topic`\n  help: did you mean `topics`?",
            "w.yaml:2:9: topics must be a whole number, 0 or more, but is a text",
            "w.yaml:3:21: partitionsPerTopic must be a whole number, 0 or more, but is a number with a fraction",
            "w.yaml:4:14: messageSize must be 16 to 1073741824 bytes, but is 8",
            "w.yaml:5:15: producerRate must be a whole number, 0 or more, but is -5",
            "w.yaml:6:24: useRandomizedPayloads must be true or false, but is a whole number",
            "w.yaml: subscriptionsPerTopic is missing\n  help: Add subscriptionsPerTopic: 1",
            "w.yaml: testDurationMinutes is missing",
            "d.yaml:3:1: unknown key `natsHosturl`\n  help: did you mean `natsHostUrl`?",
        ],
    );
    refused(
        WORKLOAD,
        &driver("redis.Redis", "redisHost: h\nredisPass: {s3cret: s3cret}\n"),
        &["redisPass must be a text"],
    );
    let one = |arguments: &[&str], wanted: &str| {
        let output = place.run(arguments);
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert!(stderr(&output).contains(wanted), "{}", stderr(&output));
    };
    one(&["run", "--omb", "none.yaml", "--driver", "d.yaml"], "--omb none.yaml: ");
    one(&["run", "--omb", "w.yaml", "--driver", "none.yaml"], "--driver none.yaml: ");
    one(&["run", "--omb", "w.yaml"], "--driver");
    one(&["run", "quickstart", "--omb", "w.yaml", "--driver", "d.yaml"], "cannot be used with");
    one(&["run"], "<STUDY>");
}

#[test]
fn a_workload_runs_and_its_result_has_the_fields() {
    let place = Place::new();
    std::fs::write(place.path("w.yaml"), WORKLOAD).unwrap();
    std::fs::write(place.path("d.yaml"), nats()).unwrap();
    let run = ["run", "--omb", "w.yaml", "--driver", "d.yaml", "--set", "warmup=200ms", "--set", "duration=1s"];
    let plan = place.run(&[&run[..], &["--dry-run"]].concat());
    assert_eq!((plan.status.code(), stdout(&plan).contains("1 cell, 1 run,")), (Some(0), true), "{}", stderr(&plan));
    let output = place.run(&[&run[..], &["--out", "r"]].concat());
    // The machine may be busy.
    assert!([Some(0), Some(3)].contains(&output.status.code()), "{}", stderr(&output));
    assert!(stderr(&output).contains("pubmark starts nats-jetstream itself"), "{}", stderr(&output));
    let record = &place.records("r")[0];
    assert_eq!((record["counts"]["sent"].as_u64(), record["counts"]["delivered"].as_u64()), (Some(400), Some(800)));
    let result = formatted(&place);
    for (field, wanted) in [
        ("workload", json!("Two topics")),
        ("driver", json!("nats-jetstream")),
        ("messageSize", json!(100)),
        ("topics", json!(2)),
        ("partitions", json!(1)),
        ("producersPerTopic", json!(1)),
        ("consumersPerTopic", json!(1)),
    ] {
        assert_eq!(result[field], wanted, "{field}");
    }
    for (field, time) in [("EndToEnd", "latency_ns"), ("Publish", "ack_latency_ns")] {
        let p99_ms = record[time]["p99"].as_f64().unwrap() / 1e6;
        assert_eq!(result[format!("aggregated{field}Latency99pct")].as_f64(), Some(p99_ms));
    }
    place.assert_swept();
}

#[test]
fn the_server_that_a_driver_names_is_measured() {
    let place = Place::new();
    let port = free_port();
    let _server = place.serve_system("redis", vec![(String::new(), port)]);
    std::fs::write(place.path("w.yaml"), WORKLOAD).unwrap();
    let lines = format!("redisHost: 127.0.0.1\nredisPort: {port}\njedisPoolMaxTotal: 8\njedisPoolMaxIdle: 8\n");
    std::fs::write(place.path("d.yaml"), driver("redis.Redis", &lines)).unwrap();
    let short = ["--set", "warmup=200ms", "--set", "duration=1s", "--out", "r"];
    let output = place.run(&[&["run", "--omb", "w.yaml", "--driver", "d.yaml"][..], &short].concat());
    assert!([Some(0), Some(3)].contains(&output.status.code()), "{}", stderr(&output));
    let record = &place.records("r")[0];
    assert_eq!(record["deployment"]["endpoint"], format!("redis://127.0.0.1:{port}"), "{}", record["error"]);
    assert_eq!(record["counts"]["delivered"], 800);
}

/// Returns what `report --format omb` prints of the folder `r`.
fn formatted(place: &Place) -> Value {
    let output = place.run(&["report", "r", "--format", "omb"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    serde_json::from_str(&stdout(&output)).unwrap()
}

/// Returns all fields of the class `TestResult` of OpenMessaging Benchmark, which reads no others.
fn fields() -> Vec<String> {
    let general = "workload driver messageSize topics partitions producersPerTopic consumersPerTopic publishRate \
                   publishErrorRate consumeRate backlog";
    let mut all: Vec<String> = general.split_whitespace().map(str::to_owned).collect();
    for time in ["PublishLatency", "PublishDelayLatency", "EndToEndLatency"] {
        let by_slice = format!("{}{}", time[..1].to_lowercase(), &time[1..]);
        for name in [by_slice, format!("aggregated{time}")] {
            let ends = ["Avg", "50pct", "75pct", "95pct", "99pct", "999pct", "9999pct", "Max"];
            all.extend(ends.map(|end| format!("{name}{end}")));
        }
        all.push(format!("aggregated{time}Quantiles"));
    }
    all.sort_unstable();
    all
}

#[test]
fn results_have_exactly_the_fields_of_the_other_tool_in_its_units() {
    let place = Place::new();
    let bench = ["bench", "mock", "--pattern", "fan-out", "--publishers", "2", "--subscribers", "3", "--qos", "1"];
    let load = ["--rate", "500", "--payload", "100B,1KiB", "--repeats", "2", "--duration", "2s", "--out", "r"];
    let delay = ["--set", "options.delay=2ms", "--set", "options.jitter=500us"];
    let output = place.run(&[&bench[..], &load, &delay].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let results = formatted(&place);
    let (results, records) = (results.as_array().unwrap(), place.records("r"));
    assert_eq!(results.len(), 2, "an object a cell");
    for result in results {
        let mut names: Vec<&String> = result.as_object().unwrap().keys().collect();
        names.sort_unstable();
        assert_eq!(names, fields().iter().collect::<Vec<&String>>());
        let bytes = result["messageSize"].as_u64().unwrap();
        let runs: Vec<&Value> = records.iter().filter(|run| run["workload"]["payload_bytes"] == bytes).collect();
        assert_eq!(runs.len(), 2);
        let name = result["workload"].as_str().unwrap();
        assert!(name.starts_with("mock: ") && name.contains(if bytes == 100 { "100B" } else { "1KiB" }), "{name}");
        let [topics, producers, consumers] =
            ["topics", "producersPerTopic", "consumersPerTopic"].map(|key| result[key].as_u64().unwrap());
        assert_eq!((topics, producers, consumers), (1, 2, 1));
        let slices: usize = runs.iter().map(|run| run["series"]["sent"].as_array().unwrap().len()).sum();
        for (list, mean) in [("publishRate", 1_000.0), ("consumeRate", 3_000.0), ("publishErrorRate", 0.0)] {
            let rates: Vec<f64> = result[list].as_array().unwrap().iter().map(|rate| rate.as_f64().unwrap()).collect();
            assert_eq!(rates.len(), slices, "{list}");
            let found = rates.iter().sum::<f64>() / slices as f64;
            assert!((found - mean).abs() <= mean * 0.01, "{list}: {found}");
        }
        let most = result["backlog"].as_array().unwrap().iter().map(|count| count.as_u64().unwrap()).max();
        assert!(most <= Some(30), "what was sent in the last ms has not arrived: {most:?}");
        let at = |key: &str| result[key].as_f64().unwrap();
        let half_ms = at("aggregatedEndToEndLatency50pct");
        assert!((2.0..2.6).contains(&half_ms), "ms: {half_ms}");
        assert!(result["aggregatedPublishDelayLatency50pct"].is_u64(), "whole µs");
        assert_eq!(result["endToEndLatency99pct"].as_array().unwrap().len(), slices);
        assert_eq!(result["endToEndLatency95pct"], json!([]), "not by slice");
        let quantiles = result["aggregatedEndToEndLatencyQuantiles"].as_object().unwrap();
        assert!((quantiles["50.0"].as_f64().unwrap() / half_ms - 1.0).abs() < 0.003);
        assert_eq!(quantiles["100.0"].as_f64(), Some(at("aggregatedEndToEndLatencyMax")));
        let levels: Vec<f64> = quantiles.keys().map(|level| level.parse().unwrap()).collect();
        assert!(levels.is_sorted() && levels.len() > 300, "{}", levels.len());
    }
}

#[test]
fn publish_latency_ends_with_the_acknowledgement() {
    let place = Place::new();
    let benched = place.bench(&["mosquitto", "--qos", "1"]);
    let result = formatted(&place);
    let ack_ns = &benched.record["ack_latency_ns"];
    for (field, figure) in [("50pct", "p50"), ("99pct", "p99"), ("999pct", "p999"), ("Max", "max")] {
        let (found, wanted_ns) =
            (&result[format!("aggregatedPublishLatency{field}")], ack_ns[figure].as_f64().unwrap());
        assert_eq!(found.as_f64(), Some(wanted_ns / 1e6), "{field}");
    }
    assert!(result["publishErrorRate"].as_array().unwrap().iter().all(|rate| rate.as_f64() == Some(0.0)));
}

#[test]
fn without_a_latency_its_fields_are_empty() {
    let place = Place::new();
    let output = place.run(&["bench", "mock", "--rate", "max", "--pairs", "3", "--repeats", "1", "--out", "r"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let result = formatted(&place);
    assert_eq!((&result["topics"], &result["producersPerTopic"]), (&json!(3), &json!(1)));
    assert_eq!(result["aggregatedEndToEndLatency99pct"], Value::Null);
    assert_eq!(result["endToEndLatency99pct"], json!([]));
    assert!(!result["publishRate"].as_array().unwrap().is_empty());
}
