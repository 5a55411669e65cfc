//! Groups cells into points, and ranks the systems of each point.

use super::Point;
use crate::analysis::{CellResult, point_key};
use crate::ranking::RankingRules;
use crate::ranking::decide::ranked;
use pubmark_model::figure::Figure;
use pubmark_model::workload::Rate;
use std::collections::HashMap;

/// The points of the study in the order in which they first come, ranked by these
/// figures.
pub(crate) fn points(cells: &[CellResult], figures: &[Figure], rules: RankingRules) -> Vec<Point> {
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (index, result) in cells.iter().enumerate() {
        let place = *places.entry(point_key(&result.cell)).or_insert(groups.len());
        match groups.get_mut(place) {
            Some(members) => members.push(index),
            None => groups.push(vec![index]),
        }
    }
    let mut points: Vec<Point> = groups.into_iter().map(|members| point(cells, members)).collect();
    for figure in figures {
        let ranks = ranked(cells, &points, *figure, &[], rules);
        points.iter_mut().zip(ranks).for_each(|(point, ranked)| point.ranks.push((*figure, ranked)));
    }
    points
}

fn point(cells: &[CellResult], members: Vec<usize>) -> Point {
    let first = &cells[members[0]].cell;
    let mut axes = first.axes.clone();
    axes.shift_remove("system");
    let results = members.iter().map(|index| &cells[*index]);
    let rivals = results.filter(|result| result.cell.skipped.is_none() && !result.is_reference).count();
    Point { axes, unthrottled: first.workload.rate == Rate::Max, members, rivals, ranks: Vec::new() }
}
