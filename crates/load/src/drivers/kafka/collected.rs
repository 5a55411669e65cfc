//! Messages that a producer collects for a batch.
//!
//! The messages of a thread's producers usually differ at the front only, in their headers. Of such a message only the
//! front is kept, because the thread keeps the body that it has in common with the others. Other messages are kept
//! whole. So thousands of producers that wait for their broker take little memory.

use crate::spare::{keep, release};
use pubmark_model::header::SEALED_LEN;
use pubmark_wire::kafka::{put_record_of, record_bytes};
use std::cell::RefCell;

/// Bytes at the front of a message that are its own: the longest header.
const FRONT_BYTES: usize = SEALED_LEN;
/// Bytes of a length.
const LENGTH_BYTES: usize = 4;
/// Room for a dozen messages with the common body.
const GROWTH_BYTES: usize = 12 * (LENGTH_BYTES + FRONT_BYTES);
/// Bit of a length: the message has the common body.
const IS_COMMON: u32 = 1 << 31;

thread_local! {
    /// The body that messages have in common: the one of the first that was collected, as long as the longest.
    static BODY: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Collected messages, in order.
#[derive(Default)]
pub(super) struct Collected {
    /// Of each message its length, with [`IS_COMMON`], and its front or all of it.
    kept: Vec<u8>,
    /// Bytes of their records.
    records_bytes: u32,
}

impl Collected {
    /// Returns the bytes of their records.
    pub(super) fn records_bytes(&self) -> usize {
        self.records_bytes as usize
    }

    /// Adds a message, whose record has this number in the batch, and this key.
    pub(super) fn push(&mut self, number: u32, key: Option<&[u8]>, message: &[u8]) {
        let length = message.len() as u32;
        let common = message.split_at_checked(FRONT_BYTES).filter(|(_, body)| is_common(body));
        let (length, kept) = common.map_or((length, message), |(front, _)| (length | IS_COMMON, front));
        self.make_room(LENGTH_BYTES + kept.len());
        self.kept.extend_from_slice(&length.to_le_bytes());
        self.kept.extend_from_slice(kept);
        self.records_bytes += record_bytes(number, key, message.len()) as u32;
    }

    /// Makes room for so many bytes: a quarter more than there was, for thousands of producers wait with what they have,
    /// and at least [`GROWTH_BYTES`], so that most of their buffers have one size and one serves for another.
    fn make_room(&mut self, bytes: usize) {
        keep(&mut self.kept, &[]);
        if self.kept.capacity() - self.kept.len() < bytes {
            self.kept.reserve_exact(bytes.max(self.kept.len() / 4).max(GROWTH_BYTES));
        }
    }

    /// Appends all messages as records, with the next key for each, and forgets them.
    pub(super) fn put<K: AsRef<[u8]>>(&mut self, out: &mut Vec<u8>, mut next_key: impl FnMut() -> Option<K>) {
        BODY.with_borrow(|body| {
            let (mut rest, mut number) = (&self.kept[..], 0);
            while let Some((length, after)) = rest.split_first_chunk::<LENGTH_BYTES>() {
                let length = u32::from_le_bytes(*length);
                let bytes = (length & !IS_COMMON) as usize;
                let body = if length & IS_COMMON == 0 { &[] } else { &body[..bytes - FRONT_BYTES] };
                let (kept, others) = after.split_at(bytes - body.len());
                let key = next_key();
                put_record_of(out, number, key.as_ref().map(K::as_ref), [kept, body]);
                (rest, number) = (others, number + 1);
            }
        });
        self.clear();
    }

    /// Forgets all messages, and gives their memory back.
    pub(super) fn clear(&mut self) {
        release(&mut self.kept);
        self.records_bytes = 0;
    }
}

/// True if the body is the common one, as far as both go; then the longer of them is.
fn is_common(own: &[u8]) -> bool {
    BODY.with_borrow_mut(|body| {
        let shared = body.len().min(own.len());
        let is_common = body[..shared] == own[..shared];
        if is_common {
            body.extend_from_slice(&own[shared..]);
        }
        is_common
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use pubmark_wire::kafka::put_record;

    /// Returns a message of this length whose front and body consist of these bytes.
    fn message(front: u8, body: u8, bytes: usize) -> Vec<u8> {
        (0..bytes).map(|at| if at < FRONT_BYTES { front } else { body }).collect()
    }

    /// Collects messages. Returns the bytes that were kept, and whether the records are as they should be.
    fn collect(messages: &[Vec<u8>]) -> (usize, bool) {
        let (mut collected, mut wanted, mut records) = (Collected::default(), Vec::new(), Vec::new());
        for (number, message) in (0..).zip(messages) {
            collected.push(number, None, message);
            put_record(&mut wanted, number, message);
            assert_eq!(collected.records_bytes(), wanted.len());
        }
        let kept = collected.kept.len();
        collected.put(&mut records, || None::<&[u8]>);
        assert_eq!((collected.kept.capacity(), collected.records_bytes()), (0, 0), "its memory is given back");
        (kept, records == wanted)
    }

    #[test]
    fn of_messages_with_a_common_body_only_the_front_is_kept() {
        let front = LENGTH_BYTES + FRONT_BYTES;
        let alike: Vec<_> = (0..100).map(|front| message(front, 7, 1_000)).collect();
        assert_eq!(collect(&alike), (100 * front, true));
        let lengths: Vec<_> = [36, 37, 400, 5_000, 1_000].map(|bytes| message(1, 7, bytes)).into();
        assert_eq!(collect(&lengths), (5 * front, true), "a longer one has the beginning of its body in common");
        let short: Vec<_> = [0, 16, 35].map(|bytes| message(1, 7, bytes)).into();
        assert_eq!(collect(&short), (3 * LENGTH_BYTES + 51, true));
        let others = [message(1, 7, 50), message(1, 8, 50), message(1, 7, 60)];
        assert_eq!(collect(&others), (2 * front + LENGTH_BYTES + 50, true), "another body is kept");
        assert_eq!(collect(&alike), (100 * front, true));
    }
}
