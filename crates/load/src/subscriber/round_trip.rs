//! The parts of a round trip, and answers that are late.

use super::ReceiveRecorder;
use crate::reply_times::ReplyTimes;
use crate::window::Window;
use pubmark_model::header::Header;
use pubmark_model::units::Ns;

impl ReceiveRecorder {
    /// Splits a round trip: returns the time of the request, of the answer and of the replier, ns; all or none.
    #[inline]
    pub(super) fn legs(&mut self, header: &Header, now: Ns) -> (Option<Ns>, Option<Ns>, Option<Ns>) {
        let legs = |window: Window, reply: ReplyTimes| {
            let [arrived_ns, sent_ns] =
                [reply.arrived_ns, reply.sent_ns].map(|at_ns| at_ns.saturating_add_signed(-window.ahead_ns));
            let request_ns = arrived_ns.checked_sub(header.sent_ns?)?;
            Some((request_ns, now.checked_sub(sent_ns)?, sent_ns.checked_sub(arrived_ns)?))
        };
        let reply = self.reply_times.take();
        let legs = reply.zip(self.window()).and_then(|(reply, window)| legs(window, reply));
        (legs.map(|legs| legs.0), legs.map(|legs| legs.1), legs.map(|legs| legs.2))
    }

    /// Keeps the replier's times of an arrival until it is counted; returns whether it has them, if it should.
    #[inline]
    pub(super) fn note_reply(&mut self, message: &[u8]) -> bool {
        let Some(at) = self.expect.reply_times_at else { return true };
        self.reply_times = ReplyTimes::read(message, at);
        self.reply_times.is_some()
    }

    /// Counts an answer to a message of the window if it is late.
    #[inline]
    pub(super) fn note_late_answer(&mut self, header: &Header, now: Ns) {
        if let (Some(late), Some(sent_ns)) = (&mut self.counts.late_answers, header.sent_ns) {
            *late += u64::from(now.saturating_sub(sent_ns) > self.expect.answer_ns);
        }
    }
}
