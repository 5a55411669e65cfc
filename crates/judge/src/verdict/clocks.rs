//! Clocks of different hosts: a latency from one to another is only as good as
//! what is known of them.

use super::found::{Found, words};
use pubmark_model::host::LOCAL;
use pubmark_model::record::{AgentShare, FigureGroup, HostShare, RunRecord};
use pubmark_model::units::Ns;

/// A latency counts where the clocks are at most this share of it apart.
const SHARE: f64 = 0.1;

/// Latencies that begin on one host and end on another, whose clocks may be too
/// far apart for them.
pub fn apart(record: &RunRecord) -> Option<Found> {
    // There and back is measured on one clock.
    if record.workload.pattern.round_trip() {
        return None;
    }
    let p50 = record.times.latency.as_ref()?.p50;
    let hosts = |sends: bool| {
        let plays = move |agent: &&AgentShare| agent.roles.iter().any(|role| role.sends() == sends);
        record.agents.iter().filter(plays).map(|agent| agent.host.as_str())
    };
    let pairs = hosts(true).flat_map(|from| hosts(false).map(move |to| (from, to)));
    let (error, from, to) =
        pairs.filter(|(from, to)| from != to).map(|(from, to)| (error(record, from, to), from, to)).max()?;
    (error as f64 > SHARE * p50 as f64).then(|| {
        let evidence = format!(
            "messages go from host {} to host {}, whose clocks may be {} apart: half of the latencies are below {}",
            named(from),
            named(to),
            words(error),
            words(p50)
        );
        Found::of(FigureGroup::LATENCY, evidence)
    })
}

/// A host by the name that people know: the local one has none in a record.
fn named(host: &str) -> &str {
    if host.is_empty() { LOCAL } else { host }
}

/// How far apart the clocks of two hosts may be, ns.
fn error(record: &RunRecord, from: &str, to: &str) -> Ns {
    let compared = record.clocks.iter().find(|pair| (pair.from.as_str(), pair.to.as_str()) == (from, to));
    if let Some(pair) = compared {
        return pair.bound_ns;
    }
    let of = |name: &str| {
        let host = record.hosts.iter().find(|host: &&HostShare| host.name == name);
        host.map(|host| host.clock).unwrap_or_default()
    };
    let (from, to) = (of(from), of(to));
    (from.offset_ns - to.offset_ns).unsigned_abs() + from.bound_ns + to.bound_ns
}
