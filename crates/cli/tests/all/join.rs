//! Two sweeps of one study as one result, in virtual time: a publisher of a system whose sends take 1 ms sends up to
//! 1,000 messages per second.

use crate::support::{Place, stderr, stdout};
use serde_json::Value;

/// Returns a place with the mock system under another name: as a reference it has no knee.
fn place() -> Place {
    let place = Place::new();
    place.system("swift", include_str!("../../../../systems/mock.toml"));
    place
}

fn sweep(place: &Place, rates: &str, out: &str, more: &[&str]) {
    let common = ["bench", "swift", "--set", "options.send_cost=1ms", "--repeats", "2", "--duration", "10s", "-q"];
    let output = place.run(&[&common[..], &["--rate", rates, "--out", out], more].concat());
    assert!(matches!(output.status.code(), Some(0 | 3)), "{}", stderr(&output));
}

fn rows(place: &Place, arguments: &[&str]) -> Vec<Value> {
    let output = place.run(&[&["report", "--json"], arguments].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn two_sweeps_of_rates_are_one_result_with_one_knee() {
    let place = place();
    sweep(&place, "100,400", "slow", &[]);
    sweep(&place, "400,800,1600,3200", "fast", &[]);
    let alone = rows(&place, &["slow"]);
    assert!(alone.iter().all(|row| row["knee"] == 400), "{alone:#?}");
    let joined = rows(&place, &["slow", "fast", "--join"]);
    let rates: Vec<f64> = joined.iter().map(|row| row["rate"].as_f64().unwrap()).collect();
    assert_eq!(rates, [100.0, 400.0, 800.0, 1600.0, 3200.0], "one table, in the order of the loads");
    let runs: Vec<u64> = joined.iter().map(|row| row["runs"].as_u64().unwrap()).collect();
    assert_eq!(runs, [2, 4, 2, 2, 2], "what both have measured has the repeats of both");
    let knees: Vec<Option<f64>> = joined.iter().map(|row| row["knee"].as_f64()).collect();
    assert_eq!(knees, [Some(800.0); 5]);
    let said = stdout(&place.run(&["report", "slow", "fast", "--join", "--all"]));
    assert_eq!(said.matches("Load that is sustained").count(), 1, "{said}");
    assert!(place.path("slow/joined.html").exists());
    // In the other order it is the same.
    let turned: Vec<Value> = rows(&place, &["fast", "slow", "--join"]);
    assert_eq!(
        turned.iter().map(|row| &row["knee"]).collect::<Vec<_>>(),
        joined.iter().map(|row| &row["knee"]).collect::<Vec<_>>()
    );
}

#[test]
fn what_is_no_second_sweep_is_not_joined() {
    let place = place();
    sweep(&place, "100,200", "one", &[]);
    sweep(&place, "400,800", "larger", &["--payload", "2KiB"]);
    sweep(&place, "400,800", "slower", &["--set", "options.delay=3ms"]);
    for (other, words) in [("larger", "the values of `"), ("slower", "more than the values of an axis")] {
        let refused = place.run(&["report", "one", other, "--join"]);
        assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
        assert!(stderr(&refused).contains(words) && stderr(&refused).contains("--join"), "{}", stderr(&refused));
    }
    // A report may show them beside each other.
    assert_eq!(place.run(&["report", "one", "larger"]).status.code(), Some(0));
}

/// Runs a study of three systems by this name in virtual time, with three repeats, and returns its records.
fn evening(place: &Place, out: &str, more: &[&str]) -> Vec<Value> {
    std::fs::write(place.path("study.toml"), STUDY).unwrap();
    let output = place.run(&[&["run", "study.toml", "-q", "--out", out], more].concat());
    assert!(matches!(output.status.code(), Some(0 | 3)), "{}", stderr(&output));
    let text = std::fs::read_to_string(place.path(&format!("{out}/runs.jsonl"))).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

const STUDY: &str = r#"
title = "two of one kind"
[workload]
pattern = "fan-out"
rate = 200
payload = "64B"
duration = "1s"
warmup = "0s"
[axes]
system = ["swift", "mock"]
[run]
repeats = 3
"#;

#[test]
fn a_study_goes_on_another_evening_with_the_runs_of_the_first() {
    let place = place();
    assert_eq!(evening(&place, "first", &[]).len(), 6);
    let both = evening(&place, "second", &["--with", "first"]);
    let of = |name: &str| both.iter().map(|run| run[name].as_u64().unwrap_or(1)).collect::<Vec<u64>>();
    assert_eq!((of("repeat"), of("session")), (vec![1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6], [[1; 6], [2; 6]].concat()));
    // The folder needs the first no more, and a third evening goes on from it.
    std::fs::remove_dir_all(place.path("first")).unwrap();
    let runs: Vec<u64> = rows(&place, &["second"]).iter().map(|row| row["runs"].as_u64().unwrap()).collect();
    assert_eq!(runs, [6, 6]);
    let third = evening(&place, "third", &["--with", "second"]);
    assert_eq!(third.iter().filter(|run| run["session"] == 3).count(), 6);
    // Resumed, it is the same study, with nothing left to do.
    assert_eq!(evening(&place, "third", &["--with", "second", "--resume"]).len(), 18);
}

#[test]
fn runs_of_another_study_or_machine_are_not_added() {
    let place = place();
    evening(&place, "first", &[]);
    let refused = |more: &[&str], words: &str| {
        let refused = place.run(&[&["run", "study.toml", "-q", "--out", "no", "--with", "first"], more].concat());
        assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
        assert!(stderr(&refused).contains(words), "{}", stderr(&refused));
        assert!(!place.path("no").exists());
    };
    refused(&["--set", "duration=2s"], "a study that differs");
    let path = place.path("first/environment.json");
    let mut environment: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    environment["cores"] = 4711.into();
    std::fs::write(&path, environment.to_string()).unwrap();
    refused(&[], "`cores` was 4711");
}
