//! Conversion to and from lines of JSON: records, commands and events.

use crate::protocol::{Command, Event};
use crate::record::RunRecord;

/// A type that is stored as one line of JSON. Only this module reads and writes it, so that the
/// code for hundreds of fields is compiled once and not in every crate that uses the type.
pub trait JsonLine: Sized {
    /// Parses a line; surrounding spaces are ignored.
    ///
    /// # Errors
    /// Says what is wrong, and at which column.
    fn from_json(line: &[u8]) -> serde_json::Result<Self>;

    /// Returns the line, without its end.
    ///
    /// # Errors
    /// A key of a map is not a text, which does not occur in these types.
    fn to_json(&self) -> serde_json::Result<Vec<u8>>;
}

macro_rules! lines {
    ($($kind:ty),*) => {$(
        impl JsonLine for $kind {
            fn from_json(line: &[u8]) -> serde_json::Result<Self> {
                serde_json::from_slice(line)
            }

            fn to_json(&self) -> serde_json::Result<Vec<u8>> {
                serde_json::to_vec(self)
            }
        }
    )*};
}

lines!(RunRecord, Command, Event);
