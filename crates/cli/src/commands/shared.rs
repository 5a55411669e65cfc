//! Helpers of several subcommands.

use crate::failure::{Code, Failure};
use pubmark_files::{Links, read_text};
use pubmark_host::cache::config_folder;
use pubmark_model::diagnostic::{Diagnostics, suggestion};
use pubmark_model::hosts::Hosts;
use pubmark_model::system::System;
use pubmark_study::registry::Registry;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Returns the path of this program.
pub fn program() -> Result<String, Failure> {
    let program = std::env::current_exe()
        .map_err(|error| Failure::run(format!("this program's own path is unknown: {error}")))?;
    Ok(program.display().to_string())
}

/// Returns the command that starts the built-in agent.
pub fn agent_command() -> Result<Vec<String>, Failure> {
    Ok(vec![program()?, "agent".into()])
}

/// Returns a flag that Ctrl-C (and SIGTERM, SIGHUP) sets; a second signal ends the process at once.
pub fn interrupt_flag() -> Result<Arc<AtomicBool>, Failure> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP] {
        let registered = signal_hook::flag::register_conditional_shutdown(signal, Code::Run as i32, flag.clone())
            .and_then(|_| signal_hook::flag::register(signal, flag.clone()));
        registered.map_err(|error| Failure::run(format!("no handler for signal {signal}: {error}")))?;
    }
    Ok(flag)
}

/// Rewrites errors about keys as errors about flags: a study's key has a flag of its name, with two exceptions.
pub fn by_flags(mut errors: Diagnostics, keys: &[&str]) -> Diagnostics {
    for error in &mut errors.errors {
        for key in keys {
            let flag = match *key {
                "use" => "settings".to_owned(),
                "watch" => "server".to_owned(),
                key => key.replace('_', "-"),
            };
            if let Some(rest) = error.message.strip_prefix(&format!("--set {key}=")) {
                error.message = format!("--{flag}={}", rest.replacen(&format!(": {key}: "), ": ", 1));
            }
        }
    }
    errors
}

/// Raises the limit on open files as far as possible; agents inherit it.
pub fn raise_open_files() {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE)
        && soft < hard
    {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
}

/// Reads a file of hosts.
pub fn hosts(file: &Path) -> Result<Hosts, Failure> {
    let cannot = |error: std::io::Error| Failure::usage(format!("--hosts {}: {error}", file.display()));
    let text = read_text(file, Links::Follow).map_err(cannot)?;
    Hosts::parse(&file.display().to_string(), &text).map_err(Failure::usage)
}

/// Returns the folders of the user's system files, in which the first file of each name counts: as given, in the
/// working folder, in the user's configuration.
pub fn system_folders(given: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    if let Some(strange) = given.iter().find(|folder| !folder.is_dir()) {
        return Err(Failure::usage(format!("--systems {}: there is no such folder", strange.display())));
    }
    let usual = [PathBuf::from(SYSTEMS), config_folder().join(SYSTEMS)];
    let absolute = |folder: &PathBuf| std::path::absolute(folder).unwrap_or_else(|_| folder.clone());
    Ok(given.iter().chain(&usual).map(absolute).collect())
}

/// Name of the folder of system files.
pub const SYSTEMS: &str = "systems";

/// Finds a system by its name or its file's path.
pub fn system(registry: &mut Registry, named: &str) -> Result<Arc<System>, Failure> {
    registry.require(named, Path::new("")).map_err(Failure::usage)?;
    let unknown = || {
        let names = registry.names();
        let near = suggestion(named, names.iter().map(String::as_str));
        Failure::usage(format!("there is no system `{named}`: {near}"))
    };
    registry.find(named).ok_or_else(unknown)
}

/// Refuses a folder without results.
pub fn has_results(folder: &Path) -> Result<(), Failure> {
    match folder.join("runs.jsonl").exists() {
        true => Ok(()),
        false => Err(Failure::usage(format!("{} is not a results folder: it has no runs.jsonl", folder.display()))),
    }
}

/// Parses `KEY=VALUE` pairs.
pub fn pairs(typed: &[String], flag: &str) -> Result<Vec<(String, String)>, Failure> {
    let split = |text: &String| {
        let (key, value) = text.split_once('=').filter(|(key, _)| !key.trim().is_empty())?;
        Some((key.trim().to_owned(), value.trim().to_owned()))
    };
    // Text that is not a pair may be a secret as well.
    let key = |c: &char| c.is_ascii_alphanumeric() || "._-".contains(*c);
    let bad = |text: &String| {
        Failure::usage(format!("{flag} {}…: write {flag} KEY=VALUE", text.chars().take_while(key).collect::<String>()))
    };
    typed.iter().map(|text| split(text).ok_or_else(|| bad(text))).collect()
}
