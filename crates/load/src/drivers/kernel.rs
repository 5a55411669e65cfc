//! The floor: the same bytes in the same patterns over kernel transports (TCP, Unix
//! sockets, UDP) or an in-process ring, without a messaging library.

mod datagram;
mod ring;
mod stream;
mod wire;

use super::build_info;
use super::socket::{Driver, DriverError, Sent, Socket, SocketSpec, TwoWays, WAIT_MS};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{Shutdown, shutdown};
use pubmark_model::options::{OptionValues, Options};
use pubmark_model::protocol::Role;
use pubmark_model::workload::Transport;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use wire::{Wire, first_free, unsupported};

/// Peers that have connected and that the socket has not taken over yet.
#[derive(Default)]
struct Unassigned {
    count: AtomicUsize,
    peers: Mutex<Vec<Box<dyn Wire>>>,
}

impl Unassigned {
    fn add(&self, peer: Box<dyn Wire>) {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner).push(peer);
        self.count.fetch_add(1, Ordering::Release);
    }

    fn take(&self) -> Vec<Box<dyn Wire>> {
        let mut peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        self.count.store(0, Ordering::Release);
        std::mem::take(&mut peers)
    }
}

/// Stops accepting peers.
type EndListening = Box<dyn FnOnce() + Send>;

/// Bound endpoints of this process by name, to which connecting clients are passed.
type Listeners = HashMap<String, (Arc<Unassigned>, ring::Wakeup)>;

struct Kernel {
    listeners: Listeners,
}

/// Makes the driver.
pub fn load(_options: &Options) -> Result<Box<dyn Driver>, DriverError> {
    Ok(Box::new(Kernel { listeners: Listeners::new() }))
}

impl Driver for Kernel {
    fn versions(&self) -> Map<String, Value> {
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        [("library".to_owned(), "kernel".into()), ("version".to_owned(), release.trim().into())].into_iter().collect()
    }

    fn made(&self) -> BTreeMap<String, String> {
        build_info::in_rust(&[
            ("binding", "none: system calls, or a ring in memory"),
            ("library", "none"),
            ("call", "blocking"),
            ("copies", "send: into the kernel's memory, or the ring's; receive: out of the kernel's, or none"),
        ])
    }

    fn open(&mut self, spec: &SocketSpec<'_>) -> Result<Box<dyn Socket>, DriverError> {
        TwoWays::open(spec, &mut |spec| self.open_one(spec))
    }
}

impl Kernel {
    fn open_one(&mut self, spec: &SocketSpec<'_>) -> Result<Box<dyn Socket>, DriverError> {
        if spec.options.text("library").is_some() {
            return Err(DriverError::new("kernel: there is no library to load: remove the option `library`"));
        }
        let unassigned = Arc::new(Unassigned::default());
        let wakeup = ring::Wakeup::new()?;
        let (mut endpoint, mut listening) = (None, None);
        if let Some(bind) = spec.bind {
            let bound = self.bind(spec, bind, &unassigned, &wakeup);
            let bound = bound.map_err(|error| DriverError::new(format!("kernel: cannot bind {bind}: {error}")))?;
            (endpoint, listening) = (Some(bound.0), Some(bound.1));
        }
        for to in spec.connect {
            let wire = self
                .connect(spec, to, &wakeup)
                .map_err(|error| DriverError::new(format!("kernel: cannot connect to {to}: {error}")))?;
            unassigned.add(wire);
        }
        Ok(Box::new(KernelSocket {
            endpoint,
            listening,
            unassigned,
            wakeup,
            wires: Vec::new(),
            competing: spec.pattern.competing(),
            answering: spec.role == Role::Replier,
            spin: spec.spin,
            last: 0,
            orderly: spec.transport != Transport::Udp,
            applied: applied(spec),
        }))
    }
}

fn applied(spec: &SocketSpec<'_>) -> Map<String, Value> {
    let mut applied = Map::new();
    match spec.transport {
        Transport::Tcp => {
            applied.insert("tcp_nodelay".into(), spec.options.flag("tcp_nodelay").into());
        }
        Transport::Inproc => {
            applied.insert("ring_messages".into(), ring::capacity(spec).into());
        }
        Transport::Ipc | Transport::Udp => {}
    }
    let coalesce = spec.options.number("coalesce");
    let streams = matches!(spec.transport, Transport::Tcp | Transport::Ipc) && spec.unthrottled;
    if streams {
        applied.insert("coalesce".into(), coalesce.into());
    }
    match streams && stream::gathers(spec.payload_bytes, coalesce) {
        true => applied.insert("batch_bytes".into(), coalesce.into()),
        false => applied.insert("batch_messages".into(), 1.into()),
    };
    if spec.transport != Transport::Inproc {
        applied.insert("socket_buffer".into(), spec.options.number("socket_buffer").into());
    }
    applied
}

