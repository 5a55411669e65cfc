//! Gates as they are typed: what makes a command fail, and what it requires.

use super::bound::BoundGate;
use super::gate::{Gate, GateError};
use crate::text::clean;
use pubmark_model::flow::{ALL, StudyFlow};
use pubmark_model::objective::{ObjectiveError, ObjectiveTerm, Relation};

/// Longest gate that is repeated, characters.
const GATE_CHARS: usize = 200;

/// The gates of a command.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Gates {
    /// Limits for changes against a baseline.
    pub changes: Vec<Gate>,
    /// Bounds that hold for a result by itself.
    pub bounds: Vec<BoundGate>,
}

/// Why a text is no gate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GatesError {
    /// It was read as a change, and is not one.
    #[error("--fail-on {0}")]
    Change(#[from] GateError),
    /// It was read as a bound, and is not one.
    #[error("{flag} {source}")]
    Bound {
        /// The flag.
        flag: &'static str,
        /// Description of the problem.
        source: ObjectiveError,
    },
    /// It is a change without a sign.
    #[error("--fail-on {source}; a change against the baseline has a sign: '{change}'")]
    Unsigned {
        /// Description of the problem as a bound.
        source: ObjectiveError,
        /// The change as it should be written.
        change: String,
    },
    /// The gate would fail on good values.
    #[error("--fail-on `{gate}` would fail where all is well: what has to hold is written --require '{gate}'")]
    Wish {
        /// Text as typed, cleaned.
        gate: String,
    },
    /// It names a flow that nobody plays.
    #[error("`{gate}`: there is no flow `{flow}`; {known}")]
    Flow {
        /// Text as typed, cleaned.
        gate: String,
        /// The flow as typed, cleaned.
        flow: String,
        /// The flows that there are.
        known: String,
    },
    /// There is nothing to hold it against.
    #[error(
        "--fail-on `{gate}` is about a change, and there is no baseline: write a bound, such as 'p99 > 5ms', or \
         compare two results (`pubmark ab`, `pubmark compare`)"
    )]
    NoBaseline {
        /// Text as typed, cleaned.
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
            match (is_change(text), has_baseline) {
                (true, true) => gates.changes.push(Gate::parse(text)?),
                (true, false) => return Err(GatesError::NoBaseline { gate }),
                (false, _) => gates.bounds.push(broken_by(text, gate, has_baseline)?),
            }
        }
        for text in require {
            let terms = ObjectiveTerm::parse_all(text);
            let terms = terms.map_err(|source| GatesError::Bound { flag: "--require", source })?;
            gates.bounds.extend(terms.into_iter().map(BoundGate::new));
        }
        Ok(gates)
    }

    /// Checks that the flows that gates name are among these.
    ///
    /// # Errors
    /// The first gate that names another.
    pub fn of_flows(self, flows: &[StudyFlow]) -> Result<Gates, GatesError> {
        let changes = self.changes.iter().map(|gate| (&gate.text, &gate.flow));
        let mut all = changes.chain(self.bounds.iter().map(|gate| (&gate.text, &gate.flow)));
        let is_none = |flow: &&String| **flow != ALL && flows.iter().all(|known| known.name != **flow);
        let wrong =
            all.find_map(|(gate, flow)| Some((gate.clone(), clean(flow.as_ref().filter(is_none)?, GATE_CHARS))));
        let names: Vec<&str> = flows.iter().map(|flow| flow.name.as_str()).collect();
        let known = match names.is_empty() {
            true => "the runs have one flow, so leave out the brackets".to_owned(),
            false => format!("the flows: {}", names.join(", ")),
        };
        wrong.map_or(Ok(self), |(gate, flow)| Err(GatesError::Flow { gate, flow, known }))
    }

    /// True if there are no gates.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.bounds.is_empty()
    }
}

/// Returns the text after the sign of a gate.
fn threshold(text: &str) -> &str {
    text.find(['<', '>', '=']).map_or("", |at| text[at..].trim_start_matches(['<', '>', '=', ' ']))
}

/// True if the number has a sign: then it is a change against the baseline, otherwise a bound.
fn is_change(text: &str) -> bool {
    threshold(text).starts_with(['+', '-'])
}

/// Returns the text with the sign of a change.
fn signed(text: &str) -> String {
    let (name, limit) = text.split_at(text.len() - threshold(text).len());
    let sign = if name.contains('<') { '-' } else { '+' };
    clean(&format!("{name}{sign}{limit}"), GATE_CHARS)
}

