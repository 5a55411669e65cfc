//! Samples a server's usage over exactly the window: CPU time from the kernel's accounts
//! at its edges, memory within it.

use super::accounts::{Accounts, CpuTime};
use super::disk::DiskCounts;
use super::processes::{self, Counters};
use super::server_disk;
use super::sync_trace::SyncTrace;
use crate::clock;
use pubmark_model::record::{DiskFigures, MemberFigures, SyncFigures, Usage};
use pubmark_model::units::{MILLISECOND, Ns, SECOND};
use pubmark_model::window_usage::{self, UsageReading, UsageReadings, WindowUsage};
use pubmark_stats::median_whole;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Time between the first samples of memory; later ones are a second apart.
const STEP: Ns = 250 * MILLISECOND;

/// Initial time between two readings within a window without a known end.
const READING: Ns = 20 * MILLISECOND;

/// A server's usage in the window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerUsage {
    /// Usage of all its processes. Resident sizes are summed, so that pages shared by
    /// processes count once each; unique sizes contain none of them.
    pub usage: Usage,
    /// Maximum memory charged to its control group, including page cache, bytes.
    pub cgroup_memory_bytes_max: Option<u64>,
    /// Each process, that with the most memory first.
    pub processes: Vec<ProcessShare>,
    /// CPU time and memory of each member; empty with one member, and if the window had no known end.
    #[serde(default)]
    pub members: Vec<MemberFigures>,
    /// Writes of its disks, until the power of each was cut; `None` without one, and if the window had no known end.
    #[serde(default)]
    pub disk: Option<DiskFigures>,
    /// Its syncs; `None` if they could not be traced, and if the window had no known end.
    #[serde(default)]
    pub syncs: Option<SyncFigures>,
    /// Time for which the processor limit kept it waiting, summed over processors, s.
    pub throttled_s: f64,
    /// Greatest delay with which one of the window's edges was read, ns.
    pub late_ns: Ns,
}

/// One process's share.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProcessShare {
    /// Its number.
    pub pid: i32,
    /// Its name.
    pub name: String,
    /// Median resident set size, bytes.
    pub rss_bytes_median: u64,
    /// Median unique set size, bytes.
    pub uss_bytes_median: u64,
}

/// The processes of a server's member to sample. A server is a slice of them.
#[derive(Clone, Debug, Default)]
pub struct SampledProcesses {
    /// The number of the member, from 1; 0 if the server has only one.
    pub member: u32,
    /// This process and all below it.
    pub root: i32,
    /// True if the first process itself is excluded, because it is the keeper.
    pub below_only: bool,
    /// The control group of the server.
    pub accounts: Accounts,
    /// True if that group, which counts, is removed with the server and made anew with
    /// it, as a container engine does.
    pub made_anew: bool,
    /// The file of its disk, if its power can be cut.
    pub disk: Option<PathBuf>,
    /// The process that serves its ledger, which is excluded.
    pub ledger: Option<i32>,
    /// Its folder; `None` in a container, and of a server that pubmark did not start.
    pub folder: Option<PathBuf>,
}

impl SampledProcesses {
    /// Returns the processes that live now.
    pub fn processes(&self) -> Vec<i32> {
        let mut found = processes::descendants(self.root);
        found.extend((!self.below_only && processes::lives(self.root)).then_some(self.root));
        found.extend(self.accounts.processes());
        found.retain(|pid| Some(*pid) != self.ledger);
        found.sort_unstable();
        found.dedup();
        found
    }
}

/// Returns the living processes of all members.
pub fn processes_of(watched: &[SampledProcesses]) -> Vec<i32> {
    watched.iter().flat_map(SampledProcesses::processes).collect()
}

/// Returns the CPU time of all; `None` unless each is counted by a control group.
pub fn cpu_time_of(watched: &[SampledProcesses]) -> Option<CpuTime> {
    if watched.is_empty() { None } else { watched.iter().map(|one| one.accounts.cpu_time()).sum() }
}

fn throttled_of(watched: &[SampledProcesses]) -> Ns {
    watched.iter().map(|one| one.accounts.throttled_ns()).sum()
}

