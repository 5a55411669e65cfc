//! Strategy that measures a study until its questions are decided or its time is over.
//!
//! The coordinator does not evaluate the questions itself: it calls [`LookAtQuestions`], which returns the cells that
//! need further runs.

mod round;
mod walk;

use crate::plan::StudyPlan;
use crate::strategy::{Decided, NextRun, Outlook, Strategy, StrategyError, Undecided};
use pubmark_model::cell::Cell;
use pubmark_model::plan::Place;
use pubmark_model::record::{FigureGroup, Reason, RunRecord};
use pubmark_model::units::Ns;
use pubmark_stats::{REPEATS_MORE_MAX, Random, look_after};
use round::{Candidate, round};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::error::Error;

/// Maximum number of times that runs that do not count for the questions are made again within their repeat.
const AGAIN_MAX: u32 = 2;

/// Repeats of a point in which the cells beside the wanted ones are measured: fewer would give no interval, and more
/// would take time from the questions.
const BESIDE_BLOCKS: u32 = 3;

/// Number of consecutive runs that did not count after which a cell is given up.
const UNCOUNTED_MAX: u32 = 8;

/// Maximum number of retries of cells given up for the machine's noise, made when nothing else is left to measure: the
/// machine may be quiet by then.
const REVIVALS_MAX: usize = 3;

/// A question that further runs may decide.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenQuestion {
    /// Text of the question.
    pub text: String,
    /// Cells that it needs, as indices into the plan's.
    pub cells: Vec<usize>,
    /// Figure groups in which a run must be quotable.
    pub groups: Vec<FigureGroup>,
    /// True if cells of one point are compared with each other, so that one alone is not enough.
    pub compares: bool,
    /// Approximate number of further repeats that would decide it; `None` if unknown.
    pub blocks_more: Option<u32>,
}

/// State of a study's questions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QuestionsSeen {
    /// Questions that are decided.
    pub decided: Vec<Decided>,
    /// Number of questions that no further run decides.
    pub closed: usize,
    /// Questions that are open.
    pub open: Vec<OpenQuestion>,
    /// By cell of the plan: the cells that are shown beside it, repeat by repeat, and that no question needs.
    pub beside: Vec<Vec<usize>>,
}

/// Returns the state of the questions, given one record for each cell and repeat: a function of the records alone.
pub type LookAtQuestions<'a> = dyn FnMut(&[RunRecord]) -> Result<QuestionsSeen, Box<dyn Error + Send + Sync>> + 'a;

/// Reason why no further runs were made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BudgetEnd {
    /// Nothing is left that runs could decide.
    Decided,
    /// No further run fits into the time, or the user interrupted.
    Time,
}

/// Progress of a study.
struct Course<'a> {
    cells: &'a [Cell],
    points: Vec<Vec<usize>>,
    point_of: Vec<usize>,
    /// By point: repeats begun.
    blocks: Vec<u32>,
    /// By point: true if one of its runs did not count, so that its pairs have fewer repeats than it has.
    lags: Vec<bool>,
    /// By cell: consecutive runs that did not count.
    uncounted: Vec<u32>,
    /// By cell: true if it was given up, and no run of it has counted since.
    given_up: Vec<bool>,
    /// By cell: true if the machine was noisy in the last run that did not count.
    noisy: Vec<bool>,
    revivals: usize,
    /// By cell: duration of its last run.
    took_ns: Vec<Option<Ns>>,
    cost_ns: Vec<Ns>,
    records: Vec<RunRecord>,
    /// Number of records on the disk, including runs made again.
    position: u64,
}

