//! A client's conversation with a broker, without socket or clock: bytes in, events and
//! bytes out. Each protocol has one file in `drivers/`; the event loop in `shard.rs` runs
//! thousands of sessions.

use pubmark_model::draw::PublisherDraw;
use pubmark_model::endpoint::Endpoint;
use pubmark_model::leftovers::Leftover;
use pubmark_model::message_headers::MessageHeaders;
use pubmark_model::options::Options;
use pubmark_model::protocol::Role;
use pubmark_model::units::Ns;
use std::borrow::Cow;
use std::fmt;
use std::iter::StepBy;
use std::net::SocketAddr;
use std::ops::Range;

/// Settings that all clients of a run share.
pub struct ClientSettings<'a> {
    /// The server, with user and password if the endpoint has them.
    pub endpoint: &'a Endpoint,
    /// Quality of service, 0 to 2.
    pub qos: u8,
    /// True if subscriptions, and messages that wait for them, outlive connections.
    pub durable: bool,
    /// True if clients whose connection ends reconnect and resume their session.
    pub reconnect: bool,
    /// How long a requester waits for an answer, ns; `None` if messages are no requests.
    pub answer_ns: Option<Ns>,
    /// Name of the run.
    pub run: &'a str,
    /// Seed of what is drawn for messages.
    pub seed: u64,
    /// Length of each message, bytes. If the server does not take messages of this length, the session fails
    /// when a publisher connects.
    pub payload_bytes: u64,
    /// Headers of each message.
    pub headers: Option<&'a MessageHeaders>,
    /// All options of the driver.
    pub options: &'a Options,
    /// Number of clients that need a line of `credentials_file`.
    pub clients: usize,
}

/// An error in the settings of a protocol, with advice.
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

/// One client as a broker sees it, independent of the protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientSpec {
    /// Publisher or subscriber.
    pub role: Role,
    /// Number of the client within its role.
    pub id: u32,
    /// Name at the server: unique, at most 23 characters of 0-9 and a-z.
    pub name: String,
    /// Topic to publish to or to subscribe to, in the protocol's spelling; a subscriber's has a
    /// wildcard at its end if `wild`. Empty if the client only removes things.
    pub topic: String,
    /// True if subscribers subscribe with the protocol's wildcard.
    pub wild: bool,
    /// Topics below `topic`.
    pub leaves: SubTopics,
    /// Group within which subscribers compete.
    pub group: Option<String>,
    /// Number of subscribers in the group; 0 without one.
    pub members: u32,
    /// True of a subscriber that is a new consumer of a stream, after one of the same number, and reads it from the
    /// beginning.
    pub replays: bool,
    /// Topic for answers, if messages are requests.
    pub reply: Option<String>,
    /// Its line of `credentials_file`, from 0: those of publishers come first.
    pub row: u32,
    /// Number of its connection, if it leaves a last will with the server.
    pub last_will: Option<u32>,
}

impl ClientSpec {
    /// Returns the topics that the client subscribes to, at least one: a requester to that of its answers. Topics have
    /// levels that `separator` separates.
    pub fn hears(&self, separator: char) -> impl Iterator<Item = Cow<'_, str>> {
        let below = move |name: &dyn fmt::Display| Cow::Owned(format!("{}{separator}{name}", self.topic));
        let (share, one) = match self.leaves {
            SubTopics::Share(share) => (Some(share), None),
            _ => (None, Some(self.reply.as_ref().filter(|_| self.role == Role::Requester).unwrap_or(&self.topic))),
        };
        let markers = share.map(|_| below(&MARKERS));
        let numbers = share.into_iter().flat_map(TopicShare::numbers).map(move |number| below(&number));
        one.map(|topic| Cow::Borrowed(topic.as_str())).into_iter().chain(markers).chain(numbers)
    }

    /// Returns the topics to which a publisher publishes. If several have the same, only one of them returns any.
    pub fn published(&self, separator: char) -> Vec<String> {
        let (count, markers) = match &self.leaves {
            SubTopics::Turns(count) => (*count, None),
            SubTopics::Drawn { draw, is_first: true } => (draw.count(), Some(MARKERS.to_owned())),
            SubTopics::Drawn { is_first: false, .. } => return Vec::new(),
            SubTopics::None | SubTopics::Share(_) => return vec![self.topic.clone()],
        };
        let leaves = (0..count).map(|number| number.to_string()).chain(markers);
        leaves.map(|leaf| format!("{}{separator}{leaf}", self.topic)).collect()
    }

    /// Returns the length of the longest topic to which it publishes, bytes.
    pub fn longest_bytes(&self) -> usize {
        let digits = |count: u32| count.saturating_sub(1).to_string().len();
        let leaf_bytes = match &self.leaves {
            SubTopics::Turns(count) => 1 + digits(*count),
            SubTopics::Drawn { draw, .. } => 1 + digits(draw.count()).max(MARKERS.len()),
            SubTopics::None | SubTopics::Share(_) => 0,
        };
        self.topic.len() + leaf_bytes
    }

    /// Returns the number of topics that the client subscribes to.
    pub fn hears_count(&self) -> u32 {
        if let SubTopics::Share(share) = self.leaves { 1 + share.numbers().len() as u32 } else { 1 }
    }
}

