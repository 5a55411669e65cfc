//! Estimates the noise of each pair of systems from its own differences and from those of the whole
//! table.

use super::pairs::{Differences, Pairs};
use super::table::BLOCKS_MIN;
use crate::change::{APART, Scale};
use crate::gamma::ln_gamma;
use crate::student::student_two_sided_t;

/// The share of tables in which the noise of pairs may vary more than is assumed: the lower end of
/// a one-sided interval of 90 %. If systems differ in their noise, two or three blocks hardly show
/// it; with the likeliest degrees, up to 14 of 100 tables of equal systems would name a winner.
const CAUTION: f64 = 0.1;

/// The most degrees of freedom that the table may count for.
const DEGREES_MAX: f64 = 128.0;
/// Number of degrees tried below that, two steps for each halving; at the last of them the table
/// counts for none.
const DEGREES_STEPS: u32 = 18;
/// The table's variance is the likeliest at this many degrees or more: at two or fewer the spread
/// has no mean. If some pairs are disturbed by much and most are not, this gives weight to the
/// disturbed ones.
const DEGREES_OF_VARIANCE: f64 = 2.0;

/// The degrees of freedom for which the assumption [`APART`] counts beside the sessions of a table.
const BETWEEN_DEGREES: f64 = 4.0;

/// Newton's steps for a table's variance: four or five are enough.
const STEPS_MAX: u32 = 30;

/// The table's estimate of the variance of a difference: it counts like `degrees` further
/// differences of this variance.
#[derive(Clone, Copy, Debug)]
pub(super) struct Noise {
    pub(super) variance: f64,
    pub(super) degrees: f64,
    /// Degrees of freedom of all variances of the table together.
    pub(super) total: f64,
    between: Between,
}

/// How far the mean differences of sessions are apart, beyond their noise.
#[derive(Clone, Copy, Debug)]
struct Between {
    /// Their variance, as a multiple of that of a difference within a session.
    ratio: f64,
    degrees: f64,
}

/// Error of the mean difference of a pair.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spread {
    /// Variance of the mean.
    pub(super) variance: f64,
    pub(super) degrees: f64,
}

/// A pair's variance as an observation.
struct Seen {
    variance: f64,
    degrees: f64,
    /// Pairs with a system in common are partly redundant: those of a point count together for one
    /// less than its systems.
    weight: f64,
}

/// A prior, and its likelihood given the observations.
struct Fit {
    degrees: f64,
    variance: f64,
    likelihood: f64,
}

impl Noise {
    /// Fits the prior of Smyth 2004: the true variances of pairs are distributed as
    /// `degrees × variance` over chi-square of `degrees`, so that the observed ones, over
    /// `variance`, follow the F distribution.
    ///
    /// Its two parameters are those of greatest likelihood. (Smyth's moments of the logarithms give
    /// the same with a standard error that is 7 times larger at two blocks, 3 times at three.) It
    /// takes as few degrees as the likelihood still allows ([`CAUTION`]; by Student's t, because a
    /// few variances determine their spread less well than the normal distribution assumes).
    pub(super) fn of(points: &[Pairs]) -> Noise {
        let ratios = points.iter().filter(|pairs| pairs.scale == Scale::Ratio);
        let seen: Vec<Seen> = ratios.flat_map(variances).collect();
        let total = seen.iter().map(|seen| seen.weight * seen.degrees).sum();
        let between = Between::of(points);
        let none = Noise { variance: 1.0, degrees: 0.0, total, between };
        let independent: f64 = seen.iter().map(|seen| seen.weight).sum();
        if independent < 1.5 {
            return none;
        }
        let tried = likelihoods(&seen);
        let Some(best) = tried.iter().max_by(|one, other| one.likelihood.total_cmp(&other.likelihood)) else {
            return none;
        };
        let far = student_two_sided_t(2.0 * CAUTION, independent - 1.0);
        let is_allowed = |fit: &&Fit| 2.0 * (best.likelihood - fit.likelihood) <= far * far;
        // From the best downwards, to the last that is allowed without a gap.
        let below = tried.iter().skip_while(|fit| fit.degrees > best.degrees);
        let least = below.take_while(is_allowed).last().map_or(0.0, |fit| fit.degrees);
        let last = tried.last().map_or(0.0, |fit| fit.degrees);
        let degrees = if least > last { least } else { 0.0 };
        let wide = tried.iter().take_while(|fit| fit.degrees >= DEGREES_OF_VARIANCE.max(best.degrees)).last();
        Noise { variance: wide.map_or(best.variance, |fit| fit.variance), degrees, total, between }
    }

