//! MQTT 3.1.1 and 5. Retained messages and sessions that outlive their connection are not kept; filters are a
//! topic, or end in `#`, and may be shared by a group.

use super::protocol::{Ask, Hub, KeptWill, PublisherAnswer, Speech};
use crate::routes::{Address, Filter, KeptAddress};
use crate::script::{AffectedMessages, PeerScript};
use pubmark_model::header::{END, Header, MAX_SEQUENCE};
use pubmark_wire::Malformed;
use pubmark_wire::mqtt::server::{self, ConnectPacket, Filters, ServerPacket, Will};
use pubmark_wire::mqtt::{Ack, Connack, Publish, Qos, Version, encode, reason};
use std::collections::VecDeque;
use std::rc::Rc;

/// Return code and reason code of a temporary refusal: server unavailable.
const UNAVAILABLE: [u8; 2] = [3, 0x88];
/// Reason code of a refused message if the script has none.
const QUOTA_EXCEEDED: u8 = 0x97;
/// Topic filter not valid; MQTT 3.1.1 has only one failure code.
const NOT_VALID: u8 = 0x8F;

/// A message that waits for room in its subscriber's window.
struct Waiting {
    qos: Qos,
    to: KeptAddress,
    payload: Box<[u8]>,
}

/// A connection.
pub struct MqttServer {
    denied: bool,
    script: Rc<PeerScript>,
    /// Messages received on the connection.
    published: u64,
    /// Topics of the aliases from 1 on; empty for those that are not in use.
    aliases: Vec<String>,
    /// `None` before CONNECT.
    version: Option<Version>,
    /// QoS 1 and 2 messages that the client takes unacknowledged.
    window: u16,
    unacknowledged: u16,
    next_id: u16,
    waiting: VecDeque<Waiting>,
    waiting_bytes: usize,
    /// Identifiers, in order, of QoS 2 messages whose PUBREL has not come.
    unreleased: VecDeque<u16>,
    /// The client's will, unless it has said goodbye.
    will: Option<KeptWill>,
}

impl Speech for MqttServer {
    const SCHEME: &'static str = "mqtt";

    fn new(denied: bool) -> Self {
        MqttServer {
            denied,
            script: Rc::default(),
            published: 0,
            aliases: Vec::new(),
            version: None,
            window: u16::MAX,
            unacknowledged: 0,
            next_id: 1,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            unreleased: VecDeque::new(),
            will: None,
        }
    }

    fn obey(&mut self, script: &Rc<PeerScript>) {
        self.script = script.clone();
    }

    fn greet(&mut self, _: &mut Vec<u8>) -> bool {
        false
    }

    fn input(&mut self, bytes: &[u8], out: &mut Vec<u8>, hub: &mut Hub<'_>) -> Result<usize, Malformed> {
        let mut done = 0;
        let version = match self.version {
            Some(version) => version,
            None => {
                let Some((version, connect, used)) = server::connect(bytes)? else { return Ok(0) };
                self.connect(version, &connect, out, hub);
                done = used;
                version
            }
        };
        while let Some((packet, used)) = server::decode(&bytes[done..], version)? {
            self.packet(version, &packet, out, hub)?;
            done += used;
        }
        Ok(done)
    }

    fn deliver(&mut self, token: u32, to: Address<'_>, payload: &[u8], qos: u8, out: &mut Vec<u8>) {
        let granted = Qos::from_number(token as u8).unwrap_or(Qos::AtMostOnce);
        let qos = Qos::from_number(qos).unwrap_or(Qos::AtMostOnce).min(granted);
        if qos > Qos::AtMostOnce && self.unacknowledged >= self.window {
            self.waiting_bytes += payload.len();
            self.waiting.push_back(Waiting { qos, to: to.kept(), payload: payload.into() });
            return;
        }
        self.say(qos, to, payload, out);
    }

    fn hears_to_the_end(&self) -> bool {
        !self.script.will.close.is_empty()
    }

    fn will(&mut self) -> Option<KeptWill> {
        self.will.take()
    }

    fn kept_bytes(&self) -> usize {
        self.waiting_bytes
    }
}

