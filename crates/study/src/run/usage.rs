//! What agents say that they used, beside what their hosts saw of their processes.

use crate::lead::{Leader, Refusal};
use pubmark_host::lines::{Facts, Look};
use pubmark_judge::assemble::AgentReport;
use pubmark_model::relations::SeenUsage;

/// Holds each agent's usage against what its host saw at the window's edges: by agent,
/// its host and its number there; by host, the two looks and its facts.
///
/// # Errors
/// The first agent that says something else.
pub fn check(
    leader: &Leader<'_>,
    results: &[AgentReport],
    seats: &[(usize, usize)],
    looks: (&[Look], &[Look]),
    facts: &[Facts],
) -> Result<(), Refusal> {
    for (index, (report, (host, number))) in results.iter().zip(seats).enumerate() {
        let (Some(before), Some(after)) = (looks.0.get(*host), looks.1.get(*host)) else { continue };
        let of = |look: &Look| look.agents.get(*number).copied().flatten();
        let (Some(begin), Some(end)) = (of(before), of(after)) else { continue };
        let seen = SeenUsage {
            at_ns: (before.at_ns, after.at_ns),
            cpu_ns: end.cpu_ns.saturating_sub(begin.cpu_ns),
            rss_bytes: (begin.rss_bytes, end.rss_bytes),
            processors: facts.get(*host).map_or(1, |facts| facts.cpus.len() + facts.isolated.len()) as u64,
        };
        leader.check_usage(index, &report.result.usage, end.pid, &seen)?;
    }
    Ok(())
}
