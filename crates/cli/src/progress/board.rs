//! State of a study that the live table, the metrics and the live report show. Events and times are passed in; it has
//! no clock and no screen.

use super::estimate::{TimeLeft, cost, costs};
use super::questions::QuestionsBoard;
use pubmark_host::server::watch::ServerWatch;
use pubmark_model::cell::Cell;
use pubmark_model::fault::Script;
use pubmark_model::figure::Figure;
use pubmark_model::profile::Profile;
use pubmark_model::record::RunRecord;
use pubmark_model::units::Ns;
use pubmark_report::text::clean;
use pubmark_study::live::{Figures, News, Phase};
use pubmark_study::runner::{StudyStart, Tally};
use pubmark_study::strategy::{NextRun, Outlook};
use serde_json::{Map, Value};
use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Maximum length of a cell's label, characters.
const LABEL_CHARS: usize = 200;

/// Messages of windows, summed over the runs that are on the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// Messages due.
    pub offered: u64,
    /// Messages sent.
    pub sent: u64,
    /// Messages delivered, each counted once.
    pub delivered: u64,
    /// Messages lost.
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

/// The result of a finished run.
#[derive(Clone, Debug, PartialEq)]
pub struct LastRun {
    /// The figures that it has.
    pub figures: Vec<(Figure, f64)>,
    /// True if its verdict is valid.
    pub valid: bool,
}

impl LastRun {
    /// Returns the result in a record.
    pub fn of(record: &RunRecord) -> LastRun {
        let figures = Figure::columns().filter_map(|figure| Some((figure, figure.value(record)?)));
        LastRun { figures: figures.collect(), valid: record.verdict.valid }
    }
}

/// A cell that is not skipped.
#[derive(Clone, Debug, Default)]
pub struct CellState {
    /// Its label, printable.
    pub label: String,
    /// Name of its system.
    pub system: String,
    /// Number of planned runs.
    pub planned: usize,
    /// Runs that it has.
    pub tally: Tally,
    /// Its last run that could be made.
    pub last: Option<LastRun>,
    cost_ns: Ns,
}

impl CellState {
    /// Returns whether it has all its runs.
    pub fn is_done(&self) -> bool {
        self.tally.runs() >= self.planned
    }
}

/// The current run.
#[derive(Clone, Debug)]
pub struct Current {
    /// Number of its cell.
    pub cell: usize,
    /// Its label, printable.
    pub label: String,
    /// Number of the repeat, from 1.
    pub repeat: u32,
    /// Planned time, ns.
    pub cost_ns: Ns,
    /// Start, ns.
    pub began_ns: Ns,
    /// Phase of the run.
    pub phase: Phase,
    /// The load so far; `None` before the first report of an agent.
    pub figures: Option<Figures>,
    /// Its server, if one was started for it.
    pub server: Option<ServerWatch>,
    /// Beginning of its window, ns; `None` before the load begins.
    pub window_ns: Option<Ns>,
    /// Its scripted faults.
    pub script: Script,
    /// Rate of each publisher, number of publishers, and when they send, ns from the start; `None` with `max`.
    owed: Option<(Profile, u32, (Ns, Ns))>,
}

/// State of a study.
#[derive(Default)]
pub struct Board {
    /// Its title, printable.
    pub title: String,
    /// Its cells.
    pub cells: Vec<CellState>,
    /// Number of skipped cells.
    pub skipped: usize,
    /// Number of all runs.
    pub runs: usize,
    /// The current run.
    pub current: Option<Current>,
    /// Description of the last run in one line.
    pub last: Option<String>,
    /// Message counts of the runs on the disk.
    pub sums: Sums,
    /// True if the study is over.
    pub ended: bool,
    /// Instant at which it began, ns.
    pub began_ns: Ns,
    /// Warnings about those that receive this state, to be printed.
    pub warnings: Vec<String>,
    /// Counter that grows whenever a record is on the disk.
    pub records: u64,
    /// State of the questions that decide which runs are made, if there are any.
    pub questions: Option<QuestionsBoard>,
    estimate: TimeLeft,
    /// By row of the study: its index in `cells`; `None` if it is skipped.
    places: Vec<Option<usize>>,
    /// By remaining run, in their order: its planned time, ns.
    costs_ns: VecDeque<Ns>,
}

impl Board {
    /// Handles the start of a study.
    pub fn begin(&mut self, start: &StudyStart<'_>) {
        // Another study may follow, and the counter must not repeat.
        let (records, warnings) = (self.records + 1, std::mem::take(&mut self.warnings));
        *self = Board { title: clean(start.title, LABEL_CHARS), records, warnings, ..Board::default() };
        for cell in start.rows {
            let is_skipped = cell.skipped.is_some();
            self.places.push(if is_skipped { None } else { Some(self.cells.len()) });
            self.skipped += usize::from(is_skipped);
            if is_skipped {
                continue;
            }
            self.cells.push(CellState {
                label: clean(&cell.label(), LABEL_CHARS),
                system: clean(&cell.system.name, LABEL_CHARS),
                planned: 0,
                tally: Tally::default(),
                last: None,
                cost_ns: cost(cell),
            });
        }
        let rows: HashMap<String, usize> =
            start.rows.iter().enumerate().map(|(row, cell)| (key(&cell.axes), row)).collect();
        for record in start.records.iter().filter(|record| record.error.is_none()) {
            // A load that a search varied is in none of its rows.
            let is_of = |cell: &Cell| cell.axes.iter().all(|(name, value)| record.cell.get(name) == Some(value));
            let row = rows.get(&key(&record.cell)).copied().or_else(|| start.rows.iter().position(is_of));
            if let Some(place) = row.and_then(|row| self.places[row]) {
                self.sums.count(record);
                self.cells[place].tally.count(record);
                self.cells[place].last = Some(LastRun::of(record));
            }
        }
        self.cells.iter_mut().for_each(|cell| cell.planned = cell.tally.runs());
        for row in start.left {
            if let Some(place) = self.places[*row] {
                self.cells[place].planned += 1;
            }
        }
        self.runs = self.cells.iter().map(|cell| cell.planned).sum();
        self.costs_ns = costs(start.fresh, start.left.iter().map(|row| &start.rows[*row])).into();
        self.estimate = TimeLeft::new(self.costs_ns.iter().sum());
    }

