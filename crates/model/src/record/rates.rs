//! Rates of messages, and figures by time slice.

use crate::units::Ns;
use serde::{Deserialize, Serialize};

/// Rates over the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Rates {
    /// Messages due, per second, over all publishers.
    pub offered_per_s: f64,
    /// Messages sent, per second.
    pub sent_per_s: f64,
    /// Messages that arrived during the window, per second, over all subscribers.
    pub delivered_per_s: f64,
    /// Payload bytes that arrived during the window, per second.
    pub delivered_bytes_per_s: f64,
    /// True if a loop of the generator was at its limit at `rate = "max"`, so that the rates are
    /// lower bounds.
    #[serde(default)]
    pub lower_bound: bool,
}

impl Rates {
    /// Adds the rates of another flow.
    pub fn add(&mut self, other: &Rates) {
        self.offered_per_s += other.offered_per_s;
        self.sent_per_s += other.sent_per_s;
        self.delivered_per_s += other.delivered_per_s;
        self.delivered_bytes_per_s += other.delivered_bytes_per_s;
        self.lower_bound |= other.lower_bound;
    }
}

/// Figures by time slice of the window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Length of a slice, ns.
    pub slice_ns: Ns,
    /// Messages sent.
    pub sent: Vec<u64>,
    /// Messages that arrived.
    pub delivered: Vec<u64>,
    /// Consumer lag at the end of each slice: copies of messages that were sent since the start and have not arrived,
    /// lost ones included. Empty if not supported by an agent, where messages are answered or a count ends the window,
    /// and in records of versions without it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lag: Vec<u64>,
    /// Median latency of the arrivals, ns; 0 if there were none.
    pub latency_p50_ns: Vec<u64>,
    /// 99th percentile of latency of the arrivals, ns.
    pub latency_p99_ns: Vec<u64>,
    /// Maximum latency of the arrivals, ns.
    pub latency_max_ns: Vec<u64>,
}
