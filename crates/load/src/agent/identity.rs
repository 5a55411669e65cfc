//! An agent's identity: its name, version and drivers.

use crate::drivers::{self, DriverKind};
use crate::simulation;
use pubmark_model::diagnostic::suggestion;
use pubmark_model::pattern::Pattern;
use pubmark_model::protocol::{CLIENT_TIMEOUT, CONSTANT, CUT, Features, MAX, Prepare, RECONNECT, SINE, TRACE, VARYING};
use pubmark_model::workload::{Pacing, Transport, Verify};
use std::collections::BTreeMap;

/// Name of the driver that runs in virtual time.
pub const MOCK: &str = "mock";

/// Identity and drivers of an agent, given by the program that calls
/// [`serve`](super::serve).
#[derive(Clone, Copy, Debug)]
pub struct AgentInfo {
    /// The agent's name, for `hello`.
    pub name: &'static str,
    /// The agent's version, for `hello`.
    pub version: &'static str,
    /// The agent's drivers by name, without the mock, which every agent has.
    pub drivers: &'static [(&'static str, DriverKind)],
    /// Versions of the libraries that the agent is built on, by name, for `hello`.
    pub versions: &'static [(&'static str, &'static str)],
    /// Returns the options that a driver knows. Not called for the mock.
    pub options: fn(driver: &str) -> Vec<String>,
    /// True if the drivers can close their connections abruptly, so that clients can be
    /// killed.
    pub crash: bool,
}

impl AgentInfo {
    /// Returns the options that each driver knows, by driver, with the mock.
    pub fn options(&self) -> BTreeMap<String, Vec<String>> {
        let own = self.drivers.iter().map(|(name, _)| ((*name).to_owned(), (self.options)(name)));
        let mut mock = drivers::options(MOCK);
        mock.extend(simulation::OPTIONS.iter().map(|name| (*name).to_owned()));
        own.chain([(MOCK.to_owned(), mock)]).collect()
    }

    /// Returns an error text if `prepare` has an option that its driver does not know.
    pub fn unknown_option(&self, prepare: &Prepare) -> Option<String> {
        let known = self.options().remove(&prepare.driver)?;
        let unknown = prepare.options.keys().find(|name| !known.contains(name))?;
        let near = suggestion(unknown, known.iter().map(String::as_str));
        Some(format!("the driver `{}` knows no option `{unknown}`: {near}", prepare.driver))
    }
}

/// The agent that is built into pubmark.
pub const BUILT_IN: AgentInfo = AgentInfo {
    name: "pubmark",
    version: env!("CARGO_PKG_VERSION"),
    drivers: drivers::REGISTRY,
    versions: &[],
    options: drivers::options,
    crash: true,
};

/// Returns the features of an agent that uses this module. Only clients in event loops can start late.
pub fn features(info: &AgentInfo) -> Features {
    fn words<T: Copy>(all: &[T], word: fn(T) -> &'static str) -> Vec<String> {
        all.iter().map(|one| word(*one).to_owned()).collect()
    }
    let texts = |all: &[&str]| all.iter().map(|word| (*word).to_owned()).collect();
    Features {
        patterns: words(Pattern::ALL, Pattern::word),
        transports: words(Transport::ALL, Transport::word),
        arrivals: texts(&["uniform", "poisson", "burst", "on-off"]),
        verification: words(Verify::ALL, Verify::word),
        pacing: words(Pacing::ALL, Pacing::word),
        profiles: texts(&[CONSTANT, VARYING, SINE, TRACE, MAX]),
        faults: texts(&[RECONNECT, CUT, CLIENT_TIMEOUT]),
        flows: 1,
        pauses: true,
        crash: info.crash,
        clock_offset: true,
        header_checksum: true,
        drains_by_markers: false,
        tree_sizes: true,
        consume: true,
        span: true,
        subscribers_start: info.drivers.iter().any(|(_, kind)| matches!(kind, DriverKind::Sessions(_))),
        outstanding: true,
        timeout: true,
        reply_times: true,
        payload_sizes: true,
        topics: true,
        headers: true,
        payload_bodies: true,
        payload_content: true,
        churn: true,
        last_will: info.drivers.iter().any(|(_, kind)| matches!(kind, DriverKind::Sessions(_))),
        row_bytes: None,
    }
}
