//! Processes as `/proc` shows them: which belong to a server, and what each uses.

use pubmark_model::units::Ns;
use std::collections::{HashMap, HashSet};
use std::fs::read_to_string;

/// The environment variable that identifies the processes of a server, whoever their
/// parent is. Its value is the name of the server's group.
pub const MARKER: &str = "PUBMARK_SERVER";

/// A process, its parent and its state.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Stat {
    name: String,
    state: char,
    parent: i32,
    user_ticks: u64,
    system_ticks: u64,
}

/// The kernel's counts for a process, over all its live threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// CPU time, ns.
    pub cpu_ns: Ns,
    /// Clock ticks in user mode, estimated by the kernel.
    pub user_ticks: u64,
    /// Clock ticks within the kernel, estimated by the kernel.
    pub system_ticks: u64,
    /// Voluntary context switches.
    pub voluntary: u64,
    /// Involuntary context switches.
    pub involuntary: u64,
    /// Bytes of storage that it changed; `None` if the kernel does not show it to this user.
    pub written_bytes: Option<u64>,
    /// Number of the server's member that it belongs to; 0 if nobody asks.
    pub member: u32,
}

fn parse_stat(text: &str) -> Option<Stat> {
    // A name may contain blanks and parentheses; the last one closes it.
    let (head, rest) = text.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    Some(Stat {
        name: head.split_once('(')?.1.to_owned(),
        state: fields.first()?.chars().next()?,
        parent: fields.get(1)?.parse().ok()?,
        user_ticks: fields.get(11)?.parse().ok()?,
        system_ticks: fields.get(12)?.parse().ok()?,
    })
}

fn stat(pid: i32) -> Option<Stat> {
    parse_stat(&String::from_utf8_lossy(&std::fs::read(format!("/proc/{pid}/stat")).ok()?))
}

/// Returns every process, by number.
pub fn all() -> Vec<i32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// True if a process exists and has not ended; a zombie has ended.
pub fn lives(pid: i32) -> bool {
    stat(pid).is_some_and(|stat| !matches!(stat.state, 'Z' | 'X'))
}

/// True if no process has this number, so that what is named after it is orphaned.
pub fn gone(pid: i32) -> bool {
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), None) == Err(nix::errno::Errno::ESRCH)
}

/// Maximum number of processes whose time is added up: reading them takes 15 µs each.
const COUNTED: usize = 2_000;

/// Returns the processor time of all processes, including ended ones, in clock ticks: the
/// exact time of each, rounded down. `None` if there are too many.
pub fn ticks_of_all() -> Option<u64> {
    let pids = all();
    let used = |pid: &i32| {
        let text = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
        let text = String::from_utf8_lossy(&text);
        // Its own time in user mode and within the kernel, and that of its ended children.
        let fields = text.rsplit_once(')')?.1.split_whitespace().skip(11).take(4);
        Some(fields.filter_map(|field| field.parse::<u64>().ok()).sum::<u64>())
    };
    (pids.len() <= COUNTED).then(|| pids.iter().filter_map(used).sum())
}

/// True if a process numbers processes like this one. A process within a container has
/// other numbers, so that names with numbers must not be interpreted here.
pub fn same_numbers(pid: i32) -> bool {
    let namespace = |process: &str| std::fs::read_link(format!("/proc/{process}/ns/pid")).ok();
    namespace(&pid.to_string()).is_some_and(|theirs| namespace("self") == Some(theirs))
}

/// Returns the name of a process, as `ps` shows it.
pub fn name(pid: i32) -> String {
    stat(pid).map(|stat| stat.name).unwrap_or_default()
}

/// True if a process has this name, as `ps` shows it: the kernel keeps 15 bytes.
pub fn is_called(pid: i32, wanted: &str) -> bool {
    const KEPT: usize = 15;
    let kept = wanted.as_bytes().get(..KEPT).unwrap_or(wanted.as_bytes());
    stat(pid).is_some_and(|stat| stat.name.as_bytes() == kept)
}

