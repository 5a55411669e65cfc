//! What the hosts of a study are, have and lack: looked at once, before its first run.

use crate::ask::Greetings;
use crate::plan::StudyPlan;
use crate::run::{login, open_all};
use pubmark_host::error::HostError;
use pubmark_host::inbox::inbox;
use pubmark_host::install::{self, NATIVE, tools};
use pubmark_host::lanes::in_lanes;
use pubmark_host::lines::Facts;
use pubmark_host::machine;
use pubmark_host::reach::{Host, Wanted};
use pubmark_model::cell::Cell;
use pubmark_model::host::{HostSpec, LOCAL};
use pubmark_model::options::OptionValues;
use pubmark_model::system::System;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// What was found on hosts, and what agents said that were greeted here. Default: nobody
/// looked, and only this machine is known.
#[derive(Default)]
pub struct Survey {
    hosts: Vec<SurveyedHost>,
    /// What agents of systems' own said on this machine.
    pub greetings: Greetings,
}

/// What was found on a host.
struct SurveyedHost {
    spec: HostSpec,
    facts: Facts,
    lacks: Vec<(Part, String)>,
}

impl SurveyedHost {
    /// Why it cannot play a part, if it cannot.
    fn lacking(&self, part: &Part) -> Option<String> {
        let (_, why) = self.lacks.iter().find(|(lacking, _)| lacking == part)?;
        Some(format!("host {}: {why}", self.spec.name))
    }
}

/// A part of a run that a host may play.
#[derive(Clone, Debug, PartialEq)]
struct Part {
    /// The system, or the tool that plays a link.
    system: Arc<System>,
    /// How its server is to be started there, if it is.
    deployment: Option<String>,
    /// Whether its clients play there.
    plays: bool,
}

/// What there is of a host for a run.
pub struct Room {
    /// Whose it is: `this machine`, `host b1`.
    pub whose: String,
    /// Files that a process may open.
    pub files: usize,
    /// Processors.
    pub cpus: f64,
    /// Memory, bytes, where it is known.
    pub memory_bytes: Option<u64>,
    /// Connections that one address of it may make to another: its ephemeral ports.
    pub ports: usize,
}

