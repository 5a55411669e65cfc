//! One file a subcommand; what they share.

mod agent;
mod answers;
mod bare;
mod bench;
mod calibrate;
mod compare;
mod doctor;
mod keep;
mod peer;
mod report;
mod run;
mod sink;
mod studies;
mod systems;

use crate::args::{Arguments, Command};
use crate::failure::{Code, Failure};
use crate::output::note;
use clap::CommandFactory;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Runs the subcommand.
pub fn dispatch(arguments: Arguments) -> Result<Code, Failure> {
    let voice = Voice { quiet: arguments.quiet, verbose: arguments.verbose };
    match arguments.command {
        Command::Run(args) => run::run(&args, voice),
        Command::Bench(args) => bench::bench(&args, voice),
        Command::Systems(args) => systems::systems(&args),
        Command::Studies(args) => studies::studies(&args),
        Command::Report(args) => report::report(&args),
        Command::Compare(args) => compare::compare(&args),
        Command::Doctor(args) => doctor::doctor(&args),
        Command::Calibrate(args) => calibrate::calibrate(&args, voice),
        Command::Agent => agent::agent(),
        Command::AgentCheck(args) => agent::check(&args),
        Command::Host => keep::host(),
        Command::Keep => keep::keep(),
        Command::Launch(args) => keep::launch(args),
        Command::Awake(args) => keep::awake(&args),
        Command::Peer(args) => peer::peer(&args),
        Command::Sink(args) => sink::sink(&args),
        Command::Bare(args) => bare::bare(&args),
        Command::Completions(args) => {
            let mut script = Vec::new();
            clap_complete::generate(args.shell, &mut Arguments::command(), "pubmark", &mut script);
            crate::output::print(&String::from_utf8_lossy(&script));
            Ok(Code::Done)
        }
    }
}

/// How much to say.
#[derive(Clone, Copy)]
pub struct Voice {
    /// Only what was asked for.
    pub quiet: bool,
    /// More.
    pub verbose: bool,
}

impl Voice {
    /// Says something that was not asked for.
    fn note(self, text: &str) {
        if !self.quiet {
            note(text);
        }
    }
}

/// This program.
fn program() -> Result<String, Failure> {
    let program = std::env::current_exe()
        .map_err(|error| Failure::run(format!("this program's own path is unknown: {error}")))?;
    Ok(program.display().to_string())
}

/// The command that starts the built-in agent.
fn agent_command() -> Result<Vec<String>, Failure> {
    Ok(vec![program()?, "agent".into()])
}

/// A flag that Ctrl-C (and SIGTERM, SIGHUP) sets; a second one ends at once.
fn interrupt_flag() -> Result<Arc<AtomicBool>, Failure> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP] {
        let registered = signal_hook::flag::register_conditional_shutdown(signal, Code::Run as i32, flag.clone())
            .and_then(|_| signal_hook::flag::register(signal, flag.clone()));
        registered.map_err(|error| Failure::run(format!("no handler for signal {signal}: {error}")))?;
    }
    Ok(flag)
}

/// Agents inherit the limit on open files: let it be as high as it may.
fn raise_open_files() {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE)
        && soft < hard
    {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
}

/// Refuses a folder that holds no results.
fn has_results(folder: &Path) -> Result<(), Failure> {
    match folder.join("runs.jsonl").exists() {
        true => Ok(()),
        false => Err(Failure::usage(format!("{} is no results folder: it has no runs.jsonl", folder.display()))),
    }
}

/// `KEY=VALUE` pairs as typed.
fn pairs(typed: &[String], flag: &str) -> Result<Vec<(String, String)>, Failure> {
    let split = |text: &String| {
        let (key, value) = text.split_once('=').filter(|(key, _)| !key.trim().is_empty())?;
        Some((key.trim().to_owned(), value.trim().to_owned()))
    };
    // What is no pair may be a secret as well.
    let key = |c: &char| c.is_ascii_alphanumeric() || "._-".contains(*c);
    let bad = |text: &String| {
        Failure::usage(format!("{flag} {}…: write {flag} KEY=VALUE", text.chars().take_while(key).collect::<String>()))
    };
    typed.iter().map(|text| split(text).ok_or_else(|| bad(text))).collect()
}
