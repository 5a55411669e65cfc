//! Relations between the figures of every record, whatever happened to its run.

use pubmark_model::record::{Reason, RunRecord};
use pubmark_model::times::TimeFigures;
use pubmark_model::units::{Ns, SECOND};
use pubmark_model::workload::{Arrival, Extent, Rate};
use pubmark_stats::{Histogram, Summary};

/// Precision of histograms, 0.1 %, and of figures computed from them.
const PRECISION: f64 = 0.002;

/// Describes the relations that are violated; empty if the record is consistent.
pub fn adds_up(record: &RunRecord) -> Vec<String> {
    let mut books = Books(Vec::new());
    books.verdict(record);
    if record.error.is_some() {
        books.nothing_was_measured(record);
    } else {
        books.counts(record);
        books.rates(record);
        books.latencies(record);
        books.series(record);
        books.parts(record);
        books.told(record);
    }
    books.0
}

struct Books(Vec<String>);

impl Books {
    fn holds(&mut self, relation: bool, what: &str) {
        if !relation {
            self.0.push(what.to_owned());
        }
    }

    fn close(&mut self, left: f64, right: f64, what: &str) {
        let near = (left - right).abs() <= 1e-6 * left.abs().max(right.abs()).max(1e-6);
        self.holds(near, &format!("{what}: {left} and {right}"));
    }

    fn verdict(&mut self, record: &RunRecord) {
        let verdict = &record.verdict;
        self.holds(verdict.valid == verdict.reasons.is_empty(), "valid is what has no reason against it");
        self.holds(verdict.reasons.iter().all(|found| !found.evidence.is_empty()), "each reason has its evidence");
        self.holds(record.error.is_some() == has(record, Reason::Failed), "failed is what has an error");
    }

    fn nothing_was_measured(&mut self, record: &RunRecord) {
        self.holds(record.counts == Default::default(), "a failed run has no counts");
        self.holds(record.rates == Default::default(), "a failed run has no rates");
        self.holds(record.times.latency.is_none() && record.histograms == TimeFigures::none(), "nor latencies");
        self.holds(record.server.is_none() && record.generator.is_none(), "nor usage");
    }

    fn counts(&mut self, record: &RunRecord) {
        let (counts, workload) = (&record.counts, &record.workload);
        self.holds(counts.offered == counts.sent + counts.not_sent, "offered = sent + not_sent");
        self.holds(counts.expected == counts.delivered + counts.lost, "expected = delivered + lost");
        self.holds(counts.acked <= counts.sent, "acked <= sent");
        self.holds(workload.qos > 0 || counts.acked == 0, "nothing is acknowledged at QoS 0");
        self.holds(counts.acked_lost <= Some(counts.lost), "acked_lost <= lost");
        self.holds(counts.unidentified <= counts.damaged(), "unidentified <= corrupted");
        self.holds(counts.late <= counts.delivered, "late <= delivered");
        self.holds(counts.reordered <= counts.delivered, "reordered <= delivered");
        if workload.publishers == workload.subscribers {
            self.holds(counts.expected == counts.sent, "in pairs, expected = sent");
            self.holds(counts.acked_lost <= Some(counts.acked), "in pairs, acked_lost <= acked");
        }
        if let (Some(profile), Extent::TimeNs(window_ns), Arrival::Uniform) =
            (workload.rate.profile(), workload.extent, workload.arrival)
        {
            self.holds(record.window_ns == window_ns, "the window is as long as was asked for");
            let due = profile.due_before(window_ns) * u64::from(workload.publishers);
            let each = u64::from(workload.publishers);
            self.holds(counts.offered.abs_diff(due) <= each, &format!("{due} messages were due in the window"));
        }
    }

    fn rates(&mut self, record: &RunRecord) {
        let (rates, counts) = (&record.rates, &record.counts);
        let per_s = |count: u64| count as f64 * SECOND as f64 / record.window_ns as f64;
        self.close(rates.offered_per_s, per_s(counts.offered), "offered_per_s");
        let in_window = record.workload.window_ns().map_or(counts.sent, |_| record.series.sent.iter().sum());
        self.close(rates.sent_per_s, per_s(in_window), "sent_per_s");
        self.close(
            rates.delivered_per_s,
            per_s(record.series.delivered.iter().sum()),
            "delivered_per_s and the series",
        );
        let bytes = rates.delivered_per_s * record.workload.payload_bytes as f64;
        self.close(rates.delivered_bytes_per_s, bytes, "delivered_bytes_per_s");
    }

