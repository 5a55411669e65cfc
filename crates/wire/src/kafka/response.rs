//! Answers of brokers, except those to fetches.

use super::error::NO_ERROR;
use super::fetch::{FetchHead, FetchPartition};
use super::group::{self, CoordinatorAnswer, IdentifierList, JoinAnswer, StoredList};
use super::read::{Fields, close_length, put_i16, put_i32, put_i64, put_some_text, put_text};
use super::request::{KafkaApi, frame};
use crate::Malformed;

/// Smallest entries of arrays, bytes.
const VERSIONS_BYTES: usize = 6;
const BROKER_BYTES: usize = 12;
const PARTITION_BYTES: usize = 18;
const RECORD_ERROR_BYTES: usize = 6;

/// A message of a broker and its correlation; `body` depends on the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponseFrame<'a> {
    /// Correlation of the request.
    pub correlation: i32,
    /// The rest.
    pub body: &'a [u8],
}

impl<'a> ResponseFrame<'a> {
    /// Reads a message at the front of `bytes`. Returns it with its length; `None` if more bytes are
    /// needed.
    pub fn decode(bytes: &'a [u8]) -> Result<Option<(ResponseFrame<'a>, usize)>, Malformed> {
        let Some((frame, frame_bytes)) = frame(bytes)? else { return Ok(None) };
        let mut fields = Fields(frame);
        let correlation = fields.i32()?;
        Ok(Some((ResponseFrame { correlation, body: fields.0 }, frame_bytes)))
    }

    /// Returns the correlation of the message at the front of `bytes`; `None` if more bytes are needed.
    pub fn correlation(bytes: &[u8]) -> Option<i32> {
        bytes.get(4..)?.first_chunk().map(|correlation| i32::from_be_bytes(*correlation))
    }

    /// Returns the length of the message at the front of `bytes` as far as it is known; otherwise the
    /// number of bytes so far.
    pub fn announced(bytes: &[u8]) -> u64 {
        bytes.first_chunk().map_or(bytes.len() as u64, |length| u64::from(u32::from_be_bytes(*length)) + 4)
    }
}

/// Answer about a topic that is asked for, created or deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TopicAnswer<'a> {
    /// The topic.
    pub topic: &'a [u8],
    /// The error.
    pub error: i16,
    /// The broker's text for it.
    pub words: Option<&'a [u8]>,
}

/// Answer about a topic and its partitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetadataAnswer<'a> {
    /// The topic.
    pub topic: &'a [u8],
    /// Error of the topic, or else of the first of its partitions that has one.
    pub error: i16,
    /// Number of its partitions.
    pub partitions: u32,
    /// Number of brokers.
    pub brokers: u32,
}

/// Answer about a partition: of a produce request, or of one for an offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartitionAnswer<'a> {
    /// The topic.
    pub topic: &'a [u8],
    /// The partition.
    pub partition: i32,
    /// The error.
    pub error: i16,
    /// Offset of the first record, or the offset that was asked for.
    pub offset: i64,
    /// The broker's text for the error.
    pub words: Option<&'a [u8]>,
}

/// Identity of a new idempotent producer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CreatedId {
    /// The error.
    pub error: i16,
    /// The identifier.
    pub id: i64,
    /// Its epoch.
    pub epoch: i16,
}

