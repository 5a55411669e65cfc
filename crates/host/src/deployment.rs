//! The server that clients connect to: attached, or started for them.

use crate::cache::cache_folder;
use crate::error::HostError;
use crate::lanes::in_lanes;
use crate::server::certificates::Certificates;
use crate::server::cluster::Cluster;
use crate::server::container::Engine;
use crate::server::mesh::Mesh;
use crate::server::orders::{KeeperAnswer, KeeperOrder};
use crate::server::sample::{ProcessShare, SampledProcesses, Sampler, ServerUsage};
use crate::server::watch::ServerWatch;
use crate::server::{GRACE_MS, Server, ServerEnd, StartPlan, attachment, password, processes};
use crate::system_file::SystemFile;
use crate::usage::SnapshotTrigger;
use crate::{install, machine};
use pubmark_model::cell::Limits;
use pubmark_model::endpoint::Endpoint;
use pubmark_model::options::Options;
use pubmark_model::power::Power;
use pubmark_model::record::{AppliedLimits, Attached, Deployment, ServerProcess};
use pubmark_model::secret::Secrets;
use pubmark_model::server::{Places, ServerEndpoints, ServerLogin, ServerSpec};
use pubmark_model::server_reports::ServerReport;
use pubmark_model::system::System;
use pubmark_model::units::{Ns, SECOND};
use pubmark_model::watch::ProcessSelector;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Interval at which members are asked whether they have joined.
const JOINING: Duration = Duration::from_millis(20);

/// The plan of a server to start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeployPlan {
    /// The system.
    pub system: SystemFile,
    /// `native`, `container`, or the name of a container engine.
    pub deployment: String,
    /// Limits on processors and memory.
    pub limits: Limits,
    /// True if subscriptions outlive it.
    pub durable: bool,
    /// File system below its folder, if a fault of the run cuts its power or fills it.
    #[serde(default)]
    pub own_disk: Option<Power>,
    /// True if links between its members are cut in the run: they have networks of their own.
    #[serde(default)]
    pub own_networks: bool,
    /// True if it uses TLS.
    #[serde(default)]
    pub tls: bool,
    /// Processors that it is bound to; if empty, the kernel places it.
    #[serde(default)]
    pub processors: Vec<usize>,
    /// All options of the system.
    pub options: Options,
    /// User and password of the clients, if the server can be configured with them.
    #[serde(default)]
    pub login: Option<(String, String)>,
    /// Its members on this host: one, unless it is a cluster.
    pub members: Vec<MemberPlan>,
    /// All its members, by number, if some are on other hosts; otherwise empty.
    #[serde(default)]
    pub everywhere: Vec<MemberSeat>,
}

/// The place of a server's member, as the other members reach it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MemberSeat {
    /// Address at which it listens.
    pub address: String,
    /// Its ports, by name.
    pub ports: Vec<(String, u16)>,
}

/// A member of a server that is to be started.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MemberPlan {
    /// Its number over all hosts, from 1.
    pub number: u32,
    /// Name of the member, unique over all hosts.
    pub name: String,
    /// Address at which it listens.
    pub address: String,
    /// Name of its log.
    pub log: String,
}

/// A member of a server that runs on this host, with its process, its ports and its own
/// folder below the run's.
pub struct Member {
    /// Its number over all hosts, from 1.
    number: u32,
    /// Its name.
    name: String,
    server: Server,
}

/// The result of an order to a member.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MemberAnswer {
    /// Name of the member.
    pub member: String,
    /// Answer of its keeper.
    pub answer: KeeperAnswer,
}

/// A host's folders and settings for a server.
pub struct HostFolders<'a> {
    /// Folder of the run, absolute; removed with the server.
    pub scratch: &'a Path,
    /// Folder of the logs.
    pub logs: &'a Path,
    /// The `pubmark` program.
    pub program: &'a Path,
    /// Secrets that no log may contain.
    pub secrets: &'a Secrets,
    /// Set when the user interrupts.
    pub interrupt: &'a AtomicBool,
}

/// The server that clients connect to.
pub enum Deployed {
    /// No server: the system is a library.
    Nothing,
    /// A server that was running already.
    External(Box<External>),
    /// A server that was started for the run.
    Started(Box<Started>),
}

