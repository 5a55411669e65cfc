//! How long a message can have waited for the thread that receives it.

use pubmark_model::units::Ns;

/// Since when a thread that receives has been occupied with messages.
///
/// A library does not say whether a message was there before it was asked for.
/// One that it hands over at once may have been, and then it waited while the
/// thread saw to those before it; one for which it takes longer was not.
pub(crate) struct Occupied {
    /// A call that takes longer than this has waited, ns.
    waited_ns: Ns,
    /// From the end of one call to the beginning of the next, over the messages
    /// that came at once, ns.
    backlog_ns: Ns,
    asked_ns: Ns,
    taken_ns: Ns,
}

impl Occupied {
    /// A call of pubmark's own agent that takes longer than this has waited, ns.
    const WAITED: Ns = 5_000;

    /// Of an agent whose calls take up to `waited_ns` when a message is there.
    pub(crate) fn new(waited_ns: Ns) -> Occupied {
        Occupied { waited_ns, backlog_ns: 0, asked_ns: 0, taken_ns: 0 }
    }

    /// The thread asks for the next message.
    #[inline]
    pub(crate) fn listens(&mut self, at_ns: Ns) {
        self.asked_ns = at_ns;
        self.backlog_ns += at_ns.saturating_sub(self.taken_ns);
    }

    /// There was none.
    #[inline]
    pub(crate) fn idle(&mut self) {
        (self.backlog_ns, self.taken_ns) = (0, Ns::MAX);
    }

    /// It was handed over at `now`: since when it can have been there, had the
    /// thread had nothing else to do; 0 where that is not known.
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
