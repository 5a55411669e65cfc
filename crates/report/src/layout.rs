//! The report laid out as tables.

use crate::analysis::{CellResult, Status};
use crate::axes::{NAME_CHARS, axis_name, axis_value};
use crate::bars::{self, Scale};
use crate::capacities::overview;
use crate::capacity::CapacityResult;
use crate::claims::{ClaimOutcome, ClaimResult};
use crate::columns::{
    ACKED_LOST, AT_LEAST, BINDING, CLOCK, HALF, LANGUAGES, LATENCY, MEDIAN, MESSAGE_TIME, NOT_QUOTED, OFFERED, RATE,
    REFUSED, SERVICE, Show, Spec, THRIFT, THROUGHPUT, columns, expendable, verdict,
};
use crate::document::{About, Document, Entry, Head, Mark, Note, Row, Rows, Table};
use crate::findings::findings;
use crate::findings::machine::is_busy;
use crate::headroom;
use crate::knee;
use crate::not_run;
use crate::notes;
use crate::points::{Point, headline};
use crate::recovery;
use crate::recovery_capacity;
use crate::report::Report;
use crate::text::{NONE, clean};
use crate::words::UNRELIABLE;
use crate::{catch_up, last_will, members};
use pubmark_model::figure::Figure;
use serde_json::Value;

/// The file that has all columns of a report.
const SUMMARY: &str = "summary.csv";
/// Longest title, question or statement that is shown, characters.
const PROSE_CHARS: usize = 500;

/// Lays out a report.
pub(crate) fn document(report: &Report, rows: Rows) -> Document {
    let kinds = [
        Kind { title: "Bindings (at given rates)", specs: LANGUAGES, unthrottled: false },
        Kind { title: "Bindings (unthrottled)", specs: LANGUAGES, unthrottled: true },
        Kind { title: "Latency (at given rates)", specs: LATENCY, unthrottled: false },
        Kind { title: "Throughput (unthrottled)", specs: THROUGHPUT, unthrottled: true },
    ];
    let whole = [None];
    let parts: Vec<Option<&str>> = match report.study().parts.as_slice() {
        [] => whole.to_vec(),
        parts => parts.iter().map(|part| Some(part.name.as_str())).collect(),
    };
    // A part has axes of its own, and so a table of its own.
    let tables =
        parts.into_iter().flat_map(|part| kinds.into_iter().filter_map(move |kind| table(report, kind, part, rows)));
    let capacities = report.capacities();
    let recovers = recovery_capacity::table(&capacities);
    // The steps without a fault are in the other outputs.
    let steps: Vec<Table> = capacities
        .iter()
        .filter(|found| recovers.is_none() || found.recovery.is_some())
        .map(CapacityResult::table)
        .collect();
    let found = recovers.or_else(|| overview(&capacities)).into_iter().chain(steps);
    let tables: Vec<Table> = match report.study().recorded_capacity() {
        // A search has as many cells as steps, and a curve says more of them.
        Some(_) => found.collect(),
        None => {
            let arms = report.arms().and_then(|arms| arms.table()).into_iter();
            let waits = [recovery::table(report), catch_up::table(report), last_will::table(report)];
            let beside = waits.into_iter().chain([members::table(report)]).flatten();
            arms.chain(tables).chain(beside).chain(knee::tables(report)).chain(found).collect()
        }
    };
    let tables = tables.into_iter().chain(headroom::table(report)).collect();
    Document {
        title: clean(&report.study().title, PROSE_CHARS),
        question: clean(&report.study().question, PROSE_CHARS),
        constants: notes::constants(report),
        answers: answers(report),
        tables,
        claims: claims(report.claims()),
        closing: std::iter::once(notes::counted(report)).chain(notes::closing(report, rows)).collect(),
    }
}

/// Returns sentences on acknowledged and lost messages, and on the best systems.
fn answers(report: &Report) -> Vec<String> {
    let shown = |about: &str| ["machine", "arms", "capacity", "delivery", "latency", "throughput"].contains(&about);
    findings(report).into_iter().filter(|finding| shown(finding.about)).map(|finding| finding.text).collect()
}

/// Kind of a table.
#[derive(Clone, Copy)]
struct Kind {
    title: &'static str,
    specs: &'static [Spec],
    unthrottled: bool,
}

impl Kind {
    /// True for the table that separates bindings from their languages; the other tables are of all
    /// cells.
    fn of_languages(self) -> bool {
        self.specs.iter().any(|spec| spec.name == BINDING)
    }

    fn shows(self, point: &Point, cells: &[CellResult], rows: Rows) -> bool {
        let told = |index: &usize| {
            let figures = &cells[*index].figures;
            figures.get(Figure::LANGUAGE_FLOOR).or(figures.get(Figure::OVER_BASELINE)).is_some()
        };
        point.unthrottled == self.unthrottled
            && (rows == Rows::All || !point.is_skipped(cells))
            && (!self.of_languages() || point.members.iter().any(told))
    }
}

