//! Deciding the study's claims by its records.

mod amount;
mod evaluate;
mod outcome;
mod output;
mod words;

use crate::analysis::{CellResult, Status, by_cell};
use crate::bound_check::Kept;
use crate::points::Point;
use crate::ranking::Ranked;
use crate::ranking::decide::ranked;
pub use outcome::ClaimOutcome;
pub(crate) use outcome::Evidence;
use outcome::{best_outcome, wanted};
use pubmark_model::claim::{Claim, Condition, Statement};
use pubmark_model::figure::Figure;
use pubmark_model::objective::Objective;
use pubmark_model::record::FigureGroup;
use pubmark_stats::PairedTest;

/// Result of one part of a claim: the number of points at which a claimed system is best, by the
/// ranking of the tables, or the number of cells that meet its bounds.
#[derive(Clone, Debug, PartialEq)]
pub struct PartResult {
    /// The statement in words.
    pub says: String,
    /// The sentence of the document that it restates.
    pub restates: Option<String>,
    /// Outcome that follows from the counts.
    pub outcome: ClaimOutcome,
    /// Points at which a claimed system is best, or cells that keep to its bounds.
    pub won: usize,
    /// Points at which each claimed system is behind another, or cells that break a
    /// bound.
    pub lost: usize,
    /// Points of which neither can be said: ties, differences within the noise,
    /// and figures that are missing, invalid or of a single run.
    pub open: usize,
    /// Points at which it cannot be said, as something of it was not measured.
    pub untested: usize,
    /// The share of all of these that must be won, 0 to 1.
    pub share: f64,
    /// The expression, where it is one.
    pub expr: Option<String>,
    /// Result at each point of an expression.
    pub points: Vec<PointResult>,
}

/// Result of an expression at one point.
#[derive(Clone, Debug, PartialEq)]
pub struct PointResult {
    /// Where, as places on axes; empty where nothing is free.
    pub at: String,
    /// Outcome at this point.
    pub outcome: ClaimOutcome,
    /// The figures with their intervals and runs, or what is missing.
    pub words: String,
    /// Runs that each side of it has, at least.
    pub runs: Option<usize>,
    /// About how many more repeats would tell; none where that cannot be said.
    pub more: Option<u32>,
}

/// A claim with what the records say of it.
#[derive(Clone, Debug, PartialEq)]
pub struct ClaimResult {
    /// Number of the published statement.
    pub id: String,
    /// The statement in words.
    pub says: String,
    /// True if a failure of the claim sets the exit code.
    pub gate: bool,
    /// Outcome: it holds if all parts hold, and fails if any part fails.
    pub outcome: ClaimOutcome,
    /// Its parts, in the study's order.
    pub parts: Vec<PartResult>,
}

impl ClaimResult {
    /// Returns the statement, with the sentence that it restates if it has one part.
    pub fn sentence(&self) -> String {
        match self.parts.as_slice() {
            [part] => part.sentence(),
            _ => self.says.clone(),
        }
    }

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

    /// Points that are not tested, over all parts.
    pub fn untested(&self) -> usize {
        self.parts.iter().map(|part| part.untested).sum()
    }

    /// True if it fails and is a gate.
    pub fn breaks(&self) -> bool {
        self.gate && self.outcome == ClaimOutcome::Fails
    }

    /// The counts in words, with what the outcome rests on where that is one thing.
    pub fn evidence(&self) -> String {
        match self.parts.as_slice() {
            [part] => part.evidence(),
            _ => self.counts(),
        }
    }

    /// The counts in words.
    pub fn counts(&self) -> String {
        let counts = counts([self.won(), self.lost(), self.open(), self.untested()]);
        match self.parts.iter().filter(|part| part.total() == 0).count() {
            unmeasured if unmeasured == self.parts.len() => counts,
            0 => counts,
            1 => format!("{counts}; 1 part not measured"),
            parts => format!("{counts}; {parts} parts not measured"),
        }
    }
}

