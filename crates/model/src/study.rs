//! A study: systems crossed with workload axes, how often to repeat, and what
//! is claimed.

mod asks;
pub(crate) mod axis;
mod earlier;
mod goal;
mod named;
mod parse;
mod resolve;
mod write;

use crate::ab::ArmsGoal;
use crate::asked::AskedQuestions;
use crate::capacity::{AskedCapacity, CapacityGoal};
use crate::claim::{Claim, Condition};
use crate::figure::Figure;
use crate::hosts::Hosts;
use crate::options::OptionSpec;
use crate::secret_name::is_secret_name;
use crate::setting::{FreshServer, RunSequence, Settings, StopRule, WindowLength, as_typed, key};
use crate::system::{System, Systems};
use crate::workload::Transport;
pub use named::{has_quick_table, named_systems};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// One axis: a key and the values that it takes, in the file's order.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// `system`, a workload or limit key, or `options.NAME`.
    pub name: String,
    /// Its values, canonical, without repeats.
    pub values: Vec<Value>,
}

/// A part of a study: cells of their own, beside those of the other parts. It
/// has the study's axes and settings, but for the keys that it sets itself.
#[derive(Clone, Debug, PartialEq)]
pub struct StudyPart {
    /// Its name: the value of the axis `part`.
    pub name: String,
    /// What it sets: one value, or several to cross.
    pub axes: Vec<Axis>,
}

/// Cells left out, with the reason that the report shows.
#[derive(Clone, Debug, PartialEq)]
pub struct Skip {
    /// Which: all conditions must hold.
    pub conditions: Vec<(String, Condition)>,
    /// Why.
    pub why: String,
}

impl Skip {
    /// Whether the cell at these places on the axes is left out.
    pub fn holds(&self, axes: &Map<String, Value>) -> bool {
        self.conditions.iter().all(|(axis, condition)| axes.get(axis).is_some_and(|value| condition.holds(value)))
    }
}

/// An option set for one system, or for all.
#[derive(Clone, Debug, PartialEq)]
pub struct OptionSetting {
    /// The system, or none for all.
    pub system: Option<String>,
    /// The option.
    pub name: String,
    /// Its value as typed; its kind is the system's to say.
    pub text: String,
    /// Whether its value may be neither shown nor recorded, by any system that it is for.
    pub secret: bool,
}

/// Where the published figures beside a study come from: `[reference]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Source {
    /// Authors, year, title, where.
    pub source: String,
    /// What it was measured on.
    pub machine: String,
    /// What is to be known of all of them.
    pub note: Option<String>,
}

/// A study, checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Study {
    /// The systems that it measures.
    pub systems: Vec<Arc<System>>,
    /// Title of its report.
    pub title: String,
    /// The question that it answers.
    pub question: String,
    /// The system beside which the others are shown, if one was chosen.
    pub baseline: Option<String>,
    /// Transports of single systems, by name, where the study sets none for all.
    pub transports: BTreeMap<String, Transport>,
    /// Workload, limits and run keys that are the same in every cell.
    pub settings: Settings,
    /// What is crossed; `system` is always among them, and first.
    pub axes: Vec<Axis>,
    /// Its parts, if it has any; then `part` is an axis.
    pub parts: Vec<StudyPart>,
    /// What is left out.
    pub skips: Vec<Skip>,
    /// Options that are set.
    pub options: Vec<OptionSetting>,
    /// Published statements that the records decide.
    pub claims: Vec<Claim>,
    /// What is to be decided, where it says so itself.
    pub questions: Option<AskedQuestions>,
    /// Where the published figures beside it come from, if there are any.
    pub reference: Option<Source>,
    /// The machines that it may use; this one, where it names none.
    pub hosts: Hosts,
    /// The objective whose capacity its records say.
    pub capacity: Option<CapacityGoal>,
    /// What is asked of its two arms, if it has arms.
    pub ab: Option<ArmsGoal>,
    /// Whether it was cut down to a coffee break.
    pub quick: bool,
    /// Whether it is only told of, and not to be carried out: see [`ReadOptions::recorded`].
    pub recorded: bool,
}

