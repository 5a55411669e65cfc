//! Wakes a shard that waits for events.

use rustix::event::{EventfdFlags, eventfd};
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// The notifier's number among the connections.
pub const NOTIFIER: u64 = u64::MAX;

/// Wakes a shard.
#[derive(Clone)]
pub struct Notifier(pub(super) Arc<OwnedFd>);

impl Notifier {
    /// Makes a notifier for a new shard.
    pub fn new() -> std::io::Result<Notifier> {
        Ok(Notifier(Arc::new(eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?)))
    }

    /// Wakes the shard, if it still runs.
    pub fn notify(&self) {
        let _ = rustix::io::write(&*self.0, &1u64.to_ne_bytes());
    }
}
