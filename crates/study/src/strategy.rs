//! Decides which run of a study comes next.
//!
//! A strategy is told the records so far, what each run took, and the time; it starts
//! nothing, reads no file and has no clock. [`crate::runner::run_study`] makes the runs.

use pubmark_model::cell::{Cell, label};
use pubmark_model::diagnostic::Diagnostic;
use pubmark_model::plan::Place;
use pubmark_model::record::RunRecord;
use pubmark_model::study::Study;
use pubmark_model::units::Ns;
use std::collections::BTreeSet;
use std::error::Error;

/// Decides which run comes next.
pub trait Strategy {
    /// The cells that a display lists: the plan's, unless the strategy has cells of its own.
    fn rows(&self) -> &[Cell];

    /// Whether the study grows while it is measured, so that the folder that it goes on
    /// with may have other parts.
    fn grows(&self) -> bool {
        false
    }

    /// Takes in the records that are there already.
    ///
    /// # Errors
    /// Where they are not of what is asked.
    fn begin(&mut self, records: &[RunRecord], now_ns: Ns) -> Result<(), StrategyError>;

    /// The runs that are left, in their order, where that is known before: as indices
    /// into [`Strategy::rows`].
    fn left(&self) -> Vec<usize> {
        Vec::new()
    }

    /// Returns the next run; none where it is over.
    ///
    /// # Errors
    /// Where the records cannot be analysed, or a cell that follows from them cannot be.
    fn next(&mut self, now_ns: Ns) -> Result<Option<NextRun>, StrategyError>;

    /// Takes in the record of that run, and how long it took. Returns what it says, in
    /// words, where it says more than its figures.
    fn note(&mut self, record: &RunRecord, took_ns: Ns) -> Option<String>;

    /// What is known and what is open; none where nothing is asked.
    fn outlook(&self) -> Option<Outlook> {
        None
    }
}

/// A run that is to be made.
#[derive(Clone, Debug)]
pub struct NextRun {
    /// Its row, of [`Strategy::rows`].
    pub row: usize,
    /// Its cell.
    pub cell: Cell,
    /// Its repeat and its number.
    pub place: Place,
    /// The study that has the cell, where that of the results folder does not.
    pub grown: Option<Study>,
}

impl NextRun {
    /// Its cell in words. A study that grows has parts that are the search's own.
    pub fn label(&self) -> String {
        if self.grown.is_none() {
            return self.cell.label();
        }
        let mut axes = self.cell.axes.clone();
        axes.retain(|name, _| name != "part" && name != "duration");
        label(&axes)
    }
}

/// Why a strategy cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum StrategyError {
    /// A cell cannot be.
    #[error("the study cannot be planned")]
    Plan(Vec<Diagnostic>),
    /// The records are of something else.
    #[error("the records are of another study")]
    OtherStudy,
    /// The records cannot be analysed.
    #[error("the records cannot be looked at: {0}")]
    Look(#[source] Box<dyn Error + Send + Sync>),
}

/// What a study has answered so far, and what is open.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outlook {
    /// What is asked, in the plural: `questions`, `gates`.
    pub asked: &'static str,
    /// What is decided.
    pub decided: Vec<Decided>,
    /// What further runs may decide.
    pub open: Vec<Undecided>,
    /// How many no further run decides.
    pub closed: usize,
    /// The rows that have further runs to come.
    pub wanted: BTreeSet<usize>,
    /// When the time is over, an instant of CLOCK_MONOTONIC, ns.
    pub ends_ns: Ns,
}

/// Something that is decided.
#[derive(Clone, Debug, PartialEq)]
pub struct Decided {
    /// What was asked.
    pub text: String,
    /// The answer.
    pub answer: String,
}

/// Something that is open.
#[derive(Clone, Debug, PartialEq)]
pub struct Undecided {
    /// What is asked.
    pub text: String,
    /// What is known of it, in words; empty where it is not known in this way.
    pub known: String,
    /// About how much longer it takes, ns; none where nobody can say.
    pub more_ns: Option<Ns>,
}

#[cfg(test)]
pub(crate) mod tests;
