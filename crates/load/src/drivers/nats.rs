//! NATS: a session of the client protocol, with core NATS at QoS 0 and JetStream at QoS 1.
//!
//! The server speaks first. Subscribers and publishers send a PING after their commands;
//! its PONG confirms that the commands were processed.

mod jetstream;
mod login;

use super::foreign_peer::foreign;
use super::option_file::Logins;
use super::request_part::RequestPart;
use super::topic_writer::TopicWriter;
use crate::session::{ClientSettings, ClientSpec, Copies, Session, SessionError, SessionEvent, SettingsError};
use crate::topics::{self, PrefixRules};
use jetstream::{JetStream, JetStreamSettings, NatsDelivery};
use login::Signer;
use pubmark_model::leftovers::Leftover;
use pubmark_model::options::OptionValues;
use pubmark_wire::nats::{FromClient, FromServer, headers};
use serde_json::{Map, Value, json};

/// A line of the protocol has 4,096 bytes at most. Subjects with a dollar belong to the system.
const PREFIX: PrefixRules = PrefixRules { what: "a subject", forbidden: "*> ", first: "$", most_bytes: 1_024 };

/// The settings of all clients.
pub struct NatsSettings {
    /// Common fields of every CONNECT; each client adds its name.
    connect: Value,
    /// Signs the server's nonce, if the client logs in with a key.
    signer: Option<Signer>,
    /// Users and passwords of single clients.
    logins: Option<Logins>,
    tls: bool,
    payload_bytes: u64,
    /// At QoS 1.
    jetstream: Option<JetStreamSettings>,
    /// Headers of each message as they are sent; empty if there are none.
    headers: Vec<u8>,
}

enum State {
    /// INFO has not arrived yet.
    Silent,
    /// CONNECT and PING are sent.
    Greeted,
    Connected,
}

/// One client.
pub struct Nats {
    state: State,
    /// PINGs whose PONG has not arrived yet.
    unanswered: u16,
    /// PONGs until the subscription is active; 0 if none is requested.
    until_subscribed: u16,
    name: Box<str>,
    /// Its line of `credentials_file`.
    row: u32,
    publishes: bool,
    topics: TopicWriter,
    part: RequestPart,
    jetstream: Option<Box<JetStream>>,
    /// True if the server accepts signatures of clients.
    takes_signatures: bool,
}

impl Session for Nats {
    type Settings = NatsSettings;

    const SEPARATOR: char = jetstream::SEPARATOR;
    const REST: &'static str = ">";
    /// Users with few permissions usually have this one.
    const INBOX: &'static str = "_INBOX.";
    const HINT: &'static str =
        "it may not be a NATS server, or it may expect TLS at once (tls:// with options.tls_first=true)";
    const TLS_AFTER_FIRST_LINE: bool = true;

    fn settings(terms: &ClientSettings<'_>) -> Result<NatsSettings, SettingsError> {
        if terms.durable && terms.qos == 0 {
            return Err("NATS core keeps nothing for those that are away: leave `durable` out, or write qos = 1".into());
        }
        let jetstream = if terms.qos > 0 { Some(JetStreamSettings::read(terms)?) } else { None };
        let (endpoint, options) = (terms.endpoint, terms.options);
        let tls = endpoint.carrier.is_tls();
        let mut connect = json!({
            "verbose": false, "pedantic": false, "tls_required": tls, "headers": true, "no_responders": jetstream.is_some(),
            "echo": true, "protocol": 1, "lang": "rust", "version": env!("CARGO_PKG_VERSION"),
        });
        let signer = login::read(endpoint, options, &mut connect)?;
        let prefix = options.text("prefix").unwrap_or_default();
        topics::check_prefix(prefix, &PREFIX)?;
        if prefix.starts_with('.') || prefix.contains("..") {
            return Err(format!("prefix: `{prefix}` has an empty token: write names with one dot between them").into());
        }
        let logins = Logins::of(terms)?;
        if logins.is_some() && (signer.is_some() || connect.get("auth_token").is_some()) {
            return Err("both `credentials_file` and a token or key for all clients are given: write either".into());
        }
        let headers = terms.headers.map_or_else(Vec::new, |headers| headers::block(headers.list()));
        Ok(NatsSettings { connect, signer, logins, tls, payload_bytes: terms.payload_bytes, headers, jetstream })
    }

    fn new(settings: &NatsSettings, spec: &ClientSpec) -> Self {
        Nats {
            state: State::Silent,
            unanswered: 0,
            until_subscribed: 0,
            name: spec.name.as_str().into(),
            row: spec.row,
            publishes: spec.role.sends(),
            topics: TopicWriter::new(spec, Self::SEPARATOR),
            part: RequestPart::of(spec),
            jetstream: settings.jetstream.as_ref().map(|_| Box::new(JetStream::new(spec))),
            takes_signatures: false,
        }
    }

    fn open(&mut self, _: &NatsSettings, _: &ClientSpec, _: &mut Vec<u8>) {}

