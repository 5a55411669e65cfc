//! One client's connection: its carrier, its session, and the bytes between them.

use super::carrier::ByteStream;
use crate::clock;
use crate::session::{Session, SessionError, SessionEvent};
use crate::spare::{keep, release};
use pubmark_model::units::Ns;
use std::io::{self, ErrorKind};

/// Longest beginning of an item that is moved to the front of what arrives next, bytes: so most items need no buffer of
/// their own for what arrives behind their beginning.
const MOVED_BYTES: usize = 16 << 10;

/// State of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Its turn has not come, or it waits for its next attempt.
    Waiting,
    /// The carrier is connecting.
    Opening,
    /// The session is in its handshake.
    Greeting,
    /// Its subscription has been requested.
    Subscribing,
    /// It has reconnected, and sends unacknowledged messages again.
    Resending,
    /// It is connected, and subscribed if it is to be.
    Up,
    /// It has ended, or was never established.
    Gone,
}

/// One client's connection.
pub struct Connection<S> {
    pub session: S,
    pub carrier: Option<ByteStream>,
    pub state: State,
    /// True if it has something to send and cannot: bytes are left over, or the session's
    /// window is full.
    pub blocked: bool,
    pub attempts: u8,
    /// Turns in which the server said nothing: see [`silence`](super::silence).
    pub silent: u8,
    /// Number of the server's address used by the last attempt.
    pub place: u8,
    pub began_ns: Ns,
    pending: Vec<u8>,
    partial: Vec<u8>,
    unwritten: Unwritten,
}

/// Messages in `pending`, as far as it contained only messages.
#[derive(Clone, Copy, Default)]
struct Unwritten {
    /// Bytes up to the end of the last message.
    bytes: u32,
    /// Bytes of each message, with its frame.
    of_each: u32,
}

/// Changes caused by a batch of bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Changes {
    pub connected: bool,
    pub subscribed: bool,
    pub room: bool,
}

/// The reason why a connection cannot be used any more.
#[derive(Debug)]
pub enum ConnectionLoss {
    /// The server ended the connection without a message.
    Ended(String),
    /// The connection failed, or the server announced that it closes it.
    Closed(String),
    /// The session cannot go on.
    Session(SessionError),
}

impl ConnectionLoss {
    pub fn text(&self) -> String {
        match self {
            ConnectionLoss::Ended(text) | ConnectionLoss::Closed(text) => text.clone(),
            ConnectionLoss::Session(error) => error.to_string(),
        }
    }
}

impl From<io::Error> for ConnectionLoss {
    fn from(error: io::Error) -> ConnectionLoss {
        let text = error.to_string();
        match error.kind() {
            ErrorKind::PermissionDenied => ConnectionLoss::Session(SessionError::Denied(text)),
            ErrorKind::InvalidData => ConnectionLoss::Session(SessionError::Foreign(text)),
            ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => ConnectionLoss::Ended(text),
            _ => ConnectionLoss::Closed(text),
        }
    }
}

