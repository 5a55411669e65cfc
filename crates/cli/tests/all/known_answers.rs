//! What the program reports, against a peer whose delays and faults are
//! scripted: the answers are known beforehand. Counts are compared exactly,
//! latencies within 1 % or 20 µs of what the peer did, which is no sooner than
//! its script says.

mod compare;
mod library;
mod peer;

use crate::support::{Benched, Place, count, stderr, stdout};
use compare::{Compared, Found, PERCENTILES, Reported, compare, row};
pub use peer::Peer;
use pubmark_model::units::Ns;
use pubmark_peer::Script;
use pubmark_peer::truth::{Truth, truth, uniform};
use pubmark_stats::Histogram;
use serde_json::Value;
use std::sync::{Mutex, MutexGuard, PoisonError};

const MS: Ns = 1_000_000;
/// From the start to the window, in all tests.
const WARMUP_MS: Ns = 200;
/// Where a run cannot tell the instrument from the machine, it is repeated.
const ATTEMPTS: u32 = 3;

/// These tests measure: one at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A run against a scripted peer, and the peer's account of it.
struct Run {
    bench: Benched,
    account: Value,
}

impl Run {
    /// `window_ms` is the window's length; the peer counts just its messages.
    fn new(protocol: &str, script: &str, window_ms: Ns, arguments: &[&str]) -> Run {
        let place = Place::new();
        let peer = Peer::start(&place, protocol, &counted(script, window_ms));
        let duration = format!("{window_ms}ms");
        let mut all = vec![peer.endpoint.as_str(), "--duration", &duration];
        // Waking up a reader that sleeps is the machine's part of a latency, not the program's.
        all.extend(["--set", "verify=full", "--set", "receive=spin"]);
        all.extend(arguments);
        let bench = place.bench(&all);
        assert!(bench.record["error"].is_null(), "{}", bench.error());
        Run { bench, account: peer.end() }
    }

    fn account(&self, name: &str) -> u64 {
        self.account["counts"][name].as_u64().unwrap()
    }

    /// The most that the peer was late, ns.
    fn peer_late_ns(&self) -> Ns {
        self.account["release_error_ns"]["max"].as_u64().unwrap()
    }

    /// Latencies above a bound, by the record's own histogram, and by the peer's.
    fn slower_than(&self, bound_ns: Ns) -> [u64; 2] {
        let above = |text: &Value| {
            let histogram = Histogram::decode(text.as_str().unwrap()).unwrap();
            histogram.nonzero().filter(|(ns, _)| *ns > bound_ns).map(|(_, count)| count).sum()
        };
        [above(&self.bench.record["histograms"]["latency"]), above(&self.account["latency_histogram"])]
    }

    fn reported(&self) -> Reported {
        PERCENTILES.map(|(name, _)| self.bench.record["latency_ns"][name].as_u64().unwrap())
    }
}

/// A script that counts the window's messages only.
fn counted(script: &str, window_ms: Ns) -> String {
    format!("count = {{ from = \"{WARMUP_MS}ms\", for = \"{window_ms}ms\" }}\n{script}")
}

fn known(script: &str, window_ms: Ns, publishers: u32, rate: u32) -> Truth {
    let script = Script::parse(&counted(script, window_ms)).unwrap();
    let end = (WARMUP_MS + window_ms) * MS;
    truth(&script, uniform(publishers, rate, end), WARMUP_MS * MS, end)
}

/// Compares what one run after the other reports with the truth, until each
/// percentile was right once: a wrong instrument is wrong each time, a machine
/// is late now and then.
fn settle(what: &str, truth: &Truth, mut run: impl FnMut() -> (Reported, Value)) {
    let mut late: Vec<&str> = PERCENTILES.iter().map(|(name, _)| *name).collect();
    let mut said = Vec::new();
    for _ in 0..ATTEMPTS {
        let (reported, account) = run();
        let compared = compare(&reported, &account, truth);
        let (protocol, script) = what.split_once(' ').unwrap_or((what, ""));
        println!("{}", row(protocol, script, &compared));
        said.extend(compared.iter().map(Compared::to_string));
        assert!(compared.iter().all(|one| one.found != Found::Early), "{what}\n{}", said.join("\n"));
        late.retain(|name| compared.iter().any(|one| one.name == *name && one.found == Found::Late));
        if late.is_empty() {
            return;
        }
    }
    panic!("{what}: late in each of {ATTEMPTS} runs: {late:?}\n{}", said.join("\n"));
}

