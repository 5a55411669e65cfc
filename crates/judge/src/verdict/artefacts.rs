//! Steps in the latencies that a setting or a timer is known to leave: they are no reason against the run, but are
//! noted, so that they are not taken for the system's speed.

use super::finding::words;
use pubmark_model::record::RunRecord;
use pubmark_model::units::{MILLISECOND, Ns, SECOND};
use pubmark_stats::{Artefact, ArtefactStep, Histogram, artefacts};
use serde_json::Value;

/// Relative distance from a publisher's interval from which a timer's period is distinct from it.
const INTERVAL: f64 = 0.02;

/// Latencies that contain a wait for a delayed acknowledgement, or its remainder, ns.
const WAITS: std::ops::Range<Ns> = 5 * MILLISECOND..48 * MILLISECOND;

/// Share of such latencies from which they are noted, if a setting could be their cause.
const WAITS_SHARE: f64 = 0.05;

/// Describes the steps that were found.
pub fn found(record: &RunRecord) -> Vec<String> {
    let latency = record.histograms.latency.as_deref().and_then(|text| Histogram::decode(text).ok());
    let steps = latency.as_ref().map(artefacts).unwrap_or_default();
    if steps.is_empty() {
        return latency.and_then(|latency| left_on(&latency, record)).into_iter().collect();
    }
    steps.into_iter().filter_map(|step| in_words(step, record)).collect()
}

/// Describes latencies that Nagle's algorithm may cause if it is left on: several waits on the way of a message, as at
/// QoS 2, leave no step.
fn left_on(latency: &Histogram, record: &RunRecord) -> Option<String> {
    let off = nagle(record);
    let waited = latency.nonzero().filter(|(ns, _)| WAITS.contains(ns)).map(|(_, count)| count).sum::<u64>();
    let share = waited as f64 / latency.count().max(1) as f64;
    (!off.is_empty() && share >= WAITS_SHARE).then(|| {
        format!(
            "{:.1} % of the latencies lie between 5 and 48 ms, and {} leaves Nagle's algorithm on, which waits for \
             acknowledgements that are delayed by up to 40 ms",
            share * 100.0,
            off.join(", ")
        )
    })
}

fn in_words(step: ArtefactStep, record: &RunRecord) -> Option<String> {
    let share = format!("{:.1} % of the latencies", step.share * 100.0);
    match step.artefact {
        Artefact::DelayedAcknowledgement => Some(format!(
            "{share} lie in a step that ends at 40 ms, as where Nagle's algorithm waits for a delayed acknowledgement{}",
            nodelay(record)
        )),
        // Waits for the next message of a publisher last for its interval.
        Artefact::Timer(period_ns) if is_interval(period_ns, record) => None,
        Artefact::Timer(period_ns) => Some(format!(
            "{share} lie at multiples of {}, as where a timer of that period wakes what they wait for",
            words(period_ns)
        )),
    }
}

/// Returns whether a publisher's messages are due at this interval.
fn is_interval(period_ns: Ns, record: &RunRecord) -> bool {
    let Some(profile) = record.workload.rate.profile() else { return false };
    let (slowest, fastest) = profile.per_ks().into_inner();
    let interval_ns = |per_ks: u64| 1e3 * SECOND as f64 / per_ks as f64;
    let (period, slack) = (period_ns as f64, INTERVAL * period_ns as f64);
    (interval_ns(fastest) - slack..=interval_ns(slowest) + slack).contains(&period)
}

/// Returns the options that leave Nagle's algorithm on.
fn nagle(record: &RunRecord) -> Vec<String> {
    let off = record.options.iter().filter(|(name, value)| name.contains("nodelay") && **value == Value::Bool(false));
    off.map(|(name, _)| format!("options.{name} = false")).collect()
}

fn nodelay(record: &RunRecord) -> String {
    match nagle(record).as_slice() {
        [] => ": see whether TCP_NODELAY is set on both sides".into(),
        off => format!(": {} leaves it on", off.join(", ")),
    }
}
