//! The machine: its properties, and its load in a window.

use crate::server::processes;
use pubmark_model::pin::parse_processors;
use pubmark_model::record::MachineLoad;
use pubmark_model::units::{Ns, SECOND};
use serde::{Deserialize, Serialize};
use std::fs::read_to_string;

/// Clock ticks of `/proc/stat` in a second, on every Linux.
const TICKS_PER_S: f64 = 100.0;

/// The first PID namespace of a machine, as `/proc/self/ns/pid` shows it: all processes
/// are visible from there.
const ALL_PROCESSES: &str = "pid:[4026531836]";

/// Processor time of the whole machine so far, in clock ticks. Busy time is time that was
/// neither idle nor stolen: the kernel measures idle time, but only samples what runs, at
/// its own tick. A schedule of 5,000 messages a second falls in step with that tick, and
/// looks three times as busy as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ticks {
    idle: u64,
    steal: u64,
    /// Time of all processes, including ended ones; `None` if not all are visible.
    processes: Option<u64>,
    /// Processors of the machine.
    cores: u32,
}

impl Ticks {
    /// Reads `/proc/stat`, and the time of each process.
    pub fn now() -> Ticks {
        let ticks = Ticks::parse(&read_to_string("/proc/stat").unwrap_or_default());
        let seen = std::fs::read_link("/proc/self/ns/pid").is_ok_and(|link| link.as_os_str() == ALL_PROCESSES);
        Ticks { processes: seen.then(processes::ticks_of_all).flatten(), ..ticks }
    }

    fn parse(text: &str) -> Ticks {
        let line = text.lines().find_map(|line| line.strip_prefix("cpu ")).unwrap_or_default();
        let fields: Vec<u64> = line.split_whitespace().filter_map(|field| field.parse().ok()).collect();
        let field = |at: usize| fields.get(at).copied().unwrap_or_default();
        // user nice system idle iowait irq softirq steal (guest is within user)
        Ticks { idle: field(3) + field(4), steal: field(7), processes: None, cores: processors(text) }
    }

    /// Returns the load of the machine since `earlier`; `own_cpu_ns` is the time that the
    /// run's own processes used meanwhile. Busy time outside processes is the kernel that
    /// handles interrupts and wakes processors, mostly for the run itself.
    pub fn load_since(self, earlier: Ticks, wall_ns: Ns, own_cpu_ns: Ns) -> MachineLoad {
        let seconds = |now: u64, then: u64| now.saturating_sub(then) as f64 / TICKS_PER_S;
        let wall_s = wall_ns as f64 / SECOND as f64;
        if wall_s == 0.0 {
            return MachineLoad { cores: self.cores, ..MachineLoad::default() };
        }
        let all_s = wall_s * f64::from(self.cores);
        let (idle_s, steal_s) = (seconds(self.idle, earlier.idle), seconds(self.steal, earlier.steal));
        let busy_cores = ((all_s - idle_s - steal_s) / wall_s).max(0.0);
        // It is less only if a process ended whose time no other process took over.
        let used = self.processes.zip(earlier.processes).filter(|(now, then)| now >= then);
        let used_cores = used.map_or(busy_cores, |(now, then)| busy_cores.min(seconds(now, then) / wall_s));
        let own_cores = own_cpu_ns as f64 / wall_ns as f64;
        MachineLoad {
            steal: (steal_s / all_s).min(1.0),
            foreign_cores: (used_cores - own_cores).max(0.0),
            kernel_cores: busy_cores - used_cores,
            cores: self.cores,
            awake: false,
            late_ns: 0,
            throttle: None,
        }
    }
}

/// Returns how many files a process started from here may open.
pub fn open_files() -> usize {
    use nix::sys::resource::{Resource, getrlimit};
    getrlimit(Resource::RLIMIT_NOFILE).map_or(1_024, |(soft, _)| usize::try_from(soft).unwrap_or(usize::MAX))
}

/// Ports of an address for connections to one server, if the kernel does not report them.
const PORTS: usize = 28_232;

/// Returns how many connections one address of this host may make to another: its
/// ephemeral ports.
pub fn ports() -> usize {
    let range = line("/proc/sys/net/ipv4/ip_local_port_range");
    let ends = range.and_then(|range| {
        let mut ends = range.split_whitespace().map(str::parse::<usize>);
        Some((ends.next()?.ok()?, ends.next()?.ok()?))
    });
    ends.map_or(PORTS, |(first, last)| (last + 1).saturating_sub(first))
}

/// Files that a pubmark process opens beside its connections: logs, event loops,
/// libraries.
const OWN_FILES: usize = 200;

/// Returns how many connections one pubmark process may hold.
pub fn files_for_connections() -> usize {
    open_files().saturating_sub(OWN_FILES).max(1)
}

/// Returns the number of processors of the machine.
pub fn cores() -> u32 {
    processors(&read_to_string("/proc/stat").unwrap_or_default())
}

/// Returns the number of processors that `/proc/stat` lists.
fn processors(stat: &str) -> u32 {
    stat.lines().filter(|line| line.starts_with("cpu") && !line.starts_with("cpu ")).count().max(1) as u32
}

/// Returns the processors that this process may use, by number.
pub fn usable_cpus() -> Vec<usize> {
    let set = nix::sched::sched_getaffinity(nix::unistd::Pid::from_raw(0));
    let Ok(set) = set else { return Vec::new() };
    (0..nix::sched::CpuSet::count()).filter(|cpu| set.is_set(*cpu).unwrap_or(false)).collect()
}

