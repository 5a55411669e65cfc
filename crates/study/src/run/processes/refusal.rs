//! What ends a run that its agents alone would wait for, and what is said of a run that they did not
//! play to its end.

use super::{Means, Processes};
use crate::context::{RunError, failed};
use crate::lead::{Leader, Refusal};
use pubmark_host::clock;
use std::thread;
use std::time::{Duration, Instant};

/// How long the news of a server's end may take, after its clients have lost their connections.
const NEWS: Duration = Duration::from_millis(500);
/// How often it is asked for.
const LOOK: Duration = Duration::from_millis(10);

impl Processes<'_> {
    /// Why the server that was started for the run ended, if it has, or does so now.
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

    /// Ends a run whose clients cannot meet, because the server has reached a limit of its own and
    /// says so in its log.
    ///
    /// # Errors
    /// The log's line.
    pub(super) fn look_for_limit(&mut self, leader: &Leader<'_>) -> Result<(), RunError> {
        if leader.has_begun() || !self.watch.is_due(clock::now()) {
            return Ok(());
        }
        match self.hosts[self.server].server_limit() {
            None => Ok(()),
            Some(line) => Err(failed(format!(
                "the server has reached a limit of its own, and the clients could not hear each other: its log says: {line}"
            ))),
        }
    }

    /// Why there is no record, with the way to more evidence if there is any.
    pub(super) fn refused(&self, refusal: &Refusal, means: &Means<'_, '_>) -> RunError {
        let Refusal::Silent { agents, .. } = refusal else { return failed(refusal.to_string()) };
        let (logs, position) = (means.context.logs, means.place.position);
        let log = |agent: &String| logs.join(format!("run-{position}-{agent}.log"));
        let written = agents.iter().any(|agent| std::fs::metadata(log(agent)).is_ok_and(|log| log.len() > 0));
        // The logs of other machines are brought here when the run is over.
        let elsewhere = self.hosts.iter().any(|host| !host.spec.reach.is_empty());
        failed(match (written, elsewhere) {
            (true, _) => format!("{refusal}; their logs are in {}", logs.display()),
            (false, true) => format!("{refusal}; their logs, if they wrote any, are in {}", logs.display()),
            (false, false) => format!("{refusal}; they wrote no log"),
        })
    }
}
