//! Conditions that must be true after all disturbances.

use super::books::{adds_up, has};
use super::disturber::{Act, Event};
use super::tree::{self, Role};
use crate::support::{Place, stderr, wait_for};
use pubmark_model::record::{Reason, RunRecord};
use pubmark_model::units::{MILLISECOND, Ns, SECOND};
use pubmark_report::Report;
use pubmark_study::registry;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::SystemTime;

/// Time from the command `start` to the start of the schedule.
const LEAD: Ns = 100 * MILLISECOND;
/// Length of a stop within the window that an agent must report …
const PAUSE: Ns = 150 * MILLISECOND;
/// … plus a margin, because a process does not stop all at once.
const MARGIN: Ns = 50 * MILLISECOND;

/// One coordinator's life.
pub struct Attempt {
    /// Acts against it and its processes.
    pub events: Vec<Event>,
    /// Number of earlier records.
    pub records: usize,
    /// Folders and control groups that an earlier coordinator had left.
    pub found: Vec<PathBuf>,
    /// Its end, by both clocks.
    pub ended: SystemTime,
    pub ended_ns: Ns,
    pub status: ExitStatus,
    pub said: String,
    /// Numbers of comparisons with records, for the summary.
    pub sums: Cell<[u32; 4]>,
}

/// Returns all records of a file; only the last line may be incomplete.
pub fn records(path: &Path) -> Vec<RunRecord> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let parse = |(index, line): (usize, &str)| {
        serde_json::from_str(line).unwrap_or_else(|error| panic!("line {} is not a record: {error}", index + 1))
    };
    whole.lines().enumerate().map(parse).collect()
}

/// Checks that the figures of each record agree with each other, and that no run was made twice.
pub fn assert_books(records: &[RunRecord]) {
    let mut made: BTreeMap<String, u64> = BTreeMap::new();
    for record in records {
        let wrong = adds_up(record);
        let text = serde_json::to_string(record).unwrap();
        assert!(wrong.is_empty(), "a record that does not add up: {wrong:#?}\n{text}");
        let place = format!("{:?} {}", record.cell, record.repeat);
        let again = record.error.is_none().then(|| made.insert(place.clone(), record.position)).flatten();
        assert_eq!(again, None, "made twice: {place}");
    }
}

/// Checks that no process started in this place is left.
pub fn assert_nothing_lives(temporary: &Path) {
    let mut left = Vec::new();
    let gone = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        wait_for("all processes to end", || {
            left = tree::with_temporary_folder(temporary);
            left.is_empty().then_some(())
        });
    }));
    let line =
        |pid: i32| std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default().replace('\0', " ");
    let lines: Vec<String> = left.iter().map(|process| line(process.pid)).collect();
    assert!(gone.is_ok(), "left behind: {lines:?}");
}

/// Folders (and so sockets) and control groups of these coordinators.
pub fn leftovers(temporary: &Path, coordinators: &[i32]) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(temporary).unwrap();
    entries.map(|entry| entry.unwrap().path()).chain(tree::control_groups(coordinators)).collect()
}

/// Checks that none is left but those that are excused.
pub fn assert_swept(temporary: &Path, coordinators: &[i32], excused: &[PathBuf]) {
    let mut left = leftovers(temporary, coordinators);
    left.retain(|path| !excused.contains(path));
    assert!(left.is_empty(), "left behind: {left:?}");
}

/// Checks that every run exists once, and that the report exists.
pub fn assert_complete(place: &Place, folder: &str, cells: usize, repeats: usize) {
    let records = records(&place.path(folder).join("runs.jsonl"));
    let failed: Vec<_> = records.iter().filter_map(|record| record.error.as_ref()).collect();
    let made: Vec<_> = records.iter().filter(|record| record.error.is_none()).collect();
    assert_eq!(made.len(), cells * repeats, "failed before: {failed:#?}");
    let report = Report::load(&place.path(folder), &registry::built_in).unwrap();
    let counts = report.counts();
    assert_eq!((counts.failed, counts.missing), (0, 0));
    assert_eq!(counts.valid + counts.partly + counts.invalid, cells * repeats);
    let valid = made.iter().filter(|record| record.verdict.valid).count();
    assert_eq!(counts.valid, valid, "a later record replaces one that failed, and no other");
    let before = std::fs::read_to_string(place.path(folder).join("summary.csv")).unwrap();
    let output = place.run(&["report", folder]);
    assert!(output.status.success(), "{}", stderr(&output));
    let after = std::fs::read_to_string(place.path(folder).join("summary.csv")).unwrap();
    assert_eq!(before, after, "the report is a function of the records");
    assert_eq!(after.lines().count(), cells + 1, "{after}");
}

impl Attempt {
    pub fn assert_ended_in_order(&self) {
        assert!(!self.said.contains("panicked"), "{}", self.said);
        let sent = |act: Act| self.events.iter().any(|event| event.role == Role::Coordinator && event.act == act);
        let orderly = match (self.status.code(), self.status.signal()) {
            (Some(0 | 1 | 3), _) => true,
            (_, Some(9)) => sent(Act::Kill),
            // Before it had a handler.
            (_, Some(signal)) => {
                nix::sys::signal::Signal::try_from(signal).is_ok_and(|signal| sent(Act::Interrupt(signal)))
            }
            _ => false,
        };
        assert!(orderly, "the coordinator ended with {}: {}\n{:#?}", self.status, self.said, self.events);
    }

