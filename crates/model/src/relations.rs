//! Relations between the figures of an agent's result that follow from their definitions in the
//! agent protocol, and between them and the plan. An agent whose result breaks one has not measured
//! or counted what was requested.
//!
//! All of them are in [`RELATIONS`]; a new one is a line there.

mod counts;
mod part;
mod times;
mod usage;

use crate::protocol::{FlowHistograms, FlowResult};
pub use part::{Contradiction, Part, RelationSource, RunSpan};
pub use usage::SeenUsage;

/// One relation.
pub struct FigureRelation {
    /// Its name.
    pub name: &'static str,
    /// The source that the result is compared with.
    pub against: RelationSource,
    check: fn(&Part<'_>, &FlowResult, &FlowHistograms) -> Result<(), String>,
}

macro_rules! relations {
    ($($name:literal, $against:ident, $check:expr;)+) => {
        /// All relations.
        pub const RELATIONS: &[FigureRelation] =
            &[$(FigureRelation { name: $name, against: RelationSource::$against, check: $check }),+];
    };
}

relations! {
    "offered", Plan, counts::offered;
    "window", Plan, counts::window;
    "totals", Itself, counts::totals;
    "expected", Plan, counts::expected;
    "delivered", Itself, counts::delivered;
    "corrupted", Itself, counts::corrupted;
    "missing", Itself, counts::missing;
    "acknowledged", Itself, counts::acknowledged;
    "arrived", Itself, counts::arrived;
    "catch-up", Plan, counts::catch_up;
    "rebalances", Plan, counts::rebalances;
    "bytes", Itself, counts::bytes;
    "series", Itself, counts::series;
    "connections", Itself, counts::connections;
    "churn", Plan, counts::churn;
    "last-wills", Plan, counts::wills;
    "latency-count", Itself, times::latency_count;
    "arrival-times", Itself, times::arrival_times;
    "send-lag-count", Itself, times::send_lag_count;
    "latency-order", Itself, times::latency_order;
    "lag-order", Itself, times::lag_order;
    "ack-count", Itself, times::ack_count;
    "jitter", Itself, times::jitter;
    "instants", Run, times::instants;
    "durations", Run, times::durations;
    "silences", Run, times::silences;
    "usage", Run, times::usage;
}

impl Part<'_> {
    /// Checks the result against all relations.
    ///
    /// # Errors
    /// Returns the first relation that does not hold.
    pub fn check(&self) -> Result<(), Contradiction> {
        for (flow, histograms) in self.result.flows.iter().zip(&self.histograms.flows) {
            for FigureRelation { name, against, check } in RELATIONS {
                let broken = |what| Contradiction { relation: name, against: *against, what };
                check(self, flow, histograms).map_err(broken)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
