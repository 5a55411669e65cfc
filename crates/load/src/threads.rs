//! Clients on threads, one each, for drivers whose sockets block. Each thread owns its
//! socket, schedule, recorder and ledger; during a run threads share only a few flags
//! that they read.

mod echo;
mod echo_publisher;

use crate::clock::{self, NAP};
use crate::consume::ConsumePace;
use crate::control::{Control, Counter, PinError, ThreadContext, ThreadReport, pin};
use crate::drivers::socket::{DriverError, Sent, Socket};
use crate::occupancy::Occupied;
use crate::outcome::ThreadOutcome;
use crate::pacing::Pacer;
use crate::placement;
use crate::publisher::{Marker, Next, Publisher};
use crate::reply_times::ReplyStamp;
use crate::subscriber::{Subscriber, Totals, ledger_capacity};
use crate::usage::paused_within;
use crate::window::{clock_stride, measures_latency};
use pubmark_model::header::{END, Header, PROBE};
use pubmark_model::protocol::{Client, Role};
use pubmark_model::units::{MILLISECOND, Ns};
use pubmark_model::workload::{Receive, Workload};
use serde_json::{Map, Value};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::thread;
use std::time::Duration;

/// Time after which a probe without a reply is repeated, if requests can be lost, ns.
const ASK_AGAIN: Ns = 100 * MILLISECOND;

/// Minimum time between two probes or end markers of one publisher.
const MARKER_EVERY: Duration = Duration::from_millis(5);

/// Minimum time between two probes or end markers of all publishers together: otherwise
/// thousands of them would flood the system with markers before the first message.
const MARKERS_APART: Duration = Duration::from_micros(100);

/// Time between two probes if there are few publishers. The time that clients take to
/// find each other is known no more precisely than this.
const PROBE_EVERY: Duration = Duration::from_millis(1);

/// Returns the time between two end markers of one publisher.
pub(crate) fn marker_every(workload: &Workload) -> Duration {
    MARKERS_APART.saturating_mul(workload.publishers).clamp(MARKER_EVERY, Duration::from_secs(1))
}

/// Returns the time between two probes of one publisher, which sends `copies` of each.
pub(crate) fn probe_every(workload: &Workload, copies: u32) -> Duration {
    MARKERS_APART.saturating_mul(workload.publishers.saturating_mul(copies)).clamp(PROBE_EVERY, marker_every(workload))
}

/// Messages received between two checks of the control flags.
const LOOK_EVERY: u32 = 256;

/// Over a transport that may reorder, a stream ends when its end marker has arrived and
/// nothing follows for this long.
const QUIET: Ns = 250 * MILLISECOND;

/// One client with its socket, ready to run on a thread.
pub struct ClientThread {
    /// The client, with the publishers from which it receives.
    pub client: Client,
    /// Its socket.
    pub socket: Box<dyn Socket>,
    /// Its counter of messages sent or received.
    pub counter: Arc<Counter>,
    /// Processors that it may use; all if empty.
    pub cpus: Vec<usize>,
    /// Processors that it may keep awake before its due times.
    pub spin_cores: f64,
}

impl ClientThread {
    /// Sends or receives until the run is stopped.
    pub fn run(mut self, context: &ThreadContext, reports: &Sender<ThreadReport>) {
        clock::exact_timers();
        placement::plays(self.client.role);
        let mut remarks: Vec<String> = pin(&self.cpus).err().iter().map(PinError::to_string).collect();
        let ended = match self.client.role {
            Role::Publisher if context.workload.pattern.echoed() => self.publish_and_hear(context, reports),
            Role::Publisher => self.publish(context, reports),
            Role::Subscriber => self.subscribe(context, reports),
            Role::Requester => self.request(context, reports),
            Role::Replier => self.reply(context, reports),
        };
        let report = match ended {
            Ok(mut outcome) => {
                outcome.remarks.append(&mut remarks);
                ThreadReport::Ended(Box::new(outcome))
            }
            Err(error) => {
                ThreadReport::Failed(format!("{:?} {}: {error}", self.client.role, self.client.id).to_lowercase())
            }
        };
        // The agent may have ended already; then nobody reads the report.
        let _ = reports.send(report);
        // The socket stays open until the process ends: closing it could discard messages
        // that others have not received yet. The socket of a killed client is closed.
        std::mem::forget(self.socket);
    }

    /// Takes the socket from a client that has been killed, and returns since when it has
    /// none.
    fn take_socket(&mut self, control: &Control) -> Option<Ns> {
        control.crashed().then(|| {
            let now = clock::now();
            std::mem::replace(&mut self.socket, Box::new(ClosedSocket)).crash();
            now
        })
    }

