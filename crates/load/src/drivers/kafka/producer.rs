//! A producer: its requests in flight, and the messages that it collects meanwhile.

use super::batch::{NO_MESSAGES, Span, Waiting};
use super::brokers::NOBODY;
use super::collected::Collected;
use super::keys::{Key, KeyedBatches, sequences};
use super::names::{ClientNames, EXPECTED};
use super::refusal::{in_words, is_limit};
use super::settings::KafkaSettings;
use crate::drivers::foreign_peer::foreign;
use crate::session::{Copies, MessageRefusal, RefusalKind, SessionError, SessionEvent};
use pubmark_model::header::END;
use pubmark_model::kafka_partition::PartitionBy;
use pubmark_wire::kafka::{
    self as wire, BATCH_BYTES, GzipWriter, NO_ERROR, NO_PRODUCER, PartitionAnswer, ProduceStart, ProducerIdentity,
    begin_batch, begin_produce, end_batch, end_produce, put_record_of, record_bytes,
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

/// Requests to one broker that are in flight, and the correlation of the first one.
struct Flight {
    first: u32,
    requests: VecDeque<Span>,
}

/// The batch that a producer without acknowledgements appended last.
struct LastBatch {
    span: Span,
    start: ProduceStart,
    /// Where the batch begins, and the length of what it ends.
    at: usize,
    end: usize,
}

/// The producer for a topic.
pub(super) struct Producer {
    /// Requests in flight, by the place of the broker: there is one, unless the producer is spread.
    flights: Box<[Flight]>,
    /// By partition: place of its leader if it takes requests, else [`NOBODY`]. Empty unless the producer is spread.
    routes: Box<[u8]>,
    /// Batches that have been sent.
    serial: u32,
    /// Requests of one broker that may be unanswered, and number of partitions.
    inflight: usize,
    partitions: u8,
    /// True once a partition may have batches at two brokers.
    has_moved: bool,
    /// True if it has been connected to a cluster before.
    pub(super) has_connected: bool,
    /// The batch that is collected, for the current partition.
    waiting: Waiting,
    /// Those for the others, if messages have keys.
    keyed: Option<Box<KeyedBatches>>,
    /// Batches that were not acknowledged on earlier connections and have to be sent again.
    again: VecDeque<Span>,
    /// The last batch, if messages that are written together share one.
    last: Option<Box<LastBatch>>,
    /// Number of messages in requests in flight, and in those to be sent again.
    open: u32,
    /// Partition of its next batch, or with keys of its last message.
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
            routes: Box::default(),
            inflight: if settings.is_acknowledged() { settings.inflight } else { usize::MAX },
            partitions: settings.partitions as u8,
            serial: 0,
            has_moved: false,
            has_connected: false,
            waiting: Waiting::default(),
            keyed: settings.keys.as_ref().map(|keys| Box::new(KeyedBatches::new(keys, id, settings.partitions))),
            again: VecDeque::new(),
            last: None,
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
        self.open as usize + self.held() as usize
    }

    /// Returns the number of collected messages.
    pub(super) fn held(&self) -> u64 {
        let others = self.keyed.iter().flat_map(|keyed| &keyed.others);
        others.chain([&self.waiting]).map(|waiting| u64::from(waiting.span.count)).sum()
    }

    /// Forgets the connection: what was sent and what was collected is sent again, in the same batches.
    /// Without acknowledgements, what was sent is gone, and what was collected stays.
    pub(super) fn resume(&mut self, settings: &KafkaSettings) {
        if !settings.is_acknowledged() {
            return;
        }
        self.routes.fill(NOBODY);
        (0..self.flights.len()).for_each(|place| self.lost(place));
        for partition in self.collecting() {
            self.select(partition);
            let mut waiting = std::mem::replace(&mut self.waiting.span, NO_MESSAGES);
            self.waiting.messages.clear();
            self.count(&mut waiting);
            self.open += waiting.count;
            self.again.extend((waiting.count > 0).then_some(waiting));
        }
    }

    /// Returns the partitions for which batches are collected, from the one after the current partition to that itself.
    fn collecting(&self) -> impl Iterator<Item = i32> + use<> {
        let (current, partitions) = (self.partition, i32::from(self.partitions));
        let others = self.keyed.is_some().then_some(1..partitions).into_iter().flatten();
        others.chain([0]).map(move |step| (current + step) % partitions)
    }

    /// Makes this the current partition of a producer with keys.
    fn select(&mut self, partition: i32) {
        if let Some(keyed) = &mut self.keyed {
            std::mem::swap(&mut self.waiting, &mut keyed.others[self.partition as usize]);
            std::mem::swap(&mut self.waiting, &mut keyed.others[partition as usize]);
            self.partition = partition;
        }
    }

    /// Selects the partition of a message of a producer with keys: that of its key, or the next one for probes and end
    /// markers. Returns the key.
    fn select_by_key(&mut self, sequence: u32) -> Option<Key> {
        let keyed = self.keyed.as_ref()?;
        let key = keyed.key(sequence);
        self.select(match key {
            Some(_) => keyed.partition(sequence),
            None => (self.partition + 1) % i32::from(self.partitions),
        });
        key
    }

    /// True if a message comes next after those that are collected for its partition.
    fn follows(&self, sequence: u32) -> bool {
        match self.keyed {
            None => self.waiting.span.next() == sequence,
            // Messages come in the order of their sequences. Probes and end markers have batches of their own.
            Some(_) => self.waiting.span.first < END && sequence < END,
        }
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
        if self.routes.is_empty() {
            self.routes = vec![NOBODY; self.partitions.into()].into();
        }
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
    /// over partitions without a leader, and those whose broker has enough unanswered batches, unless keys select them.
    fn target(&self) -> Option<(i32, usize)> {
        if self.routes.is_empty() {
            return self.has_room(0).then_some((self.partition, 0));
        }
        let partitions = i32::from(self.partitions);
        let candidates = if self.keyed.is_some() { 1 } else { partitions };
        (0..candidates).map(|step| (self.partition + step) % partitions).find_map(|partition| {
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
        let collected = std::mem::take(&mut self.waiting.messages);
        let keyed = self.keyed.as_deref();
        for (number, sequence) in (0..).zip(sequences(keyed, batch)) {
            let key = keyed.and_then(|keyed| keyed.key(sequence));
            self.waiting.messages.push(number, key.as_ref().map(Key::as_ref), copies.message(sequence));
        }
        self.open -= batch.count;
        self.send(settings, names, (batch, place), None, out);
        self.waiting.messages = collected;
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
        if self.join(settings, (message, sequence), out) {
            return true;
        }
        let key = self.select_by_key(sequence);
        let key = key.as_ref().map(Key::as_ref);
        let fits = |collected: &Collected, count| {
            BATCH_BYTES + collected.records_bytes() + record_bytes(count, key, message.len()) <= settings.batch_bytes
        };
        let count = self.waiting.span.count;
        if count > 0 && (!self.follows(sequence) || !fits(&self.waiting.messages, count)) {
            self.waiting.is_due = true;
            self.send_current(settings, names, out);
        }
        let Span { first, count, .. } = self.waiting.span;
        let is_collected = settings.linger_ns > 0 && fits(&self.waiting.messages, count);
        if count == 0
            && !is_collected
            && let Some((partition, place)) = self.target()
        {
            self.pass(settings, partition);
            let batch = Span { first: sequence, count: 1, partition, ..NO_MESSAGES };
            self.send(settings, names, (batch, place), Some(message), out);
            return true;
        }
        if !fits(&self.waiting.messages, count) || (count > 0 && !self.follows(sequence)) {
            return false;
        }
        if count == 0 {
            self.waiting.batch = match &mut self.keyed {
                None => self.waiting.batch.wrapping_add(1),
                Some(keyed) => keyed.begin(),
            };
            (self.waiting.has_begun, self.waiting.is_due) = (true, settings.linger_ns == 0);
            self.waiting.span.partition = self.partition;
            if self.routes.is_empty() {
                self.pass(settings, self.partition);
            }
        }
        self.waiting.messages.push(count, key, message);
        self.waiting.span.first = if count == 0 { sequence } else { first };
        self.waiting.span.count = count + 1;
        true
    }

    /// Adds a message to the last batch, if that is the end of what is to be written and has room. (With acknowledgements
    /// messages are collected while `inflight` batches are unanswered; without, nothing else would make batches.)
    fn join(&mut self, settings: &KafkaSettings, (message, sequence): (&[u8], u32), out: &mut Vec<u8>) -> bool {
        let follows = |last: &&mut Box<LastBatch>| last.end == out.len() && last.span.next() == sequence;
        let Some(last) = self.last.as_mut().filter(follows) else { return false };
        let count = last.span.count;
        if last.end - last.at + record_bytes(count, None, message.len()) > settings.batch_bytes {
            return false;
        }
        put_record_of(out, count, None, [message, &[]]);
        end_batch(out, last.at, count + 1, self.identity);
        end_produce(out, last.start);
        (last.span.count, last.end) = (count + 1, out.len());
        true
    }

    /// Notes the partition of a batch: the next one goes to the next.
    fn pass(&mut self, settings: &KafkaSettings, partition: i32) {
        if settings.partition_by == PartitionBy::RoundRobin {
            self.partition = (partition + 1) % settings.partitions;
        }
    }

    /// True if another request may be sent to the broker at this place.
    fn has_room(&self, place: usize) -> bool {
        self.flights[place].requests.len() < self.inflight
    }

    /// See [`crate::session::Session::begun`].
    pub(super) fn begun(&mut self) -> Option<u32> {
        match &mut self.keyed {
            None => std::mem::take(&mut self.waiting.has_begun).then_some(self.waiting.batch),
            Some(keyed) => keyed.next_begun(),
        }
    }

    /// See [`crate::session::Session::collects`].
    pub(super) fn collects(&self, settings: &KafkaSettings, message_bytes: usize, is_open: bool) -> u32 {
        // A batch that waits for room leaves when there is some.
        let waits = self.waiting.span.count > 0 && (self.waiting.is_due || self.target().is_none());
        // With keys, it is not known which batch the next messages fill.
        if settings.linger_ns == 0 || waits || self.keyed.is_some() {
            return 0;
        }
        let used = if is_open { self.waiting.messages.records_bytes() } else { 0 };
        let left = settings.batch_bytes.saturating_sub(BATCH_BYTES + used);
        // A record with the longest number: rather too few.
        (left / record_bytes(u32::MAX, None, message_bytes)).try_into().unwrap_or(u32::MAX)
    }

    /// See [`crate::session::Session::is_collecting`].
    pub(super) fn is_collecting(&self, batch: u32) -> bool {
        let others = self.keyed.iter().flat_map(|keyed| &keyed.others);
        let mut all = others.chain([&self.waiting]);
        all.any(|waiting| waiting.batch == batch && waiting.span.count > 0 && !waiting.is_due)
    }

    /// Sends the batch of this number, now or when there is room for it.
    pub(super) fn flush(&mut self, settings: &KafkaSettings, names: &ClientNames, batch: u32, out: &mut Vec<u8>) {
        if let Some(keyed) = self.keyed.as_deref().filter(|_| self.waiting.batch != batch) {
            let Some(partition) = keyed.others.iter().position(|other| other.batch == batch) else { return };
            self.select(partition as i32);
        }
        if self.waiting.batch == batch {
            self.waiting.is_due = true;
            self.send_current(settings, names, out);
        }
    }

    /// Sends what is collected, if it is due and there is room.
    pub(super) fn send_waiting(&mut self, settings: &KafkaSettings, names: &ClientNames, out: &mut Vec<u8>) {
        // From one partition to the next, so that none has to wait for another again and again.
        for partition in self.collecting() {
            let keyed = self.keyed.as_deref().filter(|_| partition != self.partition);
            if keyed.is_none_or(|keyed| keyed.others[partition as usize].waits_for_room()) {
                self.select(partition);
                self.send_current(settings, names, out);
            }
        }
    }

    /// Does so for the current partition.
    fn send_current(&mut self, settings: &KafkaSettings, names: &ClientNames, out: &mut Vec<u8>) {
        if self.waiting.waits_for_room()
            && let Some((partition, place)) = self.target()
        {
            let mut waiting = std::mem::replace(&mut self.waiting.span, NO_MESSAGES);
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
        self.put_records(batch, message, out);
        if settings.is_gzip {
            GZIP.with_borrow_mut(|gzip| gzip.compress(out, at));
        }
        end_batch(out, at, batch.count, self.numbered(&mut batch));
        end_produce(out, start);
        if settings.is_acknowledged() {
            self.flights[place].requests.push_back(batch);
            self.open += batch.count;
        } else if settings.linger_ns == 0 && !settings.is_gzip && self.keyed.is_none() {
            let last = LastBatch { span: batch, start, at, end: out.len() };
            match &mut self.last {
                Some(before) => **before = last,
                None => self.last = Some(Box::new(last)),
            }
        }
    }

    /// Appends the records of a batch: a message, or else those that are collected.
    fn put_records(&mut self, batch: Span, message: Option<&[u8]>, out: &mut Vec<u8>) {
        let keyed = self.keyed.as_deref();
        let mut keys = keyed.map(|keyed| sequences(Some(keyed), batch).map(|sequence| keyed.key(sequence)));
        let mut next_key = || keys.as_mut()?.next()?;
        match message {
            Some(message) => put_record_of(out, 0, next_key().as_ref().map(Key::as_ref), [message, &[]]),
            None => self.waiting.messages.put(out, next_key),
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
            self.open -= passed.count;
        }
        let Some(batch) = flight.requests.pop_front() else { return Ok(true) };
        flight.first = flight.first.wrapping_add(index + 1) & CORRELATIONS;
        if names.is_spread && matches!(answer.error, wire::NOT_LEADER_OR_FOLLOWER | wire::LEADER_NOT_AVAILABLE) {
            self.has_moved = true;
            self.later(batch);
            return Ok(false);
        }
        self.open -= batch.count;
        let sequences = sequences(self.keyed.as_deref(), batch);
        match answer.error {
            // The broker has this batch already.
            NO_ERROR | wire::DUPLICATE_SEQUENCE_NUMBER => {
                sequences.for_each(|sequence| heard(SessionEvent::Acknowledged(sequence)));
            }
            error => {
                let words = in_words(error, answer.words);
                let refusal =
                    MessageRefusal { code: None, words: &words, kind: RefusalKind::limit_or_final(is_limit(error)) };
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
