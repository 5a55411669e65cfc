//! Leading the agents of a run. What they say and what time it is goes in,
//! orders and a deadline come out: there is no process, no clock and no file
//! here, so that agents of every kind of wrongness can be met in virtual time.

mod checks;
pub mod deal;
pub mod hello;
mod pacing;
mod refusal;
mod roll;
mod seat;
mod silence;

use crate::live::{Figures, Live};
use deal::{AgentPlan, BoundEndpoints, connect, patience, pinning};
use hello::{can_crash, fits, identity};
use pubmark_judge::assemble::AgentReport;
use pubmark_model::cell::Cell;
use pubmark_model::fault::Target;
use pubmark_model::line::JsonLine;
use pubmark_model::plan::Place;
use pubmark_model::protocol::{
    AgentHello, AgentResult, Command, Event, Flow, Prepare, PublisherTotal, ServerAddress, VERSION,
};
use pubmark_model::secret::Secrets;
use pubmark_model::system::System;
use pubmark_model::units::{MILLISECOND, Ns, SECOND};
use pubmark_model::workload::Workload;
pub use refusal::Refusal;
use roll::Roll;
pub use seat::{Reached, Seat};
use std::collections::VecDeque;

/// How long an agent may take to hand in its result.
pub const ANSWER: Ns = 10 * SECOND;
/// How long each client may take to take leave of a server.
const LEAVE: Ns = MILLISECOND;
/// How long a run whose end is a count may go without sending anything.
const STANDSTILL: Ns = 30 * SECOND;

/// What is to be played.
pub struct Brief<'a> {
    /// The cell.
    pub cell: &'a Cell,
    /// Its system.
    pub system: &'a System,
    /// Which run it is.
    pub place: Place,
    /// The run's own name.
    pub run: String,
    /// By agent: what is known of its host.
    pub seats: Vec<Seat>,
    /// What no message may repeat.
    pub secrets: Secrets,
}

impl Brief<'_> {
    /// Whether the run goes by in virtual time: then there is nothing to wait for.
    fn timeless(&self) -> bool {
        self.system.driver == "mock"
    }
}

/// What comes from an agent.
#[derive(Clone, Debug)]
pub enum Said {
    /// A word of the protocol.
    Event(Event),
    /// A line that is none, and why.
    Garbage(String),
    /// Its output has ended; how it fared, in words.
    Closed(String),
}

/// An edge of the measured window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// Its beginning.
    Begin,
    /// Its end.
    End,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq)]
pub enum Order {
    /// Tell agents something, in their order: a host's are told in one line.
    Tell(Vec<(usize, Command)>),
    /// Start the server and the link, if there are any; answered by
    /// [`Leader::deployed`].
    Deploy,
    /// All agents are ready; answered by [`Leader::begin`].
    Begin,
    /// Look at what the machine has done so far.
    Look {
        /// Which look it is.
        edge: Edge,
        /// When it was due, ns.
        at_ns: Ns,
    },
    /// All is sent, and what is on its way is waited for.
    Draining,
    /// The agents of this side have been told that their clients are killed.
    Killed(Target),
    /// The drain is over.
    Drained,
    /// The load has gone on.
    Figures(Figures),
}

/// The instants of a run, on the coordinator's clock, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// The start of the schedule.
    pub start_ns: Ns,
    /// The beginning of the window.
    pub from_ns: Ns,
    /// Its end; none where a count ends it.
    pub to_ns: Option<Ns>,
}

/// In their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    Meeting,
    Deploying,
    /// The agents of this wave bind, or connect and subscribe.
    Preparing(u8),
    /// All have, and some have not heard everybody yet.
    Hearing,
    Beginning,
    WarmUp,
    Window,
    Sending,
    Draining,
    Stopping,
    Over,
}

/// Who leads the agents of one run.
pub struct Leader<'a> {
    brief: Brief<'a>,
    agents: Vec<AgentPlan>,
    phase: Phase,
    /// When the phase is over, or has failed.
    deadline_ns: Option<Ns>,
    orders: VecDeque<Order>,
    live: Live,
    /// Of whom what the phase waits for is still missing.
    awaited: Roll,
    unready: Roll,
    hellos: Vec<Option<AgentHello>>,
    /// Whether one of them cannot take out of latencies what clocks differ by.
    leaves_offsets: bool,
    /// Whether one of them knows of no checksum in the header of messages.
    leaves_headers: bool,
    reached: Option<Vec<Reached>>,
    bound: BoundEndpoints,
    /// Until when all have to be ready, ns.
    ready_by_ns: Ns,
    /// When the first clients were told to open, and when all had heard whom
    /// they should hear, ns.
    met_ns: (Option<Ns>, Option<Ns>),
    times: Times,
    /// Whose clients are still to be killed, and when, ns from the window's beginning.
    kills: VecDeque<(Ns, Target)>,
    totals: Vec<PublisherTotal>,
    /// By agent: when it said what its publishers sent, ns.
    totalled_ns: Vec<Option<Ns>>,
    /// By agent: when its clients were to be killed, if they were, ns.
    killed_ns: Vec<Option<Ns>>,
    /// What had been sent when a count was last seen to go on.
    sent: u64,
    /// By agent: when it was last heard, ns.
    heard_ns: Vec<Option<Ns>>,
    results: Vec<Option<AgentResult>>,
    failed: Option<Refusal>,
}

