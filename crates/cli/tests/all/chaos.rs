//! Kills and stops agents, keepers, servers and the coordinator at random moments, again and again. No record may
//! become wrong, nothing may be left behind, and `--resume` must make the missing runs.
//!
//! The seed is printed. `PUBMARK_CHAOS_SEED` sets it: the same acts are chosen again, though they cannot happen at the
//! same instants. `PUBMARK_CHAOS_SECONDS` sets the time of the disturbances.

mod books;
mod checks;
mod disturber;
mod on_hosts;
mod tree;

use crate::known_answers::Peer;
use crate::support::{Place, bench_arguments, pubmark, wait_for};
use checks::Attempt;
use disturber::{Disturber, Phase, pass};
use nix::sys::signal::Signal;
use pubmark_host::clock;
use pubmark_host::server::processes;
use pubmark_model::record::{Reason, RunRecord};
use pubmark_model::units::MILLISECOND;
use std::collections::BTreeMap;
use std::fs::File;
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant, SystemTime};
use tree::Process;

/// Default time of the disturbances, s.
const SECONDS: u64 = 25;
/// Maximum time of a coordinator of so short a study, however often its processes are stopped or killed.
const LONGEST: Duration = Duration::from_secs(300);
/// Number of resumes after the last disturbance: a busy machine alone may spoil a run.
const RESUMES: u32 = 3;
/// Cells, and runs of each.
const CELLS: usize = 10;
const REPEATS: usize = 2;

fn study(endpoint: &str) -> String {
    format!(
        "title = \"chaos\"\n[workload]\nrate = 1500\npayload = \"256B\"\nwarmup = \"150ms\"\nduration = \"1s\"\n\
         drain = \"2s\"\nconnect_timeout = \"3s\"\n\
         [axes]\nsystem = [\"kernel\", \"zeromq\", \"mosquitto\", \"nats\", \"redis\", \"mqtt\"]\n\
         [options.mqtt]\nendpoint = \"{endpoint}\"\n\
         [parts.libraries]\ntransport = [\"tcp\", \"ipc\"]\n[parts.once]\nqos = 0\n[parts.acknowledged]\nqos = 1\n\
         [[skip]]\npart = \"libraries\"\nsystem = [\"mosquitto\", \"nats\", \"redis\", \"mqtt\"]\nwhy = \"brokers\"\n\
         [[skip]]\npart = [\"once\", \"acknowledged\"]\nsystem = [\"kernel\", \"zeromq\"]\nwhy = \"libraries\"\n\
         [[skip]]\npart = \"acknowledged\"\nsystem = [\"nats\", \"redis\"]\nwhy = \"QoS 0 only\"\n\
         [run]\nrepeats = {REPEATS}\n"
    )
}

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name}={text} is not a number")))
}

/// A coordinator that ends when this is dropped.
struct Coordinator(Child);

impl Drop for Coordinator {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A study that is disturbed.
struct Chaos {
    place: Place,
    folder: String,
    attempts: Vec<Attempt>,
    /// Process ids of the coordinators so far.
    coordinators: Vec<i32>,
}

impl Chaos {
    fn records(&self) -> Vec<RunRecord> {
        checks::records(&self.place.path(&self.folder).join("runs.jsonl"))
    }

    /// Starts a coordinator, and disturbs it until this instant.
    fn attempt(&mut self, disturber: &mut Disturber, until: Instant) -> ExitStatus {
        let before = self.records().len();
        let found = checks::leftovers(&self.place.tmp(), &self.coordinators);
        let mut arguments = vec!["run", "study.toml", "--out", &self.folder];
        if self.place.path(&self.folder).join("runs.jsonl").exists() {
            arguments.push("--resume");
        }
        let said = self.place.path("said");
        let mut command = self.place.command(&arguments);
        command.stdout(Stdio::null()).stderr(File::create(&said).unwrap());
        let mut coordinator = Coordinator(command.spawn().unwrap());
        let process = Process::find(coordinator.0.id() as i32).unwrap();
        self.coordinators.push(process.pid);
        let (first_event, deadline) = (disturber.log.len(), Instant::now() + LONGEST);
        let status = loop {
            if let Some(status) = coordinator.0.try_wait().unwrap() {
                break status;
            }
            if Instant::now() < until {
                disturber.disturb(process);
            } else {
                pass(clock::now() + 20 * MILLISECOND);
            }
            assert!(Instant::now() < deadline, "the coordinator does not end");
        };
        let said = std::fs::read_to_string(said).unwrap();
        let attempt = Attempt {
            events: disturber.log[first_event..].to_vec(),
            records: before,
            found,
            ended: SystemTime::now(),
            ended_ns: clock::now(),
            status,
            sums: Default::default(),
            said,
        };
        attempt.assert_ended_in_order();
        self.attempts.push(attempt);
        self.check();
        status
    }

    /// Checks what is true whenever a coordinator has ended.
    fn check(&self) {
        let attempt = self.attempts.last().unwrap();
        eprintln!("{:?}: {:?}", attempt.status, attempt.events.last());
        checks::assert_nothing_lives(&self.place.tmp());
        if attempt.tidies_up() {
            let excused = if attempt.was_cut_short() { attempt.found.as_slice() } else { &[] };
            checks::assert_swept(&self.place.tmp(), &self.coordinators, excused);
        }
        let records = self.records();
        checks::assert_books(&records);
        attempt.assert_told(&records[attempt.records..]);
    }

