//! Strategy of a capacity search: steps until each capacity is known or its time is over, then a run of full length at
//! the low end. Cells take turns, so that drift affects all of them.

use crate::plan::StudyPlan;
use crate::strategy::{Decided, NextRun, Outlook, Strategy, StrategyError, Undecided};
use pubmark_model::capacity::{CONFIRMING, CapacityCourse, CapacityGoal, CapacityStep, StepOutcome};
use pubmark_model::cell::Cell;
use pubmark_model::diagnostic::Diagnostic;
use pubmark_model::plan::Place;
use pubmark_model::record::RunRecord;
use pubmark_model::setting::as_typed;
use pubmark_model::study::{Axis, Study, StudyPart};
use pubmark_model::units::{MILLISECOND, Ns, SECOND, format_time, parse_time};
use serde_json::{Map, Value};

/// Name of the axis of faults.
const FAULT: &str = "fault";
/// Name of the part that has the steps.
const SEARCHING: &str = "search";
/// Estimate of a run's time beside warm-up and window, before the first run.
const OVERHEAD_GUESS: Ns = 2 * SECOND;
/// Share of a load from which it counts as reached: loads are written with four digits.
const REACHED: f64 = 0.999;
/// Number of runs of full length that may fail before the search stops confirming.
const CONFIRMING_MAX: usize = 3;

/// Parameters of a search.
pub struct CapacityRequest<'a> {
    /// The study to measure, with its goal set, without `duration` and without the key that is varied. Each of its
    /// cells has its own search, a step of each in turn.
    pub study: &'a Study,
    /// Window of a step.
    pub step_ns: Ns,
    /// Window of a run of full length.
    pub full_ns: Ns,
    /// Time limit for the search of one cell, counted from now if it is resumed.
    pub budget_ns: Ns,
    /// Instant of CLOCK_MONOTONIC, ns, at which the whole search ends: no step starts that would end later.
    pub ends_ns: Option<Ns>,
    /// Rate of each publisher, messages per second, above which the capacity need not be known. If it is set, no run of
    /// full length follows.
    pub enough_each_per_s: Option<f64>,
}

/// Creates steps of searches, as parts of a study.
#[derive(Clone, Copy)]
struct Steps<'a> {
    study: &'a Study,
    goal: &'a CapacityGoal,
}

/// The search of one cell.
struct CellSearch {
    climb: CapacityCourse,
    /// Shortest window of a step, ns: it shows what follows the cell's faults or, if the objective is not about that, has
    /// the faults of all cells in it.
    least_ns: Ns,
    spent_ns: Ns,
    overhead_ns: Ns,
    /// Number of runs of full length so far.
    confirming: usize,
    over: bool,
    /// Reason why it was given up.
    given_up: Option<String>,
}

/// A step to be made.
struct Ask {
    part: String,
    /// The cell's faults, if the search compares cells with and without: a window that is long enough for a fault is
    /// too long for a step without one, so that parts have their own.
    fault: Option<Value>,
    value: Value,
    window_ns: Ns,
}

