//! Whether a run may be quoted, and if not, each reason why with its evidence.
//! What is found of the system itself is noted, and speaks not against the run.

mod cuts;
mod pauses;
#[cfg(test)]
mod tests;

use crate::calibration;
use pubmark_model::record::{FigureGroup, Finding, MachineLoad, Note, Part, Reason, RunRecord, Verdict};
use pubmark_model::system::System;
use pubmark_model::units::{MILLISECOND, Ns, SECOND, format_size};
use pubmark_model::workload::{Pattern, Rate};
use pubmark_stats::trend;

/// Fewer samples than this say nothing of the 99th percentile.
pub const P99_SAMPLES: u64 = 1_000;
/// The share of offered messages that must be sent.
const OFFERED: f64 = 0.999;
/// A trend counts where chance would make it in fewer of so many runs …
const TREND_P: f64 = 0.01;
/// … and it moves the figure by so much over the window.
const TREND_CHANGE: f64 = 0.20;
/// A backlog counts where it grows by more than this share of what was sent.
const BACKLOG: f64 = 0.05;
/// The share of processor time that the hypervisor may take.
const STEAL: f64 = 0.02;
/// The share of the machine that others may use.
const FOREIGN: f64 = 0.10;
/// The share of the window by which its edges may be missed …
const LATE: f64 = 0.10;
/// … and what is never too late, because a busy machine makes it so.
const LATE_NS: Ns = 50 * MILLISECOND;

/// A time with three digits and a fitting unit.
fn words(ns: Ns) -> String {
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..MILLISECOND => format!("{:.3} µs", ns as f64 / 1e3),
        MILLISECOND..SECOND => format!("{:.3} ms", ns as f64 / 1e6),
        _ => format!("{:.3} s", ns as f64 / 1e9),
    }
}

/// What is found, sorted into what speaks against the run and what does not.
struct Judge {
    verdict: Verdict,
    /// The part that is under test.
    part: Part,
    /// Whether faults were asked for: what they bring about is the run's result.
    asked: bool,
    /// The part to which they happened.
    befallen: Part,
}

impl Judge {
    /// Whatever was asked for, this speaks against the run.
    fn against(&mut self, reason: Reason, evidence: Option<String>) {
        self.verdict.reasons.extend(evidence.map(|evidence| Finding { reason, evidence, figures: FigureGroup::all() }));
    }

    /// This too, unless faults were asked for.
    fn result(&mut self, reason: Reason, evidence: Option<String>) {
        match self.asked {
            true => self.note(self.befallen, evidence),
            false => self.against(reason, evidence),
        }
    }

    fn note(&mut self, part: Part, evidence: Option<String>) {
        self.verdict.notes.extend(evidence.map(|evidence| Note { part, evidence }));
    }
}

/// Judges a run that could be made. `negative` counts latencies below zero;
/// `obituary` says why the server ended before it was told to.
pub fn judge(record: &RunRecord, system: &System, negative: u64, obituary: Option<String>) -> Verdict {
    let unlimited = record.workload.rate == Rate::Max;
    // Not every agent counts the connections to its server.
    let served = record.connections.is_some() || record.deployment.is_some();
    let part = if served { Part::Server } else { Part::Library };
    let befallen = if cuts::only(record) { Part::Link } else { part };
    let mut judge = Judge { verdict: Verdict::default(), part, asked: !record.faults.is_empty(), befallen };

    judge.against(Reason::ServerDied, obituary);
    judge.result(Reason::ServerDied, disconnected(record));
    judge.against(Reason::ResourceLimitHit, limited(record));
    let paused = pauses::paused(record);
    let stood_still = !paused.is_empty();
    paused.into_iter().for_each(|evidence| judge.against(Reason::GeneratorSaturated, Some(evidence)));
    if !unlimited {
        judge.against(Reason::GeneratorSaturated, saturated(record).or_else(|| calibration::saturated(record)));
        judge.result(Reason::OfferedRateMissed, missed(record));
    }
    pauses::befallen(record).into_iter().for_each(|evidence| judge.note(Part::Server, Some(evidence)));
    judge.note(Part::Link, cuts::befallen(record));
    silences(&mut judge, record, stood_still);
    // A fault moves the figures, and is no trend.
    let trend = || if record.faults.is_empty() { trending(record, unlimited) } else { None };
    judge.result(Reason::NotSteady, backlog(record, unlimited).or_else(trend));
    broken_promises(&mut judge, record, system);
    judge.against(Reason::TooFewSamples, too_few(record, unlimited));
    judge.against(
        Reason::Clock,
        (negative > 0).then(|| format!("{negative} messages arrived before they were due: a clock is wrong")),
    );
    judge.against(Reason::NoisyMachine, noisy(record));
    judge.verdict.valid = judge.verdict.reasons.is_empty();
    judge.verdict
}

