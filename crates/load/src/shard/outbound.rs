//! The sending side of a shard: it sends what is due, by the schedule or as fast as the
//! server takes it, with probes before and end markers after.

use super::connection::{ConnectionLoss, State};
use super::gather::{GatherEnd, Gathering};
use super::state::{Outbound, Shard};
use crate::clock;
use crate::control::ThreadReport;
use crate::publisher::{Next, Outgoing, SendRecorder, give_up_ns};
use crate::session::Session;
use crate::window::Window;
use pubmark_model::header::{END, PROBE};
use pubmark_model::role::Role;
use pubmark_model::units::{MILLISECOND, Ns, SECOND};
use pubmark_model::workload::{Pacing, Rate};
use std::cmp::Reverse;
use std::collections::binary_heap::PeekMut;

/// Time between the beginnings of two rounds of probes or end markers.
const ROUND: Ns = SECOND;
/// Markers sent between two checks for arrivals: 20,000 a second.
const MARKERS: usize = 20;
/// Messages sent between two checks for arrivals.
pub(super) const SENDS: usize = 256;
/// Maximum duration of a non-blocking write, ns: time beyond it passed because this loop
/// did not run.
const LONGEST_WRITE: Ns = MILLISECOND;
/// Bytes of repeated messages in one write.
const RESEND_BYTES: usize = 64 << 10;

