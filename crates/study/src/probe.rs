//! Tests whether a system can be used here.

use crate::ask;
use crate::lead::hello::identity;
use pubmark_host::install::{self, Availability, library};
use pubmark_model::printable::printable;
use pubmark_model::system::System;
use serde_json::{Map, Value};

/// Tests whether a system can be used: an agent reports its drivers and versions, or loads the library; a broker's
/// program prints its version.
pub fn probe(system: &System, agent: &[String]) -> Availability {
    let server = if system.broker() { install::probe(system) } else { install::look(system) };
    let Availability::Here(mut found) = server else { return server };
    let asked = match (system.agent.built_in(), system.broker()) {
        (false, _) => ask_own(system),
        (true, true) => Ok(Map::new()),
        (true, false) => library::load(system, agent),
    };
    match asked {
        Ok(said) => {
            found.extend(said);
            Availability::Here(found)
        }
        Err(error) => Availability::Missing(error),
    }
}

/// Asks the agents of both sides, or the one that plays both.
fn ask_own(system: &System) -> Result<Map<String, Value>, String> {
    let mut found = hello(system, true)?;
    if system.agent.differs() {
        let subscriber = hello(system, false)?;
        found.insert("subscriber".into(), subscriber.into());
    }
    Ok(found)
}

/// Returns an agent's hello: its name, drivers, abilities and options, and its versions if it reports them that early.
fn hello(system: &System, sends: bool) -> Result<Map<String, Value>, String> {
    let hello = ask::hello(system, sends)?;
    let who = identity(&hello);
    let features = serde_json::to_string(&hello.features).unwrap_or_default();
    let mut found = Map::new();
    found.insert("agent".into(), format!("{} {}", who.name, who.version).into());
    found.extend(hello.versions.iter().map(|(name, version)| (printable(name).into_owned(), shown_text(version))));
    found.insert("features".into(), shown_text(&features));
    if let Some(known) = hello.options.get(&system.driver) {
        found.insert("knows".into(), shown_text(&known.join(", ")));
    }
    found.insert("drivers".into(), hello.drivers.into());
    Ok(found)
}

/// Returns text of an agent, shortened and printable.
fn shown_text(text: &str) -> Value {
    printable(text).chars().take(SHOWN_CHARS).collect::<String>().into()
}

/// Maximum number of characters shown of an agent's text.
const SHOWN_CHARS: usize = 300;
