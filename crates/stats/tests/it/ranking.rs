//! Ranking within blocks: exact cases, an independent computation of whole tables, and properties.
//! Error rate and power are in `ranking_rates`.

use proptest::prelude::*;
use pubmark_stats::{
    Better, Blocks, Looks, PointInput, PointOutcome, RankedPoint, RankingInput, SAME_WITHIN, Scale, SystemOutcome,
    UndecidedReason, rank_table,
};

use crate::vectors::{assert_close, load};

fn system(values: &[f64]) -> Blocks {
    Blocks { values: values.iter().copied().map(Some).collect(), sessions: Vec::new(), step: 0.0 }
}

fn point(systems: &[&[f64]], better: Better) -> PointInput {
    PointInput { systems: systems.iter().map(|values| system(values)).collect(), better }
}

fn ranked(points: Vec<PointInput>) -> Vec<RankedPoint> {
    rank_table(&RankingInput { points, bound: SAME_WITHIN, alpha: 0.05, looks: Looks::Once }).points
}

fn alone(systems: &[&[f64]], better: Better) -> RankedPoint {
    ranked(vec![point(systems, better)]).remove(0)
}

#[test]
fn whole_tables_agree_with_their_definition_by_scipy() {
    let cases = load().rankings;
    assert!(cases.len() >= 5);
    let (mut different, mut same) = (0, 0);
    for case in cases {
        let lists: Vec<Vec<&[f64]>> =
            case.table.iter().map(|point| point.iter().map(Vec::as_slice).collect()).collect();
        let found = ranked(lists.iter().map(|systems| point(systems, Better::Lower)).collect());
        for pair in case.pairs {
            let (at, what) = (&found[pair.point], format!("{} against {} at {}", pair.a, pair.b, pair.point));
            let difference = at.difference(pair.a, pair.b).unwrap();
            let interval = difference.estimate.interval.unwrap();
            assert_close(interval.lo, pair.interval.0, 1e-6, &what);
            assert_close(interval.hi, pair.interval.1, 1e-6, &what);
            let better = if difference.estimate.value < 1.0 { (pair.a, pair.b) } else { (pair.b, pair.a) };
            if pair.different {
                assert!(at.beats(better.0, better.1), "{what}");
            }
            assert!(!at.beats(better.1, better.0), "{what}");
            assert_eq!(at.same(pair.a, pair.b), pair.same, "{what}");
            (different, same) = (different + usize::from(pair.different), same + usize::from(pair.same));
        }
    }
    assert!(different > 10 && same > 3, "{different} and {same} are too few to show anything");
}

/// By hand: a single pair has its own noise alone. The logarithms differ by
/// 0.1, 0.2 and 0.3, of mean 0.2 and standard error 0.1 / √3; t of 2 degrees
/// at 5 % is 4.302653.
#[test]
fn a_single_pair_is_a_paired_t_test() {
    let found = alone(&[&[0.1f64.exp(), 5.0 * 0.2f64.exp(), 9.0 * 0.3f64.exp()], &[1.0, 5.0, 9.0]], Better::Lower);
    let difference = found.difference(0, 1).unwrap();
    assert_eq!((difference.scale, difference.blocks), (Scale::Ratio, 3));
    assert_close(difference.estimate.value, 0.2f64.exp(), 1e-12, "ratio");
    let half = 4.302_652_729_911_275 * 0.1 / 3f64.sqrt();
    let interval = difference.estimate.interval.unwrap();
    assert_close(interval.lo, (0.2 - half).exp(), 1e-9, "lower end");
    assert_close(interval.hi, (0.2 + half).exp(), 1e-9, "upper end");
    let back = found.difference(1, 0).unwrap().estimate;
    assert_close(back.value, (-0.2f64).exp(), 1e-12, "the other way");
    assert_close(back.interval.unwrap().lo, 1.0 / interval.hi, 1e-9, "the other way");
}

const CLEAR: [&[f64]; 3] =
    [&[100.0, 101.0, 99.0, 100.5, 100.2], &[201.0, 199.0, 200.0, 203.0, 198.5], &[152.0, 150.0, 149.0, 150.5, 151.0]];

