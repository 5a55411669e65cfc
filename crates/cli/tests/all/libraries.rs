//! Real libraries over real transports.

use crate::left_out::{has_agents, is_long};
use crate::support::{Place, stderr, stdout};
use serde_json::Value;

const LIBRARIES: [&str; 3] = ["zeromq", "nanomsg", "nng"];
const TRANSPORTS: [&str; 3] = ["inproc", "ipc", "tcp"];

fn bench(system: &str, arguments: &[&str]) -> Value {
    let place = Place::new();
    let mut all = vec!["bench", system, "--repeats", "1", "--json", "-q", "--out", "r"];
    all.extend(arguments);
    let output = place.run(&all);
    assert!(matches!(output.status.code(), Some(0 | 3)), "{system} {arguments:?}: {}", stderr(&output));
    let json: Value = serde_json::from_str(&stdout(&output)).unwrap();
    let record = json["runs"][0].clone();
    let environment = std::fs::read_to_string(place.path("r/environment.json")).unwrap();
    let environment: Value = serde_json::from_str(&environment).unwrap();
    assert_eq!(environment["versions"][system], record["versions"], "{system}");
    assert!(record["error"].is_null(), "{system} {arguments:?}: {}", record["error"]);
    let count = |name: &str| record["counts"][name].as_u64().unwrap();
    assert_eq!(count("offered"), count("sent") + count("not_sent"), "{system} {arguments:?}");
    assert_eq!(count("expected"), count("delivered") + count("lost"), "{system} {arguments:?}");
    assert_eq!(record["counts"]["corrupted"].as_u64().unwrap_or_default(), 0, "{system} {arguments:?}");
    assert_eq!(count("duplicated") + count("reordered"), 0, "{system} {arguments:?}");
    place.assert_swept();
    record
}

fn count(record: &Value, name: &str) -> u64 {
    record["counts"][name].as_u64().unwrap()
}

#[test]
fn every_pattern_delivers_over_every_transport() {
    let patterns: [(&[&str], u64); 5] = [
        (&["--pattern", "pairs", "--pairs", "2"], 2),
        (&["--pattern", "fan-out", "--subscribers", "3"], 3),
        (&["--pattern", "fan-in", "--publishers", "3"], 3),
        (&["--pattern", "request-reply", "--pairs", "2"], 2),
        (&["--pattern", "pipeline", "--publishers", "2", "--subscribers", "2"], 2),
    ];
    for system in ["kernel"].into_iter().chain(LIBRARIES) {
        for transport in TRANSPORTS {
            for (pattern, factor) in patterns {
                let mut arguments = vec![
                    "--transport",
                    transport,
                    "--rate",
                    "500",
                    "--warmup",
                    "50ms",
                    "--duration",
                    "200ms",
                    "--payload",
                    "100B",
                    "--set",
                    "verify=full",
                ];
                arguments.extend(pattern);
                let record = bench(system, &arguments);
                assert_eq!(count(&record, "expected"), 100 * factor, "{system} {arguments:?}");
                assert_eq!(count(&record, "delivered"), 100 * factor, "{system} {arguments:?}");
                assert_eq!(record["latency_ns"]["count"], 100 * factor, "{system} {arguments:?}");
            }
        }
    }
    let udp = bench("kernel", &["--transport", "udp", "--rate", "500", "--warmup", "50ms", "--duration", "200ms"]);
    assert_eq!(count(&udp, "expected"), 100);
}

