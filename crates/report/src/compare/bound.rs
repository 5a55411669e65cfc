//! Bounds that a figure has to keep by itself, whatever it was before: `p99 < 5ms`.

use super::gate::GateResult;
use crate::analysis::by_cell;
use crate::bounded_runs::{BoundVerdict, BoundedRuns};
use crate::text::clean;
use pubmark_model::objective::ObjectiveTerm;
use pubmark_model::record::RunRecord;

/// Longest name of a cell in a result, characters.
const LABEL_CHARS: usize = 120;

/// A bound that has to be kept.
#[derive(Clone, Debug, PartialEq)]
pub struct BoundGate {
    /// As typed, harmless.
    pub text: String,
    /// What has to hold.
    pub term: ObjectiveTerm,
}

impl BoundGate {
    /// What has to hold, so as it was typed.
    pub fn new(term: ObjectiveTerm) -> BoundGate {
        BoundGate { text: clean(term.text(), LABEL_CHARS), term }
    }

    /// It and the runs of a cell.
    pub(super) fn of<'a>(&'a self, runs: &'a [&'a RunRecord]) -> BoundedRuns<'a> {
        BoundedRuns { term: &self.term, runs }
    }

    /// What became of it, over cells by their names.
    pub(super) fn result(&self, cells: impl Iterator<Item = (String, BoundVerdict)>) -> GateResult {
        let mut result = GateResult::new(&self.text);
        for (label, verdict) in cells {
            result.comparisons += 1;
            let label = clean(&label, LABEL_CHARS);
            match verdict {
                BoundVerdict::Kept => {}
                BoundVerdict::Broken(what) => result.failed.push(format!("{label}: {what}")),
                BoundVerdict::Open(what) => result.too_noisy.push(format!("{label}: {what}")),
                BoundVerdict::Unknown(why) => result.undecided.push(format!("{label} ({why})")),
            }
        }
        result.settled()
    }

    /// What the runs of each cell of a report say of it.
    pub(super) fn over(&self, report: &crate::report::Report, chosen: impl Fn(usize) -> bool) -> GateResult {
        let runs_of = by_cell(report.cells().len(), report.cells_of_runs().iter().copied().zip(report.runs()));
        let cells = report.cells().iter().enumerate();
        let cells = cells.filter(|(index, result)| result.cell.skipped.is_none() && chosen(*index));
        self.result(cells.map(|(index, result)| (result.cell.label(), self.of(&runs_of[index]).once())))
    }
}

/// What became of bounds that every cell of a report has to keep.
pub fn bounds(report: &crate::report::Report, bounds: &[BoundGate]) -> Vec<GateResult> {
    bounds.iter().map(|bound| bound.over(report, |_| true)).collect()
}
