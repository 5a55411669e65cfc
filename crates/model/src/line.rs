//! What is written as a line of JSON: records, commands and events.

use crate::protocol::{Command, Event};
use crate::record::RunRecord;

/// A thing that is one line of JSON. It is read and written here and nowhere
/// else, so that the code which does it, of hundreds of fields, is made once and
/// not in every crate that names the type.
pub trait JsonLine: Sized {
    /// Reads a line; spaces around it are passed over.
    ///
    /// # Errors
    /// What is wrong with it, and at which column.
    fn from_json(line: &[u8]) -> serde_json::Result<Self>;

    /// The line, without its end.
    ///
    /// # Errors
    /// Where a map's key is no text, which none here is.
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
