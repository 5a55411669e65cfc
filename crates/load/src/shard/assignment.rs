//! The work of a thread with clients of a broker.

use super::carrier::Dial;
use crate::control::Counter;
use pubmark_model::endpoint::Endpoint;
use pubmark_model::options::Options;
use pubmark_model::protocol::Client;
use std::sync::Arc;

/// The work of a shard.
pub struct Assignment {
    /// Its clients: all publishers, or all subscribers.
    pub clients: Vec<Client>,
    /// The server.
    pub endpoint: Endpoint,
    /// Addresses and settings of the connections.
    pub dial: Dial,
    /// Name of the run.
    pub run: String,
    /// Connections opened in a second.
    pub connect_per_s: f64,
    /// Options of the driver.
    pub options: Options,
    /// Processors that it may use; all if empty.
    pub cpus: Vec<usize>,
    /// Processors that its publishers may keep awake before due times.
    pub spin_cores: f64,
    /// Its counter of messages sent or received.
    pub counter: Arc<Counter>,
}
