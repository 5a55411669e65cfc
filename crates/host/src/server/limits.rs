//! Limits of a server: its own control group if the kernel allows one, otherwise the
//! processors that it may run on. Reported values are read back.

use super::accounts::{Accounts, Hierarchy, hierarchies, processes_in};
use super::processes;
use crate::machine;
use nix::sys::signal::Signal;
use pubmark_model::cell::Limits;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const PREFIX: &str = "pubmark-";
/// Both versions count processors in a quota of this period, µs: the kernel's default.
const PERIOD_US: f64 = 100_000.0;
/// Minimum quota that the kernel accepts, µs.
const SHORTEST_QUOTA_US: f64 = 1_000.0;
/// Time that the removal of a group may take after its processes have ended.
const REMOVAL: Duration = Duration::from_secs(2);

/// The limits in force.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Applied {
    /// Processors.
    pub cpus: Option<f64>,
    /// Memory, bytes.
    pub memory_bytes: Option<u64>,
    /// The mechanism: `cgroup v1`, `cgroup v2`, `affinity`, two of them, `docker` or `nothing`.
    pub by: String,
    /// The reason why the kernel's limit is not available, if one was asked for.
    pub note: Option<String>,
}

/// Returns a name for the control group, marker or container of a server of this process:
/// `pubmark-PID-NUMBER`.
pub fn name() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("{PREFIX}{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// True if the coordinator in this name is dead.
pub fn orphaned(name: &str) -> bool {
    let parts = name.strip_prefix(PREFIX).and_then(|rest| rest.split_once('-'));
    parts.and_then(|(pid, number)| number.parse::<u32>().ok().and(pid.parse::<i32>().ok())).is_some_and(processes::gone)
}

/// The limits of one server; its control group is removed on drop.
#[derive(Debug)]
pub struct Group {
    /// Accounts of what is used; without folders if there is no group.
    pub accounts: Accounts,
    /// The limits in force.
    pub applied: Applied,
    /// Processors that the server is bound to; empty if it is not.
    pub cpus: Vec<usize>,
}

impl Group {
    /// Makes a group with limits; without limits it still counts exactly.
    pub fn create(name: &str, limits: Limits) -> Group {
        let hierarchies = hierarchies("self");
        let mut notes = Vec::new();
        let accounts = make(&hierarchies, name, &mut notes);
        if let Some(cpus) = limits.cpus
            && let Err(why) = limit_cpus(&accounts, cpus)
        {
            notes.push(why);
        }
        if let Some(bytes) = limits.memory_bytes
            && let Err(why) = limit_memory(&accounts, bytes)
        {
            notes.push(why);
        }
        Group::read_back(accounts, limits, notes)
    }

    /// Binds the server to these processors.
    pub fn bind(&mut self, processors: &[usize]) {
        self.cpus = processors.to_vec();
        let in_force = self.applied.cpus.map_or(processors.len() as f64, |cpus| cpus.min(processors.len() as f64));
        self.applied.cpus = Some(in_force);
        if !self.applied.by.contains("affinity") {
            let others = std::mem::take(&mut self.applied.by);
            self.applied.by = if others == "nothing" { "affinity".into() } else { format!("{others} and affinity") };
        }
    }

    fn read_back(accounts: Accounts, limits: Limits, mut notes: Vec<String>) -> Group {
        let mut cpus = Vec::new();
        let mut in_force = accounts.cpus();
        let mut by: Vec<String> =
            (accounts.version > 0).then(|| format!("cgroup v{}", accounts.version)).into_iter().collect();
        if let (Some(asked), None) = (limits.cpus, in_force) {
            cpus = machine::usable_cpus();
            cpus.truncate(asked.ceil().max(1.0) as usize);
            in_force = (!cpus.is_empty()).then_some(cpus.len() as f64);
            by.extend((!cpus.is_empty()).then(|| "affinity".to_owned()));
        }
        let memory_bytes = accounts.memory_limit_bytes();
        if limits.memory_bytes.is_some() && memory_bytes.is_none() {
            notes.push("memory is limited by the server's own option alone, if it has one".into());
        }
        let asked = limits.cpus.is_some() || limits.memory_bytes.is_some();
        let applied = Applied {
            cpus: in_force,
            memory_bytes,
            by: if by.is_empty() { "nothing".into() } else { by.join(" and ") },
            note: (asked && !notes.is_empty()).then(|| notes.join("; ")),
        };
        Group { accounts, applied, cpus }
    }

    /// Ends the processes in the group, and removes it.
    pub fn remove(&self) {
        remove(&self.accounts.folders());
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.remove();
    }
}

fn words(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| words(path, &error))
}

