//! Writing of Zenoh's messages. Each one is a batch of its own.

use super::codes::{
    ACK, CLOSE, DEFAULT_RESOLUTION, DROP_EXTENSION, EXTENSIONS, FIRST_EXTENSION, FRAGMENT, FRAGMENTS_FOLLOW, FRAME,
    INIT, KEEP_ALIVE, LENGTH_BYTES, MAX_BATCH_BYTES, MAX_ID_BYTES, OAM, OPEN, PATCH_EXTENSION, PRIORITY_EXTENSION,
    RELIABLE, SIZES, WHOLE_SESSION,
};
use super::network::{KeyExpr, NetworkItem, PUSH, PUT};
use super::read::{Reader, put_bytes, put_number};
use super::transport::{InitTerms, TransportItem};

/// Priority of data, the default; the other classes need a session with priorities.
pub const DATA_PRIORITY: u8 = 5;
/// Flag beside the priority: the message waits for room and is not dropped.
pub const DO_NOT_DROP: u8 = 0x08;
/// Flag beside the priority: the message is not gathered with others into a batch.
pub const EXPRESS: u8 = 0x10;

/// One side's channel, reliable or best effort, which numbers its frames and fragments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameChannel {
    reliable: bool,
    pub(super) next: u32,
    mask: u32,
    /// Place at which the last frame began in the buffer that it was appended to.
    begin: u32,
}

impl FrameChannel {
    /// Returns a channel whose first number is 0, with numbers of the resolution that both sides agreed on.
    pub fn new(reliable: bool, resolution: u8) -> Self {
        let mask = match resolution & 0b11 {
            0 => u32::from(u8::MAX) >> 1,
            1 => u32::from(u16::MAX) >> 2,
            _ => u32::MAX >> 4,
        };
        FrameChannel { reliable, next: 0, mask, begin: 0 }
    }

    /// Returns the next number.
    #[inline]
    fn take(&mut self) -> u32 {
        let number = self.next;
        self.next = number.wrapping_add(1) & self.mask;
        number
    }

    /// Begins a frame in a batch of its own, and returns where.
    #[inline]
    fn begin_frame(&mut self, out: &mut Vec<u8>) -> usize {
        let begin = out.len();
        self.begin = begin as u32;
        out.extend_from_slice(&[0; LENGTH_BYTES]);
        put_numbered(out, FRAME, self.reliable, self.take());
        begin
    }

    /// Returns where the batch begins that `out` ends in, if this is the last frame of the channel. Its number shows
    /// it.
    #[inline]
    fn open_frame(&self, out: &[u8]) -> Option<usize> {
        let begin = self.begin as usize;
        let (length, frame) = out.get(begin..)?.split_first_chunk::<LENGTH_BYTES>()?;
        let mut frame_reader = Reader::new(frame);
        let is_frame = frame_reader.byte().ok()? == FRAME | if self.reliable { RELIABLE } else { 0 };
        let is_last = frame_reader.number().ok()? == u64::from(self.next.wrapping_sub(1) & self.mask);
        (is_frame && is_last && usize::from(u16::from_le_bytes(*length)) == frame.len()).then_some(begin)
    }

    /// Appends a published message. It joins the last frame if `out` ends with that and the message is not express;
    /// otherwise it is a frame of its own, or fragments if it is longer than a batch of `batch_bytes`, which includes
    /// its length. `qos` is the
    /// priority with its flags. A batch must have room for the key and 64 bytes more.
    #[inline]
    pub fn put_push(&mut self, out: &mut Vec<u8>, key: KeyExpr<'_>, qos: u8, payload: &[u8], batch_bytes: u16) {
        /// Bytes of the message beside key and payload at most, with the frame's header.
        const BESIDE: usize = 24;
        let longest = usize::from(batch_bytes).saturating_sub(LENGTH_BYTES);
        let bytes = BESIDE + key.suffix.len() + payload.len();
        let open = if qos & EXPRESS == 0 { self.open_frame(out) } else { None };
        let open = open.filter(|begin| out.len() - begin + bytes <= longest);
        let begin = match open {
            Some(begin) => begin,
            None if bytes <= longest => self.begin_frame(out),
            None => return self.put_fragments(out, key, qos, payload, longest),
        };
        put_push_head(out, &key, qos, payload.len());
        out.extend_from_slice(payload);
        end_batch(out, begin);
    }

    fn put_fragments(&mut self, out: &mut Vec<u8>, key: KeyExpr<'_>, qos: u8, payload: &[u8], longest: usize) {
        let (mut begin, mut rest) = (out.len(), payload);
        out.extend_from_slice(&[0; LENGTH_BYTES]);
        put_numbered(out, FRAGMENT | FRAGMENTS_FOLLOW | EXTENSIONS, self.reliable, self.take());
        out.push(FIRST_EXTENSION);
        put_push_head(out, &key, qos, payload.len());
        loop {
            let room = (begin + LENGTH_BYTES + longest).saturating_sub(out.len()).max(1);
            let (part, after) = rest.split_at(room.min(rest.len()));
            out.extend_from_slice(part);
            end_batch(out, begin);
            if after.is_empty() {
                // The last fragment is known only now.
                out[begin + LENGTH_BYTES] &= !FRAGMENTS_FOLLOW;
                return;
            }
            (begin, rest) = (out.len(), after);
            out.extend_from_slice(&[0; LENGTH_BYTES]);
            put_numbered(out, FRAGMENT | FRAGMENTS_FOLLOW, self.reliable, self.take());
        }
    }

