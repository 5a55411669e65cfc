//! Ends of processes.

use nix::sys::signal::Signal;
use std::fmt;

/// The way in which a process ended.
#[derive(Debug)]
pub(super) enum ProcessEnd {
    /// By itself, with this status.
    Exit(i32),
    /// By a signal.
    Signal(Signal),
}

/// Worded like the standard library.
impl fmt::Display for ProcessEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProcessEnd::Exit(code) => write!(f, "exit status: {code}"),
            ProcessEnd::Signal(signal) => write!(f, "signal: {} ({signal})", *signal as i32),
        }
    }
}
