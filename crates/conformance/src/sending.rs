//! The agent sends, and the other side sees every message.

use crate::bare::{Bare, Late};
use crate::course::{LEAD, Stop, only, pause, until};
use crate::order::{clients, places, planned, prepare, workload};
use crate::process::{ProcessWatch, Reading, processor, waited_ns};
use crate::subject::Subject;
use crate::tap::{Answers, Heard, Taps, Unanswered, narrowed};
use crate::wrong::{Wrong, due};
use pubmark_host::clock;
use pubmark_host::talk::Talk;
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

/// How long the other side waits for a probe, or for an end marker.
const MARKER: Duration = Duration::from_secs(2);

/// What has been sent has come by then.
const SETTLED: Duration = Duration::from_millis(100);

/// Time between the drain and the word `stop` where CPU time and memory are checked.
const AFTERWARDS: Duration = Duration::from_millis(300);

/// Something that the agent is told to send.
#[derive(Debug)]
pub struct Sending {
    /// Its name.
    pub name: &'static str,
    /// Settings of the workload.
    pub settings: &'static [(&'static str, &'static str)],
    /// When the agent is stopped (SIGSTOP).
    pub stops: &'static [Stop],
    /// How the other side reads.
    pub reads: Reads,
    /// The first of the publishers that it plays; another agent would play those
    /// before it, and nobody does.
    pub first: u32,
    /// Whether its process is watched, with its publishers held to one processor.
    pub watched: bool,
    /// How long its probes are listened to before it is told to start.
    pub probed: Duration,
    /// Delay of replies and echoes, and which of them are left out.
    pub answers: Answers,
    /// Whether it is told to stop in the middle of the window.
    pub early: bool,
    /// Whether its clients are killed there.
    pub killed: bool,
    /// How far the clock of instants in messages is ahead, ns.
    pub ahead_ns: i64,
}

/// How the other side reads from a third of the window on. Where it is slow, its
/// sockets, and those of the agent, have room for little.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reads {
    /// At once.
    AtOnce,
    /// Nothing for so long, and then at once.
    NotFor(Duration),
    /// A message each so often.
    Every(Duration),
    /// Nothing until the agent says that it has sent all.
    Nothing,
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

/// What came of it.
pub struct SentOut {
    /// What it was told.
    pub workload: Workload,
    /// See [`Sending::first`].
    pub first: u32,
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
    /// What its process used at the window's beginning, in it, and at its end.
    pub used: Vec<Reading>,
    /// How late a message may be, by what bare ones took meanwhile.
    pub late: Late,
    /// The only processor that its publishers may use.
    pub pinned: Option<usize>,
    /// From when until when it was stopped.
    pub stopped: Vec<(Ns, Ns)>,
}

impl SentOut {
    /// When the window begins and ends.
    pub fn window(&self) -> (Ns, Ns) {
        let from = self.start_ns + self.workload.warmup_ns;
        (from, from + self.workload.window_ns().unwrap_or(0))
    }

    /// The publishers that it was told to play.
    pub fn publishers(&self) -> Range<u32> {
        self.first..self.workload.publishers
    }

    /// A socket that hears a publisher: its partner's, or the first.
    pub fn socket_of(&self, publisher: u32) -> usize {
        if self.workload.pattern.paired() { (publisher - self.first) as usize } else { 0 }
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

impl Sending {
    /// Lets it send.
    pub fn play(&self, bench: &Subject<'_>) -> Result<SentOut, Wrong> {
        let workload = workload(bench, self.settings)?;
        if let Some(lack) = bench.features.lack_of_crash().filter(|_| self.killed) {
            return Err(Wrong::NotTried(format!("by its `hello` it {lack}")));
        }
        bench.can_shift(self.ahead_ns)?;
        let (bare, pinned) = (Bare::start(), self.watched.then(processor).flatten());
        let mut taps = Taps::load(bench)?;
        if self.slow() {
            // Narrow buffers open and close in leaps: who reads slowly but steadily has wide ones.
            taps.narrow(!matches!(self.reads, Reads::Every(_)));
        }
        let mut talk = Talk::greeted(bench.sending)?;
        let bound = self.open(bench, &workload, &mut taps, &mut talk, pinned)?;
        talk.ready()?;
        let probed = wait_for(&taps, PROBE)?;
        talk.silent(self.probed)?;
        let (start_ns, waited_before) = (clock::now() + LEAD, waited_ns(talk.pid()));
        talk.begin(start_ns);
        let window_ns = start_ns + workload.warmup_ns;
        let window_end = window_ns + workload.window_ns().unwrap_or(0);
        let watch = self.watched.then(|| ProcessWatch::of(talk.player(), window_ns, window_end));
        // Between two due times: a call that is on its way then is nobody's lag.
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
            // What it uses from now on is not of the window.
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
        let back = |heard: Heard| Heard { header: heard.header.map(|header| header.ahead_by(-self.ahead_ns)), ..heard };
        let heard = taps.all().iter().map(|tap| tap.heard().into_iter().map(back).collect()).collect();
        talk.exit()?;
        Ok(SentOut {
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

    /// Whether the other side keeps it waiting.
    fn slow(&self) -> bool {
        self.reads != Reads::AtOnce
    }

    /// Gives the agent its order, and opens the other side's sockets; where it is bound.
    fn open(
        &self,
        bench: &Subject<'_>,
        workload: &Workload,
        taps: &mut Taps,
        talk: &mut Talk,
        pinned: Option<usize>,
    ) -> Result<Vec<String>, Wrong> {
        let first = self.first as usize;
        let ordered = |clients, talk: &Talk| {
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
        // Nobody binds for those that it does not play.
        let absent = if workload.pattern.paired() { first } else { 0 };
        let ends = [vec![String::new(); absent], bound.clone()].concat();
        for client in clients(workload, Role::Subscriber, &[], &ends).split_off(absent) {
            let plays = (Vec::new(), self.answers);
            taps.open(bench, workload, (Role::Subscriber, client.id), (None, &client.connect), plays)?;
        }
        Ok(bound)
    }

    /// Reads as slowly as it is to, from an instant on; when it reads again at once.
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

/// Kills its clients: what they say that they sent, and what of them is still there.
fn kill(
    talk: &mut Talk,
    taps: &Taps,
    bound: &[String],
    drain_ns: Ns,
) -> Result<(Vec<PublisherTotal>, Option<String>), Wrong> {
    talk.tell(&Command::Crash {});
    let totals = talk.sent(0)?;
    // What was on its way has come by then.
    talk.silent(SETTLED)?;
    let came = heard_by(taps);
    let undead = bound.iter().find_map(|endpoint| listens(endpoint));
    talk.drain(totals.clone(), drain_ns)?;
    talk.silent(SETTLED)?;
    let more = heard_by(taps) - came;
    Ok((totals, undead.or((more > 0).then(|| format!("{more} messages came after that")))))
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
    let (began, mut deadline, mut came) = (Instant::now(), Instant::now() + MARKER, 0);
    for tap in taps.all() {
        while !tap.has(sequence) {
            tap.broken()?;
            let now = Instant::now();
            if now >= deadline {
                // What was sent before it may still be on its way, for a while.
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
