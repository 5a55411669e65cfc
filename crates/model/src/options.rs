//! Options of a system's server or driver: typed, with defaults, all recorded.

use crate::tuning::{Stock, Tuned, Use};
use crate::units::{format_time, parse_size, parse_time};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Option values by name, canonical: numbers, booleans, or strings.
pub type Options = BTreeMap<String, Value>;

/// What an option's value can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OptionKind {
    /// true or false.
    Bool,
    /// A whole number from 0.
    Count,
    /// Bytes, with units.
    Size,
    /// A time, with units.
    Time,
    /// Any text, such as a path.
    Text,
}

impl OptionKind {
    /// What is wanted, in words.
    pub fn word(self) -> &'static str {
        match self {
            OptionKind::Bool => "true or false",
            OptionKind::Count => "count",
            OptionKind::Size => "size",
            OptionKind::Time => "time",
            OptionKind::Text => "text",
        }
    }

    /// Reads a value into its canonical form.
    pub fn read(self, text: &str) -> Result<Value, String> {
        match self {
            OptionKind::Bool => {
                text.parse::<bool>().map(Value::from).map_err(|_| format!("`{text}` is neither true nor false"))
            }
            OptionKind::Count => text
                .replace('_', "")
                .parse::<u32>()
                .map(Value::from)
                .map_err(|_| format!("`{text}` is not a whole number from 0 to {}", u32::MAX)),
            OptionKind::Size => parse_size(text).map(Value::from),
            OptionKind::Time => parse_time(text).map(|ns| format_time(ns).into()),
            OptionKind::Text => Ok(text.into()),
        }
    }
}

/// An option as a system file declares it.
#[derive(Clone, Debug, PartialEq)]
pub struct OptionSpec {
    /// Its name.
    pub name: String,
    /// What its value can be.
    pub kind: OptionKind,
    /// Its value where none is given, canonical; none means "not set".
    pub default: Option<Value>,
    /// What it does, and what it costs.
    pub doc: String,
    /// Why the default is not the makers', where it is not.
    pub tuned: Option<Tuned>,
}

impl OptionSpec {
    /// Its value where none is given: ours, or the makers' as far as it can be.
    pub fn value(&self, asked: Use) -> Option<Value> {
        match (asked, &self.tuned) {
            (Use::Stock, Some(Tuned { stock: Stock::Value(stock), .. })) => Some(stock.clone()),
            _ => self.default.clone(),
        }
    }
}

fn spec(name: &str, kind: OptionKind, default: Option<&str>, doc: &str) -> OptionSpec {
    let default = default.and_then(|text| kind.read(text).ok());
    OptionSpec { name: name.into(), kind, default, doc: doc.into(), tuned: None }
}

/// The protocol that a driver speaks to servers, if it speaks one: the
/// `protocol` of an endpoint's URL.
pub fn protocol_of(driver: &str) -> Option<&'static str> {
    ["mqtt", "nats", "redis", "amqp", "zenoh"].into_iter().find(|protocol| *protocol == driver)
}

/// The options of a driver: those of a protocol, or those that all libraries share.
pub fn of_driver(driver: &str) -> Vec<OptionSpec> {
    if protocol_of(driver).is_none() {
        return common();
    }
    let mut options = vec![
        spec("endpoint", OptionKind::Text, None, "attach to the server that is there, instead of starting one"),
        spec("deployment", OptionKind::Text, Some("native"), "how a server is started: native or docker"),
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
    ];
    options.extend(match driver {
        "mqtt" => vec![
            spec("mqtt_version", OptionKind::Text, Some("3.1.1"), "version of the protocol: 3.1.1 or 5"),
            spec("keep_alive", OptionKind::Time, Some("60s"), "longest silence before a PINGREQ, whole seconds"),
            spec(
                "inflight",
                OptionKind::Count,
                Some("65535"),
                "QoS 1 and 2: messages of one client that may be unacknowledged; MQTT 5 servers may allow fewer",
            ),
            spec("retain", OptionKind::Bool, Some("false"), "publish with the retain flag"),
        ],
        "nats" => vec![spec("token", OptionKind::Text, None, "authentication token; never recorded")],
        "redis" => vec![spec("resp", OptionKind::Count, Some("3"), "version of the protocol: 2 or 3")],
        "amqp" => vec![
            spec("vhost", OptionKind::Text, Some("/"), "virtual host"),
            spec("heartbeat", OptionKind::Time, Some("60s"), "longest silence before a heartbeat, whole seconds"),
            spec(
                "prefetch",
                OptionKind::Count,
                Some("1000"),
                "QoS 1: messages that a consumer may hold unacknowledged; 0 is no bound",
            ),
            spec("inflight", OptionKind::Count, Some("65535"), "QoS 1: messages of one client that may be unconfirmed"),
        ],
        _ => Vec::new(),
    });
    options
}

/// The options that every library driver understands, with one equal default
/// over the libraries. What a library cannot do is an error, never ignored.
pub fn common() -> Vec<OptionSpec> {
    vec![
        spec(
            "library",
            OptionKind::Text,
            None,
            "path of the shared library to load, instead of the one that the loader finds",
        ),
        spec("tcp_nodelay", OptionKind::Bool, Some("true"), "send small TCP segments at once (Nagle's algorithm off)"),
        spec(
            "queue_messages",
            OptionKind::Count,
            Some("1000"),
            "high-water mark of each send and each receive queue, messages",
        ),
        spec(
            "queue_bytes",
            OptionKind::Size,
            Some("64MiB"),
            "the same in bytes: a queue holds queue_messages, or fewer where their payloads would exceed this",
        ),
        spec(
            "socket_buffer",
            OptionKind::Size,
            Some("0B"),
            "SO_SNDBUF and SO_RCVBUF, bytes; 0 leaves the kernel's automatic sizes",
        ),
        spec("linger", OptionKind::Time, Some("10s"), "how long a closing socket may still send what it accepted"),
        spec("io_threads", OptionKind::Count, Some("1"), "I/O threads of the library, where it has a choice"),
    ]
}

/// Typed look-ups in resolved options.
pub trait OptionValues {
    /// A boolean option; false if not set.
    fn flag(&self, name: &str) -> bool;
    /// A count or size; 0 if not set.
    fn number(&self, name: &str) -> u64;
    /// A time in ns; 0 if not set.
    fn time_ns(&self, name: &str) -> u64;
    /// A text; none if not set.
    fn text(&self, name: &str) -> Option<&str>;
}

impl OptionValues for Options {
    fn flag(&self, name: &str) -> bool {
        self.get(name).and_then(Value::as_bool).unwrap_or_default()
    }
    fn number(&self, name: &str) -> u64 {
        self.get(name).and_then(Value::as_u64).unwrap_or_default()
    }
    fn time_ns(&self, name: &str) -> u64 {
        self.text(name).and_then(|text| parse_time(text).ok()).unwrap_or_default()
    }
    fn text(&self, name: &str) -> Option<&str> {
        self.get(name).and_then(Value::as_str)
    }
}

/// Messages that one queue may hold: `queue_messages`, or fewer where their
/// payloads would exceed `queue_bytes`; at least 1.
pub fn queue_messages(options: &Options, payload_bytes: u64) -> u64 {
    let by_bytes = options.number("queue_bytes") / payload_bytes.max(1);
    options.number("queue_messages").min(by_bytes).max(1)
}
