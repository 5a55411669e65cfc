//! Errors that end a run which its agents alone would wait for, and error texts of runs that agents did not finish.

use super::{Means, Processes};
use crate::context::{RunError, failed};
use crate::lead::{Leader, Refusal};
use pubmark_host::clock;
use std::thread;
use std::time::{Duration, Instant};

/// Maximum delay between the loss of clients' connections and the news of the server's end.
const NEWS: Duration = Duration::from_millis(500);
/// Interval at which the server's end is checked.
const LOOK: Duration = Duration::from_millis(10);

impl Processes<'_> {
    /// Returns why the server that was started for the run ended, if it has or does so now.
    pub fn server_exit_soon(&mut self) -> Option<String> {
        let deadline = Instant::now() + NEWS;
        loop {
            let exit = self.server_exit();
            if exit.is_some() || self.members.is_empty() || Instant::now() >= deadline {
                return exit;
            }
            thread::park_timeout(LOOK);
        }
    }

    /// Ends a run whose clients cannot connect because the server has reached one of its own limits and logs that.
    ///
    /// # Errors
    /// Returns the log's line.
    pub(super) fn look_for_limit(&mut self, leader: &Leader<'_>) -> Result<(), RunError> {
        if leader.has_begun() || !self.watch.is_due(clock::now()) {
            return Ok(());
        }
        match self.of_members.iter().find_map(|host| self.hosts[*host].server_limit()) {
            None => Ok(()),
            Some(line) => Err(failed(format!(
                "the server has reached a limit of its own, and the clients could not hear each other: its log says: {line}"
            ))),
        }
    }

    /// Returns why there is no record, and where there is more evidence, if any.
    pub(super) fn refused(&self, refusal: Refusal, means: &Means<'_, '_>) -> RunError {
        let Refusal::Silent { agents, .. } = &refusal else { return refusal.into() };
        let (logs, position) = (means.context.logs, means.place.position);
        let log = |agent: &String| logs.join(format!("run-{position}-{agent}.log"));
        let written = agents.iter().any(|agent| std::fs::metadata(log(agent)).is_ok_and(|log| log.len() > 0));
        // The logs of other machines are copied here when the run is over.
        let elsewhere = self.hosts.iter().any(|host| !host.spec.reach.is_empty());
        failed(match (written, elsewhere) {
            (true, _) => format!("{refusal}; their logs are in {}", logs.display()),
            (false, true) => format!("{refusal}; their logs, if they wrote any, are in {}", logs.display()),
            (false, false) => format!("{refusal}; they wrote no log"),
        })
    }
}