fn charged_to(watched: &[SampledProcesses]) -> Option<u64> {
    let each = watched.iter().filter_map(|one| one.accounts.memory_bytes());
    each.reduce(|sum, bytes| sum + bytes)
}

/// Returns what each process and each of their threads has used, ns.
fn counters_of(watched: &[SampledProcesses]) -> (BTreeMap<i32, Counters>, BTreeMap<i32, Ns>) {
    let (mut counters, mut threads) = (BTreeMap::new(), BTreeMap::new());
    for one in watched {
        for pid in one.processes() {
            let Some((own, each)) = processes::counters_and_threads(pid) else { continue };
            counters.insert(pid, Counters { member: one.member, ..own });
            threads.extend(each);
        }
    }
    (counters, threads)
}

/// Counts of disks, by device and by the number of its attachment.
type Disks = BTreeMap<(String, String), DiskCounts>;

/// Returns the counts of each member's disk.
fn disks_of(watched: &[SampledProcesses]) -> Disks {
    watched.iter().filter_map(|one| server_disk::counts(one.disk.as_ref()?)).collect()
}

/// Returns what disks did between two readings; `None` if there was none.
fn disk_figures(began: &Disks, ended: &Disks) -> Option<DiskFigures> {
    let each = began.iter().filter_map(|(device, then)| Some(ended.get(device)?.since(*then)));
    each.reduce(|sum, one| DiskFigures {
        writes: sum.writes.zip(one.writes).map(|(sum, one)| sum + one),
        flushes: sum.flushes + one.flushes,
        flush_ns: sum.flush_ns.zip(one.flush_ns).map(|(sum, one)| sum + one),
    })
}

/// Begins to trace the members' syncs in a window; `None` if a folder is not known.
fn trace_of(watched: &[SampledProcesses], window: Range<Ns>) -> Option<SyncTrace> {
    let members: Option<Vec<(i32, PathBuf)>> =
        watched.iter().map(|one| Some((one.root, one.folder.clone()?))).collect();
    let watched = watched.to_vec();
    // A server that is started again is a child of its first process, the keeper.
    let all = move || watched.iter().map(|one| one.root).chain(processes_of(&watched)).collect();
    Some(SyncTrace::start(members?, all, window))
}

struct Edge {
    at: Ns,
    /// Instant at which everything had been read.
    done: Ns,
    group: Option<CpuTime>,
    throttled_ns: Ns,
    disks: Disks,
    counters: BTreeMap<i32, Counters>,
    /// CPU time of each thread, ns.
    threads: BTreeMap<i32, Ns>,
}

/// Samples all members of a server on its own thread.
pub struct Sampler {
    thread: JoinHandle<Seen>,
    stop: Arc<AtomicBool>,
    watched: Vec<SampledProcesses>,
    departed: Departed,
}

/// Usage of processes that are to be killed before the window's end, and counts of their
/// groups that end with them.
#[derive(Default)]
struct Killed {
    counters: BTreeMap<i32, Counters>,
    disks: Disks,
    group: CpuTime,
    throttled_ns: Ns,
}

type Departed = Arc<Mutex<Killed>>;

impl Sampler {
    /// Starts to sample, from one instant of CLOCK_MONOTONIC to another or, if there is
    /// none, until [`finish`](Sampler::finish).
    pub fn start(watched: Vec<SampledProcesses>, from_ns: Ns, to_ns: Option<Ns>) -> Sampler {
        let stop = Arc::new(AtomicBool::new(false));
        let departed = Departed::default();
        let (stopped, gone, shared) = (stop.clone(), departed.clone(), watched.clone());
        let thread = thread::spawn(move || sample(&shared, from_ns, to_ns, &stopped, &gone));
        Sampler { thread, stop, watched, departed }
    }

    /// Reads the usage of all processes before they are killed; otherwise it would be
    /// lost with them.
    pub fn before_kill(&self) {
        let (counters, _) = counters_of(&self.watched);
        let anew: Vec<SampledProcesses> = self.watched.iter().filter(|one| one.made_anew).cloned().collect();
        let mut departed = self.departed.lock().unwrap_or_else(PoisonError::into_inner);
        departed.counters.extend(counters);
        departed.disks.extend(disks_of(&self.watched));
        departed.group = [departed.group, cpu_time_of(&anew).unwrap_or_default()].into_iter().sum();
        departed.throttled_ns += throttled_of(&anew);
    }

