//! Message counts: of each publisher, of a ledger, and of a run.

use crate::header::MAX_SEQUENCE;
use crate::units;
use serde::{Deserialize, Serialize};

/// Totals of one publisher.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublisherTotal {
    /// Its number.
    pub publisher: u32,
    /// All messages that it sent, including warm-up; sequences 0 to `sent` − 1.
    pub sent: u64,
    /// The first sequence of the window.
    pub window_first: u64,
    /// The sequence after the window's last. Messages belong to the window by their due time.
    pub window_end: u64,
    /// Messages that were due in the window, sent or not.
    pub offered: u64,
}

impl PublisherTotal {
    /// True if the numbers are consistent: the window lies within the sent and numbered messages.
    pub fn adds_up(&self) -> bool {
        self.window_first <= self.window_end && self.window_end <= self.sent && self.sent <= u64::from(MAX_SEQUENCE)
    }
}

/// Counts of a ledger over the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerCounts {
    /// Messages that should have arrived.
    pub expected: u64,
    /// Messages that arrived, each counted once.
    pub delivered: u64,
    /// Arrivals beyond the first of a message.
    pub duplicated: u64,
    /// Arrivals after a later message of the same publisher (RFC 4737).
    pub reordered: u64,
    /// Arrivals with a wrong length, body or header.
    pub corrupted: u64,
    /// Corrupted arrivals whose header named no message: also counted as lost.
    pub unidentified: u64,
    /// Latencies below zero: a clock is wrong.
    pub negative: u64,
    /// Messages without an echo, in a pattern in which one receiver of a message echoes it. Not
    /// included in `expected`.
    #[serde(default)]
    pub unanswered: u64,
    /// Answers that arrived later than `timeout` after the send of their request; also in
    /// `delivered`. `None` if messages are not requests, or if it is not supported by this agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late_answers: Option<u64>,
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
        let late = [self.late_answers, other.late_answers].into_iter().flatten();
        self.late_answers = late.reduce(u64::saturating_add);
    }
}

/// Bytes of messages whose sizes vary, with their headers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ByteCounts {
    /// Of the messages of the window that were sent.
    pub sent: u64,
    /// Of the copies of these that were delivered.
    pub delivered: u64,
    /// Of the messages that arrived during the window, as in `arrived`.
    pub arrived: u64,
}

impl ByteCounts {
    /// Adds the bytes of others.
    pub fn add(&mut self, other: &ByteCounts) {
        self.sent = self.sent.saturating_add(other.sent);
        self.delivered = self.delivered.saturating_add(other.delivered);
        self.arrived = self.arrived.saturating_add(other.arrived);
    }
}

/// Messages that the server refused for one reason.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusalCount {
    /// The server's text, or the meaning of its code.
    pub reason: String,
    /// Messages of the window.
    pub count: u64,
    /// True if a limit of the server was reached: a quota, a full queue, memory.
    #[serde(default)]
    pub limit: bool,
}

/// Adds refusals to those in `all`, by reason.
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

/// Counts over the window. `offered` = `sent` + `not_sent`; `sent` = `acked` + `refused` +
/// unacknowledged; `expected` = `delivered` + `lost`. Duplicated, reordered and corrupted arrivals
/// are counted separately.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Messages due by the schedule.
    pub offered: u64,
    /// Messages accepted by the system.
    pub sent: u64,
    /// Messages due and never accepted.
    pub not_sent: u64,
    /// Messages acknowledged by the system, if it acknowledges.
    pub acked: u64,
    /// Messages refused by the system, by a text or a code.
    #[serde(default)]
    pub refused: u64,
    /// Copies that should have arrived. Copies of refused messages are excluded, unless they
    /// arrived.
    pub expected: u64,
    /// Copies that arrived, each counted once.
    pub delivered: u64,
    /// Copies that did not arrive.
    pub lost: u64,
    /// Arrivals after the first of a copy.
    pub duplicated: u64,
    /// Arrivals after a later message.
    pub reordered: u64,
    /// Arrivals with wrong length, header or body; `None` if bodies are not checked.
    pub corrupted: Option<u64>,
    /// Corrupted arrivals that named no message; also counted as lost.
    pub unidentified: u64,
    /// Messages acknowledged and lost; `None` if unknown, because more were lost or unacknowledged
    /// than can be listed one by one.
    pub acked_lost: Option<u64>,
    /// Copies delivered with a latency from due time above `late_after`; 0 at `max`.
    #[serde(default)]
    pub late: u64,
    /// Messages whose echo did not arrive (`fan-out-echo`): the echoing subscriber lost the
    /// message, or the echo was lost. Not included in `lost`.
    #[serde(default)]
    pub unanswered: u64,
    /// Requests without an answer within `timeout`: those that were lost, and those whose answer
    /// came later. `None` if messages are not requests, or if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timed_out: Option<u64>,
    /// Bytes of the messages that were sent; only if their sizes vary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent_bytes: Option<u64>,
    /// Bytes of the copies that arrived; only if their sizes vary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivered_bytes: Option<u64>,
}

impl Counts {
    /// Creates the counts from the publishers' totals and a ledger. All other counts are 0 or
    /// `None`.
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

    /// Returns how many copies subscribers should receive of the messages due in the window, whether
    /// they were sent or not; 0 if none was sent.
    pub fn due_copies(&self) -> f64 {
        self.offered as f64 * self.expected as f64 / self.sent.max(1) as f64
    }

    /// Adds the counts of another flow.
    pub fn add(&mut self, other: &Counts) {
        let sum = |mine: &mut u64, other: u64| *mine = mine.saturating_add(other);
        let both = |mine: Option<u64>, other: Option<u64>| Some(mine?.saturating_add(other?));
        sum(&mut self.offered, other.offered);
        sum(&mut self.sent, other.sent);
        sum(&mut self.not_sent, other.not_sent);
        sum(&mut self.acked, other.acked);
        sum(&mut self.refused, other.refused);
        sum(&mut self.expected, other.expected);
        sum(&mut self.delivered, other.delivered);
        sum(&mut self.lost, other.lost);
        sum(&mut self.duplicated, other.duplicated);
        sum(&mut self.reordered, other.reordered);
        sum(&mut self.unidentified, other.unidentified);
        sum(&mut self.late, other.late);
        sum(&mut self.unanswered, other.unanswered);
        self.corrupted = both(self.corrupted, other.corrupted);
        self.acked_lost = both(self.acked_lost, other.acked_lost);
        let timed_out = [self.timed_out, other.timed_out].into_iter().flatten();
        self.timed_out = timed_out.reduce(u64::saturating_add);
        self.sent_bytes = both(self.sent_bytes, other.sent_bytes);
        self.delivered_bytes = both(self.delivered_bytes, other.delivered_bytes);
    }

    /// Returns the messages that were sent, and neither acknowledged nor refused; for systems that
    /// acknowledge.
    pub fn unacknowledged(&self) -> u64 {
        self.sent.saturating_sub(self.acked).saturating_sub(self.refused)
    }

    /// Returns the damaged arrivals: if bodies are not checked, those with a wrong header or
    /// length.
    pub fn damaged(&self) -> u64 {
        self.corrupted.unwrap_or(self.unidentified)
    }

    /// Returns delivered over expected, 0 to 1; `None` if nothing was expected.
    pub fn delivered_ratio(&self) -> Option<f64> {
        (self.expected > 0).then(|| self.delivered as f64 / self.expected as f64)
    }
}
