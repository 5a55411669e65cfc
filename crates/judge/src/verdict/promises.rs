//! A system's promises about its messages, and whether they were kept.

use super::bounds::{OFFERED, P50_SAMPLES, P99_SAMPLES, WITHOUT_LATENCY, touched};
use super::finding::{FigureFinding, Judge};
use super::kill;
use pubmark_model::counts::RefusalCount;
use pubmark_model::fault::Target;
use pubmark_model::pattern::Topics;
use pubmark_model::protocol::MOST_RANGES;
use pubmark_model::record::{FigureGroup, Reason, RunRecord};
use pubmark_model::system::System;
use pubmark_model::units::{MILLISECOND, SECOND};

/// Returns the counts, and the latencies affected if `messages` of `of` have none.
fn counts_without(messages: u64, of: u64) -> Vec<FigureGroup> {
    let mut figures = vec![FigureGroup::Counts];
    figures.extend(touched(WITHOUT_LATENCY, messages as f64 / of.max(1) as f64));
    figures
}

/// Describes when the wait for messages ended: those still missing count as lost, and may have arrived later.
fn drained(record: &RunRecord) -> String {
    match record.phases.map(|phases| phases.drain_ns) {
        None => "when the drain ended".into(),
        Some(ns) if ns < SECOND => format!("{} ms after the window", ns.div_ceil(MILLISECOND)),
        Some(ns) => format!("{:.1} s after the window", ns as f64 / SECOND as f64),
    }
}

/// Describes messages that the server acknowledged and did not deliver: the most important result of a run.
pub fn forgotten(record: &RunRecord) -> Option<String> {
    let counts = &record.counts;
    (counts.acked_lost > Some(0)).then(|| {
        let share = counts.acked_lost_of_acked();
        let why = kill::why(record, &[Target::Subscribers]);
        format!("{share} acknowledged messages were lost: they had not arrived {}{why}", drained(record))
    })
}

/// Judges losses, duplicates and the like. If faults were requested, they are noted, whatever is promised.
pub fn broken(judge: &mut Judge, record: &RunRecord, system: &System) {
    let counts = &record.counts;
    let broker = record.connections.is_some();
    // A broker promises nothing at QoS 0.
    let guaranteed = system.lossless.contains(&record.workload.pattern) && (!broker || record.workload.qos > 0);
    // At least once allows duplicates; every other promise is broken by them.
    let once = !(broker && record.workload.qos == 1);
    // Order is promised within a topic, and publishers of a tree have several.
    let ordered = guaranteed && record.workload.pattern.topics() != Topics::Tree;
    let lost = counts.lost.saturating_sub(counts.unidentified);
    let unanswered = match counts.unanswered {
        0 => String::new(),
        unanswered => format!("; no echo came of {unanswered} of {} messages", counts.sent),
    };
    let told = judge.asked;
    let found =
        |holds: bool, figures: Vec<FigureGroup>, evidence: String| holds.then(|| FigureFinding::of(&figures, evidence));
    judge.result(
        Reason::MessagesLost,
        found(
            (guaranteed || told) && (lost > 0 || counts.unanswered > 0),
            counts_without(lost.max(counts.unanswered), counts.expected),
            format!(
                "{lost} of {} expected messages had not arrived {}{}{unanswered}",
                counts.expected,
                drained(record),
                kill::why(record, &kill::SIDES)
            ),
        ),
    );
    judge.result(
        Reason::Duplicates,
        found(
            (once || told) && counts.duplicated > 0,
            vec![FigureGroup::Counts],
            format!("{} messages arrived again", counts.duplicated),
        ),
    );
    judge.result(
        Reason::Reordered,
        found(
            (ordered || told) && counts.reordered > 0,
            vec![FigureGroup::Counts],
            format!("{} messages arrived behind a later one of the same publisher", counts.reordered),
        ),
    );
    judge.against(
        Reason::Corrupted,
        found(
            counts.damaged() > 0,
            counts_without(counts.damaged(), counts.expected),
            match counts.corrupted {
                Some(corrupted) => format!("{corrupted} messages arrived with a wrong length, header or body"),
                None => format!("{} messages arrived with a wrong length or header", counts.unidentified),
            },
        ),
    );
}

