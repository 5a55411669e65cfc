//! Two results set side by side: what has changed from A to B, and what is
//! only noise.
//!
//! Cells are matched by their place on the axes. A figure's value in each
//! valid run is one observation ([`pubmark_stats::change()`]); invalid runs are
//! never used. A change is called one where it stands out among all the
//! comparisons that are made ([`pubmark_stats::holm`]): those under a gate are
//! one family, all others another, so that a gate is not made blind by what is
//! looked at beside it.

mod arms;
mod arms_page;
mod bound;
mod comparison;
mod decide;
mod difference;
mod figure;
mod gate;
mod gate_evaluation;
mod gates;
mod history;
mod junit;
mod markdown;
mod page;
mod select;

pub use arms::{ArmsComparison, ArmsResult};
pub use bound::{BoundGate, bounds};
pub use comparison::{CellChange, ChangeCounts, ChangeOutcome, Comparison, FigureChange};
pub use decide::{compare, compare_with};
pub use difference::EnvironmentDifference;
pub use gate::{Gate, GateError, GateOutcome, GateResult, Threshold};
pub use gates::{Gates, GatesError};
pub use history::{History, HistoryFolder, HistoryReader, HistorySeries};
pub use junit::junit;
pub use select::{AxisFilter, AxisPair, Selection, SelectionError};

use crate::terminal;

impl Comparison {
    /// Returns all tables for a terminal of so many columns. `names` are what A and B are
    /// called.
    pub fn terminal(&self, names: [&str; 2], width: usize, colour: bool) -> String {
        terminal::render(&page::document(self, names), width, colour)
    }

    /// Returns the same on one screen: what changed, the worst first, and the gates.
    pub fn brief(&self, names: [&str; 2], width: usize, colour: bool) -> String {
        terminal::render(&page::brief(self, names), width, colour)
    }

    /// Returns GitHub Markdown for a comment: the summary first, then the changes, and the rest
    /// folded.
    pub fn markdown(&self, names: [&str; 2]) -> String {
        markdown::render(self, names)
    }
}
