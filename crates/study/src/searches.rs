//! Capacity searches that follow the runs of a study: for the capacities that it asks for, and for the headroom of its
//! given loads.
//!
//! Each covers one part of the study, and has its own results folder within the study's: its steps are not counted as
//! runs of the cells and are in none of their figures.

use crate::capacity::{CapacityRequest, Search};
use crate::plan::StudyPlan;
use crate::strategy::Strategy;
use pubmark_model::capacity::{CAPACITY, CapacityGoal, HEADROOM, HEADROOM_MOST, LoadAxis};
use pubmark_model::cell::Cell;
use pubmark_model::diagnostic::Diagnostic;
use pubmark_model::objective::Objective;
use pubmark_model::study::Study;
use pubmark_model::units::{Ns, SECOND};
use serde_json::Value;
use std::path::PathBuf;

/// Run keys that the search does not inherit: it sets them itself, or has none.
const OF_RUNS: [&str; 6] = ["duration", "count", "warmup_max", "repeats", "stop", "headroom"];

/// Windows of a search's steps, and time limit for the search of a cell.
struct Times {
    step_ns: Ns,
    full_ns: Ns,
    budget_ns: Ns,
}

/// Times of a headroom search. Steps are as short as a 99th percentile allows; they are longer if messages are few.
const OF_HEADROOM: Times = Times { step_ns: 2 * SECOND, full_ns: 2 * SECOND, budget_ns: 60 * SECOND };
/// Default time limit for the capacity search of a cell.
pub const CAPACITY_USUAL: Ns = 180 * SECOND;
/// Times that `pubmark capacity` uses.
const OF_CAPACITY: Times = Times { step_ns: 4 * SECOND, full_ns: 10 * SECOND, budget_ns: CAPACITY_USUAL };
/// Target width of a headroom search's interval, as a fraction.
const NEAR: f64 = 0.1;

/// Purpose of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchKind {
    /// Find the capacity of each cell.
    Capacity,
    /// Find the headroom of the given loads.
    Headroom,
}

/// A search that follows the runs of a study.
pub struct FollowingSearch {
    kind: SearchKind,
    part: Option<String>,
    /// Results folder within the study's.
    folder: PathBuf,
    study: Study,
    goal: CapacityGoal,
    enough_each_per_s: Option<f64>,
    /// Default time limit for the search of a cell.
    usual_ns: Ns,
    cells: usize,
}

/// Returns all searches that a study asks for: its capacities first, each part by itself.
///
/// # Errors
/// If a search is impossible: all reasons are known before the first run.
pub fn following(plan: &StudyPlan) -> Result<Vec<FollowingSearch>, Vec<Diagnostic>> {
    let study = plan.study();
    let mut all = Vec::new();
    if let Some((_, asked)) = study.asked_capacity() {
        for part in study.chosen_parts() {
            if asked.parts.is_empty() || part.as_ref().is_some_and(|part| asked.parts.contains(part)) {
                all.extend(FollowingSearch::of(plan, part, SearchKind::Capacity)?);
            }
        }
    }
    if study.headroom() {
        for part in study.chosen_parts() {
            all.extend(FollowingSearch::of(plan, part, SearchKind::Headroom)?);
        }
    }
    Ok(all)
}

