//! CPU time and memory that this process uses during exactly the window, from kernel
//! accounting.

use crate::clock::{self, NAP};
use crate::placement;
use crate::window::Window;
use nix::sys::resource::{UsageWho, getrusage};
use pubmark_model::protocol::{AgentUsage, Stalls};
use pubmark_model::units::{MILLISECOND, Ns, SECOND};
use pubmark_model::window_usage::{UsageReading, UsageReadings, WindowUsage};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

/// Time between two samples of the RSS.
const SAMPLE: Ns = 250 * MILLISECOND;

/// Initial time between two readings within a window without a known end.
const READING: Ns = 4 * MILLISECOND;

/// Time before a window in which nothing disturbs its beginning.
const SETTLED: Ns = SECOND;

/// A gap of at least this length between two wake-ups of the watching thread is a pause
/// of the process: three times the intended gap, and far more than a busy scheduler
/// causes.
const SHORTEST_PAUSE: Ns = 3 * NAP;

/// Last instant at which the watching thread was awake, ns; 0 if no thread watches.
static AWAKE_NS: AtomicU64 = AtomicU64::new(0);
/// Beginning and end of the last pause of this process, ns.
static LAST_PAUSE: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];

/// Returns how long the process did not run within this time, ns, as far as it is known.
/// A long call was not slow for that time. Returns 0 for a time that is too short to
/// contain a pause.
#[inline]
pub fn paused_within(from_ns: Ns, to_ns: Ns) -> Ns {
    if to_ns.saturating_sub(from_ns) < SHORTEST_PAUSE {
        return 0;
    }
    let last = [0, 1].map(|edge| LAST_PAUSE[edge].load(Ordering::Relaxed));
    pause_in(from_ns, to_ns, AWAKE_NS.load(Ordering::Acquire), last)
}

/// Computes [`paused_within`] from the last instant at which the watching thread was
/// awake and the last pause that it noticed. If it has slept too long, it is in a pause
/// that it has not noted yet.
fn pause_in(from_ns: Ns, to_ns: Ns, awake_ns: Ns, [paused_ns, went_on_ns]: [Ns; 2]) -> Ns {
    let is_in_pause = awake_ns > 0 && to_ns.saturating_sub(awake_ns) >= SHORTEST_PAUSE;
    let (began, ended) = if is_in_pause { (awake_ns, to_ns) } else { (paused_ns, went_on_ns) };
    ended.min(to_ns).saturating_sub(began.max(from_ns))
}

/// Notes that the watching thread has woken up.
fn note_awake(before_ns: Ns, woke_ns: Ns) {
    if woke_ns.saturating_sub(before_ns) >= SHORTEST_PAUSE {
        LAST_PAUSE[0].store(before_ns, Ordering::Relaxed);
        LAST_PAUSE[1].store(woke_ns, Ordering::Relaxed);
    }
    AWAKE_NS.store(woke_ns, Ordering::Release);
}

/// Samples the process on its own thread.
pub struct UsageSampler {
    thread: JoinHandle<(AgentUsage, Stalls)>,
    stop: Arc<AtomicBool>,
}

struct Snapshot {
    at: Ns,
    cpu: Ns,
    user: Ns,
    system: Ns,
    voluntary: u64,
    involuntary: u64,
}

/// The sampled process.
#[derive(Clone, Copy)]
enum Subject {
    /// This process.
    Own,
    /// Another process.
    Process(i32),
}

impl Subject {
    fn snapshot(self) -> Snapshot {
        match self {
            Subject::Own => snapshot(),
            Subject::Process(pid) => snapshot_of(pid),
        }
    }

    fn smaps(self) -> std::io::Result<String> {
        match self {
            Subject::Own => std::fs::read_to_string("/proc/self/smaps_rollup"),
            Subject::Process(pid) => std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")),
        }
    }
}

