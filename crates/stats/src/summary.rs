//! The figures of a latency distribution in a record.

use serde::{Deserialize, Serialize};

/// Count, moments and percentiles of one histogram. Times are in nanoseconds.
///
/// `min` is the bottom of its bucket, and each other time is the top of its bucket, so that
/// `min <= p50 <= … <= max` always holds and a percentile is never understated. `mean` and `stddev`
/// (of the population, divisor n) take each bucket at its middle.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
pub struct Summary {
    /// Number of values, at least 1.
    pub count: u64,
    /// Smallest value, ns.
    pub min: u64,
    /// Arithmetic mean, ns.
    pub mean: f64,
    /// Standard deviation of the population, ns.
    pub stddev: f64,
    /// Median, ns.
    pub p50: u64,
    /// 90th percentile, ns.
    pub p90: u64,
    /// 95th percentile, ns.
    pub p95: u64,
    /// 99th percentile, ns.
    pub p99: u64,
    /// 99.9th percentile, ns.
    pub p999: u64,
    /// Largest value, ns.
    pub max: u64,
}
