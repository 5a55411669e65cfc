//! A client's conversation with a broker, without a socket and without a
//! clock: bytes in, events and bytes out. One file in `drivers/` for each
//! protocol; the event loop in `shard.rs` runs thousands of them.

use pubmark_model::endpoint::Endpoint;
use pubmark_model::leftovers::Leftover;
use pubmark_model::options::Options;
use pubmark_model::protocol::Role;
use std::fmt;

/// What all clients of a run have in common.
pub struct Terms<'a> {
    /// The server, with user and password if it names them.
    pub endpoint: &'a Endpoint,
    /// Quality of service, 0 to 2.
    pub qos: u8,
    /// Whether subscriptions, and what waits for them, outlive connections.
    pub durable: bool,
    /// Whether clients whose connection ends come back with their session.
    pub reconnect: bool,
    /// The run's own name.
    pub run: &'a str,
    /// Length of each message, bytes: a server that takes no such message says so when a publisher connects.
    pub payload_bytes: u64,
    /// All options of the driver.
    pub options: &'a Options,
}

/// What is wrong with the settings of a protocol, and what to write instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SettingsError(String);

impl From<String> for SettingsError {
    fn from(text: String) -> Self {
        SettingsError(text)
    }
}

impl From<&str> for SettingsError {
    fn from(text: &str) -> Self {
        SettingsError(text.to_owned())
    }
}

/// One client as a broker sees it, in words of no protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientSpec {
    /// Publisher or subscriber.
    pub role: Role,
    /// Its number within its role.
    pub id: u32,
    /// Its name at the server: unique, at most 23 of 0-9 and a-z.
    pub name: String,
    /// Where it publishes to, or what it subscribes to (with a wildcard at its
    /// end where `wild`), in the protocol's spelling.
    pub topic: String,
    /// Whether `topic` is a filter that ends in the protocol's wildcard.
    pub wild: bool,
    /// A publisher's topics below `topic`, by number from 0, taken in turn by
    /// sequence; 1 means `topic` itself.
    pub leaves: u32,
    /// The group within which subscribers compete.
    pub group: Option<String>,
}

/// What a session has heard.
#[derive(Debug, PartialEq, Eq)]
pub enum SessionEvent<'a> {
    /// What the server says that it is: name and version. Before `Connected`, if at all.
    Server(&'a str),
    /// The server has accepted the connection; clients may subscribe and publish.
    Connected,
    /// The subscription stands.
    Subscribed,
    /// A message.
    Message(&'a [u8]),
    /// The server has taken responsibility for the message of this sequence
    /// (PUBACK, PUBCOMP, a publisher confirm), or has removed the next thing that it was
    /// asked to remove.
    Acknowledged(u32),
    /// The server has refused the message of this sequence, and says why.
    Refused(u32, MessageRefusal<'a>),
    /// The server takes no more messages of any publisher until `Unblocked`, for this reason.
    Blocked(&'a str),
    /// It takes messages again.
    Unblocked,
}

/// A negative acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageRefusal<'a> {
    /// The code that the server gave, where the protocol has one byte for it.
    pub code: Option<u8>,
    /// The server's own words, or the meaning of its code.
    pub words: &'a str,
    /// Whether a limit of the server was reached: a quota, a full queue, memory.
    pub is_limit: bool,
}

impl fmt::Display for MessageRefusal<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.words)?;
        self.code.map_or(Ok(()), |code| write!(f, " (code 0x{code:02X})"))
    }
}

/// Why a session cannot go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    /// The peer speaks something else, or breaks the protocol.
    #[error("{0}")]
    Foreign(String),
    /// The server said no, and will say so again: a wrong password, no right to do this.
    #[error("{0}")]
    Denied(String),
    /// The server said no for now.
    #[error("{0}")]
    Busy(String),
    /// The server said no because it has reached a limit of its own.
    #[error("{0}")]
    Limit(String),
}

impl SessionError {
    /// Whether another attempt meets the same answer.
    pub fn is_final(&self) -> bool {
        matches!(self, SessionError::Foreign(_) | SessionError::Denied(_))
    }

    /// Whether it names a limit of the server.
    pub fn is_limit(&self) -> bool {
        matches!(self, SessionError::Limit(_))
    }
}

/// Writes messages that were sent before once more, byte for byte.
pub trait Copies {
    /// The message of this sequence, which was sent and is not acknowledged.
    fn message(&mut self, sequence: u32) -> &[u8];
}

/// One client's conversation. Thousands of them live in one shard: an idle one
/// should take a few hundred bytes at most, buffers included.
pub trait Session: Sized + Send {
    /// The protocol's settings, read once for all clients.
    type Settings: Send + Sync;

