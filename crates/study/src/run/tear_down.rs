//! A run that was made, and what of it still stands.

use super::processes::Processes;
use crate::deploy::Deployed;
use pubmark_host::scratch::Scratch;
use pubmark_model::record::RunRecord;

/// A run's record, and what is to be torn down when the record is safe: ending
/// a server may take seconds, in which the record could be lost.
pub struct Made {
    /// What was measured.
    pub record: RunRecord,
    /// What still stands.
    pub tear_down: TearDown,
}

/// Agents, link and server of a run that is over. They end when this is dropped.
pub struct TearDown {
    pub(super) processes: Processes,
    /// Dropped before its folder is.
    pub(super) deployed: Deployed,
    pub(super) scratch: Scratch,
    /// Then nothing is said to the agents any more: one may not listen.
    pub(super) failed: bool,
}

impl Drop for TearDown {
    fn drop(&mut self) {
        if !self.failed {
            self.processes.end(&self.scratch, self.deployed.keeps());
        }
        self.processes.link = None;
    }
}
