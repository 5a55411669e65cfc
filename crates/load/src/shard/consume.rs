//! Subscribers of a shard that take messages at a rate of their own: a connection from which
//! nothing may be taken yet is set aside until then. Its messages wait in the kernel, and then at
//! the server.

use super::connection::State;
use super::errors::ShardError;
use super::state::{Consumers, Shard};
use crate::session::Session;
use pubmark_model::units::Ns;

impl<S: Session> Shard<'_, S> {
    /// Reads from connections that are set aside no longer: from all of them once the drain has
    /// begun. Returns the instant at which more are due.
    pub(super) fn resume(&mut self, now: Ns) -> Result<Ns, ShardError> {
        if self.context.control.draining().is_some() {
            let mut consumers = self.consumers.take();
            while let Some(index) = consumers.as_mut().and_then(|consumers| consumers.due(Ns::MAX)) {
                self.read(index, false)?;
            }
            return Ok(Ns::MAX);
        }
        while let Some(index) = self.consumers.as_mut().and_then(|consumers| consumers.due(now)) {
            self.read(index, false)?;
        }
        Ok(self.consumers.as_ref().and_then(Consumers::next_ns).unwrap_or(Ns::MAX))
    }

    /// Returns how many bytes may be read from a connection now; 0 if it is set aside.
    #[inline]
    pub(super) fn may_read(&mut self, index: usize, over: bool) -> usize {
        let all = self.buffer.len();
        let Some(consumers) = &mut self.consumers else { return all };
        // What else a server says, it says to clients that are not up yet.
        let waits = !over && self.connections[index].state == State::Up;
        if waits && consumers.holds(index, crate::clock::now()) { 0 } else { all.min(consumers.read_bytes) }
    }
}
