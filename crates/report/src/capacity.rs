//! A capacity that records say: in a sentence, as JSON, and as a table of its loads.

use crate::document::{Entry, Head, Mark, Note, Row, Table};
use crate::text::{bytes, clean, count, number, time};
use crate::words::CellVerdict;
use pubmark_model::capacity::{
    BoundCause, CapacityAnswer, CapacityCourse, CapacityGoal, CapacityLimit, CapacityStep, LoadAxis, StepOutcome,
};
use pubmark_stats::{CapacityStanding, median};
use serde::Serialize;
use serde_json::{Map, Value, json};

/// Longest evidence and name that are shown, characters.
const PROSE_CHARS: usize = 300;
/// A drift of less is not worth a word.
const DRIFT_SHOWN: f64 = 0.005;
/// Axes on which the steps of one search differ, beside the key that is turned up.
pub(crate) const OF_STEPS: [&str; 2] = ["part", "duration"];

/// The capacity of a system under a workload.
#[derive(Clone, Debug)]
pub struct CapacityResult {
    /// Which, in words.
    pub label: String,
    /// Position on the axes, without the axis that is searched.
    pub(crate) axes: Map<String, Value>,
    /// Its steps, and what they say.
    pub climb: CapacityCourse,
    /// The cell of each step, as an index into the report's; empty where the search has
    /// a folder of its own.
    pub(crate) cells: Vec<usize>,
    /// True if its system is never ranked.
    pub(crate) is_reference: bool,
    /// True if that is because it broke the promise of the study.
    pub(crate) is_left_out: bool,
    /// Standing of its system at its point; `None` without a result.
    pub(crate) standing: Option<CapacityStanding>,
    /// What lies beside it without a fault, if its objective is about recovery.
    pub(crate) recovery: Option<RecoveryHeadroom>,
}

/// A capacity with recovery, beside that without a fault. Loads are in the unit of the search.
#[derive(Clone, Debug, Serialize)]
pub struct RecoveryHeadroom {
    /// Capacity without a fault; `None` if it is not known.
    pub without_fault: Option<f64>,
    /// Share of that capacity, 0 to 1, which must stay free so that the system recovers in time; `None` if one of the
    /// two capacities is not known or a lower bound.
    pub headroom: Option<f64>,
    /// Least and most of this share that the intervals of the two searches allow; `None` if nothing is known of it.
    pub headroom_range: Option<[f64; 2]>,
    /// Lowest load that the system carries without a fault and at which its backlog did not shrink after the fault;
    /// `None` if there was no such load.
    pub lasts_from: Option<f64>,
    /// The same in a sentence.
    #[serde(skip)]
    pub(crate) lasting: Option<String>,
    /// Text of the capacity without a fault.
    #[serde(skip)]
    pub(crate) without_text: String,
}

/// Median of each figure over the steps at one load.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "CapacityLoad"))]
pub(crate) struct LoadFigures {
    pub load: f64,
    pub offered_per_s: Option<f64>,
    pub delivered_per_s: Option<f64>,
    pub p50_ns: Option<f64>,
    pub p99_ns: Option<f64>,
    pub server_cpu_cores: Option<f64>,
    pub server_rss_bytes: Option<f64>,
    /// Steps in which the objective held, of those that count.
    pub held: usize,
    pub counted: usize,
}

impl CapacityResult {
    /// Returns the result of all steps.
    pub fn answer(&self) -> CapacityAnswer {
        self.climb.answer()
    }

    /// The system whose capacity it is.
    pub(crate) fn system(&self) -> &str {
        self.axes.get("system").and_then(Value::as_str).unwrap_or_default()
    }

