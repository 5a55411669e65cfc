//! Capacities of a report: their list, their ranking, and the questions of a study about them.

use crate::analysis::Status;
use crate::axes::{NAME_CHARS, axis_name, axis_value, differs};
use crate::capacity::{CapacityResult, OF_STEPS, bound, verdict};
use crate::document::{Entry, Head, Mark, Note, Row, Table};
use crate::points::Point;
use crate::questions::{QuestionKind, QuestionState, StudyQuestion};
use crate::recovery_capacity;
use crate::report::Report;
use crate::text::clean;
use crate::words::OPEN;
use pubmark_model::capacity::{CapacityAnswer, CapacityCourse, CapacityGoal, LoadAxis, StepOutcome};
use pubmark_model::cell::label;
use pubmark_model::flow::{ALL, FLOW};
use pubmark_model::record::{FlowRecord, RunRecord};
use pubmark_model::setting::as_typed;
use pubmark_stats::{CapacityStanding, KnownCapacity, rank_capacities};
use serde_json::{Map, Value};
use std::borrow::Cow;

/// Longest question and objective that is shown, characters.
const TEXT_CHARS: usize = 200;
/// Keys on which the runs of a study and the steps of its search differ, beside the one
/// that is turned up.
const OF_RUNS: [&str; 3] = ["duration", "count", "warmup_max"];

impl Report {
    /// The capacities that the records say: one for each system and workload, where
    /// the study names an objective; of a study that asks for them, those of the
    /// searches that followed its runs.
    pub fn capacities(&self) -> Vec<CapacityResult> {
        let mut all = match &self.study().capacity {
            None => return Vec::new(),
            Some(goal) if goal.asked.is_none() => own(self, goal),
            Some(_) => self.searched_capacity.iter().flat_map(|search| of_part(&search.part, &search.report)).collect(),
        };
        rank(&mut all, self.study().tie());
        recovery_capacity::join(&mut all);
        all
    }

    /// Returns the questions of a study that asks for capacities: one per cell.
    pub(crate) fn capacity_questions(&self) -> Vec<StudyQuestion> {
        let Some((goal, _)) = self.study().asked_capacity() else { return Vec::new() };
        let found = self.capacities();
        self.asked_places()
            .into_iter()
            .map(|place| {
                let result = found.iter().find(|result| result.axes == place);
                let over = self.searched_over(&place).unwrap_or(goal.over);
                let text = format!("how far `{}` holds over {over}: {}", goal.until, label(&place));
                StudyQuestion { text: clean(&text, TEXT_CHARS), kind: QuestionKind::Capacity, state: state(result) }
            })
            .collect()
    }

    /// The places whose capacity the study asks for, in the order of its cells.
    fn asked_places(&self) -> Vec<Map<String, Value>> {
        let mut places: Vec<Map<String, Value>> = Vec::new();
        let played = self.cells().iter().filter(|result| result.status != Status::Skipped);
        for place in played.filter_map(|result| self.place_of_search(&result.cell.axes)) {
            if !places.contains(&place) {
                places.push(place);
            }
        }
        places
    }

    /// The place of a cell without what its search turns up; none where its capacity is
    /// not asked for.
    pub(crate) fn place_of_search(&self, axes: &Map<String, Value>) -> Option<Map<String, Value>> {
        let (goal, asked) = self.study().asked_capacity()?;
        let is_asked = asked.searches(axes.get("part").and_then(Value::as_str));
        let over = self.searched_over(axes)?;
        let mut place = axes.clone();
        let key = goal.key_of(over);
        place.retain(|name, _| *name != key && name != FLOW && !OF_RUNS.contains(&name.as_str()));
        is_asked.then_some(place)
    }

    /// Returns the load over which the capacity of a cell is searched.
    fn searched_over(&self, axes: &Map<String, Value>) -> Option<LoadAxis> {
        self.study().searched_over(axes.get("part").and_then(Value::as_str))
    }
}

/// The searches of a point's cells, as indices into all.
pub(crate) fn searches_at(report: &Report, all: &[CapacityResult], point: &Point) -> Vec<usize> {
    let of = |index: &usize| {
        let place = report.place_of_search(&report.cells()[*index].cell.axes)?;
        all.iter().position(|found| found.axes == place)
    };
    point.members.iter().filter_map(of).collect()
}

