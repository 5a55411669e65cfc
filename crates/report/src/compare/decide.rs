//! From two reports to what has changed.

use super::comparison::{CellChange, ChangeCounts, ChangeOutcome, Comparison, FigureChange};
use super::difference::differences;
use super::figure::HEADLINES;
use super::select::{AxisFilter, Selection, SelectionError};
use crate::analysis::{CellResult, Status};
use crate::figures::{ClockBlur, Observation};
use crate::records::place;
use crate::report::Report;
use crate::text::clean;
use crate::words::{FAILED, SKIPPED, UNRELIABLE};
use pubmark_model::ab::ArmsGoal;
use pubmark_model::figure::Figure;
use pubmark_model::workload::Rate;
use pubmark_stats::{Better, FALSE_ALARM, Interval, RunOrder, Runs, Scale, holm};
use serde_json::{Map, Value};
use std::collections::HashMap;

/// Longest name of a cell, characters.
const LABEL_CHARS: usize = 120;
/// Longest reason, characters.
const WHY_CHARS: usize = 200;

/// Compares all cells that both have, A being the baseline.
pub fn compare(a: &Report, b: &Report) -> Comparison {
    compared(a, b, &Selection::default())
}

/// Compares some cells, and decides gates.
///
/// # Errors
/// Where the selection names an axis or value that neither has.
pub fn compare_with(a: &Report, b: &Report, selection: &Selection) -> Result<Comparison, SelectionError> {
    selection.only.iter().try_for_each(|only| only.check(a, b))?;
    if let Some(across) = &selection.across {
        across.a.check(a, a)?;
        across.b.check(b, b)?;
    }
    Ok(compared(a, b, selection))
}

fn compared(a: &Report, b: &Report, selection: &Selection) -> Comparison {
    let chosen = |report: &'_ Report, side: Option<&AxisFilter>| -> Vec<usize> {
        let holds = |cell: &CellResult| selection.only.iter().chain(side).all(|only| only.holds(cell));
        let cells = report.cells().iter().enumerate();
        cells.filter(|(_, cell)| holds(cell)).map(|(index, _)| index).collect()
    };
    let across = selection.across.as_ref();
    let (in_a, in_b) = (chosen(a, across.map(|across| &across.a)), chosen(b, across.map(|across| &across.b)));
    let axes = |cell: &CellResult| -> Map<String, Value> {
        // Two arms differ in what they set as well.
        let arms = report_arms(a, b).filter(|_| across.is_some_and(|across| across.axis() == "part"));
        let mut axes = arms.map_or_else(|| cell.cell.axes.clone(), |arms| arms.place(&cell.cell.axes));
        axes.retain(|name, _| across.is_none_or(|across| across.axis() != name));
        axes
    };
    let key = |cell: &CellResult| place(&axes(cell));
    let label = |cell: &CellResult| clean(&pubmark_model::cell::label(&axes(cell)), LABEL_CHARS);
    let mut places: HashMap<String, &CellResult> =
        in_b.iter().map(|index| &b.cells()[*index]).map(|cell| (key(cell), cell)).collect();
    let (mut pairs, mut only_a) = (Vec::new(), Vec::new());
    for cell in in_a.iter().map(|index| &a.cells()[*index]) {
        match places.remove(&key(cell)) {
            Some(other) if cell.status == Status::Skipped && other.status == Status::Skipped => {}
            Some(other) => pairs.push((cell, other)),
            None if cell.status == Status::Skipped => {}
            None => only_a.push(label(cell)),
        }
    }
    let only_b = in_b.iter().map(|index| &b.cells()[*index]);
    let only_b = only_b.filter(|cell| cell.status != Status::Skipped && places.contains_key(&key(cell)));
    let gated: Vec<Figure> = selection.gates.changes.iter().map(|gate| gate.figure).collect();
    let how = How { order: order(a, b), same_latency: a.means_the_same_by_latency(b) };
    let mut comparison = Comparison {
        tally: ChangeCounts::default(),
        same: pairs.iter().map(|(a, b)| cell_change(a, b, &gated, how, label(a))).collect(),
        only_a,
        only_b: only_b.map(label).collect(),
        environment: differences(a, b, &pairs),
        order: how.order,
        gates: Vec::new(),
    };
    for family in [true, false] {
        let members = comparison.same.iter_mut().flat_map(|cell| {
            let unthrottled = cell.unthrottled;
            cell.changes.iter_mut().map(move |change| (change, unthrottled))
        });
        settle(members.filter(|(change, _)| change.gated == family).collect());
    }
    comparison.tally = tally(&comparison);
    comparison.gates = selection.gates.changes.iter().map(|gate| gate.result(&comparison)).collect();
    // Bounds are for B to keep.
    let bounds = selection.gates.bounds.iter().map(|bound| bound.over(b, |index| in_b.contains(&index)));
    comparison.gates.extend(bounds);
    comparison
}

