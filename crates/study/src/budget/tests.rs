use super::walk::walk;
use super::{AGAIN_MAX, Budget, BudgetEnd, Course, OpenQuestion, QuestionsSeen, REVIVALS_MAX, UNCOUNTED_MAX};
use crate::plan::StudyPlan;
use crate::strategy::tests::{Played, plan as planned, play};
use pubmark_judge::empty_record::blank;
use pubmark_model::cell::Cell;
use pubmark_model::plan::Place;
use pubmark_model::record::{FigureGroup, Finding, Reason, RunRecord};
use pubmark_model::units::{Ns, SECOND};
use std::collections::HashSet;

fn cells(axes: &str) -> Vec<Cell> {
    plan(axes).cells().to_vec()
}

fn plan(axes: &str) -> StudyPlan {
    planned(&format!("[workload]\ntransport = \"tcp\"\n[axes]\nsystem = [\"kernel\", \"nng\"]\n{axes}"))
}

#[test]
fn a_walk_comes_to_each_point_once() {
    let cells = cells("payload = [\"16B\", \"1KB\", \"2KB\"]\nsubscribers = [1, 2]\npattern = [\"fan-out\"]\n");
    let walked = walk(&cells, 7);
    assert_eq!(walked.len(), 6);
    assert!(walked.iter().all(|point| point.len() == 2));
    let all: HashSet<usize> = walked.iter().flatten().copied().collect();
    assert_eq!(all.len(), 12);
    assert_ne!(walk(&cells, 8), walked, "the seed decides what comes first");
    assert_eq!(walk(&cells, 7), walked);
}

/// Wherever the walk is broken off, it has visited each value of each axis about equally often.
#[test]
fn a_walk_that_is_broken_off_is_spread_over_all_axes() {
    let cells = cells(
        "payload = [\"16B\", \"1KB\", \"2KB\", \"4KB\"]\nsubscribers = [1, 2, 3, 4]\nrate = [10, 20]\npattern = [\"fan-out\"]\n",
    );
    for seed in 0..20 {
        let walked = walk(&cells, seed);
        for length in [2, 4, 8, 12, 20, 31] {
            for axis in ["payload", "subscribers", "rate"] {
                let mut values: Vec<String> = Vec::new();
                let mut often: Vec<usize> = Vec::new();
                for cell in &cells {
                    let value = cell.axes[axis].to_string();
                    if !values.contains(&value) {
                        values.push(value);
                        often.push(0);
                    }
                }
                for point in &walked[..length] {
                    let value = cells[point[0]].axes[axis].to_string();
                    often[values.iter().position(|other| *other == value).unwrap()] += 1;
                }
                let (least, most) = (often.iter().min().unwrap(), often.iter().max().unwrap());
                assert!(most - least <= 2, "seed {seed}, {length} points, {axis}: {often:?}");
            }
        }
    }
}

/// Returns a run that does not count for this reason.
fn spoilt(cell: &Cell, repeat: u32, reason: Reason) -> RunRecord {
    let mut record = blank(cell, None, Place { repeat, position: 0 }, String::new());
    record.verdict.valid = false;
    record.verdict.reasons =
        vec![Finding { reason, evidence: "seen".into(), figures: FigureGroup::all(), overload: false }];
    record
}

/// A machine that never gets quiet ends a study after a known number of tries.
#[test]
fn a_cell_given_up_for_the_machines_noise_is_tried_again_and_not_for_ever() {
    let plan = plan("payload = [\"16B\"]\n");
    let seen = QuestionsSeen {
        open: vec![OpenQuestion {
            text: "who is best".into(),
            cells: vec![0, 1],
            groups: FigureGroup::all(),
            compares: true,
            blocks_more: None,
        }],
        ..QuestionsSeen::default()
    };
    for (reason, tries) in [(Reason::NoisyMachine, REVIVALS_MAX), (Reason::MessagesLost, 0)] {
        let mut course = Course::new(&plan, &|_| 1);
        let mut made = 0;
        let mut revived = 0;
        loop {
            while !course.wanted(&seen).is_empty() {
                for cell in 0..2 {
                    course.note(cell, &spoilt(&plan.cells()[cell], made + 1, reason), false);
                }
                made += 1;
                assert!(made < 1_000, "{reason}: it ends");
            }
            assert_eq!(course.given_up, [true, true], "{reason}");
            if !course.revive() {
                break;
            }
            revived += 1;
        }
        assert_eq!((revived, made), (tries, UNCOUNTED_MAX * (1 + tries as u32)), "{reason}");
        // A run that counts removes its cell from those that are given up.
        course.note(0, &spoilt(&plan.cells()[0], made + 1, reason), true);
        assert_eq!(course.given_up, [false, true], "{reason}");
    }
}

