//! Checks the runs of a cell against bounds such as `p99 < 5ms`.

use crate::figures::{RESOLUTION, allows};
use pubmark_model::figure::Figure;
use pubmark_model::objective::{Objective, ObjectiveTerm, Relation};
use pubmark_model::record::{FigureGroup, Reason, RunRecord};
use pubmark_stats::{PairedBound, PairedDecision, PairedOutcome, PairedReading, PairedTest, Runs, typical_run};

/// Result of checking runs against a bound.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum BoundVerdict {
    /// The bound holds.
    Kept,
    /// The bound is broken, with the value found.
    Broken(String),
    /// Neither is shown: how far the figure is sure.
    Open(String),
    /// Nothing can be said, and why.
    Unknown(String),
}

/// A bound, and the runs of a cell in the order of their blocks.
#[derive(Clone, Copy)]
pub(crate) struct BoundedRuns<'a> {
    pub term: &'a ObjectiveTerm,
    pub runs: &'a [&'a RunRecord],
}

impl BoundedRuns<'_> {
    fn values(&self) -> Vec<f64> {
        self.runs.iter().filter(|run| self.counts(run)).filter_map(|run| self.term.value(run)).collect()
    }

    fn counts(&self, run: &RunRecord) -> bool {
        speaks_of(self.term.figure(), run)
    }

    /// Returns the values of all runs, those included that others disturbed, each as bad as it can have been. Others
    /// only make latencies longer, rates lower and losses more, so a bound that all of these meet would hold without
    /// them. `None` if no run was disturbed, or if the figure or the bound is of another kind.
    fn at_worst(&self) -> Option<Vec<f64>> {
        let (term, figure) = (self.term, self.term.figure());
        let limits = match term.relation() {
            Relation::Below | Relation::AtMost => !term.higher_is_better(),
            Relation::Above | Relation::AtLeast => term.higher_is_better(),
            Relation::Equal => term.bound() == 0.0 && !term.higher_is_better(),
        };
        let is_known = match figure.group() {
            FigureGroup::LatencyP50 | FigureGroup::LatencyP99 => figure.from_due().is_some(),
            FigureGroup::Counts | FigureGroup::Rates => true,
            FigureGroup::Cost => false,
        };
        let only_disturbed = |run: &RunRecord| {
            let mut against = run.verdict.reasons.iter().filter(|found| found.figures.contains(&figure.group()));
            run.error.is_none()
                && against.all(|found| matches!(found.reason, Reason::NoisyMachine | Reason::GeneratorSaturated))
        };
        let runs: Vec<&RunRecord> =
            self.runs.iter().copied().filter(|run| self.counts(run) || only_disturbed(run)).collect();
        let value = |run: &&RunRecord| match figure.from_due() {
            Some(from_due) if !self.counts(run) => from_due.value(run),
            _ => term.value(run),
        };
        let disturbed = runs.iter().any(|run| !self.counts(run));
        (limits && is_known && disturbed).then(|| runs.iter().filter_map(value).collect())
    }

    /// True if every run has to meet the bound: a count is a fact of each run.
    fn of_each_run(&self) -> bool {
        self.term.is_fact() || self.term.relation() == Relation::Equal
    }

    /// The first of these that breaks a bound of each run.
    fn first_broken(&self, values: &[f64]) -> Option<String> {
        let broken: Vec<&f64> = values.iter().filter(|value| !self.term.holds(**value)).collect();
        let first = broken.first()?;
        Some(format!("{} in {} of {} runs", self.term.words(**first), broken.len(), values.len()))
    }

    /// Returns the result of a single look.
    pub fn once(&self) -> BoundVerdict {
        let found = self.once_of(&self.values());
        match (&found, self.at_worst()) {
            (BoundVerdict::Open(_) | BoundVerdict::Unknown(_), Some(worst))
                if self.once_of(&worst) == BoundVerdict::Kept =>
            {
                BoundVerdict::Kept
            }
            _ => found,
        }
    }

    fn once_of(&self, values: &[f64]) -> BoundVerdict {
        if let Some(unknown) = self.unknown(values) {
            return unknown;
        }
        if self.of_each_run() {
            return self.first_broken(values).map_or(BoundVerdict::Kept, BoundVerdict::Broken);
        }
        let step = values.iter().fold(0.0, |most: f64, value| most.max(value.abs() * RESOLUTION));
        let Some(typical) = typical_run(Runs { values, step }) else {
            return BoundVerdict::Unknown("its values are not numbers".into());
        };
        let Some(interval) = typical.interval else {
            return BoundVerdict::Unknown(format!(
                "one reliable run ({}): its noise is not known",
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

    fn unknown(&self, values: &[f64]) -> Option<BoundVerdict> {
        let why = match values {
            [_, ..] => return None,
            [] if self.runs.is_empty() => "no run yet",
            [] if self.runs.iter().any(|run| self.counts(run)) => "not measured",
            [] => "unreliable in all runs",
        };
        Some(BoundVerdict::Unknown(why.into()))
    }

    /// Returns the result of repeated looks, and the deciding look if there was one.
    pub fn at_looks(&self, test: &PairedTest) -> (BoundVerdict, Option<PairedDecision>) {
        let found = self.at_looks_of(&self.values(), test);
        match (&found.0, self.at_worst()) {
            (BoundVerdict::Open(_) | BoundVerdict::Unknown(_), Some(worst)) => {
                let at_worst = self.at_looks_of(&worst, test);
                if at_worst.0 == BoundVerdict::Kept { at_worst } else { found }
            }
            _ => found,
        }
    }

    fn at_looks_of(&self, values: &[f64], test: &PairedTest) -> (BoundVerdict, Option<PairedDecision>) {
        if let Some(unknown) = self.unknown(values) {
            return (unknown, None);
        }
        if self.of_each_run() {
            let enough = values.len() > 1;
            let kept = if enough { BoundVerdict::Kept } else { BoundVerdict::Open("one run".into()) };
            return (self.first_broken(values).map_or(kept, BoundVerdict::Broken), None);
        }
        // The bound itself is the other arm.
        let bound = self.term.bound();
        let reading =
            |value: &f64| PairedReading { a: bound, b: *value, step_a: 0.0, step_b: value.abs() * RESOLUTION };
        let readings: Vec<PairedReading> = values.iter().map(reading).collect();
        let rise = matches!(self.term.relation(), Relation::Below | Relation::AtMost);
        let Some(found) = test.decide(&readings, PairedBound { rise, by: 0.0, relative: bound > 0.0 }) else {
            return (BoundVerdict::Unknown("its values are not numbers".into()), None);
        };
        let told = self.term.words(found.b);
        let verdict = match found.outcome {
            PairedOutcome::Within => BoundVerdict::Kept,
            PairedOutcome::Beyond => BoundVerdict::Broken(told),
            PairedOutcome::Open => BoundVerdict::Open(told),
        };
        (verdict, Some(found))
    }
}

/// Result of checking the runs of a cell against an objective.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Kept {
    /// True if all bounds hold; `None` if neither is shown.
    pub outcome: Option<bool>,
    /// About how many further runs would tell; none where nobody knows.
    pub more: Option<u32>,
}

impl Kept {
    /// Checks the runs, once or, with a test, at its looks.
    pub fn of(objective: &Objective, runs: &[&RunRecord], test: Option<&PairedTest>) -> Kept {
        let (mut outcome, mut more) = (Some(true), Some(1));
        for term in objective.terms() {
            let bounded = BoundedRuns { term, runs };
            let (verdict, look) = match test {
                Some(test) => bounded.at_looks(test),
                None => (bounded.once(), None),
            };
            match verdict {
                BoundVerdict::Kept => {}
                // One broken bound is enough.
                BoundVerdict::Broken(_) => return Kept { outcome: Some(false), more: None },
                BoundVerdict::Open(_) | BoundVerdict::Unknown(_) => {
                    outcome = None;
                    let of_look = look.and_then(|look| look.more).map(|runs| u32::try_from(runs).unwrap_or(u32::MAX));
                    more = more.zip(of_look).map(|(one, other)| one.max(other));
                }
            }
        }
        Kept { outcome, more: more.filter(|_| outcome.is_none()) }
    }
}

/// True if a run can be used for a figure. Lost, duplicated or damaged messages make the figures of
/// a run unreliable, but counts of these messages are exactly about them.
pub(crate) fn speaks_of(figure: Figure, run: &RunRecord) -> bool {
    let group = figure.group();
    let of_delivery =
        |reason| matches!(reason, Reason::MessagesLost | Reason::Duplicates | Reason::Reordered | Reason::Corrupted);
    let mut against = run.verdict.reasons.iter().filter(|finding| finding.figures.contains(&group));
    let only_delivery = figure.is_fact() && against.all(|finding| of_delivery(finding.reason));
    allows(run, group) || run.error.is_none() && !run.verdict.reasons.is_empty() && only_delivery
}
