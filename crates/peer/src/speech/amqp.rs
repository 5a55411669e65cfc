//! AMQP 0-9-1: one channel per connection, and on it one queue with one consumer. A queue is the connection's own, or
//! shared by its name with those of other connections, which take turns. It is
//! bound to `amq.direct` by a routing key, or to `amq.topic` by one that may end in `#`; it keeps nothing before its
//! consumer comes. Of the properties only the address for an answer is passed on, and messages are never returned. Unknown methods end the connection,
//! with code 540. Heartbeats are answered; missing ones are ignored.

mod consumer;

use super::protocol::{Ask, Hub, PublisherAnswer, Speech};
use crate::routes::{Address, Filter};
use crate::script::PeerScript;
use consumer::{Consumer, Framing, SEPARATOR};
use pubmark_wire::Malformed;
use pubmark_wire::amqp::{
    FieldTable, Frame, MAX_FRAME_BYTES, MIN_FRAME_BYTES, Method, PROTOCOL_HEADER, Short, put_flag, put_table, put_text,
    reply_to,
};
use std::rc::Rc;

/// The exchange that leads to the queue of each name.
const DEFAULT: &[u8] = b"";
/// The queue by which a client consumes answers.
const DIRECT_REPLY: &[u8] = b"amq.rabbitmq.reply-to";
const DIRECT: &[u8] = b"amq.direct";
const TOPIC: &[u8] = b"amq.topic";
/// The connection's only subscription: its queue's consumer.
const TOKEN: u32 = 0;
const NOT_IMPLEMENTED: u16 = 540;
const NOT_ALLOWED: u16 = 530;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nothing has been received.
    Silent,
    /// Start has been sent.
    Started,
    /// Tune has been sent.
    Tuning,
    /// TuneOk has been received.
    Tuned,
    /// The virtual host is open, but no channel.
    Opened,
    /// The connection's channel is open.
    Channel,
    /// The conversation is over.
    Over,
}

/// A message that is being received.
#[derive(Clone, Copy)]
enum Incoming {
    Nothing,
    /// Publish has been received.
    Header,
    /// The header has been received too; this many bytes of the body are missing.
    Body(u64),
}

struct Queue {
    name: Box<[u8]>,
    /// Exchange and routing key of each binding.
    bindings: Vec<Box<[u8]>>,
    /// True if other connections consume from it as well.
    is_shared: bool,
    consumer: Option<Consumer>,
}

impl Queue {
    fn filters(&self) -> impl Iterator<Item = Filter<'_>> {
        // Only valid bindings are stored.
        self.bindings.iter().flat_map(|binding| filters(binding).into_iter().flatten())
    }

    fn subscribe(&self, filter: Filter<'_>, hub: &mut Hub<'_>) {
        hub(if self.is_shared { Ask::Share(filter, &self.name, TOKEN) } else { Ask::Subscribe(filter, TOKEN) });
    }
}

/// A connection.
pub struct AmqpServer {
    denied: bool,
    script: Rc<PeerScript>,
    /// Messages received on the connection.
    came: u64,
    state: State,
    framing: Framing,
    /// Messages that a consumer takes unacknowledged; 0 is no bound.
    window: u16,
    /// Messages published since confirms were requested; `None` if they were not.
    published: Option<u64>,
    incoming: Incoming,
    /// Exchange and routing key of the message that is being received.
    route: Vec<u8>,
    /// Address of its answer.
    reply: Vec<u8>,
    body: Vec<u8>,
    queue: Option<Queue>,
}

/// Error that ends a connection: code, text, and the method at fault.
struct Refusal(u16, String);

impl Speech for AmqpServer {
    const SCHEME: &'static str = "amqp";

    fn new(denied: bool) -> Self {
        AmqpServer {
            denied,
            script: Rc::default(),
            came: 0,
            state: State::Silent,
            framing: Framing { channel: 0, frame_bytes: MIN_FRAME_BYTES },
            window: 0,
            published: None,
            incoming: Incoming::Nothing,
            route: Vec::new(),
            reply: Vec::new(),
            body: Vec::new(),
            queue: None,
        }
    }

