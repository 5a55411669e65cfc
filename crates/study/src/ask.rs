//! What an agent of a system's own says of itself, before there is a run.

use crate::lead::hello::{Misfit, can_crash, fits};
use crate::plan::StudyPlan;
use crate::registry;
use pubmark_host::agent::AgentCommand;
use pubmark_host::clock;
use pubmark_host::install;
use pubmark_host::talk::{Talk, TalkError};
use pubmark_model::diagnostic::Diagnostic;
use pubmark_model::fault::Target;
use pubmark_model::printable::printable;
use pubmark_model::protocol::{AgentHello, UnknownOption};
use pubmark_model::system::System;
use pubmark_model::workload::Workload;
use std::collections::BTreeMap;
use std::time::Duration;

/// Starts the agent of a side, greets it and lets it go.
///
/// # Errors
/// Where it cannot be started, does not answer, or cannot play at all.
pub fn hello(system: &System, sends: bool) -> Result<AgentHello, String> {
    let hello = greet(system, sends)?;
    fits(&hello, Some(&system.driver), &[], clock::now()).map_err(|misfit| misfit.to_string())?;
    Ok(hello)
}

/// The same, whatever it answers.
fn greet(system: &System, sends: bool) -> Result<AgentHello, String> {
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
    Ok(hello)
}

/// What a study asks of the agents of one system.
struct Asked<'a> {
    system: &'a System,
    options: Vec<&'a str>,
    workloads: Vec<&'a Workload>,
    killed: Vec<Target>,
}

/// Whether the agents that systems bring can play the study, and know the options
/// that it gives them. One that does not even say hello is for its run to meet.
///
/// # Errors
/// Whatever one of them has not, each once.
pub fn check_agents(plan: &StudyPlan) -> Result<(), Vec<Diagnostic>> {
    let mut asked: BTreeMap<&str, Asked<'_>> = BTreeMap::new();
    // Agents on other hosts are those that lie there.
    for cell in plan.cells().iter().filter(|cell| cell.skipped.is_none() && cell.placement.local()) {
        let own = registry::find(&cell.system).filter(|system| !system.agent.built_in());
        let Some(system) = own else { continue };
        let none = || Asked { system, options: Vec::new(), workloads: Vec::new(), killed: Vec::new() };
        let asked = asked.entry(&cell.system).or_insert_with(none);
        for name in system.asks_of_clients(&cell.options, &cell.set_options) {
            if !asked.options.contains(&name) {
                asked.options.push(name);
            }
        }
        asked.workloads.push(&cell.workload);
        asked.killed.extend(cell.faults.killed_sides().map(|(_, side)| side));
    }
    let mut refused: Vec<Diagnostic> = Vec::new();
    for (name, asked) in asked {
        let sides: &[bool] = if asked.system.agent.differs() { &[true, false] } else { &[true] };
        for sends in sides {
            // Where it gives no hello, its run says so.
            let Ok(hello) = greet(asked.system, *sends) else { continue };
            for found in asked.misfits(name, &hello, *sends) {
                if !refused.contains(&found) {
                    refused.push(found);
                }
            }
        }
    }
    if refused.is_empty() { Ok(()) } else { Err(refused) }
}

impl Asked<'_> {
    /// What of it the agent of a side has not.
    fn misfits(&self, name: &str, hello: &AgentHello, sends: bool) -> Vec<Diagnostic> {
        let (driver, now) = (Some(self.system.driver.as_str()), clock::now());
        let cannot =
            |misfit: Misfit| Diagnostic::whole(printable(&format!("{name} cannot be played: the agent {misfit}")));
        if let Err(misfit) = fits(hello, driver, &[], now) {
            return vec![cannot(misfit)];
        }
        let plays = self.workloads.iter().filter_map(|workload| fits(hello, driver, &[workload], now).err());
        let mut found: Vec<Diagnostic> = Vec::new();
        for misfit in plays.map(cannot) {
            if !found.contains(&misfit) {
                found.push(misfit);
            }
        }
        let side = if sends { Target::Publishers } else { Target::Subscribers };
        let both = !self.system.agent.differs();
        if self.killed.iter().any(|killed| both || *killed == side) {
            found.extend(can_crash(hello).map_err(cannot).err());
        }
        let each = self.options.iter().map(|option| hello.knows_options(&self.system.driver, [*option]));
        found.extend(each.filter_map(Result::err).map(|error| unknown(name, error)));
        found
    }
}

fn unknown(system: &str, error: UnknownOption) -> Diagnostic {
    let UnknownOption { agent, option, meant, .. } = error;
    let agent = printable(&agent);
    Diagnostic::whole(format!("options.{option} cannot be given to {system}: its agent {agent} does not know it"))
        .help(printable(&meant))
}
