//! Conclusions from the records in sentences: the best system at each point and its distance, or
//! that it is open.

mod delivery;
pub(crate) mod machine;
mod sentence;

pub(crate) use sentence::Sentence;

use crate::analysis::CellResult;
use crate::columns::CLOCK;
use crate::figures::{Sign, shown};
use crate::notes::repeats;
use crate::points::Point;
use crate::ranking::{Placing, Ranked, Why};
use crate::report::Report;
use crate::settings;
use crate::text::{clean, factor_down, number, percent};
use crate::words::{NOT_COMPARABLE, OPEN};
use pubmark_model::cell;
use pubmark_model::figure::Figure;
use sentence::{NAME_CHARS, NAMED_MAX, name};
use std::collections::BTreeMap;

/// A question that systems are compared by.
struct Question {
    about: &'static str,
    /// Text for the winner's property.
    has: &'static str,
    figure: Figure,
    /// `Some(true)` if the question is about unthrottled cells only, `Some(false)` for cells with a
    /// rate only, `None` for both.
    unthrottled: Option<bool>,
}

const QUESTIONS: [Question; 3] = [
    Question {
        about: "latency",
        has: "the lowest median latency",
        figure: Figure::LATENCY_P50,
        unthrottled: Some(false),
    },
    Question {
        about: "throughput",
        has: "the most messages delivered per second",
        figure: Figure::DELIVERED,
        unthrottled: Some(true),
    },
    Question {
        about: "cost",
        has: "the least CPU time for a delivered message",
        figure: Figure::CPU_PER_MESSAGE,
        unthrottled: None,
    },
];

/// The sentences of a report: what became of acknowledged messages, one for
/// each question that its points ask, and one on what may be quoted.
pub(crate) fn findings(report: &Report) -> Vec<Sentence> {
    let answers = QUESTIONS.iter().filter_map(|question| answer(question, report));
    let capacities = report.capacities();
    let capacities =
        capacities.iter().map(|found| Sentence { about: "capacity", outcome: "note", text: found.sentence() });
    let arms = report.arms().map(|arms| arms.sentences()).unwrap_or_default().into_iter();
    let arms = arms.map(|text| Sentence { about: "arms", outcome: "note", text });
    let first = machine::finding(report).into_iter().chain(arms).chain(capacities).chain(delivery::finding(report));
    first.chain(answers).chain(validity(report)).collect()
}

/// Results of the points for a question.
struct Answers<'a> {
    question: &'a Question,
    cells: &'a [CellResult],
    /// The points that ask it, each with who is best there.
    asked: Vec<(&'a Point, &'a Ranked)>,
    /// Bound of a tie, as a fraction.
    tie: f64,
}

/// A point won.
struct Victory<'a> {
    point: &'a Point,
    winner: &'a CellResult,
    next: &'a CellResult,
    /// The next one's value over the winner's, or the reverse: above 1.
    factor: f64,
}

fn answer(question: &Question, report: &Report) -> Option<Sentence> {
    let is_asked = |point: &&Point| {
        question.unthrottled.is_none_or(|unthrottled| point.unthrottled == unthrottled) && point.rivals > 1
    };
    let ranked = |point| Some((point, Point::by(point, question.figure)?));
    let asked: Vec<(&Point, &Ranked)> = report.points().iter().filter(is_asked).filter_map(ranked).collect();
    let answers = Answers { question, cells: report.cells(), asked, tie: report.study().tie() };
    (!answers.asked.is_empty()).then(|| {
        let mut finding = answers.sentence();
        if finding.outcome == "winner" || finding.outcome == "tie" {
            finding.text.push_str(&settings::behind(report, &answers.systems(), answers.column().group()));
        }
        finding
    })
}

impl<'a> Answers<'a> {
    fn count(&self, is: fn(&Placing) -> bool) -> usize {
        self.asked.iter().filter(|(_, ranked)| is(&ranked.placing)).count()
    }

