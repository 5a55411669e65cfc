//! Removal of what clients have left at a server: their sessions, queues and retained
//! messages.
//!
//! A session is removed by a connection with its client's name that begins a new session
//! and ends it. All else is removed over one connection. A few connections are open at
//! once; each has a deadline, and so has the whole removal.
//!
//! Retained messages come last. A server may still have unread messages of a killed
//! publisher, and would retain them; a connection with the publisher's name makes it
//! close the old one first.

use super::carrier::{ByteStream, Dial};
use super::connection::{Changes, Connection, ConnectionLoss, State};
use crate::clock;
use crate::session::{ClientSettings, ClientSpec, Session, SessionError, SessionEvent, SettingsError, SubTopics};
use crate::topics;
use pubmark_model::endpoint::Endpoint;
use pubmark_model::leftovers::{Leftover, Leftovers, Removal};
use pubmark_model::options::{OptionValues, Options};
use pubmark_model::protocol::Role;
use pubmark_model::units::{MILLISECOND, Ns, SECOND};
use rustix::event::epoll;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::os::fd::OwnedFd;

/// Maximum number of open connections: servers' backlogs are short.
const AT_ONCE: usize = 32;
/// Maximum time without an answer on a connection, ns.
const ANSWER: Ns = 5 * SECOND;
/// Time that a server may take to close a connection after its work, ns.
const FAREWELL: Ns = SECOND / 2;
/// Attempts for each connection.
const ATTEMPTS: u8 = 3;
/// Number of consecutive failures that ends the removal.
const FAILURES: usize = 8;
/// Bytes read at once.
const READ_BYTES: usize = 64 << 10;
/// The reason given for what is left when the time is over.
const NO_ANSWER: &str = "the server did not answer in time";
/// Maximum length of a server's packet, bytes.
const LONGEST_BYTES: u64 = 1 << 20;

/// Lists what the clients of a run leave at the server if nobody removes it.
///
/// # Errors
/// If the run's options are not valid.
pub fn list<S: Session>(leftovers: &Leftovers, endpoint: &Endpoint) -> Result<Vec<Leftover>, SettingsError> {
    let Leftovers { run, options, workload, .. } = leftovers;
    let options = endpoint.applied_to(options);
    let terms = ClientSettings {
        endpoint,
        qos: workload.qos,
        durable: workload.durable,
        reconnect: workload.reconnect,
        answer_ns: workload.pattern.requests().then(|| workload.answer_ns()),
        run,
        seed: workload.seed,
        payload_bytes: workload.payload_bytes,
        headers: workload.headers.as_ref(),
        options: &options,
        clients: topics::clients(workload),
    };
    let prefix = options.text("prefix").unwrap_or_default();
    let settings = S::settings(&terms)?;
    let (sending, hearing) = workload.pattern.roles();
    let sides = [(sending, workload.publishers), (hearing, workload.subscribers)];
    let clients = sides.into_iter().flat_map(|(role, count)| (0..count).map(move |id| (role, id)));
    // Members of a group share a queue, and publishers may share a topic.
    let all: BTreeSet<Leftover> = clients
        .flat_map(|(role, id)| S::leaves(&settings, &topics::spec::<S>(workload, prefix, run, role, id)))
        .collect();
    Ok(all.into_iter().collect())
}

/// Removes what the clients of a run have left, until `until_ns` at the latest.
pub fn remove<S: Session>(leftovers: &Leftovers, endpoint: &Endpoint, dial: Dial, until_ns: Ns) -> Removal {
    let things = match list::<S>(leftovers, endpoint) {
        Ok(things) => things,
        Err(error) => return Removal { why: Some(error.to_string()), ..Removal::default() },
    };
    match Remover::<S>::new(leftovers, endpoint, dial, things.clone(), until_ns) {
        Ok(mut remover) => remover.run(),
        Err(why) => Removal { left: things, why: Some(why), ..Removal::default() },
    }
}

/// The work of one connection.
#[derive(Default)]
struct Errand {
    /// The client's name on it.
    name: String,
    /// A session that is removed when the client is accepted.
    session: Option<Leftover>,
    /// Things that are removed by commands.
    things: Vec<Leftover>,
    attempts: u8,
}

/// A connection and its progress.
struct Visit<S> {
    connection: Connection<S>,
    errand: Errand,
    /// Things that the server was asked to remove, and those that are removed.
    asked: usize,
    gone: usize,
    until_ns: Ns,
}

struct Remover<S: Session> {
    settings: S::Settings,
    dial: Dial,
    epoll: OwnedFd,
    buffer: Vec<u8>,
    waiting: VecDeque<Errand>,
    /// The work that waits until all other work has ended.
    last: Option<Errand>,
    open: Vec<Option<Visit<S>>>,
    dialled: usize,
    /// Failures since the last success.
    failures: usize,
    hopeless: bool,
    until_ns: Ns,
    done: Removal,
}

