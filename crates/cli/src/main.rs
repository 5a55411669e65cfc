//! The `pubmark` binary: arguments and wiring. The only crate that prints or exits.
#![forbid(unsafe_code)]

mod args;
mod commands;
mod failure;
mod leftovers;
mod output;
mod progress;
mod serve;
mod telemetry;

use std::panic::resume_unwind;
use std::process::ExitCode;

fn main() -> ExitCode {
    // The parser takes more stack than a hundred clients of an agent do: that of a thread is given back.
    let arguments = std::thread::spawn(args::Arguments::read).join().unwrap_or_else(|panic| resume_unwind(panic));
    let done = match arguments {
        Ok(arguments) => commands::dispatch(arguments),
        Err(refusal) => Ok(output::refusal(&refusal)),
    };
    let code = |failure: failure::Failure| {
        output::error(&failure.to_string());
        failure.code()
    };
    let ended = done.unwrap_or_else(code);
    output::lost().map_or(ended, |failure| ended.worst(code(failure))).into()
}
