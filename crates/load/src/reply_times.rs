//! The times that a replier writes into an answer: with them the requester splits the round trip.
//!
//! They replace the front of the body. A replier first compares that with the bytes that it should
//! have, so that damage to a request stays visible in its answer.

use pubmark_model::header::REPLY_TIMES_LEN;
use pubmark_model::units::Ns;
use pubmark_model::workload::Workload;

/// Length of both times, bytes; their checksum follows.
const TIMES_LEN: usize = 16;

/// The times of a replier, ns on the clock of instants in messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyTimes {
    /// Arrival of the request.
    pub arrived_ns: Ns,
    /// Send of the answer.
    pub sent_ns: Ns,
}

impl ReplyTimes {
    /// Reads the times at this offset of an answer; `None` if they are damaged or missing.
    #[inline]
    pub fn read(answer: &[u8], at: usize) -> Option<ReplyTimes> {
        let field: &[u8; REPLY_TIMES_LEN] = answer.get(at..)?.first_chunk()?;
        let word = |at: usize| field.get(at..at + 8).and_then(|bytes| bytes.try_into().ok()).map(u64::from_le_bytes);
        let sum = crc32c::crc32c(&field[..TIMES_LEN]).to_le_bytes();
        (field[TIMES_LEN..] == sum).then_some(ReplyTimes { arrived_ns: word(0)?, sent_ns: word(8)? })
    }
}

/// Writes a replier's times into its answers.
#[derive(Clone, Debug)]
pub struct ReplyStamp {
    at: usize,
    /// The bytes of a request that the times replace.
    body: [u8; REPLY_TIMES_LEN],
}

impl ReplyStamp {
    /// Makes a writer for the answers of a workload; `None` if they have no times.
    pub fn of(workload: &Workload) -> Option<ReplyStamp> {
        let at = workload.reply_times_at()?;
        let body = *workload.longest_message().get(at..)?.first_chunk()?;
        Some(ReplyStamp { at, body })
    }

    /// Turns a request that arrived at `arrived_ns` into an answer without the time of its send.
    #[inline]
    pub fn arrived(&self, request: &mut [u8], arrived_ns: Ns) {
        let Some(field) = request.get_mut(self.at..).and_then(|rest| rest.first_chunk_mut::<REPLY_TIMES_LEN>()) else {
            return;
        };
        let sum_mask: u32 = if *field == self.body { 0 } else { u32::MAX };
        field[..8].copy_from_slice(&arrived_ns.to_le_bytes());
        field[8..TIMES_LEN].fill(0);
        field[TIMES_LEN..].copy_from_slice(&sum_mask.to_le_bytes());
    }

    /// Writes the time of its send into an answer, unless it has one: of an answer that had to wait
    /// for room the first attempt counts. Returns false if it has one.
    #[inline]
    pub fn sent(&self, answer: &mut [u8], sent_ns: Ns) -> bool {
        let Some(field) = answer.get_mut(self.at..).and_then(|rest| rest.first_chunk_mut::<REPLY_TIMES_LEN>()) else {
            return false;
        };
        if field[8..TIMES_LEN] != [0; 8] {
            return false;
        }
        field[8..TIMES_LEN].copy_from_slice(&sent_ns.to_le_bytes());
        let sum = crc32c::crc32c(&field[..TIMES_LEN]).to_le_bytes();
        field[TIMES_LEN..].iter_mut().zip(sum).for_each(|(byte, sum)| *byte ^= sum);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workload() -> Workload {
        let workload = Workload::of([("pattern", "request-reply"), ("payload", "64B")]).unwrap();
        Workload { reply_times: true, header_checksum: true, ..workload }
    }

    #[test]
    fn an_answer_has_both_times_and_the_first_time_of_its_send_counts() {
        let (workload, stamp) = (workload(), ReplyStamp::of(&workload()).unwrap());
        let request = workload.longest_message();
        let mut answer = request.clone();
        stamp.arrived(&mut answer, 7);
        assert_eq!(ReplyTimes::read(&answer, 36), None, "it was not sent");
        assert!(stamp.sent(&mut answer, 9) && !stamp.sent(&mut answer, 11));
        assert_eq!(ReplyTimes::read(&answer, 36), Some(ReplyTimes { arrived_ns: 7, sent_ns: 9 }));
        assert_eq!((&answer[..36], &answer[56..]), (&request[..36], &request[56..]));
        assert_eq!(workload.body_at(64), 56);
        assert!(ReplyStamp::of(&Workload { reply_times: false, ..workload }).is_none());
    }

    #[test]
    fn damage_to_the_request_or_to_the_answer_is_seen() {
        let (workload, stamp) = (workload(), ReplyStamp::of(&workload()).unwrap());
        for bit in 36 * 8..56 * 8 {
            for is_request in [true, false] {
                let mut message = workload.longest_message();
                let damage = |message: &mut [u8], now: bool| message[bit / 8] ^= u8::from(now) << (bit % 8);
                damage(&mut message, is_request);
                stamp.arrived(&mut message, 7);
                stamp.sent(&mut message, 9);
                damage(&mut message, !is_request);
                assert_eq!(ReplyTimes::read(&message, 36), None, "bit {bit}, of the request: {is_request}");
            }
        }
    }
}
