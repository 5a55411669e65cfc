//! The protocols that are spoken to servers, and what sets each apart.
//!
//! A new protocol is a line in the enumeration and an entry in the table below
//! it; its codec and its session are other crates' matter.

use crate::options::{OptionKind, OptionSpec, spec};
use crate::words::words;

words! {
    /// A protocol between clients and a server. Its word is the name of the
    /// driver that speaks it, and the scheme of a URL without a carrier.
    Protocol {
        /// MQTT 3.1.1 and 5.
        Mqtt = "mqtt",
        /// NATS.
        Nats = "nats",
        /// RESP 2 and 3, as Redis and its kin speak it.
        Redis = "redis",
        /// AMQP 0-9-1.
        Amqp = "amqp",
        /// Zenoh, by an agent of its own.
        Zenoh = "zenoh",
    }
}

/// How bytes are carried to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// TCP as it is.
    Plain,
    /// TLS over TCP.
    Tls,
    /// WebSocket over TCP (RFC 6455).
    WebSocket,
    /// WebSocket over TLS.
    WebSocketTls,
}

/// The scheme of a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scheme {
    /// As typed, without its `://`.
    pub name: &'static str,
    /// How it has bytes carried.
    pub carrier: Carrier,
    /// The port where the URL names none.
    pub port: u16,
}

impl Scheme {
    /// Every scheme of every protocol.
    pub fn all() -> impl Iterator<Item = (Protocol, &'static Scheme)> {
        Protocol::ALL.iter().flat_map(|protocol| protocol.schemes().iter().map(|scheme| (*protocol, scheme)))
    }
}

/// What sets a protocol apart.
struct Traits {
    /// Its schemes, one for each carrier that it has.
    schemes: &'static [Scheme],
    /// The options of its driver beside those of every driver to a server.
    options: fn() -> Vec<OptionSpec>,
}

impl Protocol {
    /// The table.
    fn traits(self) -> Traits {
        use Carrier::{Plain, Tls, WebSocket, WebSocketTls};
        match self {
            Protocol::Mqtt => Traits {
                schemes: &[
                    Scheme { name: "mqtt", carrier: Plain, port: 1883 },
                    Scheme { name: "mqtts", carrier: Tls, port: 8883 },
                    Scheme { name: "ws", carrier: WebSocket, port: 80 },
                    Scheme { name: "wss", carrier: WebSocketTls, port: 443 },
                ],
                options: mqtt,
            },
            Protocol::Nats => Traits {
                schemes: &[
                    Scheme { name: "nats", carrier: Plain, port: 4222 },
                    Scheme { name: "tls", carrier: Tls, port: 4222 },
                ],
                options: nats,
            },
            Protocol::Redis => Traits {
                schemes: &[
                    Scheme { name: "redis", carrier: Plain, port: 6379 },
                    Scheme { name: "rediss", carrier: Tls, port: 6379 },
                ],
                options: redis,
            },
            Protocol::Amqp => Traits {
                schemes: &[
                    Scheme { name: "amqp", carrier: Plain, port: 5672 },
                    Scheme { name: "amqps", carrier: Tls, port: 5671 },
                ],
                options: amqp,
            },
            Protocol::Zenoh => {
                Traits { schemes: &[Scheme { name: "zenoh", carrier: Plain, port: 7447 }], options: Vec::new }
            }
        }
    }

    /// What a driver speaks to servers; none for libraries, which have no server.
    pub fn of_driver(driver: &str) -> Option<Protocol> {
        Protocol::ALL.iter().copied().find(|protocol| protocol.word() == driver)
    }

    /// Its schemes, one for each carrier that it has.
    pub fn schemes(self) -> &'static [Scheme] {
        self.traits().schemes
    }

    /// The options of its driver with their defaults.
    pub fn options(self) -> Vec<OptionSpec> {
        let mut options = of_any();
        options.extend((self.traits().options)());
        options
    }
}

