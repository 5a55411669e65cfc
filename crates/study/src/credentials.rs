//! Checks the files with the logins of single clients: users and passwords, and certificates.

use crate::plan::StudyPlan;
use pubmark_files::Links;
use pubmark_model::cell::Cell;
use pubmark_model::credentials::{self, CERTIFICATES, CREDENTIALS, CredentialsError, Login, MOST_BYTES, path_of};
use pubmark_model::diagnostic::Diagnostic;
use pubmark_model::options::OptionValues;
use pubmark_model::protocol::Flow;
use pubmark_model::wire_protocol::Protocol;
use std::path::Path;

/// Checks that each run that is to be made has a line for each of its clients.
///
/// # Errors
/// Returns each problem once.
pub fn check(plan: &StudyPlan) -> Result<(), Vec<Diagnostic>> {
    let mut found: Vec<Diagnostic> = Vec::new();
    for cell in plan.cells().iter().filter(|cell| cell.skipped.is_none()) {
        let problems = [certificates(cell).err().map(Diagnostic::whole), wrong_logins(cell)];
        for problem in problems.into_iter().flatten() {
            if !found.contains(&problem) {
                found.push(problem);
            }
        }
    }
    if found.is_empty() { Ok(()) } else { Err(found) }
}

/// Returns why the clients of a run cannot log in by the file that its options name.
fn wrong_logins(cell: &Cell) -> Option<Diagnostic> {
    cell.options.text(CREDENTIALS)?;
    match (cell.system.protocol(), cell.placement.local()) {
        (Some(Protocol::Kafka | Protocol::Zenoh), _) => {
            let what = format!("credentials_file: clients of {} have no logins of their own", cell.system.name);
            Some(Diagnostic::whole(what).help("leave it out, or leave the cell out with a [[skip]] entry"))
        }
        (_, true) => read(cell).err().map(Diagnostic::whole),
        (_, false) => Some(
            Diagnostic::whole("credentials_file: clients on other hosts cannot read this file")
                .help("leave `hosts` out, or set username and password for all clients"),
        ),
    }
}

/// Returns the logins of the clients of a run; none without the option. Each flow begins with the first line.
///
/// # Errors
/// The file cannot be read, or has too few lines.
pub fn read(cell: &Cell) -> Result<Vec<Login>, CredentialsError> {
    let Some(path) = cell.options.text(CREDENTIALS) else { return Ok(Vec::new()) };
    let unreadable = |error: std::io::Error| CredentialsError::Unreadable { path: path.into(), why: error.to_string() };
    let text = pubmark_files::read_text_of(Path::new(path), MOST_BYTES, Links::Follow).map_err(unreadable)?;
    credentials::parse(path, &text, clients(cell))
}

/// Returns the number of clients of a run, of which each has a login: each flow begins with the first.
fn clients(cell: &Cell) -> usize {
    let count = |flow: &Flow| flow.workload.publishers as usize + flow.workload.subscribers as usize;
    cell.flows().iter().map(count).max().unwrap_or(0)
}

/// Checks that each client has its certificate, if the paths are made of its number.
fn certificates(cell: &Cell) -> Result<(), CredentialsError> {
    for option in CERTIFICATES {
        let Some(path) = cell.options.text(option).filter(|path| path_of(path, 0).is_some()) else { continue };
        let clients = clients(cell);
        let missing = (0..clients).find_map(|client| {
            let own = path_of(path, client).filter(|own| !Path::new(own).is_file())?;
            Some(CredentialsError::NoFile { option, client, clients, path: own })
        });
        missing.map_or(Ok(()), Err)?;
    }
    Ok(())
}
