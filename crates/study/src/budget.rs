//! A study that is measured until its questions are decided, or its time is over.
//!
//! What the records say of the questions is not for the coordinator to know: it asks
//! ([`Questions`]), and is told which cells need further runs.

mod round;
mod walk;

use crate::conduct::{Conduct, ConductError, Conductor, Ending, Observer, begin_open};
use crate::plan::StudyPlan;
use pubmark_host::clock;
use pubmark_host::lock::Lock;
use pubmark_model::cell::Cell;
use pubmark_model::plan::Place;
use pubmark_model::record::{FigureGroup, Reason, RunRecord};
use pubmark_model::units::Ns;
use pubmark_stats::{REPEATS_MORE_MAX, Random, look_after};
use round::{Candidate, round};
use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;

/// How often a run that does not count for what is asked is made again, within its
/// block.
const AGAIN_MAX: u32 = 2;

/// So many blocks of a point have what its cells are shown beside: fewer would have no
/// interval, and more would be taken from the questions.
const BESIDE_BLOCKS: u32 = 3;

/// A cell of which so many runs in a row did not count is not measured any more.
const UNCOUNTED_MAX: u32 = 8;

/// How often a cell that was given up for the machine's noise is tried once more, when
/// nothing else is left to measure: the machine may be quiet by then.
const REVIVALS_MAX: usize = 3;

/// A question that further runs may decide.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenQuestion {
    /// In words.
    pub text: String,
    /// The cells that it needs, as indices into the plan's.
    pub cells: Vec<usize>,
    /// The figures that a run has to be quotable for.
    pub groups: Vec<FigureGroup>,
    /// Whether cells of one point are held against each other, so that one alone says
    /// nothing.
    pub compares: bool,
    /// About how many more blocks would decide it; none where nobody knows.
    pub blocks_more: Option<u32>,
}

/// A question that has its answer.
#[derive(Clone, Debug, PartialEq)]
pub struct DecidedQuestion {
    /// In words.
    pub text: String,
    /// Likewise.
    pub answer: String,
}

/// How the questions of a study stand.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QuestionsSeen {
    /// Those that are decided.
    pub decided: Vec<DecidedQuestion>,
    /// How many no further run decides.
    pub closed: usize,
    /// The others.
    pub open: Vec<OpenQuestion>,
    /// By cell of the plan: those beside which its figures are shown, block by block, and
    /// which no question needs.
    pub beside: Vec<Vec<usize>>,
}

/// Says how questions stand by the records.
pub trait Questions {
    /// How they stand: a function of the records alone, one for each cell and repeat.
    ///
    /// # Errors
    /// Where the records cannot be analysed.
    fn look(&mut self, records: &[RunRecord]) -> Result<QuestionsSeen, Box<dyn Error + Send + Sync>>;
}

/// What a study is to do with its time.
pub struct BudgetRequest<'a> {
    /// How much it has, ns.
    pub budget_ns: Ns,
    /// What a run of a cell takes by the plan, ns.
    pub cost: &'a dyn Fn(&Cell) -> Ns,
}

/// Watches such a study, on the coordinator's thread: nothing here may wait.
pub trait BudgetObserver: Observer {
    /// The records were looked at.
    fn looked(&mut self, look: &BudgetLook<'_>);
}

/// What a look at the records came to.
pub struct BudgetLook<'a> {
    /// How the questions stand.
    pub seen: &'a QuestionsSeen,
    /// By open question: about how much longer it takes, ns, by what runs of its cells
    /// took so far; none where nobody can say.
    pub more_ns: Vec<Option<Ns>>,
    /// The cells that have further runs to come, by their index.
    pub wanted: BTreeSet<usize>,
    /// When all is over, an instant of CLOCK_MONOTONIC, ns.
    pub ends_ns: Ns,
}

/// Why no further runs were made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BudgetEnd {
    /// Nothing is left that runs could decide.
    Decided,
    /// No further run fits into the time.
    Time,
    /// The user wants to stop.
    Interrupted,
}

/// A study whose time is over, or its questions decided.
pub struct BudgetEnding {
    /// How its runs went.
    pub ending: Ending,
    /// Why it ended.
    pub end: BudgetEnd,
    /// Cells, by their index, of which too many runs in a row did not count, and none
    /// since.
    pub given_up: Vec<usize>,
    /// What a run of each cell takes, ns, by what was seen or, where none was made, by
    /// the plan.
    pub run_ns: Vec<Ns>,
}

