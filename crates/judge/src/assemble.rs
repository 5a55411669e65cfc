//! Builds a run record from the agents' results.

mod churn;
mod flow;
mod last_will;
mod losses;
mod merge;

use crate::calibration::Calibration;
use crate::empty_record::blank;
use crate::verdict;
use flow::UnitedFlow;
use merge::{add_counts, merge};
use pubmark_model::cell::Cell;
use pubmark_model::last_will::UNDUE_WILL;
use pubmark_model::plan::Place;
use pubmark_model::protocol::{
    AgentResult, AgentUsage, Connections, FlowResult, OWN_FIGURES_MAX, PackedHistogram, Role,
};
use pubmark_model::record::{
    AgentIdentity, AgentShare, Attached, ClockPair, ConnectionFigures, FaultEvent, HostShare, MachineLoad, Phases,
    Recovery, RunRecord, UnsupportedFigure, Usage, UsageSeries, WireFigures,
};
use pubmark_model::server_reports::{LinkReport, ServerReport};
use pubmark_model::system::System;
use pubmark_model::units::{Ns, SECOND, total};
use pubmark_model::workload::{Rate, Workload};
use pubmark_stats::{Histogram, median_whole};

/// An agent of a run, with its result.
#[derive(Debug)]
pub struct AgentReport {
    /// Name in the run.
    pub name: String,
    /// Host on which it ran; empty for `local`.
    pub host: String,
    /// Number of its flow.
    pub flow: usize,
    /// Identity in its hello.
    pub identity: AgentIdentity,
    /// Roles of its clients.
    pub roles: Vec<Role>,
    /// Result that it handed in.
    pub result: AgentResult,
}

/// Measurements of a run.
pub struct Measured<'a> {
    /// By agent: its result.
    pub results: Vec<AgentReport>,
    /// Start of the window, ns.
    pub from_ns: Ns,
    /// Load of the machine in the window; the worst of several machines.
    pub machine: MachineLoad,
    /// Hosts, if there are others than `local`.
    pub hosts: Vec<HostShare>,
    /// Clocks of the hosts that messages travel between.
    pub clocks: Vec<ClockPair>,
    /// Server, if there was one.
    pub server: Option<ServerReport>,
    /// Link before it, if there was one.
    pub link: Option<LinkReport>,
    /// Faults as they happened.
    pub fault_log: Vec<FaultEvent>,
    /// Usage of server and generator, by time.
    pub used: Option<UsageSeries>,
    /// Instant at which the drain was over, ns; `None` in virtual time.
    pub drained_ns: Option<Ns>,
    /// Time from the first client's opening until every client had received from all its publishers, ns.
    pub discovery_ns: Option<Ns>,
    /// Traffic of network interfaces, if the run uses some.
    pub wire: Option<WireFigures>,
    /// Calibration of this machine, if there is one.
    pub calibration: Option<&'a Calibration>,
    /// Remarks of the coordinator.
    pub remarks: Vec<String>,
}

