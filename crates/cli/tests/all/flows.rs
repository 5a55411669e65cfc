//! Several flows in one run: each has its own counts, figures and verdict.

use crate::known_answers::Peer;
use crate::support::{Place, assert_adds_up, count, stderr, stdout};
use serde_json::Value;
use std::collections::BTreeMap;

/// Flows of a run, by name, and `all` of them together.
type Flows = BTreeMap<String, Value>;

/// Runs a bench of flows. Returns the record of each flow.
fn bench(place: &Place, arguments: &[&str]) -> Flows {
    let fixed = ["--json", "--repeats", "1", "--warmup", "200ms", "--duration", "1s", "--out", "r"];
    let output = place.run(&[&["bench"], arguments, &fixed[..]].concat());
    let said = stderr(&output);
    assert!(matches!(output.status.code(), Some(0 | 3)) && !said.contains("panicked"), "{said}");
    let told: Value = serde_json::from_str(&stdout(&output)).unwrap_or_else(|error| panic!("{error}: {said}"));
    let cells = told["cells"].as_array().unwrap_or_else(|| panic!("{told}"));
    let flow = |cell: &Value| {
        let record = cell["runs"][0].clone();
        assert_adds_up(&record);
        assert!(record["error"].is_null(), "{}", record["error"]);
        (cell["cell"]["flow"].as_str().unwrap().to_owned(), record)
    };
    cells.iter().map(flow).collect()
}

fn counts(flows: &Flows, flow: &str, names: &[&str]) -> Vec<u64> {
    names.iter().map(|name| count(&flows[flow], name)).collect()
}

/// One flow is silent at the beginning and at the end.
#[test]
fn a_flow_has_a_part_of_the_window() {
    const NAMES: [&str; 4] = ["offered", "expected", "delivered", "lost"];
    let place = Place::new();
    let peer = Peer::start(&place, "mqtt", "lose = { every = 10 }");
    let part = "part: pairs=2, rate=200, start=250ms, end=750ms";
    let flows = bench(&place, &[&peer.endpoint, "--flow", part, "--flow", "whole: rate=100"]);
    assert_eq!(counts(&flows, "part", &NAMES), [200, 200, 180, 20]);
    // Of 100 sequences from 20 on, 10 end a ten.
    assert_eq!(counts(&flows, "whole", &NAMES), [100, 100, 90, 10]);
    assert_eq!(counts(&flows, "all", &NAMES), [300, 300, 270, 30]);
    assert!(flows["part"]["drain_time_ns"].is_u64() && flows["all"]["drain_time_ns"].is_u64());
}

/// Every seventh message of each publisher is lost, and one message of a publisher that only one flow has comes twice.
#[test]
fn each_flow_has_its_own_truth() {
    const SCRIPT: &str = "delay = { fixed = \"1ms\" }\nlose = { every = 7 }\nduplicate = { at = [[1, 40]] }";
    const NAMES: [&str; 5] = ["offered", "expected", "delivered", "lost", "duplicated"];
    for protocol in ["mqtt", "nats", "redis", "amqp", "kafka", "zenoh"] {
        let place = Place::new();
        let peer = Peer::start(&place, protocol, SCRIPT);
        let pairs = "pairs: pairs=2, rate=100, payload=256B";
        let fan = "fan: fan-out, subscribers=3, rate=50, payload=64B";
        let flows = bench(&place, &[&peer.endpoint, "--flow", pairs, "--flow", fan]);
        // Of 100 sequences from 20 on, 15 end a seven; of 50 from 10 on, 7 do.
        assert_eq!(counts(&flows, "pairs", &NAMES), [200, 200, 170, 30, 1], "{protocol}");
        assert_eq!(counts(&flows, "fan", &NAMES), [50, 150, 129, 21, 0], "{protocol}");
        assert_eq!(counts(&flows, "all", &NAMES), [250, 350, 299, 51, 1], "{protocol}");
        let bytes = |flow: &str| flows[flow]["rates"]["delivered_bytes_per_s"].as_f64().unwrap();
        assert!((bytes("all") - bytes("pairs") - bytes("fan")).abs() < 1.0, "{protocol}");
        // Arrivals in the window: a few may come after its end, and a few of the warm-up in it.
        assert!((0.9 * 129.0 * 64.0..=1.1 * 129.0 * 64.0).contains(&bytes("fan")), "{protocol}: {}", bytes("fan"));
        for flow in ["pairs", "fan"] {
            let record = &flows[flow];
            assert!(record["latency_ns"]["min"].as_u64().unwrap() >= 1_000_000, "{protocol} {flow}");
            assert!(record["server"].is_null() && record["generator"].is_null(), "usage is that of all flows");
            assert_eq!(record["agents"].as_array().unwrap().len(), 2, "{protocol} {flow}");
        }
        assert!(flows["all"]["generator"]["cpu_s"].as_f64().unwrap() > 0.0);
        let twice = |flow: &str| {
            let reasons = flows[flow]["verdict"]["reasons"].as_array().unwrap();
            reasons.iter().find(|reason| reason["reason"] == "duplicates").map(|reason| reason["evidence"].clone())
        };
        assert_eq!(twice("pairs"), Some("1 messages arrived again".into()), "{protocol}");
        assert_eq!((twice("fan"), twice("all")), (None, Some("pairs: 1 messages arrived again".into())), "{protocol}");
        drop(peer);
        place.assert_swept();
    }
}

