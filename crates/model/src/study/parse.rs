//! Parses a study file: strictly, with every error of the file at once.

use super::axis::{axis_value, known_axis, no_axis, plain};
use super::goal;
use super::upgrade::in_words_of_today;
use super::{Axis, OptionSetting, ReadOptions, Skip, Source, Study, StudyPart};
use crate::claim::Condition;
use crate::diagnostic::{Diagnostic, Diagnostics, meant, suggestion};
use crate::document::{Document, Entry, Scalar, Table};
use crate::flow::{MOST_FLOWS, OWN_KEYS, StudyFlow, why_no_name};
use crate::hosts::Hosts;
use crate::setting::{KEYS, Key, Section, Settings, key};
use crate::system::Systems;
use crate::workload::Transport;
use serde_json::Value;
use std::collections::BTreeMap;

/// The most values of one axis.
const MAX_AXIS: usize = 1_000;

const TABLES: [&str; 19] = [
    "transports",
    "workload",
    "flows",
    "sizes",
    "limits",
    "faults",
    "settings",
    "run",
    "axes",
    "parts",
    "skip",
    "options",
    "claims",
    "questions",
    "reference",
    "hosts",
    "capacity",
    "ab",
    "quick",
];

pub(super) struct Parser<'a> {
    /// The file's text.
    pub text: &'a str,
    pub errors: Vec<Diagnostic>,
    pub study: Study,
    pub quick_settings: Settings,
    pub quick_axes: Vec<Axis>,
    pub quick_parts: Vec<StudyPart>,
    pub has_quick: bool,
    /// Options in the file: the option, the offset of its name, the offset of its value.
    pub options: Vec<(OptionSetting, usize, usize)>,
    /// Offset of the expression of each claim, or of the claim itself.
    pub claims_at: Vec<usize>,
    pub systems: Systems<'a>,
    /// The names of the systems, as suggestions.
    pub names: Vec<String>,
}

impl Study {
    /// Parses a study file. `file` is the name that errors show.
    pub fn parse(
        file: &str,
        text: &str,
        systems: Systems<'_>,
        reading: &ReadOptions<'_>,
    ) -> Result<Study, Diagnostics> {
        let mut errors = Vec::new();
        let text = if reading.recorded { in_words_of_today(text) } else { text.into() };
        let text = text.as_ref();
        let document = Document::parse(text, &mut errors);
        let study = Study {
            systems: Vec::new(),
            title: String::new(),
            question: String::new(),
            baseline: None,
            transports: BTreeMap::new(),
            settings: Settings::default(),
            flows: Vec::new(),
            sizes: BTreeMap::new(),
            traces: BTreeMap::new(),
            payloads: BTreeMap::new(),
            axes: Vec::new(),
            parts: Vec::new(),
            skips: Vec::new(),
            options: Vec::new(),
            claims: Vec::new(),
            questions: None,
            reference: None,
            hosts: Hosts::default(),
            capacity: None,
            ab: None,
            quick: reading.quick,
            recorded: reading.recorded,
        };
        let mut parser = Parser {
            text,
            errors,
            study,
            quick_settings: Settings::default(),
            quick_axes: Vec::new(),
            quick_parts: Vec::new(),
            has_quick: false,
            options: Vec::new(),
            claims_at: Vec::new(),
            systems,
            names: reading.names.iter().map(|name| (*name).to_owned()).collect(),
        };
        if document.sound {
            // Claims name flows, wherever these are in the file.
            let is_flow = |table: &&Table| table.name.starts_with("flows.");
            let (flows, others): (Vec<&Table>, Vec<&Table>) = document.tables.iter().partition(is_flow);
            flows.into_iter().chain(others).for_each(|table| parser.table(table));
            parser.finish(reading);
            parser.study.find_systems(systems);
        }
        let Parser { mut errors, study, .. } = parser;
        if errors.is_empty() {
            return Ok(study);
        }
        errors.sort_by_key(|error| error.offset.unwrap_or(usize::MAX));
        errors.dedup();
        Err(Diagnostics { file: file.into(), text: text.into(), errors })
    }
}

