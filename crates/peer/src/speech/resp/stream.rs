//! A stream as one client reads it. The peer keeps its messages for this client alone, and forgets those that it has
//! sent.

use pubmark_wire::resp::{put_bulk, put_front};
use std::collections::VecDeque;

/// Most entries of an answer.
const MOST: usize = 100;

/// The stream that a client reads.
pub struct ReadStream {
    name: Box<[u8]>,
    kept: VecDeque<Box<[u8]>>,
    /// Entries sent so far: the identifiers.
    sent: u64,
    /// True if the client waits for new entries.
    waits: bool,
}

impl ReadStream {
    pub fn new(name: &[u8]) -> ReadStream {
        ReadStream { name: name.into(), kept: VecDeque::new(), sent: 0, waits: false }
    }

    pub fn is(&self, name: &[u8]) -> bool {
        *self.name == *name
    }

    /// Handles XREADGROUP: new entries, now or when there are some. There are no others.
    pub fn read(&mut self, after: &[u8], three: bool, out: &mut Vec<u8>) {
        if after != b">" {
            self.answer(0, three, out);
            return;
        }
        self.waits = true;
        self.serve(three, out);
    }

    /// Adds an entry.
    pub fn deliver(&mut self, payload: &[u8], three: bool, out: &mut Vec<u8>) {
        self.kept.push_back(payload.into());
        self.serve(three, out);
    }

    fn serve(&mut self, three: bool, out: &mut Vec<u8>) {
        if self.waits && !self.kept.is_empty() {
            self.waits = false;
            self.answer(self.kept.len().min(MOST), three, out);
        }
    }

    fn answer(&mut self, count: usize, three: bool, out: &mut Vec<u8>) {
        if three {
            put_front(out, b'%', 1);
        } else {
            put_front(out, b'*', 1);
            put_front(out, b'*', 2);
        }
        put_bulk(out, &self.name);
        put_front(out, b'*', count);
        for payload in self.kept.drain(..count) {
            self.sent += 1;
            put_front(out, b'*', 2);
            put_bulk(out, format!("{}-0", self.sent).as_bytes());
            put_front(out, b'*', 2);
            put_bulk(out, b"m");
            put_bulk(out, &payload);
        }
    }
}
