//! Clients that come and go, on a thread of their own: each connects at its due time, subscribes
//! to a topic of its own, to which nothing is published, and disconnects. None tries again.
//!
//! The schedule is open loop: a client that is due while the server still answers too many others
//! waits for room, and its time to connect includes that wait.

use super::assignment::Assignment;
use super::carrier::{ByteStream, Dial};
use super::connection::{Changes, Connection, ConnectionLoss, State};
use super::errors::ShardError;
use super::notifier::{NOTIFIER, Notifier};
use super::waiting::{EVENTS, TICK, await_events};
use crate::clock;
use crate::control::{PinError, ThreadContext, ThreadReport, pin};
use crate::outcome::{Churned, ThreadOutcome, record_in};
use crate::session::{ClientSettings, ClientSpec, Session, SessionEvent};
use crate::topics;
use crate::window::Window;
use pubmark_model::churn::ChurnCounts;
use pubmark_model::units::{Ns, SECOND, format_time};
use rustix::event::epoll;
use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::mpsc::Sender;

/// Maximum number of clients at a time: servers' backlogs are short.
const AT_ONCE: usize = 256;
/// Clients that begin between two checks for arrivals.
const DIALS: usize = 16;
/// Time that a client has from its first attempt until it has subscribed.
const ATTEMPT: Ns = 10 * SECOND;
/// Time that a server may take to close a connection after its client has taken its leave.
const FAREWELL: Ns = SECOND / 2;
/// Bytes read at once.
const READ_BYTES: usize = 16 << 10;
/// Maximum length of a server's packet, bytes.
const LONGEST_BYTES: u64 = 1 << 20;

/// Runs the clients of `churn` of a flow of the protocol `S`; the clients of the assignment are
/// played elsewhere.
pub fn churn<S: Session>(
    assignment: Assignment,
    context: &ThreadContext,
    reports: &Sender<ThreadReport>,
    notifier: Notifier,
) -> Result<ThreadOutcome, ShardError> {
    clock::exact_timers();
    let remarks = pin(&assignment.cpus).err().iter().map(PinError::to_string).collect();
    let mut churner = Churner::<S>::new(assignment, context, notifier)?;
    let _ = reports.send(ThreadReport::Ready);
    churner.run(reports)?;
    Ok(ThreadOutcome { churn: Some(Box::new(churner.done)), remarks, ..ThreadOutcome::default() })
}

/// A client that has come and not gone yet.
struct Visitor<S> {
    connection: Connection<S>,
    spec: ClientSpec,
    /// Instant at which it was due, and by how much pubmark itself was late, ns.
    due_ns: Ns,
    own_lag_ns: Ns,
    /// Instant at which the server accepted it, ns.
    accepted_ns: Ns,
    /// Length of its TLS handshake, ns.
    tls_handshake_ns: Option<Ns>,
    /// Number of the server's addresses that did not answer.
    missed: usize,
}

struct Churner<'a, S: Session> {
    context: &'a ThreadContext,
    run: String,
    prefix: String,
    settings: S::Settings,
    dial: Dial,
    /// Number of the server's address that answered last.
    place: usize,
    epoll: OwnedFd,
    notifier: Notifier,
    events: Vec<epoll::Event>,
    buffer: Vec<u8>,
    out: Vec<u8>,
    /// By number: those that have come and not gone.
    visitors: HashMap<u64, Visitor<S>>,
    /// Deadlines of those that have not subscribed, and of those that have disconnected.
    arriving: VecDeque<(Ns, u64)>,
    leaving: VecDeque<(Ns, u64)>,
    /// Numbers of those that are due in the window, and of the next one.
    counted: Range<u64>,
    next: u64,
    window: Option<Window>,
    /// True if one that is due waits for room, and the instant at which there was room last.
    is_full: bool,
    room_ns: Ns,
    said_drained: bool,
    done: Churned,
}

