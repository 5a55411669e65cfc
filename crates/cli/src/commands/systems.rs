//! `pubmark systems`

use super::shared::{agent_command, system as named};
use super::{new_system, systems_on_hosts};
use crate::args::SystemsArgs;
use crate::failure::{Code, Failure};
use crate::output::{note, print, width};
use pubmark_host::install::{self, Availability};
use pubmark_model::secret::{HIDDEN, Secrets, is_secret_name, is_switch, recorded_text};
use pubmark_model::system::{AgentSpec, System};
use pubmark_model::tuning::DefaultValue;
use pubmark_study::probe::probe;
use pubmark_study::registry::user_files::{RefusedFile, UserFile};
use pubmark_study::registry::{Registry, origin};
use serde_json::{Value, json};
use std::sync::Arc;

/// Lists the systems, shows one, installs it, or begins a new one.
pub fn systems(args: &SystemsArgs, mut registry: Registry) -> Result<Code, Failure> {
    if let Some(file) = &args.hosts {
        return systems_on_hosts::systems(args, file, &mut registry);
    }
    let Some(name) = &args.name else { return list(args.json, &registry) };
    if args.new {
        return new_system::write(name, args.protocol, args.agent);
    }
    let tool = install::tools::find(name);
    let system = match tool {
        Some(tool) => tool.clone(),
        None => named(&mut registry, name)?,
    };
    let system = &*system;
    if args.install {
        install::install(system, &|command| note(&format!("+ {command}"))).map_err(Failure::run)?;
    }
    let agent = agent_command()?;
    let ask = || if tool.is_some() { install::probe(system) } else { probe(system, &agent) };
    let presence = if args.json {
        let presence = ask();
        print(&serde_json::to_string_pretty(&as_json(system, &presence)).unwrap_or_default());
        presence
    } else {
        // Users see what another person's system would start before it is started.
        describe_start(system);
        let presence = ask();
        describe(system, &presence);
        presence
    };
    match presence {
        Availability::Missing(error) if args.install => {
            Err(Failure::run(format!("{name} is installed, but cannot be used: {error}")))
        }
        _ => Ok(Code::Done),
    }
}

/// Prints all systems. Starts nothing of the user's files, and no agent but pubmark's own.
fn list(json: bool, registry: &Registry) -> Result<Code, Failure> {
    let agent = agent_command()?;
    let presence = |system: &System| match system.brought || !system.agent.built_in() {
        true => install::look(system),
        false => probe(system, &agent),
    };
    let found: Vec<(Arc<System>, Availability)> =
        registry.systems().into_iter().map(|system| (system.clone(), presence(&system))).collect();
    let brought = registry.brought();
    let refused = brought.iter().filter_map(|file| Some((*file, file.system.as_ref().err()?)));
    if json {
        let mut all: Vec<Value> = found.iter().map(|(system, presence)| as_json(system, presence)).collect();
        all.extend(refused.map(|(file, why)| {
            json!({ "name": file.name, "file": file.path.display().to_string(), "refused": why.to_string() })
        }));
        print(&serde_json::to_string_pretty(&all).unwrap_or_default());
    } else {
        let tool = install::tools::toxiproxy();
        let presence = install::probe(tool);
        // A tool measures nothing, and is named to be installed.
        let [name, _, version, _, how] = row(tool, &presence);
        let of_tool = (Group::of(tool, &presence), [name, tool.title.clone(), version, "a tool: links".into(), how]);
        let mut rows: Vec<(Group, [String; 5])> =
            found.iter().map(|(system, presence)| (Group::of(system, presence), row(system, presence))).collect();
        rows.push(of_tool);
        rows.extend(refused.map(|(file, why)| (Group::Refused, refused_row(file, why))));
        rows.sort();
        grouped(&rows);
    }
    Ok(Code::Done)
}

/// Returns the row of an invalid file, with its first error.
fn refused_row(file: &UserFile, why: &RefusedFile) -> [String; 5] {
    let why = why.to_string();
    let first = why.lines().next().unwrap_or_default().to_owned();
    [file.name.clone(), "(no system)".into(), "refused".into(), String::new(), first]
}