    /// The answer in a sentence or two.
    pub fn sentence(&self) -> String {
        let (goal, answer) = (self.climb.goal(), self.answer());
        let mut text = format!("{}: `{}` ", clean(&self.label, PROSE_CHARS), goal.until);
        text.push_str(&found(goal, &answer));
        if let Some(limit) = answer.limited_by {
            let evidence = clean(answer.evidence.as_deref().unwrap_or_default(), PROSE_CHARS);
            text.push_str(&format!(" {}", gave_out(limit)));
            text.push_str(&if evidence.is_empty() { ".".into() } else { format!(" ({evidence}).") });
        }
        if let Some(lasts) = self.recovery.as_ref().and_then(|beside| beside.lasting.as_ref()) {
            text.push_str(&format!(" {lasts}."));
        }
        if answer.confirmed {
            text.push_str(" A run of full length confirmed the low end.");
        }
        if answer.disturbed > 0 {
            text.push_str(&format!(
                " {} of {} steps failed while the machine was busy: on a quiet machine the system may carry more.",
                answer.disturbed,
                self.climb.steps().len()
            ));
        }
        text
    }

    /// The answer in a few words: `998 messages/s …, 985 to 1020`.
    pub(crate) fn short(&self) -> String {
        found(self.climb.goal(), &self.answer())
    }

    /// A load as the search has it.
    fn shown(&self, load: f64) -> String {
        show(self.climb.goal(), load)
    }

