//! Roles of clients.

use serde::{Deserialize, Serialize};

/// The role of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Sends by the schedule.
    Publisher,
    /// Receives.
    Subscriber,
    /// Sends by the schedule and waits for the echo.
    Requester,
    /// Echoes.
    Replier,
}

impl Role {
    /// True if it sends by the schedule.
    pub fn sends(self) -> bool {
        matches!(self, Role::Publisher | Role::Requester)
    }
}