/// Returns the number of threads of a process.
pub fn threads(pid: i32) -> Option<u64> {
    /// Index among the fields after the name, in `/proc/PID/stat`.
    const THREADS: usize = 17;
    let text = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    let text = String::from_utf8_lossy(&text);
    text.rsplit_once(')')?.1.split_whitespace().nth(THREADS)?.parse().ok()
}

/// Returns all living processes below one, without itself.
pub fn descendants(root: i32) -> Vec<i32> {
    descendants_of(&[root])
}

/// Returns all living processes below several, with one walk over all processes.
pub fn descendants_of(roots: &[i32]) -> Vec<i32> {
    let stats: Vec<(i32, Stat)> = all().into_iter().filter_map(|pid| Some((pid, stat(pid)?))).collect();
    let links: Vec<(i32, i32)> = stats.iter().map(|(pid, stat)| (*pid, stat.parent)).collect();
    let ended: HashSet<i32> = stats.iter().filter(|(_, stat)| stat.state == 'Z').map(|(pid, _)| *pid).collect();
    let mut found: Vec<i32> = roots.iter().flat_map(|root| below(*root, &links)).collect();
    found.retain(|pid| !ended.contains(pid));
    found
}

fn below(root: i32, links: &[(i32, i32)]) -> Vec<i32> {
    let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
    for (pid, parent) in links.iter().filter(|(pid, _)| *pid != root) {
        children.entry(*parent).or_default().push(*pid);
    }
    let (mut found, mut at) = (children.remove(&root).unwrap_or_default(), 0);
    // The list is read while processes come and go: each is taken only once.
    while at < found.len() {
        found.extend(children.remove(&found[at]).unwrap_or_default());
        at += 1;
    }
    found
}

/// Returns the living processes whose environment has the marker with a wanted value.
/// Environments of other users' processes cannot be read, and those of containers are
/// ignored.
pub fn marked(wanted: impl Fn(&str) -> bool) -> Vec<i32> {
    let prefix = format!("{MARKER}=");
    let bears = |pid: &i32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let mut variables = environment.split(|byte| *byte == 0).filter_map(|entry| std::str::from_utf8(entry).ok());
        variables.any(|entry| entry.strip_prefix(&prefix).is_some_and(&wanted))
    };
    all().into_iter().filter(bears).filter(|pid| lives(*pid) && same_numbers(*pid)).collect()
}

/// Sends a signal; a process that has ended meanwhile is not an error.
pub fn signal(pid: i32, signal: nix::sys::signal::Signal) {
    // Number 0 and negative ones would mean whole groups.
    if pid > 1 {
        let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), signal);
    }
}

/// Returns the kernel's counts for a process.
pub fn counters(pid: i32) -> Option<Counters> {
    counters_and_threads(pid).map(|(counters, _)| counters)
}

/// Returns the kernel's counts for a process, and the CPU time of each of its threads by
/// number, ns.
pub fn counters_and_threads(pid: i32) -> Option<(Counters, Vec<(i32, Ns)>)> {
    let stat = stat(pid)?;
    let mut counters = Counters { user_ticks: stat.user_ticks, system_ticks: stat.system_ticks, ..Counters::default() };
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    let mut each = Vec::new();
    for thread in threads.flatten() {
        // First of three figures: time on a processor, ns.
        let schedule = read_to_string(thread.path().join("schedstat")).unwrap_or_default();
        let cpu_ns = schedule.split_whitespace().next().and_then(|ns| ns.parse().ok()).unwrap_or(0);
        counters.cpu_ns += cpu_ns;
        let number = thread.file_name().to_string_lossy().parse().ok();
        each.extend(number.map(|number: i32| (number, cpu_ns)));
        // A process's own `status` counts its first thread only.
        let (voluntary, involuntary) =
            parse_switches(&read_to_string(thread.path().join("status")).unwrap_or_default());
        counters.voluntary += voluntary;
        counters.involuntary += involuntary;
    }
    counters.written_bytes = written_bytes(pid);
    // A process that has just ended shows nothing; one that is hidden from this user still runs.
    (counters.written_bytes.is_some() || lives(pid)).then_some((counters, each))
}

