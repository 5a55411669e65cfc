//! Opens connections at a given rate, with retries and their own figures.

use super::carrier::ByteStream;
use super::connection::{Connection, State};
use super::errors::{ConnectFailure, ShardError};
use super::state::Shard;
use crate::clock;
use crate::control::ThreadReport;
use crate::outcome::record_in;
use crate::session::Session;
use pubmark_model::protocol::Role;
use pubmark_model::units::{MILLISECOND, Ns, SECOND, format_time};
use rustix::event::epoll;
use std::cmp::Reverse;

/// Attempts of one client before it gives up.
pub(super) const ATTEMPTS: u8 = 5;
/// Pause before the second attempt; it doubles with each further one.
const PAUSE: Ns = 100 * MILLISECOND;
/// Time that a server may take to accept a connection that has been opened.
const HANDSHAKE: Ns = 10 * SECOND;
/// Maximum number of concurrent attempts: servers' backlogs are short.
const AT_ONCE: usize = 256;

impl<S: Session> Shard<'_, S> {
    /// Begins the attempts that are due, and ends those that have taken too long. Returns
    /// the instant at which more is due.
    pub(super) fn ramp(&mut self, now: Ns) -> Result<Ns, ShardError> {
        if self.ramp.settled {
            return Ok(Ns::MAX);
        }
        if self.ramp.began_ns == 0 {
            (self.ramp.began_ns, self.ramp.last_up_ns, self.ramp.counts.first_ns) = (now, now, now);
        }
        self.expire(now)?;
        loop {
            if self.ramp.under_way.len() >= AT_ONCE {
                return Ok(now + MILLISECOND);
            }
            let retry = self.ramp.retries.peek().map(|Reverse((at, _))| *at);
            let fresh = (self.ramp.next < self.connections.len()).then(|| self.ramp.due());
            if retry.is_some_and(|at| at <= now) {
                if let Some(Reverse((_, index))) = self.ramp.retries.pop() {
                    self.ramp.counts.retried += 1;
                    self.attempt(index as usize, now)?;
                }
            } else if fresh.is_some_and(|at| at <= now) {
                self.ramp.next += 1;
                self.attempt(self.ramp.next - 1, now)?;
            } else {
                return Ok([retry, fresh].into_iter().flatten().min().unwrap_or(now + 5 * MILLISECOND));
            }
        }
    }

    /// Fails attempts that have taken too long. If no client has come up within the whole
    /// connect_timeout, the run fails without waiting for the others.
    fn expire(&mut self, now: Ns) -> Result<(), ShardError> {
        let late: Vec<u32> = self
            .ramp
            .under_way
            .iter()
            .copied()
            .filter(|index| {
                let connection = &self.connections[*index as usize];
                now > connection.began_ns + self.patience(connection.state)
            })
            .collect();
        for index in late {
            let state = self.connections[index as usize].state;
            if state == State::Opening && self.ramp.dial.to.len() > 1 {
                self.failed_attempt(index as usize, "no answer to the connection request in time")?;
                continue;
            }
            let limit = format_time(self.patience(state));
            let what = match state {
                State::Opening => "no answer to the connection request within 10 s".to_owned(),
                State::Subscribing => format!("the server did not answer the subscription within {limit}"),
                _ => "the server took the connection and did not answer the handshake within 10 s: does it speak this \
                      protocol?"
                    .to_owned(),
            };
            if self.ramp.counts.opened == 0 {
                return Err(self.ramp.too_late(&what));
            }
            self.failed_attempt(index as usize, &what)?;
        }
        if now > self.ramp.last_up_ns + self.ramp.timeout_ns {
            let limit = format_time(self.ramp.timeout_ns);
            if self.ramp.counts.opened == 0 {
                return Err(self.ramp.too_late(&format!("no client was accepted within {limit} (connect_timeout)")));
            }
            let why = || format!("no answer when {limit} (connect_timeout) had passed without a client accepted");
            self.ramp.first_error.get_or_insert_with(why);
            let unborn = std::mem::take(&mut self.ramp.under_way);
            unborn.into_iter().for_each(|index| self.connections[index as usize].drop_carrier(State::Gone));
            self.ramp.given_up = self.ramp.counts.wanted - self.ramp.counts.opened;
            self.settle_ramp(now);
        }
        Ok(())
    }

    /// Returns how long an attempt in this state may take. If a server has several addresses,
    /// connecting to them shares the time. A server that has accepted the client speaks the
    /// protocol, so it has most of connect_timeout to answer the subscription.
    fn patience(&self, state: State) -> Ns {
        match state {
            State::Opening => (HANDSHAKE / self.ramp.dial.to.len().max(1) as Ns).max(SECOND),
            State::Subscribing => self.ramp.timeout_ns.saturating_sub(HANDSHAKE).max(HANDSHAKE),
            _ => HANDSHAKE,
        }
    }

    pub(super) fn attempt(&mut self, index: usize, now: Ns) -> Result<(), ShardError> {
        let spec = self.spec(index);
        let session = S::new(&self.settings, &spec);
        let entries = self.ramp.dial.entries() as u32;
        let connection = &mut self.connections[index];
        connection.reset(session, State::Opening);
        if connection.attempts == 0 && self.ramp.dial.is_cluster {
            connection.place = (spec.id % entries) as u8;
        }
        connection.attempts += 1;
        connection.began_ns = now;
        match self.dial(index) {
            Ok(()) => {
                self.ramp.under_way.push(index as u32);
                Ok(())
            }
            Err(error) => self.failed_attempt(index, &error.to_string()),
        }
    }

    /// Begins to open a connection.
    pub(super) fn dial(&mut self, index: usize) -> std::io::Result<()> {
        use epoll::EventFlags as Flags;
        let place = if self.ramp.dial.is_cluster { self.connections[index].place } else { self.ramp.place };
        self.connections[index].place = place;
        let (at, row) = (usize::from(place), self.spec(index).row);
        if self.ramp.dial.is_cluster && S::spreads(&self.settings, self.role) {
            let carrier = ByteStream::dial_members(&self.ramp.dial, &self.epoll, at, (index, row))?;
            self.connections[index].carrier = Some(carrier);
            return Ok(());
        }
        let carrier = ByteStream::dial(&self.ramp.dial, at, index, row)?;
        let data = epoll::EventData::new_u64(index as u64);
        epoll::add(&self.epoll, &carrier, data, Flags::IN | Flags::OUT | Flags::RDHUP | Flags::ET)?;
        self.connections[index].carrier = Some(carrier);
        Ok(())
    }

    /// Handles the carrier's connection or failure; if it is connected, the session
    /// begins.
    pub(super) fn opened(&mut self, index: usize) -> Result<(), ShardError> {
        let connected = self.connections[index].carrier.as_mut().map_or(Ok(()), ByteStream::connected);
        if let Err(error) = connected {
            return self.failed_attempt(index, &error.to_string());
        }
        self.opens(index);
        let spec = self.spec(index);
        let connection = &mut self.connections[index];
        connection.state = State::Greeting;
        self.answers.clear();
        if self.ramp.dial.is_cluster {
            match S::spreads(&self.settings, self.role) {
                true => connection.session.among(&self.ramp.dial.to, usize::from(connection.place)),
                false => {
                    let to = self.ramp.dial.to.get(usize::from(connection.place));
                    to.into_iter().for_each(|to| connection.session.at(&to.to_string()));
                }
            }
        }
        connection.session.open(&self.settings, &spec, &mut self.answers);
        match connection.write(&self.answers) {
            Ok(()) => Ok(()),
            Err(loss) => self.failed_attempt(index, &loss.text()),
        }
    }

    /// Handles a client that the server has accepted.
    pub(super) fn accepted(&mut self, index: usize, now: Ns) {
        if self.connections[index].state != State::Greeting {
            return;
        }
        self.context.control.accept();
        let away = self.away.has(index);
        if !away {
            let Connection { began_ns, carrier, .. } = &self.connections[index];
            record_in(&mut self.ramp.times.connect, now.saturating_sub(*began_ns));
            let handshake_ns = carrier.as_ref().and_then(ByteStream::handshake_ns);
            handshake_ns.into_iter().for_each(|ns| record_in(&mut self.ramp.times.tls_handshake, ns));
            self.ramp.counts.last_ns = now;
        }
        if self.ramp.negotiated.is_none() {
            self.ramp.negotiated = self.connections[index].carrier.as_ref().and_then(ByteStream::negotiated);
        }
        if self.role != Role::Publisher {
            let spec = self.spec(index);
            // A member that comes back waits for the others of its group.
            if away && S::takeover_ns(&self.settings) > 0 {
                self.away.ended(index);
            }
            let connection = &mut self.connections[index];
            connection.state = State::Subscribing;
            connection.began_ns = now;
            connection.session.subscribe(&self.settings, &spec, &mut self.answers);
        } else {
            self.subscribed(index, now);
        }
    }

    /// Handles a client that has everything that it subscribes to: one that comes back sends again
    /// what was not acknowledged.
    pub(super) fn subscribed(&mut self, index: usize, now: Ns) {
        let Connection { state, began_ns, .. } = self.connections[index];
        if state == State::Subscribing && !self.away.has(index) {
            record_in(&mut self.ramp.times.subscribe, now.saturating_sub(began_ns));
        }
        if self.publishes() && self.away.has(index) {
            self.connections[index].state = State::Resending;
            // That time is caused by the server, as with any message.
            self.away.ended(index);
        } else {
            self.up(index, now);
        }
    }

    /// Handles a client that is connected, and subscribed if it is to be.
    pub(super) fn up(&mut self, index: usize, now: Ns) {
        if self.returned(index, now) {
            return;
        }
        self.connections[index].state = State::Up;
        self.ramp.under_way.retain(|other| *other as usize != index);
        self.ramp.counts.opened += 1;
        self.ramp.last_up_ns = now;
        self.settle_ramp(now);
    }

    /// Handles a failed attempt: the client tries again, or gives up.
    pub(super) fn failed_attempt(&mut self, index: usize, why: &str) -> Result<(), ShardError> {
        if self.away.has(index) {
            self.try_later(index, why);
            return Ok(());
        }
        self.ramp.under_way.retain(|other| *other as usize != index);
        let Connection { state, place, .. } = self.connections[index];
        let met = if state == State::Opening { self.ramp.missed(place, why) } else { None };
        let why = met.as_deref().unwrap_or(why);
        if state == State::Opening && self.ramp.place > place {
            // Another address is left; it belongs to the same attempt.
            self.ramp.last_error = why.to_owned();
            self.connections[index].attempts -= 1;
            return self.attempt(index, clock::now());
        }
        self.ramp.failed(why);
        let attempts = self.connections[index].attempts;
        if attempts < ATTEMPTS {
            self.connections[index].drop_carrier(State::Waiting);
            self.next_member(index);
            let pause = PAUSE << (attempts.max(1) - 1);
            self.ramp.retries.push(Reverse((clock::now() + pause, index as u32)));
            return Ok(());
        }
        if self.ramp.counts.opened == 0 {
            return Err(self.ramp.refusal(ConnectFailure::Failed(format!("{why} ({attempts} attempts)"))));
        }
        self.connections[index].drop_carrier(State::Gone);
        self.ramp.given_up += 1;
        self.settle_ramp(clock::now());
        Ok(())
    }

    /// Returns the error text for a server that ends a connection before it has accepted the
    /// client. A server that has accepted others of the run speaks the protocol; subscribers come
    /// before publishers.
    pub(super) fn in_handshake(&self, text: &str) -> String {
        match self.context.control.has_accepted() || self.publishes() {
            false => format!("{text} during the handshake; {}", S::HINT),
            true => format!(
                "{text} during the handshake, and it had accepted other clients of this run: it may have reached a \
                 limit of connections, or refuse this client for a reason that its log gives"
            ),
        }
    }

    fn settle_ramp(&mut self, now: Ns) {
        let counts = &self.ramp.counts;
        if !self.ramp.settled && counts.opened + self.ramp.given_up >= counts.wanted {
            (self.ramp.settled, self.ramp.settled_ns) = (true, now);
            let absent = |index: &usize| self.connections[*index].state != State::Up && !self.away.has(*index);
            let gone: Vec<usize> = (0..self.connections.len()).filter(absent).collect();
            for index in gone {
                self.connections[index].drop_carrier(State::Gone);
                self.inbound.give_up(index);
            }
            let _ = self.reports.send(ThreadReport::Connected);
        }
    }
}
