//! A histogram of times with a fixed range, a fixed size and a bounded error.

use std::fmt;
use std::iter::zip;
use std::ops::RangeInclusive;

use crate::layout::{Layout, VALUE_MAX};
use crate::summary::Summary;

/// The largest time that a histogram distinguishes: one hour, in nanoseconds. Greater values are
/// recorded as this one and counted by [`Histogram::saturated`].
pub const LATENCY_MAX_NS: u64 = 3_600_000_000_000;

/// The most values in a histogram, 2^53: up to here every count and every sum of counts is exact as
/// a `u64` and as an `f64`.
pub const COUNT_MAX: u64 = 1 << 53;

const LATENCY_DIGITS: u8 = 3;
const COARSE_DIGITS: u8 = 2;

/// Buckets that are added up together.
const CHUNK: usize = 8;

/// Reasons why histograms could not be decoded or merged.
#[derive(Debug, thiserror::Error)]
pub enum HistogramError {
    /// The text is longer than that of any histogram in range.
    #[error("encoded histogram of {len} bytes exceeds the limit of {limit}")]
    TooLong {
        /// Length of the text, bytes.
        len: usize,
        /// Largest allowed length, bytes.
        limit: usize,
    },
    /// The text is not standard base64 with padding (RFC 4648, section 4).
    #[error("encoded histogram is not base64")]
    Base64(#[from] base64::DecodeError),
    /// The compressed part is damaged or expands beyond any histogram in range.
    #[error("encoded histogram does not decompress: {0}")]
    Inflate(String),
    /// The bytes do not follow the HdrHistogram V2 format.
    #[error("not an HdrHistogram V2 histogram: {0}")]
    Malformed(&'static str),
    /// A valid histogram, but with a unit, range or precision that a latency
    /// in nanoseconds cannot have.
    #[error(
        "histogram of {low}..{high} with {digits} significant digits; \
         expected from 1 ns, to at most one day, with 2 or 3 digits"
    )]
    Bounds {
        /// Lowest discernible value.
        low: u64,
        /// Highest trackable value.
        high: u64,
        /// Significant decimal digits.
        digits: u32,
    },
    /// The counts add up to more than [`COUNT_MAX`].
    #[error("histogram holds more than 2^53 values")]
    TooManyValues,
    /// Pairs of value and count that are not a histogram.
    #[error("pair {at} of value and count: {why}")]
    Pair {
        /// Index of the pair, from 0.
        at: usize,
        /// The reason.
        why: &'static str,
    },
    /// The two histograms have different precision.
    #[error("cannot merge a histogram of {theirs} significant digits into one of {ours}")]
    Precision {
        /// Digits of the histogram merged into.
        ours: u8,
        /// Digits of the other histogram.
        theirs: u8,
    },
}

/// Counts of times in nanoseconds, from 0 to one hour ([`LATENCY_MAX_NS`]).
///
/// A fixed-size HdrHistogram (Gil Tene, <http://hdrhistogram.org>): buckets grow with the value so
/// that the relative error stays bounded. All memory is allocated on construction; recording
/// neither allocates nor fails. The system provides pages of it when they are first written, so it
/// takes as much as the values are spread.
///
/// Equality compares the counts bucket by bucket, not [`Histogram::saturated`].
pub struct Histogram {
    layout: Layout,
    counts: Box<[u64]>,
    total: u64,
    /// Lowest and highest bucket in use. If there is none, they are the number of buckets and 0.
    lowest: usize,
    highest: usize,
    saturated: u64,
}

impl Histogram {
    /// Creates an empty histogram of 3 significant digits (relative error at most 0.1 %), up to 264 KiB.
    pub fn latency() -> Self {
        Self::with_digits(LATENCY_DIGITS)
    }

    /// Creates an empty histogram of 2 significant digits (relative error at most 1 %), up to 36 KiB:
    /// small enough for one per time slice.
    pub fn coarse() -> Self {
        Self::with_digits(COARSE_DIGITS)
    }

    pub(crate) fn of_digits(digits: u32) -> Option<Self> {
        [LATENCY_DIGITS, COARSE_DIGITS].into_iter().find(|known| u32::from(*known) == digits).map(Self::with_digits)
    }

