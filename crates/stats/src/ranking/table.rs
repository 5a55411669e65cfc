//! What is to be ranked.

use crate::better::Better;

/// Two systems whose figures differ by less than this, 5 per cent, are called
/// the same where nothing else is asked for.
pub const SAME_WITHIN: f64 = 0.05;

/// The fewest blocks of which anything is said.
pub const BLOCKS_MIN: usize = 2;

/// The most repeats that [`PointOutcome::Undecided`](super::PointOutcome) ever asks for: beyond it the
/// answer is *more than can be said*.
pub const REPEATS_MORE_MAX: u32 = 1_000;

/// What is to be ranked: all points that are shown, and so corrected for,
/// together.
#[derive(Clone, Debug)]
pub struct RankingInput {
    /// The points.
    pub points: Vec<PointInput>,
    /// How small a difference has to be for a tie, as a fraction: 0.05 makes
    /// a tie of figures whose quotient is shown to be within 1.05 either way.
    /// Above 0.
    pub bound: f64,
    /// How many tables, of those in which something could be said wrongly, may
    /// say it: 0.05, and 0 < alpha < 1.
    pub alpha: f64,
    /// How often the table is looked at while it grows.
    pub looks: Looks,
}

/// How often a table is looked at while it grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Looks {
    /// When all is measured that was to be: the number of blocks was fixed before.
    Once,
    /// Again and again, and what is measured further hangs on what was seen.
    Many {
        /// The pairs of systems that the whole table will have, those among them
        /// that are not measured yet: so that what was shown before they are stays
        /// shown. Fewer than the points have count as those.
        pairs: usize,
        /// The systems of each point less one, summed over all points, in the same way.
        rivals: usize,
    },
}

/// Systems that are measured at one place on the other axes.
#[derive(Clone, Debug)]
pub struct PointInput {
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
    /// The session in which each block was measured: an evening, say. Systems are compared within
    /// a session only. Empty where all blocks are of one session.
    pub sessions: Vec<u32>,
    /// The least difference that the measurement could have shown, in the same
    /// unit; 0 or more.
    pub step: f64,
}
