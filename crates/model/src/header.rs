//! The header at the front of every message, little-endian:
//!
//! | bytes | field |
//! |---|---|
//! | 0–7 | due time (`due`), ns of CLOCK_MONOTONIC |
//! | 8–11 | publisher |
//! | 12–15 | sequence |
//! | 16–23 | actual send time (`sent`), ns (messages of 24 bytes and more) |
//! | 24–31 | ready time (`free`), ns (messages of 32 bytes and more) |
//! | 32–35 | CRC-32C of bytes 0–31, if the run's headers have a checksum ([`crate::workload::Workload::header_checksum`]) |
//! | 32–51, or 36–55 | in answers: what [`REPLY_TIMES_LEN`] says, if the run has it ([`crate::workload::Workload::reply_times`]) |
//! | rest | body: a fixed pseudo-random pattern (from 24 on in messages under 32 bytes) |

use pubmark_stats::Random;
use std::ops::Range;

/// Length of the shortest message, bytes.
pub const MIN_LEN: usize = 16;
/// Bytes of the sequence.
const SEQUENCE: Range<usize> = 12..16;
/// Shortest message that carries its actual send time, bytes.
pub const SENT_LEN: usize = 24;
/// Shortest message that also carries its ready time, bytes.
pub const FREE_LEN: usize = 32;
/// Shortest message that can also carry the checksum of its header, bytes.
pub const SEALED_LEN: usize = 36;

/// Length of the times that a replier writes at the front of an answer's body, bytes: arrival of the
/// request (8), send of the answer (8), and the CRC-32C of both (4).
pub const REPLY_TIMES_LEN: usize = 20;

/// Returns the offset at which the body of a message of this length begins.
#[inline]
pub fn body_at(len: usize) -> usize {
    if len < FREE_LEN { SENT_LEN.min(len) } else { FREE_LEN }
}

/// Sequence of a probe: sent before the start and never counted.
pub const PROBE: u32 = u32::MAX;
/// Sequence of an end marker: its publisher has sent all its messages. Over a transport that keeps
/// order, nothing can follow it.
pub const END: u32 = u32::MAX - 1;
/// Sequence of a last will, which carries the number of its connection in place of the due time. The server
/// publishes it, and it is never counted.
pub const WILL: u32 = u32::MAX - 2;
/// Length of a last will, bytes.
pub const WILL_LEN: usize = MIN_LEN;
/// The most messages that one publisher can number in a run.
pub const MAX_SEQUENCE: u32 = u32::MAX - 16;

/// A message's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Due time, ns.
    pub intended_ns: u64,
    /// The sender: publisher number within the run.
    pub publisher: u32,
    /// Its number within that publisher, from 0; or [`PROBE`], [`END`] or [`WILL`].
    pub sequence: u32,
    /// Actual send time, ns; `None` in a message under 24 bytes.
    pub sent_ns: Option<u64>,
    /// Ready time, ns: the later of the due time and the end of the time that the system made the
    /// publisher wait. `None` in a message under 32 bytes.
    pub free_ns: Option<u64>,
}

impl Header {
    /// Returns the header with its instants on a clock that is `ns` ahead of this one.
    #[inline]
    #[must_use]
    pub fn ahead_by(self, ns: i64) -> Header {
        let ahead = |at: u64| at.saturating_add_signed(ns);
        let (sent_ns, free_ns) = (self.sent_ns.map(ahead), self.free_ns.map(ahead));
        Header { intended_ns: ahead(self.intended_ns), sent_ns, free_ns, ..self }
    }

    /// Writes the header to the front of `message`. A message under 24 bytes gets no send time, one
    /// under 32 no ready time. Returns false for a message under 16 bytes, which is left unchanged.
    #[inline]
    #[must_use]
    pub fn write(&self, message: &mut [u8]) -> bool {
        let Some(front) = message.get_mut(..MIN_LEN) else {
            return false;
        };
        front[..8].copy_from_slice(&self.intended_ns.to_le_bytes());
        front[8..12].copy_from_slice(&self.publisher.to_le_bytes());
        front[SEQUENCE].copy_from_slice(&self.sequence.to_le_bytes());
        if let (Some(sent_ns), Some(field)) = (self.sent_ns, message.get_mut(MIN_LEN..SENT_LEN)) {
            field.copy_from_slice(&sent_ns.to_le_bytes());
        }
        if let (Some(free_ns), Some(field)) = (self.free_ns, message.get_mut(SENT_LEN..FREE_LEN)) {
            field.copy_from_slice(&free_ns.to_le_bytes());
        }
        true
    }