    fn with_digits(digits: u8) -> Self {
        let layout = Layout::new(digits);
        // Of zeros that are not written no page is in use, unlike those that `resize` writes.
        let buckets = layout.index(LATENCY_MAX_NS) + 1;
        Self { layout, counts: vec![0; buckets].into(), total: 0, lowest: buckets, highest: 0, saturated: 0 }
    }

    /// Returns its significant decimal digits: 3 or 2.
    pub fn digits(&self) -> u8 {
        self.layout.digits()
    }

    /// Returns the buckets from the lowest to the highest one in use.
    fn used(&self) -> RangeInclusive<usize> {
        self.lowest..=self.highest
    }

    /// Returns the counts from the lowest bucket in use to the highest one, with the bucket.
    fn counts_used(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        let counts = self.counts.get(self.used()).unwrap_or_default();
        zip(self.lowest.., counts.iter().copied()).filter(|(_, count)| *count > 0)
    }

    /// Returns the counts of all buckets up to the highest one in use; of the first one if there is none.
    pub(crate) fn counts(&self) -> &[u64] {
        &self.counts[..=self.highest]
    }

    #[inline]
    fn count_in(&mut self, ns: u64, count: u64) {
        let index = self.layout.index(ns.min(LATENCY_MAX_NS));
        self.counts[index] += count;
        self.total += count;
        self.lowest = self.lowest.min(index);
        self.highest = self.highest.max(index);
    }