    /// The systems that are compared, each once.
    fn systems(&self) -> Vec<&'a str> {
        let members = self.asked.iter().flat_map(|(point, _)| self.by_value(point));
        let mut systems: Vec<&str> = members.map(|result| result.cell.system.name.as_str()).collect();
        systems.sort_unstable();
        systems.dedup();
        systems
    }

    /// The members of a point that have the figure, best value first.
    fn by_value(&self, point: &Point) -> Vec<&'a CellResult> {
        let column = self.column();
        let ranks = point.by(self.question.figure);
        let members = point.members.iter().map(|index| &self.cells[*index]);
        let mut members: Vec<&CellResult> =
            members.filter(|result| ranks.is_some_and(|ranks| ranks.has(&result.cell.system.name))).collect();
        let value = |result: &CellResult| result.figures.get(column).map_or(f64::NAN, |estimate| estimate.value);
        members.sort_by(|one, other| value(one).total_cmp(&value(other)));
        if self.question.figure.higher_is_better() {
            members.reverse();
        }
        members
    }

    fn column(&self) -> Figure {
        self.question.figure
    }

    fn victory(&self, point: &'a Point, name: &str) -> Option<Victory<'a>> {
        let members = self.by_value(point);
        let winner = members.iter().copied().find(|result| result.cell.system.name == name)?;
        let next = members.into_iter().find(|result| result.cell.system.name != name)?;
        let figure = |result: &CellResult| result.figures.get(self.column()).map(|estimate| estimate.value);
        let (own, other) = (figure(winner)?, figure(next)?);
        let factor = if self.question.figure.higher_is_better() { own / other } else { other / own };
        factor.is_finite().then_some(Victory { point, winner, next, factor })
    }

    fn sentence(&self) -> Sentence {
        let mut wins: BTreeMap<&str, usize> = BTreeMap::new();
        let mut clearest: Option<Victory<'_>> = None;
        for (point, ranked) in &self.asked {
            let Placing::Winner(winner) = &ranked.placing else { continue };
            *wins.entry(winner).or_default() += 1;
            if let Some(victory) = self.victory(point, winner)
                && clearest.as_ref().is_none_or(|clearest| clearest.factor < victory.factor)
            {
                clearest = Some(victory);
            }
        }
        let mut by_wins: Vec<(&str, usize)> = wins.into_iter().collect();
        by_wins.sort_by_key(|(_, wins)| std::cmp::Reverse(*wins));
        let Some(clearest) = clearest else { return self.without_winner() };
        let Question { about, has, .. } = self.question;
        let points = self.asked.len();
        let open = self.asked.iter().find(|(_, ranked)| matches!(ranked.placing, Placing::Open { .. }));
        let text = if points == 1 {
            format!("{} has {has}: {}.", name(&clearest.winner.cell.system.name), self.words(&clearest))
        } else {
            let others: Vec<String> = by_wins[1..]
                .iter()
                .take(NAMED_MAX - 1)
                .map(|(system, wins)| format!("{} at {wins}", name(system)))
                .collect();
            let others = if others.is_empty() { String::new() } else { format!(", {}", others.join(", ")) };
            let (first, wins) = by_wins[0];
            let open = open.map(|(point, ranked)| format!(" {}: {}.", self.place(point), self.candidates(ranked)));
            format!(
                "{} has {has} at {wins} of {points} points{others}{}. Clearest at {}: {}.{}",
                name(first),
                self.rest(),
                self.place(clearest.point),
                self.words(&clearest),
                open.unwrap_or_default()
            )
        };
        Sentence { about, outcome: "winner", text }
    }

    fn words(&self, victory: &Victory<'_>) -> String {
        format!(
            "{} against {}, a factor of {}",
            self.shown(victory.winner),
            self.shown(victory.next),
            number(victory.factor)
        )
    }

    /// A system with its figure; a throughput with the share that it delivered.
    fn shown(&self, result: &CellResult) -> String {
        let column = self.column();
        let sign = if result.figures.sign(column) == Sign::AtLeast { "≥ " } else { "" };
        let share = match (column, result.figures.get(Figure::DELIVERED_RATIO)) {
            (Figure::DELIVERED, Some(share)) => format!(", {} delivered", percent(share.value)),
            _ => String::new(),
        };
        let Some(estimate) = result.figures.get(column) else { return name(&result.cell.system.name) };
        let show = |value: f64| shown(column, value);
        let clock = result.figures.clock_bound(column);
        let clock = clock.map_or_else(String::new, |bound| format!(" ± {}{CLOCK}", show(bound)));
        let value = format!("{} {sign}{}{clock}", name(&result.cell.system.name), show(estimate.value));
        match (estimate.interval, share.as_str()) {
            (None, "") => value,
            (None, share) => format!("{value} ({})", &share[2..]),
            (Some(interval), share) => format!("{value} ({} to {}{share})", show(interval.lo), show(interval.hi)),
        }
    }

    /// Returns the place of a point among the points of the question.
    fn place(&self, point: &Point) -> String {
        let all: Vec<&Point> = self.asked.iter().map(|(point, _)| *point).collect();
        clean(&cell::label(&varying(point, &all)), NAME_CHARS)
    }

    /// Describes the points without a winner.
    fn rest(&self) -> String {
        let part = |count: usize, word: &str| if count == 0 { String::new() } else { format!("; {count} {word}") };
        let ties = self.count(|placing| matches!(placing, Placing::Tie(_)));
        let tied = if ties == 1 { "is a tie" } else { "are ties" };
        part(ties, tied)
            + &part(self.count(|placing| matches!(placing, Placing::Open { .. })), OPEN)
            + &part(self.count(|placing| matches!(placing, Placing::Unranked { .. })), NOT_COMPARABLE)
    }

    /// No system wins anywhere.
    fn without_winner(&self) -> Sentence {
        let Question { about, has, .. } = self.question;
        let points = self.asked.len();
        let first = |is: fn(&Placing) -> bool| self.asked.iter().find(|(_, ranked)| is(&ranked.placing)).copied();
        let tie = first(|placing| matches!(placing, Placing::Tie(_)));
        let unranked = first(|placing| matches!(placing, Placing::Unranked { .. }));
        let (outcome, text) = if let Some(Placing::Tie(names)) = tie.map(|(_, ranked)| &ranked.placing) {
            let text = if points == 1 {
                let names: Vec<String> = names.iter().map(|system| name(system)).collect();
                format!(
                    "For {has} there is a tie: {}; they differ by less than {} %.",
                    names.join(", "),
                    (self.tie * 1e4).round() / 100.0
                )
            } else {
                format!("No system has {has} at any of {points} points{}.", self.rest())
            };
            ("tie", text)
        } else if let Some((point, _)) = unranked {
            let (everywhere, place) = match points {
                1 => (String::new(), String::new()),
                _ => (format!(" at any of {points} points{}", self.rest()), format!(" At {}:", self.place(point))),
            };
            let shown: Vec<String> =
                self.by_value(point).into_iter().take(NAMED_MAX).map(|result| self.shown(result)).collect();
            let text =
                format!("No ranking by {about}{everywhere}: the shares delivered differ.{place} {}.", shown.join("; "));
            ("unranked", text)
        } else {
            ("open", format!("Which system has {has} is {OPEN}{}.", self.open()))
        };
        Sentence { about, outcome, text }
    }

    /// Describes points of which none has a winner, and what would decide them.
    fn open(&self) -> String {
        let open = |ranked: &Ranked| match &ranked.placing {
            Placing::Open { why, .. } => Some(why.clone()),
            _ => None,
        };
        let named = self.asked.iter().filter(|(_, ranked)| !ranked.candidates().is_empty());
        let named: Vec<String> = named
            .take(NAMED_MAX)
            .map(|(point, ranked)| {
                let place = if self.asked.len() == 1 { String::new() } else { format!("{}: ", self.place(point)) };
                format!("{place}{}", self.candidates(ranked))
            })
            .collect();
        if named.is_empty() {
            let why = self.asked.iter().find_map(|(_, ranked)| open(ranked));
            return why.map(|why| format!(": {}", why.text())).unwrap_or_default();
        }
        format!(": {}", named.join("; "))
    }

    /// Returns who may be the best at a point, and how far the others are behind at least:
    /// `zeromq or nanomsg (about 2 more repeats needed); nng takes at least 5.6 times as much`.
    fn candidates(&self, ranked: &Ranked) -> String {
        let candidates = ranked.candidates();
        let named: Vec<String> = candidates.iter().take(NAMED_MAX).map(|system| name(system)).collect();
        let more = candidates.len().saturating_sub(NAMED_MAX);
        let others = if more == 0 { String::new() } else { format!(" or {more} more") };
        let why = match &ranked.placing {
            Placing::Open { why: Why::Noise(_), repeats_more: Some(more) } => {
                format!(" (about {} needed)", repeats(*more))
            }
            Placing::Open { why: Why::Noise(_), .. } => String::new(),
            Placing::Open { why, .. } => format!(" ({})", why.text()),
            _ => String::new(),
        };
        let behind = |system: &'a str| {
            let distance = ranked.distance(system).filter(|_| !candidates.contains(&system))?;
            Some((system, distance.at_least)).filter(|(_, least)| *least > 1.0)
        };
        let mut behind: Vec<(&str, f64)> = self.systems().into_iter().filter_map(behind).collect();
        behind.sort_by(|one, other| one.1.total_cmp(&other.1));
        let verb = if self.question.figure.higher_is_better() { "fewer" } else { "as much" };
        let behind = match behind.as_slice() {
            [] => String::new(),
            [(system, least)] if verb == "as much" => {
                format!("; {} takes at least {} times as much", name(system), factor_down(*least))
            }
            [(system, least)] => format!("; {} has at least {} times fewer", name(system), factor_down(*least)),
            all => {
                let all: Vec<String> = all
                    .iter()
                    .take(NAMED_MAX)
                    .map(|(system, least)| format!("{} {}×", name(system), factor_down(*least)))
                    .collect();
                format!("; behind by at least: {}", all.join(", "))
            }
        };
        format!("{}{others}{why}{behind}", named.join(" or "))
    }
}

fn validity(report: &Report) -> Option<Sentence> {
    let counts = report.counts();
    let made = counts.made();
    if made == 0 {
        return Some(Sentence { about: "validity", outcome: "note", text: "No run yet.".into() });
    }
    let outcome = if counts.valid == made { "winner" } else { "note" };
    Some(Sentence { about: "validity", outcome, text: report.states(NAMED_MAX) })
}

/// The axes of a point that not all points share.
fn varying(point: &Point, all: &[&Point]) -> serde_json::Map<String, serde_json::Value> {
    let varies = |axis: &String| all.iter().any(|other| other.axes.get(axis) != point.axes.get(axis));
    let axes = point.axes.iter().filter(|(axis, _)| varies(axis));
    axes.map(|(axis, value)| (axis.clone(), value.clone())).collect()
}
