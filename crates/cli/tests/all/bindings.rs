//! Agents of other languages that come with pubmark: a small real part of their
//! conformance (`make test-agents` has the whole), wrong ones in their places, and
//! what a report says of a binding.

use crate::left_out::leave_out;
use crate::support::{Place, stderr, stdout};
use pubmark_host::cache::cache_folder;
use pubmark_host::install;
use pubmark_study::registry;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Each names its language's floor, which is installed with it by `make test`.
const SYSTEMS: [&str; 3] = ["zeromq-cpp", "zeromq-node", "zeromq-python"];

/// Whether these systems can be used here; says so where they cannot.
fn here(test: &str, systems: &[&str]) -> bool {
    let missing = systems.iter().find_map(|name| install::agent_missing(registry::find(name).unwrap()));
    if let Some(why) = &missing {
        leave_out(&format!("bindings::{test}"), why);
    }
    missing.is_none()
}

/// What `agent-check --json` says: each case with its outcome.
fn cases(place: &Place, arguments: &[&str]) -> Vec<(String, String)> {
    let output = place.run(&[&["agent-check", "--json"], arguments].concat());
    let said: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(&output)));
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    said["cases"].as_array().unwrap().iter().map(|case| (text(&case["case"]), text(&case["outcome"]))).collect()
}

#[test]
fn agents_in_three_languages_measure_as_they_should() {
    const ONLY: &str = "hello,send-schedule,send-sequences,send-instants,send-lag,receive-counts,receive-latency,\
                        receive-losses,receive-bodies,receive-silence,meet-request-reply,meet-pipeline";
    for system in SYSTEMS {
        if !here("agents_in_three_languages_measure_as_they_should", &[system]) {
            continue;
        }
        let place = Place::new();
        let cases = cases(&place, &["--system", system, "--transport", "tcp", "--only", ONLY]);
        let otherwise: Vec<_> = cases.iter().filter(|(_, outcome)| outcome != "as_due").collect();
        assert!(cases.len() == 12 && otherwise.is_empty(), "{system}: {otherwise:?} of {cases:?}");
        place.assert_swept();
    }
}

