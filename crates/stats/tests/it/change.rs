//! A difference inside the noise is not a change: exact cases, then error rate and power by
//! simulation.

use proptest::prelude::*;
use pubmark_stats::{Change, FALSE_ALARM, RunOrder, Runs, Scale, holm, median};

use crate::noise::{Kind, Noise, STEP};
use crate::vectors::{assert_close, load};

/// Compares groups measured with the same resolution.
fn change(a: &[f64], b: &[f64], step: f64) -> Option<Change> {
    pubmark_stats::change(Runs { values: a, step }, Runs { values: b, step }, RunOrder::InTurns)
}

fn change_p(a: &[f64], b: &[f64], step: f64) -> Option<f64> {
    pubmark_stats::change_p(Runs { values: a, step }, Runs { values: b, step }, RunOrder::InTurns)
}

#[test]
fn equal_groups_agree_with_welch_by_scipy() {
    let cases = load().changes;
    assert!(cases.len() >= 3);
    for case in cases {
        let found = change(&case.a, &case.b, 0.0).unwrap();
        let what = format!("{:?} {:?}", case.a, case.b);
        assert_eq!(found.scale, Scale::Ratio);
        assert_close(found.p.unwrap(), case.p, 1e-9, &what);
        let ratio = median(&case.b).unwrap() / median(&case.a).unwrap();
        assert_close(found.change.value, ratio, 1e-12, &what);
        assert_close(found.b.value / found.a.value, ratio, 1e-12, &what);
        let interval = found.change.interval.unwrap();
        assert_close(interval.lo, case.lo.min(ratio), 1e-9, &what);
        assert_close(interval.hi, case.hi.max(ratio), 1e-9, &what);
        assert_eq!(change_p(&case.a, &case.b, 0.0), found.p);
    }
}

/// A figure that was always 0 is not known to scatter, whatever the resolution; if one run has
/// another value, it does.
#[test]
fn nothing_against_nothing_is_sure_to_be_nothing() {
    let found = change(&[0.0; 3], &[0.0; 3], 1.0).unwrap();
    let interval = found.change.interval.unwrap();
    assert_eq!((interval.lo, interval.hi, found.p), (0.0, 0.0, Some(1.0)));
    let interval = change(&[0.0; 3], &[0.0, 0.0, 1.0], 1.0).unwrap().change.interval.unwrap();
    assert!(interval.lo < 0.0 && interval.hi > 0.0);
}

#[test]
fn adjusted_p_agree_with_their_definition() {
    for case in load().holm {
        for (found, expected) in holm(&case.p).iter().zip(&case.adjusted) {
            assert_close(*found, *expected, 1e-15, &format!("{:?}", case.p));
        }
    }
    assert_eq!(holm(&[]), Vec::<f64>::new());
    assert_eq!(holm(&[0.001, f64::NAN]), [0.002, 1.0], "what is unknown is not a change");
}

/// By hand: means 10 and 14, variances 4 and 16 over 2 each; t = 4 / √10, and one degree of
/// freedom, which is Cauchy's distribution.
#[test]
fn two_runs_have_one_degree_of_freedom() {
    let (a, b) = ([10.0 - 2f64.sqrt(), 10.0 + 2f64.sqrt()], [14.0 - 8f64.sqrt(), 14.0 + 8f64.sqrt()]);
    // A value that is not above 0 puts both on the plain scale.
    let found = change(&a.map(|v| v - 20.0), &b.map(|v| v - 20.0), 0.0).unwrap();
    assert_eq!(found.scale, Scale::Difference);
    assert_close(found.change.value, 4.0, 1e-12, "difference");
    let t = 4.0 / 10f64.sqrt();
    assert_close(found.p.unwrap(), 2.0 / std::f64::consts::PI * (1.0 / t).atan(), 1e-9, "p");
}

#[test]
fn what_cannot_be_said_is_not_said() {
    let single = change(&[4.0], &[2.0, 2.2], 0.0).unwrap();
    assert_eq!((single.a.value, single.p), (4.0, None));
    assert!(single.a.interval.is_none() && single.b.interval.is_some() && single.change.interval.is_none());
    assert_eq!(change_p(&[4.0], &[2.0, 2.2], 0.0), None);
    assert_eq!(change(&[], &[1.0], 0.0), None);
    for bad in [f64::NAN, f64::INFINITY] {
        assert_eq!(change(&[1.0, bad], &[1.0, 2.0], 0.0), None);
    }
    assert_eq!(change(&[-f64::MAX, -f64::MAX], &[f64::MAX, f64::MAX], 0.0), None);
}

