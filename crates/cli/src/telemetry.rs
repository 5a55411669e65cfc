//! Metrics of a study: one table, which `--metrics` serves in the text format of Prometheus and `--otlp` pushes.

pub mod otlp;
pub mod push;

use crate::progress::board::{CellState, Current, LastRun, SharedBoard, Sums};
use pubmark_host::clock;
use pubmark_host::server::watch::{ServerNow, ServerWatch};
use pubmark_model::figure::{Figure, Unit};
use pubmark_model::units::{Ns, SECOND};
use pubmark_study::live::Phase;
use pubmark_study::runner::Tally;
use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};

/// Number of cells beyond which further ones have no series.
const CELLS_MAX: usize = 1_000;
/// Minimum interval of snapshots of a server, ns.
const LOOK: Ns = SECOND;

/// Labels with their values.
pub type Labels = Vec<(Cow<'static, str>, String)>;

/// MetricKind of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// A value that goes up and down.
    Gauge,
    /// A sum that only grows. Prometheus appends `_total` to its name.
    Counter {
        /// Instant of its start, ns.
        since_ns: Ns,
    },
}

/// All series of one name.
#[derive(Debug)]
pub struct Family {
    /// Its name, without the prefix `pubmark_`.
    pub name: String,
    /// Its description.
    pub help: &'static str,
    /// Its kind.
    pub kind: MetricKind,
    /// Its series: labels and value.
    pub samples: Vec<(Labels, f64)>,
}

impl Family {
    fn gauges(name: impl Into<String>, help: &'static str, samples: Vec<(Labels, f64)>) -> Family {
        Family { name: name.into(), help, kind: MetricKind::Gauge, samples }
    }

    fn counters(name: &str, help: &'static str, since_ns: Ns, samples: Vec<(Labels, f64)>) -> Family {
        Family { name: name.to_owned(), help, kind: MetricKind::Counter { since_ns }, samples }
    }
}

/// The state of a study, for the metrics.
pub struct Metrics {
    shared: Arc<SharedBoard>,
    looked: Mutex<Option<Looked>>,
}

/// A snapshot of a server.
#[derive(Clone, Copy)]
struct Looked {
    at_ns: Ns,
    /// Start of the run to which the server belongs; identifies the run.
    run_ns: Ns,
    seen: Option<ServerNow>,
}

impl std::fmt::Debug for Metrics {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Metrics")
    }
}

/// Data copied from the board at once, so that nobody waits for the text.
pub struct Snapshot {
    now_ns: Ns,
    began_ns: Ns,
    /// Cells by number, from 0.
    cells: Vec<(usize, CellState)>,
    current: Option<(Current, CellState)>,
    server: Option<ServerNow>,
    tally: Tally,
    sums: Sums,
    runs: usize,
    left_ns: Ns,
    offered: Option<u64>,
}

impl Metrics {
    /// Returns the metrics of a study.
    pub fn new(shared: Arc<SharedBoard>) -> Metrics {
        Metrics { shared, looked: Mutex::default() }
    }

    /// Returns the state of the study now.
    pub fn snapshot(&self) -> Snapshot {
        let now_ns = clock::now();
        let mut snapshot = {
            let board = self.shared.lock();
            Snapshot {
                now_ns,
                began_ns: board.began_ns,
                cells: board.cells.iter().cloned().enumerate().take(CELLS_MAX).collect(),
                current: board.current.as_ref().map(|current| (current.clone(), board.cells[current.cell].clone())),
                server: None,
                tally: board.tally(),
                sums: board.sums,
                runs: board.runs,
                left_ns: board.left_ns(now_ns),
                offered: board.offered(now_ns),
            }
        };
        let current = snapshot.current.as_ref().map(|(current, _)| current);
        let watched = current.and_then(|current| Some((current.server.as_ref()?, current.began_ns)));
        snapshot.server = watched.and_then(|(watch, run_ns)| self.look(watch, run_ns, now_ns));
        snapshot
    }

    fn look(&self, watch: &ServerWatch, run_ns: Ns, now_ns: Ns) -> Option<ServerNow> {
        let mut looked = self.looked.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = looked.filter(|last| last.run_ns == run_ns && now_ns < last.at_ns + LOOK) {
            return last.seen;
        }
        let seen = watch.now();
        *looked = Some(Looked { at_ns: now_ns, run_ns, seen });
        seen
    }
}

impl Snapshot {
    /// Returns the metrics of the study and of the current run.
    pub fn progress(&self) -> Vec<Family> {
        let mut families = study(self);
        let Some((current, cell)) = &self.current else { return families };
        families.extend(run(current, cell, self));
        families.extend(self.server.into_iter().flat_map(|seen| server(&cell.system, current.began_ns, seen)));
        families
    }

    /// Returns the figures of the last finished run of each cell that has one.
    pub fn cells(&self) -> Vec<Family> {
        let runs = self.cells.iter().filter_map(|(index, cell)| Some((of_cell(*index, cell), cell.last.as_ref()?)));
        figures(&runs.collect::<Vec<_>>())
    }
}

fn label(name: &'static str, value: &str) -> Labels {
    vec![(name.into(), value.to_owned())]
}

/// Returns the labels of a cell.
pub fn of_cell(index: usize, cell: &CellState) -> Labels {
    let number = (index + 1).to_string();
    vec![("cell".into(), number), ("system".into(), cell.system.clone()), ("label".into(), cell.label.clone())]
}

