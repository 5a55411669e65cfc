//! A figure that is measured until it is known to within a share of itself.

use crate::change::Runs;
use crate::estimate::{Estimate, Interval};
use crate::ranking::REPEATS_MORE_MAX;
use crate::sequential::{look_after, share_of_look};
use crate::student::student_two_sided_t;
use crate::typical::{RANKS_MIN, typical_run_at};

/// Maximum probability with which an interval misses the typical run at any look.
const MISSED: f64 = 0.05;

/// Width of the interval between ranks relative to Student's, for normal noise: the square root of
/// π/2, rounded up.
const RANKS_WIDER: f64 = 1.3;

/// A figure from runs with repeated looks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PreciseFigure {
    /// The median over the runs of a look: the first that is precise enough, or else the latest.
    /// Its interval holds over all looks: it misses the typical run at any look in at most 5 of 100
    /// cases.
    pub estimate: Estimate,
    /// Number of runs of that look.
    pub looked_at: usize,
    /// True if both ends lie as near to the figure as requested.
    pub is_precise: bool,
    /// Estimated number of additional runs; `None` if the figure is precise already, or would take
    /// more than [`REPEATS_MORE_MAX`].
    pub more: Option<u32>,
}

/// Tests whether runs, in the order in which they were made, determine a figure to within a share
/// of it, 0 to 1.
///
/// The looks are at 2, 3, 4, 6, 8, 12 … runs ([`look_after`]), and each has an interval at the
/// level that it may spend. The runs alone determine which look decides. `None` before the first
/// look, and if a value is not finite and above 0.
pub fn precise_figure(runs: Runs, share: f64) -> Option<PreciseFigure> {
    if runs.values.iter().any(|value| !value.is_finite() || *value <= 0.0) {
        return None;
    }
    let count = runs.values.len();
    let looks = std::iter::successors(Some(look_after(0)), |look| Some(look_after(*look)));
    let mut latest = None;
    for look in looks.take_while(|look| *look <= count) {
        let of_look = Runs { values: &runs.values[..look], ..runs };
        let estimate = typical_run_at(of_look, MISSED * share_of_look(look))?;
        let is_precise = estimate.interval.is_some_and(|interval| is_within(estimate.value, interval, share));
        latest = Some(PreciseFigure { estimate, looked_at: look, is_precise, more: None });
        if is_precise {
            break;
        }
    }
    latest.map(|found| PreciseFigure { more: if found.is_precise { None } else { more(runs, share) }, ..found })
}

fn is_within(value: f64, Interval { lo, hi }: Interval, share: f64) -> bool {
    hi - value <= share * value && value - lo <= share * value
}

/// Returns the number of additional runs, if their noise is that of these.
fn more(runs: Runs, share: f64) -> Option<u32> {
    let logarithms: Vec<f64> = runs.values.iter().map(|value| value.ln()).collect();
    let n = logarithms.len() as f64;
    let mean = logarithms.iter().sum::<f64>() / n;
    let variance = logarithms.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let deviation = variance.sqrt().max(runs.step / mean.exp());
    let looks = std::iter::successors(Some(look_after(logarithms.len())), |look| Some(look_after(*look)));
    let more = |look: usize| (look - logarithms.len()) as u32;
    let tells = |look: &usize| {
        let wider = if *look < RANKS_MIN { 1.0 } else { RANKS_WIDER };
        let t = student_two_sided_t(MISSED * share_of_look(*look), *look as f64 - 1.0);
        wider * t * deviation / (*look as f64).sqrt() <= (1.0 + share).ln()
    };
    looks.take_while(|look| more(*look) <= REPEATS_MORE_MAX).find(tells).map(more)
}
