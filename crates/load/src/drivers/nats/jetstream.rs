//! JetStream, which a session of NATS uses at QoS 1: the run has a stream, each subscriber (or group of them) a
//! consumer, and the server acknowledges each message to a subject of the publisher's own.
//!
//! Source: "JetStream wire API Reference" of NATS, and what nats-server 2.15 sends.

use super::super::confirms::Confirms;
use crate::session::{
    ClientSettings, ClientSpec, MessageRefusal, RefusalKind, SessionError, SessionEvent, SettingsError,
};
use pubmark_model::header::MAX_SEQUENCE;
use pubmark_model::leftovers::Leftover;
use pubmark_model::options::{OptionValues, Options};
use pubmark_model::protocol::Role;
use pubmark_model::units::SECOND;
use pubmark_wire::nats::{FromClient, headers};
use serde_json::{Value, json};
use std::io::Write;

/// Separator of the tokens of a subject.
pub const SEPARATOR: char = '.';
/// Name of the subscription to answers and acknowledgements …
const INBOX: &[u8] = b"1";
/// … and of that to the messages of a push consumer.
const DELIVERIES: &[u8] = b"2";
/// Last token of the subject for answers of the API.
const API: &str = "api";
/// Last token of the subject for messages that were asked for.
const PULLED: &str = "m";
/// Time after which a request for messages expires.
const EXPIRES_NS: u64 = 30 * SECOND;
/// Interval of the server's heartbeats while it has no messages for a request.
const HEARTBEAT_NS: u64 = 2 * SECOND;
/// Twice the interval at which a subscriber checks for heartbeats, s: two of them are missing then.
pub const SILENCE_S: u32 = 10;
/// Time after which the server forgets a consumer that nobody uses. It bridges restarts.
const INACTIVE_NS: u64 = 300 * SECOND;
/// Statuses that a server sends in place of a message.
const HEARTBEAT: u16 = 100;
const NO_RESPONDERS: u16 = 503;
/// Codes of errors of the API: the stream or the consumer is gone.
const NOT_FOUND: [u64; 2] = [10_059, 10_014];
/// Refusal of a message to which no stream listens.
const NO_STREAM: &str = "503: no stream takes this subject, or its leader is away";

/// The settings of all clients.
pub struct JetStreamSettings {
    stream: String,
    /// Body of the request that makes the stream.
    create: Vec<u8>,
    /// Common fields of a consumer.
    consumer: Value,
    durable: bool,
    /// Messages of a request; 0 if the server pushes them.
    batch: u64,
    acknowledges: bool,
    inflight: usize,
    /// True if messages carry an identifier by which the server drops those that are sent again.
    identifies: bool,
}

impl JetStreamSettings {
    /// Reads the settings.
    ///
    /// # Errors
    /// If an option has an invalid value, or JetStream lacks what the run asks for.
    pub fn read(terms: &ClientSettings<'_>) -> Result<JetStreamSettings, SettingsError> {
        if terms.qos > 1 {
            return Err("JetStream delivers at least once: write qos = 1".into());
        }
        if terms.answer_ns.is_some() {
            return Err("requests over JetStream are not supported: write qos = 0".into());
        }
        let options = terms.options;
        let storage = one_of(options, "storage", ["file", "memory"])?;
        let is_pull = one_of(options, "consumer", ["pull", "push"])? == "pull";
        let policy = one_of(options, "ack_policy", ["explicit", "none"])?;
        let batch = if is_pull { positive(options, "pull_batch")? } else { 0 };
        let stream = format!("pb{}", terms.run);
        let subjects = format!("{}pubmark.{}.>", options.text("prefix").unwrap_or_default(), terms.run);
        let mut create = json!({
            "name": stream, "subjects": [subjects], "storage": storage, "retention": "limits",
            "num_replicas": positive(options, "replicas")?,
        });
        let max_length = options.number("max_length");
        if max_length > 0 {
            create["max_msgs_per_subject"] = max_length.into();
        }
        let max_age_ns = options.time_ns("max_age");
        if max_age_ns > 0 {
            create["max_age"] = max_age_ns.into();
        }
        let mut consumer = json!({"deliver_policy": "all", "replay_policy": "instant", "ack_policy": policy});
        if policy == "explicit" {
            consumer["ack_wait"] = options.time_ns("ack_wait").into();
            consumer["max_ack_pending"] = positive(options, "max_ack_pending")?.into();
        }
        Ok(JetStreamSettings {
            stream,
            create: create.to_string().into_bytes(),
            consumer,
            durable: terms.durable,
            batch,
            acknowledges: policy == "explicit",
            inflight: usize::try_from(positive(options, "inflight")?).unwrap_or(usize::MAX),
            identifies: options.flag("message_ids"),
        })
    }

