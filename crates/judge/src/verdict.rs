//! Decides whether a run may be quoted. Each reason against it has evidence and the figures that it affects: only these
//! may not be quoted. Findings about the system itself become notes, which do not count against the run.

mod artefacts;
mod bounds;
mod churn;
mod clocks;
mod cuts;
mod finding;
mod kill;
mod last_will;
mod ledger_disk;
mod limit;
mod loops;
mod machine;
mod pauses;
mod promises;
mod steady_state;
mod support;
#[cfg(test)]
mod tests;
mod throttling;

pub use bounds::P99_SAMPLES;
pub use machine::quiet;
pub use steady_state::steady_after_ns;

use crate::calibration::Calibration;
use bounds::{AWAKE, OWN_LAG_P50, OWN_LAG_SMALL, OWN_LAG_WITHIN, RECEIVE, touched};
use finding::{FigureFinding, Judge, words};
use pubmark_model::fault::{Fault, Target};
use pubmark_model::header::FREE_LEN;
use pubmark_model::record::{
    CatchUp, Component, FigureGroup, Finding, FlowRecord, Note, Reason, RunRecord, UnsupportedFigure, Verdict,
};
use pubmark_model::system::System;
use pubmark_model::units::{MILLISECOND, Ns, format_size, format_time};
use pubmark_model::workload::{Pacing, Rate};
use pubmark_stats::Summary;

