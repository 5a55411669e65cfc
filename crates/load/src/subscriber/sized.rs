//! What arrives if the sizes of messages vary.

use crate::seal::is_sealed;
use pubmark_model::header::{END, Header, MIN_LEN, SEALED_LEN, body_at};
use pubmark_model::payload::MessageSizes;
use pubmark_model::workload::{Verify, Workload};

/// The length and the body that each message should have.
pub(super) struct SizedMessages {
    sizes: MessageSizes,
    /// Length of probes and end markers.
    marker_len: usize,
    /// True if messages carry the checksum of their header.
    seals: bool,
    /// The longest message, of which each has the beginning; empty if bodies are not checked.
    longest: Vec<u8>,
}

impl SizedMessages {
    /// Makes the messages of a workload; `None` if all have the same length.
    pub(super) fn of(workload: &Workload) -> Option<Box<SizedMessages>> {
        let sizes = workload.message_sizes()?;
        let checked = if workload.verify == Verify::Full { workload.payload_bytes as usize } else { 0 };
        Some(Box::new(SizedMessages {
            sizes,
            marker_len: workload.least_payload_bytes().max(MIN_LEN as u64) as usize,
            seals: workload.header_checksum,
            longest: workload.payload_content.message(checked),
        }))
    }

    /// Returns the header of a message that has the length which its number says; else `None`.
    #[inline]
    pub(super) fn header(&self, message: &[u8]) -> Option<Header> {
        let header = Header::read(message)?;
        let len = match header.sequence {
            END.. => self.marker_len,
            sequence => self.sizes.bytes(header.publisher, sequence),
        };
        (message.len() == len && (!self.seals || is_sealed(message))).then_some(header)
    }

    /// True if the body of a message is as it was sent, or is not checked.
    #[inline]
    pub(super) fn is_sound(&self, message: &[u8]) -> bool {
        let from = if self.seals { SEALED_LEN } else { body_at(message.len()) };
        self.longest.get(from..message.len()).is_none_or(|body| *body == message[from..])
    }
}
