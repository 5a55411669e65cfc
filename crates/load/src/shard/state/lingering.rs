//! Batches that publishers of a shard collect.

use pubmark_model::units::Ns;
use std::collections::VecDeque;

/// Batches that are being collected.
pub struct Lingering {
    /// Time for which a batch is collected; 0 if none is.
    pub ns: Ns,
    /// When it is to be sent, in this order, its connection, and its number.
    pub due: VecDeque<(Ns, u32, u32)>,
    /// When the last batch of each connection is to be sent; empty if none is collected.
    pub last_ns: Vec<Ns>,
}

impl Lingering {
    /// Makes the state of this many connections.
    pub fn new(ns: Ns, connections: usize) -> Lingering {
        Lingering { ns, due: VecDeque::new(), last_ns: if ns > 0 { vec![0; connections] } else { Vec::new() } }
    }

    /// Adds a batch.
    pub fn add(&mut self, due_ns: Ns, index: usize, batch: u32) {
        let before = self.due.iter().rev().take_while(|(later_ns, ..)| *later_ns > due_ns).count();
        self.due.insert(self.due.len() - before, (due_ns, index as u32, batch));
        if let Some(last_ns) = self.last_ns.get_mut(index) {
            *last_ns = due_ns;
        }
    }
}
