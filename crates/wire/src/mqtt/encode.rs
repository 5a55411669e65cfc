//! Appends packets to a buffer. Names of topics and filters are written unchanged. On an error
//! nothing has been appended.

use super::server::{ConnectPacket, Will};
use super::{Ack, Connack, Publish, Qos, REMAINING_BYTES_MAX, Version, properties};

/// Error: a field or packet is longer than MQTT allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("MQTT carries strings of 65,535 bytes and packets of 268,435,455 bytes at most")]
pub struct TooLong;

/// The first byte of each packet without flags of its own (2.2.1, 2.2.2).
const CONNECT: u8 = 0x10;
const CONNACK: u8 = 0x20;
const PUBLISH: u8 = 0x30;
const PUBACK: u8 = 0x40;
const PUBREC: u8 = 0x50;
const PUBREL: u8 = 0x62;
const PUBCOMP: u8 = 0x70;
const SUBSCRIBE: u8 = 0x82;
const SUBACK: u8 = 0x90;
const UNSUBSCRIBE: u8 = 0xA2;
const UNSUBACK: u8 = 0xB0;
const PINGREQ: u8 = 0xC0;
const PINGRESP: u8 = 0xD0;
const DISCONNECT: u8 = 0xE0;

/// Encodes the length of a string.
fn length(bytes: &[u8]) -> Result<[u8; 2], TooLong> {
    u16::try_from(bytes.len()).map(u16::to_be_bytes).map_err(|_| TooLong)
}

/// Appends a string or binary data after its length.
fn binary(out: &mut Vec<u8>, bytes: &[u8]) -> Result<(), TooLong> {
    out.extend_from_slice(&length(bytes)?);
    out.extend_from_slice(bytes);
    Ok(())
}

/// Encodes a variable byte integer; returns its bytes and their number.
fn variable(mut value: usize) -> Result<([u8; 4], usize), TooLong> {
    if value > REMAINING_BYTES_MAX {
        return Err(TooLong);
    }
    let (mut bytes, mut used) = ([0; 4], 0);
    loop {
        bytes[used] = (value & 0x7F) as u8 | if value > 0x7F { 0x80 } else { 0 };
        (value, used) = (value >> 7, used + 1);
        if value == 0 {
            return Ok((bytes, used));
        }
    }
}

/// Appends a packet whose body is written by `body`: for packets that are rare and short.
fn packet(out: &mut Vec<u8>, first: u8, body: impl FnOnce(&mut Vec<u8>) -> Result<(), TooLong>) -> Result<(), TooLong> {
    let mut inside = Vec::new();
    body(&mut inside)?;
    let (remaining, used) = variable(inside.len())?;
    out.push(first);
    out.extend_from_slice(&remaining[..used]);
    out.extend_from_slice(&inside);
    Ok(())
}

/// Appends properties if the version has any.
fn with_properties(
    out: &mut Vec<u8>,
    version: Version,
    write: impl FnOnce(&mut Vec<u8>) -> Result<(), TooLong>,
) -> Result<(), TooLong> {
    if version == Version::V5 {
        let mut inside = Vec::new();
        write(&mut inside)?;
        let (length, used) = variable(inside.len())?;
        out.extend_from_slice(&length[..used]);
        out.extend_from_slice(&inside);
    }
    Ok(())
}

fn short_property(out: &mut Vec<u8>, identifier: u8, value: u16) {
    out.push(identifier);
    out.extend_from_slice(&value.to_be_bytes());
}

fn long_property(out: &mut Vec<u8>, identifier: u8, value: u32) {
    out.push(identifier);
    out.extend_from_slice(&value.to_be_bytes());
}

/// Appends a CONNECT (3.1). Session expiry and receive maximum are written in MQTT 5 only.
pub fn connect(out: &mut Vec<u8>, version: Version, connect: &ConnectPacket<'_>) -> Result<(), TooLong> {
    let will_flags = |will: &Will<'_>| 4 | (will.qos as u8) << 3 | u8::from(will.retain) << 5;
    let flags = u8::from(connect.clean_start) << 1
        | connect.will.as_ref().map_or(0, will_flags)
        | u8::from(connect.password.is_some()) << 6
        | u8::from(connect.user.is_some()) << 7;
    packet(out, CONNECT, |out| {
        binary(out, b"MQTT")?;
        out.extend([if version == Version::V5 { 5 } else { 4 }, flags]);
        out.extend(connect.keep_alive_s.to_be_bytes());
        with_properties(out, version, |out| {
            if connect.session_expiry_s != 0 {
                long_property(out, properties::SESSION_EXPIRY, connect.session_expiry_s);
            }
            if connect.receive_maximum != u16::MAX {
                short_property(out, properties::RECEIVE_MAXIMUM, connect.receive_maximum);
            }
            Ok(())
        })?;
        binary(out, connect.client_id.as_bytes())?;
        if let Some(will) = &connect.will {
            with_properties(out, version, |_| Ok(()))?;
            binary(out, will.topic.as_bytes())?;
            binary(out, will.payload)?;
        }
        connect.user.map_or(Ok(()), |user| binary(out, user.as_bytes()))?;
        connect.password.map_or(Ok(()), |password| binary(out, password))
    })
}

