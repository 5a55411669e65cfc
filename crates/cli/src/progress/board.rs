//! How a study stands: what the live table, the metrics and the live report
//! show. It is told what happens and when; it has no clock and no screen.

use super::estimate::{TimeLeft, cost, costs};
use super::questions::QuestionsBoard;
use pubmark_host::server::watch::ServerWatch;
use pubmark_model::cell::Cell;
use pubmark_model::figure::Figure;
use pubmark_model::plan::Planned;
use pubmark_model::profile::Profile;
use pubmark_model::record::RunRecord;
use pubmark_model::units::Ns;
use pubmark_report::text::clean;
use pubmark_study::budget::BudgetLook;
use pubmark_study::conduct::{StudyStart, Tally};
use pubmark_study::live::{Figures, News, Phase};
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Longest label of a cell that is kept, characters.
const LABEL_CHARS: usize = 200;

/// Messages of windows, summed over the runs that are on the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// Due.
    pub offered: u64,
    /// Sent.
    pub sent: u64,
    /// Delivered, each counted once.
    pub delivered: u64,
    /// Lost.
    pub lost: u64,
}

impl Sums {
    fn count(&mut self, record: &RunRecord) {
        self.offered += record.counts.offered;
        self.sent += record.counts.sent;
        self.delivered += record.counts.delivered;
        self.lost += record.counts.lost;
    }
}

/// A cell that is not skipped.
#[derive(Clone, Debug, Default)]
pub struct CellState {
    /// Its place on the axes, in words, fit for a screen.
    pub label: String,
    /// Its system.
    pub system: String,
    /// Runs that it is to have.
    pub planned: usize,
    /// Those that it has.
    pub tally: Tally,
    /// The figures of the last one that was made.
    pub last: Option<Vec<(Figure, f64)>>,
    cost_ns: Ns,
    /// What its publishers owe, each, and how many they are; none at `max`.
    owed: Option<(Profile, u32)>,
}

impl CellState {
    /// Whether it has all its runs.
    pub fn is_done(&self) -> bool {
        self.tally.runs() >= self.planned
    }
}

/// The run that is on.
#[derive(Clone, Debug)]
pub struct Current {
    /// Its cell.
    pub cell: usize,
    /// Which repetition, from 1.
    pub repeat: u32,
    /// What it takes by the plan, ns.
    pub cost_ns: Ns,
    /// When it began, ns.
    pub began_ns: Ns,
    /// What it has come to.
    pub phase: Phase,
    /// The load so far; none before the first word of an agent.
    pub figures: Option<Figures>,
    /// Its server, if one was started for it.
    pub server: Option<ServerWatch>,
}

/// A study, as far as it has come.
#[derive(Default)]
pub struct Board {
    /// Its title, fit for a screen.
    pub title: String,
    /// Its cells.
    pub cells: Vec<CellState>,
    /// Cells that are left out.
    pub skipped: usize,
    /// Runs in all.
    pub runs: usize,
    /// The run that is on.
    pub current: Option<Current>,
    /// The last one that ended, in a line.
    pub last: Option<String>,
    /// What the windows of the runs on the disk had.
    pub sums: Sums,
    /// Whether the study is over.
    pub ended: bool,
    /// Grows whenever a record is on the disk.
    pub records: u64,
    /// Where runs are made until questions are decided, how these stand.
    pub questions: Option<QuestionsBoard>,
    estimate: TimeLeft,
    /// From a cell of the plan to one of the list.
    places: Vec<usize>,
    /// By cell of the plan: whether it is left out.
    skips: Vec<bool>,
    /// From a run's place in the order to a cell of the plan.
    order: Vec<usize>,
    /// By a run's place in the order: what it takes by the plan, ns.
    costs_ns: Vec<Ns>,
    /// From a cell's axes to its place in the plan.
    by_axes: HashMap<String, usize>,
}

impl Board {
    /// The study begins.
    pub fn begin(&mut self, course: &StudyStart<'_>) {
        let mut planned = vec![0; course.cells.len()];
        for run in course.order {
            planned[run.cell] += 1;
        }
        *self = Board { title: clean(course.title, LABEL_CHARS), runs: course.order.len(), ..Board::default() };
        for (cell, planned) in course.cells.iter().zip(planned) {
            self.places.push(self.cells.len());
            self.skips.push(cell.skipped.is_some());
            if cell.skipped.is_some() {
                self.skipped += 1;
                continue;
            }
            self.cells.push(CellState {
                label: clean(&cell.label(), LABEL_CHARS),
                system: clean(&cell.system, LABEL_CHARS),
                planned,
                tally: Tally::default(),
                last: None,
                cost_ns: cost(cell),
                owed: cell.workload.rate.profile().map(|profile| (profile, cell.workload.publishers)),
            });
        }
        self.order = course.order.iter().map(|run| run.cell).collect();
        self.by_axes = course.cells.iter().enumerate().map(|(index, cell)| (key(&cell.axes), index)).collect();
        for record in course.records.iter().filter(|record| record.error.is_none()) {
            let place = self.by_axes.get(&key(&record.cell)).map(|index| self.places[*index]);
            if let Some(cell) = place.and_then(|place| self.cells.get_mut(place)) {
                self.sums.count(record);
                cell.tally.count(record);
                cell.last = Some(finished(record));
            }
        }
        let is_left = |run: &&Planned| !course.done.contains(*run);
        let left = costs(course.fresh, course.order.iter().filter(is_left).map(|run| &course.cells[run.cell]));
        self.estimate = TimeLeft::new(left.iter().sum());
        let mut left = left.into_iter();
        let cost_of = |run: &Planned| if is_left(&run) { left.next().unwrap_or_default() } else { 0 };
        self.costs_ns = course.order.iter().map(cost_of).collect();
    }

