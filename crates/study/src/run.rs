//! One run: start agents, prepare, ready, start, drain, result.

use crate::agent::{Agent, Incoming};
use crate::assemble::{Measured, assemble};
use crate::machine::{self, Ticks};
use crate::scratch::Scratch;
use pubmark_model::cell::Cell;
use pubmark_model::protocol::{
    AgentResult, BoundEndpoint, Client, Command, Event, Prepare, PublisherTotal, Role, VERSION,
};
use pubmark_model::record::{MachineLoad, RunRecord};
use pubmark_model::system::System;
use pubmark_model::topology::heard_by;
use pubmark_model::units::{MILLISECOND, Ns, SECOND};
use pubmark_model::workload::{Pattern, Pin, Transport, Workload};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// How long an agent may take to say hello, or to hand in its result.
const ANSWER: Ns = 10 * SECOND;
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

fn failed(text: impl Into<String>) -> RunError {
    RunError::Failed(text.into())
}

/// What a run needs beside its cell.
pub struct Stage<'a> {
    /// How to start an agent.
    pub agent: &'a [String],
    /// Where logs go.
    pub logs: &'a Path,
    /// Set when the user wants to stop.
    pub interrupt: &'a AtomicBool,
    /// Told the messages sent and received so far.
    pub progress: &'a mut dyn FnMut(u64, u64),
}

/// Which run of the study it is.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Repetition, from 1.
    pub repeat: u32,
    /// Place in the order of runs, from 0.
    pub position: u64,
}

/// Makes one run.
pub fn make(cell: &Cell, system: &System, place: Place, stage: &mut Stage<'_>) -> Result<RunRecord, RunError> {
    let started = jiff::Timestamp::now().to_string();
    let scratch = Scratch::create().map_err(|error| failed(format!("no folder for sockets: {error}")))?;
    let mut play = Play::open(cell, system, place, stage)?;
    let played = play.run(cell, system, &scratch, stage);
    if let Err(RunError::Interrupted) = played {
        play.agents.iter_mut().for_each(|agent| agent.tell(&Command::Exit {}));
    }
    play.agents.iter_mut().for_each(Agent::finish);
    played.map(|measured| assemble(cell, system, place, started, measured))
}

/// The agents of a run, and what has been heard from them.
struct Play {
    agents: Vec<Agent>,
    inbox: Receiver<(usize, Incoming)>,
    sent: Vec<u64>,
    received: Vec<u64>,
}

/// The parts that go to one agent.
struct Part {
    name: &'static str,
    clients: Vec<Client>,
}

/// Who plays what: threads of one agent where the transport stays within a
/// process, an agent for each side elsewhere. Those that bind come first.
fn parts(workload: &Workload, scratch: &Path, one_process: bool) -> Vec<Part> {
    let asking = workload.pattern == Pattern::RequestReply;
    let endpoint = |id: u32| match workload.transport {
        Some(Transport::Tcp) => "tcp://127.0.0.1:0".to_owned(),
        Some(Transport::Udp) => "udp://127.0.0.1:0".to_owned(),
        Some(Transport::Ipc) => format!("ipc://{}/{id}", scratch.display()),
        Some(Transport::Inproc) | None => format!("inproc://{id}"),
    };
    let client = |role, id| Client { role, id, bind: None, connect: Vec::new(), hears_first: 0, hears_count: 0 };
    let sending = if asking { Role::Requester } else { Role::Publisher };
    let hearing = if asking { Role::Replier } else { Role::Subscriber };
    let mut senders: Vec<Client> = (0..workload.publishers).map(|id| client(sending, id)).collect();
    let mut hearers: Vec<Client> = (0..workload.subscribers).map(|id| client(hearing, id)).collect();
    for hearer in &mut hearers {
        let heard = heard_by(workload, hearer.id);
        (hearer.hears_first, hearer.hears_count) = (heard.start, heard.end - heard.start);
    }
    let binders = if asking { &mut hearers } else { &mut senders };
    binders.iter_mut().for_each(|client| client.bind = Some(endpoint(client.id)));
    if one_process {
        // Within a process the names are known beforehand.
        let to = |id: u32| endpoint(id);
        if asking {
            senders.iter_mut().for_each(|client| client.connect = vec![to(client.id)]);
        } else {
            hearers.iter_mut().for_each(|client| client.connect = heard_by(workload, client.id).map(to).collect());
        }
        senders.append(&mut hearers);
        return vec![Part { name: "all", clients: senders }];
    }
    let (senders, hearers) =
        (Part { name: "publishers", clients: senders }, Part { name: "subscribers", clients: hearers });
    if asking { vec![hearers, senders] } else { vec![senders, hearers] }
}

