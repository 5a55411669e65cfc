//! Elements of a conversation beside its commands: stops at known instants, and the one flow of a result.

use crate::wrong::CaseFailure;
use nix::sys::signal::Signal;
use pubmark_host::clock;
use pubmark_host::conversation::AgentConversation;
use pubmark_model::protocol::{AgentResult, FlowResult};
use pubmark_model::units::{MILLISECOND, Ns, SECOND};
use std::thread;
use std::time::Duration;

/// Time from the command `start` to the start of the schedule.
pub const LEAD: Ns = 150 * MILLISECOND;

/// A stop (SIGSTOP) of an agent.
#[derive(Clone, Copy, Debug)]
pub struct Stop {
    /// Start, ns from the window's start.
    pub at_ns: Ns,
    /// Length of the stop.
    pub length: Duration,
}

impl Stop {
    /// Returns a stop given in milliseconds.
    pub const fn ms(at: u64, length: u64) -> Stop {
        Stop { at_ns: at * MILLISECOND, length: Duration::from_millis(length) }
    }

    /// Returns its length, ns.
    pub fn length_ns(&self) -> Ns {
        self.length.as_nanos() as Ns
    }
}

/// Stops an agent's process, in a window that begins at `window_ns`. Returns start and end of the stop.
pub fn pause(talk: &AgentConversation, window_ns: Ns, stop: Stop) -> (Ns, Ns) {
    thread::sleep(until(window_ns + stop.at_ns));
    talk.signal(Signal::SIGSTOP);
    let from_ns = clock::now();
    thread::sleep(stop.length);
    let to_ns = clock::now();
    talk.signal(Signal::SIGCONT);
    (from_ns, to_ns)
}

/// Returns the only flow of a result.
pub fn only(result: &AgentResult) -> Result<FlowResult, CaseFailure> {
    match result.flows.as_slice() {
        [flow] => Ok(flow.clone()),
        flows => Err(CaseFailure::did(format!("it was told to play one flow, and its result has {}", flows.len()))),
    }
}

/// Returns the time until an instant, ns from now.
pub fn until(at_ns: Ns) -> Duration {
    Duration::from_nanos(at_ns.saturating_sub(clock::now()).min(60 * SECOND))
}
