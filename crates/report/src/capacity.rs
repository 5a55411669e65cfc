//! The capacity that the records of a study say, where it names an objective.

use crate::document::{Entry, Head, Mark, Note, Row, Table};
use crate::report::Report;
use crate::text::{bytes, clean, count, number, time};
use pubmark_model::capacity::{
    CapacityAnswer, CapacityClimb, CapacityGoal, CapacityLimit, CapacityStep, LoadAxis, StepOutcome,
};
use pubmark_model::cell::label;
use pubmark_model::record::RunRecord;
use pubmark_stats::median;
use serde_json::{Value, json};

/// Longest evidence and name that are shown, characters.
const PROSE_CHARS: usize = 300;
/// Axes on which the steps of one search differ, beside the key that is turned up.
const OF_STEPS: [&str; 2] = ["part", "duration"];

/// The capacity of a system under a workload.
#[derive(Clone, Debug)]
pub struct CapacityResult {
    /// Which, in words.
    pub label: String,
    /// Its steps, and what they say.
    pub climb: CapacityClimb,
}

impl CapacityResult {
    /// What the steps say together.
    pub fn answer(&self) -> CapacityAnswer {
        self.climb.answer()
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
        if answer.confirmed {
            text.push_str(" A run of full length held at the low end.");
        }
        if answer.disturbed > 0 {
            text.push_str(&format!(
                " {} of {} steps failed while others used the machine: alone on it the system may carry more.",
                answer.disturbed,
                self.climb.steps().len()
            ));
        }
        text
    }

    /// As JSON: the answer, what was asked, and each step.
    pub fn json(&self) -> Value {
        let goal = self.climb.goal();
        let mut all = json!(self.answer());
        all["cell"] = self.label.as_str().into();
        all["until"] = goal.until.to_string().into();
        all["over"] = goal.over.word().into();
        all["unit"] = goal.over.unit().into();
        all["within"] = goal.within.into();
        all["steps"] = json!(self.climb.steps());
        all
    }

    /// Offered to delivered, a row for each load.
    pub(crate) fn table(&self) -> Table {
        let over = self.climb.goal().over;
        let figure = |name: &str, expendable| Head { name: name.into(), is_figure: true, is_axis: false, expendable };
        let mut heads = vec![figure("offered/s", 0), figure("delivered/s", 0), figure("p50", 3), figure("p99", 0)];
        heads.extend([figure("server CPU", 2), figure("server memory", 4), figure("held", 0)]);
        heads.push(Head { name: "otherwise".into(), is_figure: false, is_axis: false, expendable: 1 });
        if over != LoadAxis::Rate {
            heads.insert(0, figure(over.word(), 0));
        }
        let mut loads: Vec<f64> = self.climb.steps().iter().map(|step| step.load).collect();
        loads.sort_by(f64::total_cmp);
        loads.dedup();
        let rows = loads.iter().map(|load| self.row(*load, over)).collect();
        let mut notes = Vec::new();
        if self.climb.steps().iter().any(|step| !step.counts) {
            notes.push(Note::on_rows("steps that say nothing of the system were made again, and do not count".into()));
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

    fn row(&self, load: f64, over: LoadAxis) -> Row {
        let steps: Vec<&CapacityStep> = self.climb.steps().iter().filter(|step| step.load == load).collect();
        let middle = |of: &dyn Fn(&CapacityStep) -> Option<f64>, show: &dyn Fn(f64) -> String| {
            let values: Vec<f64> = steps.iter().filter_map(|step| of(step)).collect();
            median(&values).map_or_else(Entry::none, |value| Entry::plain(show(value)))
        };
        let counted = steps.iter().filter(|step| step.counts);
        let held = counted.clone().filter(|step| step.outcome == StepOutcome::Held).count();
        let otherwise = steps.iter().find(|step| step.outcome != StepOutcome::Held).map_or(String::new(), |step| {
            let why = step.unmet.first().or(step.evidence.as_ref()).map_or("", String::as_str);
            let why = clean(why, 60);
            match step.outcome {
                StepOutcome::Failed => why,
                outcome => format!("{outcome}: {why}"),
            }
        });
        let mut entries = vec![
            middle(&|step| Some(step.offered_per_s), &count),
            middle(&|step| Some(step.delivered_per_s), &count),
            middle(&|step| step.p50_ns.map(|ns| ns as f64), &time),
            middle(&|step| step.p99_ns.map(|ns| ns as f64), &time),
            middle(&|step| step.server_cpu_cores, &number),
            middle(&|step| step.server_rss_bytes.map(|rss| rss as f64), &bytes),
            Entry::plain(format!("{held} of {}", counted.count())),
            Entry::plain(otherwise),
        ];
        if over != LoadAxis::Rate {
            entries.insert(0, Entry::plain(format!("{load}")));
        }
        let mark = if held * 2 >= steps.len() { Mark::Plain } else { Mark::Muted };
        Row { entries, mark, bar: None }
    }
}

fn found(goal: &CapacityGoal, answer: &CapacityAnswer) -> String {
    let unit = goal.over.unit();
    let show = |load: f64| match goal.over {
        LoadAxis::Rate => number(load),
        LoadAxis::Payload => bytes(load),
        _ => format!("{:.0}", load.floor()),
    };
    match (answer.estimate, answer.lo, answer.hi) {
        (Some(_), Some(lo), None) => format!("holds up to {} {unit} at least.", show(lo)),
        (Some(estimate), Some(lo), Some(hi)) => format!(
            "holds up to {} {unit} ({} to {}, {:.0} %{}).",
            show(estimate),
            show(lo),
            show(hi),
            answer.level * 100.0,
            if answer.settled { "" } else { "; the search was not over" }
        ),
        (None, Some(lo), None) => format!("held at {} {unit}, and no higher load was asked.", show(lo)),
        (None, None, Some(hi)) => format!("did not hold at {} {unit}, nor at any load that was asked.", show(hi)),
        _ => "has no answer: there is no step that says anything of the system.".into(),
    }
}

fn gave_out(limit: CapacityLimit) -> &'static str {
    match limit {
        CapacityLimit::Generator => "What gave out first is the load generator, so the system may carry more",
        CapacityLimit::Server => "What gave out first is the server itself",
        CapacityLimit::Connections => "What gave out first are connections",
        CapacityLimit::Memory => "What gave out first is the server's memory",
        CapacityLimit::Processors => "What gave out first are the processors",
        CapacityLimit::Thread => "What gave out first is one thread of the server",
        CapacityLimit::Losses => "What gave out first is delivery",
        CapacityLimit::Queue => "What gave out first is a queue",
        CapacityLimit::Latency => "What gave out first is latency",
    }
}

impl Report {
    /// The capacities that the records say: one for each system and workload, where
    /// the study names an objective.
    pub fn capacities(&self) -> Vec<CapacityResult> {
        let Some(goal) = &self.study().capacity else { return Vec::new() };
        let mut groups: Vec<(String, Vec<&RunRecord>)> = Vec::new();
        for run in self.runs() {
            let mut axes = run.cell.clone();
            axes.retain(|name, _| name != goal.over.key() && !OF_STEPS.contains(&name.as_str()));
            let label = label(&axes);
            match groups.iter_mut().find(|(known, _)| *known == label) {
                Some((_, runs)) => runs.push(run),
                None => groups.push((label, vec![run])),
            }
        }
        let result = |(label, runs)| CapacityResult { label, climb: CapacityClimb::of(goal, runs) };
        groups.into_iter().map(result).collect()
    }
}
