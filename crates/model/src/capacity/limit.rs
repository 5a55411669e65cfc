//! The part that reached its limit first.

use crate::figure::backlog;
use crate::link::Side;
use crate::objective::Objective;
use crate::record::{HostShare, Reason, RunRecord, Usage};
use crate::units::SECOND;
use crate::words::words;

words! {
    /// The part that was at its limit when the objective ceased to hold. Causes come before their
    /// effects.
    CapacityLimit {
        /// The load generator: the system may carry more.
        Generator = "generator",
        /// The server ended, or closed connections.
        Server = "server",
        /// Clients got no connection.
        Connections = "connections",
        /// The server's memory.
        Memory = "memory",
        /// The processors that the server may use, or those of the machine.
        Processors = "processors",
        /// One processor, while others were idle: one of the server's threads is busy.
        Thread = "thread",
        /// The configured bandwidth of a link, or of a host's network.
        Network = "network",
        /// Messages were lost.
        Losses = "losses",
        /// A backlog grew, or messages were not accepted, and no processor is known to be busy.
        Queue = "queue",
        /// Latency, or another figure, failed, and no processor is known to be busy.
        Latency = "latency",
    }
}

/// Share of a window above which throttling by a limit counts as the cause.
const THROTTLED: f64 = 0.05;
/// Share of the processors from which they count as fully used.
const BUSY: f64 = 0.9;
/// Processors that a server with one busy thread uses, if its threads were not sampled.
const ONE_THREAD: std::ops::RangeInclusive<f64> = 0.9..=1.05;
/// A backlog grows if it exceeds this share of the messages due.
pub(super) const GREW: f64 = 0.05;

/// Returns the part that was at its limit in a run that failed the objective, with the evidence.
pub(super) fn of(record: &RunRecord, objective: &Objective) -> (CapacityLimit, String) {
    let gave = |reason: Reason| record.verdict.reasons.iter().find(|finding| finding.reason == reason);
    let by_reason = [
        (Reason::ResourceLimitHit, CapacityLimit::Memory),
        (Reason::ConnectionsMissed, CapacityLimit::Connections),
        (Reason::ServerDied, CapacityLimit::Server),
    ];
    for (reason, limit) in by_reason {
        if let Some(finding) = gave(reason) {
            return (limit, finding.evidence.clone());
        }
    }
    if let Some(found) = record.server.as_ref().and_then(|server| busy(record, server)) {
        return found;
    }
    if let Some(full) = full(record) {
        return (CapacityLimit::Network, full);
    }
    let unmet = objective.unmet(record);
    let lost = unmet.iter().any(|(term, _)| term.about_losses());
    if lost && record.counts.lost > 0 {
        let counts = &record.counts;
        return (CapacityLimit::Losses, format!("{} of {} messages were lost", counts.lost, counts.expected));
    }
    let idle = record
        .server
        .as_ref()
        .map_or(String::new(), |server| format!("; the server used {}", share(server.cpu_cores, processors(record))));
    let grew = backlog(record);
    if grew > GREW {
        return (CapacityLimit::Queue, format!("a backlog grew by {:.0} % of what was due{idle}", grew * 100.0));
    }
    if let Some(finding) = gave(Reason::OfferedRateMissed) {
        return (CapacityLimit::Queue, format!("{}{idle}", finding.evidence));
    }
    let what = unmet.first().map_or(String::new(), |(term, value)| format!("{}: it was {value}{idle}", term.text()));
    (CapacityLimit::Latency, what)
}

/// Returns the number of processors that the server may use.
fn processors(record: &RunRecord) -> f64 {
    let applied = record.deployment.as_ref().and_then(|deployment| deployment.applied.cpus);
    applied.unwrap_or(f64::from(record.machine.cores.max(1)))
}

/// Formats `0.97 of its 1 processor`.
fn share(used: f64, may: f64) -> String {
    format!("{used:.2} of its {may} processor{}", if may == 1.0 { "" } else { "s" })
}

/// Returns evidence that the processors were at their limit, if they were.
fn busy(record: &RunRecord, server: &Usage) -> Option<(CapacityLimit, String)> {
    let machine = record.machine;
    let cores = f64::from(machine.cores.max(1));
    let throttled_s = record.deployment.as_ref().map_or(0.0, |deployment| deployment.throttled_s);
    let (used, may) = (server.cpu_cores, processors(record));
    if used >= BUSY * may || throttled_s > THROTTLED * record.window_ns as f64 / 1e9 {
        return Some((CapacityLimit::Processors, format!("the server used {}", share(used, may))));
    }
    let generator = record.generator.as_ref().map_or(0.0, |generator| generator.cpu_cores);
    let others = machine.foreign_cores + machine.kernel_cores + machine.steal * cores;
    let all = used + generator + others;
    if all >= BUSY * cores {
        let evidence = format!(
            "the machine's {cores} processors were busy: the server had {used:.2} of them, the generator {generator:.2}, \
             others {others:.2}"
        );
        return Some((CapacityLimit::Processors, evidence));
    }
    let evidence = match server.busiest_thread_cores {
        Some(busiest) => (busiest >= BUSY).then(|| {
            format!("one thread of the server used {busiest:.2} of a processor while others were idle: it has {used:.2} in all")
        }),
        None => ONE_THREAD
            .contains(&used)
            .then(|| format!("the server used {used:.2} processors while others were idle, as one busy thread does")),
    };
    evidence.map(|evidence| (CapacityLimit::Thread, evidence))
}

/// Returns evidence that a bandwidth was at its limit, if one was: of each connection over a link,
/// or of a host's network. Payloads are counted, unless a host's interface was sampled.
fn full(record: &RunRecord) -> Option<String> {
    let workload = &record.workload;
    let rates = record.rates;
    let words = |what: &str, bytes_per_s: f64, bandwidth: u64| {
        format!("{what} carried {bytes_per_s:.0} bytes a second, of {bandwidth} that it was held to")
    };
    let is_full = |bytes_per_s: f64, bandwidth: u64| bytes_per_s >= BUSY * bandwidth as f64;
    let link = record.link.as_ref().and_then(|link| {
        let bandwidth = link.asked.bandwidth_bytes_per_s?;
        let share = |bytes_per_s: f64, clients: u32| bytes_per_s / f64::from(clients.max(1));
        let received = share(rates.delivered_bytes_per_s, workload.subscribers);
        let sent = share(rates.sent_per_s * workload.mean_payload_bytes(), workload.publishers);
        let most = match link.asked.side {
            Side::Subscribers => received,
            Side::Publishers => sent,
            Side::Both => received.max(sent),
        };
        is_full(most, bandwidth).then(|| words("each connection over the link", most, bandwidth))
    });
    let of_host = |host: &HostShare| {
        let bandwidth = host.bandwidth_bytes_per_s?;
        let interfaces = record.wire.iter().flat_map(|wire| &wire.interfaces).filter(|found| found.host == host.name);
        let counted = interfaces.map(|found| found.sent_bytes).reduce(|sum, bytes| sum + bytes);
        let seconds = record.window_ns as f64 / SECOND as f64;
        let bytes_per_s =
            counted.filter(|_| seconds > 0.0).map_or(rates.delivered_bytes_per_s, |bytes| bytes as f64 / seconds);
        is_full(bytes_per_s, bandwidth).then(|| words(&format!("the network of {}", host.name), bytes_per_s, bandwidth))
    };
    link.or_else(|| record.hosts.iter().find_map(of_host))
}
