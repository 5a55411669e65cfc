//! Kafka. A topic is there once its client has asked to create it. A consumer's records are those that were passed on
//! since it asked for the end of their partition, after those that are kept if it asked for the beginning. Scripted faults pass from one partition to
//! another: each partition is a topic of its own to the dispatcher.
//!
//! A member of a consumer group reads from the offset that it asks for, of what the script keeps.

mod cluster;
mod member;

use super::coordinator::Coordinator;
use super::members::Leaving;
use super::protocol::{Ask, Hub, KeptWill, PublisherAnswer, Speech};
use crate::routes::{Address, Filter};
use crate::script::PeerScript;
use member::PeerMember;
use pubmark_wire::Malformed;
use pubmark_wire::kafka::{
    BATCH_BYTES, CoordinatorAnswer, CreatedId, EARLIEST, FetchHead, FetchPartition, GzipReader, IdentifierList,
    KafkaRecord, KafkaRequest, KafkaResponse, MetadataAnswer, NO_ERROR, NO_PRODUCER, NOT_LEADER_OR_FOLLOWER,
    POLICY_VIOLATION, PartitionAnswer, RecordBatch, RequestFrame, SASL_AUTHENTICATION_FAILED, StoredList, TopicAnswer,
    UNKNOWN_SERVER_ERROR, UNKNOWN_TOPIC_OR_PARTITION, begin_batch, begin_fetched, end_batch, end_fetched, put_fetched,
    put_identifier, put_record, put_stored,
};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

/// Text of a refused batch if the script has none.
const REFUSAL: &str = "the policy of the peer refuses it";

/// A fetch that waits for records.
struct OpenFetch {
    correlation: i32,
    /// Partitions and their offsets.
    positions: Vec<(i32, i64)>,
    max_bytes: usize,
}

/// Records of a partition that wait for a fetch.
#[derive(Default)]
struct KeptRecords {
    partition: i32,
    payloads: VecDeque<Box<[u8]>>,
    /// Records that still come before the offset from which it is read.
    skip: i64,
}

/// A connection.
pub struct KafkaServer {
    denied: bool,
    script: Rc<PeerScript>,
    /// Messages received on the connection.
    published: u64,
    coordinator: Rc<RefCell<Coordinator>>,
    /// Place of the member that has accepted it.
    place: usize,
    /// True once a request of this connection has let its member go away.
    has_left: bool,
    /// Its membership in a group.
    member: Option<Box<PeerMember>>,
    /// The topic that it reads.
    topic: Box<[u8]>,
    fetch: Option<OpenFetch>,
    /// In a cluster, the end of the wait of fetches.
    patience: cluster::Patience,
    kept: Vec<KeptRecords>,
    kept_bytes: usize,
}

impl Speech for KafkaServer {
    const SCHEME: &'static str = "kafka";

    fn new(denied: bool) -> Self {
        KafkaServer {
            denied,
            script: Rc::default(),
            published: 0,
            coordinator: Rc::default(),
            place: 0,
            has_left: false,
            member: None,
            topic: Box::default(),
            fetch: None,
            patience: cluster::Patience::default(),
            kept: Vec::new(),
            kept_bytes: 0,
        }
    }

    fn obey(&mut self, script: &Rc<PeerScript>) {
        self.script = script.clone();
    }

    fn share(&mut self, coordinator: &Rc<RefCell<Coordinator>>, place: usize) {
        (self.coordinator, self.place) = (coordinator.clone(), place);
    }

    /// Tells the others of a group that a member is gone.
    fn will(&mut self) -> Option<KeptWill> {
        let topic = self.member.take()?.die(&mut self.coordinator.borrow_mut())?;
        Some(KeptWill { to: Address::of(&topic).kept(), payload: Box::default(), qos: 0 })
    }

    /// The client speaks first.
    fn greet(&mut self, _: &mut Vec<u8>) -> bool {
        false
    }

    fn input(&mut self, bytes: &[u8], out: &mut Vec<u8>, hub: &mut Hub<'_>) -> Result<usize, Malformed> {
        let mut done = 0;
        while !self.has_left
            && let Some((frame, used)) = RequestFrame::decode(&bytes[done..])?
        {
            if let Some(response) = self.request(&frame, out, hub)? {
                response.put(frame.correlation, out);
            }
            done += used;
        }
        Ok(if self.has_left { bytes.len() } else { done })
    }

