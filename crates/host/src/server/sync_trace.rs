//! Traces the syncs of a server: their number, and the time that its threads spent in them.
//!
//! The kernel's events of file systems tell both. Those of system calls would too, but they slow down every program on
//! the machine. Only root may trace.

use super::disk::{self, SYS_ADMIN};
use super::processes;
use crate::clock;
use nix::libc::O_NONBLOCK;
use nix::mount::{MsFlags, mount};
use nix::sys::statfs::statfs;
use nix::unistd::geteuid;
use pubmark_model::record::SyncFigures;
use pubmark_model::units::{Ns, SECOND};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::ops::Range;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Where the kernel's tracing is mounted.
const TRACING: &str = "/sys/kernel/tracing";
/// Prefix of our instances, before the number of their process.
const NAME: &str = "pubmark-";
/// File systems that tell of syncs, by their number in `statfs`: the event that begins one, and the one that ends it.
const FILE_SYSTEMS: [(i64, &str, Option<&str>); 3] = [
    (0xEF53, "ext4_sync_file_enter", Some("ext4_sync_file_exit")),
    (0x5846_5342, "xfs_file_fsync", None),
    (0x9123_683E, "btrfs_sync_file", None),
];
/// Room for events of each processor, kB: some thousand syncs between two looks.
const BUFFER_KB: &str = "1024";
/// Time between two looks.
const LOOK: Duration = Duration::from_millis(50);
/// The initial namespace of process numbers, in which the kernel tells them.
const ALL_PROCESSES: &str = "pid:[4026531836]";

/// A trace of a server's syncs.
pub(super) struct SyncTrace {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Option<SyncFigures>>>,
}

impl SyncTrace {
    /// Traces members, each with one of its processes and its folder, in a window; `processes` returns all processes of
    /// theirs. Takes no time of the caller's.
    pub fn start(
        members: Vec<(i32, PathBuf)>,
        processes: impl Fn() -> Vec<i32> + Send + 'static,
        window: Range<Ns>,
    ) -> SyncTrace {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = thread::spawn(move || {
            let events = events(&members)?;
            let mut ready_ns = Ns::MAX;
            let found = trace(events, &processes, &window, &stopped, || ready_ns = clock::now());
            found.filter(|_| ready_ns <= window.start)
        });
        SyncTrace { stop, thread: Some(thread) }
    }

    /// Ends the trace after its window. Returns the syncs that began in the window and ended well; `None` if they cannot
    /// be traced, or some were missed.
    pub fn finish(mut self) -> Option<SyncFigures> {
        self.end()
    }

    fn end(&mut self) -> Option<SyncFigures> {
        self.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.take()?;
        thread.thread().unpark();
        thread.join().ok()?
    }
}

impl Drop for SyncTrace {
    fn drop(&mut self) {
        self.end();
    }
}

/// Traces until `stop`; `ready` is called when the trace has begun.
fn trace(
    events: Events,
    processes: &dyn Fn() -> Vec<i32>,
    window: &Range<Ns>,
    stop: &AtomicBool,
    ready: impl FnOnce(),
) -> Option<SyncFigures> {
    let instance = Instance::make(events, processes).ok()?;
    let pipe = instance.pipe().ok()?;
    instance.set("tracing_on", "1").ok()?;
    ready();
    follow(pipe, events, window, stop)
}

/// Returns the events of the file system on which all members have their folders; `None` if it has none, or if this
/// process may not trace or counts processes or time otherwise than the kernel.
fn events(members: &[(i32, PathBuf)]) -> Option<Events> {
    let offsets = fs::read_to_string("/proc/self/timens_offsets").unwrap_or_default();
    let is_shifted = offsets.split_whitespace().any(|word| word.parse().is_ok_and(|offset: i64| offset != 0));
    let namespace = fs::read_link("/proc/self/ns/pid").ok()?;
    if !geteuid().is_root() || !disk::capable(SYS_ADMIN) || namespace != Path::new(ALL_PROCESSES) || is_shifted {
        return None;
    }
    let mut all = members.iter().map(|(pid, folder)| events_of(*pid, folder));
    let first = all.next()??;
    all.all(|other| other == Some(first)).then_some(first)
}

type Events = (&'static str, Option<&'static str>);

/// Returns the events of the file system of a folder, as a process sees it.
fn events_of(pid: i32, folder: &Path) -> Option<Events> {
    let below = folder.strip_prefix("/").ok()?;
    let number = statfs(&Path::new(&format!("/proc/{pid}/root")).join(below)).ok()?.filesystem_type().0;
    let found = FILE_SYSTEMS.iter().find(|(known, ..)| *known == number)?;
    Some((found.1, found.2))
}

