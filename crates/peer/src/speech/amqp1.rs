//! AMQP 1.0: one session and one link on each connection, to an address or from it. A receiver's messages wait until it
//! gives credit. Every login is accepted. Of a message only its body is passed on. Sessions are not counted by
//! transfers: windows are as large as they can be.

use super::protocol::{Ask, Hub, PublisherAnswer, Speech};
use crate::routes::{Address, Filter};
use crate::script::PeerScript;
use pubmark_wire::Malformed;
use pubmark_wire::amqp1::{
    Amqp1Failure, Amqp1Frame, DeliveryOutcome, LOGIN_HEADER, MAX_FRAME_BYTES, MIN_FRAME_BYTES, PROTOCOL_HEADER,
    Performative, Skipped, Symbol, Symbols, Terminus, Text, body, put_message, put_performative,
};
use std::collections::VecDeque;
use std::rc::Rc;

/// Messages that a client may send ahead.
const CREDIT: u32 = 1_000;
const WINDOW: u32 = i32::MAX as u32;
/// The only subscription of a connection.
const TOKEN: u32 = 0;
/// The words of a refused message if the script has none.
const REFUSAL: &str = "the peer refuses it";
const RESOURCE_LIMIT: Symbol<'static> = Symbol(b"amqp:resource-limit-exceeded");
const INTERNAL_ERROR: Symbol<'static> = Symbol(b"amqp:internal-error");

/// The link of a connection.
enum Link {
    /// The client sends.
    In {
        address: Box<[u8]>,
        /// Messages that have come.
        came: u32,
        /// The message that is arriving in parts: its number, and true if it is settled.
        begun: Option<(u32, bool)>,
        body: Vec<u8>,
    },
    /// The client receives.
    Out {
        address: Box<[u8]>,
        /// True if the client awaits no acknowledgement.
        is_settled: bool,
        /// Number of the next message, and of the first that the client does not take yet.
        next: u32,
        end: u32,
        waiting: VecDeque<Box<[u8]>>,
        waiting_bytes: usize,
    },
}

/// A connection.
pub struct Amqp1Server {
    denied: bool,
    script: Rc<PeerScript>,
    is_over: bool,
    /// The longest frame that the client takes.
    frame_bytes: u32,
    /// Messages received on the connection.
    came: u64,
    link: Option<Link>,
}

impl Speech for Amqp1Server {
    const SCHEME: &'static str = "amqp1";

    fn new(denied: bool) -> Self {
        Amqp1Server { denied, script: Rc::default(), is_over: false, frame_bytes: MIN_FRAME_BYTES, came: 0, link: None }
    }

    fn obey(&mut self, script: &Rc<PeerScript>) {
        self.script = script.clone();
    }

    fn greet(&mut self, _: &mut Vec<u8>) -> bool {
        false
    }

    fn input(&mut self, bytes: &[u8], out: &mut Vec<u8>, hub: &mut Hub<'_>) -> Result<usize, Malformed> {
        let mut done = 0;
        while !self.is_over
            && let Some((frame, used)) = Amqp1Frame::decode(&bytes[done..])?
        {
            match frame {
                Amqp1Frame::Header([3, 1, 0, 0]) => {
                    out.extend_from_slice(LOGIN_HEADER);
                    put(out, Performative::Mechanisms { mechanisms: Symbols::one("ANONYMOUS") });
                }
                Amqp1Frame::Header([0, 1, 0, 0]) => out.extend_from_slice(PROTOCOL_HEADER),
                Amqp1Frame::Header(_) => {
                    out.extend_from_slice(PROTOCOL_HEADER);
                    self.over(hub);
                }
                Amqp1Frame::Empty => Amqp1Frame::Empty.put(out),
                Amqp1Frame::Performative(performative, message) => self.heard(&performative, message, out, hub)?,
            }
            done += used;
        }
        Ok(if self.is_over { bytes.len() } else { done })
    }

    fn deliver(&mut self, _: u32, _: Address<'_>, payload: &[u8], _: u8, out: &mut Vec<u8>) {
        if let Some(Link::Out { waiting, waiting_bytes, .. }) = &mut self.link {
            *waiting_bytes += payload.len();
            waiting.push_back(payload.into());
            self.send(out);
        }
    }

    fn kept_bytes(&self) -> usize {
        if let Some(Link::Out { waiting_bytes, .. }) = self.link { waiting_bytes } else { 0 }
    }
}

impl Amqp1Server {
    fn over(&mut self, hub: &mut Hub<'_>) {
        self.is_over = true;
        hub(Ask::Close);
    }