    /// Returns whether a process was left to remove folders and control groups. If a coordinator was killed, or
    /// interrupted twice, together with its keeper or its agents, the next coordinator removes them.
    pub fn tidies_up(&self) -> bool {
        let last = self.events.iter().rev().find_map(|event| event.position);
        let killed = |event: &Event| event.act == Act::Kill && event.position == last;
        let helpers = self.events.iter().any(|event| killed(event) && event.role != Role::Coordinator);
        let asked = self.events.iter().filter(|event| matches!(event.act, Act::Interrupt(_))).count();
        self.status.code().is_some() && asked < 2 || !helpers
    }

    /// Returns whether it was killed or asked to end, perhaps before it had looked for what an earlier one had left.
    pub fn was_cut_short(&self) -> bool {
        self.events.iter().any(|event| event.role == Role::Coordinator && event.act != Act::Stop)
    }

    /// Checks that the records of this attempt report what happened in it.
    pub fn assert_told(&self, records: &[RunRecord]) {
        for event in &self.events {
            let record = records.iter().find(|record| Some(record.position) == event.position);
            // A run without a record reports nothing wrong.
            let Some(record) = record.filter(|record| record.error.is_none()) else { continue };
            let told = |index: usize, reason: Reason| {
                let text = serde_json::to_string(record).unwrap();
                assert!(has(record, reason), "{reason} is not told: {event:#?}\n{text}");
                self.count(index);
            };
            match (event.act, event.role) {
                (Act::Stop, Role::Agent) if stood_still(event, record) => told(0, Reason::GeneratorSaturated),
                (Act::Stop, Role::Coordinator) if missed_an_edge(event, record) => {
                    assert!(record.machine.late_ns > record.window_ns / 10, "{event:?}: {:?}", record.machine);
                    told(1, Reason::NoisyMachine);
                }
                (Act::Kill, Role::Server) if event.noticed && event.at_ns < self.window_ends_ns(record) => {
                    told(2, Reason::ServerDied);
                }
                (Act::Kill, Role::Agent) if in_window(event, record) => {
                    panic!("its agent was killed, and yet it was made: {event:#?}")
                }
                _ => {}
            }
        }
        for (index, record) in records.iter().enumerate().filter(|(_, record)| record.error.is_none()) {
            let next = records.get(index + 1).map_or(self.ended_ns, |next| self.instant_ns(&next.started));
            let from = self.instant_ns(&record.started);
            if self.events.iter().all(|event| event.until_ns < from || event.at_ns > next) {
                assert_undisturbed(record);
                self.count(3);
            }
        }
    }

    fn count(&self, index: usize) {
        let mut sums = self.sums.get();
        sums[index] += 1;
        self.sums.set(sums);
    }

    /// Returns the earliest possible end of a run's window on the monotonic clock: agents live on while its record is
    /// written, and a server that is killed then need not be reported.
    fn window_ends_ns(&self, record: &RunRecord) -> Ns {
        let started_s = record.deployment.as_ref().and_then(|server| server.started_s).unwrap_or(0.0);
        let server_ns = (started_s * SECOND as f64) as Ns;
        self.instant_ns(&record.started) + server_ns + record.workload.warmup_ns + record.window_ns
    }

    fn instant_ns(&self, time: &str) -> Ns {
        let then = SystemTime::from(time.parse::<jiff::Timestamp>().unwrap());
        self.ended_ns.saturating_sub(self.ended.duration_since(then).unwrap_or_default().as_nanos() as Ns)
    }
}

/// Returns whether an agent certainly stood still for long enough within the window.
fn stood_still(event: &Event, record: &RunRecord) -> bool {
    let Some((told_ns, unsure_ns)) = event.told_ns else { return false };
    let from_ns = told_ns + unsure_ns + LEAD + record.workload.warmup_ns;
    let to_ns = told_ns + record.workload.warmup_ns + record.window_ns;
    event.until_ns.min(to_ns).saturating_sub(event.at_ns.max(from_ns)) > PAUSE + MARGIN
}

/// Returns whether the window was certainly not over.
fn in_window(event: &Event, record: &RunRecord) -> bool {
    event.told_ns.is_some_and(|(told_ns, _)| event.at_ns < told_ns + record.workload.warmup_ns + record.window_ns)
}

/// Returns whether the coordinator certainly stood still that long over one of the window's edges, at which it takes
/// snapshots of server and machine.
fn missed_an_edge(event: &Event, record: &RunRecord) -> bool {
    let Some((told_ns, unsure_ns)) = event.told_ns else { return false };
    let edge_ns = told_ns + record.workload.warmup_ns;
    let late = record.window_ns / 10 + MARGIN;
    [edge_ns, edge_ns + record.window_ns]
        .into_iter()
        .any(|edge_ns| event.at_ns < edge_ns && event.until_ns > edge_ns + unsure_ns + LEAD + late)
}

/// Checks that an undisturbed run keeps its system's promises.
fn assert_undisturbed(record: &RunRecord) {
    let (workload, counts) = (&record.workload, &record.counts);
    let broker = record.connections.is_some();
    let system = registry::built_in(&record.system).unwrap();
    let what = serde_json::to_string(record).unwrap();
    if system.lossless.contains(&workload.pattern) && (!broker || workload.qos > 0) {
        assert_eq!(counts.lost, 0, "{what}");
        assert_eq!(counts.acked, if broker { counts.sent } else { 0 }, "{what}");
    }
    assert_eq!(counts.acked_lost, Some(0), "{what}");
    assert_eq!(counts.damaged() + counts.reordered, 0, "{what}");
    assert!(workload.qos == 1 || counts.duplicated == 0, "{what}");
    assert!(!has(record, Reason::ServerDied) && !has(record, Reason::Clock), "{what}");
}
