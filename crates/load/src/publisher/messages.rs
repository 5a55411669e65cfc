//! Messages of a publisher beside those of its schedule: probes, end markers, and copies that are
//! sent once more.

use crate::seal::seal;
use pubmark_model::header::{Header, MIN_LEN};
use pubmark_model::payload::MessageSizes;
use pubmark_model::units::Ns;
use pubmark_model::workload::Workload;

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
