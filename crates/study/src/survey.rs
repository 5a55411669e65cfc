//! Survey of a study's hosts: their facts and what they lack, taken once before the first run.

use crate::ask::AgentHellos;
use crate::plan::StudyPlan;
use crate::run::{login, open_all};
use pubmark_host::error::HostError;
use pubmark_host::inbox::inbox;
use pubmark_host::install::{self, NATIVE, tools};
use pubmark_host::lanes::in_lanes;
use pubmark_host::lines::Facts;
use pubmark_host::machine;
use pubmark_host::reach::{Host, SharedRunSettings};
use pubmark_model::cell::Cell;
use pubmark_model::host::{HostSpec, LOCAL};
use pubmark_model::options::OptionValues;
use pubmark_model::system::System;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Findings about hosts, and hellos of agents greeted here. By default no host was surveyed, and only this machine is
/// known.
#[derive(Default)]
pub struct HostSurvey {
    hosts: Vec<SurveyedHost>,
    /// Hellos of systems' own agents on this machine.
    pub greetings: AgentHellos,
}

/// Findings about a host.
struct SurveyedHost {
    spec: HostSpec,
    facts: Facts,
    lacks: Vec<(Part, String)>,
}

impl SurveyedHost {
    /// Returns why the host cannot play a part, if so.
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
    /// Deployment by which its server is started there, if any.
    deployment: Option<String>,
    /// True if its clients play there.
    plays: bool,
}

/// Resources of a host for a run.
pub struct HostResources {
    /// Name of the host: `this machine`, `host b1`.
    pub whose: String,
    /// Number of files that a process may open.
    pub files: usize,
    /// Number of processors.
    pub cpus: f64,
    /// Memory, bytes, if known.
    pub memory_bytes: Option<u64>,
    /// Connections that one of its addresses may make to another: its ephemeral ports.
    pub ports: usize,
}

impl HostSurvey {
    /// Surveys every host that the plan's runs use, if one of them is another machine. If `install` is given, installs
    /// what is missing and passes it progress messages; a system that cannot be installed stops no other, and its cells
    /// are skipped with the reason.
    ///
    /// # Errors
    /// If a host cannot be reached, differs from its description, or is the same machine as another.
    pub fn of(plan: &StudyPlan, agent: &[String], install: Option<&dyn Fn(&str)>) -> Result<HostSurvey, HostError> {
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
            return Ok(HostSurvey::default());
        }
        static NEVER: AtomicBool = AtomicBool::new(false);
        let (inbox, _words) = inbox();
        // A lost host has no logs to hand in.
        let (secrets, logs) = (login::secrets_of(cells.iter().copied()), Path::new(""));
        let wanted = SharedRunSettings { built_in: agent, logs, secrets: &secrets, interrupt: &NEVER, inbox };
        let (mut hosts, facts) = open_all(&specs, true, &wanted)?;
        if let Some(say) = install {
            // One after the other: hosts may share folders.
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
        Ok(HostSurvey { hosts: found.collect::<Result<_, HostError>>()?, ..HostSurvey::default() })
    }

    /// Returns a survey of hosts that lack nothing.
    #[cfg(test)]
    pub fn of_facts(found: Vec<(HostSpec, Facts)>) -> HostSurvey {
        let host = |(spec, facts)| SurveyedHost { spec, facts, lacks: Vec::new() };
        HostSurvey { hosts: found.into_iter().map(host).collect(), ..HostSurvey::default() }
    }

    /// Returns why a cell cannot use its system on its hosts, according to the survey.
    pub fn missing(&self, cell: &Cell) -> Option<String> {
        self.hosts.iter().find_map(|host| host.lacking(&part(&host.spec, cell)?))
    }

    /// Returns why the link of a cell cannot run on its server's host, according to the survey.
    pub fn missing_link(&self, cell: &Cell) -> Option<String> {
        self.hosts.iter().find_map(|host| host.lacking(&link(&host.spec, cell)?))
    }

    /// Returns the resources of a host; `None` for another machine that was not surveyed.
    pub fn room(&self, spec: &HostSpec) -> Option<HostResources> {
        let found = self.hosts.iter().find(|host| host.spec == *spec);
        let (files, cpus, memory_bytes, ports) = match found {
            Some(SurveyedHost { facts, .. }) => (facts.files, facts.cpus.len(), facts.memory_bytes, facts.ports),
            None if spec.reach.is_empty() => {
                (machine::open_files(), machine::usable_cpus().len(), machine::memory_bytes(), machine::ports())
            }
            None => return None,
        };
        let allowed = spec.cpu_thousandths.map_or(f64::MAX, |thousandths| thousandths as f64 / 1e3);
        Some(HostResources {
            whose: if spec.name == LOCAL { "this machine".into() } else { format!("host {}", spec.name) },
            files,
            cpus: allowed.min(cpus as f64),
            memory_bytes: memory_bytes.into_iter().chain(spec.memory_bytes).min(),
            ports,
        })
    }
}

/// Returns the part that a host plays in a cell.
fn part(spec: &HostSpec, cell: &Cell) -> Option<Part> {
    let (placement, system) = (&cell.placement, &cell.system);
    let is_of_member = placement.of_members().any(|host| host == spec);
    let serves = system.broker() && is_of_member && cell.options.text("endpoint").is_none();
    let deployment = serves.then(|| cell.options.text("deployment").unwrap_or(NATIVE).to_owned());
    let plays = placement.publishers.contains(spec) || placement.subscribers.contains(spec);
    (deployment.is_some() || plays).then(|| Part { system: system.clone(), deployment, plays })
}

/// Returns the tool that a run of a cell needs beside its system.
pub fn tool_of(cell: &Cell) -> Option<&'static Arc<System>> {
    cell.link.map(|_| tools::toxiproxy())
}

/// Returns the link of a cell as a part, if it runs on this host.
fn link(spec: &HostSpec, cell: &Cell) -> Option<Part> {
    let tool = tool_of(cell).filter(|_| cell.placement.server == *spec)?;
    Some(Part { system: tool.clone(), deployment: Some(NATIVE.into()), plays: false })
}

/// Returns the parts that a host plays in these cells.
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

/// Returns why a host cannot play a part, if so.
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

/// Installs what a host lacks for a part, if possible, and reports what it tries.
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
        // If the host is lost, this call fails and ends the study.
        lacks_part(host, part)?;
        say(&format!("{} cannot be installed on host {name}, and the study goes on: {why}", system.name));
    }
    Ok(())
}
