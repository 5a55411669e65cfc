//! The ledger of one stream: the messages that one subscriber received from one
//! publisher.
//!
//! One bit for each message records its arrival, so that every loss, duplicate and
//! reordering is counted exactly, in any mixture. It takes an eighth of a byte for each
//! message; memory for the first 8 million is reserved at once.

use smallvec::{SmallVec, smallvec};

/// Words that are reserved at once: 1 MiB, for 8 million messages.
const AT_ONCE: u32 = 1 << 17;

/// Words that are stored inline. Thousands of streams are short, and a separate
/// allocation would cost each one more cache miss.
const INLINE: usize = 4;

/// The set of sequences that have arrived.
#[derive(Debug, Default)]
pub struct SeenSequences {
    words: SmallVec<[u64; INLINE]>,
    most_words: u32,
}

impl SeenSequences {
    /// Makes room for sequences 0 to `capacity` − 1, rounded up to 64.
    pub fn with_capacity(capacity: u64) -> SeenSequences {
        let most_words = capacity.div_ceil(64).min(1 << 26) as u32;
        SeenSequences { words: smallvec![0; most_words.min(AT_ONCE) as usize], most_words }
    }

    /// Makes room for this word by doubling, so that it is rare. `None` beyond the
    /// capacity.
    #[cold]
    fn grow(&mut self, word: usize) -> Option<()> {
        if word >= self.most_words as usize {
            return None;
        }
        self.words.resize((word + 1).next_power_of_two().min(self.most_words as usize), 0);
        Some(())
    }

    /// Marks a sequence and returns true if it is new. `None` beyond the capacity.
    #[inline]
    pub fn mark(&mut self, sequence: u32) -> Option<bool> {
        let at = (sequence >> 6) as usize;
        if at >= self.words.len() {
            self.grow(at)?;
        }
        let word = self.words.get_mut(at)?;
        let bit = 1u64 << (sequence & 63);
        let new = *word & bit == 0;
        *word |= bit;
        Some(new)
    }

    /// Returns how many sequences of `first..end` are marked.
    pub fn count(&self, first: u64, end: u64) -> u64 {
        let mut total = 0;
        let mut at = first;
        while at < end.min(self.words.len() as u64 * 64) {
            let bit = at & 63;
            let here = (64 - bit).min(end - at);
            let mask = if here == 64 { u64::MAX } else { ((1u64 << here) - 1) << bit };
            total += u64::from((self.words[(at >> 6) as usize] & mask).count_ones());
            at += here;
        }
        total
    }

    /// Returns the unmarked sequences of `first..end` as ascending ranges that do not
    /// touch.
    pub fn gaps(&self, first: u64, end: u64) -> impl Iterator<Item = (u64, u64)> {
        let mut at = first;
        std::iter::from_fn(move || {
            let from = self.next(at, end, false)?;
            at = self.next(from, end, true).unwrap_or(end);
            Some((from, at))
        })
    }

    /// Returns the marked sequences of `first..end` as ascending ranges that do not touch.
    pub fn runs(&self, first: u64, end: u64) -> impl Iterator<Item = (u64, u64)> {
        let mut at = first;
        std::iter::from_fn(move || {
            let from = self.next(at, end, true)?;
            at = self.next(from, end, false).unwrap_or(end);
            Some((from, at))
        })
    }

    /// True if a sequence is marked.
    pub fn holds(&self, sequence: u32) -> bool {
        let word = self.words.get((sequence >> 6) as usize);
        word.is_some_and(|word| word >> (sequence & 63) & 1 == 1)
    }

    /// Returns the first sequence of `from..end` that is marked, or that is unmarked, as
    /// `marked` selects.
    fn next(&self, from: u64, end: u64, marked: bool) -> Option<u64> {
        let mut at = from;
        while at < end {
            let word = self.words.get((at >> 6) as usize).copied().unwrap_or(0);
            let wanted = if marked { word } else { !word } >> (at & 63);
            if wanted != 0 {
                return Some(at + u64::from(wanted.trailing_zeros())).filter(|at| *at < end);
            }
            at = (at | 63) + 1;
        }
        None
    }

    /// Returns the sequence after the highest marked one; 0 if none is marked.
    pub fn highest(&self) -> u64 {
        let last = self.words.iter().rposition(|word| *word != 0);
        last.map_or(0, |at| at as u64 * 64 + 64 - u64::from(self.words[at].leading_zeros()))
    }

    /// Returns the marks of sequences below `end`, least significant bit first.
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
    fn a_large_room_grows_as_it_fills() {
        let mut seen = SeenSequences::with_capacity(1 << 30);
        assert_eq!(seen.mark(900_000_000), Some(true));
        assert_eq!(seen.mark(900_000_000), Some(false));
        assert_eq!(seen.mark(1 << 30), None);
        assert_eq!(seen.count(0, 1 << 30), 1);
    }

    #[test]
    fn beyond_the_room_is_told() {
        let mut seen = SeenSequences::with_capacity(64);
        assert_eq!(seen.mark(63), Some(true));
        assert_eq!(seen.mark(64), None);
    }

    proptest! {
        #[test]
        fn counts_like_a_set(marks in proptest::collection::vec(0u32..1_000, 0..400), first in 0u64..1_000, len in 0u64..1_200) {
            let mut seen = SeenSequences::with_capacity(1_000);
            let mut set = BTreeSet::new();
            for mark in marks {
                prop_assert_eq!(seen.mark(mark), Some(set.insert(u64::from(mark))));
            }
            prop_assert_eq!(seen.count(first, first + len), set.range(first..first + len).count() as u64);
            let gaps: Vec<(u64, u64)> = seen.gaps(first, first + len).collect();
            let missing: Vec<u64> = gaps.iter().flat_map(|(from, to)| *from..*to).collect();
            prop_assert_eq!(missing, (first..first + len).filter(|at| !set.contains(at)).collect::<Vec<_>>());
            prop_assert!(gaps.windows(2).all(|pair| pair[0].1 < pair[1].0));
            let bytes = seen.bytes(1_000);
            let ones: u32 = bytes.iter().map(|byte| byte.count_ones()).sum();
            prop_assert_eq!(ones as usize, set.len());
        }
    }
}
