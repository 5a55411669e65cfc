//! Carriers of a connection's bytes: plain TCP, or TCP with TLS, WebSocket or both.
//!
//! No call blocks. Handshakes proceed within `read`, `write` and `flush`; bytes written
//! before their end wait for it, so the event loop does not need to know about them.

mod errors;
mod member_streams;
mod tls;
mod websocket;
mod wire;

use crate::session::Session;
use member_streams::{MemberSocket, MemberStreams};
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrStorage, bind, connect, setsockopt, socket, sockopt,
};
use pubmark_model::options::{OptionValues, Options};
use pubmark_model::units::Ns;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use tls::Tls;
pub use tls::{Negotiated, TlsDial, TlsError};
pub use websocket::{WebSocket, WebSocketDial};
use wire::RawStream;

/// Addresses and settings of connections.
#[derive(Clone, Debug)]
pub struct Dial {
    /// Addresses of one server, at least one. The first is tried first, and the next if
    /// no connection is made.
    pub to: Vec<SocketAddr>,
    /// True if these are the addresses of the members of a cluster, one each, by number. Then
    /// each client has a place of its own among them.
    pub is_cluster: bool,
    /// The number of addresses, the first ones, of services that name the member that leads; 0 if there are none. Clients
    /// of a cluster begin there, and return there after a connection was lost.
    pub discovery: usize,
    /// Source addresses, used in turn if they are of the same family; if empty, the kernel
    /// chooses.
    pub sources: Vec<IpAddr>,
    /// True to turn Nagle's algorithm off.
    pub nodelay: bool,
    /// SO_SNDBUF and SO_RCVBUF, bytes; 0 for the kernel's defaults.
    pub buffer_bytes: usize,
    /// TLS settings; `None` without TLS.
    pub tls: Option<TlsDial>,
    /// WebSocket settings; `None` without WebSocket.
    pub websocket: Option<WebSocketDial>,
}

impl Dial {
    /// Returns the settings for plain TCP to one server with these addresses.
    pub fn tcp(to: Vec<SocketAddr>) -> Dial {
        Dial {
            to,
            is_cluster: false,
            discovery: 0,
            sources: Vec::new(),
            nodelay: true,
            buffer_bytes: 0,
            tls: None,
            websocket: None,
        }
    }

    /// Returns the number of addresses, the first ones, at which a client of a cluster may begin.
    pub fn entries(&self) -> usize {
        if self.discovery > 0 { self.discovery } else { self.to.len() }.max(1)
    }

    /// Returns the settings for clients of a protocol with these options.
    #[must_use]
    pub fn of<S: Session>(mut self, options: &Options) -> Dial {
        if let Some(tls) = &mut self.tls {
            tls.after_first_line = S::TLS_AFTER_FIRST_LINE && !options.flag("tls_first");
        }
        self
    }
}

/// A connection that is open or being opened. Its calls never block.
///
/// An error of the kind `PermissionDenied` would occur at another attempt again;
/// `InvalidData` means that the peer speaks another protocol.
pub struct ByteStream {
    wire: RawStream,
    websocket: Option<Box<WebSocket>>,
}

impl ByteStream {
    /// Begins to connect to the address of this number, as the `nth` connection, for a client with this number among
    /// those that have a login of their own.
    pub fn dial(dial: &Dial, place: usize, nth: usize, client: u32) -> io::Result<ByteStream> {
        let to = *dial.to.get(place).ok_or_else(|| io::Error::other("the server has no address"))?;
        let family = if to.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
        let fd = socket(family, SockType::Stream, SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC, None)?;
        if dial.buffer_bytes > 0 {
            setsockopt(&fd, sockopt::SndBuf, &dial.buffer_bytes)?;
            setsockopt(&fd, sockopt::RcvBuf, &dial.buffer_bytes)?;
        }
        setsockopt(&fd, sockopt::TcpNoDelay, &dial.nodelay)?;
        let fitting = || dial.sources.iter().filter(|source| source.is_ipv4() == to.is_ipv4());
        if let Some(source) = fitting().nth(nth % fitting().count().max(1)) {
            // The port is chosen at connect: one for each pair of addresses.
            setsockopt(&fd, sockopt::IpBindAddressNoPort, &true)?;
            bind(fd.as_raw_fd(), &SockaddrStorage::from(SocketAddr::new(*source, 0)))?;
        }
        match connect(fd.as_raw_fd(), &SockaddrStorage::from(to)) {
            Ok(()) | Err(nix::errno::Errno::EINPROGRESS) => {}
            Err(error) => return Err(error.into()),
        }
        let stream = TcpStream::from(fd);
        let wire = match &dial.tls {
            None => RawStream::Plain(stream),
            Some(tls) => RawStream::Tls(Box::new(Tls::new(tls, client, stream)?)),
        };
        let websocket = dial.websocket.as_ref().map(WebSocket::new).transpose()?;
        Ok(ByteStream { wire, websocket: websocket.map(Box::new) })
    }

