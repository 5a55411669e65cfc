//! `pubmark completions`

use crate::args::{Arguments, CompletionsArgs};
use crate::failure::{Code, Failure};
use crate::output::print;
use clap::CommandFactory;
use clap::builder::PossibleValuesParser;
use pubmark_study::registry;

/// Prints a script that knows the systems and studies of the moment.
pub fn completions(args: &CompletionsArgs) -> Result<Code, Failure> {
    registry::load().map_err(Failure::usage)?;
    let systems: Vec<&'static str> = registry::systems().into_iter().map(|system| system.name.as_str()).collect();
    let studies = registry::STUDIES.iter().map(|study| study.name);
    // Only the script is told: the program itself takes paths and endpoints as well.
    let offer = |command: clap::Command, argument: &'static str, words: Vec<&'static str>| {
        command.mut_arg(argument, |it| it.value_parser(PossibleValuesParser::new(words)))
    };
    let mut command = Arguments::command()
        .mut_subcommand("bench", |command| offer(command, "target", systems.clone()))
        .mut_subcommand("systems", |command| offer(command, "name", systems.clone()))
        .mut_subcommand("studies", |command| offer(command, "name", studies.clone().collect()));
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "pubmark", &mut script);
    print(&String::from_utf8_lossy(&script));
    Ok(Code::Done)
}