/// Losses, repetitions and the like. Where faults were asked for, they are told
/// whatever is promised.
fn broken_promises(judge: &mut Judge, record: &RunRecord, system: &System) {
    let counts = &record.counts;
    let broker = record.connections.is_some();
    // A broker promises nothing at QoS 0.
    let guaranteed = system.lossless.contains(&record.workload.pattern) && (!broker || record.workload.qos > 0);
    // At least once allows duplicates; every other promise is broken by them.
    let once = !(broker && record.workload.qos == 1);
    // Order is promised within a topic, and publishers of a tree have several.
    let ordered = guaranteed && record.workload.pattern != Pattern::Tree;
    let lost = counts.lost.saturating_sub(counts.unidentified);
    let told = judge.asked;
    judge.result(
        Reason::MessagesLost,
        ((guaranteed || told) && lost > 0)
            .then(|| format!("{lost} of {} expected messages never arrived", counts.expected)),
    );
    judge.result(
        Reason::Duplicates,
        ((once || told) && counts.duplicated > 0).then(|| format!("{} messages arrived again", counts.duplicated)),
    );
    judge.result(
        Reason::Reordered,
        ((ordered || told) && counts.reordered > 0)
            .then(|| format!("{} messages arrived behind a later one of the same publisher", counts.reordered)),
    );
    judge.against(
        Reason::Corrupted,
        (counts.corrupted > 0)
            .then(|| format!("{} messages arrived with a wrong length, header or body", counts.corrupted)),
    );
}

/// Silences of subscribers, laid at the door of the part that stalled: the
/// generator, where an agent stood still or a publisher was as late by its own
/// doing; else the system, and then they are a finding, not a fault of the run.
fn silences(judge: &mut Judge, record: &RunRecord, stood_still: bool) {
    let stalls = record.stalls;
    if stalls.count == 0 {
        return;
    }
    let (length, from) = (words(stalls.longest_ns), words(stalls.longest_at_ns));
    let times = match stalls.count {
        1 => String::new(),
        count => format!(" ({count} such silences; this was the longest)"),
    };
    let stalled = (stalls.longest_at_ns, stalls.longest_at_ns + stalls.longest_ns);
    let cut = cuts::overlaps(record, stalled);
    let own_ns = record.own_lag_ns.as_ref().map_or(0, |own| own.max);
    if stood_still {
        let evidence = format!("a subscriber heard nothing for {length}, from {from} into the window{times}");
        judge.note(Part::Generator, Some(evidence));
    } else if cut {
        let evidence = format!(
            "a subscriber heard nothing for {length}, from {from} into the window, when the link was cut{times}"
        );
        judge.note(Part::Link, Some(evidence));
    } else if own_ns >= stalls.longest_ns / 2 {
        let evidence = format!(
            "a subscriber heard nothing for {length}, from {from} into the window{times}; a publisher was up to {} \
             late by its own doing",
            words(own_ns)
        );
        judge.against(Reason::GeneratorSaturated, Some(evidence));
    } else {
        let part = judge.part.word();
        let evidence = format!(
            "the {part} delivered nothing to a subscriber for {length}, from {from} into the window, while all agents \
             ran{times}"
        );
        judge.note(judge.part, Some(evidence));
    }
}

/// The verdict on a run that could not be made.
pub fn failed(error: &str) -> Verdict {
    let reasons = vec![Finding { reason: Reason::Failed, evidence: error.to_owned(), figures: FigureGroup::all() }];
    Verdict { valid: false, reasons, notes: Vec::new() }
}

