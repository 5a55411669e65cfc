//! ZeroMQ (libzmq 4), loaded at run time.
//!
//! How the library behaves:
//! - Queues count messages. Over ipc and tcp each side has one per connection
//!   (`ZMQ_SNDHWM`, `ZMQ_RCVHWM`), with the kernel's socket buffers between them; over
//!   inproc sender and receiver share one of twice `queue_messages`.
//! - PUB never blocks: it drops messages for a subscriber whose queue is full. With
//!   `nodrop` (`ZMQ_XPUB_NODROP`) it waits, and sends to nobody meanwhile.
//! - `ZMQ_IMMEDIATE` stays 0, its default: what is accepted before a connection is up, or
//!   while it is being restored, waits in its queue. With 1, a broken connection would
//!   discard its queue.
//! - `ZMQ_REQ_RELAXED` lets a requester go on if its reply never arrives. Without
//!   `ZMQ_REQ_CORRELATE`, which adds a frame to each message both ways, a late reply may
//!   arrive in place of the next one: the sequence number in the message header shows it.
//! - `fan-out-echo` has a second PUB and SUB for the way back: the publisher binds the
//!   SUB.
//! - With a time limit (`ZMQ_SNDTIMEO`, `ZMQ_RCVTIMEO`) the library sets a timer each
//!   time that it waits, which takes 0.35 µs of its caller's time. The driver sets no
//!   limit; a signal ends calls that wait.
//! - A closed socket continues to send for `linger` in the background; the last of driver
//!   and sockets to be dropped waits for that.

use super::interrupt::{Calls, receive_limit};
use super::shared_library::{
    self, Kind, Names, Others, SharedLibrary, bind_free, clamped, function_table, kernel_grants,
};
use super::socket::{Driver, DriverError, Sent, Socket, SocketSpec, TwoWays};
use nix::libc;
use pubmark_model::options::{OptionValues, Options, queue_messages};
use pubmark_model::units::format_time;
use pubmark_model::workload::Transport;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::ffi::{c_char, c_int, c_void};
use std::sync::Arc;

const NAMES: Names =
    Names { system: "zeromq", library: "libzmq", sonames: &["libzmq.so.5", "libzmq.so"], debian: "libzmq5" };

// Names and numbers of zmq.h.
const IO_THREADS: c_int = 1;
const MAX_SOCKETS: c_int = 2;
const SUBSCRIBE: c_int = 6;
const SNDBUF: c_int = 11;
const RCVBUF: c_int = 12;
const LINGER: c_int = 17;
const RECONNECT_IVL: c_int = 18;
const MAXMSGSIZE: c_int = 22;
const SNDHWM: c_int = 23;
const RCVHWM: c_int = 24;
const RCVTIMEO: c_int = 27;
const REQ_RELAXED: c_int = 53;
const XPUB_NODROP: c_int = 69;
const EFSM: c_int = 156_384_712 + 51;

/// Time between two attempts to connect, ms.
const RECONNECT_MS: c_int = 10;

const OTHERS: Others =
    &[("pairs", "pair", Kind::Pair, Kind::Pair), ("request_reply", "dealer-router", Kind::Dealer, Kind::Router)];

/// More parts of the same message follow (`ZMQ_SNDMORE`).
const SEND_MORE: c_int = 2;

/// Sockets that one process may open; the library's own limit is 1,023.
const SOCKETS: c_int = 16_383;

function_table! {
    /// The functions of libzmq that are used, by their names in zmq.h.
    struct Zmq {
        fn zmq_version(*mut c_int, *mut c_int, *mut c_int);
        fn zmq_errno() -> c_int;
        fn zmq_strerror(c_int) -> *const c_char;
        fn zmq_ctx_new() -> *mut c_void;
        fn zmq_ctx_set(*mut c_void, c_int, c_int) -> c_int;
        fn zmq_ctx_get(*mut c_void, c_int) -> c_int;
        fn zmq_ctx_term(*mut c_void) -> c_int;
        fn zmq_socket(*mut c_void, c_int) -> *mut c_void;
        fn zmq_close(*mut c_void) -> c_int;
        fn zmq_setsockopt(*mut c_void, c_int, *const c_void, usize) -> c_int;
        fn zmq_getsockopt(*mut c_void, c_int, *mut c_void, *mut usize) -> c_int;
        fn zmq_bind(*mut c_void, *const c_char) -> c_int;
        fn zmq_connect(*mut c_void, *const c_char) -> c_int;
        fn zmq_send(*mut c_void, *const c_void, usize, c_int) -> c_int;
        fn zmq_msg_init(*mut Message) -> c_int;
        fn zmq_msg_recv(*mut Message, *mut c_void, c_int) -> c_int;
        fn zmq_msg_data(*mut Message) -> *mut c_void;
        fn zmq_msg_close(*mut Message) -> c_int;
    }
}

