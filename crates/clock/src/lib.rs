//! The clock of a host: CLOCK_MONOTONIC, the same for all its processes. Only the owner of a loop
//! or a process reads it; code below receives the time as an argument.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

use pubmark_model::units::{MILLISECOND, Ns, SECOND};
use rustix::thread::{clock_nanosleep_absolute, set_current_timer_slack};
use rustix::time::{ClockId, Timespec, clock_gettime};
use std::num::NonZeroU64;

#[inline]
fn read(clock: ClockId) -> Ns {
    let time = clock_gettime(clock);
    time.tv_sec as Ns * SECOND + time.tv_nsec as Ns
}

/// Returns the current time of CLOCK_MONOTONIC, ns.
#[inline]
pub fn now() -> Ns {
    read(ClockId::Monotonic)
}

/// Returns the CPU time of all threads of this process, ns.
pub fn process_cpu() -> Ns {
    read(ClockId::ProcessCPUTime)
}

/// Converts a time to the kernel's format.
pub fn timespec(ns: Ns) -> Timespec {
    Timespec { tv_sec: (ns / SECOND) as i64, tv_nsec: (ns % SECOND) as i64 }
}

/// Longest sleep before control returns to check for a stop, ns.
pub const NAP: Ns = 50 * MILLISECOND;

/// Sleeps until an instant, but at most 50 ms. A signal may end it early; callers check the clock
/// again in any case.
pub fn sleep_until(at: Ns) {
    let until = at.min(now() + NAP);
    let _ = clock_nanosleep_absolute(ClockId::Monotonic, &timespec(until));
}

/// Yields in a loop that polls the clock. A thread that waits for this processor gets it at once: a
/// server or a subscriber never waits for a publisher that has nothing to do yet.
#[inline]
pub fn let_others_run() {
    std::thread::yield_now();
}

/// Lets timers of the calling thread fire when due: the kernel's default permits 50 µs of slack.
pub fn exact_timers() {
    let _ = set_current_timer_slack(Some(NonZeroU64::MIN));
}