impl Steps<'_> {
    fn ask(
        &self,
        (cell, search): (&Cell, &CellSearch),
        load: f64,
        usual_ns: Ns,
        confirms: bool,
    ) -> Result<Ask, Diagnostic> {
        let window_ns = search.window_ns(load, usual_ns);
        let part = match (confirms, window_ns == usual_ns) {
            (true, _) => CONFIRMING.to_owned(),
            (false, true) => SEARCHING.to_owned(),
            // Windows are longer if messages are few.
            (false, false) => format!("{SEARCHING}-{}", format_time(window_ns)),
        };
        let key = self.goal.over.key();
        let text = self.goal.over.value(load, self.goal.workload(cell).publishers);
        let read = pubmark_model::setting::key(key).map(|key| key.read(&text));
        let value = match read {
            Some(Ok(value)) => value,
            _ => return Err(Diagnostic::whole(format!("{key} = {text} cannot be"))),
        };
        let fault = cell.axes.get(FAULT).filter(|_| self.goal.until.is_of_fault()).cloned();
        Ok(Ask { part, fault, value, window_ns })
    }

    /// Returns the parts with this load added.
    fn grown(&self, parts: &[StudyPart], ask: &Ask) -> Vec<StudyPart> {
        let mut parts = parts.to_vec();
        let key = self.goal.key();
        let axis = |name: &str, value: Value| Axis { name: name.to_owned(), values: vec![value] };
        match parts.iter_mut().find(|part| part.name == ask.part) {
            Some(part) => {
                let faults = part.axes.iter_mut().find(|axis| axis.name == FAULT).zip(ask.fault.as_ref());
                if let Some((axis, fault)) = faults.filter(|(axis, fault)| !axis.values.contains(fault)) {
                    axis.values.push(fault.clone());
                }
                let values = part.axes.iter_mut().filter(|axis| axis.name == key);
                values.filter(|axis| !axis.values.contains(&ask.value)).for_each(|axis| {
                    axis.values.push(ask.value.clone());
                    axis.values.sort_by(|one, other| number(one).total_cmp(&number(other)));
                });
            }
            None => {
                let mut axes = vec![axis("duration", format_time(ask.window_ns).into()), axis(&key, ask.value.clone())];
                axes.extend(ask.fault.clone().map(|fault| axis(FAULT, fault)));
                parts.push(StudyPart { name: ask.part.clone(), axes });
            }
        }
        parts
    }

    /// Returns the step that a record is of, or `None` if the record is no step.
    fn asked(&self, record: &RunRecord) -> Option<Ask> {
        let axis = |name: &str| record.cell.get(name);
        let window_ns = parse_time(axis("duration")?.as_str()?).ok()?;
        let fault = axis(FAULT).filter(|_| self.goal.until.is_of_fault()).cloned();
        Some(Ask { part: axis("part")?.as_str()?.to_owned(), fault, value: axis(&self.goal.key())?.clone(), window_ns })
    }

    /// Returns the study with this load added, and the cell to run.
    fn with(
        &self,
        parts: &[StudyPart],
        of: &Cell,
        ask: &Ask,
    ) -> Result<(StudyPlan, Vec<StudyPart>, Cell), Vec<Diagnostic>> {
        let parts = self.grown(parts, ask);
        let key = self.goal.key();
        let mut study = self.study.clone();
        if self.goal.until.is_of_fault() {
            study.axes.retain(|axis| axis.name != FAULT);
        }
        study
            .axes
            .push(Axis { name: "part".into(), values: parts.iter().map(|part| part.name.as_str().into()).collect() });
        study.parts.clone_from(&parts);
        let plan = StudyPlan::new(study)?;
        let same = |cell: &Cell| of.axes.iter().all(|(name, value)| cell.axes.get(name) == Some(value));
        let here = |cell: &&Cell| {
            same(cell) && cell.axes["part"] == ask.part.as_str() && cell.axes.get(&key) == Some(&ask.value)
        };
        let cell = plan.cells().iter().find(here).cloned();
        let cell = cell.ok_or_else(|| vec![Diagnostic::whole("a step has no cell")])?;
        Ok((plan, parts, cell))
    }
}

/// Returns the number in a value of an axis, such as the 5 of `burst:5`.
fn number(value: &Value) -> f64 {
    as_typed(value).trim_start_matches("burst:").parse().unwrap_or_default()
}

impl CellSearch {
    fn new(goal: &CapacityGoal, cell: &Cell, faults_ns: Ns) -> CellSearch {
        let is_of_fault = goal.until.is_of_fault();
        let goal = goal.of_axes(&cell.axes);
        let faults = Some(&cell.faults).filter(|_| goal.until.is_of_fault());
        let recovery_ns = faults.and_then(|faults| goal.until.recovery_window_ns(faults).ok()).unwrap_or(0);
        CellSearch {
            least_ns: if is_of_fault { recovery_ns } else { faults_ns },
            climb: CapacityCourse::new(goal),
            spent_ns: 0,
            overhead_ns: OVERHEAD_GUESS + cell.workload.warmup_ns,
            confirming: 0,
            over: false,
            given_up: None,
        }
    }

    /// Returns the window of a step at a load.
    fn window_ns(&self, load: f64, usual_ns: Ns) -> Ns {
        self.climb.window_ns(load, usual_ns.max(self.least_ns))
    }

    /// Returns the next step, or `None` if enough is known or the time is over.
    fn next(
        &mut self,
        steps: Steps<'_>,
        cell: &Cell,
        request: &CapacityRequest<'_>,
        now_ns: Ns,
    ) -> Result<Option<Ask>, Diagnostic> {
        let fits = |windows: &[Ns]| {
            let all: Ns = windows.iter().map(|window_ns| window_ns + self.overhead_ns).sum();
            let is_over = request.ends_ns.is_some_and(|ends_ns| now_ns + all > ends_ns);
            self.spent_ns + all <= request.budget_ns && !is_over
        };
        let climb = &self.climb;
        let answer = climb.answer();
        let publishers = f64::from(climb.goal().workload(cell).publishers);
        let enough = request.enough_each_per_s.map_or(f64::INFINITY, |each| each * publishers);
        let reached = climb
            .steps()
            .iter()
            .any(|step| step.counts && step.outcome == StepOutcome::Held && step.load >= enough * REACHED);
        let load = climb.next().min(enough);
        let step_ns = self.window_ns(load, request.step_ns);
        // Once a capacity is estimated, time for a run of full length is reserved.
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
            (true, _) => steps.ask((cell, self), load, request.step_ns, false).map(Some),
            (false, true) => steps.ask((cell, self), answer.lo.unwrap_or_default(), request.full_ns, true).map(Some),
            (false, false) => Ok(None),
        }
    }

    /// Describes the capacity interval so far.
    fn known(&self) -> String {
        let (answer, over) = (self.climb.answer(), self.climb.goal().over);
        let amount = |load: f64| over.value(load, 1);
        match (answer.lo, answer.hi) {
            (Some(lo), Some(hi)) => format!("{} to {} {}", amount(lo), amount(hi), over.unit()),
            (Some(lo), None) => format!("{} or more {}", amount(lo), over.unit()),
            (None, Some(hi)) => format!("less than {} {}", amount(hi), over.unit()),
            (None, None) => "nothing is known yet".to_owned(),
        }
    }
}

