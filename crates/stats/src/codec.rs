//! The text form of a histogram: base64 of the HdrHistogram V2 compressed format.
//!
//! The reader takes no more memory than a histogram in range needs, whatever length the header
//! claims: the text may come from an agent of another author.
//!
//! Format: <https://github.com/HdrHistogram/HdrHistogram>, `AbstractHistogram.encodeIntoByteBuffer`
//! and `ZigZagEncoding`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::read::{ZlibDecoder, ZlibEncoder};
use std::io::Read as _;

use crate::histogram::{COUNT_MAX, Histogram, HistogramError, LATENCY_MAX_NS};
use crate::layout::{Layout, VALUE_MAX};

const COOKIE_V2: u32 = 0x1c84_9313;
const COOKIE_V2_COMPRESSED: u32 = 0x1c84_9314;
/// Cookie and length of the compressed part.
const ENVELOPE_LEN: usize = 8;
/// Cookie, payload length, normalizing offset, digits, low, high, ratio.
const HEADER_LEN: usize = 40;

/// A day at 3 digits has 38,912 buckets of at most 9 bytes each.
const INFLATED_MAX: usize = 38_912 * 9 + HEADER_LEN;
/// Even incompressible data grows by less than an eighth in DEFLATE, then by
/// a third in base64.
const TEXT_MAX: usize = INFLATED_MAX / 8 * 9 / 3 * 4;

impl Histogram {
    /// Encodes the histogram as base64 text (RFC 4648, section 4) of the HdrHistogram V2 compressed
    /// format, which the HdrHistogram libraries of other languages read.
    pub fn encode(&self) -> String {
        let counts = payload(self.counts());
        let mut plain = Vec::with_capacity(HEADER_LEN + counts.len());
        let words = [COOKIE_V2, counts.len() as u32, 0, u32::from(self.digits())];
        words.iter().for_each(|word| plain.extend(word.to_be_bytes()));
        [1, LATENCY_MAX_NS, 1.0_f64.to_bits()].iter().for_each(|word| plain.extend(word.to_be_bytes()));
        plain.extend(counts);
        let mut packed = Vec::new();
        ZlibEncoder::new(&plain[..], Compression::default())
            .read_to_end(&mut packed)
            .expect("a slice takes every read");
        let envelope = [COOKIE_V2_COMPRESSED, packed.len() as u32].map(u32::to_be_bytes);
        STANDARD.encode([envelope.as_flattened(), &packed].concat())
    }

    /// Decodes the output of [`Histogram::encode`], or of the HdrHistogram library of another
    /// language.
    ///
    /// Safe for text of unknown origin: it never panics, its memory stays below 2 MiB and its time
    /// is linear in the length of the text. Values above one hour saturate as in
    /// [`Histogram::record_n`].
    ///
    /// # Errors
    /// Every variant of [`HistogramError`] but `Precision`.
    pub fn decode(text: &str) -> Result<Self, HistogramError> {
        decode(text)
    }
}

/// Returns the counts as numbers. Several zeros are one number, their negative count.
fn payload(counts: &[u64]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for run in counts.chunk_by(|before, count| (*before, *count) == (0, 0)) {
        match run {
            [count] => put_zigzag(*count as i64, &mut bytes),
            zeros => put_zigzag(-(zeros.len() as i64), &mut bytes),
        }
    }
    bytes
}

