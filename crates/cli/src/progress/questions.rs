//! How the questions of a study stand while it is measured: what is open, with how much
//! longer it takes, and what was decided last.

use pubmark_model::units::Ns;
use pubmark_report::text::clean;
use pubmark_study::strategy::{Outlook, Undecided};
use std::collections::HashSet;

/// So many of the questions that are open are said: those that are nearest.
pub const OPEN_MAX: usize = 3;
/// Longest question that is kept, characters.
const TEXT_CHARS: usize = 200;

/// A question that is open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenView {
    /// In words, fit for a screen.
    pub text: String,
    /// What is known of it, in words; empty where nothing is.
    pub known: String,
    /// About how much longer it takes, ns; none where nobody can say.
    pub more_ns: Option<Ns>,
}

/// How they stand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QuestionsBoard {
    /// How many are decided.
    pub decided: usize,
    /// How many are open, and may be decided yet.
    pub open: usize,
    /// How many no further run decides.
    pub closed: usize,
    /// Of the open ones those that are nearest to being decided, at most [`OPEN_MAX`].
    pub nearest: Vec<OpenView>,
    /// Those that were decided at the last look that decided any, with their answers.
    pub just_decided: Vec<String>,
    /// When the time is over, ns.
    pub ends_ns: Ns,
    /// All that are decided.
    known: HashSet<String>,
}

impl QuestionsBoard {
    /// They were looked at. Whether anything is decided that was not before.
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