fn table(report: &Report, kind: Kind, part: Option<&str>, rows: Rows) -> Option<Table> {
    let cells = report.cells();
    let points: Vec<&Point> = report
        .points()
        .iter()
        .filter(|point| kind.shows(point, cells, rows))
        .filter(|point| part.is_none_or(|part| point.axes.get("part").is_some_and(|value| value == part)))
        .collect();
    let first = points.first().filter(|_| points.iter().any(|point| !point.is_skipped(cells)))?;
    let varies = |axis: &str| {
        let mut points = points.iter();
        points.any(|point| point.axes.get(axis) != first.axes.get(axis))
    };
    let axes: Vec<&String> = first.axes.keys().filter(|axis| varies(axis)).collect();
    let has_row = |result: &&CellResult| rows == Rows::All || result.status != Status::Skipped;
    let members = |point: &Point| -> Vec<&CellResult> {
        point.members.iter().map(|index| &cells[*index]).filter(has_row).collect()
    };
    let shown: Vec<&CellResult> = points.iter().flat_map(|point| members(point)).collect();
    let without_row = points.iter().map(|point| point.members.len()).sum::<usize>() - shown.len();
    let specs = columns(kind.specs, &shown);
    let mut groups: Vec<Vec<Row>> = points
        .iter()
        .map(|point| members(point).into_iter().map(|result| row(result, point, &axes, &specs)).collect())
        .collect();
    let mut heads: Vec<Head> =
        axes.iter().map(|axis| Head { is_axis: true, ..Head::new(axis_name(axis), false, 0) }).collect();
    heads.extend(specs.iter().map(|spec| {
        let expendable = if is_limited(spec, &shown) { 0 } else { expendable(spec, &specs) };
        Head::new(spec.name, !spec.show.is_text(), expendable)
    }));
    drop_empty(&mut heads, &mut groups);
    let bars = bars(first.unthrottled, &heads, &groups);
    let beneath = not_run::without_row(without_row).into_iter().chain(notes::beneath(&shown, &points, is_busy(report)));
    Some(Table {
        bars,
        title: titled(report, kind.title, first, varies),
        notes: legend(&heads, &groups)
            .into_iter()
            // The same cells have another table with this note.
            .chain(beneath.into_iter().map(Note::on_rows).filter(|_| !kind.of_languages()))
            .collect(),
        heads,
        groups,
        ends_in_prose: false,
        whole: SUMMARY,
    })
}

fn row(result: &CellResult, point: &Point, axes: &[&String], specs: &[&Spec]) -> Row {
    let place = axes.iter().map(|axis| {
        let value = point.axes.get(*axis).unwrap_or(&Value::Null);
        Entry::plain(axis_value(axis, value))
    });
    let shown = specs.iter().map(|spec| match (&spec.show, result.status) {
        (show, Status::Missing | Status::Skipped | Status::Failed) if !show.is_text() => Entry::none(),
        (show, _) => show.entry(result, point),
    });
    let bar = result.quotable(headline(point.unthrottled)).map(|estimate| estimate.value);
    Row { entries: place.chain(shown).collect(), mark: verdict(result, point).0, bar }
}

/// Bars of the figure that ranks the rows.
fn bars(unthrottled: bool, heads: &[Head], groups: &[Vec<Row>]) -> Option<(Scale, usize)> {
    let values = groups.iter().flatten().filter_map(|row| row.bar);
    let scale = if unthrottled { bars::of_counts(RATE, values) } else { bars::of_times(MEDIAN, values) }?;
    let beside = heads.iter().position(|head| head.name == scale.name)?;
    Some((scale, beside))
}

/// A title with the axes that vary in the study and not in this table. That
/// the rate is `max` goes without saying.
fn titled(report: &Report, title: &str, first: &Point, varies: impl Fn(&str) -> bool) -> String {
    let mut title = title.to_owned();
    for axis in &report.study().axes {
        let value = first.axes.get(&axis.name);
        if let Some(value) = value
            && axis.values.len() > 1
            && !varies(&axis.name)
            && value != "max"
        {
            let (name, value) = (axis_name(&axis.name), axis_value(&axis.name, value));
            title.push_str(&format!(", {name} {value}"));
        }
    }
    title
}

/// True if a column shows the value that a cell's limit bounds, and a row has that figure: it is
/// shown if there is a limit.
fn is_limited(spec: &Spec, shown: &[&CellResult]) -> bool {
    let limited = |result: &&CellResult| result.cell.limits.memory_bytes.is_some();
    matches!(spec.show, Show::Bytes(Figure::SERVER_MEMORY))
        && shown.iter().any(limited)
        && shown.iter().any(|result| result.figures.get(Figure::SERVER_MEMORY).is_some())
}