    /// Handles new conclusions from the records. Returns whether anything new is decided.
    pub fn looked(&mut self, outlook: &Outlook) -> bool {
        let is_new = self.questions.get_or_insert_default().look(outlook);
        for (row, place) in self.places.iter().enumerate() {
            if let Some(place) = place {
                let cell = &mut self.cells[*place];
                cell.planned = cell.tally.runs() + usize::from(outlook.wanted.contains(&row));
            }
        }
        self.runs = self.cells.iter().map(|cell| cell.planned).sum();
        is_new
    }

    /// Handles the start of a run.
    pub fn run_begins(&mut self, run: &NextRun, now_ns: Ns) {
        let Some(cell) = self.places.get(run.row).copied().flatten() else { return };
        let cost_ns = self.costs_ns.pop_front().unwrap_or(self.cells[cell].cost_ns);
        let workload = &run.cell.workload;
        self.current = Some(Current {
            cell,
            label: clean(&format!("{} #{}", run.label(), run.place.repeat), LABEL_CHARS),
            repeat: run.place.repeat,
            cost_ns,
            began_ns: now_ns,
            phase: Phase::Starting,
            figures: None,
            server: None,
            window_ns: None,
            script: run.cell.script(run.place.repeat),
            owed: workload.rate.profile().map(|profile| (profile, workload.publishers, workload.due_from_to())),
        });
    }

    /// Handles news of the run.
    pub fn news(&mut self, news: News) {
        let Some(current) = &mut self.current else { return };
        match news {
            News::Phase(phase) => {
                current.phase = phase;
                if let Phase::Load { from_ns, .. } = phase {
                    current.window_ns = Some(from_ns);
                }
            }
            News::Figures(figures) => current.figures = Some(figures),
            News::Server(server) => current.server = Some(server),
            News::Left(_) => {}
        }
    }

    /// Handles the end of the run, whose record is on the disk. Returns its cell.
    pub fn run_ends(&mut self, record: &RunRecord, line: &str, now_ns: Ns) -> Option<CellState> {
        self.records += 1;
        self.sums.count(record);
        let current = self.current.take()?;
        let cell = &mut self.cells[current.cell];
        cell.tally.count(record);
        if record.error.is_none() {
            cell.last = Some(LastRun::of(record));
        }
        self.estimate.done(current.cost_ns, now_ns.saturating_sub(current.began_ns));
        let (run, line) = (current.label, clean(line, LABEL_CHARS));
        // A narrow screen must not cut off the losses.
        self.last = Some(if record.delivery_first() { format!("{line} ({run})") } else { format!("{run}: {line}") });
        self.cells.get(current.cell).cloned()
    }

    /// Handles the end of the study, normal or not.
    pub fn end(&mut self) {
        (self.current, self.ended) = (None, true);
    }

    /// Returns the numbers of all runs, by state.
    pub fn tally(&self) -> Tally {
        let mut all = Tally::default();
        self.cells.iter().for_each(|cell| all.add(&cell.tally));
        all
    }

    /// Returns the remaining time, ns, estimated from the runs so far.
    pub fn left_ns(&self, now_ns: Ns) -> Ns {
        if let Some(questions) = &self.questions {
            return questions.ends_ns.saturating_sub(now_ns);
        }
        let current = self.current.as_ref();
        let current = current.map(|run| (run.cost_ns, now_ns.saturating_sub(run.began_ns)));
        self.estimate.left_ns(current)
    }

    /// Returns the messages due by the schedule of the current run so far; without a schedule, the messages sent.
    pub fn offered(&self, now_ns: Ns) -> Option<u64> {
        let current = self.current.as_ref()?;
        let sent = current.figures.map_or(0, |figures| figures.sent);
        let (Phase::Load { start_ns, to_ns, .. }, Some((profile, publishers, (due_from_ns, due_to_ns)))) =
            (current.phase, &current.owed)
        else {
            return Some(sent);
        };
        let until_ns = to_ns.map_or(now_ns, |to_ns| to_ns.min(now_ns));
        let sending_ns = until_ns.saturating_sub(start_ns).min(*due_to_ns).saturating_sub(*due_from_ns);
        Some((profile.expected(sending_ns) * f64::from(*publishers)) as u64)
    }
}

fn key(axes: &Map<String, Value>) -> String {
    serde_json::to_string(axes).unwrap_or_default()
}

/// State of a study for every thread that shows it. The coordinator writes it a few times per second; readers must not
/// hold the lock for long.
#[derive(Default)]
pub struct SharedBoard(Mutex<Board>);

impl SharedBoard {
    /// Locks the board.
    pub fn lock(&self) -> MutexGuard<'_, Board> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