    fn obey(&mut self, script: &Rc<PeerScript>) {
        self.script = script.clone();
    }

    fn greet(&mut self, _: &mut Vec<u8>) -> bool {
        false
    }

    fn input(&mut self, bytes: &[u8], out: &mut Vec<u8>, hub: &mut Hub<'_>) -> Result<usize, Malformed> {
        let mut done = 0;
        if self.state == State::Silent {
            let Some(header) = bytes.first_chunk::<8>() else { return Ok(0) };
            if header != PROTOCOL_HEADER {
                out.extend_from_slice(PROTOCOL_HEADER);
                self.state = State::Over;
                hub(Ask::Close);
            } else {
                start(out);
                self.state = State::Started;
            }
            done = header.len();
        }
        while self.state != State::Over
            && let Some((frame, used)) = Frame::decode(&bytes[done..])?
        {
            self.frame(&frame, out, hub)?;
            done += used;
        }
        Ok(if self.state == State::Over { bytes.len() } else { done })
    }

    fn deliver(&mut self, _: u32, to: Address<'_>, payload: &[u8], _: u8, out: &mut Vec<u8>) {
        if let Some(consumer) = self.queue.as_mut().and_then(|queue| queue.consumer.as_mut()) {
            consumer.deliver(self.framing, to, payload, out);
        }
    }

    fn kept_bytes(&self) -> usize {
        self.queue.as_ref().and_then(|queue| queue.consumer.as_ref()).map_or(0, Consumer::kept_bytes)
    }
}

impl AmqpServer {
    fn frame(&mut self, frame: &Frame<'_>, out: &mut Vec<u8>, hub: &mut Hub<'_>) -> Result<(), Malformed> {
        match *frame {
            Frame::Heartbeat => Frame::Heartbeat.put(out),
            Frame::Method(channel, ref method) => {
                if !matches!(self.incoming, Incoming::Nothing) {
                    return Err(out_of_turn(method.name()));
                }
                if let Err(Refusal(code, words)) = self.method(channel, method, out, hub)? {
                    let text = Short::from(&*words);
                    Frame::Method(0, Method::Close { code, text, class: 0, method: 0 }).put(out);
                    self.over(hub);
                }
            }
            Frame::Header { channel, body_bytes, properties } => {
                self.reply = self.answered_at(reply_to(properties)?);
                let (Incoming::Header, true) = (self.incoming, self.is_open(channel)) else {
                    return Err(out_of_turn("a content header"));
                };
                self.incoming = Incoming::Body(body_bytes);
                if body_bytes == 0 {
                    self.piece(&[], out, hub)?;
                }
            }
            Frame::Body(channel, piece) if self.is_open(channel) => self.piece(piece, out, hub)?,
            Frame::Body(..) => return Err(out_of_turn("a body")),
            Frame::Refused(_) => return Err(out_of_turn("a protocol header")),
        }
        Ok(())
    }

    fn is_open(&self, channel: u16) -> bool {
        self.state == State::Channel && self.framing.channel == channel
    }

    fn over(&mut self, hub: &mut Hub<'_>) {
        self.state = State::Over;
        hub(Ask::Close);
    }

