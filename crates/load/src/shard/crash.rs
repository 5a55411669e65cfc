//! Clients that are killed. Their connections are closed as the kernel closes those of a
//! killed process, without a disconnect; clients do not reconnect, and their results are
//! kept.

use super::connection::State;
use super::state::Shard;
use crate::clock;
use crate::session::Session;
use pubmark_model::units::Ns;

impl<S: Session> Shard<'_, S> {
    /// Reports, once all clients are dead, what they had sent and that nothing more will
    /// come.
    pub(super) fn keep_books(&mut self, now: Ns) -> Ns {
        if !std::mem::replace(&mut self.crashed, true) {
            self.crash();
        }
        if self.publishes() {
            self.say_sent();
            self.await_acknowledgements(now);
        } else {
            self.drain(now);
        }
        Ns::MAX
    }

    /// Kills all clients.
    fn crash(&mut self) {
        // The start may be set but not noticed yet.
        self.begin();
        for index in 0..self.connections.len() {
            self.ends(index, clock::now());
            let connection = &mut self.connections[index];
            let unwritten = connection.abandon_messages() + connection.session.held();
            connection.drop_carrier(State::Gone);
            self.outbound.take_back(index, unwritten);
        }
        let now = clock::now();
        self.again.clear();
        self.away.give_up();
        self.inbound.recorder.crashed(now);
        if let Some(window) = self.window {
            self.outbound.crash(&window, now);
        }
    }
}