    /// Ends at the window's end or now, whichever is first. If the edges of the window
    /// are known only now, returns what was used between them.
    pub fn finish(self, window: Option<(Ns, Ns)>) -> ServerUsage {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.thread().unpark();
        self.thread.join().unwrap_or_default().usage(window)
    }
}

/// The observations of a server.
#[derive(Default)]
struct Seen {
    wall_ns: Ns,
    /// CPU time of the busiest thread meanwhile; `None` if no thread was seen.
    busiest_ns: Option<Ns>,
    all: WindowUsage,
    /// Readings if the window has no known end.
    course: Vec<UsageReading>,
    memory: Memory,
    disk: Option<DiskFigures>,
    syncs: Option<SyncFigures>,
    /// CPU time of each member, ns.
    member_cpu: BTreeMap<u32, Ns>,
    throttled_ns: Ns,
    late_ns: Ns,
}

impl Seen {
    fn usage(mut self, window: Option<(Ns, Ns)>) -> ServerUsage {
        let (mut wall_ns, mut used) = (self.wall_ns, self.all);
        let busiest = self.busiest_ns.filter(|_| wall_ns > 0).map(|busiest_ns| busiest_ns as f64 / wall_ns as f64);
        if let (Some((from_ns, to_ns)), false) = (window, self.course.is_empty()) {
            (wall_ns, used) = (to_ns.saturating_sub(from_ns), window_usage::between(&self.course, from_ns, to_ns));
            self.memory.sums.truncate(window_usage::samples_by(&self.course, to_ns).max(1));
        }
        let member = |(number, cpu_ns): (&u32, &Ns)| MemberFigures {
            number: *number,
            cpu_cores: if wall_ns == 0 { 0.0 } else { *cpu_ns as f64 / wall_ns as f64 },
            rss_bytes_median: self.memory.of_members.get(number).map_or(0, |sizes| median_whole(sizes.iter().copied())),
        };
        let members = self.member_cpu.iter().map(member).collect();
        let mut seen = self.memory.usage();
        seen.members = members;
        seen.late_ns = self.late_ns;
        (seen.disk, seen.syncs) = (self.disk, self.syncs);
        seen.throttled_s = self.throttled_ns as f64 / SECOND as f64;
        let usage = &mut seen.usage;
        usage.cpu_s = used.cpu_ns as f64 / SECOND as f64;
        usage.cpu_cores = if wall_ns == 0 { 0.0 } else { used.cpu_ns as f64 / wall_ns as f64 };
        usage.user_s = used.user_ns as f64 / SECOND as f64;
        usage.voluntary_switches = used.voluntary_switches;
        usage.involuntary_switches = used.involuntary_switches;
        usage.written_bytes = used.written_bytes;
        usage.busiest_thread_cores = busiest.map(|cores| cores.min(1.0));
        seen
    }
}

fn edge(watched: &[SampledProcesses]) -> Edge {
    let (at, group) = (clock::now(), cpu_time_of(watched));
    let (throttled_ns, disks) = (throttled_of(watched), disks_of(watched));
    let (counters, threads) = counters_of(watched);
    Edge { at, done: clock::now(), group, throttled_ns, disks, counters, threads }
}