    fn close(&mut self, condition: Symbol<'_>, words: &str, out: &mut Vec<u8>, hub: &mut Hub<'_>) {
        put(out, Performative::Close { error: Some(Amqp1Failure { condition, text: Some(words.into()) }) });
        self.over(hub);
    }

    fn heard(
        &mut self,
        performative: &Performative<'_>,
        message: &[u8],
        out: &mut Vec<u8>,
        hub: &mut Hub<'_>,
    ) -> Result<(), Malformed> {
        match *performative {
            Performative::Login { .. } => put(out, Performative::LoginOutcome { code: 0 }),
            Performative::Open { frame_bytes, .. } => {
                let (container, hostname, channel_max) = (Text(b"pubmark-peer"), None, None);
                self.frame_bytes = frame_bytes.unwrap_or(MAX_FRAME_BYTES).clamp(MIN_FRAME_BYTES, MAX_FRAME_BYTES);
                let frame_bytes = Some(MAX_FRAME_BYTES);
                put(out, Performative::Open { container, hostname, frame_bytes, channel_max, idle_ms: None });
                if self.denied {
                    self.close(RESOURCE_LIMIT, "the peer's connection limit is reached", out, hub);
                }
            }
            Performative::Begin { .. } => {
                let (incoming_window, outgoing_window) = (WINDOW, WINDOW);
                let (remote_channel, next_outgoing) = (Some(0), 0);
                put(out, Performative::Begin { remote_channel, next_outgoing, incoming_window, outgoing_window });
            }
            Performative::Attach { name, is_receiver, sends, source, target, .. } => {
                self.attach(name, is_receiver, sends == Some(1), source, target, out, hub)?;
            }
            Performative::Flow { delivery_count, credit, .. } => {
                if let (Some(Link::Out { end, .. }), Some(credit)) = (&mut self.link, credit) {
                    *end = delivery_count.unwrap_or(0).wrapping_add(credit.min(WINDOW));
                    self.send(out);
                }
            }
            Performative::Transfer { delivery, is_settled, more, .. } => {
                let is_settled = is_settled == Some(true);
                self.transfer(delivery, is_settled, more == Some(true), message, out, hub)?;
            }
            Performative::Disposition { .. } => {}
            Performative::Detach { handle, is_closed, .. } => {
                if let Some(Link::Out { address, .. }) = self.link.take() {
                    hub(Ask::Unsubscribe(Filter::Exact(&address), TOKEN));
                }
                put(out, Performative::Detach { handle, is_closed, error: None });
            }
            Performative::End { .. } => put(out, Performative::End { error: None }),
            Performative::Close { .. } => {
                put(out, Performative::Close { error: None });
                self.over(hub);
            }
            Performative::Mechanisms { .. } | Performative::LoginOutcome { .. } => {
                return Err(out_of_turn(performative.name()));
            }
        }
        Ok(())
    }

    #[expect(clippy::too_many_arguments, reason = "the fields of one frame")]
    fn attach(
        &mut self,
        name: Text<'_>,
        is_receiver: bool,
        is_settled: bool,
        source: Option<Terminus<'_>>,
        target: Option<Terminus<'_>>,
        out: &mut Vec<u8>,
        hub: &mut Hub<'_>,
    ) -> Result<(), Malformed> {
        if self.link.is_some() {
            return Err(out_of_turn("a second link"));
        }
        let remote = if is_receiver { source } else { target };
        let address =
            remote.and_then(|remote| remote.address).ok_or_else(|| out_of_turn("a link without an address"))?;
        put(
            out,
            Performative::Attach {
                name,
                handle: 0,
                is_receiver: !is_receiver,
                sends: None,
                receives: None,
                source,
                target,
                unsettled: Skipped,
                incomplete: Skipped,
                delivery_count: is_receiver.then_some(0),
            },
        );
        let address: Box<[u8]> = address.0.into();
        if is_receiver {
            hub(Ask::Subscribe(Filter::Exact(&address), TOKEN));
            let (waiting, waiting_bytes) = (VecDeque::new(), 0);
            self.link = Some(Link::Out { address, is_settled, next: 0, end: 0, waiting, waiting_bytes });
        } else {
            self.link = Some(Link::In { address, came: 0, begun: None, body: Vec::new() });
            give_credit(0, out);
        }
        Ok(())
    }

