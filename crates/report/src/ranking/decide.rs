//! The systems of each point, tested against each other.

use super::{Contender, Ranked, RankingRules};
use crate::analysis::{CellResult, Status};
use crate::figures::{ClockBlur, Observation, Sign};
use crate::points::Point;
use pubmark_model::figure::Figure;
use pubmark_stats::{Better, Blocks, Looks, RankingInput, rank_table};
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
    let better = if figure.higher_is_better() { Better::Higher } else { Better::Lower };
    for (_, numbers) in tables {
        let contenders: Vec<Contenders> =
            numbers.iter().map(|number| contenders(cells, &points[*number], figure, also)).collect();
        let looks = match rules.until_decided {
            true => {
                let planned = numbers.iter().map(|number| planned(cells, &points[*number], also));
                let (pairs, rivals) = planned.fold((0, 0), |sum, point| (sum.0 + point.0, sum.1 + point.1));
                Looks::Many { pairs, rivals }
            }
            false => Looks::Once,
        };
        let rank = |blocks: fn(&Contenders) -> &Vec<Blocks>| {
            let point = |of: &Contenders| pubmark_stats::PointInput { systems: blocks(of).clone(), better };
            let points = contenders.iter().map(point).collect();
            rank_table(&RankingInput { points, bound: rules.tie, alpha: ALPHA, looks }).points
        };
        let compared = rank(|of| &of.compared);
        let quoted = contenders.iter().any(|of| of.is_disturbed).then(|| rank(|of| &of.quoted));
        let mut quoted = quoted.map(Vec::into_iter);
        for ((number, of), tested) in numbers.into_iter().zip(contenders).zip(compared) {
            let quoted = quoted.as_mut().and_then(Iterator::next);
            found[number] = Some(Ranked::of(of.systems, (tested, quoted), better, rules.tie));
        }
    }
    found.into_iter().flatten().collect()
}

/// Returns the pairs of systems that a point will have when all of it is measured, and
/// the rivals of its best system.
fn planned(cells: &[CellResult], point: &Point, also: &[String]) -> (usize, usize) {
    let members = point.members.iter().map(|index| &cells[*index]);
    let ranked = members
        .filter(|result| !result.is_reference || also.contains(&result.cell.system.name))
        .filter(|result| result.status != Status::Skipped)
        .count();
    let rivals = ranked.saturating_sub(1);
    (ranked * rivals / 2, rivals)
}

/// The systems of a point that have a figure which may be compared.
struct Contenders {
    systems: Vec<Contender>,
    /// Values of all runs that can be compared, by repeat.
    compared: Vec<Blocks>,
    /// Values of the reliable runs.
    quoted: Vec<Blocks>,
    /// True if these differ.
    is_disturbed: bool,
}

fn contenders(cells: &[CellResult], point: &Point, figure: Figure, also: &[String]) -> Contenders {
    let members = point.members.iter().map(|index| &cells[*index]);
    let ranked: Vec<&CellResult> = members
        .filter(|result| !result.is_reference || also.contains(&result.cell.system.name))
        .filter(|result| !result.figures.comparable(figure).is_empty())
        .collect();
    // Numbers of repeats come from files: they are told apart, not counted up to.
    let repeats: BTreeSet<u32> =
        ranked.iter().flat_map(|result| result.figures.comparable(figure)).map(|reading| reading.repeat).collect();
    let blocks = |each: &[Observation]| {
        let of = |repeat: &u32| each.iter().find(|reading| reading.repeat == *repeat);
        let values = repeats.iter().map(|repeat| of(repeat).map(|reading| reading.value)).collect();
        let sessions = repeats.iter().map(|repeat| of(repeat).map_or(1, |reading| reading.session)).collect();
        let step = each.iter().map(|reading| reading.step).fold(0.0, f64::max);
        Blocks { values, sessions, step }
    };
    let needs_share = figure == Figure::DELIVERED && point.unthrottled;
    let contender = |result: &&CellResult| {
        let share = result.figures.get(Figure::DELIVERED_RATIO).map(|share| share.value);
        Contender {
            name: result.cell.system.name.clone(),
            is_lower_bound: result.figures.sign(figure) == Sign::AtLeast,
            is_overloaded: result.figures.is_overloaded(figure),
            share: share.filter(|_| needs_share),
            blur: ClockBlur::of(result.figures.comparable(figure)),
        }
    };
    Contenders {
        systems: ranked.iter().map(contender).collect(),
        compared: ranked.iter().map(|result| blocks(result.figures.comparable(figure))).collect(),
        quoted: ranked.iter().map(|result| blocks(result.figures.each(figure))).collect(),
        is_disturbed: ranked.iter().any(|result| result.figures.is_disturbed(figure)),
    }
}
