//! The protocols between clients and servers, and their properties.
//!
//! A new protocol is a line in the enumeration and an entry in the table below it; its codec and
//! its session are in other crates.

use crate::options::{OptionKind, OptionSpec, spec};
use crate::pattern::{Pattern, Topics};
use crate::words::words;
use serde_json::Value;

words! {
    /// A protocol between clients and a server. Its word is the name of its driver, and the scheme
    /// of a URL without a carrier.
    Protocol {
        /// MQTT 3.1.1 and 5.
        Mqtt = "mqtt",
        /// NATS.
        Nats = "nats",
        /// RESP 2 and 3, the protocol of Redis and compatible servers.
        Redis = "redis",
        /// AMQP 0-9-1.
        Amqp = "amqp",
        /// AMQP 1.0.
        Amqp1 = "amqp1",
        /// Kafka.
        Kafka = "kafka",
        /// Zenoh 1.x, a client of a router.
        Zenoh = "zenoh",
    }
}

/// Most partitions of a topic of Kafka.
pub const MOST_PARTITIONS: u64 = 64;

/// Transport of bytes to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// Plain TCP.
    Plain,
    /// TLS over TCP.
    Tls,
    /// WebSocket over TCP (RFC 6455).
    WebSocket,
    /// WebSocket over TLS.
    WebSocketTls,
}

impl Carrier {
    /// True if it uses WebSocket.
    pub fn is_websocket(self) -> bool {
        matches!(self, Carrier::WebSocket | Carrier::WebSocketTls)
    }

    /// True if it uses TLS.
    pub fn is_tls(self) -> bool {
        matches!(self, Carrier::Tls | Carrier::WebSocketTls)
    }
}

/// The scheme of a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scheme {
    /// Its name, without `://`.
    pub name: &'static str,
    /// Its carrier.
    pub carrier: Carrier,
    /// The port if the URL names none.
    pub port: u16,
}

impl Scheme {
    /// Returns every scheme of every protocol.
    pub fn all() -> impl Iterator<Item = (Protocol, &'static Scheme)> {
        Protocol::ALL.iter().flat_map(|protocol| protocol.schemes().iter().map(|scheme| (*protocol, scheme)))
    }
}

/// The one segment of a URL's path, for schemes that define it.
#[derive(Clone, Copy, Debug)]
pub struct UrlPath {
    /// The option that it sets.
    pub option: &'static str,
    /// Its valid values, in words.
    pub wanted: &'static str,
    /// True if it is a number.
    number: bool,
}

impl UrlPath {
    /// True if this text, as written after the slash, is valid.
    pub fn accepts(&self, written: &str) -> bool {
        let digits = written.bytes().all(|byte| byte.is_ascii_digit());
        match self.number {
            true => written.is_empty() || (digits && written.parse::<u32>().is_ok()),
            false => !written.is_empty() && !written.contains('/'),
        }
    }

    /// Returns its value from the decoded text; `None` if the text is invalid.
    pub fn value(&self, decoded: &str) -> Option<Value> {
        if self.number { decoded.parse::<u32>().ok().map(Value::from) } else { Some(decoded.into()) }
    }
}

/// Meaning of a parameter in the query of a URL.
#[derive(Clone, Copy, Debug)]
pub enum ParameterMeaning {
    /// Sets this option, in this unit.
    Option(&'static str, &'static str),
    /// The password.
    Password,
    /// Has only this value, which is the default behaviour.
    Is(&'static str),
}

/// Properties of a protocol.
struct Traits {
    /// Its name and versions, for people.
    title: &'static str,
    /// Its schemes, one for each carrier that it has.
    schemes: &'static [Scheme],
    /// Meaning of the path of its URLs; `None` if they have no path. (A WebSocket's is the
    /// resource.)
    path: Option<UrlPath>,
    /// The parameters of its URLs.
    parameters: &'static [(&'static str, ParameterMeaning)],
    /// The options of its driver, in addition to those of every driver to a server.
    options: fn() -> Vec<OptionSpec>,
}

