//! Whether a figure has changed for good within a history, and since when.

use crate::estimate::median;
use crate::random::Random;

/// Fewest values in which a change can be seen at all.
pub const HISTORY_MIN: usize = 6;
/// Orders of the values that are tried at most.
const ORDERS_MAX: u32 = 19_999;
/// Orders at least as uneven as the true one after which no more are tried: it is
/// none that stands out.
const ENOUGH: u32 = 100;

/// Where a history is split best, and whether it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChangePoint {
    /// The first value of after, as an index; 1 or more.
    pub at: usize,
    /// The probability of a split at least as uneven where nothing has changed, 0 to 1.
    pub p: f64,
}

/// Finds the place at which the values before and those after differ most, and how
/// often an order of the same values that means nothing has a split as uneven, by
/// ranks.
///
/// The probability is that of a permutation test (with the stopping rule of Besag
/// and Clifford, *Sequential Monte Carlo p-values*, Biometrika 78, 1991): it holds
/// whatever the noise is, for few values too, as long as without a change any order
/// is as probable as any other. Values that drift, or that hang together from one
/// to the next, are not so. A last value alone can never be told from noise, and a
/// few seldom: docs/gate-a-change.md has a table.
///
/// The statistic is the largest over all splits of the rank sum of Wilcoxon,
/// standardised: Pettitt's (*A non-parametric approach to the change-point problem*,
/// Applied Statistics 28, 1979) with a weight that does not forget the ends.
///
/// `None` of fewer than [`HISTORY_MIN`] values, or where one is not finite.
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

/// Ranks less their mean; equal values share the middle of theirs.
fn ranks(values: &[f64]) -> Vec<f64> {
    let middle = (values.len() as f64 + 1.0) / 2.0;
    let rank = |value: &f64| {
        let below = values.iter().filter(|other| *other < value).count() as f64;
        let same = values.iter().filter(|other| *other == value).count() as f64;
        below + (same + 1.0) / 2.0 - middle
    };
    values.iter().map(rank).collect()
}

/// How uneven the best split is.
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

/// The split of which both sides lie nearest to their medians. Ranks would tell it
/// less well: they do not know how far apart two values are.
fn split(values: &[f64]) -> usize {
    let off = |side: &[f64]| {
        let middle = median(side).unwrap_or_default();
        side.iter().map(|value| (value - middle).abs()).sum::<f64>()
    };
    let cost = |at: usize| off(&values[..at]) + off(&values[at..]);
    (1..values.len()).min_by(|one, other| cost(*one).total_cmp(&cost(*other))).unwrap_or(1)
}
