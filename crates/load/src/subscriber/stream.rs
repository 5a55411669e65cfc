//! What one subscriber received from one publisher.

use crate::ledger::SeenSequences;
use pubmark_model::units::Ns;

/// The messages that one subscriber received from one publisher.
pub(super) struct Stream {
    pub(super) seen: SeenSequences,
    next: u32,
    /// The same for the other parts of its topic.
    next_of_others: Box<[u32]>,
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
            next_of_others: Box::default(),
            distinct: 0,
            heard: false,
            ended: false,
            last_latency: None,
        }
    }

    /// Returns the sequence behind the highest one that has arrived from this part of its topic.
    #[inline]
    pub(super) fn next(&mut self, part: u32) -> &mut u32 {
        if part == 0 { &mut self.next } else { self.next_of_other(part as usize - 1) }
    }

    fn next_of_other(&mut self, index: usize) -> &mut u32 {
        if index >= self.next_of_others.len() {
            let mut others = std::mem::take(&mut self.next_of_others).into_vec();
            others.resize((index + 1).next_power_of_two(), 0);
            self.next_of_others = others.into();
        }
        &mut self.next_of_others[index]
    }
}