    fn deliver(&mut self, token: u32, _: Address<'_>, payload: &[u8], _: u8, out: &mut Vec<u8>) {
        if let Some(member) = self.member.as_mut().filter(|member| member.hears(token)) {
            return member.woken(token, &mut self.coordinator.borrow_mut(), out);
        }
        if self.patience.ends(token) {
            return self.end_fetch(out);
        }
        let partition = token as i32;
        if let Some(kept) = self.kept.iter_mut().find(|kept| kept.partition == partition && kept.skip > 0) {
            kept.skip -= 1;
        } else if let Some(kept) = self.kept.iter_mut().find(|kept| kept.partition == partition) {
            self.kept_bytes += payload.len();
            kept.payloads.push_back(payload.into());
            self.serve(out);
        }
    }

    fn kept_bytes(&self) -> usize {
        self.kept_bytes
    }
}

impl KafkaServer {
    /// Carries out a request. Returns its answer; `None` if there is none, or not yet.
    fn request<'a>(
        &mut self,
        frame: &RequestFrame<'a>,
        out: &mut Vec<u8>,
        hub: &mut Hub<'_>,
    ) -> Result<Option<KafkaResponse<'a>>, Malformed> {
        Ok(Some(match frame.request {
            KafkaRequest::ApiVersions => {
                if self.denied {
                    hub(Ask::Close);
                }
                KafkaResponse::ApiVersions(if self.denied { UNKNOWN_SERVER_ERROR } else { NO_ERROR }, None)
            }
            KafkaRequest::Metadata { topic } => {
                let partitions = self.coordinator.borrow().partitions(topic);
                if partitions > 0 && self.coordinator.borrow().cluster.are_several() {
                    cluster::put_map(&self.coordinator.borrow().cluster, (frame.correlation, topic), partitions, out);
                    return Ok(None);
                }
                let error = if partitions > 0 { NO_ERROR } else { UNKNOWN_TOPIC_OR_PARTITION };
                KafkaResponse::Metadata(MetadataAnswer { topic, error, partitions, brokers: 1 })
            }
            KafkaRequest::CreateTopics { topic, partitions, .. } => {
                self.coordinator.borrow_mut().create(topic, partitions.max(1) as u32);
                KafkaResponse::CreateTopics(TopicAnswer { topic, error: NO_ERROR, words: None })
            }
            KafkaRequest::DeleteTopics { topic, .. } => {
                self.coordinator.borrow_mut().delete(topic);
                KafkaResponse::DeleteTopics(TopicAnswer { topic, error: NO_ERROR, words: None })
            }
            KafkaRequest::InitProducerId => {
                KafkaResponse::InitProducerId(CreatedId { error: NO_ERROR, id: 1, epoch: 0 })
            }
            KafkaRequest::SaslHandshake { .. } => KafkaResponse::SaslHandshake(NO_ERROR),
            KafkaRequest::SaslAuthenticate { .. } => KafkaResponse::SaslAuthenticate(SASL_AUTHENTICATION_FAILED, None),
            // Nothing is kept of a topic when its consumers come.
            KafkaRequest::ListOffsets { topic, partition, .. } if self.member.is_some() || self.is_in_cluster() => {
                let error = self.leads(partition);
                let answer = PartitionAnswer { topic, partition, error, offset: 0, words: None };
                KafkaResponse::ListOffsets(answer)
            }
            KafkaRequest::ListOffsets { topic, partition, time } => {
                let filter = of_partition(topic, partition);
                hub(Ask::Subscribe(Filter::Exact(&filter), partition as u32));
                if time == EARLIEST {
                    hub(Ask::Replay(Filter::Exact(&filter), partition as u32));
                }
                self.topic = topic.into();
                self.kept.push(KeptRecords { partition, ..KeptRecords::default() });
                KafkaResponse::ListOffsets(PartitionAnswer {
                    topic,
                    partition,
                    error: NO_ERROR,
                    offset: 0,
                    words: None,
                })
            }
            KafkaRequest::Fetch { limits, topic, partitions } => {
                let positions: Vec<(i32, i64)> = partitions.iter().collect();
                if let Some((partition, _)) = positions.iter().find(|(partition, _)| self.leads(*partition) != NO_ERROR)
                {
                    cluster::put_moved((frame.correlation, topic), *partition, out);
                    return Ok(None);
                }
                if self.member.is_some() || self.is_in_cluster() {
                    self.read_from(topic, &positions, hub);
                }
                if self.is_in_cluster() {
                    self.patience.begin(&self.coordinator, limits.max_wait_ms, hub);
                }
                let max_bytes = limits.max_bytes.max(0) as usize;
                self.fetch = Some(OpenFetch { correlation: frame.correlation, positions, max_bytes });
                self.serve(out);
                if self.member.as_ref().is_some_and(|member| member.is_told) {
                    self.end_fetch(out);
                }
                return Ok(None);
            }
            KafkaRequest::Produce { acks, topic, partition, records, .. } => {
                if self.leads(partition) != NO_ERROR {
                    let error = self.leads(partition);
                    let moved = PartitionAnswer { topic, partition, error, offset: -1, words: None };
                    return Ok(Some(KafkaResponse::Produce(moved)));
                }
                let to = of_partition(topic, partition);
                let answer = self.produce(&to, records, if acks == 0 { 0 } else { 1 }, hub)?;
                if self.goes_away(hub) {
                    return Ok(None);
                }
                let (error, words) = match answer {
                    PublisherAnswer::Acknowledged => (NO_ERROR, None),
                    PublisherAnswer::Refused => (POLICY_VIOLATION, Some(REFUSAL.as_bytes())),
                    PublisherAnswer::Nothing => return Ok(None),
                };
                if acks == 0 {
                    return Ok(None);
                }
                if let Some(words) = self.script.refuse.words.as_deref().filter(|_| error != NO_ERROR) {
                    let words = Some(words.as_bytes());
                    let refused = PartitionAnswer { topic, partition, error, offset: -1, words };
                    KafkaResponse::Produce(refused).put(frame.correlation, out);
                    return Ok(None);
                }
                KafkaResponse::Produce(PartitionAnswer { topic, partition, error, offset: 0, words })
            }
            _ => {
                self.of_group(frame, out, hub);
                return Ok(None);
            }
        }))
    }

    /// Passes on the records of a batch. Returns the answer to the whole batch: its worst one.
    fn produce(
        &mut self,
        topic: &[u8],
        records: &[u8],
        qos: u8,
        hub: &mut Hub<'_>,
    ) -> Result<PublisherAnswer, Malformed> {
        let short = || Malformed::new("a batch ends too early");
        let head = RecordBatch::decode(records)?.ok_or_else(short)?;
        let mut gzip = head.is_gzip().then(GzipReader::default);
        let records = &records[BATCH_BYTES..];
        let mut rest = gzip.as_mut().map_or(Ok(records), |gzip| gzip.decompress(records))?;
        let mut worst = PublisherAnswer::Acknowledged;
        for _ in 0..head.count {
            let (record, used) = KafkaRecord::decode(rest)?.ok_or_else(short)?;
            rest = &rest[used..];
            self.published += 1;
            if self.script.end.as_ref().is_some_and(|end| self.published >= end.after) {
                hub(Ask::Close);
                return Ok(PublisherAnswer::Nothing);
            }
            let payload = record.value.unwrap_or_default();
            let answer = hub(Ask::Publish { to: Address::of(topic), payload, qos }).answer;
            if answer != PublisherAnswer::Acknowledged && worst != PublisherAnswer::Nothing {
                worst = answer;
            }
        }
        Ok(worst)
    }

    /// Answers the fetch that waits, if there are records for it.
    fn serve(&mut self, out: &mut Vec<u8>) {
        if self.kept_bytes > 0 {
            self.end_fetch(out);
        }
    }

    /// Answers the fetch that waits, with what there is.
    fn end_fetch(&mut self, out: &mut Vec<u8>) {
        let Some(OpenFetch { correlation, positions, max_bytes }) = self.fetch.take() else { return };
        let head = FetchHead { correlation, error: NO_ERROR, topic: &self.topic, partitions: positions.len() as u32 };
        let at = begin_fetched(&head, out);
        let (mut all, mut records) = (0, Vec::new());
        for (partition, offset) in positions {
            records.clear();
            let batch = begin_batch(&mut records, offset);
            let mut count = 0;
            let kept = self.kept.iter_mut().find(|kept| kept.partition == partition);
            let payloads = kept.map(|kept| &mut kept.payloads).into_iter();
            for payloads in payloads {
                while let Some(payload) = payloads.front().filter(|_| all == 0 || records.len() < max_bytes) {
                    put_record(&mut records, count, payload);
                    self.kept_bytes -= payload.len();
                    payloads.pop_front();
                    (count, all) = (count + 1, all + 1);
                }
            }
            match count {
                0 => records.clear(),
                _ => end_batch(&mut records, batch, count, NO_PRODUCER),
            }
            let (high_watermark, records_bytes) = (offset + i64::from(count), records.len() as u32);
            put_fetched(&FetchPartition { partition, error: NO_ERROR, high_watermark, records_bytes }, out);
            out.extend_from_slice(&records);
        }
        end_fetched(out, at);
    }
}