/// Searches the capacity of each cell of a study.
pub struct Search<'a> {
    request: &'a CapacityRequest<'a>,
    steps: Steps<'a>,
    /// The cells as requested: without a load.
    cells: Vec<Cell>,
    searches: Vec<CellSearch>,
    /// Index of the cell whose turn it is.
    turn: usize,
    /// Parts with the loads reached so far.
    parts: Vec<StudyPart>,
    /// Cells of the runs that were made.
    made: Vec<Map<String, Value>>,
    /// Step that was asked for last: its cell's index, its window, and the parts with it.
    asked: Option<(usize, Ns, Vec<StudyPart>)>,
    begun_ns: Ns,
}

impl<'a> Search<'a> {
    /// Returns the searches of a request.
    ///
    /// # Errors
    /// If a cell is impossible.
    pub fn new(request: &'a CapacityRequest<'a>, goal: &'a CapacityGoal) -> Result<Search<'a>, Vec<Diagnostic>> {
        let plan = StudyPlan::new(request.study.clone())?;
        let cells: Vec<Cell> = plan.cells().iter().filter(|cell| cell.skipped.is_none()).cloned().collect();
        let faults_ns = cells.iter().filter_map(|cell| cell.faults.window_ns()).max().unwrap_or(0);
        Ok(Search {
            request,
            steps: Steps { study: request.study, goal },
            searches: cells.iter().map(|cell| CellSearch::new(goal, cell, faults_ns)).collect(),
            cells,
            turn: 0,
            parts: Vec::new(),
            made: Vec::new(),
            asked: None,
            begun_ns: 0,
        })
    }

    /// Plans the first step of each cell, before any run is made.
    ///
    /// # Errors
    /// If a cell is impossible.
    pub fn first_steps(&self) -> Result<StudyPlan, Vec<Diagnostic>> {
        let (start, step_ns) = (self.steps.goal.start, self.request.step_ns);
        let (mut parts, mut plan) = (Vec::new(), None);
        for (cell, search) in self.cells.iter().zip(&self.searches) {
            let ask = self.steps.ask((cell, search), start, step_ns, false).map_err(|error| vec![error])?;
            let (with, grown, _) = self.steps.with(&parts, cell, &ask)?;
            (plan, parts) = (Some(with), grown);
        }
        plan.ok_or_else(|| vec![Diagnostic::whole("there is no cell to search the capacity of")])
    }

    /// Returns the cells that were given up, each with the reason.
    pub fn given_up(&self) -> Vec<(&Cell, &str)> {
        let all = self.cells.iter().zip(&self.searches);
        all.filter_map(|(cell, search)| Some((cell, search.given_up.as_deref()?))).collect()
    }

    /// Returns whether the turn of a cell has come: a search for a recovery begins at half of the capacity without a
    /// fault, when that is known.
    fn may_begin(&mut self, row: usize) -> bool {
        let search = &self.searches[row];
        if !search.climb.goal().until.is_of_fault() || !search.climb.steps().is_empty() {
            return true;
        }
        let without = |cell: &Cell| {
            let mut axes = cell.axes.clone();
            axes.remove(FAULT);
            axes
        };
        let (own, cells) = (without(&self.cells[row]), &self.cells);
        let is_base = |other: &usize| self.searches[*other].climb.goal().until != search.climb.goal().until;
        let bases = (0..cells.len()).filter(is_base);
        let Some(base) = bases.into_iter().find(|other| without(&cells[*other]) == own) else { return true };
        if !self.searches[base].over {
            return false;
        }
        let answer = self.searches[base].climb.answer();
        match answer.estimate.or(answer.lo) {
            Some(load) => self.searches[row].climb.begin(load / 2.0),
            None => {
                let why = "there is no capacity without a fault to begin at";
                self.searches[row].given_up = Some(why.to_owned());
                self.searches[row].over = true;
            }
        }
        answer.estimate.or(answer.lo).is_some()
    }

    /// Takes in a record of an earlier call. Returns `None` if it is no step of these searches, or one of another
    /// length.
    fn replay(&mut self, record: &RunRecord) -> Option<()> {
        let ask = self.steps.asked(record)?;
        let lasts_ns = match ask.part.as_str() {
            SEARCHING => self.request.step_ns,
            CONFIRMING => self.request.full_ns,
            _ => ask.window_ns,
        };
        let is_of = |cell: &Cell| cell.axes.iter().all(|(name, value)| record.cell.get(name) == Some(value));
        let row = self.cells.iter().position(is_of).filter(|_| ask.window_ns == lasts_ns)?;
        self.searches[row].climb.note(record);
        self.searches[row].confirming += usize::from(ask.part == CONFIRMING);
        self.parts = self.steps.grown(&self.parts, &ask);
        self.made.push(record.cell.clone());
        Some(())
    }
}

impl Strategy for Search<'_> {
    fn rows(&self) -> &[Cell] {
        &self.cells
    }

