//! Recovery capacity, in virtual time, where the answer is a formula: a queue that is served at μ and filled at λ has
//! emptied D × ρ / (1 − ρ) after an outage of D, with ρ = λ / μ.

use crate::support::{Place, stderr, stdout};
use serde_json::Value;

/// Share by which a time or a load may differ from the formula.
const WITHIN: f64 = 0.05;

fn json(place: &Place, arguments: &[&str]) -> Value {
    let output = place.run(&[arguments, &["--json", "-q"]].concat());
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", stderr(&output)))
}

#[test]
fn the_time_to_catch_up_is_that_of_the_formula_in_95_of_100_seeds() {
    // ρ = 1/2 and 2/3; messages of a Poisson process, so that each repeat has arrivals of its own. (Their number alone
    // scatters the time by 2 %.)
    for (rate, service, window, wanted_s) in [("8000", "16000", "4s", 1.0), ("8000", "12000", "6s", 2.0)] {
        let place = Place::new();
        let set = format!("options.service_rate={service}");
        let load = ["--rate", rate, "--arrival", "poisson", "--payload", "64B", "--warmup", "100ms"];
        let fault = ["--fault", "stop server at 1s for 1s", "--duration", window, "--repeats", "100", "--set", &set];
        let told = json(&place, &[&["bench", "mock"][..], &load, &fault].concat());
        let runs = told["runs"].as_array().unwrap();
        let times: Vec<f64> =
            runs.iter().map(|run| run["recovery"]["caught_up_after_ns"].as_f64().unwrap() / 1e9).collect();
        let near = times.iter().filter(|time| (*time / wanted_s - 1.0).abs() < WITHIN).count();
        assert_eq!(times.len(), 100);
        assert!(near >= 95, "{near} of 100 are within 5 % of {wanted_s} s: {times:?}");
    }
}

#[test]
fn the_load_from_which_a_server_recovers_is_that_of_the_formula() {
    // D ρ / (1 − ρ) < 10 s with D = 2 s: ρ < 10 / 12.
    let place = Place::new();
    let fault = ["--fault", "stop server at 5s for 2s", "--until", "caught_up < 10s"];
    let arguments = [&["capacity", "mock", "--set", "options.service_rate=1000", "--out", "r"][..], &fault].concat();
    let told = json(&place, &arguments);
    let [without, with] = &told.as_array().unwrap()[..] else { panic!("{told}") };
    let of = |value: &Value, name: &str| value[name].as_f64().unwrap_or_else(|| panic!("{name}: {value:#}"));
    assert_eq!((&without["until"], &with["until"]), (&"backlog <= 1%".into(), &"caught_up < 10s".into()));
    assert!((of(without, "estimate") / 1_000.0 - 1.0).abs() < WITHIN, "{without:#}");
    let edge = 1_000.0 * 10.0 / 12.0;
    assert!(of(with, "lo") < edge && edge < of(with, "hi"), "{with:#}");
    assert!((of(with, "estimate") / edge - 1.0).abs() < WITHIN, "{with:#}");
    let beside = &with["recovery"];
    assert_eq!(beside["without_fault"], without["estimate"]);
    let free = 1.0 - of(with, "estimate") / of(without, "estimate");
    assert!((of(beside, "headroom") - free).abs() < 1e-9, "{beside}");
    assert_eq!((&beside["lasts_from"], &without["recovery"]), (&Value::Null, &Value::Null));
    assert_eq!(json(&place, &["report", "r"]), told, "a report has the same objects");
    let shown = stdout(&place.run(&["report", "r"]));
    let table = shown.split("Recovery\n").nth(1).unwrap_or_else(|| panic!("{shown}"));
    assert!(table.lines().next().unwrap().contains("without a fault  with recovery  headroom"), "{shown}");
    // A search that was cut short goes on from its records.
    let again = json(&place, &[&arguments[..], &["--resume"]].concat());
    assert_eq!(again, told);
}

#[test]
fn a_state_that_outlives_its_cause_is_named_with_the_load_at_which_it_begins() {
    // The server has 1,000 messages per second before a stall and 700 after it.
    let place = Place::new();
    let server = ["--set", "options.service_rate=1000", "--set", "options.rate_after_stall=700"];
    let fault = ["--fault", "stop server at 1s for 500ms", "--until", "caught_up < 5s"];
    let told = json(&place, &[&["capacity", "mock", "--out", "r"][..], &server, &fault].concat());
    let with = &told[1];
    let from = with["recovery"]["lasts_from"].as_f64().unwrap_or_else(|| panic!("{with:#}"));
    assert!((700.0..1_000.0).contains(&from), "{from}");
    assert!(with["estimate"].as_f64().unwrap() < 700.0, "{with:#}");
    let shown = stdout(&place.run(&["report", "r"]));
    let words: Vec<&str> = shown.split_whitespace().collect();
    assert!(words.join(" ").contains("the system does not recover by itself"), "{shown}");
    // The same in one run, and one whose window is too short to tell.
    let bench = |rate: &str, window: &str| {
        let load = ["--rate", rate, "--duration", window, "--repeats", "1", "--fault", "stop server at 1s for 500ms"];
        let place = Place::new();
        let output = place.run(&[&["bench", "mock", "--all", "-q"][..], &load, &server].concat());
        stdout(&output).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let lasting = bench("900", "6s");
    assert!(lasting.contains("the backlog did not shrink after the fault"), "{lasting}");
    // ρ = 600 / 700: it takes 3 s.
    let short = bench("600", "3s");
    assert!(
        short.contains("a window of 5.00 s would show it") || short.contains("a window of 6.00 s would"),
        "{short}"
    );
    assert!(!bench("600", "6s").contains("it was not, when the window ended"), "6 s are enough");
}

#[test]
fn what_has_no_recovery_is_refused_before_anything_starts() {
    let place = Place::new();
    let refused = |target: &str, fault: &[&str], says: &str| {
        let arguments = [&["capacity", target, "--until", "caught_up < 1s", "--out", "r"][..], fault].concat();
        let output = place.run(&arguments);
        let told = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {told}");
        assert!(told.contains(says), "{arguments:?}: {told}");
        assert!(!place.path("r").exists(), "{arguments:?}");
    };
    refused("mock", &[], "`caught_up < 1s` needs a fault");
    refused("mosquitto", &["--fault", "kill publishers at 1s"], "never ends");
    refused("mosquitto", &["--fault", "kill server at 1s"], "for how long");
    refused("mosquitto", &["--fault", "stop subscribers at 1s for 1s"], "leaves the server in reach");
    refused("mock", &["--fault", "stop server at 0s for 1s"], "let it begin at 120ms or later");
    refused("mock", &["--fault", "stop server at 3s for 1s", "--duration", "4s"], "it takes 5600ms or more");
    refused("mock", &["--fault", "kill server at 3s for 1s"], "it runs in virtual time");
    let twice = ["--fault", "stop server at 3s for 1s", "--set", "options.stall_for=1s"];
    refused("mock", &twice, "leave stall_at and stall_for out");
    refused("zeromq", &["--fault", "stop server at 3s for 1s"], "it is a library and has no server");
    refused("mqtt://127.0.0.1:1", &["--fault", "stop server at 3s for 1s"], "use `cut link at … for …`");
    let study = "title = \"t\"\n[axes]\nsystem = [\"mock\"]\n[capacity]\nobjective = \"caught_up < 1s\"\n";
    let path = place.study(study);
    let output = place.run(&["run", path.to_str().unwrap(), "--dry-run"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("pubmark capacity STUDY"), "{}", stderr(&output));
}
