//! A study: systems combined with workload axes, the number of repeats, and the claims.

pub(crate) mod axis;
mod flows;
mod goal;
mod parse;
mod payloads;
mod questions;
mod resolve;
mod sizes;
mod system_names;
mod traces;
mod upgrade;
mod write;

use crate::ab::ArmsGoal;
use crate::capacity::{AskedCapacity, CapacityGoal, LoadAxis};
use crate::claim::{Claim, Condition};
use crate::figure::Figure;
use crate::flow::{ALL, FLOW, StudyFlow};
use crate::hosts::Hosts;
use crate::options::OptionSpec;
use crate::payload::{PayloadFiles, SizeFiles};
use crate::power::Power;
use crate::profile::trace::TraceFiles;
use crate::promise::Promise;
use crate::question::AskedQuestions;
use crate::secret_name::is_secret_name;
use crate::setting::{FreshServer, RunSequence, Settings, StopRule, WindowLength, as_typed, key};
use crate::system::{System, Systems};
use crate::workload::Transport;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;
pub use system_names::{has_quick_table, named_systems};

/// One axis: a key and the values that it takes, in the file's order.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// `system`, a workload or limit key, or `options.NAME`.
    pub name: String,
    /// Its values, canonical, without repeats.
    pub values: Vec<Value>,
}

/// A part of a study: cells of its own, in addition to those of the other parts. It has the study's
/// axes and settings, except for the keys that it sets itself.
#[derive(Clone, Debug, PartialEq)]
pub struct StudyPart {
    /// Its name: the value of the axis `part`.
    pub name: String,
    /// The keys that it sets: one value each, or several to combine.
    pub axes: Vec<Axis>,
}

/// Cells that are skipped, with the reason that the report shows.
#[derive(Clone, Debug, PartialEq)]
pub struct Skip {
    /// Conditions that select the cells; all must hold.
    pub conditions: Vec<(String, Condition)>,
    /// The reason.
    pub why: String,
}

impl Skip {
    /// True if the cell at these places on the axes is skipped.
    pub fn holds(&self, axes: &Map<String, Value>) -> bool {
        self.conditions.iter().all(|(axis, condition)| axes.get(axis).is_some_and(|value| condition.holds(value)))
    }
}

/// An option set for one system, or for all.
#[derive(Clone, Debug, PartialEq)]
pub struct OptionSetting {
    /// The system; `None` for all.
    pub system: Option<String>,
    /// The option.
    pub name: String,
    /// Its value as typed; the system defines its kind.
    pub text: String,
    /// True if its value must not be shown or recorded, according to any system that it is for.
    pub secret: bool,
}

/// Source of the published figures beside a study: `[reference]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Source {
    /// Authors, year, title and publisher.
    pub source: String,
    /// The machine of the measurement.
    pub machine: String,
    /// Remark on all of the figures.
    pub note: Option<String>,
}

/// A validated study.
#[derive(Clone, Debug, PartialEq)]
pub struct Study {
    /// The systems that it measures.
    pub systems: Vec<Arc<System>>,
    /// Title of its report.
    pub title: String,
    /// The question that it answers.
    pub question: String,
    /// The system that the others are compared with, if one was chosen.
    pub baseline: Option<String>,
    /// Transports of single systems, by name, if the study sets none for all.
    pub transports: BTreeMap<String, Transport>,
    /// Workload, limits and run keys that are the same in every cell.
    pub settings: Settings,
    /// Its flows; if there are none, a run has one with the keys of `[workload]`.
    pub flows: Vec<StudyFlow>,
    /// The sizes of the files that payloads name.
    pub sizes: SizeFiles,
    /// The traces that it replays.
    pub traces: TraceFiles,
    /// The files of messages that it sends.
    pub payloads: PayloadFiles,
    /// The axes to combine; `system` is always among them, and first.
    pub axes: Vec<Axis>,
    /// Its parts, if it has any; then `part` is an axis.
    pub parts: Vec<StudyPart>,
    /// Cells that are skipped.
    pub skips: Vec<Skip>,
    /// Options that are set.
    pub options: Vec<OptionSetting>,
    /// Published statements that the records test.
    pub claims: Vec<Claim>,
    /// The questions to decide, if the study names them.
    pub questions: Option<AskedQuestions>,
    /// Source of the published figures beside it, if there are any.
    pub reference: Option<Source>,
    /// The machines that it may use. Default: this one.
    pub hosts: Hosts,
    /// The objective whose capacity is computed from its records.
    pub capacity: Option<CapacityGoal>,
    /// The question about its two arms, if it has arms.
    pub ab: Option<ArmsGoal>,
    /// True if it was shortened to a few minutes.
    pub quick: bool,
    /// True if it is only read for a report, and cannot be run: see [`ReadOptions::recorded`].
    pub recorded: bool,
}

