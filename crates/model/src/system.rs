//! What is measured: one file in `systems/` each.

use crate::diagnostic::{Diagnostic, Diagnostics, suggestion};
use crate::document::{Document, Table};
use crate::options::{OptionKind, OptionSpec, common};
use crate::workload::{Pattern, Transport};

/// A system as its file describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct System {
    /// Its name: the file's name, a study's `system`, a bench's TARGET.
    pub name: String,
    /// Its name as its makers write it.
    pub title: String,
    /// What it is, in a sentence.
    pub about: String,
    /// Its licence (SPDX).
    pub licence: String,
    /// Where it lives on the web.
    pub homepage: String,
    /// The driver that speaks to it.
    pub driver: String,
    /// The transports that it has.
    pub transports: Vec<Transport>,
    /// The patterns that its driver plays.
    pub patterns: Vec<Pattern>,
    /// The patterns in which it promises to lose, duplicate and reorder nothing.
    pub lossless: Vec<Pattern>,
    /// Debian packages that bring it.
    pub debian: Vec<String>,
    /// The options of its driver, the common ones included.
    pub options: Vec<OptionSpec>,
    /// What to know about it before quoting a figure.
    pub notes: Vec<String>,
}

fn words<T: Copy>(
    table: &Table,
    key: &str,
    parse: fn(&str) -> Result<T, String>,
    errors: &mut Vec<Diagnostic>,
) -> Vec<T> {
    let Some(entry) = table.entries.iter().find(|entry| entry.key == key) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for value in &entry.values {
        match parse(&value.text) {
            Ok(word) => found.push(word),
            Err(error) => errors.push(Diagnostic::at(value.at, error)),
        }
    }
    found
}

fn texts(table: &Table, key: &str) -> Vec<String> {
    let entry = table.entries.iter().find(|entry| entry.key == key);
    entry.map(|entry| entry.values.iter().map(|value| value.text.clone()).collect()).unwrap_or_default()
}

impl System {
    /// Reads a system file strictly; all its errors at once.
    pub fn parse(name: &str, file: &str, text: &str) -> Result<System, Diagnostics> {
        let mut errors = Vec::new();
        let document = Document::parse(text, &mut errors);
        if !document.sound {
            return Err(Diagnostics { file: file.into(), text: text.into(), errors });
        }
        let mut system = System {
            name: name.to_owned(),
            title: String::new(),
            about: String::new(),
            licence: String::new(),
            homepage: String::new(),
            driver: String::new(),
            transports: Vec::new(),
            patterns: Vec::new(),
            lossless: Vec::new(),
            debian: Vec::new(),
            options: common(),
            notes: Vec::new(),
        };
        for table in &document.tables {
            match table.name.split_once('.') {
                None if table.name.is_empty() => system.read_top(table, &mut errors),
                None if table.name == "install" => {
                    system.debian = texts(table, "debian");
                    for entry in table.entries.iter().filter(|entry| entry.key != "debian") {
                        errors.push(entry.unknown("[install]", ["debian"]));
                    }
                }
                None if table.name == "options" && table.entries.is_empty() => {}
                Some(("options", option)) => system.read_option(option, table, &mut errors),
                _ => errors.push(
                    Diagnostic::at(table.at, format!("unknown table [{}]", table.name))
                        .help(suggestion(&table.name, ["install", "options.NAME"])),
                ),
            }
        }
        for (value, key) in [
            (&system.title, "title"),
            (&system.about, "about"),
            (&system.driver, "driver"),
            (&system.licence, "licence"),
        ] {
            if value.is_empty() {
                errors.push(Diagnostic::whole(format!("`{key}` is missing")));
            }
        }
        if system.patterns.is_empty() {
            errors.push(Diagnostic::whole("`patterns` is missing: name at least one pattern that the driver plays"));
        }
        if errors.is_empty() { Ok(system) } else { Err(Diagnostics { file: file.into(), text: text.into(), errors }) }
    }

    fn read_top(&mut self, table: &Table, errors: &mut Vec<Diagnostic>) {
        const KNOWN: [&str; 9] =
            ["title", "about", "licence", "homepage", "driver", "transports", "patterns", "lossless", "notes"];
        self.transports = words(table, "transports", Transport::parse, errors);
        self.patterns = words(table, "patterns", Pattern::parse, errors);
        self.lossless = words(table, "lossless", Pattern::parse, errors);
        self.notes = texts(table, "notes");
        for entry in &table.entries {
            let field = match entry.key.as_str() {
                "title" => &mut self.title,
                "about" => &mut self.about,
                "licence" => &mut self.licence,
                "homepage" => &mut self.homepage,
                "driver" => &mut self.driver,
                known if KNOWN.contains(&known) => continue,
                _ => {
                    errors.push(entry.unknown("a system file", KNOWN));
                    continue;
                }
            };
            if let Some(value) = entry.one(errors) {
                *field = value.text.clone();
            }
        }
    }

    fn read_option(&mut self, name: &str, table: &Table, errors: &mut Vec<Diagnostic>) {
        let mut spec = OptionSpec { name: name.into(), kind: OptionKind::Text, default: None, doc: String::new() };
        let mut default = None;
        for entry in &table.entries {
            let Some(value) = entry.one(errors) else { continue };
            match entry.key.as_str() {
                "kind" => {
                    spec.kind = match value.text.as_str() {
                        "bool" => OptionKind::Bool,
                        "count" => OptionKind::Count,
                        "size" => OptionKind::Size,
                        "time" => OptionKind::Time,
                        "text" => OptionKind::Text,
                        other => {
                            errors.push(Diagnostic::at(
                                value.at,
                                format!("`{other}` is none of bool, count, size, time, text"),
                            ));
                            continue;
                        }
                    }
                }
                "default" => default = Some(value),
                "doc" => spec.doc = value.text.clone(),
                _ => errors.push(entry.unknown("an option", ["kind", "default", "doc"])),
            }
        }
        if let Some(value) = default {
            match spec.kind.read(&value.text) {
                Ok(value) => spec.default = Some(value),
                Err(error) => errors.push(Diagnostic::at(value.at, error)),
            }
        }
        self.options.retain(|option| option.name != spec.name);
        self.options.push(spec);
    }

    /// The option of this name.
    pub fn option(&self, name: &str) -> Option<&OptionSpec> {
        self.options.iter().find(|option| option.name == name)
    }
}
