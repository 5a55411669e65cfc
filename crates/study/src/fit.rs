//! Decides which part of a study this machine can measure. The rest is skipped, with the reason that the report shows.

use crate::plan::StudyPlan;
use crate::survey::{HostResources, HostSurvey, tool_of};
use pubmark_host::install;
use pubmark_host::server::attachment;
use pubmark_host::server::{mesh, server_disk};
use pubmark_model::cell::Cell;
use pubmark_model::claim::Condition;
use pubmark_model::cluster::members_of;
use pubmark_model::diagnostic::Diagnostic;
use pubmark_model::endpoint::Endpoint;
use pubmark_model::host::{HostSpec, LOCAL};
use pubmark_model::link::Side;
use pubmark_model::options::OptionValues;
use pubmark_model::study::Skip;
use pubmark_model::system::System;
use pubmark_model::units::format_size;
use pubmark_model::workload::Transport;

/// Files that a server opens beside its connections: jars, logs, databases.
const SERVER_FILES: usize = 300;

/// Axes that determine the number of connections and their limits.
const SIZES: [&str; 8] = ["part", "pattern", "pairs", "publishers", "subscribers", "cpus", "memory", "placement"];

/// Axes that determine whether the two sides are on different hosts, and how they connect.
const PLACES: [&str; 5] = ["part", "system", "transport", "pattern", "placement"];

/// Axes that determine whether and where there is a link.
const LINK: [&str; 10] =
    ["part", "system", "fault", "link", "mttf", "mttr", "link_delay", "link_jitter", "link_bandwidth", "placement"];

/// Axes that determine the faults of a server.
const FAULT: [&str; 4] = ["part", "system", "fault", "power"];

/// Returns why a system cannot be used here, or `None` if it can. The caller supplies it.
pub type Missing<'a> = &'a dyn Fn(&System, &Cell) -> Option<String>;

/// Skips the cells that cannot be measured here. Returns the reasons that are new.
///
/// # Errors
/// If no cell is left; the reasons are returned nevertheless.
pub fn leave_out(
    plan: &mut StudyPlan,
    missing: Missing<'_>,
    survey: &HostSurvey,
) -> (Vec<String>, Result<(), Diagnostic>) {
    let mut found: Vec<Skip> = Vec::new();
    for cell in plan.cells().iter().filter(|cell| cell.skipped.is_none()) {
        let system = &*cell.system;
        let (axes, why): (&[&str], String) = if let Some(why) = missing(system, cell) {
            (&["system"], why)
        } else if let Some(why) =
            Some(cell).filter(|it| it.placement.local()).and_then(|_| survey.greetings.ended(system))
        {
            (&["system"], why)
        } else if let Some(why) = survey.missing(cell) {
            (&PLACES, why)
        } else if let Some(why) = no_proxy(cell, survey) {
            (&LINK, format!("its link needs a proxy: {why}"))
        } else if let Some(why) = no_disk(cell).or_else(|| no_member_links(cell)) {
            (&FAULT, why)
        } else if let Some(why) = apart(system, cell) {
            (&PLACES, why)
        } else if let Some(why) = too_large(system, cell, survey) {
            (&SIZES, why)
        } else {
            continue;
        };
        let named = cell.axes.iter().filter(|(name, _)| axes.contains(&name.as_str()));
        let conditions = named.map(|(name, value)| (name.clone(), Condition::OneOf(vec![value.clone()]))).collect();
        let skip = Skip { conditions, why };
        if !found.contains(&skip) {
            found.push(skip);
        }
    }
    let words = found.iter().map(|skip| skip.why.clone()).collect();
    (words, plan.skip(found))
}

/// Returns why there is no proxy for a cell's link on its server's host.
fn no_proxy(cell: &Cell, survey: &HostSurvey) -> Option<String> {
    match cell.placement.server.reach.is_empty() {
        true => tool_of(cell).and_then(|tool| install::missing_tool(tool)),
        // Another machine's programs are known from the survey only.
        false => survey.missing_link(cell),
    }
}

