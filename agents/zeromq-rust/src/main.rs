//! `pubmark-zeromq-rust`: an agent of pubmark that speaks ZeroMQ through the
//! bindings for Rust. Arguments and wiring.

mod libzmq;
mod null;
mod pure;

use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use pubmark_load::agent::{AgentInfo, serve};
use pubmark_load::drivers::DriverKind;
use pubmark_load::drivers::build_info::in_rust;
use std::collections::BTreeMap;
use std::io::{BufReader, BufWriter};
use std::process::ExitCode;

const USAGE: &str = "\
Usage: pubmark-zeromq-rust agent [--binding NAME]   speak pubmark's agent protocol on standard input and output
       pubmark-zeromq-rust --version

Bindings, for the driver `zeromq`:
  zmq      libzmq, through the crate zmq (where nothing is said)
  zeromq   the crate zeromq: Rust and tokio, without libzmq
The driver `null` is there with both: a channel in place of a library.
";

/// Exit codes: those of `pubmark`.
const BAD_USAGE: u8 = 2;
const FAILED: u8 = 3;

/// The agent with the crate zmq.
const ZMQ: AgentInfo = AgentInfo {
    name: "pubmark-zeromq-rust",
    version: env!("CARGO_PKG_VERSION"),
    drivers: &[("zeromq", DriverKind::Sockets(libzmq::load)), ("null", DriverKind::Sockets(null::load))],
    versions: &[("rust", env!("RUST_VERSION")), ("zmq", env!("ZMQ_VERSION"))],
    options: |driver| names(if driver == "null" { null::OPTIONS } else { libzmq::OPTIONS }),
    crash: true,
};

/// The agent with the crate zeromq.
const ZEROMQ: AgentInfo = AgentInfo {
    drivers: &[("zeromq", DriverKind::Sockets(pure::load)), ("null", DriverKind::Sockets(null::load))],
    versions: &[("rust", env!("RUST_VERSION")), ("tokio", env!("TOKIO_VERSION")), ("zeromq", env!("ZEROMQ_VERSION"))],
    options: |driver| names(if driver == "null" { null::OPTIONS } else { pure::OPTIONS }),
    // What waits in its queues is sent even after a socket was dropped.
    crash: false,
    ..ZMQ
};

fn names(options: &[&str]) -> Vec<String> {
    options.iter().map(|name| (*name).to_owned()).collect()
}

/// What all drivers of this agent say of how they are made, and `texts` of their own.
fn made(texts: &[(&str, &str)]) -> BTreeMap<String, String> {
    let ours = [("language", concat!("Rust ", env!("RUST_VERSION"))), ("flags", env!("FLAGS"))];
    in_rust(&[&ours, texts].concat())
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["agent"] | ["agent", "--binding", "zmq"] => agent(ZMQ),
        ["agent", "--binding", "zeromq"] => agent(ZEROMQ),
        ["--version"] => {
            println!(
                "pubmark-zeromq-rust {}, built with crates zmq {} and zeromq {}",
                env!("CARGO_PKG_VERSION"),
                env!("ZMQ_VERSION"),
                env!("ZEROMQ_VERSION")
            );
            ExitCode::SUCCESS
        }
        ["--help"] => {
            print!("{USAGE}");
            ExitCode::SUCCESS
        }
        _ => {
            eprint!("{USAGE}");
            ExitCode::from(BAD_USAGE)
        }
    }
}

fn agent(identity: AgentInfo) -> ExitCode {
    // A stopped agent wakes up when its coordinator dies, finds its input
    // closed, and ends. (Where this cannot be set, only a stopped one stays.)
    let _ = set_pdeathsig(Signal::SIGCONT);
    match serve(identity, BufReader::new(std::io::stdin()), BufWriter::new(std::io::stdout())) {
        // Client threads may still sit in library calls: end without them.
        Ok(_) => std::process::exit(0),
        Err(error) => {
            eprintln!("error: the coordinator has gone: {error}");
            ExitCode::from(FAILED)
        }
    }
}
