//! UDP datagrams on loopback. A subscriber registers with an empty datagram. Datagrams
//! that the kernel drops are lost, and counted.

use super::wire::{Wire, first_free, unsupported};
use crate::drivers::socket::{Sent, SocketSpec, WAIT_MS};
use nix::sys::socket::{setsockopt, sockopt};
use pubmark_model::options::OptionValues;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

const LARGEST: usize = 65_536;
const WAIT: Duration = Duration::from_millis(WAIT_MS as u64);

fn set_up(socket: &UdpSocket, spec: &SocketSpec<'_>) -> io::Result<()> {
    let buffer = spec.options.number("socket_buffer") as usize;
    if buffer > 0 {
        setsockopt(socket, sockopt::SndBuf, &buffer)?;
        setsockopt(socket, sockopt::RcvBuf, &buffer)?;
    }
    socket.set_read_timeout(Some(WAIT))?;
    socket.set_write_timeout(Some(WAIT))
}

/// Binds a socket. The returned function waits for the next subscriber, until the socket
/// is `closed`. Requests of a known peer go to that peer's wire.
pub(super) fn bind(
    spec: &SocketSpec<'_>,
    at: &str,
    closed: Arc<AtomicBool>,
) -> io::Result<(String, impl FnMut() -> io::Result<Bound> + Send + 'static)> {
    let socket = first_free(at, UdpSocket::bind)?;
    set_up(&socket, spec)?;
    let endpoint = format!("udp://{}", socket.local_addr()?);
    let mut known: Vec<(SocketAddr, Sender<Vec<u8>>)> = Vec::new();
    let mut buffer = vec![0; LARGEST];
    let wait = move || loop {
        let (length, from) = match socket.recv_from(&mut buffer) {
            Ok(received) => received,
            Err(error) if is_pause(&error) && !closed.load(Ordering::Acquire) => continue,
            Err(error) => return Err(error),
        };
        match known.iter().find(|(peer, _)| *peer == from) {
            Some((_, inbox)) if length > 0 => {
                // If the peer's wire is gone, the datagram is dropped.
                let _ = inbox.send(buffer[..length].to_vec());
            }
            Some(_) => {}
            None => {
                let (inbox, requests) = channel();
                known.push((from, inbox));
                return Ok(Bound { socket: socket.try_clone()?, peer: from, requests, message: Vec::new() });
            }
        }
    };
    Ok((endpoint, wait))
}

/// Connects to a bound socket and registers with it.
pub(super) fn connect(spec: &SocketSpec<'_>, to: &str) -> io::Result<Box<dyn Wire>> {
    let peer: SocketAddr =
        to.strip_prefix("udp://").and_then(|address| address.parse().ok()).ok_or_else(|| unsupported(to))?;
    // The kernel knows which local address reaches the peer.
    let own: IpAddr = match peer.ip() {
        address if address.is_loopback() => address,
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((own, 0))?;
    set_up(&socket, spec)?;
    socket.connect(peer)?;
    socket.send(&[])?;
    Ok(Box::new(Connected { socket, buffer: vec![0; LARGEST], length: 0, silent: true, blocking: true }))
}

/// Binds a socket that receives from every sender.
pub(super) fn hear(spec: &SocketSpec<'_>, at: &str) -> io::Result<(String, Box<dyn Wire>)> {
    let socket = first_free(at, UdpSocket::bind)?;
    set_up(&socket, spec)?;
    let endpoint = format!("udp://{}", socket.local_addr()?);
    Ok((endpoint, Box::new(Connected { socket, buffer: vec![0; LARGEST], length: 0, silent: false, blocking: true })))
}

fn is_pause(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock
            | io::ErrorKind::TimedOut
            | io::ErrorKind::Interrupted
            | io::ErrorKind::ConnectionRefused
    )
}

/// Returns the result of a send: a datagram without a receiver is lost, like any other.
fn sent(result: io::Result<usize>) -> io::Result<Sent> {
    match result {
        Ok(_) => Ok(Sent::Accepted),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(Sent::Accepted),
        Err(error) if is_pause(&error) || error.raw_os_error() == Some(nix::errno::Errno::ENOBUFS as i32) => {
            Ok(Sent::Full)
        }
        Err(error) => Err(error),
    }
}

/// The wire of the bound side to one peer.
pub(super) struct Bound {
    socket: UdpSocket,
    peer: SocketAddr,
    requests: Receiver<Vec<u8>>,
    message: Vec<u8>,
}

impl Wire for Bound {
    fn offer(&mut self, message: &[u8]) -> io::Result<Sent> {
        sent(self.socket.send_to(message, self.peer))
    }

    fn take(&mut self, wait: bool) -> io::Result<bool> {
        match self.requests.recv_timeout(if wait { WAIT } else { Duration::ZERO }) {
            Ok(message) => self.message = message,
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return Ok(false),
        }
        Ok(true)
    }

    fn message(&self) -> &[u8] {
        &self.message
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn closed(&self) -> bool {
        false
    }
}

/// The wire of the connecting side.
struct Connected {
    socket: UdpSocket,
    buffer: Vec<u8>,
    length: usize,
    silent: bool,
    blocking: bool,
}

impl Wire for Connected {
    fn offer(&mut self, message: &[u8]) -> io::Result<Sent> {
        sent(self.socket.send(message))
    }

    fn take(&mut self, wait: bool) -> io::Result<bool> {
        if self.blocking != wait {
            self.socket.set_nonblocking(!wait)?;
            self.blocking = wait;
        }
        match self.socket.recv(&mut self.buffer) {
            Ok(length) => {
                (self.length, self.silent) = (length, false);
                // An empty datagram registers its sender and is not a message.
                Ok(length > 0)
            }
            Err(error) if is_pause(&error) => {
                if self.silent {
                    // The datagram that registered the socket may have been lost.
                    let _ = self.socket.send(&[]);
                }
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    fn message(&self) -> &[u8] {
        &self.buffer[..self.length]
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.as_fd())
    }

    fn closed(&self) -> bool {
        false
    }
}
