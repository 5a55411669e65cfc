//! Up to which load a system goes along, where a study turns one up: the knee.

use crate::analysis::{CellResult, Status};
use crate::axes::{NAME_CHARS, axis_name, axis_value, differs};
use crate::document::{Entry, Head, Mark, Note, Row, Table};
use crate::records::place;
use crate::report::Report;
use crate::text::{NONE, clean, count, time};
use crate::words::{MISSING, UNRELIABLE};
use pubmark_model::figure::Figure;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The axes that turn a load up.
pub(crate) const LOADS: [&str; 3] = ["rate", "pairs", "publishers"];
/// Least share delivered of a load that is sustained.
const DELIVERED_MIN: f64 = 0.999;
/// The bound on the 99th percentile, as a multiple of what it is at the lowest load.
const BOUND_MULTIPLE: f64 = 10.0;

/// Up to which load a system goes along.
#[derive(Clone, Debug, PartialEq)]
pub struct Knee {
    /// The axis that turns the load up.
    pub axis: &'static str,
    /// The places on the other axes, the system among them.
    pub place: Map<String, Value>,
    /// The highest load that is sustained, no lower one of which anything may be said
    /// failing; none where there is none.
    pub load: Option<f64>,
    /// The 99th percentile of latency there, ns.
    pub p99_ns: Option<f64>,
    /// Largest allowed value, ns.
    pub bound_ns: Option<f64>,
    /// The first load above it that is not sustained, and why; none where all are.
    pub end: Option<(f64, KneeEnd)>,
    /// Loads below the knee of which nothing may be said.
    pub passed_over: Vec<f64>,
}

/// Why a load is not sustained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KneeEnd {
    /// Too little was delivered.
    Lossy,
    /// The 99th percentile lies above the bound.
    Late,
    /// Nothing may be quoted of it.
    NotValid,
    /// It was not measured.
    NotMeasured,
}

impl KneeEnd {
    /// In words.
    pub fn word(self) -> &'static str {
        match self {
            KneeEnd::Lossy => "too little delivered",
            KneeEnd::Late => "p99 above the bound",
            KneeEnd::NotValid => UNRELIABLE,
            KneeEnd::NotMeasured => "not measured",
        }
    }

    /// True if it shows something about the system.
    fn is_its_own(self) -> bool {
        matches!(self, KneeEnd::Lossy | KneeEnd::Late)
    }
}

/// A load with what was measured at it.
struct Load {
    load: f64,
    p99_ns: Option<f64>,
    delivered: Option<f64>,
    was_made: bool,
}

impl Load {
    fn of(load: f64, result: &CellResult) -> Load {
        let figure = |column| result.quotable(column).map(|found| found.value);
        Load {
            load,
            p99_ns: figure(Figure::LATENCY_P99),
            delivered: figure(Figure::DELIVERED_RATIO),
            was_made: !matches!(result.status, Status::Missing | Status::Skipped),
        }
    }

    fn failing(&self, bound_ns: Option<f64>) -> Option<KneeEnd> {
        match (self.delivered, self.p99_ns, bound_ns) {
            _ if !self.was_made => Some(KneeEnd::NotMeasured),
            // Losses are lost whether or not latencies may be quoted.
            (Some(delivered), _, _) if delivered < DELIVERED_MIN => Some(KneeEnd::Lossy),
            (Some(_), Some(p99), Some(bound)) => (p99 > bound).then_some(KneeEnd::Late),
            _ => Some(KneeEnd::NotValid),
        }
    }
}

fn knee(mut loads: Vec<Load>) -> Knee {
    loads.sort_by(|one, other| one.load.total_cmp(&other.load));
    let bound_ns = loads.iter().find_map(|load| load.p99_ns).map(|p99| BOUND_MULTIPLE * p99);
    let mut found =
        Knee { axis: "", place: Map::new(), load: None, p99_ns: None, bound_ns, end: None, passed_over: Vec::new() };
    let mut doubtful: Vec<f64> = Vec::new();
    for load in &loads {
        match load.failing(bound_ns) {
            None => {
                (found.load, found.p99_ns, found.end) = (Some(load.load), load.p99_ns, None);
                found.passed_over.append(&mut doubtful);
            }
            Some(end) => {
                found.end = found.end.or(Some((load.load, end)));
                if end.is_its_own() {
                    found.end = Some((load.load, end));
                    break;
                }
                doubtful.push(load.load);
            }
        }
    }
    found
}

impl Report {
    /// The knees of the study: by axis, then in the order of its cells.
    pub fn knees(&self) -> Vec<Knee> {
        // Steps of a search are no sweep, and arms are compared.
        if self.study().recorded_capacity().is_some() || self.study().ab.is_some() {
            return Vec::new();
        }
        let mut all = Vec::new();
        for axis in LOADS {
            let mut order: Vec<(String, Map<String, Value>)> = Vec::new();
            let mut loads: BTreeMap<String, Vec<Load>> = BTreeMap::new();
            for result in self.cells().iter().filter(|result| !result.is_reference) {
                let Some(load) = result.cell.axes.get(axis).and_then(Value::as_f64) else { continue };
                let mut others = result.cell.axes.clone();
                others.shift_remove(axis);
                let key = place(&others);
                if !loads.contains_key(&key) {
                    order.push((key.clone(), others));
                }
                loads.entry(key).or_default().push(Load::of(load, result));
            }
            for (key, others) in order {
                let of_place = loads.remove(&key).unwrap_or_default();
                if of_place.len() > 1 && of_place.iter().any(|load| load.was_made) {
                    all.push(Knee { axis, place: others, ..knee(of_place) });
                }
            }
        }
        all
    }
}