/// Builds the record of a run that was made.
pub fn assemble(cell: &Cell, system: &System, place: Place, started: String, measured: Measured<'_>) -> RunRecord {
    let mut record = blank(cell, Some(system), place, started);
    let results: Vec<&AgentResult> = measured.results.iter().map(|agent| &agent.result).collect();
    let mut remarks = remarks_of(&measured.results);
    let (first_sent, last_arrival) = window_of_count(&measured.results, measured.from_ns);
    let length = cell.workload.window_ns();
    record.window_ns = length.unwrap_or(last_arrival.saturating_sub(first_sent)).max(1);
    let used = |result: &AgentResult| match length {
        Some(_) => result.usage.clone(),
        None => result.usage.within(first_sent, last_arrival),
    };
    let used: Vec<AgentUsage> = results.iter().map(|result| used(result)).collect();
    // A run that ends by count has no end if nothing arrives, and so no rates.
    let ends = length.is_some() || results.iter().flat_map(|result| &result.flows).any(|flow| flow.arrived > 0);
    let timed_ns = ends.then_some(record.window_ns);
    let flows = cell.flows();
    let mut united: Vec<UnitedFlow> = Vec::new();
    for (index, flow) in flows.iter().enumerate() {
        let own = measured.results.iter().filter(|agent| agent.flow == index);
        let of_flow: Vec<&FlowResult> = own.filter_map(|agent| agent.result.flows.first()).collect();
        united.push(UnitedFlow::of(&flow.workload, timed_ns, &of_flow, &mut remarks));
    }
    let negative: Vec<u64> = united.iter().map(|flow| flow.negative).collect();
    record.flows = united.iter().zip(&flows).map(|(figures, flow)| figures.told(&flow.name)).collect();
    let named = !cell.flows.is_empty();
    if named {
        let own = record.flows.iter_mut().zip(united.iter().zip(&flows));
        own.for_each(|(told, (figures, flow))| told.own = Some(Box::new(figures.own(flow.workload.recorded()))));
    } else {
        let each = results.iter().flat_map(|result| &result.flows).flat_map(|flow| &flow.subscribers);
        record.subscribers = each.take(OWN_FIGURES_MAX as usize).cloned().collect();
        record.subscribers.sort_by_key(|one| one.subscriber);
    }
    UnitedFlow::together(united, &results, &mut remarks).into_record(&mut record);
    record.usage_series = measured.used;
    record.phases = measured.drained_ns.map(|drained_ns| Phases {
        warmup_ns: cell.workload.warmup_ns,
        window_ns: record.window_ns,
        drain_ns: drained_ns.saturating_sub(measured.from_ns.saturating_add(record.window_ns)),
    });
    record.agents = measured
        .results
        .iter()
        .zip(&used)
        .map(|(agent, used)| AgentShare {
            name: agent.name.clone(),
            host: agent.host.clone(),
            flow: if named { flows[agent.flow].name.clone() } else { String::new() },
            agent: Some(agent.identity.clone()),
            roles: agent.roles.clone(),
            loops: agent.result.loops,
            applied: agent.result.applied.clone(),
            usage: usage(&[used]),
            ran_on: used.ran_on.clone(),
            pauses: agent.result.pauses,
            runtime: agent.result.runtime,
            made: agent.result.made.clone(),
            // Nothing can be late in virtual time.
            cannot_tell: if system.driver == "mock" { Vec::new() } else { untold(agent, &flows[agent.flow].workload) },
        })
        .collect();
    record.generator = Some(usage(&used.iter().collect::<Vec<_>>()));
    record.machine = measured.machine;
    record.hosts = measured.hosts;
    record.clocks = measured.clocks;
    record.fault_log = measured.fault_log;
    for agent in &measured.results {
        let built_on = agent.identity.versions.iter();
        record.versions.extend(built_on.map(|(name, version)| (name.clone(), version.as_str().into())));
    }
    for result in &results {
        record.versions.extend(result.versions.clone());
        record.applied.extend(result.applied.clone());
    }
    record.connections = connections(&results, &mut remarks);
    record.limits_reached = limits_reached(&results);
    for (statement, count) in results.iter().flat_map(|result| &result.violations) {
        let known = record.violations.entry(statement.clone()).or_default();
        *known = known.saturating_add(*count);
    }
    let undue = record.wills.as_ref().map_or(0, |wills| wills.counts.undue);
    if undue > 0 {
        record.violations.insert(UNDUE_WILL.to_owned(), undue);
    }
    let mut exit_reason = None;
    if let Some(server) = measured.server {
        if let (Some(version), false) = (server.version, record.versions.contains_key("server")) {
            record.versions.insert("server".into(), version.into());
        }
        (record.deployment, record.server, exit_reason) = (Some(server.deployment), server.usage, server.exit_reason);
    }
    if let (Some(server), Some(series)) = (&mut record.server, &record.usage_series) {
        server.cpu_cores_stddev = series.server_cpu_stddev(record.window_ns);
    }
    if let (Some(report), Some(figures)) = (measured.link, &mut record.link) {
        figures.usage = report.usage;
        record.versions.extend(report.version.map(|version| ("toxiproxy".to_owned(), version.into())));
    }
    // Traffic from a server on another machine does not leave over an interface here.
    let elsewhere = record.deployment.as_ref().is_some_and(|server| server.attached == Some(Attached::Elsewhere));
    record.wire = measured.wire.filter(|_| !elsewhere);
    record.discovery_ns = measured.discovery_ns;
    remarks.extend(record.wire.iter().flat_map(|wire| foreign(wire, record.window_ns)));
    remarks.extend(measured.remarks);
    record.remarks = remarks;
    record.recovery = Recovery::of(&record);
    let judge = |record: &RunRecord, negative| {
        verdict::judge(record, system, negative, exit_reason.clone(), measured.calibration)
    };
    if !named {
        record.rates.lower_bound = verdict::lower_bound(&record);
        record.flows[0].rates.lower_bound = record.rates.lower_bound;
        record.verdict = judge(&record, negative.iter().sum());
        return record;
    }
    let mut told = std::mem::take(&mut record.flows);
    for (flow, negative) in told.iter_mut().zip(negative) {
        let Some(alone) = record.of_flow(flow.clone()) else { continue };
        flow.rates.lower_bound = verdict::lower_bound(&alone);
        flow.own.iter_mut().for_each(|own| own.verdict = judge(&alone, negative));
    }
    record.rates.lower_bound = told.iter().any(|flow| flow.rates.lower_bound);
    record.verdict = verdict::together(&told);
    record.flows = told;
    record
}

