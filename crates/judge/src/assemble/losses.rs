//! Counts the missing messages that the server had acknowledged.

use pubmark_model::protocol::Sequences;
use pubmark_model::units::total;
use std::collections::BTreeMap;

/// Sequence numbers of one publisher. Counts those below a number in logarithmic time.
#[derive(Default)]
struct Marked {
    /// First, end, and count of numbers before the first; ranges do not touch each other.
    ranges: Vec<(u64, u64, u64)>,
}

impl Marked {
    /// Adds a range. Ranges come in ascending order; overlapping ones are merged.
    fn add(&mut self, first: u64, end: u64) {
        match self.ranges.last_mut() {
            Some(last) if first <= last.1 => last.1 = last.1.max(end),
            last => {
                let before = last.map_or(0, |last| last.2 + (last.1 - last.0));
                self.ranges.push((first, end, before));
            }
        }
    }

    /// Returns how many of the numbers are below `at`.
    fn below(&self, at: u64) -> u64 {
        let after = self.ranges.partition_point(|(first, ..)| *first < at);
        self.ranges[..after].last().map_or(0, |(first, end, before)| before + (at.min(*end) - first))
    }
}

/// Returns the number of messages of `missing` that are not among `excused`, counted once for each subscriber that
/// misses it. Missing messages that are not among the unacknowledged ones are acknowledged and lost.
pub fn without(mut excused: Vec<Sequences>, missing: impl IntoIterator<Item = Sequences>) -> u64 {
    excused.sort_unstable_by_key(|range| (range.publisher, range.first));
    let mut of: BTreeMap<u32, Marked> = BTreeMap::new();
    for range in excused.iter().filter(|range| range.first < range.end) {
        of.entry(range.publisher).or_default().add(range.first, range.end);
    }
    let counted = |range: &Sequences| {
        of.get(&range.publisher).map_or(0, |marked| marked.below(range.end) - marked.below(range.first))
    };
    let real = missing.into_iter().filter(|range| range.first < range.end);
    total(real.map(|range| (range.end - range.first).saturating_sub(counted(&range))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_agent_that_names_the_last_sequences_of_all_overflows_nothing() {
        let range = |first, end| Sequences { publisher: 1, first, end };
        let excused =
            vec![range(0, u64::MAX / 2), range(u64::MAX / 2 + 1, u64::MAX - 1), range(u64::MAX - 1, u64::MAX)];
        assert_eq!(without(excused.clone(), [range(0, u64::MAX)]), 1);
        assert_eq!(without(excused, [range(0, u64::MAX), range(5, 5), range(7, 3), range(0, u64::MAX)]), 2);
    }

    fn ranges() -> impl Strategy<Value = Vec<Sequences>> {
        let range = (0u32..3, 0u64..60, 0u64..12);
        let range = range.prop_map(|(publisher, first, length)| Sequences { publisher, first, end: first + length });
        proptest::collection::vec(range, 0..40)
    }

    proptest! {
        #[test]
        fn counts_as_one_by_one(unacked in ranges(), missing in ranges()) {
            let acked = |publisher: u32, at: u64| {
                !unacked.iter().any(|range| range.publisher == publisher && (range.first..range.end).contains(&at))
            };
            let one_by_one = missing
                .iter()
                .map(|range| (range.first..range.end).filter(|at| acked(range.publisher, *at)).count() as u64)
                .sum::<u64>();
            prop_assert_eq!(without(unacked.clone(), missing), one_by_one);
        }
    }

    /// A loop over all 10^11 pairs would take minutes.
    #[test]
    fn hundreds_of_thousands_of_ranges_on_both_sides_are_joined() {
        const RANGES: u64 = 300_000;
        let every = |first: u64| {
            (0..RANGES).rev().map(move |n| Sequences { publisher: 7, first: 4 * n + first, end: 4 * n + first + 2 })
        };
        assert_eq!(without(every(0).collect(), every(1)), RANGES);
        let whole = Sequences { publisher: 7, first: 0, end: 4 * RANGES };
        assert_eq!(without(every(0).collect(), (0..RANGES).map(|_| whole)), RANGES * 2 * RANGES);
    }
}
