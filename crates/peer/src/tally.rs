//! Counts of what the peer really did.

use pubmark_model::units::Ns;
use pubmark_stats::Histogram;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};

/// Percentiles of one distribution, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Percentiles {
    /// Number of values.
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
    /// Returns the percentiles of a histogram; `None` if it is empty.
    pub fn of(histogram: &Histogram) -> Option<Percentiles> {
        let pubmark_stats::Summary { count, p50, p90, p99, p999, max, .. } = histogram.summary()?;
        Some(Percentiles { count, p50, p90, p99, p999, max })
    }
}

/// Counts of messages, of those that the script counts (see [`crate::script::Counted`]), once for a message with any
/// number of subscribers; a plain relay reads no message and counts none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MessageCounts {
    /// Data messages received.
    pub messages: u64,
    /// Copies of them written to subscribers.
    pub copies: u64,
    /// Neither passed on nor acknowledged.
    pub lost: u64,
    /// Refused.
    pub refused: u64,
    /// Acknowledged and not passed on.
    pub swallowed: u64,
    /// Passed on twice.
    pub duplicated: u64,
    /// Passed on after a later one.
    pub reordered: u64,
    /// Passed on damaged.
    pub corrupted: u64,
    /// Passed on later because the server stalled.
    pub stalled: u64,
    /// Copies written later because their subscriber stalled.
    pub stalled_copies: u64,
}

/// Counts of connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ConnectionCounts {
    /// Accepted from the kernel, including those closed or denied.
    pub accepted: u64,
    /// Closed at once, by script.
    pub closed: u64,
    /// Refused with an error of the protocol, by script.
    pub denied: u64,
    /// Ended because the client broke the protocol.
    pub malformed: u64,
}

/// Counts over the peer's whole life.
#[derive(Debug)]
pub struct PeerTally {
    /// Counts of messages.
    pub counts: MessageCounts,
    /// Data messages received by topic, if the script asks for that.
    pub topics: HashMap<Box<[u8]>, u64>,
    /// Counts of connections.
    pub connections: ConnectionCounts,
    /// Copies that a plain relay has written.
    pub relayed: u64,
    /// Instant at which the write of each copy returned, minus its due time, ns.
    pub release_error: Histogram,
    /// Instant at which the polling peer noticed that something was due, minus the due time, ns: time that the machine
    /// takes from a running process. Of all messages, counted or not, except those for which it was not polling in
    /// time.
    pub watch_error: Histogram,
    /// Instant at which the write of each copy returned, minus the message's intended time and generator delay, ns: the
    /// latency that must be reported.
    pub latency: Histogram,
    /// Latency to the start of the write, ns: nobody can have received the message before.
    pub begun: Histogram,
}

impl Default for PeerTally {
    fn default() -> PeerTally {
        PeerTally {
            counts: MessageCounts::default(),
            topics: HashMap::new(),
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
    /// Counts a copy: its due time, the instant from which its latency counts, and start and end of its write.
    pub fn written(&mut self, due_ns: Ns, from_ns: Ns, begun_ns: Ns, ended_ns: Ns) {
        self.counts.copies += 1;
        self.release_error.record(ended_ns.saturating_sub(due_ns));
        self.latency.record(ended_ns.saturating_sub(from_ns));
        self.begun.record(begun_ns.saturating_sub(from_ns));
    }

    /// Returns one line of JSON. Histograms are encoded as in a run's record.
    pub fn json(&self) -> String {
        let topics = self.topics.iter().map(|(topic, count)| (String::from_utf8_lossy(topic), *count));
        let encoded = |histogram: &Histogram| (!histogram.is_empty()).then(|| histogram.encode());
        let summary = serde_json::json!({
            "counts": self.counts,
            "topics": topics.collect::<BTreeMap<_, _>>(),
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
