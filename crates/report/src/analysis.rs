//! From runs to cells: what each cell's runs say together.

use crate::figures::{CellFigures, Observation, Sign, allows, compares, typical};
use crate::floor::{FLOOR, is_reference};
use crate::records::place;
use pubmark_model::cell::Cell;
use pubmark_model::figure::Figure;
use pubmark_model::flow::{ALL, FLOW, is_whole};
use pubmark_model::record::{FigureGroup, Note, Reason, RunRecord};
use pubmark_model::study::Study;
use pubmark_stats::Estimate;
use std::collections::HashMap;

/// State of a cell's results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Every figure that it has may be quoted: of each there are runs whose
    /// verdict allows it.
    Valid,
    /// Some figures may be quoted and others not; those are of runs that do not
    /// count for them.
    Partly,
    /// It has runs, but no figure of them is reliable.
    Invalid,
    /// No run of it could be made.
    Failed,
    /// It has no record.
    Missing,
    /// The study leaves it out.
    Skipped,
}

/// Adds up counts of the same reason, and returns the reasons with most runs first.
pub(crate) fn merged(counts: impl Iterator<Item = ReasonCount>) -> Vec<ReasonCount> {
    let mut all: Vec<ReasonCount> = Vec::new();
    for count in counts {
        match all.iter_mut().find(|other| other.reason == count.reason) {
            None => all.push(count),
            Some(other) => {
                other.runs += count.runs;
                other.figures.extend(&count.figures);
                tidy(&mut other.figures);
            }
        }
    }
    all.sort_by_key(|count| std::cmp::Reverse(count.runs));
    all
}

/// A reason against runs of a cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReasonCount {
    /// Which.
    pub reason: Reason,
    /// Number of runs with this reason.
    pub runs: usize,
    /// The figures that it touches in any of them.
    pub figures: Vec<FigureGroup>,
    /// Evidence of the first of these runs, as recorded.
    pub evidence: String,
}

/// A cell with what its runs say.
#[derive(Clone, Debug, PartialEq)]
pub struct CellResult {
    /// The cell.
    pub cell: Cell,
    /// True if its system is a reference, which is never ranked.
    pub is_reference: bool,
    /// True if its system broke the promise that the study ranks at: it is then treated as a reference.
    pub breaks_promise: bool,
    /// The system that is the floor of its agent's language, if it has one.
    pub floor: Option<String>,
    /// State of the results.
    pub status: Status,
    /// Records, the failed ones included.
    pub runs: usize,
    /// Runs of which every figure may be quoted.
    pub valid_runs: usize,
    /// Runs of which some figures may be quoted and others not.
    pub partly_runs: usize,
    /// Runs that were made and of which nothing may be quoted.
    pub invalid_runs: usize,
    /// Runs that could not be made.
    pub failed_runs: usize,
    /// Runs that the study plans and that have no record.
    pub missing_runs: usize,
    /// Runs that may be quoted for each of [`FigureGroup::ALL`].
    group_runs: Vec<usize>,
    /// Runs that may be compared for each of them.
    compared_runs: Vec<usize>,
    /// The reasons against figures of its runs, most frequent first: those
    /// against partly valid runs, then those against invalid ones.
    pub reasons: [Vec<ReasonCount>; 2],
    /// Notes on the counted runs that do not make figures unreliable: those of the first run that
    /// has any, as recorded.
    pub notes: Vec<Note>,
    /// Number of runs with notes.
    pub noted_runs: usize,
    /// Why the first failed run could not be made, as recorded.
    pub error: Option<String>,
    /// Its figures, each of the runs that may be quoted for it or, where there
    /// are none, of those that may not. Never of both.
    pub figures: CellFigures,
}

impl CellResult {
    /// True if it stands for a whole run: all flows together, or the only one.
    pub(crate) fn is_whole(&self) -> bool {
        is_whole(&self.cell.axes)
    }

    /// True if it stands for one flow: the only one, or one of several.
    pub(crate) fn is_one_flow(&self) -> bool {
        self.cell.axes.get(FLOW).is_none_or(|flow| flow != ALL)
    }

    /// Runs that may be quoted for figures of this group.
    pub fn runs_for(&self, group: FigureGroup) -> usize {
        of_group(&self.group_runs, group)
    }

    /// Returns the number of runs that may be compared by figures of this group.
    pub fn compared_for(&self, group: FigureGroup) -> usize {
        of_group(&self.compared_runs, group)
    }

