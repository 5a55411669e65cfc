//! A comparison as tables of harmless text.

use super::comparison::{CellChange, ChangeOutcome, Comparison, FigureChange, range};
use super::figure::signed_percent;
use super::gate::{GateOutcome, GateResult};
use crate::document::{Document, Entry, Head, Mark, Row, Table, table};
use crate::figures::shown;
use crate::text::{clean, counted};
use crate::words::{BROKEN, HELD, OPEN};
use pubmark_stats::RunOrder;

/// Longest name of a results folder that is shown, characters.
const NAME_CHARS: usize = 200;
/// Most differences beside the figures that are shown.
const DIFFERENCES_MAX: usize = 40;
/// Most cells that are named where only one side has them.
const NAMES_MAX: usize = 10;
/// Most reasons that are told of one gate.
const REASONS_MAX: usize = 3;
/// Rows of each table on one screen.
const BRIEF_DIFFERENCES_MAX: usize = 3;
const BRIEF_CHANGES_MAX: usize = 10;
const BRIEF_GATES_MAX: usize = 4;

/// The whole comparison; every change first, so that it ends with the gates.
pub(super) fn document(comparison: &Comparison, names: [&str; 2]) -> Document {
    let [a, b] = names.map(|name| clean(name, NAME_CHARS));
    Document {
        answers: Vec::new(),
        title: format!("A: {a}"),
        question: format!("B: {b}"),
        constants: comparison.tally.to_string(),
        tables: [environment(comparison), changed(comparison), undecided(comparison), alike(comparison)]
            .into_iter()
            .flatten()
            .collect(),
        claims: gates(comparison),
        closing: closing(comparison),
    }
}

/// Returns what fits on one screen: the changes, the worst first, other differences, and the gates.
pub(super) fn brief(comparison: &Comparison, names: [&str; 2]) -> Document {
    let tables = [
        environment(comparison).map(|table| table.first_rows(BRIEF_DIFFERENCES_MAX, "--all")),
        changed(comparison).map(|table| table.first_rows(BRIEF_CHANGES_MAX, "--all")),
    ];
    let mut closing = only_in_one(comparison);
    if comparison.order == RunOrder::Apart {
        closing.push(
            "A and B were measured one after the other, and machines change: measure A, B and A again, or use `pubmark ab`."
                .into(),
        );
    }
    if comparison.tally.no_difference + comparison.tally.undecided > 0 {
        closing.push("All comparisons: --all".into());
    }
    let claims = gates(comparison).map(|table| table.first_rows(BRIEF_GATES_MAX, "--all"));
    Document { tables: tables.into_iter().flatten().collect(), claims, closing, ..document(comparison, names) }
}

/// Returns the table of differences other than figures.
pub(super) fn environment(comparison: &Comparison) -> Option<Table> {
    let all = &comparison.environment;
    let text = |value: &Option<String>| value.clone().map_or_else(Entry::none, Entry::plain);
    let rows: Vec<Row> = all
        .iter()
        .take(DIFFERENCES_MAX)
        .map(|difference| plain_row([Entry::plain(difference.what.clone()), text(&difference.a), text(&difference.b)]))
        .collect();
    let mut notes = vec!["where these differ, a change may be their doing".to_owned()];
    if all.len() > DIFFERENCES_MAX {
        notes.push(format!("… and {} more; --json has them all", all.len() - DIFFERENCES_MAX));
    }
    let heads = [text_head("not the same"), text_head("A"), text_head("B")];
    (!rows.is_empty()).then(|| table("Not the same in A and B", heads.into(), vec![rows], notes, true))
}

/// Returns the table of changes; cells with a change for the worse come first.
pub(super) fn changed(comparison: &Comparison) -> Option<Table> {
    let is_changed = |change: &FigureChange| {
        matches!(change.outcome, ChangeOutcome::Worse | ChangeOutcome::Better | ChangeOutcome::Differs)
    };
    figures(comparison, "Changed", is_changed)
}

/// Returns the table of figures without a difference.
pub(super) fn alike(comparison: &Comparison) -> Option<Table> {
    figures(comparison, "No difference", |change| change.outcome == ChangeOutcome::NoDifference)
}

fn figures(comparison: &Comparison, title: &str, is_shown: impl Fn(&FigureChange) -> bool) -> Option<Table> {
    let group = |cell: &CellChange| -> Vec<Row> {
        cell.changes.iter().filter(|change| is_shown(change)).map(|change| figure_row(cell, change)).collect()
    };
    let mut cells: Vec<&CellChange> = comparison.same.iter().collect();
    cells.sort_by_key(|cell| !cell.changes.iter().any(|change| change.outcome == ChangeOutcome::Worse));
    let groups: Vec<Vec<Row>> = cells.into_iter().map(group).filter(|group| !group.is_empty()).collect();
    let heads = vec![
        Head { is_axis: true, ..text_head("cell") },
        text_head("figure"),
        figure_head("A", 0),
        figure_head("B", 0),
        figure_head("change", 0),
        figure_head("95 % interval", 1),
        figure_head("runs", 2),
        text_head("outcome"),
    ];
    (!groups.is_empty()).then(|| table(title, heads, groups, Vec::new(), false))
}

