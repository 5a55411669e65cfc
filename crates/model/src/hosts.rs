//! The machines that a study may use, and the assignment of the parts of a run to them.

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::document::{Document, Table};
use crate::host::{HostSpec, LOCAL, Placement};
use crate::toml_values::{texts, value};
use crate::units::{
    Ns, SECOND, format_per_million, format_size, format_time, parse_per_million, parse_size, parse_thousandths,
    thousandths,
};
use crate::words::words;
use crate::workload::Workload;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use toml::Value;

words! {
    /// Location of the two ends of a stream.
    Ends {
        /// On one host, so one clock measures them.
        Together = "together",
        /// On different hosts.
        Apart = "apart",
        /// On one host, with the server on another.
        ServerApart = "server-apart",
    }
}

words! {
    /// Roles of a host.
    Duty {
        /// Runs the server.
        Server = "server",
        /// Plays publishers and requesters.
        Publishers = "publishers",
        /// Plays subscribers and repliers.
        Subscribers = "subscribers",
    }
}

/// Longest cut of a host's network: a process that survives everything else there ends within this
/// time.
const CUT_MAX: Ns = 60 * SECOND;

/// A host in the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedHost {
    /// The host.
    pub spec: HostSpec,
    /// Its roles; empty means all.
    pub roles: Vec<Duty>,
    /// True if its network may be cut (`cut link NAME at …`).
    pub may_cut: bool,
}

impl ListedHost {
    fn may(&self, duty: Duty) -> bool {
        self.roles.is_empty() || self.roles.contains(&duty)
    }
}

/// The hosts that a study may use, in their file's order. Default: this machine alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hosts(pub Vec<ListedHost>);

const KEYS: [&str; 8] = ["reach", "address", "roles", "may_cut", "bandwidth", "loss", "cpus", "memory"];

/// Allowed bandwidth limits of a host's network, bytes a second.
const BANDWIDTHS: RangeInclusive<u64> = 1_000..=1_000_000_000_000;

/// Allowed loss of a host's network, in millionths of the incoming packets.
const LOSSES: RangeInclusive<u64> = 1..=500_000;

/// Allowed limits of a host's processors, in thousandths of one.
const CPU_THOUSANDTHS: RangeInclusive<u64> = 10..=4_096_000;

/// Allowed limits of a host's memory, bytes.
const MEMORY_BYTES: RangeInclusive<u64> = 1 << 20..=1 << 50;

impl Hosts {
    /// Parses a file of hosts with a table `[hosts.NAME]` each.
    pub fn parse(file: &str, text: &str) -> Result<Hosts, Diagnostics> {
        let mut errors = Vec::new();
        let document = Document::parse(text, &mut errors);
        let mut hosts = Hosts::default();
        for table in &document.tables {
            match table.name.strip_prefix("hosts.") {
                Some(name) => hosts.read(name, table, &mut errors),
                None if table.entries.is_empty() && ["", "hosts"].contains(&table.name.as_str()) => {}
                None => errors.push(Diagnostic::at(table.at, "a host is a table: [hosts.NAME]")),
            }
        }
        if errors.is_empty() && hosts.0.is_empty() {
            errors.push(Diagnostic::whole("there is no host in it: write a table [hosts.NAME] for each"));
        }
        if errors.is_empty() {
            return Ok(hosts);
        }
        Err(Diagnostics { file: file.into(), text: text.into(), errors })
    }