#[test]
fn the_best_by_far_wins_and_the_others_are_behind() {
    let found = alone(&CLEAR, Better::Lower);
    assert_eq!(found.placing, PointOutcome::Winner(0));
    assert_eq!(found.standings, [SystemOutcome::Ahead, SystemOutcome::Behind, SystemOutcome::Behind]);
    assert!(found.beats(0, 1) && found.beats(0, 2) && found.beats(2, 1) && !found.beats(1, 2));
    let found = alone(&CLEAR, Better::Higher);
    assert_eq!(found.placing, PointOutcome::Winner(1));
    assert!(found.beats(1, 0) && !found.beats(0, 1));
}

#[test]
fn those_shown_to_be_close_are_a_tie() {
    let near = [100.3, 100.9, 99.4, 100.4, 100.5];
    let found = alone(&[&near, CLEAR[0], CLEAR[1]], Better::Lower);
    assert_eq!(found.placing, PointOutcome::Tie(vec![1, 0]));
    assert_eq!(found.standings, [SystemOutcome::Same, SystemOutcome::Ahead, SystemOutcome::Behind]);
    assert!(found.same(0, 1) && found.same(1, 0) && !found.same(0, 2) && !found.beats(1, 0));
}

#[test]
fn what_is_neither_is_undecided_and_says_how_many_more() {
    let found = alone(&[&[100.0, 130.0, 90.0], &[120.0, 128.0, 101.0], &[400.0, 505.0, 370.0]], Better::Lower);
    let PointOutcome::Undecided { why: UndecidedReason::Noise(rivals), repeats_more: Some(more) } = &found.placing
    else {
        panic!("{:?}", found.placing)
    };
    assert_eq!(*rivals, [1]);
    assert!((2..40).contains(more), "{more}");
    assert_eq!(found.standings, [SystemOutcome::Ahead, SystemOutcome::Open, SystemOutcome::Behind]);
}

#[test]
fn a_missing_run_takes_its_block_from_its_pairs_alone() {
    let mut gappy = point(&CLEAR, Better::Lower);
    gappy.systems[0].values[1] = None;
    gappy.systems[1].values.truncate(4);
    let found = ranked(vec![gappy]).remove(0);
    let blocks = |a, b| found.difference(a, b).unwrap().blocks;
    assert_eq!((blocks(0, 1), blocks(0, 2), blocks(1, 2)), (3, 4, 4));
    assert_eq!(found.placing, PointOutcome::Winner(0));
}

#[test]
fn nothing_is_said_without_two_blocks_or_two_systems() {
    let undecided = |why| PointOutcome::Undecided { why, repeats_more: None };
    assert_eq!(alone(&[], Better::Lower).placing, undecided(UndecidedReason::TooFewSystems));
    assert_eq!(alone(&[&[1.0, 2.0]], Better::Lower).placing, undecided(UndecidedReason::TooFewSystems));
    let found = alone(&[&[1.0], &[9.0]], Better::Lower);
    assert_eq!(found.placing, undecided(UndecidedReason::TooFewBlocks(vec![1])));
    assert!(found.difference(0, 1).unwrap().estimate.interval.is_none());
    let found = alone(&[&[1.0, 1.1, 1.0], &[]], Better::Lower);
    assert_eq!(found.placing, undecided(UndecidedReason::TooFewBlocks(vec![1])));
    assert_eq!((found.difference(0, 1), found.difference(0, 0), found.difference(0, 7)), (None, None, None));
    assert!(!found.beats(0, 7) && !found.same(0, 0));
    for bad in [f64::NAN, f64::INFINITY] {
        let found = alone(&[&[1.0, 1.1, 1.0], &[5.0, bad, 5.0]], Better::Lower);
        assert_eq!(found.placing, undecided(UndecidedReason::Unusable(vec![1])));
    }
}

/// For a point with one block, the noise of the rest of the table gives the number of additional
/// blocks.
#[test]
fn the_table_tells_how_many_more_than_one_block() {
    let mut points: Vec<PointInput> = (0..6).map(|_| point(&CLEAR, Better::Lower)).collect();
    points.push(point(&[&[100.0], &[110.0]], Better::Lower));
    let found = ranked(points).pop().unwrap();
    let PointOutcome::Undecided { why: UndecidedReason::TooFewBlocks(_), repeats_more: Some(more) } = found.placing
    else {
        panic!("{:?}", found.placing)
    };
    assert!((1..5).contains(&more), "{more}");
}

