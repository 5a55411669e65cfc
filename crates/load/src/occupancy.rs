//! The time that a message can have waited for the thread that receives it.

use pubmark_model::units::Ns;

/// Tracks since when a receiving thread has been busy with messages.
///
/// A library does not report whether a message was there before it was asked for. If the
/// call returns at once, the message may have waited while the thread handled those
/// before it; if the call takes longer, it did not.
pub(crate) struct Occupied {
    /// A call that takes longer than this has waited for its message, ns.
    waited_ns: Ns,
    /// Time between the end of one call and the beginning of the next, summed over the
    /// messages that came at once, ns.
    backlog_ns: Ns,
    asked_ns: Ns,
    taken_ns: Ns,
}

impl Occupied {
    /// A receiving call of pubmark's own agent that takes longer than this has waited,
    /// ns.
    const WAITED: Ns = 5_000;

    /// Makes a tracker for an agent whose calls take up to `waited_ns` when a message is
    /// there.
    pub(crate) fn new(waited_ns: Ns) -> Occupied {
        Occupied { waited_ns, backlog_ns: 0, asked_ns: 0, taken_ns: 0 }
    }

    /// Notes that the thread asks for the next message.
    #[inline]
    pub(crate) fn listens(&mut self, at_ns: Ns) {
        self.asked_ns = at_ns;
        self.backlog_ns += at_ns.saturating_sub(self.taken_ns);
    }

    /// Notes that there was no message.
    #[inline]
    pub(crate) fn idle(&mut self) {
        (self.backlog_ns, self.taken_ns) = (0, Ns::MAX);
    }

    /// Notes a message handed over at `now`. Returns the earliest instant at which it can
    /// have been there, for a thread with nothing else to do; 0 if that is not known.
    #[inline]
    pub(crate) fn since(&mut self, now: Ns) -> Ns {
        if now.saturating_sub(self.asked_ns) > self.waited_ns {
            self.backlog_ns = 0;
        }
        self.taken_ns = now;
        if self.asked_ns == 0 { 0 } else { now.saturating_sub(self.backlog_ns).max(1) }
    }
}

impl Default for Occupied {
    fn default() -> Occupied {
        Occupied::new(Occupied::WAITED)
    }
}
