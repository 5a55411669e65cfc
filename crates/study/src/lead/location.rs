//! Location of an agent.

use pubmark_model::units::{MILLISECOND, Ns};
use serde_json::Value;

/// Minimum time from the command `start` to the start of the schedule.
const LEAD: Ns = 100 * MILLISECOND;
/// Minimum time from the command to the start if it goes to other hosts.
const LEAD_AFAR: Ns = 500 * MILLISECOND;
/// Minimum time per agent: agents get the command one after the other, and if many share a few processors, one waits
/// for another before it reads the command.
const LEAD_EACH: Ns = 2 * MILLISECOND;

/// Resources of an agent's host for it.
#[derive(Clone, Debug, Default)]
pub struct AgentResources {
    /// Name of the host; empty for `local`.
    pub host: String,
    /// Folder for socket files on the host.
    pub scratch: String,
    /// Numbers of the processors that the run may use on the host.
    pub cpus: Vec<usize>,
    /// Processors that the kernel keeps free of everything that is not bound to them.
    pub isolated: Vec<usize>,
    /// Offset of the clock of instants in messages from the host's clock, ns; positive if ahead.
    pub ahead_ns: i64,
}

/// Address by which an agent reaches its server.
#[derive(Clone, Debug)]
pub struct Reached {
    /// The server's URL, or that of the link before it.
    pub endpoint: String,
    /// URLs of all members of the server, if there are several.
    pub members: Vec<String>,
    /// URLs at which clients ask which of them leads, if there are such services.
    pub discovery: Vec<String>,
    /// Addresses to connect from; if empty, the kernel chooses.
    pub sources: Vec<String>,
    /// Certificate (PEM) of the authority to trust, if the server's was made for the run.
    pub authority: Option<String>,
}

impl Reached {
    /// Returns the option by which clients trust the server, if its certificate was made for the run.
    pub fn trust(&self) -> Option<(String, Value)> {
        Some(("tls_ca".into(), self.authority.clone()?.into()))
    }
}

/// Returns the time from the command `start` to the start of the schedule for agents at these locations, ns.
pub fn lead_ns(seats: &[AgentResources]) -> Ns {
    let is_afar = seats.iter().any(|seat| !seat.host.is_empty());
    if is_afar { LEAD_AFAR } else { LEAD }.max(seats.len() as Ns * LEAD_EACH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_agents_have_longer_until_the_start_and_few_on_one_host_do_not_wait_for_it() {
        let lead = |count, host: &str| {
            lead_ns(&vec![AgentResources { host: host.into(), ..AgentResources::default() }; count])
        };
        assert_eq!([lead(2, ""), lead(8, ""), lead(2, "b1")], [LEAD, LEAD, LEAD_AFAR]);
        assert_eq!(lead(4_096, "b1"), 4_096 * LEAD_EACH);
    }
}
