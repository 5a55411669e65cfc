//! Merges what all clients of an agent measured into one result.

use crate::ledger::SeenSequences;
use crate::publisher::{Outgoing, Publisher, SendRecorder};
use crate::subscriber::{IncomingStreams, ReceiveRecorder, Subscriber, Totals, WillRecord};
use crate::window::Window;
use pubmark_model::churn::{ChurnCounts, ConnectTimes};
use pubmark_model::counts::{ByteCounts, add_refusals};
use pubmark_model::protocol::{
    AgentResult, ChurnResult, ConnectionEnd, FlowResult, OWN_FIGURES_MAX, PackedHistogram, PublisherTotal, Ranges,
    SeenBits, SliceSeries, Stalls, SubscriberFigures,
};
use pubmark_model::rebalances::Rebalances;
use pubmark_model::times::TimeFigures;
use pubmark_model::units::Ns;
use pubmark_model::workload::Workload;
use pubmark_stats::Histogram;
use std::collections::BTreeMap;

/// Counts a time in a histogram that is made with the first one: an agent has many kinds of times, and few of them in a
/// run.
pub fn record_in(times: &mut Option<Histogram>, ns: Ns) {
    times.get_or_insert_with(Histogram::latency).record(ns);
}

/// Adds a histogram; the first one becomes the sum.
fn add(all: &mut Option<Histogram>, other: &Histogram) {
    match all {
        None => *all = Some(other.clone()),
        Some(all) => {
            let merged = all.merge(other);
            debug_assert!(merged.is_ok(), "all histograms of a kind have the same precision");
        }
    }
}

fn packed(histogram: Option<Histogram>) -> Option<PackedHistogram> {
    histogram.as_ref().filter(|histogram| !histogram.is_empty()).map(PackedHistogram::of)
}

fn add_slices(mine: &mut Vec<u64>, other: &[u64]) {
    if mine.len() < other.len() {
        mine.resize(other.len(), 0);
    }
    mine.iter_mut().zip(other).for_each(|(mine, other)| *mine += other);
}

/// The measurements of one thread's clients.
#[derive(Default)]
pub struct ThreadOutcome {
    /// Messages sent, by publisher.
    pub totals: Vec<PublisherTotal>,
    /// Times of the sends.
    pub sends: Option<SendRecorder>,
    /// Bytes of the window's messages that were sent, if their sizes vary.
    pub sent_bytes: u64,
    /// Messages of the window that were sent and not acknowledged (QoS 1 and 2).
    pub unacked: Ranges,
    /// The unacknowledged messages that the server refused, at any quality of service.
    pub refused: Ranges,
    /// Limits of its own that the server reported.
    pub limits_reached: Vec<String>,
    /// Violations of the protocol by the server, by statement.
    pub violations: BTreeMap<&'static str, u64>,
    /// Times and counts of the arrivals.
    pub receipts: Option<ReceiveRecorder>,
    /// Rebalances of the group that these subscribers are members of.
    pub rebalances: Option<Rebalances>,
    /// The subscriber whose arrivals these are, if it is only one.
    pub subscriber: Option<u32>,
    /// Connections of publishers with last wills that ended without a goodbye after they had sent everything.
    pub ends: Vec<ConnectionEnd>,
    /// Messages of the window that did not arrive (QoS 1 and 2).
    pub missing: Ranges,
    /// Sequences that competing subscribers received, by publisher.
    pub seen: Vec<(u32, SeenSequences)>,
    /// Connection times and attempts.
    pub connections: Option<Connecting>,
    /// Clients that came and went.
    pub churn: Option<Box<Churned>>,
    /// The server's name and version, as it reports them.
    pub server: Option<String>,
    /// Remarks for the verdict.
    pub remarks: Vec<String>,
}

/// Times and counts of the connections to a broker.
pub struct Connecting {
    /// Times from the beginning of a client's last attempt on, ns.
    pub times: ConnectTimes<Option<Histogram>>,
    /// Time from the loss of a connection until its client was back, ns.
    pub back: Option<Histogram>,
    /// Counts and times for the protocol.
    pub counts: pubmark_model::protocol::Connections,
    /// Error of the first attempt that failed.
    pub first_error: Option<String>,
    /// Cause of the first connection loss.
    pub first_loss: Option<String>,
    /// Version and cipher suite of the first client's TLS.
    pub tls: Option<(String, String)>,
}

/// Counts and times of clients that came and went.
#[derive(Default)]
pub struct Churned {
    /// Their counts.
    pub counts: ChurnCounts,
    /// Their times, ns: to connect from the due time on, without the generator delay.
    pub times: ConnectTimes<Option<Histogram>>,
    /// The generator delay of each, ns.
    pub own_lag: Option<Histogram>,
    /// Error of the first one that failed.
    pub first_error: Option<String>,
}

