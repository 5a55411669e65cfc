//! One step of a capacity search: the result of a run at its load.

use super::limit::{self, CapacityLimit, GREW};
use crate::figure::backlog;
use crate::objective::Objective;
use crate::record::{BacklogOutlook, FigureGroup, Finding, Reason, RunRecord};
use crate::words::words;
use serde::Serialize;

/// The part of a study that confirms the result of the others.
pub const CONFIRMING: &str = "confirm";

words! {
    /// Outcome of a step.
    StepOutcome {
        /// The objective held.
        Held = "held",
        /// The objective did not hold.
        Failed = "failed",
        /// The objective did not hold, and other programs used the machine.
        Disturbed = "disturbed",
        /// The generator could not produce the load.
        Generator = "generator",
        /// The run could not be made.
        NotMade = "not-made",
    }
}

/// A step, with the figures of its run that the curve shows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CapacityStep {
    /// The load.
    pub load: f64,
    /// The outcome.
    pub outcome: StepOutcome,
    /// True if the step counts. An inconclusive step is repeated.
    pub counts: bool,
    /// True if this was a run of full length, which confirms the others.
    pub confirms: bool,
    /// True if the server ended in the run without a scripted fault.
    pub server_ended: bool,
    /// The conditions that were not met, in words.
    pub unmet: Vec<String>,
    /// The part that was at its limit; `None` if the objective held.
    pub limit: Option<CapacityLimit>,
    /// Evidence for `limit`.
    pub evidence: Option<String>,
    /// Length of the window, s.
    pub window_s: f64,
    /// Messages due, per second.
    pub offered_per_s: f64,
    /// Messages that arrived during the window, per second.
    pub delivered_per_s: f64,
    /// Median latency, ns.
    pub p50_ns: Option<u64>,
    /// 99th percentile of latency, ns.
    pub p99_ns: Option<u64>,
    /// Processors that the server used.
    pub server_cpu_cores: Option<f64>,
    /// Peak memory of the server, bytes.
    pub server_rss_bytes: Option<u64>,
    /// The backlog at the window's end, if a fault's was not gone by then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prospect: Option<BacklogOutlook>,
    /// Processor time per delivered message, s: of the server or, if there is none, of the agents.
    pub work_s: Option<f64>,
}

impl CapacityStep {
    /// Judges the run of a step.
    pub(super) fn of(record: &RunRecord, objective: &Objective, load: f64) -> CapacityStep {
        let (outcome, unmet) = judged(record, objective);
        let (limit, evidence) = match outcome {
            StepOutcome::Held => (None, None),
            StepOutcome::Generator => {
                (Some(CapacityLimit::Generator), late(record, objective).map(|finding| finding.evidence.clone()))
            }
            StepOutcome::NotMade => (Some(CapacityLimit::Server), record.error.clone()),
            // If other programs used the machine, they made the generator late.
            StepOutcome::Failed | StepOutcome::Disturbed => {
                let (limit, evidence) = limit::of(record, objective);
                (Some(limit), Some(evidence))
            }
        };
        let latency = record.times.latency.as_ref();
        CapacityStep {
            load,
            outcome,
            counts: true,
            confirms: record.cell.get("part").is_some_and(|part| part == CONFIRMING),
            server_ended: ended(record),
            unmet,
            limit,
            evidence,
            window_s: record.window_ns as f64 / 1e9,
            offered_per_s: record.rates.offered_per_s,
            delivered_per_s: record.rates.delivered_per_s,
            p50_ns: latency.map(|all| all.p50),
            p99_ns: latency.map(|all| all.p99),
            server_cpu_cores: record.server.as_ref().map(|server| server.cpu_cores),
            server_rss_bytes: record.server.as_ref().map(|server| server.rss_bytes_max),
            prospect: record.recovery.and_then(|recovery| recovery.prospect),
            work_s: work_s(record),
        }
    }
}

impl CapacityStep {
    /// Describes the outcome: `held`, `failed: …`.
    pub fn sentence(&self) -> String {
        let full = if self.confirms { " at full length" } else { "" };
        let why = self.unmet.first().or(self.evidence.as_ref()).map_or("", String::as_str);
        match self.outcome {
            StepOutcome::Held => format!("held{full}"),
            StepOutcome::Failed => format!("failed{full}: {why}"),
            outcome => {
                let again = if self.counts { "" } else { ", to be repeated" };
                format!("{outcome}{full}{again}: {why}")
            }
        }
    }
}

