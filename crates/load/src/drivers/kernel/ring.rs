//! Rings in memory between threads of one process: a message is copied in once
//! and read in place, and a thread that finds nothing sleeps until it is woken.

use super::wire::Wire;
use crate::drivers::interrupt::Calls;
use crate::drivers::socket::{DriverError, Sent, SocketSpec};
use nix::libc;
use pubmark_model::options::queue_messages;
use rtrb::{Consumer, Producer, RingBuffer};
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering, fence};

/// Turns of a waiting loop before the thread sleeps.
const SPINS: u32 = 32;

/// The messages of a ring: as many as the queues of the libraries hold.
pub(super) fn capacity(spec: &SocketSpec<'_>) -> usize {
    queue_messages(spec.options, spec.payload_bytes) as usize
}

/// Wakes the thread that waits for this socket.
#[derive(Clone)]
pub(super) struct Wakeup(Arc<WakeupState>);

struct WakeupState {
    /// What the thread sleeps for, or is about to; [`NOTHING`] while it is awake.
    asleep_for: AtomicU32,
    calls: Calls,
}

const NOTHING: u32 = 0;
const A_MESSAGE: u32 = 1;
const ROOM: u32 = 2;

impl Wakeup {
    /// Of a socket that is about to be opened.
    pub fn new() -> Result<Wakeup, DriverError> {
        Ok(Wakeup(Arc::new(WakeupState { asleep_for: AtomicU32::new(NOTHING), calls: Calls::new()? })))
    }

    /// Wakes the thread if it sleeps for this. Called after a message was put into a
    /// ring, or taken out of one; who waits for a message is not woken for room.
    #[inline]
    fn wake(&self, what: u32) {
        let asleep_for = &self.0.asleep_for;
        fence(Ordering::SeqCst);
        if asleep_for.load(Ordering::Relaxed) == what
            && asleep_for.compare_exchange(what, NOTHING, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        {
            let wake = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
            // SAFETY: the number outlives the call, which only wakes whoever sleeps at it.
            unsafe { libc::syscall(libc::SYS_futex, asleep_for.as_ptr(), wake, 1) };
        }
    }

    /// Sleeps until it is woken, for two [`WAIT_MS`](crate::drivers::socket::WAIT_MS) at most,
    /// unless `ready` already. Without a time limit of its own, which would be a timer within
    /// what the libraries are held against.
    fn wait_unless(&self, what: u32, ready: impl Fn() -> bool) {
        for _ in 0..SPINS {
            if ready() {
                return;
            }
            std::hint::spin_loop();
        }
        let WakeupState { asleep_for, calls } = &*self.0;
        asleep_for.store(what, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if !ready() {
            let (wait, forever) = (libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG, std::ptr::null::<libc::timespec>());
            // SAFETY: the number outlives the call, which returns at once where it is another by now.
            calls.make(|| unsafe { libc::syscall(libc::SYS_futex, asleep_for.as_ptr(), wait, what, forever) });
        }
        asleep_for.store(NOTHING, Ordering::Relaxed);
    }

    /// Sleeps until it is woken, for two [`WAIT_MS`](crate::drivers::socket::WAIT_MS) at most.
    pub fn wait(&self) {
        self.wait_unless(A_MESSAGE, || false);
    }
}

/// One direction: full messages one way, empty buffers back the other.
fn lane(capacity: usize) -> (Out, In) {
    let (full_in, full_out) = RingBuffer::new(capacity);
    let (empty_in, empty_out) = RingBuffer::new(capacity + 1);
    (Out { full: full_in, empty: empty_out }, In { full: full_out, empty: empty_in, held: Vec::new() })
}

struct Out {
    full: Producer<Vec<u8>>,
    empty: Consumer<Vec<u8>>,
}

struct In {
    full: Consumer<Vec<u8>>,
    empty: Producer<Vec<u8>>,
    held: Vec<u8>,
}

/// Both ends of a connection between two threads.
pub(super) fn pair(capacity: usize, first: &Wakeup, second: &Wakeup) -> (RingWire, RingWire) {
    let (there_out, there_in) = lane(capacity);
    let (back_out, back_in) = lane(capacity);
    let wire = |out, inward, mine: &Wakeup, theirs: &Wakeup| RingWire {
        out,
        inward,
        mine: mine.clone(),
        theirs: theirs.clone(),
    };
    (wire(there_out, back_in, first, second), wire(back_out, there_in, second, first))
}

pub(super) struct RingWire {
    out: Out,
    inward: In,
    mine: Wakeup,
    theirs: Wakeup,
}

impl Wire for RingWire {
    fn offer(&mut self, message: &[u8]) -> io::Result<Sent> {
        if self.out.full.is_full() {
            let full = &self.out.full;
            self.mine.wait_unless(ROOM, || !full.is_full());
            if full.is_full() {
                return Ok(Sent::Full);
            }
        }
        // Buffers come back empty and are used again: there are never more of
        // them than the reader has been behind.
        let mut buffer = self.out.empty.pop().unwrap_or_else(|_| Vec::with_capacity(message.len()));
        buffer.clear();
        buffer.extend_from_slice(message);
        let pushed = self.out.full.push(buffer);
        self.theirs.wake(A_MESSAGE);
        Ok(if pushed.is_ok() { Sent::Accepted } else { Sent::Full })
    }

    fn take(&mut self, wait: bool) -> io::Result<bool> {
        if wait && self.inward.full.is_empty() {
            let full = &self.inward.full;
            self.mine.wait_unless(A_MESSAGE, || !full.is_empty());
        }
        let Ok(message) = self.inward.full.pop() else {
            return Ok(false);
        };
        let emptied = std::mem::replace(&mut self.inward.held, message);
        if emptied.capacity() > 0 {
            // One more fits than there can be; were it full, the buffer is freed.
            let _ = self.inward.empty.push(emptied);
        }
        self.theirs.wake(ROOM);
        Ok(true)
    }

    fn message(&self) -> &[u8] {
        &self.inward.held
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn closed(&self) -> bool {
        self.out.full.is_abandoned()
    }
}
