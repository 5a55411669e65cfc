//! Gathers messages of one publisher for one write, as fast as possible: without a
//! socket, and with the clock passed in.

use crate::publisher::{InFlight, Next, Outgoing, SendRecorder};
use crate::session::Session;
use crate::window::Window;
use pubmark_model::header;
use pubmark_model::units::Ns;

/// Bytes copied at once if the beginning of a frame fits into them: this many stay in
/// registers.
const FRONT_BYTES: usize = 64;

/// Limits of gathering.
#[derive(Clone, Copy, Debug)]
pub struct Measure {
    /// Bytes after which no further message begins.
    pub bytes: usize,
    /// Messages between two readings of the clock, at least 1.
    pub stride: u32,
    /// Instant at which a publisher gives up on what is due, ns.
    pub give_up_ns: Option<Ns>,
}

/// The reason why gathering ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GatherEnd {
    /// There is enough, or nothing more is due now.
    Enough,
    /// The session takes no more until the server answers.
    Refused,
    /// The publisher has sent everything that it will send.
    Over,
}

/// Frames to be written next, one after another.
///
/// If frames differ only at their beginning, they stay in place from one write to the
/// next, and each gets a new beginning: the body of a message, which is always the same,
/// is not copied again.
#[derive(Default)]
pub struct Frames {
    bytes: Vec<u8>,
    /// Number of bytes to be written.
    used: usize,
    /// The template of the frames in `bytes`, which differ only at their beginning; empty if
    /// they differ in more.
    model: Vec<u8>,
    /// Offset of the message in the template.
    payload_at: usize,
}

impl Frames {
    /// Returns the bytes to be written.
    pub fn ready(&self) -> &[u8] {
        &self.bytes[..self.used]
    }

    /// Appends `count` copies of the template with `message` as the beginning of the
    /// message, numbered from `first` on. A message whose header has a checksum is
    /// appended alone.
    #[inline]
    fn append(&mut self, message: &[u8], count: u32, first: u32) {
        let body_at = message.len();
        self.model[self.payload_at..self.payload_at + body_at].copy_from_slice(message);
        let end = self.used + self.model.len() * count as usize;
        while self.bytes.len() < end {
            self.bytes.extend_from_slice(&self.model);
        }
        let frames = self.bytes[self.used..end].chunks_exact_mut(self.model.len());
        self.used = end;
        match self.model.first_chunk::<FRONT_BYTES>().filter(|_| self.payload_at + body_at <= FRONT_BYTES) {
            Some(front) => stamp(frames, front, self.payload_at, first),
            None => stamp(frames, &self.model[..self.payload_at + body_at], self.payload_at, first),
        }
    }
}

/// Writes `front` to the beginning of each frame, and a number into its message.
#[inline(always)]
fn stamp<'a>(frames: impl Iterator<Item = &'a mut [u8]>, front: &[u8], payload_at: usize, first: u32) {
    for (frame, sequence) in frames.zip(first..) {
        frame[..front.len()].copy_from_slice(front);
        header::renumber(&mut frame[payload_at..], sequence);
    }
}

/// A publisher, and the destination of its messages.
pub struct Gathering<'a> {
    pub client: &'a mut Outgoing,
    pub recorder: &'a mut SendRecorder,
    pub flight: Option<&'a mut InFlight>,
    pub window: &'a Window,
    /// Buffer in which a message is made, with its body in place.
    pub message: &'a mut [u8],
    pub frames: &'a mut Frames,
}

impl Gathering<'_> {
    /// Gathers from the instant `now` on, and leaves the last instant there.
    ///
    /// If all frames of the publisher are alike, with `tail_bytes` after the message,
    /// those between two readings of the clock differ only in their sequence: they are
    /// copied from one template, numbered, and recorded together.
    pub fn run<S: Session>(
        mut self,
        (session, settings): (&mut S, &S::Settings),
        tail_bytes: Option<usize>,
        measure: Measure,
        now: &mut Ns,
        mut clock: impl FnMut() -> Ns,
    ) -> GatherEnd {
        let mut since_clock = 0;
        self.frames.used = 0;
        while self.frames.used < measure.bytes {
            match self.client.next(self.window, measure.give_up_ns, *now) {
                Next::Send => {}
                Next::Wait(_) => break,
                Next::Done => return GatherEnd::Over,
            }
            let (header, message) = self.client.write(*now, self.message);
            let len = message.len();
            let mut count = 1;
            if let Some(tail_bytes) = tail_bytes {
                if self.frames.used == 0 && !self.model(session, settings, header.sequence, tail_bytes) {
                    return GatherEnd::Refused;
                }
                let wanted = (measure.bytes - self.frames.used).div_ceil(self.frames.model.len());
                count = (measure.stride - since_clock).min(wanted.try_into().unwrap_or(u32::MAX));
                count = count.min(self.client.at_once(self.window));
                self.frames.append(&self.message[..self.client.front_len(self.message.len())], count, header.sequence);
            } else {
                let Frames { bytes, used, model, .. } = &mut *self.frames;
                model.clear();
                bytes.truncate(*used);
                if !session.publish(settings, &self.message[..len], header.sequence, bytes) {
                    return GatherEnd::Refused;
                }
                *used = bytes.len();
            }
            if let Some(flight) = &mut self.flight {
                flight.sent(header);
            }
            self.client.accepted_together(self.recorder, count, *now, *now);
            since_clock += count;
            if since_clock >= measure.stride {
                (since_clock, *now) = (0, clock());
            }
        }
        GatherEnd::Enough
    }

    /// Has the session make the frame that serves as template for this write.
    fn model<S: Session>(&mut self, session: &mut S, settings: &S::Settings, sequence: u32, tail_bytes: usize) -> bool {
        let Frames { bytes, model, payload_at, .. } = &mut *self.frames;
        let before = (model.len(), *payload_at);
        model.clear();
        if !session.publish(settings, self.message, sequence, model) {
            return false;
        }
        *payload_at = model.len() - tail_bytes - self.message.len();
        if before != (model.len(), *payload_at) {
            bytes.clear();
        }
        true
    }
}

#[cfg(test)]
mod tests;
