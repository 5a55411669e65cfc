//! Connections at the ports of members, and members that go away for a while.

use super::client::PeerConnection;
use super::error::{ServeError, failed};
use super::{Flags, Server};
use crate::speech::{Leaving, PeerMembers, Speech};
use pubmark_clock::now;
use rustix::event::epoll;
use std::io;

impl<S: Speech> Server<'_, S> {
    /// Returns the endpoints at which it listens, with a comma between two.
    pub(super) fn endpoints(&mut self) -> Result<String, ServeError> {
        let addresses = self.ports.addresses()?;
        let all: Vec<String> = addresses.iter().map(|address| format!("{}://{address}", S::SCHEME)).collect();
        if addresses.len() > 1 {
            let numbers = addresses.iter().map(|address| address.port()).collect();
            self.coordinator.borrow_mut().cluster = PeerMembers::new(numbers);
        }
        Ok(all.join(","))
    }

    /// Accepts connections at the port of this place. A member that is away closes them.
    pub(super) fn accept(&mut self, place: usize) -> Result<(), ServeError> {
        loop {
            let stream = match self.ports.accept(place) {
                Ok(stream) => stream,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::ConnectionAborted) => {
                    continue;
                }
                Err(error) => return Err(failed("port")(error)),
            };
            let connections = &mut self.dispatcher.tally.connections;
            connections.accepted += 1;
            let number = connections.accepted;
            let connect = &self.dispatcher.script().connect;
            let is_away = !self.coordinator.borrow().cluster.is_here(place);
            let (close, denied) = (connect.close.contains(&number) || is_away, connect.deny.contains(&number));
            let answer_after_ns = connect.answer_after.0;
            if close {
                self.dispatcher.tally.connections.closed += 1;
                continue;
            }
            self.dispatcher.tally.connections.denied += u64::from(denied);
            if stream.set_nonblocking(true).and_then(|()| stream.set_nodelay(true)).is_err() {
                continue;
            }
            let mute_until = if answer_after_ns > 0 { now() + answer_after_ns } else { 0 };
            let mut client = Box::new(PeerConnection::new(stream, S::new(denied), mute_until, place));
            client.speech.obey(self.dispatcher.script());
            client.speech.share(&self.coordinator, place);
            client.closing = client.speech.greet(&mut client.out);
            let index = self.world.clients.len();
            let data = epoll::EventData::new_u64(index as u64);
            let flags = Flags::IN | Flags::OUT | Flags::RDHUP | Flags::ET;
            epoll::add(&self.epoll, &client.stream, data, flags).map_err(failed("epoll"))?;
            self.world.pending += client.pending();
            self.world.clients.push(Some(client));
            self.mark_dirty(index);
        }
    }

    /// Lets a member be away: its connections end when what was written on them is sent.
    pub(super) fn leave(&mut self, Leaving { place, for_ns }: Leaving) {
        self.coordinator.borrow_mut().cluster.leaves(place);
        self.ports.returns = Some((place, now().saturating_add(for_ns)));
        for index in 0..self.world.clients.len() {
            if let Some(Some(client)) = self.world.clients.get_mut(index)
                && client.place == place
            {
                client.closing = true;
                self.mark_dirty(index);
            }
        }
    }

    /// Lets the member come back whose absence is over.
    pub(super) fn end_absence(&mut self) {
        if let Some((place, _)) = self.ports.returns.filter(|(_, at_ns)| *at_ns <= now()) {
            self.ports.returns = None;
            self.coordinator.borrow_mut().cluster.returns(place);
        }
    }
}
