//! One run: deploy, start agents, prepare, ready, start, drain, result.

mod faults;
pub mod hello;
pub mod live;
mod load;
mod made;
mod pacing;
mod parts;
mod sources;
pub mod usage;

use crate::agent::{Agent, Incoming};
use crate::assemble::{AgentReport, Measured, assemble, window_of_count};
use crate::awake::Awake;
use crate::deploy::Deployed;
use crate::link::Connection;
use crate::machine;
use crate::scratch::Scratch;
use faults::{Faults, Reach};
use live::{Live, News, Phase};
use load::Load;
pub use made::{Made, Standing};
use parts::{Part, connect, layout, parts, patience, pinning};
use pubmark_model::cell::Cell;
use pubmark_model::protocol::{
    AgentResult, BoundEndpoint, Command, Event, Prepare, PublisherTotal, ServerAddress, VERSION,
};
use pubmark_model::record::{AgentIdentity, MachineLoad, UsageSeries};
use pubmark_model::secret::Secrets;
use pubmark_model::system::System;
use pubmark_model::units::{MILLISECOND, Ns, SECOND};
use pubmark_model::workload::Workload;
use sources::run_name;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;
use usage::UsageWatch;

/// How long an agent may take to say hello, or to hand in its result.
const ANSWER: Ns = 10 * SECOND;
/// How long each client may take to take leave of a server.
const LEAVE: Ns = MILLISECOND;
/// From the word `start` to the instant of the start.
const LEAD: Ns = 100 * MILLISECOND;
/// How long a run whose end is a count may go without sending anything.
const STANDSTILL: Ns = 30 * SECOND;
/// How often the wait for an agent looks for an interrupt.
const LOOK: Duration = Duration::from_millis(50);

/// Why there is no record of a run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The user wants to stop.
    #[error("interrupted")]
    Interrupted,
    /// The run could not be made.
    #[error("{0}")]
    Failed(String),
}

/// A run that could not be made, and why.
pub fn failed(text: impl Into<String>) -> RunError {
    RunError::Failed(text.into())
}

/// What a run needs beside its cell.
pub struct Stage<'a> {
    /// How to start an agent.
    pub agent: &'a [String],
    /// Where logs go.
    pub logs: &'a Path,
    /// Whether processors are kept awake while the run is on.
    pub awake: bool,
    /// Set when the user wants to stop.
    pub interrupt: &'a AtomicBool,
    /// Told what is new, on the coordinator's thread: it has to return at once.
    pub news: &'a mut dyn FnMut(News),
}

/// Which run of the study it is.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Repetition, from 1.
    pub repeat: u32,
    /// Place in the order of runs, from 0.
    pub position: u64,
}

/// Makes one run. What it returns still stands, so that its record can be kept
/// first.
pub fn make(cell: &Cell, system: &System, place: Place, stage: &mut Stage<'_>) -> Result<Made, RunError> {
    let started = jiff::Timestamp::now().to_string();
    let scratch = Scratch::planned();
    // Before the folder is made and a server started: from now on there is
    // somebody to remove it, whenever this process is killed.
    let mut play = Play::open(cell, system, place, stage, &scratch)?;
    scratch.make().map_err(|error| failed(format!("no folder for sockets: {error}")))?;
    // Before a server is started for agents that cannot play.
    let met = play.meet(system, stage);
    let deployed = match met.and_then(|()| Deployed::begin(cell, system, place, stage, &scratch)) {
        Ok(deployed) => deployed,
        Err(error) => {
            play.end(&scratch, false);
            return Err(error);
        }
    };
    if let Some(watch) = deployed.look() {
        (stage.news)(News::Server(watch));
    }
    let mut standing = Standing { play, deployed, scratch, failed: false };
    let Standing { play, deployed, scratch, failed: has_failed } = &mut standing;
    let linked = play.link_up(cell, place, stage, scratch, deployed);
    let played = linked.and_then(|()| play.run(cell, system, place, scratch, stage, deployed));
    if let Err(RunError::Failed(_)) = played {
        *has_failed = true;
        Agent::finish_all(&mut play.agents);
    }
    let played = match (played, play.link.as_mut().and_then(|link| link.obituary())) {
        (Err(RunError::Failed(error)), Some(obituary)) => Err(failed(format!("{obituary}; meanwhile: {error}"))),
        // Without its proxy it was another link than the record says.
        (Ok(_), Some(obituary)) => Err(failed(obituary)),
        (played, _) => played,
    };
    match played {
        Ok(mut measured) => {
            measured.server = deployed.report();
            Ok(Made { record: assemble(cell, system, place, started, measured), standing })
        }
        // Why the server went says more than what its clients made of it.
        Err(RunError::Failed(error)) => Err(failed(match deployed.obituary() {
            Some(obituary) => format!("{obituary}; meanwhile: {error}"),
            None => error,
        })),
        Err(interrupted) => Err(interrupted),
    }
}

