//! A client of a cluster whose partitions have leaders at several brokers, or whose group has a coordinator: it has a
//! connection to each broker that it needs. The bytes have the form of `shard/carrier/member_streams.rs`.
//!
//! The first connection takes the client to its topic, as in `setup.rs`. Each frame may then show that something is
//! missing: a connection, a leader, the coordinator. [`Kafka::settle`] opens or asks for it, and lets the client use what is
//! there. Questions that a broker cannot answer yet are asked again after a pause.

use super::brokers::{Brokers, Lane};
use super::group::Alive;
use super::member::{COMMIT, FAREWELL, HEARTBEAT, Member, Standing, Step};
use super::refusal::{check_versions, decoded, refused};
use super::*;
use crate::session::MEMBER_LOST;
use pubmark_wire::kafka::PartitionAnswer;

/// Correlations of the requests that prepare a connection, ask for leaders, and for the coordinator.
const PREPARE: i32 = -5;
const MAP: i32 = -6;
const SEARCH: i32 = -7;

type Heard<'a> = dyn FnMut(SessionEvent<'_>) + 'a;

impl Kafka {
    /// Handles bytes that arrived from brokers of a cluster. See [`Session::input`].
    pub(super) fn input_spread(
        &mut self,
        settings: &KafkaSettings,
        bytes: &[u8],
        out: &mut Vec<u8>,
        heard: &mut Heard<'_>,
    ) -> Result<usize, SessionError> {
        let mut taken = 0;
        while let (Some(first), Some(brokers)) = (bytes.get(taken), self.brokers.as_deref_mut()) {
            let rest = &bytes[taken..];
            let Some(place) = brokers.reading else {
                taken += 1;
                if first & MEMBER_LOST != 0 {
                    self.member_lost(settings, first & !MEMBER_LOST, heard)?;
                    self.settle(settings, out, heard)?;
                } else {
                    brokers.reading = Some(*first);
                }
                continue;
            };
            if let (State::Fetching, Part::Consumer(consumer)) = (self.state, &mut self.part) {
                let is_fetch = match ResponseFrame::correlation(rest) {
                    _ if consumer.is_within() => true,
                    Some(correlation) => correlation == GREETING,
                    None => return Ok(taken),
                };
                if is_fetch {
                    let (used, stop) = consumer.input(settings, &self.names, rest, out, heard)?;
                    taken += used;
                    if stop == FetchStop::More {
                        return Ok(taken);
                    }
                    brokers.reading = None;
                    consumer.fetched(place);
                    let moved = consumer.take_moved();
                    brokers.forget(|partition, at| at == place && moved & (1 << (partition & 63)) != 0);
                    self.settle(settings, out, heard)?;
                    continue;
                }
            }
            let frame = ResponseFrame::decode(rest).map_err(|why| foreign(EXPECTED, rest, &why.0))?;
            let Some((frame, frame_bytes)) = frame else { return Ok(taken) };
            (taken, brokers.reading) = (taken + frame_bytes, None);
            self.heard_from(settings, place, &frame, out, heard)?;
            self.settle(settings, out, heard)?;
        }
        Ok(taken)
    }

