//! The connections of one client to the members of a cluster, as one carrier.
//!
//! In what is written, the number of a member (one byte) precedes each frame for it. A frame begins with its length (four
//! bytes, big-endian), which does not count itself. The first frame for a member opens a connection to it. What is read
//! has the same form: whole frames, in the order in which they end. [`MEMBER_LOST`] and the number of a member stand for
//! the end of its connection; what was to be written on it is discarded.

use super::tls::Negotiated;
use crate::session::MEMBER_LOST;
use crate::spare::{keep, release};
use pubmark_model::units::Ns;
use pubmark_wire::kafka::MAX_FRAME_BYTES;
use rustix::event::{EventfdFlags, epoll, eventfd};
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// Bytes of the length of a frame.
const LENGTH_BYTES: usize = 4;
/// Bytes that may wait for one member before the client publishes no more.
const UNSENT_BYTES: usize = 256 << 10;

/// A connection to a member.
pub trait MemberSocket: AsFd + Send {
    /// Checks the result of connecting.
    fn connected(&mut self) -> io::Result<()>;
    /// Reads what is there: 0 bytes at the end.
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize>;
    /// Accepts at least some of the bytes.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize>;
    /// Writes waiting bytes.
    fn flush(&mut self) -> io::Result<()>;
    /// True if bytes wait.
    fn is_behind(&self) -> bool;
    /// Closes the writing side.
    fn finish(&mut self);
    /// Returns version and cipher suite of TLS.
    fn negotiated(&self) -> Option<Negotiated>;
    /// Returns the length of the TLS handshake, ns.
    fn handshake_ns(&self) -> Option<Ns>;
}

/// Begins to connect to the member of a place.
pub type DialMember = Box<dyn Fn(usize) -> io::Result<Box<dyn MemberSocket>> + Send>;

/// The connections of one client.
pub struct MemberStreams {
    dial: DialMember,
    epoll: Arc<OwnedFd>,
    /// Number of the client among the connections of its shard, which all events name.
    index: usize,
    members: Box<[MemberStream]>,
    /// The member that is read next.
    turn: usize,
    /// Makes the shard read, if a loss was noticed while something was written.
    wake: Option<OwnedFd>,
}

/// The connection to one member, if there is one.
#[derive(Default)]
struct MemberStream {
    stream: Option<Box<dyn MemberSocket>>,
    unsent: Vec<u8>,
    input: Vec<u8>,
    /// Bytes of the input that were passed on, and bytes of the frame behind them that is being passed on.
    passed: usize,
    left: usize,
    /// True from the loss of the connection until it is reported. If it was noticed while something was written, what has
    /// arrived is read first.
    is_lost: bool,
}

impl MemberStreams {
    /// Begins to connect to the member of this place, one of `count`, as the client of this number.
    pub fn open_first(
        dial: DialMember,
        epoll: &Arc<OwnedFd>,
        (place, count): (usize, usize),
        index: usize,
    ) -> io::Result<MemberStreams> {
        let members = (0..count).map(|_| MemberStream::default()).collect();
        let mut all = MemberStreams { dial, epoll: Arc::clone(epoll), index, members, turn: place, wake: None };
        all.open(place)?;
        Ok(all)
    }

    fn open(&mut self, place: usize) -> io::Result<()> {
        use epoll::EventFlags as Flags;
        let stream = (self.dial)(place)?;
        let data = epoll::EventData::new_u64(self.index as u64);
        epoll::add(&*self.epoll, stream.as_fd(), data, Flags::IN | Flags::OUT | Flags::RDHUP | Flags::ET)?;
        self.members[place].stream = Some(stream);
        Ok(())
    }

    /// Checks the result of connecting to the first member.
    pub fn connected(&mut self) -> io::Result<()> {
        self.open_streams().try_for_each(|stream| stream.connected())
    }

    /// Reads what is there. There may always be more until the error is `WouldBlock`: 0 bytes if no connection is left.
    pub fn read(&mut self, into: &mut [u8]) -> io::Result<(usize, bool)> {
        self.wake = None;
        for _ in 0..self.members.len() {
            let member = &mut self.members[self.turn];
            member.receive(into)?;
            let count = member.pass_on(self.turn as u8, into)?;
            if member.left == 0 {
                self.turn = (self.turn + 1) % self.members.len();
            }
            if count > 0 {
                return Ok((count, true));
            }
        }
        match self.any() {
            Some(_) => Err(ErrorKind::WouldBlock.into()),
            None => Ok((0, false)),
        }
    }

