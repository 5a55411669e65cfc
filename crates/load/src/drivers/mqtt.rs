//! MQTT 3.1.1 and MQTT 5: one client's conversation with a broker.

mod aliases;
mod deliveries;
mod limits;
mod settings;
#[cfg(test)]
mod tests;

use super::request_part::RequestPart;
use super::topic_writer::TopicWriter;
use crate::session::{
    ClientSettings, ClientSpec, Copies, MessageRefusal, RefusalKind, Session, SessionError, SessionEvent, SettingsError,
};
use aliases::TopicAliases;
use deliveries::Deliveries;
use limits::SessionNeeds;
use pubmark_model::header::PROBE;
use pubmark_model::leftovers::Leftover;
use pubmark_model::protocol::Role;
use pubmark_wire::Malformed;
use pubmark_wire::mqtt::reason::{self, FAILURE, UNKNOWN_PACKET_ID};
use pubmark_wire::mqtt::{Ack, Connack, Packet, Publish, Qos, Version, ack_text, decode, encode, packet_bytes};
pub use settings::MqttSettings;
use std::borrow::Cow;
use std::collections::VecDeque;

/// Number of packet identifiers: 1 to 65535.
const IDENTIFIERS: usize = u16::MAX as usize;
/// Topic filters of one SUBSCRIBE at most.
const FILTERS: usize = 100;
/// First byte of a CONNACK, the only packet that a server may begin with.
const CONNACK: u8 = 0x20;
/// Bytes of a foreign answer that an error shows.
const EXCERPT_BYTES: usize = 40;
/// First bytes of other protocols.
const OTHERS: [(&[u8], &str); 6] = [
    (b"HTTP/", "HTTP"),
    (b"INFO ", "NATS"),
    (b"-ERR", "RESP, as Redis does"),
    (b"AMQP", "AMQP"),
    (b"SSH-", "SSH"),
    (b"\x15\x03", "TLS: write mqtts://"),
];

/// State of an exchange that the client began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// PUBLISH is sent: PUBACK or PUBREC comes next.
    Published,
    /// PUBREL is sent: PUBCOMP comes next.
    Released,
    /// SUBSCRIBE is sent.
    Subscribing,
    /// UNSUBSCRIBE is sent.
    Unsubscribing,
    /// The exchange is over, but an earlier one is not.
    Over,
}

/// An exchange with a packet identifier of the client.
#[derive(Clone, Copy, Debug)]
struct Exchange {
    sequence: u32,
    step: Step,
}

/// One client. Exchanges of QoS 1 and 2 are held in a ring: their identifiers are
/// consecutive, so an acknowledgement is found by subtraction.
pub struct Mqtt {
    needs: SessionNeeds,
    topics: TopicWriter,
    /// `None` if topics have no aliases.
    aliases: Option<Box<TopicAliases>>,
    part: RequestPart,
    exchanges: VecDeque<Exchange>,
    /// Identifier of the first exchange in the ring.
    first_id: u16,
    /// PUBLISH packets whose acknowledgement is outstanding.
    unacknowledged: u16,
    /// Maximum number of unacknowledged packets.
    window: u16,
    greeted: bool,
    /// True if the server had a session when it accepted the client.
    kept: bool,
    /// True if that session has the subscription.
    subscribed: bool,
    /// Index in the ring of the next exchange to resend after a reconnection.
    again: u16,
    /// What was delivered last, to a subscriber.
    deliveries: Option<Box<Deliveries>>,
    /// Identifiers, in order, of delivered QoS 2 messages that the server has not
    /// released yet.
    unreleased: VecDeque<u16>,
}

impl Session for Mqtt {
    type Settings = MqttSettings;

    const SEPARATOR: char = '/';
    const REST: &'static str = "#";
    const HINT: &'static str = "it may not speak this version of MQTT (option mqtt_version), or it may expect TLS (mqtts://), or WebSocket (ws://)";

