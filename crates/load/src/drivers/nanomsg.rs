//! nanomsg 1.x, loaded at run time.
//!
//! How the library behaves:
//! - `NN_SNDBUF` and `NN_RCVBUF` count bytes. Over inproc the receiver's `NN_RCVBUF` is
//!   the whole queue (two messages always fit). Over ipc and tcp the library has no queue
//!   at all, only one message in hand each way: it passes both on as SO_SNDBUF and
//!   SO_RCVBUF, which turns off the kernel's automatic sizes. They are `queue_messages`
//!   times the payload here; a `socket_buffer` other than 0 replaces them over ipc and
//!   tcp.
//! - Nothing lingers: since 1.0 `NN_LINGER` has no effect, and what a socket had not yet
//!   passed to the kernel is lost when it closes. A sender keeps its socket open until
//!   its receivers have drained.
//! - PUB never blocks: it drops messages for a subscriber that cannot take them.
//! - REQ repeats a request after `NN_REQ_RESEND_IVL`. The interval is so long here that
//!   this never happens, since it would count as a duplicate. REQ still repeats a request
//!   when a connection breaks. A new request abandons the old one.
//! - One worker thread serves all sockets of a process, at most 512 of them.

use super::interrupt::{Calls, receive_limit};
use super::shared_library::{
    self, Kind, Names, Others, SharedLibrary, bind_free, check_one_io_thread, clamped, function_table, kernel_grants,
};
use super::socket::{Driver, DriverError, Sent, Socket, SocketSpec, TwoWays};
use nix::libc;
use pubmark_model::options::{OptionValues, Options, queue_messages};
use pubmark_model::workload::Transport;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::ffi::{c_char, c_int, c_void};
use std::sync::Arc;

const NAMES: Names = Names {
    system: "nanomsg",
    library: "libnanomsg",
    sonames: &["libnanomsg.so.5", "libnanomsg.so.6", "libnanomsg.so"],
    debian: "libnanomsg5",
};

// Names and numbers of nn.h, pubsub.h, reqrep.h, pipeline.h and tcp.h.
const AF_SP: c_int = 1;
const SOL_SOCKET: c_int = 0;
const SNDBUF: c_int = 2;
const RCVBUF: c_int = 3;
const RCVTIMEO: c_int = 5;
const RECONNECT_IVL: c_int = 6;
const RCVMAXSIZE: c_int = 16;
const TCP: c_int = -3;
const TCP_NODELAY: c_int = 1;
const SUB: c_int = 33;
const SUB_SUBSCRIBE: c_int = 1;
const REQ: c_int = 48;
const REQ_RESEND_IVL: c_int = 1;
const SURVEYOR: c_int = 98;
const SURVEYOR_DEADLINE: c_int = 1;
const MSG: usize = usize::MAX;
const EFSM: c_int = 156_384_712 + 54;

/// Time between two attempts to connect, ms.
const RECONNECT_MS: c_int = 10;

/// Oldest ABI version that has every function used here: that of release 1.0.
const OLDEST_ABI: c_int = 5;

const OTHERS: Others = &[
    ("pairs", "pair", Kind::Pair, Kind::Pair),
    ("pairs", "bus", Kind::Bus, Kind::Bus),
    ("fan_out", "bus", Kind::Bus, Kind::Bus),
    ("request_reply", "survey", Kind::Surveyor, Kind::Respondent),
];

function_table! {
    /// The functions of libnanomsg that are used, by their names in nn.h.
    struct Nanomsg {
        fn nn_symbol(c_int, *mut c_int) -> *const c_char;
        fn nn_errno() -> c_int;
        fn nn_strerror(c_int) -> *const c_char;
        fn nn_socket(c_int, c_int) -> c_int;
        fn nn_close(c_int) -> c_int;
        fn nn_setsockopt(c_int, c_int, c_int, *const c_void, usize) -> c_int;
        fn nn_getsockopt(c_int, c_int, c_int, *mut c_void, *mut usize) -> c_int;
        fn nn_bind(c_int, *const c_char) -> c_int;
        fn nn_connect(c_int, *const c_char) -> c_int;
        fn nn_send(c_int, *const c_void, usize, c_int) -> c_int;
        fn nn_recv(c_int, *mut c_void, usize, c_int) -> c_int;
        fn nn_freemsg(*mut c_void) -> c_int;
    }
}

