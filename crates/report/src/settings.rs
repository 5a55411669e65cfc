//! Whose defaults the systems had, and what of the figures hangs on ours.

use crate::report::Report;
use crate::text::clean;
use pubmark_model::record::FigureGroup;
use pubmark_model::tuning::{SettingDifference, Tuning, Use};
use serde_json::Value;

/// Differences of one system that are named.
const NAMED_MAX: usize = 12;
/// Longest value or name that is shown, characters.
const VALUE_CHARS: usize = 40;

/// Settings of a system's runs.
struct Had<'a> {
    system: &'a str,
    tuning: &'a Tuning,
}

/// Each system once for each of the two that it had, in the order of the runs.
fn had(report: &Report) -> Vec<Had<'_>> {
    let mut all: Vec<Had<'_>> = Vec::new();
    for run in report.runs() {
        let Some(tuning) = run.settings.as_ref().filter(|tuning| !tuning.differences.is_empty()) else { continue };
        if !all.iter().any(|had| had.system == run.system && had.tuning.asked == tuning.asked) {
            all.push(Had { system: &run.system, tuning });
        }
    }
    all
}

/// Returns whether settings are stock or tuned, for the line of values that are the same in all
/// cells; `None` if that is an axis, or if no system has a setting other than the vendor's.
pub(crate) fn constant(report: &Report) -> Option<String> {
    let mut asked: Vec<Use> =
        report.runs().iter().filter_map(|run| run.settings.as_ref()).map(|tuning| tuning.asked).collect();
    asked.dedup();
    match asked.as_slice() {
        [only] if *only == Use::Stock || !had(report).is_empty() => Some(format!("settings {}", only.word())),
        _ => None,
    }
}

/// A line a system on what was not its makers'.
pub(crate) fn lines(report: &Report) -> Vec<String> {
    let axes: Vec<String> = report.study().axis_names().into_iter().map(str::to_owned).collect();
    let line = |had: Had<'_>| {
        let mine = had.tuning.differences.iter().filter(|one| !axes.contains(&format!("options.{}", one.name)));
        let mine: Vec<String> = mine.map(in_words).collect();
        let hidden = mine.len().saturating_sub(NAMED_MAX);
        let more = if hidden > 0 { format!("; and {hidden} more in each record") } else { String::new() };
        let named = mine.into_iter().take(NAMED_MAX).collect::<Vec<_>>().join("; ");
        let system = clean(had.system, VALUE_CHARS);
        match had.tuning.asked {
            Use::Tuned => {
                format!("Settings of {system}, tuned: {named}{more}. `--settings stock` uses the vendor defaults.")
            }
            Use::Stock => format!("Settings of {system}, stock except: {named}{more}."),
        }
    };
    had(report).into_iter().filter(|had| !had.tuning.differences.is_empty()).map(line).collect()
}

/// On which settings figures of this group hang, by system: in words that go
/// behind a finding; empty where there are none.
pub(crate) fn behind(report: &Report, systems: &[&str], group: FigureGroup) -> String {
    let mut all: Vec<String> = Vec::new();
    for had in had(report).iter().filter(|had| systems.contains(&had.system)) {
        let mine = had.tuning.differences.iter().filter(|one| one.moves.contains(&group));
        for text in mine.map(|one| format!("{} {}", clean(had.system, VALUE_CHARS), in_words(one))) {
            if !all.contains(&text) {
                all.push(text);
            }
        }
    }
    let hidden = all.len().saturating_sub(NAMED_MAX);
    all.truncate(NAMED_MAX);
    let more = if hidden > 0 { format!("; and {hidden} more") } else { String::new() };
    match all.as_slice() {
        [] => String::new(),
        all => format!(" Depends on settings that differ from the vendor defaults: {}{more}.", all.join("; ")),
    }
}

fn in_words(one: &SettingDifference) -> String {
    let value = |value: &Value| {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        clean(&text, VALUE_CHARS)
    };
    let stock =
        one.stock.as_ref().map_or_else(|| "no vendor default".to_owned(), |stock| format!("default: {}", value(stock)));
    format!("{}={} ({stock})", clean(&one.name, VALUE_CHARS), value(&one.value))
}