/// Counts in words: won, lost, open, not tested.
fn counts([won, lost, open, untested]: [usize; 4]) -> String {
    let told = match won + lost + open {
        0 if untested == 0 => return "not measured".into(),
        0 => return crate::text::counted(untested, "point") + " not tested",
        _ => format!("{won} won, {lost} lost, {open} open"),
    };
    let untested_words = if untested > 0 { format!(", {untested} not tested") } else { String::new() };
    format!("{told}{untested_words} of {}", won + lost + open + untested)
}

impl PartResult {
    /// The counts in words.
    pub fn counts(&self) -> String {
        counts([self.won, self.lost, self.open, self.untested])
    }

    /// The counts in words, with what the outcome rests on.
    pub fn evidence(&self) -> String {
        let counts = self.counts();
        let telling: Vec<&PointResult> = self.points.iter().filter(|point| point.outcome == self.outcome).collect();
        let Some(first) = telling.first().copied().or(self.points.first()) else { return counts };
        let place = if first.at.is_empty() { String::new() } else { format!("{}: ", first.at) };
        let more = match self.repeats_more() {
            Some(more) if self.outcome == ClaimOutcome::Open => format!("; about {more} more repeats"),
            _ => String::new(),
        };
        match self.points.len() {
            1 => format!("{place}{}{more}", first.words),
            _ => format!("{counts}; {place}{}{more}", first.words),
        }
    }

    /// Returns the statement, with the sentence that it restates.
    pub fn sentence(&self) -> String {
        match &self.restates {
            Some(restates) => format!("{} (restates: {restates})", self.says),
            None => self.says.clone(),
        }
    }

    /// About how many more repeats would tell; none where that cannot be said.
    pub fn repeats_more(&self) -> Option<u32> {
        self.points.iter().filter(|point| point.outcome == ClaimOutcome::Open).filter_map(|point| point.more).max()
    }

    /// Points, or cells, that meet the part's conditions.
    pub fn total(&self) -> usize {
        self.won + self.lost + self.open + self.untested
    }
}

/// Decides the claims; parts of one id are one claim, in the order in which
/// the ids first come.
pub(crate) fn decide(claims: &[Claim], evidence: Evidence<'_>) -> Vec<ClaimResult> {
    let mut results: Vec<ClaimResult> = Vec::new();
    for claim in claims {
        let part = part(claim, evidence);
        match results.iter_mut().find(|result| result.id == claim.id) {
            Some(result) => result.parts.push(part),
            None => results.push(ClaimResult {
                id: claim.id.clone(),
                says: claim.says.clone(),
                gate: false,
                outcome: ClaimOutcome::Open,
                parts: vec![part],
            }),
        }
        // One entry with `gate` makes the whole claim a gate.
        if let Some(result) = results.iter_mut().find(|result| result.id == claim.id) {
            result.gate |= claim.gate;
        }
    }
    for result in &mut results {
        let all = |outcome| result.parts.iter().all(|part| part.outcome == outcome);
        let any = |outcome| result.parts.iter().any(|part| part.outcome == outcome);
        result.outcome = if any(ClaimOutcome::Fails) {
            ClaimOutcome::Fails
        } else if all(ClaimOutcome::Holds) {
            ClaimOutcome::Holds
        } else if any(ClaimOutcome::Open) {
            ClaimOutcome::Open
        } else {
            ClaimOutcome::Untested
        };
    }
    results
}