    /// Waits for the end of the run, once the client has nothing more to do. A killed
    /// client reports `drained` as soon as it is asked.
    fn outlive(&mut self, control: &Control, mut drained: Option<&Sender<ThreadReport>>) {
        self.take_socket(control);
        while !control.stopped() {
            if let Some(reports) = drained.take_if(|_| control.draining().is_some()) {
                let _ = reports.send(ThreadReport::Drained);
            }
            thread::park_timeout(Duration::from_nanos(NAP));
        }
    }

    fn publish(
        &mut self,
        context: &ThreadContext,
        reports: &Sender<ThreadReport>,
    ) -> Result<ThreadOutcome, DriverError> {
        let (workload, control) = (&context.workload, &context.control);
        let _ = reports.send(ThreadReport::Ready);
        let mut marker = Marker::new(workload, self.client.id);
        let copies = if workload.competing() { workload.subscribers } else { 1 };
        let pause = probe_every(workload, copies);
        let start_ns = loop {
            if control.stopped() {
                return Ok(ThreadOutcome::default());
            }
            if let Some(start_ns) = control.started() {
                break start_ns;
            }
            for _ in 0..copies {
                self.socket.send(marker.message(PROBE, clock::now()))?;
            }
            self.socket.flush()?;
            thread::park_timeout(pause);
        };
        let window = context.window(start_ns);
        let mut pacer = Pacer::new(workload, 1, self.spin_cores, window.from_ns);
        let mut publisher = Publisher::new(workload, self.client.id, window, ledger_capacity(workload));
        let stride = clock_stride(workload);
        let mut now = clock::now();
        while !control.silenced() {
            match publisher.next(now) {
                Next::Done => break,
                Next::Wait(until) => now = wait(&mut pacer, until),
                Next::Send => {
                    let most = stride.min(publisher.at_once());
                    let taken = self.send_together(&mut publisher, most, now, control)?;
                    let began = std::mem::replace(&mut now, clock::now());
                    // Time in which this process was stopped during a call is not caused
                    // by the library.
                    let ended = now - paused_within(began, now);
                    if taken > 0 {
                        publisher.accepted_together(taken, began, ended);
                        self.counter.set(publisher.sent());
                        self.counter.lag(publisher.take_own_lag_max());
                    }
                    if taken < most {
                        publisher.refused(ended);
                    }
                }
            }
        }
        publisher.end(self.take_socket(control));
        self.counter.set(publisher.sent());
        self.counter.lag(publisher.take_own_lag_max());
        let _ = reports.send(ThreadReport::Sent(vec![publisher.total()]));
        let pause = marker_every(workload);
        while !control.silenced() {
            for _ in 0..copies {
                self.socket.send(marker.message(END, clock::now()))?;
            }
            self.socket.flush()?;
            thread::park_timeout(pause);
        }
        self.outlive(control, None);
        publisher.paced(&pacer);
        Ok(ThreadOutcome::of_publisher(publisher))
    }

    /// Offers up to `most` messages of the same instant, one after the other. Returns how
    /// many were taken before the first that was not.
    #[inline]
    fn send_together(
        &mut self,
        publisher: &mut Publisher,
        most: u32,
        now: Ns,
        control: &Control,
    ) -> Result<u32, DriverError> {
        let mut sent = self.socket.send(publisher.message(now))?;
        let mut taken = 0;
        while sent == Sent::Accepted {
            taken += 1;
            if taken == most || control.silenced() {
                break;
            }
            sent = self.socket.send(publisher.later_message(taken))?;
        }
        Ok(taken)
    }

