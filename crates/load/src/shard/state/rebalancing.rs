//! Assignments of a shard's subscribers, if they are members of a group whose coordinator assigns.

use pubmark_model::rebalances::Rebalances;
use pubmark_model::units::Ns;
use std::collections::HashMap;

/// The assignments so far, and members who wait for one.
#[derive(Default)]
pub struct Rebalancing {
    seen: Option<Rebalances>,
    /// By client: the instant at which it gave up its share, ns.
    waiting: HashMap<usize, Ns>,
    /// Instant until which the share of a dead member may not have been given to others, ns.
    pub takeover_ns: Ns,
}

impl Rebalancing {
    /// Notes that a member has given up its share.
    pub fn revoked(&mut self, client: usize, now: Ns) {
        if self.seen.is_some() {
            self.waiting.entry(client).or_insert(now);
        }
    }

    /// Notes that a member is dead.
    pub fn died(&mut self, client: usize) {
        self.waiting.remove(&client);
    }

    /// Notes an assignment of this number; `from_ns` is the beginning of the window, if it is known.
    pub fn assigned(&mut self, client: usize, generation: u32, now: Ns, from_ns: Option<Ns>) {
        let since_ns = self.waiting.remove(&client);
        let blank = Rebalances { first_generation: generation, last_generation: generation, longest_pause_ns: 0 };
        let seen = self.seen.get_or_insert(blank);
        seen.last_generation = seen.last_generation.max(generation);
        if from_ns.is_none_or(|from_ns| now < from_ns) {
            seen.first_generation = seen.last_generation;
        } else if let Some(since_ns) = since_ns {
            seen.longest_pause_ns = seen.longest_pause_ns.max(now.saturating_sub(since_ns));
        }
    }

    /// True if every member that lives has its share, and those of the dead are given to others.
    pub fn is_settled(&self, now: Ns) -> bool {
        self.waiting.is_empty() && now >= self.takeover_ns
    }

    /// Returns what the members saw; `None` if no coordinator assigned anything.
    pub fn seen(&self) -> Option<Rebalances> {
        self.seen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_and_assignments_of_the_window_count() {
        let mut all = Rebalancing::default();
        all.revoked(0, 1);
        assert!(all.is_settled(2) && all.seen().is_none(), "without a coordinator nothing is noted");
        all.assigned(0, 1, 10, None);
        all.revoked(0, 20);
        assert!(!all.is_settled(21));
        all.assigned(1, 2, 30, None);
        all.assigned(0, 2, 31, Some(100));
        let seen = |last_generation, longest_pause_ns| {
            Some(Rebalances { first_generation: 2, last_generation, longest_pause_ns })
        };
        assert_eq!((all.seen(), all.is_settled(32)), (seen(2, 0), true));
        [(0, 90), (1, 150), (1, 160)].into_iter().for_each(|(client, now)| all.revoked(client, now));
        all.assigned(0, 3, 120, Some(100));
        all.assigned(1, 3, 170, Some(100));
        assert_eq!(all.seen(), seen(3, 30));
        all.revoked(0, 200);
        all.died(0);
        all.takeover_ns = 300;
        assert!(!all.is_settled(299) && all.is_settled(300));
    }
}
