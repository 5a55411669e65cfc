//! Gaps between the messages of a flow: even, random, or in bursts.

/// Messages over which the usual gap is averaged.
const MEMORY: f64 = 64.0;
/// A gap is short if it is below this share of the usual gap.
const SHORT: f64 = 0.1;
/// It is also short below this share of the mean of all gaps before it.
const VERY_SHORT: f64 = 0.01;
/// Share of short gaps from which messages come in bursts. A Poisson process has 0.1, bursts of two have 0.5.
const BURSTS_MIN: f64 = 0.35;
/// Variation of gaps, and dispersion of counts, below which messages come evenly. A Poisson process has 1.
const EVEN_MAX: f64 = 0.5;
/// Fewest gaps that say anything.
const GAPS_MIN: u64 = 20;
/// Largest burst of a study.
const BURST_MAX: f64 = 1e6;
/// Usual units of clocks that are too coarse for gaps, ns.
const COARSE: [u64; 3] = [1_000_000_000, 1_000_000, 1_000];

/// Gaps, as statistics of fixed size.
#[derive(Default)]
pub(super) struct Arrivals {
    last_ns: Option<u64>,
    last_gap: f64,
    usual: f64,
    gaps: u64,
    /// Gaps that were compared with the usual one, and those of them that are short.
    judged: u64,
    short: u64,
    /// Sum of the differences of neighbouring gaps, relative to their mean.
    differences: f64,
    /// Number of these differences.
    pairs: u64,
    /// Greatest common divisor of all times since the beginning of the trace.
    unit_ns: u64,
    first_ns: u64,
}

/// Arrivals that fit the gaps.
pub(super) struct FittedArrival {
    /// The value of a study.
    pub value: String,
    /// Evidence, for a comment.
    pub evidence: String,
}

fn divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

impl Arrivals {
    pub(super) fn add(&mut self, at_ns: u64) {
        self.unit_ns = divisor(self.unit_ns, at_ns);
        let Some(last_ns) = self.last_ns.replace(at_ns) else {
            self.first_ns = at_ns;
            return;
        };
        let gap = at_ns.saturating_sub(last_ns) as f64;
        if self.gaps > 0 && self.last_gap + gap > 0.0 {
            self.differences += 2.0 * (gap - self.last_gap).abs() / (gap + self.last_gap);
            self.pairs += 1;
        }
        self.gaps += 1;
        // Within a long burst the usual gap shrinks, but not the mean of all gaps.
        let mean = at_ns.saturating_sub(self.first_ns) as f64 / self.gaps as f64;
        let is_short = gap < SHORT * self.usual || gap < VERY_SHORT * mean;
        if self.short == 0 && gap * SHORT > self.usual {
            // The trace began within a burst, whose gaps were not known to be short.
            self.judged = 0;
        }
        if self.gaps > GAPS_MIN {
            self.judged += 1;
            self.short += u64::from(is_short);
        }
        self.usual += (gap - self.usual) / MEMORY.min(self.gaps as f64);
        self.last_gap = gap;
    }

    /// Returns the arrivals that fit. `dispersion` is that of the counts.
    pub(super) fn fit(&self, dispersion: Option<f64>) -> FittedArrival {
        if self.gaps <= GAPS_MIN {
            return FittedArrival { value: "uniform".into(), evidence: "too few messages to tell".into() };
        }
        let mean_ns = self.last_ns.unwrap_or_default().saturating_sub(self.first_ns) as f64 / self.gaps as f64;
        let is_coarse = COARSE.contains(&self.unit_ns) && mean_ns < 3.0 * self.unit_ns as f64;
        let variation = self.differences / self.pairs.max(1) as f64;
        let short = self.short as f64 / self.judged.max(1) as f64;
        let dispersed = |counts: String| match dispersion {
            Some(index) => format!("index of dispersion of counts {index:.2}{counts}"),
            None => format!("too few messages for the dispersion of counts{counts}"),
        };
        if is_coarse && variation >= EVEN_MAX {
            let value = if dispersion.is_some_and(|index| index < EVEN_MAX) { "uniform" } else { "poisson" };
            return FittedArrival {
                value: value.into(),
                evidence: dispersed("; times are too coarse for gaps".into()),
            };
        }
        let evidence = dispersed(format!(", variation of gaps {variation:.2}"));
        let value = if short > BURSTS_MIN {
            let size = (1.0 / (1.0 - short).max(1.0 / BURST_MAX)).round().max(2.0);
            return FittedArrival {
                value: format!("burst:{size}"),
                evidence: format!("{:.0} % of gaps are short, {evidence}", 100.0 * short),
            };
        } else if variation < EVEN_MAX || dispersion.is_some_and(|index| index < EVEN_MAX) {
            "uniform"
        } else {
            "poisson"
        };
        FittedArrival { value: value.into(), evidence }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pubmark_stats::Random;

    fn fit(gaps: impl Iterator<Item = u64>) -> String {
        let (mut arrivals, mut at) = (Arrivals::default(), 0);
        for gap in gaps {
            at += gap;
            arrivals.add(at);
        }
        arrivals.fit(None).value
    }

    fn exponential(mean: f64) -> impl Iterator<Item = u64> {
        let mut random = Random(7);
        std::iter::repeat_with(move || (-mean * (1.0 - random.unit()).ln()) as u64)
    }

    #[test]
    fn even_random_and_bursts_are_told_apart() {
        assert_eq!(fit(std::iter::repeat_n(1_000_000, 1_000)), "uniform");
        assert_eq!(fit((0..1_000).map(|number| 1_000_000 + number * 7_919 % 200_001)), "uniform", "jitter of a fifth");
        assert_eq!(fit(exponential(1_000_003.0).take(2_000)), "poisson");
        for size in [2, 10, 100, 500] {
            let gaps = (0..5_000_u64).map(|number| if number.is_multiple_of(size) { 10_000_019 } else { 7 });
            assert_eq!(fit(gaps), format!("burst:{size}"));
        }
        assert_eq!(fit(std::iter::repeat_n(1_000_000, 5)), "uniform");
    }

    #[test]
    fn a_rate_that_changes_does_not_change_them() {
        let slow = exponential(10_000_019.0).take(2_000);
        assert_eq!(fit(exponential(1_000_003.0).take(2_000).chain(slow)), "poisson");
        let even = std::iter::repeat_n(10_000_000, 500).chain(std::iter::repeat_n(500_000, 500));
        assert_eq!(fit(even), "uniform");
    }

    #[test]
    fn coarse_times_make_no_bursts() {
        let mut at = 0.0;
        let mut arrivals = Arrivals::default();
        for gap in exponential(100_000.0).take(20_000) {
            at += gap as f64;
            arrivals.add((at / 1e6) as u64 * 1_000_000);
        }
        assert_eq!(arrivals.fit(Some(1.1)).value, "poisson");
        assert_eq!(arrivals.fit(Some(0.1)).value, "uniform");
    }
}
