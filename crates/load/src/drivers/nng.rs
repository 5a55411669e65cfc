//! NNG 1.x (nanomsg next generation), loaded at run time.
//!
//! How the library behaves:
//! - Queues count messages, 8,192 at most. PUSH and PUB have a send queue, SUB a receive
//!   queue. PULL, REQ and REP have none: 1.5 accepts the options on every socket, but
//!   they have no effect there, so the record says "unsupported".
//! - There is no option for the kernel's socket buffers and none for I/O threads.
//! - Nothing lingers: what a socket has queued is lost when it closes. A sender keeps its
//!   socket open until its receivers have drained.
//! - PUB never blocks. A full queue, of PUB or SUB, drops its oldest message.
//! - REQ repeats a request after an interval. It is so long here that this never happens,
//!   since it would count as a duplicate. REQ still repeats a request when a connection
//!   breaks. A new request abandons the old one.
//! - A time limit on receiving a reply would abandon the request as well, so REQ waits on
//!   the library's file descriptor instead.
//! - A reply that its requester does not take within [`REPLY_MS`] is dropped: the library
//!   abandons it with the call. The other libraries drop it at once.
//!
//! Messages are sent by `nng_send`, which makes a message, copies into it and sends it in
//! one call: the same three steps by hand would take two calls more.

use super::shared_library::{
    self, Kind, Names, Others, SharedLibrary, bind_free, check_one_io_thread, clamped, function_table,
};
use super::socket::{Driver, DriverError, Sent, Socket, SocketSpec, TwoWays, WAIT_MS};
use nix::libc;
use pubmark_model::options::{OptionValues, Options, queue_messages};
use pubmark_model::workload::Transport;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

const NAMES: Names =
    Names { system: "nng", library: "libnng", sonames: &["libnng.so.1", "libnng.so"], debian: "libnng1" };

// Names and numbers of nng.h and the headers of its protocols.
const NONBLOCK: c_int = 2;
const EINTR: c_int = 1;
const ETIMEDOUT: c_int = 5;
const EAGAIN: c_int = 8;
const ENOTSUP: c_int = 9;
const EADDRINUSE: c_int = 10;
const ESTATE: c_int = 11;
const ENOFILES: c_int = 21;
const RECVBUF: &CStr = c"recv-buffer";
const SENDBUF: &CStr = c"send-buffer";
const RECVFD: &CStr = c"recv-fd";
const RECVTIMEO: &CStr = c"recv-timeout";
const SENDTIMEO: &CStr = c"send-timeout";
const RECVMAXSZ: &CStr = c"recv-size-max";
const RECONNMINT: &CStr = c"reconnect-time-min";
const RECONNMAXT: &CStr = c"reconnect-time-max";
const TCP_NODELAY: &CStr = c"tcp-nodelay";
const SUBSCRIBE: &CStr = c"sub:subscribe";
const RESENDTIME: &CStr = c"req:resend-time";
const SURVEYTIME: &CStr = c"surveyor:survey-time";

/// The longest queue that the library allows, messages.
const QUEUE_MAX: c_int = 8192;

/// Time between two attempts to connect, ms.
const RECONNECT_MS: c_int = 10;

/// The longest wait for a socket to close.
const CLOSE: Duration = Duration::from_secs(1);

/// Time that a reply waits for its requester to take it, ms.
const REPLY_MS: c_int = 1000;

/// A socket, listener or dialer as defined in nng.h: a struct of one number.
#[repr(C)]
#[derive(Clone, Copy)]
struct Id(u32);

const OTHERS: Others = &[
    ("pairs", "pair", Kind::Pair, Kind::Pair),
    ("pairs", "bus", Kind::Bus, Kind::Bus),
    ("fan_out", "bus", Kind::Bus, Kind::Bus),
    ("request_reply", "survey", Kind::Surveyor, Kind::Respondent),
];

