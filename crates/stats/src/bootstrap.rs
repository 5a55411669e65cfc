//! What repeated runs say of a figure: its value and a 95 % interval.

use serde::{Deserialize, Serialize};

use crate::histogram::Histogram;
use crate::resample;

/// The ends of a 95 % interval, in the unit of the figure; `lo <= hi`.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Lower end.
    pub lo: f64,
    /// Upper end.
    pub hi: f64,
}

impl Interval {
    /// Whether the two have a point in common, their ends included.
    pub fn overlaps(&self, other: &Interval) -> bool {
        self.lo <= other.hi && other.lo <= self.hi
    }
}

/// A figure over the runs of a cell.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The figure, in its own unit.
    pub value: f64,
    /// Its 95 % interval; `None` if there was a single run.
    pub interval: Option<Interval>,
}

/// The median, of an even number of values the mean of the two in the middle.
/// `None` if there are none, or one is not finite.
pub fn median(values: &[f64]) -> Option<f64> {
    if values.is_empty() || values.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let mut values = values.to_vec();
    let middle = values.len() / 2;
    let even = values.len().is_multiple_of(2);
    let (below, upper, _) = values.select_nth_unstable_by(middle, f64::total_cmp);
    let upper = *upper;
    let lower = if even { below.iter().copied().max_by(f64::total_cmp)? } else { upper };
    Some(lower.midpoint(upper))
}

/// The median of one figure per run, with its 95 % percentile bootstrap
/// interval.
///
/// Up to [`crate::EXACT_VALUES_MAX`] values the interval is exact over all
/// resamples; above, it comes of [`crate::RESAMPLES`] drawn by `seed`. Of two
/// to five values it is always their whole span, since then each extreme is the
/// median of more than 2.5 % of the resamples; and of so few runs it covers the
/// true median less often than 95 %.
///
/// `None` if there are no values, or one is not finite.
pub fn bootstrap_median(values: &[f64], seed: u64) -> Option<Estimate> {
    let value = median(values)?;
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let interval = resample::interval(sorted.len(), seed, |draws| drawn_median(&sorted, draws));
    Some(Estimate { value, interval })
}

/// The median of `sorted` values drawn so many times each, as many draws in
/// all as there are values.
fn drawn_median(sorted: &[f64], draws: &[u32]) -> f64 {
    let n = sorted.len();
    let at = |rank: usize| {
        let mut seen = 0;
        for (value, drawn) in sorted.iter().zip(draws) {
            seen += *drawn as usize;
            if seen > rank {
                return *value;
            }
        }
        f64::NAN
    };
    at((n - 1) / 2).midpoint(at(n / 2))
}

/// A quantile (0 < quantile <= 1) of all the runs' values together, with its
/// 95 % percentile bootstrap interval over the runs: runs are drawn with
/// replacement, merged, and the quantile taken of what results.
///
/// The runs, not the messages, are what is drawn, as messages within a run
/// depend on each other. The rule for exact and drawn resamples is that of
/// [`bootstrap_median`]. Runs without values are left out. The value is that of
/// [`Histogram::value_at`] on the merged histogram, in ns.
///
/// Memory: 8 bytes for each run and each distinct bucket in use by any.
///
/// `None` if no run has values or the quantile is out of range.
pub fn bootstrap_quantile(runs: &[&Histogram], quantile: f64, seed: u64) -> Option<Estimate> {
    if !(quantile > 0.0 && quantile <= 1.0) {
        return None;
    }
    let axis = Axis::new(runs);
    if axis.totals.is_empty() {
        return None;
    }
    let n = axis.totals.len();
    Some(Estimate {
        value: axis.quantile(&vec![1; n], quantile),
        interval: resample::interval(n, seed, |draws| axis.quantile(draws, quantile)),
    })
}

/// The runs' cumulative counts on one axis of values, so that a quantile of
/// any mixture of runs is a binary search.
struct Axis {
    /// Bucket tops in use by any run, ns, ascending.
    values: Vec<u64>,
    /// For each value a row with, for each run, its count at or below it.
    cumulative: Vec<u64>,
    /// Each run's count.
    totals: Vec<u64>,
}

impl Axis {
    fn new(runs: &[&Histogram]) -> Self {
        let runs: Vec<Vec<(u64, u64)>> =
            runs.iter().filter(|run| !run.is_empty()).map(|run| run.nonzero().collect()).collect();
        let mut values: Vec<u64> = runs.iter().flatten().map(|(value, _)| *value).collect();
        // Not unstable: this one merges the runs, each already in order.
        values.sort();
        values.dedup();
        let mut cumulative = Vec::with_capacity(values.len() * runs.len());
        let mut totals = vec![0; runs.len()];
        let mut positions = vec![0; runs.len()];
        for value in &values {
            for (run, buckets) in runs.iter().enumerate() {
                if let Some((_, count)) = buckets.get(positions[run]).filter(|b| b.0 == *value) {
                    totals[run] += count;
                    positions[run] += 1;
                }
                cumulative.push(totals[run]);
            }
        }
        Self { values, cumulative, totals }
    }

    /// The quantile of the runs merged, each as often as it was drawn. The
    /// rank is rounded as [`Histogram::value_at`] does.
    fn quantile(&self, draws: &[u32], quantile: f64) -> f64 {
        let mixed = |counts: &[u64]| -> u128 {
            let pairs = counts.iter().zip(draws);
            pairs.map(|(c, d)| u128::from(*c) * u128::from(*d)).sum()
        };
        let rank = (quantile * mixed(&self.totals) as f64).ceil() as u128;
        let (mut from, mut to) = (0, self.values.len() - 1);
        while from < to {
            let middle = from.midpoint(to);
            let row = middle * draws.len();
            if mixed(&self.cumulative[row..row + draws.len()]) < rank {
                from = middle + 1;
            } else {
                to = middle;
            }
        }
        self.values[from] as f64
    }
}