/// Ten pairs at 100 messages a second each, one delay after another; the last run.
fn latencies(protocol: &str, script: &str, window_ms: Ns, arguments: &[&str]) -> Run {
    let truth = known(script, window_ms, 10, 100);
    let mut last = None;
    settle(&format!("{protocol} {}", script.replace('\n', " ")), &truth, || {
        let run = ten_pairs(protocol, script, window_ms, arguments, &truth);
        let found = (run.reported(), run.account.clone());
        last = Some(run);
        found
    });
    last.unwrap()
}

/// One run of them, in which nothing is lost.
fn ten_pairs(protocol: &str, script: &str, window_ms: Ns, arguments: &[&str], truth: &Truth) -> Run {
    let run = Run::new(protocol, script, window_ms, &[&["--pairs", "10", "--rate", "100"], arguments].concat());
    assert_eq!(count(&run.bench.record, "delivered"), truth.offered, "{}", run.bench.record["counts"]);
    assert_eq!(run.bench.record["latency_ns"]["count"], truth.latencies_ns.len());
    run
}

/// Ten publishers of a library and one subscriber, with the peer between them:
/// what is reported, and the peer's account.
fn library(driver: &str, script: &str, window_ms: Ns, truth: &Truth) -> (Reported, Value) {
    let place = Place::new();
    let peer = Peer::start(&place, driver, &counted(script, window_ms));
    let [warmup, duration] = [WARMUP_MS, window_ms].map(|ms| format!("{ms}ms"));
    let settings = [("rate", "100"), ("payload", "256B"), ("warmup", &warmup), ("duration", &duration)];
    let rest = [("receive", "spin"), ("verify", "full")];
    let result = library::play(&place, driver, &peer.endpoint, &[&settings[..], &rest].concat());
    assert_eq!((result.ledger.delivered, result.ledger.expected), (truth.offered, truth.offered));
    let latency = Histogram::decode(&result.latency.unwrap()).unwrap();
    (PERCENTILES.map(|(_, share)| latency.value_at(share)), peer.end())
}

/// The comparison itself: an instrument that reports too much or too little is found out.
#[test]
fn a_wrong_instrument_is_told_from_a_busy_machine() {
    let _alone = alone();
    let run = latencies("mqtt", FIXED, 1_500, &[]);
    let truth = known(FIXED, 1_500, 10, 100);
    let right = run.reported();
    for (at, (name, _)) in PERCENTILES.iter().enumerate() {
        let written = run.account["latency_ns"][name].as_u64().unwrap();
        for (wrong, wanted) in [(9_800_000, Found::Early), (written + written / 100 + 1_000, Found::Late)] {
            let mut reported = right;
            reported[at] = wrong;
            let compared = compare(&reported, &run.account, &truth);
            assert!(compared[at].found == wanted && compared[at].name == *name, "{}", compared[at]);
        }
    }
}

const FIXED: &str = "delay = { fixed = \"10ms\" }";
const UNIFORM: &str = "delay = { uniform = [\"1ms\", \"21ms\"] }";
const BIMODAL: &str =
    "delay = { quantiles = [[0.0, \"2ms\"], [0.995, \"2ms\"], [0.995, \"200ms\"], [1.0, \"200ms\"]] }";
const MQTT_5: &[&str] = &["--set", "options.mqtt_version=5"];

#[test]
fn a_fixed_delay_is_found_over_mqtt() {
    let _alone = alone();
    latencies("mqtt", FIXED, 1_500, &[]);
}

#[test]
fn a_fixed_delay_is_found_over_nats() {
    let _alone = alone();
    latencies("nats", FIXED, 1_500, &[]);
}

#[test]
fn a_fixed_delay_is_found_over_resp() {
    let _alone = alone();
    latencies("redis", FIXED, 1_500, &[]);
}

