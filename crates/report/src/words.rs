//! What is said of a cell in one word: the same in a terminal, on the page, in
//! Markdown, CSV and JSON, and in `docs/report.md`.

use crate::analysis::{CellResult, Status};
use crate::points::{Point, headline};
use crate::ranking::Standing;

/// What is said of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CellVerdict {
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

impl CellVerdict {
    /// Every word, those of a ranking first.
    pub const ALL: [CellVerdict; 12] = [
        CellVerdict::Winner,
        CellVerdict::Tie,
        CellVerdict::Behind,
        CellVerdict::Undecided,
        CellVerdict::Unranked,
        CellVerdict::Alone,
        CellVerdict::Valid,
        CellVerdict::Reference,
        CellVerdict::Invalid,
        CellVerdict::Failed,
        CellVerdict::Missing,
        CellVerdict::Skipped,
    ];

    /// The word.
    pub fn text(self) -> &'static str {
        match self {
            CellVerdict::Winner => "winner",
            CellVerdict::Tie => "tie",
            CellVerdict::Behind => "behind",
            CellVerdict::Undecided => "undecided",
            CellVerdict::Unranked => "unranked",
            CellVerdict::Alone => "alone",
            CellVerdict::Valid => "valid",
            CellVerdict::Reference => "reference",
            CellVerdict::Invalid => "invalid",
            CellVerdict::Failed => "failed",
            CellVerdict::Missing => "missing",
            CellVerdict::Skipped => "skipped",
        }
    }

    /// What it means, in a sentence.
    pub fn meaning(self) -> &'static str {
        match self {
            CellVerdict::Winner => "shown to be better than every other system here",
            CellVerdict::Tie => {
                "one of the best here: shown to differ from the one that looks best by less than what matters to the study (`tie`, 5 % by default), while all others are behind"
            }
            CellVerdict::Behind => "another system here is shown to be better",
            CellVerdict::Undecided => {
                "neither is shown; `+4` says that about four more repeats would tell, if differences and noise are what they seem to be"
            }
            CellVerdict::Unranked => {
                "the systems here delivered different shares of their messages, so their throughputs are not of the same work"
            }
            CellVerdict::Alone => "its figure may be quoted, and that of no other system here",
            CellVerdict::Valid => "its figure may be quoted, and the study has no other system here",
            CellVerdict::Reference => "measured beside the others, and never ranked",
            CellVerdict::Invalid => {
                "the figure that ranks systems may not be quoted: the reasons stand below the table"
            }
            CellVerdict::Failed => "no run of it could be made",
            CellVerdict::Missing => "no run of it has been made yet",
            CellVerdict::Skipped => {
                "not run: the study leaves it out, or it cannot be played here; the reason stands at the end"
            }
        }
    }

    /// The word for a cell of this point.
    pub(crate) fn of(result: &CellResult, point: &Point) -> CellVerdict {
        match result.status {
            Status::Missing => CellVerdict::Missing,
            Status::Skipped => CellVerdict::Skipped,
            Status::Failed => CellVerdict::Failed,
            Status::Valid | Status::Partly | Status::Invalid => ranked(result, point),
        }
    }
}

fn ranked(result: &CellResult, point: &Point) -> CellVerdict {
    let column = headline(point.unthrottled);
    if !result.figures.may_be_quoted(column) {
        return CellVerdict::Invalid;
    }
    if result.is_reference {
        return CellVerdict::Reference;
    }
    match point.best().and_then(|ranked| ranked.standing(&result.cell.system.name)) {
        Some(Standing::Winner) => CellVerdict::Winner,
        Some(Standing::Tie) => CellVerdict::Tie,
        Some(Standing::Behind) => CellVerdict::Behind,
        Some(Standing::Undecided) | None => CellVerdict::Undecided,
        Some(Standing::Unranked) => CellVerdict::Unranked,
        Some(Standing::Alone) if point.rivals > 1 => CellVerdict::Alone,
        Some(Standing::Alone) => CellVerdict::Valid,
    }
}