/// By hand, from 200 ms to 1,200 ms after the start: 220 messages at 400 and 40 a second in turns for 250 ms each, of
/// which those from the 81st to the 300th are sevenths 31 times; and 236 of a ramp, from the 25th to the 260th.
#[test]
fn rates_that_change_have_exact_counts_beside_each_other() {
    const SCRIPT: &str =
        "lose = { every = 7 }\nduplicate = { at = [[0, 100]] }\n[[stall]]\nfrom = \"600ms\"\nfor = \"100ms\"";
    const NAMES: [&str; 4] = ["offered", "delivered", "lost", "duplicated"];
    for protocol in ["mqtt", "nats", "redis", "amqp", "kafka", "zenoh"] {
        let place = Place::new();
        let peer = Peer::start(&place, protocol, SCRIPT);
        let turns = "turns: rate=steps 400 40 each 250ms repeat, payload=64B";
        let ramp = "ramp: rate=ramp 100 to 300 in 1s, payload=256B";
        let flows = bench(&place, &[&peer.endpoint, "--flow", turns, "--flow", ramp]);
        assert_eq!(counts(&flows, "turns", &NAMES), [220, 189, 31, 1], "{protocol}");
        assert_eq!(counts(&flows, "ramp", &NAMES), [236, 202, 34, 1], "{protocol}");
        for flow in ["turns", "ramp"] {
            // Both have a message within 10 ms of the stall's beginning.
            let most = flows[flow]["latency_ns"]["max"].as_u64().unwrap();
            assert!(most >= 90_000_000, "{protocol} {flow}: the server stalls for all flows: {most}");
        }
        drop(peer);
        place.assert_swept();
    }
}

#[test]
fn flows_of_real_systems_lose_nothing_and_add_up() {
    const NAMES: [&str; 4] = ["expected", "delivered", "lost", "duplicated"];
    let alarms = "alarms: fan-out, subscribers=10, rate=20, payload=64B";
    for (system, more, others) in [
        ("mosquitto", &[][..], "telemetry: pairs=20, rate=50, qos=1"),
        ("nats", &[], "telemetry: fan-in, publishers=20, rate=50"),
        ("redis", &[], "telemetry: pairs=20, rate=50, arrival=poisson"),
        ("zeromq", &["--transport", "tcp"], "telemetry: request-reply, rate=50"),
        ("kernel", &["--transport", "inproc"], "telemetry: pipeline, subscribers=2, rate=500"),
    ] {
        let place = Place::new();
        let flows = bench(&place, &[&[system, "--flow", alarms, "--flow", others], more].concat());
        assert_eq!(flows.keys().collect::<Vec<_>>(), ["alarms", "all", "telemetry"], "{system}");
        assert_eq!(counts(&flows, "alarms", &NAMES), [200, 200, 0, 0], "{system}");
        let [of_alarms, of_others, of_all] = ["alarms", "telemetry", "all"]
            .map(|flow| counts(&flows, flow, &["offered", "expected", "delivered", "lost"]));
        let sum: Vec<u64> = of_alarms.iter().zip(&of_others).map(|(one, other)| one + other).collect();
        assert_eq!(sum, of_all, "{system}");
        assert!(of_others[0] > 20 && of_others[3] == 0, "{system}: {of_others:?}");
        place.assert_swept();
    }
}

