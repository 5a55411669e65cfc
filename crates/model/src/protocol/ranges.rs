//! Messages of a run as ranges of sequences.

use serde::{Deserialize, Serialize};

/// Most ranges in `unacked` or `missing` of a result.
pub const MOST_RANGES: usize = 1_000_000;

/// Sequences of one publisher: from `first` up to, but not including, `end`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sequences {
    /// The publisher.
    pub publisher: u32,
    /// The first sequence.
    pub first: u64,
    /// The sequence after the last.
    pub end: u64,
}

/// Messages as ranges of their sequences; `None` (`null`) if there are more than [`MOST_RANGES`],
/// or the agent does not support it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Ranges(pub Option<Vec<Sequences>>);

impl Default for Ranges {
    fn default() -> Ranges {
        Ranges(Some(Vec::new()))
    }
}

impl Ranges {
    /// Adds ranges while all of them fit.
    pub fn extend(&mut self, more: impl IntoIterator<Item = Sequences>) {
        for sequences in more {
            match &mut self.0 {
                Some(list) if list.len() < MOST_RANGES => list.push(sequences),
                _ => {
                    self.0 = None;
                    return;
                }
            }
        }
    }

    /// Adds the ranges of another list.
    pub fn add(&mut self, other: Ranges) {
        match other.0 {
            Some(more) => self.extend(more),
            None => self.0 = None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_all_of_them_or_none() {
        let of = |count: u64| (0..count).map(|n| Sequences { publisher: 0, first: 2 * n, end: 2 * n + 1 });
        let mut ranges = Ranges::default();
        ranges.extend(of(MOST_RANGES as u64));
        assert_eq!(ranges.0.as_ref().map(Vec::len), Some(MOST_RANGES));
        ranges.extend(of(1));
        assert_eq!(ranges, Ranges(None));
        ranges.extend(of(1));
        assert_eq!(ranges, Ranges(None), "what was cut is never whole again");
        let mut sum = Ranges::default();
        sum.add(ranges);
        assert_eq!(sum, Ranges(None));
        assert_eq!(serde_json::to_string(&sum).unwrap(), "null");
        assert_eq!(serde_json::from_str::<Ranges>("null").unwrap(), sum);
        assert_eq!(serde_json::from_str::<Ranges>("[]").unwrap(), Ranges::default());
    }
}