fn part(claim: &Claim, evidence: Evidence<'_>) -> PartResult {
    let (mut points, mut expr) = (Vec::new(), None);
    let said: Vec<ClaimOutcome> = match &claim.statement {
        Statement::Best { figure, best, among } => {
            BestClaim { claim, figure: *figure, best, among }.at_points(evidence).map(|at| at.outcome).collect()
        }
        Statement::Keeps(objective) => kept(claim, objective, evidence).map(|(_, kept)| outcome(kept)).collect(),
        Statement::Says(expression) => {
            expr = Some(expression.text.clone());
            let all = evaluate::at_points(claim, expression, evidence).into_iter();
            points.extend(all.map(|(at, said)| PointResult {
                at,
                outcome: said.outcome,
                words: said.words.join("; "),
                runs: said.runs,
                more: said.more,
            }));
            points.iter().map(|point| point.outcome).collect()
        }
    };
    let count = |wanted| said.iter().filter(|said| **said == wanted).count();
    let (won, lost) = (count(ClaimOutcome::Holds), count(ClaimOutcome::Fails));
    let (open, untested) = (count(ClaimOutcome::Open), count(ClaimOutcome::Untested));
    let total = said.len();
    // Shares are decimal fractions: 0.6 of 5 points is 3, whatever the binary
    // rounding of the product.
    let needed = claim.share * total as f64 - 1e-9;
    let outcome = if total == 0 {
        ClaimOutcome::Untested
    } else if won as f64 >= needed {
        ClaimOutcome::Holds
    } else if ((won + open + untested) as f64) < needed {
        ClaimOutcome::Fails
    } else if open > 0 {
        ClaimOutcome::Open
    } else {
        ClaimOutcome::Untested
    };
    let says = claim.says.clone();
    let restates = claim.restates.clone();
    PartResult { says, restates, outcome, won, lost, open, untested, share: claim.share, expr, points }
}

/// True if a claim covers a cell.
fn is_met(claim: &Claim, result: &CellResult) -> bool {
    result.status != Status::Skipped
        && claim.conditions.iter().all(|(axis, condition)| {
            let value = result.cell.axes.get(axis);
            value.is_some_and(|value| condition.holds(value))
        })
}

/// The cells that a claim about bounds is about, with what their runs say. References
/// are among them where its conditions name them.
fn kept<'a>(
    claim: &'a Claim,
    objective: &'a Objective,
    evidence: Evidence<'a>,
) -> impl Iterator<Item = (usize, Kept)> + 'a {
    let named = |name: &str| {
        let mut of_system = claim.conditions.iter().filter(|(axis, _)| axis == "system");
        of_system
            .any(|(_, condition)| matches!(condition, Condition::OneOf(names) if names.iter().any(|one| one == name)))
    };
    let about =
        |result: &CellResult| is_met(claim, result) && (!result.is_reference || named(&result.cell.system.name));
    let cells: Vec<usize> = (0..evidence.cells.len()).filter(|cell| about(&evidence.cells[*cell])).collect();
    let family = (cells.len() * objective.terms().len()).max(1);
    let test = evidence.rules.until_decided.then(|| PairedTest::new(family));
    let (runs, of) = evidence.runs;
    let mut runs_of = by_cell(evidence.cells.len(), of.iter().copied().zip(runs));
    cells.into_iter().map(move |cell| {
        let runs = &mut runs_of[cell];
        runs.sort_by_key(|run| run.repeat);
        (cell, Kept::of(objective, runs, test.as_ref()))
    })
}

fn outcome(kept: Kept) -> ClaimOutcome {
    match kept.outcome {
        Some(true) => ClaimOutcome::Holds,
        Some(false) => ClaimOutcome::Fails,
        None => ClaimOutcome::Open,
    }
}

/// Why a claim is open at a point or of a cell, and what more runs could tell.
pub(crate) struct OpenClaim {
    /// The cells that have to be measured; none where more runs tell nothing, such as
    /// at a tie.
    pub cells: Vec<usize>,
    /// The figures that their runs have to be quotable for.
    pub groups: Vec<FigureGroup>,
    /// About how many more blocks would tell.
    pub blocks_more: Option<u32>,
}