/// A server that was running already.
pub struct External {
    /// The endpoint as the user wrote it.
    endpoint: String,
    attached: Attached,
    /// Its processes, if they can be seen.
    watched: Vec<SampledProcesses>,
    sampler: Option<Sampler>,
    usage: Option<ServerUsage>,
}

/// A server that was started for the run.
pub struct Started {
    /// At least one.
    members: Vec<Member>,
    /// Asks the members who has joined and who leads; `None` for one member.
    cluster: Option<Cluster>,
    /// The members' networks, if they have their own.
    mesh: Option<Mesh>,
    /// Numbers of the members that are stopped or killed, from 1.
    silent: Vec<u32>,
    deployment: Deployment,
    version: Option<String>,
    sampler: Option<Sampler>,
    looker: Option<SnapshotTrigger>,
    usage: Option<ServerUsage>,
}

impl External {
    /// Ends the sampling. The usage of a server that has ended meanwhile is unknown,
    /// because its accounts were removed with it.
    fn finish(&mut self, window: Option<(Ns, Ns)>) -> &Option<ServerUsage> {
        if let Some(sampler) = self.sampler.take() {
            self.usage = Some(sampler.finish(window));
        }
        if self.watched.iter().any(|watched| !processes::lives(watched.root)) {
            (self.attached, self.usage) = (Attached::Hidden, None);
        }
        &self.usage
    }
}

impl Deployed {
    /// Attaches to a running server, whose processes may be named.
    ///
    /// # Errors
    /// If the named processes are not on this machine.
    pub fn attach(endpoint: &str, watch: Option<&ProcessSelector>) -> Result<Deployed, HostError> {
        let (attached, watched) = match watch {
            Some(watchee) => (Attached::Seen, attachment::named(watchee)?),
            None => attachment::find(endpoint),
        };
        let endpoint = endpoint.to_owned();
        Ok(Deployed::External(Box::new(External { endpoint, attached, watched, sampler: None, usage: None })))
    }

    /// Starts a server.
    pub fn start(plan: &DeployPlan, here: &HostFolders<'_>) -> Result<Deployed, HostError> {
        let system = &plan.system.0;
        let spec = system
            .server
            .as_ref()
            .ok_or_else(|| format!("{} cannot be started here: name a server with options.endpoint", system.name))?;
        let began = Instant::now();
        let mesh = plan.own_networks.then(Mesh::reserve).transpose()?;
        let (members, cluster) = start_members(plan, system, (spec, mesh.as_ref()), here)?;
        let joined =
            cluster.as_ref().map(|cluster| await_joined(&members, cluster, spec.start_timeout_ns, here.interrupt));
        joined.transpose()?;
        let first = members.first().ok_or_else(|| format!("no member of {} is to be started here", system.name))?;
        let applied = first.server.applied();
        let contained = Engine::runs(&plan.deployment);
        let deployment = Deployment {
            kind: if contained { "container".into() } else { plan.deployment.clone() },
            endpoint: shown(first.server.endpoint()),
            command: match &spec.container {
                Some(container) if contained => container.command.clone(),
                _ => spec.command.clone(),
            },
            container: first.server.container().cloned(),
            pid: u32::try_from(first.server.pid()).ok(),
            started_s: match &cluster {
                Some(_) => Some(began.elapsed().as_secs_f64()),
                None => Some(first.server.started_s()),
            },
            limits: plan.limits,
            power: plan.own_disk,
            applied: AppliedLimits {
                cpus: applied.cpus,
                memory_bytes: applied.memory_bytes,
                by: applied.by.clone(),
                note: applied.note.clone(),
            },
            ..Deployment::default()
        };
        // The version installed here says nothing about that in an image.
        let version = if contained { None } else { install::version(system) };
        let version = version.map(|version| format!("{} {version}", system.name));
        Ok(Deployed::Started(Box::new(Started {
            members,
            cluster,
            mesh,
            silent: Vec::new(),
            deployment,
            version,
            sampler: None,
            looker: None,
            usage: None,
        })))
    }