impl<S: Session> Shard<'_, S> {
    /// Begins the run: every publisher that is up has its first message.
    pub(super) fn begin_sending(&mut self, window: Window) {
        let outbound = &mut self.outbound;
        outbound.recorder = Some(SendRecorder::new(self.workload, window));
        outbound.window = Some(window);
        outbound.measure.give_up_ns = give_up_ns(self.workload, &window);
        outbound.sending = outbound.clients.len();
        (outbound.marker_next, outbound.marker_ns) = (0, 0);
        for index in 0..outbound.clients.len() {
            if self.connections[index].state == State::Gone {
                outbound.end(index, &window);
            } else if self.workload.rate == Rate::Max {
                outbound.able.push(index as u32);
            } else {
                outbound.due.push(Reverse((window.start_ns, index as u32)));
            }
        }
    }

    /// Does what is due for publishers now. Returns the instant at which more is due.
    pub(super) fn send(&mut self, now: Ns) -> Ns {
        let Some(window) = self.outbound.window else {
            let next = self.mark(PROBE, now);
            if !self.said_ready && self.outbound.marker_next >= self.connections.len() && self.are_answered() {
                self.ready();
            }
            return next;
        };
        let given_up_ns = self.give_up_requests(now).unwrap_or(Ns::MAX);
        if self.outbound.sending > 0 {
            if self.outbound.measure.give_up_ns.is_some_and(|give_up| now >= give_up) {
                (0..self.outbound.clients.len()).for_each(|index| self.outbound.end(index, &window));
            } else if self.workload.rate == Rate::Max {
                return self.flood(now, &window).min(given_up_ns);
            } else {
                let next = self.send_due(now, &window);
                self.tell();
                return next.min(given_up_ns);
            }
        }
        if given_up_ns < Ns::MAX {
            return given_up_ns;
        }
        if let Some(later_ns) = self.await_late_answers(now) {
            return later_ns;
        }
        self.say_sent();
        self.await_acknowledgements(now);
        self.leave();
        if self.role == Role::Requester { Ns::MAX } else { self.mark(END, now) }
    }

    /// Reports once what publishers have sent; nothing more is sent afterwards.
    pub(super) fn say_sent(&mut self) {
        if !std::mem::replace(&mut self.outbound.said_sent, true) {
            self.tell();
            self.say_ends();
            let totals = self.outbound.clients.iter().map(Outgoing::total).collect();
            let _ = self.reports.send(ThreadReport::Sent(totals));
        }
    }

    /// Ends when the server has acknowledged what was sent, as far as connections live,
    /// or when the drain is over.
    pub(super) fn await_acknowledgements(&mut self, now: Ns) {
        let Some((_, deadline_ns)) = self.context.control.draining() else { return };
        if self.workload.qos == 0 || self.outbound.said_drained {
            return;
        }
        let mut living = self.connections.iter().zip(&self.outbound.clients).filter(|(c, _)| c.state != State::Gone);
        if now >= *deadline_ns || living.all(|(_, client)| client.is_acknowledged()) {
            self.outbound.said_drained = true;
            let _ = self.reports.send(ThreadReport::Drained);
        }
    }

    /// Updates the live display: once a turn, not once a message.
    fn tell(&mut self) {
        if let Some(recorder) = &mut self.outbound.recorder {
            self.counter.set(recorder.sent());
            self.counter.lag(recorder.take_own_lag_max());
        }
    }

    /// Sends markers, some of each round at a time.
    fn mark(&mut self, sequence: u32, now: Ns) -> Ns {
        let count = self.connections.len();
        if self.outbound.marker_next >= count {
            if now < self.outbound.marker_ns {
                return self.outbound.marker_ns;
            }
            self.outbound.marker_next = 0;
        }
        if self.outbound.marker_next == 0 {
            self.outbound.marker_ns = now + ROUND;
        }
        for index in (self.outbound.marker_next..count).take(MARKERS) {
            self.outbound.marker_next = index + 1;
            let connection = &mut self.connections[index];
            if connection.state != State::Up || connection.has_pending() {
                continue;
            }
            let outbound = &mut self.outbound;
            let publisher = outbound.clients[index].total().publisher;
            outbound.bytes.clear();
            let message = outbound.marker.of(publisher, sequence, clock::now());
            if connection.session.publish(&self.settings, message, sequence, &mut outbound.bytes) {
                let written = connection.write(&outbound.bytes);
                self.settle(index, written);
                self.note_batches(index, now);
            }
        }
        now + MILLISECOND
    }

    /// Sends what is due by the schedule.
    fn send_due(&mut self, mut now: Ns, window: &Window) -> Ns {
        self.outbound.next_due_ns = None;
        for turn in 0..SENDS {
            let Some(Reverse((due, index))) = self.outbound.due.peek().copied() else {
                return Ns::MAX;
            };
            if due > now {
                let next_ns = due.max(self.batch_ns + self.outbound.quantum_ns);
                // The end of a batch is not watched for, unless all are.
                let is_watched = self.lingering.ns == 0 || self.workload.pacing == Pacing::Spin;
                self.outbound.next_due_ns = is_watched.then_some(next_ns);
                return next_ns;
            }
            if turn == 0 {
                self.batch_ns = now;
            }
            let next;
            (now, next) = match self.lingering.ns {
                0 => self.send_next(index as usize, now, now, window),
                _ => self.send_collected(index as usize, due, now, window),
            };
            // The publisher is still at the top: replaced in place, it moves once.
            if let Some(mut top) = self.outbound.due.peek_mut() {
                match next {
                    Some(due) => top.0.0 = due,
                    None => drop(PeekMut::pop(top)),
                }
            }
        }
        now
    }

    /// Sends a publisher's next message if it is due at `now`; it counts as sent at `began`. Returns the time after it,
    /// and when the next one is due, unless it has to wait for room.
    #[inline]
    pub(super) fn send_next(&mut self, index: usize, began: Ns, now: Ns, window: &Window) -> (Ns, Option<Ns>) {
        let give_up_ns = self.outbound.measure.give_up_ns;
        if self.outbound.clients[index].is_done() {
            return (now, None);
        }
        match self.outbound.clients[index].next(window, give_up_ns, now) {
            Next::Done => self.outbound.sending -= 1,
            Next::Wait(due) => return (now, Some(due)),
            // The publisher sends it after its reconnection.
            Next::Send if self.connections[index].is_away() => self.connections[index].blocked = true,
            Next::Send if self.connections[index].state == State::Gone => self.outbound.end(index, window),
            Next::Send => return self.send_one(index, began, now, window),
        }
        (now, None)
    }

    /// Sends one publisher's message at `now`, which counts as sent at `began`. Returns the time after it, and when the
    /// next one is due, unless it has to wait for room.
    #[inline]
    pub(super) fn send_one(&mut self, index: usize, began: Ns, now: Ns, window: &Window) -> (Ns, Option<Ns>) {
        let outbound = &mut self.outbound;
        let connection = &mut self.connections[index];
        let client = &mut outbound.clients[index];
        let (header, message) = client.write(began, &mut outbound.message);
        outbound.bytes.clear();
        if outbound.requests.as_ref().is_some_and(|requests| requests.is_full(index))
            || connection.has_pending()
            || !connection.session.publish(&self.settings, message, header.sequence, &mut outbound.bytes)
        {
            connection.blocked = true;
            return (clock::now(), None);
        }
        if let Some(flight) = outbound.flights.get_mut(index) {
            flight.sent(header);
        }
        if let Some(requests) = &mut outbound.requests {
            requests.sent(index, header.sequence, began);
        }
        let written = connection.write_messages(&outbound.bytes, 1);
        let ended = clock::now();
        if let Some(recorder) = &mut outbound.recorder {
            client.accepted(recorder, began, began + ended.saturating_sub(now).min(LONGEST_WRITE));
        }
        // After the window nothing is due: a publisher reports its end there.
        let due = client.due_ns(window).min(window.to_ns.unwrap_or(Ns::MAX));
        self.settle(index, written);
        self.note_batches(index, began);
        (ended, Some(due))
    }

    /// Sends as fast as the server takes it, one connection after another.
    fn flood(&mut self, mut now: Ns, window: &Window) -> Ns {
        if now < window.start_ns {
            return window.start_ns;
        }
        // A publisher that can send more goes to the end of the list.
        let able = self.outbound.able.len();
        for place in 0..able {
            now = self.fill(self.outbound.able[place] as usize, now, window);
        }
        self.outbound.able.drain(..able);
        self.tell();
        if self.outbound.able.is_empty() { Ns::MAX } else { now }
    }

    /// Gathers messages of one publisher, and writes them.
    fn fill(&mut self, index: usize, mut now: Ns, window: &Window) -> Ns {
        if self.connections[index].state != State::Up {
            self.connections[index].blocked = true;
            return now;
        }
        if self.outbound.requests.is_some() {
            return self.ask(index, now, window);
        }
        let Outbound { clients, message, frames, flights, recorder, measure, .. } = &mut self.outbound;
        let connection = &mut self.connections[index];
        let Some(recorder) = recorder else { return now };
        let (mut over, mut written) = (false, Ok(()));
        if !connection.has_pending() {
            let session = (&mut connection.session, &self.settings);
            let (client, flight) = (&mut clients[index], flights.get_mut(index));
            // Frames of different lengths have no common template.
            let tail_bytes = session.0.tail_bytes(session.1).filter(|_| client.sizes().is_none());
            let before = client.sent();
            let gathering = Gathering { client, recorder, flight, window, message, frames };
            let gathered = gathering.run(session, tail_bytes, *measure, &mut now, clock::now);
            connection.blocked |= gathered == GatherEnd::Refused;
            over = gathered == GatherEnd::Over;
            written = connection.write_messages(frames.ready(), clients[index].sent() - before);
        }
        let outbound = &mut self.outbound;
        connection.blocked |= connection.has_pending() && !over;
        if over {
            outbound.sending -= 1;
        } else if !connection.blocked {
            outbound.able.push(index as u32);
        }
        self.settle(index, written);
        self.note_batches(index, now);
        clock::now()
    }

    /// Sends unacknowledged messages again, as far as the connection takes them. Returns
    /// true when all are sent, and new messages may follow.
    pub(super) fn resend(&mut self, index: usize) -> Result<bool, ConnectionLoss> {
        loop {
            let connection = &mut self.connections[index];
            if connection.has_pending() {
                return Ok(false);
            }
            let outbound = &mut self.outbound;
            let mut bytes = std::mem::take(&mut outbound.bytes);
            bytes.clear();
            let mut copies = outbound.copies(index);
            while bytes.len() < RESEND_BYTES && connection.session.resend(&self.settings, &mut copies, &mut bytes) {}
            let written = connection.write(&bytes);
            let over = bytes.is_empty();
            self.outbound.bytes = bytes;
            written?;
            if over {
                return Ok(true);
            }
        }
    }

    /// Handles new room on a connection.
    pub(super) fn unblock(&mut self, index: usize) {
        if self.outbound.answers.is_some() {
            self.connections[index].blocked = false;
            return self.answer(index);
        }
        let Some(window) = self.outbound.window else { return };
        let connection = &mut self.connections[index];
        if connection.state != State::Up || !std::mem::take(&mut connection.blocked) {
            return;
        }
        let Some(client) = self.outbound.clients.get_mut(index).filter(|client| !client.is_done()) else {
            return;
        };
        // There was room by then at the latest: later time is generator delay.
        client.refused(self.looked_ns);
        if self.workload.rate == Rate::Max {
            self.outbound.able.push(index as u32);
        } else {
            let due = client.due_ns(&window);
            self.outbound.due.push(Reverse((due, index as u32)));
        }
    }
}
