//! Processors and memory that server and generator use by time, from the start of the
//! schedule to the end of the drain.
//!
//! A snapshot costs two system calls and two small files a process, and one more file for
//! a control group. Finding the processes of a run is done rarely, because it is
//! expensive: a file for each process of the machine. Memory is the kernel's running
//! count (`statm`), not the walk over the pages (`smaps_rollup`) that the figures of the
//! window use: the walk holds a lock that the server's own threads need.

use crate::clock;
use crate::server::processes;
use crate::server::sample::{SampledProcesses, cpu_time_of};
use nix::time::{clock_getcpuclockid, clock_gettime};
use nix::unistd::{Pid, SysconfVar, sysconf};
use pubmark_model::record::{UsageOverTime, UsageSeries};
use pubmark_model::units::{Ns, SECOND};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Interval at which the processes are searched, in addition to when one of them has
/// ended.
const ROSTER: Ns = 5 * SECOND;
/// Maximum number of snapshots, for runs that end with a message count.
const LOOKS_MAX: usize = 20_000;
/// Minimum part of a slice at an end of the series that must be observed for it to count.
const SEEN_MIN: f64 = 0.1;

/// Usage of an agent's process up to an instant, by the kernel's accounts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AgentUsed {
    /// The process.
    pub pid: i32,
    /// Processor time of all its threads, ns.
    pub cpu_ns: Ns,
    /// Its resident set size, bytes.
    pub rss_bytes: u64,
}

/// Usage up to an instant.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Used {
    cpu_ns: Ns,
    rss_bytes: u64,
    threads: u64,
}

/// One snapshot.
#[derive(Clone, Copy, Debug, Default)]
struct Reading {
    at: Ns,
    server: Option<Used>,
    generator: Option<Used>,
}

/// Processes whose usage is summed.
struct Group {
    /// Roots of the processes to find; a control group knows its own.
    watched: Vec<SampledProcesses>,
    pids: Vec<i32>,
    listed_ns: Ns,
    /// CPU time of each process that was ever seen, as of its last reading.
    cpu_ns: BTreeMap<i32, Ns>,
    /// Last count of the control groups, and the counts of earlier groups that were made
    /// anew.
    counted_ns: (Ns, Ns),
}

impl Group {
    fn new(watched: Vec<SampledProcesses>) -> Group {
        Group { watched, pids: Vec::new(), listed_ns: 0, cpu_ns: BTreeMap::new(), counted_ns: (0, 0) }
    }

    fn list(&mut self, now: Ns) {
        self.pids.clear();
        let mut roots = Vec::new();
        for watched in &self.watched {
            let of_group = watched.accounts.processes();
            if of_group.is_empty() {
                roots.push(watched.root);
                self.pids.extend((!watched.below_only && processes::lives(watched.root)).then_some(watched.root));
            }
            self.pids.extend(of_group);
        }
        if !roots.is_empty() {
            self.pids.extend(processes::descendants_of(&roots));
        }
        self.pids.sort_unstable();
        self.pids.dedup();
        self.listed_ns = now;
    }

    /// Takes a snapshot; `None` as long as no process has been seen.
    fn look(&mut self, now: Ns) -> Option<Used> {
        if self.pids.is_empty() || now >= self.listed_ns + ROSTER {
            self.list(now);
        }
        let (mut held, all) = self.read();
        if !all {
            self.list(now);
            held = self.read().0;
        }
        if self.cpu_ns.is_empty() {
            return None;
        }
        let counted = cpu_time_of(&self.watched).map(|counted| counted.total_ns);
        let cpu_ns = self.so_far(counted).unwrap_or_else(|| self.cpu_ns.values().sum());
        Some(Used { cpu_ns, ..held })
    }

    /// Returns the total count. A count that restarts with a container is continued;
    /// without a container it does not change. `None` if no group counts.
    fn so_far(&mut self, counted_ns: Option<Ns>) -> Option<Ns> {
        let (last_ns, before_ns) = &mut self.counted_ns;
        if let Some(now_ns) = counted_ns {
            *before_ns += if now_ns < *last_ns { *last_ns } else { 0 };
            *last_ns = now_ns;
        }
        (*last_ns > 0 || counted_ns.is_some()).then_some(*before_ns + *last_ns)
    }

