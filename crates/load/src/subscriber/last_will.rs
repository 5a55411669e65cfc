//! Last wills that a subscriber has received, held against the connections that ended.

use super::totals::Totals;
use pubmark_model::last_will::WillCounts;
use pubmark_model::protocol::ConnectionEnd;
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
    /// Their counts.
    pub counts: WillCounts,
    /// Time from the end of a connection until its will arrived, ns.
    pub latency: Histogram,
}

impl Default for WillRecord {
    fn default() -> WillRecord {
        WillRecord { counts: WillCounts::default(), latency: Histogram::latency() }
    }
}

impl WillRecord {
    /// Adds a subscriber that receives from these publishers. Instants of `totals` are `ahead_ns` ahead of its clock.
    pub fn close(&mut self, arrivals: Option<&WillArrivals>, publishers: &Range<u32>, totals: &Totals, ahead_ns: i64) {
        let ends = totals.ends_of(publishers);
        let mut known = 0;
        for end in ends {
            let arrived_ns = arrivals.and_then(|arrivals| arrivals.of(end));
            known += u64::from(arrived_ns.is_some());
            let Some(at_ns) = end.at_ns else { continue };
            self.counts.due += 1;
            if let Some(arrived_ns) = arrived_ns {
                self.counts.received += 1;
                // A client may notice the end of its connection later than others.
                self.latency.record(arrived_ns.saturating_sub(at_ns.saturating_add_signed(-ahead_ns)));
            }
        }
        self.counts.undue += arrivals.map_or(0, |arrivals| arrivals.0.len() as u64).saturating_sub(known);
    }

    /// Adds another record.
    pub fn add(&mut self, other: &WillRecord) {
        self.counts.add(&other.counts);
        let merged = self.latency.merge(&other.latency);
        debug_assert!(merged.is_ok(), "all histograms of a kind have the same precision");
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
        assert_eq!(record.counts, WillCounts { due: 2, received: 1, undue: 1 });
        assert_eq!((record.latency.count(), record.latency.max()), (1, 50));
        assert!(!arrivals.has_all(&(1..2), &totals) && arrivals.has_all(&(3..9), &totals));
        record.close(None, &(0..3), &totals, 0);
        assert_eq!(record.counts, WillCounts { due: 5, received: 1, undue: 1 });
        arrivals.arrived(1, 1, 190);
        assert!(arrivals.has_all(&(1..2), &totals), "the uncertain one is not waited for");
    }
}