    /// Returns what the clients of a run leave at the server.
    pub fn leaves(&self) -> Leftover {
        Leftover::Stream(self.stream.clone())
    }
}

fn one_of<'a>(options: &'a Options, name: &str, known: [&'a str; 2]) -> Result<&'a str, SettingsError> {
    let text = options.text(name).unwrap_or(known[0]);
    let found = known.into_iter().find(|known| *known == text);
    found.ok_or_else(|| format!("{name}: write {} or {}, and not `{text}`", known[0], known[1]).into())
}

fn positive(options: &Options, name: &str) -> Result<u64, SettingsError> {
    match options.number(name) {
        0 => Err(format!("{name} = 0: write 1 at least").into()),
        number => Ok(number),
    }
}

/// The request whose answer is missing.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asked {
    Nothing,
    Stream,
    Consumer,
    Removal,
}

impl Asked {
    /// Returns the end of the type that an answer has.
    fn answer(self) -> &'static str {
        match self {
            Asked::Nothing => "none",
            Asked::Stream => "stream_create_response",
            Asked::Consumer => "consumer_create_response",
            Asked::Removal => "stream_delete_response",
        }
    }
}

/// A client's part in JetStream.
pub struct JetStream {
    /// Beginning of the subjects on which this connection hears answers; a token follows. Other connections of the
    /// client have others: an acknowledgement that comes late must not be taken for another.
    inbox: Vec<u8>,
    inbox_bytes: usize,
    connection: u32,
    /// Name of the consumer.
    consumer: Box<str>,
    asked: Asked,
    /// The request that follows the answer, whole; it stays until its own answer.
    next: Vec<u8>,
    /// True on every connection after the first: its consumer should exist.
    is_back: bool,
    /// Messages that open requests may still bring.
    wanted: u64,
    /// True if a message or a heartbeat has arrived since the last check …
    is_served: bool,
    /// … and if a message has on this connection.
    has_received: bool,
    /// Requests for messages before it that no consumer has taken.
    untaken: u32,
    confirms: Confirms,
    headers: Vec<u8>,
}

impl JetStream {
    /// Creates the part of a client.
    pub fn new(spec: &ClientSpec) -> JetStream {
        // A request of the consumer before it may still be open.
        JetStream::on(spec, spec.replays.into(), Confirms::new())
    }

    fn on(spec: &ClientSpec, connection: u32, confirms: Confirms) -> JetStream {
        let inbox = format!("_INBOX.{}.{connection}.", spec.name).into_bytes();
        JetStream {
            inbox_bytes: inbox.len(),
            inbox,
            connection,
            consumer: consumer(spec),
            asked: Asked::Nothing,
            next: Vec::new(),
            is_back: false,
            wanted: 0,
            is_served: true,
            has_received: false,
            untaken: 0,
            confirms,
            headers: Vec::new(),
        }
    }

    /// Returns the part of the same client on its next connection.
    pub fn resumed(self, spec: &ClientSpec) -> JetStream {
        let next = JetStream::on(spec, self.connection.wrapping_add(1), self.confirms.reconnected());
        JetStream { is_back: true, ..next }
    }

    /// Returns a message's sequence that has to be sent again.
    pub fn next_again(&mut self) -> Option<u32> {
        self.confirms.next_again()
    }

    pub fn unacknowledged(&self) -> usize {
        self.confirms.unacknowledged()
    }

    /// Subscribes to answers.
    pub fn listen(&mut self, out: &mut Vec<u8>) {
        let subject = self.inbox(b"*");
        FromClient::Subscribe { subject, group: None, subscription: INBOX }.put(out);
    }

