//! Facts of a cell in `summary.csv` and its JSON, beside its figures.

use crate::analysis::CellResult;
use crate::columns::{distance, repeats_more};
use crate::figures::Sign;
use crate::knee::{Knee, LOADS};
use crate::points::Point;
use crate::records::place;
use crate::report::Report;
use crate::words::CellVerdict;
use pubmark_model::figure::Figure;
use pubmark_model::record::FigureGroup;
use serde_json::Value;
use std::collections::HashMap;
use std::rc::Rc;

/// The columns between the axes and the figures.
pub(crate) const HEADER: [&str; 16] = [
    "runs",
    "valid_runs",
    "counts_runs",
    "rates_runs",
    "p50_runs",
    "p99_runs",
    "cost_runs",
    "verdict",
    "best_times_min",
    "best_times_max",
    "repeats_more",
    "delivered_is_lower_bound",
    "caught_up_is_lower_bound",
    "knee_axis",
    "knee",
    "knee_end",
];

/// A row: a cell with its point.
pub(crate) struct Row<'a> {
    /// Index in [`Report::cells`].
    pub index: usize,
    pub result: &'a CellResult,
    point: &'a Point,
    /// Knee over the first load axis that the cell is part of.
    knee: Option<Rc<Knee>>,
}

/// The rows of the report: the cells that the study does not skip, in its order.
pub(crate) fn rows(report: &Report) -> impl Iterator<Item = Row<'_>> {
    let points = report.points();
    let mut point_of: Vec<Option<&Point>> = vec![None; report.cells().len()];
    for point in points {
        point.members.iter().for_each(|cell| point_of[*cell] = Some(point));
    }
    let knees: HashMap<(&str, String), Rc<Knee>> =
        report.knees().into_iter().map(|knee| ((knee.axis, place(&knee.place)), Rc::new(knee))).collect();
    let knee_of = move |result: &CellResult| {
        LOADS.into_iter().find_map(|axis| {
            let mut others = result.cell.axes.clone();
            others.shift_remove(axis)?;
            knees.get(&(axis, place(&others))).cloned()
        })
    };
    let cells = report.cells().iter().zip(point_of).enumerate();
    let row = move |(index, (result, point)): (usize, (_, Option<_>))| {
        Some(Row { index, result, point: point?, knee: knee_of(result) })
    };
    cells.filter_map(row).filter(|row| !row.is_skipped())
}

/// A whole number without a fraction.
fn whole(number: f64) -> Value {
    if number.fract() == 0.0 { (number as u64).into() } else { number.into() }
}

impl Row<'_> {
    fn is_skipped(&self) -> bool {
        self.result.cell.skipped.is_some()
    }

    /// Returns the entries of the columns [`HEADER`].
    pub(crate) fn facts(&self) -> [Value; 16] {
        let Row { result, point, knee, .. } = self;
        let knee = knee.as_deref();
        let runs = |group| Value::from(result.runs_for(group));
        let word = CellVerdict::of(result, point);
        let distance = distance(word, result, point);
        let is_bound = |column| Value::from(result.figures.sign(column) == Sign::AtLeast);
        let bound = |column| result.figures.get(column).map(|_| is_bound(column)).into();
        [
            result.runs.into(),
            result.valid_runs.into(),
            runs(FigureGroup::Counts),
            runs(FigureGroup::Rates),
            runs(FigureGroup::LatencyP50),
            runs(FigureGroup::LatencyP99),
            runs(FigureGroup::Cost),
            word.text().into(),
            distance.map(|distance| distance.at_least).into(),
            distance.and_then(|distance| distance.at_most).into(),
            repeats_more(word, point).into(),
            bound(Figure::DELIVERED),
            bound(Figure::CAUGHT_UP),
            knee.map(|knee| knee.axis).into(),
            knee.and_then(|knee| knee.load).map(whole).into(),
            knee.and_then(|knee| knee.end).map(|(_, end)| end.word()).into(),
        ]
    }
}