    fn is_complete(&self) -> bool {
        self.records().iter().filter(|record| record.error.is_none()).count() == CELLS * REPEATS
    }

    /// Completes the study without disturbances.
    fn complete(&mut self, disturber: &mut Disturber) {
        for _ in 0..RESUMES {
            let status = self.attempt(disturber, Instant::now());
            assert!(matches!(status.code(), Some(0 | 1 | 3)), "{status}: {}", self.attempts.last().unwrap().said);
            if self.is_complete() {
                break;
            }
        }
        checks::assert_swept(&self.place.tmp(), &self.coordinators, &[]);
        checks::assert_complete(&self.place, &self.folder, CELLS, REPEATS);
    }
}

#[test]
fn no_record_is_wrong_whatever_happens_to_it() {
    let seed = variable("PUBMARK_CHAOS_SEED")
        .unwrap_or_else(|| SystemTime::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64 % 1_000_000_007);
    let seconds = variable("PUBMARK_CHAOS_SECONDS").unwrap_or(SECONDS);
    eprintln!("chaos for {seconds} s: PUBMARK_CHAOS_SEED={seed}");
    let until = Instant::now() + Duration::from_secs(seconds);
    let peer = Peer::spawn(pubmark().args(["peer", "--protocol", "mqtt"]));
    let place = Place::new();
    place.study(&study(&peer.endpoint));
    let mut disturber = Disturber::new(seed);
    let mut chaos = Chaos { place, folder: String::new(), attempts: Vec::new(), coordinators: Vec::new() };
    for round in 0.. {
        chaos.folder = format!("r{round}");
        while Instant::now() < until && !chaos.is_complete() {
            chaos.attempt(&mut disturber, until);
        }
        if Instant::now() >= until {
            break;
        }
        // All runs are there, but perhaps no report.
        chaos.complete(&mut disturber);
    }
    chaos.complete(&mut disturber);
    tell(&disturber, &chaos.attempts);
}

#[test]
fn a_coordinator_that_misses_the_windows_end_says_so() {
    let place = Place::new();
    let arguments = bench_arguments(&["kernel", "--transport", "tcp", "--duration", "2s"]);
    let mut coordinator =
        Coordinator(place.command(&arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    let pid = coordinator.0.id() as i32;
    let agents = wait_for("the window", || {
        let members = tree::below(pid);
        let on = members.iter().filter(|member| member.process.told_to_start().is_some()).count();
        (on == 2).then_some(members)
    });
    processes::signal(pid, Signal::SIGSTOP);
    wait_for("the window's end", || agents.iter().all(|agent| agent.process.told_to_start().is_none()).then_some(()));
    // The stop that follows is longer than a tenth of the window.
    pass(clock::now() + 500 * MILLISECOND);
    processes::signal(pid, Signal::SIGCONT);
    wait_for("the coordinator's end", || coordinator.0.try_wait().unwrap());
    let records = checks::records(&place.path("r").join("runs.jsonl"));
    assert_eq!(records[0].error, None);
    assert_books_find_mistakes(&records[0]);
    assert!(books::has(&records[0], Reason::NoisyMachine), "{:?}", records[0].verdict);
    assert!(records[0].machine.late_ns >= 500 * MILLISECOND, "{:?}", records[0].machine);
    checks::assert_books(&records);
    place.assert_swept();
}

/// The checks pass for a true record and fail for a changed one.
fn assert_books_find_mistakes(record: &RunRecord) {
    type Change = fn(&mut RunRecord);
    let changes: [Change; 14] = [
        |record| record.counts.sent -= 1,
        |record| record.counts.offered += 2,
        |record| record.counts.delivered += 1,
        |record| record.counts.lost += 1,
        |record| record.counts.acked += 1,
        |record| record.counts.late += 1,
        |record| record.counts.corrupted = Some(record.counts.damaged() + 1),
        |record| record.rates.delivered_per_s *= 1.001,
        |record| record.series.delivered[0] += 1,
        |record| record.times.latency.as_mut().unwrap().p99 += 1_000_000,
        |record| record.histograms.latency = record.histograms.own_lag.clone(),
        |record| record.agents[0].pauses.as_mut().unwrap().count = 1,
        |record| record.verdict.valid = true,
        |record| record.error = Some("no run".into()),
    ];
    for (index, change) in changes.iter().enumerate() {
        let mut changed = record.clone();
        change(&mut changed);
        assert!(!books::adds_up(&changed).is_empty(), "change {index} is not found");
    }
}

/// Prints the acts, and their instants within a run.
fn tell(disturber: &Disturber, attempts: &[Attempt]) {
    let mut table: BTreeMap<String, BTreeMap<Phase, u32>> = BTreeMap::new();
    for event in &disturber.log {
        *table.entry(format!("{:?} {:?}", event.act, event.role)).or_default().entry(event.phase).or_default() += 1;
    }
    eprintln!("{} coordinators, {} acts:", attempts.len(), disturber.log.len());
    table.iter().for_each(|(what, when)| eprintln!("  {what}: {when:?}"));
    let sums = attempts
        .iter()
        .map(|attempt| attempt.sums.get())
        .fold([0; 4], |all, one| std::array::from_fn(|index| all[index] + one[index]));
    let [agents, coordinators, servers, undisturbed] = sums;
    eprintln!(
        "matched with records: {agents} stopped agents, {coordinators} stopped coordinators, {servers} killed \
         servers, {undisturbed} undisturbed runs"
    );
}
