//! The buckets of an HdrHistogram whose values begin at 1.
//!
//! Buckets have the width 1 up to twice the number of values that the digits tell apart, then twice the width in each
//! octave. They depend on the digits alone: a greater range only has more of them.

/// One day: above the recorded hour, so that agents' wider histograms are accepted, and below every
/// range that comes from a mistake of unit.
pub(crate) const VALUE_MAX: u64 = 86_400_000_000_000;

/// The buckets for a number of significant digits.
#[derive(Clone, Copy)]
pub(crate) struct Layout {
    digits: u8,
    /// Binary logarithm of the number of buckets in an octave.
    half_bits: u8,
}

impl Layout {
    pub(crate) fn new(digits: u8) -> Self {
        let single_unit = 2 * 10_u64.pow(u32::from(digits));
        Self { digits, half_bits: single_unit.next_power_of_two().ilog2() as u8 - 1 }
    }

    pub(crate) fn digits(self) -> u8 {
        self.digits
    }

    /// Returns the bucket of a value.
    #[inline]
    pub(crate) fn index(self, value: u64) -> usize {
        // Values below the second octave have a bucket each.
        let bits = u64::BITS - (value | (1 << self.half_bits)).leading_zeros();
        let shift = bits - u32::from(self.half_bits) - 1;
        ((shift as usize) << self.half_bits) + (value >> shift) as usize
    }

    /// Returns the binary logarithm of a bucket's width.
    fn shift(self, index: usize) -> u32 {
        (index >> self.half_bits).saturating_sub(1) as u32
    }

    /// Returns the lowest value of a bucket, which must be in range.
    pub(crate) fn bottom(self, index: usize) -> u64 {
        let shift = self.shift(index);
        ((index - ((shift as usize) << self.half_bits)) as u64) << shift
    }

    /// Returns the highest value of a bucket.
    pub(crate) fn top(self, index: usize) -> u64 {
        self.bottom(index) + (1 << self.shift(index)) - 1
    }

    /// Returns the middle of a bucket, rounded up.
    pub(crate) fn middle(self, index: usize) -> f64 {
        (self.bottom(index) + ((1 << self.shift(index)) >> 1)) as f64
    }

    /// Returns the lowest value of a bucket from outside, or `None` above [`VALUE_MAX`].
    pub(crate) fn checked_bottom(self, index: u64) -> Option<u64> {
        (index <= self.index(VALUE_MAX) as u64).then(|| self.bottom(index as usize))
    }
}
