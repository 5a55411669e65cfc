//! The live table: a pure function of a study's state, the time and the size of the screen.

use super::board::{Board, CellState, Current};
use super::questions::{OPEN_MAX, OpenView, QuestionsBoard};
use pubmark_model::units::{Ns, SECOND};
use pubmark_report::text::{count, time};
use pubmark_report::words::{FAILED, OK, UNRELIABLE};
use pubmark_study::live::Phase;
use pubmark_study::runner::Tally;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Number of cells beyond which studies are shown by system.
const CELLS_MAX: usize = 12;
/// Lines beside the rows: title, headings, current run, last run.
const FIXED: usize = 5;
/// Minimum and maximum width of the name column.
const NAME: (usize, usize) = (12, 60);

/// Emphasis of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// No emphasis.
    Plain,
    /// The title.
    Bold,
    /// Headings, and rows to come.
    Dim,
    /// Rows of the current run.
    Live,
    /// Unreliable and failed runs.
    Bad,
}

/// A line of the screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScreenLine {
    /// Its text, no wider than the screen.
    pub text: String,
    /// Its emphasis.
    pub tone: Tone,
}

/// Returns the display for a screen of this size. It leaves the last column and the last row free, so that no terminal
/// wraps or scrolls.
pub fn lines(board: &Board, now_ns: Ns, columns: usize, rows: usize) -> Vec<ScreenLine> {
    let (width, height) = (columns.saturating_sub(1), rows.saturating_sub(1).max(1));
    let mut lines = vec![line(title(board, now_ns, width), Tone::Bold)];
    let asked = board.questions.as_ref().map(|asked| questions(asked, height.saturating_sub(FIXED) / 3));
    let asked = asked.unwrap_or_default();
    let room = height.saturating_sub(FIXED + asked.len());
    let groups = if board.cells.len() <= CELLS_MAX.min(room) { by_cell(board) } else { by_system(board) };
    if room > 0 {
        lines.extend(table(&groups, width, room));
    }
    lines.extend(asked);
    lines.extend(present(board, now_ns));
    let last = board.last.as_ref().map(|last| line(format!("last  {last}"), Tone::Dim));
    lines.extend(last);
    lines.truncate(height);
    lines.iter_mut().for_each(|line| line.text = fit(&line.text, width));
    lines
}

fn line(text: String, tone: Tone) -> ScreenLine {
    ScreenLine { text, tone }
}

/// Returns the study's name with its progress and its remaining time at the right.
fn title(board: &Board, now_ns: Ns, width: usize) -> String {
    let left = duration(board.left_ns(now_ns));
    let right = match &board.questions {
        Some(questions) => format!(
            "{} decided, {} open; {} runs, {left} left",
            questions.decided,
            questions.open,
            board.tally().runs()
        ),
        None => format!("{}/{} runs, {left} left", board.tally().runs(), board.runs),
    };
    let title = fit(&board.title, width.saturating_sub(right.width() + 2));
    let gap = width.saturating_sub(title.width() + right.width());
    format!("{title}{}{right}", " ".repeat(gap))
}

/// Returns the open questions, nearest first, and those decided last, in at most `room` lines.
fn questions(asked: &QuestionsBoard, room: usize) -> Vec<ScreenLine> {
    let decided = asked.just_decided.last().filter(|_| room > 1);
    let open = asked.nearest.iter().take(room.saturating_sub(usize::from(decided.is_some())).min(OPEN_MAX));
    let open = open.map(|question| line(format!("open  {}", still_open(question)), Tone::Plain));
    open.chain(decided.map(|decided| line(format!("done  {decided}"), Tone::Dim))).collect()
}

/// Stands behind an open question whose remaining time is not known.
pub const CANNOT_ESTIMATE: &str = "cannot estimate the time still needed";

/// Describes an open question with the estimated time that it still takes.
pub fn still_open(question: &OpenView) -> String {
    let OpenView { text, known, more_ns } = question;
    match (known.is_empty(), more_ns) {
        (false, _) => format!("{text}: {known}"),
        (true, Some(ns)) => format!("{text}; about {} more", duration(*ns)),
        (true, None) => format!("{text}; {CANNOT_ESTIMATE}"),
    }
}

/// A row of the table: a cell, or all cells of a system.
struct Group {
    name: String,
    cells: usize,
    done: usize,
    running: usize,
    planned: usize,
    tally: Tally,
}

impl Group {
    fn new(name: &str) -> Group {
        Group { name: name.to_owned(), cells: 0, done: 0, running: 0, planned: 0, tally: Tally::default() }
    }

    fn add(&mut self, cell: &CellState, is_running: bool) {
        self.cells += 1;
        self.running += usize::from(is_running);
        self.done += usize::from(!is_running && cell.is_done());
        self.planned += cell.planned;
        self.tally.add(&cell.tally);
    }

    fn left(&self) -> usize {
        self.cells - self.done - self.running
    }

    fn tone(&self) -> Tone {
        match self {
            group if group.running > 0 => Tone::Live,
            group if group.tally.invalid + group.tally.failed > 0 => Tone::Bad,
            group if group.tally.runs() == 0 => Tone::Dim,
            _ => Tone::Plain,
        }
    }
}

fn is_running(board: &Board, index: usize) -> bool {
    board.current.as_ref().is_some_and(|current| current.cell == index)
}

