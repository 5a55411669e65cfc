//! MQTT 3.1.1 and MQTT 5 (OASIS standards; numbers in parentheses are their sections). Packets
//! borrow from the bytes that they were read from; a PUBLISH and its acknowledgements are read and
//! written without an allocation.
//!
//! [`decode`] reads the packets of a client, [`server::decode`] those of a server, [`encode`]
//! writes both.

pub mod encode;
mod properties;
mod read;
pub mod reason;
pub mod server;
#[cfg(test)]
mod tests;

use crate::Malformed;
use properties::PropertyValue;
use read::Reader;
use std::fmt;

/// Maximum length of a packet after its fixed header, bytes: 256 MiB less one, the limit of four
/// length bytes (MQTT 3.1.1, 2.2.3).
pub const REMAINING_BYTES_MAX: usize = 268_435_455;

/// Version of MQTT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// MQTT 3.1.1, protocol level 4.
    V3_1_1,
    /// MQTT 5, protocol level 5.
    V5,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Version::V5 { "5" } else { "3.1.1" })
    }
}

/// Quality of service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Qos {
    /// QoS 0.
    AtMostOnce = 0,
    /// QoS 1.
    AtLeastOnce = 1,
    /// QoS 2.
    ExactlyOnce = 2,
}

impl Qos {
    /// Returns the quality of service of a number from 0 to 2.
    pub fn from_number(number: u8) -> Option<Qos> {
        match number {
            0 => Some(Qos::AtMostOnce),
            1 => Some(Qos::AtLeastOnce),
            2 => Some(Qos::ExactlyOnce),
            _ => None,
        }
    }
}

/// A published message (3.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Publish<'a> {
    /// True if it may have been sent before.
    pub dup: bool,
    /// Quality of service.
    pub qos: Qos,
    /// True if the server keeps it for later subscribers.
    pub retain: bool,
    /// The topic; empty only with an alias.
    pub topic: &'a str,
    /// Packet identifier; 0 at QoS 0, and only there.
    pub id: u16,
    /// MQTT 5: a number that replaces the topic. Properties without a field here are checked and left out.
    pub alias: Option<u16>,
    /// MQTT 5: the topic for an answer.
    pub response_topic: Option<&'a str>,
    /// MQTT 5: bytes by which whoever asked recognises the answer.
    pub correlation: Option<&'a [u8]>,
    /// MQTT 5: further properties as [`encode::message_expiry`] and [`encode::user_property`] write them. Not read: empty
    /// in a message that was decoded.
    pub properties: &'a [u8],
    /// The message.
    pub payload: &'a [u8],
}

impl<'a> Publish<'a> {
    /// Returns a message that is sent for the first time, without properties.
    pub fn plain(qos: Qos, id: u16, topic: &'a str, payload: &'a [u8]) -> Publish<'a> {
        Publish {
            dup: false,
            qos,
            retain: false,
            topic,
            id,
            alias: None,
            response_topic: None,
            correlation: None,
            properties: &[],
            payload,
        }
    }
}

/// PUBACK, PUBREC, PUBREL or PUBCOMP (3.4 to 3.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack {
    /// Packet identifier of the PUBLISH.
    pub id: u16,
    /// MQTT 5: reason code; 0 in MQTT 3.1.1.
    pub reason: u8,
}

