//! TCP and Unix stream sockets: each message follows a 4-byte length.

use super::wire::Wire;
use crate::drivers::socket::{Sent, SocketSpec, WAIT_MS};
use nix::sys::socket::{setsockopt, sockopt};
use pubmark_model::options::OptionValues;
use std::io::{self, IoSlice, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

const PREFIX: usize = 4;
/// Bytes read at once, so that one read returns many small messages.
const READ_AT_ONCE: usize = 64 << 10;

/// True if messages of this length are gathered up to `coalesce` bytes.
#[inline]
pub(super) fn gathers(message: u64, coalesce: u64) -> bool {
    2 * message < coalesce
}

/// Set-up of accepted and connecting sockets.
#[derive(Clone, Copy)]
pub(super) struct Setup {
    nodelay: bool,
    coalesce: usize,
    buffer: usize,
    payload: usize,
}

impl Setup {
    pub fn new(spec: &SocketSpec<'_>) -> Setup {
        Setup {
            nodelay: spec.options.flag("tcp_nodelay"),
            coalesce: if spec.unthrottled { spec.options.number("coalesce") as usize } else { 0 },
            buffer: spec.options.number("socket_buffer") as usize,
            payload: spec.payload_bytes as usize,
        }
    }

    pub fn tcp(self, stream: TcpStream) -> io::Result<Box<dyn Wire>> {
        stream.set_nodelay(self.nodelay)?;
        stream.set_read_timeout(Some(Duration::from_millis(WAIT_MS as u64)))?;
        stream.set_write_timeout(Some(Duration::from_millis(WAIT_MS as u64)))?;
        self.wire(stream, |stream| stream.set_nonblocking(true), |stream| stream.set_nonblocking(false))
    }

    pub fn unix(self, stream: UnixStream) -> io::Result<Box<dyn Wire>> {
        stream.set_read_timeout(Some(Duration::from_millis(WAIT_MS as u64)))?;
        stream.set_write_timeout(Some(Duration::from_millis(WAIT_MS as u64)))?;
        self.wire(stream, |stream| stream.set_nonblocking(true), |stream| stream.set_nonblocking(false))
    }

    fn wire<S: Read + Write + AsFd + Send + 'static>(
        self,
        stream: S,
        nonblocking: fn(&S) -> io::Result<()>,
        blocking: fn(&S) -> io::Result<()>,
    ) -> io::Result<Box<dyn Wire>> {
        if self.buffer > 0 {
            setsockopt(&stream, sockopt::SndBuf, &self.buffer)?;
            setsockopt(&stream, sockopt::RcvBuf, &self.buffer)?;
        }
        Ok(Box::new(StreamWire {
            stream,
            nonblocking,
            blocking,
            is_blocking: true,
            owed: Vec::new(),
            coalesce: self.coalesce,
            buffer: vec![0; READ_AT_ONCE.max(2 * (self.payload + PREFIX))],
            from: 0,
            to: 0,
            message: 0..0,
            limit: self.payload + PREFIX,
            closed: false,
        }))
    }
}

struct StreamWire<S> {
    stream: S,
    nonblocking: fn(&S) -> io::Result<()>,
    blocking: fn(&S) -> io::Result<()>,
    is_blocking: bool,
    /// Bytes that were accepted and are not written yet.
    owed: Vec<u8>,
    /// Bytes to gather before a write; 0 writes each message at once.
    coalesce: usize,
    buffer: Vec<u8>,
    from: usize,
    to: usize,
    message: std::ops::Range<usize>,
    limit: usize,
    closed: bool,
}

