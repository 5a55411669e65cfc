//! Two arms in turns, on standard error: a line for each figure after each round of blocks.

use crate::leftovers::mentions;
use crate::output::{Voice, note};
use pubmark_model::cell::Cell;
use pubmark_model::record::RunRecord;
use pubmark_report::compare::ArmsResult;
use pubmark_stats::LOOKS;
use pubmark_study::conduct::{Observer, StudyStart};
use pubmark_study::live::News;
use pubmark_study::plan::StudyPlan;
use pubmark_study::turns::{BlocksWanted, TurnsObserver};

/// Shows arms that take turns, and says from their records what is wanted next.
pub struct TurnsDisplay<'a> {
    voice: Voice,
    plan: &'a StudyPlan,
    told: u32,
}

impl TurnsDisplay<'_> {
    /// A display of this plan, which has arms.
    pub fn new(voice: Voice, plan: &StudyPlan) -> TurnsDisplay<'_> {
        TurnsDisplay { voice, plan, told: 0 }
    }
}

impl Observer for TurnsDisplay<'_> {
    fn begin(&mut self, _: &StudyStart<'_>) {
        mentions().iter().for_each(|line| self.voice.note(line));
    }

    fn run_begins(&mut self, _: &Cell, _: u32, _: usize) {}
    fn news(&mut self, news: News) {
        if let News::Left(line) = &news {
            self.voice.note(line);
        }
    }

    fn run_ends(&mut self, record: &RunRecord) {
        if self.voice.quiet {
            return;
        }
        if let Some(error) = &record.error {
            note(&format!("    could not be made: {}", pubmark_report::text::clean_ends(error, 400)));
        }
        if self.voice.verbose {
            for finding in &record.verdict.reasons {
                note(&format!("    {}: {}", finding.reason, finding.evidence));
            }
        }
    }
}

impl TurnsObserver for TurnsDisplay<'_> {
    fn look(&mut self, records: &[RunRecord]) -> BlocksWanted {
        let runs: Vec<&RunRecord> = records.iter().collect();
        // The gates were understood before anything was measured.
        let Ok(Some(found)) = ArmsResult::of(self.plan.study(), self.plan.cells(), &runs) else { return Vec::new() };
        let is_look = LOOKS.contains(&(found.blocks as usize));
        if found.blocks > self.told && is_look && !self.voice.quiet {
            for gate in &found.gates {
                note(&format!("[{}] {}", found.blocks, gate.sentence()));
            }
        }
        self.told = found.blocks;
        found.wanted
    }
}
