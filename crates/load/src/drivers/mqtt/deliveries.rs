//! What a server promises about packet identifiers and DUP flags, held against its deliveries.
//!
//! Only what a client can know is counted: an identifier is in use until the client has acknowledged it, and a message
//! is sent for the first time if the connection is the first of its session and the client has not had it.

use pubmark_model::header::{Header, MAX_SEQUENCE};
use pubmark_wire::mqtt::{Publish, Qos, Version};
use std::collections::VecDeque;

/// Deliveries that are remembered: a server that sends more before an acknowledgement is not held to all of them.
const REMEMBERED: usize = 32;

/// A delivery without DUP of what the server had sent with this identifier.
pub(super) const REDELIVERY: &str = "[MQTT-3.3.1-1] DUP was 0 on a redelivery";
/// DUP on what the client cannot have had.
pub(super) const FIRST: &str = "[MQTT-3.3.1-3] DUP was 1 on a first delivery";
/// An identifier that the server used for another message before the client had acknowledged the first.
pub(super) const REUSED: &str = "[MQTT-2.3.1-4] a packet identifier in use was given to another message";
/// The same in MQTT 5.
pub(super) const REUSED_5: &str = "[MQTT-2.2.1-4] a packet identifier in use was given to another message";

/// A delivery with a packet identifier.
#[derive(Clone, Copy, Debug)]
struct Delivery {
    id: u16,
    publisher: u32,
    sequence: u32,
    connection: u32,
    /// Number of the batch of bytes that it came in.
    batch: u32,
}

/// The last deliveries to a subscriber.
#[derive(Debug, Default)]
pub(super) struct Deliveries {
    last: VecDeque<Delivery>,
    connection: u32,
    batch: u32,
    /// True if some were forgotten.
    is_full: bool,
}

impl Deliveries {
    /// The client connects again.
    pub fn resume(&mut self) {
        self.connection += 1;
    }

    /// The server has a new session for the client: all that it sends is new.
    pub fn forget(&mut self) {
        self.last.clear();
    }

    /// More bytes have come. What was acknowledged until now is no longer in use, as far as the server may know.
    pub fn next_batch(&mut self) {
        self.batch = self.batch.wrapping_add(1);
    }

    /// Takes the next delivery. `unreleased`: its identifier is of a message of QoS 2 that the server has not released.
    /// Returns the statement that it breaks.
    pub fn check(&mut self, version: Version, publish: &Publish<'_>, unreleased: bool) -> Option<&'static str> {
        if publish.qos == Qos::AtMostOnce {
            return None;
        }
        let Header { publisher, sequence, .. } = Header::read(publish.payload)?;
        // Markers are alike: a second one cannot be told from a redelivery.
        if sequence >= MAX_SEQUENCE {
            return None;
        }
        let now = Delivery { id: publish.id, publisher, sequence, connection: self.connection, batch: self.batch };
        let broken = self.broken(version, publish.dup, now, unreleased);
        if self.last.len() == REMEMBERED {
            self.last.pop_front();
            self.is_full = true;
        }
        self.last.push_back(now);
        broken
    }

    fn broken(&self, version: Version, dup: bool, now: Delivery, unreleased: bool) -> Option<&'static str> {
        let is_same = |delivery: &Delivery| (delivery.publisher, delivery.sequence) == (now.publisher, now.sequence);
        let mut of_id = self.last.iter().filter(|delivery| delivery.id == now.id);
        let Some(before) = of_id.next_back() else {
            return (dup && self.connection == 0 && self.is_first(now)).then_some(FIRST);
        };
        // Its acknowledgement has not been sent yet.
        let is_open = before.batch == self.batch || unreleased && before.connection == self.connection;
        // Its acknowledgement may not have arrived. A server that gives one identifier again and again may have given
        // it to another copy of the same message, which a publisher sent twice.
        let is_lost = before.connection < self.connection && of_id.next_back().is_none();
        match is_same(before) {
            true => (!dup && (is_open || is_lost)).then_some(REDELIVERY),
            false if is_open => Some(if version == Version::V5 { REUSED_5 } else { REUSED }),
            false => None,
        }
    }

    /// True if a message is later than all that its publisher is remembered for, or none was forgotten.
    fn is_first(&self, now: Delivery) -> bool {
        let mut own = self.last.iter().filter(|delivery| delivery.publisher == now.publisher).peekable();
        (!self.is_full || own.peek().is_some()) && own.all(|delivery| delivery.sequence < now.sequence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Deliveries `(identifier, sequence, DUP)`, and what each breaks.
    fn broken(deliveries: &mut Deliveries, version: Version, list: &[(u16, u32, bool)]) -> Vec<Option<&'static str>> {
        let check = |(id, sequence, dup): &(u16, u32, bool)| {
            let mut payload = [0; 16];
            let header = Header { intended_ns: 1, publisher: 7, sequence: *sequence, sent_ns: None, free_ns: None };
            assert!(header.write(&mut payload));
            let publish = Publish { dup: *dup, ..Publish::plain(Qos::AtLeastOnce, *id, "t", &payload) };
            deliveries.check(version, &publish, false)
        };
        list.iter().map(check).collect()
    }

    #[test]
    fn identifiers_are_in_use_until_an_acknowledgement_may_have_been_read() {
        for (version, reused) in [(Version::V3_1_1, REUSED), (Version::V5, REUSED_5)] {
            let mut own = Deliveries::default();
            assert_eq!(
                broken(&mut own, version, &[(1, 0, false), (2, 1, false), (1, 2, false)]),
                [None, None, Some(reused)]
            );
            own.next_batch();
            assert_eq!(broken(&mut own, version, &[(1, 3, false), (2, 4, false)]), [None, None]);
        }
    }

    #[test]
    fn dup_is_for_redeliveries_and_for_nothing_else() {
        let version = Version::V5;
        let mut own = Deliveries::default();
        assert_eq!(
            broken(&mut own, version, &[(1, 0, true), (1, 0, false), (1, 0, true)]),
            [Some(FIRST), Some(REDELIVERY), None]
        );
        own.next_batch();
        assert_eq!(broken(&mut own, version, &[(2, 1, false), (3, 2, false)]), [None, None]);
        own.resume();
        own.next_batch();
        let again = [(2, 1, true), (3, 2, false), (4, 3, true)];
        assert_eq!(
            broken(&mut own, version, &again),
            [None, Some(REDELIVERY), None],
            "4 may have been lost on its way"
        );
        own.resume();
        own.forget();
        own.next_batch();
        assert_eq!(broken(&mut own, version, &[(2, 1, false)]), [None], "of a new session all is new");
    }

    #[test]
    fn a_server_that_reuses_free_identifiers_is_not_accused_of_a_publishers_copies() {
        let (version, mut own) = (Version::V5, Deliveries::default());
        for sequence in 0..40 {
            own.next_batch();
            assert_eq!(broken(&mut own, version, &[(1, sequence, false)]), [None]);
        }
        own.resume();
        own.next_batch();
        assert_eq!(broken(&mut own, version, &[(1, 39, false)]), [None]);
    }
}