/// The topic below a publisher's to which it sends probes and end markers, if it draws the topics of messages.
pub const MARKERS: &str = "markers";

/// Topics of a client below its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SubTopics {
    /// None.
    None,
    /// A publisher's, numbered from 0 and used in turn by sequence.
    Turns(u32),
    /// A publisher's, numbered from 0 and drawn for each message.
    Drawn {
        /// The draw.
        draw: PublisherDraw,
        /// True for one of the publishers that have these topics.
        is_first: bool,
    },
    /// A subscriber's, to each of which it subscribes, and to that of [`MARKERS`].
    Share(TopicShare),
}

/// Numbered topics of one of several subscribers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TopicShare {
    /// Its first topic.
    pub first: u32,
    /// Distance from one to the next, at least 1.
    pub step: u32,
    /// Number of all topics.
    pub count: u32,
}

impl TopicShare {
    /// Returns the numbers of its topics.
    fn numbers(self) -> StepBy<Range<u32>> {
        (self.first..self.count).step_by(self.step.max(1) as usize)
    }
}

/// An event of a session.
#[derive(Debug, PartialEq, Eq)]
pub enum SessionEvent<'a> {
    /// Name and version that the server reports; before `Connected`, if at all.
    Server(&'a str),
    /// The server has accepted the connection; clients may subscribe and publish.
    Connected,
    /// The subscription is active.
    Subscribed,
    /// A message.
    Message {
        /// Its topic; empty if the protocol's session does not keep it for this subscription.
        topic: &'a [u8],
        /// Its payload.
        payload: &'a [u8],
        /// True if the server had kept it for later subscribers (MQTT).
        is_retained: bool,
    },
    /// The server broke this statement of its protocol's specification.
    Violation(&'static str),
    /// The messages that follow are from this part of a topic, from 0: order is promised within each. The first in
    /// each call of [`Session::input`], if there are several.
    Part(u32),
    /// The subscriber has given up its share of its group's messages, until `Assigned`.
    Revoked,
    /// The subscriber's group has given it a share, in the assignment of this number, which grows with each rebalance of
    /// the group.
    Assigned(u32),
    /// The server has acknowledged the message of this sequence (PUBACK, PUBCOMP, a
    /// publisher confirm), or has removed the next thing that it was asked to remove.
    Acknowledged(u32),
    /// The server has refused the message of this sequence, with the reason.
    Refused(u32, MessageRefusal<'a>),
    /// The server accepts no messages of any publisher until `Unblocked`, for this reason.
    Blocked(&'a str),
    /// The server accepts messages again.
    Unblocked,
    /// The server takes more messages of this client.
    Room,
    /// The session goes on with [`Session::rested`] after a pause, which grows with this number of failures.
    Rest(u32),
    /// The client has lost its connection to this member of a cluster, and keeps those to others.
    MemberLost(&'a str),
}

/// Stands, with the number of a member of a cluster, for the end of the connection to it, in the bytes of a session that
/// [spreads](Session::spreads).
pub const MEMBER_LOST: u8 = 0x80;

/// A negative acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageRefusal<'a> {
    /// The server's code, if the protocol has one of one byte.
    pub code: Option<u8>,
    /// The server's text, or the meaning of its code.
    pub words: &'a str,
    /// Whether the server would take the same message later.
    pub kind: RefusalKind,
}

/// Answer of a server that has refused a message to the same message later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalKind {
    /// It refuses it again.
    Final,
    /// It accepts it when it is below its limit again: a quota, a full queue, memory.
    Limit,
    /// It accepts it as soon as the cluster knows which member takes it.
    Unsettled,
}

impl RefusalKind {
    /// Returns `Limit` or `Final`.
    pub fn limit_or_final(is_limit: bool) -> RefusalKind {
        if is_limit { RefusalKind::Limit } else { RefusalKind::Final }
    }
}

impl fmt::Display for MessageRefusal<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.words)?;
        self.code.map_or(Ok(()), |code| write!(f, " (code 0x{code:02X})"))
    }
}

