//! A server that outlives the run for which it was started, so that it can serve others.

use crate::deployment::Deployed;
use crate::scratch::Scratch;
use std::thread;
use std::time::{Duration, Instant};

/// Time that a server has to close what its clients have left.
const CLOSING: Duration = Duration::from_secs(5);
/// Interval at which this is checked.
const LOOK: Duration = Duration::from_millis(5);

/// A server between two runs, with the folder that its keeper removes. It ends on drop.
pub struct StandingServer {
    /// Dropped before its folder is.
    pub(crate) deployed: Deployed,
    pub(crate) scratch: Scratch,
}

impl StandingServer {
    /// True if it lives and listens.
    pub fn is_well(&mut self) -> bool {
        self.deployed.exit_reason().is_none() && self.deployed.is_listening()
    }

    /// True if no client of the run before is left: each has disconnected, or the server
    /// closes its connection within seconds.
    pub fn is_left_alone(&self) -> bool {
        let deadline = Instant::now() + CLOSING;
        while self.deployed.connections() > 0 {
            if Instant::now() >= deadline {
                return false;
            }
            thread::park_timeout(LOOK);
        }
        true
    }
}
