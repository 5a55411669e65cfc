//! What one subscriber received from one publisher.

use crate::ledger::SeenSequences;
use pubmark_model::units::Ns;

/// The messages that one subscriber received from one publisher.
pub(super) struct Stream {
    pub(super) seen: SeenSequences,
    pub(super) next: u32,
    pub(super) distinct: u64,
    pub(super) heard: bool,
    pub(super) ended: bool,
    pub(super) last_latency: Option<(u32, Ns)>,
}

impl Stream {
    pub(super) fn new(capacity: u64) -> Stream {
        Stream {
            seen: SeenSequences::with_capacity(capacity),
            next: 0,
            distinct: 0,
            heard: false,
            ended: false,
            last_latency: None,
        }
    }
}
