//! Tables that the short result shares with the whole one: the cost of an outage, late
//! subscribers, capacities, and headroom.

use super::line::{Line, Tone};
use crate::capacities::overview;
use crate::document::Table;
use crate::report::Report;
use crate::{catch_up, headroom, last_will, recovery, terminal};

/// Rows of a table.
const ROWS_MAX: usize = 8;

/// Returns the tables that a report has, without their notes.
pub(crate) fn sections(report: &Report, width: usize) -> Vec<Vec<Line>> {
    let capacities = overview(&report.capacities());
    let waits = [recovery::table(report), catch_up::table(report), last_will::table(report)];
    let tables = [capacities].into_iter().chain(waits).chain([headroom::table(report)]);
    tables.flatten().map(|table| lines(table, width)).collect()
}

fn lines(mut table: Table, width: usize) -> Vec<Line> {
    let more = table.drop_rows(ROWS_MAX);
    let mut lines: Vec<Line> =
        terminal::table_lines(&table, width).into_iter().map(|line| Line::of(line, Tone::Plain)).collect();
    if let Some(title) = lines.first_mut() {
        *title = Line::of(table.title.to_uppercase(), Tone::Heading);
    }
    if more > 0 {
        lines.push(Line::of(format!("… and {more} more rows: --all"), Tone::Muted));
    }
    lines
}