/// Fills in where to connect to, now that the endpoints are bound.
fn connect(part: &mut Part, bound: &[BoundEndpoint]) -> Result<(), RunError> {
    let find = |role: Role, id: u32| {
        let found = bound.iter().find(|endpoint| endpoint.role == role && endpoint.id == id);
        found
            .map(|endpoint| endpoint.endpoint.clone())
            .ok_or_else(|| failed(format!("the agent did not say where its {role:?} {id} is bound").to_lowercase()))
    };
    for client in part.clients.iter_mut().filter(|client| client.bind.is_none() && client.connect.is_empty()) {
        client.connect = match client.role {
            Role::Requester => vec![find(Role::Replier, client.id)?],
            _ => (client.hears_first..client.hears_first + client.hears_count)
                .map(|id| find(Role::Publisher, id))
                .collect::<Result<_, _>>()?,
        };
    }
    Ok(())
}

/// Processors for publishers and for subscribers.
fn pinning(workload: &Workload) -> (Vec<usize>, Vec<usize>) {
    let mut publishers = machine::usable_cpus();
    if workload.pin == Pin::None || publishers.len() < 2 {
        return (Vec::new(), Vec::new());
    }
    let subscribers = publishers.split_off(publishers.len() / 2);
    (publishers, subscribers)
}

impl Play {
    fn open(cell: &Cell, system: &System, place: Place, stage: &Stage<'_>) -> Result<Play, RunError> {
        let (outbox, inbox) = channel();
        let mut agents = Vec::new();
        for (index, part) in parts(&cell.workload, Path::new(""), one_process(cell, system)).iter().enumerate() {
            let log = stage.logs.join(format!("run-{}-{}.log", place.position, part.name));
            let agent = Agent::start(stage.agent, part.name, &log, index, outbox.clone());
            agents.push(
                agent.map_err(|error| {
                    failed(format!("agent `{}` could not be started: {error}", stage.agent.join(" ")))
                })?,
            );
        }
        let count = agents.len();
        Ok(Play { agents, inbox, sent: vec![0; count], received: vec![0; count] })
    }

    fn run(
        &mut self,
        cell: &Cell,
        system: &System,
        scratch: &Scratch,
        stage: &mut Stage<'_>,
    ) -> Result<Measured, RunError> {
        let workload = &cell.workload;
        self.tell_all(&Command::Hello { protocol: VERSION });
        self.each("say hello", ANSWER, stage, |event| matches!(event, Event::Hello(_)).then_some(()))?;
        self.prepare(cell, system, scratch, stage)?;

        let start_ns = machine::now() + LEAD;
        self.tell_all(&Command::Start { at_ns: start_ns });
        let mut totals: Vec<PublisherTotal> = Vec::new();
        if system.driver == "mock" {
            // Virtual time: there is nothing to wait for.
            return self.collect(workload, start_ns, totals, stage).map(|results| Measured {
                results,
                from_ns: start_ns,
                machine: MachineLoad::default(),
            });
        }
        let from_ns = start_ns + workload.warmup_ns;
        let before = self.load(from_ns, &mut totals, stage)?;
        let window_ns = workload.window_ns();
        let mut after = None;
        if let Some(window_ns) = window_ns {
            after = Some(self.load(from_ns + window_ns, &mut totals, stage)?);
        }
        let after = match after {
            Some(after) => after,
            None => {
                self.await_sent(workload, from_ns, &mut totals, stage)?;
                Load::now()
            }
        };
        let results = self.collect(workload, from_ns + window_ns.unwrap_or(0), totals, stage)?;
        let agents_cpu: Ns = results.iter().map(|(_, result)| result.usage.cpu_ns).sum();
        let machine =
            after.ticks.load_since(before.ticks, after.at - before.at, agents_cpu + after.own_cpu - before.own_cpu);
        Ok(Measured { results, from_ns, machine })
    }

    /// From the end of the window to the results of all agents.
    fn collect(
        &mut self,
        workload: &Workload,
        end_ns: Ns,
        mut totals: Vec<PublisherTotal>,
        stage: &mut Stage<'_>,
    ) -> Result<Vec<(&'static str, AgentResult)>, RunError> {
        self.await_sent(workload, end_ns, &mut totals, stage)?;
        let deadline_ns = machine::now() + workload.drain_ns;
        self.tell_all(&Command::Drain { publishers: totals, deadline_ns });
        self.each("drain", workload.drain_ns + ANSWER, stage, |event| {
            matches!(event, Event::Drained {}).then_some(())
        })?;
        self.tell_all(&Command::Stop {});
        let results = self.each("hand in its result", ANSWER, stage, |event| match event {
            Event::Result(result) => Some(*result),
            _ => None,
        })?;
        if let Some(total) = results.iter().flat_map(|result| &result.publishers).find(|total| !total.adds_up()) {
            return Err(failed(format!("an agent's result says what cannot be: {total:?}")));
        }
        self.tell_all(&Command::Exit {});
        let names = self.agents.iter().map(|agent| agent.name);
        Ok(names.zip(results).collect())
    }

