//! Trust, settings and next steps: the last lines of the short result.

use super::block::NAME_CHARS;
use super::line::{Line, Tone, Wrapping};
use crate::analysis::{CellResult, ReasonCount, Status, merged};
use crate::claims::ClaimOutcome;
use crate::document::Rows;
use crate::findings::machine::is_busy;
use crate::not_run;
use crate::notes::{self, touched};
use crate::promises::PromiseOutcome;
use crate::ranking::{Placing, Why};
use crate::report::Report;
use crate::text::{clean, clean_ends, counted, time};
use pubmark_model::figure::Figure;
use pubmark_model::record::{Reason, RunRecord};
use pubmark_model::tuning::{SettingDifference, Use};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Reasons that are named.
const REASONS_MAX: usize = 3;
/// Lines about skipped cells.
const SKIPPED_MAX: usize = 2;
/// Longest error, in characters.
const ERROR_CHARS: usize = 240;
/// Longest value of a setting, in characters.
const VALUE_CHARS: usize = 24;
/// Most repeats that are suggested; more take too long to be good advice.
const REPEATS_SUGGESTED_MAX: u32 = 50;

/// Places of the whole result.
#[derive(Clone, Debug)]
pub struct BriefPlaces {
    /// The page.
    pub page: PathBuf,
    /// The results folders.
    pub folders: Vec<PathBuf>,
}

impl BriefPlaces {
    /// Returns the command that prints all tables.
    fn all(&self) -> String {
        let folders: Vec<String> = self.folders.iter().map(|folder| path(folder)).collect();
        let join = if folders.len() > 1 { " --join" } else { "" };
        format!("pubmark report {}{join} --all", folders.join(" "))
    }
}

fn path(path: &Path) -> String {
    crate::command::quoted(&path.display().to_string())
}

/// Returns the counts of runs with reasons, claims, settings that differ from the
/// vendor's, notes on records, and where to read on.
pub(crate) fn lines(report: &Report, places: &BriefPlaces, width: usize) -> Vec<Line> {
    let two = Wrapping { width, lines_max: 2, indent: 2 };
    let one = Wrapping { width, lines_max: 1, indent: 2 };
    let counts = report.counts();
    let is_ok = counts.partly + counts.invalid + counts.failed + counts.missing == 0;
    let mut lines = two.lines(&trust(report), if is_ok { Tone::Plain } else { Tone::Warning });
    // Its end has the last lines of a log, and must not be cut off.
    let error = Wrapping { lines_max: 5, ..two };
    lines.extend(failure(report).iter().flat_map(|text| error.lines(text, Tone::Warning)));
    lines.extend(claims(report, places).iter().flat_map(|text| one.lines(text, Tone::Plain)));
    let promise = report.promise().map(PromiseOutcome::lines).unwrap_or_default();
    lines.extend(promise.iter().flat_map(|text| two.lines(text, Tone::Plain)));
    lines.extend(clocks(report).iter().flat_map(|text| two.lines(text, Tone::Warning)));
    lines.extend(settings(report, width).iter().flat_map(|text| one.lines(text, Tone::Plain)));
    let skipped = not_run::lines(report.cells(), Rows::ToBeRun);
    lines.extend(skipped.iter().take(SKIPPED_MAX).flat_map(|text| one.lines(text, Tone::Muted)));
    lines.extend(notes::records(report).iter().flat_map(|text| two.lines(text, Tone::Warning)));
    lines.push(Line::of(format!("Page: {}", places.page.display()), Tone::Plain));
    lines.push(Line::of(format!("All figures: {}", places.all()), Tone::Plain));
    lines.extend(next(report).map(|text| Line::of(text, Tone::Plain)));
    lines
}

/// Returns the number of runs of each state, with the reasons of unreliable ones.
fn trust(report: &Report) -> String {
    let counts = report.counts();
    let unreliable = counts.partly + counts.invalid;
    let all = counts.valid + unreliable + counts.failed + counts.missing;
    let kinds = [(unreliable, "unreliable"), (counts.failed, "failed"), (counts.missing, "missing")];
    let mut parts = vec![format!("{}: {} ok", counted(all, "run"), counts.valid)];
    parts.extend(kinds.iter().filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count} {word}")));
    let reasons = if unreliable > 0 { reasons(report) } else { Vec::new() };
    let reasons = if reasons.is_empty() { String::new() } else { format!(". Unreliable: {}", reasons.join("; ")) };
    let again = match counts.made_again {
        0 => String::new(),
        again => format!("; {again} made again after an unreliable or failed run"),
    };
    format!("{}{again}{reasons}", parts.join(", "))
}

/// Returns the reasons of unreliable runs, the most frequent first, each with its figures
/// and the number of runs.
fn reasons(report: &Report) -> Vec<String> {
    let found = merged(report.cells().iter().filter(|result| result.is_whole()).flat_map(CellResult::all_reasons));
    let more = found.len().saturating_sub(REASONS_MAX);
    let said = |ReasonCount { reason, runs, mut figures, .. }: ReasonCount| {
        // A single count lists its figures as its runs came.
        figures.sort();
        figures.dedup();
        let figures = match touched(&figures) {
            all if all.is_empty() => "all figures".to_owned(),
            figures => figures,
        };
        let late = if reason == Reason::GeneratorSaturated { lateness(report) } else { String::new() };
        format!("{figures} of {} ({reason}{late})", counted(runs, "run"))
    };
    let mut said: Vec<String> = found.into_iter().take(REASONS_MAX).map(said).collect();
    said.extend((more > 0).then(|| counted(more, "more reason")));
    said
}

