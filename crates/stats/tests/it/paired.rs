//! Two arms in turns: exact cases, then the error rate for equal arms over all looks, and the
//! number of blocks for a change, by simulation.

use crate::noise::{Kind, Noise, STEP};
use pubmark_stats::{
    LOOKS, PairedBound, PairedDecision, PairedOutcome, PairedReading, PairedTest, Scale, a_goes_first, next_look,
};

const RISE: fn(f64) -> PairedBound = |by| PairedBound { rise: true, by, relative: true };

fn readings(pairs: &[(f64, f64)], step: f64) -> Vec<PairedReading> {
    pairs.iter().map(|(a, b)| PairedReading { a: *a, b: *b, step_a: a * step, step_b: b * step }).collect()
}

fn decide(pairs: &[(f64, f64)], bound: PairedBound) -> PairedDecision {
    PairedTest::new(1).decide(&readings(pairs, 1e-9), bound).unwrap()
}

#[test]
fn a_change_is_beyond_its_bound_or_within_it_or_neither() {
    let pairs = |ratio: f64| [0.99, 1.01, 1.0, 0.98, 1.02].map(|noise| (100.0, 100.0 * ratio * noise));
    for (ratio, outcome) in [
        (1.0, PairedOutcome::Within),
        (1.1, PairedOutcome::Open),
        (1.2, PairedOutcome::Beyond),
        (0.5, PairedOutcome::Within),
    ] {
        let found = decide(&pairs(ratio), RISE(0.1));
        assert_eq!(found.outcome, outcome, "{ratio}: {found:?}");
        assert!((found.change.value / ratio - 1.0).abs() < 0.01, "{found:?}");
        let interval = found.change.interval.unwrap();
        assert!(interval.lo < found.change.value && found.change.value < interval.hi);
        // The reported interval is the one that decides.
        let (beyond, within) = (interval.lo > 1.1, interval.hi < 1.1);
        assert_eq!((beyond, within), (outcome == PairedOutcome::Beyond, outcome == PairedOutcome::Within));
    }
    let fall = |by| PairedBound { rise: false, by, relative: true };
    assert_eq!(decide(&pairs(0.8), fall(-0.1)).outcome, PairedOutcome::Beyond);
    assert_eq!(decide(&pairs(1.0), fall(-0.1)).outcome, PairedOutcome::Within);
    // No figure falls by more than all of it.
    assert_eq!(decide(&pairs(0.1), fall(-1.0)).outcome, PairedOutcome::Within);
    let amount = PairedBound { rise: true, by: 30.0, relative: false };
    assert_eq!(decide(&pairs(1.2), amount).outcome, PairedOutcome::Within);
    assert_eq!(decide(&pairs(1.5), amount).outcome, PairedOutcome::Beyond);
    assert_eq!(decide(&pairs(1.5), amount).scale, Scale::Difference);
}

#[test]
fn what_is_no_number_of_blocks_to_look_at_says_nothing() {
    let test = PairedTest::new(1);
    assert_eq!(test.decide(&[], RISE(0.1)), None);
    assert_eq!(test.decide(&readings(&[(1.0, f64::NAN)], 0.0), RISE(0.1)), None);
    let one = decide(&[(1.0, 9.0)], RISE(0.1));
    assert_eq!((one.outcome, one.looked_at, one.change.interval), (PairedOutcome::Open, 0, None));
    // The seventh block is evaluated with the eighth.
    let mut pairs = vec![(1.0, 1.1), (1.0, 0.9), (1.0, 1.1), (1.0, 0.9), (1.0, 1.1), (1.0, 0.9)];
    pairs.push((1.0, 5.0));
    assert_eq!(decide(&pairs, RISE(0.0)).looked_at, 6);
    assert_eq!((next_look(6), next_look(7), next_look(512)), (Some(8), Some(8), None));
}

/// A decision is final, whatever follows.
#[test]
fn the_first_look_that_decides_is_the_answer() {
    let mut pairs = vec![(100.0, 200.0), (100.0, 201.0), (100.0, 202.0)];
    let first = decide(&pairs, RISE(0.1));
    pairs.extend([(100.0, 1.0); 10]);
    let later = decide(&pairs, RISE(0.1));
    assert_eq!((first.outcome, first.looked_at), (PairedOutcome::Beyond, later.looked_at));
    assert_eq!((later.outcome, later.change), (first.outcome, first.change));
}

