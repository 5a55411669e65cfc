//! `pubmark bare`: minimal loops that send or receive. Not for users.

use super::shared::raise_open_files;
use crate::args::{BareArgs, BareLoop};
use crate::failure::{Code, Failure};
use crate::output::print;
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use pubmark_calibrate::bare::{LoopPlan, LoopStart, Ready, flood, receive, send};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::BufRead;

/// Runs a loop: reports that it is ready, reads when to begin, reports its figures.
pub fn bare(args: &BareArgs) -> Result<Code, Failure> {
    let _ = set_pdeathsig(Signal::SIGKILL);
    raise_open_files();
    let plan = LoopPlan {
        to: args.to,
        run: args.run.clone(),
        connections: args.connections.max(1),
        per_s: args.rate.max(1),
        payload_bytes: args.payload,
        quantum_ns: args.quantum_ns,
        warmup_ns: args.warmup_ns,
        window_ns: args.window_ns,
    };
    let begin = || {
        say(&Ready { connections: plan.connections });
        hear::<LoopStart>().map(|go| go.start_ns)
    };
    let done = match args.what {
        BareLoop::Send => send(&plan, begin),
        BareLoop::Receive => receive(&plan, std::io::stdin(), begin, hear),
        BareLoop::Flood => flood(&plan, begin),
    };
    say(&done.map_err(Failure::run)?);
    Ok(Code::Done)
}

fn say(words: &impl Serialize) {
    print(&serde_json::to_string(words).unwrap_or_default());
}

/// Reads a line of the input; its writer waits for an answer to each.
fn hear<T: DeserializeOwned>() -> Result<T, String> {
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).map_err(|error| error.to_string())?;
    serde_json::from_str(&line).map_err(|error| format!("was told {line:?}: {error}"))
}