function_table! {
    /// The functions of libnng that are used, by their names in nng.h.
    struct Nng {
        fn nng_version() -> *const c_char;
        fn nng_strerror(c_int) -> *const c_char;
        fn nng_close(Id) -> c_int;
        fn nng_pub0_open(*mut Id) -> c_int;
        fn nng_sub0_open(*mut Id) -> c_int;
        fn nng_push0_open(*mut Id) -> c_int;
        fn nng_pull0_open(*mut Id) -> c_int;
        fn nng_req0_open(*mut Id) -> c_int;
        fn nng_rep0_open(*mut Id) -> c_int;
        fn nng_pair0_open(*mut Id) -> c_int;
        fn nng_surveyor0_open(*mut Id) -> c_int;
        fn nng_respondent0_open(*mut Id) -> c_int;
        fn nng_bus0_open(*mut Id) -> c_int;
        fn nng_socket_set(Id, *const c_char, *const c_void, usize) -> c_int;
        fn nng_socket_set_int(Id, *const c_char, c_int) -> c_int;
        fn nng_socket_get_int(Id, *const c_char, *mut c_int) -> c_int;
        fn nng_socket_set_size(Id, *const c_char, usize) -> c_int;
        fn nng_socket_set_ms(Id, *const c_char, i32) -> c_int;
        fn nng_listener_create(*mut Id, Id, *const c_char) -> c_int;
        fn nng_listener_set_bool(Id, *const c_char, bool) -> c_int;
        fn nng_listener_get_bool(Id, *const c_char, *mut bool) -> c_int;
        fn nng_listener_start(Id, c_int) -> c_int;
        fn nng_listener_close(Id) -> c_int;
        fn nng_dialer_create(*mut Id, Id, *const c_char) -> c_int;
        fn nng_dialer_set_bool(Id, *const c_char, bool) -> c_int;
        fn nng_dialer_get_bool(Id, *const c_char, *mut bool) -> c_int;
        fn nng_dialer_start(Id, c_int) -> c_int;
        fn nng_send(Id, *const c_void, usize, c_int) -> c_int;
        fn nng_recvmsg(Id, *mut *mut c_void, c_int) -> c_int;
        fn nng_msg_body(*mut c_void) -> *mut c_void;
        fn nng_msg_len(*mut c_void) -> usize;
        fn nng_msg_free(*mut c_void);
    }
}

impl Nng {
    /// Turns a result code of the library into an error unless it is 0.
    fn check(&self, code: c_int, what: impl FnOnce() -> String) -> Result<(), DriverError> {
        match code {
            0 => Ok(()),
            _ => Err(self.error(code, &what())),
        }
    }

    fn error(&self, code: c_int, what: &str) -> DriverError {
        let advice = match code {
            ENOFILES => "; raise the limit on open files (`ulimit -n`), or play fewer clients in a process",
            _ => "",
        };
        // SAFETY: nng_strerror returns a string that outlives its copying, for any number.
        let reason = unsafe { shared_library::text((self.nng_strerror)(code)) };
        DriverError::new(format!("nng: cannot {what}: {reason}{advice}"))
    }
}

struct NngDriver {
    nng: Arc<Nng>,
    versions: Map<String, Value>,
}

/// Loads libnng.
pub(super) fn load(options: &Options) -> Result<Box<dyn Driver>, DriverError> {
    if options.number("socket_buffer") != 0 {
        return Err(DriverError::new("nng has no option for kernel socket buffers: leave socket_buffer at 0"));
    }
    check_one_io_thread("nng", "the library sizes its own pool of threads and has no option for it", options)?;
    let library = SharedLibrary::open(&NAMES, options)?;
    let nng = Nng::load(&library)?;
    // SAFETY: nng_version returns a constant string.
    let version = unsafe { shared_library::text((nng.nng_version)()) };
    if !version.starts_with("1.") {
        return Err(library.refuse(&format!("is libnng {version}, and this driver speaks to libnng 1")));
    }
    let versions = library.keep(&version, nng.nng_version as *const c_void);
    Ok(Box::new(NngDriver { nng: Arc::new(nng), versions }))
}