/// Appends the property of a PUBLISH after how many seconds a server drops it if it has not delivered it (3.3.2.3.3).
pub fn message_expiry(out: &mut Vec<u8>, seconds: u32) {
    long_property(out, properties::MESSAGE_EXPIRY, seconds);
}

/// Appends a name and a value to the properties of a PUBLISH (3.3.2.3.7).
pub fn user_property(out: &mut Vec<u8>, name: &str, value: &str) -> Result<(), TooLong> {
    length(name.as_bytes()).and(length(value.as_bytes()))?;
    out.push(properties::USER_PROPERTY);
    binary(out, name.as_bytes())?;
    binary(out, value.as_bytes())
}

/// Appends a PUBLISH (3.3). Its properties are written in MQTT 5 only, the identifier from QoS 1 on.
#[inline]
pub fn publish(out: &mut Vec<u8>, version: Version, publish: &Publish<'_>) -> Result<(), TooLong> {
    let topic = publish.topic.as_bytes();
    let topic_length = length(topic)?;
    let id_bytes = if publish.qos == Qos::AtMostOnce { 0 } else { 2 };
    let properties_bytes = publish_properties_bytes(version, publish);
    let (properties_length, length_bytes) = variable(properties_bytes)?;
    let length_bytes = if version == Version::V5 { length_bytes } else { 0 };
    let body_bytes = 2 + topic.len() + id_bytes + length_bytes + properties_bytes + publish.payload.len();
    let (remaining, used) = variable(body_bytes)?;
    for value in [publish.response_topic.map(str::as_bytes), publish.correlation].into_iter().flatten() {
        length(value)?;
    }
    out.reserve(1 + used + body_bytes);
    out.push(PUBLISH | u8::from(publish.dup) << 3 | (publish.qos as u8) << 1 | u8::from(publish.retain));
    out.extend_from_slice(&remaining[..used]);
    out.extend_from_slice(&topic_length);
    out.extend_from_slice(topic);
    out.extend_from_slice(&publish.id.to_be_bytes()[..id_bytes]);
    out.extend_from_slice(&properties_length[..length_bytes]);
    if properties_bytes > 0 {
        if let Some(alias) = publish.alias {
            short_property(out, properties::TOPIC_ALIAS, alias);
        }
        if let Some(topic) = publish.response_topic {
            out.push(properties::RESPONSE_TOPIC);
            binary(out, topic.as_bytes())?;
        }
        if let Some(correlation) = publish.correlation {
            out.push(properties::CORRELATION);
            binary(out, correlation)?;
        }
        out.extend_from_slice(publish.properties);
    }
    out.extend_from_slice(publish.payload);
    Ok(())
}

/// Returns the length of a PUBLISH's properties, without the length itself, bytes.
#[inline]
fn publish_properties_bytes(version: Version, publish: &Publish<'_>) -> usize {
    if version == Version::V3_1_1 {
        return 0;
    }
    let alias = if publish.alias.is_some() { 3 } else { 0 };
    let sized = |bytes: Option<usize>| bytes.map_or(0, |bytes| 3 + bytes);
    let requests = sized(publish.response_topic.map(str::len)) + sized(publish.correlation.map(<[u8]>::len));
    alias + requests + publish.properties.len()
}

/// Returns the length of a PUBLISH with a topic, properties and a message of these lengths, bytes.
pub fn publish_bytes(
    version: Version,
    qos: Qos,
    topic_bytes: usize,
    properties_bytes: usize,
    payload_bytes: u64,
) -> u64 {
    let variable_bytes = |value: u64| match value {
        0..0x80 => 1,
        0x80..0x4000 => 2,
        0x4000..0x20_0000 => 3,
        _ => 4,
    };
    let id_bytes = if qos == Qos::AtMostOnce { 0 } else { 2 };
    let properties_bytes = properties_bytes as u64;
    let properties_bytes = if version == Version::V5 { variable_bytes(properties_bytes) + properties_bytes } else { 0 };
    let body_bytes = 2 + topic_bytes as u64 + id_bytes + properties_bytes + payload_bytes;
    1 + variable_bytes(body_bytes) + body_bytes
}

/// Appends an acknowledgement. A reason is written in MQTT 5 only, and only if it is not 0.
fn ack(out: &mut Vec<u8>, version: Version, first: u8, ack: Ack) {
    let [high, low] = ack.id.to_be_bytes();
    if version == Version::V5 && ack.reason != 0 {
        out.extend_from_slice(&[first, 3, high, low, ack.reason]);
    } else {
        out.extend_from_slice(&[first, 2, high, low]);
    }
}

/// Appends a PUBACK (3.4).
pub fn puback(out: &mut Vec<u8>, version: Version, what: Ack) {
    ack(out, version, PUBACK, what);
}

/// Appends a PUBREC (3.5).
pub fn pubrec(out: &mut Vec<u8>, version: Version, what: Ack) {
    ack(out, version, PUBREC, what);
}

/// Appends a PUBREL (3.6).
pub fn pubrel(out: &mut Vec<u8>, version: Version, what: Ack) {
    ack(out, version, PUBREL, what);
}

