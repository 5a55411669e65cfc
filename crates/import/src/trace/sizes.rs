//! Sizes of the messages of a flow, and the distribution that fits them.

use pubmark_model::payload::{LEAST_BYTES, MOST_BYTES, Payload};
use pubmark_stats::normal_cdf;
use std::collections::BTreeMap;

/// Most sizes that a mix lists.
const MIX_MAX: usize = 16;
/// Classes of sizes for each factor of two: neighbours differ by 1 %.
const CLASSES_PER_OCTAVE: f64 = 64.0;
/// Distance above which a smooth distribution does not fit, and a mix is taken.
const DISTANCE_MAX: f64 = 0.08;
/// The 99th percentile of the standard normal distribution.
const Z_99: f64 = 2.326_347_874_040_841;
/// The whole of a mix, millionths.
const WHOLE: u64 = 1_000_000;

/// Sizes, as statistics of bounded size.
pub(super) struct Sizes {
    /// Messages of each size, until there are too many sizes for a mix.
    exact: Option<BTreeMap<u64, u64>>,
    /// Messages of each class of sizes: the largest size of the class, and their number.
    classes: BTreeMap<u64, u64>,
    messages: u64,
    least: u64,
    most: u64,
    /// Mean of the logarithms, and the sum of the squares of the deviations from it.
    mean_ln: f64,
    squares_ln: f64,
    /// Messages that are shorter than the header of a message.
    raised: u64,
}

/// A distribution that fits the sizes.
pub(super) struct FittedSizes {
    /// The value of a study.
    pub value: String,
    /// Evidence, for a comment.
    pub evidence: String,
}

/// Returns the largest size of the class to which a size belongs.
fn class(bytes: u64) -> u64 {
    let step = ((bytes as f64).log2() * CLASSES_PER_OCTAVE).ceil();
    let upper = (step / CLASSES_PER_OCTAVE).exp2().floor() as u64;
    upper.clamp(bytes, MOST_BYTES)
}

impl Sizes {
    pub(super) fn new() -> Sizes {
        Sizes {
            exact: Some(BTreeMap::new()),
            classes: BTreeMap::new(),
            messages: 0,
            least: u64::MAX,
            most: 0,
            mean_ln: 0.0,
            squares_ln: 0.0,
            raised: 0,
        }
    }

    pub(super) fn add(&mut self, bytes: u64) {
        self.raised += u64::from(bytes < LEAST_BYTES);
        let bytes = bytes.clamp(LEAST_BYTES, MOST_BYTES);
        self.messages += 1;
        (self.least, self.most) = (self.least.min(bytes), self.most.max(bytes));
        let ln = (bytes as f64).ln();
        let from_mean = ln - self.mean_ln;
        self.mean_ln += from_mean / self.messages as f64;
        self.squares_ln += from_mean * (ln - self.mean_ln);
        *self.classes.entry(class(bytes)).or_default() += 1;
        if let Some(exact) = &mut self.exact {
            *exact.entry(bytes).or_default() += 1;
            if exact.len() > MIX_MAX {
                self.exact = None;
            }
        }
    }

    /// Returns the distribution that fits: one size, a mix of few, or the smooth one that is nearest; a mix if none is
    /// near.
    pub(super) fn fit(&self) -> FittedSizes {
        let mut fitted = match &self.exact {
            Some(exact) if exact.len() <= 1 => {
                FittedSizes { value: Payload::Constant(self.least).to_string(), evidence: "all messages".into() }
            }
            Some(exact) => {
                let sizes: Vec<(u64, u64)> = exact.iter().map(|(bytes, count)| (*bytes, *count)).collect();
                FittedSizes { value: self.mix(sizes), evidence: format!("{} sizes, exactly", exact.len()) }
            }
            None => self.smooth(),
        };
        if self.raised > 0 {
            fitted.evidence += &format!("; {} messages are shorter than the header of {LEAST_BYTES} B", self.raised);
        }
        fitted
    }

    /// Returns the nearest smooth distribution, or a mix.
    fn smooth(&self) -> FittedSizes {
        let deviation = (self.squares_ln / self.messages as f64).sqrt();
        let (low, high) = (self.quantile(0.5) as f64, self.quantile(0.99) as f64);
        let normals = [(self.mean_ln, deviation), (low.ln(), (high / low).ln() / Z_99)];
        let normals = normals.into_iter().filter_map(|(mean, deviation)| {
            let p50 = (mean.exp().round() as u64).clamp(LEAST_BYTES, self.most);
            let p99 = ((mean + Z_99 * deviation).exp().round() as u64).min(MOST_BYTES);
            let payload = Payload::LogNormal { p50, p99, most: self.most.max(p99) };
            let distance = self.distance(|bytes| normal_cdf(((bytes + 0.5).ln() - mean) / deviation));
            (p99 > p50).then_some((distance, payload))
        });
        let width = (self.most - self.least + 1) as f64;
        let even = self.distance(|bytes| ((bytes - self.least as f64 + 1.0) / width).clamp(0.0, 1.0));
        let even = (even, Payload::Uniform { least: self.least, most: self.most });
        let best = normals.chain([even]).min_by(|one, other| one.0.total_cmp(&other.0));
        if let Some((distance, payload)) = best.filter(|(distance, _)| *distance <= DISTANCE_MAX) {
            let evidence = format!("Kolmogorov-Smirnov distance {distance:.3}");
            return FittedSizes { value: payload.to_string(), evidence };
        }
        // Sizes of equally many messages each. A size that is frequent by itself takes several.
        let sizes = (0..MIX_MAX).map(|part| self.quantile((part as f64 + 0.5) / MIX_MAX as f64));
        let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
        sizes.for_each(|bytes| *counts.entry(bytes).or_default() += 1);
        let counts: Vec<(u64, u64)> = counts.into_iter().collect();
        let share = |bytes: f64| {
            let below = counts.iter().filter(|(size, _)| *size as f64 <= bytes);
            below.map(|(_, count)| count).sum::<u64>() as f64 / MIX_MAX as f64
        };
        let evidence = format!("Kolmogorov-Smirnov distance {:.3}; no smooth distribution fits", self.distance(share));
        let value = if counts.len() > 1 { self.mix(counts) } else { Payload::Constant(counts[0].0).to_string() };
        FittedSizes { value, evidence }
    }