impl Protocol {
    /// Returns its properties.
    fn traits(self) -> Traits {
        use Carrier::{Plain, Tls, WebSocket, WebSocketTls};
        match self {
            Protocol::Mqtt => Traits {
                title: "MQTT 3.1.1 and 5",
                schemes: &[
                    Scheme { name: "mqtt", carrier: Plain, port: 1883 },
                    Scheme { name: "mqtts", carrier: Tls, port: 8883 },
                    Scheme { name: "ws", carrier: WebSocket, port: 80 },
                    Scheme { name: "wss", carrier: WebSocketTls, port: 443 },
                ],
                path: None,
                parameters: &[],
                options: mqtt,
            },
            Protocol::Nats => Traits {
                title: "NATS core",
                schemes: &[
                    Scheme { name: "nats", carrier: Plain, port: 4222 },
                    Scheme { name: "tls", carrier: Tls, port: 4222 },
                ],
                path: None,
                parameters: &[],
                options: nats,
            },
            Protocol::Redis => Traits {
                title: "RESP 2 and 3",
                schemes: &[
                    Scheme { name: "redis", carrier: Plain, port: 6379 },
                    Scheme { name: "rediss", carrier: Tls, port: 6379 },
                ],
                // From the scheme's registration at IANA.
                path: Some(UrlPath { option: "database", wanted: "the number of a database, as in /0", number: true }),
                parameters: &[
                    ("db", ParameterMeaning::Option("database", "")),
                    ("password", ParameterMeaning::Password),
                ],
                options: redis,
            },
            Protocol::Amqp => amqp_traits(),
            Protocol::Amqp1 => Traits {
                title: "AMQP 1.0",
                schemes: &[
                    Scheme { name: "amqp1", carrier: Plain, port: 5672 },
                    Scheme { name: "amqp1s", carrier: Tls, port: 5671 },
                ],
                path: None,
                parameters: &[],
                options: amqp1,
            },
            Protocol::Kafka => Traits {
                title: "Kafka",
                schemes: &[
                    Scheme { name: "kafka", carrier: Plain, port: 9092 },
                    Scheme { name: "kafka+ssl", carrier: Tls, port: 9093 },
                ],
                path: None,
                parameters: &[],
                options: kafka,
            },
            Protocol::Zenoh => Traits {
                title: "Zenoh 1",
                schemes: &[Scheme { name: "zenoh", carrier: Plain, port: 7447 }],
                path: None,
                parameters: &[],
                options: zenoh,
            },
        }
    }

    /// Returns the protocol that a driver uses; `None` for libraries, which have no server.
    pub fn of_driver(driver: &str) -> Option<Protocol> {
        Protocol::ALL.iter().copied().find(|protocol| protocol.word() == driver)
    }

    /// True if the built-in agent's clients can play this pattern over it at this quality of service.
    pub fn plays(self, pattern: Pattern, qos: u8) -> bool {
        match self {
            Protocol::Mqtt | Protocol::Nats | Protocol::Amqp => !pattern.echoed(),
            // Consumer groups of streams.
            Protocol::Redis if qos > 0 => !pattern.round_trip() && pattern.topics() != Topics::Tree,
            Protocol::Redis => !pattern.echoed() && !pattern.competing(),
            Protocol::Kafka => !pattern.round_trip() && pattern.topics() != Topics::Tree,
            Protocol::Amqp1 => !pattern.round_trip() && !pattern.competing() && pattern.topics() != Topics::Tree,
            Protocol::Zenoh => !pattern.round_trip() && !pattern.competing(),
        }
    }

    /// Returns its name and versions, for people.
    pub fn title(self) -> &'static str {
        self.traits().title
    }

    /// Returns its schemes, one for each carrier that it has.
    pub fn schemes(self) -> &'static [Scheme] {
        self.traits().schemes
    }

    /// Returns the meaning of the path of its URLs; `None` if they have no path.
    pub fn path(self) -> Option<UrlPath> {
        self.traits().path
    }

    /// Returns the parameters of its URLs.
    pub fn parameters(self) -> &'static [(&'static str, ParameterMeaning)] {
        self.traits().parameters
    }

    /// Returns the options of its driver with their defaults.
    pub fn options(self) -> Vec<OptionSpec> {
        let mut options = of_any();
        options.extend((self.traits().options)());
        options
    }
}

