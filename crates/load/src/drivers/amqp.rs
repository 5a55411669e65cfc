//! AMQP 0-9-1, as RabbitMQ speaks it: a session on one channel.
//!
//! A subscriber has its own queue, or shares one with its group. The queue is bound to
//! `amq.direct` by its topic, or to `amq.topic` by its pattern; both exchanges exist in
//! every virtual host. Publishers to topics that are subscribed to by a
//! pattern use `amq.topic` as well. If the user gives a
//! prefix, the run makes its own exchange instead, because the user may have no
//! permission for these two.
//!
//! A client that reconnects opens a new channel and publishes again what the server had
//! not confirmed on the old one. The server does not connect the two, so messages that it
//! had already accepted arrive twice.
//!
//! Memory: up to 8 bytes for each unconfirmed message (`inflight`), and the body of a
//! message in several frames until it is complete.

mod settings;

pub use settings::AmqpSettings;

use super::confirms::Confirms;
use super::foreign_peer::{foreign, printable};
use super::request_part::RequestPart;
use super::topic_writer::TopicWriter;
use crate::session::{
    ClientSettings, ClientSpec, Copies, MessageRefusal, RefusalKind, Session, SessionError, SessionEvent, SettingsError,
};
use pubmark_model::header::Header;
use pubmark_model::leftovers::Leftover;
use pubmark_model::protocol::Role;
use pubmark_wire::amqp::{
    FieldTable, Frame, MAX_FRAME_BYTES, MIN_FRAME_BYTES, Method, PROTOCOL_HEADER, Short, correlated, put_content,
    reply_to,
};
use settings::CHANNEL;

/// Name of the expected peer in the error for a foreign one.
const EXPECTED: &str = "AMQP 0-9-1";
const DIRECT: &str = "amq.direct";
const TOPIC: &str = "amq.topic";
/// RabbitMQ's name for the answers of the channel that consumes it without acknowledgements. Requests
/// carry it, and the server replaces it with the address of the channel.
const DIRECT_REPLY: &str = "amq.rabbitmq.reply-to";
const NO_ARGUMENTS: FieldTable<'static> = FieldTable(&[]);
/// Close method of a client that disconnects by itself.
const DONE: Method<'static> = Method::Close { code: 200, text: Short(b"done"), class: 0, method: 0 };
/// RabbitMQ gives no reason with a basic.nack. It sends one if a queue is full and rejects what is
/// published to it, or if a queue cannot take a message.
const NACK: MessageRefusal<'static> = MessageRefusal {
    code: None,
    words: "basic.nack without a reason: RabbitMQ sends it for a full queue (overflow = reject-publish), or for one \
            that cannot take the message",
    kind: RefusalKind::Limit,
};
/// The flag on what no client can have had: a queue of one client, on its first connection.
const REDELIVERED: &str = "[AMQP basic.deliver] redelivered was set on a first delivery";
/// Maximum memory taken in advance for a body in several frames, bytes.
const BODY_AHEAD_BYTES: u64 = 1 << 20;

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// The protocol header is sent; Start has not arrived.
    Silent,
    /// StartOk is sent.
    LoggedIn,
    /// TuneOk and Open are sent.
    Opening,
    /// ChannelOpen is sent, and ConfirmSelect at QoS 1.
    Connecting,
    Connected,
    /// Close is sent: errors of the server are ignored from now on.
    Closing,
}

/// State of a message that is arriving.
#[derive(Clone, Copy)]
enum Incoming {
    Nothing,
    /// Deliver has arrived, with this number.
    Header(u64),
    /// The header has arrived as well; this many bytes of the body are missing.
    Body(u64, u64),
}

/// The routing key of a message.
#[derive(Default)]
struct RoutingKey(Vec<u8>);

/// The reason why a message is returned to its publisher.
struct Returned(String);