/// Finds refused messages, by cause: with and without a limit of the system itself.
pub fn refused(record: &RunRecord) -> [(Reason, Option<FigureFinding>); 2] {
    [(Reason::ResourceLimitHit, true), (Reason::MessagesRefused, false)].map(|(reason, limit)| {
        let of_kind: Vec<&RefusalCount> = record.refusals.iter().filter(|one| one.limit == limit).collect();
        let count = of_kind.iter().fold(0, |sum: u64, one| sum.saturating_add(one.count));
        let each: Vec<String> = match of_kind.as_slice() {
            [only] => vec![only.reason.clone()],
            several => several.iter().map(|one| format!("{} ({})", one.reason, one.count)).collect(),
        };
        let says = || format!("the server refused {count} of {} messages: {}", record.counts.sent, each.join("; "));
        let found = (count > 0).then(|| FigureFinding::of(&counts_without(count, record.counts.sent), says()));
        (reason, found)
    })
}

/// Describes why acknowledged and lost messages are not known, if so.
pub fn untold(record: &RunRecord) -> Option<String> {
    (record.workload.qos > 0 && record.counts.acked_lost.is_none()).then(|| {
        format!(
            "whether lost messages had been acknowledged cannot be told: {} were lost and {} not acknowledged, in more \
             than {MOST_RANGES} stretches",
            record.counts.lost,
            record.counts.unacknowledged()
        )
    })
}

/// Finds messages that were due and never sent. Those that were sent are another load than the requested one.
pub fn missed(record: &RunRecord) -> Option<FigureFinding> {
    let counts = &record.counts;
    // One message of each publisher may have been due while it was being killed.
    let dying = record.killed_at_ns(Target::Publishers).map_or(0, |_| u64::from(record.workload.publishers));
    let few = (counts.sent as f64) < OFFERED * counts.offered as f64;
    (few && counts.offered.saturating_sub(counts.sent) > dying).then(|| {
        let who = kill::during(record, (0, record.window_ns)).map_or(String::new(), |who| format!(": {who}"));
        let mut figures = counts_without(counts.not_sent, counts.offered);
        figures.push(FigureGroup::Rates);
        let (sent, offered) = (counts.sent, counts.offered);
        FigureFinding::of(&figures, format!("{sent} of {offered} messages that were due could be sent{who}"))
    })
}

/// Finds percentiles of too few messages.
pub fn too_few(record: &RunRecord, unlimited: bool) -> Option<FigureFinding> {
    let samples = record.times.latency.as_ref().map_or(0, |latency| latency.count);
    if unlimited && !record.workload.pattern.round_trip() {
        return (record.counts.delivered == 0)
            .then(|| FigureFinding::of(FigureGroup::ALL, "nothing was delivered".into()));
    }
    let figures: &[FigureGroup] = match samples {
        0..P50_SAMPLES => FigureGroup::LATENCY,
        P50_SAMPLES..P99_SAMPLES => &[FigureGroup::LatencyP99],
        _ => return None,
    };
    let evidence = format!(
        "{samples} latencies were measured; the 99th percentile needs {P99_SAMPLES}, the median {P50_SAMPLES}: measure longer"
    );
    Some(FigureFinding::of(figures, evidence))
}

/// Returns the statements of its protocol's specification that the server broke.
pub fn violated(record: &RunRecord) -> Vec<String> {
    let times = |count: u64| if count == 1 { "once".to_owned() } else { format!("{count} times") };
    let broken = record.violations.iter();
    broken.map(|(statement, count)| format!("the server broke its protocol, {}: {statement}", times(*count))).collect()
}