/// The bound that is broken where this holds.
fn broken_by(text: &str, gate: String, has_baseline: bool) -> Result<BoundGate, GatesError> {
    let terms = ObjectiveTerm::parse_all(text).map_err(|source| match source {
        ObjectiveError::Bound { .. } if has_baseline && threshold(text).ends_with('%') => {
            GatesError::Unsigned { source, change: signed(text) }
        }
        source => GatesError::Bound { flag: "--fail-on", source },
    })?;
    let [term] = terms.as_slice() else { return Err(GatesError::Wish { gate }) };
    let higher = matches!(term.relation(), Relation::Above | Relation::AtLeast);
    match term.otherwise() {
        Some(otherwise) if higher != term.higher_is_better() => {
            Ok(BoundGate { text: gate, ..BoundGate::new(otherwise) })
        }
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
        let gates = parse(
            "p99 > +10%, p50 > +20us, lost > 0, p99 > 5ms, delivered_ratio < 99.9%, server_memory_max > 500MB",
            "",
            true,
        )
        .unwrap();
        let changes: Vec<&str> = gates.changes.iter().map(|gate| gate.text.as_str()).collect();
        assert_eq!(changes, ["p99 > +10%", "p50 > +20us"]);
        let bounds: Vec<(&str, &str)> =
            gates.bounds.iter().map(|bound| (bound.text.as_str(), bound.term.text())).collect();
        let wanted = [
            ("lost > 0", "lost <= 0"),
            ("p99 > 5ms", "p99 <= 5ms"),
            ("delivered_ratio < 99.9%", "delivered_ratio >= 99.9%"),
            ("server_memory_max > 500MB", "server_memory_max <= 500MB"),
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
    fn a_gate_can_name_a_flow() {
        let gates = parse("p99(alarms) > +10%, lost (alarms) > 0", "p99(alarms) < 20ms and lost = 0", true).unwrap();
        let of = |flow: &Option<String>| flow.clone().unwrap_or_default();
        assert_eq!(
            (gates.changes[0].text.as_str(), of(&gates.changes[0].flow).as_str()),
            ("p99(alarms) > +10%", "alarms")
        );
        let bounds: Vec<(&str, String, &str)> =
            gates.bounds.iter().map(|bound| (bound.text.as_str(), of(&bound.flow), bound.term.text())).collect();
        let wanted = [
            ("lost (alarms) > 0", "alarms".to_owned(), "lost <= 0"),
            ("p99(alarms) < 20ms", "alarms".to_owned(), "p99 < 20ms"),
            ("lost = 0", String::new(), "lost = 0"),
        ];
        assert_eq!(bounds, wanted);
        let flows = ["alarms", "others"].map(StudyFlow::new);
        assert_eq!(gates.clone().of_flows(&flows), Ok(gates.clone()));
        for (flows, help) in [(&flows[1..], "the flows: others"), (&[], "leave out the brackets")] {
            let refused = gates.clone().of_flows(flows).unwrap_err().to_string();
            assert!(refused.starts_with("`p99(alarms) > +10%`: there is no flow `alarms`; "), "{refused}");
            assert!(refused.ends_with(help), "{refused}");
        }
    }

    #[test]
    fn a_threshold_has_the_unit_of_its_figure_and_a_change_a_sign() {
        for (gate, wanted) in [
            ("p50 > 5%", "a change against the baseline has a sign: 'p50 > +5%'"),
            ("delivered_per_s < 1%", "'delivered_per_s < -1%'"),
            ("p99 > +5", "neither a percentage nor a time"),
            ("server_cpu > +5ms", "neither a percentage nor a number"),
            ("p99 > -5%", "a rise"),
            ("delivered_per_s < 5GB", "a number"),
            ("floor_latency > +5%", "no runs to compare"),
            ("delivered < -1%", "could be delivered_per_s or delivered_ratio"),
            ("cpu > +1%", "could be cpu_per_message, cpu_cores or server_cpu"),
            ("memory > 5MB", "could be memory_max, server_memory_max or server_memory"),
        ] {
            let error = parse(gate, "", true).unwrap_err();
            assert!(error.contains(wanted), "{gate}: {error}");
        }
    }

    #[test]
    fn without_a_baseline_there_are_bounds_alone() {
        assert_eq!(parse("lost > 0", "", false).unwrap().bounds[0].term.text(), "lost <= 0");
        for change in ["p99 > +10%", "delivered_per_s < -2%"] {
            let error = parse(change, "", false).unwrap_err();
            assert!(error.contains("there is no baseline"), "{error}");
        }
    }

    #[test]
    fn what_would_fail_where_all_is_well_is_refused_with_the_way_out() {
        for wish in ["p99 < 5ms", "lost = 0", "acked_lost == 0", "delivered_ratio >= 99.9%"] {
            let error = parse(wish, "", true).unwrap_err();
            assert!(error.contains(&format!("--require '{wish}'")), "{error}");
        }
        let error = parse("", "p98 < 5ms", true).unwrap_err();
        assert!(error.contains("--require `p98 < 5ms`") && error.contains("did you mean"), "{error}");
    }
}
