//! Noise between runs for the simulations.

use pubmark_stats::Random;

/// The resolution of a figure of about 1, like that of a latency's histogram.
pub const STEP: f64 = 0.001;

/// A reproducible source of noise (SplitMix64).
pub struct Noise(pub u64);

impl Noise {
    /// Returns a uniformly distributed number, above 0 and at most 1.
    pub fn uniform(&mut self) -> f64 {
        let mut random = Random(self.0);
        let drawn = random.unit();
        self.0 = random.0;
        drawn + f64::EPSILON / 2.0
    }

    pub fn normal(&mut self) -> f64 {
        (-2.0 * self.uniform().ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// Returns the figures of `count` runs.
    pub fn runs(&mut self, kind: Kind, typical: f64, count: usize) -> Vec<f64> {
        (0..count).map(|_| typical * self.factor(kind)).collect()
    }

    /// Returns the factor of a run's figure to its typical value.
    pub fn factor(&mut self, kind: Kind) -> f64 {
        match kind {
            Kind::Lognormal => (0.05 * self.normal()).exp(),
            // Student's t of 2 degrees of freedom, which has no variance.
            Kind::HeavyBothWays => (0.02 * self.normal() / (-self.uniform().ln()).sqrt()).exp(),
            // Pareto: some runs are much slower, none faster.
            Kind::HeavySlow => 1.0 + 0.02 * (self.uniform().powf(-1.0 / 1.5) - 1.0),
            Kind::Disturbed if self.uniform() < 0.1 => 1.5 * (0.02 * self.normal()).exp(),
            Kind::Disturbed => (0.02 * self.normal()).exp(),
            // Figures between two buckets of a histogram, with little noise.
            Kind::Rounded => ((1000.5 + 0.4 * self.normal()).round()) / 1000.0,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub enum Kind {
    Lognormal,
    HeavyBothWays,
    HeavySlow,
    Disturbed,
    Rounded,
}

/// Returns the largest share of `trials` that a probability of 5 % exceeds in fewer than one of
/// 1,000 simulations (the normal quantile of 0.999).
pub fn five_percent_at_most(trials: usize) -> f64 {
    let n = trials as f64;
    0.05 + 3.09 * (0.05 * 0.95 / n).sqrt() + 0.5 / n
}