/// The body of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KafkaResponse<'a> {
    /// To a produce request.
    Produce(PartitionAnswer<'a>),
    /// To a request for an offset.
    ListOffsets(PartitionAnswer<'a>),
    /// To a request for a topic.
    Metadata(MetadataAnswer<'a>),
    /// To the name of a mechanism: the error.
    SaslHandshake(i16),
    /// To a request for versions: the error, and the first request whose version the broker lacks.
    ApiVersions(i16, Option<KafkaApi>),
    /// To a new topic.
    CreateTopics(TopicAnswer<'a>),
    /// To the end of a topic.
    DeleteTopics(TopicAnswer<'a>),
    /// To a request for an identity.
    InitProducerId(CreatedId),
    /// To a login: the error, and the broker's text for it.
    SaslAuthenticate(i16, Option<&'a [u8]>),
    /// To a request for a coordinator.
    FindCoordinator(CoordinatorAnswer<'a>),
    /// To a request to join a group.
    JoinGroup(JoinAnswer<'a>),
    /// To what a leader assigns, or to another member: the error, and its share.
    SyncGroup(i16, &'a [u8]),
    /// To a sign of life: the error.
    Heartbeat(i16),
    /// To the end of a membership: the error.
    LeaveGroup(i16),
    /// To offsets that were to be stored: the first error.
    OffsetCommit(i16),
    /// To a request for stored offsets: its error, and the offsets.
    OffsetFetch(i16, StoredList<'a>),
    /// To a request for the members of a group: its error, its name, and their identifiers.
    DescribeGroups(i16, &'a [u8], IdentifierList<'a>),
    /// To the end of a group: the error.
    DeleteGroups(i16),
}

impl<'a> KafkaResponse<'a> {
    /// Reads the body of the answer to a request other than a fetch, whose answers
    /// [`super::FetchReader`] reads.
    pub fn decode(api: KafkaApi, body: &'a [u8]) -> Result<KafkaResponse<'a>, Malformed> {
        let mut fields = Fields(body);
        let response = match api {
            KafkaApi::Produce => {
                let (topic, partition) = fields.one_partition()?;
                let (error, offset) = (fields.i16()?, fields.i64()?);
                let (_time, _start) = (fields.i64()?, fields.i64()?);
                let words = worst_record(&mut fields)?;
                let words = fields.text()?.or(words);
                let _throttle = fields.i32()?;
                KafkaResponse::Produce(PartitionAnswer { topic, partition, error, offset, words })
            }
            KafkaApi::ListOffsets => {
                let _throttle = fields.i32()?;
                let (topic, partition) = fields.one_partition()?;
                let (error, _time, offset) = (fields.i16()?, fields.i64()?, fields.i64()?);
                KafkaResponse::ListOffsets(PartitionAnswer { topic, partition, error, offset, words: None })
            }
            KafkaApi::Metadata => KafkaResponse::Metadata(metadata(&mut fields)?),
            KafkaApi::SaslHandshake => {
                let error = fields.i16()?;
                for _ in 0..fields.count(2)? {
                    fields.text()?;
                }
                KafkaResponse::SaslHandshake(error)
            }
            KafkaApi::ApiVersions => {
                let error = fields.i16()?;
                let count = fields.count(VERSIONS_BYTES)?;
                let ranges = Fields(fields.take(count * VERSIONS_BYTES)?);
                KafkaResponse::ApiVersions(error, KafkaApi::ALL.iter().copied().find(|api| !takes(ranges, *api)))
            }
            KafkaApi::CreateTopics | KafkaApi::DeleteTopics => {
                let _throttle = fields.i32()?;
                fields.one()?;
                let (topic, error) = (fields.some_text()?, fields.i16()?);
                if api == KafkaApi::CreateTopics {
                    KafkaResponse::CreateTopics(TopicAnswer { topic, error, words: fields.text()? })
                } else {
                    KafkaResponse::DeleteTopics(TopicAnswer { topic, error, words: None })
                }
            }
            KafkaApi::InitProducerId => {
                let _throttle = fields.i32()?;
                let (error, id, epoch) = (fields.i16()?, fields.i64()?, fields.i16()?);
                KafkaResponse::InitProducerId(CreatedId { error, id, epoch })
            }
            KafkaApi::SaslAuthenticate => {
                let (error, words) = (fields.i16()?, fields.text()?);
                fields.bytes()?;
                KafkaResponse::SaslAuthenticate(error, words)
            }
            KafkaApi::Fetch => return Err(Malformed::new("an answer to a fetch out of turn")),
            _ => KafkaResponse::decode_of_group(api, &mut fields)?,
        };
        fields.end()?;
        Ok(response)
    }

    /// Appends the answer to a request with this correlation.
    pub fn put(&self, correlation: i32, out: &mut Vec<u8>) {
        put_i32(out, 0);
        let at = out.len();
        put_i32(out, correlation);
        match *self {
            KafkaResponse::Produce(PartitionAnswer { topic, partition, error, offset, words }) => {
                put_one_partition(out, topic, partition, error);
                for number in [offset, -1, 0] {
                    put_i64(out, number);
                }
                put_i32(out, 0);
                put_some_text(out, words);
                put_i32(out, 0);
            }
            KafkaResponse::ListOffsets(PartitionAnswer { topic, partition, error, offset, .. }) => {
                put_i32(out, 0);
                put_one_partition(out, topic, partition, error);
                put_i64(out, -1);
                put_i64(out, offset);
            }
            KafkaResponse::Metadata(answer) => put_metadata(&answer, out),
            KafkaResponse::SaslHandshake(error) => {
                put_i16(out, error);
                put_i32(out, 0);
            }
            KafkaResponse::ApiVersions(error, lacks) => {
                let known = || KafkaApi::ALL.iter().filter(|api| Some(**api) != lacks);
                put_i16(out, error);
                put_i32(out, known().count() as i32);
                for (key, version) in known().map(|api| api.key()) {
                    [key, version, version].into_iter().for_each(|number| put_i16(out, number));
                }
            }
            KafkaResponse::CreateTopics(TopicAnswer { topic, error, words }) => {
                put_i32(out, 0);
                put_i32(out, 1);
                put_text(out, topic);
                put_i16(out, error);
                put_some_text(out, words);
            }
            KafkaResponse::DeleteTopics(TopicAnswer { topic, error, .. }) => {
                put_i32(out, 0);
                put_i32(out, 1);
                put_text(out, topic);
                put_i16(out, error);
            }
            KafkaResponse::InitProducerId(CreatedId { error, id, epoch }) => {
                put_i32(out, 0);
                put_i16(out, error);
                put_i64(out, id);
                put_i16(out, epoch);
            }
            KafkaResponse::SaslAuthenticate(error, words) => {
                put_i16(out, error);
                put_some_text(out, words);
                put_i32(out, 0);
            }
            _ => self.put_of_group(out),
        }
        close_length(out, at);
    }

    /// Reads the answer to a request of a member of a group.
    fn decode_of_group(api: KafkaApi, fields: &mut Fields<'a>) -> Result<KafkaResponse<'a>, Malformed> {
        Ok(match api {
            KafkaApi::FindCoordinator => KafkaResponse::FindCoordinator(CoordinatorAnswer::decode(fields)?),
            KafkaApi::JoinGroup => KafkaResponse::JoinGroup(JoinAnswer::decode(fields)?),
            KafkaApi::SyncGroup => {
                let (_throttle, error) = (fields.i32()?, fields.i16()?);
                KafkaResponse::SyncGroup(error, fields.bytes()?.unwrap_or_default())
            }
            KafkaApi::Heartbeat => {
                let _throttle = fields.i32()?;
                KafkaResponse::Heartbeat(fields.i16()?)
            }
            KafkaApi::LeaveGroup => {
                let (_throttle, mut error) = (fields.i32()?, fields.i16()?);
                for _ in 0..fields.count(2 + 2 + 2)? {
                    let (_member, _instance, of_member) = (fields.some_text()?, fields.text()?, fields.i16()?);
                    if error == NO_ERROR {
                        error = of_member;
                    }
                }
                KafkaResponse::LeaveGroup(error)
            }
            KafkaApi::OffsetCommit => KafkaResponse::OffsetCommit(group::worst_commit(fields)?),
            KafkaApi::OffsetFetch => {
                let (error, offsets) = group::stored(fields)?;
                KafkaResponse::OffsetFetch(error, offsets)
            }
            KafkaApi::DescribeGroups => {
                let (error, name, members) = group::described(fields)?;
                KafkaResponse::DescribeGroups(error, name, members)
            }
            KafkaApi::DeleteGroups => {
                let _throttle = fields.i32()?;
                fields.one()?;
                let _group = fields.some_text()?;
                KafkaResponse::DeleteGroups(fields.i16()?)
            }
            other => return Err(Malformed::new(format!("{other:?} is not a request of a group"))),
        })
    }

    /// Appends the answer to a request of a member of a group.
    fn put_of_group(&self, out: &mut Vec<u8>) {
        match *self {
            KafkaResponse::FindCoordinator(answer) => answer.put(out),
            KafkaResponse::JoinGroup(answer) => answer.put(out),
            KafkaResponse::SyncGroup(error, share) => {
                put_i32(out, 0);
                put_i16(out, error);
                group::put_bytes(out, share);
            }
            KafkaResponse::Heartbeat(error) => {
                put_i32(out, 0);
                put_i16(out, error);
            }
            KafkaResponse::LeaveGroup(error) => {
                put_i32(out, 0);
                put_i16(out, error);
                put_i32(out, 0);
            }
            KafkaResponse::OffsetCommit(error) => group::put_committed(out, error),
            KafkaResponse::OffsetFetch(error, offsets) => group::put_all_stored(out, b"", error, offsets),
            KafkaResponse::DescribeGroups(error, name, members) => group::put_described(out, error, name, members),
            KafkaResponse::DeleteGroups(error) => {
                put_i32(out, 0);
                put_i32(out, 1);
                put_text(out, b"");
                put_i16(out, error);
            }
            _ => {}
        }
    }
}

/// True if one of the ranges contains the version of the request.
fn takes(mut ranges: Fields<'_>, api: KafkaApi) -> bool {
    let (key, version) = api.key();
    while let (Ok(found), Ok(first), Ok(last)) = (ranges.i16(), ranges.i16(), ranges.i16()) {
        if found == key {
            return (first..=last).contains(&version);
        }
    }
    false
}

/// Reads the errors of single records; returns the text of the first one.
fn worst_record<'a>(fields: &mut Fields<'a>) -> Result<Option<&'a [u8]>, Malformed> {
    let mut words = None;
    for _ in 0..fields.count(RECORD_ERROR_BYTES)? {
        let _index = fields.i32()?;
        words = words.or(fields.text()?);
    }
    Ok(words)
}

fn put_one_partition(out: &mut Vec<u8>, topic: &[u8], partition: i32, error: i16) {
    put_i32(out, 1);
    put_text(out, topic);
    put_i32(out, 1);
    put_i32(out, partition);
    put_i16(out, error);
}

fn metadata<'a>(fields: &mut Fields<'a>) -> Result<MetadataAnswer<'a>, Malformed> {
    let _throttle = fields.i32()?;
    let brokers = fields.count(BROKER_BYTES)?;
    for _ in 0..brokers {
        let (_id, _host, _port, _rack) = (fields.i32()?, fields.text()?, fields.i32()?, fields.text()?);
    }
    let (_cluster, _controller) = (fields.text()?, fields.i32()?);
    fields.one()?;
    let (mut error, topic, _internal) = (fields.i16()?, fields.some_text()?, fields.i8()?);
    let partitions = fields.count(PARTITION_BYTES)?;
    for _ in 0..partitions {
        let (partition_error, _partition, _leader) = (fields.i16()?, fields.i32()?, fields.i32()?);
        for _ in 0..2 {
            let replicas = fields.count(4)?;
            fields.take(4 * replicas)?;
        }
        if error == NO_ERROR {
            error = partition_error;
        }
    }
    Ok(MetadataAnswer { topic, error, partitions: partitions as u32, brokers: brokers as u32 })
}

/// Appends an answer in which every broker is the loopback address, and leads.
fn put_metadata(answer: &MetadataAnswer<'_>, out: &mut Vec<u8>) {
    put_i32(out, 0);
    put_i32(out, answer.brokers as i32);
    for id in 0..answer.brokers {
        put_i32(out, id as i32);
        put_text(out, b"127.0.0.1");
        put_i32(out, 9092);
        put_some_text(out, None);
    }
    put_some_text(out, None);
    put_i32(out, 0);
    put_i32(out, 1);
    put_i16(out, if answer.partitions == 0 { answer.error } else { NO_ERROR });
    put_text(out, answer.topic);
    out.push(0);
    put_i32(out, answer.partitions as i32);
    for partition in 0..answer.partitions {
        put_i16(out, if partition == 0 { answer.error } else { NO_ERROR });
        for number in [partition as i32, 0, 0, 0] {
            put_i32(out, number);
        }
    }
}

/// Appends the front of an answer to a fetch, for partitions that follow with their records; [`end_fetched`] completes
/// it. Returns its position.
pub fn begin_fetched(head: &FetchHead<'_>, out: &mut Vec<u8>) -> usize {
    put_i32(out, 0);
    let at = out.len();
    for number in [head.correlation, 0] {
        put_i32(out, number);
    }
    put_i16(out, head.error);
    put_i32(out, 0);
    put_i32(out, 1);
    put_text(out, head.topic);
    put_i32(out, head.partitions as i32);
    at
}

/// Appends a partition of an answer to a fetch, for records that follow.
pub fn put_fetched(partition: &FetchPartition, out: &mut Vec<u8>) {
    put_i32(out, partition.partition);
    put_i16(out, partition.error);
    for number in [partition.high_watermark, partition.high_watermark, 0] {
        put_i64(out, number);
    }
    put_i32(out, -1);
    put_i32(out, partition.records_bytes as i32);
}

/// Completes the answer at this position, whose partitions follow it to the end of `out`.
pub fn end_fetched(out: &mut [u8], at: usize) {
    close_length(out, at);
}
