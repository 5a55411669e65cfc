//! Results folders: no file of the user is touched, one process writes, and results are safe before tear-down.

use crate::support::{Place, free_port, stderr, stdout, wait_for};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use pubmark_host::server::processes;
use pubmark_model::plan::cells;
use pubmark_model::study::{ReadOptions, Study};
use pubmark_study::context::RunContext;
use pubmark_study::registry;
use pubmark_study::run::make;
use pubmark_study::servers::Servers;
use serde_json::{Value, json};
use std::process::Stdio;
use std::sync::atomic::AtomicBool;

const STUDY: &str = "# mine\ntitle = \"t\"\nquestion = \"\"\n[workload]\ntransport = \"tcp\"\nwarmup = \"50ms\"\n\
    duration = \"300ms\"\nrate = 200\n[axes]\nsystem = [\"kernel\"]\npayload = [\"64B\", \"128B\"]\n[run]\nrepeats = 3\n";

const MOCK: &str = "title = \"t\"\nquestion = \"\"\n[workload]\nrate = 1000\nduration = \"2s\"\n[axes]\n\
    system = [\"mock\"]\npayload = [\"64B\", \"128B\"]\n[run]\nrepeats = 5\n";

#[test]
fn a_study_is_not_overwritten_by_its_own_results() {
    let place = Place::new();
    place.study(STUDY);
    for folder in [".", "mine"] {
        let _ = std::fs::create_dir(place.path("mine"));
        std::fs::write(place.path("mine/report.html"), "mine").unwrap();
        let output = place.run(&["run", "study.toml", "--out", folder]);
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert!(stderr(&output).contains("name a new or an empty folder with --out"), "{}", stderr(&output));
    }
    assert_eq!(std::fs::read_to_string(place.path("study.toml")).unwrap(), STUDY);
    assert_eq!(std::fs::read_to_string(place.path("mine/report.html")).unwrap(), "mine");
    for folder in [place.path(""), place.path("mine")] {
        assert!(!folder.join("runs.jsonl").exists() && !folder.join("logs").exists());
    }
}

