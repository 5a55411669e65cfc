//! A host on this or another machine: this machine is used by calls, another one over its
//! host connection.

use crate::deployment::DeployPlan;
use crate::doctor::DoctorCheck;
use crate::error::HostError;
use crate::folder::{PackedFolder, kept_at};
use crate::inbox::Outbox;
use crate::install::{self, Availability};
use crate::lines::{
    Attach, CheckAddress, CompareClock, CutNetwork, Deploy, EndAgents, EndClockWatch, EndNetworkCut, EndNetworkWatch,
    EndWatch, Examine, Facts, FindLeader, FindMissing, FindSystems, GetExitReason, GetFacts, GetLinkExit,
    GetLinkReport, GetServerExit, GetServerLimit, GetServerReport, GetServerUsage, HasFolder, HasJoined, Install,
    KeepAwake, KeepFolder, MachineSnapshot, MakeFolder, OpenLink, OrderResults, OrderServer, PutLink, RemoveLeftovers,
    ReservePorts, ServeClock, ServerUsed, SetMemberLinks, ShapeNetwork, SignalAgent, StartAgent, TakeServerEvents,
    TakeSnapshot, TearDown, Tell, Told, Watch, WatchClock, WatchNetwork, WatchSpan,
};
use crate::local::{Local, LocalRequest};
use crate::network::NetworkLook;
use crate::remote::Remote;
use crate::server::orders::{KeeperAnswer, KeeperOrder};
use crate::server::watch::ServerWatch;
use crate::shape::Shape;
use crate::standing::StandingServer;
use crate::system_file::SystemFile;
use pubmark_files as files;
use pubmark_model::host::{ClockOffset, ClockReading, HostSpec};
use pubmark_model::leftovers::{Leftovers, Removal};
use pubmark_model::line::JsonLine;
use pubmark_model::link::Link;
use pubmark_model::protocol::Command;
use pubmark_model::record::UsageSeries;
use pubmark_model::secret::Secrets;
use pubmark_model::server::ServerEndpoints;
use pubmark_model::server_reports::{LinkReport, ServerReport};
use pubmark_model::system::System;
use pubmark_model::units::Ns;
use pubmark_model::watch::ProcessSelector;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Maximum length of a line with commands for agents, bytes, unless one command is
/// longer.
const TOLD_BYTES: usize = 16 << 20;

enum Way {
    Here(Box<Local>),
    There(Box<Remote>),
}

/// A host of a run. All instants are on the coordinator's clock. Everything on it ends on
/// drop.
pub struct Host<'a> {
    /// Its specification.
    pub spec: HostSpec,
    way: Way,
    logs: PathBuf,
    secrets: Secrets,
    interrupt: &'a AtomicBool,
}

/// Settings of a run that all its hosts share.
pub struct SharedRunSettings<'a, 'w> {
    /// Command of the built-in agent, whose first word is `pubmark`.
    pub built_in: &'w [String],
    /// Folder of the logs.
    pub logs: &'w Path,
    /// Secrets that no message may contain.
    pub secrets: &'w Secrets,
    /// Set when the user interrupts.
    pub interrupt: &'a AtomicBool,
    /// Receives agents' lines, under the host's number and theirs.
    pub inbox: Outbox,
}

/// Removes secrets from a host's error: the host does not know them.
fn without(secrets: &Secrets, error: HostError) -> HostError {
    match error {
        HostError::Failed(text) => HostError::Failed(secrets.hide(&text)),
        other => other,
    }
}

