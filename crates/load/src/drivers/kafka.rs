//! Kafka: a producer or a consumer of one topic, at one broker, or at each broker of a cluster that it needs (`kafka/spread.rs`).
//!
//! Each client creates its topic if there is none. A producer sends a message at once, as a batch of
//! its own; while `inflight` requests wait for their answers, it collects messages for one further
//! batch. With `linger`, it collects each batch for that time, or until it is full. A consumer
//! reads from the end of its partitions, or from the beginning if it starts late: it fetches again as soon as an answer
//! is read. It keeps its positions in memory, so that it goes on there if it comes back.
//!
//! All batches of a producer go to one partition, which follows from its number, or each to the next
//! one, or each message has a key that selects its partition: then a batch is collected for each of them.
//! A consumer has all partitions; the members of a group share them out by their numbers, without a
//! coordinator, or as the group's coordinator and leader say (`group = coordinator`, see `kafka/group.rs`).
//!
//! A producer that comes back sends again, in the same batches, what was not acknowledged. At QoS 2 it
//! is idempotent, and the broker recognises these batches; at QoS 1 they may arrive twice.
//!
//! Memory: 20 bytes for each request in flight, and 40 for each collected message, whose body all producers share; with
//! keys, 64 bytes for each partition of a producer.

mod batch;
mod brokers;
mod collected;
mod consumer;
mod group;
mod keys;
mod member;
mod names;
mod producer;
mod refusal;
mod removal;
mod settings;
mod setup;
mod spread;

pub use settings::KafkaSettings;

use super::foreign_peer::foreign;
use crate::session::{ClientSettings, ClientSpec, Copies, Session, SessionError, SessionEvent, SettingsError};
use brokers::{Brokers, Lane};
use consumer::{Consumer, FetchStop};
use group::{Alive, Progress};
use member::Member;
use names::{ClientNames, EXPECTED, GREETING};
use producer::Producer;
use pubmark_model::leftovers::Leftover;
use pubmark_model::protocol::Role;
use pubmark_model::units::Ns;
use pubmark_wire::kafka::{
    self as wire, BrokerMap, KafkaApi, KafkaRequest, KafkaResponse, MetadataAnswer, NO_ERROR, ResponseFrame,
    TopicAnswer,
};
use refusal::{check_login, check_mechanism, decoded, in_words, refused};
use std::net::SocketAddr;

/// Correlation of the requests that keep a connection open.
const KEEP_ALIVE: i32 = -1;
/// Time for the creation of a topic, ms.
const TOPIC_MS: i32 = 30_000;
/// A new topic is asked for this often, one answer after the other, until its leader is known; then
/// the client connects again after a pause.
const TRIES: u8 = 100;
/// Silence after which a broker ends a connection: less than its `connections.max.idle.ms`, 10 min by
/// default.
const IDLE_S: u32 = 480;
/// The same for members of groups, who are called twice as often, and such calls in half of the longer time.
const TICKS_S: u32 = 1;
const IDLE_TICKS: u16 = IDLE_S as u16;

/// The request that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// ApiVersions.
    Versions,
    /// SaslHandshake.
    Mechanism,
    /// SaslAuthenticate.
    Login,
    /// Metadata.
    Topic,
    /// CreateTopics.
    Creating,
    /// InitProducerId.
    Identity,
    /// Those of a member of a group before it has its share.
    Group,
    /// ListOffsets.
    Position,
    /// A consumer's Fetch.
    Fetching,
    /// Any of those of a producer, or of a client that removes topics.
    Connected,
}

enum Part {
    Producer(Box<Producer>),
    Consumer(Box<Consumer>),
}

/// One client.
pub struct Kafka {
    state: State,
    /// Questions for the topic that were answered without a leader.
    tries: u8,
    /// True if it has created its topic, or tried to.
    has_created: bool,
    names: Box<ClientNames>,
    /// Address of the broker that it has connected to, if the server has several.
    at: Option<Box<str>>,
    /// The brokers, if it has connections to several.
    brokers: Option<Box<Brokers>>,
    part: Part,
    /// Calls for signs of life, of a producer.
    ticks: u16,
    /// True if a group is being removed.
    removes_group: bool,
}