/// The agents of a run, and what has been heard from them.
struct Play {
    agents: Vec<Agent>,
    parts: Vec<Part>,
    /// Who they say that they are.
    identities: Vec<AgentIdentity>,
    /// What stands between them and the server, if anything does.
    link: Option<Connection>,
    inbox: Receiver<(usize, Incoming)>,
    live: Live,
    /// How late an edge of the window was looked at, at worst.
    late_ns: Ns,
    /// Keeps the processors awake, where that is asked for.
    awake: Option<Awake>,
    /// Watches what agents and server use, until the drain is over.
    usage: Option<UsageWatch>,
    /// What it has seen.
    used: Option<UsageSeries>,
    /// When the drain was over.
    drained_ns: Option<Ns>,
    /// What no message may repeat.
    secrets: Secrets,
}

impl Play {
    /// Puts the cell's link, if it has one, between clients and server.
    fn link_up(
        &mut self,
        cell: &Cell,
        place: Place,
        stage: &mut Stage<'_>,
        scratch: &Scratch,
        deployed: &Deployed,
    ) -> Result<(), RunError> {
        if let (Some(link), Some(server)) = (&cell.link, deployed.endpoint()) {
            self.link = Some(Connection::open(link, server, place, stage, scratch)?);
        }
        Ok(())
    }

    fn open(
        cell: &Cell,
        system: &System,
        place: Place,
        stage: &Stage<'_>,
        scratch: &Scratch,
    ) -> Result<Play, RunError> {
        let (outbox, inbox) = channel();
        let parts = parts(&cell.workload, scratch.path(), layout(cell, system));
        let command = crate::deploy::agent_command(system, stage.agent).map_err(failed)?;
        let secrets = Secrets::of(&cell.options);
        let mut agents = Vec::new();
        for (index, part) in parts.iter().enumerate() {
            let log = stage.logs.join(format!("run-{}-{}.log", place.position, part.name));
            let agent = Agent::start(&command, &part.name, &log, scratch.path(), &secrets, index, outbox.clone());
            agents.push(
                agent
                    .map_err(|error| failed(format!("agent `{}` could not be started: {error}", command.join(" "))))?,
            );
        }
        let live = Live::new(agents.len());
        Ok(Play {
            agents,
            parts,
            identities: Vec::new(),
            link: None,
            inbox,
            live,
            late_ns: 0,
            awake: None,
            usage: None,
            used: None,
            drained_ns: None,
            secrets,
        })
    }

    /// Says hello, and hears who the agents are and whether they can play.
    fn meet(&mut self, system: &System, stage: &mut Stage<'_>) -> Result<(), RunError> {
        self.tell_all(&Command::Hello { protocol: VERSION });
        let hellos = self.each("say hello", ANSWER, stage, |event| match event {
            Event::Hello(hello) => Ok(hello),
            other => Err(other),
        })?;
        for hello in &hellos {
            hello::fits(hello, Some(&system.driver)).map_err(|misfit| failed(format!("the agent {misfit}")))?;
        }
        self.identities = hellos.iter().map(hello::identity).collect();
        Ok(())
    }

