use pubmark_stats::{Runs, median, median_whole, typical_run};

#[test]
fn median_of_odd_even_and_nothing() {
    assert_eq!(median(&[]), None);
    assert_eq!(median(&[4.0]), Some(4.0));
    assert_eq!(median(&[9.0, 1.0, 5.0]), Some(5.0));
    assert_eq!(median(&[9.0, 1.0, 5.0, 6.0]), Some(5.5));
    assert_eq!(median(&[f64::MAX, f64::MAX]), Some(f64::MAX));
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        assert_eq!(median(&[1.0, bad, 2.0]), None);
    }
}

#[test]
fn the_median_of_whole_numbers_is_whole() {
    assert_eq!(median_whole([]), 0);
    assert_eq!(median_whole([3, 1, 2]), 2);
    assert_eq!(median_whole([4, 1, 2, 3]), 2, "rounded down");
}

/// By hand: the logarithms of 1, 2 and 4 have mean ln 2 and deviation ln 2; t
/// of two degrees is 4.3027, so the half-width is 4.3027 · ln 2 / √3 = 1.7219.
#[test]
fn a_typical_run_is_the_median_with_students_interval_on_logarithms() {
    let found = typical_run(Runs { values: &[4.0, 1.0, 2.0], step: 0.0 }).expect("three values");
    let interval = found.interval.expect("three values");
    assert_eq!(found.value, 2.0);
    assert!((interval.hi / (2.0 * 1.7219f64.exp()) - 1.0).abs() < 1e-3, "{interval:?}");
    assert!((interval.lo * 1.7219f64.exp() / 2.0 - 1.0).abs() < 1e-3, "{interval:?}");
    assert_eq!(typical_run(Runs { values: &[3.5], step: 1.0 }).expect("one value").interval, None);
    assert_eq!(typical_run(Runs { values: &[], step: 1.0 }), None);
}