/// One client.
pub struct Amqp {
    state: State,
    /// The longest frame that the server takes.
    frame_bytes: u32,
    topics: TopicWriter,
    part: RequestPart,
    /// Its line of `credentials_file`.
    row: u32,
    /// True if topics of messages are matched with patterns.
    by_pattern: bool,
    /// True if nothing that is delivered can have been delivered before.
    is_fresh: bool,
    confirms: Confirms,
    incoming: Incoming,
    /// The received part of a body in several frames.
    body: Vec<u8>,
    /// The reason why the arriving message is returned to its publisher, if it is.
    returned: Option<Box<Returned>>,
    /// The last complete and unacknowledged delivery; 0 if there is none.
    acknowledge: u64,
    /// The routing key of the arriving message. Only subscribers to a pattern keep it.
    topic: Option<Box<RoutingKey>>,
}

impl Session for Amqp {
    type Settings = AmqpSettings;

    const SEPARATOR: char = '.';
    const REST: &'static str = "#";
    const HINT: &'static str =
        "it may not speak AMQP 0-9-1, or the login may be wrong, or it may expect TLS (amqps://)";

    fn settings(terms: &ClientSettings<'_>) -> Result<AmqpSettings, SettingsError> {
        AmqpSettings::read(terms)
    }

    fn new(_: &AmqpSettings, spec: &ClientSpec) -> Self {
        Amqp {
            state: State::Silent,
            frame_bytes: MIN_FRAME_BYTES,
            topics: TopicWriter::new(spec, Self::SEPARATOR),
            part: RequestPart::of(spec),
            row: spec.row,
            by_pattern: spec.wild,
            is_fresh: spec.group.is_none(),
            confirms: Confirms::new(),
            incoming: Incoming::Nothing,
            body: Vec::new(),
            returned: None,
            acknowledge: 0,
            topic: (spec.wild && spec.role == Role::Subscriber).then(Box::default),
        }
    }

    fn open(&mut self, _: &AmqpSettings, _: &ClientSpec, out: &mut Vec<u8>) {
        out.extend_from_slice(PROTOCOL_HEADER);
    }

    fn resume(&mut self, settings: &AmqpSettings, spec: &ClientSpec) {
        let earlier = std::mem::replace(self, Self::new(settings, spec));
        self.confirms = earlier.confirms.reconnected();
        self.is_fresh = false;
    }

    fn resend(&mut self, settings: &AmqpSettings, copies: &mut dyn Copies, out: &mut Vec<u8>) -> bool {
        let Some(sequence) = self.confirms.next_again() else { return false };
        self.publish(settings, copies.message(sequence), sequence, out)
    }

