//! State of a shard's sending side: publishers and their progress.

use super::requests::{OpenRequests, PendingAnswers};
use crate::clock;
use crate::outcome::ThreadOutcome;
use crate::publisher::{InFlight, Marker, Outgoing, SendRecorder};
use crate::reply_times::ReplyStamp;
use crate::session::{Copies, MessageRefusal, RefusalKind};
use crate::shard::gather::{Frames, Measure};
use crate::window::{Window, clock_stride};
use pubmark_model::options::{OptionValues, Options};
use pubmark_model::payload::MessageSizes;
use pubmark_model::protocol::{Client, PacingFigures};
use pubmark_model::role::Role;
use pubmark_model::units::Ns;
use pubmark_model::workload::{Rate, Workload};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The server's answers to the probes of publishers before the start.
#[derive(Default)]
pub struct ProbeAnswers {
    pub acknowledged: u64,
    pub refused: u64,
    /// The first probe whose refusal is final, or else the first refused one, with the reason.
    pub refusal: Option<ProbeRefusal>,
}

pub struct ProbeRefusal {
    pub index: usize,
    pub words: String,
    pub kind: RefusalKind,
}

impl ProbeAnswers {
    fn refused(&mut self, index: usize, refusal: &MessageRefusal<'_>) {
        self.refused += 1;
        let is_final = |kind| kind == RefusalKind::Final;
        if self.refusal.as_ref().is_none_or(|first| !is_final(first.kind) && is_final(refusal.kind)) {
            self.refusal = Some(ProbeRefusal { index, words: refusal.to_string(), kind: refusal.kind });
        }
    }
}

/// Publishers and their progress.
pub struct Outbound {
    pub clients: Vec<Outgoing>,
    pub marker: Marker,
    pub message: Vec<u8>,
    pub bytes: Vec<u8>,
    /// Frames that are written together if there is no schedule.
    pub frames: Frames,
    /// Unacknowledged messages, by publisher; empty if no acknowledgement is timed and
    /// nothing is sent again.
    pub flights: Vec<InFlight>,
    pub recorder: Option<SendRecorder>,
    /// Requests without an answer, if its clients are requesters.
    pub requests: Option<OpenRequests>,
    /// Answers to be sent, if its clients are repliers.
    pub answers: Option<PendingAnswers>,
    /// The server's answers to probes.
    pub setup: ProbeAnswers,
    pub window: Option<Window>,
    pub quantum_ns: Ns,
    /// Instant at which publishers give up, and size of one write, if there is no schedule.
    pub measure: Measure,
    /// Publishers by the due time of their next message, if there is a schedule.
    pub due: BinaryHeap<Reverse<(Ns, u32)>>,
    /// Publishers that can send, if there is no schedule.
    pub able: Vec<u32>,
    /// Due time of the next message, as far as it is known, ns.
    pub next_due_ns: Option<Ns>,
    pub sending: usize,
    pub said_sent: bool,
    pub said_drained: bool,
    /// The next publisher whose marker is sent, and the beginning of the next round.
    pub marker_next: usize,
    pub marker_ns: Ns,
}

impl Outbound {
    pub fn new(workload: &Workload, role: Role, clients: &[Client], options: &Options) -> Outbound {
        let (count, asks, answers) = (clients.len(), role == Role::Requester, role == Role::Replier);
        let clients = outgoing(workload, clients);
        let keeps = workload.qos > 0 && (workload.reconnect || workload.times_sends());
        Outbound {
            flights: if keeps { clients.iter().map(|_| InFlight::default()).collect() } else { Vec::new() },
            marker: Marker::new(workload, 0),
            message: workload.longest_message(),
            bytes: Vec::new(),
            frames: Frames::default(),
            recorder: None,
            requests: asks.then(|| OpenRequests::new(count, workload.outstanding as usize, workload.answer_ns())),
            answers: answers.then(|| PendingAnswers::new(count, ReplyStamp::of(workload))),
            setup: ProbeAnswers::default(),
            window: None,
            quantum_ns: workload.pacing_quantum_ns,
            measure: Measure {
                bytes: options.number("coalesce").max(1) as usize,
                stride: clock_stride(workload),
                give_up_ns: None,
            },
            due: BinaryHeap::with_capacity(if workload.rate == Rate::Max { 0 } else { clients.len() }),
            able: Vec::new(),
            next_due_ns: None,
            sending: 0,
            said_sent: false,
            said_drained: false,
            marker_next: 0,
            marker_ns: 0,
            clients,
        }
    }

