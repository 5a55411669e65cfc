//! Two arms that were measured in turns: what became of each gate, by the blocks.
//!
//! It is computed from the records alone, and so the same while they are made and
//! years later: which looks there are, and what each may spend of the error rate,
//! depends on the number of blocks.

use super::bound::BoundGate;
use super::figure::signed_percent;
use super::gate::{Gate, GateOutcome, GateResult, Threshold, is_of_flow};
use super::gates::{Gates, GatesError};
use crate::bound_check::BoundVerdict;
use crate::figures::{Observation, comparable, quoted, shown};
use crate::report::Report;
use crate::text::clean;
use crate::words::{BROKEN, FAILED, HELD, OPEN, UNRELIABLE};
use pubmark_model::ab::{ArmsGoal, ArmsPoint};
use pubmark_model::cell::{Cell, label};
use pubmark_model::figure::Figure;
use pubmark_model::flow::{ALL, FLOW};
use pubmark_model::record::RunRecord;
use pubmark_model::study::Study;
use pubmark_stats::{
    Estimate, PairedBound, PairedDecision, PairedOutcome, PairedReading, PairedTest, Scale, next_look,
};
use serde::Serialize;

/// Longest name and reason, characters.
const CHARS: usize = 160;

/// Result of two arms.
#[derive(Serialize, Clone, Debug, PartialEq)]
pub struct ArmsResult {
    /// Settings of A, in words.
    pub a: String,
    /// Settings of B.
    pub b: String,
    /// Blocks that were made, of the place with the most.
    pub blocks: u32,
    /// Results of the gates.
    pub gates: Vec<GateResult>,
    /// Each figure under a gate, at each place.
    pub comparisons: Vec<ArmsComparison>,
    /// For each place, how many blocks it has to have for the next look that may
    /// tell what is open there; 0 where nothing is.
    #[serde(skip)]
    pub wanted: Vec<u32>,
}

/// A figure under a gate, at one place.
#[derive(Serialize, Clone, Debug, PartialEq)]
pub struct ArmsComparison {
    /// The gate as typed.
    pub gate: String,
    /// The place in words; empty where there is one only.
    pub label: String,
    /// The figure; in JSON its column of `summary.csv`.
    pub column: Figure,
    /// Blocks of which both runs count for it.
    pub blocks: usize,
    /// Blocks among these in which other users of the machine disturbed a run: they can
    /// show that a gate is broken, not that it is held.
    pub disturbed: usize,
    /// Blocks of which one does not.
    pub left_out: usize,
    /// Why, in words: each reason with how many runs it speaks against.
    pub left_out_for: String,
    /// Statistics of the blocks; `None` without blocks.
    #[serde(flatten)]
    pub found: Option<PairedDecision>,
    /// Why nothing may be said; empty where something may.
    pub why: String,
    #[serde(skip)]
    point: usize,
}

impl ArmsResult {
    /// Returns the result of a study with two arms; `None` for another study.
    ///
    /// # Errors
    /// A gate of the study is invalid.
    pub fn of(study: &Study, cells: &[Cell], runs: &[&RunRecord]) -> Result<Option<ArmsResult>, GatesError> {
        let Some(goal) = &study.ab else { return Ok(None) };
        let gates = Gates::parse(&goal.fail_on, &goal.require, true)?.of_flows(&study.flows)?;
        let (cells, rows) = by_flow(study, cells);
        let runs: Vec<RunRecord> = runs.iter().flat_map(|run| (*run).clone().by_flow()).collect();
        let runs: Vec<&RunRecord> = runs.iter().collect();
        let points = goal.points(&cells);
        let mut result = Bench { goal, cells: &cells, runs: &runs, points: &points }.result(&gates);
        result.wanted = in_rows(&points, &rows, &result.wanted);
        Ok(Some(result))
    }

    /// The worst that became of any gate.
    pub fn gates_say(&self) -> GateOutcome {
        self.gates.iter().map(|gate| gate.outcome).max_by_key(|outcome| *outcome as u8).unwrap_or(GateOutcome::Passed)
    }

    /// Returns about how many more blocks are needed; `None` if that exceeds the maximum, or if it
    /// cannot be estimated yet.
    pub fn more(&self) -> Option<usize> {
        let open = self.comparisons.iter().filter(|one| one.is_open());
        open.map(|one| one.found.and_then(|found| found.more)).try_fold(0, |most: usize, more| Some(most.max(more?)))
    }

    /// Returns JSON, with the values that follow from it.
    pub fn json(&self) -> serde_json::Value {
        let mut all = serde_json::json!(self);
        all["outcome"] = serde_json::json!(self.gates_say());
        all["more_blocks"] = match self.gates_say() {
            GateOutcome::TooNoisy | GateOutcome::Undecided => serde_json::json!(self.more()),
            GateOutcome::Passed | GateOutcome::Failed => serde_json::Value::Null,
        };
        all
    }

