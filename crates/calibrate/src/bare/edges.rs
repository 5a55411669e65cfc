//! CPU time at the edges of a bare loop's window.

use super::plan::LoopResult;
use pubmark_load::clock;
use pubmark_model::units::Ns;

/// CPU time at the edges of the window.
#[derive(Default)]
pub(super) struct Edges {
    from: Option<(Ns, Ns)>,
    to: Option<(Ns, Ns)>,
}

impl Edges {
    /// Returns true if the instant `now` is the first in the window, and then reads the
    /// CPU time.
    pub(super) fn enter(&mut self, now: Ns, from_ns: Ns) -> bool {
        let enters = self.from.is_none() && now >= from_ns;
        if enters {
            self.from = Some((clock::now(), clock::process_cpu()));
        }
        enters
    }

    pub(super) fn leave(&mut self) {
        self.to = Some((clock::now(), clock::process_cpu()));
    }

    pub(super) fn done(&self) -> LoopResult {
        let (Some(from), Some(to)) = (self.from, self.to) else { return LoopResult::default() };
        LoopResult { wall_ns: to.0 - from.0, cpu_ns: to.1 - from.1, ..LoopResult::default() }
    }
}
