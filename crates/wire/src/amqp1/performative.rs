//! The performatives of frames, one list each (parts 2 and 5), and the lists within them.

use super::value::{Binary, Field, Symbol, Symbols, Text, Value, put_described};
use crate::Malformed;

/// Defines the performatives: descriptor, and fields in the order in which they are sent. Fields after the last one
/// that is named here are neither read nor sent.
macro_rules! performatives {
    ($($(#[$doc:meta])* $name:ident ($descriptor:literal) {
        $($(#[$field_doc:meta])* $field:ident: $type:ty,)*
    })*) => {
        /// The meaning of a frame.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Performative<'a> {
            $($(#[$doc])* $name { $($(#[$field_doc])* $field: $type,)* },)*
        }

        impl<'a> Performative<'a> {
            pub(super) fn of(value: Value<'a>) -> Result<Self, Malformed> {
                let mut fields = value.list()?;
                match value.descriptor {
                    $(Some($descriptor) => Ok(Performative::$name { $($field: fields.next()?,)* }),)*
                    Some(other) => Err(Malformed::new(format!("no performative is 0x{other:02x}"))),
                    None => Err(Malformed::new("a frame without a performative")),
                }
            }

            pub(super) fn put(&self, out: &mut Vec<u8>) {
                match self {
                    $(Performative::$name { $($field,)* } => {
                        let count = [$(stringify!($field),)*].len() as u32;
                        put_described(out, $descriptor, count, |out| { $($field.put(out);)* });
                    })*
                }
            }

            /// Returns its name.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Performative::$name { .. } => stringify!($name),)*
                }
            }
        }
    };
}

performatives! {
    /// Opens a connection.
    Open(0x10) {
        /// Name of the client or the server.
        container: Text<'a>,
        /// Name by which the client knows the server.
        hostname: Option<Text<'a>>,
        /// Longest frame that the sender takes, bytes; none: no limit.
        frame_bytes: Option<u32>,
        /// Highest number of a session.
        channel_max: Option<u16>,
        /// Silence after which the sender ends the connection, ms.
        idle_ms: Option<u32>,
    }
    /// Begins a session.
    Begin(0x11) {
        /// The number that the other side has given it.
        remote_channel: Option<u16>,
        /// Number of the next transfer.
        next_outgoing: u32,
        /// Transfers that the sender takes.
        incoming_window: u32,
        /// Transfers that the sender has.
        outgoing_window: u32,
    }
    /// Attaches a link to a session.
    Attach(0x12) {
        /// Its name.
        name: Text<'a>,
        /// Its number in the session.
        handle: u32,
        /// True if the sender of the frame receives messages.
        is_receiver: bool,
        /// 1 if messages are sent without waiting for an acknowledgement.
        sends: Option<u8>,
        /// 0 if the receiver settles a message by itself.
        receives: Option<u8>,
        /// Where messages come from.
        source: Option<Terminus<'a>>,
        /// Where messages go to.
        target: Option<Terminus<'a>>,
        /// Unused.
        unsettled: Skipped,
        /// Unused.
        incomplete: Skipped,
        /// The sender's count of messages at the beginning.
        delivery_count: Option<u32>,
    }
    /// Tells what its sender takes, in the session or over one link.
    Flow(0x13) {
        /// The transfer that the sender awaits.
        next_incoming: Option<u32>,
        /// Transfers that it takes from there.
        incoming_window: u32,
        /// Number of its next transfer.
        next_outgoing: u32,
        /// Transfers that it has.
        outgoing_window: u32,
        /// The link.
        handle: Option<u32>,
        /// Messages of the link so far.
        delivery_count: Option<u32>,
        /// Messages that the receiver takes from there.
        credit: Option<u32>,
        /// Messages that the sender has.
        available: Option<u32>,
        /// True if the sender is to use up all credit at once.
        drain: Option<bool>,
        /// True if an answer is wanted.
        echo: Option<bool>,
    }
    /// Carries a message, or a part of it, which follows the performative.
    Transfer(0x14) {
        /// The link.
        handle: u32,
        /// Number of the message; none in later parts.
        delivery: Option<u32>,
        /// Name of the message.
        tag: Option<Binary<'a>>,
        /// Format of the message: 0.
        format: Option<u32>,
        /// True if no acknowledgement is awaited.
        is_settled: Option<bool>,
        /// True if another part follows.
        more: Option<bool>,
        /// Unused.
        receives: Skipped,
        /// Unused.
        state: Skipped,
        /// Unused.
        resume: Skipped,
        /// True if the message is abandoned.
        is_aborted: Option<bool>,
    }
    /// Acknowledges messages, or refuses them.
    Disposition(0x15) {
        /// True if it comes from who receives the messages.
        is_receiver: bool,
        /// The first message.
        first: u32,
        /// The last message, if it is another one.
        last: Option<u32>,
        /// True if its sender has settled them.
        is_settled: Option<bool>,
        /// The outcome of these messages.
        outcome: Option<DeliveryOutcome<'a>>,
    }
    /// Detaches a link.
    Detach(0x16) {
        /// The link.
        handle: u32,
        /// True if its termini end with it.
        is_closed: Option<bool>,
        /// The reason.
        error: Option<Amqp1Failure<'a>>,
    }
    /// Ends a session.
    End(0x17) {
        /// The reason.
        error: Option<Amqp1Failure<'a>>,
    }
    /// Closes a connection.
    Close(0x18) {
        /// The reason.
        error: Option<Amqp1Failure<'a>>,
    }
    /// Offers kinds of login.
    Mechanisms(0x40) {
        /// Their names.
        mechanisms: Symbols<'a>,
    }
    /// Logs the client in.
    Login(0x41) {
        /// The kind of login.
        mechanism: Symbol<'a>,
        /// User and password, each after a zero byte.
        response: Option<Binary<'a>>,
        /// Name by which the client knows the server.
        hostname: Option<Text<'a>>,
    }
    /// Answers a login.
    LoginOutcome(0x44) {
        /// 0 if the client is logged in.
        code: u8,
    }
}

impl Performative<'_> {
    /// True if it belongs to a login.
    pub(super) fn is_login(&self) -> bool {
        matches!(self, Self::Mechanisms { .. } | Self::Login { .. } | Self::LoginOutcome { .. })
    }
}