/// Judges a run that was made. `negative` counts latencies below zero; `exit_reason` says why the server ended early;
/// `calibration` is that of the machine of the run.
pub fn judge(
    record: &RunRecord,
    system: &System,
    negative: u64,
    exit_reason: Option<String>,
    calibration: Option<&Calibration>,
) -> Verdict {
    let unlimited = record.workload.rate == Rate::Max;
    // Not every agent counts the connections to its server.
    let served = record.connections.is_some() || record.deployment.is_some();
    let part = if served { Component::Server } else { Component::Library };
    let blamed = |clients: bool| match (clients, cuts::of_link_only(record)) {
        (true, _) => Component::Generator,
        (false, true) => Component::Link,
        (false, false) => part,
    };
    let asked = !record.faults.is_empty();
    let affected = blamed(asked && record.faults.0.iter().all(Fault::is_of_agents));
    // The server acknowledged and did not deliver, unless no subscriber was left.
    let owes = blamed(kill::deaf(record));
    let latencies = !unlimited || record.workload.pattern.round_trip();
    let outpaced = unlimited && record.counts.lost > 0;
    let mut judge = Judge { verdict: Verdict::default(), part, asked, affected, latencies, outpaced };

    judge.note(owes, promises::forgotten(record));
    judge.note(Component::Generator, kill::noted(record));
    judge.note(Component::Generator, cuts::of_clients(record));
    judge.note(Component::Server, last_will::missing(record));
    churn::noted(record).into_iter().for_each(|(part, evidence)| judge.note(part, [evidence]));
    let (not_back, exit_reason) = pauses::not_back(record, exit_reason);
    judge.note(Component::Server, not_back);
    judge.against(Reason::ServerDied, exit_reason.map(FigureFinding::all));
    match kill::only(record) {
        // A killed client loses no connection: the server ended the lost ones.
        true => judge.against(Reason::ServerDied, disconnected(record)),
        false => judge.result(Reason::ServerDied, disconnected(record)),
    }
    judge.against(Reason::ConnectionsMissed, unconnected(record));
    judge.against(Reason::ResourceLimitHit, limited(record));
    judge.against(Reason::ResourceLimitHit, exhausted(record));
    judge.against(Reason::ResourceLimitHit, reached(record));
    judge.against(Reason::LedgerDisk, ledger_disk::noted(record));
    let paused = pauses::paused(record);
    let stood_still = !paused.is_empty();
    if !latencies {
        // A pause that affects no figure is noted nevertheless.
        let short = paused.iter().filter(|found| !found.touches(FigureGroup::Rates));
        judge.note(Component::Generator, short.map(|found| found.evidence.clone()));
    }
    judge.against(Reason::GeneratorSaturated, paused);
    judge.against(Reason::GeneratorSaturated, throttling::throttled(record));
    if unlimited {
        judge.note(Component::Generator, at_limit(record));
    } else {
        judge.against(Reason::GeneratorSaturated, late(record));
        judge.against(Reason::GeneratorSaturated, received_late(record));
        judge.against(Reason::GeneratorSaturated, awake(record));
        judge.against(Reason::GeneratorSaturated, loops::saturated(record, calibration));
        judge.result(Reason::OfferedRateMissed, promises::missed(record));
    }
    judge.note(judge.part, artefacts::found(record));
    judge.note(Component::Generator, pauses::of_runtimes(record));
    judge.note(Component::Server, pauses::noted(record));
    judge.note(Component::Server, promises::violated(record));
    judge.note(Component::Link, cuts::noted(record));
    let noisy = machine::noisy(record);
    silences(&mut judge, record, stood_still, !noisy.is_empty());
    judge.note(Component::Generator, varied_sizes(record));
    judge.note(Component::Generator, part_of_window(record));
    judge.note(Component::Generator, late_subscribers(record));
    // A trend is expected of faults, of a rate that changes, of publishers that pause, and of subscribers that are slow
    // or late by request.
    let waits = record.workload.lets_messages_wait();
    let is_constant = record.workload.rate.profile().is_none_or(|profile| profile.is_constant());
    let is_steady = is_constant && !record.workload.arrival.pauses() && record.workload.span.is_whole();
    let is_even = is_steady && record.faults.is_empty() && !waits;
    let trend = || if is_even { steady_state::trending(record) } else { None };
    // Messages that no subscriber takes are no backlog.
    let backlog = if kill::deaf(record) || waits { None } else { steady_state::backlog(record, unlimited) };
    judge.result(Reason::NotSteady, backlog.or_else(trend));
    promises::refused(record).into_iter().for_each(|(reason, found)| judge.result(reason, found));
    promises::broken(&mut judge, record, system);
    judge.note(Component::Generator, promises::untold(record));
    judge.note(Component::Generator, support::noted(record));
    judge.against(Reason::TooFewSamples, promises::too_few(record, unlimited));
    judge.against(Reason::Clock, early(negative));
    judge.against(Reason::Clock, clocks::apart(record));
    judge.against(Reason::NoisyMachine, noisy);
    judge.note(Component::Server, machine::unknown(record));
    let which = limit::noted(record, &judge.verdict);
    judge.note(Component::Generator, which);
    judge.verdict.valid = judge.verdict.reasons.is_empty();
    judge.verdict
}

/// Combines the verdicts of a run's flows: what is said of all of them is said once, the rest with the flow's name.
pub fn together(flows: &[FlowRecord]) -> Verdict {
    let verdicts = flows.iter().filter_map(|flow| Some((flow.name.as_str(), &flow.own.as_ref()?.verdict)));
    let (reasons, notes): (Vec<_>, Vec<_>) =
        verdicts.map(|(name, verdict)| ((name, &*verdict.reasons), (name, &*verdict.notes))).unzip();
    let named = |name: &str, evidence: &str| format!("{name}: {evidence}");
    let reasons = said_once(&reasons, |name, one| Finding { evidence: named(name, &one.evidence), ..one.clone() });
    let notes = said_once(&notes, |name, one| Note { evidence: named(name, &one.evidence), ..one.clone() });
    Verdict { valid: reasons.is_empty(), reasons, notes }
}