    /// Handles an answer of the broker at this place, other than one to a fetch.
    fn heard_from(
        &mut self,
        settings: &KafkaSettings,
        place: u8,
        frame: &ResponseFrame<'_>,
        out: &mut Vec<u8>,
        heard: &mut Heard<'_>,
    ) -> Result<(), SessionError> {
        match (frame.correlation, &mut self.part) {
            (KEEP_ALIVE, _) => {}
            (PREPARE, _) => self.prepared(settings, place, frame, out)?,
            (MAP, _) => self.mapped(settings, frame)?,
            (SEARCH, _) => {
                let KafkaResponse::FindCoordinator(answer) = decoded(KafkaApi::FindCoordinator, frame)? else {
                    return Ok(());
                };
                let Some(brokers) = self.brokers.as_deref_mut() else { return Ok(()) };
                brokers.search.asked = None;
                match Member::standing(answer.error) {
                    Standing::Good => match brokers.place_of(answer.node) {
                        None => brokers.map.is_open = true,
                        coordinator => (brokers.coordinator, brokers.search.is_open) = (coordinator, false),
                    },
                    Standing::NotReady => {}
                    _ => return Err(refused("the coordinator of a group", answer.error, answer.words)),
                }
            }
            (HEARTBEAT | COMMIT | FAREWELL, Part::Consumer(consumer)) => {
                if consumer.lives(frame)? == Alive::Lost {
                    self.lose_coordinator(place);
                }
            }
            _ if self.state == State::Group => self.coordinated(settings, frame, out, heard)?,
            (_, Part::Producer(_)) if self.state == State::Connected => match decoded(KafkaApi::Produce, frame)? {
                KafkaResponse::Produce(answer) => {
                    self.produced(settings, (place, frame.correlation), &answer, out, heard)?
                }
                _ => return Err(foreign(EXPECTED, frame.body, "the answer is to a request that was not made")),
            },
            _ => {
                self.brokers.iter_mut().for_each(|brokers| brokers.asks_position = false);
                self.answered(settings, frame, out, heard)?;
            }
        }
        Ok(())
    }

    fn produced(
        &mut self,
        settings: &KafkaSettings,
        (place, correlation): (u8, i32),
        answer: &PartitionAnswer<'_>,
        out: &mut Vec<u8>,
        heard: &mut Heard<'_>,
    ) -> Result<(), SessionError> {
        let (Part::Producer(producer), Some(brokers)) = (&mut self.part, &mut self.brokers) else { return Ok(()) };
        if producer.answered(settings, &self.names, (usize::from(place), correlation, answer), out, heard)? {
            return Ok(());
        }
        if !settings.reconnects {
            return Err(SessionError::Busy(in_words(answer.error, None)));
        }
        brokers.forget(|partition, at| at == place && partition == answer.partition);
        Ok(())
    }

    /// Goes on with a new connection: it needs the broker's versions, and a login.
    fn prepared(
        &mut self,
        settings: &KafkaSettings,
        place: u8,
        frame: &ResponseFrame<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), SessionError> {
        let Some(brokers) = self.brokers.as_deref_mut() else { return Ok(()) };
        let Some(lane) = brokers.lanes.get_mut(usize::from(place)) else { return Ok(()) };
        let api = match lane {
            Lane::Versions => KafkaApi::ApiVersions,
            Lane::Mechanism => KafkaApi::SaslHandshake,
            Lane::Login => KafkaApi::SaslAuthenticate,
            Lane::Closed | Lane::Up => return Ok(()),
        };
        let response = decoded(api, frame)?;
        let request = match response {
            KafkaResponse::ApiVersions(error, lacks) => {
                check_versions(settings, error, lacks)?;
                settings.has_login().then_some((Lane::Mechanism, KafkaRequest::SaslHandshake { mechanism: b"PLAIN" }))
            }
            KafkaResponse::SaslHandshake(error) => {
                check_mechanism(error)?;
                Some((Lane::Login, KafkaRequest::SaslAuthenticate { login: settings.login() }))
            }
            KafkaResponse::SaslAuthenticate(error, words) => {
                check_login(error, words)?;
                None
            }
            _ => None,
        };
        *lane = request.map_or(Lane::Up, |(next, _)| next);
        if let Some((_, request)) = request {
            self.names.put_to(place, PREPARE, request, out);
        }
        Ok(())
    }

    /// Handles who leads.
    fn mapped(&mut self, settings: &KafkaSettings, frame: &ResponseFrame<'_>) -> Result<(), SessionError> {
        let map = BrokerMap::decode(frame.body).map_err(|why| foreign(EXPECTED, frame.body, &why.0))?;
        let Some(brokers) = self.brokers.as_deref_mut() else { return Ok(()) };
        brokers.map.asked = None;
        // A broker that has just started may know nothing yet.
        if map.leaders.len() >= settings.partitions as usize {
            brokers.map.is_open = false;
            brokers.learn(&map);
        }
        Ok(())
    }

