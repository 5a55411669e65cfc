//! The interface of drivers with blocking sockets.

use pubmark_model::options::Options;
use pubmark_model::protocol::Role;
use pubmark_model::workload::{Pattern, Transport};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The reason why a driver failed: what, where, what to do.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct DriverError(pub String);

impl DriverError {
    /// Makes an error with this text.
    pub fn new(text: impl Into<String>) -> Self {
        DriverError(text.into())
    }
}

/// Maximum time that `send` or `recv` blocks before it returns, ms. Short enough that
/// stops and deadlines are noticed, long enough to cost nothing.
pub const WAIT_MS: i32 = 20;

/// A socket to open.
pub struct SocketSpec<'a> {
    /// Role of its client.
    pub role: Role,
    /// Number of its client.
    pub id: u32,
    /// Selects the system's socket type: `fan-out`, `fan-in` and `pairs` are PUB/SUB,
    /// `pipeline` is PUSH/PULL, `request-reply` REQ/REP. In `fan-out-echo` a publisher
    /// also receives, and subscriber 0 also sends.
    pub pattern: Pattern,
    /// The transport.
    pub transport: Transport,
    /// Length of each message, bytes.
    pub payload_bytes: u64,
    /// True if `recv` returns at once when there is no message (`receive = "spin"`), as
    /// far as the system can do that.
    pub spin: bool,
    /// True if messages are sent as fast as possible, so that latency does not matter.
    pub unthrottled: bool,
    /// Endpoint to bind: `tcp://127.0.0.1:0` (any free port below the ephemeral range),
    /// `ipc:///path`, `udp://127.0.0.1:0`, `inproc://name`.
    pub bind: Option<&'a str>,
    /// Endpoints to connect to, as their binders reported them; for a server, its own.
    pub connect: &'a [String],
    /// Endpoint for answers in `fan-out-echo`, if it differs from that of the messages:
    /// the publisher binds it, and the subscriber that answers connects to it.
    pub answers: Option<&'a str>,
    /// Name of the run at a server; empty without a server.
    pub run: &'a str,
    /// All options of the driver.
    pub options: &'a Options,
}

impl SocketSpec<'_> {
    /// Returns how long `recv` waits for a message, ms.
    pub fn receive_ms(&self) -> i32 {
        if self.spin { 0 } else { WAIT_MS }
    }
}

/// The result of a send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// The system has taken the message.
    Accepted,
    /// The system's queues have been full for [`WAIT_MS`]: try again.
    Full,
}

/// An open socket of one client. It is used by one thread at a time, and closed on drop
/// with the linger of its options.
pub trait Socket: Send {
    /// Returns the endpoint that others can connect to, if the socket was bound.
    fn endpoint(&self) -> Option<&str>;

    /// Returns the endpoint for answers, if a separate one was bound.
    fn answers(&self) -> Option<&str> {
        None
    }

    /// Offers a message, blocking for at most about [`WAIT_MS`].
    fn send(&mut self, message: &[u8]) -> Result<Sent, DriverError>;

    /// Sends what was accepted and held back to be sent together with later messages. The
    /// libraries do that by themselves.
    fn flush(&mut self) -> Result<(), DriverError> {
        Ok(())
    }

    /// Returns the next message, or `None` after about [`WAIT_MS`] without one; at once
    /// if the socket was opened to spin.
    fn recv(&mut self) -> Result<Option<&[u8]>, DriverError>;

    /// True if messages of one publisher arrive in the order in which they were sent, if
    /// they arrive.
    fn orderly(&self) -> bool {
        true
    }

    /// True if a request is lost when no replier is there yet, and a late reply is
    /// discarded: then a probe has to be sent again.
    fn loses_requests(&self) -> bool {
        false
    }

    /// Returns the options as they took effect, for the record.
    fn applied(&self) -> Map<String, Value>;

    /// Closes the socket at once, as the kernel does when a process is killed: without a
    /// word to its peers, and discarding its queues.
    fn crash(self: Box<Self>) {
        drop(self);
    }
}

/// The socket of a `fan-out-echo` client that sends and receives: one socket for each
/// direction.
pub struct TwoWays {
    out: Box<dyn Socket>,
    back: Box<dyn Socket>,
    /// True if it belongs to the publisher.
    publishes: bool,
}

/// Opens one socket.
pub type Open<'a> = dyn FnMut(&SocketSpec<'_>) -> Result<Box<dyn Socket>, DriverError> + 'a;

impl TwoWays {
    /// Opens two sockets for a client that needs them, and one for every other.
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
    /// Returns names and versions of what was loaded and from where: `library`,
    /// `version`, `path`, as the library itself reports them.
    fn versions(&self) -> Map<String, Value>;

    /// Returns the build info of the measured code: `language`, `runtime`, `binding`,
    /// `library`, `call`, `copies`, `memory`, `build`, `flags`, as far as they apply.
    fn made(&self) -> BTreeMap<String, String> {
        BTreeMap::new()
    }

    /// Opens a socket and starts to bind and connect. Connecting may go on in the
    /// background; probes show when it is done.
    fn open(&mut self, spec: &SocketSpec<'_>) -> Result<Box<dyn Socket>, DriverError>;
}
