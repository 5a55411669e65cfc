//! Which systems are best at each point by a figure: a test within blocks,
//! corrected for all comparisons of a table ([`pubmark_stats::rank_table`]).
//!
//! Two things that a test cannot know are added. A throughput is no rank where
//! the shares that were delivered differ: what loses most may well be fastest.
//! And where the generator was at its limit, what a system reached is a lower
//! bound: it may win by it, and is never behind by it.

use crate::analysis::CellResult;
use crate::figures::{Column, Sign};
use crate::points::{Point, is_reference};
use crate::text::clean;
use pubmark_model::claim::Figure;
use pubmark_stats::{Better, Blocks, RankedPoint, SAME_WITHIN, Table, rank_table};
use std::collections::BTreeSet;

/// The share of tables of equal systems in which any may be called different or
/// the same wrongly, at most.
const ALPHA: f64 = 0.05;

/// Longest list of systems in a sentence, characters.
const NAMES_CHARS: usize = 80;

/// What is said of the systems of a point by a figure.
#[derive(Clone, Debug)]
pub struct Ranked {
    /// Who is best.
    pub placing: Placing,
    /// Those that have a figure that may be quoted.
    systems: Vec<Contender>,
    tested: RankedPoint,
}

/// A system that is ranked.
#[derive(Clone, Debug)]
struct Contender {
    name: String,
    /// Whether it reached at least what its figure says.
    is_lower_bound: bool,
    /// The share that it delivered, where the figure is no figure without it.
    share: Option<f64>,
}

/// Who is best at a point.
#[derive(Clone, Debug, PartialEq)]
pub enum Placing {
    /// This one is shown to be better than each other.
    Winner(String),
    /// These are shown to differ by less than the bound, and all others to be
    /// worse; what looks best first.
    Tie(Vec<String>),
    /// Neither is shown.
    Undecided {
        /// What stands in the way.
        why: Why,
        /// About how many more repeats would tell; none where that cannot be said.
        repeats_more: Option<u32>,
    },
    /// The shares that were delivered differ, from the least to the greatest:
    /// the figures are not of the same work.
    Unranked {
        /// The least share.
        least: f64,
        /// The greatest.
        most: f64,
    },
}

/// Why nothing is said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// Fewer than two systems have a figure that may be quoted.
    TooFew,
    /// These have a value that is no number.
    Unusable(Vec<String>),
    /// These share fewer than two blocks with a rival.
    TooFewBlocks(Vec<String>),
    /// The differences to these are within the noise, which is too large to call
    /// them the same.
    Noise(Vec<String>),
    /// These reached at least what their figure says, and may reach more.
    LowerBound(Vec<String>),
}

/// Where a system stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It is the winner.
    Winner,
    /// It is one of those that tie for the best.
    Tie,
    /// Another is shown to be better.
    Behind,
    /// Neither is shown.
    Undecided,
    /// It delivered another share than others.
    Unranked,
    /// No other has a figure that may be quoted.
    Alone,
}

impl Ranked {
    /// Where a system stands; none where it has no figure that may be quoted.
    pub fn standing(&self, system: &str) -> Option<Standing> {
        let place = self.place(system)?;
        let is_behind = || (0..self.systems.len()).any(|other| self.at_beats(other, place));
        Some(match &self.placing {
            Placing::Winner(winner) if winner == system => Standing::Winner,
            Placing::Tie(names) if names.iter().any(|name| name == system) => Standing::Tie,
            Placing::Winner(_) | Placing::Tie(_) => Standing::Behind,
            Placing::Undecided { why: Why::TooFew, .. } => Standing::Alone,
            _ if is_behind() => Standing::Behind,
            Placing::Undecided { .. } => Standing::Undecided,
            Placing::Unranked { .. } => Standing::Unranked,
        })
    }

    /// Whether one is shown to be better than another.
    pub fn beats(&self, one: &str, other: &str) -> bool {
        self.place(one).zip(self.place(other)).is_some_and(|(one, other)| self.at_beats(one, other))
    }

    /// Whether a system has a figure that may be quoted.
    pub fn has(&self, system: &str) -> bool {
        self.place(system).is_some()
    }

    /// About how many more repeats would tell who is best.
    pub fn repeats_more(&self) -> Option<u32> {
        match self.placing {
            Placing::Undecided { repeats_more, .. } => repeats_more,
            _ => None,
        }
    }

    fn place(&self, system: &str) -> Option<usize> {
        self.systems.iter().position(|contender| contender.name == system)
    }

    fn at_beats(&self, one: usize, other: usize) -> bool {
        let (better, worse) = (&self.systems[one], &self.systems[other]);
        self.tested.beats(one, other) && !worse.is_lower_bound && alike(better.share, worse.share)
    }
}

impl Why {
    /// In words.
    pub(crate) fn text(&self) -> String {
        let names = |names: &[String]| clean(&names.join(", "), NAMES_CHARS);
        match self {
            Why::TooFew => "fewer than two systems have a figure that may be quoted".into(),
            Why::Unusable(unusable) => format!("no usable figure ({})", names(unusable)),
            Why::TooFewBlocks(few) => {
                format!("fewer than two repeats in which both systems may be quoted ({}); more decide it", names(few))
            }
            Why::Noise(near) => format!("the differences are within the noise ({})", names(near)),
            Why::LowerBound(bounded) => {
                format!("the load generator was at its limit, and these may reach more ({})", names(bounded))
            }
        }
    }
}

/// Whether two shares are so near that throughputs can be compared.
fn alike(one: Option<f64>, other: Option<f64>) -> bool {
    one.zip(other).is_none_or(|(one, other)| one.max(other) <= one.min(other) * (1.0 + SAME_WITHIN))
}

