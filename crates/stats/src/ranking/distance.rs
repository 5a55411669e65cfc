//! Bounds the distance of each system of a point to the best one.
//!
//! Multiple comparisons with the best: a bound on the distance of a system to the best holds if the
//! bounds between each system and the best do. So a point of `k` systems needs `k − 1` comparisons
//! in both directions, and not one for each pair. They are corrected by Bonferroni over all points
//! and looks, because each pair has its own variance.
//!
//! Source: Hsu, *Multiple Comparisons: Theory and Methods*, 1996, chapter 4.

use super::family::Shown;
use super::looks::Look;
use super::pairs::Pairs;
use super::table::BLOCKS_MIN;
use crate::student::student_two_sided_t;

/// The share of alpha for these bounds.
const SHARE: f64 = 0.08;

/// Returns for each point the upper bounds of the difference of each pair in both directions:
/// `a − b` at `a × systems + b`, infinite if unknown.
///
/// `planned` is the number of comparisons with the best that the table will have: its systems less
/// one, summed over its points.
pub(super) fn upper_bounds(
    points: &[Pairs],
    looks: &[Look],
    shown: &[Shown],
    alpha: f64,
    planned: usize,
) -> Vec<Vec<f64>> {
    let comparisons: usize = points.iter().map(|pairs| pairs.systems.saturating_sub(1)).sum();
    // The level of a two-sided interval is twice that of a bound.
    let level = SHARE * alpha / comparisons.max(planned).max(1) as f64;
    let of = |(point, pairs): (usize, &Pairs)| {
        let mut upper = vec![f64::INFINITY; pairs.systems * pairs.systems];
        for (place, all) in pairs.list.iter().enumerate().filter(|(_, pair)| pair.blocks >= BLOCKS_MIN) {
            let (there, back) = (all.a * pairs.systems + all.b, all.b * pairs.systems + all.a);
            for look in looks {
                let Some(pair) = look.pair(point, all) else { continue };
                let Some(spread) = look.noise.spread(pair, look.points[point].scale) else { continue };
                let half = student_two_sided_t(level * look.share, spread.degrees) * spread.variance.sqrt();
                if half.is_finite() {
                    upper[there] = upper[there].min(pair.mean + half);
                    upper[back] = upper[back].min(half - pair.mean);
                }
            }
            // Statements that are shown about the pair hold as well.
            if shown[point].same[place] {
                upper[there] = upper[there].min(all.bound);
                upper[back] = upper[back].min(all.bound);
            }
            if shown[point].different[place] {
                let less = if shown[point].mean[place] < 0.0 { there } else { back };
                upper[less] = upper[less].min(0.0);
            }
        }
        upper
    };
    points.iter().enumerate().map(of).collect()
}