/// Writes as much as the carrier takes, and returns how many bytes.
#[inline]
fn write(carrier: &mut ByteStream, bytes: &[u8]) -> Result<usize, ConnectionLoss> {
    let mut taken = 0;
    while taken < bytes.len() {
        match carrier.write(&bytes[taken..]) {
            Ok(count) => taken += count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(taken)
}

#[inline]
fn check_length(announced_bytes: u64, longest_bytes: u64) -> Result<(), ConnectionLoss> {
    if announced_bytes <= longest_bytes { Ok(()) } else { Err(too_long(announced_bytes, longest_bytes)) }
}

#[cold]
fn too_long(announced_bytes: u64, longest_bytes: u64) -> ConnectionLoss {
    let text = format!(
        "the server announces a packet of {announced_bytes} bytes; packets of this run have at most {longest_bytes}"
    );
    ConnectionLoss::Session(SessionError::Foreign(text))
}

impl<S: Session> Connection<S> {
    pub fn new(session: S) -> Connection<S> {
        Connection {
            session,
            carrier: None,
            state: State::Waiting,
            blocked: false,
            attempts: 0,
            silent: 0,
            place: 0,
            began_ns: 0,
            pending: Vec::new(),
            partial: Vec::new(),
            unwritten: Unwritten::default(),
        }
    }

    /// Drops the carrier and what was in transit, for a new attempt or for good.
    pub fn reset(&mut self, session: S, state: State) {
        self.session = session;
        self.drop_carrier(state);
    }

    pub fn drop_carrier(&mut self, state: State) {
        self.carrier = None;
        release(&mut self.pending);
        release(&mut self.partial);
        (self.state, self.blocked, self.unwritten) = (state, false, Unwritten::default());
    }

    /// True if it is not up, and may come up.
    pub fn is_away(&self) -> bool {
        !matches!(self.state, State::Up | State::Gone)
    }

    /// True if bytes wait for the kernel to take them.
    #[inline]
    pub fn has_pending(&self) -> bool {
        !self.pending.is_empty() || self.carrier.as_ref().is_some_and(ByteStream::is_behind)
    }

    /// True if room in the kernel should be used.
    pub fn is_flushable(&self) -> bool {
        self.has_pending() || self.carrier.as_ref().is_some_and(ByteStream::is_unsent)
    }

    /// Writes bytes; keeps what the kernel does not take.
    #[inline]
    pub fn write(&mut self, mut bytes: &[u8]) -> Result<(), ConnectionLoss> {
        if self.pending.is_empty()
            && let Some(carrier) = &mut self.carrier
        {
            bytes = &bytes[write(carrier, bytes)?..];
        }
        if !bytes.is_empty() {
            keep(&mut self.pending, bytes);
        }
        Ok(())
    }

    /// Writes `count` messages, which `bytes` contains. No others may be waiting.
    #[inline]
    pub fn write_messages(&mut self, bytes: &[u8], count: u64) -> Result<(), ConnectionLoss> {
        let written = self.write(bytes);
        if self.has_pending() {
            let of_each = bytes.len() as u64 / count.max(1);
            self.unwritten = Unwritten { bytes: self.pending.len() as u32, of_each: of_each as u32 };
        }
        written
    }

    /// Returns how many messages the kernel has not taken completely, and now never will.
    /// (Those that WebSocket holds back are unknown.)
    pub fn abandon_messages(&mut self) -> u64 {
        let held = self.carrier.as_mut().map_or(0, ByteStream::abandon) as u64;
        (u64::from(self.unwritten.bytes) + held).div_ceil(u64::from(self.unwritten.of_each.max(1)))
    }

    /// Writes kept bytes. Returns true if none are left.
    pub fn flush(&mut self) -> Result<bool, ConnectionLoss> {
        let Some(carrier) = &mut self.carrier else { return Ok(self.pending.is_empty()) };
        carrier.flush()?;
        if !self.pending.is_empty() {
            let taken = write(carrier, &self.pending)?;
            self.pending.drain(..taken);
            self.unwritten.bytes = self.unwritten.bytes.saturating_sub(taken as u32);
            if self.pending.is_empty() {
                release(&mut self.pending);
            }
        }
        Ok(!self.has_pending())
    }

    /// Passes `bytes`, just arrived, to the session, which appends its answers to
    /// `answers`. Of an incomplete item nothing is kept if the server announces more than
    /// `longest_bytes`.
    #[inline]
    pub fn feed(
        &mut self,
        settings: &S::Settings,
        bytes: &[u8],
        longest_bytes: u64,
        answers: &mut Vec<u8>,
        heard: &mut dyn FnMut(SessionEvent<'_>, &mut Changes),
    ) -> Result<Changes, ConnectionLoss> {
        let mut changes = Changes::default();
        let session = &mut self.session;
        let mut take = |bytes: &[u8], changes: &mut Changes| {
            session.input(settings, bytes, answers, &mut |word| heard(word, changes)).map_err(ConnectionLoss::Session)
        };
        if self.partial.is_empty() {
            let done = take(bytes, &mut changes)?;
            let rest = bytes.get(done..).unwrap_or_default();
            check_length(self.session.announced(rest), longest_bytes)?;
            if !rest.is_empty() {
                keep(&mut self.partial, rest);
            }
            return Ok(changes);
        }
        self.partial.extend_from_slice(bytes);
        let done = take(&self.partial, &mut changes)?.min(self.partial.len());
        self.partial.drain(..done);
        check_length(self.session.announced(&self.partial), longest_bytes)?;
        if self.partial.is_empty() {
            release(&mut self.partial);
        }
        Ok(changes)
    }

    /// Reads what has arrived, behind the beginning of an item that arrived before. Returns how much is to be fed,
    /// whether there may be more, and the instant; `None` if nothing has arrived.
    #[inline]
    pub fn read(&mut self, buffer: &mut [u8]) -> Result<Option<(usize, bool, Ns)>, ConnectionLoss> {
        let Some(carrier) = &mut self.carrier else { return Ok(None) };
        let begun = self.partial.len();
        let begun = if begun <= MOVED_BYTES.min(buffer.len() / 2) { begun } else { 0 };
        loop {
            match carrier.read(&mut buffer[begun..]) {
                Ok((0, _)) => return Err(ConnectionLoss::Ended("the server closed the connection".into())),
                Ok((count, more)) => {
                    let now = clock::now();
                    if begun > 0 {
                        buffer[..begun].copy_from_slice(&self.partial);
                        release(&mut self.partial);
                    }
                    return Ok(Some((begun + count, more, now)));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}
