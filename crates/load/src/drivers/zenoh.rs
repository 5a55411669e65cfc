//! Zenoh: a session in mode client at a router.
//!
//! A client declares its key once, and its messages name the number. Messages that are due together travel in one
//! frame.
//!
//! A busy router may give up on a session after it has confirmed it (`accept_timeout`), and leave the connection open.
//! So a client asks for liveliness tokens that nobody declares: the end of the answer says that the router has handled
//! everything before the question. A client asks once before it counts as connected, and again after it has subscribed.

mod arriving;

use super::foreign_peer::foreign;
use super::topic_writer::TopicWriter;
use crate::session::{ClientSettings, ClientSpec, Session, SessionError, SessionEvent, SettingsError};
use crate::topics::{self, PrefixRules};
use arriving::{Fragments, KeyTable};
use pubmark_model::options::OptionValues;
use pubmark_wire::Malformed;
use pubmark_wire::zenoh::{
    BatchReader, DATA_PRIORITY, DEFAULT_RESOLUTION, DO_NOT_DROP, Declaration, EXPRESS, FrameChannel, INVALID_REASON,
    InitTerms, InterestMode, KeyExpr, LIMIT_REASONS, MAX_BATCH_BYTES, MAX_ID_BYTES, NetworkItem, NodeKind, PATCH,
    TransportItem, VERSION, close_reason,
};
use std::hash::{BuildHasher, Hasher, RandomState};

/// Number of a session's only declared key and subscription.
const ONLY: u16 = 1;
/// Key of tokens that nobody declares, and the numbers of the questions for them.
const NO_TOKENS: &[u8] = b"pubmark/ready";
const IS_CONNECTED: u32 = 1;
const IS_SUBSCRIBED: u32 = 2;
/// Silence after which the router takes a client for dead, s.
const LEASE_S: u32 = 60;
/// Smallest batch of a router that is accepted, bytes: it has room for the longest key.
const MIN_BATCH_BYTES: u16 = 2 << 10;
/// Forbidden are the special characters of key expressions. Chunks with an `@` belong to the system.
const PREFIX: PrefixRules = PrefixRules { what: "a key", forbidden: "*$?#@", first: "/", most_bytes: 1_024 };

/// The settings of all clients.
pub struct ZenohSettings {
    /// Priority of a message, with its flags.
    qos: u8,
    reliable: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// InitSyn is sent.
    Greeting,
    /// OpenSyn is sent.
    Opening,
    /// The session is open, and the first question is sent.
    Asking,
    Open,
}

/// One client.
pub struct Zenoh {
    state: State,
    channel: FrameChannel,
    batch_bytes: u16,
    /// True if fragments have marks.
    marked: bool,
    publishes: bool,
    topics: TopicWriter,
    fragments: Fragments,
    /// Keys by number; `None` if nobody reads the topics.
    keys: Option<Box<KeyTable>>,
}

impl Session for Zenoh {
    type Settings = ZenohSettings;

    const SEPARATOR: char = '/';
    const REST: &'static str = "**";
    const HINT: &'static str = "it may not be a Zenoh router with TCP, or it may accept no more sessions";

    fn settings(terms: &ClientSettings<'_>) -> Result<ZenohSettings, SettingsError> {
        if terms.qos > 0 {
            return Err(
                format!("Zenoh acknowledges nothing: qos = {} is not supported, write qos = 0", terms.qos).into()
            );
        }
        if terms.durable {
            return Err("Zenoh keeps nothing for those that are away: leave `durable` out".into());
        }
        if terms.answer_ns.is_some() {
            return Err("requests are not supported: Zenoh has queries, which pubmark does not send".into());
        }
        let (endpoint, options) = (terms.endpoint, terms.options);
        let login = [endpoint.user.as_deref(), options.text("username"), options.text("password")];
        if login.into_iter().flatten().any(|text| !text.is_empty()) {
            return Err("user and password are not supported for Zenoh: leave them out".into());
        }
        let prefix = options.text("prefix").unwrap_or_default();
        topics::check_prefix(prefix, &PREFIX)?;
        if prefix.contains("//") {
            return Err(
                format!("prefix: `{prefix}` has an empty chunk: write names with one slash between them").into()
            );
        }
        let waits = match options.text("congestion") {
            None | Some("block") => DO_NOT_DROP,
            Some("drop") => 0,
            Some(other) => return Err(format!("congestion is `{other}`: write block or drop").into()),
        };
        let reliable = match options.text("reliability") {
            None | Some("reliable") => true,
            Some("best-effort") => false,
            Some(other) => return Err(format!("reliability is `{other}`: write reliable or best-effort").into()),
        };
        let express = if options.flag("express") { EXPRESS } else { 0 };
        Ok(ZenohSettings { qos: DATA_PRIORITY | waits | express, reliable })
    }

