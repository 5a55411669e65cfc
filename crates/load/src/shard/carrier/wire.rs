//! A socket with or without TLS, or several.

use super::member_streams::MemberStreams;
use super::tls::Tls;
use rustix::net::{RecvFlags, SendFlags};
use std::io;
use std::net::TcpStream;

/// A stream that is read and written without blocking.
pub enum RawStream {
    Plain(TcpStream),
    Tls(Box<Tls>),
    Members(Box<MemberStreams>),
}

impl RawStream {
    /// Returns the socket, unless there are several.
    pub fn stream(&self) -> Option<&TcpStream> {
        match self {
            RawStream::Plain(stream) => Some(stream),
            RawStream::Tls(tls) => Some(tls.stream()),
            RawStream::Members(_) => None,
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
            RawStream::Members(all) => all.read(into),
        }
    }

    #[inline]
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            RawStream::Plain(stream) => Ok(rustix::net::send(stream, bytes, SendFlags::NOSIGNAL)?),
            RawStream::Tls(tls) => tls.write(bytes),
            RawStream::Members(all) => all.write(bytes),
        }
    }

    #[inline]
    pub fn is_behind(&self) -> bool {
        match self {
            RawStream::Plain(_) => false,
            RawStream::Tls(tls) => tls.is_behind(),
            RawStream::Members(all) => all.is_behind(),
        }
    }

    /// True if several connections have something to write together, and may yet be given more.
    #[inline]
    pub fn is_unsent(&self) -> bool {
        matches!(self, RawStream::Members(all) if all.is_unsent())
    }

    pub fn flush(&mut self) -> io::Result<()> {
        match self {
            RawStream::Plain(_) => Ok(()),
            RawStream::Tls(tls) => tls.flush(),
            RawStream::Members(all) => {
                all.flush();
                Ok(())
            }
        }
    }

    /// Discards waiting bytes. Returns how many accepted bytes will not arrive.
    pub fn abandon(&mut self) -> usize {
        match self {
            RawStream::Plain(_) => 0,
            RawStream::Tls(tls) => tls.abandon(),
            RawStream::Members(all) => all.abandon(),
        }
    }
}
