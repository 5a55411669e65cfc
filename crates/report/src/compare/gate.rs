//! Gates: what makes a comparison fail.

use super::figure::{named, short_name, shown, signed_percent};
use super::page::range;
use super::{Change, Comparison, Outcome};
use crate::figures::Column;
use crate::text::clean;
use pubmark_stats::Scale;
use serde::Serialize;

/// Longest gate that is read, characters.
const GATE_CHARS: usize = 200;

/// What a figure may not do: `p99 > +5%`.
#[derive(Clone, Debug, PartialEq)]
pub struct Gate {
    /// As typed, harmless.
    pub text: String,
    /// The figure.
    pub column: Column,
    /// Whether it may not rise; else it may not fall.
    pub rise: bool,
    /// By more than this.
    pub threshold: Threshold,
}

/// How far a figure may go; not below 0 for a rise, not above for a fall.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Threshold {
    /// Per cent of A.
    Percent(f64),
    /// Amount, in the unit of the figure's column.
    Amount(f64),
}

/// What became of a gate. The greater one counts.
#[derive(Serialize, Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum GateOutcome {
    /// No figure that it looks at has gone too far: each one's interval lies
    /// within the threshold.
    Passed = 0,
    /// None is shown to have, and one may have: its interval reaches beyond.
    TooNoisy = 1,
    /// None is shown to have, and of some nothing can be said.
    Undecided = 2,
    /// One has.
    Failed = 3,
}

/// What became of a gate.
#[derive(Serialize, Clone, Debug, PartialEq)]
pub struct GateResult {
    /// The gate as typed.
    pub gate: String,
    /// What became of it.
    pub outcome: GateOutcome,
    /// How many comparisons it looks at.
    pub comparisons: usize,
    /// Where it failed: label of the cell, and the change.
    pub failed: Vec<String>,
    /// Where it may have gone too far without being seen: label of the cell,
    /// the interval, and the smallest change that would have been found.
    pub too_noisy: Vec<String>,
    /// Where nothing can be said: label of the cell, and why.
    pub undecided: Vec<String>,
}

impl Gate {
    /// Reads gates, several with commas between them.
    ///
    /// # Errors
    /// Where one cannot be understood: which, and what would be.
    pub fn parse_all(text: &str) -> Result<Vec<Gate>, String> {
        text.split(',').map(Gate::parse).collect()
    }

    fn parse(text: &str) -> Result<Gate, String> {
        let text = text.trim();
        let shown = clean(text, GATE_CHARS);
        let form = "write FIGURE > +PERCENT% or FIGURE < -PERCENT%, as in 'p99 > +5%'";
        let wrong = |what: &str| format!("`{shown}`: {what}; {form}");
        let at = text.find(['>', '<']).ok_or_else(|| wrong("there is neither > nor <"))?;
        let (name, rest) = text.split_at(at);
        let rise = rest.starts_with('>');
        let column = named(name.trim()).map_err(|error| format!("`{shown}`: {error}"))?;
        let limit = rest[1..].trim();
        let (number, is_percent) = match limit.strip_suffix('%') {
            Some(number) => (number.trim(), true),
            None => (limit, false),
        };
        let is_plain = number.chars().all(|c| c.is_ascii_digit() || matches!(c, '+' | '-' | '.'));
        let value = number.parse::<f64>().ok().filter(|value| is_plain && value.is_finite());
        let value = value.ok_or_else(|| wrong("the threshold is no number"))?;
        if rise && value < 0.0 || !rise && value > 0.0 {
            return Err(match rise {
                true => wrong("with > the threshold is a rise, 0 or more"),
                false => wrong("with < the threshold is a fall, 0 or less"),
            });
        }
        let threshold = if is_percent { Threshold::Percent(value) } else { Threshold::Amount(value) };
        Ok(Gate { text: shown, column, rise, threshold })
    }

    fn is_beyond(&self, moved: f64) -> bool {
        let (Threshold::Percent(bound) | Threshold::Amount(bound)) = self.threshold;
        if self.rise { moved > bound } else { moved < bound }
    }

    /// Whether a change, if it is one, goes too far.
    fn goes_too_far(&self, change: &Change) -> bool {
        let moved = match self.threshold {
            Threshold::Percent(_) => change.percent(),
            Threshold::Amount(_) => change.a.zip(change.b).map(|(a, b)| b.value - a.value),
        };
        moved.is_some_and(|moved| self.is_beyond(moved))
    }

    /// Whether its interval reaches beyond the threshold: it may have gone too far.
    fn may_go_too_far(&self, change: &Change) -> bool {
        let Some(interval) = change.interval_of_change() else { return true };
        let end = if self.rise { interval.hi } else { interval.lo };
        let a = change.a.map_or(0.0, |a| a.value);
        let moved = match (self.threshold, change.scale()) {
            (Threshold::Percent(_), Some(Scale::Ratio)) => (end - 1.0) * 100.0,
            (Threshold::Amount(_), Some(Scale::Ratio)) => (end - 1.0) * a,
            // Of nothing, anything is infinitely more.
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

    /// What became of it.
    pub(super) fn result(&self, comparison: &Comparison) -> GateResult {
        let mut result = GateResult {
            gate: self.text.clone(),
            outcome: GateOutcome::Passed,
            comparisons: 0,
            failed: Vec::new(),
            too_noisy: Vec::new(),
            undecided: Vec::new(),
        };
        for cell in &comparison.same {
            for change in cell.changes.iter().filter(|change| change.column == self.column) {
                result.comparisons += 1;
                match change.outcome {
                    Outcome::Undecided => result.undecided.push(format!("{} ({})", cell.label, change.why)),
                    Outcome::Better | Outcome::Worse | Outcome::Differs if self.goes_too_far(change) => {
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
            result.undecided.push(format!("no cell of both has {}", short_name(self.column)));
        }
        if !result.failed.is_empty() {
            result.outcome = GateOutcome::Failed;
        } else if !result.undecided.is_empty() {
            result.outcome = GateOutcome::Undecided;
        } else if !result.too_noisy.is_empty() {
            result.outcome = GateOutcome::TooNoisy;
        }
        result
    }
}

/// What a comparison could not have seen.
fn unseen(change: &Change) -> String {
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
