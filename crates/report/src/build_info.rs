//! Build information, as agents report it.

use crate::report::Report;
use crate::text::clean;
use serde::Serialize;

/// Longest name or text that is shown, characters.
const TEXT_CHARS: usize = 200;
/// Texts of one system that are shown.
const TEXTS_MAX: usize = 24;

/// A system, and what its agents say of how it is made.
#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(crate) struct Made {
    /// The system.
    pub system: String,
    /// What, and how.
    pub texts: Vec<(String, String)>,
}

/// Returns build information by system, in the order of the runs: that of the agents of its first
/// run that has any, each text once.
pub(crate) fn made(report: &Report) -> Vec<Made> {
    let mut all: Vec<Made> = Vec::new();
    for run in report.runs().iter().filter(|run| run.agents.iter().any(|agent| !agent.made.is_empty())) {
        let system = clean(&run.system, TEXT_CHARS);
        if all.iter().any(|made| made.system == system) {
            continue;
        }
        let mut texts: Vec<(String, String)> = Vec::new();
        for (what, how) in run.agents.iter().flat_map(|agent| &agent.made) {
            let text = (clean(what, TEXT_CHARS), clean(how, TEXT_CHARS));
            if !texts.contains(&text) && texts.len() < TEXTS_MAX {
                texts.push(text);
            }
        }
        all.push(Made { system, texts });
    }
    all
}

/// Systems of which each has a line; of more the page and the records tell.
const LINES_MAX: usize = 4;

/// A line a system, where they are few.
pub(crate) fn lines(report: &Report) -> Vec<String> {
    let line = |Made { system, texts }: Made| {
        let texts: Vec<String> = texts.into_iter().map(|(what, how)| format!("{what} {how}")).collect();
        format!("How {system} is made: {}.", texts.join("; "))
    };
    let made = made(report);
    match made.len() {
        0..=LINES_MAX => made.into_iter().map(line).collect(),
        count => vec![format!("How each of {count} systems is made stands on the page, and in each record.")],
    }
}
