//! Rankings at a promise: a server that keeps sessions, and one that forgets them, while the subscribers' link is cut.

use crate::left_out::is_long;
use crate::support::{Place, stderr, stdout};
use serde_json::Value;

const STUDY: &str = r#"title = "Promises"
[workload]
pairs = 1
rate = 100
qos = 1
durable = true
duration = "2s"
[run]
repeats = 2
[axes]
system = ["forgetful", "mosquitto"]
[parts.load]
fault = ["none"]
[parts.cut]
fault = ["cut link at 500ms for 500ms"]
"#;

/// Returns a place with the study, and with the system `forgetful`: the scripted peer, which keeps no sessions.
fn place() -> Place {
    let place = Place::new();
    place.peer_system("forgetful", "lossless = [\"pairs\"]\nqos = [1]\ndurable = true", ("", ""), "");
    place.study(STUDY);
    place
}

fn refused(place: &Place, arguments: &[&str], says: &[&str]) {
    let output = place.run(arguments);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stderr(&output));
    for text in says {
        assert!(stderr(&output).contains(text), "should say {text:?}: {}", stderr(&output));
    }
}

#[test]
fn who_forgets_acknowledged_messages_is_left_out_by_name_and_with_its_counts() {
    let place = place();
    let output = place.run(&["run", "study.toml", "--promise", "survives cut link", "--out", "r", "--json", "-q"]);
    assert!(matches!(output.status.code(), Some(0 | 3)), "a busy machine: {}", stderr(&output));
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    // A run whose agents stood still on a busy machine has unreliable counts, which break no promise.
    let is_counted = |run: &Value| {
        let mut reasons = run["verdict"]["reasons"].as_array().unwrap().iter();
        let is_of_counts = |reason: &Value| reason["figures"].as_array().unwrap().contains(&"counts".into());
        !reasons.any(|reason| reason["reason"] == "generator-saturated" && is_of_counts(reason))
    };
    let of_cut = |run: &&Value| run["system"] == "forgetful" && run["cell"]["part"] == "cut" && is_counted(run);
    let records = place.records("r");
    let sum = |name: &str| records.iter().filter(of_cut).map(|run| run["counts"][name].as_u64().unwrap()).sum::<u64>();
    let (lost, acked) = (sum("acked_lost"), sum("acked"));
    assert!(lost > 0 && lost < acked, "{lost} of {acked}");
    let broken = &told["promise"]["broken"];
    assert_eq!(broken, &serde_json::json!([{"system": "forgetful", "acked_lost": lost, "acked": acked}]), "{told:#}");
    assert_eq!(told["promise"]["kept"], serde_json::json!(["mosquitto"]));
    let verdict = |told: &Value, system: &str| {
        let rows = told["summary"].as_array().or(told.as_array()).unwrap().iter();
        let mut own = rows.filter(|row| row["system"] == system && row["part"] == "load");
        own.next().unwrap()["verdict"].as_str().unwrap().to_owned()
    };
    assert_eq!(verdict(&told, "forgetful"), "left out");
    let report = place.run(&["report", "r", "-q"]);
    assert!(
        stdout(&report).contains(&format!("forgetful ({lost} of {acked} acknowledged messages lost)")),
        "{}",
        stdout(&report)
    );

    // Without the promise it is ranked; the runs of the first folder test it for the second.
    let only = ["--only", "part=load", "--set", "repeats=1", "--out", "s", "-q"];
    place.run(&[&["run", "study.toml"][..], &only].concat());
    let plain: Value = serde_json::from_slice(&place.run(&["report", "s", "--json", "-q"]).stdout).unwrap();
    assert_ne!(verdict(&plain, "forgetful"), "left out");
    let promise = ["report", "s", "--promise", "survives cut link", "--json", "-q"];
    refused(&place, &promise, &["no run here tests `survives cut link`", "pubmark card SYSTEM", "--cards DIR"]);
    let with_card = place.run(&[&promise[..], &["--cards", "r"]].concat());
    let with_card: Value = serde_json::from_slice(&with_card.stdout).unwrap();
    assert_eq!(verdict(&with_card, "forgetful"), "left out");
    place.assert_swept();
}

const SEARCH: [&str; 11] =
    ["capacity", "study.toml", "--until", "lost = 0", "--within", "50%", "--duration", "1s", "--budget", "20s", "-q"];

