//! Where an agent is.

/// What an agent's host has for it.
#[derive(Clone, Debug, Default)]
pub struct Seat {
    /// The host's name; empty for `local`.
    pub host: String,
    /// The folder for socket files there.
    pub scratch: String,
    /// Processors that the run may use there, by number.
    pub cpus: Vec<usize>,
    /// Those that the kernel keeps free of everything that is not bound to them.
    pub isolated: Vec<usize>,
    /// What the clock of instants in messages is ahead of the one there, ns.
    pub ahead_ns: i64,
}

/// How an agent reaches its server.
#[derive(Clone, Debug)]
pub struct Reached {
    /// The server's URL, or that of the link before it.
    pub endpoint: String,
    /// Addresses to connect from; none leaves it to the kernel.
    pub sources: Vec<String>,
}