/// Returns the properties of AMQP.
fn amqp_traits() -> Traits {
    Traits {
        title: "AMQP 0-9-1",
        schemes: &[
            Scheme { name: "amqp", carrier: Carrier::Plain, port: 5672 },
            Scheme { name: "amqps", carrier: Carrier::Tls, port: 5671 },
        ],
        // From RabbitMQ's specification of the scheme, and of its parameters.
        path: Some(UrlPath {
            option: "vhost",
            wanted: "one virtual host with a name: write %2F for a slash, and no slash at all for the host `/`",
            number: false,
        }),
        parameters: &[
            ("cacertfile", ParameterMeaning::Option("tls_ca", "")),
            ("certfile", ParameterMeaning::Option("tls_cert", "")),
            ("keyfile", ParameterMeaning::Option("tls_key", "")),
            ("heartbeat", ParameterMeaning::Option("heartbeat", "s")),
            ("verify", ParameterMeaning::Is("verify_peer")),
            ("auth_mechanism", ParameterMeaning::Is("plain")),
        ],
        options: amqp,
    }
}

/// Returns the options of every driver to a server.
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
        spec(
            "credentials_file",
            OptionKind::Text,
            None,
            "file with a line user,password for each client, publishers first; never recorded",
        ),
        spec("tls_ca", OptionKind::Text, None, "file with the certificates (PEM) to trust instead of the system's"),
        spec(
            "tls_cert",
            OptionKind::Text,
            None,
            "file with the client's certificate and its chain (PEM); {client} in the path: one for each client, from 0",
        ),
        spec("tls_key", OptionKind::Text, None, "file with the key (PEM) of tls_cert; without it, tls_cert holds both"),
        spec("tls_version", OptionKind::Text, None, "the only version of TLS to offer: 1.2 or 1.3"),
        spec("tls_cipher", OptionKind::Text, None, "the only cipher suite to offer, such as TLS_AES_128_GCM_SHA256"),
        spec(
            "prefix",
            OptionKind::Text,
            None,
            "stands before every topic, subject, channel, queue and exchange: bench/ for who may use bench/# alone",
        ),
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
        spec(
            "topic_alias",
            OptionKind::Count,
            Some("0"),
            "MQTT 5: topics of each publisher that get an alias; the server may allow fewer",
        ),
        spec(
            "session_expiry",
            OptionKind::Time,
            None,
            "MQTT 5: how long the server keeps a session without a connection, whole seconds; a day if not set",
        ),
        spec(
            "message_expiry",
            OptionKind::Time,
            None,
            "MQTT 5: how long the server keeps a message that it cannot deliver, whole seconds",
        ),
    ]
}

