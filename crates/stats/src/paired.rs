//! Compares two arms measured in turns, block by block: does the change from one to the other lie
//! beyond a bound or within it?
//!
//! A block is a run of each arm, directly one after the other, so that drift affects both. The test
//! is on the excess of each block over the bound, on logarithms if all values are above 0. It is
//! repeated in several looks ([`LOOKS`]), each with a level of its own, which add up to
//! [`FALSE_ALARM`] ([`AlphaSpending`]): so the rate holds over all looks, whatever the number of
//! blocks after which one stops.
//!
//! The share of each look depends on the number of blocks alone, not on a budget: the same records
//! give the same result, and continuing a measurement spends nothing twice.

use crate::change::{FALSE_ALARM, Scale};
use crate::estimate::{Estimate, Interval, median};
use crate::random::Random;
use crate::sequential::AlphaSpending;
use crate::student::student_two_sided_t;
use serde::Serialize;

/// Numbers of blocks after which the arms are compared. They become rarer, as each look costs some
/// of the level of all others.
pub const LOOKS: [usize; 24] =
    [2, 3, 4, 5, 6, 8, 10, 13, 16, 20, 25, 32, 40, 50, 64, 80, 100, 128, 160, 200, 256, 320, 400, 512];

/// A figure of both arms in one block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PairedReading {
    /// Value of A, in the figure's unit.
    pub a: f64,
    /// Value of B, in the figure's unit.
    pub b: f64,
    /// The smallest difference that the measurement of A could have shown.
    pub step_a: f64,
    /// The smallest difference that the measurement of B could have shown.
    pub step_b: f64,
}

/// Bound on a figure's change from A to B.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PairedBound {
    /// True if it bounds a rise; false if it bounds a fall.
    pub rise: bool,
    /// Largest allowed change: 0 or more for a rise, 0 or less for a fall.
    pub by: f64,
    /// True if `by` is a fraction of A; false if it is an amount in the figure's unit.
    pub relative: bool,
}

/// Outcome of comparing a change with its bound.
#[derive(Serialize, Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum PairedOutcome {
    /// The change lies beyond the bound.
    Beyond,
    /// The change lies within the bound.
    Within,
    /// Neither is shown.
    Open,
}

/// The decision on a change from the blocks so far.
#[derive(Serialize, Clone, Copy, Debug, PartialEq)]
pub struct PairedDecision {
    /// The outcome.
    pub outcome: PairedOutcome,
    /// Number of blocks of the look with this outcome: the first that decides, or the latest. 0 if
    /// there was no look.
    pub looked_at: usize,
    /// Median of A over all blocks.
    pub a: f64,
    /// Median of B over all blocks.
    pub b: f64,
    /// B / A (the geometric mean over blocks) or B − A, as of that look; of all blocks if there was
    /// no look. The interval is the one that is compared with the bound, and so holds over all
    /// looks: each end errs in at most 5 of 100 cases.
    pub change: Estimate,
    /// The scale of `change`.
    pub scale: Scale,
    /// Estimated number of additional blocks for a decision; `None` if it is decided, or would take
    /// more than 512.
    pub more: Option<usize>,
}

/// A possible look.
#[derive(Clone, Copy, Debug)]
struct Look {
    blocks: usize,
    /// Standard errors beyond the bound from which on it is exceeded.
    beyond: f64,
    /// Standard errors within the bound from which on it is met.
    within: f64,
}

/// The test, created once for a family of comparisons.
#[derive(Clone, Debug)]
pub struct PairedTest {
    looks: Vec<Look>,
}

/// Returns the share of the error rate that is spent by this number of blocks, 0 to 1. Few blocks
/// get little: with two or three, only gross changes can be found at any level.
fn spent_by(blocks: usize) -> f64 {
    let n = blocks as f64;
    (n - 1.5) / (n + 4.0)
}

/// True if A runs first in a block (from 1). The seed decides once for two blocks, of which the
/// second has the other order. So drift, and the effect of being the second run, are equal in both
/// arms after any even number of blocks.
pub fn a_goes_first(seed: u64, point: usize, block: u32) -> bool {
    let index = block.saturating_sub(1);
    let place = ((point as u64) << 32) | u64::from(index / 2);
    let drawn = Random(seed.wrapping_add(place.wrapping_mul(0x9e37_79b9_7f4a_7c15))).bits();
    (drawn & 1 == 0) == index.is_multiple_of(2)
}

/// Returns the number of blocks of the next look after this many.
pub fn next_look(blocks: usize) -> Option<usize> {
    LOOKS.into_iter().find(|look| *look > blocks)
}

impl PairedTest {
    /// Creates a test of `family` comparisons. If no change lies beyond its bound, any is called so
    /// with at most [`FALSE_ALARM`], over all comparisons and all looks. The statement that a bound
    /// is met has the same rate for each comparison by itself: that *all* are met is not claimed
    /// wrongly more often than that.
    pub fn new(family: usize) -> PairedTest {
        let mut spending = AlphaSpending::new(FALSE_ALARM);
        let look = |blocks: usize| {
            let (level, degrees) = (spending.level_at(spent_by(blocks)), blocks as f64 - 1.0);
            // One side each: no change is both beyond the bound and within it.
            let t = |level: f64| student_two_sided_t(2.0 * level, degrees);
            Look { blocks, beyond: t(level / family.max(1) as f64), within: t(level) }
        };
        PairedTest { looks: LOOKS.into_iter().map(look).collect() }
    }