/// Ranks the systems at each point by a figure. Points that stand in one table
/// (of one part of the study, at given rates or unthrottled) are corrected for
/// together. References are ranked only where they are among `also`.
pub(crate) fn ranked(cells: &[CellResult], points: &[Point], figure: Figure, also: &[String]) -> Vec<Ranked> {
    let mut found: Vec<Option<Ranked>> = points.iter().map(|_| None).collect();
    /// Part of the study, and whether messages are sent as fast as they go.
    type Kind<'a> = (Option<&'a str>, bool);
    let mut tables: Vec<(Kind<'_>, Vec<usize>)> = Vec::new();
    for (number, point) in points.iter().enumerate() {
        let key = (point.part(), point.unthrottled);
        match tables.iter_mut().find(|(other, _)| *other == key) {
            Some((_, numbers)) => numbers.push(number),
            None => tables.push((key, vec![number])),
        }
    }
    for (_, numbers) in tables {
        let contenders: Vec<Vec<(Contender, Blocks)>> =
            numbers.iter().map(|number| contenders(cells, &points[*number], figure, also)).collect();
        let better = if figure.higher_is_better() { Better::Higher } else { Better::Lower };
        let blocks = |of: &Vec<(Contender, Blocks)>| of.iter().map(|(_, blocks)| blocks.clone()).collect();
        let tested = rank_table(&Table {
            points: contenders.iter().map(|of| pubmark_stats::Point { systems: blocks(of), better }).collect(),
            bound: SAME_WITHIN,
            alpha: ALPHA,
        });
        for ((number, contenders), tested) in numbers.into_iter().zip(contenders).zip(tested.points) {
            let systems: Vec<Contender> = contenders.into_iter().map(|(contender, _)| contender).collect();
            found[number] = Some(Ranked { placing: placing(&systems, &tested), systems, tested });
        }
    }
    found.into_iter().flatten().collect()
}

/// Those of a point that have a figure that may be quoted, with what their runs
/// say by block.
fn contenders(cells: &[CellResult], point: &Point, figure: Figure, also: &[String]) -> Vec<(Contender, Blocks)> {
    let column = Column::from(figure);
    let members = point.members.iter().map(|index| &cells[*index]);
    let ranked: Vec<&CellResult> = members
        .filter(|result| !is_reference(&result.cell.system) || also.contains(&result.cell.system))
        .filter(|result| result.quotable(column).is_some())
        .collect();
    // Numbers of repeats come from files: they are told apart, not counted up to.
    let readings = |result: &&CellResult| result.figures.each(column).to_vec();
    let repeats: BTreeSet<u32> = ranked.iter().flat_map(readings).map(|reading| reading.repeat).collect();
    let needs_share = figure == Figure::Delivered && point.unthrottled;
    let contender = |result: &&CellResult| {
        let each = result.figures.each(column);
        let of = |repeat: &u32| each.iter().find(|reading| reading.repeat == *repeat).map(|reading| reading.value);
        let share = result.figures.get(Column::DeliveredRatio).map(|share| share.value);
        let contender = Contender {
            name: result.cell.system.clone(),
            is_lower_bound: result.figures.sign(column) == Sign::AtLeast,
            share: share.filter(|_| needs_share),
        };
        let step = each.iter().map(|reading| reading.step).fold(0.0, f64::max);
        (contender, Blocks { values: repeats.iter().map(of).collect(), step })
    };
    ranked.iter().map(contender).collect()
}

fn placing(systems: &[Contender], tested: &RankedPoint) -> Placing {
    let names = |places: &[usize]| -> Vec<String> { places.iter().map(|place| systems[*place].name.clone()).collect() };
    if systems.len() < 2 {
        return Placing::Undecided { why: Why::TooFew, repeats_more: None };
    }
    let shares = || systems.iter().filter_map(|system| system.share);
    let (least, most) = (shares().fold(f64::INFINITY, f64::min), shares().fold(0.0, f64::max));
    if !alike(Some(least), Some(most)) && shares().next().is_some() {
        return Placing::Unranked { least, most };
    }
    let bounded = |apart_from: Option<usize>| -> Vec<usize> {
        let places = 0..systems.len();
        places.filter(|place| Some(*place) != apart_from && systems[*place].is_lower_bound).collect()
    };
    let unless_bounded = |apart_from: Option<usize>, placing: Placing| match bounded(apart_from).as_slice() {
        [] => placing,
        places => Placing::Undecided { why: Why::LowerBound(names(places)), repeats_more: None },
    };
    match &tested.placing {
        pubmark_stats::Placing::Winner(winner) => {
            unless_bounded(Some(*winner), Placing::Winner(systems[*winner].name.clone()))
        }
        pubmark_stats::Placing::Tie(places) => unless_bounded(None, Placing::Tie(names(places))),
        pubmark_stats::Placing::Undecided { why, repeats_more } => {
            let why = match why {
                pubmark_stats::Why::TooFewSystems => Why::TooFew,
                pubmark_stats::Why::Unusable(places) => Why::Unusable(names(places)),
                pubmark_stats::Why::TooFewBlocks(places) => Why::TooFewBlocks(names(places)),
                pubmark_stats::Why::Noise(places) => Why::Noise(names(places)),
            };
            // The one that looks best may yet win by its bound.
            let ahead = tested.standings.iter().position(|standing| *standing == pubmark_stats::Standing::Ahead);
            unless_bounded(ahead, Placing::Undecided { why, repeats_more: *repeats_more })
        }
    }
}
