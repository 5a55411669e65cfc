//! Headroom of a load, in virtual time: a publisher of the mock system whose sends take 1 ms holds 1,000 messages per
//! second.

use crate::support::{Place, stderr, stdout};
use serde_json::Value;

/// Runs `bench` at a rate. Returns its summary.
fn bench(place: &Place, rate: &str) -> Value {
    let common = ["bench", "mock", "--set", "options.send_cost=1ms", "--repeats", "2", "--duration", "30s"];
    let output = place.run(&[&common[..], &["--rate", rate, "--headroom", "--out", "r", "--json", "-q"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let all: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((all["runs"].as_array().unwrap().len(), place.records("r").len()), (2, 2), "no step is a run");
    assert_eq!(all["summary"]["runs"], 2);
    all["summary"].clone()
}

fn number(found: &Value, name: &str) -> f64 {
    found["headroom"][name].as_f64().unwrap_or_else(|| panic!("{name}: {found:#}"))
}

#[test]
fn a_load_is_told_how_far_it_lies_from_what_holds() {
    let place = Place::new();
    let found = bench(&place, "250");
    let [lo, times, hi] = ["lo", "times", "hi"].map(|name| number(&found, name));
    assert!((3.7..4.3).contains(&times) && lo <= times && times <= hi, "{lo} {times} {hi}");
    assert_eq!(found["headroom"]["limited_by"], "queue");
    let said = stdout(&place.run(&["report", "r", "--all"]));
    assert!(said.contains("Headroom") && said.contains("limited by"), "{said}");
    let markdown = stdout(&place.run(&["report", "r", "--markdown"]));
    assert!(markdown.contains("## Headroom") && markdown.contains("| 250 |"), "{markdown}");
    let table = stdout(&place.run(&["report", "r", "--csv"]));
    let mut rows = table.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let (head, row) = (rows.next().unwrap(), rows.next().unwrap());
    let at = head.iter().position(|name| *name == "headroom_times").unwrap();
    assert_eq!(row[at].parse::<f64>().unwrap(), times);
    assert_eq!(row[at + 3], "queue");
    // The search is a results folder of its own.
    let own: Value = serde_json::from_slice(&place.run(&["report", "r/headroom", "--json"]).stdout).unwrap();
    assert!((own[0]["estimate"].as_f64().unwrap() / 250.0 - times).abs() < 1e-9, "{own:#}");
}

#[test]
fn at_most_ten_times_a_load_is_asked_and_what_fails_is_below_once() {
    let place = Place::new();
    let found = bench(&place, "50");
    assert!((9.98..10.01).contains(&number(&found, "lo")), "{found:#}");
    assert_eq!((&found["headroom"]["times"], &found["headroom"]["hi"]), (&Value::Null, &Value::Null));
    assert!(stdout(&place.run(&["report", "r", "--all"])).contains("at least 10 ×"));
    let place = Place::new();
    let common = ["bench", "mock", "--set", "options.send_cost=1ms", "--repeats", "1", "--duration", "30s", "-q"];
    let output = place.run(&[&common[..], &["--rate", "2000", "--headroom", "--out", "r"]].concat());
    assert!(matches!(output.status.code(), Some(0 | 3)), "{}", stderr(&output));
    let told: Value = serde_json::from_slice(&place.run(&["report", "r", "--json"]).stdout).unwrap();
    assert!((0.46..0.54).contains(&number(&told[0], "times")), "{told:#}");
    assert_eq!(told[0]["headroom"]["limited_by"], "latency");
}

/// One search for all loads of a system; none for `max`.
#[test]
fn a_study_is_told_for_each_of_its_loads() {
    let place = Place::new();
    place.study(
        "title = \"Loads\"\n[workload]\nduration = \"20s\"\n[options]\nsend_cost = \"1ms\"\n[axes]\nsystem = [\"mock\"]\n\
         pairs = [1, 2]\nrate = [100, 400, \"max\"]\n[run]\nrepeats = 1\nheadroom = true\n",
    );
    let output = place.run(&["run", "study.toml", "--out", "r", "-q", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let rows: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((rows.len(), place.records("r").len()), (6, 6));
    for row in &rows {
        let Some(rate) = row["rate"].as_f64() else {
            assert_eq!(row["headroom"], Value::Null, "at max there is none");
            continue;
        };
        let times = number(row, "times");
        assert!((times * rate / 1_000.0 - 1.0).abs() < 0.1, "{times} at {rate}: each publisher sends 1,000 at most");
    }
    let said = stdout(&place.run(&["report", "r", "--all"]));
    let headroom = said.split_once("Headroom").unwrap().1;
    assert!(headroom.contains("800"), "what two publishers offer together: {headroom}");
    // Resuming makes no run again.
    let before = std::fs::read(place.path("r/headroom/runs.jsonl")).unwrap();
    let again = place.run(&["run", "study.toml", "--out", "r", "-q", "--resume"]);
    assert_eq!(again.status.code(), Some(0), "{}", stderr(&again));
    assert_eq!(std::fs::read(place.path("r/headroom/runs.jsonl")).unwrap(), before);
    let faulty = "title = \"Faults\"\n[workload]\ntransport = \"tcp\"\n[faults]\nfault = \"stop publishers at 1s for 1s\"\n\
                  [axes]\nsystem = [\"kernel\"]\n[run]\nheadroom = true\n";
    std::fs::write(place.path("faulty.toml"), faulty).unwrap();
    let refused = place.run(&["run", "faulty.toml", "--dry-run"]);
    assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
    assert!(stderr(&refused).contains("while parts fail"), "{}", stderr(&refused));
}
