//! The bytes that a client sends over one connection, in order.

use super::speech::{ClientSpeech, StreamEnd, StreamItem};
use std::collections::BTreeMap;

/// Most bytes of segments that wait for an earlier one.
const EARLY_MAX: usize = 4 << 20;

/// One direction of a connection.
pub struct ClientStream {
    first: u32,
    /// Number of the next byte.
    next: u32,
    /// Bytes that are not read yet.
    bytes: Vec<u8>,
    /// Segments beyond a gap, by their distance from the first byte.
    early: BTreeMap<u64, Vec<u8>>,
    early_bytes: usize,
    /// Bytes so far.
    position: u64,
    speech: ClientSpeech,
    ended: Option<StreamEnd>,
    /// Bytes after the end of reading.
    left: u64,
}

impl ClientStream {
    /// Creates the stream whose first byte has this number.
    pub fn new(first: u32) -> ClientStream {
        ClientStream {
            first,
            next: first,
            bytes: Vec::new(),
            early: BTreeMap::new(),
            early_bytes: 0,
            position: 0,
            speech: ClientSpeech::Unknown,
            ended: None,
            left: 0,
        }
    }

    /// True if its first byte has this number: its beginning was sent again.
    pub fn begins_at(&self, first: u32) -> bool {
        self.first == first
    }

    /// Returns the bytes that it holds.
    pub fn waiting(&self) -> usize {
        self.bytes.len() + self.early_bytes
    }

    /// True if segments wait for an earlier one.
    pub fn lacks_bytes(&self) -> bool {
        !self.early.is_empty()
    }

    /// Adds a segment. What came before is left out.
    pub fn segment(&mut self, sequence: u32, payload: &[u8]) {
        if self.ended.is_some() {
            self.left += payload.len() as u64;
            return;
        }
        // Numbers wrap: a distance of more than half of them is one backwards.
        let ahead = sequence.wrapping_sub(self.next) as i32;
        if ahead > 0 {
            let at = self.position + u64::from(ahead.unsigned_abs());
            let known = self.early.entry(at).or_default();
            if known.len() < payload.len() {
                self.early_bytes += payload.len() - known.len();
                *known = payload.to_vec();
            }
            if self.early_bytes > EARLY_MAX {
                self.finish(StreamEnd::Gap);
            }
            return;
        }
        self.append(payload.get(ahead.unsigned_abs() as usize..).unwrap_or_default());
        while let Some(entry) = self.early.first_entry().filter(|entry| *entry.key() <= self.position) {
            let (at, payload) = entry.remove_entry();
            self.early_bytes -= payload.len();
            let known = (self.position - at) as usize;
            self.append(payload.get(known..).unwrap_or_default());
        }
    }

    fn append(&mut self, payload: &[u8]) {
        self.bytes.extend_from_slice(payload);
        self.next = self.next.wrapping_add(payload.len() as u32);
        self.position += payload.len() as u64;
    }

    /// Passes on the messages that are complete.
    ///
    /// # Errors
    /// If one is refused.
    pub fn messages<E>(&mut self, hear: &mut impl FnMut(&[u8], u64) -> Result<(), E>) -> Result<(), E> {
        let mut taken = 0;
        while self.ended.is_none() {
            match self.speech.next(&self.bytes[taken..]) {
                StreamItem::Message { topic, bytes, length } => {
                    hear(&topic, bytes)?;
                    taken += length;
                }
                StreamItem::Passed(length) => taken += length,
                StreamItem::Incomplete => break,
                StreamItem::Ends(ended) => self.finish(ended),
            }
        }
        self.bytes.drain(..taken.min(self.bytes.len()));
        Ok(())
    }

    /// Ends it because it waits for too much.
    pub fn give_up(&mut self) {
        if self.ended.is_none() {
            self.finish(StreamEnd::Gap);
        }
    }

    fn finish(&mut self, ended: StreamEnd) {
        self.left += self.waiting() as u64;
        self.ended = Some(ended);
        (self.bytes, self.early, self.early_bytes) = (Vec::new(), BTreeMap::new(), 0);
    }

    /// Returns how it ended, and the bytes that were not read because of a gap.
    pub fn end(self) -> (StreamEnd, u64) {
        let ended = self.ended.unwrap_or(if self.lacks_bytes() { StreamEnd::Gap } else { StreamEnd::Whole });
        (ended, self.left + self.waiting() as u64)
    }
}
