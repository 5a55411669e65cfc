//! A consumer: its partitions and its position in each, and the answer that is arriving.

use super::member::Member;
use super::names::{ClientNames, EXPECTED, GREETING};
use super::refusal::refused;
use super::settings::KafkaSettings;
use crate::drivers::foreign_peer::foreign;
use crate::session::{SessionError, SessionEvent};
use pubmark_wire::kafka::{
    self as wire, EARLIEST, FetchItem, FetchReader, GzipReader, KafkaRecord, LATEST, NO_ERROR, NO_OFFSET,
    ResponseFrame, put_fetch,
};
use smallvec::SmallVec;
use std::cell::RefCell;

/// Partitions of one fetch that take no allocation.
const SPREAD: usize = pubmark_model::wire_protocol::MOST_PARTITIONS as usize;

thread_local! {
    /// The consumers of a thread share it.
    static GZIP: RefCell<GzipReader> = RefCell::default();
}

/// A partition, and the offset of its next record; [`NO_OFFSET`] before it is known.
pub(super) struct Position {
    pub(super) partition: i32,
    pub(super) next: i64,
}

/// The reason why a consumer reads no further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FetchStop {
    /// More bytes are needed.
    More,
    /// The answer to its fetch has ended, and it asks for no more.
    Held,
    /// The next answer is to another request.
    Other,
    /// The answer to a fetch of one of several brokers has ended.
    Ended,
    /// The answer has ended, and the broker has removed what was to be read next.
    Overtaken,
}

/// The consumer of some partitions of a topic: every one from its first on, at a distance, or those that its group
/// assigns.
pub(super) struct Consumer {
    reader: FetchReader,
    first: u32,
    step: u32,
    /// Its partitions, and its position in each.
    pub(super) positions: Vec<Position>,
    /// The partition, by its place, whose position is asked for or whose records are read.
    pub(super) place: usize,
    /// The partition, by its place, that is named first in the next fetch: a broker fills its answer in this order.
    turn: u32,
    /// True if it reads from the beginning of partitions.
    replays: bool,
    /// Brokers that have not answered a fetch: one bit for the place of each.
    pub(super) fetching: u16,
    /// Partitions that a broker does not lead any more, one bit for each.
    moved: u64,
    /// True if it has been connected before.
    pub(super) has_connected: bool,
    /// Its membership in a group that a coordinator leads.
    pub(super) member: Option<Box<Member>>,
}

impl Consumer {
    /// Makes a consumer of one of a group's members: it has every partition whose number has this remainder, unless a
    /// coordinator assigns them. If it `replays`, it reads them from the beginning, else from the end.
    pub(super) fn new(number: u32, members: u32, replays: bool, member: Option<Box<Member>>) -> Consumer {
        let step = members.max(1);
        Consumer {
            reader: FetchReader::default(),
            first: number % step,
            step,
            positions: Vec::new(),
            place: 0,
            turn: 0,
            replays,
            fetching: 0,
            moved: 0,
            has_connected: false,
            member,
        }
    }

    /// Returns the end of its partitions at which it begins.
    pub(super) fn from(&self) -> i64 {
        if self.replays { EARLIEST } else { LATEST }
    }

    /// Learns the number of partitions, and takes its share if no coordinator assigns it.
    pub(super) fn share(&mut self, partitions: u32) {
        if let Some(member) = &mut self.member {
            member.partitions = partitions;
        } else if self.positions.is_empty() {
            self.assign(
                (self.first..partitions).step_by(self.step as usize).map(|partition| partition as i32).collect(),
            );
        }
    }

    /// Takes these partitions, whose positions are unknown, in place of all others.
    pub(super) fn assign(&mut self, partitions: Vec<i32>) {
        self.positions = partitions.into_iter().map(|partition| Position { partition, next: NO_OFFSET }).collect();
        (self.place, self.turn) = (0, 0);
    }

    /// Returns the partition whose position is to be asked for next; `None` if all are known on this connection. The
    /// coordinator of a group knows some of them.
    pub(super) fn asked(&mut self) -> Option<i32> {
        if self.member.is_some() {
            let unknown = self.positions.iter().skip(self.place).position(|position| position.next == NO_OFFSET);
            self.place = unknown.map_or(self.positions.len(), |more| self.place + more);
        }
        self.positions.get(self.place).map(|position| position.partition)
    }

