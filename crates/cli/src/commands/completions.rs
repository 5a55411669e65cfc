//! `pubmark completions`

use crate::args::{Arguments, CompletionsArgs};
use crate::failure::{Code, Failure};
use crate::output::print;
use clap::CommandFactory;
use clap::builder::PossibleValuesParser;
use pubmark_study::registry::{Registry, STUDIES};

/// Prints a completion script with the systems and studies available now.
pub fn completions(args: &CompletionsArgs, registry: &Registry) -> Result<Code, Failure> {
    let systems = registry.names();
    let studies: Vec<String> = STUDIES.iter().map(|study| study.name.to_owned()).collect();
    // Only the script is restricted: the program itself takes paths and endpoints as well.
    let offer = |command: clap::Command, argument: &'static str, words: Vec<String>| {
        command.mut_arg(argument, |it| it.value_parser(PossibleValuesParser::new(words)))
    };
    let mut command = Arguments::command()
        .mut_subcommand("bench", |command| offer(command, "target", systems.clone()))
        .mut_subcommand("systems", |command| offer(command, "name", systems.clone()))
        .mut_subcommand("studies", |command| offer(command, "name", studies.clone()));
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "pubmark", &mut script);
    print(&String::from_utf8_lossy(&script));
    Ok(Code::Done)
}