impl FollowingSearch {
    /// Returns `None` if a part has no cell that is measured, or none with a load.
    fn of(
        plan: &StudyPlan,
        part: Option<String>,
        kind: SearchKind,
    ) -> Result<Option<FollowingSearch>, Vec<Diagnostic>> {
        let study = plan.study();
        let (name, word) = match kind {
            SearchKind::Capacity => (CAPACITY, "[capacity]"),
            SearchKind::Headroom => (HEADROOM, "headroom"),
        };
        let wrong = |text: String| vec![Diagnostic::whole(format!("{word}: {text}"))];
        let is_of =
            |cell: &&Cell| part.as_ref().is_none_or(|part| cell.axes.get("part").is_some_and(|own| own == part));
        let played = || plan.cells().iter().filter(|cell| cell.skipped.is_none()).filter(is_of);
        if played().next().is_none() {
            return Ok(None);
        }
        // Capacities during faults are not searched, only cells without a fault.
        let calm = |cell: &&Cell| cell.faults.is_empty() && cell.link.is_none_or(|link| link.mttf_ns.is_none());
        let with_faults = played().count();
        let played = || played().filter(calm);
        let has_faults = played().count() < with_faults;
        if has_faults && played().next().is_none() {
            let way = match (kind, &part) {
                (SearchKind::Headroom, None) => "set headroom = false".into(),
                (SearchKind::Headroom, Some(part)) => format!("set headroom = false, or leave part {part} out"),
                (SearchKind::Capacity, _) => "name the other `parts`, or leave `objective` out".into(),
            };
            return Err(wrong(format!(
                "what holds while parts fail is not searched, and all cells have faults; {way}"
            )));
        }
        let mut goal = match (kind, &study.capacity) {
            (SearchKind::Capacity, Some(goal)) => {
                let over = study.searched_over(part.as_deref()).unwrap_or(goal.over);
                CapacityGoal { over, asked: None, ..goal.clone() }
            }
            (_, goal) => {
                let until = goal.as_ref().map_or_else(Objective::usual, |goal| goal.until.clone());
                CapacityGoal { until, over: LoadAxis::Rate, flow: None, within: NEAR, start: 0.0, asked: None }
            }
        };
        if goal.until.is_of_fault() {
            return Err(wrong(format!(
                "`{}` is about a fault, and only cells without a fault are searched after the runs: use `pubmark \
                 capacity STUDY`",
                goal.until
            )));
        }
        let over = goal.over;
        let replays = |cell: &Cell| goal.workload(cell).rate.trace().is_some();
        if over == LoadAxis::Rate && played().any(replays) {
            return Err(wrong("a trace has no rate that a search could raise: leave it out".into()));
        }
        let lowest = played().filter_map(|cell| goal.load_of(cell)).reduce(f64::min);
        let each = played().filter_map(|cell| cell.workload.rate.profile().map(|profile| profile.fastest_per_s()));
        let enough_each_per_s;
        (goal.start, enough_each_per_s) = match (kind, study.asked_capacity()) {
            (SearchKind::Capacity, Some((goal, asked))) => {
                (asked.start.map(|start| over.amount(start)).or(lowest).unwrap_or(goal.start), None)
            }
            _ => match (lowest, each.reduce(f64::max)) {
                (Some(lowest), Some(highest)) => (lowest, Some(HEADROOM_MOST * highest)),
                _ => return Ok(None),
            },
        };
        let mut own = study.of_part(part.as_deref());
        if has_faults {
            let searched = |axis: &str, value: &Value| played().any(|cell| cell.axes.get(axis) == Some(value));
            let fails = |name: &str| ["fault", "mttf"].contains(&name);
            own.axes
                .iter_mut()
                .filter(|axis| fails(&axis.name))
                .for_each(|axis| axis.values.retain(|value| searched(&axis.name, value)));
        }
        let key = goal.key();
        own.lift(&OF_RUNS);
        own.lift(&[&key]);
        let is_own = |name: &str| name == key || OF_RUNS.contains(&name);
        own.axes.retain(|axis| !is_own(&axis.name));
        own.skips.retain(|skip| !skip.conditions.iter().any(|(axis, _)| is_own(axis)));
        own.settings.set("repeats", "1").map_err(|error| wrong(error.to_string()))?;
        own.claims.clear();
        (own.ab, own.reference, own.questions) = (None, None, None);
        let of = part.as_ref().map_or_else(|| study.title.clone(), |part| format!("{}: {part}", study.title));
        (own.title, own.question) = match kind {
            SearchKind::Capacity => (format!("Capacity of {of}"), format!("How far does `{}` hold?", goal.until)),
            SearchKind::Headroom => {
                (format!("Headroom of {of}"), format!("How many times the given load does `{}` hold?", goal.until))
            }
        };
        own.capacity = Some(goal.clone());
        let mut folder = PathBuf::from(name);
        // A study with one part needs no folder by part.
        if let Some(part) = part.as_ref().filter(|_| study.chosen_parts().len() > 1) {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
            if part.starts_with('.') || !part.chars().all(is_plain) {
                return Err(wrong(format!("no folder can have the name of the part `{part}`")));
            }
            folder.push(part);
        }
        let usual_ns = match (kind, study.asked_capacity()) {
            (SearchKind::Capacity, Some((_, asked))) => asked.budget_ns.unwrap_or(OF_CAPACITY.budget_ns),
            _ => OF_HEADROOM.budget_ns,
        };
        let mut search =
            FollowingSearch { kind, part, folder, study: own, goal, enough_each_per_s, usual_ns, cells: 0 };
        let request = search.request(None, None);
        let planned = Search::new(&request, &search.goal)?;
        planned.first_steps()?;
        search.cells = planned.rows().len();
        Ok(Some(search))
    }

