//! Batches that publishers collect for a while.
//!
//! Nothing leaves while a batch is collected, so a publisher wakes up when its batch has to leave, and not for each
//! message of it. The messages that have fallen due meanwhile are made then. Each counts as sent at its due time, plus
//! the delay of this wake-up: that is what the batch, and so the message, is late by.

use super::connection::State;
use super::outbound::SENDS;
use super::state::Shard;
use crate::session::Session;
use crate::window::Window;
use pubmark_model::header::MIN_LEN;
use pubmark_model::units::Ns;

impl<S: Session> Shard<'_, S> {
    /// Notes the batches that the connection's session has begun.
    #[inline]
    pub(super) fn note_batches(&mut self, index: usize, now: Ns) {
        while self.lingering.ns > 0
            && let Some(batch) = self.connections[index].session.begun()
        {
            self.lingering.add(now + self.lingering.ns, index, batch);
        }
    }

    /// Makes the messages of a publisher that are due, which was to wake up at `alarm_ns`. Returns the time after it, and
    /// when it has to wake up again, unless it has to wait for room.
    pub(super) fn send_collected(
        &mut self,
        index: usize,
        alarm_ns: Ns,
        woke_ns: Ns,
        window: &Window,
    ) -> (Ns, Option<Ns>) {
        let late_ns = woke_ns.saturating_sub(alarm_ns);
        let mut now = woke_ns;
        for _ in 0..SENDS {
            let due_ns = self.outbound.clients[index].due_ns(window);
            let next;
            (now, next) = self.send_next(index, (due_ns + late_ns).min(now), now, window);
            match next {
                Some(due_ns) if due_ns <= woke_ns => {}
                Some(due_ns) => return (now, Some(self.leaving_ns(index, due_ns, window))),
                None => return (now, None),
            }
        }
        (now, Some(self.outbound.clients[index].due_ns(window)))
    }

    /// Returns when something of a publisher has to leave, whose next message is due at `due_ns`: its batch, when it has
    /// been collected for long enough or when a message no longer fits.
    fn leaving_ns(&self, index: usize, due_ns: Ns, window: &Window) -> Ns {
        let session = &self.connections[index].session;
        let last_ns = self.lingering.last_ns.get(index).copied().unwrap_or(0);
        let is_open = session.held() > 0 && last_ns >= due_ns;
        let message_bytes = (self.workload.payload_bytes as usize).max(MIN_LEN);
        let full_ns = match session.collects(&self.settings, message_bytes, is_open) {
            0 => None,
            more => self.outbound.clients[index].due_later_ns(window, more),
        };
        let Some(full_ns) = full_ns else { return due_ns };
        let flush_ns = if is_open { last_ns } else { due_ns + self.lingering.ns };
        // A publisher reports its end at the end of the window.
        full_ns.min(flush_ns).min(window.to_ns.unwrap_or(Ns::MAX))
    }

    /// Sends the batches that have been collected for long enough. Returns the instant at which the next one has. Those
    /// that were full, and have left, are passed over.
    pub(super) fn flush_batches(&mut self, now: Ns) -> Ns {
        while let Some((due, index, batch)) = self.lingering.due.front().copied() {
            let connection = &mut self.connections[index as usize];
            if due > now && (connection.state != State::Up || connection.session.is_collecting(batch)) {
                return due;
            }
            self.lingering.due.pop_front();
            match connection.state {
                State::Up => {
                    self.answers.clear();
                    connection.session.flush(&self.settings, batch, &mut self.answers);
                    let written = connection.write(&self.answers);
                    self.settle(index as usize, written);
                }
                State::Gone => {}
                // It may be sent when the client is back.
                _ => self.lingering.add(now + self.lingering.ns, index as usize, batch),
            }
        }
        Ns::MAX
    }
}
