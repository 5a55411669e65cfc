//! Many results of the same cells, one after the other in time: whether a figure
//! has changed for good, and since when.
//!
//! A folder is one observation, the median over its runs: what lies between two
//! days is noise too, and no run of either shows it.

use super::figure::{HEADLINES, signed_percent};
use super::gate::{Gate, GateOutcome, GateResult, Threshold, is_of_flow};
use super::page::{TOO_NOISY, figure_head, gate_table, text_head};
use super::select::AxisFilter;
use crate::analysis::CellResult;
use crate::document::{Document, Entry, Mark, Row, Table, table};
use crate::figures::shown;
use crate::records::place;
use crate::report::Report;
use crate::text::clean;
use crate::{markdown, terminal};
use pubmark_model::figure::Figure;
use pubmark_model::workload::Rate;
use pubmark_stats::{Better, FALSE_ALARM, HISTORY_MIN, change_point, holm, median};
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::HashMap;

/// Longest name of a folder or a cell, characters.
const NAME_CHARS: usize = 120;

/// A folder of a history.
#[derive(Serialize, Clone, Debug, PartialEq, Eq)]
pub struct HistoryFolder {
    /// Its name, harmless.
    pub name: String,
    /// When its first run began; empty where no record says.
    pub started: String,
}

/// A figure of a cell over the folders.
#[derive(Serialize, Clone, Debug, PartialEq)]
pub struct HistorySeries {
    /// The cell in words.
    pub label: String,
    /// Its values on axes.
    #[serde(skip)]
    pub axes: Map<String, Value>,
    /// The figure; in JSON its column of `summary.csv`.
    pub column: Figure,
    /// For each folder that has it: its index, and the median over the runs.
    pub values: Vec<(usize, f64)>,
    /// The folder since which it is otherwise, where that stands out.
    pub since: Option<usize>,
    /// The median over the folders before the most likely change.
    pub before: Option<f64>,
    /// Value from that folder on.
    pub after: Option<f64>,
    /// The probability of such a change where there is none, adjusted for all that
    /// is looked at.
    pub p: Option<f64>,
    /// True if the change is for the better; `None` if neither direction is better.
    pub is_better: Option<bool>,
    #[serde(skip)]
    unthrottled: bool,
}

/// Results in the order of time, and what has changed.
#[derive(Serialize, Clone, Debug, Default, PartialEq)]
pub struct History {
    /// The folders.
    pub folders: Vec<HistoryFolder>,
    /// Figures, those that have changed first.
    pub series: Vec<HistorySeries>,
    /// Results of the gates.
    pub gates: Vec<GateResult>,
}

/// Adds one folder after the other, so that no two are in memory at once.
#[derive(Default)]
pub struct HistoryReader {
    folders: Vec<HistoryFolder>,
    series: Vec<HistorySeries>,
    places: HashMap<(String, &'static str), usize>,
}

impl HistoryReader {
    /// Adds what a report says of these cells, by the headline figures and those of gates.
    pub fn add(&mut self, report: &Report, only: &[AxisFilter], gates: &[Gate]) {
        let started = report.runs().iter().map(|run| run.started.as_str()).filter(|started| !started.is_empty());
        let folder = self.folders.len();
        self.folders.push(HistoryFolder {
            name: clean(report.name(), NAME_CHARS),
            started: clean(started.min().unwrap_or_default(), 40),
        });
        let gated = gates.iter().map(|gate| gate.figure);
        let mut columns: Vec<Figure> = HEADLINES.into();
        columns.extend(gated.filter(|column| !HEADLINES.contains(column)));
        for cell in report.cells().iter().filter(|cell| only.iter().all(|only| only.holds(cell))) {
            for column in &columns {
                self.reading(folder, cell, *column);
            }
        }
    }

    fn reading(&mut self, folder: usize, cell: &CellResult, column: Figure) {
        let Some(value) = cell.quotable(column).map(|estimate| estimate.value) else { return };
        let key = (place(&cell.cell.axes), column.key());
        let index = *self.places.entry(key).or_insert_with(|| {
            self.series.push(HistorySeries {
                label: clean(&cell.cell.label(), NAME_CHARS),
                axes: cell.cell.axes.clone(),
                column,
                values: Vec::new(),
                since: None,
                before: None,
                after: None,
                p: None,
                is_better: None,
                unthrottled: cell.cell.workload.rate == Rate::Max,
            });
            self.series.len() - 1
        });
        self.series[index].values.push((folder, value));
    }

    /// Evaluates all folders.
    pub fn history(self, gates: &[Gate]) -> History {
        let mut order: Vec<usize> = (0..self.folders.len()).collect();
        order.sort_by(|one, other| self.folders[*one].started.cmp(&self.folders[*other].started));
        let mut rank = vec![0; order.len()];
        order.iter().enumerate().for_each(|(place, folder)| rank[*folder] = place);
        let mut series = self.series;
        for one in &mut series {
            one.values.iter_mut().for_each(|(folder, _)| *folder = rank[*folder]);
            one.values.sort_by_key(|(folder, _)| *folder);
            one.look();
        }
        // Figures of gates form one family, all others another.
        let is_gated = |one: &HistorySeries| gates.iter().any(|gate| gate.figure == one.column);
        for family in [true, false] {
            let mut members: Vec<&mut HistorySeries> =
                series.iter_mut().filter(|one| one.p.is_some() && is_gated(one) == family).collect();
            let p: Vec<f64> = members.iter().filter_map(|one| one.p).collect();
            for (one, p) in members.iter_mut().zip(holm(&p)) {
                one.p = Some(p);
                one.since = one.since.filter(|_| p <= FALSE_ALARM);
            }
        }
        series.sort_by_key(|one| one.since.is_none());
        let folders = order.into_iter().map(|folder| self.folders[folder].clone()).collect();
        let mut history = History { folders, series, gates: Vec::new() };
        history.gates = gates.iter().map(|gate| history.became(gate)).collect();
        history
    }
}

impl HistorySeries {
    fn look(&mut self) {
        let values: Vec<f64> = self.values.iter().map(|(_, value)| *value).collect();
        let Some(found) = change_point(&values) else { return };
        let (before, after) = values.split_at(found.at);
        (self.before, self.after, self.p) = (median(before), median(after), Some(found.p));
        self.since = Some(self.values[found.at].0);
        let rises = self.after > self.before;
        self.is_better = self.column.better(self.unthrottled).map(|better| (better == Better::Higher) == rises);
    }

