//! `pubmark systems`

use super::shared::agent_command;
use crate::args::SystemsArgs;
use crate::failure::{Code, Failure};
use crate::output::{note, print};
use pubmark_host::install::{self, Presence};
use pubmark_model::diagnostic::suggestion;
use pubmark_model::secret::recorded_text;
use pubmark_model::system::System;
use pubmark_model::tuning::Stock;
use pubmark_study::probe::probe;
use pubmark_study::registry;
use serde_json::{Value, json};

/// Lists the systems, shows one, or installs it.
pub fn systems(args: &SystemsArgs) -> Result<Code, Failure> {
    registry::load().map_err(Failure::usage)?;
    let agent = agent_command()?;
    let Some(name) = &args.name else {
        let found: Vec<(&System, Presence)> =
            registry::systems().iter().map(|system| (system, probe(system, &agent))).collect();
        if args.json {
            let all: Vec<Value> = found.iter().map(|(system, presence)| as_json(system, presence)).collect();
            print(&serde_json::to_string_pretty(&all).unwrap_or_default());
        } else {
            let rows = found.iter().map(|(system, presence)| row(system, presence));
            // A tool measures nothing, and is named to be installed.
            let tool = install::tools::toxiproxy();
            let [name, _, version, _, how] = row(tool, &install::probe(tool));
            table(&rows.chain([[name, tool.title.clone(), version, "a tool: links".into(), how]]).collect::<Vec<_>>());
        }
        return Ok(Code::Done);
    };
    let tool = install::tools::find(name);
    let system = registry::find(name).or(tool).ok_or_else(|| {
        Failure::usage(format!(
            "there is no system `{name}`: {}",
            suggestion(
                name,
                registry::systems().iter().chain([install::tools::toxiproxy()]).map(|system| system.name.as_str())
            )
        ))
    })?;
    if args.install {
        install::install(system, &|command| note(&format!("+ {command}"))).map_err(Failure::run)?;
    }
    let presence = if tool.is_some() { install::probe(system) } else { probe(system, &agent) };
    if args.json {
        print(&serde_json::to_string_pretty(&as_json(system, &presence)).unwrap_or_default());
    } else {
        describe(system, &presence);
    }
    match presence {
        Presence::Missing(error) if args.install => {
            Err(Failure::run(format!("{name} is installed, but cannot be used: {error}")))
        }
        _ => Ok(Code::Done),
    }
}

fn version(presence: &Presence) -> String {
    match presence {
        Presence::Here(versions) => versions.get("version").and_then(Value::as_str).unwrap_or("here").to_owned(),
        Presence::Missing(_) => "missing".into(),
        Presence::External => "external".into(),
    }
}

/// What its clients speak: a broker's protocol, or a library's transports.
fn ways(system: &System) -> String {
    if system.broker() {
        return system.driver.clone();
    }
    join(system.transports.iter().map(|transport| transport.word()))
}

fn join<T: ToString>(items: impl Iterator<Item = T>) -> String {
    items.map(|item| item.to_string()).collect::<Vec<_>>().join(", ")
}

fn row(system: &System, presence: &Presence) -> [String; 5] {
    let how = match presence {
        Presence::Here(_) => String::new(),
        Presence::External => format!("pubmark bench {}://HOST:PORT", system.driver),
        Presence::Missing(_) if install::commands(system).is_empty() => system.install.manual.clone(),
        Presence::Missing(_) => format!("pubmark systems {} --install", system.name),
    };
    [system.name.clone(), system.title.clone(), version(presence), ways(system), how]
}

/// Columns as wide as their widest cell; the last one is as long as it is.
fn table(rows: &[[String; 5]]) {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let widths: Vec<usize> = (0..4).map(width).collect();
    for row in rows {
        let cells = widths.iter().zip(row).map(|(width, cell)| format!("{cell:<width$}  "));
        print(format!("{}{}", cells.collect::<String>(), row[4]).trim_end());
    }
}

fn deployments(system: &System) -> Vec<&'static str> {
    let server = system.server.as_ref();
    let native = server.is_some_and(|server| !server.command.is_empty());
    let docker = server.is_some_and(|server| server.docker.is_some());
    let ways = [(native, "native"), (docker, "docker"), (system.broker(), "external")];
    ways.into_iter().filter_map(|(there, way)| there.then_some(way)).collect()
}