    fn transfer(
        &mut self,
        delivery: Option<u32>,
        is_settled: bool,
        more: bool,
        part: &[u8],
        out: &mut Vec<u8>,
        hub: &mut Hub<'_>,
    ) -> Result<(), Malformed> {
        let Some(Link::In { address, came, begun, body: whole }) = &mut self.link else {
            return Err(out_of_turn("a transfer"));
        };
        let first = delivery.map(|delivery| (delivery, is_settled));
        let (delivery, is_settled) = begun.take().or(first).ok_or_else(|| out_of_turn("a later part"))?;
        whole.extend_from_slice(part);
        if more {
            *begun = Some((delivery, is_settled));
            return Ok(());
        }
        *came = came.wrapping_add(1);
        if *came % (CREDIT / 2) == 0 {
            give_credit(*came, out);
        }
        self.came += 1;
        let whole = std::mem::take(whole);
        if let Some(end) = self.script.clone().end.as_ref().filter(|end| self.came >= end.after) {
            self.close(INTERNAL_ERROR, &end.words, out, hub);
            return Ok(());
        }
        let (to, qos) = (Address::of(address), u8::from(!is_settled));
        let answer = hub(Ask::Publish { to, payload: body(&whole)?, qos }).answer;
        let words = self.script.refuse.words.as_deref().unwrap_or(REFUSAL);
        let outcome = match answer {
            PublisherAnswer::Acknowledged => DeliveryOutcome::Accepted,
            PublisherAnswer::Refused => {
                DeliveryOutcome::Rejected(Some(Amqp1Failure { condition: INTERNAL_ERROR, text: Some(words.into()) }))
            }
            PublisherAnswer::Nothing => return Ok(()),
        };
        if !is_settled {
            let (is_receiver, first, last) = (true, delivery, None);
            let (is_settled, outcome) = (Some(true), Some(outcome));
            put(out, Performative::Disposition { is_receiver, first, last, is_settled, outcome });
        }
        Ok(())
    }

    /// Appends the messages that the client takes.
    fn send(&mut self, out: &mut Vec<u8>) {
        let frame_bytes = self.frame_bytes;
        let Some(Link::Out { is_settled, next, end, waiting, waiting_bytes, .. }) = &mut self.link else { return };
        while (end.wrapping_sub(*next) as i32) > 0
            && let Some(payload) = waiting.pop_front()
        {
            *waiting_bytes -= payload.len();
            put_message(out, *next, (*is_settled, false), &payload, frame_bytes);
            *next = next.wrapping_add(1);
        }
    }
}

fn put(out: &mut Vec<u8>, performative: Performative<'_>) {
    put_performative(out, &performative, |_| {});
}

/// Lets the client send more messages after so many.
fn give_credit(came: u32, out: &mut Vec<u8>) {
    put(
        out,
        Performative::Flow {
            next_incoming: Some(came),
            incoming_window: WINDOW,
            next_outgoing: 0,
            outgoing_window: WINDOW,
            handle: Some(0),
            delivery_count: Some(came),
            credit: Some(CREDIT),
            available: None,
            drain: None,
            echo: None,
        },
    );
}

