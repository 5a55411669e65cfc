//! What the clients of a run have left at a server that stays, and its removal.

use super::processes::Processes;
use pubmark_host::lanes::in_lanes;
use pubmark_host::ledger::LedgerEntry;
use pubmark_model::cell::Cell;
use pubmark_model::leftovers::{Leftovers, in_words};
use pubmark_model::options::OptionValues;
use pubmark_model::system::System;
use serde_json::Value;

/// What a run may leave, from before its first client connects until it is removed.
pub struct Traces {
    leftovers: Leftovers,
    /// The user's file of it; none where the server ends as well, in time.
    entry: Option<LedgerEntry>,
    /// Whether all clients were connected. Where they were not, and the server lets
    /// nobody in, nothing was made.
    pub has_begun: bool,
}

impl Traces {
    /// Of a run at a server that was there before, or that another run may have; none
    /// where its clients leave nothing.
    pub fn of(cell: &Cell, system: &System, run: &str, is_shared: bool) -> Option<Traces> {
        let is_attached = cell.options.text("endpoint").is_some();
        if !system.agent.built_in() || !(is_attached || is_shared) {
            return None;
        }
        let begun = jiff::Timestamp::now().to_string();
        let leftovers = Leftovers::of(run, begun, &system.driver, &cell.options, &cell.workload)?;
        // Without a file what stays is not listed later; the run can be made all the same.
        let entry = if is_attached { LedgerEntry::write(&leftovers).ok().flatten() } else { None };
        Some(Traces { leftovers, entry, has_begun: false })
    }

    /// Removes what is left, when the agents have ended. What stays, in a line, with the
    /// command that removes it.
    pub fn remove(mut self, processes: &mut Processes<'_>) -> Option<String> {
        if let Some(endpoints) = &processes.endpoints {
            self.leftovers.options.insert("endpoint".into(), Value::String(endpoints.clients.clone()));
        }
        // Where clients were, the server can be reached.
        let host = processes.sides.iter().rev().flatten().next().copied().unwrap_or_default();
        let removed = processes.hosts[host].remove(&self.leftovers);
        let close = |entry: Option<LedgerEntry>| entry.into_iter().for_each(LedgerEntry::close);
        let (what, why) = match removed {
            Ok(removal) if removal.left.is_empty() && removal.why.is_none() => {
                close(self.entry);
                return None;
            }
            Ok(removal) if !removal.is_let_in && !self.has_begun => {
                close(self.entry);
                return None;
            }
            Ok(removal) => (in_words(&removal.left), removal.why.unwrap_or_default()),
            Err(error) => (String::new(), error.to_string()),
        };
        let what = if what.is_empty() { "what the run has made" } else { &what };
        let server = self.leftovers.endpoint().map(|endpoint| endpoint.to_string()).unwrap_or_default();
        let command = self.leftovers.command();
        self.entry.as_ref().map(|_| format!("{what} may stay at {server}: {why}; to remove it: {command}"))
    }
}

impl Processes<'_> {
    /// Ends the agents, which are told.
    pub fn end_agents(&mut self) {
        in_lanes(self.hosts.iter_mut().collect(), |host| host.end_agents(true));
    }
}
