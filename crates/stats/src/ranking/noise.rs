//! How noisy each pair of systems is, judged by its own differences and by
//! those of the whole table.

use super::BLOCKS_MIN;
use super::pairs::{Differences, Pairs};
use crate::change::Scale;
use crate::gamma::{digamma, trigamma, trigamma_inverse};

/// How many standard errors the estimated variety of noise is raised by before
/// a pair leans on the others. Where systems do differ in their noise, two or
/// three blocks hardly show it.
const CAUTION: f64 = 1.5;

/// The table counts for at most so many degrees of freedom of a pair.
const DEGREES_MAX: f64 = 100.0;

/// What the table as a whole says of the variance of a difference: as much as
/// `degrees` further differences of this variance would.
#[derive(Clone, Copy, Debug)]
pub(super) struct Noise {
    pub(super) variance: f64,
    pub(super) degrees: f64,
}

/// How far the mean difference of a pair is sure.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spread {
    /// Of one difference.
    pub(super) variance: f64,
    pub(super) degrees: f64,
}

impl Noise {
    /// The prior of Smyth 2004, section 6.2: the logarithms of the pairs'
    /// variances vary more than their degrees of freedom explain, and the
    /// excess says how far the pairs differ in their true noise.
    ///
    /// Two things are added. The pairs of a point have systems in common, so
    /// that their variances resemble each other and vary too little: a quarter
    /// is the correlation of the variances of two pairs with one system in
    /// common, where noise is normal and of one size. And the excess is raised
    /// by [`CAUTION`] standard errors.
    pub(super) fn of(points: &[Pairs]) -> Noise {
        let points = || points.iter().filter(|pairs| pairs.scale == Scale::Ratio);
        let pairs: Vec<&Differences> =
            points().flat_map(|pairs| &pairs.list).filter(|pair| pair.blocks >= BLOCKS_MIN).collect();
        let independent: usize = points().map(independent).sum();
        if pairs.len() < 2 || independent < 3 {
            return Noise { variance: 1.0, degrees: 0.0 };
        }
        let count = pairs.len() as f64;
        let mean_of =
            |of: &dyn Fn(f64) -> f64| pairs.iter().map(|pair| of((pair.blocks - 1) as f64)).sum::<f64>() / count;
        let logs: Vec<f64> = pairs.iter().map(|pair| log_variance(pair)).collect();
        let mean = logs.iter().sum::<f64>() / count;
        let variety = logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / (count - 1.0);
        let variety = variety / (1.0 - 0.25 * shared(points()) / (count * (count - 1.0)));
        let explained = mean_of(&|degrees| trigamma(degrees / 2.0));
        let tail = mean_of(&|degrees| excess_kurtosis(degrees / 2.0));
        let error = variety * ((2.0 + tail) / (independent as f64 - 1.0)).sqrt();
        let seen = 2.0 * trigamma_inverse(variety - explained);
        let degrees = 2.0 * trigamma_inverse(variety - explained + CAUTION * error);
        // With infinitely many degrees the variance is the mean itself.
        let shift = if seen.is_finite() { digamma(seen / 2.0) - (seen / 2.0).ln() } else { 0.0 };
        Noise { variance: (mean + shift).exp(), degrees: degrees.min(DEGREES_MAX) }
    }

    /// The moderated variance of a pair: `None` where neither it nor the table
    /// says anything.
    pub(super) fn spread(&self, pair: &Differences, scale: Scale) -> Option<Spread> {
        self.spread_after(pair, scale, pair.blocks)
    }

    /// The same after so many blocks, should the noise stay what it is.
    pub(super) fn spread_after(&self, pair: &Differences, scale: Scale, blocks: usize) -> Option<Spread> {
        let prior = if scale == Scale::Ratio { self.degrees } else { 0.0 };
        let own = (pair.blocks - 1) as f64;
        let total = prior + own;
        if total <= 0.0 {
            return None;
        }
        let variance = (prior * self.variance + own * pair.variance.max(pair.least)) / total;
        Some(Spread { variance: variance.max(pair.least), degrees: prior + (blocks - 1) as f64 })
    }
}

/// The logarithm of a pair's variance, freed of its bias.
fn log_variance(pair: &Differences) -> f64 {
    let half = (pair.blocks - 1) as f64 / 2.0;
    pair.variance.max(pair.least).ln() - digamma(half) + half.ln()
}

/// How many variances a point would hold if none had a system in common.
fn independent(pairs: &Pairs) -> usize {
    let is_compared = |system: &usize| {
        pairs.list.iter().any(|pair| pair.blocks >= BLOCKS_MIN && (pair.a == *system || pair.b == *system))
    };
    (0..pairs.systems).filter(is_compared).count().saturating_sub(1)
}

/// How many ordered pairs of pairs have a system in common.
fn shared<'a>(points: impl Iterator<Item = &'a Pairs>) -> f64 {
    let of_point = |pairs: &Pairs| {
        let systems = (independent(pairs) + 1) as f64;
        systems * (systems - 1.0) * (systems - 2.0)
    };
    points.map(of_point).sum()
}

/// The excess kurtosis of the logarithm of a gamma variable of this shape: the
/// fourth cumulant over the square of the second. By the recurrence and the
/// leading terms of the asymptotic series of the fourth derivative of the
/// logarithm of the gamma function (Abramowitz and Stegun 1964, 6.4.6, 6.4.14).
fn excess_kurtosis(shape: f64) -> f64 {
    let (mut x, mut fourth) = (shape, 0.0);
    while x < 12.0 {
        fourth += 6.0 / x.powi(4);
        x += 1.0;
    }
    fourth += 2.0 / x.powi(3) + 3.0 / x.powi(4) + 2.0 / x.powi(5);
    fourth / trigamma(shape).powi(2)
}
