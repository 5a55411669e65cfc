//! What wakes a shard that waits for events.

use rustix::event::{EventfdFlags, eventfd};
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// The bell's number among the connections.
pub const BELL: u64 = u64::MAX;

/// Wakes a shard.
#[derive(Clone)]
pub struct Bell(pub(super) Arc<OwnedFd>);

impl Bell {
    /// A bell for a new shard.
    pub fn new() -> std::io::Result<Bell> {
        Ok(Bell(Arc::new(eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?)))
    }

    /// Wakes the shard, if it still is.
    pub fn ring(&self) {
        let _ = rustix::io::write(&*self.0, &1u64.to_ne_bytes());
    }
}
