//! AMQP 1.0: a session with one link, to or from the address of the client's topic.
//!
//! The link asks for a `topic` (a capability that brokers share, and JMS defines): each subscriber gets each message.
//! Servers differ in what makes an address a topic; for some, the user's prefix has to say it (`topic://`, `/topic/`).
//!
//! QoS 1 is a message that the sender keeps until the receiver has accepted it, on both sides of the server; QoS 0 is
//! one that is settled when it is sent. A durable subscription is a link with the client's name whose source never
//! expires. It ends when the link is closed.
//!
//! A client that reconnects sends again what was not accepted on the old connection. The server does not connect the
//! two, so messages that it had already taken arrive twice.
//!
//! Memory: up to 8 bytes for each unacknowledged message (`inflight`), and a message in several frames until it is
//! complete.

mod refusal;
mod settings;

pub use settings::Amqp1Settings;

use super::confirms::Confirms;
use super::foreign_peer::{foreign, printable};
use crate::session::{ClientSettings, ClientSpec, Copies, Session, SessionError, SessionEvent, SettingsError};
use pubmark_model::leftovers::Leftover;
use pubmark_model::protocol::Role;
use pubmark_wire::amqp1::{
    Amqp1Frame, Binary, DeliveryOutcome, LOGIN_HEADER, MAX_FRAME_BYTES, MIN_FRAME_BYTES, PROTOCOL_HEADER, Performative,
    Skipped, Symbol, Symbols, Terminus, Text, body, frames, put_message, put_performative,
};
use refusal::{MODIFIED, RELEASED, ended, in_words, out_of_turn, rejected};

/// Name of the expected peer in the error for a foreign one.
const EXPECTED: &str = "AMQP 1.0";
const LOGIN_VERSION: [u8; 4] = [3, 1, 0, 0];
const VERSION: [u8; 4] = [0, 1, 0, 0];
/// The one link of a session.
const LINK: u32 = 0;
/// Transfers that a subscriber takes without a further word of it: it has a word to say much earlier.
const WINDOW: u32 = i32::MAX as u32;
/// [`Terminus::durable`] of what is kept with its unsettled messages.
const KEPT: u32 = 2;
/// [`Performative::Attach::sends`]: messages are unsettled, or settled.
const UNSETTLED: u8 = 0;
const SETTLED: u8 = 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The header of the login is sent.
    Silent,
    /// Name and password are sent.
    LoggingIn,
    /// Open and Begin are sent, and Attach by a publisher.
    Opening,
    /// The session has begun, and a subscriber's link is not attached.
    Begun,
    /// The link is attached.
    Attached,
    /// Close is sent: errors of the server are ignored from now on.
    Closing,
}

/// A message that is arriving: its number, and true if nobody awaits an acknowledgement.
#[derive(Clone, Copy)]
struct Incoming {
    delivery: u32,
    is_settled: bool,
}

/// Names of a client at the server.
struct Names {
    client: Box<str>,
    /// Empty if it only removes subscriptions.
    address: Box<str>,
}

/// One client.
pub struct Amqp1 {
    state: State,
    names: Box<Names>,
    receives: bool,
    /// Its line of `credentials_file`.
    row: u32,
    /// The longest frame that the server takes.
    frame_bytes: u32,
    /// Numbers of the next transfer, and of the first that the server does not take.
    transfer: u32,
    transfers_end: u32,
    /// The same of messages: those of the server, if the client receives.
    delivery: u32,
    deliveries_end: u32,
    /// Number of the server's next transfer.
    incoming_transfer: u32,
    incoming: Option<Incoming>,
    /// The received part of a message in several frames.
    body: Vec<u8>,
    /// The first and the last of the deliveries to acknowledge.
    acknowledge: Option<(u32, u32)>,
    confirms: Confirms,
}

impl Session for Amqp1 {
    type Settings = Amqp1Settings;

    const SEPARATOR: char = '.';
    /// No address has this name: patterns are not supported.
    const REST: &'static str = "*";
    const HINT: &'static str = "it may not speak AMQP 1.0, or it may expect TLS (amqp1s://)";

    fn settings(terms: &ClientSettings<'_>) -> Result<Amqp1Settings, SettingsError> {
        Amqp1Settings::read(terms)
    }