    fn partition(&self, place: usize) -> i32 {
        self.positions.get(place).map_or(0, |position| position.partition)
    }

    /// Begins the partition that was asked for at an offset, unless there is a position already.
    pub(super) fn begin(&mut self, offset: i64) {
        if let Some(position) = self.positions.get_mut(self.place).filter(|position| position.next == NO_OFFSET) {
            position.next = offset;
        }
        self.place += 1;
    }

    /// Forgets the connection.
    pub(super) fn resume(&mut self) {
        (self.reader, self.place, self.fetching, self.has_connected) = (FetchReader::default(), 0, 0, true);
    }

    pub(super) fn announced(&self, rest: &[u8]) -> u64 {
        self.reader.announced(rest)
    }

    /// Appends the next fetch for the broker at this place, if it has such partitions and is not asked for any already.
    pub(super) fn fetch_at(
        &mut self,
        settings: &KafkaSettings,
        names: &ClientNames,
        place: u8,
        mut is_here: impl FnMut(i32) -> bool,
        out: &mut Vec<u8>,
    ) {
        let (bit, count, turn) = (1u16 << (place & 15), self.positions.len(), self.turn as usize);
        let is_any = self.positions.iter().any(|position| is_here(position.partition));
        if !is_any || self.fetching & bit != 0 {
            return;
        }
        (self.fetching, self.place) = (self.fetching | bit, 0);
        let (client, topic) = (names.client.as_bytes(), names.topic.as_bytes());
        let in_turn = (0..count).map(|index| {
            let position = &self.positions[(turn + index) % count];
            (position.partition, position.next.max(0))
        });
        if names.is_spread {
            let here: SmallVec<[(i32, i64); SPREAD]> = in_turn.filter(|(partition, _)| is_here(*partition)).collect();
            names.front(place, out);
            put_fetch(out, GREETING, client, settings.fetch, topic, here.into_iter());
        } else {
            put_fetch(out, GREETING, client, settings.fetch, topic, in_turn);
        }
        self.turn = ((turn + 1) % count) as u32;
    }

    /// Notes that the broker at this place has answered a fetch, or never will.
    pub(super) fn fetched(&mut self, place: u8) {
        self.fetching &= !(1 << (place & 15));
    }

    /// Returns the partitions that a broker does not lead any more, one bit for each, once.
    pub(super) fn take_moved(&mut self) -> u64 {
        std::mem::take(&mut self.moved)
    }

    /// True if the answer to a fetch is arriving.
    pub(super) fn is_within(&self) -> bool {
        !self.reader.is_between()
    }

    /// True if the next answer is to another request than a fetch, or if that cannot be known yet.
    fn next_is_other(&self, rest: &[u8]) -> Option<FetchStop> {
        if self.member.is_none() || self.is_within() {
            return None;
        }
        match ResponseFrame::correlation(rest) {
            None => Some(FetchStop::More),
            Some(GREETING) => None,
            Some(_) => Some(FetchStop::Other),
        }
    }