/// Returns remarks on interfaces that carried other programs' bytes before the run: from this share of their traffic in
/// the window.
fn foreign(wire: &WireFigures, window_ns: Ns) -> Vec<String> {
    const SHARE: f64 = 0.01;
    let window_s = window_ns as f64 / SECOND as f64;
    let seen = wire.interfaces.iter().filter_map(|interface| {
        let share = interface.at_rest_bytes_per_s * window_s / interface.sent_bytes.max(1) as f64;
        (share >= SHARE).then(|| {
            format!(
                "other programs sent {:.0} bytes a second over {} before the run: as much as {:.0} % of what it sent in the window, which is not taken off",
                interface.at_rest_bytes_per_s,
                interface.name,
                share * 100.0
            )
        })
    });
    seen.collect()
}

/// Returns the window of a run that ends by count at `max`, ns: from the first send until the last send or, if that is
/// later, the last arrival.
pub fn window_of_count(agents: &[AgentReport], from_ns: Ns) -> (Ns, Ns) {
    let flows = || agents.iter().flat_map(|agent| &agent.result.flows);
    let first_sent = flows().filter_map(|flow| flow.first_sent_ns).min().unwrap_or(from_ns);
    let ends = flows().flat_map(|flow| [flow.last_sent_ns, flow.last_arrival_ns]).flatten();
    (first_sent, ends.max().unwrap_or(first_sent).max(first_sent))
}

/// Returns the figures that an agent should have measured but does not support.
fn untold(agent: &AgentReport, workload: &Workload) -> Vec<UnsupportedFigure> {
    let flows = || agent.result.flows.iter();
    let any = |roles: &[Role]| agent.roles.iter().any(|role| roles.contains(role));
    let sent = flows().flat_map(|flow| &flow.publishers).any(|total| total.window_end > total.window_first);
    let hears = any(&[Role::Subscriber, Role::Requester]);
    let late = |flow: &FlowResult| flow.histograms.latency.is_some() && flow.histograms.receive_lag.is_none();
    let by_schedule = workload.rate != Rate::Max;
    let cannot = [
        (UnsupportedFigure::Pauses, agent.result.pauses.is_none()),
        (UnsupportedFigure::OwnLag, by_schedule && sent && flows().any(|flow| flow.histograms.own_lag.is_none())),
        (UnsupportedFigure::ReceiveLag, any(&[Role::Subscriber]) && !workload.pattern.echoed() && flows().any(late)),
        (UnsupportedFigure::Stalls, hears && flows().any(|flow| flow.stalls.is_none())),
    ];
    cannot.into_iter().filter(|(_, cannot)| *cannot).map(|(what, _)| what).collect()
}