impl<'a> Course<'a> {
    fn new(plan: &'a StudyPlan, cost: &dyn Fn(&Cell) -> Ns) -> Course<'a> {
        let cells = plan.cells();
        let points = walk::walk(cells, plan.study().seed());
        let mut point_of = vec![usize::MAX; cells.len()];
        for (point, members) in points.iter().enumerate() {
            members.iter().for_each(|cell| point_of[*cell] = point);
        }
        Course {
            cells,
            blocks: vec![0; points.len()],
            lags: vec![false; points.len()],
            uncounted: vec![0; cells.len()],
            given_up: vec![false; cells.len()],
            noisy: vec![false; cells.len()],
            revivals: 0,
            took_ns: vec![None; cells.len()],
            cost_ns: cells.iter().map(cost).collect(),
            records: Vec::new(),
            position: 0,
            points,
            point_of,
        }
    }

    /// Takes in the records of an earlier call.
    fn take_in(&mut self, before: &[RunRecord]) {
        self.position = before.iter().map(|record| record.position + 1).max().unwrap_or(0);
        for record in before {
            let Some(cell) = self.cells.iter().position(|cell| cell.axes == record.cell) else { continue };
            if let Some(point) = self.blocks.get_mut(self.point_of[cell]) {
                *point = (*point).max(record.repeat);
                self.lags[self.point_of[cell]] |= !record.verdict.valid;
            }
            self.keep(record);
        }
    }

    /// Keeps the last of several records of one cell and repeat, as every report does.
    fn keep(&mut self, record: &RunRecord) {
        let mut record = record.clone();
        // No question uses these, and they are most of a record.
        record.histograms = Default::default();
        record.series = Default::default();
        self.records.retain(|other| other.repeat != record.repeat || other.cell != record.cell);
        self.records.push(record);
    }

    /// Allows the cells given up for the machine's noise once more. Returns whether there are any.
    fn revive(&mut self) -> bool {
        let noisy: Vec<usize> =
            (0..self.cells.len()).filter(|cell| self.uncounted[*cell] >= UNCOUNTED_MAX && self.noisy[*cell]).collect();
        if noisy.is_empty() || self.revivals == REVIVALS_MAX {
            return false;
        }
        self.revivals += 1;
        noisy.into_iter().for_each(|cell| self.uncounted[cell] = 0);
        true
    }

    /// Notes the end of a run of a cell that a question needs.
    fn note(&mut self, cell: usize, record: &RunRecord, does_count: bool) {
        self.uncounted[cell] = if does_count { 0 } else { self.uncounted[cell] + 1 };
        self.given_up[cell] = !does_count && (self.given_up[cell] || self.uncounted[cell] >= UNCOUNTED_MAX);
        self.noisy[cell] = record.verdict.reasons.iter().any(|finding| finding.reason == Reason::NoisyMachine);
    }

    /// Returns the expected duration of a run, ns.
    fn run_ns(&self, cell: usize) -> Ns {
        if let Some(took_ns) = self.took_ns[cell] {
            return took_ns;
        }
        let known = || (0..self.cells.len()).filter_map(|cell| Some((self.cost_ns[cell], self.took_ns[cell]?)));
        let (planned, took) = known().fold((0, 0), |(planned, took), (cost, ns)| (planned + cost, took + ns));
        match planned {
            0 => self.cost_ns[cell],
            planned => (self.cost_ns[cell] as f64 * took as f64 / planned as f64) as Ns,
        }
    }

    /// Returns approximately how much longer a question takes, ns.
    fn more_ns(&self, question: &OpenQuestion) -> Option<Ns> {
        let block_ns: Ns = question.cells.iter().map(|cell| self.run_ns(*cell)).sum();
        question.blocks_more.map(|blocks| block_ns.saturating_mul(u64::from(blocks)))
    }

    /// Returns the cells that open questions need and that can be measured, by point.
    fn wanted(&self, seen: &QuestionsSeen) -> BTreeMap<usize, BTreeSet<usize>> {
        let mut wanted: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
        for question in &seen.open {
            let mut of_question: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
            for cell in question.cells.iter().copied().filter(|cell| self.uncounted[*cell] < UNCOUNTED_MAX) {
                of_question.entry(self.point_of[cell]).or_default().insert(cell);
            }
            let useful = |(point, cells): &(usize, BTreeSet<usize>)| {
                let has_room = self.blocks.get(*point).is_some_and(|blocks| *blocks < REPEATS_MORE_MAX);
                has_room && (cells.len() > 1 || !question.compares)
            };
            for (point, cells) in of_question.into_iter().filter(useful) {
                wanted.entry(point).or_default().extend(cells);
            }
        }
        wanted
    }

    /// Returns the points in the order of the walk, with their costs and repeats.
    fn candidates(&self, wanted: &BTreeMap<usize, BTreeSet<usize>>, seen: &QuestionsSeen) -> Vec<Candidate> {
        let of = |(point, cells): (&usize, &BTreeSet<usize>)| {
            let mut more: Option<u32> = None;
            let questions = seen.open.iter().filter(|question| question.cells.iter().any(|cell| cells.contains(cell)));
            // The question that needs the fewest repeats sets the number.
            for blocks in questions.filter_map(|question| question.blocks_more) {
                more = Some(more.map_or(blocks, |known| known.min(blocks)));
            }
            let block = self.block(*point, cells, seen);
            let cost_ns = block.iter().map(|cell| self.run_ns(*cell)).sum();
            Candidate { point: *point, cost_ns, blocks: self.blocks[*point], more }
        };
        wanted.iter().map(of).collect()
    }

    /// Returns the cells of a point's next repeat: all in the first one, the wanted ones in the others. The first
    /// [`BESIDE_BLOCKS`] repeats also have the cells shown beside these, of any point, unless they have a run of it
    /// already.
    fn block(&self, point: usize, wanted: &BTreeSet<usize>, seen: &QuestionsSeen) -> Vec<usize> {
        let repeat = self.blocks[point] + 1;
        let mut block: BTreeSet<usize> = match repeat {
            1 => self.points[point].iter().copied().collect(),
            _ => wanted.clone(),
        };
        if repeat <= BESIDE_BLOCKS {
            let beside: Vec<usize> =
                block.iter().filter_map(|cell| seen.beside.get(*cell)).flatten().copied().collect();
            block.extend(beside.into_iter().filter(|cell| !self.is_made(*cell, repeat)));
        }
        block.into_iter().collect()
    }

    fn is_made(&self, cell: usize, repeat: u32) -> bool {
        self.records.iter().any(|record| record.repeat == repeat && record.cell == self.cells[cell].axes)
    }
}

/// Returns whether a run may be compared by all figures that questions need of its cell.
fn counts(record: &RunRecord, groups: &BTreeSet<FigureGroup>) -> bool {
    record.error.is_none() && groups.iter().all(|group| record.verdict.compares(*group))
}

/// Makes repeats until each question is decided or the time is over.
pub struct Budget<'a> {
    course: Course<'a>,
    budget_ns: Ns,
    ends_ns: Ns,
    look: &'a mut LookAtQuestions<'a>,
    seen: QuestionsSeen,
    /// True if the records must be evaluated before the next round.
    is_due: bool,
    wanted: BTreeMap<usize, BTreeSet<usize>>,
    random: Random,
    /// Remaining points of this round; `made` counts the runs made in it.
    round: VecDeque<Candidate>,
    made: usize,
    block: Option<Block>,
    /// Cell of the run that was asked for last.
    asked: Option<usize>,
    end: BudgetEnd,
}

