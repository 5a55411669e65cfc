//! A case: what it is called, what is tried, and what came of it.

use crate::bench::Bench;
use crate::wrong::Wrong;

/// What a case needs beside the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Nothing: the words of the protocol alone, and any transport.
    Words,
    /// The other side's sockets, across processes.
    Sockets,
    /// Nothing but a place where agents meet.
    Meeting,
    /// The same, and pubmark's own agent on the other side.
    BuiltIn,
    /// A server that does what a script says.
    Peer,
}

/// Something that is tried.
pub struct Case {
    /// Its name.
    pub name: &'static str,
    /// What the agent is told or sent.
    pub sent: &'static str,
    /// What it should do.
    pub due: &'static str,
    /// What it needs.
    pub needs: Needs,
    /// Tries it.
    pub run: fn(&Bench<'_>) -> Result<(), Wrong>,
}

/// A case that needs sockets on the other side.
pub const fn of_sockets(
    name: &'static str,
    sent: &'static str,
    due: &'static str,
    run: fn(&Bench<'_>) -> Result<(), Wrong>,
) -> Case {
    Case { name, sent, due, needs: Needs::Sockets, run }
}

/// What came of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Came {
    /// What was due.
    AsDue,
    /// Something else.
    Otherwise(String),
    /// It was not tried, and why.
    NotTried(String),
}

/// A case and what came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The case, behind its transport where it was tried on one: `tcp/send-schedule`.
    pub case: String,
    /// What the agent was told or sent.
    pub sent: &'static str,
    /// What was due.
    pub due: &'static str,
    /// What came.
    pub came: Came,
}
