//! Headroom: the ratio of the highest load that holds to the given load, from the search after the
//! runs.

use crate::analysis::CellResult;
use crate::axes::{NAME_CHARS, axis_name, axis_value, differs};
use crate::document::{Entry, Head, Mark, Note, Row, Table};
use crate::report::Report;
use crate::searches::SearchedPart;
use crate::text::{clean, clean_ends, count};
use pubmark_model::capacity::{CapacityAnswer, CapacityLimit, HEADROOM_MOST, LoadAxis};
use serde_json::{Map, Value, json};

/// Longest evidence that is shown, characters.
const EVIDENCE_CHARS: usize = 100;
/// Axes on which a cell and the steps of its search differ.
const OF_STEPS: [&str; 4] = ["part", "duration", "count", "rate"];

/// The headroom of a cell: what holds, as multiples of the load that it was given.
#[derive(Clone, Debug)]
pub(crate) struct CellHeadroom {
    /// Due, messages a second of all publishers together.
    pub offered_per_s: f64,
    /// `None` if nothing failed, or nothing held.
    pub times: Option<f64>,
    /// Lower end; if nothing failed, the highest load that held.
    pub lo: Option<f64>,
    /// Upper end; `None` if the multiple is a lower bound.
    pub hi: Option<f64>,
    answer: CapacityAnswer,
}

impl CellHeadroom {
    fn of(offered_per_s: f64, answer: CapacityAnswer) -> CellHeadroom {
        let times = |load: Option<f64>| load.map(|load| load / offered_per_s);
        CellHeadroom {
            offered_per_s,
            times: times(answer.estimate),
            lo: times(answer.lo),
            hi: times(answer.hi),
            answer,
        }
    }

    /// Returns the limiting factor as a word.
    pub(crate) fn limited_by(&self) -> Option<&'static str> {
        self.answer.limited_by.map(|limit| limit.word())
    }

    /// Returns JSON.
    pub(crate) fn json(&self) -> Value {
        json!({"times": self.times, "lo": self.lo, "hi": self.hi, "limited_by": self.limited_by()})
    }

    /// In words: `at least 10 ×`, `2.4 ×`.
    fn text(&self) -> String {
        match (self.times, self.lo, self.hi) {
            (_, Some(lo), None) => format!("at least {} ×", short(lo)),
            (Some(times), ..) => format!("{} ×", short(times)),
            (None, None, Some(hi)) => format!("not even {} ×", short(hi)),
            _ => String::new(),
        }
    }

    fn interval(&self) -> String {
        match (self.times, self.lo, self.hi) {
            (Some(_), Some(lo), Some(hi)) => format!("{} to {}", short(lo), short(hi)),
            _ => String::new(),
        }
    }

    /// Describes the limiting factor. If it is the generator, the text says that it is not the
    /// system.
    fn gave_out(&self) -> String {
        let Some(by) = self.limited_by() else { return "no limit found".into() };
        let evidence = clean_ends(self.answer.evidence.as_deref().unwrap_or_default(), EVIDENCE_CHARS);
        let own = match self.answer.limited_by {
            Some(CapacityLimit::Generator) => "the load generator, not the system",
            _ => by,
        };
        if evidence.is_empty() { own.to_owned() } else { format!("{own}: {evidence}") }
    }
}

/// Two digits, and no fraction of what is 10 or more.
fn short(times: f64) -> String {
    match times {
        times if times >= 9.95 => format!("{times:.0}"),
        times if times >= 0.95 => format!("{times:.1}"),
        times => format!("{times:.2}"),
    }
}

/// A cell's place without its load.
fn place(axes: &Map<String, Value>) -> Map<String, Value> {
    let own = axes.iter().filter(|(name, _)| !OF_STEPS.contains(&name.as_str()));
    own.map(|(name, value)| (name.clone(), value.clone())).collect()
}

impl Report {
    /// The headroom of each cell, by its index; none of those at `max`, and of those
    /// whose search has not begun.
    pub(crate) fn headrooms(&self) -> Vec<Option<CellHeadroom>> {
        let mut found = Vec::new();
        for SearchedPart { part, report } in &self.searched_headroom {
            found.extend(report.capacities().into_iter().map(|one| (part.as_deref(), place(&one.axes), one.answer())));
        }
        let of = |result: &CellResult| {
            let load = LoadAxis::Rate.load(&result.cell.workload)?;
            let own = place(&result.cell.axes);
            let part = result.cell.axes.get("part").and_then(Value::as_str);
            let (_, _, answer) = found.iter().find(|(of, place, _)| *of == part && *place == own)?;
            Some(CellHeadroom::of(load, answer.clone()))
        };
        self.cells().iter().map(of).collect()
    }
}

/// The headroom of all cells that have one.
pub(crate) fn table(report: &Report) -> Option<Table> {
    let search = report.searched_headroom.first()?;
    let headrooms = report.headrooms();
    let shown: Vec<(&CellResult, &CellHeadroom)> =
        report.cells().iter().zip(&headrooms).filter_map(|(result, found)| Some((result, found.as_ref()?))).collect();
    let varies = |axis: &&String| differs(axis, shown.iter().map(|(result, _)| &result.cell.axes));
    let mut axes: Vec<&String> = Vec::new();
    for axis in shown.iter().flat_map(|(result, _)| result.cell.axes.keys()).filter(varies) {
        if !axes.contains(&axis) {
            axes.push(axis);
        }
    }
    let mut heads: Vec<Head> = axes.iter().map(|axis| Head::new(axis_name(axis), false, 0)).collect();
    heads.extend([Head::new("offered/s", true, 0), Head::new("holds", true, 0), Head::new("90 %", true, 2)]);
    heads.push(Head::new("limited by", false, 1));
    let row = |(result, found): &(&CellResult, &CellHeadroom)| {
        let place = axes.iter().map(|axis| axis_value(axis, result.cell.axes.get(*axis).unwrap_or(&Value::Null)));
        let own = [count(found.offered_per_s), found.text(), found.interval(), found.gave_out()];
        Row { entries: place.chain(own).map(Entry::plain).collect(), mark: Mark::Plain, bar: None }
    };
    let until = search.report.study().capacity.as_ref().map_or_else(String::new, |goal| goal.until.to_string());
    let note = format!(
        "holds: `{}` holds up to this multiple of the given load (a short search after the runs, up to {HEADROOM_MOST} \
         times; its steps are in headroom/ and in no figure above). Offered: by all publishers together",
        clean(&until, NAME_CHARS * 4)
    );
    Some(Table {
        title: "Headroom".into(),
        groups: vec![shown.iter().map(row).collect()],
        heads,
        notes: vec![Note::on_rows(note)],
        ends_in_prose: true,
        whole: "--json",
        bars: None,
    })
}