    /// Returns one sentence per gate.
    pub fn sentences(&self) -> Vec<String> {
        let told = |gate: &GateResult| {
            let mine = || self.comparisons.iter().filter(|one| one.gate == gate.gate);
            let (word, what): (&str, Vec<String>) = match gate.outcome {
                GateOutcome::Passed => (HELD, mine().map(ArmsComparison::words).collect()),
                GateOutcome::Failed => (BROKEN, gate.failed.clone()),
                GateOutcome::TooNoisy => (OPEN, gate.too_noisy.clone()),
                GateOutcome::Undecided => (OPEN, gate.undecided.clone()),
            };
            let what = super::page::few(&what, 3);
            format!("`{}`: {word}{}", gate.gate, if what.is_empty() { ".".into() } else { format!(": {what}.") })
        };
        let arms = format!("A: {}; B: {}; {} blocks.", self.a, self.b, self.blocks);
        std::iter::once(arms).chain(self.gates.iter().map(told)).collect()
    }
}

/// Returns the cells of each flow, if the study has flows and its cells are not split by them yet, and for each the
/// index of the cell that it is of.
fn by_flow(study: &Study, cells: &[Cell]) -> (Vec<Cell>, Vec<usize>) {
    let names: Vec<&str> = study.flows.iter().map(|flow| flow.name.as_str()).chain([ALL]).collect();
    let of_cell = |(index, cell): (usize, &Cell)| -> Vec<(Cell, usize)> {
        if study.flows.is_empty() || cell.axes.contains_key(FLOW) {
            return vec![(cell.clone(), index)];
        }
        let of_flow = |name: &&str| {
            let mut cell = cell.clone();
            cell.axes.insert(FLOW.into(), (*name).into());
            (cell, index)
        };
        names.iter().map(of_flow).collect()
    };
    cells.iter().enumerate().flat_map(of_cell).unzip()
}

/// Returns how many blocks the cells have to have, from those that their flows have to have: the look that comes first.
fn in_rows(points: &[ArmsPoint], rows: &[usize], wanted: &[u32]) -> Vec<u32> {
    let mut firsts: Vec<(usize, u32)> = Vec::new();
    for (point, wanted) in points.iter().zip(wanted) {
        let row = rows[point.a];
        match firsts.iter_mut().find(|(known, _)| *known == row) {
            Some((_, first)) if *first == 0 || (*wanted > 0 && wanted < first) => *first = *wanted,
            Some(_) => {}
            None => firsts.push((row, *wanted)),
        }
    }
    firsts.into_iter().map(|(_, wanted)| wanted).collect()
}

impl ArmsComparison {
    fn is_open(&self) -> bool {
        self.found.is_none_or(|found| found.outcome == PairedOutcome::Open)
    }

    /// The change in per cent, where it is a quotient; else as an amount.
    pub(super) fn change(&self) -> Option<String> {
        let PairedDecision { change, scale, .. } = self.found?;
        Some(match scale {
            Scale::Ratio => signed_percent((change.value - 1.0) * 100.0),
            Scale::Difference => amount(self.column, change.value),
        })
    }

    /// Its interval.
    pub(super) fn interval(&self) -> Option<String> {
        let PairedDecision { change: Estimate { interval, .. }, scale, .. } = self.found?;
        let interval = interval?;
        let end = |value: f64| match scale {
            Scale::Ratio => signed_percent((value - 1.0) * 100.0),
            Scale::Difference => amount(self.column, value),
        };
        Some(format!("{} … {}", end(interval.lo), end(interval.hi)))
    }

    fn words(&self) -> String {
        let at = if self.label.is_empty() { String::new() } else { format!("{}: ", self.label) };
        let Some(found) = self.found else { return format!("{at}{}", self.why) };
        let values = format!("{} → {}", shown(self.column, found.a), shown(self.column, found.b));
        let interval = self.interval().map(|interval| format!(" ({interval})")).unwrap_or_default();
        let blocks = match self.disturbed {
            0 => format!("{} blocks", self.blocks),
            disturbed => format!("{} blocks, {disturbed} of them unreliable", self.blocks),
        };
        format!("{at}{} {values}, {}{interval}, {blocks}", self.column.short_name(), self.change().unwrap_or_default())
    }
}

fn amount(column: Figure, value: f64) -> String {
    match value {
        0.0 => shown(column, 0.0),
        value => format!("{}{}", super::figure::sign(value), shown(column, value.abs())),
    }
}

