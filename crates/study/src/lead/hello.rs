//! Checks an agent's hello: decides whether the agent can play.

use pubmark_model::fault::Fault;
use pubmark_model::protocol::{AgentHello, MissingFeature, NoSuchDriver, UPDATE_AGENT, UnknownOption, VERSION};
use pubmark_model::record::AgentIdentity;
use pubmark_model::units::{Ns, SECOND};
use pubmark_model::workload::Workload;

/// Maximum difference between an agent's clock and the coordinator's, including the time of the messages.
const CLOCK_APART: Ns = 10 * SECOND;

/// Reason why an agent cannot play, whatever the driver.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Misfit {
    /// It uses another version of the protocol.
    #[error(
        "{name} {version} speaks version {said} of the agent protocol, and this pubmark version {VERSION}: {}",
        mend(*said)
    )]
    Version {
        /// Name of the agent.
        name: String,
        /// Version of the agent.
        version: String,
        /// Version of the protocol in its hello.
        said: u32,
    },
    /// It has another clock.
    #[error("{name} {version}: its clock_ns is not CLOCK_MONOTONIC of this machine")]
    Clock {
        /// Name of the agent.
        name: String,
        /// Version of the agent.
        version: String,
    },
    /// It has no driver at all.
    #[error("{name} {version} names no driver")]
    NoDriver {
        /// Name of the agent.
        name: String,
        /// Version of the agent.
        version: String,
    },
    /// It does not have this driver.
    #[error(transparent)]
    Driver(#[from] NoSuchDriver),
    /// Its driver does not support an option that the study sets.
    #[error(transparent)]
    Option(#[from] UnknownOption),
    /// It does not support something that the run needs.
    #[error("{name} {version} {lack}")]
    Feature {
        /// Name of the agent.
        name: String,
        /// Version of the agent.
        version: String,
        /// The missing feature.
        lack: MissingFeature,
    },
}

/// Returns advice for an agent with another version of the protocol.
fn mend(said: u32) -> &'static str {
    if said < VERSION { UPDATE_AGENT } else { "update pubmark, or take the agent's release for this version" }
}

/// Maximum length of a stored name or version, characters.
const TEXT: usize = 80;
/// Maximum number of stored versions of the libraries that an agent is built on.
const VERSIONS: usize = 32;

/// Returns the identity in an agent's hello, shortened for a record.
pub fn identity(hello: &AgentHello) -> AgentIdentity {
    let cut = |text: &str| text.chars().take(TEXT).collect::<String>();
    let versions = hello.versions.iter().take(VERSIONS).map(|(name, version)| (cut(name), cut(version))).collect();
    AgentIdentity { name: cut(&hello.name), version: cut(&hello.version), versions }
}

/// Checks that this agent can play these flows, with this driver if one is needed. `now` is the coordinator's clock.
pub fn fits(hello: &AgentHello, driver: Option<&str>, flows: &[&Workload], now: Ns) -> Result<(), Misfit> {
    let AgentIdentity { name, version, .. } = identity(hello);
    if hello.protocol != VERSION {
        return Err(Misfit::Version { name, version, said: hello.protocol });
    }
    if hello.clock_ns.abs_diff(now) > CLOCK_APART {
        return Err(Misfit::Clock { name, version });
    }
    if hello.drivers.is_empty() {
        return Err(Misfit::NoDriver { name, version });
    }
    driver.map_or(Ok(()), |driver| hello.has_driver(driver))?;
    match hello.features.lack(flows) {
        Some(lack) => Err(Misfit::Feature { name, version, lack: cut(lack) }),
        None => Ok(()),
    }
}

/// Checks that this agent can carry out a fault on its clients.
pub fn can_strike(hello: &AgentHello, fault: &Fault) -> Result<(), Misfit> {
    let AgentIdentity { name, version, .. } = identity(hello);
    hello.features.lack_of_fault(fault).map_or(Ok(()), |lack| Err(Misfit::Feature { name, version, lack: cut(lack) }))
}

/// Shortens the texts so that they fit into one line.
fn cut(lack: MissingFeature) -> MissingFeature {
    let has = lack.has.iter().take(VERSIONS).map(|word| word.chars().take(TEXT).collect()).collect();
    MissingFeature { has, ..lack }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_agent_cannot_is_named_with_the_agent() {
        let hello = |protocol, drivers: &[&str], clock_ns| AgentHello {
            protocol,
            name: "my-agent".into(),
            version: "1.2".into(),
            pid: 1,
            drivers: drivers.iter().map(|name| (*name).to_owned()).collect(),
            clock_ns,
            ..AgentHello::default()
        };
        let now = 3_600 * SECOND;
        let says = |hello: AgentHello, driver| fits(&hello, driver, &[], now).unwrap_err().to_string();
        assert_eq!(fits(&hello(VERSION, &["zeromq"], now), Some("zeromq"), &[], now), Ok(()));
        assert_eq!(fits(&hello(VERSION, &["zeromq"], now), None, &[], now), Ok(()));
        let speaks = |said| {
            format!("my-agent 1.2 speaks version {said} of the agent protocol, and this pubmark version {VERSION}: ")
        };
        let other = says(hello(9, &["zeromq"], now), None);
        assert!(other.starts_with(&speaks(9)) && other.contains("update pubmark"), "{other}");
        let other = says(hello(1, &["zeromq"], now), None);
        assert!(other.starts_with(&speaks(1)) && other.contains("update the agent"), "{other}");
        let missing = says(hello(VERSION, &["zeromq", "mock"], now), Some("mqtt"));
        assert_eq!(missing, "my-agent 1.2 has no driver `mqtt`; it has: zeromq, mock");
        assert!(says(hello(VERSION, &["zeromq"], now + 20 * SECOND), None).contains("CLOCK_MONOTONIC"));
        assert!(says(hello(VERSION, &[], now), None).contains("names no driver"));
        let workload = |pattern: &str| Workload::of([("pattern", pattern)]).unwrap();
        let plays = |pattern| fits(&hello(VERSION, &["zeromq"], now), None, &[&workload(pattern)], now);
        assert_eq!(plays("fan-out"), Ok(()));
        let lacks = plays("pipeline").unwrap_err().to_string();
        assert_eq!(lacks, "my-agent 1.2 cannot play the pattern `pipeline`; it has: pairs, fan-out, fan-in");
    }
}