#[test]
fn a_fixed_delay_is_found_over_amqp() {
    let _alone = alone();
    latencies("amqp", FIXED, 1_500, &[]);
}

#[test]
fn a_fixed_delay_is_found_over_zeromq() {
    let _alone = alone();
    let truth = known(FIXED, 1_500, 10, 100);
    settle(&format!("zeromq {FIXED}"), &truth, || library("zeromq", FIXED, 1_500, &truth));
}

#[test]
fn uniform_delays_are_found_over_mqtt_at_qos_1() {
    let _alone = alone();
    let run = latencies("mqtt", UNIFORM, 1_500, &["--qos", "1"]);
    assert_eq!((run.bench.count("acked"), run.bench.count("acked_lost")), (1_500, 0));
}

#[test]
fn uniform_delays_are_found_over_nats() {
    let _alone = alone();
    latencies("nats", UNIFORM, 1_500, &[]);
}

#[test]
fn uniform_delays_are_found_over_resp() {
    let _alone = alone();
    latencies("redis", UNIFORM, 1_500, &[]);
}

#[test]
fn uniform_delays_are_found_over_amqp_at_qos_1() {
    let _alone = alone();
    let run = latencies("amqp", UNIFORM, 1_500, &["--qos", "1"]);
    assert_eq!((run.bench.count("acked"), run.bench.count("acked_lost")), (1_500, 0));
}

#[test]
fn uniform_delays_are_found_over_zeromq() {
    let _alone = alone();
    let truth = known(UNIFORM, 1_500, 10, 100);
    settle(&format!("zeromq {UNIFORM}"), &truth, || library("zeromq", UNIFORM, 1_500, &truth));
}

#[test]
fn a_rare_long_delay_is_found_over_mqtt_5_at_qos_2() {
    let _alone = alone();
    latencies("mqtt", BIMODAL, 1_500, &[&["--qos", "2"], MQTT_5].concat());
}

#[test]
fn a_rare_long_delay_is_found_over_nats() {
    let _alone = alone();
    latencies("nats", BIMODAL, 1_500, &[]);
}

#[test]
fn a_rare_long_delay_is_found_over_resp() {
    let _alone = alone();
    latencies("redis", BIMODAL, 1_500, &["--set", "options.resp=2"]);
}

#[test]
fn a_rare_long_delay_is_found_over_amqp() {
    let _alone = alone();
    latencies("amqp", BIMODAL, 1_500, &[]);
}

/// Five publishers of 200 messages a second; in the window they send those
/// numbered 41 to 240, counted from 1.
fn faults(protocol: &str, qos: u64, arguments: &[&str]) {
    const SCRIPT: &str = r#"
        delay = { uniform = ["1ms", "9ms"] }
        ordered = true
        lose = { every = 50 }
        swallow = { every = 7, at = [[2, 100]] }
        duplicate = { every = 11 }
        reorder = { every = 13 }
        corrupt = { every = 17, offset = 100 }
        connect = { close = [1, 5], deny = [3], answer_after = "20ms" }
    "#;
    let _alone = alone();
    let run = Run::new(protocol, SCRIPT, 1_000, &[&["--pairs", "5", "--set", "drain=1s"], arguments].concat());
    let each = |keep: &dyn Fn(u64, u64) -> bool| {
        let all = (0..5).flat_map(|publisher| (41..=240).map(move |number| (publisher, number)));
        all.filter(|(publisher, number)| keep(*publisher, *number)).count() as u64
    };
    let swallowed = |publisher: u64, number: u64| number.is_multiple_of(7) || (publisher, number) == (2, 101);
    let reaches = |publisher, number: u64| !number.is_multiple_of(50) && !swallowed(publisher, number);
    let reaching = |every: u64| each(&|publisher, number| number.is_multiple_of(every) && reaches(publisher, number));
    let lost = each(&|_, number| number.is_multiple_of(50));
    let acked_lost = each(&|publisher, number| !number.is_multiple_of(50) && swallowed(publisher, number));
    let wanted = [
        ("offered", 1_000),
        ("sent", 1_000),
        ("expected", 1_000),
        ("delivered", 1_000 - lost - acked_lost),
        ("lost", lost + acked_lost),
        ("duplicated", reaching(11)),
        ("reordered", reaching(13)),
        ("corrupted", reaching(17)),
        ("unidentified", 0),
        ("acked", if qos > 0 { 1_000 - lost } else { 0 }),
        ("acked_lost", if qos > 0 { acked_lost } else { 0 }),
    ];
    let found = wanted.map(|(name, _)| (name, run.bench.count(name)));
    assert_eq!(found, wanted, "{protocol} {arguments:?}: {}", run.account);
    // The peer's own account agrees.
    let account = ["lost", "swallowed", "duplicated", "reordered", "corrupted"].map(|name| run.account(name));
    assert_eq!(account, [lost, acked_lost, reaching(11), reaching(13), reaching(17)]);

    let connections = &run.bench.record["connections"];
    let figures = ["wanted", "opened", "refused", "retried", "lost"].map(|name| connections[name].as_u64().unwrap());
    assert_eq!(figures, [10, 10, 3, 3, 0], "{connections}");
    let made = &run.account["connections"];
    let made = ["accepted", "closed", "denied", "malformed"].map(|name| made[name].as_u64().unwrap());
    assert_eq!(made, [13, 2, 1, 0]);
    let quickest = connections["time_ns"]["min"].as_u64().unwrap();
    // A histogram's bucket may begin 0.1 % before what is in it.
    assert!(quickest >= 20 * MS - MS / 50, "accepted after {quickest} ns, and nothing was said for 20 ms");
}

