//! Settings that all Kafka clients of a run share.

use super::keys::Keys;
use crate::session::{ClientSettings, SettingsError};
use crate::topics::{self, PrefixRules};
use pubmark_model::diagnostic::Diagnostic;
use pubmark_model::kafka_group::GroupSettings;
use pubmark_model::kafka_partition::PartitionBy;
use pubmark_model::options::{OptionValues, Options};
use pubmark_model::units::{MILLISECOND, Ns, SECOND};
use pubmark_model::wire_protocol::MOST_PARTITIONS;
use pubmark_wire::kafka::FetchLimits;
use std::sync::Arc;

/// With what follows the prefix, a topic has 249 bytes at most.
const PREFIX: PrefixRules = PrefixRules { what: "a topic", forbidden: "*#/\\:,\"'; \t?=+", first: "", most_bytes: 128 };
/// Bytes of the longest batch: those that a length of the protocol can state.
const MOST_BYTES: u64 = i32::MAX as u64;
/// Bytes of the longest compressed batch: consumers keep it until all of it is there.
const MOST_COMPRESSED: u64 = 256 << 10;
/// Longest time for which a batch is collected, ns.
const LONGEST_LINGER: Ns = SECOND;

/// The settings of all clients.
pub struct KafkaSettings {
    qos: u8,
    /// Replicas that acknowledge: -1 for all that are in sync.
    pub(super) acks: i16,
    /// Partitions of a topic: none of it can be less than one.
    pub(super) partitions: i32,
    /// Rule that selects the partition of a producer's batch.
    pub(super) partition_by: PartitionBy,
    /// The keys of messages, if they select it.
    pub(super) keys: Option<Arc<Keys>>,
    /// Requests of one producer that may be unanswered.
    pub(super) inflight: usize,
    /// Longest batch that a producer collects, bytes.
    pub(super) batch_bytes: usize,
    /// Time for which it collects a batch, ns.
    pub(super) linger_ns: Ns,
    /// True if batches are compressed.
    pub(super) is_gzip: bool,
    /// True if clients whose connection is lost come back.
    pub(super) reconnects: bool,
    /// Limits of answers to consumers.
    pub(super) fetch: FetchLimits,
    /// The terms of members of groups, if a coordinator leads them.
    pub(super) group: Option<GroupSettings>,
    /// User and password, each after a zero byte (RFC 4616).
    login: Option<Vec<u8>>,
}

