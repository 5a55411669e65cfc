//! Blocks: one figure at one load, for all systems, along one axis.

use crate::analysis::{CellResult, Status};
use crate::axes::{axis_name, axis_value};
use crate::points::Point;
use crate::report::Report;
use crate::text::clean;
use pubmark_model::flow::FLOW;
use pubmark_model::workload::{Rate, Workload};
use serde_json::Value;

/// Longest name of a system that is shown, in characters.
pub(crate) const NAME_CHARS: usize = 24;

/// Points that differ in one axis only and are ranked by one figure.
pub(crate) struct Block<'a> {
    /// The cells of the report.
    pub cells: &'a [CellResult],
    /// Its points. Each point is a column.
    pub points: Vec<&'a Point>,
    /// The axis of the columns, if there are several points.
    pub axis: Option<&'a String>,
    /// True if messages are sent as fast as possible.
    pub unthrottled: bool,
    /// Its place on the other axes, in words.
    place: Vec<String>,
}

/// Returns the blocks of a report in the order of the study. Points at which all cells are
/// skipped are omitted.
pub(crate) fn blocks(report: &Report) -> Vec<Block<'_>> {
    let cells = report.cells();
    let mut tables: Vec<Vec<&Point>> = Vec::new();
    for point in report.points().iter().filter(|point| !point.is_skipped(cells)) {
        let is_of = |points: &&mut Vec<&Point>| kind(points[0]) == kind(point);
        match tables.iter_mut().find(is_of) {
            Some(points) => points.push(point),
            None => tables.push(vec![point]),
        }
    }
    let count = |unthrottled: bool| tables.iter().filter(|points| points[0].unthrottled == unthrottled).count();
    tables.iter().flat_map(|points| split(cells, points, count(points[0].unthrottled) > 1)).collect()
}

/// Returns the part and the kind of load, which tables do not mix.
fn kind(point: &Point) -> (Option<&str>, bool) {
    (point.part(), point.unthrottled)
}

/// Returns one block for each place on all axes but that of the columns. `names_part`:
/// several parts of the study have such blocks.
fn split<'a>(cells: &'a [CellResult], points: &[&'a Point], names_part: bool) -> Vec<Block<'a>> {
    let axis = column_axis(points);
    let place = |point: &'a Point| -> Vec<(&'a String, &'a Value)> {
        point.axes.iter().filter(|(name, _)| Some(*name) != axis).collect()
    };
    let mut blocks: Vec<Block<'a>> = Vec::new();
    for point in points.iter().copied() {
        match blocks.iter_mut().find(|block| place(block.points[0]) == place(point)) {
            Some(block) => block.points.push(point),
            None => {
                let is_told = |name: &str| match name {
                    "rate" => false,
                    "part" => names_part,
                    name => points.iter().any(|other| other.axes.get(name) != point.axes.get(name)),
                };
                let told = place(point).into_iter().filter(|(name, _)| is_told(name.as_str()));
                let place = told.map(|(name, value)| in_words(name, value)).collect();
                let unthrottled = point.unthrottled;
                blocks.push(Block { cells, points: vec![point], axis, unthrottled, place });
            }
        }
    }
    blocks
}

/// Returns the axis with the most values, the first one of several. The rate is part of
/// the question, and only an axis of columns if there is no other.
fn column_axis<'a>(points: &[&'a Point]) -> Option<&'a String> {
    let mut most: Option<(&String, usize)> = None;
    let mut rate = None;
    for axis in points.first()?.axes.keys() {
        let mut values: Vec<Option<&Value>> = Vec::new();
        for value in points.iter().map(|point| point.axes.get(axis)) {
            if !values.contains(&value) {
                values.push(value);
            }
        }
        match axis.as_str() {
            _ if values.len() < 2 => {}
            "part" => {}
            "rate" => rate = Some(axis),
            _ if most.is_none_or(|(_, count)| values.len() > count) => most = Some((axis, values.len())),
            _ => {}
        }
    }
    most.map(|(axis, _)| axis).or(rate)
}

/// Returns a place on an axis in words.
fn in_words(axis: &str, value: &Value) -> String {
    let shown = axis_value(axis, value);
    match axis {
        "transport" | "payload" | "pattern" => shown,
        "qos" => format!("QoS {shown}"),
        axis => format!("{} {shown}", axis_name(axis)),
    }
}

