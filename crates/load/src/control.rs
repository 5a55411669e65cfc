//! State that every thread with clients shares with the agent, for one client or for an
//! event loop with many: flags that the thread reads, the counter that it writes, and its
//! reports.

use crate::outcome::ThreadOutcome;
use crate::subscriber::Totals;
use crate::window::Window;
use nix::errno::Errno;
use pubmark_model::protocol::{ConnectionEnd, PublisherTotal};
use pubmark_model::units::Ns;
use pubmark_model::workload::Workload;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

/// Flags and instants by which the agent controls its client threads.
#[derive(Default)]
pub struct Control {
    start_ns: AtomicU64,
    /// State of the end: [`CRASHED`], [`STOPPED`], or 0 for neither. It is one flag
    /// because threads read it at each message.
    end: AtomicU8,
    drain: OnceLock<(Totals, Ns)>,
    /// True if a server has accepted one of the agent's clients.
    accepted: AtomicBool,
    /// Number of orders to cut clients, which threads read, and their shares, percent.
    cuts: AtomicUsize,
    percents: Mutex<Vec<u8>>,
}

/// All clients are dead, and their results are wanted.
const CRASHED: u8 = 1;
/// The run is over.
const STOPPED: u8 = 2;

impl Control {
    /// Sets the instant of the start.
    pub fn start(&self, at_ns: Ns) {
        self.start_ns.store(at_ns.max(1), Ordering::Release);
    }

    /// Sets what was sent, and until when it may arrive.
    pub fn drain(&self, totals: Totals, deadline_ns: Ns) {
        let _ = self.drain.set((totals, deadline_ns));
    }

    /// Returns what was sent and until when it may arrive; `None` before the drain.
    pub fn draining(&self) -> Option<&(Totals, Ns)> {
        self.drain.get()
    }

    /// Notes that a server has accepted a client.
    pub fn accept(&self) {
        self.accepted.store(true, Ordering::Relaxed);
    }

    /// True if a server has accepted a client.
    pub fn has_accepted(&self) -> bool {
        self.accepted.load(Ordering::Relaxed)
    }

    /// Kills every client.
    pub fn crash(&self) {
        self.end.fetch_max(CRASHED, Ordering::Release);
    }

    /// Cuts the connections of a share of the clients.
    pub fn cut(&self, percent: u8) {
        let mut percents = self.percents.lock().unwrap_or_else(PoisonError::into_inner);
        percents.push(percent);
        self.cuts.store(percents.len(), Ordering::Release);
    }

    /// Returns the share of the clients that the order after `done` others cuts; `None` if there is
    /// no such order yet.
    #[inline]
    pub fn cut_percent(&self, done: usize) -> Option<u8> {
        if self.cuts.load(Ordering::Acquire) <= done {
            return None;
        }
        self.percents.lock().unwrap_or_else(PoisonError::into_inner).get(done).copied()
    }

    /// Ends every thread.
    pub fn stop(&self) {
        self.end.fetch_max(STOPPED, Ordering::Release);
    }

    /// Returns the instant of the start, or `None` before it is known.
    pub fn started(&self) -> Option<Ns> {
        Some(self.start_ns.load(Ordering::Acquire)).filter(|at| *at > 0)
    }

    /// True if every thread has to end.
    #[inline]
    pub fn stopped(&self) -> bool {
        self.end.load(Ordering::Relaxed) >= STOPPED
    }

    /// True if clients have to stop sending and receiving, because the run is over or
    /// because they were killed.
    #[inline]
    pub fn silenced(&self) -> bool {
        self.end.load(Ordering::Relaxed) > 0
    }

    /// True if clients were killed and the run goes on.
    #[inline]
    pub fn crashed(&self) -> bool {
        self.end.load(Ordering::Relaxed) == CRASHED
    }
}

/// A report of a client thread to the agent.
pub enum ThreadReport {
    /// Connected, and receives from all its publishers.
    Ready,
    /// Connected and subscribed (clients of a broker).
    Connected,
    /// Connections of publishers with last wills that ended without a goodbye; before `Sent`.
    Ends(Vec<ConnectionEnd>),
    /// Publishers have sent everything.
    Sent(Vec<PublisherTotal>),
    /// A subscriber has every message, or knows that the rest is lost.
    Drained,
    /// The thread ended; with what it measured.
    Ended(Box<ThreadOutcome>),
    /// The thread could not go on.
    Failed(String),
}

/// Figures for the live display, written by one thread. Neither side waits for the other:
/// a delay noted while the last one is taken may be missing from the display. It is not
/// part of the record.
#[derive(Default)]
#[repr(align(64))]
pub struct Counter {
    count: AtomicU64,
    /// One more than the greatest delay since it was last taken, ns; 0 if there was none.
    lag: AtomicU64,
}

impl Counter {
    /// Returns the current count.
    pub fn get(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Sets the count.
    #[inline]
    pub fn set(&self, value: u64) {
        self.count.store(value, Ordering::Relaxed);
    }

    /// Notes a delay, ns, if there is one.
    #[inline]
    pub fn lag(&self, lag_ns: Option<Ns>) {
        let Some(lag_ns) = lag_ns else { return };
        if lag_ns >= self.lag.load(Ordering::Relaxed) {
            self.lag.store(lag_ns.saturating_add(1), Ordering::Relaxed);
        }
    }

    /// Returns the greatest delay noted since the last call, ns.
    pub fn take_lag(&self) -> Option<Ns> {
        self.lag.swap(0, Ordering::Relaxed).checked_sub(1)
    }
}

/// Data that all client threads of an agent share.
pub struct ThreadContext {
    /// The workload.
    pub workload: Workload,
    /// The control flags.
    pub control: Control,
    /// Offset of the clock used for instants in messages, relative to the local clock,
    /// ns; positive if it is ahead.
    pub ahead_ns: i64,
}

impl ThreadContext {
    /// Returns the window of a run that starts at `start_ns`.
    pub fn window(&self, start_ns: Ns) -> Window {
        Window { ahead_ns: self.ahead_ns, ..Window::new(&self.workload, start_ns) }
    }
}

/// The reason why a thread cannot be pinned to its processors.
#[derive(Debug, thiserror::Error)]
pub enum PinError {
    /// The processor number is invalid.
    #[error("processor {cpu}: {source}")]
    Processor {
        /// The processor's number.
        cpu: usize,
        /// The system's error.
        source: Errno,
    },
    /// The kernel refuses the processors.
    #[error("pinning to processors {cpus:?} failed: {source}")]
    Pinning {
        /// The requested processors.
        cpus: Vec<usize>,
        /// The system's error.
        source: Errno,
    },
}

/// Pins the calling thread to these processors; to all if the list is empty.
pub(crate) fn pin(cpus: &[usize]) -> Result<(), PinError> {
    if cpus.is_empty() {
        return Ok(());
    }
    let mut set = nix::sched::CpuSet::new();
    for cpu in cpus {
        set.set(*cpu).map_err(|source| PinError::Processor { cpu: *cpu, source })?;
    }
    nix::sched::sched_setaffinity(nix::unistd::Pid::from_raw(0), &set)
        .map_err(|source| PinError::Pinning { cpus: cpus.to_owned(), source })
}