    /// The figure, where it may be quoted.
    pub fn quotable(&self, column: Figure) -> Option<Estimate> {
        self.figures.quotable(column)
    }

    /// Returns all reasons against figures of its runs, each once, the most frequent first.
    pub fn all_reasons(&self) -> Vec<ReasonCount> {
        merged(self.reasons.iter().flatten().cloned())
    }
}

/// Returns the number of a group, of numbers in the order of [`FigureGroup::ALL`].
fn of_group(counts: &[usize], group: FigureGroup) -> usize {
    let place = FigureGroup::ALL.iter().position(|other| *other == group);
    place.and_then(|place| counts.get(place)).copied().unwrap_or_default()
}

/// Records by cell.
pub(crate) struct Analysis {
    /// In the study's order.
    pub cells: Vec<CellResult>,
    /// The cell of each record; none where the study measures no such cell.
    pub cells_of_runs: Vec<Option<usize>>,
}

/// Groups the records by cell and computes the figures of each.
pub(crate) fn analyse(cells: Vec<Cell>, study: &Study, runs: &[RunRecord]) -> Analysis {
    let measured = cells.iter().enumerate().filter(|(_, cell)| cell.skipped.is_none());
    let places: HashMap<String, usize> = measured.map(|(index, cell)| (place(&cell.axes), index)).collect();
    let cells_of_runs: Vec<Option<usize>> = runs.iter().map(|run| places.get(&place(&run.cell)).copied()).collect();
    let of_cells = cells_of_runs.iter().zip(runs).filter_map(|(cell, run)| Some(((*cell)?, run)));
    let runs_of = by_cell(cells.len(), of_cells);
    let mut results = Vec::with_capacity(cells.len());
    for (cell, runs) in cells.into_iter().zip(&runs_of) {
        results.push(result(cell, planned(study), runs));
    }
    relate_to_floor(&mut results);
    Analysis { cells: results, cells_of_runs }
}

/// Groups items by cell, in their order.
pub(crate) fn by_cell<T: Clone>(cells: usize, each: impl Iterator<Item = (usize, T)>) -> Vec<Vec<T>> {
    let mut all = vec![Vec::new(); cells];
    each.for_each(|(cell, one)| all[cell].push(one));
    all
}

/// The runs that a cell is to have at least.
fn planned(study: &Study) -> u32 {
    if study.until_decided() { 1 } else { study.repeats() }
}

fn result(cell: Cell, repeats: u32, runs: &[&RunRecord]) -> CellResult {
    let (failed, made): (Vec<&RunRecord>, Vec<&RunRecord>) = runs.iter().copied().partition(|run| run.error.is_some());
    let quotable = |group: &FigureGroup| made.iter().filter(|run| allows(run, *group)).count();
    let comparable = |group: &FigureGroup| made.iter().filter(|run| compares(run, *group)).count();
    let group_runs: Vec<usize> = FigureGroup::ALL.iter().map(quotable).collect();
    let status = if cell.skipped.is_some() {
        Status::Skipped
    } else if made.is_empty() {
        if failed.is_empty() { Status::Missing } else { Status::Failed }
    } else if group_runs.iter().all(|runs| *runs > 0) {
        Status::Valid
    } else if group_runs.iter().any(|runs| *runs > 0) {
        Status::Partly
    } else {
        Status::Invalid
    };
    let planned = match cell.skipped {
        None => repeats as usize,
        Some(_) => 0,
    };
    let (valid, others): (Vec<&RunRecord>, Vec<&RunRecord>) = made.iter().copied().partition(|run| run.verdict.valid);
    let says_anything = |run: &&RunRecord| FigureGroup::ALL.iter().any(|group| allows(run, *group));
    let (partly, invalid): (Vec<&RunRecord>, Vec<&RunRecord>) = others.into_iter().partition(says_anything);
    let counted = if status == Status::Invalid { &invalid } else { &[valid.as_slice(), &partly].concat() };
    let mut noted: Vec<&&RunRecord> = counted.iter().filter(|run| !run.verdict.notes.is_empty()).collect();
    noted.sort_by_key(|run| run.repeat);
    CellResult {
        noted_runs: noted.len(),
        notes: noted.first().map(|run| run.verdict.notes.clone()).unwrap_or_default(),
        figures: CellFigures::of(&made),
        status,
        runs: runs.len(),
        valid_runs: valid.len(),
        partly_runs: partly.len(),
        invalid_runs: invalid.len(),
        failed_runs: failed.len(),
        missing_runs: planned.saturating_sub(runs.len()),
        group_runs,
        compared_runs: FigureGroup::ALL.iter().map(comparable).collect(),
        reasons: [reasons(&partly), reasons(&invalid)],
        error: failed.first().and_then(|run| run.error.clone()),
        is_reference: is_reference(&cell.system),
        breaks_promise: false,
        floor: Some(cell.system.floor.clone()).filter(|floor| !floor.is_empty()),
        cell,
    }
}

