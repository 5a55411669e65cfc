//! One flow: combines the results of all agents.

use super::churn::UnitedChurn;
use super::merge::{add_counts, late, merge};
use super::{last_will, losses};
use pubmark_model::counts::{ByteCounts, RefusalCount, add_refusals};
use pubmark_model::protocol::{
    AgentResult, FlowResult, LedgerCounts, PacingFigures, PackedHistogram, PublisherTotal, Ranges, Sequences, Stalls,
};
use pubmark_model::record::{
    CatchUp, Counts, FlowRecord, OwnFigures, Rates, Rebalances, RunRecord, Series, WillFigures,
};
use pubmark_model::times::TimeFigures;
use pubmark_model::units::{Ns, SECOND, total};
use pubmark_model::workload::Workload;
use pubmark_stats::Histogram;
use std::collections::BTreeMap;

/// The figures of a flow.
#[derive(Default)]
pub struct UnitedFlow {
    counts: Counts,
    refusals: Vec<RefusalCount>,
    rates: Rates,
    times: TimeFigures<Option<Histogram>>,
    pacing: Option<PacingFigures>,
    /// Sum of the differences between consecutive latencies, ns, and their number.
    jitter: (f64, u64),
    series: Series,
    drain_time_ns: Option<Ns>,
    catch_up: Option<CatchUp>,
    rebalances: Option<Rebalances>,
    stalls: Option<Stalls>,
    churn: Option<UnitedChurn>,
    wills: Option<Box<WillFigures>>,
    /// Number of latencies below zero.
    pub negative: u64,
}

impl UnitedFlow {
    /// Combines the results of agents in a window of this length.
    pub fn of(
        workload: &Workload,
        window_ns: Option<Ns>,
        results: &[&FlowResult],
        remarks: &mut Vec<String>,
    ) -> UnitedFlow {
        let totals: Vec<PublisherTotal> = results.iter().flat_map(|result| result.publishers.iter().copied()).collect();
        let (ledger, missing) = unite(workload, &totals, results, remarks);
        let times = TimeFigures::of_each(results.iter().map(|result| &result.histograms));
        let times = times.map(|packed| merge(PackedHistogram::DIGITS, packed.into_iter().flatten(), remarks));
        let mut counts = Counts::of(&totals, &ledger);
        counts.corrupted = workload.checks_bodies().then_some(ledger.corrupted);
        counts.acked = total(results.iter().map(|result| result.acked));
        counts.acked_lost = acked_lost(results, &missing);
        let mut refusals = Vec::new();
        results.iter().for_each(|result| add_refusals(&mut refusals, &result.refusals));
        counts.refused = refusals.iter().fold(0, |sum: u64, one| sum.saturating_add(one.count));
        // A message that the system refused is not lost.
        let undelivered = refused_copies(&counts, workload.qos, results, &missing);
        counts.expected = counts.expected.saturating_sub(undelivered);
        counts.lost = counts.lost.saturating_sub(undelivered);
        counts.timed_out = ledger.late_answers.map(|late| late.saturating_add(counts.lost));
        counts.late = times.latency.as_ref().map_or(0, |latency| late(latency, workload.late_after_ns));
        let mut pacing: Option<PacingFigures> = None;
        results.iter().filter_map(|result| result.pacing).for_each(|one| pacing.get_or_insert_default().add(&one));
        let mut stalls: Option<Stalls> = None;
        results.iter().filter_map(|result| result.stalls).for_each(|one| stalls.get_or_insert_default().add(&one));
        let mut bytes: Option<ByteCounts> = None;
        results.iter().filter_map(|result| result.bytes).for_each(|one| bytes.get_or_insert_default().add(&one));
        counts.sent_bytes = bytes.map(|bytes| bytes.sent);
        counts.delivered_bytes = bytes.map(|bytes| bytes.delivered);
        let arrived = total(results.iter().map(|result| result.arrived));
        let series = Series { lag: lag(workload, &counts, results), ..series(results, remarks) };
        // The slices leave out what was due in the window and sent after it.
        let sent = workload.window_ns().map_or(counts.sent, |_| total(series.sent.iter().copied()));
        UnitedFlow {
            rates: rates(workload, &counts, sent, window_ns, (arrived, bytes.map(|bytes| bytes.arrived))),
            counts,
            refusals,
            times,
            pacing,
            jitter: (
                results.iter().map(|result| result.jitter_sum_ns).sum(),
                total(results.iter().map(|result| result.jitter_pairs)),
            ),
            series,
            drain_time_ns: drain_time_ns(results),
            catch_up: catch_up(results),
            rebalances: rebalances(results),
            stalls,
            churn: UnitedChurn::of(results.iter().filter_map(|result| result.churn.as_deref()), remarks)
                .map(|churn| churn.late_after(workload.late_after_ns)),
            wills: last_will::united(results, remarks),
            negative: ledger.negative,
        }
    }

