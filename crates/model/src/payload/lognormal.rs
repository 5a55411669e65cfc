//! The log-normal distribution as classes of sizes.

use super::sizes::SizeClass;
use crate::header::MIN_LEN;
use pubmark_stats::normal_cdf;

/// Number of classes, at most: neighbours differ by a few per cent even over six decades.
const CLASSES: u32 = 512;
/// The 99th percentile of the standard normal distribution.
const Z_99: f64 = 2.326_347_874_040_841;
/// Deviations from the median beyond which sizes are not told apart.
const REACH: f64 = 6.0;
/// The sum of all weights.
const WHOLE: f64 = 4_000_000_000.0;

/// Returns the classes of a distribution with this median and 99th percentile, bytes. Sizes below that of a header,
/// and above `most`, have these sizes.
pub(super) fn classes(p50: u64, p99: u64, most: u64) -> Vec<SizeClass> {
    let least = MIN_LEN as u64;
    let (mu, sigma) = ((p50 as f64).ln(), (p99 as f64 / p50 as f64).ln() / Z_99);
    let at = |z: f64| (mu + z * sigma).exp();
    // A size stands for the interval that rounds to it.
    let below = |bytes: u64| normal_cdf(((bytes as f64 - 0.5).ln() - mu) / sigma);
    let from = at(-REACH).max(least as f64 + 1.0);
    let to = at(REACH).min(most as f64).max(from);
    let step = |number: u32| from * (to / from).powf(f64::from(number) / f64::from(CLASSES));
    // The first size of each class; before the first comes the header alone, and after the last the cap.
    let mut firsts: Vec<u64> = (0..=CLASSES).map(|number| (step(number).round() as u64).clamp(least, most)).collect();
    firsts.splice(..0, [least]);
    firsts.push(most);
    firsts.dedup();
    let mut weighed = 0.0;
    let bounds = firsts.iter().zip(firsts.iter().skip(1).map(Some).chain([None]));
    let class = |(first, next): (&u64, Option<&u64>)| {
        let until = next.map_or(WHOLE, |next| (below(*next) * WHOLE).round());
        let weight = (until - weighed).max(0.0) as u64;
        weighed = until.max(weighed);
        SizeClass { weight, least: *first, most: next.map_or(*first, |next| next - 1) }
    };
    bounds.map(class).filter(|class| class.weight > 0).collect()
}
