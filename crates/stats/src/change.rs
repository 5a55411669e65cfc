//! Tests whether a figure has changed between two groups of runs, beyond noise.

use crate::estimate::{Estimate, Interval, median};
use crate::student::{student_two_sided_p, student_two_sided_t};
use serde::Serialize;

/// Maximum probability with which a family of comparisons without any change finds a change.
pub const FALSE_ALARM: f64 = 0.05;

/// Scale on which two groups of runs are compared.
#[derive(Serialize, Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Scale {
    /// The quotient B / A, on logarithms, if all values are above 0.
    Ratio,
    /// The difference B − A, if one is not.
    Difference,
}

/// A figure's value in each run of a group.
#[derive(Clone, Copy, Debug)]
pub struct Runs<'a> {
    /// The values, in the figure's unit.
    pub values: &'a [f64],
    /// The smallest difference that the measurement could have shown, in the same unit; 0 or more.
    pub step: f64,
}

/// Change of a figure from group A to group B.
#[derive(Serialize, Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// The median of A's runs, with the 95 % interval of this group alone; a single run has no
    /// interval.
    pub a: Estimate,
    /// The median of B's runs, with the 95 % interval of this group alone; a single run has no
    /// interval.
    pub b: Estimate,
    /// B / A or B − A, by the scale. The 95 % interval is for this comparison alone; it is absent
    /// if a group is a single run.
    pub change: Estimate,
    /// The scale of `change`.
    pub scale: Scale,
    /// The probability of a change at least as large if there is none, 0 to 1, for this comparison
    /// alone; `None` if a group is a single run.
    pub p: Option<f64>,
    /// Standard error and degrees of freedom of the change, on its scale.
    #[serde(skip)]
    spread: Option<Spread>,
}

/// Order in time of the runs of two groups.
#[derive(Serialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum RunOrder {
    /// Alternating, or at unknown times: drift affects both groups alike.
    #[default]
    InTurns,
    /// All of one group before all of the other: changes of the machine in between are noise as
    /// well, which no run shows.
    Apart,
}

impl RunOrder {
    /// Returns the variance between groups, as a multiple of that between the runs of one.
    fn between(self) -> f64 {
        match self {
            RunOrder::InTurns => 0.0,
            RunOrder::Apart => APART,
        }
    }
}

/// Additional variance between two groups that were measured one after the other, as a multiple of
/// the variance between runs of one group; it is half of their standard deviation. An assumption:
/// two groups cannot show it. docs/compare.md has an experiment.
pub const APART: f64 = 0.25;

impl Change {
    /// Returns the smallest change that this comparison would have found in 80 of 100 cases, at a
    /// probability of `alpha` for a false alarm: a quotient above 1, or an amount above 0, by the
    /// scale. `None` if a group is a single run.
    ///
    /// It is the sum of the two quantiles of Student's t: a usual approximation of the power of a t
    /// test, a little too large for few runs.
    pub fn smallest(&self, alpha: f64) -> Option<f64> {
        /// Two-sided, so that 20 of 100 lie beyond it on one side.
        const MISSED: f64 = 0.4;
        let spread = self.spread?;
        let quantiles = student_two_sided_t(alpha, spread.degrees) + student_two_sided_t(MISSED, spread.degrees);
        let size = quantiles * spread.error_squared.sqrt();
        let size = match self.scale {
            Scale::Ratio => size.exp(),
            Scale::Difference => size,
        };
        size.is_finite().then_some(size)
    }
}

