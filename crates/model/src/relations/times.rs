//! Relations between times.

use super::part::{Part, hold};
use crate::protocol::{FlowHistograms, FlowResult, Stalls};
use crate::schedule::DueCount;
use crate::units::{MILLISECOND, Ns};
use crate::workload::Extent;
use pubmark_stats::Histogram;

/// Tolerance for clocks of several hosts beyond their measured difference.
const CLOCKS: Ns = 100 * MILLISECOND;

/// Tolerance for figures that the kernel splits by clock ticks: several ticks.
const TICKS: Ns = 40 * MILLISECOND;

/// Returns the upper end of a histogram value, which has 3 digits.
fn above(ns: Ns) -> Ns {
    ns.saturating_add(ns / 500).saturating_add(1)
}

/// Checks that `latency` has one time for each message that was delivered with a sound body and not
/// before it was due.
pub fn latency_count(part: &Part<'_>, flow: &FlowResult, histograms: &FlowHistograms) -> Result<(), String> {
    let found = histograms.count(|times| &times.latency);
    if !part.workload.measures_latency() {
        return hold(found == 0, || format!("`latency` has {found} times, but none is measured at this rate"));
    }
    let ledger = &flow.ledger;
    let echoed = part.workload.pattern.echoed();
    // Only the publisher that receives the echoes measures.
    let came = match echoed {
        true => Part::sent_in_window(flow).saturating_sub(ledger.unanswered),
        false => ledger.delivered,
    };
    let damaged = ledger.corrupted.saturating_sub(ledger.unidentified);
    let unmeasured = damaged.saturating_add(ledger.negative);
    // Some agents count damage to a second copy, which affects no latency.
    let of_copies = damaged.min(ledger.duplicated);
    // Negative times of other clients cannot be distinguished from those of echoes.
    let most_unmeasured = if echoed && part.hears() { ledger.negative } else { unmeasured - of_copies };
    // A message that was never sent, or is due after a count's nominal length, may have been
    // measured or not. The same holds for messages at the window's edges if clocks differ.
    let doubtful = if part.is_spread { u64::MAX } else { ledger.unidentified };
    let most = came.saturating_sub(most_unmeasured).saturating_add(doubtful);
    let least = came.saturating_sub(unmeasured).saturating_sub(doubtful).saturating_sub(beyond(part));
    hold((least..=most).contains(&found), || {
        let negative = ledger.negative;
        format!(
            "`latency` has {found} times, but {came} messages came, {damaged} with a wrong body and {negative} before they were due"
        )
    })
}

/// Returns the messages of a count that are due after its nominal length, over all publishers that
/// the clients receive from.
fn beyond(part: &Part<'_>) -> u64 {
    match part.workload.extent {
        Extent::TimeNs(_) => 0,
        Extent::Count(_) => part.over_heard(|total| {
            let planned = part.workload.rate.profile();
            let planned =
                planned.and_then(|profile| DueCount::of(part.workload, profile, total.publisher, (Ns::MAX, Ns::MAX)));
            planned.map_or(u64::MAX, |planned| planned.beyond)
        }),
    }
}

/// Checks that each message with a latency also has one from its due time. The other times may be
/// missing: a short message does not carry its send time.
pub fn arrival_times(_: &Part<'_>, _: &FlowResult, histograms: &FlowHistograms) -> Result<(), String> {
    let latency = histograms.count(|times| &times.latency);
    let intended = histograms.count(|times| &times.intended_latency);
    hold(intended == latency, || format!("`intended_latency` has {intended} times, but `latency` has {latency}"))?;
    let service = histograms.count(|times| &times.service_latency);
    hold(service <= latency, || format!("`service_latency` has {service} times, but `latency` has {latency}"))?;
    let receive = histograms.count(|times| &times.receive_lag);
    hold(receive <= latency, || format!("`receive_lag` has {receive} times, but `latency` has {latency}"))?;
    let of = &histograms.times;
    let legs = [&of.request_latency, &of.reply_latency, &of.replier_time];
    let legs = legs.map(|times| times.as_ref().map_or(0, Histogram::count));
    hold(legs[0] <= latency && legs.iter().all(|count| *count == legs[0]), || {
        format!(
            "`request_latency`, `reply_latency` and `replier_time` have {legs:?} times, but `latency` has {latency}"
        )
    })
}

