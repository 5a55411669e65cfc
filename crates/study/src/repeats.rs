//! Strategy that makes a fixed number of runs of each cell, in the order of the plan.

use crate::plan::StudyPlan;
use crate::strategy::{NextRun, Strategy, StrategyError};
use pubmark_model::cell::Cell;
use pubmark_model::plan::{Place, Planned};
use pubmark_model::record::RunRecord;
use pubmark_model::units::Ns;
use std::collections::{HashSet, VecDeque};

/// Makes every run of a plan that has no record yet.
pub struct Repeats<'a> {
    plan: &'a StudyPlan,
    /// Remaining runs, with their positions in the order.
    left: VecDeque<(u64, Planned)>,
}

impl<'a> Repeats<'a> {
    /// Returns the strategy for a plan.
    pub fn new(plan: &'a StudyPlan) -> Repeats<'a> {
        Repeats { plan, left: VecDeque::new() }
    }
}

impl Strategy for Repeats<'_> {
    fn rows(&self) -> &[Cell] {
        self.plan.cells()
    }

    fn begin(&mut self, records: &[RunRecord], _: Ns) -> Result<(), StrategyError> {
        let done = finished(records, self.plan.cells());
        let order = (0..).zip(self.plan.order());
        self.left = order.filter(|(_, run)| !done.contains(run)).collect();
        Ok(())
    }

    fn left(&self) -> Vec<usize> {
        self.left.iter().map(|(_, run)| run.cell).collect()
    }

    fn next(&mut self, _: Ns) -> Result<Option<NextRun>, StrategyError> {
        let next = self.left.pop_front().map(|(position, Planned { cell: row, repeat })| NextRun {
            row,
            cell: self.plan.cells()[row].clone(),
            place: Place { repeat, position },
            grown: None,
        });
        Ok(next)
    }

    fn note(&mut self, _: &RunRecord, _: Ns) -> Option<String> {
        None
    }
}

/// Returns the runs that have a record and need not be made again. A failed run is tried again.
fn finished(records: &[RunRecord], cells: &[Cell]) -> HashSet<Planned> {
    let made = records.iter().filter(|record| record.error.is_none());
    made.filter_map(|record| {
        let cell = cells.iter().position(|cell| cell.axes == record.cell)?;
        Some(Planned { cell, repeat: record.repeat })
    })
    .collect()
}

#[cfg(test)]
mod tests;
