//! This machine as a host: the processes of a run that are here.

use crate::agent::{Agent, AgentCommand};
use crate::clock;
use crate::cut::NetworkCut;
use crate::deployment::{self, Deployed, HostFolders};
use crate::doctor;
use crate::error::HostError;
use crate::exchange::{ClockServer, ClockWatch, compare};
use crate::folder;
use crate::install::{self, library};
use crate::lines::{
    Attach, CheckAddress, CompareClock, CutNetwork, Deploy, EndAgents, EndClockWatch, EndNetworkCut, EndNetworkWatch,
    EndWatch, Examine, Facts, FindLeader, FindMissing, FindSystems, GetExitReason, GetFacts, GetLinkExit,
    GetLinkReport, GetServerExit, GetServerLimit, GetServerReport, GetServerUsage, HasFolder, HasJoined, Install,
    KeepAwake, KeepFolder, MachineSnapshot, MakeFolder, OpenLink, OrderResults, OrderServer, PutLink, RemoveLeftovers,
    Request, RequestLine, ReservePorts, ServeClock, ServerUsed, SetMemberLinks, ShapeNetwork, SignalAgent, StartAgent,
    TakeServerEvents, TakeSnapshot, TearDown, Tell, Told, Watch, WatchClock, WatchNetwork, WatchSpan,
};
use crate::log;
use crate::machine::{self, Ticks};
use crate::network::{self, NetworkWatch};
use crate::proxy::{Proxy, ProxyPlan};
use crate::quota::Quota;
use crate::removal;
use crate::scratch::Scratch;
use crate::server::watch::ServerWatch;
use crate::shape::Shaped;
use crate::spinner::Spinners;
use crate::standing::StandingServer;
use crate::usage::{self, UsageWatch};
use nix::sys::signal::Signal;
use pubmark_model::protocol::Command;
use pubmark_model::secret::Secrets;
use serde_json::Value;
use std::collections::BTreeMap;
use std::net::{SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Gets each line of an agent with the agent's number, and `None` at the end.
pub type AgentLines = Arc<dyn Fn(usize, Option<&[u8]>) + Send + Sync>;

/// The processes of a run on this machine. They end on drop.
pub struct Local {
    /// Program and arguments of the built-in agent.
    built_in: Vec<String>,
    logs: PathBuf,
    secrets: Secrets,
    listener: AgentLines,
    agents: Vec<Agent>,
    awake: Option<Spinners>,
    time: Option<ClockServer>,
    /// Comparisons with other clocks, by the address at which they answer.
    clocks: BTreeMap<SocketAddr, ClockWatch>,
    cut: Option<NetworkCut>,
    shaped: Vec<Shaped>,
    usage: Option<UsageWatch>,
    /// The interface to sample, and its sampling.
    interface: Option<String>,
    network: Option<NetworkWatch>,
    /// Ends before the server does.
    link: Option<Proxy>,
    /// Dropped before its folder is.
    deployed: Deployed,
    /// The folder of a server that another run has started.
    server_folder: Option<Scratch>,
    scratch: Scratch,
    /// True if the agents were sent `exit`, or were ended.
    ended: bool,
}

impl Local {
    /// Makes a host without processes. `built_in` is the command of the built-in agent,
    /// whose first word is `pubmark`.
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

    /// Returns the folder of the run, which exists once it has been made.
    pub fn scratch(&self) -> &Path {
        self.scratch.path()
    }

    /// Returns a view of what the server uses, if it was started here.
    pub fn server_watch(&self) -> Option<ServerWatch> {
        self.deployed.look()
    }

    /// Returns the `pubmark` program.
    fn program(&self) -> PathBuf {
        self.built_in.first().map(PathBuf::from).unwrap_or_default()
    }

    /// Uses this server instead of starting one.
    pub fn adopt(&mut self, server: StandingServer) {
        (self.deployed, self.server_folder) = (server.deployed, Some(server.scratch));
    }

    /// Ends the agents, and releases the server that was started here or for an earlier
    /// run; `None` if there is no such server.
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

    fn start_agent(&mut self, request: StartAgent) -> Result<(), HostError> {
        let StartAgent { name, system, sends, log } = request;
        let command = match system {
            // It was started here, and needs no folder of a system file.
            None => AgentCommand { words: self.built_in.clone(), ..AgentCommand::default() },
            Some(system) => install::own_agent(&system.0, sends)?,
        };
        let (index, listener) = (self.agents.len(), self.listener.clone());
        let say = move |line: Option<&[u8]>| listener(index, line);
        let agent =
            Agent::start_command(&command, &name, &self.logs.join(log), self.scratch.path(), &self.secrets, say)
                .map_err(HostError::io(format!("agent `{}` could not be started", command.words.join(" "))))?;
        self.agents.push(agent);
        Ok(())
    }

    fn snapshot(&mut self) -> Result<MachineSnapshot, HostError> {
        self.awake.as_mut().and_then(Spinners::gone).map_or(Ok(()), |why| Err(HostError::Failed(why)))?;
        let awake_ns = self.awake.as_ref().map_or(0, Spinners::cpu_ns);
        let beside_ns = awake_ns.saturating_add(self.deployed.keepers_cpu_ns());
        let own_cpu_ns = clock::process_cpu().saturating_add(beside_ns);
        let (at_ns, ticks, quota) = (clock::now(), Ticks::now(), Quota::now());
        let agents = self.agents.iter().map(|agent| usage::used_by(agent.pid())).collect();
        Ok(MachineSnapshot { at_ns, ticks, own_cpu_ns, quota, agents })
    }

    fn watch(&mut self, WatchSpan { start_ns, from_ns, length_ns, slice_ns }: WatchSpan) {
        let agents = self.agents.iter().map(Agent::pid);
        let usage = UsageWatch::start(self.deployed.watched(), agents, start_ns..from_ns, slice_ns);
        self.deployed.watch(from_ns, length_ns, usage.looker());
        self.link.iter_mut().for_each(|link| link.watch(from_ns, length_ns));
        self.usage = Some(usage);
        self.network = self.interface.clone().map(|name| NetworkWatch::start(name, from_ns, length_ns));
    }

    /// An agent that is sent `exit` removes no folder. Unless a keeper does, the folder
    /// is removed before, so that at every moment something would remove it.
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

/// A request that this machine can answer.
pub trait LocalRequest: Request {
    /// Performs the request.
    fn answer(self, local: &mut Local, interrupt: &AtomicBool) -> Result<Self::Reply, HostError>;
}

/// Answers a request of another machine; `None` if the request is unknown.
pub fn answer(line: RequestLine<Value>, local: &mut Local, interrupt: &AtomicBool) -> Option<Result<Value, HostError>> {
    ANSWERS
        .iter()
        .find(|(name, _)| *name == line.request)
        .and_then(|(_, answer)| answer(line.parameters, local, interrupt))
}

/// Reads a request, answers it, and writes the reply.
type AnswerValue = fn(Value, &mut Local, &AtomicBool) -> Option<Result<Value, HostError>>;

fn answer_value<R: LocalRequest>(
    parameters: Value,
    local: &mut Local,
    interrupt: &AtomicBool,
) -> Option<Result<Value, HostError>> {
    let request: R = serde_json::from_value(parameters).ok()?;
    Some(request.answer(local, interrupt).and_then(|reply| Ok(serde_json::to_value(reply)?)))
}

/// Defines how each request is answered, and the table of all of them.
macro_rules! answers {
    ($(($name:ident, $answer:expr)),+ $(,)?) => {
        $(impl LocalRequest for $name {
            fn answer(self, local: &mut Local, interrupt: &AtomicBool) -> Result<Self::Reply, HostError> {
                let answer: fn($name, &mut Local, &AtomicBool) -> Result<<$name as Request>::Reply, HostError> = $answer;
                answer(self, local, interrupt)
            }
        })+

        /// Every request, by its name.
        const ANSWERS: &[(&str, AnswerValue)] = &[$(($name::NAME, answer_value::<$name>)),+];
    };
}

answers!(
    (GetFacts, |_, local, _| Ok(local.facts())),
    (CheckAddress, |CheckAddress { address }, _, _| {
        // Only own addresses can be bound.
        let port = UdpSocket::bind((address.as_str(), 0));
        port.map(drop).map_err(|error| format!("{address} is not an address of its own ({error})").into())
    }),
    (ServeClock, |ServeClock { address }, local, _| {
        let server = ClockServer::start(address).map_err(HostError::io("no socket to tell the time"))?;
        Ok(local.time.insert(server).at)
    }),
    (CompareClock, |CompareClock { address, with }, _, _| {
        compare(address, with).map_err(HostError::io("clocks cannot be compared"))
    }),
    (WatchClock, |WatchClock { address, with, from_ns, length_ns }, local, _| {
        let watch = ClockWatch::start(address, with, from_ns, length_ns);
        local.clocks.insert(with, watch.map_err(HostError::io("a clock cannot be watched"))?);
        Ok(())
    }),
    (EndClockWatch, |EndClockWatch { with }, local, _| {
        Ok(local.clocks.remove(&with).map_or_else(Vec::new, ClockWatch::finish))
    }),
    (Examine, |_, _, _| Ok(doctor::examine())),
    (FindSystems, |FindSystems { systems }, local, _| {
        Ok(systems.iter().map(|system| library::presence(&system.0, &local.built_in)).collect())
    }),
    (FindMissing, |FindMissing { system, deployment, plays }, local, _| {
        let server = deployment.and_then(|deployment| install::server_missing(&system.0, &deployment));
        let clients = || plays.then(|| library::clients_missing(&system.0, &local.built_in)).flatten();
        Ok(server.or_else(clients))
    }),
    (Install, |Install { system }, _, _| install::install(&system.0, &|_| {})),
    (HasFolder, |HasFolder { digest }, _, _| Ok(folder::is_kept(&digest))),
    (KeepFolder, |KeepFolder { folder }, _, _| folder.keep()),
    (StartAgent, |request, local, _| local.start_agent(request)),
    (MakeFolder, |_, local, _| local.scratch.make().map(drop).map_err(HostError::io("no folder for sockets"))),
    (Tell, |Tell { words }, local, _| {
        for Told { agents, line } in words {
            for agent in agents {
                local.agents.get_mut(agent).into_iter().for_each(|agent| agent.tell_line(line.clone().into()));
            }
        }
        Ok(())
    }),
    (SignalAgent, |SignalAgent { agent, stop }, local, _| {
        let signal = if stop { Signal::SIGSTOP } else { Signal::SIGCONT };
        local.agents.get(agent).into_iter().for_each(|agent| agent.signal(signal));
        Ok(())
    }),
    (GetExitReason, |GetExitReason { agent }, local, _| Ok(local.agents.get_mut(agent).map(Agent::exit_reason))),
    (ReservePorts, |ReservePorts { system, members }, _, _| deployment::reserve_ports(&system.0, members)),
    (Deploy, |Deploy { plan }, local, interrupt| {
        let program = local.program();
        let (scratch, logs) = (local.scratch.path(), local.logs.as_path());
        let here = HostFolders { scratch, logs, program: &program, secrets: &local.secrets, interrupt };
        local.deployed = Deployed::start(&plan, &here)?;
        Ok(local.deployed.endpoints().unwrap_or_default())
    }),
    (Attach, |Attach { endpoint, watch }, local, _| {
        local.deployed = Deployed::attach(&endpoint, watch.as_ref())?;
        Ok(())
    }),
    (PutLink, |PutLink { link, server, address, log }, local, interrupt| {
        let plan = ProxyPlan {
            dir: local.scratch.path().join("link"),
            log: local.logs.join(log),
            program: local.program(),
            secrets: local.secrets.clone(),
            interrupt,
        };
        let proxy = Proxy::open(&link, &server, &address, plan)?;
        Ok(local.link.insert(proxy).endpoint().to_owned())
    }),
    (OpenLink, |OpenLink { open }, local, _| {
        let link = local.link.as_ref().ok_or("there is no link here")?;
        let from_ns = clock::now();
        if open { link.mend() } else { link.cut() }?;
        Ok((from_ns, clock::now()))
    }),
    (SetMemberLinks, |SetMemberLinks { pairs, open }, local, _| local.deployed.set_member_links(&pairs, open)),
    (GetLinkExit, |_, local, _| Ok(local.link.as_mut().and_then(Proxy::exit_reason))),
    (GetLinkReport, |_, local, _| Ok(local.link.as_mut().map(Proxy::report))),
    (CutNetwork, |CutNetwork { address, for_ns }, local, _| {
        local.cut = Some(NetworkCut::start(&address, for_ns)?);
        Ok(())
    }),
    (EndNetworkCut, |_, local, _| local.cut.take().ok_or("its network was not cut")?.back()),
    (ShapeNetwork, |ShapeNetwork { address, shape }, local, _| {
        local.shaped.push(Shaped::start(&address, shape)?);
        Ok(())
    }),
    (KeepAwake, |_, local, _| {
        local.awake = Some(Spinners::start()?);
        Ok(())
    }),
    (WatchNetwork, |WatchNetwork { address }, local, _| {
        let seen = network::look(&address);
        local.interface = seen.as_ref().map(|seen| seen.interface.clone());
        Ok(seen)
    }),
    (EndNetworkWatch, |EndNetworkWatch { from_ns, to_ns }, local, _| {
        Ok(local.network.take().and_then(|watch| watch.finish(from_ns, to_ns)))
    }),
    (Watch, |Watch { window }, local, _| {
        local.watch(window);
        Ok(())
    }),
    (TakeSnapshot, |_, local, _| local.snapshot()),
    (EndWatch, |_, local, _| Ok(local.usage.take().and_then(UsageWatch::finish))),
    (GetServerUsage, |GetServerUsage { window }, local, _| {
        let of_link = local.link.as_mut().map_or(0, |link| link.cpu_ns(window));
        let cpu_ns = local.deployed.cpu_ns(window).saturating_add(of_link);
        Ok(ServerUsed { cpu_ns, late_ns: local.deployed.late_ns() })
    }),
    (OrderServer, |OrderServer { member, order }, local, _| local.deployed.order(&member, order)),
    (TakeServerEvents, |_, local, _| {
        let answers = local.deployed.happened();
        Ok(OrderResults { answers, listens: local.deployed.is_listening() })
    }),
    (HasJoined, |_, local, _| Ok(local.deployed.has_joined())),
    (FindLeader, |_, local, _| local.deployed.leader()),
    (GetServerExit, |_, local, _| Ok(local.deployed.exit_reason())),
    (GetServerLimit, |_, local, _| Ok(local.deployed.limit_reached())),
    (GetServerReport, |_, local, _| Ok(local.deployed.report())),
    (EndAgents, |EndAgents { told }, local, _| {
        local.end_agents(told);
        Ok(())
    }),
    (RemoveLeftovers, |RemoveLeftovers { leftovers }, local, _| removal::remove(&local.program(), &leftovers)),
    (TearDown, |_, local, _| {
        local.end_agents(true);
        local.link = None;
        local.deployed = Deployed::Nothing;
        local.scratch.remove();
        Ok(log::ends_of(&local.logs))
    }),
);

impl Drop for Local {
    fn drop(&mut self) {
        self.awake = None;
        self.end_agents(true);
    }
}
