//! State of a shard's subscribers that take messages at a rate of their own.

use crate::consume::ConsumePace;
use pubmark_model::header::MIN_LEN;
use pubmark_model::units::Ns;
use pubmark_model::workload::Workload;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The paces of a shard's subscribers.
pub struct Consumers {
    paces: Vec<ConsumePace>,
    /// Connections that are set aside, with the instant until which they are.
    aside: BinaryHeap<Reverse<(Ns, u32)>>,
    is_aside: Vec<bool>,
    /// Bytes read at once: no more than a message has, so that no read ends two of them.
    pub read_bytes: usize,
}

impl Consumers {
    /// Makes the paces of this many subscribers; `None` if they take what comes.
    pub fn new(workload: &Workload, start_ns: Ns, count: usize) -> Option<Consumers> {
        let pace = ConsumePace::new(workload, start_ns)?;
        Some(Consumers {
            paces: vec![pace; count],
            aside: BinaryHeap::new(),
            is_aside: vec![false; count],
            read_bytes: (workload.payload_bytes as usize).max(MIN_LEN),
        })
    }

    /// Sets a connection aside if its subscriber may not take a message yet. Returns whether it is.
    pub fn holds(&mut self, index: usize, now: Ns) -> bool {
        let next_ns = self.paces[index].next_ns();
        if now >= next_ns {
            return false;
        }
        if !std::mem::replace(&mut self.is_aside[index], true) {
            self.aside.push(Reverse((next_ns, index as u32)));
        }
        true
    }

    /// Notes that a subscriber took a message.
    pub fn took(&mut self, index: usize, now: Ns) {
        self.paces[index].took(now);
    }

    /// Returns the instant at which the next connection ceases to be set aside.
    pub fn next_ns(&self) -> Option<Ns> {
        self.aside.peek().map(|Reverse((at_ns, _))| *at_ns)
    }

    /// Takes the next connection that is set aside no longer.
    pub fn due(&mut self, now: Ns) -> Option<usize> {
        self.next_ns().filter(|at_ns| *at_ns <= now)?;
        let Reverse((_, index)) = self.aside.pop()?;
        self.is_aside[index as usize] = false;
        Some(index as usize)
    }
}
