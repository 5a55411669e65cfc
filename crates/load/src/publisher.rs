//! A publisher without socket or clock. The caller passes in the time and the result of
//! each send; the publisher returns what to do next.

mod in_flight;
mod messages;
mod recorder;

use crate::ledger::SeenSequences;
use crate::pacing::Pacer;
use crate::seal::seal;
use crate::session::MessageRefusal;
use crate::window::Window;
pub use in_flight::InFlight;
pub use messages::Marker;
use messages::{cut, write};
use pubmark_model::header::{Header, MAX_SEQUENCE, SEALED_LEN, body_at, renumber};
use pubmark_model::payload::MessageSizes;
use pubmark_model::protocol::{PublisherTotal, Sequences};
use pubmark_model::schedule::Schedule;
use pubmark_model::times::TimeFigures;
use pubmark_model::units::Ns;
use pubmark_model::workload::{Extent, Workload};
use pubmark_stats::Histogram;
pub use recorder::SendRecorder;

/// The next action of a publisher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Wait until this instant, ns.
    Wait(Ns),
    /// Send the message now.
    Send,
    /// Stop: there is nothing more to send.
    Done,
}

/// Progress of one publisher or requester. It is small, because there are thousands.
pub struct Outgoing {
    id: u32,
    schedule: Option<Schedule>,
    left: Option<u64>,
    sequence: u64,
    most: u64,
    first: Option<u64>,
    end: u64,
    offered: u64,
    intended_ns: Ns,
    /// Ready time of the next message, ns: when it could have been sent without any
    /// generator delay.
    free_ns: Ns,
    /// Offset of the clock used for instants in messages, relative to the local clock,
    /// ns.
    ahead_ns: i64,
    /// True if messages carry the checksum of their header.
    seals: bool,
    /// The size of each message, if sizes vary.
    sizes: Option<MessageSizes>,
    done: bool,
    /// Acknowledged messages; `None` if nothing is acknowledged, as for thousands of
    /// publishers.
    acked: Option<Box<Settled>>,
    /// Refused messages; `None` until one is refused.
    refused: Option<Box<Settled>>,
}

/// Messages that the server has acknowledged, or refused.
struct Settled {
    seen: SeenSequences,
    count: u64,
}

impl Outgoing {
    /// Makes publisher `id` of the workload. `most` is the number of messages that its
    /// subscribers can account for.
    pub fn new(workload: &Workload, id: u32, most: u64) -> Outgoing {
        let schedule = workload.rate.profile().map(|profile| Schedule::of(workload, profile, id));
        Outgoing {
            id,
            schedule,
            left: match workload.extent {
                Extent::Count(count) => Some(count),
                Extent::TimeNs(_) => None,
            },
            sequence: 0,
            most: most.min(u64::from(MAX_SEQUENCE)),
            first: None,
            end: 0,
            offered: 0,
            intended_ns: 0,
            free_ns: 0,
            ahead_ns: 0,
            seals: workload.header_checksum,
            sizes: workload.message_sizes(),
            done: false,
            acked: (workload.qos > 0).then(|| Box::new(Settled { seen: SeenSequences::with_capacity(most), count: 0 })),
            refused: None,
        }
    }

    /// Returns what to do at `now`, in a run with this window, which ends at
    /// `give_up_ns`. After `Next::Send`, the message to send is the one of
    /// [`Outgoing::header`].
    #[inline]
    pub fn next(&mut self, window: &Window, give_up_ns: Option<Ns>, now: Ns) -> Next {
        if self.done {
            return Next::Done;
        }
        let next = match &self.schedule {
            Some(schedule) => {
                let due = window.start_ns + schedule.due();
                if self.left.is_none() && window.to_ns.is_some_and(|to| due >= to) {
                    // The run goes on for those that have not ended.
                    window.to_ns.filter(|to| schedule.is_over() && now < *to).map_or(Next::Done, Next::Wait)
                } else if due > now {
                    Next::Wait(due)
                } else if give_up_ns.is_some_and(|give_up| now >= give_up) {
                    Next::Done
                } else {
                    self.intended_ns = due;
                    Next::Send
                }
            }
            None => {
                if now < window.start_ns {
                    Next::Wait(window.start_ns)
                } else if self.left.is_none() && window.to_ns.is_some_and(|to| now >= to) {
                    Next::Done
                } else {
                    self.intended_ns = now;
                    Next::Send
                }
            }
        };
        match next {
            Next::Done => self.finish(window),
            Next::Send if self.left == Some(0) || self.sequence >= self.most => {
                self.finish(window);
                return Next::Done;
            }
            Next::Send | Next::Wait(_) => {}
        }
        self.ahead_ns = window.ahead_ns;
        next
    }

