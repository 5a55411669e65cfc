use proptest::prelude::*;
use pubmark_stats::{Histogram, Interval, bootstrap_median, bootstrap_quantile, median};

use crate::vectors::load;

fn run(values: &[u64]) -> Histogram {
    let mut histogram = Histogram::latency();
    for value in values {
        histogram.record(*value);
    }
    histogram
}

#[test]
fn median_of_odd_even_and_nothing() {
    assert_eq!(median(&[]), None);
    assert_eq!(median(&[4.0]), Some(4.0));
    assert_eq!(median(&[9.0, 1.0, 5.0]), Some(5.0));
    assert_eq!(median(&[9.0, 1.0, 5.0, 6.0]), Some(5.5));
    assert_eq!(median(&[f64::MAX, f64::MAX]), Some(f64::MAX));
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        assert_eq!(median(&[1.0, bad, 2.0]), None);
        assert_eq!(bootstrap_median(&[1.0, bad, 2.0], 1), None);
    }
}

#[test]
fn few_values_agree_with_full_enumeration() {
    let cases = load().medians;
    assert!(cases.len() >= 9);
    for case in cases {
        let found = bootstrap_median(&case.values, 1).expect("finite values");
        assert_eq!(found.value, case.value, "{:?}", case.values);
        let expected = Interval { lo: case.lo, hi: case.hi };
        assert_eq!(found.interval, Some(expected), "{:?}", case.values);
        assert_eq!(bootstrap_median(&case.values, 2), Some(found), "no seed is used");
    }
}

#[test]
fn a_single_run_has_no_interval() {
    let found = bootstrap_median(&[3.5], 1).expect("one value");
    assert_eq!((found.value, found.interval), (3.5, None));
    let found = bootstrap_quantile(&[&run(&[3, 4])], 0.5, 1).expect("one run");
    assert_eq!((found.value, found.interval), (3.0, None));
}

/// The percentile bootstrap of the median of 1..=n has ends near the order
/// statistics of ranks n/2 ∓ 0.98 √n.
#[test]
fn many_values_come_near_the_binomial_interval() {
    let values: Vec<f64> = (1..=101).map(f64::from).collect();
    let found = bootstrap_median(&values, 7).expect("finite values");
    assert_eq!(found.value, 51.0);
    let Interval { lo, hi } = found.interval.expect("many values");
    assert!((39.0..=43.0).contains(&lo), "{lo}");
    assert!((59.0..=63.0).contains(&hi), "{hi}");
    assert_eq!(bootstrap_median(&values, 7), Some(found), "the seed decides");
    let all: Vec<_> = (0..20).map(|seed| bootstrap_median(&values, seed)).collect();
    assert!(all.iter().any(|other| *other != all[0]), "no seed is used");
}

#[test]
fn quantile_intervals_agree_with_full_enumeration() {
    let cases = load().quantile_intervals;
    assert!(cases.len() >= 9);
    for case in cases {
        let runs: Vec<Histogram> = case.runs.iter().map(|values| run(values)).collect();
        let runs: Vec<&Histogram> = runs.iter().collect();
        let found = bootstrap_quantile(&runs, case.quantile, 1).expect("values in range");
        let what = format!("{:?} at {}", case.runs, case.quantile);
        assert_eq!(found.value, case.value, "{what}");
        let expected = Interval { lo: case.lo, hi: case.hi };
        assert_eq!(found.interval, Some(expected), "{what}");
    }
}

#[test]
fn empty_runs_and_bad_quantiles_say_nothing() {
    let (empty, full) = (run(&[]), run(&[8]));
    assert_eq!(bootstrap_quantile(&[], 0.5, 1), None);
    assert_eq!(bootstrap_quantile(&[&empty], 0.5, 1), None);
    for quantile in [0.0, -0.1, 1.1, f64::NAN] {
        assert_eq!(bootstrap_quantile(&[&full], quantile, 1), None);
    }
    let found = bootstrap_quantile(&[&empty, &full], 0.5, 1).expect("one run with values");
    assert_eq!((found.value, found.interval), (8.0, None));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn symmetric_values_have_a_symmetric_exact_interval(
        centre in -1_000..1_000_i32,
        gaps in prop::collection::vec(0..500_i32, 1..=3),
    ) {
        let values: Vec<f64> = gaps
            .iter()
            .flat_map(|gap| [centre - gap, centre + gap])
            .map(f64::from)
            .collect();
        let centre = f64::from(centre);
        let found = bootstrap_median(&values, 0).expect("finite values");
        prop_assert_eq!(found.value, centre);
        let Interval { lo, hi } = found.interval.expect("two or more");
        prop_assert_eq!(centre - lo, hi - centre);
    }

    #[test]
    fn an_interval_holds_its_median_and_stays_within_the_values(
        values in prop::collection::vec(-1e9..1e9_f64, 2..20),
        seed: u64,
    ) {
        let found = bootstrap_median(&values, seed).expect("finite values");
        let Interval { lo, hi } = found.interval.expect("two or more");
        prop_assert!(lo <= found.value && found.value <= hi);
        prop_assert!(values.iter().any(|v| *v <= lo) && values.iter().any(|v| *v >= hi));
    }

    #[test]
    fn the_quantile_is_that_of_the_merged_histogram(
        runs in prop::collection::vec(prop::collection::vec(0..10_000_000_u64, 1..50), 1..9),
        quantile in 0.001..=1.0_f64,
        seed: u64,
    ) {
        let runs: Vec<Histogram> = runs.iter().map(|values| run(values)).collect();
        let mut merged = Histogram::latency();
        for run in &runs {
            merged.merge(run).expect("same layout");
        }
        let found = bootstrap_quantile(&runs.iter().collect::<Vec<_>>(), quantile, seed)
            .expect("values in range");
        prop_assert_eq!(found.value, merged.value_at(quantile) as f64);
        prop_assert_eq!(found.interval.is_some(), runs.len() > 1);
        if let Some(Interval { lo, hi }) = found.interval {
            let ends = runs.iter().map(|run| run.value_at(quantile) as f64);
            prop_assert!(lo <= hi);
            prop_assert!(lo >= ends.clone().fold(f64::INFINITY, f64::min));
            prop_assert!(hi <= ends.fold(0.0, f64::max));
        }
    }
}
