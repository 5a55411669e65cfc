//! Progress of connecting.

use crate::shard::carrier::{Dial, Negotiated};
use crate::shard::errors::{ConnectError, ConnectFailure, ShardError};
use pubmark_model::churn::ConnectTimes;
use pubmark_model::endpoint::Endpoint;
use pubmark_model::protocol::Connections;
use pubmark_model::units::Ns;
use pubmark_stats::Histogram;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

/// Progress of connecting.
pub struct Ramp {
    pub dial: Arc<Dial>,
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
    /// Number of the server's address that is being tried, or that has answered.
    pub place: u8,
    /// Error of the last attempt at each address.
    errors: Vec<Option<String>>,
    /// Error of the first attempt that failed.
    pub first_error: Option<String>,
    pub times: ConnectTimes<Option<Histogram>>,
    /// Version and cipher suite of the first client that the server accepted over TLS.
    pub negotiated: Option<Negotiated>,
    /// Counts and times.
    pub counts: Connections,
    /// True once every client is up or has given up.
    pub settled: bool,
    /// Instant at which every client was up or had given up, ns.
    pub settled_ns: Ns,
}

impl Ramp {
    pub fn new(dial: Dial, endpoint: &Endpoint, per_s: f64, clients: usize, timeout_ns: Ns) -> Ramp {
        Ramp {
            dial: Arc::new(dial),
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
            place: 0,
            errors: Vec::new(),
            first_error: None,
            times: ConnectTimes::default(),
            negotiated: None,
            counts: Connections { wanted: clients as u64, ..Connections::default() },
            settled: clients == 0,
            settled_ns: 0,
        }
    }

    /// Makes the error if connecting is useless.
    pub fn refusal(&self, why: ConnectFailure) -> ShardError {
        ShardError::Connect(Box::new(ConnectError { to: self.to.clone(), why }))
    }

    /// Makes the error at the end of the time, with the error of the last failed attempt.
    pub fn too_late(&self, what: &str) -> ShardError {
        let met = match self.last_error.as_str() {
            "" => "no attempt has been answered so far",
            met => met,
        };
        let known = if self.last_error == what { String::new() } else { format!("; before that: {met}") };
        self.refusal(ConnectFailure::Failed(format!("{what}{known}")))
    }

    /// Counts a failed attempt at one of several addresses. The next address is tried,
    /// unless one has answered before. Returns the errors of all addresses once each has
    /// one.
    pub fn missed(&mut self, place: u8, why: &str) -> Option<String> {
        let count = self.dial.to.len().min(usize::from(u8::MAX));
        if count < 2 {
            return None;
        }
        self.errors.resize(count, None);
        if let Some(error) = self.errors.get_mut(usize::from(place)) {
            *error = Some(why.to_owned());
        }
        if self.place == place && self.counts.opened == 0 && !self.dial.is_cluster {
            self.place = ((usize::from(place) + 1) % count) as u8;
        }
        let met: Option<Vec<String>> = self
            .dial
            .to
            .iter()
            .zip(&self.errors)
            .map(|(to, error)| Some(format!("{to}: {}", error.as_ref()?)))
            .collect();
        met.map(|met| met.join("; "))
    }

    /// Describes which address answered after others had not.
    pub fn detour(&self) -> Option<String> {
        if self.dial.is_cluster {
            return None;
        }
        let tried = self.dial.to.iter().zip(&self.errors).enumerate();
        let missed: Vec<String> = tried
            .filter(|(place, _)| *place != usize::from(self.place))
            .filter_map(|(_, (to, error))| Some(format!("{to}: {}", error.as_ref()?)))
            .collect();
        let to = self.dial.to.get(usize::from(self.place))?;
        (self.counts.opened > 0 && !missed.is_empty()).then(|| format!("connected to {to}, for {}", missed.join("; ")))
    }

    /// Counts a failed attempt.
    pub fn failed(&mut self, why: &str) {
        self.counts.refused += 1;
        self.first_error.get_or_insert_with(|| why.to_owned());
        self.last_error = why.to_owned();
    }

    /// Returns when the next connection is to be opened, ns.
    pub fn due(&self) -> Ns {
        self.began_ns + (self.next as f64 * 1e9 / self.per_s) as Ns
    }
}
