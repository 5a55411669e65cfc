//! Studies that ask for the capacity of their cells, in virtual time: a search of each cell follows the runs, part by
//! part, within the given time.

use crate::support::{Place, stderr, stdout};
use serde_json::Value;
use std::process::Output;

/// Returns a place with two systems whose sends take this long, which may be ranked, unlike `mock`.
fn place() -> Place {
    let place = Place::new();
    let mock = include_str!("../../../../systems/mock.toml");
    for (name, cost) in [("swift", "1ms"), ("slow", "2ms")] {
        let at = mock.find("send_cost").expect("the mock system has a cost of sending");
        let (head, tail) = mock.split_at(at);
        let text = format!("{head}{}", tail.replacen("default = \"1us\"", &format!("default = \"{cost}\""), 1));
        assert!(text.contains(cost), "{text}");
        place.system(name, &text);
    }
    place
}

const STUDY: &str = r#"
title = "Two sizes"
[workload]
pattern = "pairs"
warmup = "100ms"
duration = "20s"
rate = 100
[axes]
system = ["swift", "slow"]
[parts.small]
payload = "64B"
[parts.large]
payload = "4KiB"
[parts.other]
payload = "1KiB"
[run]
repeats = 2
[capacity]
objective = "p99 < 10ms and lost = 0"
parts = ["small", "large"]
"#;

fn run(place: &Place, arguments: &[&str]) -> Output {
    let all = [&["run", "study.toml", "--out", "r"], arguments].concat();
    place.command(&all).env("XDG_CONFIG_HOME", place.path("config")).output().unwrap()
}

fn told(place: &Place) -> Value {
    serde_json::from_slice(&place.run(&["report", "r", "--json"]).stdout).unwrap()
}

/// Returns the capacities found, by system and part.
fn capacities(told: &Value) -> Vec<(String, f64, String)> {
    let all = told["capacities"].as_array().unwrap_or_else(|| panic!("{told:#}"));
    let of = |found: &Value| {
        let text = |name: &str| found[name].as_str().unwrap_or_default().to_owned();
        (text("cell"), found["estimate"].as_f64().unwrap_or_else(|| panic!("{found:#}")), text("standing"))
    };
    all.iter().map(of).collect()
}

