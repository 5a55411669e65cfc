//! The input of a ranking.

use crate::direction::Better;

/// Default bound of a tie: figures that differ by less than 5 % are the same.
pub const SAME_WITHIN: f64 = 0.05;

/// Fewest blocks for any statement.
pub const BLOCKS_MIN: usize = 2;

/// Largest number of additional repeats in [`PointOutcome::Undecided`](super::PointOutcome); beyond
/// it the number is not given.
pub const REPEATS_MORE_MAX: u32 = 1_000;

/// The input of a ranking: all points that are shown together, and so corrected for together.
#[derive(Clone, Debug)]
pub struct RankingInput {
    /// The points.
    pub points: Vec<PointInput>,
    /// Largest difference of a tie, as a fraction: 0.05 makes a tie of figures whose quotient is
    /// shown to be within 1.05 either way. Above 0.
    pub bound: f64,
    /// Maximum share of wrong tables, of those in which a wrong statement is possible: 0.05, and 0
    /// < alpha < 1.
    pub alpha: f64,
    /// The looks at the table while it grows.
    pub looks: Looks,
}

/// The looks at a table while it grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Looks {
    /// One look, when all planned blocks are measured; their number was fixed in advance.
    Once,
    /// Repeated looks, which determine what is measured further.
    Many {
        /// Pairs of systems that the whole table will have, including those not measured yet, so
        /// that statements shown before stay shown. If it is below the number of pairs of `points`,
        /// that number is used.
        pairs: usize,
        /// The systems of each point less one, summed over all points, including those not measured
        /// yet.
        rivals: usize,
    },
}

/// Systems that are measured at one point, which has one value on each other axis.
#[derive(Clone, Debug)]
pub struct PointInput {
    /// The systems, in any order; results are by index into it.
    pub systems: Vec<Blocks>,
    /// The better direction of the figure here.
    pub better: Better,
}

/// A system's figure in each block of its point.
#[derive(Clone, Debug)]
pub struct Blocks {
    /// The figure in block 0, 1 and so on, in its unit; `None` if there is no run with a reliable
    /// figure. Blocks beyond the end have none.
    pub values: Vec<Option<f64>>,
    /// The session in which each block was measured: an evening, say. Systems are compared within
    /// a session only. Empty where all blocks are of one session.
    pub sessions: Vec<u32>,
    /// The least difference that the measurement could have shown, in the same
    /// unit; 0 or more.
    pub step: f64,
}
