//! What is counted of messages: by each publisher, by a ledger, and over a run.

use crate::header::MAX_SEQUENCE;
use crate::units;
use serde::{Deserialize, Serialize};

/// What one publisher sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublisherTotal {
    /// Its number.
    pub publisher: u32,
    /// All messages that it sent, warm-up included; sequences 0 to `sent` − 1.
    pub sent: u64,
    /// The first sequence of the window.
    pub window_first: u64,
    /// The sequence after the window's last. Messages belong to the window by
    /// their intended time.
    pub window_end: u64,
    /// Messages that the schedule had due in the window, sent or not.
    pub offered: u64,
}

impl PublisherTotal {
    /// Whether it can be: the window lies within what was sent and numbered.
    pub fn adds_up(&self) -> bool {
        self.window_first <= self.window_end && self.window_end <= self.sent && self.sent <= u64::from(MAX_SEQUENCE)
    }
}

/// The ledger's counts over the measured window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerCounts {
    /// Messages that should have arrived.
    pub expected: u64,
    /// Messages that did, each counted once.
    pub delivered: u64,
    /// Arrivals beyond the first of a message.
    pub duplicated: u64,
    /// Arrivals behind a later message of the same publisher (RFC 4737).
    pub reordered: u64,
    /// Arrivals with a wrong length, body or header.
    pub corrupted: u64,
    /// Those of them whose header named no message: counted lost as well.
    pub unidentified: u64,
    /// Latencies below zero: a clock is wrong.
    pub negative: u64,
    /// Messages that no echo came of, where one of those who hear a message
    /// echoes it. None of them is in `expected`.
    #[serde(default)]
    pub unanswered: u64,
}

impl LedgerCounts {
    /// Adds the counts of another ledger.
    pub fn add(&mut self, other: &LedgerCounts) {
        self.expected = self.expected.saturating_add(other.expected);
        self.delivered = self.delivered.saturating_add(other.delivered);
        self.duplicated = self.duplicated.saturating_add(other.duplicated);
        self.reordered = self.reordered.saturating_add(other.reordered);
        self.corrupted = self.corrupted.saturating_add(other.corrupted);
        self.unidentified = self.unidentified.saturating_add(other.unidentified);
        self.negative = self.negative.saturating_add(other.negative);
        self.unanswered = self.unanswered.saturating_add(other.unanswered);
    }
}

/// Messages that the server refused for one reason.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusalCount {
    /// The server's words, or the meaning of its code.
    pub reason: String,
    /// Messages of the window.
    pub count: u64,
    /// Whether a limit of the server was reached: a quota, a full queue, memory.
    #[serde(default)]
    pub limit: bool,
}

/// Adds refusals to those of others, by reason.
pub fn add_refusals(all: &mut Vec<RefusalCount>, more: &[RefusalCount]) {
    for one in more {
        match all.iter_mut().find(|same| same.reason == one.reason) {
            Some(same) => {
                same.count = same.count.saturating_add(one.count);
                same.limit |= one.limit;
            }
            None => all.push(one.clone()),
        }
    }
}

/// Counts over the window. `offered` = `sent` + `not_sent`; `sent` = `acked` + `refused` + those
/// that are not acknowledged; `expected` = `delivered` + `lost`; duplicates, reorderings and
/// corruptions stand apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Due by the schedule.
    pub offered: u64,
    /// Accepted by the system.
    pub sent: u64,
    /// Due and never accepted.
    pub not_sent: u64,
    /// Acknowledged by the system, where it acknowledges.
    pub acked: u64,
    /// Refused by the system, in words or by a code.
    #[serde(default)]
    pub refused: u64,
    /// Copies that should have arrived: none of a refused message, but those that arrived.
    pub expected: u64,
    /// Copies that did, each counted once.
    pub delivered: u64,
    /// Copies that did not.
    pub lost: u64,
    /// Arrivals beyond the first.
    pub duplicated: u64,
    /// Arrivals behind a later message.
    pub reordered: u64,
    /// Arrivals with wrong length, header or body; none where bodies are not
    /// checked, so that nobody knows.
    pub corrupted: Option<u64>,
    /// Corrupted arrivals that named no message; counted lost as well.
    pub unidentified: u64,
    /// Acknowledged and lost; none where that cannot be told, because more was
    /// lost or not acknowledged than can be named one by one.
    pub acked_lost: Option<u64>,
    /// Delivered, with a latency from intended time above `late_after`; 0 at `max`.
    #[serde(default)]
    pub late: u64,
    /// Messages whose echo did not come (`fan-out-echo`): those that the echoing
    /// subscriber lost, and those whose echo was lost. Not in `lost`.
    #[serde(default)]
    pub unanswered: u64,
}

impl Counts {
    /// From what publishers sent and what a ledger has. What else there is to
    /// count is at none.
    pub fn of(totals: &[PublisherTotal], ledger: &LedgerCounts) -> Counts {
        let sent = units::total(totals.iter().map(|total| total.window_end.saturating_sub(total.window_first)));
        let offered = units::total(totals.iter().map(|total| total.offered));
        Counts {
            offered,
            sent,
            not_sent: offered.saturating_sub(sent),
            expected: ledger.expected,
            delivered: ledger.delivered,
            lost: ledger.expected.saturating_sub(ledger.delivered),
            duplicated: ledger.duplicated,
            reordered: ledger.reordered,
            unidentified: ledger.unidentified,
            unanswered: ledger.unanswered,
            ..Counts::default()
        }
    }

    /// Sent, and neither acknowledged nor refused; for systems that acknowledge.
    pub fn unacknowledged(&self) -> u64 {
        self.sent.saturating_sub(self.acked).saturating_sub(self.refused)
    }

    /// Arrivals that were seen to be damaged: where bodies are not checked,
    /// those whose header or length is wrong.
    pub fn damaged(&self) -> u64 {
        self.corrupted.unwrap_or(self.unidentified)
    }

    /// Delivered over expected, 0 to 1; none where nothing was expected.
    pub fn delivered_ratio(&self) -> Option<f64> {
        (self.expected > 0).then(|| self.delivered as f64 / self.expected as f64)
    }
}
