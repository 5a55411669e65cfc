//! `pubmark systems --hosts FILE`: shows which systems can be used on each host.

use super::shared::{agent_command, hosts, system as named};
use crate::args::SystemsArgs;
use crate::failure::{Code, Failure};
use crate::output::{note, print};
use pubmark_host::error::HostError;
use pubmark_host::inbox::inbox;
use pubmark_host::install::{self, Availability};
use pubmark_host::reach::{Host, SharedRunSettings};
use pubmark_model::host::HostSpec;
use pubmark_model::hosts::{Duty, ListedHost};
use pubmark_model::secret::Secrets;
use pubmark_model::system::System;
use pubmark_study::registry::Registry;
use serde_json::{Map, Value, json};
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// A flag that is never set: an interrupt just ends the process, as nothing here takes long.
static NEVER: AtomicBool = AtomicBool::new(false);

/// Lists the systems by host, or checks one of them, and installs it there. Exit code 3 if a host cannot be reached.
pub fn systems(args: &SystemsArgs, file: &Path, registry: &mut Registry) -> Result<Code, Failure> {
    let one = args.name.as_deref().map(|name| named(registry, name)).transpose()?;
    let wanted = one.clone().map_or_else(|| registry.systems(), |system| vec![system]);
    let wanted: Vec<&System> = wanted.iter().map(|system| &**system).collect();
    let one = one.as_deref();
    let mut all: Vec<(String, Result<Vec<Availability>, HostError>)> = Vec::new();
    for host in &hosts(file)?.0 {
        let install = one.filter(|system| args.install && may_need(host, system));
        all.push((host.spec.name.clone(), look(&host.spec, &wanted, install)));
    }
    if args.json {
        let told = all.iter().map(|(name, found)| (name.clone(), as_json(&wanted, found)));
        print(&serde_json::to_string_pretty(&told.collect::<Map<_, _>>()).unwrap_or_default());
    } else {
        match one {
            Some(_) => all.iter().for_each(|(name, found)| print(&format!("{name}: {}", in_full(found)))),
            None => table(&wanted, &all),
        }
    }
    let unasked = all.iter().filter_map(|(_, found)| found.as_ref().err());
    let failed = unasked.inspect(|error| note(&error.to_string())).count();
    Ok(if failed > 0 { Code::Run } else { Code::Done })
}

/// Returns whether a host may need a system: a server runs only on hosts for servers.
fn may_need(host: &ListedHost, system: &System) -> bool {
    let has_server_alone = system.server.is_some() && system.agent.built_in();
    !has_server_alone || host.roles.is_empty() || host.roles.contains(&Duty::Server)
}

/// Returns the secrets that no output of a host about these systems may contain: no run has options yet.
pub fn secrets_of<'s>(systems: impl IntoIterator<Item = &'s System>) -> Secrets {
    let own = systems.into_iter().map(|system| system.secrets(&system.defaults()));
    own.fold(Secrets::default(), Secrets::and)
}

/// Returns what can be used on a host, in the order of the systems.
fn look(spec: &HostSpec, systems: &[&System], install: Option<&System>) -> Result<Vec<Availability>, HostError> {
    let agent = agent_command().map_err(|error| HostError::Failed(error.to_string()))?;
    let (inbox, _words) = inbox();
    let secrets = secrets_of(systems.iter().copied().chain(install));
    let wanted =
        SharedRunSettings { built_in: &agent, logs: Path::new(""), secrets: &secrets, interrupt: &NEVER, inbox };
    let mut host = Host::open(spec, 0, &wanted)?;
    if let Some(system) = install {
        note(&format!("installing {} on host {}", system.name, spec.name));
        let file = host.bring(system)?;
        host.install(file)?;
    }
    host.presences(systems)
}

/// Returns a system's cell of the table: its version, or that it is missing.
fn short(presence: &Availability) -> String {
    match presence {
        Availability::Here(found) => found.get("version").and_then(Value::as_str).unwrap_or("here").to_owned(),
        Availability::Missing(_) => "missing".into(),
        Availability::External => "external".into(),
    }
}

/// Describes one system, with the reason and advice.
fn in_full(found: &Result<Vec<Availability>, HostError>) -> String {
    match found {
        Ok(found) => found
            .iter()
            .map(|presence| match presence {
                Availability::Missing(why) => format!("missing: {why}"),
                presence => short(presence),
            })
            .collect(),
        Err(_) => "cannot be asked".into(),
    }
}

fn table(systems: &[&System], all: &[(String, Result<Vec<Availability>, HostError>)]) {
    let cells = |found: &Result<Vec<Availability>, HostError>, row: usize| match found {
        Ok(found) => found.get(row).map(short).unwrap_or_default(),
        Err(_) => "?".into(),
    };
    let mut rows: Vec<Vec<String>> = systems
        .iter()
        .enumerate()
        .map(|(row, system)| {
            [system.name.clone()].into_iter().chain(all.iter().map(|(_, found)| cells(found, row))).collect()
        })
        .collect();
    rows.sort();
    rows.insert(0, [String::new()].into_iter().chain(all.iter().map(|(name, _)| name.clone())).collect());
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let widths: Vec<usize> = (0..=all.len()).map(width).collect();
    for row in &rows {
        let line: String = widths.iter().zip(row).map(|(width, cell)| format!("{cell:<width$}  ")).collect();
        print(line.trim_end());
    }
    let missing = all.iter().flat_map(|(_, found)| found.iter().flatten());
    if missing.into_iter().any(|presence| matches!(presence, Availability::Missing(_))) {
        note("`pubmark systems NAME --hosts FILE` says what is missing; with --install it is brought there");
    }
}

fn as_json(systems: &[&System], found: &Result<Vec<Availability>, HostError>) -> Value {
    let one = |(system, presence): (&&System, &Availability)| {
        let (versions, missing) = match presence {
            Availability::Here(versions) => (Value::from(versions.clone()), Value::Null),
            Availability::Missing(why) => (Value::Null, why.clone().into()),
            Availability::External => (Value::Null, Value::Null),
        };
        json!({ "name": system.name, "versions": versions, "missing": missing, "install": install::can(system) })
    };
    match found {
        Ok(found) => systems.iter().zip(found).map(one).collect(),
        Err(error) => json!({ "error": error.to_string() }),
    }
}

/// Describes what can be used on a host in one sentence. Returns also how many systems cannot.
pub fn in_a_sentence(systems: &[&System], found: &[Availability]) -> (String, usize) {
    let here = systems.iter().zip(found).filter(|(_, presence)| matches!(presence, Availability::Here(_)));
    let named = here.map(|(system, presence)| match short(presence) {
        word if word == "here" => system.name.clone(),
        version => format!("{} {version}", system.name),
    });
    let missing = found.iter().filter(|presence| matches!(presence, Availability::Missing(_))).count();
    (named.collect::<Vec<_>>().join(", "), missing)
}
