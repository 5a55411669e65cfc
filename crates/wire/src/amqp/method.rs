//! Methods: the words of the protocol, one line each.

use super::table::{Field, FieldTable, Fields, Short};
use crate::Malformed;

/// Makes the methods from a list: class, number, and fields in the order in
/// which they are sent.
macro_rules! methods {
    ($($(#[$doc:meta])* $name:ident ($class:literal, $number:literal) {
        $($(#[$field_doc:meta])* $field:ident: $type:ty,)*
    })*) => {
        /// A word of the protocol. What is unused and always zero is written by
        /// whoever makes one, as it would be sent.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Method<'a> {
            $($(#[$doc])* $name { $($(#[$field_doc])* $field: $type,)* },)*
        }

        impl<'a> Method<'a> {
            /// Reads what a method frame carries.
            pub(super) fn decode(carried: &'a [u8]) -> Result<Self, Malformed> {
                let mut fields = Fields(carried);
                let method = match (u16::take(&mut fields)?, u16::take(&mut fields)?) {
                    $(($class, $number) => Method::$name { $($field: Field::take(&mut fields)?,)* },)*
                    (class, number) => {
                        return Err(Malformed::new(format!("method {class}.{number} is not known here")));
                    }
                };
                match fields.0 {
                    [] => Ok(method),
                    _ => Err(Malformed::new("something follows the fields of a method")),
                }
            }

            /// Appends what a method frame carries.
            pub(super) fn put(&self, out: &mut Vec<u8>) {
                match self {
                    $(Method::$name { $($field,)* } => {
                        <u16 as Field>::put(&$class, out);
                        <u16 as Field>::put(&$number, out);
                        $($field.put(out);)*
                    })*
                }
            }

            /// Its name.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Method::$name { .. } => stringify!($name),)*
                }
            }
        }
    };
}

methods! {
    /// The server greets.
    Start(10, 10) {
        /// Version of the protocol: 0.
        major: u8,
        /// And 9.
        minor: u8,
        /// What the server is: product, version, capabilities.
        properties: FieldTable<'a>,
        /// Ways to log in, with spaces between them.
        mechanisms: &'a [u8],
        /// Languages, with spaces between them.
        locales: &'a [u8],
    }
    /// The client logs in.
    StartOk(10, 11) {
        /// What the client is.
        properties: FieldTable<'a>,
        /// The way to log in: `PLAIN`.
        mechanism: Short<'a>,
        /// User and password, each after a zero.
        response: &'a [u8],
        /// The language: `en_US`.
        locale: Short<'a>,
    }
    /// The server's limits.
    Tune(10, 30) {
        /// Channels; 0 is no limit.
        channel_max: u16,
        /// Bytes of a frame; 0 is no limit.
        frame_bytes: u32,
        /// Time between heartbeats, s; 0 is none.
        heartbeat_s: u16,
    }
    /// The client's choice within them.
    TuneOk(10, 31) {
        /// Channels; 0 is no limit.
        channel_max: u16,
        /// Bytes of a frame; 0 is no limit.
        frame_bytes: u32,
        /// Time between heartbeats, s; 0 is none.
        heartbeat_s: u16,
    }
    /// Enters a virtual host.
    Open(10, 40) {
        /// Its name.
        vhost: Short<'a>,
        /// Unused: empty.
        reserved_1: Short<'a>,
        /// Unused: false.
        reserved_2: bool,
    }
    /// Answers Open.
    OpenOk(10, 41) {
        /// Unused.
        reserved: Short<'a>,
    }
    /// Either side ends the connection.
    Close(10, 50) {
        /// Why: 200 is "no fault".
        code: u16,
        /// Why, in words.
        text: Short<'a>,
        /// Class of the method that is at fault, or 0.
        class: u16,
        /// Number of the method that is at fault, or 0.
        method: u16,
    }
    /// Answers Close.
    CloseOk(10, 51) {}
    /// The server is short of something, and reads no more from this connection.
    Blocked(10, 60) {
        /// Of what.
        reason: Short<'a>,
    }
    /// It reads again.
    Unblocked(10, 61) {}
    /// Opens a channel.
    ChannelOpen(20, 10) {
        /// Unused: empty.
        reserved: Short<'a>,
    }
    /// Answers ChannelOpen.
    ChannelOpenOk(20, 11) {
        /// Unused.
        reserved: &'a [u8],
    }
    /// The server asks to stop or to go on publishing.
    ChannelFlow(20, 20) {
        /// Whether to go on.
        active: bool,
    }
    /// Answers ChannelFlow.
    ChannelFlowOk(20, 21) {
        /// Whether it goes on.
        active: bool,
    }
    /// Either side ends the channel.
    ChannelClose(20, 40) {
        /// Why.
        code: u16,
        /// Why, in words.
        text: Short<'a>,
        /// Class of the method that is at fault, or 0.
        class: u16,
        /// Number of the method that is at fault, or 0.
        method: u16,
    }
    /// Answers ChannelClose.
    ChannelCloseOk(20, 41) {}
    /// Makes an exchange, if it is not there.
    ExchangeDeclare(40, 10) {
        /// Unused: 0.
        reserved: u16,
        /// Its name.
        exchange: Short<'a>,
        /// `direct` or `topic`.
        kind: Short<'a>,
        /// [`Method::DURABLE`].
        flags: u8,
        /// Extensions.
        arguments: FieldTable<'a>,
    }
    /// Answers ExchangeDeclare.
    ExchangeDeclareOk(40, 11) {}
    /// Removes an exchange.
    ExchangeDelete(40, 20) {
        /// Unused: 0.
        reserved: u16,
        /// Its name.
        exchange: Short<'a>,
        /// [`Method::IF_UNUSED`].
        flags: u8,
    }
    /// Answers ExchangeDelete.
    ExchangeDeleteOk(40, 21) {}
    /// Makes a queue, if it is not there.
    QueueDeclare(50, 10) {
        /// Unused: 0.
        reserved: u16,
        /// Its name.
        queue: Short<'a>,
        /// [`Method::DURABLE`], [`Method::EXCLUSIVE`], [`Method::AUTO_DELETE`].
        flags: u8,
        /// Extensions.
        arguments: FieldTable<'a>,
    }
    /// Answers QueueDeclare.
    QueueDeclareOk(50, 11) {
        /// The queue's name.
        queue: Short<'a>,
        /// Messages that are ready in it.
        messages: u32,
        /// Its consumers.
        consumers: u32,
    }
    /// Makes messages of an exchange go to a queue.
    QueueBind(50, 20) {
        /// Unused: 0.
        reserved: u16,
        /// The queue.
        queue: Short<'a>,
        /// The exchange.
        exchange: Short<'a>,
        /// Those with this routing key, or those whose key matches this pattern.
        routing_key: Short<'a>,
        /// Whether no answer is wanted.
        no_wait: bool,
        /// Extensions.
        arguments: FieldTable<'a>,
    }
    /// Answers QueueBind.
    QueueBindOk(50, 21) {}
    /// Removes a queue.
    QueueDelete(50, 40) {
        /// Unused: 0.
        reserved: u16,
        /// Its name.
        queue: Short<'a>,
        /// [`Method::IF_UNUSED`].
        flags: u8,
    }
    /// Answers QueueDelete.
    QueueDeleteOk(50, 41) {
        /// Messages that went with it.
        messages: u32,
    }
    /// Limits what a consumer may hold unacknowledged.
    Qos(60, 10) {
        /// Bytes; 0 is no limit. RabbitMQ knows no other.
        prefetch_bytes: u32,
        /// Messages; 0 is no limit.
        prefetch_messages: u16,
        /// Whether the limit is the whole channel's.
        global: bool,
    }
    /// Answers Qos.
    QosOk(60, 11) {}
    /// Asks for a queue's messages.
    Consume(60, 20) {
        /// Unused: 0.
        reserved: u16,
        /// The queue.
        queue: Short<'a>,
        /// The consumer's name, unique within the channel.
        consumer: Short<'a>,
        /// [`Method::NO_ACK`].
        flags: u8,
        /// Extensions.
        arguments: FieldTable<'a>,
    }
    /// Answers Consume.
    ConsumeOk(60, 21) {
        /// The consumer's name.
        consumer: Short<'a>,
    }
    /// A client ends a consumer; or the server does, because its queue is gone.
    Cancel(60, 30) {
        /// The consumer's name.
        consumer: Short<'a>,
        /// Whether no answer is wanted.
        no_wait: bool,
    }
    /// Answers Cancel.
    CancelOk(60, 31) {
        /// The consumer's name.
        consumer: Short<'a>,
    }
    /// Publishes a message: header and body follow.
    Publish(60, 40) {
        /// Unused: 0.
        reserved: u16,
        /// Where to.
        exchange: Short<'a>,
        /// The routing key.
        routing_key: Short<'a>,
        /// Bits: 1 mandatory, 2 immediate.
        flags: u8,
    }
    /// A message that could not be routed comes back: header and body follow.
    Return(60, 50) {
        /// Why.
        code: u16,
        /// Why, in words.
        text: Short<'a>,
        /// Where it was published to.
        exchange: Short<'a>,
        /// Its routing key.
        routing_key: Short<'a>,
    }
    /// A message for a consumer: header and body follow.
    Deliver(60, 60) {
        /// The consumer's name.
        consumer: Short<'a>,
        /// The delivery's number within the channel, from 1.
        delivery: u64,
        /// Whether it was delivered before.
        redelivered: bool,
        /// Where it was published to.
        exchange: Short<'a>,
        /// Its routing key.
        routing_key: Short<'a>,
    }
    /// From a client: the deliveries are dealt with. From a server: the
    /// published messages are taken.
    Ack(60, 80) {
        /// Number of the delivery, or of the published message, from 1.
        delivery: u64,
        /// Whether all before it are meant as well.
        multiple: bool,
    }
    /// The contrary of Ack.
    Nack(60, 120) {
        /// Number of the delivery, or of the published message, from 1.
        delivery: u64,
        /// Bits: 1 all before it are meant as well, 2 deliver again.
        flags: u8,
    }
    /// Asks for confirms of what is published on the channel.
    ConfirmSelect(85, 10) {
        /// Whether no answer is wanted.
        no_wait: bool,
    }
    /// Answers ConfirmSelect.
    ConfirmSelectOk(85, 11) {}
}

impl Method<'_> {
    /// A queue that outlives the server.
    pub const DURABLE: u8 = 2;
    /// A queue of one connection, which it does not outlive.
    pub const EXCLUSIVE: u8 = 4;
    /// A queue that does not outlive its last consumer.
    pub const AUTO_DELETE: u8 = 8;
    /// A queue is removed only if nobody consumes from it.
    pub const IF_UNUSED: u8 = 1;
    /// Deliveries need no Ack.
    pub const NO_ACK: u8 = 2;
}
