//! One connection of the kernel's driver, independent of the transport.

use crate::drivers::port;
use crate::drivers::socket::Sent;
use std::io;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;

/// One connection to one peer.
pub trait Wire: Send {
    /// Offers a message; blocks for at most about [`WAIT_MS`](crate::drivers::socket::WAIT_MS). An
    /// accepted message is written by this call or by later ones.
    fn offer(&mut self, message: &[u8]) -> io::Result<Sent>;

    /// Writes out what was accepted and held back.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Makes the next message available to [`Wire::message`], if there is one; waits for
    /// about [`WAIT_MS`](crate::drivers::socket::WAIT_MS) if `wait`.
    fn take(&mut self, wait: bool) -> io::Result<bool>;

    /// Returns the message that was taken last.
    fn message(&self) -> &[u8];

    /// Returns the descriptor to wait on for the next message; `None` for a ring.
    fn fd(&self) -> Option<BorrowedFd<'_>>;

    /// True if the peer has disconnected.
    fn closed(&self) -> bool;
}

pub fn unsupported(endpoint: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, format!("`{endpoint}` is not an endpoint of this transport"))
}

/// Binds the first free candidate port, at the address of `tcp://ADDRESS:0` or
/// `udp://ADDRESS:0`.
pub fn first_free<T>(at: &str, bind: impl Fn(SocketAddr) -> io::Result<T>) -> io::Result<T> {
    let address = at.split_once("://").and_then(|(_, address)| address.parse::<SocketAddr>().ok());
    let address = address.ok_or_else(|| unsupported(at))?.ip();
    let mut last =
        io::Error::new(io::ErrorKind::AddrInUse, format!("no port from 10000 to 31999 of {address} is free"));
    for port in port::candidates(address) {
        match bind(SocketAddr::new(address, port)) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => last = error,
            other => return other,
        }
    }
    Err(last)
}
