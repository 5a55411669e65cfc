//! Two agents: their reports must agree with each other, and with the actions of the server between them.

use crate::bench::Bench;
use crate::case::{Case, CaseNeeds};
use crate::figures::{SLACK, agree, counts, read};
use crate::meeting::{MeetingOutcome, SideAgents, Stopped, meet, meet_stopped};
use crate::wrong::{CaseFailure, due};
use pubmark_model::protocol::{PackedHistogram, PublisherTotal, Ranges};
use pubmark_model::units::{MILLISECOND, Ns, format_time};
use pubmark_model::workload::Pattern;
use std::collections::BTreeSet;

const fn case(
    name: &'static str,
    needs: CaseNeeds,
    sent: &'static str,
    due: &'static str,
    run: fn(&Bench<'_>) -> Result<(), CaseFailure>,
) -> Case {
    Case { name, sent, due, needs, run }
}

const FITS: &str = "all that was due, sent, delivered, and recorded once";

const ECHO: &[(&str, &str)] = &[("pattern", "fan-out-echo"), ("subscribers", "3"), ("rate", "100"), ("verify", "full")];

pub const CASES: &[Case] = &[
    case("meet-pairs", CaseNeeds::Meeting, "two pairs", FITS, |bench| {
        whole(&meet(bench, &[("pattern", "pairs"), ("pairs", "2")], SideAgents::Both, "")?)
    }),
    case("meet-fan-out", CaseNeeds::Meeting, "one publisher and two subscribers", FITS, |bench| {
        whole(&meet(bench, &[("pattern", "fan-out"), ("subscribers", "2")], SideAgents::Both, "")?)
    }),
    case("meet-fan-in", CaseNeeds::Meeting, "two publishers and one subscriber", FITS, |bench| {
        whole(&meet(bench, &[("pattern", "fan-in"), ("publishers", "2")], SideAgents::Both, "")?)
    }),
    case("meet-request-reply", CaseNeeds::Meeting, "a requester and its replier", FITS, |bench| {
        whole(&meet(bench, &[("pattern", "request-reply"), ("rate", "100")], SideAgents::Both, "")?)
    }),
    case(
        "meet-fan-out-echo",
        CaseNeeds::Meeting,
        "one publisher, three subscribers, and the first echoes",
        "three deliveries and one echo of each message, and the times of the round trip",
        |bench| whole(&meet(bench, ECHO, SideAgents::Both, "")?),
    ),
    case("meet-pipeline", CaseNeeds::Meeting, "a pipeline of one publisher and two subscribers", FITS, |bench| {
        whole(&meet(bench, &[("pattern", "pipeline"), ("subscribers", "2")], SideAgents::Both, "")?)
    }),
    case(
        "meet-tree",
        CaseNeeds::Meeting,
        "a tree of four publishers and two subscribers, each with two",
        FITS,
        |bench| {
            whole(&meet(
                bench,
                &[("pattern", "tree"), ("publishers", "4"), ("subscribers", "2")],
                SideAgents::Both,
                "",
            )?)
        },
    ),
    case(
        "meet-stopped",
        CaseNeeds::Meeting,
        "one side stopped for 400 ms, and then the other",
        "what was due meanwhile is late by it; where it is the sender, the lag is its own",
        stopped,
    ),
    case("to-built-in", CaseNeeds::BuiltIn, "messages for pubmark's own subscriber", FITS, |bench| {
        whole(&meet(bench, &[("pattern", "fan-out"), ("verify", "full")], SideAgents::Sender, "")?)
    }),
    case("from-built-in", CaseNeeds::BuiltIn, "messages of pubmark's own publisher", FITS, |bench| {
        whole(&meet(bench, &[("pattern", "fan-out"), ("verify", "full")], SideAgents::Receiver, "")?)
    }),
    case("echo-to-built-in", CaseNeeds::BuiltIn, "messages that pubmark's own subscriber echoes", FITS, |bench| {
        whole(&meet(bench, ECHO, SideAgents::Sender, "")?)
    }),
    case("echo-from-built-in", CaseNeeds::BuiltIn, "messages of pubmark's own, to be echoed", FITS, |bench| {
        whole(&meet(bench, ECHO, SideAgents::Receiver, "")?)
    }),
    case(
        "server-delays",
        CaseNeeds::Peer,
        "a server that holds each message for 100 ms",
        "a latency of 100 ms",
        |bench| {
            let met = over(bench, SideAgents::Receiver, "delay = { fixed = \"100ms\" }")?;
            median(&met, "latency", met.receiver.histograms.latency.as_ref(), 100 * MILLISECOND)?;
            median(&met, "service_latency", met.receiver.histograms.service_latency.as_ref(), 100 * MILLISECOND)
        },
    ),
    case(
        "server-losses",
        CaseNeeds::Peer,
        "a server that loses every 7th message",
        "those missing, and no other",
        |bench| {
            let met = over(bench, SideAgents::Receiver, "lose = { every = 7 }")?;
            let (ledger, lost) = (met.receiver.ledger, nth(&met, 7));
            due(ledger.expected - ledger.delivered == lost, || {
                format!("{lost} of the window were lost; its ledger says {ledger:?}")
            })
        },
    ),
    case(
        "server-duplicates",
        CaseNeeds::Peer,
        "a server that hands on every 11th message twice",
        "those counted again",
        |bench| {
            let met = over(bench, SideAgents::Receiver, "duplicate = { every = 11 }")?;
            let (ledger, twice) = (met.receiver.ledger, nth(&met, 11));
            due(ledger.duplicated == twice, || format!("{twice} of the window came twice; its ledger says {ledger:?}"))
        },
    ),
    case(
        "server-damage",
        CaseNeeds::Peer,
        "a server that turns a bit in every 13th body",
        "those corrupted",
        |bench| {
            let met = over(bench, SideAgents::Receiver, "corrupt = { every = 13 }")?;
            let (ledger, damaged) = (met.receiver.ledger, nth(&met, 13));
            due(ledger.corrupted == damaged, || {
                format!("{damaged} of the window were damaged; its ledger says {ledger:?}")
            })
        },
    ),
    case(
        "server-acked",
        CaseNeeds::Peer,
        "QoS 1, and a server that neither acknowledges nor hands on every 7th message",
        "acked: the others; unacked and missing: those alone",
        acked,
    ),
    case(
        "server-stalls",
        CaseNeeds::Peer,
        "a server that stands still for 300 ms",
        "what was due meanwhile is late by it",
        |bench| {
            for sides in [SideAgents::Sender, SideAgents::Receiver] {
                let met = over(bench, sides, "[[stall]]\nfrom = \"200ms\"\nfor = \"300ms\"")?;
                let greatest = read("intended_latency", met.receiver.histograms.intended_latency.as_ref())?.max();
                due(greatest >= 250 * MILLISECOND, || {
                    format!(
                        "the server stood still for 300 ms, and the greatest latency is {} ms",
                        greatest / MILLISECOND
                    )
                })?;
            }
            Ok(())
        },
    ),
];

/// Checks that the delay of a stopped side is in the figures.
fn stopped(bench: &Bench<'_>) -> Result<(), CaseFailure> {
    let pattern = STOPPED_IN.iter().find(|(pattern, _)| bench.plays(*pattern)).map(|(_, settings)| settings);
    let settings =
        pattern.ok_or_else(|| CaseFailure::NotTried("it has no pattern in which one side can be stopped".into()))?;
    let greatest = |name: &str, packed: Option<&PackedHistogram>| {
        let greatest = read(name, packed)?.max();
        due(greatest >= 300 * MILLISECOND, || {
            format!("one side was stopped for 400 ms, and the greatest of `{name}` is {} ms", greatest / MILLISECOND)
        })
    };
    let met = meet_stopped(bench, settings, SideAgents::Both, "", Stopped::Sender)?;
    greatest("send_lag", met.sender.histograms.send_lag.as_ref())?;
    greatest("own_lag", met.sender.histograms.own_lag.as_ref())?;
    greatest("intended_latency", met.receiver.histograms.intended_latency.as_ref())?;
    let met = meet_stopped(bench, settings, SideAgents::Both, "", Stopped::Receiver)?;
    greatest("intended_latency", met.receiver.histograms.intended_latency.as_ref())
}

/// Patterns in which one side is stopped: the first that is supported.
const STOPPED_IN: [(Pattern, &[(&str, &str)]); 4] = [
    (Pattern::FanOut, &[("pattern", "fan-out"), ("duration", "1200ms")]),
    (Pattern::Pairs, &[("pattern", "pairs"), ("duration", "1200ms")]),
    (Pattern::Pipeline, &[("pattern", "pipeline"), ("duration", "1200ms")]),
    (Pattern::RequestReply, &[("pattern", "request-reply"), ("rate", "20"), ("duration", "1200ms")]),
];

fn acked(bench: &Bench<'_>) -> Result<(), CaseFailure> {
    if !bench.system.is_some_and(|system| system.qos.contains(&1)) {
        return Err(CaseFailure::NotTried("its system has no QoS 1".into()));
    }
    let settings = [("pattern", "fan-out"), ("qos", "1"), ("rate", "100"), ("duration", "800ms"), ("drain", "1s")];
    let met = meet(bench, &settings, SideAgents::Both, "lose = { every = 7 }")?;
    let of_window = |total: &PublisherTotal| total.window_first..total.window_end;
    let window: BTreeSet<u64> = met.totals.iter().flat_map(of_window).collect();
    let lost: BTreeSet<u64> = window.iter().copied().filter(|sequence| (sequence + 1).is_multiple_of(7)).collect();
    let confirmed = (window.len() - lost.len()) as u64;
    due(met.sender.acked == confirmed, || {
        format!("the server acknowledged {confirmed} messages of the window; `acked` is {}", met.sender.acked)
    })?;
    for (name, ranges) in [("unacked", &met.sender.unacked), ("missing", &met.receiver.missing)] {
        let Ranges(Some(ranges)) = ranges else { continue };
        let named: BTreeSet<u64> = ranges.iter().flat_map(|range| range.first..range.end.min(1 << 32)).collect();
        due(named == lost, || format!("the server lost {lost:?}; `{name}` says {named:?}"))?;
    }
    Ok(())
}

/// Sends 500 messages per second through a server with a script.
fn over(bench: &Bench<'_>, sides: SideAgents, script: &str) -> Result<MeetingOutcome, CaseFailure> {
    meet(bench, &[("pattern", "fan-out"), ("verify", "full"), ("duration", "800ms")], sides, script)
}

/// Returns how many of the window's messages are every `every`th of a publisher.
fn nth(met: &MeetingOutcome, every: u64) -> u64 {
    let of = |total: &PublisherTotal| total.window_end / every - total.window_first / every;
    met.totals.iter().map(of).sum()
}

fn median(met: &MeetingOutcome, name: &str, packed: Option<&PackedHistogram>, wanted: Ns) -> Result<(), CaseFailure> {
    let histogram = read(name, packed)?;
    counts(name, &histogram, met.receiver.ledger.delivered)?;
    let said = histogram.value_at(0.5);
    due((wanted..wanted + SLACK).contains(&said), || {
        format!("each message was held for {} ms; the median of `{name}` is {said} ns", wanted / MILLISECOND)
    })
}

/// Checks that no message is missing or duplicated.
fn whole(met: &MeetingOutcome) -> Result<(), CaseFailure> {
    let of_window = |total: &PublisherTotal| total.window_end - total.window_first;
    let sent: u64 = met.totals.iter().map(of_window).sum();
    let offered: u64 = met.totals.iter().map(|total| total.offered).sum();
    due(met.totals.len() == met.workload.publishers as usize && offered > 0 && sent == offered, || {
        format!("of {offered} messages that were due in the window it sent {sent}: {:?}", met.totals)
    })?;
    let copies = u64::from(pubmark_model::topology::copies(&met.workload));
    let ledger = met.receiver.ledger;
    let expected = if met.workload.competing() { 0 } else { sent * copies };
    let wrong = (ledger.duplicated, ledger.reordered, ledger.corrupted, ledger.negative);
    due((ledger.expected, ledger.delivered, wrong) == (expected, sent * copies, (0, 0, 0, 0)), || {
        format!("{} were to be delivered; the ledger says {ledger:?}", sent * copies)
    })?;
    let (timed, times) = match met.workload.pattern.echoed() {
        true => (&met.sender, sent),
        false => (&met.receiver, ledger.delivered),
    };
    due(met.sender.ledger.unanswered == 0, || format!("each was echoed; the ledger says {:?}", met.sender.ledger))?;
    let latency = read("latency", timed.histograms.latency.as_ref())?;
    counts("latency", &latency, times)?;
    for quantile in met.late.quantiles() {
        // There and back through an agent, or through a server: twice as long at most.
        let (said, allowed) = (latency.value_at(quantile.max(1e-9)), 2 * met.late.at(quantile));
        due(said <= allowed, || {
            format!(
                "p{} of `latency` is {} on one machine; bare messages may take {}",
                quantile * 100.0,
                format_time(said),
                format_time(allowed)
            )
        })?;
    }
    let own = read("own_lag", met.sender.histograms.own_lag.as_ref())?;
    counts("own_lag", &own, sent)?;
    agree(&met.sender, &met.workload)?;
    agree(&met.receiver, &met.workload)
}
