//! How the bytes of a connection travel: TCP as it is, or with TLS or
//! WebSocket in between.

use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrStorage, bind, connect, setsockopt, socket, sockopt,
};
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

/// How connections are made.
#[derive(Clone, Debug)]
pub struct Dial {
    /// Where to.
    pub to: SocketAddr,
    /// From where, in turn; empty leaves it to the kernel.
    pub sources: Vec<IpAddr>,
    /// Nagle's algorithm off.
    pub nodelay: bool,
    /// SO_SNDBUF and SO_RCVBUF, bytes; 0 leaves the kernel's.
    pub buffer_bytes: usize,
}

/// An open connection, or one that is being opened. Never blocks.
pub struct Carrier {
    stream: TcpStream,
}

impl Carrier {
    /// Begins to connect, as the `nth` connection.
    pub fn dial(dial: &Dial, nth: usize) -> io::Result<Carrier> {
        let family = if dial.to.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
        let fd = socket(family, SockType::Stream, SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC, None)?;
        if dial.buffer_bytes > 0 {
            setsockopt(&fd, sockopt::SndBuf, &dial.buffer_bytes)?;
            setsockopt(&fd, sockopt::RcvBuf, &dial.buffer_bytes)?;
        }
        setsockopt(&fd, sockopt::TcpNoDelay, &dial.nodelay)?;
        if !dial.sources.is_empty() {
            // The port is chosen at connect: one for each pair of addresses.
            setsockopt(&fd, sockopt::IpBindAddressNoPort, &true)?;
            let source = SocketAddr::new(dial.sources[nth % dial.sources.len()], 0);
            bind(fd.as_raw_fd(), &SockaddrStorage::from(source))?;
        }
        match connect(fd.as_raw_fd(), &SockaddrStorage::from(dial.to)) {
            Ok(()) | Err(nix::errno::Errno::EINPROGRESS) => Ok(Carrier { stream: TcpStream::from(fd) }),
            Err(error) => Err(error.into()),
        }
    }

    /// What became of the connecting.
    pub fn connected(&self) -> io::Result<()> {
        self.stream.take_error()?.map_or(Ok(()), Err)
    }

    /// Reads what is there: `WouldBlock` if nothing is, 0 at the end.
    #[inline]
    pub fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.stream.read(into)
    }

    /// Writes what the kernel takes.
    #[inline]
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.write(bytes)
    }

    /// Says that nothing more will be written.
    pub fn finish(&mut self) {
        let _ = self.stream.shutdown(std::net::Shutdown::Write);
    }
}

impl AsFd for Carrier {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}
