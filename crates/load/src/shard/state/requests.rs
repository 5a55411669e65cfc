//! Requests that wait for their answers, and answers that wait for room.

use crate::reply_times::ReplyStamp;
use pubmark_model::units::Ns;
use std::collections::VecDeque;

/// Requests of all requesters of a shard that have no answer yet.
pub struct OpenRequests {
    /// Most of them for each requester.
    most: usize,
    /// How long a requester waits for an answer, ns.
    answer_ns: Ns,
    /// Their sequences, rising, by requester.
    open: Vec<VecDeque<u32>>,
    /// Instant of the last request, ns; 0 if there is none.
    last_ns: Ns,
    /// Instants at which requesters give up, in order: one for each request that was sent.
    until: VecDeque<(Ns, u32, u32)>,
}

impl OpenRequests {
    pub fn new(requesters: usize, most: usize, answer_ns: Ns) -> OpenRequests {
        OpenRequests { most, answer_ns, last_ns: 0, open: vec![VecDeque::new(); requesters], until: VecDeque::new() }
    }

    /// True if the requester has to wait for an answer before its next request.
    #[inline]
    pub fn is_full(&self, index: usize) -> bool {
        self.open[index].len() >= self.most
    }

    /// Notes a request.
    #[inline]
    pub fn sent(&mut self, index: usize, sequence: u32, now: Ns) {
        self.open[index].push_back(sequence);
        self.last_ns = now;
        self.until.push_back((now + self.answer_ns, index as u32, sequence));
    }

    /// Notes an answer; returns false if none was waited for.
    #[inline]
    pub fn answered(&mut self, index: usize, sequence: u32) -> bool {
        let open = &mut self.open[index];
        let place = open.binary_search(&sequence);
        place.is_ok_and(|place| open.remove(place).is_some())
    }

    /// Gives up all requests of a requester whose connection has ended: their answers have nowhere to go.
    pub fn forget(&mut self, index: usize) {
        self.open[index].clear();
    }

    /// Gives up the next request that has waited too long; returns its requester.
    pub fn give_up(&mut self, now: Ns) -> Option<usize> {
        while let Some((until, index, sequence)) = self.until.front().copied() {
            let is_open = self.open[index as usize].binary_search(&sequence).is_ok();
            if is_open && until > now {
                return None;
            }
            self.until.pop_front();
            if self.answered(index as usize, sequence) {
                return Some(index as usize);
            }
        }
        None
    }

    /// Returns the instant of the last request, ns; 0 if there is none.
    pub fn last_ns(&self) -> Ns {
        self.last_ns
    }

    /// Returns when a requester gives up next; `None` if all have their answers.
    pub fn next_ns(&self) -> Option<Ns> {
        self.until.front().map(|(until, _, _)| *until)
    }
}

/// Answers that are to be sent, by replier.
#[derive(Default)]
pub struct PendingAnswers {
    waiting: Vec<VecDeque<Vec<u8>>>,
    /// Buffers of answers that were sent.
    spare: Vec<Vec<u8>>,
    /// Requests that have arrived.
    pub requests: u64,
    /// Writes the times of this side into answers, if they have them.
    stamp: Option<ReplyStamp>,
}

impl PendingAnswers {
    pub fn new(repliers: usize, stamp: Option<ReplyStamp>) -> PendingAnswers {
        PendingAnswers { waiting: vec![VecDeque::new(); repliers], stamp, ..PendingAnswers::default() }
    }

    /// Keeps a request, which is its own answer. It arrived at `arrived_ns`, on the clock of instants in messages.
    pub fn keep(&mut self, index: usize, message: &[u8], arrived_ns: Ns) {
        let mut answer = self.spare.pop().unwrap_or_default();
        answer.clear();
        answer.extend_from_slice(message);
        self.stamp.iter().for_each(|stamp| stamp.arrived(&mut answer, arrived_ns));
        self.waiting[index].push_back(answer);
        self.requests += 1;
    }

    /// Returns the next answer of a replier, which tries to send it at the instant that `now` returns.
    pub fn next(&mut self, index: usize, now: impl FnOnce() -> Ns) -> Option<&[u8]> {
        let answer = self.waiting[index].front_mut()?;
        if let Some(stamp) = &self.stamp {
            stamp.sent(answer, now());
        }
        Some(answer)
    }

    /// Notes that there is no room for the answers of a replier: from now on they wait because of the system.
    pub fn wait(&mut self, index: usize, now: Ns) {
        let Some(stamp) = &self.stamp else { return };
        // Those that waited before have their time, and are the first.
        let _ = self.waiting[index].iter_mut().rev().all(|answer| stamp.sent(answer, now));
    }

    /// Removes it, now that it is sent.
    pub fn sent(&mut self, index: usize) {
        self.spare.extend(self.waiting[index].pop_front());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_requester_waits_for_as_many_answers_as_it_may_and_gives_up_after_its_time() {
        let mut requests = OpenRequests::new(2, 2, 100);
        assert_eq!(requests.next_ns(), None);
        requests.sent(0, 7, 10);
        requests.sent(1, 7, 20);
        requests.sent(0, 8, 30);
        assert!(requests.is_full(0) && !requests.is_full(1));
        assert!(requests.answered(0, 7) && !requests.answered(0, 7), "an answer counts once");
        assert!(!requests.is_full(0));
        assert_eq!((requests.give_up(119), requests.next_ns()), (None, Some(120)));
        assert_eq!((requests.give_up(120), requests.give_up(120)), (Some(1), None));
        assert_eq!(requests.give_up(130), Some(0));
        assert_eq!((requests.give_up(500), requests.next_ns()), (None, None));
    }
}
