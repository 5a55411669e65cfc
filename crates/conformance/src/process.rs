//! What an agent's process uses, by the kernel's account.

use nix::sched::{CpuSet, sched_getaffinity};
use nix::unistd::Pid;
use pubmark_host::clock;
use pubmark_host::server::processes;
use pubmark_host::server::processes::memory;
use pubmark_host::usage::cpu_ns;
use pubmark_model::units::{MILLISECOND, Ns};
use std::fs::{read_dir, read_to_string};
use std::thread::{self, JoinHandle};

/// Readings of a window, beside those at its ends.
const READINGS: u64 = 8;

/// A tick of the kernel's clock in `/proc`: 100 a second on Linux, whatever its own.
const TICK: Ns = 10 * MILLISECOND;

/// What a process had used at an instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// When.
    pub at_ns: Ns,
    /// Processor time of all its threads.
    pub cpu_ns: Ns,
    /// The part of it in user mode.
    pub user_ns: Ns,
    /// Resident set, bytes.
    pub rss_bytes: u64,
    /// Unique set, bytes; 0 where the kernel does not say.
    pub uss_bytes: u64,
    /// The processors that each of its threads may use, as the kernel writes them.
    pub allowed: Vec<String>,
}

impl Reading {
    /// What a process has used until now; none where it is gone.
    fn of(pid: i32) -> Option<Reading> {
        let (cpu_ns, stat) = (cpu_ns(pid)?, read_to_string(format!("/proc/{pid}/stat")).ok()?);
        // Behind the name, which may hold anything; `utime` is the 14th field.
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
        Some(Reading { at_ns: clock::now(), cpu_ns, user_ns: ticks * TICK, rss_bytes, uss_bytes, allowed })
    }
}

/// How long the threads of a process, and of all below it, have waited for a processor while
/// they could have run, ns; 0 where the kernel does not say.
pub fn waited_ns(pid: i32) -> Ns {
    let all = processes::descendants(pid).into_iter().chain([pid]);
    let threads = all.flat_map(|pid| read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten());
    let texts = threads.filter_map(|thread| read_to_string(thread.path().join("schedstat")).ok());
    texts.filter_map(|text| text.split_whitespace().nth(1)?.parse::<Ns>().ok()).sum()
}

/// A look at a process from the beginning of a window to its end.
pub struct ProcessWatch {
    thread: Option<JoinHandle<Vec<Reading>>>,
}

impl ProcessWatch {
    /// Looks at a process in this window.
    pub fn of(pid: i32, from_ns: Ns, to_ns: Ns) -> ProcessWatch {
        let look = move || {
            let at = |number: u64| from_ns + (to_ns - from_ns) * number / READINGS;
            let reading = |number| {
                thread::sleep(crate::course::until(at(number)));
                Reading::of(pid)
            };
            (0..=READINGS).filter_map(reading).collect()
        };
        ProcessWatch { thread: thread::Builder::new().name("watch".into()).spawn(look).ok() }
    }

    /// Its readings, when the window is over.
    pub fn finish(mut self) -> Vec<Reading> {
        self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or_default()
    }
}

/// A processor to which an agent can be held; none where there is no choice.
pub fn processor() -> Option<usize> {
    let allowed = sched_getaffinity(Pid::from_raw(0)).ok()?;
    let all: Vec<usize> = (0..CpuSet::count()).filter(|number| allowed.is_set(*number).unwrap_or(false)).collect();
    all.last().copied().filter(|_| all.len() > 1)
}
