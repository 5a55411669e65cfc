//! Source addresses of clients: from one address, only as many clients can connect to a server as there are ephemeral
//! ports. Also the name of the run, which its topics contain.

use crate::lead::assignment::AgentPlan;
use pubmark_host::server::attachment;
use pubmark_model::cell::Cell;
use pubmark_model::endpoint::Endpoint;
use pubmark_model::options::OptionValues;
use std::net::Ipv4Addr;

/// Maximum number of clients that share a source address: one address has 28,232 ephemeral ports by default, and some
/// are still in TIME_WAIT.
const CLIENTS_OF_ONE_ADDRESS: usize = 10_000;

/// First source address of clients if one address does not have enough ports: all of 127.0.0.0/8 is this machine, and
/// servers listen on 127.0.0.1.
const FIRST: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

/// Returns the source addresses of each agent: those that the user gave, or as many of its own as its clients need for
/// a server on this machine. If empty, the kernel chooses.
pub fn of_agents(cell: &Cell, endpoint: Option<&str>, agents: &[AgentPlan]) -> Vec<Vec<String>> {
    if let Some(given) = cell.options.text("sources") {
        return vec![given.split(',').map(|source| source.trim().to_owned()).collect(); agents.len()];
    }
    let local =
        || endpoint.and_then(|url| Endpoint::parse(url).ok()).is_some_and(|endpoint| attachment::here(&endpoint));
    let clients: Vec<usize> = agents.iter().map(|agent| agent.clients.len()).collect();
    if clients.iter().sum::<usize>() <= CLIENTS_OF_ONE_ADDRESS || !local() {
        return vec![Vec::new(); agents.len()];
    }
    let mut addresses = (u32::from(FIRST)..).map(|address| Ipv4Addr::from(address).to_string());
    clients.iter().map(|count| addresses.by_ref().take(count.div_ceil(CLIENTS_OF_ONE_ADDRESS)).collect()).collect()
}

/// Returns a name for the run that no other run has had on this machine: the time in microseconds, in base 36.
pub fn run_name() -> String {
    let mut left = jiff::Timestamp::now().as_microsecond().unsigned_abs();
    let mut name = String::new();
    while left > 0 {
        name.insert(0, char::from_digit((left % 36) as u32, 36).unwrap_or('0'));
        left /= 36;
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lead::assignment::{Layout, deal, here};
    use crate::registry;
    use pubmark_model::study::{ReadOptions, Study};
    use std::collections::BTreeSet;

    /// Returns the addresses of a run's agents, and the number of clients of each.
    fn sources(pairs: u32, endpoint: &str, connections: usize, options: &str) -> (Vec<Vec<String>>, Vec<usize>) {
        let text = format!("title = \"t\"\n[workload]\npairs = {pairs}\n[axes]\nsystem = \"mosquitto\"\n{options}");
        let study = Study::parse("t", &text, &registry::built_in, &ReadOptions::default()).unwrap();
        let cell = pubmark_model::plan::cells(&study).unwrap().remove(0);
        let agents = deal(&cell.flows(), &here(), Layout::Server { connections, processes: 1 });
        let clients = agents.iter().map(|agent| agent.clients.len()).collect();
        (of_agents(&cell, Some(endpoint), &agents), clients)
    }

    /// Asserts that addresses are not shared, and that each has at most this many clients.
    fn assert_enough(sources: &[Vec<String>], clients: &[usize]) {
        let all: Vec<&String> = sources.iter().flatten().collect();
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len(), "{sources:?}");
        for (sources, clients) in sources.iter().zip(clients) {
            assert!(clients.div_ceil(sources.len()) <= CLIENTS_OF_ONE_ADDRESS, "{clients} from {sources:?}");
        }
        assert!(all.iter().all(|address| address.parse::<Ipv4Addr>().unwrap().is_loopback()), "{sources:?}");
    }

    #[test]
    fn a_hundred_thousand_clients_of_one_machine_have_ports_whatever_an_agent_can_hold() {
        for connections in [500, 19_700, 1_000_000] {
            let (sources, clients) = sources(50_000, "mqtt://127.0.0.1:1883", connections, "");
            assert_enough(&sources, &clients);
        }
        let (two, _) = sources(50_000, "mqtt://127.0.0.1:1883", 1_000_000, "");
        assert_eq!(two.iter().map(Vec::len).collect::<Vec<_>>(), [5, 5]);
        assert_eq!((two[0][0].as_str(), two[1][4].as_str()), ("127.0.0.2", "127.0.0.11"));
    }

    #[test]
    fn a_login_hides_no_server_of_this_machine() {
        let count = |endpoint: &str| sources(10_000, endpoint, 20_000, "").0.iter().map(Vec::len).sum::<usize>();
        assert_eq!(count("mqtt://u:p@127.0.0.1:1883"), 2);
        assert_eq!(count("mqtt://u:p@localhost:1883"), 2);
        assert_eq!(count("mqtt://127.0.0.1@192.0.2.1:1883"), 0, "a user may have any name");
    }

    #[test]
    fn few_clients_and_given_addresses_are_left_alone() {
        let (few, _) = sources(5_000, "mqtt://127.0.0.1:1883", 19_700, "");
        assert_eq!(few, [Vec::<String>::new(), Vec::new()]);
        let given = "[options.mosquitto]\nsources = \"10.0.0.1, 10.0.0.2\"\n";
        let (given, _) = sources(50_000, "mqtt://127.0.0.1:1883", 1_000_000, given);
        assert_eq!(given, [["10.0.0.1", "10.0.0.2"], ["10.0.0.1", "10.0.0.2"]]);
    }
}
