//! Starts of servers: as processes, or in containers.

use super::accounts::Accounts;
use super::certificates::Certificates;
use super::container::{self, Engine, NamedContainer, Network};
use super::layout;
use super::limits::{Applied, Group};
use super::mesh::Mesh;
use super::orders::KeepPlan;
use crate::error::HostError;
use crate::programs::find_program;
use nix::libc::RLIM_INFINITY;
use nix::sys::resource::Resource;
use nix::sys::signal::Signal;
use pubmark_model::cell::Limits;
use pubmark_model::power::Power;
use pubmark_model::record::ContainerFacts;
use pubmark_model::secret::Secrets;
use pubmark_model::server::{Places, ServerSpec};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// Folder of a server's certificates below its own.
pub(super) const TLS: &str = "tls";
/// Interval at which a starting server is checked.
pub(super) const LOOK: Duration = Duration::from_millis(5);
/// Time that an engine has to notice that a container has ended.
const ENDING: Duration = Duration::from_secs(2);

/// The plan for starting a server.
pub struct StartPlan<'a> {
    /// The system's name, for messages.
    pub system: &'a str,
    /// The server's part of the system file.
    pub spec: &'a ServerSpec,
    /// `native`, `container`, or the name of a container engine.
    pub deployment: &'a str,
    /// Values of placeholders. The folder and the ports are filled in here; a port that
    /// is set already is kept.
    pub places: Places,
    /// Certificates, if it uses TLS.
    pub certificates: Option<Certificates>,
    /// The server's folder (`{dir}`) and working folder, absolute; made if it is missing.
    pub dir: PathBuf,
    /// File for everything that it prints; an older log is overwritten.
    pub log: PathBuf,
    /// File system below its folder, if a fault cuts its power or fills it.
    pub disk: Option<Power>,
    /// Networks of all members, if they have their own; their addresses are in `places`.
    pub mesh: Option<&'a Mesh>,
    /// Limits on processors and memory.
    pub limits: Limits,
    /// Processors that it is bound to; if empty, the kernel places it.
    pub processors: &'a [usize],
    /// The `pubmark` program, for its subcommands `keep` and `launch`.
    pub program: PathBuf,
    /// Folders that are removed when no process of the server runs any more, also after
    /// the coordinator's death.
    pub remove: Vec<PathBuf>,
    /// Secrets that its log may not contain, in addition to its own options, variables
    /// and login.
    pub secrets: Secrets,
    /// Time from SIGTERM to SIGKILL, ms; usually `GRACE_MS`.
    pub grace_ms: u64,
    /// Set when the user interrupts.
    pub interrupt: &'a AtomicBool,
}

/// A container, and its initial state.
pub(super) struct Contained {
    pub named: NamedContainer,
    /// The published port within; `None` if it uses the machine's network.
    pub within: Option<u16>,
    pub image: String,
    pub facts: Option<ContainerFacts>,
    /// OOM kills of the whole machine before it was started.
    oom_kills: u64,
}

impl Contained {
    /// Returns how it ended, once its follower has. An engine may notice a little later.
    pub fn ended_in_time(&self) -> Option<container::ContainerEnd> {
        let deadline = Instant::now() + ENDING;
        loop {
            let ended = self.named.ended();
            if ended.is_some() || Instant::now() >= deadline {
                return ended;
            }
            std::thread::park_timeout(LOOK);
        }
    }

    /// True if the kernel killed it because memory ran out. Its control group was removed
    /// with it, and not every engine notices: then the evidence is that it was killed
    /// without an order, under a limit, and that the kernel has killed a process for this
    /// reason meanwhile.
    pub fn want_of_memory(&self, applied: &Applied) -> bool {
        self.named.ended().is_some_and(|ended| {
            let killed = ended.code == 128 + Signal::SIGKILL as i32 && applied.memory_bytes.is_some();
            ended.oom || killed && container::machine_oom_kills() > self.oom_kills
        })
    }
}

/// Returns the secrets that its log may not contain.
pub(super) fn secrets(plan: &StartPlan, places: &Places) -> Secrets {
    Secrets::of(&places.options)
        .and_variables(&plan.spec.variables(&places.options))
        .and_password(places.login.as_ref().map(|login| login.password.as_str()))
        .and(plan.secrets.clone())
}

/// A keeper's plan, the control group, and the container if there is one.
pub(super) type Arrangement = (KeepPlan, Group, Option<Contained>);

