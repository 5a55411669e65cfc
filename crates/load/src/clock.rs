//! The one clock of a host: CLOCK_MONOTONIC. Only event loops read it; what
//! lies below them is told the time.

use nix::sys::time::TimeSpec;
use nix::time::{ClockId, ClockNanosleepFlags, clock_gettime, clock_nanosleep};
use pubmark_model::units::{MILLISECOND, Ns, SECOND};
use std::time::Duration;

fn to_ns(time: TimeSpec) -> Ns {
    time.tv_sec() as Ns * SECOND + time.tv_nsec() as Ns
}

/// CLOCK_MONOTONIC now, ns.
#[inline]
pub fn now() -> Ns {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    time.tv_sec as Ns * SECOND + time.tv_nsec as Ns
}

/// CPU time of all threads of this process, ns.
pub fn process_cpu() -> Ns {
    clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).map(to_ns).unwrap_or_default()
}

/// The longest sleep before control comes back to look for a stop.
pub const NAP: Ns = 50 * MILLISECOND;

/// Sleeps until an instant, or for 50 ms where that is sooner. A signal may
/// end it early; callers look at the clock again in any case.
pub fn sleep_until(at: Ns) {
    let until = at.min(now() + NAP);
    let request = TimeSpec::from_duration(Duration::from_nanos(until));
    let _ = clock_nanosleep(ClockId::CLOCK_MONOTONIC, ClockNanosleepFlags::TIMER_ABSTIME, &request);
}

/// Lets timers of the calling thread fire when due: the kernel's default
/// allows itself 50 µs of slack.
pub fn exact_timers() {
    let _ = nix::sys::prctl::set_timerslack(1);
}