fn version(presence: &Availability) -> String {
    match presence {
        Availability::Here(versions) => versions.get("version").and_then(Value::as_str).unwrap_or("here").to_owned(),
        Availability::Missing(_) => "missing".into(),
        Availability::External => "external".into(),
    }
}

/// Describes the ways to connect: a broker's protocol, or a library's transports.
fn ways(system: &System) -> String {
    if system.broker() {
        return system.driver.clone();
    }
    join(system.transports.iter().map(|transport| transport.word()))
}

/// Describes the ways to connect and the clients' abilities in one line.
fn abilities(system: &System) -> String {
    let qos = system.qos.iter().max().filter(|most| **most > 0).map(|most| format!("QoS 0 to {most}"));
    let said = [Some(ways(system)).filter(|ways| !ways.is_empty()), qos, system.durable.then(|| "durable".to_owned())];
    join(said.into_iter().flatten())
}

fn join<T: ToString>(items: impl Iterator<Item = T>) -> String {
    items.map(|item| item.to_string()).collect::<Vec<_>>().join(", ")
}

fn row(system: &System, presence: &Availability) -> [String; 5] {
    let how = match presence {
        Availability::Here(_) if system.brought => install::called(system),
        Availability::Here(_) => String::new(),
        Availability::External => format!("pubmark bench {}://HOST:PORT", system.driver),
        Availability::Missing(_) if !install::can(system) => system.install.manual.clone(),
        Availability::Missing(_) => format!("pubmark systems {} --install", system.name),
    };
    let not_asked = (system.brought || !system.agent.built_in()) && matches!(presence, Availability::Here(_));
    let version = if not_asked { "not asked".into() } else { version(presence) };
    [system.name.clone(), system.title.clone(), version, abilities(system), how]
}

/// Groups of the list, in their order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Group {
    Installed,
    Installable,
    External,
    ByHand,
    Refused,
}

impl Group {
    const ALL: [Group; 5] = [Group::Installed, Group::Installable, Group::External, Group::ByHand, Group::Refused];

    fn of(system: &System, presence: &Availability) -> Group {
        match presence {
            Availability::Here(_) => Group::Installed,
            Availability::External => Group::External,
            Availability::Missing(_) if install::can(system) => Group::Installable,
            Availability::Missing(_) => Group::ByHand,
        }
    }

    /// Returns its heading, with the command for its systems.
    fn heading(self) -> &'static str {
        match self {
            Group::Installed => "INSTALLED",
            Group::Installable => "NOT INSTALLED: pubmark systems NAME --install",
            Group::External => "RUNNING ELSEWHERE: pubmark bench PROTOCOL://HOST:PORT",
            Group::ByHand => "INSTALL BY HAND",
            Group::Refused => "FILES THAT CANNOT BE READ",
        }
    }

    /// Returns whether the names are enough, because the heading says the rest.
    fn has_names_only(self) -> bool {
        matches!(self, Group::Installable | Group::External)
    }
}

/// Prints the groups, each with its heading.
fn grouped(rows: &[(Group, [String; 5])]) {
    let mut is_first = true;
    for group in Group::ALL {
        let own: Vec<[String; 5]> = rows.iter().filter(|(of, _)| *of == group).map(|(_, row)| row.clone()).collect();
        if own.is_empty() {
            continue;
        }
        print(&format!("{}{}", if is_first { "" } else { "\n" }, group.heading()));
        is_first = false;
        match group.has_names_only() {
            true => names(own.iter().map(|row| row[0].as_str()), width()),
            false => table(&own),
        }
    }
}

/// Prints names in lines of at most this width, if they fit.
fn names<'a>(names: impl Iterator<Item = &'a str>, width: usize) {
    let mut line = String::new();
    for name in names {
        if !line.is_empty() && line.chars().count() + name.chars().count() + 3 > width {
            print(&format!("{line},"));
            line.clear();
        }
        line.push_str(if line.is_empty() { "" } else { ", " });
        line.push_str(name);
    }
    print(&line);
}

