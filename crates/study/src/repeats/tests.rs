use super::*;
use crate::strategy::tests::{plan, play};

/// Runs on the disk are not made again, unless they failed; the others come in the plan's order, with their positions.
#[test]
fn runs_that_are_left_come_in_the_order_of_the_plan() {
    let plan = plan("[axes]\nsystem = [\"mock\"]\nrate = [100, 200, 300]\n[run]\nrepeats = 2\n");
    let whole = play(&mut Repeats::new(&plan), &[], 1, &mut |_| {});
    assert_eq!(whole.iter().map(|run| run.record.position).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5]);
    let mut before: Vec<RunRecord> = [0, 1, 3].map(|number: usize| whole[number].record.clone()).to_vec();
    before[1].error = Some("no".into());
    let later = play(&mut Repeats::new(&plan), &before, 1, &mut |_| {});
    assert_eq!(later.iter().map(|run| run.record.position).collect::<Vec<_>>(), [1, 2, 4, 5]);
    for run in &later {
        let same = &whole[run.record.position as usize];
        assert_eq!((run.row, run.repeat), (same.row, same.repeat));
    }
    assert!(
        play(&mut Repeats::new(&plan), &whole.into_iter().map(|run| run.record).collect::<Vec<_>>(), 1, &mut |_| {})
            .is_empty()
    );
}
