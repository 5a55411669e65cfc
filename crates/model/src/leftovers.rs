//! Objects that a run creates at a persistent server: sessions, queues, topics and retained messages, which
//! outlive the connections of its clients until they are removed.

use crate::endpoint::Endpoint;
use crate::options::{OptionValues, Options};
use crate::secret::{HIDDEN, is_secret_name, recorded};
use crate::topic_set::TopicSet;
use crate::wire_protocol::Protocol;
use crate::workload::Workload;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::Duration;

/// Time limit of a removal, and its increase for each client and each topic of the run.
const PATIENCE: Duration = Duration::from_secs(5);
const PATIENCE_EACH: Duration = Duration::from_millis(2);
/// Number of names of each kind that a sentence lists.
const NAMED: usize = 3;

/// An object that a server keeps, by its name there.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Leftover {
    /// The session of the client with this name.
    Session(String),
    /// A queue.
    Queue(String),
    /// An exchange.
    Exchange(String),
    /// A stream, with its consumers.
    Stream(String),
    /// The message retained in this topic.
    Retained(String),
    /// A group of consumers, and the offsets that it has stored.
    Group(String),
    /// A topic and its messages.
    Topic(String),
}

impl Leftover {
    fn name(&self) -> &str {
        match self {
            Leftover::Session(name)
            | Leftover::Queue(name)
            | Leftover::Exchange(name)
            | Leftover::Stream(name)
            | Leftover::Retained(name)
            | Leftover::Group(name)
            | Leftover::Topic(name) => name,
        }
    }
}

/// Describes objects: `2 sessions (a, b), 1 queue (c)`.
pub fn in_words(things: &[Leftover]) -> String {
    type IsOfKind = fn(&Leftover) -> bool;
    let kinds: [(&str, IsOfKind); 7] = [
        ("session", |thing| matches!(thing, Leftover::Session(_))),
        ("queue", |thing| matches!(thing, Leftover::Queue(_))),
        ("exchange", |thing| matches!(thing, Leftover::Exchange(_))),
        ("stream", |thing| matches!(thing, Leftover::Stream(_))),
        ("retained message", |thing| matches!(thing, Leftover::Retained(_))),
        ("consumer group", |thing| matches!(thing, Leftover::Group(_))),
        ("topic", |thing| matches!(thing, Leftover::Topic(_))),
    ];
    let kinds = kinds.into_iter().filter_map(|(kind, is_of_kind)| {
        let names: Vec<&str> = things.iter().filter(|thing| is_of_kind(thing)).map(Leftover::name).collect();
        let shown = names.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
        match names.len() {
            0 => None,
            1 => Some(format!("1 {kind} ({shown})")),
            count if count > NAMED => Some(format!("{count} {kind}s ({shown}, …)")),
            count => Some(format!("{count} {kind}s ({shown})")),
        }
    });
    kinds.collect::<Vec<_>>().join(", ")
}

/// The facts of a run that are needed to name and to remove what its clients leave at a server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Leftovers {
    /// The run's own name, which is part of all names that it creates.
    pub run: String,
    /// Start time (RFC 3339).
    pub begun: String,
    /// The driver of its clients.
    pub driver: String,
    /// The clients' options, including the server's `endpoint`.
    pub options: Options,
    /// The clients' workload.
    pub workload: Workload,
}

impl Leftovers {
    /// Returns the leftovers of a run of these clients; `None` if nothing that they create outlives
    /// their connections.
    pub fn of(run: &str, begun: String, driver: &str, options: &Options, workload: &Workload) -> Option<Leftovers> {
        let kept = match Protocol::of_driver(driver)? {
            Protocol::Mqtt => workload.durable || workload.reconnect || options.flag("retain"),
            // A group's queue disappears with its last consumer, if there ever was one. With a
            // prefix the run has an exchange of its own.
            Protocol::Amqp => {
                let prefix = options.text("prefix").unwrap_or_default();
                workload.durable || workload.competing() || !prefix.is_empty()
            }
            Protocol::Amqp1 => workload.durable,
            // Streams of JetStream stay.
            Protocol::Nats => workload.qos > 0,
            // Requests and answers go over lists, which stay while they have entries. At QoS 1 topics are streams.
            Protocol::Redis => workload.pattern.requests() || workload.qos > 0,
            // Topics stay until they are deleted.
            Protocol::Kafka => true,
            _ => false,
        };
        let (run, driver) = (run.to_owned(), driver.to_owned());
        kept.then(|| Leftovers { run, begun, driver, options: options.clone(), workload: workload.clone() })
    }

    /// Returns a copy without secrets, which may be written to a file.
    #[must_use]
    pub fn without_secrets(&self) -> Leftovers {
        let mut options = recorded(&self.options, is_secret_name);
        // The hidden placeholder is not a valid query of the scheme.
        if let Some(Value::String(url)) = options.get_mut("endpoint") {
            url.truncate(url.find('?').unwrap_or(url.len()));
        }
        Leftovers { options, ..self.clone() }
    }

    /// Returns a copy with the login and the other unrecorded parts of a URL that the user has
    /// typed.
    #[must_use]
    pub fn with_login_of(mut self, typed: &str) -> Leftovers {
        let path = self.endpoint().map(|known| known.path).unwrap_or_default();
        let path = path.split('?').next().unwrap_or_default();
        // The user must supply a path that was not recorded.
        let path = if path.ends_with(HIDDEN) { "" } else { path };
        let has_path = Endpoint::parse(typed).is_ok_and(|endpoint| !endpoint.path.is_empty());
        self.options.retain(|_, value| value.as_str() != Some(HIDDEN));
        let url = if has_path { typed.to_owned() } else { format!("{typed}{path}") };
        self.options.insert("endpoint".into(), Value::String(url));
        self
    }

