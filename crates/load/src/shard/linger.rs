//! Batches that publishers collect for a while.

use super::connection::State;
use super::state::Shard;
use crate::session::Session;
use pubmark_model::units::Ns;

impl<S: Session> Shard<'_, S> {
    /// Notes a batch that the connection's session has begun.
    #[inline]
    pub(super) fn note_batch(&mut self, index: usize, now: Ns) {
        if self.lingering.ns > 0
            && let Some(batch) = self.connections[index].session.begun()
        {
            self.lingering.due.push_back((now + self.lingering.ns, index as u32, batch));
        }
    }

    /// Sends the batches that have been collected for long enough. Returns the instant at which the next one has.
    pub(super) fn flush_batches(&mut self, now: Ns) -> Ns {
        while let Some((due, index, batch)) = self.lingering.due.front().copied() {
            if due > now {
                return due;
            }
            self.lingering.due.pop_front();
            let connection = &mut self.connections[index as usize];
            match connection.state {
                State::Up => {
                    self.answers.clear();
                    connection.session.flush(&self.settings, batch, &mut self.answers);
                    let written = connection.write(&self.answers);
                    self.settle(index as usize, written);
                }
                State::Gone => {}
                // It may be sent when the client is back.
                _ => self.lingering.due.push_back((now + self.lingering.ns, index, batch)),
            }
        }
        Ns::MAX
    }
}