/// Returns the bytes that a process made the kernel send to storage, or will: a page that it changes counts whole.
fn written_bytes(pid: i32) -> Option<u64> {
    field(&read_to_string(format!("/proc/{pid}/io")).ok()?, "write_bytes:")
}

fn field(text: &str, name: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_whitespace().next()?.parse().ok()
}

fn parse_switches(status: &str) -> (u64, u64) {
    let of = |name| field(status, name).unwrap_or(0);
    (of("voluntary_ctxt_switches:"), of("nonvoluntary_ctxt_switches:"))
}

/// Returns resident and unique set size, bytes. If this user may not see the pages, the
/// unique size is 0.
pub fn memory(pid: i32) -> Option<(u64, u64)> {
    let rollup = read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    let (rss, uss) = parse_smaps(&rollup);
    if rss > 0 {
        return Some((rss, uss));
    }
    Some((resident(pid)?, 0))
}

/// Returns the resident memory of a process, bytes, from the kernel's running sum.
pub fn resident(pid: i32) -> Option<u64> {
    let status = read_to_string(format!("/proc/{pid}/status")).ok()?;
    Some(field(&status, "VmRSS:")? * 1_024)
}

fn parse_smaps(text: &str) -> (u64, u64) {
    let of = |name| field(text, name).unwrap_or(0) * 1_024;
    (of("Rss:"), of("Private_Clean:") + of("Private_Dirty:"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_blanks_and_parentheses_is_read() {
        let stat = parse_stat("42 (a (b) c) S 7 42 42 0 -1 4194560 1 2 3 4 11 12 0 0 20 0 1").unwrap();
        assert_eq!((stat.name.as_str(), stat.state, stat.parent), ("a (b) c", 'S', 7));
        assert_eq!((stat.user_ticks, stat.system_ticks), (11, 12));
        assert_eq!(parse_stat("garbage"), None);
    }

    #[test]
    fn the_tree_is_followed_down_and_never_in_a_circle() {
        let links = [(2, 1), (3, 2), (4, 3), (5, 1), (6, 9), (9, 6)];
        assert_eq!(below(2, &links), [3, 4]);
        let mut found = below(1, &links);
        found.sort_unstable();
        assert_eq!(found, [2, 3, 4, 5]);
        assert_eq!(below(6, &links), [9]);
    }

    #[test]
    fn sizes_and_switches_are_read() {
        let text = "Rss:    1200 kB\nPss: 600 kB\nPrivate_Clean:   100 kB\nPrivate_Dirty:  300 kB\n";
        assert_eq!(parse_smaps(text), (1_200 * 1_024, 400 * 1_024));
        assert_eq!(parse_smaps("garbage"), (0, 0));
        assert_eq!(parse_switches("voluntary_ctxt_switches:\t5\nnonvoluntary_ctxt_switches:\t7\n"), (5, 7));
    }

    #[test]
    fn a_child_is_found_below_its_parent_and_by_its_marker() {
        let mut child = std::process::Command::new("sleep").arg("60").env(MARKER, "test-marked-child").spawn().unwrap();
        let pid = child.id() as i32;
        assert!(lives(pid) && descendants(std::process::id() as i32).contains(&pid));
        // The kernel lets the parent of a spawned child go on as soon as the child's old
        // memory is done with, before the new arguments and environment are in place:
        // until then the child shows none.
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
        while marked(|value| value == "test-marked-child").is_empty() && std::time::Instant::now() < deadline {
            std::thread::yield_now();
        }
        assert_eq!(marked(|value| value == "test-marked-child"), [pid]);
        assert!(memory(pid).unwrap().0 > 0 && counters(pid).is_some());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!lives(pid) && gone(pid));
    }
}