/// The server's answer to CONNECT (3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connack<'a> {
    /// True if the server has a session of this client.
    pub session_present: bool,
    /// 0 if the client is accepted; other codes are those of [`reason::connack_words`].
    pub code: u8,
    /// Maximum number of unacknowledged QoS 1 and 2 messages; 65535 unless the server limits it.
    pub receive_maximum: u16,
    /// Highest QoS that the server supports.
    pub maximum_qos: Qos,
    /// True if the server keeps retained messages.
    pub retain_available: bool,
    /// Largest packet that the server accepts, bytes, if it sets a limit.
    pub maximum_packet_bytes: Option<u32>,
    /// Highest alias of a topic that the client may use; 0 for none.
    pub topic_alias_maximum: u16,
    /// True if filters may have wildcards.
    pub wildcards_available: bool,
    /// True if subscriptions may be shared.
    pub shared_available: bool,
    /// Time for which the server keeps a session after its connection ended, s, if it differs from
    /// the request.
    pub session_expiry_s: Option<u32>,
    /// The keep alive that replaces the client's, s, if there is one.
    pub keep_alive_s: Option<u16>,
    /// The server's text for the code.
    pub text: Option<&'a str>,
}

impl Connack<'_> {
    /// Creates an answer with this code and nothing else.
    pub fn new(code: u8) -> Self {
        Connack {
            session_present: false,
            code,
            receive_maximum: u16::MAX,
            maximum_qos: Qos::ExactlyOnce,
            retain_available: true,
            maximum_packet_bytes: None,
            topic_alias_maximum: 0,
            wildcards_available: true,
            shared_available: true,
            session_expiry_s: None,
            keep_alive_s: None,
            text: None,
        }
    }
}

/// A packet for a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packet<'a> {
    /// The answer to CONNECT.
    Connack(Connack<'a>),
    /// A message.
    Publish(Publish<'a>),
    /// The end of a publication at QoS 1.
    Puback(Ack),
    /// The second step of a publication at QoS 2.
    Pubrec(Ack),
    /// The third step of a publication at QoS 2.
    Pubrel(Ack),
    /// The end of a publication at QoS 2.
    Pubcomp(Ack),
    /// The answer to SUBSCRIBE (3.9).
    Suback {
        /// Packet identifier of the SUBSCRIBE.
        id: u16,
        /// For each filter in order: the QoS granted, or [`reason::FAILURE`] and above.
        codes: &'a [u8],
        /// MQTT 5: the server's text for the codes.
        text: Option<&'a str>,
    },
    /// The answer to UNSUBSCRIBE (3.11).
    Unsuback {
        /// Packet identifier of the UNSUBSCRIBE.
        id: u16,
        /// MQTT 5: a reason code for each filter in order; empty in MQTT 3.1.1.
        codes: &'a [u8],
    },
    /// The answer to PINGREQ (3.13).
    Pingresp,
    /// MQTT 5: the server ends the connection (3.14).
    Disconnect {
        /// Reason code.
        reason: u8,
        /// The server's text for the code.
        text: Option<&'a str>,
    },
    /// MQTT 5: a step of an authentication (3.15).
    Auth {
        /// Reason code.
        reason: u8,
    },
}

/// Reads the packet at the start of `bytes` as a client, and returns it with its length; `None` if
/// more bytes must arrive first. Only the first few bytes of an incomplete packet are read.
pub fn decode(bytes: &[u8], version: Version) -> Result<Option<(Packet<'_>, usize)>, Malformed> {
    let Some(frame) = frame(bytes, version, Side::Client)? else { return Ok(None) };
    let Frame { kind, flags, body, total_bytes } = frame;
    let v5 = version == Version::V5;
    let packet = match kind {
        Kind::Publish => Packet::Publish(publish(flags, body, version, properties::PUBLISH_BY_SERVER)?),
        Kind::Puback => Packet::Puback(ack(body, version)?),
        Kind::Pubrec => Packet::Pubrec(ack(body, version)?),
        Kind::Pubrel => Packet::Pubrel(ack(body, version)?),
        Kind::Pubcomp => Packet::Pubcomp(ack(body, version)?),
        Kind::Connack => Packet::Connack(connack(body, version)?),
        Kind::Suback => suback(body, v5)?,
        Kind::Unsuback => unsuback(body, v5)?,
        Kind::Pingresp => {
            Reader(body).end("a PINGRESP")?;
            Packet::Pingresp
        }
        Kind::Disconnect if v5 => {
            let (reason, text) = reason_and_text(body, properties::DISCONNECT_BY_SERVER)?;
            Packet::Disconnect { reason, text }
        }
        Kind::Auth if v5 => Packet::Auth { reason: reason_and_text(body, properties::AUTH)?.0 },
        _ => return Err(misplaced(kind, Side::Client)),
    };
    Ok(Some((packet, total_bytes)))
}

/// Returns the reason string of a whole PUBACK, PUBREC or PUBCOMP of MQTT 5, if it has one. Meant
/// for the rare negative acknowledgement: [`decode`] leaves the text out.
pub fn ack_text(packet: &[u8]) -> Option<&str> {
    let frame = frame(packet, Version::V5, Side::Client).ok()??;
    let mut reader = Reader(frame.body);
    reader.packet_id().ok()?;
    reason_and_text(reader.0, properties::ACK).ok()?.1
}

/// Returns the length of the packet at the start of `bytes`; `None` if its length field is
/// incomplete. Meant for callers that discard packets unread.
#[inline]
pub fn packet_bytes(bytes: &[u8]) -> Result<Option<usize>, Malformed> {
    let Some((_, rest)) = bytes.split_first() else { return Ok(None) };
    Ok(read::variable(rest)?.map(|(remaining, used)| 1 + used + remaining as usize))
}

/// Types of packets (2.2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Connect,
    Connack,
    Publish,
    Puback,
    Pubrec,
    Pubrel,
    Pubcomp,
    Subscribe,
    Suback,
    Unsubscribe,
    Unsuback,
    Pingreq,
    Pingresp,
    Disconnect,
    Auth,
}