    /// Handles a method. The inner error is sent to the client, the outer one closes the connection silently.
    fn method(
        &mut self,
        channel: u16,
        method: &Method<'_>,
        out: &mut Vec<u8>,
        hub: &mut Hub<'_>,
    ) -> Result<Result<(), Refusal>, Malformed> {
        match (self.state, *method) {
            (_, Method::Close { .. }) if channel == 0 => {
                Frame::Method(0, Method::CloseOk {}).put(out);
                self.over(hub);
            }
            (State::Started, Method::StartOk { .. }) if channel == 0 => {
                let tune = Method::Tune { channel_max: u16::MAX, frame_bytes: MAX_FRAME_BYTES, heartbeat_s: 0 };
                Frame::Method(0, tune).put(out);
                self.state = State::Tuning;
            }
            (State::Tuning, Method::TuneOk { frame_bytes, .. }) if channel == 0 => {
                self.framing.frame_bytes = if frame_bytes == 0 { MAX_FRAME_BYTES } else { frame_bytes };
                if !(MIN_FRAME_BYTES..=MAX_FRAME_BYTES).contains(&self.framing.frame_bytes) {
                    return Err(out_of_turn(&format!("frames of {frame_bytes} bytes")));
                }
                self.state = State::Tuned;
            }
            (State::Tuned, Method::Open { .. }) if channel == 0 => {
                if self.denied {
                    let words = "NOT_ALLOWED - the peer's connection limit is reached";
                    return Ok(Err(Refusal(NOT_ALLOWED, words.into())));
                }
                Frame::Method(0, Method::OpenOk { reserved: "".into() }).put(out);
                self.state = State::Opened;
            }
            (State::Opened, Method::ChannelOpen { .. }) if channel > 0 => {
                Frame::Method(channel, Method::ChannelOpenOk { reserved: b"" }).put(out);
                self.framing.channel = channel;
                self.state = State::Channel;
            }
            (State::Channel, _) if self.is_open(channel) => return Ok(self.on_channel(method, out, hub)),
            _ => return Err(out_of_turn(method.name())),
        }
        Ok(Ok(()))
    }

    /// Handles a method of the channel.
    fn on_channel(&mut self, method: &Method<'_>, out: &mut Vec<u8>, hub: &mut Hub<'_>) -> Result<(), Refusal> {
        let mut say = |method: Method<'_>| Frame::Method(self.framing.channel, method).put(out);
        match *method {
            Method::Publish { exchange, routing_key, flags: 0, .. } => {
                route(&mut self.route, exchange, routing_key)?;
                self.incoming = Incoming::Header;
                self.published = self.published.map(|count| count + 1);
            }
            Method::Ack { delivery, multiple } => {
                let consumer = self.queue.as_mut().and_then(|queue| queue.consumer.as_mut());
                if !consumer.is_some_and(|consumer| consumer.acknowledged(self.framing, delivery, multiple, out)) {
                    return Err(Refusal(406, format!("PRECONDITION_FAILED - unknown delivery tag {delivery}")));
                }
            }
            Method::ConfirmSelect { no_wait } => {
                self.published = self.published.or(Some(0));
                if !no_wait {
                    say(Method::ConfirmSelectOk {});
                }
            }
            Method::Qos { prefetch_bytes: 0, prefetch_messages, global: false } => {
                self.window = prefetch_messages;
                say(Method::QosOk {});
            }
            Method::ChannelCloseOk {} => self.state = State::Opened,
            Method::ChannelClose { .. } => {
                end_consumer(self.queue.as_mut(), hub);
                self.published = None;
                say(Method::ChannelCloseOk {});
                self.state = State::Opened;
            }
            _ => return self.on_queue(method, out, hub),
        }
        Ok(())
    }