/// Checks that each message that was sent in the window has a send lag, and a generator delay if
/// the agent supports it.
pub fn send_lag_count(part: &Part<'_>, flow: &FlowResult, histograms: &FlowHistograms) -> Result<(), String> {
    let is_due = part.workload.rate.profile().is_some();
    let sent = if is_due { Part::sent_in_window(flow) } else { 0 };
    for (name, times) in [("send_lag", &histograms.times.send_lag), ("own_lag", &histograms.times.own_lag)] {
        let Some(times) = times.as_ref().filter(|times| name == "send_lag" || !times.is_empty()) else {
            hold(name != "send_lag" || sent == 0, || format!("`send_lag` is null, but {sent} messages were sent"))?;
            continue;
        };
        let found = times.count();
        // A killed client may have times of messages that were not handed over completely.
        hold(found == sent || part.killed_ns.is_some() && found > sent, || {
            format!("`{name}` has {found} times, but {sent} messages were sent in the window")
        })?;
    }
    Ok(())
}

/// Checks the order of latencies: the headline excludes the generator delay and includes the time
/// that the system made the publisher wait, so it lies between the other two for each message.
pub fn latency_order(_: &Part<'_>, _: &FlowResult, histograms: &FlowHistograms) -> Result<(), String> {
    let times = &histograms.times;
    ordered(("latency", &times.latency), ("intended_latency", &times.intended_latency))?;
    ordered(("service_latency", &times.service_latency), ("latency", &times.latency))
}

/// Checks that the generator delay is a part of the send lag.
pub fn lag_order(_: &Part<'_>, _: &FlowResult, histograms: &FlowHistograms) -> Result<(), String> {
    ordered(("own_lag", &histograms.times.own_lag), ("send_lag", &histograms.times.send_lag))
}

/// Checks that only acknowledged messages have a time to acknowledgement.
pub fn ack_count(_: &Part<'_>, flow: &FlowResult, histograms: &FlowHistograms) -> Result<(), String> {
    let (found, acked) = (histograms.count(|times| &times.ack_latency), flow.acked);
    hold(found <= acked, || format!("`ack_latency` has {found} times, but {acked} messages were acknowledged"))
}

/// Checks two times of the same messages of which the first is never greater than the second; then
/// it is not greater at any rank.
fn ordered(
    (lesser, low): (&str, &Option<Histogram>),
    (greater, high): (&str, &Option<Histogram>),
) -> Result<(), String> {
    let (Some(low), Some(high)) = (low, high) else { return Ok(()) };
    if low.count() != high.count() {
        return Ok(());
    }
    let mut upper = high.nonzero();
    let (mut rank, mut upper_ns, mut upper_rank) = (0, 0, 0);
    for (lower_ns, count) in low.nonzero() {
        // The first value of this bucket corresponds to the value of the same rank.
        while upper_rank <= rank {
            let Some((ns, count)) = upper.next() else { return Ok(()) };
            (upper_ns, upper_rank) = (ns, upper_rank + count);
        }
        hold(lower_ns <= above(upper_ns), || {
            let percentile = rank as f64 * 100.0 / low.count() as f64;
            format!("`{lesser}` is {lower_ns} ns at the {percentile:.1}th percentile, but `{greater}` is {upper_ns} ns")
        })?;
        rank += count;
    }
    Ok(())
}

/// Checks jitter, which consists of differences of latencies, at most one for each message.
pub fn jitter(part: &Part<'_>, flow: &FlowResult, histograms: &FlowHistograms) -> Result<(), String> {
    let (pairs, latencies) = (flow.jitter_pairs, histograms.count(|times| &times.latency));
    hold(pairs <= latencies, || format!("`jitter_pairs` is {pairs}, but `latency` has {latencies} times"))?;
    let sum = flow.jitter_sum_ns;
    hold(sum.is_finite() && sum >= 0.0, || format!("`jitter_sum_ns` is {sum}, which no sum of differences is"))?;
    // The first message of each stream may be compared with one of the warm-up.
    let Some(handed_in_ns) = part.span.handed_in_ns else { return Ok(()) };
    let longest = histograms.times.latency.as_ref().map_or(0, Histogram::max);
    let streams = part.heard().map(|(first, end)| u64::from(end.saturating_sub(first))).fold(1, u64::saturating_add);
    let run_ns = handed_in_ns.saturating_sub(part.span.start_ns);
    let most = pairs as f64 * above(longest) as f64 + streams as f64 * run_ns as f64;
    hold(sum <= most, || {
        format!("`jitter_sum_ns` is {sum:.0}, but {pairs} differences of latencies up to {longest} ns make {most:.0}")
    })
}