    fn grows(&self) -> bool {
        true
    }

    fn begin(&mut self, records: &[RunRecord], now_ns: Ns) -> Result<(), StrategyError> {
        self.begun_ns = now_ns;
        records.iter().try_for_each(|record| self.replay(record)).ok_or(StrategyError::OtherStudy)
    }

    fn next(&mut self, now_ns: Ns) -> Result<Option<NextRun>, StrategyError> {
        while self.searches.iter().any(|search| !search.over) {
            let row = self.turn;
            self.turn = (row + 1) % self.cells.len();
            if self.searches[row].over || !self.may_begin(row) {
                continue;
            }
            let (cell, search) = (&self.cells[row], &mut self.searches[row]);
            search.given_up = search.climb.hopeless();
            let ask = match search.given_up {
                Some(_) => None,
                None => search
                    .next(self.steps, cell, self.request, now_ns)
                    .map_err(|error| StrategyError::Plan(vec![error]))?,
            };
            let Some(ask) = ask else {
                search.over = true;
                continue;
            };
            let (plan, grown, cell) = match self.steps.with(&self.parts, cell, &ask) {
                Ok(step) => step,
                // A load may be too high for the rest of the workload, such as more subscribers than topics.
                Err(errors) if !search.climb.steps().is_empty() => {
                    let why = errors.into_iter().map(|error| error.message).collect::<Vec<_>>().join("; ");
                    search.given_up = Some(format!("a step at {} cannot be made: {why}", as_typed(&ask.value)));
                    search.over = true;
                    continue;
                }
                Err(errors) => return Err(StrategyError::Plan(errors)),
            };
            let repeat = self.made.iter().filter(|axes| **axes == cell.axes).count() as u32 + 1;
            let place = Place { repeat, position: self.made.len() as u64 };
            self.asked = Some((row, ask.window_ns, grown));
            return Ok(Some(NextRun { row, cell, place, grown: Some(plan.into_study()) }));
        }
        Ok(None)
    }

    fn note(&mut self, record: &RunRecord, took_ns: Ns) -> Option<String> {
        let (row, window_ns, grown) = self.asked.take()?;
        let search = &mut self.searches[row];
        search.overhead_ns = overhead(search.overhead_ns, took_ns.saturating_sub(window_ns), search.spent_ns == 0);
        search.spent_ns += took_ns;
        self.parts = grown;
        self.made.push(record.cell.clone());
        search.climb.note(record).map(CapacityStep::sentence)
    }

    fn outlook(&self) -> Option<Outlook> {
        let mut outlook = Outlook { asked: "searches", ..Outlook::default() };
        let mut left_ns = 0;
        for (row, (cell, search)) in self.cells.iter().zip(&self.searches).enumerate() {
            let text = cell.label();
            let known = search.known();
            match (search.over, search.given_up.is_some()) {
                (true, true) => outlook.closed += 1,
                (true, false) => outlook.decided.push(Decided { text, answer: known }),
                (false, _) => {
                    let more_ns = self.request.budget_ns.saturating_sub(search.spent_ns);
                    left_ns += more_ns;
                    outlook.open.push(Undecided { text, known, more_ns: None });
                    outlook.wanted.insert(row);
                }
            }
        }
        let spent_ns: Ns = self.searches.iter().map(|search| search.spent_ns).sum();
        let ends_ns = self.begun_ns.saturating_add(spent_ns).saturating_add(left_ns);
        outlook.ends_ns = self.request.ends_ns.map_or(ends_ns, |most_ns| ends_ns.min(most_ns));
        Some(outlook)
    }
}

/// Returns the time that a run takes beside its window: an average in which the latest runs weigh most.
fn overhead(known_ns: Ns, found_ns: Ns, first: bool) -> Ns {
    match first {
        true => found_ns,
        false => found_ns.max(known_ns * 3 / 4).max(100 * MILLISECOND),
    }
}

#[cfg(test)]
mod tests;
