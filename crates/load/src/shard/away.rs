//! Connections that end during a run, and clients that resume their session if the
//! workload says so.
//!
//! Connected clients take no memory here. Attempts are spread out and few at a time, so
//! that they hardly affect the other clients of the shard.

use super::connection::{ConnectionLoss, State};
use super::errors::ShardError;
use super::ramp::ATTEMPTS;
use super::state::{Absence, Shard};
use crate::clock;
use crate::outcome::record_in;
use crate::session::{Session, SessionError};
use pubmark_model::units::{MILLISECOND, Ns, SECOND};
use std::cmp::Reverse;

/// Pause before the first attempt; it doubles with each further one.
const PAUSE: Ns = 10 * MILLISECOND;
/// Maximum pause, before up to half of it is added depending on the client's number.
const LONGEST_PAUSE: Ns = 500 * MILLISECOND;
/// Time that an attempt may take until the server has accepted the client. A server that
/// has just been started takes seconds to answer thousands; a client that gives up too
/// early is blocked by its own half-open session.
const ATTEMPT: Ns = 5 * SECOND;
/// Maximum number of concurrent attempts: servers' backlogs are short.
const AT_ONCE: usize = 256;
/// Attempts begun between two checks for arrivals.
const DIALS: usize = 16;
/// Returns the pause after this many failed attempts of a client, ns. It is the same in
/// every run, and differs between clients, so that they do not all reconnect at once.
pub(super) fn pause_ns(client: u32, failed: u32) -> Ns {
    let pause = (PAUSE << failed.min(16)).min(LONGEST_PAUSE);
    // Fibonacci hashing: the golden ratio spreads neighbouring numbers evenly.
    let spread = client.wrapping_add(failed).wrapping_mul(0x9E37_79B9);
    pause + pause / 2 * Ns::from(spread >> 16) / (1 << 16)
}