fn sample(
    watched: &[SampledProcesses],
    from_ns: Ns,
    to_ns: Option<Ns>,
    stop: &AtomicBool,
    departed: &Departed,
) -> Seen {
    clock::exact_timers();
    let wait = |until: Ns| {
        while clock::now() < until && !stop.load(Ordering::Relaxed) {
            thread::park_timeout(Duration::from_nanos(until.saturating_sub(clock::now())));
        }
    };
    let trace = to_ns.and_then(|to_ns| trace_of(watched, from_ns..to_ns));
    wait(from_ns);
    let began = edge(watched);
    let mut memory = Memory::default();
    let to = to_ns.unwrap_or(Ns::MAX);
    // The first sample waits for a quarter of the step, so that even the shortest window
    // has one taken under load.
    let mut next = from_ns + STEP.min(to_ns.map_or(STEP, |to| to.saturating_sub(from_ns))) / 4;
    let mut course = to_ns.is_none().then(|| UsageReadings::new(READING));
    let first = UsageReading { at_ns: began.at, used: spent(&began, &began), samples: 0 };
    course.iter_mut().for_each(|course| course.add(first));
    while next < to && !stop.load(Ordering::Relaxed) {
        while let Some(course) = course.as_mut().filter(|course| course.next_ns() < next)
            && !stop.load(Ordering::Relaxed)
        {
            wait(course.next_ns());
            let now = glance(watched, &began);
            course.add(UsageReading { at_ns: now.at, used: spent(&began, &now), samples: memory.sums.len() });
        }
        wait(next);
        memory.look(watched);
        next += if memory.sums.len() < 4 { STEP } else { SECOND };
    }
    wait(to);
    let mut ended = edge(watched);
    let syncs = trace.and_then(SyncTrace::finish);
    let killed = std::mem::take(&mut *departed.lock().unwrap_or_else(PoisonError::into_inner));
    for (pid, counters) in killed.counters {
        ended.counters.entry(pid).or_insert(counters);
    }
    // A disk that is attached again is another one: what counts is until its power was cut.
    for (device, counts) in killed.disks {
        ended.disks.entry(device).or_insert(counts);
    }
    ended.group = ended.group.map(|group| [group, killed.group].into_iter().sum());
    ended.throttled_ns += killed.throttled_ns;
    let mut all = spent(&began, &ended);
    // A write to a ledger is none to the kernel's disk.
    all.written_bytes.take_if(|_| watched.iter().any(|one| one.ledger.is_some()));
    let mut course = course.map(UsageReadings::into_readings).unwrap_or_default();
    if to_ns.is_none() {
        course.push(UsageReading { at_ns: ended.at, used: all, samples: memory.sums.len() });
    }
    Seen {
        busiest_ns: busiest(&began.threads, &ended.threads),
        wall_ns: ended.at.saturating_sub(began.at),
        all,
        course,
        memory,
        disk: to_ns.and_then(|_| disk_figures(&began.disks, &ended.disks)),
        syncs,
        member_cpu: if to_ns.is_some() { member_cpu(&began, &ended) } else { BTreeMap::new() },
        throttled_ns: ended.throttled_ns.saturating_sub(began.throttled_ns),
        // A run may end before its window does.
        late_ns: (began.done.saturating_sub(from_ns)).max(ended.done.saturating_sub(to)),
    }
}

/// Returns the CPU time of each member between two edges, ns.
fn member_cpu(began: &Edge, ended: &Edge) -> BTreeMap<u32, Ns> {
    let mut used: BTreeMap<u32, Ns> = BTreeMap::new();
    for (pid, now) in ended.counters.iter().filter(|(_, now)| now.member > 0) {
        let then = began.counters.get(pid).map_or(0, |then| then.cpu_ns);
        *used.entry(now.member).or_default() += now.cpu_ns.saturating_sub(then);
    }
    used
}

/// Reads what is known without a walk through all processes: those that existed when the
/// window began.
fn glance(watched: &[SampledProcesses], began: &Edge) -> Edge {
    let (at, group) = (clock::now(), cpu_time_of(watched));
    let counters = began.counters.keys().filter_map(|pid| Some((*pid, processes::counters(*pid)?))).collect();
    Edge { at, done: at, group, throttled_ns: 0, disks: BTreeMap::new(), counters, threads: BTreeMap::new() }
}

/// Returns the CPU time of the busiest thread between two edges, ns: a thread that began
/// meanwhile counts in full.
fn busiest(began: &BTreeMap<i32, Ns>, ended: &BTreeMap<i32, Ns>) -> Option<Ns> {
    let used = |(number, now): (&i32, &Ns)| now.saturating_sub(began.get(number).copied().unwrap_or_default());
    ended.iter().map(used).max()
}