fn limit_cpus(accounts: &Accounts, cpus: f64) -> Result<(), String> {
    let folder = accounts.cpu.as_ref().ok_or("there is no cgroup that limits processors")?;
    let quota = (cpus * PERIOD_US).round().max(SHORTEST_QUOTA_US);
    if accounts.version == 2 {
        return write(&folder.join("cpu.max"), &format!("{quota} {PERIOD_US}"));
    }
    write(&folder.join("cpu.cfs_period_us"), &PERIOD_US.to_string())?;
    write(&folder.join("cpu.cfs_quota_us"), &quota.to_string())
}

fn limit_memory(accounts: &Accounts, bytes: u64) -> Result<(), String> {
    let folder = accounts.memory.as_ref().ok_or("there is no cgroup that limits memory")?;
    let (limit, swap, swap_bytes) = match accounts.version {
        2 => ("memory.max", "memory.swap.max", 0),
        // The first version counts memory and swap together.
        _ => ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes", bytes),
    };
    write(&folder.join(limit), &bytes.to_string())?;
    // A server that swaps would be measured as slow instead of out of memory. Kernels
    // without accounting of swap lack the file.
    let swap = folder.join(swap);
    if swap.exists() { write(&swap, &swap_bytes.to_string()) } else { Ok(()) }
}

/// Makes the group's folders, by the first version if it has the controllers, otherwise
/// by the second: no controller is in both.
fn make(hierarchies: &[Hierarchy], name: &str, notes: &mut Vec<String>) -> Accounts {
    let first = make_first(hierarchies, name, notes);
    if !first.folders().is_empty() {
        return first;
    }
    if let Some(hierarchy) = hierarchies.iter().find(|hierarchy| hierarchy.version == 2) {
        return make_second(hierarchy, name, notes);
    }
    notes.push("no cgroup hierarchy is mounted".into());
    Accounts::default()
}

fn make_first(hierarchies: &[Hierarchy], name: &str, notes: &mut Vec<String>) -> Accounts {
    let mut folder = |controller: &str| {
        let of = |hierarchy: &&Hierarchy| {
            hierarchy.version == 1 && hierarchy.controllers.iter().any(|known| known == controller)
        };
        let folder = hierarchies.iter().find(of)?.own.join(name);
        match usable(&folder) {
            Ok(()) => Some(folder),
            Err(why) => {
                notes.push(why);
                None
            }
        }
    };
    let accounts = Accounts { version: 1, cpu: folder("cpu"), cpuacct: folder("cpuacct"), memory: folder("memory") };
    if accounts.folders().is_empty() { Accounts::default() } else { accounts }
}

