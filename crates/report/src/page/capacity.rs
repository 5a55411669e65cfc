//! Searches for a capacity, as the page draws them.

use crate::capacity::{CapacityResult, LoadFigures, standing, why};
use crate::report::Report;
use crate::text::clean;
use pubmark_model::capacity::LoadAxis;
use serde::Serialize;

/// Longest sentence, name and reason that are shown, characters.
const SENTENCE_CHARS: usize = 2_000;
const NAME_CHARS: usize = 120;
const WHY_CHARS: usize = 300;
/// Steps that a page holds one by one, of all its searches together. A search makes
/// some 20 of them; only a study that was measured for its objective has more.
const STEPS_MAX: usize = 5_000;

/// A search, or a study's loads for one system and workload.
#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "Capacity"))]
pub struct CapacityView {
    system: String,
    label: String,
    /// The answer: the interval, and what gave out first.
    sentence: String,
    /// The objective, as it would be typed.
    until: String,
    /// The load that is searched.
    over: &'static str,
    /// The load in words.
    load: &'static str,
    /// Unit of the load.
    #[cfg_attr(test, ts(type = "Unit"))]
    unit: &'static str,
    /// Null where nothing failed, or nothing held.
    estimate: Option<f64>,
    /// If nothing failed, the highest load that held.
    lo: Option<f64>,
    /// Null of a lower bound; where nothing held, the lowest load that failed.
    hi: Option<f64>,
    /// Confidence level of the interval, 0 to 1.
    level: f64,
    /// True if the system may carry more, because the load generator reached its limit first.
    lower_bound: bool,
    /// True if the interval is as narrow as requested.
    settled: bool,
    /// True if a run of full length held at the low end.
    confirmed: bool,
    limited_by: Option<&'static str>,
    /// Standing of its system among those of its point, as a word.
    standing: &'static str,
    /// Each load that was asked, ascending.
    curve: Vec<LoadFigures>,
    /// Empty where they are too many.
    steps: Vec<StepView>,
}

/// A step.
#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "CapacityStep"))]
struct StepView {
    /// `None` if the search has a folder of its own.
    cell: Option<usize>,
    load: f64,
    /// `generator`, `disturbed` and `not-made` say nothing of the system.
    #[cfg_attr(test, ts(type = "\"held\" | \"failed\" | \"disturbed\" | \"generator\" | \"not-made\""))]
    outcome: &'static str,
    /// True if it counts; a step that shows nothing is repeated.
    counts: bool,
    /// True for the run of full length.
    confirms: bool,
    /// The broken bound; empty if the step held.
    why: String,
    window_s: f64,
    offered_per_s: f64,
    delivered_per_s: f64,
    p50_ns: Option<u64>,
    p99_ns: Option<u64>,
    server_cpu_cores: Option<f64>,
    server_rss_bytes: Option<u64>,
}

/// The searches of a report; none where its study names no objective.
pub fn capacities(report: &Report) -> Vec<CapacityView> {
    let all = report.capacities();
    let steps: usize = all.iter().map(|found| found.climb.steps().len()).sum();
    all.iter().map(|found| view(found, steps <= STEPS_MAX)).collect()
}

fn view(found: &CapacityResult, each: bool) -> CapacityView {
    let (goal, answer) = (found.climb.goal(), found.answer());
    let steps = found.climb.steps().iter().enumerate().map(|(at, step)| StepView {
        cell: found.cells.get(at).copied(),
        load: goal.over.amount(step.load),
        outcome: step.outcome.word(),
        counts: step.counts,
        confirms: step.confirms,
        why: why(step, WHY_CHARS),
        window_s: step.window_s,
        offered_per_s: step.offered_per_s,
        delivered_per_s: step.delivered_per_s,
        p50_ns: step.p50_ns,
        p99_ns: step.p99_ns,
        server_cpu_cores: step.server_cpu_cores,
        server_rss_bytes: step.server_rss_bytes,
    });
    let [estimate, lo, hi] = found.amounts();
    let mut curve = found.curve();
    curve.iter_mut().for_each(|at| at.load = goal.over.amount(at.load));
    curve.sort_by(|one, other| one.load.total_cmp(&other.load));
    CapacityView {
        system: clean(found.system(), NAME_CHARS),
        label: clean(&found.label, NAME_CHARS),
        sentence: clean(&found.sentence(), SENTENCE_CHARS),
        until: clean(&goal.until.to_string(), NAME_CHARS),
        over: goal.over.word(),
        load: goal.over.unit(),
        unit: match goal.over {
            LoadAxis::Rate => "per_s",
            LoadAxis::Payload | LoadAxis::Memory => "bytes",
            LoadAxis::Cpus | LoadAxis::Pairs | LoadAxis::Publishers | LoadAxis::Subscribers | LoadAxis::Burst => {
                "count"
            }
        },
        estimate,
        lo,
        hi,
        level: answer.level,
        lower_bound: answer.lower_bound,
        settled: answer.settled,
        confirmed: answer.confirmed,
        limited_by: answer.limited_by.map(|limit| limit.word()),
        standing: standing(found),
        curve,
        steps: steps.filter(|_| each).collect(),
    }
}
