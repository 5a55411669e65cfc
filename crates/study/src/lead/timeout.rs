//! Error about agents that did not answer in time.

use super::assignment::AgentPlan;
use super::refusal::{Refusal, Silence};
use super::{Leader, Phase};
use pubmark_model::units::Ns;
use std::collections::HashSet;

/// Maximum number of silent agents that are named.
const NAMED: usize = 16;

impl Leader<'_> {
    /// Returns the error that names the agents missing at the end of this phase, and the known causes.
    pub(super) fn too_late(&self, deadline_ns: Ns, now: Ns) -> Refusal {
        let missing: Vec<usize> = match self.phase {
            Phase::Sending => self.unsent(),
            Phase::Hearing => self.unready.missing().collect(),
            _ => self.awaited.missing().collect(),
        };
        let heard = missing.iter().filter_map(|index| self.heard_ns[*index]).max();
        let known = Silence {
            late_ns: now.saturating_sub(deadline_ns),
            quiet_ns: heard.map(|heard_ns| now.saturating_sub(heard_ns)),
        };
        let agents = missing.iter().take(NAMED).map(|index| self.agents[*index].name.clone()).collect();
        Refusal::Silent { agents, more: missing.len().saturating_sub(NAMED), what: self.wanted(), known }
    }

    /// Returns the agents with publishers that have not reported what they sent.
    fn unsent(&self) -> Vec<usize> {
        let totals = self.totals.iter().enumerate();
        let told: HashSet<(usize, u32)> =
            totals.flat_map(|(flow, totals)| totals.iter().map(move |total| (flow, total.publisher))).collect();
        let lacks = |index: &usize| {
            let AgentPlan { flow, clients, .. } = &self.agents[*index];
            clients.iter().any(|client| client.role.sends() && !told.contains(&(*flow, client.id)))
        };
        (0..self.agents.len()).filter(lacks).collect()
    }
}
