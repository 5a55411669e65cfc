//! Ranks systems by their capacities, from the intervals of their searches.
//!
//! The result of a search is taken as normal on the logarithm of the load, with the spread of its
//! interval. Two capacities differ if the difference of their logarithms is shown not to be 0, and
//! are the same if it is shown to be less than a margin (two one-sided tests: Schuirmann 1987). No
//! pair can be wrong in both ways, so each pair of the whole table may spend an equal share of the
//! error rate on either (Bonferroni), and at most 5 in 100 tables contain a wrong statement.

use crate::capacity::CAPACITY_LEVEL;
use crate::normal::{normal_cdf, normal_two_sided_p};

/// The error rate of the whole table.
const ALPHA: f64 = 0.05;
/// Standard deviations on either side that enclose a share of [`CAPACITY_LEVEL`].
const DEVIATIONS: f64 = 1.644_853_626_951_472_2;
/// Smallest spread of a search, as a fraction: the step of its grid.
const FINEST: f64 = 0.001;

/// The capacity that a search found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KnownCapacity {
    /// The lower end of its interval.
    pub lo: f64,
    /// The most likely value.
    pub estimate: f64,
    /// The upper end; `None` for a lower bound.
    pub hi: Option<f64>,
}

/// Standing of a system at a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CapacityStanding {
    /// Its capacity is higher than every other.
    Winner,
    /// It is one of the highest, which are the same.
    Tie,
    /// Another system's capacity is higher.
    Behind,
    /// None of these is shown.
    Undecided,
    /// There is no other system.
    Alone,
}

/// Ranks the systems of each point of a table; `None` for systems without a capacity. Capacities
/// that differ by less than `tie`, a fraction, are the same.
pub fn rank_capacities(points: &[Vec<Option<KnownCapacity>>], tie: f64) -> Vec<Vec<Option<CapacityStanding>>> {
    let known = |point: &Vec<Option<KnownCapacity>>| point.iter().flatten().count();
    let pairs: usize = points.iter().map(|point| known(point) * known(point).saturating_sub(1) / 2).sum();
    let alpha = ALPHA / pairs.max(1) as f64;
    points.iter().map(|point| stand(point, alpha, tie)).collect()
}

fn stand(point: &[Option<KnownCapacity>], alpha: f64, tie: f64) -> Vec<Option<CapacityStanding>> {
    let beats = |one: usize, other: usize| match (point[one], point[other]) {
        (Some(one), Some(other)) => is_higher(one, other, alpha),
        _ => false,
    };
    let is_same = |one: usize, other: usize| match (point[one], point[other]) {
        (Some(one), Some(other)) => is_same(one, other, alpha, tie),
        _ => false,
    };
    let all: Vec<usize> = (0..point.len()).filter(|system| point[*system].is_some()).collect();
    let others = |one: usize| all.iter().copied().filter(move |other| *other != one);
    let unbeaten: Vec<usize> =
        all.iter().copied().filter(|one| !others(*one).any(|other| beats(other, *one))).collect();
    let do_tie = unbeaten.iter().all(|one| unbeaten.iter().all(|other| one == other || is_same(*one, *other)));
    let of = |one: usize| match unbeaten.contains(&one) {
        _ if all.len() < 2 => CapacityStanding::Alone,
        false => CapacityStanding::Behind,
        true if others(one).all(|other| beats(one, other)) => CapacityStanding::Winner,
        true if do_tie && unbeaten.len() > 1 => CapacityStanding::Tie,
        true => CapacityStanding::Undecided,
    };
    (0..point.len()).map(|system| point[system].map(|_| of(system))).collect()
}

/// Returns the standard deviation of the logarithm.
fn spread(known: KnownCapacity, hi: f64) -> f64 {
    debug_assert!((normal_two_sided_p(DEVIATIONS) - (1.0 - CAPACITY_LEVEL)).abs() < 1e-9);
    ((hi / known.lo).ln() / (2.0 * DEVIATIONS)).max(FINEST)
}

fn is_higher(one: KnownCapacity, other: KnownCapacity, alpha: f64) -> bool {
    // A lower bound can beat another capacity, but cannot be beaten.
    let Some(others_hi) = other.hi else { return false };
    let (place, width) = match one.hi {
        Some(hi) => (one.estimate, spread(one, hi)),
        None => (one.lo, FINEST),
    };
    let between = (place / other.estimate).ln();
    between > 0.0 && normal_two_sided_p(between / width.hypot(spread(other, others_hi))) < alpha
}

fn is_same(one: KnownCapacity, other: KnownCapacity, alpha: f64, tie: f64) -> bool {
    let (Some(hi), Some(others_hi)) = (one.hi, other.hi) else { return false };
    let between = (one.estimate / other.estimate).ln().abs();
    let width = spread(one, hi).hypot(spread(other, others_hi));
    normal_cdf((between - tie.ln_1p()) / width) < alpha
}
