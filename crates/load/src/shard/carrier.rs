//! How the bytes of a connection travel: TCP as it is, or with TLS or
//! WebSocket in between, or both.
//!
//! Nothing here blocks. Handshakes go on within `read`, `write` and `flush`;
//! what is written before they are over waits for them, so the event loop
//! need not know of them.

mod errors;
mod tls;
mod websocket;
mod wire;

use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrStorage, bind, connect, setsockopt, socket, sockopt,
};
use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use tls::Tls;
pub use tls::{TlsDial, TlsError};
pub use websocket::{WebSocket, WebSocketDial};
use wire::RawStream;

/// How connections are made.
#[derive(Clone, Debug)]
pub struct Dial {
    /// Where to: the addresses of one server, one at least. The first is tried
    /// first, and the next where no connection comes about.
    pub to: Vec<SocketAddr>,
    /// From where, in turn, as far as they are of the same family; empty leaves it to the kernel.
    pub sources: Vec<IpAddr>,
    /// Nagle's algorithm off.
    pub nodelay: bool,
    /// SO_SNDBUF and SO_RCVBUF, bytes; 0 leaves the kernel's.
    pub buffer_bytes: usize,
    /// TLS, if it is to be spoken.
    pub tls: Option<TlsDial>,
    /// WebSocket, if it is to be spoken.
    pub websocket: Option<WebSocketDial>,
}

/// An open connection, or one that is being opened. Never blocks.
///
/// An error of the kind `PermissionDenied` is one that another attempt would
/// meet again; `InvalidData` says that the peer speaks something else.
pub struct ByteStream {
    wire: RawStream,
    websocket: Option<Box<WebSocket>>,
}

impl ByteStream {
    /// Begins to connect to the address of this number, as the `nth` connection.
    pub fn dial(dial: &Dial, place: usize, nth: usize) -> io::Result<ByteStream> {
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
            Some(tls) => RawStream::Tls(Box::new(Tls::new(tls, stream)?)),
        };
        let websocket = dial.websocket.as_ref().map(WebSocket::new).transpose()?;
        Ok(ByteStream { wire, websocket: websocket.map(Box::new) })
    }

    /// What became of the connecting. Where it came about, handshakes begin.
    pub fn connected(&mut self) -> io::Result<()> {
        self.wire.stream().take_error()?.map_or(Ok(()), Err)?;
        self.flush()
    }

    /// Reads what is there, and says whether more may be: `WouldBlock` if
    /// nothing is, 0 bytes at the end.
    #[inline]
    pub fn read(&mut self, into: &mut [u8]) -> io::Result<(usize, bool)> {
        match &mut self.websocket {
            None => self.wire.read(into),
            Some(websocket) => websocket.read(&mut self.wire, into),
        }
    }

    /// Takes bytes, some of them at least: `WouldBlock` if it can take none.
    #[inline]
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.websocket {
            None => self.wire.write(bytes),
            Some(websocket) => websocket.write(&mut self.wire, bytes),
        }
    }

    /// Whether bytes that were taken wait here for the kernel.
    #[inline]
    pub fn is_behind(&self) -> bool {
        self.wire.is_behind() || self.websocket.as_ref().is_some_and(|websocket| websocket.is_behind())
    }

    /// Hands on what waits here, as far as the kernel takes it.
    pub fn flush(&mut self) -> io::Result<()> {
        match &mut self.websocket {
            None => self.wire.flush(),
            Some(websocket) => websocket.flush(&mut self.wire),
        }
    }

    /// Throws away what waits here; how much of what was taken nobody will get,
    /// bytes. Of what WebSocket holds back nobody knows: it counts as taken.
    pub fn abandon(&mut self) -> usize {
        if self.websocket.is_some() { 0 } else { self.wire.abandon() }
    }

    /// Says that nothing more will be written.
    pub fn finish(&mut self) {
        if let Some(websocket) = &mut self.websocket {
            let _ = websocket.finish(&mut self.wire);
        }
        if let RawStream::Tls(tls) = &mut self.wire {
            let _ = tls.finish();
        }
        let _ = self.wire.stream().shutdown(std::net::Shutdown::Write);
    }
}

impl AsFd for ByteStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wire.stream().as_fd()
    }
}
