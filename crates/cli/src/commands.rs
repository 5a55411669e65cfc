//! One file a subcommand.

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
mod shared;
mod sink;
mod studies;
mod systems;

use crate::args::{Arguments, Command};
use crate::failure::{Code, Failure};
use crate::output::Voice;
use clap::CommandFactory;

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