    /// Compares the change of the blocks, in the order in which they were made, with a bound.
    /// `None` if there are no blocks, or a value is not finite.
    pub fn decide(&self, blocks: &[PairedReading], bound: PairedBound) -> Option<PairedDecision> {
        let (a, b) = (median_of(blocks, |block| block.a)?, median_of(blocks, |block| block.b)?);
        let scale = scale_of(blocks, bound);
        let excess = |count: usize| Spread::of(&blocks[..count], scale, |block| bound.excess(block, scale));
        let taken: Vec<&Look> = self.looks.iter().take_while(|look| look.blocks <= blocks.len()).collect();
        let mut found = (PairedOutcome::Open, taken.last().copied());
        for look in &taken {
            let outcome = excess(look.blocks).against(look);
            if outcome != PairedOutcome::Open {
                found = (outcome, Some(look));
                break;
            }
        }
        let (outcome, look) = found;
        let seen = look.map_or(blocks.len(), |look| look.blocks);
        let moved = Spread::of(&blocks[..seen], scale, |block| moved(block, scale));
        let back = |value: f64| if scale == Scale::Ratio { value.exp() } else { value };
        let interval = look.map(|look| {
            let (below, above) = if bound.rise { (look.beyond, look.within) } else { (look.within, look.beyond) };
            Interval { lo: back(moved.mean - below * moved.error), hi: back(moved.mean + above * moved.error) }
        });
        let more = (outcome == PairedOutcome::Open && blocks.len() > 1)
            .then(|| self.more(&excess(blocks.len()), blocks.len()));
        let found = PairedDecision {
            outcome,
            looked_at: look.map_or(0, |look| look.blocks),
            a,
            b,
            change: Estimate { value: back(moved.mean), interval },
            scale,
            more: more.flatten(),
        };
        found.change.value.is_finite().then_some(found)
    }

    /// Returns the number of additional blocks for a decision, if the change and its noise are as
    /// they appear.
    fn more(&self, seen: &Spread, blocks: usize) -> Option<usize> {
        let ahead = self.looks.iter().filter(|look| look.blocks > blocks);
        let told = |look: &&Look| {
            let error = seen.deviation / (look.blocks as f64).sqrt();
            Spread { error, ..*seen }.against(look) != PairedOutcome::Open
        };
        let mut telling = ahead.filter(told);
        telling.next().map(|look| look.blocks - blocks)
    }
}

impl PairedBound {
    /// Returns the distance of a block beyond the bound, on the scale of the test.
    fn excess(&self, block: &PairedReading, scale: Scale) -> f64 {
        let over = match (scale, self.relative) {
            (Scale::Ratio, _) => (block.b / block.a).ln() - (1.0 + self.by).ln(),
            (Scale::Difference, true) => block.b - (1.0 + self.by) * block.a,
            (Scale::Difference, false) => block.b - block.a - self.by,
        };
        if self.rise { over } else { -over }
    }
}

/// Returns the scale: logarithms if the bound is a fraction and all values are above 0.
fn scale_of(blocks: &[PairedReading], bound: PairedBound) -> Scale {
    let is_positive = blocks.iter().all(|block| block.a > 0.0 && block.b > 0.0);
    if bound.relative && is_positive && bound.by > -1.0 { Scale::Ratio } else { Scale::Difference }
}

fn moved(block: &PairedReading, scale: Scale) -> f64 {
    match scale {
        Scale::Ratio => (block.b / block.a).ln(),
        Scale::Difference => block.b - block.a,
    }
}

fn median_of(blocks: &[PairedReading], of: fn(&PairedReading) -> f64) -> Option<f64> {
    median(&blocks.iter().map(of).collect::<Vec<f64>>())
}

/// Mean of values, and its error.
#[derive(Clone, Copy)]
struct Spread {
    mean: f64,
    deviation: f64,
    /// Standard error of the mean.
    error: f64,
}

impl Spread {
    fn of(blocks: &[PairedReading], scale: Scale, of: impl Fn(&PairedReading) -> f64) -> Spread {
        let n = blocks.len() as f64;
        let mean = blocks.iter().map(&of).sum::<f64>() / n;
        let squares: f64 = blocks.iter().map(|block| (of(block) - mean).powi(2)).sum();
        // Values in one bucket of a histogram are not free of noise.
        let step = |block: &PairedReading| match scale {
            Scale::Ratio => (block.step_a / block.a).hypot(block.step_b / block.b),
            Scale::Difference => block.step_a.hypot(block.step_b),
        };
        let least = blocks.iter().map(step).fold(0.0, f64::max);
        let deviation = (squares / (n - 1.0).max(1.0)).sqrt().max(least);
        Spread { mean, deviation, error: deviation / n.sqrt() }
    }

    /// Compares a mean excess with the bounds of a look.
    fn against(&self, look: &Look) -> PairedOutcome {
        if self.mean > 0.0 && self.mean > look.beyond * self.error {
            PairedOutcome::Beyond
        } else if self.mean <= -look.within * self.error {
            PairedOutcome::Within
        } else {
            PairedOutcome::Open
        }
    }
}
