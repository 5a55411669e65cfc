//! The words for states, each defined once: the same in a terminal, on the page, in
//! Markdown and in `summary.csv`, as `docs/glossary.md` and `docs/report.md` have them.

use crate::analysis::{CellResult, Status};
use crate::points::{Point, headline};
use crate::ranking::Standing;
use pubmark_model::record::FigureGroup;

/// The state of a run or figure that nothing speaks against.
pub const OK: &str = "ok";
/// The state of a run or figure that something disturbed.
pub const UNRELIABLE: &str = "unreliable";
/// The state of a run that did not take place or did not end.
pub const FAILED: &str = "failed";
/// The state of a run that the study plans and that has no record.
pub const MISSING: &str = "missing";
/// The state of a cell or run that was not to take place.
pub const SKIPPED: &str = "skipped";
/// The state of a point, question, claim or gate that is not decided yet.
pub const OPEN: &str = "open";
/// The state of a figure that has no fair comparison at its point.
pub const NOT_COMPARABLE: &str = "not comparable";
/// The outcome of a gate that no figure breaks.
pub const HELD: &str = "held";
/// The outcome of a gate that a figure breaks.
pub const BROKEN: &str = "broken";

/// Returns the figures that a reason makes unreliable: `p50, p99`; empty where these are all.
pub fn figures(groups: &[FigureGroup]) -> String {
    let touched = FigureGroup::ALL.iter().filter(|group| groups.contains(group));
    let words: Vec<&str> = touched.map(|group| group.word()).collect();
    if words.len() == FigureGroup::ALL.len() { String::new() } else { words.join(", ") }
}

/// State of a cell.
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
    /// Not ranked, because it broke the promise of the study.
    LeftOut,
    /// Its figure is unreliable.
    Invalid,
    /// All its runs failed.
    Failed,
    /// No record.
    Missing,
    /// Not run by the study.
    Skipped,
}

impl CellVerdict {
    /// Every word, those of a ranking first.
    pub const ALL: [CellVerdict; 13] = [
        CellVerdict::Winner,
        CellVerdict::Tie,
        CellVerdict::Behind,
        CellVerdict::Candidate,
        CellVerdict::Unranked,
        CellVerdict::Alone,
        CellVerdict::Valid,
        CellVerdict::Reference,
        CellVerdict::LeftOut,
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
            CellVerdict::Unranked => NOT_COMPARABLE,
            CellVerdict::Alone => "alone",
            CellVerdict::Valid => OK,
            CellVerdict::Reference => "reference",
            CellVerdict::LeftOut => "left out",
            CellVerdict::Invalid => UNRELIABLE,
            CellVerdict::Failed => FAILED,
            CellVerdict::Missing => MISSING,
            CellVerdict::Skipped => SKIPPED,
        }
    }

    /// Returns whether the cell was compared with others of its point.
    pub(crate) fn is_ranked(self) -> bool {
        matches!(self, CellVerdict::Winner | CellVerdict::Tie | CellVerdict::Candidate | CellVerdict::Behind)
    }

    /// Returns its meaning in a sentence.
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
            CellVerdict::Alone => "no other system here has a figure to compare with",
            CellVerdict::Valid => "its figure is reliable, and the study has no other system here",
            CellVerdict::Reference => "measured beside the others, and never ranked",
            CellVerdict::LeftOut => "not ranked, because it lost acknowledged messages that it should keep (`promise`)",
            CellVerdict::Invalid => {
                "the figure that ranks systems is unreliable in all its runs; the reasons are below the table"
            }
            CellVerdict::Failed => "all its runs failed",
            CellVerdict::Missing => "it has not run yet",
            CellVerdict::Skipped => {
                "not run: the study skips it, or something it needs is not available; the reasons are at the end"
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
    if result.breaks_promise {
        return CellVerdict::LeftOut;
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
