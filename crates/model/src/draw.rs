//! Numbers that are drawn for messages, such as that of the topic of each.

use crate::units::{parse_thousandths, thousandths};
use crate::weights::{WEIGHT_MAX, Weights};
use pubmark_stats::Random;
use std::fmt;
use std::sync::Arc;

/// Largest exponent of a Zipf distribution, thousandths.
const EXPONENT_MAX: u64 = 10_000;
/// Increment of SplitMix64.
const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// Distribution of drawn numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Each number is equally likely.
    Uniform,
    /// Number k, from 0, has a probability proportional to 1 / (k + 1)^s; with s in thousandths.
    Zipf(u32),
}

/// Error for a text that is not a choice.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a choice: write `uniform`, or `zipf S` with an exponent from 0.001 to 10, such as `zipf 1.1`")]
pub struct UnknownChoice(String);

impl Choice {
    /// Parses `uniform` or `zipf S`.
    pub fn parse(text: &str) -> Result<Choice, UnknownChoice> {
        let exponent = |text: &str| parse_thousandths(text).filter(|found| (1..=EXPONENT_MAX).contains(found));
        match text.trim() {
            "uniform" => Ok(Choice::Uniform),
            other => match other.strip_prefix("zipf ").and_then(exponent) {
                Some(exponent) => Ok(Choice::Zipf(exponent as u32)),
                None => Err(UnknownChoice(text.to_owned())),
            },
        }
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Choice::Uniform => f.write_str("uniform"),
            Choice::Zipf(exponent) => write!(f, "zipf {}", thousandths(u64::from(*exponent))),
        }
    }
}

/// A distribution over the numbers from 0 to `count` − 1. Copies share it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draw {
    count: u32,
    choice: Choice,
    weights: Option<Arc<Weights>>,
}

impl Draw {
    /// Makes a distribution over `count` numbers, 1 at least.
    pub fn new(count: u32, choice: Choice) -> Draw {
        let count = count.max(1);
        let weights = match choice {
            Choice::Uniform => None,
            Choice::Zipf(exponent) => Weights::new(zipf(count, f64::from(exponent) / 1e3)).map(Arc::new),
        };
        Draw { count, choice, weights }
    }

    /// Returns how many numbers there are.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Returns its distribution.
    pub fn choice(&self) -> Choice {
        self.choice
    }

    #[inline]
    fn at(&self, draw: u32) -> u32 {
        match &self.weights {
            None => ((u64::from(draw) * u64::from(self.count)) >> 32) as u32,
            Some(weights) => weights.at(draw) as u32,
        }
    }
}

/// Returns the weights of a Zipf distribution. Numbers whose probability is below 2^-33 have none.
fn zipf(count: u32, exponent: f64) -> impl Iterator<Item = u64> {
    let share = move |number: u32| f64::from(number + 1).powf(-exponent);
    // From the smallest on, so that small ones are not lost in the sum. The rounding of each weight adds half at most.
    let sum: f64 = (0..count).rev().map(share).sum();
    let scale = (WEIGHT_MAX - u64::from(count)) as f64 / sum;
    (0..count).map(move |number| (share(number) * scale).round() as u64)
}

/// The numbers that are drawn for the messages of one publisher: a pure function of seed, publisher and sequence, the
/// same at both ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublisherDraw {
    draw: Draw,
    state: u64,
}

impl PublisherDraw {
    /// Makes the draw of a publisher of a run with this seed.
    ///
    /// The publisher has a SplitMix64 with state `seed` ^ (publisher × 2^32): its third output is the first state of
    /// another, whose output number `sequence` is the draw of the topic. (The first output gives the gaps of Poisson
    /// arrivals, the second the sizes of messages.)
    pub fn of_topics(draw: Draw, seed: u64, publisher: u32) -> PublisherDraw {
        let third = (seed ^ (u64::from(publisher) << 32)).wrapping_add(GAMMA.wrapping_mul(2));
        PublisherDraw { draw, state: Random(third).bits() }
    }

    /// Returns how many numbers there are.
    pub fn count(&self) -> u32 {
        self.draw.count
    }

    /// Returns the number of a message.
    #[inline]
    pub fn at(&self, sequence: u32) -> u32 {
        let bits = Random(self.state.wrapping_add(GAMMA.wrapping_mul(u64::from(sequence)))).bits();
        self.draw.at((bits >> 32) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_are_read_and_written() {
        for text in ["uniform", "zipf 1", "zipf 1.1", "zipf 0.001", "zipf 10"] {
            assert_eq!(Choice::parse(text).unwrap().to_string(), text);
        }
        for text in ["", "zipf", "zipf 0", "zipf 10.001", "zipf -1", "zipf 1.1 x", "Uniform"] {
            assert!(Choice::parse(text).is_err(), "{text}");
        }
    }

    /// The same draw, written again from the definition: SplitMix64, and a search in sums of probabilities.
    #[test]
    fn the_draw_of_a_topic_is_as_documented() {
        let mix = |state: u64| {
            let z = state;
            let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        };
        let output = |seed: u64, number: u64| mix(seed.wrapping_add(GAMMA.wrapping_mul(number + 1)));
        for (count, exponent) in [(7, None), (1_000, None), (1_000, Some(1_100)), (3, Some(500)), (1, Some(1_000))] {
            let choice = exponent.map_or(Choice::Uniform, Choice::Zipf);
            let power = |k: u32| f64::from(k).powf(-exponent.map_or(0.0, |exponent| f64::from(exponent) / 1e3));
            let all: f64 = (1..=count).map(power).sum();
            let draws = PublisherDraw::of_topics(Draw::new(count, choice), 99, 5);
            let inner = output(99 ^ (5 << 32), 2);
            for sequence in 0..10_000 {
                let unit = (output(inner, sequence) >> 32) as f64 / (1u64 << 32) as f64;
                let (mut sum, mut wanted) = (0.0, 0);
                for k in 1..=count {
                    sum += power(k) / all;
                    wanted = k - 1;
                    if sum > unit {
                        break;
                    }
                }
                assert_eq!(draws.at(sequence as u32), wanted, "{choice} {count} {sequence}");
            }
        }
    }

    #[test]
    fn a_hundred_thousand_numbers_have_the_shares_of_their_distribution() {
        let count = |choice: Choice, publisher| {
            let draws = PublisherDraw::of_topics(Draw::new(100_000, choice), 1, publisher);
            let mut counts = vec![0u64; 100_000];
            (0..1_000_000).for_each(|sequence| counts[draws.at(sequence) as usize] += 1);
            counts
        };
        let even = count(Choice::Uniform, 0);
        // Ten each on average: a chi-square of 99,999 degrees of freedom, whose deviation is 447.
        let chi: f64 = even.iter().map(|found| (*found as f64 - 10.0).powi(2) / 10.0).sum();
        assert!((chi - 99_999.0).abs() < 5.0 * 447.0, "{chi}");
        let skewed = count(Choice::Zipf(1_000), 0);
        // The harmonic number of 100,000 is 12.0901.
        for (rank, found) in skewed.iter().take(5).enumerate() {
            let wanted = 1e6 / (rank + 1) as f64 / 12.0901;
            assert!((*found as f64 - wanted).abs() < 5.0 * wanted.sqrt(), "{rank}: {found}, {wanted}");
        }
        assert_ne!(skewed, count(Choice::Zipf(1_000), 1), "publishers draw on their own");
    }
}