impl<'a> Leader<'a> {
    /// Leads these agents, which have been started.
    pub fn new(brief: Brief<'a>, agents: Vec<AgentPlan>, now: Ns) -> Leader<'a> {
        let count = agents.len();
        let kills = brief.cell.faults.killed_sides().collect();
        let mut leader = Leader {
            brief,
            agents,
            phase: Phase::Meeting,
            deadline_ns: None,
            orders: VecDeque::new(),
            live: Live::new(count),
            awaited: Roll::default(),
            unready: Roll::of_all(count),
            hellos: vec![None; count],
            leaves_offsets: false,
            leaves_headers: false,
            reached: None,
            bound: BoundEndpoints::default(),
            ready_by_ns: 0,
            met_ns: (None, None),
            times: Times { start_ns: 0, from_ns: 0, to_ns: None },
            kills,
            totals: Vec::new(),
            totalled_ns: vec![None; count],
            killed_ns: vec![None; count],
            sent: 0,
            heard_ns: vec![None; count],
            results: vec![None; count],
            failed: None,
        };
        let patience = leader.brief.system.agent.start_timeout_ns;
        leader.ask_all(Phase::Meeting, &Command::Hello { protocol: VERSION }, now + patience);
        leader
    }

    /// What is to be done next, until there is nothing more.
    pub fn poll(&mut self) -> Option<Order> {
        self.orders.pop_front()
    }

    /// When it has to be told the time, at the latest; none where it waits for
    /// an answer to an order.
    pub fn deadline_ns(&self) -> Option<Ns> {
        self.deadline_ns.into_iter().chain(self.next_kill().map(|(at_ns, _)| at_ns)).min()
    }

    /// Whose clients are killed next, and when.
    fn next_kill(&self) -> Option<(Ns, Target)> {
        let (after_ns, side) = *self.kills.front().filter(|_| self.measures())?;
        Some((self.times.from_ns + after_ns, side))
    }

    /// Whether the window is open.
    pub fn measures(&self) -> bool {
        self.phase == Phase::Window
    }

    /// Whether all clients were ready, and the schedule has a start.
    pub fn has_begun(&self) -> bool {
        self.times.start_ns > 0
    }

    /// What the agents play.
    pub fn agents(&self) -> &[AgentPlan] {
        &self.agents
    }

    /// From when the first clients were told to open until all had heard whom
    /// they should hear, ns. None as long as they have not, with a server, whose
    /// clients connect at a rate, and in virtual time.
    pub fn discovery_ns(&self) -> Option<Ns> {
        let (opened, heard) = self.met_ns;
        let untold = self.reached.is_some() || self.brief.timeless();
        opened.zip(heard).filter(|_| !untold).map(|(opened, heard)| heard.saturating_sub(opened))
    }

    /// What became of it, when it is over: what the agents measured, or why
    /// they did not.
    pub fn outcome(&mut self) -> Option<Result<Vec<AgentReport>, Refusal>> {
        if let Some(refusal) = self.failed.take() {
            return Some(Err(refusal));
        }
        if self.phase != Phase::Over {
            return None;
        }
        let said = self.hellos.iter_mut().zip(&mut self.results);
        let played = self.agents.iter().zip(&self.brief.seats).zip(said);
        let report =
            |((plan, seat), (hello, result)): ((&AgentPlan, &Seat), (&mut Option<AgentHello>, &mut Option<_>))| {
                let (name, host) = (plan.name.clone(), seat.host.clone());
                let identity = identity(hello.as_ref()?);
                Some(AgentReport { name, host, identity, roles: plan.roles(), result: result.take()? })
            };
        Some(Ok(played.filter_map(report).collect()))
    }

    /// The server stands, if there is one, and this is how each agent reaches it.
    pub fn deployed(&mut self, reached: Option<Vec<Reached>>, now: Ns) {
        if self.phase == Phase::Deploying {
            self.ready_by_ns = now.saturating_add(patience(&self.brief.cell.workload, reached.is_some()));
            self.reached = reached;
            self.met_ns.0 = Some(now);
            self.prepare(0, now);
        }
    }

    /// The schedule may start. When it does so.
    pub fn begin(&mut self, now: Ns) -> Times {
        let workload = &self.brief.cell.workload;
        let start_ns = now + seat::lead_ns(&self.brief.seats);
        let from_ns = start_ns.saturating_add(workload.warmup_ns);
        let to_ns = workload.window_ns().map(|window_ns| from_ns.saturating_add(window_ns));
        self.times = Times { start_ns, from_ns, to_ns };
        self.live.start(start_ns);
        self.tell_all(&Command::Start { at_ns: start_ns });
        if self.brief.timeless() {
            self.times.from_ns = start_ns;
            self.send_by(start_ns);
        } else {
            (self.phase, self.deadline_ns) = (Phase::WarmUp, Some(from_ns));
        }
        self.times
    }

    /// An agent has said something.
    pub fn handle(&mut self, from: usize, said: Said, now: Ns) {
        if matches!(self.phase, Phase::Over) || self.failed.is_some() {
            return;
        }
        self.heard_ns[from] = Some(now);
        let name = || self.agents[from].name.clone();
        let heard = match said {
            Said::Closed(end) => Err(Refusal::Ended { agent: name(), end }),
            Said::Garbage(line) => Err(Refusal::Garbage { agent: name(), line }),
            Said::Event(Event::Error { message, fatal }) => {
                let greeted = self.phase > Phase::Meeting || !self.awaited.is_missing(from);
                Err(Refusal::of_error(name(), message, (greeted, fatal)))
            }
            // Nothing is sent before the start.
            Said::Event(event @ Event::Progress(_)) if self.phase < Phase::WarmUp => {
                Err(self.out_of_turn(from, &event))
            }
            Said::Event(Event::Progress(progress)) => {
                self.orders.extend(self.live.hear(from, progress, now).map(Order::Figures));
                self.go_on(now);
                Ok(())
            }
            Said::Event(event) => self.hear(from, event, now),
        };
        if let Err(refusal) = heard {
            self.refuse(refusal);
        }
    }

    /// It is this late.
    pub fn tick(&mut self, now: Ns) {
        while let Some((at_ns, side)) = self.next_kill().filter(|(at_ns, _)| *at_ns <= now) {
            self.kills.pop_front();
            self.kill(side, at_ns);
        }
        if self.failed.is_some() || self.deadline_ns.is_none_or(|deadline| now < deadline) {
            return;
        }
        match (self.phase, self.times.to_ns) {
            (Phase::WarmUp, Some(to_ns)) => {
                self.look(Edge::Begin, self.times.from_ns);
                (self.phase, self.deadline_ns) = (Phase::Window, Some(to_ns));
            }
            (Phase::WarmUp, None) => {
                self.look(Edge::Begin, self.times.from_ns);
                self.send_by(self.times.from_ns);
                self.all_sent(now);
            }
            (Phase::Window, to_ns) => {
                let to_ns = to_ns.unwrap_or(now);
                self.look(Edge::End, to_ns);
                self.send_by(to_ns);
                self.all_sent(now);
            }
            _ => self.refuse(self.too_late(self.deadline_ns.unwrap_or(now), now)),
        }
    }

    /// The clients of this side are killed: its agents keep the books, and the
    /// window goes on to its planned end.
    fn kill(&mut self, side: Target, at_ns: Ns) {
        let agents: Vec<usize> = (0..self.agents.len()).filter(|index| self.agents[*index].is_of(side)).collect();
        agents.iter().for_each(|index| self.killed_ns[*index] = Some(at_ns));
        self.orders.push_back(Order::Tell(agents.into_iter().map(|index| (index, Command::Crash {})).collect()));
        self.orders.push_back(Order::Killed(side));
    }

    /// What the agents are to do in this phase, in words.
    fn wanted(&self) -> &'static str {
        match self.phase {
            Phase::Meeting => "say hello",
            Phase::Preparing(_) if self.reached.is_some() => "connect and subscribe",
            Phase::Preparing(_) => "bind",
            Phase::Hearing => "connect and hear each other",
            Phase::Sending => "finish sending",
            Phase::Draining => "drain",
            _ => "hand in its result",
        }
    }