/// Prints columns as wide as their widest cell; the last one is not padded.
fn table(rows: &[[String; 5]]) {
    let widest = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let widths: Vec<usize> = (0..4).map(widest).collect();
    for row in rows {
        let cells = widths.iter().zip(row).map(|(width, cell)| format!("{cell:<width$}  "));
        print(format!("{}{}", cells.collect::<String>(), row[4]).trim_end());
    }
}

fn deployments(system: &System) -> Vec<&'static str> {
    let server = system.server.as_ref();
    let native = server.is_some_and(|server| !server.command.is_empty());
    let contained = server.is_some_and(|server| server.container.is_some());
    let ways = [(native, "native"), (contained, "container"), (system.broker(), "external")];
    ways.into_iter().filter_map(|(there, way)| there.then_some(way)).collect()
}

/// Returns whether its server can be started with TLS; `None` if it has no server to start.
fn takes_tls(system: &System) -> Option<bool> {
    let server = system.server.as_ref()?;
    Some(server.takes_tls(server.command.is_empty()))
}

fn line(name: &str, text: &str) {
    print(&format!("{:<12} {text}", format!("{name}:")));
}

/// Prints a system's kind, its origin, and the commands that it would start.
fn describe_start(system: &System) {
    print(&format!("{} ({}): {}", system.title, system.name, system.about));
    line("licence", &system.licence);
    if !system.homepage.is_empty() {
        line("homepage", &system.homepage);
    }
    for (name, fact) in
        [("language", &system.language), ("first release", &system.first_release), ("maintenance", &system.maintenance)]
    {
        if !fact.is_empty() {
            line(name, &format!("{fact} ({})", system.facts_from));
        }
    }
    if system.brought {
        let replaces = origin(system).replaces;
        let note = if replaces { " (in place of the one that comes with pubmark)" } else { "" };
        line("file", &format!("{}{note}", install::called(system)));
    }
    let secrets = system.secrets(&system.defaults());
    describe_agent(&system.agent, &secrets);
    describe_server(system, &secrets);
}

/// Prints how its clients' program is started, word by word.
fn describe_agent(agent: &AgentSpec, secrets: &Secrets) {
    if agent.built_in() {
        return;
    }
    match agent.differs() {
        false => line("agent", &shell(&agent.sending, secrets)),
        true => {
            line("publishers", &shell(&agent.sending, secrets));
            line("subscribers", &shell(&agent.receiving, secrets));
        }
    }
    agent.environment.iter().for_each(|(name, value)| line("environment", &variable(name, value, secrets)));
    if agent.processes > 1 {
        line("agents", &format!("{} processes a side", agent.processes));
    }
}

/// Formats a variable for a shell, without secrets.
fn variable(name: &str, value: &str, secrets: &Secrets) -> String {
    let secret = is_secret_name(name) && !is_switch(value);
    format!("{name}={}", if secret { HIDDEN.to_owned() } else { secrets.hide(value) })
}

