//! The question that a study asks of its two arms, and the assignment of cells to arms.

use crate::cell::Cell;
use crate::setting::as_typed;
use serde_json::{Map, Value};

/// Suffixes of part names: of A's parts and of B's.
pub(crate) const ENDS: [&str; 2] = ["a", "b"];

/// The question that a study asks of its two arms.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ArmsGoal {
    /// The keys in which the arms differ, named like axes.
    pub keys: Vec<String>,
    /// Gates on the change from A to B, as typed.
    pub fail_on: Vec<String>,
    /// Conditions that B alone must meet, as typed.
    pub require: Vec<String>,
}

/// A point at which the two arms are compared: the index of one cell of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArmsPoint {
    /// Index of A's cell.
    pub a: usize,
    /// Index of B's cell.
    pub b: usize,
}

/// Returns the suffix of a part's name, if it is the suffix of an arm.
pub(crate) fn end_of(part: &str) -> Option<&'static str> {
    let end = part.rsplit('-').next()?;
    ENDS.into_iter().find(|known| *known == end)
}

impl ArmsGoal {
    /// Returns the points at which both arms are measured, in the study's order.
    pub fn points(&self, cells: &[Cell]) -> Vec<ArmsPoint> {
        let of = |end: &'static str| {
            let here = move |cell: &&(usize, &Cell)| arm_of(&cell.1.axes) == Some(end);
            move |all: &[(usize, &Cell)]| all.iter().filter(here).map(|(index, _)| *index).collect::<Vec<usize>>()
        };
        let all: Vec<(usize, &Cell)> = cells.iter().enumerate().filter(|(_, cell)| cell.skipped.is_none()).collect();
        let (mine, others) = (of(ENDS[0])(&all), of(ENDS[1])(&all));
        let place = |index: usize| self.place(&cells[index].axes);
        let other = |a: usize| others.iter().copied().find(|b| place(*b) == place(a));
        mine.into_iter().filter_map(|a| Some(ArmsPoint { a, b: other(a)? })).collect()
    }

    /// Returns a cell's values on the axes that do not belong to an arm.
    pub fn place(&self, axes: &Map<String, Value>) -> Map<String, Value> {
        let mut place = axes.clone();
        let part = axes.get("part").and_then(Value::as_str).unwrap_or_default();
        let stem = part.rsplit_once('-').map_or("", |(stem, _)| stem);
        place.retain(|name, _| name != "part" && !self.keys.contains(name));
        if !stem.is_empty() {
            place.insert("part".into(), stem.into());
        }
        place
    }

    /// Describes an arm by the keys that it sets, with the values of its cell.
    pub fn words(&self, axes: &Map<String, Value>) -> String {
        let set = self.keys.iter().filter_map(|name| Some(format!("{name}={}", as_typed(axes.get(name)?))));
        let words: Vec<String> = set.collect();
        if words.is_empty() { "as it is".into() } else { words.join(" ") }
    }
}

fn arm_of(axes: &Map<String, Value>) -> Option<&'static str> {
    end_of(axes.get("part")?.as_str()?)
}
