//! The questions of a study that is measured until they are decided: which are
//! decided, and what has to be measured for the others.

use crate::analysis::{CellResult, ReasonCount, Status, by_cell};
use crate::claims::{ClaimOutcome, ClaimResult, PartResult, open_points};
use crate::figures::{RESOLUTION, allows};
use crate::languages;
use crate::points::{Point, headline};
use crate::ranking::{Placing, Ranked, Standing, Why, unequal_work};
use crate::report::Report;
use crate::text::clean;
use pubmark_model::cell::label;
use pubmark_model::claim::Statement;
use pubmark_model::figure::Figure;
use pubmark_model::question::Precision;
use pubmark_model::record::{FigureGroup, Reason, RunRecord};
use pubmark_model::workload::Rate;
use pubmark_stats::{Runs, precise_figure};

/// Longest question and answer that is shown, characters.
const TEXT_CHARS: usize = 160;
/// Longest reason why a claim is not tested, characters.
const WHY_CHARS: usize = 300;

/// Runs of each system after which what no test can decide is believed to stay so: a
/// generator at its limit, and shares that differ.
const SETTLED_RUNS: usize = 3;

/// A question that a study asks.
#[derive(Clone, Debug, PartialEq)]
pub struct StudyQuestion {
    /// In words.
    pub text: String,
    /// Kind of the question.
    pub kind: QuestionKind,
    /// State of the question.
    pub state: QuestionState,
}

/// Kind of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuestionKind {
    /// The outcome of a claim of the study.
    Claim,
    /// The best system at a point.
    Best,
    /// The better one of two systems at a point.
    Differ,
    /// A figure of a cell, to within a given fraction.
    Within,
    /// The highest load of a cell at which an objective holds.
    Capacity,
}

impl QuestionKind {
    /// Returns its name in files.
    pub fn word(self) -> &'static str {
        match self {
            QuestionKind::Claim => "claim",
            QuestionKind::Best => "best",
            QuestionKind::Differ => "differ",
            QuestionKind::Within => "within",
            QuestionKind::Capacity => "capacity",
        }
    }
}

/// State of a question.
#[derive(Clone, Debug, PartialEq)]
pub enum QuestionState {
    /// It has a result.
    Decided(String),
    /// Further runs of these cells may decide it.
    Open {
        /// Cells that it needs, as indices into [`Report::cells`], ascending.
        cells: Vec<usize>,
        /// The figures that runs have to be quotable for.
        groups: Vec<FigureGroup>,
        /// True if cells of one point are compared with each other, so that one alone shows
        /// nothing.
        compares: bool,
        /// Reason why it is open.
        why: String,
        /// About how many more blocks would tell; none where that cannot be said.
        blocks_more: Option<u32>,
    },
    /// Further runs do not decide it, and why.
    Closed(String),
}

impl Report {
    /// The questions of the study, its claims first: those that it names itself, or else
    /// its claims and who is best at each point by the figure that the tables rank by.
    pub fn questions(&self) -> Vec<StudyQuestion> {
        let asked = self.study().asks();
        let claims = self.claims().iter().filter(|_| asked.claims).map(|claim| self.of_claim(claim));
        let mut all: Vec<StudyQuestion> = claims.collect();
        for figure in &asked.best {
            all.extend(self.points().iter().filter_map(|point| self.of_point(point, *figure)));
        }
        for [one, other] in &asked.differ {
            all.extend(self.points().iter().filter_map(|point| self.of_pair(point, (one, other))));
        }
        for precision in &asked.within {
            let runs_of = by_cell(self.cells().len(), self.cells_of_runs().iter().copied().zip(self.runs()));
            let cells = runs_of.into_iter().enumerate();
            let cells = cells.filter(|(cell, _)| self.cells()[*cell].status != Status::Skipped);
            all.extend(cells.filter_map(|(cell, runs)| self.of_precision(cell, runs, precision)));
        }
        all.extend(self.capacity_questions());
        all
    }

    /// By cell: those beside which its figures are shown, within each block, and which no
    /// question asks about: the floors of its point and of its language.
    pub fn beside(&self) -> Vec<Vec<usize>> {
        languages::beside(self.cells())
    }

    /// Why runs of a cell do not count for these figures, most frequent reason first;
    /// whether the machine has its part in all of them. None if all of them count.
    pub fn why_not_counted(&self, cell: usize, groups: &[FigureGroup]) -> Option<(String, bool)> {
        let result = self.cells().get(cell)?;
        let all = result.all_reasons();
        let touching = all.iter().filter(|count| count.figures.iter().any(|figures| groups.contains(figures)));
        let touching: Vec<_> = touching.collect();
        let words: Vec<String> = touching.iter().map(|count| count.reason.to_string()).collect();
        // The effects of a noisy machine on the generator are caused by the machine as well.
        let most = touching.iter().map(|count| count.runs).max().unwrap_or(0);
        let is_machine = touching.iter().any(|count| count.reason == Reason::NoisyMachine && count.runs == most);
        (!words.is_empty()).then(|| (words.join(", "), is_machine))
    }

