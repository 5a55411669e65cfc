//! Clients on threads, one each: for drivers whose sockets block. Each thread
//! owns its socket, schedule, recorder and ledger; nothing is shared while a
//! run is on but a few flags that are read.

use crate::clock;
use crate::drivers::{DriverError, Sent, Socket};
use crate::publisher::{Marker, Next, Publisher};
use crate::subscriber::{Subscriber, ledger_capacity};
use crate::window::{Window, clock_stride};
use pubmark_model::header::{END, PROBE};
use pubmark_model::protocol::{Client, PublisherTotal, Role};
use pubmark_model::units::{MILLISECOND, Ns};
use pubmark_model::workload::{Pacing, Workload};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

/// A publisher's probes and end markers are at least this far apart.
const MARKER_EVERY: Duration = Duration::from_millis(5);

/// Those of all publishers together: thousands of them would otherwise drown
/// the system in markers before the first message.
const MARKERS_APART: Duration = Duration::from_micros(100);

/// The time between two probes or end markers of one publisher.
fn marker_every(workload: &Workload) -> Duration {
    MARKERS_APART.saturating_mul(workload.publishers).clamp(MARKER_EVERY, Duration::from_secs(1))
}

/// Over a transport that may reorder, a stream is at its end when its end
/// marker has come and then nothing for this long.
const QUIET: Ns = 250 * MILLISECOND;

/// What the agent tells its client threads.
#[derive(Default)]
pub struct Control {
    start_ns: AtomicU64,
    stop: AtomicBool,
    drain: OnceLock<(Vec<PublisherTotal>, Ns)>,
}

impl Control {
    /// Sets the instant of the start.
    pub fn start(&self, at_ns: Ns) {
        self.start_ns.store(at_ns.max(1), Ordering::Release);
    }

    /// Sets what was sent, and until when it may arrive.
    pub fn drain(&self, totals: Vec<PublisherTotal>, deadline_ns: Ns) {
        let _ = self.drain.set((totals, deadline_ns));
    }

    /// Ends every thread.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Release);
    }

    fn started(&self) -> Option<Ns> {
        Some(self.start_ns.load(Ordering::Acquire)).filter(|at| *at > 0)
    }

    #[inline]
    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// What a client thread tells the agent.
pub enum Report {
    /// Connected, and hears whom it should hear.
    Ready,
    /// A publisher has sent all.
    Sent(PublisherTotal),
    /// A subscriber has all, or knows the rest to be lost.
    Drained,
    /// It ended, with what it measured.
    Ended(Box<Outcome>),
    /// It could not go on.
    Failed(String),
}

/// What one client measured.
#[derive(Default)]
pub struct Outcome {
    /// Its sending side.
    pub publisher: Option<Publisher>,
    /// Its receiving side.
    pub subscriber: Option<Subscriber>,
    /// What the verdict should know.
    pub remarks: Vec<String>,
}

/// A counter for the live display, written by one thread.
#[derive(Default)]
#[repr(align(64))]
pub struct Counter(AtomicU64);

impl Counter {
    /// The count so far.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    #[inline]
    fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }
}

/// What every client thread of an agent has in common.
pub struct Crew {
    /// The workload.
    pub workload: Workload,
    /// Flags.
    pub control: Control,
}

/// One client with its socket, ready to go on a thread.
pub struct Player {
    /// Its part.
    pub client: Client,
    /// Its socket.
    pub socket: Box<dyn Socket>,
    /// Its counter: messages sent, or received.
    pub counter: Arc<Counter>,
    /// Processors that it may use; empty for all.
    pub cpus: Vec<usize>,
}

impl Player {
    /// Plays until the crew is stopped.
    pub fn play(mut self, crew: &Crew, reports: &Sender<Report>) {
        clock::exact_timers();
        let mut remarks = pin(&self.cpus).err().into_iter().collect::<Vec<_>>();
        let played = match self.client.role {
            Role::Publisher => self.publish(crew, reports),
            Role::Subscriber => self.subscribe(crew, reports),
            Role::Requester => self.request(crew, reports),
            Role::Replier => self.reply(crew, reports),
        };
        let report = match played {
            Ok(mut outcome) => {
                outcome.remarks.append(&mut remarks);
                Report::Ended(Box::new(outcome))
            }
            Err(error) => Report::Failed(format!("{:?} {}: {error}", self.client.role, self.client.id).to_lowercase()),
        };
        // The agent may be gone already; then nobody wants the report.
        let _ = reports.send(report);
        // Open until the process ends: closing could throw away what others
        // have not received yet.
        std::mem::forget(self.socket);
    }

