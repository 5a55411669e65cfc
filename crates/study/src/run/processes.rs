//! The processes of a run, which carry out what the leader orders.

use super::faults::{Faults, Reach};
use super::look::Look;
use super::sources;
use crate::calibrated;
use crate::context::{RunContext, RunError, failed};
use crate::deploy::Deployed;
use crate::lead::deal::AgentPlan;
use crate::lead::{Edge, Leader, Order, Reached, Refusal, Said};
use crate::live::{News, Phase};
use pubmark_host::agent::{Agent, Incoming};
use pubmark_host::awake::Awake;
use pubmark_host::clock;
use pubmark_host::programs::find_program;
use pubmark_host::proxy::{Proxy, ProxyPlan};
use pubmark_host::scratch::Scratch;
use pubmark_host::usage::UsageWatch;
use pubmark_judge::assemble::{AgentReport, Measured, window_of_count};
use pubmark_model::cell::Cell;
use pubmark_model::plan::Place;
use pubmark_model::protocol::Command;
use pubmark_model::record::{MachineLoad, UsageSeries};
use pubmark_model::secret::Secrets;
use pubmark_model::system::System;
use pubmark_model::units::Ns;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// How often the wait for an agent looks for an interrupt.
const LOOK: Duration = Duration::from_millis(50);

/// The agents of a run, and what stands beside them.
pub struct Processes {
    /// Those that play clients.
    pub agents: Vec<Agent>,
    /// What stands between them and the server, if anything does.
    pub link: Option<Proxy>,
    inbox: Receiver<(usize, Incoming)>,
    /// Keeps the processors awake, where that is asked for.
    awake: Option<Awake>,
    /// Watches what agents and server use, until the drain is over.
    usage: Option<UsageWatch>,
    /// What it has seen.
    used: Option<UsageSeries>,
    /// When the drain was over.
    drained_ns: Option<Ns>,
    /// What the machine had done at the edges of the window.
    before: Option<Look>,
    after: Option<Look>,
    /// How late an edge was looked at, at worst.
    late_ns: Ns,
}

/// What carrying out orders needs beside the agents.
struct Means<'a, 'b> {
    context: &'a mut RunContext<'b>,
    deployed: &'a mut Deployed,
    faults: Option<&'a mut Faults>,
}

impl Processes {
    /// Starts an agent for each plan.
    pub fn open(
        cell: &Cell,
        system: &System,
        place: Place,
        plans: &[AgentPlan],
        context: &RunContext<'_>,
        scratch: &Scratch,
    ) -> Result<Processes, RunError> {
        let (outbox, inbox) = channel();
        let command = agent_command(system, context.agent).map_err(failed)?;
        let secrets = Secrets::of(&cell.options);
        let mut agents = Vec::new();
        for (index, plan) in plans.iter().enumerate() {
            let log = context.logs.join(format!("run-{}-{}.log", place.position, plan.name));
            let agent = Agent::start(&command, &plan.name, &log, scratch.path(), &secrets, index, outbox.clone());
            agents.push(
                agent
                    .map_err(|error| failed(format!("agent `{}` could not be started: {error}", command.join(" "))))?,
            );
        }
        Ok(Processes {
            agents,
            link: None,
            inbox,
            awake: None,
            usage: None,
            used: None,
            drained_ns: None,
            before: None,
            after: None,
            late_ns: 0,
        })
    }

    /// Puts the cell's link, if it has one, between clients and server.
    pub fn link_up(
        &mut self,
        cell: &Cell,
        place: Place,
        context: &mut RunContext<'_>,
        scratch: &Scratch,
        deployed: &Deployed,
    ) -> Result<(), RunError> {
        if let (Some(link), Some(server)) = (&cell.link, deployed.endpoint()) {
            let plan = ProxyPlan {
                dir: scratch.path().join("link"),
                log: context.logs.join(format!("run-{}-link.log", place.position)),
                program: context.agent.first().map(PathBuf::from).unwrap_or_default(),
                interrupt: context.interrupt,
            };
            self.link = Some(Proxy::open(link, server, plan)?);
        }
        Ok(())
    }

    /// Hears who the agents are, and whether they can play.
    pub fn meet(&mut self, leader: &mut Leader<'_>, context: &mut RunContext<'_>) -> Result<(), RunError> {
        let mut nothing = Deployed::Nothing;
        let mut means = Means { context, deployed: &mut nothing, faults: None };
        self.follow(leader, &Order::Deploy, &mut means)
    }