#[test]
fn two_cannot_write_into_one_folder_and_a_killed_one_does_not_keep_it() {
    let place = Place::new();
    place.study(STUDY);
    let mut first = place
        .command(&["run", "study.toml", "--out", "r"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_for("a record", || (!place.records("r").is_empty()).then_some(()));
    // It is stopped, so that it cannot end meanwhile.
    let pid = Pid::from_raw(first.id() as i32);
    kill(pid, Signal::SIGSTOP).unwrap();
    let second = place.run(&["run", "study.toml", "--out", "r", "--resume"]);
    assert_eq!(second.status.code(), Some(2), "{}", stderr(&second));
    let said = stderr(&second);
    assert!(said.contains(&format!("is being written by process {} on ", first.id())), "{said}");
    kill(pid, Signal::SIGKILL).unwrap();
    first.wait().unwrap();
    let third = place.run(&["run", "study.toml", "--out", "r", "--resume"]);
    assert!(matches!(third.status.code(), Some(0 | 3)), "{}", stderr(&third));
    assert_eq!(place.records("r").len(), 6);
    assert!(!place.path("r/lock").exists());
}

#[test]
fn benches_that_begin_in_one_second_have_folders_of_their_own() {
    let place = Place::new();
    let bench = ["bench", "mock", "--rate", "100", "--duration", "1s", "--repeats", "1"];
    let all: Vec<_> = (0..4).map(|_| place.command(&bench).stdout(Stdio::null()).spawn().unwrap()).collect();
    for mut child in all {
        assert!(matches!(child.wait().unwrap().code(), Some(0 | 3)));
    }
    let folders: Vec<_> = std::fs::read_dir(place.path("results")).unwrap().flatten().collect();
    assert_eq!(folders.len(), 4);
    assert!(folders.iter().all(|folder| folder.path().join("report.html").exists()));
}

/// Ending a server may take seconds: its record is written before.
#[test]
fn a_record_is_made_while_its_server_still_stands() {
    let place = Place::new();
    let text = "title = \"t\"\n[workload]\nwarmup = \"50ms\"\nduration = \"200ms\"\nrate = 100\n[axes]\nsystem = [\"mosquitto\"]\n";
    let study = Study::parse("t", text, &registry::built_in, &ReadOptions::default()).unwrap();
    let cell = cells(&study).unwrap().remove(0);
    let agent = [env!("CARGO_BIN_EXE_pubmark").to_owned(), "agent".to_owned()];
    let never = AtomicBool::new(false);
    let mut stage = RunContext {
        agent: &agent,
        logs: place.0.path(),
        awake: false,
        interrupt: &never,
        servers: &mut Servers::default(),
        news: &mut |_| {},
    };
    let at = pubmark_model::plan::Place { repeat: 1, position: 0 };
    let made = make(&cell, at, &mut stage).unwrap();
    let server = made.record.deployment.as_ref().and_then(|deployment| deployment.pid).unwrap() as i32;
    assert!(made.record.counts.delivered > 0);
    assert!(processes::lives(server), "the record came after the tear-down");
    drop(made.tear_down);
    assert!(!processes::lives(server));
}

/// A build without a system, or with other options, reports its records.
#[test]
fn a_system_that_is_not_known_any_more_is_reported_by_its_name() {
    let place = Place::new();
    let output =
        place.run(&["bench", "kernel", "--transport", "tcp", "--rate", "200", "--duration", "300ms", "--out", "r"]);
    assert!(matches!(output.status.code(), Some(0 | 3)), "{}", stderr(&output));
    let study = std::fs::read_to_string(place.path("r/study.toml")).unwrap().replace("\"kernel\"", "\"bygone\"");
    let study = study.replace("[axes]\n", "[axes]\n\"options.gone\" = [7]\n");
    let options = "\n[options.bygone]\nolder = \"yes\"\n[options]\ndepth_of_old = 3\n";
    std::fs::write(place.path("r/study.toml"), study + options).unwrap();
    let mut records = String::new();
    for mut record in place.records("r") {
        (record["system"], record["cell"]["system"]) = (json!("bygone"), json!("bygone"));
        record["cell"]["options.gone"] = json!(7);
        records += &(record.to_string() + "\n");
    }
    std::fs::write(place.path("r/runs.jsonl"), records).unwrap();
    let report = place.run(&["report", "r", "--json"]);
    assert_eq!(report.status.code(), Some(0), "{}", stderr(&report));
    let rows: Value = serde_json::from_str(&stdout(&report)).unwrap();
    assert_eq!((&rows[0]["system"], &rows[0]["runs"]), (&json!("bygone"), &json!(3)), "{rows}");
    assert!(rows[0]["delivered_per_s"].as_f64().unwrap() > 0.0, "{rows}");
    assert!(std::fs::read_to_string(place.path("r/report.html")).unwrap().contains("bygone"));
}

/// Marks some records as unreliable, for some figures or for all.
fn spoil(place: &Place, wanted: impl Fn(&Value) -> Option<&'static [&'static str]>) {
    let mut text = String::new();
    for mut record in place.records("r") {
        if let Some(figures) = wanted(&record) {
            let reason = json!({"reason": "not-steady", "evidence": "e", "figures": figures});
            record["verdict"] = json!({"valid": false, "reasons": [reason], "notes": []});
        }
        text += &(record.to_string() + "\n");
    }
    std::fs::write(place.path("r/runs.jsonl"), text).unwrap();
}

const ALL: &[&str] = &["counts", "rates", "latency_p50", "latency_p99", "cost"];

#[test]
fn a_run_that_is_left_out_is_a_line_and_a_cell_without_an_answer_a_code() {
    let place = Place::new();
    place.study(MOCK);
    let run = |more: &[&str]| {
        let output = place.run(&[&["run", "study.toml", "--out", "r"], more].concat());
        (output.status.code().unwrap(), stdout(&output) + &stderr(&output))
    };
    let (code, said) = run(&[]);
    assert_eq!(code, 0, "{said}");
    assert!(!said.contains("unreliable") && !said.contains("no reliable "), "{said}");
    // Nothing is left to be made: the answer is from the records.
    spoil(&place, |record| (record["repeat"] == 1 && record["cell"]["payload"] == 64).then_some(ALL));
    let (code, said) = run(&["--resume"]);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("10 runs: 9 ok, 1 unreliable. Unreliable: all figures of 1 run (not-steady)\n"), "{said}");
    // Each run is out for some figure, and each figure has a run.
    spoil(&place, |record| Some(if record["repeat"] == 1 { &["counts", "rates"] } else { &["latency_p99"] }));
    let (code, said) = run(&["--resume"]);
    assert_eq!(code, 0, "{said}");
    assert!(
        said.contains("10 runs: 0 ok, 10 unreliable. Unreliable: counts, rates and p99 of 10 runs (not-steady)\n"),
        "{said}"
    );
    spoil(&place, |_| Some(&["latency_p99"]));
    let (code, said) = run(&["--resume"]);
    assert_eq!(code, 3, "{said}");
    assert_eq!(said.matches("no reliable p99 for mock").count(), 2, "{said}");
    assert!(said.contains("Unreliable: p99 of 10 runs (not-steady)\n"), "{said}");
    spoil(&place, |record| (record["cell"]["payload"] == 128).then_some(ALL));
    let (code, said) = run(&["--resume"]);
    assert_eq!(code, 3, "{said}");
    assert!(said.contains("no reliable figure for mock") && said.matches("no reliable ").count() == 2, "{said}");
    // One that could not be made has no other reason.
    let place = Place::new();
    let endpoint = format!("mqtt://127.0.0.1:{}", free_port());
    let output = place.run(&["bench", &endpoint, "--duration", "200ms", "--repeats", "1", "--out", "r"]);
    assert!(stdout(&output).contains("1 run: 0 ok, 1 failed\n"), "{}", stdout(&output));
}