impl MqttServer {
    fn connect(&mut self, version: Version, connect: &ConnectPacket<'_>, out: &mut Vec<u8>, hub: &mut Hub<'_>) {
        let code = if self.denied { UNAVAILABLE[usize::from(version == Version::V5)] } else { 0 };
        // It always fits without a text.
        let limits = &self.script.limits;
        let mut connack = Connack { maximum_packet_bytes: limits.packet_bytes, ..Connack::new(code) };
        connack.receive_maximum = limits.inflight.unwrap_or(connack.receive_maximum);
        connack.maximum_qos = limits.qos.and_then(Qos::from_number).unwrap_or(connack.maximum_qos);
        connack.topic_alias_maximum = limits.topic_aliases.unwrap_or(0);
        self.aliases = vec![String::new(); usize::from(connack.topic_alias_maximum)];
        let _ = encode::connack(out, version, &connack);
        self.version = Some(version);
        self.window = connect.receive_maximum;
        let kept = |will: Will<'_>| {
            let to = Address::of(will.topic.as_bytes()).kept();
            KeptWill { to, payload: will.payload.into(), qos: will.qos as u8 }
        };
        self.will = connect.will.filter(|_| !self.denied).map(kept);
        if self.denied {
            hub(Ask::Close);
        }
    }

    fn packet(
        &mut self,
        version: Version,
        packet: &ServerPacket<'_>,
        out: &mut Vec<u8>,
        hub: &mut Hub<'_>,
    ) -> Result<(), Malformed> {
        match *packet {
            ServerPacket::Publish(ref publish) => return self.publish(version, publish, out, hub),
            ServerPacket::Puback(_) | ServerPacket::Pubcomp(_) => self.room(out),
            ServerPacket::Pubrec(Ack { id, reason }) if reason < reason::FAILURE => {
                encode::pubrel(out, version, Ack { id, reason: 0 });
            }
            ServerPacket::Pubrec(_) => self.room(out),
            ServerPacket::Pubrel(Ack { id, .. }) => {
                let place = self.unreleased.iter().position(|other| *other == id);
                let known = place.is_some_and(|place| self.unreleased.remove(place).is_some());
                encode::pubcomp(out, version, Ack { id, reason: if known { 0 } else { reason::UNKNOWN_PACKET_ID } });
            }
            ServerPacket::Subscribe { id, filters } => subscribe(version, id, filters, out, hub),
            ServerPacket::Unsubscribe { id, filters } => {
                let codes: Vec<u8> = filters
                    .map(|(filter, _)| {
                        u8::from(!each(filter, |_, filter| {
                            // Whatever was granted: a client has one subscription to a filter.
                            for token in 0..=2 {
                                hub(Ask::Unsubscribe(filter, token));
                            }
                        })) * NOT_VALID
                    })
                    .collect();
                let _ = encode::unsuback(out, version, id, &codes);
            }
            ServerPacket::Pingreq => encode::pingresp(out),
            ServerPacket::Disconnect { .. } => {
                let undue = &self.script.will.undue;
                let publisher = |will: &KeptWill| Header::read(&will.payload).map(|header| header.publisher);
                self.will.take_if(|will| publisher(will).is_none_or(|publisher| !undue.contains(&publisher)));
                hub(Ask::Close);
            }
            ServerPacket::Auth { .. } => return Err(Malformed::new("an AUTH that nobody asked for")),
        }
        Ok(())
    }

    #[inline]
    fn publish(
        &mut self,
        version: Version,
        publish: &Publish<'_>,
        out: &mut Vec<u8>,
        hub: &mut Hub<'_>,
    ) -> Result<(), Malformed> {
        let Publish { qos, id, topic, payload, .. } = *publish;
        let mut aliased = String::new();
        if let Some(alias) = publish.alias {
            let Some(known) = self.aliases.get_mut(usize::from(alias) - 1) else {
                return Err(Malformed::new("a topic alias, which no CONNACK allowed"));
            };
            if topic.is_empty() && known.is_empty() {
                return Err(Malformed::new("a topic alias that stands for no topic yet"));
            }
            if !topic.is_empty() {
                topic.clone_into(known);
            }
            known.clone_into(&mut aliased);
        }
        let topic = if aliased.is_empty() { topic } else { &aliased };
        let known = qos == Qos::ExactlyOnce && self.unreleased.contains(&id);
        let reply = publish.response_topic.unwrap_or_default().as_bytes();
        let ask = Ask::Publish { to: Address { topic: topic.as_bytes(), reply }, payload, qos: qos as u8 };
        self.published += 1;
        let end = self.script.end.as_ref().filter(|end| self.published >= end.after);
        if let Some(end) = end {
            if version == Version::V5 {
                encode::disconnect(out, version, end.code as u8, None);
            }
            hub(Ask::Close);
            return Ok(());
        }
        let closes = &self.script.will.close;
        let is_last = |header: Header| header.sequence == END && closes.contains(&header.publisher);
        if !closes.is_empty() && Header::read(payload).is_some_and(is_last) {
            hub(Ask::Close);
        }
        let code = match if known { PublisherAnswer::Acknowledged } else { hub(ask).answer } {
            PublisherAnswer::Acknowledged => 0,
            PublisherAnswer::Refused => self.script.refuse.code.unwrap_or(QUOTA_EXCEEDED),
            PublisherAnswer::Nothing => return Ok(()),
        };
        match qos {
            Qos::AtMostOnce => {}
            Qos::AtLeastOnce => encode::puback(out, version, Ack { id, reason: code }),
            Qos::ExactlyOnce if code >= reason::FAILURE && version == Version::V5 => {
                encode::pubrec(out, version, Ack { id, reason: code });
            }
            Qos::ExactlyOnce => {
                if !known {
                    self.unreleased.push_back(id);
                }
                encode::pubrec(out, version, Ack { id, reason: 0 });
            }
        }
        Ok(())
    }

    fn say(&mut self, qos: Qos, to: Address<'_>, payload: &[u8], out: &mut Vec<u8>) {
        let (Some(version), Ok(topic)) = (self.version, str::from_utf8(to.topic)) else { return };
        let response_topic = str::from_utf8(to.reply).ok().filter(|reply| !reply.is_empty());
        let mut id = 0;
        if qos > Qos::AtMostOnce {
            id = self.next_id;
            // In a window below 65535 the oldest is complete before its identifier is reused.
            self.next_id = if id == u16::MAX { 1 } else { id + 1 };
            self.unacknowledged += 1;
        }
        let affected = |by: &AffectedMessages| {
            let header = Header::read(payload).filter(|header| header.sequence < MAX_SEQUENCE);
            header.is_some_and(|header| by.meet(header.publisher, header.sequence))
        };
        let publish = Publish {
            dup: affected(&self.script.mqtt.dup),
            qos,
            retain: false,
            topic,
            id,
            alias: None,
            response_topic,
            correlation: None,
            properties: &[],
            payload,
        };
        // What came in one packet fits into another.
        let _ = encode::publish(out, version, &publish);
        if qos > Qos::AtMostOnce && affected(&self.script.mqtt.redeliver) {
            let _ = encode::publish(out, version, &Publish { dup: false, ..publish });
        }
    }

    /// Makes room after the client has completed a message.
    fn room(&mut self, out: &mut Vec<u8>) {
        self.unacknowledged = self.unacknowledged.saturating_sub(1);
        if let Some(Waiting { qos, to, payload }) = self.waiting.pop_front() {
            self.waiting_bytes -= payload.len();
            self.say(qos, to.get(), &payload, out);
        }
    }
}