    /// True if there is a keeper, which removes the run's folder at the end.
    pub fn keeps(&self) -> bool {
        matches!(self, Deployed::Started(_))
    }

    /// Returns a view of what the server uses, if it was started for the run.
    pub fn look(&self) -> Option<ServerWatch> {
        match self {
            Deployed::Started(started) => {
                Some(ServerWatch::new(started.members.iter().map(|member| member.server.watched()).collect()))
            }
            Deployed::Nothing | Deployed::External(_) => None,
        }
    }

    /// Returns the endpoints for clients.
    pub fn endpoints(&self) -> Option<ServerEndpoints> {
        match self {
            Deployed::Nothing => None,
            Deployed::External(external) => Some(ServerEndpoints::one(&external.endpoint)),
            Deployed::Started(started) => {
                let each = |member: &Member| member.server.endpoint().to_owned();
                let members = match started.members.len() {
                    1 => Vec::new(),
                    _ => started.members.iter().map(each).collect(),
                };
                let discovery = |member: &Member| member.server.endpoints().discovery.clone();
                let discovery = started.members.iter().flat_map(discovery).collect();
                let first = started.members.first()?;
                Some(ServerEndpoints { members, discovery, ..first.server.endpoints().clone() })
            }
        }
    }

    /// Returns its processes, if they can be seen from here.
    pub fn watched(&self) -> Vec<SampledProcesses> {
        match self {
            Deployed::Started(started) => {
                started.members.iter().filter_map(|member| member.server.own_processes()).collect()
            }
            Deployed::External(external) => external.watched.clone(),
            Deployed::Nothing => Vec::new(),
        }
    }

    /// Samples its usage from the window's beginning to its end. `looker` takes a
    /// snapshot before the server is killed.
    pub fn watch(&mut self, from_ns: Ns, window_ns: Option<Ns>, looker: SnapshotTrigger) {
        let to_ns = window_ns.map(|window| from_ns.saturating_add(window));
        match self {
            Deployed::Started(started) => {
                started.looker = Some(looker);
                let is_cluster = started.cluster.is_some();
                let of_member = |member: &Member| SampledProcesses {
                    member: if is_cluster { member.number } else { 0 },
                    ..member.server.watched()
                };
                let watched = started.members.iter().map(of_member).collect();
                started.sampler = Some(Sampler::start(watched, from_ns, to_ns));
            }
            Deployed::External(external) => {
                let watched = Some(external.watched.clone()).filter(|watched| !watched.is_empty());
                external.sampler = watched.map(|watched| Sampler::start(watched, from_ns, to_ns));
            }
            Deployed::Nothing => {}
        }
    }

    /// Stops, continues, kills or restarts a member of the server that was started here.
    pub fn order(&mut self, member: &str, order: KeeperOrder) -> Result<(), HostError> {
        let Deployed::Started(started) = self else { return Err(format!("no `{member}` was started here").into()) };
        let Some(place) = started.members.iter().position(|known| known.name == member) else {
            return Err(format!("no `{member}` was started here").into());
        };
        let ordered = &mut started.members[place];
        started.silent.retain(|number| *number != ordered.number);
        if matches!(order, KeeperOrder::Stop | KeeperOrder::Kill | KeeperOrder::CutPower | KeeperOrder::Terminate) {
            started.silent.push(ordered.number);
        }
        if matches!(order, KeeperOrder::Kill | KeeperOrder::CutPower | KeeperOrder::Terminate) {
            started.sampler.iter().for_each(Sampler::before_kill);
            started.looker.iter().for_each(SnapshotTrigger::look);
        }
        ordered.server.order(order);
        Ok(())
    }

    /// Cuts the links between pairs of members, which are numbered from 1, or repairs them. Returns the two instants
    /// between which that happened.
    ///
    /// # Errors
    /// If the members have no networks of their own, or the kernel refuses.
    pub fn set_member_links(&mut self, pairs: &[(u32, u32)], open: bool) -> Result<(Ns, Ns), HostError> {
        let Deployed::Started(started) = self else { return Err("no server was started here".into()) };
        let mesh = started.mesh.as_ref().ok_or("the members have no networks of their own")?;
        let keepers: Vec<i32> = started.members.iter().map(|member| member.server.keeper_pid()).collect();
        let place = |number: u32| (number as usize).saturating_sub(1);
        let pairs: Vec<(usize, usize)> = pairs.iter().map(|(one, other)| (place(*one), place(*other))).collect();
        mesh.set_links(&keepers, &pairs, open)
    }