    /// Reads the CPU time of each process. Returns their usage, and whether all of them
    /// existed.
    fn read(&mut self) -> (Used, bool) {
        let (mut held, mut all) = (Used::default(), true);
        for pid in &self.pids {
            let Some((cpu_ns, (rss_bytes, threads))) = cpu_ns(*pid).zip(rss_bytes(*pid).zip(processes::threads(*pid)))
            else {
                all = false;
                continue;
            };
            // A number may be reused: what was used before stays counted.
            let seen = self.cpu_ns.entry(*pid).or_default();
            *seen = (*seen).max(cpu_ns);
            held.rss_bytes += rss_bytes;
            held.threads += threads;
        }
        (held, all)
    }
}

/// Returns the CPU time of a process, including ended threads, ns.
pub fn cpu_ns(pid: i32) -> Option<Ns> {
    let time = clock_gettime(clock_getcpuclockid(Pid::from_raw(pid)).ok()?).ok()?;
    Some(time.tv_sec() as Ns * SECOND + time.tv_nsec() as Ns)
}

/// Returns what a process has used so far; `None` if it does not exist.
pub fn used_by(pid: i32) -> Option<AgentUsed> {
    Some(AgentUsed { pid, cpu_ns: cpu_ns(pid)?, rss_bytes: rss_bytes(pid)? })
}

/// Returns the resident set of a process from the kernel's running count, bytes.
fn rss_bytes(pid: i32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
    let pages: u64 = text.split_whitespace().nth(1)?.parse().ok()?;
    let page_bytes = sysconf(SysconfVar::PAGE_SIZE).ok().flatten()?;
    Some(pages * u64::try_from(page_bytes).ok()?)
}

struct Looks {
    server: Group,
    generator: Group,
    readings: Vec<Reading>,
}

impl Looks {
    fn look(&mut self) {
        let at = clock::now();
        if self.readings.len() < LOOKS_MAX {
            let reading = Reading { at, server: self.server.look(at), generator: self.generator.look(at) };
            self.readings.push(reading);
        }
    }
}

/// Takes an extra snapshot at once, for callers that know that a process is about to end.
#[derive(Clone)]
pub struct SnapshotTrigger(Arc<Mutex<Looks>>);

impl SnapshotTrigger {
    /// Takes a snapshot.
    pub fn look(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).look();
    }
}

/// Samples server and agents on its own thread until it is dropped.
pub struct UsageWatch {
    looker: SnapshotTrigger,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    from_ns: Ns,
    slice_ns: Ns,
}

impl UsageWatch {
    /// Starts to sample at the beginning of the warm-up, on CLOCK_MONOTONIC. The window
    /// begins at its end: the edges of the slices are counted from there.
    pub fn start(
        server: Vec<SampledProcesses>,
        agents: impl Iterator<Item = i32>,
        warmup: Range<Ns>,
        slice_ns: Ns,
    ) -> UsageWatch {
        let from_ns = warmup.end;
        let agents = agents.map(|root| SampledProcesses { root, ..SampledProcesses::default() }).collect();
        let (server, generator) = (Group::new(server), Group::new(agents));
        let looker = SnapshotTrigger(Arc::new(Mutex::new(Looks { server, generator, readings: Vec::new() })));
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, looks) = (stop.clone(), looker.clone());
        let thread = thread::Builder::new().name("usage".into());
        let thread = thread.spawn(move || watch(&looks, warmup.start, from_ns, slice_ns, &stopped)).ok();
        UsageWatch { looker, stop, thread, from_ns, slice_ns }
    }

    /// Returns a handle for a snapshot before something ends.
    pub fn looker(&self) -> SnapshotTrigger {
        self.looker.clone()
    }

    /// Takes a last snapshot and ends. Returns `None` if there was nothing to observe.
    pub fn finish(self) -> Option<UsageSeries> {
        self.looker.look();
        let readings = std::mem::take(&mut self.looker.0.lock().unwrap_or_else(PoisonError::into_inner).readings);
        series(&readings, self.from_ns, self.slice_ns)
    }
}