pub(super) fn keep_plan(plan: &StartPlan, places: &Places, name: &str) -> Result<KeepPlan, HostError> {
    Ok(KeepPlan {
        marker: name.to_owned(),
        environment: layout::fill_values(places, &plan.spec.environment)?,
        folder: plan.dir.clone(),
        log: plan.log.clone(),
        secrets: secrets(plan, places),
        disk: plan.disk,
        own_network: plan.mesh.is_some(),
        remove: plan.remove.clone(),
        grace_ms: plan.grace_ms,
        ..KeepPlan::default()
    })
}

pub(super) fn native(plan: &StartPlan, places: &Places, name: String) -> Result<Arrangement, HostError> {
    if plan.spec.command.is_empty() {
        return Err(format!("{} cannot be started natively: its file has no command", plan.system).into());
    }
    layout::write_files(plan.spec, places, &plan.dir)?;
    if let Some(certificates) = &plan.certificates {
        certificates.write(&plan.dir.join(TLS))?;
    }
    let command = found(layout::fill(places, &plan.spec.command)?);
    let prepare = plan.spec.prepare.iter().map(|command| Ok(found(layout::fill(places, command)?)));
    let prepare = prepare.collect::<Result<_, HostError>>()?;
    let base = keep_plan(plan, places, &name)?;
    let mut group = Group::create(&name, plan.limits);
    if !plan.processors.is_empty() {
        group.bind(plan.processors);
    }
    let beside = plan.spec.cluster.iter().filter(|_| places.members.len() > 1);
    let beside = beside.flat_map(|cluster| &cluster.beside).cloned().collect::<Vec<String>>();
    let beside = found(layout::fill(places, &beside)?);
    let (groups, cpus) = (group.accounts.folders(), group.cpus.clone());
    let keep = KeepPlan { command, beside, prepare, groups, cpus, ..base };
    Ok((keep, group, None))
}

/// Returns a command with the full path of its program, which is searched not only on the
/// path. It is searched here, since the server's environment may have another home.
fn found(mut command: Vec<String>) -> Vec<String> {
    if let Some(word) = command.first_mut()
        && let Some(path) = find_program(word)
    {
        *word = path.display().to_string();
    }
    command
}

pub(super) fn contained(plan: &StartPlan, places: &Places, name: String) -> Result<Arrangement, HostError> {
    let spec = plan.spec.container.as_ref().ok_or_else(|| format!("{} has no container", plan.system))?;
    let absent = || format!("nothing here runs containers (`{}`): install podman or docker", plan.deployment);
    let engine = Engine::find(plan.deployment).ok_or_else(absent)?;
    container::sweep(engine);
    let most = |what| nix::sys::resource::getrlimit(what).map(|(_, hard)| hard);
    let here = places.ports.iter().find(|(name, _)| name.is_empty()).map(|(_, port)| *port);
    let address = if places.address.is_empty() { "127.0.0.1".to_owned() } else { places.address.clone() };
    let network = match here {
        _ if spec.port == 0 => Network::Host,
        Some(here) => Network::Published { address, here, within: spec.port },
        None => Network::Engine,
    };
    let named = NamedContainer { engine, name: name.clone() };
    let mut files = layout::write_mounts(spec, places, &plan.dir)?;
    if let Some(certificates) = &plan.certificates {
        files.extend(certificates.write_mounts(&plan.dir.join(TLS))?);
    }
    let container = container::Container {
        engine,
        name: name.clone(),
        image: spec.image.clone(),
        command: layout::fill(places, &spec.command)?,
        environment: layout::fill_values(places, &spec.environment)?,
        files,
        volumes: layout::make_volumes(spec, &plan.dir, nix::unistd::geteuid().is_root())?,
        network,
        limits: plan.limits,
        open_files: most(Resource::RLIMIT_NOFILE).unwrap_or(1_024),
        processes: most(Resource::RLIMIT_NPROC).ok().filter(|most| *most != RLIM_INFINITY),
    };
    let keep = KeepPlan {
        // Variables of the server belong to the container, not to the engine.
        environment: Vec::new(),
        command: named.logs(),
        prepare: vec![container.run()],
        engine: Some(named.orders()),
        clean_up: named.clean_up(plan.grace_ms),
        ..keep_plan(plan, places, &name)?
    };
    let group = Group { accounts: Accounts::default(), applied: Applied::default(), cpus: Vec::new() };
    let (within, oom_kills) = ((spec.port > 0).then_some(spec.port), container::machine_oom_kills());
    let contained = Contained { named, within, image: spec.image.clone(), facts: None, oom_kills };
    Ok((keep, group, Some(contained)))
}
