//! The estimate of a cell: exact cases, then the coverage of its interval, by simulation.

use pubmark_stats::{Estimate, Runs, median, typical_run};

use crate::noise::{Kind, Noise, STEP};
use crate::vectors::{assert_close, load};

fn of(values: &[f64], step: f64) -> Option<Estimate> {
    typical_run(Runs { values, step })
}

#[test]
fn intervals_agree_with_scipy() {
    let cases = load().typical;
    assert!(cases.len() >= 6);
    for case in cases {
        let found = of(&case.values, 0.0).unwrap();
        let interval = found.interval.unwrap();
        let what = format!("{:?}", case.values);
        assert_eq!(found.value, case.median, "{what}");
        assert_close(interval.lo, case.lo, 1e-9, &what);
        assert_close(interval.hi, case.hi, 1e-9, &what);
    }
}

#[test]
fn what_cannot_be_said_is_not_said() {
    assert_eq!(of(&[], 0.0), None);
    assert_eq!(of(&[7.0], 0.5), Some(Estimate { value: 7.0, interval: None }));
    for bad in [f64::NAN, f64::INFINITY] {
        assert_eq!(of(&[1.0, bad], 0.0), None);
    }
    let huge = of(&[f64::MIN_POSITIVE, f64::MAX], 0.0).unwrap();
    assert_eq!(huge.interval, None, "an end that is not a number is not shown");
}

/// Two runs in one bucket of a histogram are not free of noise: half of their interval is t of 1
/// degree, 12.706, times a step over √2.
#[test]
fn equal_runs_have_the_noise_of_the_resolution() {
    let interval = of(&[-100.0, -100.0], 1.0).unwrap().interval.unwrap();
    assert_close(interval.hi - interval.lo, 2.0 * 12.706_204_736_174_7 / 2f64.sqrt(), 1e-9, "width");
    let exact = of(&[100.0, 100.0], 0.0).unwrap().interval.unwrap();
    assert_close(exact.lo, 100.0, 1e-12, "counted exactly");
    assert_close(exact.hi, 100.0, 1e-12, "counted exactly");
}

#[test]
fn the_median_is_never_outside() {
    let values = [100.0, 100.0, 100.0, 100.0, 100.0, 100.0, 100.0, 100.0, 100.0, 0.0001];
    let found = of(&values, 0.0).unwrap();
    let interval = found.interval.unwrap();
    assert!(interval.lo <= found.value && found.value <= interval.hi, "{found:?}");
}

/// Returns the median of many runs of this noise, about a typical value of 1.
fn typical(kind: Kind) -> f64 {
    if matches!(kind, Kind::Rounded) {
        // In the middle of two buckets; the median of many runs is either.
        return 1.0005;
    }
    let mut noise = Noise(17);
    median(&noise.runs(kind, 1.0, 200_001)).unwrap()
}

/// Returns the percentage of intervals of `runs` runs that contain the median of all runs.
fn coverage(noise: &mut Noise, kind: Kind, runs: usize) -> f64 {
    const TRIALS: usize = 3_000;
    let typical = typical(kind);
    let holds = |_: &usize| {
        let interval = of(&noise.runs(kind, 1.0, runs), STEP).unwrap().interval.unwrap();
        interval.lo <= typical && typical <= interval.hi
    };
    100.0 * (0..TRIALS).filter(holds).count() as f64 / TRIALS as f64
}

/// 95 % if noise is as likely to halve a figure as to double it; the doc comment of `typical_run`
/// gives the other cases. The error of each simulation is 0.4 %.
#[test]
fn the_interval_holds_the_typical_run() {
    let mut noise = Noise(8);
    for (kind, at_least) in [
        (Kind::Lognormal, [94.0; 5]),
        (Kind::HeavyBothWays, [94.0; 5]),
        (Kind::Rounded, [94.0; 5]),
        (Kind::HeavySlow, [93.0; 5]),
        (Kind::Disturbed, [93.0; 5]),
    ] {
        for (runs, at_least) in [2, 3, 5, 10, 20].into_iter().zip(at_least) {
            let found = coverage(&mut noise, kind, runs);
            println!("{kind:?}, {runs} runs: {found:.1} %");
            assert!(found >= at_least, "{kind:?}, {runs} runs: {found}");
        }
    }
}