/// For runs that agree to the last bucket, the next bucket is not a change, but a gross difference
/// is.
#[test]
fn equal_runs_are_not_without_noise() {
    let step = 0.1;
    assert_eq!(change(&[100.0; 3], &[100.0; 3], step).unwrap().p, Some(1.0));
    assert!(change(&[100.0; 3], &[100.1; 3], step).unwrap().p.unwrap() > 0.2);
    assert!(change(&[100.0; 3], &[150.0; 3], step).unwrap().p.unwrap() < 1e-6);
    assert_eq!(change(&[0.0; 3], &[0.0; 3], 0.0).unwrap().p, Some(1.0), "nothing lost either time");
    assert!(change(&[0.0; 3], &[900.0, 910.0, 905.0], 1.0).unwrap().p.unwrap() < 1e-4);
}

/// By hand: logarithms with a standard deviation of ln 1.05 in both groups of
/// three, four degrees of freedom; t is 2.776 at 5 %, and 0.941 at 40 %.
#[test]
fn the_smallest_change_that_would_be_found_is_told() {
    let (a, b) = ([95.238095, 100.0, 105.0], [190.47619, 200.0, 210.0]);
    let runs = |values| Runs { values, step: 0.0 };
    let smallest = |order| pubmark_stats::change(runs(&a), runs(&b), order).unwrap().smallest(0.05).unwrap();
    let error = |of_a_run: f64| 1.05f64.ln() * of_a_run.sqrt();
    assert_close(smallest(RunOrder::InTurns), ((2.776445 + 0.940965) * error(2.0 / 3.0)).exp(), 1e-5, "in turns");
    assert_close(smallest(RunOrder::Apart), ((2.776445 + 0.940965) * error(2.0 / 3.0 + 0.5)).exp(), 1e-5, "apart");
    assert_eq!(change(&[4.0], &[2.0, 2.2], 0.0).unwrap().smallest(0.05), None);
}

/// Groups of another time have a noise of their own, half as large as that of runs. If it is
/// allowed for, equal groups are called different in at most 5 of 100 cases; if not, far more
/// often.
#[test]
fn what_lies_between_two_times_is_noise_as_well() {
    const TABLES: u64 = 2_000;
    let alarms = |order| {
        let mut noise = Noise(11);
        let mut found = 0;
        for _ in 0..TABLES {
            let mut group = || {
                let shift = noise.factor(Kind::Lognormal).sqrt();
                noise.runs(Kind::Lognormal, shift, 5)
            };
            let (a, b) = (group(), group());
            let (a, b) = (Runs { values: &a, step: 0.0 }, Runs { values: &b, step: 0.0 });
            found += u64::from(pubmark_stats::change_p(a, b, order).unwrap() <= FALSE_ALARM);
        }
        found as f64 / TABLES as f64
    };
    let (in_turns, apart) = (alarms(RunOrder::InTurns), alarms(RunOrder::Apart));
    println!("equal groups of two times called different: {in_turns:.3} as if in turns, {apart:.3} as apart");
    // Plus four standard errors of the simulation.
    assert!(apart < FALSE_ALARM + 4.0 * (0.05f64 * 0.95 / TABLES as f64).sqrt(), "{apart}");
    assert!(in_turns > 0.1, "{in_turns}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn neither_the_unit_nor_the_direction_matters(
        a in prop::collection::vec(1.0..1e6_f64, 2..8),
        b in prop::collection::vec(1.0..1e6_f64, 2..8),
        factor in 1e-6..1e6_f64,
    ) {
        let there = change(&a, &b, 0.5).unwrap();
        let back = change(&b, &a, 0.5).unwrap();
        assert_close(back.p.unwrap(), there.p.unwrap(), 1e-9, "p backwards");
        assert_close(back.change.value, 1.0 / there.change.value, 1e-9, "ratio backwards");
        let scaled = |values: &[f64]| values.iter().map(|v| v * factor).collect::<Vec<_>>();
        let other = change(&scaled(&a), &scaled(&b), 0.5 * factor).unwrap();
        assert_close(other.p.unwrap(), there.p.unwrap(), 1e-6, "p in another unit");
        let interval = there.change.interval.unwrap();
        prop_assert!(interval.lo <= there.change.value && there.change.value <= interval.hi);
    }

    #[test]
    fn adjusting_keeps_the_order_and_never_lowers(p in prop::collection::vec(0.0..=1.0_f64, 1..30)) {
        let adjusted = holm(&p);
        for (one, raw) in adjusted.iter().zip(&p) {
            prop_assert!(one >= raw && *one <= 1.0);
            for (other, other_raw) in adjusted.iter().zip(&p) {
                prop_assert!(raw > other_raw || one <= other);
            }
        }
    }
}

