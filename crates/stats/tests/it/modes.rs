//! Two groups of runs: when they are found, and how often one group is reported as two.

use crate::noise::{Kind, Noise};
use pubmark_stats::modes;

#[test]
fn two_groups_are_found_with_their_members() {
    let found = modes(&[3.5, 8.1, 3.45, 8.0, 3.52, 8.15, 3.4], 0.01).unwrap();
    assert_eq!((found.lower, found.upper), (vec![6, 2, 0, 4], vec![3, 1, 5]));
    assert_eq!((found.lower_median, found.upper_median), (3.475, 8.1));
}

#[test]
fn outliers_small_differences_and_few_values_are_no_groups() {
    assert_eq!(modes(&[3.5, 3.45, 3.52, 3.4, 8.0, 3.47], 0.01), None, "one value is an outlier");
    assert_eq!(modes(&[1.0, 1.001, 1.0005, 1.1, 1.101, 1.1005], 0.0), None, "10 % are not two answers");
    assert_eq!(modes(&[1.0, 1.0, 2.0, 2.0], 0.0), None, "four values");
    assert_eq!(modes(&[0.0, 0.0, 2.0, 2.0, 2.0], 0.0), None);
    assert_eq!(modes(&[1.0, f64::NAN, 2.0, 2.0, 2.0], 0.0), None);
}

#[test]
fn one_group_is_called_two_in_at_most_two_of_a_hundred_cells() {
    const CELLS: usize = 2_000;
    let mut noise = Noise(31);
    for count in [5, 6, 8, 10, 20, 50] {
        for (name, kind, size) in [
            ("lognormal", Some(Kind::Lognormal), 1.0),
            ("heavy both ways", Some(Kind::HeavyBothWays), 5.0),
            ("heavy slow", Some(Kind::HeavySlow), 5.0),
            ("even", None, 2.0),
        ] {
            let mut value = || match kind {
                Some(kind) => noise.factor(kind).powf(size),
                None => (size * noise.uniform()).exp(),
            };
            let called = (0..CELLS).filter(|_| {
                let values: Vec<f64> = (0..count).map(|_| value()).collect();
                modes(&values, 0.001).is_some()
            });
            let called = called.count();
            assert!(called <= CELLS / 50, "{name}, {count} values: {called} of {CELLS}");
        }
    }
}

#[test]
fn two_modes_a_factor_of_two_apart_are_found_in_most_cells() {
    let mut noise = Noise(32);
    for count in [6, 10, 20] {
        let found = (0..500).filter(|_| {
            let values: Vec<f64> =
                (0..count).map(|run| if run % 2 == 0 { 1.0 } else { 2.3 } * noise.factor(Kind::Lognormal)).collect();
            modes(&values, 0.001).is_some_and(|found| found.lower.len() == count / 2)
        });
        let found = found.count();
        // Three values of each hardly show the width of a group.
        let least = if count == 6 { 350 } else { 450 };
        assert!(found >= least, "{count} values: {found} of 500");
    }
}