fn reasons(runs: &[&RunRecord]) -> Vec<ReasonCount> {
    let mut counts: Vec<ReasonCount> = Vec::new();
    for run in runs {
        let findings = &run.verdict.reasons;
        for (index, finding) in findings.iter().enumerate() {
            let is_first = !findings[..index].iter().any(|other| other.reason == finding.reason);
            let place = counts.iter().position(|count| count.reason == finding.reason).unwrap_or_else(|| {
                let evidence = finding.evidence.clone();
                counts.push(ReasonCount { reason: finding.reason, runs: 0, figures: Vec::new(), evidence });
                counts.len() - 1
            });
            counts[place].runs += usize::from(is_first);
            counts[place].figures.extend(&finding.figures);
            tidy(&mut counts[place].figures);
        }
    }
    counts.sort_by_key(|count| std::cmp::Reverse(count.runs));
    counts
}

/// Each group once, in order.
fn tidy(figures: &mut Vec<FigureGroup>) {
    figures.sort();
    figures.dedup();
}

/// Figures that are given as multiples of the floor's.
const FLOORED: [Figure; 10] = [
    Figure::LATENCY_P50,
    Figure::LATENCY_P99,
    Figure::LATENCY_P999,
    Figure::LATENCY_MAX,
    Figure::INTENDED_P50,
    Figure::INTENDED_P99,
    Figure::SERVICE_P50,
    Figure::SERVICE_P99,
    Figure::DELIVERED,
    Figure::DELIVERED_BYTES,
];

/// Adds to each cell its figures as multiples of the floor's at the same
/// point: each run's of the floor's run in the same block. A floor that may not
/// be quoted is no floor.
fn relate_to_floor(cells: &mut [CellResult]) {
    for figure in FLOORED {
        let floors: HashMap<String, (Vec<Observation>, Sign)> = cells
            .iter()
            .filter(|result| result.cell.system.name == FLOOR && result.quotable(figure).is_some())
            .map(|result| {
                let readings = result.figures.each(figure).to_vec();
                (point_key(&result.cell), (readings, result.figures.sign(figure)))
            })
            .collect();
        for result in cells.iter_mut() {
            let Some((floor, of_floor)) = floors.get(&point_key(&result.cell)) else { continue };
            let is_floor = result.cell.system.name == FLOOR;
            let (value, sign) = match (result.figures.sign(figure), of_floor) {
                _ if is_floor => (Some(Estimate { value: 1.0, interval: None }), Sign::Equal),
                // Two bounds on the same side have no quotient.
                (Sign::AtLeast, Sign::AtLeast) => (None, Sign::Equal),
                (own, of_floor) => {
                    let sign = if *of_floor == Sign::AtLeast { Sign::AtMost } else { own };
                    (typical(figure, &within_blocks(result.figures.shown(figure), floor)), sign)
                }
            };
            result.figures.set_over_floor(figure, value, sign);
        }
    }
}

/// Each reading over the floor's of the same repeat, where both have one.
pub(crate) fn within_blocks(readings: &[Observation], floor: &[Observation]) -> Vec<Observation> {
    in_blocks(readings, floor).filter_map(|(reading, floor)| reading.over(floor)).collect()
}

/// Each reading with the floor's of the same repeat, where both have one.
pub(crate) fn in_blocks<'a>(
    readings: &'a [Observation],
    floor: &'a [Observation],
) -> impl Iterator<Item = (&'a Observation, &'a Observation)> {
    let of = |repeat: u32| floor.iter().find(move |reading| reading.repeat == repeat);
    readings.iter().filter_map(move |reading| Some((reading, of(reading.repeat)?)))
}

/// A cell's place on all axes but the system's, as a key.
pub(crate) fn point_key(cell: &Cell) -> String {
    let mut axes = cell.axes.clone();
    axes.shift_remove("system");
    place(&axes)
}