/// Returns the share of `trials` in which a family of comparisons without any change finds a
/// change.
fn false_alarms(noise: &mut Noise, kind: Kind, runs: (usize, usize), family: usize, trials: usize) -> f64 {
    let mut alarms = 0;
    for _ in 0..trials {
        let p: Vec<f64> = (0..family)
            .map(|_| change_p(&noise.runs(kind, 1.0, runs.0), &noise.runs(kind, 1.0, runs.1), STEP).unwrap())
            .collect();
        alarms += usize::from(holm(&p).iter().any(|p| *p <= FALSE_ALARM));
    }
    alarms as f64 / trials as f64
}

/// Twenty comparisons without a change, and single ones.
#[test]
fn nothing_is_found_where_nothing_has_changed() {
    const TRIALS: usize = 2_000;
    let error = 3.0 * (FALSE_ALARM * (1.0 - FALSE_ALARM) / TRIALS as f64).sqrt();
    let mut noise = Noise(1);
    for kind in [Kind::Lognormal, Kind::HeavyBothWays, Kind::HeavySlow, Kind::Disturbed, Kind::Rounded] {
        for runs in [(2, 2), (3, 3), (5, 5), (10, 10), (2, 5), (2, 10), (3, 4), (3, 10), (5, 10), (10, 5)] {
            for family in [1, 20] {
                let rate = false_alarms(&mut noise, kind, runs, family, TRIALS);
                println!("{kind:?}, {runs:?} runs, family of {family}: {rate:.3}");
                assert!(rate <= FALSE_ALARM + error, "{kind:?}, {runs:?} runs, family of {family}: {rate}");
            }
        }
    }
}

/// Returns the share of `trials` in which a change by this factor is found by a comparison that
/// must be as clear as the first of a family.
fn found(noise: &mut Noise, factor: f64, runs: usize, family: usize, trials: usize) -> f64 {
    let clear = FALSE_ALARM / family as f64;
    let trial = |noise: &mut Noise| {
        let (a, b) = (noise.runs(Kind::Lognormal, 1.0, runs), noise.runs(Kind::Lognormal, factor, runs));
        change_p(&a, &b, STEP).unwrap() <= clear
    };
    (0..trials).filter(|_| trial(noise)).count() as f64 / trials as f64
}

/// The table of docs/compare.md.
#[test]
fn how_large_a_change_is_found() {
    const TRIALS: usize = 4_000;
    const CHANGES: [f64; 5] = [0.05, 0.1, 0.2, 0.5, 1.0];
    let mut table = String::from("| runs per cell | comparisons |");
    for change in CHANGES {
        table.push_str(&format!(" +{:.0} % |", change * 100.0));
    }
    table.push_str(&format!("\n|---:|---:|{}\n", "---:|".repeat(CHANGES.len())));
    for (runs, family) in [(2, 1), (3, 1), (3, 40), (5, 1), (5, 40), (10, 40)] {
        table.push_str(&format!("| {runs} | {family} |"));
        let mut noise = Noise((100 * runs + family) as u64);
        let rates = CHANGES.map(|change| found(&mut noise, 1.0 + change, runs, family, TRIALS));
        for rate in rates {
            table.push_str(&format!(" {:.0} % |", rate * 100.0));
        }
        table.push('\n');
        assert!(rates.is_sorted(), "a larger change is found less often: {rates:?}");
    }
    println!("{table}");
    let page = include_str!("../../../../docs/compare.md");
    assert!(page.contains(&table), "docs/compare.md should have this table:\n{table}");
}