/// `zmq_msg_t`.
#[repr(C, align(8))]
struct Message([u8; 64]);

/// The library and its one context, which all sockets share: inproc endpoints are names
/// within a context.
struct Context {
    zmq: Zmq,
    context: *mut c_void,
}

// SAFETY: zmq.h: a context is thread-safe and may be shared among any number of threads; the rest is plain data.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

impl Context {
    fn error(&self, what: &str) -> DriverError {
        // SAFETY: zmq_errno takes nothing and reads a variable of this thread.
        let number = unsafe { (self.zmq.zmq_errno)() };
        let advice = match number {
            libc::EMFILE => "; raise the limit on open files (`ulimit -n`), or play fewer clients in a process",
            _ => "",
        };
        // SAFETY: zmq_strerror returns a constant string for any number.
        let reason = unsafe { shared_library::text((self.zmq.zmq_strerror)(number)) };
        DriverError::new(format!("zeromq: cannot {what}: {reason}{advice}"))
    }

    fn errno(&self) -> c_int {
        // SAFETY: zmq_errno takes nothing and reads a variable of this thread.
        unsafe { (self.zmq.zmq_errno)() }
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // Sockets hold the context, so all are closed by now, each with a finite linger: this waits no longer
        // than that. SAFETY: the context is live, and this is its last use unless the call was interrupted and
        // did nothing.
        while unsafe { (self.zmq.zmq_ctx_term)(self.context) } != 0 && self.errno() == libc::EINTR {}
    }
}

struct ZeroMq {
    context: Arc<Context>,
    versions: Map<String, Value>,
}

/// Loads libzmq and makes its context.
pub(super) fn load(options: &Options) -> Result<Box<dyn Driver>, DriverError> {
    if options.get("tcp_nodelay") == Some(&Value::Bool(false)) {
        return Err(DriverError::new(
            "zeromq: TCP_NODELAY is always on and the library cannot turn it off: leave tcp_nodelay at true",
        ));
    }
    let io_threads = clamped(options.get("io_threads").map_or(1, |_| options.number("io_threads")), c_int::MAX);
    if io_threads == 0 {
        return Err(DriverError::new(
            "zeromq: io_threads is 0, which leaves no thread to move messages: set it to 1 or more",
        ));
    }
    let library = SharedLibrary::open(&NAMES, options)?;
    let zmq = Zmq::load(&library)?;
    let (mut major, mut minor, mut patch) = (0, 0, 0);
    // SAFETY: zmq_version writes three ints, which outlive the call.
    unsafe { (zmq.zmq_version)(&mut major, &mut minor, &mut patch) };
    if major != 4 {
        return Err(library.refuse(&format!("is libzmq {major}.{minor}.{patch}, and this driver speaks to libzmq 4")));
    }
    let versions = library.keep(&format!("{major}.{minor}.{patch}"), zmq.zmq_version as *const c_void);
    // SAFETY: takes no arguments; null, its failure, is checked for.
    let context = unsafe { (zmq.zmq_ctx_new)() };
    if context.is_null() {
        return Err(DriverError::new("zeromq: cannot make a context: out of memory"));
    }
    let context = Context { zmq, context };
    for (option, value, name) in
        [(IO_THREADS, io_threads, "io_threads"), (MAX_SOCKETS, SOCKETS, "the limit on sockets")]
    {
        // SAFETY: the context is live.
        if unsafe { (context.zmq.zmq_ctx_set)(context.context, option, value) } != 0 {
            return Err(context.error(&format!("set {name} to {value}")));
        }
    }
    Ok(Box::new(ZeroMq { context: Arc::new(context), versions }))
}

impl Driver for ZeroMq {
    fn versions(&self) -> Map<String, Value> {
        self.versions.clone()
    }

    fn made(&self) -> BTreeMap<String, String> {
        shared_library::made(&self.versions, "send: into the library's message; receive: none")
    }

    fn open(&mut self, spec: &SocketSpec<'_>) -> Result<Box<dyn Socket>, DriverError> {
        TwoWays::open(spec, &mut |spec| self.open_one(spec))
    }
}

impl ZeroMq {
    fn open_one(&self, spec: &SocketSpec<'_>) -> Result<Box<dyn Socket>, DriverError> {
        shared_library::check_spec("zeromq", spec)?;
        let mut socket = ZeroMqSocket::new(&self.context, Kind::of(spec, OTHERS)?)?;
        socket.configure(spec)?;
        if let Some(endpoint) = spec.bind {
            socket.endpoint = Some(bind_free(endpoint, |candidate| socket.bind(candidate))?);
        }
        for endpoint in spec.connect {
            socket.connect(endpoint)?;
        }
        Ok(Box::new(socket))
    }
}

