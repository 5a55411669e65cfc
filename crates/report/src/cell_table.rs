//! A table with a row for each cell that has something in common, such as a fault.

use crate::analysis::{CellResult, Status};
use crate::axes::{axis_name, axis_value, differs};
use crate::columns::Show;
use crate::document::{Entry, Head, Mark, Row, Table};
use crate::points::Point;
use crate::report::Report;
use crate::text::NONE;
use serde_json::Value;

/// Name of a column, its content, and how soon it goes where there is no room.
pub(crate) type Column = (&'static str, Show, u8);

/// The cells of such a table, at least one.
pub(crate) struct ChosenCells<'a>(Vec<(&'a Point, &'a CellResult)>);

impl<'a> ChosenCells<'a> {
    /// Chooses cells of which at least one run was made; `None` if there is none.
    pub(crate) fn of(report: &'a Report, chosen: impl Fn(&CellResult) -> bool) -> Option<ChosenCells<'a>> {
        let is_made =
            |result: &CellResult| !matches!(result.status, Status::Missing | Status::Skipped | Status::Failed);
        let cells = report.cells();
        let of_points =
            report.points().iter().flat_map(|point| point.members.iter().map(move |index| (point, &cells[*index])));
        let cells: Vec<_> = of_points.filter(|(_, result)| is_made(result) && chosen(result)).collect();
        (!cells.is_empty()).then_some(ChosenCells(cells))
    }

    /// Returns the cells.
    pub(crate) fn results(&self) -> Vec<&'a CellResult> {
        self.0.iter().map(|(_, result)| *result).collect()
    }

    /// Returns the table, without notes: the axes on which the cells differ, and those columns in which a cell has
    /// something.
    pub(crate) fn table(
        &self,
        title: &str,
        columns: &[Column],
        entry: impl Fn(&Show, &CellResult, &Point) -> Entry,
    ) -> Table {
        let cells = &self.0;
        let varies = |axis: &&String| differs(axis, cells.iter().map(|(_, result)| &result.cell.axes));
        let axes: Vec<&String> =
            cells.first().into_iter().flat_map(|(_, first)| first.cell.axes.keys()).filter(varies).collect();
        let known = |show: &Show| cells.iter().any(|(point, result)| entry(show, result, point).text != NONE);
        let columns: Vec<&Column> = columns.iter().filter(|(_, show, _)| known(show)).collect();
        let mut heads: Vec<Head> = axes.iter().map(|axis| Head::new(axis_name(axis), false, 0)).collect();
        heads.extend(columns.iter().map(|(name, _, expendable)| Head::new(*name, true, *expendable)));
        let row = |(point, result): &(&Point, &CellResult)| {
            let value = |axis: &&String| result.cell.axes.get(axis.as_str()).cloned().unwrap_or(Value::Null);
            let place = axes.iter().map(|axis| Entry::plain(axis_value(axis, &value(axis))));
            let own = columns.iter().map(|(_, show, _)| entry(show, result, point));
            Row { entries: place.chain(own).collect(), mark: Mark::Plain, bar: None }
        };
        Table {
            title: title.into(),
            groups: vec![cells.iter().map(row).collect()],
            notes: Vec::new(),
            heads,
            ends_in_prose: false,
            whole: "summary.csv",
            bars: None,
        }
    }
}
