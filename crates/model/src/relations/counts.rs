//! Relations between counts.

use super::part::{Part, hold, of_window};
use crate::catch_up::CatchUp;
use crate::churn::{ChurnCounts, ConnectTimes};
use crate::counts::PublisherTotal;
use crate::protocol::{ConnectionEnd, FlowHistograms, FlowResult, Ranges, WillResult};
use crate::rebalances::Rebalances;
use crate::units::Ns;
use crate::workload::{Extent, Rate};
use std::collections::BTreeSet;

/// Checks that `publishers` of the result equals the agent's `sent` event.
pub fn totals(part: &Part<'_>, flow: &FlowResult, _: &FlowHistograms) -> Result<(), String> {
    let said = |publisher: u32| {
        let at = part.totals.partition_point(|total| total.publisher < publisher);
        part.totals.get(at).filter(|total| total.publisher == publisher)
    };
    let other = flow.publishers.iter().find_map(|total| Some((total, said(total.publisher)?)).filter(|(a, b)| a != b));
    match other {
        None => Ok(()),
        Some((now, before)) => Err(format!("its result has {now:?}, and its `sent` had {before:?}")),
    }
}

/// Checks that `offered` is the number of messages due in the window by the schedule; at `max`,
/// those sent in it.
pub fn offered(part: &Part<'_>, flow: &FlowResult, _: &FlowHistograms) -> Result<(), String> {
    for total in &flow.publishers {
        let (publisher, offered) = (total.publisher, total.offered);
        if part.workload.rate == Rate::Max {
            let sent = of_window(total);
            hold(offered == sent, || {
                format!("publisher {publisher} offered {offered} messages at `max`, but sent {sent} in the window")
            })?;
            if let Extent::Count(count) = part.workload.extent {
                hold(offered <= count, || format!("publisher {publisher} offered {offered} of {count} messages"))?;
            }
            continue;
        }
        let Some(planned) = part.planned(publisher) else { continue };
        let due = planned.window;
        hold(due.contains(&offered), || {
            let due = if due.start() == due.end() {
                format!("{} were due", due.end())
            } else {
                format!("{} to {} were due", due.start(), due.end())
            };
            let when = if part.killed_ns.is_some() { "before it was killed" } else { "in the window" };
            format!("publisher {publisher} offered {offered} messages, but {due} {when}")
        })?;
    }
    Ok(())
}

/// Checks that sequences follow the schedule: the window begins after the messages of the warm-up,
/// and ends with the last that was sent.
pub fn window(part: &Part<'_>, flow: &FlowResult, _: &FlowHistograms) -> Result<(), String> {
    for total in &flow.publishers {
        let PublisherTotal { publisher, sent, window_first, window_end, .. } = *total;
        hold(window_end == sent, || {
            format!("publisher {publisher} sent {sent} messages, but its window ends at sequence {window_end}")
        })?;
        let Some(planned) = part.planned(publisher) else { continue };
        let warm_up = planned.warm_up;
        let begins = if window_first < window_end { window_first >= *warm_up.start() } else { true };
        hold(begins && window_first <= *warm_up.end(), || {
            format!(
                "the window of publisher {publisher} begins at sequence {window_first}, but {} messages were due before it",
                warm_up.end()
            )
        })?;
    }
    Ok(())
}

/// Checks that `expected` equals the messages that the publishers of its clients sent in the
/// window; 0 if each message is for one of several subscribers.
pub fn expected(part: &Part<'_>, flow: &FlowResult, _: &FlowHistograms) -> Result<(), String> {
    let said = flow.ledger.expected;
    let sent = if part.workload.is_divided() { 0 } else { part.over_heard(of_window) };
    hold(said == sent, || format!("`expected` is {said}, but {sent} messages were sent to its clients in the window"))
}

