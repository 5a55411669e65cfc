//! The agent sends, and the other side sees every message.

use crate::course::{LEAD, only, pause, until};
use crate::order::{clients, places, prepare, workload};
use crate::subject::Subject;
use crate::tap::{Heard, Taps};
use crate::wrong::{Wrong, due};
use pubmark_host::clock;
use pubmark_host::talk::Talk;
use pubmark_host::usage::cpu_ns;
use pubmark_model::header::{END, PROBE};
use pubmark_model::host::LOOPBACK;
use pubmark_model::protocol::{AgentResult, Command, FlowResult, Prepare, Progress, PublisherTotal, Role};
use pubmark_model::schedule::Schedule;
use pubmark_model::topology::bind_answers_at;
use pubmark_model::units::{MILLISECOND, Ns, SECOND};
use pubmark_model::workload::{Extent, Workload};
use std::net::TcpStream;
use std::ops::Range;
use std::thread;
use std::time::{Duration, Instant};

/// How long the other side waits for a probe, or for an end marker.
const MARKER: Duration = Duration::from_secs(2);

/// What has been sent has come by then.
const SETTLED: Duration = Duration::from_millis(100);

/// Something that the agent is told to send.
#[derive(Debug)]
pub struct Sending {
    /// Its name.
    pub name: &'static str,
    /// Settings of the workload.
    pub settings: &'static [(&'static str, &'static str)],
    /// How long the agent is stopped (SIGSTOP) in the middle of the window.
    pub stopped: Duration,
    /// How long the other side reads nothing in the middle of the window, so that
    /// what is sent has to wait.
    pub unread: Duration,
    /// How long each reply, or echo, is held back.
    pub reply_after: Duration,
    /// Whether it is told to stop in the middle of the window.
    pub early: bool,
    /// Whether its clients are killed there.
    pub killed: bool,
    /// How far the clock of instants in messages is ahead, ns.
    pub ahead_ns: i64,
}

/// So far a clock may be ahead of another: as if a machine had run an hour longer.
pub const AHEAD_NS: i64 = 3_600 * SECOND as i64;

impl Sending {
    /// With nothing in its way.
    pub const fn plain(name: &'static str, settings: &'static [(&'static str, &'static str)]) -> Sending {
        let none = Duration::ZERO;
        Sending {
            name,
            settings,
            stopped: none,
            unread: none,
            reply_after: none,
            early: false,
            killed: false,
            ahead_ns: 0,
        }
    }
}

/// What came of it.
pub struct SentOut {
    /// What it was told.
    pub workload: Workload,
    /// When the schedule started.
    pub start_ns: Ns,
    /// What its publishers say that they sent; empty where it was stopped early.
    pub totals: Vec<PublisherTotal>,
    /// What it says of the flow.
    pub result: FlowResult,
    /// What it says of itself.
    pub agent: AgentResult,
    /// What each socket of the other side heard, by subscriber, on this clock.
    pub heard: Vec<Vec<Heard>>,
    /// Whether each socket heard a probe before the start, and an end marker after it.
    pub probed: bool,
    /// See `probed`.
    pub ended: bool,
    /// When the other side began to read again, if it did not read for a while.
    pub read_again_ns: Option<Ns>,
    /// What else came after its clients had been killed, and whether somebody
    /// still listened where they had been bound.
    pub undead: Option<String>,
    /// What it said each second.
    pub progress: Vec<(Ns, Progress)>,
    /// Processor time of its process when it had handed in its result, ns.
    pub cpu_ns: Ns,
    /// The most memory that its process ever had, bytes.
    pub memory_bytes: u64,
}

impl SentOut {
    /// When the window begins and ends.
    pub fn window(&self) -> (Ns, Ns) {
        let from = self.start_ns + self.workload.warmup_ns;
        (from, from + self.workload.window_ns().unwrap_or(0))
    }

    /// A socket that hears a publisher: its partner's, or the first.
    pub fn socket_of(&self, publisher: u32) -> usize {
        if self.workload.pattern.paired() { publisher as usize } else { 0 }
    }

