//! A server that clients play against: attached to, or started for them.

use crate::cache::cache_folder;
use crate::error::HostError;
use crate::server::container::Engine;
use crate::server::keeper::{KeeperAnswer, KeeperOrder};
use crate::server::sample::{ProcessShare, Sampler, ServerUsage, Watched};
use crate::server::watch::ServerWatch;
use crate::server::{GRACE_MS, Server, ServerEnd, StartPlan, attached, password, processes};
use crate::system_file::SystemFile;
use crate::usage::Looker;
use crate::{install, machine};
use pubmark_model::cell::Limits;
use pubmark_model::endpoint::Endpoint;
use pubmark_model::options::Options;
use pubmark_model::record::{AppliedLimits, Attached, Deployment, ServerProcess};
use pubmark_model::reported::ServerReport;
use pubmark_model::secret::Secrets;
use pubmark_model::server::{Places, ServerEndpoints, ServerLogin, ServerSpec};
use pubmark_model::system::System;
use pubmark_model::units::{Ns, SECOND};
use pubmark_model::watch::Watchee;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// What server is to be started, and how.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeployPlan {
    /// The system.
    pub system: SystemFile,
    /// `native`, `container`, or a container's engine by its name.
    pub deployment: String,
    /// What it may use.
    pub limits: Limits,
    /// Whether subscriptions outlive it.
    pub durable: bool,
    /// The processors that it is bound to; empty where the kernel places it.
    #[serde(default)]
    pub processors: Vec<usize>,
    /// The system's options, all of them.
    pub options: Options,
    /// The user and the password that clients have to give, where the server can be told.
    #[serde(default)]
    pub login: Option<(String, String)>,
    /// Its members on this host: one, unless it is a cluster.
    pub members: Vec<MemberPlan>,
}

/// A member that is to be started of a server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MemberPlan {
    /// What it is called: no other member is, on any host.
    pub name: String,
    /// Where it listens.
    pub address: String,
    /// The name of its log.
    pub log: String,
}

/// A member of a server that runs on this host, with its process, its ports
/// and a folder of its own below the run's.
pub struct Member {
    /// What it is called.
    name: String,
    server: Server,
}

/// What came of an order to a member.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MemberAnswer {
    /// Which.
    pub member: String,
    /// What its keeper says.
    pub answer: KeeperAnswer,
}

/// What a host has for a server.
pub struct Here<'a> {
    /// The folder of the run, absolute; removed with the server.
    pub scratch: &'a Path,
    /// Where logs go.
    pub logs: &'a Path,
    /// The `pubmark` program.
    pub program: &'a Path,
    /// What no log may repeat.
    pub secrets: &'a Secrets,
    /// Set where the user wants no more.
    pub interrupt: &'a AtomicBool,
}

/// A server that clients play against.
pub enum Deployed {
    /// There is none: a library.
    Nothing,
    /// One that was there already.
    External(Box<External>),
    /// One that was started for the run.
    Started(Box<Started>),
}

/// A server that was there already.
pub struct External {
    /// As the user named it.
    endpoint: String,
    attached: Attached,
    /// Its processes, where they can be seen.
    watched: Vec<Watched>,
    sampler: Option<Sampler>,
    usage: Option<ServerUsage>,
}

/// A server that was started for the run.
pub struct Started {
    /// At least one. Clients connect to the first.
    members: Vec<Member>,
    deployment: Deployment,
    version: Option<String>,
    sampler: Option<Sampler>,
    looker: Option<Looker>,
    usage: Option<ServerUsage>,
}

impl External {
    /// Ends the watch. Of a server that has ended meanwhile nobody knows what it
    /// used: its accounts went with it.
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
    /// Attaches to a server that is there, whose processes may be named.
    ///
    /// # Errors
    /// Where these are not here.
    pub fn attach(endpoint: &str, watch: Option<&Watchee>) -> Result<Deployed, HostError> {
        let (attached, watched) = match watch {
            Some(watchee) => (Attached::Seen, attached::named(watchee)?),
            None => attached::find(endpoint),
        };
        let endpoint = endpoint.to_owned();
        Ok(Deployed::External(Box::new(External { endpoint, attached, watched, sampler: None, usage: None })))
    }

