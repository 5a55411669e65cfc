//! `pubmark rows`: runs between a coordinator and an agent that writes rows. Not for users.

use crate::args::RowsArgs;
use crate::failure::{Code, Failure};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use pubmark_load::translator::serve;
use std::io::{BufReader, BufWriter};

/// Serves a coordinator until it sends the command to stop or has exited.
pub fn rows(args: &RowsArgs) -> Result<Code, Failure> {
    // As in the built-in agent.
    let _ = set_pdeathsig(Signal::SIGCONT);
    match serve(&args.command, BufReader::new(std::io::stdin()), BufWriter::new(std::io::stdout())) {
        Ok(status) => std::process::exit(status),
        Err(error) => Err(Failure::run(error)),
    }
}
