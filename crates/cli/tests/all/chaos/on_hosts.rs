//! Chaos over hosts, which are network namespaces of this machine: a host stands still, for longer than a coordinator
//! waits for an answer or not, or is killed; its disk is full for a while; agents and servers stand still or are
//! killed; host connections end, or fall silent; networks are down for a while, or slow; and each study has other clock
//! offsets. A run fails by name or carries on, no record is wrong, the clock comparisons are true, and nothing is left
//! on any host.

use super::disturber::{Draws, pass};
use super::{Coordinator, LONGEST, RESUMES, books, checks, variable};
use crate::hosts::{Network, WHY, host_process};
use crate::left_out::leave_out;
use crate::support::{Place, children, wait_for};
use nix::sys::signal::Signal;
use pubmark_host::clock;
use pubmark_host::server::processes::signal;
use pubmark_model::record::RunRecord;
use pubmark_model::units::{MILLISECOND, Ns, SECOND};
use pubmark_stats::Random;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Instant, SystemTime};

/// Default time of the disturbances, s.
const SECONDS: u64 = 12;
/// Size of a host's disk.
const DISK: &str = "size=8m";
const HOSTS: [&str; 3] = ["server", "publishers", "subscribers"];
/// Possible leads of the clocks of senders and receivers, s.
const AHEAD_S: [u64; 4] = [0, 1, 61, 3_600];

const STUDY: &str = "title = \"chaos on hosts\"\n[workload]\nrate = 500\npairs = 2\nwarmup = \"300ms\"\n\
    duration = \"2s\"\ndrain = \"2s\"\nconnect_timeout = \"3s\"\n[axes]\nsystem = [\"kernel\", \"mosquitto\"]\n\
    [parts.libraries]\ntransport = \"tcp\"\n[parts.acknowledged]\nqos = 1\n\
    [[skip]]\npart = \"libraries\"\nsystem = \"mosquitto\"\nwhy = \"a broker\"\n\
    [[skip]]\npart = \"acknowledged\"\nsystem = \"kernel\"\nwhy = \"a library\"\n[run]\nrepeats = 2\n";
/// Number of its runs.
const RUNS: usize = 4;

/// A file system of a host's own. It is unmounted when this is dropped.
struct Disk(PathBuf);

impl Disk {
    /// Mounts it. Returns `None` if this machine does not allow that.
    fn new(at: PathBuf) -> Option<Disk> {
        std::fs::create_dir(&at).unwrap();
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", DISK, "pubmark-chaos"]).arg(&at).status();
        mounted.is_ok_and(|status| status.success()).then_some(Disk(at))
    }

    /// Fills it to the last byte.
    fn fill(&self) {
        let mut file = File::create(self.filling()).unwrap();
        while file.write_all(&[0; 4_096]).is_ok() {}
    }

    fn empty(&self) {
        let _ = std::fs::remove_file(self.filling());
    }

