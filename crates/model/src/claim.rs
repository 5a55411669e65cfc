//! Published statements as expressions that a study's records make true,
//! false or undecided.

use crate::diagnostic::suggestion;
use crate::objective::Objective;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A figure that a ranking can be made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Figure {
    /// Median latency from intended time; lower is better.
    LatencyP50,
    /// 99th percentile of latency; lower is better.
    LatencyP99,
    /// Mean latency; lower is better.
    LatencyMean,
    /// Largest latency; lower is better.
    LatencyMax,
    /// Messages delivered per second, over all subscribers; higher is better.
    Delivered,
    /// Processors used by generator and library together; lower is better.
    CpuCores,
    /// CPU time a delivered message, generator and library together; lower is better.
    CpuPerMessage,
    /// Mean delay variation between consecutive messages; lower is better.
    Jitter,
    /// Median unique set size; lower is better.
    Uss,
    /// Processors used by the server; lower is better.
    ServerCores,
    /// Median resident set of the server; lower is better.
    ServerRss,
    /// Delivered over expected; higher is better.
    DeliveredRatio,
}

/// A text that names none of the figures that rank.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no figure: {help}", help = suggestion(.0, Figure::ALL.map(Figure::word)))]
pub struct UnknownFigure(String);

impl Figure {
    /// Every figure.
    pub const ALL: [Figure; 12] = [
        Figure::LatencyP50,
        Figure::LatencyP99,
        Figure::LatencyMean,
        Figure::LatencyMax,
        Figure::Delivered,
        Figure::CpuCores,
        Figure::CpuPerMessage,
        Figure::Jitter,
        Figure::Uss,
        Figure::ServerCores,
        Figure::ServerRss,
        Figure::DeliveredRatio,
    ];

    /// Its name in files, and its column in `summary.csv`.
    pub fn word(self) -> &'static str {
        match self {
            Figure::LatencyP50 => "latency_p50_ns",
            Figure::LatencyP99 => "latency_p99_ns",
            Figure::LatencyMean => "latency_mean_ns",
            Figure::LatencyMax => "latency_max_ns",
            Figure::Delivered => "delivered_per_s",
            Figure::CpuCores => "cpu_cores",
            Figure::CpuPerMessage => "cpu_ns_per_message",
            Figure::Jitter => "jitter_ns",
            Figure::Uss => "uss_bytes_median",
            Figure::ServerCores => "server_cpu_cores",
            Figure::ServerRss => "server_rss_bytes_median",
            Figure::DeliveredRatio => "delivered_ratio",
        }
    }

    /// Whether more is better.
    pub fn higher_is_better(self) -> bool {
        matches!(self, Figure::Delivered | Figure::DeliveredRatio)
    }

    /// Reads a name.
    pub fn parse(text: &str) -> Result<Figure, UnknownFigure> {
        Figure::ALL.into_iter().find(|figure| figure.word() == text).ok_or_else(|| UnknownFigure(text.to_owned()))
    }
}

/// One condition on an axis.
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    /// The axis has one of these values.
    OneOf(Vec<Value>),
    /// The axis is a number not above this.
    AtMost(f64),
    /// The axis is a number not below this.
    AtLeast(f64),
}

impl Condition {
    /// Whether a cell's value on the axis meets the condition.
    pub fn holds(&self, value: &Value) -> bool {
        match self {
            Condition::OneOf(values) => values.contains(value),
            Condition::AtMost(most) => value.as_f64().is_some_and(|value| value <= *most),
            Condition::AtLeast(least) => value.as_f64().is_some_and(|value| value >= *least),
        }
    }
}

/// A part of a claim: a statement about the cells that meet the conditions.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// Which published statement it belongs to; several parts may share one.
    pub id: String,
    /// The statement in words.
    pub says: String,
    /// The statement as an expression.
    pub statement: Statement,
    /// Where, by axis.
    pub conditions: Vec<(String, Condition)>,
    /// The share of points, or of cells, at which it must hold, 0 to 1.
    pub share: f64,
}

/// What is stated.
#[derive(Clone, Debug, PartialEq)]
pub enum Statement {
    /// A system is best at each point.
    Best {
        /// The figure that is ranked.
        figure: Figure,
        /// The systems of which one should win each point; any of them may.
        best: Vec<String>,
        /// The systems that are ranked; all of the study where empty.
        among: Vec<String>,
    },
    /// Each cell keeps to bounds.
    Keeps(Objective),
}
