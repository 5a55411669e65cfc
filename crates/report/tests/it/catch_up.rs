//! How late subscribers caught up: a row a cell, on every surface.

use crate::lab::{Lab, latency};
use pubmark_model::record::CatchUp;
use serde_json::json;

const MS: u64 = 1_000_000;

fn words(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A cell whose subscribers caught up, and one whose subscribers did not.
fn told(start: &str) -> Lab {
    let mut lab = Lab::new(&format!(
        "[workload]\nrate = 1000\nduration = \"10s\"\nqos = 1\n{start}[axes]\nsystem = [\"stream\"]\npayload = [64, 128]\n"
    ));
    for (label, caught_up_ns) in [("stream 64B", Some(2_250 * MS)), ("stream 128B", None)] {
        lab.run(label, 1, |run| {
            latency(run, &[(200_000, 7_000), (1_500 * MS, 3_000)]);
            run.window_ns = 10_000 * MS;
            (run.counts.sent, run.counts.expected, run.counts.delivered, run.counts.lost) = (10_000, 10_000, 9_993, 7);
            run.series.lag = vec![1_500, 2_000, 3_000, 40, 7];
            run.catch_up = Some(CatchUp { subscribed_ns: 2_000 * MS, caught_up_ns, messages: 3_000 });
        });
    }
    lab
}

#[test]
fn a_cell_with_late_subscribers_has_a_row() {
    let report = told("subscribers_start = \"2s\"\n").report();
    let text = report.terminal(80, false);
    let table = text.split("How late subscribers caught up\n").nth(1).unwrap_or_else(|| panic!("{text}"));
    let lines: Vec<String> = table.lines().take(4).map(words).collect();
    assert_eq!(lines[0], "system payload catch-up replayed/s largest lag lost duplicated", "{text}");
    assert_eq!(lines[2], "stream 64B 250 ms 12.0k 3.00k 7 0", "{text}");
    assert_eq!(lines[3], "stream 128B – – 3.00k 7 0", "{text}");
    assert!(words(table).contains("until no message waited that was due more than 10.0 ms ago"), "{text}");
    let rows = report.summary_json();
    let keys = ["catch_up_time_ns", "replay_per_s", "lag_max"];
    assert_eq!(keys.map(|key| rows[0][key].clone()), [json!(250 * MS), json!(12_000), json!(3_000)]);
    assert_eq!(keys.map(|key| rows[1][key].clone()), [json!(null), json!(null), json!(3_000)]);
}

#[test]
fn where_nobody_is_late_there_is_no_such_table() {
    let text = told("").report().terminal(80, false);
    assert!(!text.contains("caught up"), "{text}");
}
