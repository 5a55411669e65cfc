//! A producer: its requests in flight, and the messages that it collects meanwhile.

use super::names::{ClientNames, EXPECTED};
use super::refusal::{in_words, is_limit};
use super::settings::KafkaSettings;
use crate::drivers::foreign_peer::foreign;
use crate::session::{Copies, MessageRefusal, SessionError, SessionEvent};
use pubmark_wire::kafka::{
    self as wire, BATCH_BYTES, NO_ERROR, NO_PRODUCER, PartitionAnswer, ProducerIdentity, begin_batch, begin_produce,
    end_batch, end_produce, put_record, record_bytes,
};
use std::collections::VecDeque;

/// Time for the acknowledgement of a batch, ms: the default of Kafka's producer (`request.timeout.ms`).
const TIMEOUT_MS: i32 = 30_000;
/// Correlations of batches: from 1 up, then from 0 again.
const CORRELATIONS: u32 = 0x7fff_ffff;

/// Messages with consecutive sequences in one batch.
#[derive(Clone, Copy, Default)]
struct Span {
    first: u32,
    count: u32,
}

impl Span {
    /// Returns the sequence of the message behind it.
    fn next(self) -> u32 {
        self.first.wrapping_add(self.count)
    }
}

/// The producer for one partition.
pub(super) struct Producer {
    /// Correlation of the first request in flight.
    first: u32,
    /// Requests in flight.
    requests: VecDeque<Span>,
    /// Messages that are collected for the next batch, as records.
    waiting: Span,
    records: Vec<u8>,
    /// Batches that were not acknowledged on earlier connections and have to be sent again.
    again: VecDeque<Span>,
    /// Number of messages in requests in flight, and in those to be sent again.
    open: usize,
    /// Its identity and the number of its next message, if it is idempotent.
    identity: ProducerIdentity,
}

impl Default for Producer {
    fn default() -> Self {
        Producer {
            first: 1,
            requests: VecDeque::new(),
            waiting: Span::default(),
            records: Vec::new(),
            again: VecDeque::new(),
            open: 0,
            identity: NO_PRODUCER,
        }
    }
}

impl Producer {
    pub(super) fn is_identified(&self) -> bool {
        self.identity.id >= 0
    }

    pub(super) fn identified(&mut self, id: i64, epoch: i16) {
        self.identity = ProducerIdentity { id, epoch, sequence: 0 };
    }

    pub(super) fn unacknowledged(&self) -> usize {
        self.open + self.waiting.count as usize
    }

    /// Returns the number of collected messages.
    pub(super) fn held(&self) -> u64 {
        self.waiting.count.into()
    }

    /// Forgets the connection: what was sent and what was collected is sent again, in the same batches.
    pub(super) fn resume(&mut self) {
        let sent: u32 = self.requests.iter().map(|batch| batch.count).sum();
        if self.is_identified() {
            self.identity.sequence = self.identity.sequence.wrapping_sub(sent as i32) & i32::MAX;
        }
        self.first = self.following();
        // What was still to be sent again had been sent after these for the first time.
        self.requests.extend(self.again.drain(..));
        let waiting = std::mem::take(&mut self.waiting);
        self.records.clear();
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
        self.records.clear();
        for delta in 0..batch.count {
            put_record(&mut self.records, delta, copies.message(batch.first.wrapping_add(delta)));
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
        if !settings.is_acknowledged() || (self.requests.len() < settings.inflight && self.waiting.count == 0) {
            self.send(settings, names, Span { first: sequence, count: 1 }, Some(message), out);
            return true;
        }
        let Span { first, count } = self.waiting;
        let bytes = BATCH_BYTES + self.records.len() + record_bytes(count, message.len());
        if bytes > settings.batch_bytes || (count > 0 && self.waiting.next() != sequence) {
            return false;
        }
        put_record(&mut self.records, count, message);
        self.waiting = Span { first: if count == 0 { sequence } else { first }, count: count + 1 };
        true
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
            names.topic.as_bytes(),
        );
        let at = begin_batch(out, 0);
        match message {
            Some(message) => put_record(out, 0, message),
            None => {
                out.extend_from_slice(&self.records);
                self.records.clear();
            }
        }
        end_batch(out, at, batch.count, self.identity);
        end_produce(out, start);
        if self.is_identified() {
            self.identity.sequence = self.identity.sequence.wrapping_add(batch.count as i32) & i32::MAX;
        }
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
        if self.waiting.count > 0 {
            let waiting = std::mem::take(&mut self.waiting);
            self.send(settings, names, waiting, None, out);
        }
        Ok(())
    }
}