impl Churned {
    fn result(self) -> ChurnResult {
        let Churned { counts, times, own_lag, first_error } = self;
        ChurnResult { counts, first_error, times: times.map(packed), own_lag: packed(own_lag) }
    }
}

impl ThreadOutcome {
    /// Collects the results of publishers that share a recorder.
    pub fn of_outgoing(outgoing: &[Outgoing], recorder: SendRecorder) -> ThreadOutcome {
        let mut unacked = Ranges::default();
        unacked.extend(outgoing.iter().flat_map(Outgoing::unacknowledged));
        let mut refused = Ranges::default();
        refused.extend(outgoing.iter().flat_map(Outgoing::refused_messages));
        ThreadOutcome {
            totals: outgoing.iter().map(Outgoing::total).collect(),
            sends: Some(recorder),
            sent_bytes: outgoing.iter().map(Outgoing::sent_bytes).fold(0, u64::saturating_add),
            unacked,
            refused,
            remarks: outgoing.iter().filter_map(Outgoing::exhausted).collect(),
            ..ThreadOutcome::default()
        }
    }

    /// Collects the results of subscribers that share a recorder, and closes their
    /// ledgers.
    pub fn of_incoming(
        incoming: Vec<IncomingStreams>,
        mut recorder: ReceiveRecorder,
        totals: &Totals,
        workload: &Workload,
    ) -> ThreadOutcome {
        let mut outcome = ThreadOutcome::default();
        for mut one in incoming {
            one.close(&mut recorder, totals);
            if workload.qos > 0 && !workload.is_divided() {
                outcome.missing.extend(one.missing(totals));
            }
            if workload.is_divided() {
                outcome.seen.extend(one.into_seen());
            }
        }
        if recorder.too_late() > 0 {
            let count = recorder.too_late();
            outcome.remarks.push(format!("{count} messages came when the drain was over: they count as lost"));
        }
        outcome.receipts = Some(recorder);
        outcome
    }

    /// Collects the results of one publisher with its own recorder.
    pub fn of_publisher(publisher: Publisher) -> ThreadOutcome {
        let (outgoing, recorder) = publisher.into_parts();
        ThreadOutcome::of_outgoing(&[outgoing], recorder)
    }

    /// Collects the results of one subscriber with its own recorder.
    pub fn of_subscriber(subscriber: Subscriber, totals: &Totals, workload: &Workload) -> ThreadOutcome {
        let (incoming, recorder) = subscriber.into_parts();
        ThreadOutcome::of_incoming(vec![incoming], recorder, totals, workload)
    }

    /// Adds the other direction of a client that sends and receives.
    pub fn with(mut self, other: ThreadOutcome) -> ThreadOutcome {
        self.receipts = self.receipts.or(other.receipts);
        self.seen.extend(other.seen);
        self.missing.add(other.missing);
        self.remarks.extend(other.remarks);
        self
    }
}