/// Appends a number as [`Reader::zigzag`] reads it.
fn put_zigzag(number: i64, bytes: &mut Vec<u8>) {
    let mut rest = (number << 1 ^ number >> 63) as u64;
    for _ in 0..8 {
        if rest < 0x80 {
            break;
        }
        bytes.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    bytes.push(rest as u8);
}

fn decode(text: &str) -> Result<Histogram, HistogramError> {
    if text.len() > TEXT_MAX {
        return Err(HistogramError::TooLong { len: text.len(), limit: TEXT_MAX });
    }
    let bytes = STANDARD.decode(text)?;
    let mut envelope = Reader(&bytes);
    if envelope.u32()? != COOKIE_V2_COMPRESSED {
        return Err(HistogramError::Malformed("no V2 compressed cookie"));
    }
    if envelope.u32()? as usize != bytes.len() - ENVELOPE_LEN {
        return Err(HistogramError::Malformed("compressed length is wrong"));
    }
    let inflated = inflate(envelope.0)?;
    decode_payload(&mut Reader(&inflated))
}

/// Decompresses no more than any histogram in range can need.
fn inflate(data: &[u8]) -> Result<Vec<u8>, HistogramError> {
    let mut inflated = Vec::new();
    let mut decoder = ZlibDecoder::new(data);
    let failed = |error: std::io::Error| HistogramError::Inflate(error.to_string());
    (&mut decoder).take(INFLATED_MAX as u64 + 1).read_to_end(&mut inflated).map_err(failed)?;
    if inflated.len() > INFLATED_MAX {
        return Err(HistogramError::Inflate(format!("it holds more than {INFLATED_MAX} bytes")));
    }
    if decoder.total_in() != data.len() as u64 {
        return Err(HistogramError::Inflate("bytes follow the compressed part".into()));
    }
    Ok(inflated)
}

fn decode_payload(reader: &mut Reader) -> Result<Histogram, HistogramError> {
    if reader.u32()? != COOKIE_V2 {
        return Err(HistogramError::Malformed("no V2 cookie"));
    }
    let payload_len = reader.u32()? as usize;
    if reader.u32()? != 0 {
        return Err(HistogramError::Malformed("normalizing offset is not 0"));
    }
    let digits = reader.u32()?;
    let low = reader.u64()?;
    let high = reader.u64()?;
    if f64::from_bits(reader.u64()?) != 1.0 {
        return Err(HistogramError::Malformed("value ratio is not 1"));
    }
    if payload_len != reader.0.len() {
        return Err(HistogramError::Malformed("payload length is wrong"));
    }
    let bounds = HistogramError::Bounds { low, high, digits };
    if low != 1 || !(2..=VALUE_MAX).contains(&high) {
        return Err(bounds);
    }
    let mut histogram = Histogram::of_digits(digits).ok_or(bounds)?;
    let layout = Layout::new(histogram.digits());
    let mut index: u64 = 0;
    while !reader.0.is_empty() {
        let number = reader.zigzag()?;
        if number < 0 {
            index = index.saturating_add(number.unsigned_abs());
            continue;
        }
        let count = number.unsigned_abs();
        if count > 0 {
            if count > COUNT_MAX - histogram.count() {
                return Err(HistogramError::TooManyValues);
            }
            let value = layout.checked_bottom(index).ok_or(HistogramError::Malformed("bucket beyond the range"))?;
            histogram.record_n(value, count);
        }
        index = index.saturating_add(1);
    }
    Ok(histogram)
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], HistogramError> {
        let (head, tail) = self.0.split_first_chunk::<N>().ok_or(HistogramError::Malformed("ends early"))?;
        self.0 = tail;
        Ok(*head)
    }

    fn u32(&mut self) -> Result<u32, HistogramError> {
        Ok(u32::from_be_bytes(self.take()?))
    }

    fn u64(&mut self) -> Result<u64, HistogramError> {
        Ok(u64::from_be_bytes(self.take()?))
    }

    /// Reads a zig-zag LEB128 number of at most 9 bytes, the ninth taken whole.
    fn zigzag(&mut self) -> Result<i64, HistogramError> {
        let mut number: u64 = 0;
        for position in 0..9 {
            let [byte] = self.take()?;
            let last = position == 8;
            let bits = if last { byte } else { byte & 0x7f };
            number |= u64::from(bits) << (7 * position);
            if last || byte & 0x80 == 0 {
                break;
            }
        }
        Ok((number >> 1) as i64 ^ -((number & 1) as i64))
    }
}
