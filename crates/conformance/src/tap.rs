//! The other side: bare sockets of the library, each on its own thread, which record every message with its instant, or
//! play a script.

use crate::order::planned;
use crate::subject::TestedAgent;
use crate::wrong::CaseFailure;
use pubmark_host::clock;
use pubmark_load::drivers::{
    self, socket::Driver, socket::DriverError, socket::Sent, socket::Socket, socket::SocketSpec,
};
use pubmark_model::header::{END, Header, PROBE, body_at, pattern};
use pubmark_model::options::Options;
use pubmark_model::protocol::Role;
use pubmark_model::units::{MILLISECOND, Ns};
use pubmark_model::workload::{Rate, Workload};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Interval of probes and end markers.
const MARKER_EVERY: Duration = Duration::from_millis(5);

/// Kernel buffer of a narrow socket, bytes.
const NARROW_BYTES: u64 = 128 << 10;

/// Messages that a socket of the other side queues before it drops any.
const QUEUE: u64 = 200_000;

/// Distance by which an impossible ready time is off, ns.
const FREE_OFF: Ns = 700 * MILLISECOND;

/// Messages that a narrow socket queues.
const NARROW_QUEUE: u64 = 2;

/// A message as it arrived.
#[derive(Clone, Debug)]
pub struct ArrivedMessage {
    /// Instant at which it was read.
    pub at_ns: Ns,
    /// Its header; `None` if it is too short for one.
    pub header: Option<Header>,
    /// Its length, bytes.
    pub length: usize,
    /// Position of the first byte of its body that differs from the pattern.
    pub wrong_at: Option<usize>,
}

/// A message to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScriptedMessage {
    /// Time of sending, also in its header, ns from the start.
    pub at: Ns,
    /// Due time in its header, ns from the start; negative before it.
    pub due: i64,
    /// Time from its publisher's ready time in its header to its sending, ns; the ready time cannot be before `due`.
    pub own: Ns,
    /// Its sequence number.
    pub sequence: u32,
    /// Flaw of the message.
    pub flaw: MessageFlaw,
    /// Lead of the clock of its instants, ns.
    pub ahead: i64,
}

/// Flaw of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageFlaw {
    /// No flaw.
    None,
    /// A bit of this byte, or of the last one, is flipped.
    Body(usize),
    /// It is longer by this many bytes, or shorter if negative.
    Length(isize),
    /// It names another publisher, this much further.
    Publisher(u32),
    /// The ready time in its header is after its sending.
    FreeTooLate,
    /// The ready time in its header is before its due time.
    FreeTooEarly,
}

impl MessageFlaw {
    /// Returns whether the message must be measured nevertheless.
    pub fn sound(self) -> bool {
        matches!(self, MessageFlaw::None | MessageFlaw::FreeTooLate | MessageFlaw::FreeTooEarly)
    }
}

/// A message as it was sent.
#[derive(Clone, Copy, Debug)]
pub struct SentLine {
    /// Its due time, ns.
    pub due_ns: Ns,
    /// Generator delay by its header, ns.
    pub own_ns: Ns,
    /// Time of sending by its header, ns …
    pub sent_ns: Ns,
    /// … and the real time of sending: then or later.
    pub went_ns: Ns,
    /// Line of the script.
    pub line: ScriptedMessage,
}

#[derive(Default)]
struct Shared {
    stop: AtomicBool,
    quiet: AtomicBool,
    start_ns: AtomicU64,
    ended: AtomicBool,
    /// Wait after each message that it reads, ns.
    reads_every_ns: AtomicU64,
    heard: Mutex<Vec<ArrivedMessage>>,
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
    /// True if its library has no option for the kernel's buffers.
    unbuffered: bool,
    /// Endpoint to which the subscriber of `fan-out-echo` that echoes sends.
    pub answers: Option<String>,
    taps: Vec<TestSocket>,
}

/// One socket.
pub struct TestSocket {
    /// Endpoint to which others can connect, if it was bound.
    pub endpoint: Option<String>,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// Limits the queue of an agent's sockets to few messages, if its driver has such options.
pub fn narrowed(options: &mut Options) {
    if let Some(queue) = options.get_mut("queue_messages") {
        *queue = NARROW_QUEUE.into();
    }
}

/// Returns whether there are sockets for this driver.
pub fn known(driver: &str) -> bool {
    drivers::find(driver).is_some()
}

fn not_here(error: &DriverError) -> CaseFailure {
    CaseFailure::NotTried(format!("the other side has no such socket: {error}"))
}

impl Taps {
    /// Loads the sockets of this driver.
    pub fn load(bench: &TestedAgent<'_>) -> Result<Taps, CaseFailure> {
        let load = drivers::find(bench.driver)
            .ok_or_else(|| CaseFailure::NotTried(format!("the other side has no sockets of `{}`", bench.driver)))?;
        let (driver, mut options) = (load(bench.options).map_err(|error| not_here(&error))?, bench.options.clone());
        // When a conversation is over, nobody needs its sockets' unsent messages: they would wait in vain to send them
        // to an agent that has exited.
        if let Some(linger) = options.get_mut("linger") {
            *linger = "0s".into();
        }
        if let Some(queue) = options.get_mut("queue_messages") {
            *queue = QUEUE.into();
        }
        // NNG refuses any but its own.
        let unbuffered = bench.driver == "nng";
        Ok(Taps { driver, options, unbuffered, answers: None, taps: Vec::new() })
    }

