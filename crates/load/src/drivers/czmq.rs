//! CZMQ (libczmq 4): libzmq through the high-level C interface that its authors
//! recommend.
//!
//! Messages are frames: one is made for each message that is sent, and one is returned
//! for each that is received, as in the library's own examples. Sockets, queues and waits
//! are those of [`super::zeromq`], so that only the layer differs. The process has one
//! context of the library; its signal handlers are disabled.

use super::interrupt::{Calls, receive_limit};
use super::shared_library::{self, Kind, Names, SharedLibrary, bind_free, clamped, function_table};
use super::socket::{Driver, DriverError, Sent, Socket, SocketSpec, TwoWays};
use nix::errno::Errno;
use pubmark_model::options::{OptionValues, Options, queue_messages};
use pubmark_model::units::format_time;
use pubmark_model::workload::Transport;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::{Arc, OnceLock};

const NAMES: Names =
    Names { system: "zeromq-czmq", library: "libczmq", sonames: &["libczmq.so.4", "libczmq.so"], debian: "libczmq4" };

/// Time between two attempts to connect, ms.
const RECONNECT_MS: c_int = 10;

/// Sockets that one process may open, as in [`super::zeromq`].
const SOCKETS: usize = 16_383;

/// The I/O threads of the process's context, set once; `None` if the context could not be
/// made.
static CONTEXT: OnceLock<Option<usize>> = OnceLock::new();

/// libzmq's error number for an operation that a requester cannot do now.
const EFSM: i32 = 156_384_712 + 51;

function_table! {
    /// The functions of libczmq that are used, by their names in its headers, and one of
    /// libzmq.
    struct Czmq {
        fn zmq_version(*mut c_int, *mut c_int, *mut c_int);
        fn zmq_strerror(c_int) -> *const c_char;
        fn zsys_version(*mut c_int, *mut c_int, *mut c_int);
        fn zsys_handler_set(*const c_void);
        fn zsys_init() -> *mut c_void;
        fn zsys_set_logstream(*mut c_void);
        fn zsys_set_io_threads(usize);
        fn zsys_set_max_sockets(usize);
        fn zsock_new(c_int) -> *mut c_void;
        fn zsock_destroy(*mut *mut c_void);
        fn zsock_attach(*mut c_void, *const c_char, bool) -> c_int;
        fn zsock_set_sndhwm(*mut c_void, c_int);
        fn zsock_set_rcvhwm(*mut c_void, c_int);
        fn zsock_set_linger(*mut c_void, c_int);
        fn zsock_set_rcvtimeo(*mut c_void, c_int);
        fn zsock_set_reconnect_ivl(*mut c_void, c_int);
        fn zsock_set_maxmsgsize(*mut c_void, c_int);
        fn zsock_set_sndbuf(*mut c_void, c_int);
        fn zsock_set_rcvbuf(*mut c_void, c_int);
        fn zsock_set_subscribe(*mut c_void, *const c_char);
        fn zsock_set_req_relaxed(*mut c_void, c_int);
        fn zsock_sndhwm(*mut c_void) -> c_int;
        fn zsock_rcvhwm(*mut c_void) -> c_int;
        fn zsock_linger(*mut c_void) -> c_int;
        fn zframe_new(*const c_void, usize) -> *mut c_void;
        fn zframe_destroy(*mut *mut c_void);
        fn zframe_send(*mut *mut c_void, *mut c_void, c_int) -> c_int;
        fn zframe_recv(*mut c_void) -> *mut c_void;
        fn zframe_data(*mut c_void) -> *const u8;
        fn zframe_size(*mut c_void) -> usize;
    }
}

impl Czmq {
    fn error(&self, what: &str) -> DriverError {
        let number = Errno::last_raw();
        let advice = match Errno::from_raw(number) {
            Errno::EMFILE => "; raise the limit on open files (`ulimit -n`), or play fewer clients in a process",
            _ => "",
        };
        // SAFETY: zmq_strerror returns a constant string for any number.
        let reason = unsafe { shared_library::text((self.zmq_strerror)(number)) };
        DriverError::new(format!("czmq: cannot {what}: {reason}{advice}"))
    }
}

struct CzmqDriver {
    czmq: Arc<Czmq>,
    versions: Map<String, Value>,
    io_threads: usize,
}

