//! AMQP 0-9-1: frames, methods and tables.
//!
//! Source: the AMQP 0-9-1 specification and its XML definition, and RabbitMQ's
//! extensions to it (publisher confirms, nack, blocked connections).

mod method;
mod table;

pub use method::Method;
pub use table::{FieldTable, FieldValue, Short, put_flag, put_integer, put_table, put_text};

use crate::Malformed;
use table::put_sized;

/// Opens a client's connection; a server that refuses this version sends it too.
pub const PROTOCOL_HEADER: &[u8; 8] = b"AMQP\0\0\x09\x01";
/// Longest frame in bytes, including front and end: RabbitMQ's offer.
pub const MAX_FRAME_BYTES: u32 = 128 << 10;
/// Longest frame that every peer must accept, bytes.
pub const MIN_FRAME_BYTES: u32 = 4096;
/// Longest message in bytes: RabbitMQ's default limit.
pub const MAX_BODY_BYTES: u64 = 128 << 20;
/// Bytes of a frame around its content.
pub const FRAME_OVERHEAD_BYTES: u32 = 8;
/// Properties of a message that need not outlive the server (delivery mode 1).
pub const TRANSIENT: &[u8] = &[0x10, 0x00, 1];
/// Properties of a message that must outlive the server (delivery mode 2).
pub const PERSISTENT: &[u8] = &[0x10, 0x00, 2];

/// Flags of the properties before `reply-to`, in their order (4.2.6.1).
const CONTENT_TYPE: u16 = 1 << 15;
const CONTENT_ENCODING: u16 = 1 << 14;
const HEADERS: u16 = 1 << 13;
const DELIVERY_MODE: u16 = 1 << 12;
const PRIORITY: u16 = 1 << 11;
const CORRELATION_ID: u16 = 1 << 10;
const REPLY_TO: u16 = 1 << 9;

const METHOD: u8 = 1;
const HEADER: u8 = 2;
const BODY: u8 = 3;
const HEARTBEAT: u8 = 8;
const FRONT_BYTES: usize = 7;
const END: u8 = 0xce;
/// Class of messages.
const BASIC: u16 = 60;

