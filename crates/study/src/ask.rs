//! What an agent of a system's own says of itself, before there is a run.

use crate::lead::hello::fits;
use crate::plan::StudyPlan;
use crate::registry;
use pubmark_host::agent::{Agent, AgentCommand, Incoming};
use pubmark_host::clock;
use pubmark_host::install;
use pubmark_host::scratch::Scratch;
use pubmark_model::diagnostic::Diagnostic;
use pubmark_model::printable::printable;
use pubmark_model::protocol::{AgentHello, Command, Event, UnknownOption, VERSION};
use pubmark_model::secret::Secrets;
use pubmark_model::system::System;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// What an agent said: as it was understood, and as it came.
pub struct Greeting {
    /// Its answer.
    pub hello: AgentHello,
    /// The line.
    pub raw: Value,
}

/// Starts the agent of a side, greets it and lets it go.
///
/// # Errors
/// Where it cannot be started, does not answer, or cannot play at all.
pub fn hello(system: &System, sends: bool) -> Result<Greeting, String> {
    let scratch = Scratch::create().map_err(|error| error.to_string())?;
    let mut command: AgentCommand = install::agent_command(system, sends);
    let program = install::agent_path(system, sends).ok_or("the agent is not found")?;
    if let Some(word) = command.words.first_mut() {
        *word = program.display().to_string();
    }
    let (outbox, inbox) = channel();
    let log = scratch.path().join("agent.log");
    let say = move |line: Option<&[u8]>| {
        // Whether it said what it can play is no longer seen once that is filled in.
        let raw = line.and_then(|line| serde_json::from_slice::<Value>(line).ok()).unwrap_or_default();
        drop(outbox.send((Incoming::of(line, &Secrets::default()), raw)));
    };
    let started = Agent::start_command(&command, "probe", &log, scratch.path(), &Secrets::default(), say);
    let shown = || command.words.join(" ");
    let mut agent = started.map_err(|error| format!("`{}` could not be started: {error}", shown()))?;
    agent.tell(&Command::Hello { protocol: VERSION });
    let patience = Duration::from_nanos(system.agent.start_timeout_ns);
    let (said, raw) = match inbox.recv_timeout(patience) {
        Ok(heard) => heard,
        Err(RecvTimeoutError::Disconnected) => (Incoming::Closed, Value::Null),
        Err(RecvTimeoutError::Timeout) => {
            return Err(format!("`{}` did not say hello within {} s (start_timeout)", shown(), patience.as_secs_f64()));
        }
    };
    let hello = match said {
        Incoming::Event(event) => match *event {
            Event::Hello(hello) => *hello,
            Event::Error { message, .. } => return Err(message),
            _ => return Err(format!("`{}` said something else than hello", shown())),
        },
        Incoming::Garbage(line) => return Err(format!("`{}` said what is no event: {line}", shown())),
        Incoming::Closed => return Err(format!("`{}` ended: {}", shown(), agent.exit_reason())),
    };
    agent.tell(&Command::Exit {});
    agent.finish();
    fits(&hello, Some(&system.driver), &[], clock::now()).map_err(|misfit| misfit.to_string())?;
    Ok(Greeting { hello, raw })
}

/// Whether the agents that systems bring know the options that the study gives
/// them. One that does not even say hello is for its run to meet.
///
/// # Errors
/// Each option that is not known, once.
pub fn check_options(plan: &StudyPlan) -> Result<(), Vec<Diagnostic>> {
    let mut asked: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut systems: BTreeMap<&str, &System> = BTreeMap::new();
    for cell in plan.cells().iter().filter(|cell| cell.skipped.is_none()) {
        let own = registry::find(&cell.system).filter(|system| !system.agent.built_in());
        let Some(system) = own else { continue };
        let names = asked.entry(&cell.system).or_default();
        systems.insert(&cell.system, system);
        for name in system.asks_of_clients(&cell.options, &cell.set_options) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    let mut unknown: Vec<Diagnostic> = Vec::new();
    for (name, options) in asked.into_iter().filter(|(_, options)| !options.is_empty()) {
        let Some(system) = systems.get(name) else { continue };
        let sides: &[bool] = if system.agent.differs() { &[true, false] } else { &[true] };
        for said in sides.iter().filter_map(|sends| hello(system, *sends).ok()) {
            let each = options.iter().map(|option| said.hello.knows_options(&system.driver, [*option]));
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