/// Loads libczmq and makes its context.
pub(super) fn load(options: &Options) -> Result<Box<dyn Driver>, DriverError> {
    if options.get("tcp_nodelay") == Some(&Value::Bool(false)) {
        return Err(DriverError::new(
            "czmq: TCP_NODELAY is always on and the library cannot turn it off: leave tcp_nodelay at true",
        ));
    }
    let io_threads = options.get("io_threads").map_or(1, |_| options.number("io_threads")) as usize;
    if io_threads == 0 {
        return Err(DriverError::new(
            "czmq: io_threads is 0, which leaves no thread to move messages: set it to 1 or more",
        ));
    }
    let library = SharedLibrary::open(&NAMES, options)?;
    let czmq = Czmq::load(&library)?;
    let version = |of: unsafe extern "C" fn(*mut c_int, *mut c_int, *mut c_int)| {
        let (mut major, mut minor, mut patch) = (0, 0, 0);
        // SAFETY: both functions write three ints, which outlive the call.
        unsafe { of(&mut major, &mut minor, &mut patch) };
        (major, format!("{major}.{minor}.{patch}"))
    };
    let (major, own) = version(czmq.zsys_version);
    if major != 4 {
        return Err(library.refuse(&format!("is libczmq {own}, and this driver speaks to libczmq 4")));
    }
    let mut versions = library.keep(&own, czmq.zsys_version as *const c_void);
    versions.insert("libzmq".into(), version(czmq.zmq_version).1.into());
    // SAFETY: these take plain values, and a null handler means none. The first call makes the one context.
    let made = *CONTEXT.get_or_init(|| unsafe {
        let made = !(czmq.zsys_init)().is_null();
        if made {
            (czmq.zsys_handler_set)(std::ptr::null());
            // The library would log to standard output, which carries the protocol.
            (czmq.zsys_set_logstream)(std::ptr::null_mut());
            (czmq.zsys_set_io_threads)(io_threads);
            (czmq.zsys_set_max_sockets)(SOCKETS);
        }
        made.then_some(io_threads)
    });
    if made != Some(io_threads) {
        return Err(czmq.error(&format!("have {io_threads} I/O threads in the one context of this process")));
    }
    Ok(Box::new(CzmqDriver { czmq: Arc::new(czmq), versions, io_threads }))
}

impl Driver for CzmqDriver {
    fn versions(&self) -> Map<String, Value> {
        self.versions.clone()
    }

    fn made(&self) -> BTreeMap<String, String> {
        shared_library::made(&self.versions, "send: into a frame made for it; receive: none, a frame each")
    }

    fn open(&mut self, spec: &SocketSpec<'_>) -> Result<Box<dyn Socket>, DriverError> {
        TwoWays::open(spec, &mut |spec| self.open_one(spec))
    }
}

impl CzmqDriver {
    fn open_one(&self, spec: &SocketSpec<'_>) -> Result<Box<dyn Socket>, DriverError> {
        shared_library::check_spec("czmq", spec)?;
        let mut socket = CzmqSocket::new(&self.czmq, Kind::of(spec, &[])?)?;
        socket.configure(spec, self.io_threads);
        if let Some(endpoint) = spec.bind {
            socket.endpoint = Some(bind_free(endpoint, |candidate| socket.attach(&format!("@{candidate}")))?);
        }
        for endpoint in spec.connect {
            if !socket.attach(&format!(">{endpoint}"))? {
                return Err(self.czmq.error(&format!("connect to {endpoint}")));
            }
        }
        Ok(Box::new(socket))
    }
}

struct CzmqSocket {
    czmq: Arc<Czmq>,
    socket: *mut c_void,
    /// Calls that may wait.
    calls: Calls,
    kind: Kind,
    /// The last frame received, owned; null if none.
    frame: *mut c_void,
    endpoint: Option<String>,
    applied: Map<String, Value>,
}

// SAFETY: a socket of libzmq may go from thread to thread with a full memory fence between, which handing over a value is; a frame is memory.
unsafe impl Send for CzmqSocket {}

impl CzmqSocket {
    fn new(czmq: &Arc<Czmq>, kind: Kind) -> Result<Self, DriverError> {
        let calls = Calls::new()?;
        let number = match kind {
            Kind::Pub => 1,
            Kind::Sub => 2,
            Kind::Req => 3,
            Kind::Rep => 4,
            Kind::Pull => 7,
            Kind::Push => 8,
            other => return Err(DriverError::new(format!("czmq has no socket {other:?}"))),
        };
        // SAFETY: takes a number; null, the call's failure, is checked for.
        let socket = unsafe { (czmq.zsock_new)(number) };
        if socket.is_null() {
            return Err(czmq.error("open a socket"));
        }
        let (endpoint, applied) = (None, Map::new());
        Ok(CzmqSocket { czmq: czmq.clone(), socket, calls, kind, frame: std::ptr::null_mut(), endpoint, applied })
    }