    /// Returns the results of orders since the last call, member by member.
    pub fn happened(&mut self) -> Vec<MemberAnswer> {
        let Deployed::Started(started) = self else { return Vec::new() };
        let of_member = |member: &mut Member| {
            let answers = member.server.happened().into_iter();
            answers.map(|answer| MemberAnswer { member: member.name.clone(), answer }).collect::<Vec<_>>()
        };
        started.members.iter_mut().flat_map(of_member).collect()
    }

    /// Returns the CPU time of its keepers, ns.
    pub(crate) fn keepers_cpu_ns(&self) -> Ns {
        let Deployed::Started(started) = self else { return 0 };
        started.members.iter().map(|member| member.server.keeper_cpu_ns()).sum()
    }

    /// True if every member of the server that was started here listens.
    pub fn is_listening(&self) -> bool {
        let Deployed::Started(started) = self else { return false };
        started.members.iter().all(|member| member.server.is_listening())
    }

    /// True if every member has joined its cluster, which is asked now.
    pub fn has_joined(&self) -> bool {
        let Deployed::Started(started) = self else { return false };
        let Some(cluster) = &started.cluster else { return true };
        started.members.iter().all(|member| cluster.joined(member.number).is_ok())
    }

    /// Returns the number of the member that leads, from 1, which is asked now of those that run here.
    ///
    /// # Errors
    /// None of them names one.
    pub fn leader(&self) -> Result<u32, HostError> {
        let Deployed::Started(started) = self else { return Err("no server was started here".into()) };
        let cluster = started.cluster.as_ref().ok_or("the server has one member")?;
        Ok(cluster.leader(&started.silent)?)
    }

    /// Returns how many connections are open at the ports of the server that was started
    /// here.
    pub(crate) fn connections(&self) -> usize {
        let Deployed::Started(started) = self else { return 0 };
        started.members.iter().map(|member| member.server.connections()).sum()
    }

    /// Ends the sampling of a run.
    pub(crate) fn end_watch(&mut self) {
        if let Deployed::Started(started) = self {
            (started.sampler, started.looker, started.usage) = (None, None, None);
        }
    }

    /// Ends the sampling. Returns the CPU time used in the window, ns. `window` is set if
    /// the window's end was not known before.
    pub fn cpu_ns(&mut self, window: Option<(Ns, Ns)>) -> Ns {
        let usage = match self {
            Deployed::Started(started) => {
                let seen = started.sampler.take().map(|sampler| sampler.finish(window));
                started.usage = seen.or(started.usage.take());
                &started.usage
            }
            Deployed::External(external) => external.finish(window),
            Deployed::Nothing => return 0,
        };
        usage.as_ref().map_or(0, |usage| (usage.usage.cpu_s * SECOND as f64) as Ns)
    }

    /// Returns the greatest delay with which an edge of the window was sampled, ns. Call
    /// it after the sampling has ended.
    pub fn late_ns(&self) -> Ns {
        let usage = match self {
            Deployed::Started(started) => started.usage.as_ref(),
            Deployed::External(external) => external.usage.as_ref(),
            Deployed::Nothing => None,
        };
        usage.map_or(0, |usage| usage.late_ns)
    }

    /// Returns why it ended, if it has.
    pub fn exit_reason(&mut self) -> Option<String> {
        match self {
            Deployed::Started(started) => started.members.iter_mut().find_map(|member| member.server.ended()),
            _ => None,
        }
    }

    /// Returns the log line that reports a limit of the server itself, since the beginning of the
    /// run.
    pub fn limit_reached(&mut self) -> Option<String> {
        match self {
            Deployed::Started(started) => started.members.iter_mut().find_map(|member| member.server.limit_reached()),
            _ => None,
        }
    }

    /// Ignores limits reported before, because another run begins.
    pub fn forget_limit(&mut self) {
        if let Deployed::Started(started) = self {
            started.members.iter_mut().for_each(|member| member.server.forget_limit());
        }
    }

