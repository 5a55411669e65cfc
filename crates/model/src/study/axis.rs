//! The possible axes, and the values on them.

use crate::diagnostic::{Diagnostic, suggestion};
use crate::document::Scalar;
use crate::flow::{FLOW, PLAYING, key_of_flow};
use crate::setting::{KEYS, Key, Section, key};
use crate::system::Systems;
use serde_json::Value;

/// Returns a value on an axis, canonical.
pub(crate) fn axis_value(axis: &str, scalar: &Scalar, systems: Systems<'_>) -> Result<Value, Diagnostic> {
    if axis == "system" {
        return match systems(&scalar.text) {
            // A system that is named by its file's path is known by its name from here on.
            Some(system) => Ok(system.name.clone().into()),
            None => Err(Diagnostic::at_value(scalar.at, format!("unknown system `{}`", scalar.text))
                .help("`pubmark systems` lists them")),
        };
    }
    if axis.starts_with("options.") || NAMES.contains(&axis) {
        return Ok(plain(&scalar.text));
    }
    let of_flow = key_of_flow(axis).map(|(_, key)| key);
    match of_flow.or(key(axis).filter(|key| key.name == axis && key.section != Section::Run)) {
        Some(key) => key.read(&scalar.text).map_err(|error| Diagnostic::at_value(scalar.at, error)),
        None => Err(no_axis(axis, scalar.at)),
    }
}

/// The largest number that a condition can be compared with: up to here every whole number is exact
/// as an `f64`.
const EXACT: u64 = 1 << 53;

/// Returns a value of a key that no table describes: true, false, a number, or a text.
pub(crate) fn plain(text: &str) -> Value {
    serde_json::from_str::<Value>(text)
        .ok()
        .filter(|value| value.is_boolean() || value.as_u64().is_some_and(|number| number <= EXACT))
        .unwrap_or_else(|| text.into())
}

pub(crate) fn axis_names() -> impl Iterator<Item = &'static str> {
    KEYS.iter().filter(|key| key.section != Section::Run).map(|key| key.name).chain(["system"])
}

pub(crate) fn no_axis(name: &str, at: usize) -> Diagnostic {
    let names: Vec<&str> = axis_names().collect();
    Diagnostic::at(at, format!("`{name}` cannot be an axis")).help(suggestion(name, names))
}

/// The axes whose values are names in the study.
const NAMES: [&str; 3] = [PART, FLOW, PLAYING];

/// The axis whose values are the names of a study's parts.
pub(super) const PART: &str = "part";

pub(crate) fn known_axis(name: &str) -> bool {
    name.starts_with("options.")
        || NAMES.contains(&name)
        || key_of_flow(name).is_some()
        || axis_names().any(|known| known == name)
}

/// Reads the value of a key. If the key can be an axis and the text is not a single value, returns
/// the values that it lists with commas, each once.
pub(super) fn listed(key: &Key, text: &str) -> Result<Vec<Value>, Diagnostic> {
    let whole = match key.read(text) {
        Ok(value) => return Ok(vec![value]),
        Err(error) => error,
    };
    if !text.contains(',') || !known_axis(key.name) || key.has_commas {
        return Err(Diagnostic::whole(whole));
    }
    split(text, |part| key.read(part).map_err(Diagnostic::whole))
}

/// Reads values with commas between them, each once.
pub(super) fn split(text: &str, read: impl Fn(&str) -> Result<Value, Diagnostic>) -> Result<Vec<Value>, Diagnostic> {
    let mut values: Vec<Value> = Vec::new();
    for value in text.split(',').map(|part| read(part.trim())) {
        let value = value?;
        if !values.contains(&value) {
            values.push(value);
        }
    }
    Ok(values)
}