/// Inputs of the comparison.
struct Bench<'a> {
    goal: &'a ArmsGoal,
    cells: &'a [Cell],
    runs: &'a [&'a RunRecord],
    points: &'a [ArmsPoint],
}

impl Bench<'_> {
    fn result(&self, gates: &Gates) -> ArmsResult {
        let flows = gates.changes.iter().map(|gate| &gate.flow).chain(gates.bounds.iter().map(|bound| &bound.flow));
        let test = PairedTest::new(flows.map(|flow| self.of_flow(flow.as_deref()).count()).sum());
        let mut comparisons = Vec::new();
        let mut wanted = vec![0; self.points.len()];
        let mut results = Vec::new();
        for gate in &gates.changes {
            let mine: Vec<ArmsComparison> =
                self.of_flow(gate.flow.as_deref()).map(|point| self.comparison(&test, gate, point)).collect();
            let result = became(gate, &mine);
            if result.outcome != GateOutcome::Failed {
                for one in mine.iter().filter(|one| one.is_open()) {
                    self.want(&mut wanted, one.point, one.blocks);
                }
            }
            results.push(result);
            comparisons.extend(mine);
        }
        for bound in &gates.bounds {
            results.push(self.bound(&test, bound, &mut wanted));
        }
        let words = |of: fn(&ArmsPoint) -> usize| {
            let first = self.points.first().map(|point| &self.cells[of(point)].axes);
            first.map(|axes| clean(&self.goal.words(axes), CHARS)).unwrap_or_default()
        };
        ArmsResult {
            a: words(|point| point.a),
            b: words(|point| point.b),
            blocks: (0..self.points.len()).map(|point| self.begun(point)).max().unwrap_or_default(),
            gates: results,
            comparisons,
            wanted,
        }
    }

    /// The points of the flow that a gate names, or all of them.
    fn of_flow(&self, flow: Option<&str>) -> impl Iterator<Item = usize> {
        let is_its = move |point: &usize| is_of_flow(flow, &self.cells[self.points[*point].a].axes);
        (0..self.points.len()).filter(is_its)
    }

    /// The runs of a cell, by their blocks.
    fn of(&self, cell: usize) -> Vec<&RunRecord> {
        let axes = &self.cells[cell].axes;
        let mut mine: Vec<&RunRecord> = self.runs.iter().copied().filter(|run| run.cell == *axes).collect();
        mine.sort_by_key(|run| run.repeat);
        mine
    }

    fn begun(&self, point: usize) -> u32 {
        let ArmsPoint { a, b } = self.points[point];
        self.of(a).into_iter().chain(self.of(b)).map(|run| run.repeat).max().unwrap_or_default()
    }

    /// Blocks up to the next look of what has so many that count.
    fn want(&self, wanted: &mut [u32], point: usize, blocks: usize) {
        let missing = next_look(blocks).map_or(0, |next| (next - blocks) as u32);
        let all = if missing == 0 { 0 } else { self.begun(point) + missing };
        // The look that comes first.
        wanted[point] = if wanted[point] == 0 { all } else { wanted[point].min(all) };
    }

    /// Returns the place of a point in words.
    fn place(&self, point: usize) -> String {
        let axes = &self.cells[self.points[point].a].axes;
        let here = label(&self.goal.place(axes));
        if self.points.len() > 1 { clean(&here, CHARS) } else { String::new() }
    }

    fn comparison(&self, test: &PairedTest, gate: &Gate, point: usize) -> ArmsComparison {
        let ArmsPoint { a, b } = self.points[point];
        let (runs_a, runs_b) = (self.of(a), self.of(b));
        let pairs = |reading: fn(Figure, &RunRecord) -> Option<Observation>| -> Vec<PairedReading> {
            let pair = |run: &&RunRecord| {
                let other = runs_b.iter().find(|other| other.repeat == run.repeat)?;
                let (one, other) = (reading(gate.figure, run)?, reading(gate.figure, other)?);
                Some(PairedReading { a: one.value, b: other.value, step_a: one.step, step_b: other.step })
            };
            runs_a.iter().filter_map(pair).collect()
        };
        let (readings, quiet) = (pairs(comparable), pairs(quoted));
        let (by, relative) = match gate.threshold {
            Threshold::Percent(percent) => (percent / 100.0, true),
            Threshold::Amount(amount) => (amount, false),
        };
        let bound = PairedBound { rise: gate.rise, by, relative };
        let mut found = test.decide(&readings, bound);
        // A disturbance makes two arms more alike: it may hide a change, and makes none.
        if quiet.len() < readings.len() && found.is_some_and(|found| found.outcome != PairedOutcome::Beyond) {
            let held = test.decide(&quiet, bound).filter(|found| found.outcome == PairedOutcome::Within);
            found = held.or(found.map(|found| PairedDecision { outcome: PairedOutcome::Open, ..found }));
        }
        let left_out = (self.begun(point) as usize).saturating_sub(readings.len());
        ArmsComparison {
            gate: gate.text.clone(),
            label: self.place(point),
            column: gate.figure,
            blocks: readings.len(),
            disturbed: readings.len() - quiet.len(),
            left_out,
            left_out_for: against(gate.figure, &[runs_a.as_slice(), &runs_b].concat()),
            why: if found.is_some() { String::new() } else { why(gate.figure, &[runs_a, runs_b].concat()) },
            found,
            point,
        }
    }

    /// A bound that B has to keep.
    fn bound(&self, test: &PairedTest, bound: &BoundGate, wanted: &mut [u32]) -> GateResult {
        let mut cells = Vec::new();
        let mut open = Vec::new();
        for index in self.of_flow(bound.flow.as_deref()) {
            let runs = self.of(self.points[index].b);
            let (verdict, _) = bound.of(&runs).at_looks(test);
            if matches!(verdict, BoundVerdict::Open(_) | BoundVerdict::Unknown(_)) {
                open.push((index, runs.len()));
            }
            let place = self.place(index);
            cells.push((if place.is_empty() { "B".into() } else { format!("B, {place}") }, verdict));
        }
        let result = bound.result(cells.into_iter());
        if result.outcome != GateOutcome::Failed {
            open.into_iter().for_each(|(index, blocks)| self.want(wanted, index, blocks));
        }
        result
    }
}

