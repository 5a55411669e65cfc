//! Streams, which a session of Redis uses at QoS 1: each topic is a stream, each subscriber (or group of them) a
//! consumer group, and the answer to XADD acknowledges a message.
//!
//! A subscriber's connection waits in XREADGROUP, where the server handles nothing else of it. Its acknowledgements go
//! out before the next XREADGROUP, in one write.
//!
//! With `wait_replicas`, WAIT acknowledges the messages before it. The server handles nothing else of the connection until
//! it answers, so there is one WAIT at a time, for all messages that were sent since the last.
//!
//! Source: the documentation of the commands, and what redis-server 7.0 answers.

use super::super::confirms::{Confirms, inflight};
use crate::session::{
    ClientSettings, ClientSpec, MessageRefusal, RefusalKind, SessionError, SessionEvent, SettingsError,
};
use pubmark_model::leftovers::Leftover;
use pubmark_model::options::OptionValues;
use pubmark_model::protocol::Role;
use pubmark_wire::resp::{Item, Values, put_bulk, put_command, put_front};

/// Maximum size of the messages of one answer, bytes.
const ANSWER_BYTES: u64 = 1 << 20;
/// Maximum number of messages of one answer: it holds five values for each.
const MOST_COUNT: u64 = 500;
/// Name of an entry's only field.
const FIELD: &[u8] = b"m";
/// Stands for entries that no consumer has been sent.
const NEW: &[u8] = b">";
/// Stands for the consumer's own entries, from the first.
const OWN: &[u8] = b"0";

/// The settings of all clients.
pub struct RedisStreamSettings {
    /// Most messages of an answer, as text.
    count: String,
    /// Most bytes of their payloads.
    pub answer_bytes: u64,
    /// Length to which a stream is cut, as text.
    max_length: Option<String>,
    inflight: usize,
    acknowledges: bool,
    three: bool,
    /// Number of replicas of WAIT, as text, and as a number.
    wait: Option<(String, i64)>,
}

impl RedisStreamSettings {
    /// Reads the settings.
    ///
    /// # Errors
    /// If an option has an invalid value, or streams lack what the run asks for.
    pub fn read(terms: &ClientSettings<'_>, three: bool) -> Result<RedisStreamSettings, SettingsError> {
        if terms.qos > 1 {
            return Err("streams deliver at least once: write qos = 1".into());
        }
        if terms.answer_ns.is_some() {
            return Err("requests go over lists, which acknowledge nothing: write qos = 0".into());
        }
        let options = terms.options;
        let count = match options.number("read_count") {
            count @ 1..=MOST_COUNT => count,
            other => return Err(format!("read_count = {other}: write 1 to {MOST_COUNT}").into()),
        };
        let count = count.min(ANSWER_BYTES / terms.payload_bytes.max(1)).max(1);
        let max_length = options.number("max_length");
        let replicas = i64::try_from(options.number("wait_replicas")).unwrap_or(i64::MAX);
        Ok(RedisStreamSettings {
            count: count.to_string(),
            answer_bytes: count.saturating_mul(terms.payload_bytes),
            max_length: (max_length > 0).then(|| max_length.to_string()),
            inflight: inflight(options)?,
            acknowledges: options.text("ack_policy").unwrap_or("explicit") != "none",
            three,
            wait: (replicas > 0).then(|| (replicas.to_string(), replicas)),
        })
    }
}

/// The answer that a subscriber waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Publishers, and subscribers before they subscribe.
    Idle,
    /// That the group is made.
    Group,
    /// Messages that it was sent on an earlier connection and has not acknowledged.
    Own,
    /// New messages.
    New,
}

/// A client's part in streams.
pub struct RedisStream {
    key: Box<str>,
    group: Box<str>,
    consumer: Box<str>,
    phase: Phase,
    confirms: Confirms,
    /// Messages answered on this connection.
    answered: u64,
    /// Messages before the WAIT that is not answered yet; 0 if there is none.
    waited: u64,
}

impl RedisStream {
    /// Creates the part of a client.
    pub fn new(spec: &ClientSpec) -> RedisStream {
        RedisStream {
            key: spec.topic.as_str().into(),
            group: group(spec),
            consumer: spec.name.as_str().into(),
            phase: Phase::Idle,
            confirms: Confirms::new(),
            answered: 0,
            waited: 0,
        }
    }

    /// Returns the part of the same client on its next connection.
    pub fn resumed(self, spec: &ClientSpec) -> RedisStream {
        RedisStream { confirms: self.confirms.reconnected(), ..RedisStream::new(spec) }
    }

    /// Returns a message's sequence that has to be sent again.
    pub fn next_again(&mut self) -> Option<u32> {
        self.confirms.next_again()
    }

    pub fn unacknowledged(&self) -> usize {
        self.confirms.unacknowledged()
    }

