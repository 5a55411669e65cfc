//! What is asked of two arms of a study, and which of its cells are whose.

use crate::cell::Cell;
use crate::setting::as_typed;
use serde_json::{Map, Value};

/// The ends of the names of parts: those of A and of B.
pub(crate) const ENDS: [&str; 2] = ["a", "b"];

/// What is asked of two arms.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ArmsGoal {
    /// The keys in which they differ, as axes are named.
    pub keys: Vec<String>,
    /// What may not become of B beside A, as typed.
    pub fail_on: Vec<String>,
    /// What has to hold of B by itself, as typed.
    pub require: Vec<String>,
}

/// A place at which the two arms are held against each other: an index of a cell
/// of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArmsPoint {
    /// A's cell.
    pub a: usize,
    /// B's.
    pub b: usize,
}

/// Which end a part's name has.
pub(crate) fn end_of(part: &str) -> Option<&'static str> {
    let end = part.rsplit('-').next()?;
    ENDS.into_iter().find(|known| *known == end)
}

impl ArmsGoal {
    /// The places at which both arms are measured, in the study's order.
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

    /// Where a cell lies on the axes that are not an arm's own.
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

    /// An arm in words: what it sets, as its cell has it.
    pub fn words(&self, axes: &Map<String, Value>) -> String {
        let set = self.keys.iter().filter_map(|name| Some(format!("{name}={}", as_typed(axes.get(name)?))));
        let words: Vec<String> = set.collect();
        if words.is_empty() { "as it is".into() } else { words.join(" ") }
    }
}

fn arm_of(axes: &Map<String, Value>) -> Option<&'static str> {
    end_of(axes.get("part")?.as_str()?)
}
