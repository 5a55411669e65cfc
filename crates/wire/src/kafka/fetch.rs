//! The answer to a fetch, read piece by piece: a record is passed on when its last byte is there, and
//! no answer is kept whole.

use super::batch::{BATCH_BYTES, KafkaRecord, RecordBatch};
use super::error::NO_ERROR;
use super::read::{Fields, MAX_FRAME_BYTES, MAX_TOPIC_BYTES};
use crate::Malformed;

/// Position of the length of the topic's name, behind length, correlation, time of throttling, error,
/// session and number of topics.
const TOPIC_AT: usize = 4 + 4 + 4 + 2 + 4 + 4;
/// Bytes before the first partition, without the topic's name.
const FRONT_BYTES: usize = TOPIC_AT + 2 + 4;
/// Bytes of a partition before its aborted transactions: its number, its error, three offsets, and the number of
/// aborted transactions.
const PARTITION_BYTES: usize = 4 + 2 + 3 * 8 + 4;
/// Bytes of an aborted transaction.
const ABORTED_BYTES: usize = 16;

fn early() -> Malformed {
    Malformed::new("an answer to a fetch ends before its records")
}

/// The front of an answer, up to its partitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchHead<'a> {
    /// Correlation of the request.
    pub correlation: i32,
    /// Error of the request.
    pub error: i16,
    /// Name of the topic.
    pub topic: &'a [u8],
    /// Number of partitions that follow.
    pub partitions: u32,
}

/// A partition in an answer, up to its records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchPartition {
    /// Number of the partition.
    pub partition: i32,
    /// Its error.
    pub error: i16,
    /// Offset up to which records can be read.
    pub high_watermark: i64,
    /// Length of the records, bytes.
    pub records_bytes: u32,
}

impl<'a> FetchHead<'a> {
    /// Reads the front of an answer of version 10. Returns it with its length and with the bytes of its partitions;
    /// `None` if more bytes are needed.
    pub fn decode(bytes: &'a [u8]) -> Result<Option<(FetchHead<'a>, usize, u32)>, Malformed> {
        let Some(frame_bytes) = bytes.first_chunk().map(|length| u32::from_be_bytes(*length)) else { return Ok(None) };
        if frame_bytes > MAX_FRAME_BYTES {
            return Err(Malformed::new(format!("an answer of {frame_bytes} bytes")));
        }
        let frame_end = frame_bytes as usize + 4;
        if frame_end < TOPIC_AT {
            return Err(early());
        }
        let Some(front) = bytes.get(4..TOPIC_AT) else { return Ok(None) };
        let mut fields = Fields(front);
        let (correlation, _throttle) = (fields.i32()?, fields.i32()?);
        let (error, _session) = (fields.i16()?, fields.i32()?);
        if error != NO_ERROR && fields.i32()? == 0 && frame_end == TOPIC_AT {
            return Ok(Some((FetchHead { correlation, error, topic: b"", partitions: 0 }, frame_end, 0)));
        }
        if frame_end < FRONT_BYTES {
            return Err(early());
        }
        let Some(topic_bytes) = bytes[TOPIC_AT..].first_chunk() else { return Ok(None) };
        let topic_bytes = usize::from(u16::from_be_bytes(*topic_bytes));
        if topic_bytes > MAX_TOPIC_BYTES {
            return Err(Malformed::new(format!("the name of a topic of {topic_bytes} bytes")));
        }
        let end = FRONT_BYTES + topic_bytes;
        if end > frame_end {
            return Err(early());
        }
        let Some(front) = bytes.get(TOPIC_AT - 4..end) else { return Ok(None) };
        let mut fields = Fields(front);
        fields.one()?;
        let (topic, partitions) = (fields.some_text()?, fields.i32()?.max(0) as u32);
        Ok(Some((FetchHead { correlation, error, topic, partitions }, end, (frame_end - end) as u32)))
    }
}

