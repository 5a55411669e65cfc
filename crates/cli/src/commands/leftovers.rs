//! `pubmark doctor ENDPOINT`: lists what runs have left at a server. `pubmark remove`: the process that removes it for
//! a coordinator, not for users.

use crate::failure::{Code, Failure};
use crate::output::print;
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use pubmark_host::doctor::{DoctorCheck, Severity};
use pubmark_host::ledger::{EndedRun, abandoned};
use pubmark_load::agent::removal;
use pubmark_model::endpoint::Endpoint;
use pubmark_model::leftovers::{Leftovers, Removal, in_words};
use std::io::Read;

/// Maximum length of a run's description, bytes.
const RUN_BYTES: u64 = 16 << 20;

/// Removes what a run has left, and prints the outcome as JSON.
pub fn remove() -> Result<Code, Failure> {
    let _ = set_pdeathsig(Signal::SIGKILL);
    let mut text = Vec::new();
    std::io::stdin().take(RUN_BYTES).read_to_end(&mut text).map_err(|error| Failure::run(error.to_string()))?;
    let leftovers: Leftovers = serde_json::from_slice(&text).map_err(|error| Failure::usage(error.to_string()))?;
    print(&serde_json::to_string(&removed(&leftovers)).unwrap_or_default());
    Ok(Code::Done)
}

fn removed(leftovers: &Leftovers) -> Removal {
    removal::remove(leftovers).unwrap_or_else(|error| Removal {
        left: removal::list(leftovers).unwrap_or_default(),
        why: Some(error.to_string()),
        ..Removal::default()
    })
}

/// Lists what runs have left at a server, one checkup per run; removes it if `is_removal`.
pub fn at(typed: &str, is_removal: bool) -> Result<Vec<DoctorCheck>, Failure> {
    let endpoint = Endpoint::parse(typed).map_err(|error| Failure::usage(error.to_string()))?;
    let here = abandoned().into_iter().filter(|run| run.leftovers.is_at(&endpoint));
    let see = |run: EndedRun| if is_removal { removal_of(&run, typed) } else { listed(&run, typed) };
    let found: Vec<DoctorCheck> = here.map(see).collect();
    let nothing = DoctorCheck {
        what: "left by runs".into(),
        severity: Severity::Good,
        found: format!("nothing that is known at {endpoint}"),
        mend: None,
    };
    Ok(if found.is_empty() { vec![nothing] } else { found })
}

fn checkup(run: &EndedRun, severity: Severity, found: String, mend: Option<String>) -> DoctorCheck {
    let Leftovers { run, begun, .. } = &run.leftovers;
    DoctorCheck { what: format!("left by run {run} of {begun}"), severity, found, mend }
}

fn listed(run: &EndedRun, typed: &str) -> DoctorCheck {
    match removal::list(&run.leftovers.clone().with_login_of(typed)) {
        Ok(things) => checkup(run, Severity::Note, in_words(&things), Some(run.leftovers.command())),
        Err(error) => checkup(run, Severity::Bad, error.to_string(), Some(forget(run))),
    }
}

fn removal_of(run: &EndedRun, typed: &str) -> DoctorCheck {
    let removal = removed(&run.leftovers.clone().with_login_of(typed));
    if removal.left.is_empty() && removal.why.is_none() {
        run.close();
        return checkup(run, Severity::Good, format!("{} removed", removal.removed), None);
    }
    let why = removal.why.unwrap_or_default();
    let found = format!("{} removed, and not {}: {why}", removal.removed, in_words(&removal.left));
    checkup(run, Severity::Bad, found, Some(forget(run)))
}

/// Returns advice for a server that is permanently gone.
fn forget(run: &EndedRun) -> String {
    format!("try again; if the server is gone for good, delete {}", run.path.display())
}
