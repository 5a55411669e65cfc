//! WebSocket (RFC 6455) over a non-blocking wire: the client's side, binary messages
//! only.
//!
//! pubmark implements the framing, because a general library allocates for each message.
//! The carried protocols are byte streams, which frames may cut anywhere: received frames
//! are removed in place in the event loop's buffer, and sent bytes are masked on their
//! way into one buffer. SHA-1 and randomness come from `ring`, which TLS depends on as
//! well.

use super::errors::{denied, foreign};
use super::wire::RawStream;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use ring::rand::{SecureRandom, SystemRandom};
use std::io::{self, ErrorKind};
use std::sync::Arc;

/// Text that a server appends to the client's key (section 1.3).
const GUID: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/// Maximum length of the answer to the opening handshake, bytes.
const MAX_HEAD: usize = 16 << 10;
/// Maximum payload of a sent frame, bytes.
const MAX_FRAME: usize = 64 << 10;
/// Maximum payload of a control frame, bytes (section 5.5).
const MAX_CONTROL: u64 = 125;
/// Bytes of an answer that an error shows.
const EXCERPT_BYTES: usize = 60;
/// Empty buffers that have grown beyond this are freed.
const KEEP_BYTES: usize = 4 << 10;

const CONTINUATION: u8 = 0;
const TEXT: u8 = 1;
const BINARY: u8 = 2;
const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;
/// The bit of a frame that ends its message.
const FIN: u8 = 0x80;
const MASKED: u8 = 0x80;

/// WebSocket settings that all connections share.
#[derive(Clone, Debug)]
pub struct WebSocketDial {
    /// Host and port, as written in the request.
    pub host: Arc<str>,
    /// The resource, with its slash.
    pub path: Arc<str>,
}

/// One connection's conversation.
pub struct WebSocket {
    path: Arc<str>,
    /// The client's key; `None` once the server has answered the handshake.
    key: Option<String>,
    /// The received part of the handshake's answer.
    head: Vec<u8>,
    frame: Frame,
    /// Bytes to be written next.
    out: Vec<u8>,
    /// Written bytes of `out`.
    written: usize,
    /// Frames that wait for the end of the handshake.
    early: Vec<u8>,
    /// State of the generator of masks.
    random: u64,
    /// The server's reason for closing, reported when everything before it has been read.
    closed: Option<String>,
    said_close: bool,
}

/// The frame that is arriving.
#[derive(Default)]
struct Frame {
    header: [u8; 10],
    header_bytes: usize,
    /// Missing bytes of the payload.
    left: u64,
    /// Payload of a control frame.
    control: Vec<u8>,
}

impl WebSocket {
    /// Makes a client whose request is the first to be sent.
    ///
    /// # Errors
    /// If the kernel has no random numbers.
    pub fn new(dial: &WebSocketDial) -> io::Result<WebSocket> {
        let mut random = [0; 24];
        SystemRandom::new().fill(&mut random).map_err(|_| io::Error::other("no random numbers are to be had"))?;
        let key = STANDARD.encode(&random[..16]);
        let mut seed = [0; 8];
        seed.copy_from_slice(&random[16..]);
        let request = format!(
            "GET {} HTTP/1.1\r\nHost: {}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: {key}\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: mqtt\r\n\r\n",
            dial.path, dial.host
        );
        Ok(WebSocket {
            path: dial.path.clone(),
            key: Some(key),
            head: Vec::new(),
            frame: Frame::default(),
            out: request.into_bytes(),
            written: 0,
            early: Vec::new(),
            random: u64::from_ne_bytes(seed) | 1,
            closed: None,
            said_close: false,
        })
    }

    /// Returns the bytes that wait for the wire.
    pub fn waiting(&self) -> &[u8] {
        &self.out[self.written..]
    }

    /// True if bytes wait for the wire.
    pub(super) fn is_behind(&self) -> bool {
        self.written < self.out.len()
    }

