use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::serialization::{Serializer as _, V2DeflateSerializer};
use proptest::prelude::*;
use pubmark_stats::{COUNT_MAX, Histogram, HistogramError, LATENCY_MAX_NS};

use crate::vectors::{assert_close, distribution, load};

fn of(mut histogram: Histogram, values: &[u64]) -> Histogram {
    for value in values {
        histogram.record(*value);
    }
    histogram
}

#[test]
fn quantiles_and_moments_agree_with_numpy() {
    for case in load().quantiles {
        let values = distribution(&case.name);
        for (empty, error) in [(Histogram::latency(), 0.001), (Histogram::coarse(), 0.01)] {
            let histogram = of(empty, &values);
            assert_eq!(histogram.count(), case.count);
            for (quantile, expected) in &case.at {
                let found = histogram.value_at(*quantile);
                assert!(found >= *expected, "{} at {quantile}", case.name);
                assert_close(found as f64, *expected as f64, error, &case.name);
            }
            assert_close(histogram.min() as f64, case.min as f64, error, "min");
            assert_close(histogram.max() as f64, case.max as f64, error, "max");
            assert_close(histogram.mean(), case.mean, error, "mean");
            assert_close(histogram.stddev(), case.stddev, error, "stddev");
        }
    }
}

#[test]
fn summary_of_one_to_a_thousand_is_exact() {
    let values: Vec<u64> = (1..=1_000).collect();
    let summary = of(Histogram::latency(), &values).summary().expect("not empty");
    assert_eq!((summary.count, summary.min, summary.max), (1_000, 1, 1_000));
    assert_eq!((summary.p50, summary.p90, summary.p95, summary.p99, summary.p999), (500, 900, 950, 990, 999));
    assert_close(summary.mean, 500.5, 1e-12, "mean");
    // √((n² − 1) / 12)
    assert_close(summary.stddev, (999_999.0_f64 / 12.0).sqrt(), 1e-12, "stddev");
    let json = serde_json::to_string(&summary).expect("numbers");
    assert_eq!(serde_json::from_str::<pubmark_stats::Summary>(&json).ok(), Some(summary));
}

#[test]
fn nothing_recorded_has_no_summary() {
    let histogram = Histogram::latency();
    assert_eq!(histogram.summary(), None);
    assert!(histogram.is_empty());
    assert_eq!((histogram.min(), histogram.max(), histogram.value_at(0.5)), (0, 0, 0));
    assert_eq!((histogram.mean(), histogram.stddev()), (0.0, 0.0));
}

#[test]
fn beyond_an_hour_saturates_and_is_counted() {
    let mut histogram = of(Histogram::latency(), &[0, LATENCY_MAX_NS, LATENCY_MAX_NS + 1, u64::MAX]);
    histogram.record_n(u64::MAX, 5);
    assert_eq!(histogram.count(), 9);
    assert_eq!(histogram.saturated(), 7);
    assert_eq!(histogram.min(), 0);
    assert_close(histogram.max() as f64, LATENCY_MAX_NS as f64, 0.001, "max");
    let mut merged = histogram.clone();
    merged.merge(&histogram).expect("same layout");
    assert_eq!((merged.count(), merged.saturated()), (18, 14));
    merged.clear();
    assert_eq!((merged.count(), merged.saturated()), (0, 0));
}

#[test]
fn counts_stop_at_the_limit() {
    let mut histogram = Histogram::latency();
    histogram.record_n(10, COUNT_MAX - 1);
    histogram.record_n(20, u64::MAX);
    histogram.record_n(30, u64::MAX);
    histogram.record_n(40, 0);
    let buckets: Vec<(u64, u64)> = histogram.nonzero().collect();
    assert_eq!(buckets, [(10, COUNT_MAX - 1), (20, 1)]);
    let full = histogram.clone();
    let refused = histogram.merge(&full);
    assert!(matches!(refused, Err(HistogramError::TooManyValues)));
    assert_eq!(histogram, full);
    assert_eq!(histogram.value_at(1.0), 20);
}

#[test]
fn precisions_do_not_mix() {
    let mut fine = of(Histogram::latency(), &[5]);
    let coarse = of(Histogram::coarse(), &[5]);
    let refused = fine.merge(&coarse);
    assert!(matches!(refused, Err(HistogramError::Precision { ours: 3, theirs: 2 })));
    assert_eq!(fine.count(), 1);
    assert_ne!(fine, coarse);
}

