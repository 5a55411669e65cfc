//! Estimates from repeated runs: a figure's value and a 95 % interval.

use serde::{Deserialize, Serialize};

/// The ends of a 95 % interval, in the unit of the figure; `lo <= hi`.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Lower end.
    pub lo: f64,
    /// Upper end.
    pub hi: f64,
}

impl Interval {
    /// True if the two have a point in common, including their ends.
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

/// Returns the median; for an even number of values, the mean of the two in the middle. `None` if
/// there are no values, or one is not finite.
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

/// Returns the median of whole numbers up to 2^53, such as bytes, rounded down; 0 if there are
/// none.
pub fn median_whole(values: impl IntoIterator<Item = u64>) -> u64 {
    let values: Vec<f64> = values.into_iter().map(|value| value as f64).collect();
    median(&values).map_or(0, |middle| middle as u64)
}