/// One of three echoes: the times are those of the echoes, the counts those of all three.
#[test]
fn what_three_hear_one_echoes() {
    let kernel = [("kernel", "udp"), ("kernel", "tcp"), ("kernel", "ipc"), ("kernel", "inproc")];
    let libraries =
        [("zeromq", "tcp"), ("zeromq", "inproc"), ("nanomsg", "tcp"), ("nng", "ipc"), ("zeromq-czmq", "tcp")];
    let more = [("zeromq-cpp", "tcp"), ("fastdds", "udp"), ("fastdds", "ipc"), ("cyclonedds", "udp")];
    for (system, transport) in kernel.into_iter().chain(libraries).chain(more) {
        if !has_agents("libraries::what_three_hear_one_echoes", &[system]) {
            continue;
        }
        let shape = ["--pattern", "fan-out-echo", "--subscribers", "3", "--transport", transport, "--rate", "500"];
        let size = ["--warmup", "50ms", "--duration", "200ms", "--payload", "100B", "--set", "verify=full"];
        let record = bench(system, &[&shape[..], &size[..]].concat());
        let counts = ["sent", "expected", "delivered", "unanswered"].map(|name| count(&record, name));
        assert_eq!(counts, [100, 300, 300, 0], "{system} {transport}");
        assert_eq!(record["latency_ns"]["count"], 100, "{system} {transport}");
    }
    let refused = Place::new().run(&["bench", "mosquitto", "--pattern", "fan-out-echo"]);
    assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
    assert!(stderr(&refused).contains("fan-out-echo"), "{}", stderr(&refused));
}

/// Requests and replies have topics of their own, and a lost probe does not keep a requester waiting.
#[test]
fn requests_over_dds_are_answered() {
    for (system, transport) in [("fastdds", "udp"), ("fastdds", "ipc"), ("cyclonedds", "udp")] {
        if !has_agents("libraries::requests_over_dds_are_answered", &[system]) {
            continue;
        }
        let shape = ["--pattern", "request-reply", "--pairs", "2", "--transport", transport, "--rate", "250"];
        let size = ["--warmup", "50ms", "--duration", "200ms", "--payload", "16B", "--set", "verify=full"];
        let record = bench(system, &[&shape[..], &size[..]].concat());
        let counts = ["sent", "expected", "delivered"].map(|name| count(&record, name));
        assert_eq!(counts, [100, 100, 100], "{system} {transport}");
        assert_eq!(record["latency_ns"]["count"], 100, "{system} {transport}");
    }
}

/// Deserialised messages have the bytes that were serialised, and the record names the format.
#[test]
fn messages_are_serialised_and_are_whole_when_they_are_objects_again() {
    for (system, transport) in [("zeromq-cpp", "tcp"), ("zeromq-cpp", "inproc"), ("fastdds", "udp")] {
        if !has_agents("libraries::messages_are_serialised_and_are_whole_when_they_are_objects_again", &[system]) {
            continue;
        }
        for (how, payload, bytes) in [
            ("none", 99, 99),
            ("cdr", 99, 107),
            ("cdr-struct", 64, 76),
            ("cdr-struct", 99, 111),
            ("cdr-struct", 5_000, 5_012),
        ] {
            let (payload, how) = (payload.to_string(), format!("options.serialization={how}"));
            let shape = ["--transport", transport, "--rate", "500", "--warmup", "50ms", "--duration", "200ms"];
            let size = ["--payload", &payload, "--set", "verify=full", "--set", &how];
            let record = bench(system, &[&shape[..], &size[..]].concat());
            assert_eq!(["delivered", "corrupted"].map(|name| count(&record, name)), [100, 0], "{system} {how}");
            let applied = &record["agents"][0]["applied"];
            assert_eq!(how.split_once('=').unwrap().1, applied["serialization"], "{system}");
            assert_eq!(applied["serialized_bytes"], bytes, "{system} {how}");
        }
        let short = ["bench", system, "--transport", transport, "--payload", "63", "--repeats", "1"];
        let refused = Place::new().run(&[&short[..], &["--set", "options.serialization=cdr-struct"]].concat());
        let said = stdout(&refused) + &stderr(&refused);
        assert!(!refused.status.success() && said.contains("needs a payload of 64 bytes"), "{system}: {said}");
    }
}

#[test]
fn what_is_asked_is_offered_and_sent() {
    for (rate, duration, due) in [("1", "3s", 3), ("1000", "1s", 1_000), ("50000", "1s", 50_000)] {
        let record = bench(
            "zeromq",
            &["--transport", "inproc", "--rate", rate, "--warmup", "100ms", "--duration", duration, "--payload", "64B"],
        );
        assert_eq!(count(&record, "offered"), due, "{rate} msg/s");
        assert_eq!(count(&record, "sent"), due, "{rate} msg/s");
        assert_eq!(record["send_lag_ns"]["count"], due, "the lag of every send is reported");
    }
}