impl<S: Session> Remover<S> {
    fn new(
        leftovers: &Leftovers,
        endpoint: &Endpoint,
        dial: Dial,
        things: Vec<Leftover>,
        until_ns: Ns,
    ) -> Result<Remover<S>, String> {
        let mut options: Options = endpoint.applied_to(&leftovers.options);
        options.insert("retain".into(), things.iter().any(|thing| matches!(thing, Leftover::Retained(_))).into());
        // Acknowledged, and without a session.
        let terms = ClientSettings {
            endpoint,
            qos: S::REMOVAL_QOS,
            durable: false,
            reconnect: false,
            answer_ns: None,
            run: &leftovers.run,
            seed: 0,
            payload_bytes: 0,
            headers: None,
            options: &options,
            clients: 1,
        };
        let settings = S::settings(&terms).map_err(|error| error.to_string())?;
        let dial = dial.of::<S>(&options);
        let (sessions, rest): (Vec<Leftover>, Vec<Leftover>) =
            things.into_iter().partition(|thing| matches!(thing, Leftover::Session(_)));
        let mut by_name: BTreeMap<String, Errand> = BTreeMap::new();
        if rest.iter().any(|thing| matches!(thing, Leftover::Retained(_))) {
            for id in 0..leftovers.workload.publishers {
                let name = topics::spec::<S>(&leftovers.workload, "", &leftovers.run, Role::Publisher, id).name;
                by_name.insert(name.clone(), Errand { name, ..Errand::default() });
            }
        }
        for thing in sessions {
            if let Leftover::Session(name) = &thing {
                let name = name.clone();
                by_name.insert(name.clone(), Errand { name, session: Some(thing), ..Errand::default() });
            }
        }
        let last = Errand { name: format!("pb{}r0", leftovers.run), things: rest, ..Errand::default() };
        Ok(Remover {
            settings,
            dial,
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC).map_err(|error| error.to_string())?,
            buffer: vec![0; READ_BYTES],
            waiting: by_name.into_values().collect(),
            last: Some(last).filter(|errand| !errand.things.is_empty()),
            open: (0..AT_ONCE).map(|_| None).collect(),
            dialled: 0,
            failures: 0,
            hopeless: false,
            until_ns,
            done: Removal::default(),
        })
    }

    fn run(&mut self) -> Removal {
        let mut events = Vec::with_capacity(AT_ONCE);
        loop {
            let now = clock::now();
            self.expire(now);
            if self.waiting.is_empty() && self.open.iter().all(Option::is_none) {
                self.waiting.extend(self.last.take());
            }
            while !self.hopeless
                && let Some(slot) = self.open.iter().position(Option::is_none)
                && let Some(errand) = self.waiting.pop_front()
            {
                self.visit(slot, errand, now);
            }
            let next = self.open.iter().flatten().map(|visit| visit.until_ns).min();
            let Some(next) = next.filter(|_| now < self.until_ns && !self.hopeless) else { break };
            events.clear();
            // At most a short wait: a visit sets its own deadline after its last answer.
            let left = next.min(self.until_ns).saturating_sub(now).min(100 * MILLISECOND);
            let spare = rustix::buffer::spare_capacity(&mut events);
            match epoll::wait(&self.epoll, spare, Some(&clock::timespec(left))) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => {
                    self.done.why = Some(error.to_string());
                    break;
                }
            }
            for event in &events {
                self.happened(event.data.u64() as usize, event.flags);
            }
        }
        let visits = self.open.iter_mut().filter_map(Option::take);
        for visit in visits.collect::<Vec<_>>() {
            self.put_down(visit, NO_ANSWER);
        }
        for errand in std::mem::take(&mut self.waiting).into_iter().chain(self.last.take()) {
            self.done.left.extend(errand.session.into_iter().chain(errand.things));
        }
        if self.done.left.is_empty() {
            self.done.why = None;
        } else {
            self.done.why.get_or_insert_with(|| "there was no time for more".into());
        }
        std::mem::take(&mut self.done)
    }

    fn spec(errand: &Errand) -> ClientSpec {
        let name = errand.name.clone();
        ClientSpec {
            role: Role::Publisher,
            id: 0,
            name,
            topic: String::new(),
            wild: false,
            leaves: SubTopics::None,
            group: None,
            members: 0,
            replays: false,
            reply: None,
            row: 0,
            last_will: None,
        }
    }

    /// Opens a connection for an errand.
    fn visit(&mut self, slot: usize, mut errand: Errand, now: Ns) {
        use epoll::EventFlags as Flags;
        errand.attempts += 1;
        self.dialled += 1;
        let mut connection = Connection::new(S::new(&self.settings, &Self::spec(&errand)));
        let dialled = ByteStream::dial(&self.dial, self.dialled % self.dial.to.len().max(1), self.dialled, 0).and_then(
            |carrier| {
                let data = epoll::EventData::new_u64(slot as u64);
                epoll::add(&self.epoll, &carrier, data, Flags::IN | Flags::OUT | Flags::RDHUP | Flags::ET)?;
                Ok(carrier)
            },
        );
        match dialled {
            Ok(carrier) => {
                (connection.carrier, connection.state) = (Some(carrier), State::Opening);
                self.open[slot] = Some(Visit { connection, errand, asked: 0, gone: 0, until_ns: now + ANSWER });
            }
            Err(error) => self.failed(errand, &ConnectionLoss::from(error)),
        }
    }

    /// Handles the events of a connection.
    fn happened(&mut self, slot: usize, flags: epoll::EventFlags) {
        let Some(mut visit) = self.open.get_mut(slot).and_then(Option::take) else { return };
        match self.go_on(&mut visit, flags) {
            Ok(false) => self.open[slot] = Some(visit),
            Ok(true) => {}
            // Its work is done.
            Err(_) if visit.connection.state == State::Gone => {}
            Err(loss) => self.put_down_for(visit, &loss),
        }
    }

    /// Continues a connection; returns true at its end.
    fn go_on(&mut self, visit: &mut Visit<S>, flags: epoll::EventFlags) -> Result<bool, ConnectionLoss> {
        use epoll::EventFlags as Flags;
        if visit.connection.state == State::Opening && flags.intersects(Flags::OUT | Flags::ERR | Flags::HUP) {
            visit.connection.carrier.as_mut().map_or(Ok(()), ByteStream::connected)?;
            visit.connection.state = State::Greeting;
            let (spec, mut out) = (Self::spec(&visit.errand), Vec::new());
            visit.connection.session.open(&self.settings, &spec, &mut out);
            visit.connection.write(&out)?;
        }
        if visit.connection.state == State::Opening {
            return Ok(false);
        }
        visit.connection.flush()?;
        while let Some((count, _, now)) = visit.connection.read(&mut self.buffer)? {
            // A server may send without end.
            if now >= self.until_ns {
                return Err(ConnectionLoss::Closed(NO_ANSWER.into()));
            }
            self.hear(visit, count, now)?;
        }
        Ok(false)
    }

    fn hear(&mut self, visit: &mut Visit<S>, count: usize, now: Ns) -> Result<(), ConnectionLoss> {
        let (mut out, mut gone, mut refusal) = (Vec::new(), 0, None);
        let mut heard = |heard: SessionEvent<'_>, changes: &mut Changes| match heard {
            SessionEvent::Connected => changes.connected = true,
            SessionEvent::Acknowledged(_) => gone += 1,
            SessionEvent::Refused(_, why) => refusal = Some(why.to_string()),
            _ => {}
        };
        let bytes = &self.buffer[..count];
        let changes = visit.connection.feed(&self.settings, bytes, LONGEST_BYTES, &mut out, &mut heard)?;
        if visit.connection.state == State::Gone {
            return visit.connection.write(&out);
        }
        visit.gone += gone;
        if let Some(why) = refusal {
            return Err(ConnectionLoss::Session(SessionError::Busy(why)));
        }
        if changes.connected {
            visit.connection.state = State::Up;
            self.done.is_let_in = true;
        }
        if visit.connection.state == State::Up {
            visit.until_ns = now + ANSWER;
            while let Some(thing) = visit.errand.things.get(visit.asked)
                && visit.connection.session.remove(&self.settings, thing, visit.asked as u32, &mut out)
            {
                visit.asked += 1;
            }
            if visit.gone >= visit.errand.things.len() {
                self.failures = 0;
                self.done.removed += (visit.errand.things.len() + usize::from(visit.errand.session.is_some())) as u64;
                visit.connection.session.close(&self.settings, &Self::spec(&visit.errand), &mut out);
                (visit.connection.state, visit.until_ns) = (State::Gone, now + FAREWELL);
            }
        }
        visit.connection.write(&out)
    }

    /// Ends the connections that have taken too long.
    fn expire(&mut self, now: Ns) {
        for slot in 0..self.open.len() {
            if let Some(visit) = self.open[slot].take_if(|visit| visit.until_ns <= now) {
                self.put_down(visit, NO_ANSWER);
            }
        }
    }

    fn put_down(&mut self, visit: Visit<S>, why: &str) {
        if visit.connection.state != State::Gone {
            self.put_down_for(visit, &ConnectionLoss::Closed(why.into()));
        }
    }

    /// Handles a failed connection. Things that it removed stay removed.
    fn put_down_for(&mut self, mut visit: Visit<S>, why: &ConnectionLoss) {
        self.done.removed += visit.gone as u64;
        visit.errand.things.drain(..visit.gone.min(visit.errand.things.len()));
        self.failed(visit.errand, why);
    }

    /// Queues another attempt, unless it would fail in the same way.
    fn failed(&mut self, errand: Errand, why: &ConnectionLoss) {
        self.failures += 1;
        self.done.why = Some(why.text());
        let is_final = matches!(why, ConnectionLoss::Session(SessionError::Denied(_) | SessionError::Foreign(_)));
        self.hopeless |= is_final || self.failures >= FAILURES;
        match errand.attempts < ATTEMPTS && !is_final {
            true => self.waiting.push_back(errand),
            false => self.done.left.extend(errand.session.into_iter().chain(errand.things)),
        }
    }
}
