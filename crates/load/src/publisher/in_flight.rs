//! The unacknowledged messages of a publisher.

use crate::spare::Spares;
use pubmark_model::header::Header;
use pubmark_model::units::Ns;
use std::collections::VecDeque;

/// Messages in a block.
const BLOCK: usize = 10;

/// The time from one instant to another, ns: 48 bits with a sign, for up to 39 hours.
#[derive(Clone, Copy)]
struct Gap([u16; 3]);

/// Stands for the time to an instant that a header does not have.
const NONE: Gap = Gap([0, 0, 1 << 15]);

impl Gap {
    fn new(from: Ns, to: Option<Ns>) -> Gap {
        let Some(to) = to else { return NONE };
        let ns = to.wrapping_sub(from);
        Gap([0, 16, 32].map(|shift| (ns >> shift) as u16))
    }

    fn end(self, from: Ns) -> Option<Ns> {
        let [low, middle, high] = self.0;
        let ns = i64::from(high as i16) << 32 | i64::from(middle) << 16 | i64::from(low);
        (self.0 != NONE.0).then(|| from.wrapping_add_signed(ns))
    }
}

/// The header of a message, without its publisher.
#[derive(Clone, Copy)]
struct SentMessage {
    intended_ns: Ns,
    sent: Gap,
    free: Gap,
    sequence: u32,
}

const UNUSED: SentMessage = SentMessage { intended_ns: 0, sent: NONE, free: NONE, sequence: 0 };

type Block = Box<[SentMessage; BLOCK]>;

thread_local! {
    static SPARE: Spares<VecDeque<Block>> = const { Spares::new() };
}

/// The unacknowledged messages of one publisher: the data needed to time its acknowledgement,
/// and to write it once more, byte for byte. They take 25 bytes a message. A publisher without any
/// holds no memory for them, however many it had.
///
/// The blocks of thousands of publishers have one size, so those that one gives back serve the others: a server that
/// stalls once costs memory for the messages that were in flight then, and not for the most of each publisher.
#[derive(Default)]
pub struct InFlight {
    publisher: u32,
    /// Messages before the first one in the first block, and their number.
    begin: usize,
    len: usize,
    blocks: VecDeque<Block>,
}

impl InFlight {
    /// Adds a message that was sent.
    pub fn sent(&mut self, header: Header) {
        if self.blocks.is_empty() {
            self.blocks = SPARE.with(Spares::take);
        }
        let Header { intended_ns, publisher, sequence, sent_ns, free_ns } = header;
        let [sent, free] = [sent_ns, free_ns].map(|instant| Gap::new(intended_ns, instant));
        self.publisher = publisher;
        if self.begin + self.len == self.blocks.len() * BLOCK {
            self.blocks.push_back(Box::new([UNUSED; BLOCK]));
        }
        self.len += 1;
        *self.at(self.len - 1) = SentMessage { intended_ns, sent, free, sequence };
    }

    /// Removes the message of this sequence, which was acknowledged or refused and is not
    /// sent again, and returns its header.
    pub fn settled(&mut self, sequence: u32) -> Option<Header> {
        let place = self.place(sequence)?;
        let message = *self.at(place);
        // Messages before it make room at the front: there are few, since most servers acknowledge in order.
        (0..place).rev().for_each(|before| *self.at(before + 1) = *self.at(before));
        (self.begin, self.len) = (self.begin + 1, self.len - 1);
        if self.len == 0 {
            // It has one block.
            self.begin = 0;
            let bytes = size_of::<[SentMessage; BLOCK]>();
            SPARE.with(|spares| spares.put(std::mem::take(&mut self.blocks), bytes));
        } else if self.begin == BLOCK {
            self.begin = 0;
            self.blocks.pop_front();
        }
        Some(self.header_of(message))
    }

    /// Returns the header of a message.
    pub fn header(&self, sequence: u32) -> Option<Header> {
        let at = self.begin + self.place(sequence)?;
        Some(self.header_of(self.blocks[at / BLOCK][at % BLOCK]))
    }

    fn at(&mut self, place: usize) -> &mut SentMessage {
        let at = self.begin + place;
        &mut self.blocks[at / BLOCK][at % BLOCK]
    }

    fn place(&self, sequence: u32) -> Option<usize> {
        let block = self.blocks.partition_point(|block| block[0].sequence <= sequence).checked_sub(1)?;
        let begin = if block == 0 { self.begin } else { 0 };
        let end = (self.begin + self.len - block * BLOCK).min(BLOCK);
        let messages = self.blocks[block].get(begin..end)?;
        let at = messages.binary_search_by_key(&sequence, |message| message.sequence).ok()?;
        Some(block * BLOCK + begin + at - self.begin)
    }

    fn header_of(&self, message: SentMessage) -> Header {
        let SentMessage { intended_ns, sent, free, sequence } = message;
        let [sent_ns, free_ns] = [sent, free].map(|gap| gap.end(intended_ns));
        Header { intended_ns, publisher: self.publisher, sequence, sent_ns, free_ns }
    }

    /// Returns the memory that it holds, bytes.
    #[cfg(test)]
    pub(super) fn held_bytes(&self) -> usize {
        self.blocks.len() * size_of::<[SentMessage; BLOCK]>() + self.blocks.capacity() * size_of::<Block>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use pubmark_model::units::SECOND;
    use std::collections::BTreeMap;

    fn header(sequence: u32) -> Header {
        let intended_ns = 1_000 * SECOND + u64::from(sequence);
        let sent_ns = (!sequence.is_multiple_of(3)).then_some(intended_ns + u64::from(sequence % 3));
        Header { intended_ns, publisher: 7, sequence, sent_ns, free_ns: Some(intended_ns - 9) }
    }

    proptest! {
        #[test]
        fn it_is_a_map_by_sequence(steps in prop::collection::vec((1..4_u32, prop::option::of(0..60_usize)), 0..300)) {
            let (mut flight, mut wanted, mut next) = (InFlight::default(), BTreeMap::new(), 0);
            for (step, settled) in steps {
                next += step;
                flight.sent(header(next));
                wanted.insert(next, header(next));
                // More are settled than sent, so that it is empty at times.
                for place in settled.into_iter().flat_map(|place| [place / 8, place, 0]) {
                    let sequence = wanted.keys().nth(place).copied().unwrap_or(next + 1);
                    prop_assert_eq!(flight.settled(sequence), wanted.remove(&sequence));
                }
                prop_assert!((0..next + 2).all(|sequence| flight.header(sequence) == wanted.get(&sequence).copied()));
                prop_assert_eq!(flight.len, wanted.len());
                prop_assert!(flight.blocks.len() <= flight.len.div_ceil(BLOCK) + 1, "blocks are given back");
                prop_assert_eq!(flight.blocks.is_empty(), wanted.is_empty());
            }
        }
    }

    #[test]
    fn a_gap_is_exact_in_both_directions() {
        let from = 1_700_000_000 * SECOND;
        for ns in [0, 1, 0xffff, 0x1_0000, 1 << 32, 100_000 * SECOND] {
            for to in [from + ns, from - ns] {
                assert_eq!(Gap::new(from, Some(to)).end(from), Some(to), "{ns} ns");
            }
        }
        assert_eq!(Gap::new(from, None).end(from), None);
    }
}