/// Checks that the first send and the last arrival lie within the run.
pub fn instants(part: &Part<'_>, flow: &FlowResult, _: &FlowHistograms) -> Result<(), String> {
    let slack = if part.is_spread { CLOCKS } else { 0 };
    let (from_ns, start_ns) = (part.span.from_ns, part.span.start_ns);
    let until_ns = part.span.handed_in_ns.map_or(Ns::MAX, |ns| ns.saturating_add(slack));
    // No message of the window is sent, or arrives, before the window begins.
    let instants = [
        ("first_sent_ns", flow.first_sent_ns),
        ("last_sent_ns", flow.last_sent_ns),
        ("last_arrival_ns", flow.last_arrival_ns),
    ];
    for (name, at_ns) in instants {
        let Some(at_ns) = at_ns else { continue };
        let is_within = at_ns.saturating_add(slack) >= from_ns && at_ns <= until_ns;
        hold(is_within, || {
            let relative = |ns: Ns| ns as i128 - i128::from(start_ns);
            let (at, from) = (relative(at_ns), relative(from_ns));
            let until = relative(until_ns);
            format!(
                "`{name}` is {at} ns from the start, but the window began at {from} ns, and its result came at {until} ns"
            )
        })?;
    }
    Ok(())
}

/// Checks that no message took longer, and none was sent later, than the run lasted.
pub fn durations(part: &Part<'_>, _: &FlowResult, histograms: &FlowHistograms) -> Result<(), String> {
    let Some(handed_in_ns) = part.span.handed_in_ns else { return Ok(()) };
    let slack = if part.is_spread { CLOCKS } else { 0 };
    let run_ns = handed_in_ns.saturating_sub(part.span.start_ns).saturating_add(slack);
    let times = &histograms.times;
    for (name, times) in [
        ("intended_latency", &times.intended_latency),
        ("send_lag", &times.send_lag),
        ("latency", &times.latency),
        ("ack_latency", &times.ack_latency),
    ] {
        let longest = times.as_ref().map_or(0, Histogram::max);
        hold(longest <= above(run_ns), || {
            format!("`{name}` has a time of {longest} ns, but only {run_ns} ns have gone by since the start")
        })?;
    }
    Ok(())
}

/// Checks that silences and pauses lie within the window.
pub fn silences(part: &Part<'_>, flow: &FlowResult, _: &FlowHistograms) -> Result<(), String> {
    let span = &part.span;
    let Some(end_ns) = span.to_ns.or(span.handed_in_ns) else { return Ok(()) };
    let slack = if part.is_spread { CLOCKS } else { MILLISECOND };
    let window_ns = end_ns.saturating_sub(span.from_ns).saturating_add(slack);
    let gaps = [("stalls", &flow.stalls), ("pauses", &part.result.pauses)];
    for (name, gaps) in gaps {
        let Some(Stalls { count, longest_ns, longest_at_ns, first_at_ns }) = *gaps else { continue };
        let ends_ns = longest_at_ns.saturating_add(longest_ns);
        hold(ends_ns <= window_ns, || {
            format!(
                "the longest of its `{name}` ends {ends_ns} ns after the window's beginning, which is {window_ns} ns long"
            )
        })?;
        hold((count == 0) == (longest_ns == 0), || {
            format!("it has {count} `{name}`, the longest of them {longest_ns} ns long")
        })?;
        let first_ns = first_at_ns.unwrap_or(longest_at_ns);
        hold(first_ns <= longest_at_ns, || {
            format!(
                "the first of its {count} `{name}` begins {first_ns} ns after the window's beginning, and the longest \
                 {longest_at_ns}"
            )
        })?;
    }
    Ok(())
}

/// Checks that processor time is that of the window, and that user mode is a part of it.
pub fn usage(part: &Part<'_>, _: &FlowResult, _: &FlowHistograms) -> Result<(), String> {
    let usage = &part.result.usage;
    let (user_ns, cpu_ns) = (usage.user_ns, usage.cpu_ns);
    let most = cpu_ns.saturating_add(cpu_ns / 10).saturating_add(TICKS);
    hold(user_ns <= most, || format!("`usage.user_ns` is {user_ns}, but `usage.cpu_ns` is {cpu_ns}"))?;
    let Some(handed_in_ns) = part.span.handed_in_ns else { return Ok(()) };
    let (wall_ns, slack) = (usage.wall_ns, if part.is_spread { CLOCKS } else { 0 });
    let most = handed_in_ns.saturating_sub(part.span.from_ns).saturating_add(slack);
    hold(wall_ns <= most, || {
        format!("`usage.wall_ns` is {wall_ns}, but only {most} ns have gone by since the window began")
    })
}
