//! A report that is larger than a screen: its beginning, and the way to the rest.

use crate::document::{Document, Note, Table};
use crate::terminal;

/// Most lines that a terminal is given where nobody asks for all.
pub(crate) const LINES_MAX: usize = 200;
/// Rows that are shown of a report with too many lines, the most first: the first
/// number with which it fits.
const ROWS: [usize; 4] = [100, 60, 30, 10];
/// Tables that are shown of such a report.
const TABLES_MAX: usize = 12;
/// Notes and sentences that are shown of such a report, of a table each.
const NOTES_MAX: usize = 5;

/// The report for a terminal, in so many lines at most where the width allows it.
pub(crate) fn render(document: impl Fn() -> Document, width: usize, colour: bool) -> String {
    let rows: usize = document().tables.iter().map(|table| table.groups.iter().map(Vec::len).sum::<usize>()).sum();
    let mut text = String::new();
    if rows <= LINES_MAX {
        text = terminal::render(&document(), width, colour);
    }
    if rows <= LINES_MAX && text.lines().count() <= LINES_MAX {
        return text;
    }
    for most in ROWS {
        let mut cut = document();
        shorten(&mut cut, most);
        text = terminal::render(&cut, width, colour);
        if text.lines().count() <= LINES_MAX {
            break;
        }
    }
    text
}

fn shorten(document: &mut Document, rows_max: usize) {
    let tables = document.tables.len();
    document.tables.truncate(TABLES_MAX);
    let all: usize = document.tables.iter().map(rows).sum();
    for table in &mut document.tables {
        let share = rows_max * rows(table) / all.max(1);
        cut(table, share.max(2), rows_max);
    }
    if let Some(claims) = &mut document.claims {
        cut(claims, rows_max / 2, rows_max);
    }
    if tables > TABLES_MAX {
        document.closing.push(format!("… and {} more tables: --all shows them.", tables - TABLES_MAX));
    }
    for sentences in [&mut document.answers, &mut document.closing] {
        let more = sentences.len().saturating_sub(2 * NOTES_MAX);
        if more > 0 {
            // The last ones say what is not shown.
            sentences.drain(NOTES_MAX..NOTES_MAX + more);
            sentences.insert(NOTES_MAX, format!("… and {more} more: --all shows them."));
        }
    }
}

fn rows(table: &Table) -> usize {
    table.groups.iter().map(Vec::len).sum()
}

/// Leaves the first rows of a table, and says how many more there are.
fn cut(table: &mut Table, most: usize, rows_max: usize) {
    let all = rows(table);
    let mut left = most;
    for group in &mut table.groups {
        group.truncate(left);
        left -= group.len();
    }
    table.groups.retain(|group| !group.is_empty());
    let notes_max = NOTES_MAX * rows_max / ROWS[0];
    let more = table.notes.len().saturating_sub(notes_max);
    if more > 0 {
        table.notes.truncate(notes_max);
        table.notes.push(Note::on_rows(format!("… and {more} more notes: --all shows them")));
    }
    if all > most {
        table
            .notes
            .push(Note::on_rows(format!("… and {} more rows: --all shows them, summary.csv has them", all - most)));
    }
}