    fn tell_all(&mut self, command: &Command) {
        self.agents.iter_mut().for_each(|agent| agent.tell(command));
    }

    fn prepare(
        &mut self,
        cell: &Cell,
        system: &System,
        scratch: &Scratch,
        stage: &mut Stage<'_>,
    ) -> Result<(), RunError> {
        let workload = &cell.workload;
        let mut bound: Vec<BoundEndpoint> = Vec::new();
        let (publisher_cpus, subscriber_cpus) = pinning(workload);
        let deadline = machine::now() + workload.connect_timeout_ns;
        let mut ready = 0;
        for (index, mut part) in parts(workload, scratch.path(), one_process(cell, system)).into_iter().enumerate() {
            connect(&mut part, &bound)?;
            self.agents[index].tell(&Command::Prepare(Box::new(Prepare {
                driver: system.driver.clone(),
                options: cell.options.clone(),
                workload: workload.clone(),
                clients: part.clients,
                scratch: scratch.path().display().to_string(),
                server: None,
                publisher_cpus: publisher_cpus.clone(),
                subscriber_cpus: subscriber_cpus.clone(),
            })));
            let mut answered = false;
            while !answered {
                match self.next("bind", deadline, stage)? {
                    (from, Event::Bound { endpoints }) if from == index => {
                        bound.extend(endpoints);
                        answered = true;
                    }
                    (_, Event::Ready {}) => ready += 1,
                    (from, other) => return Err(self.unexpected(from, &other)),
                }
            }
        }
        while ready < self.agents.len() {
            match self.next("connect and hear each other", deadline, stage)? {
                (_, Event::Ready {}) => ready += 1,
                (from, other) => return Err(self.unexpected(from, &other)),
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
        Ok(Load::now())
    }

    fn while_sending(&mut self, from: usize, event: Event, totals: &mut Vec<PublisherTotal>) -> Result<(), RunError> {
        match event {
            Event::Sent { publishers } => {
                if let Some(total) = publishers.iter().find(|total| !total.adds_up()) {
                    return Err(failed(format!("agent {} says what cannot be: {total:?}", self.agents[from].name)));
                }
                totals.extend(publishers);
            }
            Event::Ready {} => {}
            other => return Err(self.unexpected(from, &other)),
        }
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
            let so_far: u64 = self.sent.iter().sum();
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

    fn unexpected(&self, from: usize, event: &Event) -> RunError {
        let said = serde_json::to_string(event).unwrap_or_default();
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
        want: impl Fn(Event) -> Option<T>,
    ) -> Result<Vec<T>, RunError> {
        let deadline = machine::now() + within;
        let mut answers: Vec<Option<T>> = self.agents.iter().map(|_| None).collect();
        while answers.iter().any(Option::is_none) {
            let (from, event) = self.next(what, deadline, stage)?;
            answers[from] = want(event).or(answers[from].take());
        }
        Ok(answers.into_iter().flatten().collect())
    }

    fn next(&mut self, what: &str, deadline: Ns, stage: &mut Stage<'_>) -> Result<(usize, Event), RunError> {
        loop {
            if let Some(found) = self.poll(deadline, stage)? {
                return Ok(found);
            }
            if machine::now() >= deadline {
                let names: Vec<&str> = self.agents.iter().map(|agent| agent.name).collect();
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
                    (self.sent[from], self.received[from]) = (progress.sent, progress.received);
                    (stage.progress)(self.sent.iter().sum(), self.received.iter().sum());
                    Ok(None)
                }
                event => Ok(Some((from, event))),
            },
        }
    }
}

fn one_process(cell: &Cell, system: &System) -> bool {
    cell.workload.transport.is_none_or(|transport| transport == Transport::Inproc) || system.driver == "mock"
}

/// What the machine and the coordinator had done up to an instant.
struct Load {
    at: Ns,
    ticks: Ticks,
    own_cpu: Ns,
}

impl Load {
    fn now() -> Load {
        Load { at: machine::now(), ticks: Ticks::now(), own_cpu: machine::own_cpu() }
    }
}
