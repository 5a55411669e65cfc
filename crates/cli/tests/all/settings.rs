//! Vendor defaults and recommended settings: as requested, in the server's own file, in the record and on the screen.

use crate::support::{Place, stderr, stdout};
use serde_json::{Value, json};

/// Makes a run of Mosquitto at QoS 1. Returns its record and the output.
fn measured(place: &Place, more: &[&str]) -> (Value, String) {
    let load = ["--qos", "1", "--rate", "200", "--payload", "256B", "--warmup", "200ms"];
    let window = if more.contains(&"--duration") { &[][..] } else { &["--duration", "1s"] };
    let bench = ["bench", "mosquitto", "--durable", "--repeats", "1", "--out", "r", "--all"];
    let arguments = [&bench, &load[..], window, more].concat();
    let output = place.command(&arguments).env("COLUMNS", "80").output().unwrap();
    let records = place.records("r");
    assert_eq!(records.len(), 1, "{}", stderr(&output));
    (records[0].clone(), stdout(&output).split_whitespace().collect::<Vec<_>>().join(" "))
}

#[test]
fn a_record_lists_each_difference_from_the_makers_with_its_reason() {
    let (record, shown) = measured(&Place::new(), &[]);
    assert_eq!(record["settings"]["use"], "tuned");
    let differences = record["settings"]["differences"].as_array().unwrap();
    let saved = differences.iter().find(|one| one["name"] == "autosave_interval_s").unwrap();
    assert_eq!((&saved["value"], &saved["stock"]), (&json!(1), &json!(1800)));
    assert!(differences.iter().all(|one| one["why"].as_str().is_some_and(|why| !why.is_empty())), "{differences:?}");
    assert!(shown.contains("· settings tuned ·"), "{shown}");
    assert!(
        shown.contains("mosquitto autosave_interval_s=1 (default: 1800)"),
        "what is said of losses names it: {shown}"
    );

    let (record, shown) = measured(&Place::new(), &["--settings", "stock", "--set", "options.max_queued_messages=7"]);
    assert_eq!(record["settings"]["use"], "stock");
    let (options, left) = (&record["options"], record["settings"]["differences"].as_array().unwrap());
    assert_eq!((&options["autosave_interval_s"], &options["set_tcp_nodelay"]), (&json!(1800), &json!(false)));
    let names: Vec<&Value> = left.iter().map(|one| &one["name"]).collect();
    assert_eq!(names, ["max_queued_messages"], "what was set for the run is a difference all the same");
    assert!(shown.contains("· settings stock ·"), "{shown}");
}

/// A subscriber answers each message, and the answer carries the acknowledgement that Nagle's algorithm waits for. It
/// does not answer a PINGRESP, so the message behind one waits.
#[test]
fn a_broker_that_lets_nagle_wait_says_so_beside_its_latency() {
    let nagle = ["--set", "options.set_tcp_nodelay=false", "--set", "options.keep_alive=1s"];
    let (record, shown) = measured(&Place::new(), &[&["--duration", "5s"][..], &nagle].concat());
    let notes = record["verdict"]["notes"].as_array().unwrap();
    let step = notes.iter().find_map(|note| note["evidence"].as_str().filter(|told| told.contains("40 ms")));
    let step = step.unwrap_or_else(|| panic!("{} {}", record["latency_ns"], record["verdict"]));
    // A busy machine spreads the step, and then the sentence is another.
    assert!(step.contains("options.set_tcp_nodelay = false leaves"), "{step}");
    assert!(shown.contains("ends at 40 ms") || shown.contains("leaves Nagle's algorithm on"), "{shown}");
}

#[test]
fn both_can_be_measured_side_by_side_and_nothing_else_is_taken() {
    let place = Place::new();
    place.study(
        "title = \"t\"\n[workload]\nduration = \"1s\"\n[axes]\nsystem = [\"mosquitto\"]\nuse = [\"stock\", \"tuned\"]\n",
    );
    let plan = stdout(&place.run(&["run", "study.toml", "--dry-run"]));
    assert!(plan.contains("use=stock") && plan.contains("use=tuned"), "{plan}");
    let output = place.run(&["bench", "mosquitto", "--settings", "theirs"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("must be stock") && stderr(&output).contains("tuned"), "{}", stderr(&output));
    let about = stdout(&place.run(&["systems", "mosquitto"]));
    assert!(about.contains("vendor default 1800: 1,800 would lose half an hour"), "{about}");
}

#[test]
fn settings_that_there_are_not_are_refused_by_the_name_of_the_flag() {
    let place = Place::new();
    place.study("title = \"t\"\n[workload]\nduration = \"1s\"\n[axes]\nsystem = [\"mosquitto\", \"nats\"]\n");
    let arms = ["--a", "payload=64B", "--b", "payload=1KiB", "--fail-on", "p99 > +10%"];
    for (command, more) in [("run", &[][..]), ("bench", &[]), ("ab", &arms), ("capacity", &[])] {
        let of_study = ["study.toml"].iter().filter(|_| command != "bench");
        for target in ["mosquitto"].iter().filter(|_| command != "run").chain(of_study) {
            let output = place.run(&[&[command, target, "--settings", "theirs"][..], more].concat());
            let said = stderr(&output);
            assert_eq!(output.status.code(), Some(2), "{command} {target}: {said}");
            let says = "--settings=theirs: settings must be stock (vendor defaults) or tuned (recommended settings), but are `theirs`";
            assert!(said.contains(says) && !said.contains("use"), "{command} {target}: {said}");
        }
    }
    let output = place.run(&["run", "study.toml", "--set", "use=theirs"]);
    assert!(stderr(&output).contains("--set use=theirs: "), "who writes the key is told of it: {}", stderr(&output));
}
