//! A machine that takes part in a run.

use crate::protocol::{AgentResult, Command, Event};
use crate::secret::{HIDDEN, Secrets};
use crate::units::Ns;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;

/// Name of the coordinator's machine, the default host.
pub const LOCAL: &str = "local";

/// Its address if all of a run is on it.
pub const LOOPBACK: &str = "127.0.0.1";

/// A machine, and its connection.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct HostSpec {
    /// Its name.
    pub name: String,
    /// The command that connects its standard streams to that machine, followed by the command to
    /// run there: `["ssh", "b1"]`. Empty: run on this machine.
    pub reach: Vec<String>,
    /// Its address on the measured network.
    pub address: String,
    /// Limit of its sending bandwidth on the measured network, bytes a second; `None` for no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bandwidth_bytes_per_s: Option<u64>,
    /// Incoming packets that its network loses, per million; `None` for no change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss_per_million: Option<u64>,
    /// Processors that a run may use there, in thousandths of one; `None` for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_thousandths: Option<u64>,
    /// Memory that a run may use there, bytes; `None` for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
}

impl Default for HostSpec {
    /// This machine, reached by its loopback address.
    fn default() -> HostSpec {
        HostSpec {
            name: LOCAL.into(),
            reach: Vec::new(),
            address: LOOPBACK.into(),
            bandwidth_bytes_per_s: None,
            loss_per_million: None,
            cpu_thousandths: None,
            memory_bytes: None,
        }
    }
}

impl HostSpec {
    /// Returns the part of `reach` that may be shown and recorded: its program. The arguments may
    /// hold a password, as with `sshpass -p`.
    pub fn shown_reach(&self) -> Vec<&str> {
        let Some(first) = self.reach.first() else { return Vec::new() };
        // The whole command may be one word.
        let program = first.split_whitespace().next().unwrap_or_default();
        let hidden = (self.reach.len() > 1 || program != first).then_some(HIDDEN);
        [program].into_iter().chain(hidden).collect()
    }

    /// Returns the secrets in `reach`, which no text from there may repeat.
    pub fn secrets(&self) -> Secrets {
        Secrets::of_command(&self.reach)
    }
}

/// The host of each part of a run. Default: this machine for all parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Host of the server.
    pub server: HostSpec,
    /// Hosts of the other members of a cluster, which come in turn after the server's.
    pub other_members: Vec<HostSpec>,
    /// Hosts of publishers and requesters, one or more.
    pub publishers: Vec<HostSpec>,
    /// Hosts of subscribers and repliers, one or more.
    pub subscribers: Vec<HostSpec>,
}

impl Default for Placement {
    fn default() -> Placement {
        let here = HostSpec::default();
        Placement {
            server: here.clone(),
            other_members: Vec::new(),
            publishers: vec![here.clone()],
            subscribers: vec![here],
        }
    }
}

impl Placement {
    /// Returns the placement with the server on this host.
    #[must_use]
    pub fn with_server(self, server: HostSpec) -> Placement {
        Placement { server, other_members: Vec::new(), ..self }
    }

    /// Returns its hosts, each once.
    pub fn hosts(&self) -> Vec<&HostSpec> {
        let mut known = HashSet::new();
        let all = self.of_members().chain(&self.publishers).chain(&self.subscribers);
        all.filter(|host| known.insert(*host)).collect()
    }

    /// Returns the hosts of the server's members: the first, and so on, and then from the first again.
    pub fn of_members(&self) -> impl Iterator<Item = &HostSpec> {
        [&self.server].into_iter().chain(&self.other_members)
    }

    /// True if every member of the server is on this machine.
    pub fn serves_here(&self) -> bool {
        self.of_members().all(|host| host.reach.is_empty())
    }

    /// True if both sides of clients are on one host.
    pub fn on_one(&self) -> bool {
        let first = &self.publishers[0];
        self.publishers.iter().chain(&self.subscribers).all(|host| host == first)
    }

    /// True if all parts are on this machine.
    pub fn local(&self) -> bool {
        self.hosts().iter().all(|host| host.reach.is_empty())
    }
}

/// Offset of a host's clock from the coordinator's, with its bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockOffset {
    /// The host's clock less the coordinator's, ns.
    pub offset_ns: i64,
    /// Largest error of the offset, ns.
    pub bound_ns: Ns,
}

impl ClockOffset {
    /// Computes the offset from an exchange: the request sent at `asked`, the reply's instant
    /// `theirs`, and its arrival at `heard`. However the round trip divides into its two ways, the
    /// error is at most half of it.
    pub fn of_exchange(asked: Ns, theirs: Ns, heard: Ns) -> ClockOffset {
        let half = heard.saturating_sub(asked).div_ceil(2);
        let signed = |at: Ns| i64::try_from(at).unwrap_or(i64::MAX);
        ClockOffset { offset_ns: signed(theirs).saturating_sub(signed(asked.saturating_add(half))), bound_ns: half }
    }