/// Whose capacity is the highest of these, in a word and by name; nothing where none is known.
pub(crate) fn best_of<'a>(found: impl Iterator<Item = &'a CapacityResult>) -> Option<(&'static str, Vec<String>)> {
    let members = found.filter_map(|result| Some((result.system().to_owned(), result.standing?)));
    let members: Vec<(String, CapacityStanding)> = members.collect();
    let kinds = [
        (CapacityStanding::Winner, "winner"),
        (CapacityStanding::Tie, "tie"),
        (CapacityStanding::Undecided, OPEN),
        (CapacityStanding::Alone, "alone"),
    ];
    kinds.into_iter().find_map(|(kind, word)| {
        let of = members.iter().filter(|(_, standing)| *standing == kind);
        let systems: Vec<String> = of.map(|(system, _)| system.clone()).collect();
        (!systems.is_empty()).then_some((word, systems))
    })
}

/// Returns the capacities whose steps are runs of the report itself.
fn own(report: &Report, goal: &CapacityGoal) -> Vec<CapacityResult> {
    let mut all: Vec<CapacityResult> = Vec::new();
    let key = goal.key();
    for (run, cell) in &with_flows(report) {
        let mut axes = run.cell.clone();
        axes.retain(|name, _| *name != key && name != FLOW && !OF_STEPS.contains(&name.as_str()));
        let at = all.iter().position(|known| known.axes == axes).unwrap_or_else(|| {
            all.push(CapacityResult {
                label: label(&axes),
                axes,
                climb: CapacityCourse::new(goal.of_axes(&run.cell)),
                cells: Vec::new(),
                is_reference: report.cells()[*cell].is_reference,
                is_left_out: report.cells()[*cell].breaks_promise,
                standing: None,
                recovery: None,
            });
            all.len() - 1
        });
        if all[at].climb.note(run).is_some() {
            all[at].cells.push(*cell);
        }
    }
    all
}

/// Returns the runs with their flows, each with the index of its cell: a report has a record for each flow, followed by
/// that of all of them.
fn with_flows(report: &Report) -> Vec<(Cow<'_, RunRecord>, usize)> {
    let mut flows: Vec<FlowRecord> = Vec::new();
    let mut whole = Vec::new();
    for (run, cell) in report.runs().iter().zip(report.cells_of_runs()) {
        match run.cell.get(FLOW) {
            None => whole.push((Cow::Borrowed(run), *cell)),
            Some(name) if name != ALL => flows.push(run.clone().into_flow(&as_typed(name))),
            Some(_) => {
                whole.push((Cow::Owned(RunRecord { flows: std::mem::take(&mut flows), ..run.clone() }), *cell));
            }
        }
    }
    whole
}

/// Returns the capacities of a search with a folder of its own, whose steps are not cells of the
/// study.
fn of_part(part: &Option<String>, search: &Report) -> Vec<CapacityResult> {
    let mut all = search.capacities();
    for result in &mut all {
        result.cells = Vec::new();
        if let Some(part) = part {
            result.axes.insert("part".into(), part.as_str().into());
            result.label = label(&result.axes);
        }
    }
    all
}

