//! Rings in memory between threads of one process. A message is copied in once and read
//! in place; a thread that finds nothing sleeps until it is woken.

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

/// Iterations of a waiting loop before the thread sleeps.
const SPINS: u32 = 32;

/// Returns how many messages a ring holds: as many as the queues of the libraries.
pub(super) fn capacity(spec: &SocketSpec<'_>) -> usize {
    queue_messages(spec.options, spec.payload_bytes) as usize
}

/// Wakes the thread that waits for this socket.
#[derive(Clone)]
pub(super) struct Wakeup(Arc<WakeupState>);

struct WakeupState {
    /// The event for which the thread sleeps, or is about to; [`NOTHING`] while it is
    /// awake.
    asleep_for: AtomicU32,
    calls: Calls,
}

const NOTHING: u32 = 0;
const A_MESSAGE: u32 = 1;
const ROOM: u32 = 2;

impl Wakeup {
    /// Makes the wake-up of a socket that is about to be opened.
    pub fn new() -> Result<Wakeup, DriverError> {
        Ok(Wakeup(Arc::new(WakeupState { asleep_for: AtomicU32::new(NOTHING), calls: Calls::new()? })))
    }

    /// Wakes the thread if it sleeps for this event. Called after a message was put into
    /// a ring or taken out of one; a thread that waits for a message is not woken for
    /// room.
    #[inline]
    fn wake(&self, what: u32) {
        let asleep_for = &self.0.asleep_for;
        fence(Ordering::SeqCst);
        if asleep_for.load(Ordering::Relaxed) == what
            && asleep_for.compare_exchange(what, NOTHING, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        {
            let wake = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
            // SAFETY: the number outlives the call, which only wakes threads that sleep at
            // it.
            unsafe { libc::syscall(libc::SYS_futex, asleep_for.as_ptr(), wake, 1) };
        }
    }

    /// Sleeps until it is woken, for two [`WAIT_MS`](crate::drivers::socket::WAIT_MS) at most,
    /// unless `ready` already. It sets no timer of its own, because the timer's cost would be
    /// a part of the floor.
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
            // SAFETY: the number outlives the call, which returns at once if the number has changed.
            calls.make(|| unsafe { libc::syscall(libc::SYS_futex, asleep_for.as_ptr(), wait, what, forever) });
        }
        asleep_for.store(NOTHING, Ordering::Relaxed);
    }

    /// Sleeps until it is woken, for two [`WAIT_MS`](crate::drivers::socket::WAIT_MS) at most.
    pub fn wait(&self) {
        self.wait_unless(A_MESSAGE, || false);
    }
}

/// Makes one direction: full messages one way, empty buffers back the other.
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

/// Makes both ends of a connection between two threads.
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
        // Buffers come back empty and are reused: there are never more of them than
        // messages that the reader was behind.
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
            // It has room for one more than there can be; if it were full, the buffer
            // would be freed.
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
