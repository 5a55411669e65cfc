//! `pubmark rows`: stands between a coordinator and an agent that writes rows. Nobody types it.

use crate::args::RowsArgs;
use crate::failure::{Code, Failure};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use pubmark_load::translator::serve;
use std::io::{BufReader, BufWriter};

/// Serves a coordinator until it says so or is gone.
pub fn rows(args: &RowsArgs) -> Result<Code, Failure> {
    // As the built-in agent does.
    let _ = set_pdeathsig(Signal::SIGCONT);
    match serve(&args.command, BufReader::new(std::io::stdin()), BufWriter::new(std::io::stdout())) {
        Ok(status) => std::process::exit(status),
        Err(error) => Err(Failure::run(error)),
    }
}
