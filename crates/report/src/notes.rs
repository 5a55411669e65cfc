//! Notes of a report: values that are the same everywhere, problems of runs, and how reliable the
//! whole is.

use crate::analysis::{CellResult, ReasonCount};
use crate::axes::{axis_name, axis_value};
use crate::build_info;
use crate::document::Rows;
use crate::modes;
use crate::not_run;
use crate::points::Point;
use crate::promises::PromiseOutcome;
use crate::ranking::{Placing, Why};
use crate::report::Report;
use crate::settings;
use crate::text::{self, clean, clean_ends, percent};
use crate::words::{FAILED, MISSING, NOT_COMPARABLE, OPEN, UNRELIABLE};
use pubmark_model::fault;
use pubmark_model::figure::Figure;
use pubmark_model::record::{FigureGroup, Reason};
use pubmark_stats::REPEATS_MORE_MAX;

/// Cells whose problems are told beneath one table.
const CELLS_MAX: usize = 40;
/// Longest evidence that is shown, characters.
const EVIDENCE_CHARS: usize = 160;
/// Longest error that is shown, characters: its end has the last lines of a log.
const ERROR_CHARS: usize = 400;
/// Longest name of a cell, characters.
const LABEL_CHARS: usize = 120;

/// The settings that are shown, in this order, where they are the same in all
/// cells, each with the value that is not worth a word.
const SHOWN: [(&str, &str); 17] = [
    ("pattern", ""),
    ("transport", ""),
    ("pairs", ""),
    ("publishers", ""),
    ("subscribers", ""),
    ("agents", "1"),
    ("rate", ""),
    ("arrival", "uniform"),
    ("payload", ""),
    ("qos", "0"),
    ("warmup", ""),
    ("duration", ""),
    ("count", ""),
    ("cpus", ""),
    ("memory", ""),
    ("pin", "none"),
    ("fault", fault::NONE),
];

/// Returns the values that are the same in all cells: `pattern pairs · payload 1KiB · 3 runs a
/// cell`.
pub(crate) fn constants(report: &Report) -> String {
    let study = report.study();
    let constant_axes = || study.axes.iter().filter(|axis| axis.values.len() == 1);
    let value = |name: &str| {
        let on_axis = constant_axes().find(|axis| axis.name == name);
        on_axis.map_or_else(|| study.settings.get(name), |axis| axis.values.first().cloned())
    };
    let others = constant_axes()
        .map(|axis| axis.name.as_str())
        .filter(|name| *name != "system" && *name != "use" && SHOWN.iter().all(|(shown, _)| shown != name))
        .map(|name| (name, ""));
    let mut parts: Vec<String> = SHOWN
        .into_iter()
        .chain(others)
        .filter(|(name, _)| !study.varies_by_part(name))
        .filter_map(|(name, usual)| Some((name, axis_value(name, &value(name)?), usual)))
        .filter(|(_, value, usual)| value != usual)
        .map(|(name, value, _)| match (name, value.as_str()) {
            ("rate", rate) if rate != "max" => format!("rate {rate} msg/s"),
            _ => format!("{} {value}", axis_name(name)),
        })
        .collect();
    parts.extend(settings::constant(report));
    parts.push(match study.until_decided() {
        true => "runs until its questions are decided".to_owned(),
        false => format!("{} a cell", runs(study.repeats() as usize)),
    });
    let sessions = report.runs().iter().map(|run| run.session).max().unwrap_or(1);
    parts.extend((sessions > 1).then(|| format!("{sessions} sessions")));
    parts.join(" · ")
}

fn runs(count: usize) -> String {
    text::counted(count, "run")
}

/// Returns the notes below a table: on the ranking, then on the runs. `is_busy`: the report says at
/// its beginning that others used the machine.
pub(crate) fn beneath(cells: &[&CellResult], points: &[&Point], is_busy: bool) -> Vec<String> {
    let mut notes = standing(points);
    let told: Vec<String> = cells.iter().flat_map(|result| problems(result, is_busy)).collect();
    let hidden = told.len().saturating_sub(CELLS_MAX);
    notes.extend(told.into_iter().take(CELLS_MAX));
    if hidden > 0 {
        notes.push(format!("… and {hidden} more; runs.jsonl has them all"));
    }
    notes
}

