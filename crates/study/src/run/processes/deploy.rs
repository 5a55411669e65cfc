//! The start of a run's server: its members, on one host or on several.

use super::Processes;
use crate::context::{RunContext, RunError};
use crate::live::News;
use crate::run::faults::PlacedMember;
use crate::run::login;
use crate::servers::ServerAtHand;
use pubmark_host::deployment::{DeployPlan, MemberPlan, MemberSeat};
use pubmark_host::install::NATIVE;
use pubmark_host::lanes::in_lanes;
use pubmark_host::reach::Host;
use pubmark_model::cell::Cell;
use pubmark_model::cluster::members_of;
use pubmark_model::options::OptionValues;
use pubmark_model::plan::Place;
use pubmark_model::server::ServerEndpoints;
use pubmark_model::system::System;
use std::collections::BTreeMap;

/// Name of the only member of a server; several have a number behind it.
const SERVER: &str = "server";

impl Processes<'_> {
    /// Ensures that there is a server, if the system is one.
    pub(super) fn deploy(
        &mut self,
        cell: &Cell,
        system: &System,
        place: Place,
        context: &mut RunContext<'_>,
    ) -> Result<(), RunError> {
        if !system.broker() {
            return Ok(());
        }
        if let Some(endpoint) = cell.options.text("endpoint") {
            self.hosts[self.server].attach(endpoint, cell.watch.as_ref().map(|watch| &watch.what))?;
            self.endpoints = Some(ServerEndpoints::one(endpoint));
            return Ok(());
        }
        let names = member_names(members_of(&cell.options)).into_iter().zip(self.of_members.iter().cycle());
        self.members = names.map(|(name, host)| PlacedMember { name, host: *host }).collect();
        let host = &mut self.hosts[self.server];
        if let Some(ServerAtHand { server, endpoints, served, position, .. }) = context.servers.take() {
            host.adopt(server);
            (self.endpoints, self.served) = (Some(endpoints), (served, position));
            host.server_watch().into_iter().for_each(|watch| (context.news)(News::Server(watch)));
            return Ok(());
        }
        self.served = (0, place.position);
        let login = login::of(cell);
        let everywhere = self.seats_of_members(system)?;
        let mut plans: Vec<(&mut Host<'_>, DeployPlan)> = Vec::new();
        for (number, host) in self.hosts.iter_mut().enumerate().filter(|(host, _)| self.of_members.contains(host)) {
            let here = (1..).zip(&self.members).filter(|(_, member)| member.host == number);
            let plan = |(number, member): (u32, &PlacedMember)| MemberPlan {
                number,
                name: member.name.clone(),
                address: host.spec.address.clone(),
                log: format!("run-{}-{}.log", place.position, member.name),
            };
            let plan = DeployPlan {
                members: here.map(plan).collect(),
                system: host.bring(system)?,
                deployment: cell.options.text("deployment").unwrap_or(NATIVE).to_owned(),
                limits: cell.limits.on(&host.spec),
                durable: cell.workload.durable,
                own_disk: cell.faults.needs_disk().then_some(cell.power),
                own_networks: cell.faults.cuts_members(),
                tls: cell.workload.tls,
                processors: cell.workload.pin.of_server().to_vec(),
                options: cell.options.clone(),
                login: login.clone(),
                everywhere: everywhere.clone(),
            };
            plans.push((host, plan));
        }
        // Members wait for each other.
        let started = in_lanes(plans, |(host, plan)| host.deploy(plan));
        let endpoints = started.into_iter().collect::<Result<Vec<_>, _>>()?;
        let mut hosts = self.of_members.clone();
        hosts.sort_unstable();
        let endpoints = together(&self.members, hosts.into_iter().zip(endpoints).collect());
        self.endpoints = endpoints.map(|all| all.map(|endpoint| login::put_into(endpoint, login.as_ref())));
        let watch = self.hosts[self.server].server_watch();
        watch.into_iter().for_each(|watch| (context.news)(News::Server(watch)));
        Ok(())
    }

    /// Returns addresses and ports of all members, by number, if they are on several hosts; otherwise nothing, because
    /// their host knows.
    fn seats_of_members(&mut self, system: &System) -> Result<Vec<MemberSeat>, RunError> {
        if self.of_members.len() == 1 {
            return Ok(Vec::new());
        }
        let mut seats: Vec<Option<MemberSeat>> = vec![None; self.members.len()];
        for host in self.of_members.clone() {
            let here: Vec<usize> = (0..seats.len()).filter(|member| self.members[*member].host == host).collect();
            let host = &mut self.hosts[host];
            let file = host.bring(system)?;
            for (member, ports) in here.iter().zip(host.reserve_ports(file, here.len() as u32)?) {
                seats[*member] = Some(MemberSeat { address: host.spec.address.clone(), ports });
            }
        }
        Ok(seats.into_iter().flatten().collect())
    }
}

/// Returns the names of a server's members, and so of their folders and logs.
fn member_names(members: u32) -> Vec<String> {
    match members {
        1 => vec![SERVER.to_owned()],
        members => (1..=members).map(|number| format!("{SERVER}-{number}")).collect(),
    }
}

/// Joins the endpoints that hosts tell for their members, in the order of the members' numbers.
fn together(members: &[PlacedMember], mut of_hosts: BTreeMap<usize, ServerEndpoints>) -> Option<ServerEndpoints> {
    if of_hosts.len() == 1 {
        return of_hosts.into_values().next();
    }
    let mut all = of_hosts.get(&members.first()?.host)?.clone();
    (all.members, all.discovery) = (Vec::new(), Vec::new());
    for member in members {
        let of_host = of_hosts.get_mut(&member.host)?;
        // A host with one member tells its endpoint as that of all clients.
        let own = if of_host.members.is_empty() { of_host.clients.clone() } else { of_host.members.remove(0) };
        all.members.push(own);
        all.discovery.extend((!of_host.discovery.is_empty()).then(|| of_host.discovery.remove(0)));
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_of_members_on_several_hosts_are_in_the_order_of_their_numbers() {
        let members: Vec<PlacedMember> = [("server-1", 2), ("server-2", 0), ("server-3", 2)]
            .map(|(name, host)| PlacedMember { name: name.into(), host })
            .into();
        let two = ServerEndpoints {
            members: vec!["a".into(), "c".into()],
            discovery: vec!["da".into(), "dc".into()],
            ..ServerEndpoints::one("a")
        };
        let one = ServerEndpoints { discovery: vec!["db".into()], ..ServerEndpoints::one("b") };
        let all = together(&members, [(0, one.clone()), (2, two)].into_iter().collect()).unwrap();
        assert_eq!(
            (all.clients.as_str(), all.members, all.discovery),
            ("a", vec!["a".to_owned(), "b".into(), "c".into()], vec!["da".to_owned(), "db".into(), "dc".into()],)
        );
        let alone = together(&members[1..2], [(0, one.clone())].into_iter().collect());
        assert_eq!(alone, Some(one));
    }
}
