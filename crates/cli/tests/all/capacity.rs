//! Capacity searches, nearly all in virtual time, where the capacity is a setting: a publisher of the mock system whose
//! sends take 1 ms sends 1,000 messages per second.

use crate::support::{Place, stderr, stdout};
use pubmark_host::machine::usable_cores;
use pubmark_model::pin::Pin;
use serde_json::Value;
use std::process::Output;

const SLOW: [&str; 2] = ["--set", "options.send_cost=1ms"];

fn search(place: &Place, arguments: &[&str]) -> Output {
    place.run(&[&["capacity", "mock", "--out", "r"], arguments].concat())
}

fn found(place: &Place, arguments: &[&str]) -> (Option<i32>, Value) {
    let output = search(place, &[arguments, &["--json", "-q"]].concat());
    assert!(output.stderr.is_empty(), "{}", stderr(&output));
    (output.status.code(), serde_json::from_str(&stdout(&output)).unwrap())
}

fn number(found: &Value, name: &str) -> f64 {
    found[name].as_f64().unwrap_or_else(|| panic!("{name}: {found:#}"))
}

#[test]
fn the_capacity_of_a_slow_sender_is_found_and_a_report_says_the_same() {
    let place = Place::new();
    let (code, answer) = found(&place, &SLOW);
    assert_eq!(code, Some(0));
    let [lo, estimate, hi] = ["lo", "estimate", "hi"].map(|name| number(&answer, name));
    assert!((950.0..1_050.0).contains(&estimate) && lo <= estimate && estimate <= hi, "{lo} {estimate} {hi}");
    assert!(hi <= lo * 1.05_f64.powi(2), "{lo} to {hi}: no wider than asked");
    assert_eq!((&answer["limited_by"], &answer["confirmed"]), (&"latency".into(), &true.into()));
    assert_eq!((&answer["settled"], &answer["lower_bound"]), (&true.into(), &false.into()));
    let steps = answer["steps"].as_array().unwrap();
    assert_eq!(steps.len(), place.records("r").len(), "each step is a record");
    assert_eq!(steps.iter().filter(|step| step["confirms"] == true).count(), 1);
    for step in steps {
        let load = number(step, "load");
        assert_eq!(step["outcome"], if load < 1_000.0 { "held" } else { "failed" }, "{step}");
        assert!((number(step, "offered_per_s") / load - 1.0).abs() < 0.01, "{step}");
    }
    let told = place.run(&["report", "r", "--json"]);
    let told: Value = serde_json::from_slice(&told.stdout).unwrap();
    assert_eq!(told, Value::Array(vec![answer]), "a report has the same object");
    // From the folder alone, and with the same text.
    let report = place.run(&["report", "r"]);
    assert_eq!(report.status.code(), Some(0), "{}", stderr(&report));
    let other = Place::new();
    let said = search(&other, &[&SLOW[..], &["-q"]].concat());
    assert_eq!(stdout(&said), stdout(&report), "the same search finds the same, and says it as a report does");
    assert!(stdout(&report).contains("holds up to"), "{}", stdout(&report));
    let page = std::fs::read_to_string(place.path("r/report.html")).unwrap();
    assert!(page.contains("holds up to"));
}

