//! How far the connecting has come.

use crate::shard::carrier::Dial;
use crate::shard::errors::{ConnectError, ConnectFailure, ShardError};
use pubmark_model::endpoint::Endpoint;
use pubmark_model::protocol::Connections;
use pubmark_model::units::Ns;
use pubmark_stats::Histogram;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// How far the connecting has come.
pub struct Ramp {
    pub dial: Dial,
    pub to: String,
    pub per_s: f64,
    pub began_ns: Ns,
    pub next: usize,
    pub retries: BinaryHeap<Reverse<(Ns, u32)>>,
    pub under_way: Vec<u32>,
    pub given_up: u64,
    pub last_up_ns: Ns,
    pub timeout_ns: Ns,
    pub last_error: String,
    /// What the first attempt that failed met.
    pub first_error: Option<String>,
    pub times: Histogram,
    /// Counts and times.
    pub counts: Connections,
    /// Whether every client is up, or has given up.
    pub settled: bool,
    /// When that was.
    pub settled_ns: Ns,
}

impl Ramp {
    pub fn new(dial: Dial, endpoint: &Endpoint, per_s: f64, clients: usize, timeout_ns: Ns) -> Ramp {
        Ramp {
            dial,
            to: endpoint.to_string(),
            per_s: per_s.max(0.001),
            began_ns: 0,
            next: 0,
            retries: BinaryHeap::new(),
            under_way: Vec::new(),
            given_up: 0,
            last_up_ns: 0,
            timeout_ns,
            last_error: String::new(),
            first_error: None,
            times: Histogram::latency(),
            counts: Connections { wanted: clients as u64, ..Connections::default() },
            settled: clients == 0,
            settled_ns: 0,
        }
    }

    /// What to say when connecting is of no use.
    pub fn refusal(&self, why: ConnectFailure) -> ShardError {
        ShardError::Connect(Box::new(ConnectError { to: self.to.clone(), why }))
    }

    pub fn take_times(&mut self) -> Histogram {
        std::mem::replace(&mut self.times, Histogram::latency())
    }

    /// Counts an attempt that failed.
    pub fn failed(&mut self, why: &str) {
        self.counts.refused += 1;
        self.first_error.get_or_insert_with(|| why.to_owned());
        self.last_error = why.to_owned();
    }

    /// When the next connection is to be opened, ns.
    pub fn due(&self) -> Ns {
        self.began_ns + (self.next as f64 * 1e9 / self.per_s) as Ns
    }
}