    fn unsaid(settings: &MqttSettings) -> &'static str {
        match settings.version {
            Version::V3_1_1 => {
                "; a server of MQTT 3.1.1 has no words for a refused message: its log may say why, and so may \
                 options.mqtt_version=5 with qos=1"
            }
            Version::V5 if settings.qos == Qos::AtMostOnce => {
                "; at QoS 0 a server may refuse messages without a word: its log may say why, and so may qos=1"
            }
            Version::V5 => "; the server's log may say why",
        }
    }

    fn settings(terms: &ClientSettings<'_>) -> Result<MqttSettings, SettingsError> {
        MqttSettings::read(terms)
    }

    fn new(settings: &MqttSettings, spec: &ClientSpec) -> Self {
        Mqtt {
            needs: SessionNeeds::of(settings, spec),
            topics: TopicWriter::new(spec, Self::SEPARATOR),
            aliases: None,
            part: RequestPart::of(spec),
            exchanges: VecDeque::new(),
            first_id: 1,
            unacknowledged: 0,
            window: settings.inflight,
            greeted: false,
            kept: false,
            subscribed: false,
            again: 0,
            // What a group's other subscribers had is not known here.
            deliveries: (spec.role == Role::Subscriber && spec.group.is_none()).then(Box::default),
            unreleased: VecDeque::new(),
        }
    }

    fn open(&mut self, settings: &MqttSettings, spec: &ClientSpec, out: &mut Vec<u8>) {
        settings.connect(spec, settings.remembers(spec), self.topics.of(PROBE), out);
    }

    fn resume(&mut self, settings: &MqttSettings, spec: &ClientSpec) {
        if !settings.remembers(spec) {
            *self = Self::new(settings, spec);
            return;
        }
        (self.greeted, self.kept, self.again, self.window) = (false, false, 0, settings.inflight);
        self.deliveries.iter_mut().for_each(|deliveries| deliveries.resume());
        let not_over = |one: &Exchange| matches!(one.step, Step::Published | Step::Released);
        self.exchanges.iter_mut().filter(|one| !not_over(one)).for_each(|one| one.step = Step::Over);
        self.tidy();
    }

    fn resend(&mut self, settings: &MqttSettings, copies: &mut dyn Copies, out: &mut Vec<u8>) -> bool {
        while let Some(Exchange { sequence, step }) = self.exchanges.get(usize::from(self.again)).copied() {
            let id = self.id_at(usize::from(self.again));
            self.again += 1;
            match step {
                Step::Published => return self.put(settings, copies.message(sequence), sequence, id, self.kept, out),
                // With its PUBREC the server has taken the message: it must not be sent again
                // (4.3.3), whether or not the server remembers.
                Step::Released => {
                    encode::pubrel(out, settings.version, Ack { id, reason: 0 });
                    return true;
                }
                Step::Subscribing | Step::Unsubscribing | Step::Over => {}
            }
        }
        false
    }

    fn input(
        &mut self,
        settings: &MqttSettings,
        bytes: &[u8],
        out: &mut Vec<u8>,
        heard: &mut dyn FnMut(SessionEvent<'_>),
    ) -> Result<usize, SessionError> {
        let mut done = 0;
        self.deliveries.iter_mut().for_each(|deliveries| deliveries.next_batch());
        if !self.greeted {
            if bytes.first().is_some_and(|first| *first != CONNACK) {
                return Err(foreign(bytes));
            }
            match decode(bytes, settings.version).map_err(|_| foreign(bytes))? {
                Some((Packet::Connack(connack), used)) => {
                    self.greet(settings, &connack)?;
                    heard(SessionEvent::Connected);
                    if self.is_subscribed(settings) {
                        heard(SessionEvent::Subscribed);
                    }
                    done = used;
                }
                _ => return Ok(0),
            }
        }
        while let Some((packet, used)) =
            decode(&bytes[done..], settings.version).map_err(|why| broken(settings, &why))?
        {
            self.packet(settings, &packet, &bytes[done..done + used], out, heard)?;
            done += used;
        }
        Ok(done)
    }

    fn announced(&self, rest: &[u8]) -> u64 {
        packet_bytes(rest).ok().flatten().map_or(rest.len() as u64, |bytes| bytes as u64)
    }

    fn subscribe(&mut self, settings: &MqttSettings, spec: &ClientSpec, out: &mut Vec<u8>) {
        if self.is_subscribed(settings) {
            return;
        }
        for some in filters(spec).chunks(FILTERS) {
            if let Some(id) = self.begin(some.len() as u32, Step::Subscribing) {
                // A topic that is too long for MQTT is never subscribed, and the deadline
                // reports it.
                let filters: Vec<(&str, Qos)> = some.iter().map(|filter| (&**filter, settings.qos)).collect();
                let _ = encode::subscribe(out, settings.version, id, &filters);
            }
        }
    }

    fn publish(&mut self, settings: &MqttSettings, message: &[u8], sequence: u32, out: &mut Vec<u8>) -> bool {
        let mut id = 0;
        if settings.qos > Qos::AtMostOnce {
            if self.unacknowledged >= self.window || self.exchanges.len() >= IDENTIFIERS {
                return false;
            }
            id = self.id_at(self.exchanges.len());
        }
        if !self.put(settings, message, sequence, id, false, out) {
            return false;
        }
        if id != 0 {
            self.exchanges.push_back(Exchange { sequence, step: Step::Published });
            self.unacknowledged += 1;
        }
        true
    }

    fn tail_bytes(&self, settings: &MqttSettings) -> Option<usize> {
        // With an alias, the first message to a topic has another frame than the others.
        let is_alike = self.aliases.as_ref().is_none_or(|aliases| aliases.knows(0));
        (settings.qos == Qos::AtMostOnce && self.topics.is_one() && is_alike).then_some(0)
    }

    fn keep_alive(&mut self, _: &MqttSettings, out: &mut Vec<u8>) {
        encode::pingreq(out);
    }

    fn keep_alive_s(settings: &MqttSettings) -> u32 {
        u32::from(settings.keep_alive_s)
    }

    fn close(&mut self, settings: &MqttSettings, spec: &ClientSpec, out: &mut Vec<u8>) {
        let remembered = settings.remembers(spec);
        let kept = if remembered && spec.role == Role::Subscriber { filters(spec) } else { Vec::new() };
        for some in kept.chunks(FILTERS) {
            if let Some(id) = self.begin(0, Step::Unsubscribing) {
                let filters: Vec<&str> = some.iter().map(|filter| &**filter).collect();
                let _ = encode::unsubscribe(out, settings.version, id, &filters);
            }
        }
        encode::disconnect(out, settings.version, 0, remembered.then_some(0));
    }

    /// A DISCONNECT of MQTT 3.1.1 leaves the session behind. With MQTT 5 the session
    /// stays only if DISCONNECT is never sent.
    fn leaves(settings: &MqttSettings, spec: &ClientSpec) -> Vec<Leftover> {
        let session = settings.remembers(spec).then(|| Leftover::Session(spec.name.clone()));
        let retains = settings.retain && spec.role == Role::Publisher;
        let retained = if retains { spec.published(Self::SEPARATOR) } else { Vec::new() };
        session.into_iter().chain(retained.into_iter().map(Leftover::Retained)).collect()
    }

    /// An empty message replaces the retained one (3.3.1.3).
    fn remove(&mut self, settings: &MqttSettings, thing: &Leftover, number: u32, out: &mut Vec<u8>) -> bool {
        let Leftover::Retained(topic) = thing else { return false };
        self.topics.set(topic);
        self.publish(settings, &[], number, out)
    }

    fn unacknowledged(&self) -> usize {
        usize::from(self.unacknowledged)
    }
}