    /// Starts a server.
    pub fn start(plan: &DeployPlan, here: &Here<'_>) -> Result<Deployed, HostError> {
        let system = &plan.system.0;
        let spec = system
            .server
            .as_ref()
            .ok_or_else(|| format!("{} cannot be started here: name a server with options.endpoint", system.name))?;
        let members = start_members(plan, system, spec, here)?;
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
            started_s: members.iter().map(|member| member.server.started_s()).reduce(f64::max),
            limits: plan.limits,
            applied: AppliedLimits {
                cpus: applied.cpus,
                memory_bytes: applied.memory_bytes,
                by: applied.by.clone(),
                note: applied.note.clone(),
            },
            ..Deployment::default()
        };
        // What is installed here says nothing of what is in an image.
        let version = if contained { None } else { install::version(system) };
        let version = version.map(|version| format!("{} {version}", system.name));
        Ok(Deployed::Started(Box::new(Started {
            members,
            deployment,
            version,
            sampler: None,
            looker: None,
            usage: None,
        })))
    }

    /// Whether there is a keeper, which removes the run's folder at the end.
    pub fn keeps(&self) -> bool {
        matches!(self, Deployed::Started(_))
    }

    /// A look at what the server uses, if it was started for the run.
    pub fn look(&self) -> Option<ServerWatch> {
        match self {
            Deployed::Started(started) => {
                Some(ServerWatch::new(started.members.iter().map(|member| member.server.watched()).collect()))
            }
            Deployed::Nothing | Deployed::External(_) => None,
        }
    }

    /// Where clients connect to.
    pub fn endpoints(&self) -> Option<ServerEndpoints> {
        match self {
            Deployed::Nothing => None,
            Deployed::External(external) => Some(ServerEndpoints::one(&external.endpoint)),
            Deployed::Started(started) => started.members.first().map(|member| member.server.endpoints().clone()),
        }
    }

    /// Its processes, if they can be seen from here.
    pub fn watched(&self) -> Vec<Watched> {
        match self {
            Deployed::Started(started) => {
                started.members.iter().filter_map(|member| member.server.own_processes()).collect()
            }
            Deployed::External(external) => external.watched.clone(),
            Deployed::Nothing => Vec::new(),
        }
    }

    /// Watches what it uses, from the window's beginning to its end. The looker
    /// is told before it is killed.
    pub fn watch(&mut self, from_ns: Ns, window_ns: Option<Ns>, looker: Looker) {
        let to_ns = window_ns.map(|window| from_ns.saturating_add(window));
        match self {
            Deployed::Started(started) => {
                started.looker = Some(looker);
                let watched = started.members.iter().map(|member| member.server.watched()).collect();
                started.sampler = Some(Sampler::start(watched, from_ns, to_ns));
            }
            Deployed::External(external) => {
                let watched = Some(external.watched.clone()).filter(|watched| !watched.is_empty());
                external.sampler = watched.map(|watched| Sampler::start(watched, from_ns, to_ns));
            }
            Deployed::Nothing => {}
        }
    }

    /// Has a member of the server that was started here stopped, continued,
    /// killed or started again.
    pub fn order(&mut self, member: &str, order: KeeperOrder) -> Result<(), HostError> {
        let Deployed::Started(started) = self else { return Err(format!("no `{member}` was started here").into()) };
        let Some(ordered) = started.members.iter_mut().find(|known| known.name == member) else {
            return Err(format!("no `{member}` was started here").into());
        };
        if order == KeeperOrder::Kill {
            started.sampler.iter().for_each(Sampler::before_kill);
            started.looker.iter().for_each(Looker::look);
        }
        ordered.server.order(order);
        Ok(())
    }

    /// What came of orders since this was asked last: of each member in turn.
    pub fn happened(&mut self) -> Vec<MemberAnswer> {
        let Deployed::Started(started) = self else { return Vec::new() };
        let of_member = |member: &mut Member| {
            let answers = member.server.happened().into_iter();
            answers.map(|answer| MemberAnswer { member: member.name.clone(), answer }).collect::<Vec<_>>()
        };
        started.members.iter_mut().flat_map(of_member).collect()
    }

    /// CPU time of what keeps it, ns.
    pub(crate) fn keepers_cpu_ns(&self) -> Ns {
        let Deployed::Started(started) = self else { return 0 };
        started.members.iter().map(|member| member.server.keeper_cpu_ns()).sum()
    }

    /// Whether all of the server that was started here listens.
    pub fn is_listening(&self) -> bool {
        let Deployed::Started(started) = self else { return false };
        started.members.iter().all(|member| member.server.is_listening())
    }

    /// How many connections are open at the ports of what was started here.
    pub(crate) fn connections(&self) -> usize {
        let Deployed::Started(started) = self else { return 0 };
        started.members.iter().map(|member| member.server.connections()).sum()
    }

    /// What was watched of it for a run is over.
    pub(crate) fn end_watch(&mut self) {
        if let Deployed::Started(started) = self {
            (started.sampler, started.looker, started.usage) = (None, None, None);
        }
    }

    /// CPU time that it used in the window, ns. Ends the watch. `window` is one
    /// whose end nobody knew before.
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

    /// How late an edge of the window was looked at, at worst, ns; to be asked
    /// when the watch has ended.
    pub fn late_ns(&self) -> Ns {
        let usage = match self {
            Deployed::Started(started) => started.usage.as_ref(),
            Deployed::External(external) => external.usage.as_ref(),
            Deployed::Nothing => None,
        };
        usage.map_or(0, |usage| usage.late_ns)
    }

    /// Why it ended, if it has.
    pub fn exit_reason(&mut self) -> Option<String> {
        match self {
            Deployed::Started(started) => started.members.iter_mut().find_map(|member| member.server.ended()),
            _ => None,
        }
    }

    /// The line of its log that says that it has reached a limit of its own, since the run began.
    pub fn limit_reached(&mut self) -> Option<String> {
        match self {
            Deployed::Started(started) => started.members.iter_mut().find_map(|member| member.server.limit_reached()),
            _ => None,
        }
    }

    /// Another run begins: what the server said before is not of it.
    pub fn forget_limit(&mut self) {
        if let Deployed::Started(started) = self {
            started.members.iter_mut().for_each(|member| member.server.forget_limit());
        }
    }

    /// What it was, as long as it stands; a second time it says nothing.
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
                    deployment.processes = usage.processes.iter().map(share).collect();
                }
                let usage = usage.map(|usage| usage.usage);
                let version = started.version.clone();
                Some(ServerReport { deployment, usage, version, exit_reason, own_failure })
            }
        }
    }
}