/// Leaves what an interruption leaves: the first records, and half of one that was being written.
fn cut_short(place: &Place, steps: usize) {
    let path = place.path("r/runs.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let kept: String = lines[..steps].iter().flat_map(|line| [line, "\n"]).collect();
    std::fs::write(path, kept + &lines[steps][..lines[steps].len() / 2]).unwrap();
}

#[test]
fn a_search_goes_on_from_its_records_as_if_it_had_not_been_interrupted() {
    let place = Place::new();
    let (_, whole) = found(&place, &SLOW);
    let all = whole["steps"].as_array().unwrap().len();
    assert!(all > 8);
    for steps in [0, 1, all / 2, all - 1] {
        cut_short(&place, steps);
        let (code, answer) = found(&place, &[&SLOW[..], &["--resume"]].concat());
        assert_eq!((code, &answer), (Some(0), &whole), "after {steps} of {all} steps");
        assert_eq!(place.records("r").len(), all);
    }
    // A settled search needs no further step.
    let (code, answer) = found(&place, &[&SLOW[..], &["--resume", "--budget", "10s"]].concat());
    assert_eq!((code, &answer), (Some(0), &whole));
    let refused = search(&place, &SLOW);
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("or go on with --resume"), "{}", stderr(&refused));
    let before = std::fs::read(place.path("r/runs.jsonl")).unwrap();
    for other in [
        &["--until", "p99 < 20ms"][..],
        &["--within", "10%"],
        &["--payload", "2KiB"],
        &["--rate", "50"],
        &["--over", "burst"],
        &["--duration", "20s"],
    ] {
        let refused = search(&place, &[&SLOW[..], &["--resume"], other].concat());
        assert_eq!(refused.status.code(), Some(2), "{other:?}: {}", stderr(&refused));
        assert!(stderr(&refused).contains("made by another study, or with other settings"), "{}", stderr(&refused));
    }
    assert_eq!(std::fs::read(place.path("r/runs.jsonl")).unwrap(), before, "nothing was written");
}

#[test]
fn a_search_whose_time_was_over_goes_on_with_more() {
    let place = Place::new();
    let (code, short) = found(&place, &[&SLOW[..], &["--budget", "10s"]].concat());
    let steps = short["steps"].as_array().unwrap();
    assert_eq!((code, &short["settled"]), (Some(3), &false.into()), "{short:#}");
    let (code, answer) = found(&place, &[&SLOW[..], &["--resume"]].concat());
    assert_eq!(code, Some(0), "{answer:#}");
    let all = answer["steps"].as_array().unwrap();
    assert!(all.len() > steps.len() && all[..steps.len()] == steps[..], "it goes on where it was");
    assert!((950.0..1_050.0).contains(&number(&answer, "estimate")));
    let nowhere = Place::new();
    let nothing = nowhere.run(&["capacity", "mock", "--resume"]);
    assert_eq!(nothing.status.code(), Some(2));
    assert!(stderr(&nothing).contains("to go on with"), "{}", stderr(&nothing));
}

#[test]
fn any_figure_can_be_the_objective() {
    let every_seventh =
        [&SLOW[..], &["--set", "options.lose_every=7", "--until", "delivered_ratio >= 85% and p99 < 10ms"]];
    let (code, answer) = found(&Place::new(), &every_seventh.concat());
    assert_eq!(code, Some(0), "6 of 7 arrive: {answer:#}");
    assert!((950.0..1_050.0).contains(&number(&answer, "estimate")));
    // An objective that never holds is reported as such, with the cause.
    let (code, answer) = found(&Place::new(), &["--set", "options.lose_every=7"]);
    assert_eq!((code, &answer["estimate"], &answer["lo"]), (Some(3), &Value::Null, &Value::Null));
    assert_eq!(answer["limited_by"], "losses");
    // No load ever fails, as far as there is time.
    let (code, answer) = found(&Place::new(), &["--budget", "20s", "--set", "options.send_cost=0s"]);
    assert_eq!((code, &answer["estimate"], &answer["hi"]), (Some(3), &Value::Null, &Value::Null), "{answer:#}");
    assert!(number(&answer, "lo") >= 1_600.0);
}