    /// Handles a method of the channel about its queue.
    fn on_queue(&mut self, method: &Method<'_>, out: &mut Vec<u8>, hub: &mut Hub<'_>) -> Result<(), Refusal> {
        let mut say = |method: Method<'_>| Frame::Method(self.framing.channel, method).put(out);
        match *method {
            Method::QueueDeclare { queue, flags, .. } if flags & Method::DURABLE == 0 => {
                if self.queue.as_ref().is_some_and(|held| *held.name != *queue.0) {
                    return Err(not_implemented("a second queue"));
                }
                let is_shared = flags & Method::EXCLUSIVE == 0;
                let new = || Queue { name: queue.0.into(), bindings: Vec::new(), is_shared, consumer: None };
                self.queue.get_or_insert_with(new);
                say(Method::QueueDeclareOk { queue, messages: 0, consumers: 0 });
            }
            Method::QueueDeclare { .. } => return Err(not_implemented("a durable queue")),
            Method::QueueBind { queue, exchange, routing_key, no_wait, .. } => {
                let queue = own(&mut self.queue, queue)?;
                let mut binding = Vec::new();
                route(&mut binding, exchange, routing_key)?;
                for filter in filters(&binding)?.filter(|_| queue.consumer.is_some()) {
                    queue.subscribe(filter, hub);
                }
                queue.bindings.push(binding.into());
                if !no_wait {
                    say(Method::QueueBindOk {});
                }
            }
            Method::Consume { queue, consumer, flags: Method::NO_ACK, .. } if queue.0 == DIRECT_REPLY => {
                let address = [&[SEPARATOR], DIRECT_REPLY, b".", consumer.0].concat().into_boxed_slice();
                hub(Ask::Subscribe(Filter::Exact(&address), TOKEN));
                let consumes = Some(Consumer::new(consumer.0, None));
                self.queue =
                    Some(Queue { name: queue.0.into(), bindings: vec![address], is_shared: false, consumer: consumes });
                say(Method::ConsumeOk { consumer });
            }
            Method::Consume { queue, consumer, flags, .. } if flags & !Method::NO_ACK == 0 => {
                let queue = own(&mut self.queue, queue)?;
                if queue.consumer.is_some() {
                    return Err(not_implemented("a second consumer"));
                }
                if queue.bindings.is_empty() {
                    // The default exchange leads to each queue by its name.
                    queue.bindings.push([DEFAULT, &[SEPARATOR], &queue.name].concat().into_boxed_slice());
                }
                let window = (flags & Method::NO_ACK == 0).then_some(self.window);
                queue.consumer = Some(Consumer::new(consumer.0, window));
                for filter in queue.filters() {
                    queue.subscribe(filter, hub);
                }
                say(Method::ConsumeOk { consumer });
            }
            Method::Cancel { consumer, no_wait } => {
                end_consumer(self.queue.as_mut(), hub);
                if !no_wait {
                    say(Method::CancelOk { consumer });
                }
            }
            Method::QueueDelete { .. } => {
                end_consumer(self.queue.as_mut(), hub);
                self.queue = None;
                say(Method::QueueDeleteOk { messages: 0 });
            }
            _ => return Err(not_implemented(method.name())),
        }
        Ok(())
    }

    /// Handles a part of a body. A body in one frame is passed on without a copy; one in several is assembled.
    fn piece(&mut self, piece: &[u8], out: &mut Vec<u8>, hub: &mut Hub<'_>) -> Result<(), Malformed> {
        let Incoming::Body(missing) = self.incoming else { return Err(out_of_turn("a body")) };
        let missing = missing.checked_sub(piece.len() as u64).ok_or_else(|| out_of_turn("more of a body"))?;
        if missing > 0 {
            self.body.extend_from_slice(piece);
            self.incoming = Incoming::Body(missing);
            return Ok(());
        }
        self.incoming = Incoming::Nothing;
        let whole = std::mem::take(&mut self.body);
        let payload = match whole.is_empty() {
            true => piece,
            false => &[&whole, piece].concat(),
        };
        let qos = u8::from(self.published.is_some());
        if self.speaks_up(out) {
            return Ok(());
        }
        let answer = hub(Ask::Publish { to: Address { topic: &self.route, reply: &self.reply }, payload, qos }).answer;
        if let Some(delivery) = self.published {
            let channel = self.framing.channel;
            match answer {
                PublisherAnswer::Acknowledged => {
                    Frame::Method(channel, Method::Ack { delivery, multiple: false }).put(out)
                }
                PublisherAnswer::Refused => Frame::Method(channel, Method::Nack { delivery, flags: 0 }).put(out),
                PublisherAnswer::Nothing => {}
            }
        }
        Ok(())
    }

    /// Returns where an answer goes: the pseudo-queue stands for the address of the client that consumes it.
    fn answered_at(&self, reply: Option<&[u8]>) -> Vec<u8> {
        let own = self.queue.as_ref().filter(|_| reply == Some(DIRECT_REPLY)).and_then(|queue| queue.bindings.first());
        own.map_or_else(|| reply.unwrap_or_default().to_vec(), |address| address[1..].to_vec())
    }

