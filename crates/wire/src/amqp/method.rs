//! The methods of the protocol, one line each.

use super::table::{Field, FieldTable, Fields, Short};
use crate::Malformed;

/// Defines the methods from a list: class, number, and fields in the order in which they are sent.
macro_rules! methods {
    ($($(#[$doc:meta])* $name:ident ($class:literal, $number:literal) {
        $($(#[$field_doc:meta])* $field:ident: $type:ty,)*
    })*) => {
        /// A method of the protocol. The caller sets unused fields, which are always zero, as they
        /// are sent.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Method<'a> {
            $($(#[$doc])* $name { $($(#[$field_doc])* $field: $type,)* },)*
        }

        impl<'a> Method<'a> {
            /// Reads the content of a method frame.
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

            /// Appends the content of a method frame.
            pub(super) fn put(&self, out: &mut Vec<u8>) {
                match self {
                    $(Method::$name { $($field,)* } => {
                        <u16 as Field>::put(&$class, out);
                        <u16 as Field>::put(&$number, out);
                        $($field.put(out);)*
                    })*
                }
            }

            /// Returns its name.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Method::$name { .. } => stringify!($name),)*
                }
            }
        }
    };
}

methods! {
    /// Sent by the server first.
    Start(10, 10) {
        /// Major version of the protocol: 0.
        major: u8,
        /// Minor version of the protocol: 9.
        minor: u8,
        /// Product, version and capabilities of the server.
        properties: FieldTable<'a>,
        /// Login mechanisms, with spaces between them.
        mechanisms: &'a [u8],
        /// Languages, with spaces between them.
        locales: &'a [u8],
    }
    /// Logs the client in.
    StartOk(10, 11) {
        /// Product, version and capabilities of the client.
        properties: FieldTable<'a>,
        /// The login mechanism: `PLAIN`.
        mechanism: Short<'a>,
        /// User and password, each after a zero byte.
        response: &'a [u8],
        /// The language: `en_US`.
        locale: Short<'a>,
    }
    /// Announces the server's limits.
    Tune(10, 30) {
        /// Channels; 0 means no limit.
        channel_max: u16,
        /// Bytes of a frame; 0 means no limit.
        frame_bytes: u32,
        /// Time between heartbeats, s; 0 means none.
        heartbeat_s: u16,
    }
    /// Announces the client's choice within the server's limits.
    TuneOk(10, 31) {
        /// Channels; 0 means no limit.
        channel_max: u16,
        /// Bytes of a frame; 0 means no limit.
        frame_bytes: u32,
        /// Time between heartbeats, s; 0 means none.
        heartbeat_s: u16,
    }
    /// Opens a virtual host.
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
    /// Closes the connection; sent by either side.
    Close(10, 50) {
        /// Reason code: 200 is "no fault".
        code: u16,
        /// Reason text.
        text: Short<'a>,
        /// Class of the method that caused it, or 0.
        class: u16,
        /// Number of the method that caused it, or 0.
        method: u16,
    }
    /// Answers Close.
    CloseOk(10, 51) {}
    /// Reports that the server is short of a resource, and stops reading from this connection.
    Blocked(10, 60) {
        /// The resource.
        reason: Short<'a>,
    }
    /// Reports that the server reads again.
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
    /// Asks the client to stop or to resume publishing.
    ChannelFlow(20, 20) {
        /// True to resume.
        active: bool,
    }
    /// Answers ChannelFlow.
    ChannelFlowOk(20, 21) {
        /// True if the sender continues.
        active: bool,
    }
    /// Closes the channel; sent by either side.
    ChannelClose(20, 40) {
        /// Reason code.
        code: u16,
        /// Reason text.
        text: Short<'a>,
        /// Class of the method that caused it, or 0.
        class: u16,
        /// Number of the method that caused it, or 0.
        method: u16,
    }
    /// Answers ChannelClose.
    ChannelCloseOk(20, 41) {}
    /// Creates an exchange if it does not exist.
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
    /// Creates a queue if it does not exist.
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
        /// Number of messages that are ready in it.
        messages: u32,
        /// Number of its consumers.
        consumers: u32,
    }
    /// Routes messages of an exchange to a queue.
    QueueBind(50, 20) {
        /// Unused: 0.
        reserved: u16,
        /// The queue.
        queue: Short<'a>,
        /// The exchange.
        exchange: Short<'a>,
        /// Routing key of the messages, or a pattern for it.
        routing_key: Short<'a>,
        /// True if no answer is expected.
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
        /// Number of messages that were removed with it.
        messages: u32,
    }
    /// Limits the unacknowledged messages of a consumer.
    Qos(60, 10) {
        /// Bytes; 0 means no limit. RabbitMQ supports only 0.
        prefetch_bytes: u32,
        /// Messages; 0 means no limit.
        prefetch_messages: u16,
        /// True if the limit applies to the whole channel.
        global: bool,
    }
    /// Answers Qos.
    QosOk(60, 11) {}
    /// Subscribes to a queue's messages.
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
    /// Ends a consumer; sent by a client, or by the server if the queue was removed.
    Cancel(60, 30) {
        /// The consumer's name.
        consumer: Short<'a>,
        /// True if no answer is expected.
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
        /// The exchange.
        exchange: Short<'a>,
        /// The routing key.
        routing_key: Short<'a>,
        /// Bits: 1 mandatory, 2 immediate.
        flags: u8,
    }
    /// Returns a message that could not be routed: header and body follow.
    Return(60, 50) {
        /// Reason code.
        code: u16,
        /// Reason text.
        text: Short<'a>,
        /// The exchange that it was published to.
        exchange: Short<'a>,
        /// Its routing key.
        routing_key: Short<'a>,
    }
    /// Delivers a message to a consumer: header and body follow.
    Deliver(60, 60) {
        /// The consumer's name.
        consumer: Short<'a>,
        /// The delivery's number within the channel, from 1.
        delivery: u64,
        /// True if it was delivered before.
        redelivered: bool,
        /// The exchange that it was published to.
        exchange: Short<'a>,
        /// Its routing key.
        routing_key: Short<'a>,
    }
    /// From a client: acknowledges deliveries. From a server: confirms published messages.
    Ack(60, 80) {
        /// Number of the delivery, or of the published message, from 1.
        delivery: u64,
        /// True if it includes all before it.
        multiple: bool,
    }
    /// Rejects deliveries or published messages.
    Nack(60, 120) {
        /// Number of the delivery, or of the published message, from 1.
        delivery: u64,
        /// Bits: 1 includes all before it, 2 requests a new delivery.
        flags: u8,
    }
    /// Requests confirms of messages published on the channel.
    ConfirmSelect(85, 10) {
        /// True if no answer is expected.
        no_wait: bool,
    }
    /// Answers ConfirmSelect.
    ConfirmSelectOk(85, 11) {}
}

impl Method<'_> {
    /// Flag: the queue outlives the server.
    pub const DURABLE: u8 = 2;
    /// Flag: the queue belongs to one connection, and ends with it.
    pub const EXCLUSIVE: u8 = 4;
    /// Flag: the queue ends with its last consumer.
    pub const AUTO_DELETE: u8 = 8;
    /// Flag: the queue is removed only if it has no consumer.
    pub const IF_UNUSED: u8 = 1;
    /// Flag: deliveries need no Ack.
    pub const NO_ACK: u8 = 2;
}
