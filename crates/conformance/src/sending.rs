//! The agent sends, and the other side records every message.

use crate::bare::{AllowedDelay, BarePair};
use crate::course::{LEAD, Stop, only, pause, until};
use crate::order::{clients, places, planned, prepare, workload};
use crate::process::{ProcessWatch, UsageAtInstant, processor, waited_ns};
use crate::subject::TestedAgent;
use crate::tap::{Answers, ArrivedMessage, Taps, Unanswered, narrowed};
use crate::wrong::{CaseFailure, due};
use pubmark_host::clock;
use pubmark_host::conversation::AgentConversation;
use pubmark_model::header::{END, PROBE};
use pubmark_model::host::LOOPBACK;
use pubmark_model::protocol::{AgentResult, Command, FlowResult, Prepare, Progress, PublisherTotal, Role};
use pubmark_model::topology::bind_answers_at;
use pubmark_model::units::{MILLISECOND, Ns, SECOND};
use pubmark_model::workload::Workload;
use std::net::TcpStream;
use std::ops::Range;
use std::thread;
use std::time::{Duration, Instant};

/// Time that the other side waits for a probe, or for an end marker.
const MARKER: Duration = Duration::from_secs(2);

/// Time in which messages sent arrive.
const SETTLED: Duration = Duration::from_millis(100);

/// Time between the drain and the command `stop` if CPU time and memory are checked.
const AFTERWARDS: Duration = Duration::from_millis(300);

/// A script that the agent sends.
#[derive(Debug)]
pub struct Sending {
    /// Name of the script.
    pub name: &'static str,
    /// Settings of the workload.
    pub settings: &'static [(&'static str, &'static str)],
    /// Stops (SIGSTOP) of the agent.
    pub stops: &'static [Stop],
    /// Reading behaviour of the other side.
    pub reads: Reads,
    /// First of the publishers that it plays; another agent would play those before it, and none does.
    pub first: u32,
    /// True if its process is watched, with its publishers bound to one processor.
    pub watched: bool,
    /// Time for which its probes are recorded before it is told to start.
    pub probed: Duration,
    /// Delay of replies and echoes, and which of them are left out.
    pub answers: Answers,
    /// True if it is told to stop in the middle of the window.
    pub early: bool,
    /// True if its clients are killed there.
    pub killed: bool,
    /// Lead of the clock of instants in messages, ns.
    pub ahead_ns: i64,
}

/// Reading behaviour of the other side from a third into the window on. If it is slow, its sockets, and those of the
/// agent, have small buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reads {
    /// Reads at once.
    AtOnce,
    /// Reads nothing for this time, and then at once.
    NotFor(Duration),
    /// Reads one message per this time.
    Every(Duration),
    /// Reads nothing until the agent reports that it has sent all.
    Nothing,
}

/// Lead of a clock, as if its machine had run an hour longer.
pub const AHEAD_NS: i64 = 3_600 * SECOND as i64;

impl Sending {
    /// Returns a script without any obstacle.
    pub const fn plain(name: &'static str, settings: &'static [(&'static str, &'static str)]) -> Sending {
        let none = Duration::ZERO;
        Sending {
            name,
            settings,
            stops: &[],
            reads: Reads::AtOnce,
            first: 0,
            watched: false,
            probed: none,
            answers: Answers { after: none, but: Unanswered::Nothing },
            early: false,
            killed: false,
            ahead_ns: 0,
        }
    }
}

/// Outcome of a script.
pub struct ScriptOutcome {
    /// Workload of the agent.
    pub workload: Workload,
    /// See [`Sending::first`].
    pub first: u32,
    /// Start of the schedule.
    pub start_ns: Ns,
    /// Totals that its publishers report; empty if it was stopped early.
    pub totals: Vec<PublisherTotal>,
    /// Result of the flow.
    pub result: FlowResult,
    /// Result of the agent.
    pub agent: AgentResult,
    /// Messages that each socket of the other side received, by subscriber, on this clock.
    pub heard: Vec<Vec<ArrivedMessage>>,
    /// True if each socket received a probe before the start; `ended`: an end marker after it.
    pub probed: bool,
    /// See `probed`.
    pub ended: bool,
    /// Instant at which the other side began to read again, if it paused.
    pub read_again_ns: Option<Ns>,
    /// Description of messages that came after its clients had been killed, or of an endpoint that still listened.
    pub undead: Option<String>,
    /// Its progress reports, once per second.
    pub progress: Vec<(Ns, Progress)>,
    /// Usage of its process at the window's start, in it, and at its end.
    pub used: Vec<UsageAtInstant>,
    /// Allowed delay of a message, from the bare messages of that time.
    pub late: AllowedDelay,
    /// The only processor that its publishers may use.
    pub pinned: Option<usize>,
    /// Starts and ends of its stops.
    pub stopped: Vec<(Ns, Ns)>,
}

