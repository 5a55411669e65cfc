//! `pubmark sink`: accepts and discards all data. Not for users.

use super::shared::{program, raise_open_files};
use crate::args::SinkArgs;
use crate::failure::{Code, Failure};
use crate::output::print;
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use pubmark_calibrate::Helper;
use pubmark_calibrate::sink::{Listening, SinkCounts, endpoint, listen, reserve, serve};
use pubmark_study::context::RunError;
use serde::Serialize;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Time limit for a process of the sink to listen, or to count.
const PATIENCE: Duration = Duration::from_secs(10);

/// Accepts data until the input ends.
pub fn sink(args: &SinkArgs) -> Result<Code, Failure> {
    // The sink must not outlive its parent, even if the input stays open elsewhere.
    let _ = set_pdeathsig(Signal::SIGKILL);
    raise_open_files();
    let taken = if args.processes > 1 { share(args)? } else { alone(args)? };
    say(&taken);
    Ok(Code::Done)
}

fn say(words: &impl Serialize) {
    print(&serde_json::to_string(words).unwrap_or_default());
}

fn alone(args: &SinkArgs) -> Result<SinkCounts, Failure> {
    let listener = listen(args.port).map_err(|error| Failure::run(format!("cannot listen: {error}")))?;
    let address = listener.local_addr().map_err(|error| Failure::run(format!("cannot listen: {error}")))?;
    say(&Listening { endpoint: endpoint(address) });
    serve(listener, std::io::stdin()).map_err(|error| Failure::run(format!("the sink: {error}")))
}

/// Starts several processes on one port, each with its own limit on open files.
fn share(args: &SinkArgs) -> Result<SinkCounts, Failure> {
    let never = AtomicBool::new(false);
    let cannot = |error: RunError| Failure::run(error);
    // Bound and not listening: it reserves the port and accepts no connection.
    let (_held, port) = reserve(args.port).map_err(|error| Failure::run(format!("no free port: {error}")))?;
    let program = program()?;
    let command = [program, "sink".into(), "--port".into(), port.to_string()];
    let mut all = Vec::new();
    for _ in 0..args.processes {
        let mut one = Helper::start(&command).map_err(cannot)?;
        let _: Listening = one.hear(PATIENCE, &never).map_err(cannot)?;
        all.push(one);
    }
    say(&Listening { endpoint: endpoint(SocketAddr::from((Ipv4Addr::LOCALHOST, port))) });
    let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
    let mut taken = SinkCounts::default();
    for one in all {
        taken.add(&one.end(PATIENCE).map_err(cannot)?);
    }
    Ok(taken)
}