    /// Returns the header of the message to send at `now`.
    #[inline]
    pub fn header(&self, now: Ns) -> Header {
        Header {
            intended_ns: self.intended_ns,
            publisher: self.id,
            sequence: self.sequence as u32,
            sent_ns: Some(now),
            free_ns: Some(self.intended_ns.max(self.free_ns)),
        }
        .ahead_by(self.ahead_ns)
    }

    /// Writes the message to send at `now` to the beginning of `buffer`, which has the body of the
    /// longest message, and returns its header and the message.
    #[inline]
    pub fn write<'a>(&self, now: Ns, buffer: &'a mut [u8]) -> (Header, &'a [u8]) {
        if self.sizes.is_some() {
            return self.write_sized(now, buffer);
        }
        let header = self.header(now);
        write(&header, self.seals, buffer);
        (header, buffer)
    }

    /// Writes a message as [`Outgoing::write`] does, if sizes vary: apart, so that the path of
    /// messages of one size is as short as without it.
    #[inline(never)]
    fn write_sized<'a>(&self, now: Ns, buffer: &'a mut [u8]) -> (Header, &'a [u8]) {
        let header = self.header(now);
        let message = match &self.sizes {
            None => buffer,
            Some(sizes) => cut(sizes, &header, buffer),
        };
        write(&header, self.seals, message);
        (header, message)
    }

    /// Returns the size of each message, if sizes vary.
    pub fn sizes(&self) -> Option<&MessageSizes> {
        self.sizes.as_ref()
    }

    /// Returns how many bytes at the beginning of a message of this length are its own:
    /// the header and its checksum.
    #[inline]
    pub fn front_len(&self, len: usize) -> usize {
        if self.seals { SEALED_LEN } else { body_at(len) }
    }

    /// Returns how many messages may be sent at the instant of the last `Next::Send`,
    /// including that one, before the next call of [`Outgoing::next`].
    #[inline]
    pub fn at_once(&self, window: &Window) -> u32 {
        let most = match self.left {
            // Each message has a length of its own.
            _ if self.schedule.is_some() || self.sizes.is_some() => 1,
            Some(left) if self.intended_ns >= window.from_ns => left.min(self.most - self.sequence),
            _ => self.most - self.sequence,
        };
        most.min(u64::from(u32::MAX)) as u32
    }

    /// Records that a message was accepted: offered at `began`, with the call returning
    /// at `ended`. The duration of the call is caused by the system, whenever it began.
    #[inline]
    pub fn accepted(&mut self, recorder: &mut SendRecorder, began: Ns, ended: Ns) {
        self.accepted_together(recorder, 1, began, ended);
    }

    /// Records that `count` messages, 1 to [`Outgoing::at_once`], were offered together
    /// and accepted, like [`Outgoing::accepted`].
    #[inline]
    pub fn accepted_together(&mut self, recorder: &mut SendRecorder, count: u32, began: Ns, ended: Ns) {
        let count = u64::from(count);
        recorder.sent += count;
        let free_ns = self.intended_ns.max(self.free_ns);
        let own_lag_ns = began.saturating_sub(free_ns);
        if recorder.times.own_lag.is_some() {
            recorder.own_lag_max_ns = recorder.own_lag_max_ns.max(Some(own_lag_ns));
        }
        if self.intended_ns >= recorder.slicer.window().from_ns {
            self.first.get_or_insert(self.sequence);
            self.end = self.sequence + count;
            self.offered += count;
            recorder.first_sent_ns.get_or_insert(began);
            if let Some(left) = &mut self.left {
                *left -= count;
            }
            if let Some(lag) = &mut recorder.times.send_lag {
                lag.record_n(began.saturating_sub(self.intended_ns), count);
            }
            if let Some(lag) = &mut recorder.times.own_lag {
                lag.record_n(own_lag_ns, count);
            }
        }
        if let Some(slice) = recorder.slicer.slice(began) {
            recorder.sent_slices[slice] += count;
        } else if began < recorder.slicer.window().from_ns {
            recorder.sent_before += count;
        }
        recorder.last_sent_ns = began;
        // A publisher without delay would have ended this send earlier by the generator
        // delay of this message. Lateness up to that amount from now on is generator
        // delay as well.
        self.free_ns = free_ns + ended.saturating_sub(began);
        self.sequence += count;
        if let Some(schedule) = &mut self.schedule {
            (0..count).for_each(|_| schedule.advance());
        }
    }

    /// Returns when the next message is due, ns on the clock of the window; the start if
    /// there is no schedule.
    #[inline]
    pub fn due_ns(&self, window: &Window) -> Ns {
        window.start_ns + self.schedule.as_ref().map_or(0, Schedule::due)
    }

    /// Returns when the message that comes `more` messages after the next one is due, ns on the clock of the window;
    /// `None` if that is not known.
    pub fn due_later_ns(&self, window: &Window, more: u32) -> Option<Ns> {
        Some(window.start_ns + self.schedule.as_ref()?.due_later(more)?)
    }

    /// True if the publisher has sent everything that it will send.
    #[inline]
    pub fn is_done(&self) -> bool {
        self.done
    }

    /// Records that the system did not take the message. It is offered again; lateness
    /// from now on is not generator delay.
    pub fn refused(&mut self, ended: Ns) {
        self.free_ns = self.free_ns.max(ended);
    }

    /// Records that the server acknowledged the message of this sequence. `sent` is its header, and
    /// `now` is when the acknowledgement arrived; without the header, the time is not recorded.
    pub fn acknowledged(&mut self, recorder: &mut SendRecorder, sequence: u32, sent: Option<Header>, now: Ns) {
        let Some(acked) = &mut self.acked else { return };
        // A message that comes back to its publisher is acknowledged too (basic.return of AMQP).
        let refused = self.refused.as_ref().is_some_and(|refused| refused.seen.holds(sequence));
        if u64::from(sequence) < self.sequence && !refused && acked.seen.mark(sequence) == Some(true) {
            acked.count += 1;
            if self.first.is_some_and(|first| u64::from(sequence) >= first) {
                recorder.acked += 1;
                if let (Some(times), Some(sent)) = (&mut recorder.times.ack_latency, sent) {
                    let sent = sent.ahead_by(-self.ahead_ns);
                    let own_lag_ns = sent.own_lag_ns().unwrap_or(0);
                    times.record(now.saturating_sub(sent.intended_ns).saturating_sub(own_lag_ns));
                }
            }
        }
    }

    /// Records that the server refused the message of this sequence.
    pub fn rejected(&mut self, recorder: &mut SendRecorder, sequence: u32, refusal: &MessageRefusal<'_>) {
        let acked = self.acked.as_ref().is_some_and(|acked| acked.seen.holds(sequence));
        if u64::from(sequence) >= self.sequence || acked {
            return;
        }
        let most = self.most;
        let empty = || Box::new(Settled { seen: SeenSequences::with_capacity(most), count: 0 });
        let refused = self.refused.get_or_insert_with(empty);
        if refused.seen.mark(sequence) == Some(true) {
            refused.count += 1;
            if self.first.is_some_and(|first| u64::from(sequence) >= first) {
                recorder.refusals.count(refusal);
            }
        }
    }

    /// True if the server has acknowledged or refused everything that was sent.
    pub fn is_acknowledged(&self) -> bool {
        let count = |settled: &Option<Box<Settled>>| settled.as_ref().map_or(0, |settled| settled.count);
        count(&self.acked) + count(&self.refused) >= self.sequence
    }

    /// Returns the messages of the window that the server refused.
    pub fn refused_messages(&self) -> impl Iterator<Item = Sequences> {
        let PublisherTotal { publisher, window_first, window_end, .. } = self.total();
        let runs = self.refused.iter().flat_map(move |refused| refused.seen.runs(window_first, window_end));
        runs.map(move |(first, end)| Sequences { publisher, first, end })
    }

    /// Returns the messages of the window that were not acknowledged; empty if nothing is
    /// acknowledged.
    pub fn unacknowledged(&self) -> impl Iterator<Item = Sequences> {
        let PublisherTotal { publisher, window_first, window_end, .. } = self.total();
        let gaps = self.acked.iter().flat_map(move |acked| acked.seen.gaps(window_first, window_end));
        gaps.map(move |(first, end)| Sequences { publisher, first, end })
    }

    /// Ends the publisher and counts what was due in the window and never sent. It may
    /// come before the end of the schedule, after a stop or a lost connection.
    pub fn finish(&mut self, window: &Window) {
        self.finish_at(window, Ns::MAX);
    }

    /// Ends the publisher like [`Outgoing::finish`], but counts only what was due until
    /// `until_ns`: a client that is killed does not have to send what falls due later.
    pub fn finish_at(&mut self, window: &Window, until_ns: Ns) {
        if std::mem::replace(&mut self.done, true) {
            return;
        }
        let Some(schedule) = &mut self.schedule else { return };
        let mut left = self.left;
        loop {
            let due = window.start_ns + schedule.due();
            let over = match left {
                Some(left) => left == 0,
                None => window.to_ns.is_none_or(|to| due >= to),
            };
            if over || due > until_ns {
                return;
            }
            if due >= window.from_ns {
                self.offered += 1;
                left = left.map(|left| left - 1);
            }
            schedule.advance();
        }
    }

    /// Takes back the last `count` messages, which were not handed over completely: they
    /// were due and are not sent. Their times stay in the recorder.
    pub fn take_back(&mut self, recorder: &mut SendRecorder, count: u64) {
        let in_window = |of: &Outgoing| of.total().window_end - of.total().window_first;
        let (sent, before) = (self.sequence, in_window(self));
        self.sequence = sent.saturating_sub(count);
        self.end = self.end.min(self.sequence);
        self.first = self.first.filter(|first| *first < self.sequence);
        recorder.sent -= sent - self.sequence;
        if self.schedule.is_none() {
            self.offered -= before - in_window(self);
        }
    }

    /// Returns how much was sent.
    pub fn total(&self) -> PublisherTotal {
        let first = self.first.unwrap_or(self.sequence);
        PublisherTotal {
            publisher: self.id,
            sent: self.sequence,
            window_first: first,
            window_end: self.end.max(first),
            offered: self.offered,
        }
    }

    /// Returns the bytes of the window's messages that were sent; 0 if all have the same size.
    pub fn sent_bytes(&self) -> u64 {
        let PublisherTotal { window_first, window_end, .. } = self.total();
        self.sizes.as_ref().map_or(0, |sizes| sizes.sum_bytes(self.id, window_first..window_end))
    }

    /// Returns the number of messages sent, including the warm-up.
    #[inline]
    pub fn sent(&self) -> u64 {
        self.sequence
    }

    /// Returns a remark if the publisher stopped at the number of messages that can be
    /// accounted for.
    pub fn exhausted(&self) -> Option<String> {
        (self.sequence >= self.most && self.left != Some(0)).then(|| {
            format!("publisher {} stopped after {} messages: no more can be accounted for", self.id, self.sequence)
        })
    }
}

