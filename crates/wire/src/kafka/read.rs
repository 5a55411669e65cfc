//! Fields of messages: big-endian numbers, texts with their length, and numbers of variable length.

use crate::Malformed;

/// Longest request or response in bytes: the brokers' default limit (`socket.request.max.bytes`).
pub const MAX_FRAME_BYTES: u32 = 100 << 20;
/// Longest name of a topic, bytes.
pub const MAX_TOPIC_BYTES: usize = 249;

/// Longest number of variable length, bytes.
const VARINT_BYTES: usize = 10;

/// Reads fields from the front of a message that is complete.
#[derive(Clone, Copy)]
pub struct Fields<'a>(pub &'a [u8]);

impl<'a> Fields<'a> {
    pub fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or_else(short)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (taken, rest) = self.0.split_first_chunk().ok_or_else(short)?;
        self.0 = rest;
        Ok(*taken)
    }

    pub fn i8(&mut self) -> Result<i8, Malformed> {
        self.array().map(i8::from_be_bytes)
    }

    pub fn i16(&mut self) -> Result<i16, Malformed> {
        self.array().map(i16::from_be_bytes)
    }

    pub fn i32(&mut self) -> Result<i32, Malformed> {
        self.array().map(i32::from_be_bytes)
    }

    pub fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_be_bytes)
    }

    pub fn i64(&mut self) -> Result<i64, Malformed> {
        self.array().map(i64::from_be_bytes)
    }

    /// Reads a text, which may be null.
    pub fn text(&mut self) -> Result<Option<&'a [u8]>, Malformed> {
        let bytes = self.i16()?;
        usize::try_from(bytes).ok().map(|bytes| self.take(bytes)).transpose()
    }

    /// Reads a text that may not be null.
    pub fn some_text(&mut self) -> Result<&'a [u8], Malformed> {
        self.text()?.ok_or_else(|| Malformed::new("a text is null"))
    }

    /// Reads bytes, which may be null.
    pub fn bytes(&mut self) -> Result<Option<&'a [u8]>, Malformed> {
        let bytes = self.i32()?;
        usize::try_from(bytes).ok().map(|bytes| self.take(bytes)).transpose()
    }

    /// Reads the number of entries of an array; null is 0. Each entry has at least `each` bytes, so
    /// no more entries can follow than there are bytes.
    pub fn count(&mut self, each: usize) -> Result<usize, Malformed> {
        let count = usize::try_from(self.i32()?).unwrap_or(0);
        if count > self.0.len() / each { Err(short()) } else { Ok(count) }
    }

    /// Reads the number of entries of an array that must have exactly one.
    pub fn one(&mut self) -> Result<(), Malformed> {
        match self.i32()? {
            1 => Ok(()),
            other => Err(Malformed::new(format!("an array of {other} entries, where one is expected"))),
        }
    }

    /// Reads an array that must be empty.
    pub fn none(&mut self) -> Result<(), Malformed> {
        match self.i32()? {
            0 => Ok(()),
            count => Err(Malformed::new(format!("an array of {count} entries, where none is expected"))),
        }
    }

    /// Reads arrays of one topic and of one partition of it.
    pub fn one_partition(&mut self) -> Result<(&'a [u8], i32), Malformed> {
        self.one()?;
        let topic = self.some_text()?;
        self.one()?;
        Ok((topic, self.i32()?))
    }

    /// Reads a signed number of variable length.
    pub fn varint(&mut self) -> Result<i64, Malformed> {
        let (number, bytes) = varint(self.0)?.ok_or_else(short)?;
        self.0 = &self.0[bytes..];
        Ok(number)
    }

    /// Reads bytes after their length of variable length; a negative one is null.
    pub fn var_bytes(&mut self) -> Result<Option<&'a [u8]>, Malformed> {
        let bytes = self.varint()?;
        usize::try_from(bytes).ok().map(|bytes| self.take(bytes)).transpose()
    }

    /// Fails if bytes are left.
    pub fn end(self) -> Result<(), Malformed> {
        match self.0.len() {
            0 => Ok(()),
            left => Err(Malformed::new(format!("{left} bytes after the end of a message"))),
        }
    }
}

fn short() -> Malformed {
    Malformed::new("a message ends within a field")
}

/// Reads a signed number of variable length (zigzag). Returns it with its length; `None` if more
/// bytes are needed.
pub fn varint(bytes: &[u8]) -> Result<Option<(i64, usize)>, Malformed> {
    let mut number = 0u64;
    for (index, byte) in bytes.iter().take(VARINT_BYTES).enumerate() {
        number |= u64::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return Ok(Some(((number >> 1) as i64 ^ -((number & 1) as i64), index + 1)));
        }
    }
    if bytes.len() < VARINT_BYTES {
        return Ok(None);
    }
    Err(Malformed::new(format!("a number of more than {VARINT_BYTES} bytes")))
}

pub fn put_varint(out: &mut Vec<u8>, number: i64) {
    let mut rest = ((number << 1) ^ (number >> 63)) as u64;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// Returns the length of a number of variable length.
pub fn varint_bytes(number: i64) -> usize {
    let zigzag = ((number << 1) ^ (number >> 63)) as u64;
    (64 - (zigzag | 1).leading_zeros() as usize).div_ceil(7)
}

pub fn put_text(out: &mut Vec<u8>, text: &[u8]) {
    let text = &text[..text.len().min(i16::MAX as usize)];
    out.extend_from_slice(&(text.len() as i16).to_be_bytes());
    out.extend_from_slice(text);
}

pub fn put_some_text(out: &mut Vec<u8>, text: Option<&[u8]>) {
    match text {
        Some(text) => put_text(out, text),
        None => out.extend_from_slice(&(-1i16).to_be_bytes()),
    }
}

pub fn put_i16(out: &mut Vec<u8>, number: i16) {
    out.extend_from_slice(&number.to_be_bytes());
}

pub fn put_i32(out: &mut Vec<u8>, number: i32) {
    out.extend_from_slice(&number.to_be_bytes());
}

pub fn put_i64(out: &mut Vec<u8>, number: i64) {
    out.extend_from_slice(&number.to_be_bytes());
}

/// Writes the number of bytes after `at` into the four bytes before it.
pub fn close_length(out: &mut [u8], at: usize) {
    let length = (out.len() - at) as u32;
    out[at - 4..at].copy_from_slice(&length.to_be_bytes());
}
