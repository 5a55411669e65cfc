//! Packets for a server: CONNECT, SUBSCRIBE and what follows them.

use super::properties::{self, PropertyValue};
use super::read::Reader;
use super::{Ack, Frame, Kind, Publish, Qos, Side, Version, ack, frame, misplaced, publish};
use crate::Malformed;

/// The first packet of a client (3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectPacket<'a> {
    /// The client's name.
    pub client_id: &'a str,
    /// True if the server should discard its session of this client.
    pub clean_start: bool,
    /// Longest time without a packet from the client, s; 0 disables the limit.
    pub keep_alive_s: u16,
    /// User name.
    pub user: Option<&'a str>,
    /// Password; in MQTT 3.1.1 only with a user name.
    pub password: Option<&'a [u8]>,
    /// A message to publish after the client is gone.
    pub will: Option<Will<'a>>,
    /// Time for which the session outlives the connection, s; `u32::MAX` means forever. MQTT 3.1.1:
    /// 0 with a clean session, otherwise forever.
    pub session_expiry_s: u32,
    /// Maximum number of unacknowledged QoS 1 and 2 messages; 65535 unless the client limits it.
    pub receive_maximum: u16,
}

impl<'a> ConnectPacket<'a> {
    /// Creates a CONNECT with a clean session and defaults.
    pub fn clean(client_id: &'a str) -> ConnectPacket<'a> {
        ConnectPacket {
            client_id,
            clean_start: true,
            keep_alive_s: 0,
            user: None,
            password: None,
            will: None,
            session_expiry_s: 0,
            receive_maximum: u16::MAX,
        }
    }
}

/// A message to publish after a client is gone (3.1.2.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Will<'a> {
    /// The topic.
    pub topic: &'a str,
    /// The message.
    pub payload: &'a [u8],
    /// Quality of service.
    pub qos: Qos,
    /// True if the server keeps it for later subscribers.
    pub retain: bool,
}

/// Filters of a SUBSCRIBE or UNSUBSCRIBE, in order, each with the requested QoS (0 in an
/// UNSUBSCRIBE). They have been checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filters<'a> {
    bytes: &'a [u8],
    with_options: bool,
}

impl<'a> Iterator for Filters<'a> {
    type Item = (&'a str, Qos);

    fn next(&mut self) -> Option<Self::Item> {
        let mut reader = Reader(self.bytes);
        let filter = reader.text("a filter").ok()?;
        let options = if self.with_options { reader.byte("options").ok()? } else { 0 };
        self.bytes = reader.0;
        Some((filter, Qos::from_number(options & 3)?))
    }
}

/// A packet for a server after a client has connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerPacket<'a> {
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
    /// A subscription request (3.8).
    Subscribe {
        /// Packet identifier.
        id: u16,
        /// The requested filters. Options of MQTT 5 other than the QoS are checked and left out.
        filters: Filters<'a>,
    },
    /// A request to end subscriptions (3.10).
    Unsubscribe {
        /// Packet identifier.
        id: u16,
        /// The filters to end.
        filters: Filters<'a>,
    },
    /// A keep-alive request (3.12).
    Pingreq,
    /// An orderly disconnect (3.14).
    Disconnect {
        /// MQTT 5: reason code.
        reason: u8,
        /// MQTT 5: new session expiry, s, if it changes.
        session_expiry_s: Option<u32>,
    },
    /// MQTT 5: a step of an authentication (3.15).
    Auth {
        /// Reason code.
        reason: u8,
    },
}

/// Reads the CONNECT at the start of `bytes`, and returns it with its length; `None` if more bytes
/// must arrive first.
pub fn connect(bytes: &[u8]) -> Result<Option<(Version, ConnectPacket<'_>, usize)>, Malformed> {
    let Some(Frame { kind, body, total_bytes, .. }) = frame(bytes, Version::V3_1_1, Side::Server)? else {
        return Ok(None);
    };
    if kind != Kind::Connect {
        return Err(Malformed::new(format!("a {kind} before CONNECT")));
    }
    let mut reader = Reader(body);
    let (name, level) = (reader.text("a protocol name")?, reader.byte("a protocol level")?);
    let version = match (name, level) {
        ("MQTT", 4) => Version::V3_1_1,
        ("MQTT", 5) => Version::V5,
        _ => return Err(Malformed::new(format!("protocol {name:?} at level {level} is not spoken here"))),
    };
    let connect = connect_body(&mut reader, version)?;
    reader.end("a CONNECT")?;
    Ok(Some((version, connect, total_bytes)))
}

