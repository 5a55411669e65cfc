//! The other side sends by a script, and the agent receives.

use crate::bare::{AllowedDelay, BarePair};
use crate::course::{LEAD, Stop, only, pause, until};
use crate::order::{clients, places, prepare, workload};
use crate::process::waited_ns;
use crate::subject::TestedAgent;
use crate::tap::{Answers, ScriptedMessage, SentLine, Taps, TestSocket};
use crate::wrong::{CaseFailure, due};
use pubmark_host::clock;
use pubmark_host::conversation::AgentConversation;
use pubmark_model::protocol::{AgentResult, Command, FlowResult, Prepare, Progress, PublisherTotal, Role};
use pubmark_model::units::{Ns, SECOND};
use pubmark_model::workload::Workload;
use std::ops::Range;
use std::time::{Duration, Instant};

/// Time for which it must not be ready while no probe comes.
const UNHEARD: Duration = Duration::from_millis(300);

/// A script that the agent receives.
#[derive(Debug)]
pub struct Playback {
    /// Name of the script.
    pub name: &'static str,
    /// Settings of the workload.
    pub settings: &'static [(&'static str, &'static str)],
    /// Lines of a publisher.
    pub lines: fn(publisher: u32) -> Vec<ScriptedMessage>,
    /// Sequences that belong to the window; `sent` is the number that each publisher reports as sent.
    pub window: Range<u64>,
    /// See `window`.
    pub sent: u64,
    /// Stops (SIGSTOP) of the agent.
    pub stops: &'static [Stop],
    /// First of the clients that it plays; another agent would play those before it, and none does.
    pub first: u32,
    /// True if it is told to drain when the window is over, though lines follow.
    pub follows: bool,
    /// True if its clients are killed a third into the window.
    pub killed: bool,
    /// True if end markers follow.
    pub ends: bool,
    /// Lead of the clock of instants in messages, ns.
    pub ahead_ns: i64,
}

/// Outcome of a script.
pub struct Received {
    /// Workload of the agent.
    pub workload: Workload,
    /// Start of the schedule.
    pub start_ns: Ns,
    /// Allowed delay of a message, from the bare messages of that time.
    pub late: AllowedDelay,
    /// Messages sent, by publisher.
    pub said: Vec<Vec<SentLine>>,
    /// Replies, by requester.
    pub back: Vec<Vec<crate::tap::ArrivedMessage>>,
    /// Result of the flow.
    pub result: FlowResult,
    /// Result of the agent.
    pub agent: AgentResult,
    /// Its progress reports, once per second.
    pub progress: Vec<(Ns, Progress)>,
    /// Starts and ends of its stops.
    pub stopped: Vec<(Ns, Ns)>,
    /// Error if it was ready before it had received a probe from each publisher.
    pub early: Option<CaseFailure>,
    /// Time from the command `drain` until it was drained.
    pub drained_after: Duration,
}

impl Received {
    /// Returns the messages of the window that were sent without a flaw, each once.
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

    /// Returns the window's start.
    pub fn window_ns(&self) -> Ns {
        self.start_ns + self.workload.warmup_ns
    }

    /// Returns the window's end.
    pub fn window_end(&self) -> Ns {
        self.start_ns + self.workload.warmup_ns + self.workload.window_ns().unwrap_or(0)
    }
}

impl Playback {
    /// Plays the script to the agent.
    pub fn play(&self, bench: &TestedAgent<'_>) -> Result<Received, CaseFailure> {
        let workload = workload(bench, self.settings)?;
        if let Some(lack) = bench.features.lack_of_crash().filter(|_| self.killed) {
            return Err(CaseFailure::NotTried(format!("by its `hello` it {lack}")));
        }
        bench.can_shift(self.ahead_ns)?;
        let ahead = |line: ScriptedMessage| ScriptedMessage { ahead: self.ahead_ns, ..line };
        let lines = |id| (self.lines)(id).into_iter().map(ahead).collect();
        let shifted = |order| Prepare { clock_offset_ns: self.ahead_ns, ..order };
        let (bare, first) = (BarePair::start(), self.first as usize);
        let mut taps = Taps::load(bench)?;
        let mut talk = AgentConversation::greeted(bench.receiving)?;
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
            // The last of them is silent: an agent that waits for all is not ready yet.
            let last = taps.all().last().ok_or_else(|| CaseFailure::NotTried("it has no publisher".into()))?;
            last.hush(true);
            let absent = if workload.pattern.paired() { first } else { 0 };
            let bound = taps.all().iter().filter_map(|tap| tap.endpoint.clone());
            let endpoints: Vec<String> = std::iter::repeat_n(String::new(), absent).chain(bound).collect();
            let hears = clients(&workload, Role::Subscriber, &[], &endpoints).split_off(absent);
            let order = prepare(bench, &workload, hears, &talk.scratch);
            talk.prepare(shifted(order))?;
            early = talk.silent(UNHEARD).err().map(CaseFailure::from);
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
        // The window must be over before the drain.
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
        let said = taps.all().iter().map(TestSocket::said).collect();
        let late = bare.between(start_ns, ended_ns, waited);
        let back = taps.all().iter().map(TestSocket::heard).collect();
        Ok(Received { workload, start_ns, late, said, back, result, agent, progress, stopped, early, drained_after })
    }
}

/// Waits until the other side has played all its lines, or has found that the agent's clients are gone.
fn played(taps: &Taps, talk: &mut AgentConversation, start_ns: Ns, killed: bool) -> Result<(), CaseFailure> {
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
