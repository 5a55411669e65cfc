//! How soon others noticed that a publisher was gone: one row per cell.

use crate::cell_table::{ChosenCells, Column};
use crate::columns::{LAST, Show};
use crate::document::{Note, Table};
use crate::report::Report;
use pubmark_model::figure::Figure;

/// The figures, and how soon each goes where there is no room.
const COLUMNS: [Column; 6] = [
    ("p50", Show::Time(Figure::WILL_P50), 0),
    ("p99", Show::Time(Figure::WILL_P99), 1),
    ("max", Show::Time(Figure::WILL_MAX), 0),
    ("due", Show::Delivery(Figure::WILLS_DUE), LAST),
    ("received", Show::Delivery(Figure::WILLS_RECEIVED), LAST),
    ("undue", Show::Delivery(Figure::WILLS_UNDUE), LAST),
];

/// The cells whose publishers have last wills.
pub(crate) fn table(report: &Report) -> Option<Table> {
    let cells = ChosenCells::of(report, |result| result.cell.flows().iter().any(|flow| flow.workload.last_will))?;
    let mut table = cells.table("How soon last wills arrived", &COLUMNS, Show::entry);
    let text = "times: from the end of a publisher's connection until a subscriber got its will; undue: wills of \
                publishers that had not ended, or with a goodbye";
    table.notes = vec![Note::on_rows(text.into())];
    Some(table)
}
