//! Steps after the tables of a study file are read: shortening, overrides, and checks across
//! tables.

use super::axis::{PART, axis_names, listed, plain, split};
use super::parse::Parser;
use super::{Axis, OptionSetting, ReadOptions};
use crate::claim::{Claim, Condition, Statement};
use crate::diagnostic::{Diagnostic, suggestion};
use crate::document::Scalar;
use crate::flow::{ALL, FLOW, split_place};
use crate::options::{OptionSpec, common};
use crate::secret::{HIDDEN, may_be_secret_name, recorded_text, secret};
use crate::setting::{KEYS, Time, WINDOW, as_typed, key};
use crate::units::{MILLISECOND, SECOND};
use serde_json::Value;

impl Parser<'_> {
    pub fn finish(&mut self, reading: &ReadOptions<'_>) {
        if self.study.title.is_empty() {
            self.errors.push(Diagnostic::whole("`title` is missing"));
        }
        self.check_places();
        if reading.quick {
            self.cut();
        }
        self.name_parts(reading);
        self.check_options();
        for (name, text) in reading.set {
            if let Err(error) = self.set(name, text) {
                let message = format!("--set {}: {}", self.typed(name, text), error.message);
                self.errors.push(Diagnostic { message, offset: None, ..error });
            }
        }
        for (name, text) in reading.only {
            if let Err(error) = self.only(name, text) {
                let message = format!("--only {}: {}", self.typed(name, text), error.message);
                self.errors.push(Diagnostic { message, offset: None, ..error });
            }
        }
        let known: Vec<String> = self.study.axis_names().into_iter().map(str::to_owned).collect();
        if let Some(left) = self.study.axis(PART).map(|axis| axis.values.clone()) {
            self.study.parts.retain(|part| left.iter().any(|name| *name == part.name.as_str()));
            self.leave_out_searches(&left);
        }
        self.check_secrets();
        self.check_flows();
        self.check_sizes();
        for axis in &self.study.axes {
            if self.study.settings.get(&axis.name).is_some() {
                self.errors.push(Diagnostic::whole(format!(
                    "`{}` is set and is an axis too: leave one of them out",
                    axis.name
                )));
            }
        }
        if self.study.axis("system").is_none() {
            self.errors.push(
                Diagnostic::whole("no system is named")
                    .help("write [axes] with system = [\"zeromq\", …]; `pubmark systems` lists them"),
            );
        }
        self.study.axes.sort_by_key(|axis| axis.name != "system");
        let mut names: Vec<&str> = self.study.axes.iter().map(|axis| axis.name.as_str()).collect();
        names.sort_unstable();
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            self.errors.push(Diagnostic::whole(format!("`{}` is an axis twice", pair[0])));
        }
        self.check_conditions(&known);
        for index in 0..self.study.claims.len() {
            self.study.claims[index].narrowed = !self.misplaced(&self.study.claims[index]).is_empty();
        }
        let (warmup, unset) = (self.study.settings.warmup, self.replaced_by_files());
        let mut settings = std::mem::take(&mut self.study.settings).with_defaults();
        if self.leaves_warmup_open() {
            settings.warmup = warmup;
        }
        unset.iter().for_each(|key| drop(key.take(&mut settings)));
        let on_axis = |name: &str| self.study.axis(name).is_some();
        if settings.count.is_none() && !on_axis("count") {
            settings.duration.get_or_insert(WINDOW);
        }
        for key in KEYS.iter().filter(|key| on_axis(key.name)) {
            key.take(&mut settings);
        }
        self.study.settings = settings;
    }

    /// Removes the capacity searches of parts that are left out.
    fn leave_out_searches(&mut self, parts: &[Value]) {
        let Some(asked) = self.study.capacity.as_mut().and_then(|goal| goal.asked.as_mut()) else { return };
        let named = !asked.parts.is_empty();
        asked.parts.retain(|name| parts.iter().any(|part| part == name.as_str()));
        if named && asked.parts.is_empty() {
            self.study.capacity = None;
        }
    }

    /// True if the study leaves the warm-up to each system.
    fn leaves_warmup_open(&self) -> bool {
        let names = self.study.axis("system").into_iter().flat_map(|axis| &axis.values).filter_map(Value::as_str);
        names.filter_map(|name| (self.systems)(name)).any(|system| system.warmup_ns.or(system.warmup_max_ns).is_some())
    }

    /// Checks that the places that expressions name are places of the study as in the file.
    fn check_places(&mut self) {
        if self.study.recorded {
            return;
        }
        let mut wrong: Vec<Diagnostic> = Vec::new();
        for (claim, at) in self.study.claims.iter().zip(&self.claims_at).filter(|(claim, _)| !claim.narrowed) {
            let Statement::Says(expression) = &claim.statement else { continue };
            wrong.extend(self.misplaced(claim).into_iter().map(|error| {
                let within = expression.text.find(&error.word).unwrap_or(0);
                Diagnostic::at_value(at + within, format!("claim {}: {}", claim.id, error.message)).help(error.help)
            }));
        }
        self.errors.extend(wrong);
    }

    /// Returns the places that an expression names and that the study lacks, with those it has.
    fn misplaced(&self, claim: &Claim) -> Vec<Misplaced> {
        let Statement::Says(expression) = &claim.statement else { return Vec::new() };
        let mut wrong: Vec<Misplaced> = Vec::new();
        let mut add = |word: &str, message: String, help: String| {
            wrong.push(Misplaced { word: word.to_owned(), message, help });
        };
        let mut searched: Vec<&str> = Vec::new();
        expression.root.searches(&mut |over| searched.push(over));
        for over in searched {
            match &self.study.capacity {
                None => add(
                    over,
                    "it asks for a capacity, and the study has no [capacity]".into(),
                    "write [capacity] with `objective` and `over`".into(),
                ),
                Some(goal) if !over.is_empty() && goal.loads().all(|known| goal.key_of(known) != over) => add(
                    over,
                    format!("it asks for a capacity over `{over}`, and [capacity] searches over `{}`", goal.over),
                    format!("write capacity(SYSTEM, {})", goal.key()),
                ),
                Some(_) => {}
            }
        }
        let of_parts: Vec<&Axis> = self.study.parts.iter().flat_map(|part| &part.axes).collect();
        expression.root.places(&mut |axis, value| {
            if axis == "system" || value.is_some_and(Value::is_null) {
                return;
            }
            let all = self.study.axes.iter().chain(of_parts.iter().copied()).filter(|known| known.name == axis);
            let mut known: Vec<Value> = all.flat_map(|axis| axis.values.clone()).collect();
            if axis == PART && known.is_empty() {
                known = self.study.parts.iter().map(|part| part.name.as_str().into()).collect();
            }
            if axis == FLOW && !self.study.flows.is_empty() {
                let names = self.study.flows.iter().map(|flow| flow.name.as_str());
                known = names.chain([ALL]).map(Value::from).collect();
            }
            let shown = |values: &[Value]| values.iter().map(as_typed).collect::<Vec<_>>().join(", ");
            match value {
                _ if known.is_empty() => {
                    let mut names = self.study.axis_names();
                    names.extend((!self.study.parts.is_empty()).then_some(PART));
                    add(axis, format!("`{axis}` is not an axis of this study"), suggestion(axis, names));
                }
                Some(value) if !known.contains(value) => {
                    let secret = axis.starts_with("options.");
                    let typed = if secret { "the value".to_owned() } else { format!("`{}`", as_typed(value)) };
                    let help = format!("its values: {}", shown(&known));
                    add(axis, format!("{typed} is not on the axis `{axis}`"), help);
                }
                _ => {}
            }
        });
        wrong.dedup();
        wrong
    }

    /// Checks that conditions name axes. Conditions on parts that are left out are removed with
    /// them.
    fn check_conditions(&mut self, known: &[String]) {
        let skips = self.study.skips.iter().flat_map(|skip| &skip.conditions);
        let claims = self.study.claims.iter().flat_map(|claim| &claim.conditions);
        for (name, _) in skips.chain(claims) {
            if !known.contains(name) {
                self.errors.push(
                    Diagnostic::whole(format!("a condition names `{name}`, which is not an axis of this study"))
                        .help(format!("its axes: {}", known.join(", "))),
                );
            }
        }
        let left: Vec<String> = self.study.axis_names().into_iter().map(str::to_owned).collect();
        let stays = |conditions: &[(String, Condition)]| conditions.iter().all(|(name, _)| left.contains(name));
        self.study.skips.retain(|skip| stays(&skip.conditions));
        self.study.claims.retain(|claim| stays(&claim.conditions));
    }

    /// Makes the names of the parts an axis. The parts that `--only` selects stay, and a part that
    /// it names stays in a shortened study, too.
    fn name_parts(&mut self, reading: &ReadOptions<'_>) {
        let of_quick = self.quick_axes.iter().position(|axis| axis.name == PART).map(|at| self.quick_axes.remove(at));
        if self.study.axis(PART).is_some() {
            self.errors.push(
                Diagnostic::whole("`part` is an axis by itself where there are parts")
                    .help("write [parts.NAME] tables"),
            );
        } else if !self.study.parts.is_empty() {
            let all: Vec<Value> = self.study.parts.iter().map(|part| part.name.as_str().into()).collect();
            let mut values = all.clone();
            if let Some(few) = of_quick {
                if let Some(missing) = few.values.iter().find(|name| !all.contains(name)) {
                    self.errors
                        .push(Diagnostic::whole(format!("[quick.axes] names the part {missing}: there is none")));
                } else if reading.quick {
                    let wanted = reading.only.iter().filter(|(name, _)| name == PART);
                    let wanted: Vec<&str> = wanted.flat_map(|(_, text)| text.split(',')).map(str::trim).collect();
                    let named = |name: &&Value| wanted.contains(&name.as_str().unwrap_or_default());
                    values = all.iter().filter(|name| few.values.contains(name) || named(name)).cloned().collect();
                }
            }
            self.study.axes.push(Axis { name: PART.into(), values });
        }
        let of_parts = self.study.parts.iter().flat_map(|part| &part.axes);
        if self.study.axes.iter().chain(of_parts).any(|axis| axis.name == FLOW) {
            self.errors.push(
                Diagnostic::whole("`flow` is an axis by itself where there are flows")
                    .help("write [flows.NAME] tables"),
            );
        }
        let asked = self.study.asked_capacity().map_or_else(Vec::new, |(_, asked)| asked.parts.clone());
        let unknown = |name: &&String| self.study.parts.iter().all(|part| part.name != **name);
        if let Some(name) = asked.iter().find(unknown) {
            self.errors.push(Diagnostic::whole(format!("[capacity] names the part `{name}`: there is none")));
        }
        for part in &self.study.parts {
            for axis in &part.axes {
                if axis.name == "system" || axis.name == PART || self.study.axis(&axis.name).is_some() {
                    self.errors.push(Diagnostic::whole(format!(
                        "part `{}` cannot set `{}`: the study crosses it for all parts",
                        part.name, axis.name
                    )));
                }
            }
        }
    }

    /// Refuses secrets on axes and in conditions: these values are in every record, in the table
    /// and in the files of the results folder.
    fn check_secrets(&mut self) {
        let of_parts = self.study.parts.iter().flat_map(|part| &part.axes);
        let axes = self.study.axes.iter().chain(of_parts).map(|axis| (&axis.name, axis.values.as_slice()));
        let skips = self.study.skips.iter().flat_map(|skip| &skip.conditions);
        let conditions = skips.chain(self.study.claims.iter().flat_map(|claim| &claim.conditions));
        let listed = conditions.map(|(name, condition)| match condition {
            Condition::OneOf(values) => (name, values.as_slice()),
            Condition::AtMost(_) | Condition::AtLeast(_) => (name, [].as_slice()),
        });
        let mut placed: Vec<(&str, &Value)> = Vec::new();
        for claim in &self.study.claims {
            if let Statement::Says(expression) = &claim.statement {
                expression.root.places(&mut |axis, value| placed.extend(value.map(|value| (axis, value))));
            }
        }
        let placed = placed.into_iter().map(|(name, value)| (name, std::slice::from_ref(value)));
        let listed = listed.map(|(name, values)| (name.as_str(), values));
        let axes = axes.map(|(name, values)| (name.as_str(), values));
        for (name, values) in axes.chain(listed).chain(placed) {
            let Some(option) = name.strip_prefix("options.") else { continue };
            let marked = self.is_secret(None, option);
            if values.iter().any(|value| secret(option, marked, &as_typed(value))) {
                let message = format!("`{name}` cannot be an axis with a secret value: axes are recorded");
                let help = "write it under [options], or give it with --set";
                self.errors.push(Diagnostic::whole(message).help(help));
            }
        }
    }

    /// Shortens the study: by its own `[quick]`, or by thinning its axes.
    fn cut(&mut self) {
        if self.has_quick {
            let quick = std::mem::take(&mut self.quick_settings);
            let mut settings = std::mem::take(&mut self.study.settings);
            settings.count.take_if(|_| quick.duration.is_some());
            settings.duration.take_if(|_| quick.count.is_some());
            self.study.settings = settings.overridden_by(quick);
            let axes = std::mem::take(&mut self.quick_axes).into_iter();
            let (of_parts, axes): (Vec<Axis>, Vec<Axis>) = axes.partition(|axis| axis.name == PART);
            self.quick_axes = of_parts;
            put_axes(&mut self.study.axes, axes);
            for quick in std::mem::take(&mut self.quick_parts) {
                let Some(part) = self.study.parts.iter_mut().find(|part| part.name == quick.name) else { continue };
                put_axes(&mut part.axes, quick.axes);
            }
            return;
        }
        let of_parts = self.study.parts.iter_mut().flat_map(|part| &mut part.axes);
        let axes = self.study.axes.iter_mut().chain(of_parts);
        for axis in axes.filter(|axis| axis.name != "system" && axis.values.len() > 3) {
            let last = axis.values.len() - 1;
            axis.values = vec![axis.values[0].clone(), axis.values[last / 2].clone(), axis.values[last].clone()];
        }
        let on_axis = |name: &str| self.study.axis(name).is_some();
        let (warmup, extent) = (on_axis("warmup"), on_axis("duration") || on_axis("count"));
        let settings = &mut self.study.settings;
        let mut repeats = settings.repeats();
        repeats.0 = repeats.0.min(2);
        settings.repeats = Some(repeats);
        if !warmup {
            shorten(&mut settings.warmup, Time(250 * MILLISECOND));
        }
        if settings.warmup_max.is_some() {
            let most = settings.warmup_max.map_or(2 * SECOND, |most| most.0.min(2 * SECOND));
            settings.warmup_max = Some(Time(most));
        }
        if !extent && settings.count.is_none() {
            shorten(&mut settings.duration, Time(SECOND));
        }
    }

    /// Removes what parts say of a key that is set for all.
    fn forget_in_parts(&mut self, name: &str) {
        self.study.parts.iter_mut().for_each(|part| part.axes.retain(|axis| axis.name != name));
    }

    fn set(&mut self, name: &str, text: &str) -> Result<(), Diagnostic> {
        let name = name
            .strip_prefix("workload.")
            .or_else(|| name.strip_prefix("limits."))
            .or_else(|| name.strip_prefix("faults."))
            .or_else(|| name.strip_prefix("settings."))
            .or_else(|| name.strip_prefix("run."))
            .unwrap_or(name);
        if let Some((flow, key)) = split_place(name) {
            return self.set_of_flow(flow, key, text);
        }
        if let Some(option) = name.strip_prefix("options.") {
            if let Some(axis) = self.study.axes.iter_mut().find(|axis| axis.name == name) {
                axis.values = vec![plain(text)];
                return Ok(());
            }
            let (system, option) = match option.split_once('.') {
                Some((system, option)) => (Some(system), option),
                None => (None, option),
            };
            if self.study.axis(&format!("options.{option}")).is_some() {
                return Err(Diagnostic::whole(format!("`options.{option}` is an axis, the same for all systems"))
                    .help(format!("write --set options.{option}=VALUE")));
            }
            self.check_option(system, option, text)?;
            self.forget_in_parts(name);
            self.study
                .options
                .retain(|other| !(other.name == option && (system.is_none() || other.system.as_deref() == system)));
            let secret = self.is_secret(system, option);
            self.study.options.push(OptionSetting {
                system: system.map(str::to_owned),
                name: option.into(),
                text: text.into(),
                secret,
            });
            return Ok(());
        }
        if name == "title" || name == "question" {
            let field = if name == "title" { &mut self.study.title } else { &mut self.study.question };
            *field = text.into();
            return Ok(());
        }
        if name == "system" {
            let read = |name: &str| self.axis_value("system", &Scalar { text: name.into(), at: 0 });
            let values = split(text, read)?;
            self.study.axes.retain(|axis| axis.name != "system");
            self.study.axes.push(Axis { name: "system".into(), values });
            return Ok(());
        }
        let Some(key) = key(name) else {
            let names: Vec<&str> = axis_names().chain(["repeats", "order", "seed"]).collect();
            return Err(Diagnostic::whole("there is no such key").help(suggestion(name, names)));
        };
        let values = listed(key, text)?;
        if self.study.varies_by_part("pattern") && self.study.varies_by_part(key.name) {
            // In parts of another pattern the key may have no meaning.
            let of_parts = self.study.parts.iter_mut().flat_map(|part| &mut part.axes);
            of_parts.filter(|axis| axis.name == key.name).for_each(|axis| axis.values = values.clone());
            if values.len() > 1 || self.study.settings.get(key.name).is_none() {
                return Ok(());
            }
        } else {
            self.forget_in_parts(key.name);
        }
        if let Some(axis) = self.study.axes.iter_mut().find(|axis| axis.name == key.name) {
            axis.values = values;
            return Ok(());
        }
        if values.len() > 1 {
            key.take(&mut self.study.settings);
            self.study.axes.push(Axis { name: key.name.to_owned(), values });
            return Ok(());
        }
        match key.name {
            "count" => self.study.settings.duration = None,
            "duration" => self.study.settings.count = None,
            _ => {}
        }
        key.set(&mut self.study.settings, text).map_err(Diagnostic::whole)
    }

    fn only(&mut self, name: &str, text: &str) -> Result<(), Diagnostic> {
        if name == FLOW && !self.study.flows.is_empty() {
            return self.only_flows(text);
        }
        let read = |text: &str| self.axis_value(name, &Scalar { text: text.trim().into(), at: 0 });
        let axes = self.study.axes.iter().chain(self.study.parts.iter().flat_map(|part| &part.axes));
        let mut values = axes.filter(|axis| axis.name == name).flat_map(|axis| &axis.values);
        // A value may contain commas, such as a script of faults.
        let wanted = match read(text) {
            Ok(whole) if values.any(|value| *value == whole) => vec![whole],
            _ => text.split(',').map(read).collect::<Result<Vec<Value>, Diagnostic>>()?,
        };
        if self.study.axis(name).is_none() && self.study.varies_by_part(name) {
            // Each part keeps those of the wanted values that it has.
            for part in &mut self.study.parts {
                part.axes.iter_mut().filter(|axis| axis.name == name).for_each(|axis| {
                    axis.values.retain(|value| wanted.contains(value));
                });
            }
            let left: Vec<Value> = self
                .study
                .parts
                .iter()
                .filter(|part| part.axes.iter().all(|axis| !axis.values.is_empty()))
                .map(|part| part.name.as_str().into())
                .collect();
            if left.is_empty() {
                return Err(Diagnostic::whole("no part has such a point"));
            }
            let parts = self.study.axes.iter_mut().filter(|axis| axis.name == PART);
            parts.for_each(|axis| axis.values.retain(|part| left.contains(part)));
            return Ok(());
        }
        let names: Vec<String> = self.study.axis_names().into_iter().map(str::to_owned).collect();
        let Some(axis) = self.study.axes.iter_mut().find(|axis| axis.name == name) else {
            return Err(Diagnostic::whole(format!(
                "`{name}` is not an axis of this study; its axes: {}",
                names.join(", ")
            )));
        };
        if let Some(missing) = wanted.iter().find(|value| !axis.values.contains(value)) {
            let values: Vec<String> = axis.values.iter().map(as_typed).collect();
            let missing = as_typed(missing);
            let shown = if name.starts_with("options.") { "it" } else { &missing };
            return Err(Diagnostic::whole(format!("{shown} is not on the axis; its values: {}", values.join(", "))));
        }
        axis.values.retain(|value| wanted.contains(value));
        Ok(())
    }

    fn check_options(&mut self) {
        for (mut setting, key_at, value_at) in std::mem::take(&mut self.options) {
            setting.secret = self.is_secret(setting.system.as_deref(), &setting.name);
            if let Err(error) = self.check_option(setting.system.as_deref(), &setting.name, &setting.text) {
                let at = if error.shows_value { value_at } else { key_at };
                self.errors.push(Diagnostic { offset: Some(at), ..error });
            }
            self.study.options.push(setting);
        }
    }

    fn is_secret(&self, system: Option<&str>, name: &str) -> bool {
        self.study.is_secret(system, name, self.systems)
    }

    /// Formats a pair as typed. The value of an unknown key may be a secret, and that of an option
    /// if it is marked or named as one.
    fn typed(&self, name: &str, text: &str) -> String {
        let shown = match name.strip_prefix("options.").map(|option| option.rsplit('.').next().unwrap_or(option)) {
            Some(option) if may_be_secret_name(option) => HIDDEN.to_owned(),
            Some(option) => recorded_text(option, self.is_secret(None, option), text),
            None if name == "system" || key(name).is_some() => text.to_owned(),
            None if may_be_secret_name(name) || text.contains("://") => HIDDEN.to_owned(),
            None => text.to_owned(),
        };
        format!("{name}={shown}")
    }

    /// Checks an option's name and value against the system; an option that is set for all systems
    /// is checked against the common options, and those of the study's own systems.
    fn check_option(&self, system: Option<&str>, name: &str, text: &str) -> Result<(), Diagnostic> {
        let mine = self.study.systems_of(system);
        let common = common();
        let of_systems: Vec<_> = mine.iter().filter_map(|name| (self.systems)(name)).collect();
        let of_systems = of_systems.iter().flat_map(|system| &system.options);
        let known: Vec<&OptionSpec> =
            if system.is_some() { of_systems.collect() } else { common.iter().chain(of_systems).collect() };
        if self.study.recorded || system.is_some() && known.is_empty() {
            // An unknown system is reported separately.
            return Ok(());
        }
        let Some(spec) = known.iter().find(|spec| spec.name == name) else {
            let mut names: Vec<&str> = known.iter().map(|spec| spec.name.as_str()).collect();
            names.sort_unstable();
            names.dedup();
            return Err(Diagnostic::whole(format!("unknown option `{name}`")).help(suggestion(name, names)));
        };
        let wrong = |error| match spec.is_secret() {
            true => Diagnostic::whole(format!("{name}: no {}", spec.kind.word())),
            false => Diagnostic { shows_value: true, ..Diagnostic::whole(format!("{name}: {error}")) },
        };
        spec.kind.read(text).map(|_| ()).map_err(wrong)
    }
}

/// A place that an expression names and that the study lacks.
#[derive(PartialEq)]
struct Misplaced {
    /// The word of the expression that the error points at.
    word: String,
    message: String,
    help: String,
}

/// Gives these axes their new values, in their places; new axes follow.
fn put_axes(all: &mut Vec<Axis>, axes: Vec<Axis>) {
    for axis in axes {
        match all.iter_mut().find(|mine| mine.name == axis.name) {
            Some(mine) => mine.values = axis.values,
            None => all.push(axis),
        }
    }
}

/// Limits a time to `most`; sets it to that if it is unset.
fn shorten(time: &mut Option<Time>, most: Time) {
    *time = Some(time.map_or(most, |time| Time(time.0.min(most.0))));
}
