//! The looks that are taken at a table while it grows: each pair is looked at
//! when it has come to certain numbers of blocks, and at no other.
//!
//! Each look may spend a fixed share of the error rate, which hangs on the pair's
//! own number of blocks and on nothing that was seen. So it does not matter which
//! pairs are measured further, when a measurement is stopped, or whether it goes
//! on another day: what the looks may spend adds up to no more than there is.

use super::noise::Noise;
use super::pairs::{Differences, Pairs};
use super::table::Looks;
use crate::sequential::{look_after, share_of_look};

/// A table as it was when pairs had so many blocks.
pub(super) struct Look {
    /// The pairs of each point, by no more than so many blocks.
    pub(super) points: Vec<Pairs>,
    pub(super) noise: Noise,
    /// What it may spend of the error rate, 0 to 1.
    pub(super) share: f64,
    /// The blocks that a pair has to have; none where any number will do.
    blocks: Option<usize>,
}

impl Look {
    /// A pair of a point, where it is looked at.
    pub(super) fn pair(&self, point: usize, of: &Differences) -> Option<&Differences> {
        let (pair, _) = self.points[point].between(of.a, of.b)?;
        self.blocks.is_none_or(|blocks| pair.blocks == blocks).then_some(pair)
    }
}

/// The looks that were taken until a table has come to be what it is.
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