#[test]
fn faults_are_counted_exactly_over_mqtt_at_qos_0() {
    faults("mqtt", 0, MQTT_5);
}

#[test]
fn faults_are_counted_exactly_over_mqtt_at_qos_1() {
    faults("mqtt", 1, &["--qos", "1"]);
}

#[test]
fn faults_are_counted_exactly_over_mqtt_at_qos_2() {
    faults("mqtt", 2, &[&["--qos", "2"], MQTT_5].concat());
}

#[test]
fn faults_are_counted_exactly_over_nats() {
    faults("nats", 0, &[]);
}

#[test]
fn faults_are_counted_exactly_over_resp() {
    faults("redis", 0, &[]);
}

#[test]
fn faults_are_counted_exactly_over_amqp_at_qos_0() {
    faults("amqp", 0, &[]);
}

#[test]
fn faults_are_counted_exactly_over_amqp_at_qos_1() {
    faults("amqp", 1, &["--qos", "1"]);
}

/// Damage to the header leaves nobody whom a message could be told to be of.
#[test]
fn a_message_whose_header_is_damaged_is_not_identified() {
    let _alone = alone();
    // Byte 11 is the highest of the publisher's number.
    let script = "delay = { fixed = \"1ms\" }\ncorrupt = { at = [[0, 60], [0, 61], [0, 99]], offset = 11 }";
    let run = Run::new("mqtt", script, 1_000, &[]);
    let found = ["lost", "corrupted", "unidentified", "delivered"].map(|name| run.bench.count(name));
    assert_eq!(found, [3, 3, 3, 197], "{}", run.bench.record["counts"]);
}

/// The whole server stands still for a second: what is due in it waits, evenly
/// up to a second, and shows in the latency from intended time.
fn stall(protocol: &str, arguments: &[&str]) {
    const SCRIPT: &str = "delay = { fixed = \"1ms\" }\n[[stall]]\nfrom = \"1s\"\nfor = \"1s\"";
    let _alone = alone();
    let truth = known(SCRIPT, 2_500, 10, 100);
    let run = latencies(protocol, SCRIPT, 2_500, arguments);
    assert_eq!(run.account("stalled"), 1_000, "due from 999 ms on, for a second");
    // Latencies of the late ones are whole milliseconds: 2 to 1001.
    let bound = 50 * MS + MS / 2;
    let slower = |bound: Ns| truth.latencies_ns.iter().filter(|latency| **latency > bound).count() as u64;
    assert_eq!(slower(bound), 951);
    let [found, done] = run.slower_than(bound);
    assert!((951..=done).contains(&found), "{found} latencies above 50.5 ms; 951 were scripted, {done} made");

    let stalls = &run.bench.record["stalls"];
    let longest = stalls["longest_ns"].as_u64().unwrap();
    assert!(stalls["count"].as_u64().unwrap() >= 10, "each of ten subscribers heard nothing: {stalls}");
    // From a message of the last 10 ms before it.
    let (least, most) = (990 * MS, 1_020 * MS + run.peer_late_ns());
    assert!((least..=most).contains(&longest), "{longest} ns, between {least} and {most}");
    let verdict = &run.bench.record["verdict"];
    assert!(run.bench.evidence("not-steady").is_none(), "{verdict}");
    let noted = |note: &Value| {
        note["part"] == "server"
            && note["evidence"].as_str().is_some_and(|words| words.contains("while all agents ran"))
    };
    assert!(verdict["notes"].as_array().unwrap().iter().any(noted), "{verdict}");
}

