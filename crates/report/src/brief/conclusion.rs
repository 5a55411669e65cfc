//! The conclusion of a block in sentences: the best system of each column, by how much at
//! least, and the repeats that are still needed.

use super::block::{Block, NAME_CHARS};
use crate::notes::repeats;
use crate::points::Point;
use crate::ranking::{Placing, Ranked, Why};
use crate::text::{clean, factor_down, percent};
use pubmark_stats::REPEATS_MORE_MAX;

/// Systems that a sentence names.
const NAMED_MAX: usize = 3;
/// Columns that a sentence names.
const PLACES_MAX: usize = 4;

/// Columns with the same statement.
struct Group<'a> {
    subject: Subject<'a>,
    points: Vec<(&'a Point, &'a Ranked)>,
}

/// The statement about a column, without its numbers.
#[derive(PartialEq)]
enum Subject<'a> {
    Winner(&'a str),
    Tie(Vec<&'a str>),
    /// Several systems may be the best, for this cause.
    Open(Vec<&'a str>, Cause),
    /// The systems delivered different shares.
    Shares,
    /// At most one system has a figure that may be compared.
    Alone(Option<&'a str>),
    /// No run has been made.
    Missing,
}

/// The cause that keeps a column open.
#[derive(PartialEq)]
enum Cause {
    Noise,
    Other(&'static str),
}

/// Returns the sentences of a block, one for columns of which the same is true; none if
/// nothing is ranked there. `tie`: the largest difference of a tie, as a fraction.
pub(crate) fn conclusion(block: &Block<'_>, tie: f64) -> Vec<String> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for point in block.points.iter().copied().filter(|point| point.rivals > 1) {
        let Some(ranked) = point.best() else { continue };
        let subject = subject(block, point, ranked);
        match groups.iter_mut().find(|group| group.subject == subject) {
            Some(group) => group.points.push((point, ranked)),
            None => groups.push(Group { subject, points: vec![(point, ranked)] }),
        }
    }
    groups.iter().map(|group| group.sentence(block, tie)).collect()
}

fn subject<'a>(block: &Block<'a>, point: &'a Point, ranked: &'a Ranked) -> Subject<'a> {
    let why = match &ranked.placing {
        Placing::Winner(winner) => return Subject::Winner(winner),
        Placing::Tie(names) => return Subject::Tie(in_order(block, names.iter().map(String::as_str).collect())),
        Placing::Unranked { .. } => return Subject::Shares,
        Placing::Open { why, .. } => why,
    };
    let cause = match why {
        Why::TooFew => {
            let cells = block.cells;
            let members = || point.members.iter().map(|index| &cells[*index]);
            let is_missing = members().all(|result| result.runs == 0);
            let only = members().map(|result| result.cell.system.name.as_str()).find(|name| ranked.has(name));
            return if is_missing { Subject::Missing } else { Subject::Alone(only) };
        }
        Why::Noise(_) => Cause::Noise,
        Why::Unusable(_) => Cause::Other("a figure is not usable"),
        Why::TooFewBlocks(_) => Cause::Other("2 repeats are needed"),
        Why::Disturbed(_) => Cause::Other("runs are unreliable"),
        Why::Clock(_) => Cause::Other("the difference is within the clock error"),
        Why::LowerBound(_) => Cause::Other("the load generator was at its limit"),
    };
    Subject::Open(in_order(block, ranked.candidates()), cause)
}

/// Returns names in the order of the study, so that equal statements are told once.
fn in_order<'a>(block: &Block<'a>, mut names: Vec<&'a str>) -> Vec<&'a str> {
    let systems = block.systems();
    names.sort_by_key(|name| systems.iter().position(|system| system.name == *name));
    names
}

impl<'a> Group<'a> {
    fn sentence(&self, block: &Block<'a>, tie: f64) -> String {
        let behind = self.behind(block);
        let says = match &self.subject {
            Subject::Winner(winner) => format!("{} wins{}", name(winner), led(": ", &behind)),
            Subject::Tie(names) => {
                let bound = (tie * 1e4).round() / 100.0;
                let names = listed(names, "and");
                format!("{names} tie, they differ by less than {bound} %{}", led("; ", &behind))
            }
            Subject::Open(names, cause) => {
                let names = listed(names, "or");
                format!("{names} may be best ({}){}", self.needed(cause), led("; ", &behind))
            }
            Subject::Shares => {
                format!("not comparable, because the delivered shares differ ({})", self.shares())
            }
            Subject::Alone(None) => "not comparable, because no system has a reliable figure".into(),
            Subject::Alone(Some(only)) => {
                format!("not comparable, because only {} has a reliable figure", name(only))
            }
            Subject::Missing => "not measured yet".into(),
        };
        format!("{}{says}.", self.places(block))
    }

    /// Returns the columns, with a colon; nothing if the statement is about all of them.
    fn places(&self, block: &Block<'a>) -> String {
        let is_ranked = matches!(self.subject, Subject::Winner(_) | Subject::Tie(_) | Subject::Open(..));
        if self.points.len() == block.points.len() {
            return if is_ranked && block.points.len() > 1 { "everywhere: ".into() } else { String::new() };
        }
        let mut names: Vec<String> =
            self.points.iter().take(PLACES_MAX).map(|(point, _)| block.column(point)).collect();
        if self.points.len() > PLACES_MAX {
            names.push(format!("{} more", self.points.len() - PLACES_MAX));
        }
        format!("{}: ", names.join(", "))
    }

    /// Returns the number of repeats that are still needed, or another cause.
    fn needed(&self, cause: &Cause) -> String {
        if let Cause::Other(why) = cause {
            return (*why).to_owned();
        }
        let more: Option<Vec<u32>> = self.points.iter().map(|(_, ranked)| ranked.repeats_more()).collect();
        let ends = more.as_deref().and_then(|more| more.iter().min().zip(more.iter().max()));
        match ends {
            Some((least, most)) if least == most => format!("about {}", repeats(*most)),
            Some((least, most)) => format!("about {least} to {}", repeats(*most)),
            None => format!("more than {REPEATS_MORE_MAX} more repeats"),
        }
    }

    /// Returns the least and the greatest share that a system delivered.
    fn shares(&self) -> String {
        let ends = self.points.iter().filter_map(|(_, ranked)| match ranked.placing {
            Placing::Unranked { least, most } => Some((least, most)),
            _ => None,
        });
        let (least, most) =
            ends.fold((f64::INFINITY, 0.0), |all: (f64, f64), one| (all.0.min(one.0), all.1.max(one.1)));
        format!("{} to {}", percent(least), percent(most))
    }

    /// Returns the systems that are behind, each with the smallest lower bound of its
    /// distance to the best over these columns.
    fn behind(&self, block: &Block<'a>) -> String {
        let mut bounds: Vec<(&str, f64)> = Vec::new();
        for system in block.systems() {
            let bound = |(_, ranked): &(&Point, &Ranked)| {
                let is_behind = ranked.has(system.name) && !ranked.candidates().contains(&system.name);
                is_behind.then(|| ranked.distance(system.name).map_or(1.0, |distance| distance.at_least))
            };
            let least = self.points.iter().filter_map(bound).reduce(f64::min);
            bounds.extend(least.map(|least| (system.name, least)));
        }
        bounds.sort_by(|one, other| one.1.total_cmp(&other.1));
        let verb = if block.unthrottled { ("delivers at least", "fewer") } else { ("takes at least", "as long") };
        let mut has_verb = false;
        let mut named: Vec<String> = Vec::new();
        for (system, least) in bounds.iter().take(NAMED_MAX) {
            named.push(match factor(*least) {
                None => format!("{} is behind", name(system)),
                Some(factor) if has_verb => format!("{} {factor}×", name(system)),
                Some(factor) => format!("{} {} {factor}× {}", name(system), verb.0, verb.1),
            });
            has_verb |= factor(*least).is_some();
        }
        let more = bounds.len().saturating_sub(NAMED_MAX);
        let more = if more == 0 { String::new() } else { format!(", {more} more are further behind") };
        named.join(", ") + &more
    }
}

/// Returns a factor rounded down; none if that leaves 1.
fn factor(least: f64) -> Option<String> {
    match least {
        least if least >= 1.1 => Some(factor_down(least)),
        least if least >= 1.01 => Some(format!("{:.2}", (least * 100.0 + 1e-9).floor() / 100.0)),
        _ => None,
    }
}

fn name(system: &str) -> String {
    clean(system, NAME_CHARS)
}

/// Returns `a, b or c`, or `a, b, c or 2 more`.
fn listed(names: &[&str], word: &str) -> String {
    let mut all: Vec<String> = names.iter().take(NAMED_MAX).map(|system| name(system)).collect();
    if names.len() > NAMED_MAX {
        all.push(format!("{} more", names.len() - NAMED_MAX));
    }
    match all.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, first)) => format!("{} {word} {last}", first.join(", ")),
        None => String::new(),
    }
}

/// Returns a text after its lead; nothing if the text is empty.
fn led(lead: &str, text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("{lead}{text}") }
}
