//! `pubmark doctor`

use super::shared::{agent_command, hosts, interrupt_flag};
use crate::args::DoctorArgs;
use crate::failure::{Code, Failure};
use crate::output::{colour, print};
use pubmark_host::doctor::{Checkup, Severity, examine};
use pubmark_host::error::HostError;
use pubmark_host::reach::{Host, Wanted};
use pubmark_model::host::HostSpec;
use pubmark_model::secret::Secrets;
use pubmark_model::units::SECOND;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::channel;

/// Prints what was found, and what mends it. Exit code 1 if something is bad.
pub fn doctor(args: &DoctorArgs) -> Result<Code, Failure> {
    let Some(file) = &args.hosts else {
        let checkups = examine();
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
    for host in &hosts(file)?.0 {
        // One that cannot be reached keeps nobody from looking at the others.
        let checkups = look(&host.spec, &agent, &interrupt).unwrap_or_else(|error| vec![unreachable(&error)]);
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

/// What is found on a host, and of the way to it.
fn look(spec: &HostSpec, agent: &[String], interrupt: &AtomicBool) -> Result<Vec<Checkup>, HostError> {
    let (inbox, _) = channel();
    let secrets = Secrets::default();
    let wanted = Wanted { built_in: agent, logs: Path::new("."), secrets: &secrets, interrupt, inbox };
    let mut host = Host::open(spec, 0, &wanted)?;
    host.check_address()?;
    let clock = host.clock();
    let found = format!("{} ahead of this machine's, ± {:.1} µs", in_us(clock.offset_ns), clock.bound_ns as f64 / 1e3);
    let clock = Checkup { what: "clock".into(), severity: Severity::Good, found, mend: None };
    Ok([clock].into_iter().chain(host.examine()?).collect())
}

/// Microseconds; of clocks that have nothing to do with each other seconds.
fn in_us(ns: i64) -> String {
    if ns.unsigned_abs() < SECOND { format!("{:.1} µs", ns as f64 / 1e3) } else { format!("{:.3} s", ns as f64 / 1e9) }
}

fn unreachable(error: &HostError) -> Checkup {
    let mend = "its `reach` has to be a command whose standard streams are a shell's there: try it followed by `sh`";
    let what = "the way to it".to_owned();
    Checkup { what, severity: Severity::Bad, found: error.to_string(), mend: Some(mend.to_owned()) }
}

fn code(checkups: &[Checkup]) -> Code {
    let bad = checkups.iter().any(|checkup| checkup.severity == Severity::Bad);
    if bad { Code::Gate } else { Code::Done }
}

fn show(checkups: &[Checkup]) {
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
