//! Steps in the latencies that a setting or a timer is known to leave: no
//! reason against the run, and nothing to take for the system's speed unsaid.

use super::found::words;
use pubmark_model::record::RunRecord;
use pubmark_model::units::{MILLISECOND, Ns, SECOND};
use pubmark_stats::{Artefact, ArtefactStep, Histogram, artefacts};
use serde_json::Value;

/// So far from a publisher's interval a tick is no longer it.
const INTERVAL: f64 = 0.02;

/// What a wait for a delayed acknowledgement, or what is left of it, makes of a latency, ns.
const WAITS: std::ops::Range<Ns> = 5 * MILLISECOND..48 * MILLISECOND;

/// From this share on they are noted, where a setting could be their cause.
const WAITS_SHARE: f64 = 0.05;

/// The steps that were found, in words.
pub fn found(record: &RunRecord) -> Vec<String> {
    let latency = record.histograms.latency.as_deref().and_then(|text| Histogram::decode(text).ok());
    let steps = latency.as_ref().map(artefacts).unwrap_or_default();
    if steps.is_empty() {
        return latency.and_then(|latency| left_on(&latency, record)).into_iter().collect();
    }
    steps.into_iter().filter_map(|step| in_words(step, record)).collect()
}

/// Where Nagle's algorithm is left on, latencies that could be its doing: several
/// waits on the way of a message, as at QoS 2, leave no step.
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
        // What waits for the next message of its publisher comes at intervals of those.
        Artefact::Timer(period_ns) if is_interval(period_ns, record) => None,
        Artefact::Timer(period_ns) => Some(format!(
            "{share} lie at multiples of {}, as where a timer of that period wakes what they wait for",
            words(period_ns)
        )),
    }
}

/// Whether a publisher's messages are due that far from each other.
fn is_interval(period_ns: Ns, record: &RunRecord) -> bool {
    let Some(profile) = record.workload.rate.profile() else { return false };
    let (slowest, fastest) = profile.per_ks().into_inner();
    let interval_ns = |per_ks: u64| 1e3 * SECOND as f64 / per_ks as f64;
    let (period, slack) = (period_ns as f64, INTERVAL * period_ns as f64);
    (interval_ns(fastest) - slack..=interval_ns(slowest) + slack).contains(&period)
}

/// The options that leave Nagle's algorithm on.
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
