//! Gates: what makes a comparison fail.

use super::figure::named;
use crate::figures::Column;
use crate::text::clean;
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
}
