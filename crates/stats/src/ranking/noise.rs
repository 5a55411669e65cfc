//! How noisy each pair of systems is, judged by its own differences and by
//! those of the whole table.

use super::BLOCKS_MIN;
use super::pairs::{Differences, Pairs};
use crate::change::Scale;
use crate::gamma::ln_gamma;
use crate::student::student_two_sided_t;

/// The share of tables in which the noise of pairs may be less alike than is
/// assumed: the lower end of a one-sided interval of 90 %. Where systems differ
/// in their noise, two or three blocks hardly show it; were the likeliest
/// degrees taken, up to 14 of 100 tables of equal systems would name a winner.
const CAUTION: f64 = 0.1;

/// The least and the most degrees of freedom that the table may count for.
/// Below the least it counts for none.
const DEGREES_MIN: f64 = 0.25;
const DEGREES_MAX: f64 = 128.0;
/// Each degree that is tried is so many times the one before.
const DEGREES_FACTOR: f64 = std::f64::consts::SQRT_2;

/// Newton's steps for a table's variance: four or five are enough.
const STEPS_MAX: u32 = 30;

/// What the table as a whole says of the variance of a difference: as much as
/// `degrees` further differences of this variance would.
#[derive(Clone, Copy, Debug)]
pub(super) struct Noise {
    pub(super) variance: f64,
    pub(super) degrees: f64,
    /// Degrees of freedom of all variances of the table together.
    pub(super) total: f64,
}

/// How far the mean difference of a pair is sure.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spread {
    /// Of one difference.
    pub(super) variance: f64,
    pub(super) degrees: f64,
}

/// A pair's variance as an observation.
struct Seen {
    variance: f64,
    degrees: f64,
    /// Pairs with a system in common say the same thing in part: those of a
    /// point count together for one less than its systems.
    weight: f64,
}

impl Noise {
    /// The prior of Smyth 2004: the true variances of pairs are spread as
    /// `degrees × variance` over chi-square of `degrees`, so that the observed
    /// ones, over `variance`, follow the F distribution.
    ///
    /// Its two parameters are those of greatest likelihood. (Smyth's moments of
    /// the logarithms say the same with a standard error that is 7 times larger
    /// at two blocks, 3 times at three.) And as few degrees are taken as the
    /// likelihood still allows ([`CAUTION`]; by Student's t, as a few variances say
    /// less of their spread than the normal distribution has it).
    pub(super) fn of(points: &[Pairs]) -> Noise {
        let ratios = points.iter().filter(|pairs| pairs.scale == Scale::Ratio);
        let seen: Vec<Seen> = ratios.flat_map(variances).collect();
        let total = seen.iter().map(|seen| seen.weight * seen.degrees).sum();
        let mut best = Noise { variance: 1.0, degrees: 0.0, total };
        if seen.is_empty() {
            return best;
        }
        let (mut tried, mut highest) = (Vec::new(), f64::NEG_INFINITY);
        let mut variance = seen.iter().map(|seen| seen.variance).sum::<f64>() / seen.len() as f64;
        let mut degrees = DEGREES_MAX;
        while degrees >= DEGREES_MIN {
            variance = likeliest_variance(&seen, degrees, variance);
            let likelihood = log_likelihood(&seen, degrees, variance);
            if likelihood > highest {
                (highest, best) = (likelihood, Noise { variance, degrees, total });
            }
            tried.push((degrees, likelihood));
            degrees /= DEGREES_FACTOR;
        }
        let independent: f64 = seen.iter().map(|seen| seen.weight).sum();
        if independent < 1.5 {
            return Noise { degrees: 0.0, ..best };
        }
        let far = student_two_sided_t(2.0 * CAUTION, independent - 1.0);
        let is_allowed = |likelihood: f64| 2.0 * (highest - likelihood) <= far * far;
        // From the best downwards, to the last that is allowed without a gap.
        let below = tried.into_iter().skip_while(|(degrees, _)| *degrees > best.degrees);
        let least = below.take_while(|(_, likelihood)| is_allowed(*likelihood)).last();
        best.degrees = least.map_or(0.0, |(degrees, _)| degrees);
        if best.degrees < DEGREES_MIN * DEGREES_FACTOR {
            best.degrees = 0.0;
        }
        best
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
        let sum = prior + own;
        if sum <= 0.0 {
            return None;
        }
        let variance = (prior * self.variance + own * pair.variance.max(pair.least)) / sum;
        let added = (blocks - pair.blocks) as f64;
        let degrees = sum.min(self.held(prior, own)) + added;
        Some(Spread { variance: variance.max(pair.least), degrees })
    }

    /// The degrees of freedom that a moderated variance has if all noise is of
    /// one size. The table's variance is in part the pair's own, and of few
    /// pairs together it is not sure itself (Satterthwaite 1946).
    fn held(&self, prior: f64, own: f64) -> f64 {
        let others = (self.total - own).max(0.0);
        if prior == 0.0 || others == 0.0 {
            return own;
        }
        let of_others = prior / (prior + own) * others / (others + own);
        let of_own = 1.0 - of_others;
        if own == 0.0 { others } else { 1.0 / (of_own * of_own / own + of_others * of_others / others) }
    }
}

fn variances(pairs: &Pairs) -> Vec<Seen> {
    let compared = || pairs.list.iter().filter(|pair| pair.blocks >= BLOCKS_MIN);
    let is_compared = |system: &usize| compared().any(|pair| pair.a == *system || pair.b == *system);
    let systems = (0..pairs.systems).filter(is_compared).count();
    let weight = systems.saturating_sub(1) as f64 / compared().count() as f64;
    let seen = |pair: &Differences| Seen {
        variance: pair.variance.max(pair.least),
        degrees: (pair.blocks - 1) as f64,
        weight,
    };
    compared().map(seen).collect()
}

/// The table's variance of greatest likelihood at so many degrees, by Newton's
/// method on its logarithm, from `start`.
fn likeliest_variance(seen: &[Seen], degrees: f64, start: f64) -> f64 {
    let mut log = start.ln();
    for _ in 0..STEPS_MAX {
        let (mut slope, mut bend) = (0.0, 0.0);
        for seen in seen {
            let prior = degrees * log.exp();
            let share = prior / (prior + seen.degrees * seen.variance);
            slope += seen.weight * (degrees - (degrees + seen.degrees) * share);
            bend += seen.weight * (degrees + seen.degrees) * share * (1.0 - share);
        }
        let step = (slope / bend).clamp(-1.0, 1.0);
        log += step;
        if step.abs() < 1e-9 {
            break;
        }
    }
    log.exp()
}

/// The logarithm of the likelihood, but for what does not depend on degrees and
/// variance.
fn log_likelihood(seen: &[Seen], degrees: f64, variance: f64) -> f64 {
    let half = degrees / 2.0;
    let (constant, prior) = (ln_gamma(half), degrees * variance);
    let of = |seen: &Seen| {
        let all = half + seen.degrees / 2.0;
        let tail = half * prior.ln() - all * (prior + seen.degrees * seen.variance).ln();
        seen.weight * (ln_gamma(all) - constant + tail)
    };
    seen.iter().map(of).sum()
}
