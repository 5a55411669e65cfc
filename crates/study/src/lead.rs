//! State machine that leads the agents of a run. Agents' messages and the time go in, orders and a deadline come out.
//! It has no process, clock or file, so that tests can play agents with every kind of fault in virtual time.

pub mod assignment;
mod checks;
pub mod hello;
mod location;
mod pacing;
mod pending;
mod refusal;
mod timeout;

use crate::live::{Figures, LatestReports};
use assignment::{AgentPlan, BoundEndpoints, connect, patience, pinning};
use hello::{can_strike, fits, identity};
pub use location::{AgentResources, Reached};
use pending::MissingAgents;
use pubmark_judge::assemble::AgentReport;
use pubmark_model::cell::Cell;
use pubmark_model::fault::Fault;
use pubmark_model::line::JsonLine;
use pubmark_model::plan::Place;
use pubmark_model::profile::trace::trace_file;
use pubmark_model::protocol::{
    AgentHello, AgentResult, Command, ConnectionEnd, Event, Flow, Prepare, PublisherTotal, ServerAddress, VERSION,
};
use pubmark_model::secret::Secrets;
use pubmark_model::system::System;
use pubmark_model::units::{MILLISECOND, Ns, SECOND};
use pubmark_model::workload::Workload;
pub use refusal::Refusal;
use std::collections::VecDeque;

/// Time limit for an agent's result.
pub const ANSWER: Ns = 10 * SECOND;
/// Time for each client to disconnect from a server.
const LEAVE: Ns = MILLISECOND;
/// Time that a run that ends by count may go without sending anything.
const STANDSTILL: Ns = 30 * SECOND;

/// The run to be played.
pub struct Brief<'a> {
    /// Cell of the run.
    pub cell: &'a Cell,
    /// System of the cell.
    pub system: &'a System,
    /// Repeat and position of the run.
    pub place: Place,
    /// Unique name of the run.
    pub run: String,
    /// By agent: its location.
    pub seats: Vec<AgentResources>,
    /// Secrets that no message may contain.
    pub secrets: Secrets,
    /// Multiple of the usual time from the command to start until the start.
    pub lead_factor: Ns,
}

impl Brief<'_> {
    /// Returns whether the run is in virtual time: then it waits for nothing.
    fn timeless(&self) -> bool {
        self.system.driver == "mock"
    }
}

/// Input from an agent.
#[derive(Clone, Debug)]
pub enum AgentInput {
    /// An event of the protocol.
    Event(Event),
    /// A line that is not an event, and why.
    Garbage(String),
    /// Its output has ended; the text says how the agent ended.
    Closed(String),
}

/// An edge of the measured window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// Start of the window.
    Begin,
    /// End of the window.
    End,
}

/// Action that the caller must carry out.
#[derive(Clone, Debug, PartialEq)]
pub enum Order {
    /// Send commands to agents, in this order: agents of one host get theirs in one line.
    Tell(Vec<(usize, Command)>),
    /// Start the server and the link, if there are any, then call [`Leader::deployed`].
    Deploy,
    /// All agents are ready; call [`Leader::begin`].
    Begin,
    /// Take a snapshot of the machine's usage.
    Look {
        /// Edge of the window that it belongs to.
        edge: Edge,
        /// Due time of the snapshot, ns.
        at_ns: Ns,
    },
    /// All messages are sent; the drain begins.
    Draining,
    /// The agents have received the order to carry out the fault at this place in the script on their clients.
    Struck(usize),
    /// The drain is over.
    Drained,
    /// New figures of the load.
    Figures(Figures),
}

/// Instants of a run on the coordinator's clock, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// Start of the schedule.
    pub start_ns: Ns,
    /// Start of the window.
    pub from_ns: Ns,
    /// End of the window; `None` if a count ends it.
    pub to_ns: Option<Ns>,
}

/// Phases of a run, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    Meeting,
    Deploying,
    /// The agents of this wave bind, or connect and subscribe.
    Preparing(u8),
    /// All agents have done so, and some clients do not receive from all publishers yet.
    Hearing,
    Beginning,
    WarmUp,
    Window,
    Sending,
    Draining,
    Stopping,
    Over,
}

