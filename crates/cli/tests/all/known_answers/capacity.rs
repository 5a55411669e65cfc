//! Capacity of a peer with a known rate.

use super::{Peer, alone};
use crate::left_out::is_long;
use crate::support::{Place, stderr, stdout, wait_for};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::process::Stdio;

/// Messages per second that the peer serves.
const SERVED_PER_S: f64 = 2_000.0;
const SCRIPT: &str = "service = 2000";

/// A bound above what a busy machine does by itself; 3 % too much for 3 s exceeds it.
const ARGUMENTS: [&str; 14] = [
    "--pairs",
    "2",
    "--payload",
    "64B",
    "--rate",
    "500",
    "--until",
    "p99 < 100ms and lost = 0",
    "--within",
    "10%",
    "--duration",
    "2s",
    "--budget",
    "3m",
];

fn search(protocol: &str, more: &[&str]) {
    let _alone = alone();
    let place = Place::new();
    let peer = Peer::start(&place, protocol, SCRIPT);
    let output =
        place.run(&[&["capacity", peer.endpoint.as_str(), "--json", "--out", "r"], &ARGUMENTS[..], more].concat());
    // On a machine that others use, the time may be too short for so narrow an interval.
    assert!(matches!(output.status.code(), Some(0 | 3)), "{}", stderr(&output));
    let found: Value = serde_json::from_str(&stdout(&output)).unwrap();
    let estimate = found["estimate"].as_f64().unwrap_or_else(|| panic!("{}", stderr(&output)));
    assert!((estimate / SERVED_PER_S - 1.0).abs() < 0.1, "{estimate}: {}", stderr(&output));
    peer.end();
}

#[test]
fn a_capacity_is_found_over_mqtt() {
    if !is_long("a_capacity_is_found_over_mqtt") {
        return;
    }
    search("mqtt", &[]);
}

#[test]
fn a_capacity_is_found_over_nats() {
    if is_long("a_capacity_is_found_over_nats") {
        search("nats", &[]);
    }
}

/// The server takes as long for a message, whatever its topic.
#[test]
fn a_capacity_is_found_over_a_thousand_topics() {
    if is_long("a_capacity_is_found_over_a_thousand_topics") {
        search("mqtt", &["--set", "topics=1000"]);
    }
}

/// Four topics are for four subscribers at most: the steps are 1, 2 and 4.
#[test]
fn a_search_ends_before_a_load_that_cannot_be_and_its_answer_stands() {
    let place = Place::new();
    let peer = Peer::start(&place, "mqtt", "");
    let topics = ["--pattern", "fan-out", "--rate", "20", "--set", "topics=4", "--set", "subscriptions=each"];
    let search = ["--over", "subscribers", "--until", "lost = 0", "--duration", "1s", "--json", "--out", "r"];
    let output = place.run(&[&["capacity", peer.endpoint.as_str()], &topics[..], &search].concat());
    let said = stderr(&output);
    let found: Value = serde_json::from_str(&stdout(&output)).unwrap_or_else(|error| panic!("{error}: {said}"));
    let steps = found["steps"].as_array().unwrap();
    let loads: Vec<f64> = steps.iter().filter_map(|step| step["load"].as_f64()).collect();
    assert_eq!((loads, found["lo"].as_f64()), (vec![1.0, 2.0, 4.0], Some(4.0)), "{found:#}\n{said}");
    assert!(said.contains("a step at 8 cannot be made") && said.contains("set more `topics`"), "{said}");
    place.assert_swept();
}

#[test]
fn a_search_that_is_interrupted_leaves_a_valid_folder() {
    let _alone = alone();
    let place = Place::new();
    let peer = Peer::start(&place, "mqtt", SCRIPT);
    let mut command = place.command(&[&["capacity", peer.endpoint.as_str(), "--out", "r"], &ARGUMENTS[..]].concat());
    let searching = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let steps = || std::fs::read_to_string(place.path("r/runs.jsonl")).map_or(0, |text| text.lines().count());
    wait_for("two steps", || (steps() >= 2).then_some(()));
    kill(Pid::from_raw(searching.id() as i32), Signal::SIGINT).unwrap();
    let output = searching.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(stderr(&output).contains("interrupted"), "{}", stderr(&output));
    let report = place.run(&["report", "r"]);
    assert_eq!(report.status.code(), Some(0), "{}", stderr(&report));
    let said = stdout(&report);
    assert!(said.contains(" runs: ") && !said.contains(" missing"), "no cell without a run: {said}");
    place.assert_swept();
}