/// Returns the arms of two reports, if both have the same.
fn report_arms<'a>(a: &'a Report, b: &Report) -> Option<&'a ArmsGoal> {
    a.study().ab.as_ref().filter(|_| b.study().ab.is_some())
}

/// Conditions of all comparisons of two reports.
#[derive(Clone, Copy)]
struct How {
    order: RunOrder,
    /// True if the headline latency has the same meaning in both.
    same_latency: bool,
}

/// Returns whether all runs of one report were made before all runs of the other.
fn order(a: &Report, b: &Report) -> RunOrder {
    let span = |report: &'_ Report| {
        let started = || report.runs().iter().map(|run| run.started.clone()).filter(|started| !started.is_empty());
        started().min().zip(started().max())
    };
    match (span(a), span(b)) {
        (Some(a), Some(b)) if a.1 < b.0 || b.1 < a.0 => RunOrder::Apart,
        _ => RunOrder::InTurns,
    }
}

fn tally(comparison: &Comparison) -> ChangeCounts {
    let mut tally = ChangeCounts::default();
    for change in comparison.same.iter().flat_map(|cell| &cell.changes) {
        *match change.outcome {
            ChangeOutcome::Worse => &mut tally.worse,
            ChangeOutcome::Better => &mut tally.better,
            ChangeOutcome::Differs => &mut tally.differ,
            ChangeOutcome::NoDifference => &mut tally.no_difference,
            ChangeOutcome::Undecided => &mut tally.undecided,
        } += 1;
    }
    tally
}

/// Adjusts the p of a family's comparisons, and says what each may be called.
fn settle(mut family: Vec<(&mut FigureChange, bool)>) {
    family.retain(|(change, _)| change.p.is_some());
    let p: Vec<f64> = family.iter().filter_map(|(change, _)| change.p).collect();
    let alpha = FALSE_ALARM / p.len().max(1) as f64;
    for (change, _) in &mut family {
        change.smallest = change.found.and_then(|found| found.smallest(alpha));
    }
    for ((change, unthrottled), p) in family.into_iter().zip(holm(&p)) {
        change.p = Some(p);
        let rises = change.a.zip(change.b).is_some_and(|(a, b)| b.value > a.value);
        let neutral = if change.scale() == Some(Scale::Ratio) { 1.0 } else { 0.0 };
        let is_by_clocks = change.may_be_clocks
            && change.interval_of_change().is_none_or(|Interval { lo, hi }| lo <= neutral && neutral <= hi);
        if is_by_clocks && p <= FALSE_ALARM {
            change.why = "the change is within what the clocks of the hosts may be wrong by".into();
        }
        change.outcome = match change.column.better(unthrottled) {
            _ if p > FALSE_ALARM || is_by_clocks => ChangeOutcome::NoDifference,
            None => ChangeOutcome::Differs,
            Some(Better::Higher) if rises => ChangeOutcome::Better,
            Some(Better::Lower) if !rises => ChangeOutcome::Better,
            Some(_) => ChangeOutcome::Worse,
        };
    }
}

fn cell_change(a: &CellResult, b: &CellResult, gated: &[Figure], how: How, label: String) -> CellChange {
    let mut columns: Vec<Figure> = HEADLINES.into();
    if !how.same_latency {
        columns.extend([Figure::INTENDED_P50, Figure::INTENDED_P99]);
    }
    for column in gated {
        if !columns.contains(column) {
            columns.push(*column);
        }
    }
    let unthrottled = a.cell.workload.rate == Rate::Max;
    // For a cell without any figure, this one shows that there is none.
    let leading = if unthrottled { Figure::DELIVERED } else { Figure::LATENCY_P50 };
    let changes = columns.into_iter().filter_map(|column| {
        let is_gated = gated.contains(&column);
        let mut change = figure_change(a, b, column, is_gated || column == leading, how)?;
        change.gated = is_gated;
        Some(change)
    });
    CellChange { label, unthrottled, changes: changes.collect(), axes: a.cell.axes.clone() }
}