    fn run(
        &mut self,
        cell: &Cell,
        system: &System,
        place: Place,
        scratch: &Scratch,
        stage: &mut Stage<'_>,
        deployed: &mut Deployed,
    ) -> Result<Measured, RunError> {
        let workload = &cell.workload;
        self.prepare(cell, system, place, scratch, stage, deployed)?;
        // Virtual time wakes nobody up.
        if stage.awake && system.driver != "mock" {
            self.awake = Some(Awake::start().map_err(failed)?);
        }

        let start_ns = machine::now() + LEAD;
        self.tell_all(&Command::Start { at_ns: start_ns });
        let from_ns = start_ns + workload.warmup_ns;
        let to_ns = workload.window_ns().map(|window_ns| from_ns + window_ns);
        self.live.start(start_ns);
        (stage.news)(News::Phase(Phase::Load { start_ns, from_ns, to_ns }));
        let mut totals: Vec<PublisherTotal> = Vec::new();
        if system.driver == "mock" {
            // Virtual time: there is nothing to wait for.
            return self.collect(workload, start_ns, totals, stage).map(|results| Measured {
                results,
                from_ns: start_ns,
                machine: MachineLoad::default(),
                server: None,
                link: None,
                fault_log: Vec::new(),
                used: None,
                drained_ns: None,
            });
        }
        let usage = UsageWatch::start(deployed.watched(), self.agents.iter().map(Agent::pid), workload, start_ns);
        deployed.watch(from_ns, workload.window_ns(), usage.looker());
        self.usage = Some(usage);
        self.link.iter_mut().for_each(|link| link.watch(from_ns, workload.window_ns()));
        let mut faults = Faults::new(&cell.script(place.repeat), from_ns);
        let before = self.load(from_ns, &mut totals, stage)?;
        let window_ns = workload.window_ns();
        let mut after = None;
        if let Some(window_ns) = window_ns {
            self.befall(&mut faults, from_ns + window_ns, deployed, &mut totals, stage)?;
            after = Some(self.load(from_ns + window_ns, &mut totals, stage)?);
            faults.finish(self.reach(deployed))?;
        }
        let after = match after {
            Some(after) => after,
            None => {
                self.await_sent(workload, from_ns, &mut totals, stage)?;
                Load::now(self.awake.as_ref())
            }
        };
        if let Some(why) = self.awake.as_mut().and_then(Awake::gone) {
            return Err(failed(why));
        }
        let results = self.collect(workload, from_ns + window_ns.unwrap_or(0), totals, stage)?;
        let looked = |agent: &AgentReport| agent.result.usage.within(before.at, after.at).cpu_ns;
        let agents_cpu: Ns = results.iter().map(looked).sum();
        let link_cpu = self.link.as_mut().map_or(0, Connection::cpu_ns);
        let of_count = window_ns.is_none().then(|| window_of_count(&results, from_ns));
        let ours = agents_cpu + deployed.cpu_ns(of_count) + link_cpu + after.own_cpu - before.own_cpu;
        let late_ns = self.late_ns.max(deployed.late_ns());
        let awake = self.awake.is_some();
        let machine =
            MachineLoad { late_ns, awake, ..after.ticks.load_since(before.ticks, after.at - before.at, ours) };
        let link = self.link.as_mut().map(Connection::report);
        let (used, drained_ns) = (self.used.take(), self.drained_ns);
        Ok(Measured { results, from_ns, machine, server: None, link, fault_log: faults.log(), used, drained_ns })
    }

    /// From the end of the window to the results of all agents.
    fn collect(
        &mut self,
        workload: &Workload,
        end_ns: Ns,
        mut totals: Vec<PublisherTotal>,
        stage: &mut Stage<'_>,
    ) -> Result<Vec<AgentReport>, RunError> {
        self.await_sent(workload, end_ns, &mut totals, stage)?;
        (stage.news)(News::Phase(Phase::Draining));
        let deadline_ns = machine::now() + workload.drain_ns;
        self.tell_all(&Command::Drain { publishers: totals, deadline_ns });
        self.each("drain", workload.drain_ns + ANSWER, stage, |event| match event {
            Event::Drained {} => Ok(()),
            other => Err(other),
        })?;
        self.drained_ns = Some(machine::now());
        self.used = self.usage.take().and_then(UsageWatch::finish);
        self.tell_all(&Command::Stop {});
        let clients = Ns::from(workload.publishers) + Ns::from(workload.subscribers);
        let results = self.each("hand in its result", ANSWER + clients * LEAVE, stage, |event| match event {
            Event::Result(result) => Ok(*result),
            other => Err(other),
        })?;
        for (from, result) in results.iter().enumerate() {
            self.parts[from].check(&result.publishers).map_err(|what| self.wrong(from, &what))?;
        }
        let agents = self.agents.iter().zip(&self.parts).zip(&self.identities);
        let report = |(((agent, part), identity), result): (((&Agent, &Part), &AgentIdentity), AgentResult)| {
            AgentReport { name: agent.name.clone(), identity: identity.clone(), roles: part.roles(), result }
        };
        Ok(agents.zip(results).map(report).collect())
    }

    /// Ends agents that have nothing more to play. One that is told to exit
    /// removes no folder: unless a keeper does, it is removed before, so that
    /// there is no moment at which nobody would.
    fn end(&mut self, scratch: &Scratch, kept: bool) {
        if !kept {
            scratch.remove();
        }
        self.tell_all(&Command::Exit {});
        Agent::finish_all(&mut self.agents);
    }

    fn tell_all(&mut self, command: &Command) {
        self.agents.iter_mut().for_each(|agent| agent.tell(command));
    }

