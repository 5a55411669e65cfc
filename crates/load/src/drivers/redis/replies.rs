//! Assigns replies to messages: a server answers each PUBLISH of a connection, in their order.
//!
//! Nothing is stored for a message. Probes come before the first message and end markers after
//! the last one, and messages are numbered without a gap, so the position of a reply gives the
//! message's number.

use pubmark_model::header::{MAX_SEQUENCE, PROBE};

/// Counts replies and knows the position of the first message among them.
pub struct Replies {
    /// Replies that have arrived.
    answered: u64,
    /// PUBLISHes before the first message.
    probes: u32,
    /// The first message of the connection; `PROBE` before it.
    first: u32,
}

impl Default for Replies {
    fn default() -> Replies {
        Replies { answered: 0, probes: 0, first: PROBE }
    }
}

impl Replies {
    /// Notes that a message or a marker is published.
    pub fn expect(&mut self, sequence: u32) {
        if self.first == PROBE {
            match sequence < MAX_SEQUENCE {
                true => self.first = sequence,
                false => self.probes = self.probes.saturating_add(1),
            }
        }
    }

    /// Counts a reply.
    pub fn count(&mut self) {
        self.answered += 1;
    }

    /// Counts a reply and returns what it answers: a message's number or `PROBE`; `None` if
    /// nothing was published. For an end marker it is a number that no message has.
    pub fn next(&mut self) -> Option<u32> {
        let place = self.answered;
        self.answered += 1;
        let probes = u64::from(self.probes);
        match self.first {
            PROBE => (probes > 0).then_some(PROBE),
            first if place >= probes => Some(u32::try_from(u64::from(first) + place - probes).unwrap_or(PROBE)),
            _ => Some(PROBE),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pubmark_model::header::END;

    #[test]
    fn a_reply_is_for_the_message_at_its_place() {
        let mut replies = Replies::default();
        assert_eq!(replies.next(), None, "an answer to something else");
        let mut replies = Replies::default();
        [PROBE, PROBE, 7, 8, 9, END].into_iter().for_each(|sequence| replies.expect(sequence));
        assert_eq!(replies.next(), Some(PROBE));
        replies.count();
        assert_eq!(replies.next(), Some(7));
        replies.count();
        assert_eq!((replies.next(), replies.next()), (Some(9), Some(10)));
    }
}
