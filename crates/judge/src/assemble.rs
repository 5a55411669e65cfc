//! From what the agents measured to a run record.

mod losses;

use crate::blank::blank;
use crate::calibration::Calibration;
use crate::verdict;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use pubmark_model::cell::Cell;
use pubmark_model::plan::Place;
use pubmark_model::protocol::{
    AgentResult, AgentUsage, Connections, LedgerCounts, PublisherTotal, Ranges, Role, Sequences, Stalls,
};
use pubmark_model::record::{
    AgentIdentity, AgentShare, ConnectionFigures, Counts, FaultEvent, HostShare, MachineLoad, Phases, Rates, RunRecord,
    Series, Usage, UsageSeries,
};
use pubmark_model::reported::{LinkReport, ServerReport};
use pubmark_model::system::System;
use pubmark_model::units::{Ns, SECOND};
use pubmark_stats::{Histogram, Summary, median_whole};
use std::collections::BTreeMap;
use std::io::Read;

/// An agent of a run, and what it measured.
#[derive(Debug)]
pub struct AgentReport {
    /// Its name in the run.
    pub name: String,
    /// The host that it ran on; empty for `local`.
    pub host: String,
    /// Who it says that it is.
    pub identity: AgentIdentity,
    /// What its clients do.
    pub roles: Vec<Role>,
    /// What it measured.
    pub result: AgentResult,
}

/// What the agents of a run measured.
pub struct Measured<'a> {
    /// By agent.
    pub results: Vec<AgentReport>,
    /// The window's beginning, ns.
    pub from_ns: Ns,
    /// What the machine did in it; of several the worst.
    pub machine: MachineLoad,
    /// The hosts, where there are others than `local`.
    pub hosts: Vec<HostShare>,
    /// The server, if there was one.
    pub server: Option<ServerReport>,
    /// What stood before it, if anything did.
    pub link: Option<LinkReport>,
    /// The faults as they happened.
    pub fault_log: Vec<FaultEvent>,
    /// What server and generator used, by time.
    pub used: Option<UsageSeries>,
    /// When the drain was over, ns; none where time is virtual.
    pub drained_ns: Option<Ns>,
    /// What is known of what this machine can do.
    pub calibration: Option<&'a Calibration>,
    /// What the coordinator has to remark.
    pub remarks: Vec<String>,
}