    /// Reads the table of a host.
    pub(crate) fn read(&mut self, name: &str, table: &Table, errors: &mut Vec<Diagnostic>) {
        let sound = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if name.is_empty() || !name.chars().all(sound) {
            errors
                .push(Diagnostic::at(table.at, format!("`{name}` is not a valid host name: letters, digits, - and _")));
        }
        let unknown = table.entries.iter().filter(|entry| !KEYS.contains(&entry.key.as_str()));
        errors.extend(unknown.map(|entry| entry.unknown("a host", KEYS)));
        let address = table.entries.iter().find(|entry| entry.key == "address").and_then(|entry| entry.one(errors));
        let reach = table.texts("reach");
        match address {
            None if reach.is_empty() => {}
            None => errors.push(
                Diagnostic::at(table.at, format!("host {name} has no address"))
                    .help("address = \"10.0.0.2\": its own, on the network that is measured"),
            ),
            Some(address) if address.text.parse::<IpAddr>().is_err() => {
                errors.push(Diagnostic::at(address.at, format!("`{}` is not an IP address", address.text)));
            }
            Some(_) => {}
        }
        if (name == LOCAL) != reach.is_empty() {
            let help = "reach = [\"ssh\", \"NAME\"]: any command whose standard streams are the other machine's";
            let what = match name {
                LOCAL => format!("`{LOCAL}` is this machine: it is reached without a command"),
                _ => format!("host {name} has no `reach`; this machine is called `{LOCAL}`"),
            };
            errors.push(Diagnostic::at(table.at, what).help(help));
        }
        let here = HostSpec::default();
        let address = address.map_or(here.address, |address| address.text.clone());
        let twin = self.0.iter().find(|host| host.spec.address == address);
        if let Some(twin) = twin {
            errors.push(Diagnostic::at(table.at, format!("{name} and {} have one address", twin.spec.name)));
        }
        let roles = table.words("roles", Duty::parse, errors);
        let may_cut = table.entries.iter().find(|entry| entry.key == "may_cut");
        let may_cut = match may_cut.and_then(|entry| entry.one(errors)) {
            Some(value) if !["true", "false"].contains(&value.text.as_str()) => {
                errors.push(Diagnostic::at(value.at, format!("may_cut: `{}` is neither true nor false", value.text)));
                false
            }
            value => value.is_some_and(|value| value.text == "true"),
        };
        let bandwidth_bytes_per_s = bandwidth(table, errors);
        let loss = |text: &str| parse_per_million(text).filter(|found| LOSSES.contains(found));
        let loss_per_million = limit((table, "loss"), loss, "a percentage from 0.0001% to 50%", errors);
        let cpus = |text: &str| parse_thousandths(text).filter(|found| CPU_THOUSANDTHS.contains(found));
        let memory = |text: &str| parse_size(text).ok().filter(|bytes| MEMORY_BYTES.contains(bytes));
        let cpu_thousandths = limit((table, "cpus"), cpus, "a number of processors from 0.01 to 4096", errors);
        let memory_bytes = limit((table, "memory"), memory, "a size from 1 MiB to 1 PiB", errors);
        let name = name.to_owned();
        let spec =
            HostSpec { name, reach, address, bandwidth_bytes_per_s, loss_per_million, cpu_thousandths, memory_bytes };
        self.0.push(ListedHost { spec, roles, may_cut });
    }

    /// Returns the table of hosts as in their file.
    pub(crate) fn to_toml(&self) -> toml::Table {
        let table = |ListedHost { spec, roles, may_cut }: &ListedHost| {
            let entries = [
                ("address", Some(Value::from(&*spec.address))),
                ("reach", (!spec.reach.is_empty()).then(|| texts(spec.shown_reach()))),
                ("roles", (!roles.is_empty()).then(|| texts(roles.iter().map(|duty| duty.word())))),
                ("bandwidth", spec.bandwidth_bytes_per_s.map(|bytes| format_size(bytes).into())),
                ("loss", spec.loss_per_million.map(|loss| format_per_million(loss).into())),
                ("cpus", spec.cpu_thousandths.map(|cpus| value(&thousandths(cpus)))),
                ("memory", spec.memory_bytes.map(|bytes| format_size(bytes).into())),
                ("may_cut", may_cut.then_some(true.into())),
            ];
            let entries = entries.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
            (spec.name.clone(), Value::Table(entries.collect()))
        };
        self.0.iter().map(table).collect()
    }