/// Returns what keeps points open and what would help, each once.
fn standing(points: &[&Point]) -> Vec<String> {
    let mut notes: Vec<String> = Vec::new();
    let mut more: Vec<Option<u32>> = Vec::new();
    for ranked in points.iter().filter_map(|point| point.best()) {
        let note = match &ranked.placing {
            Placing::Open { why: Why::TooFew, .. } | Placing::Winner(_) | Placing::Tie(_) => continue,
            Placing::Open { repeats_more, why: Why::Noise(_) } => {
                more.push(*repeats_more);
                continue;
            }
            Placing::Open { why, .. } => format!("{OPEN}: {}", why.text()),
            Placing::Unranked { least, most } => format!(
                "{NOT_COMPARABLE}: the shares delivered differ ({} to {}), so the throughputs are not of the same work",
                percent(*least),
                percent(*most)
            ),
        };
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
    notes.splice(0..0, open(&more));
    notes
}

/// Returns how many more repeats leave one candidate at each point that noise keeps open.
fn open(more: &[Option<u32>]) -> Option<String> {
    let known = || more.iter().flatten();
    let places = format!("{OPEN} at {}", text::counted(more.len(), "point"));
    (!more.is_empty()).then(|| match known().min().zip(known().max()) {
        Some((least, most)) if least == most => format!("{places}: about {} needed", repeats(*least)),
        Some((least, most)) => format!("{places}: about {least} to {} needed", repeats(*most)),
        None => format!("{places}: more than {REPEATS_MORE_MAX} more repeats needed"),
    })
}

/// Returns this many more repeats in words.
pub(crate) fn repeats(count: u32) -> String {
    text::counted(count as usize, "more repeat")
}

/// Figures in words, as `p50 and p99`; empty where it is all of them.
pub(crate) fn touched(figures: &[FigureGroup]) -> String {
    if FigureGroup::ALL.iter().all(|group| figures.contains(group)) {
        return String::new();
    }
    let words: Vec<&str> = figures.iter().map(|group| group.word()).collect();
    match words.as_slice() {
        [] => String::new(),
        [only] => (*only).into(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// Reasons with their evidence.
fn against(reasons: &[ReasonCount]) -> String {
    let said = |count: &ReasonCount| {
        let times = if count.runs == 1 { String::new() } else { format!(" ({}×)", count.runs) };
        let evidence = clean_ends(&count.evidence, EVIDENCE_CHARS);
        format!("{}{times}: {evidence}", count.reason)
    };
    match reasons {
        [] => "no reason recorded".into(),
        reasons => reasons.iter().map(said).collect::<Vec<_>>().join("; "),
    }
}

/// Returns the problems of a cell's runs, and their notes.
fn problems(result: &CellResult, is_busy: bool) -> Vec<String> {
    let label = clean(&result.cell.label(), LABEL_CHARS);
    let of_all = |count: usize| format!("{count} of {}", runs(result.runs));
    let mut notes = Vec::new();
    let [partly, invalid] = [0, 1].map(|kind: usize| {
        let is_told = |count: &&ReasonCount| !(is_busy && count.reason == Reason::NoisyMachine);
        result.reasons[kind].iter().filter(is_told).cloned().collect::<Vec<ReasonCount>>()
    });
    if result.invalid_runs > 0 && !(is_busy && invalid.is_empty()) {
        let share = of_all(result.invalid_runs);
        notes.push(format!("{label}: {share} {UNRELIABLE}: {}", against(&invalid)));
    }
    if result.partly_runs > 0 && !(is_busy && partly.is_empty()) {
        let mut figures: Vec<FigureGroup> = partly.iter().flat_map(|count| count.figures.clone()).collect();
        figures.sort();
        figures.dedup();
        let share = of_all(result.partly_runs);
        let figures = match touched(&figures) {
            all if all.is_empty() => "some figures".into(),
            figures => figures,
        };
        notes.push(format!("{label}: {share} {UNRELIABLE} for {figures}: {}", against(&partly)));
    }
    if result.failed_runs > 0 {
        let error = result.error.as_deref().unwrap_or_default();
        let error = clean_ends(error, ERROR_CHARS);
        let share = of_all(result.failed_runs);
        notes.push(format!("{label}: {share} {FAILED}: {error}"));
    }
    notes.extend(modes::note(result).map(|modes| format!("{label}: {modes}")));
    if !result.notes.is_empty() {
        let first = if result.noted_runs > 1 { ", the first" } else { "" };
        let found = result.notes.iter().map(|note| clean(&note.evidence, EVIDENCE_CHARS));
        let found = found.collect::<Vec<_>>().join("; ");
        // Acknowledged and lost messages come before the reasons, other notes after them.
        let lossy = result.figures.get(Figure::ACKED_LOST).is_some_and(|lost| lost.value > 0.0);
        let place = if lossy { 0 } else { notes.len() };
        notes.insert(place, format!("{label}: noted in {}{first}: {found}", of_all(result.noted_runs)));
    }
    notes
}

/// Returns how many runs are in each state: `9 runs: 6 ok, 2 unreliable, 1 failed; 3 missing`.
pub(crate) fn counted(report: &Report) -> String {
    let counts = report.counts();
    let missing = if counts.missing > 0 { format!("; {} {MISSING}", counts.missing) } else { String::new() };
    let again = match counts.made_again {
        0 => String::new(),
        again => format!("; {again} repeated, because the one before was {UNRELIABLE} or {FAILED}"),
    };
    format!("{}{missing}{again}.", counts.words())
}

/// Warning about records of schema 1.
const TIMER: &str = "Recorded by pubmark 0.1, whose latencies contain the load generator's own timer (send lag): \
    compare them with latencies from the due time only.";

/// Returns remarks on the whole report.
pub(crate) fn closing(report: &Report, rows: Rows) -> Vec<String> {
    let mut lines: Vec<String> = report.promise().map(PromiseOutcome::lines).unwrap_or_default();
    lines.extend(settings::lines(report));
    lines.extend(build_info::lines(report));
    lines.extend(not_run::lines(report.cells(), rows));
    lines.extend(records(report));
    if report.study().quick {
        lines.push("This is a quick, shortened study: do not publish its figures.".into());
    }
    lines
}

/// Returns what is to be known of the records themselves.
pub(crate) fn records(report: &Report) -> Vec<String> {
    let mut lines = Vec::new();
    if report.has_timer_in_latency() {
        lines.push(TIMER.into());
    }
    if report.torn {
        lines.push(
            "The last record is incomplete and was ignored; \
             `pubmark run --resume` repeats that run."
                .into(),
        );
    }
    if report.strays > 0 {
        lines.push(format!("Records of no cell of this study, ignored: {}.", report.strays));
    }
    lines
}
