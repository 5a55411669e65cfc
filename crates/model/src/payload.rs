//! The size of messages: one for all of them, or a distribution from which each message's size is drawn.

mod bodies;
mod lognormal;
mod size_file;
mod sizes;

use crate::units::{UnitError, format_per_million, format_size, parse_per_million, parse_size};
pub use bodies::{BodiesError, PayloadBodies, PayloadFiles};
pub use size_file::SizeFileError;
pub use sizes::{MessageSizes, PayloadSizes, SizeClass, SizesError};
use std::collections::BTreeMap;
use std::fmt;

/// Shortest message, bytes: its header.
pub const LEAST_BYTES: u64 = crate::header::MIN_LEN as u64;
/// Longest message, bytes.
pub const MOST_BYTES: u64 = 1 << 30;

/// Most sizes of a mix.
const MIX_MAX: usize = 16;
/// The whole of a mix, millionths.
const WHOLE: u64 = 1_000_000;

/// Sizes of the files that payloads name, by the name.
pub type SizeFiles = BTreeMap<String, PayloadSizes>;

/// The size of messages, as typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload {
    /// All messages have this size, bytes.
    Constant(u64),
    /// Each size between two is equally likely; both are included.
    Uniform {
        /// Smallest size, bytes.
        least: u64,
        /// Largest size, bytes.
        most: u64,
    },
    /// The logarithm of the size is normally distributed. Sizes beyond a bound have the bound's size.
    LogNormal {
        /// Median, bytes.
        p50: u64,
        /// 99th percentile, bytes.
        p99: u64,
        /// Largest size, bytes.
        most: u64,
    },
    /// A few sizes, each with its share in millionths.
    Mix(Vec<(u64, u64)>),
    /// The sizes of a file.
    File(String),
}

/// Reasons why a text is not a size of messages.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PayloadError {
    /// A size is invalid.
    #[error(transparent)]
    Size(#[from] UnitError),
    /// A size is out of range.
    #[error(
        "`{0}` is outside the range of {LEAST_BYTES} to {MOST_BYTES} bytes: each message has a header of {LEAST_BYTES} bytes"
    )]
    Range(String),
    /// The text has no known form.
    #[error(
        "`{0}` is not a message size: write a size such as `1KiB`, or `uniform 64B to 4KiB`, \
         `lognormal p50 512B p99 16KiB max 64KiB`, `mix 64B 90% 4KiB 9% 1MiB 1%` or `file sizes.txt`"
    )]
    Form(String),
    /// Sizes that should rise do not.
    #[error("`{text}`: `{upper}` must be more than `{lower}`")]
    Order {
        /// The text as typed.
        text: String,
        /// The size that should be smaller.
        lower: String,
        /// The size that should be larger.
        upper: String,
    },
    /// A share is invalid.
    #[error("`{0}` is not a share of the messages: write a percentage such as `90%`, after each size")]
    Share(String),
    /// The shares do not add up.
    #[error("`{text}`: the shares add up to {}, not to 100%: list all sizes in one text, without commas", format_per_million(*.sum))]
    Sum {
        /// The text as typed.
        text: String,
        /// Their sum, millionths.
        sum: u64,
    },
    /// A size is listed twice.
    #[error("`{0}` is in the mix twice: add up its shares")]
    Twice(String),
    /// There are too few or too many sizes.
    #[error("a mix has 2 to {MIX_MAX} sizes, not {0}: write one size by itself, and many to a file (`file sizes.txt`)")]
    Count(usize),
}

/// Parses a size within the range of messages.
fn size(text: &str) -> Result<u64, PayloadError> {
    let bytes = parse_size(text)?;
    let in_range = (LEAST_BYTES..=MOST_BYTES).contains(&bytes);
    in_range.then_some(bytes).ok_or_else(|| PayloadError::Range(text.to_owned()))
}

/// Parses sizes of which each must be larger than the one before it.
fn rising<const N: usize>(text: &str, sizes: [&str; N]) -> Result<[u64; N], PayloadError> {
    let mut found = [0; N];
    for (at, one) in sizes.iter().enumerate() {
        found[at] = size(one)?;
        if at > 0 && found[at] <= found[at - 1] {
            let (lower, upper) = (sizes[at - 1].to_owned(), sizes[at].to_owned());
            return Err(PayloadError::Order { text: text.to_owned(), lower, upper });
        }
    }
    Ok(found)
}

