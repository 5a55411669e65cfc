//! The protocols that an option accepts, from the tables of the agent and of the peer.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use pubmark_load::drivers::{DriverKind, REGISTRY};
use pubmark_model::wire_protocol::Protocol;
use pubmark_peer::PeerProtocol;

/// Parses a protocol that the built-in agent speaks.
pub fn of_sessions() -> impl TypedValueParser<Value = Protocol> {
    named(spoken().map(Protocol::word)).try_map(|name| Protocol::parse(&name))
}

/// Returns the protocols that the built-in agent speaks.
pub fn spoken() -> impl Iterator<Item = Protocol> {
    let is_spoken =
        |name: &str| REGISTRY.iter().any(|(driver, kind)| *driver == name && matches!(kind, DriverKind::Sessions(_)));
    Protocol::ALL.iter().copied().filter(move |protocol| is_spoken(protocol.word()))
}

/// Returns their names for a help text. Names alone keep it on one line.
pub fn spoken_names() -> String {
    spoken().map(Protocol::word).collect::<Vec<_>>().join(", ")
}

/// Parses a protocol that the reference peer speaks.
pub fn of_peer() -> impl TypedValueParser<Value = PeerProtocol> {
    named(PeerProtocol::ALL.iter().map(|protocol| protocol.driver))
        .try_map(|name| PeerProtocol::of_driver(&name).ok_or("the peer does not speak this protocol"))
}

fn named(names: impl Iterator<Item = &'static str>) -> PossibleValuesParser {
    let title = |name| Protocol::of_driver(name).map(Protocol::title);
    PossibleValuesParser::new(names.map(|name| PossibleValue::new(name).help(title(name).unwrap_or(name))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pubmark_study::registry;

    #[test]
    fn every_protocol_of_a_session_has_a_system_file_and_is_spoken_by_the_peer() {
        assert!(spoken().count() >= 4);
        for protocol in spoken() {
            let system = registry::built_in(protocol.word()).unwrap();
            assert_eq!(system.protocol(), Some(protocol));
            assert!(PeerProtocol::of_driver(protocol.word()).is_some(), "{protocol}");
        }
    }
}