    /// Takes all of the frames: what the kernel does not take is kept.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut rest = bytes;
        while let Some((place, behind)) = rest.split_first() {
            let length = behind.first_chunk().map(|length| u32::from_be_bytes(*length) as usize);
            let frame = length.and_then(|length| behind.split_at_checked(LENGTH_BYTES.saturating_add(length)));
            let Some((frame, behind)) = frame else {
                return Err(io::Error::other("a request for a member ends within a frame"));
            };
            self.send(usize::from(*place), frame);
            rest = behind;
        }
        Ok(bytes.len())
    }

    fn send(&mut self, place: usize, frame: &[u8]) {
        let Some(member) = self.members.get(place).filter(|member| !member.is_lost) else { return };
        let opened = if member.stream.is_none() { self.open(place) } else { Ok(()) };
        let member = &mut self.members[place];
        let sent = opened.and_then(|()| {
            let taken = if member.unsent.is_empty() { member.take(frame)? } else { 0 };
            if taken < frame.len() {
                keep(&mut member.unsent, &frame[taken..]);
            }
            Ok(())
        });
        if sent.is_err() {
            self.lose(place);
        }
    }

    /// Writes no more on a connection whose loss was noticed while something was written, and makes the shard read.
    fn lose(&mut self, place: usize) {
        let member = &mut self.members[place];
        member.is_lost = true;
        release(&mut member.unsent);
        if self.wake.is_none()
            && let Ok(wake) = eventfd(1, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)
        {
            let data = epoll::EventData::new_u64(self.index as u64);
            let _ = epoll::add(&*self.epoll, &wake, data, epoll::EventFlags::IN | epoll::EventFlags::ET);
            self.wake = Some(wake);
        }
    }

    /// Writes what is kept, as far as the kernel takes it.
    pub fn flush(&mut self) {
        for place in 0..self.members.len() {
            let member = &mut self.members[place];
            if !member.is_lost && member.flush().is_err() {
                self.lose(place);
            }
        }
    }

    /// True if something waits for a kernel to take it.
    pub fn is_unsent(&self) -> bool {
        self.members.iter().any(|member| !member.unsent.is_empty() || member.is_behind())
    }

    /// True if so much waits that the client should publish no more.
    pub fn is_behind(&self) -> bool {
        self.members.iter().any(|member| member.unsent.len() > UNSENT_BYTES)
    }

    /// Discards what waits. Returns how many bytes.
    pub fn abandon(&mut self) -> usize {
        self.members.iter_mut().map(|member| std::mem::take(&mut member.unsent).len()).sum()
    }

    /// Closes the writing side of all connections.
    pub fn finish(&mut self) {
        self.open_streams().for_each(|stream| stream.finish());
    }

    fn open_streams(&mut self) -> impl Iterator<Item = &mut Box<dyn MemberSocket>> {
        self.members.iter_mut().filter_map(|member| member.stream.as_mut())
    }

    /// Returns one of the connections that are open.
    pub fn any(&self) -> Option<&dyn MemberSocket> {
        self.members.iter().find_map(|member| member.stream.as_deref())
    }
}

impl AsFd for MemberStreams {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

impl MemberStream {
    fn lose(&mut self) {
        (self.stream, self.is_lost) = (None, true);
        release(&mut self.unsent);
    }

    fn is_behind(&self) -> bool {
        !self.is_lost && self.stream.as_ref().is_some_and(|stream| stream.is_behind())
    }

