//! Statements about all pairs of a table, corrected for their number.

use super::looks::Look;
use super::noise::Spread;
use super::pairs::{Differences, Pairs};
use super::table::BLOCKS_MIN;
use crate::student::student_two_sided_p;

/// The share of alpha for calling systems different.
const SHARE_DIFFERENT: f64 = 0.8;
/// The share for calling them the same; [`super::distance`] has the rest.
const SHARE_SAME: f64 = 0.12;

/// Statements shown about a point's pairs, in their order.
#[derive(Clone, Debug)]
pub(super) struct Shown {
    pub(super) different: Vec<bool>,
    pub(super) same: Vec<bool>,
    /// The mean difference at the look with the clearest difference of a pair; 0 if there was no
    /// look.
    pub(super) mean: Vec<f64>,
    /// The levels at which one further pair would have been shown to be different, or the same.
    pub(super) level_different: f64,
    pub(super) level_same: f64,
}

/// A p value, with the pair's point and its index there.
struct Member {
    point: usize,
    place: usize,
    /// Divided by the look's share of the error rate: the smallest of all looks.
    p: f64,
    /// Mean difference at that look.
    mean: f64,
}

/// Returns the statements shown about each point.
///
/// Different: Shaffer's procedure. The smallest p is compared with alpha over the number of pairs,
/// as in Bonferroni's. But once one pair of a point is shown to differ, not all its other pairs can
/// be equal, and the next p is compared with alpha over the largest number that still can.
///
/// The same: Holm's procedure on the larger p of the two one-sided tests.
///
/// With several looks the p of a pair is the smallest of all looks, each divided by the share of
/// the error rate that the look may spend: so it stays a valid p whatever is measured further, and
/// whenever that ends. `planned` is the number of pairs that the table has or will have.
pub(super) fn shown(points: &[Pairs], looks: &[Look], alpha: f64, planned: usize) -> Vec<Shown> {
    let mut shown: Vec<Shown> = points.iter().map(|pairs| Shown::nothing(pairs.list.len())).collect();
    let (different, same) = (SHARE_DIFFERENT * alpha, SHARE_SAME * alpha);
    let mut equalities: Vec<Equalities> = points.iter().map(Equalities::of).collect();
    let compared: usize = equalities.iter().map(|point| point.pairs).sum();
    let unmeasured = planned.saturating_sub(compared);
    let mut level = f64::NAN;
    for member in members(points, looks, p_different) {
        shown[member.point].mean[member.place] = member.mean;
        let possible = unmeasured + equalities.iter().map(Equalities::possible).sum::<usize>();
        level = different / possible.max(1) as f64;
        if member.p > level {
            break;
        }
        shown[member.point].different[member.place] = true;
        equalities[member.point].refused += 1;
    }
    let family = members(points, looks, p_same);
    let mut level_same = f64::NAN;
    for (place, member) in family.iter().enumerate() {
        level_same = same / (unmeasured + family.len() - place) as f64;
        if member.p > level_same {
            break;
        }
        shown[member.point].same[member.place] = true;
    }
    for point in &mut shown {
        (point.level_different, point.level_same) = (level, level_same);
    }
    shown
}

impl Shown {
    fn nothing(pairs: usize) -> Self {
        let none = vec![false; pairs];
        let mean = vec![0.0; pairs];
        Self { different: none.clone(), same: none, mean, level_different: f64::NAN, level_same: f64::NAN }
    }
}

/// Returns all pairs with enough blocks, smallest p first.
fn members(points: &[Pairs], looks: &[Look], p: fn(&Differences, Spread) -> f64) -> Vec<Member> {
    let mut members = Vec::new();
    for (point, pairs) in points.iter().enumerate() {
        for (place, all) in pairs.list.iter().enumerate().filter(|(_, pair)| pair.blocks >= BLOCKS_MIN) {
            let seen = looks.iter().filter_map(|look| {
                let pair = look.pair(point, all)?;
                Some((p_of(pair, look, point, p) / look.share, pair.mean))
            });
            let least = seen.min_by(|one, other| one.0.total_cmp(&other.0));
            let (p, mean) = least.unwrap_or((1.0, 0.0));
            members.push(Member { point, place, p, mean });
        }
    }
    members.sort_by(|one, other| one.p.total_cmp(&other.p));
    members
}

fn p_of(pair: &Differences, look: &Look, point: usize, p: fn(&Differences, Spread) -> f64) -> f64 {
    let p = look.noise.spread(pair, look.points[point].scale).map_or(1.0, |spread| p(pair, spread));
    if p.is_nan() { 1.0 } else { p }
}

/// Returns the probability of a mean at least as far from 0, if the two are equal.
pub(super) fn p_different(pair: &Differences, spread: Spread) -> f64 {
    student_two_sided_p(pair.mean / spread.variance.sqrt(), spread.degrees)
}

/// Returns the probability of a mean at least as far within the bound, if the two differ by the
/// bound.
pub(super) fn p_same(pair: &Differences, spread: Spread) -> f64 {
    let margin = pair.bound - pair.mean.abs();
    if margin > 0.0 { 0.5 * student_two_sided_p(margin / spread.variance.sqrt(), spread.degrees) } else { 1.0 }
}

/// The pairs of a point that can be equal, given the number that are not.
struct Equalities {
    /// All possible numbers of equal pairs, in ascending order: with three systems 0, 1 or 3,
    /// because two equalities imply a third.
    numbers: Vec<usize>,
    pairs: usize,
    refused: usize,
}

impl Equalities {
    fn of(pairs: &Pairs) -> Self {
        let compared = pairs.list.iter().filter(|pair| pair.blocks >= BLOCKS_MIN).count();
        Self { numbers: equal_pairs(pairs.systems), pairs: compared, refused: 0 }
    }

    /// Returns the largest number of pairs that may still be equal: at most the remaining ones, and
    /// at most the largest number that leaves room for those refused.
    fn possible(&self) -> usize {
        let all = self.numbers.last().copied().unwrap_or(0);
        let room = all - self.refused;
        let largest = self.numbers.iter().rev().find(|number| **number <= room).copied().unwrap_or(0);
        largest.min(self.pairs - self.refused)
    }
}

/// Returns all numbers of pairs of equal systems over the groupings of this many systems,
/// ascending.
fn equal_pairs(systems: usize) -> Vec<usize> {
    // For each number of systems, the sums that its groupings reach.
    let mut reached = vec![std::collections::BTreeSet::from([0])];
    for count in 1..=systems {
        let sums = (1..=count).flat_map(|group| {
            let pairs = group * (group - 1) / 2;
            reached[count - group].iter().map(move |sum| sum + pairs).collect::<Vec<_>>()
        });
        let sums = sums.collect();
        reached.push(sums);
    }
    reached.pop().into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shaffer 1986, table 1: t_i for 3, 4 and 5 systems.
    #[test]
    fn equalities_are_those_of_shaffer() {
        let left = |systems: usize| -> Vec<usize> {
            let pairs = systems * (systems - 1) / 2;
            let mut state = Equalities { numbers: equal_pairs(systems), pairs, refused: 0 };
            (0..pairs)
                .map(|refused| {
                    state.refused = refused;
                    state.possible()
                })
                .collect()
        };
        assert_eq!(left(2), [1]);
        assert_eq!(left(3), [3, 1, 1]);
        assert_eq!(left(4), [6, 3, 3, 3, 2, 1]);
        assert_eq!(left(5), [10, 6, 6, 6, 6, 4, 4, 3, 2, 1]);
    }
}