/// Merges what all clients measured, for the flow that they play and for their
/// connections.
pub fn merge(workload: &Workload, outcomes: Vec<ThreadOutcome>) -> AgentResult {
    let mut result = AgentResult::default();
    let mut flow = FlowResult { stalls: Some(Stalls::default()), ..FlowResult::default() };
    let (mut sent_before, mut arrived_before) = (0, 0);
    let mut times = TimeFigures::none();
    let mut add_times = |more: &TimeFigures<Option<Histogram>>| {
        let added = times.add(more);
        debug_assert!(added.is_ok(), "all histograms of a kind have the same precision");
    };
    let (mut connect, mut handshake, mut subscribe, mut reconnect) = (None, None, None, None);
    let mut slice_latency: Vec<Option<Histogram>> = Vec::new();
    let mut series = SliceSeries { slice_ns: Window::new(workload, 0).slice_ns, ..SliceSeries::default() };
    // Competing subscribers share what arrives.
    let tells_each = (2..=OWN_FIGURES_MAX).contains(&workload.subscribers) && !workload.is_divided();
    let mut bytes = ByteCounts::default();
    let mut wills: Option<WillRecord> = None;
    for mut outcome in outcomes {
        result.remarks.extend(outcome.remarks);
        bytes.sent = bytes.sent.saturating_add(outcome.sent_bytes);
        flow.publishers.extend(outcome.totals);
        flow.unacked.add(outcome.unacked);
        flow.refused.add(outcome.refused);
        flow.ends.extend(outcome.ends);
        for limit in outcome.limits_reached {
            if !result.limits_reached.contains(&limit) {
                result.limits_reached.push(limit);
            }
        }
        for (statement, count) in outcome.violations {
            let known = result.violations.entry(statement.to_owned()).or_default();
            *known = known.saturating_add(count);
        }
        flow.missing.add(outcome.missing);
        flow.churn = flow.churn.or(outcome.churn.map(|churned| Box::new(churned.result())));
        let seen = outcome.seen.iter().map(|(publisher, seen)| (*publisher, seen.bytes(seen.highest())));
        flow.seen.extend(seen.map(|(publisher, bits)| SeenBits::of(publisher, &bits)));
        if let Some(sends) = &outcome.sends {
            let (first, last) = sends.send_span();
            flow.first_sent_ns = [flow.first_sent_ns, first].into_iter().flatten().min();
            flow.last_sent_ns = flow.last_sent_ns.max(first.map(|_| last));
            flow.acked += sends.acked();
            add_refusals(&mut flow.refusals, &sends.refusals());
            add_slices(&mut series.sent, sends.sent_slices());
            sent_before += sends.sent_before();
            if let Some(pacing) = sends.pacing() {
                flow.pacing.get_or_insert_default().add(&pacing);
            }
            add_times(sends.times());
        }
        if let Some(receipts) = &mut outcome.receipts {
            if let Some(subscriber) = outcome.subscriber.filter(|_| tells_each) {
                let latency_ns = receipts.times().latency.as_ref().and_then(Histogram::summary);
                flow.subscribers.push(SubscriberFigures { subscriber, ledger: receipts.counts(), latency_ns });
            }
            flow.ledger.add(&receipts.counts());
            let (arrived, last) = receipts.arrivals();
            flow.arrived += arrived;
            arrived_before += receipts.arrived_before();
            if let Some(caught_up) = receipts.catch_up() {
                flow.catch_up.iter_mut().for_each(|all| all.add(&caught_up));
                flow.catch_up.get_or_insert(caught_up);
            }
            if let Some(record) = receipts.wills() {
                wills.get_or_insert_default().add(record);
            }
            bytes.add(&receipts.bytes());
            flow.last_arrival_ns = flow.last_arrival_ns.max(last);
            add_times(receipts.times());
            let (sum, pairs) = receipts.jitter();
            flow.jitter_sum_ns += sum;
            flow.jitter_pairs += pairs;
            let (counts, histograms) = receipts.slices();
            add_slices(&mut series.delivered, counts);
            slice_latency.resize_with(slice_latency.len().max(histograms.len()), || None);
            slice_latency.iter_mut().zip(histograms).for_each(|(mine, other)| add(mine, other));
            flow.stalls.get_or_insert_default().add(&receipts.stalls());
        }
        if let Some(seen) = outcome.rebalances {
            flow.rebalances.iter_mut().for_each(|all| all.add(&seen));
            flow.rebalances.get_or_insert(seen);
        }
        if let Some(server) = outcome.server {
            result.versions.insert("server".into(), server.into());
        }
        if let Some(connecting) = outcome.connections {
            for (all, one) in [
                (&mut connect, &connecting.times.connect),
                (&mut handshake, &connecting.times.tls_handshake),
                (&mut subscribe, &connecting.times.subscribe),
                (&mut reconnect, &connecting.back),
            ] {
                one.iter().for_each(|one| add(all, one));
            }
            result.connections.get_or_insert_default().add(&connecting.counts);
            result.connect_error = result.connect_error.or(connecting.first_error);
            result.connection_loss = result.connection_loss.or(connecting.first_loss);
            if let Some((version, cipher)) = connecting.tls {
                let negotiated = [("tls_version", version), ("tls_cipher", cipher)];
                result.applied.extend(negotiated.map(|(name, value)| (name.to_owned(), value.into())));
            }
        }
    }
    flow.wills = wills.map(|wills| Box::new(wills.result(packed)));
    flow.bytes = workload.sizes_vary().then_some(bytes);
    (flow.sent_before, flow.arrived_before) = (Some(sent_before), Some(arrived_before));
    flow.publishers.sort_by_key(|total| total.publisher);
    series.latency = slice_latency.into_iter().map(packed).collect();
    trim(&mut series);
    flow.histograms = times.map(packed);
    flow.series = series;
    (result.connect_time, result.reconnect_time) = (packed(connect), packed(reconnect));
    (result.tls_handshake_time, result.subscribe_time) = (packed(handshake), packed(subscribe));
    result.flows = vec![flow];
    result
}

/// Cuts off the empty end of a series whose length was not known beforehand.
fn trim(series: &mut SliceSeries) {
    let used = |counts: &[u64]| counts.iter().rposition(|count| *count > 0).map_or(0, |last| last + 1);
    let length = used(&series.sent).max(used(&series.delivered));
    series.sent.truncate(length);
    series.delivered.truncate(length);
    series.latency.truncate(length);
}