/// Returns CPU time, context switches and bytes written between two edges.
fn spent(began: &Edge, ended: &Edge) -> WindowUsage {
    // Unknown if it is of one process, or if none was seen.
    let mut used = WindowUsage { written_bytes: (!ended.counters.is_empty()).then_some(0), ..WindowUsage::default() };
    let (mut user, mut system) = (0, 0);
    for (pid, now) in &ended.counters {
        let then = began.counters.get(pid).copied().unwrap_or_default();
        used.cpu_ns += now.cpu_ns.saturating_sub(then.cpu_ns);
        user += now.user_ticks.saturating_sub(then.user_ticks);
        system += now.system_ticks.saturating_sub(then.system_ticks);
        used.voluntary_switches += now.voluntary.saturating_sub(then.voluntary);
        used.involuntary_switches += now.involuntary.saturating_sub(then.involuntary);
        let written = now.written_bytes.map(|bytes| bytes.saturating_sub(then.written_bytes.unwrap_or(0)));
        used.written_bytes = used.written_bytes.zip(written).map(|(sum, bytes)| sum + bytes);
    }
    if let (Some(then), Some(now)) = (began.group, ended.group) {
        used.cpu_ns = now.total_ns.saturating_sub(then.total_ns);
        user = now.user_ns.saturating_sub(then.user_ns);
        system = now.system_ns.saturating_sub(then.system_ns);
    }
    // The split into user and system is the kernel's estimate; the sum is exact.
    let part = u128::from(used.cpu_ns) * u128::from(user) / u128::from(user + system).max(1);
    WindowUsage { user_ns: part as Ns, ..used }
}

/// Samples of memory.
#[derive(Default)]
struct Memory {
    /// Resident and unique size of all processes together, bytes.
    sums: Vec<(u64, u64)>,
    /// Name and sizes of each.
    each: BTreeMap<i32, (String, Vec<(u64, u64)>)>,
    /// Resident size of each member of a cluster, bytes, while it ran.
    of_members: BTreeMap<u32, Vec<u64>>,
    group_max: Option<u64>,
}

impl Memory {
    fn look(&mut self, watched: &[SampledProcesses]) {
        self.group_max = self.group_max.max(charged_to(watched));
        let mut sum = (0, 0);
        for one in watched {
            let mut of_member = 0;
            for pid in one.processes() {
                let Some((rss, uss)) = processes::memory(pid) else { continue };
                sum = (sum.0 + rss, sum.1 + uss);
                of_member += rss;
                let (name, sizes) = self.each.entry(pid).or_default();
                *name = processes::name(pid);
                sizes.push((rss, uss));
            }
            if one.member > 0 && of_member > 0 {
                self.of_members.entry(one.member).or_default().push(of_member);
            }
        }
        if sum.0 > 0 {
            self.sums.push(sum);
        }
    }