/// Its member of a cluster.
impl KafkaServer {
    fn is_in_cluster(&self) -> bool {
        self.coordinator.borrow().cluster.are_several()
    }

    /// Returns the error of a request about a partition, unless its broker leads it.
    fn leads(&self, partition: i32) -> i16 {
        let all = self.coordinator.borrow();
        let is_here = !all.cluster.are_several() || all.cluster.leader(partition as u32) == Some(self.place);
        if is_here { NO_ERROR } else { NOT_LEADER_OR_FOLLOWER }
    }

    /// Lets the broker be away, if the script says so and its instant is over.
    fn goes_away(&mut self, hub: &mut Hub<'_>) -> bool {
        let next = self.coordinator.borrow().cluster.next_absence(self.place, &self.script.away).copied();
        let Some(away) = next else { return false };
        self.has_left = hub(Ask::Reached(away.from.0)).answer == PublisherAnswer::Acknowledged;
        if self.has_left {
            hub(Ask::Leave(Leaving { place: self.place, for_ns: away.length.0 }));
        }
        self.has_left
    }
}

/// Requests of members of consumer groups.
impl KafkaServer {
    fn of_group(&mut self, frame: &RequestFrame<'_>, out: &mut Vec<u8>, hub: &mut Hub<'_>) {
        let correlation = frame.correlation;
        let all = self.coordinator.clone();
        let response = match frame.request {
            KafkaRequest::FindCoordinator(_) => {
                let node = cluster::coordinator(&all.borrow().cluster);
                KafkaResponse::FindCoordinator(CoordinatorAnswer { error: NO_ERROR, words: None, node })
            }
            KafkaRequest::JoinGroup(join) => {
                self.stop_reading(hub);
                let member = self.member.get_or_insert_with(|| Box::new(PeerMember::new(&join, hub)));
                member.join((frame.client, correlation), &join, &mut all.borrow_mut(), out);
                let hold_ns = if join.member.is_empty() { None } else { all.borrow_mut().take_hold_ns(join.group) };
                hold_ns.into_iter().for_each(|hold_ns| member.wake(hold_ns, hub));
                return member.wake(0, hub);
            }
            KafkaRequest::SyncGroup(who, shares) => match all.borrow_mut().assign(&who, shares.iter()) {
                Err(error) => KafkaResponse::SyncGroup(error, b""),
                Ok(()) => {
                    let Some(member) = &mut self.member else { return };
                    member.sync(correlation);
                    return member.wake(0, hub);
                }
            },
            KafkaRequest::Heartbeat(who) => {
                self.strike(who.group, hub);
                let error = all.borrow_mut().heartbeat(&who);
                KafkaResponse::Heartbeat(error).put(correlation, out);
                if let Some(member) = self.member.as_mut().filter(|_| error != NO_ERROR) {
                    member.is_told = true;
                    self.end_fetch(out);
                }
                return;
            }
            KafkaRequest::LeaveGroup { group, member } => {
                let error = all.borrow_mut().leave(group, member);
                self.member.iter().for_each(|member| member.wake(0, hub));
                KafkaResponse::LeaveGroup(error)
            }
            KafkaRequest::OffsetCommit(who, _, offsets) => {
                KafkaResponse::OffsetCommit(all.borrow_mut().commit(&who, offsets.iter()))
            }
            KafkaRequest::OffsetFetch { group, partitions, .. } => {
                let mut stored = Vec::new();
                for partition in partitions.iter() {
                    put_stored(&mut stored, partition, all.borrow_mut().stored(group, partition), NO_ERROR);
                }
                return KafkaResponse::OffsetFetch(NO_ERROR, StoredList::written(&stored)).put(correlation, out);
            }
            KafkaRequest::DescribeGroups(group) => {
                let mut members = Vec::new();
                all.borrow().members(group).iter().for_each(|member| put_identifier(&mut members, member));
                let list = IdentifierList::written(&members);
                return KafkaResponse::DescribeGroups(NO_ERROR, group, list).put(correlation, out);
            }
            KafkaRequest::DeleteGroups(group) => KafkaResponse::DeleteGroups(all.borrow_mut().delete_group(group)),
            _ => return,
        };
        response.put(correlation, out);
    }