/// Returns the result of a gate from the results of its figures.
fn became(gate: &Gate, all: &[ArmsComparison]) -> GateResult {
    let mut result = GateResult::new(&gate.text);
    for one in all {
        result.comparisons += 1;
        match one.found.map(|found| found.outcome) {
            Some(PairedOutcome::Within) => {}
            Some(PairedOutcome::Beyond) => result.failed.push(one.words()),
            Some(PairedOutcome::Open) => result.too_noisy.push(one.words()),
            None => result.undecided.push(one.words()),
        }
    }
    result.settled()
}

/// Returns the reasons against runs that do not count for a figure, the most frequent first.
fn against(column: Figure, runs: &[&RunRecord]) -> String {
    let mut counts: Vec<(String, usize)> = Vec::new();
    let mut count = |reason: String| match counts.iter_mut().find(|(known, _)| *known == reason) {
        Some((_, runs)) => *runs += 1,
        None => counts.push((reason, 1)),
    };
    for run in runs.iter().filter(|run| comparable(column, run).is_none()) {
        let findings = run.verdict.reasons.iter().filter(|finding| finding.figures.contains(&column.group()));
        let mut reasons: Vec<String> = findings.map(|finding| finding.reason.to_string()).collect();
        reasons.dedup();
        match (run.error.is_some(), reasons.is_empty()) {
            (true, _) => count(FAILED.into()),
            (false, true) => count("the figure is missing".into()),
            (false, false) => reasons.into_iter().for_each(&mut count),
        }
    }
    counts.sort_by_key(|(_, runs)| std::cmp::Reverse(*runs));
    counts.into_iter().map(|(reason, runs)| format!("{reason} {runs}")).collect::<Vec<_>>().join(", ")
}

/// Why no block has both figures.
fn why(column: Figure, runs: &[&RunRecord]) -> String {
    let made: Vec<&&RunRecord> = runs.iter().filter(|run| run.error.is_none()).collect();
    let reasons = made.iter().flat_map(|run| &run.verdict.reasons).map(|finding| finding.reason.to_string());
    let mut reasons: Vec<String> = reasons.collect();
    reasons.sort();
    reasons.dedup();
    match (runs.iter().find_map(|run| run.error.as_ref()), made.is_empty(), reasons.is_empty()) {
        (Some(error), true, _) => clean(&format!("all runs {FAILED} ({error})"), CHARS),
        (_, true, _) => "no run yet".into(),
        (_, _, false) => format!("{UNRELIABLE} in every block ({})", reasons.join(", ")),
        _ => format!("no run has {}, or none has enough messages for it", column.short_name()),
    }
}

impl Report {
    /// Returns the result of the arms, if the study has arms and this version understands its
    /// gates.
    pub fn arms(&self) -> Option<ArmsResult> {
        self.study().ab.as_ref()?;
        let cells: Vec<Cell> = self.cells().iter().map(|result| result.cell.clone()).collect();
        let runs: Vec<&RunRecord> = self.runs().iter().collect();
        ArmsResult::of(self.study(), &cells, &runs).ok().flatten()
    }
}
