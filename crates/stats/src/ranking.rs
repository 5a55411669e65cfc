//! Ranks the systems of a table by a test within blocks.
//!
//! A *table* has points, a point has systems, and a *block* is one repeat of all systems of a
//! point, measured one after the other. Systems are compared within blocks only: drift from block
//! to block affects all systems of a block and cancels.
//!
//! - **Differences within blocks, on logarithms**: for each pair of systems of a point, the
//!   difference in each block that has both. A difference of logarithms is a factor.
//! - **Variances that borrow strength from the whole table** (`noise`): two or three differences
//!   say little about their own noise, but all pairs of a table together say much. The possible
//!   deviation of each pair from the rest is estimated, with the error of that estimate on the safe
//!   side.
//! - **Corrected for all comparisons of a table** (`family`).
//! - **And for every look** (`looks`), if a table is evaluated while it grows.
//!
//! - **Distance of each system from the best** (`distance`).
//!
//! `alpha` is divided: 80 % for calling systems different, 12 % for calling them the same, 8 % for
//! distances. So of 100 tables at most `100 × alpha` contain a wrong statement. That is exact for
//! normal noise (of logarithms) of one size, and simulated for other noise (`docs/ranking.md`).
//!
//! Sources: Smyth, *Linear models and empirical Bayes methods for assessing differential expression
//! in microarray experiments*, Statistical Applications in Genetics and Molecular Biology 3(1),
//! article 3, 2004 (variances); Shaffer, *Modified sequentially rejective multiple test
//! procedures*, JASA 81, 1986, and Holm 1979 (correction); Schuirmann, *A comparison of the two
//! one-sided tests procedure and the power approach*, Journal of Pharmacokinetics and
//! Biopharmaceutics 15, 1987 (ties).

mod distance;
mod family;
mod looks;
mod more;
mod noise;
mod pairs;
mod results;
mod table;
mod verdict;

use noise::Noise;
pub use results::{Difference, PointOutcome, RankedPoint, RankedTable, SystemOutcome, UndecidedReason};
pub use table::{BLOCKS_MIN, Blocks, Looks, PointInput, REPEATS_MORE_MAX, RankingInput, SAME_WITHIN};

/// Ranks the systems of each point of a table.
///
/// If a value of a point is 0 or less, its differences are compared without logarithms, with their
/// own noise alone, and the bound of a tie is a fraction of the larger mean.
///
/// Never fails: a point that cannot be compared is [`PointOutcome::Undecided`].
pub fn rank_table(table: &RankingInput) -> RankedTable {
    let pairs = |limit| -> Vec<pairs::Pairs> {
        table.points.iter().map(|point| pairs::of(point, table.bound, limit)).collect()
    };
    let all = pairs(usize::MAX);
    let noise = Noise::of(&all);
    let looks = looks::of(table.looks, &all, &noise, pairs);
    let (planned, rivals) = if let Looks::Many { pairs, rivals } = table.looks { (pairs, rivals) } else { (0, 0) };
    let shown = family::shown(&all, &looks, table.alpha, planned);
    let upper = distance::upper_bounds(&all, &looks, &shown, table.alpha, rivals);
    let points = table.points.iter().zip(all).zip(shown).zip(upper);
    let told = |(((point, pairs), shown), upper)| verdict::point(point, pairs, (shown, upper), (noise, table.looks));
    RankedTable { points: points.map(told).collect() }
}