/// Returns when a publisher gives up on messages that are due and cannot be sent, ns.
pub fn give_up_ns(workload: &Workload, window: &Window) -> Option<Ns> {
    window.to_ns.map(|to| to + workload.drain_ns)
}

/// One publisher or requester with its own recorder and pacing.
pub struct Publisher {
    window: Window,
    outgoing: Outgoing,
    recorder: SendRecorder,
    /// The longest message, in which each one is made.
    message: Vec<u8>,
    quantum_ns: Ns,
    give_up_ns: Option<Ns>,
    woke_ns: Ns,
    waiting: bool,
}

impl Publisher {
    /// Makes publisher `id` of the workload, with the window of its run. `most` is the
    /// number of messages that its subscribers can account for.
    pub fn new(workload: &Workload, id: u32, window: Window, most: u64) -> Publisher {
        Publisher {
            window,
            outgoing: Outgoing::new(workload, id, most),
            recorder: SendRecorder::new(workload, window),
            message: workload.longest_message(),
            quantum_ns: workload.pacing_quantum_ns,
            give_up_ns: give_up_ns(workload, &window),
            woke_ns: 0,
            waiting: false,
        }
    }

    /// Returns what to do at `now`.
    #[inline]
    pub fn next(&mut self, now: Ns) -> Next {
        if std::mem::take(&mut self.waiting) {
            self.woke_ns = now;
        }
        let next = self.outgoing.next(&self.window, self.give_up_ns, now);
        if let Next::Wait(due) = next {
            self.waiting = true;
            return Next::Wait(due.max(self.woke_ns + self.quantum_ns));
        }
        next
    }

