//! Whether a figure has changed between two groups of runs, or only its noise
//! is seen.

use crate::estimate::{Estimate, Interval};
use crate::student::{student_two_sided_p, student_two_sided_t};
use serde::Serialize;

/// The probability with which, at most, a family of comparisons in which
/// nothing has changed finds a change.
pub const FALSE_ALARM: f64 = 0.05;

/// How two groups of runs are set against each other.
#[derive(Serialize, Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Scale {
    /// As the quotient B / A, on logarithms: where all values are above 0.
    Ratio,
    /// As the difference B − A: where one is not.
    Difference,
}

/// A figure's value in each run of a group.
#[derive(Clone, Copy, Debug)]
pub struct Runs<'a> {
    /// The values, in the figure's unit.
    pub values: &'a [f64],
    /// The least difference that the measurement could have shown, in the same
    /// unit; 0 or more.
    pub step: f64,
}

/// What has become of a figure from group A to group B.
#[derive(Serialize, Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// A typical run of A: the geometric mean, or on [`Scale::Difference`] the
    /// arithmetic one; the interval is absent of a single run.
    pub a: Estimate,
    /// The same of B.
    pub b: Estimate,
    /// B / A or B − A, by the scale. The 95 % interval is of this comparison
    /// alone; it is absent where a group is a single run.
    pub change: Estimate,
    /// Which of the two it is.
    pub scale: Scale,
    /// The probability of a change at least as large where there is none, 0 to
    /// 1, of this comparison alone; absent where a group is a single run.
    pub p: Option<f64>,
}

/// Compares one figure's value in each run of A with its value in each of B.
///
/// A run is one observation: a percentile of it counts once, however many
/// messages it is made of, as what differs from run to run (placement in
/// memory, the state of the machine) befalls all of a run's messages together.
///
/// The test is Welch's, on logarithms where all values are above 0: latencies
/// and costs are skewed, and a change is a factor rather than an amount. Two
/// things make it safe for few runs:
///
/// - The degrees of freedom are Welch's, but no more than two groups of the
///   smaller size would have; and 1 where a group has two runs (the bound of
///   Mickey and Brown). Without that, 2 runs against 10 find changes where
///   there are none seven times as often as they should.
/// - The standard deviation of a group is taken to be at least `step`. Two runs that fall in
///   one bucket of a histogram have not therefore no noise.
///
/// `None` where a group is empty or a value is not finite.
///
/// Sources: Welch, *The generalization of "Student's" problem when several
/// different population variances are involved*, Biometrika 34, 1947; Mickey
/// and Brown, *Bounds on the distribution functions of the Behrens-Fisher
/// statistic*, Annals of Mathematical Statistics 37, 1966.
pub fn change(a: Runs, b: Runs) -> Option<Change> {
    let (scale, group_a, group_b) = groups(a, b)?;
    let difference = group_b.mean - group_a.mean;
    let back = |value: f64| match scale {
        Scale::Ratio => value.exp(),
        Scale::Difference => value,
    };
    let around = |mean: f64, half: f64| Interval { lo: back(mean - half), hi: back(mean + half) };
    let typical = |group: &Group| Estimate {
        value: back(group.mean),
        interval: group.spread.map(|spread| around(group.mean, half_width(spread.error_squared, spread.degrees))),
    };
    let joint = group_a.spread.zip(group_b.spread).map(|(a, b)| Spread::joint(&a, &b));
    let found = Change {
        a: typical(&group_a),
        b: typical(&group_b),
        change: Estimate {
            value: back(difference),
            interval: joint.map(|joint| around(difference, half_width(joint.error_squared, joint.degrees))),
        },
        scale,
        p: joint.map(|joint| joint.p(difference)),
    };
    let is_finite = found.change.value.is_finite() && found.p.is_none_or(|p| !p.is_nan());
    is_finite.then_some(found)
}

/// The p of [`change`] without its intervals, which cost many times as much:
/// for simulations. `None` where a group has fewer than two runs, too.
pub fn change_p(a: Runs, b: Runs) -> Option<f64> {
    let (_, a, b) = groups(a, b)?;
    Some(Spread::joint(&a.spread?, &b.spread?).p(b.mean - a.mean))
}

fn groups(a: Runs, b: Runs) -> Option<(Scale, Group, Group)> {
    let is_positive = a.values.iter().chain(b.values).all(|value| *value > 0.0);
    let scale = if is_positive { Scale::Ratio } else { Scale::Difference };
    Some((scale, Group::new(a, scale)?, Group::new(b, scale)?))
}

/// The adjusted p of each comparison of a family, in the order given: where
/// those at or below [`FALSE_ALARM`] are called changes, a family in which
/// nothing has changed finds one with at most that probability, however the
/// comparisons depend on each other. NaN counts as 1.
///
/// Source: Holm, *A simple sequentially rejective multiple test procedure*,
/// Scandinavian Journal of Statistics 6, 1979.
pub fn holm(p: &[f64]) -> Vec<f64> {
    let p: Vec<f64> = p.iter().map(|p| if p.is_nan() { 1.0 } else { *p }).collect();
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|one, other| p[*one].total_cmp(&p[*other]));
    let mut adjusted = vec![1.0; p.len()];
    let mut largest: f64 = 0.0;
    for (place, index) in order.into_iter().enumerate() {
        largest = largest.max(p[index] * (p.len() - place) as f64).min(1.0);
        adjusted[index] = largest;
    }
    adjusted
}

/// A group of runs on the scale on which it is compared.
struct Group {
    mean: f64,
    /// `None` of a single run.
    spread: Option<Spread>,
}

/// How far a mean, or a difference of two, is sure.
#[derive(Clone, Copy)]
struct Spread {
    /// Standard error, squared.
    error_squared: f64,
    degrees: f64,
}

impl Group {
    fn new(runs: Runs, scale: Scale) -> Option<Group> {
        let scaled: Vec<f64> = match scale {
            Scale::Ratio => runs.values.iter().map(|value| value.ln()).collect(),
            Scale::Difference => runs.values.to_vec(),
        };
        if scaled.is_empty() || scaled.iter().any(|value| !value.is_finite()) {
            return None;
        }
        let n = scaled.len() as f64;
        let mean = scaled.iter().sum::<f64>() / n;
        let step = match scale {
            Scale::Ratio => runs.step / mean.exp(),
            Scale::Difference => runs.step,
        };
        let spread = (scaled.len() > 1).then(|| {
            let degrees = n - 1.0;
            let variance = scaled.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / degrees;
            Spread { error_squared: variance.max(step * step) / n, degrees }
        });
        Some(Group { mean, spread })
    }
}

impl Spread {
    fn joint(a: &Spread, b: &Spread) -> Spread {
        let error_squared = a.error_squared + b.error_squared;
        let smaller = a.degrees.min(b.degrees);
        // By shares, as the squares of tiny errors would be 0.
        let (share_a, share_b) = (a.error_squared / error_squared, b.error_squared / error_squared);
        let welch = 1.0 / (share_a * share_a / a.degrees + share_b * share_b / b.degrees);
        let degrees = if smaller < 2.0 || welch.is_nan() { smaller.min(1.0) } else { welch.min(2.0 * smaller) };
        Spread { error_squared, degrees }
    }

    fn p(&self, difference: f64) -> f64 {
        if difference == 0.0 { 1.0 } else { student_two_sided_p(difference / self.error_squared.sqrt(), self.degrees) }
    }
}

/// Half of a 95 % interval.
fn half_width(error_squared: f64, degrees: f64) -> f64 {
    student_two_sided_t(0.05, degrees) * error_squared.sqrt()
}