/// The study's flows are an axis of its report: claims name them, `--only` leaves some out, and a folder tells the same
/// again.
#[test]
fn claims_and_reports_tell_flows_apart() {
    const STUDY: &str = r#"
title = "Two flows"
[workload]
duration = "1s"
warmup = "100ms"
rate = 1000
[flows.few]
pairs = 2
[flows.many]
pairs = 6
payload = "64B"
[axes]
system = ["mock"]
[run]
repeats = 3
[[claims]]
id = "1"
says = "many has three times the rate of few"
expr = "delivered_per_s(mock, many) / delivered_per_s(mock, few) in 2.9..3.1"
[[claims]]
id = "2"
says = "all have four times the rate of few"
expr = "delivered_per_s(mock, flow=all) / delivered_per_s(mock, flow=few) in 3.9..4.1"
"#;
    let place = Place::new();
    std::fs::write(place.path("two.toml"), STUDY).unwrap();
    let output = place.run(&["run", "two.toml", "--out", "r"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let told = stdout(&output);
    for words in
        ["few: pairs, 2 publishers", "many: pairs, 6 publishers", "LATENCY p50 / p99, lower is better", "3 runs: 3 ok"]
    {
        assert!(told.contains(words), "should say {words:?}: {told}");
    }
    let claims = stdout(&place.run(&["claims", "r"]));
    assert!(claims.contains("2 claims: 2 holds"), "{claims}");
    let again = stdout(&place.run(&["report", "r"]));
    assert!(again.contains("few: pairs, 2 publishers"), "{again}");
    let csv = std::fs::read_to_string(place.path("r/summary.csv")).unwrap();
    for flow in ["few", "many", "all"] {
        assert!(csv.lines().any(|line| line.contains(&format!(",{flow},"))), "{csv}");
    }
    let output = place.run(&["run", "two.toml", "--only", "flow=few", "--out", "few", "--repeats", "1"]);
    let told = stdout(&output) + &stderr(&output);
    assert!(told.contains("few: pairs, 2 publishers") && !told.contains("many"), "{told}");
}

/// A bound of a flow looks at that flow alone: of `few` and of `all` the same bound would be broken.
#[test]
fn a_gate_of_a_flow_looks_at_that_flow_alone() {
    let place = Place::new();
    let flows = ["bench", "mock", "--flow", "few: rate=100", "--flow", "many: rate=300, payload=64B"];
    let fixed = ["--repeats", "2", "--warmup", "0s", "--duration", "2s", "--out", "r"];
    let output = place.run(&[&flows[..], &fixed, &["--require", "offered_per_s(many) < 350"]].concat());
    let said = stderr(&output);
    assert!(said.contains("gate `offered_per_s(many) < 350` held"), "{said}");
    assert!(!said.contains("broken") && !said.contains("open"), "{said}");
}

#[test]
fn a_key_of_a_flow_is_an_axis_and_differs_between_the_arms_of_a_comparison() {
    let place = Place::new();
    let study = "title = \"t\"\n[workload]\nwarmup = \"0s\"\nduration = \"1s\"\n[flows.few]\n[flows.many]\nrate = 300\n\
                 [axes]\nsystem = [\"mock\"]\n\"flows.few.rate\" = [50, 100]\n[run]\nrepeats = 1\n";
    std::fs::write(place.path("rates.toml"), study).unwrap();
    let output = place.run(&["run", "rates.toml", "--out", "rates", "--set", "flows.few.rate=50,100,200"]);
    let records = place.records("rates");
    assert_eq!(records.len(), 3, "{}", stderr(&output));
    for record in &records {
        let few = record["cell"]["flows.few.rate"].as_u64().unwrap();
        let offered = |flow: usize| record["flows"][flow]["counts"]["offered"].as_u64().unwrap();
        assert_eq!([offered(0), offered(1)], [few, 300]);
    }
    let arms = ["--a", "flows.few.rate=100", "--b", "flows.few.rate=50"];
    let gates = ["--fail-on", "offered_per_s(few) < -10%", "--fail-on", "offered_per_s(many) < -10%"];
    let flows = ["--flow", "few: payload=64B", "--flow", "many: rate=300"];
    let fixed = ["--json", "--duration", "1s", "--set", "warmup=0s", "--budget", "30s", "--out", "r"];
    let output = place.run(&[&["ab", "mock"], &flows[..], &arms, &gates, &fixed].concat());
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let told: Value = serde_json::from_str(&stdout(&output)).unwrap();
    let outcomes: Vec<&Value> = told["gates"].as_array().unwrap().iter().map(|gate| &gate["outcome"]).collect();
    assert_eq!(outcomes, ["failed", "passed"], "{told}");
    let again = place.run(&["report", "r"]);
    assert!(stdout(&again).contains("flow=many"), "{}", stdout(&again));
    let output =
        place.run(&["ab", "mock", "--a", "flows.few.rate=1", "--b", "flows.few.rate=2", "--fail-on", "p50 > +1%"]);
    assert!(stderr(&output).contains("--a flows.few.rate: the study has no flow `few`"), "{}", stderr(&output));
}

/// Sending takes the mock 1 ms: a flow of two publishers carries 2,000 messages/s.
#[test]
fn the_capacity_of_a_flow_is_found_beside_the_others() {
    let place = Place::new();
    let flows = ["--flow", "few: pairs=2, rate=100", "--flow", "many: rate=300"];
    let goal = ["--over", "flows.few.rate", "--until", "p99(few) < 5ms and lost = 0"];
    let fixed = ["--set", "options.send_cost=1ms", "--set", "warmup=0s", "--duration", "10s", "--out", "r", "--json"];
    let output = place.run(&[&["capacity", "mock"], &flows[..], &goal, &fixed].concat());
    let told: Value = serde_json::from_str(&stdout(&output)).unwrap_or_else(|_| panic!("{}", stderr(&output)));
    let estimate = told["estimate"].as_f64().unwrap_or_else(|| panic!("{told} {}", stderr(&output)));
    assert!((1_900.0..2_100.0).contains(&estimate), "{estimate}");
    let again = place.run(&["report", "r", "--json"]);
    let again: Value = serde_json::from_str(&stdout(&again)).unwrap();
    assert_eq!(again[0]["estimate"], told["estimate"], "a report says the same");
    for (over, until, wanted) in [
        ("rate", "lost = 0", "`rate` is of one flow: write flows.few.rate; its flows: few, many"),
        ("flows.none.rate", "lost = 0", "the study has no flow `none`"),
        ("flows.few.rate", "p99(none) < 5ms", "the study has no flow `none`: its flows: few, many"),
        ("flows.few.cpus", "lost = 0", "`cpus` limits the server, and not a flow"),
    ] {
        let goal = ["--over", over, "--until", until, "--out", "r2"];
        let output = place.run(&[&["capacity", "mock"], &flows[..], &goal].concat());
        assert_eq!(output.status.code(), Some(2), "{over}: {}", stderr(&output));
        assert!(stderr(&output).contains(wanted), "{over}: {}", stderr(&output));
    }
}

#[test]
fn what_is_no_flow_is_refused_with_the_way_out() {
    let place = Place::new();
    for (flow, wanted) in [
        ("alarms", "there is no name before a colon"),
        ("all: pairs", "`all` stands for all flows together"),
        ("Alarms: pairs", "`Alarms` is not a name of a flow"),
        ("a: sze=64B", "a flow has no key `sze`; it has: pattern"),
        ("a: warmup=1s", "a flow has no key `warmup`"),
        ("a: fan-oot", "did you mean `fan-out`?"),
        ("a: qos=7", "qos"),
        ("a: pairs=2, publishers=3", "[flows.a]: `publishers` contradicts `pairs`"),
    ] {
        let output = place.run(&["bench", "mock", "--flow", flow, "--out", "r"]);
        assert_eq!(output.status.code(), Some(2), "{flow}: {}", stderr(&output));
        assert!(stderr(&output).contains(wanted), "{flow}: {}", stderr(&output));
    }
    for (table, wanted) in [
        ("[workload]\ncount = 100\n[flows.a]\n", "write `duration` in place of `count`"),
        ("[flows.a]\nwarmup = \"1s\"\n", "`warmup` is the same for all flows: write it in [workload]"),
        ("[flows.a]\n[run]\nheadroom = true\n", "headroom = true cannot be combined with [flows.NAME]"),
        ("[flows]\nrate = 5\n", "[flows.NAME]"),
    ] {
        let study = format!("title = \"t\"\n{table}[axes]\nsystem = [\"mock\"]\n");
        std::fs::write(place.path("bad.toml"), study).unwrap();
        let output = place.run(&["run", "bad.toml", "--out", "r"]);
        assert_eq!(output.status.code(), Some(2), "{table}: {}", stderr(&output));
        assert!(stderr(&output).contains(wanted), "{table}: {}", stderr(&output));
    }
    for (arguments, wanted) in [
        (["--set", "flows.b.rate=5"], "the study has no flow `b`"),
        (["--set", "flows.a.rat=5"], "did you mean `rate`?"),
        (["--only", "flow=b"], "the study has no flow `b`; its flows: a"),
    ] {
        let study = "title = \"t\"\n[flows.a]\n[axes]\nsystem = [\"mock\"]\n";
        std::fs::write(place.path("one.toml"), study).unwrap();
        let output = place.run(&[&["run", "one.toml", "--out", "r"], &arguments[..]].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(wanted), "{arguments:?}: {}", stderr(&output));
    }
    assert!(!place.path("r").exists());
}