/// The repeat of a point that is being made.
struct Block {
    point: usize,
    repeat: u32,
    /// Figures that questions need of any of its cells.
    groups: BTreeSet<FigureGroup>,
    /// Cells that still need a run.
    left: VecDeque<usize>,
    /// Cells whose run did not count.
    again: Vec<usize>,
    /// Number of times that such runs may still be made again.
    tries: u32,
}

impl<'a> Budget<'a> {
    /// Returns the strategy for a plan with this much time. `cost` estimates a run of a cell from the plan, ns.
    pub fn new(
        plan: &'a StudyPlan,
        budget_ns: Ns,
        cost: &dyn Fn(&Cell) -> Ns,
        look: &'a mut LookAtQuestions<'a>,
    ) -> Budget<'a> {
        Budget {
            course: Course::new(plan, cost),
            budget_ns,
            ends_ns: budget_ns,
            look,
            seen: QuestionsSeen::default(),
            is_due: true,
            wanted: BTreeMap::new(),
            random: Random(plan.study().seed()),
            round: VecDeque::new(),
            made: 0,
            block: None,
            asked: None,
            end: BudgetEnd::Time,
        }
    }

    /// Returns why no further runs were made.
    pub fn end(&self) -> BudgetEnd {
        self.end
    }

    /// Returns the indices of cells that were given up because too many consecutive runs did not count.
    pub fn given_up(&self) -> Vec<usize> {
        (0..self.course.cells.len()).filter(|cell| self.course.given_up[*cell]).collect()
    }

    /// Returns the duration of a run of each cell, ns: as measured, or by the plan if it has no run.
    pub fn run_ns(&self) -> Vec<Ns> {
        (0..self.course.cells.len()).map(|cell| self.course.run_ns(cell)).collect()
    }

    /// Returns the figures that open questions need of these cells.
    fn groups_of(&self, cells: &[usize]) -> BTreeSet<FigureGroup> {
        let open = self.seen.open.iter().filter(|question| cells.iter().any(|cell| question.cells.contains(cell)));
        open.flat_map(|question| question.groups.iter().copied()).collect()
    }

    /// Evaluates the records if that is due, and plans a round. Returns whether there is one.
    fn begin_round(&mut self, now_ns: Ns) -> Result<bool, StrategyError> {
        if self.is_due {
            self.seen = (self.look)(&self.course.records).map_err(StrategyError::Look)?;
        }
        self.wanted = self.course.wanted(&self.seen);
        while self.wanted.is_empty() {
            if !self.course.revive() {
                self.end = BudgetEnd::Decided;
                return Ok(false);
            }
            self.wanted = self.course.wanted(&self.seen);
        }
        let candidates = self.course.candidates(&self.wanted, &self.seen);
        self.round = round(&candidates, self.ends_ns.saturating_sub(now_ns), &mut self.random).into();
        (self.made, self.is_due) = (0, false);
        Ok(true)
    }

    fn begin_block(&mut self, candidate: Candidate) {
        let point = candidate.point;
        let mut cells = self.course.block(point, &self.wanted[&point], &self.seen);
        self.random.shuffle(&mut cells);
        self.block = Some(Block {
            point,
            repeat: self.course.blocks[point] + 1,
            groups: self.groups_of(&cells),
            left: cells.into(),
            again: Vec::new(),
            tries: AGAIN_MAX,
        });
    }

    /// Returns the next cell of the current repeat that fits into the time; `None` if the repeat is over.
    fn next_of_block(&mut self, now_ns: Ns) -> Option<(usize, u32)> {
        let block = self.block.as_mut()?;
        loop {
            while let Some(cell) = block.left.pop_front() {
                let is_given_up = self.course.uncounted[cell] >= UNCOUNTED_MAX;
                if !is_given_up && now_ns + self.course.run_ns(cell) <= self.ends_ns {
                    return Some((cell, block.repeat));
                }
            }
            if block.again.is_empty() || block.tries == 0 {
                break;
            }
            block.tries -= 1;
            block.left = std::mem::take(&mut block.again).into();
        }
        let point = block.point;
        let blocks = self.course.blocks[point] as usize;
        self.is_due |= self.course.lags[point] || blocks < 2 || look_after(blocks - 1) == blocks;
        self.block = None;
        None
    }
}