    /// Combines the flows of a run, which these agents played.
    pub fn together(flows: Vec<UnitedFlow>, agents: &[&AgentResult], remarks: &mut Vec<String>) -> UnitedFlow {
        let late_visitors: u64 = flows.iter().filter_map(|flow| flow.churn.as_ref()).map(UnitedChurn::late).sum();
        // Each flow numbers its publishers from 0.
        let undue = total(flows.iter().filter_map(|flow| flow.wills.as_ref()).map(|wills| wills.counts.undue));
        let mut flows = flows.into_iter();
        let mut all = flows.next().unwrap_or_default();
        if flows.len() == 0 {
            return all;
        }
        let mut lag = std::mem::take(&mut all.series.lag);
        for flow in flows {
            add_counts(&mut lag, &flow.series.lag);
            all.counts.add(&flow.counts);
            add_refusals(&mut all.refusals, &flow.refusals);
            all.rates.add(&flow.rates);
            let merged = all.times.add(&flow.times);
            remarks.extend(merged.err().map(|error| format!("the times of the flows cannot be added: {error}")));
            flow.pacing.iter().for_each(|pacing| all.pacing.get_or_insert_default().add(pacing));
            flow.rebalances.iter().for_each(|seen| all.rebalances.get_or_insert_default().add_group(seen));
            flow.stalls.iter().for_each(|stalls| all.stalls.get_or_insert_default().add(stalls));
            all.jitter = (all.jitter.0 + flow.jitter.0, all.jitter.1.saturating_add(flow.jitter.1));
            all.negative = all.negative.saturating_add(flow.negative);
        }
        let results: Vec<&FlowResult> = agents.iter().flat_map(|agent| &agent.flows).collect();
        all.churn = UnitedChurn::of(results.iter().filter_map(|result| result.churn.as_deref()), remarks)
            .map(|churn| churn.with_late(late_visitors));
        all.wills = last_will::united(&results, remarks);
        all.wills.iter_mut().for_each(|wills| wills.counts.undue = undue);
        all.series = Series { lag, ..series(&results, remarks) };
        all.drain_time_ns = drain_time_ns(&results);
        all.catch_up = catch_up(&results);
        all
    }

    fn jitter_ns(&self) -> Option<f64> {
        let (sum_ns, pairs) = self.jitter;
        (pairs > 0).then(|| sum_ns / pairs as f64)
    }

    /// Returns the further figures of one of several flows.
    pub fn own(&self, workload: Workload) -> OwnFigures {
        OwnFigures {
            refusals: self.refusals.clone(),
            pacing: self.pacing,
            drain_time_ns: self.drain_time_ns,
            catch_up: self.catch_up,
            rebalances: self.rebalances,
            stalls: self.stalls,
            histograms: self.times.encoded(),
            series: self.series.clone(),
            churn: self.churn.as_ref().map(UnitedChurn::figures),
            wills: self.wills.clone(),
            ..OwnFigures::blank(workload)
        }
    }

    /// Returns the flow as a record lists it.
    pub fn told(&self, name: &str) -> FlowRecord {
        FlowRecord {
            name: name.to_owned(),
            counts: self.counts,
            rates: self.rates,
            times: self.times.summaries(),
            jitter_ns: self.jitter_ns(),
            own: None,
        }
    }

    /// Writes the flow as the figures of a run that has no other flow.
    pub fn into_record(self, record: &mut RunRecord) {
        record.jitter_ns = self.jitter_ns();
        record.churn = self.churn.as_ref().map(UnitedChurn::figures);
        record.wills = self.wills;
        (record.counts, record.rates, record.refusals) = (self.counts, self.rates, self.refusals);
        (record.times, record.histograms) = (self.times.summaries(), self.times.encoded());
        (record.pacing, record.series, record.stalls) = (self.pacing, self.series, self.stalls);
        (record.drain_time_ns, record.catch_up) = (self.drain_time_ns, self.catch_up);
        record.rebalances = self.rebalances;
    }
}