    fn resume(&mut self, settings: &NatsSettings, spec: &ClientSpec) {
        let earlier = std::mem::replace(self, Self::new(settings, spec));
        self.jetstream = earlier.jetstream.map(|jetstream| Box::new(jetstream.resumed(spec)));
    }

    fn resend(&mut self, settings: &NatsSettings, copies: &mut dyn Copies, out: &mut Vec<u8>) -> bool {
        let next = self.jetstream.as_mut().and_then(|jetstream| jetstream.next_again());
        next.is_some_and(|sequence| self.publish(settings, copies.message(sequence), sequence, out))
    }

    fn rested(&mut self, settings: &NatsSettings, out: &mut Vec<u8>) -> Result<(), SessionError> {
        if let (Some(jetstream), Some(settings)) = (&mut self.jetstream, &settings.jetstream) {
            jetstream.pull(settings, out);
        }
        Ok(())
    }

    fn input(
        &mut self,
        settings: &NatsSettings,
        bytes: &[u8],
        out: &mut Vec<u8>,
        heard: &mut dyn FnMut(SessionEvent<'_>),
    ) -> Result<usize, SessionError> {
        let mut taken = 0;
        loop {
            let rest = &bytes[taken..];
            let item = FromServer::decode(rest).map_err(|why| foreign("NATS", rest, &why.0))?;
            let Some((item, item_bytes)) = item else { return Ok(taken) };
            match item {
                FromServer::Message { subject, payload, reply, headers, .. } => {
                    if let (Some(jetstream), Some(settings)) = (&mut self.jetstream, &settings.jetstream) {
                        jetstream.heard(settings, &NatsDelivery { subject, reply, headers, payload }, out, heard)?;
                    } else {
                        self.part.asked(reply);
                        heard(SessionEvent::Message { topic: subject, payload, is_retained: false });
                    }
                }
                FromServer::Ping => FromClient::Pong.put(out),
                FromServer::Pong => self.pong(heard),
                FromServer::Info(info) => self.greet(settings, info, out, heard)?,
                FromServer::Ok => {}
                FromServer::Error(text) => {
                    return Err(refusal(&String::from_utf8_lossy(text), self.takes_signatures));
                }
            }
            taken += item_bytes;
        }
    }

    fn announced(&self, rest: &[u8]) -> u64 {
        FromServer::announced(rest)
    }

    fn subscribe(&mut self, settings: &NatsSettings, spec: &ClientSpec, out: &mut Vec<u8>) {
        if let (Some(jetstream), Some(settings)) = (&mut self.jetstream, &settings.jetstream) {
            if !jetstream.subscribe(settings, spec, out) {
                return;
            }
            self.ping(out);
            self.until_subscribed = self.unanswered;
            return;
        }
        let group = spec.group.as_ref().map(String::as_bytes);
        for (number, subject) in (1u32..).zip(spec.hears(Self::SEPARATOR)) {
            let (subject, subscription) = (subject.as_bytes(), number.to_string());
            FromClient::Subscribe { subject, group, subscription: subscription.as_bytes() }.put(out);
        }
        self.ping(out);
        self.until_subscribed = self.unanswered;
    }

    fn publish(&mut self, settings: &NatsSettings, message: &[u8], sequence: u32, out: &mut Vec<u8>) -> bool {
        if let (Some(jetstream), Some(of_stream)) = (&mut self.jetstream, &settings.jetstream) {
            let subject = (self.topics.of(sequence).as_bytes(), sequence);
            return jetstream.publish(of_stream, subject, (&settings.headers, message), out);
        }
        let reply = self.part.reply().map(str::as_bytes);
        let subject = self.part.to().unwrap_or_else(|| self.topics.of(sequence)).as_bytes();
        FromClient::Publish { subject, reply, headers: &settings.headers, payload: message }.put(out);
        true
    }

    /// The end of the line.
    fn tail_bytes(&self, _: &NatsSettings) -> Option<usize> {
        (self.topics.is_one() && self.jetstream.is_none()).then_some(2)
    }

    /// The server itself sends PINGs; who subscribes to a stream looks whether it is still heard.
    fn keep_alive(&mut self, settings: &NatsSettings, out: &mut Vec<u8>) {
        match (&mut self.jetstream, &settings.jetstream) {
            (Some(jetstream), Some(settings)) => jetstream.check(settings, out),
            _ => self.ping(out),
        }
    }

    fn keep_alive_s(settings: &NatsSettings) -> u32 {
        if settings.jetstream.is_some() { jetstream::SILENCE_S } else { 0 }
    }

    /// NATS has no disconnect command: closing the connection removes everything that the client had.
    fn close(&mut self, _: &NatsSettings, _: &ClientSpec, _: &mut Vec<u8>) {}

    fn leaves(settings: &NatsSettings, spec: &ClientSpec) -> Vec<Leftover> {
        jetstream::leaves(settings.jetstream.as_ref(), spec)
    }

    fn remove(&mut self, _: &NatsSettings, thing: &Leftover, _: u32, out: &mut Vec<u8>) -> bool {
        let (Some(jetstream), Leftover::Stream(stream)) = (&mut self.jetstream, thing) else { return false };
        jetstream.remove(stream, out);
        true
    }

    fn unacknowledged(&self) -> usize {
        self.jetstream.as_ref().map_or(0, |jetstream| jetstream.unacknowledged())
    }
}

impl Nats {
    fn ping(&mut self, out: &mut Vec<u8>) {
        FromClient::Ping.put(out);
        self.unanswered += 1;
    }