fn figure_row(cell: &CellChange, change: &FigureChange) -> Row {
    let value = |estimate: Option<pubmark_stats::Estimate>| {
        estimate.map_or_else(Entry::none, |estimate| Entry::plain(shown(change.column, estimate.value)))
    };
    let interval = change.ratio.or(change.difference).and_then(|found| found.interval);
    Row {
        entries: vec![
            Entry::plain(cell.label.clone()),
            Entry::plain(change.column.short_name().into()),
            value(change.a),
            value(change.b),
            change.percent().map_or_else(Entry::none, |percent| Entry::plain(signed_percent(percent))),
            interval.map_or_else(Entry::none, |interval| Entry::plain(range(change, interval))),
            Entry::plain(format!("{}, {}", change.runs_a, change.runs_b)),
            Entry::plain(change.outcome.to_string()),
        ],
        mark: match change.outcome {
            ChangeOutcome::Better => Mark::Good,
            ChangeOutcome::Worse => Mark::Bad,
            _ => Mark::Plain,
        },
        bar: None,
    }
}

/// Returns the table of open comparisons with their reasons.
pub(super) fn undecided(comparison: &Comparison) -> Option<Table> {
    let mut rows: Vec<Row> = Vec::new();
    for cell in &comparison.same {
        let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
        for change in cell.changes.iter().filter(|change| change.outcome == ChangeOutcome::Undecided) {
            match reasons.iter_mut().find(|(why, _)| *why == change.why) {
                Some((_, figures)) => figures.push(change.column.short_name()),
                None => reasons.push((&change.why, vec![change.column.short_name()])),
            }
        }
        rows.extend(reasons.into_iter().map(|(why, figures)| {
            let is_each = figures.len() > 1 && figures.len() == cell.changes.len();
            let figures = if is_each { "all".to_owned() } else { figures.join(", ") };
            plain_row([&cell.label, &figures, why].map(|text| Entry::plain(text.to_owned())))
        }));
    }
    let heads = vec![text_head("cell"), text_head("figures"), text_head("why")];
    (!rows.is_empty()).then(|| table("Open", heads, vec![rows], Vec::new(), true))
}

/// Returns the table of gates.
pub(super) fn gates(comparison: &Comparison) -> Option<Table> {
    gate_table(&comparison.gates, TOO_NOISY)
}

/// The word for a gate on changes that noise would hide.
pub(super) const TOO_NOISY: &str = "open: too noisy to see it";

/// Returns the table of gates. `too_noisy` is the word for those that noise keeps open.
pub(super) fn gate_table(gates: &[GateResult], too_noisy: &str) -> Option<Table> {
    let row = |gate: &GateResult| {
        let (mark, word, told) = match gate.outcome {
            GateOutcome::Passed => (Mark::Good, HELD, &gate.failed),
            GateOutcome::TooNoisy => (Mark::Plain, too_noisy, &gate.too_noisy),
            GateOutcome::Undecided => (Mark::Plain, OPEN, &gate.undecided),
            GateOutcome::Failed => (Mark::Bad, BROKEN, &gate.failed),
        };
        let told = match told.as_slice() {
            [] => format!("{} looked at", counted(gate.comparisons, "comparison")),
            all => few(all, REASONS_MAX),
        };
        Row { entries: [gate.gate.clone(), word.to_owned(), told].map(Entry::plain).into(), mark, bar: None }
    };
    let rows: Vec<Row> = gates.iter().map(row).collect();
    let heads = vec![text_head("gate"), text_head("outcome"), text_head("where")];
    (!rows.is_empty()).then(|| table("Gates", heads, vec![rows], Vec::new(), true))
}

/// Cells that are not in both, and how the outcomes came about.
pub(super) fn closing(comparison: &Comparison) -> Vec<String> {
    let mut lines = only_in_one(comparison);
    let decided = |gated: bool| {
        let changes = comparison.same.iter().flat_map(|cell| &cell.changes);
        changes.filter(|change| change.p.is_some() && change.gated == gated).count()
    };
    let family = match (decided(true), decided(false)) {
        (0, 0) => return lines,
        (0, all) => counted(all, "comparison"),
        (gated, 0) => format!("{} under gates", counted(gated, "comparison")),
        (gated, others) => format!("{} under gates, or in the {others} others,", counted(gated, "comparison")),
    };
    lines.push(format!(
        "A run is one observation; A and B are medians over the runs in which the figure is reliable. A \
         change is called one only where it is beyond the noise between runs: where nothing has changed, any is found in the {family} \
         with at most 5 % probability. An interval is of its comparison alone."
    ));
    if comparison.order == RunOrder::Apart {
        lines.push(
            "A and B were measured one after the other: what became of the machine in between is noise as well. It is \
             taken to be as large as that between runs of one folder; where it is larger, the 5 % do not hold. Measure \
             A, B and A again, or both in turns."
                .into(),
        );
    }
    lines
}

/// Names the cells that only one side has.
fn only_in_one(comparison: &Comparison) -> Vec<String> {
    let sides = [("A", &comparison.only_a), ("B", &comparison.only_b)];
    let said = |(side, cells): (&str, &Vec<String>)| {
        format!("Only in {side}, {}: {}.", counted(cells.len(), "cell"), few(cells, NAMES_MAX))
    };
    sides.into_iter().filter(|(_, cells)| !cells.is_empty()).map(said).collect()
}

/// The first few, and how many more there are.
pub(super) fn few(all: &[String], most: usize) -> String {
    let shown = all.iter().take(most).cloned().collect::<Vec<_>>().join("; ");
    if all.len() > most { format!("{shown}; … and {} more", all.len() - most) } else { shown }
}

pub(super) fn text_head(name: &str) -> Head {
    Head::new(name, false, 0)
}

pub(super) fn figure_head(name: &str, expendable: u8) -> Head {
    Head::new(name, true, expendable)
}

fn plain_row<const N: usize>(entries: [Entry; N]) -> Row {
    Row { entries: entries.into(), mark: Mark::Plain, bar: None }
}
