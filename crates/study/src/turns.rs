//! Strategy that measures two arms in turns: repeats of a run of A and a run of B, one straight after the other, until
//! the records decide, or the time is over.

use crate::plan::StudyPlan;
use crate::strategy::{Decided, NextRun, Outlook, Strategy, StrategyError, Undecided};
use pubmark_model::ab::ArmsPoint;
use pubmark_model::cell::Cell;
use pubmark_model::plan::Place;
use pubmark_model::record::RunRecord;
use pubmark_model::units::Ns;
use pubmark_stats::a_goes_first;
use std::collections::VecDeque;

/// Maximum number of repeats of a point.
const BLOCKS_MAX: u32 = 512;
/// Number of consecutive failed repeats after which a point gets no more.
const FAILED_MAX: u32 = 3;

/// Analysis of the records of two arms.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TurnsLook {
    /// By point: number of repeats needed for the next analysis, 0 if it is decided.
    pub wanted: Vec<u32>,
    /// Gates that are decided.
    pub decided: Vec<Decided>,
    /// Descriptions of open gates.
    pub open: Vec<String>,
    /// Approximate number of further repeats that would decide all; `None` if unknown.
    pub blocks_more: Option<usize>,
}

/// Analyses the records of two arms: a function of the records alone.
pub type LookAtTurns<'a> = dyn FnMut(&[RunRecord]) -> TurnsLook + 'a;

/// Reason why no more repeats were made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnsEnd {
    /// All gates are decided.
    Told,
    /// The time is too short for the next analysis, or the user interrupted.
    Time,
    /// Run after run failed.
    Failing,
    /// The maximum number of repeats is reached.
    Most,
}

/// Measures two arms in turns.
pub struct Turns<'a> {
    plan: &'a StudyPlan,
    points: &'a [ArmsPoint],
    budget_ns: Ns,
    look: &'a mut LookAtTurns<'a>,
    begun_ns: Ns,
    records: Vec<RunRecord>,
    seen: TurnsLook,
    /// Remaining runs of this round.
    round: VecDeque<Turn>,
    /// Run that was asked for last.
    asked: Option<Turn>,
    /// Number of points in this round, and its duration, ns.
    round_points: usize,
    round_ns: Ns,
    /// By point: consecutive failed repeats.
    failed: Vec<u32>,
    block_failed: bool,
    /// Duration of a repeat of one point, ns; 0 before the first.
    block_ns: Ns,
    end: TurnsEnd,
}

/// A run of a repeat.
#[derive(Clone, Copy)]
struct Turn {
    point: usize,
    cell: usize,
    block: u32,
    is_last: bool,
}

