//! The tested agent, and known facts about its driver.

use crate::server::TestServer;
use crate::wrong::CaseFailure;
use pubmark_host::agent::AgentCommand;
use pubmark_model::options::Options;
use pubmark_model::protocol::{Features, ServerAddress};
use pubmark_model::system::System;
use pubmark_model::workload::{Pattern, Transport};
use std::cell::OnceCell;
use std::sync::Arc;

/// Facts about a driver, by the system that uses it.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// Its options, defaults filled in.
    pub options: Options,
    /// Transports of the system; none for a broker.
    pub transports: Vec<Transport>,
    /// Patterns of the system: the `hello` of an agent with several drivers lists those of all its drivers. Empty if no
    /// system is known.
    pub patterns: Vec<Pattern>,
    /// System whose clients meet at a server.
    pub server: Option<Arc<System>>,
}

/// Parameters of a test.
#[derive(Clone, Debug, Default)]
pub struct CaseParameters {
    /// Driver; by default the agent's first that needs no server, or else its first.
    pub driver: Option<String>,
    /// Transport; by default all of the driver's.
    pub transport: Option<Transport>,
    /// Command of pubmark's own agent, the other side of some cases.
    pub built_in: AgentCommand,
    /// Names of cases, or their beginnings; empty for all.
    pub only: Vec<String>,
}

/// The agent on one transport.
pub struct TestedAgent<'a> {
    /// Command that starts it as the sending side …
    pub sending: &'a AgentCommand,
    /// … and as the receiving side.
    pub receiving: &'a AgentCommand,
    /// Name of the driver.
    pub driver: &'a str,
    /// Options of the driver.
    pub options: &'a Options,
    /// Transport; `None` if there is no choice.
    pub transport: Option<Transport>,
    /// Patterns of the driver; empty if unknown.
    pub patterns: &'a [Pattern],
    /// System, if clients meet at a server.
    pub system: Option<&'a System>,
    /// Command of pubmark's own agent.
    pub built_in: &'a AgentCommand,
    /// Features in the agent's hello.
    pub features: Features,
    /// Server that [`TestedAgent::relay`] has started.
    pub relay: OnceCell<TestServer>,
}

impl TestedAgent<'_> {
    /// Returns whether it supports a pattern, and its system does.
    pub fn plays(&self, pattern: Pattern) -> bool {
        let of_system = self.patterns.is_empty() || self.patterns.contains(&pattern);
        of_system && self.features.patterns.iter().any(|word| word == pattern.word())
    }

    /// Checks that it supports a lead of the clock of instants in messages.
    pub fn can_shift(&self, ahead_ns: i64) -> Result<(), CaseFailure> {
        match ahead_ns == 0 || self.features.clock_offset {
            true => Ok(()),
            false => Err(CaseFailure::NotTried("its `hello` does not say `clock_offset`".into())),
        }
    }

    /// Returns a server for it that only passes messages on; `None` if it needs none.
    pub fn relay(&self) -> Result<Option<ServerAddress>, CaseFailure> {
        let Some(system) = self.system else { return Ok(None) };
        if self.relay.get().is_none() {
            let _ = self.relay.set(TestServer::start(self.driver, system, "")?);
        }
        Ok(self.relay.get().map(TestServer::address))
    }
}