/// Compares one figure's value in each run of A with its value in each of B.
///
/// A run is one observation: a percentile of it counts once, whatever its number of messages,
/// because the differences between runs (placement in memory, the state of the machine) affect all
/// of a run's messages together.
///
/// The test is Welch's, on logarithms if all values are above 0: latencies and costs are skewed,
/// and a change is a factor rather than an amount. Two things make it safe for few runs:
///
/// - The degrees of freedom are Welch's, but no more than two groups of the smaller size would
///   have; and 1 if a group has two runs (the bound of Mickey and Brown). Without that, 2 runs
///   against 10 find changes where there are none seven times as often as they should.
/// - The standard deviation of a group is at least `step`. Two runs that fall in one bucket of a
///   histogram are not free of noise.
///
/// The reported change is that of the medians; its interval, which is of the means on the scale of
/// the test, is widened if necessary to contain it.
///
/// Groups measured [`RunOrder::Apart`] have an additional variance.
///
/// `None` if a group is empty or a value is not finite.
///
/// Sources: Welch, *The generalization of "Student's" problem when several different population
/// variances are involved*, Biometrika 34, 1947; Mickey and Brown, *Bounds on the distribution
/// functions of the Behrens-Fisher statistic*, Annals of Mathematical Statistics 37, 1966.
pub fn change(a: Runs, b: Runs, order: RunOrder) -> Option<Change> {
    let (scale, group_a, group_b) = groups(a, b, order)?;
    let (median_a, median_b) = (median(a.values)?, median(b.values)?);
    let difference = group_b.mean - group_a.mean;
    let back = |value: f64| match scale {
        Scale::Ratio => value.exp(),
        Scale::Difference => value,
    };
    let around = |mean: f64, spread: &Spread, held: f64| {
        let half = half_width(spread.error_squared, spread.degrees);
        Interval { lo: back(mean - half).min(held), hi: back(mean + half).max(held) }
    };
    let typical = |group: &Group, median: f64| Estimate {
        value: median,
        interval: group.alone.map(|spread| around(group.mean, &spread, median)),
    };
    let moved = match scale {
        Scale::Ratio => median_b / median_a,
        Scale::Difference => median_b - median_a,
    };
    let joint = group_a.spread.zip(group_b.spread).map(|(a, b)| Spread::joint(&a, &b));
    let found = Change {
        a: typical(&group_a, median_a),
        b: typical(&group_b, median_b),
        change: Estimate { value: moved, interval: joint.map(|joint| around(difference, &joint, moved)) },
        scale,
        p: joint.map(|joint| joint.p(difference)),
        spread: joint,
    };
    let is_finite = found.change.value.is_finite() && found.p.is_none_or(|p| !p.is_nan());
    is_finite.then_some(found)
}

/// Returns the p of [`change`] without its intervals, which cost many times as much: for
/// simulations. `None` also if a group has fewer than two runs.
pub fn change_p(a: Runs, b: Runs, order: RunOrder) -> Option<f64> {
    let (_, a, b) = groups(a, b, order)?;
    Some(Spread::joint(&a.spread?, &b.spread?).p(b.mean - a.mean))
}

fn groups(a: Runs, b: Runs, order: RunOrder) -> Option<(Scale, Group, Group)> {
    let is_positive = a.values.iter().chain(b.values).all(|value| *value > 0.0);
    let scale = if is_positive { Scale::Ratio } else { Scale::Difference };
    // A figure that was always 0 is not known to scatter.
    let is_nothing = a.values.iter().chain(b.values).all(|value| *value == 0.0);
    let [a, b] = [a, b].map(|runs| if is_nothing { Runs { step: 0.0, ..runs } } else { runs });
    Some((scale, Group::new(a, scale, order)?, Group::new(b, scale, order)?))
}

/// Returns the adjusted p of each comparison of a family, in the order given. If those at or below
/// [`FALSE_ALARM`] are called changes, a family without any change finds one with at most that
/// probability, whatever the dependence between the comparisons. NaN counts as 1.
///
/// Source: Holm, *A simple sequentially rejective multiple test procedure*, Scandinavian Journal of
/// Statistics 6, 1979.
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

/// A group of runs on the scale of the comparison.
struct Group {
    mean: f64,
    /// Error of the mean of these runs; `None` for a single run.
    alone: Option<Spread>,
    /// Error of the mean if the other group was measured at another time.
    spread: Option<Spread>,
}

/// Error of a mean, or of a difference of two.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Spread {
    /// Standard error, squared.
    error_squared: f64,
    degrees: f64,
}

impl Group {
    fn new(runs: Runs, scale: Scale, order: RunOrder) -> Option<Group> {
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
        let spread = |between: f64| {
            (scaled.len() > 1).then(|| {
                let degrees = n - 1.0;
                let variance = scaled.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / degrees;
                Spread { error_squared: variance.max(step * step) * (1.0 / n + between), degrees }
            })
        };
        Some(Group { mean, alone: spread(0.0), spread: spread(order.between()) })
    }
}

impl Spread {
    fn joint(a: &Spread, b: &Spread) -> Spread {
        let error_squared = a.error_squared + b.error_squared;
        let smaller = a.degrees.min(b.degrees);
        // Computed by shares, because the squares of tiny errors would be 0.
        let (share_a, share_b) = (a.error_squared / error_squared, b.error_squared / error_squared);
        let welch = 1.0 / (share_a * share_a / a.degrees + share_b * share_b / b.degrees);
        let degrees = if smaller < 2.0 || welch.is_nan() { smaller.min(1.0) } else { welch.min(2.0 * smaller) };
        Spread { error_squared, degrees }
    }

    fn p(&self, difference: f64) -> f64 {
        if difference == 0.0 { 1.0 } else { student_two_sided_p(difference / self.error_squared.sqrt(), self.degrees) }
    }
}

/// Returns half of the width of a 95 % interval.
fn half_width(error_squared: f64, degrees: f64) -> f64 {
    student_two_sided_t(0.05, degrees) * error_squared.sqrt()
}