impl Kernel {
    fn bind(
        &mut self,
        spec: &SocketSpec<'_>,
        at: &str,
        unassigned: &Arc<Unassigned>,
        wakeup: &ring::Wakeup,
    ) -> io::Result<(String, EndListening)> {
        let unassigned = unassigned.clone();
        let setup = stream::Setup::new(spec);
        match spec.transport {
            Transport::Inproc => {
                self.listeners.insert(at.to_owned(), (unassigned, wakeup.clone()));
                Ok((at.to_owned(), Box::new(|| {})))
            }
            Transport::Ipc => {
                let path = at.strip_prefix("ipc://").ok_or_else(|| unsupported(at))?;
                let listener = Arc::new(UnixListener::bind(path)?);
                let end = end_of(&listener);
                accept(move || listener.accept().map(|(peer, _)| peer), move |peer| setup.unix(peer), unassigned)?;
                Ok((at.to_owned(), end))
            }
            Transport::Tcp => {
                let listener = Arc::new(first_free(at, TcpListener::bind)?);
                let endpoint = format!("tcp://{}", listener.local_addr()?);
                let end = end_of(&listener);
                accept(move || listener.accept().map(|(peer, _)| peer), move |peer| setup.tcp(peer), unassigned)?;
                Ok((endpoint, end))
            }
            Transport::Udp if spec.role == Role::Subscriber => {
                let (endpoint, wire) = datagram::hear(spec, at)?;
                unassigned.add(wire);
                Ok((endpoint, Box::new(|| {})))
            }
            Transport::Udp => {
                let closed = Arc::new(AtomicBool::new(false));
                let (endpoint, wait) = datagram::bind(spec, at, closed.clone())?;
                accept(wait, |peer| Ok(Box::new(peer) as Box<dyn Wire>), unassigned)?;
                Ok((endpoint, Box::new(move || closed.store(true, Ordering::Release))))
            }
        }
    }

    fn connect(&mut self, spec: &SocketSpec<'_>, to: &str, wakeup: &ring::Wakeup) -> io::Result<Box<dyn Wire>> {
        let setup = stream::Setup::new(spec);
        match spec.transport {
            Transport::Inproc => {
                let (peers, their_wakeup) = self
                    .listeners
                    .get(to)
                    .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "nobody has bound it"))?;
                let (mine, theirs) = ring::pair(ring::capacity(spec), wakeup, their_wakeup);
                peers.add(Box::new(theirs));
                Ok(Box::new(mine))
            }
            Transport::Ipc => {
                setup.unix(UnixStream::connect(to.strip_prefix("ipc://").ok_or_else(|| unsupported(to))?)?)
            }
            Transport::Tcp => setup.tcp(TcpStream::connect(to.strip_prefix("tcp://").ok_or_else(|| unsupported(to))?)?),
            Transport::Udp => datagram::connect(spec, to),
        }
    }
}

/// Returns a function that ends the thread waiting at a listener: from then on its
/// `accept` fails.
fn end_of<L: AsRawFd + Send + Sync + 'static>(listener: &Arc<L>) -> EndListening {
    let listener = listener.clone();
    Box::new(move || {
        let _ = shutdown(listener.as_raw_fd(), Shutdown::Both);
    })
}

/// Accepts peers on a thread of its own until its listener is shut down.
fn accept<P: 'static>(
    mut wait: impl FnMut() -> io::Result<P> + Send + 'static,
    make: impl Fn(P) -> io::Result<Box<dyn Wire>> + Send + 'static,
    unassigned: Arc<Unassigned>,
) -> io::Result<()> {
    let accepting = move || {
        while let Ok(peer) = wait() {
            // A peer that disconnects before it is set up needs no wire.
            if let Ok(wire) = make(peer) {
                unassigned.add(wire);
            }
        }
    };
    thread::Builder::new().name("accept".into()).stack_size(128 << 10).spawn(accepting).map(|_| ())
}

