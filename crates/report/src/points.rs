//! Points: cells that differ in the system only, and which system is best there.

use crate::analysis::{CellResult, Status, point_key};
use crate::figures::Column;
use pubmark_model::units::Rate;
use pubmark_stats::{Better, Estimate, Ranking, rank};
use serde_json::{Map, Value};
use std::collections::HashMap;

/// The system that bounds all others.
pub(crate) const FLOOR: &str = "kernel";

/// Systems that others are compared with and that are never ranked.
pub const REFERENCES: [&str; 2] = [FLOOR, "mock"];

/// Cells that differ in the system only.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// The axes but the system, by name.
    pub axes: Map<String, Value>,
    /// Its cells, as indices into the report's, in the study's order of systems.
    pub members: Vec<usize>,
    /// Whether messages are sent as fast as they go (`rate = "max"`).
    pub unthrottled: bool,
    /// Who is best: by median latency or, unthrottled, by messages delivered a
    /// second.
    pub best: Ranking,
    /// Who uses least CPU time for a delivered message.
    pub thriftiest: Ranking,
}

/// Whether a system is a reference rather than a competitor.
pub(crate) fn is_reference(system: &str) -> bool {
    REFERENCES.contains(&system)
}

/// The points of the study in the order in which they first come.
pub(crate) fn points(cells: &[CellResult]) -> Vec<Point> {
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (index, result) in cells.iter().enumerate() {
        let place = *places.entry(point_key(&result.cell)).or_insert(groups.len());
        match groups.get_mut(place) {
            Some(members) => members.push(index),
            None => groups.push(vec![index]),
        }
    }
    groups.into_iter().map(|members| point(cells, members)).collect()
}

fn point(cells: &[CellResult], members: Vec<usize>) -> Point {
    let first = &cells[members[0]].cell;
    let mut axes = first.axes.clone();
    axes.shift_remove("system");
    let unthrottled = first.workload.rate == Rate::Max;
    let (figure, better) =
        if unthrottled { (Column::Delivered, Better::Higher) } else { (Column::LatencyP50, Better::Lower) };
    Point {
        best: ranked(cells, &members, figure, better),
        thriftiest: ranked(cells, &members, Column::CpuPerMessage, Better::Lower),
        axes,
        unthrottled,
        members,
    }
}

/// The competitors among these cells, and the figures that may be quoted.
pub(crate) fn competing<'a>(cells: &'a [CellResult], members: &[usize], column: Column) -> Vec<(&'a str, Estimate)> {
    let members = members.iter().map(|index| &cells[*index]);
    members
        .filter(|result| !is_reference(&result.cell.system))
        .filter_map(|result| Some((result.cell.system.as_str(), result.quotable(column)?)))
        .collect()
}

/// Who of these cells is best by a figure.
pub(crate) fn ranked(cells: &[CellResult], members: &[usize], column: Column, better: Better) -> Ranking {
    rank(&competing(cells, members, column), better)
}

impl Point {
    /// Whether the study leaves out every cell here.
    pub(crate) fn is_skipped(&self, cells: &[CellResult]) -> bool {
        let mut members = self.members.iter();
        members.all(|index| cells[*index].status == Status::Skipped)
    }
}
