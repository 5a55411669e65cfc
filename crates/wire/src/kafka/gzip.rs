//! Batches compressed with gzip (RFC 1952): a header of ten bytes, deflate, CRC-32 and length.

use super::batch::{BATCH_BYTES, GZIP, set_codec};
use crate::Malformed;
use flate2::{Compress, Compression, Crc, Decompress, FlushCompress, FlushDecompress, Status};

/// Magic, deflate, no flags, no time, no hint, unknown system.
const HEAD: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
/// Bytes of the part of [`HEAD`] that is the same in every stream that is read.
const FIXED: usize = 4;
/// Bytes behind the deflated ones: CRC-32 and length.
const TAIL_BYTES: usize = 8;
/// Least room for the next bytes.
const ROOM_BYTES: usize = 4 << 10;
/// Longest batch after decompression, bytes.
const MOST_BYTES: usize = 16 << 20;

/// Compresses batches, one after another, at gzip's default level. Takes about 300 KB.
pub struct GzipWriter {
    deflate: Compress,
    compressed: Vec<u8>,
}

impl Default for GzipWriter {
    fn default() -> Self {
        GzipWriter { deflate: Compress::new(Compression::default(), false), compressed: Vec::new() }
    }
}

impl GzipWriter {
    /// Compresses the records of the batch at this position, which follow it to the end of `out`. Goes before
    /// [`super::end_batch`].
    pub fn compress(&mut self, out: &mut Vec<u8>, at: usize) {
        let records = &out[at + BATCH_BYTES..];
        self.deflate.reset();
        self.compressed.clear();
        self.compressed.extend_from_slice(&HEAD);
        loop {
            let taken = self.deflate.total_in() as usize;
            self.compressed.reserve(ROOM_BYTES);
            match self.deflate.compress_vec(&records[taken..], &mut self.compressed, FlushCompress::Finish) {
                Ok(Status::StreamEnd) => break,
                Ok(_) => {}
                // The records stay as they are.
                Err(_) => return,
            }
        }
        let mut crc = Crc::new();
        crc.update(records);
        self.compressed.extend_from_slice(&crc.sum().to_le_bytes());
        self.compressed.extend_from_slice(&crc.amount().to_le_bytes());
        out.truncate(at + BATCH_BYTES);
        out.extend_from_slice(&self.compressed);
        set_codec(&mut out[at..], GZIP);
    }
}

/// Decompresses records, one batch after another. Takes about 50 KB, and as much as the longest batch.
pub struct GzipReader {
    inflate: Decompress,
    records: Vec<u8>,
}

impl Default for GzipReader {
    fn default() -> Self {
        GzipReader { inflate: Decompress::new(false), records: Vec::new() }
    }
}

impl GzipReader {
    /// Returns the records that `bytes` are the compressed form of.
    ///
    /// # Errors
    /// If they are no gzip, damaged, or more than 16 MiB of records.
    pub fn decompress(&mut self, bytes: &[u8]) -> Result<&[u8], Malformed> {
        let wrong = |what: &str| Malformed::new(format!("compressed records (gzip) {what}"));
        if !bytes.starts_with(&HEAD[..FIXED]) || bytes.len() < HEAD.len() + TAIL_BYTES {
            return Err(wrong("do not begin with a header without extra fields"));
        }
        let (deflated, tail) = bytes[HEAD.len()..].split_at(bytes.len() - HEAD.len() - TAIL_BYTES);
        self.inflate.reset(false);
        self.records.clear();
        loop {
            let (taken, before) = (self.inflate.total_in() as usize, self.records.len());
            self.records.reserve(ROOM_BYTES);
            match self.inflate.decompress_vec(&deflated[taken..], &mut self.records, FlushDecompress::None) {
                Ok(_) if self.records.len() > MOST_BYTES => return Err(wrong("are longer than 16 MiB")),
                Ok(Status::StreamEnd) => break,
                Ok(_) if self.records.len() > before || self.inflate.total_in() as usize > taken => {}
                Ok(_) | Err(_) => return Err(wrong("are damaged")),
            }
        }
        let mut crc = Crc::new();
        crc.update(&self.records);
        if tail != [crc.sum().to_le_bytes(), crc.amount().to_le_bytes()].concat() {
            return Err(wrong("do not fit their checksum"));
        }
        Ok(&self.records)
    }
}
