//! Helper processes, not for users. `pubmark host`: serves a coordinator on another machine; `pubmark keep` and
//! `pubmark launch`: run between a coordinator and a server; `pubmark ledger-disk`: serves its folder; `pubmark awake`:
//! keeps processors awake.

use super::shared::{agent_command, raise_open_files};
use crate::args::{AwakeArgs, LaunchArgs, LedgerDiskArgs};
use crate::failure::{Code, Failure};
use pubmark_host::server::launch::{self, Launch};
use pubmark_host::server::{keeper, ledger_disk};
use pubmark_host::{heartbeat, serve, system_file};
use pubmark_study::registry;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use std::io::BufReader;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Keeps a server until its input ends.
pub fn keep() -> Result<Code, Failure> {
    // Only the end of its input ends a keeper. The server does not inherit handlers, but would inherit ignored signals.
    let unread = Arc::new(AtomicBool::new(false));
    for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTERM] {
        signal_hook::flag::register(signal, unread.clone())
            .map_err(|error| Failure::run(format!("no handler for signal {signal}: {error}")))?;
    }
    keeper::keep(BufReader::new(std::io::stdin()), std::io::stdout()).map_err(Failure::run)?;
    Ok(Code::Done)
}

/// Serves a coordinator until its input ends, and leaves nothing behind.
pub fn host() -> Result<Code, Failure> {
    // Only the end of its input ends it: its coordinator handles Ctrl-C.
    let unread = Arc::new(AtomicBool::new(false));
    for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTERM] {
        signal_hook::flag::register(signal, unread.clone())
            .map_err(|error| Failure::run(format!("no handler for signal {signal}: {error}")))?;
    }
    raise_open_files();
    system_file::carries(registry::carried);
    let silence = heartbeat::allowed(heartbeat::OF_COORDINATOR).map_err(Failure::run)?;
    let served = serve::serve(BufReader::new(std::io::stdin()), std::io::stdout(), &agent_command()?, silence);
    served.map_err(Failure::run)?;
    Ok(Code::Done)
}

/// Replaces this process by a server under limits.
pub fn launch(args: LaunchArgs) -> Result<Code, Failure> {
    let plan = Launch { parent: args.parent, groups: args.group, cpus: args.cpu, command: args.command };
    Err(Failure::run(launch::launch(&plan)))
}

/// Serves a server's folder until its input ends.
pub fn ledger_disk(args: &LedgerDiskArgs) -> Result<Code, Failure> {
    // Only the end of its input ends it, which is that of its keeper.
    let unread = Arc::new(AtomicBool::new(false));
    for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTERM] {
        signal_hook::flag::register(signal, unread.clone())
            .map_err(|error| Failure::run(format!("no handler for signal {signal}: {error}")))?;
    }
    raise_open_files();
    let (orders, answers) = (BufReader::new(std::io::stdin()), std::io::stdout());
    ledger_disk::serve(&args.folder, args.strict, orders, answers).map_err(Failure::run)?;
    Ok(Code::Done)
}

/// Keeps every processor awake until its input ends.
pub fn awake(args: &AwakeArgs) -> Result<Code, Failure> {
    pubmark_host::spinner::stay(args.parent).map_err(Failure::run)?;
    Ok(Code::Done)
}
