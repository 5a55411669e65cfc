//! Traces that studies replay.

use crate::support::*;
use pubmark_model::plan::cells;
use pubmark_model::profile::trace::{TraceFile, TraceRows};
use pubmark_model::study::{ReadOptions, Study};
use std::sync::Arc;

const START: &str = "title = \"t\"\n[workload]\ntransport = \"tcp\"\nwarmup = \"0s\"\n";
const AXES: &str = "[axes]\nsystem = \"alpha\"\n";

/// Gives a study a trace of two rows.
fn with_trace(mut study: Study, flows: &[&str]) -> Study {
    let rows = |flow: Option<&str>| {
        let mut rows = TraceRows::new("t.csv", flow);
        rows.set_sha256(&"ab".repeat(32));
        rows.push(0, 20, 2);
        rows.push(500_000_000, 100, 3);
        Arc::new(rows)
    };
    let rows = [rows(None)].into_iter().chain(flows.iter().map(|flow| rows(Some(flow)))).collect();
    study.traces.insert("t.csv".into(), TraceFile { sha256: "ab".repeat(32), rows });
    study
}

fn error(study: &Study) -> String {
    cells(study).unwrap_err()[0].message.clone()
}

#[test]
fn a_trace_is_read_before_it_is_planned_and_its_hash_stays() {
    let study = good(&format!("{START}trace = \"t.csv\"\ntrace_speed = 0.5\n{AXES}"));
    assert_eq!(study.missing_traces(), (vec!["t.csv".to_owned()], Vec::new()));
    assert!(error(&study).contains("`trace = \"t.csv\"`: only a study with its file can name a trace"));
    let study = with_trace(study, &[]);
    let workload = &cells(&study).unwrap()[0].workload;
    let trace = workload.rate.trace().unwrap();
    assert_eq!((trace.rows_before(1_000_000_000), trace.rows_before(1_000_000_001)), (1, 2));
    let sizes = (workload.least_payload_bytes(), workload.payload_bytes, workload.mean_payload_bytes());
    assert_eq!((sizes, workload.sizes_text().as_deref()), ((20, 100, 60.0), Some("trace t.csv, 0.5x")));
    let text = study.to_toml();
    assert!(
        text.contains(&format!("[traces]\n\"t.csv\" = \"{}\"", "ab".repeat(32))) && !text.contains("\nrate ="),
        "{text}"
    );
    // Read again, it has the hash and not the rows: enough for a report.
    let again = good(&text);
    assert_eq!((&again, again.missing_traces().0), (&study, vec!["t.csv".to_owned()]));
    assert!(!cells(&again).unwrap()[0].workload.rate.trace().unwrap().rows().is_loaded());
    let wrong = format!("{START}{AXES}[traces]\n\"t.csv\" = \"x\"\n");
    let errors = read(&wrong, &ReadOptions::default()).unwrap_err().to_string();
    assert!(errors.contains("`x` is not the SHA-256 of a trace"), "{errors}");
}

#[test]
fn a_flow_replays_a_trace_beside_the_rate_of_others() {
    let flows = "rate = 5\npayload = 64\n[flows.one]\ntrace = \"t.csv\"\ntrace_flow = \"a\"\n[flows.two]\n";
    let study = good(&format!("{START}{flows}{AXES}"));
    assert_eq!(study.missing_traces().1, ["a"]);
    let study = with_trace(study, &["a"]);
    let cell = &cells(&study).unwrap()[0];
    let [one, two] = [0, 1].map(|index| cell.flows()[index].workload.clone());
    assert_eq!(
        (one.rate.to_string().as_str(), one.payload_bytes, one.sizes_vary()),
        ("trace t.csv, flow a", 64, false)
    );
    assert_eq!(two.rate.to_string(), "5");
    let shared = good(&format!("{START}trace = \"t.csv\"\n[flows.one]\n[flows.two]\nrate = 7\n{AXES}"));
    let cell = &cells(&with_trace(shared, &[])).unwrap()[0];
    let rates = cell.flows().iter().map(|flow| flow.workload.rate.to_string()).collect::<Vec<_>>();
    assert_eq!(rates, ["trace t.csv", "7"]);
}

#[test]
fn other_hosts_do_not_replay_traces() {
    let far = "[hosts.far]\nreach = [\"ssh\", \"far\"]\naddress = \"10.0.0.1\"\n";
    let study = with_trace(good(&format!("{START}trace = \"t.csv\"\n{far}{AXES}")), &[]);
    assert!(error(&study).contains("`trace t.csv` cannot be replayed on the host far"), "{}", error(&study));
}