    /// Appends a message as a frame. A put must fit into a batch.
    pub fn put_frame(&mut self, item: &NetworkItem<'_>, out: &mut Vec<u8>) {
        let begin = self.begin_frame(out);
        item.put(out);
        end_batch(out, begin);
    }
}

/// Appends a batch whose content `write` appends. The caller must ensure that it fits.
#[inline]
fn put_batch(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let begin = out.len();
    out.extend_from_slice(&[0; LENGTH_BYTES]);
    write(out);
    end_batch(out, begin);
}

/// Writes the length of the batch that begins at `begin` and ends here.
#[inline]
fn end_batch(out: &mut [u8], begin: usize) {
    let length = out.len() - begin - LENGTH_BYTES;
    debug_assert!(length <= usize::from(MAX_BATCH_BYTES), "a batch of {length} bytes");
    out[begin..begin + LENGTH_BYTES].copy_from_slice(&(length as u16).to_le_bytes());
}

impl TransportItem<'_> {
    /// Appends the message as a batch; a network message in a frame of the reliable channel with number 0 (use
    /// [`FrameChannel::put_frame`] for others).
    pub fn put(&self, out: &mut Vec<u8>) {
        put_batch(out, |out| match self {
            TransportItem::InitSyn(terms) => put_init(out, terms, None),
            TransportItem::InitAck(terms, cookie) => put_init(out, terms, Some(cookie)),
            TransportItem::OpenSyn { lease_ms, first, cookie } => {
                out.push(OPEN);
                put_number(out, *lease_ms);
                put_number(out, u64::from(*first));
                put_bytes(out, cookie);
            }
            TransportItem::OpenAck { lease_ms, first } => {
                out.push(OPEN | ACK);
                put_number(out, *lease_ms);
                put_number(out, u64::from(*first));
            }
            TransportItem::Close(reason) => out.extend_from_slice(&[CLOSE | WHOLE_SESSION, *reason]),
            TransportItem::KeepAlive => out.push(KEEP_ALIVE),
            TransportItem::Frame { reliable, number } => put_numbered(out, FRAME, *reliable, *number),
            TransportItem::Network(item) => {
                put_numbered(out, FRAME, true, 0);
                item.put(out);
            }
            TransportItem::Fragment { reliable, number, first, more, dropped, part } => {
                let more = if *more { FRAGMENTS_FOLLOW } else { 0 };
                let marks = [(*first, FIRST_EXTENSION), (*dropped, DROP_EXTENSION)];
                let mut marks = marks.into_iter().filter_map(|(set, mark)| set.then_some(mark)).peekable();
                let extended = if marks.peek().is_some() { EXTENSIONS } else { 0 };
                put_numbered(out, FRAGMENT | more | extended, *reliable, *number);
                while let Some(mark) = marks.next() {
                    out.push(mark | if marks.peek().is_some() { EXTENSIONS } else { 0 });
                }
                out.extend_from_slice(part);
            }
            TransportItem::Administration => out.extend_from_slice(&[OAM, 0]),
        });
    }
}

fn put_numbered(out: &mut Vec<u8>, header: u8, reliable: bool, number: u32) {
    out.push(header | if reliable { RELIABLE } else { 0 });
    put_number(out, u64::from(number));
}

/// Appends an Init. An identifier that is too long is cut off.
fn put_init(out: &mut Vec<u8>, terms: &InitTerms<'_>, cookie: Option<&[u8]>) {
    let id = &terms.id[..terms.id.len().min(MAX_ID_BYTES)];
    let sizes = (terms.resolution, terms.batch_bytes) != (DEFAULT_RESOLUTION, MAX_BATCH_BYTES);
    let flag = |set: bool, flag: u8| if set { flag } else { 0 };
    out.push(INIT | flag(cookie.is_some(), ACK) | flag(sizes, SIZES) | flag(terms.patch > 0, EXTENSIONS));
    out.extend_from_slice(&[terms.version, (id.len().saturating_sub(1) as u8) << 4 | terms.kind as u8]);
    out.extend_from_slice(id);
    if sizes {
        out.push(terms.resolution);
        out.extend_from_slice(&terms.batch_bytes.to_le_bytes());
    }
    if let Some(cookie) = cookie {
        put_bytes(out, cookie);
    }
    if terms.patch > 0 {
        out.push(PATCH_EXTENSION);
        put_number(out, u64::from(terms.patch));
    }
}

#[inline]
fn put_push_head(out: &mut Vec<u8>, key: &KeyExpr<'_>, qos: u8, payload_bytes: usize) {
    let extended = if qos == DATA_PRIORITY { 0 } else { EXTENSIONS };
    out.push(PUSH | key.flags() | extended);
    key.put(out);
    if extended != 0 {
        out.extend_from_slice(&[PRIORITY_EXTENSION, qos]);
    }
    out.push(PUT);
    put_number(out, payload_bytes as u64);
}
