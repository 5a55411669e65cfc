//! Evaluation of gates.

use super::comparison::{ChangeOutcome, Comparison, FigureChange, range};
use super::figure::signed_percent;
use super::gate::{Gate, GateResult, Threshold, is_of_flow};
use crate::figures::shown;
use pubmark_stats::Scale;

impl Gate {
    pub(super) fn is_beyond(&self, moved: f64) -> bool {
        let (Threshold::Percent(bound) | Threshold::Amount(bound)) = self.threshold;
        if self.rise { moved > bound } else { moved < bound }
    }

    /// True if a change, should it be real, is beyond the limit.
    fn goes_too_far(&self, change: &FigureChange) -> bool {
        let moved = match self.threshold {
            Threshold::Percent(_) => change.percent(),
            Threshold::Amount(_) => change.a.zip(change.b).map(|(a, b)| b.value - a.value),
        };
        moved.is_some_and(|moved| self.is_beyond(moved))
    }

    /// True if the interval of a change reaches beyond the limit.
    fn may_go_too_far(&self, change: &FigureChange) -> bool {
        let Some(interval) = change.interval_of_change() else { return true };
        let end = if self.rise { interval.hi } else { interval.lo };
        let a = change.a.map_or(0.0, |a| a.value);
        let moved = match (self.threshold, change.scale()) {
            (Threshold::Percent(_), Some(Scale::Ratio)) => (end - 1.0) * 100.0,
            (Threshold::Amount(_), Some(Scale::Ratio)) => (end - 1.0) * a,
            // Relative to 0, any change is infinite.
            (Threshold::Percent(_), _) if a == 0.0 => {
                if end == 0.0 {
                    0.0
                } else {
                    end * f64::INFINITY
                }
            }
            (Threshold::Percent(_), _) => end / a.abs() * 100.0,
            (Threshold::Amount(_), _) => end,
        };
        self.is_beyond(moved)
    }

    /// Evaluates the gate on a comparison.
    pub(super) fn result(&self, comparison: &Comparison) -> GateResult {
        let mut result = GateResult::new(&self.text);
        let same = comparison.same.iter().filter(|cell| is_of_flow(self.flow.as_deref(), &cell.axes));
        for cell in same {
            for change in cell.changes.iter().filter(|change| change.column == self.figure) {
                result.comparisons += 1;
                match change.outcome {
                    ChangeOutcome::Undecided => result.undecided.push(format!("{} ({})", cell.label, change.why)),
                    ChangeOutcome::Better | ChangeOutcome::Worse | ChangeOutcome::Differs
                        if self.goes_too_far(change) =>
                    {
                        let percent = change.percent().map(signed_percent).unwrap_or_default();
                        result.failed.push(format!("{}: {percent}", cell.label));
                    }
                    _ if self.may_go_too_far(change) => {
                        result.too_noisy.push(format!("{}: {}", cell.label, unseen(change)));
                    }
                    _ => {}
                }
            }
        }
        if result.comparisons == 0 {
            let flow = self.flow.as_ref().map_or(String::new(), |flow| format!(" of the flow `{flow}`"));
            result.undecided.push(format!("no cell of both has {}{flow}", self.figure.short_name()));
        }
        result.settled()
    }
}

/// Describes which change a comparison could not have seen.
fn unseen(change: &FigureChange) -> String {
    let interval = change.interval_of_change().map(|interval| range(change, interval)).unwrap_or_default();
    match change.smallest {
        Some(smallest) if change.scale() == Some(Scale::Ratio) => {
            format!("{interval}; the smallest rise it would have found: {}", signed_percent((smallest - 1.0) * 100.0))
        }
        Some(smallest) => {
            format!("{interval}; the smallest rise it would have found: {}", shown(change.column, smallest))
        }
        None => interval,
    }
}
