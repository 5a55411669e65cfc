//! Conclusion about other processes on the machine, if they made most figures unreliable.

use super::sentence::Sentence;
use crate::report::Report;
use crate::text::number;
use pubmark_model::record::{Reason, RunRecord};
use pubmark_stats::median;

/// Returns the runs that others disturbed, if they are at least half of all.
fn disturbed(report: &Report) -> Option<Vec<&RunRecord>> {
    let is_noisy = |run: &&RunRecord| run.verdict.reasons.iter().any(|finding| finding.reason == Reason::NoisyMachine);
    let noisy: Vec<&RunRecord> = report.whole_runs().filter(is_noisy).collect();
    let made = report.whole_runs().filter(|run| run.error.is_none()).count();
    (!noisy.is_empty() && 2 * noisy.len() >= made).then_some(noisy)
}

/// Returns whether others disturbed at least half of the runs.
pub(crate) fn is_busy(report: &Report) -> bool {
    disturbed(report).is_some()
}

pub(super) fn finding(report: &Report) -> Option<Sentence> {
    let noisy = disturbed(report)?;
    let of = |each: fn(&RunRecord) -> f64| median(&noisy.iter().map(|run| each(run)).collect::<Vec<f64>>());
    let (others, steal) = (of(|run| run.machine.foreign_cores)?, of(|run| run.machine.steal)?);
    let cores = noisy.iter().map(|run| run.machine.cores).max().unwrap_or(0);
    let stolen = match steal {
        steal if steal > 0.01 => format!(", and the hypervisor took {} % of their time", number(steal * 100.0)),
        _ => String::new(),
    };
    let text = format!(
        "The machine was busy in {} of {} runs: others used {others:.1} of {cores} processors{stolen} (median). Only large \
         differences can be shown, and figures marked ! are unreliable.",
        noisy.len(),
        report.whole_runs().count()
    );
    Some(Sentence { about: "machine", outcome: "note", text })
}