    fn publish(&mut self, crew: &Crew, reports: &Sender<Report>) -> Result<Outcome, DriverError> {
        let (workload, control) = (&crew.workload, &crew.control);
        let _ = reports.send(Report::Ready);
        let mut marker = Marker::new(workload, self.client.id);
        let copies = if workload.competing() { workload.subscribers } else { 1 };
        let pause = marker_every(workload);
        let start_ns = loop {
            if control.stopped() {
                return Ok(Outcome::default());
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
        let mut publisher =
            Publisher::new(workload, self.client.id, Window::new(workload, start_ns), ledger_capacity(workload));
        let stride = clock_stride(workload);
        let mut now = clock::now();
        let mut since_clock = 0;
        while !control.stopped() {
            match publisher.next(now) {
                Next::Done => break,
                Next::Wait(until) => now = wait(workload.pacing, until),
                Next::Send => match self.socket.send(publisher.message(now))? {
                    Sent::Accepted => {
                        let began = now;
                        since_clock += 1;
                        if since_clock >= stride {
                            since_clock = 0;
                            now = clock::now();
                            self.counter.set(publisher.sent());
                        }
                        publisher.accepted(began, now);
                    }
                    Sent::Full => {
                        now = clock::now();
                        publisher.refused(now);
                    }
                },
            }
        }
        publisher.abandon();
        self.counter.set(publisher.sent());
        let _ = reports.send(Report::Sent(publisher.total()));
        while !control.stopped() {
            for _ in 0..copies {
                self.socket.send(marker.message(END, clock::now()))?;
            }
            self.socket.flush()?;
            thread::park_timeout(pause);
        }
        Ok(Outcome { remarks: exhausted(&publisher), publisher: Some(publisher), subscriber: None })
    }

    fn subscribe(&mut self, crew: &Crew, reports: &Sender<Report>) -> Result<Outcome, DriverError> {
        let (workload, control) = (&crew.workload, &crew.control);
        let hears = self.client.hears_first..self.client.hears_first + self.client.hears_count;
        let mut subscriber = Subscriber::new(workload, hears);
        let stride = clock_stride(workload);
        let (mut ready, mut started, mut drained) = (false, false, false);
        let (mut now, mut since_clock, mut since_look) = (0, 0, 0u32);
        let mut last_ns = 0;
        while !control.stopped() {
            match self.socket.recv()? {
                Some(message) => {
                    if since_clock == 0 {
                        now = clock::now();
                        last_ns = now;
                    }
                    since_clock = (since_clock + 1) % stride;
                    since_look += 1;
                    subscriber.arrived(message, now);
                    if started && since_look < 256 {
                        continue;
                    }
                }
                None => since_clock = 0,
            }
            since_look = 0;
            self.counter.set(subscriber.received());
            if !ready && subscriber.heard_all() {
                ready = true;
                let _ = reports.send(Report::Ready);
            }
            if let (false, Some(start_ns)) = (started, control.started()) {
                started = true;
                subscriber.start(Window::new(workload, start_ns));
            }
            if let (false, Some((totals, deadline_ns))) = (drained, control.drain.get()) {
                let now = clock::now();
                let quiet = subscriber.ended() && now > last_ns + QUIET;
                if subscriber.complete(totals, self.socket.orderly()) || quiet || now >= *deadline_ns {
                    drained = true;
                    let _ = reports.send(Report::Drained);
                }
            }
        }
        let mut remarks = Vec::new();
        if !ready {
            remarks.push(format!("subscriber {} never heard publishers {:?}", self.client.id, subscriber.unheard()));
        }
        if subscriber.overflow() {
            remarks.push(format!("subscriber {}: more messages arrived than its ledger has room for", self.client.id));
        }
        subscriber.close(control.drain.get().map(|(totals, _)| totals.as_slice()).unwrap_or_default());
        Ok(Outcome { publisher: None, subscriber: Some(subscriber), remarks })
    }

    fn request(&mut self, crew: &Crew, reports: &Sender<Report>) -> Result<Outcome, DriverError> {
        let (workload, control) = (&crew.workload, &crew.control);
        let mut marker = Marker::new(workload, self.client.id);
        let mut subscriber = Subscriber::new(workload, self.client.id..self.client.id + 1);
        while !subscriber.heard_all() {
            if control.stopped() {
                return Ok(Outcome::default());
            }
            if self.socket.send(marker.message(PROBE, clock::now()))? == Sent::Full {
                continue;
            }
            while !control.stopped() {
                if let Some(reply) = self.socket.recv()? {
                    subscriber.arrived(reply, clock::now());
                    break;
                }
            }
        }
        let _ = reports.send(Report::Ready);
        let start_ns = loop {
            if control.stopped() {
                return Ok(Outcome::default());
            }
            if let Some(start_ns) = control.started() {
                break start_ns;
            }
            thread::park_timeout(MARKER_EVERY);
        };
        let window = Window::new(workload, start_ns);
        subscriber.start(window);
        let mut publisher = Publisher::new(workload, self.client.id, window, ledger_capacity(workload));
        let mut now = clock::now();
        while !control.stopped() {
            match publisher.next(now) {
                Next::Done => break,
                Next::Wait(until) => now = wait(workload.pacing, until),
                Next::Send => match self.socket.send(publisher.message(now))? {
                    Sent::Full => now = clock::now(),
                    Sent::Accepted => {
                        publisher.accepted(now, now);
                        now = self.await_reply(&mut subscriber, control, now + workload.drain_ns)?;
                        self.counter.set(publisher.sent());
                    }
                },
            }
            // Waiting for the reply, or for room, is the system's doing.
            publisher.refused(now);
        }
        publisher.abandon();
        subscriber.close(&[publisher.total()]);
        let _ = reports.send(Report::Sent(publisher.total()));
        while !control.stopped() {
            thread::park_timeout(MARKER_EVERY);
        }
        Ok(Outcome { remarks: exhausted(&publisher), publisher: Some(publisher), subscriber: Some(subscriber) })
    }

    /// Waits for one reply, until the deadline; the time of its arrival.
    fn await_reply(
        &mut self,
        subscriber: &mut Subscriber,
        control: &Control,
        deadline_ns: Ns,
    ) -> Result<Ns, DriverError> {
        loop {
            let reply = self.socket.recv()?;
            let now = clock::now();
            if let Some(reply) = reply {
                subscriber.arrived(reply, now);
                return Ok(now);
            }
            if now >= deadline_ns || control.stopped() {
                return Ok(now);
            }
        }
    }

    fn reply(&mut self, crew: &Crew, reports: &Sender<Report>) -> Result<Outcome, DriverError> {
        let control = &crew.control;
        let _ = reports.send(Report::Ready);
        let mut echo = Vec::with_capacity(crew.workload.payload_bytes as usize);
        let (mut received, mut drained) = (0, false);
        while !control.stopped() {
            if !drained && control.drain.get().is_some() {
                drained = true;
                let _ = reports.send(Report::Drained);
            }
            let Some(request) = self.socket.recv()? else { continue };
            echo.clear();
            echo.extend_from_slice(request);
            received += 1;
            self.counter.set(received);
            while self.socket.send(&echo)? == Sent::Full && !control.stopped() {}
        }
        Ok(Outcome::default())
    }
}

fn exhausted(publisher: &Publisher) -> Vec<String> {
    if publisher.exhausted() {
        vec![format!(
            "publisher {} stopped after {} messages: no more can be accounted for",
            publisher.total().publisher,
            publisher.sent()
        )]
    } else {
        Vec::new()
    }
}

/// Waits as the pacing says; the time after it.
#[inline]
fn wait(pacing: Pacing, until: Ns) -> Ns {
    match pacing {
        Pacing::Sleep => clock::sleep_until(until),
        Pacing::Spin => {
            // Comes back now and then, so that a stop is noticed.
            let until = until.min(clock::now() + 50 * MILLISECOND);
            while clock::now() < until {
                std::hint::spin_loop();
            }
        }
    }
    clock::now()
}

fn pin(cpus: &[usize]) -> Result<(), String> {
    if cpus.is_empty() {
        return Ok(());
    }
    let mut set = nix::sched::CpuSet::new();
    for cpu in cpus {
        set.set(*cpu).map_err(|error| format!("processor {cpu}: {error}"))?;
    }
    nix::sched::sched_setaffinity(nix::unistd::Pid::from_raw(0), &set)
        .map_err(|error| format!("pinning to processors {cpus:?} failed: {error}"))
}
