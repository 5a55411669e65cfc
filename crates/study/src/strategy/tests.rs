//! Strategies without processes: a scripted system makes runs in no time.

use super::*;
use crate::plan::StudyPlan;
use crate::registry;
use pubmark_judge::empty_record::blank;
use pubmark_model::study::ReadOptions;

pub fn study(axes: &str) -> Study {
    let text = format!("title = \"t\"\nquestion = \"\"\n{axes}");
    Study::parse("t", &text, &registry::built_in, &ReadOptions::default()).unwrap()
}

pub fn plan(axes: &str) -> StudyPlan {
    StudyPlan::new(study(axes)).unwrap()
}

/// A run that was played.
pub struct Played {
    pub row: usize,
    pub repeat: u32,
    pub record: RunRecord,
    pub finding: Option<String>,
}

/// Plays a strategy to its end. Each run takes this long, and `system` writes its figures.
pub fn play(
    strategy: &mut dyn Strategy,
    before: &[RunRecord],
    run_ns: Ns,
    system: &mut dyn FnMut(&mut RunRecord),
) -> Vec<Played> {
    let (mut now_ns, mut played) = (0, Vec::new());
    strategy.begin(before, now_ns).unwrap();
    while let Some(next) = strategy.next(now_ns).unwrap() {
        assert!(next.row < strategy.rows().len());
        let mut record = blank(&next.cell, None, next.place, String::new());
        system(&mut record);
        now_ns += run_ns;
        let finding = strategy.note(&record, run_ns);
        played.push(Played { row: next.row, repeat: next.place.repeat, record, finding });
        assert!(played.len() < 5_000, "it ends");
    }
    played
}
