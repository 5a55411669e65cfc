//! Histograms as agents report them.

use pubmark_stats::{Histogram, HistogramError};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A histogram of times, ns, as an agent reports it. It is validated when it is read, so that the
/// error of an invalid one can name the field.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum PackedHistogram {
    /// HdrHistogram V2 compressed, base64.
    V2(String),
    /// Values in ns, 0 to a day, ascending, each with its count.
    Pairs(Vec<(u64, u64)>),
    /// Invalid content.
    Neither(Value),
}

/// Reasons why a histogram cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PackedError {
    /// It has neither of the two forms.
    #[error("it is neither a text (HdrHistogram V2, base64) nor a list of [value, count] with whole numbers from 0 on")]
    Form,
    /// It has one of the forms, but cannot be read.
    #[error("{0}")]
    Unreadable(String),
    /// It has a different precision.
    #[error("it has {found} significant digits, and {wanted} are needed")]
    Digits {
        /// Its digits.
        found: u8,
        /// The required digits.
        wanted: u8,
    },
}

impl From<HistogramError> for PackedError {
    fn from(error: HistogramError) -> PackedError {
        PackedError::Unreadable(error.to_string())
    }
}

impl PackedHistogram {
    /// Significant digits of histograms.
    pub const DIGITS: u8 = 3;
    /// Significant digits of the histograms of a window's slice.
    pub const SLICE_DIGITS: u8 = 2;

    /// Encodes a histogram.
    pub fn of(histogram: &Histogram) -> PackedHistogram {
        PackedHistogram::V2(histogram.encode())
    }

    /// Decodes it with this number of digits: 3 or 2.
    ///
    /// # Errors
    /// It is invalid, or has other digits.
    pub fn read(&self, digits: u8) -> Result<Histogram, PackedError> {
        let histogram = match self {
            PackedHistogram::V2(text) => Histogram::decode(text)?,
            PackedHistogram::Pairs(pairs) => {
                let coarse = digits == PackedHistogram::SLICE_DIGITS;
                let mut histogram = if coarse { Histogram::coarse() } else { Histogram::latency() };
                histogram.record_pairs(pairs)?;
                histogram
            }
            PackedHistogram::Neither(_) => return Err(PackedError::Form),
        };
        match histogram.digits() {
            found if found == digits => Ok(histogram),
            found => Err(PackedError::Digits { found, wanted: digits }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, digits: u8) -> Result<Histogram, PackedError> {
        serde_json::from_str::<PackedHistogram>(text).unwrap().read(digits)
    }

    #[test]
    fn both_forms_are_the_same_histogram() {
        let mut histogram = Histogram::latency();
        [(0, 2), (1_500, 1), (2_000_000, 7)].into_iter().for_each(|(ns, count)| histogram.record_n(ns, count));
        let text = serde_json::to_string(&PackedHistogram::of(&histogram)).unwrap();
        assert!(read(&text, 3).unwrap() == histogram);
        assert!(read("[[0,2],[1500,1],[2000000,7]]", 3).unwrap() == histogram);
        assert_eq!(read("[[1500,1]]", 2).unwrap().digits(), 2);
        assert!(read("[]", 3).unwrap().is_empty());
    }

    #[test]
    fn what_is_wrong_is_said() {
        let says = |text: &str| read(text, 3).map(drop).unwrap_err().to_string();
        for other in ["{}", "7", "[[1.5,2]]", "[[-1,2]]", "[5,6]", "[[1,2,3]]"] {
            assert!(says(other).contains("neither a text"), "{other}");
        }
        assert!(says("\"abc\"").contains("base64"));
        let coarse = serde_json::to_string(&PackedHistogram::of(&Histogram::coarse())).unwrap();
        assert_eq!(says(&coarse), "it has 2 significant digits, and 3 are needed");
        assert!(says("[[9,1],[8,1]]").contains("rise") && says("[[9,1],[9,1]]").contains("rise"));
        assert!(says("[[9,0]]").contains("count"));
        assert!(says("[[90000000000000,1]]").contains("day"));
        assert!(says("[[1,9007199254740993]]").contains("2^53"));
    }
}
