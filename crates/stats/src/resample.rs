//! Which resamples a bootstrap looks at, and the interval that their
//! statistics span.

use crate::bootstrap::Interval;

/// Up to this many values every resample is enumerated (462 for 6 values), so
/// that the interval is exact and the seed plays no part.
pub const EXACT_VALUES_MAX: usize = 6;

/// Random resamples drawn of more than [`EXACT_VALUES_MAX`] values. The
/// standard error of the coverage at each end is √(0.025 · 0.975 / 2000),
/// which is 0.35 %.
pub const RESAMPLES: usize = 2_000;

/// One in so many resamples lies beyond each end of a 95 % interval.
const TAIL_SHARE: u64 = 40;

/// The 95 % percentile interval of a statistic over resamples, with
/// replacement, of n values (Efron, *Bootstrap methods: another look at the
/// jackknife*, Annals of Statistics 7, 1979).
///
/// `statistic` is given how often each of the n values was drawn. The ends are
/// the smallest and the largest of its values that have at least 2.5 % of the
/// resamples at or beyond them.
///
/// `None` if n < 2: one value says nothing of its spread.
pub(crate) fn interval(n: usize, seed: u64, mut statistic: impl FnMut(&[u32]) -> f64) -> Option<Interval> {
    if n < 2 {
        return None;
    }
    let mut outcomes: Vec<(f64, u64)> = Vec::new();
    let mut visit = |draws: &[u32], weight: u64| outcomes.push((statistic(draws), weight));
    if n <= EXACT_VALUES_MAX {
        each_multiset(n, &mut visit);
    } else {
        let mut random = SplitMix64(seed);
        let mut draws = vec![0_u32; n];
        for _ in 0..RESAMPLES {
            draws.fill(0);
            for _ in 0..n {
                draws[random.below(n)] += 1;
            }
            visit(&draws, 1);
        }
    }
    outcomes.sort_by(|a, b| a.0.total_cmp(&b.0));
    let total = outcomes.iter().map(|(_, weight)| weight).sum();
    Some(Interval { lo: tail_end(outcomes.iter(), total)?, hi: tail_end(outcomes.iter().rev(), total)? })
}

fn tail_end<'a>(outcomes: impl Iterator<Item = &'a (f64, u64)>, total: u64) -> Option<f64> {
    let mut seen = 0;
    for (value, weight) in outcomes {
        seen += weight;
        if seen * TAIL_SHARE >= total {
            return Some(*value);
        }
    }
    None
}

/// Visits each way to draw n times from n values, as how often each value is
/// drawn, with the number of sequences of draws that come to it (the
/// multinomial coefficient; they add up to n^n).
fn each_multiset(n: usize, visit: &mut impl FnMut(&[u32], u64)) {
    fn place(draws: &mut [u32], position: usize, left: u32, weight: u64, visit: &mut impl FnMut(&[u32], u64)) {
        if position + 1 == draws.len() {
            draws[position] = left;
            visit(draws, weight);
            return;
        }
        // binomial(left, taken), from one `taken` to the next
        let mut choices = 1_u64;
        for taken in 0..=left {
            draws[position] = taken;
            place(draws, position + 1, left - taken, weight * choices, visit);
            choices = choices * u64::from(left - taken) / u64::from(taken + 1);
        }
    }
    place(&mut vec![0; n], 0, n as u32, 1, visit);
}

/// The generator SplitMix64 (Steele, Lea and Flood, *Fast splittable
/// pseudorandom number generators*, OOPSLA 2014): 64 bits of state, every seed
/// is good.
struct SplitMix64(u64);

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below n; the bias is below n / 2^64.
    fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.next()) * n as u128) >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn multisets_carry_all_sequences() {
        let mut seen = Vec::new();
        each_multiset(6, &mut |draws, weight| {
            seen.push((draws.to_vec(), weight));
        });
        assert_eq!(seen.len(), 462);
        assert_eq!(seen.iter().map(|(_, weight)| weight).sum::<u64>(), 46_656);
        assert!(seen.iter().all(|(draws, _)| draws.iter().sum::<u32>() == 6));
        // 6! / (1! 2! 3!)
        assert!(seen.contains(&(vec![1, 0, 2, 0, 0, 3], 60)));
    }

    #[test]
    fn generator_gives_the_published_sequence() {
        // https://prng.di.unimi.it/splitmix64.c with state 1234567
        let mut random = SplitMix64(1_234_567);
        assert_eq!(random.next(), 6_457_827_717_110_365_317);
        assert_eq!(random.next(), 3_203_168_211_198_807_973);
        assert_eq!(random.next(), 9_817_491_932_198_370_423);
    }

    #[test]
    fn ends_are_the_last_values_with_a_fortieth_beyond() {
        let mut next = 0.0;
        let found = interval(7, 1, |_| {
            next += 1.0;
            next
        });
        let expected = Interval { lo: 50.0, hi: 1951.0 };
        assert_eq!(found, Some(expected));
    }
}
