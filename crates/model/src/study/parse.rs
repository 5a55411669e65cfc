//! Reading a study file: strict, and every error of the file at once.

use super::{Axis, OptionSetting, Reading, Skip, Study, Systems};
use crate::claim::{Claim, Condition, Figure};
use crate::diagnostic::{Diagnostic, Diagnostics, suggestion};
use crate::document::{Document, Entry, Scalar, Table};
use crate::setting::{KEYS, Section, Settings, key, with_defaults};
use serde_json::Value;

/// Most values of one axis.
const MAX_AXIS: usize = 1_000;

const TABLES: [&str; 8] = ["workload", "limits", "run", "axes", "skip", "options", "claims", "quick"];

struct Parser<'a> {
    errors: Vec<Diagnostic>,
    study: Study,
    quick_settings: Settings,
    quick_axes: Vec<Axis>,
    has_quick: bool,
    systems: Systems<'a>,
}

impl Study {
    /// Reads a study file. `file` is the name that errors are reported under.
    pub fn parse(file: &str, text: &str, systems: Systems<'_>, reading: &Reading<'_>) -> Result<Study, Diagnostics> {
        let mut errors = Vec::new();
        let document = Document::parse(text, &mut errors);
        let study = Study {
            title: String::new(),
            question: String::new(),
            settings: Settings::new(),
            axes: Vec::new(),
            skips: Vec::new(),
            options: Vec::new(),
            claims: Vec::new(),
            quick: reading.quick,
        };
        let syntax_ok = errors.is_empty();
        let mut parser = Parser { errors, study, quick_settings: Settings::new(), quick_axes: Vec::new(), has_quick: false, systems };
        if syntax_ok {
            for table in &document.tables {
                parser.table(table);
            }
            parser.finish(reading);
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
    fn table(&mut self, table: &Table) {
        match table.name.split_once('.') {
            None if table.name.is_empty() => self.top(table),
            None => match table.name.as_str() {
                "workload" => self.settings(table, Section::Workload),
                "limits" => self.settings(table, Section::Limits),
                "run" => self.settings(table, Section::Run),
                "axes" => self.axes(table, false, ""),
                "skip" => self.skip(table),
                "options" => self.options(table, None),
                "claims" => self.claim(table),
                "quick" => self.quick(table),
                name => {
                    let help = suggestion(name, TABLES);
                    self.errors.push(Diagnostic::at(table.at, format!("unknown table [{name}]")).help(help));
                }
            },
            Some(("axes", "options")) => self.axes(table, false, "options."),
            Some(("quick", "axes")) => {
                self.has_quick = true;
                self.axes(table, true, "");
            }
            Some(("quick", "axes.options")) => self.axes(table, true, "options."),
            Some(("options", system)) => {
                if (self.systems)(system).is_none() {
                    self.errors.push(Diagnostic::at(table.at, format!("unknown system `{system}` in [options.{system}]")).help("`pubmark systems` lists them"));
                }
                self.options(table, Some(system));
            }
            Some(("claims", "where")) => self.claim_where(table),
            _ => self.errors.push(Diagnostic::at(table.at, format!("unknown table [{}]", table.name))),
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
                "axes" | "workload" => self.errors.push(Diagnostic::at(entry.key_at, format!("`{}` is a table: write [{}]", entry.key, entry.key))),
                name if key(name).is_some() => {
                    let section = key(name).map_or("workload", |key| key.section.name());
                    self.errors.push(Diagnostic::at(entry.key_at, format!("`{name}` belongs into [{section}]")));
                }
                _ => self.errors.push(entry.unknown("a study file", ["title", "question"].into_iter().chain(TABLES))),
            }
        }
    }

    fn setting(&mut self, entry: &Entry, place: &str, wanted: impl Fn(Section) -> bool) -> Option<(String, Value)> {
        let known = || KEYS.iter().filter(|key| wanted(key.section)).map(|key| key.name);
        let Some(key) = key(&entry.key).filter(|key| key.name == entry.key) else {
            let names: Vec<&str> = known().collect();
            self.errors.push(entry.unknown(place, names));
            return None;
        };
        if !wanted(key.section) {
            self.errors.push(Diagnostic::at(entry.key_at, format!("`{}` belongs into [{}], not {place}", key.name, key.section.name())));
            return None;
        }
        let value = entry.one(&mut self.errors)?;
        match key.read(&value.text) {
            Ok(canonical) => Some((key.name.to_owned(), canonical)),
            Err(error) => {
                self.errors.push(Diagnostic::at(value.at, error));
                None
            }
        }
    }

    fn settings(&mut self, table: &Table, section: Section) {
        for entry in &table.entries {
            if let Some((name, value)) = self.setting(entry, &format!("[{}]", section.name()), |other| other == section) {
                self.study.settings.insert(name, value);
            }
        }
    }

    fn quick(&mut self, table: &Table) {
        self.has_quick = true;
        for entry in &table.entries {
            if let Some((name, value)) = self.setting(entry, "[quick]", |_| true) {
                self.quick_settings.insert(name, value);
            }
        }
    }

    fn axes(&mut self, table: &Table, quick: bool, prefix: &str) {
        for entry in &table.entries {
            let name = format!("{prefix}{}", entry.key);
            let mut values: Vec<Value> = Vec::new();
            for scalar in &entry.values {
                match self.axis_value(&name, scalar) {
                    Ok(value) if values.contains(&value) => {
                        self.errors.push(Diagnostic::at(scalar.at, format!("`{}` is twice on the axis `{name}`", scalar.text)));
                    }
                    Ok(value) => values.push(value),
                    Err(error) => {
                        self.errors.push(error);
                        if !known_axis(&name) {
                            break;
                        }
                    }
                }
            }
            if entry.values.is_empty() {
                self.errors.push(Diagnostic::at(entry.key_at, format!("the axis `{name}` has no value")));
            }
            if values.len() > MAX_AXIS {
                self.errors.push(Diagnostic::at(entry.key_at, format!("the axis `{name}` has more than {MAX_AXIS} values")));
            }
            let axes = if quick { &mut self.quick_axes } else { &mut self.study.axes };
            axes.push(Axis { name, values });
        }
    }

    /// A value on an axis, canonical.
    fn axis_value(&self, axis: &str, scalar: &Scalar) -> Result<Value, Diagnostic> {
        if axis == "system" {
            return match (self.systems)(&scalar.text) {
                Some(_) => Ok(scalar.text.clone().into()),
                None => Err(Diagnostic::at(scalar.at, format!("unknown system `{}`", scalar.text)).help("`pubmark systems` lists them")),
            };
        }
        if axis.starts_with("options.") {
            return Ok(plain(&scalar.text));
        }
        match key(axis).filter(|key| key.name == axis && key.section != Section::Run) {
            Some(key) => key.read(&scalar.text).map_err(|error| Diagnostic::at(scalar.at, error)),
            None => {
                let names: Vec<&str> = axis_names().collect();
                Err(Diagnostic::at(scalar.at, format!("`{axis}` cannot be an axis")).help(suggestion(axis, names)))
            }
        }
    }

    fn conditions(&mut self, entry: &Entry) -> Option<(String, Condition)> {
        if let [only] = entry.values.as_slice()
            && let Some((most, bound)) = only.text.strip_prefix("<=").map(|b| (true, b)).or_else(|| only.text.strip_prefix(">=").map(|b| (false, b)))
        {
            let bound = Scalar { text: bound.trim().to_owned(), at: only.at };
            return match self.axis_value(&entry.key, &bound).map(|value| value.as_f64()) {
                Ok(Some(number)) => Some((entry.key.clone(), if most { Condition::AtMost(number) } else { Condition::AtLeast(number) })),
                Ok(None) => {
                    self.errors.push(Diagnostic::at(only.at, format!("`{}` has no order: name its values", entry.key)));
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
            match self.axis_value(&entry.key, scalar) {
                Ok(value) => values.push(value),
                Err(error) => self.errors.push(error),
            }
        }
        Some((entry.key.clone(), Condition::OneOf(values)))
    }

    fn skip(&mut self, table: &Table) {
        let mut skip = Skip { conditions: Vec::new(), why: String::new() };
        for entry in &table.entries {
            if entry.key == "why" {
                skip.why = entry.one(&mut self.errors).map(|value| value.text.clone()).unwrap_or_default();
            } else if let Some(condition) = self.conditions(entry) {
                skip.conditions.push(condition);
            }
        }
        if skip.why.is_empty() {
            self.errors.push(Diagnostic::at(table.at, "a [[skip]] needs `why`: the report shows it"));
        }
        self.study.skips.push(skip);
    }

    fn options(&mut self, table: &Table, system: Option<&str>) {
        for entry in &table.entries {
            let Some(value) = entry.one(&mut self.errors) else { continue };
            let text = value.text.clone();
            if let Err(error) = check_option(self.systems, system, &entry.key, &text) {
                self.errors.push(Diagnostic { offset: Some(if error.help.is_some() { entry.key_at } else { value.at }), ..error });
            }
            self.study.options.push(OptionSetting { system: system.map(str::to_owned), name: entry.key.clone(), text });
        }
    }

    fn claim(&mut self, table: &Table) {
        const KNOWN: [&str; 6] = ["id", "says", "figure", "best", "among", "share"];
        let mut claim = Claim { id: String::new(), says: String::new(), figure: Figure::LatencyP50, best: Vec::new(), among: Vec::new(), conditions: Vec::new(), share: 1.0 };
        let mut ranked = false;
        for entry in &table.entries {
            match entry.key.as_str() {
                "best" | "among" => {
                    for scalar in &entry.values {
                        match self.axis_value("system", scalar) {
                            Ok(_) if entry.key == "best" => claim.best.push(scalar.text.clone()),
                            Ok(_) => claim.among.push(scalar.text.clone()),
                            Err(error) => self.errors.push(error),
                        }
                    }
                    continue;
                }
                name if !KNOWN.contains(&name) => {
                    self.errors.push(entry.unknown("[[claims]]", KNOWN));
                    continue;
                }
                _ => {}
            }
            let Some(value) = entry.one(&mut self.errors) else { continue };
            match entry.key.as_str() {
                "id" => claim.id = value.text.clone(),
                "says" => claim.says = value.text.clone(),
                "figure" => match Figure::parse(&value.text) {
                    Ok(figure) => (claim.figure, ranked) = (figure, true),
                    Err(error) => self.errors.push(Diagnostic::at(value.at, error)),
                },
                _ => match value.text.parse() {
                    Ok(share) if (0.0..=1.0).contains(&share) => claim.share = share,
                    _ => self.errors.push(Diagnostic::at(value.at, "`share` is a number from 0 to 1")),
                },
            }
        }
        if claim.id.is_empty() || claim.says.is_empty() || claim.best.is_empty() || !ranked {
            self.errors.push(Diagnostic::at(table.at, "a [[claims]] entry needs `id`, `says`, `figure` and `best`"));
        }
        self.study.claims.push(claim);
    }

    fn claim_where(&mut self, table: &Table) {
        for entry in &table.entries {
            if let Some(condition) = self.conditions(entry)
                && let Some(claim) = self.study.claims.last_mut()
            {
                claim.conditions.push(condition);
            }
        }
    }

    fn finish(&mut self, reading: &Reading<'_>) {
        if self.study.title.is_empty() {
            self.errors.push(Diagnostic::whole("`title` is missing"));
        }
        if reading.quick {
            self.cut();
        }
        for (name, text) in reading.set {
            if let Err(error) = self.set(name, text) {
                self.errors.push(Diagnostic::whole(format!("--set {name}={text}: {}", error.message)).help(error.help.unwrap_or_default()));
            }
        }
        for (name, text) in reading.only {
            if let Err(error) = self.only(name, text) {
                self.errors.push(Diagnostic::whole(format!("--only {name}={text}: {error}")));
            }
        }
        for axis in &self.study.axes {
            if self.study.settings.contains_key(&axis.name) {
                self.errors.push(Diagnostic::whole(format!("`{}` is set and is an axis too: leave one of them out", axis.name)));
            }
        }
        if self.study.axis("system").is_none() {
            self.errors.push(Diagnostic::whole("no system is named").help("write [axes] with system = [\"zeromq\", …]; `pubmark systems` lists them"));
        }
        self.study.axes.sort_by_key(|axis| axis.name != "system");
        let mut names: Vec<&str> = self.study.axes.iter().map(|axis| axis.name.as_str()).collect();
        names.sort_unstable();
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            self.errors.push(Diagnostic::whole(format!("`{}` is an axis twice", pair[0])));
        }
        let axes: Vec<String> = self.study.axes.iter().map(|axis| axis.name.clone()).collect();
        let conditions = self.study.skips.iter().flat_map(|skip| &skip.conditions).chain(self.study.claims.iter().flat_map(|claim| &claim.conditions));
        for (name, _) in conditions {
            if !axes.contains(name) {
                self.errors.push(Diagnostic::whole(format!("a condition names `{name}`, which is no axis of this study")).help(format!("its axes: {}", axes.join(", "))));
            }
        }
        let mut settings = std::mem::take(&mut self.study.settings);
        let on_axis = |name: &str| axes.iter().any(|axis| axis == name);
        settings = with_defaults(settings);
        settings.retain(|name, _| !on_axis(name));
        if !settings.contains_key("duration") && !settings.contains_key("count") && !on_axis("duration") && !on_axis("count") {
            settings.insert("duration".into(), "5s".into());
        }
        self.study.settings = settings;
    }

    /// Cuts the study down: by its own `[quick]`, or by thinning what it has.
    fn cut(&mut self) {
        if self.has_quick {
            self.study.settings.append(&mut self.quick_settings);
            for axis in std::mem::take(&mut self.quick_axes) {
                match self.study.axes.iter_mut().find(|mine| mine.name == axis.name) {
                    Some(mine) => mine.values = axis.values,
                    None => self.study.axes.push(axis),
                }
            }
            return;
        }
        for axis in self.study.axes.iter_mut().filter(|axis| axis.name != "system" && axis.values.len() > 3) {
            let last = axis.values.len() - 1;
            axis.values = vec![axis.values[0].clone(), axis.values[last / 2].clone(), axis.values[last].clone()];
        }
        let settings = &mut self.study.settings;
        let repeats = settings.get("repeats").and_then(Value::as_u64).unwrap_or(3).min(2);
        settings.insert("repeats".into(), repeats.into());
        settings.insert("warmup".into(), "250ms".into());
        if !settings.contains_key("count") {
            settings.insert("duration".into(), "1s".into());
        }
    }

    fn set(&mut self, name: &str, text: &str) -> Result<(), Diagnostic> {
        let name = name.strip_prefix("workload.").or_else(|| name.strip_prefix("limits.")).or_else(|| name.strip_prefix("run.")).unwrap_or(name);
        if let Some(option) = name.strip_prefix("options.") {
            let (system, option) = match option.split_once('.') {
                Some((system, option)) => (Some(system), option),
                None => (None, option),
            };
            check_option(self.systems, system, option, text)?;
            self.study.axes.retain(|axis| axis.name != name);
            self.study.options.retain(|other| !(other.name == option && (system.is_none() || other.system.as_deref() == system)));
            self.study.options.push(OptionSetting { system: system.map(str::to_owned), name: option.into(), text: text.into() });
            return Ok(());
        }
        if name == "title" || name == "question" {
            let field = if name == "title" { &mut self.study.title } else { &mut self.study.question };
            *field = text.into();
            return Ok(());
        }
        if name == "system" {
            let value = self.axis_value("system", &Scalar { text: text.into(), at: 0 })?;
            self.study.axes.retain(|axis| axis.name != "system");
            self.study.axes.push(Axis { name: "system".into(), values: vec![value] });
            return Ok(());
        }
        let Some(key) = key(name) else {
            let names: Vec<&str> = axis_names().chain(["repeats", "order", "seed"]).collect();
            return Err(Diagnostic::whole("there is no such key").help(suggestion(name, names)));
        };
        let value = key.read(text).map_err(Diagnostic::whole)?;
        if self.study.axis(key.name).is_some() {
            let axis = self.study.axes.iter_mut().find(|axis| axis.name == key.name);
            if let Some(axis) = axis {
                axis.values = vec![value];
            }
            return Ok(());
        }
        match key.name {
            "count" => self.study.settings.remove("duration"),
            "duration" => self.study.settings.remove("count"),
            _ => None,
        };
        self.study.settings.insert(key.name.into(), value);
        Ok(())
    }

    fn only(&mut self, name: &str, text: &str) -> Result<(), String> {
        let mut wanted = Vec::new();
        for part in text.split(',') {
            let scalar = Scalar { text: part.trim().into(), at: 0 };
            wanted.push(self.axis_value(name, &scalar).map_err(|error| error.message)?);
        }
        let names: Vec<String> = self.study.axes.iter().map(|axis| axis.name.clone()).collect();
        let Some(axis) = self.study.axes.iter_mut().find(|axis| axis.name == name) else {
            return Err(format!("`{name}` is no axis of this study; its axes: {}", names.join(", ")));
        };
        if let Some(missing) = wanted.iter().find(|value| !axis.values.contains(value)) {
            let values: Vec<String> = axis.values.iter().map(show).collect();
            return Err(format!("{} is not on the axis; its values: {}", show(missing), values.join(", ")));
        }
        axis.values.retain(|value| wanted.contains(value));
        Ok(())
    }
}

fn show(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// A value that no table of keys describes: true, false, a number, or a text.
fn plain(text: &str) -> Value {
    serde_json::from_str::<Value>(text).ok().filter(|value| value.is_boolean() || value.is_u64()).unwrap_or_else(|| text.into())
}

fn axis_names() -> impl Iterator<Item = &'static str> {
    KEYS.iter().filter(|key| key.section != Section::Run).map(|key| key.name).chain(["system"])
}

fn known_axis(name: &str) -> bool {
    name.starts_with("options.") || axis_names().any(|known| known == name)
}

/// Checks an option's name and value against the system, or, where it is set
/// for all systems, against the common options.
fn check_option(systems: Systems<'_>, system: Option<&str>, name: &str, text: &str) -> Result<(), Diagnostic> {
    let common = crate::options::common();
    let known = match system.map(systems) {
        Some(Some(system)) => &system.options,
        Some(None) => return Ok(()),
        None => &common,
    };
    let Some(spec) = known.iter().find(|spec| spec.name == name) else {
        let names: Vec<&str> = known.iter().map(|spec| spec.name.as_str()).collect();
        return Err(Diagnostic::whole(format!("unknown option `{name}`")).help(suggestion(name, names)));
    };
    spec.kind.read(text).map(|_| ()).map_err(|error| Diagnostic::whole(format!("{name}: {error}")))
}
