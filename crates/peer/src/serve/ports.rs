//! Ports of the server: one, or one for each member of a cluster.

use super::error::{ServeError, failed};
use crate::script::PeerScript;
use pubmark_model::units::Ns;
use rustix::event::epoll;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;

/// Connections that may wait to be accepted.
const BACKLOG: i32 = 4096;
/// Event key of the first port; those of others are below.
const LISTENER: u64 = u64::MAX - 1;

/// The ports of a server, and the end of the absence of a member: its place, and the instant.
pub struct Ports {
    listeners: Vec<TcpListener>,
    pub returns: Option<(usize, Ns)>,
}

impl Ports {
    /// Listens at this address, or there on the ports of the script.
    pub fn open(at: SocketAddr, script: &PeerScript, epoll: &OwnedFd) -> Result<Ports, ServeError> {
        let ports = if script.ports.is_empty() { &[at.port()][..] } else { &script.ports };
        let listeners: Result<Vec<TcpListener>, ServeError> = (0..)
            .zip(ports)
            .map(|(place, port)| {
                let listener = TcpListener::bind((at.ip(), *port)).map_err(failed("port"))?;
                listener.set_nonblocking(true).map_err(failed("port"))?;
                rustix::net::listen(&listener, BACKLOG).map_err(failed("port"))?;
                epoll::add(epoll, &listener, epoll::EventData::new_u64(LISTENER - place), epoll::EventFlags::IN)
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

    /// Returns the addresses of all ports.
    pub fn addresses(&self) -> Result<Vec<SocketAddr>, ServeError> {
        self.listeners.iter().map(|listener| listener.local_addr().map_err(failed("port"))).collect()
    }

    /// Accepts a connection at the port of this place.
    pub fn accept(&self, place: usize) -> io::Result<TcpStream> {
        self.listeners[place].accept().map(|(stream, _)| stream)
    }
}
