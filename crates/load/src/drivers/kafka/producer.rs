//! A producer: its requests in flight, and the messages that it collects meanwhile.

use super::brokers::NOBODY;
use super::collected::Collected;
use super::names::{ClientNames, EXPECTED};
use super::refusal::{in_words, is_limit};
use super::settings::KafkaSettings;
use crate::drivers::foreign_peer::foreign;
use crate::session::{Copies, MessageRefusal, SessionError, SessionEvent};
use pubmark_wire::kafka::{
    self as wire, BATCH_BYTES, GzipWriter, NO_ERROR, NO_PRODUCER, PartitionAnswer, ProducerIdentity, begin_batch,
    begin_produce, end_batch, end_produce, put_record, record_bytes,
};
use std::cell::RefCell;
use std::collections::VecDeque;

/// Time for the acknowledgement of a batch, ms: the default of Kafka's producer (`request.timeout.ms`).
const TIMEOUT_MS: i32 = 30_000;
/// Correlations of batches: from 1 up, then from 0 again.
const CORRELATIONS: u32 = 0x7fff_ffff;

thread_local! {
    /// The producers of a thread share it.
    static GZIP: RefCell<GzipWriter> = RefCell::default();
}

/// Messages with consecutive sequences in one batch.
#[derive(Clone, Copy)]
struct Span {
    first: u32,
    count: u32,
    partition: i32,
    /// Number of the first message among those of an idempotent producer in the partition; negative before it is sent.
    number: i32,
    /// Number of the batch in the order of sending, from 1; 0 before it is sent.
    serial: u32,
}

const NO_MESSAGES: Span = Span { first: 0, count: 0, partition: 0, number: -1, serial: 0 };

/// Requests to one broker that are in flight, and the correlation of the first one.
struct Flight {
    first: u32,
    requests: VecDeque<Span>,
}

impl Span {
    /// Returns the sequence of the message behind it.
    fn next(self) -> u32 {
        self.first.wrapping_add(self.count)
    }
}

/// The producer for a topic.
pub(super) struct Producer {
    /// Requests in flight, by the place of the broker: there is one, unless the producer is spread.
    flights: Box<[Flight]>,
    /// By partition: place of its leader if it takes requests, else [`NOBODY`]. Empty unless the producer is spread.
    routes: Vec<u8>,
    /// Batches that have been sent.
    serial: u32,
    /// Requests of one broker that may be unanswered, and number of partitions.
    inflight: usize,
    partitions: u8,
    /// True once a partition may have batches at two brokers.
    has_moved: bool,
    /// True if it has been connected to a cluster before.
    pub(super) has_connected: bool,
    /// Messages that are collected for the next batch.
    waiting: Span,
    collected: Collected,
    /// Number of the batch that is collected, if batches are collected for a while.
    batch: u32,
    /// True if the caller does not know of it yet.
    has_begun: bool,
    /// True if it is to be sent as soon as there is room.
    is_due: bool,
    /// Batches that were not acknowledged on earlier connections and have to be sent again.
    again: VecDeque<Span>,
    /// Number of messages in requests in flight, and in those to be sent again.
    open: usize,
    /// Partition of its next batch.
    pub(super) partition: i32,
    /// Its identity, if it is idempotent, and the number of its next message in each partition.
    identity: ProducerIdentity,
    numbers: Box<[i32]>,
}

impl Producer {
    /// Makes the producer of this number.
    pub(super) fn new(settings: &KafkaSettings, id: u32) -> Producer {
        Producer {
            flights: flights(1),
            routes: Vec::new(),
            inflight: if settings.is_acknowledged() { settings.inflight } else { usize::MAX },
            partitions: settings.partitions as u8,
            serial: 0,
            has_moved: false,
            has_connected: false,
            waiting: NO_MESSAGES,
            collected: Collected::default(),
            batch: 0,
            has_begun: false,
            is_due: false,
            again: VecDeque::new(),
            open: 0,
            partition: (id % settings.partitions as u32) as i32,
            identity: NO_PRODUCER,
            numbers: Box::default(),
        }
    }

    pub(super) fn is_identified(&self) -> bool {
        self.identity.id >= 0
    }

    pub(super) fn identified(&mut self, settings: &KafkaSettings, id: i64, epoch: i16) {
        self.identity = ProducerIdentity { id, epoch, sequence: 0 };
        self.numbers = vec![0; settings.partitions as usize].into();
    }