impl Payload {
    /// Parses a size, `uniform S to S`, `lognormal p50 S p99 S max S`, `mix S P% S P% …` or `file NAME`.
    pub fn parse(text: &str) -> Result<Payload, PayloadError> {
        let text = text.trim();
        if let Some(name) = text.strip_prefix("file ").map(str::trim).filter(|name| !name.is_empty()) {
            return Ok(Payload::File(name.to_owned()));
        }
        let spaced = text.replace(',', " ");
        let words: Vec<&str> = spaced.split_whitespace().collect();
        match words.as_slice() {
            ["uniform", least, "to", most] => {
                let [least, most] = rising(text, [least, most])?;
                Ok(Payload::Uniform { least, most })
            }
            ["lognormal", "p50", p50, "p99", p99, "max", most] => {
                let [p50, p99] = rising(text, [p50, p99])?;
                let (upper, most) = (*most, size(most)?);
                let lower = format_size(p99);
                match most < p99 {
                    true => Err(PayloadError::Order { text: text.to_owned(), lower, upper: upper.to_owned() }),
                    false => Ok(Payload::LogNormal { p50, p99, most }),
                }
            }
            ["mix", entries @ ..] => mix(text, entries),
            _ if text.starts_with(|first: char| first.is_ascii_digit() || first == '.') => {
                Ok(Payload::Constant(size(text)?))
            }
            _ => Err(PayloadError::Form(text.to_owned())),
        }
    }

    /// Returns the longest message, bytes; `None` if a file says it.
    pub fn most_bytes(&self) -> Option<u64> {
        match self {
            Payload::Constant(most) | Payload::Uniform { most, .. } | Payload::LogNormal { most, .. } => Some(*most),
            Payload::Mix(entries) => entries.iter().map(|(bytes, _)| *bytes).max(),
            Payload::File(_) => None,
        }
    }

    /// Returns the distribution; `None` if all messages have one size, or if `files` has not the file.
    pub fn sizes(&self, files: &SizeFiles) -> Option<PayloadSizes> {
        let classes = match self {
            Payload::Constant(_) => return None,
            Payload::File(name) => return files.get(name).cloned(),
            Payload::Uniform { least, most } => vec![SizeClass { weight: 1, least: *least, most: *most }],
            Payload::LogNormal { p50, p99, most } => lognormal::classes(*p50, *p99, *most),
            Payload::Mix(entries) => entries
                .iter()
                .map(|(bytes, weight)| SizeClass { weight: *weight, least: *bytes, most: *bytes })
                .collect(),
        };
        PayloadSizes::new(self.to_string(), classes).ok()
    }
}

/// Reads the sizes of a file, one a line, each with an optional count; `name` is the file's name in the study.
pub fn read_sizes(name: &str, text: &str) -> Result<PayloadSizes, SizeFileError> {
    let classes = size_file::classes(name, text)?;
    PayloadSizes::new(Payload::File(name.to_owned()).to_string(), classes)
        .map_err(|source| SizeFileError::Sizes { file: name.to_owned(), source })
}

fn mix(text: &str, entries: &[&str]) -> Result<Payload, PayloadError> {
    let mut found: Vec<(u64, u64)> = Vec::new();
    for entry in entries.chunks(2) {
        let bytes = size(entry[0])?;
        let share = entry.get(1).and_then(|share| parse_per_million(share)).filter(|share| *share > 0);
        let share = share.ok_or_else(|| PayloadError::Share(entry.join(" ")))?;
        if found.iter().any(|(known, _)| *known == bytes) {
            return Err(PayloadError::Twice(entry[0].to_owned()));
        }
        found.push((bytes, share));
    }
    let sum = found.iter().map(|(_, share)| share).fold(0, |sum: u64, share| sum.saturating_add(*share));
    match found.len() {
        _ if sum != WHOLE => Err(PayloadError::Sum { text: text.to_owned(), sum }),
        2..=MIX_MAX => Ok(Payload::Mix(found)),
        count => Err(PayloadError::Count(count)),
    }
}

impl fmt::Display for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Payload::Constant(bytes) => f.write_str(&format_size(*bytes)),
            Payload::Uniform { least, most } => write!(f, "uniform {} to {}", format_size(*least), format_size(*most)),
            Payload::LogNormal { p50, p99, most } => {
                let [p50, p99, most] = [p50, p99, most].map(|bytes| format_size(*bytes));
                write!(f, "lognormal p50 {p50} p99 {p99} max {most}")
            }
            Payload::Mix(entries) => {
                f.write_str("mix")?;
                let mut entries = entries.iter();
                entries
                    .try_for_each(|(bytes, share)| write!(f, " {} {}", format_size(*bytes), format_per_million(*share)))
            }
            Payload::File(name) => write!(f, "file {name}"),
        }
    }
}

#[cfg(test)]
mod tests;
