//! Last wills that a subscriber has received, held against the connections that ended.

use super::totals::Totals;
use pubmark_model::last_will::UnexpectedWill;
use pubmark_model::protocol::{ConnectionEnd, PackedHistogram, WillResult};
use pubmark_model::units::Ns;
use pubmark_stats::Histogram;
use std::collections::BTreeMap;
use std::ops::Range;

/// The most wills that a subscriber remembers.
const MOST: usize = 1 << 20;

/// First arrivals of wills, by publisher and connection.
#[derive(Default)]
pub struct WillArrivals(BTreeMap<(u32, u64), Ns>);

impl WillArrivals {
    /// Notes that the will of a connection of a publisher arrived. A server may deliver it again at QoS 1.
    pub fn arrived(&mut self, publisher: u32, connection: u64, now: Ns) {
        if self.0.len() < MOST {
            self.0.entry((publisher, connection)).or_insert(now);
        }
    }

    fn of(&self, end: &ConnectionEnd) -> Option<Ns> {
        self.0.get(&(end.publisher, u64::from(end.connection))).copied()
    }

    /// True if all wills that are due from these publishers have arrived.
    pub fn has_all(&self, publishers: &Range<u32>, totals: &Totals) -> bool {
        totals.ends_of(publishers).iter().filter(|end| end.at_ns.is_some()).all(|end| self.of(end).is_some())
    }
}

/// Counts and times of wills, of all subscribers of one thread.
pub struct WillRecord {
    due: u64,
    received: u64,
    /// Others that arrived, by publisher and connection.
    unexpected: BTreeMap<(u32, u64), u64>,
    /// Time from the end of a connection until its will arrived, ns.
    latency: Histogram,
}

impl Default for WillRecord {
    fn default() -> WillRecord {
        WillRecord { due: 0, received: 0, unexpected: BTreeMap::new(), latency: Histogram::latency() }
    }
}

impl WillRecord {
    /// Adds a subscriber that receives from these publishers. Instants of `totals` are `ahead_ns` ahead of its clock.
    pub fn close(&mut self, arrivals: Option<&WillArrivals>, publishers: &Range<u32>, totals: &Totals, ahead_ns: i64) {
        let ends = totals.ends_of(publishers);
        for end in ends {
            let Some(at_ns) = end.at_ns else { continue };
            self.due += 1;
            if let Some(arrived_ns) = arrivals.and_then(|arrivals| arrivals.of(end)) {
                self.received += 1;
                // A client may notice the end of its connection later than others.
                self.latency.record(arrived_ns.saturating_sub(at_ns.saturating_add_signed(-ahead_ns)));
            }
        }
        let ended =
            |key: &(u32, u64)| ends.binary_search_by_key(key, |end| (end.publisher, end.connection.into())).is_ok();
        for key in arrivals.into_iter().flat_map(|arrivals| arrivals.0.keys()).filter(|key| !ended(key)) {
            self.add_unexpected(*key, 1);
        }
    }

    fn add_unexpected(&mut self, key: (u32, u64), count: u64) {
        if self.unexpected.len() < MOST || self.unexpected.contains_key(&key) {
            *self.unexpected.entry(key).or_default() += count;
        }
    }

    /// Adds another record.
    pub fn add(&mut self, other: &WillRecord) {
        (self.due, self.received) = (self.due + other.due, self.received + other.received);
        other.unexpected.iter().for_each(|(key, count)| self.add_unexpected(*key, *count));
        let merged = self.latency.merge(&other.latency);
        debug_assert!(merged.is_ok(), "all histograms of a kind have the same precision");
    }

    /// Returns it for the protocol.
    pub fn result(self, packed: impl Fn(Option<Histogram>) -> Option<PackedHistogram>) -> WillResult {
        let will = |((publisher, connection), count)| UnexpectedWill { publisher, connection, count };
        let unexpected = self.unexpected.into_iter().map(will).collect();
        WillResult { due: self.due, received: self.received, unexpected, latency: packed(Some(self.latency)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pubmark_model::protocol::PublisherTotal;

    #[test]
    fn wills_are_due_received_or_undue() {
        let end = |publisher, connection, at_ns| ConnectionEnd { publisher, connection, at_ns };
        let total = PublisherTotal { publisher: 0, ..PublisherTotal::default() };
        let ends = vec![end(2, 0, Some(1_500)), end(1, 1, Some(1_200)), end(1, 0, Some(1_100)), end(1, 2, None)];
        let totals = Totals::new(&[total]).with_ends(ends);
        let mut arrivals = WillArrivals::default();
        // Twice the same, one whose end is not certain, and one of a connection that lasts.
        for (connection, at_ns) in [(0, 150), (0, 900), (2, 700), (3, 800)] {
            arrivals.arrived(1, connection, at_ns);
        }
        let mut record = WillRecord::default();
        record.close(Some(&arrivals), &(1..2), &totals, 1_000);
        let one = |connection| UnexpectedWill { publisher: 1, connection, count: 1 };
        assert_eq!((record.latency.count(), record.latency.max()), (1, 50));
        let counts = |record: &WillRecord| (record.due, record.received, record.unexpected.len());
        assert_eq!(counts(&record), (2, 1, 1));
        assert!(!arrivals.has_all(&(1..2), &totals) && arrivals.has_all(&(3..9), &totals));
        record.close(None, &(0..3), &totals, 0);
        assert_eq!(counts(&record), (5, 1, 1));
        let mut all = WillRecord::default();
        all.add(&record);
        all.add(&record);
        let unexpected = vec![UnexpectedWill { count: 2, ..one(3) }];
        let result = all.result(|_| None);
        assert_eq!(result, WillResult { due: 10, received: 2, unexpected, latency: None });
        arrivals.arrived(1, 1, 190);
        assert!(arrivals.has_all(&(1..2), &totals), "the uncertain one is not waited for");
    }
}