    /// Notes that it has connections to so many brokers.
    pub(super) fn spread(&mut self, brokers: usize) {
        if self.flights.len() < brokers {
            self.flights = flights(brokers);
        }
    }

    /// Returns the identity for a batch. Its messages are numbered when it is sent for the first time.
    fn numbered(&mut self, batch: &mut Span) -> ProducerIdentity {
        let Some(next) = self.numbers.get_mut(batch.partition as usize) else { return self.identity };
        if batch.number < 0 {
            batch.number = *next;
            *next = next.wrapping_add(batch.count as i32) & i32::MAX;
        }
        ProducerIdentity { sequence: batch.number, ..self.identity }
    }

    pub(super) fn unacknowledged(&self) -> usize {
        self.open + self.waiting.count as usize
    }

    /// Returns the number of collected messages.
    pub(super) fn held(&self) -> u64 {
        self.waiting.count.into()
    }

    /// Forgets the connection: what was sent and what was collected is sent again, in the same batches.
    /// Without acknowledgements, what was sent is gone, and what was collected stays.
    pub(super) fn resume(&mut self, settings: &KafkaSettings) {
        if !settings.is_acknowledged() {
            return;
        }
        self.routes.fill(NOBODY);
        (0..self.flights.len()).for_each(|place| self.lost(place));
        let mut waiting = std::mem::replace(&mut self.waiting, NO_MESSAGES);
        self.collected.clear();
        self.count(&mut waiting);
        self.open += waiting.count as usize;
        self.again.extend((waiting.count > 0).then_some(waiting));
    }

    /// Handles the loss of the connection to a broker: what it has not answered is sent again, in the order of its
    /// messages.
    pub(super) fn lost(&mut self, place: usize) {
        self.has_moved = true;
        self.routes.iter_mut().filter(|route| usize::from(**route) == place).for_each(|route| *route = NOBODY);
        let Some(flight) = self.flights.get_mut(place) else { return };
        flight.first = flight.following();
        for batch in std::mem::take(&mut flight.requests) {
            self.later(batch);
        }
    }

    /// Gives a batch its place in the order of sending.
    fn count(&mut self, batch: &mut Span) {
        if batch.serial == 0 {
            self.serial += 1;
            batch.serial = self.serial;
        }
    }

    /// Notes a batch that has to be sent again.
    fn later(&mut self, batch: Span) {
        let at = self.again.partition_point(|other| other.serial <= batch.serial);
        self.again.insert(at, batch);
    }

    /// Learns who leads the partitions.
    pub(super) fn route(&mut self, leader: impl Fn(i32) -> Option<u8>) {
        self.routes.resize(self.partitions.into(), NOBODY);
        for (partition, route) in (0..).zip(&mut self.routes) {
            let place = leader(partition).unwrap_or(NOBODY);
            self.has_moved |= *route != place && self.has_connected;
            *route = place;
        }
    }

    /// True if a batch can be sent again now.
    pub(super) fn owes(&self) -> bool {
        !self.routes.is_empty() && !self.again.is_empty() && self.next_again().is_some()
    }

    /// Returns the next batch to be sent again, by its place among them, and the broker.
    fn next_again(&self) -> Option<(usize, usize)> {
        if self.routes.is_empty() {
            return (!self.again.is_empty()).then_some((0, 0));
        }
        self.again.iter().enumerate().find_map(|(at, batch)| {
            let place = self.leader_of(batch.partition)?;
            let is_first = !self.again.iter().take(at).any(|before| before.partition == batch.partition);
            (is_first && self.has_room(place)).then_some((at, place))
        })
    }

    /// Returns the broker of a partition, if it takes requests and no other one has unanswered batches of it.
    fn leader_of(&self, partition: i32) -> Option<usize> {
        let place = usize::from(*self.routes.get(partition as usize)?);
        let is_elsewhere = |(at, flight): (usize, &Flight)| {
            at != place && flight.requests.iter().any(|batch| batch.partition == partition)
        };
        let is_known = place < self.flights.len();
        (is_known && !(self.has_moved && self.flights.iter().enumerate().any(is_elsewhere))).then_some(place)
    }