#[test]
fn a_study_that_asks_for_capacities_has_them_beside_its_runs_each_part_by_itself() {
    let place = place();
    place.study(STUDY);
    let planned = run(&place, &["--dry-run"]);
    let lines = stdout(&planned);
    assert!(lines.contains("then the capacity of 2 cells of part small"), "{lines}");
    assert!(lines.contains("then the capacity of 2 cells of part large") && !lines.contains("part other:"), "{lines}");
    assert!(lines.contains("4 searches, 12 min at most on top of the runs"), "{lines}");
    let output = run(&place, &["-q"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(place.records("r").len(), 12, "no step is a run of the study");
    let found = told(&place);
    assert_eq!(found["summary"].as_array().unwrap().len(), 6);
    let all = capacities(&found);
    assert_eq!(all.len(), 4, "{all:?}");
    for (cell, estimate, standing) in &all {
        let (due, stands) = if cell.starts_with("swift") { (1_000.0, "winner") } else { (500.0, "behind") };
        assert!((estimate / due - 1.0).abs() < 0.05, "{cell}: {estimate}");
        assert_eq!(standing, stands, "{cell}");
        assert!(cell.contains("part=small") || cell.contains("part=large"), "{cell}");
    }
    // The table, in a terminal, as Markdown, as CSV and on the page.
    let said = stdout(&place.run(&["report", "r", "--all"]));
    let (_, table) = said.split_once("Capacities").unwrap_or_else(|| panic!("{said}"));
    let row = |name: &str| table.lines().find(|line| line.contains(name)).unwrap().to_owned();
    assert!(row("swift").contains("winner") && row("slow").contains("behind"), "{table}");
    assert!(row("swift").contains("latency"), "what gave out first: {table}");
    let markdown = stdout(&place.run(&["report", "r", "--markdown"]));
    assert!(markdown.contains("## Capacities") && markdown.contains("**winner**"), "{markdown}");
    let csv = stdout(&place.run(&["report", "r", "--csv"]));
    let rows: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    let at = |name: &str| rows[0].iter().position(|head| *head == name).unwrap();
    for row in &rows[1..] {
        let (part, estimate) = (row[at("part")], row[at("capacity_estimate")]);
        assert_eq!(estimate.is_empty(), part == "other", "{row:?}");
        let standing = if part == "other" {
            ""
        } else if row[at("system")] == "swift" {
            "winner"
        } else {
            "behind"
        };
        assert_eq!(row[at("capacity_standing")], standing, "{row:?}");
    }
    let page = std::fs::read_to_string(place.path("r/report.html")).unwrap();
    assert!(page.contains("\"standing\":\"winner\""));
    // Resuming makes no run again.
    let before = std::fs::read(place.path("r/capacity/small/runs.jsonl")).unwrap();
    let again = run(&place, &["-q", "--resume"]);
    assert_eq!(again.status.code(), Some(0), "{}", stderr(&again));
    assert_eq!(std::fs::read(place.path("r/capacity/small/runs.jsonl")).unwrap(), before);
}

#[test]
fn capacities_are_questions_that_are_paid_from_the_budget() {
    let place = place();
    place.study(&STUDY.replace("[run]\nrepeats = 2\n", "[questions]\nbest = []\nclaims = false\n"));
    let planned = run(&place, &["--budget", "10m", "--dry-run"]);
    let lines = stdout(&planned);
    assert_eq!(lines.matches("how far `p99 < 10ms and lost = 0` holds over rate: ").count(), 4, "{lines}");
    assert!(lines.contains("4 questions"), "{lines}");
    assert!(lines.contains("4 searches, 5 min at least of the 10 min"), "{lines}");
    let output = run(&place, &["--budget", "10m"]);
    let said = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{said}\n{}", stderr(&output));
    assert!(said.contains("4 of 4 questions decided") && said.contains("nothing is open"), "{said}");
    assert!(place.records("r").is_empty(), "no run of the study is needed for that");
    let questions = told(&place)["questions"].as_array().unwrap().clone();
    assert_eq!(questions.len(), 4);
    for question in &questions {
        assert_eq!((&question["kind"], &question["state"]), (&"capacity".into(), &"decided".into()), "{question:#}");
        assert!(question["answer"].as_str().unwrap().contains("holds up to"), "{question:#}");
    }
}

#[test]
fn a_budget_that_is_over_leaves_them_open_and_a_longer_one_goes_on() {
    let place = place();
    let all = STUDY.replace("[run]\nrepeats = 2\n", "[questions]\nbest = []\nclaims = false\n");
    let one = all.replace("[\"swift\", \"slow\"]", "[\"swift\"]").replace("[\"small\", \"large\"]", "[\"small\"]");
    // A step of 4 s: 1,100 messages of the first load take no longer.
    place.study(&one.replace("rate = 100\n", "rate = 400\n"));
    let output = run(&place, &["--budget", "12s"]);
    let said = stdout(&output);
    assert_eq!(output.status.code(), Some(3), "{said}\n{}", stderr(&output));
    assert!(said.contains("0 of 1 questions decided") && said.contains("the time is over"), "{said}");
    let steps = std::fs::read_to_string(place.path("r/capacity/small/runs.jsonl")).unwrap().lines().count();
    let longer = run(&place, &["--budget", "10m", "--resume"]);
    assert_eq!(longer.status.code(), Some(0), "{}\n{}", stdout(&longer), stderr(&longer));
    let all = std::fs::read_to_string(place.path("r/capacity/small/runs.jsonl")).unwrap();
    assert!(steps > 0 && all.lines().count() > steps, "it goes on where it was");
    assert!(stdout(&longer).contains("1 of 1 questions decided"), "{}", stdout(&longer));
}

#[test]
fn the_headroom_of_a_study_with_parts_is_searched_part_by_part() {
    let place = place();
    place.study(&STUDY.split("[capacity]").next().unwrap().replace("repeats = 2", "repeats = 1\nheadroom = true"));
    let output = run(&place, &["-q", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let rows: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(rows.len(), 6);
    for row in &rows {
        let times = &row["headroom"];
        if row["system"] == "swift" {
            assert!(times["lo"].as_f64().unwrap() > 9.0, "1,000 of 100 messages/s: {row:#}");
        } else {
            let found = times["times"].as_f64().unwrap_or_else(|| panic!("{row:#}"));
            assert!((4.5..5.5).contains(&found), "500 of 100 messages/s: {row:#}");
        }
    }
    for part in ["small", "large", "other"] {
        assert!(place.path(&format!("r/headroom/{part}/runs.jsonl")).exists(), "{part}");
    }
    let said = stdout(&place.run(&["report", "r", "--all"]));
    assert!(said.split_once("Headroom").unwrap().1.contains("large"), "{said}");
}

#[test]
fn what_cannot_be_searched_is_said_before_a_run_is_made() {
    let place = place();
    for (more, words) in [
        ("[capacity]\nobjective = \"p99 < 10ms\"\nparts = [\"huge\"]\n", "[capacity] names the part `huge`"),
        ("[capacity]\nuntil = \"p99 < 10ms\"\nparts = [\"small\"]\n", "whose `objective` is asked for"),
        ("[capacity]\nuntil = \"p99 < 10ms\"\nobjective = \"p99 < 5ms\"\n", "write one of them"),
        ("[capacity]\nobjective = \"p98 < 10ms\"\n", "there is no figure `p98`"),
    ] {
        place.study(&format!("{}{more}", STUDY.split("[capacity]").next().unwrap()));
        let refused = run(&place, &[]);
        assert_eq!(refused.status.code(), Some(2), "{more}: {}", stderr(&refused));
        assert!(stderr(&refused).contains(words), "{more}: {}", stderr(&refused));
        assert!(!place.path("r").exists());
    }
}

/// A part that the shortened study leaves out is measured if it is selected by name.
#[test]
fn only_names_a_part_that_quick_leaves_out() {
    let place = place();
    place.study(&format!("{STUDY}[quick]\nrepeats = 1\n[quick.axes]\npart = [\"other\"]\n"));
    let planned = stdout(&run(&place, &["--quick", "--dry-run"]));
    assert!(planned.contains("2 cells, 2 runs") && !planned.contains("capacity"), "{planned}");
    let planned = stdout(&run(&place, &["--quick", "--only", "part=small", "--dry-run"]));
    assert!(planned.contains("2 cells, 2 runs") && planned.contains("capacity of 2 cells of part small"), "{planned}");
}