    /// The questions were looked at. Whether any is decided that was not before.
    pub fn looked(&mut self, look: &BudgetLook<'_>) -> bool {
        let is_new = self.questions.get_or_insert_default().look(look);
        for (index, place) in self.places.iter().enumerate() {
            if let Some(cell) = self.cells.get_mut(*place).filter(|_| self.skips.get(index) == Some(&false)) {
                cell.planned = cell.tally.runs() + usize::from(look.wanted.contains(&index));
            }
        }
        self.runs = self.cells.iter().map(|cell| cell.planned).sum();
        is_new
    }

    /// The run at this place in the order will be one of this cell: where the order
    /// was not known before.
    pub fn is_next(&mut self, number: usize, cell: &Cell) {
        let Some(index) = self.by_axes.get(&key(&cell.axes)).copied() else { return };
        if self.order.len() <= number {
            self.order.resize(number + 1, usize::MAX);
        }
        self.order[number] = index;
    }

    /// A run begins: the one at this place in the order.
    pub fn run_begins(&mut self, number: usize, repeat: u32, now_ns: Ns) {
        let place = self.order.get(number).and_then(|cell| self.places.get(*cell)).copied();
        let Some(cell) = place.filter(|place| *place < self.cells.len()) else { return };
        let cost_ns = self.costs_ns.get(number).copied().unwrap_or(self.cells[cell].cost_ns);
        let (phase, began_ns) = (Phase::Starting, now_ns);
        self.current = Some(Current { cell, repeat, cost_ns, began_ns, phase, figures: None, server: None });
    }

    /// Something is new of the run.
    pub fn news(&mut self, news: News) {
        let Some(current) = &mut self.current else { return };
        match news {
            News::Phase(phase) => current.phase = phase,
            News::Figures(figures) => current.figures = Some(figures),
            News::Server(server) => current.server = Some(server),
            News::Left(_) => {}
        }
    }

    /// The run has ended, and its record is on the disk.
    pub fn run_ends(&mut self, record: &RunRecord, line: &str, now_ns: Ns) {
        self.records += 1;
        self.sums.count(record);
        let Some(current) = self.current.take() else { return };
        let cell = &mut self.cells[current.cell];
        cell.tally.count(record);
        if record.error.is_none() {
            cell.last = Some(finished(record));
        }
        self.estimate.done(current.cost_ns, now_ns.saturating_sub(current.began_ns));
        let (run, line) = (format!("{} #{}", cell.label, current.repeat), clean(line, LABEL_CHARS));
        // What was lost is not to be cut off by a narrow screen.
        self.last = Some(if record.delivery_first() { format!("{line} ({run})") } else { format!("{run}: {line}") });
    }

    /// The study is over, or cannot go on.
    pub fn end(&mut self) {
        (self.current, self.ended) = (None, true);
    }

    /// All runs that there are, by what became of them.
    pub fn tally(&self) -> Tally {
        let mut all = Tally::default();
        self.cells.iter().for_each(|cell| all.add(&cell.tally));
        all
    }

    /// How long it will go on, ns, by what it cost so far.
    pub fn left_ns(&self, now_ns: Ns) -> Ns {
        if let Some(questions) = &self.questions {
            return questions.ends_ns.saturating_sub(now_ns);
        }
        let current = self.current.as_ref();
        let current = current.map(|run| (run.cost_ns, now_ns.saturating_sub(run.began_ns)));
        self.estimate.left_ns(current)
    }

    /// Messages that the schedule of the present run has had due so far; as
    /// many as were sent where there is none.
    pub fn offered(&self, now_ns: Ns) -> Option<u64> {
        let current = self.current.as_ref()?;
        let sent = current.figures.map_or(0, |figures| figures.sent);
        let (Phase::Load { start_ns, to_ns, .. }, Some((profile, publishers))) =
            (current.phase, self.cells[current.cell].owed)
        else {
            return Some(sent);
        };
        let until_ns = to_ns.map_or(now_ns, |to_ns| to_ns.min(now_ns));
        Some((profile.expected(until_ns.saturating_sub(start_ns)) * f64::from(publishers)) as u64)
    }
}

fn key(axes: &Map<String, Value>) -> String {
    serde_json::to_string(axes).unwrap_or_default()
}

fn finished(record: &RunRecord) -> Vec<(Figure, f64)> {
    Figure::columns().filter_map(|figure| Some((figure, figure.value(record)?))).collect()
}

/// How the study stands, for every thread that shows it. The coordinator
/// writes it a few times a second; who reads it must not keep it.
#[derive(Default)]
pub struct SharedBoard(Mutex<Board>);

impl SharedBoard {
    /// The board.
    pub fn lock(&self) -> MutexGuard<'_, Board> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
