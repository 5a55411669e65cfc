//! Axes and the values on them, as they are shown.

use crate::text::clean;
use pubmark_model::units::format_size;
use serde_json::{Map, Value};

/// Longest system name or axis value that is shown, characters.
pub(crate) const NAME_CHARS: usize = 32;

/// An axis as a heading.
pub(crate) fn axis_name(axis: &str) -> String {
    clean(axis.strip_prefix("options.").or(axis.strip_prefix("flows.")).unwrap_or(axis), NAME_CHARS)
}

/// A value on an axis the way it would be typed.
pub(crate) fn axis_value(axis: &str, value: &Value) -> String {
    match (axis, value) {
        ("payload" | "memory", Value::Number(bytes)) => bytes.as_u64().map_or_else(|| bytes.to_string(), format_size),
        (_, Value::String(text)) => clean(text, NAME_CHARS),
        (_, value) => clean(&value.to_string(), NAME_CHARS),
    }
}

/// True if a table shows this axis of its rows: the system always, others if one differs from the first.
pub(crate) fn differs<'a>(axis: &str, mut rows: impl Iterator<Item = &'a Map<String, Value>>) -> bool {
    let first = rows.next().and_then(|row| row.get(axis));
    axis == "system" || rows.any(|row| row.get(axis) != first)
}