    /// Asks for the stream; the consumer follows. Returns true if the client need not wait for the answers. One that is
    /// back is served as soon as its consumer has a leader, as with the vendor's clients; the requests are for a server
    /// that has lost both.
    pub fn subscribe(&mut self, settings: &JetStreamSettings, spec: &ClientSpec, out: &mut Vec<u8>) -> bool {
        let mut config = settings.consumer.clone();
        config["name"] = (*self.consumer).into();
        let subjects: Vec<String> = spec.hears(SEPARATOR).map(Into::into).collect();
        let filter = match &subjects[..] {
            [one] => {
                config["filter_subject"] = one.as_str().into();
                format!(".{one}")
            }
            _ => {
                config["filter_subjects"] = subjects.into();
                String::new()
            }
        };
        match settings.durable {
            true => config["durable_name"] = (*self.consumer).into(),
            false => config["inactive_threshold"] = INACTIVE_NS.into(),
        }
        if settings.batch == 0 {
            let subject = format!("_INBOX.{}.deliver", self.consumer);
            let group = spec.group.as_deref();
            FromClient::Subscribe {
                subject: subject.as_bytes(),
                group: group.map(str::as_bytes),
                subscription: DELIVERIES,
            }
            .put(out);
            config["deliver_subject"] = subject.into();
            if let Some(group) = group {
                config["deliver_group"] = group.into();
            }
        }
        let body = json!({"stream_name": settings.stream, "config": config}).to_string();
        let subject = format!("$JS.API.CONSUMER.CREATE.{}.{}{filter}", settings.stream, self.consumer);
        let mut next = Vec::new();
        self.request(&subject, body.as_bytes(), &mut next);
        self.next = next;
        self.create(settings, out);
        if self.is_back {
            self.pull(settings, out);
        }
        self.is_back
    }

    fn create(&mut self, settings: &JetStreamSettings, out: &mut Vec<u8>) {
        self.request(&format!("$JS.API.STREAM.CREATE.{}", settings.stream), &settings.create, out);
        self.asked = Asked::Stream;
    }

    /// Publishes a message. Returns false if the window of unacknowledged messages is full.
    pub fn publish(
        &mut self,
        settings: &JetStreamSettings,
        (subject, sequence): (&[u8], u32),
        (own_headers, message): (&[u8], &[u8]),
        out: &mut Vec<u8>,
    ) -> bool {
        let number = self.confirms.next();
        if !self.confirms.push(sequence, settings.inflight) {
            return false;
        }
        self.headers.clear();
        self.headers.extend_from_slice(own_headers);
        // Probes and end markers are repeated on purpose.
        if settings.identifies && sequence <= MAX_SEQUENCE {
            let name = &self.inbox[b"_INBOX.".len()..];
            let name = name.split(|byte| *byte == b'.').next().unwrap_or_default();
            headers::add_id(&mut self.headers, name, sequence.into());
        }
        self.inbox.truncate(self.inbox_bytes);
        // Writing into memory cannot fail.
        let _ = write!(self.inbox, "{number}");
        FromClient::Publish { subject, reply: Some(&self.inbox), headers: &self.headers, payload: message }.put(out);
        true
    }

    /// Asks for the removal of a stream.
    pub fn remove(&mut self, stream: &str, out: &mut Vec<u8>) {
        self.request(&format!("$JS.API.STREAM.DELETE.{stream}"), b"", out);
        self.asked = Asked::Removal;
    }

