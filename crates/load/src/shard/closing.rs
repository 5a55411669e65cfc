//! The end of a shard's connections: clients send what is left, and wait for the servers'
//! answers. A socket that is closed with unread input resets its connection, and the
//! server may lose what was sent to it.

use super::carrier::ByteStream;
use super::connection::{Changes, State};
use super::notifier::NOTIFIER;
use super::state::Shard;
use super::waiting::EVENTS;
use crate::clock;
use crate::session::{Session, SessionEvent};
use pubmark_model::units::{Ns, SECOND};
use rustix::event::epoll;

/// Maximum time that all servers together may take to close their side.
const PATIENCE: Ns = SECOND;
/// Time that a server may take to answer before its client shuts down its own side. The
/// client waits because RabbitMQ, over TLS, takes an immediate shutdown for a broken
/// connection and ignores what was sent before it.
const ANSWER: Ns = SECOND / 2;

impl<S: Session> Shard<'_, S> {
    /// Disconnects from the server on every connection that is up, and waits until the
    /// server has closed all of them, for [`PATIENCE`] at most.
    pub(super) fn close_all(&mut self) {
        let began_ns = clock::now();
        let mut deadline_ns = began_ns + ANSWER;
        let mut open = 0;
        for index in 0..self.connections.len() {
            if self.connections[index].is_away() {
                self.ends_unsaid(index);
            }
            if self.connections[index].state == State::Up && self.disconnect(index, began_ns + PATIENCE) {
                open += 1;
                continue;
            }
            self.connections[index].drop_carrier(State::Gone);
        }
        let mut events = Vec::with_capacity(EVENTS);
        while open > 0 {
            let left = deadline_ns.saturating_sub(clock::now());
            let timeout = clock::timespec(left);
            events.clear();
            match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), Some(&timeout)) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(_) => return,
            }
            if left == 0 && deadline_ns == began_ns + PATIENCE {
                return;
            }
            if left == 0 {
                deadline_ns = began_ns + PATIENCE;
                self.shut_down();
            }
            for event in events.iter().filter(|event| event.data.u64() != NOTIFIER) {
                let index = event.data.u64() as usize;
                if self.connections[index].state == State::Up && !self.hear_out(index, began_ns + PATIENCE) {
                    self.connections[index].drop_carrier(State::Gone);
                    open -= 1;
                }
            }
        }
    }

    /// Disconnects a client; returns true if there is an answer to wait for.
    fn disconnect(&mut self, index: usize, until_ns: Ns) -> bool {
        // Of a connection that the server has ended, it gets no goodbye.
        if self.wills.is_some() && !self.hear_out(index, until_ns) {
            self.ends_unsaid(index);
            return false;
        }
        let spec = self.spec(index);
        let connection = &mut self.connections[index];
        self.answers.clear();
        connection.session.close(&self.settings, &spec, &mut self.answers);
        if connection.write(&self.answers).is_err() {
            self.ends_unsaid(index);
            return false;
        }
        // If there is nothing to send, there is no answer either.
        if self.answers.is_empty()
            && let Some(carrier) = &mut connection.carrier
        {
            carrier.finish();
        }
        self.hear_out(index, until_ns)
    }

    /// Closes the writing side of every remaining connection.
    fn shut_down(&mut self) {
        let left = self.connections.iter_mut().filter(|connection| connection.state == State::Up);
        left.filter_map(|connection| connection.carrier.as_mut()).for_each(ByteStream::finish);
    }

    /// Passes messages that arrive while a client disconnects to the ledger.
    fn overhear(&mut self, index: usize, count: usize) {
        let Shard { connections, settings, buffer, answers, inbound, longest_bytes, .. } = self;
        let mut heard = |heard: SessionEvent<'_>, _: &mut Changes| {
            if let (SessionEvent::Message { payload, .. }, Some(client)) = (heard, inbound.clients.get(index)) {
                client.arrived_after(&mut inbound.recorder, payload);
            }
        };
        answers.clear();
        // A session that has disconnected may treat further input as an error.
        let _ = connections[index].feed(settings, &buffer[..count], *longest_bytes, answers, &mut heard);
    }

    /// Writes and reads what is left until `until_ns`. Returns false at the connection's
    /// end, or if input never ends.
    fn hear_out(&mut self, index: usize, until_ns: Ns) -> bool {
        let connection = &mut self.connections[index];
        let is_cut = connection.has_pending() && connection.flush().is_err();
        loop {
            match self.connections[index].read(&mut self.buffer) {
                Ok(Some((count, _, now))) if now < until_ns => {
                    self.overhear(index, count);
                }
                Ok(None) => return !is_cut,
                Ok(Some(_)) | Err(_) => return false,
            }
        }
    }
}
