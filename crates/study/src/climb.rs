//! The search for a capacity: which run comes next is for the records of those
//! before it to say.

use crate::conduct::{Conduct, ConductError, Conductor, Ending, Observer, begin_open};
use crate::plan::StudyPlan;
use crate::results::ResultsError;
use pubmark_host::clock;
use pubmark_host::lock::Lock;
use pubmark_model::capacity::{CONFIRMING, CapacityClimb, CapacityGoal, CapacityStep, StepOutcome};
use pubmark_model::cell::Cell;
use pubmark_model::diagnostic::Diagnostic;
use pubmark_model::plan::Place;
use pubmark_model::record::RunRecord;
use pubmark_model::setting::as_typed;
use pubmark_model::study::{Axis, Study, StudyPart};
use pubmark_model::units::{MILLISECOND, Ns, SECOND, format_time, parse_time};
use serde_json::{Map, Value};

/// The part of the steps.
const SEARCHING: &str = "search";
/// What a run takes beside warm-up and window, before one has been made.
const OVERHEAD_GUESS: Ns = 2 * SECOND;
/// A load is reached from here on, as a share of it: loads are typed with four digits.
const REACHED: f64 = 0.999;
/// Runs of full length that fail before the search gives up on being confirmed.
const CONFIRMING_MAX: usize = 3;

/// What a search is to do.
pub struct CapacityRequest<'a> {
    /// The study of what is measured, whose goal is set, without the key that is
    /// turned up and without `duration`. Each of its cells is searched by itself,
    /// a step of each in turn.
    pub study: &'a Study,
    /// The window of a step.
    pub step_ns: Ns,
    /// The window of a run of full length.
    pub full_ns: Ns,
    /// How long the search of a cell may take, of one that goes on from now.
    pub budget_ns: Ns,
    /// An instant of CLOCK_MONOTONIC, ns, at which all of it is over: no step is begun
    /// that does not fit before it.
    pub ends_ns: Option<Ns>,
    /// A rate of each publisher above which nothing needs to be known, messages a second.
    /// With it the search is a short one: no run of full length follows.
    pub enough_each_per_s: Option<f64>,
}

/// Watches a search go by, on the coordinator's thread: nothing here may wait.
pub trait ClimbObserver: Observer {
    /// A step of this cell's search has ended and its record is on the disk.
    fn step(&mut self, cell: &Cell, step: &CapacityStep);
}

/// A search that is over.
pub struct ClimbEnding {
    /// How its runs went.
    pub ending: Ending,
    /// Which cells were given up, and why.
    pub given_up: Vec<(Cell, String)>,
    /// Keeps the results folder for this process.
    pub lock: Lock,
}

/// Loads that searches have come to, as parts of a study.
struct Course<'a> {
    study: &'a Study,
    goal: &'a CapacityGoal,
}

/// The search of one cell.
struct Search {
    /// The cell as it was asked for, without a load.
    cell: Cell,
    climb: CapacityClimb,
    spent_ns: Ns,
    overhead_ns: Ns,
    /// Runs of full length so far.
    confirming: usize,
    over: bool,
}

/// A step to be made.
struct Ask {
    part: String,
    value: Value,
    window_ns: Ns,
}

impl Course<'_> {
    fn ask(&self, search: &Search, load: f64, usual_ns: Ns, confirms: bool) -> Result<Ask, Diagnostic> {
        let window_ns = search.climb.window_ns(load, usual_ns);
        let part = match (confirms, window_ns == usual_ns) {
            (true, _) => CONFIRMING.to_owned(),
            (false, true) => SEARCHING.to_owned(),
            // Where messages are few, windows are longer.
            (false, false) => format!("{SEARCHING}-{}", format_time(window_ns)),
        };
        let key = self.goal.over.key();
        let text = self.goal.over.value(load, search.cell.workload.publishers);
        let read = pubmark_model::setting::key(key).map(|key| key.read(&text));
        let value = match read {
            Some(Ok(value)) => value,
            _ => return Err(Diagnostic::whole(format!("{key} = {text} cannot be"))),
        };
        Ok(Ask { part, value, window_ns })
    }

    /// The parts with one load more.
    fn grown(&self, parts: &[StudyPart], ask: &Ask) -> Vec<StudyPart> {
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
        parts
    }

    /// What a record's step had asked; nothing where it is no step.
    fn asked(&self, record: &RunRecord) -> Option<Ask> {
        let axis = |name: &str| record.cell.get(name);
        let window_ns = parse_time(axis("duration")?.as_str()?).ok()?;
        Some(Ask { part: axis("part")?.as_str()?.to_owned(), value: axis(self.goal.over.key())?.clone(), window_ns })
    }

    /// The study with one load more, and the cell of it that is to be run.
    fn with(
        &self,
        parts: &[StudyPart],
        of: &Cell,
        ask: &Ask,
    ) -> Result<(StudyPlan, Vec<StudyPart>, Cell), Vec<Diagnostic>> {
        let parts = self.grown(parts, ask);
        let key = self.goal.over.key();
        let mut study = self.study.clone();
        study
            .axes
            .push(Axis { name: "part".into(), values: parts.iter().map(|part| part.name.as_str().into()).collect() });
        study.parts.clone_from(&parts);
        let plan = StudyPlan::new(study)?;
        let same = |cell: &Cell| of.axes.iter().all(|(name, value)| cell.axes.get(name) == Some(value));
        let here = |cell: &&Cell| {
            same(cell) && cell.axes["part"] == ask.part.as_str() && cell.axes.get(key) == Some(&ask.value)
        };
        let cell = plan.cells().iter().find(here).cloned();
        let cell = cell.ok_or_else(|| vec![Diagnostic::whole("a step has no cell")])?;
        Ok((plan, parts, cell))
    }
}