    fn filling(&self) -> PathBuf {
        self.0.join("filling")
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// Lead of each clock, s.
type Ahead = BTreeMap<&'static str, u64>;

/// Writes a file of hosts: the server's on its own disk, the others with their own clocks.
fn hosts(network: &Network, place: &Place, disk: &Path, ahead: &Ahead) -> String {
    let file = network.hosts(place);
    let mut text = std::fs::read_to_string(&file).unwrap();
    for host in HOSTS {
        let space = format!("{}\"]", network.namespace(host));
        let own = match ahead.get(host) {
            Some(0) => "\"]".to_owned(),
            Some(ahead_s) => format!("\", \"unshare\", \"--time\", \"--monotonic\", \"{ahead_s}\"]"),
            None => format!("\", \"env\", \"TMPDIR={}\"]", disk.display()),
        };
        text = text.replace(&space, &format!("{}{own}", network.namespace(host)));
    }
    // A local process that carries the host connection, as `ssh` does for a remote host.
    let carried = |line: &str| match line.strip_prefix("reach = [").and_then(|rest| rest.strip_suffix(']')) {
        Some(words) => {
            let words = words.replace(['"', ','], "");
            format!("reach = [\"sh\", \"-c\", \"cat | {words} $0\"]\n")
        }
        None => format!("{line}\n"),
    };
    let text: String = text.lines().map(carried).collect();
    std::fs::write(&file, text).unwrap();
    file
}

/// An act and its target.
type Done = (&'static str, &'static str);

/// Acts on the hosts of a run.
struct Acts<'a> {
    network: &'a Network,
    disk: &'a Disk,
    random: Draws,
    done: BTreeMap<String, u32>,
}

impl Acts<'_> {
    /// Waits for a random moment of a coordinator's life, and does something to a host.
    fn act(&mut self, coordinator: &mut Coordinator) {
        self.wait(coordinator, 100, 2_500);
        let host = HOSTS[self.random.between(0, HOSTS.len() as u64) as usize];
        let drawn = self.random.between(0, 34);
        let done = match drawn {
            0..12 => self.on_host(coordinator, host, drawn),
            12..16 => self.on_disk(coordinator),
            16..24 => self.on_what_it_has_started(coordinator, host, drawn),
            24..28 => self.on_line(coordinator, host, drawn),
            _ => self.on_network(coordinator, host, drawn),
        };
        if let Some((what, role)) = done {
            *self.done.entry(format!("{what} of {role}")).or_default() += 1;
        }
    }

    /// Stops `pubmark host`, for longer than the coordinator waits or not, or kills it.
    fn on_host(&mut self, coordinator: &mut Coordinator, host: &'static str, drawn: u64) -> Option<Done> {
        let pid = self.process(host)?;
        let what = match drawn {
            0..4 => {
                self.stop(coordinator, pid, 10_500, 11_000);
                "long stop"
            }
            4..9 => {
                self.stop(coordinator, pid, 50, 3_000);
                "stop"
            }
            _ => {
                signal(pid, Signal::SIGKILL);
                "kill"
            }
        };
        Some((what, host))
    }

    fn on_disk(&mut self, coordinator: &mut Coordinator) -> Option<Done> {
        self.disk.fill();
        self.wait(coordinator, 300, 4_000);
        self.disk.empty();
        Some(("full disk", "server"))
    }

    fn on_what_it_has_started(
        &mut self,
        coordinator: &mut Coordinator,
        host: &'static str,
        drawn: u64,
    ) -> Option<Done> {
        match drawn {
            16..20 => {
                let pid = self.below(host, |_| true)?;
                self.stop(coordinator, pid, 50, 1_500);
                Some(("stopped process", host))
            }
            20..22 => {
                signal(self.below(host, |line| line.contains(" agent"))?, Signal::SIGKILL);
                Some(("killed agent", host))
            }
            _ => {
                signal(self.broker()?, Signal::SIGKILL);
                Some(("killed server", "server"))
            }
        }
    }

    fn on_line(&mut self, coordinator: &mut Coordinator, host: &'static str, drawn: u64) -> Option<Done> {
        let pid = self.carrier(coordinator, host)?;
        if drawn < 26 {
            signal(pid, Signal::SIGKILL);
            return Some(("killed line", host));
        }
        self.stop(coordinator, pid, 50, 3_000);
        Some(("silent line", host))
    }

    fn on_network(&mut self, coordinator: &mut Coordinator, host: &'static str, drawn: u64) -> Option<Done> {
        if drawn < 31 {
            self.with_link(host, &["link", "set", "e", "down"]);
            self.wait(coordinator, 50, 2_500);
            self.with_link(host, &["link", "set", "e", "up"]);
            return Some(("network down", host));
        }
        let slow = ["add", "dev", "e", "root", "tbf", "rate", "200kbit", "burst", "4kb", "latency", "100ms"];
        if !self.with_queue(host, &slow) {
            return None;
        }
        self.wait(coordinator, 300, 3_000);
        self.with_queue(host, &["del", "dev", "e", "root"]);
        Some(("slow network", host))
    }