    /// Writes bytes. Returns how many the kernel has taken.
    fn take(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(stream) = &mut self.stream else { return Ok(0) };
        let mut taken = 0;
        while taken < bytes.len() {
            match stream.write(&bytes[taken..]) {
                Ok(count) => taken += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        if let Some(stream) = &mut self.stream {
            stream.flush()?;
        }
        if !self.unsent.is_empty() {
            let unsent = std::mem::take(&mut self.unsent);
            let taken = self.take(&unsent);
            self.unsent = unsent;
            self.unsent.drain(..taken?);
            if self.unsent.is_empty() {
                release(&mut self.unsent);
            }
        }
        Ok(())
    }

    /// Returns the length of the frame that has arrived, with that of its length; `None` if it is not whole.
    fn frame_bytes(&self) -> io::Result<Option<usize>> {
        let rest = &self.input[self.passed..];
        let Some(length) = rest.first_chunk().map(|length| u32::from_be_bytes(*length)) else { return Ok(None) };
        if length > MAX_FRAME_BYTES {
            return Err(io::Error::new(ErrorKind::InvalidData, format!("the server announces {length} bytes")));
        }
        let bytes = length as usize + LENGTH_BYTES;
        Ok((bytes <= rest.len()).then_some(bytes))
    }

    /// Receives until a frame is whole, or nothing is there.
    ///
    /// # Errors
    /// Those that would occur on another connection again.
    fn receive(&mut self, space: &mut [u8]) -> io::Result<()> {
        while self.left == 0 && self.frame_bytes()?.is_none() {
            let Some(stream) = &mut self.stream else { break };
            match stream.read(space) {
                Ok(0) => self.lose(),
                Ok(count) => {
                    self.input.drain(..std::mem::take(&mut self.passed));
                    keep(&mut self.input, &space[..count]);
                }
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock if !self.is_lost => break,
                    ErrorKind::Interrupted => {}
                    ErrorKind::PermissionDenied | ErrorKind::InvalidData => return Err(error),
                    _ => self.lose(),
                },
            }
        }
        Ok(())
    }

    /// Passes on whole frames, as far as there is space, or the loss of the connection after the last one. Returns the
    /// number of bytes.
    fn pass_on(&mut self, place: u8, into: &mut [u8]) -> io::Result<usize> {
        let mut count = 0;
        while count < into.len() {
            if self.left == 0 {
                let Some(bytes) = self.frame_bytes()? else { break };
                into[count] = place;
                (self.left, count) = (bytes, count + 1);
            }
            let piece = self.left.min(into.len() - count);
            into[count..count + piece].copy_from_slice(&self.input[self.passed..self.passed + piece]);
            (self.passed, self.left, count) = (self.passed + piece, self.left - piece, count + piece);
        }
        if self.passed == self.input.len() && self.left == 0 {
            self.passed = 0;
            release(&mut self.input);
        }
        if count == 0 && self.is_lost && self.stream.is_none() && self.left == 0 && !into.is_empty() {
            *self = MemberStream::default();
            into[0] = MEMBER_LOST | place;
            count = 1;
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    /// A member whose connection was reset after it had sent something.
    struct Reset(UnixStream, Vec<u8>);

    impl AsFd for Reset {
        fn as_fd(&self) -> BorrowedFd<'_> {
            self.0.as_fd()
        }
    }

    impl MemberSocket for Reset {
        fn connected(&mut self) -> io::Result<()> {
            Ok(())
        }
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let count = self.1.len().min(into.len());
            into[..count].copy_from_slice(&self.1[..count]);
            self.1.drain(..count);
            Ok(count)
        }
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(ErrorKind::ConnectionReset.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
        fn is_behind(&self) -> bool {
            false
        }
        fn finish(&mut self) {}
        fn negotiated(&self) -> Option<Negotiated> {
            None
        }
        fn handshake_ns(&self) -> Option<Ns> {
            None
        }
    }

    #[test]
    fn what_has_arrived_is_read_before_a_loss_that_was_noticed_by_writing() {
        let epoll = Arc::new(epoll::create(epoll::CreateFlags::CLOEXEC).unwrap());
        let sent = [&[0, 0, 0, 2, b'h', b'i'][..], &[0, 0, 0, 1, b'!'], &[0, 0, 0, 9, b'?']].concat();
        let dial =
            move |_| -> io::Result<Box<dyn MemberSocket>> { Ok(Box::new(Reset(UnixStream::pair()?.0, sent.clone()))) };
        let mut all = MemberStreams::open_first(Box::new(dial), &epoll, (0, 2), 0).unwrap();
        let frame = [0, 0, 0, 0, 1, b'x'];
        assert_eq!(all.write(&frame).unwrap() + all.write(&frame).unwrap(), 2 * frame.len());
        let (mut read, mut buffer) = (Vec::new(), [0; 64]);
        while let Ok((count @ 1.., _)) = all.read(&mut buffer) {
            read.extend_from_slice(&buffer[..count]);
        }
        assert_eq!(read, [0, 0, 0, 0, 2, b'h', b'i', 0, 0, 0, 0, 1, b'!', MEMBER_LOST]);
    }
}