impl Session for Kafka {
    type Settings = KafkaSettings;

    const SEPARATOR: char = '.';
    /// No topic has this name: patterns of topics are not supported.
    const REST: &'static str = "*";
    const HINT: &'static str = "it may not speak Kafka's protocol, or it may expect TLS (kafka+ssl://) or a login";

    fn settings(terms: &ClientSettings<'_>) -> Result<KafkaSettings, SettingsError> {
        KafkaSettings::read(terms)
    }

    fn new(settings: &KafkaSettings, spec: &ClientSpec) -> Self {
        let names = ClientNames {
            client: (&*spec.name).into(),
            topic: (&*spec.topic).into(),
            is_given: spec.wild,
            is_spread: false,
            to: 0,
        };
        let part = match spec.role {
            Role::Subscriber => {
                let group = spec.group.as_deref().filter(|_| settings.group.is_some());
                let member = group.map(|group| Box::new(Member::new(group)));
                Part::Consumer(Box::new(Consumer::new(spec.id, spec.members, spec.replays, member)))
            }
            _ => Part::Producer(Box::new(Producer::new(settings, spec.id))),
        };
        Kafka {
            state: State::Versions,
            tries: 0,
            has_created: false,
            names: Box::new(names),
            at: None,
            brokers: None,
            part,
            ticks: 0,
            removes_group: false,
        }
    }

    fn at(&mut self, address: &str) {
        self.at = Some(address.into());
    }

    /// Consumers of all partitions have several leaders, and so do producers that use several; members of a group have
    /// its coordinator as well.
    fn spreads(settings: &KafkaSettings, role: Role) -> bool {
        let reads = role == Role::Subscriber;
        settings.partitions > 1 && (reads || settings.has_parts()) || reads && settings.group.is_some()
    }

    fn among(&mut self, members: &[SocketAddr], place: usize) {
        self.brokers = Some(Box::new(Brokers::new(members, place)));
        (self.names.is_spread, self.names.to) = (true, place as u8);
        if let Part::Producer(producer) = &mut self.part {
            producer.spread(members.len());
        }
    }

    fn owes(&self) -> bool {
        matches!(&self.part, Part::Producer(producer) if producer.owes())
    }

    fn rested(&mut self, _: &KafkaSettings, out: &mut Vec<u8>) -> Result<(), SessionError> {
        self.ask_again(out);
        Ok(())
    }

    fn open(&mut self, _: &KafkaSettings, _: &ClientSpec, out: &mut Vec<u8>) {
        self.ask(State::Versions, KafkaRequest::ApiVersions, out);
    }

    fn resume(&mut self, settings: &KafkaSettings, _: &ClientSpec) {
        (self.state, self.tries) = (State::Versions, 0);
        match &mut self.part {
            Part::Producer(producer) => producer.resume(settings),
            Part::Consumer(consumer) => consumer.resume(),
        }
    }

    fn resend(&mut self, settings: &KafkaSettings, copies: &mut dyn Copies, out: &mut Vec<u8>) -> bool {
        let Part::Producer(producer) = &mut self.part else { return false };
        producer.resend(settings, &self.names, copies, out)
    }

    fn input(
        &mut self,
        settings: &KafkaSettings,
        bytes: &[u8],
        out: &mut Vec<u8>,
        heard: &mut dyn FnMut(SessionEvent<'_>),
    ) -> Result<usize, SessionError> {
        if self.brokers.is_some() {
            return self.input_spread(settings, bytes, out, heard);
        }
        let mut taken = 0;
        loop {
            let rest = &bytes[taken..];
            if let (State::Fetching, Part::Consumer(consumer)) = (self.state, &mut self.part) {
                let (used, stop) = consumer.input(settings, &self.names, rest, out, heard)?;
                taken += used;
                match stop {
                    FetchStop::More => return Ok(taken),
                    FetchStop::Held => self.rejoin(settings, out, heard),
                    FetchStop::Overtaken => {
                        self.ask_position(out);
                    }
                    FetchStop::Other | FetchStop::Ended => {}
                }
            }
            let rest = &bytes[taken..];
            let frame = ResponseFrame::decode(rest).map_err(|why| foreign(EXPECTED, rest, &why.0))?;
            let Some((frame, frame_bytes)) = frame else { return Ok(taken) };
            match (frame.correlation, &mut self.part) {
                (KEEP_ALIVE, _) => {}
                (..GREETING, Part::Consumer(consumer)) => {
                    if consumer.lives(&frame)? == Alive::Rejoins && consumer.fetching == 0 {
                        self.rejoin(settings, out, heard);
                    }
                }
                _ if self.state == State::Group => self.coordinated(settings, &frame, out, heard)?,
                _ if self.names.topic.is_empty() && self.state == State::Connected => {
                    self.removes_group &= !removal::answered(&self.names, &frame, out, heard)?;
                }
                _ => self.answered(settings, &frame, out, heard)?,
            }
            taken += frame_bytes;
        }
    }

    fn announced(&self, rest: &[u8]) -> u64 {
        match (&self.part, self.state) {
            (Part::Consumer(consumer), State::Fetching) => consumer.announced(rest),
            _ => ResponseFrame::announced(rest),
        }
    }

    fn subscribe(&mut self, _: &KafkaSettings, _: &ClientSpec, out: &mut Vec<u8>) {
        match &mut self.part {
            Part::Consumer(consumer) if consumer.member.is_some() => {
                self.state = State::Group;
                if self.brokers.is_some() {
                    return self.search(out);
                }
                consumer.enter(&self.names, out);
            }
            _ => {
                self.ask_position(out);
            }
        }
    }

    fn takeover_ns(settings: &KafkaSettings) -> Ns {
        settings.takeover_ns()
    }

    fn publish(&mut self, settings: &KafkaSettings, message: &[u8], sequence: u32, out: &mut Vec<u8>) -> bool {
        let Part::Producer(producer) = &mut self.part else { return false };
        producer.publish(settings, &self.names, (message, sequence), out)
    }

    fn linger_ns(settings: &KafkaSettings) -> Ns {
        settings.linger_ns
    }

    fn begun(&mut self) -> Option<u32> {
        let Part::Producer(producer) = &mut self.part else { return None };
        producer.begun()
    }

    fn collects(&self, settings: &KafkaSettings, message_bytes: usize, is_open: bool) -> u32 {
        match &self.part {
            Part::Producer(producer) => producer.collects(settings, message_bytes, is_open),
            Part::Consumer(_) => 0,
        }
    }

    fn is_collecting(&self, batch: u32) -> bool {
        matches!(&self.part, Part::Producer(producer) if producer.is_collecting(batch))
    }

    fn flush(&mut self, settings: &KafkaSettings, batch: u32, out: &mut Vec<u8>) {
        if let Part::Producer(producer) = &mut self.part {
            producer.flush(settings, &self.names, batch, out);
        }
    }

    fn keep_alive(&mut self, settings: &KafkaSettings, out: &mut Vec<u8>) {
        if self.state == State::Fetching && !self.address_coordinator() {
            return;
        }
        match (&mut self.part, &settings.group) {
            (Part::Consumer(consumer), Some(group)) if self.state == State::Fetching => {
                consumer.tick(group, &self.names, out);
            }
            // A consumer asks all the time, and a broker answers one request of a connection after the other.
            (Part::Consumer(_), _) => {}
            (Part::Producer(_), Some(_)) if self.ticks < IDLE_TICKS => self.ticks += 1,
            (Part::Producer(_), _) => {
                self.ticks = 0;
                let lanes = self.brokers.as_ref().map_or(1, |brokers| brokers.lanes.len()) as u8;
                let is_up = |place: &u8| self.brokers.as_ref().is_none_or(|brokers| brokers.lane(*place) == Lane::Up);
                for place in (0..lanes).filter(is_up) {
                    self.names.put_to(place, KEEP_ALIVE, KafkaRequest::ApiVersions, out);
                }
            }
        }
    }

    fn keep_alive_s(settings: &KafkaSettings) -> u32 {
        if settings.group.is_some() { TICKS_S } else { IDLE_S }
    }

    /// Only groups have a farewell.
    fn close(&mut self, _: &KafkaSettings, _: &ClientSpec, out: &mut Vec<u8>) {
        if self.address_coordinator()
            && let (State::Fetching, Part::Consumer(consumer)) = (self.state, &mut self.part)
        {
            consumer.leave(&self.names, out);
        }
    }

    fn leaves(settings: &KafkaSettings, spec: &ClientSpec) -> Vec<Leftover> {
        let group = spec.group.clone().filter(|_| settings.group.is_some() && spec.role == Role::Subscriber);
        group.map(Leftover::Group).into_iter().chain([Leftover::Topic(spec.topic.clone())]).collect()
    }

    fn remove(&mut self, _: &KafkaSettings, thing: &Leftover, _: u32, out: &mut Vec<u8>) -> bool {
        if self.removes_group || !removal::ask(&self.names, thing, out) {
            return false;
        }
        self.removes_group = matches!(thing, Leftover::Group(_));
        true
    }

    fn unacknowledged(&self) -> usize {
        match &self.part {
            Part::Producer(producer) => producer.unacknowledged(),
            Part::Consumer(_) => 0,
        }
    }

    fn held(&self) -> u64 {
        match &self.part {
            Part::Producer(producer) => producer.held(),
            Part::Consumer(_) => 0,
        }
    }
}

impl Kafka {
    fn put(&self, correlation: i32, request: KafkaRequest<'_>, out: &mut Vec<u8>) {
        self.names.put(correlation, request, out);
    }

    fn ask(&mut self, state: State, request: KafkaRequest<'_>, out: &mut Vec<u8>) {
        self.state = state;
        self.put(GREETING, request, out);
    }

    fn ask_topic(&mut self, out: &mut Vec<u8>) {
        self.state = State::Topic;
        self.put(GREETING, KafkaRequest::Metadata { topic: self.names.topic.as_bytes() }, out);
    }

    /// Asks where the consumer begins in its next partition. Returns false if all of them are known.
    fn ask_position(&mut self, out: &mut Vec<u8>) -> bool {
        self.state = State::Position;
        let Part::Consumer(consumer) = &mut self.part else { return false };
        let Some(partition) = consumer.asked() else { return false };
        if let Some(brokers) = &mut self.brokers {
            // Without its leader, it is asked for later.
            let Some(place) = brokers.leader_up(partition) else { return true };
            (self.names.to, brokers.asks_position) = (place, true);
        }
        let time = consumer.from();
        let request = KafkaRequest::ListOffsets { topic: self.names.topic.as_bytes(), partition, time };
        self.put(GREETING, request, out);
        true
    }

    /// Handles the answer to a request of a member of a group.
    fn coordinated(
        &mut self,
        settings: &KafkaSettings,
        frame: &ResponseFrame<'_>,
        out: &mut Vec<u8>,
        heard: &mut dyn FnMut(SessionEvent<'_>),
    ) -> Result<(), SessionError> {
        let (Part::Consumer(consumer), Some(group)) = (&mut self.part, &settings.group) else { return Ok(()) };
        match consumer.coordinated(group, &self.names, frame, out)? {
            Progress::Pending => {}
            Progress::Position => {
                self.ask_position(out);
            }
            Progress::Up => self.read_on(settings, out, heard),
            Progress::Lost => self.seek(),
        }
        Ok(())
    }

    /// Lets a consumer read, whose partitions and positions are known.
    fn read_on(&mut self, settings: &KafkaSettings, out: &mut Vec<u8>, heard: &mut dyn FnMut(SessionEvent<'_>)) {
        let Part::Consumer(consumer) = &mut self.part else { return };
        let generation = consumer.begin_share();
        if self.brokers.is_none() {
            consumer.fetch_at(settings, &self.names, 0, |_| true, out);
        }
        self.state = State::Fetching;
        generation.into_iter().for_each(|generation| heard(SessionEvent::Assigned(generation)));
        heard(SessionEvent::Subscribed);
    }

    /// Lets a member of a group join again.
    fn rejoin(&mut self, settings: &KafkaSettings, out: &mut Vec<u8>, heard: &mut dyn FnMut(SessionEvent<'_>)) {
        let has_coordinator = self.address_coordinator();
        if let (Part::Consumer(consumer), Some(group)) = (&mut self.part, &settings.group)
            && consumer.rejoin(group, &self.names, has_coordinator, out, heard)
        {
            self.state = State::Group;
        }
    }

    /// Handles an answer to any other request but a fetch.
    fn answered(
        &mut self,
        settings: &KafkaSettings,
        frame: &ResponseFrame<'_>,
        out: &mut Vec<u8>,
        heard: &mut dyn FnMut(SessionEvent<'_>),
    ) -> Result<(), SessionError> {
        let api = match self.state {
            State::Versions => KafkaApi::ApiVersions,
            State::Mechanism => KafkaApi::SaslHandshake,
            State::Login => KafkaApi::SaslAuthenticate,
            State::Topic => KafkaApi::Metadata,
            State::Creating => KafkaApi::CreateTopics,
            State::Identity => KafkaApi::InitProducerId,
            State::Position => KafkaApi::ListOffsets,
            State::Connected | State::Fetching | State::Group => KafkaApi::Produce,
        };
        if frame.correlation != GREETING && api != KafkaApi::Produce {
            return Err(foreign(EXPECTED, frame.body, "the answer is to a request that was not made"));
        }
        let response = decoded(api, frame)?;
        match response {
            // The batch is sent again, to the broker that leads now.
            KafkaResponse::Produce(answer) if answer.error == wire::NOT_LEADER_OR_FOLLOWER && self.at.is_some() => {
                return Err(SessionError::Busy(in_words(answer.error, None)));
            }
            KafkaResponse::Produce(answer) => {
                if let Part::Producer(producer) = &mut self.part {
                    producer.answered(settings, &self.names, (0, frame.correlation, &answer), out, heard)?;
                }
            }
            KafkaResponse::ApiVersions(error, lacks) => self.versions(settings, (error, lacks), out, heard)?,
            KafkaResponse::SaslHandshake(error) => {
                check_mechanism(error)?;
                self.ask(State::Login, KafkaRequest::SaslAuthenticate { login: settings.login() }, out);
            }
            KafkaResponse::SaslAuthenticate(error, words) => {
                check_login(error, words)?;
                self.greeted(out, heard);
            }
            KafkaResponse::Metadata(answer) => {
                let may_lack = answer.error == wire::LEADER_NOT_AVAILABLE && self.knows_topic();
                if answer.error == NO_ERROR || may_lack {
                    self.follow_leader(frame.body)?;
                }
                self.topic(settings, (&answer, frame.body), out, heard)?;
            }
            KafkaResponse::CreateTopics(answer) => self.created(&answer, out)?,
            KafkaResponse::InitProducerId(answer) => match (answer.error, &mut self.part) {
                (NO_ERROR, Part::Producer(producer)) => {
                    producer.identified(settings, answer.id, answer.epoch);
                    self.connected(heard);
                }
                (error, _) => return Err(refused("an idempotent producer", error, None)),
            },
            KafkaResponse::ListOffsets(answer) => self.position(settings, answer.error, answer.offset, out, heard)?,
            _ => return Err(foreign(EXPECTED, frame.body, "the answer is to a request that was not made")),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