    /// Returns the partition of the next batch and its broker, if it may be sent now: a producer that is spread passes
    /// over partitions without a leader, and those whose broker has enough unanswered batches.
    fn target(&self) -> Option<(i32, usize)> {
        if self.routes.is_empty() {
            return self.has_room(0).then_some((self.partition, 0));
        }
        let partitions = i32::from(self.partitions);
        (0..partitions).map(|step| (self.partition + step) % partitions).find_map(|partition| {
            let place = self.leader_of(partition)?;
            let waits = self.again.iter().any(|batch| batch.partition == partition);
            (!waits && self.has_room(place)).then_some((partition, place))
        })
    }

    /// Sends the next batch again. Returns false if there is none.
    pub(super) fn resend(
        &mut self,
        settings: &KafkaSettings,
        names: &ClientNames,
        copies: &mut dyn Copies,
        out: &mut Vec<u8>,
    ) -> bool {
        let Some((at, place)) = self.next_again() else { return false };
        let Some(batch) = self.again.remove(at) else { return false };
        // What is being collected stays.
        let collected = std::mem::take(&mut self.collected);
        for delta in 0..batch.count {
            self.collected.push(delta, copies.message(batch.first.wrapping_add(delta)));
        }
        self.open -= batch.count as usize;
        self.send(settings, names, (batch, place), None, out);
        self.collected = collected;
        true
    }

    /// Appends a message as a batch of its own, or collects it while too many requests are in flight.
    /// Returns false if there is no more room for it.
    pub(super) fn publish(
        &mut self,
        settings: &KafkaSettings,
        names: &ClientNames,
        (message, sequence): (&[u8], u32),
        out: &mut Vec<u8>,
    ) -> bool {
        let fits = |collected: &Collected, count| {
            BATCH_BYTES + collected.records_bytes() + record_bytes(count, message.len()) <= settings.batch_bytes
        };
        let count = self.waiting.count;
        if count > 0 && (self.waiting.next() != sequence || !fits(&self.collected, count)) {
            self.is_due = true;
            self.send_waiting(settings, names, out);
        }
        let Span { first, count, .. } = self.waiting;
        let is_collected = settings.linger_ns > 0 && fits(&self.collected, count);
        if count == 0
            && !is_collected
            && let Some((partition, place)) = self.target()
        {
            self.pass(settings, partition);
            let batch = Span { first: sequence, count: 1, partition, ..NO_MESSAGES };
            self.send(settings, names, (batch, place), Some(message), out);
            return true;
        }
        if !fits(&self.collected, count) || (count > 0 && self.waiting.next() != sequence) {
            return false;
        }
        if count == 0 {
            self.batch = self.batch.wrapping_add(1);
            (self.has_begun, self.is_due) = (true, settings.linger_ns == 0);
            self.waiting.partition = self.partition;
            if self.routes.is_empty() {
                self.pass(settings, self.partition);
            }
        }
        self.collected.push(count, message);
        self.waiting.first = if count == 0 { sequence } else { first };
        self.waiting.count = count + 1;
        true
    }

    /// Notes the partition of a batch: the next one goes to the next.
    fn pass(&mut self, settings: &KafkaSettings, partition: i32) {
        if settings.is_round_robin {
            self.partition = (partition + 1) % settings.partitions;
        }
    }

    /// True if another request may be sent to the broker at this place.
    fn has_room(&self, place: usize) -> bool {
        self.flights[place].requests.len() < self.inflight
    }

    /// See [`crate::session::Session::begun`].
    pub(super) fn begun(&mut self) -> Option<u32> {
        std::mem::take(&mut self.has_begun).then_some(self.batch)
    }

    /// See [`crate::session::Session::collects`].
    pub(super) fn collects(&self, settings: &KafkaSettings, message_bytes: usize, is_open: bool) -> u32 {
        // A batch that waits for room leaves when there is some.
        let waits = self.waiting.count > 0 && (self.is_due || self.target().is_none());
        if settings.linger_ns == 0 || waits {
            return 0;
        }
        let used = if is_open { self.collected.records_bytes() } else { 0 };
        let left = settings.batch_bytes.saturating_sub(BATCH_BYTES + used);
        // A record with the longest number: rather too few.
        (left / record_bytes(u32::MAX, message_bytes)).try_into().unwrap_or(u32::MAX)
    }

