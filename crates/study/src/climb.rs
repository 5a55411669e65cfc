//! The search for a capacity: which run comes next is for the records of those
//! before it to say.

use crate::conduct::{Conduct, ConductError, Conductor, Ending, Observer, StudyStart};
use crate::plan::StudyPlan;
use pubmark_host::clock;
use pubmark_host::lock::Lock;
use pubmark_model::capacity::{CONFIRMING, CapacityClimb, CapacityGoal, CapacityStep};
use pubmark_model::cell::Cell;
use pubmark_model::diagnostic::Diagnostic;
use pubmark_model::plan::Place;
use pubmark_model::setting::as_typed;
use pubmark_model::study::{Axis, Study, StudyPart};
use pubmark_model::units::{MILLISECOND, Ns, SECOND, format_time};
use serde_json::Value;
use std::collections::HashSet;

/// The part of the steps.
const SEARCHING: &str = "search";
/// What a run takes beside warm-up and window, before one has been made.
const OVERHEAD_GUESS: Ns = 2 * SECOND;
/// Runs of full length that fail before the search gives up on being confirmed.
const CONFIRMING_MAX: usize = 3;

/// What a search is to do.
pub struct CapacityRequest<'a> {
    /// The study of what is measured: one cell, whose goal is set, without the key
    /// that is turned up and without `duration`.
    pub study: &'a Study,
    /// The window of a step.
    pub step_ns: Ns,
    /// The window of a run of full length.
    pub full_ns: Ns,
    /// How long the search may take.
    pub budget_ns: Ns,
}

/// Watches a search go by, on the coordinator's thread: nothing here may wait.
pub trait ClimbObserver: Observer {
    /// A step has ended and its record is on the disk.
    fn step(&mut self, step: &CapacityStep);
}

/// A search that is over.
pub struct ClimbEnding {
    /// How its runs went.
    pub ending: Ending,
    /// What is known.
    pub climb: CapacityClimb,
    /// Why it was given up, if it was.
    pub given_up: Option<String>,
    /// Keeps the results folder for this process.
    pub lock: Lock,
}

/// Cells that a search has come to, as parts of a study.
struct Course<'a> {
    study: &'a Study,
    goal: &'a CapacityGoal,
    publishers: u32,
}

/// A step to be made.
struct Ask {
    part: String,
    value: Value,
    window_ns: Ns,
}

impl Course<'_> {
    fn ask(&self, climb: &CapacityClimb, load: f64, usual_ns: Ns, confirms: bool) -> Result<Ask, Diagnostic> {
        let window_ns = climb.window_ns(load, usual_ns);
        let part = match (confirms, window_ns == usual_ns) {
            (true, _) => CONFIRMING.to_owned(),
            (false, true) => SEARCHING.to_owned(),
            // Where messages are few, windows are longer.
            (false, false) => format!("{SEARCHING}-{}", format_time(window_ns)),
        };
        let key = self.goal.over.key();
        let text = self.goal.over.value(load, self.publishers);
        let read = pubmark_model::setting::key(key).map(|key| key.read(&text));
        let value = match read {
            Some(Ok(value)) => value,
            _ => return Err(Diagnostic::whole(format!("{key} = {text} cannot be"))),
        };
        Ok(Ask { part, value, window_ns })
    }

    /// The study with one cell more, and the cell.
    fn with(&self, parts: &[StudyPart], ask: &Ask) -> Result<(StudyPlan, Vec<StudyPart>, Cell), Vec<Diagnostic>> {
        let mut parts = parts.to_vec();
        let key = self.goal.over.key();
        let axis = |name: &str, value: Value| Axis { name: name.to_owned(), values: vec![value] };
        match parts.iter_mut().find(|part| part.name == ask.part) {
            Some(part) => {
                let values = part.axes.iter_mut().filter(|axis| axis.name == key);
                values.filter(|axis| !axis.values.contains(&ask.value)).for_each(|axis| {
                    axis.values.push(ask.value.clone());
                    axis.values.sort_by(|one, other| number(one).total_cmp(&number(other)));
                });
            }
            None => parts.push(StudyPart {
                name: ask.part.clone(),
                axes: vec![axis("duration", format_time(ask.window_ns).into()), axis(key, ask.value.clone())],
            }),
        }
        let mut study = self.study.clone();
        study
            .axes
            .push(Axis { name: "part".into(), values: parts.iter().map(|part| part.name.as_str().into()).collect() });
        study.parts.clone_from(&parts);
        let plan = StudyPlan::new(study)?;
        let here = |cell: &&Cell| cell.axes["part"] == ask.part.as_str() && cell.axes.get(key) == Some(&ask.value);
        let cell = plan.cells().iter().find(here).cloned();
        let cell = cell.ok_or_else(|| vec![Diagnostic::whole("a step has no cell")])?;
        Ok((plan, parts, cell))
    }
}