/// Checks that no more messages were delivered, or arrived out of order, than were sent.
pub fn delivered(part: &Part<'_>, flow: &FlowResult, _: &FlowHistograms) -> Result<(), String> {
    let (ledger, sent) = (&flow.ledger, part.over_heard(of_window));
    let delivered = ledger.delivered;
    hold(delivered <= sent, || format!("`delivered` is {delivered}, but {sent} messages were sent to its clients"))?;
    let own = Part::sent_in_window(flow);
    let unanswered = ledger.unanswered;
    let asked = if part.workload.pattern.echoed() { own } else { 0 };
    hold(unanswered <= asked, || format!("`unanswered` is {unanswered}, but it asked for {asked} echoes"))?;
    let late = ledger.late_answers.unwrap_or(0);
    hold(late <= delivered, || format!("`late_answers` is {late}, but `delivered` is {delivered}"))?;
    let (reordered, most) = (ledger.reordered, delivered.saturating_add(asked).saturating_add(ledger.unidentified));
    hold(reordered <= most, || format!("`reordered` is {reordered}, but only {most} messages came"))
}

/// Checks that arrivals that name no message count as damaged.
pub fn corrupted(_: &Part<'_>, flow: &FlowResult, _: &FlowHistograms) -> Result<(), String> {
    let (corrupted, unidentified) = (flow.ledger.corrupted, flow.ledger.unidentified);
    hold(unidentified <= corrupted, || format!("`unidentified` is {unidentified}, but `corrupted` is {corrupted}"))
}

fn named(ranges: &Ranges) -> Option<u64> {
    let list = ranges.0.as_ref()?;
    let lengths = list.iter().map(|range| range.end.saturating_sub(range.first));
    Some(lengths.fold(0, u64::saturating_add))
}

/// Checks that `missing` names what was expected and not delivered. An agent that names none may
/// have left the field out.
pub fn missing(part: &Part<'_>, flow: &FlowResult, _: &FlowHistograms) -> Result<(), String> {
    let Some(missing) = named(&flow.missing).filter(|missing| *missing > 0) else { return Ok(()) };
    let lost = flow.ledger.expected.saturating_sub(flow.ledger.delivered);
    hold(part.workload.is_divided() || missing == lost, || {
        format!("`missing` names {missing} messages, but {lost} of those that were expected did not come")
    })
}

/// Checks that no message is both acknowledged and in `unacked`. It may be neither if `unacked` is
/// not supported by this agent.
pub fn acknowledged(_: &Part<'_>, flow: &FlowResult, _: &FlowHistograms) -> Result<(), String> {
    let sent = Part::sent_in_window(flow);
    let (acked, unacked) = (flow.acked, named(&flow.unacked).unwrap_or(0));
    hold(acked.saturating_add(unacked) <= sent, || {
        format!("{acked} messages were acknowledged and {unacked} were not, but {sent} were sent in the window")
    })
}

/// Checks that messages that arrived before and during the window belong to the window or the warm-up,
/// each counted once.
pub fn arrived(part: &Part<'_>, flow: &FlowResult, _: &FlowHistograms) -> Result<(), String> {
    // For a count at `max`, only messages of the window count.
    let warm_up = if part.span.to_ns.is_some() { part.over_heard(|total| total.window_first) } else { 0 };
    let ledger = &flow.ledger;
    let most = ledger.delivered.saturating_add(warm_up).saturating_add(ledger.unidentified);
    let before = flow.arrived_before.filter(|_| part.span.to_ns.is_some()).unwrap_or(0);
    let arrived = flow.arrived.saturating_add(before);
    hold(arrived <= most, || {
        let delivered = ledger.delivered;
        let also = if before > 0 { format!(", {before} of them before the window") } else { String::new() };
        format!("`arrived` is {arrived}{also}, but {delivered} messages were delivered, and the warm-up had {warm_up}")
    })
}

