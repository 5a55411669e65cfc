//! Servers: started under limits, watched, and always ended.
//!
//! Between the coordinator and a server there is a keeper, a separate process, which ends
//! the server when the coordinator is done with it or is dead. No socket is opened to a
//! server: the kernel's tables show whether it listens.

pub mod accounts;
mod arrangement;
pub mod attachment;
pub mod certificates;
pub mod cluster;
pub mod command;
pub mod container;
pub mod disk;
mod exhaustion;
pub mod keeper;
mod keeper_client;
pub mod launch;
mod layout;
pub mod ledger_disk;
pub mod limits;
mod log_watch;
pub mod mesh;
pub mod orders;
pub mod password;
pub mod ports;
mod process_end;
pub mod processes;
pub mod sample;
pub mod server_disk;
mod sync_trace;
pub mod watch;

use crate::error::HostError;
use crate::log;
use accounts::Accounts;
pub use arrangement::StartPlan;
use arrangement::{Contained, LOOK, TLS, contained, keep_plan, native, secrets};
use container::{Engine, EngineError};
use exhaustion::LogSearch;
use keeper_client::{FromKeeper, Kept};
use limits::{Applied, Group};
use log_watch::LogWatch;
use orders::{KeepPlan, KeeperAnswer, KeeperOrder};
use ports::Listener;
use pubmark_model::record::ContainerFacts;
use pubmark_model::secret::Secrets;
use pubmark_model::server::{Places, ServerEndpoints, ServerSpec, TlsFiles};
use pubmark_model::units::{Ns, SECOND};
use sample::{SampledProcesses, Sampler};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Default time from SIGTERM to SIGKILL, ms.
pub const GRACE_MS: u64 = 5_000;

/// Time limit of each program that runs before a server.
const PREPARATION: Duration = Duration::from_secs(120);
/// Time limit of each program before a container, whose image may have to be fetched.
const FETCHING: Duration = Duration::from_secs(600);

/// A server that listens. It ends on drop.
pub struct Server {
    system: String,
    endpoints: ServerEndpoints,
    pid: i32,
    /// Ports by name; the main one has an empty name.
    ports: Vec<(String, u16)>,
    /// True if it has a network of its own.
    has_network: bool,
    started_s: f64,
    log: PathBuf,
    /// Log text by which it reports that it has run out of memory.
    out_of_memory_log: String,
    /// Search for log lines about other limits of the server itself.
    limit: LogSearch,
    /// Results of orders that were not fetched yet.
    happened: Vec<KeeperAnswer>,
    exited: Option<Exit>,
    /// Removed after the keeper has ended: fields are dropped in this order.
    kept: Kept,
    group: Group,
    container: Option<Contained>,
    folder: PathBuf,
    /// The file of its disk, if its power can be cut.
    disk: Option<PathBuf>,
    /// The process that serves its ledger, if its folder lies on one.
    ledger: Option<i32>,
    /// Secrets that quotes of its log may not contain.
    secrets: Secrets,
}

/// A server that is awaited.
struct Readiness {
    began: Instant,
    /// Text in its log when it is ready, and the search for it.
    ready_log: String,
    log: LogWatch,
    /// The search for the text of a member that waits to take over, if members do.
    standby: Option<LogWatch>,
    is_met: bool,
}

/// The way in which a server is known to have ended.
enum Exit {
    /// It ended by itself or was ended from outside, described in words.
    Server(String),
    /// pubmark's keeper or log follower failed, which is not an end of the server,
    /// described in words.
    Keeping(String),
}

/// The way in which a server ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServerEnd {
    /// Number of its processes that the kernel killed because memory ran out.
    pub oom_kills: u64,
    /// Time for which the processor limit kept it waiting over its whole life, summed
    /// over processors, s.
    pub throttled_s: f64,
    /// Description of its end, if it ended before pubmark stopped it.
    pub exit_reason: Option<String>,
    /// The failure of pubmark's own part, if that is why it ended or is not followed any
    /// more.
    pub own_failure: Option<String>,
    /// The log line by which it reported that it had run out of memory.
    pub out_of_memory: Option<String>,
    /// The log line by which it reported another limit of the server itself.
    pub limit_reached: Option<String>,
}

impl Server {
    /// Starts a server and waits until it listens. Errors contain the end of its log;
    /// nothing is left behind then.
    pub fn start(plan: &StartPlan) -> Result<Server, HostError> {
        let mut started = Server::start_all(std::slice::from_ref(plan))?;
        started.pop().ok_or_else(|| "nothing was started".into())
    }

