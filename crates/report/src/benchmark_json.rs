//! Results in the JSON formats of tools that track benchmarks over time: bencher.dev (Bencher Metric
//! Format) and github-action-benchmark (`customSmallerIsBetter`).

use crate::analysis::{CellResult, Status};
use crate::report::Report;
use pubmark_model::figure::Figure;
use pubmark_model::workload::Rate;
use pubmark_stats::Estimate;
use serde_json::{Map, Value, json};

/// Figures of a Bencher report.
const BENCHER: [Figure; 8] = [
    Figure::LATENCY_P50,
    Figure::LATENCY_P99,
    Figure::ACK_P99,
    Figure::DELIVERED,
    Figure::DELIVERED_RATIO,
    Figure::CPU_PER_MESSAGE,
    Figure::SERVER_CPU,
    Figure::SERVER_MEMORY,
];

/// Figures of a github-action-benchmark report, all of which are better if smaller.
const SMALLER: [Figure; 3] = [Figure::LATENCY_P50, Figure::LATENCY_P99, Figure::CPU_PER_MESSAGE];

impl Report {
    /// Returns Bencher Metric Format: cells by label, and in each the reliable figures with their
    /// 95 % intervals.
    pub fn bencher_json(&self) -> Value {
        let mut all = Map::new();
        for result in measured(self) {
            let measures = BENCHER.into_iter().filter_map(|figure| {
                let Estimate { value, interval } = result.figures.quotable(figure)?;
                let mut metric = json!({ "value": value });
                if let Some(interval) = interval {
                    (metric["lower_value"], metric["upper_value"]) = (interval.lo.into(), interval.hi.into());
                }
                Some((figure.key().replace('_', "-"), metric))
            });
            let measures: Map<String, Value> = measures.collect();
            if !measures.is_empty() {
                all.insert(result.cell.label(), measures.into());
            }
        }
        all.into()
    }

    /// Returns entries of github-action-benchmark for its tool `customSmallerIsBetter`. The delivered
    /// rate of a cell at `max` becomes the time per message, because one file has one direction.
    pub fn github_benchmark_json(&self) -> Value {
        let mut all = Vec::new();
        for result in measured(self) {
            let label = result.cell.label();
            let mut push = |name: &str, unit: &str, value: f64, half_width: Option<f64>| {
                let mut entry = json!({ "name": format!("{label} {name}"), "unit": unit, "value": value });
                if let Some(half_width) = half_width {
                    entry["range"] = format!("± {half_width:.3}").into();
                }
                all.push(entry);
            };
            let half = |estimate: Estimate| estimate.interval.map(|interval| (interval.hi - interval.lo) / 2.0);
            for figure in SMALLER {
                if let Some(found) = result.figures.quotable(figure) {
                    push(figure.short_name(), "ns", found.value, half(found));
                }
            }
            let rate = result.figures.quotable(Figure::DELIVERED).filter(|rate| rate.value > 0.0);
            if let Some(rate) = rate.filter(|_| result.cell.workload.rate == Rate::Max) {
                let each_ns = 1e9 / rate.value;
                push("time per message", "ns", each_ns, half(rate).map(|half| half / rate.value * each_ns));
            }
        }
        all.into()
    }
}

/// Returns the cells that were to be measured.
fn measured(report: &Report) -> impl Iterator<Item = &CellResult> {
    report.cells().iter().filter(|result| result.status != Status::Skipped)
}
