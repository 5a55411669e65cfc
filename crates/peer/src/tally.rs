//! What the peer really did.

use pubmark_model::units::Ns;
use pubmark_stats::Histogram;
use serde::Serialize;

/// Percentiles of one distribution, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Percentiles {
    /// Values.
    pub count: u64,
    /// Median.
    pub p50: u64,
    /// 90th percentile.
    pub p90: u64,
    /// 99th percentile.
    pub p99: u64,
    /// 99.9th percentile.
    pub p999: u64,
    /// Largest value.
    pub max: u64,
}

impl Percentiles {
    /// The percentiles of a histogram; none if it is empty.
    pub fn of(histogram: &Histogram) -> Option<Percentiles> {
        let pubmark_stats::Summary { count, p50, p90, p99, p999, max, .. } = histogram.summary()?;
        Some(Percentiles { count, p50, p90, p99, p999, max })
    }
}

/// Counts of what was done. Those of messages cover what the script counts
/// (see [`crate::script::Counted`]), once for a message however many
/// subscribers it has; a plain relay looks into no message and counts none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MessageCounts {
    /// Data messages that came.
    pub messages: u64,
    /// Copies of them written to subscribers.
    pub copies: u64,
    /// Neither handed on nor acknowledged.
    pub lost: u64,
    /// Refused.
    pub refused: u64,
    /// Acknowledged and not handed on.
    pub swallowed: u64,
    /// Handed on twice.
    pub duplicated: u64,
    /// Handed on behind a later one.
    pub reordered: u64,
    /// Handed on damaged.
    pub corrupted: u64,
    /// Handed on later because the server stood still.
    pub stalled: u64,
    /// Copies written later because their subscriber stood still.
    pub stalled_copies: u64,
}

/// What happened to connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ConnectionCounts {
    /// Taken from the kernel, those closed or denied included.
    pub accepted: u64,
    /// Closed at once, by script.
    pub closed: u64,
    /// Refused in the protocol's words, by script.
    pub denied: u64,
    /// Ended because the client broke the protocol.
    pub malformed: u64,
}

/// The account of a whole life.
#[derive(Debug)]
pub struct PeerTally {
    /// Counts of messages.
    pub counts: MessageCounts,
    /// Connections.
    pub connections: ConnectionCounts,
    /// Copies that a plain relay has written.
    pub relayed: u64,
    /// When the write of each copy returned, less when it was due, ns.
    pub release_error: Histogram,
    /// When the peer, awake and with its eye on the clock, saw that something
    /// was due, less when it was due, ns: what the machine takes from a process
    /// that runs. Of all messages, counted or not; those for which it was not
    /// awake in time are left out.
    pub watch_error: Histogram,
    /// When the write of each copy returned, less the message's intended time
    /// and what its publisher was late by its own doing, ns: the latency that
    /// must be reported.
    pub latency: Histogram,
    /// The same of when the write began: nobody can have had it before.
    pub begun: Histogram,
}

impl Default for PeerTally {
    fn default() -> PeerTally {
        PeerTally {
            counts: MessageCounts::default(),
            connections: ConnectionCounts::default(),
            relayed: 0,
            release_error: Histogram::latency(),
            watch_error: Histogram::latency(),
            latency: Histogram::latency(),
            begun: Histogram::latency(),
        }
    }
}

impl PeerTally {
    /// A copy was written: when it was due, from when its latency counts, and
    /// between which instants.
    pub fn written(&mut self, due_ns: Ns, from_ns: Ns, begun_ns: Ns, ended_ns: Ns) {
        self.counts.copies += 1;
        self.release_error.record(ended_ns.saturating_sub(due_ns));
        self.latency.record(ended_ns.saturating_sub(from_ns));
        self.begun.record(begun_ns.saturating_sub(from_ns));
    }

    /// As one line of JSON. Histograms are encoded as in a run's record.
    pub fn json(&self) -> String {
        let encoded = |histogram: &Histogram| (!histogram.is_empty()).then(|| histogram.encode());
        let summary = serde_json::json!({
            "counts": self.counts,
            "connections": self.connections,
            "relayed": self.relayed,
            "release_error_ns": Percentiles::of(&self.release_error),
            "watch_error_ns": Percentiles::of(&self.watch_error),
            "latency_ns": Percentiles::of(&self.latency),
            "watch_error_histogram": encoded(&self.watch_error),
            "latency_histogram": encoded(&self.latency),
            "begun_histogram": encoded(&self.begun),
        });
        summary.to_string()
    }
}
