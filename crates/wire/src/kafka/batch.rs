//! Batches of records in format 2.

use super::read::{Fields, close_length, put_i32, put_i64, put_varint, varint, varint_bytes};
use crate::Malformed;

/// Bytes of a batch before its records.
pub const BATCH_BYTES: usize = 61;
/// Identity of a producer that is not idempotent.
pub const NO_PRODUCER: ProducerIdentity = ProducerIdentity { id: -1, epoch: -1, sequence: -1 };

/// Bytes before the length that a batch states, and of that length: it counts what follows.
const LENGTH_END: usize = 12;
/// Position of the format, of the checksum, and of the first byte that the checksum covers.
const MAGIC_AT: usize = 16;
const CRC_AT: usize = 17;
const CRC_FROM: usize = 21;
const LAST_DELTA_AT: usize = 23;
const PRODUCER_AT: usize = 43;
const COUNT_AT: usize = 57;
const MAGIC: u8 = 2;
/// Bits of the attributes: compression, and batches that mark the end of a transaction.
const ATTRIBUTES_AT: usize = CRC_FROM;
const COMPRESSION: i16 = 0x07;
const CONTROL: i16 = 0x20;
/// Codecs by number.
const CODECS: [&str; 8] = ["none", "gzip", "snappy", "lz4", "zstd", "codec 5", "codec 6", "codec 7"];
/// Number of the codec gzip.
pub(super) const GZIP: i16 = 1;
/// Time of records that have none. The brokers then use that of the file for their retention.
const NO_TIMESTAMP: i64 = -1;

/// Identity of an idempotent producer, and the number of a batch's first record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProducerIdentity {
    /// Identifier that the broker gave.
    pub id: i64,
    /// Its epoch.
    pub epoch: i16,
    /// Number of the first record of a batch in its partition.
    pub sequence: i32,
}

/// A batch up to its records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordBatch {
    /// Offset of the first record.
    pub base_offset: i64,
    /// Length of the whole batch, bytes.
    pub batch_bytes: u32,
    /// Its checksum (CRC-32C).
    pub crc: u32,
    /// Compression, kind of time, transaction, control.
    pub attributes: i16,
    /// Offset of the last record, from the first one's.
    pub last_offset_delta: i32,
    /// Its producer.
    pub producer: ProducerIdentity,
    /// Number of records.
    pub count: u32,
    /// Checksum of what it covers before the records.
    pub head_crc: u32,
}

impl RecordBatch {
    /// Reads the front of a batch; `None` if more bytes are needed.
    pub fn decode(bytes: &[u8]) -> Result<Option<RecordBatch>, Malformed> {
        if let Some(magic) = bytes.get(MAGIC_AT).filter(|magic| **magic != MAGIC) {
            return Err(Malformed::new(format!("a batch of records in format {magic}, where {MAGIC} is expected")));
        }
        let Some(head) = bytes.first_chunk::<BATCH_BYTES>() else { return Ok(None) };
        let mut fields = Fields(head);
        let base_offset = fields.i64()?;
        let batch_bytes = fields.u32()?.saturating_add(LENGTH_END as u32);
        let (_leader_epoch, _magic, crc) = (fields.i32()?, fields.i8()?, fields.u32()?);
        let (attributes, last_offset_delta) = (fields.i16()?, fields.i32()?);
        let (_first_time, _last_time) = (fields.i64()?, fields.i64()?);
        let producer = ProducerIdentity { id: fields.i64()?, epoch: fields.i16()?, sequence: fields.i32()? };
        let count = fields.u32()?;
        if (batch_bytes as usize) < BATCH_BYTES {
            return Err(Malformed::new(format!("a batch of {batch_bytes} bytes")));
        }
        let head_crc = crc32c::crc32c(&head[CRC_FROM..]);
        Ok(Some(RecordBatch {
            base_offset,
            batch_bytes,
            crc,
            attributes,
            last_offset_delta,
            producer,
            count,
            head_crc,
        }))
    }

    /// True if the records are compressed with gzip.
    pub fn is_gzip(&self) -> bool {
        self.attributes & COMPRESSION == GZIP
    }

    /// Returns the name of the codec that compresses the records, if one does.
    pub fn codec(&self) -> Option<&'static str> {
        CODECS.get((self.attributes & COMPRESSION) as usize).copied().filter(|codec| *codec != CODECS[0])
    }

    /// True if its records are marks of the broker and no messages.
    pub fn is_control(&self) -> bool {
        self.attributes & CONTROL != 0
    }
}

/// A record without headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KafkaRecord<'a> {
    /// Its offset, from the batch's first.
    pub offset_delta: i64,
    /// Its key.
    pub key: Option<&'a [u8]>,
    /// Its value.
    pub value: Option<&'a [u8]>,
}