    /// The first, or the second of a limit, which is searched downwards.
    fn sign(&self, up: &'static str, down: &'static str) -> &'static str {
        if self.climb.goal().over.is_limit() { down } else { up }
    }

    /// Estimate and ends in what a user reads, the lower end first.
    pub(crate) fn amounts(&self) -> [Option<f64>; 3] {
        let (over, answer) = (self.climb.goal().over, self.answer());
        let [estimate, lo, hi] = [answer.estimate, answer.lo, answer.hi].map(|load| load.map(|load| over.amount(load)));
        if over.is_limit() { [estimate, hi, lo] } else { [estimate, lo, hi] }
    }

    /// Up to which load it holds; blank where that is not known.
    pub(crate) fn load_text(&self) -> String {
        let answer = self.answer();
        match (answer.estimate, answer.lo, answer.hi) {
            (Some(_), Some(lo), None) | (None, Some(lo), None) => format!("{} {}", self.sign("≥", "≤"), self.shown(lo)),
            (None, None, Some(hi)) if answer.bound_by.is_some() => {
                format!("{} {}", self.sign("≤", "≥"), self.shown(hi))
            }
            (None, None, Some(hi)) => format!("{} {}", self.sign("<", ">"), self.shown(hi)),
            (estimate, ..) => estimate.map_or_else(String::new, |load| self.shown(load)),
        }
    }

    /// Its interval; blank where there is none.
    pub(crate) fn interval_text(&self) -> String {
        let answer = self.answer();
        let ends = answer.estimate.and(answer.lo).zip(answer.hi);
        let ends = ends.map(|(lo, hi)| if self.climb.goal().over.is_limit() { (hi, lo) } else { (lo, hi) });
        ends.map_or_else(String::new, |(lo, hi)| format!("{} to {}", self.shown(lo), self.shown(hi)))
    }

    /// Returns JSON: the result, the question, and each step.
    pub fn json(&self) -> Value {
        let goal = self.climb.goal();
        let mut all = json!(self.answer());
        let [estimate, lo, hi] = self.amounts();
        (all["estimate"], all["lo"], all["hi"]) = (json!(estimate), json!(lo), json!(hi));
        all["standing"] = standing(self).into();
        all["cell"] = self.label.as_str().into();
        all["until"] = goal.until.to_string().into();
        all["over"] = goal.over.word().into();
        all["unit"] = goal.over.unit().into();
        all["within"] = goal.within.into();
        if let Some(beside) = &self.recovery {
            all["recovery"] = json!(beside);
        }
        let told = |step: &CapacityStep| json!(CapacityStep { load: goal.over.amount(step.load), ..step.clone() });
        all["steps"] = self.climb.steps().iter().map(told).collect();
        all
    }

    /// Offered to delivered, a row for each load.
    pub(crate) fn table(&self) -> Table {
        let over = self.climb.goal().over;
        let figure = |name: &str, expendable| Head::new(name, true, expendable);
        let mut heads = vec![figure("offered/s", 0), figure("delivered/s", 0), figure("p50", 3), figure("p99", 0)];
        heads.extend([figure("server CPU", 2), figure("server memory", 4), figure("held", 0)]);
        heads.push(Head::new("otherwise", false, 1));
        if over != LoadAxis::Rate {
            heads.insert(0, figure(over.word(), 0));
        }
        let rows = self.curve().iter().map(|at| self.row(at)).collect();
        let mut notes = Vec::new();
        if self.climb.steps().iter().any(|step| !step.counts) {
            notes.push(Note::on_rows(
                "steps that show nothing about the system were repeated and are not counted".into(),
            ));
        }
        Table {
            title: format!("Capacity: {}", clean(&self.label, PROSE_CHARS)),
            heads,
            groups: vec![rows],
            notes,
            ends_in_prose: false,
            whole: "--json",
            bars: None,
        }
    }

    /// Each load that was asked, ascending.
    pub(crate) fn curve(&self) -> Vec<LoadFigures> {
        let mut loads: Vec<f64> = self.climb.steps().iter().map(|step| step.load).collect();
        loads.sort_by(f64::total_cmp);
        loads.dedup();
        loads.into_iter().map(|load| self.at(load)).collect()
    }

    fn at(&self, load: f64) -> LoadFigures {
        let steps: Vec<&CapacityStep> = self.steps_at(load).collect();
        let middle = |of: &dyn Fn(&CapacityStep) -> Option<f64>| {
            median(&steps.iter().filter_map(|step| of(step)).collect::<Vec<f64>>())
        };
        let counted = steps.iter().filter(|step| step.counts);
        LoadFigures {
            load,
            offered_per_s: middle(&|step| Some(step.offered_per_s)),
            delivered_per_s: middle(&|step| Some(step.delivered_per_s)),
            p50_ns: middle(&|step| step.p50_ns.map(|ns| ns as f64)),
            p99_ns: middle(&|step| step.p99_ns.map(|ns| ns as f64)),
            server_cpu_cores: middle(&|step| step.server_cpu_cores),
            server_rss_bytes: middle(&|step| step.server_rss_bytes.map(|rss| rss as f64)),
            held: counted.clone().filter(|step| step.outcome == StepOutcome::Held).count(),
            counted: counted.count(),
        }
    }

    fn steps_at(&self, load: f64) -> impl Iterator<Item = &CapacityStep> {
        self.climb.steps().iter().filter(move |step| step.load == load)
    }

    fn row(&self, at: &LoadFigures) -> Row {
        let over = self.climb.goal().over;
        let shown = |value: Option<f64>, show: &dyn Fn(f64) -> String| {
            value.map_or_else(Entry::none, |value| Entry::plain(show(value)))
        };
        let mut failing = self.steps_at(at.load).filter(|step| step.outcome != StepOutcome::Held);
        let otherwise = failing.next().map_or(String::new(), |step| match step.outcome {
            StepOutcome::Failed => why(step, 60),
            outcome => format!("{outcome}: {}", why(step, 60)),
        });
        let mut entries = vec![
            shown(at.offered_per_s, &count),
            shown(at.delivered_per_s, &count),
            shown(at.p50_ns, &time),
            shown(at.p99_ns, &time),
            shown(at.server_cpu_cores, &number),
            shown(at.server_rss_bytes, &bytes),
            Entry::plain(format!("{} of {}", at.held, at.counted)),
            Entry::plain(otherwise),
        ];
        if over != LoadAxis::Rate {
            entries.insert(0, Entry::plain(if over.is_limit() { self.shown(at.load) } else { format!("{}", at.load) }));
        }
        let mark = if at.held * 2 >= self.steps_at(at.load).count() { Mark::Plain } else { Mark::Muted };
        Row { entries, mark, bar: None }
    }
}

/// Returns the word for a system in the table of capacities.
pub(crate) fn verdict(result: &CapacityResult) -> &'static str {
    match result.standing {
        Some(CapacityStanding::Undecided) if !result.is_reference => CellVerdict::Candidate.text(),
        None if !result.is_reference => "no result",
        _ => standing(result),
    }
}

