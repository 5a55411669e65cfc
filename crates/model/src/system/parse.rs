//! Parses a system file: strictly, with every error of the file at once.

use super::System;
use super::deployment::Deployment;
use crate::cluster::MEMBERS;
use crate::diagnostic::{Diagnostic, Diagnostics, suggestion};
use crate::document::{Document, Table, flag};
use crate::options::{OptionKind, common, spec};
use crate::printable::unprintable;
use crate::setting::Settings;
use crate::units::{format_time, parse_time};
use crate::wire_protocol::Protocol;
use crate::workload::{Pattern, Transport};

const TABLES: [&str; 15] = [
    "agent",
    "env",
    "install",
    "server",
    "server.prepare",
    "server.environment",
    "server.files",
    "cluster",
    "cluster.joined",
    "cluster.leader",
    "container",
    "container.environment",
    "options.NAME",
    "fixed.NAME",
    "full_queue",
];

impl System {
    /// Parses a system file strictly; returns all its errors at once.
    pub fn parse(name: &str, file: &str, text: &str) -> Result<System, Diagnostics> {
        let mut errors = Vec::new();
        let document = Document::parse(text, &mut errors);
        if !document.sound {
            return Err(Diagnostics { file: file.into(), text: text.into(), errors });
        }
        let mut system = System { name: name.to_owned(), source: text.to_owned(), qos: vec![0], ..System::default() };
        let mut deployment = Deployment::default();
        for table in &document.tables {
            refuse_controls(table, &mut errors);
            match table.name.split_once('.') {
                None if table.name.is_empty() => system.read_top(table, &mut errors),
                None if table.name == "agent" => system.agent.read_sides(table, &mut errors),
                None if table.name == "env" => system.agent.read_environment(table, &mut errors),
                // Its options are read once all are known.
                None if table.name == "full_queue" => {}
                None if ["options", "fixed"].contains(&table.name.as_str()) && table.entries.is_empty() => {}
                Some(("options", option)) => system.read_option(option, table, &mut errors),
                Some(("fixed", name)) => system.read_fixed(name, table, &mut errors),
                _ if deployment.read(table, &mut errors) => {}
                _ => errors.push(
                    Diagnostic::at(table.at, format!("unknown table [{}]", table.name))
                        .help(suggestion(&table.name, TABLES)),
                ),
            }
        }
        let mut options = system.protocol().map_or_else(common, Protocol::options);
        options.retain(|option| system.option(&option.name).is_none());
        options.append(&mut system.options);
        if deployment.server.cluster.is_some() {
            options.push(spec(
                MEMBERS,
                OptionKind::Count,
                Some("1"),
                "servers that form a cluster, all on the server's host",
            ));
        }
        system.options = options;
        if let Some(table) = document.tables.iter().find(|table| table.name == "full_queue") {
            system.read_full_queue(table, &mut errors);
        }
        (system.server, system.install) = deployment.finish(&system, &mut errors);
        system.check(&mut errors);
        errors.sort_by_key(|error| error.offset.unwrap_or(usize::MAX));
        if errors.is_empty() { Ok(system) } else { Err(Diagnostics { file: file.into(), text: text.into(), errors }) }
    }