impl FetchPartition {
    /// Reads the front of a partition, of which an answer has at most `left` bytes. Returns it with its length;
    /// `None` if more bytes are needed.
    fn decode(bytes: &[u8], left: u32) -> Result<Option<(FetchPartition, u32)>, Malformed> {
        if (left as usize) < PARTITION_BYTES + 4 {
            return Err(early());
        }
        let Some(front) = bytes.get(..PARTITION_BYTES) else { return Ok(None) };
        let mut fields = Fields(front);
        let (partition, error) = (fields.i32()?, fields.i16()?);
        let (high_watermark, _stable, _start) = (fields.i64()?, fields.i64()?, fields.i64()?);
        let aborted_bytes = (fields.i32()?.max(0) as usize).saturating_mul(ABORTED_BYTES);
        let end = PARTITION_BYTES.saturating_add(aborted_bytes).saturating_add(4);
        if end > left as usize {
            return Err(early());
        }
        let Some(records_bytes) = bytes.get(end - 4..end) else { return Ok(None) };
        let records_bytes = Fields(records_bytes).i32()?.max(0) as u32;
        if end as u64 + u64::from(records_bytes) > left.into() {
            return Err(Malformed::new("the records of a fetch do not end with their answer"));
        }
        Ok(Some((FetchPartition { partition, error, high_watermark, records_bytes }, end as u32)))
    }
}

/// A part of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FetchItem<'a> {
    /// Its front.
    Head(FetchHead<'a>),
    /// A partition, whose records follow.
    Partition(FetchPartition),
    /// A record, and its offset.
    Record(i64, KafkaRecord<'a>),
    /// Records that are compressed with gzip, and the offset from which theirs count.
    Compressed(i64, &'a [u8]),
    /// Marks of the broker, and the offset behind them.
    Passed(i64),
    /// Its end.
    End,
}

/// State of an answer that is arriving.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Reading {
    /// Nothing of it is read.
    #[default]
    Front,
    /// A partition follows.
    Partition,
    /// This many bytes of records follow, beginning with a batch.
    Batches(u32),
    /// Within a batch: bytes of all records that follow, and of those of the batch.
    Records { left: u32, of_batch: u32, base_offset: i64, crc: u32, wanted: u32 },
    /// A compressed batch that is not there yet: its bytes, and those of the batches behind it.
    Compressed { batch_bytes: u32, behind: u32 },
    /// Bytes to be skipped, and of the batches behind them.
    Skipped { left: u32, behind: u32 },
}

/// Reads answers to fetches, one after another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FetchReader {
    reading: Reading,
    /// Partitions that follow, and bytes of the answer behind those of the partition that is read.
    partitions: u32,
    behind: u32,
}

