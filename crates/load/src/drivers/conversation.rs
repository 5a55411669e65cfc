//! Test support: a session in conversation with a simulated server, whose bytes arrive
//! whole or in pieces.

use crate::session::{ClientSettings, ClientSpec, Session, SessionError, SessionEvent, SettingsError, SubTopics};
use pubmark_model::endpoint::Endpoint;
use pubmark_model::message_headers::MessageHeaders;
use pubmark_model::options::Options;
use pubmark_model::protocol::Role;
use pubmark_model::wire_protocol::Protocol;

/// An event of the session, for comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeardEvent {
    Server(String),
    Connected,
    Subscribed,
    Message(Vec<u8>),
    Violation(String),
    Part(u32),
    Revoked,
    Assigned(u32),
    Acknowledged(u32),
    /// The message's sequence, and the server's text.
    Refused(u32, String),
    Blocked(String),
    Unblocked,
    Room,
    Rest(u32),
    MemberLost(String),
}

pub fn message(payload: &[u8]) -> HeardEvent {
    HeardEvent::Message(payload.to_vec())
}

pub fn spec(role: Role, topic: &str) -> ClientSpec {
    ClientSpec {
        role,
        id: 0,
        name: "c0".into(),
        topic: topic.into(),
        wild: false,
        leaves: SubTopics::None,
        group: None,
        members: 0,
        replays: false,
        reply: None,
        row: 0,
        last_will: None,
    }
}

/// Returns the default options of a protocol's driver, with these set in addition.
pub fn options(protocol: Protocol, set: &[(&str, &str)]) -> Options {
    let mut options = Options::new();
    for spec in protocol.options() {
        let given = set.iter().find(|(name, _)| *name == spec.name).map(|(_, text)| spec.kind.read(text).unwrap());
        options.extend(given.or(spec.default).map(|value| (spec.name, value)));
    }
    options
}

pub fn settings<S: Session>(
    url: &str,
    qos: u8,
    durable: bool,
    set: &[(&str, &str)],
) -> Result<S::Settings, SettingsError> {
    settings_with::<S>(url, qos, durable, set, None)
}

/// Returns the settings of clients whose messages have these headers.
pub fn settings_with<S: Session>(
    url: &str,
    qos: u8,
    durable: bool,
    set: &[(&str, &str)],
    headers: Option<&str>,
) -> Result<S::Settings, SettingsError> {
    let headers = headers.map(|text| MessageHeaders::parse(text).unwrap());
    let endpoint = Endpoint::parse(url).unwrap();
    let mut options = options(endpoint.protocol, set);
    options.extend(endpoint.options.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
    S::settings(&ClientSettings {
        endpoint: &endpoint,
        qos,
        durable,
        reconnect: false,
        answer_ns: None,
        run: "r",
        seed: 7,
        payload_bytes: 1_024,
        headers: headers.as_ref(),
        options: &options,
        clients: 1,
    })
}

/// A session, its events, and the bytes that it has not consumed yet.
pub struct Conversation<'a, S: Session> {
    pub settings: &'a S::Settings,
    pub spec: ClientSpec,
    pub session: S,
    pub out: Vec<u8>,
    pub notes: Vec<HeardEvent>,
    pending: Vec<u8>,
}

impl<'a, S: Session> Conversation<'a, S> {
    pub fn new(settings: &'a S::Settings, spec: ClientSpec) -> Self {
        let mut session = S::new(settings, &spec);
        let mut out = Vec::new();
        session.open(settings, &spec, &mut out);
        Conversation { settings, spec, session, out, notes: Vec::new(), pending: Vec::new() }
    }

    /// Passes bytes of the server to the session.
    pub fn say(&mut self, bytes: &[u8]) -> Result<(), SessionError> {
        self.pending.extend_from_slice(bytes);
        let notes = &mut self.notes;
        let taken = self.session.input(self.settings, &self.pending, &mut self.out, &mut |heard| {
            notes.push(match heard {
                SessionEvent::Server(text) => HeardEvent::Server(text.into()),
                SessionEvent::Connected => HeardEvent::Connected,
                SessionEvent::Subscribed => HeardEvent::Subscribed,
                SessionEvent::Message { payload, .. } => HeardEvent::Message(payload.to_vec()),
                SessionEvent::Violation(statement) => HeardEvent::Violation(statement.to_owned()),
                SessionEvent::Part(part) => HeardEvent::Part(part),
                SessionEvent::Revoked => HeardEvent::Revoked,
                SessionEvent::Assigned(generation) => HeardEvent::Assigned(generation),
                SessionEvent::Acknowledged(sequence) => HeardEvent::Acknowledged(sequence),
                SessionEvent::Refused(sequence, refusal) => HeardEvent::Refused(sequence, refusal.to_string()),
                SessionEvent::Blocked(reason) => HeardEvent::Blocked(reason.into()),
                SessionEvent::Unblocked => HeardEvent::Unblocked,
                SessionEvent::Room => HeardEvent::Room,
                SessionEvent::Rest(failed) => HeardEvent::Rest(failed),
                SessionEvent::MemberLost(member) => HeardEvent::MemberLost(member.into()),
            });
        })?;
        assert!(taken <= self.pending.len(), "more was taken than there was");
        self.pending.drain(..taken);
        Ok(())
    }

    /// Passes bytes of the server to the session in two pieces, cut at `cut`.
    pub fn say_cut(&mut self, bytes: &[u8], cut: usize) -> Result<(), SessionError> {
        let (first, second) = bytes.split_at(cut.min(bytes.len()));
        self.say(first)?;
        self.say(second)
    }

    pub fn subscribe(&mut self) {
        self.session.subscribe(self.settings, &self.spec, &mut self.out);
    }

    pub fn publish(&mut self, message: &[u8], sequence: u32) -> bool {
        self.session.publish(self.settings, message, sequence, &mut self.out)
    }

    /// Returns the bytes that the session has sent since the last call.
    pub fn said(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }

    /// Returns the events of the session since the last call.
    pub fn heard(&mut self) -> Vec<HeardEvent> {
        std::mem::take(&mut self.notes)
    }

    pub fn all_taken(&self) -> bool {
        self.pending.is_empty()
    }
}
