//! A row of the figure table.

use crate::figure_group::FigureGroup;
use crate::record::RunRecord;
use pubmark_stats::Summary;
use serde::Serialize;

/// A figure of a run, as an index into the table.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Figure(pub(super) u8);

/// The unit of a figure, in records and files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Nanoseconds.
    Ns,
    /// Events per second.
    PerS,
    /// Bytes a second.
    BytesPerS,
    /// Bytes.
    Bytes,
    /// A fraction, 0 to 1.
    Share,
    /// Number of messages or connections.
    Count,
    /// A number for each delivered message. Pages show it as a count.
    #[serde(rename = "count")]
    PerMessage,
    /// Processors.
    Cores,
    /// Multiple of another value.
    Multiple,
}

/// The part of a run that a figure describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// The messages of a flow.
    Flow,
    /// The clients: their connections, and the agents that run them.
    Client,
    /// The server.
    Server,
    /// Generator and server together, the network, or the clocks.
    Machine,
}

/// A row of the table.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct FigureDescription {
    /// Its name in `summary.csv`, including the unit.
    pub key: &'static str,
    /// Shorter names that people may type. The first is shown.
    #[serde(skip)]
    pub short: &'static [&'static str],
    /// Its name in tables and plots.
    pub label: &'static str,
    /// Its unit.
    pub unit: Unit,
    /// The part of a run that it describes.
    pub scope: Scope,
    /// The better direction, `lower` or `higher`; `None` if neither is better.
    pub better: Option<&'static str>,
    /// The group of figures that become unusable together with it.
    pub group: FigureGroup,
    /// Its meaning.
    pub about: &'static str,
    /// Source of its value.
    #[serde(skip)]
    pub(super) source: Source,
    /// The smallest difference that one run can show, if it does not follow from the unit.
    #[serde(skip)]
    pub(super) step: Option<fn(&RunRecord) -> f64>,
}

/// Source of a figure's value.
#[derive(Clone, Copy, Debug)]
pub(super) enum Source {
    /// A number of the run.
    Number(fn(&RunRecord) -> Option<f64>),
    /// A figure of a time of messages.
    Time(usize, Percentile),
    /// A value of a run relative to others of its block, computed by the report.
    Block,
    /// A value of whole cells, computed by the report.
    Cells,
}

/// A figure of a distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Percentile {
    Min,
    Mean,
    P50,
    P90,
    P95,
    P99,
    P999,
    Max,
}

impl Percentile {
    pub(super) const COUNT: usize = 8;

    pub(super) fn of(self, times: &Summary) -> f64 {
        match self {
            Percentile::Min => times.min as f64,
            Percentile::Mean => times.mean,
            Percentile::P50 => times.p50 as f64,
            Percentile::P90 => times.p90 as f64,
            Percentile::P95 => times.p95 as f64,
            Percentile::P99 => times.p99 as f64,
            Percentile::P999 => times.p999 as f64,
            Percentile::Max => times.max as f64,
        }
    }

    /// Returns the fewest messages of a run with which it is shown.
    pub(super) fn samples_min(self) -> u64 {
        match self {
            Percentile::P99 => 1_000,
            Percentile::P999 => 10_000,
            _ => 1,
        }
    }

    /// Returns its name as people type it.
    pub(super) fn word(self) -> &'static str {
        match self {
            Percentile::Min => "min",
            Percentile::Mean => "mean",
            Percentile::P50 => "p50",
            Percentile::P90 => "p90",
            Percentile::P95 => "p95",
            Percentile::P99 => "p99",
            Percentile::P999 => "p999",
            Percentile::Max => "max",
        }
    }
}