#[test]
fn a_capacity_at_a_promise_is_that_of_those_who_keep_it() {
    if !is_long("promise::a_capacity_at_a_promise_is_that_of_those_who_keep_it") {
        return;
    }
    let place = place();
    place.study(&STUDY.replace("repeats = 2", "repeats = 1"));
    let cut = ["--promise", "survives cut link"];
    let output = place.run(&[&SEARCH[..], &cut, &["--out", "r", "--json"]].concat());
    assert!(matches!(output.status.code(), Some(0 | 3)), "a busy machine: {}", stderr(&output));
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    let records = place.records("r/promise");
    assert_eq!(records.len(), 2, "each is tested once: {}", stderr(&output));
    let of = |system: &str| records.iter().find(|run| run["system"] == system).unwrap();
    let count = |system: &str, name: &str| of(system)["counts"][name].as_u64().unwrap();
    let (lost, acked) = (count("forgetful", "acked_lost"), count("forgetful", "acked"));
    assert!(lost > 0 && count("mosquitto", "acked_lost") == 0 && count("mosquitto", "acked") > 0, "{told:#}");
    let broken = serde_json::json!([{"system": "forgetful", "acked_lost": lost, "acked": acked}]);
    assert_eq!((&told["promise"]["broken"], &told["promise"]["kept"]), (&broken, &serde_json::json!(["mosquitto"])));
    let found = |told: &Value, system: &str| {
        let mut rows = told["summary"].as_array().unwrap().iter();
        rows.find(|row| row["cell"].as_str().unwrap().starts_with(system)).unwrap_or_else(|| panic!("{told:#}")).clone()
    };
    let (left_out, best) = (found(&told, "forgetful"), found(&told, "mosquitto"));
    assert_eq!(left_out["standing"], "left out", "{told:#}");
    assert!(best["standing"] != "left out" && best["lo"].as_f64() > Some(0.0), "{told:#}");
    assert!(place.records("r").iter().all(|run| run["faults"].as_array().is_none_or(Vec::is_empty)), "no fault there");
    // A later report with the tests as a card says the same.
    let later = place.run(&[&["report", "r"][..], &cut, &["--cards", "r/promise", "--json", "-q"]].concat());
    let later: Value = serde_json::from_slice(&later.stdout).unwrap();
    assert_eq!(
        (&later["promise"], found(&later, "forgetful")["standing"].clone()),
        (&told["promise"], "left out".into())
    );
    let text = stdout(&place.run(&[&["report", "r"][..], &cut, &["--cards", "r/promise", "-q"]].concat()));
    assert!(text.contains(&format!("forgetful ({lost} of {acked} acknowledged messages lost)")), "{text}");
    place.assert_swept();
}

#[test]
fn a_promise_that_is_none_or_that_nothing_tests_is_refused_before_anything_starts() {
    let place = place();
    let all = [
        "survives slow consumer",
        "survives full disk",
        "survives cut link",
        "survives freeze",
        "survives kill",
        "survives power cut",
    ];
    refused(&place, &["run", "study.toml", "--promise", "survives flood", "--out", "r"], &all);
    let untested = ["no cell tests `survives kill`", "kill server at 2s for 1s"];
    refused(&place, &["run", "study.toml", "--promise", "survives kill", "--out", "r"], &untested);
    refused(&place, &["bench", "mosquitto", "--set", "promise=survives kill", "--out", "r"], &untested);
    refused(&place, &["report", "r", "--cards", "s"], &["--promise"]);
    // Commands that rank nothing, and a search with nothing to rank or nothing that tests it.
    let kill = ["--promise", "survives kill"];
    let ranks = |arguments: &[&str], says: &[&str]| refused(&place, &[arguments, &kill].concat(), says);
    let gates = ["ranks no systems", "kill server at 2s for 1s", "--require 'acked_lost = 0'"];
    ranks(&["compare", "r", "s"], &gates);
    ranks(&["ab", "mosquitto", "--a", "qos=0", "--b", "qos=1", "--fail-on", "p99 > +5%"], &gates);
    ranks(&["capacity", "mosquitto", "--out", "r"], &["one system is not ranked"]);
    ranks(&["capacity", "study.toml", "--only", "part=load", "--out", "r"], &["no run here tests `survives kill`"]);
    ranks(&["capacity", "study.toml", "--out", "r"], &["no run here tests `survives kill`", "pubmark card SYSTEM"]);
    refused(&place, &["capacity", "study.toml", "--cards", "s"], &["--promise"]);
    assert!(!place.path("r").exists());
}
