//! A block as lines: systems as rows, points as columns.

use super::block::{Block, System};
use super::line::{Line, Tone};
use crate::analysis::{CellResult, Status};
use crate::figures::Sign;
use crate::points::Point;
use crate::ranking::Standing;
use crate::text::{self, NONE, count, percent};
use pubmark_model::figure::Figure;

/// Blanks between two columns.
const GAP: usize = 2;
/// Delivered shares below this are shown beside a latency.
const SHARE_TOLD: f64 = 0.999;
/// The mark before an unreliable figure.
const UNRELIABLE: &str = "!";

/// A block laid out.
pub(crate) struct Grid {
    /// The head, if the columns have names, and the rows.
    pub lines: Vec<Line>,
    /// Columns for which there is no room.
    pub columns_more: usize,
    /// Systems for which there is no room.
    pub systems_more: usize,
    /// The meaning of the signs, if there is no room for words.
    pub legend: Option<String>,
    /// True if a figure is marked as unreliable.
    pub is_unreliable: bool,
}

/// The figures of a system at a point.
struct Entry {
    text: String,
    is_unreliable: bool,
    standing: Option<Standing>,
}

/// A column.
struct Column {
    head: String,
    /// By row.
    entries: Vec<Entry>,
}

/// Marks of the places in a ranking.
#[derive(Clone, Copy, PartialEq)]
enum Marks {
    Words,
    Signs,
}

/// Lays out a block in so many characters, with at most `systems_max` systems beside the
/// references. Columns that have no room are left out, but never the first.
pub(crate) fn grid(block: &Block<'_>, width: usize, systems_max: usize) -> Grid {
    let all = block.systems();
    let systems = chosen(block, &all, systems_max);
    let has_rivals = systems.iter().any(|system| !system.is_reference);
    let mut labels = vec![block.axis_name()];
    labels.extend(systems.iter().map(|system| system.label(has_rivals)));
    let label_width = widest(labels.iter().map(String::as_str));
    let mut columns: Vec<Column> = block.points.iter().map(|point| column(block, point, &systems)).collect();
    let fits = |columns: &[Column], marks| {
        let all: usize = columns.iter().map(|column| GAP + column.width(marks)).sum();
        label_width + all <= width
    };
    let marks = if fits(&columns, Marks::Words) { Marks::Words } else { Marks::Signs };
    let before = columns.len();
    while columns.len() > 1 && !fits(&columns, marks) {
        columns.pop();
    }
    let mut lines = Vec::new();
    if columns.iter().any(|column| !column.head.is_empty()) {
        lines.push(row(&labels[0], label_width, columns.iter().map(|column| (column.width(marks), head(column)))));
    }
    for (index, label) in labels.iter().skip(1).enumerate() {
        let is_muted = systems[index].is_reference && has_rivals;
        let cells = columns.iter().map(|column| (column.width(marks), column.cell(index, marks, is_muted)));
        lines.push(row(label, label_width, cells));
    }
    let entries = || columns.iter().flat_map(|column| &column.entries);
    Grid {
        columns_more: before - columns.len(),
        systems_more: all.len() - systems.len(),
        legend: legend(entries().filter_map(|entry| entry.standing)).filter(|_| marks == Marks::Signs),
        is_unreliable: entries().any(|entry| entry.is_unreliable),
        lines,
    }
}

/// Returns the systems that are shown. If there are more than `most`, those that may be
/// the best at some point come first.
fn chosen<'a>(block: &Block<'a>, all: &[System<'a>], most: usize) -> Vec<System<'a>> {
    let may_be_best = |system: &System<'a>| {
        let mut standings = block.points.iter().filter_map(|point| point.best()?.standing(system.name));
        standings.any(|standing| matches!(standing, Standing::Winner | Standing::Tie | Standing::Candidate))
    };
    let mut competitors: Vec<&System<'a>> = all.iter().filter(|system| !system.is_reference).collect();
    competitors.sort_by_key(|system| !may_be_best(system));
    competitors.truncate(most);
    all.iter().filter(|system| system.is_reference || competitors.contains(system)).copied().collect()
}

fn column(block: &Block<'_>, point: &Point, systems: &[System<'_>]) -> Column {
    let entry = |system: &System<'_>| match block.cell(point, system.name) {
        None => Entry { text: NONE.into(), is_unreliable: false, standing: None },
        Some(result) => entry(result, point),
    };
    Column { head: block.column(point), entries: systems.iter().map(entry).collect() }
}

fn entry(result: &CellResult, point: &Point) -> Entry {
    let without_figure = match result.status {
        Status::Skipped => Some("skipped"),
        Status::Failed => Some("failed"),
        Status::Missing => Some("missing"),
        Status::Valid | Status::Partly | Status::Invalid => None,
    };
    if let Some(word) = without_figure {
        return Entry { text: word.into(), is_unreliable: false, standing: None };
    }
    let (text, is_unreliable) = if point.unthrottled { throughput(result) } else { latency(result) };
    let standing = point.best().and_then(|ranked| ranked.standing(&result.cell.system.name));
    Entry { text, is_unreliable, standing: standing.filter(|_| !result.is_reference) }
}

