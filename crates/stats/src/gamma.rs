//! The logarithm of the gamma function.

use std::f64::consts::PI;

/// From here on Stirling's series is exact to the last bit with the terms below.
const STIRLING_MIN: f64 = 12.0;

/// Returns the logarithm of the gamma function, for x above 0.
///
/// Source: Abramowitz and Stegun, *Handbook of Mathematical Functions* (1964), 6.1.15 (recurrence)
/// and 6.1.41 (Stirling's series).
pub(crate) fn ln_gamma(x: f64) -> f64 {
    const SERIES: [f64; 6] =
        [1.0 / 12.0, -1.0 / 360.0, 1.0 / 1_260.0, -1.0 / 1_680.0, 1.0 / 1_188.0, -691.0 / 360_360.0];
    let (mut x, mut product) = (x, 1.0);
    while x < STIRLING_MIN {
        product *= x;
        x += 1.0;
    }
    let square = 1.0 / (x * x);
    let series = SERIES.iter().rev().fold(0.0, |sum, term| sum * square + term) / x;
    (x - 0.5) * x.ln() - x + 0.5 * (2.0 * PI).ln() + series - product.ln()
}
