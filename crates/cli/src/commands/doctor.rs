//! `pubmark doctor`

use super::leftovers;
use super::shared::{agent_command, hosts, interrupt_flag};
use super::systems_on_hosts::{in_a_sentence, secrets_of};
use crate::args::DoctorArgs;
use crate::failure::{Code, Failure};
use crate::output::{colour, print};
use pubmark_host::doctor::{DoctorCheck, Severity, examine};
use pubmark_host::error::HostError;
use pubmark_host::inbox::inbox;
use pubmark_host::lines::Facts;
use pubmark_host::reach::{Host, SharedRunSettings};
use pubmark_model::host::HostSpec;
use pubmark_model::system::System;
use pubmark_model::units::SECOND;
use pubmark_study::registry::Registry;
use pubmark_study::run::{of_twins, twins};
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// Prints the findings, with advice. Exit code 1 if something is bad.
pub fn doctor(args: &DoctorArgs, registry: &Registry) -> Result<Code, Failure> {
    let Some(file) = &args.hosts else {
        let left = args.endpoint.as_ref().map(|endpoint| leftovers::at(endpoint, args.remove)).transpose()?;
        let checkups = left.unwrap_or_else(examine);
        if args.json {
            print(&serde_json::to_string_pretty(&checkups).unwrap_or_default());
        } else {
            show(&checkups);
        }
        return Ok(code(&checkups));
    };
    let interrupt = interrupt_flag()?;
    let agent = agent_command()?;
    let mut all = serde_json::Map::new();
    let mut worst = Code::Done;
    let listed = hosts(file)?.0;
    let mut known: Vec<(&HostSpec, Facts)> = Vec::new();
    for host in &listed {
        // An unreachable host does not keep the others from being checked.
        let mut checkups = match look(&host.spec, &agent, &interrupt, registry) {
            Ok((facts, checkups)) => {
                known.push((&host.spec, facts));
                checkups
            }
            Err(error) => vec![unreachable(&error)],
        };
        checkups.extend(twin(&known));
        if !args.json {
            print(&format!("{} ({})", host.spec.name, host.spec.address));
            show(&checkups);
        }
        if code(&checkups) == Code::Gate {
            worst = Code::Gate;
        }
        all.insert(host.spec.name.clone(), serde_json::json!(checkups));
    }
    if args.json {
        print(&serde_json::to_string_pretty(&all).unwrap_or_default());
    }
    Ok(worst)
}

/// Returns a finding if the host checked last is the same machine as one of the others.
fn twin(known: &[(&HostSpec, Facts)]) -> Option<DoctorCheck> {
    let facts: Vec<Facts> = known.iter().map(|(_, facts)| facts.clone()).collect();
    let pair = twins(&facts).filter(|[_, last]| last + 1 == known.len())?;
    let found = of_twins(pair.map(|host| known[host].0.name.as_str()));
    let (found, mend) = found.split_once(": ").map(|(found, mend)| (found.to_owned(), mend.to_owned()))?;
    Some(DoctorCheck { what: "machine".into(), severity: Severity::Bad, found, mend: Some(mend) })
}

/// Returns the findings on a host and on the connection to it.
fn look(
    spec: &HostSpec,
    agent: &[String],
    interrupt: &AtomicBool,
    registry: &Registry,
) -> Result<(Facts, Vec<DoctorCheck>), HostError> {
    let (inbox, _) = inbox();
    let systems = registry.systems();
    let systems: Vec<&System> = systems.iter().map(|system| &**system).collect();
    let secrets = secrets_of(systems.iter().copied());
    let wanted = SharedRunSettings { built_in: agent, logs: Path::new("."), secrets: &secrets, interrupt, inbox };
    let mut host = Host::open(spec, 0, &wanted)?;
    host.check_address()?;
    let clock = host.clock();
    let found = format!("{} ahead of this machine's, ± {:.1} µs", in_us(clock.offset_ns), clock.bound_ns as f64 / 1e3);
    let clock = DoctorCheck { what: "clock".into(), severity: Severity::Good, found, mend: None };
    let (found, missing) = in_a_sentence(&systems, &host.presences(&systems)?);
    let mend = format!("{missing} others are missing: `pubmark systems --hosts FILE` lists them by host");
    let mend = (missing > 0).then_some(mend);
    let usable = DoctorCheck { what: "systems".into(), severity: Severity::Good, found, mend };
    Ok((host.facts()?, [clock, usable].into_iter().chain(host.examine()?).collect()))
}

/// Formats a difference in microseconds, or in seconds if the clocks are unrelated.
fn in_us(ns: i64) -> String {
    if ns.unsigned_abs() < SECOND { format!("{:.1} µs", ns as f64 / 1e3) } else { format!("{:.3} s", ns as f64 / 1e9) }
}

fn unreachable(error: &HostError) -> DoctorCheck {
    let mend = "its `reach` has to be a command whose standard streams are a shell's there: try it followed by `sh`";
    let what = "the way to it".to_owned();
    DoctorCheck { what, severity: Severity::Bad, found: error.to_string(), mend: Some(mend.to_owned()) }
}

fn code(checkups: &[DoctorCheck]) -> Code {
    let bad = checkups.iter().any(|checkup| checkup.severity == Severity::Bad);
    if bad { Code::Gate } else { Code::Done }
}

fn show(checkups: &[DoctorCheck]) {
    for checkup in checkups {
        let (word, paint) = match checkup.severity {
            Severity::Good => ("good", "32"),
            Severity::Note => ("note", "33"),
            Severity::Bad => ("BAD ", "31"),
        };
        let word = if colour() { format!("\x1b[{paint}m{word}\x1b[0m") } else { word.to_owned() };
        print(&format!("{word}  {}: {}", checkup.what, checkup.found));
        if let Some(mend) = &checkup.mend {
            print(&format!("      -> {mend}"));
        }
    }
}