/// A part of the kernel's tracing with a buffer, events and processes of its own. It is removed with this value; one of
/// a killed process is removed when the next one is made.
struct Instance(PathBuf);

impl Instance {
    /// Makes one for these events of processes, which does not trace yet. From now on the calling thread sees other
    /// mounts than the rest of the machine.
    fn make(events: Events, processes: &dyn Fn() -> Vec<i32>) -> io::Result<Instance> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let all = Path::new(TRACING).join("instances");
        disk::part_mounts().map_err(io::Error::other)?;
        if !all.exists() {
            mount(Some("tracefs"), TRACING, Some("tracefs"), MsFlags::empty(), None::<&str>)?;
        }
        for left in fs::read_dir(&all)?.flatten() {
            let name = left.file_name().to_string_lossy().into_owned();
            let owner = name.strip_prefix(NAME).and_then(|rest| rest.split('-').next()?.parse().ok());
            if owner.is_some_and(|pid| !processes::lives(pid)) {
                let _ = fs::remove_dir(left.path());
            }
        }
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let instance = Instance(all.join(format!("{NAME}{}-{number}", std::process::id())));
        fs::create_dir(&instance.0)?;
        instance.set("tracing_on", "0")?;
        instance.set("trace_clock", "mono")?;
        instance.set("buffer_size_kb", BUFFER_KB)?;
        // What they start is traced as well.
        instance.set("options/event-fork", "1")?;
        instance.add(processes)?;
        for event in [Some(events.0), events.1].into_iter().flatten() {
            let system = event.split('_').next().unwrap_or_default();
            instance.set(&format!("events/{system}/{event}/enable"), "1")?;
        }
        Ok(instance)
    }

    fn set(&self, file: &str, value: &str) -> io::Result<()> {
        OpenOptions::new().append(true).open(self.0.join(file))?.write_all(value.as_bytes())
    }

    /// Adds all threads of these processes; some may begin meanwhile.
    fn add(&self, processes: &dyn Fn() -> Vec<i32>) -> io::Result<()> {
        let mut known = BTreeSet::new();
        loop {
            let pids = processes().into_iter();
            let threads = pids.flat_map(|pid| fs::read_dir(format!("/proc/{pid}/task"))).flatten().flatten();
            let threads = threads.map(|thread| thread.file_name().to_string_lossy().into_owned());
            let new: Vec<String> = threads.filter(|thread| known.insert(thread.clone())).collect();
            if new.is_empty() {
                return Ok(());
            }
            self.set("set_event_pid", &new.join(" "))?;
        }
    }

    fn pipe(&self) -> io::Result<File> {
        OpenOptions::new().read(true).custom_flags(O_NONBLOCK).open(self.0.join("trace_pipe"))
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

/// Reads events until there are no more after `stop`. Returns what they tell of a window, unless some were lost.
fn follow(mut pipe: File, events: Events, window: &Range<Ns>, stop: &AtomicBool) -> Option<SyncFigures> {
    let figures = SyncFigures { count: 0, time_ns: events.1.map(|_| 0) };
    let mut counted = Counted { events, window, figures, since: BTreeMap::new() };
    let (mut piece, mut text) = (vec![0; 64 << 10], Vec::new());
    loop {
        let is_last = stop.load(Ordering::Relaxed);
        loop {
            match pipe.read(&mut piece) {
                Ok(read @ 1..) => text.extend_from_slice(&piece[..read]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => return None,
                _ => break,
            }
        }
        let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        for line in String::from_utf8_lossy(&text[..whole]).lines() {
            counted.add(line)?;
        }
        text.drain(..whole);
        if is_last {
            return Some(counted.figures);
        }
        thread::park_timeout(LOOK);
    }
}

struct Counted<'a> {
    events: Events,
    window: &'a Range<Ns>,
    figures: SyncFigures,
    /// When a thread began the sync in which it is, ns.
    since: BTreeMap<i32, Ns>,
}

impl Counted<'_> {
    /// Counts a line of the trace; `None` if events were lost.
    fn add(&mut self, line: &str) -> Option<()> {
        if line.contains("[LOST ") {
            return None;
        }
        let (begins, ends) = self.events;
        if let Some((thread, at_ns, _)) = event(line, begins) {
            match ends {
                _ if !self.window.contains(&at_ns) => {}
                Some(_) => drop(self.since.insert(thread, at_ns)),
                None => self.figures.count += 1,
            }
        } else if let Some((thread, at_ns, fields)) = ends.and_then(|ends| event(line, ends))
            && let Some(began) = self.since.remove(&thread)
            && fields.ends_with(" ret 0")
        {
            self.figures.count += 1;
            self.figures.time_ns = self.figures.time_ns.map(|sum| sum + at_ns.saturating_sub(began));
        }
        Some(())
    }
}

