//! The other side sends what is written in a script, and the agent hears it.

use crate::bare::{Bare, Late};
use crate::course::{LEAD, Stop, only, pause, until};
use crate::order::{clients, places, prepare, workload};
use crate::process::waited_ns;
use crate::subject::Subject;
use crate::tap::{Answers, Line, SentLine, Tap, Taps};
use crate::wrong::{Wrong, due};
use pubmark_host::clock;
use pubmark_host::talk::Talk;
use pubmark_model::protocol::{AgentResult, Command, FlowResult, Prepare, Progress, PublisherTotal, Role};
use pubmark_model::units::{Ns, SECOND};
use pubmark_model::workload::Workload;
use std::ops::Range;
use std::time::{Duration, Instant};

/// How long it must not be ready while no probe comes.
const UNHEARD: Duration = Duration::from_millis(300);

/// What the agent is told to hear.
#[derive(Debug)]
pub struct Playback {
    /// Its name.
    pub name: &'static str,
    /// Settings of the workload.
    pub settings: &'static [(&'static str, &'static str)],
    /// The lines of a publisher.
    pub lines: fn(publisher: u32) -> Vec<Line>,
    /// Which sequences are of the window, and how many each publisher says that
    /// it has sent.
    pub window: Range<u64>,
    /// See `window`.
    pub sent: u64,
    /// When it is stopped (SIGSTOP).
    pub stops: &'static [Stop],
    /// The first of the clients that it plays; another agent would play those
    /// before it, and nobody does.
    pub first: u32,
    /// Whether it is told to drain when the window is over, though lines follow.
    pub follows: bool,
    /// Whether its clients are killed at a third of the window.
    pub killed: bool,
    /// Whether end markers follow.
    pub ends: bool,
    /// How far the clock of instants in messages is ahead, ns.
    pub ahead_ns: i64,
}

/// What came of it.
pub struct Received {
    /// What it was told.
    pub workload: Workload,
    /// When the schedule started.
    pub start_ns: Ns,
    /// How late a message may be, by what bare ones took meanwhile.
    pub late: Late,
    /// What was sent, by publisher.
    pub said: Vec<Vec<SentLine>>,
    /// What came back to requesters, by requester.
    pub back: Vec<Vec<crate::tap::Heard>>,
    /// What it says of the flow.
    pub result: FlowResult,
    /// What it says of itself.
    pub agent: AgentResult,
    /// What it said each second.
    pub progress: Vec<(Ns, Progress)>,
    /// From when until when it was stopped.
    pub stopped: Vec<(Ns, Ns)>,
    /// What it said before it had heard a probe of each publisher.
    pub early: Option<Wrong>,
    /// From the word `drain` until it was drained.
    pub drained_after: Duration,
}

impl Received {
    /// Those messages of the window that were sent as they should be, each once.
    pub fn sound(&self, window: &Range<u64>) -> Vec<SentLine> {
        let mut seen = std::collections::BTreeSet::new();
        let mut sound = Vec::new();
        for (publisher, said) in self.said.iter().enumerate() {
            for said in said {
                if said.line.flaw.sound()
                    && window.contains(&u64::from(said.line.sequence))
                    && seen.insert((publisher, said.line.sequence))
                {
                    sound.push(*said);
                }
            }
        }
        sound
    }

    /// The window's beginning.
    pub fn window_ns(&self) -> Ns {
        self.start_ns + self.workload.warmup_ns
    }

    /// The window's end.
    pub fn window_end(&self) -> Ns {
        self.start_ns + self.workload.warmup_ns + self.workload.window_ns().unwrap_or(0)
    }
}