/// Compares one figure, before p is adjusted and the outcome is settled. `None` if neither report
/// has the figure and no gate needs it.
fn figure_change(a: &CellResult, b: &CellResult, column: Figure, is_asked: bool, how: How) -> Option<FigureChange> {
    let (of_a, of_b) = (readings(a, column), readings(b, column));
    let is_measured = may_be_used(a, column) && may_be_used(b, column);
    let too_few = |cell: &CellResult| column.samples_min() > 1 && !readings(cell, Figure::LATENCY_P50).is_empty();
    if of_a.is_empty() && of_b.is_empty() && !(is_asked && (!is_measured || too_few(a) || too_few(b))) {
        return None;
    }
    let problem = |cell: &CellResult, readings: &[Observation]| match readings.len() {
        _ if !may_be_used(cell, column) => Some(unusable(cell)),
        0 if too_few(cell) => Some("no run has enough samples for it".into()),
        0 => Some("no run has it".into()),
        1 => Some("one reliable run, so its noise is not known".into()),
        _ => None,
    };
    let mut why = match (problem(a, of_a), problem(b, of_b)) {
        (Some(a), Some(b)) if a == b => format!("A and B: {a}"),
        (Some(a), Some(b)) => format!("A: {a}; B: {b}"),
        (Some(a), None) => format!("A: {a}"),
        (None, Some(b)) => format!("B: {b}"),
        (None, None) => String::new(),
    };
    let values = |readings: &[Observation]| readings.iter().map(|reading| reading.value).collect::<Vec<f64>>();
    let step = |readings: &[Observation]| readings.iter().map(|reading| reading.step).fold(0.0, f64::max);
    let (values_a, values_b) = (values(of_a), values(of_b));
    let (runs_a, runs_b) = (Runs { values: &values_a, step: step(of_a) }, Runs { values: &values_b, step: step(of_b) });
    let alone = |runs| pubmark_stats::change(runs, runs, how.order).map(|found| found.a);
    let means_the_same = how.same_latency || !is_headline(column);
    if !means_the_same && why.is_empty() {
        why = "latencies of pubmark 0.1 contain the generator delay: compare intended_latency_p50_ns".into();
    }
    let mut found = pubmark_stats::change(runs_a, runs_b, how.order).filter(|_| means_the_same);
    let (blur_a, blur_b) = (ClockBlur::of(of_a), ClockBlur::of(of_b));
    if let Some(found) = &mut found {
        let (scale, interval) = (found.scale, found.change.interval);
        found.change.interval = interval.map(|interval| blur_b.widen(blur_a, scale, interval));
    }
    if found.is_none() && why.is_empty() {
        why = "its values are not numbers".into();
    }
    let on = |scale: Scale| found.filter(|found| found.scale == scale).map(|found| found.change);
    Some(FigureChange {
        column,
        a: found.map(|found| found.a).or_else(|| alone(runs_a)),
        b: found.map(|found| found.b).or_else(|| alone(runs_b)),
        runs_a: of_a.len(),
        runs_b: of_b.len(),
        ratio: on(Scale::Ratio),
        difference: on(Scale::Difference),
        p: found.and_then(|found| found.p),
        smallest: None,
        found,
        may_be_clocks: !(blur_a.is_none() && blur_b.is_none()),
        gated: false,
        outcome: ChangeOutcome::Undecided,
        why: clean(&why, WHY_CHARS),
    })
}

/// True for figures of the headline latency, which had another meaning in records of schema 1.
fn is_headline(column: Figure) -> bool {
    let word = column.key();
    word.starts_with("latency_") || matches!(column, Figure::JITTER | Figure::LATE)
}

/// Returns the values of the runs that count for the figure.
fn readings(cell: &CellResult, column: Figure) -> &[Observation] {
    cell.figures.each(column)
}

/// True if the cell has runs that count for the figure.
fn may_be_used(cell: &CellResult, column: Figure) -> bool {
    cell.figures.may_be_quoted(column)
}

/// Why a cell has no figure that may be used.
fn unusable(cell: &CellResult) -> String {
    match cell.status {
        Status::Valid => String::new(),
        Status::Partly | Status::Invalid => {
            let reasons: Vec<String> = cell.all_reasons().iter().map(|count| count.reason.to_string()).collect();
            format!("{UNRELIABLE} in all runs ({})", reasons.join(", "))
        }
        Status::Failed => format!("all runs {FAILED} ({})", clean(cell.error.as_deref().unwrap_or_default(), 80)),
        Status::Missing => "no run yet".into(),
        Status::Skipped => format!("{SKIPPED} ({})", clean(cell.cell.skipped.as_deref().unwrap_or_default(), 80)),
    }
}
