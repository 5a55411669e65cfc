//! Checks histograms of a result against their expected content.

use crate::bare::AllowedDelay;
use crate::course::Stop;
use crate::wrong::{CaseFailure, due};
use pubmark_model::protocol::{AgentResult, Features, FlowResult, PackedHistogram, Stalls};
use pubmark_model::units::{MILLISECOND, Ns, format_time};
use pubmark_model::workload::Workload;
use pubmark_stats::Histogram;
use std::ops::RangeInclusive;
use std::time::Duration;

/// Upper limit of the median time for a message, a wake-up or a clock reading on a machine that is also busy otherwise.
/// Times that cases distinguish are several times as long.
pub const SLACK: Ns = 40 * MILLISECOND;

/// Length of an agent's stop. Its `pauses` may differ: it checks only sometimes, and the machine may delay it.
pub const STOP: Duration = Duration::from_millis(400);
const STOP_SEEN: RangeInclusive<Ns> = 250 * MILLISECOND..=600 * MILLISECOND;

/// Checks that an agent that promises to report its pauses has reported that of [`STOP`].
pub fn paused(features: &Features, agent: &AgentResult) -> Result<(), CaseFailure> {
    let Some(pauses) = pauses(features, agent)? else { return Ok(()) };
    due(pauses.count >= 1 && STOP_SEEN.contains(&pauses.longest_ns), || {
        format!(
            "it was stopped for {} ms; `pauses` says {} of {} ms at most",
            STOP.as_millis(),
            pauses.count,
            pauses.longest_ns / MILLISECOND
        )
    })
}

/// Checks that it has reported these stops: their number, and length and instant of the longest.
pub fn paused_for(features: &Features, agent: &AgentResult, stops: &[Stop], window_ns: Ns) -> Result<(), CaseFailure> {
    let Some(pauses) = pauses(features, agent)? else { return Ok(()) };
    let within = |stop: &Stop| stop.length_ns().min(window_ns.saturating_sub(stop.at_ns));
    let Some(longest) = stops.iter().max_by_key(|stop| within(stop)) else { return Ok(()) };
    let (length, slack) = (within(longest), STOP.as_nanos() as Ns / 2);
    let told = pauses.count >= stops.len() as u64 && pauses.longest_ns.abs_diff(length) <= slack;
    due(told && pauses.longest_at_ns.abs_diff(longest.at_ns) <= slack, || {
        format!(
            "it was stopped {} times, the longest for {} from {} of the window on; `pauses` says {} times, {} from {} on",
            stops.len(),
            format_time(length),
            format_time(longest.at_ns),
            pauses.count,
            format_time(pauses.longest_ns),
            format_time(pauses.longest_at_ns)
        )
    })
}

fn pauses(features: &Features, agent: &AgentResult) -> Result<Option<Stalls>, CaseFailure> {
    match features.pauses {
        false => Ok(None),
        true => {
            agent.pauses.map(Some).ok_or_else(|| CaseFailure::did("its `hello` says `pauses`, and its result has none"))
        }
    }
}

/// Reads a histogram of a result.
pub fn read(name: &str, packed: Option<&PackedHistogram>) -> Result<Histogram, CaseFailure> {
    let packed = packed.ok_or_else(|| CaseFailure::did(format!("`{name}` is null, though there are values for it")))?;
    packed.read(PackedHistogram::DIGITS).map_err(|error| CaseFailure::did(format!("`{name}`: {error}")))
}

/// Checks that a histogram has this many values.
pub fn counts(name: &str, histogram: &Histogram, count: u64) -> Result<(), CaseFailure> {
    due(histogram.count() == count, || format!("`{name}` holds {} values, not {count}", histogram.count()))
}

/// A time that a histogram should hold, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TimeDue {
    /// Value by the message's header …
    pub said_ns: Ns,
    /// … and by the instant at which it was really sent: it cannot be less.
    pub least_ns: Ns,
}

/// Number of equal times from which quartiles are checked.
const QUARTILES: usize = 8;

/// Checks that a histogram holds these times, none of them shorter. Messages with the same time in their headers form a
/// group: its quantiles up to the median may be longer by the transit time of bare messages; of a small group only the
/// minimum is checked. If the machine delayed many, only the first group is checked.
pub fn holds(name: &str, histogram: &Histogram, truth: &[TimeDue], late: &AllowedDelay) -> Result<(), CaseFailure> {
    counts(name, histogram, truth.len() as u64)?;
    let mut sorted = truth.to_vec();
    sorted.sort_unstable();
    let mut first = 0;
    for group in sorted.chunk_by(|one, other| one.said_ns == other.said_ns) {
        let mut least: Vec<Ns> = group.iter().map(|due| due.least_ns).collect();
        least.sort_unstable();
        let many = group.len() >= QUARTILES;
        for quantile in late.quantiles().take(if many { usize::MAX } else { 1 }) {
            let place = (group.len() as f64 * quantile) as usize;
            let said = histogram.value_at(((first + place) as f64 + 0.5) / sorted.len() as f64);
            let (wanted, allowed) = (least[place], if many { late.at(quantile) } else { late.single() });
            // Delayed messages of earlier groups are in this one as well.
            let allowed = if first > 0 && late.blurred() { Ns::MAX / 2 } else { allowed };
            // A histogram of 3 digits rounds by up to a thousandth.
            due((wanted - wanted / 500..=wanted + wanted / 500 + allowed).contains(&said), || {
                format!(
                    "p{} of {} times of `{name}` is {}; it was {} when sent and at most {} more on the way ({late})",
                    quantile * 100.0,
                    group.len(),
                    format_time(said),
                    format_time(wanted),
                    format_time(allowed)
                )
            })?;
        }
        first += group.len();
    }
    Ok(())
}

