//! Whether a series rises or falls more than chance would have it.

use serde::{Deserialize, Serialize};

use crate::estimate::median;
use crate::normal::normal_two_sided_p;

/// The fewest values that can be tested.
pub const TREND_VALUES_MIN: usize = 4;

/// The most values that can be tested: each pair counts, and the 8,386,560
/// pairs of 4,096 values take 64 MiB. Put longer series into wider slices.
pub const TREND_VALUES_MAX: usize = 4_096;

/// The outcome of [`trend`].
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq)]
pub struct Trend {
    /// Mann–Kendall S: pairs that rise minus pairs that fall.
    pub s: i64,
    /// Variance of S if there is no trend, corrected for ties.
    pub variance: f64,
    /// S in standard deviations, moved by 1 towards 0 first (continuity
    /// correction); 0 if all values are equal.
    pub z: f64,
    /// Two-sided p-value of z, in 0..=1.
    pub p: f64,
    /// Theil–Sen slope: the median slope of all pairs, in units of the values
    /// per step.
    pub slope: f64,
    /// What the slope adds up to from the first value to the last, as a
    /// fraction of the median absolute value; `None` if that median is 0 or
    /// the fraction is not finite.
    pub relative_change: Option<f64>,
}

/// Tests values at equal steps for a monotonic trend, and estimates it.
///
/// The test is that of Mann (*Nonparametric tests against trend*, Econometrica
/// 13, 1945) and Kendall (*Rank Correlation Methods*, 4th edition, 1975), the
/// slope that of Sen (*Estimates of the regression coefficient based on
/// Kendall's tau*, JASA 63, 1968). Neither assumes a distribution, and a few
/// outliers do not move them.
///
/// The p-value rests on S being about normal, which Kendall holds good from
/// 10 values on; below that it is a rough guide. It also takes the values for
/// independent: where neighbours resemble each other, p is too small. Judge a
/// series by `relative_change` as well as by p.
///
/// Cost: quadratic in the number of values. `None` if there are fewer than
/// [`TREND_VALUES_MIN`] or more than [`TREND_VALUES_MAX`], one is not finite,
/// or a difference of two overflows.
pub fn trend(values: &[f64]) -> Option<Trend> {
    let n = values.len();
    if !(TREND_VALUES_MIN..=TREND_VALUES_MAX).contains(&n) {
        return None;
    }
    let typical = median(&values.iter().map(|v| v.abs()).collect::<Vec<_>>())?;
    let mut s = 0;
    let mut slopes = Vec::with_capacity(n * (n - 1) / 2);
    for (i, earlier) in values.iter().enumerate() {
        for (gap, later) in (1_u32..).zip(&values[i + 1..]) {
            s += i64::from(later > earlier) - i64::from(later < earlier);
            slopes.push((later - earlier) / f64::from(gap));
        }
    }
    let variance = variance_of_s(values);
    let z = if variance > 0.0 { (s - s.signum()) as f64 / variance.sqrt() } else { 0.0 };
    let slope = median(&slopes)?;
    let relative_change = Some(slope * (n - 1) as f64 / typical).filter(|change| change.is_finite());
    Some(Trend { s, variance, z, p: normal_two_sided_p(z), slope, relative_change })
}

/// `(n(n−1)(2n+5) − Σ t(t−1)(2t+5)) / 18` over groups of t equal values
/// (Kendall 1975, chapter 4).
fn variance_of_s(values: &[f64]) -> f64 {
    let pairs = |count: usize| (count * (count - 1) * (2 * count + 5)) as u64;
    let mut sorted = values.to_vec();
    // Not total_cmp: -0.0 and 0.0 are a tie.
    sorted.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
    let tied: u64 = sorted.chunk_by(|a, b| a == b).map(|group| pairs(group.len())).sum();
    (pairs(values.len()) - tied) as f64 / 18.0
}