    /// Returns its report, as long as it runs; `None` at a second call.
    pub fn report(&mut self) -> Option<ServerReport> {
        self.cpu_ns(None);
        match self {
            Deployed::Nothing => None,
            Deployed::External(external) => {
                let usage = external.usage.take();
                let deployment = Deployment {
                    kind: "external".into(),
                    endpoint: shown(&external.endpoint),
                    attached: Some(external.attached),
                    pid: external.watched.first().and_then(|watched| u32::try_from(watched.root).ok()),
                    processes: usage.iter().flat_map(|usage| usage.processes.iter().map(share)).collect(),
                    ..Deployment::default()
                };
                let usage = usage.map(|usage| usage.usage);
                Some(ServerReport { deployment, usage, version: None, exit_reason: None, own_failure: None })
            }
            Deployed::Started(started) => {
                let ends: Vec<ServerEnd> = started.members.iter_mut().map(|member| member.server.so_far()).collect();
                let (mut deployment, usage) = (started.deployment.clone(), started.usage.take());
                deployment.oom_kills = ends.iter().map(|end| end.oom_kills).sum();
                deployment.limit_reached = ends.iter().find_map(|end| end.limit_reached.clone());
                deployment.out_of_memory = ends.iter().find_map(|end| end.out_of_memory.clone());
                let own_failure = ends.iter().find_map(|end| end.own_failure.clone());
                let exit_reason = ends.into_iter().find_map(|end| end.exit_reason);
                if let Some(usage) = &usage {
                    deployment.throttled_s = usage.throttled_s;
                    deployment.cgroup_memory_bytes_max = usage.cgroup_memory_bytes_max;
                    (deployment.disk, deployment.syncs) = (usage.disk, usage.syncs);
                    deployment.processes = usage.processes.iter().map(share).collect();
                    deployment.members.clone_from(&usage.members);
                }
                let usage = usage.map(|usage| usage.usage);
                let version = started.version.clone();
                Some(ServerReport { deployment, usage, version, exit_reason, own_failure })
            }
        }
    }
}

impl Drop for Started {
    /// Ends all members at once: each may take seconds.
    fn drop(&mut self) {
        in_lanes(std::mem::take(&mut self.members), drop);
    }
}

/// Waits until all members say that they have joined.
fn await_joined(members: &[Member], cluster: &Cluster, within_ns: Ns, interrupt: &AtomicBool) -> Result<(), HostError> {
    let deadline = Instant::now() + Duration::from_nanos(within_ns);
    for member in members {
        while let Err(why) = cluster.joined(member.number) {
            if interrupt.load(Ordering::Relaxed) {
                return Err(HostError::Interrupted);
            }
            if Instant::now() >= deadline {
                let missing = format!("member {} did not join ({why})", member.number);
                return Err(member.server.not_ready(missing, within_ns));
            }
            thread::park_timeout(JOINING);
        }
    }
    Ok(())
}

/// Reserves the ports of so many members of a server, until this process ends. Returns those of each, by name.
///
/// # Errors
/// If the system has no server, or too few ports are free.
pub fn reserve_ports(system: &System, members: u32) -> Result<Vec<Vec<(String, u16)>>, HostError> {
    let spec = system.server.as_ref().ok_or_else(|| format!("{} has no server", system.name))?;
    (0..members).map(|_| Ok(Server::settled(spec, Places::default(), Path::new(""))?.ports)).collect()
}

/// Returns addresses and ports of all members of a server that is on this host alone.
fn seats_here(plan: &DeployPlan, system: &System, mesh: Option<&Mesh>) -> Result<Vec<MemberSeat>, HostError> {
    let ports = reserve_ports(system, plan.members.len() as u32)?;
    let address =
        |(index, member): (usize, &MemberPlan)| mesh.map_or_else(|| member.address.clone(), |mesh| mesh.address(index));
    let addresses = plan.members.iter().enumerate().map(address);
    Ok(addresses.zip(ports).map(|(address, ports)| MemberSeat { address, ports }).collect())
}