    /// Returns the server; `None` if its URL is invalid.
    pub fn endpoint(&self) -> Option<Endpoint> {
        Endpoint::parse(self.options.text("endpoint")?).ok()
    }

    /// True if the server is the one at this endpoint, whatever the login.
    pub fn is_at(&self, other: &Endpoint) -> bool {
        self.endpoint().is_some_and(|own| {
            (own.protocol, own.carrier, own.host.as_str(), own.port)
                == (other.protocol, other.carrier, other.host.as_str(), other.port)
        })
    }

    /// Returns the command that removes the leftovers.
    pub fn command(&self) -> String {
        let url = self.endpoint().map(|endpoint| endpoint.to_string()).unwrap_or_default();
        format!("pubmark doctor {} --remove", url.split('?').next().unwrap_or_default())
    }

    /// Returns the time limit of a removal.
    pub fn patience(&self) -> Duration {
        let clients = self.workload.publishers.saturating_add(self.workload.subscribers);
        let topics = self.workload.topics.as_ref().map_or(0, TopicSet::count);
        PATIENCE + PATIENCE_EACH.saturating_mul(clients.saturating_add(topics))
    }
}

/// Result of a removal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Removal {
    /// Number of removed objects.
    pub removed: u64,
    /// Objects still there, as far as known.
    pub left: Vec<Leftover>,
    /// The reason.
    pub why: Option<String>,
    /// True if the server accepted a connection.
    pub is_let_in: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn leftovers(driver: &str, options: Value, workload: &Workload) -> Option<Leftovers> {
        let Value::Object(options) = options else { panic!("{options}") };
        Leftovers::of("r1", "2026-01-01T00:00:00Z".into(), driver, &options.into_iter().collect(), workload)
    }

    fn workload(durable: bool, reconnect: bool) -> Workload {
        Workload { durable, reconnect, ..Workload::of([("pairs", "2")]).unwrap() }
    }

    #[test]
    fn who_leaves_something_is_known_before_it_is_made() {
        let group = Workload::of([("pattern", "pipeline"), ("publishers", "1"), ("subscribers", "2")]).unwrap();
        let leaves = |driver: &str, options, workload: &Workload| leftovers(driver, options, workload).is_some();
        let (plain, durable, back) = (workload(false, false), workload(true, false), workload(false, true));
        for (driver, of_plain, of_durable, of_back, of_group) in [
            ("mqtt", false, true, true, false),
            ("amqp", false, true, false, true),
            ("amqp1", false, true, false, false),
            ("nats", false, false, false, false),
            ("redis", false, false, false, false),
            ("kafka", true, true, true, true),
            ("zeromq", false, false, false, false),
        ] {
            let found = [&plain, &durable, &back, &group].map(|workload| leaves(driver, json!({}), workload));
            assert_eq!(found, [of_plain, of_durable, of_back, of_group], "{driver}");
        }
        assert!(leaves("mqtt", json!({"retain": true}), &plain));
        assert!(!leaves("amqp", json!({"retain": true}), &plain));
        let stored = Workload::of([("qos", "1")]).unwrap();
        assert!(leaves("nats", json!({}), &stored) && leaves("redis", json!({}), &stored));
        assert!(leaves("amqp", json!({"prefix": "bench."}), &plain) && !leaves("amqp", json!({"prefix": ""}), &plain));
    }

    #[test]
    fn what_is_written_has_no_secret_and_a_typed_url_brings_it_back() {
        let options = json!({"endpoint": "amqp://u:S3cret@h/v?heartbeat=5", "password": "S3cret", "vhost": "/"});
        let leftovers = leftovers("amqp", options, &workload(true, false)).unwrap();
        let written = serde_json::to_string(&leftovers.without_secrets()).unwrap();
        assert!(!written.contains("S3cret"), "{written}");
        let read: Leftovers = serde_json::from_str(&written).unwrap();
        assert_eq!(read.command(), "pubmark doctor amqp://h:5672/v --remove");
        let back = read.clone().with_login_of("amqp://u:S3cret@h:5672");
        assert_eq!(back.options["endpoint"], "amqp://u:S3cret@h:5672/v", "the path is known");
        assert_eq!(back.options.get("password"), None);
        assert_eq!(read.with_login_of("amqp://h/w").options["endpoint"], "amqp://h/w");
    }

    #[test]
    fn a_server_is_the_same_whoever_logs_in() {
        let found = leftovers("mqtt", json!({"endpoint": "mqtt://u:p@h:1883"}), &workload(true, false)).unwrap();
        let at = |url: &str| found.is_at(&Endpoint::parse(url).unwrap());
        assert!(at("mqtt://h") && at("mqtt://other@h:1883"));
        assert!(!at("mqtt://h:1884") && !at("mqtts://h:1883") && !at("mqtt://i"));
    }

    #[test]
    fn things_are_listed_by_kind_the_first_by_name() {
        let things = |kind: fn(String) -> Leftover, count: usize| (0..count).map(move |n| kind(format!("n{n}")));
        let mut all: Vec<Leftover> = things(Leftover::Retained, 1).chain(things(Leftover::Session, 4)).collect();
        assert_eq!(in_words(&all), "4 sessions (n0, n1, n2, …), 1 retained message (n0)");
        all.extend(things(Leftover::Queue, 2));
        assert_eq!(in_words(&all), "4 sessions (n0, n1, n2, …), 2 queues (n0, n1), 1 retained message (n0)");
        assert_eq!(in_words(&[]), "");
    }
}
