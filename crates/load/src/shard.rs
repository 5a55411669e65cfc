//! An event loop with many clients of a broker on one thread. It owns its clients,
//! schedule, histograms and counters; during a run threads share only flags that they
//! read.
//!
//! A shard has publishers or subscribers, never both. It connects at a given rate, probes
//! (or waits for probes), runs, drains and disconnects.

mod assignment;
mod away;
mod carrier;
mod churn;
mod closing;
mod connection;
mod consume;
mod crash;
mod cut;
mod errors;
mod exchange;
mod gather;
mod inbound;
mod last_will;
mod late_start;
mod linger;
mod listener;
mod notifier;
mod outbound;
mod ramp;
mod removal;
mod setup;
mod silence;
mod state;
#[cfg(test)]
mod tests;
mod waiting;

use crate::clock;
use crate::control::{PinError, ThreadContext, ThreadReport, pin};
use crate::outcome::{Connecting, ThreadOutcome};
use crate::pacing::Pacer;
use crate::placement;
use crate::publisher::Outgoing;
use crate::session::{ClientSettings, ClientSpec, Session, SessionEvent, SettingsError};
use crate::subscriber::{ReceiveRecorder, Totals};
use crate::topics;
pub use assignment::Assignment;
pub use carrier::{Dial, TlsDial, TlsError, WebSocket, WebSocketDial};
pub use churn::churn;
use connection::{Changes, Connection, ConnectionLoss, State};
pub use errors::{ConnectError, ConnectFailure, ShardError};
use inbound::LOOK;
pub use listener::{Listen, ListenError, ListenTerms, ListenerEvent, ListenerHandler, listen};
use notifier::NOTIFIER;
pub use notifier::Notifier;
use pubmark_model::endpoint::Endpoint;
use pubmark_model::header::{Header, MIN_LEN};
use pubmark_model::leftovers::{Leftover, Leftovers, Removal};
use pubmark_model::protocol::{Client, PublisherTotal, Role};
use pubmark_model::units::{MILLISECOND, Ns, SECOND};
use pubmark_model::workload::{Rate, Receive};
pub use removal::{list, remove};
use rustix::event::epoll;
use state::{Away, Consumers, Inbound, Lingering, Outbound, Ramp, ReachedLimits, Shard, WillConnections};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use waiting::{EVENTS, TICK, await_events};

/// A wait that takes longer than this has slept, ns.
const WAITED: Ns = 5_000;
/// Bytes read at once.
const READ_BYTES: usize = 256 << 10;
/// Maximum bytes of a packet in addition to its payloads: names, properties, the server's
/// information. It is more than is read at once, so that the way in which a packet
/// arrives does not decide whether it is accepted.
pub(crate) const BESIDE_PAYLOAD_BYTES: u64 = READ_BYTES as u64 + (128 << 10);
/// Reads from one connection before the others have their turn.
const READS: usize = 8;
/// Runs a shard to its end.
pub type RunShard =
    fn(Assignment, &ThreadContext, &Sender<ThreadReport>, Notifier) -> Result<ThreadOutcome, ShardError>;

/// Lists what the clients of a run leave at a server.
pub type ListLeftovers = fn(&Leftovers, &Endpoint) -> Result<Vec<Leftover>, SettingsError>;

/// Removes what the clients of a run have left, until the given instant at the latest.
pub type RemoveLeftovers = fn(&Leftovers, &Endpoint, Dial, Ns) -> Removal;

/// Runs clients of the protocol `S`.
pub fn run<S: Session>(
    assignment: Assignment,
    context: &ThreadContext,
    reports: &Sender<ThreadReport>,
    notifier: Notifier,
) -> Result<ThreadOutcome, ShardError> {
    clock::exact_timers();
    let mut remarks: Vec<String> = pin(&assignment.cpus).err().iter().map(PinError::to_string).collect();
    placement::plays(assignment.clients.first().map_or(Role::Publisher, |client| client.role));
    let mut shard = Shard::<S>::new(assignment, context, reports, notifier)?;
    let mut outcome = shard.run()?;
    outcome.remarks.append(&mut remarks);
    Ok(outcome)
}

