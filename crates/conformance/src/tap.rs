//! The other side: bare sockets of the library, each on a thread of its own,
//! that keep every message with its instant, or play what is written for them.

use crate::subject::Subject;
use crate::wrong::Wrong;
use pubmark_host::clock;
use pubmark_load::drivers::{
    self, socket::Driver, socket::DriverError, socket::Sent, socket::Socket, socket::SocketSpec,
};
use pubmark_model::header::{END, Header, PROBE, pattern};
use pubmark_model::options::Options;
use pubmark_model::protocol::Role;
use pubmark_model::units::{MILLISECOND, Ns};
use pubmark_model::workload::{Rate, Workload};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Between two probes or end markers.
const MARKER_EVERY: Duration = Duration::from_millis(5);

/// What the kernel keeps for a narrow socket, bytes.
const NARROW_BYTES: u64 = 128 << 10;

/// The most of a message that is kept: what is checked of it, bytes.
const KEPT: usize = 64 << 10;

/// A message as it came.
#[derive(Clone, Debug)]
pub struct Heard {
    /// When it was taken.
    pub at_ns: Ns,
    /// Its header; none in what is too short for one.
    pub header: Option<Header>,
    /// It.
    pub bytes: Vec<u8>,
}

/// A message to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// When, ns from the start.
    pub at: Ns,
    /// When it was due by its header, ns from the start.
    pub due: Ns,
    /// How long before its sending its publisher was free by its header, ns;
    /// what it says cannot lie before `due`.
    pub own: Ns,
    /// Its sequence.
    pub sequence: u32,
    /// What is wrong with it.
    pub flaw: Flaw,
    /// How far the clock of its instants is ahead, ns.
    pub ahead: i64,
}

/// What is wrong with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// Nothing.
    None,
    /// A bit of the body is turned.
    Body,
    /// It is a byte too short.
    Short,
    /// It names a publisher that nobody has.
    Publisher,
}

/// A message as it was sent.
#[derive(Clone, Copy, Debug)]
pub struct SentLine {
    /// When it was due, ns.
    pub due_ns: Ns,
    /// What it says of the sender's own lag, ns.
    pub own_ns: Ns,
    /// When it was sent, ns.
    pub sent_ns: Ns,
    /// What was asked for.
    pub line: Line,
}

#[derive(Default)]
struct Shared {
    stop: AtomicBool,
    quiet: AtomicBool,
    start_ns: AtomicU64,
    ended: AtomicBool,
    heard: Mutex<Vec<Heard>>,
    said: Mutex<Vec<SentLine>>,
    broken: Mutex<Option<String>>,
}

impl Shared {
    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }
}