    /// Handles an acknowledgement that arrived at `now`; before the start it is of a probe.
    pub fn acknowledged(&mut self, index: usize, sequence: u32, now: Ns) {
        self.setup.acknowledged += u64::from(self.recorder.is_none());
        let sent = self.flights.get_mut(index).and_then(|flight| flight.settled(sequence));
        if let (Some(client), Some(recorder)) = (self.clients.get_mut(index), &mut self.recorder) {
            client.acknowledged(recorder, sequence, sent, now);
        }
    }

    /// Handles a refused message; before the start it is a probe.
    pub fn refused(&mut self, index: usize, sequence: u32, refusal: &MessageRefusal<'_>) {
        match (&mut self.recorder, self.clients.get_mut(index)) {
            (None, _) => self.setup.refused(index, refusal),
            (Some(recorder), Some(client)) => client.rejected(recorder, sequence, refusal),
            (Some(_), None) => {}
        }
        if let Some(flight) = self.flights.get_mut(index) {
            flight.settled(sequence);
        }
    }

    /// Returns one publisher's messages for sending them again.
    pub fn copies(&mut self, index: usize) -> MessageRebuilder<'_> {
        let Outbound { clients, flights, message, marker, .. } = self;
        let client = &clients[index];
        let (publisher, sizes) = (client.total().publisher, client.sizes());
        MessageRebuilder { publisher, sizes, flight: flights.get(index), message, marker }
    }

    /// Ends a publisher whose connection is gone: it does not send its remaining
    /// messages.
    pub fn end(&mut self, index: usize, window: &Window) {
        if let Some(client) = self.clients.get_mut(index)
            && !client.is_done()
        {
            client.finish(window);
            self.sending -= 1;
        }
    }

    /// Kills all publishers at this instant.
    pub fn crash(&mut self, window: &Window, at_ns: Ns) {
        self.clients.iter_mut().for_each(|client| client.finish_at(window, at_ns));
        (self.sending, self.next_due_ns) = (0, None);
        self.due.clear();
        self.able.clear();
    }

    /// Takes back the last messages of a publisher, which were not handed over
    /// completely.
    pub fn take_back(&mut self, index: usize, count: u64) {
        if let (Some(client), Some(recorder)) = (self.clients.get_mut(index), &mut self.recorder) {
            client.take_back(recorder, count);
        }
    }

    /// Returns when the next message is due by the schedule, ns.
    #[inline]
    pub fn next_due_ns(&self) -> Option<Ns> {
        self.next_due_ns
    }

    /// Records how its publishers waited.
    pub fn paced(&mut self, figures: Option<PacingFigures>) {
        if let (Some(recorder), Some(figures)) = (&mut self.recorder, figures) {
            recorder.paced(figures);
        }
    }

    pub fn take_outcome(&mut self) -> ThreadOutcome {
        match self.recorder.take() {
            Some(recorder) => ThreadOutcome::of_outgoing(&self.clients, recorder),
            None => ThreadOutcome::default(),
        }
    }
}

/// Rebuilds the messages of a publisher from the data kept for each.
pub struct MessageRebuilder<'a> {
    publisher: u32,
    sizes: Option<&'a MessageSizes>,
    flight: Option<&'a InFlight>,
    message: &'a mut Vec<u8>,
    marker: &'a mut Marker,
}

impl Copies for MessageRebuilder<'_> {
    fn message(&mut self, sequence: u32) -> &[u8] {
        match self.flight.and_then(|flight| flight.header(sequence)) {
            Some(header) => self.marker.stamp(&header, self.sizes, self.message),
            // Markers are not kept, because their times are not used.
            None => self.marker.of(self.publisher, sequence, clock::now()),
        }
    }
}

/// Makes the publishers of a shard from its clients.
fn outgoing(workload: &Workload, clients: &[Client]) -> Vec<Outgoing> {
    let most = crate::subscriber::ledger_capacity(workload);
    let senders = clients.iter().filter(|client| client.role.sends());
    senders.map(|client| Outgoing::new(workload, client.id, most)).collect()
}
