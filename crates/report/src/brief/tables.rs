//! Tables that the short result shares with the whole one: the cost of an outage,
//! capacities, and headroom.

use super::line::{Line, Tone};
use crate::capacities::overview;
use crate::document::Table;
use crate::report::Report;
use crate::{headroom, recovery, terminal};

/// Rows of a table.
const ROWS_MAX: usize = 8;

/// Returns the tables that a report has, without their notes.
pub(crate) fn sections(report: &Report, width: usize) -> Vec<Vec<Line>> {
    let tables = [overview(&report.capacities()), recovery::table(report), headroom::table(report)];
    tables.into_iter().flatten().map(|table| lines(table, width)).collect()
}

fn lines(mut table: Table, width: usize) -> Vec<Line> {
    let rows: usize = table.groups.iter().map(Vec::len).sum();
    let mut left = ROWS_MAX;
    for group in &mut table.groups {
        group.truncate(left);
        left -= group.len();
    }
    table.groups.retain(|group| !group.is_empty());
    let mut lines: Vec<Line> =
        terminal::table_lines(&table, width).into_iter().map(|line| Line::of(line, Tone::Plain)).collect();
    if let Some(title) = lines.first_mut() {
        *title = Line::of(table.title.to_uppercase(), Tone::Heading);
    }
    if rows > ROWS_MAX {
        lines.push(Line::of(format!("… and {} more rows: --all", rows - ROWS_MAX), Tone::Muted));
    }
    lines
}