/// A frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// A method on a channel.
    Method(u16, Method<'a>),
    /// Header of a message, sent before its body.
    Header {
        /// Its channel.
        channel: u16,
        /// Bytes of the body, at most [`MAX_BODY_BYTES`].
        body_bytes: u64,
        /// Flags of the properties that follow, and the properties.
        properties: &'a [u8],
    },
    /// A piece of a message's body, and its channel.
    Body(u16, &'a [u8]),
    /// A heartbeat.
    Heartbeat,
    /// Not a frame: a server of another protocol, or of another version, names its own (four bytes
    /// after `AMQP`) and closes.
    Refused([u8; 4]),
}

impl<'a> Frame<'a> {
    /// Reads one frame from the front of `bytes`. Returns it with its length; `None` if more bytes
    /// are needed. The content of bodies and properties is not parsed.
    pub fn decode(bytes: &'a [u8]) -> Result<Option<(Self, usize)>, Malformed> {
        let Some(kind) = bytes.first() else { return Ok(None) };
        if *kind == b'A' {
            return refused(bytes);
        }
        if ![METHOD, HEADER, BODY, HEARTBEAT].contains(kind) {
            return Err(Malformed::new(format!("no frame is of kind {kind}")));
        }
        let Some((front, rest)) = bytes.split_first_chunk::<FRONT_BYTES>() else { return Ok(None) };
        let [_, c1, c0, s3, s2, s1, s0] = *front;
        let channel = u16::from_be_bytes([c1, c0]);
        let size = u32::from_be_bytes([s3, s2, s1, s0]);
        if size > MAX_FRAME_BYTES - FRAME_OVERHEAD_BYTES {
            return Err(Malformed::new(format!("a frame of {size} bytes is longer than {MAX_FRAME_BYTES} bytes")));
        }
        let Some((carried, [end, ..])) = rest.split_at_checked(size as usize) else { return Ok(None) };
        if *end != END {
            return Err(Malformed::new("the frame does not end with its end octet"));
        }
        let frame = match *kind {
            METHOD => Frame::Method(channel, Method::decode(carried)?),
            HEADER => header(channel, carried)?,
            BODY => Frame::Body(channel, carried),
            _ if channel == 0 && carried.is_empty() => Frame::Heartbeat,
            _ => return Err(Malformed::new("a heartbeat carries something")),
        };
        Ok(Some((frame, size as usize + FRAME_OVERHEAD_BYTES as usize)))
    }

    /// Appends the frame. The caller must ensure that its content fits into a frame of the peer's
    /// size.
    pub fn put(&self, out: &mut Vec<u8>) {
        match self {
            Frame::Method(channel, method) => frame(out, METHOD, *channel, |out| method.put(out)),
            Frame::Header { channel, body_bytes, properties } => frame(out, HEADER, *channel, |out| {
                out.extend_from_slice(&BASIC.to_be_bytes());
                out.extend_from_slice(&[0, 0]);
                out.extend_from_slice(&body_bytes.to_be_bytes());
                out.extend_from_slice(properties);
            }),
            Frame::Body(channel, bytes) => frame(out, BODY, *channel, |out| out.extend_from_slice(bytes)),
            Frame::Heartbeat => frame(out, HEARTBEAT, 0, |_| {}),
            Frame::Refused(version) => {
                out.extend_from_slice(&PROTOCOL_HEADER[..4]);
                out.extend_from_slice(version);
            }
        }
    }
}

/// Appends a message: its header, and its body in as many frames as the peer's `frame_bytes`
/// requires.
pub fn put_content(out: &mut Vec<u8>, channel: u16, properties: &[u8], body: &[u8], frame_bytes: u32) {
    Frame::Header { channel, body_bytes: body.len() as u64, properties }.put(out);
    let piece_bytes = frame_bytes.max(MIN_FRAME_BYTES) - FRAME_OVERHEAD_BYTES;
    for piece in body.chunks(piece_bytes as usize) {
        Frame::Body(channel, piece).put(out);
    }
}

/// Returns the properties of a message that is kept across a restart of the server, or is not, with headers if the
/// table has any.
pub fn headed(headers: FieldTable<'_>, is_persistent: bool) -> Vec<u8> {
    properties(headers, if is_persistent { 2 } else { 1 }, 0)
}

fn properties(headers: FieldTable<'_>, delivery_mode: u8, more_flags: u16) -> Vec<u8> {
    let has_headers = !headers.0.is_empty();
    let flags = DELIVERY_MODE | more_flags | if has_headers { HEADERS } else { 0 };
    let mut properties = flags.to_be_bytes().to_vec();
    if has_headers {
        put_sized(&mut properties, |out| out.extend_from_slice(headers.0));
    }
    properties.push(delivery_mode);
    properties
}

/// Returns the properties of a transient message with headers if the table has any, a correlation identifier and, for a
/// request, the address for the answer: 255 bytes each at most.
pub fn correlated(headers: FieldTable<'_>, correlation: &str, reply_to: Option<&str>) -> Vec<u8> {
    let mut properties = properties(headers, 1, CORRELATION_ID | if reply_to.is_some() { REPLY_TO } else { 0 });
    for text in [Some(correlation), reply_to].into_iter().flatten() {
        let text = &text.as_bytes()[..text.len().min(255)];
        properties.push(text.len() as u8);
        properties.extend_from_slice(text);
    }
    properties
}

/// Finds the address for the answer among a message's properties.
pub fn reply_to(properties: &[u8]) -> Result<Option<&[u8]>, Malformed> {
    let damaged = || Malformed::new("the properties of a message are damaged");
    let (flags, mut rest) = properties.split_first_chunk::<2>().ok_or_else(damaged)?;
    let flags = u16::from_be_bytes(*flags);
    if flags & REPLY_TO == 0 {
        return Ok(None);
    }
    let mut take = |bytes: usize| {
        let (taken, left) = rest.split_at_checked(bytes).ok_or_else(damaged)?;
        rest = left;
        Ok::<_, Malformed>(taken)
    };
    for (flag, length_bytes) in
        [(CONTENT_TYPE, 1), (CONTENT_ENCODING, 1), (HEADERS, 4), (DELIVERY_MODE, 0), (PRIORITY, 0), (CORRELATION_ID, 1)]
    {
        if flags & flag == 0 {
            continue;
        }
        let bytes = match length_bytes {
            0 => 1,
            sized => take(sized)?.iter().fold(0, |bytes, byte| bytes << 8 | usize::from(*byte)),
        };
        take(bytes)?;
    }
    let bytes = take(1)?;
    take(usize::from(bytes[0])).map(Some)
}

fn frame(out: &mut Vec<u8>, kind: u8, channel: u16, carried: impl FnOnce(&mut Vec<u8>)) {
    out.push(kind);
    out.extend_from_slice(&channel.to_be_bytes());
    put_sized(out, carried);
    out.push(END);
}

fn refused(bytes: &[u8]) -> Result<Option<(Frame<'_>, usize)>, Malformed> {
    let known = bytes.len().min(4);
    if bytes[..known] != PROTOCOL_HEADER[..known] {
        return Err(Malformed::new("no frame is of kind 65"));
    }
    let version = bytes.get(4..8).and_then(|version| version.try_into().ok());
    Ok(version.map(|version| (Frame::Refused(version), PROTOCOL_HEADER.len())))
}

fn header(channel: u16, carried: &[u8]) -> Result<Frame<'_>, Malformed> {
    let unfit = || Malformed::new("a content header is damaged");
    let (front, properties) = carried.split_first_chunk::<12>().ok_or_else(unfit)?;
    let [class1, class0, weight1, weight0, size @ ..] = *front;
    if [class1, class0] != BASIC.to_be_bytes() || [weight1, weight0] != [0, 0] || properties.len() < 2 {
        return Err(unfit());
    }
    let body_bytes = u64::from_be_bytes(size);
    if body_bytes > MAX_BODY_BYTES {
        return Err(Malformed::new(format!("a message of {body_bytes} bytes is longer than {MAX_BODY_BYTES} bytes")));
    }
    Ok(Frame::Header { channel, body_bytes, properties })
}

#[cfg(test)]
mod tests;