/// The reason why a session cannot go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    /// The peer speaks another protocol, or violates this one.
    #[error("{0}")]
    Foreign(String),
    /// The server refused, and will refuse again: a wrong password, or missing
    /// permission.
    #[error("{0}")]
    Denied(String),
    /// The server refused for now.
    #[error("{0}")]
    Busy(String),
    /// The server refused because it has reached a limit of its own.
    #[error("{0}")]
    Limit(String),
    /// Another member of the server is responsible: its host and port.
    #[error("{0} leads its topic, and not the server that it has connected to")]
    Elsewhere(String),
}

impl SessionError {
    /// True if another attempt would fail in the same way.
    pub fn is_final(&self) -> bool {
        matches!(self, SessionError::Foreign(_) | SessionError::Denied(_))
    }

    /// True if the error names a limit of the server.
    pub fn is_limit(&self) -> bool {
        matches!(self, SessionError::Limit(_))
    }
}

/// Writes earlier messages once more, byte for byte.
pub trait Copies {
    /// Returns the message of this sequence, which was sent and is not acknowledged.
    fn message(&mut self, sequence: u32) -> &[u8];
}

/// One client's conversation. Thousands of them live in one shard: an idle one should
/// take a few hundred bytes at most, including buffers.
pub trait Session: Sized + Send {
    /// The protocol's settings, read once for all clients.
    type Settings: Send + Sync;

    /// Separator of the levels of a topic: `/` in MQTT, `.` in NATS.
    const SEPARATOR: char;
    /// Wildcard for all topics below a level: `#` in MQTT, `>` in NATS, `*` in Redis.
    const REST: &'static str;
    /// Beginning of the topics for answers, before the user's prefix.
    const INBOX: &'static str = "";
    /// Possible cause and advice if a server ends the connection before it has accepted
    /// the client. It is printed after a semicolon.
    const HINT: &'static str;
    /// Quality of service at which a server says that something is removed.
    const REMOVAL_QOS: u8 = 1;
    /// True if, with TLS, the server sends its first line in plain text and the handshake
    /// follows.
    const TLS_AFTER_FIRST_LINE: bool = false;

