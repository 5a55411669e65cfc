//! Value of a figure in one run.

use pubmark_model::figure::Figure;
use pubmark_model::record::RunRecord;

/// The width of a histogram's buckets as a share of the value. No figure is
/// taken to be measured better.
pub const RESOLUTION: f64 = 1.0 / 1_024.0;

/// Value of a figure in one run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observation {
    /// The figure, in its own unit.
    pub value: f64,
    /// The least difference that the measurement can tell, in the same unit.
    pub step: f64,
    /// Largest error due to the clocks of two hosts, in the same unit; 0 if one clock measured it.
    /// It is not noise: all repeats may have it with the same sign.
    pub clock: f64,
    /// The run's repeat, and so its block.
    pub repeat: u32,
    /// The session in which the run was made.
    pub session: u32,
}

impl Observation {
    /// Returns the value of a figure in a run, if the run has it; a percentile needs enough
    /// samples.
    pub(super) fn of(figure: Figure, run: &RunRecord) -> Option<Observation> {
        let value = figure.sampled(run)?;
        let clock = run.widest_clocks().filter(|_| figure.is_one_way()).map_or(0.0, |pair| pair.bound_ns as f64);
        let step = figure.step(run).max(value.abs() * RESOLUTION);
        Some(Observation { value, step, clock, repeat: run.repeat, session: run.session })
    }

    /// Returns the value in another unit.
    pub(crate) fn scaled(&self, change: impl Fn(f64) -> f64) -> Observation {
        let value = change(self.value);
        let [step, clock] = [self.step, self.clock].map(|more| (change(self.value + more) - value).abs());
        Observation { value, step, clock, ..*self }
    }

    /// This less another.
    pub(crate) fn less(&self, floor: &Observation) -> Observation {
        let (step, clock) = (self.step + floor.step, self.clock + floor.clock);
        Observation { value: self.value - floor.value, step, clock, ..*self }
    }

    /// This as a multiple of another, where that is above 0.
    pub(crate) fn over(&self, floor: &Observation) -> Option<Observation> {
        let value = self.value / floor.value;
        let of = |own: f64, floors: f64| own / floor.value + value * floors / floor.value;
        let (step, clock) = (of(self.step, floor.step), of(self.clock, floor.clock));
        (floor.value > 0.0 && value.is_finite()).then_some(Observation { value, step, clock, ..*self })
    }
}