    fn new(_: &Amqp1Settings, spec: &ClientSpec) -> Self {
        Amqp1 {
            state: State::Silent,
            names: Box::new(Names { client: (&*spec.name).into(), address: (&*spec.topic).into() }),
            receives: spec.role == Role::Subscriber,
            row: spec.row,
            frame_bytes: MIN_FRAME_BYTES,
            transfer: 0,
            transfers_end: 0,
            delivery: 0,
            deliveries_end: 0,
            incoming_transfer: 0,
            incoming: None,
            body: Vec::new(),
            acknowledge: None,
            confirms: Confirms::new(),
        }
    }

    fn open(&mut self, _: &Amqp1Settings, _: &ClientSpec, out: &mut Vec<u8>) {
        out.extend_from_slice(LOGIN_HEADER);
    }

    fn resume(&mut self, settings: &Amqp1Settings, spec: &ClientSpec) {
        let earlier = std::mem::replace(self, Self::new(settings, spec));
        self.confirms = earlier.confirms.reconnected();
    }

    /// True if there is credit for messages that have to be sent again. It may have been used up before.
    fn owes(&self) -> bool {
        self.confirms.owes() && self.has_room(0)
    }

    fn resend(&mut self, settings: &Amqp1Settings, copies: &mut dyn Copies, out: &mut Vec<u8>) -> bool {
        if !self.has_room(0) {
            return false;
        }
        let Some(sequence) = self.confirms.next_again() else { return false };
        self.confirms.push(sequence, usize::MAX);
        self.send(settings, copies.message(sequence), out);
        true
    }

