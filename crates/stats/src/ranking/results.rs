//! Results for a table's points, and for pairs of a point's systems.

use super::noise::Noise;
use super::pairs::Pairs;
use crate::change::Scale;
use crate::estimate::{Estimate, Interval};
use crate::student::student_two_sided_t;

/// A table, ranked.
#[derive(Clone, Debug)]
pub struct RankedTable {
    /// The points, in the table's order.
    pub points: Vec<RankedPoint>,
}

/// The result for a point's systems.
#[derive(Clone, Debug)]
pub struct RankedPoint {
    /// The outcome of the point.
    pub placing: PointOutcome,
    /// The outcome of each system, by its index.
    pub standings: Vec<SystemOutcome>,
    pub(super) pairs: Pairs,
    pub(super) noise: Noise,
    pub(super) systems: usize,
    pub(super) beats: Vec<bool>,
    pub(super) same: Vec<bool>,
    pub(super) upper: Vec<f64>,
}

/// Outcome of a point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PointOutcome {
    /// This system is shown to be better than each other.
    Winner(usize),
    /// The first of these appears best, and its difference to each other one of them is shown to be
    /// smaller than the bound; all systems left out are shown to be worse. At least two.
    Tie(Vec<usize>),
    /// Neither is shown.
    Undecided {
        /// The reason.
        why: UndecidedReason,
        /// Estimated number of additional blocks for a decision, 1 to
        /// [`REPEATS_MORE_MAX`](super::REPEATS_MORE_MAX), if differences and noise are as they
        /// appear (with a chance of four in five); `None` if it is unknown or beyond that.
        repeats_more: Option<u32>,
    },
}

/// Reason why a point is undecided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UndecidedReason {
    /// There are fewer than two systems.
    TooFewSystems,
    /// These systems have a value that is not a finite number.
    Unusable(Vec<usize>),
    /// These systems share fewer than [`BLOCKS_MIN`](super::BLOCKS_MIN) blocks with a system that
    /// they must be compared with.
    TooFewBlocks(Vec<usize>),
    /// The differences to these systems are within the noise, and the noise is too large to call
    /// them the same.
    Noise(Vec<usize>),
}

/// Outcome of one system of a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SystemOutcome {
    /// It is the winner, or appears best of those that may be.
    Ahead,
    /// It is shown to be worse than another, so it is not the best.
    Behind,
    /// It is shown to differ from the leading one by less than the bound.
    Same,
    /// Neither is shown.
    Open,
}

/// Two systems of a point compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// a / b or a − b, by the scale: the mean over blocks. The 95 % interval is for this comparison
    /// alone.
    pub estimate: Estimate,
    /// The scale of `estimate`: a quotient if all values of the point are above 0.
    pub scale: Scale,
    /// Number of blocks that have both.
    pub blocks: usize,
}

impl RankedPoint {
    /// True if `a` is shown to be better than `b`, at the level that holds for the whole table.
    pub fn beats(&self, a: usize, b: usize) -> bool {
        self.at(a, b).is_some_and(|index| self.beats[index])
    }

    /// True if the difference of `a` and `b` is shown to be smaller than the bound, at the level
    /// that holds for the whole table.
    pub fn same(&self, a: usize, b: usize) -> bool {
        self.at(a, b).is_some_and(|index| self.same[index])
    }

    /// Returns the difference of `a` and `b`. `None` if they share no block, are the same system or
    /// have a value that is not finite.
    pub fn difference(&self, a: usize, b: usize) -> Option<Difference> {
        let (pair, sign) = self.pairs.between(a, b)?;
        let mean = sign * pair.mean;
        let back = |value: f64| match self.pairs.scale {
            Scale::Ratio => value.exp(),
            Scale::Difference => value,
        };
        let half = self
            .noise
            .spread(pair, self.pairs.scale)
            .map(|spread| student_two_sided_t(0.05, spread.degrees) * spread.variance.sqrt());
        let interval = half.map(|half| Interval { lo: back(mean - half), hi: back(mean + half) });
        let estimate = Estimate { value: back(mean), interval };
        Some(Difference { estimate, scale: self.pairs.scale, blocks: pair.blocks })
    }

    /// Returns bounds on how far `a` is from `b`, as a factor a / b or a difference a − b by
    /// [`RankedPoint::scale`]. All bounds between systems of a table and the best of their point
    /// hold together, at the level of the table. An end is 0 or infinite if unbounded.
    pub fn bounds(&self, a: usize, b: usize) -> Interval {
        let upper = |a, b| self.at(a, b).map_or(f64::INFINITY, |index| self.upper[index]);
        let (lo, hi) = (-upper(b, a), upper(a, b));
        match self.pairs.scale {
            Scale::Ratio => Interval { lo: lo.exp(), hi: hi.exp() },
            Scale::Difference => Interval { lo, hi },
        }
    }

    /// Returns whether the point's systems are compared by quotients or by differences.
    pub fn scale(&self) -> Scale {
        self.pairs.scale
    }

    fn at(&self, a: usize, b: usize) -> Option<usize> {
        (a < self.systems && b < self.systems && a != b).then_some(a * self.systems + b)
    }
}
