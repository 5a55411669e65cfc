//! Deterministic delays: each message's delay is known beforehand, and so is every percentile of every window.

use pubmark_model::units::{Ns, UnitError, parse_time};
use serde::Deserialize;

/// The fraction of the golden ratio in units of 2^-64: its multiples fill the interval from 0 to 1 most evenly (the
/// Kronecker sequence of lowest discrepancy).
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
/// The fraction of the square root of 2 in units of 2^-64: it separates the publishers.
const ROOT_TWO: u64 = 0x6a09_e667_f3bc_c908;

/// Returns the quantile of a message in its distribution, above 0 and below 1: a low-discrepancy sequence over sequence
/// and publisher.
pub fn place(publisher: u32, sequence: u32) -> f64 {
    let along = u64::from(sequence).wrapping_mul(GOLDEN);
    let bits = along.wrapping_add(u64::from(publisher).wrapping_mul(ROOT_TWO)) >> 11;
    (bits as f64 + 0.5) / (1u64 << 53) as f64
}

/// A length of time, ns; written `"250ms"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct Span(pub Ns);

impl TryFrom<String> for Span {
    type Error = UnitError;

    fn try_from(text: String) -> Result<Span, UnitError> {
        parse_time(&text).map(Span)
    }
}

/// Time from the sending of a message until it is passed on.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Delay {
    /// Constant.
    Fixed(Span),
    /// Uniform between two bounds.
    Uniform(Span, Span),
    /// Exponentially distributed with this mean.
    Exponential(Span),
    /// Points of the quantile function, from 0 to 1 in ascending order, joined by straight lines. Two points at one
    /// quantile make a jump.
    Quantiles(Vec<(f64, Span)>),
}

impl Delay {
    /// Returns an error text if the delay is invalid.
    pub fn problem(&self) -> Option<String> {
        match self {
            Delay::Uniform(low, high) if low > high => Some("the first bound of `uniform` is above the second".into()),
            Delay::Quantiles(points) => {
                let ends = (points.first().map(|point| point.0), points.last().map(|point| point.0));
                let rising = points.windows(2).all(|pair| pair[0].0 <= pair[1].0 && pair[0].1 <= pair[1].1);
                (ends != (Some(0.0), Some(1.0)) || !rising)
                    .then(|| "points of `quantiles` ascend from place 0.0 to place 1.0".into())
            }
            _ => None,
        }
    }

    /// Returns the delay at a quantile from 0 to 1, ns.
    pub fn quantile(&self, place: f64) -> Ns {
        let between = |low: Ns, high: Ns, share: f64| low + ((high - low) as f64 * share).round() as Ns;
        match self {
            Delay::Fixed(delay) => delay.0,
            Delay::Uniform(low, high) => between(low.0, high.0, place),
            Delay::Exponential(mean) => (-(1.0 - place).ln() * mean.0 as f64).round() as Ns,
            Delay::Quantiles(points) => {
                let after = points.partition_point(|point| point.0 <= place);
                match (points.get(after.wrapping_sub(1)), points.get(after)) {
                    (Some(low), Some(high)) => between(low.1.0, high.1.0, (place - low.0) / (high.0 - low.0)),
                    (point, _) => point.or(points.first()).map_or(0, |point| point.1.0),
                }
            }
        }
    }

    /// Returns the delay of a message, ns.
    pub fn of(&self, publisher: u32, sequence: u32) -> Ns {
        self.quantile(place(publisher, sequence))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Ns = 1_000_000;

    fn sorted(delay: &Delay, count: u32) -> Vec<Ns> {
        let mut all: Vec<Ns> = (0..count).map(|sequence| delay.of(3, sequence)).collect();
        all.sort_unstable();
        all
    }

    #[test]
    fn places_fill_the_interval_evenly() {
        for publisher in [0, 1, 77] {
            let mut places: Vec<f64> = (0..1_000).map(|sequence| place(publisher, sequence)).collect();
            places.sort_by(f64::total_cmp);
            assert!(places[0] > 0.0 && places[999] < 1.0);
            let widest = places.windows(2).map(|pair| pair[1] - pair[0]).fold(0.0, f64::max);
            // Three-distance theorem: no gap is wider than about 1.9 of the mean.
            assert!(widest < 0.002, "{widest}");
        }
        assert_ne!(place(0, 0), place(1, 0));
    }

    #[test]
    fn uniform_delays_have_uniform_percentiles() {
        let all = sorted(&Delay::Uniform(Span(MS), Span(21 * MS)), 2_000);
        for (share, wanted_ms) in [(0.5, 11.0), (0.9, 19.0), (0.99, 20.8)] {
            let found = all[(share * 2_000.0) as usize] as f64 / 1e6;
            assert!((found - wanted_ms).abs() < 0.05, "{share}: {found} ms");
        }
        assert!(all[0] >= MS && all[1_999] <= 21 * MS);
    }

    #[test]
    fn exponential_delays_have_their_mean() {
        let all = sorted(&Delay::Exponential(Span(5 * MS)), 10_000);
        let mean = all.iter().sum::<Ns>() as f64 / 10_000.0;
        assert!((mean / 5e6 - 1.0).abs() < 0.002, "{mean}");
        let median = all[5_000] as f64;
        assert!((median / (5e6 * 2f64.ln()) - 1.0).abs() < 0.002, "{median}");
    }

    #[test]
    fn a_jump_of_the_quantile_function_splits_exactly() {
        let [low, high] = [Span(2 * MS), Span(200 * MS)];
        let delay = Delay::Quantiles(vec![(0.0, low), (0.99, low), (0.99, high), (1.0, high)]);
        assert_eq!(delay.problem(), None);
        let all = sorted(&delay, 10_000);
        assert!(all.iter().all(|delay| *delay == low.0 || *delay == high.0));
        let slow = all.iter().filter(|delay| **delay == high.0).count();
        assert!((98..=102).contains(&slow), "{slow}");
        let line = Delay::Quantiles(vec![(0.0, Span(0)), (0.5, Span(MS)), (1.0, Span(3 * MS))]);
        assert_eq!([0.25, 0.5, 0.75].map(|place| line.quantile(place)), [MS / 2, MS, 2 * MS]);
    }

    #[test]
    fn nonsense_is_refused() {
        assert!(Delay::Uniform(Span(2), Span(1)).problem().is_some());
        for points in
            [vec![], vec![(0.0, Span(1))], vec![(0.0, Span(2)), (1.0, Span(1))], vec![(0.5, Span(1)), (1.0, Span(1))]]
        {
            assert!(Delay::Quantiles(points).problem().is_some());
        }
    }
}
