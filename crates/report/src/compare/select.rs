//! Selection of the compared cells and figures.

use super::gates::Gates;
use crate::analysis::CellResult;
use crate::axes::axis_value;
use crate::report::Report;
use crate::text::clean;
use pubmark_model::diagnostic::suggestion;
use pubmark_model::setting;
use serde_json::Value;

/// Selection of cells, and gates. If empty: all cells, no gate.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Conditions that a cell has to meet.
    pub only: Vec<AxisFilter>,
    /// A's cells have the first value on an axis, B's the second, and all else alike.
    pub across: Option<AxisPair>,
    /// Gates of the comparison.
    pub gates: Gates,
}

/// A narrowed axis: a cell has one of these values on it.
#[derive(Clone, Debug, PartialEq)]
pub struct AxisFilter {
    /// The axis.
    pub axis: String,
    /// Its values as typed.
    pub values: Vec<String>,
}

/// Two values of an axis, to be held against each other.
#[derive(Clone, Debug, PartialEq)]
pub struct AxisPair {
    /// Position of A.
    pub a: AxisFilter,
    /// Position of B.
    pub b: AxisFilter,
}

/// Why nothing could be chosen: a selection names what neither result has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectionError {
    /// An axis.
    #[error("no axis `{axis}`: {help}")]
    Axis {
        /// Text as typed, cleaned.
        axis: String,
        /// Suggestion.
        help: String,
    },
    /// A value on an axis.
    #[error("no `{value}` on the axis `{axis}`: {help}")]
    Value {
        /// Text as typed, cleaned.
        value: String,
        /// The axis.
        axis: String,
        /// Suggestion.
        help: String,
    },
}

impl SelectionError {
    /// The axis that was typed.
    pub fn axis(&self) -> &str {
        match self {
            SelectionError::Axis { axis, .. } | SelectionError::Value { axis, .. } => axis,
        }
    }
}

impl AxisPair {
    /// The values of an axis that a comma separates; `None` where they are not two.
    pub fn new(axis: &str, values: &str) -> Option<AxisPair> {
        let (a, b) = values.split_once(',').filter(|(_, b)| !b.contains(','))?;
        (a.trim() != b.trim()).then(|| AxisPair { a: AxisFilter::new(axis, a), b: AxisFilter::new(axis, b) })
    }

    /// The axis.
    pub fn axis(&self) -> &str {
        &self.a.axis
    }
}

impl AxisFilter {
    /// Narrows `axis` to `values`, which commas separate.
    pub fn new(axis: &str, values: &str) -> AxisFilter {
        AxisFilter { axis: axis.to_owned(), values: values.split(',').map(|value| value.trim().to_owned()).collect() }
    }

    pub(crate) fn holds(&self, cell: &CellResult) -> bool {
        cell.cell
            .axes
            .get(&self.axis)
            .is_some_and(|value| self.values.iter().any(|typed| means(&self.axis, typed, value)))
    }

    /// Checks that one of the reports has such a cell.
    ///
    /// # Errors
    /// The axis or the value does not exist; the error lists the existing ones.
    pub(super) fn check(&self, a: &Report, b: &Report) -> Result<(), SelectionError> {
        let cells = || a.cells().iter().chain(b.cells());
        let shown = clean(&self.axis, 60);
        let mut axes: Vec<&str> = cells().flat_map(|cell| cell.cell.axes.keys()).map(String::as_str).collect();
        axes.sort_unstable();
        axes.dedup();
        if !axes.contains(&self.axis.as_str()) {
            let axes: Vec<String> = axes.iter().map(|axis| clean(axis, 60)).collect();
            let help = suggestion(&shown, axes.iter().map(String::as_str));
            return Err(SelectionError::Axis { axis: shown, help });
        }
        let mut values: Vec<&Value> = Vec::new();
        for value in cells().filter_map(|cell| cell.cell.axes.get(&self.axis)) {
            if !values.contains(&value) {
                values.push(value);
            }
        }
        for typed in &self.values {
            if !values.iter().any(|value| means(&self.axis, typed, value)) {
                let known: Vec<String> = values.iter().map(|value| axis_value(&self.axis, value)).collect();
                let typed = clean(typed, 60);
                let help = suggestion(&typed, known.iter().map(String::as_str));
                return Err(SelectionError::Value { value: typed, axis: shown, help });
            }
        }
        Ok(())
    }
}

/// True if a value on an axis is the typed one, in the form of the report, in that of JSON, or in
/// another unit.
fn means(axis: &str, typed: &str, value: &Value) -> bool {
    axis_value(axis, value) == typed
        || value.as_str().map_or_else(|| value.to_string(), str::to_owned) == typed
        || setting::key(axis).and_then(|key| key.read(typed).ok()).is_some_and(|read| read == *value)
}