/// Quantiles at which a histogram of distinct times is checked.
const SPREAD: [f64; 6] = [0.0, 0.25, 0.5, 0.75, 0.9, 1.0];

/// Checks that a histogram holds these times, none of them shorter, and none longer than a single message may be.
pub fn longer(
    name: &str,
    histogram: &Histogram,
    least: impl Iterator<Item = Ns>,
    late: &AllowedDelay,
) -> Result<(), CaseFailure> {
    let mut least: Vec<Ns> = least.collect();
    least.sort_unstable();
    counts(name, histogram, least.len() as u64)?;
    for quantile in SPREAD {
        let place = ((least.len() as f64 * quantile) as usize).min(least.len().saturating_sub(1));
        let said = histogram.value_at((place as f64 + 0.5) / least.len() as f64);
        let wanted = least.get(place).copied().unwrap_or_default();
        due((wanted - wanted / 500..=wanted + wanted / 500 + late.single()).contains(&said), || {
            format!(
                "p{} of `{name}` is {}; it was {}, and at most {} more on the way",
                quantile * 100.0,
                format_time(said),
                format_time(wanted),
                format_time(late.single())
            )
        })?;
    }
    Ok(())
}

/// Checks that the mean of one histogram is longer than that of another by this time: both are of the same messages.
pub fn apart(
    (longer, of_longer): (&str, &Histogram),
    (shorter, of_shorter): (&str, &Histogram),
    wanted_ns: f64,
) -> Result<(), CaseFailure> {
    let apart = of_longer.mean() - of_shorter.mean();
    // Each value is rounded by less than a two-thousandth, one way or the other.
    let rounding = of_longer.mean() / 700.0 + 2_000.0;
    due((apart - wanted_ns).abs() <= rounding, || {
        format!(
            "by the messages `{longer}` is {} more than `{shorter}` at the mean; by its result it is {apart:.0} ns",
            format_time(wanted_ns.max(0.0) as Ns)
        )
    })
}

/// Quantiles at which two histograms are compared.
const QUANTILES: [f64; 7] = [0.0, 0.25, 0.5, 0.75, 0.9, 0.99, 1.0];

/// Checks that no quantile of one histogram is above that of another.
fn below((lesser, less): (&str, &Histogram), (greater, more): (&str, &Histogram)) -> Result<(), CaseFailure> {
    counts(lesser, less, more.count())?;
    for quantile in QUANTILES {
        let (least, most) = (less.value_at(quantile.max(1e-9)), more.value_at(quantile.max(1e-9)));
        due(least <= most + most / 500 + 2, || {
            format!(
                "`{lesser}` is {} at p{}, and `{greater}`, of which it is a part, is {}",
                format_time(least),
                quantile * 100.0,
                format_time(most)
            )
        })?;
    }
    Ok(())
}

/// Checks that the figures of a flow's result agree with each other.
pub fn agree(flow: &FlowResult, workload: &Workload) -> Result<(), CaseFailure> {
    let named = &flow.histograms;
    let histogram =
        |name, packed: &Option<PackedHistogram>| packed.as_ref().map(|some| read(name, Some(some))).transpose();
    let (latency, intended) =
        (histogram("latency", &named.latency)?, histogram("intended_latency", &named.intended_latency)?);
    let service = histogram("service_latency", &named.service_latency)?;
    let (send, own) = (histogram("send_lag", &named.send_lag)?, histogram("own_lag", &named.own_lag)?);
    let (ledger, series) = (flow.ledger, &flow.series);
    due(latency.is_some() == intended.is_some(), || "of `latency` and `intended_latency` it has one".into())?;
    if let (Some(latency), Some(intended)) = (&latency, &intended) {
        below(("latency", latency), ("intended_latency", intended))?;
        if let Some(service) = &service {
            below(("service_latency", service), ("latency", latency))?;
        }
        let damaged = ledger.corrupted.saturating_sub(ledger.unidentified);
        let measured = ledger.delivered.saturating_sub(damaged + ledger.negative);
        if !workload.pattern.echoed() {
            counts("latency", latency, measured)?;
        }
        due(flow.jitter_pairs <= latency.count(), || {
            format!("`jitter_pairs` is {}, of {} latencies", flow.jitter_pairs, latency.count())
        })?;
    }
    if let (Some(own), Some(send)) = (&own, &send) {
        below(("own_lag", own), ("send_lag", send))?;
        let sent = flow.publishers.iter().map(|total| total.window_end - total.window_first).sum();
        counts("send_lag", send, sent)?;
    }
    let delivered = series.delivered.iter().sum::<u64>();
    due(delivered == flow.arrived, || {
        format!("`arrived` is {}, and `series.delivered` adds up to {delivered}", flow.arrived)
    })?;
    for (at, packed) in series.latency.iter().enumerate() {
        let Some(packed) = packed else { continue };
        let of_slice = packed.read(PackedHistogram::SLICE_DIGITS);
        let of_slice = of_slice.map_err(|error| CaseFailure::did(format!("`series.latency[{at}]`: {error}")))?.count();
        let arrived = series.delivered.get(at).copied().unwrap_or(0);
        due(workload.pattern.echoed() || of_slice <= arrived, || {
            format!("`series.latency[{at}]` holds {of_slice} values, of {arrived} messages")
        })?;
    }
    due(workload.competing() || ledger.delivered <= ledger.expected, || {
        format!("{} messages were expected, and {} delivered", ledger.expected, ledger.delivered)
    })?;
    due(ledger.unidentified <= ledger.corrupted, || format!("its ledger does not add up: {ledger:?}"))
}