    fn hear(&mut self, from: usize, event: Event, now: Ns) -> Result<(), Refusal> {
        match (self.phase, event) {
            (Phase::Meeting, Event::Hello(hello)) if self.awaited.is_missing(from) => {
                let Brief { system, cell, .. } = &self.brief;
                fits(&hello, Some(&system.driver), &[&cell.workload], now).map_err(Refusal::Misfit)?;
                let asked = system.asks_of_clients(&cell.options, &cell.set_options);
                hello.knows_options(&system.driver, asked).map_err(|unknown| Refusal::Misfit(unknown.into()))?;
                if self.kills.iter().any(|(_, side)| self.agents[from].is_of(*side)) {
                    can_crash(&hello).map_err(Refusal::Misfit)?;
                }
                self.leaves_offsets |= !hello.features.clock_offset;
                self.leaves_headers |= !hello.features.header_checksum;
                self.hellos[from] = Some(*hello);
                if self.awaited.cross_off(from) {
                    (self.phase, self.deadline_ns) = (Phase::Deploying, None);
                    self.orders.push_back(Order::Deploy);
                }
            }
            (Phase::Preparing(wave), Event::Bound { endpoints }) if self.awaited.is_missing(from) => {
                self.bound.extend(endpoints);
                if self.awaited.cross_off(from) {
                    self.prepare(wave + 1, now);
                }
            }
            // Only who is bound can be ready, and only once.
            (Phase::Preparing(wave), Event::Ready {})
                if self.unready.is_missing(from)
                    && !self.awaited.is_missing(from)
                    && self.agents[from].wave <= wave =>
            {
                self.unready.cross_off(from);
            }
            (Phase::Hearing, Event::Ready {}) if self.unready.is_missing(from) => {
                self.unready.cross_off(from);
                self.all_ready(now);
            }
            (Phase::WarmUp | Phase::Window | Phase::Sending, Event::Sent { publishers }) => {
                self.sent(from, publishers, now)?;
                self.all_sent(now);
            }
            (Phase::Draining, Event::Drained {}) if self.awaited.is_missing(from) => {
                if self.awaited.cross_off(from) {
                    self.orders.push_back(Order::Drained);
                    let workload = &self.brief.cell.workload;
                    let clients = Ns::from(workload.publishers) + Ns::from(workload.subscribers);
                    self.ask_all(Phase::Stopping, &Command::Stop {}, now + ANSWER + clients * LEAVE);
                }
            }
            (Phase::Stopping, Event::Result(result)) if self.awaited.is_missing(from) => {
                self.check_result(from, &result, now)?;
                self.results[from] = Some(*result);
                if self.awaited.cross_off(from) {
                    (self.phase, self.deadline_ns) = (Phase::Over, None);
                }
            }
            (_, event) => return Err(self.out_of_turn(from, &event)),
        }
        Ok(())
    }

