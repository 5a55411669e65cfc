//! Who an agent is: its name, its version, its drivers.

use crate::drivers::{self, DriverKind};
use crate::simulation;
use pubmark_model::diagnostic::suggestion;
use pubmark_model::pattern::Pattern;
use pubmark_model::protocol::{CONSTANT, Features, MAX, Prepare, RECONNECT};
use pubmark_model::workload::{Pacing, Transport, Verify};
use std::collections::BTreeMap;

/// The name of the driver that runs in virtual time.
pub const MOCK: &str = "mock";

/// Who an agent is, and which drivers it has: the program that calls
/// [`serve`](super::serve) says so.
#[derive(Clone, Copy, Debug)]
pub struct AgentInfo {
    /// Its name, for `hello`.
    pub name: &'static str,
    /// Its version, for `hello`.
    pub version: &'static str,
    /// Its drivers, by name; the mock comes on top.
    pub drivers: &'static [(&'static str, DriverKind)],
    /// The versions of what it is built on, by name, for `hello`.
    pub versions: &'static [(&'static str, &'static str)],
    /// The options that each driver knows, those of the mock left out.
    pub options: fn(driver: &str) -> Vec<String>,
    /// Whether its drivers can close their connections without a word, so that
    /// clients can be killed.
    pub crash: bool,
}

impl AgentInfo {
    /// Its drivers, the mock among them, each with the options that it knows.
    pub fn options(&self) -> BTreeMap<String, Vec<String>> {
        let own = self.drivers.iter().map(|(name, _)| ((*name).to_owned(), (self.options)(name)));
        let mut mock = drivers::options(MOCK);
        mock.extend(simulation::OPTIONS.iter().map(|name| (*name).to_owned()));
        own.chain([(MOCK.to_owned(), mock)]).collect()
    }

    /// What is wrong with an order that has an option that its driver does not know.
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

/// What every agent can play that serves as this one does, and whether its
/// clients can be killed.
pub fn features(crash: bool) -> Features {
    fn words<T: Copy>(all: &[T], word: fn(T) -> &'static str) -> Vec<String> {
        all.iter().map(|one| word(*one).to_owned()).collect()
    }
    let texts = |all: &[&str]| all.iter().map(|word| (*word).to_owned()).collect();
    Features {
        patterns: words(Pattern::ALL, Pattern::word),
        transports: words(Transport::ALL, Transport::word),
        arrivals: texts(&["uniform", "poisson", "burst"]),
        verification: words(Verify::ALL, Verify::word),
        pacing: words(Pacing::ALL, Pacing::word),
        profiles: texts(&[CONSTANT, MAX]),
        faults: texts(&[RECONNECT]),
        flows: 1,
        pauses: true,
        crash,
        clock_offset: true,
        header_checksum: true,
        drains_by_markers: false,
        tree_sizes: true,
        row_bytes: None,
    }
}
