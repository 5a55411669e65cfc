//! Messages of Zenoh's network layer.

use super::codes::{EXTENSIONS, NUMBER_MASK};
use super::read::{BYTES, NUMBER, Reader, UNIT, put_bytes, put_number};
use crate::Malformed;

/// Numbers of the messages.
const OAM: u8 = 0x1F;
const DECLARE: u8 = 0x1E;
pub(super) const PUSH: u8 = 0x1D;
const INTEREST: u8 = 0x19;
/// Numbers of the bodies of a Push.
pub(super) const PUT: u8 = 0x01;
const DELETE: u8 = 0x02;

/// Numbers of declarations; an odd one withdraws what the one before it declares.
const KEY: u8 = 0x00;
const SUBSCRIBER: u8 = 0x02;
const TOKEN: u8 = 0x06;
const FINAL: u8 = 0x1A;

/// Flags of headers.
const NAMED: u8 = 0x20;
const BY_SENDER: u8 = 0x40;
const OF_INTEREST: u8 = 0x20;
const TIMESTAMP: u8 = 0x20;
const ENCODED: u8 = 0x40;

/// Bits of an interest: tokens, and a restriction to a key expression with a name.
const TOKENS: u8 = 0x08;
const RESTRICTED: u8 = 0x10;
const RESTRICTED_NAMED: u8 = 0x20;
const RESTRICTED_BY_SENDER: u8 = 0x40;

/// Extensions, by number and encoding.
const NODE_EXTENSION: u8 = 0x03 | NUMBER;
const KEY_EXTENSION: u8 = 0x0F | BYTES;

/// Bytes of a time stamp's identifier at most.
const TIMESTAMP_ID_BYTES: u64 = 16;

/// A key expression: a declared one, a text, or a text after a declared one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyExpr<'a> {
    /// Number of the declared expression; 0 if there is none.
    pub scope: u16,
    /// True if the sender of this message declared it, false if the receiver did.
    pub by_sender: bool,
    /// The text.
    pub suffix: &'a [u8],
}

impl<'a> KeyExpr<'a> {
    /// Returns an expression without a declared one.
    pub fn text(suffix: &'a [u8]) -> Self {
        KeyExpr { scope: 0, by_sender: false, suffix }
    }

    /// Returns an expression that the sender has declared.
    pub fn declared(scope: u16) -> Self {
        KeyExpr { scope, by_sender: true, suffix: b"" }
    }

    #[inline]
    fn read(rest: &mut Reader<'a>, named: bool, by_sender: bool) -> Result<Self, Malformed> {
        let scope = rest.small()?;
        let suffix: &[u8] = if named { rest.bytes()? } else { b"" };
        if suffix.len() > usize::from(u16::MAX) {
            return Err(Malformed::new(format!("a key expression of {} bytes is too long", suffix.len())));
        }
        Ok(KeyExpr { scope, by_sender, suffix })
    }

    /// Returns the flags of a header, at their usual places.
    pub(super) fn flags(&self) -> u8 {
        let named = if self.suffix.is_empty() { 0 } else { NAMED };
        named | if self.by_sender { BY_SENDER } else { 0 }
    }

    pub(super) fn put(&self, out: &mut Vec<u8>) {
        put_number(out, u64::from(self.scope));
        if !self.suffix.is_empty() {
            put_bytes(out, self.suffix);
        }
    }
}

/// A declaration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Declaration<'a> {
    /// Gives a number to a key expression.
    Key(u16, KeyExpr<'a>),
    /// Withdraws the number.
    KeyGone(u16),
    /// Subscribes, under a number.
    Subscriber(u32, KeyExpr<'a>),
    /// Ends the subscription.
    SubscriberGone(u32),
    /// Ends the answer to an interest.
    Final,
    /// Declares or withdraws something that pubmark does not use: a queryable or a token.
    Other,
}

/// When an interest's declarations are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InterestMode {
    /// Ends the interest.
    Final,
    /// Those that exist.
    Current,
    /// Later ones.
    Future,
    /// Both.
    CurrentFuture,
}