    /// Counts one value. A value above [`LATENCY_MAX_NS`] is counted as that,
    /// and in [`Histogram::saturated`]. 0 is a value of its own.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        if ns > LATENCY_MAX_NS {
            self.saturated = self.saturated.saturating_add(1);
        }
        // No check against COUNT_MAX: values recorded one by one cannot reach it, and sums are
        // exact as u64 for 2^64 - 2^53 values beyond it.
        self.count_in(ns, 1);
    }

    /// Counts one value `count` times. Values beyond [`COUNT_MAX`] in total are not counted.
    pub fn record_n(&mut self, ns: u64, count: u64) {
        let count = count.min(COUNT_MAX.saturating_sub(self.total));
        if count == 0 {
            return;
        }
        if ns > LATENCY_MAX_NS {
            self.saturated = self.saturated.saturating_add(count);
        }
        self.count_in(ns, count);
    }

    /// Counts pairs of a value, ns, and its count. They come from outside, so values must rise,
    /// counts must be above 0 and no value beyond a day.
    ///
    /// # Errors
    /// [`HistogramError::Pair`], and [`HistogramError::TooManyValues`] beyond [`COUNT_MAX`]; the
    /// pairs before the error are counted.
    pub fn record_pairs(&mut self, pairs: &[(u64, u64)]) -> Result<(), HistogramError> {
        let mut before = None;
        for (at, (ns, count)) in pairs.iter().copied().enumerate() {
            if before.is_some_and(|before| ns <= before) {
                return Err(HistogramError::Pair { at, why: "values have to rise from pair to pair" });
            }
            if count == 0 {
                return Err(HistogramError::Pair { at, why: "its count is 0" });
            }
            if ns > VALUE_MAX {
                return Err(HistogramError::Pair { at, why: "its value is more than a day in ns" });
            }
            if count > COUNT_MAX - self.count() {
                return Err(HistogramError::TooManyValues);
            }
            self.record_n(ns, count);
            before = Some(ns);
        }
        Ok(())
    }

    /// Adds the counts of another histogram, including `saturated`, as if all its values had been
    /// recorded here.
    ///
    /// # Errors
    /// [`HistogramError::Precision`] if the digits differ: the coarser histogram's values are not
    /// known to the finer one's precision. [`HistogramError::TooManyValues`] beyond [`COUNT_MAX`].
    /// On error nothing was added.
    pub fn merge(&mut self, other: &Histogram) -> Result<(), HistogramError> {
        let (ours, theirs) = (self.digits(), other.digits());
        if ours != theirs {
            return Err(HistogramError::Precision { ours, theirs });
        }
        if self.count().saturating_add(other.count()) > COUNT_MAX {
            return Err(HistogramError::TooManyValues);
        }
        self.add(other);
        Ok(())
    }

    /// Adds the counts of one with the same digits.
    fn add(&mut self, other: &Histogram) {
        other.counts_used().for_each(|(index, count)| self.counts[index] += count);
        self.total += other.total;
        self.lowest = self.lowest.min(other.lowest);
        self.highest = self.highest.max(other.highest);
        self.saturated = self.saturated.saturating_add(other.saturated);
    }

    /// Removes all values and keeps the memory.
    pub fn clear(&mut self) {
        let used = self.used();
        self.counts.get_mut(used).unwrap_or_default().fill(0);
        (self.total, self.lowest, self.highest, self.saturated) = (0, self.counts.len(), 0, 0);
    }

    /// Returns the number of values recorded.
    pub fn count(&self) -> u64 {
        self.total
    }

    /// True if no value was recorded.
    pub fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// Returns the number of values above [`LATENCY_MAX_NS`]. Not part of the encoded form: for a
    /// decoded histogram it is 0, unless its own range was longer and contains such values.
    pub fn saturated(&self) -> u64 {
        self.saturated
    }

    /// Returns the bottom of the lowest bucket in use, ns; 0 if empty.
    pub fn min(&self) -> u64 {
        if self.is_empty() { 0 } else { self.layout.bottom(self.lowest) }
    }

    /// Returns the top of the highest bucket in use, ns; 0 if empty.
    pub fn max(&self) -> u64 {
        self.layout.top(self.highest)
    }

    /// Returns the mean of the bucket middles, ns; 0 if empty.
    pub fn mean(&self) -> f64 {
        let total = self.total as f64;
        self.counts_used().fold(0.0, |mean, (index, count)| mean + self.layout.middle(index) * count as f64 / total)
    }

    /// Returns the standard deviation (of the population) of the bucket middles, ns; 0 if empty.
    pub fn stddev(&self) -> f64 {
        let mean = self.mean();
        let square = |(index, count): (usize, u64)| (self.layout.middle(index) - mean).powi(2) * count as f64;
        let squares: f64 = self.counts_used().map(square).sum();
        (squares / self.total.max(1) as f64).sqrt()
    }

    /// Returns the top of the lowest bucket at or below which at least `quantile` of the values
    /// lie, ns; 0 if empty.
    ///
    /// `quantile` is clamped to 0..=1 (NaN counts as 0). At 0 it is [`Histogram::min`], at 1
    /// [`Histogram::max`].
    pub fn value_at(&self, quantile: f64) -> u64 {
        if quantile.is_nan() || quantile <= 0.0 || self.is_empty() {
            return self.min();
        }
        let wanted = ((quantile.min(1.0) * self.total as f64).ceil() as u64).max(1);
        let (mut at, mut below) = (self.lowest, 0);
        // Several at once, which takes a quarter of the time.
        for several in self.counts[self.used()].chunks(CHUNK) {
            let count: u64 = several.iter().sum();
            if below + count >= wanted {
                break;
            }
            (at, below) = (at + several.len(), below + count);
        }
        while below + self.counts[at] < wanted {
            (at, below) = (at + 1, below + self.counts[at]);
        }
        self.layout.top(at)
    }

    /// Returns the buckets in use in ascending order, each as its top in ns and its count.
    pub fn nonzero(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.counts_used().map(|(index, count)| (self.layout.top(index), count))
    }

    /// Returns the figures of the distribution, or `None` if it is empty.
    pub fn summary(&self) -> Option<Summary> {
        if self.is_empty() {
            return None;
        }
        Some(Summary {
            count: self.count(),
            min: self.min(),
            mean: self.mean(),
            stddev: self.stddev(),
            p50: self.value_at(0.50),
            p90: self.value_at(0.90),
            p95: self.value_at(0.95),
            p99: self.value_at(0.99),
            p999: self.value_at(0.999),
            max: self.max(),
        })
    }
}

impl Clone for Histogram {
    /// Copies the buckets in use, so that others take no memory in the copy either.
    fn clone(&self) -> Self {
        let mut copy = Self::with_digits(self.digits());
        copy.add(self);
        copy
    }
}

impl PartialEq for Histogram {
    fn eq(&self, other: &Self) -> bool {
        self.digits() == other.digits() && self.nonzero().eq(other.nonzero())
    }
}

impl fmt::Debug for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Histogram")
            .field("digits", &self.digits())
            .field("count", &self.count())
            .field("min", &self.min())
            .field("max", &self.max())
            .field("saturated", &self.saturated)
            .finish()
    }
}
