//! What a report says of a study that names an objective.

use crate::lab::{Lab, latency, spoil_for, usage};
use pubmark_model::record::{FigureGroup, Reason};
use pubmark_report::page::Content;
use serde_json::Value;

const LOADS: [u64; 4] = [100, 200, 300, 400];

/// Two systems at four loads, three runs each: `alpha` is late from 300 messages a
/// second on, `beta` from 200. A run of `alpha` at 300 was disturbed.
pub fn lab() -> Lab {
    let mut lab = Lab::new(
        "[workload]\nduration = \"4s\"\n[axes]\nsystem = [\"alpha\", \"beta\"]\nrate = [100, 200, 300, 400]\n[run]\nrepeats = 3\n\
         [capacity]\nuntil = \"p99 < 5ms\"\nwithin = \"10%\"\n",
    );
    for repeat in 1..=3 {
        for (system, edge) in [("alpha", 250), ("beta", 150)] {
            for load in LOADS {
                let ms = if load < edge { 1 } else { 50 };
                lab.run(&format!("{system} rate={load}"), repeat, |run| {
                    latency(run, &[(ms * 1_000_000, 20_000)]);
                    run.rates.offered_per_s = load as f64;
                    run.server = Some(usage(load as f64 / 1_000.0));
                    run.machine.cores = 4;
                    if (system, load, repeat) == ("alpha", 300, 1) {
                        spoil_for(run, Reason::NoisyMachine, &[FigureGroup::LatencyP99]);
                    }
                });
            }
        }
    }
    lab
}

#[test]
fn the_capacities_are_the_objects_of_the_summary() {
    let report = lab().report();
    let told = report.summary_json();
    let own: Vec<Value> = report.capacities().iter().map(|found| found.json()).collect();
    assert_eq!(told, Value::Array(own));
    for (found, (system, low, high)) in
        told.as_array().unwrap().iter().zip([("alpha", 200.0, 300.0), ("beta", 100.0, 200.0)])
    {
        assert!(found["cell"].as_str().unwrap().starts_with(system), "{found:#}");
        let [lo, estimate, hi] = ["lo", "estimate", "hi"].map(|name| found[name].as_f64().unwrap());
        assert!(low <= lo && lo <= estimate && estimate <= hi && hi <= high, "{system}: {lo} {estimate} {hi}");
        assert_eq!(found["limited_by"], "latency");
        assert_eq!(found["steps"].as_array().unwrap().len(), 12);
    }
}

#[test]
fn each_load_of_the_csv_has_the_answer_of_its_search() {
    let report = lab().report();
    let text = report.csv().unwrap();
    let mut rows = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let head = rows.next().unwrap();
    assert!(head.ends_with(&["capacity_load", "capacity_held", "capacity_steps"]), "{head:?}");
    let at = |name: &str| head.iter().position(|other| *other == name).unwrap();
    let told = report.summary_json();
    let rows: Vec<Vec<&str>> = rows.collect();
    assert_eq!(rows.len(), 8);
    for row in &rows {
        assert_eq!(row.len(), head.len());
        let found = &told[usize::from(row[at("system")] == "beta")];
        let number = |name: &str| row[at(name)].parse::<f64>().unwrap();
        for name in ["estimate", "lo", "hi"] {
            assert_eq!(number(&format!("capacity_{name}")), found[name].as_f64().unwrap());
        }
        assert_eq!((row[at("capacity_limited_by")], row[at("capacity_lower_bound")]), ("latency", "false"));
        let (load, edge) = (number("rate"), if row[at("system")] == "alpha" { 250.0 } else { 150.0 });
        assert_eq!(number("capacity_load"), load);
        let steps = if (row[at("system")], load) == ("alpha", 300.0) { 2.0 } else { 3.0 };
        assert_eq!(number("capacity_steps"), steps, "what was made again does not count");
        assert_eq!(number("capacity_held"), if load < edge { steps } else { 0.0 });
    }
}

#[test]
fn the_page_has_each_search_with_its_steps_and_its_curve() {
    let lab = lab();
    let report = lab.report();
    let data: Value = serde_json::from_str(&Content::of(&[&report], false).data_json()).unwrap();
    let result = &data["page"]["results"][0];
    let found = result["capacities"].as_array().unwrap();
    assert_eq!(found.len(), 2);
    let alpha = &found[0];
    assert_eq!(
        (&alpha["over"], &alpha["unit"], &alpha["until"]),
        (&"rate".into(), &"per_s".into(), &"p99 < 5ms".into())
    );
    assert_eq!(alpha["sentence"], report.capacities()[0].sentence());
    let steps = alpha["steps"].as_array().unwrap();
    for step in steps {
        let load = step["load"].as_f64().unwrap();
        let cell = &result["cells"][step["cell"].as_u64().unwrap() as usize];
        assert_eq!((&cell["system"], cell["axes"]["rate"].as_f64()), (&"alpha".into(), Some(load)));
        let disturbed = step["counts"] == false;
        let due = if disturbed {
            "disturbed"
        } else if load < 250.0 {
            "held"
        } else {
            "failed"
        };
        assert_eq!(step["outcome"], due, "{step}");
        assert_eq!(step["why"].as_str().unwrap().is_empty(), due == "held");
    }
    assert_eq!(steps.iter().filter(|step| step["counts"] == false).count(), 1);
    let curve = alpha["curve"].as_array().unwrap();
    let of = |name: &str| curve.iter().map(|load| load[name].as_f64().unwrap()).collect::<Vec<f64>>();
    assert_eq!(of("load"), LOADS.map(|load| load as f64));
    assert_eq!((of("held"), of("counted")), (vec![3.0, 3.0, 0.0, 0.0], vec![3.0, 3.0, 2.0, 3.0]));
    assert_eq!(of("server_cpu_cores"), [0.1, 0.2, 0.3, 0.4]);
    // A study without an objective has none.
    let mut plain = lab.study.clone();
    plain.capacity = None;
    let plain = pubmark_report::Report::of(plain, &lab.records).unwrap();
    let data: Value = serde_json::from_str(&Content::of(&[&plain], false).data_json()).unwrap();
    assert_eq!(data["page"]["results"][0]["capacities"], Value::Array(Vec::new()));
    assert!(!plain.csv().unwrap().contains("capacity_"));
}
