//! From runs to cells: what each cell's runs say together.

use crate::figures::{Column, Figures};
use crate::points::FLOOR;
use crate::records::place;
use pubmark_model::cell::Cell;
use pubmark_model::record::{Note, Reason, RunRecord};
use pubmark_stats::{Estimate, HistogramError, Interval};
use std::collections::HashMap;

/// What can be said of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It has valid runs, and its figures are theirs.
    Valid,
    /// It has runs, none of them valid; its figures are of the invalid ones
    /// and may not be quoted.
    Invalid,
    /// No run of it could be made.
    Failed,
    /// It has no record.
    Missing,
    /// The study leaves it out.
    Skipped,
}

/// A reason against runs of a cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReasonCount {
    /// Which.
    pub reason: Reason,
    /// How many runs it speaks against.
    pub runs: usize,
    /// What was seen in the first of them, as recorded.
    pub evidence: String,
}

/// A cell with what its runs say.
#[derive(Clone, Debug, PartialEq)]
pub struct CellResult {
    /// The cell.
    pub cell: Cell,
    /// What can be said of it.
    pub status: Status,
    /// Records, the failed ones included.
    pub runs: usize,
    /// Runs that may be quoted.
    pub valid_runs: usize,
    /// Runs that were made and may not be quoted.
    pub invalid_runs: usize,
    /// Runs that could not be made.
    pub failed_runs: usize,
    /// Runs that the study plans and that have no record.
    pub missing_runs: usize,
    /// The reasons against its invalid runs, most frequent first.
    pub reasons: Vec<ReasonCount>,
    /// What its counted runs found that speaks not against them: of the first
    /// that has found something, as recorded.
    pub notes: Vec<Note>,
    /// How many of them have found something.
    pub noted_runs: usize,
    /// Why the first failed run could not be made, as recorded.
    pub error: Option<String>,
    /// Its figures: of the valid runs or, where there are none, of the invalid
    /// ones. Never of both.
    pub figures: Figures,
}

impl CellResult {
    /// Whether a run of this cell is among those that its figures are of.
    pub(crate) fn counts(&self, run: &RunRecord) -> bool {
        run.error.is_none() && run.verdict.valid == (self.status == Status::Valid)
    }

    /// The figure, where it may be quoted.
    pub fn quotable(&self, column: Column) -> Option<Estimate> {
        (self.status == Status::Valid).then(|| self.figures.get(column)).flatten()
    }
}

/// A run whose histogram cannot be read.
#[derive(Debug)]
pub(crate) struct BadHistogram {
    pub cell: String,
    pub source: HistogramError,
}

/// Records by cell.
pub(crate) struct Analysis {
    /// In the study's order.
    pub cells: Vec<CellResult>,
    /// The cell of each record; none where the study measures no such cell.
    pub cells_of_runs: Vec<Option<usize>>,
}

/// Groups the records by cell and computes the figures of each.
pub(crate) fn analyse(cells: Vec<Cell>, repeats: u32, seed: u64, runs: &[RunRecord]) -> Result<Analysis, BadHistogram> {
    let measured = cells.iter().enumerate().filter(|(_, cell)| cell.skipped.is_none());
    let places: HashMap<String, usize> = measured.map(|(index, cell)| (place(&cell.axes), index)).collect();
    let cells_of_runs: Vec<Option<usize>> = runs.iter().map(|run| places.get(&place(&run.cell)).copied()).collect();
    let mut runs_of: Vec<Vec<&RunRecord>> = vec![Vec::new(); cells.len()];
    for (run, cell) in runs.iter().zip(&cells_of_runs) {
        cell.iter().for_each(|cell| runs_of[*cell].push(run));
    }
    let mut results = Vec::with_capacity(cells.len());
    for (cell, runs) in cells.into_iter().zip(&runs_of) {
        let label = cell.label();
        let result = result(cell, repeats, seed, runs).map_err(|source| BadHistogram { cell: label, source })?;
        results.push(result);
    }
    relate_to_floor(&mut results);
    Ok(Analysis { cells: results, cells_of_runs })
}

