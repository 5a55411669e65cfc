//! Keeps processors awake during a run with a spinner of the idle class on each. A
//! process that wants the processor gets it at once, and does not wait for it to wake up.

use crate::error::HostError;
use crate::machine;
use crate::server::processes;
use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::prctl;
use nix::sys::signal::Signal;
use nix::unistd::{Pid, getppid};
use pubmark_model::units::Ns;
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Loop iterations between two readings of the clock and checks for a stop.
const TURNS: u32 = 1_000;

/// The spinners of a run. They end on drop, and with this process in any case.
pub struct Spinners(Child);

impl Spinners {
    /// Starts a spinner for each processor that this process may use.
    pub fn start() -> Result<Spinners, HostError> {
        // This very program, even if its file has been replaced meanwhile.
        let program = format!("/proc/{}/exe", std::process::id());
        let mut command = Command::new("chrt");
        command.args(["--idle", "0", &program, "awake", "--parent", &std::process::id().to_string()]);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().map_err(|error| {
            HostError::Failed(format!(
                "awake = true: `chrt` cannot be started ({error}): install util-linux, or set awake = false"
            ))
        })?;
        Ok(Spinners(child))
    }

    /// Returns the processor time of the spinners, ns.
    pub fn cpu_ns(&self) -> Ns {
        i32::try_from(self.0.id()).ok().and_then(processes::counters).map_or(0, |counters| counters.cpu_ns)
    }

    /// Returns why the spinners ended, if they have.
    pub fn gone(&mut self) -> Option<String> {
        let status = self.0.try_wait().ok().flatten()?;
        Some(format!("awake = true: what keeps the processors awake has ended ({status})"))
    }
}

impl Drop for Spinners {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Keeps every processor awake until standard input ends or `parent` exits.
/// [`Spinners::start`] starts a process that calls it.
pub fn stay(parent: i32) -> Result<(), HostError> {
    prctl::set_pdeathsig(Signal::SIGKILL).map_err(|error| format!("no signal at the parent's death: {error}"))?;
    if getppid() != Pid::from_raw(parent) {
        return Err("the parent has gone".into());
    }
    let over = Arc::new(AtomicBool::new(false));
    for cpu in machine::usable_cpus() {
        let over = over.clone();
        std::thread::spawn(move || {
            let mut set = CpuSet::new();
            // An unbound spinner still keeps some processor awake.
            let _ = set.set(cpu).and_then(|()| sched_setaffinity(Pid::from_raw(0), &set));
            while !over.load(Ordering::Relaxed) {
                (0..TURNS).for_each(|_| std::hint::spin_loop());
            }
        });
    }
    let mut nothing = [0; 16];
    while std::io::stdin().read(&mut nothing).is_ok_and(|read| read > 0) {}
    over.store(true, Ordering::Relaxed);
    Ok(())
}
