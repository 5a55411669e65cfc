//! Deciding the study's claims by its records.

use crate::analysis::{CellResult, Status};
use crate::points::{Point, is_reference};
use pubmark_model::claim::Claim;
use pubmark_stats::{Better, Estimate, Ranking, rank};
use std::fmt;

/// What the records say of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// They bear it out.
    Holds,
    /// They contradict it.
    Fails,
    /// Neither.
    Undecided,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Outcome::Holds => "holds",
            Outcome::Fails => "fails",
            Outcome::Undecided => "undecided",
        })
    }
}

/// What the records say of one part of a claim: at how many points a claimed
/// system is best.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PartResult {
    /// What follows from the counts.
    pub outcome: Outcome,
    /// Points at which a claimed system is best.
    pub won: usize,
    /// Points at which another system is better than every claimed one.
    pub lost: usize,
    /// Points of which neither can be said: ties, and figures that are
    /// missing, invalid or of a single run.
    pub open: usize,
    /// The share of points that must be won, 0 to 1.
    pub share: f64,
}

/// A claim with what the records say of it.
#[derive(Clone, Debug, PartialEq)]
pub struct ClaimResult {
    /// Which published statement.
    pub id: String,
    /// The statement in words.
    pub says: String,
    /// It holds if all parts do, and fails if any does.
    pub outcome: Outcome,
    /// Its parts, in the study's order.
    pub parts: Vec<PartResult>,
}

impl ClaimResult {
    /// Points won, over all parts.
    pub fn won(&self) -> usize {
        self.parts.iter().map(|part| part.won).sum()
    }

    /// Points lost, over all parts.
    pub fn lost(&self) -> usize {
        self.parts.iter().map(|part| part.lost).sum()
    }

    /// Points open, over all parts.
    pub fn open(&self) -> usize {
        self.parts.iter().map(|part| part.open).sum()
    }

    /// The counts in words.
    pub fn evidence(&self) -> String {
        let (won, lost, open) = (self.won(), self.lost(), self.open());
        let total = won + lost + open;
        if total == 0 {
            return "not measured".into();
        }
        let counts = format!("{won} won, {lost} lost, {open} open of {total}");
        match self.parts.iter().filter(|part| part.total() == 0).count() {
            0 => counts,
            1 => format!("{counts}; 1 part not measured"),
            parts => format!("{counts}; {parts} parts not measured"),
        }
    }
}

impl PartResult {
    /// Points that meet the part's conditions.
    pub fn total(&self) -> usize {
        self.won + self.lost + self.open
    }
}

/// Decides the claims; parts of one id are one claim, in the order in which
/// the ids first come.
pub(crate) fn decide(claims: &[Claim], points: &[Point], cells: &[CellResult]) -> Vec<ClaimResult> {
    let mut results: Vec<ClaimResult> = Vec::new();
    for claim in claims {
        let part = part(claim, points, cells);
        match results.iter_mut().find(|result| result.id == claim.id) {
            Some(result) => result.parts.push(part),
            None => results.push(ClaimResult {
                id: claim.id.clone(),
                says: claim.says.clone(),
                outcome: Outcome::Undecided,
                parts: vec![part],
            }),
        }
    }
    for result in &mut results {
        let all = |outcome| result.parts.iter().all(|part| part.outcome == outcome);
        let any = |outcome| result.parts.iter().any(|part| part.outcome == outcome);
        result.outcome = if any(Outcome::Fails) {
            Outcome::Fails
        } else if all(Outcome::Holds) {
            Outcome::Holds
        } else {
            Outcome::Undecided
        };
    }
    results
}

fn part(claim: &Claim, points: &[Point], cells: &[CellResult]) -> PartResult {
    let (mut won, mut lost, mut open) = (0, 0, 0);
    for point in points {
        match at_point(claim, point, cells) {
            None => {}
            Some(Outcome::Holds) => won += 1,
            Some(Outcome::Fails) => lost += 1,
            Some(Outcome::Undecided) => open += 1,
        }
    }
    let total = won + lost + open;
    // Shares are decimal fractions: 0.6 of 5 points is 3, whatever the binary
    // rounding of the product.
    let needed = claim.share * total as f64 - 1e-9;
    let outcome = if total == 0 {
        Outcome::Undecided
    } else if won as f64 >= needed {
        Outcome::Holds
    } else if ((won + open) as f64) < needed {
        Outcome::Fails
    } else {
        Outcome::Undecided
    };
    PartResult { outcome, won, lost, open, share: claim.share }
}

