//! What an agent of a system's own says of itself, before there is a run.

use crate::lead::hello::fits;
use crate::plan::StudyPlan;
use crate::registry;
use pubmark_host::agent::AgentCommand;
use pubmark_host::clock;
use pubmark_host::install;
use pubmark_host::talk::{Talk, TalkError};
use pubmark_model::diagnostic::Diagnostic;
use pubmark_model::printable::printable;
use pubmark_model::protocol::{AgentHello, UnknownOption};
use pubmark_model::system::System;
use std::collections::BTreeMap;
use std::time::Duration;

/// Starts the agent of a side, greets it and lets it go.
///
/// # Errors
/// Where it cannot be started, does not answer, or cannot play at all.
pub fn hello(system: &System, sends: bool) -> Result<AgentHello, String> {
    let mut command: AgentCommand = install::agent_command(system, sends);
    let program = install::agent_path(system, sends).ok_or("the agent is not found")?;
    if let Some(word) = command.words.first_mut() {
        *word = program.display().to_string();
    }
    let patience = Duration::from_nanos(system.agent.start_timeout_ns);
    let mut talk = Talk::start(&command).map_err(|error| error.to_string())?;
    let hello = talk.hello(patience).map_err(|error| {
        let key = if let TalkError::Silent { .. } = error { " (start_timeout)" } else { "" };
        format!("`{}`: {error}{key}", command.words.join(" "))
    })?;
    talk.finish();
    fits(&hello, Some(&system.driver), &[], clock::now()).map_err(|misfit| misfit.to_string())?;
    Ok(hello)
}

/// Whether the agents that systems bring know the options that the study gives
/// them. One that does not even say hello is for its run to meet.
///
/// # Errors
/// Each option that is not known, once.
pub fn check_options(plan: &StudyPlan) -> Result<(), Vec<Diagnostic>> {
    let mut asked: BTreeMap<&str, (&System, Vec<&str>)> = BTreeMap::new();
    for cell in plan.cells().iter().filter(|cell| cell.skipped.is_none()) {
        let own = registry::find(&cell.system).filter(|system| !system.agent.built_in());
        let Some(system) = own else { continue };
        let (_, names) = asked.entry(&cell.system).or_insert((system, Vec::new()));
        for name in system.asks_of_clients(&cell.options, &cell.set_options) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    let mut unknown: Vec<Diagnostic> = Vec::new();
    for (name, (system, options)) in asked.into_iter().filter(|(_, (_, options))| !options.is_empty()) {
        let sides: &[bool] = if system.agent.differs() { &[true, false] } else { &[true] };
        for said in sides.iter().filter_map(|sends| hello(system, *sends).ok()) {
            let each = options.iter().map(|option| said.knows_options(&system.driver, [*option]));
            let found = each.filter_map(Result::err).map(|error| refused(name, error));
            unknown.extend(found.filter(|found| !unknown.contains(found)).collect::<Vec<_>>());
        }
    }
    if unknown.is_empty() { Ok(()) } else { Err(unknown) }
}

fn refused(system: &str, error: UnknownOption) -> Diagnostic {
    let UnknownOption { agent, option, meant, .. } = error;
    let agent = printable(&agent);
    Diagnostic::whole(format!("options.{option} cannot be given to {system}: its agent {agent} does not know it"))
        .help(printable(&meant))
}
