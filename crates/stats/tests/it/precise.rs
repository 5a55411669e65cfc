//! Figures that are measured until they are known to within a share: how often the interval misses
//! the typical run, and the number of runs.

use pubmark_stats::{Runs, median, precise_figure};

use crate::noise::{Kind, Noise, STEP, five_percent_at_most};

/// Numbers of runs of the looks.
const LOOKS: [usize; 12] = [2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96];

fn of(values: &[f64], share: f64) -> Option<pubmark_stats::PreciseFigure> {
    precise_figure(Runs { values, step: STEP }, share)
}

/// For figures that are measured until they are precise, at most 5 in 100 intervals ever miss the
/// typical run.
#[test]
fn what_is_known_is_true_at_any_look() {
    const TRIALS: usize = 400;
    for kind in [Kind::Lognormal, Kind::HeavyBothWays, Kind::HeavySlow, Kind::Disturbed] {
        let typical = median(&Noise(17).runs(kind, 1.0, 200_001)).unwrap();
        for share in [0.02, 0.05, 0.2] {
            let mut noise = Noise(23);
            let (mut missed, mut told, mut needed) = (0, 0, Vec::new());
            for _ in 0..TRIALS {
                let values = noise.runs(kind, 1.0, 96);
                let found: Vec<_> = LOOKS.iter().filter_map(|runs| of(&values[..*runs], share)).collect();
                let ever_missed = found.iter().any(|found| {
                    found.estimate.interval.is_some_and(|interval| typical < interval.lo || typical > interval.hi)
                });
                missed += usize::from(ever_missed);
                if let Some(found) = found.last().filter(|found| found.is_precise) {
                    told += 1;
                    needed.push(found.looked_at as f64);
                    let interval = found.estimate.interval.unwrap();
                    assert!(interval.hi <= found.estimate.value * (1.0 + share) * (1.0 + 1e-9));
                    assert!(interval.lo >= found.estimate.value * (1.0 - share) * (1.0 - 1e-9));
                }
            }
            let runs = median(&needed).map_or("none".to_owned(), |runs| format!("{runs:.0}"));
            println!("{kind:?} ±{:.0} %: {told} of {TRIALS} told, by {runs} runs; {missed} missed", share * 100.0);
            let rate = missed as f64 / TRIALS as f64;
            assert!(rate <= five_percent_at_most(TRIALS), "{kind:?}, {share}: {rate}");
        }
    }
}

/// A decision is final, whatever comes after.
#[test]
fn a_look_that_tells_is_not_taken_back() {
    let quiet: Vec<f64> = (0..8).map(|run| 1.0 + 0.001 * f64::from(run % 2)).collect();
    let told = of(&quiet, 0.05).unwrap();
    assert!(told.is_precise && told.more.is_none());
    let mut disturbed = quiet[..told.looked_at].to_vec();
    disturbed.extend([9.0; 5]);
    assert_eq!(of(&disturbed, 0.05), Some(told));
}

#[test]
fn what_is_open_says_how_many_more_runs_it_takes() {
    let mut noise = Noise(5);
    let mut ratios = Vec::new();
    for _ in 0..200 {
        let values = noise.runs(Kind::Lognormal, 1.0, 96);
        let asked = of(&values[..8], 0.03).unwrap();
        let told = |runs: &&usize| of(&values[..**runs], 0.03).unwrap().is_precise;
        if let (Some(more), Some(end)) = (asked.more, LOOKS.iter().find(told)) {
            ratios.push(f64::from(8 + more) / *end as f64);
        }
    }
    assert!(ratios.len() > 150, "{}", ratios.len());
    let middle = median(&ratios).unwrap();
    assert!((0.6..=1.7).contains(&middle), "{middle}");
}

#[test]
fn what_cannot_be_said_is_not_said() {
    assert_eq!(of(&[], 0.05), None);
    assert_eq!(of(&[1.0], 0.05), None);
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert_eq!(of(&[1.0, bad], 0.05), None);
    }
    let gross = of(&[1.0, 1e9], 0.001).unwrap();
    assert!(!gross.is_precise && gross.more.is_none());
}
