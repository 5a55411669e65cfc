//! Kafka: a producer or a consumer of one topic, at one broker.
//!
//! Each client creates its topic if there is none. A producer sends a message at once, as a batch of
//! its own; while `inflight` requests wait for their answers, it collects messages for one further
//! batch. With `linger`, it collects each batch for that time, or until it is full. A consumer
//! reads from the end of its partitions, or from the beginning if it starts late: it fetches again as soon as an answer
//! is read. It keeps its positions in memory, so that it goes on there if it comes back.
//!
//! All batches of a producer go to one partition, which follows from its number, or each to the next
//! one. A consumer has all partitions; the members of a group share them out by their numbers, without
//! a coordinator, or as the group's coordinator and leader say (`group = coordinator`, see `kafka/group.rs`).
//!
//! A producer that comes back sends again, in the same batches, what was not acknowledged. At QoS 2 it
//! is idempotent, and the broker recognises these batches; at QoS 1 they may arrive twice.
//!
//! Memory: 12 bytes for each request in flight, and 40 for each collected message, whose body all producers share.

mod collected;
mod consumer;
mod group;
mod member;
mod names;
mod producer;
mod refusal;
mod removal;
mod settings;

pub use settings::KafkaSettings;

use super::foreign_peer::foreign;
use crate::session::{ClientSettings, ClientSpec, Copies, Session, SessionError, SessionEvent, SettingsError};
use consumer::{Consumer, FetchStop};
use group::Progress;
use member::Member;
use names::{ClientNames, EXPECTED, GREETING};
use producer::Producer;
use pubmark_model::leftovers::Leftover;
use pubmark_model::protocol::Role;
use pubmark_model::units::Ns;
use pubmark_wire::kafka::{
    self as wire, BrokerMap, KafkaApi, KafkaRequest, KafkaResponse, MetadataAnswer, NO_ERROR, RequestFrame,
    ResponseFrame, TopicAnswer, error_name,
};
use refusal::{in_words, refused};

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
        let names = ClientNames { client: (&*spec.name).into(), topic: (&*spec.topic).into(), is_given: spec.wild };
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
            part,
            ticks: 0,
            removes_group: false,
        }
    }

    fn at(&mut self, address: &str) {
        self.at = Some(address.into());
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
        let mut taken = 0;
        loop {
            let rest = &bytes[taken..];
            if let (State::Fetching, Part::Consumer(consumer)) = (self.state, &mut self.part) {
                let (used, stop) = consumer.input(settings, &self.names, rest, out, heard)?;
                taken += used;
                match stop {
                    FetchStop::More => return Ok(taken),
                    FetchStop::Held => self.rejoin(settings, out, heard),
                    FetchStop::Other => {}
                }
            }
            let rest = &bytes[taken..];
            let frame = ResponseFrame::decode(rest).map_err(|why| foreign(EXPECTED, rest, &why.0))?;
            let Some((frame, frame_bytes)) = frame else { return Ok(taken) };
            match (frame.correlation, &mut self.part) {
                (KEEP_ALIVE, _) => {}
                (..GREETING, Part::Consumer(consumer)) => {
                    if consumer.lives(&frame)? {
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

    fn flush(&mut self, settings: &KafkaSettings, batch: u32, out: &mut Vec<u8>) {
        if let Part::Producer(producer) = &mut self.part {
            producer.flush(settings, &self.names, batch, out);
        }
    }

    fn keep_alive(&mut self, settings: &KafkaSettings, out: &mut Vec<u8>) {
        match (&mut self.part, &settings.group) {
            (Part::Consumer(consumer), Some(group)) if self.state == State::Fetching => {
                consumer.tick(group, &self.names, out);
            }
            // A consumer asks all the time, and a broker answers one request of a connection after the other.
            (Part::Consumer(_), _) => {}
            (Part::Producer(_), Some(_)) if self.ticks < IDLE_TICKS => self.ticks += 1,
            (Part::Producer(_), _) => {
                self.ticks = 0;
                self.put(KEEP_ALIVE, KafkaRequest::ApiVersions, out);
            }
        }
    }

    fn keep_alive_s(settings: &KafkaSettings) -> u32 {
        if settings.group.is_some() { TICKS_S } else { IDLE_S }
    }

    /// Only groups have a farewell.
    fn close(&mut self, _: &KafkaSettings, _: &ClientSpec, out: &mut Vec<u8>) {
        if let (State::Fetching, Part::Consumer(consumer)) = (self.state, &mut self.part) {
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
        RequestFrame { correlation, client: self.names.client.as_bytes(), request }.put(out);
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
        }
        Ok(())
    }

    /// Lets a consumer read, whose partitions and positions are known.
    fn read_on(&mut self, settings: &KafkaSettings, out: &mut Vec<u8>, heard: &mut dyn FnMut(SessionEvent<'_>)) {
        let Part::Consumer(consumer) = &mut self.part else { return };
        let generation = consumer.begin_share();
        consumer.fetch(settings, &self.names, out);
        self.state = State::Fetching;
        generation.into_iter().for_each(|generation| heard(SessionEvent::Assigned(generation)));
        heard(SessionEvent::Subscribed);
    }

    /// Lets a member of a group join again.
    fn rejoin(&mut self, settings: &KafkaSettings, out: &mut Vec<u8>, heard: &mut dyn FnMut(SessionEvent<'_>)) {
        if let (Part::Consumer(consumer), Some(group)) = (&mut self.part, &settings.group)
            && consumer.rejoin(group, &self.names, out, heard)
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
        let response = KafkaResponse::decode(api, frame.body).map_err(|why| foreign(EXPECTED, frame.body, &why.0))?;
        match response {
            // The batch is sent again, to the broker that leads now.
            KafkaResponse::Produce(answer) if answer.error == wire::NOT_LEADER_OR_FOLLOWER && self.at.is_some() => {
                return Err(SessionError::Busy(in_words(answer.error, None)));
            }
            KafkaResponse::Produce(answer) => {
                if let Part::Producer(producer) = &mut self.part {
                    producer.answered(settings, &self.names, (frame.correlation, &answer), out, heard)?;
                }
            }
            KafkaResponse::ApiVersions(error, lacks) => self.versions(settings, (error, lacks), out, heard)?,
            KafkaResponse::SaslHandshake(NO_ERROR) => {
                self.ask(State::Login, KafkaRequest::SaslAuthenticate { login: settings.login() }, out);
            }
            KafkaResponse::SaslHandshake(error) => {
                return Err(SessionError::Denied(format!(
                    "the broker takes no login with PLAIN ({}): enable this mechanism",
                    error_name(error)
                )));
            }
            KafkaResponse::SaslAuthenticate(NO_ERROR, _) => self.greeted(out, heard),
            KafkaResponse::SaslAuthenticate(error, words) => {
                let said = in_words(error, words);
                return Err(SessionError::Denied(format!("{said}: check user and password")));
            }
            KafkaResponse::Metadata(answer) => {
                if answer.error == NO_ERROR {
                    self.follow_leader(frame.body)?;
                }
                self.topic(settings, &answer, out, heard)?;
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

    fn versions(
        &mut self,
        settings: &KafkaSettings,
        (error, lacks): (i16, Option<KafkaApi>),
        out: &mut Vec<u8>,
        heard: &mut dyn FnMut(SessionEvent<'_>),
    ) -> Result<(), SessionError> {
        let needs_login = settings.has_login();
        let is_needed = |api: &KafkaApi| match api {
            KafkaApi::SaslHandshake | KafkaApi::SaslAuthenticate => needs_login,
            KafkaApi::InitProducerId => settings.is_idempotent(),
            KafkaApi::FindCoordinator
            | KafkaApi::JoinGroup
            | KafkaApi::SyncGroup
            | KafkaApi::Heartbeat
            | KafkaApi::LeaveGroup
            | KafkaApi::OffsetCommit
            | KafkaApi::OffsetFetch
            | KafkaApi::DescribeGroups
            | KafkaApi::DeleteGroups => settings.group.is_some(),
            _ => true,
        };
        if error != NO_ERROR {
            return Err(refused("the question for its versions", error, None));
        }
        if let Some(api) = lacks.filter(is_needed) {
            let (_, version) = api.key();
            return Err(SessionError::Denied(format!(
                "the broker does not take {api:?} in version {version}: pubmark needs Kafka 2.3 or later"
            )));
        }
        if needs_login {
            self.ask(State::Mechanism, KafkaRequest::SaslHandshake { mechanism: b"PLAIN" }, out);
        } else {
            self.greeted(out, heard);
        }
        Ok(())
    }

    /// Handles a broker that has accepted the client: asks for its topic, if it has one.
    fn greeted(&mut self, out: &mut Vec<u8>, heard: &mut dyn FnMut(SessionEvent<'_>)) {
        match self.names.topic.is_empty() {
            true => self.connected(heard),
            false => self.ask_topic(out),
        }
    }

    fn connected(&mut self, heard: &mut dyn FnMut(SessionEvent<'_>)) {
        self.state = State::Connected;
        heard(SessionEvent::Connected);
    }

    /// Goes on only at the broker that leads the topic, if the server has several.
    fn follow_leader(&self, body: &[u8]) -> Result<(), SessionError> {
        let Some(at) = self.at.as_deref() else { return Ok(()) };
        let brokers = BrokerMap::decode(body).map_err(|why| foreign(EXPECTED, body, &why.0))?;
        match brokers.first_leader() {
            Some(leader) if leader != at => Err(SessionError::Elsewhere(leader)),
            Some(_) => Ok(()),
            None => Err(SessionError::Busy("no broker leads its topic".into())),
        }
    }

    /// Handles what the broker knows of the topic: creates it if there is none, and waits for its
    /// leader.
    fn topic(
        &mut self,
        settings: &KafkaSettings,
        answer: &MetadataAnswer<'_>,
        out: &mut Vec<u8>,
        heard: &mut dyn FnMut(SessionEvent<'_>),
    ) -> Result<(), SessionError> {
        let is_whole = self.names.is_given || answer.partitions >= settings.partitions as u32;
        let error = if answer.error == NO_ERROR && !is_whole { wire::LEADER_NOT_AVAILABLE } else { answer.error };
        if settings.group.is_some() && answer.brokers > 1 {
            return Err(SessionError::Denied(format!(
                "the server has {} brokers, and the coordinator of a group may be another one than the leader of its \
                 topic: use a server with one broker, or group = \"static\"",
                answer.brokers
            )));
        }
        match error {
            NO_ERROR => match &mut self.part {
                Part::Producer(producer) if settings.is_idempotent() && !producer.is_identified() => {
                    self.ask(State::Identity, KafkaRequest::InitProducerId, out);
                }
                Part::Consumer(consumer) => {
                    consumer.share(answer.partitions);
                    self.connected(heard);
                }
                Part::Producer(_) => self.connected(heard),
            },
            wire::UNKNOWN_TOPIC_OR_PARTITION if self.names.is_given => {
                return Err(SessionError::Denied(format!("there is no topic `{}`", self.names.topic)));
            }
            wire::UNKNOWN_TOPIC_OR_PARTITION if !self.has_created => {
                (self.state, self.has_created) = (State::Creating, true);
                let topic = self.names.topic.as_bytes();
                let partitions = settings.partitions;
                let request = KafkaRequest::CreateTopics { topic, partitions, timeout_ms: TOPIC_MS };
                self.put(GREETING, request, out);
            }
            error @ (wire::UNKNOWN_TOPIC_OR_PARTITION | wire::LEADER_NOT_AVAILABLE) => {
                self.try_again(error)?;
                self.ask_topic(out);
            }
            error => return Err(refused("its topic", error, None)),
        }
        Ok(())
    }

    fn created(&mut self, answer: &TopicAnswer<'_>, out: &mut Vec<u8>) -> Result<(), SessionError> {
        match answer.error {
            NO_ERROR | wire::TOPIC_ALREADY_EXISTS => {
                self.ask_topic(out);
                Ok(())
            }
            error => Err(refused("a new topic", error, answer.words)),
        }
    }

    /// Handles the position in a partition at which the consumer begins, unless it has one already.
    fn position(
        &mut self,
        settings: &KafkaSettings,
        error: i16,
        offset: i64,
        out: &mut Vec<u8>,
        heard: &mut dyn FnMut(SessionEvent<'_>),
    ) -> Result<(), SessionError> {
        match (error, &mut self.part) {
            (NO_ERROR, Part::Consumer(consumer)) => {
                consumer.begin(offset);
                if self.ask_position(out) {
                    return Ok(());
                }
                let Part::Consumer(consumer) = &mut self.part else { return Ok(()) };
                match consumer.store_beginning(&self.names, out) {
                    true => self.state = State::Group,
                    false => self.read_on(settings, out, heard),
                }
                Ok(())
            }
            (wire::UNKNOWN_TOPIC_OR_PARTITION | wire::LEADER_NOT_AVAILABLE | wire::NOT_LEADER_OR_FOLLOWER, _) => {
                self.try_again(error)?;
                self.ask_position(out);
                Ok(())
            }
            _ => Err(refused("the position of a consumer", error, None)),
        }
    }

    /// Counts an answer that says that the topic is not ready.
    fn try_again(&mut self, error: i16) -> Result<(), SessionError> {
        self.tries += 1;
        if self.tries < TRIES {
            return Ok(());
        }
        self.tries = 0;
        Err(refused("its topic", error, None))
    }
}

#[cfg(test)]
mod tests;
