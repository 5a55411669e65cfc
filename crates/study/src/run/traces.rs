//! Finds and removes what the clients of a run have left at a server that stays.

use super::processes::Processes;
use pubmark_host::lanes::in_lanes;
use pubmark_host::ledger::LedgerEntry;
use pubmark_model::cell::Cell;
use pubmark_model::leftovers::{Leftovers, in_words};
use pubmark_model::options::OptionValues;
use pubmark_model::workload::Workload;
use serde_json::Value;

/// Objects that a run may leave, from before its first client connects until they are removed.
pub struct Traces {
    leftovers: Leftovers,
    /// The user's ledger file of it; `None` if the server ends as well, in time.
    entry: Option<LedgerEntry>,
    /// True if all clients were connected. If they were not, and the server admits no client, nothing was made.
    pub has_begun: bool,
}

impl Traces {
    /// Returns the possible leftovers of a flow of a run at a server that existed before or that another run may use; `None` if
    /// its clients leave nothing.
    pub fn of(cell: &Cell, workload: &Workload, run: &str, is_shared: bool) -> Option<Traces> {
        let system = &cell.system;
        let is_attached = cell.options.text("endpoint").is_some();
        if !system.agent.built_in() || !(is_attached || is_shared) {
            return None;
        }
        let begun = jiff::Timestamp::now().to_string();
        let leftovers = Leftovers::of(run, begun, &system.driver, &cell.options, workload)?;
        // Without a file, leftovers are not listed later; the run can be made nevertheless.
        let entry = if is_attached { LedgerEntry::write(&leftovers).ok().flatten() } else { None };
        Some(Traces { leftovers, entry, has_begun: false })
    }

    /// Removes the leftovers after the agents have ended. Returns a line about what remains, with the command that
    /// removes it.
    pub fn remove(mut self, processes: &mut Processes<'_>) -> Option<String> {
        if let Some(endpoints) = &processes.endpoints {
            self.leftovers.options.insert("endpoint".into(), Value::String(endpoints.clients.clone()));
            let trust = endpoints.authority.clone().map(|pem| ("tls_ca".to_owned(), pem.into()));
            self.leftovers.options.extend(trust);
        }
        // The server can be reached from a host of clients.
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
    /// Ends the agents, after a command to stop.
    pub fn end_agents(&mut self) {
        in_lanes(self.hosts.iter_mut().collect(), |host| host.end_agents(true));
    }
}