fn describe(system: &System, presence: &Availability) {
    match presence {
        Availability::Here(versions) => {
            for (name, value) in versions {
                line(name, &value.as_str().map_or_else(|| value.to_string(), str::to_owned));
            }
        }
        Availability::Missing(error) => line("missing", error),
        Availability::External => line("external", "pubmark does not start it: name one that runs"),
    }
    for command in install::commands(system) {
        line("install", &command.join(" "));
    }
    if !system.install.manual.is_empty() {
        line("by hand", &system.install.manual);
    }
    if system.driver.is_empty() {
        return;
    }
    line(if system.broker() { "protocol" } else { "transports" }, &ways(system));
    line("qos", &join(system.qos.iter()));
    line("durable", if system.durable { "yes, on demand" } else { "no" });
    if let Some(takes_tls) = takes_tls(system) {
        line("tls", if takes_tls { "yes, on demand" } else { "no" });
    }
    print("patterns:");
    let acknowledged = if system.broker() { " from QoS 1 up" } else { "" };
    for pattern in &system.patterns {
        let promise = if system.lossless.contains(pattern) {
            format!(" (loses nothing{acknowledged})")
        } else {
            " (may drop)".to_owned()
        };
        print(&format!("  {pattern}{promise}"));
    }
    print("options:");
    for option in &system.options {
        let recorded = |value: &Value| recorded_text(&option.name, option.is_secret(), &shown(value));
        let default = option.default.as_ref().map_or_else(|| "not set".into(), recorded);
        print(&format!("  options.{} = {default}\n      {}", option.name, option.doc));
        if let Some(tuned) = &option.tuned {
            print(&match &tuned.stock {
                DefaultValue::Value(stock) => format!("      vendor default {}: {}", recorded(stock), tuned.why),
                DefaultValue::Stays(stays) => format!("      with stock settings too: {}; {stays}", tuned.why),
            });
        }
    }
    if !system.fixed.is_empty() {
        print("settings that no option changes and that differ from the vendor defaults:");
    }
    for fixed in &system.fixed {
        let stock = fixed.stock.as_deref().unwrap_or("not known from their documentation");
        print(&format!("  {} = {} (vendor default: {stock})\n      {}", fixed.name, fixed.value, fixed.why));
    }
    for text in &system.notes {
        print(&format!("note: {text}"));
    }
    if matches!(presence, Availability::Missing(_)) && install::can(system) {
        note("It is not installed: `--install` does it.");
    }
}

/// Formats a value for a shell.
fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Prints how its server is started, word by word.
fn describe_server(system: &System, secrets: &Secrets) {
    if !system.broker() {
        return;
    }
    print(&format!("{:<12} {}", "deployment:", deployments(system).join(", ")));
    let Some(server) = &system.server else { return };
    for command in &server.prepare {
        print(&format!("{:<12} {}", "before:", shell(command, secrets)));
    }
    if !server.command.is_empty() {
        print(&format!("{:<12} {}", "start:", shell(&server.command, secrets)));
    }
    for (name, value) in &server.environment {
        line("environment", &variable(name, value, secrets));
    }
    for (path, text) in &server.files {
        print(&format!("{:<12} {{dir}}/{path}", "file:"));
        secrets.hide(text).lines().for_each(|line| print(&format!("    {line}")));
    }
    if let Some(container) = &server.container {
        print(format!("{:<12} {} {}", "image:", container.image, shell(&container.command, secrets)).trim_end());
    }
}

/// Formats a command for a shell, without secrets.
fn shell(command: &[String], secrets: &Secrets) -> String {
    let plain = |word: &str| !word.is_empty() && !word.contains([' ', '"', '*', '$', '\'', ';', '&', '|']);
    let words = command.iter().map(|word| if plain(word) { word.clone() } else { format!("'{word}'") });
    secrets.hide(&words.collect::<Vec<_>>().join(" "))
}

fn as_json(system: &System, presence: &Availability) -> Value {
    let (versions, missing) = match presence {
        Availability::Here(versions) => (Value::from(versions.clone()), Value::Null),
        Availability::Missing(error) => (Value::Null, error.clone().into()),
        Availability::External => (Value::Null, Value::Null),
    };
    let secrets = system.secrets(&system.defaults());
    let hidden = |command: &[String]| command.iter().map(|word| secrets.hide(word)).collect::<Vec<_>>();
    json!({
        "name": system.name,
        "file": system.brought.then(|| install::called(system)),
        "replaces": origin(system).replaces,
        "agent": (!system.agent.built_in()).then(|| [&system.agent.sending, &system.agent.receiving].map(|command| hidden(command))),
        "title": system.title,
        "licence": system.licence,
        "language": system.language,
        "first_release": system.first_release,
        "maintenance": system.maintenance,
        "facts_from": system.facts_from,
        "driver": system.driver,
        "protocol": system.protocol(),
        "transports": system.transports,
        "patterns": system.patterns,
        "qos": system.qos,
        "durable": system.durable,
        "tls": takes_tls(system),
        "deployments": deployments(system),
        "command": system.server.as_ref().map(|server| hidden(&server.command)),
        "image": system.server.as_ref().and_then(|server| server.container.as_ref()).map(|container| &container.image),
        "versions": versions,
        "missing": missing,
        "install": install::commands(system),
    })
}
