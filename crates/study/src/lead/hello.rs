//! What an agent says of itself, and whether it can play.

use pubmark_model::protocol::{AgentHello, VERSION};
use pubmark_model::record::AgentIdentity;
use pubmark_model::units::{Ns, SECOND};

/// So far an agent's clock may be from ours: lines take their time.
const CLOCK_APART: Ns = 10 * SECOND;

/// Why an agent cannot play, whatever the driver.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Misfit {
    /// It speaks another protocol.
    #[error("{name} {version} speaks version {said} of the agent protocol, and this pubmark version {VERSION}")]
    Version {
        /// Its name.
        name: String,
        /// Its version.
        version: String,
        /// The protocol's version that it named.
        said: u32,
    },
    /// It has another clock.
    #[error("{name} {version}: its clock_ns is not CLOCK_MONOTONIC of this machine")]
    Clock {
        /// Its name.
        name: String,
        /// Its version.
        version: String,
    },
    /// It has no driver at all.
    #[error("{name} {version} names no driver")]
    NoDriver {
        /// Its name.
        name: String,
        /// Its version.
        version: String,
    },
    /// It has no such driver.
    #[error("{name} {version} has no driver `{wanted}`; it has: {has}")]
    Driver {
        /// Its name.
        name: String,
        /// Its version.
        version: String,
        /// What is needed.
        wanted: String,
        /// What there is.
        has: String,
    },
}

/// Longest name or version that is kept, characters.
const TEXT: usize = 80;

/// Who it says that it is, cut to what a record keeps.
pub fn identity(hello: &AgentHello) -> AgentIdentity {
    let cut = |text: &str| text.chars().take(TEXT).collect::<String>();
    AgentIdentity { name: cut(&hello.name), version: cut(&hello.version) }
}

/// Whether this agent can play, with this driver where one is needed; it is
/// this late now.
pub fn fits(hello: &AgentHello, driver: Option<&str>, now: Ns) -> Result<(), Misfit> {
    let AgentIdentity { name, version } = identity(hello);
    if hello.protocol != VERSION {
        return Err(Misfit::Version { name, version, said: hello.protocol });
    }
    if hello.clock_ns.abs_diff(now) > CLOCK_APART {
        return Err(Misfit::Clock { name, version });
    }
    if hello.drivers.is_empty() {
        return Err(Misfit::NoDriver { name, version });
    }
    match driver.filter(|driver| !hello.drivers.iter().any(|known| known == driver)) {
        Some(wanted) => {
            let has = hello.drivers.join(", ").chars().take(10 * TEXT).collect();
            Err(Misfit::Driver { name, version, wanted: wanted.to_owned(), has })
        }
        None => Ok(()),
    }
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
        };
        let now = 3_600 * SECOND;
        let says = |hello: AgentHello, driver| fits(&hello, driver, now).unwrap_err().to_string();
        assert_eq!(fits(&hello(VERSION, &["zeromq"], now), Some("zeromq"), now), Ok(()));
        assert_eq!(fits(&hello(VERSION, &["zeromq"], now), None, now), Ok(()));
        let other = says(hello(9, &["zeromq"], now), None);
        assert_eq!(
            other,
            format!("my-agent 1.2 speaks version 9 of the agent protocol, and this pubmark version {VERSION}")
        );
        let missing = says(hello(VERSION, &["zeromq", "mock"], now), Some("mqtt"));
        assert_eq!(missing, "my-agent 1.2 has no driver `mqtt`; it has: zeromq, mock");
        assert!(says(hello(VERSION, &["zeromq"], now + 20 * SECOND), None).contains("CLOCK_MONOTONIC"));
        assert!(says(hello(VERSION, &[], now), None).contains("names no driver"));
    }
}