/// Two runs in the same bucket of a histogram are not free of noise.
#[test]
fn the_resolution_is_the_least_noise() {
    let with = |step: f64| {
        let systems = [[100.0; 3], [101.0; 3]].map(|values| Blocks { step, ..system(&values) });
        ranked(vec![PointInput { systems: systems.into(), better: Better::Lower }]).remove(0)
    };
    assert_eq!(with(0.0).placing, PointOutcome::Winner(0), "counted exactly, and always the same");
    assert!(matches!(with(1.0).placing, PointOutcome::Undecided { why: UndecidedReason::Noise(_), .. }));
}

#[test]
fn values_that_can_be_nothing_are_compared_as_differences() {
    let found = alone(&[&[0.0, 1.0, 0.0, 1.0], &[900.0, 910.0, 905.0, 903.0]], Better::Lower);
    assert_eq!(found.placing, PointOutcome::Winner(0));
    let difference = found.difference(0, 1).unwrap();
    assert_eq!((difference.scale, difference.estimate.value), (Scale::Difference, -904.0));
    let none = alone(&[&[0.0; 4], &[0.0; 4]], Better::Lower);
    assert!(!none.beats(0, 1) && !none.beats(1, 0), "nothing lost either way");
    assert!(matches!(none.placing, PointOutcome::Undecided { why: UndecidedReason::Noise(_), repeats_more: None }));
}

/// A difference that is significant alone is not among three hundred.
#[test]
fn a_larger_table_asks_for_more() {
    let (a, b): (&[f64], &[f64]) = (&[100.0, 104.0, 98.0, 101.0], &[106.0, 108.0, 106.0, 107.0]);
    assert_eq!(alone(&[a, b], Better::Lower).placing, PointOutcome::Winner(0));
    let equal: &[f64] = &[100.0, 99.0, 102.0, 103.0];
    let mut points = vec![point(&[a, b], Better::Lower)];
    points.extend((0..300).map(|_| point(&[a, equal], Better::Lower)));
    assert!(matches!(ranked(points)[0].placing, PointOutcome::Undecided { why: UndecidedReason::Noise(_), .. }));
}

fn tables() -> impl Strategy<Value = Vec<Vec<Vec<f64>>>> {
    let run = (0.0..0.3_f64).prop_map(|log| 50.0 * log.exp());
    prop::collection::vec(prop::collection::vec(prop::collection::vec(run, 4), 3), 1..5)
}

fn of(table: &[Vec<Vec<f64>>], better: Better, change: impl Fn(usize, usize, f64) -> f64) -> Vec<RankedPoint> {
    let points = table.iter().map(|systems| {
        let systems = systems.iter().enumerate().map(|(index, values)| {
            system(&values.iter().enumerate().map(|(block, value)| change(index, block, *value)).collect::<Vec<_>>())
        });
        PointInput { systems: systems.collect(), better }
    });
    ranked(points.collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_happens_to_a_whole_block_changes_nothing(table in tables(), drift in prop::collection::vec(0.2..5.0_f64, 4)) {
        let before = of(&table, Better::Lower, |_, _, value| value);
        let after = of(&table, Better::Lower, |_, block, value| value * drift[block]);
        for (one, other) in before.iter().zip(&after) {
            prop_assert_eq!(&one.placing, &other.placing);
            let (one, other) = (one.difference(0, 2).unwrap(), other.difference(0, 2).unwrap());
            assert_close(one.estimate.interval.unwrap().hi, other.estimate.interval.unwrap().hi, 1e-6, "with drift");
        }
    }

    #[test]
    fn the_better_way_turned_round_the_inverse_ranks_the_same(table in tables()) {
        let lower = of(&table, Better::Lower, |_, _, value| value);
        let higher = of(&table, Better::Higher, |_, _, value| 1.0 / value);
        for (one, other) in lower.iter().zip(&higher) {
            prop_assert_eq!(&one.placing, &other.placing);
            prop_assert_eq!(&one.standings, &other.standings);
        }
    }

    #[test]
    fn nobody_beats_one_that_beats_it_and_beating_is_passed_on(table in tables(), far in 1.0..4.0_f64) {
        for point in of(&table, Better::Lower, |system, _, value| value * far.powi(system as i32)) {
            for (a, b, c) in [(0, 1, 2), (1, 2, 0), (2, 0, 1), (0, 2, 1), (1, 0, 2), (2, 1, 0)] {
                prop_assert!(!(point.beats(a, b) && point.beats(b, a)));
                prop_assert!(!(point.beats(a, b) && point.beats(b, c)) || point.beats(a, c));
            }
        }
    }
}