/// A value that is not read. It is never sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Skipped;

impl Field<'_> for Skipped {
    fn of(_: Value<'_>) -> Result<Skipped, Malformed> {
        Ok(Skipped)
    }

    fn put(&self, out: &mut Vec<u8>) {
        None::<bool>.put(out);
    }
}

const SOURCE: u64 = 0x28;
const TARGET: u64 = 0x29;

/// An end of a link at the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terminus<'a> {
    /// True if messages go to it.
    pub is_target: bool,
    /// Its address.
    pub address: Option<Text<'a>>,
    /// 2 if it outlives the server's process.
    pub durable: Option<u32>,
    /// The event after which it ends.
    pub expiry: Option<Symbol<'a>>,
    /// Its capabilities that the client asks for.
    pub capabilities: Option<Symbols<'a>>,
}

impl<'a> Field<'a> for Terminus<'a> {
    fn of(value: Value<'a>) -> Result<Self, Malformed> {
        let is_target = match value.descriptor {
            Some(SOURCE) => false,
            Some(TARGET) => true,
            _ => return Err(Malformed::new("a link ends at something that is neither a source nor a target")),
        };
        let mut fields = value.list()?;
        let (address, durable, expiry) = (fields.next()?, fields.next()?, fields.next()?);
        // A source has more between.
        for _ in 0..if is_target { 3 } else { 7 } {
            fields.next::<Skipped>()?;
        }
        Ok(Terminus { is_target, address, durable, expiry, capabilities: fields.next()? })
    }

    fn put(&self, out: &mut Vec<u8>) {
        let (descriptor, between) = if self.is_target { (TARGET, 3) } else { (SOURCE, 7) };
        put_described(out, descriptor as u8, 4 + between, |out| {
            self.address.put(out);
            self.durable.put(out);
            self.expiry.put(out);
            (0..between).for_each(|_| None::<bool>.put(out));
            self.capabilities.put(out);
        });
    }
}

/// The reason of an end or of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Amqp1Failure<'a> {
    /// Its name in the standard, or the server's own.
    pub condition: Symbol<'a>,
    /// The server's words.
    pub text: Option<Text<'a>>,
}

const FAILURE: u64 = 0x1d;

impl<'a> Field<'a> for Amqp1Failure<'a> {
    fn of(value: Value<'a>) -> Result<Self, Malformed> {
        let mut fields = value.list()?;
        Ok(Amqp1Failure { condition: fields.next()?, text: fields.next()? })
    }

    fn put(&self, out: &mut Vec<u8>) {
        put_described(out, FAILURE as u8, 2, |out| {
            self.condition.put(out);
            self.text.put(out);
        });
    }
}

/// The outcome of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryOutcome<'a> {
    /// The receiver has taken it.
    Accepted,
    /// The receiver will not take it.
    Rejected(Option<Amqp1Failure<'a>>),
    /// The receiver has not taken it.
    Released,
    /// The receiver has not taken it, and says more about that.
    Modified,
    /// Nothing final.
    Other,
}

impl<'a> Field<'a> for DeliveryOutcome<'a> {
    fn of(value: Value<'a>) -> Result<Self, Malformed> {
        Ok(match value.descriptor {
            Some(0x24) => DeliveryOutcome::Accepted,
            Some(0x25) => DeliveryOutcome::Rejected(value.list()?.next()?),
            Some(0x26) => DeliveryOutcome::Released,
            Some(0x27) => DeliveryOutcome::Modified,
            _ => DeliveryOutcome::Other,
        })
    }

    fn put(&self, out: &mut Vec<u8>) {
        match self {
            DeliveryOutcome::Accepted => put_described(out, 0x24, 0, |_| {}),
            DeliveryOutcome::Rejected(failure) => put_described(out, 0x25, 1, |out| failure.put(out)),
            DeliveryOutcome::Released => put_described(out, 0x26, 0, |_| {}),
            DeliveryOutcome::Modified => put_described(out, 0x27, 0, |_| {}),
            // Nothing of a message has been received.
            DeliveryOutcome::Other => put_described(out, 0x23, 2, |out| {
                0u32.put(out);
                0u64.put(out);
            }),
        }
    }
}