impl Mqtt {
    /// True if the subscription is active without a SUBSCRIBE, because the server has
    /// kept it. Other clients subscribe again to be safe, but that would deliver retained
    /// messages once more.
    fn is_subscribed(&self, settings: &MqttSettings) -> bool {
        self.subscribed && settings.retain
    }

    /// Appends a PUBLISH; false if it is too long for MQTT.
    #[inline]
    fn put(
        &mut self,
        settings: &MqttSettings,
        message: &[u8],
        sequence: u32,
        id: u16,
        dup: bool,
        out: &mut Vec<u8>,
    ) -> bool {
        let alias = match &mut self.aliases {
            Some(aliases) if self.part.to().is_none() => {
                self.topics.number(sequence).and_then(|topic| aliases.of(topic))
            }
            _ => None,
        };
        let topic = match (alias, self.part.to()) {
            (Some((_, true)), _) => "",
            (_, Some(to)) => to,
            (_, None) => self.topics.of(sequence),
        };
        let publish = Publish {
            dup,
            qos: settings.qos,
            retain: settings.retain,
            topic,
            id,
            alias: alias.map(|(alias, _)| alias),
            response_topic: self.part.reply(),
            correlation: self.part.correlation(message),
            properties: &settings.properties,
            payload: message,
        };
        encode::publish(out, settings.version, &publish).is_ok()
    }