    /// Returns a possible cause and advice for servers that refuse messages silently. It is
    /// printed after the known facts.
    fn unsaid(_settings: &Self::Settings) -> &'static str {
        ""
    }

    /// Reads the settings. An error describes the problem and what to do.
    fn settings(terms: &ClientSettings<'_>) -> Result<Self::Settings, SettingsError>;

    /// Makes a client that has not connected yet.
    fn new(settings: &Self::Settings, spec: &ClientSpec) -> Self;

    /// Handles a new connection: appends the client's first bytes, if the client speaks
    /// first. Called again for a new connection, on a new session or after
    /// [`Session::resume`].
    fn open(&mut self, settings: &Self::Settings, spec: &ClientSpec, out: &mut Vec<u8>);

    /// Notes the address (`host:port`) of the new connection, before [`Session::open`], if the server has several
    /// members.
    fn at(&mut self, _address: &str) {}

    /// True if a client of this role talks to the members of a cluster at the same time, over a connection to each. Its
    /// bytes have the form of `shard/carrier/member_streams.rs`, in both directions.
    fn spreads(_settings: &Self::Settings, _role: Role) -> bool {
        false
    }

    /// Notes the addresses of all members, and the place of the one to which there is a connection, before
    /// [`Session::open`], of a session that spreads.
    fn among(&mut self, _members: &[SocketAddr], _place: usize) {}

    /// True if messages of a lost member have to be sent again to another, now: [`Session::resend`] follows.
    #[inline]
    fn owes(&self) -> bool {
        false
    }

    /// Goes on after [`SessionEvent::Rest`].
    ///
    /// # Errors
    /// Nothing can be asked any more.
    fn rested(&mut self, _settings: &Self::Settings, _out: &mut Vec<u8>) -> Result<(), SessionError> {
        Ok(())
    }

    /// Handles the end of the connection of a client that reconnects: drops the state of
    /// the connection and keeps the state of the session.
    fn resume(&mut self, settings: &Self::Settings, spec: &ClientSpec) {
        *self = Self::new(settings, spec);
    }

    /// Resends after `Connected` on another connection: appends the next packet whose
    /// acknowledgement is missing, in the order in which they were sent. Returns false,
    /// with nothing appended, when all are sent. Until then nothing new is published.
    fn resend(&mut self, _settings: &Self::Settings, _copies: &mut dyn Copies, _out: &mut Vec<u8>) -> bool {
        false
    }

    /// Handles bytes that arrived, and appends answers to `out`. Returns how many bytes
    /// are consumed; the rest (the beginning of a longer item) is passed in again with
    /// more bytes after it. It must not scan an incomplete payload repeatedly: large
    /// messages arrive in many pieces.
    fn input(
        &mut self,
        settings: &Self::Settings,
        bytes: &[u8],
        out: &mut Vec<u8>,
        heard: &mut dyn FnMut(SessionEvent<'_>),
    ) -> Result<usize, SessionError>;

    /// Returns the most bytes of payloads in a packet of the server: of one message, unless a packet holds several.
    fn packet_payload_bytes(_settings: &Self::Settings, payload_bytes: u64) -> u64 {
        payload_bytes
    }

    /// Returns the announced length of the item that is arriving, bytes, as far as it is
    /// known; `rest` is what [`Session::input`] did not consume. If a server announces
    /// more than any item of the run has, the connection is ended before it takes the
    /// memory.
    fn announced(&self, rest: &[u8]) -> u64 {
        rest.len() as u64
    }

    /// Appends the client's subscription (a requester's: to its answers);
    /// `SessionEvent::Subscribed` reports when it is active.
    fn subscribe(&mut self, settings: &Self::Settings, spec: &ClientSpec, out: &mut Vec<u8>);

    /// Appends a message of the publisher, a request, or the answer to the last request.
    /// Returns false, with nothing appended, if the maximum number of messages is
    /// unacknowledged: the next acknowledgement makes room.
    fn publish(&mut self, settings: &Self::Settings, message: &[u8], sequence: u32, out: &mut Vec<u8>) -> bool;

    /// Returns how long a publisher collects messages for a batch, ns; 0 if it sends at once.
    fn linger_ns(_settings: &Self::Settings) -> Ns {
        0
    }

    /// Returns the number of a batch that [`Session::publish`] has begun, once: the caller flushes it
    /// [`Session::linger_ns`] later. There may be another one.
    fn begun(&mut self) -> Option<u32> {
        None
    }

    /// Returns how many further messages of at most this many bytes it only collects, so that nothing is appended before
    /// the batch is flushed; 0 if the next one may make it append something. The batch is the one that is being
    /// collected, if it `is_open` when the next message comes, or else a new one.
    fn collects(&self, _settings: &Self::Settings, _message_bytes: usize, _is_open: bool) -> u32 {
        0
    }

    /// True if the batch of this number is being collected.
    fn is_collecting(&self, _batch: u32) -> bool {
        false
    }

    /// Appends the batch of this number, if it is being collected.
    fn flush(&mut self, _settings: &Self::Settings, _batch: u32, _out: &mut Vec<u8>) {}

    /// Returns the number of bytes after the payload in each frame of this publisher, if
    /// its frames differ only in their payloads and publishing does not change the
    /// session: then one frame is a template for others. `None` otherwise, for example
    /// with an identifier or a topic that changes.
    fn tail_bytes(&self, _settings: &Self::Settings) -> Option<usize> {
        None
    }

    /// Appends a keep-alive packet. Called every half [`Session::keep_alive_s`].
    fn keep_alive(&mut self, settings: &Self::Settings, out: &mut Vec<u8>);

    /// Returns how long the server waits for a keep-alive packet, s; 0 if it never ends
    /// an idle connection.
    fn keep_alive_s(settings: &Self::Settings) -> u32;

    /// Appends an orderly disconnect, which removes durable subscriptions.
    fn close(&mut self, settings: &Self::Settings, spec: &ClientSpec, out: &mut Vec<u8>);

    /// Returns how long a server takes to give the share of a subscriber that died to the others of its group, ns; 0 if
    /// it does so at once.
    fn takeover_ns(_settings: &Self::Settings) -> Ns {
        0
    }

    /// Returns what this client makes at the server that outlives its connections.
    fn leaves(_settings: &Self::Settings, _spec: &ClientSpec) -> Vec<Leftover> {
        Vec::new()
    }

    /// Asks the server, after `Connected`, to remove something that a client has left;
    /// [`SessionEvent::Acknowledged`] reports each removal in order. Sessions are removed
    /// by the connection itself. `number` counts from 0 on each connection. Returns false,
    /// with nothing appended, if answers to earlier requests have to arrive first.
    fn remove(&mut self, _settings: &Self::Settings, _thing: &Leftover, _number: u32, _out: &mut Vec<u8>) -> bool {
        false
    }

    /// Returns the number of published messages that the session has not appended to any
    /// bytes yet.
    fn held(&self) -> u64 {
        0
    }

    /// Returns the number of messages that are published and not acknowledged yet (0 if
    /// nothing is acknowledged).
    fn unacknowledged(&self) -> usize;
}
