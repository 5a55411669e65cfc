//! The `pubmark` binary: arguments and wiring. The only crate that prints or exits.
#![forbid(unsafe_code)]

mod args;
mod commands;
mod failure;
mod output;
mod progress;
mod serve;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = args::Arguments::parse();
    match commands::dispatch(arguments) {
        Ok(code) => code.into(),
        Err(failure) => {
            output::error(&failure.to_string());
            failure.code().into()
        }
    }
}
