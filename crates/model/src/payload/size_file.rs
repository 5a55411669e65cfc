//! Files of sizes: one a line, each with an optional count.

use super::sizes::{SizeClass, SizesError};
use crate::header::MIN_LEN;
use crate::units::parse_size;
use std::collections::BTreeMap;

/// Longest message, bytes.
const MOST_BYTES: u64 = 1 << 30;

/// Reasons why a file has no sizes of messages.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SizeFileError {
    /// A line is no size.
    #[error(
        "{file}:{line}: `{text}` is not a size from {MIN_LEN} bytes to 1 GiB, with an optional count: write `64B` or `64B 900`"
    )]
    Line {
        /// Name of the file.
        file: String,
        /// Number of the line, from 1.
        line: usize,
        /// The line.
        text: String,
    },
    /// There are no lines.
    #[error("{0} has no sizes: write one on each line, such as `64B` or `64B 900`")]
    Empty(String),
    /// The sizes are too many.
    #[error("{file}: {source}")]
    Sizes {
        /// Name of the file.
        file: String,
        /// The reason.
        source: SizesError,
    },
}

/// Reads the classes of a file. Empty lines and those that begin with `#` do not count.
pub(super) fn classes(file: &str, text: &str) -> Result<Vec<SizeClass>, SizeFileError> {
    let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
    let lines = (1..).zip(text.lines().map(str::trim));
    for (line, text) in lines.filter(|(_, text)| !text.is_empty() && !text.starts_with('#')) {
        let (bytes, count) = entry(text).ok_or_else(|| {
            let text = text.chars().take(80).collect();
            SizeFileError::Line { file: file.to_owned(), line, text }
        })?;
        let sum = counts.entry(bytes).or_default();
        *sum = sum.saturating_add(count);
    }
    if counts.is_empty() {
        return Err(SizeFileError::Empty(file.to_owned()));
    }
    Ok(counts.into_iter().map(|(bytes, weight)| SizeClass { weight, least: bytes, most: bytes }).collect())
}

/// Parses a size and its count.
fn entry(text: &str) -> Option<(u64, u64)> {
    let mut words = text.split_whitespace();
    let bytes = parse_size(words.next()?).ok().filter(|bytes| (MIN_LEN as u64..=MOST_BYTES).contains(bytes))?;
    let count = words.next().map_or(Some(1), |count| count.parse().ok().filter(|count| *count > 0))?;
    words.next().is_none().then_some((bytes, count))
}