fn result(cell: Cell, repeats: u32, seed: u64, runs: &[&RunRecord]) -> Result<CellResult, HistogramError> {
    let (failed, made): (Vec<&RunRecord>, Vec<&RunRecord>) = runs.iter().copied().partition(|run| run.error.is_some());
    let (valid, invalid): (Vec<&RunRecord>, Vec<&RunRecord>) = made.into_iter().partition(|run| run.verdict.valid);
    let status = if cell.skipped.is_some() {
        Status::Skipped
    } else if !valid.is_empty() {
        Status::Valid
    } else if !invalid.is_empty() {
        Status::Invalid
    } else if !failed.is_empty() {
        Status::Failed
    } else {
        Status::Missing
    };
    let planned = match cell.skipped {
        None => repeats as usize,
        Some(_) => 0,
    };
    let counted = if valid.is_empty() { &invalid } else { &valid };
    let noted: Vec<&&RunRecord> = counted.iter().filter(|run| !run.verdict.notes.is_empty()).collect();
    Ok(CellResult {
        noted_runs: noted.len(),
        notes: noted.first().map(|run| run.verdict.notes.clone()).unwrap_or_default(),
        figures: Figures::of(counted, seed)?,
        status,
        runs: runs.len(),
        valid_runs: valid.len(),
        invalid_runs: invalid.len(),
        failed_runs: failed.len(),
        missing_runs: planned.saturating_sub(runs.len()),
        reasons: reasons(&invalid),
        error: failed.first().and_then(|run| run.error.clone()),
        cell,
    })
}

fn reasons(invalid: &[&RunRecord]) -> Vec<ReasonCount> {
    let mut counts: Vec<ReasonCount> = Vec::new();
    for run in invalid {
        let findings = &run.verdict.reasons;
        for (index, finding) in findings.iter().enumerate() {
            if findings[..index].iter().any(|other| other.reason == finding.reason) {
                continue;
            }
            match counts.iter_mut().find(|c| c.reason == finding.reason) {
                Some(count) => count.runs += 1,
                None => {
                    counts.push(ReasonCount { reason: finding.reason, runs: 1, evidence: finding.evidence.clone() })
                }
            }
        }
    }
    counts.sort_by_key(|count| std::cmp::Reverse(count.runs));
    counts
}

/// Adds to each cell its figures as multiples of the floor's at the same
/// point. A floor that may not be quoted is no floor.
fn relate_to_floor(cells: &mut [CellResult]) {
    const FLOORED: [(Column, Column); 2] =
        [(Column::LatencyP50, Column::FloorLatency), (Column::Delivered, Column::FloorDelivered)];
    for (figure, multiple) in FLOORED {
        let floors: HashMap<String, Estimate> = cells
            .iter()
            .filter(|result| result.cell.system == FLOOR)
            .filter_map(|result| Some((point_key(&result.cell), result.quotable(figure)?)))
            .collect();
        for result in cells.iter_mut() {
            let floor = floors.get(&point_key(&result.cell));
            let own = result.figures.get(figure);
            let value = match (own, floor) {
                (Some(_), Some(_)) if result.cell.system == FLOOR => Some(Estimate { value: 1.0, interval: None }),
                (Some(own), Some(floor)) => ratio(own, *floor),
                _ => None,
            };
            result.figures.set(multiple, value);
        }
    }
}

/// A cell's place on all axes but the system's, as a key.
pub(crate) fn point_key(cell: &Cell) -> String {
    let mut axes = cell.axes.clone();
    axes.shift_remove("system");
    place(&axes)
}

/// A quotient, with the widest interval that the two allow.
fn ratio(figure: Estimate, floor: Estimate) -> Option<Estimate> {
    let positive = floor.value > 0.0;
    let interval = figure
        .interval
        .zip(floor.interval)
        .filter(|(_, floor)| floor.lo > 0.0)
        .map(|(figure, floor)| Interval { lo: figure.lo / floor.hi, hi: figure.hi / floor.lo });
    positive.then(|| Estimate { value: figure.value / floor.value, interval })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(value: f64, lo: f64, hi: f64) -> Estimate {
        Estimate { value, interval: Some(Interval { lo, hi }) }
    }

    #[test]
    fn a_ratio_has_the_widest_interval_that_its_parts_allow() {
        let found = ratio(estimate(30.0, 24.0, 36.0), estimate(10.0, 8.0, 12.0));
        assert_eq!(found, Some(estimate(3.0, 2.0, 4.5)));
        assert_eq!(ratio(estimate(1.0, 1.0, 1.0), estimate(0.0, 0.0, 0.0)), None);
        let open = ratio(estimate(1.0, 1.0, 1.0), estimate(2.0, 0.0, 4.0)).unwrap();
        assert_eq!((open.value, open.interval), (0.5, None));
    }
}
