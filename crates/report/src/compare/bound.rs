//! Bounds that a figure has to keep by itself, whatever it was before: `p99 < 5ms`.

use super::gate::GateResult;
use crate::figures::allows;
use crate::text::clean;
use pubmark_model::objective::{ObjectiveTerm, Relation};
use pubmark_model::record::{Reason, RunRecord};
use pubmark_stats::{PairedBound, PairedDecision, PairedOutcome, PairedReading, PairedTest, Runs, typical_run};

/// Longest name of a cell in a result, characters.
const LABEL_CHARS: usize = 120;
/// No figure is taken to be measured better, as a share of it.
const RESOLUTION: f64 = 1.0 / 1_024.0;

/// A bound that has to be kept.
#[derive(Clone, Debug, PartialEq)]
pub struct BoundGate {
    /// As typed, harmless.
    pub text: String,
    /// What has to hold.
    pub term: ObjectiveTerm,
}

/// What some runs say of a bound.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum BoundVerdict {
    /// It is kept.
    Kept,
    /// It is not: what was there instead.
    Broken(String),
    /// Neither is shown: how far the figure is sure.
    Open(String),
    /// Nothing can be said, and why.
    Unknown(String),
}

impl BoundGate {
    /// What has to hold, so as it was typed.
    pub fn new(term: ObjectiveTerm) -> BoundGate {
        BoundGate { text: clean(term.text(), LABEL_CHARS), term }
    }

    fn values(&self, runs: &[&RunRecord]) -> Vec<f64> {
        runs.iter().filter(|run| self.counts(run)).filter_map(|run| self.term.value(run)).collect()
    }

    /// Whether a run says anything of it. That messages were lost, doubled or damaged
    /// speaks against the figures of a run, and is the very thing that a bound of them is about.
    fn counts(&self, run: &RunRecord) -> bool {
        let group = self.term.group();
        let of_delivery = |reason| {
            matches!(reason, Reason::MessagesLost | Reason::Duplicates | Reason::Reordered | Reason::Corrupted)
        };
        let mut against = run.verdict.reasons.iter().filter(|finding| finding.figures.contains(&group));
        let only_delivery = self.term.counts() && against.all(|finding| of_delivery(finding.reason));
        allows(run, group) || run.error.is_none() && !run.verdict.reasons.is_empty() && only_delivery
    }

    /// Whether each run has to keep it: what is counted is a fact of each.
    fn of_each_run(&self) -> bool {
        self.term.counts() || self.term.relation() == Relation::Equal
    }

    /// The first of these that breaks a bound of each run.
    fn first_broken(&self, values: &[f64]) -> Option<String> {
        let broken: Vec<&f64> = values.iter().filter(|value| !self.term.holds(**value)).collect();
        let first = broken.first()?;
        Some(format!("{} in {} of {} runs", self.term.words(**first), broken.len(), values.len()))
    }

    /// What the runs of a cell say.
    pub(super) fn of_runs(&self, runs: &[&RunRecord]) -> BoundVerdict {
        let values = self.values(runs);
        if let Some(unknown) = self.unknown(runs, &values) {
            return unknown;
        }
        if self.of_each_run() {
            return self.first_broken(&values).map_or(BoundVerdict::Kept, BoundVerdict::Broken);
        }
        let step = values.iter().fold(0.0, |most: f64, value| most.max(value.abs() * RESOLUTION));
        let Some(typical) = typical_run(Runs { values: &values, step }) else {
            return BoundVerdict::Unknown("its values are no numbers".into());
        };
        let Some(interval) = typical.interval else {
            return BoundVerdict::Unknown(format!(
                "one run that counts ({}): no noise is known",
                self.term.words(typical.value)
            ));
        };
        let told = format!(
            "{} ({} … {})",
            self.term.words(typical.value),
            self.term.words(interval.lo),
            self.term.words(interval.hi)
        );
        match (self.term.holds(interval.lo), self.term.holds(interval.hi)) {
            (true, true) => BoundVerdict::Kept,
            (false, false) => BoundVerdict::Broken(told),
            _ => BoundVerdict::Open(told),
        }
    }

    fn unknown(&self, runs: &[&RunRecord], values: &[f64]) -> Option<BoundVerdict> {
        let why = match values {
            [_, ..] => return None,
            [] if runs.is_empty() => "no run yet",
            [] if runs.iter().any(|run| self.counts(run)) => "not measured",
            [] => "no run counts for it",
        };
        Some(BoundVerdict::Unknown(why.into()))
    }

    /// What they say where they are looked at again and again. Also the look, where
    /// there was one.
    pub(super) fn of_looks(&self, test: &PairedTest, runs: &[&RunRecord]) -> (BoundVerdict, Option<PairedDecision>) {
        let values = self.values(runs);
        if let Some(unknown) = self.unknown(runs, &values) {
            return (unknown, None);
        }
        if self.of_each_run() {
            let enough = values.len() > 1;
            let kept = if enough { BoundVerdict::Kept } else { BoundVerdict::Open("one run".into()) };
            return (self.first_broken(&values).map_or(kept, BoundVerdict::Broken), None);
        }
        // The bound itself is the other arm.
        let bound = self.term.bound();
        let reading =
            |value: &f64| PairedReading { a: bound, b: *value, step_a: 0.0, step_b: value.abs() * RESOLUTION };
        let readings: Vec<PairedReading> = values.iter().map(reading).collect();
        let rise = matches!(self.term.relation(), Relation::Below | Relation::AtMost);
        let Some(found) = test.decide(&readings, PairedBound { rise, by: 0.0, relative: bound > 0.0 }) else {
            return (BoundVerdict::Unknown("its values are no numbers".into()), None);
        };
        let told = self.term.words(found.b);
        let verdict = match found.outcome {
            PairedOutcome::Within => BoundVerdict::Kept,
            PairedOutcome::Beyond => BoundVerdict::Broken(told),
            PairedOutcome::Open => BoundVerdict::Open(told),
        };
        (verdict, Some(found))
    }

    /// What became of it, over cells by their names.
    pub(super) fn result(&self, cells: impl Iterator<Item = (String, BoundVerdict)>) -> GateResult {
        let mut result = GateResult::new(&self.text);
        for (label, verdict) in cells {
            result.comparisons += 1;
            let label = clean(&label, LABEL_CHARS);
            match verdict {
                BoundVerdict::Kept => {}
                BoundVerdict::Broken(what) => result.failed.push(format!("{label}: {what}")),
                BoundVerdict::Open(what) => result.too_noisy.push(format!("{label}: {what}")),
                BoundVerdict::Unknown(why) => result.undecided.push(format!("{label} ({why})")),
            }
        }
        result.settled()
    }

    /// What the runs of each cell of a report say of it.
    pub(super) fn over(&self, report: &crate::report::Report, chosen: impl Fn(usize) -> bool) -> GateResult {
        let runs_of = |cell: usize| -> Vec<&RunRecord> {
            let all = report.runs().iter().zip(report.cells_of_runs());
            all.filter(|(_, other)| **other == cell).map(|(run, _)| run).collect()
        };
        let cells = report.cells().iter().enumerate();
        let cells = cells.filter(|(index, result)| result.cell.skipped.is_none() && chosen(*index));
        self.result(cells.map(|(index, result)| (result.cell.label(), self.of_runs(&runs_of(index)))))
    }
}

/// What became of bounds that every cell of a report has to keep.
pub fn bounds(report: &crate::report::Report, bounds: &[BoundGate]) -> Vec<GateResult> {
    bounds.iter().map(|bound| bound.over(report, |_| true)).collect()
}
