//! Subscribers that start late and read their stream from its beginning.

use crate::units::{Ns, SECOND};
use serde::{Deserialize, Serialize};

/// The time in which late subscribers caught up. One has caught up when no message waits for it that was due more than
/// `late_after` ago.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CatchUp {
    /// Instant at which the first of them had subscribed, ns from the window's beginning.
    pub subscribed_ns: Ns,
    /// Instant at which the last of them had caught up, ns from the window's beginning; `None` if one of them had not
    /// when the drain ended.
    #[serde(default)]
    pub caught_up_ns: Option<Ns>,
    /// Messages delivered to them until each had caught up, or until the drain ended. Warm-up included, each counted
    /// once.
    pub messages: u64,
}

impl CatchUp {
    /// Adds those of other subscribers.
    pub fn add(&mut self, other: &CatchUp) {
        self.subscribed_ns = self.subscribed_ns.min(other.subscribed_ns);
        self.caught_up_ns = self.caught_up_ns.zip(other.caught_up_ns).map(|(one, other)| one.max(other));
        self.messages = self.messages.saturating_add(other.messages);
    }

    /// Returns the time from the first subscription until the last of them had caught up, ns.
    pub fn time_ns(&self) -> Option<Ns> {
        Some(self.caught_up_ns?.saturating_sub(self.subscribed_ns))
    }

    /// Returns the messages delivered per second in that time.
    pub fn replay_per_s(&self) -> Option<f64> {
        let time_ns = self.time_ns().filter(|time_ns| *time_ns > 0)?;
        Some(self.messages as f64 * SECOND as f64 / time_ns as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_subscribers_catch_up_when_the_last_of_them_does() {
        let one = CatchUp { subscribed_ns: 2 * SECOND, caught_up_ns: Some(3 * SECOND), messages: 500 };
        let mut all = one;
        all.add(&CatchUp { subscribed_ns: SECOND, caught_up_ns: Some(5 * SECOND), messages: 1_500 });
        assert_eq!((all.time_ns(), all.replay_per_s()), (Some(4 * SECOND), Some(500.0)));
        all.add(&CatchUp { caught_up_ns: None, ..one });
        assert_eq!((all.time_ns(), all.replay_per_s(), all.messages), (None, None, 2_500));
        let at_once = CatchUp { caught_up_ns: Some(2 * SECOND), messages: 0, ..one };
        assert_eq!((at_once.time_ns(), at_once.replay_per_s()), (Some(0), None));
    }
}