impl<S: Session> Shard<'_, S> {
    /// Handles a failed write where the caller can do nothing else about it.
    pub(super) fn settle(&mut self, index: usize, written: Result<(), ConnectionLoss>) {
        if let Err(loss) = written
            && self.connections[index].state == State::Up
        {
            let said = self.cut_off(index);
            self.gone(index, &said.unwrap_or(loss));
        }
    }

    /// Reads what has arrived on a connection that can no longer be written: acknowledgements,
    /// and the server's reason for ending the connection, which is returned.
    pub(super) fn cut_off(&mut self, index: usize) -> Option<ConnectionLoss> {
        let mut said = None;
        while said.is_none()
            && let Ok(Some((count, _, now))) = self.connections[index].read(&mut self.buffer)
        {
            said = self.take(index, count, now).err();
        }
        self.answers.clear();
        said
    }

    pub(super) fn lost(&mut self, index: usize, loss: &ConnectionLoss) -> Result<(), ShardError> {
        match (self.connections[index].state, loss) {
            (State::Up, loss) => self.gone(index, loss),
            (State::Gone, _) => {}
            (_, ConnectionLoss::Session(SessionError::Elsewhere(to))) => self.moved(index, to)?,
            // A server that is starting may deny at first what it allows later.
            (_, loss) if self.away.has(index) => match loss {
                ConnectionLoss::Session(SessionError::Foreign(_)) => {
                    self.away.losses.push(format!("a client could not come back: {}", loss.text()));
                    self.away.remove(index);
                    self.part_with(index);
                }
                loss => self.try_later(index, &loss.text()),
            },
            (_, ConnectionLoss::Session(error)) if error.is_final() => {
                return Err(self.ramp.refusal(error.clone().into()));
            }
            (State::Greeting, ConnectionLoss::Ended(text)) => {
                self.failed_attempt(index, &self.in_handshake(text))?;
            }
            (_, loss) => self.failed_attempt(index, &loss.text())?,
        }
        Ok(())
    }

    /// Handles the loss of a connection that was up.
    pub(super) fn gone(&mut self, index: usize, loss: &ConnectionLoss) {
        let now = clock::now();
        self.ends(index, now);
        self.ramp.counts.lost += 1;
        self.inbound.rebalancing.revoked(index, now);
        if let Some(requests) = &mut self.outbound.requests {
            requests.forget(index);
        }
        let (at, id, role) = (Self::when(self.window.as_ref(), now), self.ids[index], self.role);
        self.away.note(|| format!("{role:?} {id} lost its connection{at}: {}", loss.text()).to_lowercase());
        if let ConnectionLoss::Session(SessionError::Limit(words)) = loss {
            self.limits.reached(words.clone());
        }
        if self.away.returns && !matches!(loss, ConnectionLoss::Session(error) if error.is_final()) {
            self.away
                .absent
                .insert(index as u32, Absence { since_ns: now, began_ns: None, failed: 0, is_before_start: false });
            self.next_member(index);
            self.rest(index, now + pause_ns(self.ids[index], 0));
        } else {
            self.part_with(index);
        }
        if self.window.is_none() {
            self.lost_in_setup(index, loss);
        }
    }

    /// Handles a client that will not reconnect.
    fn part_with(&mut self, index: usize) {
        self.connections[index].drop_carrier(State::Gone);
        self.inbound.rebalancing.died(index);
        self.inbound.rebalancing.takeover_ns = clock::now() + S::takeover_ns(&self.settings);
        self.inbound.give_up(index);
        if let Some(window) = self.window {
            self.outbound.end(index, &window);
        }
    }

    /// Lets the next attempt of a client be at the next member of the server, if it has several.
    pub(super) fn next_member(&mut self, index: usize) {
        if self.ramp.dial.is_cluster {
            let place = usize::from(self.connections[index].place) + 1;
            self.connections[index].place = (place % self.ramp.dial.entries()) as u8;
        }
    }

    /// Handles a member that names another one: the client goes there.
    fn moved(&mut self, index: usize, to: &str) -> Result<(), ShardError> {
        let place = self.ramp.dial.to.iter().position(|known| known.to_string() == to);
        let Some(place) = place.filter(|_| self.ramp.dial.is_cluster) else {
            let why = format!("{to} leads its topic, and pubmark knows only the endpoint that it was given");
            return Err(self.ramp.refusal(SessionError::Denied(why).into()));
        };
        // The answer of a service that names the leader is no failure: the client goes there at once.
        let is_answer = usize::from(self.connections[index].place) < self.ramp.dial.discovery;
        if let Some(absence) = self.away.absent.get_mut(&(index as u32)) {
            let mut until_ns = clock::now();
            if !is_answer {
                absence.failed += 1;
                until_ns += pause_ns(self.ids[index], absence.failed - 1);
            }
            self.away.ended(index);
            self.connections[index].place = place as u8;
            self.rest(index, until_ns);
            return Ok(());
        }
        if self.connections[index].attempts >= ATTEMPTS {
            return self.failed_attempt(index, &format!("{to} was named to lead, by every member that was tried"));
        }
        self.ramp.under_way.retain(|other| *other as usize != index);
        self.connections[index].place = place as u8;
        self.attempt(index, clock::now())
    }

    /// Leaves the client without a connection, but with its session, until then.
    fn rest(&mut self, index: usize, until_ns: Ns) {
        let spec = self.spec(index);
        let connection = &mut self.connections[index];
        // Messages that it could not send before stay unsent.
        let blocked = connection.blocked;
        connection.drop_carrier(State::Waiting);
        connection.blocked = blocked;
        connection.session.resume(&self.settings, &spec);
        self.away.due.push(Reverse((until_ns, index as u32)));
    }

    /// Schedules another attempt after a failed reconnection; their number is not
    /// limited.
    pub(super) fn try_later(&mut self, index: usize, why: &str) {
        self.ramp.failed(why);
        self.away.ended(index);
        let Some(absence) = self.away.absent.get_mut(&(index as u32)) else { return };
        absence.failed += 1;
        let failed = absence.failed;
        self.next_member(index);
        self.rest(index, clock::now() + pause_ns(self.ids[index], failed));
    }

    /// Lets sessions go on whose rest is over. Returns the instant at which the next one's is.
    pub(super) fn end_rests(&mut self, now: Ns) -> Result<Ns, ShardError> {
        while let Some(Reverse((until_ns, index))) = self.rests.peek().copied() {
            if until_ns > now {
                return Ok(until_ns);
            }
            self.rests.pop();
            let connection = &mut self.connections[index as usize];
            if matches!(connection.state, State::Waiting | State::Opening | State::Gone) {
                continue;
            }
            self.answers.clear();
            let asked = connection.session.rested(&self.settings, &mut self.answers).map_err(ConnectionLoss::Session);
            if let Err(loss) = asked.and_then(|()| connection.write(&self.answers)) {
                self.lost(index as usize, &loss)?;
            }
        }
        Ok(Ns::MAX)
    }

    /// Begins the attempts that are due, and ends those that have taken too long. Returns
    /// the instant at which more is due.
    pub(super) fn bring_back(&mut self, now: Ns) -> Ns {
        if self.away.absent.is_empty() {
            return Ns::MAX;
        }
        while let Some((began_ns, index)) = self.away.begun.front().copied().filter(|(at, _)| at + ATTEMPT <= now) {
            self.away.begun.pop_front();
            if self.away.absent.get(&index).is_some_and(|absence| absence.began_ns == Some(began_ns)) {
                self.try_later(index as usize, "the server did not accept a client that came back within 5 s");
            }
        }
        for _ in 0..DIALS {
            let due = self.away.due.peek().is_some_and(|Reverse((at, _))| *at <= now);
            if !due || self.away.under_way >= AT_ONCE {
                break;
            }
            if let Some(Reverse((_, index))) = self.away.due.pop() {
                self.try_again(index as usize, now);
            }
        }
        let next = self.away.due.peek().filter(|_| self.away.under_way < AT_ONCE).map(|Reverse((at, _))| *at);
        let expiry = self.away.begun.front().map(|(at, _)| at + ATTEMPT);
        next.into_iter().chain(expiry).min().unwrap_or(Ns::MAX)
    }

    fn try_again(&mut self, index: usize, now: Ns) {
        let Some(absence) = self.away.absent.get_mut(&(index as u32)) else { return };
        absence.began_ns = Some(now);
        self.ramp.counts.retried += u64::from(absence.failed > 0);
        self.away.under_way += 1;
        self.away.begun.push_back((now, index as u32));
        self.connections[index].state = State::Opening;
        if let Err(error) = self.dial(index) {
            self.try_later(index, &error.to_string());
        }
    }

    /// Continues a publisher that has reconnected: its unacknowledged messages are sent
    /// first.
    pub(super) fn go_on(&mut self, index: usize) -> Result<(), ShardError> {
        match self.resend(index) {
            Ok(true) => self.up(index, clock::now()),
            Ok(false) => {}
            Err(loss) => self.lost(index, &loss)?,
        }
        Ok(())
    }

    /// Notes that a client is back. Returns false if it was not away.
    pub(super) fn returned(&mut self, index: usize, now: Ns) -> bool {
        let Some(absence) = self.away.remove(index) else { return false };
        self.connections[index].state = State::Up;
        if absence.is_before_start {
            self.started(index, now);
            return true;
        }
        self.ramp.counts.reconnected += 1;
        record_in(&mut self.away.times, now.saturating_sub(absence.since_ns));
        self.unblock(index);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_to_a_bound_and_differ_between_clients() {
        for client in 0..1_000 {
            for (failed, pause) in [(0, 10), (1, 20), (2, 40), (5, 320), (6, 500), (7, 500), (4_000_000_000, 500)] {
                let got = pause_ns(client, failed);
                assert_eq!(got, pause_ns(client, failed));
                assert!((pause * MILLISECOND..pause * MILLISECOND * 3 / 2).contains(&got), "{client} {failed}: {got}");
            }
        }
        let mut first: Vec<Ns> = (0..1_000).map(|client| pause_ns(client, 0)).collect();
        first.sort_unstable();
        let widest = first.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap();
        assert!(widest < 5 * MILLISECOND / 200, "a thousand clients are spread over 5 ms: {widest} ns");
    }
}
