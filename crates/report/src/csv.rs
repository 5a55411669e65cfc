//! `summary.csv`: a row a cell.

use crate::capacity::{CapacityResult, standing};
use crate::headroom::CellHeadroom;
use crate::report::Report;
use crate::summary;
use crate::text::clean;
use pubmark_model::capacity::StepOutcome;
use pubmark_model::figure::Figure;
use pubmark_stats::Interval;
use serde_json::Value;
use std::collections::HashMap;

/// Longest axis value that is written, characters.
const VALUE_CHARS: usize = 1_000;

/// Columns of a study with an objective: the result of the search that the cell is a step of, the
/// cell's load, and the number of its counted steps in which the objective held. If a study asks
/// for capacities, the result is that of the cell without its load, because no step is a run of the
/// study.
const CAPACITY: [&str; 9] = [
    "capacity_estimate",
    "capacity_lo",
    "capacity_hi",
    "capacity_lower_bound",
    "capacity_limited_by",
    "capacity_standing",
    "capacity_load",
    "capacity_held",
    "capacity_steps",
];

/// Columns of a study that asks for its headroom.
const HEADROOM: [&str; 4] = ["headroom_times", "headroom_lo", "headroom_hi", "headroom_limited_by"];

/// The table as text: the axes, the runs, the verdict, then each figure with
/// the ends of its interval, and what a search for a capacity found. Plain numbers;
/// blank where there is none. Cells that the study skips have no row.
pub(crate) fn render(report: &Report) -> Result<String, csv::Error> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let axes: Vec<&str> = report.study().axis_names();
    let mut header: Vec<String> = axes.iter().map(|name| clean(name, VALUE_CHARS)).collect();
    header.extend(summary::HEADER.map(str::to_owned));
    for column in Figure::columns() {
        let word = column.key();
        header.extend([word.into(), format!("{word}_lo"), format!("{word}_hi")]);
    }
    let capacities = report.study().capacity.as_ref().map(|_| capacities(report));
    if capacities.is_some() {
        header.extend(CAPACITY.map(str::to_owned));
    }
    let headrooms = report.study().headroom().then(|| report.headrooms());
    if headrooms.is_some() {
        header.extend(HEADROOM.map(str::to_owned));
    }
    writer.write_record(&header)?;
    for row in summary::rows(report) {
        let result = row.result;
        let mut fields: Vec<String> = axes
            .iter()
            .map(|axis| match result.cell.axes.get(*axis) {
                Some(Value::String(text)) => clean(text, VALUE_CHARS),
                Some(value) => value.to_string(),
                None => String::new(),
            })
            .collect();
        fields.extend(row.facts().into_iter().map(|fact| match fact {
            Value::Null => String::new(),
            Value::String(text) => text,
            other => other.to_string(),
        }));
        for column in Figure::columns() {
            let estimate = result.figures.get(column);
            let interval: Option<Interval> = estimate.and_then(|e| e.interval);
            for number in [estimate.map(|e| e.value), interval.map(|i| i.lo), interval.map(|i| i.hi)] {
                fields.push(written(number));
            }
        }
        if let Some(capacities) = &capacities {
            fields.extend(capacities.get(&row.index).cloned().unwrap_or_default());
        }
        if let Some(headrooms) = &headrooms {
            let found = headrooms[row.index].as_ref();
            let numbers = found.map_or([None; 3], |found| [found.times, found.lo, found.hi]);
            fields.extend(numbers.map(written));
            fields.push(found.and_then(CellHeadroom::limited_by).unwrap_or_default().to_owned());
        }
        writer.write_record(&fields)?;
    }
    let bytes = writer.into_inner().map_err(|error| error.into_error())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// A plain number; blank where there is none.
fn written(number: Option<f64>) -> String {
    number.map_or_else(String::new, |number| number.to_string())
}

/// Returns the entries of the columns [`CAPACITY`], by the index of the cell; none for cells
/// without a step.
fn capacities(report: &Report) -> HashMap<usize, [String; CAPACITY.len()]> {
    let mut rows = HashMap::new();
    let all = report.capacities();
    for (index, result) in report.cells().iter().enumerate() {
        let Some(place) = report.place_of_search(&result.cell.axes) else { continue };
        let Some(found) = all.iter().find(|found| found.axes == place) else { continue };
        let [load, held, steps] = Default::default();
        let [estimate, lo, hi, bound, limit, standing] = answered(found);
        rows.insert(index, [estimate, lo, hi, bound, limit, standing, load, held, steps]);
    }
    for found in &all {
        let [estimate, lo, hi, bound, limit, standing] = answered(found);
        let mut cells = found.cells.clone();
        cells.sort_unstable();
        cells.dedup();
        for cell in cells {
            let steps = || found.climb.steps().iter().zip(&found.cells).filter(|(_, of)| **of == cell);
            let counted = || steps().filter(|(step, _)| step.counts);
            let row = [
                estimate.clone(),
                lo.clone(),
                hi.clone(),
                bound.clone(),
                limit.clone(),
                standing.clone(),
                written(steps().next().map(|(step, _)| found.climb.goal().over.amount(step.load))),
                counted().filter(|(step, _)| step.outcome == StepOutcome::Held).count().to_string(),
                counted().count().to_string(),
            ];
            rows.insert(cell, row);
        }
    }
    rows
}

/// Returns the entries of a capacity: estimate, ends, whether it is a lower bound, the limiting
/// factor, and the standing of the system.
fn answered(found: &CapacityResult) -> [String; 6] {
    let (answer, [estimate, lo, hi]) = (found.answer(), found.amounts());
    [
        written(estimate),
        written(lo),
        written(hi),
        answer.lower_bound.to_string(),
        answer.limited_by.map_or_else(String::new, |limit| limit.to_string()),
        standing(found).to_owned(),
    ]
}
