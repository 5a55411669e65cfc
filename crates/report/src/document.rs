//! Tables of harmless text, before any renderer: what every one of them shows.

use crate::bars::Scale;
use crate::text::{NO_SPREAD, NONE};

/// All that a report shows. Every string in it is clean of control characters
/// and bounded in length.
pub(crate) struct Document {
    /// The study's title.
    pub title: String,
    /// The question that it answers; may be empty.
    pub question: String,
    /// What is the same in all cells, key and value.
    pub constants: String,
    /// What the records answer, in sentences.
    pub answers: Vec<String>,
    /// The tables of figures.
    pub tables: Vec<Table>,
    /// The claims, where the study has any.
    pub claims: Option<Table>,
    /// Remarks on the whole.
    pub closing: Vec<String>,
}

/// Which cells have a row.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rows {
    /// Those that were to be run; of the others it is said how many there are, and why.
    ToBeRun,
    /// All of them.
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
    /// Whether the last column is prose, to be wrapped.
    pub ends_in_prose: bool,
    /// Where to find the columns for which there is no room.
    pub whole: &'static str,
    /// Bars that may stand beside a column, and which.
    pub bars: Option<(Scale, usize)>,
}

/// A remark beneath a table.
pub(crate) struct Note {
    /// In words.
    pub text: String,
    /// What it is about.
    pub about: About,
}

/// What a remark is about, and without which it says nothing.
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
    /// Whether it holds figures.
    pub is_figure: bool,
    /// Whether it says where a group lies, the same in all its rows.
    pub is_axis: bool,
    /// 0 stays whatever the width; of the others the greatest goes first.
    pub expendable: u8,
}

/// A row.
pub(crate) struct Row {
    /// An entry a column.
    pub entries: Vec<Entry>,
    /// How it stands out.
    pub mark: Mark,
    /// The value of its bar; a row that may not be quoted has none.
    pub bar: Option<f64>,
}

/// An entry of a table.
#[derive(Clone)]
pub(crate) struct Entry {
    /// The figure or text.
    pub text: String,
    /// How far the figure is sure; may be empty.
    pub spread: String,
}

/// How a row stands out.
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
        let rows: usize = self.groups.iter().map(Vec::len).sum();
        self.groups = self.groups.into_iter().flatten().take(most).map(|row| vec![row]).collect();
        if rows > most {
            self.notes.push(Note::on_rows(format!("… and {} more: {all}", rows - most)));
        }
        self
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

    /// What is counted and the same in all runs needs no interval to say so.
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
