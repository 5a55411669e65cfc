//! The order in which the points of a study are measured: wherever it is broken off, the measured points are spread
//! over all axes.

use pubmark_model::cell::Cell;
use pubmark_stats::Random;
use serde_json::{Map, Value};
use std::collections::HashMap;

/// Number of remaining points drawn at random, of which the one is taken that differs most from those taken before. The
/// limit keeps the time proportional to the length of the walk.
const DRAWN: usize = 64;

/// Returns the cells of each point, without those that are skipped, in the order of the walk.
pub(super) fn walk(cells: &[Cell], seed: u64) -> Vec<Vec<usize>> {
    let mut points: Vec<(Vec<String>, Vec<usize>)> = Vec::new();
    let mut places: HashMap<Vec<String>, usize> = HashMap::new();
    for (index, cell) in cells.iter().enumerate().filter(|(_, cell)| cell.skipped.is_none()) {
        let place = place(&cell.axes);
        let at = *places.entry(place.clone()).or_insert(points.len());
        match points.get_mut(at) {
            Some((_, members)) => members.push(index),
            None => points.push((place, vec![index])),
        }
    }
    Random(seed).shuffle(&mut points);
    let mut seen: HashMap<String, usize> = HashMap::new();
    let mut order = Vec::with_capacity(points.len());
    while !points.is_empty() {
        let often = |(place, _): &(Vec<String>, Vec<usize>)| -> usize {
            place.iter().filter_map(|value| seen.get(value)).sum()
        };
        let drawn = 0..points.len().min(DRAWN);
        let next = drawn.min_by_key(|index| often(&points[*index])).unwrap_or(0);
        let (place, members) = points.remove(next);
        place.into_iter().for_each(|value| *seen.entry(value).or_default() += 1);
        order.push(members);
    }
    order
}

/// Returns the values of all axes but the system's, each as text.
fn place(axes: &Map<String, Value>) -> Vec<String> {
    axes.iter().filter(|(name, _)| *name != "system").map(|(name, value)| format!("{name}={value}")).collect()
}
