//! The bytes of messages after the header.

use crate::header::pattern;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Length of the pieces of a body that each end in zeros, bytes.
const PIECE: usize = 100;

/// The content of bodies: a fixed pseudo-random pattern, of which each 100 bytes, counted from the beginning of the
/// message, may end in zeros.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PayloadContent {
    /// Zeros in 100 bytes.
    zeros: u8,
}

/// Error for a text that is not a content.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a content: write `random`, `zeros`, or `zeros P%` with P from 1 to 99, such as `zeros 60%`")]
pub struct UnknownContent(String);

impl PayloadContent {
    /// Parses `random`, `zeros` or `zeros P%`.
    pub fn parse(text: &str) -> Result<PayloadContent, UnknownContent> {
        let share = |text: &str| text.strip_suffix('%')?.parse().ok().filter(|percent| (1..=99).contains(percent));
        let zeros = match text.trim() {
            "random" => Some(0),
            "zeros" => Some(PIECE as u8),
            other => other.strip_prefix("zeros ").and_then(share),
        };
        zeros.map(|zeros| PayloadContent { zeros }).ok_or_else(|| UnknownContent(text.to_owned()))
    }

    /// True if there are no zeros.
    pub fn is_random(&self) -> bool {
        self.zeros == 0
    }

    /// Returns a message of this length without its header. A shorter one has the beginning of a longer one.
    pub fn message(self, len: usize) -> Vec<u8> {
        let mut message = pattern(len);
        let from = PIECE - usize::from(self.zeros);
        message.chunks_mut(PIECE).filter_map(|piece| piece.get_mut(from..)).for_each(|zeros| zeros.fill(0));
        message
    }
}

impl fmt::Display for PayloadContent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.zeros {
            0 => f.write_str("random"),
            100 => f.write_str("zeros"),
            zeros => write!(f, "zeros {zeros}%"),
        }
    }
}

impl TryFrom<String> for PayloadContent {
    type Error = UnknownContent;
    fn try_from(text: String) -> Result<Self, UnknownContent> {
        PayloadContent::parse(&text)
    }
}

impl From<PayloadContent> for String {
    fn from(content: PayloadContent) -> String {
        content.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::DeflateEncoder;
    use std::io::Write;

    fn compressed(text: &str, len: usize) -> f64 {
        let content = PayloadContent::parse(text).unwrap();
        assert_eq!(content.to_string(), text);
        let mut deflate = DeflateEncoder::new(Vec::new(), Compression::default());
        deflate.write_all(&content.message(len)).unwrap();
        deflate.finish().unwrap().len() as f64 / len as f64
    }

    #[test]
    fn a_share_of_zeros_compresses_by_that_share() {
        assert!(compressed("random", 10_000) > 1.0);
        assert!(compressed("zeros", 10_000) < 0.01);
        let half = compressed("zeros 50%", 10_000);
        assert!((0.48..0.58).contains(&half), "{half}");
        for text in ["", "zero", "zeros 0%", "zeros 100%", "zeros 50", "50%"] {
            assert!(PayloadContent::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn shorter_messages_are_the_beginning_of_longer_ones() {
        let content = PayloadContent::parse("zeros 75%").unwrap();
        let long = content.message(1_000);
        assert!(long[25..100].iter().all(|byte| *byte == 0) && long[100..125] == pattern(125)[100..]);
        assert!([0, 16, 24, 30, 99, 101].iter().all(|len| content.message(*len) == long[..*len]));
    }
}