#[test]
fn advice_is_what_the_command_can_do() {
    let place = Place::new();
    let endpoint = format!("mqtt://127.0.0.1:{}", free_port());
    let bench = |more: &[&str]| {
        let output =
            place.run(&[&["bench", &endpoint, "--duration", "200ms", "--repeats", "1", "--out", "r"], more].concat());
        (output.status.code(), stderr(&output))
    };
    for (code, advice, more) in [
        (3, "to continue, use the same command with --out r --resume", &[][..]),
        (2, "or go on with --resume", &[]),
        (3, "to continue, use the same command with --out r --resume", &["--resume"]),
    ] {
        let (found, said) = bench(more);
        assert_eq!(found, Some(code), "{said}");
        assert!(said.contains(advice), "{said}");
    }
    place.study(MOCK);
    let again = place.run(&["run", "study.toml", "--out", "r"]);
    assert!(stderr(&again).contains("or go on with --resume"), "{}", stderr(&again));
}

#[test]
fn quiet_is_quiet() {
    let place = Place::new();
    place.study(MOCK);
    for arguments in [
        vec!["run", "study.toml", "--out", "r", "-q"],
        vec!["run", "study.toml", "--out", "r", "-q", "--resume"],
        vec!["bench", "mock", "--set", "options.lose_every=7", "--duration", "1s", "-q"],
    ] {
        let output = place.run(&arguments);
        assert_eq!(stderr(&output), "", "{arguments:?}");
        assert!(!stdout(&output).is_empty(), "{arguments:?}");
    }
}

#[test]
fn what_is_planned_is_told_as_it_is() {
    let place = Place::new();
    place.study(&MOCK.replace("\"2s\"", "\"10m\""));
    let output = place.run(&["run", "study.toml", "--dry-run"]);
    assert!(stdout(&output).contains("2 cells, 10 runs, about 4 s"), "{}", stdout(&output));
    let output = place.run(&["run", "study.toml", "--dry-run", "--set", "system=rabbitmq"]);
    assert_eq!(output.status.code(), Some(2));
    for name in ["rabbitmq-mqtt", "rabbitmq-amqp"] {
        assert!(stderr(&output).contains(name), "{}", stderr(&output));
    }
}
