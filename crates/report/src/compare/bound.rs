//! Bounds that a figure has to keep by itself, whatever it was before: `p99 < 5ms`.

use super::gate::{GateResult, is_of_flow};
use crate::analysis::{CellResult, by_cell};
use crate::bound_check::{BoundVerdict, BoundedRuns};
use crate::text::clean;
use pubmark_model::objective::ObjectiveTerm;
use pubmark_model::record::RunRecord;

/// Longest name of a cell in a result, characters.
const LABEL_CHARS: usize = 120;

/// A bound that has to be kept.
#[derive(Clone, Debug, PartialEq)]
pub struct BoundGate {
    /// Text as typed, cleaned.
    pub text: String,
    /// The flow that it is about; without one it is about every cell.
    pub flow: Option<String>,
    /// The bound.
    pub term: ObjectiveTerm,
}

impl BoundGate {
    /// Makes a gate of a bound, of the flow that it names.
    pub fn new(term: ObjectiveTerm) -> BoundGate {
        let text = clean(term.text(), LABEL_CHARS);
        let (flow, term) = term.split_flow();
        BoundGate { text, flow, term }
    }

    /// Pairs the gate with the runs of a cell.
    pub(super) fn of<'a>(&'a self, runs: &'a [&'a RunRecord]) -> BoundedRuns<'a> {
        BoundedRuns { term: &self.term, runs }
    }

    /// Returns the result of the gate over named cells.
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
        if let (0, Some(flow)) = (result.comparisons, &self.flow) {
            result.undecided.push(format!("there is no flow `{}`", clean(flow, LABEL_CHARS)));
        }
        result.settled()
    }

    /// Checks each cell of a report.
    pub(super) fn over(&self, report: &crate::report::Report, chosen: impl Fn(usize) -> bool) -> GateResult {
        let runs_of = by_cell(report.cells().len(), report.cells_of_runs().iter().copied().zip(report.runs()));
        let cells = report.cells().iter().enumerate();
        let is_flow = |result: &CellResult| is_of_flow(self.flow.as_deref(), &result.cell.axes);
        let cells = cells.filter(|(index, result)| result.cell.skipped.is_none() && chosen(*index) && is_flow(result));
        self.result(cells.map(|(index, result)| (result.cell.label(), self.of(&runs_of[index]).once())))
    }
}

/// Checks bounds that every cell of a report has to meet.
pub fn bounds(report: &crate::report::Report, bounds: &[BoundGate]) -> Vec<GateResult> {
    bounds.iter().map(|bound| bound.over(report, |_| true)).collect()
}