fn work_s(record: &RunRecord) -> Option<f64> {
    let agents = || {
        let used = record.generator.as_ref()?.cpu_cores;
        Some(used - record.pacing.as_ref().map_or(0.0, |pacing| pacing.spent_cores))
    };
    let cores = record.server.as_ref().map(|server| server.cpu_cores).or_else(agents)?;
    let delivered_per_s = record.rates.delivered_per_s;
    (cores > 0.0 && delivered_per_s > 0.0).then(|| cores / delivered_per_s)
}

fn reasons(record: &RunRecord, reason: Reason) -> impl Iterator<Item = &Finding> {
    record.verdict.reasons.iter().filter(move |finding| finding.reason == reason)
}

/// True if the server ended in a run without scripted faults.
fn ended(record: &RunRecord) -> bool {
    record.faults.is_empty() && reasons(record, Reason::ServerDied).next().is_some()
}

/// Judges a run. Other programs on the machine, and a machine that is short of its own time, only
/// make figures worse: an objective that holds nevertheless holds. If it does not hold, the run is
/// inconclusive, unless the server ended, which nothing else causes. If the generator was late, its
/// delay shows what it can have changed.
fn judged(record: &RunRecord, objective: &Objective) -> (StepOutcome, Vec<String>) {
    if let Some(error) = &record.error {
        return (StepOutcome::NotMade, vec![error.clone()]);
    }
    let unmet = unmet(record, objective);
    let noisy = reasons(record, Reason::NoisyMachine).any(|finding| touches(finding, objective));
    // Figures of processor and memory use are unknown if other programs used them.
    let worse_only = !objective.groups().contains(&FigureGroup::Cost);
    let outcome = match (unmet.is_empty(), noisy, late(record, objective).is_some()) {
        (true, true, _) if worse_only => StepOutcome::Held,
        (true, false, false) => StepOutcome::Held,
        (false, ..) if ended(record) => StepOutcome::Failed,
        (_, true, _) => StepOutcome::Disturbed,
        (_, false, true) => match objective.despite_lag(record) {
            Some(true) if unmet.is_empty() => StepOutcome::Held,
            Some(false) => StepOutcome::Failed,
            _ => StepOutcome::Generator,
        },
        (false, false, false) => StepOutcome::Failed,
    };
    (outcome, unmet)
}

fn touches(finding: &Finding, objective: &Objective) -> bool {
    finding.figures.iter().any(|group| objective.groups().contains(group))
}

/// Returns why the generator did not produce the requested load: its own delay affects the
/// objective, or it sent less.
fn late<'a>(record: &'a RunRecord, objective: &Objective) -> Option<&'a Finding> {
    let missed = reasons(record, Reason::OfferedRateMissed).next().is_some();
    reasons(record, Reason::GeneratorSaturated).find(|finding| missed || touches(finding, objective))
}

/// Returns the conditions that were not met. An objective does not hold in a state that does not
/// last, and a load that was not accepted is not carried, whatever the objective says.
fn unmet(record: &RunRecord, objective: &Objective) -> Vec<String> {
    let terms = objective.unmet(record).into_iter().map(|(term, value)| format!("{}: it was {value}", term.text()));
    let mut unmet: Vec<String> = terms.collect();
    let broken = [
        Reason::ServerDied,
        Reason::ConnectionsMissed,
        Reason::ResourceLimitHit,
        Reason::OfferedRateMissed,
        Reason::MessagesRefused,
    ];
    unmet.extend(
        record
            .verdict
            .reasons
            .iter()
            .filter(|found| broken.contains(&found.reason))
            .map(|found| found.evidence.clone()),
    );
    let of_flows: Vec<RunRecord> = record.flows.iter().filter_map(|flow| record.of_flow(flow.clone())).collect();
    let all = if of_flows.is_empty() { std::slice::from_ref(record) } else { &of_flows };
    // What waits for slow or late subscribers is a backlog as requested.
    let grew = all.iter().filter(|own| !own.workload.lets_messages_wait()).map(backlog).fold(0.0, f64::max);
    if grew > GREW {
        unmet.push(format!("a backlog grew by {:.0} % of what was due", grew * 100.0));
    }
    unmet
}
