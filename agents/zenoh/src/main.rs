//! `pubmark-zenoh`: arguments and wiring.

use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use pubmark_load::agent::{AgentInfo, serve};
use pubmark_load::drivers::DriverKind;
use pubmark_zenoh::{OPTIONS, ZENOH_VERSION, driver, router};
use std::io::{BufReader, BufWriter};
use std::process::ExitCode;

const USAGE: &str = "\
Usage: pubmark-zenoh agent              speak pubmark's agent protocol on standard input and output
       pubmark-zenoh router [OPTIONS]   be a Zenoh router until killed
       pubmark-zenoh --version

Options of the router, as zenohd spells them:
  --listen ENDPOINT   where to listen (tcp/127.0.0.1:7447)
  --cfg KEY:VALUE     a setting of the library, such as transport/unicast/max_sessions:1000; repeatable
";

/// Exit codes: those of `pubmark`.
const BAD_USAGE: u8 = 2;
const FAILED: u8 = 3;

fn main() -> ExitCode {
    zenoh::init_log_from_env_or("error");
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["agent"] => agent(),
        ["router", options @ ..] => match read_router(options) {
            Some((listen, settings)) => route(listen, &settings),
            None => bad_usage(),
        },
        ["--version"] => {
            println!("pubmark-zenoh {}, built with crate zenoh {ZENOH_VERSION}", env!("CARGO_PKG_VERSION"));
            ExitCode::SUCCESS
        }
        ["--help"] => {
            print!("{USAGE}");
            ExitCode::SUCCESS
        }
        _ => bad_usage(),
    }
}

fn bad_usage() -> ExitCode {
    eprint!("{USAGE}");
    ExitCode::from(BAD_USAGE)
}

/// The options of a router: where to listen, and settings; none where they make no sense.
fn read_router<'a>(mut options: &[&'a str]) -> Option<(&'a str, Vec<(&'a str, &'a str)>)> {
    let (mut listen, mut settings) = (router::DEFAULT_LISTEN, Vec::new());
    loop {
        options = match options {
            [] => return Some((listen, settings)),
            ["--listen", endpoint, rest @ ..] => {
                listen = endpoint;
                rest
            }
            ["--cfg", setting, rest @ ..] => {
                settings.push(setting.split_once(':')?);
                rest
            }
            _ => return None,
        }
    }
}

fn agent() -> ExitCode {
    // A stopped agent wakes up when its coordinator dies, finds its input
    // closed, and ends. (Where this cannot be set, only a stopped one stays.)
    let _ = set_pdeathsig(Signal::SIGCONT);
    let identity = AgentInfo {
        name: "pubmark-zenoh",
        version: env!("CARGO_PKG_VERSION"),
        drivers: &[
            ("zenoh", DriverKind::Sockets(driver::load)),
            ("zenoh-peer", DriverKind::Sockets(driver::load_peers)),
        ],
        versions: &[("zenoh", ZENOH_VERSION)],
        options: |_| OPTIONS.iter().map(|name| (*name).to_owned()).collect(),
        // A session tells its peers that it closes.
        crash: false,
    };
    match serve(identity, BufReader::new(std::io::stdin()), BufWriter::new(std::io::stdout())) {
        // Client threads may still sit in library calls: end without them.
        Ok(_) => std::process::exit(0),
        Err(error) => {
            eprintln!("error: the coordinator has gone: {error}");
            ExitCode::from(FAILED)
        }
    }
}

fn route(listen: &str, settings: &[(&str, &str)]) -> ExitCode {
    match router::open(listen, settings) {
        Ok(_session) => {
            println!("listening on {listen}");
            loop {
                std::thread::park();
            }
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(FAILED)
        }
    }
}