    /// Returns a mix with these numbers of messages, whose shares add up to the whole.
    fn mix(&self, mut sizes: Vec<(u64, u64)>) -> String {
        let sum: u64 = sizes.iter().map(|(_, count)| count).sum();
        let share = |count: u64| (u128::from(count) * u128::from(WHOLE) / u128::from(sum.max(1))) as u64;
        sizes.iter_mut().for_each(|(_, count)| *count = share(*count).max(1));
        let given: u64 = sizes.iter().map(|(_, count)| count).sum();
        if let Some((_, largest)) = sizes.iter_mut().max_by_key(|(_, count)| *count) {
            *largest = (*largest + WHOLE).saturating_sub(given);
        }
        Payload::Mix(sizes).to_string()
    }

    /// Returns the size that this share of the messages does not exceed.
    fn quantile(&self, share: f64) -> u64 {
        let wanted = (share * self.messages as f64).ceil() as u64;
        let mut below = 0;
        for (upper, count) in &self.classes {
            below += count;
            if below >= wanted {
                return (*upper).min(self.most);
            }
        }
        self.most
    }

    /// Returns the Kolmogorov-Smirnov distance to a distribution function, at the bounds of the classes.
    fn distance(&self, share: impl Fn(f64) -> f64) -> f64 {
        let (mut below, mut largest) = (0, 0.0_f64);
        for (upper, count) in &self.classes {
            below += count;
            let own = below as f64 / self.messages as f64;
            let bound = (*upper).min(self.most);
            // At its ends the distribution has whole sizes for all that lies beyond.
            if bound < self.most {
                largest = largest.max((own - share(bound as f64)).abs());
            }
        }
        largest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pubmark_model::payload::{MessageSizes, SizeFiles};

    /// Returns the fit to sizes that a study's text describes.
    fn fit(text: &str) -> FittedSizes {
        let mut sizes = Sizes::new();
        match Payload::parse(text).unwrap().sizes(&SizeFiles::new()) {
            None => (0..100).for_each(|_| sizes.add(Payload::parse(text).unwrap().most_bytes().unwrap())),
            Some(found) => {
                let drawn = MessageSizes::new(found, 3);
                (0..20_000).for_each(|number| sizes.add(drawn.bytes(0, number) as u64));
            }
        }
        sizes.fit()
    }

    #[test]
    fn known_distributions_come_back() {
        assert_eq!(fit("512B").value, "512B");
        let Ok(Payload::Mix(found)) = Payload::parse(&fit("mix 64B 90% 4KiB 9% 1MiB 1%").value) else { panic!() };
        for ((bytes, share), (wanted, of)) in found.iter().zip([(64, 900_000), (4_096, 90_000), (1 << 20, 10_000)]) {
            assert_eq!(*bytes, wanted);
            assert!(share.abs_diff(of) < 10_000, "{found:?}");
        }
        let fitted = fit("lognormal p50 512B p99 16KiB max 64KiB");
        let Ok(Payload::LogNormal { p50, p99, most }) = Payload::parse(&fitted.value) else {
            panic!("{}", fitted.value)
        };
        assert!((p50 as f64 / 512.0 - 1.0).abs() < 0.05, "{}", fitted.value);
        assert!((p99 as f64 / 16_384.0 - 1.0).abs() < 0.15, "{}", fitted.value);
        assert!(
            most <= 65_536 && fitted.evidence.starts_with("Kolmogorov-Smirnov distance 0.0"),
            "{}",
            fitted.evidence
        );
        assert!(fit("uniform 64B to 4KiB").value.starts_with("uniform 6"));
    }

    #[test]
    fn sizes_without_a_form_become_a_mix_whose_shares_add_up() {
        let mut sizes = Sizes::new();
        (0..9_000).for_each(|number| sizes.add(100 + number % 20));
        (0..1_000).for_each(|number| sizes.add(1_000_000 + number));
        let fitted = sizes.fit();
        assert!(matches!(Payload::parse(&fitted.value), Ok(Payload::Mix(_))), "{}", fitted.value);
        assert!(fitted.evidence.contains("no smooth distribution fits"));
        let mut thirds = Sizes::new();
        [16, 17, 18].iter().cycle().take(300).for_each(|bytes| thirds.add(*bytes));
        thirds.add(0);
        let fitted = thirds.fit();
        assert!(Payload::parse(&fitted.value).is_ok(), "{}", fitted.value);
        assert!(fitted.evidence.ends_with("1 messages are shorter than the header of 16 B"), "{}", fitted.evidence);
    }

    #[test]
    fn memory_does_not_grow_with_the_number_of_sizes() {
        let mut sizes = Sizes::new();
        (0..300_000).for_each(|number| sizes.add(number * 3_001 % MOST_BYTES));
        assert!(sizes.exact.is_none() && sizes.classes.len() < 1_800, "{}", sizes.classes.len());
        assert!(Payload::parse(&sizes.fit().value).is_ok());
    }
}