/// A message of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkItem<'a> {
    /// A published message.
    Put {
        /// Its key.
        key: KeyExpr<'a>,
        /// Its payload.
        payload: &'a [u8],
    },
    /// Deletes the value of a key.
    Delete(KeyExpr<'a>),
    /// A declaration, with the number of the interest that it answers.
    Declare(Option<u32>, Declaration<'a>),
    /// Asks for declarations. pubmark asks for liveliness tokens, of which there are none, to be told when
    /// everything before the interest is in force.
    Interest {
        /// Number of the interest.
        number: u32,
        /// Declarations that are wanted.
        mode: InterestMode,
        /// Their key.
        key: Option<KeyExpr<'a>>,
    },
    /// A message for the administration of the network, which clients ignore.
    Administration,
}

impl<'a> NetworkItem<'a> {
    /// Reads a message that arrived in fragments.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut rest = Reader::new(bytes);
        let item = NetworkItem::read(&mut rest)?;
        if rest.is_empty() { Ok(item) } else { Err(Malformed::new("bytes follow a message in fragments")) }
    }

    #[inline]
    pub(super) fn read(rest: &mut Reader<'a>) -> Result<Self, Malformed> {
        let header = rest.byte()?;
        match header & NUMBER_MASK {
            PUSH => push(rest, header),
            DECLARE => declare(rest, header),
            INTEREST => interest(rest, header),
            OAM => skip_administration(rest, header).map(|()| NetworkItem::Administration),
            _ => Err(Malformed::new(format!("message 0x{header:02X} is not supported, such as a query"))),
        }
    }

    /// Appends the message. Only a [put](super::FrameChannel::put_push) can be too long for a batch.
    pub(super) fn put(&self, out: &mut Vec<u8>) {
        match self {
            NetworkItem::Put { key, payload } => {
                out.push(PUSH | key.flags());
                key.put(out);
                out.push(PUT);
                put_bytes(out, payload);
            }
            NetworkItem::Delete(key) => {
                out.push(PUSH | key.flags());
                key.put(out);
                out.push(DELETE);
            }
            NetworkItem::Declare(interest, declaration) => {
                out.push(DECLARE | interest.map_or(0, |_| OF_INTEREST));
                if let Some(interest) = interest {
                    put_number(out, u64::from(*interest));
                }
                put_declaration(out, declaration);
            }
            NetworkItem::Interest { number, mode, key } => {
                out.push(INTEREST | (*mode as u8) << 5);
                put_number(out, u64::from(*number));
                if *mode != InterestMode::Final {
                    let restricted = key.map_or(0, |key| {
                        let named = if key.suffix.is_empty() { 0 } else { RESTRICTED_NAMED };
                        RESTRICTED | named | if key.by_sender { RESTRICTED_BY_SENDER } else { 0 }
                    });
                    out.push(TOKENS | restricted);
                    if let Some(key) = key {
                        key.put(out);
                    }
                }
            }
            NetworkItem::Administration => out.extend_from_slice(&[OAM, 0]),
        }
    }
}

fn put_declaration(out: &mut Vec<u8>, declaration: &Declaration<'_>) {
    let mut head = |kind: u8, number: u64| {
        out.push(kind);
        put_number(out, number);
    };
    match declaration {
        Declaration::Key(number, key) => {
            // An expression of the receiver's cannot be extended here.
            head(KEY | key.flags() & NAMED, u64::from(*number));
            key.put(out);
        }
        Declaration::KeyGone(number) => head(KEY + 1, u64::from(*number)),
        Declaration::Subscriber(number, key) => {
            head(SUBSCRIBER | key.flags(), u64::from(*number));
            key.put(out);
        }
        Declaration::SubscriberGone(number) => head(SUBSCRIBER + 1, u64::from(*number)),
        Declaration::Final => out.push(FINAL),
        Declaration::Other => head(TOKEN + 1, 0),
    }
}