/// The number in a value of an axis, such as the 5 of `burst:5`.
fn number(value: &Value) -> f64 {
    as_typed(value).trim_start_matches("burst:").parse().unwrap_or_default()
}

impl Search {
    /// What is to be asked next; nothing where enough is known, or the time is over.
    fn next(&mut self, course: &Course<'_>, request: &CapacityRequest<'_>) -> Result<Option<Ask>, Diagnostic> {
        let fits = |windows: &[Ns]| {
            let all: Ns = windows.iter().map(|window_ns| window_ns + self.overhead_ns).sum();
            let is_over = request.ends_ns.is_some_and(|ends_ns| clock::now() + all > ends_ns);
            self.spent_ns + all <= request.budget_ns && !is_over
        };
        let climb = &self.climb;
        let answer = climb.answer();
        let publishers = f64::from(self.cell.workload.publishers);
        let enough = request.enough_each_per_s.map_or(f64::INFINITY, |each| each * publishers);
        let reached = climb
            .steps()
            .iter()
            .any(|step| step.counts && step.outcome == StepOutcome::Held && step.load >= enough * REACHED);
        let load = climb.next().min(enough);
        let step_ns = climb.window_ns(load, request.step_ns);
        // A run of full length has to be left time for, once there is something to confirm.
        let searches = !climb.settled()
            && !reached
            && match answer.estimate {
                Some(_) => fits(&[step_ns, request.full_ns]),
                None => fits(&[step_ns]) || climb.steps().is_empty() && request.ends_ns.is_none(),
            };
        let confirms = !searches
            && request.enough_each_per_s.is_none()
            && answer.estimate.is_some()
            && !answer.confirmed
            && self.confirming < CONFIRMING_MAX
            && fits(&[request.full_ns]);
        self.confirming += usize::from(confirms);
        match (searches, confirms) {
            (true, _) => course.ask(self, load, request.step_ns, false).map(Some),
            (false, true) => course.ask(self, answer.lo.unwrap_or_default(), request.full_ns, true).map(Some),
            (false, false) => Ok(None),
        }
    }
}

/// The plan of the first step of each search: what can be said before any begins.
///
/// # Errors
/// Where a cell cannot be.
pub fn first(request: &CapacityRequest<'_>, goal: &CapacityGoal) -> Result<StudyPlan, Vec<Diagnostic>> {
    let course = Course { study: request.study, goal };
    let mut parts = Vec::new();
    let mut plan = None;
    for search in &searches(request, goal)? {
        let ask = course.ask(search, goal.start, request.step_ns, false).map_err(|error| vec![error])?;
        let (with, grown, _) = course.with(&parts, &search.cell, &ask)?;
        (plan, parts) = (Some(with), grown);
    }
    plan.ok_or_else(|| vec![Diagnostic::whole("there is no cell to search the capacity of")])
}

/// How many cells are searched.
///
/// # Errors
/// Where a cell cannot be.
pub fn searched(request: &CapacityRequest<'_>, goal: &CapacityGoal) -> Result<usize, Vec<Diagnostic>> {
    searches(request, goal).map(|all| all.len())
}