    /// Prepares the agents, a wave after the other, until all are ready.
    fn prepare(
        &mut self,
        cell: &Cell,
        system: &System,
        place: Place,
        scratch: &Scratch,
        stage: &mut Stage<'_>,
        deployed: &Deployed,
    ) -> Result<(), RunError> {
        let workload = &cell.workload;
        let mut bound: Vec<BoundEndpoint> = Vec::new();
        let pinned = pinning(workload);
        let run = run_name();
        let deadline = machine::now() + patience(workload, deployed.endpoint().is_some());
        let mut unready: Vec<usize> = (0..self.agents.len()).collect();
        let sources = sources::of_agents(cell, deployed.endpoint(), &self.parts);
        for wave in 0..=1 {
            let members: Vec<usize> = (0..self.parts.len()).filter(|index| self.parts[*index].wave == wave).collect();
            for index in &members {
                let part = &mut self.parts[*index];
                if deployed.endpoint().is_none() {
                    connect(part, &bound)?;
                }
                let reached = |server| self.link.as_ref().map_or(server, |link| link.endpoint_of(&part.name, server));
                let server = deployed.endpoint().map(reached).map(|endpoint| ServerAddress {
                    endpoint: endpoint.to_owned(),
                    run: run.clone(),
                    sources: sources[*index].clone(),
                    connect_per_s: (workload.connect_rate / members.len() as u32).max(1),
                });
                let prepare = Prepare {
                    driver: system.driver.clone(),
                    options: cell.options.clone(),
                    workload: workload.of_repeat(place.repeat),
                    clients: part.clients.clone(),
                    spin_cores: pacing::spin_cores(workload, machine::usable_cpus().len(), part.senders()),
                    scratch: scratch.path().display().to_string(),
                    server,
                    publisher_cpus: pinned.0.clone(),
                    subscriber_cpus: pinned.1.clone(),
                };
                self.agents[*index].tell(&Command::Prepare(Box::new(prepare)));
            }
            let mut unbound = members.clone();
            while !unbound.is_empty() {
                let what = if deployed.endpoint().is_some() { "connect and subscribe" } else { "bind" };
                match self.next(what, deadline, stage)? {
                    (from, Event::Bound { endpoints }) if unbound.contains(&from) => {
                        bound.extend(endpoints);
                        unbound.retain(|index| *index != from);
                    }
                    // Only who is bound can be ready, and only once.
                    (from, Event::Ready {}) if !unbound.contains(&from) && self.parts[from].wave <= wave => {
                        self.ready(from, &mut unready)?;
                    }
                    (from, other) => return Err(self.unexpected(from, &other)),
                }
            }
        }
        while !unready.is_empty() {
            match self.next("connect and hear each other", deadline, stage)? {
                (from, Event::Ready {}) => self.ready(from, &mut unready)?,
                (from, other) => return Err(self.unexpected(from, &other)),
            }
        }
        Ok(())
    }

    /// An agent is ready.
    fn ready(&self, from: usize, unready: &mut Vec<usize>) -> Result<(), RunError> {
        let place = unready.iter().position(|index| *index == from);
        unready.swap_remove(place.ok_or_else(|| self.unexpected(from, &Event::Ready {}))?);
        Ok(())
    }

    /// What faults can befall.
    fn reach<'a>(&'a self, server: &'a mut Deployed) -> Reach<'a> {
        Reach { agents: &self.agents, parts: &self.parts, server, link: self.link.as_ref() }
    }

    /// Waits for an instant, and lets the faults happen until then.
    fn befall(
        &mut self,
        faults: &mut Faults,
        until_ns: Ns,
        deployed: &mut Deployed,
        totals: &mut Vec<PublisherTotal>,
        stage: &mut Stage<'_>,
    ) -> Result<(), RunError> {
        while machine::now() < until_ns {
            faults.step(&mut self.reach(deployed))?;
            if let Some((from, event)) = self.poll(until_ns.min(faults.next_ns()), stage)? {
                self.while_sending(from, event, totals)?;
            }
        }
        Ok(())
    }

    /// Waits for an instant, and says what the machine had done until then.
    fn load(&mut self, at_ns: Ns, totals: &mut Vec<PublisherTotal>, stage: &mut Stage<'_>) -> Result<Load, RunError> {
        while machine::now() < at_ns {
            if let Some((from, event)) = self.poll(at_ns, stage)? {
                self.while_sending(from, event, totals)?;
            }
        }
        let load = Load::now(self.awake.as_ref());
        // After it: what stops a process may do so while it reads.
        self.late_ns = self.late_ns.max(machine::now() - at_ns);
        Ok(load)
    }