impl Driver for NngDriver {
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

impl NngDriver {
    fn open_one(&self, spec: &SocketSpec<'_>) -> Result<Box<dyn Socket>, DriverError> {
        shared_library::check_spec("nng", spec)?;
        let mut socket = NngSocket::new(&self.nng, Kind::of(spec, OTHERS)?)?;
        socket.configure(spec)?;
        let nodelay = (spec.transport == Transport::Tcp).then(|| spec.options.flag("tcp_nodelay"));
        if let Some(endpoint) = spec.bind {
            socket.endpoint = Some(bind_free(endpoint, |candidate| socket.bind(candidate, nodelay))?);
        }
        for endpoint in spec.connect {
            socket.connect(endpoint, nodelay)?;
        }
        Ok(Box::new(socket))
    }
}

struct NngSocket {
    nng: Arc<Nng>,
    socket: Id,
    kind: Kind,
    /// The last message received, owned; null if none.
    message: *mut c_void,
    /// Descriptor that is readable while a reply is there, for sockets that send
    /// requests; -1 for the others. It belongs to the library and closes with the socket.
    reply_fd: c_int,
    endpoint: Option<String>,
    applied: Map<String, Value>,
}

// SAFETY: sockets of NNG are numbers that any thread may use, and a message is memory that any thread may free.
unsafe impl Send for NngSocket {}

impl NngSocket {
    fn new(nng: &Arc<Nng>, kind: Kind) -> Result<Self, DriverError> {
        let open = match kind {
            Kind::Pub => nng.nng_pub0_open,
            Kind::Sub => nng.nng_sub0_open,
            Kind::Push => nng.nng_push0_open,
            Kind::Pull => nng.nng_pull0_open,
            Kind::Req => nng.nng_req0_open,
            Kind::Rep => nng.nng_rep0_open,
            Kind::Pair => nng.nng_pair0_open,
            Kind::Surveyor => nng.nng_surveyor0_open,
            Kind::Respondent => nng.nng_respondent0_open,
            Kind::Bus => nng.nng_bus0_open,
            other => return Err(DriverError::new(format!("nng has no socket {other:?}"))),
        };
        let mut socket = Id(0);
        // SAFETY: the call writes a socket to `socket`, which outlives it.
        nng.check(unsafe { open(&mut socket) }, || "open a socket".into())?;
        Ok(NngSocket {
            nng: nng.clone(),
            socket,
            kind,
            message: std::ptr::null_mut(),
            reply_fd: -1,
            endpoint: None,
            applied: Map::new(),
        })
    }

    fn configure(&mut self, spec: &SocketSpec<'_>) -> Result<(), DriverError> {
        let send_ms = if self.kind == Kind::Rep { REPLY_MS } else { WAIT_MS };
        let receive_ms = spec.receive_ms();
        for (option, value) in
            [(SENDTIMEO, send_ms), (RECVTIMEO, receive_ms), (RECONNMINT, RECONNECT_MS), (RECONNMAXT, RECONNECT_MS)]
        {
            self.set_ms(option, value)?;
        }
        // SAFETY: the option's name is NUL-terminated.
        let code = unsafe { (self.nng.nng_socket_set_size)(self.socket, RECVMAXSZ.as_ptr(), 0) };
        self.nng.check(code, || "lift the limit on message size".into())?;
        match self.kind {
            Kind::Sub => {
                // SAFETY: the option's name is NUL-terminated, and the prefix to match is empty.
                let code =
                    unsafe { (self.nng.nng_socket_set)(self.socket, SUBSCRIBE.as_ptr(), c"".as_ptr().cast(), 0) };
                self.nng.check(code, || "subscribe".into())?;
            }
            Kind::Req | Kind::Surveyor => {
                self.set_ms(if self.kind == Kind::Req { RESENDTIME } else { SURVEYTIME }, i32::MAX)?;
                // SAFETY: the option's name is NUL-terminated, and the result goes to a field that outlives the call.
                let code = unsafe { (self.nng.nng_socket_get_int)(self.socket, RECVFD.as_ptr(), &mut self.reply_fd) };
                self.nng.check(code, || "get the file descriptor for replies".into())?;
            }
            _ => {}
        }
        self.set_queues(clamped(queue_messages(spec.options, spec.payload_bytes), QUEUE_MAX))?;
        self.applied.insert("linger".into(), "unsupported".into());
        Ok(())
    }

    /// Sets the queues that this kind of socket has, and records all of them.
    fn set_queues(&mut self, queue: c_int) -> Result<(), DriverError> {
        let has = match self.kind {
            Kind::Push | Kind::Pub => [true, false],
            Kind::Sub => [false, true],
            Kind::Pair | Kind::Bus => [true, true],
            _ => [false, false],
        };
        for ((name, option), has) in
            [("send_queue_messages", SENDBUF), ("receive_queue_messages", RECVBUF)].into_iter().zip(has)
        {
            let value = if has { self.set_queue(option, queue)? } else { None };
            self.applied.insert(name.into(), value.map_or("unsupported".into(), Value::from));
        }
        Ok(())
    }

