//! Systems that `--install` can install, and the effect of those that it cannot.

use crate::guests::{Guests, timeless, with_agent};
use crate::support::{stderr, stdout};
use serde_json::Value;

#[test]
fn an_agent_that_no_package_brings_is_told_how_to_be_had() {
    let place = Guests::new();
    // A package that is here: installing it changes nothing.
    let far = with_agent("agent = \"no-such-agent\"") + "[install]\napt = [\"libc6\"]\nmanual = \"ask its makers\"\n";
    place.write("systems/far.toml", &far);
    place.refused(&["bench", "far"], &["the agent `no-such-agent` of far is not found", "): ask its makers"]);
    let listed = stdout(&place.run(&["systems"]));
    let row = listed.lines().find(|line| line.starts_with("far ")).unwrap();
    assert!(row.ends_with("ask its makers"), "{row}");
    let output = place.run(&["systems", "far"]);
    assert!(!(stdout(&output) + &stderr(&output)).contains("`--install` does it"), "{}", stderr(&output));
    // The ones that come with pubmark and that cargo builds.
    let empty = place.0.path("cache");
    std::fs::create_dir_all(&empty).unwrap();
    for name in ["zeromq-rust", "zeromq-rust-pure", "null-rust"] {
        let shown = stdout(&place.run(&["systems", name]));
        let missing = shown.lines().find(|line| line.starts_with("missing:")).unwrap_or_else(|| panic!("{shown}"));
        assert!(missing.contains("make -C agents/zeromq-rust") && !missing.contains("--install"), "{missing}");
    }
}

#[test]
fn a_system_that_cannot_be_installed_stops_no_other() {
    let place = Guests::new();
    let never = with_agent("agent = [\"{cache}/agent\"]").replace("\"tcp\"", "\"inproc\"");
    place.write("mine.toml", &timeless(""));
    place.write("never.toml", &(never + "[install]\nbuild = [\"false\"]\n"));
    place.write(
        "study.toml",
        "title = \"t\"\n[workload]\npattern = \"pairs\"\ntransport = \"inproc\"\nrate = 1000\nduration = \"1s\"\n\
         [axes]\nsystem = [\"./never.toml\", \"./mine.toml\"]\n[run]\nrepeats = 1\n",
    );
    let output = place.run(&["run", "study.toml", "--out", "r", "--install"]);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert_eq!(said.matches("never cannot be installed, and the study goes on: ").count(), 1, "{said}");
    assert!(said.contains("skipped: never is not installed: "), "{said}");
    let systems: Vec<Value> = place.0.records("r").iter().map(|record| record["system"].clone()).collect();
    assert_eq!(systems, ["mine"]);
    let resolved = std::fs::read_to_string(place.0.path("r/study.toml")).unwrap();
    assert!(resolved.contains("[[skip]]") && resolved.contains("never is not installed"), "{resolved}");
}

/// As an agent with a runtime that is too old does.
#[test]
fn an_agent_that_ends_before_it_says_hello_is_left_out_with_its_last_words() {
    let place = Guests::new();
    place.write(
        "old.sh",
        "read hello\necho 'a trace of it' >&2\necho 'old: this is Shell 1, and it needs 2' >&2\nexit 1\n",
    );
    let old = with_agent("agent = [\"sh\", \"old.sh\"]").replace("\"tcp\"", "\"inproc\"");
    place.write("old.toml", &(old + "[install]\nmanual = \"ask for a newer one\"\n"));
    place.write("mine.toml", &timeless(""));
    place.write(
        "study.toml",
        "title = \"t\"\n[workload]\npattern = \"pairs\"\ntransport = \"inproc\"\nrate = 1000\nduration = \"1s\"\n\
         [axes]\nsystem = [\"./old.toml\", \"./mine.toml\"]\n[run]\nrepeats = 1\n",
    );
    let why = "the agent of old ends before it says hello: old: this is Shell 1, and it needs 2 (ask for a newer one)";
    let output = place.run(&["run", "study.toml", "--out", "r"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stderr(&output).contains(&format!("skipped: {why}")), "{}", stderr(&output));
    assert_eq!(place.0.records("r").len(), 1);
    assert!(std::fs::read_to_string(place.0.path("r/study.toml")).unwrap().contains(why), "the report shows it");
    place.refused(&["bench", "./old.toml", "--out", "b"], &[why]);
    assert!(!place.0.path("b").exists());
}