    fn new(settings: &ZenohSettings, spec: &ClientSpec) -> Self {
        Zenoh {
            state: State::Greeting,
            channel: FrameChannel::new(settings.reliable, DEFAULT_RESOLUTION),
            batch_bytes: MAX_BATCH_BYTES,
            marked: false,
            publishes: spec.role.sends(),
            topics: TopicWriter::new(spec, Self::SEPARATOR),
            fragments: Fragments::default(),
            keys: spec.wild.then(|| Box::new(KeyTable::new(&spec.topic))),
        }
    }

    fn open(&mut self, _: &ZenohSettings, _: &ClientSpec, out: &mut Vec<u8>) {
        let id = unique_id();
        let terms = InitTerms {
            version: VERSION,
            kind: NodeKind::Client,
            id: &id,
            resolution: DEFAULT_RESOLUTION,
            batch_bytes: MAX_BATCH_BYTES,
            patch: PATCH,
        };
        TransportItem::InitSyn(terms).put(out);
    }

    fn input(
        &mut self,
        settings: &ZenohSettings,
        bytes: &[u8],
        out: &mut Vec<u8>,
        heard: &mut dyn FnMut(SessionEvent<'_>),
    ) -> Result<usize, SessionError> {
        let mut taken = 0;
        loop {
            let rest = &bytes[taken..];
            let malformed = |why: Malformed| foreign("Zenoh 1", rest, &why.0);
            let Some((mut batch, batch_bytes)) = BatchReader::decode(rest).map_err(malformed)? else {
                return Ok(taken);
            };
            while let Some(item) = batch.next_item().map_err(malformed)? {
                match item {
                    TransportItem::Network(item) if self.is_open() => self.hear(item, heard)?,
                    TransportItem::Fragment { reliable, number, first, more, dropped, part } => {
                        let begins = if self.marked { first } else { self.fragments.is_empty() };
                        let whole = self.fragments.add((reliable, number), begins, more && !dropped, part);
                        if let Some(message) = whole.filter(|_| !dropped) {
                            let item = NetworkItem::decode(&message).map_err(malformed)?;
                            self.hear(item, heard)?;
                            self.fragments.give_back(message);
                        }
                    }
                    TransportItem::Frame { .. } | TransportItem::KeepAlive | TransportItem::Administration => {}
                    item => self.shake_hands(settings, &item, out)?,
                }
            }
            taken += batch_bytes;
        }
    }

    fn announced(&self, rest: &[u8]) -> u64 {
        BatchReader::announced(rest) + self.fragments.bytes()
    }

    fn subscribe(&mut self, _: &ZenohSettings, spec: &ClientSpec, out: &mut Vec<u8>) {
        if spec.hears_count() == 1 {
            let declare = |declaration| NetworkItem::Declare(None, declaration);
            let key = KeyExpr::text(spec.topic.as_bytes());
            self.channel.put_frame(&declare(Declaration::Key(ONLY, key)), out);
            self.channel.put_frame(&declare(Declaration::Subscriber(u32::from(ONLY), KeyExpr::declared(ONLY))), out);
        } else {
            for (number, topic) in (1..).zip(spec.hears(Self::SEPARATOR)) {
                let key = KeyExpr::text(topic.as_bytes());
                let declaration = Declaration::Subscriber(number, key);
                self.channel.put_frame(&NetworkItem::Declare(None, declaration), out);
            }
        }
        self.ask(IS_SUBSCRIBED, out);
    }

    fn publish(&mut self, settings: &ZenohSettings, message: &[u8], sequence: u32, out: &mut Vec<u8>) -> bool {
        let key = match self.topics.is_one() {
            true => KeyExpr::declared(ONLY),
            false => KeyExpr::text(self.topics.of(sequence).as_bytes()),
        };
        self.channel.put_push(out, key, settings.qos, message, self.batch_bytes);
        true
    }

    fn keep_alive(&mut self, _: &ZenohSettings, out: &mut Vec<u8>) {
        TransportItem::KeepAlive.put(out);
    }

    fn keep_alive_s(_: &ZenohSettings) -> u32 {
        LEASE_S
    }

    fn close(&mut self, _: &ZenohSettings, _: &ClientSpec, out: &mut Vec<u8>) {
        TransportItem::Close(0).put(out);
    }

    fn unacknowledged(&self) -> usize {
        0
    }
}

impl Zenoh {
    fn is_open(&self) -> bool {
        matches!(self.state, State::Asking | State::Open)
    }