/// Returns why a cell's server cannot have a disk of its own here, whose power is cut, or which is filled.
fn no_disk(cell: &Cell) -> Option<String> {
    let why = Some(cell).filter(|cell| cell.faults.needs_disk()).and_then(|_| server_disk::missing(cell.power))?;
    let what = if cell.faults.cuts_power() {
        "power of its server cannot be cut"
    } else {
        "disk of its server cannot be filled"
    };
    Some(format!("the {what}: {why}"))
}

/// Returns why links between members of a cell's server cannot be cut here.
fn no_member_links(cell: &Cell) -> Option<String> {
    let why = Some(cell).filter(|cell| cell.faults.cuts_members()).and_then(|_| mesh::missing())?;
    Some(format!("links between members of its server cannot be cut: {why}"))
}

/// Returns why the two sides of a library cannot be on different hosts.
fn apart(system: &System, cell: &Cell) -> Option<String> {
    let transport = cell.workload.transport.filter(|_| !system.broker())?;
    let stays = matches!(transport, Transport::Inproc | Transport::Ipc) && !cell.placement.on_one();
    stays.then(|| format!("{}: {transport} stays on one host, and the two sides are on different ones", system.name))
}

/// Returns why hosts are too small for a cell with a server: the server's and the clients'.
fn too_large(system: &System, cell: &Cell, survey: &HostSurvey) -> Option<String> {
    if !system.broker() {
        return None;
    }
    let started = cell.options.text("endpoint").is_none();
    let mut hosts = cell.placement.of_members().filter(|_| started).filter_map(|host| survey.room(host));
    let there = cell.placement.of_members().count() as u64;
    // The first hosts have the most members.
    let members = u64::from(members_of(&cell.options)).div_ceil(there);
    let server = hosts.find_map(|room| too_small_for_server(cell, members, &room));
    server.or_else(|| too_few_ports(cell, survey))
}

/// Returns why a host is too small for so many members of the server that are started there.
fn too_small_for_server(cell: &Cell, members: u64, room: &HostResources) -> Option<String> {
    let HostResources { whose, files, cpus, memory_bytes, .. } = room;
    let (publishers, subscribers) = (cell.workload.publishers as usize, cell.workload.subscribers as usize);
    let connections = publishers + subscribers;
    // The proxy has two connections for each client.
    let linked = linked(cell);
    for (count, needed, what) in [
        (linked, 2 * linked + SERVER_FILES, "connections over a link"),
        (connections, connections + SERVER_FILES, "connections to one server"),
    ] {
        if count > 0 && needed > *files {
            return Some(format!(
                "{count} {what} need {needed} open files, and a process on {whose} may have {files}: raise the limit (ulimit -Hn)"
            ));
        }
    }
    if let Some(asked) = cell.limits.cpus.filter(|asked| asked > cpus) {
        return Some(format!("{asked} processors for the server are more than the {cpus} of {whose}"));
    }
    let (asked, there) = (cell.limits.memory_bytes?.saturating_mul(members), (*memory_bytes)?);
    (asked > there).then(|| {
        let (asked, there) = (format_size(asked), format_size(there));
        format!("{asked} of memory for the server are more than the {there} of {whose}")
    })
}

/// Returns the number of client connections that go over a cell's link.
fn linked(cell: &Cell) -> usize {
    let (publishers, subscribers) = (cell.workload.publishers as usize, cell.workload.subscribers as usize);
    cell.link.map_or(0, |link| match link.side {
        Side::Publishers => publishers,
        Side::Subscribers => subscribers,
        Side::Both => publishers + subscribers,
    })
}

/// Returns why clients, or the proxy of a link, cannot all connect from their hosts to one address.
fn too_few_ports(cell: &Cell, survey: &HostSurvey) -> Option<String> {
    let placement = &cell.placement;
    let sides =
        [(&placement.publishers, cell.workload.publishers), (&placement.subscribers, cell.workload.subscribers)];
    let of_clients = placement.hosts().into_iter().find_map(|host| {
        let HostResources { whose, ports, .. } = survey.room(host)?;
        let on = |(hosts, clients): &(&Vec<HostSpec>, u32)| match hosts.contains(host) {
            true => (*clients as usize).div_ceil(hosts.len()),
            false => 0,
        };
        let clients: usize = sides.iter().map(on).sum();
        if clients <= ports || clients <= ports.saturating_mul(addresses(cell, host)?) {
            return None;
        }
        let out = match host.name == LOCAL {
            true => format!("name more addresses (options.{}.sources)", cell.system.name),
            false => "name more hosts".into(),
        };
        Some(format!(
            "{clients} clients on {whose} need more than the {ports} ports that an address has there (net.ipv4.ip_local_port_range): {out}"
        ))
    });
    of_clients.or_else(|| {
        let (linked, HostResources { whose, ports, .. }) = (linked(cell), survey.room(&placement.server)?);
        (linked > ports).then(|| {
            format!(
                "the proxy of a link on {whose} cannot pass on {linked} connections: it has {ports} ports there (net.ipv4.ip_local_port_range)"
            )
        })
    })
}