    /// Reads a header; `None` if there are fewer than 16 bytes.
    #[inline]
    pub fn read(message: &[u8]) -> Option<Header> {
        let word = |at: usize| message.get(at..at + 8).and_then(|b| b.try_into().ok()).map(u64::from_le_bytes);
        let ids = word(8)?;
        Some(Header {
            intended_ns: word(0)?,
            publisher: ids as u32,
            sequence: (ids >> 32) as u32,
            sent_ns: word(16),
            free_ns: word(SENT_LEN),
        })
    }

    /// Returns the generator delay, from ready time to send time, ns. `None` if the message does
    /// not carry it, or its times are impossible.
    #[inline]
    pub fn own_lag_ns(&self) -> Option<u64> {
        let free_ns = self.free_ns.filter(|free| *free >= self.intended_ns)?;
        self.sent_ns?.checked_sub(free_ns)
    }
}

/// Replaces the sequence of a message that has a header.
#[inline]
pub fn renumber(message: &mut [u8], sequence: u32) {
    if let Some(field) = message.get_mut(SEQUENCE) {
        field.copy_from_slice(&sequence.to_le_bytes());
    }
}

/// Start of the generator of [`pattern`].
const PATTERN_SEED: u64 = 0x7075_626d_6172_6b31;

/// Returns the body that every message of this length carries after its header: a fixed
/// pseudo-random pattern (SplitMix64 from a fixed seed), so that nothing on the way can compress
/// it.
pub fn pattern(len: usize) -> Vec<u8> {
    let mut random = Random(PATTERN_SEED);
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        bytes.extend_from_slice(&random.bits().to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn layout_is_as_documented() {
        let mut message = vec![0u8; 32];
        let header = Header {
            intended_ns: 0x0102_0304_0506_0708,
            publisher: 0x0a0b_0c0d,
            sequence: 0x1112_1314,
            sent_ns: Some(0x2122_2324_2526_2728),
            free_ns: Some(0x3132_3334_3536_3738),
        };
        assert!(header.write(&mut message));
        assert_eq!(message[0], 0x08);
        assert_eq!(message[8], 0x0d);
        assert_eq!(message[12], 0x14);
        assert_eq!(message[16], 0x28);
        assert_eq!(message[24], 0x38);
        assert_eq!([16, 24, 31, 32, 99].map(body_at), [16, 24, 24, 32, 32]);
    }

    #[test]
    fn own_lag_is_from_free_to_sent_where_that_can_be() {
        let header = |free_ns, sent_ns| Header { intended_ns: 100, publisher: 0, sequence: 0, sent_ns, free_ns };
        assert_eq!(header(Some(130), Some(150)).own_lag_ns(), Some(20));
        assert_eq!(header(Some(100), Some(100)).own_lag_ns(), Some(0));
        for (free_ns, sent_ns) in [(None, Some(150)), (Some(130), None), (Some(99), Some(150)), (Some(151), Some(150))]
        {
            assert_eq!(header(free_ns, sent_ns).own_lag_ns(), None);
        }
    }

    proptest! {
        #[test]
        fn any_header_reads_back(intended_ns: u64, publisher: u32, sequence: u32, sent: u64, free: u64, len in 16usize..80) {
            let mut message = pattern(len);
            let sent_ns = (len >= SENT_LEN).then_some(sent);
            let free_ns = (len >= FREE_LEN).then_some(free);
            let header = Header { intended_ns, publisher, sequence, sent_ns, free_ns };
            prop_assert!(header.write(&mut message));
            prop_assert_eq!(Header::read(&message), Some(header));
        }

        #[test]
        fn another_sequence_changes_nothing_else(first: u32, second: u32, len in 16usize..80) {
            let header = Header { intended_ns: 1, publisher: 2, sequence: first, sent_ns: Some(3), free_ns: Some(4) };
            let (mut message, mut wanted) = (pattern(len), pattern(len));
            prop_assert!(header.write(&mut message));
            let other = Header { sequence: second, ..header };
            prop_assert!(other.write(&mut wanted));
            renumber(&mut message, second);
            prop_assert_eq!(message, wanted);
        }

        #[test]
        fn short_messages_have_no_header(bytes in proptest::collection::vec(any::<u8>(), 0..16)) {
            prop_assert_eq!(Header::read(&bytes), None);
        }
    }
}