/// Returns `36.3 / 89.0 µs`, and whether any of it is unreliable. If messages are lost, the
/// delivered share follows.
fn latency(result: &CellResult) -> (String, bool) {
    let of = |figure| {
        let estimate = result.figures.get(figure)?;
        let mark = if result.figures.may_be_quoted(figure) { "" } else { UNRELIABLE };
        Some((mark, text::time(estimate.value)))
    };
    let (p50, p99) = (of(Figure::LATENCY_P50), of(Figure::LATENCY_P99));
    let is_unreliable = [&p50, &p99].into_iter().flatten().any(|(mark, _)| *mark == UNRELIABLE);
    let unit = |figure: &Option<(&str, String)>| figure.as_ref()?.1.split_once(' ').map(|(_, unit)| unit.to_owned());
    let is_same = unit(&p50).is_some() && unit(&p50) == unit(&p99);
    let shown = |figure: Option<(&str, String)>, with_unit: bool| match figure {
        None => NONE.to_owned(),
        Some((mark, time)) if with_unit => format!("{mark}{time}"),
        Some((mark, time)) => format!("{mark}{}", time.split(' ').next().unwrap_or_default()),
    };
    let mut text = format!("{} / {}", shown(p50, !is_same), shown(p99, true));
    let share = result.figures.get(Figure::DELIVERED_RATIO).map(|share| share.value);
    if let Some(share) = share.filter(|share| *share < SHARE_TOLD) {
        text.push_str(&format!(" ({})", percent(share)));
    }
    (text, is_unreliable)
}

/// Returns `1.72M (24.0 %)`, and whether any of it is unreliable.
fn throughput(result: &CellResult) -> (String, bool) {
    let Some(rate) = result.figures.get(Figure::DELIVERED) else { return (NONE.into(), false) };
    let share = result.figures.get(Figure::DELIVERED_RATIO);
    let is_reliable = |figure| result.figures.get(figure).is_none() || result.figures.may_be_quoted(figure);
    let is_unreliable = !(is_reliable(Figure::DELIVERED) && is_reliable(Figure::DELIVERED_RATIO));
    let mark = if is_unreliable { UNRELIABLE } else { "" };
    let sign = if result.figures.sign(Figure::DELIVERED) == Sign::AtLeast { "≥" } else { "" };
    let share = share.map_or_else(|| NONE.to_owned(), |share| percent(share.value));
    (format!("{mark}{sign}{} ({share})", count(rate.value)), is_unreliable)
}

impl Column {
    /// Returns the width of the figures.
    fn text_width(&self) -> usize {
        widest(self.entries.iter().map(|entry| entry.text.as_str()))
    }

    /// Returns the width of figures and marks.
    fn width(&self, marks: Marks) -> usize {
        let mark = widest(self.entries.iter().filter_map(|entry| Some(mark(entry.standing?, marks)?.0)));
        let gap = usize::from(mark > 0);
        (self.text_width() + gap + mark).max(self.head.chars().count())
    }

    /// Returns the entry of a row.
    fn cell(&self, row: usize, marks: Marks, is_muted: bool) -> Line {
        let Entry { text, is_unreliable, standing } = &self.entries[row];
        let found = standing.and_then(|standing| mark(standing, marks));
        let tone = match found {
            _ if *is_unreliable => Tone::Warning,
            _ if is_muted => Tone::Muted,
            Some((_, tone)) => tone,
            None => Tone::Plain,
        };
        let mut line = Line::of(text.as_str(), tone);
        if let Some((word, tone)) = found {
            line.pad_to(self.text_width() + 1);
            line.push(word, tone);
        }
        line
    }
}

fn head(column: &Column) -> Line {
    Line::of(column.head.as_str(), Tone::Muted)
}

/// Returns a label and cells, each in its width.
fn row(label: &str, label_width: usize, cells: impl Iterator<Item = (usize, Line)>) -> Line {
    let mut line = Line::of(label, Tone::Plain);
    let mut end = label_width;
    for (width, cell) in cells {
        line.pad_to(end + GAP);
        line.append(cell);
        end += GAP + width;
    }
    line
}

/// Returns the mark of a place in a ranking, and its tone.
fn mark(standing: Standing, marks: Marks) -> Option<(&'static str, Tone)> {
    let (word, sign, tone) = match standing {
        Standing::Winner => ("winner", "▲", Tone::Good),
        Standing::Tie => ("tie", "=", Tone::Good),
        Standing::Candidate => ("candidate", "△", Tone::Plain),
        Standing::Behind => ("behind", "▽", Tone::Muted),
        Standing::Unranked | Standing::Alone => return None,
    };
    Some((if marks == Marks::Words { word } else { sign }, tone))
}

/// Returns the meaning of these signs; none if there are none.
fn legend(standings: impl Iterator<Item = Standing> + Clone) -> Option<String> {
    let all = [Standing::Winner, Standing::Tie, Standing::Candidate, Standing::Behind];
    let used = all.into_iter().filter(|standing| standings.clone().any(|other| other == *standing));
    let said = |standing| Some(format!("{} {}", mark(standing, Marks::Signs)?.0, mark(standing, Marks::Words)?.0));
    let said: Vec<String> = used.filter_map(said).collect();
    (!said.is_empty()).then(|| said.join("   "))
}

fn widest<'a>(texts: impl Iterator<Item = &'a str>) -> usize {
    texts.map(|text| text.chars().count()).max().unwrap_or_default()
}
