//! libzmq through the crate zmq. What the library does with what it is asked is
//! said at pubmark's own driver (crates/load/src/drivers/zeromq.rs); options,
//! sockets and waits are the same here, so that what differs is the binding.

use crate::made;
use pubmark_load::drivers::socket::{Driver, DriverError, Sent, Socket, SocketSpec, WAIT_MS};
use pubmark_load::drivers::{Kind, Others, bind_free, check_spec, clamped, kernel_grants};
use pubmark_model::options::{OptionValues, Options, queue_messages};
use pubmark_model::units::{MILLISECOND, format_time};
use pubmark_model::workload::Transport;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;
use zmq::{Context, Message, SocketType};

/// The options that this driver knows.
pub const OPTIONS: &[&str] = &[
    "linger",
    "io_threads",
    "queue_messages",
    "queue_bytes",
    "socket_buffer",
    "tcp_nodelay",
    "idiom",
    "request_reply",
    "pairs",
];

const OTHERS: Others =
    &[("pairs", "pair", Kind::Pair, Kind::Pair), ("request_reply", "dealer-router", Kind::Dealer, Kind::Router)];

/// Time between two attempts to connect, ms.
const RECONNECT_MS: i32 = 10;

/// How a message is received. Both copy it into a message of the library to send it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Idiom {
    /// `recv_msg`: a message of the library each, read in place.
    Message,
    /// `recv_into`: copied into a buffer that is kept.
    Buffer,
}

impl Idiom {
    fn of(options: &Options) -> Result<Idiom, DriverError> {
        match options.text("idiom") {
            None | Some("message") => Ok(Idiom::Message),
            Some("buffer") => Ok(Idiom::Buffer),
            Some(other) => Err(DriverError::new(format!("idiom is `{other}`, which is none of message, buffer"))),
        }
    }

    fn word(self) -> &'static str {
        match self {
            Idiom::Message => "message",
            Idiom::Buffer => "buffer",
        }
    }
}

/// The library's one context, which all sockets share: inproc endpoints are
/// names within a context.
struct Zmq {
    context: Context,
    idiom: Idiom,
}

/// Makes the driver.
pub fn load(options: &Options) -> Result<Box<dyn Driver>, DriverError> {
    if options.get("tcp_nodelay") == Some(&Value::Bool(false)) {
        return Err(DriverError::new(
            "zeromq: TCP_NODELAY is always on and the library cannot turn it off: leave tcp_nodelay at true",
        ));
    }
    let context = Context::new();
    let io_threads = clamped(options.get("io_threads").map_or(1, |_| options.number("io_threads")), i32::MAX);
    if io_threads == 0 {
        return Err(DriverError::new(
            "zeromq: io_threads is 0, which leaves no thread to move messages: set it to 1 or more",
        ));
    }
    context.set_io_threads(io_threads).map_err(|error| failed(&format!("set io_threads to {io_threads}"), error))?;
    Ok(Box::new(Zmq { context, idiom: Idiom::of(options)? }))
}

fn failed(what: &str, error: zmq::Error) -> DriverError {
    let advice = match error {
        zmq::Error::EMFILE => {
            "; raise the limit on open files (`ulimit -n`), or play fewer clients: 1,023 sockets are a context's most"
        }
        _ => "",
    };
    DriverError::new(format!("zeromq: cannot {what}: {error}{advice}"))
}

/// The version of libzmq that is loaded.
fn version() -> String {
    let (major, minor, patch) = zmq::version();
    format!("{major}.{minor}.{patch}")
}

/// The file that it was loaded from; none where it is a part of this program.
fn path() -> Option<String> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    maps.split_whitespace().find(|word| word.starts_with('/') && word.contains("/libzmq")).map(str::to_owned)
}

impl Driver for Zmq {
    fn versions(&self) -> Map<String, Value> {
        let mut versions = Map::new();
        versions.insert("library".into(), "libzmq".into());
        versions.insert("version".into(), version().into());
        versions.extend(path().map(|path| ("path".into(), path.into())));
        versions.insert("binding".into(), concat!("zmq ", env!("ZMQ_VERSION")).into());
        versions.insert("rust".into(), env!("RUST_VERSION").into());
        versions
    }