#[test]
fn quantiles_out_of_range_are_clamped() {
    let histogram = of(Histogram::latency(), &[5_000_000, 7, 90]);
    for low in [f64::NAN, f64::NEG_INFINITY, -1.0, 0.0, 1e-300] {
        assert_eq!(histogram.value_at(low), 7);
    }
    for high in [1.0, 1.5, f64::INFINITY] {
        assert_eq!(histogram.value_at(high), histogram.max());
    }
}

/// Returns times of which about as many are in each octave.
fn times() -> impl Strategy<Value = u64> {
    prop_oneof![0..3_000_u64, (0..42_u32, any::<u64>()).prop_map(|(bits, any)| any >> (63 - bits))]
}

proptest! {
    #[test]
    fn agrees_with_the_library_of_its_format(
        values in prop::collection::vec((times(), 1..5_000_u64), 0..200),
        others in prop::collection::vec((times(), 1..5_u64), 0..20),
        quantiles in prop::collection::vec(-0.1..1.1_f64, 1..20),
        fine in any::<bool>(),
    ) {
        let new = |values: &[(u64, u64)]| {
            let mut ours = if fine { Histogram::latency() } else { Histogram::coarse() };
            let mut theirs = hdrhistogram::Histogram::<u64>::new_with_bounds(1, LATENCY_MAX_NS, ours.digits()).unwrap();
            for (value, count) in values {
                ours.record_n(*value, *count);
                theirs.record_n(*value.min(&LATENCY_MAX_NS), *count).unwrap();
            }
            (ours, theirs)
        };
        let (mut ours, mut theirs) = new(&values);
        let (our_other, their_other) = new(&others);
        ours.merge(&our_other).unwrap();
        theirs.add(&their_other).unwrap();
        prop_assert_eq!((ours.count(), ours.min(), ours.max()), (theirs.len(), theirs.min(), theirs.max()));
        prop_assert_eq!(ours.mean(), theirs.mean());
        prop_assert!((ours.stddev() - theirs.stdev()).abs() <= 1e-12 * theirs.stdev());
        for quantile in quantiles.into_iter().chain([0.0, 0.5, 0.999, 1.0]) {
            let wanted = if quantile > 0.0 { theirs.value_at_quantile(quantile) } else { theirs.min() };
            prop_assert_eq!(ours.value_at(quantile), wanted, "at {}", quantile);
        }
        let buckets = theirs.iter_recorded().map(|step| (step.value_iterated_to(), step.count_at_value()));
        prop_assert!(ours.nonzero().eq(buckets));
        let mut bytes = Vec::new();
        V2DeflateSerializer::new().serialize(&theirs, &mut bytes).unwrap();
        prop_assert_eq!(ours.encode(), STANDARD.encode(bytes));
        prop_assert!(ours.clone() == ours);
        ours.clear();
        prop_assert!(ours.is_empty() && ours.nonzero().next().is_none());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn merging_is_recording_all(
        left in prop::collection::vec(0..2 * LATENCY_MAX_NS, 0..60),
        right in prop::collection::vec(0..1_000_000_u64, 0..60),
        coarse: bool,
    ) {
        let empty = if coarse { Histogram::coarse() } else { Histogram::latency() };
        let all = of(of(empty.clone(), &left), &right);
        let mut merged = of(empty.clone(), &left);
        merged.merge(&of(empty, &right)).expect("same layout");
        prop_assert_eq!(&merged, &all);
        prop_assert_eq!(merged.saturated(), all.saturated());
        prop_assert_eq!(merged.summary(), all.summary());
    }

    #[test]
    fn a_bucket_is_near_its_values(value in 1..LATENCY_MAX_NS) {
        for (empty, error) in [(Histogram::latency(), 0.001), (Histogram::coarse(), 0.01)] {
            let found = of(empty, &[value]).value_at(0.5);
            prop_assert!(found >= value);
            prop_assert!((found - value) as f64 <= error * value as f64);
        }
    }

    #[test]
    fn percentiles_are_in_order(values in prop::collection::vec(0..LATENCY_MAX_NS, 1..40)) {
        let s = of(Histogram::coarse(), &values).summary().expect("not empty");
        let ladder = [s.min, s.p50, s.p90, s.p95, s.p99, s.p999, s.max];
        prop_assert!(ladder.is_sorted(), "{:?}", ladder);
    }
}