/// The coordinator's state machine for the agents of one run.
pub struct Leader<'a> {
    brief: Brief<'a>,
    agents: Vec<AgentPlan>,
    phase: Phase,
    /// Instant at which the phase is over, or has failed.
    deadline_ns: Option<Ns>,
    orders: VecDeque<Order>,
    live: LatestReports,
    /// Agents that the phase still waits for.
    awaited: MissingAgents,
    unready: MissingAgents,
    hellos: Vec<Option<AgentHello>>,
    /// True if an agent cannot subtract clock offsets from latencies.
    leaves_offsets: bool,
    /// True if an agent does not support the checksum in the message header.
    leaves_headers: bool,
    /// True if an agent's repliers do not write their times into answers.
    leaves_reply_times: bool,
    reached: Option<Vec<Reached>>,
    flows: Vec<Flow>,
    /// By flow.
    bound: Vec<BoundEndpoints>,
    /// Instant by which all agents must be ready, ns.
    ready_by_ns: Ns,
    /// Instants at which the first clients were ordered to open, and at which every subscriber had received from all
    /// its publishers, ns.
    met_ns: (Option<Ns>, Option<Ns>),
    times: Times,
    /// Faults that agents carry out on their clients and that are still to come, with their places in the script.
    strikes: VecDeque<(usize, Fault)>,
    /// By flow.
    totals: Vec<Vec<PublisherTotal>>,
    /// By flow: connections of publishers that ended without a goodbye, if they have last wills.
    ends: Vec<Vec<ConnectionEnd>>,
    /// By agent: instant of its report of what its publishers sent, ns.
    totalled_ns: Vec<Option<Ns>>,
    /// By agent: instant at which its clients were to be killed, if any, ns.
    killed_ns: Vec<Option<Ns>>,
    /// Number of messages sent when a run that ends by count last made progress.
    sent: u64,
    /// By agent: instant of its last message, ns.
    heard_ns: Vec<Option<Ns>>,
    results: Vec<Option<AgentResult>>,
    failed: Option<Refusal>,
}

/// Returns the name that topics and clients of a flow begin with: that of the run, and a letter if it has several
/// flows.
pub fn run_of_flow(run: &str, flow: usize, flows: usize) -> String {
    match char::from_digit(flow as u32 + 10, 36) {
        Some(letter) if flows > 1 => format!("{run}{letter}"),
        _ => run.to_owned(),
    }
}

