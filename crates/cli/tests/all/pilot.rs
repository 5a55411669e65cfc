//! A pilot run finds how long the warm-up of a cell must be.

use crate::support::{Place, stderr, stdout};
use serde_json::Value;

/// In virtual time, where nothing arrives for the first 800 ms of each run, and then all at once.
const STALLED: [&str; 8] = ["mock", "--rate", "1000", "--payload", "64B", "--set", "options.stall_for=800ms", "--json"];

fn bench(place: &Place, more: &[&str]) -> Vec<Value> {
    let mut arguments = vec!["bench", "--warmup", "100ms", "--duration", "2s", "--repeats", "2", "-q", "--out", "r"];
    arguments.extend(STALLED);
    arguments.extend(more);
    let output = place.run(&arguments);
    let told: Value = serde_json::from_str(&stdout(&output)).unwrap_or_else(|_| panic!("{}", stderr(&output)));
    told["runs"].as_array().unwrap().clone()
}

#[test]
fn the_window_begins_when_a_pilot_run_was_steady() {
    let place = Place::new();
    let fixed = &bench(&Place::new(), &[])[0];
    // Those that were due from 100 to 790 ms.
    assert_eq!((&fixed["pilot"], &fixed["counts"]["late"]), (&Value::Null, &691.into()), "it is measured cold");
    let runs = bench(&place, &["--set", "warmup_max=2s"]);
    for (run, repeat) in runs.iter().zip(1..) {
        assert_eq!(run["repeat"], repeat);
        let pilot = &run["pilot"];
        // A twentieth of the 4 s that it took: the late messages come in the fifth.
        assert_eq!((&pilot["slice_ns"], &pilot["bound_ns"]), (&200_000_000.into(), &2_000_000_000u64.into()));
        assert_eq!(pilot["repeat"], 1, "there is one for the cell");
        assert_eq!(pilot["steady_after_ns"], 1_000_000_000, "{pilot}");
        assert_eq!(run["workload"]["warmup_ns"], 1_000_000_000);
        assert_eq!(run["workload"]["warmup_max_ns"], Value::Null, "no agent is told");
        assert_eq!((&run["verdict"]["valid"], &run["counts"]["late"]), (&true.into(), &0.into()));
    }
    let summary = std::fs::read_to_string(place.path("r").join("summary.csv")).unwrap();
    let column = summary.lines().next().unwrap().split(',').position(|name| name == "steady_after_ns").unwrap();
    let steady = summary.lines().nth(1).unwrap().split(',').nth(column).unwrap();
    assert_eq!(steady.parse::<f64>().unwrap(), 1_000_000_000.0);
}

#[test]
fn what_is_not_steady_in_time_is_measured_all_the_same_and_said() {
    let run = &bench(&Place::new(), &["--set", "warmup_max=400ms"])[0];
    assert_eq!((&run["pilot"]["steady_after_ns"], &run["workload"]["warmup_ns"]), (&Value::Null, &400_000_000.into()));
    let notes = run["verdict"]["notes"].to_string();
    assert!(notes.contains("were not steady within 400ms (`warmup_max`)"), "{notes}");
}

#[test]
fn a_bound_below_the_least_warm_up_is_refused() {
    let output = Place::new().run(&["bench", "mock", "--warmup", "2s", "--set", "warmup_max=1s"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("`warmup_max` is shorter than `warmup`, which is 2s"), "{}", stderr(&output));
}