struct ZeroMqSocket {
    context: Arc<Context>,
    socket: *mut c_void,
    /// Calls that may wait.
    calls: Calls,
    kind: Kind,
    /// The last message received; boxed because the library's messages must not move.
    message: Box<Message>,
    /// The last requester, to which a router replies.
    asker: Vec<u8>,
    endpoint: Option<String>,
    applied: Map<String, Value>,
}

// SAFETY: a socket of libzmq may go from thread to thread with a full memory fence between, which handing over a value is.
unsafe impl Send for ZeroMqSocket {}

impl ZeroMqSocket {
    fn new(context: &Arc<Context>, kind: Kind) -> Result<Self, DriverError> {
        let calls = Calls::new()?;
        let number = match kind {
            Kind::Pair => 0,
            Kind::Pub => 1,
            Kind::Sub => 2,
            Kind::Req => 3,
            Kind::Rep => 4,
            Kind::Dealer => 5,
            Kind::Router => 6,
            Kind::Pull => 7,
            Kind::Push => 8,
            other => return Err(DriverError::new(format!("zeromq has no socket {other:?}"))),
        };
        // SAFETY: the context is live; null, the call's failure, is checked for.
        let socket = unsafe { (context.zmq.zmq_socket)(context.context, number) };
        if socket.is_null() {
            return Err(context.error("open a socket"));
        }
        let mut message = Box::new(Message([0; 64]));
        // SAFETY: the message has the size and alignment of zmq_msg_t, and stays in its box until closed.
        unsafe { (context.zmq.zmq_msg_init)(&mut *message) };
        let (endpoint, applied, asker) = (None, Map::new(), Vec::new());
        Ok(ZeroMqSocket { context: context.clone(), socket, calls, kind, message, asker, endpoint, applied })
    }

    fn configure(&mut self, spec: &SocketSpec<'_>) -> Result<(), DriverError> {
        let queue = clamped(queue_messages(spec.options, spec.payload_bytes), c_int::MAX);
        let linger = clamped(spec.options.time_ns("linger") / 1_000_000, c_int::MAX);
        for (option, value) in [
            (SNDHWM, queue),
            (RCVHWM, queue),
            (LINGER, linger),
            (RCVTIMEO, receive_limit(spec)),
            (RECONNECT_IVL, RECONNECT_MS),
        ] {
            self.set(option, value)?;
        }
        self.set_bytes(MAXMSGSIZE, &(-1_i64).to_ne_bytes())?;
        let buffer = clamped(spec.options.number("socket_buffer"), c_int::MAX);
        if buffer > 0 && spec.transport != Transport::Inproc {
            self.set(SNDBUF, buffer)?;
            self.set(RCVBUF, buffer)?;
        }
        match self.kind {
            Kind::Sub => self.set_bytes(SUBSCRIBE, b"")?,
            Kind::Req => self.set(REQ_RELAXED, 1)?,
            Kind::Pub if spec.options.flag("nodrop") => {
                self.set(XPUB_NODROP, 1)?;
                self.applied.insert("nodrop".into(), true.into());
            }
            _ => {}
        }
        self.record(spec.transport)
    }

    /// Reads back the options as they took effect.
    fn record(&mut self, transport: Transport) -> Result<(), DriverError> {
        let linger_ms = u64::try_from(self.get(LINGER)?).unwrap_or_default();
        // SAFETY: the context is live.
        let io_threads = unsafe { (self.context.zmq.zmq_ctx_get)(self.context.context, IO_THREADS) };
        let mut applied = Map::new();
        applied.insert("linger".into(), format_time(linger_ms * 1_000_000).into());
        applied.insert("io_threads".into(), io_threads.into());
        applied.insert("send_queue_messages".into(), self.get(SNDHWM)?.into());
        applied.insert("receive_queue_messages".into(), self.get(RCVHWM)?.into());
        if transport == Transport::Tcp {
            applied.insert("tcp_nodelay".into(), true.into());
        }
        if transport != Transport::Inproc {
            for (name, option, limit) in
                [("send_buffer_bytes", SNDBUF, "wmem_max"), ("receive_buffer_bytes", RCVBUF, "rmem_max")]
            {
                let asked = self.get(option)?;
                applied.insert(
                    name.into(),
                    if asked > 0 { kernel_grants(asked, limit).into() } else { "automatic".into() },
                );
            }
        }
        self.applied.extend(applied);
        Ok(())
    }

    fn set(&self, option: c_int, value: c_int) -> Result<(), DriverError> {
        self.set_bytes(option, &value.to_ne_bytes())
    }

    fn set_bytes(&self, option: c_int, value: &[u8]) -> Result<(), DriverError> {
        // SAFETY: the socket is live, and the library copies the `len` bytes at the pointer.
        match unsafe { (self.context.zmq.zmq_setsockopt)(self.socket, option, value.as_ptr().cast(), value.len()) } {
            0 => Ok(()),
            _ => Err(self.context.error(&format!("set socket option {option} of {:?}", self.kind))),
        }
    }