/// Makes a group of the second version. It forbids controllers below a group that has
/// processes of its own: so the group is made beside pubmark's own one, if the parent is
/// delegated to this user, otherwise below it (which the machine's root allows).
fn make_second(hierarchy: &Hierarchy, name: &str, notes: &mut Vec<String>) -> Accounts {
    let beside = hierarchy.own.parent().filter(|parent| parent.starts_with(&hierarchy.mount)).map(Path::to_owned);
    let mut best = Accounts::default();
    for parent in beside.into_iter().chain([hierarchy.own.clone()]) {
        let enabled = fs::read_to_string(parent.join("cgroup.subtree_control")).unwrap_or_default();
        for controller in ["cpu", "memory"] {
            if !enabled.split_whitespace().any(|known| known == controller)
                && let Err(why) = write(&parent.join("cgroup.subtree_control"), &format!("+{controller}"))
            {
                notes.push(why);
            }
        }
        let folder = parent.join(name);
        if let Err(why) = usable(&folder) {
            notes.push(why);
            continue;
        }
        let found = Accounts::second(folder);
        let better = |one: &Accounts, other: &Accounts| {
            let has = |accounts: &Accounts| {
                [&accounts.cpu, &accounts.memory, &accounts.cpuacct].into_iter().flatten().count()
            };
            has(one) > has(other)
        };
        let worse = if better(&found, &best) { std::mem::replace(&mut best, found) } else { found };
        remove(&worse.folders());
        if best.cpu.is_some() && best.memory.is_some() {
            notes.clear();
            break;
        }
    }
    best
}

/// Makes a folder and tests with a process that it can be joined: a user who may make a
/// group may not always move processes to it.
fn usable(folder: &Path) -> Result<(), String> {
    match fs::create_dir(folder) {
        // One folder may have several controllers.
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => return Ok(()),
        made => made.map_err(|error| words(folder, &error))?,
    }
    let probe = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let joined = match probe {
        Err(_) => Ok(()),
        Ok(mut probe) => {
            let joined = write(&folder.join("cgroup.procs"), &probe.id().to_string());
            let _ = probe.kill();
            let _ = probe.wait();
            joined
        }
    };
    if joined.is_err() {
        remove(&[folder.to_owned()]);
    }
    joined
}

/// Returns the folders at which a group of this name may be made.
pub fn places(name: &str) -> Vec<PathBuf> {
    let of = |hierarchy: &Hierarchy| {
        let beside = hierarchy.own.parent().filter(|parent| parent.starts_with(&hierarchy.mount));
        [Some(hierarchy.own.as_path()), beside]
            .into_iter()
            .flatten()
            .map(|parent| parent.join(name))
            .collect::<Vec<_>>()
    };
    hierarchies("self").iter().flat_map(of).collect()
}

/// Kills what is left in groups, and removes them.
pub fn remove(folders: &[PathBuf]) {
    let deadline = Instant::now() + REMOVAL;
    for folder in folders {
        while folder.exists() && fs::remove_dir(folder).is_err() && Instant::now() < deadline {
            for pid in processes_in(folder) {
                processes::signal(pid, Signal::SIGKILL);
            }
            thread::park_timeout(Duration::from_millis(2));
        }
    }
}

/// Ends the servers of dead coordinators, and removes their groups. If a coordinator was
/// killed together with its keepers, nothing else ends them.
pub fn sweep() {
    for pid in processes::marked(orphaned) {
        processes::signal(pid, Signal::SIGKILL);
    }
    for hierarchy in hierarchies("self") {
        let beside = hierarchy.own.parent().filter(|parent| parent.starts_with(&hierarchy.mount));
        // Another session's groups are beside ours, or below one beside ours.
        for parent in [Some(hierarchy.own.as_path()), beside].into_iter().flatten() {
            remove(&orphans(parent));
        }
        for session in beside.map(subfolders).unwrap_or_default() {
            remove(&orphans(&session));
        }
    }
}

fn subfolders(parent: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path()).collect()
}