impl<'a> KafkaRecord<'a> {
    /// Reads a record at the front of `bytes`; headers are skipped. Returns it with its length;
    /// `None` if more bytes are needed.
    pub fn decode(bytes: &'a [u8]) -> Result<Option<(KafkaRecord<'a>, usize)>, Malformed> {
        let Some((length, front_bytes)) = varint(bytes)? else { return Ok(None) };
        let Ok(length) = usize::try_from(length) else {
            return Err(Malformed::new(format!("a record of {length} bytes")));
        };
        let Some(body) = bytes[front_bytes..].get(..length) else { return Ok(None) };
        let mut fields = Fields(body);
        let (_attributes, _timestamp_delta) = (fields.i8()?, fields.varint()?);
        let record =
            KafkaRecord { offset_delta: fields.varint()?, key: fields.var_bytes()?, value: fields.var_bytes()? };
        for _ in 0..fields.varint()? {
            let (_name, _value) = (fields.var_bytes()?, fields.var_bytes()?);
        }
        fields.end()?;
        Ok(Some((record, front_bytes + length)))
    }

    /// Returns the length of the record at the front of `bytes` as far as it is known; otherwise the
    /// number of bytes so far.
    pub fn announced(bytes: &[u8]) -> u64 {
        match varint(bytes) {
            Ok(Some((length, front_bytes))) => u64::try_from(length).unwrap_or(0).saturating_add(front_bytes as u64),
            _ => bytes.len() as u64,
        }
    }
}

/// Returns the length of a record without headers.
pub fn record_bytes(offset_delta: u32, key: Option<&[u8]>, value_bytes: usize) -> usize {
    let inner = inner_bytes(offset_delta, key, value_bytes);
    varint_bytes(inner as i64) + inner
}

fn inner_bytes(offset_delta: u32, key: Option<&[u8]>, value_bytes: usize) -> usize {
    let key_bytes = key.map_or(1, |key| varint_bytes(key.len() as i64) + key.len());
    // Attributes, difference of times, and headers take a byte each.
    3 + key_bytes + varint_bytes(offset_delta.into()) + varint_bytes(value_bytes as i64) + value_bytes
}

/// Appends a record without key and headers.
pub fn put_record(out: &mut Vec<u8>, offset_delta: u32, value: &[u8]) {
    put_record_of(out, offset_delta, None, [value, &[]]);
}

/// Appends a record without headers, whose value is in two parts.
pub fn put_record_of(out: &mut Vec<u8>, offset_delta: u32, key: Option<&[u8]>, value: [&[u8]; 2]) {
    let value_bytes = value[0].len() + value[1].len();
    put_varint(out, inner_bytes(offset_delta, key, value_bytes) as i64);
    out.extend_from_slice(&[0, 0]);
    put_varint(out, offset_delta.into());
    put_varint(out, key.map_or(-1, |key| key.len() as i64));
    out.extend_from_slice(key.unwrap_or_default());
    put_varint(out, value_bytes as i64);
    value.iter().for_each(|part| out.extend_from_slice(part));
    put_varint(out, 0);
}

/// Appends the front of a batch, which [`end_batch`] completes after its records. Returns its
/// position.
pub fn begin_batch(out: &mut Vec<u8>, base_offset: i64) -> usize {
    let at = out.len();
    put_i64(out, base_offset);
    put_i32(out, 0);
    put_i32(out, -1);
    out.push(MAGIC);
    out.resize(at + LAST_DELTA_AT + 4, 0);
    put_i64(out, NO_TIMESTAMP);
    put_i64(out, NO_TIMESTAMP);
    out.resize(at + BATCH_BYTES, 0);
    at
}

/// Notes the codec that compresses the records of the batch at the front of `batch`.
pub(super) fn set_codec(batch: &mut [u8], codec: i16) {
    batch[ATTRIBUTES_AT..ATTRIBUTES_AT + 2].copy_from_slice(&codec.to_be_bytes());
}

/// Completes the batch at this position, whose records follow it to the end of `out`.
pub fn end_batch(out: &mut [u8], at: usize, count: u32, producer: ProducerIdentity) {
    close_length(out, at + LENGTH_END);
    let batch = &mut out[at..];
    batch[LAST_DELTA_AT..LAST_DELTA_AT + 4].copy_from_slice(&count.saturating_sub(1).to_be_bytes());
    batch[PRODUCER_AT..PRODUCER_AT + 8].copy_from_slice(&producer.id.to_be_bytes());
    batch[PRODUCER_AT + 8..PRODUCER_AT + 10].copy_from_slice(&producer.epoch.to_be_bytes());
    batch[PRODUCER_AT + 10..COUNT_AT].copy_from_slice(&producer.sequence.to_be_bytes());
    batch[COUNT_AT..BATCH_BYTES].copy_from_slice(&count.to_be_bytes());
    let crc = crc32c::crc32c(&batch[CRC_FROM..]);
    batch[CRC_AT..CRC_FROM].copy_from_slice(&crc.to_be_bytes());
}
