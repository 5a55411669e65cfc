use pubmark_stats::{erfc, normal_cdf, normal_two_sided_p};

use crate::vectors::{assert_close, load};

#[test]
fn agrees_with_scipy_in_both_tails() {
    let vectors = load().normal;
    assert!(vectors.cdf.len() > 20 && vectors.erfc.len() > 15);
    for (z, expected) in vectors.cdf {
        assert_close(normal_cdf(z), expected, 1e-12, &format!("cdf of {z}"));
    }
    for (x, expected) in vectors.erfc {
        assert_close(erfc(x), expected, 1e-12, &format!("erfc of {x}"));
    }
}

#[test]
fn two_sided_p_takes_both_tails() {
    assert_eq!(normal_two_sided_p(0.0), 1.0);
    for z in [0.7, -1.96, 4.0] {
        assert_close(normal_two_sided_p(z), 2.0 * normal_cdf(-f64::abs(z)), 1e-12, "p");
    }
}

#[test]
fn ends_are_total() {
    assert_eq!(erfc(f64::INFINITY), 0.0);
    assert_eq!(erfc(f64::NEG_INFINITY), 2.0);
    assert_eq!(erfc(40.0), 0.0);
    assert!(erfc(f64::NAN).is_nan());
}