fn orphans(parent: &Path) -> Vec<PathBuf> {
    let mut found = subfolders(parent);
    found.retain(|folder| {
        let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        // Within a container the coordinator may live, under another number; a process
        // without a number is outside.
        let text = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
        let seen = text.lines().all(|pid| pid.parse().is_ok_and(|pid| pid > 0 && processes::same_numbers(pid)));
        orphaned(name) && seen
    });
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_back_or_their_lack_is_explained() {
        let name = name();
        let group = Group::create(&name, Limits { cpus: Some(0.5), memory_bytes: Some(64 << 20) });
        let applied = &group.applied;
        if group.accounts.cpu.is_some() {
            assert_eq!(applied.cpus, Some(0.5), "{applied:?}");
            assert!(group.cpus.is_empty() && applied.by.starts_with("cgroup v"), "{applied:?}");
        } else {
            assert_eq!((applied.cpus, group.cpus.len()), (Some(1.0), 1), "{applied:?}");
            assert!(applied.by.ends_with("affinity") && applied.note.is_some(), "{applied:?}");
        }
        if group.accounts.memory.is_some() {
            assert_eq!(applied.memory_bytes, Some(64 << 20), "{applied:?}");
        } else {
            assert!(applied.note.as_ref().is_some_and(|note| note.contains("own option")), "{applied:?}");
        }
        let folders = group.accounts.folders();
        assert!(folders.iter().all(|folder| folder.ends_with(&name)));
        drop(group);
        assert!(folders.iter().all(|folder| !folder.exists()));
    }

    #[test]
    fn without_a_group_processors_are_bound_and_the_lack_is_noted() {
        let limits = Limits { cpus: Some(0.5), memory_bytes: Some(1 << 30) };
        let group = Group::read_back(Accounts::default(), limits, vec!["denied".into()]);
        assert_eq!((group.applied.cpus, group.cpus.len()), (Some(1.0), 1));
        assert_eq!((group.applied.memory_bytes, group.applied.by.as_str()), (None, "affinity"));
        assert!(group.applied.note.as_ref().unwrap().starts_with("denied; "));
        let free = Group::read_back(Accounts::default(), Limits::default(), vec!["denied".into()]);
        assert_eq!((free.applied.note.as_ref(), free.applied.by.as_str()), (None, "nothing"));
    }

    #[test]
    fn the_second_version_counts_where_it_is_mounted() {
        let mut second = hierarchies("self");
        second.retain(|hierarchy| hierarchy.version == 2);
        let mut notes = Vec::new();
        let accounts = make(&second, &name(), &mut notes);
        if accounts.folders().is_empty() {
            assert!(!notes.is_empty(), "why there is no group is said");
            return;
        }
        let mut busy = Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
        for folder in accounts.folders() {
            write(&folder.join("cgroup.procs"), &busy.id().to_string()).unwrap();
        }
        assert_eq!((accounts.version, accounts.processes()), (2, vec![busy.id() as i32]));
        let deadline = Instant::now() + Duration::from_secs(30);
        while accounts.cpu_time().unwrap().total_ns == 0 {
            assert!(Instant::now() < deadline, "its time is not counted");
            thread::yield_now();
        }
        assert!(accounts.cpu.is_some() && accounts.memory.is_some() || !notes.is_empty());
        remove(&accounts.folders());
        busy.wait().unwrap();
        assert!(accounts.folders().iter().all(|folder| !folder.exists()));
    }

    #[test]
    fn a_dead_coordinators_server_and_group_are_swept() {
        let mut owner = Command::new("true").spawn().unwrap();
        owner.wait().unwrap();
        let name = format!("{PREFIX}{}-0", owner.id());
        assert!(orphaned(&name) && !orphaned(&super::name()) && !orphaned("pubmark-x-0"));
        let group = Group::create(&name, Limits::default());
        let mut left = Command::new("sleep").arg("60").env(processes::MARKER, &name).spawn().unwrap();
        for folder in group.accounts.folders() {
            write(&folder.join("cgroup.procs"), &left.id().to_string()).unwrap();
        }
        let live = Group::create(&super::name(), Limits::default());
        sweep();
        left.wait().unwrap();
        assert!(group.accounts.folders().iter().all(|folder| !folder.exists()));
        assert!(live.accounts.folders().iter().all(|folder| folder.exists()), "a living coordinator keeps its own");
    }
}