/// A place without its system: what systems are held against each other at.
fn point(result: &CapacityResult) -> Map<String, Value> {
    result
        .axes
        .iter()
        .filter(|(name, _)| *name != "system")
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// By point, as indices, in the order in which they first come.
fn points(all: &[CapacityResult]) -> Vec<Vec<usize>> {
    let mut points: Vec<(Map<String, Value>, Vec<usize>)> = Vec::new();
    for (index, result) in all.iter().enumerate() {
        let place = point(result);
        match points.iter_mut().find(|(known, _)| *known == place) {
            Some((_, members)) => members.push(index),
            None => points.push((place, vec![index])),
        }
    }
    points.into_iter().map(|(_, members)| members).collect()
}

fn rank(all: &mut [CapacityResult], tie: f64) {
    let points = points(all);
    let known = |index: &usize| {
        let result = &all[*index];
        let answer = result.answer();
        let (estimate, lo) = answer.estimate.zip(answer.lo).filter(|_| !result.is_reference)?;
        Some(KnownCapacity { lo, estimate, hi: answer.hi })
    };
    let table: Vec<Vec<Option<KnownCapacity>>> =
        points.iter().map(|members| members.iter().map(known).collect()).collect();
    let said = rank_capacities(&table, tie);
    for (members, said) in points.iter().zip(said) {
        members.iter().zip(said).for_each(|(index, standing)| all[*index].standing = standing);
    }
}

fn is_answered(answer: &CapacityAnswer) -> bool {
    answer.estimate.is_some() && answer.settled
}

fn state(result: Option<&CapacityResult>) -> QuestionState {
    let open = |why: String| QuestionState::Open {
        cells: Vec::new(),
        groups: Vec::new(),
        compares: false,
        why,
        blocks_more: None,
    };
    let Some(result) = result else { return open("not searched yet".into()) };
    let told = result.short();
    match result.climb.hopeless() {
        _ if is_answered(&result.answer()) => QuestionState::Decided(told),
        Some(why) if result.climb.steps().iter().all(|step| step.outcome != StepOutcome::NotMade) => {
            QuestionState::Closed(why)
        }
        Some(why) => open(why),
        None => open(told),
    }
}

/// Returns the legend of ≥ and ≤: why an end of an interval is not known.
fn signs(all: &[CapacityResult]) -> String {
    let cause = |result: &CapacityResult| result.answer().bound_by.map(bound);
    let mut causes: Vec<&str> = all.iter().filter_map(cause).collect();
    causes.sort_unstable();
    causes.dedup();
    if causes.is_empty() { String::new() } else { format!("; ≥ and ≤: {}", causes.join(", or ")) }
}

/// Returns a table with one row per capacity, if there are several.
pub(crate) fn overview(all: &[CapacityResult]) -> Option<Table> {
    let first = all.first().filter(|_| all.len() > 1)?;
    let varies = |axis: &&String| differs(axis, all.iter().map(|result| &result.axes));
    let mut axes: Vec<&String> = Vec::new();
    for axis in all.iter().flat_map(|result| result.axes.keys()).filter(varies) {
        if !axes.contains(&axis) {
            axes.push(axis);
        }
    }
    axes.sort_by_key(|axis| *axis == "system");
    let over = first.climb.goal().over;
    let mut heads: Vec<Head> =
        axes.iter().map(|axis| Head { is_axis: *axis != "system", ..Head::new(axis_name(axis), false, 0) }).collect();
    heads.extend([Head::new("holds up to", true, 0), Head::new("90 %", true, 1), Head::new("limited by", false, 2)]);
    heads.push(Head::new("verdict", false, 0));
    let row = |index: &usize| {
        let result = &all[*index];
        let answer = result.answer();
        let place =
            axes.iter().map(|axis| result.axes.get(*axis).map_or_else(String::new, |value| axis_value(axis, value)));
        let limit = answer.limited_by.map_or("", |limit| limit.word());
        let own = [result.load_text(), result.interval_text(), clean(limit, NAME_CHARS), verdict(result).into()];
        let mark = match (result.standing, answer.estimate) {
            _ if result.is_reference => Mark::Muted,
            (Some(CapacityStanding::Winner | CapacityStanding::Tie), _) => Mark::Good,
            (_, None) => Mark::Muted,
            _ => Mark::Plain,
        };
        Row { entries: place.chain(own).map(Entry::plain).collect(), mark, bar: None }
    };
    let groups = points(all).iter().map(|members| members.iter().map(row).collect()).collect();
    let goal = first.climb.goal();
    let note = format!(
        "holds up to: {}, with `{}`{}. verdict: from the intervals of the searches, corrected for all pairs of the table",
        over.unit(),
        clean(&goal.until.to_string(), TEXT_CHARS),
        signs(all)
    );
    Some(Table {
        title: "Capacities".into(),
        heads,
        groups,
        notes: vec![Note::on_rows(note)],
        ends_in_prose: false,
        whole: "--json",
        bars: None,
    })
}
