//! The systems of each point, tested against each other.

use super::{Contender, Placing, Ranked, RankingRules, Why, alike, is_beyond_clocks, widened};
use crate::analysis::{CellResult, Status};
use crate::figures::{ClockBlur, Sign};
use crate::points::Point;
use pubmark_model::figure::Figure;
use pubmark_stats::{Better, Blocks, Looks, RankedPoint, RankingInput, rank_table};
use std::collections::BTreeSet;

/// The share of tables of equal systems in which any may be called different or
/// the same wrongly, at most.
const ALPHA: f64 = 0.05;

/// Ranks the systems at each point by a figure. Points that stand in one table
/// (of one part of the study, at given rates or unthrottled) are corrected for
/// together. References are ranked only where they are among `also`.
pub(crate) fn ranked(
    cells: &[CellResult],
    points: &[Point],
    figure: Figure,
    also: &[String],
    rules: RankingRules,
) -> Vec<Ranked> {
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
        let tested = rank_table(&RankingInput {
            points: contenders.iter().map(|of| pubmark_stats::PointInput { systems: blocks(of), better }).collect(),
            bound: rules.tie,
            alpha: ALPHA,
            looks: match rules.until_decided {
                true => Looks::Many { pairs: numbers.iter().map(|number| pairs(cells, &points[*number], also)).sum() },
                false => Looks::Once,
            },
        });
        for ((number, contenders), tested) in numbers.into_iter().zip(contenders).zip(tested.points) {
            let systems: Vec<Contender> = contenders.into_iter().map(|(contender, _)| contender).collect();
            let placing = beyond_clocks(placing(&systems, &tested), &systems, &tested, rules.tie);
            found[number] = Some(Ranked { placing, systems, tested });
        }
    }
    found.into_iter().flatten().collect()
}

/// The pairs that a point will have when all of it is measured.
fn pairs(cells: &[CellResult], point: &Point, also: &[String]) -> usize {
    let members = point.members.iter().map(|index| &cells[*index]);
    let ranked = members
        .filter(|result| !result.is_reference || also.contains(&result.cell.system.name))
        .filter(|result| result.status != Status::Skipped)
        .count();
    ranked * ranked.saturating_sub(1) / 2
}

/// Those of a point that have a figure that may be quoted, with what their runs
/// say by block.
fn contenders(cells: &[CellResult], point: &Point, figure: Figure, also: &[String]) -> Vec<(Contender, Blocks)> {
    let column = figure;
    let members = point.members.iter().map(|index| &cells[*index]);
    let ranked: Vec<&CellResult> = members
        .filter(|result| !result.is_reference || also.contains(&result.cell.system.name))
        .filter(|result| result.quotable(column).is_some())
        .collect();
    // Numbers of repeats come from files: they are told apart, not counted up to.
    let readings = |result: &&CellResult| result.figures.each(column).to_vec();
    let repeats: BTreeSet<u32> = ranked.iter().flat_map(readings).map(|reading| reading.repeat).collect();
    let needs_share = figure == Figure::DELIVERED && point.unthrottled;
    let contender = |result: &&CellResult| {
        let each = result.figures.each(column);
        let of = |repeat: &u32| each.iter().find(|reading| reading.repeat == *repeat).map(|reading| reading.value);
        let share = result.figures.get(Figure::DELIVERED_RATIO).map(|share| share.value);
        let contender = Contender {
            name: result.cell.system.name.clone(),
            is_lower_bound: result.figures.sign(column) == Sign::AtLeast,
            share: share.filter(|_| needs_share),
            blur: ClockBlur::of(each),
        };
        let step = each.iter().map(|reading| reading.step).fold(0.0, f64::max);
        (contender, Blocks { values: repeats.iter().map(of).collect(), step })
    };
    ranked.iter().map(contender).collect()
}

/// What is left of a placing where clocks may have made the difference, or hide
/// one: `tie` is the fraction below which systems are the same.
fn beyond_clocks(placing: Placing, systems: &[Contender], tested: &RankedPoint, tie: f64) -> Placing {
    let place = |name: &String| systems.iter().position(|system| system.name == *name).unwrap_or(0);
    let best: Vec<usize> = match &placing {
        Placing::Winner(winner) => vec![place(winner)],
        Placing::Tie(names) => names.iter().map(place).collect(),
        Placing::Undecided { .. } | Placing::Unranked { .. } => return placing,
    };
    let is_sure = |other: usize| match best.iter().position(|one| *one == other) {
        Some(0) => true,
        // On a scale of differences a tie is a share of what is not known here.
        Some(_) => widened(systems, tested, (best[0], other)).is_none_or(|(interval, equal)| {
            equal == 1.0 && interval.lo >= 1.0 / (1.0 + tie) && interval.hi <= 1.0 + tie
        }),
        None => best.iter().any(|one| tested.beats(*one, other) && is_beyond_clocks(systems, tested, (*one, other))),
    };
    let unsure: Vec<String> =
        (0..systems.len()).filter(|other| !is_sure(*other)).map(|other| systems[other].name.clone()).collect();
    if unsure.is_empty() { placing } else { Placing::Undecided { why: Why::Clock(unsure), repeats_more: None } }
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
        pubmark_stats::PointOutcome::Winner(winner) => {
            unless_bounded(Some(*winner), Placing::Winner(systems[*winner].name.clone()))
        }
        pubmark_stats::PointOutcome::Tie(places) => unless_bounded(None, Placing::Tie(names(places))),
        pubmark_stats::PointOutcome::Undecided { why, repeats_more } => {
            let why = match why {
                pubmark_stats::UndecidedReason::TooFewSystems => Why::TooFew,
                pubmark_stats::UndecidedReason::Unusable(places) => Why::Unusable(names(places)),
                pubmark_stats::UndecidedReason::TooFewBlocks(places) => Why::TooFewBlocks(names(places)),
                pubmark_stats::UndecidedReason::Noise(places) => Why::Noise(names(places)),
            };
            // The one that looks best may yet win by its bound.
            let ahead = tested.standings.iter().position(|standing| *standing == pubmark_stats::SystemOutcome::Ahead);
            unless_bounded(ahead, Placing::Undecided { why, repeats_more: *repeats_more })
        }
    }
}