/// Computed by hand: agents' usage is divided by the time from the first send to the last arrival, without a drain in
/// which nothing happens.
#[test]
fn what_a_count_uses_and_delivers_is_of_the_time_that_it_takes() {
    let arguments =
        ["--transport", "tcp", "--rate", "max", "--warmup", "50ms", "--count", "200000", "--payload", "64B"];
    let record = bench("kernel", &arguments);
    let window_s = record["window_ns"].as_f64().unwrap() / 1e9;
    let near = |found: &Value, wanted: f64| (found.as_f64().unwrap() / wanted - 1.0).abs() < 1e-6;
    for rate in ["sent_per_s", "delivered_per_s"] {
        assert!(near(&record["rates"][rate], 200_000.0 / window_s), "{window_s}: {}", record["rates"]);
    }
    let mut cpu_s = 0.0;
    for agent in record["agents"].as_array().unwrap() {
        let usage = &agent["usage"];
        assert!(near(&usage["cpu_cores"], usage["cpu_s"].as_f64().unwrap() / window_s), "{window_s}: {usage}");
        cpu_s += usage["cpu_s"].as_f64().unwrap();
    }
    let generator = &record["generator"];
    assert!(cpu_s > 0.0 && near(&generator["cpu_s"], cpu_s), "{generator}");
    assert!(near(&generator["cpu_cores"], cpu_s / window_s), "{window_s}: {generator}");
}

#[test]
fn a_count_of_messages_is_exact_at_any_rate() {
    for rate in ["2000", "max"] {
        let record = bench(
            "nng",
            &["--transport", "ipc", "--pattern", "pipeline", "--rate", rate, "--warmup", "50ms", "--count", "500"],
        );
        assert_eq!((count(&record, "offered"), count(&record, "delivered")), (500, 500), "{rate}");
    }
}

#[test]
fn unthrottled_pubsub_ends_by_itself_and_reports_its_loss() {
    for system in LIBRARIES {
        let record = bench(
            system,
            &[
                "--transport",
                "tcp",
                "--pattern",
                "fan-out",
                "--subscribers",
                "2",
                "--rate",
                "max",
                "--warmup",
                "50ms",
                "--duration",
                "500ms",
                "--payload",
                "1KB",
                "--set",
                "options.queue_messages=10",
            ],
        );
        assert!(count(&record, "sent") > 0, "{system}");
        assert_eq!(count(&record, "expected"), 2 * count(&record, "sent"), "{system}");
        assert!(record["latency_ns"].is_null(), "{system}");
        assert!(record["rates"]["delivered_per_s"].as_f64().unwrap() > 0.0, "{system}");
    }
}

#[test]
fn what_a_library_accepted_is_not_lost_at_the_end() {
    // The publisher is done long before the subscriber has read all messages in queues and socket buffers.
    for system in LIBRARIES {
        for transport in ["ipc", "tcp"] {
            let record = bench(
                system,
                &[
                    "--transport",
                    transport,
                    "--pattern",
                    "pipeline",
                    "--rate",
                    "max",
                    "--warmup",
                    "50ms",
                    "--duration",
                    "300ms",
                    "--payload",
                    "32KB",
                ],
            );
            assert!(count(&record, "sent") > 100, "{system} over {transport}");
            assert_eq!(count(&record, "lost"), 0, "{system} over {transport}");
        }
    }
}