#[test]
fn counts_of_zero_are_held_against_amounts() {
    let lost = PairedBound { rise: true, by: 0.0, relative: false };
    let decide = |b: f64| {
        let pairs = [PairedReading { a: 0.0, b, step_a: 0.0, step_b: b.sqrt() }; 4];
        PairedTest::new(1).decide(&pairs, lost).unwrap()
    };
    assert_eq!(decide(0.0).outcome, PairedOutcome::Within, "nothing is lost");
    assert_eq!(decide(900.0).outcome, PairedOutcome::Beyond);
    assert_eq!(decide(1.0).outcome, PairedOutcome::Open, "one message is lost by chance");
}

#[test]
fn equal_values_are_not_without_noise() {
    let test = PairedTest::new(1);
    let bucket = |b: f64| test.decide(&readings(&[(100.0, b); 3], 0.001), RISE(0.0)).unwrap().outcome;
    assert_eq!(bucket(100.1), PairedOutcome::Open, "the next bucket is not a change");
    assert_eq!(bucket(150.0), PairedOutcome::Beyond);
}

/// The number of additional blocks is what the next looks need if everything stays the same.
#[test]
fn what_is_open_says_how_many_blocks_more_would_tell() {
    let pair = |index: usize| (100.0, if index.is_multiple_of(2) { 112.0 } else { 104.0 });
    let pairs = |count: usize| (0..count).map(pair).collect::<Vec<_>>();
    let found = decide(&pairs(4), RISE(0.05));
    let more = found.more.unwrap();
    assert_eq!(found.outcome, PairedOutcome::Open);
    assert_eq!(decide(&pairs(4 + more), RISE(0.05)).outcome, PairedOutcome::Beyond, "{more}");
    // At the bound itself no number of blocks decides.
    assert_eq!(decide(&[(100.0, 109.0), (100.0, 111.0), (100.0, 110.0)], RISE(0.1)).more, None);
}

#[test]
fn each_arm_goes_first_in_one_of_two_blocks() {
    let mut first = 0;
    for point in 0..100 {
        for pair in 0..10 {
            let block = 2 * pair + 1;
            assert_ne!(a_goes_first(7, point, block), a_goes_first(7, point, block + 1));
            first += usize::from(a_goes_first(7, point, block));
        }
    }
    assert!((400..600).contains(&first), "drawn, and not always the same: {first}");
    assert!((0..64).any(|seed| a_goes_first(seed, 0, 1)) && (0..64).any(|seed| !a_goes_first(seed, 0, 1)));
}

/// Noise between the runs of a block and over the whole: each run is slower than the one before it
/// by `drift`, on logarithms.
#[derive(Clone, Copy)]
struct Machine {
    kind: Kind,
    drift: f64,
    /// Slowdown of the second run of a block.
    second: f64,
}

/// Creates blocks of two arms, of which B is slower by a factor.
fn blocks(noise: &mut Noise, machine: Machine, factor: f64, count: usize, seed: u64) -> Vec<PairedReading> {
    let mut runs = 0.0;
    let block = |index: usize| {
        let mut run = |typical: f64, is_second: bool| {
            let late = runs * machine.drift + if is_second { machine.second } else { 0.0 };
            runs += 1.0;
            typical * noise.factor(machine.kind) * f64::exp(late)
        };
        let (a, b) = match a_goes_first(seed, 0, index as u32 + 1) {
            true => {
                let a = run(1.0, false);
                (a, run(factor, true))
            }
            false => {
                let b = run(factor, false);
                (run(1.0, true), b)
            }
        };
        PairedReading { a, b, step_a: STEP, step_b: STEP }
    };
    (0..count).map(block).collect()
}

const MACHINES: [(&str, Machine); 9] = {
    const fn quiet(kind: Kind) -> Machine {
        Machine { kind, drift: 0.0, second: 0.0 }
    }
    [
        ("lognormal", quiet(Kind::Lognormal)),
        ("t2", quiet(Kind::HeavyBothWays)),
        ("Pareto", quiet(Kind::HeavySlow)),
        ("one in ten half as slow again", quiet(Kind::Disturbed)),
        ("two buckets", quiet(Kind::Rounded)),
        ("drift of 5 % a run", Machine { kind: Kind::Lognormal, drift: 0.05, second: 0.0 }),
        ("drift of 50 % a run", Machine { kind: Kind::Lognormal, drift: 0.4, second: 0.0 }),
        ("the second run slower by 10 %", Machine { kind: Kind::Lognormal, drift: 0.0, second: 0.1 }),
        ("drift, one in ten disturbed", Machine { kind: Kind::Disturbed, drift: 0.02, second: 0.02 }),
    ]
};