    /// Returns the message to send, stamped with `now`.
    #[inline]
    pub fn message(&mut self, now: Ns) -> &[u8] {
        if self.outgoing.sizes.is_some() {
            return self.outgoing.write_sized(now, &mut self.message).1;
        }
        write(&self.outgoing.header(now), self.outgoing.seals, &mut self.message);
        &self.message
    }

    /// Returns the message that follows by `by` messages at the same instant.
    #[inline]
    pub fn later_message(&mut self, by: u32) -> &[u8] {
        renumber(&mut self.message, self.outgoing.sequence as u32 + by);
        if self.outgoing.seals {
            seal(&mut self.message);
        }
        &self.message
    }

    /// See [`Outgoing::at_once`].
    #[inline]
    pub fn at_once(&self) -> u32 {
        self.outgoing.at_once(&self.window)
    }

    /// Records that the message was accepted: offered at `began`, with the call returning
    /// at `ended`.
    #[inline]
    pub fn accepted(&mut self, began: Ns, ended: Ns) {
        self.outgoing.accepted(&mut self.recorder, began, ended);
    }

    /// See [`Outgoing::accepted_together`].
    #[inline]
    pub fn accepted_together(&mut self, count: u32, began: Ns, ended: Ns) {
        self.outgoing.accepted_together(&mut self.recorder, count, began, ended);
    }