#[test]
fn a_stall_is_found_over_mqtt() {
    stall("mqtt", &["--qos", "1"]);
}

#[test]
fn a_stall_is_found_over_nats() {
    stall("nats", &[]);
}

#[test]
fn a_stall_is_found_over_resp() {
    stall("redis", &[]);
}

#[test]
fn a_stall_is_found_over_amqp() {
    stall("amqp", &["--qos", "1"]);
}

#[test]
fn a_stalled_subscriber_is_told_from_the_others() {
    let _alone = alone();
    let script = "delay = { fixed = \"1ms\" }\n[[stall]]\nfrom = \"500ms\"\nfor = \"500ms\"\nsubscriber = 1";
    let run = Run::new("mqtt", script, 1_300, &["--pattern", "fan-out", "--subscribers", "3", "--rate", "500"]);
    let counts = ["delivered", "lost", "reordered"].map(|name| run.bench.count(name));
    assert_eq!(counts, [3 * 650, 0, 0]);
    assert_eq!(run.account("stalled_copies"), 250, "a message every 2 ms");
    // Due every 2 ms from 500 ms to 998 ms; they wait until 1 s.
    let bound = 51 * MS;
    let slower = |bound: Ns| (0..250).filter(|number| 500 * MS - number * 2 * MS > bound).count() as u64;
    let ([found, done], scripted) = (run.slower_than(bound), slower(bound));
    assert!((scripted..=done).contains(&found), "{found} latencies above 51 ms; {scripted} were scripted, {done} made");
    let stalls = &run.bench.record["stalls"];
    assert!(stalls["longest_ns"].as_u64().unwrap() >= 495 * MS, "{stalls}");
}

#[test]
fn a_plain_relay_loses_nothing_in_any_protocol() {
    let _alone = alone();
    for protocol in ["mqtt", "nats", "redis", "amqp"] {
        let place = Place::new();
        let peer = Peer::spawn(&mut place.command(&["peer", "--protocol", protocol]));
        let arguments = ["--pattern", "tree", "--publishers", "8", "--subscribers", "2", "--duration", "500ms"];
        let bench = place.bench(&[&[peer.endpoint.as_str()], &arguments[..]].concat());
        let counts = ["expected", "delivered", "duplicated", "reordered"].map(|name| bench.count(name));
        assert_eq!(counts, [800, 800, 0, 0], "{protocol}");
        let account = peer.end();
        // Warm-up and markers go round as well.
        assert!(account["relayed"].as_u64().unwrap() >= 8 * 140, "{account}");
        assert!(account["release_error_ns"].is_null(), "{account}");
    }
}

#[test]
fn a_peer_refuses_a_script_that_it_does_not_understand_and_ends_with_its_input() {
    let place = Place::new();
    std::fs::write(place.path("s.toml"), "lose = { evry = 3 }").unwrap();
    let output = place.run(&["peer", "--script", "s.toml"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("evry") && stderr(&output).contains("s.toml"), "{}", stderr(&output));
    // Its input is at its end from the beginning.
    let output = place.run(&["peer", "--protocol", "nats"]);
    let lines: Vec<Value> = stdout(&output).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2, "{}", stderr(&output));
    assert!(lines[0]["endpoint"].as_str().unwrap().starts_with("nats://127.0.0.1:"));
    assert_eq!(lines[1]["connections"]["accepted"], 0);
}