impl<'a> Block<'a> {
    /// Returns the figure, the load, the place on other axes and the better direction.
    pub fn heading(&self) -> String {
        let workload = self.workload();
        let is_round_trip = workload.is_some_and(|workload| workload.pattern.round_trip());
        let mut parts = vec![match (self.unthrottled, is_round_trip) {
            (true, _) => "THROUGHPUT messages/s (share delivered), as fast as possible".to_owned(),
            (false, false) => "LATENCY p50 / p99".to_owned(),
            (false, true) => "ROUND TRIP p50 / p99".to_owned(),
        }];
        let is_by_rate = self.axis.is_some_and(|axis| axis == "rate");
        if let Some(workload) = workload.filter(|_| !self.unthrottled && !is_by_rate) {
            parts[0].push_str(&format!(" at {}", rate(workload)));
        }
        parts.extend(self.place.iter().cloned());
        parts.push(if self.unthrottled { "higher is better".into() } else { "lower is better".into() });
        parts.join(", ")
    }

    /// Returns the name of the axis of its columns.
    pub fn axis_name(&self) -> String {
        let is_each = self.workload().is_some_and(|workload| workload.publishers > 1);
        match self.axis.map(String::as_str) {
            None => String::new(),
            Some("rate") if is_each => "rate per publisher".into(),
            Some(axis) => axis_name(axis),
        }
    }

    /// Returns where a column lies on the axis; nothing if there is no axis.
    pub fn column(&self, point: &Point) -> String {
        let value = self.axis.and_then(|axis| Some((axis, point.axes.get(axis)?)));
        match value {
            None => String::new(),
            Some((axis, value)) if axis == "rate" => format!("{}/s", grouped(&axis_value(axis, value))),
            Some((axis, value)) => axis_value(axis, value),
        }
    }

    /// Returns its systems: competitors in the order of the study, then references. Systems
    /// with skipped cells only are omitted.
    pub fn systems(&self) -> Vec<System<'a>> {
        let cells = self.cells;
        let members = self.points.iter().flat_map(|point| &point.members).map(|index| &cells[*index]);
        let mut systems: Vec<System<'a>> = Vec::new();
        for result in members.filter(|result| result.status != Status::Skipped) {
            let name = result.cell.system.name.as_str();
            if !systems.iter().any(|system| system.name == name) {
                let (is_reference, is_left_out) = (result.is_reference, result.breaks_promise);
                systems.push(System { name, is_reference, is_left_out });
            }
        }
        systems.sort_by_key(|system| system.is_reference);
        systems
    }

    /// Returns the cell of a system in a column.
    pub fn cell(&self, point: &Point, system: &str) -> Option<&'a CellResult> {
        let cells = self.cells;
        let mut members = point.members.iter().map(|index| &cells[*index]);
        members.find(|result| result.cell.system.name == system)
    }

    /// Returns the workload of its first cell; `None` if the columns are flows, each of which has its own.
    fn workload(&self) -> Option<&'a Workload> {
        if self.axis.is_some_and(|axis| axis == FLOW) {
            return None;
        }
        let index = self.points.first()?.members.first()?;
        Some(&self.cells[*index].cell.workload)
    }
}

/// A row of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct System<'a> {
    pub name: &'a str,
    /// True if it is measured beside the others and never ranked.
    pub is_reference: bool,
    /// True if that is because it broke the promise of the study.
    pub is_left_out: bool,
}

impl System<'_> {
    /// Returns its name as a row has it; `has_rivals`: other rows are ranked.
    pub fn label(self, has_rivals: bool) -> String {
        let name = clean(self.name, NAME_CHARS);
        match (self.is_reference && has_rivals, self.name) {
            _ if self.is_left_out => format!("{name} (left out)"),
            (false, _) => name,
            (true, "mock") => format!("{name} (reference)"),
            (true, _) => format!("{name} (floor)"),
        }
    }
}

/// Returns the load of a workload in words.
pub(crate) fn rate(workload: &Workload) -> String {
    match &workload.rate {
        Rate::Max => "full speed".into(),
        rate if rate.trace().is_some() => rate.to_string(),
        rate => {
            let each = if workload.publishers > 1 { " per publisher" } else { "" };
            format!("{} messages/s{each}", grouped(&rate.to_string()))
        }
    }
}

/// Returns a number with its thousands apart: `12,000.5`. Other text stays as it is.
pub(crate) fn grouped(number: &str) -> String {
    let (whole, fraction) = number.split_at(number.find('.').unwrap_or(number.len()));
    if whole.is_empty() || !whole.bytes().all(|byte| byte.is_ascii_digit()) {
        return number.to_owned();
    }
    let digits = whole.char_indices().flat_map(|(at, digit)| {
        let is_apart = at > 0 && (whole.len() - at).is_multiple_of(3);
        is_apart.then_some(',').into_iter().chain([digit])
    });
    digits.collect::<String>() + fraction
}

#[cfg(test)]
mod tests {
    use super::grouped;

    #[test]
    fn thousands_stand_apart() {
        let shown = ["1", "999", "1000", "1234567", "50000.5", "0.5", "max", ""].map(grouped);
        assert_eq!(shown, ["1", "999", "1,000", "1,234,567", "50,000.5", "0.5", "max", ""]);
    }
}
