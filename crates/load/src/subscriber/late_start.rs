//! A subscriber that starts late: when it has caught up with its publishers.

use pubmark_model::record::CatchUp;
use pubmark_model::units::Ns;

/// What a late subscriber has received. It has caught up at the first instant at which no message waits for it that was
/// due more than `late_after` ago, whatever order messages come in.
pub struct LateStart {
    late_after_ns: Ns,
    /// Instant of the subscription; `None` before it.
    subscribed_ns: Option<Ns>,
    /// Instant of the last arrival, or of the subscription.
    last_ns: Ns,
    received: u64,
    /// Instant at which it had caught up, as far as is known, and messages received until then.
    caught_up: Option<(Ns, u64)>,
}

impl LateStart {
    /// Makes one that has not subscribed. `late_after_ns` is the latency above which a message is late, ns.
    pub fn new(late_after_ns: Ns) -> LateStart {
        LateStart { late_after_ns, subscribed_ns: None, last_ns: 0, received: 0, caught_up: None }
    }

    /// Notes that it has subscribed. A server may send messages before it says so.
    pub fn subscribed(&mut self, now: Ns) {
        if self.subscribed_ns.is_none() {
            (self.subscribed_ns, self.last_ns) = (Some(now), now);
        }
    }

    /// Notes the first arrival of a message.
    pub fn arrived(&mut self, now: Ns, due_ns: Ns) {
        self.subscribed(now);
        let overdue_ns = due_ns.saturating_add(self.late_after_ns);
        // Another part of its topic had more.
        self.caught_up = self.caught_up.filter(|(at_ns, _)| overdue_ns >= *at_ns);
        if self.caught_up.is_none() && overdue_ns >= now {
            self.caught_up = Some((self.last_ns, self.received));
        }
        (self.received, self.last_ns) = (self.received + 1, now);
    }

    /// Notes that no more messages will arrive.
    pub fn ended(&mut self) {
        if self.subscribed_ns.is_some() {
            self.caught_up.get_or_insert((self.last_ns, self.received));
        }
    }

    /// Returns the result of a window that begins at `from_ns`; `None` if it never subscribed.
    pub fn result(&self, from_ns: Ns) -> Option<CatchUp> {
        Some(CatchUp {
            subscribed_ns: self.subscribed_ns?.saturating_sub(from_ns),
            caught_up_ns: self.caught_up.map(|(at_ns, _)| at_ns.saturating_sub(from_ns)),
            messages: self.caught_up.map_or(self.received, |(_, received)| received),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Ns = 1_000_000;

    /// Returns the result of a subscriber that starts after 1,000 ms of the window, with arrivals and due times in ms.
    fn result(arrivals: &[(Ns, Ns)], ends: bool) -> (Option<Ns>, u64) {
        let mut late = LateStart::new(10 * MS);
        late.subscribed(1_500 * MS);
        arrivals.iter().for_each(|(at, due)| late.arrived(at * MS, due * MS));
        if ends {
            late.ended();
        }
        let result = late.result(500 * MS).unwrap();
        assert_eq!(result.subscribed_ns, 1_000 * MS);
        (result.time_ns().map(|ns| ns / MS), result.messages)
    }

    #[test]
    fn it_has_caught_up_when_the_last_overdue_message_has_come() {
        assert_eq!(result(&[(1_600, 600), (1_700, 1_100), (1_800, 1_795), (1_900, 1_000)], false), (None, 4));
        assert_eq!(result(&[(1_600, 600), (1_700, 1_100), (1_800, 1_795), (1_900, 1_895)], false), (Some(200), 2));
    }

    #[test]
    fn a_hiccup_afterwards_changes_nothing() {
        assert_eq!(result(&[(1_600, 600), (1_700, 1_699), (1_900, 1_750), (1_901, 1_900)], false), (Some(100), 1));
    }

    #[test]
    fn parts_of_a_topic_catch_up_together() {
        let arrivals = [(1_600, 600), (1_610, 1_609), (1_650, 700), (1_660, 1_605), (1_670, 1_669), (1_680, 1_679)];
        assert_eq!(result(&arrivals, false), (Some(160), 4));
    }

    #[test]
    fn who_has_everything_has_caught_up() {
        assert_eq!(result(&[(1_600, 600), (1_700, 700)], false), (None, 2));
        assert_eq!(result(&[(1_600, 600), (1_700, 700)], true), (Some(200), 2));
        assert_eq!(result(&[], true), (Some(0), 0));
        assert_eq!(LateStart::new(0).result(0), None);
    }

    #[test]
    fn who_has_nothing_to_catch_up_with_is_done_at_once() {
        assert_eq!(result(&[(1_510, 1_505), (1_520, 1_515)], false), (Some(0), 0));
    }
}
