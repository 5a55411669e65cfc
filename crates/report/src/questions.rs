//! The questions of a study that is measured until they are decided: which are
//! decided, and what has to be measured for the others.

use crate::analysis::{CellResult, Status};
use crate::claims::{ClaimOutcome, ClaimResult, open_points};
use crate::figures::Column;
use crate::points::{Point, headline};
use crate::ranking::{Placing, Ranked, RankingRules, Standing, Why};
use crate::report::Report;
use crate::text::clean;
use pubmark_model::cell::label;
use pubmark_model::claim::Figure;
use pubmark_model::record::{FigureGroup, Reason};

/// Longest question and answer that is shown, characters.
const TEXT_CHARS: usize = 160;

/// Runs of each system after which what no test can decide is believed to stay so: a
/// generator at its limit, and shares that differ.
const SETTLED_RUNS: usize = 3;

/// A question that a study asks.
#[derive(Clone, Debug, PartialEq)]
pub struct StudyQuestion {
    /// In words.
    pub text: String,
    /// Whether it is one of the study's claims; otherwise it is who is best at a point.
    pub is_claim: bool,
    /// How it stands.
    pub state: QuestionState,
}

/// How a question stands.
#[derive(Clone, Debug, PartialEq)]
pub enum QuestionState {
    /// It has an answer.
    Decided(String),
    /// Further runs of these cells may decide it.
    Open {
        /// As indices into [`Report::cells`], ascending.
        cells: Vec<usize>,
        /// The figures that runs have to be quotable for.
        groups: Vec<FigureGroup>,
        /// What stands in the way.
        why: String,
        /// About how many more blocks would tell; none where that cannot be said.
        blocks_more: Option<u32>,
    },
    /// Further runs do not decide it, and why.
    Closed(String),
}

impl Report {
    /// The questions of the study: its claims, then who is best at each point by the
    /// figure that the tables rank by.
    pub fn questions(&self) -> Vec<StudyQuestion> {
        let claims = self.claims().iter().map(|claim| self.of_claim(claim));
        let points = self.points().iter().filter_map(|point| self.of_point(point));
        claims.chain(points).collect()
    }

    /// Why runs of a cell do not count for these figures, most frequent reason first;
    /// whether the machine has its part in all of them.
    pub fn why_not_counted(&self, cell: usize, groups: &[FigureGroup]) -> Option<(String, bool)> {
        let result = self.cells().get(cell)?;
        let all = result.all_reasons();
        let touching = all.iter().filter(|count| count.figures.iter().any(|figures| groups.contains(figures)));
        let touching: Vec<_> = touching.collect();
        let words: Vec<String> = touching.iter().map(|count| count.reason.to_string()).collect();
        // What a noisy machine does to the generator is the machine's doing as well.
        let most = touching.iter().map(|count| count.runs).max().unwrap_or(0);
        let is_machine = touching.iter().any(|count| count.reason == Reason::NoisyMachine && count.runs == most);
        let words = if words.is_empty() { vec!["failed".to_owned()] } else { words };
        Some((words.join(", "), is_machine))
    }

    fn of_claim(&self, claim: &ClaimResult) -> StudyQuestion {
        let text = clean(&format!("claim {}: {}", claim.id, claim.says), TEXT_CHARS);
        let state = match claim.outcome {
            ClaimOutcome::Undecided => self.open_claim(claim),
            outcome => QuestionState::Decided(format!("{outcome} ({})", claim.evidence())),
        };
        StudyQuestion { text, is_claim: true, state }
    }

    fn open_claim(&self, claim: &ClaimResult) -> QuestionState {
        let rules = RankingRules::of(self.study());
        let (mut cells, mut groups, mut blocks_more) = (Vec::new(), Vec::new(), Some(1));
        let parts = self.study().claims.iter().filter(|part| part.id == claim.id);
        for (part, result) in parts.zip(&claim.parts).filter(|(_, result)| result.outcome == ClaimOutcome::Undecided) {
            let open = open_points(part, self.points(), self.cells(), rules);
            debug_assert!(open.len() <= result.open);
            for point in open.into_iter().filter(|point| !point.cells.is_empty()) {
                cells.extend(point.cells);
                groups.push(Column::from(part.figure).group());
                blocks_more = blocks_more.zip(point.blocks_more).map(|(one, other)| one.max(other));
            }
        }
        let evidence = claim.evidence();
        if cells.is_empty() {
            return QuestionState::Closed(format!("{evidence}: more runs change nothing, as systems tie there"));
        }
        open(cells, groups, evidence, blocks_more)
    }

    /// None where there are not two systems that could be compared.
    fn of_point(&self, point: &Point) -> Option<StudyQuestion> {
        let ranked = point.best().filter(|_| point.rivals > 1)?;
        let figure = headline(point.unthrottled);
        let place = label(&point.axes);
        let place = if place.is_empty() { String::new() } else { format!(" at {place}") };
        let text = clean(&format!("best by {}{place}", what(figure)), TEXT_CHARS);
        Some(StudyQuestion { text, is_claim: false, state: self.at_point(point, ranked, figure) })
    }

    fn at_point(&self, point: &Point, ranked: &Ranked, figure: Figure) -> QuestionState {
        let members = || point.members.iter().map(|index| (*index, &self.cells()[*index]));
        let rivals = || members().filter(|(_, result)| !result.is_reference && result.status != Status::Skipped);
        let has_runs = |result: &CellResult| result.valid_runs + result.partly_runs >= SETTLED_RUNS;
        let is_settled = rivals().all(|(_, result)| has_runs(result));
        let why = match &ranked.placing {
            Placing::Winner(winner) => return QuestionState::Decided(winner.clone()),
            Placing::Tie(names) => return QuestionState::Decided(format!("tie: {}", names.join(", "))),
            Placing::Unranked { least, most } => {
                let why = format!(
                    "shares delivered differ ({} to {}): these are not rates of the same work",
                    crate::text::percent(*least),
                    crate::text::percent(*most)
                );
                if is_settled {
                    return QuestionState::Closed(why);
                }
                why
            }
            Placing::Undecided { why: why @ Why::Unusable(_), .. } => return QuestionState::Closed(why.text()),
            Placing::Undecided { why: why @ Why::LowerBound(_), .. } if is_settled => {
                return QuestionState::Closed(why.text());
            }
            Placing::Undecided { why: Why::TooFew, .. } if rivals().all(|(_, result)| result.runs == 0) => {
                "not measured yet".to_owned()
            }
            Placing::Undecided { why, .. } => why.text(),
        };
        let may_be_best = |result: &CellResult| ranked.standing(&result.cell.system) != Some(Standing::Behind);
        let cells = rivals().filter(|(_, result)| may_be_best(result)).map(|(index, _)| index).collect();
        open(cells, vec![Column::from(figure).group()], why, ranked.repeats_more())
    }
}

fn open(mut cells: Vec<usize>, mut groups: Vec<FigureGroup>, why: String, blocks_more: Option<u32>) -> QuestionState {
    cells.sort_unstable();
    cells.dedup();
    groups.sort_unstable();
    groups.dedup();
    QuestionState::Open { cells, groups, why, blocks_more }
}

/// The figure that ranks, in words.
fn what(figure: Figure) -> &'static str {
    match figure {
        Figure::LatencyP50 => "median latency",
        Figure::Delivered => "messages delivered a second",
        other => other.word(),
    }
}
