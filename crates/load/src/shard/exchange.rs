//! Request-reply: requesters wait for their answers, and repliers send each request back.

use super::connection::{Connection, State};
use super::errors::ShardError;
use super::inbound::LOOK;
use super::state::Shard;
use crate::clock;
use crate::publisher::{Next, Outgoing};
use crate::session::Session;
use crate::subscriber::IncomingStreams;
use crate::window::Window;
use pubmark_model::header::Header;
use pubmark_model::role::Role;
use pubmark_model::units::Ns;

impl<S: Session> Shard<'_, S> {
    /// Gives up requests that have waited too long. Returns when the next one will have.
    pub(super) fn give_up_requests(&mut self, now: Ns) -> Option<Ns> {
        while let Some(index) = self.outbound.requests.as_mut()?.give_up(now) {
            self.looked_ns = self.looked_ns.max(now);
            self.unblock(index);
        }
        self.outbound.requests.as_ref()?.next_ns()
    }

    /// Sends requests of one requester as fast as they are answered. Returns the time after it.
    pub(super) fn ask(&mut self, index: usize, mut now: Ns, window: &Window) -> Ns {
        loop {
            match self.outbound.clients[index].next(window, None, now) {
                Next::Done => {
                    self.outbound.sending -= 1;
                    return now;
                }
                Next::Wait(_) => return now,
                Next::Send => {
                    let (ended, next) = self.send_one(index, now, now, window);
                    now = ended;
                    if next.is_none() || self.connections[index].state != State::Up {
                        return now;
                    }
                }
            }
        }
    }

    /// Sends the answers that wait on this connection, as far as there is room.
    pub(super) fn answer(&mut self, index: usize) {
        let ahead_ns = self.context.ahead_ns;
        let now = move || clock::now().saturating_add_signed(ahead_ns);
        let Some(answers) = &mut self.outbound.answers else { return };
        let connection = &mut self.connections[index];
        let mut written = Ok(());
        while let (Some(answer), Ok(()), State::Up) = (answers.next(index, now), &written, connection.state) {
            let sequence = Header::read(answer).map_or(0, |header| header.sequence);
            self.outbound.bytes.clear();
            if connection.has_pending()
                || !connection.session.publish(&self.settings, answer, sequence, &mut self.outbound.bytes)
            {
                connection.blocked = true;
                answers.wait(index, now());
                break;
            }
            written = connection.write(&self.outbound.bytes);
            answers.sent(index);
        }
        self.settle(index, written);
    }

    /// Returns until when requesters wait for answers that are late, once none is waited for in time: at most `drain`
    /// from the last request. `None` if all have come, or cannot come any more.
    pub(super) fn await_late_answers(&mut self, now: Ns) -> Option<Ns> {
        let requests = self.outbound.requests.as_ref()?;
        let until_ns = requests.last_ns().saturating_add(self.workload.drain_ns);
        if self.workload.timeout_ns.is_none() || self.outbound.said_sent || now >= until_ns {
            return None;
        }
        let mut sides = self.connections.iter().zip(self.outbound.clients.iter().zip(&self.inbound.clients));
        let is_missing = |(connection, (asks, hears)): (&Connection<S>, (&Outgoing, &IncomingStreams))| {
            (connection.state == State::Up || connection.is_away()) && hears.distinct() < asks.sent()
        };
        sides.any(is_missing).then_some(until_ns.min(now + LOOK))
    }

    /// True if every requester has got the answer to a probe, or will get none.
    pub(super) fn are_answered(&self) -> bool {
        self.role != Role::Requester || self.inbound.unheard == 0
    }

    /// Fails if requests are sent and no replier answers.
    pub(super) fn await_repliers(&mut self, now: Ns) -> Result<(), ShardError> {
        let patience_ns = 2 * self.workload.connect_timeout_ns;
        if self.said_ready || self.are_answered() || !self.ramp.settled || now < self.ramp.settled_ns + patience_ns {
            return Ok(());
        }
        Err(ShardError::NoProbe(S::unsaid(&self.settings)))
    }
}
