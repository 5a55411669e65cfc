//! Assigns the clients of a run to agents.

use super::refusal::Refusal;
use pubmark_model::cell::Cell;
use pubmark_model::fault::Target;
use pubmark_model::protocol::{BoundEndpoint, Client, Flow, PublisherTotal, Role};
use pubmark_model::system::System;
use pubmark_model::topology::{bind_answers_at, bind_at, heard_by};
use pubmark_model::units::{Ns, SECOND};
use pubmark_model::workload::{Pin, Transport, Workload};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;

/// Time that an agent may take to connect its last client, beyond the time of the clients themselves.
const ANSWER: Ns = 10 * SECOND;

/// Distribution of a run's clients over processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// All in one: the transport stays within a process.
    One,
    /// Agents for each side; they connect to each other.
    Sides {
        /// Number of agents of a side.
        processes: usize,
    },
    /// Agents for each side that connect to a server, each with a limited number of connections.
    Server {
        /// Connections per agent that the limit on open files allows.
        connections: usize,
        /// Minimum number of agents of a side.
        processes: usize,
    },
}

/// A host on which clients may run.
#[derive(Clone, Copy, Debug)]
pub struct ClientHost<'a> {
    /// Number of the host.
    pub host: usize,
    /// Its address on the measured network.
    pub address: &'a str,
    /// Folder for socket files on the host.
    pub scratch: &'a Path,
}

/// The clients of one agent.
pub struct AgentPlan {
    /// `all`, `publishers`, `subscribers`, or one of these with a number.
    pub name: String,
    /// Wave in which the agent is prepared: wave 0 first; wave 1 when those of wave 0 are bound, or connected and
    /// subscribed.
    pub wave: u8,
    /// Number of its host.
    pub host: usize,
    /// Number of its flow: each agent plays clients of one.
    pub flow: usize,
    /// Its clients.
    pub clients: Vec<Client>,
}

impl AgentPlan {
    /// Returns the roles of its clients, each once.
    pub fn roles(&self) -> Vec<Role> {
        let mut roles: Vec<Role> = Vec::new();
        for client in &self.clients {
            if !roles.contains(&client.role) {
                roles.push(client.role);
            }
        }
        roles
    }

    /// Returns the role of its clients, if they all have the same.
    pub fn role(&self) -> Role {
        self.clients.first().map_or(Role::Publisher, |client| client.role)
    }

    /// Returns whether a fault of this side affects it.
    pub fn is_of(&self, side: Target) -> bool {
        let sends = match side {
            Target::Publishers => true,
            Target::Subscribers => false,
            Target::Clients => return true,
            Target::Server | Target::Link | Target::Host | Target::Members | Target::Later(_) => return false,
        };
        self.clients.iter().all(|client| client.role.sends() == sends)
    }

    /// Returns the number of its publishers and requesters.
    pub fn senders(&self) -> usize {
        self.sending().count()
    }

    fn sending(&self) -> impl Iterator<Item = u32> {
        let sends = |client: &&Client| client.role.sends();
        self.clients.iter().filter(sends).map(|client| client.id)
    }

    /// Returns the numbers of its own publishers and of those that its subscribers receive from, as rising ranges that
    /// do not overlap.
    fn concerned(&self) -> Vec<Range<u32>> {
        let own = self.sending().map(|id| id..id + 1);
        let heard = self.clients.iter().map(|client| client.hears_first..client.hears_first + client.hears_count);
        let mut all: Vec<Range<u32>> = own.chain(heard).filter(|range| !range.is_empty()).collect();
        all.sort_unstable_by_key(|range| (range.start, range.end));
        let mut merged: Vec<Range<u32>> = Vec::new();
        for range in all {
            match merged.last_mut().filter(|last| range.start <= last.end) {
                Some(last) => last.end = last.end.max(range.end),
                None => merged.push(range),
            }
        }
        merged
    }