    fn usage(self) -> ServerUsage {
        let rss_of = |sizes: &[(u64, u64)]| median_whole(sizes.iter().map(|size| size.0));
        let uss_of = |sizes: &[(u64, u64)]| median_whole(sizes.iter().map(|size| size.1));
        let usage = Usage {
            rss_bytes_median: rss_of(&self.sums),
            rss_bytes_max: self.sums.iter().map(|size| size.0).max().unwrap_or(0),
            uss_bytes_median: uss_of(&self.sums),
            ..Usage::default()
        };
        let share = |(pid, (name, sizes)): (i32, (String, Vec<(u64, u64)>))| ProcessShare {
            pid,
            name,
            rss_bytes_median: rss_of(&sizes),
            uss_bytes_median: uss_of(&sizes),
        };
        // A helper may have a lower number than the server, because numbers wrap around.
        let mut processes: Vec<ProcessShare> = self.each.into_iter().map(share).collect();
        processes.sort_by_key(|process| std::cmp::Reverse(process.rss_bytes_median));
        ServerUsage { usage, cgroup_memory_bytes_max: self.group_max, processes, ..ServerUsage::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_groups_own_count_goes_before_that_of_the_processes() {
        let counters = |cpu_ns, voluntary| Counters { cpu_ns, voluntary, user_ticks: cpu_ns, ..Counters::default() };
        let group = |total_ns| Some(CpuTime { total_ns, user_ns: total_ns / 2, system_ns: total_ns - total_ns / 2 });
        let edge = |at, group, list: &[(i32, Counters)]| Edge {
            at,
            done: at,
            group,
            throttled_ns: 0,
            disks: BTreeMap::new(),
            counters: list.iter().copied().collect(),
            threads: BTreeMap::new(),
        };
        let began = edge(0, None, &[(1, counters(SECOND, 5)), (2, counters(9, 9))]);
        let ended = edge(2 * SECOND, None, &[(1, counters(2 * SECOND, 8)), (3, counters(SECOND, 1))]);
        let used = spent(&began, &ended);
        assert_eq!((used.cpu_ns, used.user_ns, used.voluntary_switches), (2 * SECOND, 2 * SECOND, 4));
        let (began, ended) = (Edge { group: group(0), ..began }, Edge { group: group(4 * SECOND), ..ended });
        let exact = spent(&began, &ended);
        assert_eq!((exact.cpu_ns, exact.user_ns), (4 * SECOND, 2 * SECOND));
    }

    #[test]
    fn bytes_written_are_those_of_all_processes_and_unknown_if_one_hides_them() {
        let edge = |list: &[(i32, Option<u64>)]| {
            let counters = |(pid, written_bytes)| (pid, Counters { written_bytes, ..Counters::default() });
            let counters = list.iter().copied().map(counters).collect();
            let (disks, threads) = (Disks::new(), BTreeMap::new());
            Edge { at: 0, done: 0, group: None, throttled_ns: 0, disks, counters, threads }
        };
        let began = edge(&[(1, Some(100)), (2, Some(7))]);
        let written = |ended: &Edge| spent(&began, ended).written_bytes;
        assert_eq!(written(&edge(&[(1, Some(150)), (3, Some(4_096))])), Some(50 + 4_096), "a new one counts in full");
        assert_eq!(written(&edge(&[(1, Some(150)), (2, None)])), None);
        assert_eq!((written(&began), written(&edge(&[]))), (Some(0), None));
    }

    #[test]
    fn the_busiest_thread_is_told_apart_from_the_others() {
        let threads = |list: &[(i32, Ns)]| list.iter().copied().collect::<BTreeMap<i32, Ns>>();
        let began = threads(&[(1, 50), (2, 900)]);
        assert_eq!(busiest(&began, &threads(&[(1, 250), (2, 950), (3, 120)])), Some(200));
        assert_eq!(busiest(&began, &threads(&[(1, 60), (3, 120)])), Some(120), "one that is new has used all of it");
        assert_eq!(busiest(&began, &threads(&[])), None);
        let seen = Seen { wall_ns: 200, busiest_ns: Some(190), ..Seen::default() };
        assert_eq!(seen.usage(None).usage.busiest_thread_cores, Some(0.95));
    }

    #[test]
    fn what_is_used_in_a_window_without_a_known_end_is_cut_out_of_what_was_seen() {
        let reading = |at: Ns, cpu_ns: Ns, samples| UsageReading {
            at_ns: at * SECOND,
            used: WindowUsage { cpu_ns: cpu_ns * SECOND, user_ns: cpu_ns * SECOND / 2, ..WindowUsage::default() },
            samples,
        };
        let seen = || Seen {
            wall_ns: 9 * SECOND,
            all: WindowUsage { cpu_ns: 6 * SECOND, ..WindowUsage::default() },
            course: vec![reading(1, 0, 0), reading(2, 1, 1), reading(4, 5, 2), reading(10, 6, 4)],
            memory: Memory { sums: vec![(10, 1), (30, 3), (100, 9), (100, 9)], ..Memory::default() },
            ..Seen::default()
        };
        let usage = seen().usage(Some((2 * SECOND, 4 * SECOND))).usage;
        assert_eq!((usage.cpu_s, usage.cpu_cores, usage.user_s), (4.0, 2.0, 2.0));
        assert_eq!((usage.rss_bytes_max, usage.rss_bytes_median), (30, 20));
        let usage = seen().usage(None).usage;
        assert_eq!((usage.cpu_s, usage.rss_bytes_max), (6.0, 100), "where it is known the edges are what counts");
    }

    #[test]
    fn a_spinning_child_is_seen_as_what_the_kernel_says_of_it() {
        let mut child = std::process::Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
        let pid = child.id() as i32;
        let watched = vec![SampledProcesses { root: pid, ..SampledProcesses::default() }];
        let from = clock::now();
        let before = processes::counters(pid).unwrap().cpu_ns;
        let sampler = Sampler::start(watched, from, Some(from + 300 * MILLISECOND));
        while !sampler.thread.is_finished() {
            thread::yield_now();
        }
        let spent = processes::counters(pid).unwrap().cpu_ns - before;
        let used = sampler.finish(None);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(used.usage.cpu_s > 0.0 && used.usage.cpu_s <= spent as f64 / SECOND as f64, "{used:?}");
        let busiest = used.usage.busiest_thread_cores.unwrap();
        assert!(busiest > 0.0 && busiest <= used.usage.cpu_cores * 1.2 + 0.05, "it has one thread: {used:?}");
        assert_eq!(used.processes.len(), 1);
        assert_eq!((used.processes[0].pid, used.processes[0].name.as_str()), (pid, "sh"));
        assert!(used.usage.rss_bytes_max >= used.usage.rss_bytes_median && used.usage.rss_bytes_median > 0);
    }

    #[test]
    fn what_each_member_uses_is_the_servers() {
        let mut children =
            [(); 2].map(|()| std::process::Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap());
        let mut pids = children.each_ref().map(|child| child.id() as i32);
        pids.sort_unstable();
        let used = || pids.map(|pid| processes::counters(pid).map_or(0, |counters| counters.cpu_ns));
        let numbered = (1..).zip(pids);
        let watched: Vec<SampledProcesses> =
            numbered.map(|(member, root)| SampledProcesses { member, root, ..SampledProcesses::default() }).collect();
        let deadline = clock::now() + 30 * SECOND;
        let (began, before) = (edge(&watched), used());
        while used().iter().zip(before).any(|(now, then)| now - then < 20 * MILLISECOND) && clock::now() < deadline {
            thread::yield_now();
        }
        let each = member_cpu(&began, &edge(&watched));
        assert!(each.keys().eq(&[1, 2]) && each.values().all(|cpu_ns| *cpu_ns >= 20 * MILLISECOND), "{each:?}");
        let first = used();
        let sampler = Sampler::start(watched, clock::now(), None);
        while used().iter().zip(first).any(|(now, then)| now - then < 50 * MILLISECOND) && clock::now() < deadline {
            thread::yield_now();
        }
        let found = sampler.finish(None);
        let used_until = used();
        children.iter_mut().for_each(|child| {
            child.kill().unwrap();
            child.wait().unwrap();
        });
        // Both are equally large: either may come first.
        let mut seen: Vec<i32> = found.processes.iter().map(|process| process.pid).collect();
        seen.sort_unstable();
        assert_eq!(seen, pids);
        let most: Ns = used_until.iter().zip(first).map(|(now, then)| now - then).sum();
        assert!(found.usage.cpu_s > 0.0 && found.usage.cpu_s <= most as f64 / SECOND as f64, "{found:?}");
    }

    #[test]
    fn what_a_killed_process_had_used_is_counted() {
        let mut child = std::process::Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
        let pid = child.id() as i32;
        let sampler =
            Sampler::start(vec![SampledProcesses { root: pid, ..SampledProcesses::default() }], clock::now(), None);
        let used = || processes::counters(pid).map_or(0, |counters| counters.cpu_ns);
        // The sampler has read it first.
        let deadline = clock::now() + 30 * SECOND;
        let first = used();
        while used() < first + 100 * MILLISECOND && clock::now() < deadline {
            thread::yield_now();
        }
        sampler.before_kill();
        child.kill().unwrap();
        child.wait().unwrap();
        let found = sampler.finish(None);
        assert!(found.usage.cpu_s > 0.0, "{found:?}");
    }
}