    fn that_may(&self, duty: Duty) -> Vec<&HostSpec> {
        self.0.iter().filter(|host| host.may(duty)).map(|host| &host.spec).collect()
    }

    /// Returns a host by its name.
    pub(crate) fn named(&self, name: &str) -> Result<HostSpec, Diagnostic> {
        let listed = self.0.iter().map(|host| &host.spec).find(|spec| spec.name == name).cloned();
        let here = (name == LOCAL && self.0.is_empty()).then(HostSpec::default);
        listed.or(here).ok_or_else(|| {
            Diagnostic::whole(format!("there is no host `{name}`")).help("name it in the file of hosts: --hosts FILE")
        })
    }

    /// Checks that the network of a host may be cut for this long.
    pub(crate) fn can_cut(&self, name: &str, for_ns: Ns, placement: &Placement) -> Result<(), Diagnostic> {
        let said = |why: String, help: &str| Err(Diagnostic::whole(format!("`cut link {name}`: {why}")).help(help));
        let Some(host) = self.0.iter().find(|host| host.spec.name == name) else {
            return said(format!("there is no host `{name}`"), "name it in the file of hosts: --hosts FILE");
        };
        if host.spec.reach.is_empty() {
            return said("it is this machine".into(), "cut another, or a proxy's link: `cut link at … for …`");
        }
        if !host.may_cut {
            let help = "write `may_cut = true` in its table, where nothing else needs that network";
            return said("its table does not allow it".into(), help);
        }
        if !placement.hosts().contains(&&host.spec) {
            return said("it plays no part here".into(), "leave it out with a [[skip]] entry");
        }
        if !host.spec.address.parse::<IpAddr>().is_ok_and(|address| address.is_ipv4()) {
            return said("it has an address of IPv6, which would not come back".into(), "an address of IPv4");
        }
        if for_ns > CUT_MAX {
            return said(format!("longer than {}", format_time(CUT_MAX)), "a shorter one");
        }
        Ok(())
    }

    /// Assigns the parts of a run to hosts. `members` is the number of the server's members, 0 without a server: they
    /// spread over the hosts with the role `server`. Both ends of a stream are on one host if every host of clients may
    /// play both; shared streams then stay on one host.
    pub fn place(&self, members: u32, workload: &Workload, asked: Option<Ends>) -> Result<Placement, Diagnostic> {
        let server = members > 0;
        if self.0.is_empty() {
            return match asked {
                Some(ends @ (Ends::Apart | Ends::ServerApart)) => {
                    Err(Diagnostic::whole(format!("placement: `{ends}` needs two hosts, and none is named"))
                        .help("name them in a file: --hosts FILE"))
                }
                _ => Ok(Placement::default()),
            };
        }
        let none = |duty: Duty| {
            Diagnostic::whole(format!("no host has the role `{duty}`")).help(format!("roles = [\"{duty}\"]"))
        };
        // A host with the role `server` comes before one that may do anything.
        let mut named = self.0.iter().filter(|host| host.roles.contains(&Duty::Server)).map(|host| &host.spec);
        let seat = match named.next().or(self.that_may(Duty::Server).first().copied()) {
            Some(seat) => seat.clone(),
            None if server => return Err(none(Duty::Server)),
            None => self.0[0].spec.clone(),
        };
        let other_members = named.take(members.saturating_sub(1) as usize).cloned().collect();
        // Clients avoid the server's host if there is another host for them.
        let clients = |duty: Duty| {
            let all = self.that_may(duty);
            let others: Vec<&HostSpec> = all.iter().copied().filter(|host| !server || **host != seat).collect();
            let own = self.0.iter().any(|host| host.spec == seat && host.roles.contains(&duty));
            if others.is_empty() || own { all } else { others }
        };
        let (mut publishers, mut subscribers) = (clients(Duty::Publishers), clients(Duty::Subscribers));
        if publishers.is_empty() {
            return Err(none(Duty::Publishers));
        }
        if subscribers.is_empty() {
            return Err(none(Duty::Subscribers));
        }
        match asked.unwrap_or(if publishers == subscribers { Ends::Together } else { Ends::Apart }) {
            ends @ (Ends::Together | Ends::ServerApart) => {
                if ends == Ends::ServerApart && server {
                    publishers.retain(|host| **host != seat);
                    if publishers.is_empty() {
                        return Err(Diagnostic::whole("placement: `server-apart` needs a host beside the server's"));
                    }
                }
                publishers.retain(|host| subscribers.contains(host));
                if !workload.pattern.paired() {
                    publishers.truncate(1);
                }
                if publishers.is_empty() {
                    return Err(Diagnostic::whole("placement: `together` needs a host that may play both sides")
                        .help("roles = [\"publishers\", \"subscribers\"]"));
                }
                subscribers = publishers.clone();
            }
            Ends::Apart => {
                // A host that may play both sides goes to the side with fewer hosts of its own.
                let both: Vec<&HostSpec> =
                    publishers.iter().copied().filter(|host| subscribers.contains(host)).collect();
                publishers.retain(|host| !both.contains(host));
                subscribers.retain(|host| !both.contains(host));
                for host in both {
                    let fewer = if publishers.len() <= subscribers.len() { &mut publishers } else { &mut subscribers };
                    fewer.push(host);
                }
                if publishers.is_empty() || subscribers.is_empty() {
                    return Err(Diagnostic::whole("placement: `apart` needs a host for each side"));
                }
            }
        }
        let all = |hosts: Vec<&HostSpec>| hosts.into_iter().cloned().collect();
        Ok(Placement { server: seat, other_members, publishers: all(publishers), subscribers: all(subscribers) })
    }
}

