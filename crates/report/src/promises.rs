//! The promise at which a study compares systems: which of them broke it in their runs, and are left out of rankings.

use crate::analysis::{CellResult, Status};
use crate::figures::against_counts;
use crate::floor::is_reference;
use crate::text::{clean, whole};
use pubmark_model::cell::{Cell, label};
use pubmark_model::options::Options;
use pubmark_model::promise::Promise;
use pubmark_model::record::{Reason, RunRecord};
use serde::Serialize;
use serde_json::{Map, Value};

/// Longest name of a system with its settings, characters.
const NAME_CHARS: usize = 80;

/// No run tests a promise.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "promise: no run here tests `{promise}`: with qos 1 or 2 and {}. Measure `pubmark card SYSTEM`, and name its folder \
     with --cards DIR",
    promise.keys()
)]
pub struct UntestedPromise {
    /// The promise.
    pub promise: Promise,
}

/// What became of a promise, by system; a system with several settings is named with them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PromiseOutcome {
    /// The promise.
    pub promise: Promise,
    /// Those left out, because acknowledged messages were lost.
    pub broken: Vec<BrokenPromise>,
    /// Those that lost none.
    pub kept: Vec<String>,
    /// Those without a reliable run that tests it. They are ranked.
    pub untested: Vec<String>,
}

/// A system that broke a promise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BrokenPromise {
    /// The system.
    pub system: String,
    /// Acknowledged messages that a subscriber did not receive, over all its runs with the fault.
    pub acked_lost: u64,
    /// Messages that it acknowledged in these runs.
    pub acked: u64,
}

/// A system with the settings that its promises depend on.
#[derive(Clone, Debug, PartialEq)]
struct Server {
    system: String,
    options: Options,
    durable: bool,
}

impl Server {
    fn of(cell: &Cell) -> Server {
        let options = cell.options.clone();
        Server { system: cell.system.name.clone(), options, durable: cell.workload.durable }
    }
}

/// A run that tests a promise: its server, and the messages that were acknowledged and lost.
#[derive(Clone, Debug)]
pub(crate) struct PromiseTest {
    server: Server,
    acked: u64,
    acked_lost: u64,
}

/// Returns the runs that test a promise, each with its cell, of those with reliable counts.
pub(crate) fn tests<'a>(
    promise: Promise,
    runs: impl Iterator<Item = (&'a RunRecord, &'a CellResult)>,
) -> Vec<PromiseTest> {
    // Neither others on the machine nor a refusal make a server forget what it has acknowledged. What arrives too late for
    // the drain is not forgotten.
    let excused = [Reason::NoisyMachine, Reason::MessagesRefused, Reason::ResourceLimitHit];
    let is_reliable = |run: &RunRecord| {
        run.error.is_none() && !run.was_arriving() && against_counts(run).all(|found| excused.contains(&found.reason))
    };
    let tested = runs.filter(|(run, result)| {
        result.is_whole()
            && Promise::tested_in(&result.cell) == Some(promise)
            && run.counts.acked > 0
            && is_reliable(run)
    });
    let test = |(run, result): (&RunRecord, &CellResult)| {
        let (acked, acked_lost) = (run.counts.acked, run.counts.acked_lost?);
        Some(PromiseTest { server: Server::of(&result.cell), acked, acked_lost })
    };
    tested.filter_map(test).collect()
}

/// Marks the cells of systems that broke a promise, and returns the outcome.
pub(crate) fn mark(promise: Promise, tests: &[PromiseTest], cells: &mut [CellResult]) -> PromiseOutcome {
    let mut outcome = PromiseOutcome { promise, broken: Vec::new(), kept: Vec::new(), untested: Vec::new() };
    let mut told: Vec<Server> = Vec::new();
    let names: Vec<String> = cells.iter().map(|result| name(&result.cell, cells)).collect();
    for (result, name) in cells.iter_mut().zip(names) {
        result.breaks_promise = false;
        result.is_reference = is_reference(&result.cell.system);
        if result.is_reference || result.status == Status::Skipped {
            continue;
        }
        let server = Server::of(&result.cell);
        let own = || tests.iter().filter(|test| test.server == server);
        let sum = |of: fn(&PromiseTest) -> u64| own().map(of).fold(0, u64::saturating_add);
        let (acked, acked_lost) = (sum(|test| test.acked), sum(|test| test.acked_lost));
        result.breaks_promise = acked_lost > 0;
        // Like a reference, it is shown and not ranked.
        result.is_reference |= result.breaks_promise;
        if told.contains(&server) {
            continue;
        }
        told.push(server);
        match (acked, acked_lost) {
            (0, _) => outcome.untested.push(name),
            (_, 0) => outcome.kept.push(name),
            _ => outcome.broken.push(BrokenPromise { system: name, acked_lost, acked }),
        }
    }
    outcome
}

/// Returns the name of a cell's system, with the settings in which others of its cells differ.
fn name(cell: &Cell, cells: &[CellResult]) -> String {
    let others = || cells.iter().map(|result| &result.cell).filter(|other| other.system.name == cell.system.name);
    let is_setting = |axis: &str| axis.starts_with("options.") || ["durable", "use"].contains(&axis);
    let differs =
        |axis: &str, value: &Value| is_setting(axis) && others().any(|other| other.axes.get(axis) != Some(value));
    let system = cell.axes.get("system").map(|value| ("system".to_owned(), value.clone()));
    let settings = cell.axes.iter().filter(|(axis, value)| differs(axis, value));
    let axes: Map<String, Value> =
        system.into_iter().chain(settings.map(|(axis, value)| (axis.clone(), value.clone()))).collect();
    clean(&if axes.is_empty() { cell.system.name.clone() } else { label(&axes) }, NAME_CHARS)
}

impl PromiseOutcome {
    /// Returns it in a sentence for each state that a system has.
    pub(crate) fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let number = |amount: u64| whole(amount as f64);
        let broken = self.broken.iter().map(|one| {
            let (lost, acked) = (number(one.acked_lost), number(one.acked));
            format!("{} ({lost} of {acked} acknowledged messages lost)", one.system)
        });
        if !self.broken.is_empty() {
            let broken = broken.collect::<Vec<_>>().join(", ");
            lines.push(format!("Left out of the ranking, because they broke `{}`: {broken}.", self.promise));
        }
        if !self.untested.is_empty() {
            lines.push(format!("Not tested for `{}`: {}.", self.promise, self.untested.join(", ")));
        }
        if !self.kept.is_empty() {
            lines.push(format!("Seen to keep `{}`: {}.", self.promise, self.kept.join(", ")));
        }
        lines
    }
}
