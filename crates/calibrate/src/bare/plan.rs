//! What a bare loop is to do, what it says and is told, and its message.

use pubmark_model::units::Ns;
use pubmark_wire::mqtt::{Publish, Qos, Version, encode};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// Digits of a connection's number in its topic, so that all topics are as long.
const DIGITS: usize = 6;

/// What a loop is to do.
#[derive(Clone, Debug)]
pub struct LoopPlan {
    /// The server.
    pub to: SocketAddr,
    /// The first part of the topics, unique to the run.
    pub run: String,
    /// Connections, 1 to 1,000,000.
    pub connections: u32,
    /// Messages a second over all connections, at least 1.
    pub per_s: u64,
    /// Bytes of a message's payload.
    pub payload_bytes: usize,
    /// Least time between two wake-ups, ns.
    pub quantum_ns: Ns,
    /// From the start to the window, ns.
    pub warmup_ns: Ns,
    /// The window, ns.
    pub window_ns: Ns,
}

impl LoopPlan {
    pub(super) fn topic(&self, connection: u32) -> String {
        format!("pubmark/{}/{connection:0DIGITS$}", self.run)
    }

    /// Bytes of a message on the wire.
    pub fn message_bytes(&self) -> Result<usize, String> {
        Ok(ReadyMessage::new(self)?.bytes.len())
    }
}

/// Says that all connections stand.
#[derive(Debug, Serialize, Deserialize)]
pub struct Ready {
    /// How many.
    pub connections: u32,
}

/// Tells a loop when to begin.
#[derive(Debug, Serialize, Deserialize)]
pub struct Go {
    /// On the clock of this host, ns.
    pub start_ns: Ns,
}

/// Tells a receiver how many messages there are in all, so that it knows when it has them.
#[derive(Debug, Serialize, Deserialize)]
pub struct All {
    /// Messages.
    pub messages: u64,
}

/// What a loop did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LoopResult {
    /// CPU time, user and system, of the window, ns.
    pub cpu_ns: Ns,
    /// The window as it was, ns.
    pub wall_ns: Ns,
    /// Messages of the window.
    pub messages: u64,
    /// Messages in all.
    pub total_messages: u64,
    /// Bytes in all: written by a sender, handshakes included; read by a
    /// receiver after them.
    pub total_bytes: u64,
    /// How late messages of the window were sent, as a histogram.
    pub lag: Option<String>,
}

/// A message that is ready to be sent; only its topic's number changes.
pub(super) struct ReadyMessage {
    pub(super) bytes: Vec<u8>,
    digits: usize,
}

impl ReadyMessage {
    pub(super) fn new(plan: &LoopPlan) -> Result<ReadyMessage, String> {
        let topic = plan.topic(0);
        let payload = vec![0x5a; plan.payload_bytes];
        let publish = Publish {
            dup: false,
            qos: Qos::AtMostOnce,
            retain: false,
            topic: &topic,
            id: 0,
            alias: None,
            payload: &payload,
        };
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
