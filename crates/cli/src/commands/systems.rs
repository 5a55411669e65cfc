//! `pubmark systems`

use super::agent_command;
use crate::args::SystemsArgs;
use crate::failure::{Code, Failure};
use crate::output::{note, print};
use pubmark_model::diagnostic::suggestion;
use pubmark_model::system::System;
use pubmark_study::install::{self, Presence};
use pubmark_study::registry;
use serde_json::{Value, json};

/// Lists the systems, shows one, or installs it.
pub fn systems(args: &SystemsArgs) -> Result<Code, Failure> {
    registry::load().map_err(Failure::usage)?;
    let agent = agent_command()?;
    let Some(name) = &args.name else {
        let found: Vec<(&System, Presence)> =
            registry::systems().iter().map(|system| (system, install::probe(system, &agent))).collect();
        if args.json {
            let all: Vec<Value> = found.iter().map(|(system, presence)| as_json(system, presence)).collect();
            print(&serde_json::to_string_pretty(&all).unwrap_or_default());
        } else {
            found.iter().for_each(|(system, presence)| print(&row(system, presence)));
        }
        return Ok(Code::Done);
    };
    let system = registry::find(name).ok_or_else(|| {
        Failure::usage(format!(
            "there is no system `{name}`: {}",
            suggestion(name, registry::systems().iter().map(|system| system.name.as_str()))
        ))
    })?;
    if args.install {
        if install::command(system).is_none() {
            print(&format!("{name} needs no installation."));
            return Ok(Code::Done);
        }
        install::install(system).map_err(Failure::run)?;
    }
    let presence = install::probe(system, &agent);
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
    }
}

fn row(system: &System, presence: &Presence) -> String {
    let transports: Vec<&str> = system.transports.iter().map(|transport| transport.word()).collect();
    let way = match presence {
        Presence::Here(_) => transports.join(", "),
        Presence::Missing(_) => format!("pubmark systems {} --install", system.name),
    };
    format!("{:<10} {:<24} {}", system.name, version(presence), way)
}

fn describe(system: &System, presence: &Presence) {
    print(&format!("{} ({}): {}", system.title, system.name, system.about));
    print(&format!("licence:    {}", system.licence));
    if !system.homepage.is_empty() {
        print(&format!("homepage:   {}", system.homepage));
    }
    match presence {
        Presence::Here(versions) => {
            for (name, value) in versions {
                print(&format!(
                    "{:<11} {}",
                    format!("{name}:"),
                    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
                ));
            }
        }
        Presence::Missing(error) => print(&format!("missing:    {error}")),
    }
    if let Some(command) = install::command(system) {
        print(&format!("install:    {}", command.join(" ")));
    }
    print("patterns:   ");
    for pattern in &system.patterns {
        print(&format!(
            "  {pattern}{}",
            if system.lossless.contains(pattern) { " (loses nothing)" } else { " (may drop)" }
        ));
    }
    print("options:");
    for option in &system.options {
        let default = option
            .default
            .as_ref()
            .map_or_else(|| "not set".into(), |value| value.as_str().map_or_else(|| value.to_string(), str::to_owned));
        print(&format!("  options.{} = {default}\n      {}", option.name, option.doc));
    }
    for text in &system.notes {
        print(&format!("note: {text}"));
    }
    if matches!(presence, Presence::Missing(_)) {
        note("It is not installed: `--install` does it.");
    }
}

fn as_json(system: &System, presence: &Presence) -> Value {
    let (versions, missing) = match presence {
        Presence::Here(versions) => (Value::from(versions.clone()), Value::Null),
        Presence::Missing(error) => (Value::Null, error.clone().into()),
    };
    json!({
        "name": system.name,
        "title": system.title,
        "licence": system.licence,
        "driver": system.driver,
        "transports": system.transports,
        "patterns": system.patterns,
        "versions": versions,
        "missing": missing,
        "install": install::command(system),
    })
}