    fn input(
        &mut self,
        settings: &AmqpSettings,
        bytes: &[u8],
        out: &mut Vec<u8>,
        heard: &mut dyn FnMut(SessionEvent<'_>),
    ) -> Result<usize, SessionError> {
        let mut taken = 0;
        loop {
            let rest = &bytes[taken..];
            let frame = Frame::decode(rest).map_err(|why| foreign(EXPECTED, rest, &why.0))?;
            let Some((frame, frame_bytes)) = frame else { break };
            match frame {
                Frame::Method(_, method) => self.method(settings, &method, out, heard)?,
                Frame::Header { body_bytes, properties, .. } => {
                    if self.part.to().is_some() {
                        self.part.asked(reply_to(properties).map_err(|why| foreign(EXPECTED, rest, &why.0))?);
                    }
                    self.header(body_bytes, heard)?;
                }
                Frame::Body(_, piece) => self.piece(piece, heard)?,
                Frame::Heartbeat => {}
                Frame::Refused([id, major, minor, revision]) => {
                    return Err(SessionError::Foreign(format!(
                        "the server refuses AMQP 0-9-1 and offers version {id} {major}-{minor}-{revision}"
                    )));
                }
            }
            taken += frame_bytes;
        }
        // Answers come without acknowledgements.
        if self.acknowledge > 0 && settings.qos > 0 && self.part.reply().is_none() {
            put(out, Method::Ack { delivery: self.acknowledge, multiple: true });
        }
        self.acknowledge = 0;
        Ok(taken)
    }

    /// Returns the announced length. Frames are short; the body of a message consists of
    /// several.
    fn announced(&self, rest: &[u8]) -> u64 {
        let missing = if let Incoming::Body(_, missing_bytes) = self.incoming { missing_bytes } else { 0 };
        (self.body.len() + rest.len()) as u64 + missing
    }

    fn subscribe(&mut self, settings: &AmqpSettings, spec: &ClientSpec, out: &mut Vec<u8>) {
        let consumer = Short::from(&*spec.name);
        if let Some(queue) = self.answers_at(settings) {
            let (reserved, queue, arguments) = (0, Short::from(queue), NO_ARGUMENTS);
            if settings.own_reply_queue {
                let flags = Method::EXCLUSIVE | Method::AUTO_DELETE;
                put(out, Method::QueueDeclare { reserved, queue, flags, arguments });
            }
            put(out, Method::Consume { reserved, queue, consumer, flags: Method::NO_ACK, arguments });
            return;
        }
        let name = queue(settings, spec);
        let (queue, reserved) = (Short::from(&*name), 0);
        let flags = match (settings.durable, &spec.group) {
            (true, _) => Method::DURABLE,
            (false, None) => Method::EXCLUSIVE | Method::AUTO_DELETE,
            (false, Some(_)) => Method::AUTO_DELETE,
        };
        let exchange = self.exchange(settings);
        put(out, Method::QueueDeclare { reserved, queue, flags, arguments: FieldTable(&settings.queue_arguments) });
        for topic in spec.hears(Self::SEPARATOR) {
            let (routing_key, arguments) = (Short::from(&*topic), NO_ARGUMENTS);
            put(out, Method::QueueBind { reserved, queue, exchange, routing_key, no_wait: false, arguments });
        }
        if settings.qos > 0 {
            let prefetch_messages = settings.prefetch;
            put(out, Method::Qos { prefetch_bytes: 0, prefetch_messages, global: false });
        }
        let flags = if settings.qos > 0 { 0 } else { Method::NO_ACK };
        let arguments = FieldTable(&settings.consumer_arguments);
        put(out, Method::Consume { reserved, queue, consumer, flags, arguments });
    }

    fn publish(&mut self, settings: &AmqpSettings, message: &[u8], sequence: u32, out: &mut Vec<u8>) -> bool {
        if settings.qos > 0 && !self.confirms.push(sequence, settings.inflight) {
            return false;
        }
        let exchange = if self.part.to().is_some() { "".into() } else { self.exchange(settings) };
        let routing_key = Short::from(self.part.to().unwrap_or_else(|| self.topics.of(sequence)));
        put(out, Method::Publish { reserved: 0, exchange, routing_key, flags: 0 });
        let properties = match self.part.correlation(message) {
            Some(correlation) => &requests_properties(settings, correlation, self.answers_at(settings)),
            None => &settings.message_properties,
        };
        put_content(out, CHANNEL, properties, message, self.frame_bytes);
        true
    }

    fn keep_alive(&mut self, _: &AmqpSettings, out: &mut Vec<u8>) {
        Frame::Heartbeat.put(out);
    }

    fn keep_alive_s(settings: &AmqpSettings) -> u32 {
        settings.heartbeat_s.into()
    }

    fn close(&mut self, settings: &AmqpSettings, spec: &ClientSpec, out: &mut Vec<u8>) {
        if settings.durable && spec.role == Role::Subscriber && self.state == State::Connected {
            // In a group, the last client removes the queue; the server answers the others that
            // it is in use.
            put(out, Method::Cancel { consumer: Short::from(&*spec.name), no_wait: true });
            let name = queue(settings, spec);
            put(out, Method::QueueDelete { reserved: 0, queue: Short::from(&*name), flags: Method::IF_UNUSED });
        }
        self.state = State::Closing;
        Frame::Method(0, DONE).put(out);
    }

    /// The queue of a group is removed with its last consumer, but one that never had a
    /// consumer stays.
    fn leaves(settings: &AmqpSettings, spec: &ClientSpec) -> Vec<Leftover> {
        let stays = spec.role == Role::Subscriber && (settings.durable || spec.group.is_some());
        let queue = stays.then(|| Leftover::Queue(queue(settings, spec)));
        queue.into_iter().chain(settings.exchange.clone().map(Leftover::Exchange)).collect()
    }

    /// Removes the queue even if it has consumers: the run is over.
    fn remove(&mut self, _: &AmqpSettings, thing: &Leftover, _: u32, out: &mut Vec<u8>) -> bool {
        let delete = match thing {
            Leftover::Queue(name) => Method::QueueDelete { reserved: 0, queue: Short::from(&**name), flags: 0 },
            Leftover::Exchange(name) => {
                Method::ExchangeDelete { reserved: 0, exchange: Short::from(&**name), flags: 0 }
            }
            Leftover::Session(_)
            | Leftover::Retained(_)
            | Leftover::Stream(_)
            | Leftover::Group(_)
            | Leftover::Topic(_) => return false,
        };
        put(out, delete);
        true
    }

    fn unacknowledged(&self) -> usize {
        self.confirms.unacknowledged()
    }
}

impl Amqp {
    fn method(
        &mut self,
        settings: &AmqpSettings,
        method: &Method<'_>,
        out: &mut Vec<u8>,
        heard: &mut dyn FnMut(SessionEvent<'_>),
    ) -> Result<(), SessionError> {
        if !matches!(self.incoming, Incoming::Nothing) {
            return Err(out_of_turn(&format!("{} within a message", method.name())));
        }
        match *method {
            Method::Deliver { delivery, redelivered, routing_key, .. } => {
                if redelivered && self.is_fresh {
                    heard(SessionEvent::Violation(REDELIVERED));
                }
                self.incoming = Incoming::Header(delivery);
                if let Some(topic) = &mut self.topic {
                    topic.0.clear();
                    topic.0.extend_from_slice(routing_key.0);
                }
            }
            Method::Ack { delivery, multiple } => {
                let known = self.confirms.settle(delivery, multiple, |n| heard(SessionEvent::Acknowledged(n)));
                return known.then_some(()).ok_or_else(|| out_of_turn("a confirm of what was never published"));
            }
            Method::Nack { delivery, flags } => {
                let known = self.confirms.settle(delivery, flags & 1 == 1, |n| heard(SessionEvent::Refused(n, NACK)));
                return known.then_some(()).ok_or_else(|| out_of_turn("a nack of what was never published"));
            }
            Method::ConsumeOk { .. } => heard(SessionEvent::Subscribed),
            // A client that disconnects ignores it.
            Method::QueueDeleteOk { .. } if self.state == State::Closing => {}
            Method::QueueDeleteOk { .. } | Method::ExchangeDeleteOk {} => heard(SessionEvent::Acknowledged(0)),
            Method::Close { code, text, .. } => {
                Frame::Method(0, Method::CloseOk {}).put(out);
                return Err(closed("connection", code, text));
            }
            Method::ChannelClose { code, text, .. } => {
                put(out, Method::ChannelCloseOk {});
                if self.state != State::Closing {
                    return Err(closed("channel", code, text));
                }
            }
            Method::Cancel { .. } if self.state == State::Closing => {}
            Method::Cancel { .. } => {
                return Err(SessionError::Busy("the server ended the subscription: its queue is gone".into()));
            }
            Method::ChannelFlow { active } => put(out, Method::ChannelFlowOk { active }),
            Method::Blocked { reason } => heard(SessionEvent::Blocked(&String::from_utf8_lossy(reason.0))),
            Method::Unblocked {} => heard(SessionEvent::Unblocked),
            // A message that no queue takes. The server sends it unasked, and its content
            // follows.
            Method::Return { code, text, .. } => {
                self.returned = Some(Box::new(Returned(format!("basic.return: {code} {}", printable(text.0)))));
                self.incoming = Incoming::Header(0);
            }
            // Steps on the way to ConsumeOk, and answers to Close.
            Method::QueueDeclareOk { .. } | Method::QueueBindOk {} | Method::QosOk {} | Method::CloseOk {} => {}
            _ => return self.greeting(settings, method, out, heard),
        }
        Ok(())
    }

    /// Handles the steps from the protocol header to an open channel.
    fn greeting(
        &mut self,
        settings: &AmqpSettings,
        method: &Method<'_>,
        out: &mut Vec<u8>,
        heard: &mut dyn FnMut(SessionEvent<'_>),
    ) -> Result<(), SessionError> {
        self.state = match (self.state, *method) {
            (State::Silent, Method::Start { properties, mechanisms, .. }) => {
                if !mechanisms.split(|byte| *byte == b' ').any(|mechanism| mechanism == b"PLAIN") {
                    let offered = printable(mechanisms);
                    return Err(SessionError::Denied(format!(
                        "the server takes no PLAIN login, only {offered}: enable it"
                    )));
                }
                let text = |name| properties.text(name).map(String::from_utf8_lossy);
                if let (Some(product), Some(version)) = (text("product"), text("version")) {
                    heard(SessionEvent::Server(&format!("{product} {version}")));
                }
                settings.log_in(self.row, out);
                State::LoggedIn
            }
            (State::LoggedIn, Method::Tune { frame_bytes, .. }) => {
                self.frame_bytes = if frame_bytes == 0 { MAX_FRAME_BYTES } else { frame_bytes.min(MAX_FRAME_BYTES) };
                if self.frame_bytes < MIN_FRAME_BYTES {
                    return Err(out_of_turn(&format!("frames of {frame_bytes} bytes")));
                }
                // Beside the table, a header's frame has less than 600 bytes.
                if settings.headers.len() + 600 > self.frame_bytes as usize {
                    return Err(SessionError::Denied(format!(
                        "the server takes frames of {} bytes at most, and `headers` do not fit into one: write fewer",
                        self.frame_bytes
                    )));
                }
                let (frame_bytes, heartbeat_s) = (self.frame_bytes, settings.heartbeat_s);
                Frame::Method(0, Method::TuneOk { channel_max: CHANNEL, frame_bytes, heartbeat_s }).put(out);
                Frame::Method(0, settings.open()).put(out);
                State::Opening
            }
            (State::Opening, Method::OpenOk { .. }) => {
                put(out, Method::ChannelOpen { reserved: "".into() });
                settings.make_exchange(self.usual_exchange().strip_prefix("amq.").unwrap_or_default(), out);
                if settings.qos > 0 {
                    put(out, Method::ConfirmSelect { no_wait: false });
                }
                State::Connecting
            }
            // The last answer ends this state.
            (State::Connecting, Method::ChannelOpenOk { .. }) if settings.qos > 0 || settings.exchange.is_some() => {
                State::Connecting
            }
            (State::Connecting, Method::ExchangeDeclareOk {}) if settings.qos > 0 => State::Connecting,
            (
                State::Connecting,
                Method::ChannelOpenOk { .. } | Method::ExchangeDeclareOk {} | Method::ConfirmSelectOk {},
            ) => {
                heard(SessionEvent::Connected);
                State::Connected
            }
            _ => return Err(out_of_turn(method.name())),
        };
        Ok(())
    }

    /// Returns the queue from which the client takes its answers; `None` if it does not ask.
    fn answers_at(&self, settings: &AmqpSettings) -> Option<&str> {
        self.part.reply().map(|own| if settings.own_reply_queue { own } else { DIRECT_REPLY })
    }

    fn usual_exchange(&self) -> &'static str {
        if self.by_pattern { TOPIC } else { DIRECT }
    }

    fn exchange<'a>(&self, settings: &'a AmqpSettings) -> Short<'a> {
        settings.exchange.as_deref().unwrap_or(self.usual_exchange()).into()
    }

