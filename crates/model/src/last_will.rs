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

/// The statement of MQTT that a server breaks which publishes a will that is not due.
pub const UNDUE_WILL: &str =
    "[MQTT-3.1.2-10] a will was published though its client had disconnected, or was connected";

/// A will that arrived, though its connection had not ended when its publisher had sent everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnexpectedWill {
    /// Number of the publisher.
    pub publisher: u32,
    /// Number of the connection that the will names.
    pub connection: u64,
    /// Subscribers that received it.
    pub count: u64,
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
