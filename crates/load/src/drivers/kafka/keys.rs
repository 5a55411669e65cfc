//! Keys of messages: the number of each in decimal digits, which selects the partition of its message.
//!
//! The key of a message follows from seed, publisher and sequence. So a batch does not keep the sequences of its messages:
//! they are those from its first on whose keys select its partition.

use super::batch::{Span, Waiting};
use pubmark_model::draw::{Choice, Draw, PublisherDraw};
use pubmark_model::header::END;
use pubmark_wire::kafka::partition_of;
use std::sync::Arc;

/// Digits of the largest number.
const MOST_DIGITS: usize = 10;

/// A key.
#[derive(Clone, Copy)]
pub(super) struct Key {
    digits: [u8; MOST_DIGITS],
    first: u8,
}

impl Key {
    fn new(number: u32) -> Key {
        let (mut key, mut rest) = (Key { digits: [0; MOST_DIGITS], first: MOST_DIGITS as u8 }, number);
        loop {
            key.first -= 1;
            key.digits[usize::from(key.first)] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                return key;
            }
        }
    }
}

impl AsRef<[u8]> for Key {
    fn as_ref(&self) -> &[u8] {
        &self.digits[usize::from(self.first)..]
    }
}

/// The keys of all messages of a run.
pub(super) struct Keys {
    draw: Draw,
    seed: u64,
    /// By key: its partition.
    partitions: Box<[u8]>,
}

impl Keys {
    /// Makes this many keys for topics with this many partitions.
    pub(super) fn new(count: u32, seed: u64, partitions: u32) -> Keys {
        let partition = |number| partition_of(Key::new(number).as_ref(), partitions) as u8;
        Keys { draw: Draw::new(count, Choice::Uniform), seed, partitions: (0..count).map(partition).collect() }
    }
}

/// Batches of a producer with keys: it collects one for each partition.
pub(super) struct KeyedBatches {
    keys: Arc<Keys>,
    draw: PublisherDraw,
    /// By partition: the batch that is collected. The place of the current partition is empty: its batch is in the
    /// producer.
    pub(super) others: Box<[Waiting]>,
    /// Batches that it has begun, and those of which its caller knows.
    begun: u32,
    known: u32,
}

impl KeyedBatches {
    /// Makes those of the producer of this number.
    pub(super) fn new(keys: &Arc<Keys>, id: u32, partitions: i32) -> KeyedBatches {
        KeyedBatches {
            keys: keys.clone(),
            draw: PublisherDraw::of_topics(keys.draw.clone(), keys.seed, id),
            others: (0..partitions).map(|_| Waiting::default()).collect(),
            begun: 0,
            known: 0,
        }
    }

    /// Returns the key of a message; `None` for probes and end markers.
    pub(super) fn key(&self, sequence: u32) -> Option<Key> {
        (sequence < END).then(|| Key::new(self.draw.at(sequence)))
    }

    /// Returns the partition that the key of a message selects.
    pub(super) fn partition(&self, sequence: u32) -> i32 {
        self.keys.partitions[self.draw.at(sequence) as usize].into()
    }

    /// Begins a batch. Returns its number.
    pub(super) fn begin(&mut self) -> u32 {
        self.begun = self.begun.wrapping_add(1);
        self.begun
    }

    /// Returns the number of the next batch of which its caller does not know. It may have been sent.
    pub(super) fn next_begun(&mut self) -> Option<u32> {
        let is_unknown = self.known != self.begun;
        self.known = self.known.wrapping_add(is_unknown.into());
        is_unknown.then_some(self.known)
    }
}

/// Returns the sequences of a batch of a producer, which may have keys.
pub(super) fn sequences(keyed: Option<&KeyedBatches>, batch: Span) -> impl Iterator<Item = u32> {
    let is_its = move |sequence: &u32| keyed.is_none_or(|keyed| keyed.partition(*sequence) == batch.partition);
    let others = (batch.first.wrapping_add(1)..END).filter(is_its);
    std::iter::once(batch.first).chain(others).take(batch.count as usize)
}