/// The options of every driver to a server.
fn of_any() -> Vec<OptionSpec> {
    vec![
        spec("endpoint", OptionKind::Text, None, "attach to the server that is there, instead of starting one"),
        spec(
            "deployment",
            OptionKind::Text,
            Some("native"),
            "how a server is started: native, or container, in which podman or docker name the engine",
        ),
        spec("username", OptionKind::Text, None, "user name at the server; the endpoint's URL may name it too"),
        spec("password", OptionKind::Text, None, "password at the server; never recorded"),
        spec("tls_ca", OptionKind::Text, None, "file with the certificates (PEM) to trust instead of the system's"),
        spec("tcp_nodelay", OptionKind::Bool, Some("true"), "send small TCP segments at once (Nagle's algorithm off)"),
        spec(
            "socket_buffer",
            OptionKind::Size,
            Some("0B"),
            "SO_SNDBUF and SO_RCVBUF of each connection, bytes; 0 leaves the kernel's automatic sizes",
        ),
        spec(
            "coalesce",
            OptionKind::Size,
            Some("64KiB"),
            "at rate max, messages of a connection are gathered up to this size before they are written",
        ),
        spec("shards", OptionKind::Count, Some("0"), "event loops in each agent; 0 shares out the processors"),
        spec(
            "sources",
            OptionKind::Text,
            None,
            "addresses to connect from, separated by commas; on loopback 127.0.0.2 and up by themselves",
        ),
    ]
}

fn mqtt() -> Vec<OptionSpec> {
    vec![
        spec("mqtt_version", OptionKind::Text, Some("3.1.1"), "version of the protocol: 3.1.1 or 5"),
        spec("keep_alive", OptionKind::Time, Some("60s"), "longest silence before a PINGREQ, whole seconds"),
        spec(
            "inflight",
            OptionKind::Count,
            Some("65535"),
            "QoS 1 and 2: messages of one client that may be unacknowledged; MQTT 5 servers may allow fewer",
        ),
        spec("retain", OptionKind::Bool, Some("false"), "publish with the retain flag"),
    ]
}

fn nats() -> Vec<OptionSpec> {
    vec![spec("token", OptionKind::Text, None, "authentication token; never recorded")]
}

fn redis() -> Vec<OptionSpec> {
    vec![spec("resp", OptionKind::Count, Some("3"), "version of the protocol: 2 or 3")]
}

fn amqp() -> Vec<OptionSpec> {
    vec![
        spec("vhost", OptionKind::Text, Some("/"), "virtual host"),
        spec("heartbeat", OptionKind::Time, Some("60s"), "longest silence before a heartbeat, whole seconds"),
        spec(
            "prefetch",
            OptionKind::Count,
            Some("1000"),
            "QoS 1: messages that a consumer may hold unacknowledged; 0 is no bound",
        ),
        spec("inflight", OptionKind::Count, Some("65535"), "QoS 1: messages of one client that may be unconfirmed"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::Endpoint;

    #[test]
    fn every_protocol_has_a_scheme_of_its_name_and_none_is_of_two() {
        for protocol in Protocol::ALL.iter().copied() {
            assert_eq!(Protocol::of_driver(protocol.word()), Some(protocol));
            let [plain, others @ ..] = protocol.schemes() else { panic!("{protocol} has no scheme") };
            assert_eq!((plain.name, plain.carrier), (protocol.word(), Carrier::Plain));
            assert!(others.iter().all(|other| other.carrier != Carrier::Plain), "{protocol}");
            assert!(protocol.options().iter().any(|option| option.name == "endpoint"), "{protocol}");
        }
        for (protocol, scheme) in Scheme::all() {
            let named = Scheme::all().filter(|(_, other)| other.name == scheme.name);
            assert_eq!(named.count(), 1, "{}", scheme.name);
            let url = format!("{}://host", scheme.name);
            let endpoint = Endpoint::parse(&url).unwrap();
            let (carrier, port) = (scheme.carrier, scheme.port);
            assert_eq!((endpoint.protocol, endpoint.carrier, endpoint.port), (protocol, carrier, port));
            assert_eq!(endpoint.to_string(), format!("{url}:{port}"));
        }
        assert_eq!(Protocol::of_driver("zeromq"), None);
    }
}