    /// Returns a process that a host has started, by its command line.
    fn below(&self, host: &str, is: impl Fn(&str) -> bool) -> Option<i32> {
        let all = self.process(host).into_iter().flat_map(|pid| children(pid as u32));
        all.into_iter().find(|(_, line)| is(line)).map(|(pid, _)| pid)
    }

    /// Returns the server itself, below its keeper.
    fn broker(&self) -> Option<i32> {
        let keeper = self.below("server", |line| line.contains(" keep"))?;
        children(keeper as u32).into_iter().map(|(pid, _)| pid).next()
    }

    /// Returns the process that carries a host connection.
    fn carrier(&self, coordinator: &Coordinator, host: &str) -> Option<i32> {
        let space = self.network.namespace(host);
        let shell = children(coordinator.0.id()).into_iter().find(|(_, line)| line.contains(&space))?;
        children(shell.0 as u32).into_iter().find(|(_, line)| line.trim() == "cat").map(|(pid, _)| pid)
    }

    fn with_link(&self, host: &str, words: &[&str]) {
        let status = Command::new("ip").args(["-n", &self.network.namespace(host)]).args(words).status();
        assert!(status.unwrap().success(), "{words:?}");
    }

    /// Returns whether this kernel can slow down a network.
    fn with_queue(&self, host: &str, words: &[&str]) -> bool {
        let mut command = Command::new("tc");
        command.args(["-n", &self.network.namespace(host), "qdisc"]).args(words).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    }

    fn process(&self, host: &str) -> Option<i32> {
        host_process(self.network, host)?.parse().ok()
    }

    fn wait(&mut self, coordinator: &mut Coordinator, least_ms: Ns, most_ms: Ns) {
        let until_ns = clock::now() + self.random.between(least_ms, most_ms) * MILLISECOND;
        while clock::now() < until_ns && coordinator.0.try_wait().unwrap().is_none() {
            pass(until_ns.min(clock::now() + 20 * MILLISECOND));
        }
    }

    /// Stops a process, and resumes it in any case, whatever happens to its coordinator meanwhile.
    fn stop(&mut self, coordinator: &mut Coordinator, pid: i32, least_ms: Ns, most_ms: Ns) {
        signal(pid, Signal::SIGSTOP);
        self.wait(coordinator, least_ms, most_ms);
        signal(pid, Signal::SIGCONT);
    }
}

/// A study over hosts with these clocks.
struct Round<'a> {
    place: &'a Place,
    network: &'a Network,
    folder: String,
    hosts: String,
    ahead: Ahead,
}