impl<'a> Turns<'a> {
    /// Returns the strategy for a study with both arms, at these points. A repeat that would end after `budget_ns` does
    /// not start, except the first.
    pub fn new(
        plan: &'a StudyPlan,
        points: &'a [ArmsPoint],
        budget_ns: Ns,
        look: &'a mut LookAtTurns<'a>,
    ) -> Turns<'a> {
        Turns {
            plan,
            points,
            budget_ns,
            look,
            begun_ns: 0,
            records: Vec::new(),
            seen: TurnsLook::default(),
            round: VecDeque::new(),
            asked: None,
            round_points: 0,
            round_ns: 0,
            failed: vec![0; points.len()],
            block_failed: false,
            block_ns: 0,
            end: TurnsEnd::Time,
        }
    }

    /// Returns why no more repeats were made.
    pub fn end(&self) -> TurnsEnd {
        self.end
    }

    /// Returns the duration of a repeat of all points, ns.
    pub fn all_points_ns(&self) -> Ns {
        self.block_ns.saturating_mul(self.points.len() as u64)
    }

    /// Returns the number of repeats of a point that have begun.
    fn blocks(&self, point: usize) -> u32 {
        let cells = self.plan.cells();
        let ArmsPoint { a, b } = self.points[point];
        let (a, b) = (&cells[a].axes, &cells[b].axes);
        let mine = self.records.iter().filter(|record| record.cell == *a || record.cell == *b);
        mine.map(|record| record.repeat).max().unwrap_or_default()
    }

    fn is_open(&self, point: usize) -> bool {
        self.seen.wanted.get(point).is_some_and(|wanted| *wanted > 0)
    }

    /// Plans the next round: a repeat of each open point. Returns whether there is one.
    fn begin_round(&mut self, now_ns: Ns) -> bool {
        if self.round_points > 0 {
            let block_ns = self.round_ns / self.round_points as u64;
            self.block_ns = block_ns.max(self.block_ns * 3 / 4);
        }
        (self.round_points, self.round_ns) = (0, 0);
        self.seen = (self.look)(&self.records);
        let open: Vec<usize> = (0..self.points.len()).filter(|point| self.is_open(*point)).collect();
        let may_go_on = |point: &usize| self.failed[*point] < FAILED_MAX && self.blocks(*point) < BLOCKS_MAX;
        let left: Vec<usize> = open.iter().copied().filter(may_go_on).collect();
        if left.is_empty() {
            let gave_up = open.iter().any(|point| self.failed[*point] >= FAILED_MAX);
            self.end = match (open.is_empty(), gave_up) {
                (true, _) => TurnsEnd::Told,
                (false, true) => TurnsEnd::Failing,
                (false, false) => TurnsEnd::Most,
            };
            return false;
        }
        // A repeat is not made if the time is over before it leads to an analysis.
        let missing = |point: &usize| self.seen.wanted[*point].saturating_sub(self.blocks(*point)).max(1);
        let blocks = left.iter().map(missing).min().unwrap_or(1);
        let needed_ns = self.block_ns * u64::from(blocks) * left.len() as u64;
        if self.block_ns > 0 && now_ns.saturating_sub(self.begun_ns) + needed_ns > self.budget_ns {
            self.end = TurnsEnd::Time;
            return false;
        }
        self.round_points = left.len();
        for point in left {
            let (block, ArmsPoint { a, b }) = (self.blocks(point) + 1, self.points[point]);
            let order = if a_goes_first(self.plan.study().seed(), point, block) { [a, b] } else { [b, a] };
            let turns = [(order[0], false), (order[1], true)];
            self.round.extend(turns.map(|(cell, is_last)| Turn { point, cell, block, is_last }));
        }
        true
    }
}

impl Strategy for Turns<'_> {
    fn rows(&self) -> &[Cell] {
        self.plan.cells()
    }

    fn begin(&mut self, records: &[RunRecord], now_ns: Ns) -> Result<(), StrategyError> {
        (self.records, self.begun_ns) = (records.to_vec(), now_ns);
        Ok(())
    }

    fn next(&mut self, now_ns: Ns) -> Result<Option<NextRun>, StrategyError> {
        if self.round.is_empty() && !self.begin_round(now_ns) {
            return Ok(None);
        }
        self.asked = self.round.pop_front();
        Ok(self.asked.map(|turn| NextRun {
            row: turn.cell,
            cell: self.plan.cells()[turn.cell].clone(),
            place: Place { repeat: turn.block, position: self.records.len() as u64 },
            grown: None,
        }))
    }

    fn note(&mut self, record: &RunRecord, took_ns: Ns) -> Option<String> {
        self.records.push(record.clone());
        self.round_ns += took_ns;
        self.block_failed |= record.error.is_some();
        if let Some(turn) = self.asked.take().filter(|turn| turn.is_last) {
            let failed = std::mem::take(&mut self.block_failed);
            self.failed[turn.point] = if failed { self.failed[turn.point] + 1 } else { 0 };
        }
        None
    }

    fn outlook(&self) -> Option<Outlook> {
        let more_ns = self.seen.blocks_more.map(|blocks| self.all_points_ns().saturating_mul(blocks as u64));
        let open = self.seen.open.iter();
        let wanted = self.points.iter().enumerate().filter(|(point, _)| self.is_open(*point));
        Some(Outlook {
            asked: "gates",
            decided: self.seen.decided.clone(),
            open: open.map(|text| Undecided { text: text.clone(), known: String::new(), more_ns }).collect(),
            closed: 0,
            wanted: wanted.flat_map(|(_, point)| [point.a, point.b]).collect(),
            ends_ns: self.begun_ns.saturating_add(self.budget_ns),
        })
    }
}

#[cfg(test)]
mod tests;
