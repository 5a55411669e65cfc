//! Rebalances of a consumer group: its partitions are shared out anew.

use crate::units::Ns;
use serde::{Deserialize, Serialize};

/// The rebalances of a group, as its members saw them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rebalances {
    /// Number of the assignment that its members had at the window's beginning. The coordinator counts assignments.
    pub first_generation: u32,
    /// Number of their last assignment.
    pub last_generation: u32,
    /// Longest time from the instant at which a member gave up its partitions, or lost its connection, until it had
    /// partitions again, ns; 0 if none did. Pauses that end before the window do not count.
    pub longest_pause_ns: Ns,
}

impl Rebalances {
    /// Adds what other members of the same group saw.
    pub fn add(&mut self, other: &Rebalances) {
        self.first_generation = self.first_generation.min(other.first_generation);
        self.last_generation = self.last_generation.max(other.last_generation);
        self.longest_pause_ns = self.longest_pause_ns.max(other.longest_pause_ns);
    }

    /// Adds the rebalances of another group.
    pub fn add_group(&mut self, other: &Rebalances) {
        self.last_generation = self.last_generation.saturating_add(other.count());
        self.longest_pause_ns = self.longest_pause_ns.max(other.longest_pause_ns);
    }

    /// Returns the number of rebalances from the window's beginning on.
    pub fn count(&self) -> u32 {
        self.last_generation.saturating_sub(self.first_generation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_of_a_group_see_the_same_rebalances_and_groups_have_their_own() {
        let seen = |first_generation, last_generation, longest_pause_ns| Rebalances {
            first_generation,
            last_generation,
            longest_pause_ns,
        };
        let mut all = seen(2, 4, 7);
        all.add(&seen(2, 3, 9));
        assert_eq!((all, all.count()), (seen(2, 4, 9), 2));
        all.add_group(&seen(5, 6, 10));
        assert_eq!((all.count(), all.longest_pause_ns), (3, 10));
        assert_eq!(seen(3, 1, 0).count(), 0);
    }
}