/// How far a study has come.
struct Course<'a> {
    cells: &'a [Cell],
    points: Vec<Vec<usize>>,
    point_of: Vec<usize>,
    /// By point.
    blocks: Vec<u32>,
    /// By point: whether a run of it did not count, so that its pairs have fewer blocks
    /// than it.
    lags: Vec<bool>,
    /// By cell: runs in a row that did not count.
    uncounted: Vec<u32>,
    /// By cell: whether it was given up, and no run of it has counted since.
    given_up: Vec<bool>,
    /// By cell: whether the machine was noisy in the last run that did not count.
    noisy: Vec<bool>,
    revivals: usize,
    /// By cell: what its last run took.
    took_ns: Vec<Option<Ns>>,
    cost_ns: Vec<Ns>,
    records: Vec<RunRecord>,
    /// Records on the disk, those made again among them.
    position: u64,
}

impl<'a> Course<'a> {
    fn new(plan: &'a StudyPlan, before: Vec<RunRecord>, cost: &dyn Fn(&Cell) -> Ns) -> Course<'a> {
        let cells = plan.cells();
        let points = walk::walk(cells, plan.study().seed());
        let mut point_of = vec![usize::MAX; cells.len()];
        for (point, members) in points.iter().enumerate() {
            members.iter().for_each(|cell| point_of[*cell] = point);
        }
        let mut course = Course {
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
            position: before.iter().map(|record| record.position + 1).max().unwrap_or(0),
            points,
            point_of,
        };
        for record in before {
            let Some(cell) = cells.iter().position(|cell| cell.axes == record.cell) else { continue };
            if let Some(point) = course.blocks.get_mut(course.point_of[cell]) {
                *point = (*point).max(record.repeat);
                course.lags[course.point_of[cell]] |= !record.verdict.valid;
            }
            course.keep(record);
        }
        course
    }

    /// Of several records of one cell and repeat the last counts, as in any report.
    fn keep(&mut self, mut record: RunRecord) {
        // Neither says anything of a question, and they are most of a record.
        record.histograms = Default::default();
        record.series = Default::default();
        self.records.retain(|other| other.repeat != record.repeat || other.cell != record.cell);
        self.records.push(record);
    }

    /// Tries the cells once more that were given up for the machine's noise. Whether
    /// there are any.
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

    /// A run of a cell has ended of which something is asked.
    fn note(&mut self, cell: usize, record: &RunRecord, does_count: bool) {
        self.uncounted[cell] = if does_count { 0 } else { self.uncounted[cell] + 1 };
        self.given_up[cell] = !does_count && (self.given_up[cell] || self.uncounted[cell] >= UNCOUNTED_MAX);
        self.noisy[cell] = record.verdict.reasons.iter().any(|finding| finding.reason == Reason::NoisyMachine);
    }

    /// What a run takes, ns.
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

    /// About how much longer a question takes, ns.
    fn more_ns(&self, question: &OpenQuestion) -> Option<Ns> {
        let block_ns: Ns = question.cells.iter().map(|cell| self.run_ns(*cell)).sum();
        question.blocks_more.map(|blocks| block_ns.saturating_mul(u64::from(blocks)))
    }

    /// The cells that open questions need and that can be measured, by point.
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

    /// The points in the order of the walk, with what is known of each.
    fn candidates(&self, wanted: &BTreeMap<usize, BTreeSet<usize>>, seen: &QuestionsSeen) -> Vec<Candidate> {
        let of = |(point, cells): (&usize, &BTreeSet<usize>)| {
            let mut more: Option<u32> = None;
            let questions = seen.open.iter().filter(|question| question.cells.iter().any(|cell| cells.contains(cell)));
            // The first one that is decided is worth the blocks.
            for blocks in questions.filter_map(|question| question.blocks_more) {
                more = Some(more.map_or(blocks, |known| known.min(blocks)));
            }
            let block = self.block(*point, cells, seen);
            let cost_ns = block.iter().map(|cell| self.run_ns(*cell)).sum();
            Candidate { point: *point, cost_ns, blocks: self.blocks[*point], more }
        };
        wanted.iter().map(of).collect()
    }

    /// What the next block of a point has: the first one all its cells, the others those
    /// that are wanted; the first few also what is shown beside these, wherever that is,
    /// unless it has a run of this repeat already.
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

/// Whether a run may be quoted for all that is asked of its cell.
fn counts(record: &RunRecord, groups: &BTreeSet<FigureGroup>) -> bool {
    record.error.is_none() && groups.iter().all(|group| record.verdict.allows(*group))
}

/// Makes blocks until each question is decided or the time is over. Nobody else can
/// write into the results folder as long as the lock is held.
///
/// # Errors
/// Where the results folder cannot be used, or the records cannot be looked at.
pub fn run_until_decided(
    plan: &StudyPlan,
    how: &Conduct<'_>,
    request: &BudgetRequest<'_>,
    questions: &mut dyn Questions,
    observer: &mut dyn BudgetObserver,
) -> Result<(BudgetEnding, Lock), ConductError> {
    let ends_ns = clock::now().saturating_add(request.budget_ns);
    let (mut conductor, records) = Conductor::open(plan, how)?;
    begin_open(&plan.study().title, plan.cells(), &records, observer);
    let mut course = Course::new(plan, records, request.cost);
    let mut random = Random(plan.study().seed() ^ course.position);
    let mut seen = QuestionsSeen::default();
    let mut is_due = true;
    let end = loop {
        if is_due {
            seen = questions.look(&course.records).map_err(ConductError::Questions)?;
        }
        let wanted = course.wanted(&seen);
        observer.looked(&BudgetLook {
            seen: &seen,
            more_ns: seen.open.iter().map(|question| course.more_ns(question)).collect(),
            wanted: wanted.values().flatten().copied().collect(),
            ends_ns,
        });
        if wanted.is_empty() {
            match course.revive() {
                true => continue,
                false => break BudgetEnd::Decided,
            }
        }
        let left_ns = ends_ns.saturating_sub(clock::now());
        let mut made = 0;
        is_due = false;
        for candidate in round(&course.candidates(&wanted, &seen), left_ns, &mut random) {
            if clock::now() + candidate.cost_ns > ends_ns {
                continue;
            }
            let mut block = course.block(candidate.point, &wanted[&candidate.point], &seen);
            random.shuffle(&mut block);
            made += course.make_block((candidate.point, &block), &seen, &mut conductor, observer, ends_ns)?;
            if conductor.is_interrupted() {
                break;
            }
            let blocks = course.blocks[candidate.point] as usize;
            is_due |= course.lags[candidate.point] || blocks < 2 || look_after(blocks - 1) == blocks;
        }
        if conductor.is_interrupted() {
            break BudgetEnd::Interrupted;
        }
        if made == 0 {
            break BudgetEnd::Time;
        }
    };
    let given_up = (0..plan.cells().len()).filter(|cell| course.given_up[*cell]).collect();
    let run_ns = (0..plan.cells().len()).map(|cell| course.run_ns(cell)).collect();
    let (ending, lock) = conductor.close()?;
    Ok((BudgetEnding { ending, end, given_up, run_ns }, lock))
}

impl Course<'_> {
    /// Makes one run of each of these cells; those that do not count again, once the
    /// others are through. How many runs were made.
    fn make_block(
        &mut self,
        (point, block): (usize, &[usize]),
        seen: &QuestionsSeen,
        conductor: &mut Conductor<'_>,
        observer: &mut dyn BudgetObserver,
        ends_ns: Ns,
    ) -> Result<usize, ConductError> {
        let repeat = self.blocks[point] + 1;
        let groups_of = |cells: &[usize]| -> BTreeSet<FigureGroup> {
            let open = seen.open.iter().filter(|question| cells.iter().any(|cell| question.cells.contains(cell)));
            open.flat_map(|question| question.groups.iter().copied()).collect()
        };
        let beside = groups_of(block);
        let mut made = 0;
        let mut left: Vec<usize> = block.to_vec();
        for _ in 0..=AGAIN_MAX {
            for cell in std::mem::take(&mut left) {
                if clock::now() + self.run_ns(cell) > ends_ns || self.uncounted[cell] >= UNCOUNTED_MAX {
                    continue;
                }
                let groups = groups_of(&[cell]);
                let place = Place { repeat, position: self.position };
                let from_ns = clock::now();
                let Some(record) = conductor.run(&self.cells[cell], place, None, observer)? else { return Ok(made) };
                self.took_ns[cell] = Some(clock::now().saturating_sub(from_ns));
                (self.position, self.blocks[point], made) = (self.position + 1, repeat, made + 1);
                // What nothing is asked of stands beside the others, in their figures.
                let is_asked = !groups.is_empty();
                let does_count = counts(&record, if is_asked { &groups } else { &beside });
                if is_asked {
                    self.note(cell, &record, does_count);
                    self.lags[point] |= !does_count;
                }
                if !does_count {
                    left.push(cell);
                }
                self.keep(record);
            }
        }
        Ok(made)
    }
}

#[cfg(test)]
mod tests;
