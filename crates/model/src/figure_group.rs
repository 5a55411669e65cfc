//! Groups of figures that a disturbance makes unusable together.

use serde::{Deserialize, Serialize};

/// A group of figures that a disturbance makes unusable together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FigureGroup {
    /// Counts of messages: sent, delivered, lost, duplicated; the delivered ratio.
    Counts,
    /// Messages and bytes a second.
    Rates,
    /// Minimum and median latency, of each kind.
    LatencyP50,
    /// Latencies from the 90th percentile up, their mean, and jitter.
    LatencyP99,
    /// Processor time, memory and context switches.
    Cost,
}

impl FigureGroup {
    /// Every group.
    pub const ALL: &'static [FigureGroup] =
        &[FigureGroup::Counts, FigureGroup::Rates, FigureGroup::LatencyP50, FigureGroup::LatencyP99, FigureGroup::Cost];

    /// Both groups of latencies.
    pub const LATENCY: &'static [FigureGroup] = &[FigureGroup::LatencyP50, FigureGroup::LatencyP99];

    /// Returns its word in tables.
    pub fn word(self) -> &'static str {
        match self {
            FigureGroup::Counts => "counts",
            FigureGroup::Rates => "rates",
            FigureGroup::LatencyP50 => "p50",
            FigureGroup::LatencyP99 => "p99",
            FigureGroup::Cost => "cost",
        }
    }

    /// Returns all groups, for records that do not name any.
    pub fn all() -> Vec<FigureGroup> {
        FigureGroup::ALL.to_vec()
    }
}
