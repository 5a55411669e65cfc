//! Choice of one of several things by weight.

/// Largest sum of weights: a draw has 32 bits.
pub(crate) const WEIGHT_MAX: u64 = 1 << 32;

/// The weights of things that are numbered from 0.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Weights {
    /// Sum of the weights up to each thing, with it.
    cumulated: Vec<u64>,
    /// For the first bits of a draw, the first thing that it can choose.
    guide: Vec<u32>,
    guide_shift: u32,
}

impl Weights {
    /// Makes the weights of some things; `None` if their sum is 0 or more than [`WEIGHT_MAX`].
    pub(crate) fn new(weights: impl IntoIterator<Item = u64>) -> Option<Weights> {
        let mut total: u64 = 0;
        let sums = weights.into_iter().map(|weight| {
            total = total.saturating_add(weight);
            total
        });
        let cumulated: Vec<u64> = sums.collect();
        if !(1..=WEIGHT_MAX).contains(&total) {
            return None;
        }
        let guide_bits = (2 * cumulated.len()).next_power_of_two().ilog2();
        let guide_shift = 32 - guide_bits;
        let first = |entry: u64| {
            let weight = ((entry << guide_shift) * total) >> 32;
            cumulated.partition_point(|sum| *sum <= weight) as u32
        };
        let guide = (0..1 << guide_bits).map(first).collect();
        Some(Weights { cumulated, guide, guide_shift })
    }

    /// Returns the sum of the weights.
    pub(crate) fn total(&self) -> u64 {
        self.cumulated.last().copied().unwrap_or_default()
    }

    /// Returns the thing that a draw of 32 bits chooses.
    #[inline]
    pub(crate) fn at(&self, draw: u32) -> usize {
        let weight = (u64::from(draw) * self.total()) >> 32;
        let mut at = self.guide[(draw >> self.guide_shift) as usize] as usize;
        while self.cumulated[at] <= weight {
            at += 1;
        }
        at
    }
}
