//! Messages of a consumer group's coordinator: the lists in them, and the contents that only members read.
//!
//! A member sends its subscription as bytes that the coordinator passes on unread. The leader of the group answers
//! with the share of each member, which are such bytes as well (version 0 of Kafka's consumer protocol).

use super::read::{Fields, close_length, put_i16, put_i32, put_i64, put_some_text, put_text};
use crate::Malformed;

/// Name of the protocol of groups of consumers.
pub(super) const CONSUMER: &[u8] = b"consumer";
/// Offset of a partition for which a group has stored none.
pub const NO_OFFSET: i64 = -1;
/// Version of subscriptions and shares.
const VERSION: i16 = 0;
/// An epoch of a leader that the client does not know.
const UNKNOWN: i32 = -1;
/// Smallest entries of lists, bytes.
const MEMBER_BYTES: usize = 2 + 2 + 4;
const SHARE_BYTES: usize = 2 + 4;
const COMMIT_BYTES: usize = 4 + 8 + 4 + 2;
const STORED_BYTES: usize = COMMIT_BYTES + 2;
const TOPIC_BYTES: usize = 2 + 4;
const DESCRIBED_BYTES: usize = 2 + 2 + 2 + 2 + 4 + 4;

/// A member as a request names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Membership<'a> {
    /// Name of the group.
    pub group: &'a [u8],
    /// Number of the group's assignment, which grows with each rebalance.
    pub generation: i32,
    /// Identifier that the coordinator gave; empty before.
    pub member: &'a [u8],
}

/// A request to join a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JoinRequest<'a> {
    /// Name of the group.
    pub group: &'a [u8],
    /// Identifier that the coordinator gave; empty before.
    pub member: &'a [u8],
    /// Silence after which the coordinator removes the member, ms.
    pub session_ms: i32,
    /// Time that the coordinator waits for members in a rebalance, ms.
    pub rebalance_ms: i32,
    /// Name of the assignor.
    pub assignor: &'a [u8],
    /// The subscription, as [`put_subscription`] writes it.
    pub subscription: &'a [u8],
}

/// Answer to a request to join.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JoinAnswer<'a> {
    /// The error.
    pub error: i16,
    /// Number of the new assignment.
    pub generation: i32,
    /// Name of the assignor.
    pub assignor: &'a [u8],
    /// Identifier of the leader, who assigns.
    pub leader: &'a [u8],
    /// Identifier of the member that is answered.
    pub member: &'a [u8],
    /// All members and their subscriptions, if it is the leader; otherwise empty.
    pub members: MemberList<'a>,
}

/// The broker that coordinates a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoordinatorAnswer<'a> {
    /// The error.
    pub error: i16,
    /// The broker's text for it.
    pub words: Option<&'a [u8]>,
    /// Number of the broker.
    pub node: i32,
}

