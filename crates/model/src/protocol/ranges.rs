//! Messages of a run named one by one.

use serde::{Deserialize, Serialize};

/// Most ranges that `unacked` or `missing` of a result may have.
pub const MOST_RANGES: usize = 1_000_000;

/// Sequences of one publisher: from `first` to `end`, which is not among them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sequences {
    /// The publisher.
    pub publisher: u32,
    /// The first.
    pub first: u64,
    /// The one after the last.
    pub end: u64,
}

/// Messages named by ranges of their sequences: all of them, or none (`null`)
/// where there are more than [`MOST_RANGES`], or an agent cannot tell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Ranges(pub Option<Vec<Sequences>>);

impl Default for Ranges {
    fn default() -> Ranges {
        Ranges(Some(Vec::new()))
    }
}

impl Ranges {
    /// Adds these, as long as all of them can be named.
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

    /// Adds those of others.
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
