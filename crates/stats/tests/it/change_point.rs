//! A change within a history: exact cases, the rate of false alarms, and the delay until a change
//! is found.

use crate::noise::{Kind, Noise, five_percent_at_most};
use pubmark_stats::{FALSE_ALARM, change_point};

#[test]
fn the_place_of_a_change_is_found() {
    let values = [10.0, 11.0, 10.5, 10.2, 10.8, 20.0, 21.0, 20.5, 20.1];
    let found = change_point(&values).unwrap();
    assert_eq!(found.at, 5);
    // Two of the 126 choices of four from nine are as uneven: their highest, and their lowest.
    // Splits at other places may be as uneven, too, but not more.
    assert!((2.0 / 126.0..0.05).contains(&found.p), "{found:?}");
    let turned: Vec<f64> = values.iter().map(|value| -value).collect();
    assert_eq!(change_point(&turned), Some(found));
}

#[test]
fn what_is_no_history_says_nothing() {
    assert_eq!(change_point(&[1.0, 1.0, 1.0, 2.0, 2.0]), None);
    assert_eq!(change_point(&[1.0, 2.0, f64::NAN, 2.0, 2.0, 3.0]), None);
    assert_eq!(change_point(&[5.0; 20]).unwrap().p, 1.0, "nothing has changed");
    let mut last = vec![1.0, 1.1, 1.2, 1.3, 1.05, 1.15, 1.25, 1.17, 1.08];
    last.push(9.0);
    assert!(change_point(&last).unwrap().p > FALSE_ALARM, "one bad day is not a change");
}

/// If nothing changes, a change is called in at most 5 of 100 cases, with noise of every kind.
#[test]
fn nothing_has_changed_in_a_history_of_noise() {
    const TRIALS: usize = 500;
    let mut noise = Noise(21);
    for kind in [Kind::Lognormal, Kind::HeavyBothWays, Kind::HeavySlow, Kind::Disturbed, Kind::Rounded] {
        for days in [6, 10, 30] {
            let called = |noise: &mut Noise| change_point(&noise.runs(kind, 1.0, days)).unwrap().p <= FALSE_ALARM;
            let rate = (0..TRIALS).filter(|_| called(&mut noise)).count() as f64 / TRIALS as f64;
            println!("{kind:?}, {days} folders: {:.1} %", rate * 100.0);
            assert!(rate <= five_percent_at_most(TRIALS), "{kind:?}, {days}: {rate}");
        }
    }
}

/// The table of docs/gate-a-change.md: how often a rise is found, and at the right day plus or
/// minus one.
#[test]
fn how_soon_a_change_is_seen() {
    const TRIALS: usize = 200;
    const CHANGES: [f64; 3] = [0.1, 0.2, 0.5];
    let mut noise = Noise(22);
    let mut table = String::from("| folders before | after | +10 % | +20 % | +50 % |\n|---:|---:|---:|---:|---:|\n");
    for (before, after) in [(7, 3), (10, 2), (10, 5), (20, 3), (20, 10)] {
        let cells = CHANGES.map(|change| {
            let seen = |noise: &mut Noise| {
                let mut values = noise.runs(Kind::Lognormal, 1.0, before);
                values.extend(noise.runs(Kind::Lognormal, 1.0 + change, after));
                let found = change_point(&values).unwrap();
                found.p <= FALSE_ALARM && found.at.abs_diff(before) <= 1
            };
            (0..TRIALS).filter(|_| seen(&mut noise)).count() as f64 / TRIALS as f64 * 100.0
        });
        let cells: String = cells.iter().map(|share| format!(" {share:.0} % |")).collect();
        table.push_str(&format!("| {before} | {after} |{cells}\n"));
    }
    println!("{table}");
    let page = include_str!("../../../../docs/gate-a-change.md");
    assert!(page.contains(&table), "docs/gate-a-change.md should have this table:\n{table}");
}
