//! The fate of each message, in words that all outputs share.

use super::{Counts, RunRecord};
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
    fn copies_are_not_taken_for_messages() {
        let counts = Counts { sent: 100, expected: 100, acked: 90, acked_lost: Some(4), ..Counts::default() };
        assert_eq!(counts.acked_lost_of_acked(), "4 of 90");
        let fanned_out = Counts { expected: 300, acked_lost: Some(120), ..counts };
        assert_eq!(fanned_out.acked_lost_of_acked(), "120 copies of 90");
        assert_eq!(Counts { acked_lost: None, ..counts }.acked_lost_of_acked(), "an unknown number of 90");
    }
}
