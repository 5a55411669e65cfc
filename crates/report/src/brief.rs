//! The short result: the best system for each question, on one screen.
//!
//! It shows the figures of the tables and the words of the ranking, and adds no statistics.
//! `--all` prints the tables with the rest.

mod block;
mod card;
mod conclusion;
mod duration;
mod footer;
mod grid;
mod header;
mod line;
mod tables;

pub use footer::BriefPlaces;

use crate::report::Report;
use crate::text::counted;
use block::{Block, blocks};
use grid::grid;
use line::{Line, Tone, Wrapping};

/// Most lines of a short result.
pub const BRIEF_LINES_MAX: usize = 40;
/// Most lines of the sentences below a block.
const CONCLUSION_LINES: usize = 5;
/// Most lines of a block beside those of competitors.
const BLOCK_LINES: usize = 12;
/// Lines of the smallest block: a blank one, a heading and a row.
const BLOCK_LINES_MIN: usize = 3;
/// Most systems of a block, references aside.
const SYSTEMS_MAX: usize = 12;

impl Report {
    /// Returns whether there is a short result. A search for a capacity and a comparison of
    /// two arms have a result of their own, which is [`Report::terminal`].
    pub fn has_brief(&self) -> bool {
        self.study().recorded_capacity().is_none() && self.study().ab.is_none()
    }

    /// Returns the short result for a terminal of this width: at most
    /// [`BRIEF_LINES_MAX`] lines, of which only paths may be wider. If there is none
    /// ([`Report::has_brief`]), the tables.
    pub fn brief(&self, places: &BriefPlaces, width: usize, colour: bool) -> String {
        if !self.has_brief() {
            return self.terminal(width, colour);
        }
        let lines = lines(self, places, width);
        lines.iter().map(|line| line.render(colour) + "\n").collect()
    }
}

/// A part of the result. It is shown whole or not at all.
struct Section {
    lines: Vec<Line>,
    /// The points that it shows.
    points: usize,
    /// The meaning of signs in it.
    legend: Option<String>,
    /// True if a figure in it is marked as unreliable.
    is_unreliable: bool,
}

fn lines(report: &Report, places: &BriefPlaces, width: usize) -> Vec<Line> {
    let mut lines = header::lines(report, width);
    let footer = footer::lines(report, places, width);
    // A blank line, the legend, and the line about points that have no room.
    let room = BRIEF_LINES_MAX.saturating_sub(lines.len() + footer.len() + 3);
    let (sections, points_more) = fitting(report, width, room);
    let legend = legend(&sections);
    for section in sections {
        lines.push(Line::default());
        lines.extend(section.lines);
    }
    if points_more > 0 {
        lines.push(Line::of(format!("… and {}: --all", counted(points_more, "more point")), Tone::Muted));
    }
    lines.push(Line::default());
    lines.extend(legend.map(|text| Line::of(text, Tone::Muted)));
    lines.extend(footer);
    lines
}

/// The sections that have room.
struct Screen {
    /// Lines that are free.
    left: usize,
    /// Each with its place.
    sections: Vec<(usize, Section)>,
}

impl Screen {
    /// Adds a section if it has room, or if it `must` be there. Returns whether it was
    /// added.
    fn add(&mut self, place: usize, section: Section, must: bool) -> bool {
        let lines = section.lines.len() + 1;
        let fits = must || lines <= self.left;
        if fits {
            self.left = self.left.saturating_sub(lines);
            self.sections.push((place, section));
        }
        fits
    }
}