    /// Gives the sockets opened from now on little room, so that messages that they do not read wait at the sender: a
    /// short queue, and small kernel buffers.
    pub fn narrow(&mut self, buffers: bool) {
        narrowed(&mut self.options);
        // The kernel's buffers, if the library lets them be set.
        if buffers && !self.unbuffered {
            self.options.insert("socket_buffer".into(), NARROW_BYTES.into());
        }
    }

    /// Returns the open sockets.
    pub fn all(&self) -> &[TestSocket] {
        &self.taps
    }

    /// Opens a socket for a client. A publisher plays these lines after its probes; a replier, or a subscriber that
    /// echoes, answers by these [`Answers`].
    pub fn open(
        &mut self,
        bench: &TestedAgent<'_>,
        workload: &Workload,
        client: (Role, u32),
        meets: (Option<&str>, &[String]),
        plays: (Vec<ScriptedMessage>, Answers),
    ) -> Result<(), CaseFailure> {
        let ((role, id), (bind, connect), (lines, answers)) = (client, meets, plays);
        let spec = SocketSpec {
            role,
            id,
            pattern: workload.pattern,
            transport: bench.transport.ok_or_else(|| CaseFailure::NotTried("there is no transport".into()))?,
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
                Role::Subscriber if workload.pattern.echoed() && id == 0 => {
                    answer(socket.as_mut(), &theirs, &workload, answers)
                }
                Role::Subscriber => listen(socket.as_mut(), &theirs, &workload),
                Role::Requester => request(socket.as_mut(), &theirs, &workload, id, &lines),
                Role::Replier => answer(socket.as_mut(), &theirs, &workload, answers),
            };
            *kept(&theirs.broken) = played.err().map(|error| error.to_string());
            theirs.ended.store(true, Ordering::Release);
            // Closing could discard messages that the agent has not read yet.
            while !theirs.stopped() {
                thread::park_timeout(MARKER_EVERY);
            }
        };
        let thread = thread::Builder::new().name(format!("tap {id}")).spawn(play);
        let thread = thread.map_err(|error| CaseFailure::NotTried(format!("no thread for the other side: {error}")))?;
        self.taps.push(TestSocket { endpoint, shared, thread: Some(thread) });
        Ok(())
    }
}

impl TestSocket {
    /// Returns the messages received so far, including probes and end markers.
    pub fn heard(&self) -> Vec<ArrivedMessage> {
        kept(&self.shared.heard).clone()
    }

    /// Returns the messages sent so far, without probes and end markers.
    pub fn said(&self) -> Vec<SentLine> {
        kept(&self.shared.said).clone()
    }

    /// Returns whether a message with this sequence has arrived.
    pub fn has(&self, sequence: u32) -> bool {
        kept(&self.shared.heard).iter().any(|heard| heard.header.is_some_and(|header| header.sequence == sequence))
    }

    /// Sets the instant at which its lines begin.
    pub fn start(&self, at_ns: Ns) {
        self.shared.start_ns.store(at_ns, Ordering::Release);
    }

    /// Pauses or resumes the socket: while paused, a publisher sends no probes, and a subscriber reads nothing.
    pub fn hush(&self, quiet: bool) {
        self.shared.quiet.store(quiet, Ordering::Release);
    }

    /// Sets the wait after each message that it reads.
    pub fn read_every(&self, gap: Duration) {
        self.shared.reads_every_ns.store(gap.as_nanos() as Ns, Ordering::Release);
    }

    /// Returns whether it has played its lines, or failed.
    pub fn ended(&self) -> bool {
        self.shared.ended.load(Ordering::Acquire)
    }

