//! Messages of a publisher beside those of its schedule: probes, end markers, and copies that are
//! sent once more.

use crate::seal::seal;
use crate::spare::Spares;
use pubmark_model::header::{Header, MIN_LEN};
use pubmark_model::payload::MessageSizes;
use pubmark_model::units::Ns;
use pubmark_model::workload::Workload;
use std::collections::VecDeque;

/// Builds probes and end markers.
pub struct Marker {
    publisher: u32,
    message: Vec<u8>,
    /// True if messages carry the checksum of their header.
    seals: bool,
}

impl Marker {
    /// Makes a builder for publisher `id`; its markers are as long as the workload's shortest
    /// message.
    pub fn new(workload: &Workload, id: u32) -> Marker {
        let len = workload.least_payload_bytes().max(MIN_LEN as u64) as usize;
        let message = workload.payload_content.message(len);
        Marker { publisher: id, message, seals: workload.header_checksum }
    }

    /// Returns a marker with this sequence: `PROBE` or `END`.
    pub fn message(&mut self, sequence: u32, now: Ns) -> &[u8] {
        self.of(self.publisher, sequence, now)
    }

    /// Returns a marker of another publisher.
    pub fn of(&mut self, publisher: u32, sequence: u32, now: Ns) -> &[u8] {
        let header = Header { intended_ns: now, publisher, sequence, sent_ns: Some(now), free_ns: Some(now) };
        write(&header, self.seals, &mut self.message);
        &self.message
    }

    /// Writes a message of the same workload to the beginning of `buffer`, which has the body of
    /// the longest message, and returns it.
    pub fn stamp<'a>(&self, header: &Header, sizes: Option<&MessageSizes>, buffer: &'a mut [u8]) -> &'a [u8] {
        let message = match sizes {
            None => buffer,
            Some(sizes) => cut(sizes, header, buffer),
        };
        write(header, self.seals, message);
        message
    }
}

/// Returns the part of `buffer` that has the length of the message with this header, with its body
/// as it should be.
#[inline]
pub(super) fn cut<'a>(sizes: &MessageSizes, header: &Header, buffer: &'a mut [u8]) -> &'a mut [u8] {
    let len = sizes.bytes(header.publisher, header.sequence).min(buffer.len());
    let message = &mut buffer[..len];
    sizes.restore_body(header, message);
    message
}

/// Writes a header to the beginning of a message, with its checksum if messages carry it.
#[inline]
pub(super) fn write(header: &Header, seals: bool, message: &mut [u8]) {
    let _ = header.write(message);
    if seals {
        seal(message);
    }
}

/// Stands for an instant that a header does not have.
const NONE: Ns = Ns::MAX;

/// The header of a message, without its publisher.
#[derive(Clone, Copy)]
struct SentMessage {
    intended_ns: Ns,
    sent_ns: Ns,
    free_ns: Ns,
    sequence: u32,
}

thread_local! {
    static SPARE: Spares<VecDeque<SentMessage>> = const { Spares::new() };
}

/// The unacknowledged messages of one publisher: the data needed to time its acknowledgement,
/// and to write it once more, byte for byte. They take 32 bytes a message. A publisher without any
/// holds no memory for them, however many it had.
#[derive(Default)]
pub struct InFlight {
    publisher: u32,
    messages: VecDeque<SentMessage>,
}

impl InFlight {
    /// Adds a message that was sent.
    pub fn sent(&mut self, header: Header) {
        if self.messages.capacity() == 0 {
            self.messages = SPARE.with(Spares::take);
        }
        let Header { intended_ns, publisher, sequence, sent_ns, free_ns } = header;
        let [sent_ns, free_ns] = [sent_ns, free_ns].map(|instant| instant.unwrap_or(NONE));
        self.publisher = publisher;
        self.messages.push_back(SentMessage { intended_ns, sent_ns, free_ns, sequence });
    }

    /// Removes the message of this sequence, which was acknowledged or refused and is not
    /// sent again, and returns its header.
    pub fn settled(&mut self, sequence: u32) -> Option<Header> {
        let at = match self.messages.front() {
            Some(front) if front.sequence == sequence => 0,
            _ => self.place(sequence)?,
        };
        let message = if at == 0 { self.messages.pop_front() } else { self.messages.remove(at) };
        if self.messages.is_empty() {
            let empty = std::mem::take(&mut self.messages);
            let bytes = empty.capacity() * size_of::<SentMessage>();
            SPARE.with(|spares| spares.put(empty, bytes));
        }
        message.map(|message| self.header_of(message))
    }

    /// Returns the header of a message.
    pub fn header(&self, sequence: u32) -> Option<Header> {
        self.messages.get(self.place(sequence)?).map(|message| self.header_of(*message))
    }

    fn place(&self, sequence: u32) -> Option<usize> {
        self.messages.binary_search_by_key(&sequence, |message| message.sequence).ok()
    }

    fn header_of(&self, message: SentMessage) -> Header {
        let SentMessage { intended_ns, sent_ns, free_ns, sequence } = message;
        let [sent_ns, free_ns] = [sent_ns, free_ns].map(|instant| (instant != NONE).then_some(instant));
        Header { intended_ns, publisher: self.publisher, sequence, sent_ns, free_ns }
    }

    /// Returns the memory that it holds, bytes.
    #[cfg(test)]
    pub(super) fn held_bytes(&self) -> usize {
        self.messages.capacity() * size_of::<SentMessage>()
    }
}
