//! Batches that publishers of a shard collect.

use pubmark_model::units::Ns;
use std::collections::VecDeque;

/// Batches that are being collected, in the order in which they are to be sent.
pub struct Lingering {
    /// Time for which a batch is collected; 0 if none is.
    pub ns: Ns,
    /// When it is to be sent, its connection, and its number.
    pub due: VecDeque<(Ns, u32, u32)>,
}

impl Lingering {
    pub fn new(ns: Ns) -> Lingering {
        Lingering { ns, due: VecDeque::new() }
    }
}
