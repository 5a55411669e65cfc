//! A producer: its requests in flight, and the messages that it collects meanwhile.

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
#[derive(Clone, Copy, Default)]
struct Span {
    first: u32,
    count: u32,
    partition: i32,
}

impl Span {
    /// Returns the sequence of the message behind it.
    fn next(self) -> u32 {
        self.first.wrapping_add(self.count)
    }
}

/// The producer for a topic.
pub(super) struct Producer {
    /// Correlation of the first request in flight.
    first: u32,
    /// Requests in flight.
    requests: VecDeque<Span>,
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
    partition: i32,
    /// Its identity, if it is idempotent, and the number of its next message in each partition.
    identity: ProducerIdentity,
    numbers: Box<[i32]>,
}

impl Producer {
    /// Makes the producer of this number.
    pub(super) fn new(settings: &KafkaSettings, id: u32) -> Producer {
        Producer {
            first: 1,
            requests: VecDeque::new(),
            waiting: Span::default(),
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

    /// Returns the identity for a batch, whose messages are counted; `count` may be negative.
    fn numbered(&mut self, partition: i32, count: i32) -> ProducerIdentity {
        let Some(number) = self.numbers.get_mut(partition as usize) else { return self.identity };
        let sequence = *number;
        *number = number.wrapping_add(count) & i32::MAX;
        ProducerIdentity { sequence, ..self.identity }
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
        for place in 0..self.requests.len() {
            let Span { count, partition, .. } = self.requests[place];
            self.numbered(partition, (count as i32).wrapping_neg());
        }
        self.first = self.following();
        // What was still to be sent again had been sent after these for the first time.
        self.requests.extend(self.again.drain(..));
        let waiting = std::mem::take(&mut self.waiting);
        self.collected.clear();
        self.open += waiting.count as usize;
        self.requests.extend((waiting.count > 0).then_some(waiting));
        self.again = std::mem::take(&mut self.requests);
    }

    /// Sends the next batch again. Returns false if there is none.
    pub(super) fn resend(
        &mut self,
        settings: &KafkaSettings,
        names: &ClientNames,
        copies: &mut dyn Copies,
        out: &mut Vec<u8>,
    ) -> bool {
        let Some(batch) = self.again.pop_front() else { return false };
        for delta in 0..batch.count {
            self.collected.push(delta, copies.message(batch.first.wrapping_add(delta)));
        }
        self.open -= batch.count as usize;
        self.send(settings, names, batch, None, out);
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
        if count == 0 && !is_collected && self.has_room(settings) {
            let partition = self.next_partition(settings);
            self.send(settings, names, Span { first: sequence, count: 1, partition }, Some(message), out);
            return true;
        }
        if !fits(&self.collected, count) || (count > 0 && self.waiting.next() != sequence) {
            return false;
        }
        if count == 0 {
            self.batch = self.batch.wrapping_add(1);
            (self.has_begun, self.is_due) = (true, settings.linger_ns == 0);
            self.waiting.partition = self.next_partition(settings);
        }
        self.collected.push(count, message);
        self.waiting.first = if count == 0 { sequence } else { first };
        self.waiting.count = count + 1;
        true
    }

    /// Returns the partition of the next batch.
    fn next_partition(&mut self, settings: &KafkaSettings) -> i32 {
        let partition = self.partition;
        if settings.is_round_robin {
            self.partition = (partition + 1) % settings.partitions;
        }
        partition
    }

    /// True if another request may be sent.
    fn has_room(&self, settings: &KafkaSettings) -> bool {
        !settings.is_acknowledged() || self.requests.len() < settings.inflight
    }

    /// See [`crate::session::Session::begun`].
    pub(super) fn begun(&mut self) -> Option<u32> {
        std::mem::take(&mut self.has_begun).then_some(self.batch)
    }

    /// See [`crate::session::Session::collects`].
    pub(super) fn collects(&self, settings: &KafkaSettings, message_bytes: usize, is_open: bool) -> u32 {
        // A batch that waits for room leaves when there is some.
        let waits = self.waiting.count > 0 && (self.is_due || !self.has_room(settings));
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
    fn send_waiting(&mut self, settings: &KafkaSettings, names: &ClientNames, out: &mut Vec<u8>) {
        if self.waiting.count > 0 && self.is_due && self.has_room(settings) {
            let waiting = std::mem::take(&mut self.waiting);
            self.send(settings, names, waiting, None, out);
        }
    }

    /// Appends a request with a message, or else with the collected records.
    fn send(
        &mut self,
        settings: &KafkaSettings,
        names: &ClientNames,
        batch: Span,
        message: Option<&[u8]>,
        out: &mut Vec<u8>,
    ) {
        let correlation = self.following() as i32;
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
        end_batch(out, at, batch.count, self.numbered(batch.partition, batch.count as i32));
        end_produce(out, start);
        if settings.is_acknowledged() {
            self.requests.push_back(batch);
            self.open += batch.count as usize;
        }
    }

    /// Returns the correlation of the next request.
    fn following(&self) -> u32 {
        self.first.wrapping_add(self.requests.len() as u32) & CORRELATIONS
    }

    /// Handles an answer, and sends what was collected.
    pub(super) fn answered(
        &mut self,
        settings: &KafkaSettings,
        names: &ClientNames,
        (correlation, answer): (i32, &PartitionAnswer<'_>),
        out: &mut Vec<u8>,
        heard: &mut dyn FnMut(SessionEvent<'_>),
    ) -> Result<(), SessionError> {
        let index = (correlation as u32).wrapping_sub(self.first) & CORRELATIONS;
        if index as usize >= self.requests.len() {
            return Err(foreign(EXPECTED, answer.topic, "the answer is to a batch that is not in flight"));
        }
        // Brokers answer in order: batches before it will never be answered.
        for passed in self.requests.drain(..index as usize) {
            self.open -= passed.count as usize;
        }
        let Some(batch) = self.requests.pop_front() else { return Ok(()) };
        self.first = self.first.wrapping_add(index + 1) & CORRELATIONS;
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
        Ok(())
    }
}