    /// Starts the members of a server, and waits until all of them listen: one may need the
    /// others for that. At an error, nothing is left behind.
    pub fn start_all(plans: &[StartPlan]) -> Result<Vec<Server>, HostError> {
        Server::try_start_all(plans).inspect_err(|_| {
            // If it failed before there was a keeper, nothing else removes them.
            for folder in plans.iter().flat_map(|plan| &plan.remove) {
                let _ = fs::remove_dir_all(folder);
            }
        })
    }

    fn try_start_all(plans: &[StartPlan]) -> Result<Vec<Server>, HostError> {
        let mut starting: Vec<(Server, Readiness)> = Vec::new();
        for plan in plans {
            let before: Vec<i32> = starting.iter().map(|(server, _)| server.kept.pid()).collect();
            starting.push(Server::try_start(plan, &before)?);
        }
        while starting.iter().any(|(_, readiness)| !readiness.is_met) {
            for ((server, readiness), plan) in starting.iter_mut().zip(plans) {
                server.look(plan, readiness)?;
            }
        }
        Ok(starting.into_iter().map(|(server, _)| server).collect())
    }

    /// Returns the values of placeholders of a member, with free ports for all names that have none yet.
    pub fn settled(spec: &ServerSpec, mut places: Places, dir: &Path) -> Result<Places, HostError> {
        layout::settle(spec, &mut places, dir)?;
        Ok(places)
    }

    /// Starts a member; `before` are the keepers of those before it.
    fn try_start(plan: &StartPlan, before: &[i32]) -> Result<(Server, Readiness), HostError> {
        let mut places = plan.places.clone();
        if !plan.dir.is_absolute() {
            return Err(format!("the server's folder {} is not an absolute path", plan.dir.display()).into());
        }
        fs::create_dir_all(&plan.dir).map_err(HostError::io(plan.dir.display().to_string()))?;
        log::create(&plan.log).map_err(HostError::io(plan.log.display().to_string()))?;
        layout::settle(plan.spec, &mut places, &plan.dir)?;
        let tls_folder = match plan.deployment {
            "native" => plan.dir.join(TLS).display().to_string(),
            _ => certificates::IN_CONTAINER.to_owned(),
        };
        places.tls = plan.certificates.as_ref().map(|_| TlsFiles::in_folder(&tls_folder));
        let name = limits::name();
        let apart = Some(&plan.spec.subscriber_endpoint).filter(|text| !text.is_empty() && plan.deployment == "native");
        let subscribers = apart.map(|text| places.fill(text)).transpose()?;
        let discovery = plan.spec.cluster.iter().map(|cluster| &cluster.discovery);
        let several = places.members.len() > 1;
        let discovery = discovery.filter(|text| !text.is_empty() && several);
        let endpoints = ServerEndpoints {
            clients: places.fill(&plan.spec.endpoint)?,
            subscribers,
            members: Vec::new(),
            discovery: discovery.map(|text| places.fill(text)).collect::<Result<_, _>>()?,
            authority: plan.certificates.as_ref().map(|certificates| certificates.authority.clone()),
        };
        let ready_log = places.fill(&plan.spec.ready_log)?;
        // The keeper that removes everything starts before anything is made.
        let secrets = secrets(plan, &places);
        let announced = KeepPlan { groups: limits::places(&name), ..keep_plan(plan, &places, &name)? };
        let mut kept = Kept::start(&plan.program, announced)?;
        plan.mesh.map_or(Ok(()), |mesh| mesh.join(kept.pid(), before))?;
        let (keep, group, container) = match plan.deployment {
            "native" => native(plan, &places, name)?,
            other if Engine::runs(other) => contained(plan, &places, name)?,
            other => return Err(format!("`{other}` is not a way to start a server: write native or container").into()),
        };
        kept.keep(keep)?;
        let (system, log) = (plan.system.to_owned(), plan.log.clone());
        let mut server = Server {
            system,
            endpoints,
            pid: 0,
            ports: places.ports,
            has_network: plan.mesh.is_some(),
            started_s: 0.0,
            log,
            out_of_memory_log: plan.spec.out_of_memory_log.clone(),
            limit: LogSearch::new(&plan.log, &plan.spec.limit_log),
            happened: Vec::new(),
            exited: None,
            kept,
            group,
            container,
            disk: plan.disk.map(|_| disk::image_of(&plan.dir)),
            folder: plan.dir.clone(),
            ledger: None,
            secrets,
        };
        server.await_process(plan)?;
        let met = server.meet_container();
        met.map_err(|error| server.not_started(&error.to_string(), Some(error.into())))?;
        let standby = plan.spec.cluster.as_ref().map(|cluster| cluster.standby_log.as_str());
        let standby = standby.filter(|text| !text.is_empty() && several).map(|text| LogWatch::new(&server.log, text));
        let readiness = Readiness {
            began: Instant::now(),
            log: LogWatch::new(&server.log, &ready_log),
            ready_log,
            standby,
            is_met: false,
        };
        Ok((server, readiness))
    }