/// Starts each member in a folder of its name. The last one's keeper, which is
/// the last to end, removes the folder of the run; the others remove their own.
fn start_members(
    plan: &DeployPlan,
    system: &System,
    spec: &ServerSpec,
    here: &Here<'_>,
) -> Result<Vec<Member>, HostError> {
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
    let start = |(index, member): (usize, &MemberPlan)| {
        let dir = here.scratch.join(&member.name);
        let is_last = index + 1 == plan.members.len();
        let places = Places {
            cache: cache_folder(system).display().to_string(),
            here: system.here.clone(),
            cpus: limits.cpus.map_or_else(usable, |cpus| cpus.ceil() as u32).max(1),
            memory_mb: limits.memory_bytes.or_else(machine::memory_bytes).unwrap_or(1 << 30) >> 20,
            durable: plan.durable,
            address: member.address.clone(),
            login: login.clone(),
            options: plan.options.clone(),
            ..Places::default()
        };
        let server = Server::start(&StartPlan {
            system: &system.name,
            spec,
            deployment: &plan.deployment,
            places,
            log: here.logs.join(&member.log),
            limits,
            processors: &plan.processors,
            program: here.program.to_owned(),
            remove: vec![if is_last { here.scratch.to_owned() } else { dir.clone() }],
            dir,
            secrets: here.secrets.clone(),
            grace_ms: GRACE_MS,
            interrupt: here.interrupt,
        })?;
        Ok(Member { name: member.name.clone(), server })
    };
    plan.members.iter().enumerate().map(start).collect()
}

/// A process of a server, as a record has it.
fn share(process: &ProcessShare) -> ServerProcess {
    ServerProcess {
        pid: process.pid as u32,
        name: process.name.clone(),
        rss_bytes_median: process.rss_bytes_median,
        uss_bytes_median: process.uss_bytes_median,
    }
}

/// An endpoint without user and password.
fn shown(endpoint: &str) -> String {
    Endpoint::parse(endpoint).map_or_else(|_| String::new(), |endpoint| endpoint.to_string())
}
