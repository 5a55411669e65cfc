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
    /// It may be the best, and so may another.
    Candidate,
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
        CellVerdict::Candidate,
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
            CellVerdict::Candidate => "candidate",
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

    /// Returns whether the cell was compared with others of its point.
    pub(crate) fn is_ranked(self) -> bool {
        matches!(self, CellVerdict::Winner | CellVerdict::Tie | CellVerdict::Candidate | CellVerdict::Behind)
    }

    /// What it means, in a sentence.
    pub fn meaning(self) -> &'static str {
        match self {
            CellVerdict::Winner => "shown to be better than every other system here: the only candidate",
            CellVerdict::Tie => {
                "one of the best here: the candidates are shown to differ by less than what matters to the study (`tie`, 5 % by default)"
            }
            CellVerdict::Behind => {
                "another system here is shown to be better; `≥ 5.6×` says that the best one is at least 5.6 times as good"
            }
            CellVerdict::Candidate => {
                "may be the best, and so may another; `≤ 2.3×` says that the best one is at most 2.3 times as good"
            }
            CellVerdict::Unranked => {
                "the systems here delivered different shares of their messages, so their throughputs are not of the same work"
            }
            CellVerdict::Alone => "no other system here has a figure that may be compared",
            CellVerdict::Valid => "its figure is reliable, and the study has no other system here",
            CellVerdict::Reference => "measured beside the others, and never ranked",
            CellVerdict::Invalid => "no run counts for the figure that ranks systems; the reasons are below the table",
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
    if result.figures.comparable(column).is_empty() {
        return CellVerdict::Invalid;
    }
    if result.is_reference {
        return CellVerdict::Reference;
    }
    match point.best().and_then(|ranked| ranked.standing(&result.cell.system.name)) {
        Some(Standing::Winner) => CellVerdict::Winner,
        Some(Standing::Tie) => CellVerdict::Tie,
        Some(Standing::Behind) => CellVerdict::Behind,
        Some(Standing::Candidate) | None => CellVerdict::Candidate,
        Some(Standing::Unranked) => CellVerdict::Unranked,
        Some(Standing::Alone) if point.rivals > 1 => CellVerdict::Alone,
        Some(Standing::Alone) => CellVerdict::Valid,
    }
}
