//! What all clients of an agent measured, as one result.

use crate::ledger::Seen;
use crate::threads::Outcome;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use pubmark_model::protocol::{AgentResult, Seen as SeenBits, SliceSeries};
use pubmark_model::workload::Workload;
use pubmark_stats::Histogram;
use std::io::Write;

/// A histogram that comes into being with the first that is merged into it.
#[derive(Default)]
struct Merged(Option<Histogram>);

impl Merged {
    fn add(&mut self, other: &Histogram) {
        match &mut self.0 {
            None => self.0 = Some(other.clone()),
            Some(mine) => {
                let merged = mine.merge(other);
                debug_assert!(merged.is_ok(), "all histograms of a kind have the same precision");
            }
        }
    }

    fn encode(self) -> Option<String> {
        self.0.filter(|histogram| !histogram.is_empty()).map(|histogram| histogram.encode())
    }
}

fn add_slices(mine: &mut Vec<u64>, other: &[u64]) {
    if mine.len() < other.len() {
        mine.resize(other.len(), 0);
    }
    mine.iter_mut().zip(other).for_each(|(mine, other)| *mine += other);
}

fn encode_seen(publisher: u32, seen: &Seen, end: u64) -> SeenBits {
    let mut deflate = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::fast());
    // Writing into memory cannot fail.
    let bits = deflate.write_all(&seen.bytes(end)).and_then(|()| deflate.finish()).unwrap_or_default();
    SeenBits { publisher, bits: STANDARD.encode(bits) }
}

/// Merges what all clients measured.
pub fn merge(workload: &Workload, outcomes: Vec<Outcome>) -> AgentResult {
    let mut result = AgentResult::default();
    let (mut latency, mut service, mut send_lag, mut own_lag) =
        (Merged::default(), Merged::default(), Merged::default(), Merged::default());
    let mut slice_latency: Vec<Merged> = Vec::new();
    let mut series =
        SliceSeries { slice_ns: crate::window::Window::new(workload, 0).slice_ns, ..SliceSeries::default() };
    for outcome in outcomes {
        result.remarks.extend(outcome.remarks);
        if let Some(publisher) = &outcome.publisher {
            result.publishers.push(publisher.total());
            let (first, _) = publisher.send_span();
            result.first_sent_ns = [result.first_sent_ns, first].into_iter().flatten().min();
            add_slices(&mut series.sent, publisher.sent_slices());
            let (lag, own) = publisher.lags();
            lag.into_iter().for_each(|lag| send_lag.add(lag));
            own.into_iter().for_each(|own| own_lag.add(own));
        }
        if let Some(subscriber) = &outcome.subscriber {
            result.ledger.add(&subscriber.counts());
            let (arrived, last) = subscriber.arrivals();
            result.arrived += arrived;
            result.last_arrival_ns = result.last_arrival_ns.max(last);
            latency.add(subscriber.latencies().0);
            service.add(subscriber.latencies().1);
            let (sum, pairs) = subscriber.jitter();
            result.jitter_sum_ns += sum;
            result.jitter_pairs += pairs;
            let (counts, histograms) = subscriber.slices();
            add_slices(&mut series.delivered, counts);
            slice_latency.resize_with(slice_latency.len().max(histograms.len()), Merged::default);
            slice_latency.iter_mut().zip(histograms).for_each(|(mine, other)| mine.add(other));
            result.stalls.add(&subscriber.stalls());
            if workload.competing() {
                result
                    .seen
                    .extend(subscriber.seen().map(|(publisher, seen)| encode_seen(publisher, seen, seen.highest())));
            }
        }
    }
    result.publishers.sort_by_key(|total| total.publisher);
    series.latency = slice_latency.into_iter().map(|slice| slice.encode().unwrap_or_default()).collect();
    trim(&mut series);
    (result.latency, result.service_latency) = (latency.encode(), service.encode());
    (result.send_lag, result.own_lag) = (send_lag.encode(), own_lag.encode());
    result.series = series;
    result
}

/// Cuts the empty end of a series whose length nobody knew beforehand.
fn trim(series: &mut SliceSeries) {
    let used = |counts: &[u64]| counts.iter().rposition(|count| *count > 0).map_or(0, |last| last + 1);
    let length = used(&series.sent).max(used(&series.delivered));
    series.sent.truncate(length);
    series.delivered.truncate(length);
    series.latency.truncate(length);
}
