//! The looks at a growing table: each pair is tested at certain numbers of blocks, and at no other.
//!
//! Each look may spend a fixed share of the error rate, which depends on the pair's own number of
//! blocks and on no measured value. So it does not matter which pairs are measured further, when a
//! measurement is stopped, or whether it continues on another day: the shares of all looks add up
//! to at most 1.

use super::noise::Noise;
use super::pairs::{Differences, Pairs};
use super::table::Looks;
use crate::sequential::{look_after, share_of_look};

/// A table as it was when pairs had a certain number of blocks.
pub(super) struct Look {
    /// The pairs of each point, with at most this number of blocks.
    pub(super) points: Vec<Pairs>,
    pub(super) noise: Noise,
    /// Its share of the error rate, 0 to 1.
    pub(super) share: f64,
    /// The number of blocks that a pair must have; `None` for any.
    blocks: Option<usize>,
}

impl Look {
    /// Returns a pair of a point, if this look includes it.
    pub(super) fn pair(&self, point: usize, of: &Differences) -> Option<&Differences> {
        let (pair, _) = self.points[point].between(of.a, of.b)?;
        self.blocks.is_none_or(|blocks| pair.blocks == blocks).then_some(pair)
    }
}

/// Returns the looks up to a table's present state.
pub(super) fn of(looks: Looks, all: &[Pairs], noise: &Noise, until: impl Fn(usize) -> Vec<Pairs>) -> Vec<Look> {
    if looks == Looks::Once {
        return vec![Look { points: all.to_vec(), noise: *noise, share: 1.0, blocks: None }];
    }
    let most = all.iter().flat_map(|pairs| &pairs.list).map(|pair| pair.blocks).max().unwrap_or(0);
    let counts = std::iter::successors(Some(look_after(0)), |blocks| Some(look_after(*blocks)));
    let look = |blocks| {
        let points = until(blocks);
        let noise = Noise::of(&points);
        Look { points, noise, share: share_of_look(blocks), blocks: Some(blocks) }
    };
    counts.take_while(|blocks| *blocks <= most).map(look).collect()
}
