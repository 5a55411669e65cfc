//! Error of a figure due to the clocks of two hosts: an interval that repeats do not narrow.

use super::reading::Observation;
use pubmark_stats::{Interval, Scale};

/// Largest distance of the true value from the measured ones, to each side, due to two clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct ClockBlur {
    /// In the figure's unit.
    pub amount: f64,
    /// Error as a fraction of the figure.
    share: f64,
}

impl ClockBlur {
    /// Returns the error of a cell: the largest of its runs.
    pub(crate) fn of(readings: &[Observation]) -> ClockBlur {
        let largest = |each: fn(&Observation) -> f64| readings.iter().map(each).fold(0.0, f64::max);
        let share = |reading: &Observation| if reading.clock > 0.0 { reading.clock / reading.value } else { 0.0 };
        ClockBlur { amount: largest(|reading| reading.clock), share: largest(share) }
    }

    /// True if one clock measured everything.
    pub(crate) fn is_none(self) -> bool {
        self.amount == 0.0
    }

    /// The interval of `self`'s figure over the other's, or less the other's, with
    /// what clocks may add to either.
    pub(crate) fn widen(self, other: ClockBlur, scale: Scale, Interval { lo, hi }: Interval) -> Interval {
        match scale {
            Scale::Ratio => Interval {
                lo: lo * (1.0 - self.share).max(0.0) / (1.0 + other.share),
                hi: if other.share < 1.0 { hi * (1.0 + self.share) / (1.0 - other.share) } else { f64::INFINITY },
            },
            Scale::Difference => {
                let both = self.amount + other.amount;
                Interval { lo: lo - both, hi: hi + both }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_widened_by_what_either_clock_may_be_wrong_by() {
        let readings = |each: &[(f64, f64)]| -> Vec<Observation> {
            each.iter()
                .map(|(value, clock)| Observation { value: *value, clock: *clock, step: 1.0, repeat: 1, session: 1 })
                .collect()
        };
        // Half of 100 is worse than a tenth of 1,000.
        let (own, sure) =
            (ClockBlur::of(&readings(&[(100.0, 50.0), (1_000.0, 100.0)])), ClockBlur::of(&readings(&[(7.0, 0.0)])));
        assert_eq!(own, ClockBlur { amount: 100.0, share: 0.5 });
        assert!(sure.is_none() && ClockBlur::of(&[]).is_none());
        let given = Interval { lo: 1.8, hi: 2.0 };
        assert_eq!(sure.widen(sure, Scale::Ratio, given), given);
        assert_eq!(own.widen(sure, Scale::Ratio, given), Interval { lo: 0.9, hi: 3.0 });
        assert_eq!(sure.widen(own, Scale::Ratio, given), Interval { lo: 1.8 / 1.5, hi: 4.0 });
        assert_eq!(own.widen(own, Scale::Difference, given), Interval { lo: -198.2, hi: 202.0 });
        let nothing_known = ClockBlur { amount: 9.0, share: 2.0 };
        assert_eq!(nothing_known.widen(nothing_known, Scale::Ratio, given), Interval { lo: 0.0, hi: f64::INFINITY });
    }
}
