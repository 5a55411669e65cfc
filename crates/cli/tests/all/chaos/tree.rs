//! The coordinator's processes, as `/proc` shows them.

use crate::support::children;
use pubmark_host::clock;
use pubmark_host::server::processes;
use pubmark_model::units::{MILLISECOND, Ns};
use std::path::{Path, PathBuf};

/// The kernel gives start times in hundredths of a second.
const TICK: Ns = 10 * MILLISECOND;
/// The agents' thread that lives from the command `start` to the window's end.
const WINDOW_THREAD: &str = "window";

/// A process: if its number is reused, the start differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Process {
    pub pid: i32,
    start_ticks: u64,
}

impl Process {
    pub fn find(pid: i32) -> Option<Process> {
        let (_, start_ticks) = stat(&PathBuf::from(format!("/proc/{pid}/stat")))?;
        Some(Process { pid, start_ticks })
    }

    /// Returns whether it exists and has not ended.
    pub fn lives(self) -> bool {
        self.state().is_some_and(|state| !matches!(state, 'Z' | 'X'))
    }

    pub fn state(self) -> Option<char> {
        let (state, start) = stat(&PathBuf::from(format!("/proc/{}/stat", self.pid)))?;
        (start == self.start_ticks).then_some(state)
    }

    /// Returns when an agent was told to start, if its window is not over: an instant of CLOCK_MONOTONIC, and how much
    /// earlier than the true one it may be.
    pub fn told_to_start(self) -> Option<(Ns, Ns)> {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.pid)).ok()?;
        let named = |task: &PathBuf| {
            std::fs::read_to_string(task.join("comm")).is_ok_and(|name| name.trim_end() == WINDOW_THREAD)
        };
        let task = tasks.flatten().map(|task| task.path()).find(named)?;
        let (_, start) = stat(&task.join("stat"))?;
        // Both clocks count from the boot; one of them through suspensions too.
        let uptime = std::fs::read_to_string("/proc/uptime").ok()?;
        let up_s: f64 = uptime.split(' ').next()?.parse().ok()?;
        let since_ns = ((up_s * 100.0).round() as u64).saturating_sub(start) * TICK;
        // Each of the two was rounded down by up to a tick.
        Some((clock::now().saturating_sub(since_ns + TICK), 2 * TICK))
    }
}

/// Returns state and start of a process or thread.
fn stat(path: &Path) -> Option<(char, u64)> {
    let text = String::from_utf8_lossy(&std::fs::read(path).ok()?).into_owned();
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    Some((fields.first()?.chars().next()?, fields.get(19)?.parse().ok()?))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Coordinator,
    Agent,
    Keeper,
    Server,
}

/// A process below the coordinator, and the position of the run to which it belongs.
#[derive(Clone, Copy, Debug)]
pub struct Member {
    pub process: Process,
    pub role: Role,
    pub position: Option<u64>,
}

/// Returns keepers, agents and servers below a coordinator.
pub fn below(coordinator: i32) -> Vec<Member> {
    let position = position(coordinator);
    let children = children(coordinator as u32);
    let member = |pid: i32| {
        let is_child = children.iter().any(|(child, _)| *child == pid);
        let (process, role) = (Process::find(pid)?, role(pid, is_child)?);
        Some(Member { process, role, position })
    };
    processes::descendants(coordinator).into_iter().filter_map(member).collect()
}

/// Returns the position of the run that a coordinator makes: its open logs have it in their names.
fn position(coordinator: i32) -> Option<u64> {
    let open = std::fs::read_dir(format!("/proc/{coordinator}/fd")).ok()?.flatten();
    let of_log = |entry: std::fs::DirEntry| {
        let log = std::fs::read_link(entry.path()).ok()?;
        log.file_name()?.to_str()?.strip_prefix("run-")?.split('-').next()?.parse().ok()
    };
    open.filter_map(of_log).max()
}

fn role(pid: i32, is_child: bool) -> Option<Role> {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let mut words = line.split(|byte| *byte == 0).map(String::from_utf8_lossy);
    let (program, word) = (words.next()?, words.next().unwrap_or_default());
    let ours = program.ends_with("/pubmark") || program == "/proc/self/exe";
    match (ours, word.as_ref()) {
        (true, "agent") => Some(Role::Agent),
        (true, "keep") => Some(Role::Keeper),
        // Still the process before exec, or none of these.
        (true, _) => None,
        // A keeper is between a coordinator and its server; a server that only prints its version has none.
        (false, _) => (!is_child).then_some(Role::Server),
    }
}

/// Returns all processes, whatever their parents, that were started with this folder for temporary files. A process
/// that becomes another program shows neither arguments nor environment for a moment: it may be one of them.
pub fn with_temporary_folder(folder: &Path) -> Vec<Process> {
    let wanted = format!("TMPDIR={}", folder.display());
    let has = |pid: &i32| {
        let read = |name: &str| std::fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
        let environment = read("environ");
        let becomes_another = || read("cmdline").is_empty() && std::fs::read_link(format!("/proc/{pid}/exe")).is_ok();
        environment.split(|byte| *byte == 0).any(|entry| entry == wanted.as_bytes())
            || environment.is_empty() && becomes_another()
    };
    let found = processes::all().into_iter().filter(has).filter_map(Process::find);
    found.filter(|process| process.lives()).collect()
}

/// Returns the control groups of these coordinators' servers.
pub fn control_groups(coordinators: &[i32]) -> Vec<PathBuf> {
    let ours = |name: &str| {
        let owner = name.strip_prefix("pubmark-").and_then(|rest| rest.split_once('-'));
        owner.and_then(|(pid, _)| pid.parse().ok()).is_some_and(|pid: i32| coordinators.contains(&pid))
    };
    let (mut found, mut folders) = (Vec::new(), vec![PathBuf::from("/sys/fs/cgroup")]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                found.extend(entry.file_name().to_str().is_some_and(ours).then(|| entry.path()));
                folders.push(entry.path());
            }
        }
    }
    found
}
