//! AMQP 1.0: frames, their performatives, and the sections of a message.
//!
//! Source: the OASIS standard, parts 1 (types), 2 (transport), 3 (messaging) and 5 (security).

mod performative;
mod value;

pub use performative::{Amqp1Failure, DeliveryOutcome, Performative, Skipped, Terminus};
pub use value::{Binary, Symbol, Symbols, Text};

use crate::Malformed;
use value::{Reader, put_described};

/// The first bytes of a connection that begins with a login, in both directions.
pub const LOGIN_HEADER: &[u8; 8] = b"AMQP\x03\x01\0\0";
/// The first bytes of a connection, or of what follows the login, in both directions.
pub const PROTOCOL_HEADER: &[u8; 8] = b"AMQP\0\x01\0\0";
/// Longest frame in bytes that is read here.
pub const MAX_FRAME_BYTES: u32 = 128 << 10;
/// Longest frame that every peer must accept, bytes.
pub const MIN_FRAME_BYTES: u32 = 512;
/// Longest front of a frame with a transfer and of the sections before the body, bytes.
const TRANSFER_FRONT_BYTES: u32 = 64;

const FRONT_BYTES: u32 = 8;
const AMQP_FRAME: u8 = 0;
const LOGIN_FRAME: u8 = 1;
/// Descriptors of sections.
const HEADER: u64 = 0x70;
const DATA: u64 = 0x75;
const AMQP_VALUE: u64 = 0x77;

/// One item of a connection.
#[expect(clippy::large_enum_variant, reason = "one is on the stack while it is read, and none is kept")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amqp1Frame<'a> {
    /// The first bytes of a layer: identifier, major and minor version, and revision.
    Header([u8; 4]),
    /// A frame without content: a sign of life.
    Empty,
    /// A performative, and the bytes of a message after it.
    Performative(Performative<'a>, &'a [u8]),
}

impl<'a> Amqp1Frame<'a> {
    /// Reads one frame from the front of `bytes`. Returns it with its length; `None` if more bytes are needed.
    pub fn decode(bytes: &'a [u8]) -> Result<Option<(Self, usize)>, Malformed> {
        let known = bytes.len().min(4);
        if known > 0 && bytes[..known] == PROTOCOL_HEADER[..known] {
            let version = bytes.get(4..8).and_then(|version| version.try_into().ok());
            return Ok(version.map(|version| (Amqp1Frame::Header(version), PROTOCOL_HEADER.len())));
        }
        let Some((front, rest)) = bytes.split_first_chunk::<8>() else { return Ok(None) };
        let [s3, s2, s1, s0, words, kind, ..] = *front;
        let frame_bytes = u32::from_be_bytes([s3, s2, s1, s0]);
        let front_bytes = u32::from(words) * 4;
        if frame_bytes > MAX_FRAME_BYTES {
            return Err(Malformed::new(format!(
                "a frame of {frame_bytes} bytes is longer than {MAX_FRAME_BYTES} bytes"
            )));
        }
        if front_bytes < FRONT_BYTES || front_bytes > frame_bytes {
            return Err(Malformed::new(format!("a frame of {frame_bytes} bytes has a front of {front_bytes}")));
        }
        if ![AMQP_FRAME, LOGIN_FRAME].contains(&kind) {
            return Err(Malformed::new(format!("no frame is of kind {kind}")));
        }
        let Some(carried) = rest.get((front_bytes - FRONT_BYTES) as usize..(frame_bytes - FRONT_BYTES) as usize) else {
            return Ok(None);
        };
        let frame = if carried.is_empty() {
            Amqp1Frame::Empty
        } else {
            let mut reader = Reader(carried);
            let performative = Performative::of(reader.value()?)?;
            if performative.is_login() != (kind == LOGIN_FRAME) {
                return Err(Malformed::new(format!("{} in a frame of kind {kind}", performative.name())));
            }
            Amqp1Frame::Performative(performative, reader.0)
        };
        Ok(Some((frame, frame_bytes as usize)))
    }