impl Survey {
    /// Looks at every host that a run of the plan will have, if one of them is another
    /// machine. What is lacking is installed where `install` is given, which is told
    /// what happens; what cannot be had there stops no other, and its cells are left out
    /// with the reason.
    ///
    /// # Errors
    /// If a host cannot be reached, is not what is said of it, or is another as well.
    pub fn of(plan: &StudyPlan, agent: &[String], install: Option<&dyn Fn(&str)>) -> Result<Survey, HostError> {
        let cells: Vec<&Cell> = plan.cells().iter().filter(|cell| cell.skipped.is_none()).collect();
        let mut specs: Vec<&HostSpec> = Vec::new();
        for cell in cells.iter().filter(|cell| !cell.placement.local()) {
            for host in cell.placement.hosts() {
                if !specs.contains(&host) {
                    specs.push(host);
                }
            }
        }
        if specs.is_empty() {
            return Ok(Survey::default());
        }
        static NEVER: AtomicBool = AtomicBool::new(false);
        let (inbox, _words) = inbox();
        // Whoever is lost has nothing to hand in.
        let (secrets, logs) = (login::secrets_of(cells.iter().copied()), Path::new(""));
        let wanted = Wanted { built_in: agent, logs, secrets: &secrets, interrupt: &NEVER, inbox };
        let (mut hosts, facts) = open_all(&specs, true, &wanted)?;
        if let Some(say) = install {
            // One after the other: each may have the same folders.
            for host in &mut hosts {
                let mut tried: Vec<String> = Vec::new();
                for part in parts_of(&host.spec, &cells) {
                    if !tried.contains(&part.system.name) {
                        install_there(host, &part, &mut tried, say)?;
                    }
                }
            }
        }
        let looked =
            in_lanes(hosts.iter_mut().collect(), |host: &mut Host<'_>| lacks(host, &parts_of(&host.spec, &cells)));
        in_lanes(hosts, drop);
        let found = specs
            .into_iter()
            .zip(facts)
            .zip(looked)
            .map(|((spec, facts), lacks)| Ok(SurveyedHost { spec: spec.clone(), facts, lacks: lacks? }));
        Ok(Survey { hosts: found.collect::<Result<_, HostError>>()?, ..Survey::default() })
    }

    /// As if hosts that lack nothing had been looked at.
    #[cfg(test)]
    pub fn of_facts(found: Vec<(HostSpec, Facts)>) -> Survey {
        let host = |(spec, facts)| SurveyedHost { spec, facts, lacks: Vec::new() };
        Survey { hosts: found.into_iter().map(host).collect(), ..Survey::default() }
    }

    /// Why a system cannot be used by a cell on its hosts, by whoever has looked.
    pub fn missing(&self, cell: &Cell) -> Option<String> {
        self.hosts.iter().find_map(|host| host.lacking(&part(&host.spec, cell)?))
    }

    /// Why the link of a cell cannot stand on its server's host, by whoever has looked.
    pub fn missing_link(&self, cell: &Cell) -> Option<String> {
        self.hosts.iter().find_map(|host| host.lacking(&link(&host.spec, cell)?))
    }

    /// What there is of a host; none of another machine at which nobody has looked.
    pub fn room(&self, spec: &HostSpec) -> Option<Room> {
        let found = self.hosts.iter().find(|host| host.spec == *spec);
        let (files, cpus, memory_bytes, ports) = match found {
            Some(SurveyedHost { facts, .. }) => (facts.files, facts.cpus.len(), facts.memory_bytes, facts.ports),
            None if spec.reach.is_empty() => {
                (machine::open_files(), machine::usable_cpus().len(), machine::memory_bytes(), machine::ports())
            }
            None => return None,
        };
        let allowed = spec.cpu_thousandths.map_or(f64::MAX, |thousandths| thousandths as f64 / 1e3);
        Some(Room {
            whose: if spec.name == LOCAL { "this machine".into() } else { format!("host {}", spec.name) },
            files,
            cpus: allowed.min(cpus as f64),
            memory_bytes: memory_bytes.into_iter().chain(spec.memory_bytes).min(),
            ports,
        })
    }
}

/// What a host plays in a cell.
fn part(spec: &HostSpec, cell: &Cell) -> Option<Part> {
    let (placement, system) = (&cell.placement, &cell.system);
    let serves = system.broker() && placement.server == *spec && cell.options.text("endpoint").is_none();
    let deployment = serves.then(|| cell.options.text("deployment").unwrap_or(NATIVE).to_owned());
    let plays = placement.publishers.contains(spec) || placement.subscribers.contains(spec);
    (deployment.is_some() || plays).then(|| Part { system: system.clone(), deployment, plays })
}

/// The tool that a run of a cell needs beside its system.
pub fn tool_of(cell: &Cell) -> Option<&'static Arc<System>> {
    cell.link.map(|_| tools::toxiproxy())
}

/// The link of a cell, if it stands on this host.
fn link(spec: &HostSpec, cell: &Cell) -> Option<Part> {
    let tool = tool_of(cell).filter(|_| cell.placement.server == *spec)?;
    Some(Part { system: tool.clone(), deployment: Some(NATIVE.into()), plays: false })
}

/// What a host plays in some of the cells.
fn parts_of(spec: &HostSpec, cells: &[&Cell]) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    for cell in cells {
        for found in part(spec, cell).into_iter().chain(link(spec, cell)) {
            if !parts.contains(&found) {
                parts.push(found);
            }
        }
    }
    parts
}

/// Why a host cannot play a part, if it cannot.
fn lacks_part(host: &mut Host<'_>, part: &Part) -> Result<Option<String>, HostError> {
    let file = match host.bring(&part.system) {
        Ok(file) => file,
        Err(error) => return Ok(Some(error.to_string())),
    };
    host.missing(file, part.deployment.clone(), part.plays)
}

fn lacks(host: &mut Host<'_>, parts: &[Part]) -> Result<Vec<(Part, String)>, HostError> {
    let mut found = Vec::new();
    for part in parts {
        found.extend(lacks_part(host, part)?.map(|why| (part.clone(), why)));
    }
    Ok(found)
}

/// Installs what a host lacks for a part, if it can be installed, and tells what is tried.
fn install_there(
    host: &mut Host<'_>,
    part: &Part,
    tried: &mut Vec<String>,
    say: &dyn Fn(&str),
) -> Result<(), HostError> {
    let system = &*part.system;
    if !install::can(system) {
        return Ok(());
    }
    if lacks_part(host, part)?.is_none() {
        return Ok(());
    }
    tried.push(system.name.clone());
    let name = host.spec.name.clone();
    say(&format!("installing {} on host {name}", system.name));
    let installed = host.bring(system).and_then(|file| host.install(file));
    if let Err(why) = installed {
        // A host that is lost can be asked for nothing more, and that ends the study.
        lacks_part(host, part)?;
        say(&format!("{} cannot be installed on host {name}, and the study goes on: {why}", system.name));
    }
    Ok(())
}
