//! Which of several entries is best, if that can be told.

use crate::bootstrap::Estimate;

/// Which way a figure is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// As with latency, loss, memory.
    Lower,
    /// As with throughput.
    Higher,
}

/// What may be said of the best of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ranking {
    /// The interval of this entry overlaps that of no other.
    Winner(String),
    /// The entries whose interval overlaps that of the best value, at least
    /// two, best value first. Those left out are worse than the best, though
    /// not always worse than all in the tie.
    Tie(Vec<String>),
    /// Nothing may be said.
    Undecided(Undecided),
}

/// Why nothing may be said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Undecided {
    /// Fewer than two entries.
    TooFew,
    /// These entries have no interval, as they come of a single run.
    NoInterval(Vec<String>),
    /// These entries have a value or an end that is not a finite number, or
    /// ends in the wrong order.
    Unusable(Vec<String>),
}

/// Ranks entries by value and 95 % interval. Where the best one's interval
/// overlaps another's, ends included, that is a tie.
///
/// Intervals that overlap can still differ significantly, so this errs towards
/// saying tie (Schenker and Gentleman, *On judging the significance of
/// differences by examining the overlap between confidence intervals*, The
/// American Statistician 55, 2001). Entries of equal value keep their order.
pub fn rank(entries: &[(&str, Estimate)], better: Better) -> Ranking {
    if entries.len() < 2 {
        return Ranking::Undecided(Undecided::TooFew);
    }
    let unusable = names_where(entries, |estimate| !is_usable(estimate));
    if !unusable.is_empty() {
        return Ranking::Undecided(Undecided::Unusable(unusable));
    }
    let single = names_where(entries, |estimate| estimate.interval.is_none());
    if !single.is_empty() {
        return Ranking::Undecided(Undecided::NoInterval(single));
    }
    let mut sorted = entries.to_vec();
    sorted.sort_by(|(_, a), (_, b)| match better {
        Better::Lower => a.value.total_cmp(&b.value),
        Better::Higher => b.value.total_cmp(&a.value),
    });
    let best = sorted[0].1.interval;
    let mut level =
        names_where(&sorted, |estimate| best.zip(estimate.interval).is_some_and(|(best, other)| best.overlaps(&other)));
    if level.len() == 1 { Ranking::Winner(level.remove(0)) } else { Ranking::Tie(level) }
}

fn is_usable(estimate: &Estimate) -> bool {
    estimate.value.is_finite() && estimate.interval.is_none_or(|i| i.lo.is_finite() && i.hi.is_finite() && i.lo <= i.hi)
}

fn names_where(entries: &[(&str, Estimate)], test: impl Fn(&Estimate) -> bool) -> Vec<String> {
    entries.iter().filter(|(_, estimate)| test(estimate)).map(|(name, _)| (*name).to_owned()).collect()
}