macro_rules! lists {
    ($($(#[$doc:meta])* $list:ident of $entry:ty = $least:expr, $read:expr;)*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
            pub struct $list<'a>(&'a [u8]);

            impl<'a> $list<'a> {
                /// Takes the entries that were written one after the other.
                pub fn written(entries: &'a [u8]) -> $list<'a> {
                    $list(entries)
                }

                /// Returns the entries, up to the first malformed one.
                pub fn iter(self) -> impl Iterator<Item = $entry> {
                    let read: fn(&mut Fields<'a>) -> Result<$entry, Malformed> = $read;
                    let mut fields = Fields(self.0);
                    std::iter::from_fn(move || if fields.0.is_empty() { None } else { read(&mut fields).ok() })
                }

                /// Reads the number of entries, and each of them.
                pub(super) fn decode(fields: &mut Fields<'a>) -> Result<$list<'a>, Malformed> {
                    let read: fn(&mut Fields<'a>) -> Result<$entry, Malformed> = $read;
                    let count = fields.count($least)?;
                    let from = fields.0;
                    for _ in 0..count {
                        read(fields)?;
                    }
                    Ok($list(&from[..from.len() - fields.0.len()]))
                }

                pub(super) fn put(self, out: &mut Vec<u8>) {
                    put_i32(out, self.iter().count() as i32);
                    out.extend_from_slice(self.0);
                }
            }
        )*
    };
}

lists! {
    /// Members of a group: identifier and subscription of each.
    MemberList of (&'a [u8], &'a [u8]) = MEMBER_BYTES, |fields| {
        let (member, _instance) = (fields.some_text()?, fields.text()?);
        Ok((member, fields.bytes()?.unwrap_or_default()))
    };
    /// What a leader assigns: identifier and share of each member.
    ShareList of (&'a [u8], &'a [u8]) = SHARE_BYTES, |fields| {
        Ok((fields.some_text()?, fields.bytes()?.unwrap_or_default()))
    };
    /// Offsets to be stored: partition, and offset of its next record.
    CommitList of (i32, i64) = COMMIT_BYTES, |fields| {
        let (partition, offset) = (fields.i32()?, fields.i64()?);
        let (_leader_epoch, _metadata) = (fields.i32()?, fields.text()?);
        Ok((partition, offset))
    };
    /// Partitions.
    PartitionList of i32 = 4, |fields| fields.i32();
    /// Stored offsets: partition, offset (or [`NO_OFFSET`]) and error.
    StoredList of (i32, i64, i16) = STORED_BYTES, |fields| {
        let (partition, offset) = (fields.i32()?, fields.i64()?);
        let (_leader_epoch, _metadata) = (fields.i32()?, fields.text()?);
        Ok((partition, offset, fields.i16()?))
    };
    /// Members of a group that is described: identifiers.
    IdentifierList of &'a [u8] = DESCRIBED_BYTES, |fields| {
        let (member, _instance) = (fields.some_text()?, fields.text()?);
        let (_client, _host) = (fields.text()?, fields.text()?);
        let (_subscription, _share) = (fields.bytes()?, fields.bytes()?);
        Ok(member)
    };
}

/// Appends an entry of a [`MemberList`].
pub fn put_member(out: &mut Vec<u8>, member: &[u8], subscription: &[u8]) {
    put_text(out, member);
    put_some_text(out, None);
    put_bytes(out, subscription);
}

/// Appends an entry of a [`ShareList`].
pub fn put_share(out: &mut Vec<u8>, member: &[u8], share: &[u8]) {
    put_text(out, member);
    put_bytes(out, share);
}

/// Appends an entry of a [`CommitList`].
pub fn put_commit(out: &mut Vec<u8>, partition: i32, offset: i64) {
    put_i32(out, partition);
    put_i64(out, offset);
    put_i32(out, UNKNOWN);
    put_some_text(out, Some(b""));
}

/// Appends an entry of a [`PartitionList`].
pub fn put_partition(out: &mut Vec<u8>, partition: i32) {
    put_i32(out, partition);
}

/// Appends an entry of a [`StoredList`].
pub fn put_stored(out: &mut Vec<u8>, partition: i32, offset: i64, error: i16) {
    put_commit(out, partition, offset);
    put_i16(out, error);
}

/// Appends an entry of an [`IdentifierList`].
pub fn put_identifier(out: &mut Vec<u8>, member: &[u8]) {
    put_text(out, member);
    put_some_text(out, None);
    put_text(out, b"");
    put_text(out, b"");
    put_bytes(out, b"");
    put_bytes(out, b"");
}

/// Appends the subscription of a member to one topic.
pub fn put_subscription(out: &mut Vec<u8>, topic: &[u8]) {
    put_i16(out, VERSION);
    put_i32(out, 1);
    put_text(out, topic);
    put_i32(out, -1);
}

/// Appends the share of a member: partitions of one topic.
pub fn put_assigned(out: &mut Vec<u8>, topic: &[u8], partitions: impl ExactSizeIterator<Item = i32>) {
    put_i16(out, VERSION);
    put_i32(out, 1);
    put_text(out, topic);
    put_i32(out, partitions.len() as i32);
    partitions.for_each(|partition| put_i32(out, partition));
    put_i32(out, -1);
}

/// Reads the share of a member: its partitions of this topic, in the leader's order. An empty share has none.
///
/// # Errors
/// If it ends too early, or names another topic.
pub fn assigned(share: &[u8], topic: &[u8]) -> Result<Vec<i32>, Malformed> {
    if share.is_empty() {
        return Ok(Vec::new());
    }
    let mut fields = Fields(share);
    let _version = fields.i16()?;
    let mut partitions = Vec::new();
    for _ in 0..fields.count(TOPIC_BYTES)? {
        if fields.some_text()? != topic {
            return Err(Malformed::new("a share of a topic that the member has not subscribed to"));
        }
        partitions.extend(PartitionList::decode(&mut fields)?.iter());
    }
    let _user_data = fields.bytes()?;
    Ok(partitions)
}

pub(super) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_i32(out, 0);
    let at = out.len();
    out.extend_from_slice(bytes);
    close_length(out, at);
}

impl<'a> Membership<'a> {
    /// Reads group, generation, member and a permanent name, which is not used.
    pub(super) fn decode(fields: &mut Fields<'a>) -> Result<Membership<'a>, Malformed> {
        let (group, generation) = (fields.some_text()?, fields.i32()?);
        let (member, _instance) = (fields.some_text()?, fields.text()?);
        Ok(Membership { group, generation, member })
    }

    pub(super) fn put(&self, out: &mut Vec<u8>) {
        put_text(out, self.group);
        put_i32(out, self.generation);
        put_text(out, self.member);
        put_some_text(out, None);
    }
}

impl<'a> JoinRequest<'a> {
    pub(super) fn decode(fields: &mut Fields<'a>) -> Result<JoinRequest<'a>, Malformed> {
        let group = fields.some_text()?;
        let (session_ms, rebalance_ms) = (fields.i32()?, fields.i32()?);
        let (member, _instance) = (fields.some_text()?, fields.text()?);
        if fields.some_text()? != CONSUMER {
            return Err(Malformed::new("a group that is not one of consumers"));
        }
        fields.one()?;
        let (assignor, subscription) = (fields.some_text()?, fields.bytes()?.unwrap_or_default());
        Ok(JoinRequest { group, member, session_ms, rebalance_ms, assignor, subscription })
    }

    pub(super) fn put(&self, out: &mut Vec<u8>) {
        put_text(out, self.group);
        put_i32(out, self.session_ms);
        put_i32(out, self.rebalance_ms);
        put_text(out, self.member);
        put_some_text(out, None);
        put_text(out, CONSUMER);
        put_i32(out, 1);
        put_text(out, self.assignor);
        put_bytes(out, self.subscription);
    }
}

impl<'a> JoinAnswer<'a> {
    pub(super) fn decode(fields: &mut Fields<'a>) -> Result<JoinAnswer<'a>, Malformed> {
        let (_throttle, error, generation) = (fields.i32()?, fields.i16()?, fields.i32()?);
        let (assignor, leader) = (fields.text()?.unwrap_or_default(), fields.some_text()?);
        let member = fields.some_text()?;
        Ok(JoinAnswer { error, generation, assignor, leader, member, members: MemberList::decode(fields)? })
    }

    pub(super) fn put(&self, out: &mut Vec<u8>) {
        put_i32(out, 0);
        put_i16(out, self.error);
        put_i32(out, self.generation);
        [self.assignor, self.leader, self.member].into_iter().for_each(|text| put_text(out, text));
        self.members.put(out);
    }
}

impl<'a> CoordinatorAnswer<'a> {
    pub(super) fn decode(fields: &mut Fields<'a>) -> Result<CoordinatorAnswer<'a>, Malformed> {
        let (_throttle, error, words) = (fields.i32()?, fields.i16()?, fields.text()?);
        let node = fields.i32()?;
        let (_host, _port) = (fields.some_text()?, fields.i32()?);
        Ok(CoordinatorAnswer { error, words, node })
    }

    pub(super) fn put(&self, out: &mut Vec<u8>) {
        put_i32(out, 0);
        put_i16(out, self.error);
        put_some_text(out, self.words);
        put_i32(out, self.node);
        put_text(out, b"127.0.0.1");
        put_i32(out, 9092);
    }
}

/// Reads the first error of the partitions of one topic at most: the answer to offsets that were to be stored.
pub(super) fn worst_commit(fields: &mut Fields<'_>) -> Result<i16, Malformed> {
    let _throttle = fields.i32()?;
    let mut worst = 0;
    for _ in 0..fields.count(TOPIC_BYTES)? {
        let _topic = fields.some_text()?;
        for _ in 0..fields.count(4 + 2)? {
            let (_partition, error) = (fields.i32()?, fields.i16()?);
            if worst == 0 {
                worst = error;
            }
        }
    }
    Ok(worst)
}

/// Appends the answer to offsets of one partition that were to be stored.
pub(super) fn put_committed(out: &mut Vec<u8>, error: i16) {
    put_i32(out, 0);
    put_i32(out, 1);
    put_text(out, b"");
    put_i32(out, 1);
    put_i32(out, 0);
    put_i16(out, error);
}

/// Reads stored offsets of one topic at most.
pub(super) fn stored<'a>(fields: &mut Fields<'a>) -> Result<(i16, StoredList<'a>), Malformed> {
    let _throttle = fields.i32()?;
    let mut list = StoredList::default();
    match fields.count(TOPIC_BYTES)? {
        0 => {}
        1 => {
            let _topic = fields.some_text()?;
            list = StoredList::decode(fields)?;
        }
        count => return Err(Malformed::new(format!("offsets of {count} topics, where one is expected"))),
    }
    Ok((fields.i16()?, list))
}

/// Appends stored offsets of one topic.
pub(super) fn put_all_stored(out: &mut Vec<u8>, topic: &[u8], error: i16, list: StoredList<'_>) {
    put_i32(out, 0);
    put_i32(out, 1);
    put_text(out, topic);
    list.put(out);
    put_i16(out, error);
}

/// Reads the description of one group: its error, its name and its members.
pub(super) fn described<'a>(fields: &mut Fields<'a>) -> Result<(i16, &'a [u8], IdentifierList<'a>), Malformed> {
    let _throttle = fields.i32()?;
    fields.one()?;
    let (error, name) = (fields.i16()?, fields.some_text()?);
    let (_state, _kind, _assignor) = (fields.some_text()?, fields.some_text()?, fields.some_text()?);
    let list = IdentifierList::decode(fields)?;
    let _operations = fields.i32()?;
    Ok((error, name, list))
}

/// Appends the description of a group.
pub(super) fn put_described(out: &mut Vec<u8>, error: i16, name: &[u8], list: IdentifierList<'_>) {
    put_i32(out, 0);
    put_i32(out, 1);
    put_i16(out, error);
    for text in [name, b"", CONSUMER, b""] {
        put_text(out, text);
    }
    list.put(out);
    put_i32(out, i32::MIN);
}
