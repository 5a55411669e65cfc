//! `pubmark agent`.

use crate::failure::{Code, Failure};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use pubmark_load::agent::{BUILT_IN, serve};
use std::io::{BufReader, BufWriter};

/// Serves a coordinator until it sends the command to stop or has exited.
pub fn agent() -> Result<Code, Failure> {
    // A stopped agent wakes up when its coordinator dies, finds its input closed, and ends. (If this cannot be set, a
    // stopped agent stays.)
    let _ = set_pdeathsig(Signal::SIGCONT);
    let served = serve(BUILT_IN, BufReader::new(std::io::stdin()), BufWriter::new(std::io::stdout()));
    // Client threads may still be in library calls: end without them.
    match served {
        Ok(_) => std::process::exit(Code::Done as i32),
        Err(error) => Err(Failure::run(format!("the coordinator has gone: {error}"))),
    }
}