    /// Returns the endpoint for clients, except subscribers with their own endpoint.
    pub fn endpoint(&self) -> &str {
        &self.endpoints.clients
    }

    /// Returns the endpoints for clients.
    pub fn endpoints(&self) -> &ServerEndpoints {
        &self.endpoints
    }

    /// Returns the server's process id; in a container that of the first process, as
    /// numbered on this machine.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Returns its keeper's process id.
    pub fn keeper_pid(&self) -> i32 {
        self.kept.pid()
    }

    /// Returns the CPU time of its keeper and of what serves its ledger, ns.
    pub fn keeper_cpu_ns(&self) -> Ns {
        let own = [Some(self.kept.pid()), self.ledger].into_iter().flatten();
        own.filter_map(processes::counters).map(|counters| counters.cpu_ns).sum()
    }

    /// Returns its ports by name; the main one has an empty name.
    pub fn ports(&self) -> &[(String, u16)] {
        &self.ports
    }

    fn port(&self) -> Option<u16> {
        self.ports.iter().find(|(name, _)| name.is_empty()).map(|(_, port)| *port)
    }

    /// Returns the time from its start until it listened, s.
    pub fn started_s(&self) -> f64 {
        self.started_s
    }

    /// Returns the limits that are in force.
    pub fn applied(&self) -> &Applied {
        &self.group.applied
    }

    /// Returns the kernel's accounts of what it uses.
    pub fn accounts(&self) -> &Accounts {
        &self.group.accounts
    }

    /// Starts to sample its usage, from one instant of CLOCK_MONOTONIC to another, ns, or
    /// until the sampler is finished.
    pub fn sample(&self, from_ns: Ns, to_ns: Option<Ns>) -> Sampler {
        Sampler::start(vec![self.watched()], from_ns, to_ns)
    }

    /// Returns the container that it runs in, if it does.
    pub fn container(&self) -> Option<&ContainerFacts> {
        self.container.as_ref()?.facts.as_ref()
    }

    /// Returns its processes for sampling while it runs; `None` if they cannot be seen
    /// from here, like those of a container on an engine's own machine.
    pub fn own_processes(&self) -> Option<SampledProcesses> {
        (self.container.is_none() || processes::lives(self.pid)).then(|| self.watched())
    }

    /// Stops, continues or kills all its processes, or starts it again after a kill.
    /// [`happened`](Server::happened) returns the result.
    pub fn order(&mut self, order: KeeperOrder) {
        self.kept.order(order);
    }

    /// Returns the results of orders since the last call.
    pub fn happened(&mut self) -> Vec<KeeperAnswer> {
        self.ended();
        std::mem::take(&mut self.happened)
    }

    /// True if it listens, for example after a restart.
    pub fn is_listening(&self) -> bool {
        match self.within() {
            Some((pid, within)) => ports::listens_within(pid, within) == Some(true),
            None => self.port().is_some_and(|port| self.holds(port)),
        }
    }

    /// Returns its main port within a network namespace of its own, and a process there.
    fn within(&self) -> Option<(i32, u16)> {
        match &self.container {
            Some(contained) => Some((self.pid, contained.within?)),
            None => Some((self.kept.pid(), self.port()?)).filter(|_| self.has_network),
        }
    }

    /// Returns how many connections are open at its ports; 0 if they cannot be seen from
    /// here.
    pub fn connections(&self) -> usize {
        let within = |process: &str, port: u16| ports::connections_within(process, port).unwrap_or(0);
        match self.within() {
            Some((pid, port)) => within(&pid.to_string(), port),
            None => self.ports.iter().map(|(_, port)| within("self", *port)).sum(),
        }
    }

    /// True if it, and no other process, listens on this port.
    pub fn holds(&self, port: u16) -> bool {
        ports::listener(&self.watched().processes(), port) == Listener::Own
    }