/// Reads the bandwidth of a host's table.
fn bandwidth(table: &Table, errors: &mut Vec<Diagnostic>) -> Option<u64> {
    let value = table.entries.iter().find(|entry| entry.key == "bandwidth").and_then(|entry| entry.one(errors))?;
    let found = parse_size(&value.text).ok().filter(|bytes| BANDWIDTHS.contains(bytes));
    if found.is_none() {
        let what = format!("bandwidth: `{}` is not a size a second from 1 kB to 1 TB", value.text);
        errors.push(
            Diagnostic::at(value.at, what).help("bandwidth = \"12.5MB\": so many bytes a second, here 100 Mbit/s"),
        );
    }
    found
}

/// Reads a number of a host's table with `read`; `what` describes valid values.
fn limit(
    (table, key): (&Table, &str),
    read: impl Fn(&str) -> Option<u64>,
    what: &str,
    errors: &mut Vec<Diagnostic>,
) -> Option<u64> {
    let value = table.entries.iter().find(|entry| entry.key == key).and_then(|entry| entry.one(errors))?;
    let found = read(&value.text);
    if found.is_none() {
        errors.push(Diagnostic::at(value.at, format!("{key}: `{}` is not {what}", value.text)));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const THREE: &str = "\
[hosts.b]\nreach = [\"ssh\", \"b\"]\naddress = \"10.0.0.1\"\nroles = [\"server\"]\n\
[hosts.c]\nreach = [\"ssh\", \"c\"]\naddress = \"10.0.0.2\"\n\
[hosts.d]\nreach = [\"ssh\", \"d\"]\naddress = \"10.0.0.3\"\n";

    fn hosts(text: &str) -> Hosts {
        Hosts::parse("hosts.toml", text).unwrap_or_else(|errors| panic!("{errors}"))
    }

    /// Formats a placement as `server | publishers | subscribers` by name.
    fn placed(hosts: &Hosts, server: bool, workload: &[(&str, &str)], asked: Option<Ends>) -> String {
        let workload = Workload::of(workload.iter().copied()).unwrap();
        let names = |all: &[HostSpec]| all.iter().map(|host| host.name.as_str()).collect::<Vec<_>>().join(" ");
        match hosts.place(u32::from(server), &workload, asked) {
            Ok(place) => {
                format!("{} | {} | {}", place.server.name, names(&place.publishers), names(&place.subscribers))
            }
            Err(error) => error.message,
        }
    }

    #[test]
    fn both_ends_are_on_one_host_where_hosts_allow_and_nobody_asks_otherwise() {
        let three = hosts(THREE);
        let pairs = [("pairs", "4")];
        assert_eq!(placed(&three, true, &pairs, None), "b | c d | c d");
        assert_eq!(placed(&three, true, &pairs, Some(Ends::Apart)), "b | c | d");
        assert_eq!(placed(&three, true, &pairs, Some(Ends::ServerApart)), "b | c d | c d");
        let shared = [("pattern", "fan-out"), ("subscribers", "3")];
        assert_eq!(placed(&three, true, &shared, None), "b | c | c", "what all hear stays on one host");
        assert_eq!(placed(&three, false, &pairs, None), "b | c d | c d", "a role is a role, with a server or without");
        assert_eq!(placed(&Hosts::default(), true, &pairs, None), "local | local | local");
    }

    #[test]
    fn hosts_without_roles_may_do_anything_and_the_first_has_the_server() {
        let any = hosts(&THREE.replace("roles = [\"server\"]\n", ""));
        let pairs = [("pairs", "4")];
        assert_eq!(placed(&any, true, &pairs, None), "b | c d | c d");
        assert_eq!(placed(&any, false, &pairs, None), "b | b c d | b c d");
        assert_eq!(placed(&any, false, &pairs, Some(Ends::Apart)), "b | b d | c");
    }

    #[test]
    fn members_take_turns_on_the_hosts_that_are_servers() {
        let four = hosts(&format!(
            "{}[hosts.e]\nreach = [\"ssh\", \"e\"]\naddress = \"10.0.0.4\"\nroles = [\"server\"]\n",
            THREE.replace("\"10.0.0.2\"\n", "\"10.0.0.2\"\nroles = [\"server\"]\n")
        ));
        let workload = Workload::of([("pairs", "4")]).unwrap();
        for (members, of_members) in [(0, "b"), (1, "b"), (2, "b c"), (3, "b c e"), (6, "b c e")] {
            let place = four.place(members, &workload, None).unwrap();
            let names: Vec<&str> = place.of_members().map(|host| host.name.as_str()).collect();
            assert_eq!(names.join(" "), of_members, "{members}");
            assert_eq!(place.publishers.iter().map(|host| host.name.as_str()).collect::<Vec<_>>(), ["d"]);
        }
        // Without the role, they stay together.
        let any = hosts(&THREE.replace("roles = [\"server\"]\n", "")).place(3, &workload, None).unwrap();
        assert!(any.other_members.is_empty());
    }

    #[test]
    fn roles_of_one_side_put_the_ends_apart() {
        let sides = hosts(
            &THREE
                .replace("\"10.0.0.2\"\n", "\"10.0.0.2\"\nroles = [\"publishers\"]\n")
                .replace("\"10.0.0.3\"\n", "\"10.0.0.3\"\nroles = [\"subscribers\"]\n"),
        );
        assert_eq!(placed(&sides, true, &[], None), "b | c | d");
        let said = placed(&sides, true, &[], Some(Ends::Together));
        assert!(said.contains("needs a host that may play both sides"), "{said}");
    }

    #[test]
    fn what_cannot_be_placed_says_what_is_missing() {
        let one = hosts("[hosts.local]\naddress = \"127.0.0.1\"\n");
        assert_eq!(placed(&one, true, &[], Some(Ends::Apart)), "placement: `apart` needs a host for each side");
        let clients = hosts("[hosts.local]\nroles = [\"publishers\", \"subscribers\"]\n");
        assert_eq!(placed(&clients, true, &[], None), "no host has the role `server`");
        assert_eq!(placed(&clients, false, &[], None), "local | local | local");
        let server = hosts("[hosts.local]\nroles = [\"server\"]\n");
        assert_eq!(placed(&server, true, &[], None), "no host has the role `publishers`");
        let elsewhere = placed(&one, true, &[], Some(Ends::ServerApart));
        assert_eq!(elsewhere, "placement: `server-apart` needs a host beside the server's");
        let said = placed(&Hosts::default(), true, &[], Some(Ends::Apart));
        assert!(said.contains("needs two hosts"), "{said}");
    }

    #[test]
    fn a_file_of_hosts_is_read_strictly_and_written_as_it_was() {
        let three = hosts(&format!(
            "{THREE}may_cut = true\nbandwidth = \"12.5MB\"\nloss = \"0.25%\"\ncpus = 1.5\nmemory = \"2GB\"\n"
        ));
        let spec = &three.0[2].spec;
        assert_eq!(spec.bandwidth_bytes_per_s, Some(12_500_000));
        assert_eq!(spec.loss_per_million, Some(2_500));
        assert_eq!((spec.cpu_thousandths, spec.memory_bytes), (Some(1_500), Some(2_000_000_000)));
        let again = toml::Table::from_iter([("hosts".to_owned(), three.to_toml().into())]).to_string();
        // All fields except `reach`, which may hold a password.
        let mut kept = three;
        kept.0.iter_mut().for_each(|host| host.spec.reach = vec!["ssh".into(), "***".into()]);
        assert_eq!(hosts(&again), kept, "{again}");
        for (text, said) in [
            ("[hosts.b]\nreach = [\"ssh\", \"b\"]\n", "host b has no address"),
            ("[hosts.b]\naddress = \"10.0.0.1\"\n", "host b has no `reach`"),
            ("[hosts.local]\nreach = [\"ssh\", \"b\"]\naddress = \"10.0.0.1\"\n", "is this machine"),
            ("[hosts.b]\nreach = [\"ssh\"]\naddress = \"b1\"\n", "`b1` is not an IP address"),
            ("[hosts.b]\nreach = [\"ssh\"]\naddress = \"10.0.0.1\"\nrole = \"x\"\n", "unknown key `role`"),
            ("[hosts.b]\nreach = [\"ssh\"]\naddress = \"10.0.0.1\"\nroles = [\"broker\"]\n", "broker"),
            ("[hosts.\"a b\"]\nreach = [\"ssh\"]\naddress = \"10.0.0.1\"\n", "not a valid host name"),
            ("[hosts.local]\nmay_cut = \"x\"\n", "neither true nor false"),
            ("[hosts.local]\nbandwidth = \"100mbit\"\n", "`100mbit` is not a size a second"),
            ("[hosts.local]\nbandwidth = \"10B\"\n", "from 1 kB to 1 TB"),
            ("[hosts.local]\nloss = \"0.01\"\n", "loss: `0.01` is not a percentage"),
            ("[hosts.local]\nloss = \"51%\"\n", "from 0.0001% to 50%"),
            ("[hosts.local]\ncpus = 0\n", "cpus: `0` is not a number of processors"),
            ("[hosts.local]\nmemory = \"much\"\n", "memory: `much` is not a size from 1 MiB"),
            ("[hosts.local]\ndelay = \"10ms\"\n", "unknown key `delay`"),
            ("[b]\naddress = \"10.0.0.1\"\n", "a host is a table"),
            ("", "there is no host"),
        ] {
            let errors = Hosts::parse("hosts.toml", text).expect_err(text).to_string();
            assert!(errors.contains(said), "{text}: {errors}");
        }
        let twins = THREE.replace("10.0.0.3", "10.0.0.2");
        assert!(Hosts::parse("h", &twins).unwrap_err().to_string().contains("d and c have one address"));
    }
}