/// Returns the time in which the late subscribers of all agents caught up.
fn catch_up(results: &[&FlowResult]) -> Option<CatchUp> {
    let mut each = results.iter().filter_map(|result| result.catch_up);
    let mut all = each.next()?;
    each.for_each(|other| all.add(&other));
    Some(all)
}

/// Returns the rebalances that the members of a group saw, at all agents.
fn rebalances(results: &[&FlowResult]) -> Option<Rebalances> {
    let mut each = results.iter().filter_map(|result| result.rebalances);
    let mut all = each.next()?;
    each.for_each(|other| all.add(&other));
    Some(all)
}

/// Returns the copies of sent messages that had not arrived at the end of each slice; empty if an agent does not report
/// what was sent and arrived before the window, and where messages are answered or a count ends the window.
fn lag(workload: &Workload, counts: &Counts, results: &[&FlowResult]) -> Vec<u64> {
    let before: Option<Vec<(u64, u64)>> =
        results.iter().map(|result| result.sent_before.zip(result.arrived_before)).collect();
    let Some(before) = before.filter(|_| workload.window_ns().is_some() && !workload.pattern.round_trip()) else {
        return Vec::new();
    };
    let copies = counts.expected as f64 / counts.sent.max(1) as f64;
    let sent = total(before.iter().map(|(sent, _)| *sent)) as f64;
    let mut owed = sent * copies - total(before.iter().map(|(_, arrived)| *arrived)) as f64;
    let of = |slice: usize, pick: fn(&FlowResult) -> &[u64]| {
        total(results.iter().map(|result| pick(result).get(slice).copied().unwrap_or_default())) as f64
    };
    let slices = results.iter().map(|result| result.series.sent.len().max(result.series.delivered.len())).max();
    let at_end = |slice| {
        owed += of(slice, |result| &result.series.sent) * copies - of(slice, |result| &result.series.delivered);
        owed.max(0.0).round() as u64
    };
    (0..slices.unwrap_or(0)).map(at_end).collect()
}

/// Returns the time from the last send to the last arrival, ns; `None` unless both sides report theirs.
fn drain_time_ns(results: &[&FlowResult]) -> Option<Ns> {
    let sent = |result: &&&FlowResult| result.publishers.iter().any(|total| total.window_end > total.window_first);
    let last_sent: Option<Vec<Ns>> = results.iter().filter(sent).map(|result| result.last_sent_ns).collect();
    let last_arrival_ns = results.iter().filter_map(|result| result.last_arrival_ns).max()?;
    Some(last_arrival_ns.saturating_sub(last_sent?.into_iter().max()?))
}

/// Returns the number of messages that the server acknowledged and a subscriber had not received when the drain ended;
/// `united` are those that none of several competing subscribers received. `None` if an agent does not list all of its
/// own.
fn acked_lost(results: &[&FlowResult], united: &Ranges) -> Option<u64> {
    let mut unacked = Vec::new();
    for result in results {
        unacked.extend(result.unacked.0.as_ref()?);
    }
    Some(losses::without(unacked, all_missing(results, united)?))
}

/// Returns the messages that each subscriber did not receive; `None` unless all are listed.
fn all_missing(results: &[&FlowResult], united: &Ranges) -> Option<Vec<Sequences>> {
    let mut missing = united.0.clone()?;
    for result in results {
        missing.extend(result.missing.0.as_ref()?);
    }
    Some(missing)
}

/// Returns the number of copies of refused messages that did not arrive: from the messages themselves if both sides
/// list them; else each refused message counts once for each subscriber of it.
fn refused_copies(counts: &Counts, qos: u8, results: &[&FlowResult], united: &Ranges) -> u64 {
    if counts.refused == 0 {
        return 0;
    }
    let named = || {
        let mut refused = Vec::new();
        for result in results {
            refused.extend(result.refused.0.as_ref()?);
        }
        // Below QoS 1 subscribers do not list missing messages.
        let missing = all_missing(results, united).filter(|_| qos > 0)?;
        let all = total(missing.iter().map(|range| range.end.saturating_sub(range.first)));
        Some(all.saturating_sub(losses::without(refused, missing)))
    };
    let each = counts.expected.div_ceil(counts.sent.max(1));
    named().unwrap_or_else(|| counts.refused.saturating_mul(each)).min(counts.lost)
}