/// True if the error is a time-out or an interruption, so that there is nothing to do
/// now.
fn is_pause(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

fn is_disconnect(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
}

impl<S: Read + Write + AsFd> StreamWire<S> {
    fn set_blocking(&mut self, wanted: bool) -> io::Result<()> {
        if self.is_blocking != wanted {
            let set = if wanted { self.blocking } else { self.nonblocking };
            set(&self.stream)?;
            self.is_blocking = wanted;
        }
        Ok(())
    }

    /// Writes bytes that were accepted before; true if none are left.
    fn settle(&mut self) -> io::Result<bool> {
        while !self.owed.is_empty() {
            match self.stream.write(&self.owed) {
                Ok(written) => drop(self.owed.drain(..written)),
                Err(error) if is_pause(&error) => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    fn write(&mut self, message: &[u8]) -> io::Result<Sent> {
        self.set_blocking(true)?;
        if !self.settle()? {
            return Ok(Sent::Full);
        }
        let prefix = (message.len() as u32).to_le_bytes();
        let written = match self.stream.write_vectored(&[IoSlice::new(&prefix), IoSlice::new(message)]) {
            Ok(written) => written,
            Err(error) if is_pause(&error) => return Ok(Sent::Full),
            Err(error) => return Err(error),
        };
        if written < PREFIX + message.len() {
            self.owed.extend_from_slice(&prefix[written.min(PREFIX)..]);
            self.owed.extend_from_slice(&message[written.saturating_sub(PREFIX)..]);
            self.settle()?;
        }
        Ok(Sent::Accepted)
    }

    /// Gathers small messages, so that one system call writes many.
    fn gather(&mut self, message: &[u8]) -> io::Result<Sent> {
        if self.owed.len() >= self.coalesce {
            self.set_blocking(true)?;
            if !self.settle()? {
                return Ok(Sent::Full);
            }
        }
        self.owed.extend_from_slice(&(message.len() as u32).to_le_bytes());
        self.owed.extend_from_slice(message);
        Ok(Sent::Accepted)
    }

    /// Moves to the next complete message in the buffer; false if there is none.
    fn next(&mut self) -> io::Result<bool> {
        let rest = &self.buffer[self.from..self.to];
        let Some(prefix) = rest.first_chunk::<PREFIX>() else {
            return Ok(false);
        };
        let length = u32::from_le_bytes(*prefix) as usize;
        if length + PREFIX > self.limit {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!("a message claims {length} bytes: the peer is not a pubmark publisher"),
            ));
        }
        if rest.len() < PREFIX + length {
            return Ok(false);
        }
        self.message = self.from + PREFIX..self.from + PREFIX + length;
        self.from += PREFIX + length;
        Ok(true)
    }
}

impl<S: Read + Write + AsFd + Send> Wire for StreamWire<S> {
    fn offer(&mut self, message: &[u8]) -> io::Result<Sent> {
        let gathers = gathers(message.len() as u64, self.coalesce as u64);
        let sent = if gathers { self.gather(message) } else { self.write(message) };
        match sent {
            Err(error) if is_disconnect(&error) => {
                self.closed = true;
                Ok(Sent::Accepted)
            }
            other => other,
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.set_blocking(true)?;
        match self.settle() {
            Err(error) if is_disconnect(&error) => {
                self.closed = true;
                self.owed.clear();
                Ok(())
            }
            settled => settled.map(|_| ()),
        }
    }

    fn take(&mut self, wait: bool) -> io::Result<bool> {
        loop {
            if self.next()? {
                return Ok(true);
            }
            if self.from > 0 {
                self.buffer.copy_within(self.from..self.to, 0);
                (self.from, self.to) = (0, self.to - self.from);
            }
            self.set_blocking(wait)?;
            match self.stream.read(&mut self.buffer[self.to..]) {
                Ok(0) => {
                    self.closed = true;
                    // Keeps a closed peer from turning the caller into a busy loop.
                    std::thread::park_timeout(Duration::from_millis(if wait { WAIT_MS as u64 } else { 0 }));
                    return Ok(false);
                }
                Ok(read) => self.to += read,
                Err(error) if is_pause(&error) || is_disconnect(&error) => return Ok(false),
                Err(error) => return Err(error),
            }
        }
    }

    fn message(&self) -> &[u8] {
        &self.buffer[self.message.clone()]
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        (!self.closed).then(|| self.stream.as_fd())
    }

    fn closed(&self) -> bool {
        self.closed
    }
}