    /// Prepares the agents of this wave, or of the next that has any; where
    /// there is none, all are prepared.
    fn prepare(&mut self, wave: u8, now: Ns) {
        let Some(wave) = self.agents.iter().map(|agent| agent.wave).filter(|of| *of >= wave).min() else {
            (self.phase, self.deadline_ns) = (Phase::Hearing, Some(self.ready_by_ns));
            return self.all_ready(now);
        };
        (self.phase, self.deadline_ns) = (Phase::Preparing(wave), Some(self.ready_by_ns));
        self.awaited = Roll::of(self.agents.iter().map(|agent| agent.wave == wave).collect());
        let members = self.awaited.left() as u32;
        let mut told = Vec::new();
        for index in self.awaited.missing().collect::<Vec<_>>() {
            if self.reached.is_none()
                && let Err(refusal) = connect(&mut self.agents[index], &self.bound)
            {
                return self.refuse(refusal);
            }
            told.push((index, Command::Prepare(Box::new(self.prepared(index, members)))));
        }
        self.orders.push_back(Order::Tell(told));
    }

    /// Whether all agents can take out of latencies what their clocks differ by.
    pub fn takes_out_offsets(&self) -> bool {
        !self.leaves_offsets
    }

    /// What an agent is to play, one of so many that connect at once.
    fn prepared(&self, index: usize, members: u32) -> Prepare {
        let Brief { cell, system, place, .. } = &self.brief;
        let (workload, agent) = (&cell.workload, &self.agents[index]);
        let seat = &self.brief.seats[index];
        let pinned = pinning(workload, &seat.cpus, &seat.isolated);
        Prepare {
            driver: system.driver.clone(),
            options: self.hellos[index]
                .as_ref()
                .map_or_else(|| cell.options.clone(), |hello| hello.options_for(&system.driver, &cell.options)),
            flows: vec![Flow::alone(Workload {
                header_checksum: workload.wants_header_checksum() && !self.leaves_headers,
                ..workload.of_repeat(place.repeat)
            })],
            clients: agent.clients.clone(),
            spin_cores: pacing::spin_cores(workload, seat.cpus.len(), agent.senders()),
            scratch: seat.scratch.clone(),
            clock_offset_ns: if self.takes_out_offsets() { seat.ahead_ns } else { 0 },
            server: self.reached.as_ref().map(|reached| ServerAddress {
                endpoint: reached[index].endpoint.clone(),
                run: self.brief.run.clone(),
                sources: reached[index].sources.clone(),
                connect_per_s: (workload.connect_rate / members).max(1),
            }),
            publisher_cpus: pinned.0,
            subscriber_cpus: pinned.1,
        }
    }

