use proptest::prelude::*;
use pubmark_stats::{TREND_VALUES_MAX, TREND_VALUES_MIN, normal_two_sided_p, trend};

use crate::noise::Noise;
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
        assert_close(found.p_independent, case.p, 1e-10, name);
        assert_close(found.resemblance, case.resemblance, 1e-9, name);
        assert_close(found.p, case.p_resembling, 1e-8, name);
        assert_close(found.slope, case.slope, 1e-12, name);
        let change = found.relative_change.expect(name);
        assert_close(change, case.relative_change, 1e-12, name);
        // SciPy's kendalltau has no continuity correction: same S and
        // variance, and so the p-value of S itself.
        if let Some(expected) = case.p_uncorrected {
            let p = normal_two_sided_p(found.s as f64 / found.variance.sqrt());
            assert_close(p, expected, 1e-10, name);
            assert!(found.p_independent >= p, "{name}: the correction makes p greater");
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
        prop_assert_eq!(forth.p_independent, back.p_independent);
        prop_assert!((forth.p - back.p).abs() <= 1e-9 * forth.p);
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

/// Creates a steady series whose neighbours correlate by `factor`, of standard deviation 1; or with
/// the tails of Student's t of 2 degrees.
fn series(noise: &mut Noise, length: usize, factor: f64, is_heavy: bool) -> Vec<f64> {
    const LEAD: usize = 50;
    let mut at = noise.normal();
    let steps = (0..length + LEAD).map(|_| {
        let tail = if is_heavy { (-noise.uniform().ln()).sqrt() } else { 1.0 };
        at = factor * at + (1.0 - factor * factor).sqrt() * noise.normal() / tail;
        at
    });
    steps.skip(LEAD).collect()
}

/// The limits are those of the doc comment of `trend`, plus three standard errors of the
/// simulation.
#[test]
fn steady_series_that_resemble_themselves_have_no_trend() {
    const SERIES: usize = 600;
    let mut noise = Noise(9);
    for is_heavy in [false, true] {
        for length in [10, 20, 30, 100] {
            for (factor, at_most) in [(0.0, 0.015), (0.2, 0.015), (0.4, 0.015), (0.6, 0.025), (0.8, 0.025)] {
                let found =
                    (0..SERIES).filter(|_| trend(&series(&mut noise, length, factor, is_heavy)).unwrap().p < 0.01);
                let rate = found.count() as f64 / SERIES as f64;
                let limit = at_most + 3.0 * f64::sqrt(at_most * (1.0 - at_most) / SERIES as f64);
                assert!(rate <= limit, "{length} values, heavy {is_heavy}, {factor}: {rate}");
            }
        }
    }
}

/// A rise by 20 % of values that vary by 5 %.
#[test]
fn a_trend_is_found_beside_the_noise() {
    const SERIES: usize = 400;
    let mut noise = Noise(10);
    for (length, factor, at_least) in
        [(20, 0.0, 0.65), (30, 0.0, 0.93), (30, 0.2, 0.7), (60, 0.4, 0.9), (100, 0.6, 0.9)]
    {
        let found = |_: &usize| {
            let steady = series(&mut noise, length, factor, false);
            let at = |index: usize| index as f64 / (length - 1) as f64;
            let rising: Vec<f64> = (0..length).map(|index| 100.0 + 5.0 * steady[index] + 20.0 * at(index)).collect();
            trend(&rising).unwrap().p < 0.01
        };
        let rate = (0..SERIES).filter(found).count() as f64 / SERIES as f64;
        println!("{length} values, {factor}: {rate}");
        assert!(rate >= at_least, "{length} values, {factor}: {rate}");
    }
}