impl<'a, S: Session> Churner<'a, S> {
    fn new(
        assignment: Assignment,
        context: &'a ThreadContext,
        notifier: Notifier,
    ) -> Result<Churner<'a, S>, ShardError> {
        let Assignment { endpoint, dial, run, options, .. } = assignment;
        let terms = ClientSettings {
            endpoint: &endpoint,
            qos: context.workload.qos,
            durable: false,
            reconnect: false,
            answer_ns: None,
            run: &run,
            seed: context.workload.seed,
            payload_bytes: 0,
            headers: None,
            options: &options,
            clients: topics::clients(&context.workload),
        };
        let settings = S::settings(&terms)?;
        let workload = &context.workload;
        let counted = workload.churn.due(workload.warmup_ns, workload.window_ns().unwrap_or(0));
        let counts = ChurnCounts { due: counted.end - counted.start, ..ChurnCounts::default() };
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let data = epoll::EventData::new_u64(NOTIFIER);
        epoll::add(&epoll, &*notifier.0, data, epoll::EventFlags::IN | epoll::EventFlags::ET)?;
        Ok(Churner {
            context,
            prefix: topics::prefix(&options),
            run,
            settings,
            dial: dial.of::<S>(&options),
            place: 0,
            epoll,
            notifier,
            events: Vec::with_capacity(EVENTS),
            buffer: vec![0; READ_BYTES],
            out: Vec::new(),
            visitors: HashMap::new(),
            arriving: VecDeque::new(),
            leaving: VecDeque::new(),
            counted,
            next: 0,
            window: None,
            is_full: false,
            room_ns: 0,
            said_drained: false,
            done: Churned { counts, ..Churned::default() },
        })
    }

    fn run(&mut self, reports: &Sender<ThreadReport>) -> Result<(), ShardError> {
        while !self.context.control.stopped() {
            let now = clock::now();
            self.begin();
            self.expire(now);
            let wake = self.receive_due(now).min(self.arriving.front().map_or(Ns::MAX, |(until_ns, _)| *until_ns));
            self.drain(now, reports);
            self.wait(wake.min(now + TICK))?;
        }
        self.done.counts.failed = self.done.counts.due - self.done.counts.connected;
        Ok(())
    }

    /// Begins the schedule once its start is known.
    fn begin(&mut self) {
        if let (None, Some(start_ns)) = (self.window, self.context.control.started()) {
            self.window = Some(self.context.window(start_ns));
        }
    }

    /// Returns the instant at which the next one is due; `None` if there is none.
    fn next_due_ns(&self) -> Option<Ns> {
        let profile = self.context.workload.churn.profile()?;
        let window = self.window.filter(|_| self.next < self.counted.end)?;
        Some(window.start_ns.saturating_add(profile.due(self.next)))
    }

    /// Lets those come that are due. Returns the instant at which more are due.
    fn receive_due(&mut self, now: Ns) -> Ns {
        for _ in 0..DIALS {
            let Some(due_ns) = self.next_due_ns() else { return Ns::MAX };
            if due_ns > now {
                return due_ns;
            }
            // Whoever has taken its leave can go without the server's.
            while self.visitors.len() >= AT_ONCE {
                match self.leaving.pop_front() {
                    Some((_, number)) => self.remove(number),
                    None => {
                        self.is_full = true;
                        return Ns::MAX;
                    }
                }
            }
            self.next += 1;
            self.come(self.next - 1, due_ns);
        }
        now
    }

    fn come(&mut self, number: u64, due_ns: Ns) {
        let began_ns = clock::now();
        let own_lag_ns = began_ns.saturating_sub(due_ns.max(self.room_ns));
        let spec = topics::visitor::<S>(&self.context.workload, &self.prefix, &self.run, number);
        let visitor = Visitor {
            connection: Connection::new(S::new(&self.settings, &spec)),
            spec,
            due_ns,
            own_lag_ns,
            accepted_ns: 0,
            tls_handshake_ns: None,
            missed: 0,
        };
        if self.counted.contains(&number) {
            record_in(&mut self.done.own_lag, own_lag_ns);
        }
        self.visitors.insert(number, visitor);
        self.arriving.push_back((began_ns + ATTEMPT, number));
        self.open(number);
    }

    /// Begins to open a connection.
    fn open(&mut self, number: u64) {
        use epoll::EventFlags as Flags;
        let client = self.visitors.get(&number).map_or(0, |visitor| visitor.spec.row);
        let dialed = ByteStream::dial(&self.dial, self.place, number as usize, client).and_then(|carrier| {
            let data = epoll::EventData::new_u64(number);
            epoll::add(&self.epoll, &carrier, data, Flags::IN | Flags::OUT | Flags::RDHUP | Flags::ET)?;
            Ok(carrier)
        });
        match (dialed, self.visitors.get_mut(&number)) {
            (Ok(carrier), Some(visitor)) => {
                (visitor.connection.carrier, visitor.connection.state) = (Some(carrier), State::Opening);
            }
            (Err(error), _) => self.failed(number, &error.to_string()),
            (Ok(_), None) => {}
        }
    }

    fn happened(&mut self, number: u64, flags: epoll::EventFlags) {
        use epoll::EventFlags as Flags;
        let Some(visitor) = self.visitors.get_mut(&number) else { return };
        let connection = &mut visitor.connection;
        if connection.state == State::Opening {
            if !flags.intersects(Flags::OUT | Flags::ERR | Flags::HUP) {
                return;
            }
            if let Err(error) = connection.carrier.as_mut().map_or(Ok(()), ByteStream::connected) {
                return self.missed(number, &error.to_string());
            }
            connection.state = State::Greeting;
            self.out.clear();
            connection.session.open(&self.settings, &visitor.spec, &mut self.out);
            if let Err(loss) = connection.write(&self.out) {
                return self.failed(number, &loss.text());
            }
        }
        if let Err(loss) = self.exchange(number) {
            match self.visitors.get(&number).map(|visitor| visitor.connection.state) {
                Some(State::Up) => self.remove(number),
                Some(_) => self.failed(number, &loss.text()),
                None => {}
            }
        }
    }

    /// Reads what has arrived, and writes the answers.
    fn exchange(&mut self, number: u64) -> Result<(), ConnectionLoss> {
        let Churner { counted, visitors, settings, buffer, out, done, leaving, .. } = self;
        let Some(visitor) = visitors.get_mut(&number) else { return Ok(()) };
        visitor.connection.flush()?;
        while let Some((count, _, now)) = visitor.connection.read(buffer)? {
            out.clear();
            let mut heard = |event: SessionEvent<'_>, changes: &mut Changes| match event {
                SessionEvent::Connected => changes.connected = true,
                SessionEvent::Subscribed => changes.subscribed = true,
                _ => {}
            };
            let read = &buffer[..count];
            let changes = visitor.connection.feed(settings, read, LONGEST_BYTES, out, &mut heard)?;
            if changes.connected && visitor.connection.state == State::Greeting {
                visitor.accepted_ns = now;
                visitor.tls_handshake_ns = visitor.connection.carrier.as_ref().and_then(ByteStream::handshake_ns);
                visitor.connection.state = State::Subscribing;
                visitor.connection.session.subscribe(settings, &visitor.spec, out);
            }
            let is_subscribed = changes.subscribed && visitor.connection.state == State::Subscribing;
            if is_subscribed {
                if counted.contains(&number) {
                    visitor.count(now, done);
                }
                visitor.connection.state = State::Up;
                visitor.connection.session.close(settings, &visitor.spec, out);
                leaving.push_back((now + FAREWELL, number));
            }
            visitor.connection.write(out)?;
            // If there is nothing to send, the server learns of the end from the carrier.
            if is_subscribed
                && out.is_empty()
                && let Some(carrier) = &mut visitor.connection.carrier
            {
                carrier.finish();
            }
        }
        Ok(())
    }

    /// Handles an address of the server that did not answer: another one may.
    fn missed(&mut self, number: u64, why: &str) {
        let places = self.dial.to.len().max(1);
        let Some(visitor) = self.visitors.get_mut(&number) else { return };
        visitor.missed += 1;
        if visitor.missed >= places {
            return self.failed(number, why);
        }
        visitor.connection.drop_carrier(State::Waiting);
        self.place = (self.place + 1) % places;
        self.open(number);
    }

    fn failed(&mut self, number: u64, why: &str) {
        self.done.first_error.get_or_insert_with(|| why.to_owned());
        self.remove(number);
    }

    fn remove(&mut self, number: u64) {
        self.visitors.remove(&number);
        if std::mem::take(&mut self.is_full) {
            self.room_ns = clock::now();
        }
    }

    /// Ends attempts that have taken too long, and connections that the server does not close.
    fn expire(&mut self, now: Ns) {
        let state =
            |visitors: &HashMap<u64, Visitor<S>>, number| visitors.get(&number).map(|visitor| visitor.connection.state);
        while let Some((until_ns, number)) = self.leaving.front().copied()
            && until_ns <= now
        {
            self.leaving.pop_front();
            self.remove(number);
        }
        // Those that are done are taken off the list, so that it does not grow.
        while let Some((until_ns, number)) = self.arriving.front().copied() {
            match state(&self.visitors, number) {
                Some(State::Up) | None => {}
                Some(_) if until_ns > now => return,
                Some(_) => self.failed(number, &format!("no answer of the server within {}", format_time(ATTEMPT))),
            }
            self.arriving.pop_front();
        }
    }

    /// Reports once that all that were due have come or failed, or that the drain is over.
    fn drain(&mut self, now: Ns, reports: &Sender<ThreadReport>) {
        let Some((_, deadline_ns)) = self.context.control.draining() else { return };
        let is_done = self.next_due_ns().is_none() && self.arriving.is_empty();
        if (is_done || now >= *deadline_ns) && !std::mem::replace(&mut self.said_drained, true) {
            let _ = reports.send(ThreadReport::Drained);
        }
    }

    /// Waits for events, until `wake` at the latest, and handles them.
    fn wait(&mut self, wake: Ns) -> Result<(), ShardError> {
        let mut events = std::mem::take(&mut self.events);
        events.clear();
        match await_events(&self.epoll, wake.saturating_sub(clock::now()), true, &mut events) {
            Ok(()) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        for event in &events {
            match event.data.u64() {
                NOTIFIER => {
                    let _ = rustix::io::read(&*self.notifier.0, &mut [0u8; 8]);
                }
                number => self.happened(number, event.flags),
            }
        }
        self.events = events;
        Ok(())
    }
}

impl<S> Visitor<S> {
    /// Counts a client that has subscribed at this instant.
    fn count(&self, subscribed_ns: Ns, done: &mut Churned) {
        let connect_ns = self.accepted_ns.saturating_sub(self.due_ns.saturating_add(self.own_lag_ns));
        done.counts.connected += 1;
        record_in(&mut done.times.connect, connect_ns);
        self.tls_handshake_ns.into_iter().for_each(|ns| record_in(&mut done.times.tls_handshake, ns));
        record_in(&mut done.times.subscribe, subscribed_ns.saturating_sub(self.accepted_ns));
    }
}