/// An agent's sources in a place of their own, with one line changed.
fn wrong(place: &Place, folder: &str, file: &str, right: &str, wrong: &str) -> PathBuf {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../agents").join(folder);
    let to = place.path(folder);
    std::fs::create_dir_all(&to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().flatten().filter(|entry| entry.path().is_file()) {
        std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
    let text = std::fs::read_to_string(to.join(file)).unwrap();
    assert_eq!(text.matches(right).count(), 1, "{file} has `{right}` once");
    std::fs::write(to.join(file), text.replace(right, wrong)).unwrap();
    to
}

#[test]
fn a_wrong_agent_in_the_place_of_a_right_one_is_refused() {
    let python = cache_folder(registry::find("zeromq-python").unwrap()).join("python/bin/python");
    let modules = cache_folder(registry::find("zeromq-node").unwrap()).join("node_modules");
    let faults = [
        (
            "zeromq-python",
            "books.py",
            "                latencies.append(latency)",
            "                latencies.append(latency // 2)",
            "receive-latency",
        ),
        ("zeromq-python", "books.py", "if self.body and bytes(", "if False and bytes(", "receive-bodies"),
        (
            "zeromq-node",
            "books.mjs",
            "times.latency.record(latency);",
            "times.latency.record(latency / 2);",
            "receive-latency",
        ),
        ("zeromq-node", "books.mjs", "const sound = work.verify !== \"full\"", "const sound = true", "receive-bodies"),
    ];
    for (system, file, right, changed, case) in faults {
        if !here("a_wrong_agent_in_the_place_of_a_right_one_is_refused", &[system]) {
            continue;
        }
        let place = Place::new();
        let folder = wrong(&place, system, file, right, changed);
        let command = if system == "zeromq-node" {
            std::os::unix::fs::symlink(&modules, place.path("node_modules")).unwrap();
            ["node".to_owned(), folder.join("agent.mjs").display().to_string()]
        } else {
            [python.display().to_string(), folder.join("agent.py").display().to_string()]
        };
        let only = ["--driver", "zeromq", "--transport", "tcp", "--only", case, "--", &command[0], &command[1]];
        let outcomes = cases(&place, &only);
        assert_eq!(outcomes, [(format!("tcp/{case}"), "otherwise".to_owned())], "{system}, {changed}");
    }
}

#[test]
fn messages_that_go_in_batches_are_each_accounted_for() {
    if !here("messages_that_go_in_batches_are_each_accounted_for", &["zeromq-cpp"]) {
        return;
    }
    let place = Place::new();
    // A count that no batch divides: the end marker takes the last ones along.
    let set = ["options.batch=16", "count=1003", "drain=30s"].map(|set| ["--set", set]).concat();
    let usual = ["bench", "zeromq-cpp", "--transport", "tcp", "--pattern", "pipeline", "--rate", "2000", "--out", "r"];
    let output = place.run(&[&usual[..], &["--payload", "64B", "--repeats", "1", "-q"], &set].concat());
    assert!(matches!(output.status.code(), Some(0 | 3)), "{}", stderr(&output));
    let record = &place.records("r")[0];
    let counts = &record["counts"];
    for (what, due) in [("sent", 1003), ("delivered", 1003), ("lost", 0), ("duplicated", 0), ("corrupted", 0)] {
        assert_eq!(counts[what], due, "{what} of {counts}");
    }
    let agents = record["agents"].as_array().unwrap();
    assert!(agents.iter().all(|agent| agent["applied"]["batch"] == 16), "{record}");
    let refused = place.run(&[
        "bench",
        "zeromq-cpp",
        "--transport",
        "tcp",
        "--pattern",
        "request-reply",
        "--set",
        "options.batch=2",
    ]);
    assert!(stderr(&refused).contains("leave batch at 1"), "{}", stderr(&refused));
    place.assert_swept();
}

#[test]
fn a_report_tells_a_binding_from_its_language() {
    if !here("a_report_tells_a_binding_from_its_language", &["zeromq-python", "null-python", "zeromq-cpp"]) {
        return;
    }
    let place = Place::new();
    place.study(
        "title = \"t\"\nbaseline = \"zeromq-cpp\"\n[workload]\npattern = \"request-reply\"\nrate = \"max\"\n\
         payload = \"64B\"\nwarmup = \"200ms\"\nduration = \"500ms\"\n[axes]\ntransport = [\"inproc\", \"tcp\"]\n\
         system = [\"zeromq-cpp\", \"zeromq-python\", \"null-python\"]\n[run]\nrepeats = 1\n\
         [[skip]]\nsystem = \"null-python\"\ntransport = \"tcp\"\nwhy = \"w\"\n",
    );
    let output = place.run(&["run", "study.toml", "--out", "r", "-q"]);
    assert!(matches!(output.status.code(), Some(0 | 3)), "{}", stderr(&output));
    let records = place.records("r");
    assert_eq!(records.len(), 5);
    for record in &records {
        assert!(record["error"].is_null() && record["counts"]["lost"] == 0, "{record}");
        let agents = record["agents"].as_array().unwrap();
        let said =
            |what: &str| agents.iter().all(|agent| agent["made"][what].as_str().is_some_and(|text| !text.is_empty()));
        assert!(["language", "binding", "call", "flags"].into_iter().all(said), "{record}");
        let told = agents.iter().all(|agent| agent["runtime"]["pauses"]["count"].is_u64());
        assert_eq!(told, record["system"] != "zeromq-cpp", "C++ has no runtime that stops it: {record}");
    }
    let summary = std::fs::read_to_string(place.path("r/summary.csv")).unwrap();
    let rows: Vec<Vec<&str>> = summary.lines().map(|line| line.split(',').collect()).collect();
    let column = |name: &str| rows[0].iter().position(|head| *head == name).unwrap();
    let figure = |row: &[&str], name: &str| row[column(name)].parse::<f64>().unwrap_or(f64::NAN);
    let of = |system: &str, transport: &str| {
        let is = |row: &&Vec<&str>| row[column("system")] == system && row[column("transport")] == transport;
        rows.iter().find(is).unwrap_or_else(|| panic!("{summary}"))
    };
    let python = of("zeromq-python", "tcp");
    let (whole, floor) = (figure(python, "message_time_ns"), figure(python, "language_floor_ns"));
    let (null, cpp) = (of("null-python", "inproc"), of("zeromq-cpp", "tcp"));
    // On a machine that was not quiet, neither is there to be compared with.
    if figure(null, "p50_runs") > 0.0 {
        assert_eq!(floor, figure(null, "message_time_ns"), "one floor for all transports: {summary}");
        let beyond = figure(python, "binding_ns");
        assert!((beyond - (whole - floor)).abs() <= 1.0 || beyond.is_nan() && whole <= floor, "{summary}");
    } else {
        assert!(floor.is_nan(), "{summary}");
    }
    let times = figure(python, "over_baseline");
    match figure(cpp, "p50_runs") > 0.0 {
        true => assert!((times * figure(cpp, "message_time_ns") / whole - 1.0).abs() < 0.001, "{summary}"),
        false => assert!(times.is_nan(), "{summary}"),
    }
    let shown = stdout(&place.run(&["report", "r"]));
    assert!(shown.contains("How zeromq-python is made:"), "{shown}");
    place.assert_swept();
}