/// The knees as a table for each axis.
pub(crate) fn tables(report: &Report) -> Vec<Table> {
    let knees = report.knees();
    LOADS.into_iter().filter_map(|axis| table(axis, knees.iter().filter(|knee| knee.axis == axis).collect())).collect()
}

fn table(axis: &str, knees: Vec<&Knee>) -> Option<Table> {
    let first = knees.first()?;
    let varies = |name: &&String| differs(name, knees.iter().map(|knee| &knee.place));
    let axes: Vec<&String> = first.place.keys().filter(varies).collect();
    let mut heads: Vec<Head> = axes.iter().map(|name| Head::new(axis_name(name), false, 0)).collect();
    heads.extend([Head::new(format!("sustains {axis}"), true, 0), Head::new("with p99", true, 0)]);
    heads.extend([Head::new("p99 bound", true, 0), Head::new("what ends it", false, 0)]);
    let shown = |load: f64| if load < 1.0 { load.to_string() } else { count(load) };
    let row = |knee: &&Knee| {
        let of_place =
            |name: &&String| knee.place.get(*name).map_or_else(|| NONE.into(), |value| axis_value(name, value));
        let mut texts: Vec<String> = axes.iter().map(of_place).collect();
        let at_least = if knee.end.is_none() { "≥ " } else { "" };
        texts.push(knee.load.map_or_else(|| "none".into(), |load| format!("{at_least}{}", shown(load))));
        texts.extend([knee.p99_ns, knee.bound_ns].map(|ns| ns.map_or_else(|| NONE.into(), time)));
        texts.push(match knee.end {
            None => "nothing that was measured".into(),
            Some((load, end)) => format!("{} at {}", end.word(), shown(load)),
        });
        Row { entries: texts.into_iter().map(Entry::plain).collect(), mark: Mark::Plain, bar: None }
    };
    let mut notes = vec![Note::on_rows(format!(
        "sustained: {} % or more is delivered, and p99 is at most {BOUND_MULTIPLE} times what it is at the lowest load",
        DELIVERED_MIN * 100.0
    ))];
    let passed_over: Vec<String> = knees.iter().flat_map(|knee| &knee.passed_over).map(|load| shown(*load)).collect();
    if !passed_over.is_empty() {
        notes.push(Note::on_rows(format!(
            "below what is sustained, {UNRELIABLE} or {MISSING}: {} (see the tables above)",
            clean(&passed_over.join(", "), NAME_CHARS * 2)
        )));
    }
    Some(Table {
        title: "Load that is sustained".into(),
        heads,
        groups: vec![knees.iter().map(row).collect()],
        notes,
        ends_in_prose: false,
        whole: "summary.csv",
        bars: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(load: f64, p99_ns: f64) -> Load {
        Load { load, p99_ns: Some(p99_ns), delivered: Some(1.0), was_made: true }
    }

    fn found(loads: Vec<Load>) -> (Option<f64>, Option<(f64, KneeEnd)>, Vec<f64>) {
        let knee = knee(loads);
        (knee.load, knee.end, knee.passed_over)
    }

    #[test]
    fn a_knee_is_the_highest_load_before_the_first_that_fails() {
        let loads = || vec![load(4_000.0, 900.0), load(500.0, 100.0), load(2_000.0, 1_001.0), load(1_000.0, 1_000.0)];
        assert_eq!(found(loads()), (Some(1_000.0), Some((2_000.0, KneeEnd::Late)), vec![]));
        let lossy = Load { delivered: Some(0.9989), p99_ns: None, ..load(2_000.0, 0.0) };
        assert_eq!(found(vec![load(500.0, 100.0), lossy]), (Some(500.0), Some((2_000.0, KneeEnd::Lossy)), vec![]));
        assert_eq!(found(vec![load(500.0, 100.0), load(1_000.0, 100.0)]), (Some(1_000.0), None, vec![]));
    }

    #[test]
    fn a_load_of_which_nothing_may_be_said_ends_nothing_that_goes_on_above_it() {
        let doubtful = |at| Load { p99_ns: None, ..load(at, 0.0) };
        let missing = |at| Load { was_made: false, delivered: None, ..doubtful(at) };
        assert_eq!(
            found(vec![doubtful(500.0), load(1_000.0, 100.0), missing(2_000.0), load(4_000.0, 100.0)]),
            (Some(4_000.0), None, vec![500.0, 2_000.0])
        );
        assert_eq!(
            found(vec![load(500.0, 100.0), doubtful(1_000.0)]),
            (Some(500.0), Some((1_000.0, KneeEnd::NotValid)), vec![])
        );
        // A load that is shown to fail says more than one that shows nothing.
        assert_eq!(
            found(vec![load(500.0, 100.0), doubtful(1_000.0), load(2_000.0, 5_000.0)]),
            (Some(500.0), Some((2_000.0, KneeEnd::Late)), vec![])
        );
        assert_eq!(found(vec![doubtful(500.0), missing(600.0)]), (None, Some((500.0, KneeEnd::NotValid)), vec![]));
    }
}
