//! A batch of a producer: its messages while they are collected, and what is kept of it once it is sent.

use super::collected::Collected;

/// The messages of one batch: those with consecutive sequences, or of those with keys the ones of one partition.
#[derive(Clone, Copy)]
pub(super) struct Span {
    pub(super) first: u32,
    pub(super) count: u32,
    pub(super) partition: i32,
    /// Number of the first message among those of an idempotent producer in the partition; negative before it is sent.
    pub(super) number: i32,
    /// Number of the batch in the order of sending, from 1; 0 before it is sent.
    pub(super) serial: u32,
}

pub(super) const NO_MESSAGES: Span = Span { first: 0, count: 0, partition: 0, number: -1, serial: 0 };

impl Span {
    /// Returns the sequence of the message behind it.
    pub(super) fn next(self) -> u32 {
        self.first.wrapping_add(self.count)
    }
}

/// A batch that is collected.
pub(super) struct Waiting {
    pub(super) span: Span,
    pub(super) messages: Collected,
    /// Number of the batch, if batches are collected for a while.
    pub(super) batch: u32,
    /// True if the caller does not know of it yet.
    pub(super) has_begun: bool,
    /// True if it is to be sent as soon as there is room.
    pub(super) is_due: bool,
}

impl Default for Waiting {
    fn default() -> Waiting {
        let messages = Collected::default();
        Waiting { span: NO_MESSAGES, messages, batch: 0, has_begun: false, is_due: false }
    }
}

impl Waiting {
    /// True if it has messages and waits for room only.
    pub(super) fn waits_for_room(&self) -> bool {
        self.span.count > 0 && self.is_due
    }
}