/// Appends a label.
pub fn with(mut labels: Labels, name: &'static str, value: &str) -> Labels {
    labels.push((name.into(), value.to_owned()));
    labels
}

fn seconds(ns: Ns) -> f64 {
    ns as f64 / SECOND as f64
}

fn study(snapshot: &Snapshot) -> Vec<Family> {
    let Tally { valid, invalid, failed } = snapshot.tally;
    let runs = [("valid", valid), ("invalid", invalid), ("failed", failed)];
    let runs = runs.map(|(verdict, count)| (label("verdict", verdict), count as f64));
    let Sums { offered, sent, delivered, lost } = snapshot.sums;
    let messages = [("offered", offered), ("sent", sent), ("delivered", delivered), ("lost", lost)];
    let messages = messages.map(|(count, value)| (label("count", count), value as f64));
    let one = |value: f64| vec![(Vec::new(), value)];
    let since_ns = snapshot.began_ns;
    let help = "Messages of the windows of runs that are over";
    vec![
        Family::gauges("runs_planned", "Runs of the study", one(snapshot.runs as f64)),
        Family::gauges("study_left_seconds", "Estimate of the time left", one(seconds(snapshot.left_ns))),
        Family::counters("runs", "Runs that are over, by verdict", since_ns, runs.into()),
        Family::counters("window_messages", help, since_ns, messages.into()),
    ]
}

/// Returns each figure of these runs, and whether their verdict is valid.
pub fn figures(runs: &[(Labels, &LastRun)]) -> Vec<Family> {
    let mut families = Vec::new();
    for figure in Figure::columns() {
        let unit = base_unit(figure);
        let value = |run: &LastRun| run.figures.iter().find(|(of, _)| *of == figure).map(|(_, value)| value / unit);
        let samples = runs.iter().filter_map(|(labels, run)| Some((labels.clone(), value(run)?)));
        families.push(Family::gauges(series_name(figure), figure.description().about, samples.collect()));
    }
    let valid = runs.iter().map(|(labels, run)| (labels.clone(), f64::from(u8::from(run.valid))));
    families.push(Family::gauges("cell_valid", "1 if the last run is ok, else 0", valid.collect()));
    families.retain(|family| !family.samples.is_empty());
    families
}

/// Returns the name of a figure's series, with the base unit: seconds, not nanoseconds.
fn series_name(figure: Figure) -> String {
    let name = figure.key().replace("_ns", "_seconds");
    let name = name.strip_suffix("_per_s").map_or(name.clone(), |start| format!("{start}_per_second"));
    format!("cell_{name}")
}

/// Returns the divisor from a figure's value to the base unit of its series: ns into seconds.
fn base_unit(figure: Figure) -> f64 {
    if figure.unit() == Unit::Ns { SECOND as f64 } else { 1.0 }
}

/// Returns the metrics of the current run.
fn run(current: &Current, cell: &CellState, snapshot: &Snapshot) -> Vec<Family> {
    let phase = match current.phase {
        Phase::Starting => "starting",
        Phase::Load { from_ns, .. } if snapshot.now_ns < from_ns => "warm-up",
        Phase::Load { .. } => "window",
        Phase::Draining => "draining",
    };
    let labels = with(of_cell(current.cell, cell), "repeat", &current.repeat.to_string());
    let figures = current.figures.unwrap_or_default();
    let offered = snapshot.offered.unwrap_or(figures.sent);
    let messages = [("offered", offered), ("sent", figures.sent), ("received", figures.received)];
    let messages = messages.map(|(count, value)| (label("count", count), value as f64));
    let rates = [("sent", figures.sent_per_s), ("received", figures.received_per_s)];
    let rates = rates.map(|(count, value)| (label("count", count), value));
    let mut families = vec![
        Family::gauges("run_info", "The run that is on", vec![(with(labels, "phase", phase), 1.0)]),
        Family::gauges("run_messages", "Messages of the run that is on, warm-up included", messages.into()),
        Family::gauges("run_messages_per_second", "The same, over about the last second", rates.into()),
    ];
    if let Some(lag_ns) = figures.own_lag_max_ns {
        let help = "Greatest lag of a send that the generator itself caused, over about the last second";
        families.push(Family::gauges("run_own_lag_max_seconds", help, vec![(Vec::new(), seconds(lag_ns))]));
    }
    let window_ns = current.window_ns.map(|from_ns| snapshot.now_ns.saturating_sub(from_ns));
    let faults = current.script.0.iter().map(|fault| {
        let is_on = window_ns
            .is_some_and(|now_ns| now_ns >= fault.at_ns && fault.until_ns().is_none_or(|until_ns| now_ns < until_ns));
        (label("fault", &fault.to_string()), f64::from(u8::from(is_on)))
    });
    let faults = Family::gauges("run_fault", "1 while a fault of the script is due", faults.collect());
    families.extend(Some(faults).filter(|faults| !faults.samples.is_empty()));
    families
}

fn server(system: &str, since_ns: Ns, seen: ServerNow) -> [Family; 2] {
    let series = |value: f64| vec![(label("system", system), value)];
    let cpu = "CPU time of the run's server since it was started";
    let memory = "Resident memory of the run's server";
    [
        Family::counters("server_cpu_seconds", cpu, since_ns, series(seconds(seen.cpu_ns))),
        Family::gauges("server_resident_memory_bytes", memory, series(seen.rss_bytes as f64)),
    ]
}