/// Returns the value of `standing` in JSON and of `capacity_standing` in CSV.
pub(crate) fn standing(result: &CapacityResult) -> &'static str {
    match result.standing {
        _ if result.is_left_out => CellVerdict::LeftOut.text(),
        _ if result.is_reference => "reference",
        Some(CapacityStanding::Winner) => "winner",
        Some(CapacityStanding::Tie) => "tie",
        Some(CapacityStanding::Behind) => "behind",
        Some(CapacityStanding::Undecided) => "undecided",
        Some(CapacityStanding::Alone) => "alone",
        None => "no answer",
    }
}

/// Returns which bound a step broke, or what limited it.
pub(crate) fn why(step: &CapacityStep, chars: usize) -> String {
    clean(step.unmet.first().or(step.evidence.as_ref()).map_or("", String::as_str), chars)
}

pub(crate) fn show(goal: &CapacityGoal, load: f64) -> String {
    match goal.over {
        LoadAxis::Rate => number(load),
        LoadAxis::Payload => bytes(load),
        LoadAxis::Cpus => number(goal.over.amount(load)),
        LoadAxis::Memory => bytes(goal.over.amount(load)),
        _ => format!("{:.0}", load.floor()),
    }
}

fn found(goal: &CapacityGoal, answer: &CapacityAnswer) -> String {
    let unit = goal.over.unit();
    let show = |load: f64| show(goal, load);
    let cause = answer.bound_by.map_or_else(String::new, |by| format!(", as {}", bound(by)));
    match (answer.estimate, answer.lo, answer.hi) {
        (Some(_), Some(lo), None) if goal.over.is_limit() => {
            format!("holds with {} {unit}; the least that suffices was not found{cause}.", show(lo))
        }
        (None, Some(lo), None) if goal.over.is_limit() => {
            format!("held with {} {unit}, and less was not asked.", show(lo))
        }
        (None, None, Some(hi)) if goal.over.is_limit() => {
            format!("did not hold with {} {unit}, nor with any other that was asked.", show(hi))
        }
        (Some(_), Some(lo), None) => format!("holds up to at least {} {unit}; upper end not found{cause}.", show(lo)),
        (None, None, Some(hi)) if answer.bound_by.is_some() => {
            format!("holds up to at most {} {unit}; lower end not found{cause}.", show(hi))
        }
        (None, Some(lo), Some(hi)) if lo < hi => {
            format!("held at {} {unit} and not at {}; neither end found{cause}.", show(lo), show(hi))
        }
        (Some(estimate), Some(lo), Some(hi)) => format!(
            "holds {} {} {unit} ({} to {}, {:.0} %{}{}).",
            if goal.over.is_limit() { "down to" } else { "up to" },
            show(estimate),
            show(if goal.over.is_limit() { hi } else { lo }),
            show(if goal.over.is_limit() { lo } else { hi }),
            answer.level * 100.0,
            if answer.drift < DRIFT_SHOWN {
                String::new()
            } else {
                format!("; ±{:.0} % of this is machine drift", answer.drift * 100.0)
            },
            if answer.settled { "" } else { "; the search did not finish" }
        ),
        (None, Some(lo), None) => format!("held at {} {unit}, and no higher load was asked.", show(lo)),
        (None, None, Some(hi)) => format!("did not hold at {} {unit}, nor at any load that was asked.", show(hi)),
        _ => "has no result: no step shows anything about the system.".into(),
    }
}

/// Why an end of the interval is not known.
pub(crate) fn bound(by: BoundCause) -> &'static str {
    match by {
        BoundCause::Generator => "the load generator reached its limit first",
        BoundCause::Machine => "the machine was busy",
        BoundCause::Budget => "the budget was used up",
    }
}

fn gave_out(limit: CapacityLimit) -> &'static str {
    match limit {
        CapacityLimit::Generator => "Limited by the load generator, so the system may carry more",
        CapacityLimit::Server => "Limited by the server itself",
        CapacityLimit::Connections => "Limited by connections",
        CapacityLimit::Memory => "Limited by the server's memory",
        CapacityLimit::Processors => "Limited by the processors",
        CapacityLimit::Thread => "Limited by one thread of the server",
        CapacityLimit::Network => "Limited by network bandwidth",
        CapacityLimit::Losses => "Limited by delivery",
        CapacityLimit::Queue => "Limited by a queue",
        CapacityLimit::Latency => "Limited by latency",
    }
}