/// A publisher that waits for its server sends after the window what was due in it: it is not carried.
#[test]
fn what_a_slow_server_takes_after_the_window_is_a_backlog() {
    let (code, answer) = found(&Place::new(), &[&SLOW[..], &["--until", "backlog <= 1%"]].concat());
    assert_eq!(code, Some(0), "{answer:#}");
    assert!((950.0..1_050.0).contains(&number(&answer, "estimate")), "{answer:#}");
    let place = Place::new();
    let run = place.bench(&[&["mock", "--rate", "1250", "--duration", "4s"], &SLOW[..]].concat()).record;
    assert_eq!((run["counts"]["offered"].as_u64(), run["counts"]["sent"].as_u64()), (Some(5_000), Some(5_000)));
    let per_s = |name: &str| run["rates"][name].as_f64().unwrap();
    assert_eq!(per_s("offered_per_s"), 1_250.0);
    assert!((per_s("sent_per_s") - 1_000.0).abs() < 1.0, "{}", run["rates"]);
    assert!(run["verdict"]["reasons"].to_string().contains("4000 arrivals in the window for 5000 messages due"));
}

/// Changes the record of the run of full length as load by others would have.
fn disturb_the_confirming_run(place: &Place) {
    let path = place.path("r/runs.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    let disturbed = |line: &str| {
        let mut record: Value = serde_json::from_str(line).unwrap();
        if record["cell"]["part"] == "confirm" {
            record["counts"]["lost"] = 5.into();
            let finding = serde_json::json!({
                "reason": "noisy-machine", "evidence": "others used 2 processors"
            });
            record["verdict"] = serde_json::json!({"valid": false, "reasons": [finding], "notes": []});
        }
        format!("{record}\n")
    };
    std::fs::write(path, text.lines().map(disturbed).collect::<String>()).unwrap();
}

#[test]
fn an_answer_stands_where_the_run_that_was_to_confirm_it_is_not_valid() {
    let place = Place::new();
    let (code, before) = found(&place, &SLOW);
    assert_eq!((code, &before["confirmed"]), (Some(0), &true.into()));
    disturb_the_confirming_run(&place);
    // No time for another run: the existing ones are all.
    let output = search(&place, &[&SLOW[..], &["--json", "--resume", "--budget", "10s"]].concat());
    let answer: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(answer["steps"].as_array().unwrap().len(), before["steps"].as_array().unwrap().len());
    assert_eq!((&answer["confirmed"], &answer["settled"]), (&false.into(), &true.into()), "{answer:#}");
    // The result of the steps alone, without the run that held in full length.
    let [lo, estimate, hi] = ["lo", "estimate", "hi"].map(|name| number(&answer, name));
    assert!((lo..hi).contains(&number(&before, "estimate")) && (950.0..1_050.0).contains(&estimate), "{answer:#}");
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("not confirmed: others used the machine") && said.contains("lost = 0: it was 5"), "{said}");
}

#[test]
fn a_dry_run_says_what_would_be_searched_and_for_how_long() {
    let place = Place::new();
    let dry = |arguments: &[&str]| {
        let output = place.run(&[&["capacity", "--dry-run"], arguments].concat());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        stdout(&output)
    };
    let one = dry(&["mock", "--until", "p99 < 5ms"]);
    assert!(one.contains("how far `p99 < 5ms` holds over rate, from 400 messages/s"), "{one}");
    assert!(one.contains("1 search, 3 min each at most, 3 min in all"), "{one}");
    let asked = "[capacity]\nobjective = \"lost = 0\"\nover = \"pairs\"\nparts = [\"small\"]\nbudget = \"10m\"\n";
    std::fs::write(place.path("senders.toml"), format!("{STUDY}{asked}")).unwrap();
    let small = dry(&["senders.toml", "--only", "part=small"]);
    assert_eq!(small.matches("how far `lost = 0` holds over pairs, from ").count(), 2, "{small}");
    assert!(small.contains("2 searches, 10 min each at most, 20 min in all"), "as the study says: {small}");
    let less = dry(&["senders.toml", "--only", "part=small", "--budget", "1m"]);
    assert!(less.contains("2 searches, 60 s each at most, 2 min in all"), "{less}");
    assert!(!place.path("results").exists(), "nothing is made");
    let all = place.run(&["capacity", "senders.toml", "--dry-run"]);
    let said = stderr(&all);
    assert_eq!(all.status.code(), Some(2), "{said}");
    assert!(said.contains("one of small, large; its [capacity] asks for small: `pubmark run` searches"), "{said}");
}

