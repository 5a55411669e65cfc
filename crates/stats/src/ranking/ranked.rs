//! What is known of a table's points, and of each two of a point's systems.

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

/// What is known of a point's systems.
#[derive(Clone, Debug)]
pub struct RankedPoint {
    /// Who is best.
    pub placing: PointOutcome,
    /// What is known of each system, by its index.
    pub standings: Vec<SystemOutcome>,
    pub(super) pairs: Pairs,
    pub(super) noise: Noise,
    pub(super) systems: usize,
    pub(super) beats: Vec<bool>,
    pub(super) same: Vec<bool>,
    pub(super) upper: Vec<f64>,
}

/// Who is best at a point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PointOutcome {
    /// This system is shown to be better than each other.
    Winner(usize),
    /// The first of these looks best, and its difference to each other one of
    /// them is shown to be smaller than the bound; all systems left out are
    /// shown to be worse. At least two.
    Tie(Vec<usize>),
    /// Neither is shown.
    Undecided {
        /// What stands in the way.
        why: UndecidedReason,
        /// About how many more blocks would tell, 1 to [`REPEATS_MORE_MAX`](super::REPEATS_MORE_MAX), if
        /// differences and noise are what they seem to be (with a chance of
        /// four in five); `None` where that cannot be said or is beyond it.
        repeats_more: Option<u32>,
    },
}

/// Why nothing is said of a point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UndecidedReason {
    /// There are fewer than two systems.
    TooFewSystems,
    /// These have a value that is not a finite number.
    Unusable(Vec<usize>),
    /// These share fewer than [`BLOCKS_MIN`](super::BLOCKS_MIN) blocks with a system that they
    /// would have to be compared with.
    TooFewBlocks(Vec<usize>),
    /// The differences to these are within the noise, and the noise is too
    /// large to call them the same.
    Noise(Vec<usize>),
}

/// What is known of one system of a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SystemOutcome {
    /// It is the winner, or looks best of those that may be.
    Ahead,
    /// It is shown to be worse than another, so it is not the best.
    Behind,
    /// It differs from the one ahead by less than the bound, and that is shown.
    Same,
    /// Neither is shown.
    Open,
}

/// Two systems of a point compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// a / b or a − b, by the scale: the mean over blocks. The 95 % interval is
    /// of this comparison alone.
    pub estimate: Estimate,
    /// Which of the two it is: a quotient where all values of the point are
    /// above 0.
    pub scale: Scale,
    /// Blocks that have both.
    pub blocks: usize,
}

impl RankedPoint {
    /// Whether `a` is shown to be better than `b`, at the level that holds for
    /// the whole table.
    pub fn beats(&self, a: usize, b: usize) -> bool {
        self.at(a, b).is_some_and(|index| self.beats[index])
    }

    /// Whether the difference of `a` and `b` is shown to be smaller than the
    /// bound, at the level that holds for the whole table.
    pub fn same(&self, a: usize, b: usize) -> bool {
        self.at(a, b).is_some_and(|index| self.same[index])
    }

    /// How far `a` is from `b`. `None` where they share no block, are the same
    /// system or hold a value that is no number.
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

    /// Returns bounds on how far `a` is from `b`, as a factor a / b or a difference
    /// a − b by [`RankedPoint::scale`]. All bounds between systems of a table and the
    /// best of their point hold together, at the level of the table. An end is 0 or
    /// infinite where nothing bounds it.
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
