//! The agent that is tried, and what is known of its driver.

use crate::server::Meeting;
use crate::wrong::Wrong;
use pubmark_host::agent::AgentCommand;
use pubmark_model::options::Options;
use pubmark_model::protocol::{Features, ServerAddress};
use pubmark_model::system::System;
use pubmark_model::workload::{Pattern, Transport};
use std::cell::OnceCell;
use std::sync::Arc;

/// What the caller knows of a driver, by the system that uses it.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// Its options, defaults filled in.
    pub options: Options,
    /// The transports of the system; none for a broker.
    pub transports: Vec<Transport>,
    /// The patterns of the system: an agent with several drivers says in its
    /// `hello` what it can play with any of them. Empty where no system is known.
    pub patterns: Vec<Pattern>,
    /// The system whose clients meet at a server.
    pub server: Option<Arc<System>>,
}

/// What is to be tried.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// The driver; else the first of the agent's that needs no server, or the first.
    pub driver: Option<String>,
    /// One transport; else all of the driver's.
    pub transport: Option<Transport>,
    /// The command of pubmark's own agent, the other side of some cases.
    pub built_in: AgentCommand,
    /// Cases by name, or by the beginning of their names; all where there are none.
    pub only: Vec<String>,
}

/// The agent on one transport.
pub struct Subject<'a> {
    /// The command that starts it as the side that sends …
    pub sending: &'a AgentCommand,
    /// … and as the side that receives.
    pub receiving: &'a AgentCommand,
    /// The driver.
    pub driver: &'a str,
    /// Its options.
    pub options: &'a Options,
    /// The transport; none where there is no choice.
    pub transport: Option<Transport>,
    /// The patterns of the driver; empty where they are not known.
    pub patterns: &'a [Pattern],
    /// The system, where clients meet at a server.
    pub system: Option<&'a System>,
    /// The command of pubmark's own agent.
    pub built_in: &'a AgentCommand,
    /// What the agent says that it can play.
    pub features: Features,
    /// The server that [`Subject::relay`] has started.
    pub relay: OnceCell<Meeting>,
}

impl Subject<'_> {
    /// Whether it has a pattern, and its system does.
    pub fn plays(&self, pattern: Pattern) -> bool {
        let of_system = self.patterns.is_empty() || self.patterns.contains(&pattern);
        of_system && self.features.patterns.iter().any(|word| word == pattern.word())
    }

    /// Whether it can be told that the clock of instants in messages is ahead.
    pub fn can_shift(&self, ahead_ns: i64) -> Result<(), Wrong> {
        match ahead_ns == 0 || self.features.clock_offset {
            true => Ok(()),
            false => Err(Wrong::NotTried("its `hello` does not say `clock_offset`".into())),
        }
    }

    /// A server for it that does nothing but hand on; none where it needs none.
    pub fn relay(&self) -> Result<Option<ServerAddress>, Wrong> {
        let Some(system) = self.system else { return Ok(None) };
        if self.relay.get().is_none() {
            let _ = self.relay.set(Meeting::start(self.driver, system, "")?);
        }
        Ok(self.relay.get().map(Meeting::address))
    }
}
