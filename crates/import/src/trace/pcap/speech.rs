//! Reads the messages that a client sends. Its first bytes tell the protocol.

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

/// Reason why no more of a connection is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamEnd {
    /// All bytes were read, or the last message is incomplete.
    Whole,
    /// Bytes are missing.
    Gap,
    /// The bytes are those of TLS.
    Encrypted,
    /// The bytes are of no known protocol.
    Other,
    /// The bytes were messages first, and then something else.
    Malformed,
}

/// The protocol of a client.
#[derive(Debug)]
pub enum ClientSpeech {
    /// Nothing was said yet.
    Unknown,
    /// MQTT, with the topics that have an alias.
    Mqtt(Version, HashMap<u16, String>),
    /// NATS.
    Nats,
    /// RESP.
    Resp,
}

/// The next item in the bytes of a client.
pub enum StreamItem<'a> {
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
    Ends(StreamEnd),
}

impl ClientSpeech {
    /// Reads what is at the front of the bytes.
    pub fn next<'a>(&mut self, bytes: &'a [u8]) -> StreamItem<'a> {
        let next = match self {
            ClientSpeech::Unknown => return self.begin(bytes),
            ClientSpeech::Mqtt(version, aliases) => of_mqtt(*version, aliases, bytes),
            ClientSpeech::Nats => of_nats(bytes),
            ClientSpeech::Resp => of_resp(bytes),
        };
        match next {
            Some(StreamItem::Incomplete) if bytes.len() > MESSAGE_MAX => StreamItem::Ends(StreamEnd::Malformed),
            Some(next) => next,
            None => StreamItem::Ends(StreamEnd::Malformed),
        }
    }

    fn begin<'a>(&mut self, bytes: &'a [u8]) -> StreamItem<'a> {
        const NATS: &[u8] = b"CONNECT ";
        match bytes.first() {
            None => return StreamItem::Incomplete,
            Some(&TLS) => return StreamItem::Ends(StreamEnd::Encrypted),
            Some(b'*') => *self = ClientSpeech::Resp,
            Some(&MQTT_CONNECT) => {
                return match server::connect(bytes) {
                    Ok(None) if bytes.len() <= MESSAGE_MAX => StreamItem::Incomplete,
                    Ok(Some((version, _, length))) => {
                        *self = ClientSpeech::Mqtt(version, HashMap::new());
                        StreamItem::Passed(length)
                    }
                    _ => StreamItem::Ends(StreamEnd::Other),
                };
            }
            Some(_) => {
                let front = &bytes[..bytes.len().min(NATS.len())];
                match front.eq_ignore_ascii_case(&NATS[..front.len()]) {
                    true if front.len() < NATS.len() => return StreamItem::Incomplete,
                    true => *self = ClientSpeech::Nats,
                    false => return StreamItem::Ends(StreamEnd::Other),
                }
            }
        }
        StreamItem::Passed(0)
    }
}

/// `None` if the bytes are not of the protocol.
fn of_mqtt<'a>(version: Version, aliases: &mut HashMap<u16, String>, bytes: &'a [u8]) -> Option<StreamItem<'a>> {
    if bytes.is_empty() {
        return Some(StreamItem::Incomplete);
    }
    let Some((packet, length)) = server::decode(bytes, version).ok()? else { return Some(StreamItem::Incomplete) };
    let server::ServerPacket::Publish(mqtt::Publish { topic, alias, payload, .. }) = packet else {
        return Some(StreamItem::Passed(length));
    };
    let topic: Cow<'a, [u8]> = match (topic, alias) {
        ("", alias) => aliases.get(&alias?)?.clone().into_bytes().into(),
        (topic, alias) => {
            alias.map(|alias| aliases.insert(alias, topic.to_owned()));
            topic.as_bytes().into()
        }
    };
    Some(StreamItem::Message { topic, bytes: payload.len() as u64, length })
}

fn of_nats(bytes: &[u8]) -> Option<StreamItem<'_>> {
    if bytes.is_empty() {
        return Some(StreamItem::Incomplete);
    }
    let Some((item, length)) = nats::FromClient::decode(bytes).ok()? else { return Some(StreamItem::Incomplete) };
    Some(match item {
        nats::FromClient::Publish { subject, payload, .. } => {
            StreamItem::Message { topic: subject.into(), bytes: payload.len() as u64, length }
        }
        _ => StreamItem::Passed(length),
    })
}

fn of_resp(bytes: &[u8]) -> Option<StreamItem<'_>> {
    if bytes.is_empty() {
        return Some(StreamItem::Incomplete);
    }
    let Some((item, length)) = resp::Item::decode(bytes).ok()? else { return Some(StreamItem::Incomplete) };
    let mut words = item.values()?.filter_map(|word| word.text());
    let is_publish = words
        .next()
        .is_some_and(|name| name.eq_ignore_ascii_case(b"PUBLISH") || name.eq_ignore_ascii_case(b"SPUBLISH"));
    Some(match (is_publish, words.next(), words.next()) {
        (true, Some(channel), Some(message)) => {
            StreamItem::Message { topic: channel.into(), bytes: message.len() as u64, length }
        }
        _ => StreamItem::Passed(length),
    })
}