    fn of_claim(&self, claim: &ClaimResult) -> StudyQuestion {
        let others = match claim.parts.len() {
            0 | 1 => String::new(),
            parts => format!(", and {} more", parts - 1),
        };
        let text = clean(&format!("claim {}: {}{others}", claim.id, claim.says), TEXT_CHARS);
        let state = match claim.outcome {
            ClaimOutcome::Open | ClaimOutcome::Untested => self.open_claim(claim),
            outcome => QuestionState::Decided(format!("{outcome} ({})", claim.counts())),
        };
        StudyQuestion { text, kind: QuestionKind::Claim, state }
    }

    fn open_claim(&self, claim: &ClaimResult) -> QuestionState {
        let (mut cells, mut groups, mut blocks_more) = (Vec::new(), Vec::new(), Some(1));
        let mut compares = true;
        let mut not_run: Vec<&str> = Vec::new();
        let parts = self.study().claims.iter().filter(|part| part.id == claim.id);
        let capacities = self.capacities();
        let is_open = |result: &PartResult| matches!(result.outcome, ClaimOutcome::Open | ClaimOutcome::Untested);
        for (part, result) in parts.zip(&claim.parts).filter(|(_, result)| is_open(result)) {
            if let Statement::Best { best, among, .. } = &part.statement {
                let is_run = |name: &&str| {
                    self.cells().iter().any(|at| at.cell.system.name == *name && at.status != Status::Skipped)
                };
                not_run.extend(best.iter().chain(among).map(String::as_str).filter(|name| !is_run(name)));
            }
            let open = open_points(part, self.held(&capacities));
            debug_assert!(open.len() <= result.open + result.untested);
            for point in open.into_iter().filter(|point| !point.cells.is_empty()) {
                cells.extend(point.cells);
                groups.extend(point.groups);
                // An expression names what it needs; only a best one needs two systems of a point.
                compares &= matches!(part.statement, Statement::Best { .. });
                blocks_more = blocks_more.zip(point.blocks_more).map(|(one, other)| one.max(other));
            }
        }
        let evidence = claim.counts();
        if cells.is_empty() {
            not_run.sort_unstable();
            not_run.dedup();
            return QuestionState::Closed(match not_run.as_slice() {
                _ if claim.won() + claim.lost() + claim.open() + claim.untested() == 0 => {
                    format!("{evidence}: nothing of it can be run here")
                }
                _ if claim.untested() > 0 => clean(&format!("not tested here: {}", claim.evidence()), WHY_CHARS),
                [] => format!(
                    "{evidence}: more runs change nothing, as systems tie there, or differ in what they deliver"
                ),
                names => format!("{evidence}: not run here: {}", names.join(", ")),
            });
        }
        open((cells, compares), groups, evidence, blocks_more)
    }

    /// Returns the question of a point; `None` if fewer than two systems can be compared.
    fn of_point(&self, point: &Point, figure: Option<Figure>) -> Option<StudyQuestion> {
        let figure = figure.unwrap_or(headline(point.unthrottled));
        let ranked = point.by(figure).filter(|_| point.rivals > 1)?;
        let text = clean(&format!("best by {}{}", what(figure), place(point)), TEXT_CHARS);
        Some(StudyQuestion { text, kind: QuestionKind::Best, state: self.at_point(point, ranked, figure) })
    }

    /// Returns the question of a pair; `None` if one of the two is not measured.
    fn of_pair(&self, point: &Point, (one, other): (&str, &str)) -> Option<StudyQuestion> {
        let figure = headline(point.unthrottled);
        let ranked = point.by(figure)?;
        let cell = |name: &str| {
            let result = |index: &usize| &self.cells()[*index];
            let mut members = point.members.iter().copied();
            members.find(|index| result(index).cell.system.name == name && result(index).status != Status::Skipped)
        };
        let cells = [cell(one)?, cell(other)?];
        let text = format!("{one} or {other} by {}{}", what(figure), place(point));
        let reference = cells.into_iter().find(|cell| self.cells()[*cell].is_reference);
        let state = match (reference, &ranked.placing) {
            (Some(cell), _) => QuestionState::Closed(format!(
                "{} is a reference, which is not ranked",
                self.cells()[cell].cell.system.name
            )),
            _ if ranked.beats(one, other) => QuestionState::Decided(one.to_owned()),
            _ if ranked.beats(other, one) => QuestionState::Decided(other.to_owned()),
            _ if ranked.same(one, other) => QuestionState::Decided("the same".into()),
            (None, Placing::Open { why: why @ (Why::Unusable(_) | Why::Clock(_)), .. }) => {
                QuestionState::Closed(why.text())
            }
            (None, _) => {
                let groups = vec![figure.group()];
                open((cells.to_vec(), true), groups, "neither is shown".into(), ranked.repeats_more())
            }
        };
        Some(StudyQuestion { text: clean(&text, TEXT_CHARS), kind: QuestionKind::Differ, state })
    }