    fn input(
        &mut self,
        settings: &Amqp1Settings,
        bytes: &[u8],
        out: &mut Vec<u8>,
        heard: &mut dyn FnMut(SessionEvent<'_>),
    ) -> Result<usize, SessionError> {
        let mut taken = 0;
        loop {
            let rest = &bytes[taken..];
            let frame = Amqp1Frame::decode(rest).map_err(|why| foreign(EXPECTED, rest, &why.0))?;
            let Some((frame, frame_bytes)) = frame else { break };
            match frame {
                Amqp1Frame::Header(LOGIN_VERSION) if self.state == State::Silent => {}
                Amqp1Frame::Header(VERSION) if self.state == State::Opening => {}
                Amqp1Frame::Header([id, major, minor, revision]) => {
                    return Err(SessionError::Foreign(format!(
                        "the server refuses AMQP 1.0 with a login (SASL) and offers version {id} {major}.{minor}.{revision}"
                    )));
                }
                Amqp1Frame::Empty => {}
                Amqp1Frame::Performative(performative, message) => {
                    self.heard(settings, &performative, message, out, heard)?;
                }
            }
            taken += frame_bytes;
        }
        self.settle(out);
        self.give_credit(settings, out);
        Ok(taken)
    }

    fn announced(&self, rest: &[u8]) -> u64 {
        (self.body.len() + rest.len()) as u64
    }

    fn subscribe(&mut self, settings: &Amqp1Settings, _: &ClientSpec, out: &mut Vec<u8>) {
        self.attach(settings, out);
    }

    fn publish(&mut self, settings: &Amqp1Settings, message: &[u8], sequence: u32, out: &mut Vec<u8>) -> bool {
        if self.confirms.owes() || !self.has_room(message.len()) {
            return false;
        }
        if settings.qos > 0 && !self.confirms.push(sequence, settings.inflight) {
            return false;
        }
        self.send(settings, message, out);
        true
    }

    fn keep_alive(&mut self, _: &Amqp1Settings, out: &mut Vec<u8>) {
        Amqp1Frame::Empty.put(out);
    }

    fn keep_alive_s(settings: &Amqp1Settings) -> u32 {
        settings.heartbeat_s
    }

    fn close(&mut self, settings: &Amqp1Settings, _: &ClientSpec, out: &mut Vec<u8>) {
        if settings.durable && self.receives && self.state == State::Attached {
            put(out, Performative::Detach { handle: LINK, is_closed: Some(true), error: None });
        }
        self.state = State::Closing;
        put(out, Performative::Close { error: None });
    }

    fn leaves(settings: &Amqp1Settings, spec: &ClientSpec) -> Vec<Leftover> {
        let stays = settings.durable && spec.role == Role::Subscriber;
        stays.then(|| Leftover::Session(spec.name.clone())).into_iter().collect()
    }

    fn unacknowledged(&self) -> usize {
        self.confirms.unacknowledged()
    }
}

impl Amqp1 {
    fn heard(
        &mut self,
        settings: &Amqp1Settings,
        performative: &Performative<'_>,
        message: &[u8],
        out: &mut Vec<u8>,
        heard: &mut dyn FnMut(SessionEvent<'_>),
    ) -> Result<(), SessionError> {
        match *performative {
            _ if self.state == State::Closing => {}
            Performative::Transfer { delivery, is_settled, more, is_aborted, .. } if self.receives => {
                self.incoming_transfer = self.incoming_transfer.wrapping_add(1);
                let begun = self.incoming.take().or(delivery.map(|delivery| Incoming { delivery, is_settled: false }));
                let Incoming { delivery, is_settled: was_settled } = begun.ok_or_else(|| out_of_turn("a transfer"))?;
                let incoming = Incoming { delivery, is_settled: was_settled || is_settled == Some(true) };
                if is_aborted == Some(true) {
                    self.body = Vec::new();
                    self.received(Incoming { is_settled: true, ..incoming }, out);
                } else if more == Some(true) {
                    self.body.extend_from_slice(message);
                    self.incoming = Some(incoming);
                } else {
                    self.message(message, heard)?;
                    self.received(incoming, out);
                }
            }
            Performative::Disposition { is_receiver: true, first, last, is_settled, outcome } if !self.receives => {
                let last = last.unwrap_or(first);
                self.disposed(first, last, outcome, heard)?;
                if is_settled != Some(true) && !matches!(outcome, None | Some(DeliveryOutcome::Other)) {
                    let last = Some(last);
                    put(
                        out,
                        Performative::Disposition { is_receiver: false, first, last, is_settled: Some(true), outcome },
                    );
                }
            }
            Performative::Disposition { .. } => {}
            Performative::Flow { next_incoming, incoming_window, handle, delivery_count, credit, echo, .. } => {
                self.transfers_end = next_incoming.unwrap_or(0).wrapping_add(incoming_window.min(WINDOW));
                if let (Some(LINK), Some(credit), false) = (handle, credit, self.receives) {
                    self.deliveries_end = delivery_count.unwrap_or(0).wrapping_add(credit.min(WINDOW));
                }
                if echo == Some(true) {
                    self.flow(None, out);
                }
                heard(SessionEvent::Room);
            }
            // It is closed, or there was none.
            Performative::Detach { error, .. }
                if self.removes() && error.is_none_or(|error| error.condition.0 == b"amqp:not-found") =>
            {
                self.state = State::Attached;
                heard(SessionEvent::Connected);
            }
            Performative::Detach { error, .. } => return Err(ended("link", error)),
            Performative::End { error } => return Err(ended("session", error)),
            Performative::Close { error } => {
                put(out, Performative::Close { error: None });
                return Err(ended("connection", error));
            }
            _ => return self.greeting(settings, performative, out, heard),
        }
        Ok(())
    }

    /// Handles the steps from the login to the link.
    fn greeting(
        &mut self,
        settings: &Amqp1Settings,
        performative: &Performative<'_>,
        out: &mut Vec<u8>,
        heard: &mut dyn FnMut(SessionEvent<'_>),
    ) -> Result<(), SessionError> {
        match (self.state, *performative) {
            (State::Silent, Performative::Mechanisms { mechanisms }) => {
                self.log_in(settings, mechanisms, out)?;
                self.state = State::LoggingIn;
            }
            (State::LoggingIn, Performative::LoginOutcome { code: 0 }) => {
                out.extend_from_slice(PROTOCOL_HEADER);
                put(
                    out,
                    Performative::Open {
                        container: Text::from(&*self.names.client),
                        hostname: Some(Text::from(&*settings.hostname)),
                        frame_bytes: Some(MAX_FRAME_BYTES),
                        channel_max: Some(0),
                        idle_ms: None,
                    },
                );
                let (incoming_window, outgoing_window) = (WINDOW, WINDOW);
                put(
                    out,
                    Performative::Begin { remote_channel: None, next_outgoing: 0, incoming_window, outgoing_window },
                );
                if !self.receives {
                    self.attach(settings, out);
                }
                self.state = State::Opening;
            }
            (State::LoggingIn, Performative::LoginOutcome { code }) => {
                let text = format!("the server refuses the login (SASL code {code}): check user and password");
                return Err(if code == 1 { SessionError::Denied(text) } else { SessionError::Busy(text) });
            }
            (State::Opening, Performative::Open { frame_bytes, idle_ms, .. }) => {
                self.frame_bytes = frame_bytes.unwrap_or(MAX_FRAME_BYTES).min(MAX_FRAME_BYTES);
                if let Some(idle_ms @ 1..) = idle_ms
                    && settings.heartbeat_s.saturating_mul(500) >= idle_ms
                {
                    return Err(SessionError::Denied(format!(
                        "the server ends connections after {idle_ms} ms of silence: set options.heartbeat to half of it"
                    )));
                }
            }
            // A server that refuses a connection may answer with any frame size before it sends Close.
            (State::Opening, Performative::Begin { .. }) if self.frame_bytes < MIN_FRAME_BYTES => {
                return Err(out_of_turn(&format!("frames of {} bytes", self.frame_bytes)));
            }
            (State::Opening, Performative::Begin { next_outgoing, incoming_window, .. }) => {
                self.incoming_transfer = next_outgoing;
                self.transfers_end = incoming_window.min(WINDOW);
                if self.receives {
                    self.state = State::Begun;
                    heard(SessionEvent::Connected);
                }
            }
            (State::Opening, Performative::Attach { .. }) if self.removes() => {
                put(out, Performative::Detach { handle: LINK, is_closed: Some(true), error: None });
            }
            // Without a target, a refusal follows.
            (State::Opening, Performative::Attach { target, .. }) => {
                if target.is_some() {
                    self.state = State::Attached;
                    heard(SessionEvent::Connected);
                }
            }
            (State::Begun, Performative::Attach { source, delivery_count, .. }) => {
                if source.is_some() {
                    self.delivery = delivery_count.unwrap_or(0);
                    self.deliveries_end = self.delivery;
                    self.state = State::Attached;
                    heard(SessionEvent::Subscribed);
                }
            }
            _ => return Err(out_of_turn(performative.name())),
        }
        Ok(())
    }

    fn log_in(&self, settings: &Amqp1Settings, mechanisms: Symbols<'_>, out: &mut Vec<u8>) -> Result<(), SessionError> {
        let login = settings.login(self.row);
        let wanted = if login.is_some() { "PLAIN" } else { "ANONYMOUS" };
        if !mechanisms.names().any(|name| name == wanted.as_bytes()) {
            let offered: Vec<_> = mechanisms.names().map(printable).collect();
            let help = if login.is_some() { "enable it" } else { "name a user and a password" };
            let offered = offered.join(", ");
            return Err(SessionError::Denied(format!("the server takes no {wanted} login, only {offered}: {help}")));
        }
        let response = login.as_deref().map(Binary);
        put(
            out,
            Performative::Login { mechanism: wanted.into(), response, hostname: Some((&*settings.hostname).into()) },
        );
        Ok(())
    }

    /// True if the client removes a subscription, and does nothing else.
    fn removes(&self) -> bool {
        self.names.address.is_empty()
    }

    /// Appends the frame that attaches the link.
    fn attach(&self, settings: &Amqp1Settings, out: &mut Vec<u8>) {
        let is_kept = settings.durable && self.receives;
        let terminus = |is_target: bool| Terminus {
            is_target,
            address: Some(Text::from(&*self.names.address)),
            durable: is_kept.then_some(KEPT),
            expiry: is_kept.then_some(Symbol(b"never")),
            capabilities: Some(Symbols::one("topic")),
        };
        // The client's own end has no address.
        let own =
            |is_target: bool| Terminus { is_target, address: None, durable: None, expiry: None, capabilities: None };
        let (source, target) = match (self.removes(), self.receives) {
            // The subscription with the link's name is looked up.
            (true, _) => (None, Some(own(true))),
            (_, true) => (Some(terminus(false)), Some(own(true))),
            (_, false) => (Some(own(false)), Some(terminus(true))),
        };
        put(
            out,
            Performative::Attach {
                name: Text::from(&*self.names.client),
                handle: LINK,
                is_receiver: self.receives || self.removes(),
                sends: Some(if settings.qos > 0 { UNSETTLED } else { SETTLED }),
                receives: Some(0),
                source,
                target,
                unsettled: Skipped,
                incomplete: Skipped,
                delivery_count: (!self.receives && !self.removes()).then_some(0),
            },
        );
    }

    /// True if the server takes a message of this length now.
    fn has_room(&self, bytes: usize) -> bool {
        let frames = i64::from(frames(bytes, self.frame_bytes));
        let room = |end: u32, next: u32| i64::from(end.wrapping_sub(next) as i32);
        self.state == State::Attached
            && room(self.deliveries_end, self.delivery) > 0
            && room(self.transfers_end, self.transfer) >= frames
    }

    /// Appends a message.
    fn send(&mut self, settings: &Amqp1Settings, message: &[u8], out: &mut Vec<u8>) {
        let flags = (settings.qos == 0, settings.durable);
        put_message(out, self.delivery, flags, message, self.frame_bytes);
        self.transfer = self.transfer.wrapping_add(frames(message.len(), self.frame_bytes));
        self.delivery = self.delivery.wrapping_add(1);
    }

    /// Handles the outcome of messages that were sent: on each connection, the first has number 0 here and 1 in the
    /// window.
    fn disposed(
        &mut self,
        first: u32,
        last: u32,
        outcome: Option<DeliveryOutcome<'_>>,
        heard: &mut dyn FnMut(SessionEvent<'_>),
    ) -> Result<(), SessionError> {
        let (oldest, count) = (self.delivery.wrapping_sub(first), last.wrapping_sub(first));
        let unsent = || out_of_turn("an outcome of what was never sent");
        if count >= oldest {
            return Err(unsent());
        }
        if matches!(outcome, None | Some(DeliveryOutcome::Other)) {
            return Ok(());
        }
        let words;
        let refusal = match outcome {
            Some(DeliveryOutcome::Rejected(failure)) => {
                words = format!("rejected: {}", failure.map_or_else(|| "without a reason".into(), in_words));
                Some(rejected(&words, failure))
            }
            Some(DeliveryOutcome::Released) => Some(RELEASED),
            Some(DeliveryOutcome::Modified) => Some(MODIFIED),
            _ => None,
        };
        let numbered = self.confirms.next();
        for ago in (oldest - count..=oldest).rev() {
            let number = numbered.checked_sub(ago.into()).ok_or_else(unsent)?;
            let known = self.confirms.settle(number, false, |sequence| {
                heard(refusal.map_or(SessionEvent::Acknowledged(sequence), |no| SessionEvent::Refused(sequence, no)));
            });
            if !known {
                return Err(unsent());
            }
        }
        Ok(())
    }

    /// Passes on a message in one frame without a copy; assembles one in several frames.
    fn message(&mut self, part: &[u8], heard: &mut dyn FnMut(SessionEvent<'_>)) -> Result<(), SessionError> {
        // Freed at once: thousands of clients would keep unused memory.
        let mut whole = std::mem::take(&mut self.body);
        let message = if whole.is_empty() {
            part
        } else {
            whole.extend_from_slice(part);
            &whole
        };
        let payload = body(message).map_err(|why| foreign(EXPECTED, message, &why.0))?;
        heard(SessionEvent::Message { topic: &[], payload, is_retained: false });
        Ok(())
    }

    /// Counts a message, and notes it for an acknowledgement if one is awaited.
    fn received(&mut self, incoming: Incoming, out: &mut Vec<u8>) {
        self.delivery = self.delivery.wrapping_add(1);
        if incoming.is_settled {
            return;
        }
        match &mut self.acknowledge {
            Some((_, last)) if last.wrapping_add(1) == incoming.delivery => *last = incoming.delivery,
            _ => {
                self.settle(out);
                self.acknowledge = Some((incoming.delivery, incoming.delivery));
            }
        }
    }

    /// Appends the acknowledgement of what has been received.
    fn settle(&mut self, out: &mut Vec<u8>) {
        if let Some((first, last)) = self.acknowledge.take() {
            let (is_settled, outcome) = (Some(true), Some(DeliveryOutcome::Accepted));
            put(out, Performative::Disposition { is_receiver: true, first, last: Some(last), is_settled, outcome });
        }
    }

    /// Gives the server credit for more messages, when half of it is used up.
    fn give_credit(&mut self, settings: &Amqp1Settings, out: &mut Vec<u8>) {
        let left = self.deliveries_end.wrapping_sub(self.delivery);
        if self.receives && self.state == State::Attached && self.incoming.is_none() && left <= settings.credit / 2 {
            self.deliveries_end = self.delivery.wrapping_add(settings.credit);
            self.flow(Some(settings.credit), out);
        }
    }

    /// Appends what the client takes: in the session, and over its link if it gives credit.
    fn flow(&self, credit: Option<u32>, out: &mut Vec<u8>) {
        put(
            out,
            Performative::Flow {
                next_incoming: Some(self.incoming_transfer),
                incoming_window: WINDOW,
                next_outgoing: self.transfer,
                outgoing_window: WINDOW,
                handle: credit.map(|_| LINK),
                delivery_count: credit.map(|_| self.delivery),
                credit,
                available: None,
                drain: None,
                echo: None,
            },
        );
    }
}

fn put(out: &mut Vec<u8>, performative: Performative<'_>) {
    put_performative(out, &performative, |_| {});
}

#[cfg(test)]
mod tests;