    /// Asks a member of a Redis Cluster whether it has the stream: the answer is a number, or an error that names the
    /// member that has it.
    pub fn locate(&self, out: &mut Vec<u8>) {
        put_command(out, &[b"EXISTS", self.key.as_bytes()]);
    }

    /// Makes stream and group; reading follows.
    pub fn subscribe(&mut self, out: &mut Vec<u8>) {
        put_command(out, &[b"XGROUP", b"CREATE", self.key.as_bytes(), self.group.as_bytes(), OWN, b"MKSTREAM"]);
        self.phase = Phase::Group;
    }

    /// Publishes a message. Returns false if the window of unacknowledged messages is full.
    pub fn publish(
        &mut self,
        settings: &RedisStreamSettings,
        (key, sequence): (&[u8], u32),
        message: &[u8],
        out: &mut Vec<u8>,
    ) -> bool {
        if !self.confirms.push(sequence, settings.inflight) {
            return false;
        }
        match &settings.max_length {
            Some(length) => {
                put_command(out, &[b"XADD", key, b"MAXLEN", b"~", length.as_bytes(), b"*", FIELD, message]);
            }
            None => put_command(out, &[b"XADD", key, b"*", FIELD, message]),
        }
        if self.waited == 0 {
            self.wait(settings, out);
        }
        true
    }

    /// Asks for the acknowledgement of all messages so far by replicas, for as long as it takes.
    fn wait(&mut self, settings: &RedisStreamSettings, out: &mut Vec<u8>) {
        if let Some((replicas, _)) = &settings.wait {
            put_command(out, &[b"WAIT", replicas.as_bytes(), b"0"]);
            self.waited = self.confirms.next() - 1;
        }
    }