    /// Sends the batch of this number, now or when there is room for it.
    pub(super) fn flush(&mut self, settings: &KafkaSettings, names: &ClientNames, batch: u32, out: &mut Vec<u8>) {
        if self.batch == batch {
            self.is_due = true;
            self.send_waiting(settings, names, out);
        }
    }

    /// Sends what is collected, if it is due and there is room.
    pub(super) fn send_waiting(&mut self, settings: &KafkaSettings, names: &ClientNames, out: &mut Vec<u8>) {
        if self.waiting.count > 0
            && self.is_due
            && let Some((partition, place)) = self.target()
        {
            let mut waiting = std::mem::replace(&mut self.waiting, NO_MESSAGES);
            if !self.routes.is_empty() {
                waiting.partition = partition;
                self.pass(settings, partition);
            }
            self.send(settings, names, (waiting, place), None, out);
        }
    }

    /// Appends a request with a message, or else with the collected records.
    fn send(
        &mut self,
        settings: &KafkaSettings,
        names: &ClientNames,
        (mut batch, place): (Span, usize),
        message: Option<&[u8]>,
        out: &mut Vec<u8>,
    ) {
        let correlation = self.flights[place].following() as i32;
        names.front(place as u8, out);
        self.count(&mut batch);
        let start = begin_produce(
            out,
            correlation,
            names.client.as_bytes(),
            (settings.acks, TIMEOUT_MS),
            (names.topic.as_bytes(), batch.partition),
        );
        let at = begin_batch(out, 0);
        match message {
            Some(message) => put_record(out, 0, message),
            None => self.collected.put(out),
        }
        if settings.is_gzip {
            GZIP.with_borrow_mut(|gzip| gzip.compress(out, at));
        }
        end_batch(out, at, batch.count, self.numbered(&mut batch));
        end_produce(out, start);
        if settings.is_acknowledged() {
            self.flights[place].requests.push_back(batch);
            self.open += batch.count as usize;
        }
    }

    /// Handles an answer, and sends what was collected. Returns false if a producer that is spread has to send the batch
    /// again, to another broker.
    pub(super) fn answered(
        &mut self,
        settings: &KafkaSettings,
        names: &ClientNames,
        (place, correlation, answer): (usize, i32, &PartitionAnswer<'_>),
        out: &mut Vec<u8>,
        heard: &mut dyn FnMut(SessionEvent<'_>),
    ) -> Result<bool, SessionError> {
        let Some(flight) = self.flights.get_mut(place) else { return Ok(true) };
        let index = (correlation as u32).wrapping_sub(flight.first) & CORRELATIONS;
        if index as usize >= flight.requests.len() {
            return Err(foreign(EXPECTED, answer.topic, "the answer is to a batch that is not in flight"));
        }
        // Brokers answer in order: batches before it will never be answered.
        for passed in flight.requests.drain(..index as usize) {
            self.open -= passed.count as usize;
        }
        let Some(batch) = flight.requests.pop_front() else { return Ok(true) };
        flight.first = flight.first.wrapping_add(index + 1) & CORRELATIONS;
        if names.is_spread && matches!(answer.error, wire::NOT_LEADER_OR_FOLLOWER | wire::LEADER_NOT_AVAILABLE) {
            self.has_moved = true;
            self.later(batch);
            return Ok(false);
        }
        self.open -= batch.count as usize;
        let sequences = (0..batch.count).map(|delta| batch.first.wrapping_add(delta));
        match answer.error {
            // The broker has this batch already.
            NO_ERROR | wire::DUPLICATE_SEQUENCE_NUMBER => {
                sequences.for_each(|sequence| heard(SessionEvent::Acknowledged(sequence)));
            }
            error => {
                let words = in_words(error, answer.words);
                let refusal = MessageRefusal { code: None, words: &words, is_limit: is_limit(error) };
                sequences.for_each(|sequence| heard(SessionEvent::Refused(sequence, refusal)));
            }
        }
        self.send_waiting(settings, names, out);
        Ok(true)
    }
}

fn flights(count: usize) -> Box<[Flight]> {
    (0..count).map(|_| Flight { first: 1, requests: VecDeque::new() }).collect()
}

impl Flight {
    /// Returns the correlation of the next request.
    fn following(&self) -> u32 {
        self.first.wrapping_add(self.requests.len() as u32) & CORRELATIONS
    }
}
