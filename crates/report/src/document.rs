//! Tables of harmless text, before any renderer: what every one of them shows.

use crate::bars::Scale;
use crate::text::{NO_SPREAD, NONE};

/// Content of a report. All strings are free of control characters and of limited length.
pub(crate) struct Document {
    /// The study's title.
    pub title: String,
    /// The question that it answers; may be empty.
    pub question: String,
    /// Values that are the same in all cells, as key and value.
    pub constants: String,
    /// Results in sentences.
    pub answers: Vec<String>,
    /// The tables of figures.
    pub tables: Vec<Table>,
    /// The claims, where the study has any.
    pub claims: Option<Table>,
    /// Remarks on the whole.
    pub closing: Vec<String>,
}

/// Selection of the cells that have a row.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rows {
    /// Cells that were to be run; the skipped ones are counted, with their reasons.
    ToBeRun,
    /// All cells.
    All,
}

/// A table.
pub(crate) struct Table {
    /// Its heading.
    pub title: String,
    /// Its columns.
    pub heads: Vec<Head>,
    /// Its rows; a group holds what is to be compared.
    pub groups: Vec<Vec<Row>>,
    /// Remarks beneath it.
    pub notes: Vec<Note>,
    /// True if the last column is prose, to be wrapped.
    pub ends_in_prose: bool,
    /// Option that prints the columns for which there is too little room.
    pub whole: &'static str,
    /// Bars that may stand beside a column, and which.
    pub bars: Option<(Scale, usize)>,
}

/// A remark beneath a table.
pub(crate) struct Note {
    /// In words.
    pub text: String,
    /// Subject of the remark.
    pub about: About,
}

/// Subject of a remark. If it is not shown, the remark is omitted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum About {
    /// The rows.
    Rows,
    /// The spreads.
    Spreads,
    /// A column, by index.
    Column(usize),
}

/// The head of a column.
pub(crate) struct Head {
    /// Its name.
    pub name: String,
    /// True if it contains figures.
    pub is_figure: bool,
    /// True if it contains the position of a group, which is the same in all its rows.
    pub is_axis: bool,
    /// 0 stays whatever the width; of the others the greatest goes first.
    pub expendable: u8,
}

impl Head {
    /// Makes the head of a column that is no position of a group.
    pub(crate) fn new(name: impl Into<String>, is_figure: bool, expendable: u8) -> Head {
        Head { name: name.into(), is_figure, is_axis: false, expendable }
    }
}

/// A row.
pub(crate) struct Row {
    /// An entry a column.
    pub entries: Vec<Entry>,
    /// Mark of the row.
    pub mark: Mark,
    /// The value of its bar; a row that may not be quoted has none.
    pub bar: Option<f64>,
}

/// An entry of a table.
#[derive(Clone)]
pub(crate) struct Entry {
    /// The figure or text.
    pub text: String,
    /// Uncertainty of the figure; may be empty.
    pub spread: String,
}

/// Mark of a row.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    /// Not at all.
    Plain,
    /// The best.
    Good,
    /// Not to be quoted.
    Bad,
    /// For comparison only.
    Muted,
}

impl Note {
    pub(crate) fn on_rows(text: String) -> Note {
        let about = About::Rows;
        Note { text, about }
    }
}

impl Table {
    /// Returns the table with its first rows, one after another without gaps, and a remark on how
    /// many more there are and what prints them.
    pub(crate) fn first_rows(mut self, most: usize, all: &str) -> Table {
        let more = self.drop_rows(most);
        self.groups = self.groups.into_iter().flatten().map(|row| vec![row]).collect();
        if more > 0 {
            self.notes.push(Note::on_rows(format!("… and {more} more: {all}")));
        }
        self
    }

    /// Drops all rows after the first, and returns how many these were.
    pub(crate) fn drop_rows(&mut self, most: usize) -> usize {
        let rows: usize = self.groups.iter().map(Vec::len).sum();
        let mut left = most;
        for group in &mut self.groups {
            group.truncate(left);
            left -= group.len();
        }
        self.groups.retain(|group| !group.is_empty());
        rows.saturating_sub(most)
    }
}

impl Entry {
    pub(crate) fn plain(text: String) -> Entry {
        Entry { text, spread: String::new() }
    }

    pub(crate) fn none() -> Entry {
        Entry::plain(NONE.into())
    }

    pub(crate) fn without_spread(self) -> Entry {
        Entry::plain(self.text)
    }

    /// Omits the interval of a count that is the same in all runs.
    pub(crate) fn without_zero_spread(self) -> Entry {
        if self.spread == NO_SPREAD { self.without_spread() } else { self }
    }

    /// The figure with its spread.
    pub(crate) fn whole(&self) -> String {
        if self.spread.is_empty() { self.text.clone() } else { format!("{} {}", self.text, self.spread) }
    }
}

pub(crate) fn table(
    title: &str,
    heads: Vec<Head>,
    groups: Vec<Vec<Row>>,
    notes: Vec<String>,
    ends_in_prose: bool,
) -> Table {
    let notes = notes.into_iter().map(|text| Note { text, about: About::Rows }).collect();
    Table { title: title.into(), heads, groups, notes, ends_in_prose, whole: "--json", bars: None }
}
