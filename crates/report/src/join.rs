//! Several results folders of one study as one result: sweeps of one axis that were
//! made one after the other.

use crate::records::{Records, place, read_records};
use crate::report::{Report, ReportError, study_of};
use pubmark_model::cell::Cell;
use pubmark_model::record::RunRecord;
use pubmark_model::study::{Axis, Study};
use pubmark_model::system::{System, Systems};
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Keys that identify a machine.
const MACHINE: [&str; 4] = ["processor", "cores", "memory_bytes", "kernel"];

/// Keys that say how often each cell was measured, and in which order.
const OF_RUNS: [&str; 2] = ["repeats", "seed"];

/// Why folders make no one result.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    /// A folder cannot be read, or what they say together cannot be analysed.
    #[error(transparent)]
    Report(#[from] ReportError),
    /// They are of different studies.
    #[error(
        "{} and {} are no two sweeps of one study: they differ in {what}; without --join they stand beside each other",
        one.display(),
        other.display()
    )]
    Differ {
        /// The first.
        one: PathBuf,
        /// The other.
        other: PathBuf,
        /// In what.
        what: String,
    },
    /// A folder's runs cannot be added to a study.
    #[error("the runs in {} cannot be added: {what}", folder.display())]
    NotAdded {
        /// The folder.
        folder: PathBuf,
        /// The difference.
        what: String,
    },
}

impl Report {
    /// Reads results folders whose studies differ in the values of one axis alone, and
    /// analyses all their records as those of one study. What was measured in several
    /// has all their repeats.
    ///
    /// # Errors
    /// Where a folder cannot be read, or the studies or the machines are others.
    pub fn joined(first: &Path, others: &[PathBuf], systems: Systems<'_>) -> Result<Report, JoinError> {
        let (mut study, environment) = study_of(first, systems)?;
        let (mut whole, mut counts, mut axis) = (Records::default(), Counts::default(), None);
        add(&mut whole, read_records(first).map_err(ReportError::from)?, &mut counts);
        for folder in others {
            let (other, elsewhere) = study_of(folder, systems)?;
            let records = read_records(folder).map_err(ReportError::from)?;
            let differ = |what: String| JoinError::Differ { one: first.into(), other: folder.clone(), what };
            if let Some(key) = MACHINE.iter().find(|key| environment[**key] != elsewhere[**key]) {
                return Err(differ(format!("their machines ({key})")));
            }
            merge(&mut study, &other, &mut axis).map_err(differ)?;
            add(&mut whole, records, &mut counts);
            study.systems.extend(other.systems);
        }
        let mut report = Report::of(study, &whole)?;
        let name = std::iter::once(first).chain(others.iter().map(PathBuf::as_path)).map(name_of).collect::<Vec<_>>();
        report.set_origin(environment, name.join(" + "));
        Ok(report)
    }
}

/// Reads the runs of a study's cells that earlier folders hold, so that they can stand before
/// the runs of a new one. Each folder is at least one session of its own; repeats are numbered on.
///
/// # Errors
/// Where a folder cannot be read, or is of another study, machine or version of pubmark.
pub fn earlier_runs(
    folders: &[PathBuf],
    (study, cells): (&Study, &[Cell]),
    environment: &Map<String, Value>,
    systems: Systems<'_>,
) -> Result<Vec<RunRecord>, JoinError> {
    let (mut whole, mut counts) = (Records::default(), Counts::default());
    for folder in folders {
        let (other, elsewhere) = study_of(folder, systems)?;
        let not_added = |what: String| Err(JoinError::NotAdded { folder: folder.clone(), what });
        let differs = |key: &&&str| environment.get(**key) != Some(&elsewhere[**key]);
        if let Some(key) = MACHINE.iter().chain(&["pubmark"]).find(differs) {
            return not_added(format!("`{key}` was {}, and is {}", elsewhere[*key], environment[*key]));
        }
        if bare(study) != bare(&other) {
            return not_added("it is of a study that differs in more than the values of axes".into());
        }
        let mut records = read_records(folder).map_err(ReportError::from)?;
        records.runs.retain(|run| run.error.is_none() && cells.iter().any(|cell| cell.axes == run.cell));
        add(&mut whole, records, &mut counts);
    }
    Ok(whole.runs)
}

/// The repeats and sessions of the folders before.
#[derive(Clone, Default)]
struct Counts {
    /// Repeats, by cell.
    repeats: HashMap<String, u32>,
    sessions: u32,
}

