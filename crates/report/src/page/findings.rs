//! What the records support, in sentences: who is best where and by how much,
//! or that it cannot be told.

use super::explain::{Unit, figure};
use crate::analysis::CellResult;
use crate::figures::Column;
use crate::points::{Point, competing, is_reference, ranked};
use crate::report::Report;
use crate::text::{bytes, clean, count, number, percent, time};
use pubmark_model::cell;
use pubmark_stats::{Better, Estimate, Ranking, Undecided};
use serde::Serialize;
use std::collections::BTreeMap;

/// Longest name of a system or place, characters.
const NAME_CHARS: usize = 80;
/// Systems that a sentence names.
const NAMED_MAX: usize = 3;

/// A sentence.
#[derive(Debug, Serialize, PartialEq, Eq)]
pub struct Finding {
    pub about: &'static str,
    pub outcome: &'static str,
    pub text: String,
}

/// A question that systems are compared by.
struct Question {
    about: &'static str,
    /// What the winner has.
    has: &'static str,
    column: Column,
    better: Better,
    /// Whether it is asked of cells with a given rate, of unthrottled ones, or of both.
    unthrottled: Option<bool>,
}

const QUESTIONS: [Question; 3] = [
    Question {
        about: "latency",
        has: "the lowest median latency",
        column: Column::LatencyP50,
        better: Better::Lower,
        unthrottled: Some(false),
    },
    Question {
        about: "throughput",
        has: "the most messages delivered per second",
        column: Column::Delivered,
        better: Better::Higher,
        unthrottled: Some(true),
    },
    Question {
        about: "cost",
        has: "the least CPU time for a delivered message",
        column: Column::CpuPerMessage,
        better: Better::Lower,
        unthrottled: None,
    },
];

/// The sentences of a report: one for each question that its points ask, and
/// one on what may be quoted.
pub fn findings(report: &Report) -> Vec<Finding> {
    let answers = QUESTIONS.iter().filter_map(|question| answer(question, report));
    answers.chain(validity(report)).collect()
}

/// What the points say to a question.
#[derive(Default)]
struct Tally<'a> {
    /// Points at which each system wins, with its margin over the next.
    wins: BTreeMap<&'a str, usize>,
    ties: usize,
    undecided: usize,
    /// The clearest victory.
    clearest: Option<Victory<'a>>,
}

/// A point won.
struct Victory<'a> {
    point: &'a Point,
    winner: (&'a str, Estimate),
    next: (&'a str, Estimate),
    /// The next one's value over the winner's, or the reverse: above 1.
    factor: f64,
}

fn answer(question: &Question, report: &Report) -> Option<Finding> {
    let cells = report.cells();
    let asked: Vec<&Point> = report
        .points()
        .iter()
        .filter(|point| question.unthrottled.is_none_or(|unthrottled| point.unthrottled == unthrottled))
        .filter(|point| competitors(point, cells) > 1)
        .collect();
    if asked.is_empty() {
        return None;
    }
    let mut tally = Tally::default();
    for point in &asked {
        match ranked(cells, &point.members, question.column, question.better) {
            Ranking::Winner(name) => tally.won(point, &name, question, cells),
            Ranking::Tie(_) => tally.ties += 1,
            Ranking::Undecided(_) => tally.undecided += 1,
        }
    }
    Some(tally.sentence(question, asked.len(), &asked, cells))
}

/// Systems that are to be ranked at a point.
fn competitors(point: &Point, cells: &[CellResult]) -> usize {
    let members = point.members.iter().map(|index| &cells[*index]);
    members.filter(|result| result.cell.skipped.is_none() && !is_reference(&result.cell.system)).count()
}

impl<'a> Tally<'a> {
    fn won(&mut self, point: &'a Point, name: &str, question: &Question, cells: &'a [CellResult]) {
        let entries = competing(cells, &point.members, question.column);
        let Some(winner) = entries.iter().find(|(system, _)| *system == name).copied() else { return };
        *self.wins.entry(winner.0).or_default() += 1;
        let factor = |other: f64| match question.better {
            Better::Lower => other / winner.1.value,
            Better::Higher => winner.1.value / other,
        };
        let others = entries.into_iter().filter(|(system, _)| *system != name);
        let next = others.min_by(|(_, one), (_, other)| factor(one.value).total_cmp(&factor(other.value)));
        if let Some(next) = next
            && factor(next.1.value).is_finite()
            && self.clearest.as_ref().is_none_or(|clearest| clearest.factor < factor(next.1.value))
        {
            self.clearest = Some(Victory { point, winner, next, factor: factor(next.1.value) });
        }
    }

    fn sentence(self, question: &Question, points: usize, asked: &[&Point], cells: &[CellResult]) -> Finding {
        let mut by_wins: Vec<(&str, usize)> = self.wins.iter().map(|(system, wins)| (*system, *wins)).collect();
        by_wins.sort_by_key(|(_, wins)| std::cmp::Reverse(*wins));
        let rest = rest(self.ties, self.undecided);
        let Some(clearest) = self.clearest.filter(|_| !by_wins.is_empty()) else {
            return undecided(question, points, self.ties, self.undecided, asked, cells);
        };
        let text = if points == 1 {
            format!("{} has {}: {}.", name(clearest.winner.0), question.has, clearest.words(question))
        } else {
            let others: Vec<String> = by_wins[1..]
                .iter()
                .take(NAMED_MAX - 1)
                .map(|(system, wins)| format!("{} at {wins}", name(system)))
                .collect();
            let others = if others.is_empty() { String::new() } else { format!(", {}", others.join(", ")) };
            let (first, wins) = by_wins[0];
            let place = clean(&cell::label(&varying(clearest.point, asked)), NAME_CHARS);
            format!(
                "{} has {} at {wins} of {points} points{others}{rest}. Clearest at {place}: {}.",
                name(first),
                question.has,
                clearest.words(question)
            )
        };
        Finding { about: question.about, outcome: "winner", text }
    }
}

impl Victory<'_> {
    fn words(&self, question: &Question) -> String {
        let (winner, next) = (self.winner.1, self.next.1);
        format!(
            "{} {} against {} {}, a factor of {}",
            name(self.winner.0),
            with_interval(question.column, winner),
            name(self.next.0),
            with_interval(question.column, next),
            number(self.factor)
        )
    }
}

