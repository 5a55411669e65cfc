//! What is measured: one file in `systems/` each.

mod deployment;
mod settings;

use crate::diagnostic::{Diagnostic, Diagnostics, suggestion};
use crate::document::{Document, Table};
use crate::options::{OptionSpec, of_driver, protocol_of};
use crate::server::ServerSpec;
use crate::tuning::Fixed;
use crate::workload::{Pattern, Transport};
use deployment::Deployment;
use std::sync::LazyLock;

const TABLES: [&str; 9] = [
    "install",
    "server",
    "server.prepare",
    "server.environment",
    "server.files",
    "docker",
    "docker.environment",
    "options.NAME",
    "fixed.NAME",
];

/// A system as its file describes it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct System {
    /// Its name: the file's name, a study's `system`, a bench's TARGET.
    pub name: String,
    /// The text of its file: what another host is told.
    pub source: String,
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
    /// A program of its own that plays clients by the agent protocol; empty: pubmark's.
    pub agent: String,
    /// The transports that it has: of a library; a broker is reached over its protocol.
    pub transports: Vec<Transport>,
    /// The patterns that its driver plays.
    pub patterns: Vec<Pattern>,
    /// The patterns in which it promises to lose, duplicate and reorder nothing.
    pub lossless: Vec<Pattern>,
    /// The levels of quality of service that it has, 0 to 2; default: 0 alone.
    pub qos: Vec<u8>,
    /// Whether subscriptions, and what waits for them, can outlive the server; default false.
    pub durable: bool,
    /// How it is started; none for libraries, and for servers that can only be attached to.
    pub server: Option<ServerSpec>,
    /// What brings it here.
    pub install: Install,
    /// The options of its driver, the common ones included.
    pub options: Vec<OptionSpec>,
    /// Settings that no option changes, and that are not its makers'.
    pub fixed: Vec<Fixed>,
    /// What to know about it before quoting a figure.
    pub notes: Vec<String>,
}

/// What brings a system to this machine. Everything but Debian's packages is pinned.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Install {
    /// Debian packages.
    pub debian: Vec<String>,
    /// Maven artifacts, `group:artifact:version[:extension[:classifier]]`: jars
    /// with what they depend on, archives unpacked.
    pub maven: Vec<String>,
    /// Python packages that hold a program, `name==version`.
    pub pip: Vec<String>,
    /// Rust programs, `name@version`.
    pub cargo: Vec<String>,
    /// Go programs, `path@version`.
    pub go: Vec<String>,
    /// What to do by hand, where none of these has it.
    pub manual: String,
}

impl Install {
    /// Whether something goes into pubmark's own cache folder.
    pub fn cached(&self) -> bool {
        !(self.maven.is_empty() && self.pip.is_empty() && self.cargo.is_empty() && self.go.is_empty())
    }
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
            Err(error) => errors.push(Diagnostic::at_value(value.at, error)),
        }
    }
    found
}

fn level(text: &str) -> Result<u8, String> {
    let bad = || format!("`{text}` is no level of quality of service: write a list of 0, 1 and 2");
    text.parse().ok().filter(|level| *level <= 2).ok_or_else(bad)
}

fn flag(text: &str) -> Result<bool, String> {
    text.parse().map_err(|_| format!("`{text}` is neither true nor false"))
}

fn texts(table: &Table, key: &str) -> Vec<String> {
    let entry = table.entries.iter().find(|entry| entry.key == key);
    entry.map(|entry| entry.values.iter().map(|value| value.text.clone()).collect()).unwrap_or_default()
}

/// What is known of a system of which only records tell: nothing.
pub static UNKNOWN: LazyLock<System> = LazyLock::new(System::default);

impl System {
    /// Reads a system file strictly; all its errors at once.
    pub fn parse(name: &str, file: &str, text: &str) -> Result<System, Diagnostics> {
        let mut errors = Vec::new();
        let document = Document::parse(text, &mut errors);
        if !document.sound {
            return Err(Diagnostics { file: file.into(), text: text.into(), errors });
        }
        let mut system = System { name: name.to_owned(), source: text.to_owned(), qos: vec![0], ..System::default() };
        let mut deployment = Deployment::default();
        for table in &document.tables {
            match table.name.split_once('.') {
                None if table.name.is_empty() => system.read_top(table, &mut errors),
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
        let mut options = of_driver(&system.driver);
        options.retain(|option| system.option(&option.name).is_none());
        options.append(&mut system.options);
        system.options = options;
        (system.server, system.install) = deployment.finish(&system, &mut errors);
        system.check(&mut errors);
        errors.sort_by_key(|error| error.offset.unwrap_or(usize::MAX));
        if errors.is_empty() { Ok(system) } else { Err(Diagnostics { file: file.into(), text: text.into(), errors }) }
    }

    /// What one key alone cannot say.
    fn check(&self, errors: &mut Vec<Diagnostic>) {
        for (value, key) in
            [(&self.title, "title"), (&self.about, "about"), (&self.driver, "driver"), (&self.licence, "licence")]
        {
            if value.is_empty() {
                errors.push(Diagnostic::whole(format!("`{key}` is missing")));
            }
        }
        if self.patterns.is_empty() {
            errors.push(Diagnostic::whole("`patterns` is missing: name at least one pattern that the driver plays"));
        }
        if let Some(pattern) = self.lossless.iter().find(|pattern| !self.patterns.contains(pattern)) {
            errors.push(Diagnostic::whole(format!("`lossless` names `{pattern}`, which is none of its `patterns`")));
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
                .help("drivers that do: mqtt, nats, redis, amqp, zenoh"),
            );
        }
    }

    /// Whether its clients meet at a server.
    pub fn broker(&self) -> bool {
        protocol_of(&self.driver).is_some()
    }

    fn read_top(&mut self, table: &Table, errors: &mut Vec<Diagnostic>) {
        const KNOWN: [&str; 12] = [
            "title",
            "about",
            "licence",
            "homepage",
            "driver",
            "agent",
            "transports",
            "patterns",
            "lossless",
            "qos",
            "durable",
            "notes",
        ];
        self.transports = words(table, "transports", Transport::parse, errors);
        self.patterns = words(table, "patterns", Pattern::parse, errors);
        self.lossless = words(table, "lossless", Pattern::parse, errors);
        self.notes = texts(table, "notes");
        let levels = words(table, "qos", level, errors);
        if table.entries.iter().any(|entry| entry.key == "qos") {
            self.qos = levels;
        }
        for flag in words(table, "durable", flag, errors) {
            self.durable = flag;
        }
        for entry in &table.entries {
            let field = match entry.key.as_str() {
                "title" => &mut self.title,
                "about" => &mut self.about,
                "licence" => &mut self.licence,
                "homepage" => &mut self.homepage,
                "driver" => &mut self.driver,
                "agent" => &mut self.agent,
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

    /// The option of this name.
    pub fn option(&self, name: &str) -> Option<&OptionSpec> {
        self.options.iter().find(|option| option.name == name)
    }
}