impl<'a> Leader<'a> {
    /// Leads these agents, which have been started.
    pub fn new(brief: Brief<'a>, agents: Vec<AgentPlan>, now: Ns) -> Leader<'a> {
        let count = agents.len();
        let faults = brief.cell.faults.0.iter().cloned().enumerate();
        let strikes = faults.filter(|(_, fault)| fault.is_of_agents()).collect();
        let flows = brief.cell.flows();
        let mut leader = Leader {
            brief,
            agents,
            phase: Phase::Meeting,
            deadline_ns: None,
            orders: VecDeque::new(),
            live: LatestReports::new(count),
            awaited: MissingAgents::default(),
            unready: MissingAgents::of_all(count),
            hellos: vec![None; count],
            leaves_offsets: false,
            leaves_headers: false,
            leaves_reply_times: false,
            reached: None,
            bound: flows.iter().map(|_| BoundEndpoints::default()).collect(),
            ready_by_ns: 0,
            met_ns: (None, None),
            times: Times { start_ns: 0, from_ns: 0, to_ns: None },
            strikes,
            totals: vec![Vec::new(); flows.len()],
            ends: vec![Vec::new(); flows.len()],
            flows,
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

    /// Returns the next order, or `None` if there is none at present.
    pub fn poll(&mut self) -> Option<Order> {
        self.orders.pop_front()
    }

    /// Returns the latest instant at which [`Leader::tick`] must be called; `None` while the outcome of an order is
    /// awaited.
    pub fn deadline_ns(&self) -> Option<Ns> {
        self.deadline_ns.into_iter().chain(self.next_strike_ns()).min()
    }

    /// Returns the instant of the next fault that agents carry out.
    fn next_strike_ns(&self) -> Option<Ns> {
        let (_, fault) = self.strikes.front().filter(|_| self.measures())?;
        Some(self.times.from_ns + fault.at_ns)
    }

    /// Returns whether the window is open.
    pub fn measures(&self) -> bool {
        self.phase == Phase::Window
    }

    /// Returns whether all clients were ready, and the schedule has a start.
    pub fn has_begun(&self) -> bool {
        self.times.start_ns > 0
    }

    /// Returns the agents and their roles.
    pub fn agents(&self) -> &[AgentPlan] {
        &self.agents
    }

    /// Returns the time from the first order to open until every subscriber had received from all its publishers, ns.
    /// `None` before that, with a server, whose clients connect at a rate, and in virtual time.
    pub fn discovery_ns(&self) -> Option<Ns> {
        let (opened, heard) = self.met_ns;
        let untold = self.reached.is_some() || self.brief.timeless();
        opened.zip(heard).filter(|_| !untold).map(|(opened, heard)| heard.saturating_sub(opened))
    }

    /// Returns the outcome once the run is over: the agents' results, or why there are none.
    pub fn outcome(&mut self) -> Option<Result<Vec<AgentReport>, Refusal>> {
        if let Some(refusal) = self.failed.take() {
            return Some(Err(refusal));
        }
        if self.phase != Phase::Over {
            return None;
        }
        let said = self.hellos.iter_mut().zip(&mut self.results);
        let played = self.agents.iter().zip(&self.brief.seats).zip(said);
        let report = |((plan, seat), (hello, result)): (
            (&AgentPlan, &AgentResources),
            (&mut Option<AgentHello>, &mut Option<_>),
        )| {
            let (name, host) = (plan.name.clone(), seat.host.clone());
            let identity = identity(hello.as_ref()?);
            Some(AgentReport { name, host, flow: plan.flow, identity, roles: plan.roles(), result: result.take()? })
        };
        Some(Ok(played.filter_map(report).collect()))
    }

    /// Notes that the server, if there is one, is ready, and how each agent reaches it.
    pub fn deployed(&mut self, reached: Option<Vec<Reached>>, now: Ns) {
        if self.phase == Phase::Deploying {
            self.ready_by_ns = now.saturating_add(patience(&self.brief.cell.workload, reached.is_some()));
            self.reached = reached;
            self.met_ns.0 = Some(now);
            self.prepare(0, now);
        }
    }

    /// Starts the schedule. Returns its instants.
    pub fn begin(&mut self, now: Ns) -> Times {
        let workload = &self.brief.cell.workload;
        let start_ns = now + location::lead_ns(&self.brief.seats) * self.brief.lead_factor;
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

    /// Handles input from an agent.
    pub fn handle(&mut self, from: usize, said: AgentInput, now: Ns) {
        if matches!(self.phase, Phase::Over) || self.failed.is_some() {
            return;
        }
        self.heard_ns[from] = Some(now);
        let name = || self.agents[from].name.clone();
        let heard = match said {
            AgentInput::Closed(end) => Err(Refusal::Ended { agent: name(), end }),
            AgentInput::Garbage(line) => Err(Refusal::Garbage { agent: name(), line }),
            AgentInput::Event(Event::Error { message, too_late: true, .. }) if self.phase >= Phase::WarmUp => {
                Err(Refusal::TooLate { agent: name(), message })
            }
            AgentInput::Event(Event::Error { message, fatal, .. }) => {
                let greeted = self.phase > Phase::Meeting || !self.awaited.is_missing(from);
                Err(Refusal::of_error(name(), message, (greeted, fatal)))
            }
            // Nothing is sent before the start.
            AgentInput::Event(event @ Event::Progress(_)) if self.phase < Phase::WarmUp => {
                Err(self.out_of_turn(from, &event))
            }
            AgentInput::Event(Event::Progress(progress)) => {
                self.orders.extend(self.live.hear(from, progress, now).map(Order::Figures));
                self.go_on(now);
                Ok(())
            }
            AgentInput::Event(event) => self.hear(from, event, now),
        };
        if let Err(refusal) = heard {
            self.refuse(refusal);
        }
    }

    /// Handles the passing of time.
    pub fn tick(&mut self, now: Ns) {
        while let Some(at_ns) = self.next_strike_ns().filter(|at_ns| *at_ns <= now)
            && let Some((place, fault)) = self.strikes.pop_front()
        {
            self.strike(place, &fault, at_ns);
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

    /// Lets agents carry out a fault on their clients: they keep counting, and the window goes on to its planned end.
    fn strike(&mut self, place: usize, fault: &Fault, at_ns: Ns) {
        let agents: Vec<usize> = (0..self.agents.len()).filter(|index| self.agents[*index].is_of(fault.who)).collect();
        let command = match fault.cut_percent() {
            Some(percent) => Command::Cut { percent },
            None => {
                agents.iter().for_each(|index| self.killed_ns[*index] = Some(at_ns));
                Command::Crash {}
            }
        };
        self.orders.push_back(Order::Tell(agents.into_iter().map(|index| (index, command.clone())).collect()));
        self.orders.push_back(Order::Struck(place));
    }

    /// Describes what the agents must do in this phase, for errors.
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
                let workload = &self.flows[self.agents[from].flow].workload;
                fits(&hello, Some(&system.driver), &[workload], now).map_err(Refusal::Misfit)?;
                let asked = system.asks_of_clients(&cell.options, &cell.set_options);
                hello.knows_options(&system.driver, asked).map_err(|unknown| Refusal::Misfit(unknown.into()))?;
                let own = self.strikes.iter().filter(|(_, fault)| self.agents[from].is_of(fault.who));
                for (_, fault) in own {
                    can_strike(&hello, fault).map_err(Refusal::Misfit)?;
                }
                self.leaves_offsets |= !hello.features.clock_offset;
                self.leaves_headers |= !hello.features.header_checksum;
                self.leaves_reply_times |= !hello.features.reply_times;
                self.hellos[from] = Some(*hello);
                if self.awaited.cross_off(from) {
                    (self.phase, self.deadline_ns) = (Phase::Deploying, None);
                    self.orders.push_back(Order::Deploy);
                }
            }
            (Phase::Preparing(wave), Event::Bound { endpoints }) if self.awaited.is_missing(from) => {
                self.bound[self.agents[from].flow].extend(endpoints);
                if self.awaited.cross_off(from) {
                    self.prepare(wave + 1, now);
                }
            }
            // Only an agent that has bound can be ready, and only once.
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
            (Phase::WarmUp | Phase::Window | Phase::Sending, Event::Sent { publishers, ends }) => {
                self.sent(from, publishers, ends, now)?;
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

    /// Prepares the agents of this wave, or of the next that has any; if there is none, all are prepared.
    fn prepare(&mut self, wave: u8, now: Ns) {
        let Some(wave) = self.agents.iter().map(|agent| agent.wave).filter(|of| *of >= wave).min() else {
            (self.phase, self.deadline_ns) = (Phase::Hearing, Some(self.ready_by_ns));
            return self.all_ready(now);
        };
        (self.phase, self.deadline_ns) = (Phase::Preparing(wave), Some(self.ready_by_ns));
        self.awaited = MissingAgents::of(self.agents.iter().map(|agent| agent.wave == wave).collect());
        let members = self.awaited.left() as u32;
        let mut told = Vec::new();
        for index in self.awaited.missing().collect::<Vec<_>>() {
            let agent = &mut self.agents[index];
            if self.reached.is_none()
                && let Err(refusal) = connect(agent, &self.bound[agent.flow])
            {
                return self.refuse(refusal);
            }
            told.push((index, Command::Prepare(Box::new(self.prepared(index, members)))));
        }
        self.orders.push_back(Order::Tell(told));
    }

    /// Returns whether all agents can subtract clock offsets from latencies.
    pub fn takes_out_offsets(&self) -> bool {
        !self.leaves_offsets
    }

    /// Returns whether repliers of a flow can write their times into answers, on the requesters' clock.
    fn has_reply_times(&self, flow: usize) -> bool {
        let agents = self.agents.iter().zip(&self.brief.seats).filter(|(agent, _)| agent.flow == flow);
        let mut hosts = agents.map(|(_, seat)| &seat.host);
        let first = hosts.next();
        let is_one_host = hosts.all(|host| Some(host) == first);
        is_one_host && !self.leaves_reply_times && !self.brief.timeless()
    }

    /// Returns the command that prepares an agent; `members` agents connect at once.
    fn prepared(&self, index: usize, members: u32) -> Prepare {
        let Brief { cell, system, place, .. } = &self.brief;
        let agent = &self.agents[index];
        let Flow { name, workload } = &self.flows[agent.flow];
        let seat = &self.brief.seats[index];
        let pinned = pinning(workload, &seat.cpus, &seat.isolated);
        let hello = self.hellos[index].as_ref();
        let own = hello.map(|hello| hello.options_for(&system.driver, &cell.options));
        let mut options = own.unwrap_or_else(|| cell.options.clone());
        if self.brief.timeless() {
            options.extend(cell.stall_in_virtual_time());
        }
        options.extend(self.reached.iter().filter_map(|reached| reached[index].trust()));
        Prepare {
            driver: system.driver.clone(),
            options,
            flows: vec![Flow {
                name: name.clone(),
                workload: Workload {
                    header_checksum: workload.wants_header_checksum() && !self.leaves_headers,
                    reply_times: workload.wants_reply_times() && self.has_reply_times(agent.flow),
                    ..workload.of_repeat(place.repeat).with_trace_file(&trace_file(&seat.scratch, agent.flow))
                },
            }],
            clients: agent.clients.clone(),
            spin_cores: pacing::spin_cores(workload, seat.cpus.len(), agent.senders()),
            scratch: seat.scratch.clone(),
            clock_offset_ns: if self.takes_out_offsets() { seat.ahead_ns } else { 0 },
            server: self.reached.as_ref().map(|reached| ServerAddress {
                endpoint: reached[index].endpoint.clone(),
                members: reached[index].members.clone(),
                discovery: reached[index].discovery.clone(),
                run: run_of_flow(&self.brief.run, agent.flow, self.flows.len()),
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

    fn sent(
        &mut self,
        from: usize,
        publishers: Vec<PublisherTotal>,
        ends: Vec<ConnectionEnd>,
        now: Ns,
    ) -> Result<(), Refusal> {
        self.check(from, &publishers)?;
        // Agents have no publishers in common: one report is complete.
        if publishers.is_empty() {
            return Ok(());
        }
        if self.totalled_ns[from].replace(now).is_some() {
            return Err(self.out_of_turn(from, &Event::Sent { publishers, ends }));
        }
        let flow = self.agents[from].flow;
        self.totals[flow].extend(publishers);
        self.ends[flow].extend(ends);
        Ok(())
    }

    /// Sets the deadline for sending: the end of a drain that would begin now.
    fn send_by(&mut self, end_ns: Ns) {
        let drained_ns = end_ns.saturating_add(self.brief.cell.workload.drain_ns);
        (self.phase, self.deadline_ns) = (Phase::Sending, Some(drained_ns.saturating_add(ANSWER)));
    }

    /// Extends the deadline of a run that ends by count as long as it sends anything.
    fn go_on(&mut self, now: Ns) {
        let sent = self.live.sent();
        if self.phase == Phase::Sending && self.times.to_ns.is_none() && sent > self.sent {
            (self.sent, self.deadline_ns) = (sent, Some(now + STANDSTILL));
        }
    }

    /// Begins the drain once all publishers have reported what they sent.
    fn all_sent(&mut self, now: Ns) {
        let workload: &Workload = &self.brief.cell.workload;
        let told = self.totals.iter().map(Vec::len).sum::<usize>() as u64;
        if self.phase != Phase::Sending || told < u64::from(workload.publishers) {
            return;
        }
        let (drain_ns, timeless) = (workload.drain_ns, self.brief.timeless());
        if self.times.to_ns.is_none() && !timeless {
            self.look(Edge::End, now);
        }
        self.orders.push_back(Order::Draining);
        self.totals.iter_mut().for_each(|totals| totals.sort_unstable_by_key(|total| total.publisher));
        self.ends.iter_mut().for_each(|ends| ends.sort_unstable_by_key(|end| (end.publisher, end.connection)));
        let deadline_ns = now.saturating_add(drain_ns);
        self.await_all(Phase::Draining, deadline_ns.saturating_add(ANSWER));
        let drain = |agent: &AgentPlan| Command::Drain {
            publishers: agent.concerns(&self.totals[agent.flow], |total| total.publisher),
            ends: agent.concerns(&self.ends[agent.flow], |end| end.publisher),
            deadline_ns,
        };
        self.orders.push_back(Order::Tell(self.agents.iter().map(drain).enumerate().collect()));
    }

    fn look(&mut self, edge: Edge, at_ns: Ns) {
        self.orders.push_back(Order::Look { edge, at_ns });
    }

    /// Sends a command to all agents, and waits for each to answer.
    fn ask_all(&mut self, phase: Phase, command: &Command, deadline_ns: Ns) {
        self.await_all(phase, deadline_ns);
        self.tell_all(command);
    }

    fn await_all(&mut self, phase: Phase, deadline_ns: Ns) {
        (self.phase, self.deadline_ns) = (phase, Some(deadline_ns));
        self.awaited = MissingAgents::of_all(self.agents.len());
    }

    fn tell_all(&mut self, command: &Command) {
        self.orders.push_back(Order::Tell((0..self.agents.len()).map(|index| (index, command.clone())).collect()));
    }

    fn out_of_turn(&self, from: usize, event: &Event) -> Refusal {
        let said = self.brief.secrets.hide(&String::from_utf8_lossy(&event.to_json().unwrap_or_default()));
        Refusal::OutOfTurn { agent: self.agents[from].name.clone(), said: said.chars().take(200).collect() }
    }

    /// Ends the run with an error: no more orders follow.
    fn refuse(&mut self, refusal: Refusal) {
        (self.phase, self.deadline_ns) = (Phase::Over, None);
        self.orders.clear();
        self.failed.get_or_insert(refusal);
    }
}

#[cfg(test)]
mod tests;
