use pubmark_stats::{student_two_sided_p, student_two_sided_t};

use crate::vectors::{assert_close, load};

#[test]
fn agrees_with_scipy_far_into_the_tails() {
    let vectors = load().student;
    assert!(vectors.p.len() > 100 && vectors.t.len() > 70);
    for (t, degrees, expected) in vectors.p {
        let found = student_two_sided_p(t, degrees);
        // SciPy gives 0 for some values that an `f64` can still represent.
        if expected == 0.0 {
            assert!(found < 1e-300, "p of {t} at {degrees}: {found:e}");
        } else {
            assert_close(found, expected, 1e-10, &format!("p of {t} at {degrees}"));
        }
    }
    for (p, degrees, expected) in vectors.t {
        assert_close(student_two_sided_t(p, degrees), expected, 1e-9, &format!("t of {p} at {degrees}"));
    }
}

/// One degree is Cauchy's distribution, two have a closed form, and infinitely many are the normal
/// distribution.
#[test]
fn agrees_with_the_forms_that_are_known() {
    for t in [0.01, 0.5, 1.0, 3.0, 40.0, 1e5_f64] {
        let cauchy = 2.0 / std::f64::consts::PI * (1.0 / t).atan();
        assert_close(student_two_sided_p(t, 1.0), cauchy, 1e-12, "1 degree");
        let root = (2.0 + t * t).sqrt();
        assert_close(student_two_sided_p(t, 2.0), 2.0 / (root * (root + t)), 1e-12, "2 degrees");
    }
    let normal = pubmark_stats::normal_two_sided_p(1.96);
    assert_close(student_two_sided_p(1.96, 1e8), normal, 1e-6, "many degrees");
}

#[test]
fn ends_are_total() {
    for degrees in [1.0, 3.7, 500.0] {
        assert_eq!(student_two_sided_p(0.0, degrees), 1.0);
        assert_eq!(student_two_sided_p(f64::INFINITY, degrees), 0.0);
        assert!(student_two_sided_p(f64::NAN, degrees).is_nan());
    }
    for degrees in [0.0, -1.0, f64::NAN] {
        assert!(student_two_sided_p(1.0, degrees).is_nan());
        assert!(student_two_sided_t(0.05, degrees).is_nan());
    }
    for p in [0.0, 1.0, -0.1, f64::NAN] {
        assert!(student_two_sided_t(p, 3.0).is_nan());
    }
}