    /// Handles the server's first answer.
    fn greet(&mut self, settings: &MqttSettings, connack: &Connack<'_>) -> Result<(), SessionError> {
        if connack.code != 0 {
            let temporary = reason::connack_is_temporary(connack.code);
            let words = reason::connack_words(connack.code);
            let said = format!("the server refuses the connection: {}", detail(words, connack.code, connack.text));
            return Err(refused(said, connack.code, temporary));
        }
        self.needs.check(settings, connack).map_err(SessionError::Denied)?;
        self.window = self.window.min(connack.receive_maximum);
        let aliases = settings.topic_aliases.min(connack.topic_alias_maximum);
        self.aliases = (aliases > 0 && self.needs.publishes()).then(|| Box::new(TopicAliases::new(aliases)));
        self.greeted = true;
        self.kept = connack.session_present;
        if !self.kept {
            self.subscribed = false;
            self.unreleased.clear();
            self.deliveries.iter_mut().for_each(|deliveries| deliveries.forget());
        }
        Ok(())
    }

    fn packet(
        &mut self,
        settings: &MqttSettings,
        packet: &Packet<'_>,
        whole: &[u8],
        out: &mut Vec<u8>,
        heard: &mut dyn FnMut(SessionEvent<'_>),
    ) -> Result<(), SessionError> {
        match *packet {
            Packet::Publish(ref publish) => self.message(settings, publish, out, heard),
            Packet::Puback(ack) if settings.qos == Qos::AtLeastOnce => self.finish(ack, whole, Step::Published, heard),
            Packet::Puback(_) => Ok(()),
            Packet::Pubcomp(ack) => self.finish(ack, whole, Step::Released, heard),
            Packet::Pubrec(ack) => self.release(settings, ack, whole, out, heard),
            Packet::Pubrel(Ack { id, .. }) => {
                let place = self.unreleased.binary_search(&id);
                let known = place.is_ok_and(|place| self.unreleased.remove(place).is_some());
                let reason = if known { 0 } else { UNKNOWN_PACKET_ID };
                encode::pubcomp(out, settings.version, Ack { id, reason });
                Ok(())
            }
            Packet::Suback { id, codes, text } => {
                self.granted(settings, id, codes, text)?;
                if self.subscribed {
                    heard(SessionEvent::Subscribed);
                }
                Ok(())
            }
            Packet::Unsuback { id, .. } => {
                if let Some(index) = self.at_step(id, Step::Unsubscribing) {
                    self.end(index);
                }
                Ok(())
            }
            Packet::Pingresp => Ok(()),
            Packet::Disconnect { reason, text } => {
                let words = if reason == 0 { "for no reason that it gives" } else { reason::words(reason) };
                let said = format!("the server ends the connection: {}", detail(words, reason, text));
                Err(match reason {
                    0 => SessionError::Busy(said),
                    reason => refused(said, reason, reason::is_temporary(reason)),
                })
            }
            Packet::Connack(_) => Err(broken(settings, &Malformed::new("a second CONNACK"))),
            Packet::Auth { .. } => Err(broken(settings, &Malformed::new("an AUTH that nobody asked for"))),
        }
    }

    /// Handles a message for this client.
    fn message(
        &mut self,
        settings: &MqttSettings,
        publish: &Publish<'_>,
        out: &mut Vec<u8>,
        heard: &mut dyn FnMut(SessionEvent<'_>),
    ) -> Result<(), SessionError> {
        if publish.alias.is_some() {
            return Err(broken(settings, &Malformed::new("a topic alias, where the client allows none")));
        }
        self.part.asked(publish.response_topic.map(str::as_bytes));
        if let Some(deliveries) = &mut self.deliveries {
            let unreleased = publish.qos == Qos::ExactlyOnce && self.unreleased.binary_search(&publish.id).is_ok();
            if let Some(statement) = deliveries.check(settings.version, publish, unreleased) {
                heard(SessionEvent::Violation(statement));
            }
        }
        let ack = Ack { id: publish.id, reason: 0 };
        let event = || SessionEvent::Message {
            topic: publish.topic.as_bytes(),
            payload: publish.payload,
            is_retained: publish.retain,
        };
        match publish.qos {
            Qos::AtMostOnce => heard(event()),
            Qos::AtLeastOnce => {
                heard(event());
                encode::puback(out, settings.version, ack);
            }
            Qos::ExactlyOnce => {
                // Until the server releases the identifier, it is the same message again.
                if let Err(place) = self.unreleased.binary_search(&ack.id) {
                    self.unreleased.insert(place, ack.id);
                    heard(event());
                }
                encode::pubrec(out, settings.version, ack);
            }
        }
        Ok(())
    }

    /// Handles PUBREC: the server has the message, and the client releases it. A repeated
    /// one is answered again.
    fn release(
        &mut self,
        settings: &MqttSettings,
        ack: Ack,
        whole: &[u8],
        out: &mut Vec<u8>,
        heard: &mut dyn FnMut(SessionEvent<'_>),
    ) -> Result<(), SessionError> {
        let mut reason = 0;
        if let Some(index) = self.at_step(ack.id, Step::Published).filter(|_| settings.qos == Qos::ExactlyOnce) {
            if ack.reason >= FAILURE {
                self.settle(index, ack, whole, heard);
                return Ok(());
            }
            self.exchanges[index].step = Step::Released;
        } else if self.at_step(ack.id, Step::Released).is_none() {
            reason = UNKNOWN_PACKET_ID;
        }
        encode::pubrel(out, settings.version, Ack { id: ack.id, reason });
        Ok(())
    }

    /// Handles PUBACK or PUBCOMP, which end a publication. An exchange at another step,
    /// or already over, is left unchanged, so that no message counts twice.
    fn finish(
        &mut self,
        ack: Ack,
        whole: &[u8],
        step: Step,
        heard: &mut dyn FnMut(SessionEvent<'_>),
    ) -> Result<(), SessionError> {
        if let Some(index) = self.at_step(ack.id, step) {
            self.settle(index, ack, whole, heard);
        }
        Ok(())
    }

    /// Frees the slot of a message that the server has acknowledged or refused.
    fn settle(&mut self, index: usize, ack: Ack, whole: &[u8], heard: &mut dyn FnMut(SessionEvent<'_>)) {
        let sequence = self.exchanges[index].sequence;
        self.unacknowledged -= 1;
        self.end(index);
        if ack.reason < FAILURE {
            return heard(SessionEvent::Acknowledged(sequence));
        }
        let words = ack_text(whole).unwrap_or_else(|| reason::words(ack.reason));
        let kind = RefusalKind::limit_or_final(reason::is_limit(ack.reason));
        heard(SessionEvent::Refused(sequence, MessageRefusal { code: Some(ack.reason), words, kind }));
    }

    fn granted(
        &mut self,
        settings: &MqttSettings,
        id: u16,
        codes: &[u8],
        text: Option<&str>,
    ) -> Result<(), SessionError> {
        let asked = self.at_step(id, Step::Subscribing);
        let Some(index) = asked.filter(|index| self.exchanges[*index].sequence as usize == codes.len()) else {
            return Err(broken(settings, &Malformed::new("a SUBACK for what was not asked")));
        };
        self.end(index);
        // A failure has a higher code than any grant.
        let refusal = codes.iter().find(|code| **code >= FAILURE);
        let Some(granted) = refusal.or_else(|| codes.iter().min()) else { return Ok(()) };
        if *granted >= FAILURE {
            let said =
                format!("the server refuses the subscription: {}", detail(reason::words(*granted), *granted, text));
            return Err(refused(said, *granted, reason::is_temporary(*granted)));
        }
        let wanted = settings.qos as u8;
        if *granted < wanted {
            return Err(SessionError::Denied(format!(
                "the server grants QoS {granted}, and QoS {wanted} is asked for"
            )));
        }
        self.subscribed = !self.exchanges.iter().any(|one| one.step == Step::Subscribing);
        Ok(())
    }

    /// Begins an exchange; `None` if all identifiers are in use.
    fn begin(&mut self, sequence: u32, step: Step) -> Option<u16> {
        let free = self.exchanges.len() < IDENTIFIERS;
        free.then(|| {
            self.exchanges.push_back(Exchange { sequence, step });
            self.id_at(self.exchanges.len() - 1)
        })
    }

    /// Returns the identifier of an index in the ring.
    fn id_at(&self, index: usize) -> u16 {
        ((usize::from(self.first_id) - 1 + index) % IDENTIFIERS + 1) as u16
    }

    /// Returns the index of the exchange if it is at this step.
    fn at_step(&self, id: u16, step: Step) -> Option<usize> {
        let index = (usize::from(id) + IDENTIFIERS - usize::from(self.first_id)) % IDENTIFIERS;
        self.exchanges.get(index).filter(|exchange| exchange.step == step).map(|_| index)
    }

    /// Ends an exchange.
    fn end(&mut self, index: usize) {
        self.exchanges[index].step = Step::Over;
        self.tidy();
    }

    /// Removes ended exchanges from the front of the ring.
    fn tidy(&mut self) {
        while self.exchanges.front().is_some_and(|exchange| exchange.step == Step::Over) {
            self.exchanges.pop_front();
            self.first_id = self.id_at(1);
            self.again = self.again.saturating_sub(1);
        }
    }
}

/// Returns a subscriber's topic filters. Servers of MQTT 3.1.1 with shared subscriptions
/// spell them like MQTT 5 (4.8.2).
fn filters(spec: &ClientSpec) -> Vec<Cow<'_, str>> {
    let shared = |topic| match &spec.group {
        Some(group) => format!("$share/{group}/{topic}").into(),
        None => topic,
    };
    spec.hears(Mqtt::SEPARATOR).map(shared).collect()
}

fn detail(words: &str, code: u8, text: Option<&str>) -> String {
    let text = text.map(|text| format!(", \"{text}\"")).unwrap_or_default();
    format!("{words} (code 0x{code:02X}{text})")
}

/// Makes the error for a code of the server.
fn refused(said: String, code: u8, is_temporary: bool) -> SessionError {
    match is_temporary {
        true if reason::is_limit(code) => SessionError::Limit(said),
        true => SessionError::Busy(said),
        false => SessionError::Denied(said),
    }
}

fn broken(settings: &MqttSettings, why: &Malformed) -> SessionError {
    SessionError::Foreign(format!("the server does not keep to MQTT {}: {why}", settings.version))
}

/// Makes the error for an answer that does not begin with a CONNACK.
fn foreign(bytes: &[u8]) -> SessionError {
    let shown = bytes[..bytes.len().min(EXCERPT_BYTES)].escape_ascii();
    let other = OTHERS.iter().find(|(beginning, _)| bytes.starts_with(beginning));
    let speaks = other.map(|(_, name)| format!("; it seems to speak {name}")).unwrap_or_default();
    SessionError::Foreign(format!("the server answered with `{shown}`, which is not MQTT{speaks}"))
}