    /// The messages of a publisher that a socket heard, without probes and end
    /// markers, in the order of their coming.
    pub fn messages(&self, socket: usize, publisher: u32) -> Vec<&Heard> {
        let one =
            |heard: &&Heard| heard.header.is_some_and(|header| header.publisher == publisher && header.sequence < END);
        self.heard.get(socket).map(|heard| heard.iter().filter(one).collect()).unwrap_or_default()
    }

    /// As [`planned`].
    pub fn plan(&self, publisher: u32) -> (Vec<Ns>, Range<usize>) {
        planned(&self.workload, publisher)
    }
}

/// When each message of a publisher is due until the window's end, ns from the
/// start; and which of them belong to the window.
pub fn planned(workload: &Workload, publisher: u32) -> (Vec<Ns>, Range<usize>) {
    let Some(profile) = workload.rate.profile() else { return (Vec::new(), 0..0) };
    let mut schedule = Schedule::of(workload, profile, publisher);
    let (mut dues, mut first) = (Vec::new(), 0);
    loop {
        let at = schedule.due();
        if at < workload.warmup_ns {
            first = dues.len() + 1;
        }
        let done = match workload.extent {
            Extent::TimeNs(length) => at >= workload.warmup_ns + length,
            Extent::Count(count) => dues.len() as u64 >= first as u64 + count,
        };
        if done {
            let end = dues.len();
            return (dues, first..end);
        }
        dues.push(at);
        schedule.advance();
    }
}

impl Sending {
    /// Lets it send.
    pub fn play(&self, bench: &Subject<'_>) -> Result<SentOut, Wrong> {
        let workload = workload(bench, self.settings)?;
        if let Some(lack) = bench.features.lack_of_crash().filter(|_| self.killed) {
            return Err(Wrong::NotTried(format!("by its `hello` it {lack}")));
        }
        bench.can_shift(self.ahead_ns)?;
        let shifted = |order| Prepare { clock_offset_ns: self.ahead_ns, ..order };
        let mut taps = Taps::load(bench)?;
        if !self.unread.is_zero() {
            taps.narrow();
        }
        let mut talk = Talk::greeted(bench.sending)?;
        let mut bound = Vec::new();
        let round_trip = workload.pattern.requests();
        if round_trip {
            for (id, at) in (0..).zip(places(bench, &talk.scratch, workload.subscribers)) {
                let plays = (Vec::new(), self.reply_after);
                taps.open(bench, &workload, (Role::Replier, id), (Some(&at), &[]), plays)?;
            }
            let endpoints: Vec<String> = taps.all().iter().filter_map(|tap| tap.endpoint.clone()).collect();
            let order = prepare(bench, &workload, clients(&workload, Role::Requester, &[], &endpoints), &talk.scratch);
            talk.prepare(shifted(order))?;
        } else {
            let bind = places(bench, &talk.scratch, workload.publishers);
            let mut publishers = clients(&workload, Role::Publisher, &bind, &[]);
            let answers = bind_answers_at(&workload, talk.scratch.path(), LOOPBACK);
            publishers.iter_mut().for_each(|client| client.answers = answers.clone());
            bound = talk.prepare(shifted(prepare(bench, &workload, publishers, &talk.scratch)))?;
            taps.answers = talk.answers.clone();
            let count = workload.publishers as usize;
            due(bound.len() == count, || format!("{count} publishers had a `bind`; `bound` names {}", bound.len()))?;
            for client in clients(&workload, Role::Subscriber, &[], &bound) {
                let plays = (Vec::new(), self.reply_after);
                taps.open(bench, &workload, (Role::Subscriber, client.id), (None, &client.connect), plays)?;
            }
        }
        talk.ready()?;
        let probed = wait_for(&taps, PROBE)?;
        let start_ns = clock::now() + LEAD;
        talk.begin(start_ns);
        // Between two due times: a call that is on its way then is nobody's lag.
        let middle = start_ns + workload.warmup_ns + workload.window_ns().unwrap_or(0) / 3 + MILLISECOND;
        pause(&talk, middle, self.stopped);
        let read_again_ns = self.leave_unread(&taps, middle);
        let (mut totals, mut ended, mut undead) = (Vec::new(), false, None);
        if self.early {
            talk.silent(until(middle))?;
        } else if self.killed {
            talk.silent(until(middle))?;
            talk.tell(&Command::Crash {});
            totals = talk.sent(0)?;
            // What was on its way has come by then.
            talk.silent(SETTLED)?;
            let came = heard_by(&taps);
            undead = bound.iter().find_map(|endpoint| listens(endpoint));
            talk.drain(totals.clone(), workload.drain_ns)?;
            talk.silent(SETTLED)?;
            let more = heard_by(&taps) - came;
            undead = undead.or((more > 0).then(|| format!("{more} messages came after that")));
        } else {
            totals = talk.sent(workload.warmup_ns + workload.window_ns().unwrap_or(SECOND) + workload.drain_ns)?;
            if !round_trip {
                ended = wait_for(&taps, END)?;
            }
            talk.drain(totals.clone(), workload.drain_ns)?;
        }
        let agent = talk.stop()?;
        if self.early {
            // What it still sends would have come by then.
            talk.silent(SETTLED)?;
        }
        let result = only(&agent)?;
        let (cpu_ns, memory_bytes) = (cpu_ns(talk.pid()).unwrap_or(0), most_memory(talk.pid()));
        let progress = std::mem::take(&mut talk.progress);
        let back = |heard: Heard| Heard { header: heard.header.map(|header| header.ahead_by(-self.ahead_ns)), ..heard };
        let heard = taps.all().iter().map(|tap| tap.heard().into_iter().map(back).collect()).collect();
        talk.exit()?;
        Ok(SentOut {
            workload,
            start_ns,
            totals,
            result,
            agent,
            heard,
            probed,
            ended,
            read_again_ns,
            undead,
            progress,
            cpu_ns,
            memory_bytes,
        })
    }

