//! The processes of a run on its hosts. Carries out the orders of `Leader`.

mod deploy;
mod power;
mod refusal;

use super::clocks::Clocks;
use super::faults::{FaultTargets, Faults, PlacedMember};
use super::login;
use super::machines::{machines, worst};
use super::opening::open_all;
use super::sources;
use super::usage;
use super::watch::SetupWatch;
use super::wire::NetworkAccount;
use crate::calibration_file;
use crate::context::{RunContext, RunError, failed};
use crate::lead::assignment::{AgentPlan, ClientHost, streams_between};
use crate::lead::{AgentInput, AgentResources, Edge, Leader, Order, Reached, Times};
use crate::live::{News, Phase};
use crate::servers::ServerAtHand;
use pubmark_host::agent::Incoming;
use pubmark_host::clock;
use pubmark_host::inbox::{Inbox, inbox};
use pubmark_host::lanes::in_lanes;
use pubmark_host::lines::{Facts, MachineSnapshot, ServerUsed, WatchSpan};
use pubmark_host::reach::{Host, SharedRunSettings};
use pubmark_judge::assemble::{AgentReport, Measured, window_of_count};
use pubmark_judge::usage::joined;
use pubmark_model::cell::Cell;
use pubmark_model::host::{HostSpec, LOCAL};
use pubmark_model::link::Side;
use pubmark_model::pin::Pin;
use pubmark_model::plan::Place;
use pubmark_model::protocol::Command;
use pubmark_model::record::{ClockPair, HostShare, MachineLoad, UsageSeries};
use pubmark_model::secret::Secrets;
use pubmark_model::server::ServerEndpoints;
use pubmark_model::server_need::ServerNeed;
use pubmark_model::server_reports::ServerReport;
use pubmark_model::system::System;
use pubmark_model::units::Ns;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

/// Interval at which the wait for an agent checks for an interrupt.
const LOOK: Duration = Duration::from_millis(50);

/// The hosts of a run, with the processes on them.
pub struct Processes<'a> {
    pub(super) hosts: Vec<Host<'a>>,
    facts: Vec<Facts>,
    /// The server's host: that of its first member.
    server: usize,
    /// Hosts of its members, in turn.
    of_members: Vec<usize>,
    /// Members of a server that was started.
    members: Vec<PlacedMember>,
    /// Numbers of the hosts of the senders and of the receivers.
    pub(super) sides: [Vec<usize>; 2],
    /// Endpoints to which clients connect, if there is a server.
    pub(super) endpoints: Option<ServerEndpoints>,
    /// The link before the server on its host, if there is one.
    link: Option<Linked>,
    /// Needs that another run must share to use the same server; `None` if none may.
    need: Option<ServerNeed>,
    /// Number of runs that the server had served before, and the position of the run whose log it writes.
    served: (u32, u64),
    /// True if a server may serve several runs.
    is_shared: bool,
    /// By agent: its host, and its number there.
    seats: Vec<(usize, usize)>,
    /// By host: its agents, in the order of their numbers there.
    numbers: Vec<Vec<usize>>,
    /// Clocks of the hosts, if messages travel between hosts.
    clocks: Option<Clocks>,
    inbox: Inbox,
    /// Network interfaces that the run uses.
    wire: NetworkAccount,
    /// Usage of server and agents as hosts measured it.
    used: Vec<UsageSeries>,
    /// Instant at which the drain was over.
    drained_ns: Option<Ns>,
    /// By host: snapshots of the machine at the edges of the window.
    before: Vec<MachineSnapshot>,
    after: Vec<MachineSnapshot>,
    /// Largest delay with which the snapshot at an edge was taken, ns.
    late_ns: Ns,
    secrets: Secrets,
    /// Schedule for reading the server's log while clients connect.
    watch: SetupWatch,
}

/// The link of a run, on the server's host.
struct Linked {
    /// Side whose connections go over it.
    side: Side,
    /// Endpoint to which these clients connect.
    endpoint: String,
}