/// Takes in the records of a folder: a repeat that is there already is another one, and a
/// session as well.
fn add(whole: &mut Records, more: Records, counts: &mut Counts) {
    let before = counts.clone();
    for mut run in more.runs {
        let cell = place(&run.cell);
        run.repeat = run.repeat.saturating_add(before.repeats.get(&cell).copied().unwrap_or_default());
        run.session = run.session.saturating_add(before.sessions);
        let most = counts.repeats.entry(cell).or_default();
        *most = (*most).max(run.repeat);
        counts.sessions = counts.sessions.max(run.session);
        whole.runs.push(run);
    }
    whole.torn |= more.torn;
}

/// Adds the values of another study, where it differs in those of one axis alone; else
/// says in what. `known` is the axis in which those before it did.
fn merge(study: &mut Study, other: &Study, known: &mut Option<String>) -> Result<(), String> {
    let axes = |study: &Study| -> Vec<(Option<String>, Axis)> {
        let of_parts =
            study.parts.iter().flat_map(|part| part.axes.iter().map(|axis| (Some(part.name.clone()), axis.clone())));
        study.axes.iter().map(|axis| (None, axis.clone())).chain(of_parts).collect()
    };
    let (mine, theirs) = (axes(study), axes(other));
    let places = |all: &[(Option<String>, Axis)]| {
        let mut names: Vec<(Option<String>, String)> =
            all.iter().map(|(part, axis)| (part.clone(), axis.name.clone())).collect();
        names.sort();
        names
    };
    if places(&mine) != places(&theirs) {
        return Err("the names of their axes".into());
    }
    for (part, axis) in &theirs {
        let own = mine.iter().find(|(of, one)| of == part && one.name == axis.name);
        if own.is_some_and(|(_, one)| same_values(&one.values, &axis.values)) {
            continue;
        }
        if known.as_ref().is_some_and(|known| *known != axis.name) {
            return Err(format!("the values of `{}` and of `{}`", known.as_deref().unwrap_or_default(), axis.name));
        }
        *known = Some(axis.name.clone());
    }
    let is_changed = |one: &Arc<System>| other.systems.iter().any(|same| same.name == one.name && same != one);
    if bare(study) != bare(other) || study.systems.iter().any(is_changed) {
        return Err("more than the values of an axis".into());
    }
    let Some(name) = known.as_deref() else { return Ok(()) };
    let of_parts =
        study.parts.iter_mut().flat_map(|part| part.axes.iter_mut().map(|axis| (Some(part.name.clone()), axis)));
    let own: Vec<_> = study.axes.iter_mut().map(|axis| (None, axis)).chain(of_parts).collect();
    for (part, axis) in own.into_iter().filter(|(_, axis)| axis.name == name) {
        let more = theirs.iter().filter(|(of, one)| *of == part && one.name == name).flat_map(|(_, one)| &one.values);
        for value in more {
            if !axis.values.contains(value) {
                axis.values.push(value.clone());
            }
        }
        if axis.values.iter().all(Value::is_number) {
            axis.values.sort_by(|one, other| one.as_f64().unwrap_or(0.0).total_cmp(&other.as_f64().unwrap_or(0.0)));
        }
    }
    Ok(())
}

fn same_values(one: &[Value], other: &[Value]) -> bool {
    one.len() == other.len() && one.iter().all(|value| other.contains(value))
}

/// Returns the parts of a study that have to be equal, as text: all but the values of axes,
/// repeats, order, title and question.
fn bare(study: &Study) -> String {
    let mut bare = study.clone();
    let of_parts = bare.parts.iter_mut().flat_map(|part| &mut part.axes);
    bare.axes.iter_mut().chain(of_parts).for_each(|axis| axis.values.clear());
    bare.axes.sort_by(|one, other| one.name.cmp(&other.name));
    bare.parts.iter_mut().for_each(|part| part.axes.sort_by(|one, other| one.name.cmp(&other.name)));
    (bare.title, bare.question, bare.reference) = (String::new(), String::new(), None);
    bare.lift(&OF_RUNS);
    bare.axes.retain(|axis| !OF_RUNS.contains(&axis.name.as_str()));
    bare.to_toml()
}

/// The name of a folder.
fn name_of(folder: &Path) -> String {
    let whole = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    whole.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}