    fn latencies(&mut self, record: &RunRecord) {
        let (counts, histograms) = (&record.counts, &record.histograms);
        let latency = self.histogram(&histograms.latency, &record.times.latency, "latency");
        let service = self.histogram(&histograms.service_latency, &record.times.service_latency, "service latency");
        let lag = self.histogram(&histograms.send_lag, &record.times.send_lag, "send lag");
        let own = self.histogram(&histograms.own_lag, &record.times.own_lag, "own lag");
        if record.workload.rate == Rate::Max {
            return;
        }
        let of = |histogram: &Option<Histogram>| histogram.as_ref().map_or(0, Histogram::count);
        if !has(record, Reason::Clock) {
            let sound = counts.delivered - (counts.damaged() - counts.unidentified);
            self.holds(of(&latency) == sound, &format!("{} latencies of {sound} sound deliveries", of(&latency)));
            self.holds(of(&service) == of(&latency), "a service latency for each latency");
        }
        self.holds(of(&lag) == counts.sent, &format!("{} lags of {} sent", of(&lag), counts.sent));
        self.holds(of(&own) == counts.sent, "an own lag for each message sent");
        self.above(&latency, &service, "latency counts from the intended time, which is the earlier");
        self.above(&lag, &own, "own lag is a part of the lag");
        let late = latency.iter().flat_map(|all| all.nonzero());
        let late: u64 = late.filter(|(ns, _)| *ns > record.workload.late_after_ns).map(|(_, count)| count).sum();
        self.holds(counts.late == late, "late is what the histogram has above the bound");
    }

    /// Reads a histogram, and checks that its summary agrees.
    fn histogram(&mut self, text: &Option<String>, summary: &Option<Summary>, what: &str) -> Option<Histogram> {
        let decoded = text.as_deref().map(Histogram::decode).transpose();
        let Ok(histogram) = decoded else {
            self.0.push(format!("the histogram of {what} cannot be read"));
            return None;
        };
        let mut again = histogram.as_ref().and_then(Histogram::summary);
        if let (Some(again), Some(all)) = (&mut again, summary) {
            // Decimal text is read back to the last bit but one.
            self.close(again.mean, all.mean, "the mean");
            self.close(again.stddev, all.stddev, "the deviation");
            (again.mean, again.stddev) = (all.mean, all.stddev);
        }
        self.holds(again == *summary, &format!("the summary of {what} is that of its histogram"));
        if let Some(all) = summary {
            let rising = [all.min, all.p50, all.p90, all.p95, all.p99, all.p999, all.max];
            self.holds(rising.is_sorted(), &format!("percentiles of {what} rise: {rising:?}"));
            let (least, most) = (all.min as f64 * (1.0 - PRECISION), all.max as f64 * (1.0 + PRECISION));
            self.holds((least..=most).contains(&all.mean), &format!("the mean of {what} lies within: {all:?}"));
        }
        histogram
    }

    /// Checks that each quantile of `larger` is at least that of `smaller`, with equal counts.
    fn above(&mut self, larger: &Option<Histogram>, smaller: &Option<Histogram>, what: &str) {
        let (Some(larger), Some(smaller)) = (larger, smaller) else { return };
        let holds = |at: f64| larger.value_at(at) as f64 * (1.0 + PRECISION) + 1.0 >= smaller.value_at(at) as f64;
        let same = larger.count() == smaller.count();
        self.holds(!same || [0.0, 0.25, 0.5, 0.9, 0.99, 1.0].into_iter().all(holds), what);
    }

    fn series(&mut self, record: &RunRecord) {
        let (series, workload) = (&record.series, &record.workload);
        let (sent, delivered): (u64, u64) = (series.sent.iter().sum(), series.delivered.iter().sum());
        if let (Some(profile), Arrival::Uniform) = (workload.rate.profile(), workload.arrival) {
            let due = profile.due_before(workload.warmup_ns + record.window_ns) + 1;
            let due = due * u64::from(workload.publishers);
            self.holds(sent <= due, &format!("{sent} sent in the window's time of {due} due until its end"));
            let copies = due * u64::from(workload.subscribers.max(1));
            self.holds(delivered <= copies, &format!("{delivered} arrived in the window's time of {copies}"));
        }
        let slices = record.window_ns.div_ceil(series.slice_ns.max(1)) as usize;
        let lengths = [series.sent.len(), series.delivered.len(), series.latency_p50_ns.len()];
        self.holds(lengths.iter().all(|length| *length <= slices), "no slice lies behind the window");
        self.holds(series.latency_p50_ns.len() == series.latency_max_ns.len(), "series are of one length");
        for slice in 0..series.latency_p50_ns.len() {
            let (p50, p99, max) =
                (series.latency_p50_ns[slice], series.latency_p99_ns[slice], series.latency_max_ns[slice]);
            self.holds(p50 <= p99 && p99 <= max, &format!("percentiles of slice {slice} rise"));
            let any = series.delivered.get(slice).is_some_and(|count| *count > 0);
            self.holds(max == 0 || any, &format!("slice {slice} has a latency and an arrival"));
            // Coarse histograms: 1 %.
            let whole = record.times.latency.as_ref().map_or(0, |all| all.max) as f64 * 1.02;
            self.holds(max as f64 <= whole, &format!("no slice has more than the whole: {max} of {whole}"));
        }
    }

