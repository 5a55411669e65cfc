//! Who plays what: the clients of a run, dealt out to agents.

use super::refusal::Refusal;
use pubmark_model::cell::Cell;
use pubmark_model::fault::Target;
use pubmark_model::protocol::{BoundEndpoint, Client, PublisherTotal, Role};
use pubmark_model::system::System;
use pubmark_model::topology::{bind_at, heard_by};
use pubmark_model::units::{Ns, SECOND};
use pubmark_model::workload::{Pin, Transport, Workload};
use std::path::Path;

/// How long an agent may take to connect the last of its clients, beside what
/// the clients may take.
const ANSWER: Ns = 10 * SECOND;

/// How the clients of a run are spread over processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// All in one: the transport stays within a process.
    One,
    /// Agents for each side; they speak to each other.
    Sides {
        /// Agents of a side.
        processes: usize,
    },
    /// Each side by itself, speaking to a server; so many connections an agent at most.
    Server {
        /// What the limit on open files allows.
        connections: usize,
        /// Agents of a side, at least.
        processes: usize,
    },
}

/// The clients that go to one agent.
pub struct AgentPlan {
    /// `all`, `publishers`, `subscribers`, or these with a number.
    pub name: String,
    /// Those of wave 0 are prepared first; those of wave 1 when the others are
    /// bound, or connected and subscribed.
    pub wave: u8,
    /// The clients.
    pub clients: Vec<Client>,
}

impl AgentPlan {
    /// What its clients do, each role once.
    pub fn roles(&self) -> Vec<Role> {
        let mut roles: Vec<Role> = Vec::new();
        for client in &self.clients {
            if !roles.contains(&client.role) {
                roles.push(client.role);
            }
        }
        roles
    }

    /// What its clients do, where they all do the same.
    pub fn role(&self) -> Role {
        self.clients.first().map_or(Role::Publisher, |client| client.role)
    }

    /// Whether a fault of this side happens to it.
    pub fn is_of(&self, side: Target) -> bool {
        let sends = match side {
            Target::Publishers => true,
            Target::Subscribers => false,
            Target::Server | Target::Link => return false,
        };
        self.clients.iter().all(|client| client.role.sends() == sends)
    }

    /// Its publishers and requesters.
    pub fn senders(&self) -> usize {
        self.sending().count()
    }

    fn sending(&self) -> impl Iterator<Item = u32> {
        let sends = |client: &&Client| client.role.sends();
        self.clients.iter().filter(sends).map(|client| client.id)
    }

    /// What its publishers are said to have sent: each of them, once, and what
    /// can be.
    pub fn check(&self, totals: &[PublisherTotal]) -> Result<(), String> {
        if let Some(total) = totals.iter().find(|total| !total.adds_up()) {
            return Err(format!("{total:?} cannot be"));
        }
        let mut said: Vec<u32> = totals.iter().map(|total| total.publisher).collect();
        let mut played: Vec<u32> = self.sending().collect();
        said.sort_unstable();
        played.sort_unstable();
        match said.iter().zip(&played).find(|(said, played)| said != played) {
            Some((said, played)) => Err(format!("it speaks of publisher {said}, and not of {played}")),
            None if said.len() != played.len() => {
                Err(format!("it speaks of {} publishers, and plays {}", said.len(), played.len()))
            }
            None => Ok(()),
        }
    }
}

/// How the clients of a run are spread: by what its driver is. A process may
/// hold so many connections.
pub fn layout(cell: &Cell, system: &System, connections: usize) -> Layout {
    let processes = cell.workload.agents as usize;
    if system.broker() {
        return Layout::Server { connections, processes };
    }
    let inproc = cell.workload.transport.is_none_or(|transport| transport == Transport::Inproc);
    if inproc || system.driver == "mock" { Layout::One } else { Layout::Sides { processes } }
}

/// How long clients may take until all are ready; with a broker: what connecting takes at
/// the asked rate, and three times the time in which nothing may happen.
pub fn patience(workload: &Workload, broker: bool) -> Ns {
    if !broker {
        return workload.connect_timeout_ns;
    }
    let clients = u64::from(workload.publishers) + u64::from(workload.subscribers);
    clients * SECOND / u64::from(workload.connect_rate.max(1)) + 3 * workload.connect_timeout_ns + ANSWER
}

/// Processors for publishers and for subscribers, of those that there are.
pub fn pinning(workload: &Workload, cpus: &[usize]) -> (Vec<usize>, Vec<usize>) {
    if workload.pin == Pin::None || cpus.len() < 2 {
        return (Vec::new(), Vec::new());
    }
    let (publishers, subscribers) = cpus.split_at(cpus.len() / 2);
    (publishers.to_vec(), subscribers.to_vec())
}