/// The number in a value of an axis, such as the 5 of `burst:5`.
fn number(value: &Value) -> f64 {
    as_typed(value).trim_start_matches("burst:").parse().unwrap_or_default()
}

/// The plan of a search's first step: what can be said of it before it begins.
///
/// # Errors
/// Where its cell cannot be.
pub fn first(request: &CapacityRequest<'_>, goal: &CapacityGoal) -> Result<StudyPlan, Vec<Diagnostic>> {
    let course = course(request, goal)?;
    let climb = CapacityClimb::new(goal.clone());
    let ask = course.ask(&climb, goal.start, request.step_ns, false).map_err(|error| vec![error])?;
    course.with(&[], &ask).map(|(plan, ..)| plan)
}

fn course<'a>(request: &CapacityRequest<'a>, goal: &'a CapacityGoal) -> Result<Course<'a>, Vec<Diagnostic>> {
    let cells = StudyPlan::new(request.study.clone())?;
    let publishers = cells.cells().first().map_or(1, |cell| cell.workload.publishers);
    Ok(Course { study: request.study, goal, publishers })
}

/// Makes steps until the capacity is known, or the time is over; then a run of full
/// length at the low end.
///
/// # Errors
/// Where the study cannot be planned, or the results folder cannot be used.
pub fn climb(
    request: &CapacityRequest<'_>,
    goal: &CapacityGoal,
    how: &Conduct<'_>,
    observer: &mut dyn ClimbObserver,
) -> Result<ClimbEnding, ConductError> {
    let course = course(request, goal).map_err(ConductError::Plan)?;
    let mut climb = CapacityClimb::new(goal.clone());
    let plan = first(request, goal).map_err(ConductError::Plan)?;
    let begun = clock::now();
    let (mut conductor, records) = Conductor::open(&plan, how)?;
    observer.begin(&StudyStart {
        title: &plan.study().title,
        cells: &[],
        order: &[],
        done: &HashSet::new(),
        records: &records,
    });
    let mut given_up = None;
    let mut parts: Vec<StudyPart> = Vec::new();
    let mut made: Vec<Cell> = Vec::new();
    let (mut overhead_ns, mut confirming) = (OVERHEAD_GUESS, 0);
    loop {
        let spent_ns = clock::now().saturating_sub(begun);
        let fits = |windows: &[Ns]| {
            let all: Ns = windows.iter().map(|window_ns| window_ns + overhead_ns).sum();
            spent_ns + all <= request.budget_ns
        };
        if let Some(why) = climb.hopeless() {
            given_up = Some(why);
            break;
        }
        let answer = climb.answer();
        let step_ns = climb.window_ns(climb.next(), request.step_ns);
        // A run of full length has to be left time for, once there is something to confirm.
        let searches = !climb.settled()
            && match answer.estimate {
                Some(_) => fits(&[step_ns, request.full_ns]),
                None => fits(&[step_ns]) || climb.steps().is_empty(),
            };
        let confirms = !searches
            && answer.estimate.is_some()
            && !answer.confirmed
            && confirming < CONFIRMING_MAX
            && fits(&[request.full_ns]);
        let ask = match (searches, confirms) {
            (true, _) => course.ask(&climb, climb.next(), request.step_ns, false),
            (false, true) => course.ask(&climb, answer.lo.unwrap_or_default(), request.full_ns, true),
            (false, false) => break,
        };
        let ask = ask.map_err(|error| ConductError::Plan(vec![error]))?;
        let (plan, with, cell) = course.with(&parts, &ask).map_err(ConductError::Plan)?;
        let repeat = made.iter().filter(|other| other.axes == cell.axes).count() as u32 + 1;
        let place = Place { repeat, position: made.len() as u64 };
        let from_ns = clock::now();
        let Some(record) = conductor.run(&cell, place, Some(plan.study()), observer)? else { break };
        let took_ns = clock::now().saturating_sub(from_ns);
        overhead_ns = overhead(overhead_ns, took_ns.saturating_sub(ask.window_ns), made.is_empty());
        parts = with;
        made.push(cell);
        confirming += usize::from(confirms);
        if let Some(step) = climb.note(&record) {
            observer.step(step);
        }
    }
    let (ending, lock) = conductor.close()?;
    Ok(ClimbEnding { ending, climb, given_up, lock })
}

/// What a run takes beside its window: the last ones count most, and none is
/// forgotten at once.
fn overhead(known_ns: Ns, found_ns: Ns, first: bool) -> Ns {
    match first {
        true => found_ns,
        false => found_ns.max(known_ns * 3 / 4).max(100 * MILLISECOND),
    }
}
