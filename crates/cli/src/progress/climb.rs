//! A search for a capacity, on standard error: a line a step.

use crate::leftovers::mentions;
use crate::output::{Voice, note};
use pubmark_model::capacity::{CapacityStep, LoadAxis, StepOutcome};
use pubmark_model::cell::Cell;
use pubmark_model::record::RunRecord;
use pubmark_report::text::{clean, count, time};
use pubmark_study::climb::ClimbObserver;
use pubmark_study::conduct::{Observer, StudyStart};
use pubmark_study::live::News;

/// Longest reason that is shown, characters.
const WHY_CHARS: usize = 200;

/// Shows a search as it goes by.
pub struct ClimbDisplay {
    voice: Voice,
    over: LoadAxis,
    /// Whether several cells are searched, so that each step says which.
    several: bool,
    steps: usize,
}

impl ClimbDisplay {
    /// A display of a search over this, or of several.
    pub fn new(voice: Voice, over: LoadAxis, several: bool) -> ClimbDisplay {
        ClimbDisplay { voice, over, several, steps: 0 }
    }
}

impl Observer for ClimbDisplay {
    fn begin(&mut self, course: &StudyStart<'_>) {
        self.steps = course.records.len();
        mentions().iter().for_each(|line| self.voice.note(line));
        if self.steps > 0 {
            self.voice.note(&format!("going on after {} steps", self.steps));
        }
    }

    fn run_begins(&mut self, _: &Cell, _: u32, _: usize) {}
    fn news(&mut self, news: News) {
        if let News::Left(line) = &news {
            self.voice.note(line);
        }
    }

    fn run_ends(&mut self, record: &RunRecord) {
        if self.voice.verbose && !self.voice.quiet {
            for finding in &record.verdict.reasons {
                note(&format!("    {}: {}", finding.reason, finding.evidence));
            }
        }
    }
}

impl ClimbObserver for ClimbDisplay {
    fn step(&mut self, cell: &Cell, step: &CapacityStep) {
        self.steps += 1;
        if self.voice.quiet {
            return;
        }
        let load = match self.over {
            LoadAxis::Rate => format!("{}/s", count(step.load)),
            LoadAxis::Memory => format!("{} MB", count(LoadAxis::Memory.amount(step.load) / 1e6)),
            other => format!("{} {}", other.amount(step.load), other.word()),
        };
        let p99 = step.p99_ns.map_or(String::new(), |ns| format!(", p99 {}", time(ns as f64)));
        let full = if step.confirms { " at full length" } else { "" };
        let why = step.unmet.first().or(step.evidence.as_ref()).map_or("", String::as_str);
        let said = match step.outcome {
            StepOutcome::Held => "held".to_owned(),
            StepOutcome::Failed => format!("failed: {}", clean(why, WHY_CHARS)),
            outcome => {
                let again = if step.counts { "" } else { ", to be made again" };
                format!("{outcome}{again}: {}", clean(why, WHY_CHARS))
            }
        };
        let of = if self.several { format!("{}: ", clean(&cell.label(), WHY_CHARS)) } else { String::new() };
        note(&format!("[{}] {of}{load}{full}: {}/s delivered{p99}: {said}", self.steps, count(step.delivered_per_s)));
    }
}