    /// Begins the next scripted rebalance, if its instant is over.
    fn strike(&mut self, group: &[u8], hub: &mut Hub<'_>) {
        let struck = self.coordinator.borrow_mut().struck(group);
        let Some(next) = self.script.rebalance.get(struck) else { return };
        if hub(Ask::Reached(next.at.0)).answer == PublisherAnswer::Acknowledged {
            self.coordinator.borrow_mut().strike(group, next.length.0, next.forgets);
        }
    }

    /// Reads partitions from these offsets on, of what is kept.
    fn read_from(&mut self, topic: &[u8], positions: &[(i32, i64)], hub: &mut Hub<'_>) {
        self.topic = topic.into();
        for (partition, offset) in positions.iter().copied() {
            if self.kept.iter().all(|kept| kept.partition != partition) {
                let filter = of_partition(topic, partition);
                hub(Ask::Subscribe(Filter::Exact(&filter), partition as u32));
                hub(Ask::Replay(Filter::Exact(&filter), partition as u32));
                self.kept.push(KeptRecords { partition, payloads: VecDeque::new(), skip: offset });
            }
        }
    }

    /// Forgets the partitions that a member has read.
    fn stop_reading(&mut self, hub: &mut Hub<'_>) {
        for kept in std::mem::take(&mut self.kept) {
            hub(Ask::Unsubscribe(Filter::Exact(&of_partition(&self.topic, kept.partition)), kept.partition as u32));
        }
        (self.fetch, self.kept_bytes) = (None, 0);
    }
}

