//! The plan of a bare loop, its messages to and from pubmark, and the message that it
//! sends.

use pubmark_model::units::Ns;
use pubmark_wire::mqtt::{Publish, Qos, Version, encode};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// Digits of a connection's number in its topic, so that all topics have equal lengths.
const DIGITS: usize = 6;

/// The plan of a loop.
#[derive(Clone, Debug)]
pub struct LoopPlan {
    /// The server.
    pub to: SocketAddr,
    /// First part of the topics, unique to the run.
    pub run: String,
    /// Connections, 1 to 1,000,000.
    pub connections: u32,
    /// Messages a second over all connections, at least 1.
    pub per_s: u64,
    /// Length of a message's payload, bytes.
    pub payload_bytes: usize,
    /// Minimum time between two wake-ups, ns.
    pub quantum_ns: Ns,
    /// Time from the start to the window, ns.
    pub warmup_ns: Ns,
    /// Length of the window, ns.
    pub window_ns: Ns,
}

impl LoopPlan {
    pub(super) fn topic(&self, connection: u32) -> String {
        format!("pubmark/{}/{connection:0DIGITS$}", self.run)
    }

    /// Returns the length of a message on the wire, bytes.
    pub fn message_bytes(&self) -> Result<usize, String> {
        Ok(ReadyMessage::new(self)?.bytes.len())
    }
}

/// The report of a loop that all its connections are open.
#[derive(Debug, Serialize, Deserialize)]
pub struct Ready {
    /// Number of connections.
    pub connections: u32,
}

/// The start command of a loop.
#[derive(Debug, Serialize, Deserialize)]
pub struct LoopStart {
    /// Instant of the start on the clock of this host, ns.
    pub start_ns: Ns,
}

/// The total number of messages, sent to a receiver so that it knows when it has all of
/// them.
#[derive(Debug, Serialize, Deserialize)]
pub struct All {
    /// Number of messages.
    pub messages: u64,
}

/// The result of a loop.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LoopResult {
    /// CPU time, user and system, in the window, ns.
    pub cpu_ns: Ns,
    /// Actual length of the window, ns.
    pub wall_ns: Ns,
    /// Messages of the window.
    pub messages: u64,
    /// Total number of messages.
    pub total_messages: u64,
    /// Total bytes: written by a sender, including handshakes; read by a receiver after
    /// them.
    pub total_bytes: u64,
    /// Send lag of the window's messages, as a histogram.
    pub lag: Option<String>,
}

/// A prepared message; only the number in its topic changes.
pub(super) struct ReadyMessage {
    pub(super) bytes: Vec<u8>,
    digits: usize,
}

impl ReadyMessage {
    pub(super) fn new(plan: &LoopPlan) -> Result<ReadyMessage, String> {
        let topic = plan.topic(0);
        let payload = vec![0x5a; plan.payload_bytes];
        let publish = Publish::plain(Qos::AtMostOnce, 0, &topic, &payload);
        let mut bytes = Vec::new();
        encode::publish(&mut bytes, Version::V3_1_1, &publish).map_err(|error| error.to_string())?;
        let digits = bytes.len() - payload.len() - DIGITS;
        Ok(ReadyMessage { bytes, digits })
    }

    #[inline]
    pub(super) fn of(&mut self, mut connection: u32) -> &[u8] {
        for digit in self.bytes[self.digits..self.digits + DIGITS].iter_mut().rev() {
            *digit = b'0' + (connection % 10) as u8;
            connection /= 10;
        }
        &self.bytes
    }
}