/// Returns the number of addresses from which the clients of a host connect; `None` if each client gets as many
/// addresses of this machine as needed.
fn addresses(cell: &Cell, host: &HostSpec) -> Option<usize> {
    // Addresses of another host are unknown here.
    if host.name != LOCAL {
        return Some(1);
    }
    if let Some(given) = cell.options.text("sources") {
        return Some(given.split(',').count());
    }
    let endpoint = cell.options.text("endpoint")?;
    let is_here = Endpoint::parse(endpoint).is_ok_and(|endpoint| attachment::here(&endpoint));
    (!is_here).then_some(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry;
    use pubmark_host::lines::Facts;
    use pubmark_host::machine;
    use pubmark_model::study::{ReadOptions, Study};

    fn plan(text: &str) -> StudyPlan {
        let text = format!("title = \"t\"\n[axes]\n{text}");
        let study = Study::parse("t", &text, &registry::built_in, &ReadOptions::default());
        StudyPlan::new(study.unwrap_or_else(|errors| panic!("{errors}"))).unwrap()
    }

    #[test]
    fn what_is_too_large_is_left_out_and_the_rest_stays() {
        let most = machine::open_files();
        let mut plan = plan(&format!("system = [\"mosquitto\", \"redis\"]\npairs = [10, {most}]\n"));
        let words = leave_out(&mut plan, &|_, _| None, &HostSurvey::default()).0;
        assert_eq!(words.len(), 1, "{words:?}");
        assert!(words[0].contains("ulimit"), "{words:?}");
        let cells = plan.cells();
        let left: Vec<u32> =
            cells.iter().filter(|cell| cell.skipped.is_none()).map(|c| c.workload.publishers).collect();
        assert_eq!(left, [10, 10]);
    }

    /// A process needs files beside those of its connections.
    #[test]
    fn too_few_files_are_told_with_how_many_are_needed() {
        let words = |files: usize, more: &str| {
            let mut plan = plan(&format!("system = \"mosquitto\"\npairs = 2\n{more}"));
            let facts = Facts { ports: 1_000, files, cpus: vec![0], ..Facts::default() };
            leave_out(&mut plan, &|_, _| None, &HostSurvey::of_facts(vec![(HostSpec::default(), facts)])).0
        };
        let said = |count: usize, what: &str, needed: usize, files: usize| {
            let whose = "this machine";
            format!(
                "{count} {what} need {needed} open files, and a process on {whose} may have {files}: raise the limit (ulimit -Hn)"
            )
        };
        let needed = 4 + SERVER_FILES;
        assert_eq!(words(needed, ""), Vec::<String>::new());
        assert_eq!(words(needed - 1, ""), [said(4, "connections to one server", needed, needed - 1)]);
        let linked = 8 + SERVER_FILES;
        assert_eq!(
            words(linked - 1, "link_delay = \"1ms\"\nlink = \"both\"\n"),
            [said(4, "connections over a link", linked, linked - 1)]
        );
    }

    #[test]
    fn a_missing_system_is_left_out_once_with_its_reason() {
        let mut plan = plan("system = [\"mosquitto\", \"redis\"]\npairs = [1, 2, 3]\n");
        let missing = |system: &System, _: &Cell| (system.name == "redis").then(|| "not installed".to_owned());
        assert_eq!(leave_out(&mut plan, &missing, &HostSurvey::default()).0, ["not installed"]);
        let cells = plan.cells();
        assert!(cells.iter().all(|cell| cell.skipped.is_some() == (cell.system.name == "redis")));
    }

    #[test]
    fn more_processors_than_there_are_cannot_be_given() {
        let mut plan = plan("system = [\"mosquitto\"]\ncpus = [1, 4000]\n");
        let words = leave_out(&mut plan, &|_, _| None, &HostSurvey::default()).0;
        assert!(words.len() == 1 && words[0].contains("4000 processors"), "{words:?}");
    }

    /// Returns the reasons for a server on one host, publishers on the second and subscribers on the third; the hosts
    /// have these numbers of ports and plenty of everything else.
    fn on_three_hosts(more: &str, ports: [usize; 3]) -> Vec<String> {
        let parts = [("s", "server", 1), ("p", "publishers", 2), ("r", "subscribers", 3)];
        let host = |(name, role, last): (&str, &str, u8)| {
            format!("[hosts.{name}]\nreach = [\"true\"]\naddress = \"10.0.0.{last}\"\nroles = [\"{role}\"]\n")
        };
        let mut plan = plan(&format!("system = \"mosquitto\"\n{more}\n{}", parts.map(host).concat()));
        let specs: Vec<HostSpec> = plan.cells()[0].placement.hosts().into_iter().cloned().collect();
        let facts = |spec: &HostSpec| {
            let place = parts.iter().position(|(name, ..)| *name == spec.name).unwrap();
            Facts { ports: ports[place], files: 1_000_000, cpus: vec![0], ..Facts::default() }
        };
        let survey = HostSurvey::of_facts(specs.iter().map(|spec| (spec.clone(), facts(spec))).collect());
        leave_out(&mut plan, &|_, _| None, &survey).0
    }

    #[test]
    fn more_clients_than_a_host_has_ports_are_left_out_by_its_name() {
        assert_eq!(on_three_hosts("pairs = 200", [1, 200, 200]), Vec::<String>::new(), "a server needs none");
        for (more, ports, says) in [
            ("pairs = [100, 300]", [1, 299, 300], "300 clients on host p need more than the 299 ports"),
            ("pairs = [100, 300]", [1, 300, 299], "300 clients on host r need more than the 299 ports"),
            // The named addresses belong to this machine.
            ("pairs = 300\n[options.mosquitto]\nsources = \"10.0.0.2,10.0.0.3\"", [1, 299, 300], "name more hosts"),
            (
                "pairs = [100, 300]\nlink_delay = \"1ms\"",
                [299, 300, 300],
                "the proxy of a link on host s cannot pass on 300",
            ),
        ] {
            let words = on_three_hosts(more, ports);
            assert!(words.len() == 1 && words[0].contains(says), "{more}: {words:?}");
        }
    }

    /// Clients of a server on this machine get addresses that have free ports.
    #[test]
    fn ports_of_this_machine_are_counted_where_a_server_is_elsewhere() {
        let most = machine::ports();
        let clients = |more: &str| {
            let mut plan = plan(&format!("system = \"mosquitto\"\npairs = {most}\n[options.mosquitto]\n{more}"));
            let facts = Facts { ports: most, files: 1_000_000, cpus: vec![0], ..Facts::default() };
            let survey = HostSurvey::of_facts(vec![(HostSpec::default(), facts)]);
            leave_out(&mut plan, &|_, _| None, &survey).0
        };
        let elsewhere = "endpoint = \"mqtt://192.0.2.1:1883\"\n";
        assert_eq!(clients(""), Vec::<String>::new());
        assert_eq!(clients("endpoint = \"mqtt://127.0.0.1:1883\"\n"), Vec::<String>::new());
        let words = clients(elsewhere);
        assert!(words.len() == 1 && words[0].contains("name more addresses (options.mosquitto.sources)"), "{words:?}");
        assert_eq!(clients(&format!("{elsewhere}sources = \"192.0.2.7, 192.0.2.8\"\n")), Vec::<String>::new());
    }

    #[test]
    fn a_plan_of_which_nothing_is_left_is_none() {
        let mut plan = plan("system = [\"mosquitto\", \"redis\"]\n");
        let (words, left) = leave_out(&mut plan, &|_, _| Some("not here".into()), &HostSurvey::default());
        assert_eq!((words.len(), left.is_err(), plan.extent()), (2, true, (0, 0)));
        assert_eq!(plan.study().skips.len(), 2, "a resumed study has the same cells");
    }
}
