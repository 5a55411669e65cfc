//! Current usage of a server, for the live display of a run.

use super::processes;
use super::sample::{SampledProcesses, cpu_time_of, processes_of};
use pubmark_model::units::Ns;

/// A server that was started for a run.
#[derive(Clone, Debug)]
pub struct ServerWatch(Vec<SampledProcesses>);

/// Its current usage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerNow {
    /// CPU time since it was started, ns.
    pub cpu_ns: Ns,
    /// Resident memory of all its processes, bytes.
    pub rss_bytes: u64,
}

impl ServerWatch {
    pub(crate) fn new(watched: Vec<SampledProcesses>) -> ServerWatch {
        ServerWatch(watched)
    }

    /// Returns its current usage; `None` once it has ended. It walks through `/proc`,
    /// which takes about a millisecond of this process; the sizes are the kernel's
    /// running sums, so that the server is not delayed.
    pub fn now(&self) -> Option<ServerNow> {
        let living = processes_of(&self.0);
        if living.is_empty() {
            return None;
        }
        let of_each = || living.iter().filter_map(|pid| Some(processes::counters(*pid)?.cpu_ns)).sum();
        Some(ServerNow {
            cpu_ns: cpu_time_of(&self.0).map_or_else(of_each, |time| time.total_ns),
            rss_bytes: living.iter().filter_map(|pid| processes::resident(*pid)).sum(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_seen_until_it_ends() {
        let mut child = std::process::Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
        let watch = ServerWatch::new(vec![SampledProcesses { root: child.id() as i32, ..SampledProcesses::default() }]);
        let first = watch.now().unwrap();
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
        while watch.now().unwrap().cpu_ns <= first.cpu_ns && std::time::Instant::now() < deadline {
            std::thread::yield_now();
        }
        let later = watch.now().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(later.cpu_ns > first.cpu_ns && later.rss_bytes > 0, "{first:?} {later:?}");
        assert_eq!(watch.now(), None);
    }
}
