//! A study and its cells: planned once, and narrowed to what can be measured here.

use pubmark_model::cell::Cell;
use pubmark_model::diagnostic::Diagnostic;
use pubmark_model::plan::{Planned, cells, order};
use pubmark_model::promise::Promise;
use pubmark_model::study::{Skip, Study};

/// A study with its cells.
#[derive(Debug)]
pub struct StudyPlan {
    study: Study,
    cells: Vec<Cell>,
}

impl StudyPlan {
    /// Crosses a study's axes. Reports all impossible cells at once.
    pub fn new(study: Study) -> Result<StudyPlan, Vec<Diagnostic>> {
        let cells = cells(&study)?;
        let plan = StudyPlan { study, cells };
        if let Some(promise) = plan.study.promise().filter(|promise| !plan.tests(*promise)) {
            let keys = promise.keys();
            let error = Diagnostic::whole(format!("promise: no cell tests `{promise}`, so no system could break it"));
            return Err(vec![error.help(format!(
                "add a part with qos 1 or 2 and {keys}, or measure cards and use `pubmark report --promise`"
            ))]);
        }
        let cuts = |cell: &Cell| cell.skipped.is_some() || cell.faults.cuts_power();
        let is_set = plan.study.power().is_some() || plan.cells.iter().any(|cell| cell.axes.contains_key("power"));
        if is_set && !plan.cells.iter().any(cuts) {
            let error = Diagnostic::whole("power: no cell cuts the power of its server, so it would change nothing");
            return Err(vec![error.help("add fault = \"cut power of server at 2s for 1s\", or leave `power` out")]);
        }
        Ok(plan)
    }

    /// True if a cell that is not skipped tests a promise.
    pub fn tests(&self, promise: Promise) -> bool {
        self.cells.iter().any(|cell| cell.skipped.is_none() && Promise::tested_in(cell) == Some(promise))
    }

    /// Returns the study.
    pub fn study(&self) -> &Study {
        &self.study
    }

    /// Returns the study alone.
    pub fn into_study(self) -> Study {
        self.study
    }

    /// Returns the cells, including those that are skipped.
    pub fn cells(&self) -> &[Cell] {
        &self.cells
    }

    /// Returns the runs, in their order.
    pub fn order(&self) -> Vec<Planned> {
        order(&self.study, &self.cells)
    }

    /// Returns the numbers of cells that are not skipped, and of their runs.
    pub fn extent(&self) -> (usize, usize) {
        (self.cells.iter().filter(|cell| cell.skipped.is_none()).count(), self.order().len())
    }

    /// Skips more cells. Returns an error with all reasons if no cell is left.
    pub fn skip(&mut self, skips: Vec<Skip>) -> Result<(), Diagnostic> {
        for cell in self.cells.iter_mut().filter(|cell| cell.skipped.is_none()) {
            cell.skipped = skips.iter().find(|skip| skip.holds(&cell.axes)).map(|skip| skip.why.clone());
        }
        self.study.skips.extend(skips);
        match self.cells.iter().all(|cell| cell.skipped.is_some()) {
            true => Err(Diagnostic::whole("every cell is skipped: nothing would be measured")),
            false => Ok(()),
        }
    }
}