    /// Sends the scripted errors for a message with this number. Returns true if the channel is closed.
    fn speaks_up(&mut self, out: &mut Vec<u8>) -> bool {
        self.came += 1;
        if let Some(block) = &self.script.block {
            if self.came == block.from {
                Frame::Method(0, Method::Blocked { reason: (&*block.words).into() }).put(out);
            } else if self.came == block.to {
                Frame::Method(0, Method::Unblocked {}).put(out);
            }
        }
        let Some(end) = self.script.end.as_ref().filter(|end| self.came >= end.after) else { return false };
        let close = Method::ChannelClose { code: end.code, text: (&*end.words).into(), class: 60, method: 40 };
        Frame::Method(self.framing.channel, close).put(out);
        true
    }
}

fn out_of_turn(what: &str) -> Malformed {
    Malformed::new(format!("{what}, out of turn"))
}

fn not_implemented(what: &str) -> Refusal {
    Refusal(NOT_IMPLEMENTED, format!("NOT_IMPLEMENTED - {what}"))
}

fn start(out: &mut Vec<u8>) {
    let (mut capabilities, mut properties) = (Vec::new(), Vec::new());
    put_flag(&mut capabilities, "publisher_confirms", true);
    put_text(&mut properties, "product", "pubmark-peer");
    put_text(&mut properties, "version", "0.0.0-peer");
    put_table(&mut properties, "capabilities", FieldTable(&capabilities));
    let (mechanisms, locales) = (&b"PLAIN"[..], &b"en_US"[..]);
    Frame::Method(0, Method::Start { major: 0, minor: 9, properties: FieldTable(&properties), mechanisms, locales })
        .put(out);
}

/// Writes the name of the route of an exchange and a routing key.
fn route(name: &mut Vec<u8>, exchange: Short<'_>, routing_key: Short<'_>) -> Result<(), Refusal> {
    if ![DEFAULT, DIRECT, TOPIC].contains(&exchange.0) {
        return Err(Refusal(404, format!("NOT_FOUND - no exchange '{}'", exchange.0.escape_ascii())));
    }
    name.clear();
    name.extend_from_slice(exchange.0);
    name.push(SEPARATOR);
    name.extend_from_slice(routing_key.0);
    Ok(())
}

/// Returns the connection's queue if it has this name.
fn own<'q>(queue: &'q mut Option<Queue>, name: Short<'_>) -> Result<&'q mut Queue, Refusal> {
    let found = queue.as_mut().filter(|queue| *queue.name == *name.0);
    found.ok_or_else(|| Refusal(404, format!("NOT_FOUND - no queue '{}'", name.0.escape_ascii())))
}

/// Returns the filters of a binding: in `amq.topic`, `a.#` is `a` and all below `a.`.
fn filters(binding: &[u8]) -> Result<impl Iterator<Item = Filter<'_>>, Refusal> {
    let (mut exact, mut below) = (binding, None);
    if let Some(key) = binding.strip_prefix(TOPIC) {
        let mut words = key;
        if let Some(front) = key.strip_suffix(b"#").filter(|front| front.ends_with(b".") || *front == [SEPARATOR]) {
            let prefix = &binding[..binding.len() - 1];
            (exact, below) = (prefix.strip_suffix(b".").unwrap_or(prefix), Some(prefix));
            words = front;
        }
        if words.iter().any(|byte| b"*#".contains(byte)) {
            return Err(not_implemented("a pattern that does not end in .#"));
        }
    }
    Ok(std::iter::once(Filter::Exact(exact)).chain(below.map(Filter::Below)))
}

fn end_consumer(queue: Option<&mut Queue>, hub: &mut Hub<'_>) {
    let Some(queue) = queue else { return };
    if queue.consumer.take().is_none() {
        return;
    }
    for filter in queue.filters() {
        hub(Ask::Unsubscribe(filter, TOKEN));
    }
}

#[cfg(test)]
mod tests;