    fn header(&mut self, body_bytes: u64, heard: &mut dyn FnMut(SessionEvent<'_>)) -> Result<(), SessionError> {
        let Incoming::Header(delivery) = self.incoming else { return Err(out_of_turn("a content header")) };
        self.incoming = Incoming::Body(delivery, body_bytes);
        if body_bytes == 0 { self.piece(&[], heard) } else { Ok(()) }
    }

    /// Passes on a body in one frame without a copy; assembles a body in several frames.
    fn piece(&mut self, piece: &[u8], heard: &mut dyn FnMut(SessionEvent<'_>)) -> Result<(), SessionError> {
        let Incoming::Body(delivery, missing_bytes) = self.incoming else { return Err(out_of_turn("a body")) };
        let Some(missing_bytes) = missing_bytes.checked_sub(piece.len() as u64) else {
            return Err(out_of_turn("a body that is longer than its header says"));
        };
        if missing_bytes > 0 {
            if self.body.is_empty() {
                self.body.reserve((piece.len() as u64 + missing_bytes).min(BODY_AHEAD_BYTES) as usize);
            }
            self.body.extend_from_slice(piece);
            self.incoming = Incoming::Body(delivery, missing_bytes);
            return Ok(());
        }
        // Freed at once: thousands of clients would keep unused memory.
        let mut whole = std::mem::take(&mut self.body);
        let message = if whole.is_empty() {
            piece
        } else {
            whole.extend_from_slice(piece);
            &whole
        };
        let topic = self.topic.as_deref().map_or(&[][..], |topic| &topic.0);
        match self.returned.take() {
            None => heard(SessionEvent::Message { topic, payload: message, is_retained: false }),
            Some(returned) => {
                let refusal = MessageRefusal { code: None, words: &returned.0, kind: RefusalKind::Final };
                let header = Header::read(message);
                header.into_iter().for_each(|header| heard(SessionEvent::Refused(header.sequence, refusal)));
            }
        }
        self.incoming = Incoming::Nothing;
        self.acknowledge = delivery;
        Ok(())
    }
}

fn put(out: &mut Vec<u8>, method: Method<'_>) {
    Frame::Method(CHANNEL, method).put(out);
}

/// Returns the properties of a request or of an answer: they are the same but for the address.
fn requests_properties(settings: &AmqpSettings, correlation: &[u8], answers_at: Option<&str>) -> Vec<u8> {
    let number = correlation.iter().fold(0, |number: u64, byte| number << 8 | u64::from(*byte));
    correlated(FieldTable(&settings.headers), &format!("{number:016x}"), answers_at)
}

/// Returns the name of a subscriber's queue. Members of a group share one for each topic.
fn queue(settings: &AmqpSettings, spec: &ClientSpec) -> String {
    let prefix = &settings.prefix;
    match &spec.group {
        None => format!("{prefix}{}", spec.name),
        // The topic begins with the prefix.
        Some(group) => format!("{prefix}{group}.{}", spec.topic.strip_prefix(prefix.as_str()).unwrap_or(&spec.topic)),
    }
}

fn out_of_turn(what: &str) -> SessionError {
    SessionError::Foreign(format!("the server breaks AMQP 0-9-1: {what}, out of turn"))
}

/// Makes the error for a reply code of the server. Source: the specification's list, and
/// what RabbitMQ writes for each.
fn closed(what: &str, code: u16, text: Short<'_>) -> SessionError {
    let text = String::from_utf8_lossy(text.0);
    let said = format!("the server closes the {what}: {code} {text}");
    match code {
        _ if text.contains("limit") => SessionError::Limit(said),
        506 => SessionError::Limit(said),
        // On a connection, it is the login. RabbitMQ's text ends in a full stop.
        403 if what == "connection" => {
            SessionError::Denied(format!("{}: check user and password", said.trim_end_matches('.')))
        }
        // Content too large.
        311 | 402..=404 | 406 | 530 => SessionError::Denied(said),
        // Forced by an operator, or an error of the server itself. Also a queue that
        // belongs to a connection which the server does not yet know to be dead.
        320 | 405 | 541 => SessionError::Busy(said),
        _ => SessionError::Foreign(said),
    }
}

#[cfg(test)]
mod tests;
