//! Steps that a setting or a timer leaves in a distribution of latencies, and that no system needs
//! to have.
//!
//! A distribution with a single peak cannot have any of these shapes, so a uniform, an exponential
//! or a log-normal one raises none of them.

use crate::histogram::Histogram;

/// Fewest latencies in which a shape is searched.
pub const ARTEFACT_SAMPLES_MIN: u64 = 200;

/// Cause of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Artefact {
    /// Nagle's algorithm (RFC 896) at a sender, which waits for an acknowledgement that the
    /// receiver delays (RFC 1122, 4.2.3.2): by 40 ms on Linux (`TCP_DELACK_MIN`).
    DelayedAcknowledgement,
    /// A timer of this period, ns: messages arrive only at its ticks.
    Timer(u64),
}

/// A step in a distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ArtefactStep {
    /// Its cause.
    pub artefact: Artefact,
    /// The share of all latencies in the step, 0 to 1.
    pub share: f64,
}

const MS: u64 = 1_000_000;

/// Periods of known timers: kernels of 1,000, 250 and 100 Hz, and 64 Hz.
pub const TIMERS_NS: [u64; 4] = [MS, 4 * MS, 10 * MS, 15_625_000];

/// Returns the known steps in a distribution.
pub fn artefacts(latency: &Histogram) -> Vec<ArtefactStep> {
    let shape = Shape::of(latency);
    if shape.all < ARTEFACT_SAMPLES_MIN {
        return Vec::new();
    }
    let timers: Vec<ArtefactStep> = TIMERS_NS.into_iter().filter_map(|period_ns| shape.ticks(period_ns)).collect();
    // Ticks up to 40 ms need no other cause.
    if timers.is_empty() { shape.delayed().into_iter().collect() } else { timers }
}

/// Counts up to each value, ascending.
struct Shape {
    values: Vec<(u64, u64)>,
    all: u64,
}

impl Shape {
    fn of(latency: &Histogram) -> Shape {
        let mut all = 0;
        let values = latency.nonzero().map(|(ns, count)| {
            all += count;
            (ns, all)
        });
        Shape { values: values.collect(), all }
    }

    fn below(&self, ns: u64) -> u64 {
        let at = self.values.partition_point(|(value, _)| *value < ns);
        at.checked_sub(1).map_or(0, |last| self.values[last].1)
    }

    fn within(&self, from_ns: u64, to_ns: u64) -> u64 {
        self.below(to_ns) - self.below(from_ns)
    }

    fn share(&self, count: u64) -> f64 {
        count as f64 / self.all as f64
    }

    fn delayed(&self) -> Option<ArtefactStep> {
        let found = self.plateau().or_else(|| self.peak())?;
        Some(ArtefactStep { artefact: Artefact::DelayedAcknowledgement, share: self.share(found) })
    }

    /// Returns the messages on a plateau. A message sent while an acknowledgement is delayed waits
    /// for the rest of the 40 ms: about as many messages wait 35 as 15, and none 50. Messages
    /// without such a wait stand out below 2.
    fn plateau(&self) -> Option<u64> {
        let within = |from_ms: u64, to_ms: u64| self.within(from_ms * MS, to_ms * MS);
        let thirds = [within(10, 20), within(20, 30), within(30, 40)];
        let (least, most) = (*thirds.iter().min()?, *thirds.iter().max()?);
        let waited = within(10, 48);
        let is_flat = least * 5 >= most * 2;
        let is_cut_off = within(48, 58) * 5 <= thirds[2];
        // In a uniform distribution, 2 ms hold no more than other 2 ms, except by chance.
        let usual = thirds.iter().sum::<u64>() as f64 / 15.0;
        let others_are_fast = within(0, 2) as f64 >= 2.0 * usual + 5.0 * usual.sqrt();
        // With fewer messages, the cliff may be due to chance.
        let is_enough = least >= 40 && self.share(waited) >= 0.01;
        (is_flat && is_cut_off && others_are_fast && is_enough).then_some(waited)
    }

    /// Returns the messages in a peak. A message that is sent by itself waits for the whole delay:
    /// a peak at 40 ms, far from the others.
    fn peak(&self) -> Option<u64> {
        let within = |from_ms: u64, to_ms: u64| self.within(from_ms * MS, to_ms * MS);
        let (before, at, after) = (within(28, 38), within(38, 48), within(48, 58));
        let stands_alone = 4 * before <= at && 4 * after <= at;
        let is_enough = at >= 20 && self.share(at) >= 0.01;
        // A single peak would have to rise through the range before it.
        let others_are_fast = within(0, 28) >= self.all / 10 && within(0, 10) > 4 * before;
        (stands_alone && is_enough && others_are_fast).then_some(at)
    }

    /// Finds peaks at three or more consecutive ticks, with almost nothing between.
    fn ticks(&self, period_ns: u64) -> Option<ArtefactStep> {
        // The time of a message besides the wait shifts all peaks alike.
        let phases = (0..10).map(|phase| phase * period_ns / 20);
        let in_step = phases.map(|phase| self.in_step(period_ns, phase)).max()?;
        (in_step > 0).then(|| ArtefactStep { artefact: Artefact::Timer(period_ns), share: self.share(in_step) })
    }