/// The estimate of an open question follows from the duration of its cells' runs.
#[test]
fn how_much_longer_a_question_takes_is_by_what_its_runs_took() {
    let plan = plan("payload = [\"16B\", \"1KB\"]\n");
    let mut course = Course::new(&plan, &|_| 10);
    let question = |blocks_more| OpenQuestion {
        text: "who is best".into(),
        cells: vec![0, 2],
        groups: FigureGroup::all(),
        compares: true,
        blocks_more,
    };
    assert_eq!(course.more_ns(&question(Some(3))), Some(60), "by the plan");
    course.took_ns[0] = Some(30);
    course.took_ns[2] = Some(50);
    assert_eq!(course.more_ns(&question(Some(3))), Some(240));
    assert_eq!(course.more_ns(&question(None)), None);
}

/// The kernel's floor has runs beside the first three repeats of a point; a cell that has a run of a repeat already
/// gets no other.
#[test]
fn what_others_are_shown_beside_is_measured_in_the_first_blocks() {
    let plan = plan("payload = [\"16B\", \"1KB\"]\n");
    let cell = |system: &str, payload: usize| {
        let is_it = |cell: &&Cell| cell.system.name == system && cell.axes["payload"] == [16, 1_000][payload];
        plan.cells().iter().position(|cell| is_it(&cell)).unwrap()
    };
    let [floor, nng, other] = [cell("kernel", 0), cell("nng", 0), cell("kernel", 1)];
    let mut beside = vec![Vec::new(); plan.cells().len()];
    beside[nng] = vec![floor, other];
    let seen = QuestionsSeen { beside, ..QuestionsSeen::default() };
    let mut course = Course::new(&plan, &|_| 1);
    let point = course.point_of[nng];
    let wanted = [nng].into();
    let mut blocks = Vec::new();
    for made in 0..4 {
        course.blocks[point] = made;
        if made == 1 {
            course.keep(&blank(&plan.cells()[other], None, Place { repeat: 2, position: 0 }, String::new()));
        }
        blocks.push(course.block(point, &wanted, &seen));
    }
    let sorted = |mut cells: Vec<usize>| {
        cells.sort_unstable();
        cells
    };
    assert_eq!(
        blocks,
        [sorted(vec![floor, nng, other]), sorted(vec![floor, nng]), sorted(vec![floor, nng, other]), vec![nng]]
    );
}

/// Plays a study of two systems at two points, each decided by this many repeats. Returns also how it ended. `counts`:
/// whether the run with this number counts.
fn played(blocks: u32, budget_s: u64, before: &[RunRecord], counts: &dyn Fn(u64) -> bool) -> (Vec<Played>, BudgetEnd) {
    played_against(Reason::MessagesLost, blocks, budget_s, before, counts)
}

