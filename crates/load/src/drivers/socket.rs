//! What a driver offers whose sockets block: what is asked of it, and what it
//! answers.

use pubmark_model::options::Options;
use pubmark_model::protocol::Role;
use pubmark_model::workload::{Pattern, Transport};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Why a driver could not do what it was asked: what, where, what to do.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct DriverError(pub String);

impl DriverError {
    /// An error with this text.
    pub fn new(text: impl Into<String>) -> Self {
        DriverError(text.into())
    }
}

/// The longest that `send` or `recv` blocks before it hands control back, ms.
/// Short enough that stops and deadlines are noticed, long enough to cost nothing.
pub const WAIT_MS: i32 = 20;

/// A socket to open.
pub struct SocketSpec<'a> {
    /// What its client does.
    pub role: Role,
    /// Its client's number.
    pub id: u32,
    /// Which of the system's socket types is wanted: `fan-out`, `fan-in` and
    /// `pairs` are PUB/SUB, `pipeline` is PUSH/PULL, `request-reply` REQ/REP. In
    /// `fan-out-echo` a publisher also receives, and subscriber 0 also sends.
    pub pattern: Pattern,
    /// How bytes cross.
    pub transport: Transport,
    /// Bytes of each message.
    pub payload_bytes: u64,
    /// Whether `recv` comes back at once where nothing has come
    /// (`receive = "spin"`), as far as the system can do that.
    pub spin: bool,
    /// Whether messages go out as fast as possible, so that latency does not matter.
    pub unthrottled: bool,
    /// `tcp://127.0.0.1:0` (any free port below the ephemeral range),
    /// `ipc:///path`, `udp://127.0.0.1:0`, `inproc://name`.
    pub bind: Option<&'a str>,
    /// Endpoints to connect to, as their binders reported them; of a server, its own.
    pub connect: &'a [String],
    /// In `fan-out-echo`, where answers go, if that is another way than the
    /// messages': the publisher binds it, and who answers connects to it.
    pub answers: Option<&'a str>,
    /// The run's own name at a server; empty where there is none.
    pub run: &'a str,
    /// All options of the driver.
    pub options: &'a Options,
}

impl SocketSpec<'_> {
    /// How long `recv` waits for a message, ms.
    pub fn receive_ms(&self) -> i32 {
        if self.spin { 0 } else { WAIT_MS }
    }
}

/// What became of a send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// The system has taken the message.
    Accepted,
    /// The system's queues are full, for as long as [`WAIT_MS`]: try again.
    Full,
}

/// An open socket of one client. Used by one thread at a time; closed, with
/// the linger that the options ask for, when dropped.
pub trait Socket: Send {
    /// Where others can connect to, if it was bound.
    fn endpoint(&self) -> Option<&str>;

    /// Where answers are to go, if it was bound for them elsewhere.
    fn answers(&self) -> Option<&str> {
        None
    }

    /// Offers a message, blocking for at most about [`WAIT_MS`].
    fn send(&mut self, message: &[u8]) -> Result<Sent, DriverError>;

    /// Hands on what was accepted and held back to go out together with later
    /// messages. The libraries see to that by themselves.
    fn flush(&mut self) -> Result<(), DriverError> {
        Ok(())
    }

    /// The next message, or none after about [`WAIT_MS`] without one; at once
    /// where the socket was opened to spin.
    fn recv(&mut self) -> Result<Option<&[u8]>, DriverError>;

    /// Whether messages of one publisher arrive in the order in which they
    /// were sent, if they arrive.
    fn orderly(&self) -> bool {
        true
    }

    /// Whether a request is lost where nobody is there yet to take it, and a late
    /// reply is thrown away: then a probe is to be sent again.
    fn loses_requests(&self) -> bool {
        false
    }

    /// Options as they took effect, for the record.
    fn applied(&self) -> Map<String, Value>;

    /// Closes it at once, as the kernel does where a process is killed: nothing
    /// is said to its peers, and what waits in its queues goes with it.
    fn crash(self: Box<Self>) {
        drop(self);
    }
}

/// The socket of a client of `fan-out-echo` that sends and receives, made of one
/// for each way.
pub struct TwoWays {
    out: Box<dyn Socket>,
    back: Box<dyn Socket>,
    /// Whether it is the publisher's.
    publishes: bool,
}

/// Opens one socket.
pub type Open<'a> = dyn FnMut(&SocketSpec<'_>) -> Result<Box<dyn Socket>, DriverError> + 'a;

impl TwoWays {
    /// Opens the sockets of a client that needs two, and of all others the one.
    pub fn open(spec: &SocketSpec<'_>, open: &mut Open<'_>) -> Result<Box<dyn Socket>, DriverError> {
        let publishes = spec.role == Role::Publisher;
        if !spec.pattern.echoed() || !(publishes || spec.id == 0) {
            return open(spec);
        }
        let answers = spec.answers.ok_or_else(|| {
            DriverError::new("nobody said where answers go: the publisher's `bound` has to name it as `answers`")
        })?;
        let (answers_bind, answers_connect) = match publishes {
            true => (Some(answers), Vec::new()),
            false => (None, vec![answers.to_owned()]),
        };
        let messages = SocketSpec { pattern: Pattern::FanOut, answers: None, ..*spec };
        let answers = SocketSpec {
            role: if publishes { Role::Subscriber } else { Role::Publisher },
            bind: answers_bind,
            connect: &answers_connect,
            ..messages
        };
        let (messages, answers) = (open(&messages)?, open(&answers)?);
        let (out, back) = if publishes { (messages, answers) } else { (answers, messages) };
        Ok(Box::new(TwoWays { out, back, publishes }))
    }
}

impl Socket for TwoWays {
    fn endpoint(&self) -> Option<&str> {
        self.out.endpoint().filter(|_| self.publishes)
    }

    fn answers(&self) -> Option<&str> {
        self.back.endpoint().filter(|_| self.publishes)
    }

    fn send(&mut self, message: &[u8]) -> Result<Sent, DriverError> {
        self.out.send(message)
    }

    fn flush(&mut self) -> Result<(), DriverError> {
        self.out.flush()
    }

    fn recv(&mut self) -> Result<Option<&[u8]>, DriverError> {
        self.back.recv()
    }

    fn orderly(&self) -> bool {
        self.back.orderly()
    }

    fn applied(&self) -> Map<String, Value> {
        self.out.applied()
    }

    fn crash(self: Box<Self>) {
        self.out.crash();
        self.back.crash();
    }
}

/// A driver, loaded into this process.
pub trait Driver: Send {
    /// Names and versions of what was loaded and from where: `library`,
    /// `version`, `path`, as the library itself reports them.
    fn versions(&self) -> Map<String, Value>;

    /// How what is measured is made, in the agent's own words: `language`,
    /// `runtime`, `binding`, `library`, `call`, `copies`, `memory`, `build`,
    /// `flags`, as far as there is something to say.
    fn made(&self) -> BTreeMap<String, String> {
        BTreeMap::new()
    }

    /// Opens a socket and starts to bind and connect. Connecting may go on in
    /// the background; probes tell when it is done.
    fn open(&mut self, spec: &SocketSpec<'_>) -> Result<Box<dyn Socket>, DriverError>;
}