    /// Returns the latencies at all ticks but the first, if they gather there.
    fn in_step(&self, period_ns: u64, phase_ns: u64) -> u64 {
        /// The part of the period that a peak may take: one in this many.
        const WIDTH: u64 = 5;
        /// Number of ticks to check.
        const TICKS: u64 = 32;
        let least = (self.all * 3 / 100).max(20);
        let width = period_ns / WIDTH;
        let at = |tick: u64| {
            let middle = phase_ns + tick * period_ns;
            self.within(middle.saturating_sub(width / 2), middle + width / 2)
        };
        let between = |tick: u64| {
            let from = phase_ns + tick * period_ns + width / 2;
            self.within(from, from + period_ns - width)
        };
        let (mut row, mut longest, mut all) = (0, 0, 0);
        for tick in 0..TICKS {
            let (here, next) = (at(tick), at(tick + 1));
            let gathers = here >= least && next >= least && 2 * between(tick) <= here.min(next);
            row = if gathers { row + 1 } else { 0 };
            longest = longest.max(row);
            all += next;
        }
        if longest >= 2 { all } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use proptest::prelude::*;

    fn drawn(count: u64, seed: u64, mut ms: impl FnMut(&mut Random) -> f64) -> Histogram {
        let (mut histogram, mut random) = (Histogram::latency(), Random(seed));
        for _ in 0..count {
            histogram.record((ms(&mut random).max(0.0) * 1e6) as u64);
        }
        histogram
    }

    fn normal(random: &mut Random) -> f64 {
        let (one, two) = (random.unit().max(1e-300), random.unit());
        (-2.0 * one.ln()).sqrt() * (std::f64::consts::TAU * two).cos()
    }

    fn found(histogram: &Histogram) -> Vec<Artefact> {
        artefacts(histogram).into_iter().map(|step| step.artefact).collect()
    }

    #[test]
    fn what_waits_for_a_delayed_acknowledgement_is_a_plateau_up_to_40_ms() {
        // A tenth waits for the rest of 40 to 43 ms; the others take a fifth of a millisecond.
        let held = drawn(10_000, 1, |random| match random.unit() < 0.1 {
            true => (40.0 + 3.0 * random.unit()) * random.unit(),
            false => 0.2 * -random.unit().max(1e-9).ln(),
        });
        let steps = artefacts(&held);
        assert_eq!(found(&held), [Artefact::DelayedAcknowledgement]);
        let expected = 0.1 * (1.0 - 10.0 / 41.5);
        assert!((steps[0].share - expected).abs() < 0.01, "{steps:?} beside {expected}");
        // Most messages may wait; the others still stand out.
        let most = drawn(3_000, 4, |random| match random.unit() < 0.85 {
            true => (36.0 + 8.0 * random.unit()) * random.unit(),
            false => 0.2 * -random.unit().max(1e-9).ln(),
        });
        assert_eq!(found(&most), [Artefact::DelayedAcknowledgement]);
        // Without the fast ones it is a uniform distribution.
        let uniform = drawn(10_000, 1, |random| 41.0 * random.unit());
        assert_eq!(found(&uniform), []);
    }

    #[test]
    fn a_message_by_itself_waits_for_all_of_it() {
        let held = drawn(2_000, 2, |random| match random.unit() < 0.5 {
            true => 40.0 + 2.0 * random.unit(),
            false => 0.3 + 0.1 * random.unit(),
        });
        assert_eq!(found(&held), [Artefact::DelayedAcknowledgement]);
        assert!((artefacts(&held)[0].share - 0.5).abs() < 0.05);
        let elsewhere = drawn(2_000, 2, |random| if random.unit() < 0.5 { 60.0 + 2.0 * random.unit() } else { 0.3 });
        assert_eq!(found(&elsewhere), [], "two peaks alone are no artefact that is known");
    }

    #[test]
    fn what_a_timer_wakes_comes_at_its_ticks() {
        for period_ns in TIMERS_NS {
            let period = period_ns as f64 / 1e6;
            let ticking = drawn(5_000, 3, |random| {
                let waited = (4.0 * random.unit()).floor();
                period * (waited + 0.1 + 0.05 * random.unit())
            });
            let steps = artefacts(&ticking);
            assert_eq!(found(&ticking), [Artefact::Timer(period_ns)]);
            assert!((steps[0].share - 0.75).abs() < 0.03, "{steps:?}: all but those of the first tick");
        }
        // Another period is not the tick of a known timer.
        let other = drawn(5_000, 3, |random| 7.0 * (4.0 * random.unit()).floor() + 0.2 * random.unit());
        assert_eq!(found(&other), []);
    }

    #[test]
    fn few_latencies_show_nothing() {
        let ticking = drawn(ARTEFACT_SAMPLES_MIN - 1, 3, |random| 4.0 * (4.0 * random.unit()).floor() + 0.1);
        assert_eq!(found(&ticking), []);
        assert_eq!(found(&Histogram::latency()), []);
    }

    proptest! {
        #[test]
        fn one_peak_raises_nothing(
            seed in any::<u64>(),
            count in 200u64..8_000,
            scale in -3.0f64..3.0,
            from in 0.0f64..2.0,
            sigma in 0.02f64..2.5,
        ) {
            // Times from a microsecond to a second, and near the steps.
            for ms in [10f64.powf(scale), 40.0 * 2f64.powf(scale / 3.0)] {
                let uniform = drawn(count, seed, |random| ms * (from + random.unit()));
                prop_assert_eq!(found(&uniform), []);
                let from_zero = drawn(count, seed, |random| ms * random.unit());
                prop_assert_eq!(found(&from_zero), []);
                let exponential = drawn(count, seed, |random| -ms * random.unit().max(1e-300).ln());
                prop_assert_eq!(found(&exponential), []);
                let shifted = drawn(count, seed, |random| ms * (from - random.unit().max(1e-300).ln()));
                prop_assert_eq!(found(&shifted), []);
                let lognormal = drawn(count, seed, |random| ms * (sigma * normal(random)).exp());
                prop_assert_eq!(found(&lognormal), []);
            }
        }
    }
}
