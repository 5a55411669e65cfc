//! A socket with or without TLS.

use super::tls::Tls;
use rustix::net::{RecvFlags, SendFlags};
use std::io;
use std::net::TcpStream;

/// A stream that is read and written without blocking.
pub enum RawStream {
    Plain(TcpStream),
    Tls(Box<Tls>),
}

impl RawStream {
    pub fn stream(&self) -> &TcpStream {
        match self {
            RawStream::Plain(stream) => stream,
            RawStream::Tls(tls) => tls.stream(),
        }
    }

    #[inline]
    pub fn read(&mut self, into: &mut [u8]) -> io::Result<(usize, bool)> {
        match self {
            // Not by the C library, whose calls are cancellation points.
            RawStream::Plain(stream) => {
                let count = rustix::net::recv(stream, &mut *into, RecvFlags::empty())?.0;
                Ok((count, count == into.len()))
            }
            RawStream::Tls(tls) => tls.read(into),
        }
    }

    #[inline]
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            RawStream::Plain(stream) => Ok(rustix::net::send(stream, bytes, SendFlags::NOSIGNAL)?),
            RawStream::Tls(tls) => tls.write(bytes),
        }
    }

    #[inline]
    pub fn is_behind(&self) -> bool {
        match self {
            RawStream::Plain(_) => false,
            RawStream::Tls(tls) => tls.is_behind(),
        }
    }

    pub fn flush(&mut self) -> io::Result<()> {
        match self {
            RawStream::Plain(_) => Ok(()),
            RawStream::Tls(tls) => tls.flush(),
        }
    }

    /// Discards waiting bytes. Returns how many accepted bytes will not arrive.
    pub fn abandon(&mut self) -> usize {
        match self {
            RawStream::Plain(_) => 0,
            RawStream::Tls(tls) => tls.abandon(),
        }
    }
}