    /// Handles a message of the server: one of the stream, an answer, an acknowledgement or a status.
    pub fn heard(
        &mut self,
        settings: &JetStreamSettings,
        message: &NatsDelivery<'_>,
        out: &mut Vec<u8>,
        heard: &mut dyn FnMut(SessionEvent<'_>),
    ) -> Result<(), SessionError> {
        let status = if message.headers.is_empty() { None } else { headers::status(message.headers) };
        let token = message.subject.strip_prefix(&self.inbox[..self.inbox_bytes]);
        self.is_served = true;
        match (token, status) {
            (Some(token), _) if token == API.as_bytes() => self.answered(settings, message, status, out, heard),
            (Some(token), _) if token != PULLED.as_bytes() => self.acknowledged(token, message, status, heard),
            (_, Some(status)) => self.status(settings, status, message, out, heard),
            _ => {
                self.has_received = true;
                heard(SessionEvent::Message { topic: message.subject, payload: message.payload, is_retained: false });
                if let Some(subject) = message.reply.filter(|_| settings.acknowledges) {
                    FromClient::Publish { subject, reply: None, headers: &[], payload: b"+ACK" }.put(out);
                }
                self.wanted = self.wanted.saturating_sub(1);
                self.pull(settings, out);
                Ok(())
            }
        }
    }

    /// Handles an answer of the API.
    fn answered(
        &mut self,
        settings: &JetStreamSettings,
        message: &NatsDelivery<'_>,
        status: Option<u16>,
        out: &mut Vec<u8>,
        heard: &mut dyn FnMut(SessionEvent<'_>),
    ) -> Result<(), SessionError> {
        if status == Some(NO_RESPONDERS) {
            if self.is_back {
                // It is asked again at the next check.
                return Ok(());
            }
            let text = "the server has no JetStream, or its leader is away: start it with -js, or write qos = 0";
            return Err(SessionError::Busy(text.into()));
        }
        let answer: Value = serde_json::from_slice(message.payload)
            .map_err(|why| SessionError::Foreign(format!("the server's answer is not JSON: {why}")))?;
        // One request may have several answers: it was repeated, or others asked a cluster for the same stream meanwhile.
        if answer["type"].as_str().is_some_and(|kind| !kind.ends_with(self.asked.answer())) {
            return Ok(());
        }
        let asked = std::mem::replace(&mut self.asked, Asked::Nothing);
        if let Some(error) = answer.get("error") {
            let is_gone = error["err_code"].as_u64().is_some_and(|code| NOT_FOUND.contains(&code));
            if !(asked == Asked::Removal && is_gone) {
                let error = api_error(asked, error);
                if self.is_back && matches!(error, SessionError::Busy(_)) {
                    self.asked = asked;
                    return Ok(());
                }
                return Err(error);
            }
        }
        match asked {
            Asked::Stream => {
                out.extend_from_slice(&self.next);
                self.asked = Asked::Consumer;
            }
            Asked::Consumer => {
                self.next = Vec::new();
                self.pull(settings, out);
                if !self.is_back {
                    heard(SessionEvent::Subscribed);
                }
            }
            Asked::Removal => heard(SessionEvent::Acknowledged(0)),
            Asked::Nothing => {}
        }
        Ok(())
    }

    /// Handles an acknowledgement, or a refusal, of the message with this number.
    fn acknowledged(
        &mut self,
        token: &[u8],
        message: &NatsDelivery<'_>,
        status: Option<u16>,
        heard: &mut dyn FnMut(SessionEvent<'_>),
    ) -> Result<(), SessionError> {
        let number = str::from_utf8(token).ok().and_then(|token| token.parse().ok()).unwrap_or(0);
        let error = match status {
            Some(NO_RESPONDERS) => Some(NO_STREAM.to_owned()),
            _ => refusal(message.payload)?,
        };
        let kind = |words: &str| match status {
            Some(NO_RESPONDERS) => RefusalKind::Unsettled,
            _ => RefusalKind::limit_or_final(words.contains("exceeded") || words.contains("insufficient")),
        };
        let known = self.confirms.settle(number, false, |sequence| {
            heard(match &error {
                None => SessionEvent::Acknowledged(sequence),
                Some(words) => SessionEvent::Refused(sequence, MessageRefusal { code: None, words, kind: kind(words) }),
            });
        });
        let unknown = || SessionError::Foreign("the server acknowledges what was never published".into());
        known.then_some(()).ok_or_else(unknown)
    }

    /// Handles a status in place of messages.
    fn status(
        &mut self,
        settings: &JetStreamSettings,
        status: u16,
        message: &NatsDelivery<'_>,
        out: &mut Vec<u8>,
        heard: &mut dyn FnMut(SessionEvent<'_>),
    ) -> Result<(), SessionError> {
        if status == HEARTBEAT {
            return Ok(());
        }
        let text = String::from_utf8_lossy(headers::status_text(message.headers));
        let said = || format!("the server ends the subscription: {status} {text}");
        if text.contains("Exceeded") {
            return Err(SessionError::Limit(said()));
        }
        if status == NO_RESPONDERS && self.asked != Asked::Nothing {
            // The consumer is being made again.
            self.wanted = 0;
            return Ok(());
        }
        if status == NO_RESPONDERS && !self.has_received {
            // A member of a cluster may not know of the consumer yet.
            self.wanted = 0;
            heard(SessionEvent::Rest(self.untaken));
            self.untaken = self.untaken.saturating_add(1);
            return Ok(());
        }
        if status == NO_RESPONDERS || text.contains("Deleted") || text.contains("push based") {
            return Err(SessionError::Busy(said()));
        }
        // A request has expired, or a new leader has forgotten it.
        let unused = headers::number(message.headers, b"Nats-Pending-Messages").unwrap_or(u64::MAX);
        self.wanted = self.wanted.saturating_sub(unused);
        self.pull(settings, out);
        Ok(())
    }

    /// Asks again for messages, and for what has no answer, if the server has been silent: a leader that failed takes
    /// requests with it, and the next one does not know of them. A cluster whose members do not know each other's
    /// streams yet may drop a request as well.
    pub fn check(&mut self, settings: &JetStreamSettings, out: &mut Vec<u8>) {
        let is_silent = !std::mem::replace(&mut self.is_served, false);
        if self.is_back || is_silent {
            match self.asked {
                Asked::Stream => self.create(settings, out),
                Asked::Consumer => out.extend_from_slice(&self.next),
                Asked::Nothing | Asked::Removal => {}
            }
        }
        if is_silent && self.wanted > 0 {
            self.wanted = 0;
            self.pull(settings, out);
        }
    }

    /// Asks for more messages if half of them or more have arrived.
    pub fn pull(&mut self, settings: &JetStreamSettings, out: &mut Vec<u8>) {
        if settings.batch == 0 || self.wanted > settings.batch / 2 {
            return;
        }
        let batch = settings.batch;
        let body = format!("{{\"batch\":{batch},\"expires\":{EXPIRES_NS},\"idle_heartbeat\":{HEARTBEAT_NS}}}");
        let subject = format!("$JS.API.CONSUMER.MSG.NEXT.{}.{}", settings.stream, self.consumer);
        let reply = Some(self.inbox(PULLED.as_bytes()));
        FromClient::Publish { subject: subject.as_bytes(), reply, headers: &[], payload: body.as_bytes() }.put(out);
        self.wanted += settings.batch;
    }

    fn request(&mut self, subject: &str, body: &[u8], out: &mut Vec<u8>) {
        let reply = Some(self.inbox(API.as_bytes()));
        FromClient::Publish { subject: subject.as_bytes(), reply, headers: &[], payload: body }.put(out);
    }

    /// Returns a subject of this connection.
    fn inbox(&mut self, token: &[u8]) -> &[u8] {
        self.inbox.truncate(self.inbox_bytes);
        self.inbox.extend_from_slice(token);
        &self.inbox
    }
}

/// Returns the name of a client's consumer, which it shares with its group. One that replays is not the one before it.
fn consumer(spec: &ClientSpec) -> Box<str> {
    let name = spec.group.as_deref().unwrap_or(&spec.name);
    if spec.replays { format!("{name}r").into() } else { name.into() }
}

/// A message as it arrives.
pub struct NatsDelivery<'a> {
    pub subject: &'a [u8],
    pub reply: Option<&'a [u8]>,
    pub headers: &'a [u8],
    pub payload: &'a [u8],
}

/// Returns the error in the answer to a message, if there is one.
fn refusal(payload: &[u8]) -> Result<Option<String>, SessionError> {
    // Acknowledgements are many, and the same: `{"stream":"S","seq":1}`.
    let names = |name: &[u8]| payload.windows(name.len()).any(|window| window == name);
    if !names(b"\"error\"") {
        let foreign = || SessionError::Foreign("an acknowledgement has no sequence".into());
        return names(b"\"seq\"").then_some(None).ok_or_else(foreign);
    }
    let answer: Value = serde_json::from_slice(payload)
        .map_err(|why| SessionError::Foreign(format!("an acknowledgement is not JSON: {why}")))?;
    let error = &answer["error"];
    let text = |name: &str| error[name].to_string().trim_matches('"').to_owned();
    Ok((!error.is_null()).then(|| format!("{} ({})", text("description"), text("err_code"))))
}

/// Makes the error for one of the API.
fn api_error(asked: Asked, error: &Value) -> SessionError {
    let words = error["description"].as_str().unwrap_or("without a description");
    let what = match asked {
        Asked::Stream => "the stream",
        Asked::Consumer => "the consumer",
        Asked::Removal | Asked::Nothing => "the request",
    };
    let said = format!("the server refuses {what}: {words} ({})", error["err_code"]);
    match error["code"].as_u64() {
        _ if words.contains("insufficient") || words.contains("exceeded") || words.contains("maximum") => {
            SessionError::Limit(said)
        }
        Some(503) if words.contains("not enabled") => SessionError::Denied(said),
        Some(503 | 408) => SessionError::Busy(said),
        _ => SessionError::Denied(said),
    }
}

/// Returns what a client of this role leaves: the stream is of all, so one role is enough.
pub fn leaves(settings: Option<&JetStreamSettings>, spec: &ClientSpec) -> Vec<Leftover> {
    let stream = settings.filter(|_| spec.role == Role::Subscriber).map(JetStreamSettings::leaves);
    stream.into_iter().collect()
}

#[cfg(test)]
mod tests;