    /// Asks whether everything before the question is handled.
    fn ask(&mut self, number: u32, out: &mut Vec<u8>) {
        let key = Some(KeyExpr::text(NO_TOKENS));
        self.channel.put_frame(&NetworkItem::Interest { number, mode: InterestMode::Current, key }, out);
    }

    /// Handles a message of the handshake, or the end of the session.
    fn shake_hands(
        &mut self,
        settings: &ZenohSettings,
        item: &TransportItem<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), SessionError> {
        match *item {
            TransportItem::InitAck(terms, cookie) if self.state == State::Greeting => {
                self.agree(settings, &terms)?;
                TransportItem::OpenSyn { lease_ms: u64::from(LEASE_S) * 1_000, first: 0, cookie }.put(out);
                self.state = State::Opening;
            }
            TransportItem::OpenAck { .. } if self.state == State::Opening => {
                self.state = State::Asking;
                if self.publishes && self.topics.is_one() {
                    let key = Declaration::Key(ONLY, KeyExpr::text(self.topics.of(0).as_bytes()));
                    self.channel.put_frame(&NetworkItem::Declare(None, key), out);
                }
                self.ask(IS_CONNECTED, out);
            }
            TransportItem::Close(reason) => return Err(self.refusal(reason)),
            ref other => {
                let text = format!("the router sent {other:?} in state {:?}", self.state);
                return Err(SessionError::Foreign(text.chars().take(120).collect()));
            }
        }
        Ok(())
    }

    /// Takes over the router's terms.
    fn agree(&mut self, settings: &ZenohSettings, terms: &InitTerms<'_>) -> Result<(), SessionError> {
        if terms.version != VERSION {
            let text = format!("the router speaks version {} of the protocol, and pubmark {VERSION}", terms.version);
            return Err(SessionError::Foreign(text));
        }
        if terms.batch_bytes < MIN_BATCH_BYTES {
            return Err(SessionError::Denied(format!(
                "the router takes batches of {} bytes: set its transport/link/tx/batch_size to {MIN_BATCH_BYTES} or \
                 more",
                terms.batch_bytes
            )));
        }
        self.batch_bytes = terms.batch_bytes;
        self.marked = terms.patch >= PATCH;
        self.channel = FrameChannel::new(settings.reliable, terms.resolution);
        Ok(())
    }

    fn hear(&mut self, item: NetworkItem<'_>, heard: &mut dyn FnMut(SessionEvent<'_>)) -> Result<(), SessionError> {
        match item {
            NetworkItem::Put { key, payload } => {
                let topic = self.keys.as_mut().map_or(&b""[..], |keys| keys.topic(&key));
                heard(SessionEvent::Message { topic, payload, is_retained: false });
            }
            NetworkItem::Declare(Some(IS_CONNECTED), Declaration::Final) if self.state == State::Asking => {
                self.state = State::Open;
                heard(SessionEvent::Connected);
            }
            NetworkItem::Declare(Some(IS_SUBSCRIBED), Declaration::Final) => heard(SessionEvent::Subscribed),
            NetworkItem::Declare(_, declaration) => {
                if let Some(keys) = &mut self.keys {
                    keys.declared(&declaration).map_err(SessionError::Foreign)?;
                }
            }
            NetworkItem::Delete(_) | NetworkItem::Interest { .. } | NetworkItem::Administration => {}
        }
        Ok(())
    }

    fn refusal(&self, reason: u8) -> SessionError {
        let words = close_reason(reason);
        let said = format!("the router closed the session ({words})");
        if LIMIT_REASONS.contains(&reason) {
            SessionError::Limit(format!("{said}: raise its transport/unicast/max_sessions"))
        } else if reason == INVALID_REASON && !self.is_open() {
            SessionError::Denied(format!("{said}: it may speak another version, or demand a login"))
        } else {
            SessionError::Busy(said)
        }
    }
}

/// Returns an identifier that no other session has: a router takes a second session of the same identifier for another
/// link of the first, and knows a session for some time after its connection has ended.
fn unique_id() -> [u8; MAX_ID_BYTES] {
    // The standard library's keys come from the system's random numbers.
    let random = || RandomState::new().build_hasher().finish();
    let mut id = (u128::from(random()) << 64 | u128::from(random())).to_le_bytes();
    // The highest byte tells the length.
    id[MAX_ID_BYTES - 1] |= 1;
    id
}

#[cfg(test)]
mod tests;