#[test]
fn the_record_says_which_library_and_what_took_effect() {
    for system in LIBRARIES {
        let record = bench(system, &["--transport", "tcp", "--warmup", "50ms", "--duration", "100ms", "--rate", "100"]);
        let versions = &record["versions"];
        for field in ["pubmark", "library", "version", "path"] {
            assert!(versions[field].as_str().is_some_and(|text| !text.is_empty()), "{system}: {field} in {versions}");
        }
        assert!(std::path::Path::new(versions["path"].as_str().unwrap()).exists(), "{versions}");
        assert!(!record["applied"].as_object().unwrap().is_empty(), "{system}");
        assert!(record["generator"]["cpu_s"].as_f64().unwrap() > 0.0);
        assert!(record["generator"]["rss_bytes_max"].as_u64().unwrap() > 1 << 20);
        assert!(record["generator"]["voluntary_switches"].as_u64().unwrap() > 0);
        assert_eq!(record["agents"].as_array().unwrap().len(), 2, "a process for each role");
    }
}

/// Cases that depend on a library's sockets rather than on the agent. `make test-agents` runs the whole suite over each
/// library.
const OF_SOCKETS: &str =
    "send,send-pairs,send-pipeline,send-requests,receive,receive-pipeline,reply,meet,crash,receive-crash";

#[test]
fn the_built_in_agent_passes_its_own_check() {
    if !is_long("libraries::the_built_in_agent_passes_its_own_check") {
        return;
    }
    let place = Place::new();
    let all: &[&str] = &[];
    let check = |driver: &str, only: &[&str]| {
        let check = [&["agent-check", "--driver", driver, "--transport", "tcp"], only].concat();
        let output = place.run(&[&check[..], &["--", env!("CARGO_BIN_EXE_pubmark"), "agent"]].concat());
        assert_eq!(output.status.code(), Some(0), "{driver}: {}", stdout(&output));
        assert!(!stdout(&output).contains("FAIL"));
    };
    // In parallel, because most of it is waiting.
    std::thread::scope(|scope| {
        scope.spawn(|| check("zeromq", all));
        scope.spawn(|| check("nanomsg", &["--only", OF_SOCKETS]));
        scope.spawn(|| check("nng", &["--only", OF_SOCKETS]));
    });
    place.assert_swept();
}

#[test]
fn systems_are_listed_with_their_versions() {
    let place = Place::new();
    let output = place.run(&["systems", "--json"]);
    let list: Value = serde_json::from_str(&stdout(&output)).unwrap();
    let own = |system: &&Value| system["protocol"].is_null() && system["agent"].is_null();
    let libraries = list.as_array().unwrap().iter().filter(own);
    for system in libraries {
        assert!(system["missing"].is_null(), "{system}");
        assert!(system["versions"]["version"].is_string(), "{system}");
    }
    let one = stdout(&place.run(&["systems", "nanomsg"]));
    assert!(one.contains("options.tcp_nodelay = true") && one.contains("libnanomsg5"), "{one}");
}

#[test]
fn a_broker_is_shown_with_its_start_and_the_reasons_for_its_settings() {
    let place = Place::new();
    let broker = stdout(&place.run(&["systems", "mosquitto"]));
    for text in ["mosquitto -c {dir}/mosquitto.conf", "options.max_queued_messages = 0", "native, container, external"]
    {
        assert!(broker.contains(text), "{text} in {broker}");
    }
    let sold = place.run(&["systems", "jorammq", "--install"]);
    assert_ne!(sold.status.code(), Some(0));
    assert!(stderr(&sold).contains("it is commercial"), "{}", stderr(&sold));
}

#[test]
fn pinning_and_spinning_still_measure() {
    let record = bench(
        "kernel",
        &[
            "--transport",
            "tcp",
            "--rate",
            "1000",
            "--warmup",
            "50ms",
            "--duration",
            "200ms",
            "--set",
            "pin=roles",
            "--set",
            "pacing=spin",
        ],
    );
    assert_eq!(count(&record, "delivered"), 200);
    assert_eq!(record["workload"]["pin"], "roles");
    // The tests beside this one send over the same loopback interface.
    let of_others = |remark: &&Value| !remark.as_str().unwrap().starts_with("other programs ");
    let remarks: Vec<&Value> = record["remarks"].as_array().unwrap().iter().filter(of_others).collect();
    assert!(remarks.is_empty(), "{remarks:?}");
}
