use super::*;
use crate::strategy::tests::{Played, plan, play};
use pubmark_model::units::SECOND;

const ARMS: &str = "[axes]\nsystem = [\"mock\"]\nrate = [100, 200]\n";

/// Returns the points: the arms are the two rates.
fn points() -> Vec<ArmsPoint> {
    vec![ArmsPoint { a: 0, b: 1 }]
}

/// Wants one more repeat before each analysis, and decides after this many.
fn wants(told: u32) -> impl FnMut(&[RunRecord]) -> TurnsLook {
    move |records| {
        let blocks = records.iter().map(|record| record.repeat).max().unwrap_or(0);
        let wanted = if blocks >= told { 0 } else { blocks + 1 };
        TurnsLook {
            wanted: vec![wanted],
            blocks_more: Some((told.saturating_sub(blocks)) as usize),
            ..TurnsLook::default()
        }
    }
}

/// Plays arms until they are over; runs take this long, and fail if `fails`.
fn arms(told: u32, budget_ns: Ns, fails: bool) -> (Vec<Played>, TurnsEnd, Ns) {
    let (plan, points) = (plan(ARMS), points());
    let mut look = wants(told);
    let mut turns = Turns::new(&plan, &points, budget_ns, &mut look);
    let played = play(&mut turns, &[], SECOND, &mut |record| {
        record.error = fails.then(|| "no".into());
    });
    (played, turns.end(), turns.all_points_ns())
}

#[test]
fn blocks_have_a_run_of_each_arm_and_either_goes_first() {
    let (played, end, block_ns) = arms(20, 1_000 * SECOND, false);
    assert_eq!((played.len(), end, block_ns), (40, TurnsEnd::Told, 2 * SECOND));
    let mut first_a = 0;
    for (block, pair) in played.chunks(2).enumerate() {
        assert!(pair.iter().all(|run| run.repeat as usize == block + 1));
        assert_ne!(pair[0].row, pair[1].row);
        first_a += usize::from(pair[0].row == 0);
    }
    assert_eq!(first_a, 10, "each goes first in half of the blocks");
}

#[test]
fn no_block_is_begun_that_would_not_end_in_time() {
    for (budget_s, blocks) in [(1, 1), (2, 1), (5, 2), (6, 3)] {
        let (played, end, _) = arms(20, budget_s * SECOND, false);
        assert_eq!((played.len(), end), (2 * blocks, TurnsEnd::Time), "{budget_s} s");
    }
}

#[test]
fn arms_that_cannot_be_measured_are_given_up() {
    let (played, end, _) = arms(20, 1_000 * SECOND, true);
    assert_eq!((played.len(), end), (2 * FAILED_MAX as usize, TurnsEnd::Failing));
}

#[test]
fn there_is_a_most_of_blocks() {
    let (played, end, _) = arms(u32::MAX, 10_000 * SECOND, false);
    assert_eq!((played.len(), end), (2 * BLOCKS_MAX as usize, TurnsEnd::Most));
}

#[test]
fn an_interrupted_measurement_goes_on_with_the_next_block() {
    let (plan, points) = (plan(ARMS), points());
    let whole = {
        let mut look = wants(6);
        play(&mut Turns::new(&plan, &points, 1_000 * SECOND, &mut look), &[], SECOND, &mut |_| {})
    };
    let before: Vec<RunRecord> = whole[..6].iter().map(|run| run.record.clone()).collect();
    let mut look = wants(6);
    let later = play(&mut Turns::new(&plan, &points, 1_000 * SECOND, &mut look), &before, SECOND, &mut |_| {});
    let rows = |runs: &[Played]| runs.iter().map(|run| (run.row, run.repeat)).collect::<Vec<_>>();
    assert_eq!(rows(&later), rows(&whole[6..]));
}