    fn made(&self) -> BTreeMap<String, String> {
        made(&[
            ("binding", concat!("zmq ", env!("ZMQ_VERSION"))),
            ("library", &format!("libzmq {}{}", version(), if path().is_some() { "" } else { ", linked in" })),
            ("call", "blocking"),
            (
                "copies",
                match self.idiom {
                    Idiom::Message => "send: into the library's message; receive: none",
                    Idiom::Buffer => "send: into the library's message; receive: into a kept buffer",
                },
            ),
        ])
    }

    fn open(&mut self, spec: &SocketSpec<'_>) -> Result<Box<dyn Socket>, DriverError> {
        check_spec("zeromq", spec)?;
        let kind = Kind::of(spec, OTHERS)?;
        let socket = self.context.socket(socket_type(kind)?).map_err(|error| failed("open a socket", error))?;
        configure(&socket, kind, spec).map_err(|error| failed("set the options of a socket", error))?;
        let applied = applied(self, &socket, spec).map_err(|error| failed("read the options of a socket", error))?;
        let endpoint = match spec.bind {
            None => None,
            Some(endpoint) => Some(bind_free(endpoint, |candidate| match socket.bind(candidate) {
                Ok(()) => Ok(true),
                Err(zmq::Error::EADDRINUSE) => Ok(false),
                Err(error) => Err(failed(&format!("bind {candidate}"), error)),
            })?),
        };
        for endpoint in spec.connect {
            socket.connect(endpoint).map_err(|error| failed(&format!("connect to {endpoint}"), error))?;
        }
        // One byte more than a message has tells one that is too long.
        let buffer = match self.idiom {
            Idiom::Buffer => vec![0; spec.payload_bytes as usize + 1],
            Idiom::Message => Vec::new(),
        };
        Ok(Box::new(ZmqSocket {
            socket,
            kind,
            idiom: self.idiom,
            message: Message::new(),
            buffer,
            asker: Message::new(),
            endpoint,
            applied,
        }))
    }
}

fn socket_type(kind: Kind) -> Result<SocketType, DriverError> {
    Ok(match kind {
        Kind::Pair => zmq::PAIR,
        Kind::Pub => zmq::PUB,
        Kind::Sub => zmq::SUB,
        Kind::Req => zmq::REQ,
        Kind::Rep => zmq::REP,
        Kind::Dealer => zmq::DEALER,
        Kind::Router => zmq::ROUTER,
        Kind::Pull => zmq::PULL,
        Kind::Push => zmq::PUSH,
        other => return Err(DriverError::new(format!("zeromq has no socket {other:?}"))),
    })
}

fn configure(socket: &zmq::Socket, kind: Kind, spec: &SocketSpec<'_>) -> zmq::Result<()> {
    let queue = clamped(queue_messages(spec.options, spec.payload_bytes), i32::MAX);
    socket.set_sndhwm(queue)?;
    socket.set_rcvhwm(queue)?;
    socket.set_linger(clamped(spec.options.time_ns("linger") / MILLISECOND, i32::MAX))?;
    socket.set_sndtimeo(WAIT_MS)?;
    socket.set_rcvtimeo(spec.receive_ms())?;
    socket.set_reconnect_ivl(RECONNECT_MS)?;
    socket.set_maxmsgsize(-1)?;
    let buffer = clamped(spec.options.number("socket_buffer"), i32::MAX);
    if buffer > 0 && spec.transport != Transport::Inproc {
        socket.set_sndbuf(buffer)?;
        socket.set_rcvbuf(buffer)?;
    }
    match kind {
        Kind::Sub => socket.set_subscribe(b""),
        Kind::Req => socket.set_req_relaxed(true),
        _ => Ok(()),
    }
}

