//! Points: cells that differ in the system only, and which system is best there.

pub(crate) mod group;

use crate::analysis::{CellResult, Status};
use crate::ranking::Ranked;
use pubmark_model::figure::Figure;
use serde_json::{Map, Value};

/// Cells that differ in the system only.
#[derive(Clone, Debug)]
pub struct Point {
    /// The axes but the system, by name.
    pub axes: Map<String, Value>,
    /// Its cells, as indices into the report's, in the study's order of systems.
    pub members: Vec<usize>,
    /// True if messages are sent as fast as possible (`rate = "max"`).
    pub unthrottled: bool,
    /// Systems that are to be ranked here, measured or not.
    pub(crate) rivals: usize,
    /// By each figure that the study ranks by.
    ranks: Vec<(Figure, Ranked)>,
}

/// The figure that ranks systems: the median latency at given rates, the
/// delivered rate where there is none.
pub(crate) fn headline(unthrottled: bool) -> Figure {
    if unthrottled { Figure::DELIVERED } else { Figure::LATENCY_P50 }
}

impl Point {
    /// Returns the ranking of its systems by a figure.
    pub fn by(&self, figure: Figure) -> Option<&Ranked> {
        self.ranks.iter().find(|(other, _)| *other == figure).map(|(_, ranked)| ranked)
    }

    /// The figures that its systems are ranked by.
    pub(crate) fn rankings(&self) -> impl Iterator<Item = (Figure, &Ranked)> {
        self.ranks.iter().map(|(figure, ranked)| (*figure, ranked))
    }

    /// Returns the ranking by median latency or, unthrottled, by delivered messages per second.
    pub fn best(&self) -> Option<&Ranked> {
        self.by(headline(self.unthrottled))
    }

    /// Returns the ranking by CPU time per delivered message.
    pub fn thriftiest(&self) -> Option<&Ranked> {
        self.by(Figure::CPU_PER_MESSAGE)
    }

    /// The part of the study that it belongs to, where it has parts.
    pub(crate) fn part(&self) -> Option<&str> {
        self.axes.get("part").and_then(Value::as_str)
    }

    /// True if the study skips every cell of the point.
    pub(crate) fn is_skipped(&self, cells: &[CellResult]) -> bool {
        let mut members = self.members.iter();
        members.all(|index| cells[*index].status == Status::Skipped)
    }
}
