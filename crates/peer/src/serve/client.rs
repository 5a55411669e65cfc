//! One connection of the peer: socket, conversation, and buffers.

use crate::speech::Speech;
use pubmark_model::units::Ns;
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;

/// Size beyond which buffers are freed when they are empty.
const KEEP: usize = 64 << 10;
/// The longest item that a client may send, bytes.
const LONGEST_BYTES: usize = 64 << 20;

/// A connection.
pub struct PeerConnection<S> {
    pub stream: TcpStream,
    /// Place of the member at whose port it was accepted.
    pub place: usize,
    pub speech: S,
    /// Input not parsed yet.
    pub partial: Vec<u8>,
    /// Output; `written` counts the bytes already written.
    pub out: Vec<u8>,
    written: usize,
    /// Instant before which nothing is written, ns.
    pub mute_until: Ns,
    /// True if it is on the list of connections with output.
    pub dirty: bool,
    /// True if it ends when all is written; its input is then ignored.
    pub closing: bool,
    /// Its number in the order of subscriptions, once it has one.
    pub subscriber: Option<u32>,
}

impl<S: Speech> PeerConnection<S> {
    pub fn new(stream: TcpStream, speech: S, mute_until: Ns, place: usize) -> PeerConnection<S> {
        PeerConnection {
            stream,
            place,
            speech,
            partial: Vec::new(),
            out: Vec::new(),
            written: 0,
            mute_until,
            dirty: false,
            closing: false,
            subscriber: None,
        }
    }

    /// Returns the bytes that wait for the kernel to take them.
    pub fn unwritten(&self) -> usize {
        self.out.len() - self.written
    }

    /// Returns the unwritten bytes and those that wait for the client's acknowledgements.
    pub fn pending(&self) -> usize {
        self.unwritten() + self.speech.kept_bytes()
    }

    /// Writes as much as the kernel takes.
    pub fn flush(&mut self) -> io::Result<()> {
        while self.written < self.out.len() {
            match self.stream.write(&self.out[self.written..]) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => self.written += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    // A subscriber that is always behind would keep its whole output.
                    if self.written > self.out.len() / 2 {
                        self.out.drain(..self.written);
                        self.written = 0;
                    }
                    return Ok(());
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.written = 0;
        if self.out.capacity() > KEEP {
            self.out = Vec::new()
        } else {
            self.out.clear()
        }
        Ok(())
    }

    /// Reads once. Returns `None` if no input is available; 0 at the end.
    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        loop {
            match self.stream.read(buffer) {
                Ok(count) => return Ok(Some(count)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Passes new bytes to the conversation.
    pub fn hear(&mut self, bytes: &[u8], hub: &mut crate::speech::Hub<'_>) -> Result<(), pubmark_wire::Malformed> {
        if self.partial.is_empty() {
            let done = self.speech.input(bytes, &mut self.out, hub)?;
            self.partial.extend_from_slice(&bytes[done..]);
            return Ok(());
        }
        self.partial.extend_from_slice(bytes);
        let done = self.speech.input(&self.partial, &mut self.out, hub)?;
        self.partial.drain(..done);
        if self.partial.len() > LONGEST_BYTES {
            return Err(pubmark_wire::Malformed::new(format!("a packet of more than {LONGEST_BYTES} bytes")));
        }
        if self.partial.is_empty() && self.partial.capacity() > KEEP {
            self.partial = Vec::new();
        }
        Ok(())
    }
}
