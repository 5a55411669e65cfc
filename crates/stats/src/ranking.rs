//! Which systems of a table are better than which, by a test within blocks.
//!
//! A *table* has points, a point has systems, and a *block* is one repeat of
//! all systems of a point, measured one after the other. Systems are compared
//! within blocks only: what drifts from block to block befalls all systems of a
//! block and cancels.
//!
//! - **Differences within blocks, on logarithms**: of each pair of systems of a
//!   point the difference in each block that has both. A difference of
//!   logarithms is a factor.
//! - **Variances that borrow strength from the whole table** (`noise`): two or
//!   three differences say little of their own noise, but all pairs of a table
//!   together say much. How far each pair may differ from the rest is estimated
//!   with the error of that estimate on the safe side.
//! - **Corrected for all comparisons that a table makes** (`family`).
//!
//! `alpha` is shared out: four fifths of it for calling systems different, one
//! fifth for calling them the same. So of 100 tables at most `100 × alpha`
//! contain any statement that is wrong. That is exact for normal noise (of
//! logarithms) of one size, and simulated for other noise (`docs/ranking.md`).
//!
//! Sources: Smyth, *Linear models and empirical Bayes methods for assessing
//! differential expression in microarray experiments*, Statistical Applications
//! in Genetics and Molecular Biology 3(1), article 3, 2004 (variances);
//! Shaffer, *Modified sequentially rejective multiple test procedures*, JASA
//! 81, 1986, and Holm 1979 (correction); Schuirmann, *A comparison of the two
//! one-sided tests procedure and the power approach*, Journal of
//! Pharmacokinetics and Biopharmaceutics 15, 1987 (ties).

mod family;
mod more;
mod noise;
mod pairs;
mod verdict;

use crate::better::Better;
use crate::change::Scale;
use crate::estimate::{Estimate, Interval};
use crate::student::student_two_sided_t;
use noise::Noise;

/// Two systems whose figures differ by less than this, 5 per cent, are called
/// the same where nothing else is asked for.
pub const SAME_WITHIN: f64 = 0.05;

/// The fewest blocks of which anything is said.
pub const BLOCKS_MIN: usize = 2;

/// The most repeats that [`Placing::Undecided`] ever asks for: beyond it the
/// answer is *more than can be said*.
pub const REPEATS_MORE_MAX: u32 = 1_000;

/// What is to be ranked: all points that are shown, and so corrected for,
/// together.
#[derive(Clone, Debug)]
pub struct Table {
    /// The points.
    pub points: Vec<Point>,
    /// How small a difference has to be for a tie, as a fraction: 0.05 makes
    /// a tie of figures whose quotient is shown to be within 1.05 either way.
    /// Above 0.
    pub bound: f64,
    /// How many tables, of those in which something could be said wrongly, may
    /// say it: 0.05, and 0 < alpha < 1.
    pub alpha: f64,
}

/// Systems that are measured at one place on the other axes.
#[derive(Clone, Debug)]
pub struct Point {
    /// The systems, in any order; results are by index into it.
    pub systems: Vec<Blocks>,
    /// Which way the figure is better here.
    pub better: Better,
}

/// A system's figure in each block of its point.
#[derive(Clone, Debug)]
pub struct Blocks {
    /// The figure in block 0, 1 and so on, in its unit; `None` where there is no
    /// run whose figure may be quoted. Blocks beyond the end have none.
    pub values: Vec<Option<f64>>,
    /// The least difference that the measurement could have shown, in the same
    /// unit; 0 or more.
    pub step: f64,
}

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
    pub placing: Placing,
    /// What is known of each system, by its index.
    pub standings: Vec<Standing>,
    pairs: pairs::Pairs,
    noise: noise::Noise,
    systems: usize,
    beats: Vec<bool>,
    same: Vec<bool>,
}

/// Who is best at a point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Placing {
    /// This system is shown to be better than each other.
    Winner(usize),
    /// The first of these looks best, and its difference to each other one of
    /// them is shown to be smaller than the bound; all systems left out are
    /// shown to be worse. At least two.
    Tie(Vec<usize>),
    /// Neither is shown.
    Undecided {
        /// What stands in the way.
        why: Why,
        /// About how many more blocks would tell, 1 to [`REPEATS_MORE_MAX`], if
        /// differences and noise are what they seem to be (with a chance of
        /// four in five); `None` where that cannot be said or is beyond it.
        repeats_more: Option<u32>,
    },
}

/// Why nothing is said of a point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// There are fewer than two systems.
    TooFewSystems,
    /// These have a value that is not a finite number.
    Unusable(Vec<usize>),
    /// These share fewer than [`BLOCKS_MIN`] blocks with a system that they
    /// would have to be compared with.
    TooFewBlocks(Vec<usize>),
    /// The differences to these are within the noise, and the noise is too
    /// large to call them the same.
    Noise(Vec<usize>),
}

/// What is known of one system of a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
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

/// Ranks the systems of each point of a table.
///
/// Where a value of a point is 0 or less, its differences are compared as they
/// are, with their own noise alone, and the bound of a tie is a fraction of the
/// larger mean.
///
/// Never fails: what cannot be compared is [`Placing::Undecided`].
pub fn rank_table(table: &Table) -> RankedTable {
    let pairs: Vec<pairs::Pairs> = table.points.iter().map(|point| pairs::of(point, table.bound)).collect();
    let noise = Noise::of(&pairs);
    let shown = family::shown(&pairs, &noise, table.alpha);
    let points = table.points.iter().zip(pairs).zip(shown);
    RankedTable { points: points.map(|((point, pairs), shown)| verdict::point(point, pairs, shown, noise)).collect() }
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
            .map(|spread| student_two_sided_t(0.05, spread.degrees) * (spread.variance / pair.blocks as f64).sqrt());
        let interval = half.map(|half| Interval { lo: back(mean - half), hi: back(mean + half) });
        let estimate = Estimate { value: back(mean), interval };
        Some(Difference { estimate, scale: self.pairs.scale, blocks: pair.blocks })
    }

    fn at(&self, a: usize, b: usize) -> Option<usize> {
        (a < self.systems && b < self.systems && a != b).then_some(a * self.systems + b)
    }
}