fn nats() -> Vec<OptionSpec> {
    vec![
        spec("token", OptionKind::Text, None, "authentication token; never recorded"),
        spec(
            "nkey",
            OptionKind::Text,
            None,
            "file with the seed of a user's nkey, which signs in; the seed is never recorded",
        ),
        spec(
            "creds",
            OptionKind::Text,
            None,
            "file of credentials (user JWT and seed), as `nsc generate creds` makes it",
        ),
        spec(
            "tls_first",
            OptionKind::Bool,
            Some("false"),
            "with tls://: the handshake comes before the server's first line",
        ),
        spec("storage", OptionKind::Text, Some("file"), "QoS 1: where JetStream keeps messages: file or memory"),
        spec("replicas", OptionKind::Count, Some("1"), "QoS 1: servers of a cluster that keep each message"),
        spec("consumer", OptionKind::Text, Some("pull"), "QoS 1: pull (subscribers ask for messages) or push"),
        spec(
            "pull_batch",
            OptionKind::Count,
            Some("500"),
            "QoS 1: messages of a request, which is renewed at half of it",
        ),
        spec(
            "ack_policy",
            OptionKind::Text,
            Some("explicit"),
            "QoS 1: explicit (subscribers acknowledge each message) or none",
        ),
        spec(
            "ack_wait",
            OptionKind::Time,
            Some("30s"),
            "QoS 1: time after which an unacknowledged message comes again",
        ),
        spec(
            "max_ack_pending",
            OptionKind::Count,
            Some("1000"),
            "QoS 1: messages that a consumer may hold unacknowledged",
        ),
        spec(
            "max_length",
            OptionKind::Count,
            Some("0"),
            "QoS 1: messages of a subject that the stream keeps, the newest; 0: all",
        ),
        spec(
            "max_age",
            OptionKind::Time,
            Some("0s"),
            "QoS 1: time after which the stream removes a message, 100ms at least; 0s: never",
        ),
        spec(
            "inflight",
            OptionKind::Count,
            Some("4000"),
            "QoS 1: messages of one publisher that may be unacknowledged; 1 waits for each",
        ),
        spec(
            "message_ids",
            OptionKind::Bool,
            Some("false"),
            "QoS 1: messages carry an identifier, by which the server drops those that are sent again",
        ),
    ]
}

fn redis() -> Vec<OptionSpec> {
    vec![
        spec("resp", OptionKind::Count, Some("3"), "version of the protocol: 2 or 3"),
        spec(
            "database",
            OptionKind::Count,
            Some("0"),
            "number of the database to select; channels are the same in all",
        ),
        spec("read_count", OptionKind::Count, Some("100"), "QoS 1: most messages of one XREADGROUP, and 1 MiB"),
        spec("max_length", OptionKind::Count, Some("0"), "QoS 1: length to which a stream is cut (MAXLEN ~); 0: never"),
        spec(
            "ack_policy",
            OptionKind::Text,
            Some("explicit"),
            "QoS 1: explicit (subscribers acknowledge each message) or none (NOACK)",
        ),
        spec(
            "inflight",
            OptionKind::Count,
            Some("1000"),
            "QoS 1: messages of one publisher that may be unacknowledged",
        ),
        spec(
            "wait_replicas",
            OptionKind::Count,
            Some("0"),
            "QoS 1: replicas that must have a message before it is acknowledged (WAIT); 0 leaves WAIT out",
        ),
    ]
}

fn amqp() -> Vec<OptionSpec> {
    vec![
        spec("vhost", OptionKind::Text, Some("/"), "virtual host"),
        spec(
            "queue_type",
            OptionKind::Text,
            Some("classic"),
            "type of RabbitMQ's queues: classic; quorum or stream, which need `durable`",
        ),
        spec("max_length", OptionKind::Count, Some("0"), "messages that a queue may hold (x-max-length); 0: no limit"),
        spec(
            "max_age",
            OptionKind::Time,
            Some("0s"),
            "time after which a queue drops a message (x-message-ttl), whole milliseconds; 0s: never",
        ),
        spec(
            "overflow",
            OptionKind::Text,
            Some("drop-head"),
            "with max_length: drop-head (the oldest message goes) or reject-publish (the newest is refused)",
        ),
        spec(
            "reply_queue",
            OptionKind::Text,
            Some("direct"),
            "request-reply: direct (RabbitMQ's direct reply-to) or exclusive (a queue for each requester)",
        ),
        spec("heartbeat", OptionKind::Time, Some("60s"), "longest silence before a heartbeat, whole seconds"),
        spec(
            "prefetch",
            OptionKind::Count,
            Some("1000"),
            "QoS 1: messages that a consumer may hold unacknowledged; 0 is not a bound",
        ),
        spec("inflight", OptionKind::Count, Some("65535"), "QoS 1: messages of one client that may be unconfirmed"),
    ]
}

fn amqp1() -> Vec<OptionSpec> {
    vec![
        spec("heartbeat", OptionKind::Time, Some("20s"), "longest silence before an empty frame, whole seconds"),
        spec("credit", OptionKind::Count, Some("1000"), "messages that the server may send ahead to a subscriber"),
        spec("inflight", OptionKind::Count, Some("65535"), "QoS 1: messages of one client that may be unacknowledged"),
    ]
}