/// Options for reading a study file.
#[derive(Clone, Debug, Default)]
pub struct ReadOptions<'a> {
    /// Shortens the study by the file's `[quick]` table, or by thinning.
    pub quick: bool,
    /// `KEY=VALUE` pairs that override the file.
    pub set: &'a [(String, String)],
    /// `AXIS=VALUE[,VALUE…]` pairs that narrow an axis.
    pub only: &'a [(String, String)],
    /// Reads the study of a results folder, from any version: systems may have unknown options and
    /// features. Their cells cannot be run.
    pub recorded: bool,
    /// The names of the systems, as suggestions for an unknown one.
    pub names: &'a [&'a str],
}

impl Study {
    /// Looks up the systems of its axis.
    pub(crate) fn find_systems(&mut self, systems: Systems<'_>) {
        self.systems = self.systems_of(None).into_iter().filter_map(systems).collect();
    }

    /// Finds one of its systems by name.
    pub fn system(&self, name: &str) -> Option<&Arc<System>> {
        self.systems.iter().find(|system| system.name == name)
    }

    /// Returns the named system, or else all of the study.
    pub(crate) fn systems_of<'s>(&'s self, system: Option<&'s str>) -> Vec<&'s str> {
        match (system, self.axis("system")) {
            (Some(system), _) => vec![system],
            (None, Some(axis)) => axis.values.iter().filter_map(Value::as_str).collect(),
            (None, None) => Vec::new(),
        }
    }

    /// True if the value of an option is secret: according to any of the systems that have it, or
    /// else by its name.
    pub(crate) fn is_secret(&self, system: Option<&str>, option: &str, systems: Systems<'_>) -> bool {
        let named = self.systems_of(system).into_iter().filter_map(systems);
        let secret = named.filter_map(|system| system.option(option).map(OptionSpec::is_secret));
        secret.reduce(|one, other| one || other).unwrap_or_else(|| is_secret_name(option))
    }

    /// Returns the axis of this name.
    pub fn axis(&self, name: &str) -> Option<&Axis> {
        self.axes.iter().find(|axis| axis.name == name)
    }

    /// Returns the names of every axis of every part, each once.
    pub fn axis_names(&self) -> Vec<&str> {
        let all = self.axes.iter().chain(self.parts.iter().flat_map(|part| &part.axes));
        let mut names: Vec<&str> = Vec::new();
        for axis in all {
            if !names.contains(&axis.name.as_str()) {
                names.push(&axis.name);
            }
        }
        if !self.flows.is_empty() && !names.contains(&FLOW) {
            names.push(FLOW);
        }
        names
    }

    /// True if a part sets this key.
    pub fn varies_by_part(&self, name: &str) -> bool {
        self.parts.iter().any(|part| part.axes.iter().any(|axis| axis.name == name))
    }

    /// Returns the study with its flows as an axis, by which a report tells their results apart. A study without flows
    /// is unchanged.
    #[must_use]
    pub fn by_flow(mut self) -> Study {
        if !self.flows.is_empty() && self.axis(FLOW).is_none() {
            let names = self.flows.iter().map(|flow| flow.name.as_str()).chain([ALL]).map(Value::from).collect();
            self.axes.push(Axis { name: FLOW.into(), values: names });
        }
        self
    }

    /// Turns these settings into axes of one value, so that cells name them.
    pub fn lift(&mut self, names: &[&str]) {
        for name in names {
            if let Some(value) = key(name).and_then(|key| key.take(&mut self.settings)) {
                self.axes.push(Axis { name: (*name).to_owned(), values: vec![value] });
            }
        }
    }

    /// Moves the keys of its only part into the study, so that it has no parts; claims about the
    /// part are removed. A study without parts is unchanged.
    ///
    /// # Errors
    /// Returns the names of its parts if there are several.
    pub fn without_parts(&mut self) -> Result<(), Vec<String>> {
        let Some(chosen) = self.axis("part").map(|axis| axis.values.clone()) else { return Ok(()) };
        let [name] = chosen.as_slice() else { return Err(chosen.iter().map(as_typed).collect()) };
        self.axes.retain(|axis| axis.name != "part");
        let parts = std::mem::take(&mut self.parts);
        for own in parts.into_iter().filter(|part| *name == part.name.as_str()).flat_map(|part| part.axes) {
            if let Some(key) = key(&own.name) {
                key.take(&mut self.settings);
            }
            match self.axes.iter_mut().find(|axis| axis.name == own.name) {
                Some(axis) => *axis = own,
                None => self.axes.push(own),
            }
        }
        self.skips.retain_mut(|skip| {
            let here = skip.conditions.iter().all(|(axis, condition)| axis != "part" || condition.holds(name));
            skip.conditions.retain(|(axis, _)| axis != "part");
            here
        });
        self.claims.clear();
        Ok(())
    }

