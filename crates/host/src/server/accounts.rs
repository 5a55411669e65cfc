//! Usage and limits from the kernel's control groups, in both versions.
//!
//! Source: the kernel's `admin-guide/cgroup-v2` and `admin-guide/cgroup-v1`.

use pubmark_model::units::Ns;
use std::fs::read_to_string;
use std::iter::Sum;
use std::path::{Path, PathBuf};

/// Limits of the first version are page counts: a limit beyond this, bytes, means no
/// limit.
const NO_LIMIT_BYTES: u64 = 1 << 60;

/// The folders of a group's controllers; with the second version all are the same folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accounts {
    /// 1 or 2; 0 without a group.
    pub version: u8,
    /// The folder that limits processors.
    pub cpu: Option<PathBuf>,
    /// The folder that counts CPU time.
    pub cpuacct: Option<PathBuf>,
    /// The folder that counts and limits memory.
    pub memory: Option<PathBuf>,
}

/// CPU time of a group, exact over all processes that ever ran in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTime {
    /// Total, ns.
    pub total_ns: Ns,
    /// In user mode, ns.
    pub user_ns: Ns,
    /// In the kernel, ns.
    pub system_ns: Ns,
}

impl Sum for CpuTime {
    fn sum<I: Iterator<Item = CpuTime>>(all: I) -> CpuTime {
        all.fold(CpuTime::default(), |sum, each| CpuTime {
            total_ns: sum.total_ns + each.total_ns,
            user_ns: sum.user_ns + each.user_ns,
            system_ns: sum.system_ns + each.system_ns,
        })
    }
}

/// A mounted hierarchy, and a process's folder in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hierarchy {
    /// 1 or 2.
    pub version: u8,
    /// Options of its mount: the controllers' names, for the first version.
    pub controllers: Vec<String>,
    /// Its mount point.
    pub mount: PathBuf,
    /// The process's own folder in it.
    pub own: PathBuf,
}

/// Parses the hierarchies of a process from its `mountinfo` and its `cgroup`.
pub fn parse_hierarchies(mountinfo: &str, cgroup: &str) -> Vec<Hierarchy> {
    mountinfo.lines().filter_map(|line| hierarchy(line, cgroup)).collect()
}

fn hierarchy(line: &str, cgroup: &str) -> Option<Hierarchy> {
    let (mounted, kind) = line.split_once(" - ")?;
    let mut mounted = mounted.split(' ').skip(3);
    let (root, mount) = (mounted.next()?, PathBuf::from(mounted.next()?));
    let mut kind = kind.split(' ');
    let version = match kind.next()? {
        "cgroup" => 1,
        "cgroup2" => 2,
        _ => return None,
    };
    let controllers: Vec<String> = kind.nth(1)?.split(',').map(str::to_owned).collect();
    let path = cgroup.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (names, path) = (fields.next()?, fields.next()?);
        let same = match version {
            2 => names.is_empty(),
            _ => names.split(',').any(|name| controllers.iter().any(|controller| controller == name)),
        };
        same.then_some(path)
    })?;
    // Within a container the mount may begin below the machine's root.
    let below = Path::new(path).strip_prefix(root).or_else(|_| Path::new(path).strip_prefix("/")).ok()?;
    let outside = below.components().any(|part| part == std::path::Component::ParentDir);
    let own = if outside || below.as_os_str().is_empty() { mount.clone() } else { mount.join(below) };
    Some(Hierarchy { version, controllers, own: if own.is_dir() { own } else { mount.clone() }, mount })
}

/// Returns the hierarchies of a process of this machine; `self` for this one.
pub fn hierarchies(process: &str) -> Vec<Hierarchy> {
    let cgroup = read_to_string(format!("/proc/{process}/cgroup")).unwrap_or_default();
    // The mounts are those of this process: a container sees others.
    parse_hierarchies(&read_to_string("/proc/self/mountinfo").unwrap_or_default(), &cgroup)
}

fn number(path: &Path) -> Option<u64> {
    read_to_string(path).ok()?.trim().parse().ok()
}

/// Reads a figure from a file of lines `NAME FIGURE`.
fn named(path: &Path, name: &str) -> Option<u64> {
    let text = read_to_string(path).ok()?;
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
}