/// Returns the remarks of agents, each once, after the names of the agents that make it.
fn remarks_of(agents: &[AgentReport]) -> Vec<String> {
    let mut by: Vec<(&str, Vec<&str>)> = Vec::new();
    for agent in agents {
        for remark in &agent.result.remarks {
            match by.iter_mut().find(|(same, _)| same == remark) {
                Some((_, names)) => names.push(&agent.name),
                None => by.push((remark, vec![&agent.name])),
            }
        }
    }
    by.into_iter().map(|(remark, names)| format!("{}: {remark}", names.join(", "))).collect()
}

/// Returns the limits that servers reported, each once.
fn limits_reached(results: &[&AgentResult]) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for words in results.iter().flat_map(|result| &result.limits_reached) {
        if !all.contains(words) {
            all.push(words.clone());
        }
    }
    all
}

/// Returns the connection figures of all clients of all agents.
fn connections(results: &[&AgentResult], remarks: &mut Vec<String>) -> Option<ConnectionFigures> {
    let mut all: Option<Connections> = None;
    results.iter().filter_map(|result| result.connections).for_each(|one| all.get_or_insert_default().add(&one));
    let all = all?;
    let mut merged = |pick: fn(&AgentResult) -> &Option<PackedHistogram>| {
        let times = merge(PackedHistogram::DIGITS, results.iter().filter_map(|result| pick(result).as_ref()), remarks);
        times.as_ref().and_then(Histogram::summary)
    };
    Some(ConnectionFigures {
        wanted: all.wanted,
        opened: all.opened,
        refused: all.refused,
        retried: all.retried,
        lost: all.lost,
        reconnected: all.reconnected,
        first_error: results.iter().find_map(|result| result.connect_error.clone()),
        first_loss: results.iter().find_map(|result| result.connection_loss.clone()),
        ramp_s: all.last_ns.saturating_sub(all.first_ns) as f64 / SECOND as f64,
        time_ns: merged(|result| &result.connect_time),
        tls_handshake_ns: merged(|result| &result.tls_handshake_time),
        subscribe_ns: merged(|result| &result.subscribe_time),
        reconnect_ns: merged(|result| &result.reconnect_time),
    })
}