    fn pong(&mut self, heard: &mut dyn FnMut(SessionEvent<'_>)) {
        self.unanswered = self.unanswered.saturating_sub(1);
        if matches!(self.state, State::Greeted) {
            self.state = State::Connected;
            heard(SessionEvent::Connected);
        } else if self.until_subscribed > 0 {
            self.until_subscribed -= 1;
            if self.until_subscribed == 0 {
                heard(SessionEvent::Subscribed);
            }
        }
    }

    /// Answers the first INFO; later ones report changes in the cluster and have no effect here.
    fn greet(
        &mut self,
        settings: &NatsSettings,
        info: &[u8],
        out: &mut Vec<u8>,
        heard: &mut dyn FnMut(SessionEvent<'_>),
    ) -> Result<(), SessionError> {
        if !matches!(self.state, State::Silent) {
            return Ok(());
        }
        let info: Map<String, Value> =
            serde_json::from_slice(info).map_err(|why| foreign("NATS", info, &format!("INFO: {why}")))?;
        let flag = |name: &str| info.get(name).and_then(Value::as_bool).unwrap_or_default();
        if flag("tls_required") && !settings.tls {
            return Err(SessionError::Denied("the server demands TLS: write tls:// in place of nats://".into()));
        }
        if settings.tls && !flag("tls_required") && !flag("tls_available") {
            return Err(SessionError::Denied("the server offers no TLS: write nats:// in place of tls://".into()));
        }
        if self.publishes && !settings.headers.is_empty() && !flag("headers") {
            return Err(SessionError::Denied("the server takes no headers: leave `headers` out".into()));
        }
        let (most, beside) = (info.get("max_payload").and_then(Value::as_u64), settings.headers.len() as u64);
        let wanted = settings.payload_bytes + beside;
        if let Some(most) = most.filter(|most| self.publishes && wanted > *most) {
            return Err(SessionError::Denied(format!(
                "the server takes payloads of {most} bytes at most, and those of this run have {wanted} with headers: \
                 raise its max_payload, or set a payload of {} bytes",
                most.saturating_sub(beside)
            )));
        }
        let version = info.get("version").and_then(Value::as_str).unwrap_or("of an unknown version");
        heard(SessionEvent::Server(&format!("nats-server {version}")));
        let mut connect = settings.connect.clone();
        connect["name"] = (*self.name).into();
        if let Some((user, password)) = settings.logins.as_ref().and_then(|logins| logins.row(self.row)) {
            (connect["user"], connect["pass"]) = (user.into(), password.into());
        }
        let nonce = info.get("nonce").and_then(Value::as_str);
        self.takes_signatures = nonce.is_some();
        match (&settings.signer, nonce) {
            (None, _) => {}
            (Some(signer), Some(nonce)) => signer.sign(nonce, &mut connect),
            (Some(_), None) => {
                let text = "the server takes no signatures: leave options.nkey and options.creds out";
                return Err(SessionError::Denied(text.into()));
            }
        }
        FromClient::Connect(connect.to_string().as_bytes()).put(out);
        if let Some(jetstream) = &mut self.jetstream {
            jetstream.listen(out);
        }
        self.ping(out);
        self.state = State::Greeted;
        Ok(())
    }
}

/// Makes the error for an -ERR. The texts are those of nats-server, which writes some of
/// them in upper and lower case.
fn refusal(text: &str, takes_signatures: bool) -> SessionError {
    let words = text.to_ascii_lowercase();
    let any = |known: &[&str]| known.iter().any(|known| words.contains(known));
    let said = format!("the server says '{text}'");
    if any(&["authorization", "authentication"]) {
        let files = if takes_signatures { ", or options.nkey, or options.creds" } else { "" };
        SessionError::Denied(format!("{said}: check user, password and token{files}"))
    } else if any(&["maximum payload"]) {
        SessionError::Denied(format!("{said}: raise its max_payload"))
    } else if any(&["permissions violation", "tls required", "revoked", "account", "invalid client"]) {
        SessionError::Denied(said)
    } else if any(&["maximum connections", "maximum subscriptions", "slow consumer"]) {
        SessionError::Limit(said)
    } else if any(&["stale", "shutdown"]) {
        SessionError::Busy(said)
    } else {
        SessionError::Foreign(said)
    }
}

#[cfg(test)]
mod tests;