    /// Returns a study of this part alone, and so without parts; a copy if the study has none.
    pub fn of_part(&self, part: Option<&str>) -> Study {
        let mut own = self.clone();
        if let Some(name) = part {
            own.axes.iter_mut().filter(|axis| axis.name == "part").for_each(|axis| axis.values = vec![name.into()]);
            own.parts.retain(|part| part.name == name);
            // One part is left, so this cannot fail.
            let _ = own.without_parts();
        }
        own
    }

    /// Returns the names of its parts that are measured; one `None` for a study without parts.
    pub fn chosen_parts(&self) -> Vec<Option<String>> {
        match self.axis("part") {
            Some(axis) => axis.values.iter().map(|part| Some(as_typed(part))).collect(),
            None => vec![None],
        }
    }

    /// Returns the capacity of its cells that it asks a search for.
    pub fn asked_capacity(&self) -> Option<(&CapacityGoal, &AskedCapacity)> {
        self.capacity.as_ref().and_then(|goal| Some((goal, goal.asked.as_ref()?)))
    }

    /// Returns the load over which the capacity of a part is searched; `None` if the study has no
    /// capacity.
    pub fn searched_over(&self, part: Option<&str>) -> Option<LoadAxis> {
        let goal = self.capacity.as_ref()?;
        let own = self.parts.iter().find(|own| Some(own.name.as_str()) == part);
        let is_set =
            |over: &LoadAxis| own.is_some_and(|own| own.axes.iter().any(|axis| axis.name == goal.key_of(*over)));
        Some(goal.loads().find(is_set).unwrap_or(goal.over))
    }

    /// Returns the capacity that is computed from its own records: steps of a search, or a study's
    /// loads.
    pub fn recorded_capacity(&self) -> Option<&CapacityGoal> {
        self.capacity.as_ref().filter(|goal| goal.asked.is_none())
    }

    /// Adds repeats to those of each cell.
    pub fn add_repeats(&mut self, more: u32) {
        let mut repeats = self.settings.repeats();
        repeats.0 = repeats.0.saturating_add(more);
        self.settings.repeats = Some(repeats);
    }

    /// Runs of each cell.
    pub fn repeats(&self) -> u32 {
        self.settings.repeats().0
    }

    /// Shortens windows as far as the requested figures allow, unless the study sets their rule.
    pub fn shorten_windows(&mut self) {
        self.settings.windows.get_or_insert(WindowLength::Asked);
    }

    /// Returns the study with its windows as long as its file says.
    pub fn with_whole_windows(&self) -> Study {
        let mut study = self.clone();
        study.settings.windows = None;
        study
    }

    /// True if repeats continue until its questions are decided; the number of runs of a cell is
    /// then not known in advance.
    pub fn until_decided(&self) -> bool {
        self.settings.stop == Some(StopRule::Decided)
    }

    /// Returns the questions to decide: those that it names, or else its claims and the best system
    /// at each point.
    pub fn asks(&self) -> AskedQuestions {
        self.questions.clone().unwrap_or_default()
    }

    /// Returns the figures that systems are ranked by: those of every report, and those of its
    /// claims and questions.
    pub fn ranked_figures(&self) -> Vec<Figure> {
        let claimed = self.claims.iter().flat_map(|claim| claim.statement.ranked_figures());
        let asked = self.questions.iter().flat_map(|asked| asked.best.iter().copied().flatten());
        let mut figures: Vec<Figure> = Figure::RANKED.into();
        for figure in claimed.chain(asked) {
            if !figures.contains(&figure) {
                figures.push(figure);
            }
        }
        figures
    }

    /// Returns the promise that ranked systems must not have broken, if the study names one.
    pub fn promise(&self) -> Option<Promise> {
        self.settings.promise
    }

    /// Returns what servers' folders lie on while their power is cut, if the study says so.
    pub fn power(&self) -> Option<Power> {
        self.settings.power
    }

    /// Sets that promise.
    pub fn set_promise(&mut self, promise: Promise) {
        self.settings.promise = Some(promise);
    }

    /// Returns the seed of everything random.
    pub fn seed(&self) -> u64 {
        self.settings.seed().0
    }

    /// Returns the difference below which systems tie, as a fraction.
    pub fn tie(&self) -> f64 {
        self.settings.tie().0 / 100.0
    }

    /// True if each processor is kept awake during a run.
    pub fn awake(&self) -> bool {
        self.settings.awake()
    }

    /// Returns the lifetime of a server that is started for its runs.
    pub fn fresh(&self) -> FreshServer {
        self.settings.fresh.unwrap_or(FreshServer::Run)
    }

    /// True if a short search follows the runs: see [`crate::capacity::HEADROOM`].
    pub fn headroom(&self) -> bool {
        self.settings.headroom == Some(true)
    }

    /// True if systems alternate within a repeat.
    pub fn interleaved(&self) -> bool {
        self.settings.order() == RunSequence::Interleaved
    }
}