    /// Returns the purpose of the search.
    pub fn kind(&self) -> SearchKind {
        self.kind
    }

    /// Returns the part of the study that it searches; `None` if the study has no parts.
    pub fn part(&self) -> Option<&str> {
        self.part.as_deref()
    }

    /// Returns its results folder, within that of the study.
    pub fn folder(&self) -> &std::path::Path {
        &self.folder
    }

    /// Returns the capacity goal.
    pub fn goal(&self) -> &CapacityGoal {
        &self.goal
    }

    /// Returns the number of cells that it searches, each by itself.
    pub fn cells(&self) -> usize {
        self.cells
    }

    /// Returns the default time limit for the search of a cell.
    pub fn usual_ns(&self) -> Ns {
        self.usual_ns
    }

    fn times(&self) -> &'static Times {
        match self.kind {
            SearchKind::Capacity => &OF_CAPACITY,
            SearchKind::Headroom => &OF_HEADROOM,
        }
    }

    /// Returns the request, with the time limit of each cell and the instant at which the whole search ends.
    pub fn request(&self, budget_ns: Option<Ns>, ends_ns: Option<Ns>) -> CapacityRequest<'_> {
        let times = self.times();
        CapacityRequest {
            study: &self.study,
            step_ns: times.step_ns,
            full_ns: times.full_ns,
            budget_ns: budget_ns.unwrap_or(self.usual_ns),
            ends_ns,
            enough_each_per_s: self.enough_each_per_s,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry;
    use pubmark_model::study::ReadOptions;

    fn searched(more: &str) -> Result<Vec<FollowingSearch>, String> {
        let text = format!(
            "title = \"t\"\n[workload]\nduration = \"8s\"\nrate = 100\n[axes]\nsystem = [\"mosquitto\", \"nats\"]\n{more}"
        );
        let study = Study::parse("t", &text, &registry::built_in, &ReadOptions::default())
            .map_err(|error| error.to_string())?;
        let plan = StudyPlan::new(study).map_err(|errors| format!("{errors:?}"))?;
        following(&plan).map_err(|errors| errors[0].message.clone())
    }

    #[test]
    fn cells_without_a_fault_are_searched_beside_others_that_have_one() {
        let faults = "fault = [\"none\", \"stop server at 2s for 1s\"]\npayload = [64, 128]\n";
        for (search, kind) in [
            ("[run]\nheadroom = true\n", SearchKind::Headroom),
            ("[capacity]\nobjective = \"p99 < 5ms\"\n", SearchKind::Capacity),
        ] {
            let found = searched(&format!("{faults}{search}")).unwrap();
            assert_eq!((found.len(), found[0].kind(), found[0].cells()), (1, kind, 4), "two systems, two payloads");
            let plan = StudyPlan::new(found[0].study.clone()).unwrap();
            assert!(plan.cells().iter().all(|cell| cell.faults.is_empty()));
            let refused = searched(&format!("fault = \"stop server at 2s for 1s\"\n{search}")).err().unwrap();
            assert!(refused.contains("all cells have faults"), "{refused}");
        }
    }

    #[test]
    fn a_part_is_searched_over_the_load_that_it_sets() {
        let found = searched(
            "[parts.many]\npairs = 5\n[parts.wide]\npattern = \"fan-out\"\npublishers = 1\nsubscribers = 7\n\
             [parts.other]\npayload = 64\n[capacity]\nobjective = \"p99 < 5ms\"\nover = [\"pairs\", \"subscribers\"]\n",
        )
        .unwrap();
        let over: Vec<(&str, LoadAxis, f64)> =
            found.iter().map(|search| (search.part().unwrap(), search.goal.over, search.goal.start)).collect();
        let wanted =
            [("many", LoadAxis::Pairs, 5.0), ("wide", LoadAxis::Subscribers, 7.0), ("other", LoadAxis::Pairs, 1.0)];
        assert_eq!(over, wanted);
        let wrong = searched("[capacity]\nobjective = \"p99 < 5ms\"\nover = [\"pairs\", \"pears\"]\n").err().unwrap();
        assert!(wrong.contains("pears"), "{wrong}");
    }
}
