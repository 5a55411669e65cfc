//! Ports of the server: one, or one for each member of a cluster; and members that go away for a while.

use super::client::PeerConnection;
use super::{BACKLOG, Flags, ServeError, Server, failed};
use crate::script::PeerScript;
use crate::speech::{Leaving, PeerMembers, Speech};
use pubmark_clock::now;
use pubmark_model::units::Ns;
use rustix::event::epoll;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::OwnedFd;

/// Event key of the first port; those of others are below.
const LISTENER: u64 = u64::MAX - 1;

/// The ports of a server, and the end of the absence of a member: its place, and the instant.
pub struct Ports {
    listeners: Vec<TcpListener>,
    pub returns: Option<(usize, Ns)>,
}

impl Ports {
    /// Listens on this port, or on those of the script.
    pub fn open(port: u16, script: &PeerScript, epoll: &OwnedFd) -> Result<Ports, ServeError> {
        let ports = if script.ports.is_empty() { &[port][..] } else { &script.ports };
        let listeners: Result<Vec<TcpListener>, ServeError> = (0..)
            .zip(ports)
            .map(|(place, port)| {
                let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).map_err(failed("port"))?;
                listener.set_nonblocking(true).map_err(failed("port"))?;
                rustix::net::listen(&listener, BACKLOG).map_err(failed("port"))?;
                epoll::add(epoll, &listener, epoll::EventData::new_u64(LISTENER - place), Flags::IN)
                    .map_err(failed("epoll"))?;
                Ok(listener)
            })
            .collect();
        Ok(Ports { listeners: listeners?, returns: None })
    }

    /// Returns the place of the port that an event names.
    pub fn place(&self, key: u64) -> Option<usize> {
        usize::try_from(LISTENER.checked_sub(key)?).ok().filter(|place| *place < self.listeners.len())
    }

    /// Returns the numbers of all ports.
    pub fn numbers(&self) -> Result<Vec<u16>, ServeError> {
        let number = |listener: &TcpListener| Ok(listener.local_addr().map_err(failed("port"))?.port());
        self.listeners.iter().map(number).collect()
    }
}

impl<S: Speech> Server<'_, S> {
    /// Returns the endpoints at which it listens, with a comma between two.
    pub(super) fn endpoints(&mut self) -> Result<String, ServeError> {
        let numbers = self.ports.numbers()?;
        let all: Vec<String> = numbers.iter().map(|port| format!("{}://127.0.0.1:{port}", S::SCHEME)).collect();
        if numbers.len() > 1 {
            self.coordinator.borrow_mut().cluster = PeerMembers::new(numbers);
        }
        Ok(all.join(","))
    }

    /// Accepts connections at the port of this place. A member that is away closes them.
    pub(super) fn accept(&mut self, place: usize) -> Result<(), ServeError> {
        loop {
            let stream = match self.ports.listeners[place].accept() {
                Ok((stream, _)) => stream,
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