/// Takes a snapshot of another process; all zero if it has ended.
fn snapshot_of(pid: i32) -> Snapshot {
    let clock = nix::time::clock_getcpuclockid(nix::unistd::Pid::from_raw(pid));
    let cpu =
        clock.and_then(nix::time::clock_gettime).map(|time| time.tv_sec() as u64 * SECOND + time.tv_nsec() as u64);
    let at = clock::now();
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // Fields after the name, which may contain anything; `utime` is the 14th field.
    let mut fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace().skip(11);
    let mut ticks = || fields.next().and_then(|field| field.parse::<u64>().ok()).unwrap_or_default();
    let (user, system) = (ticks(), ticks());
    let (mut voluntary, mut involuntary) = (0, 0);
    for thread in std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
        let status = std::fs::read_to_string(thread.path().join("status")).unwrap_or_default();
        let count = |name: &str| -> u64 {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|rest| rest.trim().parse().ok()).unwrap_or_default()
        };
        voluntary += count("voluntary_ctxt_switches:");
        involuntary += count("nonvoluntary_ctxt_switches:");
    }
    Snapshot { at, cpu: cpu.unwrap_or_default(), user, system, voluntary, involuntary }
}

fn snapshot() -> Snapshot {
    let usage = getrusage(UsageWho::RUSAGE_SELF).ok();
    let ns = |time: nix::sys::time::TimeVal| time.tv_sec() as u64 * SECOND + time.tv_usec() as u64 * 1_000;
    Snapshot {
        at: clock::now(),
        cpu: clock::process_cpu(),
        user: usage.map(|usage| ns(usage.user_time())).unwrap_or_default(),
        system: usage.map(|usage| ns(usage.system_time())).unwrap_or_default(),
        voluntary: usage.map(|usage| usage.voluntary_context_switches() as u64).unwrap_or_default(),
        involuntary: usage.map(|usage| usage.involuntary_context_switches() as u64).unwrap_or_default(),
    }
}

/// Returns what was used between two snapshots.
fn used(began: &Snapshot, now: &Snapshot) -> WindowUsage {
    let cpu_ns = now.cpu.saturating_sub(began.cpu);
    // The split into user and system is the kernel's estimate; the sum is exact.
    let (user, system) = (now.user.saturating_sub(began.user), now.system.saturating_sub(began.system));
    let user_ns = u128::from(cpu_ns) * u128::from(user) / u128::from(user + system).max(1);
    WindowUsage {
        cpu_ns,
        user_ns: user_ns as Ns,
        voluntary_switches: now.voluntary.saturating_sub(began.voluntary),
        involuntary_switches: now.involuntary.saturating_sub(began.involuntary),
        written_bytes: None,
    }
}

/// Parses the resident and the unique set size of a process from the text of its
/// `smaps_rollup`, bytes.
pub fn parse_smaps(text: &str) -> (u64, u64) {
    let field = |name: &str| -> u64 {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|rest| rest.split_whitespace().next()).and_then(|kb| kb.parse::<u64>().ok()).unwrap_or_default()
            * 1_024
    };
    (field("Rss:"), field("Private_Clean:") + field("Private_Dirty:"))
}

/// Returns free memory to the system that the allocator would keep: what parsing the list of thousands of clients took,
/// or what was in flight while a server stalled in the warm-up.
pub fn give_back_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it only releases pages of memory that is not allocated, under the allocator's own locks.
    unsafe {
        nix::libc::malloc_trim(0);
    }
}

impl UsageSampler {
    /// Starts to sample: CPU time at the window's edges, memory within it.
    pub fn start(window: Window) -> UsageSampler {
        UsageSampler::of(Subject::Own, window)
    }

    /// Starts to sample another process. The reported pauses are those of this process.
    pub fn start_for(pid: i32, window: Window) -> UsageSampler {
        UsageSampler::of(Subject::Process(pid), window)
    }

    fn of(subject: Subject, window: Window) -> UsageSampler {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || sample(subject, window, &stopped));
        UsageSampler { thread, stop }
    }

    /// Ends the sampling, at the window's end or now, whichever is first. Returns the
    /// usage, and the pauses in which the process did not run.
    pub fn finish(self) -> (AgentUsage, Stalls) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.thread().unpark();
        self.thread.join().unwrap_or_default()
    }
}