/// Returns the points at which a part of a claim is open.
pub(crate) fn open_points(claim: &Claim, evidence: Evidence<'_>) -> Vec<OpenClaim> {
    match &claim.statement {
        Statement::Best { figure, best, among } => {
            let claim = BestClaim { claim, figure: *figure, best, among };
            let open = claim.at_points(evidence).filter(|at| at.outcome == ClaimOutcome::Open);
            open.map(|at| claim.open(&at, evidence.cells)).collect()
        }
        Statement::Keeps(objective) => kept(claim, objective, evidence)
            .filter(|(_, kept)| kept.outcome.is_none())
            .map(|(cell, kept)| OpenClaim { cells: vec![cell], groups: objective.groups(), blocks_more: kept.more })
            .collect(),
        Statement::Says(expression) => evaluate::at_points(claim, expression, evidence)
            .into_iter()
            .filter(|(_, said)| matches!(said.outcome, ClaimOutcome::Open | ClaimOutcome::Untested))
            .map(|(_, said)| OpenClaim { cells: said.cells, groups: said.groups, blocks_more: said.more })
            .collect(),
    }
}

/// A claim that a system is best.
#[derive(Clone, Copy)]
struct BestClaim<'a> {
    claim: &'a Claim,
    figure: Figure,
    best: &'a [String],
    among: &'a [String],
}

/// Result of an expression at a point, with its parts.
struct AtPoint<'a> {
    point: &'a Point,
    systems: Vec<&'a str>,
    ranks: Ranked,
    outcome: ClaimOutcome,
}

impl<'a> BestClaim<'a> {
    /// The points that it is about.
    fn at_points(self, evidence: Evidence<'a>) -> impl Iterator<Item = AtPoint<'a>> {
        let of_its_own = self.of_its_own(evidence);
        let points = evidence.points.iter().enumerate();
        points.filter_map(move |(number, point)| {
            let ranks = of_its_own.as_ref().map_or_else(|| point.by(self.figure), |ranks| ranks.get(number))?;
            let systems = self.in_question(point, evidence.cells)?;
            let outcome = best_outcome(self.best, &systems, ranks);
            Some(AtPoint { point, systems, ranks: ranks.clone(), outcome })
        })
    }

    /// The ranking of a claim that names references: they are ranked for it, and for
    /// nothing else.
    fn of_its_own(self, Evidence { cells, points, rules, .. }: Evidence<'_>) -> Option<Vec<Ranked>> {
        let is_reference =
            |name: &str| cells.iter().any(|result| result.is_reference && result.cell.system.name == name);
        let named: Vec<String> =
            self.best.iter().chain(self.among).filter(|name| is_reference(name)).cloned().collect();
        (!named.is_empty()).then(|| ranked(cells, points, self.figure, &named, rules))
    }

    /// The systems that it compares at a point; none where it is not about it.
    fn in_question(self, point: &Point, cells: &'a [CellResult]) -> Option<Vec<&'a str>> {
        let members: Vec<&CellResult> = point.members.iter().map(|index| &cells[*index]).collect();
        let met = members.iter().filter(|result| is_met(self.claim, result));
        let in_question = met.filter(|result| self.is_ranked(result));
        let mut systems: Vec<&str> = in_question.map(|result| result.cell.system.name.as_str()).collect();
        if systems.is_empty() {
            return None;
        }
        // Systems that the claim names and that are on no cell of this point were
        // not measured; those whose cell the study skips are not in question.
        for name in self.best.iter().chain(self.among) {
            if !members.iter().any(|result| result.cell.system.name == *name) {
                systems.push(name);
            }
        }
        Some(systems)
    }

    fn is_ranked(self, result: &CellResult) -> bool {
        let named = |names: &[String]| names.contains(&result.cell.system.name);
        if self.among.is_empty() {
            !result.is_reference || named(self.best)
        } else {
            named(self.among) || named(self.best)
        }
    }

    /// Returns the cells to measure where the claim is open.
    fn open(self, at: &AtPoint<'_>, cells: &[CellResult]) -> OpenClaim {
        let wanted = wanted(self.best, &at.systems, &at.ranks);
        let cell = |name: &&str| at.point.members.iter().copied().find(|index| cells[*index].cell.system.name == *name);
        OpenClaim {
            cells: wanted.iter().filter_map(cell).collect(),
            groups: vec![self.figure.group()],
            blocks_more: at.ranks.repeats_more(),
        }
    }
}
