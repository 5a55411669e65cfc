//! A run that was made, and what of it still stands.

use super::processes::Processes;
use crate::servers::ServerAtHand;
use pubmark_model::record::RunRecord;

/// A run's record, and what is to be torn down when the record is safe: ending
/// a server may take seconds, in which the record could be lost.
pub struct Made<'a> {
    /// What was measured.
    pub record: RunRecord,
    /// What still stands.
    pub tear_down: TearDown<'a>,
}

/// Agents, link and server of a run that is over. They end when this is dropped.
pub struct TearDown<'a>(pub(super) Processes<'a>);

impl TearDown<'_> {
    /// Ends what still stands when the record is safe. What is left is a server that
    /// another run may have: this one was valid, and none of its clients is left.
    pub fn settle(mut self, record: &RunRecord) -> Option<ServerAtHand> {
        let may_stay = record.error.is_none() && record.verdict.valid;
        let left = if may_stay { self.0.release() } else { None };
        left.filter(|one| one.server.is_left_alone())
    }
}

impl Drop for TearDown<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}
