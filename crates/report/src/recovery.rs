//! Cost of a server that ended, stood still, or was cut off: one row per cell.

use crate::analysis::CellResult;
use crate::cell_table::{ChosenCells, Column};
use crate::columns::{ACKED_LOST, AT_LEAST, LAST, Show};
use crate::document::{Entry, Head, Note, Table};
use crate::figures::Sign;
use crate::points::Point;
use crate::report::Report;
use crate::text::{count, counted, time};
use pubmark_model::fault::Fault;
use pubmark_model::figure::Figure;
use pubmark_model::record::BacklogOutlook;
use pubmark_model::units::SECOND;

/// The name of the column with what an outage was longer than asked for.
const BEYOND: &str = "beyond";
/// The name of the column with the time until its backlog was gone.
const CAUGHT_UP: &str = "caught up";
/// The name of the column with the time until all clients were back.
const ALL_BACK: &str = "all back";
/// The name of the column with the longest silence.
const SILENCE: &str = "silence";
/// The name of the column with the time until the server listened.
const LISTENS: &str = "listens";

/// The name of the column with what was due and never taken.
const NOT_SENT: &str = "not sent";

/// The figures, and how soon each goes where there is no room.
const FIGURES: [Column; 10] = [
    (BEYOND, Show::Time(Figure::BEYOND), 0),
    (CAUGHT_UP, Show::Time(Figure::CAUGHT_UP), 0),
    (ALL_BACK, Show::Time(Figure::CLIENTS_BACK), 0),
    (NOT_SENT, Show::Delivery(Figure::NOT_SENT), 0),
    ("late", Show::Count(Figure::LATE), 0),
    (ACKED_LOST, Show::Delivery(Figure::ACKED_LOST), 0),
    ("lost", Show::Delivery(Figure::LOST), LAST + 1),
    ("duplicated", Show::Delivery(Figure::DUPLICATED), LAST + 2),
    (SILENCE, Show::Time(Figure::SILENCE), LAST + 3),
    (LISTENS, Show::Time(Figure::LISTENS_AFTER), LAST + 4),
];

/// The figures of which one at least says that there was such a fault.
const OWN: [Figure; 4] = [Figure::SILENCE, Figure::CAUGHT_UP, Figure::CLIENTS_BACK, Figure::CLIENTS_NOT_BACK];

/// The cells to which it happened.
pub(crate) fn table(report: &Report) -> Option<Table> {
    let happened = |result: &CellResult| OWN.into_iter().any(|column| result.figures.get(column).is_some());
    let cells = ChosenCells::of(report, happened)?;
    let results = cells.results();
    // The column is omitted if everything was sent.
    let is_all_sent = !results.iter().any(|result| not_sent(result));
    let entry = |show: &Show, result: &CellResult, point: &Point| match show {
        Show::Delivery(Figure::NOT_SENT) if is_all_sent => Entry::none(),
        show => entry(show, result, point),
    };
    let mut table = cells.table(title(&results), &FIGURES, entry);
    let prospects = report.runs().iter().filter_map(|run| run.recovery?.prospect).collect::<Vec<BacklogOutlook>>();
    table.notes = notes(&results, &table.heads, &prospects);
    Some(table)
}

/// A server that was killed was started again; what was stopped or cut off was not.
fn title(shown: &[&CellResult]) -> &'static str {
    let faults = shown.iter().flat_map(|result| &result.cell.faults.0);
    let mut faults = faults.filter(|fault| fault.killed_side().is_none()).peekable();
    match faults.peek().is_some() && faults.all(Fault::ends_server) {
        true => "What the restart cost",
        false => "What the outage cost",
    }
}

/// True if due messages were never taken.
fn not_sent(result: &CellResult) -> bool {
    result.figures.get(Figure::NOT_SENT).is_some_and(|found| found.value > 0.0)
}

/// Returns the entry of a cell. Clients that never came back have no time.
fn entry(show: &Show, result: &CellResult, point: &Point) -> Entry {
    let of = |column| result.figures.get(column).map_or(0.0, |found| found.value);
    match show {
        Show::Time(Figure::CLIENTS_BACK) if of(Figure::CLIENTS_NOT_BACK) > 0.0 => {
            Entry::plain(format!("{} not", count(of(Figure::CLIENTS_NOT_BACK))))
        }
        show => show.entry(result, point),
    }
}

/// Says what became of the backlogs that were not gone when their windows ended.
fn outlook(prospects: &[BacklogOutlook]) -> String {
    let window = |prospect: &BacklogOutlook| match prospect {
        BacklogOutlook::Shrinks { window_ns } => Some(*window_ns),
        BacklogOutlook::Lasts => None,
    };
    let lasting = prospects.iter().filter(|prospect| window(prospect).is_none()).count();
    let mut text = match prospects.iter().filter_map(window).max() {
        // To the next second: the figure is no more exact.
        Some(window_ns) => format!("; a window of {} would show it", time(window_ns.next_multiple_of(SECOND) as f64)),
        None => String::new(),
    };
    if lasting > 0 {
        let runs = counted(lasting, "run");
        text +=
            &format!("; in {runs} the backlog did not shrink after the fault: the system did not recover by itself");
    }
    text
}

fn notes(shown: &[&CellResult], heads: &[Head], prospects: &[BacklogOutlook]) -> Vec<Note> {
    let named = |name: &str| heads.iter().any(|head| head.name == name);
    let slice = shown.iter().map(|result| result.cell.workload.slice_ns()).max().unwrap_or_default();
    let mut texts = Vec::new();
    if named(BEYOND) {
        texts.push(format!(
            "{BEYOND}: the longest silence of a subscriber, less the time for which the fault was asked"
        ));
    }
    if named(CAUGHT_UP) {
        texts.push(format!(
            "{CAUGHT_UP}: from the end of the fault (the server's start, the link's repair) until all that was due \
             before it and arrives at all had arrived, and rate and latency were as before; exact to {}",
            time(slice as f64)
        ));
    }
    if named(ALL_BACK) {
        texts.push(format!("{ALL_BACK}: from the end of the fault until the last client had its connection again"));
    }
    if named(NOT_SENT) {
        texts.push(format!("{NOT_SENT}: due and never taken by the server, and so neither acknowledged nor lost"));
    }
    if shown.iter().any(|result| result.figures.sign(Figure::CAUGHT_UP) == Sign::AtLeast) {
        texts.push(format!("{CAUGHT_UP} {}…: it was not, when the window ended{}", AT_LEAST, outlook(prospects)));
    }
    texts.into_iter().map(Note::on_rows).collect()
}
