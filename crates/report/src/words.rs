//! What is said of a cell in one word: the same in a terminal, on the page, in
//! Markdown, CSV and JSON, and in `docs/report.md`.

use crate::analysis::{CellResult, Status};
use crate::figures::Column;
use crate::floor::is_reference;
use crate::points::{Point, headline};
use crate::ranking::Standing;

/// What is said of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// Better than every other system.
    Winner,
    /// One of the best, which do not differ.
    Tie,
    /// Worse than another.
    Behind,
    /// Neither is shown.
    Undecided,
    /// Not comparable.
    Unranked,
    /// The rivals have no figure.
    Alone,
    /// There are no rivals.
    Valid,
    /// Not to be ranked.
    Reference,
    /// Not to be quoted.
    Invalid,
    /// No run could be made.
    Failed,
    /// No record.
    Missing,
    /// Left out by the study.
    Skipped,
}

impl Word {
    /// Every word, those of a ranking first.
    pub const ALL: [Word; 12] = [
        Word::Winner,
        Word::Tie,
        Word::Behind,
        Word::Undecided,
        Word::Unranked,
        Word::Alone,
        Word::Valid,
        Word::Reference,
        Word::Invalid,
        Word::Failed,
        Word::Missing,
        Word::Skipped,
    ];

    /// The word.
    pub fn text(self) -> &'static str {
        match self {
            Word::Winner => "winner",
            Word::Tie => "tie",
            Word::Behind => "behind",
            Word::Undecided => "undecided",
            Word::Unranked => "unranked",
            Word::Alone => "alone",
            Word::Valid => "valid",
            Word::Reference => "reference",
            Word::Invalid => "invalid",
            Word::Failed => "failed",
            Word::Missing => "missing",
            Word::Skipped => "skipped",
        }
    }

    /// What it means, in a sentence.
    pub fn meaning(self) -> &'static str {
        match self {
            Word::Winner => "shown to be better than every other system here",
            Word::Tie => {
                "one of the best here: shown to differ from the one that looks best by less than 5 %, while all others are behind"
            }
            Word::Behind => "another system here is shown to be better",
            Word::Undecided => {
                "neither is shown; `+4` says that about four more repeats would tell, if differences and noise are what they seem to be"
            }
            Word::Unranked => {
                "the systems here delivered different shares of their messages, so their throughputs are not of the same work"
            }
            Word::Alone => "its figure may be quoted, and that of no other system here",
            Word::Valid => "its figure may be quoted, and the study has no other system here",
            Word::Reference => "measured beside the others, and never ranked",
            Word::Invalid => "the figure that ranks systems may not be quoted: the reasons stand below the table",
            Word::Failed => "no run of it could be made",
            Word::Missing => "no run of it has been made yet",
            Word::Skipped => "the study leaves it out, with a reason",
        }
    }

    /// The word for a cell of this point.
    pub(crate) fn of(result: &CellResult, point: &Point) -> Word {
        match result.status {
            Status::Missing => Word::Missing,
            Status::Skipped => Word::Skipped,
            Status::Failed => Word::Failed,
            Status::Valid | Status::Partly | Status::Invalid => ranked(result, point),
        }
    }
}

fn ranked(result: &CellResult, point: &Point) -> Word {
    let column = Column::from(headline(point.unthrottled));
    if !result.figures.may_be_quoted(column) {
        return Word::Invalid;
    }
    if is_reference(&result.cell.system) {
        return Word::Reference;
    }
    match point.best().and_then(|ranked| ranked.standing(&result.cell.system)) {
        Some(Standing::Winner) => Word::Winner,
        Some(Standing::Tie) => Word::Tie,
        Some(Standing::Behind) => Word::Behind,
        Some(Standing::Undecided) | None => Word::Undecided,
        Some(Standing::Unranked) => Word::Unranked,
        Some(Standing::Alone) if point.rivals > 1 => Word::Alone,
        Some(Standing::Alone) => Word::Valid,
    }
}
