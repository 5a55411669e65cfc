//! Arrivals if the sizes of messages vary.

use super::{IncomingStreams, ReceiveRecorder};
use crate::window::Window;
use pubmark_model::units::Ns;

impl IncomingStreams {
    /// Records a message that arrived at `now`, if sizes vary.
    pub(super) fn arrived_sized(&mut self, recorder: &mut ReceiveRecorder, message: &[u8], now: Ns) {
        let has_times = recorder.note_reply(message);
        let Some(sized) = recorder.expect.sized.take() else { return };
        let header = sized.header(message).or_else(|| recorder.will(message));
        let slot = header.map_or(usize::MAX, |header| header.publisher.wrapping_sub(self.hears.start) as usize);
        let distinct = |all: &IncomingStreams| all.streams.get(slot).map_or(0, |stream| stream.distinct);
        let before = (recorder.arrived, distinct(self));
        let is_sound = || header.is_none_or(|header| sized.is_sound(&header, message, has_times));
        self.take(recorder, header, now, is_sound);
        recorder.expect.sized = Some(sized);
        let len = message.len() as u64;
        if recorder.arrived > before.0 {
            recorder.bytes.arrived += len;
        }
        let is_measured =
            |window: Window| header.is_some_and(|header| window.holds(header.ahead_by(-window.ahead_ns).intended_ns));
        if distinct(self) > before.1 && !recorder.expect.answers && recorder.window().is_some_and(is_measured) {
            recorder.bytes.delivered += len;
        }
    }
}