impl<'a> Host<'a> {
    /// Connects to a host, under this number.
    pub fn open(spec: &HostSpec, number: usize, wanted: &SharedRunSettings<'a, '_>) -> Result<Host<'a>, HostError> {
        let (inbox, secrets) = (wanted.inbox.clone(), wanted.secrets.clone());
        let lost = {
            let inbox = inbox.clone();
            move || inbox.lost(number)
        };
        let way = if spec.reach.is_empty() {
            let hide = secrets.clone();
            let listener = Arc::new(move |agent: usize, line: Option<&[u8]>| inbox.put((number, agent), line, &hide));
            Way::Here(Box::new(Local::new(wanted.built_in, wanted.logs.to_owned(), secrets, listener)))
        } else {
            let program = wanted.built_in.first().ok_or("there is no program to start on another host")?;
            let said = move |agent: usize, line: Option<&[u8]>| inbox.put((number, agent), line, &secrets);
            let started = Remote::start(spec, program, said, lost);
            Way::There(Box::new(started.map_err(|error| without(wanted.secrets, error))?))
        };
        let (logs, secrets) = (wanted.logs.to_owned(), wanted.secrets.clone());
        Ok(Host { spec: spec.clone(), way, logs, secrets, interrupt: wanted.interrupt })
    }

    fn ask<R: LocalRequest>(&mut self, request: R) -> Result<R::Reply, HostError> {
        self.ask_until(request, self.interrupt)
    }

    fn ask_until<R: LocalRequest>(&mut self, request: R, interrupt: &AtomicBool) -> Result<R::Reply, HostError> {
        match &mut self.way {
            Way::Here(local) => request.answer(local, interrupt),
            Way::There(remote) => remote.ask(&request, interrupt).map_err(|error| without(&self.secrets, error)),
        }
    }

    /// Sends a request with an empty reply, without waiting for the reply.
    fn order_done(&mut self, request: impl LocalRequest<Reply = ()>) -> Result<(), HostError> {
        match &mut self.way {
            Way::Here(local) => request.answer(local, self.interrupt),
            Way::There(remote) => remote.order(&request).map_err(|error| without(&self.secrets, error)),
        }
    }

    /// Returns the error of a lost host, with its last output.
    pub fn lost(&mut self) -> HostError {
        match &mut self.way {
            Way::Here(_) => HostError::Failed(format!("host {} is lost", self.spec.name)),
            Way::There(remote) => without(&self.secrets, remote.gone()),
        }
    }

    /// Returns the offset of its clock from the coordinator's.
    pub fn clock(&self) -> ClockOffset {
        match &self.way {
            Way::Here(_) => ClockOffset::default(),
            Way::There(remote) => remote.clock,
        }
    }

    /// Sets the offset of its clock from now on; this machine's own offset does not
    /// change.
    pub fn set_clock(&mut self, clock: ClockOffset) {
        if let Way::There(remote) = &mut self.way {
            remote.clock = clock;
        }
    }

    /// Returns facts about the host.
    pub fn facts(&mut self) -> Result<Facts, HostError> {
        self.ask(GetFacts {})
    }

    /// Lets it answer clock questions of other hosts, at its address on the measured
    /// network. Returns the socket's address.
    pub fn tell_time(&mut self) -> Result<SocketAddr, HostError> {
        self.ask(ServeClock { address: self.address()? })
    }

    /// Returns the offset of the clock that answers at `with` from its own, over the
    /// measured network.
    pub fn compare_clock(&mut self, with: SocketAddr) -> Result<ClockReading, HostError> {
        self.ask(CompareClock { address: self.address()?, with })
    }

    /// Lets it compare the clock that answers at `with`, about once a second of a window.
    pub fn watch_clock(&mut self, with: SocketAddr, from_ns: Ns, length_ns: Option<Ns>) -> Result<(), HostError> {
        let (address, from_ns) = (self.address()?, self.clock().theirs(from_ns));
        self.order_done(WatchClock { address, with, from_ns, length_ns })
    }

    /// Returns its sightings of that clock within the window.
    pub fn clock_seen(&mut self, with: SocketAddr) -> Result<Vec<ClockReading>, HostError> {
        self.ask(EndClockWatch { with })
    }

    fn address(&self) -> Result<IpAddr, HostError> {
        let HostSpec { name, address, .. } = &self.spec;
        address.parse().map_err(|_| HostError::Failed(format!("host {name}: `{address}` is not an IP address")))
    }

    /// Takes its network down, for `for_ns`.
    pub fn cut_network(&mut self, for_ns: Ns) -> Result<(), HostError> {
        self.ask(CutNetwork { address: self.spec.address.clone(), for_ns })
    }

    /// Returns from when to when its network was down, ns.
    pub fn network_back(&mut self) -> Result<(Ns, Ns), HostError> {
        let clock = self.clock();
        let (from_ns, to_ns) = self.ask(EndNetworkCut {})?;
        Ok((clock.ours(from_ns), clock.ours(to_ns)))
    }

    /// Checks the host for causes of bad measurements.
    pub fn examine(&mut self) -> Result<Vec<DoctorCheck>, HostError> {
        self.ask(Examine {})
    }

    /// Checks that its configured address is one of its own.
    ///
    /// # Errors
    /// If it is not.
    pub fn check_address(&mut self) -> Result<(), HostError> {
        let asked = self.ask(CheckAddress { address: self.spec.address.clone() });
        self.named(asked)
    }

    /// Shapes its network as configured.
    ///
    /// # Errors
    /// If that is impossible: a run never uses another network than was asked for.
    pub fn shape(&mut self) -> Result<(), HostError> {
        let bandwidth = self.spec.bandwidth_bytes_per_s.map(Shape::Bandwidth);
        for shape in bandwidth.into_iter().chain(self.spec.loss_per_million.map(Shape::Loss)) {
            let asked = self.ask(ShapeNetwork { address: self.spec.address.clone(), shape });
            self.named(asked)?;
        }
        Ok(())
    }

    /// Adds its name as a host to an error of this machine.
    fn named(&self, asked: Result<(), HostError>) -> Result<(), HostError> {
        match &self.way {
            Way::Here(_) => {
                asked.map_err(|source| HostError::Host { name: self.spec.name.clone(), source: source.into() })
            }
            Way::There(_) => asked,
        }
    }

    /// Returns a system as this host knows it: if the system needs no installation, its
    /// folder is sent there.
    ///
    /// # Errors
    /// If the folder is too large to be sent, or cannot be stored there.
    pub fn bring(&mut self, system: &System) -> Result<SystemFile, HostError> {
        let needs_folder = !system.agent.built_in() || system.source.contains("{here}");
        let travels = system.brought && !system.here.is_empty() && needs_folder && !install::can(system);
        if !travels || matches!(self.way, Way::Here(_)) {
            return Ok(SystemFile::of(system));
        }
        let folder = PackedFolder::read(Path::new(&system.here))?;
        let here = kept_at(&folder.digest).display().to_string();
        if !self.ask(HasFolder { digest: folder.digest.clone() })? {
            self.ask(KeepFolder { folder })?;
        }
        Ok(SystemFile(Arc::new(System { here, ..system.clone() })))
    }

    /// Returns which of these systems can be used there.
    pub fn presences(&mut self, systems: &[&System]) -> Result<Vec<Availability>, HostError> {
        self.ask(FindSystems { systems: systems.iter().map(|system| SystemFile::of(system)).collect() })
    }

    /// Returns why a system cannot be used there, with advice; `None` if it can.
    /// `deployment` starts its server there, if given; `plays` is true if its clients
    /// play there.
    pub fn missing(
        &mut self,
        system: SystemFile,
        deployment: Option<String>,
        plays: bool,
    ) -> Result<Option<String>, HostError> {
        self.ask(FindMissing { system, deployment, plays })
    }

    /// Installs a system there, unless it is there.
    pub fn install(&mut self, system: SystemFile) -> Result<(), HostError> {
        self.ask(Install { system })
    }

    /// Starts an agent, whose number is one more than that of the one before. Without a
    /// system it is the built-in agent.
    pub fn start_agent(
        &mut self,
        name: &str,
        system: Option<SystemFile>,
        sends: bool,
        log: &str,
    ) -> Result<(), HostError> {
        let (name, log) = (name.to_owned(), log.to_owned());
        self.ask(StartAgent { name, system, sends, log })
    }

    /// Makes the folder of the run.
    pub fn make_folder(&mut self) -> Result<(), HostError> {
        self.ask(MakeFolder {})
    }

    /// Sends commands to agents by their numbers: in one line, unless it would be too
    /// long.
    pub fn tell(&mut self, told: &[(usize, &Command)]) -> Result<(), HostError> {
        let (mut words, mut bytes): (Vec<Told>, usize) = (Vec::new(), 0);
        let mut last = None;
        for (agent, command) in told {
            if let (Some(said), true) = (words.last_mut(), last == Some(*command)) {
                said.agents.push(*agent);
                continue;
            }
            let line = match &self.way {
                Way::Here(_) => command.to_json(),
                Way::There(remote) => remote.clock.outward(command).to_json(),
            };
            let line = line?;
            if bytes + line.len() > TOLD_BYTES && !words.is_empty() {
                self.order_done(Tell { words: std::mem::take(&mut words) })?;
                bytes = 0;
            }
            (bytes, last) = (bytes + line.len(), Some(*command));
            words.push(Told { agents: vec![*agent], line: String::from_utf8_lossy(&line).into_owned() });
        }
        if words.is_empty() { Ok(()) } else { self.order_done(Tell { words }) }
    }

    /// Stops an agent, or continues it.
    pub fn signal(&mut self, agent: usize, stop: bool) -> Result<(), HostError> {
        self.ask(SignalAgent { agent, stop })
    }

    /// Describes how an agent ended.
    pub fn agent_exit(&mut self, agent: usize) -> String {
        match self.ask(GetExitReason { agent }) {
            Ok(Some(reason)) => self.secrets.hide(&reason),
            Ok(None) => format!("host {} has no agent {agent}", self.spec.name),
            Err(error) => error.to_string(),
        }
    }

    /// Reserves ports for so many members of a server there. Returns the ports of each, by name.
    pub fn reserve_ports(&mut self, system: SystemFile, members: u32) -> Result<Vec<Vec<(String, u16)>>, HostError> {
        self.ask(ReservePorts { system, members })
    }

    /// Starts a server. Returns the endpoints for clients.
    pub fn deploy(&mut self, plan: DeployPlan) -> Result<ServerEndpoints, HostError> {
        self.ask(Deploy { plan })
    }

    /// Uses a server of an earlier run of this process, instead of starting one.
    pub fn adopt(&mut self, server: StandingServer) {
        if let Way::Here(local) = &mut self.way {
            local.adopt(server);
        }
    }

    /// Ends the agents and releases the server; `None` if it is on another machine.
    pub fn release(&mut self) -> Option<StandingServer> {
        match &mut self.way {
            Way::Here(local) => local.release(),
            Way::There(_) => None,
        }
    }

    /// Attaches to a running server, whose processes may be named.
    pub fn attach(&mut self, endpoint: &str, watch: Option<&ProcessSelector>) -> Result<(), HostError> {
        let (endpoint, watch) = (endpoint.to_owned(), watch.cloned());
        self.ask(Attach { endpoint, watch })
    }

    /// Puts a link before a server, at this host's address on the measured network.
    /// Returns the endpoint for clients.
    pub fn put_link(&mut self, link: Link, server: &str, log: &str) -> Result<String, HostError> {
        let (server, address, log) = (server.to_owned(), self.spec.address.clone(), log.to_owned());
        self.ask(PutLink { link, server, address, log })
    }

    /// Lets connections pass the link, or ends all of them and refuses new ones. Returns
    /// the two instants between which that happened, ns.
    pub fn open_link(&mut self, open: bool) -> Result<(Ns, Ns), HostError> {
        let clock = self.clock();
        let (from_ns, to_ns) = self.ask(OpenLink { open })?;
        Ok((clock.ours(from_ns), clock.ours(to_ns)))
    }

    /// Cuts the links between pairs of the server's members, numbered from 1, or repairs them. Returns the two instants
    /// between which that happened, ns.
    pub fn set_member_links(&mut self, pairs: &[(u32, u32)], open: bool) -> Result<(Ns, Ns), HostError> {
        let clock = self.clock();
        let (from_ns, to_ns) = self.ask(SetMemberLinks { pairs: pairs.to_vec(), open })?;
        Ok((clock.ours(from_ns), clock.ours(to_ns)))
    }

    /// Returns why the link's proxy ended, if it has; `None` for a lost host.
    pub fn link_exit(&mut self) -> Option<String> {
        self.ask(GetLinkExit {}).ok().flatten()
    }

    /// Returns the report on the link, if there is one.
    pub fn link_report(&mut self) -> Result<Option<LinkReport>, HostError> {
        self.ask(GetLinkReport {})
    }

    /// Returns a view of what the server uses, if it was started by this very process.
    pub fn server_watch(&self) -> Option<ServerWatch> {
        match &self.way {
            Way::Here(local) => local.server_watch(),
            Way::There(_) => None,
        }
    }

    /// Keeps its processors awake.
    pub fn keep_awake(&mut self) -> Result<(), HostError> {
        self.ask(KeepAwake {})
    }

    /// Samples the usage of server and agents.
    pub fn watch(&mut self, window: WatchSpan) -> Result<(), HostError> {
        let clock = self.clock();
        let (start_ns, from_ns) = (clock.theirs(window.start_ns), clock.theirs(window.from_ns));
        self.order_done(Watch { window: WatchSpan { start_ns, from_ns, ..window } })
    }

    /// Takes a snapshot of the interface that has an address, and has it sampled with the
    /// rest; `None` if no interface has it.
    pub fn network(&mut self, address: &str) -> Result<Option<NetworkLook>, HostError> {
        self.ask(WatchNetwork { address: address.to_owned() })
    }

    /// Ends the sampling of that interface. Returns the bytes that it sent between two
    /// instants.
    pub fn network_sent(&mut self, from_ns: Ns, to_ns: Ns) -> Result<Option<u64>, HostError> {
        let clock = self.clock();
        let (from_ns, to_ns) = (clock.theirs(from_ns), clock.theirs(to_ns));
        self.ask(EndNetworkWatch { from_ns, to_ns })
    }

    /// Takes a snapshot of every host's machine. All requests are sent before the first
    /// reply is read: the hosts take their snapshots at the same time, as far as their
    /// connections allow.
    ///
    /// # Errors
    /// If one does not answer.
    pub fn look_all(hosts: &mut [Host<'_>]) -> Result<Vec<MachineSnapshot>, HostError> {
        let ask = |host: &mut Host<'_>| match &mut host.way {
            Way::Here(_) => Ok(()),
            Way::There(remote) => remote.say(&TakeSnapshot {}),
        };
        let asked: Vec<Result<(), HostError>> = hosts.iter_mut().map(ask).collect();
        // All replies are read, even if one host has failed, so that no reply is taken for
        // another.
        let heard = hosts.iter_mut().zip(asked).map(|(host, asked)| asked.and_then(|()| host.hear_look()));
        heard.collect::<Vec<_>>().into_iter().collect()
    }

    fn hear_look(&mut self) -> Result<MachineSnapshot, HostError> {
        let heard = match &mut self.way {
            Way::Here(local) => TakeSnapshot {}.answer(local, self.interrupt),
            Way::There(remote) => remote.hear::<TakeSnapshot>(self.interrupt),
        };
        heard.map(|look| MachineSnapshot { at_ns: self.clock().ours(look.at_ns), ..look })
    }

    /// Ends the sampling. Returns what server and agents used, by time.
    pub fn end_watch(&mut self) -> Result<Option<UsageSeries>, HostError> {
        self.ask(EndWatch {})
    }

    /// Returns what the server and the link used in the window, or between two instants.
    pub fn server_used(&mut self, window: Option<(Ns, Ns)>) -> Result<ServerUsed, HostError> {
        let clock = self.clock();
        let window = window.map(|(from, to)| (clock.theirs(from), clock.theirs(to)));
        self.ask(GetServerUsage { window })
    }

    /// Stops, continues, kills or starts a member of the server.
    pub fn order(&mut self, member: &str, order: KeeperOrder) -> Result<(), HostError> {
        self.ask(OrderServer { member: member.to_owned(), order })
    }

    /// Returns the results of orders since the last call.
    pub fn happened(&mut self) -> Result<OrderResults, HostError> {
        let clock = self.clock();
        let mut happened = self.ask(TakeServerEvents {})?;
        for answer in &mut happened.answers {
            if let KeeperAnswer::Stopped(at)
            | KeeperAnswer::Continued(at)
            | KeeperAnswer::Killed(at)
            | KeeperAnswer::Restarted(at, _) = &mut answer.answer
            {
                *at = clock.ours(*at);
            }
        }
        Ok(happened)
    }

    /// True if every member of the server has joined its cluster.
    ///
    /// # Errors
    /// The host does not answer.
    pub fn has_joined(&mut self) -> Result<bool, HostError> {
        self.ask(HasJoined {})
    }

    /// Returns the number of the member that leads, from 1.
    ///
    /// # Errors
    /// No member names one, or the host does not answer.
    pub fn leader(&mut self) -> Result<u32, HostError> {
        self.ask(FindLeader {})
    }

    /// Returns why the server ended, if it has.
    pub fn server_exit(&mut self) -> Option<String> {
        self.ask(GetServerExit {}).unwrap_or_else(|error| Some(error.to_string()))
    }

    /// Returns the line of the server's log that reports a limit of the server itself; `None` if
    /// there is none, or the host is lost.
    pub fn server_limit(&mut self) -> Option<String> {
        self.ask(GetServerLimit {}).ok().flatten()
    }

    /// Returns the report on the server, as long as it runs; `None` at a second call.
    pub fn report(&mut self) -> Result<Option<ServerReport>, HostError> {
        self.ask(GetServerReport {})
    }

    /// Ends the agents; with `told`, those that read their input are sent `exit`.
    pub fn end_agents(&mut self, told: bool) {
        // A host that is lost has ended them.
        let _ = self.ask(EndAgents { told });
    }

    /// Removes what the clients of a run have left at a server, even after an interrupt.
    ///
    /// # Errors
    /// If the host fails, or is lost.
    pub fn remove(&mut self, leftovers: &Leftovers) -> Result<Removal, HostError> {
        let removal = self.ask_until(RemoveLeftovers { leftovers: leftovers.clone() }, &AtomicBool::new(false))?;
        Ok(Removal { why: removal.why.map(|why| self.secrets.hide(&why)), ..removal })
    }
}

impl Drop for Host<'_> {
    fn drop(&mut self) {
        if let Way::There(remote) = &mut self.way {
            // Its logs are fetched even after an interrupt.
            let never = AtomicBool::new(false);
            if let Ok(logs) = remote.ask(&TearDown {}, &never) {
                for (name, text) in logs.iter().filter(|(_, text)| !text.is_empty()) {
                    // Whatever its name is, it is stored in this folder.
                    let name = Path::new(name).file_name().unwrap_or_default();
                    let text = self.secrets.hide(text);
                    let _ = files::replace(&self.logs.join(name), |out| out.write_all(text.as_bytes()));
                }
            }
        }
    }
}
