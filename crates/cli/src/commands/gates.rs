//! Gates of commands, and their output as JUnit XML.

use crate::args::GateArgs;
use crate::failure::{Code, Failure};
use crate::output::Voice;
use pubmark_files::check_writable;
use pubmark_report::Report;
use pubmark_report::compare::{GateOutcome, GateResult, Gates, bounds, junit};
use std::path::Path;

/// Checks that a file for JUnit XML can be written, before anything is measured.
pub fn check_junit(file: Option<&Path>) -> Result<(), Failure> {
    let Some(file) = file else { return Ok(()) };
    check_writable(file).map_err(|error| Failure::usage(format!("--junit {}: {error}", file.display())))
}

/// Writes the gates as JUnit XML, if a file is given.
pub fn write_junit(file: Option<&Path>, suite: &str, gates: &[GateResult]) -> Result<(), Failure> {
    let Some(file) = file else { return Ok(()) };
    std::fs::write(file, junit(suite, gates)).map_err(|error| Failure::run(format!("{}: {error}", file.display())))
}

/// Returns the gates of a command without a baseline.
pub fn own(args: &GateArgs) -> Result<Gates, Failure> {
    let gates = Gates::parse(&args.fail_on, &args.require, false).map_err(Failure::usage)?;
    check_junit(args.junit.as_deref())?;
    if args.junit.is_some() && gates.is_empty() {
        return Err(Failure::usage(
            "--junit tells what became of gates, and there is none: give --require 'p99 < 5ms'",
        ));
    }
    Ok(gates)
}

/// Decides the gates of a report. Prints their results, and returns the exit code if one is broken.
pub fn decide(
    report: &Report,
    gates: &Gates,
    args: &GateArgs,
    suite: &str,
    voice: Voice,
) -> Result<Option<Code>, Failure> {
    let found = bounds(report, &gates.bounds);
    write_junit(args.junit.as_deref(), suite, &found)?;
    for gate in &found {
        voice.note(&format!("gate {}", gate.sentence()));
    }
    let worst = found.iter().map(|gate| gate.outcome).max_by_key(|outcome| *outcome as u8);
    Ok(worst.and_then(|worst| match worst {
        GateOutcome::Passed => None,
        GateOutcome::Failed => Some(Code::Gate),
        GateOutcome::TooNoisy | GateOutcome::Undecided => Some(Code::Run),
    }))
}