/// What took effect.
fn applied(driver: &Zmq, socket: &zmq::Socket, spec: &SocketSpec<'_>) -> zmq::Result<Map<String, Value>> {
    let linger_ms = u64::try_from(socket.get_linger()?).unwrap_or_default();
    let mut applied = Map::new();
    applied.insert("idiom".into(), driver.idiom.word().into());
    applied.insert("linger".into(), format_time(linger_ms * MILLISECOND).into());
    applied.insert("io_threads".into(), driver.context.get_io_threads()?.into());
    applied.insert("send_queue_messages".into(), socket.get_sndhwm()?.into());
    applied.insert("receive_queue_messages".into(), socket.get_rcvhwm()?.into());
    if spec.transport == Transport::Tcp {
        applied.insert("tcp_nodelay".into(), true.into());
    }
    if spec.transport != Transport::Inproc {
        let granted = |asked, limit| match asked {
            ..=0 => Value::from("automatic"),
            asked => kernel_grants(asked, limit).into(),
        };
        applied.insert("send_buffer_bytes".into(), granted(socket.get_sndbuf()?, "wmem_max"));
        applied.insert("receive_buffer_bytes".into(), granted(socket.get_rcvbuf()?, "rmem_max"));
    }
    Ok(applied)
}

struct ZmqSocket {
    socket: zmq::Socket,
    kind: Kind,
    idiom: Idiom,
    /// The last message received, with the idiom `message` …
    message: Message,
    /// … and with `buffer`.
    buffer: Vec<u8>,
    /// Of a router: who asked last, and is replied to.
    asker: Message,
    endpoint: Option<String>,
    applied: Map<String, Value>,
}

impl ZmqSocket {
    fn send_part(&self, part: &[u8], flags: i32) -> Result<Sent, DriverError> {
        match self.socket.send(part, flags) {
            Ok(()) => Ok(Sent::Accepted),
            Err(zmq::Error::EAGAIN | zmq::Error::EINTR) => Ok(Sent::Full),
            Err(error) => Err(failed("send", error)),
        }
    }

    /// Whether a receiving call has brought something.
    fn received<T>(&self, result: zmq::Result<T>) -> Result<Option<T>, DriverError> {
        match result {
            Ok(received) => Ok(Some(received)),
            Err(zmq::Error::EAGAIN | zmq::Error::EINTR) => Ok(None),
            // A late reply was taken for the one awaited, so none is due: nothing can come.
            Err(zmq::Error::EFSM) if self.kind == Kind::Req => {
                thread::sleep(Duration::from_millis(WAIT_MS as u64));
                Ok(None)
            }
            Err(error) => Err(failed("receive", error)),
        }
    }
}

impl Socket for ZmqSocket {
    fn endpoint(&self) -> Option<&str> {
        self.endpoint.as_deref()
    }

    fn send(&mut self, message: &[u8]) -> Result<Sent, DriverError> {
        // Whoever has gone cannot be replied to, which a router is not told.
        if self.kind == Kind::Router && self.send_part(&self.asker, zmq::SNDMORE)? == Sent::Full {
            return Ok(Sent::Full);
        }
        self.send_part(message, 0)
    }

    fn recv(&mut self) -> Result<Option<&[u8]>, DriverError> {
        if self.kind == Kind::Router {
            let Some(asker) = self.received(self.socket.recv_msg(0))? else { return Ok(None) };
            self.asker = asker;
        }
        match self.idiom {
            Idiom::Message => {
                let Some(message) = self.received(self.socket.recv_msg(0))? else { return Ok(None) };
                self.message = message;
                Ok(Some(&self.message))
            }
            Idiom::Buffer => {
                let received = self.socket.recv_into(&mut self.buffer, 0);
                let Some(length) = self.received(received)? else { return Ok(None) };
                Ok(Some(&self.buffer[..length.min(self.buffer.len())]))
            }
        }
    }

    fn applied(&self) -> Map<String, Value> {
        self.applied.clone()
    }

    fn crash(self: Box<Self>) {
        // Closing then throws away what is queued. It is refused for no live socket.
        let _ = self.socket.set_linger(0);
    }
}