/// Takes in two wake-ups that were planned [`NAP`] apart. A gap of at least three times
/// that contains a pause; its length is the part of the gap within the window, less the
/// nap.
pub(crate) fn note_gap(pauses: &mut Stalls, window: &Window, before_ns: Ns, woke_ns: Ns) {
    let (from, to) = (before_ns.max(window.from_ns), woke_ns.min(window.to_ns.unwrap_or(Ns::MAX)));
    let gap = to.saturating_sub(from);
    if gap < SHORTEST_PAUSE {
        return;
    }
    pauses.add(&Stalls::one(gap - NAP, from - window.from_ns));
}

fn sample(subject: Subject, window: Window, stop: &AtomicBool) -> (AgentUsage, Stalls) {
    clock::exact_timers();
    // The thread's name shows observers outside when the window is on.
    let _ = nix::sys::prctl::set_name(c"window");
    let mut pauses = Stalls::default();
    let mut woke_ns = clock::now();
    let mut wait = |until: Ns| {
        while woke_ns < until && !stop.load(Ordering::Relaxed) {
            clock::sleep_until(until);
            let before_ns = std::mem::replace(&mut woke_ns, clock::now());
            note_gap(&mut pauses, &window, before_ns, woke_ns);
            note_awake(before_ns, woke_ns);
        }
    };
    let mut usage = AgentUsage::default();
    if let Subject::Own = subject
        && window.from_ns - window.start_ns > 2 * SETTLED
    {
        wait(window.from_ns - SETTLED);
        give_back_memory();
    }
    wait(window.from_ns);
    let began = subject.snapshot();
    let to = window.to_ns.unwrap_or(Ns::MAX);
    // The first sample waits for a quarter of the step, so that even the shortest window
    // has one taken under load.
    let mut next = window.from_ns + SAMPLE.min(window.to_ns.map_or(SAMPLE, |to| to - window.from_ns)) / 4;
    let mut course = window.to_ns.is_none().then(|| UsageReadings::new(READING));
    let read = |course: &mut UsageReadings, samples: usize| {
        let now = subject.snapshot();
        course.add(UsageReading { at_ns: now.at, used: used(&began, &now), samples });
    };
    course.iter_mut().for_each(|course| course.add(UsageReading { at_ns: began.at, ..UsageReading::default() }));
    while next < to && !stop.load(Ordering::Relaxed) {
        while let Some(course) = course.as_mut().filter(|course| course.next_ns() < next)
            && !stop.load(Ordering::Relaxed)
        {
            wait(course.next_ns());
            read(course, usage.rss_bytes.len());
        }
        wait(next);
        if let Ok(text) = subject.smaps() {
            let (rss, uss) = parse_smaps(&text);
            usage.rss_bytes.push(rss);
            usage.uss_bytes.push(uss);
        }
        if let Subject::Own = subject {
            placement::sample(&mut usage.ran_on);
        }
        // A reading makes the kernel walk over the pages: one a second is enough after
        // the first few.
        next += if usage.rss_bytes.len() < 4 { SAMPLE } else { SECOND };
    }
    wait(to);
    AWAKE_NS.store(0, Ordering::Release);
    let ended = subject.snapshot();
    usage.wall_ns = ended.at - began.at;
    let all = used(&began, &ended);
    (usage.cpu_ns, usage.user_ns) = (all.cpu_ns, all.user_ns);
    (usage.voluntary_switches, usage.involuntary_switches) = (all.voluntary_switches, all.involuntary_switches);
    if let Some(mut course) = course {
        course.add(UsageReading { at_ns: ended.at, used: all, samples: usage.rss_bytes.len() });
        usage.course = course.into_readings();
    }
    (usage, pauses)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn smaps_fields_add_up() {
        let text =
            "00400000-7fff [rollup]\nRss:    1200 kB\nPss: 600 kB\nPrivate_Clean:   100 kB\nPrivate_Dirty:  300 kB\n";
        assert_eq!(parse_smaps(text), (1_200 * 1_024, 400 * 1_024));
        assert_eq!(parse_smaps("garbage"), (0, 0));
    }

    #[test]
    fn wake_ups_that_are_far_too_far_apart_have_a_pause_between_them() {
        let window =
            Window { start_ns: 0, from_ns: SECOND, to_ns: Some(3 * SECOND), slice_ns: SECOND, slices: 2, ahead_ns: 0 };
        let pauses = |gaps: &[(Ns, Ns)]| {
            let mut pauses = Stalls::default();
            gaps.iter().for_each(|(from, to)| {
                note_gap(&mut pauses, &window, from * MILLISECOND, to * MILLISECOND);
            });
            let ms = |ns: Ns| ns / MILLISECOND;
            (pauses.count, ms(pauses.longest_ns), ms(pauses.longest_at_ns), pauses.first_at_ns.map(ms))
        };
        assert_eq!(pauses(&[(1_000, 1_050), (1_050, 1_199)]), (0, 0, 0, None));
        assert_eq!(pauses(&[(1_050, 1_200)]), (1, 100, 50, Some(50)));
        assert_eq!(pauses(&[(1_050, 1_250), (1_300, 2_300), (2_300, 2_500)]), (3, 950, 300, Some(50)));
        assert_eq!(
            pauses(&[(500, 1_100), (2_900, 9_000)]),
            (0, 0, 0, None),
            "before and after the window it does not count"
        );
        assert_eq!(pauses(&[(0, 9_000)]), (1, 1_950, 0, Some(0)));
        assert_eq!(pauses(&[(1_100, 1_040)]), (0, 0, 0, None), "a clock that steps back is not a pause");
    }

    #[test]
    fn what_the_process_stood_still_of_a_call_is_told_whichever_thread_woke_first() {
        let paused = |from: Ns, to: Ns, awake: Ns, last: [Ns; 2]| {
            pause_in(from * MILLISECOND, to * MILLISECOND, awake * MILLISECOND, last.map(|at| at * MILLISECOND))
                / MILLISECOND
        };
        let (call_from, call_to) = (1_000, 2_000);
        assert_eq!(paused(call_from, call_to, 980, [0, 0]), 1_000, "the caller woke first");
        assert_eq!(paused(call_from, call_to, 1_999, [980, 1_999]), 999, "the watching thread woke first");
        assert_eq!(paused(call_from, call_to, 1_999, [300, 700]), 0, "a pause before the call");
        assert_eq!(paused(call_from, call_to, 1_960, [0, 0]), 0, "the call itself took so long");
        assert_eq!(paused(call_from, call_to, 1_960, [1_200, 1_500]), 300, "a pause within the call");
        assert_eq!(paused(call_from, call_to, 0, [0, 0]), 0, "nobody watches");
    }

    #[test]
    fn cpu_time_of_the_window_is_that_of_the_work_done_in_it() {
        let start = clock::now();
        let window = Window {
            start_ns: start,
            from_ns: start,
            to_ns: Some(start + 200 * MILLISECOND),
            slice_ns: SECOND,
            slices: 1,
            ahead_ns: 0,
        };
        let sampler = UsageSampler::start(window);
        let before = clock::process_cpu();
        while clock::now() < start + 200 * MILLISECOND {
            std::hint::spin_loop();
        }
        let spent = clock::process_cpu() - before;
        while !sampler.thread.is_finished() {
            std::thread::yield_now();
        }
        let (usage, _) = sampler.finish();
        let ratio = usage.cpu_ns as f64 / spent as f64;
        assert!((0.8..1.25).contains(&ratio), "{usage:?} against {spent}");
        assert!(!usage.rss_bytes.is_empty() && usage.uss_bytes[0] <= usage.rss_bytes[0]);
    }
}