fn searches(request: &CapacityRequest<'_>, goal: &CapacityGoal) -> Result<Vec<Search>, Vec<Diagnostic>> {
    let plan = StudyPlan::new(request.study.clone())?;
    let played = plan.cells().iter().filter(|cell| cell.skipped.is_none());
    let search = |cell: &Cell| Search {
        cell: cell.clone(),
        climb: CapacityClimb::new(goal.clone()),
        spent_ns: 0,
        overhead_ns: OVERHEAD_GUESS + cell.workload.warmup_ns,
        confirming: 0,
        over: false,
    };
    Ok(played.map(search).collect())
}

/// Makes steps until each capacity is known, or its time is over; then a run of full
/// length at the low end. Cells take turns, so that what drifts meets all of them.
/// A folder that it goes on with has to be of the same question, and of steps of the
/// same length.
///
/// # Errors
/// Where the study cannot be planned, or the results folder cannot be used.
pub fn climb(
    request: &CapacityRequest<'_>,
    goal: &CapacityGoal,
    how: &Conduct<'_>,
    observer: &mut dyn ClimbObserver,
) -> Result<ClimbEnding, ConductError> {
    let course = Course { study: request.study, goal };
    let mut searches = searches(request, goal).map_err(ConductError::Plan)?;
    let plan = first(request, goal).map_err(ConductError::Plan)?;
    let (mut conductor, records) = Conductor::open_growing(&plan, how)?;
    let Replayed { mut parts, mut made } = replay(&course, request, &mut searches, &records)
        .ok_or_else(|| ResultsError::OtherStudy(how.folder.to_owned()))?;
    begin_open(&plan.study().title, &[], &records, observer);
    let mut given_up = Vec::new();
    'rounds: while searches.iter().any(|search| !search.over) {
        for search in searches.iter_mut().filter(|search| !search.over) {
            if let Some(why) = search.climb.hopeless() {
                given_up.push((search.cell.clone(), why));
                search.over = true;
                continue;
            }
            let ask = search.next(&course, request).map_err(|error| ConductError::Plan(vec![error]))?;
            let Some(ask) = ask else {
                search.over = true;
                continue;
            };
            let (plan, grown, cell) = course.with(&parts, &search.cell, &ask).map_err(ConductError::Plan)?;
            let repeat = made.iter().filter(|axes| **axes == cell.axes).count() as u32 + 1;
            let place = Place { repeat, position: made.len() as u64 };
            let from_ns = clock::now();
            let Some(record) = conductor.run(&cell, place, Some(plan.study()), observer)? else { break 'rounds };
            let took_ns = clock::now().saturating_sub(from_ns);
            let beside_ns = took_ns.saturating_sub(ask.window_ns);
            search.overhead_ns = overhead(search.overhead_ns, beside_ns, search.spent_ns == 0);
            search.spent_ns += took_ns;
            parts = grown;
            made.push(cell.axes);
            if let Some(step) = search.climb.note(&record) {
                observer.step(&search.cell, step);
            }
        }
    }
    let (ending, lock) = conductor.close()?;
    Ok(ClimbEnding { ending, given_up, lock })
}

/// Where a search that goes on stands.
struct Replayed {
    /// The loads that it has come to.
    parts: Vec<StudyPart>,
    /// The cells of its runs.
    made: Vec<Map<String, Value>>,
}

/// Plays searches again from their records; nothing where a record is no step of
/// theirs, or of one of another length.
fn replay(
    course: &Course<'_>,
    request: &CapacityRequest<'_>,
    searches: &mut [Search],
    records: &[RunRecord],
) -> Option<Replayed> {
    let mut replayed = Replayed { parts: Vec::new(), made: Vec::new() };
    for record in records {
        let ask = course.asked(record)?;
        let lasts_ns = match ask.part.as_str() {
            SEARCHING => request.step_ns,
            CONFIRMING => request.full_ns,
            _ => ask.window_ns,
        };
        let is_of =
            |search: &&mut Search| search.cell.axes.iter().all(|(name, value)| record.cell.get(name) == Some(value));
        let search = searches.iter_mut().find(is_of).filter(|_| ask.window_ns == lasts_ns)?;
        search.climb.note(record);
        search.confirming += usize::from(ask.part == CONFIRMING);
        replayed.parts = course.grown(&replayed.parts, &ask);
        replayed.made.push(record.cell.clone());
    }
    Some(replayed)
}

/// What a run takes beside its window: the last ones count most, and none is
/// forgotten at once.
fn overhead(known_ns: Ns, found_ns: Ns, first: bool) -> Ns {
    match first {
        true => found_ns,
        false => found_ns.max(known_ns * 3 / 4).max(100 * MILLISECOND),
    }
}
