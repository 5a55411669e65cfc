//! A client's way to its topic: the broker's versions, a login, the topic and its leaders, and where a consumer begins.

use super::member::Step;
use super::refusal::check_versions;
use super::*;

impl Kafka {
    pub(super) fn versions(
        &mut self,
        settings: &KafkaSettings,
        (error, lacks): (i16, Option<KafkaApi>),
        out: &mut Vec<u8>,
        heard: &mut dyn FnMut(SessionEvent<'_>),
    ) -> Result<(), SessionError> {
        check_versions(settings, error, lacks)?;
        if settings.has_login() {
            self.ask(State::Mechanism, KafkaRequest::SaslHandshake { mechanism: b"PLAIN" }, out);
        } else {
            self.greeted(out, heard);
        }
        Ok(())
    }

    /// Handles a broker that has accepted the client: asks for its topic, if it has one.
    pub(super) fn greeted(&mut self, out: &mut Vec<u8>, heard: &mut dyn FnMut(SessionEvent<'_>)) {
        match self.names.topic.is_empty() {
            true => self.connected(heard),
            false => self.ask_topic(out),
        }
    }

    pub(super) fn connected(&mut self, heard: &mut dyn FnMut(SessionEvent<'_>)) {
        self.state = State::Connected;
        match &mut self.part {
            // Once it has connections to all brokers that it needs.
            Part::Producer(_) if self.brokers.is_some() => return,
            Part::Producer(producer) => producer.has_connected = true,
            Part::Consumer(_) => {}
        }
        heard(SessionEvent::Connected);
    }

    /// Goes on only at the broker that leads the partition, if the server has several and one is enough for the client.
    pub(super) fn follow_leader(&self, body: &[u8]) -> Result<(), SessionError> {
        let Some(at) = self.at.as_deref() else { return Ok(()) };
        let brokers = BrokerMap::decode(body).map_err(|why| foreign(EXPECTED, body, &why.0))?;
        let partition = if let Part::Producer(producer) = &self.part { producer.partition } else { 0 };
        match brokers.leader_of(partition) {
            Some(leader) if leader != at => Err(SessionError::Elsewhere(leader)),
            Some(_) => Ok(()),
            None => Err(SessionError::Busy("no broker leads its partition".into())),
        }
    }

    /// Handles what the broker knows of the topic: creates it if there is none, and waits for its
    /// leader.
    pub(super) fn topic(
        &mut self,
        settings: &KafkaSettings,
        (answer, body): (&MetadataAnswer<'_>, &[u8]),
        out: &mut Vec<u8>,
        heard: &mut dyn FnMut(SessionEvent<'_>),
    ) -> Result<(), SessionError> {
        let is_whole = self.names.is_given || answer.partitions >= settings.partitions as u32;
        let error = match answer.error {
            NO_ERROR if !is_whole => wire::LEADER_NOT_AVAILABLE,
            // A client that comes back, or has a partition of its own, does without the leaders of others.
            wire::LEADER_NOT_AVAILABLE if is_whole && self.knows_topic() => NO_ERROR,
            error => error,
        };
        if self.brokers.is_none() && self.at.is_none() && settings.group.is_some() && answer.brokers > 1 {
            return Err(SessionError::Denied(format!(
                "the server has {} brokers, and pubmark knows only the endpoint that it was given: use a server with one \
                 broker or one that pubmark starts, or group = \"static\"",
                answer.brokers
            )));
        }
        if let Some(brokers) = self.brokers.as_deref_mut().filter(|_| error == NO_ERROR) {
            brokers.learn(&BrokerMap::decode(body).map_err(|why| foreign(EXPECTED, body, &why.0))?);
            brokers.knows_topic = true;
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

    pub(super) fn created(&mut self, answer: &TopicAnswer<'_>, out: &mut Vec<u8>) -> Result<(), SessionError> {
        match answer.error {
            NO_ERROR | wire::TOPIC_ALREADY_EXISTS => {
                self.ask_topic(out);
                Ok(())
            }
            error => Err(refused("a new topic", error, answer.words)),
        }
    }

    /// Handles the position in a partition at which the consumer begins, unless it has one already.
    pub(super) fn position(
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
                let may_store = self.address_coordinator();
                let Part::Consumer(consumer) = &mut self.part else { return Ok(()) };
                if let Some(member) = consumer.member.as_deref_mut().filter(|_| !may_store) {
                    (self.state, member.step) = (State::Group, Step::Coordinator);
                    return Ok(());
                }
                match consumer.store_beginning(&self.names, out) {
                    true => self.state = State::Group,
                    false => self.read_on(settings, out, heard),
                }
                Ok(())
            }
            (wire::UNKNOWN_TOPIC_OR_PARTITION | wire::LEADER_NOT_AVAILABLE | wire::NOT_LEADER_OR_FOLLOWER, _) => {
                if let (Some(brokers), Part::Consumer(consumer)) = (&mut self.brokers, &mut self.part) {
                    let asked = consumer.asked();
                    brokers.forget(|partition, _| Some(partition) == asked);
                    return Ok(());
                }
                self.try_again(error)?;
                self.ask_position(out);
                Ok(())
            }
            _ => Err(refused("the position of a consumer", error, None)),
        }
    }

    /// True if it has been connected to a cluster before.
    pub(super) fn knows_topic(&self) -> bool {
        match &self.part {
            Part::Producer(producer) => producer.has_connected && (self.at.is_some() || self.brokers.is_some()),
            Part::Consumer(consumer) => consumer.has_connected && self.brokers.is_some(),
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
