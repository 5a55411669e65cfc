//! Conversion of values to TOML.

use serde_json::Value as Json;
use toml::Value;

/// Converts a value to TOML.
pub(crate) fn value(value: &Json) -> Value {
    match value {
        Json::Bool(value) => Value::Boolean(*value),
        Json::Number(number) => match (number.as_i64(), number.as_f64().filter(|_| number.is_f64())) {
            (Some(number), _) => Value::Integer(number),
            (None, Some(number)) => Value::Float(number),
            // The number is beyond the integers of TOML.
            (None, None) => Value::String(number.to_string()),
        },
        Json::Array(values) => list(values),
        Json::String(text) => Value::String(text.clone()),
        other => Value::String(other.to_string()),
    }
}

/// Converts a list of values.
pub(crate) fn list<'a>(values: impl IntoIterator<Item = &'a Json>) -> Value {
    Value::Array(values.into_iter().map(value).collect())
}

/// Converts a list of texts.
pub(crate) fn texts(all: impl IntoIterator<Item: AsRef<str>>) -> Value {
    Value::Array(all.into_iter().map(|text| text.as_ref().into()).collect())
}