fn out_of_turn(what: &str) -> Malformed {
    Malformed::new(format!("{what}, out of turn"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::speech::Handled;
    use pubmark_wire::amqp1::put_message_front;

    /// Passes frames to the server. Returns the names of its answers, and what it asked for.
    fn say(server: &mut Amqp1Server, frames: &[Performative<'_>], answer: PublisherAnswer) -> (Vec<u8>, Vec<String>) {
        let (mut bytes, mut out, mut asked) = (Vec::new(), Vec::new(), Vec::new());
        frames.iter().for_each(|frame| put(&mut bytes, *frame));
        let hub = &mut |ask: Ask<'_>| {
            asked.push(match ask {
                Ask::Publish { to, payload, qos } => {
                    format!("{} {} {qos}", to.topic.escape_ascii(), payload.escape_ascii())
                }
                Ask::Subscribe(Filter::Exact(topic), TOKEN) => format!("exact {}", topic.escape_ascii()),
                other => format!("{other:?}"),
            });
            Handled { answer, listeners: 0 }
        };
        assert_eq!(server.input(&bytes, &mut out, hub), Ok(bytes.len()));
        (out, asked)
    }

    /// Returns the performatives in bytes, with the bodies of messages.
    fn heard(mut bytes: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
        let mut heard = Vec::new();
        while let Some((frame, used)) = Amqp1Frame::decode(bytes).unwrap() {
            let Amqp1Frame::Performative(performative, message) = frame else { panic!("{frame:?}") };
            let has_body = matches!(performative, Performative::Transfer { .. });
            heard.push((
                performative.name(),
                if has_body { body(message).unwrap_or_default().to_vec() } else { Vec::new() },
            ));
            bytes = &bytes[used..];
        }
        heard
    }

    fn attach(is_receiver: bool) -> Performative<'static> {
        let terminus = |is_target| {
            let (durable, expiry, capabilities) = (None, None, None);
            Some(Terminus { is_target, address: Some(Text(b"a.b")), durable, expiry, capabilities })
        };
        Performative::Attach {
            name: Text(b"c"),
            handle: 0,
            is_receiver,
            sends: None,
            receives: None,
            source: terminus(false),
            target: terminus(true),
            unsettled: Skipped,
            incomplete: Skipped,
            delivery_count: None,
        }
    }

    #[test]
    fn a_publisher_hears_of_each_message_that_is_not_settled() {
        let mut server = Amqp1Server::new(false);
        let (out, asked) = say(&mut server, &[attach(false)], PublisherAnswer::Nothing);
        assert_eq!(heard(&out).into_iter().map(|(name, _)| name).collect::<Vec<_>>(), ["Attach", "Flow"]);
        assert!(asked.is_empty());
        let mut message = Vec::new();
        put_message_front(&mut message, true, 2);
        message.extend_from_slice(b"hi");
        for (answer, is_settled, answered) in [
            (PublisherAnswer::Acknowledged, false, 1),
            (PublisherAnswer::Refused, false, 1),
            (PublisherAnswer::Acknowledged, true, 0),
            (PublisherAnswer::Nothing, false, 0),
        ] {
            let transfer = Performative::Transfer {
                handle: 0,
                delivery: Some(7),
                tag: None,
                format: None,
                is_settled: Some(is_settled),
                more: None,
                receives: Skipped,
                state: Skipped,
                resume: Skipped,
                is_aborted: None,
            };
            let (mut bytes, mut out, mut asked) = (Vec::new(), Vec::new(), Vec::new());
            put_performative(&mut bytes, &transfer, |out| out.extend_from_slice(&message));
            let hub = &mut |ask: Ask<'_>| {
                asked.push(ask == Ask::Publish { to: Address::of(b"a.b"), payload: b"hi", qos: (!is_settled).into() });
                Handled { answer, listeners: 1 }
            };
            assert_eq!(server.input(&bytes, &mut out, hub), Ok(bytes.len()));
            assert_eq!(asked, [true]);
            let expected = match answer {
                PublisherAnswer::Refused => DeliveryOutcome::Rejected(Some(Amqp1Failure {
                    condition: INTERNAL_ERROR,
                    text: Some(REFUSAL.into()),
                })),
                _ => DeliveryOutcome::Accepted,
            };
            let (is_receiver, first, last) = (true, 7, None);
            let (is_settled, outcome) = (Some(true), Some(expected));
            let said = Performative::Disposition { is_receiver, first, last, is_settled, outcome };
            let mut wanted = Vec::new();
            (0..answered).for_each(|_| put(&mut wanted, said));
            assert_eq!(out, wanted);
        }
    }

    #[test]
    fn a_subscriber_is_sent_what_it_gives_credit_for() {
        let mut server = Amqp1Server::new(false);
        let (_, asked) = say(&mut server, &[attach(true)], PublisherAnswer::Nothing);
        assert_eq!(asked, ["exact a.b"]);
        let mut out = Vec::new();
        let long = [7; 1_000];
        for payload in [&b"x"[..], &long, b"y"] {
            server.deliver(TOKEN, Address::of(b"a.b"), payload, 1, &mut out);
        }
        assert_eq!((out.len(), server.kept_bytes()), (0, 1_002));
        let flow = Performative::Flow {
            next_incoming: None,
            incoming_window: WINDOW,
            next_outgoing: 0,
            outgoing_window: WINDOW,
            handle: Some(0),
            delivery_count: Some(0),
            credit: Some(2),
            available: None,
            drain: None,
            echo: None,
        };
        let (out, _) = say(&mut server, &[flow], PublisherAnswer::Nothing);
        let parts = heard(&out).len();
        assert_eq!((parts, server.kept_bytes()), (4, 1), "the long one takes three frames of 512 bytes");
        let (out, asked) = say(&mut server, &[Performative::Close { error: None }], PublisherAnswer::Nothing);
        assert_eq!((heard(&out)[0].0, &*asked[0]), ("Close", "Close"));
    }
}
