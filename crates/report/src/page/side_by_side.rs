//! Data shown beside a result: another result, and published figures.

use crate::compare::{ChangeOutcome, Comparison, compare};
use crate::report::Report;
use crate::text::{NONE, clean};
use pubmark_stats::Estimate;
use serde::Serialize;
use serde_json::{Map, Value};

/// Longest text of a file that is shown, characters.
const PROSE_CHARS: usize = 2_000;

/// A value with the ends of its interval.
pub type Triple = (f64, Option<f64>, Option<f64>);

pub fn triple(estimate: Estimate) -> Triple {
    let interval = estimate.interval;
    (estimate.value, interval.map(|interval| interval.lo), interval.map(|interval| interval.hi))
}

#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "Comparison"))]
pub struct ComparisonView {
    same: Vec<CellView>,
    /// Labels of cells that only one of them has.
    only_a: Vec<String>,
    only_b: Vec<String>,
    environment: Vec<Difference>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "CellChange"))]
struct CellView {
    label: String,
    #[cfg_attr(test, ts(type = "Record<string, string | number | boolean>"))]
    axes: Map<String, Value>,
    changes: Vec<ChangeView>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "Change"))]
struct ChangeView {
    /// Key of the figure.
    column: &'static str,
    a: Option<Triple>,
    b: Option<Triple>,
    /// b over a.
    ratio: Option<Triple>,
    #[cfg_attr(test, ts(type = "\"better\" | \"worse\" | \"no difference\" | \"undecided\" | \"changed\""))]
    outcome: &'static str,
    why: Option<String>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
struct Difference {
    what: String,
    a: String,
    b: String,
}

/// The first two reports compared, where there are two.
pub fn comparison(reports: &[&Report]) -> Option<ComparisonView> {
    let [a, b, ..] = reports else { return None };
    let Comparison { same, only_a, only_b, environment, .. } = compare(a, b);
    let cells = same.into_iter().map(|cell| CellView {
        label: cell.label,
        axes: cell.axes,
        changes: cell
            .changes
            .into_iter()
            .map(|change| ChangeView {
                column: change.column.key(),
                a: change.a.map(triple),
                b: change.b.map(triple),
                ratio: change.ratio.map(triple),
                outcome: match change.outcome {
                    ChangeOutcome::Better => "better",
                    ChangeOutcome::Worse => "worse",
                    ChangeOutcome::Differs => "changed",
                    ChangeOutcome::NoDifference => "no difference",
                    ChangeOutcome::Undecided => "undecided",
                },
                why: Some(change.why).filter(|why| !why.is_empty()),
            })
            .collect(),
    });
    let said = |value: Option<String>| value.unwrap_or_else(|| NONE.into());
    let differences = environment.into_iter().map(|it| Difference { what: it.what, a: said(it.a), b: said(it.b) });
    Some(ComparisonView { same: cells.collect(), only_a, only_b, environment: differences.collect() })
}

#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "Reference"))]
pub struct ReferenceView {
    source: String,
    machine: String,
    note: Option<String>,
    values: Vec<Published>,
    /// Rows that belong to no cell of this study.
    unmatched: usize,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
struct Published {
    cell: usize,
    figure: &'static str,
    value: f64,
    note: Option<String>,
}

/// The published figures of a study that names some.
pub fn reference(report: &Report) -> Option<ReferenceView> {
    let reference = report.reference()?;
    let text = |text: &String| clean(text, PROSE_CHARS);
    let values = reference.matches().map(|(cell, row)| Published {
        cell,
        figure: row.figure.key(),
        value: row.value,
        note: row.note.as_ref().map(text),
    });
    Some(ReferenceView {
        source: text(&reference.source.source),
        machine: text(&reference.source.machine),
        note: reference.source.note.as_ref().map(text),
        values: values.collect(),
        unmatched: reference.unmatched.len(),
    })
}