impl Nanomsg {
    fn errno(&self) -> c_int {
        // SAFETY: nn_errno takes nothing and reads a variable of this thread.
        unsafe { (self.nn_errno)() }
    }

    fn error(&self, what: &str) -> DriverError {
        let number = self.errno();
        let advice = match number {
            libc::EMFILE => {
                "; play fewer clients in a process (the library holds 512 sockets), or raise the limit on open files (`ulimit -n`)"
            }
            _ => "",
        };
        // SAFETY: nn_strerror returns a string that outlives its copying, for any number.
        let reason = unsafe { shared_library::text((self.nn_strerror)(number)) };
        DriverError::new(format!("nanomsg: cannot {what}: {reason}{advice}"))
    }

    /// Returns the value of one of the library's symbols. The library has no version
    /// call: its version is only in its table of symbols.
    fn symbol(&self, name: &str) -> Option<c_int> {
        let mut value = 0;
        for index in 0.. {
            // SAFETY: nn_symbol writes to `value`, which outlives the call, and returns null past the end of its table.
            let found = unsafe { (self.nn_symbol)(index, &mut value) };
            if found.is_null() {
                return None;
            }
            // SAFETY: not null, so a constant string of the library.
            if unsafe { shared_library::text(found) } == name {
                return Some(value);
            }
        }
        None
    }

    /// Returns current, revision and age of the interface; the library does not report
    /// its release.
    fn abi(&self) -> Option<(c_int, c_int, c_int)> {
        Some((self.symbol("NN_VERSION_CURRENT")?, self.symbol("NN_VERSION_REVISION")?, self.symbol("NN_VERSION_AGE")?))
    }
}

struct NanomsgDriver {
    nanomsg: Arc<Nanomsg>,
    versions: Map<String, Value>,
}

/// Loads libnanomsg.
pub(super) fn load(options: &Options) -> Result<Box<dyn Driver>, DriverError> {
    check_one_io_thread("nanomsg", "the library has exactly one worker thread", options)?;
    let library = SharedLibrary::open(&NAMES, options)?;
    let nanomsg = Nanomsg::load(&library)?;
    let Some((current, revision, age)) = nanomsg.abi() else {
        return Err(library.refuse("does not tell the version of its interface, so it is not a libnanomsg 1.x"));
    };
    if current < OLDEST_ABI {
        return Err(library
            .refuse(&format!("has interface {current}.{revision}.{age}, older than nanomsg 1.0's {OLDEST_ABI}.0.0")));
    }
    let versions = library.keep(&format!("abi {current}.{revision}.{age}"), nanomsg.nn_symbol as *const c_void);
    Ok(Box::new(NanomsgDriver { nanomsg: Arc::new(nanomsg), versions }))
}

