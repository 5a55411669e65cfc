//! Gates: what makes a comparison fail.

use crate::text::clean;
use crate::words::{BROKEN, HELD, OPEN};
use pubmark_model::figure::{Figure, FigureNameError};
use pubmark_model::flow::{FLOW, split_name};
use pubmark_model::objective::read_bound;
use serde::Serialize;
use serde_json::{Map, Value};

/// Longest gate that is read, characters.
const GATE_CHARS: usize = 200;

/// A limit for the change of a figure: `p99 > +5%`.
#[derive(Clone, Debug, PartialEq)]
pub struct Gate {
    /// Text as typed, cleaned.
    pub text: String,
    /// The flow that it is about; without one it is about every cell.
    pub flow: Option<String>,
    /// The figure.
    pub figure: Figure,
    /// True if the figure must not rise; otherwise it must not fall.
    pub rise: bool,
    /// By more than this.
    pub threshold: Threshold,
}

/// Largest allowed change: at least 0 for a rise, at most 0 for a fall.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Threshold {
    /// Per cent of A.
    Percent(f64),
    /// In the unit of the figure.
    Amount(f64),
}

/// Outcome of a gate. Of several, the greatest counts.
#[derive(Serialize, Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum GateOutcome {
    /// No figure that it looks at has gone too far: each one's interval lies
    /// within the threshold.
    Passed = 0,
    /// No comparison is shown to be beyond the limit, but the interval of one reaches beyond it.
    TooNoisy = 1,
    /// No comparison is shown to be beyond the limit, and some are open.
    Undecided = 2,
    /// A comparison is beyond the limit.
    Failed = 3,
}

/// Result of a gate.
#[derive(Serialize, Clone, Debug, PartialEq)]
pub struct GateResult {
    /// The gate as typed.
    pub gate: String,
    /// Outcome.
    pub outcome: GateOutcome,
    /// Number of comparisons.
    pub comparisons: usize,
    /// Comparisons beyond the limit: label of the cell, and the change.
    pub failed: Vec<String>,
    /// Comparisons whose change could not have been seen: label of the cell, the interval, and the
    /// smallest change that would have been found.
    pub too_noisy: Vec<String>,
    /// Open comparisons: label of the cell, and the reason.
    pub undecided: Vec<String>,
}

impl GateResult {
    pub(super) fn new(gate: &str) -> GateResult {
        GateResult {
            gate: gate.to_owned(),
            outcome: GateOutcome::Passed,
            comparisons: 0,
            failed: Vec::new(),
            too_noisy: Vec::new(),
            undecided: Vec::new(),
        }
    }

    /// Returns the result in one line.
    pub fn sentence(&self) -> String {
        let (word, what) = match self.outcome {
            GateOutcome::Passed => (HELD, &self.failed),
            GateOutcome::Failed => (BROKEN, &self.failed),
            GateOutcome::TooNoisy => (OPEN, &self.too_noisy),
            GateOutcome::Undecided => (OPEN, &self.undecided),
        };
        let more = if what.len() > 1 { format!("; … and {} more", what.len() - 1) } else { String::new() };
        let first = what.first().map(|what| format!(": {what}{more}")).unwrap_or_default();
        format!("`{}` {word}{first}", self.gate)
    }

    /// Returns the result with the outcome that follows from its comparisons.
    pub(super) fn settled(mut self) -> GateResult {
        self.outcome = if !self.failed.is_empty() {
            GateOutcome::Failed
        } else if !self.undecided.is_empty() {
            GateOutcome::Undecided
        } else if !self.too_noisy.is_empty() {
            GateOutcome::TooNoisy
        } else {
            GateOutcome::Passed
        };
        self
    }
}

/// Why a text is no gate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GateError {
    /// It does not have the form of a gate.
    #[error("`{gate}`: {what}; write FIGURE > +CHANGE or FIGURE < -CHANGE, as in 'p99 > +5%' or 'p99 > +2ms'")]
    Form {
        /// The gate as typed, harmless.
        gate: String,
        /// Description of the problem.
        what: String,
    },
    /// It does not start with the name of a figure.
    #[error("`{gate}`: {source}")]
    Figure {
        /// The gate as typed, harmless.
        gate: String,
        /// Description of the problem with the name.
        source: FigureNameError,
    },
}

/// Splits off the flow that a gate names: `p99(alarms) > +5%` is `p99 > +5%` of `alarms`.
fn split_flow(gate: &str) -> (String, Option<String>) {
    let (name, rest) = gate.split_at(gate.find(['<', '>', '=']).unwrap_or(gate.len()));
    match split_name(name) {
        (figure, Some(flow)) => (format!("{figure}{rest}"), Some(flow.to_owned())),
        (_, None) => (gate.to_owned(), None),
    }
}

/// True if a cell with these values on axes has the flow that a gate names.
pub(super) fn is_of_flow(flow: Option<&str>, axes: &Map<String, Value>) -> bool {
    flow.is_none_or(|flow| axes.get(FLOW).is_some_and(|value| value == flow))
}

impl Gate {
    /// Reads a gate.
    ///
    /// # Errors
    /// If it cannot be understood: why, and what could be written.
    pub fn parse(text: &str) -> Result<Gate, GateError> {
        let text = text.trim();
        let shown = clean(text, GATE_CHARS);
        let (plain, flow) = split_flow(text);
        let text = plain.as_str();
        let wrong = |what: String| GateError::Form { gate: shown.clone(), what };
        let at = text.find(['>', '<']).ok_or_else(|| wrong("there is neither > nor <".into()))?;
        let (name, rest) = text.split_at(at);
        let rise = rest.starts_with('>');
        let figure = Figure::named(name).map_err(|source| GateError::Figure { gate: shown.clone(), source })?;
        if !figure.is_comparable() {
            return Err(wrong(format!("{} is a figure of whole cells and has no runs to compare", figure.key())));
        }
        let limit = rest[1..].trim();
        let sign = if limit.starts_with('-') { -1.0 } else { 1.0 };
        let change = limit.trim_start_matches(['+', '-']).trim_start();
        if rise != (sign > 0.0) {
            return Err(wrong(match rise {
                true => "with > the change is a rise, +0 or more".into(),
                false => "with < the change is a fall, -0 or less".into(),
            }));
        }
        let is_plain = |number: &&str| number.chars().all(|c| c.is_ascii_digit() || c == '.');
        let percent = change.strip_suffix('%').map(|number| number.trim_end());
        let threshold = match percent {
            Some(number) => {
                let value = Some(number).filter(is_plain).and_then(|number| number.parse::<f64>().ok());
                Threshold::Percent(sign * value.ok_or_else(|| wrong("the percentage is not a number".into()))?)
            }
            None => {
                let (_, value) = read_bound(figure, change)
                    .map_err(|wanted| wrong(format!("the change is neither a percentage nor {wanted}")))?;
                Threshold::Amount(sign * value)
            }
        };
        Ok(Gate { text: shown, flow, figure, rise, threshold })
    }
}