impl Parser<'_> {
    /// Reports an unknown key or word, except in a results folder: there the pubmark that wrote it
    /// knew it, and it is ignored.
    pub(super) fn unknown(&mut self, error: Diagnostic) {
        if !self.study.recorded {
            self.errors.push(error);
        }
    }

    fn table(&mut self, table: &Table) {
        match table.name.split_once('.') {
            None if table.name.is_empty() => self.top(table),
            None => match table.name.as_str() {
                "workload" => self.settings(table, Section::Workload),
                "limits" => self.settings(table, Section::Limits),
                "faults" => self.settings(table, Section::Faults),
                "settings" => self.settings(table, Section::Settings),
                "run" => self.settings(table, Section::Run),
                "transports" => self.transports(table),
                "sizes" => self.sizes(table),
                "traces" => self.traces(table),
                "payloads" => self.payloads(table),
                "axes" => {
                    let axes = self.axes(table, "");
                    self.study.axes.extend(axes);
                }
                "skip" => self.skip(table),
                "options" => self.options(table, None),
                "claims" => self.claim(table),
                "questions" => self.questions(table),
                "reference" => self.reference(table),
                "capacity" => self.study.capacity = goal::read(table, &mut self.errors),
                "ab" => self.study.ab = Some(goal::read_ab(table, &mut self.errors)),
                "quick" => self.quick(table),
                "parts" | "hosts" | "flows" => self.errors.extend(partless(table)),
                name => {
                    let help = suggestion(name, TABLES);
                    self.unknown(Diagnostic::at(table.at, format!("unknown table [{name}]")).help(help));
                }
            },
            Some(("flows", name)) => self.flow(table, name),
            Some(("hosts", name)) => self.study.hosts.read(name, table, &mut self.errors),
            Some(("axes", "options")) => {
                let axes = self.axes(table, "options.");
                self.study.axes.extend(axes);
            }
            Some(("quick", "axes")) => {
                self.has_quick = true;
                let axes = self.axes(table, "");
                self.quick_axes.extend(axes);
            }
            Some(("quick", "axes.options")) => {
                let axes = self.axes(table, "options.");
                self.quick_axes.extend(axes);
            }
            Some(("parts", place)) => {
                let (name, prefix) = place.strip_suffix(".options").map_or((place, ""), |name| (name, "options."));
                let axes = self.axes(table, prefix);
                match self.study.parts.iter_mut().find(|part| part.name == name) {
                    Some(part) => part.axes.extend(axes),
                    None => self.study.parts.push(StudyPart { name: name.to_owned(), axes }),
                }
            }
            Some(("quick", "parts")) => self.errors.extend(partless(table)),
            Some(("quick", place)) if place.starts_with("parts.") => {
                self.has_quick = true;
                let part = StudyPart { name: place["parts.".len()..].to_owned(), axes: self.axes(table, "") };
                if self.study.parts.iter().all(|known| known.name != part.name) {
                    self.errors.push(Diagnostic::at(table.at, format!("there is no part `{}`", part.name)));
                }
                self.quick_parts.push(part);
            }
            Some(("options", system)) => {
                if (self.systems)(system).is_none() {
                    self.errors.push(
                        Diagnostic::at(table.at, format!("unknown system `{system}` in [options.{system}]"))
                            .help("`pubmark systems` lists them"),
                    );
                }
                self.options(table, Some(system));
            }
            Some(("skip", "options")) => {
                let conditions = self.conditions(table, "options.");
                self.study.skips.last_mut().into_iter().for_each(|skip| skip.conditions.extend(conditions.clone()));
            }
            Some(("claims", place @ ("where" | "where.options"))) => {
                let conditions = self.conditions(table, if place == "where" { "" } else { "options." });
                self.study.claims.last_mut().into_iter().for_each(|claim| claim.conditions.extend(conditions.clone()));
            }
            _ => self.unknown(Diagnostic::at(table.at, format!("unknown table [{}]", table.name))),
        }
    }

    fn top(&mut self, table: &Table) {
        for entry in &table.entries {
            match entry.key.as_str() {
                "title" | "question" => {
                    if let Some(value) = entry.one(&mut self.errors) {
                        let field = if entry.key == "title" { &mut self.study.title } else { &mut self.study.question };
                        *field = value.text.clone();
                    }
                }
                "baseline" => {
                    let Some(value) = entry.one(&mut self.errors) else { continue };
                    match axis_value("system", value, self.systems) {
                        Ok(name) => self.study.baseline = name.as_str().map(str::to_owned),
                        Err(error) => self.errors.push(error),
                    }
                }
                name @ ("skip" | "claims") => self
                    .errors
                    .push(Diagnostic::at(entry.key_at, format!("`{name}` is a list of tables: write [[{name}]]"))),
                name if TABLES.contains(&name) => {
                    self.errors.push(Diagnostic::at(entry.key_at, format!("`{name}` is a table: write [{name}]")))
                }
                name if key(name).is_some() => {
                    let section = key(name).map_or("workload", |key| key.section.name());
                    self.errors.push(Diagnostic::at(entry.key_at, format!("`{name}` belongs into [{section}]")));
                }
                _ => self.unknown(
                    entry.unknown("a study file", ["title", "question", "baseline"].into_iter().chain(TABLES)),
                ),
            }
        }
    }

    /// Returns a key that is allowed in this place, and its text.
    fn setting<'e>(
        &mut self,
        entry: &'e Entry,
        place: &str,
        wanted: impl Fn(Section) -> bool,
    ) -> Option<(&'static Key, &'e Scalar)> {
        let known = || KEYS.iter().filter(|key| wanted(key.section)).map(|key| key.name);
        let Some(key) = key(&entry.key).filter(|key| key.name == entry.key) else {
            let names: Vec<&str> = known().collect();
            self.unknown(entry.unknown(place, names));
            return None;
        };
        if !wanted(key.section) {
            self.errors.push(Diagnostic::at(
                entry.key_at,
                format!("`{}` belongs into [{}], not {place}", key.name, key.section.name()),
            ));
            return None;
        }
        Some((key, entry.one(&mut self.errors)?))
    }

    fn settings(&mut self, table: &Table, section: Section) {
        for entry in &table.entries {
            let place = format!("[{}]", section.name());
            let Some((key, value)) = self.setting(entry, &place, |other| other == section) else { continue };
            let set = match self.study.recorded {
                true => key.set_recorded(&mut self.study.settings, &value.text),
                false => key.set(&mut self.study.settings, &value.text),
            };
            if let Err(error) = set {
                self.errors.push(Diagnostic::at_value(value.at, error));
            }
        }
    }

    /// Reads a flow.
    fn flow(&mut self, table: &Table, name: &str) {
        if let Some(why) = why_no_name(name) {
            self.errors.push(Diagnostic::at(table.at, why));
        }
        if self.study.flows.len() == MOST_FLOWS {
            let message = format!("there are more than {MOST_FLOWS} flows");
            return self.errors.push(Diagnostic::at(table.at, message));
        }
        let mut flow = StudyFlow::new(name);
        for entry in &table.entries {
            let place = format!("[flows.{name}]");
            let Some((key, value)) = self.setting(entry, &place, |section| section == Section::Workload) else {
                continue;
            };
            let set = match OWN_KEYS.contains(&key.name) {
                true => flow.set(key.name, &value.text).map_err(|error| error.to_string()),
                false => Err(format!("`{}` is the same for all flows: write it in [workload]", key.name)),
            };
            if let Err(error) = set {
                self.errors.push(Diagnostic::at_value(value.at, error));
            }
        }
        self.study.flows.push(flow);
    }

    /// Reads the transports of single systems, for a study that sets none for all.
    fn transports(&mut self, table: &Table) {
        for entry in &table.entries {
            let Some(value) = entry.one(&mut self.errors) else { continue };
            let system = Scalar { text: entry.key.clone(), at: entry.key_at };
            match (axis_value("system", &system, self.systems), Transport::parse(&value.text)) {
                (Err(error), _) => self.errors.push(error),
                (_, Err(error)) => self.errors.push(Diagnostic::at_value(value.at, error)),
                (Ok(name), Ok(transport)) => {
                    self.study.transports.extend(name.as_str().map(|name| (name.to_owned(), transport)));
                }
            }
        }
    }

    fn quick(&mut self, table: &Table) {
        self.has_quick = true;
        for entry in &table.entries {
            let Some((key, value)) = self.setting(entry, "[quick]", |_| true) else { continue };
            if let Err(error) = key.set(&mut self.quick_settings, &value.text) {
                self.errors.push(Diagnostic::at_value(value.at, error));
            }
        }
    }

    fn axes(&mut self, table: &Table, prefix: &str) -> Vec<Axis> {
        let mut axes = Vec::new();
        for entry in &table.entries {
            let name = format!("{prefix}{}", entry.key);
            if !known_axis(&name) && !self.study.recorded {
                self.errors.push(no_axis(&name, entry.key_at));
                continue;
            }
            if entry.values.len() > MAX_AXIS {
                self.errors
                    .push(Diagnostic::at(entry.key_at, format!("the axis `{name}` has more than {MAX_AXIS} values")));
                continue;
            }
            let mut values: Vec<Value> = Vec::new();
            for scalar in &entry.values {
                match self.axis_value(&name, scalar) {
                    Ok(value) if values.contains(&value) && name.starts_with("options.") => {
                        self.errors.push(Diagnostic::at(scalar.at, format!("a value is twice on the axis `{name}`")));
                    }
                    Ok(value) if values.contains(&value) => {
                        self.errors.push(Diagnostic::at_value(
                            scalar.at,
                            format!("`{}` is twice on the axis `{name}`", scalar.text),
                        ));
                    }
                    Ok(value) => values.push(value),
                    Err(error) => self.errors.push(error),
                }
            }
            if entry.values.is_empty() {
                self.errors.push(Diagnostic::at(entry.key_at, format!("the axis `{name}` has no value")));
            }
            axes.push(Axis { name, values });
        }
        axes
    }

    /// Returns a value on an axis, canonical.
    pub fn axis_value(&self, axis: &str, scalar: &Scalar) -> Result<Value, Diagnostic> {
        if self.study.recorded && !known_axis(axis) {
            return Ok(plain(&scalar.text));
        }
        if self.study.recorded
            && let Some(Ok(value)) = key(axis).map(|key| key.read_recorded(&scalar.text))
        {
            return Ok(value);
        }
        axis_value(axis, scalar, self.systems).map_err(|error| {
            match meant(&scalar.text, self.names.iter().map(String::as_str)) {
                Some(meant) if axis == "system" => {
                    error.help(format!("did you mean {meant}? `pubmark systems` lists them"))
                }
                _ => error,
            }
        })
    }

    /// Reads the conditions of a table.
    fn conditions(&mut self, table: &Table, prefix: &str) -> Vec<(String, Condition)> {
        let wanted = table.entries.iter().filter(|entry| !(table.name == "skip" && entry.key == "why"));
        wanted.filter_map(|entry| self.condition(format!("{prefix}{}", entry.key), entry)).collect()
    }

    fn condition(&mut self, axis: String, entry: &Entry) -> Option<(String, Condition)> {
        if !known_axis(&axis) && !self.study.recorded {
            self.errors.push(no_axis(&axis, entry.key_at));
            return None;
        }
        if entry.values.is_empty() {
            self.errors
                .push(Diagnostic::at(entry.key_at, format!("`{axis}` names no value: the condition would never hold")));
            return None;
        }
        if let [only] = entry.values.as_slice()
            && let Some((most, bound)) = only
                .text
                .strip_prefix("<=")
                .map(|b| (true, b))
                .or_else(|| only.text.strip_prefix(">=").map(|b| (false, b)))
        {
            let bound = Scalar { text: bound.trim().to_owned(), at: only.at };
            return match self.axis_value(&axis, &bound).map(|value| value.as_f64()) {
                Ok(Some(number)) => {
                    Some((axis, if most { Condition::AtMost(number) } else { Condition::AtLeast(number) }))
                }
                Ok(None) => {
                    self.errors.push(Diagnostic::at(only.at, format!("`{axis}` has no order: name its values")));
                    None
                }
                Err(error) => {
                    self.errors.push(error);
                    None
                }
            };
        }
        let mut values = Vec::new();
        for scalar in &entry.values {
            match self.axis_value(&axis, scalar) {
                Ok(value) => values.push(value),
                Err(error) => self.errors.push(error),
            }
        }
        Some((axis, Condition::OneOf(values)))
    }

    fn skip(&mut self, table: &Table) {
        let mut skip = Skip { conditions: self.conditions(table, ""), why: String::new() };
        for entry in table.entries.iter().filter(|entry| entry.key == "why") {
            skip.why = entry.one(&mut self.errors).map(|value| value.text.clone()).unwrap_or_default();
        }
        if skip.why.is_empty() {
            self.errors.push(Diagnostic::at(table.at, "a [[skip]] needs `why`: the report shows it"));
        }
        self.study.skips.push(skip);
    }

    fn options(&mut self, table: &Table, system: Option<&str>) {
        for entry in &table.entries {
            let Some(value) = entry.one(&mut self.errors) else {
                continue;
            };
            let (system, name, text) = (system.map(str::to_owned), entry.key.clone(), value.text.clone());
            let setting = OptionSetting { system, name, text, secret: false };
            self.options.push((setting, entry.key_at, value.at));
        }
    }

    fn reference(&mut self, table: &Table) {
        const KNOWN: [&str; 3] = ["source", "machine", "note"];
        let mut reference = Source::default();
        for entry in &table.entries {
            let text = match entry.key.as_str() {
                "source" => &mut reference.source,
                "machine" => &mut reference.machine,
                "note" => reference.note.get_or_insert_default(),
                _ => {
                    self.unknown(entry.unknown("[reference]", KNOWN));
                    continue;
                }
            };
            *text = entry.one(&mut self.errors).map(|value| value.text.clone()).unwrap_or_default();
        }
        if reference.source.is_empty() || reference.machine.is_empty() {
            self.errors.push(Diagnostic::at(table.at, "[reference] needs `source` and `machine`"));
        }
        self.study.reference = Some(reference);
    }
}

/// Returns the errors of keys that belong to no part, or to no host.
fn partless(table: &Table) -> Vec<Diagnostic> {
    let one = match table.name.as_str() {
        "hosts" => "host",
        "flows" => "flow",
        _ => "part",
    };
    let keys = table.entries.iter();
    keys.map(|entry| {
        Diagnostic::at(entry.key_at, format!("`{}` belongs into a {one}: write [{}.NAME]", entry.key, table.name))
    })
    .collect()
}
