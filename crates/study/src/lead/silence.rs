//! What is known of agents that did not do in time what they should.

use super::{Leader, Phase, Refusal};
use pubmark_model::units::{Ns, SECOND, format_time};
use std::collections::HashSet;
use std::fmt;

/// How many of the agents that are silent are named.
const NAMED: usize = 16;
/// A deadline that is noticed later than this was slept through.
const SLEPT: Ns = SECOND;

/// What is known when the time is over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Silence {
    /// How late the coordinator noticed the deadline, ns.
    pub late_ns: Ns,
    /// How long ago any of them has said anything, ns; none if none has.
    pub quiet_ns: Option<Ns>,
}

impl fmt::Display for Silence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Of what the agents did meanwhile, nothing is known.
        if self.late_ns >= SLEPT {
            let late = format_time(self.late_ns / SECOND * SECOND);
            return write!(f, "; pubmark itself did not run for {late}: it was stopped, or the machine was suspended");
        }
        match self.quiet_ns {
            Some(quiet_ns) if quiet_ns >= SLEPT => {
                write!(f, "; the last that was heard of them is {} old", format_time(quiet_ns / SECOND * SECOND))
            }
            Some(_) => Ok(()),
            None => write!(f, "; nothing was heard of them at all"),
        }
    }
}

impl Leader<'_> {
    /// Who is missing at the end of this phase, and what is known of them.
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

    /// The agents with publishers that have not said what they sent.
    fn unsent(&self) -> Vec<usize> {
        let told: HashSet<u32> = self.totals.iter().map(|total| total.publisher).collect();
        let lacks = |index: &usize| {
            let clients = &self.agents[*index].clients;
            clients.iter().any(|client| client.role.sends() && !told.contains(&client.id))
        };
        (0..self.agents.len()).filter(lacks).collect()
    }
}