fn by_cell(board: &Board) -> Vec<Group> {
    let group = |(index, cell): (usize, &CellState)| {
        let mut group = Group::new(&cell.label);
        group.add(cell, is_running(board, index));
        group
    };
    board.cells.iter().enumerate().map(group).collect()
}

fn by_system(board: &Board) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for (index, cell) in board.cells.iter().enumerate() {
        let at = groups.iter().position(|group| group.name == cell.system).unwrap_or_else(|| {
            groups.push(Group::new(&cell.system));
            groups.len() - 1
        });
        groups[at].add(cell, is_running(board, index));
    }
    groups
}

/// Returns headings and as many rows as there is room for: rows that run and rows to come precede finished ones.
fn table(groups: &[Group], width: usize, room: usize) -> Vec<ScreenLine> {
    let widest = groups.iter().map(|group| group.name.width()).max().unwrap_or(0);
    let figures = row("", ["done", "running", "left", "runs", OK, UNRELIABLE, FAILED], 0).width();
    let name = widest.clamp(NAME.0, NAME.1).min(width.saturating_sub(figures).max(NAME.0));
    let heads = row("cells", ["done", "running", "left", "runs", OK, UNRELIABLE, FAILED], name);
    let mut lines = vec![line(heads, Tone::Dim)];
    let mut shown: Vec<usize> = (0..groups.len()).collect();
    let mut hidden = Vec::new();
    if groups.len() > room {
        shown.sort_by_key(|index| match &groups[*index] {
            group if group.running > 0 => 0,
            group if group.left() > 0 => 1,
            _ => 2,
        });
        hidden = shown.split_off(room - 1);
        shown.sort_unstable();
    }
    for index in shown {
        let group = &groups[index];
        let texts = [
            group.done.to_string(),
            group.running.to_string(),
            group.left().to_string(),
            format!("{}/{}", group.tally.runs(), group.planned),
            group.tally.valid.to_string(),
            group.tally.invalid.to_string(),
            group.tally.failed.to_string(),
        ];
        lines.push(line(row(&group.name, texts.each_ref().map(String::as_str), name), group.tone()));
    }
    if !hidden.is_empty() {
        let (mut done, mut left) = (0, 0);
        hidden.iter().for_each(|index| {
            done += groups[*index].done;
            left += groups[*index].left() + groups[*index].running;
        });
        let text = format!("… {} more rows: {done} cells done, {left} left", hidden.len());
        lines.push(line(text, Tone::Dim));
    }
    lines
}

fn row(name: &str, figures: [&str; 7], width: usize) -> String {
    let name = fit(name, width);
    let pad = " ".repeat(width.saturating_sub(name.width()));
    let [done, running, left, runs, valid, invalid, failed] = figures;
    format!("{name}{pad}  {done:>5}  {running:>7}  {left:>5}  {runs:>9}  {valid:>5}  {invalid:>10}  {failed:>6}")
}

/// Returns the current run, in two lines.
fn present(board: &Board, now_ns: Ns) -> Vec<ScreenLine> {
    let Some(current) = &board.current else { return Vec::new() };
    let head = format!("now   {}: {}", current.label, phase(current, now_ns));
    let Some(figures) = &current.figures else {
        return vec![line(head, Tone::Live)];
    };
    let mut text = format!(
        "      sent {} ({}/s)  received {} ({}/s)",
        count(figures.sent as f64),
        count(figures.sent_per_s),
        count(figures.received as f64),
        count(figures.received_per_s)
    );
    if let Some(lag_ns) = figures.own_lag_max_ns {
        text.push_str(&format!("  generator delay ≤ {}", time(lag_ns as f64)));
    }
    vec![line(head, Tone::Live), line(text, Tone::Plain)]
}

/// Describes the phase of a run.
pub fn phase(current: &Current, now_ns: Ns) -> String {
    let s = |ns: Ns| format!("{:.1}", ns as f64 / SECOND as f64);
    match current.phase {
        Phase::Starting => format!("starting, {} s", s(now_ns.saturating_sub(current.began_ns))),
        Phase::Load { start_ns, from_ns, .. } if now_ns < from_ns => {
            format!("warm-up {} of {} s", s(now_ns.saturating_sub(start_ns)), s(from_ns.saturating_sub(start_ns)))
        }
        Phase::Load { from_ns, to_ns: None, .. } => format!("window, {} s", s(now_ns - from_ns)),
        Phase::Load { from_ns, to_ns: Some(to_ns), .. } if now_ns < to_ns => {
            format!("window {} of {} s", s(now_ns - from_ns), s(to_ns - from_ns))
        }
        Phase::Load { .. } | Phase::Draining => "draining".into(),
    }
}

/// Formats a time for people.
pub fn duration(ns: Ns) -> String {
    let s = ns.div_ceil(SECOND);
    match (s / 3_600, s / 60 % 60, s % 60) {
        (0, 0, s) => format!("{s} s"),
        (0, minutes, s) => format!("{minutes} min {s:02} s"),
        (hours, minutes, _) => format!("{hours} h {minutes:02} min"),
    }
}

/// Shortens a text to this many columns of a terminal.
pub fn fit(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let (mut out, mut used) = (String::new(), 1);
    for c in text.chars() {
        used += c.width().unwrap_or(1);
        if used > width {
            break;
        }
        out.push(c);
    }
    if width > 0 {
        out.push('…');
    }
    out
}

#[cfg(test)]
mod tests;
