//! Times and counts of sends.

use crate::refusals::RefusalTally;
use crate::window::{Slicer, Window};
use pubmark_model::counts::RefusalCount;
use pubmark_model::protocol::PacingFigures;
use pubmark_model::role::Role;
use pubmark_model::times::TimeFigures;
use pubmark_model::units::Ns;
use pubmark_model::workload::Workload;
use pubmark_stats::Histogram;

/// Times and counts of sends, recorded by all publishers of one thread.
pub struct SendRecorder {
    pub(super) slicer: Slicer,
    pub(super) first_sent_ns: Option<Ns>,
    pub(super) last_sent_ns: Ns,
    pub(super) acked: u64,
    pub(super) refusals: RefusalTally,
    pub(super) sent_slices: Vec<u64>,
    pub(super) sent_before: u64,
    pub(super) times: TimeFigures<Option<Histogram>>,
    /// Messages sent, including the warm-up.
    pub(super) sent: u64,
    /// Greatest generator delay since it was last taken, ns.
    pub(super) own_lag_max_ns: Option<Ns>,
    pub(super) pacing: Option<PacingFigures>,
}

impl SendRecorder {
    /// Makes an empty recorder for a run with this window.
    pub fn new(workload: &Workload, window: Window) -> SendRecorder {
        SendRecorder {
            slicer: Slicer::new(window),
            first_sent_ns: None,
            last_sent_ns: 0,
            acked: 0,
            refusals: RefusalTally::default(),
            sent_slices: vec![0; window.slices],
            sent_before: 0,
            times: if workload.times_sends() { TimeFigures::of(Role::Publisher) } else { TimeFigures::none() },
            sent: 0,
            own_lag_max_ns: None,
            pacing: None,
        }
    }

    /// Returns how the publishers waited; `None` if they did not.
    pub fn pacing(&self) -> Option<PacingFigures> {
        self.pacing
    }

    /// Sets how the publishers waited.
    pub fn paced(&mut self, figures: PacingFigures) {
        self.pacing = Some(figures);
    }

    /// Returns the number of messages sent, including the warm-up.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// Returns the greatest generator delay of a send since the last call, ns. For the
    /// live display only.
    pub fn take_own_lag_max(&mut self) -> Option<Ns> {
        self.own_lag_max_ns.take()
    }

    /// Returns the first and the last send within the window, ns.
    pub fn send_span(&self) -> (Option<Ns>, Ns) {
        (self.first_sent_ns, self.last_sent_ns)
    }

    /// Returns the messages sent before the window.
    pub fn sent_before(&self) -> u64 {
        self.sent_before
    }

    /// Returns the messages sent in each slice of the window.
    pub fn sent_slices(&self) -> &[u64] {
        &self.sent_slices
    }

    /// Returns how many messages of the window the server acknowledged.
    pub fn acked(&self) -> u64 {
        self.acked
    }

    /// Returns how many messages of the window the server refused, by reason.
    pub fn refusals(&self) -> Vec<RefusalCount> {
        self.refusals.counts()
    }

    /// Returns the times of all sends.
    pub fn times(&self) -> &TimeFigures<Option<Histogram>> {
        &self.times
    }
}