fn kept<T>(of: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The sockets of one conversation. Their threads end when it is dropped.
pub struct Taps {
    driver: Box<dyn Driver>,
    options: Options,
    /// Where the subscriber of `fan-out-echo` that echoes sends to.
    pub answers: Option<String>,
    taps: Vec<Tap>,
}

/// One socket.
pub struct Tap {
    /// Where others can connect to, if it was bound.
    pub endpoint: Option<String>,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// Whether there are sockets for this driver.
pub fn known(driver: &str) -> bool {
    drivers::find(driver).is_some()
}

fn not_here(error: &DriverError) -> Wrong {
    Wrong::NotTried(format!("the other side has no such socket: {error}"))
}

impl Taps {
    /// Sockets of this driver.
    pub fn load(bench: &Subject<'_>) -> Result<Taps, Wrong> {
        let load = drivers::find(bench.driver)
            .ok_or_else(|| Wrong::NotTried(format!("the other side has no sockets of `{}`", bench.driver)))?;
        let (driver, mut options) = (load(bench.options).map_err(|error| not_here(&error))?, bench.options.clone());
        // When a conversation is over, what its sockets have not sent is for nobody: they would
        // wait in vain to send it to an agent that has gone.
        if let Some(linger) = options.get_mut("linger") {
            *linger = "0s".into();
        }
        Ok(Taps { driver, options, answers: None, taps: Vec::new() })
    }

    /// Lets those that are opened from now on have room for little, so that what
    /// they do not read has to wait where it is sent.
    pub fn narrow(&mut self) {
        self.options.insert("socket_buffer".into(), NARROW_BYTES.into());
    }

    /// Those that are open.
    pub fn all(&self) -> &[Tap] {
        &self.taps
    }

    /// Opens one for a client. A publisher plays these lines after its probes; who
    /// answers holds each answer back for `delay`. An echo leaves out those to
    /// every fifth message ([`echoes`]).
    pub fn open(
        &mut self,
        bench: &Subject<'_>,
        workload: &Workload,
        client: (Role, u32),
        meets: (Option<&str>, &[String]),
        plays: (Vec<Line>, Duration),
    ) -> Result<(), Wrong> {
        let ((role, id), (bind, connect), (lines, delay)) = (client, meets, plays);
        let spec = SocketSpec {
            role,
            id,
            pattern: workload.pattern,
            transport: bench.transport.ok_or_else(|| Wrong::NotTried("there is no transport".into()))?,
            payload_bytes: workload.payload_bytes,
            spin: false,
            unthrottled: workload.rate == Rate::Max,
            bind,
            connect,
            answers: self.answers.as_deref(),
            run: "",
            options: &self.options,
        };
        let mut socket = self.driver.open(&spec).map_err(|error| not_here(&error))?;
        let endpoint = socket.endpoint().map(str::to_owned);
        let shared = Arc::new(Shared::default());
        let (theirs, workload) = (shared.clone(), workload.clone());
        let play = move || {
            let played = match role {
                Role::Publisher => publish(socket.as_mut(), &theirs, &workload, id, &lines),
                Role::Subscriber if workload.pattern.echoed() && id == 0 => echo(socket.as_mut(), &theirs, delay),
                Role::Subscriber => listen(socket.as_mut(), &theirs),
                Role::Requester => request(socket.as_mut(), &theirs, &workload, id, &lines),
                Role::Replier => reply(socket.as_mut(), &theirs, delay),
            };
            *kept(&theirs.broken) = played.err().map(|error| error.to_string());
            theirs.ended.store(true, Ordering::Release);
            // Closing could throw away what the agent has not read yet.
            while !theirs.stopped() {
                thread::park_timeout(MARKER_EVERY);
            }
        };
        let thread = thread::Builder::new().name(format!("tap {id}")).spawn(play);
        let thread = thread.map_err(|error| Wrong::NotTried(format!("no thread for the other side: {error}")))?;
        self.taps.push(Tap { endpoint, shared, thread: Some(thread) });
        Ok(())
    }
}

impl Tap {
    /// What has come so far, probes and end markers among it.
    pub fn heard(&self) -> Vec<Heard> {
        kept(&self.shared.heard).clone()
    }

    /// What it has sent so far, without probes and end markers.
    pub fn said(&self) -> Vec<SentLine> {
        kept(&self.shared.said).clone()
    }

    /// Whether a message with this sequence has come.
    pub fn has(&self, sequence: u32) -> bool {
        kept(&self.shared.heard).iter().any(|heard| heard.header.is_some_and(|header| header.sequence == sequence))
    }

    /// The instant at which its lines begin.
    pub fn start(&self, at_ns: Ns) {
        self.shared.start_ns.store(at_ns, Ordering::Release);
    }

    /// Whether it does nothing for now: a publisher keeps its probes to itself, a
    /// subscriber reads nothing.
    pub fn hush(&self, quiet: bool) {
        self.shared.quiet.store(quiet, Ordering::Release);
    }

    /// Whether it has played its lines, or met an error.
    pub fn ended(&self) -> bool {
        self.shared.ended.load(Ordering::Acquire)
    }

    /// What its socket met.
    pub fn broken(&self) -> Result<(), Wrong> {
        match &*kept(&self.shared.broken) {
            Some(error) => Err(Wrong::did(format!("the other side's socket met: {error}"))),
            None => Ok(()),
        }
    }
}

impl Drop for Taps {
    fn drop(&mut self) {
        self.taps.iter().for_each(|tap| tap.shared.stop.store(true, Ordering::Release));
        for thread in self.taps.iter_mut().filter_map(|tap| tap.thread.take()) {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

fn take(heard: &Mutex<Vec<Heard>>, message: &[u8]) -> Option<u32> {
    let header = Header::read(message);
    let bytes = message[..message.len().min(KEPT)].to_vec();
    kept(heard).push(Heard { at_ns: clock::now(), header, bytes });
    header.map(|header| header.sequence)
}

fn listen(socket: &mut dyn Socket, shared: &Shared) -> Result<(), DriverError> {
    while !shared.stopped() {
        if shared.quiet.load(Ordering::Acquire) {
            thread::park_timeout(MARKER_EVERY);
            continue;
        }
        if let Some(message) = socket.recv()? {
            take(&shared.heard, message);
        }
    }
    Ok(())
}

fn reply(socket: &mut dyn Socket, shared: &Shared, delay: Duration) -> Result<(), DriverError> {
    while !shared.stopped() {
        let Some(message) = socket.recv()? else { continue };
        let echo = message.to_vec();
        let probe = take(&shared.heard, &echo) == Some(PROBE);
        if !probe {
            wait_until(clock::now() + delay.as_nanos() as Ns, shared);
        }
        while socket.send(&echo)? == Sent::Full && !shared.stopped() {}
    }
    Ok(())
}

/// Whether a message of this sequence is echoed.
pub fn echoes(sequence: u32) -> bool {
    sequence == PROBE || (sequence != END && !sequence.is_multiple_of(5))
}

fn echo(socket: &mut dyn Socket, shared: &Shared, delay: Duration) -> Result<(), DriverError> {
    while !shared.stopped() {
        let Some(message) = socket.recv()? else { continue };
        let echo = message.to_vec();
        let Some(sequence) = take(&shared.heard, &echo).filter(|sequence| echoes(*sequence)) else { continue };
        if sequence != PROBE {
            wait_until(clock::now() + delay.as_nanos() as Ns, shared);
        }
        send(socket, shared, &echo)?;
    }
    Ok(())
}

fn wait_until(at_ns: Ns, shared: &Shared) {
    loop {
        let left = at_ns.saturating_sub(clock::now());
        if left == 0 || shared.stopped() {
            return;
        }
        thread::park_timeout(Duration::from_nanos(left.min(10 * MILLISECOND)));
    }
}

fn send(socket: &mut dyn Socket, shared: &Shared, message: &[u8]) -> Result<(), DriverError> {
    while socket.send(message)? == Sent::Full && !shared.stopped() {}
    socket.flush()
}

fn marker(workload: &Workload, publisher: u32, sequence: u32) -> Vec<u8> {
    let mut message = pattern(workload.payload_bytes as usize);
    let now = clock::now();
    let header = Header { intended_ns: now, publisher, sequence, sent_ns: Some(now), free_ns: Some(now) };
    let _ = header.write(&mut message);
    message
}

/// The message of a line, as it goes out now.
fn message(workload: &Workload, publisher: u32, line: Line, start_ns: Ns, now: Ns) -> (Vec<u8>, SentLine) {
    let mut message = pattern(workload.payload_bytes as usize);
    let due_ns = start_ns + line.due;
    let own_ns = line.own.min(now.saturating_sub(due_ns));
    let publisher = if line.flaw == Flaw::Publisher { publisher + 1_000 } else { publisher };
    let header = Header {
        intended_ns: due_ns,
        publisher,
        sequence: line.sequence,
        sent_ns: Some(now),
        free_ns: Some(now - own_ns),
    };
    let _ = header.ahead_by(line.ahead).write(&mut message);
    match line.flaw {
        Flaw::Body => {
            if let Some(last) = message.last_mut() {
                *last ^= 0x10;
            }
        }
        Flaw::Short => drop(message.pop()),
        Flaw::None | Flaw::Publisher => {}
    }
    (message, SentLine { due_ns, own_ns, sent_ns: now, line })
}

fn publish(
    socket: &mut dyn Socket,
    shared: &Shared,
    workload: &Workload,
    id: u32,
    lines: &[Line],
) -> Result<(), DriverError> {
    let copies = if workload.competing() { workload.subscribers } else { 1 };
    let mark = |socket: &mut dyn Socket, sequence| match shared.quiet.load(Ordering::Acquire) {
        true => Ok(()),
        false => (0..copies).try_for_each(|_| send(socket, shared, &marker(workload, id, sequence))),
    };
    let start_ns = loop {
        match (shared.start_ns.load(Ordering::Acquire), shared.stopped()) {
            (_, true) => return Ok(()),
            (0, false) => {}
            (start_ns, false) => break start_ns,
        }
        mark(socket, PROBE)?;
        thread::park_timeout(MARKER_EVERY);
    };
    for line in lines {
        wait_until(start_ns + line.at, shared);
        let (message, said) = message(workload, id, *line, start_ns, clock::now());
        send(socket, shared, &message)?;
        kept(&shared.said).push(said);
    }
    shared.ended.store(true, Ordering::Release);
    while !shared.stopped() {
        mark(socket, END)?;
        thread::park_timeout(MARKER_EVERY);
    }
    Ok(())
}

/// Probes until the start, and then its lines: what comes back is kept.
fn request(
    socket: &mut dyn Socket,
    shared: &Shared,
    workload: &Workload,
    id: u32,
    lines: &[Line],
) -> Result<(), DriverError> {
    let mut ask = |message: &[u8]| -> Result<(), DriverError> {
        send(socket, shared, message)?;
        while !shared.stopped() {
            if let Some(reply) = socket.recv()? {
                take(&shared.heard, reply);
                break;
            }
        }
        Ok(())
    };
    ask(&marker(workload, id, PROBE))?;
    while shared.start_ns.load(Ordering::Acquire) == 0 && !shared.stopped() {
        thread::park_timeout(MARKER_EVERY);
    }
    let start_ns = shared.start_ns.load(Ordering::Acquire);
    for line in lines {
        wait_until(start_ns + line.at, shared);
        let (message, said) = message(workload, id, *line, start_ns, clock::now());
        kept(&shared.said).push(said);
        ask(&message)?;
    }
    Ok(())
}
