use proptest::prelude::*;
use pubmark_stats::{TREND_VALUES_MAX, TREND_VALUES_MIN, normal_two_sided_p, trend};

use crate::vectors::{assert_close, load};

#[test]
fn agrees_with_pymannkendall_and_scipy() {
    let cases = load().trends;
    assert!(cases.len() >= 11);
    for case in cases {
        let name = &case.name;
        let found = trend(&case.values).expect(name);
        assert_eq!(found.s, case.s, "{name}");
        assert_close(found.variance, case.variance, 1e-12, name);
        assert_close(found.z, case.z, 1e-12, name);
        assert_close(found.p, case.p, 1e-10, name);
        assert_close(found.slope, case.slope, 1e-12, name);
        let change = found.relative_change.expect(name);
        assert_close(change, case.relative_change, 1e-12, name);
        // SciPy's kendalltau has no continuity correction: same S and
        // variance, and so the p-value of S itself.
        if let Some(expected) = case.p_uncorrected {
            let p = normal_two_sided_p(found.s as f64 / found.variance.sqrt());
            assert_close(p, expected, 1e-10, name);
            assert!(found.p >= p, "{name}: the correction makes p greater");
        }
    }
}

#[test]
fn lengths_and_values_out_of_range_say_nothing() {
    assert_eq!(trend(&[1.0; TREND_VALUES_MIN - 1]), None);
    assert_eq!(trend(&[1.0; TREND_VALUES_MAX + 1]), None);
    for bad in [f64::NAN, f64::INFINITY] {
        assert_eq!(trend(&[1.0, 2.0, bad, 4.0, 5.0]), None);
    }
    assert_eq!(trend(&[f64::MIN, f64::MAX, f64::MIN, f64::MAX]), None);
}

#[test]
fn a_median_of_zero_has_no_relative_change() {
    let found = trend(&[0.0, 0.0, 0.0, 0.0, 3.0]).expect("five values");
    assert_eq!((found.slope, found.relative_change), (0.0, None));
    let found = trend(&[0.0, -0.0, 0.0, -0.0]).expect("four values");
    assert_eq!((found.s, found.variance, found.p), (0, 0.0, 1.0));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn reversed_in_time_the_trend_turns(values in prop::collection::vec(-50..50_i32, 4..40)) {
        let forth: Vec<f64> = values.iter().copied().map(f64::from).collect();
        let back: Vec<f64> = forth.iter().rev().copied().collect();
        let (forth, back) = (trend(&forth).expect("enough"), trend(&back).expect("enough"));
        prop_assert_eq!(forth.s, -back.s);
        prop_assert_eq!(forth.z, -back.z);
        prop_assert_eq!(forth.p, back.p);
        prop_assert_eq!(forth.slope, -back.slope);
        prop_assert!((0.0..=1.0).contains(&forth.p));
    }

    #[test]
    fn a_straight_line_gives_its_slope(start in -100..100_i32, step in -9..9_i32, n in 4..60_i32) {
        let values: Vec<f64> = (0..n).map(|i| f64::from(start + i * step)).collect();
        let found = trend(&values).expect("enough");
        prop_assert_eq!(found.slope, f64::from(step));
        prop_assert_eq!(found.s, i64::from(step.signum() * n * (n - 1) / 2));
    }
}