impl<'a, S: Session> Shard<'a, S> {
    fn new(
        assignment: Assignment,
        context: &'a ThreadContext,
        reports: &'a Sender<ThreadReport>,
        notifier: Notifier,
    ) -> Result<Shard<'a, S>, ShardError> {
        let workload = &context.workload;
        let Assignment { clients, endpoint, dial, run, connect_per_s, options, spin_cores, counter, .. } = assignment;
        let role = clients.first().map_or(Role::Publisher, |client| client.role);
        let terms = ClientSettings {
            endpoint: &endpoint,
            qos: workload.qos,
            durable: workload.durable,
            reconnect: workload.reconnect,
            answer_ns: workload.pattern.requests().then(|| workload.answer_ns()),
            run: &run,
            seed: workload.seed,
            payload_bytes: workload.payload_bytes.max(MIN_LEN as u64),
            headers: workload.headers.as_ref(),
            options: &options,
            clients: topics::clients(workload),
        };
        let settings = S::settings(&terms)?;
        let prefix = topics::prefix(&options);
        let spec = |client: &Client| topics::spec::<S>(workload, &prefix, &run, role, client.id);
        let connections = clients.iter().map(|client| Connection::new(S::new(&settings, &spec(client)))).collect();
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(
            &epoll,
            &*notifier.0,
            epoll::EventData::new_u64(NOTIFIER),
            epoll::EventFlags::IN | epoll::EventFlags::ET,
        )?;
        let lingering = Lingering::new(S::linger_ns(&settings), clients.len());
        let payload_bytes = S::packet_payload_bytes(&settings, workload.payload_bytes);
        let dial = dial.of::<S>(&options);
        let ramp = Ramp::new(dial, &endpoint, connect_per_s, clients.len(), workload.connect_timeout_ns);
        Ok(Shard {
            outbound: Outbound::new(workload, role, &clients, &options),
            workload,
            context,
            reports,
            role,
            ids: clients.iter().map(|client| client.id).collect(),
            streams: clients.iter().map(|client| u64::from(client.hears_count)).sum(),
            run,
            prefix,
            settings,
            connections,
            epoll: Arc::new(epoll),
            notifier,
            events: Vec::with_capacity(EVENTS),
            buffer: vec![0; READ_BYTES],
            longest_bytes: payload_bytes.saturating_add(BESIDE_PAYLOAD_BYTES),
            answers: Vec::new(),
            again: Vec::new(),
            ramp,
            inbound: Inbound::new(workload, role, &clients),
            lingering,
            consumers: None,
            window: None,
            pacer: None,
            spin_cores,
            batch_ns: 0,
            looked_ns: 0,
            said_ready: false,
            replays: false,
            crashed: false,
            cuts: 0,
            alive_next: 0,
            alive_ns: 0,
            silence_ns: 0,
            server: None,
            limits: ReachedLimits::default(),
            violations: BTreeMap::new(),
            failure: None,
            away: Away::new(workload.reconnect),
            rests: BinaryHeap::new(),
            wills: (workload.last_will && role.sends()).then(|| WillConnections::new(clients.len())),
            remarks: Vec::new(),
            counter,
        })
    }

    fn spec(&self, index: usize) -> ClientSpec {
        let spec = topics::spec::<S>(self.workload, &self.prefix, &self.run, self.role, self.ids[index]);
        let last_will = self.wills.as_ref().and_then(|wills| wills.number(index));
        ClientSpec { replays: self.replays, last_will, ..spec }
    }

    fn publishes(&self) -> bool {
        self.role.sends()
    }

    fn run(&mut self) -> Result<ThreadOutcome, ShardError> {
        let mut now = clock::now();
        while !self.context.control.stopped() {
            let wake = if self.context.control.crashed() { self.keep_books(now) } else { self.play(now)? };
            now = self.wait(wake.min(now + TICK), now)?;
            self.check_setup(now)?;
        }
        self.close_all();
        Ok(self.outcome())
    }

    /// Does what is due for its clients now. Returns the instant at which more is due.
    fn play(&mut self, now: Ns) -> Result<Ns, ShardError> {
        self.cut();
        let mut wake = self.ramp(now)?.min(self.bring_back(now)).min(self.end_rests(now)?);
        if self.ramp.settled {
            wake = wake.min(self.work(now)?);
            wake = wake.min(self.flush_batches(now));
        }
        self.keep_alive(now);
        self.end_silent(now)?;
        Ok(wake)
    }

    /// Does what is due for sending or receiving now. Returns the instant at which more
    /// is due.
    fn work(&mut self, now: Ns) -> Result<Ns, ShardError> {
        self.begin();
        if self.publishes() {
            return Ok(self.send(now));
        }
        let wake = self.resume(now)?;
        let requests = self.outbound.answers.as_ref().map(|answers| answers.requests);
        self.counter.set(requests.unwrap_or_else(|| self.inbound.recorder.received()));
        if !self.said_ready {
            return self.await_probes(now);
        }
        self.drain(now);
        Ok(if self.inbound.undrained.is_some() && !self.inbound.drained { now + LOOK } else { wake })
    }

    /// Begins the run once its start is known.
    fn begin(&mut self) {
        if let (None, Some(start_ns)) = (self.window, self.context.control.started()) {
            let window = self.context.window(start_ns);
            self.window = Some(window);
            if !self.inbound.clients.is_empty() {
                self.inbound.recorder.start(window);
            }
            self.leave_until_start(&window);
            if self.publishes() && self.workload.rate != Rate::Max {
                let publishers = self.ids.len();
                self.pacer = Some(Pacer::new(self.workload, publishers, self.spin_cores, window.from_ns));
            }
            if !self.publishes() {
                self.consumers = Consumers::new(self.workload, window.start_ns, self.ids.len());
            }
            self.begin_sending(window);
        }
    }

    fn ready(&mut self) {
        self.said_ready = true;
        let _ = self.reports.send(ThreadReport::Ready);
    }

    /// Sends keep-alive packets, for a part of the connections at a time.
    fn keep_alive(&mut self, now: Ns) {
        let seconds = S::keep_alive_s(&self.settings);
        if seconds == 0 || self.connections.is_empty() {
            return;
        }
        // Each connection has its turn once in a period, and not more often: a session may count on that.
        let each_ns = (Ns::from(seconds) * SECOND / 2 / self.connections.len() as Ns).max(1);
        let since_ns = if self.alive_ns == 0 { 0 } else { now.saturating_sub(self.alive_ns) };
        if self.alive_ns != 0 && since_ns < each_ns.max(100 * MILLISECOND) {
            return;
        }
        self.alive_ns = now - since_ns % each_ns;
        for _ in 0..(since_ns / each_ns).min(self.connections.len() as Ns) {
            let index = self.alive_next;
            self.alive_next = (index + 1) % self.connections.len();
            let connection = &mut self.connections[index];
            if matches!(connection.state, State::Subscribing | State::Up) && !connection.has_pending() {
                self.answers.clear();
                connection.session.keep_alive(&self.settings, &mut self.answers);
                let written = connection.write(&self.answers);
                self.settle(index, written);
            }
        }
    }

    /// True if it polls for arrivals.
    fn polls(&self) -> bool {
        self.workload.receive == Receive::Spin && !self.publishes() && self.window.is_some() && !self.crashed
    }

    /// Returns until when it sleeps if something is due at `wake`. Publishers are awake
    /// before their due times as far as they may, and subscribers that spin do not sleep.
    fn alarm(&self, wake: Ns) -> Ns {
        match &self.pacer {
            Some(pacer) if self.outbound.next_due_ns() == Some(wake) => pacer.alarm(wake),
            None if self.polls() => 0,
            _ => wake,
        }
    }

    /// Learns from a wait the wake-up delay and the cost of watching the clock.
    fn paced(&mut self, alarm: Ns, wake: Ns, left: Ns, woke: Ns) {
        let Some(pacer) = &mut self.pacer else { return };
        if left == 0 && alarm < wake {
            clock::let_others_run();
            pacer.watched(self.looked_ns, woke);
        } else if left > 0 && woke >= alarm {
            pacer.woke(alarm, woke);
        }
    }

    /// Waits for events, until `wake` at the latest, and handles them. Returns the time
    /// after it.
    fn wait(&mut self, wake: Ns, now: Ns) -> Result<Ns, ShardError> {
        // Sending has taken time since then.
        let now = if self.publishes() { clock::now() } else { now };
        let alarm = self.alarm(wake);
        let left = if self.again.is_empty() { alarm.saturating_sub(now) } else { 0 };
        let mut events = std::mem::take(&mut self.events);
        events.clear();
        let waited = await_events(&self.epoll, left, self.publishes(), &mut events);
        match waited {
            Ok(()) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let woke = clock::now();
        self.paced(alarm, wake, left, woke);
        if self.polls() && events.is_empty() {
            clock::let_others_run();
        }
        if self.again.is_empty() {
            // Events that come now ended the wait, or came after the last check.
            let waited = woke.saturating_sub(now) > WAITED;
            self.inbound.recorder.listened(if waited { woke } else { self.looked_ns });
        }
        self.looked_ns = woke;
        // A message that arrived meanwhile may be the first data message.
        if !self.publishes() && self.ramp.settled {
            self.begin();
        }
        // A connection with more to read goes to the end of the list.
        let waiting = self.again.len();
        let idle = waiting == 0 && events.is_empty();
        for place in 0..waiting {
            self.read(self.again[place] as usize, false)?;
        }
        self.again.drain(..waiting);
        for event in &events {
            match event.data.u64() {
                NOTIFIER => {
                    let _ = rustix::io::read(&*self.notifier.0, &mut [0u8; 8]);
                }
                index => self.happened(index as usize, event.flags)?,
            }
        }
        self.events = events;
        Ok(if idle && self.publishes() { woke } else { clock::now() })
    }

    fn happened(&mut self, index: usize, flags: epoll::EventFlags) -> Result<(), ShardError> {
        use epoll::EventFlags as Flags;
        if self.connections[index].state == State::Opening && flags.intersects(Flags::OUT | Flags::ERR | Flags::HUP) {
            self.opened(index)?;
        }
        let over = flags.intersects(Flags::RDHUP | Flags::HUP | Flags::ERR);
        if over || flags.contains(Flags::IN) {
            self.read(index, over)?;
        }
        // Edges are reported together: each arrival also reports room for writes.
        let connection = &self.connections[index];
        if flags.contains(Flags::OUT)
            && (connection.blocked || connection.is_flushable() || connection.state == State::Resending)
        {
            let flushed = self.connections[index].flush();
            if matches!(flushed, Ok(true)) {
                match self.connections[index].state {
                    State::Resending => self.go_on(index)?,
                    _ => self.unblock(index),
                }
            }
            self.settle(index, flushed.map(|_| ()));
        }
        Ok(())
    }

    /// Reads what is there. If the connection is `over`, its end is there as well, and no
    /// further event follows.
    fn read(&mut self, index: usize, over: bool) -> Result<(), ShardError> {
        for turn in 0.. {
            if turn == READS && !over {
                self.again.push(index as u32);
                break;
            }
            let state = self.connections[index].state;
            if matches!(state, State::Waiting | State::Opening | State::Gone) {
                return Ok(());
            }
            let most = self.may_read(index, over);
            if most == 0 {
                return Ok(());
            }
            let received = self.inbound.recorder.received();
            let got = self.connections[index].read(&mut self.buffer[..most]);
            match got {
                Ok(None) => return Ok(()),
                Ok(Some((count, more, now))) => {
                    self.connections[index].silent = 0;
                    self.answers.clear();
                    let taken = self.take(index, count, now);
                    if let Some(consumers) = &mut self.consumers {
                        // What a server sends together arrives together.
                        (received..self.inbound.recorder.received()).for_each(|_| consumers.took(index, now));
                    }
                    match taken {
                        Ok(changes) => self.after(index, changes, now)?,
                        Err(loss) => return self.lost(index, &loss),
                    }
                    if !more && !over {
                        return Ok(());
                    }
                }
                Err(loss) => return self.lost(index, &loss),
            }
        }
        Ok(())
    }

    /// Passes what was read to the session, and the session's events to ledger and
    /// recorder.
    #[inline]
    fn take(&mut self, index: usize, count: usize, now: Ns) -> Result<Changes, ConnectionLoss> {
        let ahead_ns = self.context.ahead_ns;
        let from_ns = self.window.map(|window| window.from_ns);
        let Shard {
            connections,
            settings,
            buffer,
            answers,
            inbound,
            outbound,
            server,
            limits,
            violations,
            longest_bytes,
            rests,
            ids,
            away,
            window,
            role,
            ..
        } = self;
        let longest_bytes = *longest_bytes;
        let mut heard = |heard: SessionEvent<'_>, changes: &mut Changes| match heard {
            SessionEvent::Message { payload: message, .. } => {
                let Some(client) = inbound.clients.get_mut(index) else {
                    let at_ns = now.saturating_add_signed(ahead_ns);
                    outbound.answers.iter_mut().for_each(|answers| answers.keep(index, message, at_ns));
                    return;
                };
                if let Some(requests) = &mut outbound.requests {
                    let answers = Header::read(message).map(|header| header.sequence);
                    changes.room |= answers.is_some_and(|sequence| requests.answered(index, sequence));
                }
                let (unheard, received) = (client.unheard_count(), inbound.recorder.received());
                client.arrived(&mut inbound.recorder, message, now);
                // Markers, which keep coming, do not count as activity at a stream's end.
                if received != inbound.recorder.received() {
                    inbound.last_ns = now;
                }
                if unheard != client.unheard_count() {
                    inbound.unheard -= 1;
                    inbound.heard_ns = now;
                }
            }
            SessionEvent::Violation(statement) => {
                let count = violations.entry(statement).or_default();
                *count = count.saturating_add(1);
            }
            SessionEvent::Part(part) => inbound.recorder.part = part,
            SessionEvent::Revoked => inbound.rebalancing.revoked(index, now),
            SessionEvent::Assigned(generation) => inbound.rebalancing.assigned(index, generation, now, from_ns),
            SessionEvent::Acknowledged(sequence) => {
                changes.room = true;
                outbound.acknowledged(index, sequence, now);
            }
            SessionEvent::Refused(sequence, refusal) => {
                changes.room = true;
                outbound.refused(index, sequence, &refusal);
            }
            SessionEvent::Blocked(reason) => limits.block(reason, now),
            SessionEvent::Unblocked => limits.unblock(now),
            SessionEvent::Room => changes.room = true,
            SessionEvent::Rest(failed) => rests.push(Reverse((now + away::pause_ns(ids[index], failed), index as u32))),
            SessionEvent::MemberLost(member) => {
                let at = Self::when(window.as_ref(), now);
                let role = format!("{role:?}").to_lowercase();
                away.note(|| format!("{role} {} lost its connection to {member}{at}", ids[index]));
            }
            SessionEvent::Connected => changes.connected = true,
            SessionEvent::Subscribed => changes.subscribed = true,
            SessionEvent::Server(words) => {
                server.get_or_insert_with(|| words.to_owned());
            }
        };
        connections[index].feed(settings, &buffer[..count], longest_bytes, answers, &mut heard)
    }

    fn after(&mut self, index: usize, changes: Changes, now: Ns) -> Result<(), ShardError> {
        if changes.connected {
            self.accepted(index, now);
        }
        if changes.subscribed && self.connections[index].state == State::Subscribing {
            self.subscribed(index, now);
        }
        if !self.answers.is_empty() {
            let answers = std::mem::take(&mut self.answers);
            let written = self.connections[index].write(&answers);
            self.answers = answers;
            if let Err(loss) = written {
                let said = self.cut_off(index);
                return self.lost(index, &said.unwrap_or(loss));
            }
        }
        if self.connections[index].state == State::Resending {
            self.go_on(index)?;
        }
        if self.connections[index].state == State::Up && self.connections[index].session.owes() {
            // Of what a lost member has not acknowledged.
            if let Err(loss) = self.resend(index) {
                return self.lost(index, &loss);
            }
        }
        if changes.room && !self.connections[index].has_pending() {
            self.unblock(index);
        }
        self.answer(index);
        Ok(())
    }

    /// Returns what its clients have received, of what was sent to them.
    fn incoming(&mut self, totals: &Totals) -> ThreadOutcome {
        let inbound = &mut self.inbound;
        let recorder = std::mem::replace(&mut inbound.recorder, ReceiveRecorder::new(self.workload, 0));
        ThreadOutcome::of_incoming(std::mem::take(&mut inbound.clients), recorder, totals, self.workload)
    }

    fn outcome(&mut self) -> ThreadOutcome {
        let counts = self.ramp.counts;
        let mut remarks = std::mem::take(&mut self.remarks);
        remarks.extend(self.away.remarks(counts.lost, counts.reconnected));
        remarks.extend(self.ramp.detour());
        let connections = Some(Connecting {
            times: std::mem::take(&mut self.ramp.times),
            back: self.away.times.take(),
            counts,
            first_error: self.ramp.first_error.take(),
            first_loss: self.away.first_loss.take(),
            tls: self.ramp.negotiated.take().map(|tls| (tls.version.to_owned(), tls.cipher)),
        });
        let mut outcome = if self.role == Role::Replier {
            ThreadOutcome::default()
        } else if self.publishes() {
            if let Some(window) = self.window {
                self.outbound.clients.iter_mut().for_each(|client| client.finish(&window));
                let window_ns = window.to_ns.map_or(0, |to| to - window.from_ns);
                self.outbound.paced(self.pacer.as_ref().map(|pacer| pacer.figures(window_ns)));
            }
            let sending = self.outbound.take_outcome();
            match self.role {
                Role::Requester => {
                    let sent: Vec<PublisherTotal> = self.outbound.clients.iter().map(Outgoing::total).collect();
                    sending.with(self.incoming(&Totals::new(&sent)))
                }
                _ => sending,
            }
        } else {
            let nothing = Totals::default();
            self.incoming(self.context.control.draining().map_or(&nothing, |(totals, _)| totals))
        };
        outcome.remarks.append(&mut remarks);
        outcome.limits_reached = self.limits.take(clock::now());
        outcome.violations = std::mem::take(&mut self.violations);
        outcome.ends = self.later_ends();
        outcome.connections = connections;
        outcome.rebalances = self.inbound.rebalancing.seen();
        outcome.server = self.server.take();
        outcome
    }
}