/// Returns the processors that the kernel keeps free of everything that is not bound to
/// them (`isolcpus`), by number.
pub fn isolated_cpus() -> Vec<usize> {
    let list = line("/sys/devices/system/cpu/isolated");
    list.and_then(|list| parse_processors(&list, ',')).unwrap_or_default()
}

/// Returns the processors that this process may use, by number, grouped by core.
pub fn usable_cores() -> Vec<Vec<usize>> {
    cores_of(&usable_cpus(), |cpu| {
        let list = line(&format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"))?;
        parse_processors(&list, ',')
    })
}

fn cores_of(usable: &[usize], siblings: impl Fn(usize) -> Option<Vec<usize>>) -> Vec<Vec<usize>> {
    let mut cores: Vec<Vec<usize>> = Vec::new();
    for cpu in usable {
        let beside = siblings(*cpu).unwrap_or_default();
        match cores.iter_mut().find(|core| core.iter().any(|other| beside.contains(other))) {
            Some(core) => core.push(*cpu),
            None => cores.push(vec![*cpu]),
        }
    }
    cores
}

/// Reads a one-line file of the kernel.
pub fn line(path: &str) -> Option<String> {
    read_to_string(path).ok().map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// Returns the model of the processor.
pub fn processor() -> Option<String> {
    let info = read_to_string("/proc/cpuinfo").ok()?;
    let model = info.lines().find(|line| line.starts_with("model name") || line.starts_with("Model"))?;
    model.split_once(':').map(|(_, name)| name.trim().to_owned())
}

/// True if a hypervisor runs this machine.
pub fn is_virtual() -> bool {
    read_to_string("/proc/cpuinfo")
        .is_ok_and(|info| info.lines().any(|line| line.starts_with("flags") && line.contains(" hypervisor")))
}

/// Returns the memory of the machine, bytes.
pub fn memory_bytes() -> Option<u64> {
    let info = read_to_string("/proc/meminfo").ok()?;
    let kb: u64 =
        info.lines().find_map(|line| line.strip_prefix("MemTotal:"))?.split_whitespace().next()?.parse().ok()?;
    Some(kb * 1_024)
}

/// Returns the kernel's identifier of the machine's current boot.
pub fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

/// Returns the kernel's identifier of this process's network namespace.
pub fn network() -> String {
    std::fs::read_link("/proc/self/ns/net").map(|link| link.display().to_string()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;

    #[test]
    fn processors_of_one_core_stand_together() {
        let siblings = |cpu: usize| Some(vec![cpu % 2, cpu % 2 + 2]);
        assert_eq!(cores_of(&[0, 1, 2, 3], siblings), [[0, 2], [1, 3]]);
        assert_eq!(cores_of(&[1, 2, 3], siblings), [vec![1, 3], vec![2]], "one of them may not be used");
        assert_eq!(cores_of(&[0, 1], |_| None), [[0], [1]], "where the kernel says nothing");
    }

    #[test]
    fn others_are_what_is_neither_idle_nor_stolen_nor_ours() {
        let machine = 1;
        let before = Ticks::parse("cpu  100 0 100 800 0 0 0 0 0 0\ncpu0 1\n");
        // In 2 s: 30 % stolen, 50 % idle, and so 20 % busy, whatever was sampled.
        let (idle, steal) = (800 + 100 * machine, 60 * machine);
        let after = Ticks::parse(&format!("cpu  9000 0 150 {idle} 0 0 0 {steal} 0 0\ncpu0 1\n"));
        let load = after.load_since(before, 2 * SECOND, 0);
        assert!((load.steal - 0.3).abs() < 1e-9, "{load:?}");
        assert!((load.foreign_cores - 0.2 * machine as f64).abs() < 1e-9, "{load:?}");
        let all_ours = after.load_since(before, 2 * SECOND, machine * SECOND);
        assert_eq!(all_ours.foreign_cores, 0.0);
        assert_eq!((load.kernel_cores, all_ours.kernel_cores), (0.0, 0.0), "nobody knows");
    }

    #[test]
    fn what_is_busy_and_no_process_is_the_kernels() {
        let at = |idle: u64, processes| Ticks { idle, processes, cores: 2, ..Ticks::default() };
        // In 2 s, on two processors: 1 s of 4 idle, 2 s of processes, half of that ours.
        let load = at(100, Some(9_200)).load_since(at(0, Some(9_000)), 2 * SECOND, SECOND);
        assert_eq!((load.foreign_cores, load.kernel_cores), (0.5, 0.5));
        // The rounded clock ticks of many processes never exceed the busy time.
        let load = at(300, Some(200)).load_since(at(0, Some(0)), 2 * SECOND, 0);
        assert_eq!((load.foreign_cores, load.kernel_cores), (0.5, 0.0));
        // The time of a process that ended is gone with it.
        let load = at(300, Some(10)).load_since(at(0, Some(9_000)), 2 * SECOND, 0);
        assert_eq!((load.foreign_cores, load.kernel_cores), (0.5, 0.0));
    }

    #[test]
    fn the_time_of_all_processes_is_counted() {
        let used = || processes::ticks_of_all().unwrap();
        let before = used();
        let begun = clock::process_cpu();
        while clock::process_cpu() - begun < SECOND / 10 {}
        assert!(used() >= before + 8, "a tenth of a second is ten ticks, and its ends are rounded");
    }
}