    /// Converts an instant of the coordinator's clock to the host's.
    pub fn theirs(&self, ours: Ns) -> Ns {
        ours.saturating_add_signed(self.offset_ns)
    }

    /// Converts an instant of the host's clock to the coordinator's.
    pub fn ours(&self, theirs: Ns) -> Ns {
        theirs.saturating_add_signed(self.offset_ns.saturating_neg())
    }

    /// Converts a command for an agent on the host: its instants become those of the host's clock.
    pub fn outward(&self, command: &Command) -> Command {
        let mut command = command.clone();
        match &mut command {
            Command::Start { at_ns: instant } | Command::Drain { deadline_ns: instant, .. } => {
                *instant = self.theirs(*instant);
            }
            Command::Hello { .. }
            | Command::Prepare(_)
            | Command::Crash {}
            | Command::Cut { .. }
            | Command::Stop {}
            | Command::Exit {} => {}
        }
        command
    }

    /// Converts an event of an agent on the host: its instants become those of the coordinator's
    /// clock.
    pub fn inward(&self, event: &mut Event) {
        match event {
            Event::Hello(hello) => hello.clock_ns = self.ours(hello.clock_ns),
            Event::Result(result) => self.result(result),
            Event::Bound { .. }
            | Event::Ready {}
            | Event::Progress(_)
            | Event::Sent { .. }
            | Event::Drained {}
            | Event::Error { .. } => {}
        }
    }

    fn result(&self, result: &mut AgentResult) {
        let flows = result.flows.iter_mut();
        let instants = flows.flat_map(|flow| {
            flow.first_sent_ns.iter_mut().chain(&mut flow.last_sent_ns).chain(&mut flow.last_arrival_ns)
        });
        let connected = result.connections.iter_mut().flat_map(|all| [&mut all.first_ns, &mut all.last_ns]);
        let readings = result.usage.course.iter_mut().map(|reading| &mut reading.at_ns);
        // 0 means that there is no instant.
        instants.chain(connected.filter(|at| **at > 0)).chain(readings).for_each(|at| *at = self.ours(*at));
    }
}

/// A measurement of a host's clock at an instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockReading {
    /// The instant, on that host's own clock, ns.
    #[serde(default)]
    pub at_ns: Ns,
    /// Offset of the other clock from it.
    #[serde(flatten)]
    pub offset: ClockOffset,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{Connections, FlowResult};

    #[test]
    fn an_exchange_bounds_the_offset_by_half_of_its_round_trip() {
        // The host's clock is 1,000 ahead; the way there took 10, the way back 30.
        let offset = ClockOffset::of_exchange(100, 1_110, 140);
        assert_eq!(offset, ClockOffset { offset_ns: 990, bound_ns: 20 });
        assert!((offset.offset_ns - 1_000).unsigned_abs() <= offset.bound_ns);
        assert_eq!((offset.theirs(50), offset.ours(1_040)), (1_040, 50));
        let behind = ClockOffset::of_exchange(1_000, 10, 1_000);
        assert_eq!((behind.theirs(1_000), behind.ours(10)), (10, 1_000));
    }

    /// Any clock value from a host is accepted.
    #[test]
    fn clocks_at_their_bounds_are_compared() {
        let most = u64::MAX;
        assert_eq!(ClockOffset::of_exchange(0, most, 0), ClockOffset { offset_ns: i64::MAX, bound_ns: 0 });
        assert_eq!(ClockOffset::of_exchange(most, 0, most), ClockOffset { offset_ns: -i64::MAX, bound_ns: 0 });
        assert_eq!(ClockOffset::of_exchange(0, 0, most).bound_ns, most / 2 + 1);
        for offset_ns in [i64::MIN, i64::MAX] {
            let offset = ClockOffset { offset_ns, bound_ns: most };
            assert!([0, most].iter().all(|at| matches!(offset.ours(*at), 0..) && matches!(offset.theirs(*at), 0..)));
        }
    }

    #[test]
    fn every_instant_crosses() {
        let offset = ClockOffset { offset_ns: 500, bound_ns: 1 };
        assert_eq!(offset.outward(&Command::Start { at_ns: 7 }), Command::Start { at_ns: 507 });
        let drain = |deadline_ns| Command::Drain { publishers: Vec::new(), ends: Vec::new(), deadline_ns };
        assert_eq!(offset.outward(&drain(7)), drain(507));
        let connections = |first_ns, last_ns| Some(Connections { first_ns, last_ns, ..Connections::default() });
        let result = |first: Ns, last: Ns, connections| {
            let (first_sent_ns, last_arrival_ns) = (Some(first), Some(last));
            Event::Result(Box::new(AgentResult {
                flows: vec![FlowResult { first_sent_ns, last_arrival_ns, ..FlowResult::default() }],
                connections,
                ..AgentResult::default()
            }))
        };
        let mut event = result(600, 700, connections(0, 800));
        offset.inward(&mut event);
        assert_eq!(event, result(100, 200, connections(0, 300)));
    }
}