    /// Returns the length that a queue took; `None` if the library has no such queue.
    fn set_queue(&self, option: &CStr, queue: c_int) -> Result<Option<c_int>, DriverError> {
        let what = || format!("set {} to {queue} messages", option.to_string_lossy());
        // SAFETY: the option's name is NUL-terminated.
        match unsafe { (self.nng.nng_socket_set_int)(self.socket, option.as_ptr(), queue) } {
            0 => {}
            ENOTSUP => return Ok(None),
            code => return Err(self.nng.error(code, &what())),
        }
        let mut value = 0;
        // SAFETY: as above; the result goes to `value`, which outlives the call.
        let code = unsafe { (self.nng.nng_socket_get_int)(self.socket, option.as_ptr(), &mut value) };
        self.nng.check(code, what)?;
        Ok(Some(value))
    }

    fn set_ms(&self, option: &CStr, value: i32) -> Result<(), DriverError> {
        // SAFETY: the option's name is NUL-terminated.
        let code = unsafe { (self.nng.nng_socket_set_ms)(self.socket, option.as_ptr(), value) };
        self.nng.check(code, || format!("set {} to {value} ms", option.to_string_lossy()))
    }

    fn bind(&mut self, endpoint: &str, nodelay: Option<bool>) -> Result<bool, DriverError> {
        let address = shared_library::c_endpoint(endpoint)?;
        let what = || format!("bind {endpoint}");
        let mut listener = Id(0);
        // SAFETY: the address is NUL-terminated, and the result goes to `listener`, which outlives the call.
        let code = unsafe { (self.nng.nng_listener_create)(&mut listener, self.socket, address.as_ptr()) };
        self.nng.check(code, what)?;
        if let Some(mut on) = nodelay {
            // SAFETY: the option's name is NUL-terminated.
            self.nng.check(unsafe { (self.nng.nng_listener_set_bool)(listener, TCP_NODELAY.as_ptr(), on) }, what)?;
            // SAFETY: as above; the result goes to `on`, which outlives the call.
            let code = unsafe { (self.nng.nng_listener_get_bool)(listener, TCP_NODELAY.as_ptr(), &mut on) };
            self.nng.check(code, what)?;
            self.applied.insert("tcp_nodelay".into(), on.into());
        }
        // SAFETY: takes only numbers.
        match unsafe { (self.nng.nng_listener_start)(listener, 0) } {
            0 => Ok(true),
            EADDRINUSE => {
                // SAFETY: the listener did not start, and this is its last use.
                unsafe { (self.nng.nng_listener_close)(listener) };
                Ok(false)
            }
            code => Err(self.nng.error(code, &what())),
        }
    }

    /// Starts to connect; the library keeps trying in the background, also over inproc.
    fn connect(&mut self, endpoint: &str, nodelay: Option<bool>) -> Result<(), DriverError> {
        let address = shared_library::c_endpoint(endpoint)?;
        let what = || format!("connect to {endpoint}");
        let mut dialer = Id(0);
        // SAFETY: the address is NUL-terminated, and the result goes to `dialer`, which outlives the call.
        self.nng.check(unsafe { (self.nng.nng_dialer_create)(&mut dialer, self.socket, address.as_ptr()) }, what)?;
        if let Some(mut on) = nodelay {
            // SAFETY: the option's name is NUL-terminated.
            self.nng.check(unsafe { (self.nng.nng_dialer_set_bool)(dialer, TCP_NODELAY.as_ptr(), on) }, what)?;
            // SAFETY: as above; the result goes to `on`, which outlives the call.
            self.nng.check(unsafe { (self.nng.nng_dialer_get_bool)(dialer, TCP_NODELAY.as_ptr(), &mut on) }, what)?;
            self.applied.insert("tcp_nodelay".into(), on.into());
        }
        // SAFETY: takes only numbers.
        self.nng.check(unsafe { (self.nng.nng_dialer_start)(dialer, NONBLOCK) }, what)
    }