    /// Checks relations between keys.
    fn check(&self, errors: &mut Vec<Diagnostic>) {
        for (value, key) in
            [(&self.title, "title"), (&self.about, "about"), (&self.driver, "driver"), (&self.licence, "licence")]
        {
            if value.is_empty() {
                errors.push(Diagnostic::whole(format!("`{key}` is missing")));
            }
        }
        let facts = [&self.language, &self.first_release, &self.maintenance];
        if facts.iter().any(|fact| !fact.is_empty()) && self.facts_from.is_empty() {
            errors.push(Diagnostic::whole("`facts_from` is missing: name the source of these facts, and its date"));
        }
        self.agent.check(&self.transports, errors);
        if self.patterns.is_empty() {
            errors.push(Diagnostic::whole("`patterns` is missing: name at least one pattern that the driver plays"));
        }
        let plays = |protocol: Protocol, pattern| self.qos.iter().any(|qos| protocol.plays(pattern, *qos));
        let lacks = |protocol: Protocol| self.patterns.iter().find(|pattern| !plays(protocol, **pattern));
        if let Some(pattern) = self.protocol().filter(|_| self.agent.built_in()).and_then(lacks) {
            let driver = &self.driver;
            errors.push(Diagnostic::whole(format!("`patterns` names `{pattern}`, which the driver `{driver}` lacks")));
        }
        if let Some(pattern) = self.lossless.iter().find(|pattern| !self.patterns.contains(pattern)) {
            errors.push(Diagnostic::whole(format!("`lossless` names `{pattern}`, which is not one of its `patterns`")));
        }
        let warmup_ns = self.warmup_ns.unwrap_or(Settings::default().warmup().0);
        if self.warmup_max_ns.is_some_and(|most_ns| most_ns < warmup_ns) {
            let least = format_time(warmup_ns);
            errors.push(Diagnostic::whole(format!("`warmup_max` is shorter than `warmup`, which is {least}")));
        }
        if self.broker() && !self.transports.is_empty() {
            errors.push(
                Diagnostic::whole("a broker has no `transports`: it is reached over its driver's protocol")
                    .help("leave `transports` out"),
            );
        }
        if !self.broker() && self.server.is_some() {
            errors.push(
                Diagnostic::whole(format!(
                    "the driver `{}` connects to no server: [server] has no meaning",
                    self.driver
                ))
                .help(format!(
                    "drivers that do: {}",
                    Protocol::ALL.iter().map(|known| known.word()).collect::<Vec<_>>().join(", ")
                )),
            );
        }
    }

    fn read_top(&mut self, table: &Table, errors: &mut Vec<Diagnostic>) {
        const KNOWN: [&str; 23] = [
            "title",
            "about",
            "licence",
            "homepage",
            "language",
            "first_release",
            "maintenance",
            "facts_from",
            "driver",
            "agent",
            "agents",
            "agent_protocol",
            "start_timeout",
            "floor",
            "replaces",
            "transports",
            "patterns",
            "lossless",
            "qos",
            "durable",
            "warmup",
            "warmup_max",
            "notes",
        ];
        self.transports = table.words("transports", Transport::parse, errors);
        self.patterns = table.words("patterns", Pattern::parse, errors);
        self.lossless = table.words("lossless", Pattern::parse, errors);
        self.notes = table.texts("notes");
        let levels = table.words("qos", level, errors);
        if table.entries.iter().any(|entry| entry.key == "qos") {
            self.qos = levels;
        }
        for flag in table.words("durable", flag, errors) {
            self.durable = flag;
        }
        for ns in table.words("warmup", parse_time, errors) {
            self.warmup_ns = Some(ns);
        }
        for ns in table.words("warmup_max", parse_time, errors) {
            self.warmup_max_ns = Some(ns);
        }
        for flag in table.words("replaces", flag, errors) {
            self.replaces = flag;
        }
        for entry in &table.entries {
            let field = match entry.key.as_str() {
                "title" => &mut self.title,
                "about" => &mut self.about,
                "licence" => &mut self.licence,
                "homepage" => &mut self.homepage,
                "language" => &mut self.language,
                "first_release" => &mut self.first_release,
                "maintenance" => &mut self.maintenance,
                "facts_from" => &mut self.facts_from,
                "driver" => &mut self.driver,
                "floor" => &mut self.floor,
                "agent" => {
                    self.agent.read(entry, errors);
                    continue;
                }
                _ if self.agent.read_key(entry, errors) => continue,
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
}

/// Refuses control characters for a terminal: a file from another person may contain anything, and
/// all of it is shown.
fn refuse_controls(table: &Table, errors: &mut Vec<Diagnostic>) {
    let mut refuse = |text: &str, at| {
        if let Some(found) = text.chars().find(|c| unprintable(*c)) {
            let found = found.escape_unicode();
            errors.push(Diagnostic::at(at, format!("there is a control character ({found}) here: leave it out")));
        }
    };
    refuse(&table.name, table.at);
    for entry in &table.entries {
        refuse(&entry.key, entry.key_at);
        entry.values.iter().for_each(|value| refuse(&value.text, value.at));
    }
}

fn level(text: &str) -> Result<u8, String> {
    let bad = || format!("`{text}` is not a level of quality of service: write a list of 0, 1 and 2");
    text.parse().ok().filter(|level| *level <= 2).ok_or_else(bad)
}