    fn all_ready(&mut self, now: Ns) {
        if self.unready.is_complete() {
            self.met_ns.1 = Some(now);
            (self.phase, self.deadline_ns) = (Phase::Beginning, None);
            self.orders.push_back(Order::Begin);
        }
    }

    fn sent(&mut self, from: usize, publishers: Vec<PublisherTotal>, now: Ns) -> Result<(), Refusal> {
        self.check(from, &publishers)?;
        // Agents have no publishers in common: who has said one has said all.
        if publishers.is_empty() {
            return Ok(());
        }
        if self.totalled_ns[from].replace(now).is_some() {
            return Err(self.out_of_turn(from, &Event::Sent { publishers }));
        }
        self.totals.extend(publishers);
        Ok(())
    }

    /// All has to be sent when the drain that begins now would be over.
    fn send_by(&mut self, end_ns: Ns) {
        let drained_ns = end_ns.saturating_add(self.brief.cell.workload.drain_ns);
        (self.phase, self.deadline_ns) = (Phase::Sending, Some(drained_ns.saturating_add(ANSWER)));
    }

    /// A run whose end is a count goes on for as long as anything is sent.
    fn go_on(&mut self, now: Ns) {
        let sent = self.live.sent();
        if self.phase == Phase::Sending && self.times.to_ns.is_none() && sent > self.sent {
            (self.sent, self.deadline_ns) = (sent, Some(now + STANDSTILL));
        }
    }

    /// The drain begins, once all publishers have said what they sent.
    fn all_sent(&mut self, now: Ns) {
        let workload: &Workload = &self.brief.cell.workload;
        if self.phase != Phase::Sending || (self.totals.len() as u64) < u64::from(workload.publishers) {
            return;
        }
        let (drain_ns, timeless) = (workload.drain_ns, self.brief.timeless());
        if self.times.to_ns.is_none() && !timeless {
            self.look(Edge::End, now);
        }
        self.orders.push_back(Order::Draining);
        self.totals.sort_unstable_by_key(|total| total.publisher);
        let deadline_ns = now.saturating_add(drain_ns);
        self.await_all(Phase::Draining, deadline_ns.saturating_add(ANSWER));
        let drain = |agent: &AgentPlan| Command::Drain { publishers: agent.concerns(&self.totals), deadline_ns };
        self.orders.push_back(Order::Tell(self.agents.iter().map(drain).enumerate().collect()));
    }

    fn look(&mut self, edge: Edge, at_ns: Ns) {
        self.orders.push_back(Order::Look { edge, at_ns });
    }

    /// Tells all agents something, and waits for each to answer.
    fn ask_all(&mut self, phase: Phase, command: &Command, deadline_ns: Ns) {
        self.await_all(phase, deadline_ns);
        self.tell_all(command);
    }

    fn await_all(&mut self, phase: Phase, deadline_ns: Ns) {
        (self.phase, self.deadline_ns) = (phase, Some(deadline_ns));
        self.awaited = Roll::of_all(self.agents.len());
    }

    fn tell_all(&mut self, command: &Command) {
        self.orders.push_back(Order::Tell((0..self.agents.len()).map(|index| (index, command.clone())).collect()));
    }

    fn out_of_turn(&self, from: usize, event: &Event) -> Refusal {
        let said = self.brief.secrets.hide(&String::from_utf8_lossy(&event.to_json().unwrap_or_default()));
        Refusal::OutOfTurn { agent: self.agents[from].name.clone(), said: said.chars().take(200).collect() }
    }

    /// The run is lost: nothing more is ordered.
    fn refuse(&mut self, refusal: Refusal) {
        (self.phase, self.deadline_ns) = (Phase::Over, None);
        self.orders.clear();
        self.failed.get_or_insert(refusal);
    }
}

#[cfg(test)]
mod tests;