/// How a study file is to be read.
#[derive(Clone, Debug, Default)]
pub struct ReadOptions<'a> {
    /// Cut down by the file's `[quick]` table, or by thinning.
    pub quick: bool,
    /// `KEY=VALUE` pairs that replace what the file says.
    pub set: &'a [(String, String)],
    /// `AXIS=VALUE[,VALUE…]` pairs that narrow an axis.
    pub only: &'a [(String, String)],
    /// The study of a results folder, whoever wrote it: systems may have options
    /// and abilities that are not known here. Their cells cannot be run.
    pub recorded: bool,
    /// The names of the systems, to be suggested for one that is not known.
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

    /// The system that is named, or else all of the study.
    pub(crate) fn systems_of<'s>(&'s self, system: Option<&'s str>) -> Vec<&'s str> {
        match (system, self.axis("system")) {
            (Some(system), _) => vec![system],
            (None, Some(axis)) => axis.values.iter().filter_map(Value::as_str).collect(),
            (None, None) => Vec::new(),
        }
    }

    /// Whether the value of an option is secret: by what any of the systems says that
    /// have it, or else by its name.
    pub(crate) fn is_secret(&self, system: Option<&str>, option: &str, systems: Systems<'_>) -> bool {
        let named = self.systems_of(system).into_iter().filter_map(systems);
        let secret = named.filter_map(|system| system.option(option).map(OptionSpec::is_secret));
        secret.reduce(|one, other| one || other).unwrap_or_else(|| is_secret_name(option))
    }

    /// The axis of this name.
    pub fn axis(&self, name: &str) -> Option<&Axis> {
        self.axes.iter().find(|axis| axis.name == name)
    }

    /// Every axis of every part, each once.
    pub fn axis_names(&self) -> Vec<&str> {
        let all = self.axes.iter().chain(self.parts.iter().flat_map(|part| &part.axes));
        let mut names: Vec<&str> = Vec::new();
        for axis in all {
            if !names.contains(&axis.name.as_str()) {
                names.push(&axis.name);
            }
        }
        names
    }

    /// Whether a part sets this key by itself.
    pub fn varies_by_part(&self, name: &str) -> bool {
        self.parts.iter().any(|part| part.axes.iter().any(|axis| axis.name == name))
    }

    /// Makes axes of one value of these settings, so that cells name them.
    pub fn lift(&mut self, names: &[&str]) {
        for name in names {
            if let Some(value) = key(name).and_then(|key| key.take(&mut self.settings)) {
                self.axes.push(Axis { name: (*name).to_owned(), values: vec![value] });
            }
        }
    }

    /// Makes what its only part sets the study's own, so that it has no parts;
    /// what is claimed of the parts goes. A study without parts stays as it is.
    ///
    /// # Errors
    /// The names of its parts, where there are several.
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

    /// The study with this of its parts alone, and so without parts. Of a study that
    /// has none, itself.
    pub fn of_part(&self, part: Option<&str>) -> Study {
        let mut own = self.clone();
        if let Some(name) = part {
            own.axes.iter_mut().filter(|axis| axis.name == "part").for_each(|axis| axis.values = vec![name.into()]);
            own.parts.retain(|part| part.name == name);
            // One part is left, so it is the one.
            let _ = own.without_parts();
        }
        own
    }

    /// Its parts that are measured, by name; one without a name of a study that has none.
    pub fn chosen_parts(&self) -> Vec<Option<String>> {
        match self.axis("part") {
            Some(axis) => axis.values.iter().map(|part| Some(as_typed(part))).collect(),
            None => vec![None],
        }
    }

    /// What it asks a search for: the capacity of its cells.
    pub fn asked_capacity(&self) -> Option<(&CapacityGoal, &AskedCapacity)> {
        self.capacity.as_ref().and_then(|goal| Some((goal, goal.asked.as_ref()?)))
    }

    /// What its own records say the capacity of: steps of a search, or a study's loads.
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

    /// Lets windows be as short as what is asked allows, unless the study says how long
    /// they are to be.
    pub fn shorten_windows(&mut self) {
        self.settings.windows.get_or_insert(WindowLength::Asked);
    }

    /// The same study with its windows as long as its file says.
    pub fn with_whole_windows(&self) -> Study {
        let mut study = self.clone();
        study.settings.windows = None;
        study
    }

    /// Whether blocks are made until its questions are decided: then nothing says
    /// before how many runs a cell will have.
    pub fn until_decided(&self) -> bool {
        self.settings.stop == Some(StopRule::Decided)
    }

    /// What is to be decided: as it says itself, or else its claims and who is best at
    /// each point.
    pub fn asks(&self) -> AskedQuestions {
        self.questions.clone().unwrap_or_default()
    }

    /// The figures that systems are ranked by: those of every report, and those of its
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

    /// The seed of everything random.
    pub fn seed(&self) -> u64 {
        self.settings.seed().0
    }

    /// Systems tie that are shown to differ by less than this, as a fraction.
    pub fn tie(&self) -> f64 {
        self.settings.tie().0 / 100.0
    }

    /// Whether each processor is kept awake while a run is on.
    pub fn awake(&self) -> bool {
        self.settings.awake()
    }

    /// For how long a server is there that is started for its runs.
    pub fn fresh(&self) -> FreshServer {
        self.settings.fresh.unwrap_or(FreshServer::Run)
    }

    /// Whether a short search follows the runs: see [`crate::capacity::HEADROOM`].
    pub fn headroom(&self) -> bool {
        self.settings.headroom == Some(true)
    }

    /// Whether systems alternate within a repeat.
    pub fn interleaved(&self) -> bool {
        self.settings.order() == RunSequence::Interleaved
    }
}