    fn while_sending(&mut self, from: usize, event: Event, totals: &mut Vec<PublisherTotal>) -> Result<(), RunError> {
        let Event::Sent { publishers } = event else { return Err(self.unexpected(from, &event)) };
        self.parts[from].check(&publishers).map_err(|what| self.wrong(from, &what))?;
        // Agents have no publishers in common: who has said one has said all.
        if totals.iter().any(|known| publishers.first().is_some_and(|new| new.publisher == known.publisher)) {
            return Err(self.unexpected(from, &Event::Sent { publishers }));
        }
        totals.extend(publishers);
        Ok(())
    }

    fn await_sent(
        &mut self,
        workload: &Workload,
        end_ns: Ns,
        totals: &mut Vec<PublisherTotal>,
        stage: &mut Stage<'_>,
    ) -> Result<(), RunError> {
        let mut deadline = end_ns + workload.drain_ns + ANSWER;
        let mut sent = 0;
        while (totals.len() as u64) < u64::from(workload.publishers) {
            let so_far = self.live.sent();
            if workload.window_ns().is_none() && so_far > sent {
                (sent, deadline) = (so_far, machine::now() + STANDSTILL);
            }
            if machine::now() >= deadline {
                return Err(failed("the publishers did not finish sending in time"));
            }
            if let Some((from, event)) = self.poll(deadline, stage)? {
                self.while_sending(from, event, totals)?;
            }
        }
        Ok(())
    }

    /// An agent says of its clients what cannot be.
    fn wrong(&self, from: usize, what: &str) -> RunError {
        failed(format!("agent {} does not answer for what it was told to play: {what}", self.agents[from].name))
    }

    fn unexpected(&self, from: usize, event: &Event) -> RunError {
        let said = self.secrets.hide(&serde_json::to_string(event).unwrap_or_default());
        failed(format!(
            "agent {} said out of turn: {}",
            self.agents[from].name,
            said.chars().take(200).collect::<String>()
        ))
    }

    /// One answer from every agent.
    fn each<T>(
        &mut self,
        what: &str,
        within: Ns,
        stage: &mut Stage<'_>,
        want: impl Fn(Event) -> Result<T, Event>,
    ) -> Result<Vec<T>, RunError> {
        let deadline = machine::now() + within;
        let mut answers: Vec<Option<T>> = self.agents.iter().map(|_| None).collect();
        while answers.iter().any(Option::is_none) {
            let (from, event) = self.next(what, deadline, stage)?;
            if answers[from].is_some() {
                return Err(self.unexpected(from, &event));
            }
            answers[from] = Some(want(event).map_err(|event| self.unexpected(from, &event))?);
        }
        Ok(answers.into_iter().flatten().collect())
    }

    fn next(&mut self, what: &str, deadline: Ns, stage: &mut Stage<'_>) -> Result<(usize, Event), RunError> {
        loop {
            if let Some(found) = self.poll(deadline, stage)? {
                return Ok(found);
            }
            if machine::now() >= deadline {
                let names: Vec<&str> = self.agents.iter().map(|agent| agent.name.as_str()).collect();
                return Err(failed(format!(
                    "agents ({}) did not {what} in time; their logs are in {}",
                    names.join(", "),
                    stage.logs.display()
                )));
            }
        }
    }

    /// The next word of an agent, if one comes before the deadline or the
    /// next look at the interrupt flag.
    fn poll(&mut self, deadline: Ns, stage: &mut Stage<'_>) -> Result<Option<(usize, Event)>, RunError> {
        if stage.interrupt.load(Ordering::Relaxed) {
            return Err(RunError::Interrupted);
        }
        let left = Duration::from_nanos(deadline.saturating_sub(machine::now()));
        match self.inbox.recv_timeout(left.min(LOOK)) {
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(failed("all agents have gone")),
            Ok((from, Incoming::Closed)) => {
                let end = self.agents[from].obituary();
                Err(failed(format!("agent {} ended in mid-run: {end}", self.agents[from].name)))
            }
            Ok((from, Incoming::Garbage(line))) => {
                Err(failed(format!("agent {} said what is no word of the protocol: {line}", self.agents[from].name)))
            }
            Ok((from, Incoming::Event(event))) => match *event {
                Event::Error { message, fatal: true } => Err(failed(message)),
                Event::Error { message, fatal: false } => {
                    Err(failed(format!("agent {}: {message}", self.agents[from].name)))
                }
                Event::Progress(progress) => {
                    let figures = self.live.hear(from, progress, machine::now());
                    (stage.news)(News::Figures(figures));
                    Ok(None)
                }
                event => Ok(Some((from, event))),
            },
        }
    }
}
