//! Estimates the number of additional repeats for a decision.

use super::family::{Shown, p_different, p_same};
use super::noise::Noise;
use super::pairs::{Differences, Pairs};
use super::table::{BLOCKS_MIN, Looks, REPEATS_MORE_MAX};
use crate::sequential::{look_after, share_of_look};

/// Standard errors beyond the smallest significant difference with which four in five measurements
/// decide (the normal quantile of 0.8).
const MARGIN: f64 = 0.841_621_233_572_914_3;

/// Returns the number of additional blocks until each open rival of the leading system is shown to
/// be worse, or the same. `None` if one never is, or not within [`REPEATS_MORE_MAX`], or if its
/// noise is unknown.
pub(super) fn repeats(
    pairs: &Pairs,
    (noise, looks): (&Noise, Looks),
    shown: &Shown,
    ahead: usize,
    open: &[usize],
) -> Option<u32> {
    let mut most = 1;
    for rival in open {
        let (pair, _) = pairs.between(ahead, *rival)?;
        most = most.max(repeats_of(pair, pairs, (noise, looks), shown)?);
    }
    Some(most)
}

fn repeats_of(pair: &Differences, pairs: &Pairs, (noise, looks): (&Noise, Looks), shown: &Shown) -> Option<u32> {
    let tells = |more: u32, share: f64| {
        let blocks = pair.blocks + more as usize;
        let Some(spread) = noise.spread_after(pair, pairs.scale, blocks) else { return false };
        let margin = MARGIN * spread.variance.sqrt();
        let with = |mean: f64| Differences { mean, blocks, ..*pair };
        let distance = pair.mean.abs();
        blocks >= BLOCKS_MIN
            && (distance > margin && p_different(&with(distance - margin), spread) <= share * shown.level_different
                || p_same(&with(distance + margin), spread) <= share * shown.level_same)
    };
    if let Looks::Many { .. } = looks {
        let counts = std::iter::successors(Some(pair.blocks), |blocks| Some(look_after(*blocks))).skip(1);
        let more = counts.map(|blocks| ((blocks - pair.blocks) as u32, share_of_look(blocks)));
        let mut more = more.take_while(|(more, _)| *more <= REPEATS_MORE_MAX);
        return more.find(|(more, share)| tells(*more, *share)).map(|(more, _)| more);
    }
    if !tells(REPEATS_MORE_MAX, 1.0) {
        return None;
    }
    // More blocks never decide less.
    let (mut from, mut to) = (1, REPEATS_MORE_MAX);
    while from < to {
        let middle = from.midpoint(to);
        if tells(middle, 1.0) {
            to = middle;
        } else {
            from = middle + 1;
        }
    }
    Some(from)
}