    /// Reads answers to fetches, and asks again at the end of each, unless it is held. Returns the consumed bytes, and why
    /// it stopped.
    pub(super) fn input(
        &mut self,
        settings: &KafkaSettings,
        names: &ClientNames,
        bytes: &[u8],
        out: &mut Vec<u8>,
        heard: &mut dyn FnMut(SessionEvent<'_>),
    ) -> Result<(usize, FetchStop), SessionError> {
        let mut taken = 0;
        // Only listeners, which are given their topic, need its name.
        let topic = if names.is_given { names.topic.as_bytes() } else { b"" };
        if settings.has_parts() && !bytes.is_empty() {
            heard(SessionEvent::Part(self.partition(self.place) as u32));
        }
        loop {
            let rest = &bytes[taken..];
            if let Some(stop) = self.next_is_other(rest) {
                return Ok((taken, stop));
            }
            let (used, item) = self.reader.next(rest).map_err(|why| foreign(EXPECTED, rest, &why.0))?;
            taken += used;
            match item {
                None => return Ok((taken, FetchStop::More)),
                Some(FetchItem::Head(head)) => {
                    if head.correlation != GREETING {
                        return Err(foreign(EXPECTED, rest, "the answer is to a fetch that was not made"));
                    }
                    if head.error != NO_ERROR {
                        return Err(refused("a fetch", head.error, None));
                    }
                }
                Some(FetchItem::Partition(partition)) => {
                    let place = self.positions.iter().position(|position| position.partition == partition.partition);
                    let Some(place) = place else {
                        return Err(foreign(EXPECTED, rest, "the answer is about a partition that was not asked for"));
                    };
                    self.place = place;
                    if names.is_spread && is_moved(partition.error) {
                        self.moved |= 1 << (partition.partition & 63);
                    } else if partition.error == wire::OFFSET_OUT_OF_RANGE && self.may_skip(names) {
                        // What is gone is lost; the consumer reads on from what is left.
                        (self.positions[place].next, self.replays) = (NO_OFFSET, true);
                    } else if partition.error != NO_ERROR {
                        return Err(refused("a fetch", partition.error, None));
                    }
                    if settings.has_parts() {
                        heard(SessionEvent::Part(partition.partition as u32));
                    }
                }
                Some(FetchItem::Record(offset, record)) => self.record(offset, &record, topic, heard),
                Some(FetchItem::Compressed(base_offset, records)) => {
                    self.compressed(base_offset, records, topic, heard)?;
                }
                Some(FetchItem::Passed(next)) => {
                    if let Some(position) = self.positions.get_mut(self.place) {
                        position.next = position.next.max(next);
                    }
                }
                Some(FetchItem::End) if names.is_spread => return Ok((taken, FetchStop::Ended)),
                Some(FetchItem::End) => {
                    self.fetched(0);
                    if self.is_held() {
                        return Ok((taken, FetchStop::Held));
                    }
                    if self.positions.iter().any(|position| position.next == NO_OFFSET) {
                        self.place = 0;
                        return Ok((taken, FetchStop::Overtaken));
                    }
                    self.fetch_at(settings, names, 0, |_| true, out);
                }
            }
        }
    }

    /// True if it can ask one broker for the beginning of what is left.
    fn may_skip(&self, names: &ClientNames) -> bool {
        self.member.is_none() && !names.is_spread && !names.is_given
    }

    /// Passes on a record, unless it is before the position: a batch may begin there.
    #[inline]
    fn record(&mut self, offset: i64, record: &KafkaRecord<'_>, topic: &[u8], heard: &mut dyn FnMut(SessionEvent<'_>)) {
        let Some(position) = self.positions.get_mut(self.place) else { return };
        if offset >= position.next {
            position.next = offset.saturating_add(1);
            heard(SessionEvent::Message { topic, payload: record.value.unwrap_or_default(), is_retained: false });
        }
    }

    /// Passes on the records of a compressed batch.
    fn compressed(
        &mut self,
        base_offset: i64,
        records: &[u8],
        topic: &[u8],
        heard: &mut dyn FnMut(SessionEvent<'_>),
    ) -> Result<(), SessionError> {
        GZIP.with_borrow_mut(|gzip| {
            let mut rest = gzip.decompress(records).map_err(|why| foreign(EXPECTED, records, &why.0))?;
            while !rest.is_empty() {
                let read = KafkaRecord::decode(rest).map_err(|why| foreign(EXPECTED, rest, &why.0))?;
                let Some((record, used)) = read else {
                    return Err(foreign(EXPECTED, rest, "compressed records end within one"));
                };
                rest = &rest[used..];
                self.record(base_offset.saturating_add(record.offset_delta), &record, topic, heard);
            }
            Ok(())
        })
    }
}

/// True if the error of a partition says that another broker leads it, or will.
fn is_moved(error: i16) -> bool {
    matches!(
        error,
        wire::NOT_LEADER_OR_FOLLOWER
            | wire::LEADER_NOT_AVAILABLE
            | wire::UNKNOWN_TOPIC_OR_PARTITION
            | wire::REPLICA_NOT_AVAILABLE
    )
}