    /// Writes waiting bytes, as far as the wire takes them.
    pub(super) fn flush(&mut self, wire: &mut RawStream) -> io::Result<()> {
        wire.flush()?;
        while self.is_behind() {
            match wire.write(self.waiting()) {
                Ok(count) => self.written += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.written = 0;
        self.out.clear();
        if self.out.capacity() > KEEP_BYTES {
            self.out = Vec::new();
        }
        Ok(())
    }

    /// Frames bytes and writes them. Before the end of the handshake, they are only kept.
    pub(super) fn write(&mut self, wire: &mut RawStream, bytes: &[u8]) -> io::Result<usize> {
        let payload = &bytes[..bytes.len().min(MAX_FRAME)];
        if self.key.is_some() {
            if self.early.len() > MAX_FRAME {
                return Err(ErrorKind::WouldBlock.into());
            }
            let mask = self.mask();
            put_frame(&mut self.early, BINARY, payload, mask);
            return Ok(payload.len());
        }
        self.flush(wire)?;
        if self.is_behind() {
            return Err(ErrorKind::WouldBlock.into());
        }
        self.put(BINARY, payload);
        self.flush(wire)?;
        Ok(payload.len())
    }

    fn put(&mut self, opcode: u8, payload: &[u8]) {
        let mask = self.mask();
        put_frame(&mut self.out, opcode, payload, mask);
    }

    /// Returns the next mask. Masks protect proxies from web pages that choose their
    /// bytes (section 10.3). There is no web page here: a xorshift generator, seeded by
    /// the kernel for each connection, is unpredictable enough.
    fn mask(&mut self) -> [u8; 4] {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        ((self.random >> 32) as u32).to_ne_bytes()
    }

    /// Reads what is there, without its frames. Control frames are answered.
    pub(super) fn read(&mut self, wire: &mut RawStream, into: &mut [u8]) -> io::Result<(usize, bool)> {
        loop {
            if let Some(why) = self.closed.take() {
                return Err(io::Error::new(ErrorKind::ConnectionAborted, why));
            }
            let (mut count, more) = match wire.read(into) {
                Ok((0, _)) => return self.ended().map(|()| (0, false)),
                Err(error) if error.kind() == ErrorKind::ConnectionReset => {
                    self.ended()?;
                    return Err(error);
                }
                read => read?,
            };
            count = self.input(&mut into[..count])?;
            self.flush(wire)?;
            let more = more || self.closed.is_some();
            if count > 0 {
                return Ok((count, more));
            }
            if !more {
                return Err(ErrorKind::WouldBlock.into());
            }
        }
    }

    /// Handles arrived bytes: moves their payload to the beginning and returns its
    /// length. PendingAnswers wait for the wire.
    ///
    /// # Errors
    /// If the peer does not speak WebSocket, or violates it.
    pub fn input(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let from = if self.key.is_some() { self.take_head(bytes)? } else { 0 };
        self.unframe(bytes, from)
    }

    /// Checks whether the peer may close the connection now.
    fn ended(&self) -> io::Result<()> {
        if self.key.is_none() {
            return Ok(());
        }
        let text =
            "the server closed the connection during the WebSocket handshake; it may not speak WebSocket on this port";
        Err(io::Error::new(ErrorKind::ConnectionAborted, text))
    }

    /// Reads the handshake's answer; returns how many of `bytes` belong to it.
    fn take_head(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let before = self.head.len();
        self.head.extend_from_slice(bytes);
        let start = b"HTTP/1.";
        let known = self.head.len().min(start.len());
        if self.head[..known] != start[..known] {
            let begins = String::from_utf8_lossy(&self.head[..self.head.len().min(EXCERPT_BYTES)]).into_owned();
            return Err(foreign(format!(
                "the server does not speak WebSocket on this port: its answer begins with {begins:?}"
            )));
        }
        let Some(end) = self.head.windows(4).position(|four| four == b"\r\n\r\n") else {
            if self.head.len() > MAX_HEAD {
                return Err(foreign("the server's answer to the WebSocket handshake has no end"));
            }
            return Ok(bytes.len());
        };
        let head = std::mem::take(&mut self.head);
        let key = self.key.take().unwrap_or_default();
        check_head(&String::from_utf8_lossy(&head[..end]), &key, &self.path)?;
        self.out.append(&mut self.early);
        self.early = Vec::new();
        Ok(end + 4 - before)
    }

    /// Moves the payload in `bytes[from..]` to the beginning, and returns its length.
    fn unframe(&mut self, bytes: &mut [u8], mut from: usize) -> io::Result<usize> {
        let mut to = 0;
        while from < bytes.len() && self.closed.is_none() {
            if self.frame.left == 0 {
                self.frame.header[self.frame.header_bytes] = bytes[from];
                self.frame.header_bytes += 1;
                from += 1;
                if self.frame.begins()? && self.frame.left == 0 {
                    self.frame_over()?;
                }
                continue;
            }
            let count = (bytes.len() - from).min(usize::try_from(self.frame.left).unwrap_or(usize::MAX));
            if self.frame.is_control() {
                self.frame.control.extend_from_slice(&bytes[from..from + count]);
            } else {
                bytes.copy_within(from..from + count, to);
                to += count;
            }
            from += count;
            self.frame.left -= count as u64;
            if self.frame.left == 0 {
                self.frame_over()?;
            }
        }
        Ok(to)
    }

    /// Handles the end of a frame.
    fn frame_over(&mut self) -> io::Result<()> {
        let opcode = self.frame.opcode();
        let payload = std::mem::take(&mut self.frame.control);
        self.frame.header_bytes = 0;
        match opcode {
            CONTINUATION | BINARY | PONG => {}
            PING => self.put(PONG, &payload),
            CLOSE => {
                if !std::mem::replace(&mut self.said_close, true) {
                    self.put(CLOSE, payload.get(..2).unwrap_or_default());
                }
                self.closed = Some(close_reason(&payload));
            }
            TEXT => return Err(foreign("the server sends text over WebSocket, where bytes belong")),
            other => return Err(foreign(format!("the server sends a WebSocket frame of the unknown kind {other}"))),
        }
        Ok(())
    }

    /// Closes the writing side.
    pub(super) fn finish(&mut self, wire: &mut RawStream) -> io::Result<()> {
        if self.key.is_none() && !std::mem::replace(&mut self.said_close, true) {
            self.put(CLOSE, &1000u16.to_be_bytes());
        }
        self.flush(wire)
    }
}

impl Frame {
    fn opcode(&self) -> u8 {
        self.header[0] & 0x0f
    }

    fn is_control(&self) -> bool {
        self.opcode() >= CLOSE
    }

    /// Returns true once the header is complete and the payload begins.
    fn begins(&mut self) -> io::Result<bool> {
        let [first, second, rest @ ..] = &self.header;
        let (needed, left) = match (self.header_bytes, second & !MASKED) {
            (0 | 1, _) => return Ok(false),
            (_, 126) => (4, u64::from(u16::from_be_bytes([rest[0], rest[1]]))),
            (_, 127) => (10, u64::from_be_bytes(*rest)),
            (_, short) => (2, u64::from(short)),
        };
        if self.header_bytes < needed {
            return Ok(false);
        }
        let broken = |what: &str| Err(foreign(format!("the server breaks the WebSocket protocol: {what}")));
        if first & 0x70 != 0 {
            return broken("a frame with an extension that was not agreed on");
        }
        if second & MASKED != 0 {
            return broken("a server's frame that is masked");
        }
        if self.is_control() && (left > MAX_CONTROL || first & FIN == 0) {
            return broken("a control frame that is too long, or in parts");
        }
        self.left = left;
        Ok(true)
    }
}

/// Appends a frame that is a complete message.
fn put_frame(out: &mut Vec<u8>, opcode: u8, payload: &[u8], mask: [u8; 4]) {
    out.reserve(payload.len() + 14);
    out.push(FIN | opcode);
    match payload.len() {
        short @ 0..=125 => out.push(MASKED | short as u8),
        middle @ 126..=0xffff => {
            out.push(MASKED | 126);
            out.extend_from_slice(&(middle as u16).to_be_bytes());
        }
        long => {
            out.push(MASKED | 127);
            out.extend_from_slice(&(long as u64).to_be_bytes());
        }
    }
    out.extend_from_slice(&mask);
    let start = out.len();
    out.extend_from_slice(payload);
    // Four bytes at once, so that the compiler masks whole vectors.
    let (words, rest) = out[start..].as_chunks_mut();
    words.iter_mut().for_each(|word| *word = (u32::from_ne_bytes(*word) ^ u32::from_ne_bytes(mask)).to_ne_bytes());
    rest.iter_mut().zip(mask).for_each(|(byte, with)| *byte ^= with);
}

/// Checks that the server agrees to speak WebSocket.
fn check_head(head: &str, key: &str, path: &str) -> io::Result<()> {
    let mut lines = head.split("\r\n");
    let status = lines.next().unwrap_or_default();
    let code = status.split(' ').nth(1).unwrap_or_default();
    if code != "101" {
        let text = format!("the server answers the WebSocket request for {path} with `{status}`");
        return Err(match code {
            "429" | "500" | "502" | "503" | "504" => io::Error::new(ErrorKind::ConnectionRefused, text),
            _ => denied(format!("{text}: check the path at the end of the endpoint")),
        });
    }
    let header = |name: &str| {
        let mut headers = head.split("\r\n").skip(1).filter_map(|line| line.split_once(':'));
        headers.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    };
    let expected = STANDARD.encode(digest(&SHA1_FOR_LEGACY_USE_ONLY, format!("{key}{GUID}").as_bytes()));
    if header("Sec-WebSocket-Accept") != Some(expected.as_str()) {
        return Err(foreign("the server's answer to the WebSocket handshake does not fit the question"));
    }
    match header("Sec-WebSocket-Protocol") {
        // Some servers omit it; their next bytes show what they speak.
        None | Some("mqtt") => Ok(()),
        Some(other) => Err(denied(format!("the server wants to speak `{other}` over WebSocket, not mqtt"))),
    }
}

/// Describes a server's close frame.
fn close_reason(payload: &[u8]) -> String {
    match payload {
        [high, low, reason @ ..] => {
            let code = u16::from_be_bytes([*high, *low]);
            let reason = String::from_utf8_lossy(reason);
            let reason = if reason.is_empty() { String::new() } else { format!(", {reason}") };
            format!("the server closed the WebSocket: code {code}{reason}")
        }
        _ => "the server closed the WebSocket".into(),
    }
}

#[cfg(test)]
mod tests;