fn connect_body<'a>(reader: &mut Reader<'a>, version: Version) -> Result<ConnectPacket<'a>, Malformed> {
    let v5 = version == Version::V5;
    let flags = reader.byte("the flags of a CONNECT")?;
    let (has_will, will_flags) = (flags & 4 != 0, flags & 0x38);
    let will_qos = Qos::from_number(will_flags >> 3 & 3);
    let (has_password, has_user) = (flags & 0x40 != 0, flags & 0x80 != 0);
    let orphan_password = has_password && !has_user && !v5;
    let (false, true, false, Some(will_qos)) = (flags & 1 != 0, has_will || will_flags == 0, orphan_password, will_qos)
    else {
        return Err(Malformed::new(format!("a CONNECT with flags 0x{flags:02X}")));
    };
    let clean_start = flags & 2 != 0;
    let keep_alive_s = reader.short("the keep alive")?;
    let mut session_expiry_s = if v5 || clean_start { 0 } else { u32::MAX };
    let mut receive_maximum = u16::MAX;
    if v5 {
        properties::read(reader, properties::CONNECT, |identifier, value| match (identifier, value) {
            (properties::SESSION_EXPIRY, PropertyValue::Number(number)) => session_expiry_s = number,
            (properties::RECEIVE_MAXIMUM, PropertyValue::Number(number)) => receive_maximum = number as u16,
            _ => {}
        })?;
    }
    let client_id = reader.text("a client identifier")?;
    let mut will = None;
    if has_will {
        if v5 {
            properties::read(reader, properties::WILL, |_, _| ())?;
        }
        let (topic, payload) = (reader.topic()?, reader.binary("a will message")?);
        will = Some(Will { topic, payload, qos: will_qos, retain: flags & 0x20 != 0 });
    }
    let user = if has_user { Some(reader.text("a user name")?) } else { None };
    let password = if has_password { Some(reader.binary("a password")?) } else { None };
    Ok(ConnectPacket { client_id, clean_start, keep_alive_s, user, password, will, session_expiry_s, receive_maximum })
}

/// Reads the packet at the start of `bytes` as a server, after CONNECT, and returns it with its
/// length; `None` if more bytes must arrive first.
pub fn decode(bytes: &[u8], version: Version) -> Result<Option<(ServerPacket<'_>, usize)>, Malformed> {
    let Some(Frame { kind, flags, body, total_bytes }) = frame(bytes, version, Side::Server)? else { return Ok(None) };
    let v5 = version == Version::V5;
    let mut reader = Reader(body);
    let packet = match kind {
        Kind::Publish => ServerPacket::Publish(publish(flags, body, version, properties::PUBLISH_BY_CLIENT)?),
        Kind::Puback => ServerPacket::Puback(ack(body, version)?),
        Kind::Pubrec => ServerPacket::Pubrec(ack(body, version)?),
        Kind::Pubrel => ServerPacket::Pubrel(ack(body, version)?),
        Kind::Pubcomp => ServerPacket::Pubcomp(ack(body, version)?),
        Kind::Subscribe => {
            let (id, filters) = filters(&mut reader, v5, true)?;
            ServerPacket::Subscribe { id, filters }
        }
        Kind::Unsubscribe => {
            let (id, filters) = filters(&mut reader, v5, false)?;
            ServerPacket::Unsubscribe { id, filters }
        }
        Kind::Pingreq => {
            reader.end("a PINGREQ")?;
            ServerPacket::Pingreq
        }
        Kind::Disconnect => disconnect(&mut reader, v5)?,
        Kind::Auth if v5 => ServerPacket::Auth { reason: super::reason_and_text(body, properties::AUTH)?.0 },
        _ => return Err(misplaced(kind, Side::Server)),
    };
    Ok(Some((packet, total_bytes)))
}

fn disconnect<'a>(reader: &mut Reader<'a>, v5: bool) -> Result<ServerPacket<'a>, Malformed> {
    let (mut reason, mut session_expiry_s) = (0, None);
    if v5 && !reader.0.is_empty() {
        reason = reader.byte("a reason code")?;
    }
    if v5 && !reader.0.is_empty() {
        properties::read(reader, properties::DISCONNECT_BY_CLIENT, |identifier, value| {
            if let (properties::SESSION_EXPIRY, PropertyValue::Number(number)) = (identifier, value) {
                session_expiry_s = Some(number);
            }
        })?;
    }
    reader.end("a DISCONNECT")?;
    Ok(ServerPacket::Disconnect { reason, session_expiry_s })
}

/// Reads the identifier and the filters of a SUBSCRIBE or UNSUBSCRIBE, and checks them.
fn filters<'a>(reader: &mut Reader<'a>, v5: bool, with_options: bool) -> Result<(u16, Filters<'a>), Malformed> {
    let id = reader.packet_id()?;
    if v5 {
        let allowed = if with_options { properties::SUBSCRIBE } else { properties::UNSUBSCRIBE };
        properties::read(reader, allowed, |_, _| ())?;
    }
    let filters = Filters { bytes: reader.0, with_options };
    if reader.0.is_empty() {
        return Err(Malformed::new("a subscription without a filter"));
    }
    while !reader.0.is_empty() {
        let filter = reader.text("a filter")?;
        if !is_filter(filter) {
            return Err(Malformed::new(format!(
                "{filter:?} is not a filter: wildcards stand alone in a level, # at the end"
            )));
        }
        if with_options {
            let options = reader.byte("the options of a subscription")?;
            // No local, retain as published and retain handling exist in MQTT 5 only (3.8.3.1).
            let may_stand = if v5 { options >> 6 == 0 && options >> 4 & 3 != 3 } else { options >> 2 == 0 };
            if options & 3 == 3 || !may_stand {
                return Err(Malformed::new(format!("a subscription with options 0x{options:02X}")));
            }
        }
    }
    Ok((id, filters))
}

/// True if wildcards are only at allowed places (4.7.1).
fn is_filter(filter: &str) -> bool {
    let levels = || filter.split('/');
    let last = levels().count() - 1;
    let fits = |(place, level): (usize, &str)| match level {
        "#" => place == last,
        "+" => true,
        _ => !level.contains(['+', '#']),
    };
    !filter.is_empty() && levels().enumerate().all(fits)
}
