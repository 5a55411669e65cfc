//! Time that the machine takes from a running process, according to the kernel: the time that its threads waited for a
//! processor, and the time that the hypervisor gave to others.

use pubmark_host::clock::now;
use pubmark_model::units::Ns;
use std::path::Path;

/// A tick of `/proc/stat`, ns.
const TICK: Ns = 10_000_000;

/// Time that was taken.
#[derive(Clone, Copy, Debug, Default)]
pub struct Taken {
    /// The time, ns.
    pub ns: Ns,
    /// Its share of the observed time.
    pub share: f64,
}

/// Threads whose waiting for a processor is observed.
#[derive(Clone, Copy)]
pub enum Whose {
    Nobody,
    /// All threads of a process.
    Process(i32),
    /// The calling thread.
    Mine,
}

/// Observes from its creation on.
pub struct Watch {
    whose: Whose,
    cpus: Vec<usize>,
    since_ns: Ns,
    before_ns: Ns,
}

impl Watch {
    /// Starts to observe, also the steal time of these processors.
    pub fn start(whose: Whose, cpus: Vec<usize>) -> Watch {
        let mut watch = Watch { whose, cpus, since_ns: now(), before_ns: 0 };
        watch.before_ns = watch.look_ns();
        watch
    }

    /// Returns the time taken until now.
    pub fn end(&self) -> Taken {
        let ns = self.look_ns().saturating_sub(self.before_ns);
        Taken { ns, share: ns as f64 / (now() - self.since_ns).max(1) as f64 }
    }

    fn look_ns(&self) -> Ns {
        self.waited_ns() + self.stolen_ns()
    }

    /// Returns the time that threads were ready to run and did not.
    fn waited_ns(&self) -> Ns {
        let waited = |folder: &Path| -> Option<Ns> {
            let text = std::fs::read_to_string(folder.join("schedstat")).ok()?;
            text.split_whitespace().nth(1)?.parse().ok()
        };
        match self.whose {
            Whose::Nobody => 0,
            Whose::Mine => waited(Path::new("/proc/thread-self")).unwrap(),
            Whose::Process(process) => {
                let tasks = std::fs::read_dir(format!("/proc/{process}/task")).unwrap();
                tasks.filter_map(|task| waited(&task.ok()?.path())).sum()
            }
        }
    }

    /// Returns the time that the hypervisor took from the processors.
    fn stolen_ns(&self) -> Ns {
        let text = std::fs::read_to_string("/proc/stat").unwrap();
        let steal = |line: &str| {
            let mut words = line.split_whitespace();
            let cpu: usize = words.next()?.strip_prefix("cpu")?.parse().ok()?;
            let ticks: Ns = words.nth(7)?.parse().ok()?;
            self.cpus.contains(&cpu).then_some(ticks * TICK)
        };
        text.lines().filter_map(steal).sum()
    }
}