    /// True if the socket waits for replies: a wait that times out would abandon them.
    fn asks(&self) -> bool {
        matches!(self.kind, Kind::Req | Kind::Surveyor)
    }

    fn free_message(&mut self) {
        if !self.message.is_null() {
            // SAFETY: the message came from nng_recvmsg, is owned here, and is forgotten before anyone could use it again.
            unsafe { (self.nng.nng_msg_free)(self.message) };
            self.message = std::ptr::null_mut();
        }
    }

    fn receive_message(&mut self, flags: c_int) -> c_int {
        // SAFETY: the library writes the address of a message, which is owned here from then on, to the given field.
        unsafe { (self.nng.nng_recvmsg)(self.socket, &mut self.message, flags) }
    }

    /// Receives a reply without a time limit of the library.
    fn receive_reply(&mut self) -> c_int {
        let code = self.receive_message(NONBLOCK);
        if code != EAGAIN {
            return code;
        }
        let mut readable = libc::pollfd { fd: self.reply_fd, events: libc::POLLIN, revents: 0 };
        // SAFETY: one pollfd, which outlives the call. Whatever ends the wait, the next line checks what is there.
        unsafe { libc::poll(&mut readable, 1, WAIT_MS) };
        self.receive_message(NONBLOCK)
    }
}

impl Socket for NngSocket {
    fn endpoint(&self) -> Option<&str> {
        self.endpoint.as_deref()
    }

    fn send(&mut self, message: &[u8]) -> Result<Sent, DriverError> {
        // SAFETY: without NNG_FLAG_ALLOC the library only reads the bytes, and copies them before it returns.
        match unsafe { (self.nng.nng_send)(self.socket, message.as_ptr().cast(), message.len(), 0) } {
            0 => Ok(Sent::Accepted),
            // The library has abandoned the reply, so a retry is useless.
            ETIMEDOUT if self.kind == Kind::Rep => Ok(Sent::Accepted),
            ETIMEDOUT | EAGAIN | EINTR => Ok(Sent::Full),
            code => Err(self.nng.error(code, "send")),
        }
    }

    fn recv(&mut self) -> Result<Option<&[u8]>, DriverError> {
        self.free_message();
        let code = if self.asks() { self.receive_reply() } else { self.receive_message(0) };
        match code {
            0 => {
                // SAFETY: the message was just received, and is freed by the next call only; that needs `&mut self`.
                let (body, length) =
                    unsafe { ((self.nng.nng_msg_body)(self.message), (self.nng.nng_msg_len)(self.message)) };
                // SAFETY: as above; the body has `length` bytes.
                Ok(Some(unsafe { std::slice::from_raw_parts(body.cast(), length) }))
            }
            ETIMEDOUT | EAGAIN | EINTR => Ok(None),
            // No request is active, so no reply is due and none can arrive.
            ESTATE if self.asks() => {
                std::thread::sleep(shared_library::WAIT);
                Ok(None)
            }
            code => Err(self.nng.error(code, "receive")),
        }
    }

    fn loses_requests(&self) -> bool {
        self.kind == Kind::Surveyor
    }

    fn applied(&self) -> Map<String, Value> {
        self.applied.clone()
    }
}

impl Drop for NngSocket {
    fn drop(&mut self) {
        self.free_message();
        close(self.nng.clone(), self.socket);
    }
}

/// Closes a socket without waiting longer than [`CLOSE`]: in releases before 1.8
/// nng_close may hang for ever if a message arrives meanwhile (nanomsg/nng issue 1813).
/// Such a close is left to its thread until the process ends.
fn close(nng: Arc<Nng>, socket: Id) {
    // Once one close hangs, later ones hang behind it; each still starts, so that peers
    // notice it.
    static HANGS: AtomicBool = AtomicBool::new(false);
    let (done, closed) = mpsc::channel();
    let closer = std::thread::Builder::new().name("nng-close".into()).spawn(move || {
        // SAFETY: takes a number; this is the socket's last use.
        unsafe { (nng.nng_close)(socket) };
        done.send(()).ok();
    });
    let patience = if HANGS.load(Ordering::Relaxed) { shared_library::WAIT } else { CLOSE };
    if closer.is_ok() && closed.recv_timeout(patience) == Err(RecvTimeoutError::Timeout) {
        HANGS.store(true, Ordering::Relaxed);
    }
}