    fn subscribe(
        &mut self,
        context: &ThreadContext,
        reports: &Sender<ThreadReport>,
    ) -> Result<ThreadOutcome, DriverError> {
        let (workload, control) = (&context.workload, &context.control);
        let hears = self.client.hears_first..self.client.hears_first + self.client.hears_count;
        let mut subscriber = Subscriber::new(workload, hears);
        let stride = clock_stride(workload);
        let timed = measures_latency(workload);
        let (mut ready, mut started, mut drained) = (false, false, false);
        // Messages until the next reading of the clock, and since the last check of the
        // flags.
        let (mut now, mut until_clock, mut since_look) = (0, 0, 0u32);
        // Messages so far, and the instant of the last increase; end markers keep
        // arriving.
        let (mut last, mut last_ns) = (0, 0);
        let mut occupied = Occupied::default();
        let mut echo = echo::Echo::of(workload, &self.client);
        let mut pace = None;
        while !control.silenced() {
            if started && timed {
                occupied.listens(clock::now());
            }
            match self.socket.recv()? {
                Some(message) => {
                    if until_clock == 0 {
                        until_clock = stride;
                        now = clock::now();
                        subscriber.listened(occupied.since(now));
                    }
                    until_clock -= 1;
                    let message = match &mut echo {
                        Some(echo) => {
                            echo.keep(message);
                            echo.back(self.socket.as_mut(), control)?
                        }
                        None => message,
                    };
                    since_look += 1;
                    // This may be the first data message, received while this thread
                    // waited.
                    if let (false, Some(start_ns)) = (started, control.started()) {
                        started = true;
                        subscriber.start(context.window(start_ns));
                        pace = ConsumePace::new(workload, start_ns);
                    }
                    subscriber.arrived(message, now);
                    if let Some(pace) = &mut pace {
                        pace.took(now);
                        rest(pace.next_ns(), control);
                        (until_clock, since_look) = (0, LOOK_EVERY);
                    }
                    // During the drain, end markers arrive faster than the thread's
                    // receive call times out: the flags would be checked once in 256 of
                    // them.
                    if started && since_look < LOOK_EVERY && control.draining().is_none() {
                        continue;
                    }
                }
                None => {
                    until_clock = 0;
                    occupied.idle();
                    if workload.receive == Receive::Spin {
                        clock::let_others_run();
                    }
                }
            }
            since_look = 0;
            let received = subscriber.recorder().received();
            if received > last {
                (last, last_ns) = (received, now);
            }
            self.counter.set(received);
            if !ready && subscriber.heard_all() {
                ready = true;
                let _ = reports.send(ThreadReport::Ready);
            }
            if let (false, Some((totals, deadline_ns))) = (drained, control.draining()) {
                let now = clock::now();
                let quiet = subscriber.incoming().ended() && now > last_ns + QUIET;
                if subscriber.complete(totals, self.socket.orderly()) || quiet || now >= *deadline_ns {
                    drained = true;
                    let _ = reports.send(ThreadReport::Drained);
                }
            }
        }
        if let Some(at_ns) = self.take_socket(control) {
            subscriber.crashed(at_ns);
        }
        self.outlive(control, Some(reports).filter(|_| !drained));
        if let (false, Some(start_ns)) = (started, control.started()) {
            subscriber.start(context.window(start_ns));
        }
        let mut remarks = Vec::new();
        if !ready {
            remarks.push(format!(
                "subscriber {} never heard publishers {:?}",
                self.client.id,
                subscriber.incoming().unheard()
            ));
        }
        let nothing = Totals::default();
        let totals = control.draining().map_or(&nothing, |(totals, _)| totals);
        let mut outcome = ThreadOutcome::of_subscriber(subscriber, totals, workload);
        outcome.subscriber = Some(self.client.id);
        outcome.remarks.append(&mut remarks);
        Ok(outcome)
    }

    fn request(
        &mut self,
        context: &ThreadContext,
        reports: &Sender<ThreadReport>,
    ) -> Result<ThreadOutcome, DriverError> {
        let (workload, control) = (&context.workload, &context.control);
        let mut marker = Marker::new(workload, self.client.id);
        let mut subscriber = Subscriber::new(workload, self.client.id..self.client.id + 1);
        while !subscriber.heard_all() {
            if control.stopped() {
                return Ok(ThreadOutcome::default());
            }
            if self.socket.send(marker.message(PROBE, clock::now()))? == Sent::Full {
                continue;
            }
            let asked_ns = clock::now();
            while !control.stopped() {
                if let Some(reply) = self.socket.recv()? {
                    subscriber.arrived(reply, clock::now());
                    break;
                }
                if self.socket.loses_requests() && clock::now() >= asked_ns + ASK_AGAIN {
                    break;
                }
            }
        }
        let _ = reports.send(ThreadReport::Ready);
        let start_ns = loop {
            if control.stopped() {
                return Ok(ThreadOutcome::default());
            }
            if let Some(start_ns) = control.started() {
                break start_ns;
            }
            thread::park_timeout(MARKER_EVERY);
        };
        let publisher = self.ask_in_turn(context, start_ns, &mut subscriber)?;
        let totals = Totals::new(&[publisher.total()]);
        let _ = reports.send(ThreadReport::Sent(vec![publisher.total()]));
        while !control.silenced() {
            thread::park_timeout(MARKER_EVERY);
        }
        self.outlive(control, None);
        let sending = ThreadOutcome::of_publisher(publisher);
        Ok(sending.with(ThreadOutcome::of_subscriber(subscriber, &totals, workload)))
    }