    /// Reads nothing for so long, from an instant on; when it is over.
    fn leave_unread(&self, taps: &Taps, at_ns: Ns) -> Option<Ns> {
        if self.unread.is_zero() {
            return None;
        }
        thread::sleep(until(at_ns));
        taps.all().iter().for_each(|tap| tap.hush(true));
        thread::sleep(self.unread);
        let over_ns = clock::now();
        taps.all().iter().for_each(|tap| tap.hush(false));
        Some(over_ns)
    }
}

/// How much all sockets have heard, probes and end markers among it.
fn heard_by(taps: &Taps) -> usize {
    taps.all().iter().map(|tap| tap.heard().len()).sum()
}

/// What is wrong where somebody still listens at an endpoint of TCP.
fn listens(endpoint: &str) -> Option<String> {
    let address = endpoint.strip_prefix("tcp://")?;
    let deadline = Instant::now() + MARKER;
    while TcpStream::connect(address).is_ok() {
        if Instant::now() >= deadline {
            return Some(format!("somebody still listens at {endpoint}"));
        }
        thread::park_timeout(Duration::from_millis(5));
    }
    None
}

/// Whether each socket hears this, in time.
fn wait_for(taps: &Taps, sequence: u32) -> Result<bool, Wrong> {
    let deadline = Instant::now() + MARKER;
    for tap in taps.all() {
        while !tap.has(sequence) {
            tap.broken()?;
            if Instant::now() >= deadline {
                return Ok(false);
            }
            thread::park_timeout(Duration::from_millis(5));
        }
    }
    Ok(true)
}

/// The most memory that a process ever had, bytes; 0 where it is gone.
fn most_memory(pid: i32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let most = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    let kib: u64 = most.split_whitespace().next().and_then(|kib| kib.parse().ok()).unwrap_or(0);
    kib << 10
}
