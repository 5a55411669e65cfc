//! Checks whether clients can play here: the built-in agent loads the library.

use super::{Availability, agent_missing, look, probe};
use crate::agent::AgentCommand;
use crate::conversation::{AgentConversation, TalkError};
use pubmark_model::host::LOOPBACK;
use pubmark_model::protocol::{Client, Flow, Prepare, Role};
use pubmark_model::system::{Install, System};
use pubmark_model::topology::bind_at;
use pubmark_model::workload::{Pattern, Workload};
use serde_json::{Map, Value};

/// Checks whether a system can be used here: a broker's program prints its version, a
/// library is loaded. `words` start the built-in agent; a system's own agent is not
/// started.
pub fn presence(system: &System, words: &[String]) -> Availability {
    let found = if system.broker() { probe(system) } else { look(system) };
    match found {
        Availability::Here(mut found) if !system.broker() && system.agent.built_in() => match load(system, words) {
            Ok(versions) => {
                found.extend(versions);
                Availability::Here(found)
            }
            Err(why) => Availability::Missing(why),
        },
        found => found,
    }
}

/// Returns why a system's clients cannot play here, with advice.
pub fn clients_missing(system: &System, words: &[String]) -> Option<String> {
    match system.agent.built_in() {
        false => agent_missing(system),
        // A system that needs no installation lacks nothing.
        true if system.broker() || system.install == Install::default() => None,
        true => load(system, words).err(),
    }
}

/// Lets the built-in agent load the library and bind one publisher. Returns the versions
/// that the agent reports.
///
/// # Errors
/// If it fails, with the agent's text.
pub fn load(system: &System, words: &[String]) -> Result<Map<String, Value>, String> {
    let workload = Workload::of([("pattern", Pattern::FanOut.word())]).map_err(|errors| errors.to_string())?;
    let workload = Workload { transport: system.transports.first().copied(), ..workload };
    let load = || {
        let mut talk = AgentConversation::greeted(&AgentCommand { words: words.to_vec(), ..AgentCommand::default() })?;
        talk.prepare(Prepare {
            driver: system.driver.clone(),
            options: system.defaults(),
            flows: vec![Flow::alone(workload.clone())],
            clients: vec![Client {
                role: Role::Publisher,
                id: 0,
                flow: 0,
                bind: Some(bind_at(workload.transport, talk.scratch.path(), LOOPBACK, 0)),
                connect: Vec::new(),
                answers: None,
                hears_first: 0,
                hears_count: 0,
            }],
            scratch: String::new(),
            server: None,
            spin_cores: 0.0,
            clock_offset_ns: 0,
            publisher_cpus: Vec::new(),
            subscriber_cpus: Vec::new(),
        })?;
        talk.ready()?;
        let result = talk.stop()?;
        talk.finish();
        Ok(result.versions)
    };
    load().map_err(|error| match error {
        TalkError::Refused { message, .. } => message,
        other => other.to_string(),
    })
}
