//! What arrives if the sizes of messages vary.

use crate::seal::is_sealed;
use pubmark_model::header::{END, Header, MIN_LEN, body_at};
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
    /// Offset of bodies; `None` if it depends on the length.
    body_at: Option<usize>,
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
            body_at: (workload.header_checksum || workload.reply_times).then(|| workload.body_at(0)),
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

    /// True if the body of a message is as it was sent, or is not checked. `has_times` is false if a
    /// replier's times are missing or damaged.
    #[inline]
    pub(super) fn is_sound(&self, header: &Header, message: &[u8], has_times: bool) -> bool {
        if let Some(bodies) = self.sizes.bodies() {
            return self.longest.is_empty() || bodies.is_in(header, message, self.seals);
        }
        let from = self.body_at.unwrap_or_else(|| body_at(message.len()));
        let body = self.longest.get(from..message.len());
        body.is_none_or(|body| has_times && *body == message[from..])
    }
}