fn kafka() -> Vec<OptionSpec> {
    vec![
        spec(
            "acks",
            OptionKind::Text,
            Some("all"),
            "QoS 1: who acknowledges a batch: all replicas in sync, or 1 for the leader",
        ),
        spec("partitions", OptionKind::Count, Some("1"), "partitions of each topic, 1 to 64"),
        spec(
            "partition_by",
            OptionKind::Text,
            Some("publisher"),
            "partition of a batch: publisher (one for all of a publisher's), round-robin (the next one) or key",
        ),
        spec("keyspace", OptionKind::Count, None, "partition_by = key: different keys of messages; 1000 if not set"),
        spec(
            "group",
            OptionKind::Text,
            Some("static"),
            "pattern pipeline: who shares out partitions: static (by numbers) or coordinator (Kafka's group protocol)",
        ),
        spec("group_assignor", OptionKind::Text, None, "group = coordinator: range (if not set) or round-robin"),
        spec(
            "group_session",
            OptionKind::Time,
            None,
            "group = coordinator: silence after which a member is dead; 45s if not set",
        ),
        spec("group_heartbeat", OptionKind::Time, None, "group = coordinator: time between heartbeats; 3s if not set"),
        spec(
            "group_commit",
            OptionKind::Time,
            None,
            "group = coordinator: time between two commits of a member's offsets; 5s if not set",
        ),
        spec("inflight", OptionKind::Count, Some("5"), "QoS 1 and 2: batches of one producer that may be unanswered"),
        spec(
            "batch",
            OptionKind::Size,
            Some("16KiB"),
            "longest batch of the messages that a producer collects, before compression",
        ),
        spec(
            "linger",
            OptionKind::Time,
            Some("0s"),
            "time for which a producer collects a batch, up to 1s; with 0s only while `inflight` is reached",
        ),
        spec("compression", OptionKind::Text, Some("none"), "of batches: none or gzip, at gzip's default level"),
        spec("fetch_wait", OptionKind::Time, Some("500ms"), "longest time that a broker waits for `fetch_min`"),
        spec("fetch_min", OptionKind::Size, Some("1B"), "bytes that a broker waits for before it answers a consumer"),
        spec("fetch_max", OptionKind::Size, Some("1MiB"), "bytes in one answer to a consumer; one batch may be longer"),
    ]
}

fn zenoh() -> Vec<OptionSpec> {
    vec![
        spec(
            "congestion",
            OptionKind::Text,
            Some("block"),
            "action of a publisher, and of the router for it, when a queue is full: block or drop",
        ),
        spec("express", OptionKind::Bool, Some("false"), "send each message separately, not in batches"),
        spec("reliability", OptionKind::Text, None, "channel of messages: reliable (the default) or best-effort"),
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

    #[test]
    fn patterns_that_a_protocol_lacks_are_known() {
        let lacks = |protocol: Protocol, qos: u8| {
            let lacks = Pattern::ALL.iter().filter(|pattern| !protocol.plays(**pattern, qos));
            lacks.map(|pattern| pattern.word()).collect::<Vec<_>>()
        };
        assert_eq!(lacks(Protocol::Kafka, 1), ["request-reply", "fan-out-echo", "tree"]);
        assert_eq!(lacks(Protocol::Redis, 0), ["fan-out-echo", "pipeline"]);
        assert_eq!(lacks(Protocol::Redis, 1), ["request-reply", "fan-out-echo", "tree"]);
        assert_eq!(lacks(Protocol::Amqp1, 1), ["request-reply", "fan-out-echo", "pipeline", "tree"]);
        assert_eq!(lacks(Protocol::Zenoh, 0), ["request-reply", "fan-out-echo", "pipeline"]);
        assert_eq!(lacks(Protocol::Mqtt, 2), ["fan-out-echo"]);
    }
}