impl Accounts {
    /// Returns the group of a process, such as a container's first one. `None` if pubmark
    /// itself is in the same group, because its figures would include pubmark.
    pub fn of(pid: i32) -> Option<Accounts> {
        let theirs = hierarchies(&pid.to_string());
        let ours = hierarchies("self");
        let of = |controller: &str| {
            let own = |list: &[Hierarchy]| {
                list.iter()
                    .find(|h| h.version == 1 && h.controllers.iter().any(|c| c == controller))
                    .map(|h| h.own.clone())
            };
            own(&theirs).filter(|folder| own(&ours).as_ref() != Some(folder))
        };
        let first = Accounts { version: 1, cpu: of("cpu"), cpuacct: of("cpuacct"), memory: of("memory") };
        if first.cpuacct.is_some() || first.memory.is_some() {
            return Some(first);
        }
        let second = |list: &[Hierarchy]| list.iter().find(|h| h.version == 2).map(|h| h.own.clone());
        let folder = second(&theirs).filter(|folder| second(&ours).as_ref() != Some(folder))?;
        Some(Accounts::second(folder))
    }

    /// Makes a group of the second version.
    pub fn second(folder: PathBuf) -> Accounts {
        let has = |file: &str| folder.join(file).exists().then(|| folder.clone());
        Accounts { version: 2, cpu: has("cpu.max"), cpuacct: has("cpu.stat"), memory: has("memory.max") }
    }

    /// Returns its folders, each once.
    pub fn folders(&self) -> Vec<PathBuf> {
        let mut folders: Vec<PathBuf> =
            [&self.cpu, &self.cpuacct, &self.memory].into_iter().flatten().cloned().collect();
        folders.sort();
        folders.dedup();
        folders
    }

