//! Messages of Zenoh's transport layer, and the batches in which they travel.

use super::codes::*;
use super::network::{NetworkItem, skip_administration};
use super::read::{ExtensionBody, Reader};
use crate::Malformed;

/// Part that a node plays in the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeKind {
    /// A router.
    Router,
    /// A peer.
    Peer,
    /// A client.
    Client,
}

impl NodeKind {
    fn of(code: u8) -> Result<NodeKind, Malformed> {
        [NodeKind::Router, NodeKind::Peer, NodeKind::Client]
            .get(usize::from(code))
            .copied()
            .ok_or_else(|| Malformed::new(format!("a node of kind {code} is none of the protocol's")))
    }
}

/// Terms that both sides exchange first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InitTerms<'a> {
    /// Version of the protocol.
    pub version: u8,
    /// Kind of the sender.
    pub kind: NodeKind,
    /// Identifier of the sender, 1 to 16 bytes.
    pub id: &'a [u8],
    /// Resolution of sequence numbers (the two lowest bits) and of requests.
    pub resolution: u8,
    /// Bytes of a batch at most, with its length.
    pub batch_bytes: u16,
    /// Version of the additions since 1.0.
    pub patch: u8,
}

/// A message of the transport, or one of the network that a frame carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransportItem<'a> {
    /// Asks for a session.
    InitSyn(InitTerms<'a>),
    /// Accepts the terms, or lowers them. The bytes are a cookie, which the client returns.
    InitAck(InitTerms<'a>, &'a [u8]),
    /// Opens the session.
    OpenSyn {
        /// Time without a message after which the sender is taken for dead, ms.
        lease_ms: u64,
        /// Number of the sender's first frame.
        first: u32,
        /// The router's cookie.
        cookie: &'a [u8],
    },
    /// The session is open.
    OpenAck {
        /// As in `OpenSyn`.
        lease_ms: u64,
        /// As in `OpenSyn`.
        first: u32,
    },
    /// Ends the session, or refuses it, with a [reason](close_reason).
    Close(u8),
    /// Shows that the sender is alive.
    KeepAlive,
    /// Begins a frame: network messages follow.
    Frame {
        /// Channel: reliable or best effort.
        reliable: bool,
        /// Number in its channel.
        number: u32,
    },
    /// A network message of the last frame.
    Network(NetworkItem<'a>),
    /// A part of a network message.
    Fragment {
        /// Channel: reliable or best effort.
        reliable: bool,
        /// Number in its channel, shared with frames.
        number: u32,
        /// True if it is marked as the first fragment of its message.
        first: bool,
        /// True if another fragment follows.
        more: bool,
        /// True if the rest of the message was dropped.
        dropped: bool,
        /// The bytes.
        part: &'a [u8],
    },
    /// A message for the administration of the network, which clients ignore.
    Administration,
}

/// Returns the meaning of a code in a Close.
pub fn close_reason(code: u8) -> &'static str {
    match code {
        0 => "generic",
        1 => "unsupported",
        2 => "invalid",
        3 => "maximum of sessions",
        4 => "maximum of links",
        5 => "expired",
        6 => "unresponsive",
        7 => "connection to itself",
        _ => "unknown",
    }
}

/// Codes of a Close for limits of a router.
pub const LIMIT_REASONS: std::ops::RangeInclusive<u8> = 3..=4;
/// Code of a Close for invalid messages.
pub const INVALID_REASON: u8 = 2;

/// The messages of one batch.
#[derive(Clone, Debug)]
pub struct BatchReader<'a> {
    rest: Reader<'a>,
    in_frame: bool,
}

impl<'a> BatchReader<'a> {
    /// Finds the batch at the front of `bytes`. Returns it with its length; `None` if more bytes are needed. A peer of
    /// another protocol is detected by its third byte, because its batch may never end.
    #[inline]
    pub fn decode(bytes: &'a [u8]) -> Result<Option<(Self, usize)>, Malformed> {
        let Some((length, rest)) = bytes.split_first_chunk::<LENGTH_BYTES>() else { return Ok(None) };
        let length = usize::from(u16::from_le_bytes(*length));
        if length == 0 {
            return Err(Malformed::new("a batch is empty"));
        }
        if let Some(first) = rest.first().filter(|first| *first & NUMBER_MASK > FRAGMENT) {
            return Err(Malformed::new(format!("a batch begins with 0x{first:02X}, which is no message")));
        }
        let batch = rest.get(..length).map(|batch| BatchReader { rest: Reader::new(batch), in_frame: false });
        Ok(batch.map(|batch| (batch, LENGTH_BYTES + length)))
    }