impl Driver for NanomsgDriver {
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

impl NanomsgDriver {
    fn open_one(&self, spec: &SocketSpec<'_>) -> Result<Box<dyn Socket>, DriverError> {
        shared_library::check_spec("nanomsg", spec)?;
        let mut socket = NanomsgSocket::new(&self.nanomsg, Kind::of(spec, OTHERS)?)?;
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

struct NanomsgSocket {
    nanomsg: Arc<Nanomsg>,
    socket: c_int,
    /// Calls that may wait.
    calls: Calls,
    kind: Kind,
    /// The last message received, owned; null if none.
    message: *mut c_void,
    endpoint: Option<String>,
    applied: Map<String, Value>,
}

// SAFETY: sockets of nanomsg are numbers that any thread may use, and a message is memory that any thread may free.
unsafe impl Send for NanomsgSocket {}

impl NanomsgSocket {
    fn new(nanomsg: &Arc<Nanomsg>, kind: Kind) -> Result<Self, DriverError> {
        let calls = Calls::new()?;
        let protocol = match kind {
            Kind::Pub => 32,
            Kind::Sub => SUB,
            Kind::Req => REQ,
            Kind::Rep => 49,
            Kind::Push => 80,
            Kind::Pull => 81,
            Kind::Pair => 16,
            Kind::Surveyor => SURVEYOR,
            Kind::Respondent => 99,
            Kind::Bus => 112,
            other => return Err(DriverError::new(format!("nanomsg has no socket {other:?}"))),
        };
        // SAFETY: takes two numbers; a negative result, its failure, is checked for.
        let socket = unsafe { (nanomsg.nn_socket)(AF_SP, protocol) };
        if socket < 0 {
            return Err(nanomsg.error("open a socket"));
        }
        Ok(NanomsgSocket {
            nanomsg: nanomsg.clone(),
            socket,
            calls,
            kind,
            message: std::ptr::null_mut(),
            endpoint: None,
            applied: Map::new(),
        })
    }

    fn configure(&mut self, spec: &SocketSpec<'_>) -> Result<(), DriverError> {
        let in_kernel = spec.transport != Transport::Inproc;
        let queue = queue_messages(spec.options, spec.payload_bytes).saturating_mul(spec.payload_bytes.max(1));
        let bytes = match spec.options.number("socket_buffer") {
            buffer if buffer > 0 && in_kernel => buffer,
            _ => queue,
        };
        let bytes = clamped(bytes, c_int::MAX);
        for (option, value) in [
            (SNDBUF, bytes),
            (RCVBUF, bytes),
            (RCVTIMEO, receive_limit(spec)),
            (RECONNECT_IVL, RECONNECT_MS),
            (RCVMAXSIZE, -1),
        ] {
            self.set(SOL_SOCKET, option, value)?;
        }
        if spec.transport == Transport::Tcp {
            self.set(TCP, TCP_NODELAY, spec.options.flag("tcp_nodelay").into())?;
        }
        match self.kind {
            Kind::Sub => self.set_bytes(SUB, SUB_SUBSCRIBE, b"")?,
            Kind::Req => self.set(REQ, REQ_RESEND_IVL, c_int::MAX)?,
            Kind::Surveyor => self.set(SURVEYOR, SURVEYOR_DEADLINE, c_int::MAX)?,
            _ => {}
        }
        self.record(spec.transport)
    }

    /// Reads back the options as they took effect.
    fn record(&mut self, transport: Transport) -> Result<(), DriverError> {
        let mut applied = Map::new();
        applied.insert("linger".into(), "unsupported".into());
        applied.insert("io_threads".into(), 1.into());
        let (send, receive) = (self.get(SOL_SOCKET, SNDBUF)?, self.get(SOL_SOCKET, RCVBUF)?);
        if transport == Transport::Inproc {
            applied.insert("receive_queue_bytes".into(), receive.into());
        } else {
            applied.insert("send_buffer_bytes".into(), kernel_grants(send, "wmem_max").into());
            applied.insert("receive_buffer_bytes".into(), kernel_grants(receive, "rmem_max").into());
        }
        if transport == Transport::Tcp {
            applied.insert("tcp_nodelay".into(), (self.get(TCP, TCP_NODELAY)? != 0).into());
        }
        self.applied = applied;
        Ok(())
    }

    fn set(&self, level: c_int, option: c_int, value: c_int) -> Result<(), DriverError> {
        self.set_bytes(level, option, &value.to_ne_bytes())
    }

    fn set_bytes(&self, level: c_int, option: c_int, value: &[u8]) -> Result<(), DriverError> {
        // SAFETY: the library copies the `len` bytes at the pointer.
        match unsafe { (self.nanomsg.nn_setsockopt)(self.socket, level, option, value.as_ptr().cast(), value.len()) } {
            0 => Ok(()),
            _ => Err(self.nanomsg.error(&format!("set socket option {option} at level {level} of {:?}", self.kind))),
        }
    }

    fn get(&self, level: c_int, option: c_int) -> Result<c_int, DriverError> {
        let (mut value, mut size): (c_int, usize) = (0, size_of::<c_int>());
        // SAFETY: `size` is the number of bytes that `value` has room for.
        match unsafe { (self.nanomsg.nn_getsockopt)(self.socket, level, option, (&raw mut value).cast(), &mut size) } {
            0 => Ok(value),
            _ => Err(self.nanomsg.error(&format!("read socket option {option} at level {level} of {:?}", self.kind))),
        }
    }

    fn bind(&self, endpoint: &str) -> Result<bool, DriverError> {
        let address = shared_library::c_endpoint(endpoint)?;
        // SAFETY: the address is NUL-terminated.
        match unsafe { (self.nanomsg.nn_bind)(self.socket, address.as_ptr()) } {
            0.. => Ok(true),
            _ if self.nanomsg.errno() == libc::EADDRINUSE => Ok(false),
            _ => Err(self.nanomsg.error(&format!("bind {endpoint}"))),
        }
    }

    fn connect(&self, endpoint: &str) -> Result<(), DriverError> {
        let address = shared_library::c_endpoint(endpoint)?;
        // SAFETY: the address is NUL-terminated.
        match unsafe { (self.nanomsg.nn_connect)(self.socket, address.as_ptr()) } {
            0.. => Ok(()),
            _ => Err(self.nanomsg.error(&format!("connect to {endpoint}"))),
        }
    }

    fn free_message(&mut self) {
        if !self.message.is_null() {
            // SAFETY: the message came from nn_recv, is owned here, and is forgotten before anyone could use it again.
            unsafe { (self.nanomsg.nn_freemsg)(self.message) };
            self.message = std::ptr::null_mut();
        }
    }
}

impl Socket for NanomsgSocket {
    fn endpoint(&self) -> Option<&str> {
        self.endpoint.as_deref()
    }

    fn send(&mut self, message: &[u8]) -> Result<Sent, DriverError> {
        let send = self.nanomsg.nn_send;
        // SAFETY: the library copies the bytes before it returns.
        if self.calls.make(|| unsafe { send(self.socket, message.as_ptr().cast(), message.len(), 0) }) >= 0 {
            return Ok(Sent::Accepted);
        }
        match self.nanomsg.errno() {
            libc::ETIMEDOUT | libc::EAGAIN | libc::EINTR => Ok(Sent::Full),
            _ => Err(self.nanomsg.error("send")),
        }
    }

    fn recv(&mut self) -> Result<Option<&[u8]>, DriverError> {
        self.free_message();
        let receive = self.nanomsg.nn_recv;
        let (socket, message) = (self.socket, (&raw mut self.message).cast());
        // SAFETY: with NN_MSG the library writes the address of a message, which is owned here from then on, to the
        // given pointer.
        let length = self.calls.make(|| unsafe { receive(socket, message, MSG, 0) });
        if let Ok(length) = usize::try_from(length) {
            // SAFETY: the message has `length` bytes, and is freed by the next call only; that needs `&mut self`.
            return Ok(Some(unsafe { std::slice::from_raw_parts(self.message.cast(), length) }));
        }
        match self.nanomsg.errno() {
            libc::ETIMEDOUT | libc::EAGAIN | libc::EINTR => Ok(None),
            // No request is active, so no reply is due and none can arrive.
            EFSM if matches!(self.kind, Kind::Req | Kind::Surveyor) => {
                std::thread::sleep(shared_library::WAIT);
                Ok(None)
            }
            _ => Err(self.nanomsg.error("receive")),
        }
    }

    fn loses_requests(&self) -> bool {
        self.kind == Kind::Surveyor
    }

    fn applied(&self) -> Map<String, Value> {
        self.applied.clone()
    }
}

impl Drop for NanomsgSocket {
    fn drop(&mut self) {
        self.free_message();
        // SAFETY: this is the socket's last use, unless the call was interrupted and has to be repeated.
        while unsafe { (self.nanomsg.nn_close)(self.socket) } != 0 && self.nanomsg.errno() == libc::EINTR {}
    }
}
