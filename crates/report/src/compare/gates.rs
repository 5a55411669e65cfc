//! Gates as they are typed: what makes a command fail, and what it requires.

use super::bound::BoundGate;
use super::gate::{Gate, GateError};
use crate::text::clean;
use pubmark_model::objective::{ObjectiveError, ObjectiveTerm, Relation};

/// Longest gate that is repeated, characters.
const GATE_CHARS: usize = 200;

/// All gates of a command.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Gates {
    /// What may not become of a figure beside its baseline.
    pub changes: Vec<Gate>,
    /// What has to hold by itself.
    pub bounds: Vec<BoundGate>,
}

/// Why a text is no gate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GatesError {
    /// It is read as a change, and is none.
    #[error("--fail-on {0}")]
    Change(#[from] GateError),
    /// It is read as a bound, and is none.
    #[error("{flag} {source}")]
    Bound {
        /// The flag.
        flag: &'static str,
        /// What is wrong with it.
        source: ObjectiveError,
    },
    /// It says when all is well.
    #[error("--fail-on `{gate}` would fail where all is well: what has to hold is written --require '{gate}'")]
    Wish {
        /// As typed, harmless.
        gate: String,
    },
    /// There is nothing to hold it against.
    #[error(
        "--fail-on `{gate}` is about a change, and there is no baseline: write a bound, such as 'p99 > 5ms', or \
         compare two results (`pubmark ab`, `pubmark compare`)"
    )]
    NoBaseline {
        /// As typed, harmless.
        gate: String,
    },
}

impl Gates {
    /// Reads what was typed behind `--fail-on` and `--require`. Without a baseline
    /// there are bounds alone.
    ///
    /// # Errors
    /// Where one cannot be understood: which, and what would be.
    pub fn parse(fail_on: &[String], require: &[String], has_baseline: bool) -> Result<Gates, GatesError> {
        let mut gates = Gates::default();
        for text in fail_on.iter().flat_map(|text| text.split(',')).map(str::trim) {
            let gate = clean(text, GATE_CHARS);
            match (is_bound(text), has_baseline) {
                (false, true) => gates.changes.extend(Gate::parse_all(text)?),
                (false, false) if is_change(text) => return Err(GatesError::NoBaseline { gate }),
                _ => gates.bounds.push(broken_by(text, gate)?),
            }
        }
        for text in require {
            let terms = ObjectiveTerm::parse_all(text);
            let terms = terms.map_err(|source| GatesError::Bound { flag: "--require", source })?;
            gates.bounds.extend(terms.into_iter().map(BoundGate::new));
        }
        Ok(gates)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.bounds.is_empty()
    }
}

/// What is behind the sign of a gate.
fn threshold(text: &str) -> &str {
    text.find(['<', '>', '=']).map_or("", |at| text[at..].trim_start_matches(['<', '>', '=', ' ']))
}

/// A sign before the number, or per cent: as much more or less than before.
fn is_change(text: &str) -> bool {
    threshold(text).starts_with(['+', '-'])
}

/// Whether a gate has a bound of its own: one with a unit, or a share that a figure
/// may not fall below.
fn is_bound(text: &str) -> bool {
    let threshold = threshold(text);
    let has_unit = threshold.chars().any(char::is_alphabetic) && threshold.starts_with(|c: char| c.is_ascii_digit());
    let is_equal =
        text.find(['<', '>', '=']).is_some_and(|at| text[at..].starts_with('=') || text[at + 1..].starts_with('='));
    let is_share =
        text.contains('<') && threshold.ends_with('%') && threshold.starts_with(|c: char| c.is_ascii_digit());
    has_unit || is_equal || is_share
}

/// The bound that is broken where this holds.
fn broken_by(text: &str, gate: String) -> Result<BoundGate, GatesError> {
    let terms = ObjectiveTerm::parse_all(text);
    let terms = terms.map_err(|source| GatesError::Bound { flag: "--fail-on", source })?;
    let [term] = terms.as_slice() else { return Err(GatesError::Wish { gate }) };
    let higher = matches!(term.relation(), Relation::Above | Relation::AtLeast);
    match term.otherwise() {
        Some(otherwise) if higher != term.higher_is_better() => Ok(BoundGate { text: gate, term: otherwise }),
        _ => Err(GatesError::Wish { gate }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(fail_on: &str, require: &str, has_baseline: bool) -> Result<Gates, String> {
        let list = |text: &str| if text.is_empty() { Vec::new() } else { vec![text.to_owned()] };
        Gates::parse(&list(fail_on), &list(require), has_baseline).map_err(|error| error.to_string())
    }

    #[test]
    fn a_gate_is_a_change_or_a_bound_by_how_it_is_written() {
        let gates =
            parse("p99 > +10%, p50 > 5%, lost > 0, p99 > 5ms, delivered < 99.9%, memory > 500MB", "", true).unwrap();
        let changes: Vec<&str> = gates.changes.iter().map(|gate| gate.text.as_str()).collect();
        assert_eq!(changes, ["p99 > +10%", "p50 > 5%", "lost > 0"]);
        let bounds: Vec<(&str, &str)> =
            gates.bounds.iter().map(|bound| (bound.text.as_str(), bound.term.text())).collect();
        let wanted = [
            ("p99 > 5ms", "p99 <= 5ms"),
            ("delivered < 99.9%", "delivered >= 99.9%"),
            ("memory > 500MB", "memory <= 500MB"),
        ];
        assert_eq!(bounds, wanted);
    }

    #[test]
    fn what_is_required_may_be_several_things_and_a_range() {
        let gates = parse("", "p99 < 5ms and lost = 0, acked_lost = 0, lost >= 6.3% and lost <= 6.6%", false).unwrap();
        let bounds: Vec<&str> = gates.bounds.iter().map(|bound| bound.text.as_str()).collect();
        assert_eq!(bounds, ["p99 < 5ms", "lost = 0", "acked_lost = 0", "lost >= 6.3%", "lost <= 6.6%"]);
    }

    #[test]
    fn without_a_baseline_there_are_bounds_alone() {
        assert_eq!(parse("lost > 0", "", false).unwrap().bounds[0].term.text(), "lost <= 0");
        for change in ["p99 > +10%", "delivered < -2%"] {
            let error = parse(change, "", false).unwrap_err();
            assert!(error.contains("there is no baseline"), "{error}");
        }
    }

    #[test]
    fn what_would_fail_where_all_is_well_is_refused_with_the_way_out() {
        for wish in ["p99 < 5ms", "lost = 0", "acked_lost == 0", "delivered >= 99.9%"] {
            let error = parse(wish, "", true).unwrap_err();
            assert!(error.contains(&format!("--require '{wish}'")), "{error}");
        }
        let error = parse("", "p98 < 5ms", true).unwrap_err();
        assert!(error.contains("--require `p98 < 5ms`") && error.contains("did you mean"), "{error}");
    }
}