    /// Returns the moderated variance of a pair: `None` if neither the pair nor the table has an
    /// estimate.
    pub(super) fn spread(&self, pair: &Differences, scale: Scale) -> Option<Spread> {
        self.spread_after(pair, scale, pair.blocks)
    }

    /// Returns the moderated variance after this many blocks, if the noise stays the same.
    pub(super) fn spread_after(&self, pair: &Differences, scale: Scale, blocks: usize) -> Option<Spread> {
        let prior = if scale == Scale::Ratio { self.degrees } else { 0.0 };
        let own = pair.degrees as f64;
        let sum = prior + own;
        if sum <= 0.0 {
            return None;
        }
        let variance = (prior * self.variance + own * pair.variance.max(pair.least)) / sum;
        let added = (blocks - pair.blocks) as f64;
        let degrees = sum.min(self.held(prior, own)) + added;
        Some(self.between.widen(variance.max(pair.least) / blocks as f64, degrees, pair, blocks))
    }

    /// Returns the degrees of freedom of a moderated variance if all noise is of one size. The
    /// table's variance is in part the pair's own, and with few pairs it is uncertain itself
    /// (Satterthwaite 1946).
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

impl Between {
    /// Moments of the sessions' means, over all pairs that have several, moderated by
    /// [`APART`] as by [`BETWEEN_DEGREES`] further degrees.
    fn of(points: &[Pairs]) -> Between {
        let (mut excess, mut scale, mut degrees) = (0.0, 0.0, 0.0);
        for pairs in points {
            let several = || pairs.list.iter().filter(|pair| pair.sessions.count > 1 && pair.degrees > 0);
            let weight = pairs.systems.saturating_sub(1) as f64 / several().count().max(1) as f64;
            for pair in several() {
                let variance = pair.variance.max(pair.least);
                let sessions = (pair.sessions.count - 1) as f64;
                excess += weight * (pair.sessions.squares / variance - sessions);
                scale += weight * pair.blocks as f64 * (1.0 - pair.sessions.concentration);
                degrees += weight * sessions;
            }
        }
        let seen = if scale > 0.0 { (excess / scale).max(0.0) } else { 0.0 };
        if seen > APART {
            return Between { ratio: seen, degrees };
        }
        let all = BETWEEN_DEGREES + degrees;
        Between { ratio: (BETWEEN_DEGREES * APART + degrees * seen) / all, degrees: all }
    }

    /// Adds to the variance of a mean within sessions what lies between them. A table of
    /// one session stays as it is: it speaks of that session.
    fn widen(self, variance: f64, degrees: f64, pair: &Differences, blocks: usize) -> Spread {
        if pair.sessions.count < 2 {
            return Spread { variance, degrees };
        }
        let between = self.ratio * variance * blocks as f64 * pair.sessions.concentration;
        let sum = variance + between;
        let degrees = sum * sum / (variance * variance / degrees + between * between / self.degrees);
        Spread { variance: sum, degrees }
    }
}

fn variances(pairs: &Pairs) -> Vec<Seen> {
    let compared = || pairs.list.iter().filter(|pair| pair.blocks >= BLOCKS_MIN && pair.degrees > 0);
    let is_compared = |system: &usize| compared().any(|pair| pair.a == *system || pair.b == *system);
    let systems = (0..pairs.systems).filter(is_compared).count();
    let weight = systems.saturating_sub(1) as f64 / compared().count() as f64;
    let seen =
        |pair: &Differences| Seen { variance: pair.variance.max(pair.least), degrees: pair.degrees as f64, weight };
    compared().map(seen).collect()
}

/// Returns the likeliest variance at each number of degrees, most degrees first.
fn likelihoods(seen: &[Seen]) -> Vec<Fit> {
    let mut variance = seen.iter().map(|seen| seen.variance).sum::<f64>() / seen.len() as f64;
    let fits = (0..=DEGREES_STEPS).map(|step| {
        let degrees = DEGREES_MAX * (-f64::from(step) / 2.0).exp2();
        variance = likeliest_variance(seen, degrees, variance);
        Fit { degrees, variance, likelihood: log_likelihood(seen, degrees, variance) }
    });
    fits.collect()
}

/// Returns the table's variance of greatest likelihood at this many degrees, by Newton's method on
/// its logarithm, from `start`.
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

/// Returns the logarithm of the likelihood, without terms that do not depend on degrees and
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
