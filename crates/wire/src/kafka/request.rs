//! Requests of clients.

use super::group::{CommitList, JoinRequest, Membership, PartitionList, ShareList};
use super::read::{Fields, MAX_FRAME_BYTES, close_length, put_i16, put_i32, put_i64, put_some_text, put_text};
use crate::Malformed;

/// Number of a client among the replicas: none.
const NO_REPLICA: i32 = -1;
/// A fetch that neither has nor begins a session.
const SESSIONLESS: i32 = -1;
/// An epoch of a leader, and an offset, that the client does not know.
const UNKNOWN: i32 = -1;
/// A coordinator of a group, and not of transactions.
const GROUP: u8 = 0;

macro_rules! apis {
    ($($(#[$doc:meta])* $api:ident = ($key:literal, $version:literal),)*) => {
        /// A request, in the version that is used.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum KafkaApi {
            $($(#[$doc])* $api,)*
        }

        impl KafkaApi {
            /// All requests.
            pub const ALL: &[KafkaApi] = &[$(KafkaApi::$api,)*];

            /// Returns the number of the request, and its version.
            pub fn key(self) -> (i16, i16) {
                match self {
                    $(KafkaApi::$api => ($key, $version),)*
                }
            }
        }
    };
}

apis! {
    /// Messages for a partition.
    Produce = (0, 8),
    /// Records of partitions, when there are any.
    Fetch = (1, 10),
    /// The offset of the beginning or the end of a partition.
    ListOffsets = (2, 2),
    /// A topic and its leaders.
    Metadata = (3, 4),
    /// Proof of identity: the mechanism.
    SaslHandshake = (17, 1),
    /// The versions that a broker takes.
    ApiVersions = (18, 0),
    /// A new topic.
    CreateTopics = (19, 4),
    /// The end of a topic.
    DeleteTopics = (20, 3),
    /// An identity for an idempotent producer.
    InitProducerId = (22, 1),
    /// Proof of identity: the login.
    SaslAuthenticate = (36, 0),
    /// The broker that coordinates a group.
    FindCoordinator = (10, 2),
    /// Membership in a group, until all members have joined.
    JoinGroup = (11, 5),
    /// What the leader of a group assigns.
    SyncGroup = (14, 3),
    /// A sign of life of a member.
    Heartbeat = (12, 3),
    /// The end of a membership.
    LeaveGroup = (13, 3),
    /// Offsets to be stored for a group.
    OffsetCommit = (8, 7),
    /// Offsets that are stored for a group.
    OffsetFetch = (9, 5),
    /// The members of a group.
    DescribeGroups = (15, 4),
    /// The end of a group.
    DeleteGroups = (42, 1),
}

/// Bytes of a partition in a fetch.
const POSITION_BYTES: usize = 4 + 4 + 8 + 8 + 4;

/// Partitions in a fetch, and the offsets of their first records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchPositions<'a>(&'a [u8]);

impl FetchPositions<'_> {
    /// Returns each partition and the offset in it.
    pub fn iter(&self) -> impl Iterator<Item = (i32, i64)> {
        self.0.chunks_exact(POSITION_BYTES).filter_map(|position| {
            let mut fields = Fields(position);
            let (partition, _leader_epoch, offset) = (fields.i32().ok()?, fields.i32().ok()?, fields.i64().ok()?);
            Some((partition, offset))
        })
    }
}

/// Limits of the answer to a fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchLimits {
    /// Longest wait for `min_bytes`, ms.
    pub max_wait_ms: i32,
    /// The broker waits until there are this many bytes.
    pub min_bytes: i32,
    /// Bytes after which no further batch is added, of a partition and of all.
    pub max_bytes: i32,
}

/// Appends a [`KafkaRequest::Fetch`] for these partitions, from these offsets on.
pub fn put_fetch(
    out: &mut Vec<u8>,
    correlation: i32,
    client: &[u8],
    limits: FetchLimits,
    topic: &[u8],
    positions: impl ExactSizeIterator<Item = (i32, i64)>,
) {
    let at = begin(out, KafkaApi::Fetch, correlation, client);
    put_fetch_front(out, limits, topic, positions.len() as i32);
    for (partition, offset) in positions {
        put_i32(out, partition);
        put_i32(out, UNKNOWN);
        put_i64(out, offset);
        put_i64(out, UNKNOWN.into());
        put_i32(out, limits.max_bytes);
    }
    // Topics that the session forgets.
    put_i32(out, 0);
    close_length(out, at);
}

fn put_fetch_front(out: &mut Vec<u8>, limits: FetchLimits, topic: &[u8], partitions: i32) {
    for number in [NO_REPLICA, limits.max_wait_ms, limits.min_bytes, limits.max_bytes] {
        put_i32(out, number);
    }
    // Records of open transactions are read as well.
    out.push(0);
    put_i32(out, 0);
    put_i32(out, SESSIONLESS);
    put_one(out, topic);
    put_i32(out, partitions);
}

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KafkaRequest<'a> {
    /// Messages for a partition.
    Produce {
        /// -1: all replicas that are in sync acknowledge; 1: the leader does; 0: no answer.
        acks: i16,
        /// Time for the acknowledgement, ms.
        timeout_ms: i32,
        /// The topic.
        topic: &'a [u8],
        /// The partition.
        partition: i32,
        /// A batch.
        records: &'a [u8],
    },
    /// Records of partitions.
    Fetch {
        /// Limits of the answer.
        limits: FetchLimits,
        /// The topic.
        topic: &'a [u8],
        /// Its partitions.
        partitions: FetchPositions<'a>,
    },
    /// An offset of a partition.
    ListOffsets {
        /// The topic.
        topic: &'a [u8],
        /// The partition.
        partition: i32,
        /// [`super::LATEST`], [`super::EARLIEST`] or a time.
        time: i64,
    },
    /// A topic, which is not created if there is none.
    Metadata {
        /// The topic; empty for all.
        topic: &'a [u8],
    },
    /// The name of the mechanism of the login.
    SaslHandshake {
        /// Such as `PLAIN`.
        mechanism: &'a [u8],
    },
    /// The versions that the broker takes.
    ApiVersions,
    /// A new topic with the broker's defaults.
    CreateTopics {
        /// The topic.
        topic: &'a [u8],
        /// Number of partitions; -1 for the broker's default.
        partitions: i32,
        /// Time until it must exist, ms.
        timeout_ms: i32,
    },
    /// The end of a topic.
    DeleteTopics {
        /// The topic.
        topic: &'a [u8],
        /// Time until it must be gone, ms.
        timeout_ms: i32,
    },
    /// An identity for an idempotent producer without transactions.
    InitProducerId,
    /// The login.
    SaslAuthenticate {
        /// Bytes of the mechanism.
        login: &'a [u8],
    },
    /// The broker that coordinates the group of this name.
    FindCoordinator(&'a [u8]),
    /// Membership in a group.
    JoinGroup(JoinRequest<'a>),
    /// What the leader of a group assigns; other members send an empty list.
    SyncGroup(Membership<'a>, ShareList<'a>),
    /// A sign of life of a member.
    Heartbeat(Membership<'a>),
    /// The end of a membership.
    LeaveGroup {
        /// Name of the group.
        group: &'a [u8],
        /// Identifier of the member.
        member: &'a [u8],
    },
    /// Offsets to be stored for a group, of partitions of one topic.
    OffsetCommit(Membership<'a>, &'a [u8], CommitList<'a>),
    /// Offsets that are stored for a group, of partitions of one topic.
    OffsetFetch {
        /// Name of the group.
        group: &'a [u8],
        /// The topic.
        topic: &'a [u8],
        /// Its partitions.
        partitions: PartitionList<'a>,
    },
    /// The members of the group of this name.
    DescribeGroups(&'a [u8]),
    /// The end of the group of this name, which must have no members.
    DeleteGroups(&'a [u8]),
}

/// A request and its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestFrame<'a> {
    /// Number that the answer repeats.
    pub correlation: i32,
    /// Name of the client.
    pub client: &'a [u8],
    /// The request.
    pub request: KafkaRequest<'a>,
}

impl<'a> RequestFrame<'a> {
    /// Appends the request.
    pub fn put(&self, out: &mut Vec<u8>) {
        let at = begin(out, self.request.api(), self.correlation, self.client);
        self.request.put(out);
        close_length(out, at);
    }

    /// Reads a request at the front of `bytes`. Returns it with its length; `None` if more bytes are
    /// needed.
    pub fn decode(bytes: &'a [u8]) -> Result<Option<(RequestFrame<'a>, usize)>, Malformed> {
        let Some((frame, frame_bytes)) = frame(bytes)? else { return Ok(None) };
        let mut fields = Fields(frame);
        let key = (fields.i16()?, fields.i16()?);
        let correlation = fields.i32()?;
        let client = fields.text()?.unwrap_or_default();
        let Some(api) = KafkaApi::ALL.iter().find(|api| api.key() == key) else {
            return Err(Malformed::new(format!("request {} in version {}, which is not supported", key.0, key.1)));
        };
        let request = KafkaRequest::decode(*api, &mut fields)?;
        fields.end()?;
        Ok(Some((RequestFrame { correlation, client, request }, frame_bytes)))
    }
}

/// Returns the complete message at the front of `bytes` without its length, and its length with it.
pub(super) fn frame(bytes: &[u8]) -> Result<Option<(&[u8], usize)>, Malformed> {
    let Some((length, rest)) = bytes.split_first_chunk() else { return Ok(None) };
    let length = u32::from_be_bytes(*length);
    if length > MAX_FRAME_BYTES {
        return Err(Malformed::new(format!("a message of {length} bytes, where {MAX_FRAME_BYTES} are the most")));
    }
    Ok(rest.get(..length as usize).map(|frame| (frame, length as usize + 4)))
}

fn begin(out: &mut Vec<u8>, api: KafkaApi, correlation: i32, client: &[u8]) -> usize {
    put_i32(out, 0);
    let at = out.len();
    let (key, version) = api.key();
    put_i16(out, key);
    put_i16(out, version);
    put_i32(out, correlation);
    put_text(out, client);
    at
}

/// Positions in a [`KafkaRequest::Produce`] that has been begun.
#[derive(Clone, Copy, Debug)]
pub struct ProduceStart {
    frame_at: usize,
    records_at: usize,
}

/// Appends the front of a [`KafkaRequest::Produce`] for a partition, which [`end_produce`] completes
/// after its batch.
pub fn begin_produce(
    out: &mut Vec<u8>,
    correlation: i32,
    client: &[u8],
    (acks, timeout_ms): (i16, i32),
    (topic, partition): (&[u8], i32),
) -> ProduceStart {
    let frame_at = begin(out, KafkaApi::Produce, correlation, client);
    put_produce(out, acks, timeout_ms, topic, partition);
    ProduceStart { frame_at, records_at: out.len() }
}

/// Completes a request to which its batch has been appended.
pub fn end_produce(out: &mut [u8], start: ProduceStart) {
    close_length(out, start.records_at);
    close_length(out, start.frame_at);
}

fn put_produce(out: &mut Vec<u8>, acks: i16, timeout_ms: i32, topic: &[u8], partition: i32) {
    put_some_text(out, None);
    put_i16(out, acks);
    put_i32(out, timeout_ms);
    put_one(out, topic);
    put_i32(out, 1);
    put_i32(out, partition);
    put_i32(out, 0);
}

/// Appends an array of one topic, up to its name.
fn put_one(out: &mut Vec<u8>, topic: &[u8]) {
    put_i32(out, 1);
    put_text(out, topic);
}

impl<'a> KafkaRequest<'a> {
    /// Returns its number and version.
    pub fn api(&self) -> KafkaApi {
        match self {
            KafkaRequest::Produce { .. } => KafkaApi::Produce,
            KafkaRequest::Fetch { .. } => KafkaApi::Fetch,
            KafkaRequest::ListOffsets { .. } => KafkaApi::ListOffsets,
            KafkaRequest::Metadata { .. } => KafkaApi::Metadata,
            KafkaRequest::SaslHandshake { .. } => KafkaApi::SaslHandshake,
            KafkaRequest::ApiVersions => KafkaApi::ApiVersions,
            KafkaRequest::CreateTopics { .. } => KafkaApi::CreateTopics,
            KafkaRequest::DeleteTopics { .. } => KafkaApi::DeleteTopics,
            KafkaRequest::InitProducerId => KafkaApi::InitProducerId,
            KafkaRequest::SaslAuthenticate { .. } => KafkaApi::SaslAuthenticate,
            KafkaRequest::FindCoordinator(_) => KafkaApi::FindCoordinator,
            KafkaRequest::JoinGroup(_) => KafkaApi::JoinGroup,
            KafkaRequest::SyncGroup(..) => KafkaApi::SyncGroup,
            KafkaRequest::Heartbeat(_) => KafkaApi::Heartbeat,
            KafkaRequest::LeaveGroup { .. } => KafkaApi::LeaveGroup,
            KafkaRequest::OffsetCommit(..) => KafkaApi::OffsetCommit,
            KafkaRequest::OffsetFetch { .. } => KafkaApi::OffsetFetch,
            KafkaRequest::DescribeGroups(_) => KafkaApi::DescribeGroups,
            KafkaRequest::DeleteGroups(_) => KafkaApi::DeleteGroups,
        }
    }

    fn put(&self, out: &mut Vec<u8>) {
        match *self {
            KafkaRequest::Produce { acks, timeout_ms, topic, partition, records } => {
                put_produce(out, acks, timeout_ms, topic, partition);
                let at = out.len();
                out.extend_from_slice(records);
                close_length(out, at);
            }
            KafkaRequest::Fetch { limits, topic, partitions } => {
                put_fetch_front(out, limits, topic, (partitions.0.len() / POSITION_BYTES) as i32);
                out.extend_from_slice(partitions.0);
                put_i32(out, 0);
            }
            KafkaRequest::ListOffsets { topic, partition, time } => {
                put_i32(out, NO_REPLICA);
                out.push(0);
                put_one(out, topic);
                put_i32(out, 1);
                put_i32(out, partition);
                put_i64(out, time);
            }
            KafkaRequest::Metadata { topic } => {
                match topic {
                    b"" => put_i32(out, -1),
                    topic => put_one(out, topic),
                }
                out.push(0);
            }
            KafkaRequest::SaslHandshake { mechanism } => put_text(out, mechanism),
            KafkaRequest::ApiVersions => {}
            KafkaRequest::CreateTopics { topic, partitions, timeout_ms } => {
                put_one(out, topic);
                put_i32(out, partitions);
                // The broker's default number of replicas; no assignment, and no settings.
                put_i16(out, -1);
                for number in [0, 0, timeout_ms] {
                    put_i32(out, number);
                }
                out.push(0);
            }
            KafkaRequest::DeleteTopics { topic, timeout_ms } => {
                put_one(out, topic);
                put_i32(out, timeout_ms);
            }
            KafkaRequest::InitProducerId => {
                put_some_text(out, None);
                put_i32(out, i32::MAX);
            }
            KafkaRequest::SaslAuthenticate { login } => {
                put_i32(out, 0);
                let at = out.len();
                out.extend_from_slice(login);
                close_length(out, at);
            }
            _ => self.put_of_group(out),
        }
    }

    /// Appends a request of a member of a group.
    fn put_of_group(&self, out: &mut Vec<u8>) {
        match *self {
            KafkaRequest::FindCoordinator(group) => {
                put_text(out, group);
                out.push(GROUP);
            }
            KafkaRequest::JoinGroup(join) => join.put(out),
            KafkaRequest::SyncGroup(member, shares) => {
                member.put(out);
                shares.put(out);
            }
            KafkaRequest::Heartbeat(member) => member.put(out),
            KafkaRequest::LeaveGroup { group, member } => {
                put_text(out, group);
                put_one(out, member);
                put_some_text(out, None);
            }
            KafkaRequest::OffsetCommit(member, topic, offsets) => {
                member.put(out);
                put_one(out, topic);
                offsets.put(out);
            }
            KafkaRequest::OffsetFetch { group, topic, partitions } => {
                put_text(out, group);
                put_one(out, topic);
                partitions.put(out);
            }
            KafkaRequest::DescribeGroups(group) => {
                put_one(out, group);
                // Permitted operations are not asked for.
                out.push(0);
            }
            KafkaRequest::DeleteGroups(group) => put_one(out, group),
            _ => {}
        }
    }

    fn decode(api: KafkaApi, fields: &mut Fields<'a>) -> Result<KafkaRequest<'a>, Malformed> {
        Ok(match api {
            KafkaApi::Produce => {
                let _transaction = fields.text()?;
                let (acks, timeout_ms) = (fields.i16()?, fields.i32()?);
                let (topic, partition) = fields.one_partition()?;
                KafkaRequest::Produce {
                    acks,
                    timeout_ms,
                    topic,
                    partition,
                    records: fields.bytes()?.unwrap_or_default(),
                }
            }
            KafkaApi::Fetch => {
                let (_replica, max_wait_ms, min_bytes) = (fields.i32()?, fields.i32()?, fields.i32()?);
                let (max_bytes, _isolation, _session) = (fields.i32()?, fields.i8()?, fields.i32()?);
                let _session_epoch = fields.i32()?;
                fields.one()?;
                let topic = fields.some_text()?;
                let count = fields.count(POSITION_BYTES)?;
                let partitions = FetchPositions(fields.take(count * POSITION_BYTES)?);
                fields.none()?;
                KafkaRequest::Fetch { limits: FetchLimits { max_wait_ms, min_bytes, max_bytes }, topic, partitions }
            }
            KafkaApi::ListOffsets => {
                let (_replica, _isolation) = (fields.i32()?, fields.i8()?);
                let (topic, partition) = fields.one_partition()?;
                KafkaRequest::ListOffsets { topic, partition, time: fields.i64()? }
            }
            KafkaApi::Metadata => {
                fields.one()?;
                let topic = fields.some_text()?;
                let _create = fields.i8()?;
                KafkaRequest::Metadata { topic }
            }
            KafkaApi::SaslHandshake => KafkaRequest::SaslHandshake { mechanism: fields.some_text()? },
            KafkaApi::ApiVersions => KafkaRequest::ApiVersions,
            KafkaApi::CreateTopics => {
                fields.one()?;
                let (topic, partitions) = (fields.some_text()?, fields.i32()?);
                let _replicas = fields.i16()?;
                fields.none()?;
                fields.none()?;
                let timeout_ms = fields.i32()?;
                let _validate_only = fields.i8()?;
                KafkaRequest::CreateTopics { topic, partitions, timeout_ms }
            }
            KafkaApi::DeleteTopics => {
                fields.one()?;
                KafkaRequest::DeleteTopics { topic: fields.some_text()?, timeout_ms: fields.i32()? }
            }
            KafkaApi::InitProducerId => {
                let (_transaction, _timeout) = (fields.text()?, fields.i32()?);
                KafkaRequest::InitProducerId
            }
            KafkaApi::SaslAuthenticate => KafkaRequest::SaslAuthenticate { login: fields.bytes()?.unwrap_or_default() },
            _ => KafkaRequest::decode_of_group(api, fields)?,
        })
    }

    /// Reads a request of a member of a group.
    fn decode_of_group(api: KafkaApi, fields: &mut Fields<'a>) -> Result<KafkaRequest<'a>, Malformed> {
        Ok(match api {
            KafkaApi::FindCoordinator => {
                let group = fields.some_text()?;
                let _kind = fields.i8()?;
                KafkaRequest::FindCoordinator(group)
            }
            KafkaApi::JoinGroup => KafkaRequest::JoinGroup(JoinRequest::decode(fields)?),
            KafkaApi::SyncGroup => KafkaRequest::SyncGroup(Membership::decode(fields)?, ShareList::decode(fields)?),
            KafkaApi::Heartbeat => KafkaRequest::Heartbeat(Membership::decode(fields)?),
            KafkaApi::LeaveGroup => {
                let group = fields.some_text()?;
                fields.one()?;
                let (member, _instance) = (fields.some_text()?, fields.text()?);
                KafkaRequest::LeaveGroup { group, member }
            }
            KafkaApi::OffsetCommit => {
                let member = Membership::decode(fields)?;
                fields.one()?;
                KafkaRequest::OffsetCommit(member, fields.some_text()?, CommitList::decode(fields)?)
            }
            KafkaApi::OffsetFetch => {
                let group = fields.some_text()?;
                fields.one()?;
                let (topic, partitions) = (fields.some_text()?, PartitionList::decode(fields)?);
                KafkaRequest::OffsetFetch { group, topic, partitions }
            }
            KafkaApi::DescribeGroups => {
                fields.one()?;
                let group = fields.some_text()?;
                let _operations = fields.i8()?;
                KafkaRequest::DescribeGroups(group)
            }
            KafkaApi::DeleteGroups => {
                fields.one()?;
                KafkaRequest::DeleteGroups(fields.some_text()?)
            }
            other => return Err(Malformed::new(format!("{other:?} is not a request of a group"))),
        })
    }
}
