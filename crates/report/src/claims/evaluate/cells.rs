//! The cells that a part of an expression reads.

use super::leaf::Leaf;
use super::{Evaluation, Found, Gap, WHY_CHARS};
use crate::analysis::Status;
use crate::claims::words::label_of;
use crate::text::clean;
use crate::words::SKIPPED;
use serde_json::{Map, Value};

impl<'a> Evaluation<'a> {
    /// Returns a predicate for axes that a leaf leaves free. If the leaf names a part, the values
    /// that this part sets are fixed.
    pub(super) fn is_free<'b>(&'b self, leaf: Leaf<'b>) -> impl Fn(&str) -> bool + 'b {
        let part = leaf.at.get("part").and_then(Value::as_str);
        let over = leaf.over.map(|over| if over.is_empty() { self.searched(part) } else { over.to_owned() });
        let of_part = self.evidence.study.parts.iter().find(|known| Some(known.name.as_str()) == part);
        move |axis: &str| {
            let comes_with_part =
                of_part.is_some_and(|part| part.axes.iter().any(|own| own.name == axis && own.values.len() == 1));
            leaf.at.get(axis).is_none()
                && over.as_deref() != Some(axis)
                && !(axis == "system" && leaf.all_systems)
                && !comes_with_part
        }
    }

    /// The place of a cell on the axes that a leaf leaves free.
    pub(super) fn free(&self, leaf: Leaf<'_>, axes: &Map<String, Value>) -> Map<String, Value> {
        let is_free = self.is_free(leaf);
        axes.iter().filter(|(axis, _)| is_free(axis)).map(|(axis, value)| (axis.clone(), value.clone())).collect()
    }

    /// Returns the axis over which the capacity of a part is searched; empty if none is.
    fn searched(&self, part: Option<&str>) -> String {
        let study = &self.evidence.study;
        let key = study.searched_over(part).zip(study.capacity.as_ref()).map(|(over, goal)| goal.key_of(over));
        key.unwrap_or_default()
    }

    /// True if a leaf reads a cell at a point, skipped or not.
    fn is_read(&self, leaf: Leaf<'_>, point: &Map<String, Value>, index: usize) -> bool {
        let result = self.cell(index);
        let axes = &result.cell.axes;
        let conditions = &self.claim.conditions;
        let names_system =
            |name: &str| conditions.iter().any(|(axis, condition)| axis == "system" && condition.holds(&name.into()));
        let is_free = self.is_free(leaf);
        let is_reference = result.is_reference && leaf.at.system().is_none() && !names_system(&result.cell.system.name);
        !is_reference
            && leaf.at.places.iter().all(|(axis, value)| axes.get(axis) == Some(value))
            && conditions
                .iter()
                .filter(|(axis, _)| leaf.at.get(axis).is_none())
                .all(|(axis, condition)| axes.get(axis).is_some_and(|value| condition.holds(value)))
            && axes.iter().all(|(axis, value)| point.get(axis).is_none_or(|known| known == value) || !is_free(axis))
    }

    pub(super) fn matching(&self, leaf: Leaf<'_>, point: &Map<String, Value>) -> Vec<usize> {
        let cells = 0..self.evidence.cells.len();
        cells.filter(|index| self.cell(*index).status != Status::Skipped && self.is_read(leaf, point, *index)).collect()
    }

    /// The same, or why there are none.
    pub(super) fn cells_at(&self, leaf: Leaf<'_>, point: &Map<String, Value>) -> Found<Vec<usize>> {
        let found = self.matching(leaf, point);
        if !found.is_empty() {
            return Ok(found);
        }
        let mut skipped = (0..self.evidence.cells.len()).filter(|index| self.is_read(leaf, point, *index));
        let what = label_of(leaf.at);
        Err(Gap::untested(match skipped.next().and_then(|index| self.cell(index).cell.skipped.clone()) {
            Some(why) => format!("{what} is {SKIPPED}: {}", clean(&why, WHY_CHARS)),
            None => format!("{what} was not run here"),
        }))
    }
}