/// Returns what all flows have once, and the rest as `named` gives it the flow's name.
fn said_once<T: Clone + PartialEq>(flows: &[(&str, &[T])], named: impl Fn(&str, &T) -> T) -> Vec<T> {
    let mut all: Vec<T> = Vec::new();
    for (name, one) in flows.iter().flat_map(|(name, said)| said.iter().map(move |one| (*name, one))) {
        match flows.iter().all(|(_, said)| said.contains(one)) {
            true if all.contains(one) => {}
            true => all.push(one.clone()),
            false => all.push(named(name, one)),
        }
    }
    all
}

/// Returns whether a loop of the generator was at its limit at `rate = "max"`, so that the system may carry more than
/// was measured.
pub fn lower_bound(record: &RunRecord) -> bool {
    record.workload.rate == Rate::Max && !loops::at_limit(record).is_empty()
}

fn at_limit(record: &RunRecord) -> Vec<String> {
    let says = |busy: &loops::BusyAgent<'_>| {
        format!("{}: the throughput is a lower bound, the server may carry more", busy.words())
    };
    loops::at_limit(record).iter().map(says).collect()
}

fn early(negative: u64) -> Option<FigureFinding> {
    (negative > 0).then(|| {
        FigureFinding::of(
            FigureGroup::LATENCY,
            format!("{negative} messages arrived before they were due: a clock is wrong"),
        )
    })
}

/// Names the sizes of messages, if they vary.
fn varied_sizes(record: &RunRecord) -> Option<String> {
    let (text, mean) = (record.workload.sizes_text()?, record.workload.mean_payload_bytes());
    let named = ["payload_file", "trace"].iter().find_map(|key| Some((*key, text.strip_prefix(key)?.trim_start())));
    let (key, value) = named.unwrap_or(("payload", &text));
    Some(format!("sizes of messages varied, as requested: `{key} = {value}`, {mean:.0} B on average"))
}

/// Names the part of the window in which messages were due, if it is not the whole.
fn part_of_window(record: &RunRecord) -> Option<String> {
    let span = Some(record.workload.span).filter(|span| !span.is_whole())?;
    let (start_ns, end_ns) = (span.start_ns.unwrap_or(0), span.end_ns.unwrap_or(record.window_ns));
    Some(format!(
        "messages were due from {} to {} of the window, as requested: rates are means over the whole window",
        format_time(start_ns),
        format_time(end_ns)
    ))
}

/// Names the instant at which subscribers started, if they were late.
fn late_subscribers(record: &RunRecord) -> Option<String> {
    let start = format_time(record.workload.subscribers_start_ns?);
    let caught_up = match record.catch_up {
        None => "none of them could subscribe",
        Some(CatchUp { caught_up_ns: None, .. }) => "not all of them had caught up when the drain ended",
        Some(_) => "latencies include the time for which messages waited for them",
    };
    Some(format!("subscribers started at {start} of the window, as requested: {caught_up}"))
}

