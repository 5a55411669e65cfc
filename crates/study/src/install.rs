//! What is installed, and how to get the rest.

use crate::agent::{Agent, Incoming};
use crate::scratch::Scratch;
use pubmark_model::protocol::{Client, Command, Event, Prepare, Role};
use pubmark_model::setting::{Settings, with_defaults};
use pubmark_model::system::System;
use pubmark_model::workload::{Pattern, Workload};
use serde_json::{Map, Value};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

/// How long an agent may take to load a library.
const ANSWER: Duration = Duration::from_secs(10);

/// Whether a system can be used here.
#[derive(Clone, Debug, PartialEq)]
pub enum Presence {
    /// Yes: what it reports of itself.
    Here(Map<String, Value>),
    /// No, and why.
    Missing(String),
}

/// Finds out by trying: an agent loads the library and says which it is.
pub fn probe(system: &System, agent: &[String]) -> Presence {
    let tried = try_out(system, agent);
    match tried {
        Ok(versions) => Presence::Here(versions),
        Err(error) => Presence::Missing(error),
    }
}

fn try_out(system: &System, command: &[String]) -> Result<Map<String, Value>, String> {
    let scratch = Scratch::create().map_err(|error| error.to_string())?;
    let (outbox, inbox) = channel();
    let log = scratch.path().join("agent.log");
    let mut agent = Agent::start(command, "probe", &log, 0, outbox).map_err(|error| error.to_string())?;
    let mut settings: Settings = with_defaults(Settings::new());
    settings.insert("pattern".into(), Pattern::FanOut.word().into());
    if let Some(transport) = system.transports.first() {
        settings.insert("transport".into(), transport.word().into());
    }
    let workload = Workload::resolve(&settings).map_err(|errors| errors.join("; "))?;
    agent.tell(&Command::Prepare(Box::new(Prepare {
        driver: system.driver.clone(),
        options: system.options.iter().filter_map(|spec| Some((spec.name.clone(), spec.default.clone()?))).collect(),
        workload,
        clients: vec![Client {
            role: Role::Publisher,
            id: 0,
            bind: Some("inproc://0".into()),
            connect: Vec::new(),
            hears_first: 0,
            hears_count: 0,
        }],
        scratch: String::new(),
        server: None,
        publisher_cpus: Vec::new(),
        subscriber_cpus: Vec::new(),
    })));
    agent.tell(&Command::Stop {});
    let deadline = Instant::now() + ANSWER;
    loop {
        match inbox.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok((_, Incoming::Event(event))) => match *event {
                Event::Result(result) => {
                    agent.tell(&Command::Exit {});
                    agent.finish();
                    return Ok(result.versions);
                }
                Event::Error { message, .. } => return Err(message),
                _ => {}
            },
            Ok((_, Incoming::Garbage(line))) => return Err(line),
            Ok((_, Incoming::Closed)) => return Err(agent.obituary()),
            Err(_) => return Err(format!("the agent did not answer within {} s", ANSWER.as_secs())),
        }
    }
}

/// Where what is pinned is installed to: `$XDG_CACHE_HOME/pubmark/systems/NAME`.
pub fn cache_folder(system: &System) -> PathBuf {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = absolute("XDG_CACHE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".cache")));
    base.unwrap_or_else(std::env::temp_dir).join("pubmark").join("systems").join(&system.name)
}

/// The command that installs a system.
pub fn command(system: &System) -> Option<Vec<String>> {
    if system.install.debian.is_empty() {
        return None;
    }
    let words = ["apt-get", "install", "--yes", "--no-install-recommends"].into_iter().map(str::to_owned);
    let sudo = (!nix::unistd::geteuid().is_root()).then(|| "sudo".to_owned());
    Some(sudo.into_iter().chain(words).chain(system.install.debian.iter().cloned()).collect())
}

/// Runs the command that installs a system; what it prints is the user's to see.
pub fn install(system: &System) -> Result<(), String> {
    let words = command(system).ok_or_else(|| format!("{} needs no installation", system.name))?;
    let (program, arguments) = words.split_first().ok_or("nothing to run")?;
    let status = std::process::Command::new(program).args(arguments).stdin(Stdio::null()).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => {
            Err(format!("`{}` failed ({status}); run it by hand, perhaps after `apt-get update`", words.join(" ")))
        }
        Err(error) => Err(format!(
            "`{program}` cannot be run ({error}): this is made for Debian and its kin; elsewhere install {} by your own package manager",
            system.install.debian.join(", ")
        )),
    }
}