fn describe(system: &System, presence: &Presence) {
    let line = |name: &str, text: &str| print(&format!("{:<12} {text}", format!("{name}:")));
    print(&format!("{} ({}): {}", system.title, system.name, system.about));
    line("licence", &system.licence);
    if !system.homepage.is_empty() {
        line("homepage", &system.homepage);
    }
    match presence {
        Presence::Here(versions) => {
            for (name, value) in versions {
                line(name, &value.as_str().map_or_else(|| value.to_string(), str::to_owned));
            }
        }
        Presence::Missing(error) => line("missing", error),
        Presence::External => line("external", "pubmark does not start it: name one that runs"),
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
    describe_server(system);
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
        let recorded = |value: &Value| recorded_text(&option.name, &shown(value));
        let default = option.default.as_ref().map_or_else(|| "not set".into(), recorded);
        print(&format!("  options.{} = {default}\n      {}", option.name, option.doc));
        if let Some(tuned) = &option.tuned {
            print(&match &tuned.stock {
                Stock::Value(stock) => format!("      not its makers' {}: {}", shown(stock), tuned.why),
                Stock::Stays(stays) => format!("      with stock settings too: {}; {stays}", tuned.why),
            });
        }
    }
    if !system.fixed.is_empty() {
        print("settings that no option changes, and that are not its makers':");
    }
    for fixed in &system.fixed {
        let stock = fixed.stock.as_deref().unwrap_or("not known from their documentation");
        print(&format!("  {} = {} (its makers': {stock})\n      {}", fixed.name, fixed.value, fixed.why));
    }
    for text in &system.notes {
        print(&format!("note: {text}"));
    }
    if matches!(presence, Presence::Missing(_)) && !install::commands(system).is_empty() {
        note("It is not installed: `--install` does it.");
    }
}

/// A value as one would type it.
fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// How it is started, word by word.
fn describe_server(system: &System) {
    if !system.broker() {
        return;
    }
    print(&format!("{:<12} {}", "deployment:", deployments(system).join(", ")));
    let Some(server) = &system.server else { return };
    for command in &server.prepare {
        print(&format!("{:<12} {}", "before:", shell(command)));
    }
    if !server.command.is_empty() {
        print(&format!("{:<12} {}", "start:", shell(&server.command)));
    }
    for (name, value) in &server.environment {
        print(&format!("{:<12} {name}={value}", "environment:"));
    }
    for (path, text) in &server.files {
        print(&format!("{:<12} {{dir}}/{path}", "file:"));
        text.lines().for_each(|line| print(&format!("    {line}")));
    }
    if let Some(docker) = &server.docker {
        print(format!("{:<12} {} {}", "image:", docker.image, shell(&docker.command)).trim_end());
    }
}

/// A command as one would type it.
fn shell(command: &[String]) -> String {
    let plain = |word: &str| !word.is_empty() && !word.contains([' ', '"', '*', '$', '\'', ';', '&', '|']);
    let words = command.iter().map(|word| if plain(word) { word.clone() } else { format!("'{word}'") });
    words.collect::<Vec<_>>().join(" ")
}

fn as_json(system: &System, presence: &Presence) -> Value {
    let (versions, missing) = match presence {
        Presence::Here(versions) => (Value::from(versions.clone()), Value::Null),
        Presence::Missing(error) => (Value::Null, error.clone().into()),
        Presence::External => (Value::Null, Value::Null),
    };
    json!({
        "name": system.name,
        "title": system.title,
        "licence": system.licence,
        "driver": system.driver,
        "protocol": system.protocol(),
        "transports": system.transports,
        "patterns": system.patterns,
        "qos": system.qos,
        "durable": system.durable,
        "deployments": deployments(system),
        "command": system.server.as_ref().map(|server| &server.command),
        "image": system.server.as_ref().and_then(|server| server.docker.as_ref()).map(|docker| &docker.image),
        "versions": versions,
        "missing": missing,
        "install": install::commands(system),
    })
}
