//! What a report says in words: what is the same everywhere, what is wrong
//! with which runs, and how far the whole can be trusted.

use crate::analysis::{CellResult, Status};
use crate::document::{axis_name, axis_value};
use crate::points::Point;
use crate::report::Report;
use crate::text::clean;
use pubmark_model::fault;
use pubmark_model::study::Study;
use pubmark_stats::{Ranking, Undecided};

/// Cells whose problems are told beneath one table.
const CELLS_MAX: usize = 40;
/// Longest evidence or error that is shown, characters.
const EVIDENCE_CHARS: usize = 160;
/// Longest name of a cell, characters.
const LABEL_CHARS: usize = 120;

/// The settings that are shown, in this order, where they are the same in all
/// cells, each with the value that is not worth a word.
const SHOWN: [(&str, &str); 15] = [
    ("pattern", ""),
    ("transport", ""),
    ("pairs", ""),
    ("publishers", ""),
    ("subscribers", ""),
    ("rate", ""),
    ("arrival", "uniform"),
    ("payload", ""),
    ("qos", "0"),
    ("warmup", ""),
    ("duration", ""),
    ("count", ""),
    ("cpus", ""),
    ("memory", ""),
    ("fault", fault::NONE),
];

/// What is the same in all cells: `pattern pairs · payload 1KiB · 3 runs a cell`.
pub(crate) fn constants(study: &Study) -> String {
    let constant_axes = || study.axes.iter().filter(|axis| axis.values.len() == 1);
    let value = |name: &str| {
        let on_axis = constant_axes().find(|axis| axis.name == name);
        on_axis.map_or_else(|| study.settings.get(name), |axis| axis.values.first())
    };
    let others = constant_axes()
        .map(|axis| axis.name.as_str())
        .filter(|name| *name != "system" && SHOWN.iter().all(|(shown, _)| shown != name))
        .map(|name| (name, ""));
    let mut parts: Vec<String> = SHOWN
        .into_iter()
        .chain(others)
        .filter(|(name, _)| !study.varies_by_part(name))
        .filter_map(|(name, usual)| Some((name, axis_value(name, value(name)?), usual)))
        .filter(|(_, value, usual)| value != usual)
        .map(|(name, value, _)| match (name, value.as_str()) {
            ("rate", rate) if rate != "max" => format!("rate {rate} msg/s"),
            _ => format!("{} {value}", axis_name(name)),
        })
        .collect();
    parts.push(format!("{} a cell", runs(study.repeats() as usize)));
    parts.join(" · ")
}

fn runs(count: usize) -> String {
    match count {
        1 => "1 run".into(),
        count => format!("{count} runs"),
    }
}

/// What is wrong beneath a table: with the ranking, then with the runs.
pub(crate) fn beneath(cells: &[&CellResult], points: &[&Point]) -> Vec<String> {
    let mut notes = Vec::new();
    let single = points
        .iter()
        .any(|point| matches!(point.best, Ranking::Undecided(Undecided::NoInterval(_) | Undecided::Unusable(_))));
    if single {
        notes.push("undecided: a single run has no interval to rank by; more repeats decide it".into());
    }
    let told: Vec<String> = cells.iter().flat_map(|result| problems(result)).collect();
    let hidden = told.len().saturating_sub(CELLS_MAX);
    notes.extend(told.into_iter().take(CELLS_MAX));
    if hidden > 0 {
        notes.push(format!("… and {hidden} more; runs.jsonl has them all"));
    }
    notes
}

/// What is wrong with the runs of a cell, and what they found.
fn problems(result: &CellResult) -> Vec<String> {
    let label = clean(&result.cell.label(), LABEL_CHARS);
    let of_all = |count: usize| format!("{count} of {}", runs(result.runs));
    let mut notes = Vec::new();
    if result.invalid_runs > 0 {
        let reasons: Vec<String> = result
            .reasons
            .iter()
            .map(|count| {
                let evidence = clean(&count.evidence, EVIDENCE_CHARS);
                let times = match count.runs {
                    1 => String::new(),
                    times => format!(" ({times}×)"),
                };
                format!("{}{times}: {evidence}", count.reason)
            })
            .collect();
        let left_out = match result.status {
            Status::Valid => " and left out",
            _ => "",
        };
        let why = match reasons.is_empty() {
            true => "no reason recorded".into(),
            false => reasons.join("; "),
        };
        let share = of_all(result.invalid_runs);
        notes.push(format!("{label}: {share} invalid{left_out}: {why}"));
    }
    if result.failed_runs > 0 {
        let error = result.error.as_deref().unwrap_or_default();
        let error = clean(error, EVIDENCE_CHARS);
        let share = of_all(result.failed_runs);
        notes.push(format!("{label}: {share} failed: {error}"));
    }
    if !result.notes.is_empty() {
        let first = if result.noted_runs > 1 { ", the first" } else { "" };
        let found = result.notes.iter().map(|note| clean(&note.evidence, EVIDENCE_CHARS));
        let found = found.collect::<Vec<_>>().join("; ");
        notes.push(format!("{label}: noted in {}{first}: {found}", of_all(result.noted_runs)));
    }
    notes
}

/// Why cells were left out, one line a reason.
fn skipped(cells: &[CellResult]) -> Vec<String> {
    let mut reasons: Vec<(&str, usize, Vec<&str>)> = Vec::new();
    for result in cells {
        let Some(why) = result.cell.skipped.as_deref() else {
            continue;
        };
        let system = result.cell.system.as_str();
        match reasons.iter_mut().find(|(other, ..)| *other == why) {
            None => reasons.push((why, 1, vec![system])),
            Some((_, count, systems)) => {
                *count += 1;
                if !systems.contains(&system) {
                    systems.push(system);
                }
            }
        }
    }
    let lines = reasons.into_iter().map(|(why, count, systems)| {
        let cells = if count == 1 { "cell" } else { "cells" };
        let systems = clean(&systems.join(", "), LABEL_CHARS);
        let why = clean(why, EVIDENCE_CHARS);
        format!("Skipped, {count} {cells} ({systems}): {why}")
    });
    lines.take(CELLS_MAX).collect()
}

/// How many runs there are of each kind.
pub(crate) fn counted(report: &Report) -> String {
    let counts = report.counts();
    format!(
        "Runs: {} valid, {} invalid, {} failed, {} missing.",
        counts.valid, counts.invalid, counts.failed, counts.missing
    )
}

/// What is to be known of the whole.
pub(crate) fn closing(report: &Report) -> Vec<String> {
    let mut lines = skipped(report.cells());
    if report.torn {
        lines.push(
            "The last record breaks off and was left out; \
             `pubmark run --resume` makes that run again."
                .into(),
        );
    }
    if report.strays > 0 {
        lines.push(format!("Records of no cell of this study, left out: {}.", report.strays));
    }
    if report.study().quick {
        lines.push("This is a quick, cut-down study: a first look, not figures to quote.".into());
    }
    lines
}
