//! Conformance cases and their outcomes.

use crate::bench::Bench;
use crate::wrong::CaseFailure;

/// Requirements of a case beside the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaseNeeds {
    /// Messages of the protocol only; any transport.
    Words,
    /// Sockets on the other side, across processes.
    Sockets,
    /// A server at which agents meet.
    Meeting,
    /// A server, and pubmark's own agent on the other side.
    BuiltIn,
    /// A server that follows a script.
    Peer,
}

/// A conformance case.
pub struct Case {
    /// Name of the case.
    pub name: &'static str,
    /// Input of the agent.
    pub sent: &'static str,
    /// Expected behaviour.
    pub due: &'static str,
    /// Requirement of the case.
    pub needs: CaseNeeds,
    /// Runs the case.
    pub run: fn(&Bench<'_>) -> Result<(), CaseFailure>,
}

/// Returns a case that needs sockets on the other side.
pub const fn of_sockets(
    name: &'static str,
    sent: &'static str,
    due: &'static str,
    run: fn(&Bench<'_>) -> Result<(), CaseFailure>,
) -> Case {
    Case { name, sent, due, needs: CaseNeeds::Sockets, run }
}

/// Observed behaviour of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ObservedBehaviour {
    /// As expected.
    AsDue,
    /// Different; the text describes it.
    Otherwise(String),
    /// The case was not tried; the text says why.
    NotTried(String),
}

/// A case with its outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Name of the case, with its transport if it was tried on one: `tcp/send-schedule`.
    pub case: String,
    /// Input of the agent.
    pub sent: &'static str,
    /// Expected behaviour.
    pub due: &'static str,
    /// Observed behaviour.
    pub came: ObservedBehaviour,
}
