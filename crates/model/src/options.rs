//! Options of a system's server or driver: typed, with defaults, all recorded.

use crate::secret_name::is_secret_name;
use crate::tuning::{DefaultValue, RecommendedSetting, Use};
use crate::units::{format_time, parse_size, parse_time};
use crate::value::ValueError;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Option values by name, canonical: numbers, booleans, or strings.
pub type Options = BTreeMap<String, Value>;

/// Type of an option's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OptionKind {
    /// `true` or `false`.
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
    /// Describes valid values.
    pub fn word(self) -> &'static str {
        match self {
            OptionKind::Bool => "true or false",
            OptionKind::Count => "count",
            OptionKind::Size => "size",
            OptionKind::Time => "time",
            OptionKind::Text => "text",
        }
    }

    /// Parses a value into its canonical form.
    pub fn read(self, text: &str) -> Result<Value, ValueError> {
        match self {
            OptionKind::Bool => text.parse::<bool>().map(Value::from).map_err(|_| ValueError::Flag(text.to_owned())),
            OptionKind::Count => text.replace('_', "").parse::<u32>().map(Value::from).map_err(|_| ValueError::Count {
                text: text.to_owned(),
                least: 0,
                most: u32::MAX.into(),
            }),
            OptionKind::Size => Ok(parse_size(text)?.into()),
            OptionKind::Time => Ok(format_time(parse_time(text)?).into()),
            OptionKind::Text => Ok(text.into()),
        }
    }
}

/// An option as a system file declares it.
#[derive(Clone, Debug, PartialEq)]
pub struct OptionSpec {
    /// Its name.
    pub name: String,
    /// Type of its value.
    pub kind: OptionKind,
    /// Default value, canonical; `None` means "not set".
    pub default: Option<Value>,
    /// Its effect and its cost.
    pub doc: String,
    /// The vendor default and the reason, if the default is a recommended setting.
    pub tuned: Option<RecommendedSetting>,
    /// True or false if its declaration says whether its value is secret; otherwise its name
    /// decides.
    pub secret: Option<bool>,
}

impl OptionSpec {
    /// True if its value must not be shown or recorded. By its name alone, a text or a number can
    /// be secret, but not a switch, size or time.
    pub fn is_secret(&self) -> bool {
        let holds = matches!(self.kind, OptionKind::Text | OptionKind::Count);
        self.secret.unwrap_or_else(|| holds && is_secret_name(&self.name))
    }

    /// Returns its default: the recommended setting, or the vendor default if `asked` is stock and
    /// the vendor default is a value.
    pub fn value(&self, asked: Use) -> Option<Value> {
        match (asked, &self.tuned) {
            (Use::Stock, Some(RecommendedSetting { stock: DefaultValue::Value(stock), .. })) => Some(stock.clone()),
            _ => self.default.clone(),
        }
    }
}

/// Creates an option that is declared in the code, with its default as typed.
pub(crate) fn spec(name: &str, kind: OptionKind, default: Option<&str>, doc: &str) -> OptionSpec {
    let default = default.and_then(|text| kind.read(text).ok());
    OptionSpec { name: name.into(), kind, default, doc: doc.into(), tuned: None, secret: None }
}

/// Returns the options that every library driver understands, with the same defaults for all
/// libraries. An option that a library does not support is an error, never ignored.
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
    /// Returns a boolean option; false if not set.
    fn flag(&self, name: &str) -> bool;
    /// Returns a count or size; 0 if not set.
    fn number(&self, name: &str) -> u64;
    /// Returns a time in ns; 0 if not set.
    fn time_ns(&self, name: &str) -> u64;
    /// Returns a text; `None` if not set.
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

/// Returns the number of messages that one queue may hold: `queue_messages`, or fewer if their
/// payloads would exceed `queue_bytes`; at least 1.
pub fn queue_messages(options: &Options, payload_bytes: u64) -> u64 {
    let by_bytes = options.number("queue_bytes") / payload_bytes.max(1);
    options.number("queue_messages").min(by_bytes).max(1)
}
