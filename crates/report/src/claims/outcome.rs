//! Outcome of a claim, and the records that it is tested on.

use crate::analysis::CellResult;
use crate::capacity::CapacityResult;
use crate::points::Point;
use crate::ranking::{Ranked, RankingRules};
use pubmark_model::record::RunRecord;
use pubmark_model::study::Study;
use std::fmt;

/// Outcome of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimOutcome {
    /// They bear it out.
    Holds,
    /// They contradict it.
    Fails,
    /// Neither, and more runs may.
    Open,
    /// Something that it needs was not measured.
    Untested,
}

impl fmt::Display for ClaimOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            ClaimOutcome::Holds => "holds",
            ClaimOutcome::Fails => "fails",
            ClaimOutcome::Open => "open",
            ClaimOutcome::Untested => "not tested here",
        })
    }
}

/// Records that claims are tested on.
#[derive(Clone, Copy)]
pub(crate) struct Evidence<'a> {
    pub points: &'a [Point],
    pub cells: &'a [CellResult],
    /// The records, each with its cell.
    pub runs: (&'a [RunRecord], &'a [usize]),
    pub rules: RankingRules,
    pub study: &'a Study,
    /// Results of capacity searches.
    pub capacities: &'a [CapacityResult],
}

/// Returns the systems of which further runs may decide whether one of `best` is the best:
/// claimed ones that are not told from a rival, and those rivals.
pub(super) fn wanted<'a>(best: &[String], systems: &[&'a str], ranks: &Ranked) -> Vec<&'a str> {
    let behind = |one: &str| systems.iter().any(|other| ranks.beats(other, one));
    let (claimed, rivals): (Vec<&str>, Vec<&str>) =
        systems.iter().filter(|name| !behind(name)).partition(|name| best.iter().any(|best| best == **name));
    let is_open = |name: &&str, others: &[&str]| others.iter().any(|other| ranks.is_open(name, other));
    let open_claimed = claimed.iter().filter(|name| is_open(name, &rivals));
    let open_rivals = rivals.iter().filter(|name| is_open(name, &claimed));
    open_claimed.chain(open_rivals).copied().collect()
}

/// True if a claimed system is shown to be equal to a rival.
pub(super) fn is_tie(ranks: &Ranked, claimed: &str, rival: &str) -> bool {
    ranks.same(claimed, rival) && !ranks.beats(claimed, rival)
}

/// A claim is borne out where each rival is shown to be behind a claimed
/// system: then the best is one of those. It is contradicted where each claimed
/// system is shown to be behind a rival, or equal to one.
pub(super) fn best_outcome(best: &[String], systems: &[&str], ranks: &Ranked) -> ClaimOutcome {
    let is_claimed = |name: &&&str| best.iter().any(|best| best == *name);
    let (claimed, rivals): (Vec<&str>, Vec<&str>) = systems.iter().partition(|name| is_claimed(name));
    let all_behind = |these: &[&str], those: &[&str]| {
        let behind = |one: &&str| those.iter().any(|other| ranks.beats(other, one));
        !these.is_empty() && these.iter().all(behind)
    };
    let is_not_best = |one: &&str| rivals.iter().any(|other| ranks.beats(other, one) || is_tie(ranks, one, other));
    let is_known = systems.iter().all(|system| ranks.has(system));
    let is_among_themselves = rivals.is_empty() && claimed.len() > 1;
    if is_known && (is_among_themselves || all_behind(&rivals, &claimed)) {
        ClaimOutcome::Holds
    } else if !claimed.is_empty() && claimed.iter().all(is_not_best) {
        ClaimOutcome::Fails
    } else {
        ClaimOutcome::Open
    }
}