/// Inputs beside the processes that orders need.
struct Means<'a, 'b> {
    context: &'a mut RunContext<'b>,
    faults: Option<&'a mut Faults>,
    place: Place,
}

impl<'h> Processes<'h> {
    /// Opens the hosts; no process of the run is on them yet.
    pub fn open(cell: &Cell, need: Option<ServerNeed>, context: &RunContext<'h>) -> Result<Processes<'h>, RunError> {
        let (outbox, inbox) = inbox();
        let secrets = login::secrets(cell);
        let placement = &cell.placement;
        let specs = placement.hosts();
        let number = |spec: &HostSpec| specs.iter().position(|known| *known == spec).unwrap_or(0);
        let of_members: Vec<usize> = placement.of_members().map(number).collect();
        let server = of_members[0];
        let sides =
            [&placement.publishers, &placement.subscribers].map(|side| side.iter().map(number).collect::<Vec<usize>>());
        let wanted = SharedRunSettings {
            built_in: context.agent,
            logs: context.logs,
            secrets: &secrets,
            interrupt: context.interrupt,
            inbox: outbox,
        };
        let (hosts, facts) = open_all(&specs, !placement.local(), &wanted)?;
        for (role, processors) in bound(&cell.workload.pin) {
            let on: &[usize] = match role {
                "publishers" => &sides[0],
                "subscribers" => &sides[1],
                _ => &of_members,
            };
            for host in on {
                let Facts { cpus, isolated, .. } = &facts[*host];
                if let Some(none) = processors.iter().find(|cpu| !cpus.contains(cpu) && !isolated.contains(cpu)) {
                    let name = &hosts[*host].spec.name;
                    return Err(failed(format!(
                        "pin: host {name} has no processor {none} for {role}: it has {cpus:?}"
                    )));
                }
            }
        }
        Ok(Processes {
            hosts,
            facts,
            server,
            of_members,
            members: Vec::new(),
            sides,
            endpoints: None,
            link: None,
            need,
            served: (0, 0),
            is_shared: context.servers.are_shared(),
            seats: Vec::new(),
            numbers: Vec::new(),
            clocks: None,
            inbox,
            wire: NetworkAccount::default(),
            used: Vec::new(),
            drained_ns: None,
            before: Vec::new(),
            after: Vec::new(),
            late_ns: 0,
            secrets,
            watch: SetupWatch::default(),
        })
    }

    /// Returns the number of connections that one agent may hold, on any host.
    pub fn connections(&self) -> usize {
        self.sides.iter().flatten().map(|host| self.facts[*host].connections).min().unwrap_or(1)
    }

    /// Returns the hosts for senders and for receivers.
    pub fn spots(&self) -> [Vec<ClientHost<'_>>; 2] {
        let spot = |host: &usize| ClientHost {
            host: *host,
            address: &self.hosts[*host].spec.address,
            scratch: Path::new(&self.facts[*host].scratch),
        };
        [0, 1].map(|side| self.sides[side].iter().map(spot).collect())
    }

    /// Takes a snapshot of the network before the run uses it.
    pub fn look_at_network(&mut self, cell: &Cell, system: &System) -> Result<(), RunError> {
        self.wire = NetworkAccount::begin(&mut self.hosts, cell, system)?;
        Ok(())
    }

    /// Starts an agent for each plan; then makes the folders, which the agents remove if this process dies.
    pub fn start_agents(&mut self, system: &System, place: Place, plans: &[AgentPlan]) -> Result<(), RunError> {
        let mut dealt: Vec<Vec<&AgentPlan>> = vec![Vec::new(); self.hosts.len()];
        self.numbers = vec![Vec::new(); self.hosts.len()];
        for (index, plan) in plans.iter().enumerate() {
            self.seats.push((plan.host, dealt[plan.host].len()));
            self.numbers[plan.host].push(index);
            dealt[plan.host].push(plan);
        }
        let start = |(host, plans): (&mut Host<'_>, Vec<&AgentPlan>)| -> Result<(), RunError> {
            let own = match system.agent.built_in() || plans.is_empty() {
                true => None,
                false => Some(host.bring(system)?),
            };
            for plan in plans {
                let log = format!("run-{}-{}.log", place.position, plan.name);
                host.start_agent(&plan.name, own.clone(), plan.role().sends(), &log)?;
            }
            Ok(host.make_folder()?)
        };
        let started = in_lanes(self.hosts.iter_mut().zip(dealt).collect(), start);
        started.into_iter().collect::<Result<(), _>>()?;
        let mut played: Vec<usize> = self.sides.iter().flatten().copied().collect();
        played.sort_unstable();
        played.dedup();
        if played.len() > 1 {
            // This machine's clock is the coordinator's, and cannot be adjusted.
            let here = played.iter().find(|host| self.hosts[**host].spec.reach.is_empty());
            let reference = here.copied().unwrap_or(self.sides[0][0]);
            self.clocks = Some(Clocks::compare(&mut self.hosts, reference, &played, &streams_between(plans))?);
        }
        Ok(())
    }

    /// Returns the location of each agent, for `Leader`.
    pub fn seats(&self) -> Vec<AgentResources> {
        let seat = |(host, _): &(usize, usize)| AgentResources {
            host: recorded(&self.hosts[*host].spec),
            scratch: self.facts[*host].scratch.clone(),
            cpus: self.facts[*host].cpus.clone(),
            isolated: self.facts[*host].isolated.clone(),
            ahead_ns: self.clocks.as_ref().map_or(0, |clocks| clocks.ahead_ns(*host)),
        };
        self.seats.iter().map(seat).collect()
    }

    /// Plays the run to its end.
    pub fn play(
        &mut self,
        leader: &mut Leader<'_>,
        cell: &Cell,
        system: &System,
        place: Place,
        context: &mut RunContext<'_>,
    ) -> Result<Measured<'static>, RunError> {
        // Agents that cannot play are found before a server is started.
        self.follow(leader, &Order::Deploy, &mut Means { context, faults: None, place })?;
        self.wire.rested(&mut self.hosts)?;
        self.deploy(cell, system, place, context)?;
        self.link_up(cell, place)?;
        leader.deployed(self.reached(cell, leader.agents()), clock::now());
        self.follow(leader, &Order::Begin, &mut Means { context, faults: None, place })?;
        if cell.faults.cuts_power() {
            power::settle(&mut self.hosts, &self.members, context.interrupt)?;
        }
        // Virtual time needs no busy processors.
        let timeless = system.driver == "mock";
        if context.awake && !timeless {
            self.hosts.iter_mut().try_for_each(Host::keep_awake)?;
        }
        if let Some(clocks) = &self.clocks {
            clocks.align(&mut self.hosts, leader.takes_out_offsets())?;
        }
        let Times { start_ns, from_ns, to_ns } = leader.begin(clock::now());
        let window_begins = start_ns.saturating_add(cell.workload.warmup_ns);
        (context.news)(News::Phase(Phase::Load { start_ns, from_ns: window_begins, to_ns }));
        let length_ns = cell.workload.window_ns();
        let mut faults = Faults::new(&cell.script(place.repeat), from_ns);
        if !timeless {
            let window = WatchSpan { start_ns, from_ns, length_ns, slice_ns: cell.workload.usage_slice_ns() };
            self.hosts.iter_mut().try_for_each(|host| host.watch(window))?;
            if let Some(clocks) = &self.clocks {
                clocks.watch(&mut self.hosts, from_ns, length_ns)?;
            }
        }
        let results =
            self.play_out(leader, &mut Means { context, faults: (!timeless).then_some(&mut faults), place })?;
        let looks = (&self.before[..], &self.after[..]);
        usage::check(leader, &results, &self.seats, looks, &self.facts)?;
        let of_count = length_ns.is_none().then(|| window_of_count(&results, from_ns));
        let window = of_count.unwrap_or((from_ns, to_ns.unwrap_or(from_ns)));
        let wire = if timeless { None } else { self.wire.finish(&mut self.hosts, window.0, window.1)? };
        let shares = self.shares(&results, of_count, context.awake)?;
        let link = if timeless || self.link.is_none() { None } else { self.hosts[self.server].link_report()? };
        let there = shares.iter().any(|share| share.name != LOCAL);
        Ok(Measured {
            results,
            from_ns,
            machine: worst(&shares),
            hosts: if there { shares } else { Vec::new() },
            clocks: self.clock_pairs(leader.agents(), leader.takes_out_offsets()),
            server: None,
            link,
            fault_log: if timeless { faults.planned_log() } else { faults.log() },
            used: joined(std::mem::take(&mut self.used)),
            drained_ns: self.drained_ns.filter(|_| !timeless),
            discovery_ns: leader.discovery_ns(),
            wire,
            calibration: calibration_file::of_this_machine().filter(|_| !there),
            remarks: calibration_file::remark().into_iter().collect(),
        })
    }

