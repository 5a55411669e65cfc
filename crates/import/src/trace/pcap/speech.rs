//! What a client says: the protocol follows from its first bytes.

use super::flow::Ended;
use pubmark_wire::mqtt::{self, Version, server};
use pubmark_wire::{nats, resp};
use std::borrow::Cow;
use std::collections::HashMap;

/// Longest message that is kept until it is complete, bytes.
const MESSAGE_MAX: usize = 64 << 20;
/// First byte of a TLS connection: a handshake.
const TLS: u8 = 0x16;
/// First byte of MQTT: CONNECT.
const MQTT_CONNECT: u8 = 0x10;

/// The protocol of a client.
#[derive(Debug)]
pub enum Speech {
    /// Nothing was said yet.
    Unknown,
    /// MQTT, with the topics that have an alias.
    Mqtt(Version, HashMap<u16, String>),
    /// NATS.
    Nats,
    /// RESP.
    Resp,
}

/// What follows in the bytes of a client.
pub enum Next<'a> {
    /// A message that it publishes: its topic, its size, and the bytes that it takes.
    Message {
        /// Topic, subject or channel.
        topic: Cow<'a, [u8]>,
        /// Length of the payload, bytes.
        bytes: u64,
        /// Length with everything around it, bytes.
        length: usize,
    },
    /// Something else of this length.
    Passed(usize),
    /// More bytes must come first.
    Incomplete,
    /// Nothing that can be read.
    Ends(Ended),
}

impl Speech {
    /// Reads what is at the front of the bytes.
    pub fn next<'a>(&mut self, bytes: &'a [u8]) -> Next<'a> {
        let next = match self {
            Speech::Unknown => return self.begin(bytes),
            Speech::Mqtt(version, aliases) => of_mqtt(*version, aliases, bytes),
            Speech::Nats => of_nats(bytes),
            Speech::Resp => of_resp(bytes),
        };
        match next {
            Some(Next::Incomplete) if bytes.len() > MESSAGE_MAX => Next::Ends(Ended::Malformed),
            Some(next) => next,
            None => Next::Ends(Ended::Malformed),
        }
    }

    fn begin<'a>(&mut self, bytes: &'a [u8]) -> Next<'a> {
        const NATS: &[u8] = b"CONNECT ";
        match bytes.first() {
            None => return Next::Incomplete,
            Some(&TLS) => return Next::Ends(Ended::Encrypted),
            Some(b'*') => *self = Speech::Resp,
            Some(&MQTT_CONNECT) => {
                return match server::connect(bytes) {
                    Ok(None) if bytes.len() <= MESSAGE_MAX => Next::Incomplete,
                    Ok(Some((version, _, length))) => {
                        *self = Speech::Mqtt(version, HashMap::new());
                        Next::Passed(length)
                    }
                    _ => Next::Ends(Ended::Other),
                };
            }
            Some(_) => {
                let front = &bytes[..bytes.len().min(NATS.len())];
                match front.eq_ignore_ascii_case(&NATS[..front.len()]) {
                    true if front.len() < NATS.len() => return Next::Incomplete,
                    true => *self = Speech::Nats,
                    false => return Next::Ends(Ended::Other),
                }
            }
        }
        Next::Passed(0)
    }
}

/// `None` if the bytes are not of the protocol.
fn of_mqtt<'a>(version: Version, aliases: &mut HashMap<u16, String>, bytes: &'a [u8]) -> Option<Next<'a>> {
    if bytes.is_empty() {
        return Some(Next::Incomplete);
    }
    let Some((packet, length)) = server::decode(bytes, version).ok()? else { return Some(Next::Incomplete) };
    let server::ServerPacket::Publish(mqtt::Publish { topic, alias, payload, .. }) = packet else {
        return Some(Next::Passed(length));
    };
    let topic: Cow<'a, [u8]> = match (topic, alias) {
        ("", alias) => aliases.get(&alias?)?.clone().into_bytes().into(),
        (topic, alias) => {
            alias.map(|alias| aliases.insert(alias, topic.to_owned()));
            topic.as_bytes().into()
        }
    };
    Some(Next::Message { topic, bytes: payload.len() as u64, length })
}

fn of_nats(bytes: &[u8]) -> Option<Next<'_>> {
    if bytes.is_empty() {
        return Some(Next::Incomplete);
    }
    let Some((item, length)) = nats::FromClient::decode(bytes).ok()? else { return Some(Next::Incomplete) };
    Some(match item {
        nats::FromClient::Publish { subject, payload, .. } => {
            Next::Message { topic: subject.into(), bytes: payload.len() as u64, length }
        }
        _ => Next::Passed(length),
    })
}

fn of_resp(bytes: &[u8]) -> Option<Next<'_>> {
    if bytes.is_empty() {
        return Some(Next::Incomplete);
    }
    let Some((item, length)) = resp::Item::decode(bytes).ok()? else { return Some(Next::Incomplete) };
    let mut words = item.values()?.filter_map(|word| word.text());
    let is_publish = words
        .next()
        .is_some_and(|name| name.eq_ignore_ascii_case(b"PUBLISH") || name.eq_ignore_ascii_case(b"SPUBLISH"));
    Some(match (is_publish, words.next(), words.next()) {
        (true, Some(channel), Some(message)) => {
            Next::Message { topic: channel.into(), bytes: message.len() as u64, length }
        }
        _ => Next::Passed(length),
    })
}
