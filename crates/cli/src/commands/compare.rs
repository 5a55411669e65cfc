//! `pubmark compare`

use super::shared::{has_results, pairs};
use super::{gates, promises};
use crate::args::CompareArgs;
use crate::failure::{Code, Failure};
use crate::output::{colour, note, print, width};
use pubmark_report::Report;
use pubmark_report::compare::{
    AxisFilter, AxisPair, Comparison, GateOutcome, Gates, History, HistoryReader, Selection, compare_with,
};
use pubmark_study::registry::Registry;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Output of `--json`.
#[derive(Serialize)]
struct Compared<'a> {
    a: &'a str,
    b: &'a str,
    #[serde(flatten)]
    comparison: &'a Comparison,
}

/// Compares results folders, and decides the gates.
pub fn compare(args: &CompareArgs, registry: &Registry) -> Result<Code, Failure> {
    promises::refuse(args.promise.as_deref(), "compare")?;
    let selection = selection(args)?;
    let gates = if args.history { history(args, &selection, registry)? } else { two(args, &selection, registry)? };
    Ok(match gates {
        GateOutcome::Passed => Code::Done,
        GateOutcome::Failed => Code::Gate,
        GateOutcome::TooNoisy if args.allow_noisy => Code::Done,
        GateOutcome::TooNoisy | GateOutcome::Undecided => Code::Run,
    })
}

/// Returns whether two paths lead to one folder.
fn is_same(a: &Path, b: &Path) -> bool {
    a.canonicalize().is_ok_and(|a| b.canonicalize().is_ok_and(|b| a == b))
}

/// Returns the two folders with their names.
fn sides(args: &CompareArgs, selection: &Selection) -> Result<[(PathBuf, String); 2], Failure> {
    let (a, b) = match (args.folders.as_slice(), &selection.across) {
        ([a, b], _) => (a, b),
        ([one], Some(_)) => (one, one),
        ([_], None) => {
            return Err(Failure::usage(
                "two results folders are required: A, and B that is judged by it (or --across AXIS=A,B)",
            ));
        }
        _ => {
            return Err(Failure::usage(
                "two results folders can be compared; of more, --history finds what has changed",
            ));
        }
    };
    let called = |folder: &Path, only: Option<&AxisFilter>| match only {
        Some(only) => format!("{}, {}={}", folder.display(), only.axis, only.values.join(",")),
        None => folder.display().to_string(),
    };
    let across = selection.across.as_ref();
    Ok([(a.clone(), called(a, across.map(|across| &across.a))), (b.clone(), called(b, across.map(|across| &across.b)))])
}

fn two(args: &CompareArgs, selection: &Selection, registry: &Registry) -> Result<GateOutcome, Failure> {
    let [(folder_a, name_a), (folder_b, name_b)] = sides(args, selection)?;
    if selection.across.is_none() && is_same(&folder_a, &folder_b) {
        note(&format!("{} is compared with itself: nothing can have changed", folder_a.display()));
    }
    let a = load(&folder_a, registry)?;
    let other = if folder_a == folder_b { None } else { Some(load(&folder_b, registry)?) };
    let b = other.as_ref().unwrap_or(&a);
    let comparison = compare_with(&a, b, selection).map_err(|error| {
        let narrows = |axis: &str| selection.only.iter().any(|only| only.axis == axis);
        let across = selection.across.as_ref().is_some_and(|across| across.axis() == error.axis());
        let flag = if across && !narrows(error.axis()) { "--across" } else { "--only" };
        Failure::usage(format!("{flag}: {error}"))
    })?;
    let [name_a, name_b] = [name_a.as_str(), name_b.as_str()];
    if comparison.same.is_empty() {
        let narrowed = if selection.only.is_empty() { "" } else { ", or omit --only" };
        let first = |cells: &[String]| cells.first().map_or_else(String::new, |cell| format!(", as `{cell}`"));
        return Err(Failure::usage(format!(
            "{name_a} and {name_b} have no cell in common ({} only in the first{}; {} only in the second{}): \
             compare results of one study{narrowed}",
            comparison.only_a.len(),
            first(&comparison.only_a),
            comparison.only_b.len(),
            first(&comparison.only_b),
        )));
    }
    if args.json {
        let compared = Compared { a: name_a, b: name_b, comparison: &comparison };
        print(&serde_json::to_string_pretty(&compared).unwrap_or_default());
    } else if args.markdown {
        print(&comparison.markdown([name_a, name_b]));
    } else if args.all {
        print(&comparison.terminal([name_a, name_b], width(), colour()));
    } else {
        print(&comparison.brief([name_a, name_b], width(), colour()));
    }
    gates::write_junit(args.gates.junit.as_deref(), "pubmark compare", &comparison.gates)?;
    Ok(comparison.gates_say())
}

fn history(args: &CompareArgs, selection: &Selection, registry: &Registry) -> Result<GateOutcome, Failure> {
    if !selection.gates.bounds.is_empty() {
        return Err(Failure::usage(
            "a history is held against itself: give changes with --fail-on, such as 'p99 > +10%'",
        ));
    }
    let mut reader = HistoryReader::default();
    for folder in &args.folders {
        reader.add(&load(folder, registry)?, &selection.only, &selection.gates.changes);
    }
    let history: History = reader.history(&selection.gates.changes);
    if history.series.is_empty() {
        return Err(Failure::usage("no folder has a reliable figure of such a cell"));
    }
    if args.json {
        print(&serde_json::to_string_pretty(&history).unwrap_or_default());
    } else if args.markdown {
        print(&history.markdown());
    } else {
        print(&history.terminal(width(), colour()));
    }
    gates::write_junit(args.gates.junit.as_deref(), "pubmark compare --history", &history.gates)?;
    Ok(history.gates_say())
}

fn selection(args: &CompareArgs) -> Result<Selection, Failure> {
    let only = pairs(&args.only, "--only")?;
    let across = args.across.iter().cloned().collect::<Vec<_>>();
    let across = match pairs(&across, "--across")?.first() {
        Some((axis, values)) => Some(AxisPair::new(axis, values).ok_or_else(|| {
            Failure::usage(format!(
                "--across {axis}: two different values of an axis, as in --across system=mosquitto,nats"
            ))
        })?),
        None => None,
    };
    Ok(Selection {
        gates: Gates::parse(&args.gates.fail_on, &args.gates.require, true).map_err(Failure::usage)?,
        only: only.iter().map(|(axis, values)| AxisFilter::new(axis, values)).collect(),
        across,
    })
}

fn load(folder: &Path, registry: &Registry) -> Result<Report, Failure> {
    has_results(folder)?;
    Report::load(folder, &|name| registry.find(name)).map_err(Failure::usage)
}
