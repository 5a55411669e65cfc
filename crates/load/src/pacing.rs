//! Decides how a publisher's loop waits for a due time: asleep, awake, or asleep until
//! shortly before and awake for the rest. The time is passed in; the caller sleeps and
//! reads the clock.

use pubmark_model::protocol::PacingFigures;
use pubmark_model::units::Ns;
use pubmark_model::workload::{Pacing, Workload};

/// Margin of a loop that has not woken up yet, ns: a typical wake-up delay on a virtual
/// machine.
const FIRST: Ns = 60_000;
/// Longest margin, ns. If a wake-up takes longer, something else ran.
const LONGEST: Ns = 200_000;
/// Shortest margin, ns.
const SHORTEST: Ns = 2_000;
/// One in this many wake-ups may be later than the margin.
const LATE_ONE_IN: Ns = 100;
/// Growth of the margin after a late wake-up, ns. After a wake-up in time it shrinks by a
/// [`LATE_ONE_IN`]th of this, so that it settles where one in [`LATE_ONE_IN`] is late.
const STEP: Ns = 2_000;

/// Computes when a loop has to wake up, and learns from its wake-up delays.
///
/// The margin follows the 99th percentile of the wake-up delay by stochastic
/// approximation: up by a step for each wake-up that took longer, down by a hundredth of
/// a step for each that did not (Robbins and Monro, *A stochastic approximation method*,
/// Annals of Mathematical Statistics 22, 1951).
#[derive(Debug)]
pub struct Pacer {
    pacing: Pacing,
    /// 99th percentile of the wake-up delay, ns times [`LATE_ONE_IN`].
    wake: Ns,
    /// Longest margin that the budget allows, ns.
    most_ns: Ns,
    budget_cores: f64,
    /// Time awake before due times within the window, ns.
    spent_ns: Ns,
    from_ns: Ns,
}

/// Returns the longest margin, in ns, of one of a workload's publishers that may keep
/// `budget_cores` processors awake before its due times.
pub fn longest_margin_ns(workload: &Workload, budget_cores: f64) -> Ns {
    let per_s = workload.rate.profile().map_or(0.0, |profile| profile.fastest_per_s());
    if per_s > 0.0 { ((budget_cores / per_s * 1e9) as Ns).min(LONGEST) } else { 0 }
}

impl Pacer {
    /// Makes a pacer for a loop that runs `publishers` of a workload's publishers and may
    /// keep `budget_cores` processors awake before their due times. Its cost is counted
    /// from `from_ns` on.
    pub fn new(workload: &Workload, publishers: usize, budget_cores: f64, from_ns: Ns) -> Pacer {
        Pacer {
            pacing: workload.pacing,
            wake: FIRST * LATE_ONE_IN,
            most_ns: longest_margin_ns(workload, budget_cores / publishers.max(1) as f64),
            budget_cores,
            spent_ns: 0,
            from_ns,
        }
    }

    /// Returns how long before a due time the loop wakes up, ns.
    #[inline]
    pub fn margin_ns(&self) -> Ns {
        match self.pacing {
            Pacing::Sleep => 0,
            Pacing::Hybrid => (self.wake / LATE_ONE_IN).min(self.most_ns),
            Pacing::Spin => Ns::MAX,
        }
    }

    /// Returns when to wake up for what is due at `due_ns`. The loop sleeps until then
    /// and watches the clock from then on.
    #[inline]
    pub fn alarm(&self, due_ns: Ns) -> Ns {
        due_ns.saturating_sub(self.margin_ns())
    }

    /// Learns from a wake-up that was planned for `alarm_ns` and came at `woke_ns`.
    #[inline]
    pub fn woke(&mut self, alarm_ns: Ns, woke_ns: Ns) {
        if woke_ns.saturating_sub(alarm_ns) > self.wake / LATE_ONE_IN {
            self.wake = (self.wake + STEP * (LATE_ONE_IN - 1)).min(LONGEST * LATE_ONE_IN);
        } else {
            self.wake = self.wake.saturating_sub(STEP).max(SHORTEST * LATE_ONE_IN);
        }
    }

    /// Counts the time in which the loop watched the clock.
    #[inline]
    pub fn watched(&mut self, from_ns: Ns, to_ns: Ns) {
        if from_ns >= self.from_ns {
            self.spent_ns += to_ns.saturating_sub(from_ns);
        }
    }

    /// Returns the figures for the record, for a window of this length.
    pub fn figures(&self, window_ns: Ns) -> PacingFigures {
        PacingFigures {
            budget_cores: self.budget_cores,
            spent_cores: self.spent_ns as f64 / window_ns.max(1) as f64,
            margin_ns: if self.pacing == Pacing::Spin { 0 } else { self.margin_ns() },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pubmark_stats::Random;

    fn pacer(pacing: &str, rate: &str, budget_cores: f64) -> Pacer {
        Pacer::new(&Workload::of([("pacing", pacing), ("rate", rate)]).unwrap(), 1, budget_cores, 1_000)
    }

    #[test]
    fn the_margin_follows_the_99th_percentile_of_wake_ups() {
        for longest in [20_000, 90_000, 150_000] {
            let mut pacer = pacer("hybrid", "1000", 1.0);
            let mut random = Random(7);
            let (mut late, mut sum) = (0, 0);
            for turn in 0..100_000 {
                let error = (random.unit() * longest as f64) as Ns;
                if turn >= 20_000 {
                    late += u32::from(error > pacer.margin_ns());
                    sum += pacer.margin_ns();
                }
                pacer.woke(1_000_000, 1_000_000 + error);
            }
            let mean = sum as f64 / 80_000.0;
            assert!((0.95..1.05).contains(&(mean / (0.99 * longest as f64))), "{longest}: {mean}");
            assert!((600..1_200).contains(&late), "{longest}: {late} of 80,000 wake-ups were later than the margin");
        }
    }

    #[test]
    fn a_budget_is_kept_whatever_waking_up_takes() {
        let mut pacer = pacer("hybrid", "10000", 0.25);
        for _ in 0..1_000 {
            pacer.woke(0, 190_000);
        }
        assert_eq!(pacer.margin_ns(), 25_000, "a quarter of a processor, 10,000 times a second");
        assert_eq!(pacer.alarm(100_000), 75_000);
        assert_eq!(pacer.alarm(10), 0);
    }

    #[test]
    fn who_sleeps_has_no_margin_and_who_spins_no_sleep() {
        let (sleeping, spinning) = (pacer("sleep", "1000", 1.0), pacer("spin", "1000", 1.0));
        assert_eq!((sleeping.alarm(5_000), spinning.alarm(5_000)), (5_000, 0));
    }

    #[test]
    fn what_is_spent_before_the_window_does_not_count() {
        let mut pacer = pacer("hybrid", "1000", 0.5);
        pacer.watched(900, 990);
        pacer.watched(1_000, 1_250);
        assert_eq!(pacer.figures(1_000), PacingFigures { budget_cores: 0.5, spent_cores: 0.25, margin_ns: 60_000 });
    }
}