/// Returns the thread, the instant (ns) and the fields of an event of this name, from
/// `NAME-THREAD [CPU] FLAGS SECONDS: EVENT: FIELDS`. The name may contain anything.
fn event<'a>(line: &'a str, name: &str) -> Option<(i32, Ns, &'a str)> {
    let (head, fields) = line.rsplit_once(&format!(": {name}:"))?;
    let (seconds, micros) = head.rsplit_once(' ')?.1.split_once('.')?;
    let at_ns = seconds.parse::<Ns>().ok()? * SECOND + micros.parse::<Ns>().ok()? * 1_000;
    let (front, _) = head.rsplit_once(" [")?;
    Some((front.trim_end().rsplit('-').next()?.parse().ok()?, at_ns, fields))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_trace_are_syncs_that_began_and_ended_well() {
        let mut counted = Counted {
            events: (FILE_SYSTEMS[0].1, FILE_SYSTEMS[0].2),
            window: &(100 * SECOND..101 * SECOND),
            figures: SyncFigures { count: 0, time_ns: Some(0) },
            since: BTreeMap::new(),
        };
        for line in [
            "    redis-server-812     [001] .....    99.999990: ext4_sync_file_enter: dev 254,0 ino 12 parent 2 datasync 1 ",
            "    redis-server-812     [001] .....   100.000000: ext4_sync_file_exit: dev 254,0 ino 12 ret 0",
            "    redis-server-812     [001] .....   100.000010: ext4_sync_file_enter: dev 254,0 ino 12 parent 2 datasync 1 ",
            " a: [0] x-3 b-77         [000] d..1.   100.000011: ext4_sync_file_enter: dev 254,0 ino 13 parent 2 datasync 0 ",
            "    redis-server-812     [001] .....   100.000510: ext4_sync_file_exit: dev 254,0 ino 12 ret 0",
            " a: [0] x-3 b-77         [001] .....   100.002011: ext4_sync_file_exit: dev 254,0 ino 13 ret -5",
            "    redis-server-99      [001] .....   100.003000: ext4_sync_file_exit: dev 254,0 ino 12 ret 0",
            "    redis-server-812     [001] .....   100.004000: sched_switch: prev",
        ] {
            assert_eq!(counted.add(line), Some(()));
        }
        assert_eq!(counted.figures, SyncFigures { count: 1, time_ns: Some(500_000) });
        assert_eq!(counted.add("CPU:1 [LOST 5 EVENTS]"), None);
        let fields = event(" a: [0] x-3 b-77 [000] d..1. 7.000001: xfs_file_fsync: dev 8:1", "xfs_file_fsync");
        assert_eq!(fields, Some((77, 7_000_001_000, " dev 8:1")));
    }

    #[test]
    fn syncs_of_a_process_and_of_what_it_starts_are_counted_and_no_others() {
        const SYNCS: &str = "30";
        let place = tempfile::tempdir().unwrap();
        let script = format!(
            "read go; for turn in $(seq {SYNCS}); do dd if=/dev/zero of={0}/a bs=512 count=1 conv=fsync,notrunc \
             status=none; done; echo done; read stop",
            place.path().display()
        );
        let mut child = std::process::Command::new("sh")
            .args(["-c", &script])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let pid = child.id() as i32;
        let mut go = child.stdin.take().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        if let Some(events) = events(&[(pid, place.path().to_owned())]) {
            let (ready, is_ready) = std::sync::mpsc::channel();
            let stopped = stop.clone();
            let tracer = thread::spawn(move || {
                trace(events, &|| vec![pid], &(0..Ns::MAX), &stopped, || ready.send(()).unwrap())
            });
            is_ready.recv().unwrap();
            go.write_all(b"go\n").unwrap();
            let other = File::create(place.path().join("other")).unwrap();
            (0..5).for_each(|_| other.sync_all().unwrap());
            let mut said = [0; 5];
            child.stdout.take().unwrap().read_exact(&mut said).unwrap();
            stop.store(true, Ordering::Relaxed);
            let found = tracer.join().unwrap().unwrap();
            assert_eq!(found.count.to_string(), SYNCS);
            assert!(found.time_ns.is_none_or(|ns| ns > 0), "{found:?}");
        } else {
            println!("left out: syncs cannot be traced here");
        }
        drop(go);
        child.wait().unwrap();
    }
}