    /// Returns the length of the batch at the front of `bytes` if its length has arrived; otherwise the number of
    /// bytes so far.
    pub fn announced(bytes: &[u8]) -> u64 {
        let length = bytes.first_chunk::<LENGTH_BYTES>();
        length.map_or(bytes.len() as u64, |length| LENGTH_BYTES as u64 + u64::from(u16::from_le_bytes(*length)))
    }

    /// Reads the next message; `None` at the end of the batch.
    #[inline]
    pub fn next_item(&mut self) -> Result<Option<TransportItem<'a>>, Malformed> {
        let Some(header) = self.rest.peek() else { return Ok(None) };
        if header & NUMBER_MASK > FRAGMENT {
            return match self.in_frame {
                true => NetworkItem::read(&mut self.rest).map(|item| Some(TransportItem::Network(item))),
                false => Err(Malformed::new(format!("message 0x{header:02X} is outside of a frame"))),
            };
        }
        let item = transport_item(&mut self.rest)?;
        self.in_frame = matches!(item, TransportItem::Frame { .. });
        Ok(Some(item))
    }
}

fn transport_item<'a>(rest: &mut Reader<'a>) -> Result<TransportItem<'a>, Malformed> {
    let header = rest.byte()?;
    let extended = header & EXTENSIONS != 0;
    match header & NUMBER_MASK {
        FRAME => {
            let number = rest.small()?;
            rest.extensions(extended, "a frame", |extension, _| extension == PRIORITY_EXTENSION)?;
            Ok(TransportItem::Frame { reliable: header & RELIABLE != 0, number })
        }
        FRAGMENT => {
            let number = rest.small()?;
            let (mut first, mut dropped) = (false, false);
            rest.extensions(extended, "a fragment", |extension, _| {
                first |= extension == FIRST_EXTENSION;
                dropped |= extension == DROP_EXTENSION;
                extension == PRIORITY_EXTENSION
            })?;
            let (reliable, more) = (header & RELIABLE != 0, header & FRAGMENTS_FOLLOW != 0);
            Ok(TransportItem::Fragment { reliable, number, first, more, dropped, part: rest.rest() })
        }
        KEEP_ALIVE => {
            rest.extensions(extended, "a KeepAlive", |_, _| false)?;
            Ok(TransportItem::KeepAlive)
        }
        INIT => init(rest, header),
        OPEN => open(rest, header),
        CLOSE => {
            let reason = rest.byte()?;
            rest.extensions(extended, "a Close", |_, _| false)?;
            Ok(TransportItem::Close(reason))
        }
        OAM => {
            skip_administration(rest, header)?;
            Ok(TransportItem::Administration)
        }
        _ => Err(Malformed::new(format!("message 0x{header:02X} is none of the transport"))),
    }
}

fn init<'a>(rest: &mut Reader<'a>, header: u8) -> Result<TransportItem<'a>, Malformed> {
    let version = rest.byte()?;
    let kind_and_length = rest.byte()?;
    let kind = NodeKind::of(kind_and_length & 0b11)?;
    let id = rest.take(1 + usize::from(kind_and_length >> 4))?;
    let (mut resolution, mut batch_bytes) = (DEFAULT_RESOLUTION, MAX_BATCH_BYTES);
    if header & SIZES != 0 {
        resolution = rest.byte()? & 0x3F;
        batch_bytes = u16::from_le_bytes([rest.byte()?, rest.byte()?]);
    }
    let cookie = if header & ACK != 0 { Some(rest.bytes()?) } else { None };
    let mut patch = 0;
    rest.extensions(header & EXTENSIONS != 0, "an Init", |extension, body| {
        if let (PATCH_EXTENSION, ExtensionBody::Number(number)) = (extension, body) {
            patch = number as u8;
        }
        false
    })?;
    let terms = InitTerms { version, kind, id, resolution, batch_bytes, patch };
    Ok(cookie.map_or(TransportItem::InitSyn(terms), |cookie| TransportItem::InitAck(terms, cookie)))
}

fn open<'a>(rest: &mut Reader<'a>, header: u8) -> Result<TransportItem<'a>, Malformed> {
    let lease = rest.number()?;
    let lease_ms = if header & SECONDS != 0 { lease.saturating_mul(1_000) } else { lease };
    let first = rest.small()?;
    let item = match header & ACK != 0 {
        true => TransportItem::OpenAck { lease_ms, first },
        false => TransportItem::OpenSyn { lease_ms, first, cookie: rest.bytes()? },
    };
    rest.extensions(header & EXTENSIONS != 0, "an Open", |_, _| false)?;
    Ok(item)
}