    fn configure(&mut self, spec: &SocketSpec<'_>, io_threads: usize) {
        let queue = clamped(queue_messages(spec.options, spec.payload_bytes), c_int::MAX);
        let linger = clamped(spec.options.time_ns("linger") / 1_000_000, c_int::MAX);
        let buffer = clamped(spec.options.number("socket_buffer"), c_int::MAX);
        let (czmq, socket) = (&self.czmq, self.socket);
        // SAFETY: the socket is live, and the text is NUL-terminated.
        let (send, receive, linger_ms) = unsafe {
            (czmq.zsock_set_sndhwm)(socket, queue);
            (czmq.zsock_set_rcvhwm)(socket, queue);
            (czmq.zsock_set_linger)(socket, linger);
            (czmq.zsock_set_rcvtimeo)(socket, receive_limit(spec));
            (czmq.zsock_set_reconnect_ivl)(socket, RECONNECT_MS);
            (czmq.zsock_set_maxmsgsize)(socket, -1);
            if buffer > 0 && spec.transport != Transport::Inproc {
                (czmq.zsock_set_sndbuf)(socket, buffer);
                (czmq.zsock_set_rcvbuf)(socket, buffer);
            }
            match self.kind {
                Kind::Sub => (czmq.zsock_set_subscribe)(socket, c"".as_ptr()),
                Kind::Req => (czmq.zsock_set_req_relaxed)(socket, 1),
                _ => {}
            }
            ((czmq.zsock_sndhwm)(socket), (czmq.zsock_rcvhwm)(socket), (czmq.zsock_linger)(socket))
        };
        let mut applied = Map::new();
        let linger_ns = u64::try_from(linger_ms).unwrap_or_default() * 1_000_000;
        applied.insert("linger".into(), format_time(linger_ns).into());
        applied.insert("io_threads".into(), io_threads.into());
        applied.insert("send_queue_messages".into(), send.into());
        applied.insert("receive_queue_messages".into(), receive.into());
        if spec.transport == Transport::Tcp {
            applied.insert("tcp_nodelay".into(), true.into());
        }
        self.applied = applied;
    }

    /// Binds (`@`) or connects (`>`); false if the address is in use.
    fn attach(&self, endpoint: &str) -> Result<bool, DriverError> {
        let address = shared_library::c_endpoint(endpoint)?;
        let address: &CStr = &address;
        // SAFETY: the socket is live and the address NUL-terminated.
        match unsafe { (self.czmq.zsock_attach)(self.socket, address.as_ptr(), false) } {
            0 => Ok(true),
            _ if Errno::last() == Errno::EADDRINUSE => Ok(false),
            _ => Err(self.czmq.error(&format!("bind or connect {}", &endpoint[1..]))),
        }
    }

    fn free_frame(&mut self) {
        if !self.frame.is_null() {
            // SAFETY: the frame came from the library, is owned here, and the call sets the pointer to null.
            unsafe { (self.czmq.zframe_destroy)(&mut self.frame) };
        }
    }
}

impl Socket for CzmqSocket {
    fn endpoint(&self) -> Option<&str> {
        self.endpoint.as_deref()
    }

    fn send(&mut self, message: &[u8]) -> Result<Sent, DriverError> {
        // SAFETY: the library copies the bytes before it returns.
        let mut frame = unsafe { (self.czmq.zframe_new)(message.as_ptr().cast(), message.len()) };
        if frame.is_null() {
            return Err(DriverError::new("czmq: cannot make a frame: out of memory"));
        }
        let send = self.czmq.zframe_send;
        // SAFETY: frame and socket are live. A frame that was sent belongs to the library, which sets the
        // pointer to null.
        if self.calls.make(|| unsafe { send(&mut frame, self.socket, 0) }) == 0 {
            return Ok(Sent::Accepted);
        }
        let error = Errno::last();
        // SAFETY: a frame that was not sent is still owned here, or null.
        unsafe { (self.czmq.zframe_destroy)(&mut frame) };
        match error {
            Errno::EAGAIN | Errno::EINTR => Ok(Sent::Full),
            _ => Err(self.czmq.error("send")),
        }
    }

    fn recv(&mut self) -> Result<Option<&[u8]>, DriverError> {
        self.free_frame();
        let receive = self.czmq.zframe_recv;
        // SAFETY: the socket is live; the frame, or null, is owned here from then on.
        self.frame = self.calls.make(|| unsafe { receive(self.socket) });
        if !self.frame.is_null() {
            // SAFETY: the frame is live, and freed by the next call only; that needs `&mut self`.
            let (data, size) = unsafe { ((self.czmq.zframe_data)(self.frame), (self.czmq.zframe_size)(self.frame)) };
            // SAFETY: as above; the frame has `size` bytes.
            return Ok(Some(unsafe { std::slice::from_raw_parts(data, size) }));
        }
        match Errno::last_raw() {
            // A late reply was taken for the expected one, so no reply is due and none can
            // arrive.
            EFSM if self.kind == Kind::Req => {
                std::thread::sleep(shared_library::WAIT);
                Ok(None)
            }
            number => match Errno::from_raw(number) {
                Errno::EAGAIN | Errno::EINTR => Ok(None),
                _ => Err(self.czmq.error("receive")),
            },
        }
    }

    fn applied(&self) -> Map<String, Value> {
        self.applied.clone()
    }

    fn crash(self: Box<Self>) {
        // SAFETY: the socket is live. Closing then discards what is queued.
        unsafe { (self.czmq.zsock_set_linger)(self.socket, 0) };
    }
}

impl Drop for CzmqSocket {
    fn drop(&mut self) {
        self.free_frame();
        // SAFETY: this is the socket's last use. Closing returns at once; what lingers goes on in the background.
        unsafe { (self.czmq.zsock_destroy)(&mut self.socket) };
    }
}
