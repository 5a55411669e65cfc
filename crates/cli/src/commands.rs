//! Subcommands, one file each.

mod ab;
mod agent;
mod agent_check;
mod answers;
mod ask_kafka;
mod bare;
mod bench;
mod budget;
mod calibrate;
mod capacity;
mod card;
mod claims;
mod compare;
mod completions;
mod doctor;
mod engine;
mod fit;
mod gates;
mod keep;
mod leftovers;
mod measure;
mod new_system;
mod omb;
mod peer;
mod promises;
mod report;
mod rows;
mod run;
mod searches;
mod shared;
mod sink;
mod studies;
mod study;
mod systems;
mod systems_on_hosts;
mod target;
mod trace;
mod trace_output;
mod trace_record;

use crate::args::{Arguments, PubmarkCommand};
use crate::failure::{Code, Failure};
use crate::output::Voice;
use pubmark_study::registry::Registry;

/// Runs the subcommand.
pub fn dispatch(arguments: Arguments) -> Result<Code, Failure> {
    let voice = Voice { quiet: arguments.quiet, verbose: arguments.verbose };
    let folders = shared::system_folders(&arguments.systems)?;
    let registry = || Registry::load(&folders).map_err(Failure::usage);
    match arguments.command {
        PubmarkCommand::Run(args) => run::run(&args, registry()?, voice),
        PubmarkCommand::Bench(args) => bench::bench(&args, registry()?, voice),
        PubmarkCommand::Ab(args) => ab::ab(&args, registry()?, voice),
        PubmarkCommand::Capacity(args) => capacity::capacity(&args, registry()?, voice),
        PubmarkCommand::Card(args) => card::card(&args, registry()?, voice),
        PubmarkCommand::Systems(args) => systems::systems(&args, registry()?),
        PubmarkCommand::Studies(args) => studies::studies(&args, &registry()?),
        PubmarkCommand::Trace(args) => trace::trace(&args),
        PubmarkCommand::Report(args) => report::report(&args, &registry()?),
        PubmarkCommand::Claims(args) => claims::claims(&args, &registry()?),
        PubmarkCommand::Compare(args) => compare::compare(&args, &registry()?),
        PubmarkCommand::Doctor(args) => doctor::doctor(&args, &registry()?),
        PubmarkCommand::Calibrate(args) => calibrate::calibrate(&args, voice),
        PubmarkCommand::Agent => agent::agent(),
        PubmarkCommand::AgentCheck(args) => agent_check::agent_check(&args, registry()?),
        PubmarkCommand::Host => keep::host(),
        PubmarkCommand::Keep => keep::keep(),
        PubmarkCommand::Launch(args) => keep::launch(args),
        PubmarkCommand::LedgerDisk(args) => keep::ledger_disk(&args),
        PubmarkCommand::AskKafka(args) => ask_kafka::ask(&args),
        PubmarkCommand::Remove => leftovers::remove(),
        PubmarkCommand::Awake(args) => keep::awake(&args),
        PubmarkCommand::Peer(args) => peer::peer(&args),
        PubmarkCommand::Rows(args) => rows::rows(&args),
        PubmarkCommand::Sink(args) => sink::sink(&args),
        PubmarkCommand::Bare(args) => bare::bare(&args),
        PubmarkCommand::Completions(args) => completions::completions(&args, &registry()?),
    }
}