/// Builds the record of a run that was made.
pub fn assemble(cell: &Cell, system: &System, place: Place, started: String, measured: Measured<'_>) -> RunRecord {
    let mut record = blank(cell, Some(system), place, started);
    let results: Vec<&AgentResult> = measured.results.iter().map(|agent| &agent.result).collect();
    let mut remarks: Vec<String> = results.iter().flat_map(|result| result.remarks.iter().cloned()).collect();
    let totals: Vec<PublisherTotal> = results.iter().flat_map(|result| result.publishers.iter().copied()).collect();
    let (ledger, missing) = unite(cell, &totals, &results, &mut remarks);
    let (first_sent, last_arrival) = window_of_count(&measured.results, measured.from_ns);
    let length = cell.workload.window_ns();
    record.window_ns = length.unwrap_or(last_arrival.saturating_sub(first_sent)).max(1);
    let used = |result: &AgentResult| match length {
        Some(_) => result.usage.clone(),
        None => result.usage.within(first_sent, last_arrival),
    };
    let used: Vec<AgentUsage> = results.iter().map(|result| used(result)).collect();
    record.counts = counts(&totals, &ledger);
    record.counts.corrupted = cell.workload.checks_bodies().then_some(ledger.corrupted);
    record.counts.acked = results.iter().map(|result| result.acked).sum();
    record.counts.acked_lost = acked_lost(&results, missing);
    record.rates = rates(&record, results.iter().map(|result| result.arrived).sum());
    let merged = |pick: fn(&AgentResult) -> &Option<String>, remarks: &mut Vec<String>| {
        merge(results.iter().filter_map(|result| pick(result).as_deref()), remarks)
    };
    let latency = merged(|result| &result.latency, &mut remarks);
    record.counts.late = latency.as_ref().map_or(0, |latency| late(latency, cell.workload.late_after_ns));
    (record.histograms.latency, record.latency_ns) = told(latency);
    (record.histograms.intended_latency, record.intended_latency_ns) =
        told(merged(|result| &result.intended_latency, &mut remarks));
    (record.histograms.service_latency, record.service_latency_ns) =
        told(merged(|result| &result.service_latency, &mut remarks));
    (record.histograms.send_lag, record.send_lag_ns) = told(merged(|result| &result.send_lag, &mut remarks));
    (record.histograms.own_lag, record.own_lag_ns) = told(merged(|result| &result.own_lag, &mut remarks));
    (record.histograms.receive_lag, record.receive_lag_ns) = told(merged(|result| &result.receive_lag, &mut remarks));
    for pacing in results.iter().filter_map(|result| result.pacing) {
        record.pacing.get_or_insert_default().add(&pacing);
    }
    let pairs: u64 = results.iter().map(|result| result.jitter_pairs).sum();
    record.jitter_ns =
        (pairs > 0).then(|| results.iter().map(|result| result.jitter_sum_ns).sum::<f64>() / pairs as f64);
    record.series = series(&results, &mut remarks);
    record.usage_series = measured.used;
    record.phases = measured.drained_ns.map(|drained_ns| Phases {
        warmup_ns: cell.workload.warmup_ns,
        window_ns: record.window_ns,
        drain_ns: drained_ns.saturating_sub(measured.from_ns + record.window_ns),
    });
    record.stalls = stalls(&results);
    record.agents = measured
        .results
        .iter()
        .zip(&used)
        .map(|(agent, used)| AgentShare {
            name: agent.name.clone(),
            host: agent.host.clone(),
            agent: Some(agent.identity.clone()),
            roles: agent.roles.clone(),
            loops: agent.result.loops,
            applied: agent.result.applied.clone(),
            usage: usage(&[used]),
            pauses: agent.result.pauses,
        })
        .collect();
    record.generator = Some(usage(&used.iter().collect::<Vec<_>>()));
    record.machine = measured.machine;
    record.hosts = measured.hosts;
    record.fault_log = measured.fault_log;
    for result in &results {
        record.versions.extend(result.versions.clone());
        record.applied.extend(result.applied.clone());
    }
    record.connections = connections(&results, &mut remarks);
    let mut exit_reason = None;
    if let Some(server) = measured.server {
        if let (Some(version), false) = (server.version, record.versions.contains_key("server")) {
            record.versions.insert("server".into(), version.into());
        }
        (record.deployment, record.server, exit_reason) = (Some(server.deployment), server.usage, server.exit_reason);
    }
    if let (Some(report), Some(figures)) = (measured.link, &mut record.link) {
        figures.usage = report.usage;
        record.versions.extend(report.version.map(|version| ("toxiproxy".to_owned(), version.into())));
    }
    remarks.extend(measured.remarks);
    record.remarks = remarks;
    record.rates.lower_bound = verdict::lower_bound(&record);
    record.verdict = verdict::judge(&record, system, ledger.negative, exit_reason, measured.calibration);
    record
}

/// The window of a count at `max`, ns: from when the first of its messages was
/// sent until the last of them arrived.
pub fn window_of_count(agents: &[AgentReport], from_ns: Ns) -> (Ns, Ns) {
    let results = || agents.iter().map(|agent| &agent.result);
    let first_sent = results().filter_map(|result| result.first_sent_ns).min().unwrap_or(from_ns);
    (first_sent, results().filter_map(|result| result.last_arrival_ns).max().unwrap_or(first_sent).max(first_sent))
}

fn counts(totals: &[PublisherTotal], ledger: &LedgerCounts) -> Counts {
    let sent = totals.iter().map(|total| total.window_end - total.window_first).sum();
    let offered: u64 = totals.iter().map(|total| total.offered).sum();
    Counts {
        offered,
        sent,
        not_sent: offered.saturating_sub(sent),
        expected: ledger.expected,
        delivered: ledger.delivered,
        lost: ledger.expected.saturating_sub(ledger.delivered),
        duplicated: ledger.duplicated,
        reordered: ledger.reordered,
        unidentified: ledger.unidentified,
        ..Counts::default()
    }
}

/// Messages that were delivered too late, by the histogram: one that is within
/// its 0.1 % of the bound counts as late.
fn late(latency: &Histogram, bound_ns: Ns) -> u64 {
    latency.nonzero().filter(|(ns, _)| *ns > bound_ns).map(|(_, count)| count).sum()
}

/// A distribution as a record has it: whole, and its figures. None where it is empty.
fn told(histogram: Option<Histogram>) -> (Option<String>, Option<Summary>) {
    let summary = histogram.as_ref().and_then(Histogram::summary);
    (histogram.filter(|histogram| !histogram.is_empty()).map(|histogram| histogram.encode()), summary)
}

/// Messages that the server acknowledged, and a subscriber had not got when
/// the drain ended; `united` are those that none of several competing ones got.
/// None where an agent does not name all of its own.
fn acked_lost(results: &[&AgentResult], united: Ranges) -> Option<u64> {
    let mut unacked = Vec::new();
    for result in results {
        unacked.extend(result.unacked.0.as_ref()?);
    }
    let mut missing = united.0?;
    for result in results {
        missing.extend(result.missing.0.as_ref()?);
    }
    Some(losses::acked_lost(unacked, missing))
}