impl Playback {
    /// Lets it hear.
    pub fn play(&self, bench: &Subject<'_>) -> Result<Received, Wrong> {
        let workload = workload(bench, self.settings)?;
        if let Some(lack) = bench.features.lack_of_crash().filter(|_| self.killed) {
            return Err(Wrong::NotTried(format!("by its `hello` it {lack}")));
        }
        bench.can_shift(self.ahead_ns)?;
        let ahead = |line: Line| Line { ahead: self.ahead_ns, ..line };
        let lines = |id| (self.lines)(id).into_iter().map(ahead).collect();
        let shifted = |order| Prepare { clock_offset_ns: self.ahead_ns, ..order };
        let (bare, first) = (Bare::start(), self.first as usize);
        let mut taps = Taps::load(bench)?;
        let mut talk = Talk::greeted(bench.receiving)?;
        let mut early = None;
        let asks = workload.pattern.requests();
        if asks {
            let bind = places(bench, &talk.scratch, workload.subscribers);
            let order = prepare(bench, &workload, clients(&workload, Role::Replier, &bind, &[]), &talk.scratch);
            let bound = talk.prepare(shifted(order))?;
            for client in clients(&workload, Role::Requester, &[], &bound) {
                let plays = (lines(client.id), Answers::default());
                taps.open(bench, &workload, (Role::Requester, client.id), (None, &client.connect), plays)?;
            }
            talk.ready()?;
        } else {
            for (id, at) in (0..).zip(places(bench, &talk.scratch, workload.publishers)).skip(first) {
                let plays = (lines(id), Answers::default());
                taps.open(bench, &workload, (Role::Publisher, id), (Some(&at), &[]), plays)?;
            }
            // The last of them keeps silent: whoever hears all is not ready yet.
            let last = taps.all().last().ok_or_else(|| Wrong::NotTried("it has no publisher".into()))?;
            last.hush(true);
            let absent = if workload.pattern.paired() { first } else { 0 };
            let bound = taps.all().iter().filter_map(|tap| tap.endpoint.clone());
            let endpoints: Vec<String> = std::iter::repeat_n(String::new(), absent).chain(bound).collect();
            let hears = clients(&workload, Role::Subscriber, &[], &endpoints).split_off(absent);
            let order = prepare(bench, &workload, hears, &talk.scratch);
            talk.prepare(shifted(order))?;
            early = talk.silent(UNHEARD).err().map(Wrong::from);
            last.hush(false);
            if early.is_none() {
                talk.ready()?;
            }
        }
        let (start_ns, waited_before) = (clock::now() + LEAD, waited_ns(talk.pid()));
        talk.begin(start_ns);
        taps.all().iter().for_each(|tap| tap.hush(!self.ends));
        taps.all().iter().for_each(|tap| tap.start(start_ns));
        let window_ns = start_ns + workload.warmup_ns;
        let third = window_ns + workload.window_ns().unwrap_or(0) / 3;
        let stopped = self.stops.iter().map(|stop| pause(&talk, window_ns, *stop)).collect();
        if self.killed {
            talk.silent(until(third))?;
            talk.tell(&Command::Crash {});
        }
        if !self.follows {
            played(&taps, &mut talk, start_ns, self.killed)?;
        }
        // The window has to be over before anybody drains.
        let over = start_ns + workload.warmup_ns + workload.window_ns().unwrap_or(0);
        talk.silent(until(over))?;
        let total = |publisher| PublisherTotal {
            publisher,
            sent: self.sent,
            window_first: self.window.start,
            window_end: self.window.end,
            offered: self.window.end - self.window.start,
        };
        let began = Instant::now();
        talk.drain((self.first..workload.publishers).map(total).collect(), workload.drain_ns)?;
        let drained_after = began.elapsed();
        let (waited, ended_ns) = (waited_ns(talk.pid()).saturating_sub(waited_before), clock::now());
        let agent = talk.stop()?;
        let (result, progress) = (only(&agent)?, std::mem::take(&mut talk.progress));
        talk.exit()?;
        let said = taps.all().iter().map(Tap::said).collect();
        let late = bare.between(start_ns, ended_ns, waited);
        let back = taps.all().iter().map(Tap::heard).collect();
        Ok(Received { workload, start_ns, late, said, back, result, agent, progress, stopped, early, drained_after })
    }
}

/// Waits until the other side has played all its lines, or has met that nobody
/// is there any more.
fn played(taps: &Taps, talk: &mut Talk, start_ns: Ns, killed: bool) -> Result<(), Wrong> {
    let deadline = start_ns + 20 * SECOND;
    for tap in taps.all() {
        while !tap.ended() {
            if !killed {
                tap.broken()?;
            }
            due(clock::now() < deadline, || "the other side could not send all within 20 s: nobody took it".into())?;
            talk.silent(Duration::from_millis(5))?;
        }
        if !killed {
            tap.broken()?;
        }
    }
    Ok(())
}
