//! Interface of strategies, which decide which run of a study comes next.
//!
//! A strategy receives the records so far, the duration of each run, and the time; it starts nothing, reads no file and
//! has no clock. [`crate::runner::run_study`] makes the runs.

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
    /// Returns the cells that a display lists: the plan's, unless the strategy has cells of its own.
    fn rows(&self) -> &[Cell];

    /// Returns whether the study grows while it is measured, so that a resumed folder may have other parts.
    fn grows(&self) -> bool {
        false
    }

    /// Takes in the existing records.
    ///
    /// # Errors
    /// If they belong to another study.
    fn begin(&mut self, records: &[RunRecord], now_ns: Ns) -> Result<(), StrategyError>;

    /// Returns the remaining runs, in their order, if known in advance, as indices into [`Strategy::rows`].
    fn left(&self) -> Vec<usize> {
        Vec::new()
    }

    /// Returns the next run; `None` at the end.
    ///
    /// # Errors
    /// If the records cannot be analysed, or a cell that follows from them is impossible.
    fn next(&mut self, now_ns: Ns) -> Result<Option<NextRun>, StrategyError>;

    /// Takes in the record of the last run, and how long it took. Returns a conclusion from it beyond its figures, if
    /// any.
    fn note(&mut self, record: &RunRecord, took_ns: Ns) -> Option<String>;

    /// Returns what is decided and what is open; `None` if there are no questions.
    fn outlook(&self) -> Option<Outlook> {
        None
    }
}

/// A run to be made.
#[derive(Clone, Debug)]
pub struct NextRun {
    /// Its row, an index into [`Strategy::rows`].
    pub row: usize,
    /// Its cell.
    pub cell: Cell,
    /// Its repeat and its position.
    pub place: Place,
    /// The study that has the cell, if it differs from that of the results folder.
    pub grown: Option<Study>,
}

impl NextRun {
    /// Returns the label of its cell. Leaves out the part in a study that grows: the search made it.
    pub fn label(&self) -> String {
        if self.grown.is_none() {
            return self.cell.label();
        }
        let mut axes = self.cell.axes.clone();
        axes.retain(|name, _| name != "part" && name != "duration");
        label(&axes)
    }
}

/// Reason why a strategy cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum StrategyError {
    /// A cell is impossible.
    #[error("the study cannot be planned")]
    Plan(Vec<Diagnostic>),
    /// The records belong to another study.
    #[error("the records are of another study")]
    OtherStudy,
    /// The records cannot be analysed.
    #[error("the records cannot be looked at: {0}")]
    Look(#[source] Box<dyn Error + Send + Sync>),
}

/// Conclusions of a study so far, and what is open.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outlook {
    /// Name of the questions, in the plural: `questions`, `gates`.
    pub asked: &'static str,
    /// Questions that are decided.
    pub decided: Vec<Decided>,
    /// Questions that further runs may decide.
    pub open: Vec<Undecided>,
    /// Number of questions that no further run decides.
    pub closed: usize,
    /// Rows that need further runs.
    pub wanted: BTreeSet<usize>,
    /// Instant of CLOCK_MONOTONIC, ns, at which the time is over.
    pub ends_ns: Ns,
}

/// A question that is decided.
#[derive(Clone, Debug, PartialEq)]
pub struct Decided {
    /// Text of the question.
    pub text: String,
    /// Result.
    pub answer: String,
}

/// A question that is open.
#[derive(Clone, Debug, PartialEq)]
pub struct Undecided {
    /// Text of the question.
    pub text: String,
    /// Description of what is known so far; may be empty.
    pub known: String,
    /// Approximate time that it still takes, ns; `None` if unknown.
    pub more_ns: Option<Ns>,
}

#[cfg(test)]
pub(crate) mod tests;