    /// Returns the processes in it.
    pub fn processes(&self) -> Vec<i32> {
        let mut found: Vec<i32> = self.folders().iter().flat_map(|folder| processes_in(folder)).collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Returns the CPU time so far.
    pub fn cpu_time(&self) -> Option<CpuTime> {
        let folder = self.cpuacct.as_ref()?;
        if self.version == 2 {
            let us = |name| Some(named(&folder.join("cpu.stat"), name)? * 1_000);
            return Some(CpuTime {
                total_ns: us("usage_usec")?,
                user_ns: us("user_usec").unwrap_or(0),
                system_ns: us("system_usec").unwrap_or(0),
            });
        }
        let ns = |file: &str| number(&folder.join(file));
        Some(CpuTime {
            total_ns: ns("cpuacct.usage")?,
            user_ns: ns("cpuacct.usage_user").unwrap_or(0),
            system_ns: ns("cpuacct.usage_sys").unwrap_or(0),
        })
    }

    /// Returns how long the limit kept its processes from processors, summed over
    /// processors, ns.
    pub fn throttled_ns(&self) -> Ns {
        let read = |folder: &PathBuf| match self.version {
            2 => named(&folder.join("cpu.stat"), "throttled_usec").map(|us| us * 1_000),
            _ => named(&folder.join("cpu.stat"), "throttled_time"),
        };
        self.cpu.as_ref().and_then(read).unwrap_or(0)
    }

    /// Returns the memory charged to it, including page cache and kernel memory, bytes.
    pub fn memory_bytes(&self) -> Option<u64> {
        let file = if self.version == 2 { "memory.current" } else { "memory.usage_in_bytes" };
        number(&self.memory.as_ref()?.join(file))
    }

    /// Returns how many of its processes the kernel has killed because memory ran out.
    pub fn oom_kills(&self) -> u64 {
        let file = if self.version == 2 { "memory.events" } else { "memory.oom_control" };
        self.memory.as_ref().and_then(|folder| named(&folder.join(file), "oom_kill")).unwrap_or(0)
    }

    /// Returns the processor limit that is in force.
    pub fn cpus(&self) -> Option<f64> {
        let folder = self.cpu.as_ref()?;
        let (quota, period) = if self.version == 2 {
            let text = read_to_string(folder.join("cpu.max")).ok()?;
            let (quota, period) = text.trim().split_once(' ')?;
            (quota.parse::<f64>().ok()?, period.parse::<f64>().ok()?)
        } else {
            // Without a limit the quota is -1, which is not a number here.
            (number(&folder.join("cpu.cfs_quota_us"))? as f64, number(&folder.join("cpu.cfs_period_us"))? as f64)
        };
        (period > 0.0).then_some(quota / period)
    }

    /// Returns the memory limit that is in force, bytes.
    pub fn memory_limit_bytes(&self) -> Option<u64> {
        let file = if self.version == 2 { "memory.max" } else { "memory.limit_in_bytes" };
        number(&self.memory.as_ref()?.join(file)).filter(|bytes| *bytes < NO_LIMIT_BYTES)
    }
}

/// Returns the processes in a group's folder. A process that cannot be seen from here,
/// for example from within a container, has the number 0 and is left out.
pub fn processes_in(folder: &Path) -> Vec<i32> {
    let text = read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
    text.lines().filter_map(|line| line.parse().ok()).filter(|pid| *pid > 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEPARATE: &str = "31 23 0:28 / /nowhere rw,relatime - tmpfs tmpfs rw,mode=755\n32 31 0:29 / /nowhere/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n35 31 0:32 /docker/a /nowhere/memory rw,relatime shared:9 - cgroup cgroup rw,memory\n41 31 0:38 / /nowhere/unified rw,relatime - cgroup2 cgroup2 rw\n";

    #[test]
    fn hierarchies_are_found_where_they_are_mounted() {
        let found = parse_hierarchies(SEPARATE, "4:memory:/docker/a/b\n2:cpu,cpuacct:/x\n0::/y\n");
        let mounts: Vec<(u8, &str)> = found.iter().map(|h| (h.version, h.mount.to_str().unwrap())).collect();
        assert_eq!(mounts, [(1, "/nowhere/cpu,cpuacct"), (1, "/nowhere/memory"), (2, "/nowhere/unified")]);
        assert_eq!(found[0].controllers, ["rw", "cpu", "cpuacct"]);
        assert!(parse_hierarchies("garbage\n- -\n", "::\n").is_empty());
    }

    #[test]
    fn the_own_folder_is_below_the_mounts_root() {
        let place = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(place.path().join("b")).unwrap();
        let mount = place.path().display();
        let line = format!("35 31 0:32 /docker/a {mount} rw - cgroup cgroup rw,memory\n");
        assert_eq!(parse_hierarchies(&line, "4:memory:/docker/a/b\n")[0].own, place.path().join("b"));
        assert_eq!(parse_hierarchies(&line, "4:memory:/../elsewhere\n")[0].own, place.path());
    }

    #[test]
    fn both_versions_say_the_same() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().to_owned();
        let write = |file: &str, text: &str| std::fs::write(folder.join(file), text).unwrap();
        write("cpu.max", "50000 100000\n");
        write("cpu.stat", "usage_usec 5\nuser_usec 3\nsystem_usec 2\nnr_throttled 1\nthrottled_usec 7\n");
        write("memory.max", "max\n");
        write("memory.current", "4096\n");
        write("memory.events", "oom 2\noom_kill 1\noom_group_kill 0\n");
        let second = Accounts::second(folder.clone());
        assert_eq!(second.cpus(), Some(0.5));
        assert_eq!(second.cpu_time(), Some(CpuTime { total_ns: 5_000, user_ns: 3_000, system_ns: 2_000 }));
        assert_eq!((second.throttled_ns(), second.memory_bytes(), second.oom_kills()), (7_000, Some(4_096), 1));
        assert_eq!(second.memory_limit_bytes(), None);
        write("cpu.max", "max 100000\n");
        assert_eq!(second.cpus(), None);

        write("cpu.cfs_quota_us", "150000\n");
        write("cpu.cfs_period_us", "100000\n");
        write("cpu.stat", "nr_periods 3\nnr_throttled 2\nthrottled_time 9\n");
        for (file, ns) in [("cpuacct.usage", "5"), ("cpuacct.usage_user", "3"), ("cpuacct.usage_sys", "2")] {
            write(file, ns);
        }
        write("memory.limit_in_bytes", "9223372036854771712\n");
        write("memory.usage_in_bytes", "8192\n");
        write("memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n");
        let place = Some(folder.clone());
        let first = Accounts { version: 1, cpu: place.clone(), cpuacct: place.clone(), memory: place };
        assert_eq!(first.folders(), std::slice::from_ref(&folder));
        assert_eq!(first.cpus(), Some(1.5));
        assert_eq!(first.cpu_time(), Some(CpuTime { total_ns: 5, user_ns: 3, system_ns: 2 }));
        assert_eq!((first.throttled_ns(), first.memory_bytes(), first.oom_kills()), (9, Some(8_192), 3));
        assert_eq!(first.memory_limit_bytes(), None);
        write("memory.limit_in_bytes", "67108864\n");
        assert_eq!(first.memory_limit_bytes(), Some(64 << 20));
        write("cpu.cfs_quota_us", "-1\n");
        assert_eq!(first.cpus(), None);
    }
}