/// How all clients of all agents got their connections.
fn connections(results: &[&AgentResult], remarks: &mut Vec<String>) -> Option<ConnectionFigures> {
    let mut all: Option<Connections> = None;
    results.iter().filter_map(|result| result.connections).for_each(|one| all.get_or_insert_default().add(&one));
    let all = all?;
    let times = merge(results.iter().filter_map(|result| result.connect_time.as_deref()), remarks);
    let again = merge(results.iter().filter_map(|result| result.reconnect_time.as_deref()), remarks);
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
        time_ns: times.as_ref().and_then(Histogram::summary),
        reconnect_ns: again.as_ref().and_then(Histogram::summary),
    })
}

fn rates(record: &RunRecord, arrived: u64) -> Rates {
    let per_s = |count: u64| count as f64 * SECOND as f64 / record.window_ns as f64;
    Rates {
        offered_per_s: per_s(record.counts.offered),
        sent_per_s: per_s(record.counts.sent),
        delivered_per_s: per_s(arrived),
        delivered_bytes_per_s: per_s(arrived) * record.workload.payload_bytes as f64,
        lower_bound: false,
    }
}

/// The ledgers of all agents as one. Where subscribers compete, what each of
/// them saw is united, so that a message that two of them got is a duplicate,
/// and one that none of them got is missing.
fn unite(
    cell: &Cell,
    totals: &[PublisherTotal],
    results: &[&AgentResult],
    remarks: &mut Vec<String>,
) -> (LedgerCounts, Ranges) {
    let mut sum = LedgerCounts::default();
    results.iter().for_each(|result| sum.add(&result.ledger));
    let mut missing = Ranges::default();
    if !cell.workload.competing() {
        return (sum, missing);
    }
    let sent: BTreeMap<u32, u64> = totals.iter().map(|total| (total.publisher, total.sent)).collect();
    let mut united: BTreeMap<u32, Vec<u8>> = BTreeMap::new();
    for seen in results.iter().flat_map(|result| &result.seen) {
        match inflate(&seen.bits, sent.get(&seen.publisher).copied().unwrap_or(0)) {
            Some(bits) => {
                let all = united.entry(seen.publisher).or_default();
                if all.len() < bits.len() {
                    all.resize(bits.len(), 0);
                }
                all.iter_mut().zip(bits).for_each(|(all, bits)| *all |= bits);
            }
            None => {
                remarks.push(format!("what arrived of publisher {} cannot be read", seen.publisher));
                missing = Ranges(None);
            }
        }
    }
    if cell.workload.qos > 0 {
        totals.iter().for_each(|total| missing.extend(gaps(united.get(&total.publisher), total)));
    }
    let each = sum.delivered;
    sum.expected = totals.iter().map(|total| total.window_end - total.window_first).sum();
    sum.delivered =
        totals.iter().map(|total| ones(united.get(&total.publisher), total.window_first, total.window_end)).sum();
    sum.duplicated += each.saturating_sub(sum.delivered);
    (sum, missing)
}

/// The messages of the window whose bits are not set, as ranges.
fn gaps(bits: Option<&Vec<u8>>, total: &PublisherTotal) -> impl Iterator<Item = Sequences> {
    let bits = bits.map_or(&[][..], Vec::as_slice);
    let set = |at: u64| bits.get((at / 8) as usize).is_some_and(|byte| byte >> (at % 8) & 1 == 1);
    let PublisherTotal { publisher, window_end, .. } = *total;
    let mut at = total.window_first;
    std::iter::from_fn(move || {
        let first = (at..window_end).find(|at| !set(*at))?;
        at = (first..window_end).find(|at| set(*at)).unwrap_or(window_end);
        Some(Sequences { publisher, first, end: at })
    })
}

/// The bits of `first..end` that are set.
fn ones(bits: Option<&Vec<u8>>, first: u64, end: u64) -> u64 {
    let Some(bits) = bits else { return 0 };
    let end = end.min(bits.len() as u64 * 8);
    let mut count = 0;
    let mut at = first;
    while at < end {
        if at.is_multiple_of(8) && at + 8 <= end {
            count += u64::from(bits[(at / 8) as usize].count_ones());
            at += 8;
        } else {
            count += u64::from(bits[(at / 8) as usize] >> (at % 8) & 1);
            at += 1;
        }
    }
    count
}

/// Reads the bits of `messages` sequences; none where there are more.
fn inflate(text: &str, messages: u64) -> Option<Vec<u8>> {
    let packed = STANDARD.decode(text).ok()?;
    let mut bits = Vec::new();
    flate2::read::DeflateDecoder::new(packed.as_slice()).take(messages / 8 + 9).read_to_end(&mut bits).ok()?;
    Some(bits)
}

