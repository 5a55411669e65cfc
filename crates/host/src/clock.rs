//! The clocks of this machine.

use nix::time::{ClockId, clock_gettime};
use pubmark_model::units::{Ns, SECOND};

/// CLOCK_MONOTONIC now, ns.
pub fn now() -> Ns {
    read(ClockId::CLOCK_MONOTONIC)
}

/// CPU time of this process, ns.
pub fn own_cpu() -> Ns {
    read(ClockId::CLOCK_PROCESS_CPUTIME_ID)
}

fn read(clock: ClockId) -> Ns {
    clock_gettime(clock).map(|time| time.tv_sec() as Ns * SECOND + time.tv_nsec() as Ns).unwrap_or_default()
}
