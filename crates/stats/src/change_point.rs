//! Tests whether a figure has changed permanently within a history, and since when.

use crate::estimate::median;
use crate::random::Random;

/// Fewest values in which a change can be found.
pub const HISTORY_MIN: usize = 6;
/// Maximum number of permutations.
const ORDERS_MAX: u32 = 19_999;
/// The test stops after this many permutations at least as uneven as the true order: the order does
/// not stand out.
const ENOUGH: u32 = 100;

/// The best split of a history, and its significance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChangePoint {
    /// Index of the first value after the change; 1 or more.
    pub at: usize,
    /// The probability of a split at least as uneven if nothing has changed, 0 to 1.
    pub p: f64,
}

/// Finds the split at which the values before and after differ most, and the probability, by ranks,
/// of a split as uneven in a random order of the same values.
///
/// The probability is that of a permutation test (with the stopping rule of Besag and Clifford,
/// *Sequential Monte Carlo p-values*, Biometrika 78, 1991). It holds for any noise, and for few
/// values too, if without a change all orders are equally probable. That is not so for values that
/// drift or are autocorrelated. The last value alone can never be distinguished from noise, and a
/// few only seldom: docs/gate-a-change.md has a table.
///
/// The statistic is the largest over all splits of the rank sum of Wilcoxon, standardised:
/// Pettitt's (*A non-parametric approach to the change-point problem*, Applied Statistics 28, 1979)
/// with a weight that does not neglect the ends.
///
/// `None` for fewer than [`HISTORY_MIN`] values, or if one is not finite.
pub fn change_point(values: &[f64]) -> Option<ChangePoint> {
    if values.len() < HISTORY_MIN || values.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let mut ranks = ranks(values);
    let most = most_uneven(&ranks);
    let mut random = Random(0x0c4a_9be5);
    let (mut tried, mut as_uneven) = (0, 0);
    while tried < ORDERS_MAX && as_uneven < ENOUGH {
        random.shuffle(&mut ranks);
        tried += 1;
        // Sums of the same ranks in another order may differ in the last digit.
        as_uneven += u32::from(most_uneven(&ranks) >= most * (1.0 - 1e-9));
    }
    let p = if as_uneven == ENOUGH {
        f64::from(as_uneven) / f64::from(tried)
    } else {
        f64::from(as_uneven + 1) / f64::from(tried + 1)
    };
    Some(ChangePoint { at: split(values), p })
}

/// Returns ranks less their mean; equal values share the middle of theirs.
fn ranks(values: &[f64]) -> Vec<f64> {
    let middle = (values.len() as f64 + 1.0) / 2.0;
    let rank = |value: &f64| {
        let below = values.iter().filter(|other| *other < value).count() as f64;
        let same = values.iter().filter(|other| *other == value).count() as f64;
        below + (same + 1.0) / 2.0 - middle
    };
    values.iter().map(rank).collect()
}

/// Returns the unevenness of the best split.
fn most_uneven(ranks: &[f64]) -> f64 {
    let n = ranks.len() as f64;
    let (mut sum, mut most) = (0.0, 0.0);
    for (index, rank) in ranks[..ranks.len() - 1].iter().enumerate() {
        sum += rank;
        let before = index as f64 + 1.0;
        most = f64::max(most, f64::abs(sum) / (before * (n - before)).sqrt());
    }
    most
}

/// Returns the split whose sides lie nearest to their medians. Ranks would be less exact, because
/// they ignore the distance between values.
fn split(values: &[f64]) -> usize {
    let off = |side: &[f64]| {
        let middle = median(side).unwrap_or_default();
        side.iter().map(|value| (value - middle).abs()).sum::<f64>()
    };
    let cost = |at: usize| off(&values[..at]) + off(&values[at..]);
    (1..values.len()).min_by(|one, other| cost(*one).total_cmp(&cost(*other))).unwrap_or(1)
}
