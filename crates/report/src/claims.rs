//! Deciding the study's claims by its records.

use crate::analysis::{CellResult, Status};
use crate::points::Point;
use crate::ranking::decide::ranked;
use crate::ranking::{Ranked, RankingRules};
use pubmark_model::claim::Claim;
use std::fmt;

/// What the records say of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimOutcome {
    /// They bear it out.
    Holds,
    /// They contradict it.
    Fails,
    /// Neither.
    Undecided,
}

impl fmt::Display for ClaimOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            ClaimOutcome::Holds => "holds",
            ClaimOutcome::Fails => "fails",
            ClaimOutcome::Undecided => "undecided",
        })
    }
}

/// What the records say of one part of a claim: at how many points a claimed
/// system is best, by the ranking that the tables show.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PartResult {
    /// What follows from the counts.
    pub outcome: ClaimOutcome,
    /// Points at which a claimed system is best.
    pub won: usize,
    /// Points at which each claimed system is behind another.
    pub lost: usize,
    /// Points of which neither can be said: ties, differences within the noise,
    /// and figures that are missing, invalid or of a single run.
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
    pub outcome: ClaimOutcome,
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
pub(crate) fn decide(
    claims: &[Claim],
    points: &[Point],
    cells: &[CellResult],
    rules: RankingRules,
) -> Vec<ClaimResult> {
    let mut results: Vec<ClaimResult> = Vec::new();
    for claim in claims {
        let part = part(claim, points, cells, rules);
        match results.iter_mut().find(|result| result.id == claim.id) {
            Some(result) => result.parts.push(part),
            None => results.push(ClaimResult {
                id: claim.id.clone(),
                says: claim.says.clone(),
                outcome: ClaimOutcome::Undecided,
                parts: vec![part],
            }),
        }
    }
    for result in &mut results {
        let all = |outcome| result.parts.iter().all(|part| part.outcome == outcome);
        let any = |outcome| result.parts.iter().any(|part| part.outcome == outcome);
        result.outcome = if any(ClaimOutcome::Fails) {
            ClaimOutcome::Fails
        } else if all(ClaimOutcome::Holds) {
            ClaimOutcome::Holds
        } else {
            ClaimOutcome::Undecided
        };
    }
    results
}

fn part(claim: &Claim, points: &[Point], cells: &[CellResult], rules: RankingRules) -> PartResult {
    let (mut won, mut lost, mut open) = (0, 0, 0);
    let of_its_own = of_its_own(claim, points, cells, rules);
    for (number, point) in points.iter().enumerate() {
        let ranks = of_its_own.as_ref().map_or_else(|| point.by(claim.figure), |ranks| ranks.get(number));
        match ranks.and_then(|ranks| at_point(claim, point, cells, ranks)) {
            None => {}
            Some(ClaimOutcome::Holds) => won += 1,
            Some(ClaimOutcome::Fails) => lost += 1,
            Some(ClaimOutcome::Undecided) => open += 1,
        }
    }
    let total = won + lost + open;
    // Shares are decimal fractions: 0.6 of 5 points is 3, whatever the binary
    // rounding of the product.
    let needed = claim.share * total as f64 - 1e-9;
    let outcome = if total == 0 {
        ClaimOutcome::Undecided
    } else if won as f64 >= needed {
        ClaimOutcome::Holds
    } else if ((won + open) as f64) < needed {
        ClaimOutcome::Fails
    } else {
        ClaimOutcome::Undecided
    };
    PartResult { outcome, won, lost, open, share: claim.share }
}

/// The ranking of a claim that names references: they are ranked for it, and for
/// nothing else.
fn of_its_own(claim: &Claim, points: &[Point], cells: &[CellResult], rules: RankingRules) -> Option<Vec<Ranked>> {
    let is_reference = |name: &str| cells.iter().any(|result| result.is_reference && result.cell.system == name);
    let named: Vec<String> = claim.best.iter().chain(&claim.among).filter(|name| is_reference(name)).cloned().collect();
    (!named.is_empty()).then(|| ranked(cells, points, claim.figure, &named, rules))
}