/// Starts each member in a folder of its name. Each member's keeper removes the folder of the run:
/// the last to end removes what others may have made meanwhile.
fn start_members(
    plan: &DeployPlan,
    system: &System,
    (spec, mesh): (&ServerSpec, Option<&Mesh>),
    here: &HostFolders<'_>,
) -> Result<(Vec<Member>, Option<Cluster>), HostError> {
    let limits = plan.limits;
    let login = |(user, password): &(String, String)| -> Result<ServerLogin, HostError> {
        let password_hash = password::for_mosquitto(password)?;
        Ok(ServerLogin { user: user.clone(), password: password.clone(), password_hash })
    };
    let login = plan.login.as_ref().map(login).transpose()?;
    let usable = || match plan.processors.len() {
        0 => machine::usable_cpus().len() as u32,
        bound => bound as u32,
    };
    let seats = match plan.everywhere.is_empty() {
        true => seats_here(plan, system, mesh)?,
        false => plan.everywhere.clone(),
    };
    let ports: Vec<_> = seats.iter().map(|seat| seat.ports.clone()).filter(|_| seats.len() > 1).collect();
    let addresses: Vec<String> = seats.iter().map(|seat| seat.address.clone()).collect();
    let place = |member: &MemberPlan| {
        let number = (member.number as usize).saturating_sub(1);
        let own = seats.get(number).ok_or_else(|| format!("no place is known for `{}`", member.name))?;
        let places = Places {
            member: member.number,
            program: here.program.display().to_string(),
            cache: cache_folder(system).display().to_string(),
            here: system.here.clone(),
            cpus: limits.cpus.map_or_else(usable, |cpus| cpus.ceil() as u32).max(1),
            memory_mb: limits.memory_bytes.or_else(machine::memory_bytes).unwrap_or(1 << 30) >> 20,
            durable: plan.durable,
            address: own.address.clone(),
            ports: own.ports.clone(),
            addresses: addresses.clone(),
            members: ports.clone(),
            login: login.clone(),
            options: plan.options.clone(),
            ..Places::default()
        };
        Server::settled(spec, places, &here.scratch.join(&member.name))
    };
    let places = plan.members.iter().map(place).collect::<Result<Vec<Places>, HostError>>()?;
    let cluster = spec.cluster.as_ref().filter(|_| seats.len() > 1);
    let cluster = cluster.map(|cluster| Cluster::new(cluster, &spec.environment, places.clone()));
    // Members trust each other: they have one authority.
    let address = plan.members.first().map_or("", |member| &member.address);
    let certificates = plan.tls.then(|| Certificates::make(address)).transpose()?;
    let start = |(member, places): (&MemberPlan, Places)| {
        let dir = here.scratch.join(&member.name);
        StartPlan {
            system: &system.name,
            spec,
            deployment: &plan.deployment,
            places,
            certificates: certificates.clone(),
            disk: plan.own_disk,
            mesh,
            log: here.logs.join(&member.log),
            limits,
            processors: &plan.processors,
            program: here.program.to_owned(),
            remove: vec![here.scratch.to_owned()],
            dir,
            secrets: here.secrets.clone(),
            grace_ms: GRACE_MS,
            interrupt: here.interrupt,
        }
    };
    let plans: Vec<StartPlan<'_>> = plan.members.iter().zip(places).map(start).collect();
    let servers = Server::start_all(&plans)?;
    let cluster = cluster.map(|cluster| cluster.kept_by(servers.iter().map(Server::keeper_pid).collect()));
    let member =
        |(plan, server): (&MemberPlan, Server)| Member { number: plan.number, name: plan.name.clone(), server };
    Ok((plan.members.iter().zip(servers).map(member).collect(), cluster))
}

/// Returns a process of a server in the form of the record.
fn share(process: &ProcessShare) -> ServerProcess {
    ServerProcess {
        pid: process.pid as u32,
        name: process.name.clone(),
        rss_bytes_median: process.rss_bytes_median,
        uss_bytes_median: process.uss_bytes_median,
    }
}

/// Returns an endpoint without user and password.
fn shown(endpoint: &str) -> String {
    Endpoint::parse(endpoint).map_or_else(|_| String::new(), |endpoint| endpoint.to_string())
}