    /// Handles the loss of a connection.
    fn member_lost(&mut self, settings: &KafkaSettings, place: u8, heard: &mut Heard<'_>) -> Result<(), SessionError> {
        let Some(brokers) = self.brokers.as_deref_mut() else { return Ok(()) };
        let Some(lane) = brokers.lanes.get_mut(usize::from(place)) else { return Ok(()) };
        let was_up = std::mem::replace(lane, Lane::Closed) == Lane::Up;
        let address = brokers.address(place);
        if !brokers.knows_topic || !settings.reconnects {
            return Err(SessionError::Busy(format!("the connection to {address} was lost")));
        }
        if was_up {
            heard(SessionEvent::MemberLost(address));
        }
        brokers.forget(|_, at| at == place);
        for question in [&mut brokers.map, &mut brokers.search] {
            question.asked = question.asked.filter(|asked| *asked != place);
        }
        if self.names.to == place {
            brokers.asks_position = false;
        }
        match &mut self.part {
            Part::Producer(producer) => producer.lost(usize::from(place)),
            Part::Consumer(consumer) => consumer.fetched(place),
        }
        self.lose_coordinator(place);
        Ok(())
    }

    /// Searches for the coordinator again, if it was the broker at this place.
    fn lose_coordinator(&mut self, place: u8) {
        let Some(brokers) = self.brokers.as_deref_mut().filter(|brokers| brokers.coordinator == Some(place)) else {
            return;
        };
        (brokers.coordinator, brokers.search.is_open) = (None, true);
        if let (State::Group, Part::Consumer(consumer)) = (self.state, &mut self.part) {
            consumer.step_back();
        }
    }

    /// Searches for the coordinator of the group that the client enters.
    pub(super) fn search(&mut self, out: &mut Vec<u8>) {
        let (Part::Consumer(consumer), Some(brokers)) = (&mut self.part, self.brokers.as_deref_mut()) else { return };
        (brokers.coordinator, brokers.search.is_open) = (None, true);
        consumer.assign(Vec::new());
        consumer.step_back();
        if let (Some(place), Some(member)) = (brokers.any_up(), &consumer.member) {
            brokers.search.asked = Some(place);
            self.names.put_to(place, SEARCH, KafkaRequest::FindCoordinator(&member.group), out);
        }
    }

    /// The coordinator does not answer for the group any more.
    pub(super) fn seek(&mut self) {
        if let Some(place) = self.brokers.as_deref().and_then(|brokers| brokers.coordinator) {
            self.lose_coordinator(place);
        }
    }

    /// Sends the next requests to the group's coordinator. Returns false if no connection to it is up.
    pub(super) fn address_coordinator(&mut self) -> bool {
        let Some(brokers) = &self.brokers else { return true };
        let place = brokers.coordinator_up();
        place.into_iter().for_each(|place| self.names.to = place);
        place.is_some()
    }

    /// Lets the client use what is there, and opens or asks for what it needs.
    pub(super) fn settle(
        &mut self,
        settings: &KafkaSettings,
        out: &mut Vec<u8>,
        heard: &mut Heard<'_>,
    ) -> Result<(), SessionError> {
        let Some(brokers) = self.brokers.as_deref_mut().filter(|brokers| brokers.knows_topic) else { return Ok(()) };
        let mut is_whole = true;
        let mut need = |brokers: &mut Brokers, place| {
            if brokers.lane(place) == Lane::Closed {
                brokers.lanes[usize::from(place)] = Lane::Versions;
                self.names.put_to(place, PREPARE, KafkaRequest::ApiVersions, out);
            }
            is_whole &= brokers.lane(place) == Lane::Up;
        };
        let (all, some) = match &self.part {
            Part::Producer(_) => (0..brokers.leaders.len() as i32, &[][..]),
            Part::Consumer(consumer) => (0..0, &consumer.positions[..]),
        };
        for partition in all.chain(some.iter().map(|position| position.partition)) {
            match brokers.leader(partition) {
                Some(place) => need(brokers, place),
                None => brokers.map.is_open = true,
            }
        }
        brokers.coordinator.into_iter().for_each(|place| need(brokers, place));
        is_whole &= !brokers.map.is_open && !brokers.search.is_open;
        if is_whole {
            brokers.failed = 0;
        }
        self.use_brokers(settings, is_whole, out, heard);
        self.ask_later(heard)
    }

