//! Student's t distribution.

use crate::gamma::ln_gamma;
use std::f64::consts::PI;

/// Enough for the fraction to converge for all arguments in use.
const FRACTION_TERMS: u32 = 400;
/// A few steps are enough; this limit applies if rounding prevents convergence.
const STEPS_MAX: u32 = 50;

/// Returns the probability, in 0..=1, of a value of Student's t with `degrees` of freedom at least
/// as far from 0 as t.
///
/// Relative error below 1e-10 for 1 to 1,000 degrees, in the tail too. NaN if an argument is NaN or
/// `degrees` is not above 0.
///
/// Source: NIST *Digital Library of Mathematical Functions*, 8.17(ii) for the relation to the
/// incomplete beta function.
pub fn student_two_sided_p(t: f64, degrees: f64) -> f64 {
    if t.is_nan() || degrees.is_nan() || degrees <= 0.0 {
        return f64::NAN;
    }
    let square = t * t;
    if square == 0.0 {
        return 1.0;
    }
    if square.is_infinite() {
        return 0.0;
    }
    // Both shares are computed without cancellation, because one of them may be tiny.
    let (near, far) = (square / (degrees + square), degrees / (degrees + square));
    beta_share(degrees / 2.0, 0.5, far, near)
}

/// Returns the t beyond which, on both sides together, lies a probability of `p` (0 < p < 1): the
/// half-width of a confidence interval of 1 − p in standard errors.
///
/// Relative error below 1e-9 for 1 to 1,000 degrees. NaN if an argument is out of range.
pub fn student_two_sided_t(p: f64, degrees: f64) -> f64 {
    if !(p > 0.0 && p < 1.0 && degrees > 0.0) {
        return f64::NAN;
    }
    let mut t = 1.0;
    while student_two_sided_p(t, degrees) > p {
        t *= 2.0;
    }
    // Newton's method for ln p over ln t. That is a concave function, because the density of ln |t|
    // is log-concave, so from the right every step lands between the root and where it started.
    for _ in 0..STEPS_MAX {
        let reached = student_two_sided_p(t, degrees);
        let slope = -2.0 * t * density(t, degrees) / reached;
        let next = t * ((p.ln() - reached.ln()) / slope).exp();
        let is_done = (next / t - 1.0).abs() < 4.0 * f64::EPSILON;
        t = next;
        if is_done {
            break;
        }
    }
    t
}

/// Returns the density of Student's t.
fn density(t: f64, degrees: f64) -> f64 {
    let log = ln_gamma((degrees + 1.0) / 2.0)
        - ln_gamma(degrees / 2.0)
        - 0.5 * (degrees * PI).ln()
        - (degrees + 1.0) / 2.0 * (t * t / degrees).ln_1p();
    log.exp()
}

/// Returns the regularised incomplete beta function `I_x(a, b)`; `y` is 1 − x.
fn beta_share(a: f64, b: f64, x: f64, y: f64) -> f64 {
    if x > (a + 1.0) / (a + b + 2.0) { 1.0 - beta_fraction(b, a, y, x) } else { beta_fraction(a, b, x, y) }
}

/// Computes the continued fraction DLMF 8.17.22, by Lentz's method as modified by Thompson and
/// Barnett (*Coulomb and Bessel functions of complex arguments and order*, Journal of Computational
/// Physics 64, 1986).
fn beta_fraction(a: f64, b: f64, x: f64, y: f64) -> f64 {
    /// Replaces a denominator of 0.
    const TINY: f64 = 1e-300;
    let kept = |value: f64| if value.abs() < TINY { TINY } else { value };
    let term = |index: u32| {
        let m = f64::from(index / 2);
        match index {
            0 => 1.0,
            index if index % 2 == 0 => m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m)),
            _ => -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0)),
        }
    };
    let (mut value, mut above, mut below) = (TINY, TINY, 0.0);
    for index in 0..FRACTION_TERMS {
        below = 1.0 / kept(1.0 + term(index) * below);
        above = kept(1.0 + term(index) / above);
        value *= above * below;
        if index > 0 && (above * below - 1.0).abs() < f64::EPSILON {
            break;
        }
    }
    let log_front = a * x.ln() + b * y.ln() - ln_gamma(a) - ln_gamma(b) + ln_gamma(a + b);
    log_front.exp() * value / a
}