    /// The change in per cent of before.
    pub fn percent(&self) -> Option<f64> {
        let (before, after) = (self.before?, self.after?);
        Some(if before == after { 0.0 } else { (after - before) / before.abs() * 100.0 })
    }
}

impl History {
    /// The worst that became of any gate; passed where there is none.
    pub fn gates_say(&self) -> GateOutcome {
        self.gates.iter().map(|gate| gate.outcome).max_by_key(|outcome| *outcome as u8).unwrap_or(GateOutcome::Passed)
    }

    fn became(&self, gate: &Gate) -> GateResult {
        let mut result = GateResult::new(&gate.text);
        let is_its = |one: &&HistorySeries| one.column == gate.figure && is_of_flow(gate.flow.as_deref(), &one.axes);
        for one in self.series.iter().filter(is_its) {
            result.comparisons += 1;
            let moved = match gate.threshold {
                Threshold::Percent(_) => one.percent(),
                Threshold::Amount(_) => one.after.zip(one.before).map(|(after, before)| after - before),
            };
            match (moved, one.since) {
                (None, _) => {
                    let why =
                        format!("{} folders have it, and a change shows in {HISTORY_MIN} or more", one.values.len());
                    result.undecided.push(format!("{} ({why})", one.label));
                }
                (Some(moved), Some(_)) if gate.is_beyond(moved) => result.failed.push(self.words(one)),
                _ => {}
            }
        }
        if result.comparisons == 0 {
            result.undecided.push(format!("no folder has {}", gate.figure.short_name()));
        }
        result.settled()
    }

    fn words(&self, one: &HistorySeries) -> String {
        let percent = one.percent().map(signed_percent).unwrap_or_default();
        format!("{}: {percent} since {}", one.label, self.since(one))
    }

    /// The day since which a figure is otherwise, and the folder.
    fn since(&self, one: &HistorySeries) -> String {
        let folder = one.since.and_then(|index| self.folders.get(index));
        folder.map(|folder| format!("{} ({})", moment(&folder.started), folder.name)).unwrap_or_default()
    }

    /// Tables for a terminal of so many columns.
    pub fn terminal(&self, width: usize, colour: bool) -> String {
        terminal::render(&self.document(), width, colour)
    }

    /// Returns GitHub Markdown.
    pub fn markdown(&self) -> String {
        markdown::render(&self.document())
    }

    fn document(&self) -> Document {
        let changed = self.series.iter().filter(|one| one.since.is_some()).count();
        let ends = self.folders.first().zip(self.folders.last());
        let span = ends.map(|(first, last)| format!("{} to {}", moment(&first.started), moment(&last.started)));
        let looked_at = self.series.iter().filter(|one| one.p.is_some()).count();
        let mut closing = vec![format!(
            "A folder is one observation: the median over the reliable runs. A change is called one where the order of the \
             folders is too uneven for chance; where nothing has changed, any of the {looked_at} figures is called \
             so with at most 5 % probability. A last folder alone cannot be told from noise, and what creeps is shown \
             as one step."
        )];
        if self.folders.len() < HISTORY_MIN {
            closing
                .push(format!("{} folders are too few: a change shows in {HISTORY_MIN} or more.", self.folders.len()));
        }
        Document {
            title: format!("{} folders, {changed} of {looked_at} figures have changed", self.folders.len()),
            question: span.unwrap_or_default(),
            constants: String::new(),
            answers: Vec::new(),
            tables: self.table().into_iter().collect(),
            claims: gate_table(&self.gates, TOO_NOISY),
            closing,
        }
    }

    fn table(&self) -> Option<Table> {
        let row = |one: &HistorySeries| {
            let value =
                |value: Option<f64>| value.map_or_else(Entry::none, |value| Entry::plain(shown(one.column, value)));
            let entries = vec![
                Entry::plain(one.label.clone()),
                Entry::plain(one.column.short_name().into()),
                value(one.before),
                value(one.after),
                one.percent().map_or_else(Entry::none, |percent| Entry::plain(signed_percent(percent))),
                Entry::plain(one.values.len().to_string()),
                Entry::plain(self.since(one)),
            ];
            let mark = match one.is_better {
                Some(true) => Mark::Good,
                Some(false) => Mark::Bad,
                None => Mark::Plain,
            };
            Row { entries, mark, bar: None }
        };
        let rows: Vec<Row> = self.series.iter().filter(|one| one.since.is_some()).map(row).collect();
        let mut heads = vec![text_head("cell"), text_head("figure"), figure_head("before", 0), figure_head("after", 0)];
        heads.extend([figure_head("change", 0), figure_head("folders", 1), text_head("since")]);
        (!rows.is_empty()).then(|| table("Changed for good", heads, vec![rows], Vec::new(), true))
    }
}

/// A moment to the minute, of one as records have it.
fn moment(started: &str) -> String {
    match started.split_once('T') {
        Some((day, time)) => format!("{day} {}", time.chars().take(5).collect::<String>()),
        None => started.to_owned(),
    }
}