/// Returns the largest p99 of the generator delay among runs with that reason.
fn lateness(report: &Report) -> String {
    let is_late = |run: &&RunRecord| run.verdict.reasons.iter().any(|found| found.reason == Reason::GeneratorSaturated);
    let late = report.runs().iter().filter(is_late).filter_map(|run| Figure::OWN_LAG_P99.value(run));
    late.reduce(f64::max).map_or_else(String::new, |late| format!(", p99 delay {}", time(late)))
}

/// Returns the first error of a run.
fn failure(report: &Report) -> Option<String> {
    let result = report.cells().iter().find(|result| result.failed_runs > 0)?;
    let error = clean_ends(result.error.as_deref().unwrap_or_default(), ERROR_CHARS);
    Some(format!("failed: {}: {error}", clean(&result.cell.label(), ERROR_CHARS)))
}

/// Returns the number of claims with each outcome.
fn claims(report: &Report, places: &BriefPlaces) -> Option<String> {
    let claims = report.claims();
    let of = |outcome: ClaimOutcome| claims.iter().filter(move |claim| claim.outcome == outcome);
    let outcomes = [ClaimOutcome::Holds, ClaimOutcome::Fails, ClaimOutcome::Open, ClaimOutcome::Untested];
    let said = outcomes.into_iter().filter_map(|outcome| {
        let count = of(outcome).count();
        let word = match outcome {
            ClaimOutcome::Holds if count > 1 => "hold",
            ClaimOutcome::Holds => "holds",
            ClaimOutcome::Fails if count > 1 => "fail",
            ClaimOutcome::Fails => "fails",
            ClaimOutcome::Open => "open",
            ClaimOutcome::Untested => "not tested here",
        };
        (count > 0).then(|| format!("{count} {word}"))
    });
    let said = said.collect::<Vec<_>>().join(", ");
    let folder = places.folders.first().map(|folder| path(folder)).unwrap_or_default();
    (!claims.is_empty()).then(|| format!("{}: {said}. pubmark claims {folder}", counted(claims.len(), "claim")))
}

/// Returns the error that the clocks of several hosts may cause in latencies.
fn clocks(report: &Report) -> Option<String> {
    let bounds = report.cells().iter().filter_map(|result| result.figures.clock_bound(Figure::LATENCY_P50));
    let most = bounds.reduce(f64::max)?;
    Some(format!("Latencies may be wrong by up to {}: that is how far the clocks of the hosts may differ.", time(most)))
}

/// Returns the settings that differ from the vendor's, as many as fit into a line. Those
/// that affect a figure come first.
fn settings(report: &Report, width: usize) -> Option<String> {
    let axes = report.study().axis_names();
    let mut all: Vec<(&str, Use, &SettingDifference)> = Vec::new();
    for run in report.runs() {
        let Some(tuning) = &run.settings else { continue };
        for one in &tuning.differences {
            let is_axis = axes.iter().any(|axis| axis.strip_prefix("options.") == Some(one.name.as_str()));
            let is_known = |(system, asked, other): &(&str, Use, &SettingDifference)| {
                *system == run.system && *asked == tuning.asked && other.name == one.name
            };
            if !is_axis && !all.iter().any(is_known) {
                all.push((&run.system, tuning.asked, one));
            }
        }
    }
    all.sort_by_key(|(_, _, one)| one.moves.is_empty());
    let mut text = String::from("Settings other than the vendor's: ");
    for (index, (system, _, one)) in all.iter().enumerate() {
        let stock = one.stock.as_ref().map_or_else(|| "none known".to_owned(), value);
        let named = format!(
            "{} {}={} (default: {stock})",
            clean(system, NAME_CHARS),
            clean(&one.name, VALUE_CHARS),
            value(&one.value)
        );
        let more = match index {
            0 => format!("{} (--all)", all.len()),
            _ => format!("{} more", all.len() - index),
        };
        let rest = if index + 1 == all.len() { 0 } else { more.chars().count() + 2 };
        if text.chars().count() + named.chars().count() + rest > width {
            text.push_str(&more);
            break;
        }
        text.push_str(&named);
        text.push_str(if index + 1 == all.len() { "" } else { "; " });
    }
    (!all.is_empty()).then_some(text)
}

fn value(value: &Value) -> String {
    clean(&value.as_str().map_or_else(|| value.to_string(), str::to_owned), VALUE_CHARS)
}

/// Returns the command for a more certain result.
fn next(report: &Report) -> Option<String> {
    if report.counts().missing > 0 || report.cells().iter().all(|result| result.status == Status::Skipped) {
        return None;
    }
    if is_busy(report) {
        return Some("Find what keeps the machine busy: pubmark doctor".into());
    }
    let open = report.points().iter().filter(|point| point.rivals > 1).filter_map(|point| point.best());
    let more = open.filter_map(|ranked| match &ranked.placing {
        Placing::Open { why: Why::Noise(_), repeats_more } => *repeats_more,
        Placing::Open { why: Why::TooFewBlocks(_), repeats_more } => Some(repeats_more.unwrap_or(1)),
        _ => None,
    });
    let most = more.max()?;
    let repeats = report.study().repeats().saturating_add(most).min(REPEATS_SUGGESTED_MAX);
    report.command_with_repeats(repeats).map(|command| format!("More certain: {command}"))
}