/// Returns the dispatcher's name of a partition.
fn of_partition(topic: &[u8], partition: i32) -> Vec<u8> {
    [topic, b"/", partition.to_string().as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::speech::Handled;
    use pubmark_wire::kafka::{FetchItem, FetchLimits, FetchReader, KafkaApi, ResponseFrame, put_fetch};

    const TOPIC: &[u8] = b"a.b";

    fn ask(kafka: &mut KafkaServer, request: KafkaRequest<'_>, answer: PublisherAnswer) -> (Vec<u8>, Vec<String>) {
        let (mut bytes, mut out, mut asked) = (Vec::new(), Vec::new(), Vec::new());
        RequestFrame { correlation: 7, client: b"c", request }.put(&mut bytes);
        let hub = &mut |ask: Ask<'_>| {
            asked.push(match ask {
                Ask::Publish { payload, qos, .. } => format!("{qos} {}", payload.escape_ascii()),
                other => format!("{other:?}"),
            });
            Handled { answer, listeners: 0 }
        };
        assert_eq!(kafka.input(&bytes, &mut out, hub).unwrap(), bytes.len());
        (out, asked)
    }

    fn error(bytes: &[u8]) -> i16 {
        let (frame, _) = ResponseFrame::decode(bytes).unwrap().unwrap();
        let Ok(KafkaResponse::Produce(answer)) = KafkaResponse::decode(KafkaApi::Produce, frame.body) else {
            panic!("{bytes:?}")
        };
        answer.error
    }

    fn batch(values: &[&[u8]]) -> Vec<u8> {
        let mut records = Vec::new();
        let at = begin_batch(&mut records, 0);
        (0..).zip(values).for_each(|(index, value)| put_record(&mut records, index, value));
        end_batch(&mut records, at, values.len() as u32, NO_PRODUCER);
        records
    }

    #[test]
    fn a_batch_is_answered_as_its_worst_record_is() {
        let mut kafka = KafkaServer::new(false);
        let records = batch(&[b"x", b"y"]);
        let produce =
            |acks| KafkaRequest::Produce { acks, timeout_ms: 1, topic: TOPIC, partition: 0, records: &records };
        let (out, asked) = ask(&mut kafka, produce(-1), PublisherAnswer::Acknowledged);
        assert_eq!((error(&out), asked), (NO_ERROR, vec!["1 x".to_owned(), "1 y".to_owned()]));
        assert_eq!(error(&ask(&mut kafka, produce(1), PublisherAnswer::Refused).0), POLICY_VIOLATION);
        assert!(ask(&mut kafka, produce(1), PublisherAnswer::Nothing).0.is_empty());
        let (out, asked) = ask(&mut kafka, produce(0), PublisherAnswer::Acknowledged);
        assert!(out.is_empty() && asked == ["0 x", "0 y"]);
    }

    fn fetch(positions: &[(i32, i64)]) -> Vec<u8> {
        let (limits, mut out) = (FetchLimits { max_wait_ms: 1, min_bytes: 1, max_bytes: 75 }, Vec::new());
        put_fetch(&mut out, 7, b"c", limits, TOPIC, positions.iter().copied());
        out
    }

    /// Returns the records of all answers: partition, offset, value.
    fn read(out: &[u8]) -> Vec<(i32, i64, Vec<u8>)> {
        let (mut reader, mut taken, mut read, mut of) = (FetchReader::default(), 0, Vec::new(), 0);
        while let (used, Some(item)) = reader.next(&out[taken..]).unwrap() {
            taken += used;
            match item {
                FetchItem::Partition(partition) => of = partition.partition,
                FetchItem::Record(offset, record) => read.push((of, offset, record.value.unwrap().to_vec())),
                _ => {}
            }
        }
        assert_eq!(taken, out.len());
        read
    }

    #[test]
    fn a_fetch_waits_for_records_and_records_for_a_fetch() {
        let mut kafka = KafkaServer::new(false);
        let ok = PublisherAnswer::Acknowledged;
        for partition in [0, 2] {
            let (_, asked) = ask(&mut kafka, KafkaRequest::ListOffsets { topic: TOPIC, partition, time: -1 }, ok);
            let exact = Filter::Exact(if partition == 0 { b"a.b/0" } else { b"a.b/2" });
            assert_eq!(asked, [format!("{:?}", Ask::Subscribe(exact, partition as u32))]);
        }
        let fetch_from = |kafka: &mut KafkaServer, positions: &[(i32, i64)]| {
            let (bytes, mut out) = (fetch(positions), Vec::new());
            let hub = &mut |_: Ask<'_>| Handled { answer: ok, listeners: 0 };
            assert_eq!(kafka.input(&bytes, &mut out, hub).unwrap(), bytes.len());
            out
        };
        assert!(fetch_from(&mut kafka, &[(0, 5), (2, 9)]).is_empty());
        let mut out = Vec::new();
        for (partition, payload) in [(2, &b"first"[..]), (0, b"second"), (0, b"third"), (2, b"fourth"), (0, b"fifth")] {
            kafka.deliver(partition, Address::of(TOPIC), payload, 0, &mut out);
        }
        assert_eq!((read(&out), kafka.kept_bytes()), (vec![(2, 9, b"first".to_vec())], 22));
        let out = fetch_from(&mut kafka, &[(2, 10), (0, 5)]);
        let wanted = [(2, 10, &b"fourth"[..]), (0, 5, b"second"), (0, 6, b"third")];
        assert_eq!(read(&out), wanted.map(|(partition, offset, value)| (partition, offset, value.to_vec())));
        assert_eq!(kafka.kept_bytes(), 5);
    }
}