impl KafkaSettings {
    pub(super) fn read(terms: &ClientSettings<'_>) -> Result<KafkaSettings, SettingsError> {
        let (endpoint, options) = (terms.endpoint, terms.options);
        if terms.answer_ns.is_some() {
            return Err("Kafka has no requests and answers: write another pattern".into());
        }
        let acks = match (terms.qos, options.text("acks").unwrap_or("all")) {
            (0, _) => 0,
            (_, "all") => -1,
            (1, "1") => 1,
            (2, "1") => return Err("acks = \"1\": at QoS 2 all replicas acknowledge, write \"all\" or qos = 1".into()),
            (_, other) => {
                return Err(format!("acks = \"{other}\": write \"all\" or \"1\", or qos = 0 for none").into());
            }
        };
        let inflight = match options.number("inflight") {
            0 => return Err("inflight = 0: nothing could be published, write 1 at least".into()),
            // A broker recognises the last five batches of an idempotent producer.
            inflight if terms.qos == 2 && inflight > 5 => return Err("inflight: at QoS 2 write 5 at most".into()),
            inflight => usize::try_from(inflight).unwrap_or(usize::MAX),
        };
        let linger_ns = options.time_ns("linger");
        if linger_ns > LONGEST_LINGER {
            return Err("linger: write 1s at most".into());
        }
        let batch_bytes = bytes(options, "batch", 0)? as usize;
        let is_gzip = is_gzip(options, terms.payload_bytes.max(batch_bytes as u64))?;
        let partition_by = PartitionBy::read(options).map_err(refusal)?;
        let partitions = match options.number("partitions") {
            partitions @ 1..=MOST_PARTITIONS => partitions as i32,
            other => return Err(format!("partitions = {other}: write 1 to {MOST_PARTITIONS}").into()),
        };
        let keys = match partition_by {
            PartitionBy::Key(count) => Some(Arc::new(Keys::new(count, terms.seed, partitions as u32))),
            PartitionBy::Publisher | PartitionBy::RoundRobin => None,
        };
        let max_wait_ms = options.time_ns("fetch_wait") / MILLISECOND;
        let prefix = options.text("prefix").unwrap_or_default();
        topics::check_prefix(prefix, &PREFIX)?;
        let user = endpoint.user.as_deref().filter(|user| !user.is_empty()).or(options.text("username"));
        let password = endpoint.password.as_deref().or(options.text("password"));
        let login = match (user, password.filter(|password| !password.is_empty())) {
            (None, None) => None,
            (Some(user), Some(password)) => Some(format!("\0{user}\0{password}").into_bytes()),
            (user, _) => {
                let which = if user.is_some() { "password" } else { "username" };
                return Err(format!("a login needs a user and a password: set `{which}`").into());
            }
        };
        Ok(KafkaSettings {
            qos: terms.qos,
            acks,
            inflight,
            partitions,
            partition_by,
            keys,
            batch_bytes,
            linger_ns,
            is_gzip,
            reconnects: terms.reconnect,
            fetch: FetchLimits {
                max_wait_ms: i32::try_from(max_wait_ms).map_err(|_| "fetch_wait: write less than 24 days")?,
                min_bytes: bytes(options, "fetch_min", 1)?,
                max_bytes: bytes(options, "fetch_max", 1)?,
            },
            group: GroupSettings::read(options).map_err(refusal)?,
            login,
        })
    }

    /// Returns how long the coordinator of a group takes to notice that a member is dead and to share out its
    /// partitions, ns; 0 without one.
    pub(super) fn takeover_ns(&self) -> Ns {
        self.group.map_or(0, |group| {
            Ns::from(group.session_ms.unsigned_abs()) * MILLISECOND
                + Ns::from(group.heartbeat_ticks) * GroupSettings::TICK
                + SECOND
        })
    }

    /// True if the messages of a producer go to several partitions, and are in order within each only.
    pub(super) fn has_parts(&self) -> bool {
        self.partition_by != PartitionBy::Publisher
    }

    pub(super) fn has_login(&self) -> bool {
        self.login.is_some()
    }

    /// Returns the bytes of the login.
    pub(super) fn login(&self) -> &[u8] {
        self.login.as_deref().unwrap_or_default()
    }

    pub(super) fn is_idempotent(&self) -> bool {
        self.qos == 2
    }

    /// True if brokers answer what producers send.
    pub(super) fn is_acknowledged(&self) -> bool {
        self.acks != 0
    }
}

fn bytes(options: &Options, name: &str, least: u64) -> Result<i32, SettingsError> {
    let bytes = options.number(name);
    match i32::try_from(bytes) {
        Ok(number) if bytes >= least => Ok(number),
        _ => Err(format!("{name}: write {least} to {MOST_BYTES} bytes").into()),
    }
}

fn is_gzip(options: &Options, batch_bytes: u64) -> Result<bool, SettingsError> {
    match options.text("compression").unwrap_or("none") {
        "none" => Ok(false),
        "gzip" if batch_bytes > MOST_COMPRESSED => {
            Err("compression: write a `batch` and a payload of 256KiB at most, or compression = \"none\"".into())
        }
        "gzip" => Ok(true),
        other => {
            Err(format!("compression = \"{other}\": pubmark compresses with gzip: write \"gzip\" or \"none\"").into())
        }
    }
}

fn refusal(error: Diagnostic) -> SettingsError {
    match error.help {
        Some(help) => format!("{}: {help}", error.message).into(),
        None => error.message.into(),
    }
}
