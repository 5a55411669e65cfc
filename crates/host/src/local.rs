//! This machine as a host: the processes of a run that are here.

use crate::agent::{Agent, AgentCommand};
use crate::awake::Awake;
use crate::clock;
use crate::cut::Cut;
use crate::deployed::{Deployed, Here};
use crate::doctor;
use crate::error::HostError;
use crate::exchange::{ClockServer, ClockWatch, compare};
use crate::folder;
use crate::install::{self, library};
use crate::lines::{Facts, Happened, HostReply, HostRequest, Look, ServerUsed, Told, WatchSpan};
use crate::machine::{self, Ticks};
use crate::network::{self, NetworkWatch};
use crate::proxy::{Proxy, ProxyPlan};
use crate::quota::Quota;
use crate::removal;
use crate::scratch::Scratch;
use crate::server::watch::ServerWatch;
use crate::shape::Shaped;
use crate::standing::StandingServer;
use crate::system_file::SystemFile;
use crate::usage::{self, UsageWatch};
use nix::sys::signal::Signal;
use pubmark_model::protocol::Command;
use pubmark_model::secret::Secrets;
use std::collections::BTreeMap;
use std::net::{SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Is told each line of an agent by its number, and at last none.
pub type AgentLines = Arc<dyn Fn(usize, Option<&[u8]>) + Send + Sync>;

/// The processes of a run on this machine. They end when this is dropped.
pub struct Local {
    /// The program of agents that are built in, with its arguments.
    built_in: Vec<String>,
    logs: PathBuf,
    secrets: Secrets,
    listener: AgentLines,
    agents: Vec<Agent>,
    awake: Option<Awake>,
    time: Option<ClockServer>,
    /// The clocks that are watched, by where they answer.
    clocks: BTreeMap<SocketAddr, ClockWatch>,
    cut: Option<Cut>,
    shaped: Vec<Shaped>,
    usage: Option<UsageWatch>,
    /// The interface that is to be watched, and the watch.
    interface: Option<String>,
    network: Option<NetworkWatch>,
    /// Ends before the server does.
    link: Option<Proxy>,
    /// Dropped before its folder is.
    deployed: Deployed,
    /// The folder of a server that another run has started.
    server_folder: Option<Scratch>,
    scratch: Scratch,
    /// Whether agents have been told to go, or have been ended.
    ended: bool,
}

impl Local {
    /// With nothing yet. `built_in` is the command of the agent that is built
    /// in, whose first word is `pubmark`.
    pub fn new(built_in: &[String], logs: PathBuf, secrets: Secrets, listener: AgentLines) -> Local {
        Local {
            built_in: built_in.to_vec(),
            logs,
            secrets,
            listener,
            agents: Vec::new(),
            awake: None,
            time: None,
            clocks: BTreeMap::new(),
            cut: None,
            shaped: Vec::new(),
            usage: None,
            interface: None,
            network: None,
            link: None,
            deployed: Deployed::Nothing,
            server_folder: None,
            scratch: Scratch::planned(),
            ended: false,
        }
    }

    /// The folder of the run, which is there once it has been made.
    pub fn scratch(&self) -> &Path {
        self.scratch.path()
    }

    /// Does what is wanted.
    pub fn answer(&mut self, request: HostRequest, interrupt: &AtomicBool) -> Result<HostReply, HostError> {
        match request {
            HostRequest::Facts => return Ok(HostReply::Facts(self.facts())),
            HostRequest::TellTime { address } => {
                let server = ClockServer::start(address).map_err(HostError::io("no socket to tell the time"))?;
                let at = server.at;
                self.time = Some(server);
                return Ok(HostReply::At(at));
            }
            HostRequest::CompareClock { address, with } => {
                let found = compare(address, with).map_err(HostError::io("clocks cannot be compared"))?;
                return Ok(HostReply::Clock(found));
            }
            HostRequest::WatchClock { address, with, from_ns, length_ns } => {
                let watch = ClockWatch::start(address, with, from_ns, length_ns);
                self.clocks.insert(with, watch.map_err(HostError::io("a clock cannot be watched"))?);
            }
            HostRequest::ClockSeen { with } => {
                let seen = self.clocks.remove(&with).map_or_else(Vec::new, ClockWatch::finish);
                return Ok(HostReply::Sightings(seen));
            }
            HostRequest::Examine => return Ok(HostReply::Checkups(doctor::examine())),
            HostRequest::Owns { address } => {
                // Only what is its own can be listened at.
                let port = UdpSocket::bind((address.as_str(), 0));
                port.map_err(|error| format!("{address} is no address of its own ({error})"))?;
            }
            HostRequest::Systems(systems) => {
                let look = |system: &SystemFile| library::presence(&system.0, &self.built_in);
                return Ok(HostReply::Presences(systems.iter().map(look).collect()));
            }
            HostRequest::Missing { system, deployment, plays } => {
                let server = deployment.and_then(|deployment| install::server_missing(&system.0, &deployment));
                let clients = || plays.then(|| library::clients_missing(&system.0, &self.built_in)).flatten();
                return Ok(HostReply::Reason(server.or_else(clients)));
            }
            HostRequest::Install(system) => install::install(&system.0, &|_| {})?,
            HostRequest::HasFolder { digest } => return Ok(HostReply::Has(folder::is_kept(&digest))),
            HostRequest::KeepFolder(folder) => folder.keep()?,
            HostRequest::Agent { name, system, sends, log } => return self.start_agent(&name, system, sends, &log),
            HostRequest::MakeFolder => {
                self.scratch.make().map_err(HostError::io("no folder for sockets"))?;
            }
            HostRequest::Tell { words } => {
                for Told { agents, line } in words {
                    for agent in agents {
                        self.agents.get_mut(agent).into_iter().for_each(|agent| agent.tell_line(line.clone().into()));
                    }
                }
            }
            HostRequest::Signal { agent, stop } => {
                let signal = if stop { Signal::SIGSTOP } else { Signal::SIGCONT };
                self.agents.get(agent).into_iter().for_each(|agent| agent.signal(signal));
            }
            HostRequest::ExitReason { agent } => {
                return Ok(HostReply::Reason(self.agents.get_mut(agent).map(Agent::exit_reason)));
            }
            HostRequest::Deploy(plan) => {
                let program = self.program();
                let (scratch, logs) = (self.scratch.path(), self.logs.as_path());
                let here = Here { scratch, logs, program: &program, secrets: &self.secrets, interrupt };
                self.deployed = Deployed::start(&plan, &here)?;
                return Ok(HostReply::Endpoint(self.deployed.endpoint().unwrap_or_default().to_owned()));
            }
            HostRequest::Attach { endpoint, watch } => {
                self.deployed = Deployed::attach(&endpoint, watch.as_ref())?;
            }
            HostRequest::PutLink { link, server, address, log } => {
                let plan = ProxyPlan {
                    dir: self.scratch.path().join("link"),
                    log: self.logs.join(log),
                    program: self.program(),
                    secrets: self.secrets.clone(),
                    interrupt,
                };
                let proxy = Proxy::open(&link, &server, &address, plan)?;
                let endpoint = proxy.endpoint().to_owned();
                self.link = Some(proxy);
                return Ok(HostReply::Endpoint(endpoint));
            }
            HostRequest::OpenLink(open) => {
                let link = self.link.as_ref().ok_or("there is no link here")?;
                let from_ns = clock::now();
                if open { link.mend() } else { link.cut() }?;
                return Ok(HostReply::Switched(from_ns, clock::now()));
            }
            HostRequest::LinkExit => {
                return Ok(HostReply::Reason(self.link.as_mut().and_then(Proxy::exit_reason)));
            }
            HostRequest::LinkReport => return Ok(HostReply::Link(self.link.as_mut().map(Proxy::report))),
            HostRequest::CutNetwork { address, for_ns } => self.cut = Some(Cut::start(&address, for_ns)?),
            HostRequest::NetworkBack => {
                let cut = self.cut.take().ok_or("its network was not cut")?;
                let (from_ns, to_ns) = cut.back()?;
                return Ok(HostReply::Down(from_ns, to_ns));
            }
            HostRequest::Shape { address, shape } => self.shaped.push(Shaped::start(&address, shape)?),
            HostRequest::Awake => self.awake = Some(Awake::start()?),
            HostRequest::Watch(window) => self.watch(window),
            HostRequest::Network { address } => {
                let seen = network::look(&address);
                self.interface = seen.as_ref().map(|seen| seen.interface.clone());
                return Ok(HostReply::Network(seen));
            }
            HostRequest::NetworkSent { from_ns, to_ns } => {
                return Ok(HostReply::Sent(self.network.take().and_then(|watch| watch.finish(from_ns, to_ns))));
            }
            HostRequest::Look => {
                self.awake.as_mut().and_then(Awake::gone).map_or(Ok(()), |why| Err(HostError::Failed(why)))?;
                let beside =
                    self.awake.as_ref().map_or(0, Awake::cpu_ns).saturating_add(self.deployed.keepers_cpu_ns());
                let own_cpu_ns = clock::process_cpu().saturating_add(beside);
                let (at_ns, ticks, quota) = (clock::now(), Ticks::now(), Quota::now());
                let agents = self.agents.iter().map(|agent| usage::used_by(agent.pid())).collect();
                return Ok(HostReply::Look(Look { at_ns, ticks, own_cpu_ns, quota, agents }));
            }
            HostRequest::EndWatch => return Ok(HostReply::Series(self.usage.take().and_then(UsageWatch::finish))),
            HostRequest::ServerUsed { window } => {
                let cpu_ns = self.deployed.cpu_ns(window) + self.link.as_mut().map_or(0, |link| link.cpu_ns(window));
                return Ok(HostReply::Used(ServerUsed { cpu_ns, late_ns: self.deployed.late_ns() }));
            }
            HostRequest::Order { member, order } => self.deployed.order(&member, order)?,
            HostRequest::Happened => {
                let answers = self.deployed.happened();
                return Ok(HostReply::Happened(Happened { answers, listens: self.deployed.is_listening() }));
            }
            HostRequest::ServerExit => return Ok(HostReply::Reason(self.deployed.exit_reason())),
            HostRequest::ServerLimit => return Ok(HostReply::Reason(self.deployed.limit_reached())),
            HostRequest::Report => return Ok(HostReply::Report(self.deployed.report().map(Box::new))),
            HostRequest::EndAgents { told } => self.end_agents(told),
            HostRequest::Remove(leftovers) => {
                return Ok(HostReply::Removed(removal::remove(&self.program(), &leftovers)?));
            }
            HostRequest::TearDown => {
                self.end_agents(true);
                self.link = None;
                self.deployed = Deployed::Nothing;
                self.scratch.remove();
            }
        }
        Ok(HostReply::Done)
    }

    /// A look at what the server uses, if it was started here.
    pub fn server_watch(&self) -> Option<ServerWatch> {
        self.deployed.look()
    }

    /// The `pubmark` program.
    fn program(&self) -> PathBuf {
        self.built_in.first().map(PathBuf::from).unwrap_or_default()
    }

    /// Has this server in the place of one that is started.
    pub fn adopt(&mut self, server: StandingServer) {
        (self.deployed, self.server_folder) = (server.deployed, Some(server.scratch));
    }

    /// Ends the agents, and lets go of the server that was started here or for a run
    /// before; none where there is no such one.
    pub fn release(&mut self) -> Option<StandingServer> {
        self.end_agents(true);
        self.link = None;
        if !self.deployed.keeps() {
            return None;
        }
        let mut deployed = std::mem::replace(&mut self.deployed, Deployed::Nothing);
        deployed.end_watch();
        deployed.forget_limit();
        // Its keeper removes the folder of the run for which it was started.
        let own = || std::mem::replace(&mut self.scratch, Scratch::planned());
        let scratch = self.server_folder.take().unwrap_or_else(own);
        Some(StandingServer { deployed, scratch })
    }

    fn facts(&self) -> Facts {
        Facts {
            clock_ns: clock::now(),
            scratch: self.scratch.path().display().to_string(),
            cpus: machine::usable_cpus(),
            isolated: machine::isolated_cpus(),
            connections: machine::files_for_connections(),
            files: machine::open_files(),
            memory_bytes: machine::memory_bytes(),
            ports: machine::ports(),
            machine: machine::boot_id(),
            network: machine::network(),
        }
    }

    fn start_agent(
        &mut self,
        name: &str,
        system: Option<SystemFile>,
        sends: bool,
        log: &str,
    ) -> Result<HostReply, HostError> {
        let command = match system {
            // It was started here, and knows nothing of a file's folder.
            None => AgentCommand { words: self.built_in.clone(), ..AgentCommand::default() },
            Some(system) => install::own_agent(&system.0, sends)?,
        };
        let (index, listener) = (self.agents.len(), self.listener.clone());
        let say = move |line: Option<&[u8]>| listener(index, line);
        let agent = Agent::start_command(&command, name, &self.logs.join(log), self.scratch.path(), &self.secrets, say)
            .map_err(HostError::io(format!("agent `{}` could not be started", command.words.join(" "))))?;
        let pid = agent.pid();
        self.agents.push(agent);
        Ok(HostReply::Process(pid))
    }

    fn watch(&mut self, WatchSpan { start_ns, from_ns, length_ns, slice_ns }: WatchSpan) {
        let agents = self.agents.iter().map(Agent::pid);
        let usage = UsageWatch::start(self.deployed.watched(), agents, start_ns..from_ns, slice_ns);
        self.deployed.watch(from_ns, length_ns, usage.looker());
        self.link.iter_mut().for_each(|link| link.watch(from_ns, length_ns));
        self.usage = Some(usage);
        self.network = self.interface.clone().map(|name| NetworkWatch::start(name, from_ns, length_ns));
    }

    /// One that is told to exit removes no folder: unless a keeper does, it is
    /// removed before, so that there is no moment at which nobody would.
    fn end_agents(&mut self, told: bool) {
        if self.ended {
            return;
        }
        self.ended = true;
        if told {
            if !self.deployed.keeps() || self.server_folder.is_some() {
                self.scratch.remove();
            }
            self.agents.iter_mut().for_each(|agent| agent.tell(&Command::Exit {}));
        }
        Agent::finish_all(&mut self.agents);
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        self.awake = None;
        self.end_agents(true);
    }
}