    /// Returns the error of its socket, if any.
    pub fn broken(&self) -> Result<(), CaseFailure> {
        match &*kept(&self.shared.broken) {
            Some(error) => Err(CaseFailure::did(format!("the other side's socket met: {error}"))),
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

/// Records a message. Returns its header.
fn take(shared: &Shared, body: &[u8], message: &[u8]) -> Option<Header> {
    let at_ns = clock::now();
    let (header, length) = (Header::read(message), message.len());
    let from = body_at(length).min(body.len());
    let (theirs, ours) = (message.get(from..).unwrap_or_default(), &body[from..]);
    let wrong_at = match theirs == &ours[..theirs.len().min(ours.len())] {
        true => None,
        false => theirs.iter().zip(ours).position(|(theirs, ours)| theirs != ours).map(|at| from + at),
    };
    kept(&shared.heard).push(ArrivedMessage { at_ns, header, length, wrong_at });
    header
}

fn body(workload: &Workload) -> Vec<u8> {
    pattern(workload.payload_bytes as usize)
}

fn listen(socket: &mut dyn Socket, shared: &Shared, workload: &Workload) -> Result<(), DriverError> {
    let body = body(workload);
    while !shared.stopped() {
        if shared.quiet.load(Ordering::Acquire) {
            thread::park_timeout(MARKER_EVERY);
            continue;
        }
        if let Some(message) = socket.recv()? {
            take(shared, &body, message);
            match shared.reads_every_ns.load(Ordering::Acquire) {
                0 => {}
                gap => wait_until(clock::now() + gap, shared),
            }
        }
    }
    Ok(())
}

/// Messages that get no reply or echo.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unanswered {
    /// Everything is answered.
    #[default]
    Nothing,
    /// Every fifth message ([`fifth`]).
    Fifths,
    /// The last of the schedule: a replier can receive nothing more after it.
    Last,
}

/// Returns true for every fifth sequence, from 0.
pub fn fifth(sequence: u32) -> bool {
    sequence < END && sequence.is_multiple_of(5)
}

/// Replies or echoes of the other side.
#[derive(Clone, Copy, Debug, Default)]
pub struct Answers {
    /// Delay of each answer; probes are answered at once.
    pub after: Duration,
    /// Messages that it does not answer.
    pub but: Unanswered,
}

/// Sends back what arrives.
fn answer(socket: &mut dyn Socket, shared: &Shared, workload: &Workload, how: Answers) -> Result<(), DriverError> {
    let body = body(workload);
    while !shared.stopped() {
        let Some(message) = socket.recv()? else { continue };
        let answer = message.to_vec();
        let Some(header) = take(shared, &body, &answer) else { continue };
        let sequence = header.sequence;
        let left_out = match how.but {
            Unanswered::Nothing => false,
            Unanswered::Fifths => sequence == END || fifth(sequence),
            Unanswered::Last => sequence as usize + 1 == planned(workload, header.publisher).0.len(),
        };
        if left_out {
            continue;
        }
        if sequence != PROBE {
            wait_until(clock::now() + how.after.as_nanos() as Ns, shared);
        }
        send(socket, shared, &answer)?;
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

/// Returns the message of a line, as it is sent now.
fn message(body: &[u8], publisher: u32, line: ScriptedMessage, start_ns: Ns, now: Ns) -> (Vec<u8>, SentLine) {
    let mut message = body.to_vec();
    let (due_ns, sent_ns) = (start_ns.saturating_add_signed(line.due), start_ns + line.at);
    let own_ns = match line.flaw {
        MessageFlaw::FreeTooLate | MessageFlaw::FreeTooEarly => 0,
        _ => line.own.min(sent_ns.saturating_sub(due_ns)),
    };
    let (further, free_ns) = match line.flaw {
        MessageFlaw::Publisher(further) => (further, sent_ns - own_ns),
        MessageFlaw::FreeTooLate => (0, sent_ns + FREE_OFF),
        MessageFlaw::FreeTooEarly => (0, due_ns.saturating_sub(FREE_OFF)),
        _ => (0, sent_ns - own_ns),
    };
    let header = Header {
        intended_ns: due_ns,
        publisher: publisher.wrapping_add(further),
        sequence: line.sequence,
        sent_ns: Some(sent_ns),
        free_ns: Some(free_ns),
    };
    let _ = header.ahead_by(line.ahead).write(&mut message);
    match line.flaw {
        MessageFlaw::Body(at) => {
            let last = message.len() - 1;
            message[at.min(last)] ^= 0x10;
        }
        MessageFlaw::Length(more) => message.resize(message.len().saturating_add_signed(more), 0),
        MessageFlaw::None | MessageFlaw::Publisher(_) | MessageFlaw::FreeTooLate | MessageFlaw::FreeTooEarly => {}
    }
    (message, SentLine { due_ns, own_ns, sent_ns, went_ns: now, line })
}

fn publish(
    socket: &mut dyn Socket,
    shared: &Shared,
    workload: &Workload,
    id: u32,
    lines: &[ScriptedMessage],
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
    let body = body(workload);
    for line in lines {
        wait_until(start_ns + line.at, shared);
        let (message, said) = message(&body, id, *line, start_ns, clock::now());
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

/// Sends probes until the start, and then its lines; records the replies.
fn request(
    socket: &mut dyn Socket,
    shared: &Shared,
    workload: &Workload,
    id: u32,
    lines: &[ScriptedMessage],
) -> Result<(), DriverError> {
    let body = body(workload);
    let mut ask = |message: &[u8]| -> Result<(), DriverError> {
        send(socket, shared, message)?;
        while !shared.stopped() {
            if let Some(reply) = socket.recv()? {
                take(shared, &body, reply);
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
        let (message, said) = message(&body, id, *line, start_ns, clock::now());
        kept(&shared.said).push(said);
        ask(&message)?;
    }
    Ok(())
}