impl Strategy for Budget<'_> {
    fn rows(&self) -> &[Cell] {
        self.course.cells
    }

    fn begin(&mut self, records: &[RunRecord], now_ns: Ns) -> Result<(), StrategyError> {
        self.ends_ns = now_ns.saturating_add(self.budget_ns);
        self.course.take_in(records);
        self.random.0 ^= self.course.position;
        Ok(())
    }

    fn next(&mut self, now_ns: Ns) -> Result<Option<NextRun>, StrategyError> {
        let mut is_first = self.wanted.is_empty();
        loop {
            if let Some((row, repeat)) = self.next_of_block(now_ns) {
                self.asked = Some(row);
                let place = Place { repeat, position: self.course.position };
                return Ok(Some(NextRun { row, cell: self.course.cells[row].clone(), place, grown: None }));
            }
            match self.round.pop_front() {
                Some(candidate) if now_ns + candidate.cost_ns <= self.ends_ns => self.begin_block(candidate),
                Some(_) => {}
                None if self.made == 0 && !is_first => {
                    self.end = BudgetEnd::Time;
                    return Ok(None);
                }
                None if !self.begin_round(now_ns)? => return Ok(None),
                None => is_first = false,
            }
        }
    }

    fn note(&mut self, record: &RunRecord, took_ns: Ns) -> Option<String> {
        let cell = self.asked.take()?;
        let groups = self.groups_of(&[cell]);
        let block = self.block.as_mut()?;
        self.course.took_ns[cell] = Some(took_ns);
        self.course.position += 1;
        self.course.blocks[block.point] = block.repeat;
        self.made += 1;
        // A cell that no question needs is shown beside the others, by their figures.
        let is_asked = !groups.is_empty();
        let does_count = counts(record, if is_asked { &groups } else { &block.groups });
        if is_asked {
            self.course.note(cell, record, does_count);
            self.course.lags[block.point] |= !does_count;
        }
        if !does_count && !record.verdict.is_too_short() {
            block.again.push(cell);
        }
        self.course.keep(record);
        None
    }

    fn outlook(&self) -> Option<Outlook> {
        let open = self.seen.open.iter().map(|question| Undecided {
            text: question.text.clone(),
            known: String::new(),
            more_ns: self.course.more_ns(question),
        });
        Some(Outlook {
            asked: "questions",
            decided: self.seen.decided.clone(),
            open: open.collect(),
            closed: self.seen.closed,
            wanted: self.wanted.values().flatten().copied().collect(),
            ends_ns: self.ends_ns,
        })
    }
}

#[cfg(test)]
mod tests;
