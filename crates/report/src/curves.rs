//! Percentile curves and distributions, from the runs' histograms merged.

use pubmark_model::times::TimeFigures;
use pubmark_stats::{Histogram, HistogramError};
use serde::Serialize;
use std::collections::BTreeMap;

/// Points of a percentile curve for each factor of ten nearer to all.
const STEPS_PER_DECADE: i32 = 10;
/// The last is 1 − 10⁻⁴.
const DECADES: i32 = 4;
/// Messages that must lie beyond a percentile for it to be shown.
const BEYOND_MIN: f64 = 10.0;
/// Bins of a distribution for each factor of ten; each is 12 % wide.
pub const BINS_PER_DECADE: u32 = 20;

/// The quantiles of the curves, ascending, 0 to 0.9999, evenly spaced on the
/// axis that HdrHistogram's plots have.
pub fn quantiles() -> Vec<f64> {
    (0..=STEPS_PER_DECADE * DECADES).map(|step| 1.0 - beyond(step)).collect()
}

/// The share of messages above the quantile of this step.
fn beyond(step: i32) -> f64 {
    10f64.powf(-f64::from(step) / f64::from(STEPS_PER_DECADE))
}

/// Shares of all messages by bin: bin k covers 10^(k/20) to 10^((k+1)/20) ns.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Distribution {
    /// Number of the first bin.
    pub first: u32,
    /// The shares from there on, in 0 to 1.
    pub shares: Vec<f32>,
}

/// Both of one kind of latency.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "Curves"))]
pub struct Curve {
    /// By quantile, ns.
    pub values: Vec<u64>,
    /// By bin.
    pub distribution: Distribution,
}

/// Curves of a cell, by kind; a kind that no run measured is absent.
pub type Curves = BTreeMap<&'static str, Curve>;

/// The histogram of a kind of latency, among those of a run.
type Pick = fn(&TimeFigures<Option<String>>) -> Option<&str>;

/// The kinds of latency that are drawn.
const DRAWN: [(&str, Pick); 3] = [
    ("latency", |histograms| histograms.latency.as_deref()),
    ("intended", |histograms| histograms.intended_latency.as_deref()),
    ("service", |histograms| histograms.service_latency.as_deref()),
];

/// The histograms of a cell's runs on their way to its curves: one of each kind is
/// in memory, however many runs there are.
#[derive(Default)]
pub struct Merging([Option<Histogram>; DRAWN.len()]);

impl Merging {
    /// Reads what a run measured, and adds it where the run counts.
    ///
    /// # Errors
    /// Where a histogram that is drawn cannot be read, whether or not the run counts.
    pub fn add(&mut self, run: &TimeFigures<Option<String>>, counts: bool) -> Result<(), HistogramError> {
        for (merged, (_, pick)) in self.0.iter_mut().zip(DRAWN) {
            let Some(text) = pick(run) else { continue };
            let read = Histogram::decode(text)?;
            match merged {
                _ if !counts => {}
                None => *merged = Some(read),
                // Histograms of different precision cannot be merged: the first one counts.
                Some(all) => drop(all.merge(&read)),
            }
        }
        Ok(())
    }

    /// The curves of what was added.
    pub fn curves(self) -> Curves {
        let kinds = self.0.into_iter().zip(DRAWN);
        let measured = kinds.filter_map(|(merged, (kind, _))| Some((kind, merged.filter(|all| !all.is_empty())?)));
        let drawn = |all: &Histogram| Curve { values: values(all), distribution: distribution(all) };
        measured.map(|(kind, all)| (kind, drawn(&all))).collect()
    }
}

/// The curve ends where too few messages lie beyond.
fn values(histogram: &Histogram) -> Vec<u64> {
    let count = histogram.count() as f64;
    (0..=STEPS_PER_DECADE * DECADES)
        .take_while(|step| *step == 0 || count * beyond(*step) >= BEYOND_MIN - 1e-6)
        .map(|step| histogram.value_at((1.0 - beyond(step)).max(f64::MIN_POSITIVE)))
        .collect()
}

fn distribution(histogram: &Histogram) -> Distribution {
    let bin = |ns: u64| (f64::from(BINS_PER_DECADE) * (ns.max(1) as f64).log10()).floor() as u32;
    let first = bin(histogram.min());
    let mut counts = vec![0u64; (bin(histogram.max()).saturating_sub(first) + 1) as usize];
    for (ns, count) in histogram.nonzero() {
        let at = (bin(ns).saturating_sub(first) as usize).min(counts.len() - 1);
        counts[at] += count;
    }
    let all = histogram.count() as f64;
    Distribution { first, shares: counts.into_iter().map(|count| (count as f64 / all) as f32).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[(u64, u64)]) -> Histogram {
        let mut histogram = Histogram::latency();
        values.iter().for_each(|(ns, count)| histogram.record_n(*ns, *count));
        histogram
    }

    #[test]
    fn a_curve_ends_where_fewer_than_ten_messages_lie_beyond() {
        let last = |count: u64| values(&of(&[(1_000, count)])).len() - 1;
        // 10 beyond p90 need 100 messages, beyond p99 1,000, beyond p99.99 100,000.
        assert_eq!([last(1), last(99), last(100), last(999), last(1_000), last(10_000_000)], [0, 9, 10, 19, 20, 40]);
    }

    #[test]
    fn a_curve_shows_the_share_of_slow_messages() {
        // 2 % of 10,000 take ten times as long: seen from the 98th percentile on.
        let values = values(&of(&[(1_000, 9_800), (10_000, 200)]));
        let near = |ns: u64, of: u64| ns.abs_diff(of) <= of / 500;
        let slow = quantiles().iter().position(|quantile| *quantile > 0.98).unwrap();
        assert!(values[..slow].iter().all(|ns| near(*ns, 1_000)), "{values:?}");
        assert!(values[slow..].iter().all(|ns| near(*ns, 10_000)), "{values:?}");
    }

    #[test]
    fn shares_are_of_all_messages_and_lie_in_the_right_bin() {
        let distribution = distribution(&of(&[(1_000, 30), (10_500, 70)]));
        assert_eq!(distribution.first, 60);
        let sum: f32 = distribution.shares.iter().sum();
        assert!((sum - 1.0).abs() < 1e-6);
        assert_eq!((distribution.shares[0], distribution.shares[20]), (0.3, 0.7));
    }
}