    /// Plays the run, whose server stands.
    pub fn run(
        &mut self,
        leader: &mut Leader<'_>,
        cell: &Cell,
        system: &System,
        place: Place,
        context: &mut RunContext<'_>,
        deployed: &mut Deployed,
    ) -> Result<Measured<'static>, RunError> {
        leader.deployed(self.reached(cell, leader.agents(), deployed), clock::now());
        self.follow(leader, &Order::Begin, &mut Means { context, deployed, faults: None })?;
        // Virtual time wakes nobody up.
        let timeless = system.driver == "mock";
        if context.awake && !timeless {
            self.awake = Some(Awake::start()?);
        }
        let times = leader.begin(clock::now());
        let (start_ns, from_ns, to_ns) = (times.start_ns, times.from_ns, times.to_ns);
        (context.news)(News::Phase(Phase::Load { start_ns, from_ns: start_ns + cell.workload.warmup_ns, to_ns }));
        let window_ns = cell.workload.window_ns();
        let mut faults = Faults::new(&cell.script(place.repeat), from_ns);
        if !timeless {
            let slice_ns = cell.workload.usage_slice_ns();
            let agents = self.agents.iter().map(Agent::pid);
            let usage = UsageWatch::start(deployed.watched(), agents, start_ns..from_ns, slice_ns);
            deployed.watch(from_ns, window_ns, usage.looker());
            self.usage = Some(usage);
            self.link.iter_mut().for_each(|link| link.watch(from_ns, window_ns));
        }
        let results = self.play_out(leader, &mut Means { context, deployed, faults: Some(&mut faults) })?;
        let machine = match (self.before.take(), self.after.take()) {
            (Some(before), Some(after)) => self.machine(&before, &after, &results, from_ns, window_ns, deployed),
            _ => MachineLoad::default(),
        };
        Ok(Measured {
            results,
            from_ns,
            machine,
            server: None,
            link: self.link.as_mut().filter(|_| !timeless).map(Proxy::report),
            fault_log: if timeless { Vec::new() } else { faults.log() },
            used: self.used.take(),
            drained_ns: self.drained_ns.filter(|_| !timeless),
            calibration: calibrated::of_this_machine(),
            remarks: calibrated::remark().into_iter().collect(),
        })
    }

    /// What the machine did between two looks that was not of the run.
    fn machine(
        &mut self,
        before: &Look,
        after: &Look,
        results: &[AgentReport],
        from_ns: Ns,
        window_ns: Option<Ns>,
        deployed: &mut Deployed,
    ) -> MachineLoad {
        let looked = |agent: &AgentReport| agent.result.usage.within(before.at, after.at).cpu_ns;
        let agents_cpu: Ns = results.iter().map(looked).sum();
        let link_cpu = self.link.as_mut().map_or(0, Proxy::cpu_ns);
        let of_count = window_ns.is_none().then(|| window_of_count(results, from_ns));
        let ours = agents_cpu + deployed.cpu_ns(of_count) + link_cpu + after.own_cpu - before.own_cpu;
        let late_ns = self.late_ns.max(deployed.late_ns());
        let awake = self.awake.is_some();
        MachineLoad { late_ns, awake, ..after.ticks.load_since(before.ticks, after.at - before.at, ours) }
    }

    /// How each agent reaches the server; none where there is none.
    fn reached(&self, cell: &Cell, plans: &[AgentPlan], deployed: &Deployed) -> Option<Vec<Reached>> {
        let server = deployed.endpoint()?;
        let sources = sources::of_agents(cell, Some(server), plans);
        let endpoint =
            |plan: &AgentPlan| self.link.as_ref().map_or(server, |link| link.endpoint_of(plan.role(), server));
        let each = plans.iter().zip(sources);
        Some(each.map(|(plan, sources)| Reached { endpoint: endpoint(plan).to_owned(), sources }).collect())
    }

    /// Carries out orders until this one comes.
    fn follow(&mut self, leader: &mut Leader<'_>, until: &Order, means: &mut Means<'_, '_>) -> Result<(), RunError> {
        loop {
            while let Some(order) = leader.poll() {
                if order == *until {
                    return Ok(());
                }
                self.carry_out(order, leader, means)?;
            }
            if let Some(outcome) = leader.outcome() {
                let refusal = outcome.err().map(|refusal| refused(&refusal, means.context));
                return Err(refusal.unwrap_or_else(|| failed("the agents were done before they had begun")));
            }
            self.step(leader, means)?;
        }
    }

    /// Carries out orders until the run is over.
    fn play_out(&mut self, leader: &mut Leader<'_>, means: &mut Means<'_, '_>) -> Result<Vec<AgentReport>, RunError> {
        loop {
            while let Some(order) = leader.poll() {
                self.carry_out(order, leader, means)?;
            }
            if let Some(outcome) = leader.outcome() {
                return outcome.map_err(|refusal| refused(&refusal, means.context));
            }
            self.step(leader, means)?;
        }
    }

    fn carry_out(&mut self, order: Order, leader: &Leader<'_>, means: &mut Means<'_, '_>) -> Result<(), RunError> {
        match order {
            Order::Tell(index, command) => self.agents[index].tell(&command),
            Order::Figures(figures) => (means.context.news)(News::Figures(figures)),
            Order::Look { edge, at_ns } => {
                let load = Look::now(self.awake.as_ref());
                // After it: what stops a process may do so while it reads.
                self.late_ns = self.late_ns.max(clock::now().saturating_sub(at_ns));
                match edge {
                    Edge::Begin => self.before = Some(load),
                    Edge::End => self.end_window(load, leader, means)?,
                }
            }
            Order::Draining => (means.context.news)(News::Phase(Phase::Draining)),
            Order::Drained => {
                self.drained_ns = Some(clock::now());
                self.used = self.usage.take().and_then(UsageWatch::finish);
            }
            // Each of them is what somebody waits for, in its turn.
            Order::Deploy | Order::Begin => {}
        }
        Ok(())
    }

    fn end_window(&mut self, load: Look, leader: &Leader<'_>, means: &mut Means<'_, '_>) -> Result<(), RunError> {
        self.after = Some(load);
        if let Some(faults) = &mut means.faults {
            faults.finish(self.reach(leader, means.deployed))?;
        }
        self.awake.as_mut().and_then(Awake::gone).map_or(Ok(()), |why| Err(failed(why)))
    }

    /// What faults can befall.
    fn reach<'a>(&'a self, leader: &'a Leader<'_>, server: &'a mut Deployed) -> Reach<'a> {
        Reach { agents: &self.agents, plans: leader.agents(), server, link: self.link.as_ref() }
    }

    /// Waits for an agent's next word, for the leader's deadline, for the next
    /// fault, or until it is time to look for an interrupt.
    fn step(&mut self, leader: &mut Leader<'_>, means: &mut Means<'_, '_>) -> Result<(), RunError> {
        if means.context.interrupt.load(Ordering::Relaxed) {
            return Err(RunError::Interrupted);
        }
        let mut until_ns = leader.deadline_ns().unwrap_or(Ns::MAX);
        if let Some(faults) = means.faults.as_mut().filter(|_| leader.measures()) {
            faults.step(&mut self.reach(leader, means.deployed))?;
            until_ns = until_ns.min(faults.next_ns());
        }
        let left = Duration::from_nanos(until_ns.saturating_sub(clock::now())).min(LOOK);
        match self.inbox.recv_timeout(left) {
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(failed("all agents have gone")),
            Ok((from, incoming)) => {
                let said = match incoming {
                    Incoming::Event(event) => Said::Event(*event),
                    Incoming::Garbage(line) => Said::Garbage(line),
                    Incoming::Closed => Said::Closed(self.agents[from].exit_reason()),
                };
                leader.handle(from, said, clock::now());
            }
        }
        leader.tick(clock::now());
        Ok(())
    }

    /// Ends agents that have nothing more to play. One that is told to exit
    /// removes no folder: unless a keeper does, it is removed before, so that
    /// there is no moment at which nobody would.
    pub fn end(&mut self, scratch: &Scratch, kept: bool) {
        if !kept {
            scratch.remove();
        }
        self.agents.iter_mut().for_each(|agent| agent.tell(&Command::Exit {}));
        Agent::finish_all(&mut self.agents);
    }
}

/// Why there is no record, with the way to more evidence.
fn refused(refusal: &Refusal, context: &RunContext<'_>) -> RunError {
    match refusal {
        Refusal::Silent { .. } => failed(format!("{refusal}; their logs are in {}", context.logs.display())),
        _ => failed(refusal.to_string()),
    }
}

/// The program that plays the clients of a system: the built-in agent, or one
/// of its own, beside this program, in PATH, or where it is installed.
fn agent_command(system: &System, built_in: &[String]) -> Result<Vec<String>, String> {
    if system.agent.is_empty() {
        return Ok(built_in.to_vec());
    }
    match find_program(&system.agent) {
        Some(path) => Ok(vec![path.display().to_string(), "agent".into()]),
        None => Err(format!("the agent `{}` is not installed: {}", system.agent, system.install.manual)),
    }
}
