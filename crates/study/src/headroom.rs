//! How far the given loads of a study lie from what holds: a short search for each of
//! its systems and workloads, after the measured runs and in a folder of its own.

use crate::climb::CapacityRequest;
use crate::plan::StudyPlan;
use pubmark_model::capacity::{CapacityGoal, HEADROOM_MOST, LoadAxis};
use pubmark_model::diagnostic::Diagnostic;
use pubmark_model::objective::Objective;
use pubmark_model::study::Study;
use pubmark_model::units::{Ns, SECOND};
use pubmark_model::workload::Rate;

/// The window of a step; longer where messages are few.
const STEP: Ns = 2 * SECOND;
/// How long the search of one system under one workload may take.
const BUDGET: Ns = 60 * SECOND;
/// How near to each other the ends of an answer are, as a fraction.
const NEAR: f64 = 0.1;
/// Keys of the runs that are not the search's: it sets them itself, or has none.
const OF_RUNS: [&str; 7] = ["rate", "duration", "count", "warmup_max", "repeats", "until", "headroom"];

/// The search for the headroom of a study.
pub struct HeadroomSearch {
    study: Study,
    goal: CapacityGoal,
    enough_each_per_s: f64,
}

impl HeadroomSearch {
    /// That of a study which asks for it and gives loads; nothing of another.
    ///
    /// # Errors
    /// Where the study has parts or faults, which no search has.
    pub fn of(plan: &StudyPlan) -> Result<Option<HeadroomSearch>, Vec<Diagnostic>> {
        let study = plan.study();
        let played = || plan.cells().iter().filter(|cell| cell.skipped.is_none());
        let loads = played().filter_map(|cell| LoadAxis::Rate.load(&cell.workload));
        let each = played().filter_map(|cell| match cell.workload.rate {
            Rate::Due(profile) => Some(profile.fastest_per_s()),
            Rate::Max => None,
        });
        let (Some(start), Some(highest)) = (loads.reduce(f64::min), each.reduce(f64::max)) else { return Ok(None) };
        if !study.headroom() {
            return Ok(None);
        }
        let wrong = |text: String| vec![Diagnostic::whole(format!("headroom: {text}"))];
        if played().any(|cell| !cell.faults.is_empty() || cell.link.is_some_and(|link| link.mttf_ns.is_some())) {
            return Err(wrong("what holds while parts fail is not searched; set headroom = false".into()));
        }
        let mut own = study.clone();
        own.without_parts().map_err(|parts| {
            wrong(format!("it is of one part: choose it with --only part=…, one of {}", parts.join(", ")))
        })?;
        own.lift(&OF_RUNS);
        own.axes.retain(|axis| !OF_RUNS.contains(&axis.name.as_str()));
        own.skips.retain(|skip| !skip.conditions.iter().any(|(axis, _)| OF_RUNS.contains(&axis.as_str())));
        own.settings.set("repeats", "1").map_err(|error| wrong(error.to_string()))?;
        own.claims.clear();
        (own.ab, own.reference) = (None, None);
        let until = study.capacity.as_ref().map_or_else(Objective::usual, |goal| goal.until.clone());
        let goal = CapacityGoal { until, over: LoadAxis::Rate, within: NEAR, start };
        own.title = format!("Headroom of {}", study.title);
        own.question = format!("How many times the given load does `{}` hold?", goal.until);
        own.capacity = Some(goal.clone());
        Ok(Some(HeadroomSearch { study: own, goal, enough_each_per_s: HEADROOM_MOST * highest }))
    }

    /// What is to be found.
    pub fn goal(&self) -> &CapacityGoal {
        &self.goal
    }

    /// What the search is to do.
    pub fn request(&self) -> CapacityRequest<'_> {
        CapacityRequest {
            study: &self.study,
            step_ns: STEP,
            full_ns: STEP,
            budget_ns: BUDGET,
            enough_each_per_s: Some(self.enough_each_per_s),
        }
    }
}