    /// See [`Outgoing::refused`].
    pub fn refused(&mut self, ended: Ns) {
        self.outgoing.refused(ended);
    }

    /// Records how the publisher waited.
    pub fn paced(&mut self, pacer: &Pacer) {
        let figures = pacer.figures(self.window.to_ns.map_or(0, |to| to - self.window.from_ns));
        self.recorder.paced(figures);
    }

    /// Ends the publisher before its schedule does, after a stop or because its client
    /// was killed at `killed_ns`.
    pub fn end(&mut self, killed_ns: Option<Ns>) {
        self.outgoing.finish_at(&self.window, killed_ns.unwrap_or(Ns::MAX));
    }

    /// Returns how much was sent.
    pub fn total(&self) -> PublisherTotal {
        self.outgoing.total()
    }

    /// Returns the number of messages sent, including the warm-up.
    #[inline]
    pub fn sent(&self) -> u64 {
        self.outgoing.sent()
    }

    /// See [`SendRecorder::take_own_lag_max`].
    #[inline]
    pub fn take_own_lag_max(&mut self) -> Option<Ns> {
        self.recorder.take_own_lag_max()
    }

    /// Returns the publisher's progress and its recorder.
    pub fn into_parts(self) -> (Outgoing, SendRecorder) {
        (self.outgoing, self.recorder)
    }

    /// Returns the times of all sends.
    pub fn times(&self) -> &TimeFigures<Option<Histogram>> {
        self.recorder.times()
    }
}

#[cfg(test)]
mod tests;