/// What a point says; none where the claim is not about it.
fn at_point(claim: &Claim, point: &Point, cells: &[CellResult], ranks: &Ranked) -> Option<ClaimOutcome> {
    Some(compare(claim, &in_question(claim, point, cells)?, ranks))
}

/// The systems that a claim compares at a point; none where it is not about it.
fn in_question<'a>(claim: &'a Claim, point: &Point, cells: &'a [CellResult]) -> Option<Vec<&'a str>> {
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
    let in_question = met.iter().filter(|result| is_ranked(claim, result));
    let mut systems: Vec<&str> = in_question.map(|result| result.cell.system.as_str()).collect();
    if systems.is_empty() {
        return None;
    }
    // Systems that the claim names and that are on no cell of this point were
    // not measured; those whose cell the study skips are not in question.
    for name in claim.best.iter().chain(&claim.among) {
        if !members.iter().any(|result| result.cell.system == *name) {
            systems.push(name);
        }
    }
    Some(systems)
}

fn is_ranked(claim: &Claim, result: &CellResult) -> bool {
    let named = |names: &[String]| names.contains(&result.cell.system);
    if claim.among.is_empty() {
        !result.is_reference || named(&claim.best)
    } else {
        named(&claim.among) || named(&claim.best)
    }
}

/// A claim is borne out where each rival is shown to be behind a claimed
/// system: then the best is one of those. It is contradicted where each claimed
/// system is shown to be behind a rival.
fn compare(claim: &Claim, systems: &[&str], ranks: &Ranked) -> ClaimOutcome {
    let is_claimed = |name: &&&str| claim.best.iter().any(|best| best == *name);
    let (claimed, rivals): (Vec<&str>, Vec<&str>) = systems.iter().partition(|name| is_claimed(name));
    let all_behind = |these: &[&str], those: &[&str]| {
        let behind = |one: &&str| those.iter().any(|other| ranks.beats(other, one));
        !these.is_empty() && these.iter().all(behind)
    };
    let is_known = systems.iter().all(|system| ranks.has(system));
    let is_among_themselves = rivals.is_empty() && claimed.len() > 1;
    if is_known && (is_among_themselves || all_behind(&rivals, &claimed)) {
        ClaimOutcome::Holds
    } else if all_behind(&claimed, &rivals) {
        ClaimOutcome::Fails
    } else {
        ClaimOutcome::Undecided
    }
}

/// Why a claim is open at a point, and what more runs of it could tell.
pub(crate) struct OpenClaim {
    /// The cells that have to be measured; none where more runs tell nothing, such as
    /// at a tie.
    pub cells: Vec<usize>,
    /// About how many more blocks would tell who is best there.
    pub blocks_more: Option<u32>,
}

/// Where a part of a claim is open.
pub(crate) fn open_points(
    claim: &Claim,
    points: &[Point],
    cells: &[CellResult],
    rules: RankingRules,
) -> Vec<OpenClaim> {
    let of_its_own = of_its_own(claim, points, cells, rules);
    let open = points.iter().enumerate().filter_map(|(number, point)| {
        let ranks = of_its_own.as_ref().map_or_else(|| point.by(claim.figure), |ranks| ranks.get(number))?;
        let systems = in_question(claim, point, cells)?;
        if compare(claim, &systems, ranks) != ClaimOutcome::Undecided {
            return None;
        }
        let behind = |one: &str| systems.iter().any(|other| ranks.beats(other, one));
        let (claimed, rivals): (Vec<&str>, Vec<&str>) =
            systems.iter().filter(|name| !behind(name)).partition(|name| claim.best.iter().any(|best| best == **name));
        let is_wanted = |name: &str| {
            let others = if claimed.contains(&name) { &rivals } else { &claimed };
            others.iter().any(|other| ranks.is_open(name, other))
        };
        let wanted = claimed.iter().chain(&rivals).filter(|name| is_wanted(name));
        let cell = |name: &&str| point.members.iter().copied().find(|index| cells[*index].cell.system == *name);
        Some(OpenClaim { cells: wanted.filter_map(cell).collect(), blocks_more: ranks.repeats_more() })
    });
    open.collect()
}
