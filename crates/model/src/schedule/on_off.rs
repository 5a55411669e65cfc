//! Periods in which a publisher sends, and pauses between them.

use crate::units::Ns;
use pubmark_stats::Random;

/// The natural logarithm of 2, times 2^32.
const LN_2: u128 = 2_977_044_472;

/// The periods of one publisher, one after another. Their lengths are exponentially distributed.
pub(super) struct OnOff {
    random: Random,
    on_ns: Ns,
    off_ns: Ns,
    /// End of the current period, without pauses, ns.
    end_ns: Ns,
    /// Length of all pauses so far, ns.
    paused_ns: Ns,
}

impl OnOff {
    /// Begins in a period or a pause, as a publisher that has gone on for long.
    pub(super) fn new(on_ns: Ns, off_ns: Ns, random: Random) -> OnOff {
        let mut periods = OnOff { random, on_ns, off_ns, end_ns: 0, paused_ns: 0 };
        let drawn = (u128::from(periods.random.bits()) * u128::from(on_ns.saturating_add(off_ns))) >> 64;
        if drawn >= u128::from(on_ns) {
            periods.paused_ns = exponential(periods.random.bits(), off_ns);
        }
        periods.end_ns = exponential(periods.random.bits(), on_ns);
        periods
    }

    /// Returns the instant, ns from the start, by which it has sent for `sending_ns`. Never goes back.
    pub(super) fn at(&mut self, sending_ns: Ns) -> Ns {
        while sending_ns >= self.end_ns {
            self.paused_ns = self.paused_ns.saturating_add(exponential(self.random.bits(), self.off_ns));
            self.end_ns = self.end_ns.saturating_add(exponential(self.random.bits(), self.on_ns).max(1));
        }
        sending_ns.saturating_add(self.paused_ns)
    }
}

/// Returns the exponentially distributed length of this mean that a random number stands for. It has no floating point,
/// so that all machines find the same.
fn exponential(random: u64, mean_ns: Ns) -> Ns {
    // -log2 of the number as a part of 2^64, in 2^-32: its whole part, then a digit for each squaring.
    let zeros = (random | 1).leading_zeros();
    let mut mantissa = (random | 1) << zeros;
    let mut fraction = 0_u64;
    for _ in 0..32 {
        let square = (u128::from(mantissa) * u128::from(mantissa)) >> 63;
        let is_two = square >> 64;
        fraction = fraction << 1 | is_two as u64;
        mantissa = (square >> is_two) as u64;
    }
    let logarithm = (u64::from(zeros + 1) << 32) - fraction;
    ((u128::from(logarithm) * LN_2 * u128::from(mean_ns)) >> 64) as Ns
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::SECOND;

    #[test]
    fn lengths_are_exponential() {
        let mut random = Random(5);
        for bits in (0..10_000).map(|_| random.bits()).chain([0, 1, u64::MAX, 1 << 63]) {
            let wanted = -(((bits | 1) as f64) / 2_f64.powi(64)).ln() * 1e9;
            let found = exponential(bits, SECOND) as f64;
            assert!((found - wanted).abs() <= 2.0 + wanted * 1e-10, "{bits:x}: {found} {wanted}");
        }
        let drawn: Vec<f64> = (0..100_000).map(|_| exponential(random.bits(), SECOND) as f64 / 1e9).collect();
        let mean = drawn.iter().sum::<f64>() / drawn.len() as f64;
        let variance = drawn.iter().map(|length| (length - mean).powi(2)).sum::<f64>() / drawn.len() as f64;
        assert!((mean - 1.0).abs() < 0.015 && (variance - 1.0).abs() < 0.03, "{mean} {variance}");
    }
}
