//! Headers that each message carries beside its payload.

use crate::units::{UnitError, parse_size};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// Most headers of a message.
const HEADERS_MAX: usize = 100;
/// Longest sum of all names and values, bytes: AMQP needs all in one frame.
const SUM_MAX_BYTES: usize = 32 << 10;
/// Longest name, bytes: AMQP's limit.
const NAME_MAX_BYTES: usize = 255;
/// Characters of a header whose value does not matter.
const FILLER: &[u8] = b"abcdefghijklmnopqrstuvwxyz";

/// Names and values, the same in each message. Copies share them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Told", into = "Told")]
pub struct MessageHeaders(Arc<Told>);

/// The form in records and between processes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Told {
    text: String,
    list: Vec<(String, String)>,
}

/// Reasons why a text is not a list of headers.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeadersError {
    /// A size is invalid.
    #[error(transparent)]
    Size(#[from] UnitError),
    /// The text has no known form.
    #[error(
        "`{0}` is not a list of headers: write `name: value, name: value`, or `3 x 20B` for three of 20 bytes each"
    )]
    Form(String),
    /// A name is invalid.
    #[error(
        "`{0}` cannot be the name of a header: write 1 to {NAME_MAX_BYTES} visible ASCII characters without `:` and `,`"
    )]
    Name(String),
    /// A value is invalid.
    #[error("the header `{0}` has a control character in its value: leave it out")]
    Value(String),
    /// There are none, or too many.
    #[error("a message has 1 to {HEADERS_MAX} headers, not {0}")]
    Count(u64),
    /// They are too long.
    #[error("the headers have {0} bytes of names and values, and {SUM_MAX_BYTES} are the most: write shorter ones")]
    Long(u64),
    /// The size has no room for name and value.
    #[error("a header of {0} bytes has no room for its name and a value: write {1}B or more")]
    Short(u64, usize),
}

impl MessageHeaders {
    /// Parses `NAME: VALUE, …` or `N x SIZE`.
    pub fn parse(text: &str) -> Result<MessageHeaders, HeadersError> {
        let text = text.trim();
        let list = match text.split_once(" x ").filter(|_| !text.contains(':')) {
            Some((count, size)) => {
                let count = count.trim().parse().map_err(|_| HeadersError::Form(text.to_owned()))?;
                alike(count, parse_size(size.trim())?)?
            }
            None => {
                let pair = |one: &str| {
                    let (name, value) = one.split_once(':').ok_or_else(|| HeadersError::Form(text.to_owned()))?;
                    Ok((name.trim().to_owned(), value.trim().to_owned()))
                };
                text.split(',').map(pair).collect::<Result<_, HeadersError>>()?
            }
        };
        MessageHeaders::try_from(Told { text: text.to_owned(), list })
    }

    /// Returns names and values.
    pub fn list(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.list.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Returns the sum of the lengths of names and values, bytes.
    pub fn bytes(&self) -> usize {
        self.list().map(|(name, value)| name.len() + value.len()).sum()
    }
}

/// Returns `count` headers `h1`, `h2` and so on, whose names and values have `bytes` bytes each.
fn alike(count: u64, bytes: u64) -> Result<Vec<(String, String)>, HeadersError> {
    if count > HEADERS_MAX as u64 {
        return Err(HeadersError::Count(count));
    }
    let sum = count.saturating_mul(bytes);
    if sum > SUM_MAX_BYTES as u64 {
        return Err(HeadersError::Long(sum));
    }
    let header = |number: u64| {
        let name = format!("h{number}");
        let value_bytes = bytes.checked_sub(name.len() as u64).filter(|left| *left > 0);
        let value_bytes = value_bytes.ok_or(HeadersError::Short(bytes, name.len() + 1))?;
        let value = FILLER.iter().cycle().take(value_bytes as usize).map(|byte| char::from(*byte)).collect();
        Ok((name, value))
    };
    (1..=count).map(header).collect()
}

impl TryFrom<Told> for MessageHeaders {
    type Error = HeadersError;
    fn try_from(told: Told) -> Result<MessageHeaders, HeadersError> {
        if !(1..=HEADERS_MAX).contains(&told.list.len()) {
            return Err(HeadersError::Count(told.list.len() as u64));
        }
        let is_name = |name: &str| {
            (1..=NAME_MAX_BYTES).contains(&name.len())
                && name.bytes().all(|byte| byte.is_ascii_graphic() && !b":,".contains(&byte))
        };
        for (name, value) in &told.list {
            if !is_name(name) {
                return Err(HeadersError::Name(name.clone()));
            }
            if value.chars().any(char::is_control) {
                return Err(HeadersError::Value(name.clone()));
            }
        }
        let headers = MessageHeaders(Arc::new(told));
        match headers.bytes() {
            ..=SUM_MAX_BYTES => Ok(headers),
            bytes => Err(HeadersError::Long(bytes as u64)),
        }
    }
}

impl From<MessageHeaders> for Told {
    fn from(headers: MessageHeaders) -> Told {
        Arc::unwrap_or_clone(headers.0)
    }
}

impl fmt::Display for MessageHeaders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: &str) -> Vec<(String, String)> {
        let headers = MessageHeaders::parse(text).unwrap();
        let told = serde_json::to_string(&headers).unwrap();
        assert_eq!(serde_json::from_str::<MessageHeaders>(&told).unwrap(), headers);
        assert_eq!(headers.to_string(), text);
        headers.list().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    #[test]
    fn headers_are_listed_or_have_a_number_and_a_size() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(
            list("a: b, content-type: text/plain; q=1, empty:"),
            [pair("a", "b"), pair("content-type", "text/plain; q=1"), pair("empty", "")]
        );
        assert_eq!(list("2 x 5B"), [pair("h1", "abc"), pair("h2", "abc")]);
        let long = MessageHeaders::parse("3 x 1KiB").unwrap();
        assert_eq!((long.list().count(), long.bytes()), (3, 3_072));
    }

    #[test]
    fn what_no_protocol_carries_is_refused() {
        for (text, wanted) in [
            ("", "is not a list of headers"),
            ("a b", "is not a list of headers"),
            ("3 x", "is not a list of headers"),
            ("x x 3B", "is not a list of headers"),
            ("3 x 2B", "no room for its name and a value: write 3B"),
            ("0 x 20B", "1 to 100 headers, not 0"),
            ("101 x 20B", "1 to 100 headers, not 101"),
            ("5 x 8KiB", "40960 bytes of names and values"),
            (": v", "cannot be the name"),
            ("a b: v", "cannot be the name"),
            ("a: v\u{7}", "control character"),
        ] {
            let error = MessageHeaders::parse(text).unwrap_err().to_string();
            assert!(error.contains(wanted), "{text}: {error}");
        }
    }
}
