//! A run that was made, and its tear-down.

use super::processes::Processes;
use super::traces::Traces;
use crate::servers::ServerAtHand;
use pubmark_model::record::RunRecord;

/// A run's record, and what must be torn down once the record is stored: ending a server may take seconds, in which the
/// record could be lost.
pub struct FinishedRecord<'a> {
    /// Record of the run.
    pub record: RunRecord,
    /// Processes that still run.
    pub tear_down: TearDown<'a>,
}

/// Agents, link and server of a run that is over, and what its clients have left at the server. All of it ends when
/// this is dropped.
pub struct TearDown<'a> {
    pub(super) processes: Processes<'a>,
    /// By flow.
    pub(super) traces: Vec<Traces>,
}

impl<'a> TearDown<'a> {
    pub(super) fn new(processes: Processes<'a>) -> TearDown<'a> {
        TearDown { processes, traces: Vec::new() }
    }

    /// Ends the agents and removes what their clients have left at the server, if that stays. Returns a line about what
    /// could not be removed.
    pub fn clean(&mut self) -> Option<String> {
        let traces = std::mem::take(&mut self.traces);
        if !traces.is_empty() {
            self.processes.end_agents();
        }
        let left: Vec<String> = traces.into_iter().filter_map(|traces| traces.remove(&mut self.processes)).collect();
        (!left.is_empty()).then(|| left.join("; "))
    }

    /// Ends all remaining processes once the record is stored. Returns a line about what could not be removed from a
    /// server that stays; and the server if another run may use it: only after a valid run without remaining clients.
    pub fn settle(mut self, record: &RunRecord) -> (Option<String>, Option<ServerAtHand>) {
        let stays = self.clean();
        let may_stay = record.error.is_none() && record.verdict.valid;
        let left = if may_stay { self.processes.release() } else { None };
        (stays, left.filter(|one| one.server.is_left_alone()))
    }
}

impl Drop for TearDown<'_> {
    fn drop(&mut self) {
        self.clean();
        self.processes.end();
    }
}