impl Drop for UsageWatch {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

fn watch(looker: &SnapshotTrigger, start_ns: Ns, from_ns: Ns, slice_ns: Ns, stop: &AtomicBool) {
    clock::exact_timers();
    let mut next = start_ns;
    loop {
        while clock::now() < next && !stop.load(Ordering::Relaxed) {
            thread::park_timeout(Duration::from_nanos(next.saturating_sub(clock::now())));
        }
        if stop.load(Ordering::Relaxed) {
            return;
        }
        looker.look();
        // The next edge; missed edges are not made up for.
        let now = clock::now();
        next = next_edge(now, from_ns, slice_ns);
    }
}

/// Returns the first edge of a slice after `now`. Another host defines where slices begin
/// and how long they are.
fn next_edge(now: Ns, from_ns: Ns, slice_ns: Ns) -> Ns {
    let slice_ns = slice_ns.max(1);
    match from_ns.checked_sub(now) {
        Some(left @ 1..) => from_ns - (left - 1) / slice_ns * slice_ns,
        _ => from_ns.saturating_add(((now - from_ns) / slice_ns).saturating_add(1).saturating_mul(slice_ns)),
    }
}

/// Converts snapshots to slices. CPU time between two snapshots is spread evenly, so that
/// a late snapshot shifts little and loses nothing.
fn series(readings: &[Reading], from_ns: Ns, slice_ns: Ns) -> Option<UsageSeries> {
    let edge = |slice: i64| slice * slice_ns as i64;
    let relative = |at: Ns| at as i64 - from_ns as i64;
    let (first, last) = (relative(readings.first()?.at), relative(readings.last()?.at));
    let seen = |slice: i64| (edge(slice).max(first), edge(slice + 1).min(last));
    let enough = |slice: &i64| {
        let (from, to) = seen(*slice);
        (to - from) as f64 >= SEEN_MIN * slice_ns as f64
    };
    let range = first.div_euclid(slice_ns as i64)..=last.div_euclid(slice_ns as i64);
    let slices: Vec<i64> = range.filter(enough).collect();
    let over_time = |pick: fn(&Reading) -> Option<Used>| {
        let used: Vec<(i64, Used)> =
            readings.iter().filter_map(|look| Some((relative(look.at), pick(look)?))).collect();
        let rounded = |cores: f64| (cores * 1e6).round() / 1e6;
        (used.len() > 1).then(|| UsageOverTime {
            cpu_cores: slices.iter().map(|slice| rounded(cores(&used, seen(*slice)))).collect(),
            rss_bytes: slices.iter().map(|slice| nearest(&used, seen(*slice).1).rss_bytes).collect(),
            threads: slices.iter().map(|slice| nearest(&used, seen(*slice).1).threads).collect(),
        })
    };
    let (server, generator) = (over_time(|look| look.server), over_time(|look| look.generator));
    let start_ns = edge(*slices.first()?);
    (server.is_some() || generator.is_some()).then_some(UsageSeries { start_ns, slice_ns, server, generator })
}

/// Returns the processors busy between two instants.
fn cores(used: &[(i64, Used)], (from, to): (i64, i64)) -> f64 {
    if to <= from { 0.0 } else { (cpu_at(used, to) - cpu_at(used, from)).max(0.0) / (to - from) as f64 }
}

/// Returns the CPU time up to an instant, ns, by linear interpolation.
fn cpu_at(used: &[(i64, Used)], at: i64) -> f64 {
    let after = used.partition_point(|(seen, _)| *seen < at);
    let (Some((to, then)), Some((from, before))) = (used.get(after), after.checked_sub(1).and_then(|i| used.get(i)))
    else {
        return used.get(after.min(used.len().saturating_sub(1))).map_or(0.0, |(_, used)| used.cpu_ns as f64);
    };
    let part = (at - from) as f64 / (to - from) as f64;
    before.cpu_ns as f64 + part * (then.cpu_ns as f64 - before.cpu_ns as f64)
}

fn nearest(used: &[(i64, Used)], at: i64) -> Used {
    used.iter().min_by_key(|(seen, _)| seen.abs_diff(at)).map(|(_, used)| *used).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pubmark_model::units::MILLISECOND;
    use std::io::{BufRead, BufReader, Write};
    use std::process::{Command, Stdio};

    fn look(at: Ns, server_cpu_ns: Option<Ns>, rss_bytes: u64) -> Reading {
        let server = server_cpu_ns.map(|cpu_ns| Used { cpu_ns, rss_bytes, threads: rss_bytes });
        Reading { at, server, generator: Some(Used { cpu_ns: at, rss_bytes: 7, threads: 1 }) }
    }

    /// Samples at these instants after a start of 10 s, ms; the window begins at 12.5 s.
    fn seen(looks: &[(u64, u64, u64)]) -> UsageSeries {
        let ms = |ms: u64| 10 * SECOND + ms * MILLISECOND;
        let looks: Vec<Reading> =
            looks.iter().map(|(at, cpu, rss)| look(ms(*at), Some(cpu * MILLISECOND), *rss)).collect();
        series(&looks, ms(2_500), SECOND).unwrap()
    }

    #[test]
    fn edges_of_slices_do_not_overflow_whatever_a_coordinator_says() {
        for (now, from_ns, slice_ns, next) in [
            (5, 20, 10, 10),
            (10, 20, 10, 20),
            (20, 20, 10, 30),
            (47, 20, 10, 50),
            (0, Ns::MAX, 7, Ns::MAX - (Ns::MAX - 1) / 7 * 7),
            (Ns::MAX, 0, 10, Ns::MAX),
            (5, 1, Ns::MAX, Ns::MAX),
            (3, 9, 0, 4),
            (Ns::MAX, Ns::MAX, 0, Ns::MAX),
        ] {
            assert_eq!(next_edge(now, from_ns, slice_ns), next, "{now} {from_ns} {slice_ns}");
        }
    }

    #[test]
    fn slices_begin_with_the_warm_up_and_end_with_the_drain() {
        let used =
            seen(&[(0, 100, 1), (500, 350, 2), (1_500, 850, 3), (2_500, 850, 4), (3_500, 1_850, 5), (3_900, 2_050, 6)]);
        assert_eq!((used.start_ns, used.slice_ns), (-3 * SECOND as i64, SECOND));
        let server = used.server.unwrap();
        assert_eq!(server.cpu_cores, [0.5, 0.5, 0.0, 1.0, 0.5], "those at the ends are of the part that was seen");
        assert_eq!(server.rss_bytes, [2, 3, 4, 5, 6]);
        assert_eq!(server.threads, server.rss_bytes);
        assert_eq!(used.generator.unwrap().cpu_cores, [1.0; 5]);
    }

    #[test]
    fn a_late_look_loses_nothing_and_a_sliver_is_no_slice() {
        let used = seen(&[(2_450, 0, 1), (2_500, 50, 1), (4_000, 1_550, 2), (4_500, 2_050, 3), (4_599, 2_149, 4)]);
        assert_eq!(used.start_ns, 0, "50 ms of the slice before the window were seen");
        let server = used.server.unwrap();
        assert_eq!(server.cpu_cores, [1.0, 1.0]);
        assert_eq!(server.rss_bytes, [2, 3]);
    }

    #[test]
    fn what_was_never_seen_is_absent_and_not_zero() {
        let looks = [look(SECOND, None, 0), look(2 * SECOND, None, 0)];
        let used = series(&looks, SECOND, SECOND).unwrap();
        assert_eq!((used.server, used.generator.map(|used| used.cpu_cores)), (None, Some(vec![1.0])));
        assert_eq!(series(&[], 0, SECOND), None);
        assert_eq!(series(&looks[..1], 0, SECOND), None);
        let nobody = Reading { at: 3 * SECOND, ..Reading::default() };
        assert_eq!(series(&[Reading { at: SECOND, ..nobody }, nobody], 0, SECOND), None);
    }

    #[test]
    fn a_count_that_begins_again_goes_on() {
        let mut group = Group::new(Vec::new());
        assert_eq!(group.so_far(None), None, "no group counts");
        let seen =
            [Some(5), Some(9), None, Some(2), Some(4), None, Some(1)].map(|counted| group.so_far(counted).unwrap());
        assert_eq!(seen, [5, 9, 9, 11, 13, 13, 14]);
    }

    #[test]
    fn a_busy_child_is_seen_with_the_processor_time_that_it_says_it_used() {
        let script = "read go; i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; cat /proc/$$/schedstat; read end";
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let group = |pids: &[i32]| {
            Group::new(
                pids.iter().map(|root| SampledProcesses { root: *root, ..SampledProcesses::default() }).collect(),
            )
        };
        let pid = child.id() as i32;
        let mut looks = Looks { server: group(&[]), generator: group(&[pid]), readings: Vec::new() };
        looks.look();
        child.stdin.as_mut().unwrap().write_all(b"go\n").unwrap();
        let mut said = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut said).unwrap();
        looks.look();
        child.kill().unwrap();
        child.wait().unwrap();
        looks.look();
        let own: f64 = said.split_whitespace().next().unwrap().parse().unwrap();
        let used: Vec<Used> = looks.readings.iter().map(|look| look.generator.unwrap()).collect();
        let seen = (used[1].cpu_ns - used[0].cpu_ns) as f64;
        assert!((0.8..1.2).contains(&(seen / own)), "{used:?} against {own}");
        assert!(used[1].rss_bytes > 0 && used[2].rss_bytes == 0, "{used:?}");
        assert_eq!(used[2].cpu_ns, used[1].cpu_ns, "what a process has used stays when it has gone");
        assert!(looks.readings.iter().all(|look| look.server.is_none()));
    }
}