    /// Begins to connect to the member of this place. Connections to others follow when something is written for them. The
    /// client with this number among the connections, and among those that have a login of their own, is told of events.
    pub fn dial_members(
        dial: &Arc<Dial>,
        epoll: &Arc<OwnedFd>,
        place: usize,
        (index, row): (usize, u32),
    ) -> io::Result<ByteStream> {
        let to = Arc::clone(dial);
        let open = move |place| -> io::Result<Box<dyn MemberSocket>> {
            Ok(Box::new(ByteStream::dial(&to, place, index, row)?))
        };
        let all = MemberStreams::open_first(Box::new(open), epoll, (place, dial.to.len()), index)?;
        Ok(ByteStream { wire: RawStream::Members(Box::new(all)), websocket: None })
    }

    /// Checks the result of connecting. If it succeeded, handshakes begin.
    pub fn connected(&mut self) -> io::Result<()> {
        match &mut self.wire {
            RawStream::Members(all) => return all.connected(),
            wire => wire.stream().map_or(Ok(None), TcpStream::take_error)?.map_or(Ok(()), Err)?,
        }
        self.flush()
    }

    /// Reads what is there. Returns how many bytes, and whether there may be more:
    /// `WouldBlock` if nothing is there, 0 bytes at the end.
    #[inline]
    pub fn read(&mut self, into: &mut [u8]) -> io::Result<(usize, bool)> {
        match &mut self.websocket {
            None => self.wire.read(into),
            Some(websocket) => websocket.read(&mut self.wire, into),
        }
    }

    /// Accepts at least some of the bytes: `WouldBlock` if it can accept none.
    #[inline]
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.websocket {
            None => self.wire.write(bytes),
            Some(websocket) => websocket.write(&mut self.wire, bytes),
        }
    }

    /// Returns version and cipher suite of TLS after its handshake; `None` without TLS.
    pub fn negotiated(&self) -> Option<Negotiated> {
        match &self.wire {
            RawStream::Plain(_) => None,
            RawStream::Tls(tls) => tls.negotiated(),
            RawStream::Members(all) => all.any().and_then(MemberSocket::negotiated),
        }
    }

    /// Returns the length of the TLS handshake, ns, once it is over; `None` without TLS.
    pub fn handshake_ns(&self) -> Option<Ns> {
        match &self.wire {
            RawStream::Plain(_) => None,
            RawStream::Tls(tls) => tls.handshake_ns(),
            RawStream::Members(all) => all.any().and_then(MemberSocket::handshake_ns),
        }
    }

    /// True if accepted bytes wait here for the kernel.
    #[inline]
    pub fn is_behind(&self) -> bool {
        self.wire.is_behind() || self.websocket.as_ref().is_some_and(|websocket| websocket.is_behind())
    }

    /// True if bytes for a member of a cluster wait here for the kernel, and more are accepted.
    #[inline]
    pub fn is_unsent(&self) -> bool {
        self.wire.is_unsent()
    }

    /// Writes waiting bytes, as far as the kernel takes them.
    pub fn flush(&mut self) -> io::Result<()> {
        match &mut self.websocket {
            None => self.wire.flush(),
            Some(websocket) => websocket.flush(&mut self.wire),
        }
    }

    /// Discards waiting bytes. Returns how many accepted bytes will not arrive. Bytes
    /// that WebSocket holds back are unknown and count as sent.
    pub fn abandon(&mut self) -> usize {
        if self.websocket.is_some() { 0 } else { self.wire.abandon() }
    }

    /// Closes the writing side.
    pub fn finish(&mut self) {
        if let Some(websocket) = &mut self.websocket {
            let _ = websocket.finish(&mut self.wire);
        }
        match &mut self.wire {
            RawStream::Plain(_) => {}
            RawStream::Tls(tls) => {
                let _ = tls.finish();
            }
            RawStream::Members(all) => all.finish(),
        }
        let _ = self.wire.stream().map(|stream| stream.shutdown(std::net::Shutdown::Write));
    }
}

impl AsFd for ByteStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.wire {
            RawStream::Plain(stream) => stream.as_fd(),
            RawStream::Tls(tls) => tls.stream().as_fd(),
            RawStream::Members(all) => all.as_fd(),
        }
    }
}

impl MemberSocket for ByteStream {
    fn connected(&mut self) -> io::Result<()> {
        ByteStream::connected(self)
    }

    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        ByteStream::read(self, into).map(|(count, _)| count)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        ByteStream::write(self, bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        ByteStream::flush(self)
    }

    fn is_behind(&self) -> bool {
        ByteStream::is_behind(self)
    }

    fn finish(&mut self) {
        ByteStream::finish(self);
    }

    fn negotiated(&self) -> Option<Negotiated> {
        ByteStream::negotiated(self)
    }

    fn handshake_ns(&self) -> Option<Ns> {
        ByteStream::handshake_ns(self)
    }
}