    /// Appends the frame. The caller must ensure that it fits into a frame of the peer's size.
    pub fn put(&self, out: &mut Vec<u8>) {
        match self {
            Amqp1Frame::Header(version) => {
                out.extend_from_slice(&PROTOCOL_HEADER[..4]);
                out.extend_from_slice(version);
            }
            Amqp1Frame::Empty => put_frame(out, AMQP_FRAME, |_| {}),
            Amqp1Frame::Performative(performative, message) => {
                put_performative(out, performative, |out| out.extend_from_slice(message));
            }
        }
    }
}

/// Appends a frame with a performative and what `message` appends.
pub fn put_performative(out: &mut Vec<u8>, performative: &Performative<'_>, message: impl FnOnce(&mut Vec<u8>)) {
    let kind = if performative.is_login() { LOGIN_FRAME } else { AMQP_FRAME };
    put_frame(out, kind, |out| {
        performative.put(out);
        message(out);
    });
}

fn put_frame(out: &mut Vec<u8>, kind: u8, content: impl FnOnce(&mut Vec<u8>)) {
    let begin = out.len();
    out.extend_from_slice(&[0, 0, 0, 0, 2, kind, 0, 0]);
    content(out);
    let frame_bytes = (out.len() - begin) as u32;
    out[begin..begin + 4].copy_from_slice(&frame_bytes.to_be_bytes());
}

/// Returns the bytes of a message that one frame carries.
fn piece_bytes(frame_bytes: u32) -> usize {
    (frame_bytes - TRANSFER_FRONT_BYTES) as usize
}

/// Returns the number of frames of a message of this length, in frames of the peer's size.
pub fn frames(body_bytes: usize, frame_bytes: u32) -> u32 {
    body_bytes.div_ceil(piece_bytes(frame_bytes)).max(1) as u32
}

/// Appends message number `delivery` of link 0, in as many frames as the peer's `frame_bytes` requires.
pub fn put_message(
    out: &mut Vec<u8>,
    delivery: u32,
    (is_settled, is_durable): (bool, bool),
    message: &[u8],
    frame_bytes: u32,
) {
    let tag = delivery.to_be_bytes();
    let (mut rest, mut is_first) = (message, true);
    while is_first || !rest.is_empty() {
        let (piece, after) = rest.split_at(rest.len().min(piece_bytes(frame_bytes)));
        let transfer = Performative::Transfer {
            handle: 0,
            delivery: is_first.then_some(delivery),
            tag: is_first.then_some(Binary(&tag)),
            format: is_first.then_some(0),
            is_settled: Some(is_settled),
            more: Some(!after.is_empty()),
            receives: Skipped,
            state: Skipped,
            resume: Skipped,
            is_aborted: None,
        };
        put_performative(out, &transfer, |out| {
            if is_first {
                put_message_front(out, is_durable, message.len());
            }
            out.extend_from_slice(piece);
        });
        (rest, is_first) = (after, false);
    }
}

/// Appends the sections of a message, but not the bytes of its body, which follow: a header if it must outlive the
/// server, and the front of the body.
pub fn put_message_front(out: &mut Vec<u8>, is_durable: bool, body_bytes: usize) {
    if is_durable {
        put_described(out, HEADER as u8, 1, |out| out.push(0x41));
    }
    out.extend_from_slice(&[0, 0x53, DATA as u8]);
    value::put_sized(out, 0xa0, body_bytes);
}

/// Returns the binary body of a message; nothing if its body is of another kind.
pub fn body(message: &[u8]) -> Result<&[u8], Malformed> {
    let mut reader = Reader(message);
    while !reader.0.is_empty() {
        let section = reader.value()?;
        if let Some(DATA | AMQP_VALUE) = section.descriptor {
            return Ok(section.binary().unwrap_or_default());
        }
    }
    Ok(&[])
}

#[cfg(test)]
mod tests;