    /// Returns what is of its own publishers and of those that its subscribers receive from, out of `all` in the
    /// order of publishers. Sending everything to every agent would grow with the square of the agents.
    pub fn concerns<T: Copy>(&self, all: &[T], publisher: impl Fn(&T) -> u32) -> Vec<T> {
        let from = |id: u32| all.partition_point(|one| publisher(one) < id);
        self.concerned().into_iter().flat_map(|ids| &all[from(ids.start)..from(ids.end)]).copied().collect()
    }

    /// Checks the reported totals of its publishers: each publisher once, with a possible number.
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

/// Returns the layout of a run's clients, which depends on the driver. A process may hold this many `connections`.
pub fn layout(cell: &Cell, system: &System, connections: usize) -> Layout {
    let processes = cell.workload.agents as usize;
    if system.broker() {
        return Layout::Server { connections, processes };
    }
    let inproc = cell.workload.transport.is_none_or(|transport| transport == Transport::Inproc);
    if inproc || system.driver == "mock" { Layout::One } else { Layout::Sides { processes } }
}

/// Returns the time that clients may take until all are ready; with a broker: the time of connecting at the requested
/// rate, plus three times the time without progress that is allowed.
pub fn patience(workload: &Workload, broker: bool) -> Ns {
    if !broker {
        return workload.connect_timeout_ns;
    }
    let clients = u64::from(workload.publishers) + u64::from(workload.subscribers);
    let connecting_ns = clients.saturating_mul(SECOND) / u64::from(workload.connect_rate.max(1));
    workload.connect_timeout_ns.saturating_mul(3).saturating_add(connecting_ns).saturating_add(ANSWER)
}

/// Returns the processors for publishers and for subscribers: the requested ones or, if requested by role, some of
/// `cpus`, the isolated ones first.
pub fn pinning(workload: &Workload, cpus: &[usize], isolated: &[usize]) -> (Vec<usize>, Vec<usize>) {
    let usable = if isolated.len() > 1 { isolated } else { cpus };
    match &workload.pin {
        Pin::Sets(sets) => (sets.publishers.clone(), sets.subscribers.clone()),
        Pin::Roles if usable.len() > 1 => {
            let (publishers, subscribers) = usable.split_at(usable.len() / 2);
            (publishers.to_vec(), subscribers.to_vec())
        }
        Pin::None | Pin::Roles => (Vec::new(), Vec::new()),
    }
}

/// Assigns the clients of all flows to agents, each with clients of one flow.
pub fn deal(flows: &[Flow], spots: &[Vec<ClientHost<'_>>; 2], layout: Layout) -> Vec<AgentPlan> {
    let mut all: Vec<AgentPlan> = Vec::new();
    for (index, flow) in flows.iter().enumerate() {
        let mut plans = deal_flow(&flow.workload, spots.clone(), layout);
        if flows.len() > 1 {
            plans.iter_mut().for_each(|plan| (plan.flow, plan.name) = (index, format!("{}-{}", flow.name, plan.name)));
        }
        all.extend(plans);
    }
    all
}

/// Assigns the clients to agents on the hosts of the senders and of the receivers. Clients with the same number get
/// hosts with the same number, as far as both sides have as many.
fn deal_flow(
    workload: &Workload,
    [sending_at, hearing_at]: [Vec<ClientHost<'_>>; 2],
    layout: Layout,
) -> Vec<AgentPlan> {
    let asking = workload.pattern.requests();
    let client = |role, id| Client {
        role,
        id,
        flow: 0,
        bind: None,
        connect: Vec::new(),
        answers: None,
        hears_first: 0,
        hears_count: 0,
    };
    let (sending, hearing) = workload.pattern.roles();
    let mut senders: Vec<Client> = (0..workload.publishers).map(|id| client(sending, id)).collect();
    let mut hearers: Vec<Client> = (0..workload.subscribers).map(|id| client(hearing, id)).collect();
    for hearer in &mut hearers {
        let heard = heard_by(workload, hearer.id);
        (hearer.hears_first, hearer.hears_count) = (heard.start, heard.end - heard.start);
    }
    if let Layout::Server { connections, processes } = layout {
        let mut parts = split("subscribers", 0, hearers, connections, processes, &hearing_at);
        parts.extend(split("publishers", 1, senders, connections, processes, &sending_at));
        return parts;
    }
    let (binders, spots) = if asking { (&mut hearers, &hearing_at) } else { (&mut senders, &sending_at) };
    let count = binders.len();
    let endpoint = |id: u32| {
        let ClientHost { scratch, address, .. } = spots[id as usize * spots.len() / count.max(1)];
        bind_at(workload.transport, scratch, address, id)
    };
    binders.iter_mut().for_each(|client| client.bind = Some(endpoint(client.id)));
    let ClientHost { scratch, address, .. } = sending_at[0];
    if let Some(answers) = bind_answers_at(workload, scratch, address) {
        senders.iter_mut().for_each(|client| client.answers = Some(answers.clone()));
        if layout == Layout::One {
            hearers.iter_mut().take(1).for_each(|client| client.answers = Some(answers.clone()));
        }
    }
    if layout == Layout::One {
        // Within a process the names are known in advance.
        if asking {
            senders.iter_mut().for_each(|client| client.connect = vec![endpoint(client.id)]);
        } else {
            hearers
                .iter_mut()
                .for_each(|client| client.connect = heard_by(workload, client.id).map(endpoint).collect());
        }
        senders.append(&mut hearers);
        return vec![AgentPlan {
            name: "all".to_owned(),
            wave: 0,
            host: sending_at[0].host,
            flow: 0,
            clients: senders,
        }];
    }
    let processes = if let Layout::Sides { processes } = layout { processes } else { 1 };
    let (senders_wave, hearers_wave) = if asking { (1, 0) } else { (0, 1) };
    let mut parts = split("publishers", senders_wave, senders, usize::MAX, processes, &sending_at);
    parts.extend(split("subscribers", hearers_wave, hearers, usize::MAX, processes, &hearing_at));
    parts
}

/// Splits clients evenly over the hosts, on each into as few agents as the connections allow, but as many as `wanted`;
/// an agent has at least one client.
fn split(
    name: &str,
    wave: u8,
    clients: Vec<Client>,
    most: usize,
    wanted: usize,
    spots: &[ClientHost<'_>],
) -> Vec<AgentPlan> {
    let mut parts: Vec<AgentPlan> = Vec::new();
    for (spot, clients) in spots.iter().zip(shares(&clients, spots.len())) {
        let agents = clients.len().div_ceil(most.max(1)).max(wanted.min(clients.len()));
        let plan = |clients: &[Client]| AgentPlan {
            name: name.to_owned(),
            wave,
            host: spot.host,
            flow: 0,
            clients: clients.to_vec(),
        };
        parts.extend(shares(clients, agents).map(plan));
    }
    parts.retain(|part| !part.clients.is_empty());
    if parts.len() > 1 {
        parts.iter_mut().enumerate().for_each(|(index, part)| part.name = format!("{name}-{}", index + 1));
    }
    parts
}

/// Splits clients into this many consecutive groups whose lengths differ by one at most.
fn shares(clients: &[Client], count: usize) -> impl Iterator<Item = &[Client]> {
    let begins = move |index: usize| (index * clients.len()).div_ceil(count.max(1));
    (0..count).map(move |index| &clients[begins(index)..begins(index + 1)])
}

/// Returns each pair of hosts that messages travel between, as sender's and receiver's host.
pub fn streams_between(plans: &[AgentPlan]) -> BTreeSet<(usize, usize)> {
    let flows = plans.iter().map(|plan| plan.flow).max().map_or(0, |last| last + 1);
    (0..flows).flat_map(|flow| streams_of(&plans.iter().filter(|plan| plan.flow == flow).collect::<Vec<_>>())).collect()
}

fn streams_of(plans: &[&AgentPlan]) -> BTreeSet<(usize, usize)> {
    // An agent's senders have consecutive numbers, and so have agents of one host.
    let mut sending: Vec<(u32, u32, usize)> = Vec::new();
    for plan in plans {
        let (Some(first), Some(last)) = (plan.sending().min(), plan.sending().max()) else { continue };
        match sending.last_mut() {
            Some((_, end, host)) if *host == plan.host && *end + 1 == first => *end = last,
            _ => sending.push((first, last, plan.host)),
        }
    }
    sending.sort_unstable();
    let mut between = BTreeSet::new();
    for plan in plans {
        let mut hears: Vec<(u32, u32)> =
            plan.clients.iter().map(|client| (client.hears_first, client.hears_count)).collect();
        hears.dedup();
        for (first, count) in hears {
            let begins = sending.partition_point(|(_, last, _)| *last < first);
            let heard = sending[begins..].iter().take_while(|(from, ..)| *from < first + count);
            between.extend(heard.map(|(.., from)| (*from, plan.host)).filter(|(from, to)| from != to));
        }
    }
    between
}

/// Endpoints at which clients are bound, as their agents reported them.
#[derive(Default)]
pub struct BoundEndpoints {
    at: BTreeMap<(Role, u32), String>,
    /// Endpoint at which the one publisher whose messages are answered receives the answers.
    answers: Option<String>,
}

impl Extend<BoundEndpoint> for BoundEndpoints {
    fn extend<I: IntoIterator<Item = BoundEndpoint>>(&mut self, bound: I) {
        for BoundEndpoint { role, id, endpoint, answers } in bound {
            self.at.entry((role, id)).or_insert(endpoint);
            self.answers = self.answers.take().or(answers);
        }
    }
}

/// Fills in the endpoints to connect to, now that they are bound.
pub fn connect(part: &mut AgentPlan, bound: &BoundEndpoints) -> Result<(), Refusal> {
    let find = |role: Role, id: u32| {
        let found = bound.at.get(&(role, id)).cloned();
        found.ok_or_else(|| Refusal::Unbound { client: format!("{role:?} {id}").to_lowercase() })
    };
    for client in part.clients.iter_mut().filter(|client| client.bind.is_none() && client.connect.is_empty()) {
        client.connect = match client.role {
            Role::Requester => vec![find(Role::Replier, client.id)?],
            _ => (client.hears_first..client.hears_first + client.hears_count)
                .map(|id| find(Role::Publisher, id))
                .collect::<Result<_, _>>()?,
        };
        if (client.role, client.id) == (Role::Subscriber, 0) {
            client.answers.clone_from(&bound.answers);
        }
    }
    Ok(())
}

/// Returns one host for both sides, for tests.
#[cfg(test)]
pub fn here() -> [Vec<ClientHost<'static>>; 2] {
    let spot = ClientHost { host: 0, address: pubmark_model::host::LOOPBACK, scratch: Path::new("/x") };
    [vec![spot], vec![spot]]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns hosts with these numbers for senders and receivers.
    fn at(sending: &[usize], hearing: &[usize]) -> [Vec<ClientHost<'static>>; 2] {
        let addresses = ["10.0.0.0", "10.0.0.1", "10.0.0.2", "10.0.0.3"];
        let spot = |host: &usize| ClientHost { host: *host, address: addresses[*host], scratch: Path::new("/x") };
        [sending, hearing].map(|side| side.iter().map(spot).collect())
    }

    fn workload(pairs: &str) -> Workload {
        Workload::of([("pairs", pairs)]).unwrap()
    }

    #[test]
    fn connections_are_split_over_as_few_agents_as_can_hold_them() {
        let parts = deal_flow(&workload("50000"), here(), Layout::Server { connections: 19_700, processes: 1 });
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

    /// Only the publisher and the subscriber that answers get the endpoint of the answers.
    #[test]
    fn answers_go_where_the_publisher_has_bound() {
        let settings = [("pattern", "fan-out-echo"), ("subscribers", "3"), ("transport", "tcp")];
        let workload = Workload::of(settings).unwrap();
        let mut parts = deal_flow(&workload, here(), Layout::Sides { processes: 1 });
        let bound = |answers: Option<&str>| {
            let (endpoint, answers) = ("tcp://127.0.0.1:5".into(), answers.map(str::to_owned));
            let mut bound = BoundEndpoints::default();
            bound.extend([BoundEndpoint { role: Role::Publisher, id: 0, endpoint, answers }]);
            bound
        };
        let publisher = &parts[0].clients[0];
        assert_eq!(publisher.bind, publisher.answers, "any free port");
        connect(&mut parts[1], &bound(Some("tcp://127.0.0.1:6"))).unwrap();
        let told: Vec<Option<&str>> = parts[1].clients.iter().map(|client| client.answers.as_deref()).collect();
        assert_eq!(told, [Some("tcp://127.0.0.1:6"), None, None]);
        assert!(parts[1].clients.iter().all(|client| client.connect == ["tcp://127.0.0.1:5"]));
        let mut parts = deal_flow(&workload, here(), Layout::Sides { processes: 1 });
        connect(&mut parts[1], &bound(None)).unwrap();
        assert!(parts[1].clients.iter().all(|client| client.answers.is_none()), "they go back as messages came");
        let two = Workload::of(settings.into_iter().chain([("publishers", "2")]));
        assert!(two.unwrap_err().to_string().contains("`fan-out-echo` has one publisher"));
    }

    #[test]
    fn an_agent_is_told_of_the_publishers_that_it_is_or_hears_and_of_no_others() {
        let total = |publisher| PublisherTotal { publisher, sent: 1, ..PublisherTotal::default() };
        let told = |settings: &[(&str, &str)], processes| {
            let workload = Workload::of(settings.iter().copied()).unwrap();
            let parts = deal_flow(&workload, here(), Layout::Sides { processes });
            let totals: Vec<PublisherTotal> = (0..workload.publishers).map(total).collect();
            let told = |part: &AgentPlan| {
                let ids = part
                    .concerns(&totals, |total| total.publisher)
                    .iter()
                    .map(|total| total.publisher.to_string())
                    .collect::<Vec<_>>();
                format!("{}: {}", part.name, ids.join(" "))
            };
            parts.iter().map(told).collect::<Vec<_>>()
        };
        let pairs = ["publishers-1: 0 1 2", "publishers-2: 3 4", "subscribers-1: 0 1 2", "subscribers-2: 3 4"];
        assert_eq!(told(&[("pairs", "5")], 2), pairs);
        let all = ["publishers-1: 0 1", "publishers-2: 2", "subscribers-1: 0 1 2", "subscribers-2: 0 1 2"];
        let many = [("pattern", "fan-in"), ("publishers", "3"), ("subscribers", "2")];
        assert_eq!(told(&many, 2), all);
        let tree = ["publishers-1: 0 1", "publishers-2: 2 3", "subscribers-1: 0 1", "subscribers-2: 2 3"];
        assert_eq!(told(&[("pattern", "tree"), ("publishers", "4"), ("subscribers", "2")], 2), tree);
        let ask = told(&[("pattern", "request-reply"), ("pairs", "2")], 2);
        assert_eq!(ask, ["publishers-1: 0", "publishers-2: 1", "subscribers-1: 0", "subscribers-2: 1"]);
    }

    #[test]
    fn a_side_without_a_client_has_no_agent() {
        for layout in [Layout::Sides { processes: 4 }, Layout::Server { connections: 1_000, processes: 4 }] {
            let parts = deal_flow(&Workload { subscribers: 0, ..workload("3") }, here(), layout);
            assert_eq!(parts.len(), 3);
            assert!(parts.iter().all(|part| part.role().sends() && part.clients.len() == 1), "{layout:?}");
        }
    }

    #[test]
    fn a_side_of_several_processes_has_its_clients_spread_over_them() {
        for layout in [Layout::Sides { processes: 4 }, Layout::Server { connections: 1_000, processes: 4 }] {
            for (pairs, agents) in [("1", 1), ("3", 3), ("6", 4), ("10", 4)] {
                let parts = deal_flow(&workload(pairs), here(), layout);
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

    #[test]
    fn isolated_processors_go_first_where_there_are_two_or_more() {
        let pin = |pin: &str| Workload::of([("pairs", "1"), ("pin", pin)]).unwrap();
        let (roles, none) = (pin("roles"), pin("none"));
        let all = [0, 1, 2, 3];
        let pinned = |workload: &Workload, isolated: &[usize]| pinning(workload, &all, isolated);
        assert_eq!(pinned(&roles, &[6, 7]), (vec![6], vec![7]), "and no other");
        assert_eq!(pinned(&roles, &[5, 6, 7]), (vec![5], vec![6, 7]));
        assert_eq!(pinned(&roles, &[7]), (vec![0, 1], vec![2, 3]), "one is not enough for two sides");
        assert_eq!(pinned(&roles, &[]), (vec![0, 1], vec![2, 3]));
        assert_eq!(pinning(&roles, &[3], &[]), (vec![], vec![]), "nothing to share out");
        assert_eq!(pinned(&none, &[6, 7]), (vec![], vec![]), "unasked, the kernel places them");
        let sets = pin("publishers 2, subscribers 3");
        assert_eq!(pinned(&sets, &[6, 7]), (vec![2], vec![3]), "what is asked for by number");
    }

    #[test]
    fn both_ends_of_a_pair_are_on_one_host_where_the_sides_share_their_hosts() {
        let layouts = [Layout::Sides { processes: 2 }, Layout::Server { connections: 1_000, processes: 2 }];
        for (layout, pairs) in layouts.into_iter().flat_map(|layout| ["1", "3", "7", "8"].map(|pairs| (layout, pairs)))
        {
            let parts = deal_flow(&workload(pairs), at(&[1, 2, 3], &[1, 2, 3]), layout);
            let host_of = |role: Role, id: u32| {
                let plays = |part: &&AgentPlan| part.clients.iter().any(|c| (c.role, c.id) == (role, id));
                parts.iter().find(plays).unwrap().host
            };
            for id in 0..pairs.parse().unwrap() {
                assert_eq!(host_of(Role::Publisher, id), host_of(Role::Subscriber, id), "{layout:?} {pairs}: {id}");
            }
            assert_eq!(streams_between(&parts).len(), 0, "{layout:?} {pairs}");
            let mut names: Vec<&str> = parts.iter().map(|part| part.name.as_str()).collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), parts.len(), "{names:?}");
        }
    }

    #[test]
    fn clients_bind_at_their_own_hosts_address() {
        let apart = Workload { transport: Some(Transport::Tcp), ..workload("4") };
        let between = |sending: &[usize], hearing: &[usize], layout| {
            streams_between(&deal_flow(&apart, at(sending, hearing), layout)).into_iter().collect::<Vec<_>>()
        };
        let server = Layout::Server { connections: 1_000, processes: 2 };
        assert_eq!(between(&[0, 1], &[2, 3], server), [(0, 2), (1, 3)], "the first pairs, and the last");
        assert_eq!(between(&[1, 2], &[3], Layout::Sides { processes: 1 }), [(1, 3), (2, 3)]);
        let parts = deal_flow(&apart, at(&[1, 2], &[3]), Layout::Sides { processes: 1 });
        let placed = |part: &AgentPlan| {
            let binds = part.clients.iter().map(|client| client.bind.clone().unwrap_or_default()).collect::<Vec<_>>();
            (part.name.clone(), part.host, binds.join(" "))
        };
        assert_eq!(
            parts.iter().map(placed).collect::<Vec<_>>(),
            [
                ("publishers-1".to_owned(), 1, "tcp://10.0.0.1:0 tcp://10.0.0.1:0".to_owned()),
                ("publishers-2".to_owned(), 2, "tcp://10.0.0.2:0 tcp://10.0.0.2:0".to_owned()),
                ("subscribers".to_owned(), 3, "   ".to_owned()),
            ]
        );
    }
}