const KINDS: [Kind; 15] = [
    Kind::Connect,
    Kind::Connack,
    Kind::Publish,
    Kind::Puback,
    Kind::Pubrec,
    Kind::Pubrel,
    Kind::Pubcomp,
    Kind::Subscribe,
    Kind::Suback,
    Kind::Unsubscribe,
    Kind::Unsuback,
    Kind::Pingreq,
    Kind::Pingresp,
    Kind::Disconnect,
    Kind::Auth,
];

/// Formats the name as in the standard.
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&format!("{self:?}").to_uppercase())
    }
}

/// The reading side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Client,
    Server,
}

impl Kind {
    /// True if this side may receive such a packet.
    fn reaches(self, side: Side, version: Version) -> bool {
        match self {
            Kind::Publish | Kind::Puback | Kind::Pubrec | Kind::Pubrel | Kind::Pubcomp => true,
            Kind::Connect | Kind::Subscribe | Kind::Unsubscribe | Kind::Pingreq => side == Side::Server,
            Kind::Connack | Kind::Suback | Kind::Unsuback | Kind::Pingresp => side == Side::Client,
            Kind::Disconnect => side == Side::Server || version == Version::V5,
            Kind::Auth => version == Version::V5,
        }
    }
}

/// A complete packet.
struct Frame<'a> {
    kind: Kind,
    flags: u8,
    body: &'a [u8],
    total_bytes: usize,
}

/// Splits off the packet at the start of `bytes` (2.2). Errors in the first byte are reported
/// before the rest arrives.
fn frame(bytes: &[u8], version: Version, side: Side) -> Result<Option<Frame<'_>>, Malformed> {
    let Some((&first, rest)) = bytes.split_first() else { return Ok(None) };
    let flags = first & 0x0F;
    let Some(&kind) = usize::from(first >> 4).checked_sub(1).and_then(|index| KINDS.get(index)) else {
        return Err(Malformed::new(format!("0x{first:02X} begins no packet")));
    };
    let flags_are_right = match kind {
        Kind::Publish => flags & 6 != 6 && (flags & 6 != 0 || flags & 8 == 0),
        Kind::Pubrel | Kind::Subscribe | Kind::Unsubscribe => flags == 2,
        _ => flags == 0,
    };
    if !flags_are_right {
        return Err(Malformed::new(format!("0x{first:02X} begins a {kind} with flags that it cannot have")));
    }
    if !kind.reaches(side, version) {
        return Err(misplaced(kind, side));
    }
    // MQTT 5 forbids a length of more bytes than needed (1.5.5), MQTT 3.1.1 does not.
    let Some((remaining, used)) = read::variable(rest)? else { return Ok(None) };
    if version == Version::V5 && used > 1 && rest[used - 1] == 0 {
        return Err(Malformed::new("a packet's length takes more bytes than it needs"));
    }
    let body = &rest[used..];
    let remaining = remaining as usize;
    Ok(body.get(..remaining).map(|body| Frame { kind, flags, body, total_bytes: 1 + used + remaining }))
}