    /// Sends by the schedule, each message after the answer to the one before it, until
    /// all are sent or the client is killed.
    fn ask_in_turn(
        &mut self,
        context: &ThreadContext,
        start_ns: Ns,
        answers: &mut Subscriber,
    ) -> Result<Publisher, DriverError> {
        let (workload, control) = (&context.workload, &context.control);
        let window = context.window(start_ns);
        let mut pacer = Pacer::new(workload, 1, self.spin_cores, window.from_ns);
        answers.start(window);
        let mut publisher = Publisher::new(workload, self.client.id, window, ledger_capacity(workload));
        let mut now = clock::now();
        while !control.silenced() {
            let asked = now;
            match publisher.next(now) {
                Next::Done => break,
                Next::Wait(until) => {
                    now = wait(&mut pacer, until);
                    continue;
                }
                Next::Send => match self.socket.send(publisher.message(now))? {
                    Sent::Full => now = clock::now(),
                    Sent::Accepted => {
                        // An echo, or an answer after the time limit, may be of an earlier one.
                        let may_be_other = workload.pattern.echoed() || workload.timeout_ns.is_some();
                        let awaited = may_be_other.then(|| publisher.sent() as u32);
                        publisher.accepted(now, now);
                        now = self.await_answer(answers, awaited, control, now + workload.answer_ns())?;
                        self.counter.set(publisher.sent());
                        self.counter.lag(publisher.take_own_lag_max());
                    }
                },
            }
            // Waiting for the answer, or for room, is caused by the system; time in which this process was
            // stopped is not.
            publisher.refused(now - paused_within(asked, now));
        }
        let killed_ns = self.take_socket(control);
        publisher.end(killed_ns);
        if let Some(at_ns) = killed_ns {
            answers.crashed(at_ns);
        }
        publisher.paced(&pacer);
        Ok(publisher)
    }

    /// Waits for an answer, or for the one to this message, until the deadline, and returns
    /// its arrival time. An unreadable message counts as the answer. Echoes of probes and
    /// late answers are received on the way.
    fn await_answer(
        &mut self,
        answers: &mut Subscriber,
        awaited: Option<u32>,
        control: &Control,
        deadline_ns: Ns,
    ) -> Result<Ns, DriverError> {
        loop {
            let answer = self.socket.recv()?;
            let now = clock::now();
            if let Some(answer) = answer {
                answers.arrived(answer, now);
                let header = awaited.and_then(|_| Header::read(answer));
                if header.is_none_or(|header| Some(header.sequence) == awaited) {
                    return Ok(now);
                }
            }
            if now >= deadline_ns || control.silenced() {
                return Ok(now);
            }
        }
    }

    fn reply(&mut self, context: &ThreadContext, reports: &Sender<ThreadReport>) -> Result<ThreadOutcome, DriverError> {
        let control = &context.control;
        let _ = reports.send(ThreadReport::Ready);
        let mut echo = Vec::with_capacity(context.workload.payload_bytes as usize);
        let stamp = ReplyStamp::of(&context.workload);
        let (mut received, mut drained) = (0, false);
        while !control.silenced() {
            if !drained && control.draining().is_some() {
                drained = true;
                let _ = reports.send(ThreadReport::Drained);
            }
            let Some(request) = self.socket.recv()? else { continue };
            echo.clear();
            echo.extend_from_slice(request);
            let now = || clock::now().saturating_add_signed(context.ahead_ns);
            if let Some(stamp) = &stamp {
                stamp.arrived(&mut echo, now());
            }
            received += 1;
            self.counter.set(received);
            if let Some(stamp) = &stamp {
                stamp.sent(&mut echo, now());
            }
            while self.socket.send(&echo)? == Sent::Full && !control.silenced() {}
        }
        self.outlive(control, Some(reports).filter(|_| !drained));
        Ok(ThreadOutcome::default())
    }
}

/// Stands in for the closed socket of a client that was killed.
struct ClosedSocket;

impl Socket for ClosedSocket {
    fn endpoint(&self) -> Option<&str> {
        None
    }

    fn send(&mut self, _: &[u8]) -> Result<Sent, DriverError> {
        Ok(Sent::Full)
    }

    fn recv(&mut self) -> Result<Option<&[u8]>, DriverError> {
        Ok(None)
    }

    fn applied(&self) -> Map<String, Value> {
        Map::new()
    }
}

/// Waits until a subscriber may take its next message, or until the drain begins.
fn rest(until_ns: Ns, control: &Control) {
    loop {
        let now = clock::now();
        if now >= until_ns || control.draining().is_some() || control.silenced() {
            return;
        }
        clock::sleep_until(until_ns.min(now + NAP));
    }
}

/// Waits until an instant, or for [`NAP`] if that is sooner, so that a stop is noticed.
/// Returns the time after it.
#[inline]
fn wait(pacer: &mut Pacer, until: Ns) -> Ns {
    let mut now = clock::now();
    let alarm = pacer.alarm(until);
    if alarm > now {
        clock::sleep_until(alarm);
        now = clock::now();
        if now < alarm {
            return now;
        }
        pacer.woke(alarm, now);
    }
    let (awake, until) = (now, until.min(now + NAP));
    while now < until {
        clock::let_others_run();
        now = clock::now();
    }
    pacer.watched(awake, now.min(until));
    now
}

#[cfg(test)]
mod tests;