/// Leaves out expendable columns in which no row has a figure.
fn drop_empty(heads: &mut Vec<Head>, groups: &mut [Vec<Row>]) {
    for column in (0..heads.len()).rev() {
        let mut rows = groups.iter().flatten();
        if heads[column].expendable > 0 && rows.all(|row| row.entries[column].text == NONE) {
            heads.remove(column);
            for row in groups.iter_mut().flatten() {
                row.entries.remove(column);
            }
        }
    }
}

/// Returns the meaning of the signs in a table.
fn legend(heads: &[Head], groups: &[Vec<Row>]) -> Vec<Note> {
    let mut notes = Vec::new();
    let rows = || groups.iter().flatten();
    let entries = || rows().flat_map(|row| &row.entries);
    notes.push(Note::on_rows("figures: the median over the runs".into()));
    if entries().any(|entry| !entry.spread.is_empty()) {
        let text = "±: the wider side of the median's 95 % interval".into();
        notes.push(Note { text, about: About::Spreads });
    }
    if entries().any(|entry| entry.text.ends_with(CLOCK)) {
        let text = "± … (clock): what the clocks of two hosts may be wrong by in each of these latencies, to either side; \
                    no repeat averages it out, and it is in no interval";
        notes.push(Note::on_rows(text.into()));
    }
    if entries().any(|entry| entry.text.starts_with(NOT_QUOTED)) {
        notes.push(Note::on_rows(format!("!: {UNRELIABLE}, for the reasons below")));
    }
    let is_bound = |entry: &Entry| entry.text.trim_start_matches(NOT_QUOTED).starts_with(AT_LEAST);
    if entries().any(is_bound) {
        let text = "≥: the load generator was at its limit; the system reaches at least this much".into();
        notes.push(Note::on_rows(text));
    }
    let named = |name: &str| heads.iter().position(|head| head.name == name);
    if named(HALF).is_some() {
        notes.push(Note::on_rows(format!(
            "latency of request-reply and echoes is the full round trip; {HALF} is half of its median"
        )));
    }
    if named(OFFERED).is_some() {
        notes.push(Note::on_rows(format!("{OFFERED}: target rate, all publishers together; a rate is per publisher")));
    }
    if named(MESSAGE_TIME).is_some() {
        notes.push(Note::on_rows(format!(
            "{MESSAGE_TIME}: half of a median round trip, the median latency at a rate or, unthrottled, the time from \
             one delivery to the next; language: the same of its agent's loop over a queue; {BINDING}: what is beyond \
             that, block by block ({NONE} where the language scatters by more)"
        )));
    }
    if named(ACKED_LOST).is_some() {
        notes.push(Note::on_rows(format!(
            "acked: messages that the server took responsibility for; {ACKED_LOST}: those of them that had not \
             arrived when the drain ended; lost: all that had not"
        )));
    }
    if named(REFUSED).is_some() {
        let text = format!("{REFUSED}: messages that the server did not take and said so; they are not lost");
        notes.push(Note::on_rows(text));
    }
    if let Some(column) = named(SERVICE) {
        notes.push(Note {
            text: format!(
                "latency counts from when a message was due, less the generator delay; {SERVICE} from when it was sent"
            ),
            about: About::Column(column),
        });
    }
    if let Some(column) = named(THRIFT) {
        let marked = |sign: char| rows().any(|row| row.entries[column].text.starts_with(sign));
        if marked('*') || marked('=') {
            notes.push(Note { text: format!("{THRIFT}: * least, = tie for least"), about: About::Column(column) });
        }
    }
    notes
}

fn claims(claims: &[ClaimResult]) -> Option<Table> {
    const HEADS: [&str; 4] = ["claim", "outcome", "points", "says"];
    if claims.is_empty() {
        return None;
    }
    let row = |id: &str, outcome: ClaimOutcome, evidence: String, says: &str| Row {
        entries: [clean(id, NAME_CHARS), outcome.to_string(), evidence, clean(says, PROSE_CHARS)]
            .map(Entry::plain)
            .into(),
        mark: match outcome {
            ClaimOutcome::Holds => Mark::Good,
            ClaimOutcome::Fails => Mark::Bad,
            ClaimOutcome::Open | ClaimOutcome::Untested => Mark::Plain,
        },
        bar: None,
    };
    // Each statement of a claim that has several stands for itself.
    let rows = |claim: &ClaimResult| match claim.parts.as_slice() {
        [_] | [] => vec![row(&claim.id, claim.outcome, claim.counts(), &claim.sentence())],
        parts => {
            let all = format!("all of these {}:", parts.len());
            let first = row(&claim.id, claim.outcome, claim.counts(), &all);
            let others = parts.iter().map(|part| row("", part.outcome, part.counts(), &part.sentence()));
            std::iter::once(first).chain(others).collect()
        }
    };
    Some(Table {
        title: "Claims".into(),
        heads: HEADS.map(|name| Head::new(name, false, 0)).into(),
        groups: vec![claims.iter().flat_map(rows).collect()],
        notes: Vec::new(),
        ends_in_prose: true,
        whole: SUMMARY,
        bars: None,
    })
}
