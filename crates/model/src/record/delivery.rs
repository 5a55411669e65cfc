//! The fate of each message, in words that all outputs share.

use super::{Counts, Phases, RunRecord};
use crate::fault::{Act, Target};
use crate::units::Ns;

impl RunRecord {
    /// True if the fate of each message is reported before latency: delivery was guaranteed, or a
    /// part had a fault.
    pub fn delivery_first(&self) -> bool {
        self.workload.qos > 0 || !self.faults.is_empty()
    }

    /// Returns when all clients of this side were killed, ns from the window's beginning; `None` if
    /// they were not.
    pub fn killed_at_ns(&self, side: Target) -> Option<Ns> {
        let is_whole = |place: usize| self.faults.0.get(place).is_none_or(|fault| fault.percent.is_none());
        let mut log = self.fault_log.iter().enumerate();
        let killed = log.find(|(place, event)| event.what == Act::Kill && event.who == side && is_whole(*place));
        killed.map(|(_, event)| event).filter(|_| side != Target::Server)?.at_ns
    }

    /// True if messages are missing, and others still arrived in the last tenth of the wait for them: those that are
    /// missing may only be late.
    pub fn was_arriving(&self) -> bool {
        let (Some(phases), Some(since_sent_ns)) = (self.phases, self.drain_time_ns) else { return false };
        self.counts.lost > 0 && arrived_late(phases, since_sent_ns, self.killed_at_ns(Target::Publishers))
    }
}

/// True if the last arrival, `since_sent_ns` after the last send, was in the last tenth of the drain. Nothing is sent
/// after the publishers were killed.
fn arrived_late(phases: Phases, since_sent_ns: Ns, killed_at_ns: Option<Ns>) -> bool {
    let unsent_ns = killed_at_ns.map_or(0, |at_ns| phases.window_ns.saturating_sub(at_ns));
    since_sent_ns.saturating_sub(unsent_ns) > phases.drain_ns - phases.drain_ns / 10
}

impl Counts {
    /// Formats the acknowledged messages that were lost, of all that were acknowledged:
    /// `4303 of 30000`. If several subscribers should have received each message, copies are
    /// counted, and the text says so. `an unknown number of 30000` if they could not be counted.
    pub fn acked_lost_of_acked(&self) -> String {
        let of = if self.expected > self.sent { "copies of" } else { "of" };
        let lost = self.acked_lost.map_or("an unknown number".into(), |lost| lost.to_string());
        format!("{lost} {of} {}", self.acked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_messages_may_be_late_if_others_still_arrive_when_the_wait_ends() {
        let phases = Phases { window_ns: 6_000, drain_ns: 10_000, ..Phases::default() };
        assert!(arrived_late(phases, 9_950, None) && !arrived_late(phases, 3_000, None));
        assert!(!arrived_late(phases, 9_950, Some(2_000)) && arrived_late(phases, 13_900, Some(2_000)));
    }

    #[test]
    fn copies_are_not_taken_for_messages() {
        let counts = Counts { sent: 100, expected: 100, acked: 90, acked_lost: Some(4), ..Counts::default() };
        assert_eq!(counts.acked_lost_of_acked(), "4 of 90");
        let fanned_out = Counts { expected: 300, acked_lost: Some(120), ..counts };
        assert_eq!(fanned_out.acked_lost_of_acked(), "120 copies of 90");
        assert_eq!(Counts { acked_lost: None, ..counts }.acked_lost_of_acked(), "an unknown number of 90");
    }
}