    /// Puts the cell's link, if it has one, between clients and server.
    fn link_up(&mut self, cell: &Cell, place: Place) -> Result<(), RunError> {
        let (Some(link), Some(endpoints)) = (&cell.link, &self.endpoints) else { return Ok(()) };
        let log = format!("run-{}-link.log", place.position);
        // A link of both sides has one endpoint, to which all clients can connect.
        let endpoint = self.hosts[self.server].put_link(*link, endpoints.of(link.side != Side::Subscribers), &log)?;
        self.link = Some(Linked { side: link.side, endpoint });
        Ok(())
    }

    /// Returns the address by which each agent reaches the server; `None` if there is no server.
    fn reached(&self, cell: &Cell, plans: &[AgentPlan]) -> Option<Vec<Reached>> {
        let server = self.endpoints.as_ref()?;
        let sources = sources::of_agents(cell, Some(&server.clients), plans);
        let reached = |((plan, sources), (host, _)): ((&AgentPlan, Vec<String>), &(usize, usize))| {
            let link = self.link.as_ref().filter(|link| link.side.holds(plan.role()));
            let endpoint = link.map_or_else(|| server.of(plan.role().sends()), |link| &link.endpoint).to_owned();
            // Addresses of another host are unknown here.
            let sources = if self.hosts[*host].spec.name == LOCAL { sources } else { Vec::new() };
            let (members, discovery) = (server.members.clone(), server.discovery.clone());
            Reached { endpoint, members, discovery, sources, authority: server.authority.clone() }
        };
        Some(plans.iter().zip(sources).zip(&self.seats).map(reached).collect())
    }