/// Appends a PUBCOMP (3.7).
pub fn pubcomp(out: &mut Vec<u8>, version: Version, what: Ack) {
    ack(out, version, PUBCOMP, what);
}

/// Appends a SUBSCRIBE (3.8) to each filter at its QoS; at least one filter.
pub fn subscribe(out: &mut Vec<u8>, version: Version, id: u16, filters: &[(&str, Qos)]) -> Result<(), TooLong> {
    packet(out, SUBSCRIBE, |out| {
        out.extend(id.to_be_bytes());
        with_properties(out, version, |_| Ok(()))?;
        filters.iter().try_for_each(|(filter, qos)| {
            binary(out, filter.as_bytes())?;
            out.push(*qos as u8);
            Ok(())
        })
    })
}

/// Appends an UNSUBSCRIBE (3.10); at least one filter.
pub fn unsubscribe(out: &mut Vec<u8>, version: Version, id: u16, filters: &[&str]) -> Result<(), TooLong> {
    packet(out, UNSUBSCRIBE, |out| {
        out.extend(id.to_be_bytes());
        with_properties(out, version, |_| Ok(()))?;
        filters.iter().try_for_each(|filter| binary(out, filter.as_bytes()))
    })
}

/// Appends a PINGREQ (3.12).
pub fn pingreq(out: &mut Vec<u8>) {
    out.extend_from_slice(&[PINGREQ, 0]);
}

/// Appends a PINGRESP (3.13).
pub fn pingresp(out: &mut Vec<u8>) {
    out.extend_from_slice(&[PINGRESP, 0]);
}

/// Appends a DISCONNECT (3.14). In MQTT 5 it has a reason and, from a client, a new session expiry,
/// s.
pub fn disconnect(out: &mut Vec<u8>, version: Version, reason: u8, session_expiry_s: Option<u32>) {
    match (version, session_expiry_s) {
        (Version::V5, Some(expiry)) => {
            out.extend_from_slice(&[DISCONNECT, 7, reason, 5]);
            long_property(out, properties::SESSION_EXPIRY, expiry);
        }
        (Version::V5, None) if reason != 0 => out.extend_from_slice(&[DISCONNECT, 1, reason]),
        _ => out.extend_from_slice(&[DISCONNECT, 0]),
    }
}

/// Appends a CONNACK (3.2). All but the first two fields are written in MQTT 5 only.
pub fn connack(out: &mut Vec<u8>, version: Version, connack: &Connack<'_>) -> Result<(), TooLong> {
    packet(out, CONNACK, |out| {
        out.extend([u8::from(connack.session_present), connack.code]);
        with_properties(out, version, |out| {
            if connack.receive_maximum != u16::MAX {
                short_property(out, properties::RECEIVE_MAXIMUM, connack.receive_maximum);
            }
            if connack.maximum_qos < Qos::ExactlyOnce {
                out.extend([properties::MAXIMUM_QOS, connack.maximum_qos as u8]);
            }
            if !connack.retain_available {
                out.extend([properties::RETAIN_AVAILABLE, 0]);
            }
            if let Some(bytes) = connack.maximum_packet_bytes {
                long_property(out, properties::MAXIMUM_PACKET_SIZE, bytes);
            }
            if connack.topic_alias_maximum > 0 {
                short_property(out, properties::TOPIC_ALIAS_MAXIMUM, connack.topic_alias_maximum);
            }
            for (identifier, available) in [
                (properties::WILDCARDS_AVAILABLE, connack.wildcards_available),
                (properties::SHARED_AVAILABLE, connack.shared_available),
            ] {
                if !available {
                    out.extend([identifier, 0]);
                }
            }
            if let Some(seconds) = connack.session_expiry_s {
                long_property(out, properties::SESSION_EXPIRY, seconds);
            }
            if let Some(seconds) = connack.keep_alive_s {
                short_property(out, properties::SERVER_KEEP_ALIVE, seconds);
            }
            reason_string(out, connack.text)
        })
    })
}

fn reason_string(out: &mut Vec<u8>, text: Option<&str>) -> Result<(), TooLong> {
    let Some(text) = text else { return Ok(()) };
    out.push(properties::REASON_STRING);
    binary(out, text.as_bytes())
}

/// Appends a SUBACK (3.9) with a code for each filter.
pub fn suback(out: &mut Vec<u8>, version: Version, id: u16, codes: &[u8], text: Option<&str>) -> Result<(), TooLong> {
    packet(out, SUBACK, |out| {
        out.extend(id.to_be_bytes());
        with_properties(out, version, |out| reason_string(out, text))?;
        out.extend_from_slice(codes);
        Ok(())
    })
}

/// Appends an UNSUBACK (3.11); in MQTT 5 with a code for each filter.
pub fn unsuback(out: &mut Vec<u8>, version: Version, id: u16, codes: &[u8]) -> Result<(), TooLong> {
    packet(out, UNSUBACK, |out| {
        out.extend(id.to_be_bytes());
        if version == Version::V5 {
            out.push(0);
            out.extend_from_slice(codes);
        }
        Ok(())
    })
}
