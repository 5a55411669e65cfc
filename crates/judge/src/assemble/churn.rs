//! Clients that came and went: combines the results of all agents.

use super::merge::{late, merge};
use pubmark_model::churn::{ChurnCounts, ConnectTimes};
use pubmark_model::protocol::{ChurnResult, PackedHistogram};
use pubmark_model::record::ChurnFigures;
use pubmark_model::units::Ns;
use pubmark_stats::Histogram;

/// Counts and times of the clients that came and went.
#[derive(Default)]
pub struct UnitedChurn {
    counts: ChurnCounts,
    late: u64,
    first_error: Option<String>,
    times: ConnectTimes<Option<Histogram>>,
    own_lag: Option<Histogram>,
}

impl UnitedChurn {
    /// Combines results; `None` if there are none.
    pub fn of<'a>(results: impl Iterator<Item = &'a ChurnResult>, remarks: &mut Vec<String>) -> Option<UnitedChurn> {
        let results: Vec<&ChurnResult> = results.collect();
        let mut all = UnitedChurn::default();
        let mut merged = |pick: fn(&ChurnResult) -> &Option<PackedHistogram>| {
            merge(PackedHistogram::DIGITS, results.iter().filter_map(|result| pick(result).as_ref()), remarks)
        };
        all.times = ConnectTimes {
            connect: merged(|result| &result.times.connect),
            tls_handshake: merged(|result| &result.times.tls_handshake),
            subscribe: merged(|result| &result.times.subscribe),
        };
        all.own_lag = merged(|result| &result.own_lag);
        results.iter().for_each(|result| all.counts.add(&result.counts));
        all.first_error = results.iter().find_map(|result| result.first_error.clone());
        (!results.is_empty()).then_some(all)
    }

    /// Counts the clients that were accepted later than this, by the histogram: agents do not know the bound.
    #[must_use]
    pub fn late_after(mut self, bound_ns: Ns) -> UnitedChurn {
        self.late = self.times.connect.as_ref().map_or(0, |connect| late(connect, bound_ns));
        self
    }

    /// Sets the number of those that were late, each by the bound of its own flow.
    #[must_use]
    pub fn with_late(mut self, late: u64) -> UnitedChurn {
        self.late = late;
        self
    }

    /// Returns the number of those that were late.
    pub fn late(&self) -> u64 {
        self.late
    }

    /// Returns the figures for a record.
    pub fn figures(&self) -> Box<ChurnFigures> {
        let summary = |histogram: &Option<Histogram>| histogram.as_ref().and_then(Histogram::summary);
        Box::new(ChurnFigures {
            counts: self.counts,
            late: self.late,
            first_error: self.first_error.clone(),
            connect_ns: summary(&self.times.connect),
            tls_handshake_ns: summary(&self.times.tls_handshake),
            subscribe_ns: summary(&self.times.subscribe),
            own_lag_ns: summary(&self.own_lag),
        })
    }
}
