//! Where the clients of a run come from, and what its topics are called.

use pubmark_model::cell::Cell;
use pubmark_model::options::OptionValues;

/// Clients that may share a source address: the ephemeral ports of one are
/// 28,232 by default, and some are still in TIME_WAIT.
const CLIENTS_OF_ONE_ADDRESS: u32 = 10_000;

/// Addresses for an agent to connect from: those that the user gave, or one of
/// its own where a loopback address would run out of ports.
pub fn sources(cell: &Cell, endpoint: &str, agent: usize) -> Vec<String> {
    if let Some(given) = cell.options.text("sources") {
        return given.split(',').map(|source| source.trim().to_owned()).collect();
    }
    let clients = cell.workload.publishers + cell.workload.subscribers;
    let local =
        endpoint.split("://").nth(1).is_some_and(|rest| rest.starts_with("127.") || rest.starts_with("localhost"));
    if local && clients > CLIENTS_OF_ONE_ADDRESS { vec![format!("127.0.0.{}", 2 + agent % 250)] } else { Vec::new() }
}

/// A name for the run that no other run has had on this machine: the time in
/// microseconds, in base 36.
pub fn run_name() -> String {
    let mut left = jiff::Timestamp::now().as_microsecond().unsigned_abs();
    let mut name = String::new();
    while left > 0 {
        name.insert(0, char::from_digit((left % 36) as u32, 36).unwrap_or('0'));
        left /= 36;
    }
    name
}