/// Deals the clients out.
pub fn deal(workload: &Workload, scratch: &Path, layout: Layout) -> Vec<AgentPlan> {
    let asking = workload.pattern.round_trip();
    let client =
        |role, id| Client { role, id, flow: 0, bind: None, connect: Vec::new(), hears_first: 0, hears_count: 0 };
    let sending = if asking { Role::Requester } else { Role::Publisher };
    let hearing = if asking { Role::Replier } else { Role::Subscriber };
    let mut senders: Vec<Client> = (0..workload.publishers).map(|id| client(sending, id)).collect();
    let mut hearers: Vec<Client> = (0..workload.subscribers).map(|id| client(hearing, id)).collect();
    for hearer in &mut hearers {
        let heard = heard_by(workload, hearer.id);
        (hearer.hears_first, hearer.hears_count) = (heard.start, heard.end - heard.start);
    }
    if let Layout::Server { connections, processes } = layout {
        let mut parts = split("subscribers", 0, hearers, connections, processes);
        parts.extend(split("publishers", 1, senders, connections, processes));
        return parts;
    }
    let endpoint = |id: u32| bind_at(workload.transport, scratch, id);
    let binders = if asking { &mut hearers } else { &mut senders };
    binders.iter_mut().for_each(|client| client.bind = Some(endpoint(client.id)));
    if layout == Layout::One {
        // Within a process the names are known beforehand.
        if asking {
            senders.iter_mut().for_each(|client| client.connect = vec![endpoint(client.id)]);
        } else {
            hearers
                .iter_mut()
                .for_each(|client| client.connect = heard_by(workload, client.id).map(endpoint).collect());
        }
        senders.append(&mut hearers);
        return vec![AgentPlan { name: "all".to_owned(), wave: 0, clients: senders }];
    }
    let processes = if let Layout::Sides { processes } = layout { processes } else { 1 };
    let (senders_wave, hearers_wave) = if asking { (1, 0) } else { (0, 1) };
    let mut parts = split("publishers", senders_wave, senders, usize::MAX, processes);
    parts.extend(split("subscribers", hearers_wave, hearers, usize::MAX, processes));
    parts
}

/// As few agents as the connections allow, and as many as are wanted, each with
/// its fair share; none without a client.
fn split(name: &str, wave: u8, clients: Vec<Client>, most: usize, wanted: usize) -> Vec<AgentPlan> {
    let agents = clients.len().div_ceil(most.max(1)).max(wanted.min(clients.len()));
    let number = |index: usize| if agents == 1 { name.to_owned() } else { format!("{name}-{}", index + 1) };
    let begins = |index: usize| index * clients.len() / agents;
    (0..agents)
        .map(|index| clients[begins(index)..begins(index + 1)].to_vec())
        .enumerate()
        .map(|(index, clients)| AgentPlan { name: number(index), wave, clients })
        .collect()
}

/// Fills in where to connect to, now that the endpoints are bound.
pub fn connect(part: &mut AgentPlan, bound: &[BoundEndpoint]) -> Result<(), Refusal> {
    let find = |role: Role, id: u32| {
        let found = bound.iter().find(|endpoint| endpoint.role == role && endpoint.id == id);
        found
            .map(|endpoint| endpoint.endpoint.clone())
            .ok_or_else(|| Refusal::Unbound { client: format!("{role:?} {id}").to_lowercase() })
    };
    for client in part.clients.iter_mut().filter(|client| client.bind.is_none() && client.connect.is_empty()) {
        client.connect = match client.role {
            Role::Requester => vec![find(Role::Replier, client.id)?],
            _ => (client.hears_first..client.hears_first + client.hears_count)
                .map(|id| find(Role::Publisher, id))
                .collect::<Result<_, _>>()?,
        };
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workload(pairs: &str) -> Workload {
        Workload::of([("pairs", pairs)]).unwrap()
    }

    #[test]
    fn connections_are_split_over_as_few_agents_as_can_hold_them() {
        let parts = deal(&workload("50000"), Path::new("/x"), Layout::Server { connections: 19_700, processes: 1 });
        let names: Vec<&str> = parts.iter().map(|part| part.name.as_str()).collect();
        assert_eq!(
            names,
            ["subscribers-1", "subscribers-2", "subscribers-3", "publishers-1", "publishers-2", "publishers-3"]
        );
        assert!(parts.iter().all(|part| part.clients.len() <= 19_700));
        assert_eq!(parts.iter().map(|part| part.clients.len()).sum::<usize>(), 100_000);
        assert!(parts.iter().all(|part| (part.wave == 0) == part.name.starts_with("sub")));
        let sides = [Target::Publishers, Target::Subscribers, Target::Server];
        let of = |part: &AgentPlan| sides.map(|side| part.is_of(side));
        assert_eq!((of(&parts[0]), of(&parts[5])), ([false, true, false], [true, false, false]));
        assert_eq!(parts[1].clients[0].hears_first, parts[1].clients[0].id, "numbers go on from agent to agent");
    }

    #[test]
    fn a_side_without_a_client_has_no_agent() {
        for layout in [Layout::Sides { processes: 4 }, Layout::Server { connections: 1_000, processes: 4 }] {
            let parts = deal(&Workload { subscribers: 0, ..workload("3") }, Path::new("/x"), layout);
            assert_eq!(parts.len(), 3);
            assert!(parts.iter().all(|part| part.role().sends() && part.clients.len() == 1), "{layout:?}");
        }
    }

    #[test]
    fn a_side_of_several_processes_has_its_clients_spread_over_them() {
        for layout in [Layout::Sides { processes: 4 }, Layout::Server { connections: 1_000, processes: 4 }] {
            for (pairs, agents) in [("1", 1), ("3", 3), ("6", 4), ("10", 4)] {
                let parts = deal(&workload(pairs), Path::new("/x"), layout);
                let sides = |senders: bool| parts.iter().filter(|part| part.role().sends() == senders).count();
                assert_eq!((sides(true), sides(false)), (agents, agents), "{layout:?} {pairs}");
                assert!(parts.iter().all(|part| !part.clients.is_empty()));
                assert_eq!(
                    parts.iter().map(|part| part.clients.len()).sum::<usize>(),
                    2 * pairs.parse::<usize>().unwrap()
                );
            }
        }
    }
}