/// Attributes silences of subscribers to the part that stalled: to the generator if an agent stood still or a publisher
/// had a generator delay of that size; else to the system, as a note and not as a reason against the run. If an agent
/// does not report whether it ran, no part is blamed.
fn silences(judge: &mut Judge, record: &RunRecord, stood_still: bool, is_noisy: bool) {
    if record.workload.consumes_slowly() {
        let rate = &record.workload.consume;
        let evidence = format!(
            "subscribers took messages at `consume = {rate}`, as requested: latencies include the time for which \
             messages waited for them"
        );
        return judge.note(Component::Generator, [evidence]);
    }
    let Some(stalls) = record.stalls.filter(|stalls| stalls.count > 0) else { return };
    let (length, from) = (words(stalls.longest_ns), words(stalls.longest_at_ns));
    let times = match stalls.count {
        1 => String::new(),
        count => format!(" ({count} such silences; this was the longest)"),
    };
    let silence = format!("a subscriber heard nothing for {length}, from {from} into the window");
    let stalled = (stalls.longest_at_ns, stalls.longest_at_ns.saturating_add(stalls.longest_ns));
    let cut = cuts::overlaps(record, stalled);
    let own_ns = record.times.own_lag.as_ref().map_or(0, |own| own.max);
    let unsure = support::of(record, &[UnsupportedFigure::Pauses, UnsupportedFigure::OwnLag]);
    let of_server = |who: Target| matches!(who, Target::Server | Target::Members);
    let server_faults = record.fault_log.iter().any(|event| of_server(event.who));
    if stood_still {
        judge.note(Component::Generator, [format!("{silence}{times}")]);
    } else if cut {
        judge.note(Component::Link, [format!("{silence}, when the link was cut{times}")]);
    } else if let Some(killed) = kill::during(record, stalled) {
        judge.note(Component::Generator, [format!("{silence}{times}: {killed}")]);
    } else if own_ns >= stalls.longest_ns / 2 {
        let evidence = format!("{silence}{times}; generator delay of a publisher: up to {}", words(own_ns));
        let share = stalls.longest_ns as f64 / record.window_ns.max(1) as f64;
        judge.against(Reason::GeneratorSaturated, FigureFinding::if_any(pauses::figures(share, record), evidence));
    } else if stalls.longest_ns < SILENCE_OF_OTHERS && !server_faults && is_noisy {
        judge.note(
            Component::Generator,
            [format!("{silence}{times}: whose doing it was is not known, as others used the machine")],
        );
    } else if let Some(agents) = unsure {
        judge.note(Component::Generator, [format!("{silence}{times}: whose doing it was is not known, for {agents}")]);
    } else {
        let part = judge.part.word();
        let evidence = format!(
            "the {part} delivered nothing to a subscriber for {length}, from {from} into the window, while all agents \
             ran{times}"
        );
        judge.note(judge.part, [evidence]);
    }
}

/// Silences shorter than this may be due to other programs that kept a server from a processor.
const SILENCE_OF_OTHERS: Ns = 500 * MILLISECOND;

/// Returns the verdict on a failed run.
pub fn failed(error: &str) -> Verdict {
    let reasons = vec![Finding {
        reason: Reason::Failed,
        evidence: error.to_owned(),
        figures: FigureGroup::all(),
        overload: false,
    }];
    Verdict { valid: false, reasons, notes: Vec::new() }
}

/// Finds connections that were lost during the run.
fn disconnected(record: &RunRecord) -> Option<FigureFinding> {
    let connections = record.connections.as_ref()?;
    (connections.lost > 0).then(|| {
        let which = connections.first_loss.as_ref().map_or(String::new(), |first| format!(": {first}"));
        FigureFinding::all(match cuts::only(record) {
            true => format!("{} connections were lost, of {} clients{which}", connections.lost, connections.opened),
            false => format!("the server ended {} of {} connections{which}", connections.lost, connections.opened),
        })
    })
}

/// Finds clients that never got a connection: the load differed from the requested one.
fn unconnected(record: &RunRecord) -> Option<FigureFinding> {
    let connections = record.connections.as_ref()?;
    (connections.opened < connections.wanted).then(|| {
        let met = connections.first_error.as_ref();
        let met = met.map_or(String::new(), |error| format!("; the first attempt that failed: {error}"));
        FigureFinding::all(format!("{} of {} clients got a connection{met}", connections.opened, connections.wanted))
    })
}

fn limited(record: &RunRecord) -> Option<FigureFinding> {
    let deployment = record.deployment.as_ref()?;
    (deployment.oom_kills > 0).then(|| {
        let limit =
            deployment.applied.memory_bytes.map_or(String::new(), |bytes| format!(" (limit: {})", format_size(bytes)));
        let kills = deployment.oom_kills;
        FigureFinding::all(format!("the kernel killed {kills} of the server's processes for want of memory{limit}"))
    })
}

/// Finds a server that ran out of memory, even if it still runs: its work at that time is incomplete.
fn exhausted(record: &RunRecord) -> Option<FigureFinding> {
    let line = record.deployment.as_ref()?.out_of_memory.as_ref()?;
    Some(FigureFinding::all(format!("the server said that it had run out of memory: {line}")))
}

