//! How soon last wills arrived: a row a cell.

use crate::lab::{Lab, latency};
use pubmark_model::last_will::WillCounts;
use pubmark_model::record::WillFigures;
use pubmark_stats::Histogram;
use serde_json::json;

fn words(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn told(last_will: bool) -> Lab {
    let mut lab = Lab::new(&format!(
        "[workload]\nrate = 1000\nduration = \"10s\"\nlast_will = {last_will}\n[axes]\nsystem = [\"delta\"]\n"
    ));
    lab.run("delta", 1, |run| {
        latency(run, &[(200_000, 10_000)]);
        let mut times = Histogram::latency();
        times.record(2_000_000);
        let counts = WillCounts { due: 4, received: 1, undue: 2 };
        run.wills = last_will.then(|| Box::new(WillFigures { counts, latency_ns: times.summary() }));
    });
    lab
}

#[test]
fn a_cell_whose_publishers_have_last_wills_has_a_row() {
    let report = told(true).report();
    let text = report.terminal(100, false);
    let table = text.split("How soon last wills arrived\n").nth(1).unwrap_or_else(|| panic!("{text}"));
    let lines: Vec<String> = table.lines().take(3).map(words).collect();
    assert_eq!(lines[0], "system p50 p99 max due received undue", "{text}");
    assert_eq!(lines[2], "delta 2.00 ms 2.00 ms 2.00 ms 4 1 2", "{text}");
    let rows = report.summary_json();
    // A histogram gives the greatest value of the bucket that holds 2 ms.
    let keys = ["will_latency_max_ns", "wills_due", "wills_received", "wills_undue"];
    assert_eq!(keys.map(|key| rows[0][key].clone()), [json!(2_000_895), json!(4), json!(1), json!(2)]);
    assert!(!told(false).report().terminal(100, false).contains("last wills"));
}