    fn parts(&mut self, record: &RunRecord) {
        let within = |longest: Ns, at: Ns| longest <= record.window_ns && at <= record.window_ns;
        let stalls = record.stalls.unwrap_or_default();
        self.holds((stalls.count == 0) == (stalls.longest_ns == 0), "silences have a length");
        self.holds(within(stalls.longest_ns, stalls.longest_at_ns), "silences lie within the window");
        let [flow] = record.flows.as_slice() else { return self.holds(false, "a run has a flow") };
        let of_flow = (&flow.counts, &flow.rates, &flow.times, &flow.jitter_ns);
        let of_run = (&record.counts, &record.rates, &record.times, &record.jitter_ns);
        self.holds(of_flow == of_run, "the figures of a run with one flow are that flow's");
        for agent in &record.agents {
            let pauses = agent.pauses.unwrap_or_default();
            self.holds((pauses.count == 0) == (pauses.longest_ns == 0), "pauses have a length");
            self.holds(within(pauses.longest_ns, pauses.longest_at_ns), "pauses lie within the window");
        }
        let machine = &record.machine;
        let cores = f64::from(machine.cores);
        self.holds((0.0..=1.0).contains(&machine.steal), "steal is a share");
        self.holds(machine.foreign_cores >= 0.0, "others used no less than nothing");
        if let Some(generator) = &record.generator {
            let sum: f64 = record.agents.iter().map(|agent| agent.usage.cpu_s).sum();
            self.close(generator.cpu_s, sum, "the generator is its agents");
        }
        for usage in record.generator.iter().chain(&record.server) {
            self.holds(usage.cpu_cores <= cores * 1.1 + 0.1, &format!("{} of {cores} processors", usage.cpu_cores));
            self.holds(usage.user_s <= usage.cpu_s * 1.000_001, "time in user mode is a part");
            self.holds(usage.rss_bytes_median <= usage.rss_bytes_max, "the median is no more than the largest");
        }
        if let Some(connections) = &record.connections {
            let clients = u64::from(record.workload.publishers) + u64::from(record.workload.subscribers);
            self.holds(connections.wanted == clients, "each client wants a connection");
            self.holds(connections.opened <= connections.wanted, "opened <= wanted");
            self.holds(connections.reconnected <= connections.lost, "reconnected <= lost");
            self.holds(connections.retried <= connections.refused, "retried <= refused");
        }
    }

    /// Checks that the verdict names what the record shows.
    fn told(&mut self, record: &RunRecord) {
        let (counts, workload) = (&record.counts, &record.workload);
        let mut implies = |shown: bool, reason: Reason| {
            self.holds(!shown || has(record, reason), &format!("{reason} is told"));
        };
        implies(
            record.agents.iter().any(|agent| agent.pauses.is_some_and(|pauses| pauses.count > 0)),
            Reason::GeneratorSaturated,
        );
        implies((counts.sent as f64) < 0.999 * counts.offered as f64, Reason::OfferedRateMissed);
        implies(record.connections.as_ref().is_some_and(|connections| connections.lost > 0), Reason::ServerDied);
        implies(counts.damaged() > 0, Reason::Corrupted);
        let broker = record.connections.is_some();
        implies(broker && workload.qos > 0 && counts.lost > counts.unidentified, Reason::MessagesLost);
        implies(broker && workload.qos != 1 && counts.duplicated > 0, Reason::Duplicates);
        let few = record.times.latency.as_ref().map_or(0, |latency| latency.count) < 1_000;
        implies(workload.rate != Rate::Max && few, Reason::TooFewSamples);
    }
}

/// Returns whether the verdict has this reason.
pub fn has(record: &RunRecord, reason: Reason) -> bool {
    record.verdict.reasons.iter().any(|found| found.reason == reason)
}
