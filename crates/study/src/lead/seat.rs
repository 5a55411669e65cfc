//! Where an agent is.

use pubmark_model::units::{MILLISECOND, Ns};

/// From the word `start` to the instant of the start, at least.
const LEAD: Ns = 100 * MILLISECOND;
/// The same where the word goes to other hosts.
const LEAD_AFAR: Ns = 500 * MILLISECOND;
/// At least so much of it for each agent: all are told one after the other, and where
/// they are many for their processors, one waits for another before it hears the word.
const LEAD_EACH: Ns = 2 * MILLISECOND;

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

/// From the word `start` to the instant of the start, for agents at these seats, ns.
pub fn lead_ns(seats: &[Seat]) -> Ns {
    let is_afar = seats.iter().any(|seat| !seat.host.is_empty());
    if is_afar { LEAD_AFAR } else { LEAD }.max(seats.len() as Ns * LEAD_EACH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_agents_have_longer_until_the_start_and_few_on_one_host_do_not_wait_for_it() {
        let lead = |count, host: &str| lead_ns(&vec![Seat { host: host.into(), ..Seat::default() }; count]);
        assert_eq!([lead(2, ""), lead(8, ""), lead(2, "b1")], [LEAD, LEAD, LEAD_AFAR]);
        assert_eq!(lead(4_096, "b1"), 4_096 * LEAD_EACH);
    }
}