    fn get(&self, option: c_int) -> Result<c_int, DriverError> {
        let (mut value, mut size): (c_int, usize) = (0, size_of::<c_int>());
        // SAFETY: the socket is live, and `size` is the number of bytes that `value` has
        // room for.
        match unsafe { (self.context.zmq.zmq_getsockopt)(self.socket, option, (&raw mut value).cast(), &mut size) } {
            0 => Ok(value),
            _ => Err(self.context.error(&format!("read socket option {option} of {:?}", self.kind))),
        }
    }

    fn bind(&self, endpoint: &str) -> Result<bool, DriverError> {
        let address = shared_library::c_endpoint(endpoint)?;
        // SAFETY: the socket is live and the address NUL-terminated.
        match unsafe { (self.context.zmq.zmq_bind)(self.socket, address.as_ptr()) } {
            0 => Ok(true),
            _ if self.context.errno() == libc::EADDRINUSE => Ok(false),
            _ => Err(self.context.error(&format!("bind {endpoint}"))),
        }
    }

    fn connect(&self, endpoint: &str) -> Result<(), DriverError> {
        let address = shared_library::c_endpoint(endpoint)?;
        // SAFETY: the socket is live and the address NUL-terminated.
        match unsafe { (self.context.zmq.zmq_connect)(self.socket, address.as_ptr()) } {
            0 => Ok(()),
            _ => Err(self.context.error(&format!("connect to {endpoint}"))),
        }
    }
}

impl ZeroMqSocket {
    fn send_part(&self, part: &[u8], flags: c_int) -> Result<Sent, DriverError> {
        let send = self.context.zmq.zmq_send;
        // SAFETY: the socket is live, and the library copies the bytes before it returns.
        if self.calls.make(|| unsafe { send(self.socket, part.as_ptr().cast(), part.len(), flags) }) >= 0 {
            return Ok(Sent::Accepted);
        }
        match self.context.errno() {
            libc::EAGAIN | libc::EINTR => Ok(Sent::Full),
            _ => Err(self.context.error("send")),
        }
    }

    fn receive_part(&mut self) -> Result<Option<&[u8]>, DriverError> {
        let receive = self.context.zmq.zmq_msg_recv;
        let (socket, message) = (self.socket, &raw mut *self.message);
        // SAFETY: socket and message are live; the call releases what the message held before.
        let length = self.calls.make(|| unsafe { receive(message, socket, 0) });
        if let Ok(length) = usize::try_from(length) {
            // SAFETY: the message was received and has `length` bytes, which stay until the next call on it; that needs `&mut self`.
            return Ok(Some(unsafe {
                std::slice::from_raw_parts((self.context.zmq.zmq_msg_data)(&mut *self.message).cast(), length)
            }));
        }
        match self.context.errno() {
            libc::EAGAIN | libc::EINTR => Ok(None),
            // A late reply was taken for the expected one, so no reply is due and none can
            // arrive.
            EFSM if self.kind == Kind::Req => {
                std::thread::sleep(shared_library::WAIT);
                Ok(None)
            }
            _ => Err(self.context.error("receive")),
        }
    }
}

impl Socket for ZeroMqSocket {
    fn endpoint(&self) -> Option<&str> {
        self.endpoint.as_deref()
    }

    fn send(&mut self, message: &[u8]) -> Result<Sent, DriverError> {
        // A requester that has disconnected cannot get a reply, and a router is not
        // notified of it.
        if self.kind == Kind::Router && self.send_part(&self.asker, SEND_MORE)? == Sent::Full {
            return Ok(Sent::Full);
        }
        self.send_part(message, 0)
    }

    fn recv(&mut self) -> Result<Option<&[u8]>, DriverError> {
        if self.kind == Kind::Router {
            let mut asker = std::mem::take(&mut self.asker);
            let Some(part) = self.receive_part()? else { return Ok(None) };
            asker.clear();
            asker.extend_from_slice(part);
            self.asker = asker;
        }
        self.receive_part()
    }

    fn applied(&self) -> Map<String, Value> {
        self.applied.clone()
    }

    fn crash(self: Box<Self>) {
        // Closing then discards what is queued. The call is refused for no live socket.
        let _ = self.set(LINGER, 0);
    }
}

impl Drop for ZeroMqSocket {
    fn drop(&mut self) {
        // SAFETY: message and socket are live, and this is their last use. Closing returns at once; the context waits for the linger.
        unsafe {
            (self.context.zmq.zmq_msg_close)(&mut *self.message);
            (self.context.zmq.zmq_close)(self.socket);
        }
    }
}