/// Finds limits of its own that the server named to a client or in its log.
fn reached(record: &RunRecord) -> Vec<FigureFinding> {
    let logged = record.deployment.as_ref().and_then(|deployment| deployment.limit_reached.as_ref());
    let logged = logged.map(|line| format!("its log says: {line}"));
    let said = record.limits_reached.iter().cloned().chain(logged);
    said.map(|words| FigureFinding::all(format!("the server reached a limit of its own: {words}"))).collect()
}

/// Finds messages with generator delay. The headline latency does not contain the delay itself; but late messages go
/// out together, and wait for each other in the system. Messages too short for a ready time have the delay in the
/// headline as well.
fn late(record: &RunRecord) -> Option<FigureFinding> {
    let own = record.times.own_lag.as_ref()?;
    let bound = record.workload.max_send_lag_ns;
    let within = record.workload.least_payload_bytes() < FREE_LEN as u64;
    let latency = record.times.latency.as_ref().filter(|_| within);
    let part =
        |pick: fn(&Summary) -> Ns| latency.is_some_and(|all| pick(own) as f64 > OWN_LAG_WITHIN * pick(all) as f64);
    let moves = |pick: fn(&Summary) -> Ns| {
        let all = record.times.latency.as_ref();
        all.is_none_or(|all| own.max as f64 > OWN_LAG_SMALL * pick(all) as f64)
    };
    let p99 = own.p99 > bound && moves(|all| all.p99) || part(|summary| summary.p99);
    let p50 = own.p50 as f64 > OWN_LAG_P50 * bound as f64 && moves(|all| all.p50) || part(|summary| summary.p50);
    let mut figures = Vec::new();
    figures.extend(p99.then_some(FigureGroup::LatencyP99));
    figures.extend(p50.then_some(FigureGroup::LatencyP50));
    figures.extend(pauses::lengthens_silence(own.max, record).then_some(FigureGroup::Rates));
    let why = if within { ", and messages of so few bytes have that in their latency" } else { "" };
    let evidence = format!(
        "the load generator was too slow: delay p50 {}, p99 {} (bound: {}, worst: {}){why}",
        words(own.p50),
        words(own.p99),
        words(bound),
        words(own.max)
    );
    FigureFinding::if_any(figures, evidence)
}

/// Finds publishers with `pacing = "spin"` whose busy waiting took processors from the measured system. Other kinds of
/// pacing have a budget for it that leaves enough.
fn awake(record: &RunRecord) -> Option<FigureFinding> {
    if record.workload.pacing != Pacing::Spin {
        return None;
    }
    let cores = f64::from(record.machine.cores.max(1));
    let spent = record.pacing?.spent_cores;
    let evidence = format!("publishers kept {spent:.2} of {cores} processors awake, waiting for due times");
    FigureFinding::if_any(touched(AWAKE, spent / cores), evidence)
}

/// Finds messages that may have waited so long for the busy receiving loop that the wait is part of the quoted latency.
fn received_late(record: &RunRecord) -> Option<FigureFinding> {
    let (lag, latency) = (record.times.receive_lag.as_ref()?, record.times.latency.as_ref()?);
    let part = |pick: fn(&Summary) -> Ns| pick(lag) as f64 > RECEIVE * pick(latency) as f64;
    let mut figures = Vec::new();
    figures.extend(part(|summary| summary.p50).then_some(FigureGroup::LatencyP50));
    figures.extend(part(|summary| summary.p99).then_some(FigureGroup::LatencyP99));
    let evidence = format!(
        "of a latency of {} at the median and {} at p99, messages may have waited {} and {} for the subscriber's own loop",
        words(latency.p50),
        words(latency.p99),
        words(lag.p50),
        words(lag.p99)
    );
    FigureFinding::if_any(figures, evidence)
}
