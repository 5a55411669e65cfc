//! How subscribers that started late caught up: one row per cell.

use crate::cell_table::{ChosenCells, Column};
use crate::columns::{LAST, Show};
use crate::document::{Note, Table};
use crate::report::Report;
use crate::text::time;
use pubmark_model::figure::Figure;

/// The figures, and how soon each goes where there is no room.
const COLUMNS: [Column; 5] = [
    ("catch-up", Show::Time(Figure::CATCH_UP_TIME), 0),
    ("replayed/s", Show::Count(Figure::REPLAY_RATE), 0),
    ("largest lag", Show::Count(Figure::LAG_MAX), 0),
    ("lost", Show::Delivery(Figure::LOST), LAST),
    ("duplicated", Show::Delivery(Figure::DUPLICATED), LAST + 1),
];

/// The cells with late subscribers.
pub(crate) fn table(report: &Report) -> Option<Table> {
    let cells = ChosenCells::of(report, |result| {
        result.cell.flows().iter().any(|flow| flow.workload.subscribers_start_ns.is_some())
    })?;
    let mut table = cells.table("How late subscribers caught up", &COLUMNS, Show::entry);
    let late_after = cells.results().iter().map(|result| result.cell.workload.late_after_ns).max().unwrap_or_default();
    let texts = [
        format!(
            "catch-up: from the subscription until no message waited that was due more than {} ago; replayed/s: messages \
             delivered in that time",
            time(late_after as f64)
        ),
        "largest lag: messages sent and not delivered, at the end of a slice".into(),
    ];
    table.notes = texts.into_iter().map(Note::on_rows).collect();
    Some(table)
}