    /// Returns the question about the precision of a figure; `None` if the cell lacks the figure.
    fn of_precision(&self, cell: usize, mut runs: Vec<&RunRecord>, precision: &Precision) -> Option<StudyQuestion> {
        let result = &self.cells()[cell];
        let figure = precision.figure(result.cell.workload.rate == Rate::Max);
        let group = figure.group();
        let name = figure.short_name();
        let text = format!("{name} to within ±{}% of {}", percent(precision), result.cell.label());
        runs.retain(|run| allows(run, group));
        runs.sort_by_key(|run| run.repeat);
        let values: Vec<f64> = runs.iter().filter_map(|run| figure.value(run)).collect();
        let step = values.iter().fold(0.0, |most: f64, value| most.max(value * RESOLUTION));
        let found = precise_figure(Runs { values: &values, step }, precision.share());
        let told = found.and_then(|found| {
            let interval = found.estimate.interval?;
            let words = [found.estimate.value, interval.lo, interval.hi].map(|value| figure.words(value));
            Some(format!("{} ({} to {})", words[0], words[1], words[2]))
        });
        let state = match (found, told) {
            (Some(found), Some(told)) if found.is_precise => QuestionState::Decided(told),
            _ if values.is_empty() && runs.len() >= SETTLED_RUNS => QuestionState::Closed("it is not measured".into()),
            (found, told) => {
                let why = told.unwrap_or_else(|| match values.len() {
                    0 => "not measured yet".into(),
                    runs => format!("{runs} reliable runs: their noise is not known"),
                });
                open((vec![cell], false), vec![group], why, found.and_then(|found| found.more))
            }
        };
        Some(StudyQuestion { text: clean(&text, TEXT_CHARS), kind: QuestionKind::Within, state })
    }

    fn at_point(&self, point: &Point, ranked: &Ranked, figure: Figure) -> QuestionState {
        let members = || point.members.iter().map(|index| (*index, &self.cells()[*index]));
        let rivals = || members().filter(|(_, result)| !result.is_reference && result.status != Status::Skipped);
        let has_runs = |result: &CellResult| result.valid_runs + result.partly_runs >= SETTLED_RUNS;
        let is_settled = rivals().all(|(_, result)| has_runs(result));
        // A property of the workload: each further run has as few.
        let is_short = |result: &CellResult| {
            let reasons = result.all_reasons();
            let short = |count: &ReasonCount| count.reason == Reason::TooFewSamples && count.runs >= result.runs;
            reasons.iter().all(|count| count.reason.leaves_all_messages())
                && reasons.iter().any(|count| short(count) && count.figures.contains(&figure.group()))
        };
        if let Some((_, short)) = rivals().find(|(_, result)| is_short(result)) {
            let name = &short.cell.system.name;
            return QuestionState::Closed(format!("runs of {name} have too few messages for it: measure longer"));
        }
        let why = match &ranked.placing {
            Placing::Winner(winner) => return QuestionState::Decided(winner.clone()),
            Placing::Tie(names) => return QuestionState::Decided(format!("tie: {}", names.join(", "))),
            Placing::Unranked { least, most } => {
                let why = unequal_work(*least, *most);
                if is_settled {
                    return QuestionState::Closed(why);
                }
                why
            }
            Placing::Open { why: why @ Why::Unusable(_), .. } => return QuestionState::Closed(why.text()),
            Placing::Open { why: why @ Why::LowerBound(_), .. } if is_settled => {
                return QuestionState::Closed(why.text());
            }
            Placing::Open { why: Why::TooFew, .. } if rivals().all(|(_, result)| result.runs == 0) => {
                "not measured yet".to_owned()
            }
            Placing::Open { why, .. } => why.text(),
        };
        let may_be_best = |result: &CellResult| ranked.standing(&result.cell.system.name) != Some(Standing::Behind);
        let cells = rivals().filter(|(_, result)| may_be_best(result)).map(|(index, _)| index).collect();
        open((cells, true), vec![figure.group()], why, ranked.repeats_more())
    }
}

/// Returns the place of a point.
fn place(point: &Point) -> String {
    let place = label(&point.axes);
    if place.is_empty() { place } else { format!(" at {place}") }
}

/// The share that was asked for, in per cent.
fn percent(precision: &Precision) -> f64 {
    (precision.share() * 1e8).round() / 1e6
}

fn open(
    (mut cells, compares): (Vec<usize>, bool),
    mut groups: Vec<FigureGroup>,
    why: String,
    blocks_more: Option<u32>,
) -> QuestionState {
    cells.sort_unstable();
    cells.dedup();
    groups.sort_unstable();
    groups.dedup();
    QuestionState::Open { cells, groups, compares, why, blocks_more }
}

/// The figure that ranks, in words.
fn what(figure: Figure) -> &'static str {
    match figure {
        Figure::LATENCY_P50 => "median latency",
        Figure::LATENCY_P99 => "the 99th percentile of latency",
        Figure::DELIVERED => "messages delivered a second",
        other => other.key(),
    }
}