/// Returns whether server and clients were placed apart, according to a dry run.
fn placed(arguments: &[&str]) -> bool {
    let output = Place::new().run(&[&["capacity", "--dry-run"], arguments].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    stderr(&output).contains("processors: publishers ")
}

#[test]
fn server_and_clients_are_placed_apart_where_nobody_says_otherwise() {
    let several = usable_cores().len() > 1;
    assert_eq!(placed(&["mosquitto"]), several);
    let said: [&[&str]; 7] = [
        &["mosquitto", "--set", "pin=none"],
        &["mosquitto", "--set", "pin=server 0"],
        &["mosquitto", "--cpus", "1"],
        &["mosquitto", "--set", "options.deployment=docker"],
        &["mqtt://127.0.0.1:1883"],
        &["zeromq"],
        &["mock"],
    ];
    for arguments in said {
        assert!(!placed(arguments), "{arguments:?}");
    }
    if !several {
        return;
    }
    let place = Place::new();
    let short = ["--warmup", "100ms", "--duration", "1s", "--budget", "4s"];
    place.run(&[&["capacity", "mosquitto", "--out", "r"], &short[..]].concat());
    let Pin::Sets(sets) = Pin::apart(&usable_cores()).unwrap() else { panic!("no sets") };
    let record = &place.records("r")[0];
    assert_eq!(record["workload"]["pin"], Pin::Sets(sets.clone()).to_string());
    let applied = &record["deployment"]["applied"];
    assert_eq!(applied["cpus"].as_f64(), Some(sets.server.len() as f64), "{applied}");
}

#[test]
fn other_things_than_rates_are_turned_up() {
    // Of a burst of 10, the last is sent 9 ms late and takes 0.1 ms; of 11 it is late.
    let (code, answer) = found(&Place::new(), &[&SLOW[..], &["--over", "burst", "--rate", "50"]].concat());
    assert_eq!(code, Some(0), "{answer:#}");
    let estimate = number(&answer, "estimate");
    assert!((10.0..=11.0).contains(&estimate), "{estimate}");
    for step in answer["steps"].as_array().unwrap() {
        assert_eq!(step["outcome"], if number(step, "load") <= 10.0 { "held" } else { "failed" }, "{step}");
    }
}

#[test]
fn what_cannot_be_asked_is_said_at_once() {
    for (arguments, words) in [
        (["--until", "p98 < 10ms"], "there is no figure `p98`"),
        (["--until", "p99 < 10"], "write a time, such as 10ms"),
        (["--until", "p99"], "is not an objective"),
        (["--until", "nobody p99 < 10ms"], "there is no figure `nobody p99`"),
        (["--until", "delivered_ratio >= 999"], "a share, such as 99.9%"),
        (["--within", "80%"], "1% to 50%"),
        (["--over", "weather"], "not one of rate, pairs"),
        (["--rate", "max"], "begins at a number"),
        (["--rate", "100,200"], "--rate: a search begins at one load"),
        (["--budget", "5s"], "--budget no shorter"),
        (["--budget", "soon"], "--budget"),
        (["--set", "count=100"], "windows of time"),
        (["--set", "topics=1000"], "mock has no `topics`: it has no server that routes by them"),
    ] {
        let place = Place::new();
        let output = search(&place, &arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(words), "{arguments:?}: {}", stderr(&output));
        assert!(!place.path("r").exists(), "{arguments:?}");
    }
}

/// Cells of two systems in parts, of which a search takes one.
const STUDY: &str = r#"
title = "Senders"
[workload]
pattern = "pairs"
duration = "1s"
rate = 50
[axes]
system = ["mock"]
options.send_cost = ["1ms", "2ms"]
[parts.small]
payload = "64B"
[parts.large]
payload = "4KiB"
rate = [10, 20]
[[skip]]
part = "large"
options.send_cost = "2ms"
why = "to be left out"
[[claims]]
id = "1"
says = "nothing"
figure = "latency_p50_ns"
best = ["mock"]
[claims.where]
part = "small"
"#;

#[test]
fn each_cell_of_a_study_is_searched_by_itself() {
    let place = Place::new();
    std::fs::write(place.path("senders.toml"), STUDY).unwrap();
    let refused = place.run(&["capacity", "senders.toml"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("choose it with --only part=…, one of small, large"), "{}", stderr(&refused));
    let answers = |out: &str, more: &[&str]| -> Vec<Value> {
        let output = place.run(&[&["capacity", "senders.toml", "--json", "-q", "--out", out], more].concat());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let small = answers("small", &["--only", "part=small"]);
    assert_eq!(small.len(), 2);
    for (answer, due) in small.iter().zip([1_000.0, 500.0]) {
        assert!((number(answer, "estimate") / due - 1.0).abs() < 0.05, "{due}: {answer:#}");
    }
    let steps: usize = small.iter().map(|answer| answer["steps"].as_array().unwrap().len()).sum();
    let records = place.records("small");
    assert_eq!(steps, records.len(), "each step is a record, and of one search");
    let costs: Vec<&Value> = records.iter().map(|record| &record["cell"]["options.send_cost"]).collect();
    assert_ne!(costs[0], costs[1], "they take turns");
    let told = place.run(&["report", "small", "--json"]);
    assert_eq!(serde_json::from_slice::<Vec<Value>>(&told.stdout).unwrap(), small, "a report has the same");
    let all = std::fs::read_to_string(place.path("small/runs.jsonl")).unwrap();
    let some: String = all.lines().take(7).flat_map(|line| [line, "\n"]).collect();
    std::fs::write(place.path("small/runs.jsonl"), some).unwrap();
    assert_eq!(
        answers("small", &["--only", "part=small", "--resume"]),
        small,
        "each search goes on from its own steps"
    );
    let large = answers("large", &["--only", "part=large", "--payload", "1KiB", "--within", "10%"]);
    assert_eq!(large.len(), 1, "the other is left out by the study");
    assert_eq!(place.records("large")[0]["workload"]["payload_bytes"], 1_024);
    let said = place.run(&["report", "small"]);
    assert_eq!(stdout(&said).matches("` holds up to").count(), 2, "{}", stdout(&said));
}

/// A search of a study begins with the study's load, as that of `pubmark run` does.
#[test]
fn a_search_begins_where_the_study_says() {
    let place = Place::new();
    let from = |over: &str, capacity: &str, more: &[&str]| {
        let text = format!(
            "title = \"t\"\n[workload]\nduration = \"20s\"\n[axes]\nsystem = [\"mock\"]\nrate = [500, 250]\npairs = [4, 2]\n\
             [capacity]\nobjective = \"p99 < 5ms\"\nover = \"{over}\"\n{capacity}"
        );
        std::fs::write(place.path("s.toml"), text).unwrap();
        let output = place.run(&[&["capacity", "s.toml", "--dry-run"], more].concat());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        stdout(&output)
    };
    assert!(from("pairs", "", &[]).contains("holds over pairs, from 2 pairs"), "{}", from("pairs", "", &[]));
    assert!(from("pairs", "start = 7\n", &[]).contains("from 7 pairs"));
    assert!(from("pairs", "start = 7\n", &["--pairs", "9"]).contains("from 9 pairs"), "what is typed comes first");
    assert!(from("rate", "", &[]).contains("holds over rate, from 500 messages/s"), "2 pairs of 250 each");
    let system = place.run(&["capacity", "mock", "--dry-run", "--over", "cpus", "--cpus", "1.5"]);
    assert!(stdout(&system).contains("holds over cpus, from 1.5 processors"), "{}", stdout(&system));
    let system = place.run(&["capacity", "mock", "--dry-run", "--over", "memory", "--memory", "2GB"]);
    assert!(stdout(&system).contains("holds over memory, from 2000000000 bytes"), "{}", stdout(&system));
}