/// Returns the usage of all agents together. Memory is summed sample by sample: the agents take theirs at the same
/// instants.
fn usage(agents: &[&AgentUsage]) -> Usage {
    let sum = |pick: fn(&AgentUsage) -> u64| total(agents.iter().map(|usage| pick(usage)));
    let samples = |pick: fn(&AgentUsage) -> &Vec<u64>| {
        let mut all = Vec::new();
        agents.iter().for_each(|usage| add_counts(&mut all, pick(usage)));
        let shortest = agents.iter().map(|usage| pick(usage).len()).min().unwrap_or(0);
        all.truncate(shortest);
        all
    };
    let rss = samples(|usage| &usage.rss_bytes);
    let wall_ns = agents.iter().map(|usage| usage.wall_ns).max().unwrap_or(0);
    let cpu_ns = sum(|usage| usage.cpu_ns);
    Usage {
        cpu_s: cpu_ns as f64 / SECOND as f64,
        cpu_cores: if wall_ns > 0 { cpu_ns as f64 / wall_ns as f64 } else { 0.0 },
        user_s: sum(|usage| usage.user_ns) as f64 / SECOND as f64,
        rss_bytes_median: median_whole(rss.iter().copied()),
        rss_bytes_max: rss.iter().copied().max().unwrap_or(0),
        uss_bytes_median: median_whole(samples(|usage| &usage.uss_bytes)),
        voluntary_switches: sum(|usage| usage.voluntary_switches),
        involuntary_switches: sum(|usage| usage.involuntary_switches),
        written_bytes: None,
        busiest_thread_cores: None,
        cpu_cores_stddev: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pubmark_model::protocol::{PublisherTotal, Stalls};
    use pubmark_model::record::InterfaceShare;
    use pubmark_model::setting::Settings;
    use pubmark_model::times::TimeFigures;

    #[test]
    fn what_an_agent_leaves_open_is_kept_and_what_it_does_not_play_is_not() {
        let workload = Workload::resolve(&Settings::default()).unwrap();
        let total = PublisherTotal { publisher: 0, sent: 9, window_first: 2, window_end: 9, offered: 7 };
        let packed = || Some(PackedHistogram::Pairs(vec![(5, 7)]));
        let left_open = |role, flow: FlowResult, pauses, workload: &Workload| {
            let result = AgentResult { flows: vec![flow], pauses, ..AgentResult::default() };
            let identity = AgentIdentity::default();
            untold(
                &AgentReport { name: "a".into(), host: String::new(), flow: 0, identity, roles: vec![role], result },
                workload,
            )
        };
        let sends = FlowResult { publishers: vec![total], ..FlowResult::default() };
        let pauses = Some(Stalls::default());
        assert_eq!(
            left_open(Role::Publisher, sends.clone(), None, &workload),
            [UnsupportedFigure::Pauses, UnsupportedFigure::OwnLag]
        );
        let max = Workload { rate: Rate::Max, ..workload.clone() };
        assert_eq!(left_open(Role::Publisher, sends.clone(), pauses, &max), [], "nothing is due at max");
        let own = FlowResult { histograms: TimeFigures { own_lag: packed(), ..TimeFigures::none() }, ..sends };
        assert_eq!(left_open(Role::Publisher, own, pauses, &workload), []);
        let hears = FlowResult {
            histograms: TimeFigures { latency: packed(), ..TimeFigures::none() },
            ..FlowResult::default()
        };
        let open = left_open(Role::Subscriber, hears.clone(), pauses, &workload);
        assert_eq!(open, [UnsupportedFigure::ReceiveLag, UnsupportedFigure::Stalls]);
        assert_eq!(left_open(Role::Requester, hears, pauses, &workload), [UnsupportedFigure::Stalls]);
        assert_eq!(left_open(Role::Replier, FlowResult::default(), pauses, &workload), []);
    }

    #[test]
    fn a_remark_names_the_agents_that_make_it_and_stands_once() {
        let report = |name: &str, remarks: &[&str]| {
            let remarks = remarks.iter().map(|&remark| remark.to_owned()).collect();
            let result = AgentResult { remarks, ..AgentResult::default() };
            AgentReport {
                name: name.into(),
                host: String::new(),
                flow: 0,
                identity: AgentIdentity::default(),
                roles: Vec::new(),
                result,
            }
        };
        let said = remarks_of(&[report("publishers", &["slow disk", "old"]), report("subscribers", &["slow disk"])]);
        assert_eq!(said, ["publishers, subscribers: slow disk", "publishers: old"]);
    }

    #[test]
    fn what_others_sent_before_the_run_is_said_from_a_hundredth_on() {
        let wire = |at_rest_bytes_per_s| WireFigures {
            sent_bytes: 200_000,
            interfaces: vec![InterfaceShare {
                name: "lo".into(),
                sent_bytes: 200_000,
                at_rest_ns: SECOND,
                at_rest_bytes_per_s,
                ..InterfaceShare::default()
            }],
        };
        assert_eq!(foreign(&wire(999.0), 2 * SECOND), Vec::<String>::new());
        let said = foreign(&wire(10_000.0), 2 * SECOND);
        assert!(said[0].contains("10000 bytes a second over lo") && said[0].contains(" 10 % "), "{said:?}");
    }

    #[test]
    fn memory_of_agents_adds_up_sample_by_sample() {
        let agent = |rss: &[u64]| AgentUsage {
            wall_ns: SECOND,
            cpu_ns: SECOND / 2,
            rss_bytes: rss.to_vec(),
            ..AgentUsage::default()
        };
        let both = usage(&[&agent(&[100, 300, 200]), &agent(&[10, 10])]);
        assert_eq!((both.rss_bytes_median, both.rss_bytes_max), (210, 310));
        assert_eq!(both.cpu_cores, 1.0);
    }
}
