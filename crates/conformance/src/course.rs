//! What the suite says beside the words of a conversation: stops at known
//! instants, and the one flow of a result.

use crate::wrong::Wrong;
use nix::sys::signal::Signal;
use pubmark_host::clock;
use pubmark_host::talk::Talk;
use pubmark_model::protocol::{AgentResult, FlowResult};
use pubmark_model::units::{MILLISECOND, Ns, SECOND};
use std::thread;
use std::time::Duration;

/// From the word `start` to its instant.
pub const LEAD: Ns = 150 * MILLISECOND;

/// Stops an agent's process at an instant, for so long.
pub fn pause(talk: &Talk, at_ns: Ns, length: Duration) {
    if !length.is_zero() {
        thread::sleep(until(at_ns));
        talk.signal(Signal::SIGSTOP);
        thread::sleep(length);
        talk.signal(Signal::SIGCONT);
    }
}

/// What a result says of its flow.
pub fn only(result: &AgentResult) -> Result<FlowResult, Wrong> {
    match result.flows.as_slice() {
        [flow] => Ok(flow.clone()),
        flows => Err(Wrong::did(format!("it was told to play one flow, and its result has {}", flows.len()))),
    }
}

/// Until an instant, ns from now.
pub fn until(at_ns: Ns) -> Duration {
    Duration::from_nanos(at_ns.saturating_sub(clock::now()).min(60 * SECOND))
}
