//! CPU and memory of each member of a cluster: a row for each member of each cell.

use crate::analysis::CellResult;
use crate::axes::{axis_name, axis_value, differs};
use crate::document::{Entry, Head, Mark, Note, Row, Table};
use crate::report::Report;
use crate::text::{bytes, number};
use pubmark_model::record::{MemberFigures, RunRecord};
use pubmark_stats::{median, median_whole};
use serde_json::Value;

/// The cells whose server has several members.
pub(crate) fn table(report: &Report) -> Option<Table> {
    let of_run = |run: &RunRecord| run.deployment.as_ref().map_or_else(Vec::new, |of| of.members.clone());
    let of_cell = |index: usize| -> Vec<MemberFigures> {
        let runs = report.cells_of_runs().iter().zip(report.runs()).filter(|(cell, _)| **cell == index);
        runs.flat_map(|(_, run)| of_run(run)).collect()
    };
    let cells = report.cells().iter().enumerate().map(|(index, cell)| (cell, of_cell(index)));
    let shown: Vec<(&CellResult, Vec<MemberFigures>)> = cells.filter(|(_, figures)| !figures.is_empty()).collect();
    let (first, _) = shown.first()?;
    let varies = |axis: &&String| differs(axis, shown.iter().map(|(result, _)| &result.cell.axes));
    let axes: Vec<&String> = first.cell.axes.keys().filter(varies).collect();
    let mut heads: Vec<Head> = axes.iter().map(|axis| Head::new(axis_name(axis), false, 0)).collect();
    heads.extend(["member", "CPU", "memory"].map(|name| Head::new(name, true, 0)));
    let rows = |(result, figures): &(&CellResult, Vec<MemberFigures>)| {
        let mut numbers: Vec<u32> = figures.iter().map(|member| member.number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let place: Vec<Entry> = axes
            .iter()
            .map(|axis| Entry::plain(axis_value(axis, result.cell.axes.get(axis.as_str()).unwrap_or(&Value::Null))))
            .collect();
        let row = |of: u32| {
            let of_runs = || figures.iter().filter(move |member| member.number == of);
            let cores: Vec<f64> = of_runs().map(|member| member.cpu_cores).collect();
            let memory = median_whole(of_runs().map(|member| member.rss_bytes_median));
            let own = [of.to_string(), median(&cores).map_or_else(String::new, number), bytes(memory as f64)];
            let own = own.map(Entry::plain);
            Row { entries: place.iter().cloned().chain(own).collect(), mark: Mark::Plain, bar: None }
        };
        numbers.into_iter().map(row).collect()
    };
    Some(Table {
        title: "Members".into(),
        groups: shown.iter().map(rows).collect(),
        heads,
        notes: vec![Note::on_rows("CPU: processors; memory: resident; of all runs, the median".into())],
        ends_in_prose: false,
        whole: "runs.jsonl",
        bars: None,
    })
}
