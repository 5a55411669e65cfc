//! The ledger of one stream: what one subscriber heard of one publisher.
//!
//! A bit a message says whether it came, so that every loss, duplicate and
//! reordering is counted exactly, however they mix. Memory: an eighth of a
//! byte a message, reserved at once and touched as it fills.

/// Which sequences have arrived.
#[derive(Debug, Default)]
pub struct Seen {
    words: Vec<u64>,
}

impl Seen {
    /// Room for sequences 0 to `capacity` − 1. Large rooms are zero pages of
    /// the kernel until they are touched.
    pub fn with_capacity(capacity: u64) -> Seen {
        Seen { words: vec![0; capacity.div_ceil(64) as usize] }
    }

    /// How many sequences there is room for.
    pub fn capacity(&self) -> u64 {
        self.words.len() as u64 * 64
    }

    /// Marks a sequence; true if it is new. Beyond the room: none.
    #[inline]
    pub fn mark(&mut self, sequence: u32) -> Option<bool> {
        let word = self.words.get_mut((sequence >> 6) as usize)?;
        let bit = 1u64 << (sequence & 63);
        let new = *word & bit == 0;
        *word |= bit;
        Some(new)
    }

    /// How many sequences of `first..end` are marked.
    pub fn count(&self, first: u64, end: u64) -> u64 {
        let mut total = 0;
        let mut at = first;
        while at < end.min(self.capacity()) {
            let bit = at & 63;
            let here = (64 - bit).min(end - at);
            let mask = if here == 64 { u64::MAX } else { ((1u64 << here) - 1) << bit };
            total += u64::from((self.words[(at >> 6) as usize] & mask).count_ones());
            at += here;
        }
        total
    }

    /// The sequence after the highest marked one; 0 if none is.
    pub fn highest(&self) -> u64 {
        let last = self.words.iter().rposition(|word| *word != 0);
        last.map_or(0, |at| at as u64 * 64 + 64 - u64::from(self.words[at].leading_zeros()))
    }

    /// The marks of sequences below `end`, least significant bit first.
    pub fn bytes(&self, end: u64) -> Vec<u8> {
        let words = end.div_ceil(64).min(self.words.len() as u64) as usize;
        self.words[..words].iter().flat_map(|word| word.to_le_bytes()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn beyond_the_room_is_told() {
        let mut seen = Seen::with_capacity(64);
        assert_eq!(seen.mark(63), Some(true));
        assert_eq!(seen.mark(64), None);
    }

    proptest! {
        #[test]
        fn counts_like_a_set(marks in proptest::collection::vec(0u32..1_000, 0..400), first in 0u64..1_000, len in 0u64..1_200) {
            let mut seen = Seen::with_capacity(1_000);
            let mut set = BTreeSet::new();
            for mark in marks {
                prop_assert_eq!(seen.mark(mark), Some(set.insert(u64::from(mark))));
            }
            prop_assert_eq!(seen.count(first, first + len), set.range(first..first + len).count() as u64);
            let bytes = seen.bytes(1_000);
            let ones: u32 = bytes.iter().map(|byte| byte.count_ones()).sum();
            prop_assert_eq!(ones as usize, set.len());
        }
    }
}