#[cold]
fn misplaced(kind: Kind, side: Side) -> Malformed {
    let reader = if side == Side::Client { "client" } else { "server" };
    Malformed::new(format!("{kind} is nothing that a {reader} receives in this version"))
}

fn publish<'a>(
    flags: u8,
    body: &'a [u8],
    version: Version,
    allowed: properties::Set,
) -> Result<Publish<'a>, Malformed> {
    let mut reader = Reader(body);
    let qos = match flags >> 1 & 3 {
        0 => Qos::AtMostOnce,
        1 => Qos::AtLeastOnce,
        _ => Qos::ExactlyOnce,
    };
    let topic = reader.topic()?;
    let id = if qos == Qos::AtMostOnce { 0 } else { reader.packet_id()? };
    let (mut alias, mut response_topic, mut correlation) = (None, None, None);
    if version == Version::V5 {
        properties::read(&mut reader, allowed, |identifier, value| match (identifier, value) {
            (properties::TOPIC_ALIAS, PropertyValue::Number(number)) => alias = u16::try_from(number).ok(),
            (properties::RESPONSE_TOPIC, PropertyValue::Text(topic)) => response_topic = Some(topic),
            (properties::CORRELATION, PropertyValue::Binary(bytes)) => correlation = Some(bytes),
            _ => {}
        })?;
    }
    if topic.is_empty() && alias.is_none() {
        return Err(Malformed::new("a PUBLISH to an empty topic"));
    }
    let (dup, retain) = (flags & 8 != 0, flags & 1 != 0);
    let (properties, payload) = (&[][..], reader.0);
    Ok(Publish { dup, qos, retain, topic, id, alias, response_topic, correlation, properties, payload })
}

fn ack(body: &[u8], version: Version) -> Result<Ack, Malformed> {
    let mut reader = Reader(body);
    let id = reader.packet_id()?;
    let mut reason = 0;
    if version == Version::V5 && !reader.0.is_empty() {
        reason = reader.byte("a reason code")?;
        if !reader.0.is_empty() {
            properties::read(&mut reader, properties::ACK, |_, _| ())?;
        }
    }
    reader.end("an acknowledgement")?;
    Ok(Ack { id, reason })
}

