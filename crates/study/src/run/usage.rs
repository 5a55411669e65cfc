//! Compares the usage that agents report with what their hosts measured.

use crate::lead::{Leader, Refusal};
use pubmark_host::lines::{Facts, MachineSnapshot};
use pubmark_judge::assemble::AgentReport;
use pubmark_model::relations::SeenUsage;

/// Compares each agent's usage with the snapshots of its host at the window's edges. By agent: its host and its number
/// there; by host: the two snapshots and its facts.
///
/// # Errors
/// Returns the first agent whose report differs.
pub fn check(
    leader: &Leader<'_>,
    results: &[AgentReport],
    seats: &[(usize, usize)],
    looks: (&[MachineSnapshot], &[MachineSnapshot]),
    facts: &[Facts],
) -> Result<(), Refusal> {
    for (index, (report, (host, number))) in results.iter().zip(seats).enumerate() {
        let (Some(before), Some(after)) = (looks.0.get(*host), looks.1.get(*host)) else { continue };
        let of = |look: &MachineSnapshot| look.agents.get(*number).copied().flatten();
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
