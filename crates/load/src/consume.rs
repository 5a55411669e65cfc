//! Subscribers that take messages at a rate of their own.

use pubmark_model::profile::Profile;
use pubmark_model::units::{MILLISECOND, Ns};
use pubmark_model::workload::Workload;

/// Time by which a subscriber that came late to a message may make up for it with the next ones, ns.
const CATCH_UP: Ns = 10 * MILLISECOND;

/// The instants from which on a subscriber may take its messages.
#[derive(Clone, Debug)]
pub struct ConsumePace {
    profile: Profile,
    start_ns: Ns,
    next_ns: Ns,
}

impl ConsumePace {
    /// Makes the pace of a run that starts at `start_ns`; `None` if subscribers take what comes.
    pub fn new(workload: &Workload, start_ns: Ns) -> Option<ConsumePace> {
        workload.consume.profile().map(|profile| ConsumePace { profile, start_ns, next_ns: start_ns })
    }

    /// Returns the instant from which on it may take the next message, ns.
    pub fn next_ns(&self) -> Ns {
        self.next_ns
    }

    /// Notes that it took a message at `now`.
    pub fn took(&mut self, now: Ns) {
        let from_ns = self.next_ns.max(now.saturating_sub(CATCH_UP));
        let after_ns = self.profile.after(from_ns.saturating_sub(self.start_ns) as f64, 1.0);
        self.next_ns = self.start_ns.saturating_add(after_ns as Ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pubmark_model::units::SECOND;

    const START: Ns = 5 * SECOND;

    /// Returns the instants, ms after the start, at which messages are taken that are there at these.
    fn taken(consume: &str, there_ms: impl IntoIterator<Item = Ns>) -> Vec<Ns> {
        let workload = Workload::of([("consume", consume)]).unwrap();
        let mut pace = ConsumePace::new(&workload, START).unwrap();
        let take = |there_ms| {
            let now = pace.next_ns().max(START + there_ms * MILLISECOND);
            pace.took(now);
            (now - START) / MILLISECOND
        };
        there_ms.into_iter().map(take).collect()
    }

    #[test]
    fn messages_that_wait_are_taken_at_the_rate() {
        assert_eq!(taken("100", [0; 5]), [0, 10, 20, 30, 40]);
        assert_eq!(taken("0.5", [1_000; 3]), [1_000, 2_990, 4_990], "10 ms late at most are made up for");
    }

    #[test]
    fn who_was_idle_does_not_save_up() {
        assert_eq!(taken("100", [0, 500, 500, 500, 900]), [0, 500, 500, 510, 900]);
    }

    #[test]
    fn the_rate_may_change_over_time() {
        assert_eq!(taken("steps 0.001 100 each 1s", [0; 4]), [0, 1_009, 1_019, 1_029], "a pause, and then a backlog");
    }

    #[test]
    fn without_a_rate_there_is_no_pace() {
        assert!(ConsumePace::new(&Workload::of([("pairs", "1")]).unwrap(), START).is_none());
    }
}