impl Round<'_> {
    fn records(&self) -> Vec<RunRecord> {
        checks::records(&self.place.path(&self.folder).join("runs.jsonl"))
    }

    /// Plays the study, or its missing runs, and disturbs it until this instant.
    fn play(&self, acts: &mut Acts<'_>, until: Instant) {
        let mut arguments = vec!["run", "study.toml", "-q", "--out", &self.folder, "--hosts", &self.hosts];
        if self.place.path(&self.folder).join("runs.jsonl").exists() {
            arguments.push("--resume");
        }
        let said = self.place.path("said");
        let mut command = self.place.command(&arguments);
        command.stdout(Stdio::null()).stderr(File::create(&said).unwrap());
        let mut coordinator = Coordinator(command.spawn().unwrap());
        let deadline = Instant::now() + LONGEST;
        let status = loop {
            if let Some(status) = coordinator.0.try_wait().unwrap() {
                break status;
            }
            if Instant::now() < until {
                acts.act(&mut coordinator);
            } else {
                pass(clock::now() + 20 * MILLISECOND);
            }
            assert!(Instant::now() < deadline, "the coordinator does not end");
        };
        let said = std::fs::read_to_string(said).unwrap();
        // An act on a host before the first run ends the command with the host's name.
        let is_before = status.code() == Some(2) && said.contains("host ") && said.contains("nothing was started");
        assert!(is_before || matches!(status.code(), Some(0 | 1 | 3)), "{status}: {said}");
        assert!(!said.contains("panicked"), "{said}");
        wait_for("all on the hosts to end", || self.network.processes().is_empty().then_some(()));
        let left = |folder: &Path| {
            let entries = std::fs::read_dir(folder).unwrap();
            entries.map(|entry| entry.unwrap().path()).collect::<Vec<_>>()
        };
        assert_eq!([left(&self.place.tmp()), left(&acts.disk.0)].concat(), Vec::<PathBuf>::new(), "left behind");
        self.check(&self.records());
    }

    /// Checks what is true of every record, whatever happened to its run.
    fn check(&self, records: &[RunRecord]) {
        checks::assert_books(records);
        for record in records {
            let text = || serde_json::to_string(record).unwrap();
            if let Some(error) = &record.error {
                let parts = ["host ", "agent", "mosquitto", "server"];
                assert!(parts.iter().any(|part| error.contains(part)), "nobody is named: {error}");
                continue;
            }
            assert!(books::adds_up(record).is_empty(), "{}", text());
            for pair in &record.clocks {
                let ahead = |host: &str| self.ahead.get(host).map_or(0, |ahead_s| (ahead_s * SECOND) as i64);
                let error = (pair.offset_ns - (ahead(&pair.to) - ahead(&pair.from))).unsigned_abs();
                assert!(error <= pair.bound_ns && pair.off_line_ns == 0, "{error} ns: {}", text());
            }
        }
    }

    fn is_complete(&self) -> bool {
        self.records().iter().filter(|record| record.error.is_none()).count() == RUNS
    }
}

#[test]
fn a_host_that_stands_still_is_killed_or_has_no_room_fails_its_run_by_name_or_nothing() {
    let test = "chaos::on_hosts";
    let own = Command::new("unshare").args(["--time", "--monotonic", "1", "true"]).stderr(Stdio::null()).status();
    let Some(network) = Network::new('x').filter(|_| own.is_ok_and(|status| status.success())) else {
        return leave_out(test, WHY);
    };
    let place = Place::new();
    let Some(disk) = Disk::new(place.path("disk")) else {
        return leave_out(test, "no file system can be mounted here");
    };
    let seed = variable("PUBMARK_CHAOS_SEED")
        .unwrap_or_else(|| SystemTime::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64 % 1_000_000_007);
    let seconds = variable("PUBMARK_CHAOS_SECONDS").unwrap_or(SECONDS);
    eprintln!("chaos on hosts for {seconds} s: PUBMARK_CHAOS_SEED={seed}");
    place.study(STUDY);
    let until = Instant::now() + std::time::Duration::from_secs(seconds);
    let random = Draws::of(Random(seed));
    let mut acts = Acts { network: &network, disk: &disk, random, done: BTreeMap::new() };
    let (mut made, mut failed) = (0, Vec::new());
    for number in 0.. {
        let sides = ["publishers", "subscribers"];
        let ahead: Ahead =
            sides.map(|side| (side, AHEAD_S[acts.random.between(0, AHEAD_S.len() as u64) as usize])).into();
        let hosts = hosts(&network, &place, &disk.0, &ahead);
        let round = Round { place: &place, network: &network, folder: format!("r{number}"), hosts, ahead };
        round.play(&mut acts, until);
        // Missing runs are made without disturbances.
        let last = Instant::now() >= until;
        for _ in 0..if last { RESUMES } else { 0 } {
            if !round.is_complete() {
                round.play(&mut acts, until);
            }
        }
        let records = round.records();
        failed.extend(records.iter().filter_map(|record| record.error.clone()));
        made += records.iter().filter(|record| record.error.is_none()).count();
        if last {
            let errors: Vec<_> = records.iter().filter_map(|record| record.error.as_ref()).collect();
            assert!(round.is_complete(), "{errors:#?}");
            break;
        }
    }
    failed.iter().for_each(|error| eprintln!("  failed: {error}"));
    eprintln!("{made} runs made, {} failed; {:?}", failed.len(), acts.done);
}