impl ScriptOutcome {
    /// Returns start and end of the window.
    pub fn window(&self) -> (Ns, Ns) {
        let from = self.start_ns + self.workload.warmup_ns;
        (from, from + self.workload.window_ns().unwrap_or(0))
    }

    /// Returns the numbers of the publishers that it played.
    pub fn publishers(&self) -> Range<u32> {
        self.first..self.workload.publishers
    }

    /// Returns a socket that receives from a publisher: its partner's, or the first.
    pub fn socket_of(&self, publisher: u32) -> usize {
        if self.workload.pattern.paired() { (publisher - self.first) as usize } else { 0 }
    }

    /// Returns the messages of a publisher that a socket received, without probes and end markers, in the order of
    /// arrival.
    pub fn messages(&self, socket: usize, publisher: u32) -> Vec<&ArrivedMessage> {
        let one = |heard: &&ArrivedMessage| {
            heard.header.is_some_and(|header| header.publisher == publisher && header.sequence < END)
        };
        self.heard.get(socket).map(|heard| heard.iter().filter(one).collect()).unwrap_or_default()
    }

    /// Returns the plan of a publisher, see [`planned`].
    pub fn plan(&self, publisher: u32) -> (Vec<Ns>, Range<usize>) {
        planned(&self.workload, publisher)
    }
}

impl Sending {
    /// Plays the script with the agent as sender.
    pub fn play(&self, bench: &TestedAgent<'_>) -> Result<ScriptOutcome, CaseFailure> {
        let workload = workload(bench, self.settings)?;
        if let Some(lack) = bench.features.lack_of_crash().filter(|_| self.killed) {
            return Err(CaseFailure::NotTried(format!("by its `hello` it {lack}")));
        }
        bench.can_shift(self.ahead_ns)?;
        let (bare, pinned) = (BarePair::start(), self.watched.then(processor).flatten());
        let mut taps = Taps::load(bench)?;
        if self.slow() {
            // Narrow buffers open and close in leaps: slow but steady reading needs wide ones.
            taps.narrow(!matches!(self.reads, Reads::Every(_)));
        }
        let mut talk = AgentConversation::greeted(bench.sending)?;
        let bound = self.open(bench, &workload, &mut taps, &mut talk, pinned)?;
        talk.ready()?;
        let probed = wait_for(&taps, PROBE)?;
        talk.silent(self.probed)?;
        let (start_ns, waited_before) = (clock::now() + LEAD, waited_ns(talk.pid()));
        talk.begin(start_ns);
        let window_ns = start_ns + workload.warmup_ns;
        let window_end = window_ns + workload.window_ns().unwrap_or(0);
        let watch = self.watched.then(|| ProcessWatch::of(talk.player(), window_ns, window_end));
        // Between two due times, so that no call is in progress.
        let middle = window_ns + workload.window_ns().unwrap_or(0) / 3 + MILLISECOND;
        let stopped = self.stops.iter().map(|stop| pause(&talk, window_ns, *stop)).collect();
        let mut read_again_ns = self.read_slowly(&taps, middle);
        let (mut totals, mut ended, mut undead) = (Vec::new(), false, None);
        if self.early {
            talk.silent(until(middle))?;
        } else if self.killed {
            talk.silent(until(middle))?;
            (totals, undead) = kill(&mut talk, &taps, &bound, workload.drain_ns)?;
        } else {
            totals = talk.sent(workload.warmup_ns + workload.window_ns().unwrap_or(SECOND) + workload.drain_ns)?;
            if self.reads == Reads::Nothing {
                read_again_ns = Some(clock::now());
                taps.all().iter().for_each(|tap| tap.hush(false));
            }
            if !workload.pattern.requests() {
                ended = wait_for(&taps, END)?;
            }
            talk.drain(totals.clone(), workload.drain_ns)?;
        }
        if self.watched {
            // Its usage from now on is not of the window.
            talk.silent(AFTERWARDS)?;
        }
        let waited = waited_ns(talk.pid()).saturating_sub(waited_before);
        let agent = talk.stop()?;
        if self.early {
            // What it still sends would have come by then.
            talk.silent(SETTLED)?;
        }
        let result = only(&agent)?;
        let over_ns = clock::now();
        let (used, late) =
            (watch.map(ProcessWatch::finish).unwrap_or_default(), bare.between(start_ns, over_ns, waited));
        let progress = std::mem::take(&mut talk.progress);
        let back = |heard: ArrivedMessage| ArrivedMessage {
            header: heard.header.map(|header| header.ahead_by(-self.ahead_ns)),
            ..heard
        };
        let heard = taps.all().iter().map(|tap| tap.heard().into_iter().map(back).collect()).collect();
        talk.exit()?;
        Ok(ScriptOutcome {
            workload,
            first: self.first,
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
            used,
            late,
            pinned,
            stopped,
        })
    }

    /// Returns whether the other side makes it wait.
    fn slow(&self) -> bool {
        self.reads != Reads::AtOnce
    }