impl FetchReader {
    /// Reads from the front of `bytes`. Returns how many are consumed, and the part that they ended;
    /// `None` if more bytes are needed.
    pub fn next<'a>(&mut self, bytes: &'a [u8]) -> Result<(usize, Option<FetchItem<'a>>), Malformed> {
        let mut taken = 0;
        loop {
            let rest = &bytes[taken..];
            match self.reading {
                Reading::Front => {
                    let Some((head, used, left)) = FetchHead::decode(rest)? else { return Ok((taken, None)) };
                    *self = FetchReader { reading: Reading::Batches(0), partitions: head.partitions, behind: left };
                    return Ok((taken + used, Some(FetchItem::Head(head))));
                }
                Reading::Partition => {
                    let read = FetchPartition::decode(rest, self.behind)?;
                    let Some((partition, used)) = read else { return Ok((taken, None)) };
                    self.partitions -= 1;
                    self.behind -= used + partition.records_bytes;
                    self.reading = Reading::Batches(partition.records_bytes);
                    return Ok((taken + used as usize, Some(FetchItem::Partition(partition))));
                }
                Reading::Batches(0) if self.partitions > 0 => self.reading = Reading::Partition,
                Reading::Batches(0) if self.behind > 0 => {
                    return Err(Malformed::new("the records of a fetch do not end with their answer"));
                }
                Reading::Batches(0) => {
                    self.reading = Reading::Front;
                    return Ok((taken, Some(FetchItem::End)));
                }
                Reading::Batches(left) => {
                    let Some((used, passed)) = self.batch(left, rest)? else { return Ok((taken, None)) };
                    taken += used;
                    if passed.is_some() {
                        return Ok((taken, passed.map(FetchItem::Passed)));
                    }
                }
                Reading::Records { left, of_batch: 0, crc, wanted, .. } => {
                    check(crc, wanted)?;
                    self.reading = Reading::Batches(left);
                }
                Reading::Records { left, of_batch, base_offset, crc, wanted } => {
                    if KafkaRecord::announced(rest) > of_batch.into() {
                        return Err(Malformed::new("a record is longer than its batch"));
                    }
                    let Some((record, used)) = KafkaRecord::decode(rest)? else { return Ok((taken, None)) };
                    let crc = crc32c::crc32c_append(crc, &rest[..used]);
                    let (left, of_batch) = (left - used as u32, of_batch - used as u32);
                    self.reading = Reading::Records { left, of_batch, base_offset, crc, wanted };
                    let offset = base_offset.saturating_add(record.offset_delta);
                    return Ok((taken + used, Some(FetchItem::Record(offset, record))));
                }
                Reading::Compressed { batch_bytes, behind } => {
                    let Some(batch) = rest.get(..batch_bytes as usize) else { return Ok((taken, None)) };
                    let Some(head) = RecordBatch::decode(batch)? else { return Ok((taken, None)) };
                    let records = &batch[BATCH_BYTES..];
                    check(crc32c::crc32c_append(head.head_crc, records), head.crc)?;
                    self.reading = Reading::Batches(behind);
                    return Ok((taken + batch.len(), Some(FetchItem::Compressed(head.base_offset, records))));
                }
                Reading::Skipped { left: 0, behind } => self.reading = Reading::Batches(behind),
                Reading::Skipped { left, behind } => {
                    let used = rest.len().min(left as usize);
                    if used == 0 {
                        return Ok((taken, None));
                    }
                    self.reading = Reading::Skipped { left: left - used as u32, behind };
                    taken += used;
                }
            }
        }
    }

    /// Begins a batch, of which the answer may hold only a part: then it is skipped. Returns the
    /// consumed bytes, and the offset behind it if it holds marks of the broker.
    fn batch(&mut self, left: u32, bytes: &[u8]) -> Result<Option<(usize, Option<i64>)>, Malformed> {
        if (left as usize) < BATCH_BYTES {
            self.reading = Reading::Skipped { left, behind: 0 };
            return Ok(Some((0, None)));
        }
        let Some(batch) = RecordBatch::decode(bytes)? else { return Ok(None) };
        if batch.batch_bytes > left {
            self.reading = Reading::Skipped { left, behind: 0 };
            return Ok(Some((0, None)));
        }
        if batch.is_control() {
            self.reading = Reading::Skipped { left: batch.batch_bytes, behind: left - batch.batch_bytes };
            let last = batch.base_offset.saturating_add(batch.last_offset_delta.into());
            return Ok(Some((0, Some(last.saturating_add(1)))));
        }
        if batch.is_gzip() {
            let batch_bytes = batch.batch_bytes;
            self.reading = Reading::Compressed { batch_bytes, behind: left - batch_bytes };
            return Ok(Some((0, None)));
        }
        if let Some(codec) = batch.codec() {
            return Err(Malformed::new(format!("records that are compressed ({codec}), which pubmark does not read")));
        }
        let RecordBatch { base_offset, crc: wanted, head_crc: crc, .. } = batch;
        let of_batch = batch.batch_bytes - BATCH_BYTES as u32;
        self.reading = Reading::Records { left: left - BATCH_BYTES as u32, of_batch, base_offset, crc, wanted };
        Ok(Some((BATCH_BYTES, None)))
    }

    /// True if no answer is arriving: the next bytes begin one.
    pub fn is_between(&self) -> bool {
        self.reading == Reading::Front
    }

    /// Returns the length of the record that is arriving as far as it is known; otherwise the number
    /// of bytes in `rest`, which [`FetchReader::next`] did not consume.
    pub fn announced(&self, rest: &[u8]) -> u64 {
        match self.reading {
            Reading::Records { .. } => KafkaRecord::announced(rest),
            _ => rest.len() as u64,
        }
    }
}

/// Checks the checksum of a batch.
fn check(crc: u32, wanted: u32) -> Result<(), Malformed> {
    match crc == wanted {
        true => Ok(()),
        false => Err(Malformed::new(format!("the checksum of a batch is {crc:08x}, where it says {wanted:08x}"))),
    }
}
