//! What a typical run of a cell shows, and how sure that is.

use crate::bootstrap::{Estimate, Interval, median};
use crate::change::Runs;
use crate::student::student_two_sided_t;

/// A figure of a cell: the median over its runs of each run's own figure, with
/// a 95 % interval for the run that is typical of them.
///
/// The interval is Student's for the mean of the logarithms, or of the plain
/// values where one is not above 0. The standard deviation is taken to be at
/// least `step`. Where the median lies outside, the interval is widened to hold
/// it. So it says where the median of further runs would lie: that is the mean
/// on logarithms wherever noise is as likely to halve a figure as to double it.
///
/// `None` where there are no values or one is not finite. One run has no
/// interval.
pub fn typical_run(runs: Runs) -> Option<Estimate> {
    let value = median(runs.values)?;
    Some(Estimate { value, interval: interval(runs, value) })
}

fn interval(runs: Runs, median: f64) -> Option<Interval> {
    if runs.values.len() < 2 {
        return None;
    }
    let is_positive = runs.values.iter().all(|value| *value > 0.0);
    let scaled: Vec<f64> = runs.values.iter().map(|value| if is_positive { value.ln() } else { *value }).collect();
    let n = scaled.len() as f64;
    let mean = scaled.iter().sum::<f64>() / n;
    let variance = scaled.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let step = if is_positive { runs.step / mean.exp() } else { runs.step };
    let half = student_two_sided_t(0.05, n - 1.0) * (variance.max(step * step) / n).sqrt();
    let back = |value: f64| if is_positive { value.exp() } else { value };
    let (lo, hi) = (back(mean - half).min(median), back(mean + half).max(median));
    (lo.is_finite() && hi.is_finite()).then_some(Interval { lo, hi })
}
