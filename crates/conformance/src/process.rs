//! Usage of an agent's process, as the kernel counts it.

use nix::sched::{CpuSet, sched_getaffinity};
use nix::unistd::Pid;
use pubmark_host::clock;
use pubmark_host::server::processes;
use pubmark_host::server::processes::memory;
use pubmark_host::usage::cpu_ns;
use pubmark_model::units::{MILLISECOND, Ns};
use std::fs::{read_dir, read_to_string};
use std::thread::{self, JoinHandle};

/// Number of readings within a window, beside those at its edges.
const READINGS: u64 = 8;

/// A tick of the kernel's clock in `/proc`: 100 per second on Linux, whatever the kernel's own.
const TICK: Ns = 10 * MILLISECOND;

/// Usage of a process at an instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageAtInstant {
    /// Instant of the reading.
    pub at_ns: Ns,
    /// Processor time of all its threads.
    pub cpu_ns: Ns,
    /// Part of it in user mode.
    pub user_ns: Ns,
    /// Resident set, bytes.
    pub rss_bytes: u64,
    /// Unique set, bytes; 0 if the kernel does not report it.
    pub uss_bytes: u64,
    /// Processors that each of its threads may use, as the kernel writes them.
    pub allowed: Vec<String>,
}

impl UsageAtInstant {
    /// Returns the usage of a process until now; `None` if it has exited.
    fn of(pid: i32) -> Option<UsageAtInstant> {
        let (cpu_ns, stat) = (cpu_ns(pid)?, read_to_string(format!("/proc/{pid}/stat")).ok()?);
        // After the name, which may hold anything; `utime` is the 14th field.
        let fields = stat.rsplit_once(')')?.1.split_whitespace();
        let ticks: u64 = fields.into_iter().nth(11)?.parse().ok()?;
        let (rss_bytes, uss_bytes) = memory(pid)?;
        let threads = read_dir(format!("/proc/{pid}/task")).ok()?.flatten();
        let statuses = threads.filter_map(|thread| read_to_string(thread.path().join("status")).ok());
        let allowed = statuses.filter_map(|status| {
            let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
            Some(line.trim().to_owned())
        });
        let allowed = allowed.collect();
        Some(UsageAtInstant { at_ns: clock::now(), cpu_ns, user_ns: ticks * TICK, rss_bytes, uss_bytes, allowed })
    }
}

/// Returns how long the threads of a process, and of all its descendants, have waited runnable for a processor, ns; 0
/// if the kernel does not report it.
pub fn waited_ns(pid: i32) -> Ns {
    let all = processes::descendants(pid).into_iter().chain([pid]);
    let threads = all.flat_map(|pid| read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten());
    let texts = threads.filter_map(|thread| read_to_string(thread.path().join("schedstat")).ok());
    texts.filter_map(|text| text.split_whitespace().nth(1)?.parse::<Ns>().ok()).sum()
}

/// Readings of a process from the start of a window to its end.
pub struct ProcessWatch {
    thread: Option<JoinHandle<Vec<UsageAtInstant>>>,
}

impl ProcessWatch {
    /// Starts to read a process in this window.
    pub fn of(pid: i32, from_ns: Ns, to_ns: Ns) -> ProcessWatch {
        let look = move || {
            let at = |number: u64| from_ns + (to_ns - from_ns) * number / READINGS;
            let reading = |number| {
                thread::sleep(crate::course::until(at(number)));
                UsageAtInstant::of(pid)
            };
            (0..=READINGS).filter_map(reading).collect()
        };
        ProcessWatch { thread: thread::Builder::new().name("watch".into()).spawn(look).ok() }
    }

    /// Returns its readings when the window is over.
    pub fn finish(mut self) -> Vec<UsageAtInstant> {
        self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or_default()
    }
}

/// Returns a processor to which an agent can be bound; `None` if there is only one.
pub fn processor() -> Option<usize> {
    let allowed = sched_getaffinity(Pid::from_raw(0)).ok()?;
    let all: Vec<usize> = (0..CpuSet::count()).filter(|number| allowed.is_set(*number).unwrap_or(false)).collect();
    all.last().copied().filter(|_| all.len() > 1)
}