fn subscribe(version: Version, id: u16, filters: Filters<'_>, out: &mut Vec<u8>, hub: &mut Hub<'_>) {
    let codes: Vec<u8> = filters
        .map(|(filter, qos)| {
            let known = each(filter, |group, filter| {
                hub(match group {
                    Some(group) => Ask::Share(filter, group.as_bytes(), qos as u32),
                    None => Ask::Subscribe(filter, qos as u32),
                });
            });
            match version {
                _ if known => qos as u8,
                Version::V5 => NOT_VALID,
                Version::V3_1_1 => reason::FAILURE,
            }
        })
        .collect();
    let _ = encode::suback(out, version, id, &codes, None);
}

/// Calls `with` for each route of a filter, and its group if it is shared (4.8.2): `a/#` is `a` and all below `a/`
/// (4.7.1.2). Returns false if the peer does not support it: `+`, and a group without a filter.
fn each(filter: &str, mut with: impl FnMut(Option<&str>, Filter<'_>)) -> bool {
    let (group, filter) = match filter.strip_prefix("$share/").map(|rest| rest.split_once('/')) {
        None => (None, filter),
        Some(Some((group, filter))) if !group.is_empty() && !filter.is_empty() => (Some(group), filter),
        Some(_) => return false,
    };
    if filter.contains('+') {
        return false;
    }
    match filter.strip_suffix('#') {
        None => with(group, Filter::Exact(filter.as_bytes())),
        Some(prefix) => {
            with(group, Filter::Below(prefix.as_bytes()));
            if let Some(parent) = prefix.strip_suffix('/') {
                with(group, Filter::Exact(parent.as_bytes()));
            }
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::speech::Handled;
    use pubmark_wire::mqtt::{self, decode};

    const VERSIONS: [Version; 2] = [Version::V3_1_1, Version::V5];

    fn connect(version: Version, receive_maximum: u16) -> Vec<u8> {
        let mut out = Vec::new();
        let connect = ConnectPacket { receive_maximum, ..ConnectPacket::clean("c") };
        encode::connect(&mut out, version, &connect).unwrap();
        out
    }

    /// Sends bytes, and returns the answer; appends requests to `asked`.
    fn say(mqtt: &mut MqttServer, bytes: &[u8], acknowledge: bool, asked: &mut Vec<String>) -> Vec<u8> {
        let mut out = Vec::new();
        let answer = if acknowledge { PublisherAnswer::Acknowledged } else { PublisherAnswer::Nothing };
        let hub = &mut |ask: Ask<'_>| {
            asked.push(format!("{ask:?}"));
            Handled { answer, listeners: 0 }
        };
        assert_eq!(mqtt.input(bytes, &mut out, hub).unwrap(), bytes.len());
        out
    }

    fn connected(version: Version, receive_maximum: u16) -> MqttServer {
        let mut mqtt = MqttServer::new(false);
        let answer = say(&mut mqtt, &connect(version, receive_maximum), true, &mut Vec::new());
        let (packet, _) = decode(&answer, version).unwrap().unwrap();
        assert_eq!(packet, mqtt::Packet::Connack(Connack::new(0)));
        mqtt
    }

    #[test]
    fn messages_are_acknowledged_as_their_quality_demands_and_as_the_script_allows() {
        for version in VERSIONS {
            for (qos, wanted) in [(Qos::AtLeastOnce, 0x40), (Qos::ExactlyOnce, 0x50)] {
                for acknowledge in [true, false] {
                    let mut mqtt = connected(version, u16::MAX);
                    let mut bytes = Vec::new();
                    let publish = Publish::plain(qos, 9, "t", b"xyz");
                    encode::publish(&mut bytes, version, &publish).unwrap();
                    let mut asked = Vec::new();
                    let answer = say(&mut mqtt, &bytes, acknowledge, &mut asked);
                    assert_eq!(asked.len(), 1);
                    assert_eq!(answer.first().copied(), acknowledge.then_some(wanted));
                    if qos == Qos::ExactlyOnce && acknowledge {
                        assert!(!say(&mut mqtt, &bytes, true, &mut asked).is_empty());
                        assert_eq!(asked.len(), 1, "a QoS 2 message that is repeated is handed on once");
                        let mut release = Vec::new();
                        encode::pubrel(&mut release, version, Ack { id: 9, reason: 0 });
                        assert_eq!(say(&mut mqtt, &release, true, &mut asked), [0x70, 2, 0, 9]);
                    }
                }
            }
        }
    }

    #[test]
    fn filters_become_routes() {
        for version in VERSIONS {
            let mut mqtt = connected(version, u16::MAX);
            let mut bytes = Vec::new();
            let filters = [
                ("a/b", Qos::AtMostOnce),
                ("a/#", Qos::AtLeastOnce),
                ("a/+", Qos::AtMostOnce),
                ("$share/g/a", Qos::AtMostOnce),
                ("$share/g", Qos::AtMostOnce),
            ];
            encode::subscribe(&mut bytes, version, 5, &filters).unwrap();
            let mut asked = Vec::new();
            let answer = say(&mut mqtt, &bytes, true, &mut asked);
            let Some((mqtt::Packet::Suback { id: 5, codes, .. }, _)) = decode(&answer, version).unwrap() else {
                panic!("{answer:?}")
            };
            let refused = if version == Version::V5 { NOT_VALID } else { 0x80 };
            assert_eq!(codes, [0, 1, refused, 0, refused]);
            assert_eq!(asked.len(), 4, "{asked:?}");
            assert!(asked[3].starts_with("Share"), "{asked:?}");
        }
    }

    #[test]
    fn a_full_window_is_respected_and_nothing_is_forgotten() {
        let version = Version::V5;
        let mut mqtt = connected(version, 2);
        let mut out = Vec::new();
        for payload in [b"1", b"2", b"3"] {
            mqtt.deliver(1, Address::of(b"t"), payload, 2, &mut out);
        }
        assert_eq!(mqtt.kept_bytes(), 1);
        let mut payloads = Vec::new();
        let mut done = 0;
        while let Some((mqtt::Packet::Publish(publish), used)) = decode(&out[done..], version).unwrap() {
            payloads.push((publish.id, publish.qos, publish.payload.to_vec()));
            done += used;
        }
        assert_eq!(payloads, [(1, Qos::AtLeastOnce, b"1".to_vec()), (2, Qos::AtLeastOnce, b"2".to_vec())]);
        let mut ack = Vec::new();
        encode::puback(&mut ack, version, Ack { id: 1, reason: 0 });
        let answer = say(&mut mqtt, &ack, true, &mut Vec::new());
        let Some((mqtt::Packet::Publish(publish), _)) = decode(&answer, version).unwrap() else { panic!("{answer:?}") };
        assert_eq!((publish.id, publish.payload), (3, &b"3"[..]));
        assert_eq!(mqtt.kept_bytes(), 0);
    }

    #[test]
    fn a_denied_connection_is_told_so() {
        for (version, code) in VERSIONS.into_iter().zip(UNAVAILABLE) {
            let mut mqtt = MqttServer::new(true);
            let mut asked = Vec::new();
            let answer = say(&mut mqtt, &connect(version, u16::MAX), true, &mut asked);
            let Some((mqtt::Packet::Connack(connack), _)) = decode(&answer, version).unwrap() else { panic!() };
            assert_eq!(connack.code, code);
            assert!(reason::connack_is_temporary(code));
            assert_eq!(asked, ["Close"]);
        }
    }
}
