//! What every thread with clients shares with the agent, whether it has one
//! client or an event loop with many: the flags that it reads, the counter that
//! it writes, and what it reports.

use crate::outcome::ThreadOutcome;
use crate::subscriber::Totals;
use crate::window::Window;
use nix::errno::Errno;
use pubmark_model::protocol::PublisherTotal;
use pubmark_model::units::Ns;
use pubmark_model::workload::Workload;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

/// What the agent tells its client threads.
#[derive(Default)]
pub struct Control {
    start_ns: AtomicU64,
    /// How far the end has come: [`CRASHED`], [`STOPPED`], or 0 for neither.
    /// One flag, for it is looked at with each message.
    end: AtomicU8,
    drain: OnceLock<(Totals, Ns)>,
    /// Whether a server has accepted one of the agent's clients.
    accepted: AtomicBool,
}

/// All clients are dead, and their books are wanted.
const CRASHED: u8 = 1;
/// The run is over.
const STOPPED: u8 = 2;

impl Control {
    /// Sets the instant of the start.
    pub fn start(&self, at_ns: Ns) {
        self.start_ns.store(at_ns.max(1), Ordering::Release);
    }

    /// Sets what was sent, and until when it may arrive.
    pub fn drain(&self, totals: Vec<PublisherTotal>, deadline_ns: Ns) {
        let _ = self.drain.set((Totals::new(&totals), deadline_ns));
    }

    /// What was sent, and until when it may arrive, once it is known.
    pub fn draining(&self) -> Option<&(Totals, Ns)> {
        self.drain.get()
    }

    /// A server has accepted a client.
    pub fn accept(&self) {
        self.accepted.store(true, Ordering::Relaxed);
    }

    /// Whether a server has accepted a client.
    pub fn has_accepted(&self) -> bool {
        self.accepted.load(Ordering::Relaxed)
    }

    /// Kills every client.
    pub fn crash(&self) {
        self.end.fetch_max(CRASHED, Ordering::Release);
    }

    /// Ends every thread.
    pub fn stop(&self) {
        self.end.fetch_max(STOPPED, Ordering::Release);
    }

    /// The start, if it is known.
    pub fn started(&self) -> Option<Ns> {
        Some(self.start_ns.load(Ordering::Acquire)).filter(|at| *at > 0)
    }

    /// Whether all is to end.
    #[inline]
    pub fn stopped(&self) -> bool {
        self.end.load(Ordering::Relaxed) >= STOPPED
    }

    /// Whether clients send and receive nothing more: because all is to end, or
    /// because they have been killed.
    #[inline]
    pub fn silenced(&self) -> bool {
        self.end.load(Ordering::Relaxed) > 0
    }

    /// Whether clients have been killed, and the run goes on.
    #[inline]
    pub fn crashed(&self) -> bool {
        self.end.load(Ordering::Relaxed) == CRASHED
    }
}

/// What a client thread tells the agent.
pub enum ThreadReport {
    /// Connected, and hears whom it should hear.
    Ready,
    /// Connected, and subscriptions stand (clients of a broker).
    Connected,
    /// Publishers have sent all.
    Sent(Vec<PublisherTotal>),
    /// A subscriber has all, or knows the rest to be lost.
    Drained,
    /// It ended, with what it measured.
    Ended(Box<ThreadOutcome>),
    /// It could not go on.
    Failed(String),
}

/// What the live display is told, written by one thread. Neither side waits
/// for the other: a lag that is told while the last one is taken may be lost
/// to the display, which is no record.
#[derive(Default)]
#[repr(align(64))]
pub struct Counter {
    count: AtomicU64,
    /// One more than the greatest lag since it was taken, ns; 0 where there was none.
    lag: AtomicU64,
}

impl Counter {
    /// The count so far.
    pub fn get(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Sets it.
    #[inline]
    pub fn set(&self, value: u64) {
        self.count.store(value, Ordering::Relaxed);
    }

    /// Tells a lag, ns, if there is one.
    #[inline]
    pub fn lag(&self, lag_ns: Option<Ns>) {
        let Some(lag_ns) = lag_ns else { return };
        if lag_ns >= self.lag.load(Ordering::Relaxed) {
            self.lag.store(lag_ns.saturating_add(1), Ordering::Relaxed);
        }
    }

    /// The greatest lag that was told since this was asked last, ns.
    pub fn take_lag(&self) -> Option<Ns> {
        self.lag.swap(0, Ordering::Relaxed).checked_sub(1)
    }
}

/// What every client thread of an agent has in common.
pub struct ThreadContext {
    /// The workload.
    pub workload: Workload,
    /// Flags.
    pub control: Control,
    /// How far the clock of the instants in messages is ahead of this one, ns.
    pub ahead_ns: i64,
}

impl ThreadContext {
    /// The window of a run that starts then.
    pub fn window(&self, start_ns: Ns) -> Window {
        Window { ahead_ns: self.ahead_ns, ..Window::new(&self.workload, start_ns) }
    }
}

/// Why a thread is not kept on its processors.
#[derive(Debug, thiserror::Error)]
pub enum PinError {
    /// There can be no processor of this number.
    #[error("processor {cpu}: {source}")]
    Processor {
        /// Its number.
        cpu: usize,
        /// What is wrong with it.
        source: Errno,
    },
    /// The kernel does not allow it.
    #[error("pinning to processors {cpus:?} failed: {source}")]
    Pinning {
        /// The processors that were asked for.
        cpus: Vec<usize>,
        /// Why.
        source: Errno,
    },
}

/// Keeps the calling thread on these processors; on all if there are none.
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