    /// Returns the clock comparisons of each two hosts that messages travel between.
    fn clock_pairs(&self, plans: &[AgentPlan], taken_out: bool) -> Vec<ClockPair> {
        let Some(clocks) = &self.clocks else { return Vec::new() };
        let pair = |(from, to): (usize, usize)| ClockPair {
            from: recorded(&self.hosts[from].spec),
            to: recorded(&self.hosts[to].spec),
            ..clocks.pair(from, to, taken_out)
        };
        streams_between(plans).into_iter().map(pair).collect()
    }

    /// Returns, by host, the load of its machine between the two snapshots that was not caused by the run.
    fn shares(
        &mut self,
        results: &[AgentReport],
        of_count: Option<(Ns, Ns)>,
        awake: bool,
    ) -> Result<Vec<HostShare>, RunError> {
        let used: Vec<ServerUsed> =
            self.hosts.iter_mut().map(|host| host.server_used(of_count)).collect::<Result<_, _>>()?;
        let looks: Vec<(MachineSnapshot, MachineSnapshot)> =
            std::mem::take(&mut self.before).into_iter().zip(std::mem::take(&mut self.after)).collect();
        // Processes on another host of the same machine belong to the run as well.
        let machines = machines(&self.facts);
        let mut agents: Vec<Vec<&AgentReport>> = vec![Vec::new(); machines.len()];
        for ((host, _), agent) in self.seats.iter().zip(results) {
            agents[machines[*host]].push(agent);
        }
        let mut beside: Vec<Ns> = vec![0; machines.len()];
        for ((machine, used), (before, after)) in machines.iter().zip(&used).zip(&looks) {
            let own_ns = after.own_cpu_ns.saturating_sub(before.own_cpu_ns);
            beside[*machine] = beside[*machine].saturating_add(used.cpu_ns).saturating_add(own_ns);
        }
        let share = |(index, (before, after)): (usize, &(MachineSnapshot, MachineSnapshot))| {
            let machine = machines[index];
            let own = agents[machine].iter().map(|agent| agent.result.usage.within(before.at_ns, after.at_ns).cpu_ns);
            let ours = own.fold(beside[machine], Ns::saturating_add);
            let machine = after.ticks.load_since(before.ticks, after.at_ns.saturating_sub(before.at_ns), ours);
            let throttle = after.quota.map(|quota| quota.since(before.quota));
            let machine = MachineLoad { late_ns: self.late_ns.max(used[index].late_ns), awake, throttle, ..machine };
            let host = &self.hosts[index];
            HostShare::new(&host.spec, host.clock(), machine)
        };
        Ok(looks.iter().enumerate().map(share).collect())
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
                let refusal = outcome.err().map(|refusal| self.refused(refusal, means));
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
                return outcome.map_err(|refusal| self.refused(refusal, means));
            }
            self.step(leader, means)?;
        }
    }

    fn carry_out(&mut self, order: Order, leader: &Leader<'_>, means: &mut Means<'_, '_>) -> Result<(), RunError> {
        match order {
            Order::Tell(told) => {
                let mut by_host: BTreeMap<usize, Vec<(usize, &Command)>> = BTreeMap::new();
                for (index, command) in &told {
                    let (host, agent) = self.seats[*index];
                    by_host.entry(host).or_default().push((agent, command));
                }
                by_host.into_iter().try_for_each(|(host, told)| self.hosts[host].tell(&told))?;
            }
            Order::Figures(figures) => (means.context.news)(News::Figures(figures)),
            Order::Look { edge, at_ns } => {
                let looks = Host::look_all(&mut self.hosts)?;
                // Afterwards: whatever stops a process may do so while it reads.
                self.late_ns = self.late_ns.max(clock::now().saturating_sub(at_ns));
                match (edge, &mut means.faults) {
                    (Edge::Begin, _) => self.before = looks,
                    (Edge::End, faults) => {
                        self.after = looks;
                        let reach = self.reach(leader);
                        faults.as_mut().map_or(Ok(()), |faults| faults.finish(reach))?;
                    }
                }
            }
            Order::Draining => (means.context.news)(News::Phase(Phase::Draining)),
            Order::Struck(place) => {
                if let Some(faults) = &mut means.faults {
                    faults.struck(place, clock::now());
                }
            }
            Order::Drained => {
                self.drained_ns = Some(clock::now());
                if let Some(clocks) = &mut self.clocks {
                    clocks.compare_again(&mut self.hosts)?;
                }
                for series in in_lanes(self.hosts.iter_mut().collect(), Host::end_watch) {
                    self.used.extend(series?);
                }
            }
            // `follow` waits for each of these in its turn.
            Order::Deploy | Order::Begin => {}
        }
        Ok(())
    }

    /// Returns the parts that faults can affect.
    fn reach<'a>(&'a mut self, leader: &'a Leader<'_>) -> FaultTargets<'a, 'h> {
        FaultTargets {
            hosts: &mut self.hosts,
            members: &self.members,
            seats: &self.seats,
            plans: leader.agents(),
            link: self.link.as_ref().map(|_| self.server),
        }
    }

    /// Waits for an agent's next message, for the deadline of `Leader`, for the next fault, or until the next check for
    /// an interrupt.
    fn step(&mut self, leader: &mut Leader<'_>, means: &mut Means<'_, '_>) -> Result<(), RunError> {
        if means.context.interrupt.load(Ordering::Relaxed) {
            return Err(RunError::Interrupted);
        }
        let mut until_ns = leader.deadline_ns().unwrap_or(Ns::MAX);
        if let Some(faults) = means.faults.as_mut().filter(|_| leader.measures()) {
            faults.step(&mut self.reach(leader))?;
            until_ns = until_ns.min(faults.next_ns());
        }
        let left = Duration::from_nanos(until_ns.saturating_sub(clock::now())).min(LOOK);
        let heard = self.inbox.recv_timeout(left);
        self.look_for_limit(leader)?;
        match heard {
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(failed("all agents have gone")),
            Ok((host, _, Incoming::Lost)) => return Err(self.hosts[host].lost().into()),
            Ok((host, agent, incoming)) => {
                let from = self.numbers.get(host).and_then(|agents| agents.get(agent)).copied();
                let Some(from) = from else { return Ok(()) };
                let said = match incoming {
                    Incoming::Event(mut event) => {
                        self.hosts[host].clock().inward(&mut event);
                        AgentInput::Event(*event)
                    }
                    Incoming::Garbage(line) => AgentInput::Garbage(line),
                    Incoming::Closed | Incoming::Lost => AgentInput::Closed(self.hosts[host].agent_exit(agent)),
                };
                leader.handle(from, said, clock::now());
            }
        }
        leader.tick(clock::now());
        Ok(())
    }

    /// Notes that the run has failed: agents get no more commands, because one of them may not read them.
    pub fn give_up(&mut self) {
        in_lanes(self.hosts.iter_mut().collect(), |host| host.end_agents(false));
    }

    /// Returns the report of the server: of all its members.
    pub fn report(&mut self) -> Result<Option<ServerReport>, RunError> {
        let mut report: Option<ServerReport> = None;
        for host in &self.of_members {
            let of_host = self.hosts[*host].report()?;
            report = match (report, of_host) {
                (Some(report), Some(of_host)) => Some(report.and(of_host)),
                (report, of_host) => report.or(of_host),
            };
        }
        let started = report.as_mut().filter(|report| self.is_shared && report.deployment.attached.is_none());
        started.into_iter().for_each(|report| report.deployment.note_shared(self.served.0));
        Ok(report)
    }

    /// Returns why the server ended, if it has.
    pub fn server_exit(&mut self) -> Option<String> {
        let reason = self.of_members.iter().find_map(|host| self.hosts[*host].server_exit());
        reason.map(|reason| self.secrets.hide(&reason))
    }

    /// Returns why the link's proxy ended, if it has.
    pub fn link_exit(&mut self) -> Option<String> {
        self.link.as_ref().and_then(|_| self.hosts[self.server].link_exit())
    }

    /// Ends agents and link, and releases the server if another run may use it.
    pub fn release(&mut self) -> Option<ServerAtHand> {
        let (need, endpoints) = (self.need.take()?, self.endpoints.take()?);
        in_lanes(self.hosts.iter_mut().collect(), |host| host.end_agents(true));
        let server = self.hosts[self.server].release()?;
        let (served, position) = self.served;
        Some(ServerAtHand { need, server, endpoints, served: served + 1, position })
    }

    /// Ends all remaining processes: agents first, and on each host the link before the server.
    pub fn end(&mut self) {
        in_lanes(self.hosts.iter_mut().collect(), |host| host.end_agents(true));
        in_lanes(std::mem::take(&mut self.hosts), drop);
    }
}

/// Returns the processors that are bound by number, and the parts that they belong to.
fn bound(pin: &Pin) -> Vec<(&'static str, &[usize])> {
    match pin {
        Pin::Sets(sets) => sets.parts().into_iter().filter(|(_, processors)| !processors.is_empty()).collect(),
        Pin::None | Pin::Roles => Vec::new(),
    }
}

/// Returns a host's name as in records.
fn recorded(spec: &HostSpec) -> String {
    if spec.name == LOCAL { String::new() } else { spec.name.clone() }
}
