//! Last wills: messages that a server publishes for clients that end without a goodbye (MQTT).

use crate::units::Ns;
use serde::{Deserialize, Serialize};

/// The end of a connection of a publisher with a last will, without a goodbye.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectionEnd {
    /// Number of the publisher.
    pub publisher: u32,
    /// Number of the connection within the publisher's, from 0. Its will carries it.
    pub connection: u32,
    /// Instant, on the clock of instants in messages, ns; `None` if the client does not know that the server had
    /// accepted it, so that its will may come and need not.
    pub at_ns: Option<Ns>,
}

/// Counts of last wills, once for each subscriber of their publisher.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WillCounts {
    /// Wills that should have arrived: of connections that ended without a goodbye.
    pub due: u64,
    /// Those that arrived, each counted once.
    pub received: u64,
    /// Wills that arrived though their connection had not ended, or with a goodbye.
    pub undue: u64,
}

impl WillCounts {
    /// Adds the counts of other subscribers.
    pub fn add(&mut self, other: &WillCounts) {
        self.due = self.due.saturating_add(other.due);
        self.received = self.received.saturating_add(other.received);
        self.undue = self.undue.saturating_add(other.undue);
    }
}