    /// Returns the processes to sample.
    pub fn watched(&self) -> SampledProcesses {
        let accounts = self.group.accounts.clone();
        match self.container {
            Some(_) => SampledProcesses { root: self.pid, accounts, made_anew: true, ..SampledProcesses::default() },
            None => SampledProcesses {
                root: self.kept.pid(),
                below_only: true,
                accounts,
                disk: self.disk.clone(),
                ledger: self.ledger,
                folder: Some(self.folder.clone()),
                ..SampledProcesses::default()
            },
        }
    }

    /// Returns how it ended, if it has.
    pub fn ended(&mut self) -> Option<String> {
        while self.exited.is_none() {
            match self.kept.hear(Duration::ZERO) {
                FromKeeper::Nothing => return None,
                heard => self.heard(heard),
            }
        }
        Some(format!("{} ended: {}{}", self.system, self.exit_status()?, self.log_end()))
    }

    /// Returns how it exited, if that is known.
    fn exit_status(&self) -> Option<String> {
        let (Exit::Server(status) | Exit::Keeping(status)) = self.exited.as_ref()?;
        let oom = if self.oom_kills() > 0 { ", killed by the kernel for want of memory" } else { "" };
        Some(format!("{status}{oom}"))
    }

    fn heard(&mut self, heard: FromKeeper) {
        match heard {
            FromKeeper::Answer(KeeperAnswer::Exited(status)) => {
                self.exited = Some(match &self.container {
                    None => Exit::Server(status),
                    // The engine's client, which follows the container, has ended.
                    Some(contained) => match contained.ended_in_time() {
                        Some(ended) => Exit::Server(format!("exit status: {}", ended.code)),
                        None => Exit::Keeping(format!("what followed its container ended: {status}")),
                    },
                });
            }
            FromKeeper::Answer(KeeperAnswer::Failed(why)) => self.exited = Some(Exit::Keeping(why)),
            FromKeeper::Gone => self.exited = Some(Exit::Keeping("its keeper was killed".into())),
            FromKeeper::Answer(KeeperAnswer::Pid(_) | KeeperAnswer::Mounted(_)) | FromKeeper::Nothing => {}
            FromKeeper::Answer(word) => {
                if let KeeperAnswer::Restarted(_, pid) = word {
                    self.pid = pid;
                    // A container that has ended again meanwhile is noticed next.
                    let _ = self.meet_container();
                }
                self.happened.push(word);
            }
        }
    }

    fn oom_kills(&self) -> u64 {
        let counted = self.group.accounts.oom_kills();
        if counted > 0 || self.exited.is_none() {
            return counted;
        }
        u64::from(self.container.as_ref().is_some_and(|contained| contained.want_of_memory(&self.group.applied)))
    }

    /// Returns its state so far, as long as it was not stopped.
    pub fn so_far(&mut self) -> ServerEnd {
        let exit_reason = self.ended();
        let own_failure = exit_reason.clone().filter(|_| matches!(self.exited, Some(Exit::Keeping(_))));
        let (oom_kills, throttled_ns) = (self.oom_kills(), self.group.accounts.throttled_ns());
        let out_of_memory = exhaustion::said(&self.log, &self.out_of_memory_log);
        let limit_reached = self.limit_reached();
        let throttled_s = throttled_ns as f64 / SECOND as f64;
        ServerEnd { oom_kills, throttled_s, exit_reason, own_failure, out_of_memory, limit_reached }
    }

    /// Returns the log line that reports a limit of the server itself, since the beginning of the
    /// run.
    pub fn limit_reached(&mut self) -> Option<String> {
        self.limit.look().map(|line| self.secrets.hide(line))
    }

    /// Ignores limits reported before, because another run begins.
    pub fn forget_limit(&mut self) {
        self.limit.forget();
    }

    /// Ends it, first with SIGTERM, and removes what it leaves. The time is limited.
    pub fn stop(mut self) -> ServerEnd {
        let end = self.so_far();
        self.kept.end();
        end
    }

    /// Waits until the keeper has started it.
    fn await_process(&mut self, plan: &StartPlan) -> Result<(), HostError> {
        let each = if self.container.is_some() { FETCHING } else { PREPARATION };
        let deadline = Instant::now() + each * (plan.spec.prepare.len() as u32 + 1);
        loop {
            interrupted(plan)?;
            match self.kept.hear(LOOK) {
                FromKeeper::Answer(KeeperAnswer::Pid(pid)) => {
                    self.pid = pid;
                    return Ok(());
                }
                FromKeeper::Answer(KeeperAnswer::Mounted(pid)) => self.ledger = Some(pid),
                FromKeeper::Answer(KeeperAnswer::Failed(why)) => return Err(self.not_started(&why, None)),
                FromKeeper::Nothing if Instant::now() < deadline => {}
                FromKeeper::Nothing => return Err(self.not_started("its preparation takes too long", None)),
                heard => {
                    self.heard(heard);
                    return Err(self.not_started(&self.exit_status().unwrap_or_default(), None));
                }
            }
        }
    }

