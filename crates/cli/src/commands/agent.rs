//! `pubmark agent` and `pubmark agent-check`.

use crate::args::AgentCheckArgs;
use crate::failure::{Code, Failure};
use crate::output::print;
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use pubmark_load::agent::{BUILT_IN, serve};
use pubmark_model::protocol::VERSION;
use pubmark_study::check::{self, Asked};
use std::io::{BufReader, BufWriter};

/// Serves a coordinator until it says so or is gone.
pub fn agent() -> Result<Code, Failure> {
    // A stopped agent wakes up when its coordinator dies, finds its input
    // closed, and ends. (Where this cannot be set, only a stopped one stays.)
    let _ = set_pdeathsig(Signal::SIGCONT);
    let served = serve(BUILT_IN, BufReader::new(std::io::stdin()), BufWriter::new(std::io::stdout()));
    // Client threads may still sit in library calls: end without them.
    match served {
        Ok(_) => std::process::exit(Code::Done as i32),
        Err(error) => Err(Failure::run(format!("the coordinator has gone: {error}"))),
    }
}

/// Leads an agent through a conversation.
pub fn check(args: &AgentCheckArgs) -> Result<Code, Failure> {
    let asked = Asked { driver: args.driver.as_deref(), transport: args.transport.as_deref() };
    let steps = check::check(&args.command, asked)
        .map_err(|error| Failure::usage(format!("`{}` cannot be started: {error}", args.command.join(" "))))?;
    let mut good = true;
    for step in &steps {
        match &step.problem {
            None => print(&format!("ok    {}", step.what)),
            Some(problem) => {
                good = false;
                print(&format!("FAIL  {}\n      {problem}", step.what));
            }
        }
    }
    if good {
        print(&format!("The agent speaks version {VERSION} of the agent protocol."));
        return Ok(Code::Done);
    }
    Ok(Code::Gate)
}