#[inline]
fn push<'a>(rest: &mut Reader<'a>, header: u8) -> Result<NetworkItem<'a>, Malformed> {
    let key = KeyExpr::read(rest, header & NAMED != 0, header & BY_SENDER != 0)?;
    node_extensions(rest, header, "a Push")?;
    let body = rest.byte()?;
    if body & TIMESTAMP != 0 {
        rest.number()?;
        let bytes = rest.number()?;
        if bytes > TIMESTAMP_ID_BYTES {
            return Err(Malformed::new(format!("a time stamp has an identifier of {bytes} bytes")));
        }
        rest.take(bytes as usize)?;
    }
    match body & NUMBER_MASK {
        PUT => {
            if body & ENCODED != 0 && rest.small::<u32>()? & 1 != 0 {
                rest.bytes()?;
            }
            rest.extensions(body & EXTENSIONS != 0, "a Put", |_, _| false)?;
            Ok(NetworkItem::Put { key, payload: rest.bytes()? })
        }
        DELETE => {
            rest.extensions(body & EXTENSIONS != 0, "a Del", |_, _| false)?;
            Ok(NetworkItem::Delete(key))
        }
        _ => Err(Malformed::new(format!("a Push has the body 0x{body:02X}, which is neither Put nor Del"))),
    }
}

/// Reads the extensions of a network message: none of them matters to a client.
#[inline]
fn node_extensions(rest: &mut Reader<'_>, header: u8, of: &str) -> Result<(), Malformed> {
    rest.extensions(header & EXTENSIONS != 0, of, |extension, _| extension == NODE_EXTENSION)
}

fn declare<'a>(rest: &mut Reader<'a>, header: u8) -> Result<NetworkItem<'a>, Malformed> {
    let interest = if header & OF_INTEREST != 0 { Some(rest.small()?) } else { None };
    node_extensions(rest, header, "a Declare")?;
    let header = rest.byte()?;
    let (named, by_sender) = (header & NAMED != 0, header & BY_SENDER != 0);
    let declaration = match header & NUMBER_MASK {
        KEY => {
            let number = rest.small()?;
            Declaration::Key(number, KeyExpr::read(rest, named, true)?)
        }
        SUBSCRIBER => {
            let number = rest.small()?;
            Declaration::Subscriber(number, KeyExpr::read(rest, named, by_sender)?)
        }
        FINAL => Declaration::Final,
        gone if gone <= TOKEN + 1 && gone & 1 != 0 => {
            let number = rest.small::<u32>()?;
            match gone - 1 {
                KEY => Declaration::KeyGone(u16::try_from(number).map_err(|_| Malformed::new("no number of a key"))?),
                SUBSCRIBER => Declaration::SubscriberGone(number),
                _ => Declaration::Other,
            }
        }
        other if other <= TOKEN => {
            rest.small::<u32>()?;
            KeyExpr::read(rest, named, by_sender)?;
            Declaration::Other
        }
        _ => return Err(Malformed::new(format!("declaration 0x{header:02X} is unknown"))),
    };
    rest.extensions(header & EXTENSIONS != 0, "a declaration", |extension, _| extension == KEY_EXTENSION)?;
    Ok(NetworkItem::Declare(interest, declaration))
}

fn interest<'a>(rest: &mut Reader<'a>, header: u8) -> Result<NetworkItem<'a>, Malformed> {
    let number = rest.small()?;
    let mode = match header >> 5 & 0b11 {
        0 => InterestMode::Final,
        1 => InterestMode::Current,
        2 => InterestMode::Future,
        _ => InterestMode::CurrentFuture,
    };
    let bits = if mode == InterestMode::Final { 0 } else { rest.byte()? };
    let key = match bits & RESTRICTED != 0 {
        true => Some(KeyExpr::read(rest, bits & RESTRICTED_NAMED != 0, bits & RESTRICTED_BY_SENDER != 0)?),
        false => None,
    };
    node_extensions(rest, header, "an Interest")?;
    Ok(NetworkItem::Interest { number, mode, key })
}

/// Reads a message of the network's administration.
pub(super) fn skip_administration(rest: &mut Reader<'_>, header: u8) -> Result<(), Malformed> {
    rest.small::<u16>()?;
    node_extensions(rest, header, "an OAM")?;
    match header & 0x60 {
        UNIT => {}
        NUMBER => {
            rest.number()?;
        }
        BYTES => {
            rest.bytes()?;
        }
        _ => return Err(Malformed::new(format!("an OAM (0x{header:02X}) has no known encoding"))),
    }
    Ok(())
}