    fn not_started(&self, why: &str, source: Option<Box<EngineError>>) -> HostError {
        let engine = self.container.as_ref().map(|contained| contained.named.engine);
        let silent = engine.filter(|engine| engine.version().is_none());
        let silent = silent.map_or(String::new(), |engine| format!("no engine answers to `{}`: ", engine.program()));
        let (system, why) = (self.system.clone(), format!("{silent}{why}"));
        HostError::NotStarted { system, why, log: self.log_end(), source }
    }

    fn log_end(&self) -> String {
        match log::last_lines(&self.log, &self.secrets) {
            empty if empty.is_empty() => "; its log is empty".into(),
            lines => format!("; the end of its log: {lines}"),
        }
    }

    /// Checks once whether it listens, and its log contains the ready text.
    fn look(&mut self, plan: &StartPlan, readiness: &mut Readiness) -> Result<(), HostError> {
        let port = self.port();
        interrupted(plan)?;
        let waits = readiness.standby.as_mut().is_some_and(LogWatch::has_said);
        if !readiness.is_met && (waits || self.listens(port)? && readiness.log.has_said()) {
            (self.started_s, readiness.is_met) = (readiness.began.elapsed().as_secs_f64(), true);
            return Ok(());
        }
        if !readiness.is_met && readiness.began.elapsed() >= Duration::from_nanos(plan.spec.start_timeout_ns) {
            let missing = match port {
                Some(port) if !self.listens(Some(port))? => format!("did not listen on port {port}"),
                _ => format!("did not say `{}`", readiness.ready_log),
            };
            return Err(self.not_ready(missing, plan.spec.start_timeout_ns));
        }
        let heard = self.kept.hear(LOOK);
        self.heard(heard);
        let Some(how) = self.exit_status() else { return Ok(()) };
        // A foreign server may be the reason why it ended: that error is more helpful.
        self.listens(port)?;
        Err(HostError::Ended { system: self.system.clone(), how, log: self.log_end() })
    }

    /// Makes the error for what was not there in time, with the end of its log.
    pub(crate) fn not_ready(&self, missing: String, within_ns: Ns) -> HostError {
        let (system, seconds) = (self.system.clone(), within_ns as f64 / SECOND as f64);
        HostError::NotReady { system, missing, seconds, log: self.log_end() }
    }

    /// Finds the process of a container, and the limits in force.
    fn meet_container(&mut self) -> Result<(), EngineError> {
        let Some(contained) = &mut self.container else { return Ok(()) };
        let running = contained.named.running()?;
        if contained.facts.is_none() {
            contained.facts = Some(contained.named.facts(&contained.image, &running.image_id));
        }
        self.pid = running.pid;
        // The engine makes and removes the group itself.
        (self.group.accounts, self.group.applied) = container::in_force(&running);
        Ok(())
    }

    fn listens(&self, port: Option<u16>) -> Result<bool, HostError> {
        let Some(port) = port else { return Ok(true) };
        if let Some((pid, within)) = self.within() {
            // On this side of the container an engine's own proxy may listen at once.
            let seen = ports::listens_within(pid, within);
            return Ok(seen.unwrap_or_else(|| ports::listener(&[], port) != Listener::Nobody));
        }
        // Finding the owner requires a walk over all processes: only if something
        // listens.
        if ports::listens_within(std::process::id() as i32, port) == Some(false) {
            return Ok(false);
        }
        match ports::listener(&self.watched().processes(), port) {
            Listener::Nobody => Ok(false),
            Listener::Own => Ok(true),
            Listener::Foreign(Some((pid, name))) => {
                let (system, log) = (self.system.clone(), self.log_end());
                Err(HostError::PortHeld { port, pid, name, system, log })
            }
            Listener::Foreign(None) => Ok(false),
        }
    }
}

fn interrupted(plan: &StartPlan) -> Result<(), HostError> {
    if plan.interrupt.load(Ordering::Relaxed) { Err(HostError::Interrupted) } else { Ok(()) }
}