/// Equal arms, tested at each look of up to 100 blocks, with a bound of 0: the hardest case for
/// false alarms, as any rise at all is beyond it.
#[test]
fn equal_arms_raise_an_alarm_in_at_most_5_of_100_over_all_looks() {
    const TRIALS: usize = 4_000;
    let error = 3.09 * (0.05 * 0.95 / TRIALS as f64).sqrt();
    let mut noise = Noise(5);
    for (name, machine) in MACHINES {
        for family in [1, 4] {
            let test = PairedTest::new(family);
            let trials = TRIALS / family;
            let mut alarms = 0;
            for trial in 0..trials {
                let seed = (trial * 10) as u64;
                let mut any = |member: usize| {
                    let blocks = blocks(&mut noise, machine, 1.0, 100, seed + member as u64);
                    test.decide(&blocks, RISE(0.0)).unwrap().outcome == PairedOutcome::Beyond
                };
                alarms += usize::from((0..family).filter(|member| any(*member)).count() > 0);
            }
            let rate = alarms as f64 / trials as f64;
            println!("{name}, {family} comparisons: {:.1} %", rate * 100.0);
            assert!(rate <= 0.05 + error * (family as f64).sqrt(), "{name}, {family}: {rate}");
        }
    }
}

/// A change at the bound itself is not reported as met, either.
#[test]
fn a_bound_is_said_to_be_kept_wrongly_in_at_most_5_of_100() {
    const TRIALS: usize = 2_000;
    let (mut noise, test) = (Noise(6), PairedTest::new(1));
    for (name, machine) in MACHINES {
        let wrong = |trial: usize, noise: &mut Noise| {
            let blocks = blocks(noise, machine, 1.1, 100, trial as u64);
            test.decide(&blocks, RISE(0.1)).unwrap().outcome == PairedOutcome::Within
        };
        let rate = (0..TRIALS).filter(|trial| wrong(*trial, &mut noise)).count() as f64 / TRIALS as f64;
        println!("{name}: {:.1} %", rate * 100.0);
        assert!(rate <= 0.05 + 3.09 * (0.05 * 0.95 / TRIALS as f64).sqrt(), "{name}: {rate}");
    }
}

/// The table of docs/gate-a-change.md: the number of blocks for a decision.
#[test]
fn how_many_blocks_decide() {
    const TRIALS: usize = 1_000;
    let (mut noise, test) = (Noise(8), PairedTest::new(1));
    let machine = MACHINES[0].1;
    let mut table =
        String::from("| change | within 5 blocks | within 10 | within 20 | within 50 | half of them by |\n");
    table.push_str("|---:|---:|---:|---:|---:|---:|\n");
    for change in [0.0, 0.05, 0.1, 0.15, 0.2, 0.5, 1.0] {
        let wanted = if change < 0.1 { PairedOutcome::Within } else { PairedOutcome::Beyond };
        let mut at: Vec<usize> = (0..TRIALS)
            .map(|trial| {
                let blocks = blocks(&mut noise, machine, 1.0 + change, 50, trial as u64);
                let found = test.decide(&blocks, RISE(0.1)).unwrap();
                if found.outcome == wanted { found.looked_at } else { usize::MAX }
            })
            .collect();
        at.sort_unstable();
        let share = |most: usize| at.iter().filter(|blocks| **blocks <= most).count() as f64 / TRIALS as f64 * 100.0;
        let middle = at[TRIALS / 2];
        let middle = if middle == usize::MAX { "not by 50".into() } else { format!("{middle} blocks") };
        table.push_str(&format!(
            "| +{:.0} % | {:.0} % | {:.0} % | {:.0} % | {:.0} % | {middle} |\n",
            change * 100.0,
            share(5),
            share(10),
            share(20),
            share(50)
        ));
    }
    println!("{table}");
    assert!(LOOKS.is_sorted());
    let page = include_str!("../../../../docs/gate-a-change.md");
    assert!(page.contains(&table), "docs/gate-a-change.md should have this table:\n{table}");
}
