//! State of a study's questions while it is measured: the open ones with the time that they still take, and those
//! decided last.

use pubmark_model::units::Ns;
use pubmark_report::text::clean;
use pubmark_study::strategy::{Outlook, Undecided};
use std::collections::HashSet;

/// Maximum number of open questions that are shown: those nearest to a decision.
pub const OPEN_MAX: usize = 3;
/// Maximum length of a question, characters.
const TEXT_CHARS: usize = 200;

/// A question that is open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenView {
    /// Its text, printable.
    pub text: String,
    /// Description of what is known; may be empty.
    pub known: String,
    /// Approximate time that it still takes, ns; `None` if unknown.
    pub more_ns: Option<Ns>,
}

/// State of the questions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QuestionsBoard {
    /// Number of decided questions.
    pub decided: usize,
    /// Number of open questions that may still be decided.
    pub open: usize,
    /// Number of questions that no further run decides.
    pub closed: usize,
    /// Open questions nearest to a decision, at most [`OPEN_MAX`].
    pub nearest: Vec<OpenView>,
    /// Questions decided by the last evaluation that decided any, with their results.
    pub just_decided: Vec<String>,
    /// Instant at which the time is over, ns.
    pub ends_ns: Ns,
    /// All decided questions.
    known: HashSet<String>,
}

impl QuestionsBoard {
    /// Takes in an evaluation. Returns whether anything new is decided.
    pub fn look(&mut self, outlook: &Outlook) -> bool {
        (self.decided, self.open, self.closed) = (outlook.decided.len(), outlook.open.len(), outlook.closed);
        self.ends_ns = outlook.ends_ns;
        let clean = |text: &str| clean(text, TEXT_CHARS);
        let view =
            |open: &Undecided| OpenView { text: clean(&open.text), known: clean(&open.known), more_ns: open.more_ns };
        let mut open: Vec<OpenView> = outlook.open.iter().map(view).collect();
        open.sort_by_key(|question| question.more_ns.unwrap_or(Ns::MAX));
        open.truncate(OPEN_MAX);
        self.nearest = open;
        let fresh: Vec<String> = outlook
            .decided
            .iter()
            .filter(|question| !self.known.contains(&question.text))
            .map(|question| clean(&format!("{}: {}", question.text, question.answer)))
            .collect();
        self.known = outlook.decided.iter().map(|question| question.text.clone()).collect();
        let is_new = !fresh.is_empty();
        if is_new {
            self.just_decided = fresh;
        }
        is_new
    }
}
