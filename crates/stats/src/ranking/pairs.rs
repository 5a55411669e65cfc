//! The differences of each pair of systems of a point, within blocks.

use super::table::{Blocks, PointInput};
use crate::change::Scale;
use std::collections::BTreeMap;

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
    /// Of one difference within a session, with a divisor of `degrees`; 0 where these are 0.
    pub(super) variance: f64,
    /// Blocks less sessions.
    pub(super) degrees: usize,
    pub(super) sessions: Sessions,
    /// The variance of one difference that the resolution leaves at least.
    pub(super) least: f64,
    /// Number of blocks that have both, at least 1.
    pub(super) blocks: usize,
    /// The smallest difference that is not a tie, on this scale; 0 if every difference counts.
    pub(super) bound: f64,
}

/// How the blocks of a pair are spread over sessions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sessions {
    /// How many there are.
    pub(super) count: usize,
    /// The sum over sessions of the squared share of the blocks: 1 for one session.
    pub(super) concentration: f64,
    /// The squares of the sessions' mean differences from the mean of all, each times its blocks.
    pub(super) squares: f64,
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
    let session = |of: &Blocks, block: usize| of.sessions.get(block).copied().unwrap_or_default();
    let all = of_a.values.iter().zip(&of_b.values).enumerate();
    // A block that was interrupted, and made whole in a later session, compares nothing.
    let within = all.filter(|(block, _)| session(of_a, *block) == session(of_b, *block));
    let known = within.filter_map(|(block, (a, b))| Some((session(of_a, block), (*a)?, (*b)?)));
    let known: Vec<(u32, f64, f64)> = known.take(limit).collect();
    let both = || known.iter().map(|(_, a, b)| (*a, *b));
    let blocks = known.len();
    if blocks == 0 {
        return None;
    }
    let n = blocks as f64;
    let difference = |(a, b): (f64, f64)| match scale {
        Scale::Ratio => a.ln() - b.ln(),
        Scale::Difference => a - b,
    };
    let mean = both().map(difference).sum::<f64>() / n;
    let mut by_session: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for (session, a, b) in &known {
        by_session.entry(*session).or_default().push(difference((*a, *b)));
    }
    let mean_of = |differences: &[f64]| differences.iter().sum::<f64>() / differences.len() as f64;
    let within = |of: &Vec<f64>| of.iter().map(|difference| (difference - mean_of(of)).powi(2)).sum::<f64>();
    let squares: f64 = by_session.values().map(within).sum();
    let sessions = Sessions {
        count: by_session.len(),
        concentration: by_session.values().map(|of| (of.len() as f64 / n).powi(2)).sum(),
        squares: by_session.values().map(|of| of.len() as f64 * (mean_of(of) - mean).powi(2)).sum(),
    };
    let degrees = blocks - sessions.count;
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
    let variance = if degrees > 0 { squares / degrees as f64 } else { 0.0 };
    let found = Differences { a, b, mean, variance, degrees, sessions, least, blocks, bound };
    (mean.is_finite() && variance.is_finite() && least.is_finite()).then_some(found)
}
