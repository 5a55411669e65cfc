//! Points: cells that differ in the system only, and which system is best there.

use crate::analysis::{CellResult, Status, point_key};
use crate::ranking::{Ranked, ranked};
use pubmark_model::claim::Figure;
use pubmark_model::units::Rate;
use serde_json::{Map, Value};
use std::collections::HashMap;

/// The system that bounds all others.
pub(crate) const FLOOR: &str = "kernel";

/// Systems that others are compared with and that are never ranked.
pub const REFERENCES: [&str; 2] = [FLOOR, "mock"];

/// Cells that differ in the system only.
#[derive(Clone, Debug)]
pub struct Point {
    /// The axes but the system, by name.
    pub axes: Map<String, Value>,
    /// Its cells, as indices into the report's, in the study's order of systems.
    pub members: Vec<usize>,
    /// Whether messages are sent as fast as they go (`rate = "max"`).
    pub unthrottled: bool,
    /// Systems that are to be ranked here, measured or not.
    pub(crate) rivals: usize,
    /// By each of [`Figure::ALL`].
    ranks: Vec<Ranked>,
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
    let mut points: Vec<Point> = groups.into_iter().map(|members| point(cells, members)).collect();
    for figure in Figure::ALL {
        let ranks = ranked(cells, &points, figure, &[]);
        points.iter_mut().zip(ranks).for_each(|(point, ranked)| point.ranks.push(ranked));
    }
    points
}

fn point(cells: &[CellResult], members: Vec<usize>) -> Point {
    let first = &cells[members[0]].cell;
    let mut axes = first.axes.clone();
    axes.shift_remove("system");
    let results = members.iter().map(|index| &cells[*index]);
    let rivals = results.filter(|result| result.cell.skipped.is_none() && !is_reference(&result.cell.system)).count();
    Point { axes, unthrottled: first.workload.rate == Rate::Max, members, rivals, ranks: Vec::new() }
}

/// The figure that ranks systems: the median latency at given rates, the
/// delivered rate where there is none.
pub(crate) fn headline(unthrottled: bool) -> Figure {
    if unthrottled { Figure::Delivered } else { Figure::LatencyP50 }
}

impl Point {
    /// What is said of its systems by a figure.
    pub fn by(&self, figure: Figure) -> Option<&Ranked> {
        let place = Figure::ALL.iter().position(|other| *other == figure);
        place.and_then(|place| self.ranks.get(place))
    }

    /// Who is best: by median latency or, unthrottled, by messages delivered a
    /// second.
    pub fn best(&self) -> Option<&Ranked> {
        self.by(headline(self.unthrottled))
    }

    /// Who uses least CPU time for a delivered message.
    pub fn thriftiest(&self) -> Option<&Ranked> {
        self.by(Figure::CpuPerMessage)
    }

    /// The part of the study that it belongs to, where it has parts.
    pub(crate) fn part(&self) -> Option<&str> {
        self.axes.get("part").and_then(Value::as_str)
    }

    /// Whether the study leaves out every cell here.
    pub(crate) fn is_skipped(&self, cells: &[CellResult]) -> bool {
        let mut members = self.members.iter();
        members.all(|index| cells[*index].status == Status::Skipped)
    }
}