    /// Separates the levels of a topic: `/` in MQTT, `.` in NATS.
    const SEPARATOR: char;
    /// Stands for all topics below a level: `#` in MQTT, `>` in NATS, `*` in Redis.
    const REST: &'static str;
    /// Where a server ends the connection before it has accepted the client:
    /// what that may mean, and what to try. It follows a semicolon.
    const HINT: &'static str;
    /// Whether, with TLS, the server says its first line in plain text and the
    /// handshake comes after it.
    const TLS_AFTER_FIRST_LINE: bool = false;

    /// Where a server refuses messages without a word: why that may be, and what makes it speak.
    /// It follows what is known.
    fn unsaid(_settings: &Self::Settings) -> &'static str {
        ""
    }

    /// Reads the settings; says what is wrong with them, and what to do.
    fn settings(terms: &Terms<'_>) -> Result<Self::Settings, SettingsError>;

    /// A client that has not connected yet.
    fn new(settings: &Self::Settings, spec: &ClientSpec) -> Self;

    /// The connection stands: appends what the client says first, if it speaks
    /// first. Called again for a new connection, on a new session or after
    /// [`Session::resume`].
    fn open(&mut self, settings: &Self::Settings, spec: &ClientSpec, out: &mut Vec<u8>);

    /// The connection of a client that comes back has ended: what belongs to
    /// the connection is forgotten, and what belongs to the session stays.
    fn resume(&mut self, settings: &Self::Settings, spec: &ClientSpec) {
        *self = Self::new(settings, spec);
    }

    /// After `Connected` on another connection: appends the next word on what
    /// the server owes an acknowledgement for, in the order in which it was
    /// sent. False, with nothing appended, when all is said. Until then nothing
    /// new is published.
    fn resend(&mut self, _settings: &Self::Settings, _copies: &mut dyn Copies, _out: &mut Vec<u8>) -> bool {
        false
    }

    /// Takes what has arrived. Returns how many bytes it is done with; the
    /// rest (the beginning of something longer) comes again with more behind
    /// it. Appends answers to `out`. Must not scan a payload that is not
    /// complete again and again: large messages arrive in many pieces.
    fn input(
        &mut self,
        settings: &Self::Settings,
        bytes: &[u8],
        out: &mut Vec<u8>,
        heard: &mut dyn FnMut(SessionEvent<'_>),
    ) -> Result<usize, SessionError>;

    /// Bytes of the item that is arriving, as far as what has come of it tells; `rest` is
    /// what [`Session::input`] has left. A connection whose server announces more than
    /// any item of the run has is ended before it takes the memory.
    fn announced(&self, rest: &[u8]) -> u64 {
        rest.len() as u64
    }

    /// Asks for the client's subscription; `SessionEvent::Subscribed` tells when it stands.
    fn subscribe(&mut self, settings: &Self::Settings, spec: &ClientSpec, out: &mut Vec<u8>);

    /// Appends a message of the publisher. False, with nothing appended, where
    /// as many are unacknowledged as may be: the next acknowledgement makes room.
    fn publish(&mut self, settings: &Self::Settings, message: &[u8], sequence: u32, out: &mut Vec<u8>) -> bool;

    /// Bytes behind the payload in each frame of this publisher, where its
    /// frames differ in nothing but their payloads, and publishing changes
    /// nothing in the session: then one frame serves as a model for others.
    /// None where there is more to it, as an identifier, or a topic that changes.
    fn tail_bytes(&self, _settings: &Self::Settings) -> Option<usize> {
        None
    }

    /// Appends a sign of life. Called every half [`Session::keep_alive_s`].
    fn keep_alive(&mut self, settings: &Self::Settings, out: &mut Vec<u8>);

    /// How long the server waits for a sign of life, s; 0 if it never ends an
    /// idle connection.
    fn keep_alive_s(settings: &Self::Settings) -> u32;

    /// Appends an orderly disconnect: durable subscriptions are removed.
    fn close(&mut self, settings: &Self::Settings, spec: &ClientSpec, out: &mut Vec<u8>);

    /// What this client makes at the server that outlives its connections.
    fn leaves(_settings: &Self::Settings, _spec: &ClientSpec) -> Vec<Leftover> {
        Vec::new()
    }

    /// Asks the server, after `Connected`, to remove something that a client has left;
    /// [`SessionEvent::Acknowledged`] tells that it is gone, one after the other. Sessions
    /// are removed by the connection itself. `number` counts from 0 on each connection.
    /// False, with nothing appended, where the answers to others have to come first.
    fn remove(&mut self, _settings: &Self::Settings, _thing: &Leftover, _number: u32, _out: &mut Vec<u8>) -> bool {
        false
    }

    /// Messages published and not acknowledged yet (0 where nothing is acknowledged).
    fn unacknowledged(&self) -> usize;
}