    /// Does what the connections allow.
    fn use_brokers(&mut self, settings: &KafkaSettings, is_whole: bool, out: &mut Vec<u8>, heard: &mut Heard<'_>) {
        let Some(brokers) = self.brokers.as_deref_mut() else { return };
        match (&mut self.part, self.state) {
            (Part::Producer(producer), State::Connected) => {
                producer.route(|partition| brokers.leader_up(partition));
                producer.send_waiting(settings, &self.names, out);
                if (is_whole || producer.has_connected) && !brokers.has_said_connected {
                    (producer.has_connected, brokers.has_said_connected) = (true, true);
                    heard(SessionEvent::Connected);
                }
            }
            (Part::Producer(_), _) => {}
            (Part::Consumer(_), State::Position) if !brokers.asks_position => {
                self.ask_position(out);
            }
            (Part::Consumer(consumer), State::Fetching) if consumer.is_held() => {
                if consumer.fetching == 0 {
                    self.rejoin(settings, out, heard);
                }
            }
            (Part::Consumer(consumer), State::Fetching) => {
                for place in (0..brokers.lanes.len() as u8).filter(|place| brokers.lane(*place) == Lane::Up) {
                    let is_here = |partition| brokers.leader(partition) == Some(place);
                    consumer.fetch_at(settings, &self.names, place, is_here, out);
                }
            }
            (Part::Consumer(consumer), State::Group) => {
                let member = consumer.member.as_deref_mut().filter(|member| member.step == Step::Coordinator);
                if let (Some(place), Some(member), Some(group)) = (brokers.coordinator_up(), member, &settings.group) {
                    self.names.to = place;
                    member.join(group, &self.names, out);
                }
            }
            (Part::Consumer(_), _) => {}
        }
    }

    /// Begins a pause before the open questions that no broker has been asked.
    fn ask_later(&mut self, heard: &mut Heard<'_>) -> Result<(), SessionError> {
        let Some(brokers) = self.brokers.as_deref_mut() else { return Ok(()) };
        if brokers.any_up().is_none() && !brokers.is_opening() {
            return Err(SessionError::Busy("no member of the server has a connection to the client".into()));
        }
        let asks = [brokers.map, brokers.search].iter().any(|question| question.is_open && question.asked.is_none());
        if asks && !brokers.is_resting {
            brokers.is_resting = true;
            heard(SessionEvent::Rest(brokers.failed));
            brokers.failed = brokers.failed.saturating_add(1);
        }
        Ok(())
    }

    /// Asks the questions that are open.
    pub(super) fn ask_again(&mut self, out: &mut Vec<u8>) {
        let Some(brokers) = self.brokers.as_deref_mut() else { return };
        if !std::mem::take(&mut brokers.is_resting) {
            return;
        }
        // Without one, the next connection that comes up begins another pause.
        let Some(place) = brokers.any_up() else { return };
        if brokers.map.is_open && brokers.map.asked.is_none() {
            brokers.map.asked = Some(place);
            let topic = self.names.topic.as_bytes();
            self.names.put_to(place, MAP, KafkaRequest::Metadata { topic }, out);
        }
        let member = match &self.part {
            Part::Consumer(consumer) => consumer.member.as_deref(),
            Part::Producer(_) => None,
        };
        if let Some(member) = member.filter(|_| brokers.search.is_open && brokers.search.asked.is_none()) {
            brokers.search.asked = Some(place);
            self.names.put_to(place, SEARCH, KafkaRequest::FindCoordinator(&member.group), out);
        }
    }
}