/// The same. `reason`: why runs do not count.
fn played_against(
    reason: Reason,
    blocks: u32,
    budget_s: u64,
    before: &[RunRecord],
    counts: &dyn Fn(u64) -> bool,
) -> (Vec<Played>, BudgetEnd) {
    let plan = plan("payload = [\"16B\", \"1KB\"]\n");
    let point = |payload: u64| -> Vec<usize> {
        (0..plan.cells().len()).filter(|cell| plan.cells()[*cell].axes["payload"] == payload).collect()
    };
    let (points, cells) = ([point(16), point(1_000)], plan.cells().to_vec());
    let mut look = |records: &[RunRecord]| {
        let counted = |cell: usize| {
            let mine = |record: &&RunRecord| record.cell == cells[cell].axes && record.verdict.valid;
            records.iter().filter(mine).count() as u32
        };
        let is_open = |point: &&Vec<usize>| point.iter().any(|cell| counted(*cell) < blocks);
        let question = |point: &Vec<usize>| OpenQuestion {
            text: "who is best".into(),
            cells: point.clone(),
            groups: FigureGroup::all(),
            compares: true,
            blocks_more: None,
        };
        Ok(QuestionsSeen { open: points.iter().filter(is_open).map(question).collect(), ..QuestionsSeen::default() })
    };
    let mut budget = Budget::new(&plan, budget_s * SECOND, &|_| SECOND, &mut look);
    let runs = play(&mut budget, before, SECOND, &mut |record| {
        record.verdict.valid = counts(record.position);
        if !record.verdict.valid {
            *record = spoilt(cells.iter().find(|cell| cell.axes == record.cell).unwrap(), record.repeat, reason);
        }
    });
    let end = budget.end();
    (runs, end)
}

#[test]
fn blocks_are_made_until_each_question_is_decided() {
    let (runs, end) = played(4, 1_000, &[], &|_| true);
    assert_eq!(end, BudgetEnd::Decided);
    assert_eq!(runs.len(), 16, "four blocks of two runs at each of two points");
    for pair in runs.chunks(2) {
        assert_eq!(pair[0].repeat, pair[1].repeat, "a block is of one point");
        assert_eq!(pair[0].record.cell["payload"], pair[1].record.cell["payload"]);
    }
}

#[test]
fn a_run_that_does_not_count_is_made_again_within_its_block() {
    let (runs, end) = played(2, 1_000, &[], &|position| position != 1);
    assert_eq!((runs.len(), end), (9, BudgetEnd::Decided));
    let again: Vec<&Played> =
        runs.iter().filter(|run| run.row == runs[1].row && run.repeat == runs[1].repeat).collect();
    assert_eq!(again.len(), 2);
    let (never, end) = played(2, 1_000, &[], &|_| false);
    assert_eq!(end, BudgetEnd::Decided, "all cells are given up");
    assert!(never.len() <= 4 * (UNCOUNTED_MAX + AGAIN_MAX) as usize, "{}", never.len());
}

/// A run that is too short is as short the next time.
#[test]
fn a_run_with_too_few_messages_is_not_made_again() {
    let (runs, _) = played_against(Reason::TooFewSamples, 2, 1_000, &[], &|position| position != 1);
    let alike = |run: &&Played| run.row == runs[1].row && run.repeat == runs[1].repeat;
    assert_eq!(runs.iter().filter(alike).count(), 1);
}

#[test]
fn no_run_is_begun_that_would_not_end_in_time() {
    for budget_s in [1, 2, 7] {
        let (runs, end) = played(100, budget_s, &[], &|_| true);
        assert!(runs.len() as Ns <= budget_s && end == BudgetEnd::Time, "{budget_s}: {}", runs.len());
        assert!(runs.len() as Ns + 1 >= budget_s, "{budget_s}: {}", runs.len());
    }
}

#[test]
fn a_study_with_a_time_goes_on_from_its_records() {
    let (whole, _) = played(4, 1_000, &[], &|_| true);
    let before: Vec<RunRecord> = whole[..7].iter().map(|run| run.record.clone()).collect();
    let (later, end) = played(4, 1_000, &before, &|_| true);
    assert_eq!(end, BudgetEnd::Decided);
    assert_eq!(later[0].record.position, 7);
    let all = || whole[..7].iter().chain(&later);
    for row in 0..4 {
        let repeats: Vec<u32> = all().filter(|run| run.row == row).map(|run| run.repeat).collect();
        let once: HashSet<u32> = repeats.iter().copied().collect();
        assert!(once.len() == repeats.len() && once.len() >= 4, "row {row}: {repeats:?}");
    }
}
