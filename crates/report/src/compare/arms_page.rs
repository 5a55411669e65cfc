//! Two arms as tables of harmless text.

use super::arms::{ArmsComparison, ArmsResult};
use super::gate::GateOutcome;
use super::page::{figure_head, gate_table, text_head};
use crate::document::{Document, Entry, Mark, Row, Table, table};
use crate::figures::shown;
use crate::words::{OPEN, UNRELIABLE};
use crate::{markdown, terminal};
use pubmark_stats::PairedOutcome;

/// Rows of each table on a screen.
const BRIEF_ROWS_MAX: usize = 12;

impl ArmsResult {
    /// Returns what fits on a screen of so many columns.
    pub fn terminal(&self, title: &str, width: usize, colour: bool) -> String {
        let whole = self.document(title);
        let brief = |table: Table| table.first_rows(BRIEF_ROWS_MAX, "--json");
        let (tables, claims) = (whole.tables.into_iter().map(brief).collect(), whole.claims.map(brief));
        terminal::render(&Document { tables, claims, ..whole }, width, colour)
    }

    /// Returns GitHub Markdown for a comment: the result first.
    pub fn markdown(&self, title: &str) -> String {
        markdown::render(&self.document(title))
    }

    fn document(&self, title: &str) -> Document {
        let says = match self.gates_say() {
            GateOutcome::Passed => "every gate held",
            GateOutcome::Failed => "a gate is broken",
            GateOutcome::TooNoisy | GateOutcome::Undecided => OPEN,
        };
        Document {
            title: format!("{}: {says}", crate::text::clean(title, 200)),
            question: format!("A: {}", self.a),
            constants: format!("B: {}", self.b),
            answers: Vec::new(),
            tables: self.table().into_iter().collect(),
            claims: self.gate_table(),
            closing: self.closing(),
        }
    }

    /// Returns the table of gates.
    pub(crate) fn gate_table(&self) -> Option<Table> {
        gate_table(&self.gates, OPEN)
    }

    /// Each figure under a gate.
    pub(crate) fn table(&self) -> Option<Table> {
        let has_places = self.comparisons.iter().any(|one| !one.label.is_empty());
        let mut heads = vec![text_head("figure"), figure_head("A", 0), figure_head("B", 0), figure_head("change", 0)];
        heads.extend([figure_head("interval", 1), figure_head("blocks", 0), figure_head(UNRELIABLE, 2)]);
        heads.extend([text_head("gate"), text_head("outcome")]);
        if has_places {
            heads.insert(0, text_head("cell"));
        }
        let row = |one: &ArmsComparison| {
            let mut entries = figures(one);
            if has_places {
                entries.insert(0, Entry::plain(one.label.clone()));
            }
            let mark = match one.found.map(|found| found.outcome) {
                Some(PairedOutcome::Beyond) => Mark::Bad,
                Some(PairedOutcome::Within) => Mark::Good,
                _ => Mark::Plain,
            };
            Row { entries, mark, bar: None }
        };
        let rows: Vec<Row> = self.comparisons.iter().map(row).collect();
        (!rows.is_empty()).then(|| table("A and B in turns", heads, vec![rows], Vec::new(), false))
    }

    /// Returns the remarks on how the outcomes came about.
    fn closing(&self) -> Vec<String> {
        let mut lines = vec![format!(
            "{} blocks, each a run of A followed by one of B. A and B are medians over blocks; the change is the mean \
             over blocks. At most 5 % false alarms in total, over all gates, cells and looks, and as few gates called \
             held that are broken.",
            self.blocks
        )];
        if let Some(most) = self.comparisons.iter().max_by_key(|one| one.left_out).filter(|one| one.left_out > 0) {
            lines.push(format!(
                "{} blocks are {UNRELIABLE} for {}, because one of their runs is (runs by reason: {}).",
                most.left_out,
                most.column.short_name(),
                most.left_out_for
            ));
        }
        if matches!(self.gates_say(), GateOutcome::TooNoisy | GateOutcome::Undecided) {
            lines.push(match self.more() {
                Some(more) => format!("About {more} more blocks needed."),
                None => {
                    "Cannot estimate the blocks still needed: the change is too near to its bound, or too few blocks \
                     are reliable."
                        .into()
                }
            });
        }
        lines
    }
}

fn figures(one: &ArmsComparison) -> Vec<Entry> {
    let value = |value: Option<f64>| value.map_or_else(Entry::none, |value| Entry::plain(shown(one.column, value)));
    let text = |text: Option<String>| text.map_or_else(Entry::none, Entry::plain);
    let outcome = match one.found {
        None => one.why.clone(),
        Some(found) => match (found.outcome, found.looked_at) {
            (PairedOutcome::Beyond, looked_at) => format!("beyond, after {looked_at}"),
            (PairedOutcome::Within, looked_at) => format!("within, after {looked_at}"),
            (PairedOutcome::Open, _) => "open".into(),
        },
    };
    vec![
        Entry::plain(one.column.short_name().into()),
        value(one.found.map(|found| found.a)),
        value(one.found.map(|found| found.b)),
        text(one.change()),
        text(one.interval()),
        Entry::plain(one.blocks.to_string()),
        Entry::plain((one.disturbed + one.left_out).to_string()),
        Entry::plain(one.gate.clone()),
        Entry::plain(outcome),
    ]
}