fn rest(ties: usize, undecided: usize) -> String {
    let part = |count: usize, word: &str| if count == 0 { String::new() } else { format!("; {count} {word}") };
    let tied = if ties == 1 { "is a tie" } else { "are ties" };
    part(ties, tied) + &part(undecided, "undecided")
}

/// No system wins anywhere.
fn undecided(
    question: &Question,
    points: usize,
    ties: usize,
    undecided: usize,
    asked: &[&Point],
    cells: &[CellResult],
) -> Finding {
    let tie = asked.iter().find_map(|point| match ranked(cells, &point.members, question.column, question.better) {
        Ranking::Tie(names) => Some(names),
        _ => None,
    });
    let (outcome, text) = match tie {
        Some(names) if points == 1 => {
            let names: Vec<String> = names.iter().map(|system| name(system)).collect();
            ("tie", format!("For {} there is a tie: {}; their intervals overlap.", question.has, names.join(", ")))
        }
        Some(_) => {
            ("tie", format!("No system has {} at any of {points} points{}.", question.has, rest(ties, undecided)))
        }
        None => {
            let why =
                asked.iter().find_map(|point| match ranked(cells, &point.members, question.column, question.better) {
                    Ranking::Undecided(undecided) => Some(why(&undecided)),
                    _ => None,
                });
            let why = why.unwrap_or_default();
            ("undecided", format!("Who has {} is undecided: {why}.", question.has))
        }
    };
    Finding { about: question.about, outcome, text }
}

/// Why a ranking says nothing.
pub fn why(undecided: &Undecided) -> String {
    let names = |names: &[String]| clean(&names.join(", "), NAME_CHARS);
    match undecided {
        Undecided::TooFew => "fewer than two systems have a figure that may be quoted".into(),
        Undecided::NoInterval(single) => format!("one run alone has no interval ({})", names(single)),
        Undecided::Unusable(unusable) => format!("no usable figure ({})", names(unusable)),
    }
}

fn validity(report: &Report) -> Option<Finding> {
    let counts = report.counts();
    let made = counts.valid + counts.invalid + counts.failed;
    if made == 0 {
        return Some(Finding { about: "validity", outcome: "note", text: "No run has been made yet.".into() });
    }
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    for count in report.cells().iter().flat_map(|result| &result.reasons) {
        *reasons.entry(count.reason.to_string()).or_default() += count.runs;
    }
    let mut reasons: Vec<(String, usize)> = reasons.into_iter().collect();
    reasons.sort_by_key(|(_, runs)| std::cmp::Reverse(*runs));
    let named: Vec<String> =
        reasons.iter().take(NAMED_MAX).map(|(reason, runs)| format!("{reason} ({runs})")).collect();
    let against = match (counts.invalid, counts.failed) {
        (0, 0) => String::new(),
        (0, failed) => format!("; {failed} could not be made"),
        (_, 0) => format!("; against the others: {}", named.join(", ")),
        (_, failed) => format!("; {failed} could not be made; against the others: {}", named.join(", ")),
    };
    let text = format!("{} of {made} runs may be quoted{against}.", counts.valid);
    let outcome = if counts.valid == made { "winner" } else { "note" };
    Some(Finding { about: "validity", outcome, text })
}

/// The axes of a point that not all points share.
fn varying(point: &Point, all: &[&Point]) -> serde_json::Map<String, serde_json::Value> {
    let varies = |axis: &String| all.iter().any(|other| other.axes.get(axis) != point.axes.get(axis));
    let axes = point.axes.iter().filter(|(axis, _)| varies(axis));
    axes.map(|(axis, value)| (axis.clone(), value.clone())).collect()
}

fn name(system: &str) -> String {
    clean(system, NAME_CHARS)
}

fn with_interval(column: Column, estimate: Estimate) -> String {
    let show = |value: f64| match figure(column).unit {
        Unit::Ns => time(value),
        Unit::PerS => format!("{}/s", count(value)),
        Unit::BytesPerS => format!("{}/s", bytes(value)),
        Unit::Bytes => bytes(value),
        Unit::Share => percent(value),
        Unit::Count => count(value),
        Unit::Cores | Unit::Multiple => number(value),
    };
    match estimate.interval {
        None => show(estimate.value),
        Some(interval) => format!("{} ({} to {})", show(estimate.value), show(interval.lo), show(interval.hi)),
    }
}