struct KernelSocket {
    endpoint: Option<String>,
    /// Ends the thread that accepts peers, if the socket was bound.
    listening: Option<EndListening>,
    unassigned: Arc<Unassigned>,
    wakeup: ring::Wakeup,
    wires: Vec<Box<dyn Wire>>,
    competing: bool,
    answering: bool,
    /// True if it polls instead of sleeping while no message is there.
    spin: bool,
    last: usize,
    orderly: bool,
    applied: Map<String, Value>,
}

impl KernelSocket {
    #[inline]
    fn admit(&mut self) {
        if self.unassigned.count.load(Ordering::Acquire) > 0 {
            self.wires.append(&mut self.unassigned.take());
        }
    }

    fn send_to_one(&mut self, message: &[u8]) -> io::Result<Sent> {
        for _ in 0..self.wires.len() {
            self.last = (self.last + 1) % self.wires.len();
            if self.wires[self.last].offer(message)? == Sent::Accepted {
                return Ok(Sent::Accepted);
            }
        }
        Ok(Sent::Full)
    }

    fn idle(&self) {
        self.wakeup.wait();
    }
}

impl Socket for KernelSocket {
    fn endpoint(&self) -> Option<&str> {
        self.endpoint.as_deref()
    }

    fn send(&mut self, message: &[u8]) -> Result<Sent, DriverError> {
        self.admit();
        if self.wires.is_empty() {
            // Like PUB without a subscriber: the message is dropped. The other kinds wait
            // for a peer.
            if self.competing || self.answering {
                self.idle();
                return Ok(Sent::Full);
            }
            return Ok(Sent::Accepted);
        }
        let sent = if self.competing {
            self.send_to_one(message)
        } else if self.answering {
            let last = self.last.min(self.wires.len() - 1);
            self.wires[last].offer(message)
        } else {
            self.send_to_all(message)
        };
        sent.map_err(|error| DriverError::new(format!("kernel: send failed: {error}")))
    }

    fn flush(&mut self) -> Result<(), DriverError> {
        let flushed = self.wires.iter_mut().try_for_each(|wire| wire.flush());
        flushed.map_err(|error| DriverError::new(format!("kernel: send failed: {error}")))
    }

    fn recv(&mut self) -> Result<Option<&[u8]>, DriverError> {
        self.admit();
        let failed = |error: io::Error| DriverError::new(format!("kernel: receive failed: {error}"));
        if self.wires.is_empty() {
            self.idle();
            return Ok(None);
        }
        if self.wires.len() == 1 {
            self.last = 0;
            let taken = self.wires[0].take(!self.spin).map_err(failed)?;
            return Ok(taken.then(|| self.wires[0].message()));
        }
        for round in 0..2 {
            for _ in 0..self.wires.len() {
                self.last = (self.last + 1) % self.wires.len();
                if self.wires[self.last].take(false).map_err(failed)? {
                    return Ok(Some(self.wires[self.last].message()));
                }
            }
            if self.spin {
                break;
            }
            if round == 0 {
                self.wait_for_any();
            }
        }
        Ok(None)
    }

    fn orderly(&self) -> bool {
        self.orderly
    }

    fn applied(&self) -> Map<String, Value> {
        self.applied.clone()
    }

    fn crash(mut self: Box<Self>) {
        if let Some(end) = self.listening.take() {
            end();
        }
    }
}

impl KernelSocket {
    /// Sends the message to every peer, or to none yet: a peer with an unfinished earlier
    /// message holds all of them back.
    fn send_to_all(&mut self, message: &[u8]) -> io::Result<Sent> {
        let mut gone = false;
        while self.last < self.wires.len() {
            match self.wires[self.last].offer(message) {
                Ok(Sent::Full) => return Ok(Sent::Full),
                Ok(Sent::Accepted) => {}
                Err(error) => return Err(error),
            }
            gone |= self.wires[self.last].closed();
            self.last += 1;
        }
        self.last = 0;
        if gone {
            self.wires.retain(|wire| !wire.closed());
        }
        Ok(Sent::Accepted)
    }

    fn wait_for_any(&self) {
        let mut fds: Vec<PollFd<'_>> =
            self.wires.iter().filter_map(|wire| wire.fd()).map(|fd| PollFd::new(fd, PollFlags::POLLIN)).collect();
        if fds.is_empty() {
            self.idle();
        } else {
            let _ = poll(&mut fds, PollTimeout::from(WAIT_MS as u8));
        }
    }
}
