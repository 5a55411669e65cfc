//! `pubmark peer`: the reference peer. Tests and calibration start it; it never takes part in a study.

use super::shared::raise_open_files;
use crate::args::PeerArgs;
use crate::failure::{Code, Failure};
use crate::output::print;
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use pubmark_files::{Links, read_text};
use pubmark_peer::PeerScript;
use std::net::SocketAddr;
use std::os::fd::AsFd;

/// Serves until standard input ends, then prints its counts.
pub fn peer(args: &PeerArgs) -> Result<Code, Failure> {
    // As in agents: a stopped peer wakes up when its parent dies, and finds its input closed.
    let _ = set_pdeathsig(Signal::SIGCONT);
    raise_open_files();
    let script = match &args.script {
        None => PeerScript::default(),
        Some(path) => {
            let bad = |error: String| Failure::usage(format!("{}: {error}", path.display()));
            let text = read_text(path, Links::Follow).map_err(|error| bad(error.to_string()))?;
            PeerScript::parse(&text).map_err(bad)?
        }
    };
    let listening = |endpoint: &str| print(&serde_json::json!({"endpoint": endpoint}).to_string());
    let input = std::io::stdin();
    let tally = args
        .protocol
        .serve(None, SocketAddr::new(args.address, args.port), script, input.as_fd(), listening)
        .map_err(Failure::run)?;
    print(&tally.json());
    Ok(Code::Done)
}
