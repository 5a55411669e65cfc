//! The differences of each pair of systems of a point, within blocks.

use super::table::{Blocks, PointInput};
use crate::change::Scale;

/// Smallest credible standard deviation of a difference of logarithms: the effect of rounding to a
/// number of twelve digits.
const LEAST_DEVIATION: f64 = 1e-12;

/// A point's pairs, the first system before the second.
#[derive(Clone, Debug)]
pub(super) struct Pairs {
    pub(super) scale: Scale,
    pub(super) systems: usize,
    /// Systems with a value that is not finite; they have no pairs.
    pub(super) unusable: Vec<usize>,
    /// Pairs that share a block, by ascending `a`, then `b`.
    pub(super) list: Vec<Differences>,
}

/// Differences a − b over the blocks that have both.
#[derive(Clone, Copy, Debug)]
pub(super) struct Differences {
    pub(super) a: usize,
    pub(super) b: usize,
    pub(super) mean: f64,
    /// Variance of one difference, with a divisor of blocks − 1; 0 for one block.
    pub(super) variance: f64,
    /// The smallest variance of one difference, due to the resolution.
    pub(super) least: f64,
    /// Number of blocks that have both, at least 1.
    pub(super) blocks: usize,
    /// The smallest difference that is not a tie, on this scale; 0 if every difference counts.
    pub(super) bound: f64,
}

impl Pairs {
    /// Returns the pair of two systems, and the sign that makes it a − b.
    pub(super) fn between(&self, a: usize, b: usize) -> Option<(&Differences, f64)> {
        let (first, second) = (a.min(b), a.max(b));
        let found = self.list.binary_search_by(|pair| (pair.a, pair.b).cmp(&(first, second))).ok()?;
        Some((&self.list[found], if a < b { 1.0 } else { -1.0 }))
    }
}

/// Returns all pairs of a point, each from its first `limit` blocks. `bound` is the fraction below
/// which systems are the same.
pub(super) fn of(point: &PointInput, bound: f64, limit: usize) -> Pairs {
    let values = || point.systems.iter().flat_map(|system| system.values.iter().flatten());
    let scale = if values().all(|value| *value > 0.0) { Scale::Ratio } else { Scale::Difference };
    let is_unusable = |blocks: &Blocks| blocks.values.iter().flatten().any(|value| !value.is_finite());
    let systems = point.systems.len();
    let unusable: Vec<usize> = (0..systems).filter(|index| is_unusable(&point.systems[*index])).collect();
    let mut list = Vec::new();
    for a in (0..systems).filter(|a| !unusable.contains(a)) {
        for b in (a + 1..systems).filter(|b| !unusable.contains(b)) {
            list.extend(differences(point, (a, b), scale, (bound, limit)));
        }
    }
    Pairs { scale, systems, unusable, list }
}

fn differences(point: &PointInput, (a, b): (usize, usize), scale: Scale, by: (f64, usize)) -> Option<Differences> {
    let (bound, limit) = by;
    let (of_a, of_b) = (&point.systems[a], &point.systems[b]);
    let both = || of_a.values.iter().zip(&of_b.values).filter_map(|(a, b)| a.zip(*b)).take(limit);
    let blocks = both().count();
    if blocks == 0 {
        return None;
    }
    let n = blocks as f64;
    let difference = |(a, b): (f64, f64)| match scale {
        Scale::Ratio => a.ln() - b.ln(),
        Scale::Difference => a - b,
    };
    let mean = both().map(difference).sum::<f64>() / n;
    let squares: f64 = both().map(|pair| (difference(pair) - mean).powi(2)).sum();
    let sizes = both().fold((0.0, 0.0), |(one, other), (a, b)| (one + a.abs() / n, other + b.abs() / n));
    let (least, bound) = match scale {
        Scale::Ratio => {
            let step = (of_a.step / sizes.0).powi(2) + (of_b.step / sizes.1).powi(2);
            (step.max(LEAST_DEVIATION.powi(2)), bound.ln_1p())
        }
        Scale::Difference => {
            let size = sizes.0.max(sizes.1);
            let step = of_a.step.powi(2) + of_b.step.powi(2);
            (step.max((size * LEAST_DEVIATION).powi(2)), size * bound)
        }
    };
    let variance = if blocks > 1 { squares / (n - 1.0) } else { 0.0 };
    let found = Differences { a, b, mean, variance, least, blocks, bound };
    (mean.is_finite() && variance.is_finite() && least.is_finite()).then_some(found)
}