/// Who is ranked at a point, and with which figure. None: it cannot be quoted,
/// or was not measured.
type Entry<'a> = (&'a str, Option<Estimate>);

/// What a point says; none where the claim is not about it.
fn at_point(claim: &Claim, point: &Point, cells: &[CellResult]) -> Option<Outcome> {
    let members: Vec<&CellResult> = point.members.iter().map(|index| &cells[*index]).collect();
    let met: Vec<&&CellResult> = members
        .iter()
        .filter(|result| {
            claim.conditions.iter().all(|(axis, condition)| {
                let value = result.cell.axes.get(axis);
                value.is_some_and(|value| condition.holds(value))
            })
        })
        .filter(|result| result.status != Status::Skipped)
        .collect();
    let mut entries: Vec<Entry<'_>> = met
        .iter()
        .filter(|result| is_ranked(claim, &result.cell.system))
        .map(|result| {
            let figure = result.quotable(claim.figure.into());
            (result.cell.system.as_str(), figure)
        })
        .collect();
    if entries.is_empty() {
        return None;
    }
    // Systems that the claim names and that are on no cell of this point were
    // not measured; those whose cell the study skips are not in question.
    for name in claim.best.iter().chain(&claim.among) {
        if !members.iter().any(|result| result.cell.system == *name) {
            entries.push((name, None));
        }
    }
    Some(compare(claim, &entries))
}

fn is_ranked(claim: &Claim, system: &str) -> bool {
    let named = |names: &[String]| names.iter().any(|name| name == system);
    if claim.among.is_empty() {
        !is_reference(system) || named(&claim.best)
    } else {
        named(&claim.among) || named(&claim.best)
    }
}

fn compare(claim: &Claim, entries: &[Entry<'_>]) -> Outcome {
    let better = if claim.figure.higher_is_better() { Better::Higher } else { Better::Lower };
    let is_best = |name: &str| claim.best.iter().any(|best| best == name);
    let known: Vec<(&str, Estimate)> = entries.iter().filter_map(|(name, figure)| Some((*name, (*figure)?))).collect();
    if known.len() == entries.len() {
        let won = match rank(&known, better) {
            Ranking::Winner(name) => is_best(&name),
            Ranking::Tie(names) => names.iter().all(|name| is_best(name)),
            Ranking::Undecided(_) => false,
        };
        if won {
            return Outcome::Holds;
        }
    }
    let claimed: Vec<&Entry<'_>> = entries.iter().filter(|entry| is_best(entry.0)).collect();
    let beaten_by = |other: Estimate| {
        let beaten = |entry: &&Entry<'_>| entry.1.is_some_and(|own| beats(other, own, better));
        !claimed.is_empty() && claimed.iter().all(beaten)
    };
    let lost = known.iter().any(|(name, figure)| !is_best(name) && beaten_by(*figure));
    if lost { Outcome::Fails } else { Outcome::Undecided }
}

/// Whether one is better by value, with intervals apart.
fn beats(one: Estimate, other: Estimate, better: Better) -> bool {
    one.interval.zip(other.interval).is_some_and(|(one, other)| match better {
        Better::Lower => one.hi < other.lo,
        Better::Higher => one.lo > other.hi,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_ends_are_no_victory() {
        let estimate = |lo, hi| Estimate { value: lo, interval: Some(pubmark_stats::Interval { lo, hi }) };
        let (low, high) = (estimate(1.0, 2.0), estimate(2.0, 3.0));
        assert!(!beats(low, high, Better::Lower));
        assert!(!beats(high, low, Better::Higher));
        assert!(beats(estimate(1.0, 1.9), high, Better::Lower));
        assert!(beats(high, estimate(1.0, 1.9), Better::Higher));
    }
}