    /// Gives the agent its order, and opens the other side's sockets. Returns the bound endpoints.
    fn open(
        &self,
        bench: &TestedAgent<'_>,
        workload: &Workload,
        taps: &mut Taps,
        talk: &mut AgentConversation,
        pinned: Option<usize>,
    ) -> Result<Vec<String>, CaseFailure> {
        let first = self.first as usize;
        let ordered = |clients, talk: &AgentConversation| {
            let order = prepare(bench, workload, clients, &talk.scratch);
            let mut options = order.options;
            if self.slow() {
                narrowed(&mut options);
            }
            let publisher_cpus = pinned.into_iter().collect();
            Prepare { clock_offset_ns: self.ahead_ns, options, publisher_cpus, ..order }
        };
        if workload.pattern.requests() {
            for (id, at) in (0..).zip(places(bench, &talk.scratch, workload.subscribers)) {
                let plays = (Vec::new(), self.answers);
                taps.open(bench, workload, (Role::Replier, id), (Some(&at), &[]), plays)?;
            }
            let endpoints: Vec<String> = taps.all().iter().filter_map(|tap| tap.endpoint.clone()).collect();
            let order = ordered(clients(workload, Role::Requester, &[], &endpoints), talk);
            talk.prepare(order)?;
            return Ok(Vec::new());
        }
        let bind = places(bench, &talk.scratch, workload.publishers);
        let mut publishers = clients(workload, Role::Publisher, &bind, &[]).split_off(first);
        let answers = bind_answers_at(workload, talk.scratch.path(), LOOPBACK);
        publishers.iter_mut().for_each(|client| client.answers = answers.clone());
        let order = ordered(publishers, talk);
        let bound = talk.prepare(order)?;
        taps.answers = talk.answers.clone();
        let count = workload.publishers as usize - first;
        due(bound.len() == count, || format!("{count} publishers had a `bind`; `bound` names {}", bound.len()))?;
        // Publishers that it does not play are bound nowhere.
        let absent = if workload.pattern.paired() { first } else { 0 };
        let ends = [vec![String::new(); absent], bound.clone()].concat();
        for client in clients(workload, Role::Subscriber, &[], &ends).split_off(absent) {
            let plays = (Vec::new(), self.answers);
            taps.open(bench, workload, (Role::Subscriber, client.id), (None, &client.connect), plays)?;
        }
        Ok(bound)
    }

    /// Slows down reading from an instant on. Returns the instant at which it reads at once again.
    fn read_slowly(&self, taps: &Taps, at_ns: Ns) -> Option<Ns> {
        let all = || taps.all().iter();
        if let Reads::Every(gap) = self.reads {
            all().for_each(|tap| tap.read_every(gap));
        }
        if !matches!(self.reads, Reads::NotFor(_) | Reads::Nothing) {
            return None;
        }
        thread::sleep(until(at_ns));
        all().for_each(|tap| tap.hush(true));
        let Reads::NotFor(length) = self.reads else { return None };
        thread::sleep(length);
        let over_ns = clock::now();
        all().for_each(|tap| tap.hush(false));
        Some(over_ns)
    }
}

/// Kills its clients. Returns their totals, and a description of what is still alive.
fn kill(
    talk: &mut AgentConversation,
    taps: &Taps,
    bound: &[String],
    drain_ns: Ns,
) -> Result<(Vec<PublisherTotal>, Option<String>), CaseFailure> {
    talk.tell(&Command::Crash {});
    let totals = talk.sent(0)?;
    // Messages in flight have arrived by then.
    talk.silent(SETTLED)?;
    let came = heard_by(taps);
    let undead = bound.iter().find_map(|endpoint| listens(endpoint));
    talk.drain(totals.clone(), drain_ns)?;
    talk.silent(SETTLED)?;
    let more = heard_by(taps) - came;
    Ok((totals, undead.or((more > 0).then(|| format!("{more} messages came after that")))))
}

/// Returns the number of messages that all sockets have received, including probes and end markers.
fn heard_by(taps: &Taps) -> usize {
    taps.all().iter().map(|tap| tap.heard().len()).sum()
}

/// Returns an error text if an endpoint of TCP still listens.
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

/// Waits until each socket receives this sequence. Returns false after the time limit.
fn wait_for(taps: &Taps, sequence: u32) -> Result<bool, CaseFailure> {
    let (began, mut deadline, mut came) = (Instant::now(), Instant::now() + MARKER, 0);
    for tap in taps.all() {
        while !tap.has(sequence) {
            tap.broken()?;
            let now = Instant::now();
            if now >= deadline {
                // Earlier messages may still be in flight for a while.
                let more = std::mem::replace(&mut came, heard_by(taps));
                if more == came || now >= began + 10 * MARKER {
                    return Ok(false);
                }
                deadline = now + MARKER;
            }
            thread::park_timeout(Duration::from_millis(5));
        }
    }
    Ok(true)
}
