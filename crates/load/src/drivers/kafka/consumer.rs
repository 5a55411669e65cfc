//! A consumer: its partitions and its position in each, and the answer that is arriving.

use super::names::{ClientNames, EXPECTED, GREETING};
use super::refusal::refused;
use super::settings::KafkaSettings;
use crate::drivers::foreign_peer::foreign;
use crate::session::{SessionError, SessionEvent};
use pubmark_wire::kafka::{EARLIEST, FetchItem, FetchReader, GzipReader, KafkaRecord, LATEST, NO_ERROR, put_fetch};
use std::cell::RefCell;

thread_local! {
    /// The consumers of a thread share it.
    static GZIP: RefCell<GzipReader> = RefCell::default();
}

/// The consumer of some partitions of a topic: every one from its first on, at a distance.
pub(super) struct Consumer {
    reader: FetchReader,
    first: u32,
    step: u32,
    from: i64,
    /// Offset of the next record of each of its partitions; `None` before the first position is known.
    next: Vec<Option<i64>>,
    /// The partition, by its place, whose position is asked for or whose records are read.
    place: usize,
    /// The partition, by its place, that is named first in the next fetch: a broker fills its answer in this order.
    turn: usize,
}

impl Consumer {
    /// Makes a consumer of one of a group's members: it has every partition whose number has this remainder. If it
    /// `replays`, it reads them from the beginning, else from the end.
    pub(super) fn new(member: u32, members: u32, replays: bool) -> Consumer {
        let step = members.max(1);
        let from = if replays { EARLIEST } else { LATEST };
        Consumer {
            reader: FetchReader::default(),
            first: member % step,
            step,
            from,
            next: Vec::new(),
            place: 0,
            turn: 0,
        }
    }

    /// Returns the end of its partitions at which it begins.
    pub(super) fn from(&self) -> i64 {
        self.from
    }

    /// Takes its share of this many partitions.
    pub(super) fn share(&mut self, partitions: u32) {
        if self.next.is_empty() {
            let share = (self.first..partitions).step_by(self.step as usize).len();
            self.next = vec![None; share];
        }
    }

    /// Returns the partition whose position is to be asked for next; `None` if all are known on this connection.
    pub(super) fn asked(&self) -> Option<i32> {
        (self.place < self.next.len()).then(|| self.partition(self.place))
    }

    fn partition(&self, place: usize) -> i32 {
        (self.first + place as u32 * self.step) as i32
    }

    /// Begins the partition that was asked for at an offset, unless there is a position already.
    pub(super) fn begin(&mut self, offset: i64) {
        if let Some(next) = self.next.get_mut(self.place) {
            next.get_or_insert(offset);
        }
        self.place += 1;
    }

    /// Forgets the connection.
    pub(super) fn resume(&mut self) {
        (self.reader, self.place) = (FetchReader::default(), 0);
    }

    pub(super) fn announced(&self, rest: &[u8]) -> u64 {
        self.reader.announced(rest)
    }

    /// Appends the next fetch.
    pub(super) fn fetch(&mut self, settings: &KafkaSettings, names: &ClientNames, out: &mut Vec<u8>) {
        let count = self.next.len();
        let positions = (0..count).map(|index| {
            let place = (self.turn + index) % count;
            (self.partition(place), self.next[place].unwrap_or(0))
        });
        put_fetch(out, GREETING, names.client.as_bytes(), settings.fetch, names.topic.as_bytes(), positions);
        self.turn = (self.turn + 1) % count.max(1);
        self.place = 0;
    }

    /// Reads answers to fetches, and asks again at the end of each. Returns the consumed bytes.
    pub(super) fn input(
        &mut self,
        settings: &KafkaSettings,
        names: &ClientNames,
        bytes: &[u8],
        out: &mut Vec<u8>,
        heard: &mut dyn FnMut(SessionEvent<'_>),
    ) -> Result<usize, SessionError> {
        let mut taken = 0;
        // Only listeners, which are given their topic, need its name.
        let topic = if names.is_given { names.topic.as_bytes() } else { b"" };
        if settings.is_round_robin && !bytes.is_empty() {
            heard(SessionEvent::Part(self.partition(self.place) as u32));
        }
        loop {
            let rest = &bytes[taken..];
            let (used, item) = self.reader.next(rest).map_err(|why| foreign(EXPECTED, rest, &why.0))?;
            taken += used;
            match item {
                None => return Ok(taken),
                Some(FetchItem::Head(head)) => {
                    if head.correlation != GREETING {
                        return Err(foreign(EXPECTED, rest, "the answer is to a fetch that was not made"));
                    }
                    if head.error != NO_ERROR {
                        return Err(refused("a fetch", head.error, None));
                    }
                }
                Some(FetchItem::Partition(partition)) => {
                    let place = (partition.partition as u32).wrapping_sub(self.first) / self.step;
                    self.place = place as usize;
                    if self.place >= self.next.len() || self.partition(self.place) != partition.partition {
                        return Err(foreign(EXPECTED, rest, "the answer is about a partition that was not asked for"));
                    }
                    if partition.error != NO_ERROR {
                        return Err(refused("a fetch", partition.error, None));
                    }
                    if settings.is_round_robin {
                        heard(SessionEvent::Part(partition.partition as u32));
                    }
                }
                Some(FetchItem::Record(offset, record)) => self.record(offset, &record, topic, heard),
                Some(FetchItem::Compressed(base_offset, records)) => {
                    self.compressed(base_offset, records, topic, heard)?;
                }
                Some(FetchItem::Passed(next)) => {
                    if let Some(position) = self.next.get_mut(self.place) {
                        *position = (*position).max(Some(next));
                    }
                }
                Some(FetchItem::End) => self.fetch(settings, names, out),
            }
        }
    }

    /// Passes on a record, unless it is before the position: a batch may begin there.
    #[inline]
    fn record(&mut self, offset: i64, record: &KafkaRecord<'_>, topic: &[u8], heard: &mut dyn FnMut(SessionEvent<'_>)) {
        let Some(position) = self.next.get_mut(self.place) else { return };
        if position.is_none_or(|next| offset >= next) {
            *position = Some(offset.saturating_add(1));
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