/// Checks that late subscribers subscribed when they were to, and then got messages that were sent.
pub fn catch_up(part: &Part<'_>, flow: &FlowResult, _: &FlowHistograms) -> Result<(), String> {
    let Some(catch_up) = &flow.catch_up else { return Ok(()) };
    let Some(start_ns) = part.workload.subscribers_start_ns else {
        return Err("its result has `catch_up`, but no subscriber was to start late".into());
    };
    let CatchUp { subscribed_ns, caught_up_ns, messages } = *catch_up;
    hold(subscribed_ns >= start_ns && caught_up_ns.is_none_or(|at_ns| at_ns >= subscribed_ns), || {
        format!("`catch_up` is from {subscribed_ns} to {caught_up_ns:?} ns, but subscribers start at {start_ns} ns")
    })?;
    let sent = part.over_heard(|total| total.sent);
    hold(messages <= sent.saturating_add(flow.ledger.unidentified), || {
        format!("`catch_up` has {messages} messages, but {sent} were sent to its clients")
    })
}

/// Checks that only groups are rebalanced, and that their assignments are counted upwards.
pub fn rebalances(part: &Part<'_>, flow: &FlowResult, _: &FlowHistograms) -> Result<(), String> {
    let Some(Rebalances { first_generation, last_generation, .. }) = flow.rebalances else { return Ok(()) };
    hold(part.workload.competing(), || "its result has `rebalances`, but its subscribers are no group".into())?;
    hold(first_generation <= last_generation, || {
        format!("`rebalances` is from assignment {first_generation} to {last_generation}")
    })
}

/// Checks that the bytes fit the messages: sizes that vary have bounds.
pub fn bytes(part: &Part<'_>, flow: &FlowResult, _: &FlowHistograms) -> Result<(), String> {
    if !part.workload.sizes_vary() {
        return Ok(());
    }
    let Some(bytes) = flow.bytes else { return Err("`bytes` is missing, although sizes vary".into()) };
    let (least, most) = (part.workload.least_payload_bytes(), part.workload.payload_bytes);
    let sent = Part::sent_in_window(flow);
    let of_each = [("sent", bytes.sent, sent), ("arrived", bytes.arrived, flow.arrived)];
    of_each.into_iter().try_for_each(|(name, bytes, messages)| {
        let range = messages.saturating_mul(least)..=messages.saturating_mul(most);
        hold(range.contains(&bytes), || format!("`bytes.{name}` is {bytes}, but {messages} messages have {range:?}"))
    })
}

/// Checks that the slices add up to the totals.
pub fn series(part: &Part<'_>, flow: &FlowResult, histograms: &FlowHistograms) -> Result<(), String> {
    let sum = |counts: &[u64]| counts.iter().copied().fold(0, u64::saturating_add);
    let series = &flow.series;
    let is_open = part.span.to_ns.is_none();
    let (delivered, arrived) = (sum(&series.delivered), flow.arrived);
    // The end of a run that lasts longer than its slices is in none of them, and an agent may leave
    // out what is left of the warm-up.
    let left_out = if is_open { arrived } else { part.over_heard(|total| total.window_first) };
    hold(delivered <= arrived && delivered >= arrived.saturating_sub(left_out), || {
        format!("`series.delivered` adds up to {delivered}, but `arrived` is {arrived}")
    })?;
    let sent = sum(&series.sent).saturating_add(flow.sent_before.unwrap_or(0));
    let total = flow.publishers.iter().map(|total| total.sent).fold(0, u64::saturating_add);
    hold(sent <= total || part.killed_ns.is_some(), || {
        let before = if flow.sent_before.is_some() { " with `sent_before`" } else { "" };
        format!("`series.sent`{before} adds up to {sent}, but its publishers sent {total}")
    })?;
    let slices = |length: Ns| length.div_ceil(part.workload.slice_ns().max(1)).max(1) as usize;
    let most = part.workload.window_ns().map_or(crate::workload::MAX_SLICES as usize, slices);
    let longest = series.delivered.len().max(series.sent.len()).max(series.latency.len());
    hold(longest <= most, || format!("its series have {longest} slices, but the window has {most}"))?;
    let (of_slices, all) = (sum(&histograms.slices), histograms.count(|times| &times.latency));
    hold(of_slices <= all, || {
        format!("`series.latency` has {of_slices} times, but the histogram `latency` has {all}")
    })?;
    // The publisher that receives echoes counts no arrivals.
    let mut both = histograms.slices.iter().zip(&series.delivered).enumerate();
    let wrong = both.find(|(_, (times, arrivals))| times > arrivals).filter(|_| !part.workload.pattern.echoed());
    match wrong {
        None => Ok(()),
        Some((slice, (times, arrivals))) => {
            Err(format!("slice {slice} has {times} latencies, but {arrivals} messages arrived in it"))
        }
    }
}