/// Connections that went while the run was on.
fn disconnected(record: &RunRecord) -> Option<String> {
    let connections = record.connections.as_ref()?;
    let first = record.remarks.iter().find(|remark| remark.contains("lost its connection"));
    (connections.lost > 0).then(|| {
        let which = first.map_or(String::new(), |first| format!(": {first}"));
        match cuts::only(record) {
            true => format!("{} connections were lost, of {} clients{which}", connections.lost, connections.opened),
            false => format!("the server ended {} of {} connections{which}", connections.lost, connections.opened),
        }
    })
}

fn limited(record: &RunRecord) -> Option<String> {
    let deployment = record.deployment.as_ref()?;
    (deployment.oom_kills > 0).then(|| {
        let limit =
            deployment.applied.memory_bytes.map_or(String::new(), |bytes| format!(" (limit: {})", format_size(bytes)));
        format!("the kernel killed {} of the server's processes for want of memory{limit}", deployment.oom_kills)
    })
}

fn saturated(record: &RunRecord) -> Option<String> {
    let own = record.own_lag_ns.as_ref()?;
    let bound = record.workload.max_send_lag_ns;
    (own.p99 > bound).then(|| {
        format!(
            "the generator sent 1 % of its messages more than {} late by its own doing (bound: {}, worst: {})",
            words(own.p99),
            words(bound),
            words(own.max)
        )
    })
}

fn missed(record: &RunRecord) -> Option<String> {
    let counts = &record.counts;
    ((counts.sent as f64) < OFFERED * counts.offered as f64)
        .then(|| format!("{} of {} messages that were due could be sent", counts.sent, counts.offered))
}

fn backlog(record: &RunRecord, unlimited: bool) -> Option<String> {
    let counts = &record.counts;
    let copies = if counts.sent > 0 { counts.expected as f64 / counts.sent as f64 } else { 0.0 };
    let sent: u64 = record.series.sent.iter().sum();
    let arrived: u64 = record.series.delivered.iter().sum();
    let owed = sent as f64 * copies - arrived as f64 - counts.lost as f64;
    (!unlimited && sent > 100 && owed > BACKLOG * sent as f64 * copies)
        .then(|| format!("a backlog grew: {arrived} arrivals in the window for {sent} messages sent in it"))
}

fn trending(record: &RunRecord, unlimited: bool) -> Option<String> {
    let (what, values): (&str, Vec<f64>) = if unlimited || record.latency_ns.is_none() {
        ("messages delivered a second", record.series.delivered.iter().map(|count| *count as f64).collect())
    } else {
        ("the median latency", record.series.latency_p50_ns.iter().filter(|ns| **ns > 0).map(|ns| *ns as f64).collect())
    };
    let found = trend(&values)?;
    let change = found.relative_change?;
    (found.p < TREND_P && change.abs() > TREND_CHANGE).then(|| {
        let direction = if change > 0.0 { "rose" } else { "fell" };
        let by = match change.abs() {
            share if share < 1.0 => format!("{:.0} %", share * 100.0),
            times => format!("{times:.1} times its median"),
        };
        format!("{what} {direction} by {by} over the window (Mann-Kendall p = {:.4})", found.p)
    })
}

fn too_few(record: &RunRecord, unlimited: bool) -> Option<String> {
    let samples = record.latency_ns.as_ref().map_or(0, |latency| latency.count);
    if unlimited && record.workload.pattern != Pattern::RequestReply {
        return (record.counts.delivered == 0).then(|| "nothing was delivered".into());
    }
    (samples < P99_SAMPLES)
        .then(|| format!("{samples} latencies were measured; the 99th percentile needs {P99_SAMPLES}: measure longer"))
}

fn noisy(record: &RunRecord) -> Option<String> {
    let machine = record.machine;
    if machine.late_ns > LATE_NS.max((LATE * record.window_ns as f64) as Ns) {
        return Some(format!(
            "the coordinator looked at machine and server {} late at an edge of the window of {}: what they did in it \
             is not known",
            words(machine.late_ns),
            words(record.window_ns)
        ));
    }
    disturbed(&machine)
}

/// What others did on the machine, where that spoils a measurement.
pub fn disturbed(machine: &MachineLoad) -> Option<String> {
    if machine.steal > STEAL {
        return Some(format!("the hypervisor took {:.1} % of the processor time", machine.steal * 100.0));
    }
    (machine.foreign_cores > FOREIGN * f64::from(machine.cores.max(1)))
        .then(|| format!("other processes kept {:.2} of {} processors busy", machine.foreign_cores, machine.cores))
}
