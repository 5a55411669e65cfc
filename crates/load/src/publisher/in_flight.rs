//! The unacknowledged messages of a publisher.

use crate::spare::{SPARES, Spares};
use pubmark_model::header::Header;
use pubmark_model::units::Ns;
use std::collections::VecDeque;

/// Messages in the smallest block.
const BLOCK: usize = 10;
/// Blocks that a thread keeps for its publishers.
const SPARE_BLOCKS_MAX: usize = 64;

/// The time from one instant to another, ns: 48 bits with a sign, for up to 39 hours.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Gap([u16; 3]);

/// Stands for the time to an instant that a header does not have.
const NONE: Gap = Gap([0, 0, 1 << 15]);
/// The same in a message that is settled.
const SETTLED: Gap = Gap([1, 0, 1 << 15]);

impl Gap {
    fn new(from: Ns, to: Option<Ns>) -> Gap {
        let Some(to) = to else { return NONE };
        let ns = to.wrapping_sub(from);
        Gap([0, 16, 32].map(|shift| (ns >> shift) as u16))
    }

    fn end(self, from: Ns) -> Option<Ns> {
        let [low, middle, high] = self.0;
        let ns = i64::from(high as i16) << 32 | i64::from(middle) << 16 | i64::from(low);
        (self != NONE).then(|| from.wrapping_add_signed(ns))
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

type Block = Vec<SentMessage>;

thread_local! {
    static SPARE: Spares<VecDeque<Block>> = const { Spares::new(SPARES) };
    static SPARE_BLOCKS: Spares<Block> = const { Spares::new(SPARE_BLOCKS_MAX) };
}

/// The unacknowledged messages of one publisher: the data needed to time its acknowledgement,
/// and to write it once more, byte for byte. They take 24 bytes a message. A publisher without any
/// holds no memory for them, however many it had.
///
/// They lie in blocks that are passed from one publisher to another, and of thousands of publishers most have the
/// smallest size: a server that stalls once costs memory for the messages that were in flight then, and not for the most
/// of each publisher.
#[derive(Default)]
pub struct InFlight {
    publisher: u32,
    /// Settled messages at the beginning of the first block.
    begin: usize,
    /// Messages that are not settled.
    open: usize,
    blocks: VecDeque<Block>,
}

impl InFlight {
    /// Adds a message that was sent.
    pub fn sent(&mut self, header: Header) {
        if self.blocks.capacity() == 0 {
            self.blocks = SPARE.with(Spares::take);
        }
        if self.blocks.back().is_none_or(|block| block.len() == block.capacity()) {
            let mut block = SPARE_BLOCKS.with(Spares::take);
            if block.capacity() == 0 {
                // As much again as there is, so that many take few blocks; from some hundreds on more than that, which
                // is not in use before it is written.
                let more = if self.open < 16 * BLOCK { 1 } else { 4 };
                block.reserve_exact(BLOCK * more * (self.open / BLOCK).next_power_of_two());
            }
            self.blocks.push_back(block);
        }
        let Header { intended_ns, publisher, sequence, sent_ns, free_ns } = header;
        let [sent, free] = [sent_ns, free_ns].map(|instant| Gap::new(intended_ns, instant));
        (self.publisher, self.open) = (publisher, self.open + 1);
        if let Some(block) = self.blocks.back_mut() {
            block.push(SentMessage { intended_ns, sent, free, sequence });
        }
    }

    /// Removes the message of this sequence, which was acknowledged or refused and is not
    /// sent again, and returns its header.
    pub fn settled(&mut self, sequence: u32) -> Option<Header> {
        let (block, at) = self.place(sequence)?;
        let message = &mut self.blocks[block][at];
        let settled = std::mem::replace(message, SentMessage { free: SETTLED, ..*message });
        self.open -= 1;
        // Those before it that were settled earlier go with it.
        while let Some(block) = self.blocks.front_mut() {
            self.begin += block[self.begin..].iter().take_while(|message| message.free == SETTLED).count();
            if self.begin < block.len() {
                break;
            }
            self.begin = 0;
            block.clear();
            let bytes = block.capacity() * size_of::<SentMessage>();
            if let Some(block) = self.blocks.pop_front() {
                SPARE_BLOCKS.with(|spares| spares.put(block, bytes));
            }
        }
        if self.open == 0 {
            let empty = std::mem::take(&mut self.blocks);
            let bytes = empty.capacity() * size_of::<Block>();
            SPARE.with(|spares| spares.put(empty, bytes));
        }
        Some(self.header_of(settled))
    }

    /// Returns the header of a message.
    pub fn header(&self, sequence: u32) -> Option<Header> {
        self.place(sequence).map(|(block, at)| self.header_of(self.blocks[block][at]))
    }

    /// Returns the block of a message that is not settled, and its place there.
    fn place(&self, sequence: u32) -> Option<(usize, usize)> {
        let begins = |block: &Block| block.first().is_some_and(|first| first.sequence <= sequence);
        let block = self.blocks.partition_point(begins).checked_sub(1)?;
        let messages = &self.blocks[block];
        let at = messages.binary_search_by_key(&sequence, |message| message.sequence).ok()?;
        (messages[at].free != SETTLED).then_some((block, at))
    }

    fn header_of(&self, message: SentMessage) -> Header {
        let SentMessage { intended_ns, sent, free, sequence } = message;
        let [sent_ns, free_ns] = [sent, free].map(|gap| gap.end(intended_ns));
        Header { intended_ns, publisher: self.publisher, sequence, sent_ns, free_ns }
    }

    /// Returns the memory that it holds, bytes.
    #[cfg(test)]
    pub(super) fn held_bytes(&self) -> usize {
        let messages: usize = self.blocks.iter().map(Vec::capacity).sum();
        messages * size_of::<SentMessage>() + self.blocks.capacity() * size_of::<Block>()
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
                prop_assert_eq!(flight.open, wanted.len());
                let oldest = wanted.keys().next().map_or(0, |oldest| (next - oldest) as usize);
                prop_assert!(flight.blocks.len() <= oldest / BLOCK + 2, "blocks are given back");
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