    /// Handles an answer to a publisher, as [`RedisStream::heard`] does.
    fn answer(
        &mut self,
        settings: &RedisStreamSettings,
        (item, in_cluster): (Item<'_>, bool),
        out: &mut Vec<u8>,
        heard: &mut dyn FnMut(SessionEvent<'_>),
    ) -> Result<(), SessionError> {
        let is_wait = self.waited > 0 && self.answered == self.waited;
        match (item, &settings.wait) {
            (Item::Error(text), _) if is_wait || in_cluster && has_moved(text) => {
                let text = String::from_utf8_lossy(text);
                Err(SessionError::Busy(format!("the server stores nothing more: '{text}'")))
            }
            (Item::Integer(count), Some((_, replicas))) if is_wait => {
                let waited = std::mem::take(&mut self.waited);
                // Another client may have ended the wait.
                let is_done = count >= *replicas;
                if is_done {
                    self.confirms.settle(waited, true, |sequence| heard(SessionEvent::Acknowledged(sequence)));
                }
                if !is_done || self.confirms.next() - 1 > waited {
                    self.wait(settings, out);
                }
                Ok(())
            }
            (Item::Error(text), _) => {
                self.answered(Some(text), heard);
                Ok(())
            }
            // The identifier of a message.
            (Item::Bulk(_), None) => {
                self.answered(None, heard);
                Ok(())
            }
            (Item::Bulk(_), Some(_)) => {
                self.answered += 1;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Handles an answer of a connected client. In a cluster another member may become the primary.
    pub fn heard(
        &mut self,
        settings: &RedisStreamSettings,
        (item, in_cluster): (Item<'_>, bool),
        out: &mut Vec<u8>,
        heard: &mut dyn FnMut(SessionEvent<'_>),
    ) -> Result<(), SessionError> {
        match (self.phase, item) {
            (Phase::Group, Item::Simple(_)) => self.grouped(settings, out, heard),
            (Phase::Group, Item::Error(text)) if text.starts_with(b"BUSYGROUP") => self.grouped(settings, out, heard),
            (Phase::Own | Phase::New, Item::Error(text)) => return Err(ended(text)),
            (Phase::Idle, item) => return self.answer(settings, (item, in_cluster), out, heard),
            (Phase::Own | Phase::New, Item::Array(values) | Item::Map(values)) => {
                self.read(settings, values, out, heard);
            }
            (Phase::Own | Phase::New, Item::Null) => self.ask(settings, out),
            (_, Item::Error(text)) => return Err(ended(text)),
            _ => {}
        }
        Ok(())
    }

    fn grouped(&mut self, settings: &RedisStreamSettings, out: &mut Vec<u8>, heard: &mut dyn FnMut(SessionEvent<'_>)) {
        // Without acknowledgements nothing is its own.
        self.phase = if settings.acknowledges { Phase::Own } else { Phase::New };
        self.ask(settings, out);
        heard(SessionEvent::Subscribed);
    }

    /// Handles the answer to the next message.
    fn answered(&mut self, error: Option<&[u8]>, heard: &mut dyn FnMut(SessionEvent<'_>)) {
        self.answered += 1;
        let words = error.map(String::from_utf8_lossy);
        // Answers to other commands, such as PING, are no messages.
        self.confirms.settle(self.answered, false, |sequence| {
            heard(match &words {
                None => SessionEvent::Acknowledged(sequence),
                Some(words) => {
                    let code = words.split(' ').next().unwrap_or_default();
                    let is_limit = matches!(code, "OOM" | "MISCONF" | "BUSY") || words.contains("limit");
                    SessionEvent::Refused(
                        sequence,
                        MessageRefusal { code: None, words, kind: RefusalKind::limit_or_final(is_limit) },
                    )
                }
            });
        });
    }

    /// Handles entries: key, and for each entry its identifier and its field.
    fn read(
        &mut self,
        settings: &RedisStreamSettings,
        values: Values<'_>,
        out: &mut Vec<u8>,
        heard: &mut dyn FnMut(SessionEvent<'_>),
    ) {
        let entries = read_entries(values, settings.three);
        let mut count = 0;
        for (id, payload) in entries.clone() {
            // An entry that was cut off the stream has no field any more.
            if let Some(payload) = payload {
                heard(SessionEvent::Message { topic: self.key.as_bytes(), payload, is_retained: false });
            }
            count += usize::from(!id.is_empty());
        }
        if count == 0 {
            self.phase = Phase::New;
        } else if settings.acknowledges {
            put_front(out, b'*', 3 + count);
            for word in [b"XACK", self.key.as_bytes(), self.group.as_bytes()] {
                put_bulk(out, word);
            }
            entries.for_each(|(id, _)| put_bulk(out, id));
        }
        self.ask(settings, out);
    }

    /// Asks for messages: its own of earlier connections at once, new ones when there are some.
    fn ask(&self, settings: &RedisStreamSettings, out: &mut Vec<u8>) {
        let (group, consumer) = (self.group.as_bytes(), self.consumer.as_bytes());
        let mut words: Vec<&[u8]> = vec![b"XREADGROUP", b"GROUP", group, consumer, b"COUNT", settings.count.as_bytes()];
        if self.phase == Phase::New {
            words.extend([&b"BLOCK"[..], b"0"]);
        }
        if !settings.acknowledges {
            words.push(b"NOACK");
        }
        words.extend([&b"STREAMS"[..], self.key.as_bytes(), if self.phase == Phase::New { NEW } else { OWN }]);
        put_command(out, &words);
    }
}

/// Returns the name of a client's consumer group. One that replays is not the one before it.
fn group(spec: &ClientSpec) -> Box<str> {
    let name = spec.group.as_deref().unwrap_or(&spec.name);
    if spec.replays { format!("{name}r").into() } else { name.into() }
}

/// Returns identifier and payload of each entry. RESP 3 has a map of keys, RESP 2 an array of pairs.
fn read_entries(values: Values<'_>, three: bool) -> impl Iterator<Item = (&[u8], Option<&[u8]>)> + Clone {
    let pair = if three { Some(values) } else { values.into_iter().next().and_then(|pair| pair.values()) };
    pair.and_then(|pair| pair.into_iter().nth(1)).and_then(|entries| entries.values()).into_iter().flatten().map(
        |entry| {
            let mut parts = entry.values().into_iter().flatten();
            let id = parts.next().and_then(|id| id.text()).unwrap_or_default();
            let payload = parts.next().and_then(|fields| fields.values()?.nth(1)?.text());
            (id, payload)
        },
    )
}

/// True if an error says that the server is not the primary of the stream, or not yet.
fn has_moved(text: &[u8]) -> bool {
    let code = text.split(|byte| *byte == b' ').next().unwrap_or_default();
    matches!(code, b"READONLY" | b"UNBLOCKED" | b"MASTERDOWN" | b"LOADING" | b"MOVED" | b"CLUSTERDOWN" | b"TRYAGAIN")
}

/// Makes the error for one that ends a subscription.
fn ended(text: &[u8]) -> SessionError {
    let text = String::from_utf8_lossy(text);
    let said = format!("the server ends the subscription: '{text}'");
    match text.split(' ').next().unwrap_or_default() {
        _ if has_moved(text.as_bytes()) => SessionError::Busy(said),
        "NOGROUP" => SessionError::Busy(said),
        "OOM" | "MISCONF" => SessionError::Limit(said),
        _ => SessionError::Denied(said),
    }
}

/// Returns what a client leaves at the server: publishers share the streams of subscribers.
pub fn leaves(spec: &ClientSpec) -> Vec<Leftover> {
    let own = (spec.role == Role::Subscriber).then(|| Leftover::Stream(spec.topic.clone()));
    own.into_iter().collect()
}

#[cfg(test)]
mod tests;