/// Returns the sections that have room, in the order of the study, and the number of
/// points that have no room. The first block of each kind comes before all second ones.
fn fitting(report: &Report, width: usize, room: usize) -> (Vec<Section>, usize) {
    let mut screen = Screen { left: room, sections: Vec::new() };
    let card = card::only_cell(report);
    let tables = tables::sections(report, width);
    if let Some(cell) = card {
        let for_tables: usize = tables.iter().map(|lines| lines.len() + 1).sum();
        let (lines, is_unreliable) = card::lines(report, cell, width, room.saturating_sub(for_tables + 1));
        screen.add(0, Section { lines, points: 1, legend: None, is_unreliable }, true);
    }
    for lines in tables {
        screen.add(0, Section { lines, points: 0, legend: None, is_unreliable: false }, false);
    }
    let all = if card.is_some() { Vec::new() } else { blocks(report) };
    let mut points_more = 0;
    for (turn, place) in in_turns(&all).into_iter().enumerate() {
        let points = all[place].points.len();
        let shown = if turn > 0 && screen.left < BLOCK_LINES_MIN {
            0
        } else {
            let section = section(&all[place], report.study().tie(), width, room);
            let points = section.points;
            if screen.add(place + 1, section, turn == 0) { points } else { 0 }
        };
        points_more += points - shown;
    }
    screen.sections.sort_by_key(|(place, _)| *place);
    (screen.sections.into_iter().map(|(_, section)| section).collect(), points_more)
}

/// Returns the places of blocks: the first of each kind, then the second of each, and so on.
fn in_turns(blocks: &[Block<'_>]) -> Vec<usize> {
    let is_of = |one: &Block<'_>, other: &Block<'_>| {
        (one.unthrottled, one.points[0].part()) == (other.unthrottled, other.points[0].part())
    };
    let nth = |place: usize| blocks[..place].iter().filter(|other| is_of(other, &blocks[place])).count();
    let mut places: Vec<usize> = (0..blocks.len()).collect();
    places.sort_by_cached_key(|place| nth(*place));
    places
}

/// Lays out a block with its heading and its sentence. `room`: lines that are free.
fn section(block: &Block<'_>, tie: f64, width: usize, room: usize) -> Section {
    let grid = grid(block, width, room.saturating_sub(BLOCK_LINES).clamp(2, SYSTEMS_MAX));
    let mut lines = Wrapping { width, lines_max: 2, indent: 2 }.lines(&block.heading(), Tone::Heading);
    lines.extend(grid.lines);
    let left_out = [(grid.systems_more, "more system"), (grid.columns_more, "more column")];
    let left_out: Vec<String> =
        left_out.into_iter().filter(|(count, _)| *count > 0).map(|(count, noun)| counted(count, noun)).collect();
    if !left_out.is_empty() {
        lines.push(Line::of(format!("… and {}: --all", left_out.join(", ")), Tone::Muted));
    }
    lines.extend(conclusion(block, tie, width));
    Section {
        lines,
        points: block.points.len() - grid.columns_more,
        legend: grid.legend,
        is_unreliable: grid.is_unreliable,
    }
}

/// Returns the sentences of a block, as many as have room.
fn conclusion(block: &Block<'_>, tie: f64, width: usize) -> Vec<Line> {
    let said = conclusion::conclusion(block, tie);
    let wrapping = Wrapping { width, lines_max: CONCLUSION_LINES, indent: 2 };
    let mut lines: Vec<Line> = Vec::new();
    for (index, sentence) in said.iter().enumerate() {
        let own = wrapping.lines(&format!("→ {sentence}"), Tone::Plain);
        let rest = usize::from(index + 1 < said.len());
        if index > 0 && lines.len() + own.len() + rest > CONCLUSION_LINES {
            let more = counted(said.len() - index, "more sentence");
            lines.push(Line::of(format!("→ … and {more}: --all"), Tone::Muted));
            break;
        }
        lines.extend(own);
    }
    lines
}

/// Returns the meaning of the signs in these sections.
fn legend(sections: &[Section]) -> Option<String> {
    let mut said: Vec<&str> = Vec::new();
    if sections.iter().any(|section| section.is_unreliable) {
        said.push("! unreliable");
    }
    for sign in sections.iter().filter_map(|section| section.legend.as_deref()).flat_map(|text| text.split("   ")) {
        if !said.contains(&sign) {
            said.push(sign);
        }
    }
    (!said.is_empty()).then(|| said.join("   "))
}