fn connack(body: &[u8], version: Version) -> Result<Connack<'_>, Malformed> {
    let mut reader = Reader(body);
    let flags = reader.byte("the flags of a CONNACK")?;
    if flags > 1 {
        return Err(Malformed::new(format!("a CONNACK with flags 0x{flags:02X}")));
    }
    let mut connack = Connack::new(reader.byte("the code of a CONNACK")?);
    connack.session_present = flags == 1;
    // A server that supports only the other version answers in its own form, always with a refusal:
    // these answers are accepted too.
    match version {
        Version::V3_1_1 if reader.0 == [0] && connack.code >= reason::FAILURE => reader.0 = &[],
        Version::V3_1_1 if connack.code > 5 => {
            return Err(Malformed::new(format!("a CONNACK with return code {}", connack.code)));
        }
        Version::V3_1_1 => {}
        Version::V5 if reader.0.is_empty() && (1..=5).contains(&connack.code) => {}
        Version::V5 => {
            let mut maximum_qos = 2;
            properties::read(&mut reader, properties::CONNACK, |identifier, value| match (identifier, value) {
                (properties::RECEIVE_MAXIMUM, PropertyValue::Number(number)) => connack.receive_maximum = number as u16,
                (properties::MAXIMUM_QOS, PropertyValue::Number(number)) => maximum_qos = number as u8,
                (properties::RETAIN_AVAILABLE, PropertyValue::Number(number)) => connack.retain_available = number == 1,
                (properties::MAXIMUM_PACKET_SIZE, PropertyValue::Number(number)) => {
                    connack.maximum_packet_bytes = Some(number)
                }
                (properties::WILDCARDS_AVAILABLE, PropertyValue::Number(number)) => {
                    connack.wildcards_available = number == 1
                }
                (properties::SHARED_AVAILABLE, PropertyValue::Number(number)) => connack.shared_available = number == 1,
                (properties::SESSION_EXPIRY, PropertyValue::Number(number)) => connack.session_expiry_s = Some(number),
                (properties::SERVER_KEEP_ALIVE, PropertyValue::Number(number)) => {
                    connack.keep_alive_s = Some(number as u16)
                }
                (properties::TOPIC_ALIAS_MAXIMUM, PropertyValue::Number(number)) => {
                    connack.topic_alias_maximum = number as u16
                }
                (properties::REASON_STRING, PropertyValue::Text(text)) => connack.text = Some(text),
                _ => {}
            })?;
            connack.maximum_qos = Qos::from_number(maximum_qos).unwrap_or(Qos::ExactlyOnce);
        }
    }
    reader.end("a CONNACK")?;
    Ok(connack)
}

fn suback(body: &[u8], v5: bool) -> Result<Packet<'_>, Malformed> {
    let mut reader = Reader(body);
    let id = reader.packet_id()?;
    let text = if v5 { text_of(&mut reader, properties::ACK)? } else { None };
    let granted = |code: u8| code <= 2 || if v5 { code >= reason::FAILURE } else { code == reason::FAILURE };
    match reader.0.iter().find(|code| !granted(**code)) {
        Some(wrong) => Err(Malformed::new(format!("a SUBACK with code 0x{wrong:02X}"))),
        None if reader.0.is_empty() => Err(Malformed::new("a SUBACK without a code")),
        None => Ok(Packet::Suback { id, codes: reader.0, text }),
    }
}

fn unsuback(body: &[u8], v5: bool) -> Result<Packet<'_>, Malformed> {
    let mut reader = Reader(body);
    let id = reader.packet_id()?;
    if v5 {
        text_of(&mut reader, properties::ACK)?;
    }
    if v5 == reader.0.is_empty() {
        return Err(Malformed::new(if v5 { "an UNSUBACK without a code" } else { "an UNSUBACK with codes" }));
    }
    Ok(Packet::Unsuback { id, codes: reader.0 })
}

/// Reads a reason code and properties, of which either may be absent (3.14.2, 3.15.2).
fn reason_and_text(body: &[u8], allowed: properties::Set) -> Result<(u8, Option<&str>), Malformed> {
    let mut reader = Reader(body);
    let (mut reason, mut text) = (0, None);
    if !body.is_empty() {
        reason = reader.byte("a reason code")?;
    }
    if !reader.0.is_empty() {
        text = text_of(&mut reader, allowed)?;
    }
    reader.end("a packet")?;
    Ok((reason, text))
}

/// Reads properties, and returns the reason string.
fn text_of<'a>(reader: &mut Reader<'a>, allowed: properties::Set) -> Result<Option<&'a str>, Malformed> {
    let mut text = None;
    properties::read(reader, allowed, |identifier, value| {
        if let (properties::REASON_STRING, PropertyValue::Text(words)) = (identifier, value) {
            text = Some(words);
        }
    })?;
    Ok(text)
}
