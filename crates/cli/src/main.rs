//! The `pubmark` binary: arguments and wiring. The only crate that prints or exits.
#![forbid(unsafe_code)]

mod args;
mod commands;
mod failure;
mod leftovers;
mod output;
mod progress;
mod serve;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = match args::Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(refusal) => return output::refusal(&refusal),
    };
    match commands::dispatch(arguments) {
        Ok(code) => code.into(),
        Err(failure) => {
            output::error(&failure.to_string());
            failure.code().into()
        }
    }
}