/// Divides the counts by the length of the window: the messages due, those sent in it, and those that arrived in it, with
/// their bytes. All rates are 0 if the window did not end.
fn rates(workload: &Workload, counts: &Counts, sent: u64, window_ns: Option<Ns>, arrived: (u64, Option<u64>)) -> Rates {
    let Some(window_ns) = window_ns else { return Rates::default() };
    let per_s = |count: u64| count as f64 * SECOND as f64 / window_ns as f64;
    Rates {
        offered_per_s: per_s(counts.offered),
        sent_per_s: per_s(sent),
        delivered_per_s: per_s(arrived.0),
        delivered_bytes_per_s: arrived.1.map_or(per_s(arrived.0) * workload.payload_bytes as f64, per_s),
        lower_bound: false,
    }
}

/// Combines the ledgers of all agents. If subscribers compete, their messages are united, so that a message that two of
/// them received is a duplicate, and one that none of them received is missing.
fn unite(
    workload: &Workload,
    totals: &[PublisherTotal],
    results: &[&FlowResult],
    remarks: &mut Vec<String>,
) -> (LedgerCounts, Ranges) {
    let mut sum = LedgerCounts::default();
    results.iter().for_each(|result| sum.add(&result.ledger));
    let mut missing = Ranges::default();
    if !workload.is_divided() {
        return (sum, missing);
    }
    let sent: BTreeMap<u32, u64> = totals.iter().map(|total| (total.publisher, total.sent)).collect();
    let mut united: BTreeMap<u32, Vec<u8>> = BTreeMap::new();
    for seen in results.iter().flat_map(|result| &result.seen) {
        match seen.read(sent.get(&seen.publisher).copied().unwrap_or(0)) {
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
    if workload.qos > 0 {
        totals.iter().for_each(|total| missing.extend(gaps(united.get(&total.publisher), total)));
    }
    let each = sum.delivered;
    sum.expected = total(totals.iter().map(|total| total.window_end.saturating_sub(total.window_first)));
    sum.delivered =
        totals.iter().map(|total| ones(united.get(&total.publisher), total.window_first, total.window_end)).sum();
    sum.duplicated = sum.duplicated.saturating_add(each.saturating_sub(sum.delivered));
    (sum, missing)
}

/// Returns the messages of the window whose bits are not set, as ranges.
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

/// Returns the number of bits of `first..end` that are set.
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

fn series(results: &[&FlowResult], remarks: &mut Vec<String>) -> Series {
    let mut series = Series::default();
    for result in results {
        series.slice_ns = series.slice_ns.max(result.series.slice_ns);
        add_counts(&mut series.sent, &result.series.sent);
        add_counts(&mut series.delivered, &result.series.delivered);
    }
    let slices = results.iter().map(|result| result.series.latency.len()).max().unwrap_or(0);
    for slice in 0..slices {
        let of_slice = results.iter().filter_map(|result| result.series.latency.get(slice)?.as_ref());
        let histogram =
            merge(PackedHistogram::SLICE_DIGITS, of_slice, remarks).filter(|histogram| !histogram.is_empty());
        let at = |quantile: f64| histogram.as_ref().map_or(0, |histogram| histogram.value_at(quantile));
        series.latency_p50_ns.push(at(0.5));
        series.latency_p99_ns.push(at(0.99));
        series.latency_max_ns.push(histogram.as_ref().map_or(0, Histogram::max));
    }
    series
}

#[cfg(test)]
mod tests {
    use super::*;
    use pubmark_model::protocol::SliceSeries;

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
        let publisher = FlowResult { unacked: Ranges(Some(vec![range(0, 5)])), ..FlowResult::default() };
        let subscriber = FlowResult { missing: Ranges(Some(vec![range(3, 8)])), ..FlowResult::default() };
        let whole = Ranges::default;
        assert_eq!(acked_lost(&[&publisher, &subscriber], &whole()), Some(3));
        assert_eq!(acked_lost(&[&publisher], &Ranges(Some(vec![range(3, 8)]))), Some(3), "of competing ones");
        let cut = FlowResult { missing: Ranges(None), ..FlowResult::default() };
        assert_eq!(acked_lost(&[&publisher, &subscriber, &cut], &whole()), None);
        let cut = FlowResult { unacked: Ranges(None), ..FlowResult::default() };
        assert_eq!(acked_lost(&[&cut, &subscriber], &whole()), None);
        assert_eq!(acked_lost(&[&publisher, &subscriber], &Ranges(None)), None);
    }

    #[test]
    fn an_undelivered_copy_of_a_refused_message_is_refused_and_not_lost() {
        let range = |first, end| Sequences { publisher: 0, first, end };
        let ranges = |list: &[(u64, u64)]| Ranges(Some(list.iter().map(|(first, end)| range(*first, *end)).collect()));
        let refusal = |count| RefusalCount { reason: "quota".into(), count, limit: true };
        let total = PublisherTotal { publisher: 0, sent: 10, window_first: 0, window_end: 10, offered: 10 };
        let publisher = FlowResult {
            publishers: vec![total],
            acked: 6,
            unacked: ranges(&[(0, 4)]),
            refused: ranges(&[(1, 4)]),
            refusals: vec![refusal(3)],
            ..FlowResult::default()
        };
        // Two subscribers: one received a message that was refused.
        let subscriber = |delivered, missing: &[(u64, u64)]| FlowResult {
            ledger: LedgerCounts { expected: 10, delivered, ..LedgerCounts::default() },
            missing: ranges(missing),
            ..FlowResult::default()
        };
        let united = |qos: &str, results: &[&FlowResult]| {
            let workload = Workload::of([("qos", qos), ("pattern", "fan-out"), ("subscribers", "2")]).unwrap();
            let flow = UnitedFlow::of(&workload, Some(SECOND), results, &mut Vec::new());
            let Counts { sent, acked, refused, expected, delivered, lost, acked_lost, .. } = flow.counts;
            assert_eq!((flow.refusals, flow.counts.unacknowledged()), (vec![refusal(3)], sent - acked - refused));
            (sent, acked, refused, expected, delivered, lost, acked_lost)
        };
        let (one, two) = (subscriber(8, &[(0, 1), (1, 2)]), subscriber(5, &[(0, 4), (9, 10)]));
        assert_eq!(united("1", &[&publisher, &one, &two]), (10, 6, 3, 16, 13, 3, Some(1)));
        // If messages are not listed, each counts once for each subscriber.
        let cut = FlowResult { refused: Ranges(None), ..publisher.clone() };
        assert_eq!(united("1", &[&cut, &one, &two]).3, 14);
        assert_eq!(united("0", &[&publisher, &one, &two]), (10, 6, 3, 14, 13, 1, Some(1)));
        let whole = subscriber(10, &[]);
        assert_eq!(united("0", &[&publisher, &whole, &whole]), (10, 6, 3, 20, 20, 0, Some(0)), "all came all the same");
    }

    /// Two subscribers hear a publisher of 10 messages a slice, and start after 5 slices and 20 messages of the warm-up:
    /// 2 · (20 + 50) messages wait then. One of them loses a message.
    #[test]
    fn the_lag_is_what_was_sent_and_has_not_arrived() {
        let workload = Workload::of([("pattern", "fan-out"), ("subscribers", "2")]).unwrap();
        let total = PublisherTotal { publisher: 0, sent: 100, window_first: 20, window_end: 100, offered: 80 };
        let series = |sent: &[u64], delivered: &[u64]| SliceSeries {
            sent: sent.to_vec(),
            delivered: delivered.to_vec(),
            ..SliceSeries::default()
        };
        let publisher = FlowResult {
            publishers: vec![total],
            sent_before: Some(20),
            arrived_before: Some(0),
            series: series(&[10; 8], &[]),
            ..FlowResult::default()
        };
        let subscriber = |delivered: u64, slices: &[u64]| FlowResult {
            ledger: LedgerCounts { expected: 80, delivered, ..LedgerCounts::default() },
            sent_before: Some(0),
            arrived_before: Some(0),
            series: series(&[], slices),
            ..FlowResult::default()
        };
        let late = [subscriber(80, &[0, 0, 0, 0, 0, 60, 30, 10]), subscriber(79, &[0, 0, 0, 0, 0, 80, 9, 10])];
        let lag =
            |results: &[&FlowResult]| UnitedFlow::of(&workload, Some(SECOND), results, &mut Vec::new()).series.lag;
        assert_eq!(lag(&[&publisher, &late[0], &late[1]]), [60, 80, 100, 120, 140, 20, 1, 1]);
        let on_time = FlowResult { arrived_before: Some(19), ..subscriber(80, &[11, 10, 10, 10, 10, 10, 10, 10]) };
        assert_eq!(lag(&[&publisher, &on_time, &on_time]), [0; 8]);
        let silent = FlowResult { arrived_before: None, ..on_time.clone() };
        assert!(lag(&[&publisher, &on_time, &silent]).is_empty(), "an agent does not report it");
    }
}