fn merge<'a>(encoded: impl Iterator<Item = &'a str>, remarks: &mut Vec<String>) -> Option<Histogram> {
    let mut merged: Option<Histogram> = None;
    for text in encoded.filter(|text| !text.is_empty()) {
        let read = Histogram::decode(text).and_then(|histogram| match &mut merged {
            None => {
                merged = Some(histogram);
                Ok(())
            }
            Some(all) => all.merge(&histogram),
        });
        if let Err(error) = read {
            remarks.push(format!("a histogram of an agent cannot be used: {error}"));
        }
    }
    merged
}

fn add(all: &mut Vec<u64>, more: &[u64]) {
    if all.len() < more.len() {
        all.resize(more.len(), 0);
    }
    all.iter_mut().zip(more).for_each(|(all, more)| *all += more);
}

fn series(results: &[&AgentResult], remarks: &mut Vec<String>) -> Series {
    let mut series = Series::default();
    for result in results {
        series.slice_ns = series.slice_ns.max(result.series.slice_ns);
        add(&mut series.sent, &result.series.sent);
        add(&mut series.delivered, &result.series.delivered);
    }
    let slices = results.iter().map(|result| result.series.latency.len()).max().unwrap_or(0);
    for slice in 0..slices {
        let of_slice = results.iter().filter_map(|result| result.series.latency.get(slice)).map(String::as_str);
        let histogram = merge(of_slice, remarks).filter(|histogram| !histogram.is_empty());
        let at = |quantile: f64| histogram.as_ref().map_or(0, |histogram| histogram.value_at(quantile));
        series.latency_p50_ns.push(at(0.5));
        series.latency_p99_ns.push(at(0.99));
        series.latency_max_ns.push(histogram.as_ref().map_or(0, Histogram::max));
    }
    series
}

fn stalls(results: &[&AgentResult]) -> Stalls {
    let mut all = Stalls::default();
    results.iter().for_each(|result| all.add(&result.stalls));
    all
}

/// What agents used together. Memory is summed sample by sample: the agents
/// take theirs at the same instants.
fn usage(agents: &[&AgentUsage]) -> Usage {
    let sum = |pick: fn(&AgentUsage) -> u64| agents.iter().map(|usage| pick(usage)).sum::<u64>();
    let samples = |pick: fn(&AgentUsage) -> &Vec<u64>| {
        let mut all = Vec::new();
        agents.iter().for_each(|usage| add(&mut all, pick(usage)));
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
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_bits_are_counted_exactly() {
        let bits = vec![0b1010_1010, 0xff, 0x01];
        assert_eq!(ones(Some(&bits), 0, 24), 4 + 8 + 1);
        assert_eq!(ones(Some(&bits), 1, 2), 1);
        assert_eq!(ones(Some(&bits), 7, 17), 1 + 8 + 1);
        assert_eq!(ones(Some(&bits), 0, 1_000), 13);
        assert_eq!(ones(None, 0, 8), 0);
    }

    #[test]
    fn what_no_competing_subscriber_got_is_a_range() {
        let total = PublisherTotal { publisher: 3, sent: 20, window_first: 2, window_end: 18, offered: 16 };
        let found = |bits: Option<&Vec<u8>>| -> Vec<(u64, u64)> {
            gaps(bits, &total).map(|range| (range.first, range.end)).collect()
        };
        assert_eq!(found(Some(&vec![0b1110_0111, 0xff])), [(3, 5), (16, 18)]);
        assert_eq!(found(None), [(2, 18)]);
        assert_eq!(found(Some(&vec![0xff; 3])), []);
    }

    #[test]
    fn what_an_agent_cannot_name_makes_no_count_of_what_was_acknowledged_and_lost() {
        let range = |first, end| Sequences { publisher: 0, first, end };
        let publisher = AgentResult { unacked: Ranges(Some(vec![range(0, 5)])), ..AgentResult::default() };
        let subscriber = AgentResult { missing: Ranges(Some(vec![range(3, 8)])), ..AgentResult::default() };
        let whole = Ranges::default;
        assert_eq!(acked_lost(&[&publisher, &subscriber], whole()), Some(3));
        assert_eq!(acked_lost(&[&publisher], Ranges(Some(vec![range(3, 8)]))), Some(3), "of competing ones");
        let cut = AgentResult { missing: Ranges(None), ..AgentResult::default() };
        assert_eq!(acked_lost(&[&publisher, &subscriber, &cut], whole()), None);
        let cut = AgentResult { unacked: Ranges(None), ..AgentResult::default() };
        assert_eq!(acked_lost(&[&cut, &subscriber], whole()), None);
        assert_eq!(acked_lost(&[&publisher, &subscriber], Ranges(None)), None);
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