/// Checks that reconnected clients were connected and lost before.
pub fn connections(part: &Part<'_>, _: &FlowResult, _: &FlowHistograms) -> Result<(), String> {
    let Some(all) = &part.result.connections else { return Ok(()) };
    let (opened, wanted) = (all.opened, all.wanted);
    hold(opened <= wanted, || format!("{opened} connections were opened, but only {wanted} were wanted"))?;
    let clients = part.clients.len() as u64;
    hold(wanted <= clients, || format!("{wanted} connections were wanted, but it plays {clients} clients"))?;
    let (back, lost) = (all.reconnected, all.lost);
    hold(back <= lost, || format!("{back} connections came back, but {lost} were lost"))?;
    let timed = part.histograms.reconnects.unwrap_or(back);
    hold(timed == back, || format!("`reconnect_time` has {timed} times, but {back} connections came back"))
}

/// Checks that all clients that were due have come and gone, or failed, and that each that came has its times.
pub fn churn(part: &Part<'_>, flow: &FlowResult, histograms: &FlowHistograms) -> Result<(), String> {
    let first = part.clients.iter().any(|client| !client.role.sends() && client.id == 0);
    let churn = &part.workload.churn;
    let Some(found) = flow.churn.as_ref().filter(|_| first && !churn.is_none()) else {
        let missing = first && !churn.is_none();
        hold(!missing, || "`churn` is requested, and its result has none".into())?;
        return hold(flow.churn.is_none(), || "its result has `churn`, which is not its part".into());
    };
    let ChurnCounts { due, connected, failed } = found.counts;
    let planned = churn.due(part.workload.warmup_ns, part.workload.window_ns().unwrap_or(0));
    let planned = planned.end - planned.start;
    hold(due == planned, || format!("{due} clients were due to come, but the plan has {planned}"))?;
    hold(connected.saturating_add(failed) == due, || {
        format!("of {due} clients that were due {connected} connected and {failed} failed")
    })?;
    let ConnectTimes { connect, tls_handshake, subscribe } = histograms.churn;
    hold((connect, subscribe) == (connected, connected) && tls_handshake <= connected, || {
        format!(
            "`churn` has {connect} times to connect and {subscribe} to subscribe, but {connected} clients connected"
        )
    })
}

/// Checks that each last will that arrived was due, and has its time, and that connections are those of its publishers.
pub fn wills(part: &Part<'_>, flow: &FlowResult, histograms: &FlowHistograms) -> Result<(), String> {
    let asked = part.workload.last_will;
    hold(asked || flow.ends.is_empty(), || "its result has `ends`, but no publisher was to have a last will".into())?;
    let own: BTreeSet<u32> = flow.publishers.iter().map(|total| total.publisher).filter(|_| asked).collect();
    if let Some(ConnectionEnd { publisher, .. }) = flow.ends.iter().find(|end| !own.contains(&end.publisher)) {
        return Err(format!("a connection of publisher {publisher} ended, which it does not play"));
    }
    let Some(found) = &flow.wills else { return Ok(()) };
    hold(asked, || "its result has `wills`, but no publisher was to have one".into())?;
    let WillResult { due, received, .. } = **found;
    hold(received <= due, || format!("{received} last wills arrived, but {due} were due"))?;
    let times = histograms.wills;
    hold(times == received, || format!("`wills` has {times} times, but {received} arrived"))
}
