//! Properties of MQTT 5 packets (2.2.2).

use super::read::Reader;
use crate::Malformed;

pub(super) const MESSAGE_EXPIRY: u8 = 2;
pub(super) const SESSION_EXPIRY: u8 = 17;
pub(super) const SERVER_KEEP_ALIVE: u8 = 19;
pub(super) const REASON_STRING: u8 = 31;
pub(super) const RECEIVE_MAXIMUM: u8 = 33;
pub(super) const TOPIC_ALIAS_MAXIMUM: u8 = 34;
pub(super) const TOPIC_ALIAS: u8 = 35;
pub(super) const MAXIMUM_QOS: u8 = 36;
pub(super) const RETAIN_AVAILABLE: u8 = 37;
pub(super) const USER_PROPERTY: u8 = 38;
pub(super) const MAXIMUM_PACKET_SIZE: u8 = 39;
pub(super) const WILDCARDS_AVAILABLE: u8 = 40;
pub(super) const SHARED_AVAILABLE: u8 = 42;
pub(super) const RESPONSE_TOPIC: u8 = 8;
pub(super) const CORRELATION: u8 = 9;
const SUBSCRIPTION_ID: u8 = 11;

/// A set of property identifiers, one bit each.
#[derive(Clone, Copy)]
pub(super) struct Set(u64);

impl Set {
    pub(super) const fn of(identifiers: &[u8]) -> Set {
        let (mut bits, mut at) = (0, 0);
        while at < identifiers.len() {
            bits |= 1 << identifiers[at];
            at += 1;
        }
        Set(bits)
    }

    fn holds(self, identifier: u8) -> bool {
        identifier < 64 && self.0 >> identifier & 1 == 1
    }
}

/// Properties allowed in each packet (2.2.2.2, table 2-4).
pub(super) const CONNECT: Set = Set::of(&[17, 21, 22, 23, 25, 33, 34, 38, 39]);
pub(super) const WILL: Set = Set::of(&[1, 2, 3, 8, 9, 24, 38]);
pub(super) const CONNACK: Set = Set::of(&[17, 18, 19, 21, 22, 26, 28, 31, 33, 34, 36, 37, 38, 39, 40, 41, 42]);
/// A PUBLISH from a client has no subscription identifier (3.3.4).
pub(super) const PUBLISH_BY_CLIENT: Set = Set::of(&[1, 2, 3, 8, 9, 35, 38]);
pub(super) const PUBLISH_BY_SERVER: Set = Set::of(&[1, 2, 3, 8, 9, 11, 35, 38]);
/// Properties of PUBACK, PUBREC, PUBREL, PUBCOMP, SUBACK and UNSUBACK.
pub(super) const ACK: Set = Set::of(&[31, 38]);
pub(super) const SUBSCRIBE: Set = Set::of(&[11, 38]);
pub(super) const UNSUBSCRIBE: Set = Set::of(&[38]);
pub(super) const DISCONNECT_BY_CLIENT: Set = Set::of(&[17, 31, 38]);
pub(super) const DISCONNECT_BY_SERVER: Set = Set::of(&[28, 31, 38]);
pub(super) const AUTH: Set = Set::of(&[21, 22, 31, 38]);

/// A property's value, as far as it is used here.
pub(super) enum PropertyValue<'a> {
    Number(u32),
    Text(&'a str),
    Binary(&'a [u8]),
    /// Pairs of strings.
    Other,
}

/// Reads and checks all properties of a packet, and passes each to `each`.
#[inline]
pub(super) fn read<'a>(
    reader: &mut Reader<'a>,
    allowed: Set,
    each: impl FnMut(u8, PropertyValue<'a>),
) -> Result<(), Malformed> {
    // Most packets have none.
    if let [0, rest @ ..] = reader.0 {
        reader.0 = rest;
        return Ok(());
    }
    read_some(reader, allowed, each)
}

fn read_some<'a>(
    reader: &mut Reader<'a>,
    allowed: Set,
    mut each: impl FnMut(u8, PropertyValue<'a>),
) -> Result<(), Malformed> {
    let length = reader.variable("the length of the properties")? as usize;
    let Some((inside, rest)) = reader.0.split_at_checked(length) else {
        return Err(Malformed::new(format!(
            "{length} bytes of properties in a packet that has {} left",
            reader.0.len()
        )));
    };
    reader.0 = rest;
    let mut properties = Reader(inside);
    let mut seen = 0u64;
    while !properties.0.is_empty() {
        let identifier = properties.byte("a property")?;
        if !allowed.holds(identifier) {
            return Err(Malformed::new(format!("property {identifier} has no place in this packet")));
        }
        let repeated = seen >> identifier & 1 == 1;
        if repeated && !matches!(identifier, USER_PROPERTY | SUBSCRIPTION_ID) {
            return Err(Malformed::new(format!("property {identifier} stands twice in one packet")));
        }
        seen |= 1 << identifier;
        each(identifier, value(identifier, &mut properties)?);
    }
    Ok(())
}

fn value<'a>(identifier: u8, reader: &mut Reader<'a>) -> Result<PropertyValue<'a>, Malformed> {
    let what = "a property";
    let number = match identifier {
        1 | 23 | 25 | MAXIMUM_QOS | RETAIN_AVAILABLE | 40..=42 => match reader.byte(what)? {
            flag @ 0..=1 => u32::from(flag),
            other => return Err(Malformed::new(format!("property {identifier} is {other} where 0 or 1 can stand"))),
        },
        SERVER_KEEP_ALIVE | RECEIVE_MAXIMUM | TOPIC_ALIAS_MAXIMUM | TOPIC_ALIAS => u32::from(reader.short(what)?),
        MESSAGE_EXPIRY | SESSION_EXPIRY | 24 | MAXIMUM_PACKET_SIZE => reader.long(what)?,
        SUBSCRIPTION_ID => reader.variable(what)?,
        RESPONSE_TOPIC => return reader.topic().map(PropertyValue::Text),
        3 | 18 | 21 | 26 | 28 | REASON_STRING => return reader.text(what).map(PropertyValue::Text),
        CORRELATION | 22 => return reader.binary(what).map(PropertyValue::Binary),
        USER_PROPERTY => {
            reader.text(what)?;
            return reader.text(what).map(|_| PropertyValue::Other);
        }
        _ => return Err(Malformed::new(format!("property {identifier} is unknown"))),
    };
    let never_zero = matches!(identifier, SUBSCRIPTION_ID | RECEIVE_MAXIMUM | TOPIC_ALIAS | MAXIMUM_PACKET_SIZE);
    if never_zero && number == 0 {
        return Err(Malformed::new(format!("property {identifier} is 0, which it never may be")));
    }
    Ok(PropertyValue::Number(number))
}
