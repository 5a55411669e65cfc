//! The logarithm of the gamma function and its derivatives.

/// From here on the asymptotic series give the last bits with the terms below.
const SERIES_MIN: f64 = 12.0;
/// Newton's steps for [`trigamma_inverse`]: they at least double the digits.
const STEPS_MAX: u32 = 50;

/// The logarithm of the gamma function, for x above 0.
///
/// Source: Abramowitz and Stegun, *Handbook of Mathematical Functions* (1964),
/// 6.1.15 (recurrence) and 6.1.41 (Stirling's series).
pub(crate) fn ln_gamma(x: f64) -> f64 {
    const SERIES: [f64; 6] =
        [1.0 / 12.0, -1.0 / 360.0, 1.0 / 1_260.0, -1.0 / 1_680.0, 1.0 / 1_188.0, -691.0 / 360_360.0];
    let (mut x, mut product) = (x, 1.0);
    while x < SERIES_MIN {
        product *= x;
        x += 1.0;
    }
    let square = 1.0 / (x * x);
    let series = SERIES.iter().rev().fold(0.0, |sum, term| sum * square + term) / x;
    (x - 0.5) * x.ln() - x + 0.5 * (2.0 * std::f64::consts::PI).ln() + series - product.ln()
}

/// The first derivative of the logarithm of the gamma function, for x above 0.
/// Absolute error below 1e-12 times the larger of 1 and |result|.
///
/// Source: Abramowitz and Stegun (1964), 6.3.5 (recurrence) and 6.3.18.
pub fn digamma(x: f64) -> f64 {
    const SERIES: [f64; 6] = [1.0 / 12.0, -1.0 / 120.0, 1.0 / 252.0, -1.0 / 240.0, 1.0 / 132.0, -691.0 / 32_760.0];
    if x.is_nan() || x <= 0.0 {
        return f64::NAN;
    }
    let (mut x, mut before) = (x, 0.0);
    while x < SERIES_MIN {
        before -= 1.0 / x;
        x += 1.0;
    }
    let square = 1.0 / (x * x);
    let series = SERIES.iter().rev().fold(0.0, |sum, term| sum * square + term) * square;
    before + x.ln() - 0.5 / x - series
}

/// The second derivative of the logarithm of the gamma function, for x above
/// 0: the variance of the logarithm of a gamma variable of shape x. Relative
/// error below 1e-12.
///
/// Source: Abramowitz and Stegun (1964), 6.4.6 (recurrence) and 6.4.12.
pub fn trigamma(x: f64) -> f64 {
    const SERIES: [f64; 6] = [1.0 / 6.0, -1.0 / 30.0, 1.0 / 42.0, -1.0 / 30.0, 5.0 / 66.0, -691.0 / 2_730.0];
    if x.is_nan() || x <= 0.0 {
        return f64::NAN;
    }
    let (mut x, mut before) = (x, 0.0);
    while x < SERIES_MIN {
        before += 1.0 / (x * x);
        x += 1.0;
    }
    let square = 1.0 / (x * x);
    let series = SERIES.iter().rev().fold(0.0, |sum, term| sum * square + term) * square / x;
    before + 1.0 / x + 0.5 * square + series
}

/// The x above 0 whose [`trigamma`] is `value`; infinite where `value` is 0 or
/// less. Relative error below 1e-10 for values of 1e-6 to 1e6.
///
/// Source: Smyth (2004, see [`crate::ranking`]), appendix: Newton's method on
/// 1 / trigamma, which is convex and nearly a straight line.
pub fn trigamma_inverse(value: f64) -> f64 {
    if value.is_nan() {
        return f64::NAN;
    }
    if value <= 0.0 {
        return f64::INFINITY;
    }
    let mut x = 0.5 + 1.0 / value;
    for _ in 0..STEPS_MAX {
        let reached = trigamma(x);
        let step = reached * (1.0 - reached / value) / tetragamma(x);
        x += step;
        if (step / x).abs() < 1e-14 {
            break;
        }
    }
    x
}

/// The third derivative of the logarithm of the gamma function, below 0. Needs
/// few digits, as only Newton's steps are made of it.
///
/// Source: Abramowitz and Stegun (1964), 6.4.6 (recurrence) and 6.4.13.
fn tetragamma(x: f64) -> f64 {
    let (mut x, mut before) = (x, 0.0);
    while x < SERIES_MIN {
        before -= 2.0 / (x * x * x);
        x += 1.0;
    }
    let square = 1.0 / (x * x);
    before - square - square / x - 0.5 * square * square + square * square * square / 6.0
}
